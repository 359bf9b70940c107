// The inline cache of one call site: the specialisations that the last few combinations of argument types called.
//
// An entry is valid for one world. Definitions rarely happen while code runs hot. After one, a site asks the method
// table's own cache (which keeps world ranges) once more and is warm again. So no code has to find and clear call
// sites.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lang/runtime/method.hpp"
#include "lang/support/tuning.hpp"

namespace slope {

// Are `types` the call types of this callee and these arguments?
inline bool call_types_match(const DataType* types, Value callee, const Value* args, std::size_t count) {
  if (types->params.size() != count + 1) return false;
  const Type* const* params = types->params.data();
  auto fits = [](const Type* param, const Value& v) {
    if (param == v.type) return true;
    // A type as argument: its parameter is Type{it}.
    return v.type->is_kind && param->kind == TypeKind::data &&
           static_cast<const DataType*>(param)->params.size() == 1 &&
           static_cast<const DataType*>(param)->params[0] == v.as_type &&
           static_cast<const DataType*>(param)->is_type_of_type;
  };
  if (!fits(params[0], callee)) return false;
  for (std::size_t i = 0; i < count; ++i)
    if (!fits(params[i + 1], args[i])) return false;
  return true;
}

struct CallCache {
  static constexpr std::uint32_t ways = tuning::call_cache_ways;
  // Of few arguments the types lie here, so that a look-up follows no pointers.
  static constexpr std::size_t most_near = 4;
  struct Entry {
    const DataType* types = nullptr;
    Specialization* target = nullptr;
    World world = 0;
    std::size_t count = 0;  // of `near`, callee first; 0: compare with `types`
    const Type* near[most_near] = {};

    bool matches(Value callee, const Value* args, std::size_t arguments) const {
      if (count == 0) return call_types_match(types, callee, args, arguments);
      if (count != arguments + 1 || near[0] != callee.type) return false;
      for (std::size_t i = 0; i < arguments; ++i)
        if (near[i + 1] != args[i].type) return false;
      return true;
    }
    void set(World in, Specialization* to) {
      types = to->types;
      target = to;
      world = in;
      count = 0;
      if (types->params.size() > most_near) return;
      // A type as argument needs more than a comparison.
      for (const Type* t : types->params)
        if (t->kind != TypeKind::data || static_cast<const DataType*>(t)->is_type_of_type) return;
      for (const Type* t : types->params) near[count++] = t;
    }
  };
  Entry entries[ways];
  std::uint32_t next = 0;
  // Of a site with several targets: each has a slot of its own, found without a comparison that the processor would
  // have to guess. Null as long as there is one target, or when no multiplier keeps them apart.
  std::unique_ptr<Entry[]> table;
  std::uint32_t shift = 0;
  std::uint64_t multiplier = 0;

  Specialization* find(World world, Value callee, const Value* args, std::size_t count) const {
    for (const Entry& entry : entries) {
      if (!entry.types) break;
      if (entry.world == world && entry.matches(callee, args, count)) return entry.target;
    }
    if (table && count < most_near) {
      std::uint64_t key = key_of(callee.type);
      for (std::size_t i = 0; i < count; ++i) key = next_key(key, args[i].type);
      const Entry& entry = table[slot_of(key)];
      if (entry.world == world && entry.count != 0 && entry.matches(callee, args, count)) return entry.target;
    }
    return nullptr;
  }
  void insert(World world, Specialization* target);

 private:
  static std::uint64_t key_of(const Type* callee) { return reinterpret_cast<std::uintptr_t>(callee); }
  static std::uint64_t next_key(std::uint64_t key, const Type* argument) {
    return key * 0x9e3779b97f4a7c15u + reinterpret_cast<std::uintptr_t>(argument);
  }
  std::uint64_t slot_of(std::uint64_t key) const { return key * multiplier >> shift; }
  void insert_into_table(const Entry& entry);
  bool arrange(const std::vector<Entry>& all, std::uint32_t bits);
};

}  // namespace slope
