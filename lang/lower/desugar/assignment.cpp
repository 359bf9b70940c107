// Assignment in all its forms: names, typed locals, destructuring, elements, properties, update and dotted forms,
// declarations. The value of an assignment is its right side.
#include "lang/lower/desugar/desugar.hpp"

#include <utility>

namespace slope::lower {

namespace {

bool mentions(const Form* form, const Symbol* name) {
  if (form == nullptr) return false;
  if (form->name == name) return true;
  for (const Form* child : form->children)
    if (mentions(child, name)) return true;
  for (const Lambda* lambda : form->lambdas)
    if (mentions(lambda->body, name)) return true;
  return false;
}

bool mentions_name(const Ast& ast, NodeId node, std::string_view name) {
  if (ast.head(node) == Head::identifier) return ast.name_of(node) == name;
  for (const NodeId child : ast.children(node))
    if (mentions_name(ast, child, name)) return true;
  return false;
}

}  // namespace

Form* Desugar::assignment(NodeId node) {
  const auto nodes = children(node);
  if (nodes.size() != 2) return error(node, "malformed assignment");
  if (is_short_definition(*ast_, node)) return function_definition(node, {});
  const NodeId target = nodes[0];
  if (ast_->head(target) == Head::macrocall) {
    if (const NodeId expanded = expanded_target(target); expanded != target)
      return assignment(ast_->make(Head::assign, span(node), std::vector<NodeId>{expanded, nodes[1]}));
  }
  if (ast_->head(target) == Head::curly) {
    // Vec{T} = Array{T,1}: an alias with parameters.
    const auto parts = children(target);
    if (parts.size() < 2 || identifier(parts[0]) == nullptr) return error(target, "invalid type alias");
    if (!needs_top_level(node, "type alias")) return nothing(span(node));
    std::vector<NodeId> where_nodes{nodes[1]};
    where_nodes.insert(where_nodes.end(), parts.begin() + 1, parts.end());
    const NodeId alias = ast_->make(Head::where, span(node), where_nodes);
    Form* made = form(FormKind::define_constant, span(node), {where(alias)});
    made->name = identifier(parts[0]);
    return made;
  }
  // x = y = e: only one side may be destructured at a time; the inner assignment gives its right side.
  return assign_to(target, expression(nodes[1]));
}

// `value` is used once.
Form* Desugar::assign_to(NodeId target, Form* value) {
  const Span at = value->span.file == 0 ? span(target) : value->span;
  const Span where = span(target);
  switch (ast_->head(target)) {
    case Head::identifier: {
      if (ast_->name_of(target) == "_") return value;
      Form* made = form(FormKind::assign, where, {name(where, identifier(target)), value});
      return made;
    }
    case Head::value: {
      Form* global = expression(target);
      if (global->kind != FormKind::global) return error(target, "invalid assignment location");
      return form(FormKind::assign, where, {global, value});
    }
    case Head::type_assert:
      return typed_declaration(target, value);
    case Head::tuple: {
      const auto parts = children(target);
      if (parts.size() == 1 && ast_->head(parts[0]) == Head::parameters) return destructure_properties(target, value);
      return destructure(target, value);
    }
    case Head::ref: {
      const auto parts = children(target);
      if (parts.empty()) return error(target, "malformed indexing");
      Form* right = temporary(value);
      std::vector<Form*> forms{right};
      const bool views = std::exchange(views_, false);
      const Indexed place = indexed(parts, false);
      views_ = views;
      forms.insert(forms.end(), place.setup.begin(), place.setup.end());
      forms.push_back(indexed_call(where, "setindex!", place, {use(right)}));
      forms.push_back(use(right));
      return block(where, std::move(forms));
    }
    case Head::dot: {
      const auto parts = children(target);
      if (parts.size() != 2) return error(target, "invalid assignment location");
      Form* right = temporary(value);
      Form* field = ast_->head(parts[1]) == Head::quote_symbol || ast_->head(parts[1]) == Head::identifier
                        ? symbol(span(parts[1]), ast_->name_of(parts[1]))
                    : ast_->head(parts[1]) == Head::quote ? expression(parts[1])
                                                          : error(parts[1], "expected a field name after `.`");
      return block(where,
                   {right, base_call(where, "setproperty!", {expression(parts[0]), field, use(right)}), use(right)});
    }
    case Head::global_:
    case Head::local_: {
      const auto parts = children(target);
      if (parts.size() != 1) return error(target, "invalid assignment location");
      Form* declared = declaration(target, ast_->head(target) == Head::global_);
      return block(at, {declared, assign_to(parts[0], value)});
    }
    case Head::kw:
      return error(target, "invalid assignment location: a keyword argument");
    case Head::vect:
    case Head::hcat:
    case Head::vcat:
      return error(target, "invalid assignment location: an array literal", "use (a, b) = value to destructure");
    case Head::quote_symbol:
    case Head::integer:
    case Head::floating:
    case Head::string:
    case Head::boolean:
    case Head::character:
    case Head::float32:
    case Head::nothing:
      return error(target, "invalid assignment location: a literal");
    default:
      return error(target, "invalid assignment location");
  }
}

// (a, (b, c), rest...) = value
Form* Desugar::destructure(NodeId pattern, Form* value) {
  const auto parts = children(pattern);
  const Span at = span(pattern);
  std::vector<Form*> forms;
  std::size_t splat_at = parts.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Head head = ast_->head(parts[i]);
    if (head == Head::parameters || head == Head::kw || head == Head::assign)
      return error(parts[i], "invalid destructuring pattern");
    if (head != Head::splat) continue;
    if (splat_at != parts.size()) return error(parts[i], "multiple `...` in a destructuring pattern");
    splat_at = i;
  }
  // Tuple on both sides: no tuple needs to be made. All of the right side is evaluated before the first assignment.
  if (value->kind == FormKind::operation && value->op == ir::Op::tuple && splat_at == parts.size() &&
      value->children.size() == parts.size()) {
    std::vector<Form*> kept;
    for (Form* element : value->children) {
      kept.push_back(temporary(element));
      forms.push_back(kept.back());
    }
    // As in Julia, names that get a literal or another name are assigned first, the other places then in order:
    // a[i], i = x, 2 stores at a[2].
    std::vector<Form*> result;
    std::vector<Form*> later;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Form* assigned = assign_to(parts[i], use(kept[i]));
      const Symbol* target = identifier(parts[i]);
      const Form* source = value->children[i];
      bool at_once = target != nullptr && (source->kind == FormKind::constant || source->kind == FormKind::name);
      for (std::size_t k = i + 1; at_once && k < parts.size(); ++k) at_once = !mentions(value->children[k], target);
      if (at_once && source->kind == FormKind::name)
        for (const NodeId part : parts) at_once = at_once && !mentions_name(*ast_, part, source->name->name);
      (at_once ? forms : later).push_back(assigned);
      result.push_back(use(kept[i]));
    }
    forms.insert(forms.end(), later.begin(), later.end());
    forms.push_back(operation(at, ir::Op::tuple, std::move(result)));
    return block(at, std::move(forms));
  }
  // What can only be iterated is iterated once: `items` holds what it gives.
  Form* whole = temporary(value);
  forms.push_back(whole);
  const auto count = static_cast<std::int64_t>(parts.size());
  Form* items =
      temporary(splat_at == parts.size() ? base_call(at, "destructure_items", {use(whole), value_parameter(at, count)})
                                         : base_call(at, "destructure_all", {use(whole)}));
  forms.push_back(items);
  Form* split = nullptr;  // (what `...` takes, what comes after it)
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Span here = span(parts[i]);
    const auto position = static_cast<std::int64_t>(i) + 1;
    const auto after = static_cast<std::int64_t>(splat_at) + 1;
    if (i == splat_at) {
      const auto inner = children(parts[i]);
      if (inner.size() != 1) return error(parts[i], "malformed `...`");
      Form* rest = nullptr;
      if (position == count) {
        rest = base_call(here, "destructure_rest", {use(items), integer(here, position)});
      } else {
        split = temporary(base_call(here, "destructure_split",
                                    {use(items), integer(here, position), integer(here, count - position)}));
        forms.push_back(split);
        rest = base_call(here, "destructure", {use(split), integer(here, 1)});
      }
      forms.push_back(assign_to(inner[0], rest));
    } else if (split != nullptr) {
      Form* last = base_call(here, "destructure", {use(split), integer(here, 2)});
      forms.push_back(assign_to(parts[i], base_call(here, "destructure", {last, integer(here, position - after)})));
    } else {
      forms.push_back(assign_to(parts[i], base_call(here, "destructure", {use(items), integer(here, position)})));
    }
  }
  forms.push_back(use(whole));
  return block(at, std::move(forms));
}

// (; a, b) = value
Form* Desugar::destructure_properties(NodeId pattern, Form* value) {
  const Span at = span(pattern);
  const auto entries = children(ast_->child(pattern, 0));
  Form* whole = temporary(value);
  std::vector<Form*> forms{whole};
  for (const NodeId entry : entries) {
    NodeId named = entry;
    if (ast_->head(entry) == Head::type_assert && ast_->child_count(entry) == 2) named = ast_->child(entry, 0);
    const Symbol* sym = identifier(named);
    if (sym == nullptr) return error(entry, "expected a name in a property destructuring pattern");
    Form* get = form(FormKind::property, span(entry), {use(whole)});
    get->name = sym;
    forms.push_back(assign_to(entry, get));
  }
  forms.push_back(use(whole));
  return block(at, std::move(forms));
}

// x::T = value, or the bare declaration x::T (value null).
Form* Desugar::typed_declaration(NodeId node, Form* value) {
  const auto parts = children(node);
  const Span at = span(node);
  if (parts.size() != 2) return error(node, "malformed type declaration");
  const Symbol* sym = identifier(parts[0]);
  if (sym == nullptr) {
    if (value == nullptr) return expression(node);
    // a.b::T = v and a[i]::T = v assert the value.
    return assign_to(parts[0], operation(at, ir::Op::type_assert, {value, expression(parts[1])}));
  }
  Form* declared = arena_.form(FormKind::local, at);
  declared->name = sym;
  declared->flag = 1;  // declares a type only: in the scope where assignment makes it local, or the global
  declared->children.push_back(expression(parts[1]));
  if (value == nullptr) return declared;
  Form* assigned = form(FormKind::assign, at, {name(at, sym), value});
  return block(at, {declared, assigned});
}

// x += v, a[i] += v, a.b += v: what stands left is evaluated once.
Form* Desugar::op_assignment(NodeId node) {
  const auto nodes = children(node);
  if (nodes.size() != 3) return error(node, "malformed update assignment");
  const Span at = span(node);
  if (ast_->name_of(nodes[0]) == ":")
    return unsupported(node,
                       "`:=` is syntax for macros: outside of one it means nothing; a variable is made by `x = 1`");
  NodeId target = expanded_target(nodes[1]);
  const auto combine = [&](Form* old) { return call(at, {expression(nodes[0]), old, expression(nodes[2])}); };
  NodeId type = no_node;
  if (ast_->head(target) == Head::type_assert && ast_->child_count(target) == 2 &&
      ast_->head(ast_->child(target, 0)) == Head::identifier) {
    type = target;
    target = ast_->child(target, 0);
  }
  switch (ast_->head(target)) {
    case Head::identifier:
    case Head::value:
      return assign_to(type != no_node ? type : target, combine(expression(target)));
    case Head::ref: {
      const auto parts = children(target);
      if (parts.empty()) return error(target, "malformed indexing");
      const Indexed place = indexed(parts, true);
      std::vector<Form*> forms = place.setup;
      Form* result = temporary(combine(indexed_call(span(target), "getindex", place)));
      forms.push_back(result);
      forms.push_back(indexed_call(at, "setindex!", place, {use(result)}));
      forms.push_back(use(result));
      return block(at, std::move(forms));
    }
    case Head::dot: {
      const auto parts = children(target);
      if (parts.size() != 2 || ast_->head(parts[1]) != Head::quote_symbol)
        return error(target, "invalid assignment location");
      Form* object = temporary(expression(parts[0]));
      Form* get = form(FormKind::property, span(target), {use(object)});
      get->name = intern(ast_->name_of(parts[1]));
      Form* result = temporary(combine(get));
      return block(at, {object, result,
                        base_call(at, "setproperty!",
                                  {use(object), symbol(span(parts[1]), ast_->name_of(parts[1])), use(result)}),
                        use(result)});
    }
    case Head::tuple: {
      // (a, b) op= v has no useful meaning; Julia lowers it to destructuring of the result.
      return assign_to(target, combine(expression(target)));
    }
    default:
      return error(target, "invalid assignment location");
  }
}

// What `target .= …` writes into, evaluated once.
Form* Desugar::broadcast_target(NodeId target, std::vector<Form*>& setup) {
  if (ast_->head(target) == Head::ref) {
    const auto parts = children(target);
    if (parts.empty()) return error(target, "malformed indexing");
    const Indexed place = indexed(parts, false);
    setup.insert(setup.end(), place.setup.begin(), place.setup.end());
    setup.push_back(temporary(indexed_call(span(target), "dotview", place)));
  } else {
    setup.push_back(temporary(expression(target)));
  }
  return setup.back();
}

// a .= e and a .op= e
Form* Desugar::dot_assignment(NodeId node) {
  const auto nodes = children(node);
  const Span at = span(node);
  const bool update = ast_->head(node) == Head::dot_op_assign;
  if (nodes.size() != (update ? 3u : 2u)) return error(node, "malformed broadcast assignment");
  const NodeId target = nodes[update ? 1 : 0];
  const NodeId value = nodes.back();
  std::vector<Form*> forms;
  Form* destination = broadcast_target(target, forms);
  if (destination->kind != FormKind::temporary) return destination;
  Form* lazy = nullptr;
  if (update) {
    lazy = base_call(at, "broadcasted", {expression(nodes[0]), use(destination), broadcast_operand(value)});
  } else if (is_dotted(value)) {
    lazy = broadcast(value);
  } else {
    lazy = base_call(at, "broadcasted", {base(at, "identity"), expression(value)});
  }
  forms.push_back(base_call(at, "materialize!", {use(destination), lazy}));
  return block(at, std::move(forms));
}

// global … and local …: names, typed names, assignments, destructuring.
Form* Desugar::declaration(NodeId node, bool is_global) {
  const auto nodes = children(node);
  std::vector<Form*> forms;
  const auto declare = [&](const auto& self, NodeId target, bool has_value) -> void {
    switch (ast_->head(target)) {
      case Head::identifier: {
        Form* made = arena_.form(is_global ? FormKind::global_name : FormKind::local, span(target));
        made->name = identifier(target);
        forms.push_back(made);
        break;
      }
      case Head::type_assert: {
        if (ast_->child_count(target) != 2) {
          forms.push_back(error(target, "malformed declaration"));
          break;
        }
        self(self, ast_->child(target, 0), has_value);
        if (!has_value) forms.push_back(typed_declaration(target, nullptr));
        break;
      }
      case Head::tuple:
        for (const NodeId part : children(target)) self(self, part, true);
        break;
      case Head::splat:
        for (const NodeId part : children(target)) self(self, part, true);
        break;
      case Head::parameters:
        for (const NodeId part : children(target)) self(self, part, true);
        break;
      case Head::call:
      case Head::where: {
        // local f(x) = …: the function's name.
        NodeId inner = target;
        while (ast_->head(inner) == Head::where && ast_->child_count(inner) > 0) inner = ast_->child(inner, 0);
        if (ast_->head(inner) == Head::call && ast_->child_count(inner) > 0)
          self(self, ast_->child(inner, 0), true);
        else
          forms.push_back(error(target, "malformed declaration"));
        break;
      }
      case Head::ref:
      case Head::dot:
        if (has_value && is_global) break;  // global a[i] = x: names nothing new
        [[fallthrough]];
      default:
        forms.push_back(error(target, "expected a name to declare"));
    }
  };
  for (const NodeId entry : nodes) {
    const Head head = ast_->head(entry);
    if ((head == Head::assign || head == Head::op_assign) && ast_->child_count(entry) >= 2) {
      declare(declare, ast_->child(entry, head == Head::assign ? 0 : 1), true);
      defines_global_ = is_global && is_short_definition(*ast_, entry);
      forms.push_back(expression(entry));
      defines_global_ = false;
    } else if (head == Head::function && ast_->child_count(entry) > 0) {
      declare(declare, ast_->child(entry, 0), true);
      defines_global_ = is_global;
      forms.push_back(expression(entry));
      defines_global_ = false;
    } else if (head == Head::const_ && is_global) {
      forms.push_back(constant_declaration(entry, true));
    } else {
      declare(declare, entry, false);
    }
  }
  if (forms.empty()) return nothing(span(node));
  const Head last = nodes.empty() ? Head::none : ast_->head(nodes.back());
  if (last != Head::assign && last != Head::op_assign) forms.push_back(nothing(span(node)));
  return block(span(node), std::move(forms));
}

// const x = v, const x::T = v, const a, b = v
Form* Desugar::constant_declaration(NodeId node, bool is_global) {
  auto nodes = children(node);
  if (nodes.size() == 1 && ast_->head(nodes[0]) == Head::global_) {
    nodes = children(nodes[0]);
    is_global = true;
  }
  if (nodes.size() != 1 || ast_->head(nodes[0]) != Head::assign)
    return error(node, "expected an assignment after `const`");
  if (function_depth_ > 0 || (scope_depth_ > 0 && !is_global))
    return error(node, "unsupported `const` declaration on a local variable");
  const auto parts = children(nodes[0]);
  if (parts.size() != 2) return error(node, "expected an assignment after `const`");
  if (is_short_definition(*ast_, nodes[0])) return function_definition(nodes[0], {});
  NodeId target = parts[0];
  if (ast_->head(target) == Head::curly) return assignment(nodes[0]);
  const Span at = span(node);
  const auto define = [&](NodeId named, Form* value) -> Form* {
    if (ast_->head(named) == Head::type_assert && ast_->child_count(named) == 2) {
      Form* type = temporary(expression(ast_->child(named, 1)));
      value = block(
          at, {type, operation(at, ir::Op::type_assert, {base_call(at, "convert", {use(type), value}), use(type)})});
      named = ast_->child(named, 0);
    }
    const Symbol* sym = identifier(named);
    if (sym == nullptr) return error(named, "expected a name in a `const` declaration");
    Form* made = form(FormKind::define_constant, at, {value});
    made->name = sym;
    if (scope_depth_ == 0) return made;
    Form* outside = form(FormKind::global_name, at);  // the block reads the global too
    outside->name = sym;
    return block(at, {outside, made});
  };
  if (ast_->head(target) == Head::tuple) {
    Form* whole = temporary(expression(parts[1]));
    std::vector<Form*> forms{whole};
    std::int64_t i = 0;
    for (const NodeId part : children(target)) {
      ++i;
      forms.push_back(define(part, base_call(at, "destructure", {use(whole), integer(at, i)})));
    }
    forms.push_back(use(whole));
    return block(at, std::move(forms));
  }
  return define(target, expression(parts[1]));
}

}  // namespace slope::lower
