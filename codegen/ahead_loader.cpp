// The engine's side of ahead.hpp.
#include <dlfcn.h>

#include <string>

#include "codegen/ahead.hpp"
#include "lang/runtime/backend.hpp"

namespace slope {

// The functions of an object's class lie where its shared object is.
BuildObject object_builder(const CodeGenerator* generator, bool for_other_machines) {
  if (!generator) return nullptr;
  Dl_info info;
  if (!dladdr(*reinterpret_cast<void* const*>(generator), &info) || !info.dli_fname) return nullptr;
  std::string place = info.dli_fname;
  if (for_other_machines) place = place.substr(0, place.rfind('/') + 1) + "libslope_codegen_cross.so";
  void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL | (for_other_machines ? 0 : RTLD_NOLOAD));
  return library ? reinterpret_cast<BuildObject>(dlsym(library, "slope_build_object")) : nullptr;
}

}  // namespace slope
