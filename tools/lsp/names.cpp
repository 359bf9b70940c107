// Questions about names: where they are defined, read and called.
#include <algorithm>
#include <map>
#include <set>

#include "lang/syntax/lexer.hpp"

#include "tools/lsp/document.hpp"
#include "tools/tools.hpp"

namespace slope::api::tools::lsp {

namespace {

// A macro's own definition has its name without the `@`.
std::uint32_t name_begin(const Document& document, const Occurrence& each) {
  return each.begin < document.text().size() && document.text().all()[each.begin] == '@' ? each.begin + 1 : each.begin;
}

std::vector<const Occurrence*> same_name(const Document& document, std::size_t offset) {
  std::vector<const Occurrence*> found;
  const Occurrence* here = document.scopes().at(offset);
  if (!here) return found;
  for (const Occurrence& each : document.scopes().occurrences())
    if (each.symbol == here->symbol) found.push_back(&each);
  return found;
}

Json place(const Document& document, std::size_t begin, std::size_t end) {
  return Json::object({{"uri", document.uri()}, {"range", document.text().range(begin, end)}});
}

bool is_identifier(const std::string& name) {
  if (name.empty()) return false;
  syntax::Ast ast;
  const syntax::LexResult lexed = syntax::lex(name, 0, ast);
  return lexed.diagnostics.empty() && lexed.tokens.size() == 2 &&
         lexed.tokens[0].kind == syntax::TokenKind::identifier && lexed.tokens[0].end == name.size();
}

}  // namespace

Json references(const Document& document, std::size_t offset, bool with_declaration) {
  Json found = Json::array();
  for (const Occurrence* each : same_name(document, offset))
    if (with_declaration || !each->is_definition) found.push(place(document, name_begin(document, *each), each->end));
  return found;
}

Json highlights(const Document& document, std::size_t offset) {
  Json found = Json::array();
  for (const Occurrence* each : same_name(document, offset))
    found.push(Json::object({{"range", document.text().range(name_begin(document, *each), each->end)},
                             {"kind", each->is_write || each->is_definition ? 3 : 2}}));
  return found;
}

Json rename_range(const Document& document, std::size_t offset, std::string& refused) {
  const Occurrence* here = document.scopes().at(offset);
  if (!document.parsed().ok()) {
    refused = "the text has errors of syntax; renaming could miss names";
  } else if (!here) {
    refused = "there is no name here";
  } else if (const NameSymbol& symbol = document.scopes().symbols()[here->symbol]; symbol.kind == SymbolKind::field) {
    refused = "`" + symbol.name +
              "` is a field; fields of several types may have this name, and only running the "
              "program tells which is meant";
  } else if (!symbol.is_defined) {
    refused = "`" + symbol.name + "` is not defined in this document";
  } else {
    return document.text().range(name_begin(document, *here), here->end);
  }
  return Json();
}

Json renamed(const Document& document, std::size_t offset, const std::string& name, std::string& refused) {
  if (rename_range(document, offset, refused).is_null()) return Json();
  if (!is_identifier(name)) {
    refused = "`" + name + "` is not a name";
    return Json();
  }
  // A name that already means something where the old one stands would be captured.
  const auto all = same_name(document, offset);
  const NodeId statement = [&] {
    const auto way = document.nodes_at(all.front()->begin);
    return way.size() > 1 ? way[1] : way[0];
  }();
  const bool is_global = document.scopes().symbols()[all.front()->symbol].kind != SymbolKind::local &&
                         document.scopes().symbols()[all.front()->symbol].kind != SymbolKind::parameter &&
                         document.scopes().symbols()[all.front()->symbol].kind != SymbolKind::type_parameter;
  const Span within = document.ast().node(statement).span;
  for (const Occurrence& each : document.scopes().occurrences()) {
    const NameSymbol& other = document.scopes().symbols()[each.symbol];
    if (other.name != name || other.kind == SymbolKind::field) continue;
    if (is_global || (each.begin >= within.begin && each.end <= within.end)) {
      refused = "`" + name + "` already names something here";
      return Json();
    }
  }
  Json edits = Json::array();
  for (const Occurrence* each : all)
    edits.push(
        Json::object({{"range", document.text().range(name_begin(document, *each), each->end)}, {"newText", name}}));
  return Json::object({{"changes", Json::object({{document.uri(), std::move(edits)}})}});
}

Json definition_places(Document& document, std::size_t offset) {
  Json found = Json::array();
  std::size_t begin = 0;
  const std::string word(document.text().word(offset, begin));
  if (const Occurrence* here = document.scopes().at(offset)) {
    const NameSymbol& symbol = document.scopes().symbols()[here->symbol];
    const bool is_local = symbol.kind == SymbolKind::local || symbol.kind == SymbolKind::parameter;
    for (const Occurrence* each : same_name(document, offset)) {
      if (!each->is_definition) continue;
      found.push(place(document, name_begin(document, *each), each->end));
      if (is_local) break;  // its first assignment
    }
  }
  if (!found.items().empty() || word.empty() || !document.analysis().engine()) return found;
  // Methods that the document's definitions gave to names of the library.
  detail::EngineState& engine = detail::Access::state(*document.analysis().engine());
  detail::Entry entry(engine);
  const detail::RawValue v = detail::value_of_path(engine, word);
  if (!v.defined()) return found;
  for (const Method* method : detail::current_methods(engine, v))
    if (const Definition* definition = document.analysis().of_file(method->span.file))
      found.push(place(document, definition->begin + method->span.begin, definition->begin + method->span.end));
  return found;
}

// --- calls ---

namespace {

Json hierarchy_item(const Document& document, const Definition& definition, const std::string& name) {
  // Where the name is, behind the documentation.
  std::size_t begin = definition.begin, end = definition.begin;
  for (const Occurrence& each : document.scopes().occurrences()) {
    const bool is_name = each.begin >= definition.begin && each.end <= definition.end() &&
                         document.scopes().symbols()[each.symbol].name == name;
    if (is_name && (end == begin || each.begin < begin)) begin = each.begin, end = each.end;
  }
  return Json::object({{"name", name},
                       {"kind", 12},
                       {"uri", document.uri()},
                       {"range", document.text().range(definition.begin, definition.end())},
                       {"selectionRange", document.text().range(begin, end)}});
}

std::string name_of(const Definition& definition) { return definition.paths.empty() ? "" : definition.paths.front(); }

}  // namespace

Json call_hierarchy(Document& document, std::size_t offset) {
  std::size_t begin = 0;
  const std::string word(document.text().word(offset, begin));
  Json items = Json::array();
  for (const Definition& definition : document.analysis().definitions())
    if (!word.empty() && name_of(definition) == word) items.push(hierarchy_item(document, definition, word));
  return items;
}

Json calls(Document& document, const Json& item, bool incoming) {
  const std::string& wanted = item["name"].text();
  const auto& definitions = document.analysis().definitions();
  const Scopes& scopes = document.scopes();
  std::map<const Definition*, std::vector<Json>> places;
  for (const Occurrence& each : scopes.occurrences()) {
    if (!each.is_call) continue;
    const Definition* in = document.analysis().at(each.begin);
    if (!in) continue;
    const std::string& callee = scopes.symbols()[each.symbol].name;
    const Json range = document.text().range(each.begin, each.end);
    if (incoming) {
      if (callee == wanted) places[in].push_back(range);
    } else if (name_of(*in) == wanted) {
      for (const Definition& definition : definitions)
        if (name_of(definition) == callee) places[&definition].push_back(range);
    }
  }
  Json found = Json::array();
  for (const Definition& definition : definitions) {
    const auto at = places.find(&definition);
    if (at == places.end()) continue;
    found.push(Json::object({{incoming ? "from" : "to", hierarchy_item(document, definition, name_of(definition))},
                             {"fromRanges", Json::array(at->second)}}));
  }
  return found;
}

}  // namespace slope::api::tools::lsp
