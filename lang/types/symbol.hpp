// Interned names. A Symbol lives as long as its Runtime; equal spellings are the same pointer.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lang/support/memory_count.hpp"

namespace slope {

struct Symbol {
  std::string name;
  std::size_t hash;
};

class SymbolTable {
 public:
  explicit SymbolTable(MemoryCount* memory = nullptr) : memory_(memory) {}  // what it takes is added there
  SymbolTable(const SymbolTable&) = delete;
  const Symbol* intern(std::string_view name);
  const Symbol* gensym(std::string_view stem);  // "##stem#12", distinct from every interned name

 private:
  const Symbol* enter(std::string name, std::size_t hash);

  MemoryCount* memory_;
  std::deque<Symbol> symbols_;
  std::unordered_map<std::string_view, const Symbol*> by_name_;
  std::size_t gensyms_ = 0;
};

}  // namespace slope
