// Memory of types. What is released goes back to the system page by page, but an address is never used again: types are
// keys of many tables, in which one that is gone can't be taken for another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <new>
#include <vector>

namespace slope {

class TypeMemory {
 public:
  TypeMemory() = default;
  TypeMemory(const TypeMemory&) = delete;
  ~TypeMemory();

  void* allocate(std::size_t bytes);  // zeros
  void release(const void* at, std::size_t bytes);

 private:
  struct Segment {
    std::size_t bytes = 0;
    std::vector<std::uint16_t> used;  // of each page: how many allocations touch it
    std::size_t pages_used = 0;
  };
  void begin_segment(std::size_t bytes);
  void leave_page(char* begin, Segment& segment, std::size_t page);

  std::map<char*, Segment> segments_;  // by their begin
  char* next_ = nullptr;
  char* end_ = nullptr;
};

}  // namespace slope
