// The public class Engine: each member checks its arguments and forwards the call.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "embed/engine_state.hpp"
#include "embed/host/host.hpp"

namespace slope::api {

using detail::Datum;
using detail::EngineState;
using detail::Entry;
using detail::Kind;
using detail::RawValue;

std::string_view version() { return SLOPE_VERSION; }

Engine::Engine(Options options) : state_(std::make_unique<EngineState>(std::move(options))) {}
Engine::~Engine() {
  EngineState::keep_if_used(state_);
  delete state_.get();  // with its address still here: what it lets go of may use the engine
  (void)state_.release();
}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&& other) noexcept {
  std::unique_ptr<EngineState> before = std::exchange(state_, std::move(other.state_));
  EngineState::keep_if_used(before);
  return *this;
}

const Error* Engine::unusable() const {
  static const Error moved = detail::engine_error("the engine was moved from: use the one that it was moved to");
  return state_ ? state_->broken.get() : &moved;
}

Result<Value> Engine::run(std::string_view text, std::string_view name) {
  if (const Error* why = unusable()) return *why;
  return state_->run(std::string(name), std::string(text));
}

Result<Value> Engine::run_file(const std::string& path) {
  if (const Error* why = unusable()) return *why;
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed))
    return detail::engine_error("cannot read " + path + ": " + std::strerror(EISDIR));
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (in && in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
  if (!in.is_open() || in.bad() || text.fail())
    return detail::engine_error("cannot read " + path + ": " + std::strerror(errno));
  const auto file = std::filesystem::weakly_canonical(std::filesystem::absolute(path, failed), failed);
  if (!failed) state_->runtime.capabilities.include.push_back(file.parent_path().string());
  return state_->run(path, std::move(text).str());
}

Result<Value> detail::Access::value(Engine& owner, const Datum& datum) {
  if (const Error* why = unusable(owner)) return *why;
  detail::EngineState& engine = state(owner);
  Entry entry(engine);
  RawValue v;
  if (!engine.to_raw(datum, v)) return engine.failure();
  return make(engine, v);
}

Result<void> Engine::set_datum(std::string_view name, const Datum& datum) {
  if (const Error* why = unusable()) return *why;
  EngineState& engine = *state_;
  if (!detail::is_identifier(name))
    return detail::engine_error("a global needs a name such as `x`; found `" + std::string(name) + "`");
  Entry entry(engine);
  RawValue v;
  if (!engine.to_raw(datum, v)) return engine.failure();
  Binding* own = engine.runtime.binding(engine.runtime.main, engine.runtime.symbol(name));
  if (own->is_constant || own->module != engine.runtime.main)
    return detail::engine_error("`" + std::string(name) + "` is a constant and cannot be assigned");
  if (own->declared && !is_subtype(engine.runtime.types, engine.runtime.types.dispatch_type(v), own->declared))
    return detail::engine_error(
        "`" + std::string(name) + "` is declared " + to_string(own->declared) + "; found " + engine.describe(v),
        ErrorKind::conversion);
  own->value = v;
  return {};
}

Result<Value> Engine::global(std::string_view name) {
  if (const Error* why = unusable()) return *why;
  RawValue v = state_->global(name);
  if (!v.defined()) return detail::engine_error("`" + std::string(name) + "` is not defined in Main");
  return detail::Access::make(*state_, v);
}

Result<std::shared_ptr<detail::FunctionState>> Engine::find_function(std::string_view name,
                                                                     std::span<const Kind> parameters, Kind result,
                                                                     Dispatch dispatch) {
  if (const Error* why = unusable()) return *why;
  Error error;
  auto made = detail::make_function(*state_, std::string(name), parameters, result, dispatch, error);
  if (!made) return error;
  return made;
}

Result<Value> Engine::call_data(std::string_view name, std::span<const Datum> arguments) {
  if (const Error* why = unusable()) return *why;
  EngineState& engine = *state_;
  Entry entry(engine);
  RawValue callee = engine.global(name);
  if (!callee.defined()) return detail::engine_error("`" + std::string(name) + "` is not defined in Main");
  return engine.call(callee, arguments);
}

Result<bool> Engine::warm(std::string_view name, std::string_view types) {
  return eval<bool>("precompile(" + std::string(name) + ", " + std::string(types) + ")", "<warm>");
}

void Engine::interrupt(Interrupt how) {
  if (!state_) return;
  state_->ctx.interrupt.store(how == Interrupt::final ? interrupt_final : interrupt_catchable,
                              std::memory_order_relaxed);
}

void Engine::set_fuel(std::uint64_t fuel) {
  if (state_) state_->set_fuel(fuel);
}
std::uint64_t Engine::fuel() const {
  return state_ ? static_cast<std::uint64_t>(std::max<std::int64_t>(state_->ctx.fuel, 0)) : 0;
}

bool Engine::incomplete(std::string_view text) {
  SourceMap sources;
  return Pipeline::incomplete(sources, sources.add("<prompt>", std::string(text)));
}

Tier Engine::tier() const { return state_ ? static_cast<Tier>(state_->pipeline->mode) : Tier::interpret; }
void Engine::set_tier(Tier tier) {
  if (state_ && !state_->line_watch) state_->pipeline->mode = static_cast<TierMode>(tier);
}

Statistics Engine::statistics() const {
  if (!state_) return {};
  const HeapStatistics& heap = state_->runtime.heap.statistics();
  const Pipeline::Statistics& made = state_->pipeline->statistics();
  Statistics s;
  s.heap_bytes = heap.live_bytes;
  s.allocated_bytes = heap.allocated_bytes;
  s.collections = heap.collections;
  s.collection_slices = heap.slices;
  s.longest_pause_seconds = static_cast<double>(heap.longest_nanoseconds) * 1e-9;
  s.inferred_functions = made.inferred;
  s.compiled_functions = made.compiled;
  s.derivatives = made.derivatives;
  s.compile_seconds = static_cast<double>(made.compile_nanoseconds) * 1e-9;
  return s;
}

void Engine::collect_garbage() {
  if (!state_) return;
  Entry entry(*state_);
  state_->runtime.heap.collect();
}

bool Engine::collect_for(std::chrono::nanoseconds budget) {
  if (!state_) return false;
  Entry entry(*state_);
  return state_->runtime.heap.collect_for(budget);
}

}  // namespace slope::api
