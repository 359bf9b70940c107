// PCRE2, loaded when a program first uses a regular expression: see loaded_library.hpp.
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "lang/support/loaded_library.hpp"

namespace slope::stdlib {

// The functions that regular expressions use, under their names without the prefix.
struct Pcre2 {
  decltype(&pcre2_compile_8) compile = nullptr;
  decltype(&pcre2_code_free_8) code_free = nullptr;
  decltype(&pcre2_pattern_info_8) pattern_info = nullptr;
  decltype(&pcre2_jit_compile_8) jit_compile = nullptr;
  decltype(&pcre2_match_8) match = nullptr;
  decltype(&pcre2_jit_match_8) jit_match = nullptr;
  decltype(&pcre2_get_error_message_8) get_error_message = nullptr;
  decltype(&pcre2_substring_number_from_name_8) substring_number_from_name = nullptr;
  decltype(&pcre2_compile_context_create_8) compile_context_create = nullptr;
  decltype(&pcre2_compile_context_free_8) compile_context_free = nullptr;
  decltype(&pcre2_set_compile_recursion_guard_8) set_compile_recursion_guard = nullptr;
  decltype(&pcre2_set_max_pattern_length_8) set_max_pattern_length = nullptr;
  decltype(&pcre2_general_context_create_8) general_context_create = nullptr;
  decltype(&pcre2_general_context_free_8) general_context_free = nullptr;
  decltype(&pcre2_match_context_create_8) match_context_create = nullptr;
  decltype(&pcre2_match_context_free_8) match_context_free = nullptr;
  decltype(&pcre2_set_callout_8) set_callout = nullptr;
  decltype(&pcre2_set_match_limit_8) set_match_limit = nullptr;
  decltype(&pcre2_set_heap_limit_8) set_heap_limit = nullptr;
  decltype(&pcre2_set_offset_limit_8) set_offset_limit = nullptr;
  decltype(&pcre2_match_data_create_8) match_data_create = nullptr;
  decltype(&pcre2_match_data_free_8) match_data_free = nullptr;
  decltype(&pcre2_get_ovector_pointer_8) get_ovector_pointer = nullptr;
  decltype(&pcre2_jit_stack_create_8) jit_stack_create = nullptr;
  decltype(&pcre2_jit_stack_free_8) jit_stack_free = nullptr;
  decltype(&pcre2_jit_stack_assign_8) jit_stack_assign = nullptr;

  static constexpr const char* file = "libpcre2-8.so.0";
  void find(LoadedLibrary& library);
};

// Null when the library is not installed, or lacks one of them.
const Pcre2* pcre2();

}  // namespace slope::stdlib
