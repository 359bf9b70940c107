// if, while, for, let, try, break and continue.
#include <utility>

#include "lang/lower/desugar/desugar.hpp"
#include "lang/lower/expr.hpp"
#include "lang/lower/state.hpp"

namespace slope::lower {

Form* Desugar::conditional(NodeId node) {
  const auto nodes = children(node);
  if (nodes.size() < 2 || nodes.size() > 3) return error(node, "malformed `if`");
  Form* condition = expression(nodes[0]);
  Form* then = expression(nodes[1]);
  Form* otherwise = nodes.size() == 3 && nodes[2] != no_node ? expression(nodes[2]) : nothing(span(node));
  return if_form(span(node), condition, then, otherwise);
}

Form* Desugar::while_loop(NodeId node) {
  const auto nodes = children(node);
  if (nodes.size() != 2) return error(node, "malformed `while`");
  Form* loop = arena_.form(FormKind::loop, span(node));
  loop->children.push_back(expression(nodes[0]));
  loops_.push_back(loop);
  loops_.push_back(loop);
  ++scope_depth_;
  loop->children.push_back(scope(span(nodes[1]), scope_soft, expression(nodes[1])));
  --scope_depth_;
  loops_.pop_back();
  loops_.pop_back();
  return loop;
}

Form* Desugar::for_loop(NodeId node) {
  const auto nodes = children(node);
  if (nodes.size() != 2) return error(node, "malformed `for`");
  std::vector<NodeId> iterators;
  if (ast_->head(nodes[0]) == Head::block) {
    iterators = children(nodes[0]);
  } else {
    iterators.push_back(nodes[0]);
  }
  if (iterators.empty()) return error(node, "malformed `for`");
  return for_nest(span(node), iterators, nodes[1], nullptr, {});
}

// for i in a, j in b: nested loops; `break` leaves all of them. The state of an iteration is a hidden variable:
//   s = loop_start(itr); while !loop_done(itr, s); i = loop_value(itr, s); body; s = loop_next(itr, s); end
//
// The variables of outer loops have their values of this iteration whenever the inner loop begins anew, whatever the
// body assigned to them: it gets variables of its own.
Form* Desugar::for_nest(Span at, std::span<const NodeId> iterators, NodeId body, Form* outermost,
                        std::vector<const Symbol*> around) {
  const NodeId iterator = iterators[0];
  const auto parts = children(iterator);
  if (ast_->head(iterator) != Head::assign || parts.size() != 2)
    return error(iterator, "expected `variable in iterable` in a `for` loop");
  NodeId target = parts[0];
  const Head head = ast_->head(target);
  if (head != Head::identifier && head != Head::tuple && head != Head::type_assert)
    return error(target, "expected a variable or a destructuring tuple in a `for` loop");
  const Span here = span(iterator);
  Form* items = temporary(expression(parts[1]));
  // A variable of the scope made below: in loops inside it needs no other name but for who reads the code.
  const Symbol* state = hidden("state" + std::to_string(loops_.size()));
  Form* loop = arena_.form(FormKind::loop, at);
  // The condition may not be negated with Base's `!`: loop_done gives a Bool.
  loop->children.push_back(
      operation(here, ir::Op::not_int, {base_call(here, "loop_done", {use(items), name(here, state)})}));
  loops_.push_back(outermost == nullptr ? loop : outermost);
  loops_.push_back(loop);
  ++scope_depth_;
  std::vector<Form*> steps;
  const auto declare = [&](const auto& self, NodeId pattern) -> void {
    if (const Symbol* sym = identifier(pattern)) {
      if (sym->name == "_") return;
      steps.push_back(local(span(pattern), sym));
      std::erase(around, sym);  // hidden by this one
      if (iterators.size() > 1) around.push_back(sym);
      return;
    }
    for (const NodeId child : children(pattern)) {
      self(self, child);
      if (ast_->head(pattern) == Head::type_assert) break;
    }
  };
  if (ast_->node(iterator).flag == 1) {
    // `outer`: the variables are those around the loop, which must exist.
    const auto require = [&](const auto& self, NodeId pattern) -> void {
      if (const Symbol* sym = identifier(pattern)) {
        Form* made = form(FormKind::outer_local, span(pattern));
        made->name = sym;
        steps.push_back(made);
        return;
      }
      for (const NodeId child : children(pattern)) self(self, child);
    };
    require(require, target);
  } else {
    declare(declare, target);
  }
  steps.push_back(assign_to(target, base_call(here, "loop_value", {use(items), name(here, state)})));
  if (iterators.size() > 1) {
    steps.push_back(
        for_nest(at, iterators.subspan(1), body, outermost == nullptr ? loop : outermost, std::move(around)));
  } else {
    std::vector<Form*> own;
    for (const Symbol* variable : around) {
      if (!assigns(body, variable)) continue;
      Form* value = temporary(name(here, variable));
      steps.push_back(value);
      own.push_back(local(here, variable));
      own.push_back(assign_name(here, variable, use(value)));
    }
    Form* inside = scope(span(body), scope_soft, expression(body));
    if (!own.empty()) {
      own.push_back(inside);
      inside = scope(span(body), scope_soft, block(span(body), std::move(own)));
    }
    steps.push_back(inside);
  }
  loop->children.push_back(scope(at, scope_soft, block(at, std::move(steps))));
  --scope_depth_;
  loops_.pop_back();
  loops_.pop_back();
  loop->children.push_back(assign_name(here, state, base_call(here, "loop_next", {use(items), name(here, state)})));
  Form* start = assign_name(here, state, base_call(here, "loop_start", {use(items)}));
  return scope(at, scope_soft, block(at, {local(here, state), items, start, loop, nothing(at)}));
}

// Is there an assignment to the name in these statements? (Also one to another variable of the name, in a scope
// inside.)
bool Desugar::assigns(NodeId node, const Symbol* name) const {
  const auto is_name = [&](const auto& self, NodeId target) -> bool {
    const Head head = ast_->head(target);
    if (head == Head::identifier) return ast_->name_of(target) == name->name;
    if (head != Head::tuple && head != Head::type_assert && head != Head::splat && head != Head::parameters)
      return false;
    const auto parts = ast_->children(target);
    return std::any_of(parts.begin(), parts.end(), [&](NodeId part) { return self(self, part); });
  };
  const Head head = ast_->head(node);
  const auto parts = ast_->children(node);
  if (head == Head::assign && parts.size() == 2 && is_name(is_name, parts[0])) return true;
  if (head == Head::op_assign && parts.size() == 3 && is_name(is_name, parts[1])) return true;
  return std::any_of(parts.begin(), parts.end(), [&](NodeId part) { return assigns(part, name); });
}

Form* Desugar::let(NodeId node) {
  const auto nodes = children(node);
  if (nodes.size() != 2) return error(node, "malformed `let`");
  std::vector<NodeId> bindings;
  if (ast_->head(nodes[0]) == Head::block) {
    bindings = children(nodes[0]);
  } else if (nodes[0] != no_node) {
    bindings.push_back(nodes[0]);
  }
  // Each binding opens a scope of its own, so that `let x = x` reads the outer x.
  struct Opened {
    std::vector<Form*> before;
    std::vector<Form*> inside;
    Span at;
  };
  std::vector<Opened> opened;
  ++scope_depth_;
  for (const NodeId binding : bindings) {
    Opened made;
    made.at = span(binding);
    const auto declare = [&](const auto& self, NodeId pattern) -> bool {
      if (const Symbol* sym = identifier(pattern)) {
        if (sym->name != "_") made.inside.push_back(local(span(pattern), sym));
        return true;
      }
      const Head head = ast_->head(pattern);
      if (head == Head::type_assert && ast_->child_count(pattern) == 2) return self(self, ast_->child(pattern, 0));
      if (head == Head::tuple || head == Head::parameters || head == Head::splat) {
        for (const NodeId child : children(pattern))
          if (!self(self, child)) return false;
        return true;
      }
      error(pattern, "expected a variable in `let`");
      return false;
    };
    NodeId definition = binding;  // under @inline or @noinline
    while (ast_->head(definition) == Head::macrocall && ast_->child_count(definition) == 2 &&
           (is_identifier(ast_->child(definition, 0), "@inline") ||
            is_identifier(ast_->child(definition, 0), "@noinline")))
      definition = ast_->child(definition, 1);
    if (ast_->head(definition) == Head::assign && ast_->child_count(definition) == 2) {
      const auto parts = children(definition);
      if (is_short_definition(*ast_, definition)) {
        NodeId callee = parts[0];
        while (ast_->head(callee) != Head::identifier && ast_->child_count(callee) > 0) callee = ast_->child(callee, 0);
        declare(declare, callee);
        made.inside.push_back(expression(binding));
      } else {
        Form* value = temporary(expression(parts[1]));
        made.before.push_back(value);
        if (declare(declare, parts[0])) made.inside.push_back(assign_to(parts[0], use(value)));
      }
    } else if (declare(declare, binding) && ast_->head(binding) == Head::type_assert) {
      made.inside.push_back(typed_declaration(binding, nullptr));
    }
    opened.push_back(std::move(made));
  }
  Form* result = scope(span(nodes[1]), scope_hard, expression(nodes[1]));
  --scope_depth_;
  for (std::size_t i = opened.size(); i-- > 0;) {
    auto& binding = opened[i];
    binding.inside.push_back(result);
    result = scope(span(node), scope_hard, block(binding.at, std::move(binding.inside)));
    if (!binding.before.empty()) {
      binding.before.push_back(result);
      result = block(span(node), std::move(binding.before));
    }
  }
  return result;
}

Form* Desugar::try_expression(NodeId node) {
  const auto nodes = children(node);
  if (nodes.size() < 3) return error(node, "malformed `try`");
  const NodeId variable = nodes[1];
  const NodeId catch_body = nodes[2];
  const NodeId finally_body = nodes.size() > 3 ? nodes[3] : no_node;
  const NodeId else_body = nodes.size() > 4 ? nodes[4] : no_node;
  ++scope_depth_;
  Form* made = arena_.form(FormKind::try_, span(node));
  made->children.assign(4, nullptr);
  made->children[0] = scope(span(nodes[0]), scope_soft, expression(nodes[0]));
  if (catch_body != no_node) {
    std::vector<Form*> steps;
    if (variable != no_node && ast_->head(variable) != Head::boolean) {
      const Symbol* sym = identifier(variable);
      if (sym == nullptr) {
        error(variable, "expected a variable name after `catch`");
      } else if (sym->name != "_") {
        // As any assignment in the block: a variable of the function around, when it has one of this name.
        if (function_depth_ == 0) steps.push_back(local(span(variable), sym));
        steps.push_back(assign_name(span(variable), sym, form(FormKind::caught, span(variable))));
      }
    }
    steps.push_back(expression(catch_body));
    made->children[1] = scope(span(catch_body), scope_soft, block(span(catch_body), std::move(steps)));
  }
  if (finally_body != no_node) made->children[2] = scope(span(finally_body), scope_soft, expression(finally_body));
  if (else_body != no_node) made->children[3] = scope(span(else_body), scope_soft, expression(else_body));
  --scope_depth_;
  return made;
}

// @label name and @goto name. In an expansion the name may be one of the macro's module.
Form* Desugar::macro_jump(NodeId node, std::span<const NodeId> arguments) {
  const Symbol* name = identifier(arguments[0]);
  Module* module = nullptr;
  const auto& spliced = state_of(runtime_).spliced.values;
  if (name == nullptr && ast_->head(arguments[0]) == Head::value && ast_->node(arguments[0]).value < spliced.size())
    reference_parts(runtime_, ctx_, spliced[ast_->node(arguments[0]).value], module, name);
  if (name == nullptr) return error(node, "a label is a name: `@label again`, `@goto again`");
  const bool is_label = identifier_text(*ast_, ast_->child(node, 0)) == "@label";
  Form* made = arena_.form(is_label ? FormKind::label : FormKind::goto_, span(node));
  made->name = name;
  return made;
}

Form* Desugar::jump_out(NodeId node, bool is_break) {
  if (loops_.empty() || loops_.back() == nullptr)
    return error(node, is_break ? "`break` outside a loop" : "`continue` outside a loop");
  Form* made = arena_.form(is_break ? FormKind::break_ : FormKind::continue_, span(node));
  made->target = is_break ? loops_[loops_.size() - 2] : loops_.back();
  return made;
}

}  // namespace slope::lower
