// Sweeping: what is unmarked becomes free, block by block.
//
// A block is swept when its size class needs cells, or in slices ahead of need, and then holds its free cells until
// they are needed. The memory of a dead array is freed when the block of its header is swept; large objects are looked
// through in slices as well. Blocks without a live cell return to the pool, and when all is swept what nobody needed
// returns to the system.
#include <malloc.h>

#include <algorithm>

#include "lang/memory/heap_impl.hpp"
#include "lang/support/tuning.hpp"

namespace slope {

// Everything waits to be swept from here on.
void Heap::prepare_sweep() {
  note_fresh();
  std::fill(std::begin(front.free), std::end(front.free), nullptr);
  std::fill(std::begin(front.fresh), std::end(front.fresh), FreshCells{});
  for (Impl::SizeClassState& state : impl_->state) {
    state.carving = nullptr;
    state.next_to_sweep = 0;
    state.swept.clear();
  }
  for (const auto& [bytes, raw] : impl_->spare) impl_->unwanted.emplace_back(bytes, raw);
  impl_->spare.clear();
  impl_->spare_bytes = 0;
  impl_->blocks_before = impl_->space.blocks_in_use();
  impl_->region_bytes_before = impl_->region_bytes;
  impl_->sweeping = true;
  impl_->sweeps_promptly = impl_->region_bytes > statistics_.live_bytes + least_growth || !impl_->unwanted.empty();
  impl_->class_to_sweep = 0;
  impl_->region_to_sweep = 0;
  impl_->freed_by_sweep = 0;
}

std::size_t Heap::Impl::blocks_to_sweep() const {
  std::size_t left = 0;
  for (const SizeClassState& of_class : state) left += of_class.blocks.size() - of_class.next_to_sweep;
  return left;
}

// The memory of the arrays in the block that died.
void Heap::free_external(Block* block) {
  for (std::uint32_t cell = 0; cell < block->fresh; ++cell) {
    Object* object = block->object(cell);
    if (block->is_marked(cell) || !object->type || object->type->object_kind != DataType::ObjectKind::array) continue;
    auto* array = static_cast<ArrayObject*>(object);
    if (!(array->flags & array_external)) continue;
    const auto begin = reinterpret_cast<std::uintptr_t>(memory_of(array) - buffer_margin);
    impl_->freed_by_sweep += impl_->regions.at(begin).end - begin;
    impl_->free_region(begin);
  }
}

void Heap::sweep_next(std::uint8_t size_class) {
  Impl::SizeClassState& state = impl_->state[size_class];
  Block*& place = state.blocks[state.next_to_sweep];
  Block* block = place;
  if (block->has_external) free_external(block);
  if (block->marked == 0) {
    impl_->space.release(block);
    place = state.blocks.back();  // not swept either: new blocks come when all are
    state.blocks.pop_back();
    return;
  }
  ++state.next_to_sweep;
  block->free = nullptr;
  if (block->marked < block->fresh) {
    block->free = block->sweep();
  } else {
    block->clear_marks();
  }
  if (block->fresh < block->cell_count) {
    if (!state.carving) {
      state.carving = block;
    } else {
      block->free = block->carve_all(block->free);
    }
  }
  if (block->free) state.swept.push_back(block);
}

void Heap::sweep_some(std::size_t blocks) {
  if (!impl_->sweeping) return;
  const bool all = blocks == ~std::size_t{0};
  for (; impl_->class_to_sweep < impl_->state.size(); ++impl_->class_to_sweep) {
    while (!impl_->state[impl_->class_to_sweep].is_swept()) {
      if (blocks == 0) return;
      --blocks;
      sweep_next(static_cast<std::uint8_t>(impl_->class_to_sweep));
    }
  }
  // Looking at a region costs about a twentieth of sweeping a block.
  constexpr std::size_t regions_per_block = 16;
  std::size_t regions = all ? blocks : blocks * regions_per_block;
  auto it = impl_->regions.lower_bound(impl_->region_to_sweep);
  for (; it != impl_->regions.end(); --regions) {
    if (regions == 0) {
      impl_->region_to_sweep = it->first;
      return;
    }
    if (!it->second.is_object || it->second.epoch == impl_->epoch) {
      ++it;
      continue;
    }
    impl_->region_bytes -= it->second.end - it->first;
    std::free(it->second.raw);
    it = impl_->regions.erase(it);
  }
  impl_->region_to_sweep = ~std::uintptr_t{0};
  if (!all && regions == 0) return;
  impl_->return_unwanted(all ? ~std::size_t{0} : tuning::heap_returned_bytes);
  if (!impl_->unwanted.empty()) return;
  impl_->sweeping = false;
  impl_->return_memory(impl_->blocks_before, impl_->region_bytes_before);
}

// Before memory of so many bytes is asked of the system: dead arrays may have it.
void Heap::sweep_for_memory(std::size_t bytes) {
  if (!impl_->sweeping) return;
  if (impl_->region_bytes + bytes > limit_) return sweep_some(~std::size_t{0});
  const std::size_t before = impl_->freed_by_sweep;
  for (int i = 0; i < 16 && impl_->sweeping && impl_->freed_by_sweep - before < bytes; ++i) sweep_some(4);
}

void Heap::Impl::return_unwanted(std::size_t bytes) {
  std::size_t returned = 0;
  while (!unwanted.empty() && returned < bytes) {
    returned += unwanted.back().first;
    std::free(unwanted.back().second);
    unwanted.pop_back();
  }
}

// What was not used since the last collection goes back to the system: a program that turns from large arrays to small
// objects should not hold memory for both. What was used stays, for it will be used again.
void Heap::Impl::return_memory(std::size_t blocks_before_it, std::size_t region_bytes_before_it) {
  space.trim(blocks_before_it);
  constexpr std::size_t worth_the_call = tuning::heap_worth_returning;
  if (region_peak < worth_the_call || region_bytes_before_it > region_peak / 2) return;
  malloc_trim(0);
  region_peak = region_bytes;
}

}  // namespace slope
