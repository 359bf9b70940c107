// Questions whose answers need the engine: hover, completion, signatures, types beside names, changes that mend.
#include <algorithm>
#include <cctype>
#include <set>

#include "lang/syntax/lexer.hpp"
#include "tools/lsp/document.hpp"
#include "tools/tools.hpp"

namespace slope::api::tools::lsp {

using syntax::Token;
using syntax::TokenKind;

namespace {

// The text from the statement at top level that contains the offset (as far as the tree knows) to the end of its lines:
// what completion needs to see.
std::pair<std::size_t, std::size_t> surroundings(const Document& document, std::size_t offset) {
  constexpr std::size_t lines = 200;
  const Text& text = document.text();
  const std::size_t line = text.line_of(offset);
  std::size_t begin = text.line_start(line > lines ? line - lines : 0);
  for (const NodeId statement : document.ast().children(document.ast().root)) {
    const Span span = document.ast().node(statement).span;
    if (span.begin <= offset && span.begin > begin && document.ast().head(statement) != Head::error) begin = span.begin;
  }
  return {begin, text.line_start(line + lines)};
}

// The right side of the last assignment of a global.
std::string_view assigned_expression(const Document& document, const std::string& name) {
  const syntax::Ast& ast = document.ast();
  std::string_view found;
  for (NodeId statement : ast.children(ast.root)) {
    if (ast.head(statement) == Head::const_) statement = ast.child(statement, 0);
    if (ast.head(statement) == Head::assign && ast.name_of(ast.child(statement, 0)) == name)
      found = document.text_of(ast.child(statement, 1));
  }
  return found;
}

std::string global_type(Document& document, const std::string& name) {
  const std::string_view expression = assigned_expression(document, name);
  if (expression.empty()) return "";
  const std::string type = document.analysis().type_of_expression(std::string(expression));
  return type == "Any" ? "" : type;
}

// The smallest typed expression around an offset.
const TypedSpan* typed_around(const Definition& definition, std::size_t offset) {
  const TypedSpan* found = nullptr;
  for (const TypedSpan& each : definition.types) {
    if (definition.begin + each.begin > offset || offset >= definition.begin + each.end) continue;
    if (!found || each.end - each.begin < found->end - found->begin) found = &each;
  }
  return found;
}

// The type of a name in a definition, or what is known of it nearest before the offset.
std::string local_type(Document& document, const std::string& name, std::size_t offset) {
  const Definition* definition = nullptr;
  for (const Definition& each : document.analysis().definitions())
    if (each.begin <= offset) definition = &each;
  if (!definition) return "";
  const TypedSpan* found = nullptr;
  for (const TypedSpan& each : definition->types)
    if (definition->text.compare(each.begin, each.end - each.begin, name) == 0 &&
        (!found || definition->begin + each.begin <= offset))
      found = &each;
  return found ? found->type : "";
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80) != 0; }

// The expression that ends at the offset: names, dots, calls and indices.
std::string_view owner_before(std::string_view text, std::size_t end) {
  std::size_t at = end;
  while (at > 0) {
    if (text[at - 1] == ')' || text[at - 1] == ']') {
      std::size_t depth = 0;
      while (at > 0) {
        const char c = text[--at];
        if (c == ')' || c == ']') ++depth;
        if ((c == '(' || c == '[') && --depth == 0) break;
        if (c == '\n' || c == '"') return {};
      }
      if (at > 0 && (is_word(text[at - 1]) || text[at - 1] == ')' || text[at - 1] == ']')) continue;
      break;
    }
    const std::size_t before = at;
    while (at > 0 && is_word(text[at - 1])) --at;
    if (at == before || at == 0 || text[at - 1] != '.') break;
    --at;
  }
  return text.substr(at, end - at);
}

// Its type, where the variables in it have known types: each stands for a value of its type.
std::string owner_type(Document& document, std::string_view owner, std::size_t offset) {
  std::string expression;
  bool any = false;
  for (std::size_t i = 0; i < owner.size();) {
    if (!is_word(owner[i])) {
      expression += owner[i++];
      continue;
    }
    std::size_t end = i;
    while (end < owner.size() && is_word(owner[end])) ++end;
    const std::string word(owner.substr(i, end - i));
    const bool is_field = i > 0 && owner[i - 1] == '.';
    const std::string type = is_field ? "" : local_type(document, word, offset);
    expression += type.empty() ? word : "(Base.Ref{Any}()[]::" + type + ")";
    any = any || !type.empty();
    i = end;
  }
  const std::string type = any ? document.analysis().type_of_expression(expression) : "";
  return type == "Any" ? "" : type;
}

// Of a variable where it stands, or else where inference knows it: what destructuring makes has a type where it is used.
std::string variable_type(Document& document, const Occurrence& here) {
  if (const TypedSpan* typed = document.analysis().type_of(here.begin, here.end)) return typed->type;
  if (document.scopes().symbols()[here.symbol].kind == SymbolKind::global) return "";
  for (const Occurrence& each : document.scopes().occurrences())
    if (each.symbol == here.symbol)
      if (const TypedSpan* typed = document.analysis().type_of(each.begin, each.end)) return typed->type;
  return "";
}

int kind_number(CompletionKind kind) {
  switch (kind) {
    case CompletionKind::keyword:
      return 14;
    case CompletionKind::module:
      return 9;
    case CompletionKind::type:
      return 7;
    case CompletionKind::function:
      return 3;
    case CompletionKind::field:
      return 5;
    case CompletionKind::method:
      return 2;
    case CompletionKind::argument:
      return 10;
    case CompletionKind::path:
      return 17;
    case CompletionKind::macro:
      return 15;
    default:
      return 6;
  }
}

std::string one_line(std::string text) {
  if (const std::size_t end = text.find('\n'); end != std::string::npos) text = text.substr(0, end) + " …";
  return text;
}

}  // namespace

Json hover(Document& document, std::size_t offset) {
  std::size_t begin = 0;
  const std::string word(document.text().word(offset, begin));
  const std::size_t asked = word.empty() ? offset : begin + (word[0] == '@' ? 1 : 0);
  std::string typed, help;
  const Occurrence* here = word.empty() ? nullptr : document.scopes().at(asked);
  const NameSymbol* symbol = here ? &document.scopes().symbols()[here->symbol] : nullptr;
  const bool is_variable = symbol && !here->is_call &&
                           (symbol->kind == SymbolKind::local || symbol->kind == SymbolKind::parameter ||
                            symbol->kind == SymbolKind::global);
  if (is_variable) {
    if (const std::string type = variable_type(document, *here); !type.empty()) typed = word + " :: " + type;
  } else if (const Definition* definition = document.analysis().at(asked)) {
    if (const TypedSpan* found = typed_around(*definition, asked))
      typed = one_line(definition->text.substr(found->begin, found->end - found->begin)) + " :: " + found->type;
  }
  const bool is_local = symbol && (symbol->kind == SymbolKind::local || symbol->kind == SymbolKind::parameter ||
                                   symbol->kind == SymbolKind::type_parameter || symbol->kind == SymbolKind::field);
  if (!word.empty() && !is_local) {
    if (typed.empty() && symbol && symbol->kind == SymbolKind::global && symbol->is_defined)
      if (const std::string type = global_type(document, word); !type.empty()) typed = word + " :: " + type;
    help = documentation(document, word);
    // What the engine says of a variable is only that nothing is documented.
    if (!assigned_expression(document, word).empty() && help.starts_with("No documentation")) help.clear();
  }
  if (typed.empty() && help.empty()) return Json();
  const std::string all = typed + (typed.empty() || help.empty() ? "" : "\n\n") + help;
  return Json::object({{"contents", Json::object({{"kind", "plaintext"}, {"value", all}})}});
}

Json completions(Document& document, std::size_t offset) {
  Json found = Json::array();
  Engine* engine = document.analysis().engine();
  if (!engine) return found;
  const auto [from, to] = surroundings(document, offset);
  const std::string text(document.text().view(from, to));
  Completions made = complete(*engine, text, offset - from);
  std::size_t begin = from + made.begin;
  std::set<std::string> known;
  const auto add = [&](const std::string& label, CompletionKind kind) {
    if (!known.insert(label).second) return;
    const std::string_view typed = document.text().view(begin, offset);
    found.push(Json::object(
        {{"label", label},
         {"kind", kind_number(kind)},
         {"textEdit", Json::object({{"range", document.text().range(begin, offset)},
                                    {"newText", kind == CompletionKind::method ? std::string(typed) : label}})}}));
  };
  // Fields of a variable whose type inference knows.
  if (begin > 0 && document.text().all()[begin - 1] == '.') {
    std::size_t at = 0;
    const std::string owner(document.text().word(begin - 1, at));
    const std::string_view whole = owner_before(document.text().all(), begin - 1);
    if (!whole.empty()) {
      const bool is_name = whole == owner;
      std::string type = is_name ? local_type(document, owner, offset) : owner_type(document, whole, offset);
      if (is_name && type.empty()) type = global_type(document, owner);
      const std::string prefix(document.text().view(begin, offset));
      if (!type.empty())
        for (const std::string& name : field_names(*engine, type))
          if (name.starts_with(prefix)) add(name, CompletionKind::field);
    }
  }
  for (const Completion& each : made.candidates) add(each.text, each.kind);
  return found;
}

Json signature_help(Document& document, std::size_t offset) {
  Engine* engine = document.analysis().engine();
  if (!engine) return Json();
  const auto [from, to] = surroundings(document, offset);
  const std::string_view text = document.text().view(from, offset);
  syntax::Ast ast;
  const std::vector<Token> tokens = syntax::lex(text, 0, ast).tokens;
  std::size_t open = tokens.size(), argument = 0, depth = 0;
  for (; open > 0; --open) {
    const TokenKind kind = tokens[open - 1].kind;
    if (kind == TokenKind::right_paren || kind == TokenKind::right_bracket || kind == TokenKind::right_brace) ++depth;
    if (kind == TokenKind::left_paren || kind == TokenKind::left_bracket || kind == TokenKind::left_brace) {
      if (depth == 0) break;
      --depth;
    }
    if (kind == TokenKind::comma && depth == 0) ++argument;
  }
  if (open < 2 || tokens[open - 1].kind != TokenKind::left_paren) return Json();
  std::size_t name = open - 2;
  if (tokens[name].kind == TokenKind::dot && name > 0) --name;  // f.(
  if (tokens[name].kind != TokenKind::identifier) return Json();
  std::size_t first = name;
  while (first >= 2 && tokens[first - 1].kind == TokenKind::dot && tokens[first - 2].kind == TokenKind::identifier)
    first -= 2;
  const std::string_view path = text.substr(tokens[first].begin, tokens[name].end - tokens[first].begin);
  detail::EngineState& state = detail::Access::state(*engine);
  detail::Entry entry(state);
  const detail::RawValue callee = detail::value_of_path(state, path);
  if (!callee.defined()) return Json();
  Json signatures = Json::array();
  std::size_t active = 0, count = 0;
  bool is_found = false;
  for (const Method* method : detail::current_methods(state, callee)) {
    if (++count > 50) break;
    const std::size_t arity = method->arg_count > 0 ? method->arg_count - 1 : 0;
    if (!is_found && (arity > argument || method->is_vararg)) {
      active = count - 1;
      is_found = true;
    }
    const std::string label = detail::method_signature(*method);
    Json parameters = Json::array();
    // The parts of the label between its commas.
    std::size_t at = label.find('(') + 1;
    int nested = 0;
    for (std::size_t i = at; i < label.size(); ++i) {
      const char c = label[i];
      if (c == '(' || c == '{' || c == '[') ++nested;
      const bool ends = nested == 0 && (c == ',' || c == ';' || c == ')');
      if (c == ')' || c == '}' || c == ']') --nested;
      if (!ends) continue;
      if (i > at) parameters.push(Json::object({{"label", label.substr(at, i - at)}}));
      at = i + 2;
    }
    Json made = Json::object({{"label", label}, {"parameters", std::move(parameters)}});
    if (!method->documentation.empty()) made.set("documentation", method->documentation);
    signatures.push(std::move(made));
  }
  if (signatures.items().empty()) return Json();
  return Json::object(
      {{"signatures", std::move(signatures)}, {"activeSignature", active}, {"activeParameter", argument}});
}

namespace {

// Names of the parameters of the document's functions that have one method.
std::vector<std::string> parameter_names(const Document& document, const Definition& definition) {
  std::vector<std::string> names;
  const syntax::Ast& ast = document.ast();
  NodeId node = definition.node;
  while (ast.head(node) == Head::macrocall && ast.child_count(node) > 1) node = ast.children(node).back();
  const NodeId call = signature_call(ast, ast.child(node, 0));
  if (call == no_node) return names;
  for (NodeId each : ast.children(call).subspan(1)) {
    if (ast.head(each) == Head::parameters) continue;
    if (ast.head(each) == Head::kw) each = ast.child(each, 0);
    if (ast.head(each) == Head::type_assert) each = ast.child(each, 0);
    names.emplace_back(ast.name_of(each));
  }
  return names;
}

}  // namespace

Json inlay_hints(Document& document, std::size_t begin, std::size_t end) {
  Json found = Json::array();
  if (!document.parsed().ok()) return found;
  std::set<std::uint32_t> told;
  Analysis& analysis = document.analysis();
  for (const Occurrence& each : document.scopes().occurrences()) {
    const NameSymbol& symbol = document.scopes().symbols()[each.symbol];
    if (!each.is_write || symbol.kind != SymbolKind::local || !told.insert(each.symbol).second) continue;
    if (each.begin < begin || each.end > end) continue;
    // `x::T = …` says it already.
    if (document.text().all().compare(each.end, 2, "::") == 0) continue;
    if (const TypedSpan* typed = analysis.type_of(each.begin, each.end))
      found.push(
          Json::object({{"position", document.text().position(each.end)}, {"label", "::" + typed->type}, {"kind", 1}}));
  }
  const syntax::Ast& ast = document.ast();
  const auto walk = [&](const auto& self, NodeId node) -> void {
    const Span span = ast.node(node).span;
    if (span.begin > end || (span.end < begin && span.end > span.begin)) return;
    if (ast.head(node) == Head::call && ast.child_count(node) > 2 && ast.head(ast.child(node, 0)) == Head::identifier) {
      const std::string_view name = ast.name_of(ast.child(node, 0));
      const Definition* only = nullptr;
      int methods = 0;
      for (const Definition& definition : analysis.definitions())
        if (definition.kind == Definition::Kind::function && !definition.paths.empty() && definition.paths[0] == name) {
          only = &definition;
          ++methods;
        }
      if (methods == 1 && only->node != node) {
        const std::vector<std::string> names = parameter_names(document, *only);
        std::size_t i = 0;
        for (const NodeId argument : ast.children(node).subspan(1)) {
          if (ast.head(argument) == Head::parameters || ast.head(argument) == Head::kw) continue;
          const Head head = ast.head(argument);
          const bool is_literal = head == Head::integer || head == Head::floating || head == Head::boolean ||
                                  head == Head::string || head == Head::nothing;
          if (is_literal && i < names.size() && !names[i].empty())
            found.push(Json::object({{"position", document.text().position(ast.node(argument).span.begin)},
                                     {"label", names[i] + "="},
                                     {"kind", 2}}));
          ++i;
        }
      }
    }
    for (const NodeId child : ast.children(node)) self(self, child);
  };
  walk(walk, ast.root);
  return found;
}

// --- changes that mend ---

namespace {

struct Change {
  std::size_t begin, end;
  std::string text;
};

Json action(const Document& document, const std::string& title, const std::vector<Change>& changes) {
  Json edits = Json::array();
  for (const Change& each : changes)
    edits.push(Json::object({{"range", document.text().range(each.begin, each.end)}, {"newText", each.text}}));
  return Json::object({{"title", title},
                       {"kind", "quickfix"},
                       {"edit", Json::object({{"changes", Json::object({{document.uri(), std::move(edits)}})}})}});
}

// A call that no method fits, with an array among its arguments: each element may have been meant.
void offer_broadcast(const Document& document, Span span, const std::string& message, Json& found) {
  static constexpr const char* arrays[] = {"::Vector{", "::Matrix{", "::Array{", "::UnitRange{", "::StepRange"};
  if (std::none_of(std::begin(arrays), std::end(arrays),
                   [&](const char* each) { return message.find(each) != std::string::npos; }))
    return;
  const syntax::Ast& ast = document.ast();
  for (const NodeId node : document.nodes_at(span.begin)) {
    const Span own = ast.node(node).span;
    if (own.begin != span.begin || own.end != span.end || ast.head(node) != Head::call) continue;
    const Span callee = ast.node(ast.child(node, 0)).span;
    const std::string name(document.text_of(ast.child(node, 0)));
    if (callee.begin > own.begin)
      found.push(action(document, "Write `." + name + "`: for each element", {{callee.begin, callee.begin, "."}}));
    else if (callee.begin == own.begin && callee.end < own.end)
      found.push(action(document, "Write `" + name + ".(…)`: for each element", {{callee.end, callee.end, "."}}));
    return;
  }
}

bool is_abstract_name(std::string_view name) {
  static constexpr std::string_view known[] = {
      "Any",      "Number",        "Real",           "Integer",        "AbstractFloat", "AbstractString",
      "Function", "AbstractArray", "AbstractVector", "AbstractMatrix", "Signed",        "Unsigned"};
  return std::find(std::begin(known), std::end(known), name) != std::end(known);
}

// Fields without an exact type become parameters: `struct P{T} x::T end`.
void offer_field_types(const Document& document, std::size_t offset, Json& found) {
  const syntax::Ast& ast = document.ast();
  for (const NodeId node : document.nodes_at(offset)) {
    if (ast.head(node) != Head::struct_) continue;
    NodeId signature = ast.child(node, 0);
    if (ast.head(signature) == Head::subtype) signature = ast.child(signature, 0);
    if (ast.head(signature) != Head::identifier) return;
    std::vector<Change> changes;
    std::string parameters;
    int count = 0;
    for (const NodeId field : ast.children(ast.child(node, 1))) {
      const Span span = ast.node(field).span;
      const std::string letter = "T" + std::to_string(count + 1);
      if (ast.head(field) == Head::identifier) {
        changes.push_back({span.end, span.end, "::" + letter});
        parameters += (count++ ? "," : "") + letter;
      } else if (ast.head(field) == Head::type_assert && ast.child_count(field) == 2 &&
                 is_abstract_name(ast.name_of(ast.child(field, 1)))) {
        const Span type = ast.node(ast.child(field, 1)).span;
        const std::string bound(ast.name_of(ast.child(field, 1)));
        changes.push_back({type.begin, type.end, letter});
        parameters += (count++ ? "," : "") + letter + (bound == "Any" ? "" : "<:" + bound);
      }
    }
    if (count == 0) return;
    const Span named = ast.node(signature).span;
    changes.insert(changes.begin(), {named.end, named.end, "{" + parameters + "}"});
    found.push(action(document, "Give the fields exact types: parameters of the struct", changes));
    return;
  }
}

}  // namespace

Json code_actions(Document& document, std::size_t begin, std::size_t end) {
  Json found = Json::array();
  if (!document.parsed().ok()) return found;
  for (const Definition& definition : document.analysis().definitions()) {
    if (definition.begin > end || definition.end() < begin) continue;
    for (const Finding& each : definition.findings) {
      const Span span{0, definition.begin + each.begin, definition.begin + each.end};
      if (each.code == "no-method" && span.begin <= end && span.end >= begin)
        offer_broadcast(document, span, each.message, found);
    }
  }
  offer_field_types(document, begin, found);
  return found;
}

}  // namespace slope::api::tools::lsp
