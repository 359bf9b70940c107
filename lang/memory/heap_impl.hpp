// The inside of Heap, shared by heap.cpp (allocation), heap_marker.hpp, heap_collect.cpp (when what is done) and
// heap_sweep.cpp.
#pragma once

#include <chrono>
#include <map>
#include <memory>
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
  // The collection that found such an object alive, or that has counted the memory of an array.
  std::uint32_t epoch = 0;
};

struct Heap::Impl {
  struct SizeClassState {
    Block* carving = nullptr;    // has fresh cells
    std::vector<Block*> blocks;  // all of the class
    std::size_t next_to_sweep = 0;
    std::vector<Block*> swept;  // ahead of need: they hold their free cells
    bool is_swept() const { return next_to_sweep == blocks.size(); }
  };

  SizeClasses classes;
  BlockSpace space;
  std::vector<SizeClassState> state;
  std::map<std::uintptr_t, Region> regions;        // by address
  std::uintptr_t region_low = 0, region_span = 0;  // all regions lie in [low, low + span)
  std::size_t region_bytes = 0;                    // of all regions
  std::size_t region_peak = 0;                     // since malloc was last told to give memory back
  std::size_t trigger = 0;                         // collect when so many bytes are live
  std::size_t attention = 0;                       // do what is due when so many are: at most the trigger
  std::size_t overdue = 0;  // bytes live at which a collection in slices is finished without a break
  // Memory of large arrays that died, by size: the next of about that size gets it, for fresh pages cost several times
  // what filling them costs. What nobody wanted between two collections goes back.
  std::multimap<std::size_t, void*> spare;
  std::size_t spare_bytes = 0;
  std::vector<std::pair<std::size_t, void*>> unwanted;  // of these, on their way back to the system
  std::vector<std::pair<int, RootTracer>> roots;
  std::vector<std::pair<int, WeakTracer>> weak;
  int next_root = 1;
  bool collecting = false;
  std::uint32_t epoch = 1;         // of the collection that marks, or that was the last to
  std::unique_ptr<Marker> marker;  // of a collection in progress
  int rescans = 0;                 // of the roots, in this collection
  bool sweeping = false;           // blocks or regions wait to be swept
  bool sweeps_promptly = false;    // for there is much memory outside of blocks
  std::size_t class_to_sweep = 0;  // by slices
  std::uintptr_t region_to_sweep = 0;
  std::size_t freed_by_sweep = 0;                          // bytes of regions since the last collection
  std::size_t blocks_before = 0, region_bytes_before = 0;  // that collection
  bool checks = false;                                     // SLOPE_GC_CHECK
  const void* checked_from = nullptr;  // what such a check looks at of the stack: not the collector's own frames
  std::chrono::nanoseconds pause_target{tuning::heap_pause_target_us * 1000};

  Region* region_of(const void* address);
  void add_region(std::uintptr_t begin, const Region& region);
  void free_region(std::uintptr_t begin);  // of an array's memory; kept when it is large
  void* take_spare(std::size_t& bytes);    // null, or memory of at least so many; how many it is
  void free_spare();
  void return_unwanted(std::size_t bytes);
  std::size_t blocks_to_sweep() const;
  // Of arrays whose memory was allocated while a collection marks.
  std::vector<std::pair<ArrayObject*, std::uintptr_t>> regions_since_marking;
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
