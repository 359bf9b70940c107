// Completions at the cursor.
//
// The text before the cursor is read as tokens. Inside a string the candidates are paths; after a dot, fields or names
// of a module; after the parenthesis of a call, its methods and keyword arguments; elsewhere, names. Nothing of the
// text runs: the owner of a field is found by walking values of globals or, for an expression, by inferring its type.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "lang/syntax/lexer.hpp"
#include "tools/keywords.hpp"
#include "tools/tools.hpp"

namespace slope::api::tools {

using detail::EngineState;
using detail::RawValue;
using syntax::Token;
using syntax::TokenKind;

namespace {

bool is_opening(TokenKind kind) {
  return kind == TokenKind::left_paren || kind == TokenKind::left_bracket || kind == TokenKind::left_brace;
}
bool is_closing(TokenKind kind) {
  return kind == TokenKind::right_paren || kind == TokenKind::right_bracket || kind == TokenKind::right_brace;
}

class Completer {
 public:
  Completer(Engine& engine, std::string_view text, std::size_t cursor)
      : engine_(detail::Access::state(engine)),
        public_(engine),
        whole_(text),
        text_(text.substr(0, std::min(cursor, text.size()))),
        lexed_(syntax::lex(text_, 0, ast_)) {
    if (!lexed_.tokens.empty() && lexed_.tokens.back().kind == TokenKind::end_of_input) lexed_.tokens.pop_back();
  }

  Completions run() {
    if (std::size_t begin = 0; in_string(begin)) {
      if (!dictionary_keys(begin)) paths(begin);
    } else if (!in_comment()) {
      read_word();
      if (in_import()) {
        modules();
      } else if (has_owner_) {
        fields();
      } else if (macro_) {
        macros();
      } else {
        call_arguments();
        if (!prefix_.empty() || keyword_place_) names();
      }
    }
    auto& all = made_.candidates;
    // Keyword arguments of the call first.
    const auto is_late = [](const Completion& each) { return each.kind != CompletionKind::argument; };
    std::sort(all.begin(), all.end(),
              [&](const auto& a, const auto& b) { return is_late(a) != is_late(b) ? is_late(b) : a.text < b.text; });
    all.erase(std::unique(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.text == b.text; }),
              all.end());
    return std::move(made_);
  }

  // Of the name that ends where the text ends, which is followed by `rest`.
  std::string describe(std::string_view rest) {
    if (std::size_t begin = 0; in_string(begin) || in_comment()) return "";
    read_word();
    if (word_ == tokens().size()) return "";
    if (macro_) return detail::help_text(engine_, "@" + std::string(prefix_));
    // What would be the owner, if a dot followed.
    if (!find_owner(tokens().size(), text_.size())) return detail::help_text(engine_, std::string(prefix_));
    const std::string name(owner_);
    const RawValue value = owner_is_path_ ? detail::value_of_path(engine_, owner_) : RawValue();
    const std::string known = detail::help_text(engine_, owner_is_path_ ? name : std::string(prefix_));
    std::string expression = name;
    if (const std::size_t arguments = closed_length(rest); arguments > 0)
      expression += rest.substr(0, arguments);
    else if (value.defined() && !known.empty())
      return known;
    const Type* type = value.defined() && expression == name ? value.type : inferred(expression);
    if (!type || type == engine_.types.any || type->kind == TypeKind::bottom) return known;
    return expression + " :: " + to_string(type) + "\n" + (known.empty() ? "" : "\n") + known;
  }

 private:
  const std::vector<Token>& tokens() const { return lexed_.tokens; }
  std::string_view spelling(const Token& token) const { return text_.substr(token.begin, token.end - token.begin); }

  void add(std::string text, CompletionKind kind) { made_.candidates.push_back({std::move(text), kind}); }

  // Where the string that the text ends in begins, behind its quote. The lexer closes such a string where the text
  // ends.
  bool in_string(std::size_t& begin) const {
    if (lexed_.unterminated == 0 || tokens().empty()) return false;
    const Token& last = tokens().back();
    if (last.end != text_.size()) return false;
    if (last.kind == TokenKind::raw_string) {
      begin = last.begin + 1;
      return true;
    }
    if (last.kind != TokenKind::string_end || last.begin != last.end) return false;
    std::size_t depth = 0;
    for (std::size_t i = tokens().size(); i-- > 0;) {
      if (tokens()[i].kind == TokenKind::string_end) ++depth;
      if (tokens()[i].kind != TokenKind::string_begin || --depth != 0) continue;
      begin = tokens()[i].end;
      return true;
    }
    return false;
  }

  bool in_comment() const {
    const std::size_t after = tokens().empty() ? 0 : tokens().back().end;
    for (const Piece& piece : classify(text_))
      if (piece.kind == PieceKind::comment && piece.begin >= after && piece.end == text_.size()) return true;
    return false;
  }

  // `d["…`, where d names a dictionary: its keys.
  bool dictionary_keys(std::size_t begin) {
    const auto string = std::find_if(tokens().begin(), tokens().end(), [&](const Token& each) {
      return each.kind == TokenKind::string_begin && each.end == begin;
    });
    const auto at = static_cast<std::size_t>(string - tokens().begin());
    if (at < 2 || at == tokens().size() || tokens()[at - 1].kind != TokenKind::left_bracket) return false;
    if (!find_owner(at - 1) || !owner_is_path_) return false;
    const RawValue owner = detail::value_of_path(engine_, owner_);
    const DataType* type = owner.defined() ? as_data(owner.type) : nullptr;
    if (!type || type->name->name->name != "Dict") return false;
    const Result<Value> keys = public_.run(
        "Base.join([k for k in Base.keys(" + std::string(owner_) + ") if k isa String], '\\n')", "<completion>");
    const RawValue text = keys.ok() ? detail::Access::raw(keys.value()) : RawValue();
    if (!text.defined() || text.type != engine_.types.string) return true;
    std::string_view rest = static_cast<const StringObject*>(text.object)->view();
    made_.begin = begin;
    while (!rest.empty()) {
      const std::string key(rest.substr(0, rest.find('\n')));
      rest.remove_prefix(std::min(rest.size(), key.size() + 1));
      if (key.starts_with(text_.substr(begin)) && key.find_first_of("\"\\$") == std::string::npos)
        add(key + "\"]", CompletionKind::name);
    }
    return true;
  }

  void paths(std::size_t begin) {
    namespace fs = std::filesystem;
    std::string typed(text_.substr(begin));
    if (typed.find('\n') != std::string::npos) return;
    const std::size_t slash = typed.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : typed.substr(0, slash + 1);
    const std::string rest = slash == std::string::npos ? typed : typed.substr(slash + 1);
    made_.begin = begin + folder.size();
    std::string where = folder.empty() ? "." : folder;
    if (where.starts_with("~/"))
      if (const char* home = std::getenv("HOME")) where = home + where.substr(1);
    std::error_code failed;
    for (auto at = fs::directory_iterator(where, failed); !failed && at != fs::directory_iterator();
         at.increment(failed)) {
      std::string name = at->path().filename().string();
      if (!name.starts_with(rest) || (rest.empty() && name[0] == '.')) continue;
      std::error_code unknown;
      if (at->is_directory(unknown)) name += "/";
      add(std::move(name), CompletionKind::path);
    }
  }

  // The word at the end, and what stands before it: `owner.word`, `@word`.
  void read_word() {
    word_ = tokens().size();
    made_.begin = text_.size();
    if (!tokens().empty()) {
      const Token& last = tokens().back();
      const bool is_word =
          last.kind == TokenKind::identifier || last.is_keyword() || last.kind == TokenKind::where ||
          (last.kind == TokenKind::literal && std::isalpha(static_cast<unsigned char>(text_[last.begin]))) ||
          spelling(last) == "in" || spelling(last) == "isa";
      if (last.end == text_.size() && is_word) {
        word_ = tokens().size() - 1;
        made_.begin = last.begin;
        prefix_ = spelling(last);
      }
    }
    if (word_ == 0) return;
    const Token& before = tokens()[word_ - 1];
    if (before.end != made_.begin) return;
    if (before.kind == TokenKind::at) macro_ = true;
    if (before.kind == TokenKind::dot) has_owner_ = find_owner(word_ - 1);
  }

  bool find_owner(std::size_t dot) { return find_owner(dot, tokens()[dot].begin); }
  // The expression that ends before token `dot`, at `end`: names, dots, calls and indices.
  bool find_owner(std::size_t dot, std::size_t end) {
    std::size_t at = dot;
    owner_is_path_ = true;
    while (at > 0) {
      const Token& token = tokens()[at - 1];
      if (token.end != (at == dot ? end : tokens()[at].begin)) break;
      if (is_closing(token.kind)) {
        std::size_t depth = 0;
        std::size_t open = at;
        while (open > 0) {
          const TokenKind kind = tokens()[open - 1].kind;
          if (is_closing(kind)) ++depth;
          if (is_opening(kind) && --depth == 0) break;
          --open;
        }
        if (open == 0) return false;
        at = open - 1;
        owner_is_path_ = false;
        // A parenthesis or an index belongs to what stands right before it.
        if (at > 0 && tokens()[at - 1].end == tokens()[at].begin) continue;
        break;
      }
      if (token.kind == TokenKind::identifier) {
        --at;
        if (at > 0 && tokens()[at - 1].kind == TokenKind::dot && tokens()[at - 1].end == tokens()[at].begin) {
          --at;
          continue;
        }
        break;
      }
      if (token.kind == TokenKind::literal || token.kind == TokenKind::string_end) return false;
      break;
    }
    if (at == dot) return false;
    owner_ = text_.substr(tokens()[at].begin, end - tokens()[at].begin);
    return true;
  }

  // Of the arguments in parentheses that `rest` begins with; 0: it begins with none, or they are not closed.
  static std::size_t closed_length(std::string_view rest) {
    if (!rest.starts_with('(')) return 0;
    syntax::Ast other;
    std::size_t depth = 0;
    for (const Token& token : syntax::lex(rest, 0, other).tokens) {
      if (is_opening(token.kind)) ++depth;
      if (is_closing(token.kind) && --depth == 0) return token.end;
    }
    return 0;
  }

  // The function () -> expression is made, not called: its result type is what is known of the expression.
  const Type* inferred(std::string_view expression) {
    const Result<Value> maker = public_.run("() -> (" + std::string(expression) + ")", "<completion>");
    if (!maker.ok()) return nullptr;
    const RawValue f = detail::Access::raw(maker.value());
    if (!f.defined()) return nullptr;
    const Type* parts[] = {f.type};
    detail::Entry entry(engine_);
    const Type* type = engine_.pipeline->return_type(engine_.ctx, engine_.runtime.types.tuple(parts));
    if (engine_.ctx.failed()) engine_.ctx.take_error();
    return type;
  }

  bool in_import() const {
    for (std::size_t i = word_; i-- > 0;) {
      const Token& token = tokens()[i];
      if (token.kind == TokenKind::kw_using || token.kind == TokenKind::kw_import) return true;
      if (tokens()[i].newline_before() && i + 1 < tokens().size()) return false;
      if (token.kind != TokenKind::identifier && token.kind != TokenKind::comma && token.kind != TokenKind::dot)
        return false;
    }
    return false;
  }

  CompletionKind kind_of(RawValue v) const {
    if (!v.defined()) return CompletionKind::name;
    if (v.type == engine_.types.module) return CompletionKind::module;
    if (engine_.runtime.is_type_value(v)) return CompletionKind::type;
    const DataType* type = as_data(v.type);
    return type && type->name->is_function ? CompletionKind::function : CompletionKind::name;
  }

  void names_of(const Module& module, bool all, bool only_modules = false) {
    module.enter_all();
    for (const auto& [name, binding] : module.bindings) {
      if (!detail::is_plain_name(name->name) || name->name[0] == '@') continue;
      if (!std::string_view(name->name).starts_with(prefix_)) continue;
      if (!(binding->value.defined() || binding->waiting != Binding::none_waiting)) continue;
      if (!all && !module.exports(name)) continue;
      const bool is_waiting_module = !binding->value.defined() && binding->module == engine_.runtime.base &&
                                     engine_.runtime.is_library_module(name->name);
      const CompletionKind kind = is_waiting_module ? CompletionKind::module : kind_of(binding->value);
      if (only_modules && kind != CompletionKind::module) continue;
      add(name->name, kind);
    }
  }

  void modules() {
    const Module* owner = engine_.runtime.main;
    if (has_owner_) {
      const RawValue v = detail::value_of_path(engine_, owner_);
      if (!v.defined() || v.type != engine_.types.module) return;
      owner = v.module;
    }
    names_of(*owner, true, true);
    if (has_owner_) return;
    for (const Module* used : engine_.runtime.main->usings) names_of(*used, false, true);
    if (std::string_view("Base").starts_with(prefix_)) add("Base", CompletionKind::module);
  }

  void fields_of(const Type* type) {
    if (const UnionType* all = as_union(type)) {
      for (const Type* member : all->members) fields_of(member);
      return;
    }
    while (const UnionAllType* all = as_union_all(type)) type = all->body;
    const DataType* data = as_data(type);
    if (!data) return;
    for (const Field& field : data->fields)
      if (field.name && std::string_view(field.name->name).starts_with(prefix_))
        add(field.name->name, CompletionKind::field);
    if (data->fields.empty())
      for (const Symbol* name : data->name->field_names)
        if (std::string_view(name->name).starts_with(prefix_)) add(name->name, CompletionKind::field);
  }

  void fields() {
    if (owner_is_path_) {
      const RawValue v = detail::value_of_path(engine_, owner_);
      if (v.defined() && v.type == engine_.types.module) {
        names_of(*v.module, true);
        // Modules whose names are part of the library, as LinearAlgebra, have none of their own.
        if (made_.candidates.empty() && v.module->parent == engine_.runtime.base)
          names_of(*engine_.runtime.base, false);
        return;
      }
      if (v.defined()) return fields_of(v.type);
    }
    const Type* type = inferred(owner_);
    if (type && type != engine_.types.any && type->kind != TypeKind::bottom) fields_of(type);
  }

  void macros() {
    const auto from = [&](const Module& module, bool all) {
      module.enter_all();
      for (const auto& [name, binding] : module.bindings)
        if (name->name[0] == '@' && (all || module.exports(name)) &&
            std::string_view(name->name).substr(1).starts_with(prefix_))
          add(name->name.substr(1), CompletionKind::macro);
    };
    from(*engine_.runtime.main, true);
    for (const Module* used : engine_.runtime.main->usings) from(*used, false);
    for (const KeywordHelp& help : keyword_helps())
      if (help.name[0] == '@' && help.name.substr(1).starts_with(prefix_))
        add(std::string(help.name.substr(1)), CompletionKind::macro);
  }

  // Inside f( … ): methods when nothing was typed yet, names of keyword arguments where one may stand.
  void call_arguments() {
    std::size_t depth = 0;
    std::size_t open = word_;
    for (; open > 0; --open) {
      const TokenKind kind = tokens()[open - 1].kind;
      if (is_closing(kind)) ++depth;
      if (is_opening(kind) && depth-- == 0) break;
    }
    keyword_place_ = !prefix_.empty();
    if (open == 0 || tokens()[open - 1].kind != TokenKind::left_paren || open < 2) return;
    const Token& paren = tokens()[open - 1];
    std::size_t name = open - 2;
    if (tokens()[name].kind != TokenKind::identifier || tokens()[name].end != paren.begin) return;
    std::size_t first = name;
    while (first >= 2 && tokens()[first - 1].kind == TokenKind::dot &&
           tokens()[first - 2].kind == TokenKind::identifier)
      first -= 2;
    const RawValue callee =
        detail::value_of_path(engine_, text_.substr(tokens()[first].begin, tokens()[name].end - tokens()[first].begin));
    if (!callee.defined()) return;
    const auto methods = detail::current_methods(engine_, callee);
    const bool right_after = word_ == open && prefix_.empty();
    if (right_after) {
      for (const Method* method : methods) add(detail::method_signature(*method), CompletionKind::method);
      return;
    }
    const Token& before = tokens()[word_ - 1];
    if (before.kind != TokenKind::comma && before.kind != TokenKind::semicolon && word_ != open) return;
    for (const std::string& keyword : detail::accepted_keywords(engine_, callee))
      if (std::string_view(keyword).starts_with(prefix_)) add(keyword + "=", CompletionKind::argument);
  }

  void names() {
    if (prefix_.empty()) return;
    const Runtime& runtime = engine_.runtime;
    names_of(*runtime.main, true);
    for (const Module* used : runtime.main->usings) names_of(*used, false);
    for (const KeywordHelp& help : keyword_helps())
      if (help.name[0] != '@' && help.name.find(' ') == std::string_view::npos && help.name.starts_with(prefix_))
        add(std::string(help.name), CompletionKind::keyword);
    // What the text itself names: variables of the function that is being written.
    syntax::Ast other;
    for (const Token& token : syntax::lex(whole_, 0, other).tokens) {
      if (token.kind != TokenKind::identifier || token.begin == made_.begin) continue;
      const std::string_view word = whole_.substr(token.begin, token.end - token.begin);
      if (word.size() > prefix_.size() && word.starts_with(prefix_)) add(std::string(word), CompletionKind::name);
    }
  }

  EngineState& engine_;
  Engine& public_;
  std::string_view whole_;
  std::string_view text_;
  syntax::Ast ast_;
  syntax::LexResult lexed_;
  Completions made_;
  std::size_t word_ = 0;  // the token that is being typed; the number of tokens when there is none
  std::string_view prefix_;
  std::string_view owner_;
  bool has_owner_ = false;
  bool owner_is_path_ = false;
  bool macro_ = false;
  bool keyword_place_ = false;
};

}  // namespace

Completions complete(Engine& engine, std::string_view text, std::size_t cursor) {
  if (detail::Access::state(engine).broken) return {};
  detail::Entry entry(detail::Access::state(engine));
  return Completer(engine, text, cursor).run();
}

std::string describe(Engine& engine, std::string_view text, std::size_t cursor) {
  if (detail::Access::state(engine).broken) return "";
  detail::Entry entry(detail::Access::state(engine));
  // The word that the cursor is in or behind; with none there, the function whose call it is in.
  cursor = std::min(cursor, text.size());
  syntax::Ast ast;
  std::size_t end = 0;
  std::vector<std::size_t> calls;  // where the names end of which arguments are open at the cursor
  const Token* before = nullptr;
  const syntax::LexResult lexed = syntax::lex(text, 0, ast);
  for (const Token& token : lexed.tokens) {
    if (token.begin > cursor) break;
    const bool is_name = token.kind == TokenKind::identifier || token.is_keyword() || token.kind == TokenKind::where;
    if (is_name && token.end >= cursor) end = token.end;
    if (token.end <= cursor && is_opening(token.kind))
      calls.push_back(before && before->kind == TokenKind::identifier && before->end == token.begin ? before->end : 0);
    if (token.end <= cursor && is_closing(token.kind) && !calls.empty()) calls.pop_back();
    before = &token;
  }
  for (; end == 0 && !calls.empty(); calls.pop_back()) end = calls.back();
  if (end == 0) return "";
  return Completer(engine, text, end).describe(text.substr(end));
}

}  // namespace slope::api::tools
