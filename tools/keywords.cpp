#include "tools/keywords.hpp"

namespace slope::api::tools {

namespace {

constexpr KeywordHelp helps[] = {
    {"[",
     "[a, b, c]  a vector\n[a b; c d]  a matrix: blanks between columns, `;` between rows\n[f(x) for x in xs if "
     "p(x)]  a comprehension\na[i]  an element; a[i, j], a[2:end], a[:, 1], a[a .> 0]"},
    {"[]",
     "[a, b, c]  a vector\n[a b; c d]  a matrix: blanks between columns, `;` between rows\n[f(x) for x in xs if "
     "p(x)]  a comprehension\na[i]  an element; a[i, j], a[2:end], a[:, 1], a[a .> 0]"},
    {"(", "(a, b)  a tuple; (a=1, b=2) a named one\n(f(x) for x in xs)  a generator\nf(a, b; k=1)  a call"},
    {"{", "T{A, B}  a type with parameters\nwhere {T<:Real}  variables for types in a signature"},
    {"\"", "\"text $x $(f(x))\"  a string with values in it\n\"\"\"…\"\"\"  one of several lines"},
    {"'", "'c'  a character\nA'  the adjoint of A"},
    {"`", "`command` is not part of Slope; at the prompt `;command` runs a command of the shell"},
    {"#", "# comment\n#= a comment of several lines =#"},
    {";",
     "a; b  two statements in a line\nAt the prompt: `;command` runs a command of the shell; an input that ends in `;` "
     "does not show its value."},
    {"$", "\"$x\"  puts a value into a string; :($x + 1) into an expression"},
    {"@", "@macro arguments  calls a macro\n@. x + y  puts a dot at every operator and call"},
    {"->", "x -> f(x)\n(x, y) -> …\n\nA function without a name."},
    {"=", "x = value\nf(x) = …\n\nAssigns, or defines a function. `==` compares."},
    {"&&", "a && b\n\nWhether both hold; `b` is not asked when `a` does not."},
    {"||", "a || b\n\nWhether one holds; `b` is not asked when `a` does."},
    {"?",
     "condition ? a : b\n\nOne of two values, with blanks around `?` and `:`.\nAt the prompt `?name` tells what a name "
     "means."},
    {"...", "f(args...)  the elements as arguments\nf(x, rest...) = …  any number of arguments"},
    {".", "a.b  a field, or a name of a module\nf.(x), x .+ y, x .= y  for each element"},
    {"abstract type", "abstract type A <: B end\n\nA type without values, for others to be below."},
    {"baremodule", "baremodule M … end\n\nA module that does not see the names of Base."},
    {"begin",
     "begin … end\n\nSeveral statements as one expression; its value is that of the last.\nInside `a[…]`: the first "
     "index."},
    {"break", "break\n\nLeaves the innermost loop."},
    {"catch", "try … catch e … end\n\nRuns when something in the `try` was thrown; `e` is the exception."},
    {"const",
     "const name = value\n\nA global that always has this value: functions that use it are compiled for it.\nIn a "
     "mutable struct: a field that is set once."},
    {"continue", "continue\n\nGoes on with the next turn of the innermost loop."},
    {"do", "f(args) do x … end\n\nThe block becomes a function, the first argument: f(x -> …, args)."},
    {"else", "if … else … end\n\nRuns when no condition before was true."},
    {"elseif", "if … elseif condition … end\n\nThe next condition, asked when none before was true."},
    {"end", "end\n\nCloses a block. Inside `a[…]`: the last index."},
    {"export", "export name, …\n\nThe names that `using` of this module brings."},
    {"false", "false\n\nThe Bool that is no."},
    {"finally", "try … finally … end\n\nRuns in any case when the `try` is left."},
    {"for",
     "for x in xs … end\nfor i = 1:n, j = 1:m … end\n\nRuns the body for each element; several variables make nested "
     "loops."},
    {"function",
     "function f(x, y::T = default; keyword = value) … end\nf(x) = …\n\nAdds a method to `f`. The call chooses the "
     "method by the types of the arguments."},
    {"global", "global x\n\nIn a function or a loop: assignments mean the global of that name."},
    {"if",
     "if condition … elseif condition … else … end\n\nRuns the first branch whose condition is true; its value is that "
     "of the branch."},
    {"import", "import M: f, g\n\nBrings names so that methods can be added to them."},
    {"in", "x in xs\n\nWhether some element of `xs` equals `x`; in `for`: between variable and collection."},
    {"isa", "x isa T\n\nWhether `x` is a value of type `T`."},
    {"let", "let x = 1, y = 2 … end\n\nNew variables that exist inside the block alone."},
    {"local", "local x\n\nA variable of this block, also where an outer one has the name."},
    {"macro",
     "macro m(x) … end\n\nA function on expressions: `@m e` is replaced by what it returns. Its own names are "
     "hygienic; `esc` leaves an expression as it is."},
    {"module", "module M … end\n\nNames of their own; `export` says which others see by `using M`."},
    {"mutable struct", "mutable struct T … end\n\nA struct whose fields can be assigned; each value has an identity."},
    {"primitive type", "primitive type T <: S 32 end\n\nA type of so many bits."},
    {"quote", "quote … end\n:( … )\n\nThe code itself as a value; `$x` puts in the value of x."},
    {"return", "return value\n\nEnds the function. Without it a function gives the value of its last statement."},
    {"struct",
     "struct T{P} <: S\n    field::Type\n    …\nend\n\nA type with these fields, immutable. Calling `T(values…)` makes "
     "a value; inner constructors call `new`."},
    {"true", "true\n\nThe Bool that is yes."},
    {"try", "try … catch e … else … finally … end\n\nRuns the body; what is thrown goes to `catch`."},
    {"using", "using M\nusing M: f\n\nMakes what the module exports, or these names, visible."},
    {"where", "f(x::Vector{T}) where {T<:Real} = …\n\nVariables that stand for types in a signature."},
    {"while", "while condition … end\n\nRuns the body as long as the condition is true."},
    {"@assert", "@assert condition [message]\n\nAn AssertionError unless the condition holds."},
    {"@btime",
     "@btime expression\n\nThe least time of many runs, and the bytes that one run allocates; gives the value."},
    {"@code_grad",
     "@code_grad f(args)\n\nThe code of the gradient of the call, and what it keeps for the reverse sweep, where and "
     "why."},
    {"@code_llvm", "@code_llvm f(args)\n\nWhat goes to LLVM for this call."},
    {"@code_lowered", "@code_lowered f(args)\n\nThe method as SSA form, before types are known."},
    {"@code_native", "@code_native f(args)\n\nThe machine code of the call."},
    {"@code_typed", "@code_typed f(args)\n\nThe method with inferred types, after the optimiser."},
    {"@code_warntype",
     "@code_warntype f(args)\n\nThe method with inferred types. What the compiler could not find out stands in red "
     "(small unions in yellow), or in UPPER CASE without colours. `@why f(args)` says where it began."},
    {"@doc",
     "@doc name\n\nThe documentation of a name, as `?name` shows it. A string before a definition documents it."},
    {"@edit", "@edit f(args)\n\nOpens the method that the call chooses in $VISUAL or $EDITOR."},
    {"@elapsed", "@elapsed expression\n\nThe seconds that it takes."},
    {"@allocated", "@allocated expression\n\nThe bytes that it allocates."},
    {"@eval", "@eval expression\n\nRuns the expression at top level, after `$` has put in values."},
    {"@generated",
     "@generated function f(x) … end\n\nThe body runs on the types of the arguments when a call is compiled and "
     "returns the code of the method."},
    {"@inbounds", "@inbounds expression\n\nNo bounds checks inside."},
    {"@inline", "@inline f(x) = …\n\nCalls of the method are replaced by its body."},
    {"@noinline", "@noinline f(x) = …\n\nCalls of the method stay calls."},
    {"@less", "@less f(args)\n\nShows the source of the method that the call chooses."},
    {"@printf", "@printf \"format\" values…\n\nPrints with C's formats."},
    {"@sprintf", "@sprintf \"format\" values…\n\nThe text that `@printf` would print."},
    {"@show", "@show expressions…\n\nPrints each expression and its value; gives the last value."},
    {"@simd", "@simd for … end\n\nThe turns of the loop may run in any order."},
    {"@test", "@test condition\n\nCounts a pass, or tells what failed with the values on both sides."},
    {"@testset", "@testset \"title\" begin … end\n\nTests that are counted together."},
    {"@test_throws", "@test_throws Exception expression\n\nPasses when the expression throws such an exception."},
    {"@test_inferred",
     "@test_inferred f(args)\n\nA test that the result type of the call is inferred exactly; else it says what `@why` "
     "says."},
    {"@test_noalloc", "@test_noalloc f(args)\n\nA test that a call, once compiled, allocates nothing."},
    {"@test_stackfree",
     "@test_stackfree f(args)\n\nA test that the gradient of the call keeps nothing on a stack that grows as a loop "
     "goes."},
    {"@time", "@time expression\n\nPrints the time, allocations and compile time; gives the value."},
    {"@timed", "@timed expression\n\nA named tuple of value, time, bytes, gctime and allocations."},
    {"@view", "@view a[i, :]\n\nA window into the array instead of a copy."},
    {"@views", "@views expression\n\nAll slices inside become views."},
    {"@which", "@which f(args)\n\nThe method that the call chooses."},
    {"@why",
     "@why f(args)\n\nWhy the result type of the call is not exact: the place where a type first became abstract, how "
     "it gets from there to the result, the reason, and what to change."},
};

}  // namespace

std::span<const KeywordHelp> keyword_helps() { return helps; }

std::string_view keyword_help(std::string_view name) {
  for (const KeywordHelp& help : helps)
    if (help.name == name) return help.text;
  return {};
}

}  // namespace slope::api::tools
