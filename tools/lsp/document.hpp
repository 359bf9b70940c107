// An open document of the language server: its text, and what was read from it and inferred, when it is wanted.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "lang/syntax/parse.hpp"
#include "tools/lsp/analysis.hpp"
#include "tools/lsp/scopes.hpp"
#include "tools/lsp/text.hpp"

namespace slope::api::tools::lsp {

using syntax::Head;
using syntax::no_node;
using syntax::NodeId;

class Document {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Document(std::string uri) : uri_(std::move(uri)), analysis_(uri_) {}

  const std::string& uri() const { return uri_; }
  const Text& text() const { return text_; }
  void set(std::string text);
  void change(const Json& changes);  // `contentChanges`

  const syntax::Ast& ast() const { return parsed().ast; }
  const syntax::ParseResult& parsed() const;
  const Scopes& scopes() const;
  // The analysis knows the places of this version; what is inferred may be of one before (Analysis::step).
  Analysis& analysis();
  Clock::time_point changed_at() const { return changed_at_; }
  bool is_published = false;  // the problems of this version

  Json problems();  // of syntax, and what is known of the rest

  // The innermost nodes around an offset, outermost first.
  std::vector<NodeId> nodes_at(std::size_t offset) const;
  Json range(Span span) const { return text_.range(span.begin, span.end); }
  std::string_view text_of(NodeId node) const;

 private:
  void touch();

  std::string uri_;
  Text text_;
  Analysis analysis_;
  bool is_analysis_current_ = false;
  Clock::time_point changed_at_ = Clock::now();
  mutable std::shared_ptr<const syntax::ParseResult> parsed_;
  mutable std::optional<Scopes> scopes_;
};

// The engine's questions (embed/engine_state.hpp is for sources alone): documentation of a name as the document sees it.
std::string documentation(Document& document, const std::string& name);
// The names of the fields of a type that is written so.
std::vector<std::string> field_names(Engine& engine, const std::string& type);

// The answers, by request. Null where there is none.
Json hover(Document& document, std::size_t offset);
Json completions(Document& document, std::size_t offset);
Json signature_help(Document& document, std::size_t offset);
Json inlay_hints(Document& document, std::size_t begin, std::size_t end);
Json document_symbols(const Document& document);
void workspace_symbols(const Document& document, const std::string& query, Json& found);
Json folding_ranges(const Document& document);
Json selection_range(const Document& document, std::size_t offset);
Json semantic_tokens(const Document& document);
Json semantic_legend();
Json definition_places(Document& document, std::size_t offset);
Json references(const Document& document, std::size_t offset, bool with_declaration);
Json highlights(const Document& document, std::size_t offset);
Json rename_range(const Document& document, std::size_t offset, std::string& refused);
Json renamed(const Document& document, std::size_t offset, const std::string& name, std::string& refused);
Json formatted(const Document& document, std::size_t first_line, std::size_t last_line);
Json code_actions(Document& document, std::size_t begin, std::size_t end);
Json call_hierarchy(Document& document, std::size_t offset);
Json calls(Document& document, const Json& item, bool incoming);

}  // namespace slope::api::tools::lsp
