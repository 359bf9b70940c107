#include "lang/runtime/capabilities.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "lang/runtime/granted_path.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope {

namespace {

namespace fs = std::filesystem;

// With links followed as far as the path exists. Empty: it cannot be told.
fs::path real_path(std::string_view path) {
  std::error_code failed;
  fs::path absolute = fs::absolute(fs::path(path), failed);
  if (failed) return {};
  fs::path real = fs::weakly_canonical(absolute, failed);
  return failed ? fs::path() : real;
}

bool is_within(const fs::path& path, const fs::path& folder) {
  auto part = path.begin();
  for (const fs::path& name : folder) {
    if (name.empty()) continue;  // after a last slash
    if (part == path.end() || *part != name) return false;
    ++part;
  }
  return true;
}

}  // namespace

bool find_granted(const Capabilities& capabilities, Capabilities::Access access, std::string_view path, bool follows,
                  std::string& root, std::string& found) {
  using Access = Capabilities::Access;
  const std::vector<std::string>& granted = access == Access::read    ? capabilities.read
                                            : access == Access::write ? capabilities.write
                                                                      : capabilities.include;
  if (granted.empty() || path.find('\0') != std::string_view::npos) return false;
  const fs::path last = fs::path(path).filename();
  const bool keeps = !follows && !last.empty() && last != "." && last != "..";
  const std::string parent = fs::path(path).parent_path().string();
  fs::path real = real_path(!keeps ? path : parent.empty() ? "." : std::string_view(parent));
  if (real.empty()) return false;
  if (keeps) real /= last;
  return std::any_of(granted.begin(), granted.end(), [&](const std::string& folder) {
    const fs::path allowed = real_path(folder);
    if (allowed.empty() || !is_within(real, allowed)) return false;
    root = allowed.string();
    found = real.string();
    return true;
  });
}

bool Capabilities::allows(Access access, std::string_view path) const {
  std::string root, real;
  return find_granted(*this, access, path, true, root, real);
}

bool may_access(Context& ctx, Capabilities::Access access, std::string_view path) {
  if (ctx.runtime->capabilities.allows(access, path)) return true;
  const bool writes = access == Capabilities::Access::write;
  return ctx.raise_error("not permitted: " + std::string(writes ? "writing" : "reading") + " \"" + std::string(path) +
                         "\"; the host of this script has not granted its folder (capability `" +
                         (writes                                 ? "write"
                          : access == Capabilities::Access::read ? "read"
                                                                 : "include") +
                         "`)");
}

bool may_use(Context& ctx, bool granted, std::string_view what, std::string_view capability) {
  return granted ||
         ctx.raise_error("not permitted: " + std::string(what) +
                         "; the host of this script has not granted it (capability `" + std::string(capability) + "`)");
}

}  // namespace slope
