// A C++ function as scripts see it: the native that stands for it.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lang/runtime/method.hpp"
#include "slope/host_function.hpp"

namespace slope::api::detail {

class EngineState;

struct DefinedHost {
  DefinedHost(EngineState& engine, std::size_t number, std::unique_ptr<HostFunction> function);
  DefinedHost(const DefinedHost&) = delete;

  const std::unique_ptr<HostFunction> function;
  std::string title;  // for messages: "the host's function `spline`"
  NativeInfo info{};
  std::vector<std::string> objects;  // the names of parameters' types, then of the result's, that are types of the host
  bool unknown_type = false;         // one of them is not a type of this engine

 private:
  std::string name_;
  WordCode code_;  // of one that is called with words
};

// What code of the host threw is the script's error from here on; `message` may be empty. False.
bool raise_host_exception(Context& ctx, const std::string& message, const std::exception_ptr& cause);

bool is_identifier(std::string_view name);  // and no word of the language

// What the title of a rule begins with.
inline constexpr std::string_view rule_of = "the derivative of ";
// Gives its number.
std::size_t add_host_function(EngineState& engine, std::unique_ptr<HostFunction> function, std::string title);

}  // namespace slope::api::detail
