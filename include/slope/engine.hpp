// Slope in a C++ program. This header includes nothing but the C++ standard library. Functions return errors of scripts
// as Result; only Result::value() throws.
//
//   slope::Engine engine;
//   engine.define("spline", [](double x) { return x * x * x; }).value();
//   engine.run_file("model.slope").value();
//   auto loss = engine.function<double(std::span<const double>)>("loss").value();
//   double y = loss(w).value();
//   double z = loss.value_and_gradient(w, g).value();   // g: std::vector<double> of w's length, overwritten
//
// Engines share nothing. Only one thread at a time may use an engine; it can be a different thread each time.
// interrupt() may be called from any thread. Every use of an engine that was moved from returns an error. When a host
// function destroys the engine that calls it, the engine stops the script and ends when that call has returned. An
// engine uses the stack of the thread that calls it: deep recursion raises a StackOverflowError there.
#pragma once

#include <chrono>
#include <memory>

#include "slope/function.hpp"
#include "slope/host_function.hpp"
#include "slope/options.hpp"

namespace slope::api {

std::string_view version();  // "0.1.0"

namespace detail {
struct DefinedHost;
}

struct Statistics {
  std::size_t heap_bytes = 0;       // live at the last collection, plus allocated since
  std::size_t allocated_bytes = 0;  // in total
  std::size_t collections = 0;
  std::size_t collection_slices = 0;  // parts of collections that were not done at once
  double longest_pause_seconds = 0;   // that the collector worked without a break
  std::size_t inferred_functions = 0;
  std::size_t compiled_functions = 0;
  std::size_t derivatives = 0;
  double compile_seconds = 0;
};

// The result of Engine::define: whether it succeeded, and members that declare more about the function. Use it at once.
//
// A gradient through a host function needs one of these rules; without one it is refused, with the line.
class Definition {
 public:
  bool ok() const { return result_.ok(); }
  explicit operator bool() const { return ok(); }
  void value() const { result_.value(); }
  const Error& error() const { return result_.error(); }

  // For a function of numbers to a number: its partial derivatives, one function for each argument that is a double.
  // Each takes all arguments.
  template <class... D>
  Definition derivative(D&&... partials) {
    std::vector<std::unique_ptr<detail::HostFunction>> all;
    (all.push_back(detail::make_host_function(std::forward<D>(partials))), ...);
    return add_partials(std::move(all));
  }
  // The tangent of the result: a function of the arguments, then of a tangent for each that is a double or a span.
  // Forward mode uses it; for functions of numbers to a number both modes do.
  template <class F>
  Definition jvp(F&& function) {
    return add_jvp(detail::make_host_function(std::forward<F>(function)));
  }
  // The cotangents of the arguments: a function of the arguments and the result's cotangent. It returns the cotangent
  // of the argument that is a double (as double) or a span (as std::vector<double>), or a std::tuple of several
  // (slope/containers.hpp). Reverse mode uses it.
  template <class F>
  Definition vjp(F&& function) {
    return add_vjp(detail::make_host_function(std::forward<F>(function)));
  }
  // The function only computes its result, which depends only on the arguments. The compiler may call it once instead
  // of twice, in advance, or not at all, and workspaces may call it on several threads at the same time.
  Definition pure();
  // The result has no derivative: gradients treat it as a constant.
  Definition non_differentiable();

 private:
  friend class Engine;
  friend struct detail::Access;
  Definition& fail(Error error);
  Definition& run(std::string text);
  Definition& refuse(const std::string& what, const std::string& expected);
  const detail::HostFunction& function() const;
  const detail::DefinedHost& host() const;
  std::string rule_title() const;
  Definition& add_partials(std::vector<std::unique_ptr<detail::HostFunction>> partials);
  Definition& run_partials(const std::vector<std::string>& partials);
  Definition& add_jvp(std::unique_ptr<detail::HostFunction> jvp);
  Definition& add_vjp(std::unique_ptr<detail::HostFunction> vjp);

  detail::EngineState* engine_ = nullptr;
  std::string name_;
  std::size_t function_ = 0;
  Result<void> result_;
};

enum class Interrupt : unsigned char {
  final,      // no catch block of the script stops it
  exception,  // an InterruptException, which scripts may catch, as Ctrl-C at a prompt
};

template <class T>
class TypeDefinition;

class Engine {
 public:
  explicit Engine(Options options = {});
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  // Runs a text in the module Main and returns the value of its last statement. Messages call the text `name`.
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

  // An array over memory that the engine adopts: scripts use and keep it like an array of their own, but cannot resize
  // it. The engine calls `release` once with the memory, on the thread that uses the engine, some time after the last
  // script value or handle that holds the array is gone, at the latest when the engine ends. It drops an exception from
  // `release`. After an error the host still owns the memory.
  template <std::size_t N>
  Result<Value> adopt(const ArrayView<double, N>& array, std::function<void(double*)> release) {
    return adopt_data(detail::Crossing<ArrayView<double, N>>::give(array), std::move(release));
  }
  Result<Value> adopt(std::span<double> array, std::function<void(double*)> release) {
    return adopt_data(detail::Crossing<std::span<double>>::give(array), std::move(release));
  }

  // Makes a method of a C++ callable, for the types of its signature. A name may have several methods. An exception
  // from the callable becomes a Slope error that scripts can catch; if no script does, the host finds it in
  // Error::cause. Declare derivative rules on the result:
  //   engine.define("spline", spline).derivative(spline_slope).value();
  template <class F>
  Definition define(std::string_view name, F&& function) {
    return define_host(name, detail::make_host_function(std::forward<F>(function)));
  }
  // A C++ class as a type of scripts: slope/type.hpp.
  template <class T>
  TypeDefinition<T> type(std::string_view name);
  // Tests the derivatives of a function of Main at these arguments, from rules or not: against central differences, in
  // forward and reverse mode (in one of them where the other has no rule), called twice, with unchanged arguments. The
  // error lists what is wrong.
  template <class... A>
  Result<void> check_rule(std::string_view name, const A&... arguments) {
    const detail::Datum data[] = {detail::Crossing<std::decay_t<const A>>::give(arguments)..., detail::Datum()};
    return check_rule_data(name, {data, sizeof...(A)});
  }

  // A function of Main for a C++ signature: Signature is R(A...). Returns an error of kind not_native when compiled
  // code alone cannot run the function, unless dispatch is allowed or the engine interprets.
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

  // Stops what the engine runs, at the next call or loop iteration, with an error of kind `interrupted`. May be called
  // from any thread and from a signal handler. When nothing runs, it stops the next use.
  void interrupt(Interrupt how = Interrupt::final);
  // The fuel of each use of the engine from now on, instead of Options::fuel (which must not have been 0); and the fuel
  // that the last use left, or that the running one still has.
  void set_fuel(std::uint64_t fuel);
  std::uint64_t fuel() const;

  // For prompts and tools.
  bool incomplete(std::string_view text);                      // does the text end inside a form?
  std::vector<std::string> complete(std::string_view prefix);  // names and keywords with this prefix, sorted
  Result<std::string> help(std::string_view name);             // documentation and methods of a name
  Tier tier() const;
  void set_tier(Tier tier);
  Statistics statistics() const;
  void collect_garbage();  // whole, now
  // Makes the code of a call before it is needed: `types` is a tuple of types, as a script writes it.
  //   engine.warm("loss", "(Vector{Float64}, Int)");
  //   engine.warm("gradient", "(typeof(loss), Vector{Float64})");
  // Waits until it is there. False: no method takes such a call. An error: a name or a type is not known.
  Result<bool> warm(std::string_view name, std::string_view types);
  // For a host with time left in its frame: works at a collection for about so long. False: there is nothing to do.
  bool collect_for(std::chrono::nanoseconds budget);

 private:
  template <class Signature, class R, class... A>
  Result<Function<Signature>> find(std::string_view name, Dispatch dispatch, R (*)(A...)) {
    static constexpr detail::Kind kinds[] = {detail::CrossingOf<A>::kind..., detail::Kind::nothing};
    auto state = find_function(name, {kinds, sizeof...(A)}, detail::Crossing<R>::kind, dispatch);
    if (!state.ok()) return state.error();
    return Function<Signature>(std::move(state).value());
  }
  const Error* unusable() const;  // why every use is refused; null: none is
  Result<void> set_datum(std::string_view name, const detail::Datum& datum);
  Result<Value> global(std::string_view name);
  Result<Value> adopt_data(const detail::Datum& array, std::function<void(double*)> release);
  Definition define_host(std::string_view name, std::unique_ptr<detail::HostFunction> function);
  Result<void> check_rule_data(std::string_view name, std::span<const detail::Datum> arguments);
  Result<std::shared_ptr<detail::FunctionState>> find_function(std::string_view name,
                                                               std::span<const detail::Kind> parameters,
                                                               detail::Kind result, Dispatch dispatch);
  Result<Value> call_data(std::string_view name, std::span<const detail::Datum> arguments);

  friend struct detail::Access;
  std::unique_ptr<detail::EngineState> state_;
};

namespace detail {
// Converts to the kind that a C++ type needs; the datum views memory of the value.
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
  constexpr detail::Kind wanted = detail::may_be_large<T>() ? detail::Kind::large : detail::Crossing<T>::kind;
  if (!detail::convert_value(*this, wanted, datum, holder, error)) return error;
  return detail::taken<T>(datum);
}

}  // namespace slope::api

#ifndef SLOPE_IMPLEMENTATION  // the engine's own sources know other things by some of these names
namespace slope {
using namespace api;
}
#endif
