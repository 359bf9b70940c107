// What the files of the C interface share: its handles, and the way of arguments and errors.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "embed/engine_state.hpp"
#include "slope/slope.h"

struct slope_type {
  slope::api::detail::TypeKey key;  // its address is the type
  slope_engine* engine;
  std::string name;
};
struct slope_engine {
  using Types = std::map<std::string, std::unique_ptr<slope_type>>;
  std::shared_ptr<Types> types = std::make_shared<Types>();  // the engine's too, whose objects know them
  slope::api::Engine engine;
  std::map<std::string, slope::api::Definition> defined = {};  // the last of each name, for its rules
};
struct slope_value {
  slope::api::Value value;
  slope::api::Value holder;  // of what slope_value_to gave
  std::string type, shown;
  slope_view view;
};
struct slope_function {
  std::shared_ptr<slope::api::detail::FunctionState> state;
  std::vector<slope::api::detail::Kind> parameters;
  slope::api::detail::Kind result = slope::api::detail::Kind::nothing;
  slope::api::Value holder;          // of the last result
  slope::api::Value tangent_holder;  // and of its tangent
  slope_view view, tangent_view;     // of results that are arrays
};
namespace slope::api::c {
// The arguments of a call.
struct Given {
  detail::Datum data[detail::most_arguments + 1];
  std::array<std::size_t, 2 * SLOPE_MOST_DIMENSIONS> extents[detail::most_arguments];
};
}  // namespace slope::api::c
struct slope_pullback {
  std::unique_ptr<slope::api::detail::PullbackState> state;
  std::vector<slope::api::detail::Kind> parameters;
  slope::api::detail::Kind result = slope::api::detail::Kind::nothing;
  slope::api::Value holder;  // of the value
  slope_view view;
  slope::api::c::Given given;  // the arguments' shapes
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

// What a caller must give.
struct Needed {
  const char* name;
  const void* pointer;
};
bool all_given(slope_error** error, std::initializer_list<Needed> needed);  // false, with the error: one is NULL
slope_value* handle(Result<Value> result, slope_error** error);
int refuse(slope_error** error, std::string message);  // 0
int answer(Result<void> result, slope_error** error);  // 1, or 0 with the error
std::string word(detail::Kind kind);                   // of signatures
struct Signature {
  detail::Kind result = detail::Kind::nothing;
  std::vector<detail::Kind> parameters;
  std::vector<const slope_type*> objects;  // of the parameters, then of the result: those that are the host's
};
// `types`: whose types may be named, or null.
bool parse_signature(std::string_view text, const slope_engine* types, Signature& made, std::string& why);
bool to_datum(const slope_argument& argument, detail::Datum& datum, std::string& why);
void from_datum(const detail::Datum& datum, slope_argument& result, slope_view& view);  // `view`: of an array
// What the signature says, of what the caller gave: integers do for numbers.
bool check_arguments(const std::vector<detail::Kind>& parameters, const slope_argument* arguments, std::size_t count,
                     Given& given, std::string& why);
// Places in the shape of the arguments.
std::vector<detail::GradientTarget> gradient_targets(const std::vector<detail::Kind>& parameters, const Given& given,
                                                     const slope_array* places);
// Which values move, of what the caller gave. False: one that does not.
// `memory`: of their extents.
bool to_tangents(const std::vector<detail::Kind>& parameters, const slope_argument* tangents,
                 std::vector<detail::TangentGiven>& given, Given& memory, std::string& why);
bool is_differentiable(detail::Kind kind);  // a number or numbers
// A C function of the host; `objects` as in Signature.
std::unique_ptr<detail::HostFunction> host_function(slope_host_function function, void* data, void (*free_data)(void*),
                                                    Signature signature);
int answer(const Definition& made, slope_error** error);

}  // namespace slope::api::c
