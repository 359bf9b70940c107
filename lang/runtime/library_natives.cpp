#include "lang/runtime/library_natives.hpp"

#include <algorithm>

#include "lang/runtime/method.hpp"

namespace slope {

bool is_library_native(std::string_view name) {
  static constexpr std::string_view names[] = {
      "call_derivative",    "constant_shadow",    "derivative_step",        "dynamic_forward",   "dynamic_reverse",
      "dynamic_tangent",    "exchange_memory",    "finish_tangents",        "give_rule_state",   "keep_memory",
      "keep_memory_of",     "keep_memory_within", "pullback_forward",       "pullback_reverse",  "pullback_step",
      "memory_before",      "tangents_before",    "expect_numbers_as_kept", "exchange_later",    "put_back_later",
      "put_back_memory",    "take_away_memory",   "take_rule_state",        "watch_calls",       "zero_shadows",
      "keep_unchanged",     "keep_seen",          "take_away_all",          "took_only_numbers", "next_kept_level",
      "open_level_for",     "close_level",        "check_kept_numbers",     "keep_for_pullback", "give_to_pullback",
      "take_from_pullback", "expect_as_kept",     "watch_changes",          "changes_since"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool is_library_native(const BuiltinTypes& types, Value v) {
  // The address of an operation is odd (lang/ir/execute/execute.hpp).
  if (v.type != types.builtin_function || (v.bits & 1)) return false;
  return is_library_native(static_cast<const NativeInfo*>(v.pointer)->name);
}

}  // namespace slope
