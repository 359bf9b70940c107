#include "repl/coverage.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>

#include "repl/interrupts.hpp"
#include "repl/paint.hpp"
#include "repl/subcommand.hpp"

namespace slope::repl {

namespace {

constexpr const char* coverage_help = R"(usage: slope coverage [OPTIONS] FILE [ARGUMENTS...]

Runs FILE, interpreted, and says how often each line of it, and of the files that it includes, was reached.

  --format FORMAT   text (the default): the lines with their counts; lcov: for genhtml and services; html: one page
  -o, --output PATH write there. Without it the report goes to standard output, and what the script prints to standard
                    error
  --least PERCENT   end with status 1 when fewer of the lines with code ran

Exit status: as without `coverage`, or 1 for --least.
)";

std::size_t ran(const CoverageFile& file) {
  return static_cast<std::size_t>(
      std::count_if(file.lines.begin(), file.lines.end(), [](const CoverageLine& line) { return line.count > 0; }));
}

std::string share(std::size_t part, std::size_t whole) {
  char text[48];
  std::snprintf(text, sizeof text, "%.1f%% (%zu of %zu lines)",
                whole ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 100.0, part, whole);
  return text;
}

std::string total_of(const std::vector<CoverageFile>& files, double* percent = nullptr) {
  std::size_t part = 0, whole = 0;
  for (const CoverageFile& file : files) part += ran(file), whole += file.lines.size();
  if (percent) *percent = whole ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 100;
  return share(part, whole);
}

// Calls `row` for each line of the file: its text and its count; -1: no code.
template <class Row>
void each_line(const CoverageFile& file, const Row& row) {
  std::map<std::uint32_t, std::uint64_t> counts;
  for (const CoverageLine& line : file.lines) counts[line.line] = line.count;
  std::ifstream in(file.file);
  std::uint32_t number = 0;
  for (std::string text; std::getline(in, text);) {
    const auto at = counts.find(++number);
    row(number, text, at == counts.end() ? std::int64_t{-1} : static_cast<std::int64_t>(at->second));
  }
}

std::string html_text(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

}  // namespace

std::string coverage_text(const std::vector<CoverageFile>& files) {
  std::string text;
  for (const CoverageFile& file : files) {
    text += file.file + ": " + share(ran(file), file.lines.size()) + "\n";
    each_line(file, [&](std::uint32_t, const std::string& line, std::int64_t count) {
      char number[32];
      std::snprintf(number, sizeof number, "%10s ",
                    count < 0    ? ""
                    : count == 0 ? "never"
                                 : std::to_string(count).c_str());
      text += number + line + "\n";
    });
    text += "\n";
  }
  return text + "in all: " + total_of(files) + "\n";
}

std::string coverage_lcov(const std::vector<CoverageFile>& files) {
  std::string text;
  for (const CoverageFile& file : files) {
    text += "TN:\nSF:" + file.file + "\n";
    for (const CoverageLine& line : file.lines)
      text += "DA:" + std::to_string(line.line) + "," + std::to_string(line.count) + "\n";
    text += "LF:" + std::to_string(file.lines.size()) + "\nLH:" + std::to_string(ran(file)) + "\nend_of_record\n";
  }
  return text;
}

std::string coverage_html(const std::vector<CoverageFile>& files) {
  std::string body;
  for (const CoverageFile& file : files) {
    body += "<h2>" + html_text(file.file) + "</h2>\n<p>" + share(ran(file), file.lines.size()) + "</p>\n<table>\n";
    each_line(file, [&](std::uint32_t number, const std::string& line, std::int64_t count) {
      body += std::string("<tr") +
              (count == 0  ? " class=\"never\""
               : count > 0 ? " class=\"ran\""
                           : "") +
              "><td>" + std::to_string(number) + "</td><td>" + (count < 0 ? "" : std::to_string(count)) +
              "</td><td><pre>" + html_text(line) + "</pre></td></tr>\n";
    });
    body += "</table>\n";
  }
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
         "charset=\"utf-8\"><title>Coverage</title>\n<style>body{font:14px "
         "sans-serif;margin:1.5em}table{border-collapse:collapse}td{padding:0 .7em;text-align:right;color:#777}"
         "td:last-child{text-align:left;color:#222}pre{margin:0}.never td{background:#fdd}.ran td{background:#efe}"
         "@media(prefers-color-scheme:dark){body{background:#1b1b1b;color:#ddd}td:last-child{color:#ddd}"
         ".never td{background:#522}.ran td{background:#243}}</style></head><body>\n<h1>" +
         total_of(files) + "</h1>\n" + body + "</body></html>\n";
}

int run_coverage(int count, char** arguments) {
  std::string format = "text", output_path;
  double least = 0;
  CLI::App app;
  app.prefix_command();  // the script's arguments are its own
  app.add_option("--format", format)->check(CLI::IsMember({"text", "lcov", "html"}));
  app.add_option("-o,--output", output_path);
  app.add_option("--least", least)->check(CLI::Range(0.0, 100.0));
  const Subcommand command{coverage_help, "slope coverage [OPTIONS] FILE; slope coverage --help lists the options"};
  if (const std::optional<int> status = command.parse(app, count, arguments)) return *status;
  std::vector<std::string> rest = app.remaining();
  if (!rest.empty() && rest[0] == "--") rest.erase(rest.begin());
  if (rest.empty()) return command.wrong_usage("which file?");
  if (rest[0].size() > 1 && rest[0][0] == '-') return command.wrong_usage("there is no option " + rest[0]);
  const std::string file = rest[0];
  rest.erase(rest.begin());

  Output output;
  Options options;
  options.coverage = true;
  options.capabilities = Capabilities::all();
  options.arguments = rest;
  options.output = [&](std::string_view text) { output_path.empty() ? output.err(text) : output.out(text); };
  options.error_output = [&](std::string_view text) { output.err(text); };
  Engine engine(options);
  const auto report = [&](const Error& error) {
    report_error(output, error, wants_color(ColorChoice::automatic, STDERR_FILENO));
  };
  int status = 0;
  {
    InterruptGuard guard(engine);
    if (const Result<Value> result = engine.run_file(file); !result.ok()) {
      status = result.error().kind == ErrorKind::exit ? result.error().exit_code : 1;
      if (result.error().kind != ErrorKind::exit) report(result.error());
    }
  }
  const Result<std::vector<CoverageFile>> found = coverage(engine);
  if (!found.ok()) {
    report(found.error());
    return 1;
  }
  const std::string text = format == "lcov"   ? coverage_lcov(found.value())
                           : format == "html" ? coverage_html(found.value())
                                              : coverage_text(found.value());
  if (output_path.empty()) {
    output.out(text);
  } else if (std::ofstream written(output_path, std::ios::binary); !(written << text) || !written.flush()) {
    std::cerr << "slope: " << output_path << " could not be written\n";
    return 1;
  }
  double percent = 0;
  const std::string total = total_of(found.value(), &percent);
  if (status == 0 && percent < least) {
    std::cerr << "slope: coverage is " << total << ", and was to be at least " << least << "%\n";
    return 1;
  }
  return status;
}

}  // namespace slope::repl
