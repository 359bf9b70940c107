#include "lang/support/thread_stack.hpp"

#include <pthread.h>

#include <cstddef>

namespace slope {

namespace {

ThreadStack ask() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* low = nullptr;
  std::size_t size = 0;
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  if (!low) return {};
  return {static_cast<const char*>(low), static_cast<const char*>(low) + size};
}

}  // namespace

const ThreadStack& thread_stack() {
  static thread_local const ThreadStack known = ask();
  return known;
}

const char* recursion_limit(std::size_t share) {
  const char* low = thread_stack().low;
  const char* here = static_cast<const char*>(__builtin_frame_address(0));
  if (!low || here < low) return nullptr;
  return here - static_cast<std::size_t>(here - low) / share;
}

}  // namespace slope
