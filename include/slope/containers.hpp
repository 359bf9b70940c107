// The standard library's containers, in both directions and in any nesting.
//
//   std::vector<T>, std::array<T, N>,          Vector; from Slope: anything that can be iterated
//   std::deque<T>, std::list<T>
//   std::span<const T>                         Vector, a copy; to Slope only (of double: slope/convert.hpp)
//   std::set<T>, std::unordered_set<T>         Set; from Slope: anything that can be iterated
//   std::complex<T>                            ComplexF64; from Slope: any number
//   std::tuple, std::pair                      Tuple; from Slope: tuples, pairs, named tuples, arrays of that length
//   std::optional<T>                           the value, or `nothing`
//   std::variant<A, B, …>                      from Slope: the alternative of the value's own kind, otherwise the first
//                                              to which the value converts
//   std::map, std::unordered_map               Dict; from Slope: any dictionary
#pragma once

#include <array>
#include <complex>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

#include "slope/engine.hpp"

namespace slope::api::detail {

// What the value is by itself: `composite` for whatever has parts, `any` for the rest.
Kind kind_of(const Value& value);
Error not_convertible(const Value& value, const std::string& wanted);
Error inside(Error error, const std::string& where);  // "element 3: …"

template <class T>
bool push(Builder& builder, const T& value) {
  return builder.push(Crossing<T>::give(value));
}

template <class C>
bool build_sequence(Builder& builder, const C& sequence) {
  using T = typename C::value_type;
  std::size_t count = 0;
  for (const auto& element : sequence) {
    if (!push<T>(builder, element)) return false;
    ++count;
  }
  return builder.vector(count, Crossing<T>::kind);
}

template <class T, class Take>
Result<void> take_elements(const Value& value, Take take) {
  Result<std::vector<Value>> elements = value.elements();
  if (!elements.ok()) return elements.error();
  std::size_t index = 0;
  for (const Value& element : elements.value()) {
    Result<T> taken = element.template to<T>();
    ++index;
    if (!taken.ok()) return inside(taken.error(), "element " + std::to_string(index));
    take(std::move(taken).value());
  }
  return {};
}

// Of an array: element by element.
template <class C>
bool take_cotangents(const Value& value, const C& argument, C& result, Error& error) {
  using T = typename C::value_type;
  std::size_t index = 0;
  for (const T& element : argument) {
    Value part;
    if (!value.is_nothing()) {
      Result<Value> found = value.at(index);
      if (!found.ok()) {
        error = found.error();
        return false;
      }
      part = std::move(found).value();
    }
    T taken{};
    if (!take_cotangent<T>(part, element, taken, error)) {
      error = inside(error, "derivative of element " + std::to_string(index + 1));
      return false;
    }
    result[index++] = std::move(taken);
  }
  return true;
}

template <class T>
struct Crossing<std::vector<T>, std::enable_if_t<!std::is_same_v<T, double>>> : Composite<std::vector<T>> {
  static bool build(Builder& builder, const std::vector<T>& value) { return build_sequence(builder, value); }
  static Result<std::vector<T>> from(const Value& value) {
    std::vector<T> result;
    Result<void> taken = take_elements<T>(value, [&](T element) { result.push_back(std::move(element)); });
    if (!taken.ok()) return taken.error();
    return result;
  }
  static bool cotangent(const Value& value, const std::vector<T>& argument, std::vector<T>& result, Error& error) {
    result.resize(argument.size());
    return take_cotangents(value, argument, result, error);
  }
};

// Derivatives go into vectors and arrays.
template <class C>
struct SequenceCrossing : Composite<C> {
  using T = typename C::value_type;
  static bool build(Builder& builder, const C& value) { return build_sequence(builder, value); }
  static Result<C> from(const Value& value) {
    C result;
    Result<void> taken = take_elements<T>(value, [&](T element) { result.insert(result.end(), std::move(element)); });
    if (!taken.ok()) return taken.error();
    return result;
  }
};
template <class T>
struct Crossing<std::deque<T>> : SequenceCrossing<std::deque<T>> {};
template <class T>
struct Crossing<std::list<T>> : SequenceCrossing<std::list<T>> {};

template <class C>
struct SetCrossing : SequenceCrossing<C> {
  static bool build(Builder& builder, const C& value) {
    return build_sequence(builder, value) && builder.call("Set", 1);
  }
};
template <class T, class... More>
struct Crossing<std::set<T, More...>> : SetCrossing<std::set<T, More...>> {};
template <class T, class... More>
struct Crossing<std::unordered_set<T, More...>> : SetCrossing<std::unordered_set<T, More...>> {};

template <class T>
struct Crossing<std::span<const T>, std::enable_if_t<!std::is_same_v<T, double>>> : Composite<std::span<const T>> {
  static bool build(Builder& builder, const std::span<const T>& value) { return build_sequence(builder, value); }
};

template <class T>
struct Crossing<std::complex<T>> : Composite<std::complex<T>> {
  static bool build(Builder& builder, const std::complex<T>& value) {
    return push(builder, value.real()) && push(builder, value.imag()) && builder.call("ComplexF64", 2);
  }
  static Result<std::complex<T>> from(const Value& value) {
    if (value.is_a("Complex")) return of_fields(value);
    if (Result<T> real = value.template to<T>(); real.ok()) return std::complex<T>(real.value());
    return not_convertible(value, "a number");
  }
  static bool cotangent(const Value& value, const std::complex<T>&, std::complex<T>& result, Error& error) {
    result = {};
    if (value.is_nothing()) return true;
    Result<std::complex<T>> taken = of_fields(value);  // a Complex or a named tuple
    if (taken.ok()) {
      result = taken.value();
    } else {
      error = taken.error();
    }
    return taken.ok();
  }

 private:
  static Result<std::complex<T>> of_fields(const Value& value) {
    const Result<Value> parts[] = {value.field("re"), value.field("im")};
    T numbers[2] = {};
    for (int i = 0; i < 2; ++i) {
      if (!parts[i].ok()) return parts[i].error();
      Result<T> number = parts[i].value().template to<T>();
      if (!number.ok()) return number.error();
      numbers[i] = number.value();
    }
    return std::complex<T>(numbers[0], numbers[1]);
  }
};

template <class T, std::size_t N>
struct Crossing<std::array<T, N>> : Composite<std::array<T, N>> {
  static bool build(Builder& builder, const std::array<T, N>& value) { return build_sequence(builder, value); }
  static Result<std::array<T, N>> from(const Value& value) {
    std::array<T, N> result{};
    Result<std::size_t> size = value.size();
    if (!size.ok() || size.value() != N) return not_convertible(value, std::to_string(N) + " elements");
    std::size_t i = 0;
    Result<void> taken = take_elements<T>(value, [&](T element) {
      if (i < N) result[i++] = std::move(element);
    });
    if (!taken.ok()) return taken.error();
    return result;
  }
  static bool cotangent(const Value& value, const std::array<T, N>& argument, std::array<T, N>& result, Error& error) {
    return take_cotangents(value, argument, result, error);
  }
};

template <class Tuple>
struct TupleCrossing : Composite<Tuple> {
  static constexpr std::size_t size = std::tuple_size_v<Tuple>;
  static bool build(Builder& builder, const Tuple& value) {
    return std::apply([&](const auto&... parts) { return (push(builder, parts) && ...) && builder.tuple(size); },
                      value);
  }
  static Result<Tuple> from(const Value& value) { return from(value, std::make_index_sequence<size>()); }
  static bool cotangent(const Value& value, const Tuple& argument, Tuple& result, Error& error) {
    return cotangent(value, argument, result, error, std::make_index_sequence<size>());
  }

 private:
  template <std::size_t... I>
  static Result<Tuple> from(const Value& value, std::index_sequence<I...>) {
    Result<std::size_t> count = value.size();
    if (!count.ok() || count.value() != size)
      return not_convertible(value, "a tuple of " + std::to_string(size) + " elements");
    Tuple result;
    Error error;
    if ((take<I>(value, result, error) && ...)) return result;
    return error;
  }
  template <std::size_t I>
  static bool take(const Value& value, Tuple& result, Error& error) {
    using T = std::tuple_element_t<I, Tuple>;
    Result<Value> part = value.at(I);
    if (!part.ok()) {
      error = part.error();
      return false;
    }
    Result<T> taken = part.value().template to<T>();
    if (!taken.ok()) {
      error = inside(taken.error(), "element " + std::to_string(I + 1));
      return false;
    }
    std::get<I>(result) = std::move(taken).value();
    return true;
  }
  template <std::size_t... I>
  static bool cotangent(const Value& value, const Tuple& argument, Tuple& result, Error& error,
                        std::index_sequence<I...>) {
    return (part_cotangent<I>(value, argument, result, error) && ...);
  }
  template <std::size_t I>
  static bool part_cotangent(const Value& value, const Tuple& argument, Tuple& result, Error& error) {
    Value part;
    if (!value.is_nothing()) {
      Result<Value> found = value.at(I);
      if (!found.ok()) {
        error = found.error();
        return false;
      }
      part = std::move(found).value();
    }
    if (take_cotangent(part, std::get<I>(argument), std::get<I>(result), error)) return true;
    error = inside(error, "derivative of element " + std::to_string(I + 1));
    return false;
  }
};
template <class... T>
struct Crossing<std::tuple<T...>> : TupleCrossing<std::tuple<T...>> {};
template <class A, class B>
struct Crossing<std::pair<A, B>> : TupleCrossing<std::pair<A, B>> {};

template <class T>
struct Crossing<std::optional<T>> : Composite<std::optional<T>> {
  static bool build(Builder& builder, const std::optional<T>& value) {
    return value ? push(builder, *value) : builder.push(Datum());
  }
  static Result<std::optional<T>> from(const Value& value) {
    if (value.is_nothing()) return std::optional<T>();
    Result<T> taken = value.template to<T>();
    if (!taken.ok()) return taken.error();
    return std::optional<T>(std::move(taken).value());
  }
  static bool cotangent(const Value& value, const std::optional<T>& argument, std::optional<T>& result, Error& error) {
    result.reset();
    return !argument || take_cotangent(value, *argument, result.emplace(), error);
  }
};

template <class... T>
struct Crossing<std::variant<T...>> : Composite<std::variant<T...>> {
  using Variant = std::variant<T...>;
  static bool build(Builder& builder, const Variant& value) {
    return std::visit([&](const auto& part) { return push(builder, part); }, value);
  }
  static Result<Variant> from(const Value& value) {
    std::optional<Variant> result;
    const Kind own = kind_of(value);
    (try_alternative<T>(value, own, result), ...);
    if (!result) (try_alternative<T>(value, Crossing<T>::kind, result), ...);
    if (result) return std::move(*result);
    return not_convertible(value, "one of the alternatives of a std::variant");
  }
  // The alternative of the argument.
  static bool cotangent(const Value& value, const Variant& argument, Variant& result, Error& error) {
    return std::visit(
        [&](const auto& part) {
          std::decay_t<decltype(part)> taken{};
          if (!take_cotangent(value, part, taken, error)) return false;
          result = Variant(std::in_place_type<std::decay_t<decltype(part)>>, std::move(taken));
          return true;
        },
        argument);
  }

 private:
  template <class A>
  static void try_alternative(const Value& value, Kind own, std::optional<Variant>& result) {
    if (result || Crossing<A>::kind != own) return;
    if (Result<A> taken = value.template to<A>(); taken.ok()) result.emplace(std::move(taken).value());
  }
};
template <>
struct Crossing<std::monostate> : Composite<std::monostate> {
  static bool build(Builder& builder, std::monostate) { return builder.push(Datum()); }
  static Result<std::monostate> from(const Value& value) {
    if (value.is_nothing()) return std::monostate();
    return not_convertible(value, "nothing");
  }
  static bool cotangent(const Value&, std::monostate, std::monostate&, Error&) { return true; }
};

template <class Map>
struct MapCrossing : Composite<Map> {
  using Key = typename Map::key_type;
  using Mapped = typename Map::mapped_type;
  static bool build(Builder& builder, const Map& value) {
    for (const auto& [key, mapped] : value)
      if (!push(builder, key) || !push(builder, mapped)) return false;
    return builder.dictionary(value.size(), Crossing<Key>::kind, Crossing<Mapped>::kind);
  }
  static Result<Map> from(const Value& value) {
    Map result;
    if (!value.is_a("AbstractDict")) return not_convertible(value, "a dictionary");
    Result<void> taken = take_elements<std::pair<Key, Mapped>>(
        value, [&](std::pair<Key, Mapped> pair) { result.insert(std::move(pair)); });
    if (!taken.ok()) return taken.error();
    return result;
  }
  // With the keys of the argument.
  static bool cotangent(const Value& value, const Map& argument, Map& result, Error& error) {
    Map made;
    for (const auto& [key, mapped] : argument)
      if (!take_cotangent(Value(), mapped, made[key], error)) return false;
    if (!value.is_nothing()) {
      using Pairs = std::vector<std::pair<Key, Value>>;
      Result<Pairs> pairs = value.template to<Pairs>();
      if (!pairs.ok()) {
        error = pairs.error();
        return false;
      }
      for (const auto& [key, part] : pairs.value()) {
        const auto found = argument.find(key);
        if (found == argument.end() || take_cotangent(part, found->second, made[key], error)) continue;
        error = inside(error, "derivative of a value of a dictionary");
        return false;
      }
    }
    result = std::move(made);
    return true;
  }
};
template <class K, class V, class... More>
struct Crossing<std::map<K, V, More...>> : MapCrossing<std::map<K, V, More...>> {};
template <class K, class V, class... More>
struct Crossing<std::unordered_map<K, V, More...>> : MapCrossing<std::unordered_map<K, V, More...>> {};

}  // namespace slope::api::detail
