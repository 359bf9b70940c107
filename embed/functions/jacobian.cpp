// Jacobians of typed function handles: the forward derivative (forward.cpp) in the directions of the elements
// of one argument, up to eight at once.
#include <algorithm>
#include <cstring>

#include "embed/functions/slope_function.hpp"

namespace slope::api::detail {

// The memory that the script may write, as it was before the call: each round of columns is a call that shall find it
// so.
class SlopeFunction::Before {
 public:
  Before(std::span<const Kind> given, const Datum* arguments) {
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!is_writable(given[i])) continue;
      auto* data = static_cast<double*>(const_cast<void*>(arguments[i].data));
      const std::size_t size = memory_size(arguments[i].kind, arguments[i].extents, arguments[i].size);
      kept_.push_back({data, std::vector<double>(data, data + size)});
    }
  }
  void restore() const {
    for (const auto& [data, before] : kept_) std::copy(before.begin(), before.end(), data);
  }

 private:
  std::vector<std::pair<double*, std::vector<double>>> kept_;
};

std::string SlopeFunction::matrices_misfit(const Datum* arguments, const JacobianTarget* targets) const {
  auto memory = [](const JacobianTarget& target) {
    return target.grows ? std::span<const double>(*target.grows) : std::span<const double>(target.data, target.size);
  };
  for (std::size_t i = 0; i < given_.size(); ++i) {
    if (!targets[i].wanted) continue;
    const std::string at = "argument " + std::to_string(i + 1) + ": ";
    if (given_[i] != Kind::number && !is_array(given_[i]))
      return at + "there is no derivative with respect to this type; pass nullptr";
    const std::span<const double> place = memory(targets[i]);
    if (!is_memory(place.data(), place.size())) return at + "the memory for the matrix is null";
    for (std::size_t k = 0; k < given_.size(); ++k)
      if (const Datum& argument = arguments[k];
          is_array(argument.kind) &&
          share_memory(static_cast<const double*>(argument.data),
                       memory_size(argument.kind, argument.extents, argument.size), place.data(), place.size()))
        return at + "the memory for the matrix overlaps an argument";
    for (std::size_t k = 0; k < i; ++k) {
      if (!targets[k].wanted) continue;
      const std::span<const double> other = memory(targets[k]);
      if ((targets[i].grows && targets[i].grows == targets[k].grows) ||
          share_memory(other.data(), other.size(), place.data(), place.size()))
        return at + "the memory for the matrix overlaps that of another";
    }
  }
  return has_shapes_ ? argument_misfit(given_, arguments) : std::string();
}

bool SlopeFunction::jacobian(const Datum* arguments, const JacobianTarget* targets, Datum& value, api::Value* holder) {
  if (!alive()) return false;
  LoweredArguments lowered;
  std::string why = matrices_misfit(arguments, targets);
  if (why.empty()) why = lowered.lower(given_, arguments, nullptr);
  if (!why.empty()) return refuse("jacobian of `" + name_ + "`, " + why, ErrorKind::conversion);
  Entry entry(engine_, found_.world);
  const Before before(given_, arguments);
  bool known = false;
  for (std::size_t i = 0; i < given_.size(); ++i) {
    if (!targets[i].wanted) continue;
    const Place place{i, lowered.places[i], arguments[i]};
    if (!jacobian_columns(lowered.data.data(), place, targets[i], before, value, holder, known)) return false;
  }
  return known || call_values(lowered.data.data(), value, holder);
}

// Where the columns of one argument's derivative go; knows how long they are from the first.
class SlopeFunction::Columns {
 public:
  Columns(SlopeFunction& function, std::size_t argument, std::size_t count, const JacobianTarget& to)
      : function_(function), argument_(argument), count_(count), to_(to) {}

  bool put(std::size_t j, RawValue tangent) {
    Datum taken;
    api::Value held;
    if (!function_.take_result(tangent, taken, &held)) return false;
    const bool number = taken.kind == Kind::number;
    const std::size_t size = number ? 1 : taken.size;
    if (!data_ && !begin(size)) return false;
    if (size != rows_)
      return function_.refuse("the result of `" + function_.name_ + "` changes its length", ErrorKind::conversion);
    if (number) {
      data_[j] = taken.number;
    } else if (size != 0) {
      std::memcpy(data_ + j * rows_, taken.data, size * sizeof(double));
    }
    return true;
  }

 private:
  bool begin(std::size_t rows) {
    rows_ = rows;
    if (to_.grows) {
      to_.grows->resize(std::max<std::size_t>(rows * count_, 1));
      data_ = to_.grows->data();
      to_.grows->resize(rows * count_);
      return true;
    }
    data_ = to_.data;
    if (to_.size == rows * count_) return true;
    return function_.refuse("jacobian of `" + function_.name_ + "`, argument " + std::to_string(argument_ + 1) +
                                ": the matrix has " + std::to_string(rows) + " rows and " + std::to_string(count_) +
                                " columns, the memory " + std::to_string(to_.size) + " elements",
                            ErrorKind::conversion);
  }

  SlopeFunction& function_;
  std::size_t argument_;
  std::size_t count_;
  const JacobianTarget& to_;
  double* data_ = nullptr;
  std::size_t rows_ = 0;
};

// The columns of one argument. `known`: the value was given before.
bool SlopeFunction::jacobian_columns(const Datum* arguments, const Place& of, const JacobianTarget& to,
                                     const Before& before, Datum& value, api::Value* holder, bool& known) {
  const std::size_t columns = of.given.kind == Kind::number ? 1 : of.given.size;
  if (columns == 0) {
    if (to.grows) to.grows->clear();
    if (to.size == 0) return true;
    return refuse("jacobian of `" + name_ + "`, argument " + std::to_string(of.argument + 1) +
                      ": the argument has no elements, the memory for the matrix " + std::to_string(to.size),
                  ErrorKind::conversion);
  }
  Columns put(*this, of.argument, columns, to);
  // All columns in as few rounds as eight at once allow.
  const std::size_t rounds = (columns + 7) / 8;
  std::size_t width = is_one_to_one() ? (columns + rounds - 1) / rounds : 1;
  for (std::size_t first = 0; first < columns; first += width) {
    RawValue found;
    if (known) before.restore();
    if (is_one_to_one() ? !columns_at_once(arguments, of, first, columns, width, put, found)
                        : !column_by_value(arguments, of, first, put, found))
      return false;
    if (!known && !take_result(found, value, holder)) return false;
    known = true;
  }
  return true;
}

// `width` columns from the first on; fewer where that cannot be.
bool SlopeFunction::columns_at_once(const Datum* arguments, const Place& of, std::size_t first, std::size_t columns,
                                    std::size_t& width, Columns& put, RawValue& value) {
  const std::size_t count = parameters_.size();
  std::vector<char> moving{0};
  for (std::size_t i = 0; i < count; ++i) moving.push_back(i == of.parameter);
  const ForwardPlan* plan = forward_plan(*found_.target, moving, width, 0);
  if (!plan && width > 1) {  // a rule that overwrites its arguments goes one direction at a time
    width = 1;
    plan = forward_plan(*found_.target, moving, width, 0);
  }
  if (!plan) return false;
  LentCall lent(*this);
  RawArguments raw;
  Loans loans;
  if (!give(arguments, raw, loans)) return fail();
  Rooted given(engine_.runtime.heap), directions(engine_.runtime.heap);
  given.values.push_back(callee());
  given.values.insert(given.values.end(), raw.begin(), raw.begin() + static_cast<std::ptrdiff_t>(count));
  directions.values.resize(width * (count + 1));
  for (std::size_t k = 0; k < width && first + k < columns; ++k) {
    RawValue& direction = directions.values[k * (count + 1) + of.parameter + 1];
    if (!unit(arguments[of.parameter], of, first + k, direction)) return fail();
  }
  RawValue returned;
  if (!run_forward(*plan, given, directions, returned) || !part(returned, 1, value)) return false;
  for (std::size_t k = 0; k < width && first + k < columns; ++k) {
    RawValue shadow, tangent;
    if (!part(returned, 2 + 2 * k, shadow) || !part(returned, 3 + 2 * k, tangent) ||
        !result_tangent(shadow, tangent, value, tangent) || !put.put(first + k, tangent))
      return false;
  }
  return lent.ends();
}

bool SlopeFunction::column_by_value(const Datum* arguments, const Place& of, std::size_t j, Columns& put,
                                    RawValue& value) {
  std::vector<TangentGiven> direction(parameters_.size());
  std::vector<double> unit;
  Datum& moves = direction[of.parameter].datum;
  moves = arguments[of.parameter];
  if (of.given.kind == Kind::number) {
    moves.number = 1.0;
  } else {
    unit.resize(moves.size);
    unit[element_offset(of.given, j)] = 1.0;
    moves.data = unit.data();
  }
  LentCall lent(*this);
  Loans loans, tangent_loans;
  RawValue all[3], pair, tangent;
  if (!operator_arguments(arguments, direction.data(), loans, tangent_loans, all)) return false;
  if (!engine_.call_library("jvp", all, 3, pair)) return fail();
  if (!part(pair, 1, value) || !part(pair, 2, tangent)) return false;
  if (tangent.type == engine_.types.nothing && !result_tangent(tangent, tangent, value, tangent)) return false;
  return lent.ends() && put.put(j, tangent);
}

// The tangent of an argument that moves in its element j alone. `lowered`: as the code takes it.
bool SlopeFunction::unit(const Datum& lowered, const Place& of, std::size_t j, RawValue& v) {
  if (of.given.kind == Kind::number) {
    v = engine_.runtime.from_float(1.0);
    return true;
  }
  if (!zeros(lowered, v)) return false;
  double* numbers = reinterpret_cast<double*>(static_cast<ArrayObject*>(static_cast<void*>(v.object))->data);
  numbers[element_offset(of.given, j)] = 1.0;
  return true;
}

}  // namespace slope::api::detail
