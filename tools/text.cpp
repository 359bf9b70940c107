// Pieces of a text for colours, and its syntax errors.
#include <algorithm>

#include "lang/syntax/lexer.hpp"
#include "lang/syntax/parse.hpp"
#include "tools/tools.hpp"

namespace slope::api::tools {

using syntax::Token;
using syntax::TokenKind;

namespace {

bool is_bracket(TokenKind kind) { return kind >= TokenKind::left_paren && kind <= TokenKind::right_brace; }

// A word before a name that makes the two a keyword together: `abstract type`, `mutable struct`, `primitive type`.
bool is_first_word(std::string_view word, const Token& next, std::string_view text) {
  const std::string_view after = text.substr(next.begin, next.end - next.begin);
  if (word == "mutable") return next.kind == TokenKind::kw_struct;
  return (word == "abstract" || word == "primitive") && after == "type" && !next.newline_before();
}

class Classifier {
 public:
  explicit Classifier(std::string_view text) : text_(text), lexed_(syntax::lex(text, 0, ast_)) {}

  std::vector<Piece> run() {
    std::size_t at = 0;
    for (std::size_t i = 0; i < lexed_.tokens.size(); ++i) {
      const Token& token = lexed_.tokens[i];
      if (token.begin > at) between(at, token.begin);
      if (token.kind == TokenKind::end_of_input) break;
      const PieceKind kind = kind_of(i);
      add(token.begin, token.end, kind);
      at = std::max<std::size_t>(at, token.end);
    }
    if (at < text_.size()) between(at, text_.size());
    return std::move(pieces_);
  }

 private:
  const Token* token_at(std::size_t i) const { return i < lexed_.tokens.size() ? &lexed_.tokens[i] : nullptr; }
  std::string_view spelling(const Token& token) const { return text_.substr(token.begin, token.end - token.begin); }

  PieceKind kind_of(std::size_t i) {
    const Token& token = lexed_.tokens[i];
    const Token* before = i ? &lexed_.tokens[i - 1] : nullptr;
    const Token* next = token_at(i + 1);
    const bool after_at = before && before->kind == TokenKind::at && !token.space_before();
    const bool after_colon = before && before->kind == TokenKind::colon && !token.space_before() &&
                             (i < 2 || quotes(lexed_.tokens[i - 2], *before));
    const bool after_dot = before && before->kind == TokenKind::dot && !token.space_before();
    switch (token.kind) {
      case TokenKind::invalid:
        return PieceKind::error;
      case TokenKind::at:
        return PieceKind::macro;
      case TokenKind::identifier:
        if (after_at) return PieceKind::macro;
        if (after_colon) return PieceKind::symbol;
        if (next && next->kind == TokenKind::raw_string && !next->space_before()) return PieceKind::macro;
        if (next && is_first_word(spelling(token), *next, text_)) return PieceKind::keyword;
        if (before && spelling(token) == "type" && is_first_word(spelling(*before), token, text_))
          return PieceKind::keyword;
        if (next && !next->space_before() && (next->kind == TokenKind::left_paren || is_dot_call(i + 1)))
          return PieceKind::function;
        return PieceKind::plain;
      case TokenKind::literal: {
        const char first = token.begin < text_.size() ? text_[token.begin] : ' ';
        if (first == '"' || first == '\'') return PieceKind::string;
        if (first == 't' || first == 'f') return PieceKind::keyword;
        return PieceKind::number;
      }
      case TokenKind::string_begin:
      case TokenKind::string_text:
      case TokenKind::string_end:
      case TokenKind::raw_string:
        return PieceKind::string;
      case TokenKind::string_dollar:
        return PieceKind::macro;
      case TokenKind::where:
        return PieceKind::keyword;
      case TokenKind::comma:
      case TokenKind::semicolon:
      case TokenKind::dot:
        return PieceKind::plain;
      default:
        break;
    }
    if (token.is_keyword()) return after_dot ? PieceKind::plain : after_colon ? PieceKind::symbol : PieceKind::keyword;
    if (is_bracket(token.kind)) return PieceKind::bracket;
    if (token.is_operator() || token.kind == TokenKind::arrow || token.kind == TokenKind::double_colon ||
        token.kind == TokenKind::ellipsis || token.kind == TokenKind::adjoint || token.kind == TokenKind::dollar) {
      const std::string_view word = spelling(token);
      return word == "in" || word == "isa" ? PieceKind::keyword : PieceKind::operation;
    }
    return PieceKind::plain;
  }

  // Does the colon begin a symbol, or is it the operator after an operand?
  static bool quotes(const Token& before, const Token& colon) {
    if (colon.space_before()) return true;
    switch (before.kind) {
      case TokenKind::identifier:
      case TokenKind::literal:
      case TokenKind::string_end:
      case TokenKind::right_paren:
      case TokenKind::right_bracket:
      case TokenKind::right_brace:
      case TokenKind::adjoint:
      case TokenKind::kw_end:
        return false;
      default:
        return true;
    }
  }

  bool is_dot_call(std::size_t i) const {
    const Token* dot = token_at(i);
    const Token* paren = token_at(i + 1);
    return dot && paren && dot->kind == TokenKind::dot && paren->kind == TokenKind::left_paren &&
           !paren->space_before();
  }

  // Between tokens stand white space and comments.
  void between(std::size_t begin, std::size_t end) {
    while (begin < end) {
      const std::size_t hash = text_.substr(0, end).find('#', begin);
      if (hash == std::string_view::npos) return;
      std::size_t stop = end;
      if (hash + 1 < end && text_[hash + 1] == '=') {
        int depth = 0;
        for (stop = hash; stop < end; ++stop) {
          if (text_.substr(stop, 2) == "#=") {
            ++depth;
            ++stop;
          } else if (text_.substr(stop, 2) == "=#" && --depth == 0) {
            stop += 2;
            break;
          } else if (text_.substr(stop, 2) == "=#") {
            ++stop;
          }
        }
      } else {
        stop = std::min(end, text_.find('\n', hash));
      }
      add(hash, std::min(stop, end), PieceKind::comment);
      begin = std::max(stop, hash + 1);
    }
  }

  void add(std::size_t begin, std::size_t end, PieceKind kind) {
    if (kind == PieceKind::plain || begin >= end) return;
    pieces_.push_back({begin, end, kind});
  }

  std::string_view text_;
  syntax::Ast ast_;
  syntax::LexResult lexed_;
  std::vector<Piece> pieces_;
};

}  // namespace

std::vector<Piece> classify(std::string_view text) { return Classifier(text).run(); }

std::vector<Problem> syntax_problems(std::string_view text) {
  SourceMap sources;
  const FileId file = sources.add("<text>", std::string(text));
  const syntax::ParseResult parsed = syntax::parse(sources, file);
  std::vector<Problem> problems;
  for (const Diagnostic& diagnostic : parsed.diagnostics)
    problems.push_back({diagnostic.span.begin, std::max(diagnostic.span.end, diagnostic.span.begin),
                        diagnostic.severity != Severity::error, diagnostic.message, diagnostic.help});
  return problems;
}

std::string excerpt(Engine& engine, const Position& position) {
  if (position.line == 0) return "";
  const SourceMap& sources = detail::Access::state(engine).runtime.sources;
  for (std::size_t i = sources.size(); i-- > 1;) {  // the newest text of that name
    const SourceFile& file = sources.file(static_cast<FileId>(i));
    if (file.name() != position.file) continue;
    const std::string number = std::to_string(position.line);
    const std::string margin(number.size(), ' ');
    const std::string line(file.line(position.line));
    if (line.empty()) return "";
    std::string caret;
    std::size_t column = 1;
    for (std::size_t at = 0; at < line.size() && column < std::max(position.column, 1u); ++at) {
      if ((static_cast<unsigned char>(line[at]) & 0xc0) == 0x80) continue;
      caret += line[at] == '\t' ? '\t' : ' ';
      ++column;
    }
    return margin + "--> " + position.file + ":" + number + ":" + std::to_string(position.column) + "\n" + margin +
           " |\n" + number + " | " + line + "\n" + margin + " | " + caret + "^\n";
  }
  return "";
}

}  // namespace slope::api::tools
