// Core.code_callees and Core.code_values: what a method calls, and the types of its expressions, for tools that show
// code.
#include <algorithm>

#include "lang/derive/natives/call.hpp"
#include "lang/explain/natives.hpp"
#include "lang/infer/infer.hpp"
#include "lang/infer/lattice.hpp"
#include "lang/lower/lower.hpp"

namespace slope::explain {

namespace {

// A method inferred for the types of a call, before any optimisation.
struct Inferred {
  Specialization* target = nullptr;
  std::unique_ptr<infer::Inference> inference;  // keeps the constants of the result
  infer::InferResult result;
};

bool infer_call_of(Context& ctx, const char* name, const Value* args, std::size_t count, Inferred& made) {
  Runtime& runtime = *ctx.runtime;
  if (count != 2) return ctx.argument_error(std::string(name) + " takes a function and a tuple of types");
  made.target = derive::inferred_call_of(ctx, args[0], args[1]);
  if (!made.target) return false;
  made.inference = std::make_unique<infer::Inference>(runtime, ctx, ctx.world);
  made.result = made.inference->infer(*made.target);
  if (ctx.failed()) return false;
  return made.result.typed ||
         ctx.argument_error("the types of the call " + to_string(made.target->types) + " could not be inferred");
}

bool is_exact(Runtime& runtime, const Type* type) {
  const BuiltinTypes& builtin = runtime.types.builtin();
  return !type || type->kind == TypeKind::bottom ||
         (infer::is_dispatch_type(builtin, type) && type != static_cast<const Type*>(builtin.cell));
}

// code_callees(f, types) → ((callee or nothing, argument types, text, result type, exact, line)…): each call in it, in
// order. `nothing`: the callee cannot be named (a closure), or the call is looked up when it runs.
bool code_callees(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  const CollectionPause pause(runtime.heap);
  Inferred made;
  if (!infer_call_of(ctx, "code_callees", args, count, made)) return false;
  const ir::Function& fn = *made.result.typed;
  std::vector<Value> calls;
  std::vector<std::string> seen;
  for (const ir::Block& block : fn.blocks)
    for (const std::uint32_t id : block.insts) {
      const ir::Inst& inst = fn.insts[id];
      if (inst.op != ir::Op::invoke && inst.op != ir::Op::call) continue;
      Value callee = runtime.nothing();
      if (inst.operands[0].is_constant()) callee = fn.constant_value(inst.operands[0]);
      std::vector<Value> types;
      std::string text;
      const DataType* function = as_data(callee.type);
      if (callee.identical(runtime.nothing()))
        text = "(" + to_string(fn.type_of(inst.operands[0], runtime.types)) + ")";
      else
        text = runtime.is_type_value(callee) ? to_string(callee.as_type) : function->name->name->name;
      text += "(";
      for (std::size_t i = 1; i < inst.operands.size(); ++i) {
        const ir::Operand o = inst.operands[i];
        const Type* type =
            o.is_constant() ? runtime.types.dispatch_type(fn.constant_value(o)) : fn.type_of(o, runtime.types);
        types.push_back(runtime.from_type(type));
        text += (i > 1 ? ", ::" : "::") + to_string(type);
      }
      text += ")";
      const bool known = inst.op == ir::Op::invoke && !callee.identical(runtime.nothing());
      if (std::find(seen.begin(), seen.end(), text) != seen.end()) continue;
      seen.push_back(text);
      Value tuple;
      if (!runtime.new_tuple(ctx, types.data(), types.size(), tuple)) return false;
      Value fields[] = {known ? callee : runtime.nothing(),
                        tuple,
                        runtime.from_string(text),
                        runtime.from_string(to_string(inst.type)),
                        runtime.from_bool(is_exact(runtime, inst.type)),
                        runtime.from_int(runtime.sources.line_of(inst.span))};
      Value call;
      if (!runtime.new_tuple(ctx, fields, std::size(fields), call)) return false;
      calls.push_back(call);
    }
  return runtime.new_tuple(ctx, calls.data(), calls.size(), result);
}

// code_values(f, types) → (file, first line, text, result type, ((begin, end, type, exact)…)): the text of the method
// and the types of the expressions in it, by byte offsets in that text.
bool code_values(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  const CollectionPause pause(runtime.heap);
  Inferred made;
  if (!infer_call_of(ctx, "code_values", args, count, made)) return false;
  const ir::Function& fn = *made.result.typed;
  const Span whole = fn.span.file ? fn.span : made.target->method->span;
  // The lines that the spans of its values cover.
  const SourceFile& file = runtime.sources.file(whole.file);
  std::uint32_t begin = made.target->method->span.begin, end = made.target->method->span.end;
  for (const ir::Inst& inst : fn.insts)
    if (inst.scope == 0 && inst.span.file == whole.file && inst.span.begin >= begin) end = std::max(end, inst.span.end);
  // And its own last line, an `end` that no value stands on.
  if (const auto& body = made.target->method->body; body && body->ast && body->definition != syntax::no_node) {
    const Span definition = body->ast->node(body->definition).span;
    if (definition.file == whole.file) end = std::max(end, definition.end);
  }
  const std::string_view text = file.text();
  end = std::min<std::uint32_t>(end, static_cast<std::uint32_t>(text.size()));
  while (begin > 0 && text[begin - 1] != '\n') --begin;
  while (end < text.size() && text[end] != '\n') ++end;
  std::vector<Value> values;
  for (const ir::Block& block : fn.blocks)
    for (const std::uint32_t id : block.insts) {
      const ir::Inst& inst = fn.insts[id];
      if (!inst.type || inst.span.file != whole.file || inst.span.begin < begin || inst.span.end > end ||
          inst.span.end <= inst.span.begin)
        continue;
      Value fields[] = {runtime.from_int(inst.span.begin - begin), runtime.from_int(inst.span.end - begin),
                        runtime.from_string(to_string(inst.type)), runtime.from_bool(is_exact(runtime, inst.type))};
      Value value;
      if (!runtime.new_tuple(ctx, fields, std::size(fields), value)) return false;
      values.push_back(value);
    }
  Value all;
  if (!runtime.new_tuple(ctx, values.data(), values.size(), all)) return false;
  Span first = whole;
  first.begin = begin;
  Value fields[] = {runtime.from_string(file.name()), runtime.from_int(runtime.sources.line_of(first)),
                    runtime.from_string(text.substr(begin, end - begin)),
                    runtime.from_string(to_string(made.result.return_type)), all};
  return runtime.new_tuple(ctx, fields, std::size(fields), result);
}

const NativeInfo callees_natives[] = {
    {"code_callees", code_callees, effect_all, nullptr},
    {"code_values", code_values, effect_all, nullptr},
};

}  // namespace

void define_callees_natives(Runtime& runtime) {
  for (const NativeInfo& native : callees_natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope::explain
