// What the two halves of a call whose target is found at run time share (dynamic.cpp, dynamic_reverse.cpp).
#pragma once

#include "lang/runtime/runtime.hpp"

namespace slope::derive {

// What a record begins with.
enum RecordKind : std::int64_t { kind_call, kind_get_field, kind_set_field, kind_tuple };

inline Value field_of(Runtime& runtime, Value object, std::size_t i) {
  return load_field(runtime.heap, object.object, as_data(object.type)->fields[i]);
}

// dynamic_reverse(record, cotangent)
bool dynamic_reverse(Context& ctx, const Value* args, std::size_t count, Value& result);

void define_dynamic_natives(Runtime& runtime);

}  // namespace slope::derive
