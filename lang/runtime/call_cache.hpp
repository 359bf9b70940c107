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
  struct Entry {
    const DataType* types = nullptr;
    Specialization* target = nullptr;
    World world = 0;
  };
  // Of few arguments the types lie here, callee first, so that a look-up follows no pointers.
  static constexpr std::size_t most_near = 4;
  struct Near {
    const Type* types[most_near] = {};
    World world = 0;
    Specialization* target = nullptr;
  };
  Entry entries[ways];
  std::uint32_t next = 0;
  std::uint32_t shift = 0;
  std::uint64_t multiplier = 0;
  Near first;  // of a site with one target
  // Of a site with several: each has a slot of its own, found without a comparison that the processor would have to
  // guess. Null as long as there is one target.
  std::unique_ptr<Near[]> table;

  Specialization* find(World world, Value callee, const Value* args, std::size_t count) const {
    switch (count) {
      case 0:
        if (Specialization* target = find_near<0>(world, callee.type, args)) return target;
        break;
      case 1:
        if (Specialization* target = find_near<1>(world, callee.type, args)) return target;
        break;
      case 2:
        if (Specialization* target = find_near<2>(world, callee.type, args)) return target;
        break;
      case 3:
        if (Specialization* target = find_near<3>(world, callee.type, args)) return target;
        break;
      default:
        break;
    }
    for (const Entry& entry : entries) {
      if (!entry.types) break;
      if (entry.world == world && call_types_match(entry.types, callee, args, count)) return entry.target;
    }
    return nullptr;
  }
  // Among the targets whose types lie near. Every call of a site has the same number of arguments.
  template <std::size_t count>
  Specialization* find_near(World world, const Type* callee, const Value* args) const {
    static_assert(count < most_near);
    std::uint64_t key = key_of(callee);
    for (std::size_t i = 0; i < count; ++i) key = next_key(key, args[i].type);
    const Near& place = (table ? table.get() : &first)[slot_of(key)];
    bool matches = place.world == world && place.types[0] == callee;
    for (std::size_t i = 0; i < count; ++i) matches = matches && place.types[i + 1] == args[i].type;
    return matches ? place.target : nullptr;
  }
  void insert(World world, Specialization* target);

 private:
  static std::uint64_t key_of(const Type* callee) { return reinterpret_cast<std::uintptr_t>(callee); }
  static std::uint64_t next_key(std::uint64_t key, const Type* argument) {
    return key * 0x9e3779b97f4a7c15u + reinterpret_cast<std::uintptr_t>(argument);
  }
  std::uint64_t slot_of(std::uint64_t key) const { return key * multiplier >> shift; }
  void insert_near(const Near& added, std::size_t count);
  bool arrange(const std::vector<Near>& all, std::size_t count, std::uint32_t bits);
};

}  // namespace slope
