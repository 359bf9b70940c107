// Standard streams, files, time. Output goes through Runtime::sink, so a host decides where it ends.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <sstream>
#include <vector>

#include "lang/runtime/granted_path.hpp"
#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"

namespace slope::stdlib {

bool system_error(Call& call, const std::string& what) {
  Runtime& runtime = call.runtime;
  int number = errno;
  Value text = runtime.from_string(what);
  if (!text.defined()) return call.ctx.out_of_memory();
  Value fields[] = {text, Value(call.builtin.int32, std::int64_t{static_cast<std::uint32_t>(number)}),
                    runtime.nothing()};
  Value made;
  if (!runtime.new_object(call.ctx, call.builtin.system_error, fields, 3, made)) return false;
  return call.ctx.raise(made);
}

namespace {

// standard_write(1 or 2, s)
bool standard_write(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "write", args, count, result);
  std::int64_t stream = 0;
  std::string_view s;
  if (!call.integer(0, stream) || !call.string(1, s)) return false;
  if (stream != 1 && stream != 2) return ctx.argument_error("this stream is not writable");
  const auto& sink = stream == 1 ? call.runtime.sink.out : call.runtime.sink.err;
  if (sink && !s.empty()) sink(s);
  return !ctx.failed() && call.give_nothing();  // the sink may raise
}

// What a script writes while it is captured: standard_capture(stream) begins, standard_captured(stream) ends and returns
// the text. The sink that was there waits inside the one that captures.
constexpr std::size_t longest_capture = std::size_t{64} << 20;
struct Capture {
  std::function<void(std::string_view)> before;
  std::shared_ptr<std::string> text;
  void operator()(std::string_view s) const {
    if (text->size() + s.size() <= longest_capture) text->append(s);
  }
};

std::function<void(std::string_view)>* standard_sink(Call& call) {
  std::int64_t stream = 0;
  if (!call.integer(0, stream)) return nullptr;
  if (stream == 1) return &call.runtime.sink.out;
  if (stream == 2) return &call.runtime.sink.err;
  call.ctx.argument_error("this stream is not writable");
  return nullptr;
}

bool standard_capture(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "redirect", args, count, result);
  auto* sink = standard_sink(call);
  if (sink == nullptr) return false;
  *sink = Capture{*sink, std::make_shared<std::string>()};
  return call.give_nothing();
}

bool standard_captured(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "redirect", args, count, result);
  auto* sink = standard_sink(call);
  if (sink == nullptr) return false;
  Capture* capture = sink->target<Capture>();
  if (capture == nullptr) return ctx.argument_error("this stream is not captured");
  const std::shared_ptr<std::string> text = capture->text;
  auto before = capture->before;
  *sink = std::move(before);
  return call.give(std::string_view(*text));
}

// An empty text asks the sink to write out what it holds (slope/options.hpp).
void flush_standard_output(Runtime& runtime) {
  if (runtime.sink.out) runtime.sink.out({});
}

bool standard_flush(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "flush", args, count, result);
  std::int64_t stream = 0;
  if (!call.integer(0, stream)) return false;
  if (stream == 1) flush_standard_output(call.runtime);
  return !ctx.failed() && call.give_nothing();
}

// A line with its end; "" at the end of input.
bool standard_read_line(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "readline", args, count, result);
  if (!call.arity(0) || !may_use(ctx, call.runtime.capabilities.input, "reading standard input", "input")) return false;
  flush_standard_output(call.runtime);
  if (ctx.failed()) return false;
  std::string line;
  for (int c; (c = std::getc(stdin)) != EOF;) {
    line += static_cast<char>(c);
    if (c == '\n') break;
  }
  return call.give(line);
}

bool standard_eof(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "eof", args, count, result);
  if (!call.arity(0) || !may_use(ctx, call.runtime.capabilities.input, "reading standard input", "input")) return false;
  flush_standard_output(call.runtime);
  if (ctx.failed()) return false;
  int c = std::getc(stdin);
  if (c != EOF) std::ungetc(c, stdin);
  return call.give_bool(c == EOF);
}

bool system_error_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "system_error_text", args, count, result);
  std::int64_t number = 0;
  return call.integer(0, number) && call.give(std::strerror(static_cast<int>(number)));
}

// What is left of a file, in pieces: the host may want to stop it, and a device may have no end. False: the error is
// pending.
class FileReader {
 public:
  FileReader(Call& call, int file, std::string_view path) : call_(call), file_(file), path_(path) {}
  bool failed() const { return system_error(call_, "opening file \"" + std::string(path_) + "\""); }
  // Up to `size` bytes.
  bool into(char* to, std::size_t size, std::size_t& filled) {
    while (filled < size && !is_through_) {
      if (call_.ctx.interrupt.load(std::memory_order_relaxed)) return call_.ctx.stop();
      const ssize_t n = ::read(file_, to + filled, std::min(size - filled, bytes_of_a_piece));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failed();
      is_through_ = n == 0;
      filled += static_cast<std::size_t>(n);
    }
    return true;
  }
  bool behind(std::string& text) {
    CountedBytes counted;
    std::vector<char> piece(bytes_of_a_piece);
    while (!is_through_) {
      std::size_t filled = 0;
      if (!into(piece.data(), piece.size(), filled)) return false;
      text.append(piece.data(), filled);
      counted.add(call_.runtime.outside_heap, filled);
    }
    return true;
  }

 private:
  static constexpr std::size_t bytes_of_a_piece = std::size_t{1} << 20;
  Call& call_;
  int file_;
  std::string_view path_;
  bool is_through_ = false;
};

// Room for a text or for a vector of bytes; undefined: memory is at an end.
struct Room {
  Value value;
  char* bytes = nullptr;
};
Room room_for(Call& call, std::size_t size, bool as_vector) {
  if (as_vector) {
    const std::int64_t dims[] = {static_cast<std::int64_t>(size)};
    const DataType* type = call.runtime.types.array_of(call.builtin.uint8, 1);
    ArrayObject* a = call.ctx.heap->allocate_array(type, dims);
    return a ? Room{Value(type, static_cast<const void*>(a)), a->data} : Room{};
  }
  StringObject* text = call.ctx.heap->allocate_string_uninitialized(size);
  return text ? Room{Value(call.builtin.string, static_cast<const void*>(text)), text->bytes} : Room{};
}

// A file that has as many bytes as it says is read to where it stays; others are copied.
bool read_whole(Call& call, bool as_vector) {
  Context& ctx = call.ctx;
  std::string_view path;
  GrantedPath place;
  if (!call.string(0, path) || !place.find(ctx, Capabilities::Access::read, path)) return false;
  const FileDescriptor file = place.open(O_RDONLY);
  FileReader reader(call, file.get(), path);
  struct stat info;
  if (!file || fstat(file.get(), &info) != 0) return reader.failed();
  if (S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return reader.failed();
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  std::string text;
  if (S_ISREG(info.st_mode) && size > 0) {
    const Room whole = room_for(call, size, as_vector);
    if (!whole.value.defined()) return ctx.out_of_memory();
    char next = 0;
    std::size_t filled = 0, more = 0;
    if (!reader.into(whole.bytes, size, filled) || !reader.into(&next, 1, more)) return false;
    if (filled == size && more == 0) return call.give(whole.value);
    text.assign(whole.bytes, filled).append(&next, more);  // somebody writes to it
  }
  if (!reader.behind(text)) return false;
  const Room copy = room_for(call, text.size(), as_vector);
  if (copy.value.defined()) text.copy(copy.bytes, text.size());
  return call.give(copy.value);
}
bool file_read(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "read", args, count, result);
  return read_whole(call, false);
}
bool file_bytes(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "read", args, count, result);
  return read_whole(call, true);
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

// With errno when it fails, after `undo`.
template <class Undo>
bool write_or(const FileDescriptor& file, std::string_view text, Undo undo) {
  if (write_all(file.get(), text)) return true;
  const int error = errno;
  undo();
  errno = error;
  return false;
}

// What is there is kept when the new text cannot be written: a text that replaces a file is written beside it first.
bool replace_file(const GrantedPath& place, const struct stat& before, std::string_view text, bool& done) {
  const std::string beside = std::string(place.name()) + ".part-" + std::to_string(getpid());
  const FileDescriptor file(
      openat(place.folder(), beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  done = bool(file) && fchmod(file.get(), before.st_mode & 07777) == 0;
  const auto drop = [&] { unlinkat(place.folder(), beside.c_str(), 0); };
  if (!done) {
    if (file) drop();
    return false;
  }
  if (!write_or(file, text, drop)) return false;
  if (renameat(place.folder(), beside.c_str(), place.folder(), place.name()) == 0) return true;
  const int error = errno;
  drop();
  errno = error;
  return false;
}

bool write_file(const GrantedPath& place, std::string_view text, bool append) {
  if (!place.is_open()) {
    errno = place.open_error();
    return false;
  }
  struct stat before;
  const bool exists = fstatat(place.folder(), place.name(), &before, AT_SYMLINK_NOFOLLOW) == 0;
  if (exists && !append && !text.empty() && S_ISREG(before.st_mode) && before.st_nlink == 1 &&
      before.st_uid == geteuid() && faccessat(place.folder(), place.name(), W_OK, 0) == 0) {
    bool done = false;
    const bool replaced = replace_file(place, before, text, done);
    if (done) return replaced;
    // No file can be made in this folder: in place.
  }
  const FileDescriptor file = place.open(O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC), 0666);
  struct stat opened;
  if (!file || fstat(file.get(), &opened) != 0) return false;
  return write_or(file, text, [&] {
    if (!exists)
      unlinkat(place.folder(), place.name(), 0);
    else if (append && S_ISREG(opened.st_mode) && ftruncate(file.get(), opened.st_size) != 0)
      errno = 0;  // the caller reports the first error
  });
}

// file_write(path, text, append)
bool file_write(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "write", args, count, result);
  std::string_view path, text;
  bool append = false;
  GrantedPath place;
  if (!call.string(0, path) || !call.string(1, text) || !call.boolean(2, append)) return false;
  if (!place.find(ctx, Capabilities::Access::write, path)) return false;
  if (!write_file(place, text, append)) return system_error(call, "opening file \"" + std::string(path) + "\"");
  return call.give_nothing();
}

// 0 nothing there, 1 file, 2 directory, 3 else
bool file_kind(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "isfile", args, count, result);
  std::string_view path;
  GrantedPath place;
  if (!call.string(0, path) || !place.find(ctx, Capabilities::Access::read, path)) return false;
  struct stat info;
  if (!place.is_open() || fstatat(place.folder(), place.name(), &info, place.stat_flags()) != 0 ||
      S_ISLNK(info.st_mode))
    return call.give_int(0);
  return call.give_int(S_ISREG(info.st_mode) ? 1 : S_ISDIR(info.st_mode) ? 2 : 3);
}

bool file_remove(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "rm", args, count, result);
  std::string_view path;
  bool force = false;
  GrantedPath place;
  if (!call.string(0, path) || !call.boolean(1, force) ||
      !place.find(ctx, Capabilities::Access::write, path, LastLink::keep))
    return false;
  errno = place.open_error();
  const auto removed = [&] {
    if (!place.is_open()) return false;
    if (unlinkat(place.folder(), place.name(), 0) == 0) return true;
    return (errno == EISDIR || errno == EPERM) && unlinkat(place.folder(), place.name(), AT_REMOVEDIR) == 0;
  };
  if (!removed() && !(force && errno == ENOENT)) return system_error(call, "unlink(\"" + std::string(path) + "\")");
  return call.give_nothing();
}

bool clock_seconds(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "time", args, count, result);
  if (!may_use(ctx, call.runtime.capabilities.time, "reading the clock", "time")) return false;
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return call.give_float(std::chrono::duration<double>(now).count());
}

bool clock_nanoseconds(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "time_ns", args, count, result);
  if (!may_use(ctx, call.runtime.capabilities.time, "reading the clock", "time")) return false;
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return call.give(
      Value(call.builtin.uint64, std::int64_t{std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()}));
}

// "NAME=value" of all variables, each followed by a 0.
bool environment_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "ENV", args, count, result);
  if (!call.arity(0)) return false;
  std::string text;
  if (call.runtime.capabilities.environment)
    for (char** entry = environ; entry && *entry; ++entry) text.append(*entry).push_back('\0');
  return call.give(text);
}

bool random_seed(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "random_seed", args, count, result);
  // Without the capability every run draws the same numbers.
  if (!call.runtime.capabilities.random) return call.give_int(0x5106e);
  std::random_device device;
  std::uint64_t high = device();
  return call.give_int(static_cast<std::int64_t>(high << 32 | device()));
}

// heap_count(k): bytes allocated ever 1, allocations 2, collections 3, nanoseconds collecting 4, slices 5, nanoseconds of
// the longest pause 6. A number each, so that asking allocates nothing.
bool heap_count(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "heap_count", args, count, result);
  std::int64_t which = 0;
  if (!call.integer(0, which)) return false;
  const HeapStatistics& s = call.runtime.heap.statistics();
  const std::uint64_t counts[] = {s.allocated_bytes,        s.allocations, s.collections,
                                  s.collection_nanoseconds, s.slices,      s.longest_nanoseconds};
  if (which < 1 || which > 6) return ctx.argument_error("the heap has no count " + std::to_string(which));
  if ((which == 4 || which == 6) && !may_use(ctx, call.runtime.capabilities.time, "reading the clock", "time"))
    return false;
  return call.give_int(static_cast<std::int64_t>(counts[which - 1]));
}

bool heap_collect(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "gc", args, count, result);
  if (call.runtime.heap.collects()) call.runtime.heap.collect();
  return call.give_nothing();
}

// What a slice does: for about a millisecond.
bool heap_collect_some(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "gc", args, count, result);
  call.runtime.heap.collect_for(std::chrono::milliseconds(1));
  return call.give_nothing();
}

bool heap_enable(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "gc_enable", args, count, result);
  bool on = true;
  if (!call.boolean(0, on)) return false;
  return call.give_bool(call.runtime.heap.enable_collections(on));
}

const Type* returns_uint(TypeTable& t, ArgumentTypes) { return t.builtin().uint64; }

const NativeInfo io_natives[] = {
    {"standard_write", standard_write, effect_all, returns_nothing},
    {"standard_flush", standard_flush, effect_all, returns_nothing},
    {"standard_capture", standard_capture, effect_all, returns_nothing},
    {"standard_captured", standard_captured, effect_all, returns_string},
    {"standard_read_line", standard_read_line, effect_all, returns_string},
    {"standard_eof", standard_eof, effect_all, returns_bool},
    {"system_error_text", system_error_text, effect_makes, returns_string},
    {"file_read", file_read, effect_all, returns_string},
    {"file_bytes", file_bytes, effect_all, returns_bytes},
    {"file_write", file_write, effect_all, returns_nothing},
    {"file_kind", file_kind, effect_all, returns_int},
    {"file_remove", file_remove, effect_all, returns_nothing},
    {"clock_seconds", clock_seconds, effect_all, returns_float},
    {"clock_nanoseconds", clock_nanoseconds, effect_all, returns_uint},
    {"environment_text", environment_text, effect_all, returns_string},
    {"random_seed", random_seed, effect_all, returns_int},
    {"heap_count", heap_count, effect_all, returns_int},
    {"heap_collect", heap_collect, effect_all, returns_nothing},
    {"heap_collect_some", heap_collect_some, effect_all, returns_nothing},
    {"heap_enable", heap_enable, effect_all, returns_bool},
};

}  // namespace

void define_io_natives(Runtime& runtime) { define_all(runtime, io_natives); }

}  // namespace slope::stdlib
