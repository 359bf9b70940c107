// The table of a call site with several targets. Its slots are found by one multiplication. When two targets fall into one
// slot, other multipliers are tried, then a larger table: so each look-up is one comparison that holds.
#include "lang/runtime/call_cache.hpp"

namespace slope {

void CallCache::insert(World world, Specialization* target) {
  if (target->method->as_declared != 0) return;  // its types are not the call's
  Entry added;
  added.set(world, target);
  bool others = false;
  for (const Entry& entry : entries) others |= entry.types && entry.types != target->types && entry.world == world;
  if (added.count != 0 && (others || table)) insert_into_table(added);
  for (Entry& entry : entries) {
    if (entry.types && entry.types != target->types && entry.world == world) continue;
    entry = added;
    return;
  }
  entries[next] = added;
  next = (next + 1) % ways;
}

void CallCache::insert_into_table(const Entry& added) {
  std::vector<Entry> all{added};
  const auto keep = [&](const Entry& entry) {
    if (entry.count == 0 || entry.world != added.world) return;
    for (const Entry& other : all)
      if (other.types == entry.types) return;
    all.push_back(entry);
  };
  if (table) {
    for (std::size_t i = 0; i < std::size_t{1} << (64 - shift); ++i) keep(table[i]);
  } else {
    for (const Entry& entry : entries) keep(entry);
  }
  constexpr std::uint32_t most = tuning::call_table_bits;
  while (all.size() > (std::size_t{1} << most) / 2) all.pop_back();
  std::uint32_t bits = 2;
  while (std::size_t{1} << bits < all.size() + all.size() / 2) ++bits;
  for (; bits <= most; ++bits)
    if (arrange(all, bits)) return;
  // They can't be kept apart: the last come wins.
  arrange({added}, most);
}

bool CallCache::arrange(const std::vector<Entry>& all, std::uint32_t bits) {
  const std::uint32_t move = 64 - bits;
  std::uint64_t factor = 0x9e3779b97f4a7c15u;
  for (int attempt = 0; attempt < 64; ++attempt) {
    auto made = std::make_unique<Entry[]>(std::size_t{1} << bits);
    bool apart = true;
    for (const Entry& entry : all) {
      std::uint64_t key = key_of(entry.near[0]);
      for (std::size_t i = 1; i < entry.count; ++i) key = next_key(key, entry.near[i]);
      Entry& slot = made[key * factor >> move];
      apart = apart && slot.count == 0;
      slot = entry;
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
