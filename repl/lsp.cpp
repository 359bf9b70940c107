// Reads and writes frames of the protocol; slope/tools.hpp has the server. A thread of its own reads, so that a
// cancelled request is known to be one before it is answered.
#include "repl/lsp.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>

#include "repl/latex.hpp"
#include "repl/subcommand.hpp"
#include "slope/tools.hpp"

namespace slope::repl {

namespace {

constexpr const char* lsp_help = R"(usage: slope lsp [--stdio]

A language server over standard input and output, for editors. editors/vscode is an extension that uses it.

  --stdio   taken for the sake of editors that say so; there is no other way
)";

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

// What the reading thread has read and nobody has taken.
class Inbox {
 public:
  void read_all() {
    for (std::string text; read_message(text);) {
      const std::lock_guard lock(mutex_);
      messages_.push_back(std::move(text));
      changed_.notify_one();
    }
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_one();
  }

  // Waits so long for a message. False: there is none, and none will come.
  bool take(std::deque<std::string>& messages, double seconds) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return !messages_.empty() || is_closed_; });
    messages.swap(messages_);
    return !messages.empty() || !is_closed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> messages_;
  bool is_closed_ = false;
};

void write_messages(tools::LanguageServer& server) {
  for (const std::string& text : server.take_output())
    std::cout << "Content-Length: " << text.size() << "\r\n\r\n" << text;
  std::cout.flush();
}

}  // namespace

int run_lsp(int count, char** arguments) {
  CLI::App app;
  app.add_flag("--stdio");
  const Subcommand command{lsp_help, "slope lsp [--stdio]"};
  if (const std::optional<int> status = command.parse(app, count, arguments)) return *status;

  tools::LanguageServer server([](std::string_view prefix) {
    std::vector<std::pair<std::string, std::string>> found;
    for (const std::string& name : latex_names(prefix)) found.emplace_back(name, latex_character(name));
    return found;
  });
  static Inbox inbox;  // the reading thread may wait for input for ever; the process ends with it
  std::thread([] { inbox.read_all(); }).detach();
  bool is_idle = false, is_open = true;
  while (is_open && !server.has_ended()) {
    std::deque<std::string> messages;
    is_open = inbox.take(messages, is_idle ? server.wait_seconds() : 0);
    for (const std::string& message : messages) server.receive(message);
    is_idle = !server.step();
    write_messages(server);
  }
  while (!server.has_ended() && server.step()) write_messages(server);  // what came before the end of the input
  write_messages(server);
  return 0;
}

}  // namespace slope::repl
