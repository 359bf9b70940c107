// The command on a pseudo terminal, as a person at the keyboard has it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/repl/screen.hpp"

namespace slope::test {

struct TerminalOptions {
  std::string kind = "dumb";  // TERM
  std::string state = "/dev/null/none";
  std::string config = "/dev/null/none";
  std::vector<std::string> arguments = {};
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::string folder = {};  // where it runs
  unsigned short rows = 40;
  unsigned short columns = 100;
};

class Terminal {
 public:
  explicit Terminal(const TerminalOptions& options = {});
  ~Terminal();
  Terminal(const Terminal&) = delete;

  void type(const std::string& keys);
  // What appears until `text` does, without control sequences; fails after a while.
  std::string wait_for(const std::string& text);
  // Types a line at the prompt, gives what comes until the next prompt.
  std::string ask(const std::string& line);
  // The screen once it satisfies the condition, or what it is after a while.
  std::string screen_when(const std::function<bool(const std::string&)>& condition);
  // Types; the screen once it ends in `ending` (blanks at ends of rows are not there).
  std::string type_until(const std::string& keys, const std::string& ending);
  void read_now() { read_some(5); }  // what comes within a few milliseconds
  const Screen& screen() const { return screen_; }
  double processor_seconds() const;  // that the command has used
  int status();

 private:
  bool read_some(int milliseconds = 1000);
  void append(std::string_view text);

  int master_ = -1;
  pid_t child_ = -1;
  std::string seen_;
  bool in_sequence_ = false;
  Screen screen_;
  bool dumb_;
};

}  // namespace slope::test
