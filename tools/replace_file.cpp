// A file of a user is replaced as a whole: what is written goes beside it and takes its name when all of it is on the
// disk. A full disk, a limit of its size or a signal in between leaves the old one as it was.
#include "tools/replace_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace slope::api::tools {

namespace {

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

std::string replace_file(const std::string& path, std::string_view text) {
  struct stat info {};
  const bool exists = stat(path.c_str(), &info) == 0;
  const auto failed = [&] { return "cannot write " + path + ": " + std::strerror(errno); };
  if (exists && !S_ISREG(info.st_mode)) {  // a device or a pipe has no old contents
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    const bool whole = file >= 0 && write_all(file, text);
    const std::string why = whole ? "" : failed();
    if (file >= 0) close(file);
    return why;
  }
  if (exists && access(path.c_str(), W_OK) != 0) return failed();
  std::error_code error;
  const std::filesystem::path real = exists ? std::filesystem::canonical(path, error) : std::filesystem::path(path);
  if (error) return "cannot write " + path + ": " + error.message();
  const std::string beside = real.string() + ".part" + std::to_string(getpid());
  const int file = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return failed();
  const bool whole = (!exists || fchmod(file, info.st_mode & 07777) == 0) && write_all(file, text) && fsync(file) == 0;
  std::string why = whole ? "" : failed();
  if (close(file) != 0 && why.empty()) why = failed();
  if (why.empty() && std::rename(beside.c_str(), real.c_str()) != 0) why = failed();
  if (!why.empty()) unlink(beside.c_str());
  return why;
}

}  // namespace slope::api::tools
