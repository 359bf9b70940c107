// A script as a notebook and back. In the script a line `# %%` begins a cell of code, `# %% [markdown]` one of text, which
// stands in comments.
#pragma once

#include <string>
#include <string_view>

namespace slope::repl {

std::string notebook_of_script(std::string_view script);  // JSON, notebook format 4.5
// Outputs are left out. Throws std::exception when it is no notebook.
std::string script_of_notebook(std::string_view notebook);

// slope notebook FILE [-o FILE]
int run_notebook(int count, char** arguments);

}  // namespace slope::repl
