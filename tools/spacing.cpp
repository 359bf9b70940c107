// Blanks within lines: the part of `slope fmt` that comes before the indentation.
//
//   one blank after a comma, none before a comma or a semicolon (not in `{…}` and not in indices)
//   one blank around `=` and `+=` outside of brackets, around `->`, `=>`, `&&`, `||` and comparisons outside of `[…]`
//   none inside of `(…)` at its ends
//
// More than one blank stays, because something may be lined up. Blanks around `+`, `*`, `:` and similar operators stay,
// because they show how an expression is grouped. Blanks have a meaning in Slope (`[a -b]`, `f (x)`, `@m (x)`). So the
// result is read again: its tree must be that of the text, otherwise the text stays unchanged.
#include <algorithm>

#include "lang/syntax/lexer.hpp"
#include "lang/syntax/parse.hpp"
#include "lang/syntax/print.hpp"
#include "tools/tools.hpp"

namespace slope::api::tools {

using syntax::Token;
using syntax::TokenKind;

namespace {

class Spacing {
 public:
  Spacing(std::string_view text, std::vector<Token> tokens) : text_(text), tokens_(std::move(tokens)) {}

  std::string run() {
    std::string out;
    std::size_t at = 0;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (i > 0) {
        const Token &left = tokens_[i - 1], &right = tokens_[i];
        const std::string_view gap = text_.substr(left.end, right.begin - left.end);
        if (strings_ == 0 && gap.size() <= 1 && (gap.empty() || gap == " ")) {
          out += text_.substr(at, left.end - at);
          out.append(wanted(i, gap.size()), ' ');
          at = right.begin;
        }
      }
      take(tokens_[i]);
    }
    return out + std::string(text_.substr(at));
  }

 private:
  enum class Inside { parens, list, index, braces };

  std::string_view spelling(const Token& token) const { return text_.substr(token.begin, token.end - token.begin); }

  static bool ends_operand(const Token& token) {
    switch (token.kind) {
      case TokenKind::identifier:
      case TokenKind::literal:
      case TokenKind::string_end:
      case TokenKind::raw_string:
      case TokenKind::right_paren:
      case TokenKind::right_bracket:
      case TokenKind::right_brace:
      case TokenKind::adjoint:
      case TokenKind::ellipsis:
      case TokenKind::kw_end:
        return true;
      default:
        return false;
    }
  }
  static bool begins_operand(const Token& token) {
    switch (token.kind) {
      case TokenKind::identifier:
      case TokenKind::literal:
      case TokenKind::string_begin:
      case TokenKind::left_paren:
      case TokenKind::left_bracket:
      case TokenKind::at:
      case TokenKind::dollar:
      case TokenKind::op:
      case TokenKind::colon:
        return true;
      default:
        return token.is_keyword() && token.kind != TokenKind::kw_end;
    }
  }

  // Operators that stand between blanks.
  bool is_spaced(const Token& token) const {
    const bool in_list = !open_.empty() && open_.back() != Inside::parens;
    switch (token.kind) {
      case TokenKind::assign:
      case TokenKind::op_assign:
        return open_.empty();
      case TokenKind::arrow:
      case TokenKind::and_and:
      case TokenKind::or_or:
        return !in_list;
      case TokenKind::op: {
        static constexpr std::string_view names[] = {
            "==", "!=", "===", "!==", "<", ">", "<=", ">=", "=>", "≤", "≥", "≠", "|>"};
        std::string_view name = spelling(token);
        if (name.size() > 1 && name[0] == '.') name.remove_prefix(1);
        return !in_list && std::find(std::begin(names), std::end(names), name) != std::end(names);
      }
      default:
        return false;
    }
  }
  // Between two operands: else it is a value (`map(==, …)`), a name (`==(a, b) = …`) or a prefix.
  bool is_infix(std::size_t i) const {
    return i > 0 && i + 1 < tokens_.size() && ends_operand(tokens_[i - 1]) && begins_operand(tokens_[i + 1]) &&
           !tokens_[i].newline_before() && !tokens_[i + 1].newline_before();
  }

  // Blanks between token i - 1 and token i, of which there are `now`, one at most.
  std::size_t wanted(std::size_t i, std::size_t now) const {
    const Token &left = tokens_[i - 1], &right = tokens_[i];
    const bool in_parens = open_.empty() || open_.back() == Inside::parens;
    const bool in_list = !open_.empty() && open_.back() == Inside::list;
    if (left.kind == TokenKind::left_paren && right.kind != TokenKind::semicolon) return 0;
    if (right.kind == TokenKind::right_paren && left.kind != TokenKind::comma && left.kind != TokenKind::semicolon)
      return 0;
    if (right.kind == TokenKind::comma && (in_parens || in_list)) return 0;
    if (right.kind == TokenKind::semicolon && in_parens && left.kind != TokenKind::semicolon &&
        left.kind != TokenKind::left_paren)
      return 0;
    if (left.kind == TokenKind::comma && (in_parens || in_list)) {
      const bool closes = right.kind == TokenKind::right_paren || right.kind == TokenKind::right_bracket;
      return closes ? now : 1;
    }
    if (is_spaced(left) && is_infix(i - 1)) return 1;
    if (is_spaced(right) && is_infix(i)) return 1;
    return now;
  }

  void take(const Token& token) {
    switch (token.kind) {
      case TokenKind::string_begin:
        ++strings_;
        return;
      case TokenKind::string_end:
        --strings_;
        return;
      case TokenKind::left_paren:
        open_.push_back(Inside::parens);
        return;
      case TokenKind::left_brace:
        open_.push_back(Inside::braces);
        return;
      case TokenKind::left_bracket:
        // a[…] is an index; with a blank before it, or after no operand, a list.
        open_.push_back(!token.space_before() && token.begin > 0 && &token != tokens_.data() &&
                                ends_operand((&token)[-1])
                            ? Inside::index
                            : Inside::list);
        return;
      case TokenKind::right_paren:
      case TokenKind::right_brace:
      case TokenKind::right_bracket:
        if (!open_.empty()) open_.pop_back();
        return;
      default:
        return;
    }
  }

  std::string_view text_;
  std::vector<Token> tokens_;
  std::vector<Inside> open_;
  int strings_ = 0;  // strings with interpolations that are open
};

std::optional<std::string> tree_of(std::string_view text) {
  SourceMap sources;
  const FileId file = sources.add("<text>", std::string(text));
  const syntax::ParseResult parsed = syntax::parse(sources, file);
  if (!parsed.ok()) return std::nullopt;
  return syntax::to_sexpr(parsed.ast, parsed.ast.root);
}

}  // namespace

std::string spaced(std::string_view text) {
  syntax::Ast scratch;
  std::vector<Token> tokens = syntax::lex(text, 0, scratch).tokens;
  if (!tokens.empty() && tokens.back().kind == TokenKind::end_of_input) tokens.pop_back();
  std::string out = Spacing(text, std::move(tokens)).run();
  if (out == text) return out;
  const std::optional<std::string> before = tree_of(text);
  return before && tree_of(out) == before ? out : std::string(text);
}

}  // namespace slope::api::tools
