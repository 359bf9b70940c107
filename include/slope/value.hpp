// A handle of a Slope value: keeps it alive, whatever the collector does.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "slope/error.hpp"

namespace slope::api {

namespace detail {
class HandleTable;
struct Access;
struct Datum;
}  // namespace detail

// Copyable and movable; a moved handle holds `nothing`. A handle that outlives its engine is dead: its type is "#dead",
// and it has no value. Use it on the thread that uses its engine.
class Value {
 public:
  Value() = default;  // `nothing`
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(Value other) noexcept;
  ~Value();

  bool is_nothing() const;
  bool is_a(std::string_view type) const;  // of the engine's types, by name: "AbstractVector", "Vector{Float64}"
  std::string type_name() const;           // "Vector{Float64}"
  std::string repr() const;                // as `show` prints it: "[1.0, 2.0]"
  std::string display() const;             // as the prompt does: "2-element Vector{Float64}:\n 1.0\n 2.0"
  template <class T>
  Result<T> to() const;  // slope/engine.hpp

  Result<Value> field(std::string_view name) const;  // `v.name`
  Result<Value> field(std::size_t index) const;      // of a struct or tuple, from 0
  template <class T>
  Result<void> set_field(std::string_view name, const T& value) const;
  std::vector<std::string> fields() const;      // names, in order; none for what has no named fields
  Result<std::size_t> size() const;             // `length(v)`
  Result<Value> at(std::size_t index) const;    // element of an array or tuple, from 0, in memory's order
  Result<std::vector<Value>> elements() const;  // of anything that can be iterated
  // Calls it, with dispatch on the arguments.
  template <class... A>
  Result<Value> operator()(const A&... arguments) const;

 private:
  friend struct detail::Access;
  Result<Value> call(const detail::Datum* arguments, std::size_t count) const;
  Result<void> assign(std::string_view name, const detail::Datum& value) const;
  std::shared_ptr<detail::HandleTable> table_;
  std::size_t slot_ = 0;
};

}  // namespace slope::api
