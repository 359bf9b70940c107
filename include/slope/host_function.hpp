// A C++ callable as a Slope function: its types come from its signature, the rest is behind one virtual call.
#pragma once

#include <cstddef>
#include <memory>
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

// What went wrong in a call by words.
struct HostFailure {
  std::string message;
  std::exception_ptr cause;
};

class HostFunction {
 public:
  virtual ~HostFunction() = default;
  virtual void call(const Datum* arguments, HostResult& result) = 0;
  // How machine code calls it: a word for each argument and one for the result, the bits of a double, an integer, a
  // boolean. Null: it went well; the caller owns what it gets otherwise. No such way: null.
  using WordCall = HostFailure* (*)(HostFunction* function, const std::uint64_t* arguments, std::uint64_t* result);
  virtual WordCall word_call() const { return nullptr; }
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

template <class T>
bool take_word(std::uint64_t word, std::size_t index, T& value, HostFailure*& failure) {
  Error error;
  if (of_word(word, value, error)) return true;
  failure = new HostFailure{"argument " + std::to_string(index + 1) + ": " + error.message, {}};
  return false;
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
  Kind result() const override { return Crossing<PlainResult>::kind; }
  WordCall word_call() const override {
    if constexpr (by_words) {
      return &call_words;
    } else {
      return nullptr;
    }
  }

 private:
  using Returned = typename HostReturn<R>::type;
  using PlainResult = std::remove_cv_t<std::remove_reference_t<Returned>>;
  static constexpr bool by_words =
      (is_word(CrossingOf<A>::kind) && ...) && (std::is_void_v<PlainResult> || is_word(Crossing<PlainResult>::kind));

  static HostFailure* call_words(HostFunction* self, const std::uint64_t* arguments, std::uint64_t* result) {
#if defined(__cpp_exceptions)
    try {
      return static_cast<Callable*>(self)->call_words(arguments, result, std::index_sequence_for<A...>{});
    } catch (const std::exception& e) {
      return new HostFailure{*e.what() ? e.what() : "a C++ exception", std::current_exception()};
    } catch (...) {
      return new HostFailure{"a C++ exception", std::current_exception()};
    }
#else
    return static_cast<Callable*>(self)->call_words(arguments, result, std::index_sequence_for<A...>{});
#endif
  }

  template <std::size_t... I>
  HostFailure* call_words([[maybe_unused]] const std::uint64_t* arguments, [[maybe_unused]] std::uint64_t* result,
                          std::index_sequence<I...>) {
    std::tuple<std::remove_cv_t<std::remove_reference_t<A>>...> values;
    HostFailure* failure = nullptr;
    if (!(take_word(arguments[I], I, std::get<I>(values), failure) && ...)) return failure;
    if constexpr (std::is_void_v<R>) {
      function_(static_cast<A>(std::get<I>(values))...);
    } else if constexpr (std::is_same_v<R, Returned>) {
      *result = word_of(function_(static_cast<A>(std::get<I>(values))...));
    } else {
      R returned = function_(static_cast<A>(std::get<I>(values))...);
      if (!returned.ok())
        return new HostFailure{returned.error().message.empty() ? "a host function failed" : returned.error().message,
                               {}};
      if constexpr (!std::is_void_v<Returned>) *result = word_of(std::move(returned).value());
    }
    return nullptr;
  }

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

template <class F>
std::unique_ptr<HostFunction> make_host_function(F&& function) {
  using Plain = std::decay_t<F>;
  return std::make_unique<Callable<Plain, typename SignatureOf<Plain>::type>>(std::forward<F>(function));
}

}  // namespace slope::api::detail
