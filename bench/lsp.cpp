// How long the language server takes to answer while somebody types in a document of so many lines.
//
//   slope_bench_lsp [lines, 5000]
//
// A change, a completion at once, a pause, a hover; then twenty completions that are cancelled, and a hover. An answer's
// time counts from its message, and has the longest step of work before it added: the message may come while that runs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "slope/tools.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

std::string document_of(int lines) {
  std::string text;
  int made = 0;
  for (int i = 1; made + 21 <= lines; ++i, made += 21) {
    const std::string n = std::to_string(i);
    text +=
        "struct Point" + n + "\n    x::Float64\n    y::Float64\nend\nnorm" + n + "(p::Point" + n +
        ") = sqrt(p.x^2 + p.y^2)\nfunction step" + n + "(v::Vector{Float64}, p::Point" + n +
        ")\n    s = 0.0\n    for k in eachindex(v)\n        s += v[k] * norm" + n + "(p)\n    end\n    s" +
        (i > 1 ? " + step" + std::to_string(i - 1) + "(v, Point" + std::to_string(i - 1) + "(p.x, p.y))" : "") +
        "\nend\n\"text of g\"\nfunction g" + n +
        "(x; scale=1.0)\n    y = x * scale\n    if y > 0\n        return y + 1\n    end\n    map(t -> t + y, [1, 2, "
        "3])\nend\n";
  }
  return text;
}

std::string quoted(const std::string& text) {
  std::string made = "\"";
  for (const char c : text) made += c == '\n' ? std::string("\\n") : c == '"' ? std::string("\\\"") : std::string(1, c);
  return made + "\"";
}

class Client {
 public:
  void notice(const std::string& method, const std::string& params) {
    server_.receive(R"({"jsonrpc":"2.0","method":")" + method + R"(","params":)" + params + "}");
  }
  double ask(const std::string& method, const std::string& params) {
    const auto begin = Clock::now();
    const std::string id = std::to_string(++last_);
    server_.receive(R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + method + R"(","params":)" + params + "}");
    return answered(id, begin);
  }
  void rest(double milliseconds) {
    const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(Milliseconds(milliseconds));
    longest_ = 0;
    while (Clock::now() < until) {
      const auto begin = Clock::now();
      if (!server_.step())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      else
        longest_ = std::max(longest_, Milliseconds(Clock::now() - begin).count());
    }
    server_.take_output();
  }
  void ask_and_cancel(const std::string& method, const std::string& params) {
    const std::string id = std::to_string(++last_);
    server_.receive(R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + method + R"(","params":)" + params + "}");
    notice("$/cancelRequest", "{\"id\":" + id + "}");
  }

 private:
  double answered(const std::string& id, Clock::time_point begin) {
    for (;;) {
      server_.step();
      for (const std::string& text : server_.take_output())
        if (text.find("\"id\":" + id + ",") != std::string::npos)
          return Milliseconds(Clock::now() - begin).count() + std::exchange(longest_, 0);
    }
  }
  slope::tools::LanguageServer server_;
  double longest_ = 0;
  int last_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
  const int lines = count > 1 ? std::atoi(arguments[1]) : 5000;
  const std::string text = document_of(lines);
  Client client;
  client.ask("initialize", "{}");
  client.notice("textDocument/didOpen", R"({"textDocument":{"uri":"file:///a.slope","text":)" + quoted(text) + "}}");
  std::printf("%d lines: everything known after %.0f ms\n", lines, client.ask("slope/settle", "{}"));
  const auto at = [](int line, int column) {
    return R"({"textDocument":{"uri":"file:///a.slope"},"position":{"line":)" + std::to_string(line) +
           ",\"character\":" + std::to_string(column) + "}}";
  };
  std::vector<double> times;
  constexpr int first = 14, period = 21;  // `y = x * scale`
  for (int i = 0; i < 100; ++i) {
    const int line = first + period * (i % std::max(lines / period - 1, 1));
    const std::string place = R"({"line":)" + std::to_string(line) + ",\"character\":17}";
    client.notice("textDocument/didChange",
                  R"({"textDocument":{"uri":"file:///a.slope"},"contentChanges":[{"range":{"start":)" + place +
                      ",\"end\":" + place + R"(},"text":)" + (i % 2 ? "\"c\"" : "\" + s\"") + "}]}");
    times.push_back(client.ask("textDocument/completion", at(line, 21)));
    client.rest(i % 3 ? 60 : 300);
    times.push_back(client.ask("textDocument/hover", at(line, 5)));
  }
  std::sort(times.begin(), times.end());
  std::printf("%zu answers: half within %.1f ms, 95 %% within %.1f ms, all within %.1f ms\n", times.size(),
              times[times.size() / 2], times[times.size() * 95 / 100], times.back());
  for (int i = 0; i < 20; ++i) client.ask_and_cancel("textDocument/completion", at(first, 10));
  std::printf("hover behind twenty cancelled completions: %.1f ms\n", client.ask("textDocument/hover", at(first, 5)));
}
