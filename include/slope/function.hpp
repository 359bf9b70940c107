// A Slope function for a fixed C++ signature: looked up, inferred and compiled once, then called without dispatch; and
// its gradient, written into the caller's own memory.
#pragma once

#include <memory>

#include "slope/convert.hpp"

namespace slope::api {

class Engine;

// What a handle of a function that is not native everywhere (some call in it is dispatched when it runs) shall be.
enum class Dispatch : unsigned char {
  refused,  // an error of kind not_native, with the position
  allowed,  // a slower handle
};

namespace detail {

class EngineState;

// Where the derivative with respect to one argument goes: a number, an array of the argument's length, or nowhere.
struct GradientTarget {
  double* data = nullptr;
  std::size_t size = 0;
  bool wanted = true;
  GradientTarget(std::nullptr_t) : wanted(false) {}
  GradientTarget(double& number) : data(&number), size(1) {}
  GradientTarget(std::span<double> numbers) : data(numbers.data()), size(numbers.size()) {}
  GradientTarget(std::vector<double>& numbers) : data(numbers.data()), size(numbers.size()) {}
};

// The function behind the template. Answers false when there is an error, to be taken with take_error().
class FunctionState {
 public:
  virtual ~FunctionState() = default;
  // `holder` keeps what the result views; null for results that view nothing.
  virtual bool call(const Datum* arguments, Datum& result, Value* holder) = 0;
  virtual bool gradient(const Datum* arguments, const GradientTarget* targets, double& value) = 0;
  virtual Error take_error() = 0;
  virtual bool is_current() const = 0;
  virtual bool refresh() = 0;
};

}  // namespace detail

template <class Signature>
class Function;

// Valid while its engine lives; used on one thread at a time, like the engine. It stays with the definitions that it
// was made with: what the script redefines later counts from the next refresh().
template <class R, class... A>
class Function<R(A...)> {
 public:
  // Spans are lent to the script for the call, without a copy.
  Result<R> operator()(A... arguments) const {
    const detail::Datum data[] = {detail::CrossingOf<A>::give(arguments)..., detail::Datum()};
    detail::Datum result;
    constexpr bool holds = detail::views_memory(detail::CrossingOf<R>::kind);
    [[maybe_unused]] std::conditional_t<holds, Value, std::nullptr_t> holder{};
    Value* held = nullptr;
    if constexpr (holds) held = &holder;
    if (!state_->call(data, result, held)) return state_->take_error();
    if constexpr (std::is_void_v<R>) {
      return {};
    } else {
      return detail::taken<R>(result);
    }
  }

  // The value, and for each argument its derivative: a double& for a double, a span<double> of the same length for a
  // span (overwritten, not added to), nullptr for what is not wanted.
  //   double loss = f.value_and_gradient(x, g).value();
  template <class... G>
  Result<double> value_and_gradient(A... arguments, G&&... gradients) const {
    static_assert(std::is_same_v<R, double>, "only a function that returns a double has a gradient");
    static_assert(sizeof...(G) == sizeof...(A),
                  "one place for the derivative of each argument; nullptr where none is wanted");
    const detail::Datum data[] = {detail::CrossingOf<A>::give(arguments)..., detail::Datum()};
    const detail::GradientTarget targets[] = {detail::GradientTarget(gradients)..., nullptr};
    double value = 0;
    if (!state_->gradient(data, targets, value)) return state_->take_error();
    return value;
  }

  // Has nothing been redefined that it depends on?
  bool is_current() const { return state_->is_current(); }
  // Takes the newest definitions. On an error it stays as it was.
  Result<void> refresh() {
    if (!state_->refresh()) return state_->take_error();
    return {};
  }

 private:
  friend class Engine;
  explicit Function(std::shared_ptr<detail::FunctionState> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::FunctionState> state_;
};

}  // namespace slope::api
