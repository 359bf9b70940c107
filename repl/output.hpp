// Standard output and standard error of the command: output is buffered (each print is a call from the script), and
// written when the script flushes it, before anything is read or goes to standard error, and at the end.
#pragma once

#include <string>
#include <string_view>

namespace slope::repl {

class Output {
 public:
  Output();
  ~Output() { flush(); }
  Output(const Output&) = delete;

  void out(std::string_view text);  // an empty text flushes
  void err(std::string_view text);
  void flush();
  bool at_line_start() const { return at_line_start_; }  // of what was written last, to either

 private:
  static void write_all(int descriptor, std::string_view text);
  std::string buffer_;
  bool immediate_;  // a terminal
  bool at_line_start_ = true;
};

}  // namespace slope::repl
