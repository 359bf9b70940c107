#include "stdlib/native/pcre2.hpp"

#include <dlfcn.h>

#include <optional>

namespace slope::stdlib {

const Pcre2* pcre2() {
  static const std::optional<Pcre2> library = []() -> std::optional<Pcre2> {
    void* handle = dlopen("libpcre2-8.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return std::nullopt;
    Pcre2 p;
    bool complete = true;
    auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      complete = complete && function;
    };
    find(p.compile, "pcre2_compile_8");
    find(p.code_free, "pcre2_code_free_8");
    find(p.pattern_info, "pcre2_pattern_info_8");
    find(p.jit_compile, "pcre2_jit_compile_8");
    find(p.match, "pcre2_match_8");
    find(p.jit_match, "pcre2_jit_match_8");
    find(p.get_error_message, "pcre2_get_error_message_8");
    find(p.substring_number_from_name, "pcre2_substring_number_from_name_8");
    find(p.compile_context_create, "pcre2_compile_context_create_8");
    find(p.compile_context_free, "pcre2_compile_context_free_8");
    find(p.set_compile_recursion_guard, "pcre2_set_compile_recursion_guard_8");
    find(p.set_max_pattern_length, "pcre2_set_max_pattern_length_8");
    find(p.general_context_create, "pcre2_general_context_create_8");
    find(p.general_context_free, "pcre2_general_context_free_8");
    find(p.match_context_create, "pcre2_match_context_create_8");
    find(p.match_context_free, "pcre2_match_context_free_8");
    find(p.set_callout, "pcre2_set_callout_8");
    find(p.set_match_limit, "pcre2_set_match_limit_8");
    find(p.set_heap_limit, "pcre2_set_heap_limit_8");
    find(p.set_offset_limit, "pcre2_set_offset_limit_8");
    find(p.match_data_create, "pcre2_match_data_create_8");
    find(p.match_data_free, "pcre2_match_data_free_8");
    find(p.get_ovector_pointer, "pcre2_get_ovector_pointer_8");
    find(p.jit_stack_create, "pcre2_jit_stack_create_8");
    find(p.jit_stack_free, "pcre2_jit_stack_free_8");
    find(p.jit_stack_assign, "pcre2_jit_stack_assign_8");
    return complete ? std::optional(p) : std::nullopt;
  }();
  return library ? &*library : nullptr;
}

}  // namespace slope::stdlib
