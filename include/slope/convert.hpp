// How values convert between C++ and Slope.
//
//   C++                                           Slope
//   double, float                                 Float64 (from Slope: any real number)
//   signed and unsigned integers                  Int64; UInt64 from 2^63 on (from Slope: any integer in range)
//   bool                                          Bool
//   enumerations                                  the integer
//   char, char32_t                                Char
//   std::string, std::string_view, const char*    String
//   std::span<const double>, std::vector<double>  Vector{Float64}
//   std::span<double>                             Vector{Float64}, as an argument that the script may write
//   slope::ArrayView                              Array{Float64,N}: slope/array.hpp
//   slope::Value                                  anything
//   containers, tuples, optional, variant         slope/containers.hpp
//   structures of your own                        slope/structure.hpp
//
// Spans and string views that come from Slope are valid until the engine is used again. Every value passes through one
// plain struct, Datum, so that the templates here contain no more than the conversion itself.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "slope/value.hpp"

namespace slope::api::detail {

// From 128 on: arrays of several dimensions (slope/array.hpp), and memory that scripts may write to. `numbers` is an
// array of one dimension that they may not.
// `keyword`: of an argument of a call by name. `large`: of a datum where `integer` is expected, one from 2^63 on.
enum class Kind : std::uint8_t { nothing, boolean, integer, number, text, numbers, any, composite, large, keyword };
class Builder;
struct TypeKey;

// A datum of this kind is valid as long as something holds the value that it views.
constexpr bool views_memory(Kind kind) { return kind >= Kind::text; }

// `layout` as in api::Layout.
constexpr Kind array_kind(std::size_t dimensions, unsigned layout, bool writable) {
  if (dimensions == 1 && layout != 2 && !writable) return Kind::numbers;
  return static_cast<Kind>(128u | static_cast<unsigned>(writable) << 5 | layout << 3 |
                           static_cast<unsigned>(dimensions));
}
constexpr bool is_array(Kind kind) { return kind == Kind::numbers || static_cast<unsigned>(kind) >= 128u; }
constexpr std::size_t dimensions_of(Kind kind) {
  return kind == Kind::numbers ? 1 : static_cast<std::size_t>(static_cast<unsigned>(kind) & 7u);
}
constexpr unsigned layout_of(Kind kind) { return kind == Kind::numbers ? 0 : static_cast<unsigned>(kind) >> 3 & 3u; }
constexpr bool is_writable(Kind kind) {
  return static_cast<unsigned>(kind) >= 128u && (static_cast<unsigned>(kind) & 32u) != 0;
}

struct Datum {
  Kind kind = Kind::nothing;
  union {
    std::int64_t integer = 0;  // boolean too
    double number;
    const void* data;  // text: char; arrays: double; any: a Value*
  };
  union {
    std::size_t size = 0;                                 // of text, and of arrays: all elements
    bool (*build)(Builder& builder, const void* object);  // composite: `data` is the C++ object
  };
  const std::size_t* extents = nullptr;  // of arrays but `numbers`: the shape, then the strides in elements

  static Datum of_numbers(const double* data, std::size_t size) {
    Datum d;
    d.kind = Kind::numbers;
    d.data = data;
    d.size = size;
    return d;
  }
  static Datum of_text(std::string_view text) {
    Datum d;
    d.kind = Kind::text;
    d.data = text.data();
    d.size = text.size();
    return d;
  }
  std::string_view text() const { return {static_cast<const char*>(data), size}; }
  std::span<const double> numbers() const { return {static_cast<const double*>(data), size}; }
};

// A keyword argument: slope::keyword.
struct Keyword {
  std::string_view name;
  Datum value;
};

// `give` makes a Datum that views `value`; `take` reads one of the right kind, and returns false when it does not fit.
template <class T, class = void>
struct Crossing {
  static_assert(
      sizeof(T) == 0,
      "no conversion between this C++ type and Slope: include slope/containers.hpp for the standard library's, "
      "SLOPE_STRUCTURE (slope/structure.hpp) or SLOPE_TYPE (slope/type.hpp) for your own");
};

template <>
struct Crossing<void> {
  static constexpr Kind kind = Kind::nothing;
};

template <>
struct Crossing<bool> {
  static constexpr Kind kind = Kind::boolean;
  static Datum give(bool value) {
    Datum d;
    d.kind = kind;
    d.integer = value;
    return d;
  }
  static bool take(const Datum& d, bool& value) {
    value = d.integer != 0;
    return true;
  }
};

// Converts to itself only: no argument of a typed function has this type.
template <>
struct Crossing<std::nullptr_t> {
  static constexpr Kind kind = Kind::nothing;
  static Datum give(std::nullptr_t) { return {}; }
};

template <class T>
inline constexpr bool is_character = std::is_same_v<T, char> || std::is_same_v<T, char32_t>;
template <class T>
inline constexpr bool is_integer = std::is_integral_v<T> && !std::is_same_v<T, bool> && !is_character<T>;
template <class T>
struct Crossing<T, std::enable_if_t<is_integer<T>>> {
  static constexpr Kind kind = Kind::integer;
  static Datum give(T value) {
    Datum d;
    d.kind = std::is_unsigned_v<T> && static_cast<std::int64_t>(value) < 0 ? Kind::large : kind;
    d.integer = static_cast<std::int64_t>(value);
    return d;
  }
  static bool take(const Datum& d, T& value) {
    value = static_cast<T>(d.integer);
    return static_cast<std::int64_t>(value) == d.integer && (value < T{}) == (d.integer < 0 && d.kind != Kind::large);
  }
};

template <class T>
struct Crossing<T, std::enable_if_t<std::is_enum_v<T>>> {
  using Integer = std::underlying_type_t<T>;
  using Plain = std::conditional_t<is_integer<Integer> || std::is_same_v<Integer, bool>, Integer, signed char>;
  static constexpr Kind kind = Crossing<Plain>::kind;
  static Datum give(T value) { return Crossing<Plain>::give(static_cast<Plain>(value)); }
  static bool take(const Datum& d, T& value) {
    Plain plain{};
    if (!Crossing<Plain>::take(d, plain)) return false;
    value = static_cast<T>(plain);
    return true;
  }
};

template <class T>
struct Crossing<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static constexpr Kind kind = Kind::number;
  static Datum give(T value) {
    Datum d;
    d.kind = kind;
    d.number = static_cast<double>(value);
    return d;
  }
  static bool take(const Datum& d, T& value) {
    value = static_cast<T>(d.number);
    return true;
  }
};

template <class T>
struct TextCrossing {
  static constexpr Kind kind = Kind::text;
  static Datum give(const T& value) { return Datum::of_text(value); }
  static bool take(const Datum& d, T& value) {
    value = T(d.text());
    return true;
  }
};
template <>
struct Crossing<std::string> : TextCrossing<std::string> {};
template <>
struct Crossing<std::string_view> : TextCrossing<std::string_view> {};
template <>
struct Crossing<const char*> {
  static constexpr Kind kind = Kind::text;
  static Datum give(const char* value) { return value ? Datum::of_text(value) : Datum(); }  // a null one: nothing
};

template <>
struct Crossing<std::span<const double>> {
  static constexpr Kind kind = Kind::numbers;
  static Datum give(std::span<const double> value) { return Datum::of_numbers(value.data(), value.size()); }
  static bool take(const Datum& d, std::span<const double>& value) {
    value = d.numbers();
    return true;
  }
};
// As an argument: memory that the script may write to. No result converts to one.
template <>
struct Crossing<std::span<double>> {
  static constexpr Kind kind = array_kind(1, 0, true);
  static Datum give(std::span<double> value) {
    Datum d = Datum::of_numbers(value.data(), value.size());
    d.kind = kind;
    return d;
  }
};
template <>
struct Crossing<std::vector<double>> {
  static constexpr Kind kind = Kind::numbers;
  static Datum give(const std::vector<double>& value) { return Datum::of_numbers(value.data(), value.size()); }
  static bool take(const Datum& d, std::vector<double>& value) {
    value.assign(d.numbers().begin(), d.numbers().end());
    return true;
  }
};

template <>
struct Crossing<Value> {
  static constexpr Kind kind = Kind::any;
  static Datum give(const Value& value) {
    Datum d;
    d.kind = kind;
    d.data = &value;
    return d;
  }
  static bool take(const Datum& d, Value& value) {
    value = *static_cast<const Value*>(d.data);
    return true;
  }
};

template <>
struct Crossing<Keyword> {
  static constexpr Kind kind = Kind::keyword;
  static Datum give(const Keyword& value) {
    Datum d;
    d.kind = kind;
    d.data = &value;
    return d;
  }
};

template <class T>
using CrossingOf = Crossing<std::remove_cv_t<std::remove_reference_t<T>>>;

// Makes the Slope value of a composite, parts first: each part is pushed, and what is made of parts takes them away.
// False everywhere: an error is pending in the engine.
class Builder {
 public:
  virtual bool push(const Datum& datum) = 0;
  virtual bool tuple(std::size_t count) = 0;
  // A vector whose elements are of the kind; of the others' most narrow common type.
  virtual bool vector(std::size_t count, Kind kind) = 0;
  virtual bool dictionary(std::size_t count, Kind key, Kind mapped) = 0;  // of keys, each followed by its value
  virtual bool call(std::string_view name, std::size_t count) = 0;        // a function or type of Main
  virtual bool object(const void* object, const TypeKey* key, void* (*copy)(const void*)) = 0;  // of the host's types

 protected:
  ~Builder() = default;
};

// What a composite type's Crossing has beside its kind:
//   static bool build(Builder&, const T&)          pushes one value
//   static Result<T> from(const Value&)
template <class T>
struct Composite {
  static constexpr Kind kind = Kind::composite;
  static Datum give(const T& value) {
    Datum d;
    d.kind = kind;
    d.data = &value;
    d.build = [](Builder& builder, const void* object) {
      return Crossing<T>::build(builder, *static_cast<const T*>(object));
    };
    return d;
  }
};

// Characters. A char is one of ASCII.
struct CharacterCrossing {
  static bool build(Builder& builder, std::uint32_t code, bool is_ascii);
  static bool read(const Value& value, std::uint32_t& code, Error& error);
  static Error not_ascii(const Value& value);
};
template <class T>
struct Crossing<T, std::enable_if_t<is_character<T>>> : Composite<T> {
  static constexpr bool is_ascii = std::is_same_v<T, char>;
  static bool build(Builder& builder, T value) {
    return CharacterCrossing::build(builder, static_cast<std::make_unsigned_t<T>>(value), is_ascii);
  }
  static Result<T> from(const Value& value) {
    std::uint32_t code = 0;
    Error error;
    if (!CharacterCrossing::read(value, code, error)) return error;
    if (is_ascii && code > 127) return CharacterCrossing::not_ascii(value);
    return static_cast<T>(code);
  }
  static bool cotangent(const Value&, T, T& result, Error&) {
    result = T{};
    return true;
  }
};

// Integers that typed functions and results of functions of the host take as Int64.
template <class T>
constexpr bool may_be_large() {
  if constexpr (std::is_enum_v<T>) {
    return may_be_large<std::underlying_type_t<T>>();
  } else {
    return is_integer<T> && std::is_unsigned_v<T> && sizeof(T) == sizeof(std::int64_t);
  }
}
// Memory for so many numbers: null for none alone, and no more bytes than there are addresses.
inline constexpr std::size_t most_numbers = std::size_t{1} << 58;
constexpr bool is_memory(const void* data, std::size_t size) { return (data || size == 0) && size <= most_numbers; }
template <class T>
constexpr bool fits_word([[maybe_unused]] const T& value) {
  if constexpr (may_be_large<T>()) {
    return static_cast<std::int64_t>(value) >= 0;
  } else if constexpr (std::is_same_v<T, std::span<const double>> || std::is_same_v<T, std::span<double>> || requires {
                         value.extents();
                         value.extent(0);
                         value.stride(0);
                       }) {
    return is_memory(value.data(), value.size());
  } else {
    return true;
  }
}

inline constexpr const char* does_not_fit_word = "an integer that Int64 does not hold";
Error does_not_fit(const Datum& d, std::size_t bytes, bool is_signed);  // an integer outside the C++ type's range

// Types of the host that scripts see as types of their own (slope/type.hpp). Scripts hold an index into the engine's
// table of such objects, so that a script cannot reach other memory.
template <class T>
inline constexpr bool is_host_type = false;  // SLOPE_TYPE specialises it
struct TypeKey {};
template <class T>
inline constexpr TypeKey type_key{};  // its address is the type
class ObjectTable {
 public:
  virtual void* find(std::int64_t place, const TypeKey* key) = 0;  // null: gone, or of another type
  virtual std::int64_t add(void* object, const TypeKey* key) = 0;  // takes it over
 protected:
  ~ObjectTable() = default;
};

// Words: the arguments and results of machine code, the bits of a double, an integer, a boolean.
constexpr bool is_word(Kind kind) { return kind == Kind::boolean || kind == Kind::integer || kind == Kind::number; }

template <class T>
std::uint64_t word_of(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<std::uint64_t>(static_cast<double>(value));
  } else {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }
}

// False, with the error: an integer outside the C++ type's range.
template <class T>
bool of_word(std::uint64_t word, T& value, Error& error) {
  if constexpr (std::is_floating_point_v<T>) {
    value = static_cast<T>(std::bit_cast<double>(word));
  } else if constexpr (Crossing<T>::kind == Kind::boolean) {
    value = static_cast<T>(word != 0);
  } else {
    Datum datum;
    datum.kind = Kind::integer;
    datum.integer = static_cast<std::int64_t>(word);
    if (!Crossing<T>::take(datum, value)) {
      error = does_not_fit(datum, sizeof(T), std::is_signed_v<T>);
      return false;
    }
  }
  return true;
}

template <class T>
Result<T> taken(const Datum& d) {
  if constexpr (Crossing<T>::kind == Kind::composite) {
    return Crossing<T>::from(*static_cast<const Value*>(d.data));
  } else {
    T value{};
    if (Crossing<T>::take(d, value)) return value;
    return does_not_fit(d, sizeof(T), std::is_signed_v<T>);
  }
}

// A cotangent of an argument as the C++ type of the argument: parts without derivative are zero, as many as `argument`
// has. Composites say how for their parts:
//   static bool cotangent(const Value& cotangent, const T& argument, T& result, Error&)
template <class T>
bool take_cotangent(const Value& cotangent, const T& argument, T& result, Error& error) {
  if constexpr (Crossing<T>::kind == Kind::composite) {
    return Crossing<T>::cotangent(cotangent, argument, result, error);
  } else if constexpr (Crossing<T>::kind == Kind::number || Crossing<T>::kind == Kind::numbers) {
    if (cotangent.is_nothing()) {
      if constexpr (Crossing<T>::kind == Kind::numbers) {
        result.assign(argument.size(), 0.0);
      } else {
        result = 0;
      }
      return true;
    }
    Result<T> taken = cotangent.template to<T>();
    if (taken.ok()) {
      result = std::move(taken).value();
    } else {
      error = taken.error();
    }
    return taken.ok();
  } else {
    result = T{};
    return true;
  }
}

}  // namespace slope::api::detail

namespace slope::api {

// Among the arguments of Engine::call or of the call of a Value; to be made there, for it views `value`.
//   engine.call("fit", data, slope::keyword("steps", 100)).value();
template <class T>
detail::Keyword keyword(std::string_view name, const T& value) {
  return {name, detail::Crossing<std::decay_t<const T>>::give(value)};
}

}  // namespace slope::api
