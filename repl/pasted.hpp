// Text that was copied from a session, with its prompts, and is pasted into another one.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace slope::repl {

// The inputs of a copied session: what stands behind each prompt, with the indented lines that follow as long as the
// input is incomplete. What the session answered is left out. Empty when the text does not begin with a prompt.
std::vector<std::string> inputs_of_session(std::string_view text,
                                           const std::function<bool(std::string_view)>& incomplete);

}  // namespace slope::repl
