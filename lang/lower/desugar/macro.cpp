// Macro calls: the table of macros that are built in, and those that annotate, locate or select.
#include <array>
#include <cctype>
#include <filesystem>
#include <utility>

#include "lang/lower/builtin_macros.hpp"
#include "lang/lower/definition.hpp"
#include "lang/lower/desugar/desugar.hpp"
#include "lang/lower/expr.hpp"
#include "lang/lower/state.hpp"
#include "lang/support/similar.hpp"
#include "lang/syntax/print.hpp"

namespace slope::lower {

struct Desugar::BuiltinMacro {
  std::string_view name;
  MacroHandler handler;
  std::size_t least;  // arguments
  std::size_t most;
};

std::span<const Desugar::BuiltinMacro> Desugar::macro_table() {
  constexpr std::size_t any = 1000;
  static constexpr BuiltinMacro table[] = {
      {"@inbounds", &Desugar::macro_inbounds, 1, 1},
      {"@goto", &Desugar::macro_jump, 1, 1},
      {"@label", &Desugar::macro_jump, 1, 1},
      {"@simd", &Desugar::macro_simd, 1, 2},
      {"@fastmath", &Desugar::macro_fastmath, 1, 1},
      {"@boundscheck", &Desugar::macro_boundscheck, 1, 1},
      {"@inline", &Desugar::macro_inline, 0, 1},
      {"@noinline", &Desugar::macro_noinline, 0, 1},
      {"@nospecializeinfer", &Desugar::macro_inline, 0, 1},
      {"@propagate_inbounds", &Desugar::macro_inline, 1, 1},
      {"@generated", &Desugar::macro_generated, 0, 2},
      {"@doc", &Desugar::macro_doc, 1, 2},
      {"@kwdef", &Desugar::macro_kwdef, 1, 1},
      {"@assert", &Desugar::macro_assert, 1, 2},
      {"@show", &Desugar::macro_show, 0, any},
      {"@time", &Desugar::macro_time, 1, 2},
      {"@timed", &Desugar::macro_timed, 1, 1},
      {"@elapsed", &Desugar::macro_elapsed, 1, 1},
      {"@allocated", &Desugar::macro_allocated, 1, 1},
      {"@btime", &Desugar::macro_btime, 1, 1},
      {"@view", &Desugar::macro_view, 1, 1},
      {"@views", &Desugar::macro_views, 1, 1},
      {"@__dot__", &Desugar::macro_dot, 1, 1},
      {"@.", &Desugar::macro_dot, 1, 1},
      {"@printf", &Desugar::macro_printf, 1, any},
      {"@sprintf", &Desugar::macro_sprintf, 1, any},
      {"@testset", &Desugar::macro_testset, 1, any},
      {"@scalar_rule", &Desugar::macro_scalar_rule, 2, any},
      {"@non_differentiable", &Desugar::macro_non_differentiable, 1, 1},
      {"@thunk", &Desugar::macro_thunk, 1, 1},
      {"@which", &Desugar::macro_reflection, 1, 1},
      {"@code_lowered", &Desugar::macro_reflection, 1, 5},
      {"@code_typed", &Desugar::macro_reflection, 1, 5},
      {"@code_warntype", &Desugar::macro_reflection, 1, 5},
      {"@code_grad", &Desugar::macro_reflection, 1, 5},
      {"@code_llvm", &Desugar::macro_reflection, 1, 5},
      {"@code_native", &Desugar::macro_reflection, 1, 5},
      {"@less", &Desugar::macro_reflection, 1, 1},
      {"@edit", &Desugar::macro_reflection, 1, 1},
      {"@why", &Desugar::macro_reflection, 1, 1},
      {"@isdefined", &Desugar::macro_isdefined, 1, 1},
      {"@eval", &Desugar::macro_eval, 1, 2},
      {"@macroexpand", &Desugar::macro_expand, 1, 1},
      {"@macroexpand1", &Desugar::macro_expand, 1, 1},
      {"@expanded", &Desugar::macro_expanded, 1, 1},
      {"@raw_str", &Desugar::macro_raw_string, 1, 1},
      {"@b_str", &Desugar::macro_raw_string, 1, 1},
      {"@__MODULE__", &Desugar::macro_module, 0, 0},
      {"@__FILE__", &Desugar::macro_location, 0, 0},
      {"@__LINE__", &Desugar::macro_location, 0, 0},
      {"@__DIR__", &Desugar::macro_location, 0, 0},
      {"@nospecialize", &Desugar::macro_plain, 0, any},
      {"@specialize", &Desugar::macro_plain, 0, any},
  };
  return table;
}

bool is_builtin_macro(std::string_view name) { return Desugar::is_builtin_macro(name); }

const Desugar::BuiltinMacro* Desugar::find_macro(std::string_view name) {
  for (const BuiltinMacro& entry : macro_table())
    if (entry.name == name) return &entry;
  return nullptr;
}

namespace {

// Julia's macros that Slope leaves out: what they stand for.
std::string_view absent_macro(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> table[] = {
      {"@distributed", "processes"}, {"@ccallable", "functions for C"},     {"@cfunction", "calls of C functions"},
      {"@cmd", "commands"},          {"@generated", "generated functions"},
  };
  for (const auto& [macro, what] : table)
    if (macro == name) return what;
  return {};
}

}  // namespace

Form* Desugar::macro_call(NodeId node) {
  const auto nodes = children(node);
  if (nodes.empty()) return error(node, "malformed macro call");
  // M.@m is (dot M @m); Core.@doc and Base.@m too.
  NodeId callee = nodes[0];
  Module* owner = module_;
  bool qualified = false;
  if (ast_->head(callee) == Head::dot && ast_->child_count(callee) == 2) {
    qualified = true;
    std::vector<const Symbol*> path;
    NodeId at = ast_->child(callee, 0);
    while (ast_->head(at) == Head::dot && ast_->child_count(at) == 2) {
      path.push_back(intern(identifier_text(*ast_, ast_->child(at, 1))));
      at = ast_->child(at, 0);
    }
    // A macro's expansion may hold the module itself: $M.@m.
    const auto& spliced = state_of(runtime_).spliced.values;
    if (ast_->head(at) == Head::value && ast_->node(at).value < spliced.size() &&
        spliced[ast_->node(at).value].type == runtime_.types.builtin().module)
      owner = spliced[ast_->node(at).value].module;
    else if (const Symbol* name = nullptr; ast_->head(at) == Head::value && ast_->node(at).value < spliced.size() &&
                                           reference_parts(runtime_, ctx_, spliced[ast_->node(at).value], owner, name))
      path.push_back(name);
    else
      path.push_back(intern(identifier_text(*ast_, at)));
    callee = ast_->child(callee, 1);
    for (std::size_t i = path.size(); i-- > 0;) {
      const Binding* binding = runtime_.resolve(owner, path[i]);
      if (binding == nullptr || binding->value.type != runtime_.types.builtin().module)
        return error(node, "module " + path[i]->name + " not found");
      owner = binding->value.module;
    }
  }
  const auto text = identifier_text(*ast_, callee);
  if (text.empty() && ast_->head(callee) == Head::value) return error(node, "a macro is called by name");
  const std::span<const NodeId> arguments = std::span(nodes).subspan(1);
  const Binding* binding = runtime_.resolve(owner, intern(text));
  if (binding == nullptr && owner == runtime_.core) binding = runtime_.resolve(runtime_.base, intern(text));
  if (binding != nullptr && binding->value.defined() &&
      !(qualified && is_library(runtime_, owner) && find_macro(text) != nullptr))
    return user_macro(node, binding->value, binding->module);
  const BuiltinMacro* macro = find_macro(text);
  if (macro == nullptr) {
    if (const auto what = absent_macro(text); !what.empty())
      return unsupported(node, std::string(what) + " (`" + std::string(text) + "`) are not part of Slope");
    return undefined_macro(node, owner, text);
  }
  if (arguments.size() < macro->least || arguments.size() > macro->most)
    return error(node, "wrong number of arguments for `" + std::string(text) + "`");
  if (qualified) {  // handlers look at the name
    std::vector<NodeId> plain = nodes;
    plain[0] = callee;
    node = ast_->make(ast_->head(node), span(node), plain);
  }
  return (this->*macro->handler)(node, arguments);
}

// A misspelt name gets a suggestion.
Form* Desugar::undefined_macro(NodeId node, const Module* owner, std::string_view text) {
  std::vector<std::string_view> names;
  for (const BuiltinMacro& entry : macro_table()) names.push_back(entry.name);
  for (const Module* module : {owner, static_cast<const Module*>(runtime_.base)}) {
    module->enter_all();
    for (const auto& [name, binding] : module->bindings)
      if (name->name.starts_with('@') && binding->value.defined()) names.push_back(name->name);
  }
  static constexpr std::pair<std::string_view, const char*> elsewhere[] = {
      {"@f_str", "values are put into any string by `$`: \"a = $a, b = $(f(x))\""},
      {"@profile", "`slope profile FILE` shows where a script spends its time, `@btime f($x)` the time of a call"},
      {"@benchmark", "`@btime f($x)` shows the least time of many runs"},
      {"@jit", "functions are compiled by themselves"},
      {"@njit", "functions are compiled by themselves"},
      {"@property", "a property is a function: `area(p) = p.x * p.y`, or a method of `getproperty`"},
      {"@dataclass", "data is a `struct`, with defaults by `@kwdef struct … end`"},
  };
  for (const auto& [name, help] : elsewhere)
    if (text == name) return error(node, "macro `" + std::string(name) + "` is not defined", help);
  const std::string similar = most_similar(text, names);
  return error(node, "macro `" + std::string(text) + "` is not defined" +
                         (similar.empty() ? "" : "; did you mean `" + similar + "`?"));
}

// --- annotations ---

Form* Desugar::macro_flag(NodeId node, std::span<const NodeId> arguments, std::uint8_t flag) {
  Form* made = form(FormKind::flagged, span(node), {expression(arguments.back())});
  made->flag = flag;
  return made;
}

Form* Desugar::macro_inbounds(NodeId node, std::span<const NodeId> arguments) {
  const bool counts = state_of(runtime_).trusts_inbounds || is_library_text(runtime_, span(node));
  return macro_flag(node, arguments, counts ? ir::inst_inbounds : 0);
}

Form* Desugar::macro_simd(NodeId node, std::span<const NodeId> arguments) {
  if (ast_->head(arguments.back()) != Head::for_) return error(node, "`@simd` stands before a `for` loop");
  return macro_flag(node, arguments, ir::inst_reassociate);
}

Form* Desugar::macro_fastmath(NodeId node, std::span<const NodeId> arguments) {
  return macro_flag(node, arguments, ir::inst_fast);
}

Form* Desugar::macro_boundscheck(NodeId node, std::span<const NodeId> arguments) {
  return macro_flag(node, arguments, ir::inst_boundscheck);
}

// A function definition under macros that say how it is to be made, in any order: @inline, @noinline,
// @nospecializeinfer, @generated, a documentation. Null: something else stands there.
Form* Desugar::hinted_definition(NodeId node, DefinitionHints hints) {
  if (ast_->head(node) == Head::macrocall && ast_->child_count(node) >= 2) {
    const auto text = identifier_text(*ast_, ast_->child(node, 0));
    const NodeId last = children(node).back();
    if (text == "@inline") hints.inline_hint = 1;
    if (text == "@noinline") hints.inline_hint = -1;
    if (text == "@nospecializeinfer") hints.infers_as_declared = true;
    if (text == "@generated") {
      hints.is_generated = true;
      if (ast_->child_count(node) == 3) {
        if (!is_identifier(ast_->child(node, 1), "cached")) return nullptr;
        hints.is_cached = true;
      }
    }
    const bool is_hint =
        text == "@inline" || text == "@noinline" || text == "@nospecializeinfer" || text == "@generated";
    return is_hint ? hinted_definition(last, std::move(hints)) : nullptr;
  }
  if (ast_->head(node) != Head::function && !is_short_definition(*ast_, node)) return nullptr;
  return function_definition(node, std::move(hints));
}

Form* Desugar::macro_inline(NodeId node, std::span<const NodeId> arguments) {
  if (arguments.empty()) return nothing(span(node));  // in a body, about the function
  if (Form* made = hinted_definition(node, {})) return made;
  return expression(arguments[0]);  // of a call or a closure: no meaning of its own
}

Form* Desugar::macro_noinline(NodeId node, std::span<const NodeId> arguments) { return macro_inline(node, arguments); }

// @generated function f(x) … end, @generated cached function f(x) … end
Form* Desugar::macro_generated(NodeId node, std::span<const NodeId> arguments) {
  if (arguments.size() == 2 && !is_identifier(arguments[0], "cached"))
    return error(arguments[0], "expected `@generated function …` or `@generated cached function …`");
  const NodeId definition = arguments.empty() ? no_node : arguments.back();
  if (definition == no_node)
    return error(node, "`@generated` alone is the condition of an `if` in a function's body",
                 "write `if @generated … else … end` there, or `@generated function …`");
  if (Form* made = hinted_definition(node, {})) return made;
  return error(definition, "expected a function definition after `@generated`");
}

Form* Desugar::macro_plain(NodeId node, std::span<const NodeId> arguments) {
  return arguments.size() == 1 ? expression(arguments[0]) : nothing(span(node));
}

std::string documented_name(const Ast& ast, NodeId node) {
  switch (ast.head(node)) {
    case Head::identifier:
      return std::string(ast.name_of(node));
    case Head::struct_:
    case Head::abstract_:
    case Head::primitive_:
    case Head::module_:
    case Head::const_:
    case Head::global_:
    case Head::assign:
    case Head::subtype:
    case Head::curly:
    case Head::type_assert:
    case Head::call:
    case Head::where:
      return ast.child_count(node) != 0 ? documented_name(ast, ast.child(node, 0)) : "";
    case Head::dot:  // of Base.f(x)
      return ast.child_count(node) == 2 ? std::string(identifier_text(ast, ast.child(node, 1))) : "";
    case Head::macro_: {
      const NodeId call = ast.child(node, 0);
      const std::string name = documented_name(ast, ast.head(call) == Head::call ? ast.child(call, 0) : call);
      return name.empty() || name[0] == '@' ? name : "@" + name;
    }
    case Head::macrocall:
      // of `@kwdef struct …`; the macro itself when there is nothing behind it
      return documented_name(ast, ast.child_count(node) > 1 ? ast.children(node).back() : ast.child(node, 0));
    default:
      return "";
  }
}

// "text" definition, @doc "text" name, @doc name
Form* Desugar::macro_doc(NodeId node, std::span<const NodeId> arguments) {
  const auto quoted = [&](const std::string& name) {
    return constant(span(node), runtime_.from_symbol(runtime_.symbol(name)));
  };
  if (arguments.size() == 1) {
    const Head head = ast_->head(arguments[0]);
    const bool is_name = head == Head::identifier || (head == Head::macrocall && ast_->child_count(arguments[0]) == 1);
    Form* wanted = is_name ? quoted(documented_name(*ast_, arguments[0])) : expression(arguments[0]);
    return base_call(span(node), "documentation_of", {wanted});
  }
  const NodeId target = arguments[1];
  if (ast_->head(target) == Head::tuple) {  // "text" a, b
    std::vector<Form*> all;
    for (const NodeId part : children(target)) {
      const NodeId one[] = {arguments[0], part};
      all.push_back(macro_doc(node, one));
    }
    return block(span(node), std::move(all));
  }
  DefinitionHints hints;
  if (ast_->head(arguments[0]) == Head::string) hints.documentation = std::string(ast_->text_of(arguments[0]));
  // A module's text may name what the module defines.
  if (ast_->head(target) == Head::module_ && ast_->head(arguments[0]) != Head::string) return expression(target);
  if (Form* made = hinted_definition(target, std::move(hints))) return made;
  std::string name = documented_name(*ast_, target);
  Module* owner = nullptr;
  const Symbol* global = nullptr;
  const bool is_reference =
      ast_->head(target) == Head::value && as_global_ref(runtime_, spliced(target), owner, global);
  if (is_reference) name = global->name;
  if (name.empty()) return expression(target);
  Form* module = constant(span(node), Value(runtime_.types.builtin().module, static_cast<const void*>(module_)));
  Form* noted = base_call(span(node), "document", {module, quoted(name), expression(arguments[0])});
  // A name, or the signature of a method that is defined elsewhere.
  NodeId documented = target;
  while (ast_->head(documented) == Head::where || ast_->head(documented) == Head::type_assert)
    documented = ast_->child(documented, 0);
  const Head kind = ast_->head(documented);
  if (is_reference || kind == Head::identifier || kind == Head::call || kind == Head::dot) return noted;
  return block(span(node), {expression(target), noted});
}

// --- places ---

Form* Desugar::macro_module(NodeId node, std::span<const NodeId>) {
  return constant(span(node), Value(runtime_.types.builtin().module, static_cast<const void*>(module_)));
}

Form* Desugar::macro_location(NodeId node, std::span<const NodeId>) {
  const auto text = identifier_text(*ast_, ast_->child(node, 0));
  if (text == "@__LINE__") return integer(span(node), runtime_.sources.line_of(span(node)));
  std::string file = runtime_.sources.file(span(node).file).name();
  if (text == "@__DIR__") {
    std::error_code no_directory;
    const auto path = std::filesystem::absolute(file, no_directory);
    file = no_directory ? "." : path.lexically_normal().parent_path().string();
  }
  return string(span(node), file);
}

Form* Desugar::macro_raw_string(NodeId node, std::span<const NodeId> arguments) {
  if (ast_->head(arguments[0]) != Head::string) return error(node, "expected a string");
  Form* text = literal(arguments[0]);
  if (is_identifier(ast_->child(node, 0), "@raw_str")) return text;
  return base_call(span(node), "codeunits", {base_call(span(node), "unescape_string", {text})});  // b"…"
}

Form* Desugar::macro_isdefined(NodeId node, std::span<const NodeId> arguments) {
  const Symbol* sym = identifier(arguments[0]);
  if (sym == nullptr) return error(node, "`@isdefined` takes a variable");
  Form* made = arena_.form(FormKind::defined, span(node));
  made->name = sym;
  return made;
}

Form* Desugar::macro_eval(NodeId node, std::span<const NodeId> arguments) {
  Form* module = arguments.size() == 2
                     ? expression(arguments[0])
                     : constant(span(node), Value(runtime_.types.builtin().module, static_cast<const void*>(module_)));
  return then_newest_world(native(span(node), "eval_expression", {module, quoted(arguments.back(), 0)}));
}

// --- views ---

Form* Desugar::macro_view(NodeId node, std::span<const NodeId> arguments) {
  if (ast_->head(arguments[0]) != Head::ref) return error(node, "`@view` takes an indexing expression, such as a[1:3]");
  return index_expression(arguments[0], "view");
}

Form* Desugar::macro_views(NodeId, std::span<const NodeId> arguments) {
  const bool outer = std::exchange(views_, true);
  Form* made = expression(arguments[0]);
  views_ = outer;
  return made;
}

// --- @. ---

// Dots for every call, operator and assignment, except inside $(…).
NodeId Desugar::dotted(NodeId node) {
  const Head head = ast_->head(node);
  const Span at = span(node);
  const auto nodes = children(node);
  if (head == Head::interpolate) return nodes.size() == 1 ? nodes[0] : node;
  if (nodes.empty() || head == Head::quote || head == Head::curly || head == Head::subtype || head == Head::supertype)
    return node;
  std::vector<NodeId> made;
  if (head == Head::let_ || head == Head::for_ || head == Head::function || head == Head::macrocall ||
      is_short_definition(*ast_, node)) {
    // What is bound, defined or named stays; the body gets dots.
    made.push_back(nodes[0]);
    for (std::size_t i = 1; i < nodes.size(); ++i) made.push_back(dotted(nodes[i]));
    return ast_->make(head, at, made, ast_->node(node).flag);
  }
  if (head == Head::call && ast_->head(nodes[0]) == Head::interpolate && ast_->child_count(nodes[0]) == 1) {
    made.push_back(ast_->child(nodes[0], 0));
    for (std::size_t i = 1; i < nodes.size(); ++i) made.push_back(dotted(nodes[i]));
    return ast_->make(Head::call, at, made);
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool callee = i == 0 && (head == Head::call || head == Head::dot_call);
    const bool op = (head == Head::op_assign || head == Head::dot_op_assign) && i == 0;
    const bool link = head == Head::comparison && i % 2 == 1;
    if (link) {
      const auto text = identifier_text(*ast_, nodes[i]);
      made.push_back(text.empty() || text[0] == '.' ? nodes[i]
                                                    : ast_->identifier("." + std::string(text), span(nodes[i])));
    } else {
      made.push_back(callee || op ? nodes[i] : dotted(nodes[i]));
    }
  }
  switch (head) {
    case Head::call: {
      const auto text = identifier_text(*ast_, nodes[0]);
      const char first = text.empty() ? 'a' : text[0];
      const bool is_operator = !(std::isalpha(static_cast<unsigned char>(first)) != 0 || first == '_' || first < 0);
      if (text == ":") return ast_->make(Head::call, at, made);  // a range stays one
      return ast_->make(Head::dot_call, at, made, is_operator ? 1 : 0);
    }
    case Head::and_and:
    case Head::or_or: {
      made.insert(made.begin(), ast_->identifier(head == Head::and_and ? "&&" : "||", at));
      return ast_->make(Head::dot_call, at, made, 1);
    }
    case Head::assign:
      return ast_->make(Head::dot_assign, at, made);
    case Head::op_assign:
      return ast_->make(Head::dot_op_assign, at, made);
    default:
      return ast_->make(head, at, made, ast_->node(node).flag);
  }
}

Form* Desugar::macro_dot(NodeId, std::span<const NodeId> arguments) { return expression(dotted(arguments[0])); }

}  // namespace slope::lower
