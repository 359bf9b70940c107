#include "tools/lsp/server.hpp"

#include <algorithm>

namespace slope::api::tools {

namespace lsp {

namespace {

// How long a document rests before its problems are looked for again.
constexpr auto rest = std::chrono::milliseconds(150);
// How long an answer waits for what inference has not found yet.
constexpr auto patience = std::chrono::milliseconds(15);

enum : int {
  parse_error = -32700,
  invalid_request = -32600,
  unknown_method = -32601,
  invalid_params = -32602,
  request_failed = -32803,
  request_cancelled = -32800
};

Json capabilities() {
  return Json::object({{"textDocumentSync", Json::object({{"openClose", true}, {"change", 2}, {"save", true}})},
                       {"hoverProvider", true},
                       {"definitionProvider", true},
                       {"referencesProvider", true},
                       {"documentHighlightProvider", true},
                       {"documentSymbolProvider", true},
                       {"workspaceSymbolProvider", true},
                       {"documentFormattingProvider", true},
                       {"documentRangeFormattingProvider", true},
                       {"renameProvider", Json::object({{"prepareProvider", true}})},
                       {"foldingRangeProvider", true},
                       {"selectionRangeProvider", true},
                       {"inlayHintProvider", true},
                       {"callHierarchyProvider", true},
                       {"codeActionProvider", Json::object({{"codeActionKinds", Json::array({"quickfix"})}})},
                       {"semanticTokensProvider", Json::object({{"legend", semantic_legend()}, {"full", true}})},
                       {"signatureHelpProvider", Json::object({{"triggerCharacters", Json::array({"(", ","})}})},
                       {"completionProvider", Json::object({{"triggerCharacters", Json::array({".", "@", "\\"})},
                                                            {"resolveProvider", true}})}});
}

bool is_notice(const Json& message) { return message["id"].is_null(); }

}  // namespace

void Server::reply(const Json& id, Json result) {
  send(Json::object({{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}}));
}

void Server::fail(const Json& id, int code, const std::string& message) {
  send(Json::object({{"jsonrpc", "2.0"}, {"id", id}, {"error", Json::object({{"code", code}, {"message", message}})}}));
}

void Server::receive(std::string_view text) {
  std::optional<Json> message = Json::parse(text);
  if (!message) return fail(Json(), parse_error, "the message is not JSON");
  if (message->kind() != Json::Kind::object) return fail(Json(), invalid_request, "a message is a JSON object");
  if ((*message)["method"].text() == "$/cancelRequest") return cancel((*message)["params"]["id"]);
  queue_.push_back(std::move(*message));
}

void Server::cancel(const Json& id) {
  const auto at = std::find_if(queue_.begin(), queue_.end(),
                               [&](const Json& each) { return !is_notice(each) && each["id"] == id; });
  if (at == queue_.end()) return;  // it is answered already
  queue_.erase(at);
  fail(id, request_cancelled, "the request was cancelled");
}

bool Server::step() {
  if (has_ended_) return false;
  if (!queue_.empty()) {
    const Json message = std::move(queue_.front());
    queue_.pop_front();
    handle(message);
    return true;
  }
  return work();
}

double Server::wait_seconds() const {
  double least = 3600;
  for (const auto& [uri, document] : documents_) {
    if (document->is_published) continue;
    const std::chrono::duration<double> left = document->changed_at() + rest - Document::Clock::now();
    least = std::min(least, std::max(left.count(), 0.0));
  }
  return least;
}

// A step of analysis of a document that rests.
bool Server::work() {
  const auto now = Document::Clock::now();
  for (const auto& [uri, document] : documents_) {
    if (document->is_published || now < document->changed_at() + rest) continue;
    if (document->parsed().ok() && document->analysis().step()) return true;
    publish(*document);
    return true;
  }
  return false;
}

void Server::publish(Document& document) {
  document.is_published = true;
  send(Json::object({{"jsonrpc", "2.0"},
                     {"method", "textDocument/publishDiagnostics"},
                     {"params", Json::object({{"uri", document.uri()}, {"diagnostics", document.problems()}})}}));
}

void Server::finish(Document& document) {
  while (document.analysis().step()) continue;
}

void Server::catch_up(Document& document) {
  const auto until = Document::Clock::now() + patience;
  while (document.analysis().step() && Document::Clock::now() < until) continue;
}

void Server::handle(const Json& message) {
  const std::string& method = message["method"].text();
  const Json& params = message["params"];
  if (method.empty()) return;  // an answer of the client
  if (is_notice(message)) {
    notified(method, params);
    return;
  }
  ask(method, message["id"], params);
}

bool Server::notified(const std::string& method, const Json& params) {
  if (method == "exit") {
    has_ended_ = true;
    return true;
  }
  const Json& given = params["textDocument"];
  const std::string& uri = given["uri"].text();
  if (method == "textDocument/didOpen") {
    auto& document = documents_[uri];
    document = std::make_unique<Document>(uri);
    document->set(given["text"].text());
    return true;
  }
  const auto at = documents_.find(uri);
  if (at == documents_.end()) return false;
  if (method == "textDocument/didChange") at->second->change(params["contentChanges"]);
  if (method == "textDocument/didClose") {
    documents_.erase(at);
    // Nothing is known of it any more.
    send(Json::object({{"jsonrpc", "2.0"},
                       {"method", "textDocument/publishDiagnostics"},
                       {"params", Json::object({{"uri", uri}, {"diagnostics", Json::array()}})}}));
  }
  return true;
}

void Server::ask(const std::string& method, const Json& id, const Json& params) {
  if (method == "initialize")
    return reply(id, Json::object({{"capabilities", capabilities()},
                                   {"serverInfo", Json::object({{"name", "slope"}, {"version", version()}})}}));
  if (method == "shutdown") return reply(id, Json());
  if (method == "slope/settle") {  // for tests: all that there is to find is found and said
    for (const auto& [uri, document] : documents_) {
      if (document->parsed().ok()) finish(*document);
      if (!document->is_published) publish(*document);
    }
    return reply(id, Json());
  }
  if (method == "workspace/symbol") {
    Json found = Json::array();
    for (const auto& [uri, document] : documents_) workspace_symbols(*document, params["query"].text(), found);
    return reply(id, std::move(found));
  }
  if (method == "completionItem/resolve") {
    Json item = params;
    for (const auto& [uri, document] : documents_) {
      const std::string help = documentation(*document, params["label"].text());
      if (help.empty()) continue;
      item.set("documentation", help);
      break;
    }
    return reply(id, std::move(item));
  }
  const Json& given = params["textDocument"].is_null() ? params["item"] : params["textDocument"];
  const auto at = documents_.find(given["uri"].text());
  static constexpr std::string_view others[] = {"callHierarchy/incomingCalls", "callHierarchy/outgoingCalls"};
  const bool may_know = method.starts_with("textDocument/") ||
                        std::find(std::begin(others), std::end(others), method) != std::end(others);
  if (!may_know) return fail(id, unknown_method, "the server does not know " + method);
  if (at == documents_.end()) return fail(id, invalid_params, "the document " + given["uri"].text() + " is not open");
  std::string refused;
  Json result = answer(method, *at->second, params, refused);
  if (refused == "unknown") return fail(id, unknown_method, "the server does not know " + method);
  if (!refused.empty()) return fail(id, request_failed, refused);
  reply(id, std::move(result));
}

Json Server::answer(const std::string& method, Document& document, const Json& params, std::string& refused) {
  const Text& text = document.text();
  const std::size_t offset = text.offset(params["position"]);
  const std::size_t begin = text.offset(params["range"]["start"]), end = text.offset(params["range"]["end"]);
  const std::string what = method.substr(method.find('/') + 1);
  if (what == "documentSymbol") return document_symbols(document);
  if (what == "foldingRange") return folding_ranges(document);
  if (what == "semanticTokens/full") return semantic_tokens(document);
  if (what == "documentHighlight") return highlights(document, offset);
  if (what == "references") return references(document, offset, params["context"]["includeDeclaration"].boolean());
  if (what == "prepareRename") return rename_range(document, offset, refused);
  if (what == "rename") return renamed(document, offset, params["newName"].text(), refused);
  if (what == "formatting") return formatted(document, 0, text.line_count());
  if (what == "rangeFormatting")
    return formatted(document, params["range"]["start"]["line"].size_number(),
                     params["range"]["end"]["line"].size_number());
  if (what == "selectionRange") {
    Json all = Json::array();
    for (const Json& position : params["positions"].items()) all.push(selection_range(document, text.offset(position)));
    return all;
  }
  catch_up(document);
  if (what == "hover") return hover(document, offset);
  if (what == "definition") return definition_places(document, offset);
  if (what == "signatureHelp") return signature_help(document, offset);
  if (what == "inlayHint") return inlay_hints(document, begin, end);
  if (what == "codeAction") return code_actions(document, begin, end);
  if (what == "prepareCallHierarchy") return call_hierarchy(document, offset);
  if (what == "incomingCalls" || what == "outgoingCalls")
    return calls(document, params["item"], what == "incomingCalls");
  if (what == "completion") {
    Json found = Json::array();
    complete_symbol(document, offset, found);
    return found.items().empty() ? completions(document, offset) : found;
  }
  refused = "unknown";
  return Json();
}

// `\alpha`: the name of a character.
void Server::complete_symbol(Document& document, std::size_t offset, Json& found) const {
  const std::string& text = document.text().all();
  std::size_t begin = offset;
  while (begin > 0 && (std::isalnum(static_cast<unsigned char>(text[begin - 1])) || text[begin - 1] == '^' ||
                       text[begin - 1] == '_' || text[begin - 1] == ':'))
    --begin;
  if (begin == 0 || text[begin - 1] != '\\' || !symbols_) return;
  --begin;
  for (const auto& [name, character] : symbols_(std::string_view(text).substr(begin, offset - begin)))
    found.push(Json::object(
        {{"label", name},
         {"kind", 1},
         {"detail", character},
         {"filterText", name},
         {"textEdit", Json::object({{"range", document.text().range(begin, offset)}, {"newText", character}})}}));
}

}  // namespace lsp

struct LanguageServer::Impl {
  lsp::Server server;
};

LanguageServer::LanguageServer(Symbols symbols) : impl_(std::make_unique<Impl>()) {
  impl_->server.set_symbols(std::move(symbols));
}
LanguageServer::~LanguageServer() = default;
void LanguageServer::receive(std::string_view message) { impl_->server.receive(message); }
bool LanguageServer::step() { return impl_->server.step(); }
double LanguageServer::wait_seconds() const { return impl_->server.wait_seconds(); }
bool LanguageServer::has_ended() const { return impl_->server.has_ended(); }
std::vector<std::string> LanguageServer::take_output() { return impl_->server.take_output(); }

}  // namespace slope::api::tools
