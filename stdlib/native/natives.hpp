// The library's C++ half: natives in Core that Slope code in stdlib/ wraps. One define_… a subject.
#pragma once

#include "lang/runtime/runtime.hpp"

namespace slope::stdlib {

void define_string_natives(Runtime& runtime);
void define_regex_natives(Runtime& runtime);
void define_character_natives(Runtime& runtime);
void define_number_natives(Runtime& runtime);
void define_format_natives(Runtime& runtime);
void define_math_natives(Runtime& runtime);
void define_type_natives(Runtime& runtime);
void define_method_natives(Runtime& runtime);
void define_object_natives(Runtime& runtime);
void define_element_natives(Runtime& runtime);
void define_csv_natives(Runtime& runtime);
void define_display_natives(Runtime& runtime);
void define_io_natives(Runtime& runtime);
void define_task_natives(Runtime& runtime);
void define_file_natives(Runtime& runtime);
void define_blas_natives(Runtime& runtime);
void define_lapack_natives(Runtime& runtime);
void define_big_natives(Runtime& runtime);
void define_nlopt_natives(Runtime& runtime);
void define_ipopt_natives(Runtime& runtime);
void define_klu_natives(Runtime& runtime);
void define_sundials_natives(Runtime& runtime);

inline void define_natives(Runtime& runtime) {
  define_string_natives(runtime);
  define_regex_natives(runtime);
  define_character_natives(runtime);
  define_number_natives(runtime);
  define_format_natives(runtime);
  define_math_natives(runtime);
  define_type_natives(runtime);
  define_method_natives(runtime);
  define_object_natives(runtime);
  define_element_natives(runtime);
  define_csv_natives(runtime);
  define_display_natives(runtime);
  define_io_natives(runtime);
  define_task_natives(runtime);
  define_file_natives(runtime);
  define_blas_natives(runtime);
  define_lapack_natives(runtime);
  define_big_natives(runtime);
  define_nlopt_natives(runtime);
  define_ipopt_natives(runtime);
  define_klu_natives(runtime);
  define_sundials_natives(runtime);
}

}  // namespace slope::stdlib
