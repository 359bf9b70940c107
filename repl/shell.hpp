// What the prompt runs outside of the engine.
#pragma once

#include <string>
#include <string_view>

namespace slope::repl {

// `;command`: by the shell; `cd` changes the prompt's own folder. A message when it cannot be done, else empty.
std::string run_shell(std::string_view command);
// Opens $VISUAL, $EDITOR or vi at a line. A message when that fails, else empty.
std::string open_editor(const std::string& file, const std::string& line);

}  // namespace slope::repl
