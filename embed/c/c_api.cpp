// The C interface (slope/slope.h): the C++ one behind opaque handles. Nothing is thrown across it.
#include <cstring>
#include <new>

#include "embed/c/c_api.hpp"

namespace slope::api::c {

using detail::Datum;
using detail::Kind;

static_assert(static_cast<int>(ErrorKind::limit) == SLOPE_ERROR_LIMIT);
static_assert(static_cast<int>(Kind::nothing) == SLOPE_NOTHING && static_cast<int>(Kind::boolean) == SLOPE_BOOLEAN &&
              static_cast<int>(Kind::integer) == SLOPE_INTEGER && static_cast<int>(Kind::number) == SLOPE_NUMBER &&
              static_cast<int>(Kind::text) == SLOPE_TEXT && static_cast<int>(Kind::numbers) == SLOPE_NUMBERS &&
              static_cast<int>(Kind::any) == SLOPE_VALUE);

void give(slope_error** to, Error error) {
  if (to) *to = new slope_error{std::move(error)};
}

bool all_given(slope_error** error, std::initializer_list<Needed> needed) {
  for (const Needed& one : needed)
    if (!one.pointer) return refuse(error, std::string("the ") + one.name + " is NULL") != 0;
  return true;
}

slope_value* handle(Result<Value> result, slope_error** error) {
  if (result.ok()) return new slope_value{std::move(result).value(), {}, {}, {}, {}};
  give(error, result.error());
  return nullptr;
}

int refuse(slope_error** error, std::string message) {
  give(error, detail::engine_error(std::move(message), ErrorKind::conversion));
  return 0;
}

int answer(Result<void> result, slope_error** error) {
  if (result.ok()) return 1;
  give(error, result.error());
  return 0;
}

namespace {

bool to_data(const slope_argument* arguments, std::size_t count, std::vector<Datum>& data, std::string& why) {
  data.resize(count + 1);
  if (count != 0 && !arguments) {
    why = "the arguments are NULL";
    return false;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (to_datum(arguments[i], data[i], why)) continue;
    why = "argument " + std::to_string(i + 1) + ": " + why;
    return false;
  }
  return true;
}

// Of a function or a workspace.
template <class F>
int value_and_gradient(F* function, const slope_argument* arguments, size_t count, double* value,
                       const slope_array* gradients, slope_error** error) {
  return guarded(error, [&]() -> int {
    if (!all_given(error, {{"function", function}})) return 0;
    Given given;
    std::string why;
    if (!check_arguments(function->parameters, arguments, count, given, why)) return refuse(error, why);
    if (function->result != Kind::number)
      return refuse(error, "only a function whose result is a number has a gradient");
    const std::vector<detail::GradientTarget> targets = gradient_targets(function->parameters, given, gradients);
    double found = 0;
    if (!function->state->gradient(given.data, targets.data(), found)) {
      give(error, function->state->take_error());
      return 0;
    }
    if (value) *value = found;
    return 1;
  });
}

}  // namespace

}  // namespace slope::api::c

namespace detail = slope::api::detail;
using detail::Datum;
using detail::Kind;
using slope::api::Engine;
using slope::api::Error;
using slope::api::Result;
using slope::api::Value;
using namespace slope::api::c;

extern "C" {

const char* slope_version(void) { return slope::api::version().data(); }

slope_engine* slope_engine_new(const slope_options* options, slope_error** error) {
  return guarded(error, [&]() -> slope_engine* {
    slope_options given{};
    if (options) {
      if (options->size == 0 || options->size > 4096) {
        refuse(error, "slope_options::size is not sizeof(slope_options)");
        return nullptr;
      }
      std::memcpy(&given, options, std::min(options->size, sizeof given));
    }
    slope::api::Options made;
    if (given.interpret) made.tier = slope::api::Tier::interpret;
    made.heap_limit = given.heap_limit;
    made.fuel = given.fuel;
    made.time_limit = given.time_limit;
    made.stack_limit = given.stack_limit;
    made.tape_limit = given.tape_limit;
    for (const char* const* folder = given.read; folder && *folder; ++folder)
      made.capabilities.read.emplace_back(*folder);
    for (const char* const* folder = given.write; folder && *folder; ++folder)
      made.capabilities.write.emplace_back(*folder);
    made.capabilities.environment = given.environment != 0;
    made.capabilities.time = given.time != 0;
    made.capabilities.random = given.random != 0;
    made.capabilities.input = given.input != 0;
    auto sink = [&](auto function) -> std::function<void(std::string_view)> {
      if (!function) return {};
      return [function, data = given.output_data](std::string_view text) { function(data, text.data(), text.size()); };
    };
    made.output = sink(given.output);
    made.error_output = sink(given.error_output);
    auto engine = std::make_unique<slope_engine>(slope_engine{.engine = Engine(std::move(made))});
    detail::Access::state(engine->engine).kept = engine->types;
    // A library that does not load is told now.
    if (Result<Value> ready = engine->engine.run("nothing"); !ready.ok()) {
      give(error, ready.error());
      return nullptr;
    }
    return engine.release();
  });
}

void slope_engine_free(slope_engine* engine) { delete engine; }
void slope_interrupt(slope_engine* engine) {
  if (engine) engine->engine.interrupt();
}

slope_value* slope_run(slope_engine* engine, const char* text, const char* name, slope_error** error) {
  return guarded(error, [&]() -> slope_value* {
    if (!all_given(error, {{"engine", engine}, {"text", text}})) return nullptr;
    return handle(engine->engine.run(text, name ? name : "<text>"), error);
  });
}
slope_value* slope_run_file(slope_engine* engine, const char* path, slope_error** error) {
  return guarded(error, [&]() -> slope_value* {
    if (!all_given(error, {{"engine", engine}, {"path", path}})) return nullptr;
    return handle(engine->engine.run_file(path), error);
  });
}

int slope_set(slope_engine* engine, const char* name, const slope_argument* value, slope_error** error) {
  return guarded(error, [&]() -> int {
    if (!all_given(error, {{"engine", engine}, {"name", name}, {"value", value}})) return 0;
    Datum datum;
    std::string why;
    if (!to_datum(*value, datum, why)) return refuse(error, why);
    return answer(detail::Access::set(engine->engine, name, datum), error);
  });
}
slope_value* slope_get(slope_engine* engine, const char* name, slope_error** error) {
  return guarded(error, [&]() -> slope_value* {
    if (!all_given(error, {{"engine", engine}, {"name", name}})) return nullptr;
    return handle(engine->engine.get<Value>(name), error);
  });
}

void slope_value_free(slope_value* value) { delete value; }
const char* slope_value_type(slope_value* value) {
  return guarded(nullptr, [&] { return value ? (value->type = value->value.type_name()).c_str() : ""; });
}
const char* slope_value_repr(slope_value* value) {
  return guarded(nullptr, [&] { return value ? (value->shown = value->value.repr()).c_str() : ""; });
}
int slope_value_to(slope_value* value, slope_argument* result, slope_error** error) {
  return guarded(error, [&]() -> int {
    if (!all_given(error, {{"value", value}, {"result", result}})) return 0;
    auto kind = static_cast<Kind>(result->kind);
    if (result->kind == SLOPE_ARRAY) {
      if (result->size < 1 || result->size > SLOPE_MOST_DIMENSIONS)
        return refuse(error, "an array is asked for with its dimensions, 1 to 7, in `size`");
      kind = result->size == 1 ? detail::array_kind(1, 0, true) : detail::array_kind(result->size, 0, false);
    } else if (result->kind < SLOPE_NOTHING || result->kind > SLOPE_VALUE) {
      return refuse(error, "an unknown kind is asked for");
    }
    Datum datum;
    Error why;
    value->holder = Value();
    if (!detail::convert_value(value->value, kind, datum, value->holder, why)) {
      give(error, std::move(why));
      return 0;
    }
    from_datum(datum, *result, value->view);
    return 1;
  });
}
slope_value* slope_value_field(slope_value* value, const char* name, slope_error** error) {
  return guarded(error, [&]() -> slope_value* {
    if (!all_given(error, {{"value", value}, {"name", name}})) return nullptr;
    return handle(value->value.field(name), error);
  });
}
int slope_value_size(slope_value* value, size_t* size, slope_error** error) {
  return guarded(error, [&]() -> int {
    if (!all_given(error, {{"value", value}, {"size", size}})) return 0;
    Result<std::size_t> found = value->value.size();
    if (found.ok()) {
      *size = found.value();
      return 1;
    }
    give(error, found.error());
    return 0;
  });
}
slope_value* slope_value_at(slope_value* value, size_t index, slope_error** error) {
  return guarded(error, [&]() -> slope_value* {
    if (!all_given(error, {{"value", value}})) return nullptr;
    return handle(value->value.at(index), error);
  });
}
slope_value* slope_value_call(slope_value* callee, const slope_argument* arguments, size_t count, slope_error** error) {
  return guarded(error, [&]() -> slope_value* {
    if (!all_given(error, {{"callee", callee}})) return nullptr;
    std::vector<Datum> data;
    std::string why;
    if (to_data(arguments, count, data, why))
      return handle(detail::Access::call(callee->value, data.data(), count), error);
    refuse(error, why);
    return nullptr;
  });
}

slope_function* slope_function_find(slope_engine* engine, const char* name, const char* signature,
                                    slope_error** error) {
  return guarded(error, [&]() -> slope_function* {
    if (!all_given(error, {{"engine", engine}, {"name", name}, {"signature", signature}})) return nullptr;
    auto made = std::make_unique<slope_function>();
    std::string why;
    Signature wanted;
    if (!parse_signature(signature, nullptr, wanted, why)) {
      refuse(error, why);
      return nullptr;
    }
    made->result = wanted.result;
    made->parameters = std::move(wanted.parameters);
    Result<std::shared_ptr<detail::FunctionState>> found =
        detail::Access::find(engine->engine, name, made->parameters, made->result);
    if (!found.ok()) {
      give(error, found.error());
      return nullptr;
    }
    made->state = std::move(found).value();
    return made.release();
  });
}
void slope_function_free(slope_function* function) { delete function; }
int slope_function_is_current(slope_function* function) {
  return guarded(nullptr, [&]() -> int { return function && function->state->is_current(); });
}
int slope_function_refresh(slope_function* function, slope_error** error) {
  return guarded(error, [&]() -> int {
    if (!all_given(error, {{"function", function}})) return 0;
    if (function->state->refresh()) return 1;
    give(error, function->state->take_error());
    return 0;
  });
}

int slope_call(slope_function* function, const slope_argument* arguments, size_t count, slope_argument* result,
               slope_error** error) {
  return guarded(error, [&]() -> int {
    if (!all_given(error, {{"function", function}})) return 0;
    Given given;
    std::string why;
    if (!check_arguments(function->parameters, arguments, count, given, why)) return refuse(error, why);
    Datum datum;
    if (!function->state->call(given.data, datum, &function->holder)) {
      give(error, function->state->take_error());
      return 0;
    }
    if (result) from_datum(datum, *result, function->view);
    return 1;
  });
}

int slope_value_and_gradient(slope_function* function, const slope_argument* arguments, size_t count, double* value,
                             const slope_array* gradients, slope_error** error) {
  return slope::api::c::value_and_gradient(function, arguments, count, value, gradients, error);
}

slope_workspace* slope_workspace_new(slope_function* function, slope_error** error) {
  return guarded(error, [&]() -> slope_workspace* {
    if (!all_given(error, {{"function", function}})) return nullptr;
    auto made = std::make_unique<slope_workspace>();
    made->parameters = function->parameters;
    made->result = function->result;
    made->state = function->state->make_workspace();
    if (made->state) return made.release();
    give(error, function->state->take_error());
    return nullptr;
  });
}
void slope_workspace_free(slope_workspace* workspace) { delete workspace; }
int slope_workspace_call(slope_workspace* workspace, const slope_argument* arguments, size_t count,
                         slope_argument* result, slope_error** error) {
  return guarded(error, [&]() -> int {
    if (!all_given(error, {{"workspace", workspace}})) return 0;
    Given given;
    std::string why;
    if (!check_arguments(workspace->parameters, arguments, count, given, why)) return refuse(error, why);
    Datum datum;
    if (!workspace->state->call(given.data, datum)) {
      give(error, workspace->state->take_error());
      return 0;
    }
    slope_view none;  // results of workspaces are words
    if (result) from_datum(datum, *result, none);
    return 1;
  });
}
int slope_workspace_value_and_gradient(slope_workspace* workspace, const slope_argument* arguments, size_t count,
                                       double* value, const slope_array* gradients, slope_error** error) {
  return slope::api::c::value_and_gradient(workspace, arguments, count, value, gradients, error);
}

// Of no error: an empty text, 0.
slope_error_kind slope_error_kind_of(const slope_error* error) {
  return error ? static_cast<slope_error_kind>(error->error.kind) : SLOPE_ERROR_ENGINE;
}
const char* slope_error_message(const slope_error* error) { return error ? error->error.message.c_str() : ""; }
const char* slope_error_summary(const slope_error* error) { return error ? error->error.summary.c_str() : ""; }
const char* slope_error_type(const slope_error* error) { return error ? error->error.type.c_str() : ""; }
const char* slope_error_file(const slope_error* error) { return error ? error->error.position.file.c_str() : ""; }
unsigned slope_error_line(const slope_error* error) { return error ? error->error.position.line : 0; }
unsigned slope_error_column(const slope_error* error) { return error ? error->error.position.column : 0; }
int slope_error_exit_code(const slope_error* error) { return error ? error->error.exit_code : 0; }
void slope_error_free(slope_error* error) { delete error; }

}  // extern "C"
