// `slope lsp`: a language server over standard input and output.
#pragma once

namespace slope::repl {

int run_lsp(int count, char** arguments);

}  // namespace slope::repl
