// A handle of a Slope value: keeps it alive, whatever the collector does.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "slope/error.hpp"

namespace slope::api {

namespace detail {
class HandleTable;
struct Access;
}  // namespace detail

// Movable and copyable. A handle that outlives its engine is dead: it has the type "#dead" and no value.
// To be used on the thread that uses its engine.
class Value {
 public:
  Value() = default;  // `nothing`
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(Value other) noexcept;
  ~Value();

  bool is_nothing() const;
  std::string type_name() const;  // "Vector{Float64}"
  std::string repr() const;       // as `show` prints it: "[1.0, 2.0]"
  std::string display() const;    // as the prompt does: "2-element Vector{Float64}:\n 1.0\n 2.0"
  Result<Value> field(std::string_view name) const;
  template <class T>
  Result<T> to() const;  // slope/engine.hpp

 private:
  friend struct detail::Access;
  std::shared_ptr<detail::HandleTable> table_;
  std::size_t slot_ = 0;
};

}  // namespace slope::api
