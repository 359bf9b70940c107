#include "lang/ir/passes/checked.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace slope::ir {

namespace {

constexpr std::size_t most_insts = 20'000;

bool wanted() {
  if (const char* setting = std::getenv("SLOPE_VERIFY")) return std::strcmp(setting, "0") != 0;
#ifdef NDEBUG
  return false;
#else
  return true;
#endif
}

}  // namespace

bool verifies_passes() {
  static const bool on = wanted();
  return on;
}

void check_after(const Function& function, const char* pass, Typing typing) {
  if (!verifies_passes() || function.insts.size() > most_insts) return;
  const std::string fault = verify(function, typing);
  if (fault.empty()) return;
  std::fprintf(stderr, "internal error: after %s, `%s` is malformed: %s\n%s\n", pass, function.name.c_str(),
               fault.c_str(), print(function).c_str());
  std::abort();
}

}  // namespace slope::ir
