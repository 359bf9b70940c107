// Closures: their type (one field a capture), their methods, and the value.
//
// A static parameter of an enclosing method travels as a field of type Val{T}; the closure's methods get it back as a
// static parameter of their own, matched from the closure's type, so that inference knows it.
#include <algorithm>
#include <utility>

#include "lang/lower/emit.hpp"
#include "lang/lower/scope.hpp"
#include "lang/lower/state.hpp"

namespace slope::lower {

const Type* close_signature(Runtime& runtime, const Type* body, std::span<const TypeVar* const> vars,
                            std::vector<std::uint32_t>& indices) {
  indices.assign(vars.size(), ~0u);
  std::vector<bool> kept(vars.size(), false);
  for (std::size_t i = vars.size(); i-- > 0;) {
    const Type* wrapped = runtime.types.union_all(vars[i], body);
    kept[i] = wrapped != body;
    body = wrapped;
  }
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < vars.size(); ++i)
    if (kept[i]) indices[i] = next++;
  return body;
}

Emitter::Operand Emitter::make_closure(ClosureGroup& group) {
  if (group.type_name == nullptr) emit_group(group);
  std::vector<Operand> captured;
  for (const Capture& capture : group.captures) {
    if (capture.field == nullptr) continue;
    if (!capture.variable->is_static_parameter) {
      captured.push_back(shared(capture.variable));
      continue;
    }
    const auto& builtin = runtime_.types.builtin();
    const Operand type =
        emit_op(Op::apply_type, {constant(runtime_.from_type(builtin.val_name->wrapper)), read(capture.variable)});
    captured.push_back(emit_op(Op::make_struct, {type}));
  }
  if (captured.empty() && group.type_name->primary->instance.defined())
    return constant(group.type_name->primary->instance);
  return emit_op(Op::make_closure, std::move(captured), reinterpret_cast<std::uintptr_t>(group.type_name));
}

void Emitter::emit_group(ClosureGroup& group) {
  std::vector<const Symbol*> fields;
  for (Capture& capture : group.captures) {
    if (capture.self) continue;
    std::string name = capture.variable->name->name;
    for (int copy = 1; std::find(fields.begin(), fields.end(), runtime_.symbol(name)) != fields.end(); ++copy)
      name = capture.variable->name->name + "#" + std::to_string(copy);
    capture.field = runtime_.symbol(name);
    fields.push_back(capture.field);
  }
  const Symbol* stem = runtime_.symbol(group.variable != nullptr ? "#" + group.name->name + "#" : "#");
  group.type_name = runtime_.types.closure_name(stem, lambda_.module, fields);
  for (Lambda* lambda : group.methods) emit_method(group, *lambda);
}

void Emitter::emit_method(ClosureGroup& group, Lambda& lambda) {
  TypeTable& types = runtime_.types;
  const auto& builtin = types.builtin();
  // The closure's own type, captured static parameters in place.
  std::vector<const TypeVar*> vars;
  for (const Variable* variable : lambda.static_parameters)
    if (variable->type_var != nullptr) vars.push_back(variable->type_var);
  const std::size_t own = vars.size();
  std::vector<const Variable*> captured;
  std::vector<const TypeVar*> fields;
  std::vector<const Type*> parameters;
  std::size_t field = 0;
  for (const Capture& capture : group.captures) {
    if (capture.field == nullptr) continue;
    const TypeVar* var = group.type_name->vars[field++];
    if (capture.variable->is_static_parameter && capture.variable->type_var != nullptr) {
      captured.push_back(capture.variable);
      const Type* of = capture.variable->type_var;
      parameters.push_back(types.apply(builtin.val_name, std::span(&of, 1)));
    } else {
      fields.push_back(var);
      parameters.push_back(var);
    }
  }
  for (const Variable* variable : captured) vars.push_back(variable->type_var);
  const Type* closure_type = nullptr;
  if (captured.empty()) {
    closure_type = group.type_name->wrapper;
  } else {
    closure_type = types.apply(group.type_name, parameters);
    vars.insert(vars.end(), fields.begin(), fields.end());
  }
  std::vector<const Type*> elements;
  if (lambda.variant.keyword_method) {
    const Value kwcall = runtime_.generic_function(runtime_.base, runtime_.symbol("kwcall"));
    if (!kwcall.defined()) {
      error(lambda.span, "Base.kwcall is not a function");
      return;
    }
    elements.push_back(kwcall.type);
    elements.push_back(builtin.named_tuple);
  }
  elements.push_back(closure_type);
  elements.insert(elements.end(), lambda.parameter_types.begin(), lambda.parameter_types.end());
  const Type* body = types.tuple(elements);
  for (std::size_t k = own; k < own + captured.size(); ++k) {
    // A bound that names a variable which is not captured itself says nothing here.
    if (!vars[k]->upper->has_free_vars && !vars[k]->lower->has_free_vars) continue;
    const TypeVar* old = vars[k];
    const TypeVar* fresh = types.var(old->name, builtin.bottom, builtin.any);
    const Type* replacement = fresh;
    body = types.substitute(body, std::span(&old, 1), std::span(&replacement, 1));
    vars[k] = fresh;
  }
  std::vector<std::uint32_t> indices;
  const Type* signature = close_signature(runtime_, body, vars, indices);
  std::size_t i = 0;
  for (Variable* variable : lambda.static_parameters)
    if (variable->type_var != nullptr) variable->index = indices[i++];
  for (Capture& capture : lambda.captures) {
    const auto found = std::find(captured.begin(), captured.end(), capture.variable);
    if (found != captured.end())
      capture.static_index = indices[own + static_cast<std::size_t>(found - captured.begin())];
  }

  auto method = std::make_unique<Method>();
  method->name = lambda.name;
  method->module = lambda.module;
  method->span = lambda.span;
  method->signature = signature;
  for (const Type* t = signature; as_union_all(t) != nullptr; t = as_union_all(t)->body)
    method->static_params.push_back(as_union_all(t)->var);
  for (const Variable* variable : lambda.parameters) method->arg_names.push_back(variable->name);
  method->arg_count = static_cast<std::uint32_t>(lambda.parameters.size() - (lambda.is_vararg ? 1 : 0));
  method->is_vararg = lambda.is_vararg;
  method->inline_hint = lambda.inline_hint;
  Emitter inner(runtime_, ctx_, lambda, method.get(), diagnostics_);
  method->ir = inner.run();
  if (method->ir) method->counted.add(runtime_.outside_heap, bytes_with_bytecode(*method->ir));
  // Code that runs now makes values of this type and must see the method: it belongs to every world.
  runtime_.add_method(std::move(method))->min_world = 0;
}

}  // namespace slope::lower
