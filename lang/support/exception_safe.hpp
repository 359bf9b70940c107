// For what must stay whole when an allocation fails, which throws: variables are put back and functions run however a
// scope is left; lists that must agree have room before the first of them is changed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace slope {

template <class T>
class Restored {
 public:
  template <class U>
  Restored(T& variable, U&& within) : variable_(variable), before_(std::exchange(variable, std::forward<U>(within))) {}
  ~Restored() { variable_ = std::move(before_); }
  Restored(const Restored&) = delete;

 private:
  T& variable_;
  T before_;
};

template <class Action>
class Finally {
 public:
  explicit Finally(Action action) : action_(std::move(action)) {}
  ~Finally() { action_(); }
  Finally(const Finally&) = delete;

 private:
  Action action_;
};

// The next element is then added without an allocation.
template <class T>
void make_room_for_one(std::vector<T>& list) {
  if (list.size() == list.capacity()) list.reserve(std::max<std::size_t>(4, 2 * list.size()));
}

}  // namespace slope
