// What inference finds in the functions of a document, for the language server: calls that no method fits, names that
// are nowhere defined, and the types of expressions. The documents' definitions have run in the engine (repl/lsp.cpp);
// each method is inferred for the types that it declares.
#include <algorithm>
#include <map>

#include "lang/explain/why.hpp"
#include "lang/explain/why_source.hpp"
#include "lang/infer/lattice.hpp"
#include "lang/ir/ir.hpp"
#include "lang/syntax/parse.hpp"
#include "stdlib/native/native.hpp"
#include "tools/tools.hpp"

namespace slope::api::detail {

namespace {

using ir::Op;
using ir::Operand;
using stdlib::Call;
using syntax::Head;
using syntax::NodeId;

// A method of the document and what was inferred of it. Valid while the collector pauses.
struct Checked {
  const Method* method = nullptr;
  std::unique_ptr<ir::Function> typed;
};

class Document {
 public:
  Document(EngineState& engine, Context& ctx, std::string_view name)
      : engine_(engine), ctx_(ctx), runtime_(engine.runtime), builtin_(engine.runtime.types.builtin()) {
    for (const Module* module : {runtime_.main, runtime_.base})
      for (const auto& [symbol, binding] : module->bindings) {
        if (!binding->value.defined() || binding->module != module) continue;
        for (const Method* method : current_methods(engine, binding->value))
          if (method->span.file != 0 && runtime_.sources.file(method->span.file).name() == name) add(*method);
      }
  }

  const std::vector<Checked>& methods() const { return methods_; }
  Runtime& runtime() const { return runtime_; }

  bool exact(const Type* type) const { return !type || infer::is_dispatch_type(builtin_, type); }

  const Type* type_of(const ir::Function& fn, Operand o) const {
    if (o.is_constant() && !fn.constant_value(o).defined()) return nullptr;
    return o.is_constant() ? runtime_.types.dispatch_type(fn.constant_value(o)) : fn.type_of(o, runtime_.types);
  }

 private:
  // For the declared types; of a type variable its bound.
  void add(const Method& method) {
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
    Specialization* target = runtime_.specialize(const_cast<Method*>(&method), call, *solved);
    engine_.pipeline->typed_code(ctx_, *target);
    if (ctx_.failed()) ctx_.take_error();  // it does not lower: that is told as a problem of syntax
    infer::InferResult result = explain::why_source(*engine_.pipeline, ctx_).infer(*target, false);
    if (ctx_.failed()) ctx_.take_error();
    if (result.typed) methods_.push_back({&method, std::move(result.typed)});
  }

  EngineState& engine_;
  Context& ctx_;
  Runtime& runtime_;
  const BuiltinTypes& builtin_;
  std::vector<Checked> methods_;
};

struct Finding {
  Span span;
  std::string message;
  bool operator<(const Finding& other) const {
    return std::tie(span.file, span.begin, span.end, message) <
           std::tie(other.span.file, other.span.begin, other.span.end, other.message);
  }
};

// A call on these types raises a MethodError, whatever the values are.
bool fits_no_method(const Document& document, World world, const ir::Function& fn, const ir::Inst& inst,
                    std::string& message) {
  if (inst.op != Op::call || !inst.operands[0].is_constant()) return false;
  Runtime& runtime = document.runtime();
  const RawValue callee = fn.constant_value(inst.operands[0]);
  if (!callee.defined() || callee.type == runtime.types.builtin().builtin_function) return false;
  std::vector<const Type*> types;
  for (const Operand operand : inst.operands) {
    const Type* type = document.type_of(fn, operand);
    if (!type || type->kind == TypeKind::bottom) return false;  // it is never reached
    types.push_back(type);
  }
  constexpr int most = 1000;
  for (const Lookup& found : runtime.lookup_all(runtime.types.tuple(types), world, most))
    if (found.method || !found.ambiguous.empty()) return false;
  // Where inference went through the members of a union, another of them may fit: then it is not certain.
  for (const ir::Inst& other : fn.insts)
    if (&other != &inst && (other.op == Op::call || other.op == Op::invoke) && other.span.begin == inst.span.begin &&
        other.span.end == inst.span.end && other.type && other.type->kind != TypeKind::bottom)
      return false;
  const DataType* function = as_data(callee.type);
  message = "no method of `" +
            (runtime.is_type_value(callee) ? to_string(callee.as_type) : std::string(function->name->name->name)) +
            "` fits (";
  for (std::size_t i = 1; i < types.size(); ++i) message += (i > 1 ? ", ::" : "::") + to_string(types[i]);
  message += "): it raises a MethodError when it gets here";
  return true;
}

bool is_undefined(const Binding& binding, const std::set<std::string>& assigned) {
  if (binding.value.defined() || binding.waiting != Binding::none_waiting || assigned.contains(binding.name->name))
    return false;
  const Binding* found = binding.module ? binding.module->find(binding.name) : nullptr;
  return !found || !found->value.defined();
}

// tool_checks(document, names) → ((line, column, end line, end column, message)…), from 0, columns in bytes. `names`:
// what the document's statements assign, a line each.
bool tool_checks(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "tool_checks", args, count, result);
  std::string_view name, names;
  if (!call.arity(2) || !call.string(0, name) || !call.string(1, names)) return false;
  Runtime& runtime = call.runtime;
  const CollectionPause pause(runtime.heap);
  std::set<std::string> assigned;
  for (std::size_t at = 0; at < names.size();) {
    const std::size_t end = std::min(names.find('\n', at), names.size());
    assigned.insert(std::string(names.substr(at, end - at)));
    at = end + 1;
  }
  const Document document(engine_of(ctx), ctx, name);
  std::set<Finding> findings;
  for (const Checked& checked : document.methods())
    for (const ir::Block& block : checked.typed->blocks)
      for (const std::uint32_t id : block.insts) {
        const ir::Inst& inst = checked.typed->insts[id];
        if (inst.span.file != checked.method->span.file) continue;
        std::string message;
        if (inst.op == Op::load_global && is_undefined(*inst.aux_as<const Binding>(), assigned))
          findings.insert({inst.span, "`" + inst.aux_as<const Binding>()->name->name + "` is not defined"});
        else if (fits_no_method(document, ctx.world, *checked.typed, inst, message))
          findings.insert({inst.span, message});
      }
  Rooted rows(runtime.heap);
  for (const Finding& finding : findings) {
    const SourceFile& file = runtime.sources.file(finding.span.file);
    const LineColumn from = file.line_column(finding.span.begin), to = file.line_column(finding.span.end);
    const RawValue row[] = {runtime.from_int(from.line - 1), runtime.from_int(from.column - 1),
                            runtime.from_int(to.line - 1), runtime.from_int(to.column - 1),
                            runtime.from_string(finding.message)};
    RawValue tuple;
    if (!runtime.new_tuple(ctx, row, std::size(row), tuple)) return false;
    rows.values.push_back(tuple);
  }
  RawValue all;
  return runtime.new_tuple(ctx, rows.values.data(), rows.values.size(), all) && call.give(all);
}

// --- types of expressions ---

// The expression at an offset of the method's file, and its type: that of an instruction that stands for it, of an
// operand, of the right side of an assignment, of an argument.
class TypeAt {
 public:
  TypeAt(const Document& document, const Checked& checked, std::uint32_t offset)
      : document_(document), fn_(*checked.typed), method_(*checked.method), offset_(offset) {}

  const Type* find(const syntax::Ast& ast, std::string& text, std::string_view file) {
    std::vector<NodeId> way{ast.root};
    for (bool deeper = true; deeper;) {
      deeper = false;
      for (const NodeId child : ast.children(way.back())) {
        const Span span = ast.node(child).span;
        if (offset_ < span.begin || offset_ >= span.end) continue;
        way.push_back(child);
        deeper = true;
        break;
      }
    }
    for (std::size_t i = way.size(); i-- > 1;) {
      const NodeId node = way[i];
      if (!is_expression(ast.head(node))) return nullptr;
      const Span span = ast.node(node).span;
      const Type* type = of_span(span);
      if (!type) type = in_parent(ast, node, way[i - 1]);
      if (!type && ast.head(node) == Head::identifier) type = of_argument(ast.name_of(node), span);
      if (!type) continue;
      text = std::string(file.substr(span.begin, span.end - span.begin));
      return type;
    }
    return nullptr;
  }

 private:
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
        return false;
      default:
        return true;
    }
  }

  const Type* of_span(Span span) const {
    for (const ir::Inst& inst : fn_.insts)
      if (inst.type && inst.op != Op::parameter && inst.scope == 0 && inst.span.begin == span.begin &&
          inst.span.end == span.end && inst.span.file == method_.span.file && !ir::is_terminator(inst.op))
        return inst.type;
    return nullptr;
  }

  // Children of calls are operands.
  const Type* in_parent(const syntax::Ast& ast, NodeId node, NodeId parent) const {
    const auto children = ast.children(parent);
    const auto index = static_cast<std::size_t>(std::find(children.begin(), children.end(), node) - children.begin());
    const Head head = ast.head(parent);
    if (head == Head::assign) return index == 0 && children.size() == 2 ? of_span(ast.node(children[1]).span) : nullptr;
    if (head != Head::call && head != Head::op_assign && head != Head::ref && head != Head::dot) return nullptr;
    const std::size_t skipped = head == Head::ref || head == Head::dot ? 1 : 0;  // the function is not written
    const Span span = ast.node(parent).span;
    for (const ir::Inst& inst : fn_.insts) {
      if ((inst.op != Op::call && inst.op != Op::invoke) || inst.span.begin != span.begin ||
          inst.span.end != span.end || inst.scope != 0 || inst.operands.size() != children.size() + skipped)
        continue;
      if (skipped == 0 && index == 0) return nullptr;  // the function: its documentation says more
      return document_.type_of(fn_, inst.operands[index + skipped]);
    }
    return nullptr;
  }

  const Type* of_argument(std::string_view name, Span span) const {
    if (span.begin < method_.span.begin || span.end > method_.span.end) return nullptr;  // the signature's
    const auto& parameters = fn_.blocks[0].parameters;
    for (std::size_t i = 1; i < method_.arg_names.size() && i < parameters.size(); ++i)
      if (method_.arg_names[i] && method_.arg_names[i]->name == name) return fn_.insts[parameters[i]].type;
    return nullptr;
  }

  const Document& document_;
  const ir::Function& fn_;
  const Method& method_;
  std::uint32_t offset_;
};

// tool_type_at(document, line, column) → "expression :: type", or "": from 0, the column in bytes.
bool tool_type_at(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "tool_type_at", args, count, result);
  std::string_view name;
  std::int64_t line = 0, column = 0;
  if (!call.arity(3) || !call.string(0, name) || !call.integer(1, line) || !call.integer(2, column)) return false;
  Runtime& runtime = call.runtime;
  const CollectionPause pause(runtime.heap);
  const Document document(engine_of(ctx), ctx, name);
  std::map<FileId, syntax::ParseResult> trees;
  for (const Checked& checked : document.methods()) {
    const SourceFile& file = runtime.sources.file(checked.method->span.file);
    const std::string_view text = file.text();
    std::size_t offset = 0;
    for (std::int64_t i = 0; i < line && offset < text.size(); ++i)
      offset = std::min(text.find('\n', offset), text.size() - 1) + 1;
    const std::size_t line_end = std::min(text.find('\n', offset), text.size());
    offset += static_cast<std::size_t>(std::max<std::int64_t>(column, 0));
    if (offset < checked.method->span.begin || offset >= line_end) continue;
    auto known = trees.find(checked.method->span.file);
    if (known == trees.end())
      known = trees.emplace(checked.method->span.file, syntax::parse(runtime.sources, checked.method->span.file)).first;
    std::string expression;
    const Type* type =
        TypeAt(document, checked, static_cast<std::uint32_t>(offset)).find(known->second.ast, expression, text);
    if (!type) continue;
    if (const std::size_t end = expression.find('\n'); end != std::string::npos)
      expression = expression.substr(0, end) + " …";
    return call.give(expression + " :: " + to_string(type));
  }
  return call.give(std::string());
}

const NativeInfo checks_natives[] = {
    {"tool_checks", tool_checks, effect_all, nullptr},
    {"tool_type_at", tool_type_at, effect_all, stdlib::returns_string},
};

}  // namespace

void define_check_natives(EngineState& engine) { stdlib::define_all(engine.runtime, checks_natives); }

}  // namespace slope::api::detail
