// The language server: messages in, messages out. https://microsoft.github.io/language-server-protocol/, version 3.17
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "slope/tools.hpp"
#include "tools/lsp/document.hpp"

namespace slope::api::tools::lsp {

class Server {
 public:
  void receive(std::string_view message);
  bool step();
  double wait_seconds() const;
  bool has_ended() const { return has_ended_; }
  std::vector<std::string> take_output() { return std::exchange(output_, {}); }
  void set_symbols(LanguageServer::Symbols symbols) { symbols_ = std::move(symbols); }

 private:
  void cancel(const Json& id);
  void handle(const Json& message);
  bool notified(const std::string& method, const Json& params);
  void ask(const std::string& method, const Json& id, const Json& params);
  Json answer(const std::string& method, Document& document, const Json& params, std::string& refused);
  void complete_symbol(Document& document, std::size_t offset, Json& found) const;
  void publish(Document& document);
  bool work();
  void finish(Document& document);  // all its analysis
  void catch_up(Document& document);
  void reply(const Json& id, Json result);
  void fail(const Json& id, int code, const std::string& message);
  void send(Json message) { output_.push_back(message.write()); }

  std::map<std::string, std::unique_ptr<Document>> documents_;
  std::deque<Json> queue_;
  std::vector<std::string> output_;
  LanguageServer::Symbols symbols_;
  bool has_ended_ = false;
};

}  // namespace slope::api::tools::lsp
