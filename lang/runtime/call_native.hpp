// Whatever C++ throws below a script becomes an error of the script: nothing could pass through machine code. Any
// allocation may fail.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "lang/runtime/context.hpp"
#include "lang/runtime/stop_scope.hpp"

namespace slope {

// The exception that is being handled becomes the pending error. Its own function, because deep recursion of scripts goes
// through the frames of those who catch.
[[gnu::noinline, gnu::cold]] inline bool raise_exception(Context& ctx, const char* name) {
  try {
    throw;
  } catch (const Stopped&) {
    return ctx.stop();
  } catch (const std::bad_alloc&) {
    return ctx.out_of_memory();
  } catch (const std::length_error&) {
    return ctx.out_of_memory();
  } catch (const std::exception& e) {
    return ctx.raise_error("internal error in " + std::string(name) + ": " + e.what());
  }
}

// Runs it. False, with an error, when it throws.
template <class Body>
bool without_exceptions(Context& ctx, const char* name, Body&& body) {
  try {
    return body();
  } catch (const std::exception&) {
    return raise_exception(ctx, name);
  }
}

// The one way into a native.
inline bool call_native(Context& ctx, const NativeInfo& native, const Value* args, std::size_t count, Value& result) {
  return without_exceptions(ctx, native.name, [&] { return native.function(ctx, args, count, result); });
}

}  // namespace slope
