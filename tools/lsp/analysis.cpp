#include "tools/lsp/analysis.hpp"

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <unordered_set>

#include "lang/lower/builtin_macros.hpp"
#include "tools/lsp/inferred.hpp"
#include "tools/tools.hpp"

namespace slope::api::tools::lsp {

using detail::Access;
using detail::EngineState;
using detail::RawValue;

namespace {

std::unique_ptr<Engine> make_engine() {
  Options options;
  options.tier = Tier::interpret;
  options.time_limit = 1;  // seconds for one definition: a macro of a document may not end
  options.output = [](std::string_view) {};
  options.error_output = [](std::string_view) {};
  return std::make_unique<Engine>(options);
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

bool is_import(const Definition& definition) {
  return definition.kind == Definition::Kind::other &&
         (definition.text.starts_with("using") || definition.text.starts_with("import"));
}

}  // namespace

Analysis::Analysis(std::string name) : name_(std::move(name)) {}
Analysis::~Analysis() = default;

void Analysis::update(std::string_view text, std::shared_ptr<const syntax::ParseResult> parsed) {
  if (!parsed->ok()) return relocate(text, parsed->ast);
  std::vector<Definition> fresh = read_definitions(text, parsed->ast);
  std::vector<std::string> changed;
  const bool goes_on = take_over(fresh, changed) && engine_ && !next_ && to_run_ == definitions_.size();
  definitions_ = std::move(fresh);
  parsed_ = std::move(parsed);
  mark_dependents(std::move(changed));
  if (!goes_on) {
    for (Definition& definition : definitions_) definition.file = 0;
    next_ = make_engine();
    declare_globals();
    imports_failed_ = false;
  }
  to_run_ = to_infer_ = 0;
}

void Analysis::relocate(std::string_view text, const syntax::Ast& ast) {
  std::unordered_multimap<std::string_view, std::uint32_t> places;
  const std::vector<Definition> found = read_definitions(text, ast);
  for (const Definition& definition : found) places.emplace(definition.text, definition.begin);
  std::uint32_t behind = 0;
  for (Definition& definition : definitions_) {
    const auto at = places.find(definition.text);
    if (at != places.end()) {
      definition.begin = at->second;
      behind = definition.end();
      places.erase(at);
    } else if (const std::size_t same = text.find(definition.text, behind); same != std::string_view::npos) {
      // Behind what is broken the tree may have no definitions.
      definition.begin = static_cast<std::uint32_t>(same);
      behind = definition.end();
    } else if (definition.begin < behind) {
      definition.begin = behind;
    }
  }
}

bool Analysis::take_over(std::vector<Definition>& fresh, std::vector<std::string>& changed) const {
  std::unordered_multimap<std::string_view, const Definition*> old;
  for (const Definition& definition : definitions_) old.emplace(definition.text, &definition);
  std::unordered_map<std::string_view, int> signatures;
  for (const Definition& definition : fresh)
    if (definition.kind == Definition::Kind::function) ++signatures[definition.signature];
  std::unordered_multiset<std::string_view> added, removed;
  bool only_bodies = true;
  const auto note = [&](const Definition& definition, std::unordered_multiset<std::string_view>& to) {
    for (const std::string& path : definition.paths) changed.push_back(path);
    only_bodies = only_bodies && definition.kind == Definition::Kind::function;
    to.insert(definition.signature);
    if (definition.kind != Definition::Kind::function && definition.paths.empty()) changed.push_back("");
  };
  for (Definition& definition : fresh) {
    const auto same = old.find(definition.text);
    if (same == old.end()) {
      note(definition, added);
      only_bodies = only_bodies && signatures[definition.signature] == 1;
      continue;
    }
    const Definition& before = *same->second;
    definition.file = before.file;
    definition.is_analysed = before.is_analysed;
    definition.findings = before.findings;
    definition.types = before.types;
    old.erase(same);
  }
  for (const auto& [text, definition] : old) note(*definition, removed);
  return only_bodies && added == removed;
}

// What mentions a changed name is to be inferred again, and what mentions that. A changed method of a function that is
// not the text's own, or an import, may change anything.
void Analysis::mark_dependents(std::vector<std::string> changed) {
  std::unordered_set<std::string> dirty;
  bool everything = false;
  for (const std::string& path : changed) {
    everything = everything || path.empty() || path.find('.') != std::string::npos || path[0] == '@';
    dirty.insert(last_part(path));
  }
  for (const Definition& definition : definitions_)
    if (is_import(definition)) {
      // `import Base: show` lets plain definitions add methods to the library's functions.
      for (const std::string& name : definition.mentions) everything = everything || dirty.contains(name);
    }
  for (const std::string& name : dirty)
    everything = everything || (!name.empty() && !std::isalpha(static_cast<unsigned char>(name[0])) && name[0] != '_' &&
                                static_cast<unsigned char>(name[0]) < 0x80);
  for (bool more = !everything; more;) {
    more = false;
    for (Definition& definition : definitions_) {
      if (!definition.is_analysed) {
        // It changed itself, or is marked: what it defines is dirty.
      } else if (std::none_of(definition.mentions.begin(), definition.mentions.end(),
                              [&](const std::string& name) { return dirty.contains(name); })) {
        continue;
      }
      definition.is_analysed = false;
      for (const std::string& path : definition.paths) more = dirty.insert(last_part(path)).second || more;
    }
  }
  if (everything)
    for (Definition& definition : definitions_) definition.is_analysed = false;
}

bool Analysis::is_done() const { return !next_ && to_run_ == definitions_.size() && to_infer_ == definitions_.size(); }

bool Analysis::step() {
  using Clock = std::chrono::steady_clock;
  constexpr auto most = std::chrono::milliseconds(4);
  const auto begin = Clock::now();
  while (!is_done()) {
    if (to_run_ < definitions_.size()) {
      Definition& definition = definitions_[to_run_++];
      if (definition.file == 0) run(definition);
      if (to_run_ == definitions_.size() && next_) engine_ = std::move(next_);
    } else if (next_) {  // there are no definitions
      engine_ = std::move(next_);
    } else {
      Definition& definition = definitions_[to_infer_++];
      if (!definition.is_analysed) {
        std::erase_if(definition.findings, [](const Finding& each) { return each.code != "definition"; });
        definition.types.clear();
        infer_definition(Access::state(*engine_), parsed_->ast, definition);
        definition.is_analysed = true;
        ++inferred;
      }
    }
    if (Clock::now() - begin > most) break;
  }
  return !is_done();
}

// Names that statements assign are the text's own, also where the library has them.
void Analysis::declare_globals() {
  const syntax::Ast& ast = parsed_->ast;
  std::string names;
  for (syntax::NodeId statement : ast.children(ast.root)) {
    if (ast.head(statement) == syntax::Head::const_) statement = ast.child(statement, 0);
    if (ast.head(statement) != syntax::Head::assign) continue;
    const std::string_view name = ast.name_of(ast.child(statement, 0));
    if (ast.head(ast.child(statement, 0)) == syntax::Head::identifier && !name.empty() &&
        std::none_of(definitions_.begin(), definitions_.end(), [&](const Definition& each) {
          return std::find(each.paths.begin(), each.paths.end(), name) != each.paths.end();
        }))
      names += (names.empty() ? "global " : ", ") + std::string(name);
  }
  if (!names.empty()) (void)next_->run(names, name_);
}

void Analysis::run(Definition& definition) {
  Engine& engine = next_ ? *next_ : *engine_;
  definition.file = static_cast<std::uint32_t>(Access::state(engine).runtime.sources.size());
  std::erase_if(definition.findings, [](const Finding& each) { return each.code == "definition"; });
  const Result<Value> ran = engine.run(definition.text, name_);
  if (ran.ok()) return;
  if (is_import(definition)) imports_failed_ = true;
  note_failure(definition, ran.error());
}

bool Analysis::assigns(const std::string& name) const {
  // A text that assigns it, in whatever statement; what it then is only running it could tell.
  const std::string& ast_names = name;
  for (syntax::NodeId id = 1; id < parsed_->ast.node_count(); ++id) {
    if (parsed_->ast.head(id) != syntax::Head::assign) continue;
    if (parsed_->ast.name_of(parsed_->ast.child(id, 0)) == ast_names) return true;
  }
  return false;
}

// A definition that could not be run: said where it stands, unless it needs what only the text's statements make.
void Analysis::note_failure(Definition& definition, const Error& error) {
  std::string message = error.summary.empty() ? error.message : error.summary;
  if (error.type == "UndefVarError") {
    const std::size_t from = message.find(": ");
    std::string rest = from == std::string::npos ? message : message.substr(from + 2);
    if (rest.starts_with('`')) rest.erase(0, 1);
    if (const std::string name = rest.substr(0, rest.find_first_of("` ")); assigns(name) || imports_failed_) return;
  }
  if (error.kind == ErrorKind::limit || error.kind == ErrorKind::interrupted) return;
  if (constexpr std::string_view label = "error: "; message.starts_with(label)) message.erase(0, label.size());
  message = message.substr(0, message.find("\n  "));
  std::uint32_t begin = 0;
  for (unsigned line = 1; line < error.position.line && begin < definition.text.size(); ++line)
    begin = static_cast<std::uint32_t>(std::min(definition.text.find('\n', begin), definition.text.size() - 1) + 1);
  for (unsigned column = 1; column < error.position.column && begin < definition.text.size(); ++column) {
    ++begin;
    while (begin < definition.text.size() && (static_cast<unsigned char>(definition.text[begin]) & 0xc0) == 0x80)
      ++begin;
  }
  if (begin >= definition.text.size()) begin = 0;
  auto end = static_cast<std::uint32_t>(std::min(definition.text.find('\n', begin), definition.text.size()));
  definition.findings.push_back({begin, std::max(end, begin + 1), true, "definition", message});
}

const Definition* Analysis::at(std::size_t offset) const {
  for (const Definition& definition : definitions_)
    if (definition.begin <= offset && offset <= definition.end()) return &definition;
  return nullptr;
}

const Definition* Analysis::of_file(std::uint32_t file) const {
  for (const Definition& definition : definitions_)
    if (definition.file == file && file != 0) return &definition;
  return nullptr;
}

const TypedSpan* Analysis::type_of(std::size_t begin, std::size_t end) const {
  const Definition* definition = at(begin);
  if (!definition) return nullptr;
  for (const TypedSpan& typed : definition->types)
    if (typed.begin + definition->begin == begin && typed.end + definition->begin == end) return &typed;
  return nullptr;
}

bool Analysis::is_known(const std::string& module, const std::string& name) const {
  EngineState& engine = Access::state(*engine_);
  detail::Entry entry(engine);
  Runtime& runtime = engine.runtime;
  const Module* in = runtime.main;
  if (!module.empty()) {
    const RawValue v = detail::value_of_path(engine, module);
    if (!v.defined() || v.type != engine.types.module) return true;  // nothing can be said
    in = v.module;
  }
  const Binding* binding = runtime.resolve(const_cast<Module*>(in), runtime.symbol(name));
  return binding && (binding->value.defined() || binding->waiting != Binding::none_waiting);
}

std::vector<Finding> Analysis::undefined_names(const Scopes& scopes) const {
  std::vector<Finding> found;
  if (!engine_ || imports_failed_ || scopes.runs_code()) return found;
  std::unordered_map<std::uint32_t, bool> known;
  for (const Occurrence& each : scopes.occurrences()) {
    const NameSymbol& symbol = scopes.symbols()[each.symbol];
    if (symbol.is_defined || each.is_quoted || each.is_definition || symbol.kind == SymbolKind::field) continue;
    const auto [at, is_new] = known.try_emplace(each.symbol, true);
    if (is_new)
      at->second = lower::is_builtin_macro(symbol.name) || is_known(scopes.modules()[symbol.module], symbol.name) ||
                   !keyword_help(symbol.name).empty();
    if (!at->second)
      found.push_back({each.begin, each.end, false, "undefined", "`" + symbol.name + "` is not defined"});
  }
  return found;
}

std::string Analysis::type_of_expression(const std::string& expression) const {
  if (!engine_) return "";
  const Result<Value> maker = engine_->run("() -> (" + expression + "\n)", "<type>");
  if (!maker.ok()) return "";
  const RawValue f = Access::raw(maker.value());
  if (!f.defined()) return "";
  EngineState& engine = Access::state(*engine_);
  detail::Entry entry(engine);
  const Type* parts[] = {f.type};
  const Type* type = engine.pipeline->return_type(engine.ctx, engine.runtime.types.tuple(parts));
  if (engine.ctx.failed()) engine.ctx.take_error();
  return !type || type->kind == TypeKind::bottom ? "" : to_string(type);
}

}  // namespace slope::api::tools::lsp
