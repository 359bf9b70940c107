// What people write who know another language, and what it is here: help for syntax errors.
#pragma once

#include <string>
#include <string_view>

namespace slope::syntax {

// A statement that is the name `first` alone (else empty), and behind it, on the same line, the word `found` (empty: no
// word); `before` is the word before that. Empty when nothing is to be said.
std::string foreign_help(std::string_view first, std::string_view before, std::string_view found);
// The name of a form elsewhere, before a parenthesis: `switch (x)`. Empty for what is a function's name here or there.
std::string foreign_word_help(std::string_view word);
// The same inside of brackets, where `found` was not expected behind `before`.
std::string foreign_help_inside(std::string_view before, std::string_view found);
// Another language's form of that name has an end of its own: `class … end`.
bool is_foreign_block(std::string_view word);

// An operator without an operand. Empty when nothing is to be said.
std::string foreign_operator_help(std::string_view text);

}  // namespace slope::syntax
