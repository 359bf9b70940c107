// The one way into a native. Whatever C++ throws in there becomes an error of the script: nothing else could pass
// through machine code. Natives that reserve memory for what a script asks of them may find that there is none.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "lang/runtime/context.hpp"

namespace slope {

inline bool call_native(Context& ctx, const NativeInfo& native, const Value* args, std::size_t count, Value& result) {
  try {
    return native.function(ctx, args, count, result);
  } catch (const std::bad_alloc&) {
    return ctx.out_of_memory();
  } catch (const std::length_error&) {
    return ctx.out_of_memory();
  } catch (const std::exception& e) {
    return ctx.raise_error("internal error in " + std::string(native.name) + ": " + e.what());
  }
}

}  // namespace slope
