// What scripts may do outside their engine; nothing unless the host grants it. The natives that reach outside
// (stdlib/native/files.cpp, io.cpp) and `include` check it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace slope {

struct Context;

struct Capabilities {
  std::vector<std::string> read;     // folders in which, and below which, files may be read and listed
  std::vector<std::string> write;    // and written, made, moved, removed
  std::vector<std::string> include;  // and read as source text
  bool environment = false;
  bool time = false;    // clocks, and waiting
  bool random = false;  // seeds from the system; without: the same numbers in every run
  bool input = false;   // standard input

  enum class Access { read, write, include };
  // Is the path in one of the folders, with all links followed? What does not exist yet lies where it would be made.
  bool allows(Access access, std::string_view path) const;
};

// False, with an error that names what the host would have to grant.
bool may_access(Context& ctx, Capabilities::Access access, std::string_view path);
bool may_use(Context& ctx, bool granted, std::string_view what, std::string_view capability);

}  // namespace slope
