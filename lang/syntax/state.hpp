// What the grammar rules share while they parse one text: the tokens, the tree, an operand stack, and the mode, which
// says how the surroundings change the reading of white space and of a few words.
//
// A rule that matches leaves one node id on the operand stack; a form takes what lies above its mark and leaves the
// node made of it. A rule that does not match fails on its first token and leaves the stack as it was, so nothing is
// ever built twice. A rule that fails later throws (x3::expectation_failure from `>`, SyntaxFailure from hand-written
// parsers); the statement list that encloses it reports that and goes on with the next statement. No exception leaves
// parse().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lang/support/diagnostic.hpp"
#include "lang/support/thread_stack.hpp"
#include "lang/syntax/ast.hpp"
#include "lang/syntax/parse.hpp"
#include "lang/syntax/token.hpp"

namespace slope::syntax::grammar {

using Iterator = const Token*;

struct Mode {
  bool newline_is_space = false;  // in parentheses: a line break ends nothing
  bool space_sensitive = false;   // in [ ] and macro arguments: `a -b` are two
  bool in_brackets = false;       // directly in [ ] or a call: `for` ends a macro's arguments
  bool end_is_name = false;       // in an index: `end` and `begin` are values
  bool colon_is_range = true;     // not between `?` and `:`
  bool where_allowed = true;      // not in a where clause's own bounds
};

struct SyntaxFailure {
  Iterator at;
  std::string expected;  // "a condition"; or the whole message if `complete`
  std::string help;
  bool complete = false;
  bool at_line_end = false;
  Iterator shown = nullptr;  // where the reader should look if not at `at`; `expected` is then the whole message
};

// Words that are keywords only in some places.
struct ContextualNames {
  NameId abstract, primitive, mutable_, type, outer, public_;
};

class State {
 public:
  State(std::string_view text, FileId file, Ast& ast, const std::vector<Token>& tokens, const ParseOptions& options,
        std::vector<Diagnostic>& diagnostics);

  Mode mode;
  Ast& ast;
  const std::string_view text;
  const ContextualNames words;
  std::vector<NodeId> operands;
  std::vector<Iterator> openers;   // the keywords or brackets of the forms being parsed
  std::size_t foreign_blocks = 0;  // forms of other languages that were complained of, whose `end` may follow

  Iterator first() const { return tokens_.data(); }
  Iterator last() const { return tokens_.data() + tokens_.size(); }
  Iterator final_token() const { return last() - 1; }

  // nodes
  Span span(Iterator from, Iterator to) const;  // from the token `from` up to the token before `to`
  NodeId make(Head head, Iterator from, Iterator to, std::initializer_list<NodeId> children, std::uint8_t flag = 0);
  NodeId reduce(Head head, Iterator from, Iterator to, std::size_t mark,
                std::uint8_t flag = 0);  // takes operands from `mark`
  NodeId name_leaf(NameId name, Iterator at);
  NodeId name_leaf(std::string_view name, Iterator at) { return name_leaf(ast.intern(name), at); }
  NodeId quoted_name(NameId name, Iterator at);
  NodeId operator_leaf(Iterator at);             // identifier of the operator, without its dot
  std::string operator_text(Iterator at) const;  // with its dot and `=`
  void push(NodeId node) { operands.push_back(node); }
  NodeId pop();

  // looking at tokens
  bool continues(Iterator at) const { return !at->newline_before() || mode.newline_is_space; }
  bool adjacent(Iterator at) const { return !at->space_before(); }
  bool is_closing(Iterator at) const;  // no expression begins here: `)` `,` `;` `end` …
  bool ends_here(Iterator at) const { return !continues(at) || is_closing(at); }
  std::uint32_t newlines_before(Iterator at) const;
  std::uint32_t line_of(Iterator at) const;
  std::string_view word(Iterator at) const;  // the name, keyword or operator as it is written; else empty
  std::uint32_t column_of(Iterator at) const;

  // errors
  [[noreturn]] void fail(Iterator at, std::string expected, std::string help = "");  // "expected …, found …"
  [[noreturn]] void refuse(Iterator at, std::string message, std::string help = "");
  void complain(Iterator from, Iterator to, std::string message, std::string help = "");  // reports and goes on
  void report(const SyntaxFailure& failure);
  // A form that lacks its `end`; and one that has it, whose indentation may tell later which form lacked its own.
  [[noreturn]] void fail_without_end(Iterator at, Iterator opener);
  void note_closed(Iterator opener, Iterator end);
  [[noreturn]] void fail_to_close(Iterator at, Iterator opener, std::string closer, std::string_view what);
  std::string describe(Iterator at) const;
  void ran_out_already() { ran_out_ = true; }  // the lexer has said so
  bool only_ran_out() const { return ran_out_ && !other_errors_; }

  void enter(Iterator at) {
    if (++depth_ > options_.max_nesting || is_below(stack_limit_)) too_deep(at);
  }
  void leave() { --depth_; }
  bool gave_up() const { return gave_up_; }  // nested too deeply, or interrupted: the rest of the text is not read

 private:
  [[noreturn]] void too_deep(Iterator at);
  [[noreturn]] void interrupted(Iterator at);
  NodeId checked(NodeId made, Iterator from);

  const std::vector<Token>& tokens_;
  std::vector<Diagnostic>& diagnostics_;
  FileId file_;
  const ParseOptions& options_;
  Growth growth_;
  std::uint32_t counted_at_ = 0;  // nodes
  std::uint32_t depth_ = 0;
  const char* stack_limit_ = recursion_limit(2);
  bool gave_up_ = false;
  bool told_that_ = false;
  std::optional<std::pair<Iterator, Iterator>> doubtful_;  // the first form whose `end` is indented less than it is
  bool ran_out_ = false;
  bool other_errors_ = false;
  std::vector<std::uint32_t> line_starts_;
};

class ModeGuard {
 public:
  ModeGuard(State& state, Mode mode) : state_(state), saved_(state.mode) { state.mode = mode; }
  explicit ModeGuard(State& state) : ModeGuard(state, state.mode) {}
  ~ModeGuard() { state_.mode = saved_; }
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;

 private:
  State& state_;
  Mode saved_;
};

class NestingGuard {
 public:
  NestingGuard(State& state, Iterator at) : state_(state) { state.enter(at); }
  ~NestingGuard() { state_.leave(); }
  NestingGuard(const NestingGuard&) = delete;
  NestingGuard& operator=(const NestingGuard&) = delete;

 private:
  State& state_;
};

class OpenerGuard {
 public:
  OpenerGuard(State& state, Iterator at) : state_(state) { state.openers.push_back(at); }
  ~OpenerGuard() { state_.openers.pop_back(); }
  OpenerGuard(const OpenerGuard&) = delete;
  OpenerGuard& operator=(const OpenerGuard&) = delete;

 private:
  State& state_;
};

}  // namespace slope::syntax::grammar
