#include "repl/output.hpp"

#include <unistd.h>

#include <cerrno>

namespace slope::repl {

Output::Output() : immediate_(isatty(STDOUT_FILENO) != 0) {}

void Output::out(std::string_view text) {
  constexpr std::size_t full = 64 * 1024;
  buffer_ += text;
  if (!text.empty()) at_line_start_ = text.back() == '\n';
  if (immediate_ || text.empty() || buffer_.size() >= full) flush();
}

void Output::err(std::string_view text) {
  flush();
  if (!text.empty()) at_line_start_ = text.back() == '\n';
  write_all(STDERR_FILENO, text);
}

void Output::flush() {
  write_all(STDOUT_FILENO, buffer_);
  buffer_.clear();
}

void Output::write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nobody reads any more, or the disk is full: there is nowhere to say so
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace slope::repl
