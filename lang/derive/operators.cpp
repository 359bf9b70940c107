// The operators themselves inside a function that is differentiated: a call of Core.value_and_gradient_call or
// Core.jvp_call whose types are known becomes what it does, as IR: accumulators, the call of the derivative, and what
// the user sees of its result. The derivative is a function like any other then (its code before optimisation is in
// DerivativeCache::source_of): made once, and differentiated again by either mode, to any order.
//
// What stays a call of the native is differentiated when its types are there, as a call whose target is not known
// (diff::operator_function).
//
// In code that is not differentiated the same is done with operators whose function and arguments are plain
// (is_plain): the road by the native takes many times what the derivative of a small function takes. What it does must
// be what the native does; so what needs a look at run time (arguments that share memory which the function stores
// into) is decided by Base.gradient_if_apart, and what is not plain stays a call of the native.
#include <algorithm>

#include "lang/derive/derivatives.hpp"
#include "lang/diff/operations.hpp"
#include "lang/diff/tangent.hpp"
#include "lang/diff/user_types.hpp"
#include "lang/ir/build.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::derive {

using ir::Op;
using ir::Operand;

class OperatorExpansion {
 public:
  // `is_plain`: in code that is not itself differentiated.
  OperatorExpansion(Derivatives& derivatives, Context& ctx, ir::Function& function, std::vector<Edge>& edges,
                    bool is_plain)
      : derivatives_(derivatives),
        ctx_(ctx),
        runtime_(*ctx.runtime),
        tangents_(diff::tangent_types(runtime_)),
        builtin_(runtime_.types.builtin()),
        function_(function),
        edges_(edges),
        is_plain_(is_plain) {}

  // In the place of instruction `id`: what it is done by, in `made`; its result.
  Operand run(const ir::Inst& native, std::vector<std::uint32_t>& made) {
    made_ = &made;
    at_ = &native;
    if (makes_named_tuple(native)) return named_tuple(native);
    if (puts_elements(native)) return call_base("put_each!", native.operands, builtin_.nothing);
    if (is_gradient_into(native)) {
      if (!find_target(native.operands[0], native.operands[2])) return {};
      const Operand done = gradient_into(native);
      if (done.valid()) return done;
      failed(made);
      return is_plain_ ? Operand() : call_base("value_and_gradient_by_copy", native.operands, nullptr);
    }
    const std::string_view name = name_of(native);
    if (name == "call_derivative") {
      Operand result = derivative_call();
      return result.valid() ? result : failed(made);
    }
    if (is_pullback(native)) {
      if (native.operands.size() < 2 || !find_target(native.operands[0], native.operands[1])) return failed(made);
      made.clear();
      if (is_plain_ && (sharing_of_call() != Sharing::none || !keeps_no_memory())) return {};
      return name == "pullback_step" ? pullback_step() : written_out(name);
    }
    if (name == "mutates_arguments" || name == "keep_memory_of") return known_effect(native);
    if (name.starts_with("recomputable")) return known_road(native);
    const bool is_gradient = name != "jvp_call";
    if (native.operands.size() < (is_gradient ? 2 : 3)) return {};
    if (!find_target(native.operands[0], native.operands[1])) return no_method_ ? plain_call() : failed(made);
    sharing_ = is_plain_ && name != "value_and_gradient_apart" ? sharing_of_call() : Sharing::none;
    if (sharing_ == Sharing::unknown) return failed(made);
    Operand result = !is_gradient ? directional(native)
                     : sharing_ == Sharing::looked_for
                         ? call_base("gradient_if_apart", with_constants(native.operands), nullptr)
                         : gradient();
    return result.valid() ? result : failed(made);
  }
  Operand gradient_into(const ir::Inst& native) {
    into_ = native.operands[1];
    const DataType* given = as_data(type_of(into_));
    if (!given || !given->is_tuple || !given->is_concrete || given->fields.size() != user_.size()) return {};
    const Sharing sharing = name_of(native) == "value_and_gradient_into" ? sharing_of_call() : Sharing::none;
    if (sharing == Sharing::unknown || (may_share() && !derivatives_.is_plain_type(type_of(native.operands[2]))))
      return {};
    return sharing == Sharing::looked_for
               ? call_base("gradient_into_if_apart", with_constants(native.operands), nullptr)
               : gradient();
  }
  static Operand failed(std::vector<std::uint32_t>& made) {
    made.clear();
    return {};
  }

  // Into accumulators that the caller keeps: no operator of the language's own, but what a prepared gradient calls.
  static bool is_gradient_into(const ir::Inst& inst) {
    return inst.op == Op::native && inst.operands.size() == 3 &&
           (name_of(inst) == "value_and_gradient_into" || name_of(inst) == "value_and_gradient_into_apart");
  }

  // What pullbacks are made of: the library's code for it says the same (stdlib/derivatives/derivatives_again.slope), and what is
  // to be called is known when the types are.
  static bool is_pullback(const ir::Inst& inst) {
    if (inst.op != Op::native) return false;
    const std::string_view name = name_of(inst);
    return name == "pullback_forward" || name == "pullback_reverse" || name == "pullback_step" ||
           name == "call_derivative";
  }

  // In a function that is to be differentiated.
  static bool chooses_road(const ir::Inst& inst) {
    return inst.op == Op::native && inst.operands.size() == 2 && name_of(inst).starts_with("recomputable");
  }

  static bool makes_named_tuple(const ir::Inst& inst) {
    return inst.op == Op::native && inst.operands.size() == 2 && name_of(inst) == "make_named_tuple";
  }

  // Differentiated as the loop that it stands for (stdlib/collections/put_items.slope).
  static bool puts_elements(const ir::Inst& inst) { return inst.op == Op::native && name_of(inst) == "array_put"; }

 private:
  static std::string_view name_of(const ir::Inst& native) { return native.aux_as<const NativeInfo>()->name; }
  const Type* type_of(Operand o) { return function_.type_of(o, runtime_.types); }

  Operand emit(Op op, std::vector<Operand> operands, const Type* type, std::uintptr_t aux = 0) {
    ir::Inst inst;
    inst.op = op;
    inst.operands = std::move(operands);
    inst.type = type;
    inst.aux = aux;
    inst.span = at_->span;
    inst.scope = at_->scope;
    inst.block = at_->block;
    made_->push_back(static_cast<std::uint32_t>(function_.insts.size()));
    function_.insts.push_back(std::move(inst));
    return Operand::inst(made_->back());
  }
  Operand constant(Value v) { return function_.constant(v); }
  Operand nothing() { return constant(runtime_.nothing()); }
  Operand field(Operand object, std::size_t i, const Type* type) { return emit(Op::field_at, {object}, type, i); }
  Operand call_base(const char* name, std::vector<Operand> operands, const Type* type) {
    operands.insert(operands.begin(), constant(runtime_.base->find(runtime_.symbol(name))->value));
    Operand made = emit(Op::call, std::move(operands), builtin_.any);
    return type ? emit(Op::type_assert, {made, constant(runtime_.from_type(type))}, type) : made;
  }
  Operand tuple(const std::vector<Operand>& parts) {
    std::vector<const Type*> types;
    for (Operand o : parts) types.push_back(type_of(o));
    return emit(Op::tuple, parts, runtime_.types.tuple(types));
  }

  bool find_target(Operand f, Operand xs) {
    const Type* callee = type_of(f);
    const DataType* given = as_data(type_of(xs));
    if (f.is_constant() && runtime_.is_type_value(function_.constant_value(f)))
      callee = runtime_.types.type_of_constant(function_.constant_value(f));
    if (!is_concrete(callee) || !given || !given->is_tuple || !given->is_concrete ||
        callee == builtin_.builtin_function)
      return false;
    std::vector<const Type*> types{callee};
    types.insert(types.end(), given->params.begin(), given->params.end());
    target_ = runtime_.lookup_specialization(runtime_.types.tuple(types), ctx_.world);
    no_method_ = target_ == nullptr;
    if (!target_) return false;
    std::vector<Operand> parts;
    for (std::size_t i = 0; i < given->fields.size(); ++i) parts.push_back(field(xs, i, given->fields[i].type));
    user_ = parts;
    arguments_ = packed(f, parts);
    return true;
  }

  bool is_of_numbers() {
    return std::all_of(user_.begin(), user_.end(), [&](Operand o) { return tangents_.is_float(type_of(o)); });
  }

  // Of a function that has no method for the arguments: the call itself, which says so.
  Operand plain_call() {
    const DataType* given = as_data(type_of(at_->operands[1]));
    std::vector<Operand> operands{at_->operands[0]};
    for (std::size_t i = 0; i < given->fields.size(); ++i)
      operands.push_back(field(at_->operands[1], i, given->fields[i].type));
    return emit(Op::call, operands, builtin_.any);
  }

  // As the method has its arguments: the callee, and a vararg as one tuple.
  std::vector<Operand> packed(Operand first, const std::vector<Operand>& parts) {
    const Method& method = *target_->method;
    std::size_t fixed = method.is_vararg ? method.arg_count - 1 : parts.size();
    std::vector<Operand> result{first};
    result.insert(result.end(), parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(fixed));
    if (method.is_vararg) result.push_back(tuple({parts.begin() + static_cast<std::ptrdiff_t>(fixed), parts.end()}));
    return result;
  }

  // A function that stores into its arguments must be given memory that nothing else is.
  bool may_share() {
    diff::MemorySummary effects = derivatives_.memory(ctx_).of(*target_);
    for (std::size_t i = 1; i < arguments_.size(); ++i)
      if (((effects.writes | effects.unknown) & diff::parameter_mask(i)) &&
          tangents_.has_shadow(type_of(arguments_[i])))
        return true;
    return false;
  }
  // Of a call in code that is not differentiated: what the native asks at each call (DerivedCall::find_shared_memory).
  enum class Sharing : std::uint8_t {
    none,        // nothing is stored into, or only one argument holds memory
    looked_for,  // when the call runs
    unknown,     // the native must look: calls of unknown targets, globals
  };
  Sharing sharing_of_call() {
    const diff::MemorySummary effects = derivatives_.memory(ctx_).of(*target_);
    diff::MemoryMask holders = 0;
    int count = 0;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      if (!tangents_.has_shadow(type_of(arguments_[i]))) continue;
      ++count;  // what the parts of a vararg share, their shadows share, which are made at once
      if (i > 0) holders |= diff::parameter_mask(i);
    }
    if (!((effects.writes | effects.unknown) & holders)) return Sharing::none;
    for (const Operand argument : arguments_)
      if (!derivatives_.is_plain_type(type_of(argument))) return Sharing::unknown;
    const diff::MemoryEffects::Globals& globals = derivatives_.globals_of(ctx_, *target_);
    if ((effects.unknown & holders) || !globals.bindings.empty()) return Sharing::unknown;
    looked_at_ = globals.constants;
    for (Value v : looked_at_)
      if (!derivatives_.is_plain_type(v.type)) return Sharing::unknown;
    return count > 1 || !looked_at_.empty() ? Sharing::looked_for : Sharing::none;
  }
  // With the constants that the function looks at, as a tuple.
  std::vector<Operand> with_constants(std::vector<Operand> operands) {
    std::vector<Operand> parts;
    for (Value v : looked_at_) parts.push_back(constant(v));
    operands.push_back(tuple(parts));
    return operands;
  }
  void check_sharing() {
    if (is_plain_) {
      if (sharing_ == Sharing::looked_for)
        call_base("check_apart", with_constants({at_->operands[0], at_->operands[1]}), builtin_.nothing);
      return;
    }
    if (!may_share()) return;
    Binding* check = library_binding(runtime_, KnownName::check_sharing);
    emit(Op::call, {constant(check->value), at_->operands[0], at_->operands[1]}, builtin_.any);
  }

  // The shadows of the arguments of a function that stores into some: what they share, these share. Invalid: each has
  // its own.
  Operand joint_shadows() {
    if (is_plain_ || !may_share()) return {};
    if (target_->method->is_vararg) {
      check_sharing();
      return {};
    }
    std::vector<const Type*> types;
    for (std::size_t i = 1; i < arguments_.size(); ++i) types.push_back(tangents_.shadow(type_of(arguments_[i])));
    return call_base("argument_shadows", {at_->operands[0], at_->operands[1]}, runtime_.types.tuple(types));
  }

  Operand written_out(std::string_view name) {
    std::vector<Operand> operands = at_->operands;
    return call_base(name == "pullback_forward" ? "pullback_forward_again" : "pullback_reverse_again", operands,
                     nullptr);
  }

  // Nothing that was there before is stored into, so that nothing has to be put back (kept_memory.hpp).
  bool keeps_no_memory() {
    const Stores& stores = derivatives_.stores.of(ctx_, *target_);
    return !stores.any() && !stores.calls_unknown;
  }
  // Core.mutates_arguments(f, xs), Core.keep_memory_of(f, xs): answers that rest on the code of the function alone.
  Operand known_effect(const ir::Inst& native) {
    if (!find_target(native.operands[0], native.operands[1])) return failed(*made_);
    made_->clear();
    const bool is_level = name_of(native) == "keep_memory_of";
    if (is_level && !keeps_no_memory()) return {};
    edges_.push_back({Edge::Kind::callee, nullptr, nullptr, target_});
    if (is_level) return constant(runtime_.from_int(0));
    const diff::MemorySummary effects = derivatives_.memory(ctx_).of(*target_);
    return constant(runtime_.from_bool((effects.writes | effects.unknown) != 0));
  }
  // Core.recomputable(f, xs) and its like, where the answer rests on the code of the function alone, and is the same in
  // derivatives of derivatives.
  Operand known_road(const ir::Inst& native) {
    if (!find_target(native.operands[0], native.operands[1])) return failed(*made_);
    made_->clear();
    const Stores& stores = derivatives_.stores.of(ctx_, *target_);
    if (ctx_.failed() || stores.calls_unknown) return {};
    const bool once = may_recompute(ctx_, *target_, false);
    if (once && !may_recompute(ctx_, *target_, true)) return {};
    edges_.push_back({Edge::Kind::callee, nullptr, nullptr, target_});
    return constant(runtime_.from_bool(once));
  }
  // As the native of that name (lang/derive/natives/gradient.cpp).
  Operand pullback_step() {
    std::vector<char> asked(arguments_.size(), 1);
    asked[0] = 0;
    diff::Refusal refusal;  // raised when the call is reached
    const DerivativeCache::FoundHalves found = derivatives_.cache.halves(ctx_, *target_, asked, refusal);
    if (!found.halves) return refused(refusal);
    if (!found.ready) return {};
    const Halves& halves = *found.halves;
    edges_.push_back({Edge::Kind::callee, nullptr, nullptr, halves.forward});
    edges_.push_back({Edge::Kind::callee, nullptr, nullptr, halves.reverse});
    if (at_->operands.size() == 3) check_sharing();  // before the function runs: what it stores may share memory
    Value parts[6];
    if (!describe_halves(ctx_, *target_, halves, parts)) return {};
    std::vector<Operand> operands;
    for (Value v : parts) operands.push_back(constant(v));
    return tuple(operands);
  }

  // call_derivative(derivative, arguments::Tuple) of a derivative that is known: what it takes and gives is known, too.
  Operand derivative_call() {
    const DataType* given = as_data(type_of(at_->operands[1]));
    if (!at_->operands[0].is_constant() || !given || !given->is_tuple || !given->is_concrete) return {};
    const Value callee = function_.constant_value(at_->operands[0]);
    Specialization* target = derivatives_.compiler.synthetic_of(callee);
    if (!target || !target->current || target->types->params.size() != given->fields.size() + 1) return {};
    const Type* result = target->current->return_type;
    if (!result || result->kind == TypeKind::bottom) return {};
    std::vector<Operand> operands{at_->operands[0]};
    for (std::size_t i = 0; i < given->fields.size(); ++i) {
      const Type* wanted = target->types->params[i + 1];
      Operand part = field(at_->operands[1], i, given->fields[i].type);
      if (wanted == builtin_.nothing)  // a derivative's own place, which it does not look at
        part = nothing();
      else if (!is_subtype(runtime_.types, given->fields[i].type, wanted))
        part = emit(Op::type_assert, {part, constant(runtime_.from_type(wanted))}, wanted);
      operands.push_back(part);
    }
    if (!calls_directly(*target)) return {};
    edges_.push_back({Edge::Kind::callee, nullptr, nullptr, target});
    return emit(Op::invoke, operands, result, reinterpret_cast<std::uintptr_t>(target));
  }
  // In code that is not differentiated nothing else ends what an exception leaves open.
  bool calls_directly(const Specialization& derivative) {
    return !is_plain_ || !derivatives_.cache.may_leave_level(derivative);
  }

  // Where the derivative is refused. In code that is differentiated the native would become a call of the library's own
  // `gradient`, whose derivative is this one again, without end: the error stands in its place.
  Operand refused(const diff::Refusal& refusal) {
    if (is_plain_ || ctx_.failed() || refusal.not_inferred || (refusal.reason.empty() && !refusal.of_result)) return {};
    return call_base("throw_refused", {constant(runtime_.from_string(derivatives_.text_of(*target_, refusal)))},
                     nullptr);
  }

  Operand gradient() {
    std::vector<char> asked(arguments_.size(), 1);
    asked[0] = 0;
    diff::Refusal refusal;  // raised when the call is reached
    const GradientCode* code = derivatives_.cache.gradient(ctx_, *target_, asked, refusal);
    if (!code) return refused(refusal);
    if (!calls_directly(*code->target)) return {};
    if (is_plain_ && !tangents_.is_float(code->target->types->params.back()) && !is_of_numbers()) return {};
    edges_.push_back({Edge::Kind::callee, nullptr, nullptr, code->target});
    const Operand joint = into_.valid() ? Operand() : joint_shadows();
    std::vector<Operand> operands{constant(code->callee)};
    operands.insert(operands.end(), arguments_.begin(), arguments_.end());
    std::vector<Operand> shadows(arguments_.size());
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      const Type* type = type_of(arguments_[i]);
      shadows[i] = nothing();
      if (!code->active[i] || !tangents_.has_shadow(type)) continue;
      shadows[i] = into_.valid() ? accumulator(i) : Operand();
      if (into_.valid() && !shadows[i].valid()) return {};
      if (joint.valid() && i > 0)
        shadows[i] = field(joint, i - 1, tangents_.shadow(type));
      else if (!into_.valid())
        shadows[i] = zero_shadow(arguments_[i]);
      operands.push_back(shadows[i]);
    }
    const Type* seed = code->target->types->params.back();
    bool is_float = tangents_.is_float(seed);
    if (is_float) {
      operands.push_back(constant(number(seed, 1)));
    } else {
      operands.push_back(call_base("boxed_tangent", {constant(runtime_.from_float(1.0))}, seed));
    }
    const Type* result_type = code->target->current->return_type;
    if (result_type && result_type->kind == TypeKind::bottom)  // it always raises
      return emit(Op::invoke, operands, result_type, reinterpret_cast<std::uintptr_t>(code->target));
    const DataType* pair_type = as_data(result_type);
    if (!pair_type || !pair_type->is_tuple || pair_type->fields.size() != 2) return {};
    Operand pair = emit(Op::invoke, operands, result_type, reinterpret_cast<std::uintptr_t>(code->target));
    Operand value = field(pair, 0, pair_type->fields[0].type);
    if (!is_float) value = call_base("checked_value", {value}, nullptr);
    const DataType* cotangents = as_data(pair_type->fields[1].type);
    Operand all = field(pair, 1, cotangents);
    std::vector<Operand> parts;
    for (std::size_t i = 1; i < arguments_.size(); ++i) {
      Operand part = field(all, i, cotangents->fields[i].type);
      bool rest = target_->method->is_vararg && i + 1 == arguments_.size();
      if (rest)
        for (Operand o : finished_parts(as_data(type_of(arguments_[i])), arguments_[i], shadows[i], part))
          parts.push_back(o);
      else
        parts.push_back(finished(type_of(arguments_[i]), arguments_[i], shadows[i], part));
    }
    return tuple({value, tuple(parts)});
  }

  Operand zero_shadow(Operand x) {
    const DataType* d = as_data(type_of(x));
    const Type* shadow = tangents_.shadow(d);
    if (is_plain_ && diff::has_struct_elements(tangents_, d))
      return call_base("zero_shadow_like", {constant(runtime_.from_type(shadow)), x, zeros(as_data(shadow)->params[0])},
                       shadow);
    if (is_plain_ && diff::is_object_of_numbers(tangents_, d)) {
      std::vector<Operand> parts{constant(runtime_.from_type(shadow))};
      for (std::size_t i = 0; i < d->fields.size(); ++i) parts.push_back(zeros(as_data(shadow)->fields[i].type));
      parts.push_back(constant(runtime_.from_bool(false)));  // it may be stored into
      return emit(Op::make_struct, parts, shadow);
    }
    const Operand arrays = is_plain_ && as_data(shadow)->is_tuple ? arrays_in(x) : Operand();
    return arrays.valid() ? call_base("zero_shadow_of_arrays", {constant(runtime_.from_type(shadow)), arrays}, shadow)
                          : call_base("zero_shadow", {x}, shadow);
  }
  Operand zeros(const Type* cotangent) {
    if (tangents_.is_float(cotangent)) return constant(number(cotangent, 0));
    if (cotangent == builtin_.nothing) return nothing();
    std::vector<Operand> parts;
    for (const Field& part : as_data(cotangent)->fields) parts.push_back(zeros(part.type));
    return tuple(parts);
  }
  Value number(const Type* type, double x) {
    Value made(type, std::int64_t{0});
    if (type == builtin_.float64)
      made = runtime_.from_float(x);
    else
      made.float32 = static_cast<float>(x);
    return made;
  }
  // The arrays of numbers in an immutable struct, in tuples as its shadow has theirs; invalid: there is other memory.
  Operand arrays_in(Operand x) {
    const Type* type = type_of(x);
    if (!tangents_.has_shadow(type)) return nothing();
    const DataType* d = as_data(type);
    if (d->object_kind == DataType::ObjectKind::array) return tangents_.is_float(d->params[0]) ? x : Operand();
    if (d->object_kind != DataType::ObjectKind::fields || d->is_mutable || diff::may_lack_fields(d)) return {};
    std::vector<Operand> parts;
    for (std::size_t i = 0; i < d->fields.size(); ++i) {
      parts.push_back(arrays_in(field(x, i, d->fields[i].type)));
      if (!parts.back().valid()) return {};
    }
    return tuple(parts);
  }

  // What the caller keeps for argument `i`, set to zero, as its shadow; invalid: it has another shape.
  Operand accumulator(std::size_t i) {
    if (i == 0) return {};
    const DataType* all = as_data(type_of(into_));
    bool rest = target_->method->is_vararg && i + 1 == arguments_.size();
    if (rest) {
      const DataType* wanted = as_data(tangents_.shadow(type_of(arguments_[i])));
      std::vector<Operand> parts;
      for (std::size_t k = i - 1; k < user_.size(); ++k) {
        parts.push_back(zeroed(type_of(user_[k]), user_[k], field(into_, k, all->fields[k].type)));
        if (!parts.back().valid() || type_of(parts.back()) != wanted->fields[k - i + 1].type) return {};
      }
      return tuple(parts);
    }
    return zeroed(type_of(arguments_[i]), arguments_[i], field(into_, i - 1, all->fields[i - 1].type));
  }
  Operand zeroed(const Type* t, Operand x, Operand kept) {
    const Type* wanted = tangents_.shadow(t);
    if (wanted == builtin_.nothing) return nothing();
    const DataType* d = as_data(t);
    const DataType* given = as_data(type_of(kept));
    if (d && d->object_kind == DataType::ObjectKind::array && type_of(kept) == wanted)
      return call_base("zeroed_like!", {kept, x}, wanted);
    if (is_plain_ && given == builtin_.nothing && diff::is_object_of_numbers(tangents_, d)) return zero_shadow(x);
    bool plain = d && d->is_concrete && d->object_kind == DataType::ObjectKind::fields && !d->is_mutable && given &&
                 (given->is_tuple || given->is_named_tuple) && given->fields.size() == d->fields.size();
    if (!plain) return {};
    std::vector<Operand> parts;
    for (std::size_t i = 0; i < d->fields.size(); ++i) {
      parts.push_back(zeroed(d->fields[i].type, field(x, i, d->fields[i].type), field(kept, i, given->fields[i].type)));
      if (!parts.back().valid()) return {};
    }
    Operand made = tuple(parts);
    return type_of(made) == wanted ? made : Operand();
  }

  Operand shadow_in_direction(Operand x, Operand direction) {
    const DataType* d = as_data(type_of(x));
    const DataType* shadow = as_data(tangents_.shadow(d));
    const DataType* told = as_data(type_of(direction));
    if (is_plain_ && told && told->is_tuple && told->is_concrete && told->fields.size() == d->fields.size()) {
      if (const Operand object = object_in_direction(d, shadow, told, direction); object.valid()) return object;
      if (shadow->is_tuple && arrays_in(x).valid())
        return call_base("arrays_in_direction", {x, zero_shadow(x), direction}, shadow);
    }
    return call_base("direction_shadow", {x, direction}, shadow);
  }
  // Of an object of numbers whose direction has a number or nothing for each; invalid otherwise.
  Operand object_in_direction(const DataType* d, const DataType* shadow, const DataType* told, Operand direction) {
    if (!diff::is_object_of_numbers(tangents_, d)) return {};
    std::vector<Operand> parts{constant(runtime_.from_type(shadow))};
    for (std::size_t i = 0; i < d->fields.size(); ++i) {
      const Type* wanted = shadow->fields[i].type;
      const Type* given = told->fields[i].type;
      if (given != wanted && given != builtin_.nothing) return {};
      parts.push_back(given == wanted ? field(direction, i, given) : zeros(wanted));
    }
    parts.push_back(constant(runtime_.from_bool(false)));  // it may be stored into
    return emit(Op::make_struct, parts, shadow);
  }

  Operand directional(const ir::Inst& native) {
    std::size_t width = native.operands.size() - 2;
    std::vector<std::vector<Operand>> directions;
    std::vector<char> asked(arguments_.size(), 0);
    for (std::size_t k = 0; k < width; ++k) {
      const DataType* given = as_data(type_of(native.operands[2 + k]));
      if (!given || !given->is_tuple || !given->is_concrete || given->fields.size() != user_.size()) return {};
      std::vector<Operand> parts;
      for (std::size_t i = 0; i < user_.size(); ++i)
        parts.push_back(field(native.operands[2 + k], i, given->fields[i].type));
      directions.push_back(packed(nothing(), parts));
      for (std::size_t i = 1; i < arguments_.size(); ++i)
        if (type_of(directions[k][i]) != builtin_.nothing) asked[i] = 1;
    }
    diff::Refusal refusal;
    const Tangent* code = derivatives_.cache.tangent(ctx_, *target_, asked, width, refusal);
    if (!code) return width == 1 ? refused(refusal) : Operand();  // several go one by one
    if (!calls_directly(*code->target)) return {};
    if (is_plain_ && !derivatives_.is_plain_type(code->result_type) && !is_of_numbers()) return {};
    asked = code->active;  // what is stored into, too: it stands still at first
    edges_.push_back({Edge::Kind::callee, nullptr, nullptr, code->target});
    check_sharing();
    std::vector<Operand> operands{constant(code->callee)};
    operands.insert(operands.end(), arguments_.begin(), arguments_.end());
    for (std::size_t k = 0; k < width; ++k)
      for (std::size_t i = 0; i < arguments_.size(); ++i) {
        if (asked[i] && tangents_.has_shadow(type_of(arguments_[i])))
          operands.push_back(shadow_in_direction(arguments_[i], directions[k][i]));
      }
    for (std::size_t k = 0; k < width; ++k)
      for (std::size_t i = 0; i < arguments_.size(); ++i) {
        const Type* own = tangents_.cotangent(type_of(arguments_[i]));
        if (asked[i] && own && own != builtin_.nothing)
          operands.push_back(
              call_base("direction_numbers", {constant(runtime_.from_type(own)), directions[k][i]}, own));
      }
    std::vector<const Type*> types{code->result_type};
    for (std::size_t k = 0; k < width; ++k)
      types.insert(types.end(), {tangents_.shadow(code->result_type), tangents_.cotangent(code->result_type)});
    Operand all =
        emit(Op::invoke, operands, runtime_.types.tuple(types), reinterpret_cast<std::uintptr_t>(code->target));
    std::vector<Operand> parts{field(all, 0, types[0])};
    for (std::size_t k = 0; k < width; ++k)
      parts.push_back(finished(types[0], parts[0], field(all, 2 * k + 1, types[1]), field(all, 2 * k + 2, types[2])));
    return tuple(parts);
  }

  std::vector<Operand> finished_parts(const DataType* d, Operand x, Operand shadow, Operand cotangent) {
    const DataType* shadow_type = as_data(type_of(shadow));
    const DataType* cotangent_type = as_data(type_of(cotangent));
    std::vector<Operand> parts;
    for (std::size_t i = 0; i < d->fields.size(); ++i) {
      const Type* declared = d->fields[i].type;
      if (!tangents_.differentiable(declared)) {
        parts.push_back(nothing());
        continue;
      }
      Operand own = nothing();
      Operand number = nothing();
      if (d->is_mutable) {
        const Type* stored = shadow_type->fields[i].type;
        Operand both = field(shadow, i, stored);
        if (!tangents_.has_shadow(declared)) {
          number = both;
        } else if (!tangents_.has_cotangent(declared)) {
          own = both;
        } else {
          own = field(both, 0, as_data(stored)->fields[0].type);
          number = field(both, 1, as_data(stored)->fields[1].type);
        }
      } else {
        if (shadow_type->is_tuple) own = field(shadow, i, shadow_type->fields[i].type);
        if (cotangent_type->is_tuple) number = field(cotangent, i, cotangent_type->fields[i].type);
      }
      parts.push_back(finished(declared, field(x, i, declared), own, number));
    }
    return parts;
  }

  // make_named_tuple(names, values) of constant names: a struct like any other.
  Operand named_tuple(const ir::Inst& native) {
    const DataType* values = as_data(type_of(native.operands[1]));
    if (!native.operands[0].is_constant() || !values || !values->is_tuple || !values->is_concrete) return {};
    Value names = function_.constant_value(native.operands[0]);
    const DataType* names_type = as_data(names.type);
    if (!names_type || !names_type->is_tuple || names_type->fields.size() != values->fields.size()) return {};
    std::vector<const Symbol*> symbols;
    std::vector<Operand> parts;
    for (std::size_t i = 0; i < values->fields.size(); ++i) {
      Value name = load_field(runtime_.heap, names.object, names_type->fields[i]);
      if (name.type != builtin_.symbol) return {};
      symbols.push_back(name.symbol);
      parts.push_back(field(native.operands[1], i, values->fields[i].type));
    }
    return named(symbols, values, parts);
  }
  Operand named(const std::vector<const Symbol*>& names, const Type* values, std::vector<Operand> parts) {
    const DataType* type = runtime_.types.named_tuple(names, values);
    parts.insert(parts.begin(), constant(runtime_.from_type(type)));
    return emit(Op::make_struct, parts, type);
  }

  // The two parts of a tangent → what the user sees (diff::finish_tangent).
  Operand finished(const Type* t, Operand x, Operand shadow, Operand cotangent) {
    if (!tangents_.differentiable(t)) return nothing();
    if (tangents_.is_float(t)) {
      return type_of(cotangent) == t ? cotangent
                                     : call_base("as_cotangent", {constant(runtime_.from_type(t)), cotangent}, t);
    }
    const DataType* d = as_data(t);
    if (d && d->object_kind == DataType::ObjectKind::array && tangents_.is_float(d->params[0])) return shadow;
    if (is_plain_ && diff::has_struct_elements(tangents_, d)) {
      const Type* element = diff::user_tangent_type(runtime_.types, d->params[0]);
      if (element == as_data(type_of(shadow))->params[0]) return shadow;  // as it was given, where it was
      return call_base("seen_elements", {constant(runtime_.from_type(element)), shadow}, nullptr);
    }
    bool plain = d && d->is_concrete && d->object_kind == DataType::ObjectKind::fields && depth_ < 20;
    if (!plain || tangents_.contains_itself(d) || diff::may_lack_fields(d))
      return call_base("finished_tangent", {x, shadow, cotangent}, nullptr);
    ++depth_;
    std::vector<Operand> parts = finished_parts(d, x, shadow, cotangent);
    --depth_;
    if (d->is_tuple) return tuple(parts);
    if (diff::is_complex_float(runtime_.types, d)) {
      parts.insert(parts.begin(), constant(runtime_.from_type(d)));
      return emit(Op::make_struct, parts, d);
    }
    std::vector<const Symbol*> names;
    std::vector<Value> symbols;
    for (const Field& f : d->fields) {
      Value symbol;
      symbol.type = builtin_.symbol;
      symbol.symbol = f.name;
      symbols.push_back(symbol);
      names.push_back(f.name);
    }
    Operand all = tuple(parts);
    if (is_concrete(type_of(all))) return named(names, type_of(all), parts);
    Value list;
    if (!runtime_.new_tuple(ctx_, symbols.data(), symbols.size(), list)) return nothing();
    return call_base("named_parts", {constant(list), all}, nullptr);
  }

  Derivatives& derivatives_;
  Context& ctx_;
  Runtime& runtime_;
  diff::TangentTypes& tangents_;
  const BuiltinTypes& builtin_;
  ir::Function& function_;
  std::vector<Edge>& edges_;
  std::vector<std::uint32_t>* made_ = nullptr;
  const ir::Inst* at_ = nullptr;
  Specialization* target_ = nullptr;
  bool no_method_ = false;          // what is called is known, and that it cannot be
  std::vector<Operand> user_;       // the arguments as the user gave them
  std::vector<Operand> arguments_;  // callee first, as the method has them
  Operand into_;                    // the accumulators that the caller gave
  int depth_ = 0;
  const bool is_plain_;
  Sharing sharing_ = Sharing::none;
  std::vector<Value> looked_at_;  // constants with memory, of a function that stores into its arguments
};

bool Derivatives::calls_known_gradient(const ir::Function& function) const {
  for (const ir::Block& block : function.blocks)
    for (std::uint32_t id : block.insts)
      if (OperatorExpansion::is_gradient_into(function.insts[id]) || is_plain_operator(function, function.insts[id]))
        return true;
  return false;
}

// In the place of instruction `id`, when it is an operator that can be expanded; invalid: it stays.
ir::Operand Derivatives::expand_operator(Context& ctx, ir::Function& function, std::uint32_t id,
                                         std::vector<Edge>& edges, bool known_only, std::vector<std::uint32_t>& made) {
  const ir::Inst& inst = function.insts[id];
  const bool wanted = OperatorExpansion::is_gradient_into(inst) || is_plain_operator(function, inst) ||
                      (!known_only && (diff::is_operator(inst) || OperatorExpansion::makes_named_tuple(inst) ||
                                       OperatorExpansion::is_pullback(inst) || OperatorExpansion::chooses_road(inst) ||
                                       OperatorExpansion::puts_elements(inst)));
  if (!wanted) return {};
  const bool had_failed = ctx.failed();
  const ir::Inst native = inst;
  Operand result = OperatorExpansion(*this, ctx, function, edges, known_only).run(native, made);
  if (result.valid() || had_failed || !known_only) return result;
  // The call may never be reached: it raises what is to be raised (by the builder of a rule) when it is.
  if (ctx.failed()) ctx.take_error();
  return result;
}

bool Derivatives::expand_operators(Context& ctx, ir::Function& function, std::vector<Edge>& edges, bool known_only) {
  std::vector<Operand> replacement(function.insts.size());
  bool any = false;
  for (ir::BlockId b = 0; b < function.blocks.size(); ++b) {
    std::vector<std::uint32_t> insts;
    for (std::uint32_t id : std::vector<std::uint32_t>(function.blocks[b].insts)) {
      std::vector<std::uint32_t> made;
      Operand result = expand_operator(ctx, function, id, edges, known_only, made);
      if (result.valid()) {
        insts.insert(insts.end(), made.begin(), made.end());
        replacement[id] = result;
        any = true;
      } else {
        insts.push_back(id);
      }
    }
    function.blocks[b].insts = std::move(insts);
  }
  if (!any) return false;
  replacement.resize(function.insts.size());
  ir::replace_all_uses(function, replacement);
  return true;
}

}  // namespace slope::derive
