#include "stdlib/native/pcre2.hpp"

namespace slope::stdlib {

void Pcre2::find(LoadedLibrary& library) {
  library.find(compile, "pcre2_compile_8");
  library.find(code_free, "pcre2_code_free_8");
  library.find(pattern_info, "pcre2_pattern_info_8");
  library.find(jit_compile, "pcre2_jit_compile_8");
  library.find(match, "pcre2_match_8");
  library.find(jit_match, "pcre2_jit_match_8");
  library.find(get_error_message, "pcre2_get_error_message_8");
  library.find(substring_number_from_name, "pcre2_substring_number_from_name_8");
  library.find(compile_context_create, "pcre2_compile_context_create_8");
  library.find(compile_context_free, "pcre2_compile_context_free_8");
  library.find(set_compile_recursion_guard, "pcre2_set_compile_recursion_guard_8");
  library.find(set_max_pattern_length, "pcre2_set_max_pattern_length_8");
  library.find(general_context_create, "pcre2_general_context_create_8");
  library.find(general_context_free, "pcre2_general_context_free_8");
  library.find(match_context_create, "pcre2_match_context_create_8");
  library.find(match_context_free, "pcre2_match_context_free_8");
  library.find(set_callout, "pcre2_set_callout_8");
  library.find(set_match_limit, "pcre2_set_match_limit_8");
  library.find(set_heap_limit, "pcre2_set_heap_limit_8");
  library.find(set_offset_limit, "pcre2_set_offset_limit_8");
  library.find(match_data_create, "pcre2_match_data_create_8");
  library.find(match_data_free, "pcre2_match_data_free_8");
  library.find(get_ovector_pointer, "pcre2_get_ovector_pointer_8");
  library.find(jit_stack_create, "pcre2_jit_stack_create_8");
  library.find(jit_stack_free, "pcre2_jit_stack_free_8");
  library.find(jit_stack_assign, "pcre2_jit_stack_assign_8");
}

const Pcre2* pcre2() { return loaded<Pcre2>(); }

}  // namespace slope::stdlib
