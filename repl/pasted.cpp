#include "repl/pasted.hpp"

namespace slope::repl {

namespace {
constexpr std::string_view prompt = "slope> ";
constexpr std::string_view julia_prompt = "julia> ";  // as wide
}  // namespace

std::vector<std::string> inputs_of_session(std::string_view text,
                                           const std::function<bool(std::string_view)>& incomplete) {
  std::vector<std::string> inputs;
  bool open = false;  // the last input goes on
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t blanks = line.find_first_not_of(" \t");
    const std::string_view bare = blanks == std::string_view::npos ? std::string_view() : line.substr(blanks);
    if (bare.starts_with(prompt) || bare.starts_with(julia_prompt)) {
      inputs.emplace_back(bare.substr(prompt.size()));
    } else if (inputs.empty()) {
      if (bare.empty()) continue;
      return {};
    } else if (open) {
      const bool indented = line.substr(0, prompt.size()).find_first_not_of(' ') == std::string_view::npos;
      inputs.back() += "\n" + std::string(indented && line.size() >= prompt.size() ? line.substr(prompt.size()) : line);
    } else {
      continue;  // an answer
    }
    open = incomplete(inputs.back());
  }
  return inputs;
}

}  // namespace slope::repl
