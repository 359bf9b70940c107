// Every arithmetic operation, compiled, against its definition in lang/ir/execute, on values at the edges of each type.
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/codegen/fixture.hpp"

using namespace slope;
using namespace slope::codegen_test;

namespace {

std::vector<Value> samples(const Machine& m, const DataType* type) {
  std::vector<Value> result;
  if (type == m.t.float64) {
    for (double x : {0.0, -0.0, 1.0, -1.5, 0.3, 2.5, 1e300, -1e-300, 123456789.25}) result.push_back(Value(type, x));
    result.push_back(Value(type, std::numeric_limits<double>::infinity()));
    result.push_back(Value(type, std::numeric_limits<double>::quiet_NaN()));
    return result;
  }
  if (type == m.t.float32) {
    for (float x : {0.0f, -0.0f, 1.0f, -1.5f, 0.3f, 2.5f, 1e30f, 16777217.0f, std::numeric_limits<float>::infinity()}) {
      std::uint32_t bits;
      std::memcpy(&bits, &x, 4);
      result.push_back(Value(type, static_cast<std::int64_t>(bits)));
    }
    return result;
  }
  if (type == m.t.boolean) return {Value(type, std::int64_t{0}), Value(type, std::int64_t{1})};
  std::uint64_t mask = type->size == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * type->size)) - 1;
  std::uint64_t top = std::uint64_t{1} << (8 * type->size - 1);
  for (std::uint64_t n :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{5}, std::uint64_t{7}, std::uint64_t{31},
        std::uint64_t{64}, std::uint64_t{100}, ~std::uint64_t{0}, ~std::uint64_t{6}, top, top - 1}) {
    result.push_back(Value(type, static_cast<std::int64_t>(n & mask)));
  }
  return result;
}

bool same(Machine& m, Value a, Value b) {
  if (a.type != b.type) return false;
  if (a.type == m.t.float64 && std::isnan(a.float64) && std::isnan(b.float64)) return true;
  if (a.type == m.t.float32 && std::isnan(a.float32) && std::isnan(b.float32)) return true;
  return a.bits == b.bits;
}

void check(Machine& m, Compiled& c, Op op, const std::vector<Value>& operands, std::vector<Value> arguments) {
  Value expected;
  bool ok = ir::execute(m.ctx, op, operands.data(), operands.size(), 0, expected);
  const Type* error = ok ? nullptr : m.ctx.take_error().type;
  Value found = m.call(c, std::move(arguments));
  INFO(ir::op_info(op).name);
  for (Value v : operands) INFO(m.runtime.show(m.ctx, v));
  if (error) {
    REQUIRE(!found.defined());
    Value raised = m.ctx.take_error();
    CHECK(raised.type == error);
    m.ctx.trace.clear();
    return;
  }
  if (!same(m, found, expected)) {
    std::string text;
    for (Value v : operands) text += " " + to_string(v.type) + ":" + std::to_string(v.bits);
    FAIL_CHECK(ir::op_info(op).name << text << " gives " << found.bits << ", expected " << expected.bits);
  }
}

const Type* result_type(Machine& m, Op op, const std::vector<Value>& operands) {
  Value v;
  if (ir::execute(m.ctx, op, operands.data(), operands.size(), 0, v)) return v.type;
  m.ctx.take_error();
  m.ctx.trace.clear();
  return nullptr;
}

}  // namespace

TEST_CASE("compiled arithmetic equals the operations' definition", "[codegen]") {
  Machine m;
  std::vector<const DataType*> integers{m.t.int8,   m.t.int16,  m.t.int32,  m.t.int64,  m.t.uint8,
                                        m.t.uint16, m.t.uint32, m.t.uint64, m.t.boolean};
  std::vector<const DataType*> floats{m.t.float32, m.t.float64};
  for (auto n = static_cast<unsigned>(Op::add_int); n <= static_cast<unsigned>(Op::pow_float); ++n) {
    Op op = static_cast<Op>(n);
    if (op >= Op::sext_int && op <= Op::bitcast) continue;
    bool is_float = op >= Op::add_float;
    for (const DataType* type : is_float ? floats : integers) {
      std::vector<Value> values = samples(m, type);
      auto arity = static_cast<std::size_t>(ir::op_info(op).min_operands);
      const Type* result = result_type(m, op, std::vector<Value>(arity, values[1]));
      if (!result) continue;
      Compiled& c = m.define(
          "f", std::vector<const Type*>(arity, type), result,
          [&](Builder& b, std::vector<Operand>& p, Compiled&) { b.ret(b.emit(op, std::span(p).subspan(1), result)); });
      for (Value x : values) {
        if (arity == 1) check(m, c, op, {x}, {x});
        for (Value y : values) {
          if (arity == 2) check(m, c, op, {x, y}, {x, y});
          if (arity == 3) check(m, c, op, {x, y, values[3]}, {x, y, values[3]});
        }
      }
    }
  }
}

TEST_CASE("compiled conversions equal the operations' definition", "[codegen]") {
  Machine m;
  std::vector<const DataType*> types{m.t.int8,   m.t.int16,  m.t.int32,   m.t.int64,   m.t.uint8,  m.t.uint16,
                                     m.t.uint32, m.t.uint64, m.t.boolean, m.t.float32, m.t.float64};
  for (auto n = static_cast<unsigned>(Op::sext_int); n <= static_cast<unsigned>(Op::bitcast); ++n) {
    Op op = static_cast<Op>(n);
    for (const DataType* from : types) {
      for (const DataType* to : types) {
        std::vector<Value> values = samples(m, from);
        if (!result_type(m, op, {m.type(to), values[1]})) continue;
        Compiled& c = m.define("f", {from}, to, [&](Builder& b, std::vector<Operand>& p, Compiled&) {
          b.ret(b.emit(op, {b.constant(m.type(to)), p[1]}, to));
        });
        for (Value x : values) check(m, c, op, {m.type(to), x}, {x});
      }
    }
  }
}
