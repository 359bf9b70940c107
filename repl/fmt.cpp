#include "repl/fmt.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "slope/tools.hpp"

namespace slope::repl {

namespace {

constexpr const char* fmt_help = R"(usage: slope fmt [--check] FILE…

Lays out files in place: indentation, blanks at ends of lines, blank lines. Comments and the text within lines stay.
- reads standard input and writes standard output.

  --check   change nothing; name the files that are not laid out so, and end with status 1
)";

}  // namespace

int run_fmt(int count, char** arguments) {
  bool check = false;
  std::vector<std::string> files;
  for (int i = 0; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--check") {
      check = true;
    } else if (argument == "--help" || argument == "-h") {
      std::cout << fmt_help;
      return 0;
    } else if (argument.size() > 1 && argument[0] == '-') {
      std::cerr << "slope: there is no option " << argument << "\n" << fmt_help;
      return 2;
    } else {
      files.push_back(argument);
    }
  }
  if (files.empty()) {
    std::cerr << "slope: which files?\n" << fmt_help;
    return 2;
  }
  int status = 0;
  for (const std::string& file : files) {
    std::string text;
    if (file == "-") {
      text.assign(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
    } else {
      std::ifstream in(file, std::ios::binary);
      std::ostringstream all;
      if (in) all << in.rdbuf();
      if (!in) {
        std::cerr << "slope: cannot read " << file << ": " << std::strerror(errno) << "\n";
        status = 1;
        continue;
      }
      text = std::move(all).str();
    }
    const Result<std::string> laid_out = text.empty() ? Result<std::string>(std::string()) : tools::format(text);
    if (!laid_out.ok()) {
      std::cerr << "slope: " << file << " is left as it is\n" << laid_out.error().message << "\n";
      status = 1;
    } else if (file == "-") {
      std::cout << laid_out.value();
    } else if (laid_out.value() != text) {
      if (check) {
        std::cout << file << "\n";
        status = 1;
      } else if (const std::string why = tools::replace_file(file, laid_out.value()); !why.empty()) {
        std::cerr << "slope: " << why << "\n";
        status = 1;
      }
    }
  }
  return status;
}

}  // namespace slope::repl
