#include "stdlib/native/openblas.hpp"

#include "lang/support/loaded_library.hpp"

namespace slope::stdlib {

void* openblas_symbol(const char* name) {
  static const LoadedLibrary library = [] {
    LoadedLibrary loading("libopenblas.so.0");
    if (void* threads = loading.symbol("openblas_set_num_threads")) reinterpret_cast<void (*)(int)>(threads)(1);
    return loading;
  }();
  return library.symbol(name);
}

}  // namespace slope::stdlib
