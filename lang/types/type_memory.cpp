#include "lang/types/type_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace slope {

namespace {

constexpr std::size_t page_bytes = 4096;  // larger pages of a system go back when all their parts were released
constexpr std::size_t segment_bytes = std::size_t{1} << 20;
constexpr std::size_t granule = 8;

std::size_t rounded(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

// Types own memory of malloc.
void note_for_leak_check([[maybe_unused]] const char* begin, [[maybe_unused]] std::size_t bytes,
                         [[maybe_unused]] bool is_there) {
#if defined(__SANITIZE_ADDRESS__)
  if (is_there)
    __lsan_register_root_region(begin, bytes);
  else
    __lsan_unregister_root_region(begin, bytes);
#endif
}

}  // namespace

TypeMemory::~TypeMemory() {
  for (auto& [begin, segment] : segments_) {
    if (segment.used.size() != 0) note_for_leak_check(begin, segment.bytes, false);
    munmap(begin, segment.bytes);
  }
}

void TypeMemory::begin_segment(std::size_t bytes) {
  Segment segment;
  segment.bytes = std::max(segment_bytes, rounded(bytes, page_bytes));
  segment.used.assign(segment.bytes / page_bytes, 0);
  void* memory =
      mmap(nullptr, segment.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<char*>(memory);
  const std::size_t size = segment.bytes;
  try {
    segments_.emplace(begin, std::move(segment));
  } catch (...) {
    munmap(memory, size);
    throw;
  }
  note_for_leak_check(begin, size, true);
  next_ = begin;
  end_ = begin + size;
}

void* TypeMemory::allocate(std::size_t bytes) {
  bytes = rounded(std::max<std::size_t>(bytes, 1), granule);
  if (static_cast<std::size_t>(end_ - next_) < bytes) begin_segment(bytes);
  char* const at = next_;
  next_ += bytes;
  const auto found = std::prev(segments_.upper_bound(at));
  Segment& segment = found->second;
  const auto first = static_cast<std::size_t>(at - found->first) / page_bytes;
  const auto last = static_cast<std::size_t>(at + bytes - 1 - found->first) / page_bytes;
  for (std::size_t page = first; page <= last; ++page)
    if (segment.used[page]++ == 0) ++segment.pages_used;
  return at;
}

void TypeMemory::release(const void* at, std::size_t bytes) {
  auto* const from = const_cast<char*>(static_cast<const char*>(at));
  bytes = rounded(std::max<std::size_t>(bytes, 1), granule);
  std::memset(from, 0, bytes);  // a mistake shows, whether the page goes or stays
  const auto found = std::prev(segments_.upper_bound(from));
  Segment& segment = found->second;
  const auto first = static_cast<std::size_t>(from - found->first) / page_bytes;
  const auto last = static_cast<std::size_t>(from + bytes - 1 - found->first) / page_bytes;
  for (std::size_t page = first; page <= last; ++page)
    if (--segment.used[page] == 0) leave_page(found->first, segment, page);
}

// A segment that nothing is left of becomes a place where nothing can be: such neighbours cost the system nothing.
void TypeMemory::leave_page(char* begin, Segment& segment, std::size_t page) {
  --segment.pages_used;
  const bool is_current = next_ >= begin && next_ <= begin + segment.bytes;
  if (segment.pages_used == 0 && !is_current) {
    note_for_leak_check(begin, segment.bytes, false);
    if (mmap(begin, segment.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) !=
        MAP_FAILED)
      segment.used = {};
    else
      madvise(begin, segment.bytes, MADV_DONTNEED);
  } else {
    madvise(begin + page * page_bytes, page_bytes, MADV_DONTNEED);
  }
}

}  // namespace slope
