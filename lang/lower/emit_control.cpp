// Branches, loops, scopes, return, try.
#include <algorithm>
#include <utility>

#include "lang/lower/emit.hpp"

namespace slope::lower {

namespace {

bool is_boolean(const Runtime& runtime, const Form* form, bool value) {
  return form->kind == FormKind::constant && form->value.type == runtime.types.builtin().boolean &&
         (form->value.bits != 0) == value;
}

}  // namespace

// A condition made of && and || branches directly instead of making a Bool first.
void Emitter::branch_on(Form* condition, ir::BlockId if_true, ir::BlockId if_false) {
  if (condition->kind == FormKind::if_ && condition->children.size() == 3) {
    Form* then = condition->children[1];
    Form* otherwise = condition->children[2];
    if (is_boolean(runtime_, otherwise, false)) {
      const ir::BlockId second = builder_.new_block();
      branch_on(condition->children[0], second, if_false);
      builder_.set_block(second);
      branch_on(then, if_true, if_false);
      return;
    }
    if (is_boolean(runtime_, then, true)) {
      const ir::BlockId second = builder_.new_block();
      branch_on(condition->children[0], if_true, second);
      builder_.set_block(second);
      branch_on(otherwise, if_true, if_false);
      return;
    }
  }
  const Operand value = emit(condition, true);
  if (condition->span.end != 0) builder_.set_span(condition->span);
  const ir::BlockId from = builder_.block();
  builder_.branch(value, if_true, if_false);
  function_->insts[function_->blocks[from].terminator].flags |= flags_;
}

Emitter::Operand Emitter::conditional(Form* form, bool wanted) {
  const ir::BlockId then = builder_.new_block();
  const ir::BlockId otherwise = builder_.new_block();
  const ir::BlockId after = builder_.new_block();
  Operand result = nothing();
  if (wanted) result = builder_.add_parameter(after);
  const auto arm = [&](ir::BlockId block, Form* body) {
    builder_.set_block(block);
    const Operand value = body == nullptr ? nothing() : emit(body, wanted);
    if (builder_.terminated()) return;
    if (form->span.end != 0) builder_.set_span(form->span);
    builder_.jump(after, wanted ? std::vector<Operand>{value} : std::vector<Operand>{});
  };
  branch_on(form->children[0], then, otherwise);
  arm(then, form->children[1]);
  arm(otherwise, form->children.size() > 2 ? form->children[2] : nullptr);
  builder_.set_block(after);
  return result;
}

Emitter::Operand Emitter::loop(Form* form) {
  const ir::BlockId header = builder_.new_block();
  const ir::BlockId body = builder_.new_block();
  const ir::BlockId latch = builder_.new_block();
  const ir::BlockId after = builder_.new_block();
  function_->blocks[header].is_loop_header = true;
  builder_.jump(header);
  builder_.set_block(header);
  ++loop_depth_;
  if (form->children[0] != nullptr) {
    branch_on(form->children[0], body, after);
  } else {
    builder_.jump(body);
  }
  form->break_block = after;
  form->continue_block = latch;
  form->exits = exits_.size();
  builder_.set_block(body);
  emit(form->children[1], false);
  if (!builder_.terminated()) builder_.jump(latch);
  builder_.set_block(latch);
  if (form->children.size() > 2) emit(form->children[2], false);
  if (!builder_.terminated()) builder_.jump(header);
  --loop_depth_;
  builder_.set_block(after);
  return nothing();
}

Emitter::Operand Emitter::jump_out(Form* form) {
  Form* target = form->target;
  if (target == nullptr || target->break_block == ir::no_block) return nothing();
  leave(target->exits);
  if (!builder_.terminated())
    builder_.jump(form->kind == FormKind::break_ ? target->break_block : target->continue_block);
  return nothing();
}

// Those of the block itself, and of blocks and branches that are statements of it.
void Emitter::open_labels(const Form* block) {
  for (const Form* child : block->children) {
    if (child == nullptr) continue;
    if (child->kind == FormKind::block || child->kind == FormKind::if_) open_labels(child);
    if (child->kind != FormKind::label) continue;
    const bool is_open = std::any_of(labels_.begin(), labels_.end(), [&](const Label& l) { return l.form == child; });
    if (!is_open) labels_.push_back({child, builder_.new_block(), exits_.size(), false});
  }
}

Emitter::Operand Emitter::place_label(Form* form) {
  for (std::size_t i = labels_.size(); i-- > 0;) {
    if (labels_[i].form != form) continue;
    if (!builder_.terminated()) builder_.jump(labels_[i].block);
    builder_.set_block(labels_[i].block);
    labels_[i].is_placed = true;
    return nothing();
  }
  error(form->span, "a label stands in a block, as a statement");
  return nothing();
}

Emitter::Operand Emitter::go_to(Form* form) {
  for (std::size_t i = labels_.size(); i-- > 0;) {
    const Label target = labels_[i];
    if (target.form->name != form->name) continue;
    leave(target.exits);
    if (builder_.terminated()) return nothing();
    if (target.is_placed) function_->blocks[target.block].is_loop_header = true;
    builder_.jump(target.block);
    return nothing();
  }
  error(form->span, "`@goto " + form->name->name +
                        "`: no label of this name in the blocks around (a jump into a loop, a `let` or a `try` is not "
                        "part of Slope)");
  return nothing();
}

Emitter::Operand Emitter::scope(Form* form, bool wanted) {
  fresh_variables(form->variables, true);
  return emit(form->children[0], wanted);
}

Emitter::Operand Emitter::give_back(Form* form) {
  Operand value = emit(form->children[0], true);
  builder_.set_span(form->span);
  if (builder_.terminated()) return nothing();
  if (return_type_.valid())
    value = emit_op(Op::type_assert, {call_base("convert", {return_type_, value}), return_type_});
  leave(0);
  if (!builder_.terminated()) builder_.ret(value);
  return nothing();
}

// Does what leaving all regions above `depth` asks for, innermost first. Each action runs as if its own region and
// those inside were over.
void Emitter::leave(std::size_t depth) {
  if (exits_.size() <= depth) return;
  const std::vector<Exit> saved = exits_;
  const ir::BlockId handler = builder_.handler();
  for (std::size_t i = saved.size(); i-- > depth && !builder_.terminated();) {
    exits_.resize(i);
    if (saved[i].is_catch) {
      emit_op(Op::caught_end, {});
      continue;
    }
    builder_.set_handler(saved[i].handler);
    const ir::BlockId outside = builder_.new_block();
    builder_.jump(outside);
    builder_.set_block(outside);
    emit(saved[i].body, false);
  }
  exits_ = saved;
  builder_.set_handler(handler);
}

Emitter::Operand Emitter::try_region(Form* form, bool wanted) {
  Form* finally_body = form->children[2];
  if (finally_body == nullptr) return catch_region(form, wanted);
  const ir::BlockId outer = builder_.handler();
  const ir::BlockId cleanup = builder_.new_block();
  const ir::BlockId after = builder_.new_block();
  const Operand result = wanted ? builder_.add_parameter(after) : nothing();
  exits_.push_back({false, finally_body, outer, {}});
  builder_.set_handler(cleanup);
  const ir::BlockId start = builder_.new_block();
  builder_.jump(start);
  builder_.set_block(start);
  const Operand value = catch_region(form, wanted);
  exits_.pop_back();
  builder_.set_handler(outer);
  if (!builder_.terminated()) {
    const ir::BlockId normal = builder_.new_block();
    builder_.jump(normal);
    builder_.set_block(normal);
    emit(finally_body, false);
    if (!builder_.terminated()) builder_.jump(after, wanted ? std::vector<Operand>{value} : std::vector<Operand>{});
  }
  builder_.set_block(cleanup);
  const Operand exception = emit_op(Op::caught, {});
  exits_.push_back({true, nullptr, outer, exception});
  emit(finally_body, false);
  exits_.pop_back();
  if (!builder_.terminated()) {
    call_native("rethrow_caught", {});
    builder_.unreachable();
  }
  builder_.set_block(after);
  return result;
}

Emitter::Operand Emitter::catch_region(Form* form, bool wanted) {
  Form* catch_body = form->children[1];
  Form* else_body = form->children[3];
  if (catch_body == nullptr) {
    const Operand value = emit(form->children[0], wanted);
    return else_body == nullptr ? value : emit(else_body, wanted);
  }
  const ir::BlockId outer = builder_.handler();
  const ir::BlockId handler = builder_.new_block();
  const ir::BlockId after = builder_.new_block();
  const Operand result = wanted ? builder_.add_parameter(after) : nothing();
  const auto arguments = [&](Operand value) { return wanted ? std::vector<Operand>{value} : std::vector<Operand>{}; };
  builder_.set_handler(handler);
  const ir::BlockId start = builder_.new_block();
  builder_.jump(start);
  builder_.set_block(start);
  Operand value = emit(form->children[0], wanted);
  builder_.set_handler(outer);
  if (!builder_.terminated()) {
    if (else_body != nullptr) {
      const ir::BlockId normal = builder_.new_block();
      builder_.jump(normal);
      builder_.set_block(normal);
      value = emit(else_body, wanted);
    }
    if (!builder_.terminated()) builder_.jump(after, arguments(value));
  }
  builder_.set_block(handler);
  const Operand exception = emit_op(Op::caught, {});
  exits_.push_back({true, nullptr, outer, exception});
  const Operand caught_value = emit(catch_body, wanted);
  exits_.pop_back();
  if (!builder_.terminated()) {
    emit_op(Op::caught_end, {});
    builder_.jump(after, arguments(caught_value));
  }
  builder_.set_block(after);
  return result;
}

}  // namespace slope::lower
