// What the compiler knows of a text, as it changes.
//
// The definitions of the text run in an engine of their own, so that nothing of an earlier version or of another
// document stays. Where a version differs only in bodies of functions, their methods are replaced in the engine that
// there is; else a new engine takes its place, once it has run everything. What was inferred of a definition holds until
// it, or something that it mentions, changes.
//
// The work is done in small steps, so that the server answers between them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "embed/engine_state.hpp"
#include "lang/syntax/parse.hpp"
#include "tools/lsp/definitions.hpp"
#include "tools/lsp/scopes.hpp"

namespace slope::api::tools::lsp {

class Analysis {
 public:
  explicit Analysis(std::string name);  // of the document, its URI or path
  ~Analysis();

  // A new version. Of one that does not parse only the places of definitions are taken, as far as they are still there.
  void update(std::string_view text, std::shared_ptr<const syntax::ParseResult> parsed);
  bool step();  // does a little work; false: there is none
  bool is_done() const;

  // The engine that answers questions: it has run the definitions of the last version, or one before. Null at first.
  Engine* engine() { return engine_.get(); }
  const std::vector<Definition>& definitions() const { return definitions_; }
  const Definition* at(std::size_t offset) const;
  // The type of an expression [begin, end) of the document, and of the smallest typed one around an offset.
  const TypedSpan* type_of(std::size_t begin, std::size_t end) const;
  // Names that a text reads and that nothing defines: [begin, end) and a message, bytes of the document.
  std::vector<Finding> undefined_names(const Scopes& scopes) const;
  bool is_known(const std::string& module, const std::string& name) const;
  // The type of an expression of the text at top level, by inference alone; empty when it cannot be told.
  std::string type_of_expression(const std::string& expression) const;

  // Where the definition with a method of these coordinates stands now; null when it is none of the text.
  const Definition* of_file(std::uint32_t file) const;

  std::size_t inferred = 0;  // definitions inferred so far, for tests

 private:
  void relocate(std::string_view text, const syntax::Ast& ast);
  // What the new definitions keep of the old ones; true: the engine can go on, only functions' bodies changed.
  bool take_over(std::vector<Definition>& fresh, std::vector<std::string>& changed) const;
  void mark_dependents(std::vector<std::string> changed);
  void declare_globals();
  void run(Definition& definition);
  void note_failure(Definition& definition, const Error& error);
  bool assigns(const std::string& name) const;

  std::string name_;
  std::unique_ptr<Engine> engine_, next_;
  std::vector<Definition> definitions_;
  std::size_t to_run_ = 0;       // the first that may not have run
  std::size_t to_infer_ = 0;     // the first that may not be analysed
  bool imports_failed_ = false;  // then names may come from there
  std::shared_ptr<const syntax::ParseResult> parsed_;
};

}  // namespace slope::api::tools::lsp
