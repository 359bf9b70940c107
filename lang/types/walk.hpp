// Walks over types recurse, and a script decides how deep its types are. A walk begins with `walk_types`, which moves it
// to a larger stack when the thread's does not hold so many levels any more.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lang/support/thread_stack.hpp"
#include "lang/types/type.hpp"

namespace slope {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::size_t stack_a_type_level = 16 << 10;
#else
inline constexpr std::size_t stack_a_type_level = 2 << 10;  // of the frames of the costliest walk, with room to spare
#endif
inline constexpr std::uint32_t few_type_levels = 24;  // what is reserved below the deepest call holds these

// `f()`, which walks over types that are at most `levels` deep.
template <class F>
auto walk_types(std::uint32_t levels, F&& f) {
  if (levels <= few_type_levels) return f();
  return with_stack((levels + few_type_levels) * stack_a_type_level, std::forward<F>(f));
}

template <class F>
auto walk_types(const Type* t, F&& f) {
  return walk_types(t ? t->levels : 0, std::forward<F>(f));
}

template <class F>
auto walk_types(const Type* a, const Type* b, F&& f) {
  return walk_types(std::max(a->levels, b->levels), std::forward<F>(f));
}

}  // namespace slope
