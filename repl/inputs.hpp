// What inputs are, at the prompt and in the cells of notebooks.
#pragma once

#include <string>
#include <string_view>

#include "slope/engine.hpp"

namespace slope::repl {

std::string_view trimmed(std::string_view text);
// An input that ends in `;`, before comments, does not show its value.
bool hides_value(std::string_view input);
constexpr std::size_t indentation_step = 4;
std::string indentation_of(std::string_view line);
// Of the line after this one: one step more in a block, or in brackets, that the line begins.
std::string indentation_after(Engine& engine, std::string_view line);
// What `?name` shows: the documentation, or that there is none and which names begin alike. Ends in a line break.
std::string help_of_input(Engine& engine, std::string_view name);

}  // namespace slope::repl
