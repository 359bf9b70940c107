// The kernel: Jupyter's messages, by xeus, and a session that answers them.
#pragma once

#include <string>

namespace slope::repl {

// Until the notebook shuts it down.
void serve_notebook(const std::string& connection_file);

}  // namespace slope::repl
