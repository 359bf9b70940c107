// What programs take over that show more than text: values in several forms, input. stdlib/tools/front_ends.slope calls
// these natives.
#include "embed/host/host.hpp"
#include "stdlib/native/native.hpp"
#include "tools/tools.hpp"

namespace slope::api {

namespace detail {

namespace {

// Calls what is the host's; its exceptions become errors of the script.
template <class F>
bool call_host(Context& ctx, F call) {
  try {
    call();
    return !ctx.failed();
  } catch (const std::exception& e) {
    return raise_host_exception(ctx, e.what(), std::current_exception());
  } catch (...) {
    return raise_host_exception(ctx, "", std::current_exception());
  }
}

bool front_end_shows(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  stdlib::Call call(ctx, "front_end_shows", args, count, result);
  return call.arity(0) && call.give_bool(bool(engine_of(ctx).show_forms));
}

// front_end_show(mime, text, mime, text, …)
bool front_end_show(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  stdlib::Call call(ctx, "front_end_show", args, count, result);
  const auto show = engine_of(ctx).show_forms;  // it may replace itself
  if (!show) return ctx.argument_error("no front end shows values");
  tools::Forms forms(count / 2);
  for (std::size_t i = 0; i + 1 < count; i += 2) {
    std::string_view mime, text;
    if (!call.string(i, mime) || !call.string(i + 1, text)) return false;
    forms[i / 2] = {std::string(mime), std::string(text)};
  }
  return call_host(ctx, [&] { show(forms); }) && call.give_nothing();
}

bool front_end_reads(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  stdlib::Call call(ctx, "front_end_reads", args, count, result);
  return call.arity(0) && call.give_bool(bool(engine_of(ctx).read_line));
}

// front_end_line(): a line with its end; "" at the end of input.
bool front_end_line(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  stdlib::Call call(ctx, "front_end_line", args, count, result);
  if (!call.arity(0) || !may_use(ctx, call.runtime.capabilities.input, "reading standard input", "input")) return false;
  const auto read = engine_of(ctx).read_line;
  if (!read) return ctx.argument_error("no front end reads input");
  std::string line;
  return call_host(ctx, [&] { line = read(); }) && call.give(line);
}

const NativeInfo front_end_natives[] = {
    {"front_end_shows", front_end_shows, effect_all, stdlib::returns_bool},
    {"front_end_show", front_end_show, effect_all, stdlib::returns_nothing},
    {"front_end_reads", front_end_reads, effect_all, stdlib::returns_bool},
    {"front_end_line", front_end_line, effect_all, stdlib::returns_string},
};

}  // namespace

void define_front_end_natives(EngineState& engine) { stdlib::define_all(engine.runtime, front_end_natives); }

}  // namespace detail

namespace tools {

using detail::EngineState;
using detail::RawValue;

void set_front_end(Engine& engine, FrontEnd front_end) {
  EngineState& state = detail::Access::state(engine);
  state.show_forms = std::move(front_end.show);
  state.read_line = std::move(front_end.read_line);
}

Result<Forms> forms(Engine& engine, const Value& value, int rows, int columns) {
  EngineState& state = detail::Access::state(engine);
  if (state.broken) return *state.broken;
  detail::Entry entry(state);
  Rooted raw(state.runtime.heap);
  raw.values = {value.is_nothing() ? state.runtime.nothing() : detail::Access::raw(value), state.runtime.from_int(rows),
                state.runtime.from_int(columns)};
  Forms all;
  auto before = std::exchange(state.show_forms, [&](const Forms& shown) { all = shown; });
  RawValue ignored;
  const bool made = state.call_library("display_forms", raw.values.data(), 3, ignored);
  state.show_forms = std::move(before);
  if (!made && state.ctx.failed()) return state.failure();
  return all;
}

}  // namespace tools

}  // namespace slope::api
