// What an engine keeps outside its heap: names, types, methods and their code. A heap limit holds for it too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace slope {

class MemoryCount {
 public:
  MemoryCount() = default;
  MemoryCount(const MemoryCount&) = delete;

  void add(std::size_t bytes) {
    if (total_.fetch_add(bytes, std::memory_order_relaxed) + bytes > limit_) exceed();
  }
  void remove(std::size_t bytes) { total_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::size_t total() const { return total_.load(std::memory_order_relaxed); }
  // `bytes` more than there are now and `free` ones, of which nobody is charged. Whoever goes beyond them makes `flag`
  // ask for a stop, by `request`, unless it asks for something already: this may be in the middle of making a type.
  void set_limit(std::size_t bytes, std::size_t free, std::atomic<std::uint32_t>& flag, std::uint32_t request) {
    base_ = total() + free;
    limit_ = bytes > std::numeric_limits<std::size_t>::max() - base_ ? bytes : base_ + bytes;
    flag_ = &flag;
    request_ = request;
  }
  std::size_t since_limit() const { return flag_ && total() > base_ ? total() - base_ : 0; }

 private:
  void exceed() {
    std::uint32_t none = 0;
    if (flag_) flag_->compare_exchange_strong(none, request_, std::memory_order_relaxed);
  }
  std::atomic<std::size_t> total_{0};
  std::size_t base_ = 0;
  std::size_t limit_ = std::numeric_limits<std::size_t>::max();
  std::atomic<std::uint32_t>* flag_ = nullptr;
  std::uint32_t request_ = 0;
};

// The bytes of something that may end before its engine does.
class CountedBytes {
 public:
  CountedBytes() = default;
  CountedBytes(const CountedBytes&) = delete;
  ~CountedBytes() {
    if (count_) count_->remove(bytes_);
  }
  void add(MemoryCount& count, std::size_t bytes) {
    count_ = &count;
    bytes_ += bytes;
    count.add(bytes);
  }

 private:
  MemoryCount* count_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace slope
