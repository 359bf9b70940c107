// Collections: when what is done. docs/heap.md explains the design; in short:
//
//   idle      until `trigger` bytes live
//   marking   begins with the roots. What is not done within the pause target is done in slices, one for so many
//             bytes allocated. Objects that are made meanwhile are white: they live when something still refers to them
//             at the end. References that are written into objects meanwhile are marked (Heap::wrote).
//   roots     when nothing is left to trace, the stack and all other roots are looked at again, for they are written
//             without a barrier. When that leads to nothing that does not fit into the same pause, marking is over.
//             Each such look finds what was made since the last, which is less each time.
//   sweeping  block by block, when cells are needed and in slices; over before the next marking begins.
//
// Invariants while it marks: no object that was traced refers to a white one, but for roots; every block is swept, so
// that a free cell reads as free; the marks of what is free are clear.
//
// SLOPE_GC_CHECK=1 does a slice at every allocation, and at the end of each collection marks everything again without a
// break: what is reachable and was not marked ends the process with its type and the way to it.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "lang/memory/heap_marker.hpp"
#include "lang/support/thread_stack.hpp"
#include "lang/support/tuning.hpp"

namespace slope {

// The stack from here up to the base that the engine was entered at, or to the end of the thread's stack when that base
// is unknown or below us. A stack that is not the thread's own (a fiber's) has the base as its only limit.
__attribute__((noinline)) Heap::StackExtent Heap::stack_extent() {
  const void* here = __builtin_frame_address(0);
  const auto [low, high] = thread_stack();
  const void* top = stack_base_;
  const bool own_stack = here < high && here > low;
  if (own_stack && (top <= here || top > high)) top = high;
  return {here, std::max(here, top)};
}

__attribute__((noinline)) void Heap::scan_roots() {
  __builtin_unwind_init();  // registers that the callers expect to be kept go to this frame
  Marker& marker = *impl_->marker;
  auto [from, to] = stack_extent();
  if (marker.parents && impl_->checked_from) from = impl_->checked_from;
  marker.stack_bytes = static_cast<std::size_t>(static_cast<const char*>(to) - static_cast<const char*>(from));
  marker.conservative(from, to);
  const std::size_t known = marker.coroutines.size();
  for (std::size_t i = 0; i < known; ++i) marker.trace_coroutine(marker.coroutines[i]);
  for (auto& [key, tracer] : impl_->roots) tracer(marker);
}

void Heap::count_pause(Clock::time_point start) {
  const auto spent =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
  statistics_.collection_nanoseconds += spent;
  statistics_.longest_nanoseconds = std::max(statistics_.longest_nanoseconds, spent);
}

// --- marking ---

void Heap::begin_marking() {
  sweep_some(~std::size_t{0});
  ++impl_->epoch;
  impl_->marker = std::make_unique<Marker>(*this);
  impl_->rescans = 0;
  impl_->regions_since_marking.clear();
  impl_->overdue = statistics_.live_bytes + std::max(statistics_.live_bytes / 2, 2 * least_growth);
  front.marking = 1;
}

void Heap::abandon_marking() {
  if (!front.marking) return;
  for (Impl::SizeClassState& state : impl_->state)
    for (Block* block : state.blocks) block->clear_marks();
  impl_->marker.reset();
  front.marking = 0;
}

bool Heap::mark_some(std::size_t bytes, Clock::time_point deadline) {
  Marker& marker = *impl_->marker;
  const std::size_t start = marker.live_bytes;
  unsigned traced = 0;
  const auto is_late = [&] { return (++traced & 63) == 0 && Clock::now() >= deadline; };
  impl_->collecting = true;
  bool done = marker.drain([&] { return marker.live_bytes - start >= bytes || is_late(); });
  if (done) {
    scan_roots();
    done = marker.drain(is_late);
    if (!done && ++impl_->rescans >= tuning::heap_rescans) {
      marker.drain();
      done = true;
    }
  }
  if (done) finish_marking();
  impl_->collecting = false;
  return done;
}

// All that is reachable is marked, and the roots were looked at just now.
void Heap::finish_marking() {
  Marker& marker = *impl_->marker;
  if (suspended_) {
    suspended_->after_marking(marker, marker);
    marker.drain();
  }
  if (impl_->checks) check_marks();
  for (auto& [key, tracer] : impl_->weak) tracer(marker);
  for (const auto& [array, begin] : impl_->regions_since_marking) {
    auto it = impl_->regions.find(begin);
    if (it == impl_->regions.end() || it->second.object != array || !marker.alive(array)) continue;
    if (array->flags & array_external && memory_of(array) - buffer_margin == static_cast<char*>(it->second.raw))
      marker.count_memory(array);
  }
  front.marking = 0;
  statistics_.live_bytes = marker.live_bytes;
  // In proportion to what this collection had to look at: live objects, and a deep stack.
  // Few live objects are looked at soon again, some megabytes of them seldom enough that what dies young costs little.
  const std::size_t least =
      std::min(least_growth + tuning::heap_growth_of_few * marker.live_bytes, tuning::heap_growth_most * least_growth);
  std::size_t growth = std::max(marker.live_bytes, least + 8 * marker.stack_bytes);
  impl_->trigger = collects_ ? std::min(limit_here(), marker.live_bytes + growth) : limit_;
  allocated_since_collection_ = 0;
  ++statistics_.collections;
  impl_->marker.reset();
  prepare_sweep();
}

// --- when ---

void Heap::collect_at_once() {
  if (paused_ > 0 || impl_->collecting) return;
  settle_front();
  impl_->checked_from = __builtin_frame_address(0);
  const auto start = Clock::now();
  note_fresh();
  abandon_marking();
  begin_marking();
  impl_->collecting = true;
  scan_roots();
  impl_->marker->drain();
  finish_marking();
  impl_->collecting = false;
  plan_attention();
  count_pause(start);
}

void Heap::collect() {
  collect_at_once();
  if (paused_ > 0 || impl_->collecting) return;
  sweep_some(~std::size_t{0});
  plan_attention();
}

void Heap::set_pause_target(std::chrono::nanoseconds target) { impl_->pause_target = target; }

void Heap::hold_slices() {
  if (++slices_held_ == 1) {
    abandon_marking();
    plan_attention();
  }
}

void Heap::attend(std::size_t bytes) {
  if (paused_ > 0 || impl_->collecting) return;
  if (stress_ && collects_) return collect_at_once();
  impl_->checked_from = __builtin_frame_address(0);
  const auto start = Clock::now();
  note_fresh();
  const std::size_t live = statistics_.live_bytes;
  const bool in_slices = slices_held_ == 0 && collects_;
  // Half of it: what a slice does at its end is not measured, as looking at the roots.
  const auto deadline = start + impl_->pause_target / 2;
  const std::size_t rate = impl_->checks ? 0 : tuning::heap_marking_rate;
  if (front.marking && in_slices) {
    if (live + bytes > impl_->overdue) {
      mark_some(~std::size_t{0}, Clock::time_point::max());
    } else {
      mark_some(rate * (tuning::heap_slice_bytes + bytes) + 512, deadline);
      ++statistics_.slices;
    }
    count_pause(start);
  } else if (live + bytes > impl_->trigger || (impl_->checks && in_slices && !impl_->sweeping)) {
    // Passing the trigger by one large request alone is no reason to collect what was collected just now.
    if (collects_ &&
        (allocated_since_collection_ >= least_growth / 2 || statistics_.collections == 0 || impl_->checks)) {
      if (!in_slices) return collect_at_once();
      begin_marking();
      impl_->collecting = true;
      scan_roots();
      impl_->collecting = false;
      if (impl_->checks) {
        // The first slice comes with the next allocation.
      } else if (impl_->marker->drain(
                     [&, traced = 0u]() mutable { return (++traced & 63) == 0 && Clock::now() >= deadline; })) {
        impl_->collecting = true;  // nothing ran since the roots were looked at
        finish_marking();
        impl_->collecting = false;
      } else {
        ++statistics_.slices;
      }
      count_pause(start);
    }
  } else if (impl_->sweeping) {
    const std::size_t left = impl_->blocks_to_sweep();
    const std::size_t until = std::max<std::size_t>(impl_->trigger - live, tuning::heap_slice_bytes);
    sweep_some(impl_->checks ? 1 : 4 + 2 * left * (tuning::heap_slice_bytes + bytes) / until);
    ++statistics_.slices;
    count_pause(start);
  }
}

bool Heap::collect_for(std::chrono::nanoseconds budget) {
  if (paused_ > 0 || impl_->collecting || !collects_ || slices_held_ > 0) return false;
  settle_front();
  impl_->checked_from = __builtin_frame_address(0);
  const auto start = Clock::now();
  note_fresh();
  const auto deadline = start + budget;
  if (!front.marking && !impl_->sweeping) {
    if (allocated_since_collection_ < least_growth / 4) return false;
    begin_marking();
  }
  if (front.marking) mark_some(~std::size_t{0}, deadline);
  while (impl_->sweeping && Clock::now() < deadline) sweep_some(8);
  plan_attention();
  count_pause(start);
  return front.marking || impl_->sweeping;
}

// After how many bytes the heap wants to be asked again.
void Heap::plan_attention() {
  settle_front();
  impl_->attention = impl_->trigger;
  const bool is_busy = (front.marking && slices_held_ == 0 && collects_) || impl_->sweeping;
  if (impl_->checks) {
    impl_->attention = statistics_.live_bytes;
  } else if (is_busy && !front.marking && !impl_->sweeps_promptly && impl_->trigger > statistics_.live_bytes) {
    // Blocks are best swept when they are needed, for then they are in the cache. What nobody needs is swept ahead of the
    // next collection, eight blocks a slice at most.
    const std::size_t ahead = impl_->blocks_to_sweep() * (tuning::heap_slice_bytes / 4) + 16 * tuning::heap_slice_bytes;
    const std::size_t room = impl_->trigger - statistics_.live_bytes;
    impl_->attention =
        statistics_.live_bytes + (room > ahead ? room - ahead : std::min(room, tuning::heap_slice_bytes));
  } else if (is_busy) {
    impl_->attention = std::min(std::max(impl_->trigger, front.marking ? limit_here() : std::size_t{0}),
                                static_cast<std::size_t>(statistics_.live_bytes + tuning::heap_slice_bytes));
  }
  grant_room();
}

// --- the checking mode ---

void Heap::check_marks() {
  Marker& marker = *impl_->marker;
  std::vector<std::pair<Block*, std::vector<std::uint64_t>>> kept;
  std::vector<Region*> regions;
  for (Impl::SizeClassState& state : impl_->state) {
    for (Block* block : state.blocks) {
      kept.emplace_back(block, std::vector<std::uint64_t>(std::begin(block->marks), std::end(block->marks)));
      block->clear_marks();
    }
  }
  for (auto& [begin, region] : impl_->regions)
    if (region.is_object && region.epoch == impl_->epoch) regions.push_back(&region);
  ++impl_->epoch;
  std::unordered_map<Object*, Object*> parents;
  auto again = std::make_unique<Marker>(*this);
  again->parents = &parents;
  std::swap(impl_->marker, again);
  scan_roots();
  impl_->marker->drain();
  if (suspended_) {
    suspended_->after_marking(*impl_->marker, *impl_->marker);
    impl_->marker->drain();
  }
  std::swap(impl_->marker, again);
  const auto lost = [&](Object* o) {
    std::fprintf(stderr, "slope: the collector lost an object:");
    for (int i = 0; o && i < 20; ++i) {
      std::fprintf(stderr, " %s %s", i ? "<-" : "", to_string(o->type).c_str());
      const auto at = parents.find(o);
      o = at == parents.end() ? nullptr : at->second;
    }
    std::fprintf(stderr, "\n");
    std::abort();
  };
  for (auto& [block, marks] : kept) {
    for (std::uint32_t cell = 0; cell < block->cell_count; ++cell)
      if (block->is_marked(cell) && !(marks[cell / 64] >> (cell % 64) & 1)) lost(block->object(cell));
    block->marked = 0;
    for (std::size_t i = 0; i < marks.size(); ++i) {
      block->marks[i] = marks[i];
      block->marked += static_cast<std::uint32_t>(std::popcount(marks[i]));
    }
  }
  for (auto& [begin, region] : impl_->regions) {
    if (region.is_object && region.epoch == impl_->epoch &&
        std::find(regions.begin(), regions.end(), &region) == regions.end())
      lost(region.object);
  }
  // What the first marking found is what lives: one that died since is kept until the next collection.
  for (Region* region : regions) region->epoch = impl_->epoch;
  for (auto& [begin, region] : impl_->regions)
    if (!region.is_object && region.epoch + 1 == impl_->epoch) region.epoch = impl_->epoch;
  static_cast<void>(marker);
}

}  // namespace slope
