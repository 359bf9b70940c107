#include "lang/lower/emit.hpp"

#include <utility>

#include "lang/ir/passes/checked.hpp"
#include "lang/lower/intrinsics.hpp"
#include "lang/lower/scope.hpp"
#include "lang/lower/state.hpp"

namespace slope::lower {

Emitter::Emitter(Runtime& runtime, Context& ctx, Lambda& lambda, const Method* method,
                 std::vector<Diagnostic>& diagnostics)
    : runtime_(runtime),
      ctx_(ctx),
      lambda_(lambda),
      diagnostics_(diagnostics),
      function_([&] {
        auto made = std::make_unique<ir::Function>();
        made->method = method;
        made->name = lambda.name == nullptr ? "" : lambda.name->name;
        made->span = lambda.span;
        return made;
      }()),
      builder_(*function_) {}

std::unique_ptr<ir::Function> Emitter::run() {
  builder_.set_block(builder_.new_block());
  prologue();
  const Operand value = emit(lambda_.body, true);
  if (was_interrupted_) return nullptr;
  if (!builder_.terminated()) {
    Operand converted = value;
    if (return_type_.valid()) {
      builder_.set_span(lambda_.body->span);
      converted = emit_op(Op::type_assert, {call_base("convert", {return_type_, value}), return_type_});
    }
    builder_.ret(converted);
  }
  // A block that nothing ended (dead code after a jump) must still be well formed.
  for (ir::BlockId b = 0; b < function_->blocks.size(); ++b) {
    builder_.set_block(b);
    if (!builder_.terminated()) builder_.unreachable();
  }
  ir::remove_unreachable_blocks(*function_);
  ir::promote_slots(*function_, &runtime_.types.builtin());
  ir::check_after(*function_, "promotion of slots");
  ir::simplify_cfg(*function_);
  ir::remove_dead_insts(*function_);
  ir::compact(*function_);
  ir::check_after(*function_, "lowering");
  return std::move(function_);
}

void Emitter::prologue() {
  builder_.set_span(lambda_.span);
  for (std::size_t i = 0; i < lambda_.parameters.size(); ++i) parameters_.push_back(builder_.add_parameter(0));
  // Captures are read once: values, and the cells themselves.
  for (Capture& capture : lambda_.captures) {
    if (capture.self || capture.variable->is_static_parameter || lambda_.group == nullptr) continue;
    for (const Capture& field : lambda_.group->captures) {
      if (field.variable != capture.variable || field.field == nullptr) continue;
      capture.value = emit_op(Op::get_field, {self(), constant(runtime_.from_symbol(field.field))});
    }
  }
  for (Variable* variable : lambda_.parameters) {
    if (is_plain_argument(variable)) continue;
    Operand value = parameters_[variable->index];
    if (variable->needs_cell) value = emit_op(Op::cell_new, {value});
    emit_op(Op::slot_set, {value}, slot(variable));
  }
  fresh_variables(lambda_.variables, false);
  if (lambda_.return_type != nullptr) return_type_ = emit(lambda_.return_type, true);
}

void Emitter::error(Span span, std::string message) { report(diagnostics_, span, std::move(message)); }

bool Emitter::gives_up(Span span) {
  constexpr std::size_t insts_between_counts = 1024;
  constexpr std::size_t inst_bytes = 2 * (sizeof(ir::Inst) + 2 * sizeof(Operand));  // with its operands and bytecode
  if (function_->insts.size() - counted_insts_ >= insts_between_counts) {
    counted_.add(runtime_.outside_heap, (function_->insts.size() - counted_insts_) * inst_bytes);
    counted_insts_ = function_->insts.size();
  }
  if (ctx_.interrupt.load(std::memory_order_relaxed) == no_interrupt) return false;
  if (!std::exchange(was_interrupted_, true)) error(span, "interrupted");
  return true;
}

Emitter::Operand Emitter::nothing() { return constant(runtime_.nothing()); }

Emitter::Operand Emitter::emit_op(Op op, std::vector<Operand> operands, std::uintptr_t aux) {
  const Operand made = builder_.emit(op, operands, nullptr, aux);
  function_->inst(made).flags |= flags_;
  return made;
}

// --- variables ---

bool Emitter::is_plain_argument(const Variable* v) const {
  return v->is_argument && v->plain_assignments == 0 && v->group == nullptr && !v->needs_cell &&
         !v->assigned_by_closure;
}

std::uint32_t Emitter::slot(Variable* variable) {
  if (variable->slot == ~0u) {
    variable->slot = static_cast<std::uint32_t>(function_->slots.size());
    function_->slots.push_back(variable->name);
  }
  return variable->slot;
}

const Capture* Emitter::capture_of(const Variable* variable) const {
  for (const Capture& capture : lambda_.captures)
    if (capture.variable == variable) return &capture;
  return nullptr;
}

Emitter::Operand Emitter::shared(Variable* variable) {
  if (variable->owner != &lambda_) {
    const Capture* capture = capture_of(variable);
    if (capture == nullptr) return nothing();
    return capture->self ? self() : capture->value;
  }
  if (variable->needs_cell) return emit_op(Op::slot_get, {}, slot(variable));
  return read(variable);
}

Emitter::Operand Emitter::read(Variable* variable) {
  const auto cell_value = [&](Operand cell) {
    return emit_op(Op::cell_get, {cell}, reinterpret_cast<std::uintptr_t>(variable->name));
  };
  const auto static_parameter = [&](std::uint32_t index) {
    if (index != ~0u) return emit_op(Op::static_param, {}, index);
    // A `where` variable that the signature does not determine.
    const Operand name = constant(runtime_.from_symbol(variable->name));
    return call_base("throw_undef_static_parameter", {name});
  };
  if (variable->owner != &lambda_) {
    const Capture* capture = capture_of(variable);
    if (capture == nullptr) {
      error(variable->span, "the variable \"" + variable->name->name + "\" is not reachable here");
      return nothing();
    }
    if (capture->self) return self();
    if (variable->is_static_parameter) return static_parameter(capture->static_index);
    return variable->needs_cell && !capture->by_value ? cell_value(capture->value) : capture->value;
  }
  if (variable->is_static_parameter) return static_parameter(variable->index);
  if (is_plain_argument(variable)) return parameters_[variable->index];
  const Operand value = emit_op(Op::slot_get, {}, slot(variable));
  return variable->needs_cell ? cell_value(value) : value;
}

void Emitter::write(Variable* variable, Operand value) {
  if (variable->owner != &lambda_) {
    const Capture* capture = capture_of(variable);
    if (capture == nullptr || !capture->value.valid()) {
      error(variable->span, "the variable \"" + variable->name->name + "\" cannot be assigned here");
      return;
    }
    emit_op(Op::cell_set, {capture->value, value});
  } else if (variable->needs_cell) {
    emit_op(Op::cell_set, {emit_op(Op::slot_get, {}, slot(variable)), value});
  } else {
    emit_op(Op::slot_set, {value}, slot(variable));
  }
}

// Variables of a scope that is entered: fresh cells, and nothing left from an earlier iteration.
void Emitter::fresh_variables(const std::vector<Variable*>& variables, bool in_block) {
  for (Variable* variable : variables) {
    if (variable->is_argument || variable->in_block != in_block) continue;
    if (variable->needs_cell) {
      emit_op(Op::slot_set, {emit_op(Op::cell_new, {})}, slot(variable));
    } else if (in_block && loop_depth_ > 0) {
      emit_op(Op::slot_clear, {}, slot(variable));
    }
  }
}

bool Emitter::refuse_intrinsic(const Binding& binding, Span span) {
  if (binding.module != runtime_.core || is_library_text(runtime_, span)) return false;
  const std::string why = refusal(runtime_, binding);
  if (why.empty()) return false;
  error(span, why);
  return true;
}

Emitter::Operand Emitter::read_binding(Binding* binding) {
  if (refuse_intrinsic(*binding, builder_.span())) return nothing();
  // Constants of the library cannot change; those of a program may be redefined, which inference watches.
  if (binding->is_constant && binding->value.defined() &&
      (binding->module == runtime_.core || binding->module == runtime_.base))
    return constant(binding->value);
  return emit_op(Op::load_global, {}, reinterpret_cast<std::uintptr_t>(binding));
}

Emitter::Operand Emitter::assign(Form* form) {
  Form* target = form->children[0];
  const Operand value = emit(form->children[1], true);
  builder_.set_span(form->span);
  if (target->variable != nullptr) {
    write(target->variable, value);
    return value;
  }
  Binding* binding = target->binding;
  if (binding == nullptr) return value;
  if (target->kind == FormKind::name && binding->module != lambda_.module) {
    error(target->span, "cannot assign a value to imported variable " + binding->module->name->name + "." +
                            binding->name->name + " from module " + lambda_.module->name->name);
    return value;
  }
  if (binding->module == lambda_.module) binding = runtime_.binding(binding->module, binding->name);
  if (!binding->value.defined() && binding->module == runtime_.main &&
      state_of(runtime_).foreign_uses.count(binding->name) != 0) {
    const Binding* used = runtime_.base->find(binding->name);
    error(target->span, "cannot assign a value to imported variable " +
                            std::string(used != nullptr ? used->module->name->name + "." : "") + binding->name->name +
                            " from module " + lambda_.module->name->name +
                            ": it has been used here before; choose another name");
    return value;
  }
  Operand stored = value;
  if (binding->declared != nullptr && binding->declared != runtime_.types.builtin().any)
    stored = call_base("convert", {constant(runtime_.from_type(binding->declared)), value});
  emit_op(Op::store_global, {stored}, reinterpret_cast<std::uintptr_t>(binding));
  return value;
}

Emitter::Operand Emitter::defined(Form* form) {
  if (form->variable == nullptr)
    return emit_op(Op::global_defined, {}, reinterpret_cast<std::uintptr_t>(form->binding));
  Variable* variable = form->variable;
  if (variable->is_static_parameter) return static_parameter_defined(variable);
  if (variable->owner != &lambda_) {
    const Capture* capture = capture_of(variable);
    if (capture == nullptr || capture->self || !variable->needs_cell || capture->by_value)
      return constant(runtime_.from_bool(true));
    return emit_op(Op::cell_defined, {capture->value});
  }
  if (is_plain_argument(variable)) return constant(runtime_.from_bool(true));
  if (variable->needs_cell) return emit_op(Op::cell_defined, {emit_op(Op::slot_get, {}, slot(variable))});
  return emit_op(Op::slot_defined, {}, slot(variable));
}

// The arguments may leave a parameter open, as `where T` of f(::Union{Nothing,Vector{T}}): whether reading it throws.
Emitter::Operand Emitter::static_parameter_defined(Variable* variable) {
  const ir::BlockId outer = builder_.handler(), open = builder_.new_block(), after = builder_.new_block();
  const Operand result = builder_.add_parameter(after);
  builder_.set_handler(open);
  const ir::BlockId start = builder_.new_block();
  builder_.jump(start);
  builder_.set_block(start);
  read(variable);
  builder_.set_handler(outer);
  builder_.jump(after, {constant(runtime_.from_bool(true))});
  builder_.set_block(open);
  emit_op(Op::caught, {});
  emit_op(Op::caught_end, {});
  builder_.jump(after, {constant(runtime_.from_bool(false))});
  builder_.set_block(after);
  return result;
}

// --- forms ---

Emitter::Operand Emitter::emit(Form* form, bool wanted) {
  if (form->span.end != 0) builder_.set_span(form->span);
  if (gives_up(form->span)) return nothing();
  switch (form->kind) {
    case FormKind::constant:
      return constant(form->value);
    case FormKind::name:
      if (form->variable != nullptr) return read(form->variable);
      if (form->binding == nullptr) return nothing();
      return read_binding(form->binding);
    case FormKind::global:
      return read_binding(form->binding);
    case FormKind::self:
      return parameters_.empty() ? nothing() : self();
    case FormKind::temporary:
      form->result = emit(form->children[0], true);
      return form->result;
    case FormKind::use:
      if (!form->target->result.valid()) {
        error(form->span, "internal: a temporary is used before it is made");
        return nothing();
      }
      return form->target->result;
    case FormKind::call:
      return call(form);
    case FormKind::operation: {
      std::vector<Operand> operands;
      for (Form* child : form->children) operands.push_back(emit(child, true));
      builder_.set_span(form->span);
      return emit_op(form->op, std::move(operands), form->aux);
    }
    case FormKind::property:
      return property(form);
    case FormKind::curly:
      return curly(form);
    case FormKind::assign:
      return assign(form);
    case FormKind::block: {
      Operand last = nothing();
      const std::size_t outer = labels_.size();
      open_labels(form);
      for (std::size_t i = 0; i < form->children.size(); ++i)
        last = emit(form->children[i], wanted && i + 1 == form->children.size());
      labels_.resize(outer);
      return last;
    }
    case FormKind::label:
      return place_label(form);
    case FormKind::goto_:
      return go_to(form);
    case FormKind::if_:
      return conditional(form, wanted);
    case FormKind::loop:
      return loop(form);
    case FormKind::break_:
    case FormKind::continue_:
      return jump_out(form);
    case FormKind::return_:
      return give_back(form);
    case FormKind::scope:
      return scope(form, wanted);
    case FormKind::local:
    case FormKind::outer_local:
    case FormKind::global_name:
      return nothing();
    case FormKind::try_:
      return try_region(form, wanted);
    case FormKind::caught:
      for (std::size_t i = exits_.size(); i-- > 0;)
        if (exits_[i].is_catch) return exits_[i].exception;
      return nothing();
    case FormKind::closure:
      return make_closure(*form->group);
    case FormKind::local_function: {
      if (form->group == nullptr || form->variable == nullptr) return nothing();
      const Operand made = make_closure(*form->group);
      write(form->variable, made);
      return made;
    }
    case FormKind::defined:
      return defined(form);
    case FormKind::flagged: {
      const std::uint16_t outer = std::exchange(flags_, static_cast<std::uint16_t>(flags_ | form->flag));
      const Operand value = emit(form->children[0], wanted);
      flags_ = outer;
      return value;
    }
    case FormKind::define_constant: {
      const Operand value = emit(form->children[0], true);
      builder_.set_span(form->span);
      call_native("define_constant", {constant(Value(runtime_.types.builtin().module, form->module)),
                                      constant(runtime_.from_symbol(form->name)), value});
      return value;
    }
  }
  return nothing();
}

}  // namespace slope::lower
