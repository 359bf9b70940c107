// Shared libraries that a program needs only now and then, loaded on first use: linking them would cost every start.
//
// A library is described by a struct of pointers to functions, with its file and a function that finds them:
//
//   struct Nlopt {
//     static constexpr const char* file = "libnlopt.so.0";
//     Optimizer (*create)(int, unsigned) = nullptr;
//     void find(LoadedLibrary& library) { library.find(create, "nlopt_create"); }
//   };
//   if (const Nlopt* nlopt = loaded<Nlopt>()) nlopt->create(0, 2);
//
// A library's code and state belong to the process, so it is loaded once and stays. Its names are not visible to others.
#pragma once

#include <dlfcn.h>

#include <optional>
#include <type_traits>

namespace slope {

class LoadedLibrary {
 public:
  explicit LoadedLibrary(const char* file) : handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {}
  void* symbol(const char* name) const { return handle_ ? dlsym(handle_, name) : nullptr; }
  template <class Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(symbol(name));
    is_complete_ = is_complete_ && function;
  }
  // The library is installed and has all that was looked for.
  bool is_complete() const { return handle_ && is_complete_; }

 private:
  void* handle_;
  bool is_complete_ = true;
};

// The functions of a library; null where it is not installed, or lacks one of them.
template <class Functions>
const Functions* loaded() {
  static const std::optional<Functions> functions = []() -> std::optional<Functions> {
    LoadedLibrary library(Functions::file);
    Functions found;
    found.find(library);
    return library.is_complete() ? std::optional(found) : std::nullopt;
  }();
  return functions ? &*functions : nullptr;
}

}  // namespace slope
