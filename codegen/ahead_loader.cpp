// The engine's side of ahead.hpp.
#include <dlfcn.h>

#include "codegen/ahead.hpp"
#include "lang/runtime/backend.hpp"

namespace slope {

// The functions of an object's class lie where its shared object is.
BuildObject object_builder(const CodeGenerator* generator) {
  if (!generator) return nullptr;
  Dl_info info;
  if (!dladdr(*reinterpret_cast<void* const*>(generator), &info) || !info.dli_fname) return nullptr;
  void* library = dlopen(info.dli_fname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  return library ? reinterpret_cast<BuildObject>(dlsym(library, "slope_build_object")) : nullptr;
}

}  // namespace slope
