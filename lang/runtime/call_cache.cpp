// The table of a call site with several targets. Its slots are found by one multiplication. When two targets fall into one
// slot, other multipliers are tried, then a larger table: so each look-up is one comparison that holds.
#include "lang/runtime/call_cache.hpp"

#include <algorithm>

namespace slope {

void CallCache::insert(World world, Specialization* target) {
  if (target->method->as_declared != 0) return;  // its types are not the call's
  const auto& types = target->types->params;
  // A type as argument needs more than a comparison.
  const auto is_simple = [](const Type* type) {
    return type->kind == TypeKind::data && !static_cast<const DataType*>(type)->is_type_of_type;
  };
  if (types.size() <= most_near && std::all_of(types.begin(), types.end(), is_simple)) {
    Near added;
    std::copy(types.begin(), types.end(), added.types);
    added.world = world;
    added.target = target;
    insert_near(added, types.size());
  }
  for (Entry& entry : entries) {
    if (entry.types && entry.types != target->types && entry.world == world) continue;
    entry = {target->types, target, world};
    return;
  }
  entries[next] = {target->types, target, world};
  next = (next + 1) % ways;
}

void CallCache::insert_near(const Near& added, std::size_t count) {
  const auto same_types = [](const Near& a, const Near& b) {
    return std::equal(a.types, a.types + most_near, b.types);
  };
  if (!table && (first.world != added.world || same_types(first, added))) {
    first = added;
    return;
  }
  std::vector<Near> all{added};
  const auto keep = [&](const Near& place) {
    if (place.world == added.world &&
        std::none_of(all.begin(), all.end(), [&](const Near& other) { return same_types(other, place); }))
      all.push_back(place);
  };
  if (table) {
    for (std::size_t i = 0; i < std::size_t{1} << (64 - shift); ++i) keep(table[i]);
  } else {
    keep(first);
  }
  constexpr std::uint32_t most = tuning::call_table_bits;
  while (all.size() > (std::size_t{1} << most) / 2) all.pop_back();
  std::uint32_t bits = 2;
  while (std::size_t{1} << bits < all.size() + all.size() / 2) ++bits;
  for (; bits <= most; ++bits)
    if (arrange(all, count, bits)) return;
  // They can't be kept apart: the last come wins.
  arrange({added}, count, most);
}

bool CallCache::arrange(const std::vector<Near>& all, std::size_t count, std::uint32_t bits) {
  const std::uint32_t move = 64 - bits;
  std::uint64_t factor = 0x9e3779b97f4a7c15u;
  for (int attempt = 0; attempt < 64; ++attempt) {
    auto made = std::make_unique<Near[]>(std::size_t{1} << bits);
    bool apart = true;
    for (const Near& place : all) {
      std::uint64_t key = key_of(place.types[0]);
      for (std::size_t i = 1; i < count; ++i) key = next_key(key, place.types[i]);
      Near& slot = made[key * factor >> move];
      apart = apart && slot.world == 0;
      slot = place;
    }
    if (apart) {
      table = std::move(made);
      shift = move;
      multiplier = factor;
      return true;
    }
    factor = (factor * 0xd1342543de82ef95u + 0x2545f4914f6cdd1du) | 1;
  }
  return false;
}

}  // namespace slope
