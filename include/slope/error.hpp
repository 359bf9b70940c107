// Errors of scripts, and results that hold either an error or a value.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#if defined(__cpp_exceptions)
#include <stdexcept>
#endif

namespace slope::api {

enum class ErrorKind : unsigned char {
  syntax,       // the text does not parse; nothing of it ran
  runtime,      // a Slope exception that nobody caught
  conversion,   // a value does not convert to the C++ type, or an argument does not fit
  interrupted,  // Engine::interrupt
  exit,         // the script called exit(code)
  not_native,   // a typed handle of a function that compiled code alone cannot run; Error::position says where and why
  not_differentiable,  // a gradient that does not exist; Error::position says where
  engine,              // the engine cannot do it: a file that cannot be read, a name that is not a function
  limit,               // one of the limits in Options was reached
};

// Of a script's text. Line and column count from 1; line 0: unknown.
struct Position {
  std::string file = {};
  unsigned line = 0;
  unsigned column = 0;
};

struct Error {
  ErrorKind kind = ErrorKind::engine;
  std::string message = {};  // for people: everything, with position or trace; may have several lines, none at its end
  std::string summary = {};  // its first line: "BoundsError: attempt to access …"
  std::string type = {};     // of the Slope exception, "BoundsError"; empty for other kinds
  Position position = {};    // where, in the scripts that the host gave
  int exit_code = 1;         // of kind `exit`: what the script said
  std::exception_ptr cause = {};  // the C++ exception of a host function that became this error
};

#if defined(__cpp_exceptions)
// What Result::value() throws. Where the exception of a host function was the cause, it is nested in this one, for
// std::rethrow_if_nested.
class ScriptError : public std::runtime_error {
 public:
  explicit ScriptError(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};
#endif

namespace detail {
[[noreturn]] inline void fail(const Error& error) {
#if defined(__cpp_exceptions)
  if (!error.cause) throw ScriptError(error);
  try {
    std::rethrow_exception(error.cause);
  } catch (...) {
    std::throw_with_nested(ScriptError(error));
  }
#else
  std::fprintf(stderr, "slope: value() of a failed result: %s\n", error.message.c_str());
  std::abort();
#endif
}
Error engine_error(std::string message, ErrorKind kind = ErrorKind::engine);
inline const Error& no_error() {
  static const Error none;
  return none;
}
}  // namespace detail

// A value or an Error. `value()` of an error throws ScriptError; without exceptions it ends the process. Check ok()
// first.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  T& value() & {
    if (!ok()) detail::fail(error_);
    return *value_;
  }
  T value() && {  // not T&&: `for (auto& x : f().value())` is to outlive the result
    if (!ok()) detail::fail(error_);
    return std::move(*value_);
  }
  const T& value() const& {
    if (!ok()) detail::fail(error_);
    return *value_;
  }
  T value_or(T otherwise) const { return ok() ? *value_ : std::move(otherwise); }
  const Error& error() const { return error_; }  // without a message when ok()

 private:
  std::optional<T> value_;
  Error error_;
};

// Numbers travel on the fast road of calls: the error is on the heap, so that a success costs two words.
template <>
class [[nodiscard]] Result<double> {
 public:
  Result(double value) : value_(value) {}
  Result(Error error) : error_(new Error(std::move(error))) {}
  Result(Result&& other) noexcept : value_(other.value_), error_(std::exchange(other.error_, nullptr)) {}
  Result& operator=(Result&& other) noexcept {
    std::swap(value_, other.value_);
    std::swap(error_, other.error_);
    return *this;
  }
  ~Result() {
    if (error_) drop();
  }

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  double value() const {
    if (error_) detail::fail(*error_);
    return value_;
  }
  double value_or(double otherwise) const { return ok() ? value_ : otherwise; }
  const Error& error() const { return error_ ? *error_ : detail::no_error(); }

 private:
  [[gnu::noinline]] void drop() { delete error_; }
  double value_ = 0;
  Error* error_ = nullptr;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  void value() const {
    if (error_) detail::fail(*error_);
  }
  const Error& error() const { return error_ ? *error_ : detail::no_error(); }

 private:
  std::optional<Error> error_;
};

}  // namespace slope::api
