// A path that a script may use, held so that it cannot become another one between the check and the use.
//
// A check of names alone does not suffice: somebody may replace a folder by a link after it. So the path is resolved
// once, links followed, and tested; then its folder is opened component by component from the granted one, through no
// link, and what is done with the file is done relative to that descriptor, without following a link either. A link that
// has appeared in the meantime is an error (ELOOP, ENOTDIR). Where the host has granted "/", there is nothing to hold:
// the path is used as it is, devices and links of /proc included.
#pragma once

#include <string>
#include <string_view>

#include "lang/runtime/capabilities.hpp"

namespace slope {

// Whether the path is in one of the folders that are granted; then also that folder and the path, both real. `follows`:
// also where the path itself is a link.
bool find_granted(const Capabilities& capabilities, Capabilities::Access access, std::string_view path, bool follows,
                  std::string& granted, std::string& real);

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : number_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  FileDescriptor(const FileDescriptor&) = delete;

  explicit operator bool() const { return number_ >= 0; }
  int get() const { return number_; }
  int release();

 private:
  int number_ = -1;
};

enum class LastLink { follow, keep };  // where the path itself is a link: what it leads to, or the link

class GrantedPath {
 public:
  // False, with an error: not permitted. Whether the folder could be opened is known afterwards (is_open).
  bool find(Context& ctx, Capabilities::Access access, std::string_view path, LastLink last = LastLink::follow);
  // Makes the folders on the way that are missing. False, with errno.
  bool make_folders();

  bool is_open() const { return open_error_ == 0; }
  bool is_free() const { return free_; }                         // "/" is granted
  int open_error() const { return open_error_; }                 // errno; 0: none
  int folder() const { return free_ ? at_cwd : folder_.get(); }  // for openat(2) and its kin
  const char* name() const { return name_.c_str(); }  // in the folder; "." where it is the granted one itself
  // Of openat and fstatat, beside the others.
  int open_flags() const;
  int stat_flags() const;

  // Opens the file; none with errno. Nothing waits for the other end of a pipe.
  FileDescriptor open(int flags, unsigned mode = 0) const;

 private:
  static const int at_cwd;

  bool walk(bool make);

  std::string root_;     // real path of what is granted
  std::string between_;  // from there to the folder, without links
  std::string name_;
  FileDescriptor folder_;
  int open_error_ = 0;
  bool free_ = false;
};

}  // namespace slope
