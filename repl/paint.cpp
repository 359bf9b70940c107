#include "repl/paint.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

#include "slope/tools.hpp"

namespace slope::repl {

bool wants_color(ColorChoice choice, int descriptor) {
  if (choice != ColorChoice::automatic) return choice == ColorChoice::always;
  const char* none = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return !(none && *none) && isatty(descriptor) != 0 && terminal && *terminal && std::strcmp(terminal, "dumb") != 0;
}

const char* style_sequence(Style style) {
  switch (style) {
    case Style::keyword:
      return "\033[35m";
    case Style::string:
      return "\033[32m";
    case Style::number:
      return "\033[33m";
    case Style::comment:
      return "\033[90m";
    case Style::macro:
      return "\033[36m";
    case Style::symbol:
      return "\033[33m";
    case Style::function:
      return "\033[34m";
    case Style::error:
      return "\033[31m";
    case Style::matched:
      return "\033[1;4m";
    case Style::prompt:
      return "\033[1;32m";
    case Style::help_prompt:
      return "\033[1;33m";
    case Style::shell_prompt:
      return "\033[1;31m";
    default:
      return "";
  }
}

namespace {

Style style_of(tools::PieceKind kind) {
  switch (kind) {
    case tools::PieceKind::keyword:
      return Style::keyword;
    case tools::PieceKind::string:
      return Style::string;
    case tools::PieceKind::number:
      return Style::number;
    case tools::PieceKind::comment:
      return Style::comment;
    case tools::PieceKind::macro:
      return Style::macro;
    case tools::PieceKind::symbol:
      return Style::symbol;
    case tools::PieceKind::function:
      return Style::function;
    case tools::PieceKind::operation:
      return Style::operation;
    case tools::PieceKind::bracket:
      return Style::bracket;
    case tools::PieceKind::error:
      return Style::error;
    default:
      return Style::plain;
  }
}

// The partner of the bracket at `at`; npos when it has none.
std::size_t partner_of(std::string_view code, const std::vector<std::size_t>& brackets, std::size_t at) {
  constexpr std::string_view opening = "([{";
  constexpr std::string_view closing = ")]}";
  std::vector<std::size_t> open;
  for (const std::size_t place : brackets) {
    if (opening.find(code[place]) != std::string_view::npos) {
      open.push_back(place);
      continue;
    }
    if (open.empty() || opening.find(code[open.back()]) != closing.find(code[place])) return std::string_view::npos;
    if (place == at) return open.back();
    if (open.back() == at) return place;
    open.pop_back();
  }
  return std::string_view::npos;
}

std::string painted(std::string_view code, const std::vector<Style>& styles) {
  std::string out;
  Style now = Style::plain;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const Style next = *style_sequence(styles[i]) ? styles[i] : Style::plain;
    if (next != now) {
      if (now != Style::plain) out += style_end;
      out += style_sequence(next);
      now = next;
    }
    out += code[i];
  }
  if (now != Style::plain) out += style_end;
  return out;
}

}  // namespace

std::vector<Style> styles_of(std::string_view code, std::size_t cursor) {
  std::vector<Style> styles(code.size(), Style::plain);
  std::vector<std::size_t> brackets;
  for (const tools::Piece& piece : tools::classify(code)) {
    const std::size_t end = std::min(piece.end, code.size());
    for (std::size_t i = piece.begin; i < end; ++i) styles[i] = style_of(piece.kind);
    if (piece.kind == tools::PieceKind::bracket && piece.begin < code.size()) brackets.push_back(piece.begin);
  }
  if (cursor == std::string_view::npos) return styles;
  for (const std::size_t at : {cursor, cursor - 1}) {
    if (at >= code.size() || std::find(brackets.begin(), brackets.end(), at) == brackets.end()) continue;
    const std::size_t partner = partner_of(code, brackets, at);
    if (partner == std::string_view::npos) continue;
    styles[at] = styles[partner] = Style::matched;
    break;
  }
  return styles;
}

std::string painted_code(std::string_view code) { return painted(code, styles_of(code)); }

std::string painted_error(std::string_view message) {
  std::string out;
  while (!message.empty()) {
    std::size_t end = message.find('\n');
    std::string_view line = message.substr(0, end);
    message.remove_prefix(end == std::string_view::npos ? message.size() : end + 1);
    const std::size_t bar = line.find(" |");
    const bool quotes = bar != std::string_view::npos &&
                        std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(bar),
                                    [](char c) { return c == ' ' || std::isdigit(static_cast<unsigned char>(c)); });
    if (line.starts_with("ERROR:") || line.starts_with("error:")) {
      out += "\033[1;31m" + std::string(line.substr(0, 6)) + style_end + std::string(line.substr(6));
    } else if (line.starts_with("warning:")) {
      out += "\033[1;33mwarning:" + std::string(style_end) + std::string(line.substr(8));
    } else if (quotes) {
      const std::string_view code = line.substr(bar + 2);
      const bool caret = code.find_first_not_of(" ^~\t") == std::string_view::npos;
      out += "\033[90m" + std::string(line.substr(0, bar + 2)) + style_end;
      if (caret)
        out += "\033[1;31m" + std::string(code) + style_end;
      else
        out += painted_code(code);
    } else if (line.find("--> ") != std::string_view::npos || line.starts_with("    @ ")) {
      out += "\033[90m" + std::string(line) + style_end;
    } else if (line.starts_with("did you mean")) {
      out += "\033[36m" + std::string(line) + style_end;
    } else {
      out += line;
    }
    if (end != std::string_view::npos) out += '\n';
  }
  return out;
}

}  // namespace slope::repl
