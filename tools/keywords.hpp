// What the words of the language and its built-in macros mean, for help.
#pragma once

#include <span>
#include <string_view>

namespace slope::api::tools {

struct KeywordHelp {
  std::string_view name;
  std::string_view text;
};

std::span<const KeywordHelp> keyword_helps();          // words first, then macros with their `@`
std::string_view keyword_help(std::string_view name);  // empty: none of them

}  // namespace slope::api::tools
