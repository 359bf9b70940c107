#include "repl/command.hpp"

int main(int count, char** arguments) { return slope::repl::run_command(count, arguments); }
