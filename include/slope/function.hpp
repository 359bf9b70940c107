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
class FunctionState;

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

// The memory of a Workspace. Answers false when there is an error, to be taken with take_error().
class WorkspaceState {
 public:
  virtual ~WorkspaceState() = default;
  virtual bool call(const Datum* arguments, Datum& result) = 0;
  virtual bool gradient(const Datum* arguments, const GradientTarget* targets, double& value) = 0;
  virtual Error take_error() = 0;
  virtual void interrupt() = 0;
  virtual const FunctionState* function() const = 0;
};

// The function behind the template. Answers false when there is an error, to be taken with take_error().
class FunctionState {
 public:
  virtual ~FunctionState() = default;
  // Of a function of numbers: how machine code is called with words. Null: by `call`.
  using WordCall = bool (*)(FunctionState& function, const std::uint64_t* arguments, std::uint64_t* result);
  WordCall word_call = nullptr;
  // `holder` keeps what the result views; null for results that view nothing.
  virtual bool call(const Datum* arguments, Datum& result, Value* holder) = 0;
  virtual bool gradient(const Datum* arguments, const GradientTarget* targets, double& value) = 0;
  virtual Error take_error() = 0;
  virtual std::unique_ptr<WorkspaceState> make_workspace() = 0;  // null: an error
  virtual bool is_current() const = 0;
  virtual bool refresh() = 0;
};

}  // namespace detail

template <class Signature>
class Function;

// What one thread needs to run a compiled function beside others: a heap, tapes, scratch memory. Made by
// Function::workspace; used by one thread at a time, whichever that is. The engine itself and its workspaces wait for
// each other: a use of the engine for the calls of workspaces on other threads, such a call for the engine's use.
class Workspace {
 public:
  Workspace() = default;                           // to be assigned
  void interrupt() const { state_->interrupt(); }  // its call, from any thread; not of an empty one

 private:
  template <class Signature>
  friend class Function;
  std::unique_ptr<detail::WorkspaceState> state_;
};

// Valid while its engine lives; used on one thread at a time, like the engine, but for calls with a workspace. It stays
// with the definitions that it was made with: what the script redefines later counts from the next refresh().
template <class R, class... A>
class Function<R(A...)> {
 public:
  // Spans are lent to the script for the call, without a copy.
  Result<R> operator()(A... arguments) const {
    if constexpr (by_words) {
      if (state_->word_call) [[likely]] {
        const std::uint64_t words[] = {detail::word_of(arguments)..., 0};
        std::uint64_t result = 0;
        if (!state_->word_call(*state_, words, &result)) [[unlikely]]
          return state_->take_error();
        if constexpr (std::is_void_v<R>) {
          return {};
        } else if constexpr (std::is_same_v<R, double>) {
          return std::bit_cast<double>(result);
        } else {
          R value{};
          Error error;
          if (detail::of_word(result, value, error)) return value;
          return error;
        }
      }
    }
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
    return gradient<G...>(*state_, arguments..., gradients...);
  }

  // Memory for one more thread. Refused, with the position, where the function writes to globals, reaches outside or
  // needs the engine otherwise; and where it is not native code with numbers and spans as arguments and a number as
  // result.
  Result<Workspace> workspace() const {
    Workspace made;
    made.state_ = state_->make_workspace();
    if (!made.state_) return state_->take_error();
    return made;
  }
  Result<R> operator()(Workspace& workspace, A... arguments) const {
    const detail::Datum data[] = {detail::CrossingOf<A>::give(arguments)..., detail::Datum()};
    detail::Datum result;
    if (!fits(workspace)) return not_of_this();
    if (!workspace.state_->call(data, result)) return workspace.state_->take_error();
    if constexpr (std::is_void_v<R>) {
      return {};
    } else {
      return detail::taken<R>(result);
    }
  }
  template <class... G>
  Result<double> value_and_gradient(Workspace& workspace, A... arguments, G&&... gradients) const {
    if (!fits(workspace)) return not_of_this();
    return gradient<G...>(*workspace.state_, arguments..., gradients...);
  }

  // Has nothing been redefined that it depends on?
  bool is_current() const { return state_->is_current(); }
  // Takes the newest definitions. On an error it stays as it was.
  Result<void> refresh() {
    if (!state_->refresh()) return state_->take_error();
    return {};
  }

 private:
  static constexpr bool by_words = (detail::is_word(detail::CrossingOf<A>::kind) && ...) &&
                                   (std::is_void_v<R> || detail::is_word(detail::Crossing<R>::kind));

  // `State`: of the function or of a workspace.
  template <class... G, class State>
  static Result<double> gradient(State& state, const A&... arguments, G&... gradients) {
    static_assert(std::is_same_v<R, double>, "only a function that returns a double has a gradient");
    static_assert(sizeof...(G) == sizeof...(A),
                  "one place for the derivative of each argument; nullptr where none is wanted");
    const detail::Datum data[] = {detail::CrossingOf<A>::give(arguments)..., detail::Datum()};
    const detail::GradientTarget targets[] = {detail::GradientTarget(gradients)..., nullptr};
    double value = 0;
    if (!state.gradient(data, targets, value)) return state.take_error();
    return value;
  }
  bool fits(const Workspace& workspace) const {
    return workspace.state_ && workspace.state_->function() == state_.get();
  }
  static Error not_of_this() {
    Error error;
    error.message = error.summary = "the workspace was made by another function";
    return error;
  }

  friend class Engine;
  explicit Function(std::shared_ptr<detail::FunctionState> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::FunctionState> state_;
};

}  // namespace slope::api
