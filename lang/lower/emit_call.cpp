// Calls (ops called by name become the op itself), properties and module paths, type application.
#include <utility>

#include "lang/ir/execute/execute.hpp"
#include "lang/lower/emit.hpp"
#include "lang/lower/scope.hpp"

namespace slope::lower {

Binding* Emitter::static_binding(Form* form) {
  switch (form->kind) {
    case FormKind::name:
      return form->variable == nullptr ? form->binding : nullptr;
    case FormKind::global:
      return form->binding;
    case FormKind::property: {
      Binding* owner = static_binding(form->children[0]);
      if (owner == nullptr || !owner->is_constant || owner->value.type != runtime_.types.builtin().module)
        return nullptr;
      return global_binding(runtime_, owner->value.module, form->name);
    }
    default:
      return nullptr;
  }
}

Emitter::Operand Emitter::call_base(std::string_view function, std::vector<Operand> operands) {
  Binding* binding = global_binding(runtime_, runtime_.base, runtime_.symbol(function));
  operands.insert(operands.begin(), read_binding(binding));
  return emit_op(Op::call, std::move(operands));
}

Emitter::Operand Emitter::call_native(std::string_view name, std::vector<Operand> operands) {
  const Binding* binding = runtime_.binding(runtime_.core, runtime_.symbol(name));
  const NativeInfo* native = ir::as_builtin_native(runtime_.types.builtin(), binding->value);
  if (native == nullptr) {
    error(builder_.span(), "internal: Core." + std::string(name) + " is missing");
    return nothing();
  }
  return emit_op(Op::native, std::move(operands), reinterpret_cast<std::uintptr_t>(native));
}

Emitter::Operand Emitter::call(Form* form) {
  Form* callee = form->children[0];
  Binding* binding = static_binding(callee);
  const std::size_t count = form->children.size() - 1;
  if (binding != nullptr && refuse_intrinsic(*binding, form->span)) return nothing();
  if (binding != nullptr && form->aux == 0 && binding->is_constant && binding->value.defined()) {
    const auto& types = runtime_.types.builtin();
    if (const auto op = ir::as_builtin_op(types, binding->value); op && ir::is_callable_op(*op)) {
      const auto& info = ir::op_info(*op);
      if (static_cast<int>(count) >= info.min_operands &&
          (info.max_operands < 0 || static_cast<int>(count) <= info.max_operands)) {
        std::vector<Operand> operands;
        for (std::size_t i = 1; i <= count; ++i) operands.push_back(emit(form->children[i], true));
        builder_.set_span(form->span);
        if (*op == Op::throw_) {
          builder_.raise(operands[0]);
          return nothing();
        }
        return emit_op(*op, std::move(operands));
      }
    }
    if (const NativeInfo* native = ir::as_builtin_native(types, binding->value)) {
      std::vector<Operand> operands;
      for (std::size_t i = 1; i <= count; ++i) operands.push_back(emit(form->children[i], true));
      builder_.set_span(form->span);
      return emit_op(Op::native, std::move(operands), reinterpret_cast<std::uintptr_t>(native));
    }
  }
  std::vector<Operand> operands;
  for (Form* child : form->children) operands.push_back(emit(child, true));
  builder_.set_span(form->span);
  return emit_op(form->aux == 0 ? Op::call : Op::call_splat, std::move(operands), form->aux);
}

Emitter::Operand Emitter::property(Form* form) {
  if (Binding* binding = static_binding(form)) return read_binding(binding);
  const Operand object = emit(form->children[0], true);
  builder_.set_span(form->span);
  return call_base("getproperty", {object, constant(runtime_.from_symbol(form->name))});
}

bool Emitter::constant_type(Form* form, Value& out) {
  if (form->kind == FormKind::constant) {
    out = form->value;
    return true;
  }
  if (form->kind == FormKind::curly && form->aux == 0) {
    Value base;
    if (!constant_type(form->children[0], base) || !base.type->is_kind) return false;
    std::vector<const Type*> parameters;
    for (std::size_t i = 1; i < form->children.size(); ++i) {
      Value part;
      if (!constant_type(form->children[i], part)) return false;
      const auto& builtin = runtime_.types.builtin();
      const bool is_type = part.type->is_kind || part.type == builtin.type_of_vararg;
      if (!is_type && part.type != builtin.int64 && part.type != builtin.boolean && part.type != builtin.symbol)
        return false;
      parameters.push_back(is_type ? part.as_type : runtime_.types.value(part));
    }
    std::string error;
    const Type* made = runtime_.types.apply_wrapper(base.as_type, parameters, &error);
    if (made == nullptr) return false;  // the op reports it at run time
    out = runtime_.from_type(made);
    return true;
  }
  Binding* binding = static_binding(form);
  if (binding == nullptr || !binding->is_constant || !binding->value.defined()) return false;
  if (binding->module != runtime_.core && binding->module != runtime_.base) return false;
  out = binding->value;
  return out.type->is_kind || out.type == runtime_.types.builtin().type_of_vararg ||
         out.type == runtime_.types.builtin().int64;
}

Emitter::Operand Emitter::curly(Form* form) {
  Value known;
  if (constant_type(form, known)) return constant(known);
  Value base;
  const bool is_union =
      constant_type(form->children[0], base) && base.type->is_kind && base.as_type == runtime_.types.builtin().union_;
  std::vector<Operand> operands;
  for (std::size_t i = is_union && form->aux == 0 ? 1 : 0; i < form->children.size(); ++i)
    operands.push_back(emit(form->children[i], true));
  builder_.set_span(form->span);
  if (form->aux != 0) {
    // A splat among the parameters: the op called as a function.
    operands.insert(operands.begin(), constant(ir::builtin_op(runtime_.types.builtin(), Op::apply_type)));
    return emit_op(Op::call_splat, std::move(operands), form->aux << 1);
  }
  return emit_op(is_union ? Op::make_union : Op::apply_type, std::move(operands));
}

}  // namespace slope::lower
