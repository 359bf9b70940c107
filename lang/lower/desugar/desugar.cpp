#include "lang/lower/desugar/desugar.hpp"

#include <utility>

#include "lang/lower/definition.hpp"
#include "lang/lower/generated.hpp"
#include "lang/support/tuning.hpp"

namespace slope::lower {

namespace {

constexpr int max_depth = tuning::desugar_depth;

}  // namespace

// What a `value` node's payload may stand for as an identifier: a global of a given module.
bool as_global_ref(Runtime& runtime, Value v, Module*& module, const Symbol*& name) {
  if (v.type != runtime.types.builtin().global_ref) return false;
  Value part;
  Context& ctx = runtime.context;
  if (!runtime.get_field(ctx, v, runtime.from_int(1), part)) return false;
  module = part.module;
  if (!runtime.get_field(ctx, v, runtime.from_int(2), part)) return false;
  name = part.symbol;
  return true;
}

// --- syntax ---

Form* Desugar::error(NodeId node, std::string message, std::string help) {
  return error(span(node), std::move(message), std::move(help));
}

bool Desugar::is_interrupted(Span at) {
  if (ctx_.interrupt.load(std::memory_order_relaxed) == no_interrupt) return false;
  if (interrupted_ == nullptr) interrupted_ = error(at, "interrupted");
  return true;
}

Form* Desugar::unsupported(NodeId node, std::string message, const std::string& help) {
  if (!help.empty()) message += "; " + help;
  message += " (" + runtime_.sources.describe(span(node)) + ")";
  return base_call(span(node), "error", {string(span(node), message)});
}

std::vector<NodeId> Desugar::children(NodeId node) const {
  const auto nodes = ast_->children(node);
  return {nodes.begin(), nodes.end()};
}

const Symbol* Desugar::identifier(NodeId node) const {
  if (ast_->head(node) != Head::identifier) return nullptr;
  return runtime_.symbol(ast_->name_of(node));
}

bool Desugar::is_identifier(NodeId node, std::string_view text) const {
  return ast_->head(node) == Head::identifier && ast_->name_of(node) == text;
}

Value Desugar::spliced(NodeId node) {
  const auto& values = state_of(runtime_).spliced.values;
  const auto index = ast_->node(node).value;
  return index < values.size() ? values[index] : runtime_.nothing();
}

Form* Desugar::literal(NodeId node) {
  const auto& builtin = runtime_.types.builtin();
  const auto& n = ast_->node(node);
  switch (n.head) {
    case Head::integer: {
      const DataType* type = builtin.int64;
      switch (n.flag) {
        case 8:
          type = builtin.uint8;
          break;
        case 16:
          type = builtin.uint16;
          break;
        case 32:
          type = builtin.uint32;
          break;
        case 64:
          type = builtin.uint64;
          break;
        default:
          break;
      }
      return constant(n.span, Value(type, n.integer));
    }
    case Head::floating:
      return constant(n.span, runtime_.from_float(n.floating));
    case Head::float32: {
      Value v(builtin.float32, std::int64_t{0});
      v.float32 = static_cast<float>(n.floating);
      return constant(n.span, v);
    }
    case Head::character:
      return constant(n.span, Value(builtin.character, static_cast<std::int64_t>(n.code_point)));
    case Head::string:
      return string(n.span, ast_->text_of(node));
    case Head::boolean:
      return constant(n.span, runtime_.from_bool(n.integer != 0));
    case Head::quote_symbol:
      return symbol(n.span, ast_->name_of(node));
    default:
      return nothing(n.span);
  }
}

// Long because it is a table: one case for each head.
Form* Desugar::expression(NodeId node) {
  struct DepthGuard {
    int& depth;
    ~DepthGuard() { --depth; }
  } guard{++depth_};
  if (depth_ > max_depth || is_below(stack_limit_)) return error(node, "expression is nested too deeply");
  if (is_interrupted(span(node))) return interrupted_;
  const Head head = ast_->head(node);
  switch (head) {
    case Head::none:
      return nothing({});
    case Head::identifier: {
      const auto text = ast_->name_of(node);
      if (!ends_.empty() && (text == "end" || text == "begin"))
        return end_in_index(node, text == "end" ? "lastindex" : "firstindex");
      if (text == "end") return unsupported(node, "`end` inside a closure inside an index is not part of Slope");
      if (text == "_") return error(node, "all-underscore identifiers are write-only and cannot be read");
      // var"@inline" as a value: a macro of the language itself is a function that makes its call.
      if (text.starts_with('@') && find_macro(text) != nullptr && runtime_.resolve(module_, intern(text)) == nullptr)
        return base_call(span(node), "macro_of_language", {constant(span(node), runtime_.from_symbol(intern(text)))});
      return name(span(node), intern(text));
    }
    case Head::integer:
    case Head::floating:
    case Head::float32:
    case Head::character:
    case Head::string:
    case Head::boolean:
    case Head::nothing:
    case Head::quote_symbol:
      return literal(node);
    case Head::value: {
      const Value v = spliced(node);
      Module* module = nullptr;
      const Symbol* global = nullptr;
      if (as_global_ref(runtime_, v, module, global)) {
        Form* made = arena_.form(FormKind::global, span(node));
        made->name = global;
        made->binding = runtime_.resolve(module, global);
        if (made->binding == nullptr) made->binding = runtime_.binding(module, global);
        return made;
      }
      return constant(span(node), v);
    }
    case Head::call:
      return call_expression(node);
    case Head::dot_call:
    case Head::dot_assign:
    case Head::dot_op_assign:
      return head == Head::dot_call ? materialized(node) : dot_assignment(node);
    case Head::macrocall:
      return macro_call(node);
    case Head::comparison:
      return comparison(node);
    case Head::and_and:
    case Head::or_or:
      return short_circuit(node, head == Head::and_and);
    case Head::ref:
      return index_expression(node, views_ ? "maybeview" : "getindex");
    case Head::dot:
      return property(node);
    case Head::adjoint: {
      const auto nodes = children(node);
      if (nodes.size() != 1) return error(node, "malformed `'`");
      return base_call(span(node), "adjoint", {expression(nodes[0])});
    }
    case Head::type_assert: {
      const auto nodes = children(node);
      if (nodes.size() != 2) return error(node, "`::T` without a value stands only in a parameter list");
      // A bare `x::T` in statement position declares; the block that holds it asks for that (statements()).
      return operation(span(node), ir::Op::type_assert, {expression(nodes[0]), expression(nodes[1])});
    }
    case Head::address:
      return unsupported(node, "`&x` is syntax for macros: outside of one it means nothing");
    case Head::subtype:
    case Head::supertype: {
      const auto nodes = children(node);
      // `<:T` outside of T{…} is the call of what has this name.
      if (nodes.size() == 1)
        return call(span(node), {expression(ast_->identifier(head == Head::subtype ? "<:" : ">:", span(node))),
                                 expression(nodes[0])});
      if (nodes.size() != 2) return error(node, "malformed `<:`");
      Form* left = expression(nodes[0]);
      Form* right = expression(nodes[1]);
      if (head == Head::subtype) return operation(span(node), ir::Op::subtype, {left, right});
      Form* first = temporary(left);
      return block(span(node), {first, operation(span(node), ir::Op::subtype, {right, use(first)})});
    }
    case Head::curly:
      return curly(node);
    case Head::where:
      return where(node);
    case Head::assign:
      return assignment(node);
    case Head::op_assign:
      return op_assignment(node);
    case Head::tuple:
      return named_or_plain_tuple(node);
    case Head::vect:
      return vector_literal(node);
    case Head::hcat:
    case Head::vcat:
    case Head::typed_hcat:
    case Head::typed_vcat:
      return concatenation(node);
    case Head::ncat:
    case Head::typed_ncat:
      return dimensions_literal(node);
    case Head::generator:
      return generator(node, node == transient_node_);
    case Head::flatten:
      return flattened(node, node == transient_node_);
    case Head::comprehension:
    case Head::typed_comprehension:
      return comprehension(node);
    case Head::interpolated:
      return interpolated(node);
    case Head::block:
      return statements(node);
    case Head::if_:
      return conditional(node);
    case Head::while_:
      return while_loop(node);
    case Head::for_:
      return for_loop(node);
    case Head::break_:
    case Head::continue_:
      return jump_out(node, head == Head::break_);
    case Head::return_: {
      const auto nodes = children(node);
      return form(FormKind::return_, span(node), {nodes.empty() ? nothing(span(node)) : expression(nodes[0])});
    }
    case Head::let_:
      return let(node);
    case Head::try_:
      return try_expression(node);
    case Head::function:
      return function_definition(node, {});
    case Head::arrow:
      return anonymous(node);
    case Head::do_:
      return do_block(node);
    case Head::struct_:
      return needs_top_level(node, "struct") ? type_definition(node) : nothing(span(node));
    case Head::abstract_:
    case Head::primitive_:
      return needs_top_level(node, "type definition") ? type_definition(node) : nothing(span(node));
    case Head::macro_:
      return needs_top_level(node, "macro definition") ? deferred(node) : nothing(span(node));
    case Head::module_:
      return needs_top_level(node, "module") ? deferred(node) : nothing(span(node));
    case Head::using_:
    case Head::import_:
    case Head::export_:
      return needs_top_level(node, syntax::head_name(head)) ? deferred(node) : nothing(span(node));
    case Head::const_:
      return constant_declaration(node);
    case Head::global_:
    case Head::local_:
      return declaration(node, head == Head::global_);
    case Head::quote: {
      const auto nodes = children(node);
      if (nodes.size() != 1) return error(node, "malformed quote");
      return quoted(nodes[0], 0);
    }
    case Head::interpolate:
      return error(node, "`$` outside a quote or string");
    case Head::toplevel:  // of a macro, in a block: its statements are those of the module
      return scope_depth_ > 0 && function_depth_ == 0 ? one_after_another(node) : statements(node);
    case Head::splat:
      return error(node, "`...` outside a call or container", "write f(x...) or (x...,)");
    case Head::kw:
    case Head::parameters:
      return error(node, "keyword arguments outside a call");
    case Head::braces:
      return unsupported(node, "`{…}` without a type before it is not part of Slope",
                         "a dictionary is `Dict(\"a\" => 1)`, a vector `[1, 2]`, a set `Set([1, 2])`");
    case Head::row:
    case Head::nrow:
    case Head::filter:
    case Head::dot_path:
    case Head::import_list:
    case Head::pair_colon:
    case Head::typed_vect_ref:
      return unsupported(node, "`" + std::string(syntax::head_name(head)) + "` is not part of Slope in this place");
    case Head::error:
      return error(node, "a statement with a syntax error cannot run");
  }
  return unsupported(node, "this construct is not part of Slope");
}

Form* Desugar::statements(NodeId node) {
  const auto nodes = children(node);
  if (nodes.empty()) return nothing(span(node));
  std::vector<Form*> forms;
  forms.reserve(nodes.size());
  for (const NodeId statement : nodes) {
    // `x::T` as a statement of its own declares the type of a local variable.
    if (ast_->head(statement) == Head::type_assert && ast_->child_count(statement) == 2 &&
        ast_->head(ast_->child(statement, 0)) == Head::identifier && statement != nodes.back()) {
      forms.push_back(typed_declaration(statement, nullptr));
      continue;
    }
    forms.push_back(expression(statement));
  }
  return block(span(node), std::move(forms));
}

Form* Desugar::deferred(NodeId node, DefinitionHints hints) {
  auto& definitions = state_of(runtime_).definitions;
  const bool generated =
      hints.is_generated || (ast_->child_count(node) > 1 && has_generated_part(*ast_, ast_->child(node, 1)));
  // Preparing may make definitions of the library.
  const std::size_t number = add_definition(runtime_, {ast_, node, module_, std::move(hints), nullptr, nullptr});
  const Head head = ast_->head(node);
  if (generated) {
    // Its parts are lowered when the definition runs: the generator as a function of its own.
  } else if ((head == Head::function || head == Head::assign) && !is_library(runtime_, module_)) {
    auto prepared = prepare_function(runtime_, ctx_, module_, ast_, node, diagnostics_);
    if (prepared == nullptr) return nothing(span(node));
    definitions[number].prepared = std::move(prepared);
  }
  return native(span(node), "define", {integer(span(node), static_cast<std::int64_t>(number))});
}

// A type is a global wherever its definition stands: methods beside it are its constructors.
Form* Desugar::type_definition(NodeId node) {
  NodeId type = ast_->child(node, 0);
  while (ast_->head(type) == Head::subtype || ast_->head(type) == Head::curly) type = ast_->child(type, 0);
  Form* defined = deferred(node);
  const Symbol* name = identifier(type);
  if (name == nullptr) return defined;
  Form* global = form(FormKind::global_name, span(node));
  global->name = name;
  return block(span(node), {global, defined});
}

Form* Desugar::then_newest_world(Form* form) {
  if (function_depth_ > 0) return form;
  Form* value = temporary(form);
  return block(form->span, {value, native(form->span, "newest_world", {}), use(value)});
}

bool Desugar::needs_top_level(NodeId node, std::string_view what) {
  if (function_depth_ == 0) return true;
  error(node, "`" + std::string(what) + "` must be at top level, not inside a function");
  return false;
}

Lambda* Desugar::top_level(NodeId statement) {
  Lambda* made = arena_.lambda();
  made->span = span(statement);
  made->name = intern("top-level scope");
  top_statement_ = statement;
  made->module = module_;
  made->body = ast_->head(statement) == Head::block || ast_->head(statement) == Head::toplevel ? statements(statement)
                                                                                               : expression(statement);
  return made;
}

Lambda* Desugar::top_level_with(NodeId node, std::span<const std::pair<const Symbol*, Value>> names) {
  Lambda* made = top_level(node);
  std::vector<Form*> forms;
  for (const auto& [symbol, value] : names) {
    forms.push_back(local(span(node), symbol));
    forms.push_back(assign_name(span(node), symbol, constant(span(node), value)));
  }
  forms.push_back(made->body);
  made->body = scope(span(node), scope_hard, block(span(node), std::move(forms)));
  return made;
}

}  // namespace slope::lower
