// The operations of each group as an enumeration of its own. A switch over one that has no `default:` does not compile
// while an operation of the group is missing in it:
//
//   switch (in_group<FloatOp>(op)) {
//     case FloatOp::add_float: …
#pragma once

#include <cassert>

#include "lang/ir/ir.hpp"

namespace slope::ir {

enum class CallOp : std::uint16_t {
#define OP(name, ...) name = static_cast<std::uint16_t>(Op::name),
#define OPS_OF OPS_calls
#include "lang/ir/ops.def"
};
constexpr OpGroup group_of(CallOp) { return OpGroup::calls; }
enum class NameOp : std::uint16_t {
#define OP(name, ...) name = static_cast<std::uint16_t>(Op::name),
#define OPS_OF OPS_names
#include "lang/ir/ops.def"
};
constexpr OpGroup group_of(NameOp) { return OpGroup::names; }
enum class ObjectOp : std::uint16_t {
#define OP(name, ...) name = static_cast<std::uint16_t>(Op::name),
#define OPS_OF OPS_objects
#include "lang/ir/ops.def"
};
constexpr OpGroup group_of(ObjectOp) { return OpGroup::objects; }
enum class IntegerOp : std::uint16_t {
#define OP(name, ...) name = static_cast<std::uint16_t>(Op::name),
#define OPS_OF OPS_integers
#include "lang/ir/ops.def"
};
constexpr OpGroup group_of(IntegerOp) { return OpGroup::integers; }
enum class ConversionOp : std::uint16_t {
#define OP(name, ...) name = static_cast<std::uint16_t>(Op::name),
#define OPS_OF OPS_conversions
#include "lang/ir/ops.def"
};
constexpr OpGroup group_of(ConversionOp) { return OpGroup::conversions; }
enum class FloatOp : std::uint16_t {
#define OP(name, ...) name = static_cast<std::uint16_t>(Op::name),
#define OPS_OF OPS_floats
#include "lang/ir/ops.def"
};
constexpr OpGroup group_of(FloatOp) { return OpGroup::floats; }
enum class ArrayOp : std::uint16_t {
#define OP(name, ...) name = static_cast<std::uint16_t>(Op::name),
#define OPS_OF OPS_arrays
#include "lang/ir/ops.def"
};
constexpr OpGroup group_of(ArrayOp) { return OpGroup::arrays; }
enum class StringOp : std::uint16_t {
#define OP(name, ...) name = static_cast<std::uint16_t>(Op::name),
#define OPS_OF OPS_strings
#include "lang/ir/ops.def"
};
constexpr OpGroup group_of(StringOp) { return OpGroup::strings; }
enum class TapeOp : std::uint16_t {
#define OP(name, ...) name = static_cast<std::uint16_t>(Op::name),
#define OPS_OF OPS_tapes
#include "lang/ir/ops.def"
};
constexpr OpGroup group_of(TapeOp) { return OpGroup::tapes; }
enum class ExceptionOp : std::uint16_t {
#define OP(name, ...) name = static_cast<std::uint16_t>(Op::name),
#define OPS_OF OPS_exceptions
#include "lang/ir/ops.def"
};
constexpr OpGroup group_of(ExceptionOp) { return OpGroup::exceptions; }
enum class TerminatorOp : std::uint16_t {
#define OP(name, ...) name = static_cast<std::uint16_t>(Op::name),
#define OPS_OF OPS_terminators
#include "lang/ir/ops.def"
};
constexpr OpGroup group_of(TerminatorOp) { return OpGroup::terminators; }

// `op` as one of its group, which it is in.
template <class GroupOp>
GroupOp in_group(Op op) {
  assert(group_of(op) == group_of(GroupOp{}));
  return static_cast<GroupOp>(op);
}

}  // namespace slope::ir
