// A C++ callable as a Slope function: its types come from its signature, the rest is behind one virtual call.
#pragma once

#include <cstddef>
#include <tuple>

#include "slope/convert.hpp"

namespace slope::api::detail {

// Where the result of a host function lies until the engine has copied it, and what the function threw.
struct HostResult {
  Datum datum;
  std::string text;
  std::vector<double> numbers;
  std::shared_ptr<const void> object;  // a composite
  Value value;
  std::string error;  // not empty: the call failed
  std::exception_ptr cause;
};

class HostFunction {
 public:
  virtual ~HostFunction() = default;
  virtual void call(const Datum* arguments, HostResult& result) = 0;
  virtual std::span<const Kind> parameters() const = 0;
  virtual Kind result() const = 0;
};

template <class F>
struct SignatureOf : SignatureOf<decltype(&F::operator())> {};
template <class R, class... A>
struct SignatureOf<R(A...)> {
  using type = R(A...);
};
template <class R, class... A>
struct SignatureOf<R (*)(A...)> : SignatureOf<R(A...)> {};
template <class R, class... A>
struct SignatureOf<R (*)(A...) noexcept> : SignatureOf<R(A...)> {};
template <class C, class R, class... A>
struct SignatureOf<R (C::*)(A...)> : SignatureOf<R(A...)> {};
template <class C, class R, class... A>
struct SignatureOf<R (C::*)(A...) const> : SignatureOf<R(A...)> {};
template <class C, class R, class... A>
struct SignatureOf<R (C::*)(A...) noexcept> : SignatureOf<R(A...)> {};
template <class C, class R, class... A>
struct SignatureOf<R (C::*)(A...) const noexcept> : SignatureOf<R(A...)> {};

// A host function may say R or Result<R>; the second is how one fails without exceptions.
template <class R>
struct HostReturn {
  using type = R;
};
template <class R>
struct HostReturn<Result<R>> {
  using type = R;
};

template <class T>
void keep_result(HostResult& result, T&& value) {
  using Plain = std::remove_cv_t<std::remove_reference_t<T>>;
  constexpr Kind kind = Crossing<Plain>::kind;
  if constexpr (kind == Kind::text) {
    result.text = value;
    result.datum = Datum::of_text(result.text);
  } else if constexpr (kind == Kind::numbers) {
    result.numbers.assign(value.begin(), value.end());
    result.datum = Datum::of_numbers(result.numbers.data(), result.numbers.size());
  } else if constexpr (kind == Kind::any) {
    result.value = std::forward<T>(value);
    result.datum = Crossing<Value>::give(result.value);
  } else if constexpr (kind == Kind::composite) {
    auto object = std::make_shared<const Plain>(std::forward<T>(value));
    result.datum = Crossing<Plain>::give(*object);
    result.object = std::move(object);
  } else {
    result.datum = Crossing<Plain>::give(value);
  }
}

template <class T>
bool take_argument(const Datum& datum, std::size_t index, T& value, HostResult& result) {
  Result<T> taken = detail::taken<T>(datum);
  if (!taken.ok()) {
    result.error = "argument " + std::to_string(index + 1) + ": " + taken.error().message;
    return false;
  }
  value = std::move(taken).value();
  return true;
}

template <class F, class Signature>
class Callable;
template <class F, class R, class... A>
class Callable<F, R(A...)> final : public HostFunction {
 public:
  explicit Callable(F function) : function_(std::move(function)) {}

  void call(const Datum* arguments, HostResult& result) override {
#if defined(__cpp_exceptions)
    try {
      call(arguments, result, std::index_sequence_for<A...>{});
    } catch (const std::exception& e) {
      result.error = e.what();
      if (result.error.empty()) result.error = "a C++ exception";
      result.cause = std::current_exception();
    } catch (...) {
      result.error = "a C++ exception";
      result.cause = std::current_exception();
    }
#else
    call(arguments, result, std::index_sequence_for<A...>{});
#endif
  }
  std::span<const Kind> parameters() const override {
    static constexpr Kind kinds[] = {CrossingOf<A>::kind..., Kind::nothing};
    return {kinds, sizeof...(A)};
  }
  Kind result() const override { return Crossing<std::remove_cv_t<std::remove_reference_t<Returned>>>::kind; }

 private:
  using Returned = typename HostReturn<R>::type;

  template <std::size_t... I>
  void call([[maybe_unused]] const Datum* arguments, HostResult& result, std::index_sequence<I...>) {
    std::tuple<std::remove_cv_t<std::remove_reference_t<A>>...> values;
    if (!(take_argument(arguments[I], I, std::get<I>(values), result) && ...)) return;
    if constexpr (std::is_void_v<R>) {
      function_(static_cast<A>(std::get<I>(values))...);
    } else if constexpr (std::is_same_v<R, Returned>) {
      keep_result(result, function_(static_cast<A>(std::get<I>(values))...));
    } else {
      R returned = function_(static_cast<A>(std::get<I>(values))...);
      if (!returned.ok()) {
        result.error = returned.error().message.empty() ? "a host function failed" : returned.error().message;
      } else if constexpr (!std::is_void_v<Returned>) {
        keep_result(result, std::move(returned).value());
      }
    }
  }

  F function_;
};

}  // namespace slope::api::detail
