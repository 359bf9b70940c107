// Derivatives of calls `pass(f, xs…)` of an overlay pass (stdlib/core/overlay.slope), where a function in `f` has a
// rule.
//
// No rule is declared for the call of the pass itself. When the pass replaces nothing in the code of `f`, at any depth,
// the call is that of `f`, and the rule of `f` applies. When the pass replaces something:
//   - a rule of the library is ignored, because it says only what the code of `f` says as well: the code that runs is
//     differentiated;
//   - a rule of the program may not hold for the code that runs: the call is refused, unless there is a rule for
//     `pass(f, xs…)`.
#include <unordered_set>

#include "lang/derive/derivatives.hpp"
#include "lang/ir/ir.hpp"

namespace slope::derive {

namespace {

// The type that a name of Base means, by its nominal type.
const TypeName* type_of_base(Runtime& runtime, const char* name) {
  const Binding* found = runtime.base->find(runtime.symbol(name));
  if (!found || !found->value.defined() || !runtime.is_type_value(found->value)) return nullptr;
  const Type* t = found->value.as_type;
  while (const UnionAllType* open = as_union_all(t)) t = open->body;
  const DataType* data = as_data(t);
  return data ? data->name : nullptr;
}

const TypeName* callee_of(const Type* signature) {
  while (const UnionAllType* open = as_union_all(signature)) signature = open->body;
  const DataType* call = as_data(signature);
  const DataType* callee = call && !call->params.empty() ? as_data(call->params[0]) : nullptr;
  return callee ? callee->name : nullptr;
}

// Does code reach a method of an overlay table, or what is known only at run time?
class Search {
 public:
  Search(Compiler& compiler, Context& ctx, const TypeName* pass, const TypeName* table)
      : compiler_(compiler), ctx_(ctx), pass_(pass), table_(table) {}

  bool reaches(Specialization& start) {
    std::vector<Specialization*> work{&start};
    while (!work.empty()) {
      Specialization* next = work.back();
      work.pop_back();
      if (!seen_.insert(next).second) continue;
      const CodeInstance* code = compiler_.typed_code(ctx_, *next);
      if (!code || !code->typed) return true;
      for (const ir::InlineScope& scope : code->typed->scopes)
        if (scope.method && callee_of(scope.method->signature) == table_) return true;
      for (const ir::Inst& inst : code->typed->insts) {
        if (inst.op == ir::Op::call || inst.op == ir::Op::call_splat) return true;
        if (inst.op != ir::Op::invoke) continue;
        Specialization* callee = inst.aux_as<Specialization>();
        const TypeName* name = callee_of(callee->types);
        if (name == table_) return true;
        if (name == pass_) work.push_back(callee);  // what is called outside the pass is what it is
      }
    }
    return false;
  }

 private:
  Compiler& compiler_;
  Context& ctx_;
  const TypeName* pass_;
  const TypeName* table_;
  std::unordered_set<const Specialization*> seen_;
};

}  // namespace

// `target` is pass(f, xs…) and f(xs…) has a rule that holds for it: the specialisation of f(xs…). Else null; with `why`
// when the rule does not hold and may not be left out.
Specialization* PrimalCodes::under_pass(Context& ctx, Specialization& target, PrimalCode& noting, std::string& why) {
  Runtime& runtime = derivatives_.runtime;
  const TypeName* callee = callee_of(target.types);
  if (target.types->params.size() < 2 || !callee || callee->name->name != "OverlayPass") return nullptr;
  const TypeName* pass = type_of_base(runtime, "OverlayPass");
  const TypeName* table = type_of_base(runtime, "OverlayTable");
  if (callee != pass || rule_of(ctx, target.types, noting) != diff::RuleKind::none) return nullptr;
  const DataType* call = runtime.types.tuple(target.types->params.subspan(1));
  if (rule_of(ctx, call, noting) == diff::RuleKind::none) return nullptr;
  Specialization* plain = runtime.lookup_specialization(call, ctx.world);
  if (!plain) return nullptr;
  if (!Search(derivatives_.compiler, ctx, pass, table).reaches(target)) return plain;
  const bool overlaid = [&] {
    // Replaced as a whole: what stands for it now has the rules, or none.
    std::vector<const Type*> types(call->params.begin(), call->params.end());
    types.insert(types.begin(), as_data(target.types->params[0])->params[0]);
    return runtime.lookup(runtime.types.tuple(types), ctx.world).method != nullptr;
  }();
  if (overlaid) return nullptr;
  const auto of_program = [&](const Method* rule) {
    for (const Module* module = rule->module; module; module = module->parent)
      if (module == runtime.base || module == runtime.core) return false;
    return true;
  };
  bool any = false;
  for (const auto& [rule, method] : noting.rules.all)
    any = any || (method && rule->params[1] == call->params[0] && of_program(method));
  if (!any) return nullptr;
  why =
      "`" + std::string(plain->method->name->name) +
      "` has a rule, and the pass replaces some of what it calls, or it cannot be told; define a rule for the call of "
      "the pass, `rrule(pass, " +
      std::string(plain->method->name->name) + ", …)`";
  return nullptr;
}

bool PrimalCodes::use_rules_under_pass(Context& ctx, ir::Function& function, PrimalCode& noting) {
  for (ir::Inst& inst : function.insts) {
    if (inst.op != ir::Op::invoke) continue;
    std::string why;
    Specialization* plain = under_pass(ctx, *inst.aux_as<Specialization>(), noting, why);
    if (!why.empty()) {
      noting.refusal = diff::Refusal{inst.span, function.method, why};
      return false;
    }
    if (!plain) continue;
    inst.operands.erase(inst.operands.begin());
    inst.aux = reinterpret_cast<std::uintptr_t>(plain);
  }
  return true;
}

}  // namespace slope::derive
