// C++ functions as Slope functions.
//
// `define("spline", [](double) {…})` runs the definition
//
//   function spline(x1::Base.Real) Core.call_host(0, Base.convert(Core.Float64, x1))::Core.Float64 end
//
// in Main: dispatch, conversion and inference see an ordinary method, and one native, `call_host`, reaches the C++ side
// by number through the engine that the context belongs to.
#include <cctype>

#include "embed/engine_state.hpp"

namespace slope::api::detail {

namespace {

struct Parameter {
  const char* declared;   // what the method accepts
  const char* converted;  // what the C++ side is given
};

Parameter parameter_of(Kind kind) {
  switch (kind) {
    case Kind::nothing:
      return {"Core.Nothing", "Core.Nothing"};
    case Kind::boolean:
      return {"Core.Bool", "Core.Bool"};
    case Kind::integer:
      return {"Core.Integer", "Core.Int64"};
    case Kind::number:
      return {"Core.Real", "Core.Float64"};
    case Kind::text:
      return {"Core.AbstractString", "Core.String"};
    case Kind::numbers:
      return {"Core.AbstractArray", "Core.Array{Core.Float64,1}"};
    case Kind::any:
    case Kind::composite:
      break;
  }
  return {"Core.Any", "Core.Any"};
}

bool is_identifier(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  for (unsigned char c : name)
    if (!std::isalnum(c) && c != '_' && c != '!' && c < 0x80) return false;
  return name[0] != '!';
}

std::string definition(std::string_view name, std::size_t number, const HostFunction& function) {
  std::string declared, given;
  std::size_t i = 0;
  for (Kind kind : function.parameters()) {
    std::string x = "x" + std::to_string(++i);
    Parameter parameter = parameter_of(kind);
    declared += (i > 1 ? ", " : "") + x + "::" + parameter.declared;
    given += kind == Kind::any ? ", " + x : ", Base.convert(" + std::string(parameter.converted) + ", " + x + ")";
  }
  return "function " + std::string(name) + "(" + declared + ")\n    Core.call_host(" + std::to_string(number) + given +
         ")::" + parameter_of(function.result()).converted + "\nend\n";
}

bool call_host(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  EngineState& engine = engine_of(ctx);
  if (count == 0 || args[0].type != engine.types.int64 ||
      static_cast<std::uint64_t>(args[0].bits) >= engine.host_functions.size())
    return ctx.argument_error("call_host takes the number of a host function and its arguments");
  HostFunction& function = *engine.host_functions[static_cast<std::size_t>(args[0].bits)];
  std::span<const Kind> kinds = function.parameters();
  if (count - 1 != kinds.size())
    return ctx.argument_error("a host function was called with a wrong number of arguments");

  std::vector<Datum> data(kinds.size());
  std::vector<api::Value> holders(kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    Error error;
    if (!engine.from_raw(args[i + 1], kinds[i], data[i], holders[i], error)) return ctx.argument_error(error.message);
  }
  HostResult returned;
  function.call(data.data(), returned);
  if (!returned.error.empty()) {
    ctx.raise_error(returned.error);
    if (returned.cause) {
      engine.host_exception = returned.cause;
      engine.handles->set(0, ctx.error);
    }
    return false;
  }
  return engine.to_raw(returned.datum, result);
}

// exit_process(code), behind exit(code): ends the script, not the host's process. Should a catch block stop the
// exception that unwinds it, `exit_code` stays set and the engine looks at it when the text it runs ends.
bool exit_process(Context& ctx, const RawValue* args, std::size_t count, RawValue&) {
  EngineState& engine = engine_of(ctx);
  if (count != 1) return ctx.argument_error("exit_process takes one argument");
  if (args[0].type != engine.types.int64) return ctx.type_error("exit", engine.types.int64, args[0]);
  engine.exit_code = static_cast<int>(args[0].bits & 0xff);
  return ctx.raise(RawValue(engine.types.interrupt_exception, engine.types.interrupt_exception->instance.bits));
}

const NativeInfo call_host_info{"call_host", call_host, effect_all, nullptr};
const NativeInfo exit_info{"exit_process", exit_process, effect_all, nullptr};

}  // namespace

void define_engine_natives(EngineState& engine) {
  engine.runtime.define_native(engine.runtime.core, &call_host_info);
  engine.runtime.define_native(engine.runtime.core, &exit_info);
}

}  // namespace slope::api::detail

namespace slope::api {

using detail::EngineState;

Result<void> Engine::define_host(std::string_view name, std::unique_ptr<detail::HostFunction> function) {
  EngineState& engine = *state_;
  if (engine.broken) return *engine.broken;
  if (!detail::is_identifier(name))
    return detail::engine_error("a function needs a name such as `spline`; found `" + std::string(name) + "`");
  std::size_t number = engine.host_functions.size();
  std::string text = detail::definition(name, number, *function);
  engine.host_functions.push_back(std::move(function));
  Result<Value> defined = engine.run(engine.runtime.sources.add("<host function>", std::move(text)));
  if (!defined.ok()) return defined.error();
  return {};
}

}  // namespace slope::api
