#include "lang/support/diagnostic.hpp"

namespace slope {

namespace {

const char* severity_name(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::note:
      return "note";
  }
  return "error";
}

}  // namespace

std::string render_place(Span span, const SourceMap& sources) {
  const std::string number = std::to_string(sources.line_of(span));
  const std::string margin(number.size(), ' ');
  const std::string excerpt = sources.excerpt(span);
  const std::size_t split = excerpt.find('\n');
  return margin + "--> " + sources.describe(span) + "\n" + margin + " |\n" + number + " | " + excerpt.substr(0, split) +
         "\n" + margin + " | " + excerpt.substr(split + 1);
}

std::string render(const Diagnostic& diagnostic, const SourceMap& sources) {
  std::string text = std::string(severity_name(diagnostic.severity)) + ": " + diagnostic.message + "\n" +
                     render_place(diagnostic.span, sources);
  const std::string margin(std::to_string(sources.line_of(diagnostic.span)).size(), ' ');
  if (!diagnostic.help.empty()) text += margin + " = help: " + diagnostic.help + "\n";
  return text;
}

std::string render(const std::vector<Diagnostic>& diagnostics, const SourceMap& sources) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!text.empty()) text += "\n";
    text += render(diagnostic, sources);
  }
  return text;
}

}  // namespace slope
