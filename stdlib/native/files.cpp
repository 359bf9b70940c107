// Files as such: sizes, folders, renaming. What is in them: io.cpp.
#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

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

bool file_size(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "filesize", args, count, result);
  std::string_view path;
  if (!call.arity(1) || !call.string(0, path) || !may_access(ctx, Capabilities::Access::read, path)) return false;
  std::error_code error;
  auto size = fs::file_size(path, error);
  return call.give_int(error ? 0 : static_cast<std::int64_t>(size));
}

// The names in a folder, sorted, one a line: names hold no line ends that a script could tell apart.
bool directory_list(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "readdir", args, count, result);
  std::string_view path;
  if (!call.arity(1) || !call.string(0, path) || !may_access(ctx, Capabilities::Access::read, path)) return false;
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  if (error) return failure(call, "unable to read directory " + std::string(path), error);
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  return call.give(text);
}

// directory_make(path, parents)
bool directory_make(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "mkdir", args, count, result);
  std::string_view path;
  bool parents = false;
  if (!call.arity(2) || !call.string(0, path) || !call.boolean(1, parents)) return false;
  if (!may_access(ctx, Capabilities::Access::write, path)) return false;
  std::error_code error;
  bool made = parents ? fs::create_directories(path, error) : fs::create_directory(path, error);
  if (!error && !made && !parents) error = std::make_error_code(std::errc::file_exists);
  if (error) return failure(call, "mkdir(\"" + std::string(path) + "\")", error);
  return call.give_nothing();
}

// directory_remove(path): with all that is in it
bool directory_remove(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "rm", args, count, result);
  std::string_view path;
  if (!call.arity(1) || !call.string(0, path) || !may_access(ctx, Capabilities::Access::write, path)) return false;
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return failure(call, "rm(\"" + std::string(path) + "\")", error);
  return call.give_nothing();
}

// file_move(from, to), file_copy(from, to)
bool file_move(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "mv", args, count, result);
  std::string_view from, to;
  if (!call.arity(2) || !call.string(0, from) || !call.string(1, to)) return false;
  if (!may_access(ctx, Capabilities::Access::write, from) || !may_access(ctx, Capabilities::Access::write, to))
    return false;
  std::error_code error;
  fs::rename(from, to, error);
  if (error) return failure(call, "rename(\"" + std::string(from) + "\")", error);
  return call.give_nothing();
}

bool file_copy(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "cp", args, count, result);
  std::string_view from, to;
  if (!call.arity(2) || !call.string(0, from) || !call.string(1, to)) return false;
  if (!may_access(ctx, Capabilities::Access::read, from) || !may_access(ctx, Capabilities::Access::write, to))
    return false;
  std::error_code error;
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::overwrite_existing, error);
  if (error) return failure(call, "copy(\"" + std::string(from) + "\")", error);
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

const NativeInfo files_natives[] = {
    {"file_size", file_size, effect_all, returns_int},
    {"directory_list", directory_list, effect_all, returns_string},
    {"directory_make", directory_make, effect_all, returns_nothing},
    {"directory_remove", directory_remove, effect_all, returns_nothing},
    {"file_move", file_move, effect_all, returns_nothing},
    {"file_copy", file_copy, effect_all, returns_nothing},
    {"working_directory", working_directory, effect_all, returns_string},
};

}  // namespace

void define_file_natives(Runtime& runtime) { define_all(runtime, files_natives); }

}  // namespace slope::stdlib
