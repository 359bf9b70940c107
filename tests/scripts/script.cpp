#include "tests/scripts/script.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <regex>
#include <sstream>

namespace slope::test {
namespace {

std::string_view trim_right(std::string_view text) {
  const auto last = text.find_last_not_of(" \t\r");
  return last == std::string_view::npos ? std::string_view{} : text.substr(0, last + 1);
}

// The text behind `marker`, without the one space after it.
std::optional<std::string_view> text_after(std::string_view line, std::string_view marker) {
  const auto at = line.find(marker);
  if (at == std::string_view::npos) return std::nullopt;
  auto rest = line.substr(at + marker.size());
  if (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return trim_right(rest);
}

std::optional<std::string_view> directive(std::string_view line, std::string_view marker) {
  return line.substr(0, marker.size()) == marker ? text_after(line, marker) : std::nullopt;
}

std::vector<std::string> words(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> result;
  for (std::string word; in >> word;) result.push_back(word);
  return result;
}

std::string excerpt(std::string_view text, std::size_t max_lines) {
  const auto lines = split_lines(text);
  std::ostringstream out;
  for (std::size_t i = 0; i < lines.size() && i < max_lines; ++i) out << "    | " << lines[i] << '\n';
  if (lines.size() > max_lines) out << "    | … " << lines.size() - max_lines << " more lines\n";
  return out.str();
}

bool is_number_start(std::string_view text, std::size_t at) {
  if (text[at] < '0' || text[at] > '9') return false;
  if (at == 0) return true;
  const char before = text[at - 1];  // not the digits of a name
  return !((before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z') || before == '_');
}

bool matches(const Expectation& expected, std::string_view found, double tolerance) {
  if (!expected.is_pattern) return same_text(expected.text, trim_right(found), tolerance);
  return std::regex_match(std::string(trim_right(found)), std::regex(expected.text));
}

// Characters, where each counts one: bytes that do not go on with a character of UTF-8.
std::size_t columns(std::string_view line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// Reads lines one after the other; what is wrong with them goes into Script::faults.
class Reader {
 public:
  explicit Reader(Script& script) : script_(script) {}

  void line(std::string_view text) {
    ++number_;
    if (const std::size_t found = columns(text); found > max_columns)
      fault("has " + std::to_string(found) + " columns; at most " + std::to_string(max_columns) + " are allowed");
    const std::string_view unindented = text.substr(std::min(text.find_first_not_of(' '), text.size()));
    if (unindented.starts_with("#>")) {
      if (!latest_) return fault("goes on with an expectation, but there is none above it");
      latest_->back().text.append(trim_right(unindented.substr(2)));
    } else if (in_block_) {
      if (const auto expected = directive(text, "#")) add(script_.output, *expected, false);
    } else {
      in_block_ = trim_right(text) == "# expected output:";
      expectations(text);
      settings(text);
    }
  }

  void end() {
    if (script_.output.empty() && script_.errors.empty() && script_.notices.empty() && !script_.prints_nothing)
      script_.faults.push_back(
          "the script expects nothing, so it cannot fail: write `# expect:` or `# prints nothing`");
    if (script_.prints_nothing && !script_.output.empty())
      script_.faults.push_back("the script prints nothing, yet expects output");
  }

 private:
  void fault(const std::string& what) { script_.faults.push_back("line " + std::to_string(number_) + " " + what); }

  void add(std::vector<Expectation>& to, std::string_view expected, bool is_pattern) {
    to.push_back({number_, std::string(expected), is_pattern});
    latest_ = &to;
  }

  void expectations(std::string_view line) {
    if (const auto expected = text_after(line, "# expect:")) add(script_.output, *expected, false);
    if (const auto expected = text_after(line, "# expect match:")) add(script_.output, *expected, true);
    if (const auto expected = text_after(line, "# expect error:")) add(script_.errors, *expected, false);
    if (const auto expected = text_after(line, "# expect stderr:")) add(script_.notices, *expected, false);
  }

  void settings(std::string_view line) {
    if (const auto value = directive(line, "# args:")) script_.arguments = words(*value);
    if (const auto value = directive(line, "# options:")) script_.options = words(*value);
    if (const auto value = directive(line, "# stdin:")) script_.input.append(*value).append("\n");
    if (const auto value = directive(line, "# tiers:")) script_.tiers = words(*value);
    if (const auto value = directive(line, "# tolerance:")) script_.tolerance = std::stod(std::string(*value));
    if (directive(line, "# output: varies")) script_.output_varies = true;
    if (trim_right(line) == "# prints nothing") script_.prints_nothing = true;
  }

  Script& script_;
  std::vector<Expectation>* latest_ = nullptr;  // its last is what `#>` goes on with
  std::size_t number_ = 0;
  bool in_block_ = false;
};

std::optional<std::string> check_output(const Script& script, std::string_view out) {
  if (script.prints_nothing && !out.empty()) return "  printed, where nothing is expected:\n" + excerpt(out, 10);
  if (script.output.empty()) return std::nullopt;
  const auto found = split_lines(out);
  std::ostringstream problem;
  for (std::size_t i = 0; i < script.output.size(); ++i) {
    const auto& expected = script.output[i];
    if (i < found.size() && matches(expected, found[i], script.tolerance)) continue;
    problem << "  line " << expected.line << ", output line " << i + 1 << "\n    expected: " << expected.text;
    problem << "\n    found:    " << (i < found.size() ? std::string(found[i]) : std::string("(end of output)"))
            << '\n';
    if (i + 1 < found.size())
      problem << "  the output goes on\n" << excerpt(out.substr(found[i + 1].data() - out.data()), 5);
    return problem.str();
  }
  if (found.size() > script.output.size()) {
    problem << "  output beyond the last expectation:\n"
            << excerpt(out.substr(found[script.output.size()].data() - out.data()), 10);
    return problem.str();
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

Script read_script(std::string_view text) {
  Script script;
  Reader reader(script);
  for (const auto line : split_lines(text)) reader.line(line);
  reader.end();
  return script;
}

bool same_text(std::string_view a, std::string_view b, double tolerance) {
  if (tolerance == 0) return a == b;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_number_start(a, i) && is_number_start(b, j)) {
      double x = 0;
      double y = 0;
      const auto end_a = std::from_chars(a.data() + i, a.data() + a.size(), x).ptr;
      const auto end_b = std::from_chars(b.data() + j, b.data() + b.size(), y).ptr;
      if (std::abs(x - y) > tolerance * std::max({1.0, std::abs(x), std::abs(y)})) return false;
      i = static_cast<std::size_t>(end_a - a.data());
      j = static_cast<std::size_t>(end_b - b.data());
    } else if (a[i] == b[j]) {
      ++i;
      ++j;
    } else {
      return false;
    }
  }
  return i == a.size() && j == b.size();
}

std::optional<std::string> check_result(const Script& script, const ProcessResult& result) {
  const auto with_error = [&](const std::string& problem) {
    return problem + "  standard error:\n" + excerpt(result.err, 20);
  };
  if (!script.faults.empty()) {
    std::string problem;
    for (const std::string& fault : script.faults) problem += "  " + fault + "\n";
    return problem;
  }
  if (result.timed_out) return with_error("  ran longer than its time limit\n");
  if (result.signal != 0) return with_error("  ended by signal " + std::to_string(result.signal) + "\n");

  // The first wrong line says more than the exit status of what followed from it, so it comes first.
  const int expected_status = script.errors.empty() ? 0 : 1;
  if (auto problem = check_output(script, result.out)) {
    return result.status == expected_status ? *problem : with_error(*problem);
  }
  if (result.status != expected_status) {
    return with_error("  expected exit status " + std::to_string(expected_status) + ", found " +
                      std::to_string(result.status) + "\n");
  }
  for (const auto* expectations : {&script.errors, &script.notices}) {
    for (const auto& expected : *expectations) {
      if (result.err.find(expected.text) == std::string::npos) {
        return with_error("  line " + std::to_string(expected.line) +
                          "\n    expected on standard error: " + expected.text + "\n");
      }
    }
  }
  return std::nullopt;
}

}  // namespace slope::test
