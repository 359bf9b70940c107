// The command `slope`, built on include/slope alone.
#pragma once

namespace slope::repl {

// Exit status: 0; 1 when a script fails; 2 for wrong usage; what the script says by exit(code).
int run_command(int count, char** arguments);

}  // namespace slope::repl
