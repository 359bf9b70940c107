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

thread_local const ThreadStack* switched_to = nullptr;

struct Call {
  void (*call)(void*);
  void* data;
};

void* run_call(void* given) {
  const Call& call = *static_cast<Call*>(given);
  call.call(call.data);
  return nullptr;
}

}  // namespace

const ThreadStack& thread_stack() {
  static thread_local const ThreadStack known = ask();
  return switched_to ? *switched_to : known;
}

void use_stack(const ThreadStack* stack) { switched_to = stack; }

void on_larger_stack(std::size_t bytes, void (*call)(void* data), void* data) {
  constexpr std::size_t of_the_thread = std::size_t{64} << 10;  // what the system itself puts there
  Call job{call, data};
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  const bool began = pthread_attr_setstacksize(&attributes, (bytes + of_the_thread) / 4096 * 4096) == 0 &&
                     pthread_create(&thread, &attributes, run_call, &job) == 0;
  pthread_attr_destroy(&attributes);
  if (began)
    pthread_join(thread, nullptr);
  else
    call(data);
}

const char* recursion_limit(std::size_t share) {
  const char* low = thread_stack().low;
  const char* here = static_cast<const char*>(__builtin_frame_address(0));
  if (!low || here < low) return nullptr;
  return here - static_cast<std::size_t>(here - low) / share;
}

}  // namespace slope
