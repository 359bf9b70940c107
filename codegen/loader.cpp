#include "codegen/loader.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "lang/support/dump.hpp"

namespace slope {

namespace {

std::string executable_folder() {
  std::array<char, 4096> path;
  ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) return {};
  std::string_view text(path.data(), static_cast<std::size_t>(length));
  std::size_t slash = text.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(text.substr(0, slash));
}

}  // namespace

std::unique_ptr<CodeGenerator> load_code_generator(Runtime& runtime, const std::string& build_path,
                                                   const std::string& install_path, std::string& why) {
  constexpr std::string_view name = "libslope_codegen.so";
  std::vector<std::string> places;
  if (!build_path.empty()) places.push_back(build_path);
  if (std::string folder = executable_folder(); !folder.empty()) {
    places.push_back(folder + "/" + std::string(name));
    places.push_back(folder + "/../lib/" + std::string(name));
  }
  if (!install_path.empty()) places.push_back(install_path);

  CodegenHost host;
  host.fingerprint = codegen_fingerprint();
  host.dump_llvm = dump_wants("llvm");
  host.verify = std::getenv("SLOPE_VERIFY") != nullptr;
  why.clear();
  for (const std::string& place : places) {
    if (access(place.c_str(), R_OK) != 0) {
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
