// Makes the index of what the standard library defines (lang/runtime/library_index.hpp) from its syntax trees.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lang/lower/state.hpp"
#include "lang/runtime/library_index.hpp"

namespace slope::lower {

class LibraryIndexBuilder {
 public:
  // The next file in load order, and its name: what core/exports.slope does not export gives way to a program's own.
  void add(const syntax::Ast& ast, std::uint32_t source, std::string_view file);
  std::string image() const;  // call once all are added

 private:
  struct Noted {
    LibraryItem item;
    std::uint32_t name = LibraryIndex::none;  // none: it runs at the start
    bool is_value = false;
    bool may_give_methods = false;  // its value: a type that can be called
    bool has_keywords = false;
    bool is_documentation = false;
    bool is_module = false;
  };

  std::uint32_t name(std::string_view text);

  std::vector<std::string> names_;
  std::vector<bool> exported_;
  std::vector<bool> stays_;  // exported, and does not give way
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<Noted> noted_;
};

// "text" @inline f(x) = …: takes what stands around the definition off it. False: another macro.
bool take_hints(const syntax::Ast& ast, syntax::NodeId& statement, DefinitionHints& hints);

// Is it the definition of a function or a type, or an export, that run_definition (definition.hpp) can run as it is?
bool is_plain_definition(const syntax::Ast& ast, syntax::NodeId statement);

}  // namespace slope::lower
