#include "tools/lsp/inferred.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lang/infer/infer.hpp"
#include "lang/infer/lattice.hpp"
#include "lang/ir/ir.hpp"
#include "lang/lower/lower.hpp"
#include "tools/checks.hpp"
#include "tools/passed.hpp"
#include "tools/tools.hpp"

namespace slope::api::tools::lsp {

using detail::EngineState;
using detail::RawValue;
using ir::Op;
using ir::Operand;
using syntax::Ast;
using syntax::Head;
using syntax::NodeId;

namespace {

struct Typed {
  const Method* method = nullptr;
  std::unique_ptr<ir::Function> code;
};

class Inferred {
 public:
  Inferred(EngineState& engine, const Ast& ast, Definition& definition)
      : engine_(engine),
        runtime_(engine.runtime),
        builtin_(engine.runtime.types.builtin()),
        checks_(engine),
        passed_(engine),
        ast_(ast),
        definition_(definition) {}

  void run() {
    for (const Method* method : methods()) infer(*method);
    for (std::size_t i = 0; i < typed_.size(); ++i) infer_passed(i);
    for (const Typed& typed : typed_) {
      for (const ir::Block& block : typed.code->blocks) {
        if (block.handler != ir::no_block) continue;  // what fails there is caught
        for (const std::uint32_t id : block.insts) check(*typed.code, typed.code->insts[id]);
      }
      note_types(typed);
    }
    for (const auto& [where, message] : found_)
      definition_.findings.push_back({where.first, where.second, false, message.first, message.second});
    for (const auto& [where, type] : types_) definition_.types.push_back({where.first, where.second, type});
    std::sort(definition_.types.begin(), definition_.types.end(), [](const TypedSpan& a, const TypedSpan& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
  }

 private:
  // --- its methods ---

  std::vector<const Method*> methods() {
    std::vector<const Method*> own;
    for (const std::string& path : definition_.paths) {
      const RawValue v = detail::value_of_path(engine_, path);
      if (!v.defined()) continue;
      if (v.type == engine_.types.module) {
        in_module(*v.module, own, 0);
        continue;
      }
      add_own(v, own);
    }
    return own;
  }
  void add_own(RawValue v, std::vector<const Method*>& own) {
    for (const Method* method : detail::current_methods(engine_, v))
      if (method->span.file == definition_.file && std::find(own.begin(), own.end(), method) == own.end())
        own.push_back(method);
  }
  void in_module(const Module& module, std::vector<const Method*>& own, int depth) {
    if (depth > 20 || &module == runtime_.base || &module == runtime_.core) return;
    std::vector<RawValue> values;
    for (const auto& [name, binding] : module.bindings)
      if (binding->module == &module && binding->value.defined()) values.push_back(binding->value);
    for (const RawValue v : values) {
      if (v.type != engine_.types.module)
        add_own(v, own);
      else if (v.module != &module && v.module->parent == &module)
        in_module(*v.module, own, depth + 1);
    }
  }

  // For the declared types; of a type variable its bound.
  void infer(const Method& method) {
    if (method.native || method.generator) return;
    const Type* signature = method.signature;
    std::vector<const TypeVar*> variables;
    while (const UnionAllType* bound = as_union_all(signature)) {
      variables.push_back(bound->var);
      signature = bound->body;
    }
    const DataType* tuple = as_data(signature);
    if (!tuple) return;
    std::vector<const Type*> declared;
    for (const Type* type : tuple->params) {
      if (as_vararg(type)) return;
      const auto variable = std::find(variables.begin(), variables.end(), type);
      if (variable != variables.end()) type = (*variable)->upper ? (*variable)->upper : builtin_.any;
      if (type->has_free_vars) return;
      declared.push_back(type);
    }
    const DataType* call = runtime_.types.tuple(declared);
    const auto solved = match(runtime_.types, call, method.signature);
    if (!solved) return;
    infer(*runtime_.specialize(const_cast<Method*>(&method), call, *solved));
  }

  // Callees are inferred, not optimised: nothing here runs.
  void infer(Specialization& target) {
    infer::Inference inference(runtime_, engine_.ctx, engine_.ctx.world);
    infer::InferResult result = inference.infer(target);
    if (engine_.ctx.failed()) engine_.ctx.take_error();
    if (result.typed) typed_.push_back({target.method, std::move(result.typed)});
  }

  // Closures that it passes to the library, for the types that they are called with.
  void infer_passed(std::size_t which) {
    constexpr std::size_t most = 40;
    std::vector<Specialization*> passed;
    for (const ir::Block& block : typed_[which].code->blocks) {
      if (block.handler != ir::no_block) continue;
      for (const std::uint32_t id : block.insts) {
        const ir::Inst& inst = typed_[which].code->insts[id];
        Specialization* callee = inst.op == Op::invoke ? inst.aux_as<Specialization>() : nullptr;
        if (!callee || !callee->method || callee->method->span.file == definition_.file) continue;
        for (Specialization* each : passed_.reached_by(*callee))
          if (each->method->span.file == definition_.file && passed_seen_.insert(each).second) passed.push_back(each);
      }
    }
    for (Specialization* each : passed)
      if (typed_.size() < most) infer(*each);
  }

  const Type* type_of(const ir::Function& fn, Operand o) const {
    if (o.is_constant() && !fn.constant_value(o).defined()) return nullptr;
    return o.is_constant() ? runtime_.types.dispatch_type(fn.constant_value(o)) : fn.type_of(o, runtime_.types);
  }

  // --- what must fail ---

  void add(Span span, const std::string& code, std::string message) {
    if (span.file != definition_.file || span.end <= span.begin) return;
    found_.try_emplace({span.begin, span.end}, std::pair<std::string, std::string>(code, std::move(message)));
  }

  void check(const ir::Function& fn, const ir::Inst& inst) {
    if (inst.span.file != definition_.file || inst.scope != 0) return;
    if (std::optional<Fault> fault = checks_.check(fn, inst)) add(fault->span, fault->code, std::move(fault->message));
  }

  // --- types of expressions ---

  using Place = std::pair<std::uint32_t, std::uint32_t>;

  void note_types(const Typed& typed) {
    std::map<Place, std::vector<const ir::Inst*>> calls;
    std::map<Place, const Type*> of_spans;
    for (const ir::Block& block : typed.code->blocks) {
      for (const std::uint32_t id : block.insts) {
        const ir::Inst& inst = typed.code->insts[id];
        if (inst.scope == 0 && inst.span.file == definition_.file)
          calls[{inst.span.begin, inst.span.end}].push_back(&inst);
      }
      if (&block == typed.code->blocks.data()) continue;
      for (const std::uint32_t id : block.parameters) {  // where the branches of an expression meet
        const ir::Inst& inst = typed.code->insts[id];
        if (inst.type && inst.span.file == definition_.file)
          of_spans.try_emplace({inst.span.begin, inst.span.end}, inst.type);
      }
    }
    for (const auto& [place, insts] : calls)
      if (const Type* type = type_of_all(*typed.code, insts)) of_spans.try_emplace(place, type);
    walk(typed, of_spans, calls, definition_.node, syntax::no_node);
  }

  // Of what one expression became. A call of which inference made several, one for each type that an argument may have,
  // comes with tests of these types, which are not the expression's value.
  const Type* type_of_all(const ir::Function& fn, const std::vector<const ir::Inst*>& insts) const {
    std::vector<const Type*> results;
    const Type* other = nullptr;
    // A step on the way to the value (`broadcasted` before `materialize`) is not the value.
    std::set<const ir::Inst*> steps;
    for (const ir::Inst* inst : insts) {
      if (inst->op != Op::call && inst->op != Op::invoke) continue;
      for (const Operand of : inst->operands)
        if (of.is_inst()) steps.insert(&fn.insts[of.index()]);
    }
    for (const ir::Inst* inst : insts) {
      if (!inst->type || ir::is_terminator(inst->op) || inst->op == Op::isa) continue;
      const bool is_call = inst->op == Op::call || inst->op == Op::invoke;
      if (inst->op == Op::refine) {
        // What is known of a call's result besides.
        const Operand of = inst->operands[0];
        if (results.size() == 1 && of.is_inst() && &fn.insts[of.index()] == called_last(insts)) results[0] = inst->type;
        continue;
      }
      if (is_call && inst->type->kind != TypeKind::bottom && !steps.contains(inst)) results.push_back(inst->type);
      if (!is_call && !other) other = inst->type;
    }
    if (results.empty()) return other;
    return results.size() == 1 ? results[0] : runtime_.types.union_of(results);
  }
  static const ir::Inst* called_last(const std::vector<const ir::Inst*>& insts) {
    const auto at = std::find_if(insts.rbegin(), insts.rend(),
                                 [](const ir::Inst* inst) { return inst->op == Op::call || inst->op == Op::invoke; });
    return at == insts.rend() ? nullptr : *at;
  }

  void walk(const Typed& typed, const std::map<Place, const Type*>& of_spans,
            const std::map<Place, std::vector<const ir::Inst*>>& calls, NodeId node, NodeId parent) {
    const Place place = placed(node);
    const Type* type = nullptr;
    if (is_expression(ast_.head(node))) {
      if (const auto at = of_spans.find(place); at != of_spans.end()) type = at->second;
      if (!type && parent != syntax::no_node) type = in_parent(*typed.code, of_spans, calls, node, parent);
      if (!type && ast_.head(node) == Head::identifier) type = of_argument(typed, place, ast_.name_of(node));
    }
    if (type && type->kind != TypeKind::bottom && place.second > place.first)
      types_.try_emplace(place, to_string(made_of(type)));
    for (const NodeId child : ast_.children(node)) walk(typed, of_spans, calls, child, node);
  }

  // A broadcast is shown as what comes of it.
  const Type* made_of(const Type* type) {
    const DataType* data = as_data(type);
    if (!data || data->name->name->name != "BroadcastTree") return type;
    const auto [at, is_new] = broadcasts_.try_emplace(type, type);
    if (!is_new) return at->second;
    const RawValue materialize = engine_.library("materialize");
    if (!materialize.defined()) return type;
    const Type* parts[] = {materialize.type, type};
    const Type* made = infer::return_type(runtime_, engine_.ctx, runtime_.types.tuple(parts), engine_.ctx.world);
    if (engine_.ctx.failed()) engine_.ctx.take_error();
    if (made && made->kind != TypeKind::bottom) broadcasts_[type] = made;
    return broadcasts_[type];
  }

  Place placed(NodeId node) const {
    const Span span = ast_.node(node).span;
    if (span.begin < definition_.node_begin) return {0, 0};
    return {span.begin - definition_.node_begin, span.end - definition_.node_begin};
  }

  static bool is_expression(Head head) {
    switch (head) {
      case Head::block:
      case Head::function:
      case Head::if_:
      case Head::while_:
      case Head::for_:
      case Head::let_:
      case Head::try_:
      case Head::struct_:
      case Head::macrocall:
        return false;
      default:
        return true;
    }
  }

  // Children of calls are operands; what is assigned has the type of the right side.
  const Type* in_parent(const ir::Function& fn, const std::map<Place, const Type*>& of_spans,
                        const std::map<Place, std::vector<const ir::Inst*>>& calls, NodeId node, NodeId parent) const {
    const auto children = ast_.children(parent);
    const auto index = static_cast<std::size_t>(std::find(children.begin(), children.end(), node) - children.begin());
    const Head head = ast_.head(parent);
    if (head == Head::assign) {
      if (index != 0 || children.size() != 2) return nullptr;
      const auto at = of_spans.find(placed(children[1]));
      return at != of_spans.end() ? at->second : literal_type(children[1]);
    }
    if (head != Head::call && head != Head::op_assign && head != Head::ref && head != Head::dot) return nullptr;
    const std::size_t skipped = head == Head::ref || head == Head::dot ? 1 : 0;  // the function is not written
    if (skipped == 0 && index == 0) return nullptr;  // the function: its documentation says more
    const auto at = calls.find(placed(parent));
    if (at == calls.end()) return nullptr;
    if (head == Head::dot && index == 1) {  // the field
      const Type* whole = of_spans.contains(placed(parent)) ? of_spans.at(placed(parent)) : nullptr;
      const Type* declared = declared_field(fn, at->second, ast_.name_of(node));
      return declared ? declared : whole;
    }
    for (const ir::Inst* inst : at->second) {
      const bool is_call = inst->op == Op::call || inst->op == Op::invoke;
      // An operation has no function among its operands.
      const std::size_t operand = index + skipped - (is_call ? 0 : 1);
      const std::size_t wanted = children.size() + skipped - (is_call ? 0 : 1);
      if (inst->operands.size() == wanted) return type_of(fn, inst->operands[operand]);
    }
    return nullptr;
  }

  const Type* declared_field(const ir::Function& fn, const std::vector<const ir::Inst*>& insts,
                             std::string_view name) const {
    for (const ir::Inst* inst : insts) {
      if ((inst->op != Op::call && inst->op != Op::invoke) || inst->operands.size() < 3) continue;
      const DataType* owner = type_of(fn, inst->operands[1]) ? as_data(type_of(fn, inst->operands[1])) : nullptr;
      if (!owner) continue;
      for (const Field& field : owner->fields)
        if (field.name && field.name->name == name && !field.type->has_free_vars) return field.type;
    }
    return nullptr;
  }

  const Type* literal_type(NodeId node) const {
    switch (ast_.head(node)) {
      case Head::integer:
        return ast_.node(node).flag == 0 ? builtin_.int64 : nullptr;
      case Head::floating:
        return builtin_.float64;
      case Head::boolean:
        return builtin_.boolean;
      case Head::string:
        return builtin_.string;
      default:
        return nullptr;
    }
  }

  const Type* of_argument(const Typed& typed, Place place, std::string_view name) const {
    const Method& method = *typed.method;
    if (place.first < method.span.begin || place.second > method.span.end) return nullptr;  // the signature's
    const auto& parameters = typed.code->blocks[0].parameters;
    for (std::size_t i = 1; i < method.arg_names.size() && i < parameters.size(); ++i)
      if (method.arg_names[i] && method.arg_names[i]->name == name) return typed.code->insts[parameters[i]].type;
    return nullptr;
  }

  EngineState& engine_;
  Runtime& runtime_;
  const BuiltinTypes& builtin_;
  CallChecks checks_;
  PassedFunctions passed_;
  std::set<const Specialization*> passed_seen_;
  const Ast& ast_;
  Definition& definition_;
  std::vector<Typed> typed_;
  std::map<Place, std::pair<std::string, std::string>> found_;
  std::map<Place, std::string> types_;
  std::map<const Type*, const Type*> broadcasts_;
};

}  // namespace

void infer_definition(EngineState& engine, const Ast& ast, Definition& definition) {
  detail::Entry entry(engine);
  const CollectionPause pause(engine.runtime.heap);
  Inferred(engine, ast, definition).run();
}

}  // namespace slope::api::tools::lsp
