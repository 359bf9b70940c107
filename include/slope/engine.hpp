// Slope in a C++ program. Nothing but the C++ standard library is included; errors of scripts come as Result, never as
// exceptions unless value() is asked for.
//
//   slope::Engine engine;
//   engine.define("spline", [](double x) { return x * x * x; }).value();
//   engine.run_file("model.slope").value();
//   auto loss = engine.function<double(std::span<const double>)>("loss").value();
//   double y = loss(w).value();
//   double z = loss.value_and_gradient(w, g).value();   // g: std::vector<double> of w's length, overwritten
//
// Engines share nothing. One engine is used by one thread at a time, whichever that is; interrupt() alone may be called
// from anywhere. An engine uses the stack of the thread that calls it: deep recursion ends in StackOverflowError there.
#pragma once

#include <memory>

#include "slope/function.hpp"
#include "slope/host_function.hpp"
#include "slope/options.hpp"

namespace slope::api {

std::string_view version();  // "0.1.0"

struct Statistics {
  std::size_t heap_bytes = 0;       // live, as of the last collection, and what was allocated since
  std::size_t allocated_bytes = 0;  // ever
  std::size_t collections = 0;
  std::size_t inferred_functions = 0;
  std::size_t compiled_functions = 0;
  std::size_t derivatives = 0;
  double compile_seconds = 0;
};

class Engine {
 public:
  explicit Engine(Options options = {});
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  // Runs a text in the module Main; gives the value of its last statement. `name` is what messages call it.
  Result<Value> run(std::string_view text, std::string_view name = "<text>");
  Result<Value> run_file(const std::string& path);
  template <class T>
  Result<T> eval(std::string_view text, std::string_view name = "<text>") {
    Result<Value> result = run(text, name);
    if (!result.ok()) return result.error();
    return result.value().template to<T>();
  }

  // Assigns a global of Main.
  template <class T>
  Result<void> set(std::string_view name, const T& value) {
    return set_datum(name, detail::Crossing<std::decay_t<const T>>::give(value));
  }
  template <class T>
  Result<T> get(std::string_view name) {
    Result<Value> value = global(name);
    if (!value.ok()) return value.error();
    return value.value().template to<T>();
  }

  // Makes a C++ callable a Slope function, a method for the types of its signature: a name may have several. An
  // exception it throws becomes a Slope error that scripts can catch; uncaught it comes back as Error::cause.
  template <class F>
  Result<void> define(std::string_view name, F&& function) {
    using Plain = std::decay_t<F>;
    using Signature = typename detail::SignatureOf<Plain>::type;
    return define_host(name, std::make_unique<detail::Callable<Plain, Signature>>(std::forward<F>(function)));
  }

  // A function of Main, for a C++ signature: Signature is R(A...). An error of kind not_native when compiled code alone
  // cannot run it, unless dispatch is allowed or the engine interprets.
  template <class Signature>
  Result<Function<Signature>> function(std::string_view name, Dispatch dispatch = Dispatch::refused) {
    return find<Signature>(name, dispatch, static_cast<Signature*>(nullptr));
  }
  // Calls a function or any callable by name, with dispatch on the arguments.
  template <class... A>
  Result<Value> call(std::string_view name, const A&... arguments) {
    const detail::Datum data[] = {detail::Crossing<std::decay_t<const A>>::give(arguments)..., detail::Datum()};
    return call_data(name, {data, sizeof...(A)});
  }

  // Makes running code stop with InterruptException. May be called from any thread and from a signal handler.
  void interrupt();

  // For prompts and tools.
  bool incomplete(std::string_view text);                      // does the text end inside a form?
  std::vector<std::string> complete(std::string_view prefix);  // names and keywords that begin so, sorted
  Result<std::string> help(std::string_view name);             // documentation and methods of a name
  Tier tier() const;
  void set_tier(Tier tier);
  Statistics statistics() const;
  void collect_garbage();

 private:
  template <class Signature, class R, class... A>
  Result<Function<Signature>> find(std::string_view name, Dispatch dispatch, R (*)(A...)) {
    static constexpr detail::Kind kinds[] = {detail::CrossingOf<A>::kind..., detail::Kind::nothing};
    auto state = find_function(name, {kinds, sizeof...(A)}, detail::Crossing<R>::kind, dispatch);
    if (!state.ok()) return state.error();
    return Function<Signature>(std::move(state).value());
  }
  Result<void> set_datum(std::string_view name, const detail::Datum& datum);
  Result<Value> global(std::string_view name);
  Result<void> define_host(std::string_view name, std::unique_ptr<detail::HostFunction> function);
  Result<std::shared_ptr<detail::FunctionState>> find_function(std::string_view name,
                                                               std::span<const detail::Kind> parameters,
                                                               detail::Kind result, Dispatch dispatch);
  Result<Value> call_data(std::string_view name, std::span<const detail::Datum> arguments);

  friend struct detail::Access;
  std::unique_ptr<detail::EngineState> state_;
};

namespace detail {
// Converts to the kind that a C++ type wants; the datum views memory of the value.
bool convert_value(const Value& value, Kind kind, Datum& datum, Value& holder, Error& error);
}  // namespace detail

template <class T>
Result<void> Value::set_field(std::string_view name, const T& value) const {
  return assign(name, detail::Crossing<std::decay_t<const T>>::give(value));
}

template <class... A>
Result<Value> Value::operator()(const A&... arguments) const {
  const detail::Datum data[] = {detail::Crossing<std::decay_t<const A>>::give(arguments)..., detail::Datum()};
  return call(data, sizeof...(A));
}

template <class T>
Result<T> Value::to() const {
  detail::Datum datum;
  Value holder;
  Error error;
  if (!detail::convert_value(*this, detail::Crossing<T>::kind, datum, holder, error)) return error;
  return detail::taken<T>(datum);
}

}  // namespace slope::api

#ifndef SLOPE_IMPLEMENTATION  // the engine's own sources know other things by some of these names
namespace slope {
using namespace api;
}
#endif
