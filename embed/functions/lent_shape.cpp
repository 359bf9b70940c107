#include "embed/functions/lent_shape.hpp"

#include <algorithm>
#include <functional>

namespace slope::api::detail {

namespace {

constexpr unsigned row_major = static_cast<unsigned>(Layout::row_major);
constexpr unsigned strided = static_cast<unsigned>(Layout::strided);

// Empty, or what is wrong.
std::string strides_misfit(const std::size_t* extents, std::size_t n) {
  const std::size_t* strides = extents + n;
  if (strides[0] != 1) return "the first stride is 1; found " + std::to_string(strides[0]);
  std::size_t least = extents[0];
  for (std::size_t k = 1; k < n; ++k) {
    if (strides[k] < least || strides[k] % strides[k - 1] != 0 || strides[k] == 0)
      return "stride " + std::to_string(k + 1) + ": expected a multiple of " + std::to_string(strides[k - 1]) +
             ", at least " + std::to_string(least) + "; found " + std::to_string(strides[k]);
    if (__builtin_mul_overflow(strides[k], extents[k], &least) || least > most_numbers)
      return "more memory than there are addresses";
  }
  return {};
}

// Calls `visit` with the offset of the first element of every column and the column's length.
template <class Visit>
void for_columns(const std::size_t* extents, std::size_t n, Visit visit) {
  for (std::size_t k = 0; k < n; ++k)
    if (extents[k] == 0) return;
  std::array<std::size_t, 7> index{};
  while (true) {
    std::size_t at = 0;
    for (std::size_t k = 1; k < n; ++k) at += index[k] * extents[n + k];
    visit(at, extents[0]);
    std::size_t k = 1;
    while (k < n && ++index[k] == extents[k]) index[k++] = 0;
    if (k >= n) return;
  }
}

}  // namespace

Lowering lower_parameters(const std::string& function, std::span<const Kind> given) {
  Lowering made;
  std::string taken, passed;
  bool plain = true;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string x = "x" + std::to_string(i + 1), separator = i ? ", " : "";
    taken += separator + x;
    const std::size_t n = dimensions_of(given[i]);
    const unsigned layout = is_array(given[i]) ? layout_of(given[i]) : 0;
    made.parameters.push_back(layout ? array_kind(n, 0, is_writable(given[i])) : given[i]);
    if (layout == 0 || n == 1) {
      passed += separator + x;
      continue;
    }
    plain = false;
    if (layout == row_major && n == 2) {
      passed += separator + "Base.transpose(" + x + ")";
    } else if (layout == row_major) {
      const std::string dimensions = std::to_string(n);
      std::string reversed;  // its own inverse
      for (std::size_t k = n; k > 0; --k) reversed += std::to_string(k) + ", ";
      passed += separator + "Base.PermutedDimsArray{Core.Float64," + dimensions + ",(" + reversed + "),(" + reversed +
                "),Core.Array{Core.Float64," + dimensions + "}}(" + x + ")";
    } else {
      passed += separator + "Base.view(" + x;
      for (std::size_t k = 1; k < n; ++k) {
        const std::string length = x + "_" + std::to_string(k);
        taken += ", " + length;
        made.parameters.push_back(Kind::integer);
        passed += ", 1:" + length;
      }
      passed += ", :)";
    }
  }
  if (plain) {
    made.parameters.assign(given.begin(), given.end());
  } else {
    made.adapter = "(" + taken + ",) -> (" + function + ")(" + passed + ")";
  }
  return made;
}

std::string LoweredArguments::lower(std::span<const Kind> given, const Datum* arguments, const GradientTarget* wanted,
                                    bool copied) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::size_t n = dimensions_of(given[i]), at = next++;
    const unsigned layout = is_array(given[i]) ? layout_of(given[i]) : 0;
    places[i] = at;
    data[at] = arguments[i];
    if (wanted) targets[at] = wanted[i];
    if (layout == strided)
      if (std::string why = strides_misfit(arguments[i].extents, n); !why.empty())
        return "argument " + std::to_string(i + 1) + ": " + why;
    if (layout == 0 || n == 1) continue;
    const std::size_t* extents = arguments[i].extents;
    std::array<std::size_t, 7>& shape = shapes_[at];
    if (layout == row_major || !copied) {
      data[at].kind = array_kind(n, 0, is_writable(given[i]));
      data[at].extents = shape.data();
    }
    if (layout == row_major) {
      std::reverse_copy(extents, extents + n, shape.begin());
      continue;
    }
    if (!copied) {
      for (std::size_t k = 0; k + 1 < n; ++k) shape[k] = extents[n + k + 1] / extents[n + k];
      shape[n - 1] = extents[n - 1];
      data[at].size = 1;
      for (std::size_t k = 0; k < n; ++k) data[at].size *= shape[k];
    }
    for (std::size_t k = 0; k + 1 < n; ++k) {
      data[next].kind = Kind::integer;
      data[next].integer = static_cast<std::int64_t>(extents[k]);
      data[next].extents = nullptr;
      targets[next++] = nullptr;
    }
  }
  return {};
}

void LoweredTangents::lower(std::span<const Kind> given, const LoweredArguments& arguments,
                            const TangentGiven* tangents) {
  copies_.reserve(given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::size_t at = arguments.places[i];
    data[at] = tangents[i];
    Datum& tangent = data[at].datum;
    if (!is_array(tangent.kind)) continue;
    const std::size_t size = memory_size(tangent.kind, tangent.extents, tangent.size);
    const auto* numbers = static_cast<const double*>(tangent.data);
    tangent = arguments.data[at];
    tangent.data = numbers;
    if (!is_writable(given[i])) continue;
    copies_.emplace_back(numbers, numbers + size);
    copies_.back().resize(tangent.size);  // the last column's gap
    tangent.data = copies_.back().data();
  }
}

std::string shape_misfit(const Datum& argument, const Datum& other, const char* name) {
  if (!is_memory(other.data, other.size)) return std::string(name) + " is null, or larger than memory can be";
  const std::size_t n = dimensions_of(argument.kind), m = dimensions_of(other.kind);
  auto shape = [](const Datum& array, std::size_t dimensions) {
    if (!array.extents) return std::to_string(array.size);
    std::string text;
    for (std::size_t k = 0; k < dimensions; ++k) text += (k ? "×" : "") + std::to_string(array.extents[k]);
    return text;
  };
  bool same = n == m && argument.size == other.size;
  if (argument.extents && other.extents)
    for (std::size_t k = 0; k < n && same; ++k) same = argument.extents[k] == other.extents[k];
  if (!same) return "the argument has " + shape(argument, n) + " elements, " + name + " " + shape(other, m);
  same = layout_of(argument.kind) == layout_of(other.kind);
  if (same && layout_of(argument.kind) == strided)
    for (std::size_t k = 0; k < n && same; ++k) same = argument.extents[n + k] == other.extents[n + k];
  return same ? std::string() : std::string(name) + " has another layout or other strides than the argument";
}

bool share_memory(const double* a, std::size_t a_size, const double* b, std::size_t b_size) {
  return a_size != 0 && b_size != 0 && std::less<>()(a, b + b_size) && std::less<>()(b, a + a_size);
}

std::size_t element_offset(const Datum& array, std::size_t number) {
  if (layout_of(array.kind) != strided) return number;
  std::size_t at = 0;
  for (std::size_t k = 0, n = dimensions_of(array.kind); k < n; ++k) {
    at += number % array.extents[k] * array.extents[n + k];
    number /= array.extents[k];
  }
  return at;
}

void scatter(const GradientTarget& target, const double* from) {
  for_columns(target.extents, dimensions_of(target.kind), [&](std::size_t at, std::size_t length) {
    std::copy_n(from, length, target.data + at);
    from += length;
  });
}

std::size_t memory_size(Kind kind, const std::size_t* extents, std::size_t size) {
  const std::size_t n = dimensions_of(kind);
  if (!is_array(kind) || layout_of(kind) != strided || size == 0) return size;
  std::size_t last = 0;
  for (std::size_t k = 0; k < n; ++k) last += (extents[k] - 1) * extents[n + k];
  return last + 1;
}

void clear(const GradientTarget& target) {
  if (layout_of(target.kind) != strided) {
    std::fill_n(target.data, target.size, 0.0);
  } else {
    for_columns(target.extents, dimensions_of(target.kind),
                [&](std::size_t at, std::size_t length) { std::fill_n(target.data + at, length, 0.0); });
  }
}

void copy_into(const GradientTarget& target, const double* from, std::size_t size) {
  if (layout_of(target.kind) != strided) {
    std::copy_n(from, std::min(target.size, size), target.data);
  } else {
    for_columns(target.extents, dimensions_of(target.kind), [&](std::size_t at, std::size_t length) {
      if (at + length <= size) std::copy_n(from + at, length, target.data + at);
    });
  }
}

}  // namespace slope::api::detail
