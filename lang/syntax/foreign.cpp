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
    Entry{"and", "both is `a && b`"},
    Entry{"assert", "an assertion is the macro `@assert condition`"},
    Entry{"auto", "a variable is made by assigning to it: `x = 1`"},
    Entry{"bool", "a variable is made by assigning to it: `x = true`"},
    Entry{"case", "write `if … elseif … else … end`"},
    Entry{"class", "data is a `struct` (or a `mutable struct`); its functions are defined outside of it"},
    Entry{"async", "there are no coroutines of this kind: a function is `function f(x) … end`"},
    Entry{"await", "there is nothing to wait for: a call returns when it is done"},
    Entry{"char", "a variable is made by assigning to it: `c = 'a'`"},
    Entry{"defn", "a function is `function f(x) … end`, or in one line `f(x) = …`"},
    Entry{"delete", "`delete!(collection, key)` takes an element out; variables need not be deleted"},
    Entry{"def", "a function is `function f(x) … end`, or in one line `f(x) = …`"},
    Entry{"del", "`delete!(collection, key)` takes an element out; variables need not be deleted"},
    Entry{"double", "a variable is made by assigning to it: `x = 1.0`"},
    Entry{"elseIf", "write `elseif condition`, inside of `if … end`"},
    Entry{"disp", "a text is printed by `println(…)`"},
    Entry{"echo", "a text is printed by `println(…)`"},
    Entry{"enum", "write `@enum Colour red green blue`"},
    Entry{"elif", "write `elseif condition`, inside of `if … end`"},
    Entry{"elsif", "write `elseif condition`, inside of `if … end`"},
    Entry{"except", "write `catch e`, inside of `try … end`"},
    Entry{"float", "a variable is made by assigning to it: `x = 1.0`; a conversion is a call: `float(x)`"},
    Entry{"fn", "a function is `function f(x) … end`, or in one line `f(x) = …`"},
    Entry{"foreach", "a loop is `for x in xs … end`; `foreach(f, xs)` calls a function"},
    Entry{"from", "names of a module are brought by `using M: name`"},
    Entry{"fun", "a function is `function f(x) … end`, or in one line `f(x) = …`"},
    Entry{"func", "a function is `function f(x) … end`, or in one line `f(x) = …`"},
    Entry{"impl", "methods are functions that take the object: `f(x::T) = …`, defined outside of the type"},
    Entry{"include", "another file is run by `include(\"file\")`; names of a module are brought by `using M: name`"},
    Entry{"interface",
          "an interface is the functions that a type has methods of; types can share an `abstract type A end`"},
    Entry{"int", "a variable is made by assigning to it: `x = 1`"},
    Entry{"lambda", "a function without a name is `x -> x + 1`"},
    Entry{"loop", "write `while true … end`, and `break` to leave it"},
    Entry{"namespace", "write `module M … end`"},
    Entry{"new", "a value is made by calling its type: `T(arguments…)`"},
    Entry{"not", "negation is `!x`"},
    Entry{"nonlocal", "a function inside another one sees and assigns its variables; nothing is declared"},
    Entry{"or", "either is `a || b`"},
    Entry{"package", "write `module M … end`"},
    Entry{"printf", "a text is printed by `println(…)`, with a format by `@printf \"%d\\n\" x`"},
    Entry{"private", "what a module does not `export` is reached by `M.name`; nothing else is hidden"},
    Entry{"proc", "a function is `function f(x) … end`, or in one line `f(x) = …`"},
    Entry{"public", "every name of a module is reached by `M.name`; `export name` brings it by `using M`"},
    Entry{"puts", "a text is printed by `println(…)`"},
    Entry{"raise", "an exception is thrown by `throw(e)`, one with a message by `error(\"…\")`"},
    Entry{"static", "what belongs to no object is a function or a `const` of the module"},
    Entry{"string", "a variable is made by assigning to it: `s = \"text\"`; any value as text is `string(x)`"},
    Entry{"sub", "a function is `function f(x) … end`, or in one line `f(x) = …`"},
    Entry{"switch", "write `if … elseif … else … end`"},
    Entry{"template", "a function takes any types; a type's parameters are `struct A{T} … end`"},
    Entry{"then", "no `then` is needed: the body begins on the next line or behind `;`"},
    Entry{"type", "data is a `struct`; another name for a type is `const A = B`"},
    Entry{"typedef", "another name for a type is `const A = B`"},
    Entry{"match", "write `if … elseif … else … end`; `match(r\"…\", text)` searches a text"},
    Entry{"unless", "write `if !condition … end`"},
    Entry{"until", "write `while !condition … end`"},
    Entry{"val", "a variable is made by assigning to it: `x = 1`"},
    Entry{"var", "a variable is made by assigning to it: `x = 1`"},
    Entry{"void", "a function is `function f(x) … end`; what it gives need not be said"},
    Entry{"when", "write `if … elseif … else … end`"},
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
    Entry{"else", "one of two values is `condition ? a : b`"},
    Entry{"if", "a statement under a condition is `condition && statement`; one of two values is `condition ? a : b`"},
    Entry{"unless", "a statement under a condition is `condition || statement`"},
    Entry{"while", "a condition is tested at the end by `while true … condition || break; end`"},
    Entry{"until", "a condition is tested at the end by `while true … condition && break; end`"},
    Entry{"for", "values for each element are made in brackets: `[f(x) for x in xs]`"},
    Entry{"as", "another name is given by `import M: f as g`"},
    Entry{"extends", "a type stands below another by `struct A <: B`"},
    Entry{"mod", "the remainder is `x % y`, `rem(x, y)` or `mod(x, y)`"},
    Entry{"div", "the whole quotient is `x ÷ y` or `div(x, y)`"},
    Entry{"xor", "write `xor(a, b)` or `a ⊻ b`"},
};

// Before an operand, within an expression.
constexpr std::array prefixes = {
    Entry{"await", "there is nothing to wait for: a call returns when it is done"},
    Entry{"delete", "`delete!(collection, key)` takes an element out"},
    Entry{"lambda", "a function without a name is `x -> x + 1`"},
    Entry{"new", "a value is made by calling its type: `T(arguments…)`"},
    Entry{"not", "negation is `!x`"},
    Entry{"typeof", "the type of a value is `typeof(x)`"},
};

// Operators that nothing follows.
constexpr std::array operators = {
    Entry{"++", "one is added by `x += 1`"},
    Entry{"//", "a comment begins with `#`; `a // b` is a fraction"},
    Entry{"**", "a power is `x ^ y`"},
    Entry{":", "from the second element to the last is `a[2:end]`, all elements `a[:]`"},
    Entry{":=", "a variable is made by assigning to it: `x = 1`"},
    Entry{"<>", "two values are unequal: `a != b`"},
    Entry{"===", "the same value is `a === b`, an equal one `a == b`"},
    Entry{"/", "a comment begins with `#`, a long one with `#=` and ends with `=#`"},
};

template <std::size_t n>
std::string_view find(const std::array<Entry, n>& table, std::string_view word) {
  const auto at = std::find_if(table.begin(), table.end(), [&](const Entry& each) { return each.word == word; });
  return at == table.end() ? std::string_view() : at->help;
}

}  // namespace

std::string foreign_help(std::string_view first, std::string_view before, std::string_view found) {
  if (const std::string_view help = find(beginnings, first); !help.empty()) return std::string(help);
  if (const std::string help = foreign_help_inside(before, found); !help.empty()) return help;
  return first.empty() ? std::string() : "a function is called with parentheses: `" + std::string(first) + "(…)`";
}

std::string foreign_word_help(std::string_view word) {
  static constexpr std::string_view functions[] = {"assert", "disp",   "echo", "float", "include", "int",
                                                   "match",  "printf", "puts", "raise", "string",  "type"};
  if (std::find(std::begin(functions), std::end(functions), word) != std::end(functions)) return "";
  return std::string(find(beginnings, word));
}

std::string foreign_help_inside(std::string_view before, std::string_view found) {
  if (const std::string_view help = find(prefixes, before); !help.empty()) return std::string(help);
  return std::string(find(middles, found));
}

bool is_foreign_block(std::string_view word) {
  static constexpr std::string_view blocks[] = {
      "case", "class", "def",       "defn",    "enum", "fn",  "foreach", "fun",  "func",   "impl",  "interface",
      "loop", "match", "namespace", "package", "proc", "sub", "switch",  "type", "unless", "until", "with"};
  return std::find(std::begin(blocks), std::end(blocks), word) != std::end(blocks);
}

std::string foreign_operator_help(std::string_view text) { return std::string(find(operators, text)); }

}  // namespace slope::syntax
