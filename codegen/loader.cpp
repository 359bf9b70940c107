#include "codegen/loader.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "lang/support/dump.hpp"

namespace slope {

namespace {

std::string folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(path.substr(0, slash));
}

std::string executable_folder() {
  std::array<char, 4096> path;
  ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) return {};
  return folder_of({path.data(), static_cast<std::size_t>(length)});
}

// Of the shared object that has this code in it: of libslope.so, say, or of a plugin of the host.
std::string own_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&folder_of), &info) || !info.dli_fname) return {};
  return folder_of(info.dli_fname);
}

}  // namespace

std::unique_ptr<CodeGenerator> load_code_generator(Runtime& runtime, const std::string& build_path,
                                                   const std::string& install_path, const CodegenHost& wanted,
                                                   std::string& why) {
  constexpr std::string_view name = "libslope_codegen.so";
  std::vector<std::string> places;
  const auto add = [&](const std::string& place) {
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  };
  for (const std::string& folder : {executable_folder(), own_folder()}) {
    if (folder.empty()) continue;
    add(folder + "/" + std::string(name));
    add(folder + "/../lib/" + std::string(name));
  }
  // Where the dynamic linker looks: the run path that the package gives its hosts, LD_LIBRARY_PATH, the system's
  // folders.
  add(std::string(name));
  if (!build_path.empty()) add(build_path);
  if (!install_path.empty()) add(install_path);

  CodegenHost host = wanted;
  host.fingerprint = codegen_fingerprint();
  host.dump_llvm = dump_wants("llvm");
  const char* checks = std::getenv("SLOPE_VERIFY");
  host.verify = checks && std::strcmp(checks, "0") != 0;
  const char* image = std::getenv("SLOPE_LIBRARY_CODE");
  host.uses_image = !image || std::strcmp(image, "off") != 0;
  if (const char* quick = std::getenv("SLOPE_QUICK_CODE"))
    host.quick_code = std::strcmp(quick, "off") == 0 ? 0 : std::strtoull(quick, nullptr, 10);
  why.clear();
  for (const std::string& place : places) {
    if (place != name && access(place.c_str(), R_OK) != 0) {
      why += "no file " + place + "\n";
      continue;
    }
    // RTLD_DEEPBIND would let a host's malloc and ours differ; hidden symbols and -Bsymbolic are enough.
    // Never closed: generators, and code that calls into it, may live until the process ends.
    void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      why += std::string(dlerror()) + "\n";
      continue;
    }
    auto create = reinterpret_cast<CreateCodeGenerator>(dlsym(library, "slope_create_code_generator"));
    if (!create) {
      why += place + " has no entry slope_create_code_generator\n";
      continue;
    }
    if (std::unique_ptr<CodeGenerator> generator{create(&runtime, &host)}) return generator;
    why += place + " comes from another build of Slope or cannot make code for this machine\n";
  }
  return nullptr;
}

}  // namespace slope
