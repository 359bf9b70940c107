#include "lang/types/symbol.hpp"

#include <functional>

namespace slope {

const Symbol* SymbolTable::enter(std::string name, std::size_t hash) {
  constexpr std::size_t table_entry = 48;
  if (memory_) memory_->add(sizeof(Symbol) + name.size() + table_entry);
  symbols_.push_back(Symbol{std::move(name), hash});
  return &symbols_.back();
}

const Symbol* SymbolTable::intern(std::string_view name) {
  auto it = by_name_.find(name);
  if (it != by_name_.end()) return it->second;
  if (by_name_.empty()) by_name_.reserve(4096);  // what the standard library has
  const Symbol* symbol = enter(std::string(name), std::hash<std::string_view>{}(name));
  by_name_.emplace(symbol->name, symbol);
  return symbol;
}

const Symbol* SymbolTable::gensym(std::string_view stem) {
  // Not entered into by_name_: even a user who writes var"##x#1" gets another symbol.
  std::string name = "##" + std::string(stem) + "#" + std::to_string(++gensyms_);
  std::size_t hash = std::hash<std::string_view>{}(name)*31 + gensyms_;
  return enter(std::move(name), hash);
}

}  // namespace slope
