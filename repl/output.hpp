// Standard output and standard error of the command: output is buffered (each print is a call from the script), and
// written when the script flushes it, before anything is read or goes to standard error, at the end, and at the latest
// after 100 ms by `tend_output`.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

namespace slope::repl {

class Output {
 public:
  Output();
  ~Output();
  Output(const Output&) = delete;

  void out(std::string_view text);  // an empty text flushes
  void err(std::string_view text);
  void flush();
  // From another thread: writes what a reader takes at once. Nothing while somebody else writes for longer than that.
  void flush_from_outside(bool waits);
  bool at_line_start() const { return at_line_start_; }  // of what was written last, to either

 private:
  static void write_all(int descriptor, std::string_view text);
  void flush_locked();
  std::timed_mutex mutex_;  // of the buffer
  std::string buffer_;
  bool immediate_;  // a terminal
  bool at_line_start_ = true;
};

// Where output goes to a file or a pipe the thread that calls this writes it every 100 ms, and once more when a signal
// ends the process. `block_ending_signals` comes before any other thread is made. It never returns; elsewhere, at once.
void block_ending_signals();
void tend_output();

}  // namespace slope::repl
