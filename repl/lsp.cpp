// Reads and writes frames of the protocol; stdlib/tools/lsp.slope handles what is in them. When a document is opened or
// saved, the server's engine runs its definitions, never its other statements, so that their names, fields and places
// are known.
#include "repl/lsp.hpp"

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "slope/tools.hpp"

namespace slope::repl {

namespace {

bool read_message(std::string& text) {
  std::size_t length = 0;
  for (std::string line; std::getline(std::cin, line);) {
    if (line.ends_with('\r')) line.pop_back();
    constexpr std::string_view header = "Content-Length:";
    if (line.starts_with(header)) length = std::strtoull(line.c_str() + header.size(), nullptr, 10);
    if (!line.empty()) continue;
    constexpr std::size_t most = std::size_t{256} << 20;
    if (length == 0 || length > most) return false;
    text.resize(length);
    std::cin.read(text.data(), static_cast<std::streamsize>(length));
    return std::cin.gcount() == static_cast<std::streamsize>(length);
  }
  return false;
}

void write_message(std::string_view text) {
  std::cout << "Content-Length: " << text.size() << "\r\n\r\n" << text;
  std::cout.flush();
}

}  // namespace

int run_lsp() {
  Options options;
  options.tier = Tier::interpret;
  options.time_limit = 5;  // seconds for one answer: a macro of a document may not end
  options.output = [](std::string_view text) { std::cerr << text; };  // standard output is the protocol's
  Engine engine(options);
  tools::serve(engine);
  const Result<Value> server = engine.run("Base.LanguageServer()", "<lsp>");
  const Result<Value> handle = engine.run("Base.lsp_handle", "<lsp>");
  const Result<Value> opened = engine.run("Base.lsp_opened", "<lsp>");
  const Result<Value> checks = engine.run("Base.lsp_checks", "<lsp>");
  if (!server.ok() || !handle.ok() || !opened.ok() || !checks.ok()) {
    std::cerr << "slope lsp: "
              << (!server.ok()   ? server
                  : !handle.ok() ? handle
                  : !opened.ok() ? opened
                                 : checks)
                     .error()
                     .message
              << "\n";
    return 1;
  }
  for (std::string text; read_message(text);) {
    const Result<Value> answered = handle.value()(server.value(), text);
    if (!answered.ok()) {
      std::cerr << "slope lsp: " << answered.error().message << "\n";
      continue;
    }
    const Result<std::string> answers = answered.value().to<std::string>();
    if (!answers.ok() || answers.value() == "exit") break;
    if (!answers.value().empty()) write_message(answers.value());
    // "uri\ntext" when this message brought a document whose definitions are to be known.
    const Result<Value> brought = opened.value()(server.value(), text);
    const Result<std::string> document =
        brought.ok() ? brought.value().to<std::string>() : Result<std::string>(std::string());
    if (!document.ok() || document.value().empty()) continue;
    const std::size_t newline = document.value().find('\n');
    const std::string uri = document.value().substr(0, newline);
    for (const std::string& definition : tools::definitions_of(std::string_view(document.value()).substr(newline + 1)))
      (void)engine.run(definition, uri);  // one that fails is no reason to do without the others
    const Result<Value> checked = checks.value()(server.value(), uri);
    const Result<std::string> found =
        checked.ok() ? checked.value().to<std::string>() : Result<std::string>(std::string());
    if (!checked.ok()) std::cerr << "slope lsp: " << checked.error().message << "\n";
    if (found.ok() && !found.value().empty()) write_message(found.value());
  }
  return 0;
}

}  // namespace slope::repl
