// What the files of the C interface share: its handles, and the way of arguments and errors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "embed/engine_state.hpp"
#include "slope/slope.h"

struct slope_engine {
  slope::api::Engine engine;
  std::map<std::string, slope::api::Definition> defined;  // the last of each name, for its rules
};
struct slope_value {
  slope::api::Value value;
  slope::api::Value holder;  // of what slope_value_to gave
  std::string type, shown;
};
struct slope_function {
  std::shared_ptr<slope::api::detail::FunctionState> state;
  std::vector<slope::api::detail::Kind> parameters;
  slope::api::detail::Kind result = slope::api::detail::Kind::nothing;
  slope::api::Value holder;          // of the last result
  slope::api::Value tangent_holder;  // and of its tangent
};
struct slope_workspace {
  std::unique_ptr<slope::api::detail::WorkspaceState> state;
  std::vector<slope::api::detail::Kind> parameters;
  slope::api::detail::Kind result = slope::api::detail::Kind::nothing;
};
struct slope_error {
  slope::api::Error error;
};

namespace slope::api::c {

void give(slope_error** to, Error error);

// Runs it; what it throws, or the error of its result, goes to `error`.
template <class F>
auto guarded(slope_error** error, F&& f) noexcept -> decltype(f()) {
  try {
    return f();
  } catch (const std::exception& e) {
    try {
      give(error, detail::engine_error(e.what()));
    } catch (...) {
    }
  } catch (...) {
  }
  return {};
}

slope_value* handle(Result<Value> result, slope_error** error);
int refuse(slope_error** error, std::string message);  // 0
int answer(Result<void> result, slope_error** error);  // 1, or 0 with the error
const char* word(detail::Kind kind);                   // of signatures
bool parse_signature(std::string_view text, detail::Kind& result, std::vector<detail::Kind>& parameters,
                     std::string& why);
bool to_datum(const slope_argument& argument, detail::Datum& datum, std::string& why);
void from_datum(const detail::Datum& datum, slope_argument& result);
// What the signature says, of what the caller gave: integers do for numbers.
bool check_arguments(const std::vector<detail::Kind>& parameters, const slope_argument* arguments, std::size_t count,
                     detail::Datum* data, std::string& why);

}  // namespace slope::api::c
