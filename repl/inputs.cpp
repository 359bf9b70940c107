#include "repl/inputs.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include "slope/tools.hpp"

namespace slope::repl {

namespace {

// What follows the line belongs to a block, or to brackets, that it begins.
bool opens_body(Engine& engine, std::string_view line) {
  const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
  line.remove_prefix(begin);
  line = line.substr(0, line.find_last_not_of(" \t") + 1);
  const std::string_view word = line.substr(0, line.find_first_of(" \t("));
  static constexpr std::string_view parts[] = {"else", "elseif", "catch", "finally"};
  if (std::find(std::begin(parts), std::end(parts), word) != std::end(parts)) return true;
  if (!engine.incomplete(line)) return false;
  static constexpr std::string_view forms[] = {"if",     "for",     "while",  "function", "begin", "let",       "try",
                                               "struct", "mutable", "module", "macro",    "quote", "baremodule"};
  if (std::find(std::begin(forms), std::end(forms), word) != std::end(forms)) return true;
  if (line.ends_with('(') || line.ends_with('[') || line.ends_with('{')) return true;
  return line.ends_with(" begin") || line.ends_with(" let") || line.ends_with(" quote") || line.ends_with(" do") ||
         line.find(" do ") != std::string_view::npos;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const char* space = " \t\r\n";
  std::size_t begin = text.find_first_not_of(space);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

bool hides_value(std::string_view input) {
  const std::vector<tools::Piece> pieces = tools::classify(input);
  std::size_t end = input.size();
  for (std::size_t i = pieces.size();;) {
    while (end > 0 && std::string_view(" \t\r\n").find(input[end - 1]) != std::string_view::npos) --end;
    if (i == 0 || pieces[i - 1].kind != tools::PieceKind::comment || pieces[i - 1].end < end) break;
    end = pieces[--i].begin;
  }
  return end > 0 && input[end - 1] == ';' &&
         (pieces.empty() || pieces.back().kind != tools::PieceKind::string || pieces.back().end < end);
}

std::string help_of_input(Engine& engine, std::string_view name) {
  // f(x) asks for f.
  if (const std::size_t call = name.find('('); call != std::string_view::npos && call > 0) name = name.substr(0, call);
  Result<std::string> text = tools::help(engine, name);
  if (text.ok()) return text.value();
  std::string answer = text.error().message + "\n";
  const std::size_t cursor = name.size() / 2 + 1;
  std::string similar;
  std::size_t count = 0;
  for (const tools::Completion& candidate : tools::complete(engine, name.substr(0, cursor), cursor).candidates)
    if (candidate.kind != tools::CompletionKind::method && ++count <= 8) similar += " " + candidate.text;
  if (!similar.empty()) answer += "names that begin alike:" + similar + (count > 8 ? " …\n" : "\n");
  return answer;
}

std::string indentation_of(std::string_view line) {
  return std::string(line.substr(0, std::min(line.find_first_not_of(" \t"), line.size())));
}

std::string indentation_after(Engine& engine, std::string_view line) {
  return indentation_of(line) + std::string(opens_body(engine, line) ? indentation_step : 0, ' ');
}

}  // namespace slope::repl
