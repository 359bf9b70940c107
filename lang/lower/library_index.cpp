#include "lang/lower/library_index.hpp"

#include <algorithm>
#include <bit>

#include "lang/lower/generated.hpp"

namespace slope::lower {

using syntax::Ast;
using syntax::Head;
using syntax::no_node;
using syntax::NodeId;

bool take_hints(const Ast& ast, NodeId& statement, DefinitionHints& hints) {
  while (ast.head(statement) == Head::macrocall) {
    const auto parts = ast.children(statement);
    const auto name = parts.empty() ? std::string_view{} : identifier_text(ast, parts[0]);
    if (parts.size() == 2 && name == "@inline") {
      hints.inline_hint = 1;
    } else if (parts.size() == 2 && name == "@noinline") {
      hints.inline_hint = -1;
    } else if (parts.size() == 2 && name == "@nospecializeinfer") {
      hints.infers_as_declared = true;
    } else if (parts.size() == 3 && name == "@doc" && ast.head(parts[1]) == Head::string) {
      hints.documentation = std::string(ast.text_of(parts[1]));
    } else {
      return false;
    }
    statement = parts.back();
  }
  return true;
}

namespace {

NodeId without_where(const Ast& ast, NodeId node) {
  while ((ast.head(node) == Head::where || ast.head(node) == Head::type_assert) && ast.child_count(node) > 0)
    node = ast.child(node, 0);
  return node;
}

// `function (x) … end` is a value.
bool is_function_definition(const Ast& ast, NodeId statement) {
  if (ast.head(statement) == Head::assign) return is_short_definition(ast, statement);
  return ast.head(statement) == Head::function &&
         (ast.child_count(statement) == 0 || ast.head(without_where(ast, ast.child(statement, 0))) != Head::tuple);
}

// What takes the place of a definition's methods when they can't be counted: never fewer. A file that a module includes is
// not read here; worlds are numbers, so that many of them cost nothing.
std::uint32_t bound_of_methods(const Ast& ast, NodeId node) {
  constexpr std::uint32_t most_of_a_file = 20'000;
  std::uint32_t count = 4;
  if (ast.head(node) == Head::call && ast.child_count(node) == 2 &&
      identifier_text(ast, ast.child(node, 0)) == "include")
    count += most_of_a_file;
  for (const NodeId part : ast.children(node)) count += bound_of_methods(ast, part);
  return count;
}

// The name of Name{T} <: Super, of a definition of a type or a constant.
NodeId defined_name(const Ast& ast, NodeId node) {
  if (ast.head(node) == Head::subtype && ast.child_count(node) > 0) node = ast.child(node, 0);
  if (ast.head(node) == Head::curly && ast.child_count(node) > 0) node = ast.child(node, 0);
  return ast.head(node) == Head::identifier ? node : no_node;
}

// The name in Name{T}, Name{T} where T or typeof(name).
NodeId named_type(const Ast& ast, NodeId type) {
  if (ast.head(type) == Head::call && ast.child_count(type) == 2 &&
      identifier_text(ast, ast.child(type, 0)) == "typeof")
    type = ast.child(type, 1);
  while (ast.head(type) == Head::where && ast.child_count(type) > 0) type = ast.child(type, 0);
  return defined_name(ast, type);
}

// What one statement defines.
struct Defined {
  std::string name;  // empty: it is to run at the start
  bool is_value = false;
  bool is_type = false;
  bool has_keywords = false;
  std::uint32_t methods = 0;
  bool is_documentation = false;  // alone: of what is defined elsewhere
  bool is_module = false;
};

constexpr std::string_view any_type_name = "(::Type{T})";

class DefinitionReader {
 public:
  explicit DefinitionReader(const Ast& ast) : ast_(ast) {}

  Defined read(NodeId statement) {
    Defined out;
    DefinitionHints hints;
    NodeId definition = statement;
    bool generated = false;
    while (!take_hints(ast_, definition, hints)) {
      const auto parts = ast_.children(definition);
      const std::string_view macro = parts.empty() ? std::string_view{} : identifier_text(ast_, parts[0]);
      if (macro == "@generated" && parts.size() >= 2) {
        generated = true;
        definition = parts.back();
        continue;
      }
      // Rules are one method each, of a function that their macro names (macro_rules.cpp).
      if (macro == "@scalar_rule") out = {"scalar_partials", false, false, false, 1};
      if (macro == "@non_differentiable") out = {"nondifferentiable", false, false, false, 1};
      return out;
    }
    const Head head = ast_.head(definition);
    if (is_function_definition(ast_, definition)) {
      function(definition, out);
      if (generated || (ast_.child_count(definition) == 2 && has_generated_part(ast_, ast_.child(definition, 1))))
        out.methods = bound_of_methods(ast_, definition);
    } else if (head == Head::macro_ && ast_.child_count(definition) > 0) {
      const NodeId call = ast_.child(definition, 0);
      const auto name = ast_.child_count(call) > 0 ? identifier_text(ast_, ast_.child(call, 0)) : std::string_view{};
      if (!name.empty()) out = {"@" + std::string(name), false, false, false, bound_of_methods(ast_, call)};
    } else if (head == Head::struct_ || head == Head::abstract_ || head == Head::primitive_ || head == Head::module_) {
      value(defined_name(ast_, ast_.child(definition, 0)), definition, head != Head::module_, out);
      out.is_module = head == Head::module_;
    } else if (head == Head::const_ && ast_.child_count(definition) == 1) {
      const NodeId assignment = ast_.child(definition, 0);
      if (ast_.head(assignment) == Head::assign && ast_.head(ast_.child(assignment, 1)) != Head::assign)
        value(defined_name(ast_, ast_.child(assignment, 0)), definition, false, out);
    } else if (head == Head::identifier && definition != statement) {  // "text" name
      out = {std::string(ast_.name_of(definition)), false, false, false, 0, true};
    }
    return out;
  }

 private:
  void value(NodeId name, NodeId definition, bool is_type, Defined& out) {
    if (name == no_node) return;
    out = {std::string(ast_.name_of(name)), true, is_type, false, bound_of_methods(ast_, definition)};
  }

  void function(NodeId definition, Defined& out) {
    if (ast_.child_count(definition) == 0) return;
    NodeId node = ast_.child(definition, 0);
    where_ = no_node;
    while ((ast_.head(node) == Head::where || ast_.head(node) == Head::type_assert) && ast_.child_count(node) > 0) {
      if (ast_.head(node) == Head::where) where_ = node;
      node = ast_.child(node, 0);
    }
    if (ast_.child_count(definition) == 1 && ast_.head(node) == Head::identifier) {  // function f end
      out = {std::string(ast_.name_of(node)), false, false, false, 0};
      return;
    }
    if (ast_.head(node) != Head::call || ast_.child_count(node) == 0) return;
    out.name = owner(ast_.child(node, 0));
    std::uint32_t optional = 0;
    bool is_plain = true;
    for (const NodeId part : ast_.children(node).subspan(1)) {
      const Head head = ast_.head(part);
      if (head == Head::parameters)
        out.has_keywords |= ast_.child_count(part) > 0;
      else if (head == Head::kw || head == Head::assign)
        ++optional;
      else if (head == Head::macrocall)
        is_plain = false;
    }
    out.methods = is_plain && !out.has_keywords ? optional + 1 : bound_of_methods(ast_, definition);
  }

  // Whose methods a definition with this callee makes: f, T of T{…}, and of (::T)(…) and (::Type{T})(…).
  std::string owner(NodeId callee) const {
    if (ast_.head(callee) == Head::type_assert && ast_.child_count(callee) > 0) {
      NodeId type = ast_.children(callee).back();
      if (ast_.head(type) == Head::curly && ast_.child_count(type) == 2 &&
          identifier_text(ast_, ast_.child(type, 0)) == "Type") {
        type = ast_.child(type, 1);
        if (is_variable(type)) return std::string(any_type_name);
      } else if (is_variable(type)) {
        return {};
      }
      const NodeId name = named_type(ast_, type);
      return name == no_node ? std::string() : std::string(ast_.name_of(name));
    }
    const NodeId name = defined_name(ast_, callee);
    return name == no_node ? std::string() : std::string(ast_.name_of(name));
  }

  bool is_variable(NodeId type) const {
    if (where_ == no_node || ast_.head(type) != Head::identifier) return false;
    const auto entries = ast_.children(where_).subspan(1);
    return std::ranges::any_of(entries, [&](NodeId entry) {
      BoundSyntax bound;
      return parse_bound(ast_, entry, bound) && identifier_text(ast_, bound.name) == ast_.name_of(type);
    });
  }

  const Ast& ast_;
  NodeId where_ = no_node;
};

// Of `import A.B: x, @y, z as w`: x, @y, w. Each of them runs the whole statement when it is asked for first.
std::vector<std::string> imported_names(const Ast& ast, NodeId statement) {
  std::vector<std::string> names;
  if (ast.head(statement) != Head::import_ || ast.child_count(statement) != 1) return names;
  const NodeId list = ast.child(statement, 0);
  if (ast.head(list) != Head::import_list) return names;
  for (const NodeId path : ast.children(list).subspan(1)) {
    const auto name = ast.child_count(path) == 0 ? std::string_view{} : identifier_text(ast, ast.children(path).back());
    if (name.empty()) return {};
    names.emplace_back(name);
  }
  return names;
}

template <class T>
void append(std::string& out, const std::vector<T>& values) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace

bool is_plain_definition(const Ast& ast, NodeId statement) {
  switch (ast.head(statement)) {
    case Head::assign:
    case Head::function:
      return is_function_definition(ast, statement);
    case Head::struct_:
    case Head::abstract_:
    case Head::primitive_:
    case Head::export_:
      return true;
    default:
      return false;
  }
}

std::uint32_t LibraryIndexBuilder::name(std::string_view text) {
  const auto [at, is_new] = numbers_.try_emplace(std::string(text), static_cast<std::uint32_t>(names_.size()));
  if (is_new) {
    names_.emplace_back(text);
    exported_.push_back(false);
    stays_.push_back(false);
  }
  return at->second;
}

void LibraryIndexBuilder::add(const Ast& ast, std::uint32_t source, std::string_view file) {
  DefinitionReader reader(ast);
  const bool is_of_julia = file.ends_with("core/exports.slope");
  for (const NodeId statement : ast.children(ast.root)) {
    if (ast.head(statement) == Head::export_) {
      for (const NodeId child : ast.children(statement)) {
        const std::uint32_t number = name(identifier_text(ast, child));
        exported_[number] = true;
        if (is_of_julia) stays_[number] = true;
      }
      continue;
    }
    if (const std::vector<std::string> imported = imported_names(ast, statement); !imported.empty()) {
      const NodeId module = ast.child(ast.child(statement, 0), 0);
      Noted noted;
      noted.item.source = source;
      noted.item.statement = statement;
      noted.item.module = name(identifier_text(ast, ast.children(module).back()));
      noted.is_value = true;
      for (const std::string& one : imported) {
        noted.name = name(one);
        noted_.push_back(noted);
      }
      continue;
    }
    const Defined defined = reader.read(statement);
    Noted noted;
    noted.item.source = source;
    noted.item.statement = statement;
    noted.item.methods = defined.methods;
    noted.is_value = defined.is_value;
    noted.may_give_methods = defined.is_type;
    noted.has_keywords = defined.has_keywords;
    noted.is_documentation = defined.is_documentation;
    noted.is_module = defined.is_module;
    if (!defined.name.empty()) noted.name = name(defined.name);
    noted_.push_back(noted);
  }
}

std::string LibraryIndexBuilder::image() const {
  std::vector<LibraryItem> items, eager;
  std::vector<LibraryName> names(names_.size());
  std::vector<std::uint32_t> last(names_.size(), LibraryIndex::none);
  std::vector<bool> takes_methods(names_.size(), true);
  std::string characters;
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i].text = static_cast<std::uint32_t>(characters.size());
    names[i].size = static_cast<std::uint32_t>(names_[i].size());
    names[i].is_exported = exported_[i];
    names[i].gives_way = exported_[i] && !stays_[i];
    characters += names_[i];
  }
  for (const Noted& noted : noted_) {
    if (noted.name == LibraryIndex::none || !noted.is_value) continue;
    names[noted.name].kind = LibraryNameKind::value;
    names[noted.name].is_module = noted.is_module;
    takes_methods[noted.name] = noted.may_give_methods;  // what else a name stands for is only known when it runs
  }
  for (const Noted& noted : noted_) {
    if (noted.name == LibraryIndex::none || noted.is_documentation) continue;
    if (LibraryName& name = names[noted.name]; name.kind == LibraryNameKind::exported)
      name.kind = names_[noted.name] == any_type_name ? LibraryNameKind::any_type : LibraryNameKind::function;
  }
  LibraryIndexHeader header;
  for (const Noted& noted : noted_) {
    LibraryItem item = noted.item;
    if (noted.name == LibraryIndex::none) {
      eager.push_back(item);
      continue;
    }
    LibraryName& name = names[noted.name];
    const bool is_first = name.first == LibraryIndex::none;
    if (noted.is_documentation && name.kind != LibraryNameKind::function) continue;  // help finds it in the trees
    const bool runs_now = name.kind == LibraryNameKind::value &&
                          (noted.is_value != is_first || (!noted.is_value && !takes_methods[noted.name]));
    if (runs_now) {
      eager.push_back(item);
      continue;
    }
    name.has_keywords |= noted.has_keywords;
    item.world = header.worlds;
    header.worlds += item.methods;
    const auto number = static_cast<std::uint32_t>(items.size());
    (is_first ? name.first : items[last[noted.name]].next) = number;
    last[noted.name] = number;
    items.push_back(item);
  }
  std::vector<std::uint32_t> slots(std::bit_ceil(names.size() * 2 + 1), LibraryIndex::none);
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    std::size_t at = library_name_hash(names_[i]) & (slots.size() - 1);
    while (slots[at] != LibraryIndex::none) at = (at + 1) & (slots.size() - 1);
    slots[at] = i;
  }
  header.items = static_cast<std::uint32_t>(items.size());
  header.eager = static_cast<std::uint32_t>(eager.size());
  header.names = static_cast<std::uint32_t>(names.size());
  header.slots = static_cast<std::uint32_t>(slots.size());
  header.characters = static_cast<std::uint32_t>(characters.size());
  std::string image(reinterpret_cast<const char*>(&header), sizeof header);
  append(image, items);
  append(image, eager);
  append(image, names);
  append(image, slots);
  return image + characters;
}

}  // namespace slope::lower
