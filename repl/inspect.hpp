// `slope inspect FILE --function 'f(::T)' …`: what the compiler makes of a function, as text, JSON or a page.
#pragma once

namespace slope::repl {

// `arguments` begin behind the word "inspect". Exit status as that of scripts.
int run_inspect(int count, char** arguments);

}  // namespace slope::repl
