// The tab key: what it inserts, and what it lists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "slope/tools.hpp"

namespace slope::repl {

// What may stand in the place of bytes [begin, cursor); `\alpha` and its like stand for their characters.
struct Candidates {
  std::size_t begin = 0;
  bool is_latex = false;
  std::vector<tools::Completion> all;
};
Candidates candidates_at(Engine& engine, std::string_view code, std::size_t cursor);

struct TabResult {
  std::size_t begin = 0;             // bytes [begin, cursor) are replaced by `text`
  std::string text;                  // as far as all candidates agree
  std::vector<std::string> choices;  // to be listed: there are several, or they are to be read only
};

// Names, fields, arguments, paths; `\alpha` becomes its character.
TabResult complete_at(Engine& engine, std::string_view code, std::size_t cursor);
// Paths, for the shell.
TabResult complete_path_at(std::string_view line, std::size_t cursor);

// The choices in columns of a terminal, at most `rows` of them; lines end in a line break.
std::string choices_text(const std::vector<std::string>& choices, std::size_t columns, std::size_t rows);

}  // namespace slope::repl
