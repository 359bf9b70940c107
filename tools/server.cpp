// What the language server (stdlib/tools/lsp.slope) needs from the compiler, as natives of Core.
#include <algorithm>

#include "lang/syntax/parse.hpp"
#include "stdlib/native/native.hpp"
#include "tools/tools.hpp"

namespace slope::api {

namespace detail {

namespace {

using stdlib::Call;

// A tuple of tuples.
bool give_rows(Call& call, const std::vector<std::vector<RawValue>>& rows) {
  Rooted made(call.runtime.heap);
  for (const std::vector<RawValue>& row : rows) {
    RawValue tuple;
    if (!call.runtime.new_tuple(call.ctx, row.data(), row.size(), tuple)) return false;
    made.values.push_back(tuple);
  }
  RawValue all;
  return call.runtime.new_tuple(call.ctx, made.values.data(), made.values.size(), all) && call.give(all);
}

// tool_problems(text) → ((begin, end, is a warning, message, hint)…)
bool tool_problems(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "tool_problems", args, count, result);
  std::string_view text;
  if (!call.arity(1) || !call.string(0, text)) return false;
  Runtime& runtime = call.runtime;
  const CollectionPause pause(runtime.heap);
  std::vector<std::vector<RawValue>> rows;
  for (const tools::Problem& problem : tools::syntax_problems(text))
    rows.push_back({runtime.from_int(static_cast<std::int64_t>(problem.begin)),
                    runtime.from_int(static_cast<std::int64_t>(problem.end)), runtime.from_bool(problem.is_warning),
                    runtime.from_string(problem.message), runtime.from_string(problem.hint)});
  return give_rows(call, rows);
}

// tool_format(text) → String
bool tool_format(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "tool_format", args, count, result);
  std::string_view text;
  if (!call.arity(1) || !call.string(0, text)) return false;
  const Result<std::string> made = tools::format(std::string(text));
  if (!made.ok()) return ctx.raise_error(made.error().message);
  return call.give(made.value());
}

// tool_places(name) → ((file, line, column)…): where the methods of a function or the constructors of a type stand.
bool tool_places(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "tool_places", args, count, result);
  std::string_view name;
  if (!call.arity(1) || !call.string(0, name)) return false;
  EngineState& engine = engine_of(ctx);
  const CollectionPause pause(engine.runtime.heap);
  std::vector<std::vector<RawValue>> rows;
  const RawValue v = value_of_path(engine, name);
  if (!v.defined()) return give_rows(call, rows);
  std::set<std::pair<std::string, std::uint32_t>> seen;
  for (const Method* method : current_methods(engine, v)) {
    if (method->span.file == 0) continue;
    const SourceFile& file = engine.runtime.sources.file(method->span.file);
    const LineColumn at = file.line_column(method->span.begin);
    if (!seen.insert({file.name(), at.line}).second) continue;
    rows.push_back({engine.runtime.from_string(file.name()), engine.runtime.from_int(at.line),
                    engine.runtime.from_int(at.column)});
  }
  return give_rows(call, rows);
}

// What the protocol calls the kinds of completions.
std::int64_t kind_number(tools::CompletionKind kind) {
  switch (kind) {
    case tools::CompletionKind::keyword:
      return 14;
    case tools::CompletionKind::module:
      return 9;
    case tools::CompletionKind::type:
      return 7;
    case tools::CompletionKind::function:
      return 3;
    case tools::CompletionKind::field:
      return 5;
    case tools::CompletionKind::method:
      return 2;
    case tools::CompletionKind::argument:
      return 10;
    case tools::CompletionKind::path:
      return 17;
    case tools::CompletionKind::macro:
      return 15;
    default:
      return 6;
  }
}

// tool_completions(text, offset) → (begin, ((text, kind)…))
bool tool_completions(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "tool_completions", args, count, result);
  std::string_view text;
  std::int64_t offset = 0;
  if (!call.arity(2) || !call.string(0, text) || !call.integer(1, offset)) return false;
  EngineState& engine = engine_of(ctx);
  const CollectionPause pause(engine.runtime.heap);
  if (!engine.front) return ctx.argument_error("tool_completions is for the language server");
  const tools::Completions found =
      tools::complete(*engine.front, std::string(text), static_cast<std::size_t>(std::max<std::int64_t>(offset, 0)));
  Rooted rows(engine.runtime.heap);
  for (const tools::Completion& candidate : found.candidates) {
    const RawValue row[] = {engine.runtime.from_string(candidate.text),
                            engine.runtime.from_int(kind_number(candidate.kind))};
    RawValue tuple;
    if (!engine.runtime.new_tuple(ctx, row, 2, tuple)) return false;
    rows.values.push_back(tuple);
  }
  RawValue parts[] = {engine.runtime.from_int(static_cast<std::int64_t>(found.begin)), RawValue()};
  if (!engine.runtime.new_tuple(ctx, rows.values.data(), rows.values.size(), parts[1])) return false;
  RawValue all;
  return engine.runtime.new_tuple(ctx, parts, 2, all) && call.give(all);
}

// tool_assigned(text) → String: the names that the text assigns, a line each
bool tool_assigned(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "tool_assigned", args, count, result);
  std::string_view text;
  return call.arity(1) && call.string(0, text) && call.give(tools::assigned_names(text));
}

const NativeInfo server_natives[] = {
    {"tool_assigned", tool_assigned, effect_all, stdlib::returns_string},
    {"tool_problems", tool_problems, effect_all, nullptr},
    {"tool_format", tool_format, effect_all, stdlib::returns_string},
    {"tool_places", tool_places, effect_all, nullptr},
    {"tool_completions", tool_completions, effect_all, nullptr},
};

}  // namespace

void define_server_natives(EngineState& engine) { stdlib::define_all(engine.runtime, server_natives); }

}  // namespace detail

namespace tools {

using syntax::Head;

std::vector<std::string> definitions_of(std::string_view text) {
  SourceMap sources;
  const FileId file = sources.add("<text>", std::string(text));
  const syntax::ParseResult parsed = syntax::parse(sources, file);
  std::vector<std::string> found;
  if (!parsed.ok()) return found;
  const syntax::Ast& ast = parsed.ast;
  const auto is_definition = [&](syntax::NodeId node) {
    while (ast.head(node) == Head::macrocall && ast.child_count(node) > 1) node = ast.children(node).back();
    switch (ast.head(node)) {
      case Head::function:
      case Head::macro_:
      case Head::struct_:
      case Head::abstract_:
      case Head::primitive_:
      case Head::using_:
      case Head::import_:
        return true;
      case Head::assign: {
        const Head left = ast.head(ast.child(node, 0));
        return left == Head::call || left == Head::where ||
               (left == Head::type_assert && ast.child_count(ast.child(node, 0)) == 2 &&
                ast.head(ast.child(ast.child(node, 0), 0)) == Head::call);
      }
      default:
        return false;
    }
  };
  for (const syntax::NodeId statement : ast.children(ast.root)) {
    if (!is_definition(statement)) continue;
    const Span span = ast.node(statement).span;
    // Blank lines before it keep its line numbers, blanks its columns.
    const std::string_view before = text.substr(0, span.begin);
    std::string own(static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')), '\n');
    own.append(span.begin - (before.rfind('\n') + 1), ' ');
    found.push_back(own + std::string(text.substr(span.begin, span.end - span.begin)) + "\n");
  }
  return found;
}

std::string assigned_names(std::string_view text) {
  SourceMap sources;
  const FileId file = sources.add("<text>", std::string(text));
  const syntax::ParseResult parsed = syntax::parse(sources, file);
  std::set<std::string> names;
  const syntax::Ast& ast = parsed.ast;
  // Whatever stands on a left side, at any depth: rather a name too many than a warning that is wrong.
  const auto collect = [&](const auto& self, syntax::NodeId node) -> void {
    if (ast.head(node) == Head::identifier) names.insert(std::string(ast.name_of(node)));
    for (const syntax::NodeId child : ast.children(node)) self(self, child);
  };
  const auto walk = [&](const auto& self, syntax::NodeId node) -> void {
    switch (ast.head(node)) {
      case Head::assign:
      case Head::global_:
      case Head::local_:
      case Head::const_:
      case Head::struct_:
      case Head::abstract_:
      case Head::module_:
      case Head::function:
      case Head::macro_:
      case Head::import_:
        if (ast.child_count(node) > 0) collect(collect, ast.child(node, 0));
        break;
      default:
        break;
    }
    for (const syntax::NodeId child : ast.children(node)) self(self, child);
  };
  if (parsed.ok()) walk(walk, ast.root);
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : "\n") + name;
  return all;
}

void serve(Engine& engine) { detail::Access::state(engine).front = &engine; }

}  // namespace tools

}  // namespace slope::api
