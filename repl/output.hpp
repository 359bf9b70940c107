// Standard output and standard error of the command: output is buffered (each print is a call from the script), and
// written when the script flushes it, before anything is read or goes to standard error, at the end, and at the latest
// after 100 ms by `tend_output`. What cannot be written is lost, and `failure` says so from then on.
#pragma once

#include <atomic>
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
  int failure() const { return failure_; }  // why standard output could not be written, an errno; 0: it could
  // From another thread: writes what a reader takes at once. Nothing while somebody else writes for longer than that.
  void flush_from_outside(bool waits);
  bool at_line_start() const { return at_line_start_; }  // of what was written last, to either

 private:
  static int write_all(int descriptor, std::string_view text);  // 0, or an errno
  void flush_locked();
  std::timed_mutex mutex_;  // of the buffer
  std::string buffer_;
  bool immediate_;  // a terminal
  bool at_line_start_ = true;
  std::atomic<int> failure_ = 0;
};

// A closed standard stream is opened, so that no file that is opened later takes its place. Writing to it fails, and
// reading from it is at the end.
void open_closed_streams();

// Where output goes to a file or a pipe the thread that calls this writes it every 100 ms, and once more when a signal
// ends the process. `block_ending_signals` comes before any other thread is made. It never returns; elsewhere, at once.
void block_ending_signals();
void tend_output();

}  // namespace slope::repl
