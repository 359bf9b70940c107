// The walk begins at what the function returns. It goes backwards along values whose types are not exact, to the values
// that are not exact although everything they were made of is. The nearest of these is where a type was lost. When it
// is a call, the walk continues in the callee. So the answer is the line that loses the type, not the call of a helper
// in the library.
#include "lang/explain/why.hpp"

#include <algorithm>
#include <deque>
#include <set>

#include "lang/explain/view_text.hpp"
#include "lang/infer/lattice.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/support/tuning.hpp"

namespace slope::infer {

namespace {

using ir::Op;
using ir::Operand;

class Asking {
 public:
  Asking(Runtime& runtime, Context& ctx, const WhySource& source)
      : runtime_(runtime), ctx_(ctx), builtin_(runtime.types.builtin()), source_(source) {}

  Why run(Specialization& target) {
    const InferResult result = source_.infer(target, false);
    entered_.push_back(&target);
    Why found;
    found.result = result.return_type;
    found.exact = exact(result.return_type);
    if (!result.typed) {
      found.kind = "unknown";
      found.reason = "the method could not be lowered: calling it raises an error";
      return found;
    }
    ask(target, *result.typed, found, false);
    if (found.kind.empty()) ask(target, *result.typed, found, true);
    dynamic_calls(*result.typed, found);
    return found;
  }

 private:
  bool exact(const Type* type) const {
    return !type || type->kind == TypeKind::bottom || (is_dispatch_type(builtin_, type) && type != builtin_.cell);
  }

  // --- one function ---

  struct Visit {
    Operand value;
    std::size_t from;  // index of the visit whose value is made of this one
  };

  bool loses(const ir::Function& fn, Operand o) const { return o.is_inst() && !exact(fn.insts[o.index()].type); }

  // `inner`: begin with every value, not with what is returned.
  void ask(Specialization& target, const ir::Function& fn, Why& found, bool inner) {
    constexpr std::size_t none = ~std::size_t{0};
    std::deque<Visit> visits;
    std::set<std::uint32_t> seen;
    const auto visit = [&](Operand o, std::size_t from) {
      if (loses(fn, o) && seen.insert(o.index()).second) visits.push_back({o, from});
    };
    std::vector<std::uint32_t> returns;
    for (const ir::Block& block : fn.blocks) {
      if (block.terminator == ~0u) continue;
      const ir::Inst& last = fn.insts[block.terminator];
      if (last.op == Op::ret && !last.operands.empty()) returns.push_back(block.terminator);
    }
    if (inner) {
      // What constants say of a call's result stands beside it: the call itself need not be exact then.
      std::set<std::uint32_t> refined;
      for (const ir::Inst& inst : fn.insts)
        if (inst.op == Op::refine && inst.operands[0].is_inst() && exact(inst.type) && is_call(fn, inst.operands[0]) &&
            inst.block == fn.inst(inst.operands[0]).block)
          refined.insert(inst.operands[0].index());
      for (const ir::Block& block : fn.blocks)
        for (const std::uint32_t id : block.insts)
          if (!refined.contains(id)) visit(Operand::inst(id), none);
    } else if (!exact(found.result)) {
      for (const std::uint32_t id : returns) visit(fn.insts[id].operands[0], none);
      if (visits.empty()) return different_returns(fn, returns, found);
    } else {
      return;
    }
    for (std::size_t i = 0; i < visits.size(); ++i) {
      std::vector<Operand> sources;
      sources_of(fn, visits[i].value, sources);
      bool goes_on = false;
      for (const Operand source : sources) {
        goes_on |= loses(fn, source);
        visit(source, i);
      }
      if (goes_on) continue;
      // The first place. Its way to the result comes behind it.
      std::vector<WhyStep> way;
      for (std::size_t at = visits[i].from; at != none; at = visits[at].from) add_step(fn, visits[at].value, way);
      Why first = found;
      explain(target, fn, visits[i].value, first);
      // One of the calls that inference made of one, for each type that an operand may have: where it has no reason of
      // its own the operand is one.
      if (first.kind == "unknown")
        if (const Operand tested = tested_operand(fn, visits[i].value); tested.is_inst()) {
          visit(tested, i);
          continue;
        }
      found = std::move(first);
      found.steps.insert(found.steps.end(), way.begin(), way.end());
      return;
    }
    // A loop: each value is made of another that is not exact. It began where paths of different exact types meet.
    std::size_t first = visits.size();
    for (std::size_t i = 0; i < visits.size(); ++i)
      if (first == visits.size() && meets_different_types(fn, visits[i].value)) first = i;
    if (visits.empty()) return;
    if (first == visits.size()) first = 0;
    explain(target, fn, visits[first].value, found);
    for (std::size_t at = visits[first].from; at != none; at = visits[at].from)
      add_step(fn, visits[at].value, found.steps);
  }

  Operand tested_operand(const ir::Function& fn, Operand value) const {
    const ir::Inst& inst = fn.inst(value);
    for (const Operand operand : inst.operands) {
      if (!operand.is_inst()) continue;
      const ir::Inst& made = fn.inst(operand);
      if (made.op == Op::refine && made.span.file == inst.span.file && made.span.begin == inst.span.begin &&
          made.span.end == inst.span.end && loses(fn, made.operands[0]))
        return made.operands[0];
    }
    return {};
  }

  static bool is_call(const ir::Function& fn, Operand value) {
    const Op op = fn.inst(value).op;
    return op == Op::call || op == Op::invoke;
  }

  bool meets_different_types(const ir::Function& fn, Operand value) const {
    if (fn.insts[value.index()].op != Op::parameter || fn.insts[value.index()].block == 0) return false;
    std::vector<Operand> sources;
    sources_of(fn, value, sources);
    std::vector<const Type*> types;
    for (const Operand source : sources)
      if (!loses(fn, source)) add_type(types, type_of(fn, source));
    return types.size() > 1;
  }

  void sources_of(const ir::Function& fn, Operand value, std::vector<Operand>& sources) const {
    const ir::Inst& inst = fn.insts[value.index()];
    if (inst.op == Op::cell_get) return;  // what the cell holds is never known
    if (inst.op != Op::parameter) {
      sources.insert(sources.end(), inst.operands.begin(), inst.operands.end());
      if (inst.op == Op::slot_get)
        for (const ir::Inst& other : fn.insts)
          if (other.op == Op::slot_set && other.aux == inst.aux) sources.push_back(other.operands[0]);
      return;
    }
    const auto& parameters = fn.blocks[inst.block].parameters;
    const auto at = std::find(parameters.begin(), parameters.end(), value.index());
    const auto index = static_cast<std::size_t>(at - parameters.begin());
    if (inst.block == 0) return;
    for (const ir::Block& block : fn.blocks)
      for (const ir::Edge& edge : block.edges)
        if (edge.target == inst.block && index < edge.arguments.size()) sources.push_back(edge.arguments[index]);
    if (is_one_expression(fn, sources))
      for (std::size_t i = sources.size(); i-- > 0;) split_values(fn, sources[i], sources, 0);
  }

  // Paths that all compute the same expression: inference made them, one for each type that an operand may have.
  static bool is_one_expression(const ir::Function& fn, const std::vector<Operand>& sources) {
    if (sources.size() < 2) return false;
    const auto span = [&](Operand o) { return o.is_inst() ? fn.insts[o.index()].span : Span(); };
    const Span first = span(sources[0]);
    return first.file != 0 && std::all_of(sources.begin(), sources.end(), [&](Operand o) {
             return span(o).file == first.file && span(o).begin == first.begin && span(o).end == first.end;
           });
  }
  // The operands that were tested for their types, which are not exact.
  void split_values(const ir::Function& fn, Operand value, std::vector<Operand>& sources, int depth) const {
    constexpr int most_deep = 8;
    if (depth > most_deep) return;
    const ir::Inst& inst = fn.insts[value.index()];
    for (const Operand operand : inst.operands) {
      if (!operand.is_inst() || operand.index() == value.index()) continue;
      const ir::Inst& made = fn.insts[operand.index()];
      if (made.op == Op::refine && loses(fn, made.operands[0]))
        sources.push_back(made.operands[0]);
      else if (made.op != Op::parameter && made.span.begin == inst.span.begin && made.span.end == inst.span.end)
        split_values(fn, operand, sources, depth + 1);
    }
  }

  void add_step(const ir::Function& fn, Operand value, std::vector<WhyStep>& steps) const {
    const ir::Inst& inst = fn.insts[value.index()];
    if (inst.span.file == 0 || inst.op == Op::parameter) return;
    if (!steps.empty() && runtime_.sources.describe(steps.back().span) == runtime_.sources.describe(inst.span)) return;
    steps.push_back({inst.span, expression(inst.span), inst.type});
  }

  std::string expression(Span span) const { return source_text(runtime_.sources, span); }

  const Type* type_of(const ir::Function& fn, Operand o) const { return fn.type_of(o, runtime_.types); }

  // --- reasons ---

  void say(Why& found, std::string kind, std::string reason, std::string advice) const {
    found.kind = std::move(kind);
    found.reason = std::move(reason);
    found.advice = std::move(advice);
  }

  // Each return is exact, but they differ.
  void different_returns(const ir::Function& fn, const std::vector<std::uint32_t>& returns, Why& found) const {
    std::vector<const Type*> types;
    for (const std::uint32_t id : returns) {
      const ir::Inst& inst = fn.insts[id];
      const Type* type = type_of(fn, inst.operands[0]);
      if (type->kind == TypeKind::bottom) continue;
      if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
      found.steps.push_back({inst.span, expression(inst.span), type});
    }
    if (types.size() < 2) {
      found.steps.clear();
      return;
    }
    say(found, "returns", "the function returns values of different types: " + list(types), advice_for(types));
  }

  static std::string list(const std::vector<const Type*>& types) {
    std::string text;
    for (std::size_t i = 0; i < types.size(); ++i)
      text += (i == 0 ? "" : i + 1 == types.size() ? " or " : ", ") + to_string(types[i]);
    return text;
  }

  bool is_number(const Type* type) const {
    for (const DataType* up = as_data(type); up && up->super != up; up = up->super)
      if (up->name->name->name == "Number") return true;
    return false;
  }

  std::string advice_for(const std::vector<const Type*>& types) const {
    if (std::all_of(types.begin(), types.end(), [&](const Type* t) { return is_number(t); }))
      return "let all of them have one type: begin with a literal of that type (`0.0`, not `0`), or with `zero(x)` or "
             "`one(x)` of what is added";
    if (std::find(types.begin(), types.end(), static_cast<const Type*>(builtin_.nothing)) != types.end())
      return "test the result with `=== nothing` where it is used (each branch is exact then), or return a value of "
             "the "
             "other type that means \"none\"";
    return "let all of them have one type: `convert(T, …)`, or assert it where it is used, `(…)::T`";
  }

  void explain(Specialization& target, const ir::Function& fn, Operand value, Why& found) {
    const ir::Inst& inst = fn.insts[value.index()];
    const auto step = [&](const std::string& what) { found.steps.push_back({inst.span, what, inst.type}); };
    switch (inst.op) {
      case Op::parameter:
        return inst.block == 0 ? of_argument(fn, value, target, found) : of_paths(fn, value, found);
      case Op::load_global: {
        const std::string name = inst.aux_as<const Binding>()->name->name;
        step(name);
        return say(found, "global", "the global `" + name + "` is not constant: anything may be assigned to it",
                   "write `const " + name + " = …`, declare its type (`" + name +
                       "::T = …`), or give the value to the function as an argument");
      }
      case Op::cell_get: {
        const Symbol* name = inst.aux_as<const Symbol>();
        const std::string text = name ? name->name : "a variable";
        step(text);
        return say(found, "captured", "`" + text + "` is captured by a closure and assigned after that",
                   "give the closure a variable that is assigned once (`let " + text + " = " + text +
                       "`), or keep what changes in a `Ref{T}`");
      }
      case Op::slot_get: {
        const std::string name = inst.aux < fn.slots.size() && fn.slots[inst.aux] ? fn.slots[inst.aux]->name : "";
        step(name);
        std::vector<const Type*> types;
        for (const ir::Inst& other : fn.insts)
          if (other.op == Op::slot_set && other.aux == inst.aux) add_type(types, type_of(fn, other.operands[0]));
        return say(found, "paths", "the variable `" + name + "` lives across a `try` and is assigned " + list(types),
                   advice_for(types));
      }
      case Op::get_field:
        if (of_field(fn, inst, found)) return;
        break;
      case Op::field_at:
        if (const DataType* type = as_data(type_of(fn, inst.operands[0])); type && inst.aux < type->fields.size())
          return of_declared_field(type, inst.aux, inst, found);
        break;
      case Op::call:
      case Op::invoke:
        return of_call(target, fn, inst, found);
      case Op::call_splat:
        step(expression(inst.span));
        return say(found, "splat", "a collection of unknown length or element types is splatted into the call",
                   "call a function that takes the collection itself (`reduce`, `vcat` with `init`), or splat a tuple");
      case Op::native: {
        step(expression(inst.span));
        if (of_element(fn, inst, found)) return;
        return say(found, "unknown",
                   std::string("what `") + inst.aux_as<const NativeInfo>()->name + "` gives is only known when it runs",
                   "assert the type where it is used: `(…)::T`");
      }
      default:
        break;
    }
    step(expression(inst.span));
    if (of_element(fn, inst, found)) return;
    say(found, "unknown", "the result of `" + std::string(ir::op_name(inst.op)) + "` is only known when it runs",
        "assert the type where it is used: `(…)::T`");
  }

  static void add_type(std::vector<const Type*>& types, const Type* type) {
    if (type->kind != TypeKind::bottom && std::find(types.begin(), types.end(), type) == types.end())
      types.push_back(type);
  }

  static std::string argument_name(const ir::Function& fn, Operand value, const Method& method) {
    const auto& parameters = fn.blocks[0].parameters;
    const auto at =
        static_cast<std::size_t>(std::find(parameters.begin(), parameters.end(), value.index()) - parameters.begin());
    return at < method.arg_names.size() && method.arg_names[at] ? method.arg_names[at]->name : "an argument";
  }

  void of_argument(const ir::Function& fn, Operand value, const Specialization& target, Why& found) const {
    const std::string name = argument_name(fn, value, *target.method);
    found.steps.push_back({target.method->span, name, fn.insts[value.index()].type});
    say(found, "argument",
        "the type of the argument `" + name + "` is given as " + to_string(fn.insts[value.index()].type) +
            ", not exactly",
        "ask for the types that the call has when it runs");
  }

  // Paths that meet bring different types.
  void of_paths(const ir::Function& fn, Operand value, Why& found) const {
    std::vector<Operand> sources;
    sources_of(fn, value, sources);
    std::vector<const Type*> types;
    const std::size_t before = found.steps.size();
    for (const Operand source : sources) {
      const Type* type = type_of(fn, source);
      const std::size_t had = types.size();
      add_type(types, type);
      if (types.size() == had || !source.is_inst()) continue;
      const ir::Inst& inst = fn.insts[source.index()];
      if (inst.op == Op::parameter && inst.block == 0) {
        const Method& method = *entered_.back()->method;
        found.steps.push_back({method.span, argument_name(fn, source, method), type});
      } else if (inst.span.file != 0) {
        found.steps.push_back({inst.span, expression(inst.span), type});
      }
    }
    const ir::Inst& inst = fn.insts[value.index()];
    // The whole expression, where not each of its values has a place of its own.
    if (found.steps.size() < before + types.size() && inst.span.file != 0)
      found.steps.push_back({inst.span, expression(inst.span), inst.type});
    const bool grows = std::any_of(sources.begin(), sources.end(), [&](Operand source) { return loses(fn, source); });
    const std::vector<LimitPassed> limits = source_.limits(*entered_.back());
    if (const LimitPassed* widened = grows ? passed(limits, {Limit::value_growth}) : nullptr)
      return say(found, "limit",
                 "the type of a variable grows with each turn of the loop; after " + std::to_string(widened->value) +
                     " turns inference widens it to " + to_string(inst.type),
                 "keep what grows in an array, or write the loop as a recursion over types (`Base.tail`)");
    const bool is_tuple = std::any_of(types.begin(), types.end(), [](const Type* t) {
      const DataType* data = as_data(t);
      return data && data->is_tuple;
    });
    if (grows && is_tuple)
      return say(found, "paths",
                 "each turn of the loop gives the variable another type: " + list(types) +
                     ", whatever the turns before have made of it",
                 "keep what grows in an array, or write the loop as a recursion over types (`Base.tail`)");
    say(found, "paths", "a variable has different types on the paths that meet here: " + list(types),
        advice_for(types));
  }

  bool of_field(const ir::Function& fn, const ir::Inst& inst, Why& found) const {
    if (inst.operands.size() < 2 || !inst.operands[1].is_constant()) return false;
    const Value name = fn.constant_value(inst.operands[1]);
    return of_field_named(fn, inst.operands[0], name, inst, found);
  }

  bool of_field_named(const ir::Function& fn, Operand object, Value name, const ir::Inst& inst, Why& found) const {
    const DataType* type = as_data(type_of(fn, object));
    if (!type || type->is_tuple || name.type != builtin_.symbol) return false;
    for (std::size_t i = 0; i < type->fields.size(); ++i)
      if (type->fields[i].name == name.symbol && !exact(type->fields[i].type)) {
        of_declared_field(type, i, inst, found);
        return true;
      }
    return false;
  }

  void of_declared_field(const DataType* type, std::size_t index, const ir::Inst& inst, Why& found) const {
    const std::string name = type->fields[index].name ? type->fields[index].name->name : std::to_string(index + 1);
    const std::string owner = type->name->name->name;
    found.steps.push_back({inst.span, expression(inst.span), inst.type});
    say(found, "field",
        "the field `" + name + "` of " + to_string(type) + " is declared " + to_string(type->fields[index].type) +
            ", which is abstract",
        "give the field an exact type, or the type a parameter: `struct " + owner + "{T} … " + name + "::T … end`");
  }

  // What is taken out of a container whose element type is not exact.
  bool of_element(const ir::Function& fn, const ir::Inst& inst, Why& found) const {
    for (const Operand operand : inst.operands) {
      const DataType* type = as_data(type_of(fn, operand));
      if (!type || type->is_type_of_type || type->is_tuple) continue;
      for (const Type* parameter : type->params) {
        if (exact(parameter) || !is_subtype(runtime_.types, inst.type, parameter)) continue;
        const std::string name = type->name->name->name;
        const bool is_array = name == "Array";
        say(found, "element",
            "what is taken out of a " + to_string(type) + " may be any " +
                (parameter == builtin_.any ? std::string("value") : to_string(parameter)),
            is_array ? "make the array with an exact element type, `Float64[]` instead of `[]`, or collect with one: "
                       "`Float64[f(x) for x in xs]`"
                     : "make the " + name + " with exact types, or assert the type where it is taken out: `(…)::T`");
        return true;
      }
    }
    return false;
  }

  void of_call(Specialization& target, const ir::Function& fn, const ir::Inst& inst, Why& found) {
    const auto step = [&] { found.steps.push_back({inst.span, expression(inst.span), inst.type}); };
    // x.name
    if (inst.operands.size() == 3 && inst.operands[2].is_constant() && callee_name(fn, inst) == "getproperty" &&
        of_field_named(fn, inst.operands[1], fn.constant_value(inst.operands[2]), inst, found))
      return;
    if (found.steps.empty() && of_element(fn, inst, found)) return step();
    std::vector<const Type*> types;
    for (const Operand operand : inst.operands) types.push_back(argument_type(fn, operand));
    const DataType* call = runtime_.types.tuple(types);
    Specialization* callee =
        inst.op == Op::invoke ? inst.aux_as<Specialization>() : runtime_.lookup_specialization(call, ctx_.world);
    if (!callee) {
      std::size_t methods = 0;
      std::size_t most = tuning::most_choices;  // that inference looks at
      for (const Lookup& each : runtime_.lookup_all(call, ctx_.world, 1000)) {
        methods += each.method ? 1 : 0;
        if (each.method && each.method->module == runtime_.base)
          most = static_cast<std::size_t>(InferOptions().union_limit);
      }
      step();
      if (methods == 0)
        return say(found, "methods", "no method fits the call: it raises a MethodError when it runs",
                   "define a method for " + to_string(call));
      return say(found, "methods",
                 std::to_string(methods) + " methods fit the types of the arguments; inference looks at " +
                     std::to_string(most) + " at most",
                 "give the arguments exact types, or assert that of the result: `(…)::T`");
    }
    if (std::find(entered_.begin(), entered_.end(), callee) != entered_.end() ||
        passed(source_.limits(*callee), {Limit::argument_growth})) {
      step();
      return of_recursion(*callee, found);
    }
    if (may_enter()) {
      entered_.push_back(callee);
      const InferResult result = source_.infer(*callee, false);
      if (result.typed && !exact(result.return_type)) {
        if (of_constants(target, fn, inst, *callee, found)) {
          entered_.pop_back();
          return step();
        }
        Why inside;
        inside.result = result.return_type;
        ask(*callee, *result.typed, inside, false);
        entered_.pop_back();
        if (!inside.kind.empty()) {
          found.steps.insert(found.steps.end(), inside.steps.begin(), inside.steps.end());
          found.kind = inside.kind;
          found.reason = inside.reason;
          found.advice = inside.advice;
          return step();
        }
      } else {
        entered_.pop_back();
        if (result.typed) {
          step();
          return of_limit(*callee, found);
        }
      }
    }
    step();
    if (of_element(fn, inst, found)) return;
    say(found, "unknown", "the result of the call is only known when it runs", "assert its type: `(…)::T`");
  }

  // The machine's stack is the only end of the way down.
  bool may_enter() const {
    constexpr std::size_t reserve = 1 << 20;
    char here;
    return !ctx_.stack_limit || &here > ctx_.stack_limit + reserve;
  }

  const LimitPassed* passed(const std::vector<LimitPassed>& limits, std::initializer_list<Limit> any_of) const {
    for (const LimitPassed& one : limits)
      if (std::find(any_of.begin(), any_of.end(), one.limit) != any_of.end()) return &one;
    return nullptr;
  }

  static std::string name_of(const Specialization& target) {
    return target.method->name ? target.method->name->name : std::string("f");
  }
  static std::string declare_result(const Specialization& target) {
    return "declare the result type of `" + name_of(target) + "`: `function " + name_of(target) + "(…)::T`";
  }

  void of_recursion(const Specialization& callee, Why& found) const {
    const std::vector<LimitPassed> limits = source_.limits(callee);
    std::string reason = "`" + name_of(callee) + "` calls itself, and what it gives depends on what it gives";
    if (const LimitPassed* grew = passed(limits, {Limit::argument_growth}))
      reason = "`" + name_of(callee) + "` calls itself with ever larger argument types; after " +
               std::to_string(grew->value) + " activations inference goes on with the declared types of the arguments";
    else if (const LimitPassed* widened = passed(limits, {Limit::result_growth, Limit::value_growth}))
      reason = "`" + name_of(callee) + "` calls itself, and its result type grows with each turn; after " +
               std::to_string(widened->value) + " turns inference widens it";
    say(found, "recursion", reason, declare_result(callee));
  }

  // Those of the function, else of the nearest that it calls: a limit that is passed further down is felt here.
  std::vector<LimitPassed> limits_below(const Specialization& target, const Specialization*& where) const {
    std::vector<const Specialization*> reached{&target};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      std::vector<LimitPassed> limits = source_.limits(*reached[i]);
      if (passed(limits, {Limit::nesting, Limit::bodies, Limit::stack, Limit::arguments})) {
        where = reached[i];
        return limits;
      }
      const InferResult inside = source_.infer(const_cast<Specialization&>(*reached[i]), false);
      for (const Edge& edge : inside.edges)
        if (edge.kind == Edge::Kind::callee && std::find(reached.begin(), reached.end(), edge.callee) == reached.end())
          reached.push_back(edge.callee);
    }
    return {};
  }

  // The callee alone has an exact result, and still the call has none.
  void of_limit(const Specialization& callee, Why& found) const {
    const Specialization* where = &callee;
    const std::vector<LimitPassed> limits = limits_below(callee, where);
    const std::string name = "`" + name_of(*where) + "`";
    std::string reason = "inference gave up the result of " + name +
                         " in this place: it returns to a function that is being inferred for larger types";
    if (const LimitPassed* limit = passed(limits, {Limit::nesting, Limit::bodies, Limit::stack, Limit::arguments})) {
      const std::string value = std::to_string(limit->value);
      reason = "inference did not look into " + name + ": ";
      reason += limit->limit == Limit::nesting  ? "the chain of calls that lead to it is longer than " + value
                : limit->limit == Limit::bodies ? "more than " + value + " functions were inferred for one call"
                : limit->limit == Limit::stack  ? std::string("the stack is used up")
                                                : "the call has more than " + value + " arguments";
    }
    say(found, "limit", reason, declare_result(*where));
  }

  // The result would be exact if constants among the arguments were followed into the callee: tried, not guessed.
  bool of_constants(Specialization& target, const ir::Function& fn, const ir::Inst& inst, const Specialization& callee,
                    Why& found) const {
    std::string constants;
    for (std::size_t i = 1; i < inst.operands.size(); ++i) {
      if (!inst.operands[i].is_constant()) continue;
      const Value v = fn.constant_value(inst.operands[i]);
      if (v.defined()) constants += (constants.empty() ? "`" : ", `") + ir::constant_text(v) + "`";
    }
    if (constants.empty()) return false;
    const std::vector<LimitPassed> limits = source_.limits(callee);
    const LimitPassed* limit = passed(
        limits, {Limit::constant_size, Limit::constant_nesting, Limit::constant_recursion, Limit::constant_bodies});
    if (!limit) return false;
    const InferResult better = source_.infer(target, true);
    if (!better.typed) return false;
    bool helps = false;
    for (const ir::Inst& other : better.typed->insts)
      helps |= (other.op == Op::call || other.op == Op::invoke || other.op == Op::refine) && other.type &&
               exact(other.type) && other.span.begin == inst.span.begin && other.span.end == inst.span.end &&
               other.span.file == inst.span.file;
    if (!helps) return false;
    const std::string value = std::to_string(limit->value), name = "`" + name_of(callee) + "`";
    std::string because = limit->limit == Limit::constant_size ? "its body has more than " + value + " instructions"
                          : limit->limit == Limit::constant_nesting ? "constants are followed " + value + " calls deep"
                          : limit->limit == Limit::constant_recursion
                              ? "constants are followed through " + value + " activations of one function"
                              : "more than " + value + " functions were looked at again for constants";
    say(found, "constants", "the constant " + constants + " was not followed into " + name + ": " + because,
        "let what depends on the constant be a small function of its own, or give it as a type: `" + name_of(callee) +
            "(Val(…), …)`");
    return true;
  }

  const Type* argument_type(const ir::Function& fn, Operand operand) const {
    if (operand.is_constant()) return runtime_.types.dispatch_type(fn.constant_value(operand));
    return type_of(fn, operand);
  }

  std::string callee_name(const ir::Function& fn, const ir::Inst& inst) const {
    if (inst.operands.empty() || !inst.operands[0].is_constant()) return "";
    const DataType* type = as_data(fn.constant_value(inst.operands[0]).type);
    return type && type->name->is_function ? type->name->name->name : "";
  }

  void dynamic_calls(const ir::Function& fn, Why& found) const {
    for (const ir::Block& block : fn.blocks)
      for (const std::uint32_t id : block.insts) {
        const ir::Inst& inst = fn.insts[id];
        if (inst.op != Op::call && inst.op != Op::call_splat) continue;
        const bool open =
            std::any_of(inst.operands.begin(), inst.operands.end(), [&](Operand o) { return loses(fn, o); });
        const bool known = std::any_of(found.dynamic.begin(), found.dynamic.end(), [&](const WhyStep& other) {
          return other.span.file == inst.span.file && other.span.begin == inst.span.begin &&
                 other.span.end == inst.span.end;  // `a.v += x` is two calls
        });
        if (open && !known && inst.span.file != 0)
          found.dynamic.push_back({inst.span, expression(inst.span), inst.type});
      }
  }

  Runtime& runtime_;
  Context& ctx_;
  const BuiltinTypes& builtin_;
  const WhySource& source_;
  std::vector<const Specialization*> entered_;  // on the way down
};

}  // namespace

Why why(Runtime& runtime, Context& ctx, Specialization& target, const WhySource& source) {
  return Asking(runtime, ctx, source).run(target);
}

}  // namespace slope::infer
