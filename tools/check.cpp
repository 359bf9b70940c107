// `slope check`: what is wrong with a file, found without running its statements. The file and those that it includes by
// name become one text; its definitions run in an engine of their own, as those of a document of the language server;
// its statements become the body of a function without arguments, from which a walk by inference begins.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "lang/support/diagnostic.hpp"
#include "tools/lsp/document.hpp"
#include "tools/report.hpp"
#include "tools/tools.hpp"

namespace slope::api::tools {

using lsp::Definition;
using lsp::Finding;
using syntax::Ast;
using syntax::Head;
using syntax::NodeId;

namespace {

namespace fs = std::filesystem;

constexpr int most_nested_includes = 40;

// A text put together from files: where each piece is from.
struct Assembled {
  struct Piece {
    std::size_t begin, end;  // of the text
    FileId file;
    std::size_t from;  // where it begins in the file
  };
  std::string text;
  std::vector<Piece> pieces;

  Span original(std::size_t begin, std::size_t end) const {
    for (const Piece& piece : pieces)
      if (piece.begin <= begin && begin < std::max(piece.end, piece.begin + 1))
        return {piece.file, static_cast<std::uint32_t>(begin - piece.begin + piece.from),
                static_cast<std::uint32_t>(std::min(end, piece.end) - piece.begin + piece.from)};
    return {};
  }
};

std::optional<std::string> read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  if (!in || !(all << in.rdbuf())) return in && in.peek() == EOF ? std::optional<std::string>("") : std::nullopt;
  return std::move(all).str();
}

class Check {
 public:
  explicit Check(const CheckOptions& options) : options_(options) {}

  std::vector<CheckProblem> run(const std::string& name, std::string text) {
    assemble(name, std::move(text), 0);
    if (problems_.empty()) analyse(name);
    std::stable_sort(problems_.begin(), problems_.end(), [](const CheckProblem& a, const CheckProblem& b) {
      return std::tie(a.begin.file, a.begin.line, a.begin.column) <
             std::tie(b.begin.file, b.begin.line, b.begin.column);
    });
    return std::move(problems_);
  }

 private:
  // --- files ---

  void assemble(const std::string& name, std::string text, int depth) {
    const FileId file = sources_.add(name, std::move(text));
    const syntax::ParseResult parsed = syntax::parse(sources_, file);
    for (const Diagnostic& each : parsed.diagnostics)
      add(each.span, each.severity == Severity::error, "syntax", each.message, each.help);
    if (!parsed.ok()) return;
    std::map<std::uint32_t, std::pair<std::uint32_t, std::string>> includes;  // by begin: end, path
    find_includes(parsed.ast, parsed.ast.root, includes);
    const std::string_view whole = sources_.file(file).text();
    std::size_t done = 0;
    for (const auto& [begin, included] : includes) {
      const std::string path = (fs::path(name).parent_path() / included.second).string();
      std::optional<std::string> inner = read(path);
      if (!inner || depth >= most_nested_includes || open_.contains(path)) {
        if (!inner) add({file, begin, included.first}, true, "include", "the file " + path + " cannot be read", "");
        continue;
      }
      append(file, whole, done, begin);
      open_.insert(path);
      assembled_.text += "\n";
      assemble(path, std::move(*inner), depth + 1);
      assembled_.text += "\n";
      open_.erase(path);
      done = included.first;
    }
    append(file, whole, done, whole.size());
  }

  void append(FileId file, std::string_view whole, std::size_t begin, std::size_t end) {
    const std::size_t at = assembled_.text.size();
    assembled_.pieces.push_back({at, at + end - begin, file, begin});
    assembled_.text += whole.substr(begin, end - begin);
  }

  // `include("file")` as a statement at top level or in a module.
  static void find_includes(const Ast& ast, NodeId block,
                            std::map<std::uint32_t, std::pair<std::uint32_t, std::string>>& found) {
    for (const NodeId statement : ast.children(block)) {
      if (ast.head(statement) == Head::module_ && ast.child_count(statement) > 1)
        find_includes(ast, ast.child(statement, 1), found);
      const bool is_include = ast.head(statement) == Head::call && ast.child_count(statement) == 2 &&
                              ast.name_of(ast.child(statement, 0)) == "include" &&
                              ast.head(ast.child(statement, 1)) == Head::string;
      const Span span = ast.node(statement).span;
      if (is_include) found[span.begin] = {span.end, std::string(ast.text_of(ast.child(statement, 1)))};
    }
  }

  // --- what is found ---

  void add(Span span, bool is_error, std::string code, std::string message, std::string hint) {
    CheckProblem problem;
    const SourceFile& file = sources_.file(span.file);
    const LineColumn begin = file.line_column(span.begin), end = file.line_column(span.end);
    problem.begin = {file.name(), begin.line, begin.column};
    problem.end = {file.name(), end.line, end.column};
    problem.is_error = is_error;
    problem.code = std::move(code);
    problem.message = std::move(message);
    problem.hint = std::move(hint);
    for (const CheckProblem& other : problems_)
      if (other.begin.line == problem.begin.line && other.begin.column == problem.begin.column &&
          other.begin.file == problem.begin.file && (other.code == problem.code || other.message == problem.message))
        return;
    problem.excerpt = render_place(span, sources_);
    problems_.push_back(std::move(problem));
  }
  void add(std::size_t begin, std::size_t end, bool is_error, const std::string& code, const std::string& message,
           const std::string& hint = "") {
    const Span span = assembled_.original(begin, end);
    if (span.file != 0) add(span, is_error, code, message, hint);
  }

  void analyse(const std::string& name) {
    lsp::Document document(name);
    document.set(assembled_.text);
    if (!document.parsed().ok()) return;  // what files do not show alone: a block over two of them
    lsp::Analysis& analysis = document.analysis();
    while (analysis.step()) continue;
    runs_code_ = document.scopes().runs_code();
    for (const Definition& definition : analysis.definitions())
      for (const Finding& each : definition.findings)
        if (!depends_on_run(each.code))
          add(definition.begin + each.begin, definition.begin + each.end, each.is_error, each.code, each.message);
    for (const Finding& each : analysis.undefined_names(document.scopes()))
      add(each.begin, each.end, each.is_error, each.code, each.message, hint_of(analysis, each));
    walk(document, analysis);
  }

  std::string hint_of(lsp::Analysis& analysis, const Finding& finding) const {
    const std::string name = assembled_.text.substr(finding.begin, finding.end - finding.begin);
    if (name.find('"') != std::string::npos || name.find('\\') != std::string::npos) return "";
    const Result<Value> hint = analysis.engine()->run("Base.name_hint(Symbol(\"" + name + "\"))", "<hint>");
    const std::string text = hint.ok() ? hint.value().display() : "";
    if (text.size() < 2 || text.front() != '"') return "";
    std::string plain;  // the value is displayed as a literal
    for (std::size_t i = 1; i + 1 < text.size(); ++i) {
      const bool is_escape = text[i] == '\\' && i + 2 < text.size();
      if (is_escape) ++i;
      plain += is_escape && text[i] == 'n' ? '\n' : text[i];
    }
    plain.erase(0, plain.find_first_not_of('\n'));
    return plain;
  }

  // The statements outside of functions, as a function: `const` and definitions are blank in it, so places stay.
  std::string statements(const lsp::Document& document, const std::vector<Definition>& definitions) const {
    std::string body = assembled_.text;
    const auto blank = [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end && i < body.size(); ++i)
        if (body[i] != '\n') body[i] = ' ';
    };
    const Ast& ast = document.ast();
    for (const NodeId statement : ast.children(ast.root)) {
      const Span span = ast.node(statement).span;
      const bool is_plain = std::none_of(definitions.begin(), definitions.end(),
                                         [&](const Definition& each) { return each.begin == span.begin; });
      const bool is_eval = ast.head(statement) == Head::macrocall && ast.name_of(ast.child(statement, 0)) == "@eval";
      if (!is_plain || is_eval || ast.head(statement) == Head::global_) blank(span.begin, span.end);
      if (is_plain && ast.head(statement) == Head::const_) blank(span.begin, span.begin + 5);
    }
    return body;
  }

  // Inference sees nothing behind a statement that must fail. So it begins again without those that do.
  void walk(const lsp::Document& document, lsp::Analysis& analysis) {
    constexpr int most_rounds = 50;
    std::string body = statements(document, analysis.definitions());
    for (int round = 0; round < most_rounds; ++round)
      if (!walk_once(document, analysis, body, "#statements" + std::to_string(round))) return;
  }

  // False: no statement was taken out of the body.
  bool walk_once(const lsp::Document& document, lsp::Analysis& analysis, std::string& body, const std::string& name) {
    const std::string begin = "function var\"" + name + "\"() ";
    if (body.find_first_not_of(" \n\t\r;") == std::string::npos) return false;
    Engine& engine = *analysis.engine();
    detail::EngineState& state = detail::Access::state(engine);
    const auto file = static_cast<FileId>(state.runtime.sources.size());
    if (!engine.run(begin + body + "\nnothing\nend", "<statements>").ok()) return false;
    detail::Entry entry(state);
    const detail::RawValue f = detail::value_of_path(state, name);
    if (!f.defined()) return false;
    const Type* parts[] = {f.type};
    Specialization* target = state.runtime.lookup_specialization(state.runtime.types.tuple(parts), state.ctx.world);
    if (!target) return false;
    bool taken_out = false;
    for (const Reported& each : report(state, *target, {options_.lookups, false})) {
      const Span span = each.fault.span;
      if (depends_on_run(each.fault.code)) continue;
      if (span.file == file && span.begin >= begin.size()) {
        add(span.begin - begin.size(), span.end - begin.size(), false, each.fault.code, each.fault.message);
      } else if (const Definition* definition = analysis.of_file(span.file)) {
        add(definition->begin + span.begin, definition->begin + span.end, false, each.fault.code, each.fault.message);
      }
      const Span top = each.way.empty() ? span : each.way.front();
      if (each.fault.code != "lookup" && top.file == file && top.begin >= begin.size())
        taken_out = take_out(document, body, top.begin - begin.size()) || taken_out;
    }
    return taken_out;
  }

  // Where code is made by code that runs, methods and names may come from there.
  bool depends_on_run(const std::string& code) const {
    return runs_code_ && (code == "no-method" || code == "fails" || code == "definition");
  }

  static bool take_out(const lsp::Document& document, std::string& body, std::size_t at) {
    const Ast& ast = document.ast();
    for (const NodeId statement : ast.children(ast.root)) {
      const Span span = ast.node(statement).span;
      if (at < span.begin || at >= span.end) continue;
      bool any = false;
      for (std::size_t i = span.begin; i < span.end && i < body.size(); ++i)
        if (body[i] != '\n' && body[i] != ' ') body[i] = ' ', any = true;
      return any;
    }
    return false;
  }

  CheckOptions options_;
  bool runs_code_ = false;
  SourceMap sources_;
  Assembled assembled_;
  std::set<std::string> open_;
  std::vector<CheckProblem> problems_;
};

}  // namespace

std::vector<CheckProblem> check(const std::string& name, std::string text, const CheckOptions& options) {
  return Check(options).run(name, std::move(text));
}

std::string check_json(const std::vector<CheckProblem>& problems) {
  lsp::Json all = lsp::Json::array();
  for (const CheckProblem& each : problems) {
    lsp::Json item = lsp::Json::object({{"file", each.begin.file},
                                        {"line", static_cast<std::size_t>(each.begin.line)},
                                        {"column", static_cast<std::size_t>(each.begin.column)},
                                        {"endLine", static_cast<std::size_t>(each.end.line)},
                                        {"endColumn", static_cast<std::size_t>(each.end.column)},
                                        {"severity", each.is_error ? "error" : "warning"},
                                        {"code", each.code},
                                        {"message", each.message}});
    if (!each.hint.empty()) item.set("hint", each.hint);
    all.push(std::move(item));
  }
  return all.write();
}

}  // namespace slope::api::tools
