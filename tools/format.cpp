// The layout of a text: what `slope fmt` writes.
//
//   1. Blanks within lines change first (spacing.cpp).
//   2. Then the indentation, blanks at ends of lines, runs of blank lines, and the last line break. Lines stay lines.
//      The indentation is four blanks for each line that opened something that is still open; in brackets, and in
//      expressions that continue in the next line, at least that. Lines that begin inside a string or a block comment
//      do not change.
//   3. The result is read again: its tokens must be those of the text.
//
// The syntax tree says which words open a block (`for` in a generator and `end` in an index do not). Formatting a
// formatted text changes nothing, because the indentation depends on the tokens alone.
#include <algorithm>
#include <set>

#include "lang/syntax/lexer.hpp"
#include "lang/syntax/parse.hpp"
#include "tools/tools.hpp"

namespace slope::api::tools {

using syntax::Head;
using syntax::Token;
using syntax::TokenKind;

namespace {

constexpr std::size_t step = 4;
constexpr std::size_t most_blank_lines = 2;

bool is_block(Head head) {
  switch (head) {
    case Head::function:
    case Head::macro_:
    case Head::if_:
    case Head::while_:
    case Head::for_:
    case Head::let_:
    case Head::try_:
    case Head::struct_:
    case Head::abstract_:
    case Head::primitive_:
    case Head::module_:
    case Head::block:
    case Head::quote:
      return true;
    default:
      return false;
  }
}

class Formatter {
 public:
  explicit Formatter(std::string_view text) : text_(text) {}

  Result<std::string> run() {
    SourceMap sources;
    const FileId file = sources.add("<text>", std::string(text_));
    const syntax::ParseResult parsed = syntax::parse(sources, file);
    if (!parsed.ok()) return detail::engine_error(render(parsed.diagnostics, sources), ErrorKind::syntax);
    syntax::Ast scratch;
    tokens_ = syntax::lex(text_, 0, scratch).tokens;
    if (!tokens_.empty() && tokens_.back().kind == TokenKind::end_of_input) tokens_.pop_back();
    find_openers(parsed.ast);
    find_verbatim();
    std::string out = lines();
    if (!same_tokens(out))
      return detail::engine_error(
          "the text cannot be formatted without changing it; this is a mistake of the formatter");
    return out;
  }

 private:
  struct Open {
    std::size_t line;
    bool is_block;
    bool indents;
  };

  std::string_view spelling(const Token& token) const { return text_.substr(token.begin, token.end - token.begin); }

  void find_openers(const syntax::Ast& ast) {
    std::set<std::uint32_t> ends;
    for (const Token& token : tokens_)
      if (token.kind == TokenKind::kw_end) ends.insert(token.end);
    std::set<syntax::NodeId> bodies;  // of f(x) = …, which is a block too
    for (syntax::NodeId id = 1; id < ast.node_count(); ++id)
      if (ast.head(id) == Head::assign && ast.child_count(id) == 2) bodies.insert(ast.child(id, 1));
    for (syntax::NodeId id = 1; id < ast.node_count(); ++id) {
      const Head head = ast.head(id);
      if (head == Head::quote_symbol) {  // the word may stand behind a colon
        quoted_.insert(ast.node(id).span.begin);
        quoted_.insert(ast.node(id).span.begin + 1);
      }
      if (is_block(head) && ends.count(ast.node(id).span.end) != 0) block_begins_.insert(ast.node(id).span.begin);
      if ((head == Head::block && bodies.count(id) == 0) || head == Head::toplevel)
        for (const syntax::NodeId statement : ast.children(id))
          statement_begins_.insert(ast.node(statement).span.begin);
    }
  }

  bool opens_block(const Token& token) const {
    if (token.kind == TokenKind::kw_do) return !is_quoted(token);
    const bool is_word = token.is_keyword() || token.kind == TokenKind::identifier;
    if (!is_word || block_begins_.count(token.begin) == 0) return false;
    switch (token.kind) {
      case TokenKind::kw_function:
      case TokenKind::kw_macro:
      case TokenKind::kw_if:
      case TokenKind::kw_while:
      case TokenKind::kw_for:
      case TokenKind::kw_let:
      case TokenKind::kw_try:
      case TokenKind::kw_struct:
      case TokenKind::kw_module:
      case TokenKind::kw_baremodule:
      case TokenKind::kw_begin:
      case TokenKind::kw_quote:
        return true;
      case TokenKind::identifier: {
        const std::string_view word = spelling(token);
        return word == "abstract" || word == "primitive" || word == "mutable";
      }
      default:
        return false;
    }
  }

  // `:do` and `:end` are symbols.
  bool is_quoted(const Token& token) const { return quoted_.count(token.begin) != 0; }

  // Bytes of strings and block comments: a line that begins among them is left alone.
  void find_verbatim() {
    std::vector<std::uint32_t> open;
    for (const Token& token : tokens_) {
      if (token.kind == TokenKind::string_begin) open.push_back(token.begin);
      if (token.kind == TokenKind::string_end && !open.empty()) {
        verbatim_.push_back({open.back(), token.end});
        open.pop_back();
      }
      if (token.kind == TokenKind::literal || token.kind == TokenKind::raw_string)
        verbatim_.push_back({token.begin, token.end});
    }
    for (const Piece& piece : classify(text_))
      if (piece.kind == PieceKind::comment)
        verbatim_.push_back({static_cast<std::uint32_t>(piece.begin), static_cast<std::uint32_t>(piece.end)});
  }
  // Is the byte inside one of them, not at its begin?
  bool is_verbatim(std::size_t at) const {
    return std::any_of(verbatim_.begin(), verbatim_.end(),
                       [&](const auto& range) { return range.first < at && at < range.second; });
  }

  // Where the text of a line stands that is inside of what is open now.
  std::size_t inside() const {
    if (open_.empty()) return 0;
    return indent_[open_.back().line] + (open_.back().indents ? step : 0);
  }

  void take(const Token& token, std::size_t line) {
    switch (token.kind) {
      case TokenKind::left_paren:
      case TokenKind::left_bracket:
      case TokenKind::left_brace:
        open_.push_back({line, false, true});
        return;
      case TokenKind::right_paren:
      case TokenKind::right_bracket:
      case TokenKind::right_brace:
        if (!open_.empty()) open_.pop_back();
        return;
      case TokenKind::kw_end:
        if (!is_quoted(token) && !open_.empty() && open_.back().is_block) open_.pop_back();
        return;
      default:
        if (opens_block(token)) open_.push_back({line, true, !is_module(token) || indents_module(token)});
    }
  }

  static bool is_module(const Token& token) {
    return token.kind == TokenKind::kw_module || token.kind == TokenKind::kw_baremodule;
  }
  std::size_t column(const Token& token) const {
    const std::size_t newline = text_.rfind('\n', token.begin);
    return token.begin - (newline == std::string_view::npos ? 0 : newline + 1);
  }
  // A module's body stands as far out as the module unless its first line is indented.
  bool indents_module(const Token& token) const {
    auto at = static_cast<std::size_t>(&token - tokens_.data()) + 1;
    while (at < tokens_.size() && !tokens_[at].newline_before()) ++at;
    return at < tokens_.size() && tokens_[at].kind != TokenKind::kw_end && column(tokens_[at]) > column(token);
  }

  bool is_closing(const Token& token) const {
    return !is_quoted(token) && (token.kind == TokenKind::right_paren || token.kind == TokenKind::right_bracket ||
                                 token.kind == TokenKind::right_brace || token.kind == TokenKind::kw_end);
  }

  // The line goes on what the one before it began: an operator, an `=` or a comma stands at its end.
  bool continues(std::size_t next) const {
    if (next == 0 || (!open_.empty() && !open_.back().is_block)) return false;
    const Token& last = tokens_[next - 1];
    if (next < tokens_.size() && statement_begins_.count(tokens_[next].begin) != 0) return false;
    return last.kind == TokenKind::comma || last.kind == TokenKind::arrow || last.is_operator();
  }

  // Where the statement stands that goes on in this line. The condition of a block stands as far out as the block.
  std::size_t outside(std::size_t next, std::size_t line) const {
    std::size_t first = next;
    while (first > 0 && (continues(first) || !tokens_[first].newline_before())) --first;
    const Token& word = tokens_[first];
    if (word.kind != TokenKind::kw_elseif && !opens_block(word)) return inside();
    const std::string_view between = text_.substr(word.begin, tokens_[next].begin - word.begin);
    const auto lines = static_cast<std::size_t>(std::count(between.begin(), between.end(), '\n'));
    return lines <= line ? indent_[line - lines] : inside();
  }

  // `before`: the columns before the line's text as it is.
  std::size_t indentation(std::size_t next, std::size_t line_end, std::size_t line, std::size_t before) {
    const bool has_token = next < tokens_.size() && tokens_[next].begin < line_end;
    if (has_token && is_closing(tokens_[next])) {
      // As the line that opened it.
      std::size_t closed = 0;
      for (std::size_t i = next; i < tokens_.size() && tokens_[i].begin < line_end && is_closing(tokens_[i]); ++i)
        ++closed;
      closed = std::min(closed, open_.size());
      return closed == 0 ? inside() : indent_[open_[open_.size() - closed].line];
    }
    // What is deeper than it has to be may be lined up: it moves with the line that it belongs to.
    const auto lined_up = [&](std::size_t with, std::size_t outer) {
      const std::ptrdiff_t moved = static_cast<std::ptrdiff_t>(before) + shift_[with];
      return moved > static_cast<std::ptrdiff_t>(outer) ? static_cast<std::size_t>(moved) : outer + step;
    };
    if (!open_.empty() && !open_.back().is_block) return lined_up(open_.back().line, indent_[open_.back().line]);
    if (!has_token) return inside();
    const TokenKind kind = tokens_[next].kind;
    const bool middle = kind == TokenKind::kw_else || kind == TokenKind::kw_elseif || kind == TokenKind::kw_catch ||
                        kind == TokenKind::kw_finally;
    if (middle) return open_.empty() ? 0 : indent_[open_.back().line];
    return continues(next) && line > 0 ? lined_up(line - 1, outside(next, line)) : inside();
  }

  std::string lines() {
    std::string out;
    std::size_t next = 0;  // token
    std::size_t blank = 0;
    std::size_t number = 0;
    for (std::size_t begin = 0; begin < text_.size();) {
      std::size_t end = text_.find('\n', begin);
      if (end == std::string_view::npos) end = text_.size();
      std::string_view line = text_.substr(begin, end - begin);
      const bool whole = begin > 0 && is_verbatim(begin);
      const bool cut = is_verbatim(end) || (end < text_.size() && is_verbatim(end + 1));
      if (!cut) {
        const std::size_t last = line.find_last_not_of(" \t\r");
        line = line.substr(0, last == std::string_view::npos ? 0 : last + 1);
      }
      const std::size_t first = std::min(line.find_first_not_of(" \t"), line.size());
      if (whole) {
        out.append(blank, '\n');
        blank = 0;
        out += std::string(line) + "\n";
      } else if (first == line.size()) {
        blank = std::min(blank + 1, most_blank_lines);
      } else {
        if (!out.empty()) out.append(blank, '\n');
        blank = 0;
        std::size_t before = 0;
        for (const char c : line.substr(0, first)) before = c == '\t' ? (before / step + 1) * step : before + 1;
        const std::size_t now = indentation(next, end, number, before);
        shift_.resize(number + 1, 0);
        indent_.resize(number + 1, 0);
        indent_[number] = now;
        shift_[number] = static_cast<std::ptrdiff_t>(now) - static_cast<std::ptrdiff_t>(before);
        out.append(now, ' ');
        out += std::string(line.substr(first)) + "\n";
      }
      shift_.resize(number + 1, 0);
      indent_.resize(number + 1, 0);
      while (next < tokens_.size() && tokens_[next].begin < end) take(tokens_[next++], number);
      ++number;
      begin = end + 1;
    }
    return out;
  }

  bool same_tokens(const std::string& out) const {
    syntax::Ast scratch;
    std::vector<Token> other = syntax::lex(out, 0, scratch).tokens;
    if (!other.empty() && other.back().kind == TokenKind::end_of_input) other.pop_back();
    if (other.size() != tokens_.size()) return false;
    for (std::size_t i = 0; i < other.size(); ++i) {
      const std::string_view text = std::string_view(out).substr(other[i].begin, other[i].end - other[i].begin);
      if (other[i].kind != tokens_[i].kind || text != spelling(tokens_[i])) return false;
      if (i && other[i].newline_before() != tokens_[i].newline_before()) return false;
      if (i && other[i].space_before() != tokens_[i].space_before()) return false;
    }
    return true;
  }

  std::string_view text_;
  std::vector<Token> tokens_;
  std::set<std::uint32_t> block_begins_;
  std::set<std::uint32_t> quoted_;
  std::set<std::uint32_t> statement_begins_;
  std::vector<std::size_t> indent_;    // by line: its blanks now
  std::vector<std::ptrdiff_t> shift_;  // by line: how many columns it moved to the right
  std::vector<std::pair<std::uint32_t, std::uint32_t>> verbatim_;
  std::vector<Open> open_;
};

}  // namespace

Result<std::string> format(std::string_view text) {
  const std::string within_lines = spaced(text);
  return Formatter(within_lines).run();
}

}  // namespace slope::api::tools
