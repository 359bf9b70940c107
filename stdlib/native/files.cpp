// Files as such: sizes, folders, renaming. What is in them: io.cpp.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "lang/runtime/granted_path.hpp"
#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"

namespace slope::stdlib {

namespace {

namespace fs = std::filesystem;

// SystemError(what, code)
bool failure(Call& call, const std::string& what, const std::error_code& error) {
  errno = error.value();
  return system_error(call, what);
}

// Of what a granted path names; false with errno.
bool state_of(const GrantedPath& place, struct stat& info, int flags = 0) {
  if (place.is_open()) return fstatat(place.folder(), place.name(), &info, place.stat_flags() | flags) == 0;
  errno = place.open_error();
  return false;
}

bool file_size(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "filesize", args, count, result);
  std::string_view path;
  GrantedPath place;
  if (!call.arity(1) || !call.string(0, path) || !place.find(ctx, Capabilities::Access::read, path)) return false;
  struct stat info;
  return call.give_int(state_of(place, info) && S_ISREG(info.st_mode) ? static_cast<std::int64_t>(info.st_size) : 0);
}

// file_status(path, follow): size, mode, and the nanoseconds of its last change and of that of its status; zeros: there
// is none. Of a link what it leads to, or (`follow` is false) of the link.
bool file_status(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "stat", args, count, result);
  std::string_view path;
  bool follows = true;
  GrantedPath place;
  if (!call.arity(2) || !call.string(0, path) || !call.boolean(1, follows) ||
      !place.find(ctx, Capabilities::Access::read, path, follows ? LastLink::follow : LastLink::keep))
    return false;
  struct stat info {};
  if (!state_of(place, info, follows ? 0 : AT_SYMLINK_NOFOLLOW)) info = {};
  const auto nanoseconds = [](const timespec& at) {
    return static_cast<std::int64_t>(at.tv_sec) * 1'000'000'000 + at.tv_nsec;
  };
  const Value parts[] = {call.runtime.from_int(static_cast<std::int64_t>(info.st_size)),
                         call.runtime.from_int(static_cast<std::int64_t>(info.st_mode)),
                         call.runtime.from_int(nanoseconds(info.st_mtim)),
                         call.runtime.from_int(nanoseconds(info.st_ctim))};
  return call.runtime.new_tuple(ctx, parts, std::size(parts), result);
}

// A folder whose names are read; none with errno.
class Folder {
 public:
  explicit Folder(FileDescriptor file) {
    const int number = file.release();
    if (number < 0) return;
    stream_ = fdopendir(number);
    if (!stream_) close(number);
  }
  ~Folder() {
    if (stream_) closedir(stream_);
  }
  Folder(const Folder&) = delete;

  explicit operator bool() const { return stream_ != nullptr; }
  int file() const { return dirfd(stream_); }
  // All but "." and "..".
  std::vector<std::string> names() {
    std::vector<std::string> found;
    while (const dirent* entry = readdir(stream_))
      if (std::string name = entry->d_name; name != "." && name != "..") found.push_back(std::move(name));
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  DIR* stream_ = nullptr;
};

constexpr int opens_folder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// The names in a folder, sorted, one a line: names hold no line ends that a script could tell apart.
bool directory_list(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "readdir", args, count, result);
  std::string_view path;
  GrantedPath place;
  if (!call.arity(1) || !call.string(0, path) || !place.find(ctx, Capabilities::Access::read, path)) return false;
  Folder folder(place.open(O_RDONLY | O_DIRECTORY));
  if (!folder) return system_error(call, "unable to read directory " + std::string(path));
  std::string text;
  for (const std::string& name : folder.names()) text += name + "\n";
  return call.give(text);
}

// directory_make(path, parents)
bool directory_make(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "mkdir", args, count, result);
  std::string_view path;
  bool parents = false;
  GrantedPath place;
  if (!call.arity(2) || !call.string(0, path) || !call.boolean(1, parents)) return false;
  if (!place.find(ctx, Capabilities::Access::write, path)) return false;
  const auto failed = [&] { return system_error(call, "mkdir(\"" + std::string(path) + "\")"); };
  if (parents && place.is_free()) {
    std::error_code error;
    fs::create_directories(path, error);
    errno = error.value();
    return error ? failed() : call.give_nothing();
  }
  if (parents) place.make_folders();
  errno = place.open_error();
  if (!place.is_open()) return failed();
  struct stat info;
  if (mkdirat(place.folder(), place.name(), 0777) != 0 &&
      !(parents && errno == EEXIST && state_of(place, info) && S_ISDIR(info.st_mode)))
    return failed();
  return call.give_nothing();
}

// Nested folders; false with errno. `depth` bounds the descriptors that are open at a time.
constexpr int deepest_folder = 500;

bool remove_all(int folder, const char* name, int depth = 0) {
  if (unlinkat(folder, name, 0) == 0) return true;
  if (errno != EISDIR && errno != EPERM) return false;
  if (depth == deepest_folder) {
    errno = ENAMETOOLONG;
    return false;
  }
  {
    Folder inner(FileDescriptor(openat(folder, name, opens_folder)));
    if (!inner) return false;
    for (const std::string& each : inner.names())
      if (!remove_all(inner.file(), each.c_str(), depth + 1)) return false;
  }
  return unlinkat(folder, name, AT_REMOVEDIR) == 0;
}

bool copy_file(int from, int to, const std::atomic<std::uint32_t>& interrupt) {
  std::vector<char> piece(std::size_t{1} << 20);
  for (;;) {
    if (interrupt.load(std::memory_order_relaxed)) return errno = EINTR, false;
    const ssize_t n = read(from, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0;
    for (ssize_t done = 0; done < n;) {
      const ssize_t written = write(to, piece.data() + done, static_cast<std::size_t>(n - done));
      if (written < 0 && errno != EINTR) return false;
      done += std::max<ssize_t>(written, 0);
    }
  }
}

// As a whole: on a full disk, what was there stays. What is no file, as a device, and what is in a folder where none can be
// made, is written in place.
bool copy_to(int from, int to, const char* name, mode_t mode, const std::atomic<std::uint32_t>& interrupt) {
  constexpr int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  struct stat before;
  const bool exists = fstatat(to, name, &before, AT_SYMLINK_NOFOLLOW) == 0;
  if (!exists || S_ISREG(before.st_mode)) {
    const std::string beside = std::string(name) + ".part-" + std::to_string(getpid());
    if (const FileDescriptor made(openat(to, beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | flags, mode & 0777)); made) {
      if (copy_file(from, made.get(), interrupt) && renameat(to, beside.c_str(), to, name) == 0) return true;
      const int error = errno;
      unlinkat(to, beside.c_str(), 0);
      errno = error;
      return false;
    }
    if (!exists) return false;
  }
  const FileDescriptor made(openat(to, name, O_WRONLY | O_TRUNC | flags));
  return made && copy_file(from, made.get(), interrupt);
}

// Files, folders with what is in them, links as links. Neither a file that is copied nor one that is written is reached
// through a link.
bool copy_all(int from, const char* name, int to, const char* new_name, const std::atomic<std::uint32_t>& interrupt,
              int depth = 0) {
  struct stat info;
  if (fstatat(from, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (depth == deepest_folder) return errno = ENAMETOOLONG, false;
  if (S_ISLNK(info.st_mode)) {
    char target[4096];
    const ssize_t size = readlinkat(from, name, target, sizeof target - 1);
    if (size < 0) return false;
    target[size] = 0;
    return symlinkat(target, to, new_name) == 0;
  }
  if (S_ISDIR(info.st_mode)) {
    Folder source(FileDescriptor(openat(from, name, opens_folder)));
    if (!source) return false;
    const std::vector<std::string> names = source.names();  // before the copy is made, perhaps in this folder
    if (mkdirat(to, new_name, 0777) != 0 && errno != EEXIST) return false;
    const FileDescriptor made(openat(to, new_name, opens_folder));
    if (!made) return false;
    for (const std::string& each : names)
      if (!copy_all(source.file(), each.c_str(), made.get(), each.c_str(), interrupt, depth + 1)) return false;
    return true;
  }
  if (!S_ISREG(info.st_mode)) return errno = EINVAL, false;
  constexpr int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const FileDescriptor source(openat(from, name, O_RDONLY | flags));
  if (!source) return false;
  return copy_to(source.get(), to, new_name, info.st_mode, interrupt);
}

// directory_remove(path): with all that is in it
bool directory_remove(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "rm", args, count, result);
  std::string_view path;
  GrantedPath place;
  if (!call.arity(1) || !call.string(0, path) || !place.find(ctx, Capabilities::Access::write, path, LastLink::keep))
    return false;
  errno = place.open_error();
  if (!place.is_open() || !remove_all(place.folder(), place.name()))
    return system_error(call, "rm(\"" + std::string(path) + "\")");
  return call.give_nothing();
}

// file_move(from, to), file_copy(from, to)
bool file_move(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "mv", args, count, result);
  std::string_view from, to;
  GrantedPath source, target;
  if (!call.arity(2) || !call.string(0, from) || !call.string(1, to)) return false;
  if (!source.find(ctx, Capabilities::Access::write, from, LastLink::keep) ||
      !target.find(ctx, Capabilities::Access::write, to, LastLink::keep))
    return false;
  errno = source.is_open() ? target.open_error() : source.open_error();
  if (errno != 0 || renameat(source.folder(), source.name(), target.folder(), target.name()) != 0)
    return system_error(call, "rename(\"" + std::string(from) + "\")");
  return call.give_nothing();
}

bool file_copy(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "cp", args, count, result);
  std::string_view from, to;
  GrantedPath source, target;
  if (!call.arity(2) || !call.string(0, from) || !call.string(1, to)) return false;
  if (!source.find(ctx, Capabilities::Access::read, from) || !target.find(ctx, Capabilities::Access::write, to))
    return false;
  if (source.is_free() && target.is_free()) {
    const std::string source_path(from), target_path(to);
    std::error_code error;
    if (fs::is_regular_file(source_path, error) && !fs::is_directory(target_path, error)) {
      struct stat info;
      const FileDescriptor file(open(source_path.c_str(), O_RDONLY | O_CLOEXEC));
      if (file && fstat(file.get(), &info) == 0 &&
          copy_to(file.get(), AT_FDCWD, target_path.c_str(), info.st_mode, ctx.interrupt))
        return call.give_nothing();
      if (ctx.interrupt.load(std::memory_order_relaxed)) return ctx.stop();
      return system_error(call, "copy(\"" + source_path + "\")");
    }
    error.clear();
    fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::overwrite_existing, error);
    if (error) return failure(call, "copy(\"" + std::string(from) + "\")", error);
    return call.give_nothing();
  }
  errno = source.is_open() ? target.open_error() : source.open_error();
  if (errno != 0 || !copy_all(source.folder(), source.name(), target.folder(), target.name(), ctx.interrupt)) {
    if (ctx.interrupt.load(std::memory_order_relaxed)) return ctx.stop();
    return system_error(call, "copy(\"" + std::string(from) + "\")");
  }
  return call.give_nothing();
}

bool working_directory(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "pwd", args, count, result);
  // The refusal does not name the folder: that is what the script may not know.
  if (!call.arity(0) || !may_access(ctx, Capabilities::Access::read, ".")) return false;
  std::error_code error;
  std::string path = fs::current_path(error).string();
  if (error) return failure(call, "pwd()", error);
  return call.give(path);
}

// change_directory(path): only where scripts may read all files, because it is the host's folder, too.
bool change_directory(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "cd", args, count, result);
  std::string_view path;
  GrantedPath place;
  if (!call.arity(1) || !call.string(0, path) || !place.find(ctx, Capabilities::Access::read, path)) return false;
  if (!place.is_free()) return ctx.raise_error("cd: the folder belongs to the host");
  if (chdir(std::string(path).c_str()) != 0) return system_error(call, "cd(\"" + std::string(path) + "\")");
  return call.give_nothing();
}

const NativeInfo files_natives[] = {
    {"file_size", file_size, effect_all, returns_int},
    {"file_status", file_status, effect_all, nullptr},
    {"directory_list", directory_list, effect_all, returns_string},
    {"directory_make", directory_make, effect_all, returns_nothing},
    {"directory_remove", directory_remove, effect_all, returns_nothing},
    {"file_move", file_move, effect_all, returns_nothing},
    {"file_copy", file_copy, effect_all, returns_nothing},
    {"change_directory", change_directory, effect_all, returns_nothing},
    {"working_directory", working_directory, effect_all, returns_string},
};

}  // namespace

void define_file_natives(Runtime& runtime) { define_all(runtime, files_natives); }

}  // namespace slope::stdlib
