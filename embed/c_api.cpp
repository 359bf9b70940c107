// The C interface (slope/slope.h): the C++ one behind opaque handles. Nothing is thrown across it.
#include <cstring>
#include <new>

#include "embed/c_api.hpp"

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

slope_value* handle(Result<Value> result, slope_error** error) {
  if (result.ok()) return new slope_value{std::move(result).value(), {}, {}, {}};
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

const char* word(Kind kind) {
  static constexpr const char* words[] = {"nothing", "boolean", "integer", "number", "text", "numbers", "value"};
  return words[static_cast<int>(kind)];
}

namespace {

bool kind_named(std::string_view name, Kind& kind) {
  for (Kind k : {Kind::nothing, Kind::boolean, Kind::integer, Kind::number, Kind::text, Kind::numbers, Kind::any}) {
    kind = k;
    if (name == word(k)) return true;
  }
  return false;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

// "number(numbers, integer)"
bool parse_signature(std::string_view text, Kind& result, std::vector<Kind>& parameters, std::string& why) {
  auto fail = [&](std::string_view found) {
    why =
        "expected a signature such as `number(numbers, integer)`, of the words nothing, boolean, integer, number, "
        "text, "
        "numbers and value; found `" +
        std::string(found) + "`";
    return false;
  };
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos || trimmed(text).back() != ')') return fail(text);
  if (!kind_named(trimmed(text.substr(0, open)), result)) return fail(trimmed(text.substr(0, open)));
  std::string_view rest = trimmed(text);
  rest = rest.substr(rest.find('(') + 1);
  rest.remove_suffix(1);
  if (trimmed(rest).empty()) return true;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view name = trimmed(rest.substr(0, comma));
    Kind kind;
    if (!kind_named(name, kind) || kind == Kind::nothing) return fail(name);
    parameters.push_back(kind);
    if (comma == std::string_view::npos) return true;
    rest.remove_prefix(comma + 1);
  }
}

bool to_datum(const slope_argument& argument, Datum& datum, std::string& why) {
  datum = Datum();
  if (argument.kind < SLOPE_NOTHING || argument.kind > SLOPE_VALUE) {
    why = "an argument of unknown kind " + std::to_string(static_cast<int>(argument.kind));
    return false;
  }
  datum.kind = static_cast<Kind>(argument.kind);
  switch (argument.kind) {
    case SLOPE_NOTHING:
      break;
    case SLOPE_BOOLEAN:
      datum.integer = argument.as.integer != 0;
      break;
    case SLOPE_INTEGER:
      datum.integer = argument.as.integer;
      break;
    case SLOPE_NUMBER:
      datum.number = argument.as.number;
      break;
    case SLOPE_TEXT:
      datum.data = argument.as.text;
      datum.size = argument.size;
      break;
    case SLOPE_NUMBERS:
      datum.data = argument.as.numbers;
      datum.size = argument.size;
      break;
    case SLOPE_VALUE:
      if (!argument.as.value) {
        why = "a value argument is NULL";
        return false;
      }
      datum.data = &argument.as.value->value;
      break;
  }
  return true;
}

bool check_arguments(const std::vector<Kind>& parameters, const slope_argument* arguments, std::size_t count,
                     Datum* data, std::string& why) {
  if (count != parameters.size()) {
    why = "expected " + std::to_string(parameters.size()) + " arguments, found " + std::to_string(count);
    return false;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!to_datum(arguments[i], data[i], why)) return false;
    const Kind wanted = parameters[i];
    if (data[i].kind == Kind::integer && wanted == Kind::number) {
      const auto number = static_cast<double>(data[i].integer);
      data[i].kind = Kind::number;
      data[i].number = number;
    }
    if (data[i].kind != wanted) {
      why = "argument " + std::to_string(i + 1) + ": expected " + word(wanted) + ", found " + word(data[i].kind);
      return false;
    }
  }
  return true;
}

void from_datum(const Datum& datum, slope_argument& result) {
  result.kind = static_cast<slope_kind>(datum.kind);
  result.size = 0;
  switch (datum.kind) {
    case Kind::number:
      result.as.number = datum.number;
      break;
    case Kind::text:
      result.as.text = static_cast<const char*>(datum.data);
      result.size = datum.size;
      break;
    case Kind::numbers:
      result.as.numbers = static_cast<const double*>(datum.data);
      result.size = datum.size;
      break;
    case Kind::any:
    case Kind::composite:
      result.kind = SLOPE_VALUE;
      result.as.value = new slope_value{*static_cast<const Value*>(datum.data), {}, {}, {}};
      break;
    default:
      result.as.integer = datum.integer;
  }
}

namespace {

bool to_data(const slope_argument* arguments, std::size_t count, std::vector<Datum>& data, std::string& why) {
  data.resize(count + 1);
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
    Datum data[detail::most_arguments + 1];
    std::string why;
    if (!check_arguments(function->parameters, arguments, count, data, why)) return refuse(error, why);
    if (function->result != Kind::number)
      return refuse(error, "only a function whose result is a number has a gradient");
    std::vector<detail::GradientTarget> targets;
    targets.reserve(count + 1);
    for (std::size_t i = 0; i < count; ++i) {
      if (!gradients || !gradients[i].data) {
        targets.emplace_back(nullptr);
      } else {
        targets.emplace_back(std::span<double>(gradients[i].data, gradients[i].size));
      }
    }
    targets.emplace_back(nullptr);
    double found = 0;
    if (!function->state->gradient(data, targets.data(), found)) {
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
    auto engine = std::make_unique<slope_engine>(slope_engine{Engine(std::move(made)), {}});
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
  return guarded(error, [&] { return handle(engine->engine.run(text, name ? name : "<text>"), error); });
}
slope_value* slope_run_file(slope_engine* engine, const char* path, slope_error** error) {
  return guarded(error, [&] { return handle(engine->engine.run_file(path), error); });
}

int slope_set(slope_engine* engine, const char* name, const slope_argument* value, slope_error** error) {
  return guarded(error, [&]() -> int {
    Datum datum;
    std::string why;
    if (!to_datum(*value, datum, why)) return refuse(error, why);
    return answer(detail::Access::set(engine->engine, name, datum), error);
  });
}
slope_value* slope_get(slope_engine* engine, const char* name, slope_error** error) {
  return guarded(error, [&] { return handle(engine->engine.get<Value>(name), error); });
}

void slope_value_free(slope_value* value) { delete value; }
const char* slope_value_type(slope_value* value) {
  return guarded(nullptr, [&] { return (value->type = value->value.type_name()).c_str(); });
}
const char* slope_value_repr(slope_value* value) {
  return guarded(nullptr, [&] { return (value->shown = value->value.repr()).c_str(); });
}
int slope_value_to(slope_value* value, slope_argument* result, slope_error** error) {
  return guarded(error, [&]() -> int {
    if (result->kind < SLOPE_NOTHING || result->kind > SLOPE_VALUE)
      return refuse(error, "an unknown kind is asked for");
    Datum datum;
    Error why;
    value->holder = Value();
    if (!detail::convert_value(value->value, static_cast<Kind>(result->kind), datum, value->holder, why)) {
      give(error, std::move(why));
      return 0;
    }
    from_datum(datum, *result);
    return 1;
  });
}
slope_value* slope_value_field(slope_value* value, const char* name, slope_error** error) {
  return guarded(error, [&] { return handle(value->value.field(name), error); });
}
int slope_value_size(slope_value* value, size_t* size, slope_error** error) {
  return guarded(error, [&]() -> int {
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
  return guarded(error, [&] { return handle(value->value.at(index), error); });
}
slope_value* slope_value_call(slope_value* callee, const slope_argument* arguments, size_t count, slope_error** error) {
  return guarded(error, [&]() -> slope_value* {
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
    auto made = std::make_unique<slope_function>();
    std::string why;
    if (!parse_signature(signature, made->result, made->parameters, why)) {
      refuse(error, why);
      return nullptr;
    }
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
  return guarded(nullptr, [&]() -> int { return function->state->is_current(); });
}
int slope_function_refresh(slope_function* function, slope_error** error) {
  return guarded(error, [&]() -> int {
    if (function->state->refresh()) return 1;
    give(error, function->state->take_error());
    return 0;
  });
}

int slope_call(slope_function* function, const slope_argument* arguments, size_t count, slope_argument* result,
               slope_error** error) {
  return guarded(error, [&]() -> int {
    Datum data[detail::most_arguments + 1];
    std::string why;
    if (!check_arguments(function->parameters, arguments, count, data, why)) return refuse(error, why);
    Datum datum;
    if (!function->state->call(data, datum, &function->holder)) {
      give(error, function->state->take_error());
      return 0;
    }
    if (result) from_datum(datum, *result);
    return 1;
  });
}

int slope_value_and_gradient(slope_function* function, const slope_argument* arguments, size_t count, double* value,
                             const slope_array* gradients, slope_error** error) {
  return slope::api::c::value_and_gradient(function, arguments, count, value, gradients, error);
}

slope_workspace* slope_workspace_new(slope_function* function, slope_error** error) {
  return guarded(error, [&]() -> slope_workspace* {
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
    Datum data[detail::most_arguments + 1];
    std::string why;
    if (!check_arguments(workspace->parameters, arguments, count, data, why)) return refuse(error, why);
    Datum datum;
    if (!workspace->state->call(data, datum)) {
      give(error, workspace->state->take_error());
      return 0;
    }
    if (result) from_datum(datum, *result);
    return 1;
  });
}
int slope_workspace_value_and_gradient(slope_workspace* workspace, const slope_argument* arguments, size_t count,
                                       double* value, const slope_array* gradients, slope_error** error) {
  return slope::api::c::value_and_gradient(workspace, arguments, count, value, gradients, error);
}

slope_error_kind slope_error_kind_of(const slope_error* error) {
  return static_cast<slope_error_kind>(error->error.kind);
}
const char* slope_error_message(const slope_error* error) { return error->error.message.c_str(); }
const char* slope_error_summary(const slope_error* error) { return error->error.summary.c_str(); }
const char* slope_error_type(const slope_error* error) { return error->error.type.c_str(); }
const char* slope_error_file(const slope_error* error) { return error->error.position.file.c_str(); }
unsigned slope_error_line(const slope_error* error) { return error->error.position.line; }
unsigned slope_error_column(const slope_error* error) { return error->error.position.column; }
int slope_error_exit_code(const slope_error* error) { return error->error.exit_code; }
void slope_error_free(slope_error* error) { delete error; }

}  // extern "C"
