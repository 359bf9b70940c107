// `slope build FILE`: functions of a script as an object file for programs without an engine.
#pragma once

namespace slope::repl {

// `arguments` begin behind the word "build". 0; 1 when it cannot be built; 2 for wrong usage.
int run_build(int count, char** arguments);

}  // namespace slope::repl
