#include "repl/shell.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace slope::repl {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

std::string run_shell(std::string_view command) {
  std::string text(command);
  if (text == "cd" || text.starts_with("cd ")) {
    std::string folder = text.size() > 3 ? text.substr(text.find_first_not_of(' ', 2)) : variable("HOME");
    if (folder == "~" || folder.starts_with("~/")) folder = variable("HOME") + folder.substr(1);
    if (chdir(folder.c_str()) != 0) return "cd: " + folder + ": " + std::strerror(errno);
    return "";
  }
  const int status = std::system(text.c_str());
  if (status == -1) return std::string("the shell cannot be started: ") + std::strerror(errno);
  return "";
}

std::string open_editor(const std::string& file, const std::string& line) {
  std::string editor = variable("VISUAL");
  if (editor.empty()) editor = variable("EDITOR");
  if (editor.empty()) editor = "vi";
  const int status = std::system((editor + " +" + line + " " + quoted(file)).c_str());
  if (status == 0) return "";
  return "`" + editor + "` could not edit " + file + "; set VISUAL or EDITOR to an editor that takes +LINE FILE";
}

}  // namespace slope::repl
