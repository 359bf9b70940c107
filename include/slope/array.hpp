// Arrays of several dimensions over the host's memory, lent to scripts without a copy.
//
//   C++                                                      Slope
//   ArrayView<const double, N>                               Array{Float64,N}, which the script only reads
//   ArrayView<double, N>                                     Array{Float64,N}, which the script may write
//   ArrayView<…, N, Layout::row_major>                       a lazy transpose of the memory, PermutedDimsArray
//   ArrayView<…, N, Layout::strided>                         a view of the larger array that contains it, SubArray
//
// As an argument of a typed handle a view is valid for the call, like a span. As a place for a gradient it receives the
// derivative with respect to such an argument, and must have the argument's shape. `Engine::set` and `Engine::call`
// copy views. From Slope, a column-major view can refer to any array of numbers with as many dimensions; it is valid
// until the engine is used again.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include "slope/convert.hpp"

namespace slope::api {

enum class Layout : unsigned char {
  column_major,  // the first index varies fastest, without gaps
  row_major,     // the last index varies fastest, without gaps
  strided,       // the first index varies fastest; there may be gaps between columns
};

template <class T, std::size_t N, Layout layout = Layout::column_major>
class ArrayView {
  static_assert(std::is_same_v<std::remove_const_t<T>, double>, "arrays of double");
  static_assert(N >= 1 && N <= 7, "one to seven dimensions");

 public:
  using Shape = std::array<std::size_t, N>;
  ArrayView() = default;
  ArrayView(T* data, const Shape& shape) : data_(data) {
    std::size_t step = 1;
    for (std::size_t k = 0; k < N; ++k) {
      const std::size_t d = layout == Layout::row_major ? N - 1 - k : k;
      extents_[d] = shape[d];
      extents_[N + d] = step;
      step *= shape[d] ? shape[d] : 1;  // of no elements: strides that fit all the same
    }
  }
  // `strides`: the distance of neighbours along each dimension, in elements. The first is 1. Each other is a multiple
  // of the one before, at least as large as the dimension before requires.
  ArrayView(T* data, const Shape& shape, const Shape& strides) requires(layout == Layout::strided) : data_(data) {
    for (std::size_t d = 0; d < N; ++d) {
      extents_[d] = shape[d];
      extents_[N + d] = strides[d];
    }
  }
  // A view that may be written may be read.
  template <class U, class = std::enable_if_t<std::is_const_v<T> && !std::is_const_v<U>>>
  ArrayView(const ArrayView<U, N, layout>& other) : data_(other.data()) {
    for (std::size_t i = 0; i < 2 * N; ++i) extents_[i] = other.extents()[i];
  }

  T* data() const { return data_; }
  std::size_t size() const {
    std::size_t n = 1;
    bool wraps = false, empty = false;
    for (std::size_t d = 0; d < N; ++d) {
      wraps = __builtin_mul_overflow(n, extents_[d], &n) || wraps;
      empty = empty || extents_[d] == 0;
    }
    return empty ? 0 : wraps ? ~std::size_t{0} : n;  // what wraps is refused as an argument
  }
  std::size_t extent(std::size_t dimension) const { return extents_[dimension]; }
  std::size_t stride(std::size_t dimension) const { return extents_[N + dimension]; }
  // From 0.
  template <class... I>
  T& operator()(I... index) const {
    static_assert(sizeof...(I) == N);
    std::size_t at = 0, d = 0;
    ((at += static_cast<std::size_t>(index) * extents_[N + d++]), ...);
    return data_[at];
  }
  const std::size_t* extents() const { return extents_.data(); }  // the shape, then the strides

 private:
  T* data_ = nullptr;
  std::array<std::size_t, 2 * N> extents_{};
};

template <class T>
using MatrixView = ArrayView<T, 2>;

namespace detail {

template <class T, std::size_t N, Layout layout>
struct Crossing<ArrayView<T, N, layout>> {
  static constexpr Kind kind = array_kind(N, static_cast<unsigned>(layout), !std::is_const_v<T>);
  static Datum give(const ArrayView<T, N, layout>& value) {
    Datum d;
    d.kind = kind;
    d.data = value.data();
    d.size = value.size();
    d.extents = value.extents();
    return d;
  }
  static bool take(const Datum& d, ArrayView<T, N, layout>& value) {
    static_assert(layout == Layout::column_major && std::is_const_v<T>,
                  "arrays of Slope are column-major, and lent to C++ to be read: ArrayView<const double, N>");
    typename ArrayView<T, N, layout>::Shape shape;
    for (std::size_t i = 0; i < N; ++i) shape[i] = d.extents[i];
    value = ArrayView<T, N, layout>(static_cast<const double*>(d.data), shape);
    return true;
  }
};

}  // namespace detail

}  // namespace slope::api
