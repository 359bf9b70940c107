#include "tools/lsp/scopes.hpp"

#include <algorithm>
#include <cctype>

namespace slope::api::tools::lsp {

using syntax::Ast;
using syntax::Head;
using syntax::no_node;
using syntax::NodeId;

NodeId signature_call(const Ast& ast, NodeId signature) {
  for (int depth = 0; depth < 100; ++depth) {
    const Head head = ast.head(signature);
    if (head == Head::call || head == Head::tuple) return signature;
    if (head != Head::where && !(head == Head::type_assert && ast.child_count(signature) == 2)) return no_node;
    signature = ast.child(signature, 0);
  }
  return no_node;
}

NodeId defined_identifier(const Ast& ast, NodeId node) {
  if (const NodeId call = signature_call(ast, node); call != no_node) node = ast.child(call, 0);
  for (int depth = 0; depth < 100; ++depth) switch (ast.head(node)) {
      case Head::identifier:
      case Head::quote_symbol:
        return node;
      case Head::dot:
        node = ast.child(node, 1);
        break;
      case Head::curly:
      case Head::subtype:
        node = ast.child(node, 0);
        break;
      default:
        return no_node;
    }
  return no_node;
}

bool is_short_function(const Ast& ast, NodeId node) {
  if (ast.head(node) != Head::assign) return false;
  const NodeId call = signature_call(ast, ast.child(node, 0));
  return call != no_node && ast.head(call) == Head::call;
}

namespace {

bool is_name(std::string_view name) {
  if (name.empty() || name == "end" || name == "begin" || name == "_") return false;
  const auto first = static_cast<unsigned char>(name[0]);
  return std::isalpha(first) || first == '_' || first == '@' || first >= 0x80;
}

// Macros whose arguments are ordinary code.
bool keeps_code(std::string_view macro) {
  static constexpr std::string_view known[] = {
      "@doc",   "@inbounds", "@inline",   "@noinline", "@simd",  "@time",    "@assert",      "@show",
      "@views", "@view",     "@fastmath", "@.",        "@test",  "@elapsed", "@allocated",   "@btime",
      "@timed", "@warn",     "@info",     "@error",    "@debug", "@static",  "@nospecialize"};
  return std::find(std::begin(known), std::end(known), macro) != std::end(known);
}

}  // namespace

class ScopeReader {
 public:
  ScopeReader(const Ast& ast, Scopes& out) : ast_(ast), out_(out) {
    out_.modules_.push_back("");
    declare_globals(ast.root);
    visit_all(ast.root);
    std::stable_sort(out_.occurrences_.begin(), out_.occurrences_.end(),
                     [](const Occurrence& a, const Occurrence& b) { return a.begin < b.begin; });
  }

 private:
  struct Scope {
    std::unordered_map<std::string, std::uint32_t> own;
    bool is_soft = false;
  };
  struct InScope {
    ScopeReader& reader;
    InScope(ScopeReader& r, bool soft) : reader(r) { r.scopes_.push_back({{}, soft}); }
    ~InScope() { reader.scopes_.pop_back(); }
  };

  std::uint32_t global(const std::string& name) {
    const auto [at, is_new] =
        globals_.try_emplace(std::to_string(module_) + ":" + name, static_cast<std::uint32_t>(out_.symbols_.size()));
    if (is_new)
      out_.symbols_.push_back({name, name[0] == '@' ? SymbolKind::macro : SymbolKind::global, module_, false});
    return at->second;
  }
  bool has_global(const std::string& name) const {
    const auto at = globals_.find(std::to_string(module_) + ":" + name);
    return at != globals_.end() && out_.symbols_[at->second].is_defined;
  }
  std::uint32_t* local(const std::string& name) {
    for (std::size_t i = scopes_.size(); i-- > 0;)
      if (const auto at = scopes_[i].own.find(name); at != scopes_[i].own.end()) return &at->second;
    return nullptr;
  }
  std::uint32_t symbol(const std::string& name) {
    const std::uint32_t* found = local(name);
    return found ? *found : global(name);
  }
  void declare(const std::string& name, SymbolKind kind) {
    const auto id = static_cast<std::uint32_t>(out_.symbols_.size());
    if (scopes_.back().own.try_emplace(name, id).second) out_.symbols_.push_back({name, kind, 0, true});
  }

  // How an occurrence came to be.
  struct Use {
    bool is_definition = false, is_write = false, is_call = false;
  };
  void occur(NodeId node, std::uint32_t symbol, Use use) {
    const Span span = ast_.node(node).span;
    if (span.end <= span.begin) return;
    out_.occurrences_.push_back(
        {span.begin, span.end, symbol, use.is_definition, use.is_write, use.is_call, quoted_ > 0});
  }
  void name(NodeId node) { name(node, Use()); }
  void name(NodeId node, Use use) {
    const std::string spelling(ast_.name_of(node));
    if (is_name(spelling)) occur(node, symbol(spelling), use);
  }
  // Defines in the innermost scope, or globally.
  void define(NodeId node, SymbolKind kind, bool is_write = false) {
    const std::string spelling(ast_.name_of(node));
    if (!is_name(spelling)) return;
    const std::uint32_t id = symbol(spelling);
    NameSymbol& found = out_.symbols_[id];
    found.is_defined = true;
    if (found.kind == SymbolKind::global || (found.kind == SymbolKind::local && kind == SymbolKind::function))
      found.kind = kind;
    occur(node, id, {true, is_write, false});
  }

  // --- what a scope assigns ---

  // Names on the left of an assignment.
  template <class F>
  void targets(NodeId node, const F& each) const {
    switch (ast_.head(node)) {
      case Head::identifier:
        each(node);
        break;
      case Head::tuple:
      case Head::parameters:
        for (const NodeId child : ast_.children(node)) targets(child, each);
        break;
      case Head::type_assert:
        if (ast_.child_count(node) == 2) targets(ast_.child(node, 0), each);
        break;
      case Head::splat:
        targets(ast_.child(node, 0), each);
        break;
      case Head::global_:
      case Head::const_:
      case Head::local_:
        for (const NodeId child : ast_.children(node)) targets(child, each);
        break;
      default:
        break;
    }
  }

  // Assigned in this scope, without those nested in it.
  template <class F>
  void assigned(NodeId node, const F& each) const {
    switch (ast_.head(node)) {
      case Head::assign:
      case Head::op_assign: {
        const bool plain = ast_.head(node) == Head::assign;
        if (plain && is_short_function(ast_, node)) {
          const NodeId named = ast_.child(signature_call(ast_, ast_.child(node, 0)), 0);
          if (ast_.head(named) == Head::identifier) each(named, false);
          return;
        }
        targets(ast_.child(node, plain ? 0 : 1), [&](NodeId target) { each(target, false); });
        assigned(ast_.child(node, plain ? 1 : 2), each);
        return;
      }
      case Head::local_:
        for (const NodeId child : ast_.children(node)) {
          targets(ast_.head(child) == Head::assign ? ast_.child(child, 0) : child,
                  [&](NodeId target) { each(target, true); });
        }
        return;
      case Head::function: {
        const NodeId call = signature_call(ast_, ast_.child(node, 0));
        const NodeId named =
            call != no_node && ast_.head(call) == Head::call ? ast_.child(call, 0) : ast_.child(node, 0);
        if (ast_.head(named) == Head::identifier) each(named, false);
        return;
      }
      case Head::global_:
      case Head::arrow:
      case Head::do_:
      case Head::let_:
      case Head::for_:
      case Head::while_:
      case Head::try_:
      case Head::generator:
      case Head::comprehension:
      case Head::typed_comprehension:
      case Head::flatten:
      case Head::struct_:
      case Head::module_:
      case Head::macro_:
      case Head::quote:
        return;
      case Head::tuple:
        for (const NodeId child : ast_.children(node))
          assigned(ast_.head(child) == Head::assign ? ast_.child(child, 1) : child, each);
        return;
      default:
        for (const NodeId child : ast_.children(node)) assigned(child, each);
    }
  }

  void declare_assigned(NodeId body) {
    std::vector<std::string> of_globals;
    collect_globals(body, of_globals);
    assigned(body, [&](NodeId target, bool is_new) {
      const std::string spelling(ast_.name_of(target));
      if (!is_name(spelling)) return;
      if (std::find(of_globals.begin(), of_globals.end(), spelling) != of_globals.end()) return;
      if (!is_new && local(spelling)) return;
      const bool at_top = std::all_of(scopes_.begin(), scopes_.end(), [](const Scope& s) { return s.is_soft; });
      if (!is_new && at_top && has_global(spelling)) return;
      declare(spelling, SymbolKind::local);
    });
  }
  void collect_globals(NodeId node, std::vector<std::string>& names) const {
    if (ast_.head(node) == Head::function || ast_.head(node) == Head::arrow) return;
    if (ast_.head(node) == Head::global_)
      for (const NodeId child : ast_.children(node))
        targets(ast_.head(child) == Head::assign ? ast_.child(child, 0) : child,
                [&](NodeId target) { names.emplace_back(ast_.name_of(target)); });
    for (const NodeId child : ast_.children(node)) collect_globals(child, names);
  }

  // The globals of a text or a module, before anything reads them.
  void declare_globals(NodeId node) {
    const auto mark = [&](NodeId target, SymbolKind kind) {
      const std::string spelling(ast_.name_of(target));
      if (!is_name(spelling)) return;
      NameSymbol& found = out_.symbols_[global(spelling)];
      found.is_defined = true;
      if (found.kind == SymbolKind::global) found.kind = kind;
    };
    switch (ast_.head(node)) {
      case Head::struct_:
      case Head::abstract_:
      case Head::primitive_: {
        if (const NodeId id = defined_identifier(ast_, ast_.child(node, 0)); id != no_node) mark(id, SymbolKind::type);
        return;
      }
      case Head::function:
        if (const NodeId call = signature_call(ast_, ast_.child(node, 0));
            call != no_node && ast_.head(call) == Head::call) {
          if (ast_.head(ast_.child(call, 0)) == Head::identifier) mark(ast_.child(call, 0), SymbolKind::function);
        } else if (ast_.head(ast_.child(node, 0)) == Head::identifier) {
          mark(ast_.child(node, 0), SymbolKind::function);
        }
        return;
      case Head::macro_:
        if (const NodeId id = defined_identifier(ast_, ast_.child(node, 0)); id != no_node) {
          NameSymbol& found = out_.symbols_[global(macro_name(id))];
          found.is_defined = true;
        }
        return;
      case Head::module_:
        mark(ast_.child(node, 0), SymbolKind::module);
        return;
      case Head::using_:
      case Head::import_:
        imported(node, [&](NodeId target) { mark(target, SymbolKind::global); });
        return;
      case Head::let_:
      case Head::arrow:
      case Head::quote:
        return;
      case Head::for_:
      case Head::while_:
      case Head::try_: {  // `global x` in them
        std::vector<std::string> names;
        collect_globals(node, names);
        for (const std::string& each : names)
          if (is_name(each)) out_.symbols_[global(each)].is_defined = true;
        return;
      }
      case Head::macrocall:
        defined_by_macro(node, mark);
        for (const NodeId child : ast_.children(node)) declare_globals(child);
        return;
      default:
        assigned_here(node, mark);
        for (const NodeId child : ast_.children(node)) declare_globals(child);
    }
  }
  template <class F>
  void assigned_here(NodeId node, const F& mark) {
    if (is_short_function(ast_, node)) {
      const NodeId named = ast_.child(signature_call(ast_, ast_.child(node, 0)), 0);
      if (ast_.head(named) == Head::identifier) mark(named, SymbolKind::function);
    } else if (is_alias(node)) {
      mark(ast_.child(ast_.child(node, 0), 0), SymbolKind::type);
    } else if (ast_.head(node) == Head::assign) {
      targets(ast_.child(node, 0), [&](NodeId target) { mark(target, SymbolKind::global); });
    } else if (ast_.head(node) == Head::const_ || ast_.head(node) == Head::global_) {
      targets(node, [&](NodeId target) { mark(target, SymbolKind::global); });
    }
  }
  // A{T} = …
  bool is_alias(NodeId node) const {
    return ast_.head(node) == Head::assign && ast_.head(ast_.child(node, 0)) == Head::curly &&
           ast_.head(ast_.child(ast_.child(node, 0), 0)) == Head::identifier;
  }
  // `@enum` and `@deprecate` define names; what a macro of the text itself defines, only running it could tell.
  template <class F>
  void defined_by_macro(NodeId node, const F& mark) {
    const std::string_view spelling = ast_.name_of(ast_.child(node, 0));
    if (has_global(std::string(spelling))) out_.runs_code_ = true;
    const auto named = [&](NodeId each) {
      if (ast_.head(each) == Head::assign || ast_.head(each) == Head::type_assert) each = ast_.child(each, 0);
      if (ast_.head(each) == Head::call) each = ast_.child(each, 0);
      if (ast_.head(each) == Head::identifier) mark(each, SymbolKind::global);
    };
    for (const NodeId argument : ast_.children(node).subspan(1)) {
      if (spelling == "@enum" && ast_.head(argument) == Head::block)
        for (const NodeId each : ast_.children(argument)) named(each);
      else if (spelling == "@enum" || spelling == "@deprecate")
        named(argument);
    }
  }
  std::string macro_name(NodeId id) const { return "@" + std::string(ast_.name_of(id)); }

  template <class F>
  void imported(NodeId node, const F& each) const {
    const auto last = [&](NodeId path) {
      if (ast_.head(path) == Head::dot_path && ast_.child_count(path) > 0) each(ast_.children(path).back());
    };
    for (const NodeId child : ast_.children(node)) {
      if (ast_.head(child) == Head::import_list) {
        for (const NodeId path : ast_.children(child).subspan(1)) last(path);
        last(ast_.child(child, 0));
      } else {
        last(child);
      }
    }
  }

  // --- reading ---

  void visit_all(NodeId node) {
    for (const NodeId child : ast_.children(node)) visit(child);
  }

  void visit(NodeId node) {
    switch (ast_.head(node)) {
      case Head::identifier:
        return name(node);
      case Head::quote_symbol:
        return;
      case Head::quote:
        ++quoted_;
        visit_all(node);
        --quoted_;
        return;
      case Head::macrocall:
        return macro_call(node);
      case Head::call:
      case Head::dot_call:
        if (ast_.head(ast_.child(node, 0)) == Head::identifier) {
          const std::string_view callee = ast_.name_of(ast_.child(node, 0));
          if (callee == "include" || callee == "eval") out_.runs_code_ = true;
          name(ast_.child(node, 0), {false, false, true});
        } else {
          visit(ast_.child(node, 0));
        }
        for (const NodeId argument : ast_.children(node).subspan(1)) visit(argument);
        return;
      case Head::kw:
        return visit(ast_.child(node, 1));
      case Head::tuple:
        for (const NodeId child : ast_.children(node))
          visit(ast_.head(child) == Head::assign ? ast_.child(child, 1) : child);
        return;
      case Head::dot: {
        visit(ast_.child(node, 0));
        const NodeId field = ast_.child(node, 1);
        if (ast_.head(field) == Head::quote_symbol && is_name(ast_.name_of(field)))
          occur(field, field_symbol(std::string(ast_.name_of(field))), {});
        return;
      }
      case Head::assign:
        return is_short_function(ast_, node) ? function(ast_.child(node, 0), ast_.child(node, 1)) : assignment(node, 0);
      case Head::op_assign:
        return assignment(node, 1);
      case Head::dot_op_assign:
        for (const NodeId child : ast_.children(node).subspan(1)) visit(child);
        return;
      case Head::function:
        return function(ast_.child(node, 0), ast_.child(node, 1));
      case Head::macro_:
        return macro(node);
      case Head::arrow:
        return arrow(node);
      case Head::let_:
        return let(node);
      case Head::for_:
        return loop(ast_.child(node, 0), ast_.child(node, 1));
      case Head::while_: {
        visit(ast_.child(node, 0));
        const InScope scope(*this, true);
        declare_assigned(ast_.child(node, 1));
        return visit(ast_.child(node, 1));
      }
      case Head::try_:
        return try_block(node);
      case Head::generator:
        return generator(node);
      case Head::where:
        return where(node);
      case Head::struct_:
        return type(node);
      case Head::abstract_:
      case Head::primitive_:
        return type_signature(ast_.child(node, 0));
      case Head::module_:
        return module(node);
      case Head::using_:
      case Head::import_:
        return imported(node, [&](NodeId target) { define(target, SymbolKind::global); });
      case Head::global_:
      case Head::local_:
      case Head::const_:
        for (const NodeId child : ast_.children(node)) {
          if (ast_.head(child) == Head::assign || ast_.head(child) == Head::global_ ||
              ast_.head(child) == Head::function)
            visit(child);
          else
            pattern(child);
        }
        return;
      default:
        visit_all(node);
    }
  }

  std::uint32_t field_symbol(const std::string& spelling) {
    const auto [at, is_new] = fields_.try_emplace(spelling, static_cast<std::uint32_t>(out_.symbols_.size()));
    if (is_new) out_.symbols_.push_back({spelling, SymbolKind::field, 0, true});
    return at->second;
  }

  void macro_call(NodeId node) {
    const NodeId callee = ast_.child(node, 0);
    const std::string_view spelling = ast_.name_of(callee);
    if (ast_.head(callee) == Head::identifier) name(callee, {false, false, true});
    if (spelling == "@eval" || spelling == "@generated") out_.runs_code_ = out_.runs_code_ || spelling == "@eval";
    const bool is_code = keeps_code(spelling);
    if (!is_code) ++quoted_;
    for (const NodeId argument : ast_.children(node).subspan(1)) visit(argument);
    if (!is_code) --quoted_;
  }

  // The left side of an assignment.
  void pattern(NodeId node) {
    switch (ast_.head(node)) {
      case Head::identifier:
        return define(node, scopes_.empty() ? SymbolKind::global : SymbolKind::local, true);
      case Head::tuple:
      case Head::parameters:
      case Head::splat:
        for (const NodeId child : ast_.children(node)) pattern(child);
        return;
      case Head::type_assert:
        pattern(ast_.child(node, 0));
        if (ast_.child_count(node) == 2) visit(ast_.child(node, 1));
        return;
      case Head::assign:
        pattern(ast_.child(node, 0));
        return visit(ast_.child(node, 1));
      default:
        return visit(node);
    }
  }
  void assignment(NodeId node, std::size_t left) {
    if (is_alias(node)) {
      const NodeId alias = ast_.child(node, 0);
      define(ast_.child(alias, 0), SymbolKind::type);
      const InScope scope(*this, false);
      for (const NodeId each : ast_.children(alias).subspan(1)) type_variable(each);
      return visit(ast_.child(node, 1));
    }
    visit(ast_.child(node, left + 1));
    pattern(ast_.child(node, left));
  }

  void type_variable(NodeId node) {
    NodeId bound = node;
    if (ast_.head(node) == Head::subtype || ast_.head(node) == Head::supertype) {
      node = ast_.child(bound, 0);
      if (ast_.child_count(bound) > 1) visit(ast_.child(bound, 1));
    } else if (ast_.head(node) == Head::comparison && ast_.child_count(node) == 5) {
      node = ast_.child(bound, 2);
      visit(ast_.child(bound, 0));
      visit(ast_.child(bound, 4));
    }
    if (ast_.head(node) != Head::identifier || !is_name(ast_.name_of(node))) return;
    declare(std::string(ast_.name_of(node)), SymbolKind::type_parameter);
    define(node, SymbolKind::type_parameter);
  }

  void parameter(NodeId node) {
    switch (ast_.head(node)) {
      case Head::identifier:
        if (!is_name(ast_.name_of(node))) return;
        declare(std::string(ast_.name_of(node)), SymbolKind::parameter);
        return define(node, SymbolKind::parameter);
      case Head::type_assert:
        if (ast_.child_count(node) == 2) {
          visit(ast_.child(node, 1));
          return parameter(ast_.child(node, 0));
        }
        return visit(ast_.child(node, 0));
      case Head::kw:
      case Head::assign:
        visit(ast_.child(node, 1));
        return parameter(ast_.child(node, 0));
      case Head::splat:
      case Head::tuple:
      case Head::parameters:
      case Head::block:
      case Head::macrocall:
        return parameters(ast_.children(node));
      default:
        return visit(node);
    }
  }
  // Defaults of keywords see the arguments before them, wherever the tree has them.
  void parameters(std::span<const NodeId> all) {
    for (const bool keywords : {false, true})
      for (const NodeId each : all)
        if ((ast_.head(each) == Head::parameters) == keywords) parameter(each);
  }

  void function(NodeId signature, NodeId body) {
    const NodeId call = signature_call(ast_, signature);
    const bool has_name = call != no_node && ast_.head(call) == Head::call;
    const NodeId callee = has_name ? ast_.child(call, 0) : call == no_node ? signature : no_node;
    if (callee != no_node && ast_.head(callee) == Head::identifier) define(callee, SymbolKind::function);
    if (callee != no_node && ast_.head(callee) == Head::dot) visit(callee);
    const InScope scope(*this, false);
    std::vector<NodeId> types;
    for (NodeId at = signature; at != call && call != no_node; at = ast_.child(at, 0)) {
      if (ast_.head(at) == Head::where)
        for (const NodeId variable : ast_.children(at).subspan(1)) type_variable(variable);
      else if (ast_.head(at) == Head::type_assert)
        types.push_back(ast_.child(at, 1));
    }
    for (const NodeId returned : types) visit(returned);
    if (callee != no_node && ast_.head(callee) != Head::identifier && ast_.head(callee) != Head::dot) parameter(callee);
    if (call != no_node) parameters(ast_.children(call).subspan(has_name ? 1 : 0));
    if (body == no_node) return;
    declare_assigned(body);
    visit(body);
  }

  void macro(NodeId node) {
    const NodeId call = signature_call(ast_, ast_.child(node, 0));
    if (call == no_node) return;
    const NodeId named = ast_.child(call, 0);
    const std::uint32_t id = global(macro_name(named));
    out_.symbols_[id].is_defined = true;
    occur(named, id, {true, false, false});
    const InScope scope(*this, false);
    for (const char* given : {"__module__", "__source__"}) declare(given, SymbolKind::parameter);
    parameters(ast_.children(call).subspan(1));
    declare_assigned(ast_.child(node, 1));
    visit(ast_.child(node, 1));
  }

  void arrow(NodeId node) {
    const InScope scope(*this, false);
    parameter(ast_.child(node, 0));
    declare_assigned(ast_.child(node, 1));
    visit(ast_.child(node, 1));
  }

  void let(NodeId node) {
    const InScope scope(*this, false);
    const NodeId head = ast_.child(node, 0);
    const auto bind = [&](NodeId each) {
      if (ast_.head(each) == Head::assign && !is_short_function(ast_, each)) {
        visit(ast_.child(each, 1));
        targets(ast_.child(each, 0), [&](NodeId t) { declare(std::string(ast_.name_of(t)), SymbolKind::local); });
        pattern(ast_.child(each, 0));
      } else {
        targets(each, [&](NodeId t) { declare(std::string(ast_.name_of(t)), SymbolKind::local); });
        if (ast_.head(each) == Head::identifier)
          pattern(each);
        else
          visit(each);
      }
    };
    if (ast_.head(head) == Head::block) {
      for (const NodeId each : ast_.children(head)) bind(each);
    } else {
      bind(head);
    }
    declare_assigned(ast_.child(node, 1));
    visit(ast_.child(node, 1));
  }

  void iterated(NodeId each) {
    if (ast_.head(each) != Head::assign) return visit(each);
    visit(ast_.child(each, 1));
    if (!ast_.node(each).flag)
      targets(ast_.child(each, 0), [&](NodeId t) { declare(std::string(ast_.name_of(t)), SymbolKind::local); });
    pattern(ast_.child(each, 0));
  }

  void loop(NodeId head, NodeId body) {
    const InScope scope(*this, true);
    if (ast_.head(head) == Head::block) {
      for (const NodeId each : ast_.children(head)) iterated(each);
    } else {
      iterated(head);
    }
    declare_assigned(body);
    visit(body);
  }

  void try_block(NodeId node) {
    const auto all = ast_.children(node);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i == 1 || all[i] == no_node) continue;
      const InScope scope(*this, true);
      if (i == 2 && ast_.head(all[1]) == Head::identifier) {
        declare(std::string(ast_.name_of(all[1])), SymbolKind::local);
        pattern(all[1]);
      }
      declare_assigned(all[i]);
      visit(all[i]);
    }
  }

  void generator(NodeId node) {
    const InScope scope(*this, false);
    const auto ranges = ast_.children(node).subspan(1);
    for (const NodeId each : ranges) {
      if (ast_.head(each) != Head::filter) {
        iterated(each);
        continue;
      }
      for (const NodeId range : ast_.children(each).subspan(1)) iterated(range);
      visit(ast_.child(each, 0));
    }
    visit(ast_.child(node, 0));
  }

  void where(NodeId node) {
    const InScope scope(*this, false);
    for (const NodeId variable : ast_.children(node).subspan(1)) type_variable(variable);
    visit(ast_.child(node, 0));
  }

  void type_signature(NodeId signature) {
    if (const NodeId id = defined_identifier(ast_, signature); id != no_node) define(id, SymbolKind::type);
    const InScope scope(*this, false);
    type_parameters(signature);
  }
  void type_parameters(NodeId signature) {
    if (ast_.head(signature) == Head::curly)
      for (const NodeId each : ast_.children(signature).subspan(1)) type_variable(each);
    if (ast_.head(signature) == Head::subtype) {
      type_parameters(ast_.child(signature, 0));
      if (ast_.child_count(signature) > 1) visit(ast_.child(signature, 1));
    }
  }
  void type(NodeId node) {
    const NodeId signature = ast_.child(node, 0);
    if (const NodeId id = defined_identifier(ast_, signature); id != no_node) define(id, SymbolKind::type);
    const InScope scope(*this, false);
    type_parameters(signature);
    declare("new", SymbolKind::function);
    for (const NodeId each : ast_.children(ast_.child(node, 1))) {
      NodeId field = each;
      if (ast_.head(field) == Head::const_) field = ast_.child(field, 0);
      if (ast_.head(field) == Head::assign && !is_short_function(ast_, field)) {
        visit(ast_.child(field, 1));
        field = ast_.child(field, 0);
      }
      const NodeId named = ast_.head(field) == Head::type_assert ? ast_.child(field, 0) : field;
      if (ast_.head(named) != Head::identifier) {
        if (ast_.head(each) == Head::function || is_short_function(ast_, each)) inner_constructor(each);
        continue;
      }
      occur(named, field_symbol(std::string(ast_.name_of(named))), {true, false, false});
      if (field != named && ast_.child_count(field) == 2) visit(ast_.child(field, 1));
    }
  }
  void inner_constructor(NodeId node) { function(ast_.child(node, 0), ast_.child(node, 1)); }

  void module(NodeId node) {
    define(ast_.child(node, 0), SymbolKind::module);
    const std::uint32_t before = module_;
    const std::string path = out_.modules_[before];
    out_.modules_.push_back((path.empty() ? "" : path + ".") + std::string(ast_.name_of(ast_.child(node, 0))));
    module_ = static_cast<std::uint32_t>(out_.modules_.size()) - 1;
    std::vector<Scope> outer;
    std::swap(outer, scopes_);
    for (const NodeId each : ast_.children(ast_.child(node, 1))) declare_globals(each);
    visit(ast_.child(node, 1));
    std::swap(outer, scopes_);
    module_ = before;
  }

  const Ast& ast_;
  Scopes& out_;
  std::vector<Scope> scopes_;
  std::unordered_map<std::string, std::uint32_t> globals_, fields_;
  std::uint32_t module_ = 0;
  int quoted_ = 0;
};

Scopes::Scopes(const Ast& ast) { ScopeReader(ast, *this); }

const Occurrence* Scopes::at(std::size_t offset) const {
  const auto after = std::upper_bound(occurrences_.begin(), occurrences_.end(), offset,
                                      [](std::size_t o, const Occurrence& each) { return o < each.begin; });
  for (auto it = after; it != occurrences_.begin();) {
    --it;
    if (offset <= it->end && offset >= it->begin) return &*it;
    if (it->end < offset) break;
  }
  return nullptr;
}

}  // namespace slope::api::tools::lsp
