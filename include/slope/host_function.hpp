// A C++ callable as a Slope function. Its types come from its signature; the engine calls it through one virtual
// function.
#pragma once

#include <cstddef>
#include <memory>
#include <tuple>

#include "slope/convert.hpp"

namespace slope::api::detail {

// Holds the result of a host function until the engine has copied it, and the exception that the function threw.
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
  // The same in machine registers: R (*)(void* function, void** failure, A...) with double, std::int64_t and bool for
  // the words, where function is this object. When it fails it writes a HostFailure to `failure`, which was null.
  virtual void* register_call() const { return nullptr; }
  virtual bool never_fails() const { return false; }  // register_call leaves `failure` alone
  virtual std::span<const Kind> parameters() const = 0;
  virtual Kind result() const = 0;
  // Of parameters, and after them of the result, that are objects of the host's types: places in `objects`, as
  // integers.
  virtual const TypeKey* object_key(std::size_t) const { return nullptr; }
  ObjectTable* objects = nullptr;  // the engine's
};

template <class A>
using PlainOf = std::remove_cv_t<std::remove_reference_t<A>>;
template <class A>
inline constexpr bool is_object = is_host_type<PlainOf<A>>;
template <class A>
constexpr Kind kind_of_parameter() {
  if constexpr (is_object<A>) {
    return Kind::integer;
  } else {
    return CrossingOf<A>::kind;
  }
}
template <class A>
constexpr const TypeKey* key_of() {
  if constexpr (is_object<A>) {
    return &type_key<PlainOf<A>>;
  } else {
    return nullptr;
  }
}

// The machine register that a word travels in.
template <Kind kind>
struct RegisterOf {
  using type = std::int64_t;
};
template <>
struct RegisterOf<Kind::number> {
  using type = double;
};
template <>
struct RegisterOf<Kind::boolean> {
  using type = bool;
};
template <>
struct RegisterOf<Kind::nothing> {
  using type = void;
};
template <class A>
using Register = typename RegisterOf<kind_of_parameter<A>()>::type;

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

// A host function may return R or Result<R>; with the second it can fail without exceptions.
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
  } else if constexpr (is_array(kind)) {
    auto view = std::make_shared<const Plain>(value);  // what it views is copied before the host goes on
    result.datum = Crossing<Plain>::give(*view);
    result.object = std::move(view);
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

// One argument on its way into the C++ function. An object is not copied.
template <class A, bool = is_object<A>>
struct Argument {
  PlainOf<A> value{};
  bool take(const Datum& datum, ObjectTable*, std::string& error) {
    Result<PlainOf<A>> taken = detail::taken<PlainOf<A>>(datum);
    if (!taken.ok()) {
      error = taken.error().message;
      return false;
    }
    value = std::move(taken).value();
    return true;
  }
  bool take(std::uint64_t word, ObjectTable*, std::string& why) {
    Error error;
    if (of_word(word, value, error)) return true;
    why = error.message;
    return false;
  }
  A give() { return static_cast<A>(value); }
};
template <class A>
struct Argument<A, true> {
  PlainOf<A>* object = nullptr;
  bool take(const Datum& datum, ObjectTable* objects, std::string& error) {
    return take(static_cast<std::uint64_t>(datum.integer), objects, error);
  }
  bool take(std::uint64_t word, ObjectTable* objects, std::string& error) {
    object = static_cast<PlainOf<A>*>(objects->find(static_cast<std::int64_t>(word), key_of<A>()));
    if (!object) error = "the object is not one that the host made, or is gone";
    return object != nullptr;
  }
  std::conditional_t<std::is_reference_v<A>, A, const PlainOf<A>&> give() {
    return static_cast<std::conditional_t<std::is_reference_v<A>, A, const PlainOf<A>&>>(*object);
  }
};

template <>
struct Argument<const char*, false> {  // the script's text ends without a zero byte
  std::string value;
  bool take(const Datum& datum, ObjectTable*, std::string& error) {
    value = datum.text();
    if (value.find('\0') == std::string::npos) return true;
    error = "the text has a zero byte, at which a `const char*` would end: take a std::string_view";
    return false;
  }
  const char* give() { return value.c_str(); }
};

inline std::string at_argument(std::size_t index, const std::string& error) {
  return "argument " + std::to_string(index + 1) + ": " + error;
}

// What it writes to would be lost.
template <class A>
inline constexpr bool is_written =
    std::is_lvalue_reference_v<A> && !std::is_const_v<std::remove_reference_t<A>> && !is_object<A>;

template <class F, class Signature>
class Callable;
template <class F, class R, class... A>
class Callable<F, R(A...)> final : public HostFunction {
  static_assert(!(is_written<A> || ...),
                "a function of the host gets copies of the script's values: take them by value or const reference, and "
                "return what is new");
  static_assert(!(is_writable(kind_of_parameter<A>()) || ...),
                "a function of the host reads the script's arrays: take std::span<const double> or ArrayView<const "
                "double, N>, and return what is new");

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
    static constexpr Kind kinds[] = {kind_of_parameter<A>()..., Kind::nothing};
    return {kinds, sizeof...(A)};
  }
  Kind result() const override { return kind_of_parameter<PlainResult>(); }
  const TypeKey* object_key(std::size_t i) const override {
    static constexpr const TypeKey* keys[] = {key_of<A>()..., key_of<PlainResult>()};
    return keys[i];
  }
  WordCall word_call() const override {
    if constexpr (by_words) {
      return &call_words;
    } else {
      return nullptr;
    }
  }
  void* register_call() const override {
    if constexpr (by_words) {
      return reinterpret_cast<void*>(&call_registers);
    } else {
      return nullptr;
    }
  }
  bool never_fails() const override { return as_they_are && std::is_nothrow_invocable_v<F&, A...>; }

 private:
  using Returned = typename HostReturn<R>::type;
  using PlainResult = std::remove_cv_t<std::remove_reference_t<Returned>>;
  static constexpr bool by_words = (is_word(kind_of_parameter<A>()) && ...) &&
                                   (std::is_void_v<PlainResult> || is_word(kind_of_parameter<PlainResult>()));

  // The registers are the arguments, the result is the register.
  static constexpr bool as_they_are = by_words && std::is_same_v<R, PlainResult> &&
                                      (std::is_same_v<PlainOf<A>, Register<A>> && ...) &&
                                      (std::is_void_v<R> || std::is_same_v<R, Register<PlainResult>>);

  static Register<PlainResult> call_registers(void* self, void** failure, Register<A>... given) requires(by_words) {
    auto& callable = *static_cast<Callable*>(static_cast<HostFunction*>(self));
    auto failed = [&](HostFailure* why) {
      *failure = why;
      return Register<PlainResult>();
    };
    auto run = [&]() -> Register<PlainResult> {
      if constexpr (as_they_are) {
        return callable.function_(static_cast<A>(given)...);
      } else {
        const std::uint64_t words[] = {word_of(given)..., 0};
        std::uint64_t result = 0;
        if (HostFailure* why = callable.call_words(words, &result, std::index_sequence_for<A...>{})) return failed(why);
        if constexpr (std::is_same_v<Register<PlainResult>, double>) {
          return std::bit_cast<double>(result);
        } else {
          return static_cast<Register<PlainResult>>(result);
        }
      }
    };
#if defined(__cpp_exceptions)
    if constexpr (as_they_are && std::is_nothrow_invocable_v<F&, A...>) {
      return run();
    } else {
      try {
        return run();
      } catch (const std::exception& e) {
        return failed(new HostFailure{*e.what() ? e.what() : "a C++ exception", std::current_exception()});
      } catch (...) {
        return failed(new HostFailure{"a C++ exception", std::current_exception()});
      }
    }
#else
    return run();
#endif
  }

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
    std::tuple<Argument<A>...> values;
    std::string error;
    std::size_t wrong = 0;
    if (!((wrong = I, std::get<I>(values).take(arguments[I], objects, error)) && ...))
      return new HostFailure{at_argument(wrong, error), {}};
    if constexpr (std::is_void_v<R>) {
      function_(std::get<I>(values).give()...);
    } else if constexpr (std::is_same_v<R, Returned>) {
      return give_word(function_(std::get<I>(values).give()...), *result);
    } else {
      R returned = function_(std::get<I>(values).give()...);
      if (!returned.ok())
        return new HostFailure{returned.error().message.empty() ? "a host function failed" : returned.error().message,
                               {}};
      if constexpr (!std::is_void_v<Returned>) return give_word(std::move(returned).value(), *result);
    }
    return nullptr;
  }
  template <class T>
  HostFailure* give_word(T&& value, std::uint64_t& result) {
    if (!fits_word(value)) return new HostFailure{too_large(), {}};
    result = result_word(std::forward<T>(value));
    return nullptr;
  }
  static std::string too_large() { return "the host's function gives " + std::string(does_not_fit_word); }

  template <std::size_t... I>
  void call([[maybe_unused]] const Datum* arguments, HostResult& result, std::index_sequence<I...>) {
    std::tuple<Argument<A>...> values;
    std::string error;
    std::size_t wrong = 0;
    if (!((wrong = I, std::get<I>(values).take(arguments[I], objects, error)) && ...)) {
      result.error = at_argument(wrong, error);
      return;
    }
    if constexpr (std::is_void_v<R>) {
      function_(std::get<I>(values).give()...);
    } else if constexpr (std::is_same_v<R, Returned>) {
      keep(result, function_(std::get<I>(values).give()...));
    } else {
      R returned = function_(std::get<I>(values).give()...);
      if (!returned.ok()) {
        result.error = returned.error().message.empty() ? "a host function failed" : returned.error().message;
      } else if constexpr (!std::is_void_v<Returned>) {
        keep(result, std::move(returned).value());
      }
    }
  }

  template <class T>
  std::uint64_t result_word(T&& value) {
    if constexpr (is_object<T>) {
      return static_cast<std::uint64_t>(objects->add(new PlainOf<T>(std::forward<T>(value)), key_of<T>()));
    } else {
      return word_of(value);
    }
  }
  template <class T>
  void keep(HostResult& result, T&& value) {
    if constexpr (is_object<T>) {
      result.datum = Crossing<std::int64_t>::give(static_cast<std::int64_t>(result_word(std::forward<T>(value))));
    } else if (fits_word(value)) {
      keep_result(result, std::forward<T>(value));
    } else {
      result.error = too_large();
    }
  }

  F function_;
};

template <class F>
concept HasOneCall = requires {
  &F::operator();
};

template <class F>
std::unique_ptr<HostFunction> make_host_function(F&& function) {
  using Plain = std::decay_t<F>;
  static_assert(!std::is_member_pointer_v<Plain>,
                "a member needs its object: give a lambda that calls it, or tell the class with Engine::type");
  static_assert(!std::is_class_v<Plain> || HasOneCall<Plain>,
                "the types of the arguments are not known: give a callable that is neither generic nor overloaded");
  return std::make_unique<Callable<Plain, typename SignatureOf<Plain>::type>>(std::forward<F>(function));
}

}  // namespace slope::api::detail
