// Integer arithmetic at every width. A payload is its integer zero-extended to 64 bits. So unsigned operations read it
// as it is, signed ones extend the sign first, and every result is truncated to its width. A Bool is a byte that is 0
// or 1.
#include <bit>

#include "lang/ir/execute/groups.hpp"
#include "lang/ir/op_groups.hpp"

namespace slope::ir {

namespace {

using Wide = unsigned __int128;
using SignedWide = __int128;

bool is_integer(const Operation& o, std::size_t operand) {
  const Type* type = o.operands[operand].type;
  const DataType* data = as_data(type);
  return data && data->storage == Storage::bits && type != o.types.float64 && type != o.types.float32;
}

std::uint64_t mask_of(unsigned width) { return width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1; }

std::int64_t extend(std::uint64_t bits, unsigned width) {
  return static_cast<std::int64_t>(bits << (64 - width)) >> (64 - width);
}

bool fits(SignedWide n, unsigned width) {
  SignedWide limit = static_cast<SignedWide>(1) << (width - 1);
  return n >= -limit && n < limit;
}

bool divide(const Operation& o, const DataType* type, unsigned width) {
  std::uint64_t a = static_cast<std::uint64_t>(o.operands[0].bits), b = static_cast<std::uint64_t>(o.operands[1].bits);
  std::int64_t sa = extend(a, width), sb = extend(b, width);
  if (b == 0) return o.ctx.raise(o.types.divide_error->instance);
  std::uint64_t out = 0;
  switch (o.op) {
    case Op::sdiv_int:
      if (sb == -1) {
        if (sa == extend(std::uint64_t{1} << (width - 1), width)) return o.ctx.raise(o.types.divide_error->instance);
        out = -a;
      } else {
        out = static_cast<std::uint64_t>(sa / sb);
      }
      break;
    case Op::srem_int:
      out = sb == -1 ? 0 : static_cast<std::uint64_t>(sa % sb);
      break;
    case Op::udiv_int:
      out = a / b;
      break;
    default:  // urem_int: execute_integer calls this for the four divisions alone
      out = a % b;
      break;
  }
  return o.give(Value(type, static_cast<std::int64_t>(out & mask_of(width))));
}

std::uint64_t swap_bytes(std::uint64_t a, unsigned width) { return __builtin_bswap64(a) >> (64 - width); }

}  // namespace

bool execute_integer(const Operation& o) {
  bool is_shift = o.op == Op::shl_int || o.op == Op::lshr_int || o.op == Op::ashr_int;
  for (std::size_t i = 0; i < o.count; ++i) {
    if (!is_integer(o, i)) return o.wrong_type(o.types.integer, i);
    if (i > 0 && !is_shift && o.operands[i].type != o.operands[0].type) return o.wrong_type(o.operands[0].type, i);
  }
  const DataType* type = as_data(o.operands[0].type);
  unsigned width = 8 * type->size;
  std::uint64_t a = static_cast<std::uint64_t>(o.operands[0].bits);
  std::uint64_t b = o.count > 1 ? static_cast<std::uint64_t>(o.operands[1].bits) : 0;
  std::int64_t sa = extend(a, width), sb = is_shift ? 0 : extend(b, width);
  std::uint64_t out = 0;
  switch (in_group<IntegerOp>(o.op)) {
    case IntegerOp::add_int:
      out = a + b;
      break;
    case IntegerOp::sub_int:
      out = a - b;
      break;
    case IntegerOp::mul_int:
      out = a * b;
      break;
    case IntegerOp::neg_int:
      out = -a;
      break;
    case IntegerOp::sdiv_int:
    case IntegerOp::udiv_int:
    case IntegerOp::srem_int:
    case IntegerOp::urem_int:
      return divide(o, type, width);
    case IntegerOp::and_int:
      out = a & b;
      break;
    case IntegerOp::or_int:
      out = a | b;
      break;
    case IntegerOp::xor_int:
      out = a ^ b;
      break;
    case IntegerOp::not_int:
      out = ~a;
      break;
    case IntegerOp::shl_int:
      out = b < width ? a << b : 0;
      break;
    case IntegerOp::lshr_int:
      out = b < width ? a >> b : 0;
      break;
    case IntegerOp::ashr_int:
      out = static_cast<std::uint64_t>(sa >> (b < width ? b : width - 1));
      break;
    case IntegerOp::slt_int:
      return o.give_bool(sa < sb);
    case IntegerOp::sle_int:
      return o.give_bool(sa <= sb);
    case IntegerOp::ult_int:
      return o.give_bool(a < b);
    case IntegerOp::ule_int:
      return o.give_bool(a <= b);
    case IntegerOp::eq_int:
      return o.give_bool(a == b);
    case IntegerOp::ne_int:
      return o.give_bool(a != b);
    case IntegerOp::ctpop_int:
      out = static_cast<std::uint64_t>(std::popcount(a));
      break;
    case IntegerOp::ctlz_int:
      out = static_cast<std::uint64_t>(std::countl_zero(a)) - (64 - width);
      break;
    case IntegerOp::cttz_int:
      out = a ? static_cast<std::uint64_t>(std::countr_zero(a)) : width;
      break;
    case IntegerOp::bswap_int:
      out = swap_bytes(a, width);
      break;
    case IntegerOp::sadd_overflows:
      return o.give_bool(!fits(SignedWide{sa} + sb, width));
    case IntegerOp::ssub_overflows:
      return o.give_bool(!fits(SignedWide{sa} - sb, width));
    case IntegerOp::smul_overflows:
      return o.give_bool(!fits(SignedWide{sa} * sb, width));
    case IntegerOp::uadd_overflows:
      return o.give_bool((Wide{a} + b) >> width != 0);
    case IntegerOp::umul_overflows:
      return o.give_bool((Wide{a} * b) >> width != 0);
    case IntegerOp::umulhi_int:
      out = static_cast<std::uint64_t>((Wide{a} * b) >> width);
      break;
  }
  out &= type == o.types.boolean ? 1 : mask_of(width);
  return o.give(Value(type, static_cast<std::int64_t>(out)));
}

namespace {

// The nearest integer that `width` bits hold; 0 for NaN.
std::uint64_t saturate(double x, unsigned width, bool is_signed) {
  if (x != x) return 0;
  if (is_signed) {
    double limit = static_cast<double>(std::uint64_t{1} << (width - 1));
    if (x >= limit) return mask_of(width) >> 1;
    if (x <= -limit) return std::uint64_t{1} << (width - 1);
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
  }
  double limit = 2.0 * static_cast<double>(std::uint64_t{1} << (width - 1));
  if (x >= limit) return mask_of(width);
  return x <= 0 ? 0 : static_cast<std::uint64_t>(x);
}

Value from_float32(const Type* type, float x) { return Value(type, std::int64_t{std::bit_cast<std::uint32_t>(x)}); }

}  // namespace

bool execute_conversion(const Operation& o) {
  if (!o.want_type(0)) return false;
  const DataType* to = as_data(o.operands[0].as_type);
  const DataType* from = as_data(o.operands[1].type);
  auto refuse = [&](const char* why) {
    return o.ctx.raise_error(std::string(op_name(o.op)) + ": " + why + " (from " + to_string(from) + " to " +
                             to_string(o.operands[0].as_type) + ")");
  };
  if (!to || to->storage != Storage::bits) return refuse("the target is not a primitive type");
  if (!from || from->storage != Storage::bits) return refuse("not a primitive value");
  bool to_float = to == o.types.float64 || to == o.types.float32;
  bool from_float = from == o.types.float64 || from == o.types.float32;
  Value v = o.operands[1];
  std::uint64_t bits = static_cast<std::uint64_t>(v.bits);
  double number = from == o.types.float64 ? v.float64 : from_float ? static_cast<double>(v.float32) : 0.0;
  unsigned width = 8 * from->size, to_width = 8 * to->size;
  std::uint64_t out = 0;
  switch (in_group<ConversionOp>(o.op)) {
    case ConversionOp::sext_int:
    case ConversionOp::zext_int:
    case ConversionOp::trunc_int:
      if (from_float || to_float) return refuse("expected integers");
      if (o.op == Op::trunc_int ? to->size > from->size : to->size < from->size) return refuse("wrong sizes");
      out = o.op == Op::sext_int ? static_cast<std::uint64_t>(extend(bits, width)) : bits;
      break;
    case ConversionOp::sitofp:
    case ConversionOp::uitofp:
      if (from_float || !to_float) return refuse("expected an integer and a float type");
      if (o.op == Op::sitofp) {
        std::int64_t n = extend(bits, width);
        return o.give(to == o.types.float64 ? Value(to, static_cast<double>(n))
                                            : from_float32(to, static_cast<float>(n)));
      }
      return o.give(to == o.types.float64 ? Value(to, static_cast<double>(bits))
                                          : from_float32(to, static_cast<float>(bits)));
    case ConversionOp::fptosi:
    case ConversionOp::fptoui:
      if (!from_float || to_float) return refuse("expected a float and an integer type");
      out = saturate(number, to_width, o.op == Op::fptosi);
      break;
    case ConversionOp::fptrunc:
    case ConversionOp::fpext:
      if (!from_float || !to_float) return refuse("expected floats");
      if (o.op == Op::fptrunc ? to->size > from->size : to->size < from->size) return refuse("wrong sizes");
      if (to == from) return o.give(v);
      return o.give(to == o.types.float64 ? Value(to, number) : from_float32(to, static_cast<float>(number)));
    case ConversionOp::bitcast:
      if (to->size != from->size) return refuse("the sizes differ");
      out = bits;
      break;
  }
  out &= to == o.types.boolean ? 1 : mask_of(to_width);
  return o.give(Value(to, static_cast<std::int64_t>(out)));
}

}  // namespace slope::ir
