#include "lang/memory/clear.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace slope {

namespace {

// Filling takes some 3 ms, and pages that were not there before take several times that when they are used.
constexpr std::size_t least_returned = std::size_t{32} << 20;

}  // namespace

void clear_memory(void* memory, std::size_t bytes) {
  auto* begin = static_cast<char*>(memory);
  char* const end = begin + bytes;
  if (bytes >= least_returned) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    char* const first = begin + ((address + page - 1) / page * page - address);
    char* const last = first + static_cast<std::uintptr_t>(end - first) / page * page;
    if (madvise(first, static_cast<std::size_t>(last - first), MADV_DONTNEED) == 0) {
      std::memset(begin, 0, static_cast<std::size_t>(first - begin));
      begin = last;
    }
  }
  std::memset(begin, 0, static_cast<std::size_t>(end - begin));
}

}  // namespace slope
