#include "lang/runtime/granted_path.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "lang/runtime/runtime.hpp"

namespace slope {

namespace fs = std::filesystem;

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) close(number_);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    if (number_ >= 0) close(number_);
    number_ = other.release();
  }
  return *this;
}

int FileDescriptor::release() { return std::exchange(number_, -1); }

const int GrantedPath::at_cwd = AT_FDCWD;

bool GrantedPath::find(Context& ctx, Capabilities::Access access, std::string_view path, LastLink last) {
  std::string real;
  if (!find_granted(ctx.runtime->capabilities, access, path, last == LastLink::follow, root_, real)) {
    open_error_ = EACCES;
    return may_access(ctx, access, path);
  }
  free_ = root_ == "/";
  if (free_) {
    name_ = path;
    return true;
  }
  const auto without_slash = [](const fs::path& p) { return p.has_filename() ? p : p.parent_path(); };
  root_ = without_slash(root_).string();
  const fs::path below = without_slash(real).lexically_relative(root_);
  name_ = below.filename().string();
  between_ = below.parent_path().string();
  if (name_.empty()) name_ = ".";
  walk(false);
  return true;
}

bool GrantedPath::make_folders() { return free_ || walk(true); }

bool GrantedPath::walk(bool make) {
  constexpr int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  open_error_ = 0;
  FileDescriptor at(::open(root_.c_str(), flags));
  for (const fs::path& part : fs::path(between_)) {
    if (!at) break;
    if (part == "..") {
      errno = EACCES;
      at = FileDescriptor();
      break;
    }
    if (make && mkdirat(at.get(), part.c_str(), 0777) != 0 && errno != EEXIST) {
      at = FileDescriptor();
      break;
    }
    at = FileDescriptor(openat(at.get(), part.c_str(), flags | O_NOFOLLOW));
  }
  if (!at) open_error_ = errno;
  folder_ = std::move(at);
  return is_open();
}

int GrantedPath::open_flags() const { return O_CLOEXEC | (free_ ? 0 : O_NOFOLLOW | O_NONBLOCK); }
int GrantedPath::stat_flags() const { return free_ ? 0 : AT_SYMLINK_NOFOLLOW; }

FileDescriptor GrantedPath::open(int flags, unsigned mode) const {
  if (!is_open()) {
    errno = open_error_;
    return FileDescriptor();
  }
  return FileDescriptor(openat(folder(), name(), flags | open_flags(), mode));
}

}  // namespace slope
