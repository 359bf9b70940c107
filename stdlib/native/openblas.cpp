#include "stdlib/native/openblas.hpp"

#include <dlfcn.h>

namespace slope::stdlib {

void* openblas_symbol(const char* name) {
  static void* const library = [] {
    void* handle = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (handle)
      if (void* threads = dlsym(handle, "openblas_set_num_threads")) reinterpret_cast<void (*)(int)>(threads)(1);
    return handle;
  }();
  return library ? dlsym(library, name) : nullptr;
}

}  // namespace slope::stdlib
