// Structures of the host as structures of scripts, field by field.
//
//   struct Point { double x = 0, y = 0; };
//   SLOPE_STRUCTURE(Point, x, y)                          // at namespace scope
//
//   engine.run(slope::definition<Point>()).value();       // struct Point x::Float64; y::Float64 end, unless the script
//                                                         // has one of its own
//   engine.set("corner", Point{1, 2}).value();            // calls Point(1.0, 2.0)
//   Point p = engine.eval<Point>("Point(3, 4)").value();  // reads fields by name, also those of a named tuple
#pragma once

#include <tuple>

#include "slope/engine.hpp"

namespace slope::api {

// What SLOPE_STRUCTURE specialises: `name`, and `members`, a tuple of Member.
template <class T>
struct Structure;

template <class T, class M>
struct Member {
  const char* name;
  M T::*pointer;
  using Type = M;
};
template <class T, class M>
constexpr Member<T, M> member(const char* name, M T::*pointer) {
  return {name, pointer};
}

namespace detail {

const char* declared_type(Kind kind);  // "Float64"; "Any" for what has no one type
std::string structure_text(const char* name, const std::pair<const char*, Kind>* fields, std::size_t count);
Error inside(Error error, const std::string& where);

template <class T>
struct Crossing<T, std::void_t<decltype(Structure<T>::name)>> : Composite<T> {
  static bool build(Builder& builder, const T& value) {
    return std::apply(
        [&](const auto&... member) {
          return (builder.push(CrossingOf<decltype(value.*member.pointer)>::give(value.*member.pointer)) && ...) &&
                 builder.call(Structure<T>::name, sizeof...(member));
        },
        Structure<T>::members);
  }
  static bool cotangent(const Value& value, const T& argument, T& result, Error& error) {
    return std::apply([&](const auto&... member) { return (take(value, member, argument, result, error) && ...); },
                      Structure<T>::members);
  }
  static Result<T> from(const Value& value) {
    T result{};
    Error error;
    bool all = std::apply([&](const auto&... member) { return (take(value, member, result, error) && ...); },
                          Structure<T>::members);
    if (all) return result;
    return error;
  }

 private:
  template <class M>
  static bool take(const Value& value, const M& member, T& result, Error& error) {
    Result<Value> part = value.field(member.name);
    if (!part.ok()) {
      error = inside(part.error(), std::string("as a `") + Structure<T>::name + "`");
      error.kind = ErrorKind::conversion;
      return false;
    }
    auto taken = part.value().template to<typename M::Type>();
    if (!taken.ok()) {
      error = inside(taken.error(), std::string("field `") + member.name + "` of `" + Structure<T>::name + "`");
      return false;
    }
    result.*member.pointer = std::move(taken).value();
    return true;
  }
  template <class M>
  static bool take(const Value& value, const M& member, const T& argument, T& result, Error& error) {
    Value part;
    if (!value.is_nothing()) {
      Result<Value> found = value.field(member.name);
      if (found.ok()) part = std::move(found).value();
    }
    if (take_cotangent(part, argument.*member.pointer, result.*member.pointer, error)) return true;
    error = inside(error, std::string("derivative of field `") + member.name + "`");
    return false;
  }
};

}  // namespace detail

// The Slope text that defines the structure.
template <class T>
std::string definition() {
  return std::apply(
      [](const auto&... member) {
        const std::pair<const char*, detail::Kind> fields[] = {
            {member.name, detail::Crossing<typename std::decay_t<decltype(member)>::Type>::kind}...};
        return detail::structure_text(Structure<T>::name, fields, sizeof...(member));
      },
      Structure<T>::members);
}

}  // namespace slope::api

#define SLOPE_EACH_1(f, T, a) f(T, a)
#define SLOPE_EACH_2(f, T, a, ...) f(T, a), SLOPE_EACH_1(f, T, __VA_ARGS__)
#define SLOPE_EACH_3(f, T, a, ...) f(T, a), SLOPE_EACH_2(f, T, __VA_ARGS__)
#define SLOPE_EACH_4(f, T, a, ...) f(T, a), SLOPE_EACH_3(f, T, __VA_ARGS__)
#define SLOPE_EACH_5(f, T, a, ...) f(T, a), SLOPE_EACH_4(f, T, __VA_ARGS__)
#define SLOPE_EACH_6(f, T, a, ...) f(T, a), SLOPE_EACH_5(f, T, __VA_ARGS__)
#define SLOPE_EACH_7(f, T, a, ...) f(T, a), SLOPE_EACH_6(f, T, __VA_ARGS__)
#define SLOPE_EACH_8(f, T, a, ...) f(T, a), SLOPE_EACH_7(f, T, __VA_ARGS__)
#define SLOPE_EACH_9(f, T, a, ...) f(T, a), SLOPE_EACH_8(f, T, __VA_ARGS__)
#define SLOPE_EACH_10(f, T, a, ...) f(T, a), SLOPE_EACH_9(f, T, __VA_ARGS__)
#define SLOPE_EACH_11(f, T, a, ...) f(T, a), SLOPE_EACH_10(f, T, __VA_ARGS__)
#define SLOPE_EACH_12(f, T, a, ...) f(T, a), SLOPE_EACH_11(f, T, __VA_ARGS__)
#define SLOPE_COUNTED(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, name, ...) name
#define SLOPE_EACH(f, T, ...)                                                                                       \
  SLOPE_COUNTED(__VA_ARGS__, SLOPE_EACH_12, SLOPE_EACH_11, SLOPE_EACH_10, SLOPE_EACH_9, SLOPE_EACH_8, SLOPE_EACH_7, \
                SLOPE_EACH_6, SLOPE_EACH_5, SLOPE_EACH_4, SLOPE_EACH_3, SLOPE_EACH_2, SLOPE_EACH_1)                 \
  (f, T, __VA_ARGS__)
#define SLOPE_MEMBER(T, field) ::slope::api::member(#field, &T::field)
// Up to twelve fields; for more, specialise slope::api::Structure by hand.
#define SLOPE_STRUCTURE(T, ...)                                                                \
  template <>                                                                                  \
  struct slope::api::Structure<T> {                                                            \
    static constexpr const char* name = #T;                                                    \
    static constexpr auto members = std::make_tuple(SLOPE_EACH(SLOPE_MEMBER, T, __VA_ARGS__)); \
  };
