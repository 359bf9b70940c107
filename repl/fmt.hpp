// `slope fmt FILE…`: formats files in place.
#pragma once

namespace slope::repl {

// `arguments` begin behind the word "fmt". 0; 1 when a file is not formatted (--check) or cannot be; 2 for wrong usage.
int run_fmt(int count, char** arguments);

}  // namespace slope::repl
