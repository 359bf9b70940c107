// `slope check FILE…`: what is wrong with files, without running them.
#pragma once

namespace slope::repl {

// `arguments` begin behind the word "check". 0; 1 when there is a problem; 2 for wrong usage or a file that cannot be
// read.
int run_check(int count, char** arguments);

}  // namespace slope::repl
