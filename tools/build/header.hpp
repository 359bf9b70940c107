// The C header of an object that `slope build` makes, and the file for CMake.
#pragma once

#include <string>
#include <vector>

#include "tools/build/exports.hpp"

namespace slope::api::tools::ahead {

struct HeaderFunction {
  const CFunction* function = nullptr;
  const Export* of = nullptr;
  std::vector<bool> written;  // by array
  bool takes_memory = false;
  bool tells_memory = false;
};

std::string header_text(const std::string& name, const std::string& script, const std::string& triple,
                        const std::vector<HeaderFunction>& functions, const BuiltinTypes& types);
// `object`: name of the file beside it.
std::string cmake_text(const std::string& name, const std::string& object, const std::vector<std::string>& symbols);

}  // namespace slope::api::tools::ahead
