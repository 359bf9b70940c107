#include "repl/process.hpp"

#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace slope::repl {

namespace {
constexpr std::size_t stack_bytes = std::size_t{512} << 20;
}

bool start_on_large_stack(pthread_t& thread, void* (*body)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  const bool started = pthread_create(&thread, &attributes, body, argument) == 0;
  pthread_attr_destroy(&attributes);
  return started;
}

std::string cache_folder() {
  if (const char* folder = std::getenv("SLOPE_CACHE"); folder && *folder) {
    const std::string_view wanted = folder;
    return wanted == "off" ? std::string() : std::string(wanted);
  }
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/') return std::string(cache) + "/slope";
  if (const char* home = std::getenv("HOME"); home && *home == '/') return std::string(home) + "/.cache/slope";
  return {};
}

std::string program_folder() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path().string();
}

}  // namespace slope::repl
