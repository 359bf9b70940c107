// Numbers of objects by their addresses: a table with open addressing, in one piece of memory. Shadows of many small
// arrays are made one after the other, and each is looked up when it is met.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lang/types/object.hpp"

namespace slope::diff {

class ObjectNumbers {
 public:
  static constexpr std::size_t none = ~std::size_t{0};

  std::size_t of(const Object* object) const { return slots_.empty() ? none : slots_[slot_of(slots_, object)].number; }
  // Of an object that has none yet.
  void set(const Object* object, std::size_t number) {
    if (4 * (count_ + 1) > 3 * slots_.size()) grow(2 * count_ + 2);
    slots_[slot_of(slots_, object)] = {object, number};
    ++count_;
  }
  void reserve(std::size_t more) {
    if (4 * (count_ + more) > 3 * slots_.size()) grow(count_ + more);
  }
  template <class Test>
  bool any_of(Test test) const {
    for (const Slot& slot : slots_)
      if (slot.object && test(slot.object)) return true;
    return false;
  }

 private:
  struct Slot {
    const Object* object = nullptr;
    std::size_t number = none;
  };

  // Where it is, or where it would go.
  static std::size_t slot_of(const std::vector<Slot>& slots, const Object* object) {
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;  // spreads addresses, whose low bits are equal
    const std::size_t mask = slots.size() - 1;
    std::size_t at = static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(object) * odd) >> 32) & mask;
    while (slots[at].object && slots[at].object != object) at = (at + 1) & mask;
    return at;
  }
  void grow(std::size_t objects) {
    std::size_t size = 8;
    while (4 * objects > 3 * size) size *= 2;
    std::vector<Slot> larger(size);
    for (const Slot& slot : slots_)
      if (slot.object) larger[slot_of(larger, slot.object)] = slot;
    slots_.swap(larger);
  }

  std::vector<Slot> slots_;  // a power of two
  std::size_t count_ = 0;
};

}  // namespace slope::diff
