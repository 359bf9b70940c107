#include "lang/types/symbol.hpp"

#include <functional>

namespace slope {

const Symbol* SymbolTable::intern(std::string_view name) {
  auto it = by_name_.find(name);
  if (it != by_name_.end()) return it->second;
  if (by_name_.empty()) by_name_.reserve(4096);  // what the standard library has
  symbols_.push_back(Symbol{std::string(name), std::hash<std::string_view>{}(name)});
  const Symbol* symbol = &symbols_.back();
  by_name_.emplace(symbol->name, symbol);
  return symbol;
}

const Symbol* SymbolTable::gensym(std::string_view stem) {
  // Not entered into by_name_: even a user who writes var"##x#1" gets another symbol.
  std::string name = "##" + std::string(stem) + "#" + std::to_string(++gensyms_);
  std::size_t hash = std::hash<std::string_view>{}(name)*31 + gensyms_;
  symbols_.push_back(Symbol{std::move(name), hash});
  return &symbols_.back();
}

}  // namespace slope
