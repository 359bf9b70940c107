#include "lang/lower/generated.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "lang/ir/passes/passes.hpp"
#include "lang/lower/desugar/desugar.hpp"
#include "lang/lower/emit.hpp"
#include "lang/lower/expr.hpp"
#include "lang/lower/reflect/lowered_code.hpp"
#include "lang/lower/scope.hpp"
#include "lang/lower/state.hpp"
#include "lang/runtime/call_text.hpp"
#include "lang/support/exception_safe.hpp"
#include "lang/syntax/print.hpp"

namespace slope::lower {

namespace {

bool is_generated_condition(const Ast& ast, NodeId node) {
  return ast.head(node) == Head::macrocall && ast.child_count(node) == 1 &&
         identifier_text(ast, ast.child(node, 0)) == "@generated";
}

bool is_function(const Ast& ast, NodeId node) {
  const Head head = ast.head(node);
  return head == Head::function || head == Head::arrow || head == Head::do_ || head == Head::quote ||
         (head == Head::assign && is_short_definition(ast, node));
}

bool contains_generated(const Ast& ast, NodeId node) {
  if (is_leaf(ast.head(node)) || is_function(ast, node)) return false;
  const auto children = ast.children(node);
  if (ast.head(node) == Head::if_ && children.size() >= 2 && is_generated_condition(ast, children[0])) return true;
  return std::any_of(children.begin(), children.end(), [&](NodeId child) { return contains_generated(ast, child); });
}

// The call that `Expr(:meta, :generated, g)` in a body became (lang/lower/expr.cpp), which wants its arguments.
NodeId compilers_generator(const Ast& ast, NodeId body) {
  if (body == no_node || ast.head(body) != Head::block) return no_node;
  for (const NodeId statement : ast.children(body)) {
    if (ast.head(statement) != Head::macrocall || ast.child_count(statement) != 2 ||
        identifier_text(ast, ast.child(statement, 0)) != "@generated")
      continue;
    const NodeId call = ast.child(statement, 1);
    if (ast.head(call) == Head::call && ast.head(ast.child(call, 0)) == Head::value) return call;
  }
  return no_node;
}

// The body as a quotation in which each `if @generated a else b end` is `$(a)`.
NodeId quoted_parts(Ast& ast, NodeId node) {
  if (is_leaf(ast.head(node)) || is_function(ast, node)) return node;
  const syntax::Node original = ast.node(node);
  std::vector<NodeId> children(ast.children(node).begin(), ast.children(node).end());
  if (original.head == Head::if_ && children.size() >= 2 && is_generated_condition(ast, children[0]))
    return ast.make(Head::interpolate, original.span, {&children[1], 1});
  bool changed = false;
  for (NodeId& child : children) {
    const NodeId made = quoted_parts(ast, child);
    changed = changed || made != child;
    child = made;
  }
  return changed ? ast.make(original.head, original.span, children, original.flag) : node;
}

// Fresh names (`gensym`) differ from run to run: they are numbered by where they first stand.
std::string with_numbered_names(const std::string& text) {
  std::string result;
  std::map<std::string, std::size_t> numbers;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    if (text.compare(i, 2, "##") == 0) {
      end = i + 2;
      while (end < text.size() && text[end] != '#' && text[end] != '"' && text[end] != '\n') ++end;
      if (end < text.size() && text[end] == '#')
        for (++end; end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]));) ++end;
    }
    if (end > i && std::isdigit(static_cast<unsigned char>(text[end - 1]))) {
      const std::size_t next = numbers.size();
      result += "##" + std::to_string(numbers.emplace(text.substr(i, end - i), next).first->second);
      i = end;
    } else {
      result += text[i++];
    }
  }
  return result;
}

// One run for one specialisation.
class Generation {
 public:
  Generation(Runtime& runtime, Context& ctx, Specialization& target)
      : runtime_(runtime), ctx_(ctx), target_(target), method_(*target.method) {}

  bool run(Source& source) {
    Rooted result(runtime_.heap);
    result.values.emplace_back();
    if (!call(result.values[0])) return false;
    if (runtime_.check_generators) {
      result.values.emplace_back();
      if (!call(result.values[1])) return false;
      const std::string first = text(result.values[0]);
      const std::string second = text(result.values[1]);
      if (ctx_.failed()) return false;
      if (with_numbered_names(first) != with_numbered_names(second))
        return ctx_.raise_error("the generator of " + call_text(target_) +
                                " returned different code when it ran again:\n" + first + "\n" + second);
    }
    const bool ok =
        is_lowered_code(runtime_, result.values[0]) ? take(result.values[0], source) : lower(result.values[0], source);
    if (ok) source.bytes = ir::byte_count(*source.code);
    return ok;
  }

 private:
  // Static parameters, the callee's type, the arguments' types; a vararg is a tuple of types, as in the method's body.
  bool call(Value& result) {
    Rooted arguments(runtime_.heap);
    for (const Type* t : target_.static_params) arguments.values.push_back(static_value(t));
    const auto& types = target_.types->params;
    for (std::size_t i = 0; i < method_.arg_count; ++i) arguments.values.push_back(runtime_.from_type(types[i]));
    if (method_.is_vararg) {
      Rooted rest(runtime_.heap);
      for (std::size_t i = method_.arg_count; i < types.size(); ++i)
        rest.values.push_back(runtime_.from_type(types[i]));
      Value tuple;
      if (!runtime_.new_tuple(ctx_, rest.values.data(), rest.values.size(), tuple)) return false;
      arguments.values.push_back(tuple);
    }
    const Restored in_world(ctx_.world, std::max(ctx_.world, complete_world()));
    return runtime_.call(ctx_, method_.generator->function, arguments.values.data(), arguments.values.size(), result);
  }

  // The definitions of a package come at once, as in Julia: its generators see those that stand below them, too.
  World complete_world() const {
    const auto& complete = state_of(runtime_).package_worlds;
    if (complete.empty()) return 0;
    const Module* root = method_.module;
    while (root != nullptr && root->parent != nullptr) root = root->parent;
    const auto found = complete.find(root);
    return found == complete.end() ? 0 : found->second;
  }

  // What the name of a static parameter means: a type, or the number or symbol of a value parameter.
  Value static_value(const Type* t) {
    if (const auto* value = as_value(t)) return value->value;
    return runtime_.from_type(t);
  }

  std::string text(Value v) {
    if (is_lowered_code(runtime_, v)) {
      std::string problem;
      const auto code = from_lowered_code(runtime_, v, &method_, problem);
      return code ? ir::print_compact(*code) : problem;
    }
    Ast ast;
    std::string error;
    const NodeId node = from_value(runtime_, ctx_, ast, method_.span, v, nullptr, error);
    return error.empty() ? syntax::to_sexpr(ast, node) : error;
  }

  bool take(Value body, Source& source) {
    std::string problem;
    source.code = from_lowered_code(runtime_, body, &method_, problem);
    return source.code ||
           ctx_.raise_error("the generator of " + call_text(target_) + " returned malformed lowered code: " + problem);
  }

  bool lower(Value body, Source& source) {
    const CollectionPause pause(runtime_.heap);
    LoweringState& state = state_of(runtime_);
    const Restored of_source(state.of_source, true);
    // Macros in what a generator returned may do what they like, as in any code.
    const Restored generating(ctx_.generating, static_cast<GeneratorRun*>(nullptr));
    const bool macro_ran = std::exchange(state.macro_ran, false);
    const std::size_t spliced = state.spliced.values.size();
    const bool ok = lower_body(body, source);
    if (!state.macro_ran) {
      runtime_.outside_heap.remove((state.spliced.values.size() - spliced) * sizeof(Value));
      state.spliced.values.resize(spliced);
    }
    state.macro_ran = state.macro_ran || macro_ran;
    return ok;
  }

  bool lower_body(Value body, Source& source) {
    const auto& written = *static_cast<const MethodSource*>(method_.body->scope.get());
    const SignatureSyntax& signature = *written.signature;
    // A tree of its own for each source: what the generator returned may be changed later, this is a copy of it.
    auto ast = std::make_shared<Ast>();
    Rooted values(runtime_.heap);
    values.values.emplace_back();
    if (!to_value(runtime_, ctx_, *signature.ast, signature.ast->child(signature.definition, 0), values.values[0]))
      return false;
    std::string problem;
    NodeId parts[2];
    parts[0] = from_value(runtime_, ctx_, *ast, method_.span, values.values[0], nullptr, problem);
    if (problem.empty()) parts[1] = from_value(runtime_, ctx_, *ast, method_.span, body, nullptr, problem);
    if (ctx_.failed()) return false;
    if (!problem.empty()) return raise_at(ctx_, method_.span, "the generator returned no code: " + problem);
    if (ast->head(parts[1]) != Head::block) parts[1] = ast->make(Head::block, method_.span, {&parts[1], 1});
    ast->root = ast->make(Head::function, method_.span, parts);
    std::vector<Diagnostic> diagnostics;
    std::shared_ptr<SignatureSyntax> made = parse_signature(ast, ast->root, diagnostics);
    if (made == nullptr) return raise_diagnostics(runtime_, ctx_, diagnostics);
    made->span = method_.span;
    auto unit = lower::lower_body(runtime_, ctx_, method_, ast, made, written, diagnostics);
    if (unit == nullptr) return raise_diagnostics(runtime_, ctx_, diagnostics);
    source.code = std::move(unit);
    return true;
  }

  Runtime& runtime_;
  Context& ctx_;
  Specialization& target_;
  Method& method_;
};

}  // namespace

bool has_generated_part(const Ast& ast, NodeId node) {
  return ast.mentions_generated() && (contains_generated(ast, node) || compilers_generator(ast, node) != no_node);
}

bool define_generator(Runtime& runtime, Context& ctx, Module* module, const SignatureSyntax& of, Value& generator) {
  Ast& ast = *of.ast;
  auto signature = std::make_shared<SignatureSyntax>();
  signature->ast = of.ast;
  signature->span = of.span;
  signature->definition = of.definition;
  signature->callee = ast.identifier("#generator#" + std::to_string(++state_of(runtime).closures), of.span);
  // In the form of Julia's compiler the generator is a function that gets all these, and the names of the arguments.
  const NodeId compilers = ast.mentions_generated() ? compilers_generator(ast, of.body) : no_node;
  std::vector<NodeId> given;
  if (compilers != no_node) given.assign(ast.children(compilers).begin(), ast.children(compilers).end());
  std::vector<NodeId> names;
  const auto add = [&](NodeId pattern, Span at, bool is_vararg) {
    if (compilers != no_node) {
      if (pattern == no_node) pattern = ast.identifier("#argument#" + std::to_string(names.size()), at);
      names.push_back(ast.make(Head::quote, at, {&pattern, 1}));
      given.push_back(pattern);
    }
    ParameterSyntax parameter;
    parameter.pattern = pattern;
    parameter.span = at;
    parameter.is_vararg = is_vararg;
    signature->parameters.push_back(parameter);
  };
  for (const NodeId entry : of.where_variables) {
    BoundSyntax bound;
    if (!parse_bound(ast, entry, bound)) return raise_at(ctx, of.span, "malformed `where`");
    add(bound.name, of.span, false);
  }
  add(of.is_object ? of.object_name : no_node, of.span, false);
  for (const ParameterSyntax& parameter : of.parameters) {
    const bool named = parameter.pattern != no_node && ast.head(parameter.pattern) == Head::identifier;
    add(named ? parameter.pattern : no_node, parameter.span, false);
  }
  signature->body = of.body;
  if (has_generated_part(ast, of.body)) {
    const NodeId parts = quoted_parts(ast, of.body);
    const NodeId quoted = ast.make(Head::quote, of.span, {&parts, 1});
    signature->body = ast.make(Head::block, of.span, {&quoted, 1});
  }
  if (compilers != no_node) {
    given.insert(given.begin() + 2, ast.make(Head::tuple, of.span, names));
    const NodeId call = ast.make(Head::call, of.span, given);
    signature->body = ast.make(Head::block, of.span, {&call, 1});
  }
  return define_methods(runtime, ctx, module, std::move(signature), {}, nullptr, nullptr, generator);
}

bool generate(Runtime& runtime, Context& ctx, Specialization& target, Source& source) {
  return Generation(runtime, ctx, target).run(source);
}

}  // namespace slope::lower
