// The inside of Heap, shared by heap.cpp (allocation) and heap_collect.cpp (marking, sweeping).
#pragma once

#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lang/memory/heap.hpp"
#include "lang/memory/heap_blocks.hpp"
#include "lang/support/tuning.hpp"

namespace slope {

struct AllocationRecord {
  std::unordered_set<const Object*> objects;
};

// Memory outside blocks: a large object, or the memory of an array.
struct Region {
  std::uintptr_t end = 0;
  Object* object = nullptr;  // what a pointer into the region keeps alive
  void* raw = nullptr;       // of malloc
  bool is_object = false;    // `object` lies in the region and has no cell
  bool marked = false;       // of such an object
};

struct Heap::Impl {
  struct SizeClassState {
    Block* carving = nullptr;    // has fresh cells
    std::vector<Block*> blocks;  // all of the class
    std::size_t next_to_sweep = 0;
  };

  SizeClasses classes;
  BlockSpace space;
  std::vector<SizeClassState> state;
  std::map<std::uintptr_t, Region> regions;  // by address
  std::vector<ArrayObject*> external;        // arrays with array_external
  std::size_t limit = std::size_t{1} << 40;
  std::size_t region_bytes = 0;  // of all regions
  std::size_t region_peak = 0;   // since malloc was last told to give memory back
  std::size_t trigger = 0;       // collect when so many bytes are live
  // Memory of large arrays that died, by size: the next of about that size gets it, for fresh pages cost several times
  // what filling them costs. What nobody wanted between two collections goes back.
  std::multimap<std::size_t, void*> spare;
  std::size_t spare_bytes = 0;
  std::vector<std::pair<int, RootTracer>> roots;
  std::vector<std::pair<int, WeakTracer>> weak;
  int next_root = 1;
  bool collecting = false;

  Region* region_of(const void* address);
  void add_region(std::uintptr_t begin, const Region& region);
  void free_region(std::uintptr_t begin);  // of an array's memory; kept when it is large
  void* take_spare(std::size_t& bytes);    // null, or memory of at least so many; how many it is
  void free_spare();
  void return_memory(std::size_t blocks_before, std::size_t region_bytes_before);
};

#if defined(__SANITIZE_ADDRESS__)
inline constexpr std::size_t least_spare = ~std::size_t{0};  // uses of freed memory are to be found
#else
inline constexpr std::size_t least_spare = tuning::heap_least_spare;
#endif
inline constexpr std::size_t buffer_margin = 64;  // around an array's memory, still taken for a pointer into it
// Bytes allocated between two collections, at least: about what the caches hold, for garbage is written before it is
// found; a collection with few live objects costs some tens of microseconds.
inline constexpr std::size_t least_growth = tuning::heap_least_growth;

}  // namespace slope
