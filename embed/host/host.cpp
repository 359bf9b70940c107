// C++ functions as Slope functions.
//
// `define("spline", [](double) {…})` runs the definition
//
//   function spline(x1::Core.Real) Core.host_0(0, Base.convert(Core.Float64, x1)) end
//
// in Main: dispatch, conversion and inference see an ordinary method, whose body is a native of its own. Machine code
// calls the C++ side with registers where all its types are numbers (WordCode); everything else comes through
// call_host, with the number of the function as first argument. Derivative rules are definitions of the same kind.
#include "embed/host/host.hpp"

#include <algorithm>

#include "embed/engine_state.hpp"
#include "lang/runtime/loans.hpp"
#include "lang/syntax/lexer.hpp"

namespace slope::api::detail {

namespace {

// Is there stack for another call of the host? Script and host may call each other without end.
bool stack_is_low(const Context& ctx) {
  char here;
  return &here < ctx.stack_limit;
}

}  // namespace

bool raise_host_exception(Context& ctx, const std::string& given, const std::exception_ptr& cause) {
  if (ctx.stopped != Stop::none) return ctx.stop();  // in a use inside this one; the host may not hide it
  const SharedAccess shared(ctx);
  EngineState& engine = engine_of(ctx);
  const std::string message = given.empty() ? "a C++ exception" : given;
  // The host may pass on the message of an error of Slope.
  constexpr std::string_view prefix = "ERROR: ";
  ctx.raise_error(message.starts_with(prefix) ? message.substr(prefix.size()) : message);
  if (cause) {
    engine.host_exception = cause;
    engine.handles->set(0, ctx.error);
  }
  return false;
}

namespace {

void raise_word_failure(Context* ctx, void*, void* failure) {
  const std::unique_ptr<HostFailure> owned(static_cast<HostFailure*>(failure));
  raise_host_exception(*ctx, owned->message, owned->cause);
}

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
    case Kind::large:
      return {"Core.Integer", "Core.Int64"};
    case Kind::number:
      return {"Core.Real", "Core.Float64"};
    case Kind::text:
      return {"Core.AbstractString", "Core.String"};
    case Kind::numbers:
      return {"Core.AbstractArray", "Core.Array{Core.Float64,1}"};
    case Kind::any:
    case Kind::composite:
    case Kind::keyword:
      break;
  }
  static constexpr const char* arrays[] = {
      "",
      "Core.Array{Core.Float64,1}",
      "Core.Array{Core.Float64,2}",
      "Core.Array{Core.Float64,3}",
      "Core.Array{Core.Float64,4}",
      "Core.Array{Core.Float64,5}",
      "Core.Array{Core.Float64,6}",
      "Core.Array{Core.Float64,7}",
  };
  if (is_array(kind)) return {"Core.AbstractArray", arrays[dimensions_of(kind)]};
  return {"Core.Any", "Core.Any"};
}

std::string converted(Kind kind, const std::string& x) {
  if (kind == Kind::any || kind == Kind::composite) return x;
  return "Base.convert(" + std::string(parameter_of(kind).converted) + ", " + x + ")";
}

std::string x(std::size_t i) { return "x" + std::to_string(i + 1); }

// "x1::Core.Real, x2::Core.Integer"
std::string declared(const DefinedHost& host) {
  std::string text;
  const auto kinds = host.function->parameters();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string& object = host.objects[i];
    text += (i ? ", " : "") + x(i) + "::" + (object.empty() ? parameter_of(kinds[i]).declared : object);
  }
  return text;
}

// ", Base.convert(Core.Float64, x1), …"
std::string given(const DefinedHost& host) {
  std::string text;
  const auto kinds = host.function->parameters();
  const Kind result = host.function->result();
  // What the C++ side does with the numbers of an object nobody sees; only results that never carry derivatives are
  // what they are.
  const bool is_plain = result == Kind::boolean || result == Kind::integer || result == Kind::text;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string object = is_plain ? x(i) : "Base.seen_by_host(" + x(i) + ")";
    text += ", " + (host.objects[i].empty() ? converted(kinds[i], x(i)) : "Core.getfield(" + object + ", 1)");
  }
  return text;
}

bool takes_the_same(const HostFunction& a, const HostFunction& b) {
  if (!std::ranges::equal(a.parameters(), b.parameters())) return false;
  for (std::size_t i = 0; i < a.parameters().size(); ++i)
    if (a.object_key(i) != b.object_key(i)) return false;
  return true;
}

// "Core.host_3(3"
std::string call_of(std::size_t number) {
  const std::string digits = std::to_string(number);
  return "Core.host_" + digits + "(" + digits;
}

// The call of it with all its arguments.
std::string whole_call(const DefinedHost& host, std::size_t number) {
  const std::string call = call_of(number) + given(host) + ")";
  const Kind result = host.function->result();
  if (is_array(result) && result != Kind::numbers) return call + "::" + parameter_of(result).converted;
  return host.objects.back().empty() ? call : "Core.host_wrap(" + host.objects.back() + ", " + call + ")";
}

bool is_differentiable(Kind kind) { return kind == Kind::number || kind == Kind::numbers; }

const Type* returns_number(TypeTable& t, std::span<const Type* const>) { return t.builtin().float64; }
const Type* returns_integer(TypeTable& t, std::span<const Type* const>) { return t.builtin().int64; }
const Type* returns_boolean(TypeTable& t, std::span<const Type* const>) { return t.builtin().boolean; }
const Type* returns_text(TypeTable& t, std::span<const Type* const>) { return t.builtin().string; }
const Type* returns_nothing(TypeTable& t, std::span<const Type* const>) { return t.builtin().nothing; }
const Type* returns_numbers(TypeTable& t, std::span<const Type* const>) { return t.array_of(t.builtin().float64, 1); }

auto result_type_of(Kind kind) -> decltype(NativeInfo::result_type) {
  switch (kind) {
    case Kind::nothing:
      return returns_nothing;
    case Kind::boolean:
      return returns_boolean;
    case Kind::integer:
    case Kind::large:
      return returns_integer;
    case Kind::number:
      return returns_number;
    case Kind::text:
      return returns_text;
    case Kind::numbers:
      return returns_numbers;
    case Kind::any:
    case Kind::composite:
    case Kind::keyword:
      break;
  }
  return nullptr;
}

bool call_host(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  EngineState& engine = engine_of(ctx);
  if (count == 0 || args[0].type != engine.types.int64 ||
      static_cast<std::uint64_t>(args[0].bits) >= engine.host_functions.size())
    return ctx.argument_error("call_host takes the number of a host function and its arguments");
  HostFunction& function = *engine.host_functions[static_cast<std::size_t>(args[0].bits)]->function;
  std::span<const Kind> kinds = function.parameters();
  if (count - 1 != kinds.size())
    return ctx.argument_error("a host function was called with a wrong number of arguments");

  std::vector<Datum> data(kinds.size());
  std::vector<api::Value> holders(kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    Error error;
    if (!engine.from_raw(args[i + 1], kinds[i], data[i], holders[i], error)) return ctx.argument_error(error.message);
    if (kinds[i] == Kind::any && ctx.loans) ctx.loans->note(args[i + 1], {});  // the host may keep it
  }
  if (stack_is_low(ctx)) return ctx.stack_overflow();
  HostResult returned;
  function.call(data.data(), returned);
  if (!returned.error.empty()) return raise_host_exception(ctx, returned.error, returned.cause);
  if (ctx.stopped != Stop::none) return ctx.stop();
  return engine.to_raw(returned.datum, result);
}

// exit_process(code), behind exit(code): ends the script, not the host's process.
bool exit_process(Context& ctx, const RawValue* args, std::size_t count, RawValue&) {
  EngineState& engine = engine_of(ctx);
  if (count != 1) return ctx.argument_error("exit_process takes one argument");
  if (args[0].type != engine.types.int64) return ctx.type_error("exit", engine.types.int64, args[0]);
  engine.exit_code = static_cast<int>(args[0].bits & 0xff);
  return ctx.stop(Stop::exit, engine.types.interrupt_exception->instance);
}

const NativeInfo exit_info{"exit_process", exit_process, effect_all, nullptr};

}  // namespace

void define_engine_natives(EngineState& engine) { engine.runtime.define_native(engine.runtime.core, &exit_info); }

}  // namespace slope::api::detail

namespace slope::api {

using detail::EngineState;
using detail::HostFunction;
using detail::Kind;

namespace detail {

DefinedHost::DefinedHost(EngineState& engine, std::size_t number, std::unique_ptr<HostFunction> given)
    : function(std::move(given)), name_("host_" + std::to_string(number)) {
  for (std::size_t i = 0; i <= function->parameters().size(); ++i) {
    const TypeKey* key = function->object_key(i);
    const HostType* type = key ? engine.host_types.find(key) : nullptr;
    objects.push_back(type ? type->name : "");
    if (key && !type) unknown_type = true;
  }
  function->objects = &engine.host_types;
  info.name = name_.c_str();
  info.function = call_host;
  info.result_type = result_type_of(function->result());
  const HostFunction::WordCall words = function->word_call();
  if (!words) return;
  code_.call = reinterpret_cast<WordCode::Call>(words);
  code_.direct = function->register_call();
  code_.never_fails = function->never_fails();
  code_.raise = raise_word_failure;
  code_.function = function.get();
  for (Kind kind : function->parameters()) code_.parameters.push_back(engine.type_for(kind));
  code_.result = info.result_type(engine.runtime.types, {});
  info.host = &code_;
}

std::size_t add_host_function(EngineState& engine, std::unique_ptr<HostFunction> function, std::string title) {
  const std::size_t number = engine.host_functions.size();
  engine.host_functions.push_back(std::make_unique<DefinedHost>(engine, number, std::move(function)));
  engine.host_functions.back()->title = std::move(title);
  engine.runtime.define_native(engine.runtime.core, &engine.host_functions.back()->info);
  return number;
}

bool is_identifier(std::string_view name) {
  syntax::Ast ast;
  const syntax::LexResult read = syntax::lex(name, FileId{}, ast);
  return read.tokens.size() == 2 && read.tokens[0].kind == syntax::TokenKind::identifier && read.tokens[0].begin == 0 &&
         read.tokens[0].end == name.size();
}

}  // namespace detail

Definition Engine::define_host(std::string_view name, std::unique_ptr<HostFunction> function) {
  Definition made;
  made.name_ = name;
  if (const Error* why = unusable()) return made.fail(*why);
  EngineState& engine = *state_;
  made.engine_ = &engine;
  if (!detail::is_identifier(name))
    return made.fail(
        detail::engine_error("a function needs a name such as `spline`; found `" + std::string(name) + "`"));
  detail::Access::define(made, engine, made.name_, std::move(function));
  return made;
}

void detail::Access::define(Definition& made, EngineState& engine, const std::string& name,
                            std::unique_ptr<HostFunction> function) {
  made.engine_ = &engine;
  made.name_ = name;
  made.function_ = add_host_function(engine, std::move(function), "the host's function `" + name + "`");
  const DefinedHost& host = *engine.host_functions[made.function_];
  if (host.unknown_type) {
    made.fail(engine_error("the function `" + name +
                           "` takes or returns objects of a C++ type that is no type of this engine: tell it with "
                           "engine.type<T>(name) before"));
    return;
  }
  made.run("function " + name + "(" + declared(host) + ")\n    " + whole_call(host, made.function_) + "\nend\n");
}

Definition& Definition::fail(Error error) {
  if (result_.ok()) result_ = std::move(error);
  return *this;
}

Definition& Definition::run(std::string text) {
  EngineState& engine = *engine_;
  Result<Value> defined = engine.run("<host function>", std::move(text));
  return defined.ok() ? *this : fail(defined.error());
}

const detail::DefinedHost& Definition::host() const { return *engine_->host_functions[function_]; }
const HostFunction& Definition::function() const { return *host().function; }

std::string Definition::rule_title() const {
  return std::string(detail::rule_of) + "the host's function `" + name_ + "`";
}

Definition& Definition::refuse(const std::string& what, const std::string& expected) {
  return fail(detail::engine_error("the " + what + " of the host function `" + name_ + "`: expected " + expected));
}

// One partial for each number among the arguments.
Definition& Definition::add_partials(std::vector<std::unique_ptr<HostFunction>> partials) {
  if (!result_.ok()) return *this;
  const auto kinds = function().parameters();
  std::size_t numbers = 0;
  for (Kind kind : kinds) {
    if (kind == Kind::numbers) return refuse("derivative", "only numbers as arguments; arrays need .vjp or .jvp");
    numbers += kind == Kind::number;
  }
  if (function().result() != Kind::number || numbers == 0) return refuse("derivative", "a function of numbers to one");
  if (partials.size() != numbers)
    return refuse("derivative", std::to_string(numbers) + " functions, one for each argument that is a number");
  std::vector<std::string> texts;
  std::size_t next = 0;
  for (Kind kind : kinds) {
    if (kind != Kind::number) {
      texts.emplace_back();
      continue;
    }
    HostFunction& partial = *partials[next];
    if (!detail::takes_the_same(partial, function()) || partial.result() != Kind::number)
      return refuse("derivative", "functions that take what it takes and give a number");
    texts.push_back(detail::call_of(detail::add_host_function(*engine_, std::move(partials[next++]), rule_title())) +
                    detail::given(host()) + ")");
  }
  return run_partials(texts);
}

// Rules out of the texts of the partials; empty for arguments that are no numbers.
Definition& Definition::run_partials(const std::vector<std::string>& partials) {
  const auto kinds = function().parameters();
  const std::string declared = detail::declared(host());
  std::string all, arguments, cotangents, tangents = "_", tangent;
  for (std::size_t i = 0; i < partials.size(); ++i) {
    const std::string dx = "d" + detail::x(i), &partial = partials[i];
    all += partial + ", ";
    arguments += (i ? ", " : "") + detail::x(i);
    tangents += ", " + dx;
    cotangents += (partial.empty() ? "nothing" : "y * " + partial) + ", ";
    if (!partial.empty())
      tangent += (tangent.empty() ? "(" : " + (") + dx + " === nothing ? 0.0 : " + dx + " * " + partial + ")";
  }
  const std::string callee = "::Core.typeof(" + name_ + "), ";
  if (std::ranges::find(partials, std::string()) == partials.end())
    return run("Base.scalar_partials(" + callee + "Ω, " + declared + ") = (" + all + ")\n");
  const std::string value = name_ + "(" + arguments + ")";
  return run("Base.rrule(" + callee + declared + ") = (" + value + ", y -> (" + cotangents + "))\nBase.frule((" +
             tangents + "), " + callee + declared + ") = (" + value + ", " + tangent + ")\n");
}

// (arguments…, a tangent for each number and array among them) -> the tangent of the result. Of a function of numbers
// its values at the unit vectors are the partials, so that it is differentiated in both modes.
Definition& Definition::add_jvp(std::unique_ptr<HostFunction> jvp) {
  if (!result_.ok()) return *this;
  const auto kinds = function().parameters();
  std::vector<Kind> wanted(kinds.begin(), kinds.end());
  for (Kind kind : kinds)
    if (detail::is_differentiable(kind)) wanted.push_back(kind);
  const bool numbers = std::ranges::find(wanted, Kind::numbers) == wanted.end();
  if (!std::ranges::equal(jvp->parameters(), wanted) || jvp->result() != function().result() ||
      wanted.size() == kinds.size() || !detail::is_differentiable(jvp->result()))
    return refuse("jvp",
                  "a function of the arguments and a tangent for each that is a number or an array, to the "
                  "tangent of the result");
  const std::string call =
      detail::call_of(detail::add_host_function(*engine_, std::move(jvp), rule_title())) + detail::given(host());
  if (numbers && function().result() == Kind::number) {
    std::vector<std::string> texts(kinds.size());
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i] != Kind::number) continue;
      texts[i] = call;
      for (std::size_t k = 0; k < kinds.size(); ++k)
        if (kinds[k] == Kind::number) texts[i] += k == i ? ", 1.0" : ", 0.0";
      texts[i] += ")";
    }
    return run_partials(texts);
  }
  std::string tangents = "_", given, arguments;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string dx = "d" + detail::x(i);
    tangents += ", " + dx;
    arguments += (i ? ", " : "") + detail::x(i);
    if (kinds[i] == Kind::number) given += ", " + dx + " === nothing ? 0.0 : Base.convert(Core.Float64, " + dx + ")";
    if (kinds[i] == Kind::numbers)
      given += ", " + dx + " === nothing ? Base.zeros(Base.length(" + detail::x(i) +
               ")) : Base.convert(Core.Array{Core.Float64,1}, " + dx + ")";
  }
  return run("Base.frule((" + tangents + "), ::Core.typeof(" + name_ + "), " + detail::declared(host()) + ") = (" +
             name_ + "(" + arguments + "), " + call + given + "))\n");
}

// (arguments…, the cotangent of the result) -> a cotangent for each number and array among the arguments: one as such,
// several as a tuple.
Definition& Definition::add_vjp(std::unique_ptr<HostFunction> vjp) {
  if (!result_.ok()) return *this;
  const auto kinds = function().parameters();
  std::vector<Kind> wanted(kinds.begin(), kinds.end());
  wanted.push_back(function().result());
  std::string types, arguments;
  std::size_t count = 0;
  Kind last = Kind::nothing;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    arguments += (i ? ", " : "") + detail::x(i);
    if (!detail::is_differentiable(kinds[i])) continue;
    types += (count++ ? ", " : "") + std::string(detail::parameter_of(kinds[i]).converted);
    last = kinds[i];
  }
  if (!std::ranges::equal(vjp->parameters(), wanted) || !detail::is_differentiable(function().result()) || count == 0 ||
      vjp->result() != (count == 1 ? last : Kind::composite))
    return refuse("vjp",
                  "a function of the arguments and the cotangent of the result, to the cotangent of the argument that "
                  "is a number or an array, or the tuple of several");
  const std::string call = detail::call_of(detail::add_host_function(*engine_, std::move(vjp), rule_title())) +
                           detail::given(host()) + ", " + detail::converted(function().result(), "y") + ")";
  std::string parts;
  std::size_t next = 0;
  for (Kind kind : kinds)
    parts += !detail::is_differentiable(kind) ? "nothing, "
             : count == 1                     ? "found, "
                                              : "found[" + std::to_string(++next) + "], ";
  return run("Base.rrule(::Core.typeof(" + name_ + "), " + detail::declared(host()) + ") = (" + name_ + "(" +
             arguments + "), function (y)\n    found = " + call + (count == 1 ? "" : "::Core.Tuple{" + types + "}") +
             "\n    (" + parts + ")\nend)\n");
}

Definition Definition::pure() {
  if (result_.ok()) engine_->host_functions[function_]->info.effects = effect_throws;
  return *this;
}

Definition Definition::non_differentiable() {
  if (!result_.ok()) return *this;
  return run("Base.nondifferentiable(::Core.typeof(" + name_ + ")" +
             (function().parameters().empty() ? "" : ", " + detail::declared(host())) + ") = true\n");
}

Result<void> Engine::check_rule_data(std::string_view name, std::span<const detail::Datum> arguments) {
  if (const Error* why = unusable()) return *why;
  EngineState& engine = *state_;
  detail::Entry entry(engine);
  const detail::RawValue callee = engine.global(name);
  if (!callee.defined()) return detail::engine_error("`" + std::string(name) + "` is not defined in Main");
  const Value tested = detail::Access::make(engine, callee);
  std::vector<detail::Datum> given{detail::Crossing<Value>::give(tested)};
  given.insert(given.end(), arguments.begin(), arguments.end());
  Result<Value> result = engine.call(engine.library("test_rule"), given);
  if (result.ok() || result.error().kind != ErrorKind::not_differentiable)
    return result.ok() ? Result<void>() : result.error();
  // A rule for one mode is a rule: the other is left out.
  for (const char* mode : {"forward", "reverse"}) {
    const detail::Keyword leave_out = keyword(mode, false);
    given.push_back(detail::Crossing<detail::Keyword>::give(leave_out));
    Result<Value> of_one_mode = engine.call(engine.library("test_rule"), given);
    given.pop_back();
    if (of_one_mode.ok() || of_one_mode.error().kind != ErrorKind::not_differentiable)
      return of_one_mode.ok() ? Result<void>() : of_one_mode.error();
  }
  return result.error();
}

}  // namespace slope::api
