// A Slope function for a fixed C++ signature. The engine looks it up, infers it and compiles it once; calls then need
// no dispatch. Its gradient is written into the caller's own memory.
#pragma once

#include <memory>
#include <tuple>

#include "slope/array.hpp"
#include "slope/convert.hpp"

namespace slope::api {

class Engine;

// What the engine returns for a function that is not native everywhere (some call in it is dispatched at run time).
enum class Dispatch : unsigned char {
  refused,  // an error of kind not_native, with the position
  allowed,  // a slower handle
};

namespace detail {

class EngineState;
class FunctionState;

template <class T>
constexpr bool is_composite() {
  if constexpr (std::is_same_v<T, std::nullptr_t> || std::is_arithmetic_v<T> || std::is_same_v<T, std::span<double>>) {
    return false;
  } else {
    return Crossing<T>::kind == Kind::composite;
  }
}

// The place for the derivative with respect to one argument: a number, an array of the argument's length, an object of
// the argument's type (structures, tuples: composites), a Value, or none.
struct GradientTarget {
  double* data = nullptr;
  std::size_t size = 0;
  bool wanted = true;
  void* object = nullptr;  // of a composite
  bool (*take)(void* object, const void* argument, const Value& cotangent, Error& error) = nullptr;
  Kind kind = Kind::numbers;             // of an array
  const std::size_t* extents = nullptr;  // as in Datum
  GradientTarget(std::nullptr_t = nullptr) : wanted(false) {}
  template <std::size_t N, Layout layout>
  GradientTarget(const ArrayView<double, N, layout>& array)
      : data(array.data()),
        size(array.size()),
        kind(Crossing<ArrayView<double, N, layout>>::kind),
        extents(array.extents()) {}
  GradientTarget(double& number) : data(&number), size(1) {}
  GradientTarget(std::span<double> numbers) : data(numbers.data()), size(numbers.size()) {}
  GradientTarget(std::vector<double>& numbers) : data(numbers.data()), size(numbers.size()) {}
  // As it is: numbers, arrays, named tuples of fields; `nothing` for zero.
  GradientTarget(Value& result)
      : object(&result), take([](void* to, const void*, const Value& cotangent, Error&) {
          *static_cast<Value*>(to) = cotangent;
          return true;
        }) {}
  template <class T, class = std::enable_if_t<is_composite<T>()>>
  GradientTarget(T& result)
      : object(&result), take([](void* to, const void* argument, const Value& cotangent, Error& error) {
          return take_cotangent(cotangent, *static_cast<const T*>(argument), *static_cast<T*>(to), error);
        }) {}
};

// The same for functions of numbers and vectors of numbers, in as few words as possible, because each call builds them
// on the stack.
struct FlatArgument {
  std::uint64_t word;  // a number's bits, or where the vector is
  std::size_t size;    // of a number: 1
};
struct FlatTarget {
  static constexpr std::size_t unwanted = ~std::size_t{0};
  double* data;
  std::size_t size;
  FlatTarget(std::nullptr_t = nullptr) : data(nullptr), size(unwanted) {}
  FlatTarget(double& number) : data(&number), size(1) {}
  // Null with a length fits no argument: the general path says so.
  FlatTarget(std::span<double> numbers)
      : data(numbers.data()), size(is_memory(numbers.data(), numbers.size()) ? numbers.size() : unwanted - 1) {}
  FlatTarget(std::vector<double>& numbers) : data(numbers.data()), size(numbers.size()) {}
};
template <class T>
constexpr bool is_flat_argument = CrossingOf<T>::kind == Kind::numbers || is_word(CrossingOf<T>::kind);
template <class T>
constexpr bool is_flat_target =
    std::is_same_v<std::remove_cvref_t<T>, std::nullptr_t> || std::is_same_v<std::remove_cvref_t<T>, double> ||
    std::is_same_v<std::remove_cvref_t<T>, std::span<double>> ||
    std::is_same_v<std::remove_cvref_t<T>, std::vector<double>>;
template <class T>
FlatArgument flat_argument(const T& argument) {
  const Datum datum = CrossingOf<T>::give(argument);
  if constexpr (CrossingOf<T>::kind == Kind::numbers) {
    return {reinterpret_cast<std::uint64_t>(datum.data), datum.size};
  } else {
    return {static_cast<std::uint64_t>(datum.integer), 1};
  }
}

// The tangent of one argument: a number, an array of the argument's shape, layout and strides, or none (zero).
struct TangentGiven {
  Datum datum;
  TangentGiven(std::nullptr_t = nullptr) {}
  TangentGiven(double number) : datum(Crossing<double>::give(number)) {}
  TangentGiven(std::span<const double> numbers) : datum(Datum::of_numbers(numbers.data(), numbers.size())) {}
  TangentGiven(const std::vector<double>& numbers) : datum(Datum::of_numbers(numbers.data(), numbers.size())) {}
  template <class T, std::size_t N, Layout layout>
  TangentGiven(const ArrayView<T, N, layout>& array) : datum(Crossing<ArrayView<T, N, layout>>::give(array)) {
    datum.kind = Crossing<ArrayView<const double, N, layout>>::kind;
  }
};

// The place for the columns of a Jacobian that belong to one argument, one after the other: as many as the argument has
// numbers, each as long as the result. A vector is resized to that length; a span must have it.
struct JacobianTarget {
  double* data = nullptr;
  std::size_t size = 0;
  std::vector<double>* grows = nullptr;
  bool wanted = true;
  JacobianTarget(std::nullptr_t) : wanted(false) {}
  JacobianTarget(std::span<double> numbers) : data(numbers.data()), size(numbers.size()) {}
  JacobianTarget(std::vector<double>& numbers) : grows(&numbers) {}
};

// What a pullback keeps.
class PullbackState {
 public:
  virtual ~PullbackState() = default;
  virtual bool run(const Datum& cotangent, const GradientTarget* targets) = 0;
  virtual Error take_error() = 0;
};

// The outcome of a gradient on the fast path. `otherwise`: nothing was done, the caller takes the general path.
enum class AtOnce : unsigned char { otherwise, done, failed };

// The memory of a Workspace. Members return false when there is an error; take_error() then returns it.
class WorkspaceState {
 public:
  virtual ~WorkspaceState() = default;
  // As in FunctionState.
  AtOnce (*gradient_at_once)(WorkspaceState& workspace, const FlatArgument* arguments, const FlatTarget* targets,
                             double& value) = nullptr;
  virtual bool call(const Datum* arguments, Datum& result) = 0;
  virtual bool gradient(const Datum* arguments, const GradientTarget* targets, double& value) = 0;
  virtual Error take_error() = 0;
  virtual void interrupt() = 0;
  const FunctionState* of_function = nullptr;
};

// The function behind the template. Members return false when there is an error; take_error() then returns it.
class FunctionState {
 public:
  virtual ~FunctionState() = default;
  // Of a function of numbers: how machine code is called with words. Null: by `call`.
  using WordCall = bool (*)(FunctionState& function, const std::uint64_t* arguments, std::uint64_t* result);
  WordCall word_call = nullptr;
  // Of such a function that only computes: its machine code itself. False: it is to be called the other way. Or null.
  bool (*machine_code)(void* context, const std::uint64_t* arguments, std::uint64_t* result) = nullptr;
  void* context = nullptr;
  // Of a function of numbers and vectors: its gradient, where nothing is to be prepared. Null: by `gradient`.
  AtOnce (*gradient_at_once)(FunctionState& function, const FlatArgument* arguments, const FlatTarget* targets,
                             double& value) = nullptr;
  // `holder` keeps what the result views; null for results that view nothing.
  virtual bool call(const Datum* arguments, Datum& result, Value* holder) = 0;
  virtual bool gradient(const Datum* arguments, const GradientTarget* targets, double& value) = 0;
  // `results` and `holders`: of the value and its tangent; holders may be null as for `call`.
  virtual bool jvp(const Datum* arguments, const TangentGiven* tangents, Datum* results, Value* holders) = 0;
  virtual bool hvp(const Datum* arguments, const TangentGiven* direction, const GradientTarget* targets) = 0;
  virtual bool jacobian(const Datum* arguments, const JacobianTarget* targets, Datum& value, Value* holder) = 0;
  virtual std::unique_ptr<PullbackState> pullback(const Datum* arguments, Datum& value, Value* holder) = 0;
  virtual Error take_error() = 0;
  virtual std::unique_ptr<WorkspaceState> make_workspace() = 0;  // null: an error
  virtual bool is_current() const = 0;
  virtual bool refresh() = 0;
};

}  // namespace detail

template <class Signature>
class Function;

// What one thread needs to run a compiled function while other threads do: a heap, tapes, scratch memory. Made by
// Function::workspace. Only one thread at a time may use it. A use of the engine waits until no workspace runs on
// another thread, and a call of a workspace waits while another thread uses the engine.
class Workspace {
 public:
  Workspace() = default;    // to be assigned
  void interrupt() const {  // its call, from any thread
    if (state_) state_->interrupt();
  }

 private:
  template <class Signature>
  friend class Function;
  std::unique_ptr<detail::WorkspaceState> state_;
};

// A value and how it moves.
template <class R>
struct ValueAndTangent {
  R value{};
  R tangent{};
};

// The reverse sweep of one call, which takes cotangents of the result: Function::pullback. May be called again, unless
// the function stores into memory that others can see.
template <class Signature>
class Pullback;
template <class R, class... A>
class Pullback<R(A...)> {
 public:
  const R& value() const { return value_; }
  // Writes the cotangents of the arguments, in places as for value_and_gradient. `cotangent`: of the result, its shape.
  template <class... G>
  Result<void> operator()(const R& cotangent, G&&... gradients) {
    static_assert(sizeof...(G) == sizeof...(A),
                  "one place for the cotangent of each argument; nullptr where none is wanted");
    if (!state_) return detail::engine_error("the pullback was moved from");
    const detail::GradientTarget targets[] = {detail::GradientTarget(gradients)..., nullptr};
    if (!state_->run(detail::Crossing<R>::give(cotangent), targets)) return state_->take_error();
    return {};
  }

 private:
  template <class Signature>
  friend class Function;
  Pullback(std::unique_ptr<detail::PullbackState> state, R value)
      : state_(std::move(state)), value_(std::move(value)) {}
  std::unique_ptr<detail::PullbackState> state_;
  R value_;
};

// Valid as long as its engine lives. Only one thread at a time may use it, like the engine, except for calls with a
// workspace. It keeps the definitions that it was made with; refresh() takes the newest ones.
template <class R, class... A>
class Function<R(A...)> {
 public:
  // Copies share what was compiled. Moving copies, so that no handle is ever empty.
  Function(const Function&) = default;
  Function& operator=(const Function&) = default;

  // Spans are lent to the script for the call, without a copy.
  Result<R> operator()(A... arguments) const {
    if (!fits_words(arguments...)) return no_word();
    if constexpr (by_words) {
      const std::uint64_t words[] = {detail::word_of(arguments)..., 0};
      std::uint64_t result = 0;
      if (state_->machine_code && state_->machine_code(state_->context, words, &result)) [[likely]]
        return result_of(result);
      if (state_->word_call) [[likely]] {
        if (state_->word_call(*state_, words, &result)) [[likely]]
          return result_of(result);
        return failed();
      }
    }
    return call(arguments...);
  }

  // Returns the value and writes the derivative for each argument: a double& for a double, a span<double> of the same
  // length for a span (overwritten, not added to), nullptr to omit one.
  //   double loss = f.value_and_gradient(x, g).value();
  template <class... G>
  Result<double> value_and_gradient(A... arguments, G&&... gradients) const {
    return gradient_of(*state_, arguments..., gradients...);
  }

  // The value and its derivative in a direction, by forward mode. After the arguments comes the tangent of each: a
  // double, a span of the argument's length, a view of its shape and strides, or nullptr for zero.
  //   auto [y, dy] = f.jvp(x, direction).value();
  template <class... T>
  Result<ValueAndTangent<R>> jvp(A... arguments, const T&... tangents) const {
    static_assert(is_smooth, "only a function that returns a double or a std::vector<double> has a tangent");
    static_assert(sizeof...(T) == sizeof...(A), "one tangent for each argument; nullptr for what stands still");
    if (!fits_words(arguments...)) return no_word();
    const detail::Datum data[] = {detail::CrossingOf<A>::give(arguments)..., detail::Datum()};
    const detail::TangentGiven given[] = {detail::TangentGiven(tangents)..., nullptr};
    detail::Datum results[2];
    Value holders[2];
    if (!state_->jvp(data, given, results, holders)) return state_->take_error();
    ValueAndTangent<R> made;
    detail::Crossing<R>::take(results[0], made.value);
    detail::Crossing<R>::take(results[1], made.tangent);
    return made;
  }
  // The Hessian times a direction. After the arguments comes the tangent of each, as for jvp, then the place for the
  // derivative of its gradient, as for value_and_gradient.
  //   f.hvp(x, direction, h).value();
  template <class... T>
  Result<void> hvp(A... arguments, T&&... directions_and_gradients) const {
    static_assert(std::is_same_v<R, double>, "only a function that returns a double has a gradient");
    static_assert(sizeof...(T) == 2 * sizeof...(A), "a tangent for each argument, then a place for each");
    if (!fits_words(arguments...)) return no_word();
    const detail::Datum data[] = {detail::CrossingOf<A>::give(arguments)..., detail::Datum()};
    return hvp_of(data, std::forward_as_tuple(directions_and_gradients...), std::index_sequence_for<A...>{});
  }
  // The value and its partial derivatives with respect to each argument: a column-major matrix with a row for each
  // number of the result and a column for each number of the argument, in the order of its memory. Places are
  // std::vector<double>&, which is resized, spans of that length, or nullptr. Forward mode computes up to eight columns
  // at once. Before each round, memory that the script may write is restored.
  template <class... J>
  Result<R> jacobian(A... arguments, J&&... matrices) const {
    static_assert(is_smooth, "only a function that returns a double or a std::vector<double> has a Jacobian");
    static_assert(sizeof...(J) == sizeof...(A), "one matrix for each argument; nullptr where none is wanted");
    if (!fits_words(arguments...)) return no_word();
    const detail::Datum data[] = {detail::CrossingOf<A>::give(arguments)..., detail::Datum()};
    const detail::JacobianTarget targets[] = {detail::JacobianTarget(matrices)..., nullptr};
    detail::Datum result;
    Value holder;
    if (!state_->jacobian(data, targets, result, &holder)) return state_->take_error();
    R value{};
    detail::Crossing<R>::take(result, value);
    return value;
  }
  // The value, and a function from a cotangent of the result to the cotangents of the arguments, by reverse mode. Spans
  // are copied, because the pullback outlives the call.
  Result<Pullback<R(A...)>> pullback(A... arguments) const {
    static_assert(is_smooth, "only a function that returns a double or a std::vector<double> has a pullback");
    if (!fits_words(arguments...)) return no_word();
    const detail::Datum data[] = {detail::CrossingOf<A>::give(arguments)..., detail::Datum()};
    detail::Datum result;
    Value holder;
    auto made = state_->pullback(data, result, &holder);
    if (!made) return state_->take_error();
    R value{};
    detail::Crossing<R>::take(result, value);
    return Pullback<R(A...)>(std::move(made), std::move(value));
  }

  // Memory for one more thread. Returns an error, with the position, when the function writes to globals, reaches
  // outside the engine, or needs the engine otherwise; and when it is not native code with numbers and spans as
  // arguments and a number as result.
  Result<Workspace> workspace() const {
    Workspace made;
    made.state_ = state_->make_workspace();
    if (!made.state_) return state_->take_error();
    return made;
  }
  Result<R> operator()(Workspace& workspace, A... arguments) const {
    if (!fits_words(arguments...)) return no_word();
    const detail::Datum data[] = {detail::CrossingOf<A>::give(arguments)..., detail::Datum()};
    detail::Datum result;
    if (!fits(workspace)) return not_of_this(workspace);
    if (!workspace.state_->call(data, result)) return workspace.state_->take_error();
    if constexpr (std::is_void_v<R>) {
      return {};
    } else {
      return detail::taken<R>(result);
    }
  }
  template <class... G>
  Result<double> value_and_gradient(Workspace& workspace, A... arguments, G&&... gradients) const {
    if (!fits(workspace)) return not_of_this(workspace);
    return gradient_of(*workspace.state_, arguments..., gradients...);
  }

  // Whether nothing that it depends on has been redefined.
  bool is_current() const { return state_->is_current(); }
  // Takes the newest definitions. After an error the handle is unchanged.
  Result<void> refresh() {
    if (!state_->refresh()) return state_->take_error();
    return {};
  }

 private:
  static constexpr bool by_words = (detail::is_word(detail::CrossingOf<A>::kind) && ...) &&
                                   (std::is_void_v<R> || detail::is_word(detail::Crossing<R>::kind));

  // Only the fast path is inlined into the host at each call.
  static Result<R> result_of([[maybe_unused]] std::uint64_t word) {
    if constexpr (std::is_void_v<R>) {
      return {};
    } else if constexpr (std::is_same_v<R, double>) {
      return std::bit_cast<double>(word);
    } else {
      R value{};
      Error error;
      if (detail::of_word(word, value, error)) return value;
      return error;
    }
  }
  [[gnu::noinline]] Result<R> failed() const { return state_->take_error(); }
  [[gnu::noinline]] Result<R> call(const A&... arguments) const {
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

  static constexpr bool is_smooth = std::is_same_v<R, double> || std::is_same_v<R, std::vector<double>>;

  template <class Given, std::size_t... I>
  Result<void> hvp_of(const detail::Datum* data, const Given& given, std::index_sequence<I...>) const {
    const detail::TangentGiven direction[] = {detail::TangentGiven(std::get<I>(given))..., nullptr};
    const detail::GradientTarget targets[] = {detail::GradientTarget(std::get<sizeof...(I) + I>(given))..., nullptr};
    if (!state_->hvp(data, direction, targets)) return state_->take_error();
    return {};
  }
  // `State`: of the function or of a workspace. Only the fast path is inlined into the host.
  template <class State, class... G>
  static Result<double> gradient_of(State& state, const A&... arguments, G&... gradients) {
    if (!fits_words(arguments...)) return no_word();
    if constexpr ((detail::is_flat_argument<A> && ...) && (detail::is_flat_target<G> && ...) && sizeof...(A) > 0 &&
                  sizeof...(A) == sizeof...(G)) {
      if (state.gradient_at_once) [[likely]] {
        const detail::FlatArgument flat[] = {detail::flat_argument(arguments)...};
        const detail::FlatTarget targets[] = {detail::FlatTarget(gradients)...};
        double value = 0;
        const detail::AtOnce went = state.gradient_at_once(state, flat, targets, value);
        if (went == detail::AtOnce::done) [[likely]]
          return value;
        if (went == detail::AtOnce::failed) return state.take_error();
      }
    }
    return gradient<G...>(state, arguments..., gradients...);
  }
  template <class... G, class State>
  [[gnu::noinline]] static Result<double> gradient(State& state, const A&... arguments, G&... gradients) {
    static_assert(std::is_same_v<R, double>, "only a function that returns a double has a gradient");
    static_assert(sizeof...(G) == sizeof...(A),
                  "one place for the derivative of each argument; nullptr where none is wanted");
    const detail::Datum data[] = {detail::CrossingOf<A>::give(arguments)..., detail::Datum()};
    const detail::GradientTarget targets[] = {detail::GradientTarget(gradients)..., nullptr};
    double value = 0;
    if (!state.gradient(data, targets, value)) return state.take_error();
    return value;
  }
  static constexpr bool fits_words(const A&... arguments) { return (detail::fits_word(arguments) && ...); }
  [[gnu::noinline]] static Error no_word() {
    return detail::engine_error("an argument is " + std::string(detail::does_not_fit_word) +
                                    ", or an array of numbers at no address, or of more than memory can hold",
                                ErrorKind::conversion);
  }
  bool fits(const Workspace& workspace) const {
    return workspace.state_ && workspace.state_->of_function == state_.get();
  }
  static Error not_of_this(const Workspace& workspace) {
    return detail::engine_error(workspace.state_ ? "the workspace was made by another function"
                                                 : "the workspace is empty: it was moved from, or never assigned");
  }

  friend class Engine;
  explicit Function(std::shared_ptr<detail::FunctionState> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::FunctionState> state_;
};

}  // namespace slope::api
