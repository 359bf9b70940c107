// Standard streams, files, time. Output goes through Runtime::sink, so a host decides where it ends.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <sstream>
#include <vector>

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

bool file_read(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "read", args, count, result);
  std::string_view path;
  if (!call.string(0, path) || !may_access(ctx, Capabilities::Access::read, path)) return false;
  std::string name(path);
  struct stat info;
  errno = 0;
  if (::stat(name.c_str(), &info) != 0) return system_error(call, "opening file \"" + name + "\"");
  if (S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return system_error(call, "opening file \"" + name + "\"");
  }
  std::ifstream in(name, std::ios::binary);
  if (!in) return system_error(call, "opening file \"" + name + "\"");
  // In pieces: the host may want to stop it, and a device may have no end.
  std::string text;
  std::vector<char> piece(std::size_t{1} << 20);
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())), in.gcount() > 0) {
    if (ctx.interrupt.load(std::memory_order_relaxed)) return ctx.stop();
    text.append(piece.data(), static_cast<std::size_t>(in.gcount()));
  }
  return call.give(text);
}

// file_write(path, text, append)
bool file_write(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "write", args, count, result);
  std::string_view path, text;
  bool append = false;
  if (!call.string(0, path) || !call.string(1, text) || !call.boolean(2, append)) return false;
  if (!may_access(ctx, Capabilities::Access::write, path)) return false;
  errno = 0;
  std::ofstream out(std::string(path), append ? std::ios::binary | std::ios::app : std::ios::binary | std::ios::trunc);
  if (out) out.write(text.data(), static_cast<std::streamsize>(text.size())).flush();
  if (!out) return system_error(call, "opening file \"" + std::string(path) + "\"");
  return call.give_nothing();
}

// 0 nothing there, 1 file, 2 directory, 3 else
bool file_kind(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "isfile", args, count, result);
  std::string_view path;
  if (!call.string(0, path) || !may_access(ctx, Capabilities::Access::read, path)) return false;
  struct stat info;
  if (::stat(std::string(path).c_str(), &info) != 0) return call.give_int(0);
  return call.give_int(S_ISREG(info.st_mode) ? 1 : S_ISDIR(info.st_mode) ? 2 : 3);
}

bool file_remove(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "rm", args, count, result);
  std::string_view path;
  bool force = false;
  if (!call.string(0, path) || !call.boolean(1, force) || !may_access(ctx, Capabilities::Access::write, path))
    return false;
  errno = 0;
  if (std::remove(std::string(path).c_str()) != 0 && !(force && errno == ENOENT))
    return system_error(call, "unlink(\"" + std::string(path) + "\")");
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
