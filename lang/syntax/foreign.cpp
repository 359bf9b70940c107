#include "lang/syntax/foreign.hpp"

#include <algorithm>
#include <array>

namespace slope::syntax {

namespace {

struct Entry {
  std::string_view word;
  std::string_view help;
};

// At the beginning of a statement.
constexpr std::array beginnings = {
    Entry{"assert", "an assertion is the macro `@assert condition`"},
    Entry{"auto", "a variable is made by assigning to it: `x = 1`"},
    Entry{"bool", "a variable is made by assigning to it: `x = true`"},
    Entry{"case", "write `if … elseif … else … end`"},
    Entry{"class", "data is a `struct` (or a `mutable struct`); its functions are defined outside of it"},
    Entry{"def", "a function is `function f(x) … end`, or in one line `f(x) = …`"},
    Entry{"del", "`delete!(collection, key)` takes an element out; variables need not be deleted"},
    Entry{"double", "a variable is made by assigning to it: `x = 1.0`"},
    Entry{"elif", "write `elseif condition`, inside of `if … end`"},
    Entry{"elsif", "write `elseif condition`, inside of `if … end`"},
    Entry{"except", "write `catch e`, inside of `try … end`"},
    Entry{"float", "a variable is made by assigning to it: `x = 1.0`; a conversion is a call: `float(x)`"},
    Entry{"fn", "a function is `function f(x) … end`, or in one line `f(x) = …`"},
    Entry{"foreach", "a loop is `for x in xs … end`; `foreach(f, xs)` calls a function"},
    Entry{"from", "names of a module are brought by `using M: name`"},
    Entry{"fun", "a function is `function f(x) … end`, or in one line `f(x) = …`"},
    Entry{"func", "a function is `function f(x) … end`, or in one line `f(x) = …`"},
    Entry{"int", "a variable is made by assigning to it: `x = 1`"},
    Entry{"lambda", "a function without a name is `x -> x + 1`"},
    Entry{"loop", "write `while true … end`, and `break` to leave it"},
    Entry{"namespace", "write `module M … end`"},
    Entry{"new", "a value is made by calling its type: `T(arguments…)`"},
    Entry{"not", "negation is `!x`"},
    Entry{"raise", "an exception is thrown by `throw(e)`, one with a message by `error(\"…\")`"},
    Entry{"switch", "write `if … elseif … else … end`"},
    Entry{"match", "write `if … elseif … else … end`; `match(r\"…\", text)` searches a text"},
    Entry{"unless", "write `if !condition … end`"},
    Entry{"until", "write `while !condition … end`"},
    Entry{"val", "a variable is made by assigning to it: `x = 1`"},
    Entry{"var", "a variable is made by assigning to it: `x = 1`"},
    Entry{"void", "a function is `function f(x) … end`; what it gives need not be said"},
    Entry{"with", "what is to be closed is given to a block: `open(path) do io … end`"},
    Entry{"yield", "a generator is written as a comprehension, `(f(x) for x in xs)`, or as methods of `iterate`"},
};

// Behind a statement that is complete.
constexpr std::array middles = {
    Entry{"and", "both is `a && b`"},
    Entry{"or", "either is `a || b`"},
    Entry{"not", "negation is `!x`; not in a collection is `!(x in xs)` or `x ∉ xs`"},
    Entry{"is", "the same value is `a === b`, a type `x isa T`"},
    Entry{"instanceof", "write `x isa T`"},
    Entry{"then", "no `then` is needed: the body begins on the next line or behind `;`"},
    Entry{"if", "a statement under a condition is `condition && statement`; one of two values is `condition ? a : b`"},
    Entry{"unless", "a statement under a condition is `condition || statement`"},
    Entry{"for", "values for each element are made in brackets: `[f(x) for x in xs]`"},
    Entry{"as", "another name is given by `import M: f as g`"},
    Entry{"extends", "a type stands below another by `struct A <: B`"},
    Entry{"mod", "the remainder is `x % y`, `rem(x, y)` or `mod(x, y)`"},
    Entry{"div", "the whole quotient is `x ÷ y` or `div(x, y)`"},
    Entry{"xor", "write `xor(a, b)` or `a ⊻ b`"},
};

// Operators that nothing follows.
constexpr std::array operators = {
    Entry{"++", "one is added by `x += 1`"},
    Entry{"//", "a comment begins with `#`; `a // b` is a fraction"},
    Entry{"**", "a power is `x ^ y`"},
    Entry{"===", "the same value is `a === b`, an equal one `a == b`"},
};

template <std::size_t n>
std::string_view find(const std::array<Entry, n>& table, std::string_view word) {
  const auto at = std::find_if(table.begin(), table.end(), [&](const Entry& each) { return each.word == word; });
  return at == table.end() ? std::string_view() : at->help;
}

}  // namespace

std::string foreign_help(std::string_view first, std::string_view found) {
  if (const std::string_view help = find(beginnings, first); !help.empty()) return std::string(help);
  if (const std::string_view help = find(middles, found); !help.empty()) return std::string(help);
  return first.empty() ? std::string() : "a function is called with parentheses: `" + std::string(first) + "(…)`";
}

std::string foreign_operator_help(std::string_view text) { return std::string(find(operators, text)); }

}  // namespace slope::syntax
