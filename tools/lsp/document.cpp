#include "tools/lsp/document.hpp"

#include "tools/tools.hpp"

namespace slope::api::tools::lsp {

void Document::touch() {
  parsed_ = nullptr;
  scopes_.reset();
  is_analysis_current_ = false;
  is_published = false;
  changed_at_ = Clock::now();
}

void Document::set(std::string text) {
  text_.set(std::move(text));
  touch();
}

void Document::change(const Json& changes) {
  for (const Json& change : changes.items()) text_.change(change);
  touch();
}

const syntax::ParseResult& Document::parsed() const {
  if (!parsed_) {
    SourceMap sources;
    const FileId file = sources.add("<text>", text_.all());
    parsed_ = std::make_shared<const syntax::ParseResult>(syntax::parse(sources, file));
  }
  return *parsed_;
}

const Scopes& Document::scopes() const {
  if (!scopes_) scopes_.emplace(parsed().ast);
  return *scopes_;
}

Analysis& Document::analysis() {
  if (!is_analysis_current_) {
    parsed();
    analysis_.update(text_.all(), parsed_);
    is_analysis_current_ = true;
  }
  return analysis_;
}

Json Document::problems() {
  Json all = Json::array();
  const auto add = [&](std::size_t begin, std::size_t end, bool is_error, const std::string& code,
                       const std::string& message) {
    Json problem = Json::object({{"range", text_.range(begin, end)},
                                 {"severity", is_error ? 1 : 2},
                                 {"source", "slope"},
                                 {"message", message}});
    if (!code.empty()) problem.set("code", code);
    all.push(std::move(problem));
  };
  for (const Diagnostic& each : parsed().diagnostics)
    add(each.span.begin, std::max(each.span.end, each.span.begin), each.severity == Severity::error, "",
        each.help.empty() ? each.message : each.message + "\n" + each.help);
  const Analysis& known = analysis();
  for (const Definition& definition : known.definitions()) {
    if (!parsed().ok() && text_.view(definition.begin, definition.end()) != definition.text) continue;
    for (const Finding& each : definition.findings)
      add(definition.begin + each.begin, definition.begin + each.end, each.is_error, each.code, each.message);
  }
  if (parsed().ok())
    for (const Finding& each : known.undefined_names(scopes()))
      add(each.begin, each.end, each.is_error, each.code, each.message);
  return all;
}

std::vector<NodeId> Document::nodes_at(std::size_t offset) const {
  std::vector<NodeId> way{ast().root};
  for (bool deeper = true; deeper;) {
    deeper = false;
    for (const NodeId child : ast().children(way.back())) {
      const Span span = ast().node(child).span;
      if (child == no_node || offset < span.begin || offset >= span.end) continue;
      way.push_back(child);
      deeper = true;
      break;
    }
  }
  return way;
}

std::string_view Document::text_of(NodeId node) const {
  const Span span = ast().node(node).span;
  return text_.view(span.begin, span.end);
}

std::string documentation(Document& document, const std::string& name) {
  Engine* engine = document.analysis().engine();
  if (!engine) return "";
  detail::EngineState& state = detail::Access::state(*engine);
  detail::Entry entry(state);
  std::string text = detail::help_text(state, name);
  // A method of the document ran as a text of its own; the editor knows its place.
  const std::string place = " @ " + document.uri() + ":";
  for (std::size_t at = text.find(place); at != std::string::npos; at = text.find(place, at))
    text.erase(at, std::min(text.find('\n', at), text.size()) - at);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

std::vector<std::string> field_names(Engine& engine, const std::string& type) {
  std::vector<std::string> names;
  const Result<Value> made = engine.run(type, "<type>");
  if (!made.ok()) return names;
  detail::EngineState& state = detail::Access::state(engine);
  detail::Entry entry(state);
  const detail::RawValue v = detail::Access::raw(made.value());
  if (!v.defined() || !state.runtime.is_type_value(v)) return names;
  std::vector<const Type*> pending{v.as_type};
  while (!pending.empty()) {
    const Type* next = pending.back();
    pending.pop_back();
    while (const UnionAllType* all = as_union_all(next)) next = all->body;
    if (const UnionType* all = as_union(next)) pending.insert(pending.end(), all->members.begin(), all->members.end());
    const DataType* data = as_data(next);
    if (!data) continue;
    for (const Field& field : data->fields)
      if (field.name) names.push_back(field.name->name);
    if (data->fields.empty())
      for (const Symbol* name : data->name->field_names) names.push_back(name->name);
  }
  return names;
}

}  // namespace slope::api::tools::lsp
