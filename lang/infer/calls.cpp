// Calls: which methods a call can reach, what they return, and whether constants among the arguments make that more
// exact.
#include <algorithm>
#include <optional>

#include "lang/infer/engine.hpp"
#include "lang/ir/execute/execute.hpp"
#include "lang/support/tuning.hpp"

namespace slope::infer {

namespace {

constexpr int constant_recursion = tuning::constant_recursion;
constexpr int constant_nesting = tuning::constant_nesting;

class CallEvaluator {
 public:
  CallEvaluator(Inference::Impl& impl, Frame& frame, std::uint32_t id)
      : impl_(impl),
        lattice_(impl.lattice),
        builtin_(impl.builtin),
        frame_(frame),
        id_(id),
        call_(call_of(frame, id)) {}
  // For a call that stands nowhere.
  CallEvaluator(Inference::Impl& impl, Frame& frame, std::uint32_t id, Call& call)
      : impl_(impl), lattice_(impl.lattice), builtin_(impl.builtin), frame_(frame), id_(id), call_(call) {}

  // `operands` (of the arguments, callee first) may be empty.
  Evaluation evaluate(std::span<const Known> arguments, std::span<const ir::Operand> operands) {
    call_.in_cycle = false;
    call_.constant_arguments = false;
    call_.chosen_by_types = false;
    if (arguments[0]->is_constant() && arguments[0]->value.type == builtin_.builtin_function) {
      call_.combinations.clear();
      return builtin(arguments, operands);
    }
    combine(arguments);
    return methods(arguments, operands);
  }

  Evaluation unknown() {
    call_.kind = Call::Kind::unknown;
    call_.combinations.clear();
    return {lattice_.any(), effect_all};
  }

  // A call whose last argument type is a vararg: nothing to link to, but perhaps a type.
  Evaluation open_ended(std::vector<const Type*> types) {
    call_.kind = Call::Kind::unknown;
    call_.in_cycle = false;
    call_.combinations.clear();
    call_.split.clear();
    call_.combinations.emplace_back().types = std::move(types);
    find(call_.combinations[0]);
    Evaluation found = evaluate(call_.combinations[0], {}, {});
    found.effects |= effect_throws;
    return found;
  }

  // Core.return_type(f, (types…)) is what we would find of that call here. While the answer may still change it is some
  // type.
  Evaluation asked_return_type(const NativeInfo& native, std::span<const Known> arguments) {
    Evaluation unknown{lattice_.of_type(builtin_.type), native.effects};
    if (arguments.size() == 1) return unknown;
    if (arguments.size() != 2) return {lattice_.bottom(), effect_throws};
    const Type* tuple = arguments[1]->is_constant() ? arguments[1]->value.type : arguments[1]->type;
    int count = as_data(tuple) && as_data(tuple)->is_tuple ? known_field_count(tuple) : -1;
    if (count < 0) return unknown;
    // Not for a function that is known when it runs only: there the answer is more definite.
    if (!is_dispatch_type(builtin_, arguments[0]->type) && !arguments[0]->is_constant()) return unknown;
    std::vector<Known> asked{lattice_.without_condition(arguments[0])};
    for (int i = 0; i < count; ++i) {
      const Type* type = type_parameter(builtin_, lattice_.field(arguments[1], static_cast<std::size_t>(i))->type);
      if (!type || type->has_free_vars || as_vararg(type)) return unknown;
      asked.push_back(lattice_.of_type(type));
    }
    Call inner;
    Evaluation found = CallEvaluator(impl_, frame_, id_, inner).evaluate(asked, {});
    call_.in_cycle = inner.in_cycle;
    if (inner.in_cycle) return unknown;
    return {lattice_.constant(impl_.runtime.from_type(found.value->type))};
  }

  Call& call() { return call_; }

 private:
  static Call& call_of(Frame& frame, std::uint32_t id) {
    if (frame.call_index[id] == ~0u) {
      frame.call_index[id] = static_cast<std::uint32_t>(frame.calls.size());
      frame.calls.emplace_back();
    }
    return frame.calls[frame.call_index[id]];
  }

  Evaluation builtin(std::span<const Known> arguments, std::span<const ir::Operand> operands) {
    std::span<const Known> rest = arguments.subspan(1);
    ir::Inst inst;
    inst.span = frame_.fn->insts[id_].span;
    inst.block = frame_.fn->insts[id_].block;
    if (const NativeInfo* native = ir::as_builtin_native(builtin_, arguments[0]->value)) {
      call_.kind = Call::Kind::native;
      call_.native = native;
      if (native->asks_return_type) return asked_return_type(*native, rest);
      if (native->calls_method) {
        if (std::optional<Evaluation> found = chosen_by_types(rest, operands)) return *found;
        call_.combinations.clear();
      }
      inst.op = ir::Op::native;
      inst.aux = reinterpret_cast<std::uintptr_t>(native);
    } else {
      std::optional<ir::Op> op = ir::as_builtin_op(builtin_, arguments[0]->value);
      if (!op) return unknown();
      const ir::OpInfo& info = ir::op_info(*op);
      call_.kind = Call::Kind::unknown;  // it raises
      bool count_right = static_cast<int>(rest.size()) >= info.min_operands &&
                         (info.max_operands < 0 || static_cast<int>(rest.size()) <= info.max_operands);
      if (!count_right || *op == ir::Op::throw_) return {lattice_.bottom(), effect_throws};
      if (!ir::is_callable_op(*op)) return unknown();
      call_.kind = Call::Kind::op;
      call_.op = *op;
      inst.op = *op;
    }
    return impl_.evaluate_op(frame_, inst, rest, operands.empty() ? operands : operands.subspan(1));
  }

  // Core.invoke_method(f, types, arguments…) where all types are known: the one method that `types` choose. Null: it
  // stays the builtin's call.
  std::optional<Evaluation> chosen_by_types(std::span<const Known> given, std::span<const ir::Operand> operands) {
    if (given.size() < 2) return std::nullopt;
    const DataType* tuple = as_data(type_parameter(builtin_, given[1]->type));
    const Type* callee = given[0]->type;
    if (!tuple || !tuple->is_tuple || tuple->has_free_vars || callee == builtin_.builtin_function ||
        !is_dispatch_type(builtin_, callee))
      return std::nullopt;
    TypeTable& types = impl_.runtime.types;
    std::vector<const Type*> declared{callee}, actual{callee};
    declared.insert(declared.end(), tuple->params.begin(), tuple->params.end());
    for (Known k : given.subspan(2)) {
      if (!is_dispatch_type(builtin_, k->type)) return std::nullopt;
      actual.push_back(k->type);
    }
    const DataType *asked = types.tuple(declared), *called = types.tuple(actual);
    if (!is_subtype(types, called, asked)) return std::nullopt;
    const Lookup found = impl_.runtime.lookup(asked, impl_.world);
    if (!found.method || found.method->as_declared != 0) return std::nullopt;
    auto params = slope::match(types, called, found.method->signature);
    if (!params) return std::nullopt;
    frame_.min_world = std::max(frame_.min_world, found.min_world);
    frame_.max_world = std::min(frame_.max_world, found.max_world);
    Edge edge;
    edge.signature = asked;
    impl_.add_edge(frame_, edge);
    call_.kind = Call::Kind::methods;
    call_.chosen_by_types = true;
    call_.types.clear();
    call_.split.clear();
    call_.combinations.clear();
    Combination& combination = call_.combinations.emplace_back();
    combination.types = std::move(actual);
    Match& match = combination.matches.emplace_back();
    match.method = found.method;
    match.exact = match.dispatchable = true;
    if (!found.method->native) match.target = impl_.runtime.specialize(found.method, called, *params);
    std::vector<Known> arguments{given[0]};
    arguments.insert(arguments.end(), given.begin() + 2, given.end());
    std::vector<ir::Operand> passed;
    if (!operands.empty()) {  // the builtin first
      passed.push_back(operands[1]);
      passed.insert(passed.end(), operands.begin() + 3, operands.end());
    }
    return methods(arguments, passed);
  }

  // One combination for each choice of members of the union-typed arguments, as long as they are few.
  void combine(std::span<const Known> arguments) {
    std::vector<const Type*> types(arguments.size());
    for (std::size_t i = 0; i < types.size(); ++i) types[i] = arguments[i]->type;
    if (call_.kind == Call::Kind::methods && call_.types == types) return;
    call_.kind = Call::Kind::methods;
    call_.types = types;
    call_.split.clear();
    call_.combinations.clear();
    call_.leaves.clear();
    std::size_t count = 1;
    for (std::size_t i = 0; i < types.size(); ++i) {
      const UnionType* split = as_union(types[i]);
      if (!split || count * split->members.size() > static_cast<std::size_t>(impl_.options.union_limit)) continue;
      count *= split->members.size();
      call_.split.push_back(i);
    }
    for (std::size_t k = 0; k < count; ++k) {
      Combination combination;
      combination.types = types;
      std::size_t choice = k;
      for (std::size_t i : call_.split) {
        std::span<const Type* const> members = as_union(types[i])->members;
        combination.types[i] = members[choice % members.size()];
        choice /= members.size();
      }
      call_.combinations.push_back(std::move(combination));
    }
    for (Combination& combination : call_.combinations) find(combination);
    if (count == 1) find_leaves(call_.combinations[0]);
  }

  // f(x) of an abstract x with few types below it, where methods that are not for definite types are small: for each of
  // them the call is prepared too (by_methods in rewrite.cpp).
  void find_leaves(const Combination& combination) {
    if (!combination.known || combination.matches.empty() || !is_dispatch_type(builtin_, combination.types[0])) return;
    bool all_definite = true;
    for (const Match& match : combination.matches) {
      if (match.method->module == impl_.runtime.base || !match.method->ir || match.method->as_declared != 0 ||
          match.method->is_vararg || match.method->ir->insts.size() > tuning::largest_choice)
        return;
      for (const Type* t : match.target->types->params) all_definite = all_definite && is_dispatch_type(builtin_, t);
    }
    if (all_definite) return;
    std::vector<Combination> made(1);
    made[0].types = combination.types;
    for (std::size_t i = 1; i < combination.types.size(); ++i) {
      if (is_dispatch_type(builtin_, combination.types[i])) continue;
      const std::vector<const Type*>& leaves = impl_.leaves_of(combination.types[i]);
      if (leaves.empty() || leaves.size() * made.size() > tuning::most_choices + 1) return;
      std::vector<Combination> next;
      for (const Combination& one : made)
        for (const Type* leaf : leaves) next.emplace_back(one).types[i] = leaf;
      made = std::move(next);
    }
    call_.leaves = std::move(made);
    for (Combination& leaf : call_.leaves) find(leaf);
  }

  void find(Combination& combination) {
    const DataType* call_types = impl_.runtime.types.tuple(combination.types);
    const Inference::Impl::Answer& answer = impl_.find_methods(call_types);
    combination.matches = answer.matches;
    combination.covered = answer.covered;
    combination.known = answer.known;
    frame_.min_world = std::max(frame_.min_world, answer.min_world);
    frame_.max_world = std::min(frame_.max_world, answer.max_world);
    if (!answer.known) return;  // nothing is taken from it that another method could change
    Edge edge;
    edge.signature = call_types;
    impl_.add_edge(frame_, edge);
  }

  Evaluation methods(std::span<const Known> arguments, std::span<const ir::Operand> operands) {
    Evaluation all{lattice_.bottom(), effect_none};
    std::vector<Known> narrowed(arguments.begin(), arguments.end());
    std::vector<Known> results;
    for (Combination& combination : call_.combinations) {
      for (std::size_t i : call_.split) narrowed[i] = lattice_.of_type(combination.types[i]);
      Evaluation one = evaluate(combination, narrowed, operands);
      results.push_back(one.value);
      all.value = lattice_.join(all.value, one.value);
      all.effects |= one.effects;
    }
    for (Combination& leaf : call_.leaves)  // says nothing new of the result: it makes them ready to be called
      if (leaf.matches.size() == 1) evaluate(leaf, {}, {});
    if (Known said = tested_by_split(results, operands)) all.value = said;
    return all;
  }

  // isnothing(x) of a split x is true for some of its members and false for the others: that says what x is.
  Known tested_by_split(const std::vector<Known>& results, std::span<const ir::Operand> operands) {
    if (call_.split.size() != 1 || operands.empty() || !operands[call_.split[0]].is_inst()) return nullptr;
    Known sides[2] = {lattice_.bottom(), lattice_.bottom()};
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (results[k]->is_bottom()) continue;
      if (!results[k]->is_constant() || results[k]->type != builtin_.boolean) return nullptr;
      Known& side = sides[results[k]->value.bits & 1 ? 0 : 1];
      side = lattice_.join(side, lattice_.of_type(call_.combinations[k].types[call_.split[0]]));
    }
    if (sides[0]->is_bottom() || sides[1]->is_bottom()) return nullptr;
    return lattice_.conditional(operands[call_.split[0]].index(), sides[0], sides[1]);
  }

  Evaluation evaluate(Combination& combination, std::span<const Known> arguments,
                      std::span<const ir::Operand> operands) {
    if (!combination.known) return {lattice_.any(), effect_all};
    Evaluation all{lattice_.bottom(), combination.covered ? effect_none : effect_throws};
    for (Match& match : combination.matches) {
      Evaluation one = evaluate(combination, match, arguments);
      if (one.value->is_conditional()) one.value = condition_of_caller(one.value, combination, arguments, operands);
      all.value = lattice_.join(all.value, one.value);
      all.effects |= one.effects;
      if (all.value == lattice_.any() && all.effects == effect_all) break;
    }
    return all;
  }

  // The callee's result says something about its parameter: here that is the value passed for it.
  Known condition_of_caller(Known value, const Combination& combination, std::span<const Known> arguments,
                            std::span<const ir::Operand> operands) {
    if (call_.combinations.size() != 1 || combination.matches.size() != 1 || value->subject >= operands.size() ||
        !operands[value->subject].is_inst())
      return lattice_.boolean();
    Known passed = lattice_.without_condition(arguments[value->subject]);
    Known sides[2];
    for (int i = 0; i < 2; ++i) sides[i] = lattice_.narrow(passed, value->fields[static_cast<std::size_t>(i)]->type);
    return lattice_.conditional(operands[value->subject].index(), sides[0], sides[1]);
  }

  Evaluation evaluate(Combination& combination, Match& match, std::span<const Known> arguments) {
    if (const NativeInfo* native = match.method->native) {
      std::span<const Type* const> types(combination.types);
      const Type* type =
          native->result_type ? native->result_type(impl_.runtime.types, types.subspan(1)) : builtin_.any;
      return {lattice_.of_type(type), native->effects};
    }
    match.linkable = false;
    Specialization* target = impl_.limit_growth(*match.target);
    Outcome* outcome =
        target ? impl_.outcome_of(*target, target == match.target ? SourceUse::inference : SourceUse::recursion_check)
               : nullptr;
    if (!outcome) return {lattice_.any(), effect_all};
    match.linkable = match.dispatchable && target == match.target;
    impl_.use_outcome(frame_, call_, *outcome);
    Evaluation found{outcome->result, outcome->effects};
    // Also of types that are known in part, where there is one method: it is what will be called.
    const bool one = target == match.target && combination.covered && combination.matches.size() == 1;
    if (outcome->finished && (match.linkable || one) && constants_help(match, *outcome, arguments))
      with_constants(match, arguments, found);
    return found;
  }

  // --- constants ---

  bool constants_help(const Match& match, const Outcome& plain, std::span<const Known> arguments) {
    if (plain.result->is_bottom() || plain.result->is_constant() || match.method->as_declared != 0) return false;
    if (!match.method->ir && !match.method->generator) return false;
    bool all_constant = true;
    bool any_better = false;
    for (Known k : arguments) {
      if (!k->is_constant()) all_constant = false;
      if (!k->is_conditional() && k != lattice_.of_type(k->type)) any_better = true;
    }
    if (!any_better) return false;
    const DataType* type = as_data(plain.result->type);
    if (type && type->is_concrete) {
      // The type can't get better, but the value may be found when all is known and nothing else happens, or when it is
      // an argument.
      if ((!all_constant && !returns_constant(match, arguments)) || type->is_mutable || type->is_kind ||
          (plain.effects & effect_writes))
        return false;
    }
    if (match.method->ir &&
        match.method->ir->insts.size() > static_cast<std::size_t>(impl_.options.constant_call_limit)) {
      impl_.tell_limit(match.target, Limit::constant_size, impl_.options.constant_call_limit);
      return false;
    }
    int same = 0, all = 0;
    for (const Frame* f : impl_.stack) {
      if (!f->with_constants) continue;
      ++all;
      if (repeats(*f, *match.target)) ++same;
    }
    if (same >= constant_recursion) impl_.tell_limit(match.target, Limit::constant_recursion, constant_recursion);
    if (all >= constant_nesting) impl_.tell_limit(match.target, Limit::constant_nesting, constant_nesting);
    return same < constant_recursion && all < constant_nesting;
  }

  // A method that does no more than return one of its arguments, of which the value is known.
  static bool returns_constant(const Match& match, std::span<const Known> arguments) {
    const ir::Function* fn = match.method->ir.get();
    if (fn == nullptr || match.method->is_vararg || fn->blocks.size() != 1) return false;
    const ir::Inst& last = fn->insts[fn->blocks[0].terminator];
    if (last.op != ir::Op::ret || !last.operands[0].is_inst()) return false;
    const auto& parameters = fn->blocks[0].parameters;
    const auto found = std::find(parameters.begin(), parameters.end(), last.operands[0].index());
    const auto index = static_cast<std::size_t>(found - parameters.begin());
    return found != parameters.end() && index < arguments.size() && arguments[index]->is_constant();
  }

  void with_constants(const Match& match, std::span<const Known> arguments, Evaluation& found) {
    std::uint64_t hash = reinterpret_cast<std::uint64_t>(match.target);
    std::vector<Known> passed;
    for (Known k : arguments) {
      passed.push_back(lattice_.without_condition(k));
      hash = (hash ^ reinterpret_cast<std::uint64_t>(passed.back())) * 0x9e3779b97f4a7c15ull;
    }
    auto [first, last] = impl_.constant_results.equal_range(hash);
    for (auto it = first; it != last; ++it)
      if (it->second.target == match.target && it->second.arguments == passed)
        return use_constant_result(it->second, found);
    if (impl_.constant_limits_reached(*match.target)) return;
    std::unique_ptr<Frame> inner = impl_.method_frame(*match.target, impl_.entry_arguments(*match.target, passed),
                                                      SourceUse::constant_propagation);
    if (!inner) return;
    inner->with_constants = true;
    ++impl_.constant_frames_made;
    impl_.run(*inner);
    Inference::Impl::ConstantResult made;
    made.target = match.target;
    made.arguments = std::move(passed);
    // What an unfinished recursion gave may not be kept: the plain answer holds for it.
    bool complete = inner->lowest >= inner->depth;
    made.evaluation =
        complete ? Evaluation{inner->result, inner->summary_effects} : Evaluation{lattice_.any(), effect_all};
    if (made.evaluation.value->is_conditional()) made.evaluation.value = lattice_.boolean();
    made.min_world = inner->min_world;
    made.max_world = inner->max_world;
    made.edges = std::move(inner->edges);
    use_constant_result(made, found);
    if (complete) impl_.constant_results.emplace(hash, std::move(made));
  }

  void use_constant_result(const Inference::Impl::ConstantResult& made, Evaluation& found) {
    bool narrower = made.evaluation.value != found.value && lattice_.less_or_equal(made.evaluation.value, found.value);
    bool fewer = (made.evaluation.effects & ~found.effects) == 0 && made.evaluation.effects != found.effects;
    if (!narrower && !fewer) return;
    if (narrower) found.value = made.evaluation.value;
    found.effects &= made.evaluation.effects;
    call_.constant_arguments = true;
    frame_.min_world = std::max(frame_.min_world, made.min_world);
    frame_.max_world = std::min(frame_.max_world, made.max_world);
    for (const Edge& edge : made.edges) impl_.add_edge(frame_, edge);
  }

  Inference::Impl& impl_;
  LatticeTable& lattice_;
  const BuiltinTypes& builtin_;
  Frame& frame_;
  std::uint32_t id_;
  Call& call_;
};

}  // namespace

const std::vector<const Type*>& Inference::Impl::leaves_of(const Type* type) {
  static const std::vector<const Type*> none;
  const DataType* abstract = as_data(type);
  const auto is_librarys = [&](const TypeName* name) {
    return name->module == runtime.base || name->module == runtime.core;
  };
  if (!abstract || !abstract->name || !abstract->name->is_abstract || is_librarys(abstract->name)) return none;
  auto [it, fresh] = leaves.try_emplace(abstract);
  if (!fresh) return it->second;
  std::vector<const Type*>& found = it->second;
  for (const TypeName* name : runtime.types.names()) {
    if (name->is_abstract || !name->defined || name->is_closure || is_librarys(name)) continue;
    const DataType* leaf = as_data(name->wrapper);
    if (!leaf || !is_subtype(runtime.types, leaf, abstract)) continue;
    found.push_back(leaf);
    if (found.size() > tuning::most_choices) break;
  }
  bool all_definite = found.size() <= tuning::most_choices;
  for (const Type* leaf : found) all_definite = all_definite && is_concrete(leaf);
  if (!all_definite) found.clear();
  return found;
}

const Inference::Impl::Answer& Inference::Impl::find_methods(const DataType* types) {
  auto [it, fresh] = answers.try_emplace(types);
  Answer& answer = it->second;
  if (!fresh) return answer;
  // A builtin dispatches on nothing: which one it is is in the value, not in the type. And what an unknown type makes,
  // in its own table.
  const Type* callee = types->params[0];
  if (callee->is_kind || is_subtype(runtime.types, builtin.builtin_function, callee)) {
    answer.known = false;
    return answer;
  }
  bool all_dispatchable = true;
  for (const Type* t : types->params)
    if (!is_dispatch_type(builtin, t)) all_dispatchable = false;
  if (all_dispatchable) {
    Lookup found = runtime.lookup(types, world);
    answer.min_world = found.min_world;
    answer.max_world = found.max_world;
    answer.covered = found.method != nullptr;
    if (!found.method) return answer;  // MethodError, or ambiguous
    Match match;
    match.method = found.method;
    match.dispatchable = found.method->as_declared == 0;
    if (!found.method->native) match.target = runtime.specialize_as_declared(found.method, types, found.static_params);
    answer.matches.push_back(match);
    return answer;
  }
  std::vector<Lookup> found = runtime.lookup_all(types, world, static_cast<int>(tuning::most_choices));
  // The library's own functions with several methods are many, and their calls of unknown types are seldom hot.
  const bool are_many = found.size() > static_cast<std::size_t>(options.union_limit);
  for (const Lookup& one : found) {
    answer.min_world = std::max(answer.min_world, one.min_world);
    answer.max_world = std::min(answer.max_world, one.max_world);
    answer.covered = answer.covered && one.covered;
    if (!one.method || (are_many && one.method->module == runtime.base)) {
      answer.known = false;
      answer.matches.clear();
      return answer;
    }
    Match match;
    match.method = one.method;
    match.exact = one.exact;
    if (!one.method->native) {
      const DataType* common = as_data(one.exact ? types : intersect(runtime.types, types, one.method->signature));
      if (!common || !common->is_tuple || common->has_free_vars) common = types;
      // At run time the arguments' types are narrower, and with them what the variables stand for: a `T` that was
      // solved as an abstract type is not known here. Unless the types leave nothing open, as Type{Any} does: that
      // specialisation is the one that dispatch finds too.
      std::vector<const Type*> known = one.static_params;
      if (dispatchable(builtin, common->params)) {
        if (std::optional<std::vector<const Type*>> solved = slope::match(runtime.types, common, one.method->signature))
          known = std::move(*solved);
      } else {
        for (std::size_t i = 0; i < known.size() && i < one.method->static_params.size(); ++i)
          if (!as_value(known[i]) && !is_concrete(known[i])) known[i] = one.method->static_params[i];
      }
      match.target = runtime.specialize_as_declared(one.method, common, known);
    }
    answer.matches.push_back(match);
  }
  if (found.empty()) answer.covered = false;
  return answer;
}

void Inference::Impl::add_edge(Frame& frame, const Edge& edge) {
  std::uint64_t key = reinterpret_cast<std::uint64_t>(edge.signature) ^ reinterpret_cast<std::uint64_t>(edge.binding) ^
                      reinterpret_cast<std::uint64_t>(edge.callee);
  if (frame.edge_keys.insert(key).second) frame.edges.push_back(edge);
}

void Inference::Impl::use_outcome(Frame& frame, Call& call, Outcome& outcome) {
  if (!outcome.finished) call.in_cycle = true;
  frame.min_world = std::max(frame.min_world, outcome.min_world);
  frame.max_world = std::min(frame.max_world, outcome.max_world);
  Edge edge;
  edge.kind = Edge::Kind::callee;
  edge.callee = outcome.target;
  add_edge(frame, edge);
}

Evaluation Inference::Impl::evaluate_call(Frame& frame, std::uint32_t id, std::vector<Known> arguments,
                                          std::span<const ir::Operand> operands) {
  return CallEvaluator(*this, frame, id).evaluate(arguments, operands);
}

Evaluation Inference::Impl::evaluate_return_type(Frame& frame, std::uint32_t id, std::span<const Known> arguments) {
  return CallEvaluator(*this, frame, id).asked_return_type(*frame.fn->insts[id].aux_as<const NativeInfo>(), arguments);
}

Evaluation Inference::Impl::evaluate_splat(Frame& frame, std::uint32_t id, std::vector<Known> arguments) {
  CallEvaluator evaluator(*this, frame, id);
  evaluator.call().splat_known = false;  // an earlier, narrower evaluation may have said otherwise
  const ir::Inst& inst = frame.fn->insts[id];
  std::vector<Known> spread;
  const Type* rest = nullptr;  // element types of everything from the first operand of unknown length
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    Known k = arguments[i];
    bool splatted = i < 64 && (inst.aux >> i & 1);
    const DataType* data = as_data(k->is_constant() ? k->value.type : k->type);
    bool of_fields = splatted && data && (data->is_tuple || data->is_named_tuple);
    int count = of_fields ? known_field_count(data) : -1;
    if (splatted && !(of_fields && (count >= 0 || data->is_tuple)) && !(data && data->name == builtin.array_name))
      return evaluator.unknown();  // iterated by the caller's own methods
    if (rest || (splatted && count < 0)) {
      const Type* element = k->type;
      if (splatted && data->name == builtin.array_name) {
        element = data->params[0]->has_free_vars ? builtin.any : data->params[0];
      } else if (splatted) {
        element = builtin.bottom;
        for (const Type* param : data->params) {
          const VarargType* vararg = as_vararg(param);
          element = type_merge(runtime.types, element, vararg ? vararg->element : param);
        }
      }
      rest = rest ? type_merge(runtime.types, rest, element) : element;
    } else if (splatted) {
      for (int f = 0; f < count; ++f) spread.push_back(lattice.field(k, static_cast<std::size_t>(f)));
    } else {
      spread.push_back(k);
    }
  }
  Call& call = evaluator.call();
  call.splat_known = !rest;
  if (!rest) return evaluator.evaluate(spread, {});
  if (!arguments[0]->is_constant() || arguments[0]->value.type == builtin.builtin_function || rest->has_free_vars)
    return evaluator.unknown();
  const Type* tail = runtime.types.vararg(rest, nullptr);
  std::vector<const Type*> types;
  for (Known k : spread) types.push_back(k->type);
  types.push_back(tail);
  return evaluator.open_ended(types);
}

Evaluation Inference::Impl::evaluate_invoke(Frame& frame, const ir::Inst& inst) {
  Outcome* outcome = outcome_of(*inst.aux_as<Specialization>());
  if (!outcome) return {lattice.any(), effect_all};
  Call ignored;
  use_outcome(frame, ignored, *outcome);
  return {outcome->result->is_conditional() ? lattice.boolean() : outcome->result, outcome->effects};
}

}  // namespace slope::infer
