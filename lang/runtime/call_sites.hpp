// Call sites whose tables (call_cache.hpp) count for the engine's memory.
#pragma once

#include "lang/runtime/call_cache.hpp"
#include "lang/support/memory_count.hpp"

namespace slope {

inline std::size_t table_bytes(const CallCache& site) {
  return site.table ? sizeof(CallCache::Near) << (64 - site.shift) : 0;
}

inline void insert_counted(CallCache& site, World world, Specialization* target, MemoryCount& count) {
  const std::size_t before = table_bytes(site);
  site.insert(world, target);
  const std::size_t after = table_bytes(site);
  if (after > before) count.add(after - before);
  if (after < before) count.remove(before - after);
}

// All of one code. `counted_by` is set before the first of them is inserted into.
template <class Sites>
struct CallSites : Sites {
  CallSites() = default;
  CallSites(const CallSites&) = delete;
  ~CallSites() {
    if (!counted_by) return;
    for (const CallCache& site : *this) counted_by->remove(table_bytes(site));
  }
  MemoryCount* counted_by = nullptr;
};

}  // namespace slope
