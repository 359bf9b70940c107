#include "lang/syntax/lexer.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "lang/syntax/lexer_state.hpp"

namespace slope::syntax {

namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr std::array<bool, 256> identifier_bytes = [] {
  std::array<bool, 256> table{};
  for (int c = 'a'; c <= 'z'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = '0'; c <= '9'; ++c) table[static_cast<std::size_t>(c)] = true;
  table['_'] = true;
  return table;
}();

bool is_identifier_byte(char c) { return identifier_bytes[static_cast<unsigned char>(c)]; }

struct Word {
  std::string_view spelling;
  TokenKind kind;
};

constexpr Word words[] = {
    {"baremodule", TokenKind::kw_baremodule},
    {"begin", TokenKind::kw_begin},
    {"break", TokenKind::kw_break},
    {"catch", TokenKind::kw_catch},
    {"const", TokenKind::kw_const},
    {"continue", TokenKind::kw_continue},
    {"do", TokenKind::kw_do},
    {"else", TokenKind::kw_else},
    {"elseif", TokenKind::kw_elseif},
    {"end", TokenKind::kw_end},
    {"export", TokenKind::kw_export},
    {"finally", TokenKind::kw_finally},
    {"for", TokenKind::kw_for},
    {"function", TokenKind::kw_function},
    {"global", TokenKind::kw_global},
    {"if", TokenKind::kw_if},
    {"import", TokenKind::kw_import},
    {"let", TokenKind::kw_let},
    {"local", TokenKind::kw_local},
    {"macro", TokenKind::kw_macro},
    {"module", TokenKind::kw_module},
    {"quote", TokenKind::kw_quote},
    {"return", TokenKind::kw_return},
    {"struct", TokenKind::kw_struct},
    {"try", TokenKind::kw_try},
    {"using", TokenKind::kw_using},
    {"while", TokenKind::kw_while},
    {"where", TokenKind::where},
    {"in", TokenKind::op},
    {"isa", TokenKind::op},
};

TokenKind operator_kind(OperatorId id) {
  switch (id) {
    case op_assign:
      return TokenKind::assign;
    case op_question:
      return TokenKind::question;
    case op_colon:
      return TokenKind::colon;
    case op_subtype:
      return TokenKind::subtype;
    case op_supertype:
      return TokenKind::supertype;
    case op_and:
      return TokenKind::and_and;
    case op_or:
      return TokenKind::or_or;
    default:
      return TokenKind::op;
  }
}

// Identifiers that look alike are one name: NFC, and the code points that keyboards confuse.
std::string normalised(std::string_view spelling) {
  utf8proc_uint8_t* mapped = nullptr;
  const auto length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(spelling.data()),
                                   static_cast<utf8proc_ssize_t>(spelling.size()), &mapped,
                                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (length < 0) {
    std::free(mapped);
    return std::string(spelling);
  }
  std::string text(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(length));
  std::free(mapped);
  for (const auto& [from, to] : {std::pair("\u00b5", "\u03bc"), std::pair("\u025b", "\u03b5")}) {
    for (std::size_t i = text.find(from); i != std::string::npos; i = text.find(from, i + 1)) text.replace(i, 2, to);
  }
  return text;
}

}  // namespace

bool is_identifier_start(char32_t c) {
  if (c < 128) return c == '_' || (is_identifier_byte(static_cast<char>(c)) && !is_digit(static_cast<char>(c)));
  if (c < 0xa1) return false;
  if (find_unicode_operator(c)) return false;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_SC:
      return true;
    case UTF8PROC_CATEGORY_SO:
      return !(c >= 0x2190 && c <= 0x21ff) && c != 0xfffd && c != 0x00a6;
    case UTF8PROC_CATEGORY_SM:
      // mathematical symbols that are names rather than operators: ∂ ∇ ∞ ∫ ∑ ∏ ∅ ∆ ⊤ ⊥ and their kin
      return (c >= 0x207a && c <= 0x207c) || (c >= 0x208a && c <= 0x208c) || (c >= 0x2220 && c <= 0x2222) ||
             (c >= 0x2140 && c <= 0x2144) || c == 0x223f || c == 0x22be || c == 0x22bf || c == 0x22a4 || c == 0x22a5 ||
             (c >= 0x2200 && c <= 0x2207) || (c >= 0x220e && c <= 0x2211) || c == 0x221e || c == 0x221f ||
             (c >= 0x222b && c <= 0x2233) || (c >= 0x22c0 && c <= 0x22c3) || (c >= 0x25f8 && c <= 0x25ff) ||
             c >= 0x266f || c == 0x00ac;
    default:
      return (c >= 0x2080 && c <= 0x2089) || c == 0x309b || c == 0x309c || c == 0x2118 || c == 0x212e ||
             (c >= 0x1d7ce && c <= 0x1d7e1);  // bold and double-struck digits
  }
}

bool is_identifier_part(char32_t c) {
  if (c < 128) return is_identifier_byte(static_cast<char>(c)) || c == '!';
  if (is_identifier_start(c)) return true;
  if (c < 0xa1 || find_unicode_operator(c)) return false;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NO:
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return (c >= 0x2032 && c <= 0x2037) || c == 0x2057 || (c >= 0x2070 && c <= 0x208e);
  }
}

NameCache::Entry& NameCache::slot(std::string_view spelling, std::uint32_t hash) {
  const std::size_t mask = entries_.size() - 1;
  std::size_t i = hash & mask;
  while (true) {
    Entry& entry = entries_[i];
    if (entry.spelling.empty() || (entry.hash == hash && entry.spelling == spelling)) return entry;
    i = (i + 1) & mask;
  }
}

void NameCache::grow() {
  std::vector<Entry> old(entries_.size() * 2);
  old.swap(entries_);
  for (const Entry& entry : old) {
    if (!entry.spelling.empty()) slot(entry.spelling, entry.hash) = entry;
  }
}

Lexer::Lexer(std::string_view text, FileId file, Ast& ast, LexResult& result)
    : text_(text), file_(file), ast_(ast), result_(result) {
  result_.tokens.reserve(text.size() / 3 + 16);
}

Token& Lexer::push(TokenKind kind, std::uint32_t begin, std::uint32_t payload) {
  Token& token = result_.tokens.emplace_back();
  token.kind = kind;
  token.flags = pending_flags_;
  token.begin = begin;
  token.end = static_cast<std::uint32_t>(pos_);
  token.payload = payload;
  pending_flags_ = 0;
  return token;
}

void Lexer::error(std::uint32_t begin, std::uint32_t end, std::string message, std::string help) {
  result_.diagnostics.push_back({Severity::error, span(begin, end), std::move(message), std::move(help)});
}

char32_t decode_utf8(std::string_view text, std::size_t at, std::size_t& length) {
  utf8proc_int32_t code_point = -1;
  const auto read = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                                     static_cast<utf8proc_ssize_t>(text.size() - at), &code_point);
  if (read <= 0 || code_point < 0) {
    length = 1;
    return 0xfffd;
  }
  length = static_cast<std::size_t>(read);
  return static_cast<char32_t>(code_point);
}

NameId Lexer::intern_name(std::string_view spelling) {
  const bool ascii =
      std::all_of(spelling.begin(), spelling.end(), [](char c) { return static_cast<unsigned char>(c) < 128; });
  return ascii ? ast_.intern(spelling) : ast_.intern(normalised(spelling));
}

void Lexer::skip_block_comment() {
  const auto begin = static_cast<std::uint32_t>(pos_);
  std::size_t depth = 0;
  while (pos_ < text_.size()) {
    if (text_[pos_] == '#' && at(pos_ + 1) == '=') {
      ++depth;
      pos_ += 2;
    } else if (text_[pos_] == '=' && at(pos_ + 1) == '#') {
      pos_ += 2;
      if (--depth == 0) return;
    } else {
      if (text_[pos_] == '\n') pending_flags_ |= flag_newline;
      ++pos_;
    }
  }
  unterminated(begin, "comment", "=#");
}

std::size_t Lexer::wide_space() const {
  std::size_t length = 0;
  if (static_cast<unsigned char>(text_[pos_]) < 0xe1) return 0;
  const char32_t c = decode(pos_, length);
  return utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_ZS ? length : 0;
}

void Lexer::skip_space() {
  while (pos_ < text_.size()) {
    const char c = text_[pos_];
    if (c == ' ' || c == '\t' || c == '\r') {
      ++pos_;
      pending_flags_ |= flag_space;
    } else if (c == '\n') {
      ++pos_;
      pending_flags_ |= flag_space | flag_newline;
    } else if (c == '#') {
      pending_flags_ |= flag_space;
      if (at(pos_ + 1) == '=') {
        skip_block_comment();
      } else {
        pos_ = text_.find('\n', pos_);
        if (pos_ == std::string_view::npos) pos_ = text_.size();
      }
    } else if (c == '\xc2' && at(pos_ + 1) == '\xa0') {
      pos_ += 2;
      pending_flags_ |= flag_space;
    } else if (const std::size_t length = wide_space(); length != 0) {
      pos_ += length;
      pending_flags_ |= flag_space;
    } else if (c == '\xef' && at(pos_ + 1) == '\xbb' && at(pos_ + 2) == '\xbf' && pos_ == 0) {
      pos_ += 3;  // byte order mark
    } else {
      return;
    }
  }
}

void Lexer::lex_identifier() {
  const std::size_t begin = pos_;
  std::uint32_t hash = 2166136261u;
  bool ascii = true;
  while (pos_ < text_.size()) {
    const char c = text_[pos_];
    if (is_identifier_byte(c)) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
      ++pos_;
    } else if (c == '!') {
      if (at(pos_ + 1) == '=') break;  // a != b
      hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
      ++pos_;
    } else if (static_cast<unsigned char>(c) >= 128) {
      std::size_t length = 1;
      if (!is_identifier_part(decode(pos_, length))) break;
      for (std::size_t i = 0; i < length; ++i) hash = (hash ^ static_cast<unsigned char>(text_[pos_ + i])) * 16777619u;
      ascii = false;
      pos_ += length;
    } else {
      break;
    }
  }
  hash ^= hash >> 15;
  const std::string_view spelling = text_.substr(begin, pos_ - begin);
  NameCache::Entry& entry = names_.slot(spelling, hash);
  if (entry.spelling.empty()) {
    entry.spelling = spelling;
    entry.hash = hash;
    entry.name = ascii ? ast_.intern(spelling) : intern_name(spelling);
    entry.payload = entry.name;
    for (const Word& word : words) {
      if (word.spelling == spelling) entry.kind = word.kind;
    }
    if (entry.kind == TokenKind::op) {
      entry.payload = *find_operator(spelling);
      entry.precedence = Precedence::comparison;
    }
    if (spelling == "true" || spelling == "false") entry.kind = TokenKind::literal;
    const NameCache::Entry made = entry;
    names_.filled();
    Token& token = push(made.kind, static_cast<std::uint32_t>(begin), made.payload);
    token.precedence = made.precedence;
  } else {
    Token& token = push(entry.kind, static_cast<std::uint32_t>(begin), entry.payload);
    token.precedence = entry.precedence;
  }
  Token& token = result_.tokens.back();
  if (token.kind == TokenKind::literal) {
    token.payload = ast_.leaf(Head::boolean, span(token.begin, token.end));
    ast_.made(token.payload).integer = spelling == "true" ? 1 : 0;
  } else if (token.kind == TokenKind::identifier && at(pos_) == '"') {
    lex_raw_string();
  } else if (token.kind == TokenKind::identifier && at(pos_) == '`') {
    const std::string macro = "@" + std::string(spelling) + "_cmd";
    result_.tokens.pop_back();
    lex_command(static_cast<std::uint32_t>(pos_), macro);
  }
}

// `f $ x`, `f$x`, `($)`, `export $`: a binary operator that programs may define. `$x` inserts, also in `[a $x]`.
bool Lexer::dollar_is_operator() const {
  const char next = at(pos_ + 1);
  return next == '\0' || std::strchr(" \t\r\n),", next) != nullptr || after_operand();
}

bool Lexer::after_operand() const {
  if (result_.tokens.empty() || pending_flags_ != 0) return false;
  switch (result_.tokens.back().kind) {
    case TokenKind::identifier:
    case TokenKind::literal:
    case TokenKind::string_end:
    case TokenKind::raw_string:
    case TokenKind::adjoint:
    case TokenKind::right_paren:
    case TokenKind::right_bracket:
    case TokenKind::right_brace:
    case TokenKind::kw_end:
    case TokenKind::invalid:
      return true;
    default:
      return false;
  }
}

void Lexer::push_operator(std::uint32_t begin, OperatorId id, bool dotted) {
  const OperatorInfo& info = operator_info(id);
  TokenKind kind = operator_kind(id);
  Precedence precedence = info.precedence;
  // `:=` is an assignment that only macros read; `:==` and `:=>` quote an operator.
  if (info.update && at(pos_) == '=' && at(pos_ + 1) != '=' && !(id == op_colon && at(pos_ + 1) == '>')) {
    ++pos_;
    kind = TokenKind::op_assign;
    precedence = Precedence::assignment;
  }
  bool suffixed = false;
  std::size_t length = 1;
  while (kind == TokenKind::op && takes_suffix(id) && static_cast<unsigned char>(at(pos_)) >= 128 &&
         is_operator_suffix(decode(pos_, length))) {
    pos_ += length;
    suffixed = true;
  }
  Token& token = push(kind, begin, id);
  token.precedence = precedence;
  if (suffixed) token.flags |= flag_suffixed;
  if (dotted) token.flags |= flag_dotted;
}

bool Lexer::lex_operator(std::uint32_t begin, bool dotted) {
  const OperatorMatch match = match_ascii_operator(rest());
  if (match.length == 0) return false;
  const char first = text_[pos_];
  const char second = at(pos_ + 1);
  if ((first == '*' && second == '*') || (first == '-' && second == '-' && match.length == 1)) {
    pos_ += 2;
    error(begin, static_cast<std::uint32_t>(pos_), "invalid operator `" + std::string(2, first) + "`",
          first == '*' ? "powers are written `x^y`" : "one is taken away by `x -= 1`; a double negation is `- -x`");
    push(TokenKind::invalid, begin);
    return true;
  }
  pos_ += match.length;
  push_operator(begin, match.id, dotted);
  return true;
}

void Lexer::lex_dot() {
  const auto begin = static_cast<std::uint32_t>(pos_);
  const char next = at(pos_ + 1);
  const bool after_at = !result_.tokens.empty() && result_.tokens.back().kind == TokenKind::at && pending_flags_ == 0;
  if (after_at) {
    ++pos_;
    push(TokenKind::dot, begin);
    return;
  }
  if (is_digit(next)) return lex_number();
  if (next == '.') {
    if (at(pos_ + 2) == '.') {
      pos_ += 3;
      push(TokenKind::ellipsis, begin).precedence = Precedence::colon;
    } else {
      // `..` is a range-like operator, but `using ..A` reads its dots one by one: the grammar splits it there.
      pos_ += 2;
      push_operator(begin, *find_operator(".."), false);
    }
    return;
  }
  if (next == '\'' && after_operand()) {
    pos_ += 2;
    error(begin, static_cast<std::uint32_t>(pos_), "there is no operator `.'`",
          "use `transpose(x)` or `permutedims(x)`");
    push(TokenKind::invalid, begin);
    return;
  }
  if (next != ':' && next != '?' && next != '$' && !(next == '-' && at(pos_ + 2) == '>')) {
    ++pos_;
    if (static_cast<unsigned char>(next) < 128) {
      if (lex_operator(begin, true)) return;
    } else {
      std::size_t length = 1;
      const char32_t c = decode(pos_, length);
      const std::optional<OperatorId> id = find_unicode_operator(c);
      if (id) {
        pos_ += length;
        push_operator(begin, *id, true);
        return;
      }
    }
    --pos_;
  }
  ++pos_;
  push(TokenKind::dot, begin);
}

// Reports a run of bytes that begin no token, once for the run.
void Lexer::lex_unknown(std::uint32_t begin) {
  std::size_t length = 1;
  const char32_t first = decode(pos_, length);
  const bool malformed = first == 0xfffd && length == 1;
  const std::string_view character = text_.substr(pos_, length);
  pos_ += length;
  // A file that is no text may be all of it: a token ends here and there, for interrupts to be seen.
  constexpr std::size_t most = std::size_t{1} << 18;
  while (pos_ < text_.size() && pos_ - begin < most) {
    const char c = text_[pos_];
    if (static_cast<unsigned char>(c) >= 128) {
      const char32_t next = decode(pos_, length);
      if (is_identifier_start(next) || find_unicode_operator(next)) break;
      pos_ += length;
    } else if (static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\t' && c != '\r') {
      ++pos_;
    } else {
      break;
    }
  }
  if (!result_.tokens.empty() && result_.tokens.back().kind == TokenKind::invalid &&
      result_.tokens.back().end == begin && begin - result_.tokens.back().begin >= most) {
    // It goes on: no error of its own.
  } else if (malformed) {
    error(begin, static_cast<std::uint32_t>(pos_), "this is not valid UTF-8");
  } else if (static_cast<unsigned char>(character[0]) < 32 || character[0] == 127) {
    error(begin, static_cast<std::uint32_t>(pos_), "a control character may stand in text only as an escape");
  } else if (character == "`") {
    return lex_command(begin);
  } else {
    error(begin, static_cast<std::uint32_t>(pos_),
          "`" + std::string(character) + "` begins no name and is no operator");
  }
  push(TokenKind::invalid, begin);
}

void Lexer::lex_unicode() {
  const auto begin = static_cast<std::uint32_t>(pos_);
  std::size_t length = 1;
  const char32_t c = decode(pos_, length);
  const std::optional<OperatorId> id = find_unicode_operator(c);
  if (id) {
    pos_ += length;
    push_operator(begin, *id, false);
  } else if (is_identifier_start(c)) {
    lex_identifier();
  } else {
    lex_unknown(begin);
  }
}

void Lexer::lex_token() {
  const char c = text_[pos_];
  const auto begin = static_cast<std::uint32_t>(pos_);
  const auto single = [&](TokenKind kind) {
    ++pos_;
    push(kind, begin);
  };
  if (is_digit(c)) return lex_number();
  if (is_identifier_byte(c)) return lex_identifier();
  if (static_cast<unsigned char>(c) >= 128) return lex_unicode();
  switch (c) {
    case '(':
      if (!open_strings_.empty()) ++open_strings_.back().paren_depth;
      return single(TokenKind::left_paren);
    case ')':
      if (!open_strings_.empty()) --open_strings_.back().paren_depth;
      return single(TokenKind::right_paren);
    case '[':
      return single(TokenKind::left_bracket);
    case ']':
      return single(TokenKind::right_bracket);
    case '{':
      return single(TokenKind::left_brace);
    case '}':
      return single(TokenKind::right_brace);
    case ',':
      return single(TokenKind::comma);
    case ';':
      return single(TokenKind::semicolon);
    case '@':
      return single(TokenKind::at);
    case '$':
      if (dollar_is_operator()) break;
      return single(TokenKind::dollar);
    case '"':
      return lex_string_start();
    case '\'':
      if (after_operand()) return single(TokenKind::adjoint);
      return lex_character();
    case '.':
      return lex_dot();
    case ':':
      if (at(pos_ + 1) == ':') {
        pos_ += 2;
        push(TokenKind::double_colon, begin);
        return;
      }
      break;
    case '-':
      if (at(pos_ + 1) == '>') {
        pos_ += 2;
        push(TokenKind::arrow, begin);
        return;
      }
      break;
    default:
      break;
  }
  if (!lex_operator(begin, false)) lex_unknown(begin);
}

// A vector that grows holds its old memory beside the new until all is moved.
std::size_t Lexer::bytes_with_next_token() const {
  const auto& tokens = result_.tokens;
  const bool grows = tokens.size() == tokens.capacity();
  return tokens.capacity() * sizeof(Token) * (grows ? 3 : 1) + ast_.bytes();
}

void Lexer::run(const ParseOptions& options) {
  Growth growth(options.memory);
  while (true) {
    if (result_.tokens.size() == result_.tokens.capacity()) growth.to(bytes_with_next_token());
    if (options.is_interrupted()) {
      while (!open_strings_.empty()) finish_segments();
      break;
    }
    if (!open_strings_.empty() && open_strings_.back().paren_depth == 0) {
      if (pos_ >= text_.size()) {
        unterminated(open_strings_.back().begin, "string", open_strings_.back().triple ? "\"\"\"" : "\"");
        close_string(static_cast<std::uint32_t>(pos_));
        continue;
      }
      lex_string_text();
      continue;
    }
    skip_space();
    if (pos_ >= text_.size()) {
      if (open_strings_.empty()) break;
      // The text ends inside `$(`: the grammar reports the missing parenthesis.
      while (!open_strings_.empty()) finish_segments();
      break;
    }
    lex_token();
  }
  push(TokenKind::end_of_input, static_cast<std::uint32_t>(pos_));
  result_.tokens.back().flags |= flag_newline | flag_space;
}

LexResult lex(std::string_view text, FileId file, Ast& ast, const ParseOptions& options) {
  LexResult result;
  Lexer(text, file, ast, result).run(options);
  return result;
}

}  // namespace slope::syntax
