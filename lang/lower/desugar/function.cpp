// Functions: what a definition's variants do before the body (keywords, defaults, destructured parameters), anonymous
// functions, local functions, do-blocks, and the constructors that a struct gets by default.
#include <algorithm>
#include <utility>

#include "lang/lower/desugar/desugar.hpp"

namespace slope::lower {

namespace {

// Does a statement of the body assign this name?
bool assigns_name(const syntax::Ast& ast, syntax::NodeId node, std::string_view name) {
  if (ast.head(node) == syntax::Head::assign && ast.child_count(node) == 2) {
    const syntax::NodeId target = ast.child(node, 0);
    return ast.head(target) == syntax::Head::identifier && ast.name_of(target) == name;
  }
  if (ast.head(node) != syntax::Head::block) return false;
  for (const syntax::NodeId child : ast.children(node))
    if (child != syntax::no_node && assigns_name(ast, child, name)) return true;
  return false;
}

}  // namespace

Lambda* Desugar::method(std::shared_ptr<const SignatureSyntax> signature, Variant variant,
                        const TypeName* constructed) {
  if (variant.kind != Variant::Kind::syntax) {
    Lambda* made = arena_.lambda();
    made->module = module_;
    made->name = constructed->name;
    made->variant = variant;
    made->body = constructor_body(*made, variant, constructed);
    return made;
  }
  return lambda(std::move(signature), variant, constructed);
}

Lambda* Desugar::lambda(std::shared_ptr<const SignatureSyntax> signature, Variant variant,
                        const TypeName* constructed) {
  Lambda* made = arena_.lambda();
  made->span = signature->span;
  made->module = module_;
  made->signature = signature;
  made->variant = variant;

  const auto saved_ends = std::exchange(ends_, {});
  loops_.push_back(nullptr);
  ++function_depth_;
  const NewContext saved_new = new_;
  if (constructed != nullptr) {
    new_ = {};
    new_.type = constructed;
    if (signature->callee != no_node && ast_->head(signature->callee) == Head::curly) {
      const auto parts = ast_->children(signature->callee);
      new_.type_arguments.assign(parts.begin() + 1, parts.end());
      new_.has_type_arguments = true;
    }
  }

  const auto add = [&](const Symbol* name, Span at) {
    Variable* variable = arena_.variable(name, made, at);
    variable->is_argument = true;
    variable->index = static_cast<std::uint32_t>(made->parameters.size());
    made->parameters.push_back(variable);
    return variable;
  };
  if (variant.keyword_method) {
    add(intern("#kwcall#"), signature->span);
    add(intern("#keywords#"), signature->span);
    made->self_index = 2;
  }
  if (signature->callee != no_node) {
    const NodeId callee = signature->callee;
    if (const Symbol* sym = identifier(callee)) {
      made->name = sym;
    } else if (ast_->head(callee) == Head::dot && ast_->child_count(callee) == 2) {
      made->name = intern(identifier_text(*ast_, ast_->child(callee, 1)));
    } else if (ast_->head(callee) == Head::curly && ast_->child_count(callee) > 0) {
      made->name = intern(identifier_text(*ast_, ast_->child(callee, 0)));
    }
  } else if (signature->is_object) {
    made->name = intern(signature->object_name == no_node ? "" : identifier_text(*ast_, signature->object_name));
  }
  if (made->name == nullptr) made->name = intern("#anonymous");
  add(signature->object_name != no_node ? identifier(signature->object_name) : intern("#self#"), signature->span);

  std::vector<Form*> prologue;
  const std::size_t positional = signature->positional_count();
  const std::size_t given = positional - std::min<std::size_t>(variant.omitted, positional);
  std::vector<std::pair<NodeId, Variable*>> patterns;
  for (std::size_t i = 0; i < signature->parameters.size(); ++i) {
    const auto& parameter = signature->parameters[i];
    if (i >= given && i < positional) continue;
    if (parameter.is_vararg && variant.omitted > 0) continue;
    const Symbol* sym = parameter.pattern == no_node ? nullptr : identifier(parameter.pattern);
    if (sym == nullptr || sym->name == "_") {
      Variable* variable = add(intern("#" + std::to_string(i + 1)), parameter.span);
      if (parameter.pattern != no_node && sym == nullptr) patterns.emplace_back(parameter.pattern, variable);
    } else {
      add(sym, parameter.span);
    }
    if (parameter.is_vararg) made->is_vararg = true;
  }
  for (const NodeId entry : signature->where_variables) {
    BoundSyntax bound;
    if (!parse_bound(*ast_, entry, bound)) continue;
    Variable* variable = arena_.variable(identifier(bound.name), made, span(entry));
    variable->is_static_parameter = true;
    variable->index = static_cast<std::uint32_t>(made->static_parameters.size());
    made->static_parameters.push_back(variable);
  }

  if (variant.omitted > 0) {
    made->body = forwarding_body(*made, *signature, variant);
  } else {
    for (const auto& [pattern, variable] : patterns) {
      const auto declare = [&](const auto& self, NodeId node) -> void {
        if (const Symbol* sym = identifier(node)) {
          if (sym->name != "_") prologue.push_back(local(span(node), sym));
          return;
        }
        if (ast_->head(node) == Head::type_assert && ast_->child_count(node) == 2)
          return self(self, ast_->child(node, 0));
        for (const NodeId child : children(node)) self(self, child);
      };
      declare(declare, pattern);
      prologue.push_back(assign_to(pattern, name(span(pattern), variable->name)));
    }
    if (!signature->keywords.empty()) keyword_prologue(*made, *signature, variant.keyword_method, prologue);
    if (signature->return_type != no_node) made->return_type = expression(signature->return_type);
    const bool eval_was_parameter = eval_is_parameter_;
    for (const Variable* parameter : made->parameters) eval_is_parameter_ |= parameter->name->name == "eval";
    eval_is_parameter_ |= signature->body != no_node && assigns_name(*ast_, signature->body, "eval");
    Form* body = signature->body == no_node ? nothing(signature->span) : expression(signature->body);
    eval_is_parameter_ = eval_was_parameter;
    if (prologue.empty()) {
      made->body = body;
    } else {
      prologue.push_back(body);
      made->body = block(signature->span, std::move(prologue));
    }
  }

  new_ = saved_new;
  --function_depth_;
  loops_.pop_back();
  ends_ = saved_ends;
  return made;
}

namespace {

bool mentions(const Ast& ast, NodeId node, std::string_view name) {
  if (ast.head(node) == Head::identifier) return ast.name_of(node) == name;
  const auto nodes = ast.children(node);
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId child) { return mentions(ast, child, name); });
}

}  // namespace

// The default of an argument sees the arguments before it; `unseen` are its own name and those after it.
Form* Desugar::default_value(NodeId node, std::span<const Symbol* const> unseen) {
  Form* made = expression(node);
  for (const Symbol* name : unseen) {
    if (!mentions(*ast_, node, name->name)) continue;
    made = scope(span(node), scope_hard, made);
    made->name = name;
  }
  return made;
}

// The keyword variables: from the named tuple when it has them, else their defaults, which see the ones before.
void Desugar::keyword_prologue(Lambda&, const SignatureSyntax& signature, bool keyword_method,
                               std::vector<Form*>& out) {
  const Symbol* names = intern("#keywords#");
  std::vector<const Symbol*> known;
  bool has_rest = false;
  const auto later_keywords = [&](std::size_t first) {
    std::vector<const Symbol*> names_after;
    for (std::size_t i = first; i < signature.keywords.size(); ++i)
      names_after.push_back(intern(signature.keywords[i].name));
    return names_after;
  };
  for (std::size_t i = 0; i < signature.keywords.size(); ++i) {
    const auto& keyword = signature.keywords[i];
    const Symbol* sym = intern(keyword.name);
    const Span at = keyword.span;
    out.push_back(local(at, sym));
    if (keyword.is_rest) {
      has_rest = true;
      Form* rest = nullptr;
      if (!keyword_method) {
        rest = base_call(at, "keyword_pairs", {named_tuple(at, {}, {})});
      } else if (known.empty()) {
        rest = base_call(at, "keyword_pairs", {name(at, names)});
      } else {
        const Type* parameter = runtime_.types.value(symbol_tuple(runtime_, ctx_, known));
        const DataType* val = runtime_.types.apply(runtime_.types.builtin().val_name, std::span(&parameter, 1));
        rest = base_call(at, "remove_keywords", {name(at, names), constant(at, val->instance)});
      }
      out.push_back(assign_name(at, sym, rest));
      continue;
    }
    known.push_back(sym);
    Form* fallback = keyword.default_value != no_node
                         ? default_value(keyword.default_value, later_keywords(i))
                         : base_call(at, "throw_undef_keyword", {symbol(at, keyword.name)});
    Form* value = fallback;
    if (keyword_method) {
      Form* given = operation(at, ir::Op::get_field, {name(at, names), symbol(at, keyword.name)});
      if (keyword.type != no_node)
        given = base_call(at, "keyword_value", {given, expression(keyword.type), symbol(at, keyword.name)});
      value = if_form(at, operation(at, ir::Op::field_defined, {name(at, names), symbol(at, keyword.name)}), given,
                      fallback);
    }
    out.push_back(assign_name(at, sym, value));
  }
  if (!keyword_method || has_rest) return;
  // All keywords given are known when as many of the known ones are present as there are fields. Everything here is
  // constant for inference.
  const Span at = signature.span;
  Form* present = integer(at, 0);
  for (const Symbol* sym : known) {
    Form* here = operation(at, ir::Op::field_defined, {name(at, names), constant(at, runtime_.from_symbol(sym))});
    present = operation(at, ir::Op::add_int,
                        {present, operation(at, ir::Op::select, {here, integer(at, 1), integer(at, 0)})});
  }
  Form* all_known = operation(at, ir::Op::egal, {operation(at, ir::Op::field_count, {name(at, names)}), present});
  Form* refuse =
      base_call(at, "throw_unsupported_keyword",
                {name(at, names), constant(at, symbol_tuple(runtime_, ctx_, known)), form(FormKind::self, at)});
  out.insert(out.begin(), if_form(at, all_known, nothing(at), refuse));
}

// f(a) for f(a, b=1, c=b): b = 1; c = b; f(a, b, c)
Form* Desugar::forwarding_body(Lambda& made, const SignatureSyntax& signature, Variant variant) {
  const Span at = signature.span;
  std::vector<Form*> forms;
  std::vector<Form*> operands;
  if (variant.keyword_method) {
    operands.push_back(base(at, "kwcall"));
    operands.push_back(name(at, intern("#keywords#")));
  }
  operands.push_back(form(FormKind::self, at));
  for (std::size_t i = made.self_index + 1; i < made.parameters.size(); ++i)
    operands.push_back(name(at, made.parameters[i]->name));
  const std::size_t positional = signature.positional_count();
  std::vector<const Symbol*> omitted;
  for (std::size_t i = positional - variant.omitted; i < positional; ++i) {
    const auto& parameter = signature.parameters[i];
    const Symbol* sym = parameter.pattern == no_node ? nullptr : identifier(parameter.pattern);
    omitted.push_back(sym == nullptr || sym->name == "_" ? intern("#" + std::to_string(i + 1)) : sym);
  }
  for (std::size_t i = positional - variant.omitted; i < positional; ++i) {
    const auto& parameter = signature.parameters[i];
    const std::size_t place = i - (positional - variant.omitted);
    const Symbol* sym = omitted[place];
    forms.push_back(local(parameter.span, sym));
    forms.push_back(
        assign_name(parameter.span, sym, default_value(parameter.default_value, std::span(omitted).subspan(place))));
    operands.push_back(name(parameter.span, sym));
  }
  forms.push_back(call(at, std::move(operands)));
  return block(at, std::move(forms));
}

// The constructors of a struct that declares none.
Form* Desugar::constructor_body(Lambda& made, Variant variant, const TypeName* constructed) {
  const Span at = made.span;
  const auto add = [&](std::string_view text) {
    Variable* variable = arena_.variable(intern(text), &made, at);
    variable->is_argument = true;
    variable->index = static_cast<std::uint32_t>(made.parameters.size());
    made.parameters.push_back(variable);
    return name(at, variable->name);
  };
  add("#self#");
  std::vector<Form*> setup;
  std::vector<Form*> parameters;
  for (const TypeVar* var : constructed->vars) {
    Variable* variable = arena_.variable(intern("#" + var->name->name), &made, at);
    variable->is_static_parameter = true;
    variable->index = static_cast<std::uint32_t>(made.static_parameters.size());
    made.static_parameters.push_back(variable);
    setup.push_back(temporary(name(at, variable->name)));
    parameters.push_back(setup.back());
  }
  Form* type = nullptr;
  if (variant.kind == Variant::Kind::constructor_outer) {
    std::vector<Form*> operands{constant(at, runtime_.from_type(constructed->wrapper))};
    for (Form* parameter : parameters) operands.push_back(use(parameter));
    type = temporary(operation(at, ir::Op::apply_type, std::move(operands)));
    setup.push_back(type);
  } else if (constructed->vars.empty()) {
    type = temporary(constant(at, runtime_.from_type(constructed->wrapper)));
    setup.push_back(type);
  } else {
    type = temporary(form(FormKind::self, at));  // Foo{T} itself
    setup.push_back(type);
  }
  std::vector<Form*> operands{use(type)};
  for (std::size_t i = 0; i < constructed->field_names.size(); ++i) {
    Form* value = add("#" + std::to_string(i + 1) + "#" + constructed->field_names[i]->name);
    const Type* declared = constructed->field_types[i];
    if (variant.kind == Variant::Kind::constructor_convert && declared != runtime_.types.builtin().any) {
      Form* field = field_type_form(at, declared, constructed->vars, parameters);
      if (field == nullptr)
        field = base_call(at, "fieldtype", {use(type), integer(at, static_cast<std::int64_t>(i) + 1)});
      value = base_call(at, "convert", {field, value});
    }
    operands.push_back(value);
  }
  setup.push_back(operation(at, ir::Op::make_struct, std::move(operands)));
  return block(at, std::move(setup));
}

Form* Desugar::closure_of(std::shared_ptr<const SignatureSyntax> signature) {
  Form* made = arena_.form(FormKind::closure, span(signature->definition));
  for (const Variant variant : variants_of(*signature)) {
    made->lambdas.push_back(lambda(signature, variant));
    // Now, because there may be many: a method for each parameter that has a default.
    arena_.count();
    if (is_interrupted(signature->span)) break;
  }
  return made;
}

Form* Desugar::anonymous(NodeId node) {
  auto signature = parse_signature(ast_, node, diagnostics_);
  if (signature == nullptr) return nothing(span(node));
  return closure_of(std::move(signature));
}

// In a `let` or a loop: a function of the module with a name of its own, which the block's variable holds. The
// generator is no closure: it does not see the block's variables.
Form* Desugar::generated_in_block(NodeId node, DefinitionHints hints) {
  auto signature = parse_signature(ast_, node, diagnostics_);
  if (signature == nullptr) return nothing(span(node));
  if (function_depth_ > 0)
    return error(node, "a `@generated` function cannot be defined inside a function",
                 "define it at top level and pass it what it needs as arguments");
  if (signature->is_object || signature->callee == no_node || ast_->head(signature->callee) != Head::identifier)
    return deferred(node, std::move(hints));
  const NodeId hidden = ast_->identifier(
      std::string(ast_->name_of(signature->callee)) + "#block#" + std::to_string(state_of(runtime_).gensyms++),
      span(node));
  const auto renamed = [&](const auto& self, NodeId n) -> NodeId {
    if (n == signature->callee) return hidden;
    const syntax::Node original = ast_->node(n);
    std::vector<NodeId> parts(ast_->children(n).begin(), ast_->children(n).end());
    parts[0] = self(self, parts[0]);
    return ast_->make(original.head, original.span, parts, original.flag);
  };
  const syntax::Node definition = ast_->node(node);
  std::vector<NodeId> parts(ast_->children(node).begin(), ast_->children(node).end());
  parts[0] = renamed(renamed, parts[0]);
  Form* made = deferred(ast_->make(definition.head, definition.span, parts, definition.flag), std::move(hints));
  return assign_name(span(node), identifier(signature->callee), made);
}

// The closure of a global method in a block gets the variables of `where` and the callable object as its first arguments.
void Desugar::give_as_arguments(SignatureSyntax& signature) const {
  std::vector<ParameterSyntax> first;
  for (const NodeId entry : signature.where_variables) {
    BoundSyntax bound;
    if (!parse_bound(*ast_, entry, bound)) continue;
    ParameterSyntax variable;
    variable.pattern = bound.name;
    variable.type = entry;  // its bounds name variables of the block, too
    variable.span = signature.span;
    first.push_back(variable);
  }
  signature.where_variables.clear();
  if (signature.is_object) {
    ParameterSyntax object;
    object.pattern = std::exchange(signature.object_name, no_node);
    object.type = std::exchange(signature.object_type, no_node);
    object.span = signature.span;
    first.push_back(object);
    signature.is_object = false;
  }
  signature.parameters.insert(signature.parameters.begin(), first.begin(), first.end());
}

Form* Desugar::function_definition(NodeId node, DefinitionHints hints) {
  if (function_depth_ == 0 && scope_depth_ == 0) {
    // `function (x) … end` is a value even at top level.
    const NodeId signature = ast_->child_count(node) > 0 ? ast_->child(node, 0) : no_node;
    NodeId inner = signature;
    while ((ast_->head(inner) == Head::where || ast_->head(inner) == Head::type_assert) && ast_->child_count(inner) > 0)
      inner = ast_->child(inner, 0);
    if (ast_->head(inner) != Head::tuple) return deferred(node, std::move(hints));
  }
  if (hints.is_generated) return generated_in_block(node, std::move(hints));
  auto signature = parse_signature(ast_, node, diagnostics_);
  if (signature == nullptr) return nothing(span(node));
  if (signature->callee == no_node && !signature->is_object) return closure_of(std::move(signature));
  Form* made = arena_.form(FormKind::local_function, span(node));
  if (signature->callee != no_node) made->name = identifier(signature->callee);
  // Others are functions of their block.
  const bool is_method = function_depth_ == 0 && (std::exchange(defines_global_, false) || made->name == nullptr);
  if (function_depth_ == 0) {
    made->children.push_back(deferred(node, hints));
    if (signature->body != no_node) {
      // Should it use variables of the block.
      auto& state = state_of(runtime_);
      const Symbol* holder = intern("#block_method#" + std::to_string(state.gensyms++));
      const std::size_t number = add_definition(runtime_, {ast_, node, module_, hints, nullptr, holder, is_method});
      made->children.push_back(native(span(node), "define", {integer(span(node), static_cast<std::int64_t>(number))}));
      made->children.push_back(constant(span(node), runtime_.from_symbol(holder)));
    }
  } else if (made->name == nullptr) {
    return error(node, "global method definition needs to be placed at the top level");
  }
  if (is_method) give_as_arguments(*signature);
  if (signature->body != no_node) {
    for (const Variant variant : variants_of(*signature)) {
      made->lambdas.push_back(lambda(signature, variant));
      made->lambdas.back()->inline_hint = hints.inline_hint;
      arena_.count();
      if (is_interrupted(signature->span)) break;
    }
  }
  return made;
}

Form* Desugar::do_block(NodeId node) {
  const auto nodes = children(node);
  if (nodes.size() != 2 || ast_->head(nodes[1]) != Head::arrow) return error(node, "malformed `do` block");
  const auto head = ast_->head(nodes[0]);
  if (head != Head::call) return error(nodes[0], "expected a call before `do`");
  const auto parts = children(nodes[0]);
  if (parts.empty()) return error(nodes[0], "malformed call");
  Form* callee = expression(parts[0]);
  Form* closure = anonymous(nodes[1]);
  return call_with(span(node), callee, std::span(parts).subspan(1), closure);
}

}  // namespace slope::lower
