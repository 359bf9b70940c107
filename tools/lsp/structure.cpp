// Questions about the structure of a text: symbols, folding, selections, kinds of names, layout.
#include <algorithm>

#include "tools/lsp/document.hpp"
#include "tools/tools.hpp"

namespace slope::api::tools::lsp {

namespace {

// The protocol's kinds of symbols.
enum : int {
  kind_module = 2,
  kind_field = 8,
  kind_function = 12,
  kind_variable = 13,
  kind_constant = 14,
  kind_struct = 23
};

struct Outline {
  std::string name, detail;
  int kind = kind_variable;
  Span span, selection;
  std::vector<Outline> inner;
};

class OutlineReader {
 public:
  explicit OutlineReader(const Document& document) : document_(document), ast_(document.ast()) {}

  std::vector<Outline> of(NodeId body) const {
    std::vector<Outline> found;
    for (const NodeId statement : ast_.children(body)) add(statement, found);
    return found;
  }

 private:
  void add(NodeId statement, std::vector<Outline>& found) const {
    NodeId node = statement;
    while (ast_.head(node) == Head::macrocall && ast_.child_count(node) > 1) node = ast_.children(node).back();
    Outline made;
    made.span = ast_.node(statement).span;
    NodeId named = ast_.child(node, 0);
    switch (ast_.head(node)) {
      case Head::function:
        made.kind = kind_function;
        break;
      case Head::macro_:
        made.kind = kind_function;
        break;
      case Head::struct_:
      case Head::abstract_:
      case Head::primitive_:
        made.kind = kind_struct;
        break;
      case Head::module_:
        made.kind = kind_module;
        made.inner = of(ast_.child(node, 1));
        break;
      case Head::const_:
        made.kind = kind_constant;
        named = ast_.child(named, 0);
        break;
      case Head::assign:
        made.kind = is_short_function(ast_, node) ? kind_function : kind_variable;
        break;
      default:
        return;
    }
    const NodeId id = defined_identifier(ast_, named);
    if (id == no_node) return;
    made.name = (ast_.head(node) == Head::macro_ ? "@" : "") + std::string(ast_.name_of(id));
    made.selection = ast_.node(id).span;
    if (made.selection.begin < made.span.begin || made.selection.end > made.span.end) made.selection = made.span;
    if (made.kind == kind_function) {
      const Span signature = ast_.node(named).span;
      const std::string_view text = document_.text().view(signature.begin, signature.end);
      made.detail = std::string(text.substr(0, text.find('\n')));
    }
    if (ast_.head(node) == Head::struct_) add_fields(ast_.child(node, 1), made);
    found.push_back(std::move(made));
  }

  void add_fields(NodeId body, Outline& made) const {
    for (NodeId field : ast_.children(body)) {
      const Span span = ast_.node(field).span;
      while (ast_.head(field) == Head::const_ || (ast_.head(field) == Head::assign && !is_short_function(ast_, field)))
        field = ast_.child(field, 0);
      if (ast_.head(field) == Head::type_assert) field = ast_.child(field, 0);
      if (ast_.head(field) == Head::identifier)
        made.inner.push_back({std::string(ast_.name_of(field)), "", kind_field, span, ast_.node(field).span, {}});
    }
  }

  const Document& document_;
  const syntax::Ast& ast_;
};

Json to_json(const Document& document, const std::vector<Outline>& outlines) {
  Json all = Json::array();
  for (const Outline& each : outlines) {
    Json made = Json::object({{"name", each.name},
                              {"kind", each.kind},
                              {"range", document.range(each.span)},
                              {"selectionRange", document.range(each.selection)}});
    if (!each.detail.empty()) made.set("detail", each.detail);
    if (!each.inner.empty()) made.set("children", to_json(document, each.inner));
    all.push(std::move(made));
  }
  return all;
}

bool contains_in_order(const std::string& name, const std::string& query) {
  std::size_t at = 0;
  for (const char c : name)
    if (at < query.size() &&
        std::tolower(static_cast<unsigned char>(c)) == std::tolower(static_cast<unsigned char>(query[at])))
      ++at;
  return at == query.size();
}

}  // namespace

Json document_symbols(const Document& document) {
  return to_json(document, OutlineReader(document).of(document.ast().root));
}

void workspace_symbols(const Document& document, const std::string& query, Json& found) {
  const auto add = [&](const auto& self, const std::vector<Outline>& outlines, const std::string& container) -> void {
    for (const Outline& each : outlines) {
      if (contains_in_order(each.name, query)) {
        Json made = Json::object(
            {{"name", each.name},
             {"kind", each.kind},
             {"location", Json::object({{"uri", document.uri()}, {"range", document.range(each.selection)}})}});
        if (!container.empty()) made.set("containerName", container);
        found.push(std::move(made));
      }
      self(self, each.inner, each.name);
    }
  };
  add(add, OutlineReader(document).of(document.ast().root), "");
}

Json folding_ranges(const Document& document) {
  const syntax::Ast& ast = document.ast();
  const Text& text = document.text();
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  const auto walk = [&](const auto& self, NodeId node) -> void {
    const Span span = ast.node(node).span;
    switch (ast.head(node)) {
      case Head::toplevel:
      case Head::block:
      case Head::error:
        break;
      default: {
        const std::size_t first = text.line_of(span.begin);
        const std::size_t last = text.line_of(span.end > span.begin ? span.end - 1 : span.begin);
        if (last > first + 1 || (last == first + 1 && ast.child_count(node) > 1)) ranges.push_back({first, last - 1});
      }
    }
    for (const NodeId child : ast.children(node)) self(self, child);
  };
  walk(walk, ast.root);
  Json found = Json::array();
  std::sort(ranges.begin(), ranges.end());
  ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
  for (const auto& [first, last] : ranges)
    if (last > first) found.push(Json::object({{"startLine", first}, {"endLine", last}}));
  const auto is_comment = [&](std::size_t line) {
    const std::size_t at = text.all().find_first_not_of(" \t", text.line_start(line));
    return at != std::string::npos && at < text.line_start(line + 1) && text.all()[at] == '#';
  };
  for (std::size_t line = 0; line < text.line_count(); ++line) {
    if (!is_comment(line)) continue;
    const std::size_t first = line;
    while (line + 1 < text.line_count() && is_comment(line + 1)) ++line;
    if (line > first) found.push(Json::object({{"startLine", first}, {"endLine", line}, {"kind", "comment"}}));
  }
  return found;
}

Json selection_range(const Document& document, std::size_t offset) {
  std::size_t begin = 0;
  const std::string_view word = document.text().word(offset, begin);
  std::vector<std::pair<std::size_t, std::size_t>> spans;
  for (const NodeId node : document.nodes_at(word.empty() ? offset : begin)) {
    const Span span = document.ast().node(node).span;
    const std::pair<std::size_t, std::size_t> next{span.begin, span.end};
    const bool is_inside = spans.empty() || (next != spans.back() && next.first >= spans.back().first &&
                                             next.second <= spans.back().second);
    if (is_inside && next.second > next.first) spans.push_back(next);
  }
  if (spans.empty()) spans.push_back({offset, offset});
  Json made;
  for (const auto& [first, last] : spans) {
    Json next = Json::object({{"range", document.text().range(first, last)}});
    if (!made.is_null()) next.set("parent", std::move(made));
    made = std::move(next);
  }
  return made;
}

// --- kinds of names ---

namespace {

constexpr const char* token_kinds[] = {"variable", "parameter", "typeParameter", "function",
                                       "type",     "namespace", "macro",         "property"};

int token_kind(const NameSymbol& symbol, bool is_call) {
  switch (symbol.kind) {
    case SymbolKind::global:
      return is_call ? 3 : 0;
    case SymbolKind::local:
      return 0;
    case SymbolKind::parameter:
      return 1;
    case SymbolKind::type_parameter:
      return 2;
    case SymbolKind::function:
      return 3;
    case SymbolKind::type:
      return 4;
    case SymbolKind::module:
      return 5;
    case SymbolKind::macro:
      return 6;
    case SymbolKind::field:
      return 7;
  }
  return 0;
}

}  // namespace

Json semantic_legend() {
  Json kinds = Json::array();
  for (const char* kind : token_kinds) kinds.push(kind);
  return Json::object({{"tokenTypes", std::move(kinds)}, {"tokenModifiers", Json::array({"definition"})}});
}

Json semantic_tokens(const Document& document) {
  Json data = Json::array();
  std::size_t last_line = 0, last_column = 0, last_end = 0;
  for (const Occurrence& each : document.scopes().occurrences()) {
    if (each.begin < last_end) continue;
    const NameSymbol& symbol = document.scopes().symbols()[each.symbol];
    const Json begin = document.text().position(each.begin);
    const std::size_t line = begin["line"].size_number(), column = begin["character"].size_number();
    const std::size_t end = document.text().position(each.end)["character"].size_number();
    if (end <= column) continue;
    data.push(line - last_line);
    data.push(line == last_line ? column - last_column : column);
    data.push(end - column);
    data.push(token_kind(symbol, each.is_call));
    data.push(each.is_definition ? 1 : 0);
    last_line = line;
    last_column = column;
    last_end = each.end;
  }
  return Json::object({{"data", std::move(data)}});
}

// --- layout ---

// Lines stay lines, so each that changes is an edit of its own; but blank lines may go and come.
Json formatted(const Document& document, std::size_t first_line, std::size_t last_line) {
  Json edits = Json::array();
  const std::string& text = document.text().all();
  if (text.empty()) return edits;
  const Result<std::string> laid_out = format(text);
  if (!laid_out.ok() || laid_out.value() == text) return edits;
  const Text fresh(laid_out.value());
  const Text& old = document.text();
  const auto line_text = [](const Text& of, std::size_t line) {
    return of.view(of.line_start(line), of.line_start(line + 1));
  };
  const auto is_blank = [](std::string_view line) {
    return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
  };
  // Lines with text come in the same order and number in both.
  std::size_t at_old = 0, at_new = 0;
  while (at_old < old.line_count() || at_new < fresh.line_count()) {
    std::size_t end_old = at_old, end_new = at_new;
    while (end_old < old.line_count() && is_blank(line_text(old, end_old))) ++end_old;
    while (end_new < fresh.line_count() && is_blank(line_text(fresh, end_new))) ++end_new;
    const std::size_t next_old = std::min(end_old + 1, old.line_count());
    const std::size_t next_new = std::min(end_new + 1, fresh.line_count());
    const std::size_t from = old.line_start(at_old), to = old.line_start(next_old);
    const std::string_view made = fresh.view(fresh.line_start(at_new), fresh.line_start(next_new));
    if (old.view(from, to) != made && at_old <= last_line && next_old > first_line)
      edits.push(Json::object({{"range", old.range(from, to)}, {"newText", made}}));
    at_old = next_old;
    at_new = next_new;
  }
  return edits;
}

}  // namespace slope::api::tools::lsp
