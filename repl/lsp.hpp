// `slope lsp`: the language server, over standard input and output.
#pragma once

namespace slope::repl {

int run_lsp();  // until the editor says exit, or the input ends

}  // namespace slope::repl
