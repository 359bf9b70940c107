#include "embed/lent_shape.hpp"

#include <algorithm>

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
    least = strides[k] * extents[k];
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
      passed += separator + "Base.PermutedDimsArray{Core.Float64," + dimensions + ",(";
      for (std::size_t k = n; k > 0; --k) passed += std::to_string(k) + ", ";
      passed += "),Core.Array{Core.Float64," + dimensions + "}}(" + x + ")";
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

std::string LoweredArguments::lower(std::span<const Kind> given, const Datum* arguments, const GradientTarget* places) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::size_t n = dimensions_of(given[i]), at = next++;
    const unsigned layout = is_array(given[i]) ? layout_of(given[i]) : 0;
    data[at] = arguments[i];
    if (places) targets[at] = places[i];
    if (layout == 0 || n == 1) continue;
    const std::size_t* extents = arguments[i].extents;
    std::array<std::size_t, 7>& shape = shapes_[at];
    data[at].kind = array_kind(n, 0, is_writable(given[i]));
    data[at].extents = shape.data();
    if (layout == row_major) {
      std::reverse_copy(extents, extents + n, shape.begin());
    } else {
      if (std::string why = strides_misfit(extents, n); !why.empty())
        return "argument " + std::to_string(i + 1) + ": " + why;
      for (std::size_t k = 0; k + 1 < n; ++k) shape[k] = extents[n + k + 1] / extents[n + k];
      shape[n - 1] = extents[n - 1];
      data[at].size = 1;
      for (std::size_t k = 0; k < n; ++k) data[at].size *= shape[k];
      for (std::size_t k = 0; k + 1 < n; ++k) {
        data[next].kind = Kind::integer;
        data[next].integer = static_cast<std::int64_t>(extents[k]);
        data[next].extents = nullptr;
        targets[next++] = nullptr;
      }
    }
  }
  return {};
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
