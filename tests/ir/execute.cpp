#include "lang/ir/execute/execute.hpp"

#include <bit>
#include <cmath>

#include "lang/memory/tape.hpp"
#include "tests/ir/fixture.hpp"

using namespace slope;
using namespace slope::ir;
using slope::test::IrFixture;

namespace {

struct Fixture : IrFixture {
  Value run(Op op, std::initializer_list<Value> operands, std::uintptr_t aux = 0) {
    Value result;
    bool ok = execute(ctx, op, operands.begin(), operands.size(), aux, result);
    INFO(op_name(op));
    if (!ok) FAIL(runtime.describe_error(ctx, ctx.take_error(), {}));
    return result;
  }
  // The type of the error that the op raises.
  const Type* error(Op op, std::initializer_list<Value> operands) {
    Value result;
    CHECK_FALSE(execute(ctx, op, operands.begin(), operands.size(), 0, result));
    return ctx.take_error().type;
  }
  Value integer(const DataType* type, std::int64_t n) {
    std::uint64_t bits = static_cast<std::uint64_t>(n);
    if (type->size < 8) bits &= (std::uint64_t{1} << (8 * type->size)) - 1;
    return Value(type, static_cast<std::int64_t>(bits));
  }
  std::int64_t signed_of(Value v) {
    unsigned unused = 64 - 8 * as_data(v.type)->size;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(v.bits) << unused) >> unused;
  }
  Value type(const Type* t) { return runtime.from_type(t); }
  Value f(double x) { return runtime.from_float(x); }
  Value f32(float x) { return Value(b.float32, std::int64_t{std::bit_cast<std::uint32_t>(x)}); }
  Value n(std::int64_t x) { return runtime.from_int(x); }
  const DataType* vector_of(const Type* element) { return runtime.types.array_of(element, 1); }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "integers wrap at their width") {
  CHECK(run(Op::add_int, {n(INT64_MAX), n(1)}).bits == INT64_MIN);
  for (const DataType* t : {b.int8, b.int16, b.int32, b.int64}) {
    std::int64_t highest = t->size == 8 ? INT64_MAX : (std::int64_t{1} << (8 * t->size - 1)) - 1;
    std::int64_t lowest = -highest - 1;
    CHECK(signed_of(run(Op::add_int, {integer(t, highest), integer(t, 1)})) == lowest);
    CHECK(signed_of(run(Op::neg_int, {integer(t, lowest)})) == lowest);
    CHECK(signed_of(run(Op::mul_int, {integer(t, highest), integer(t, 2)})) == -2);
    CHECK(run(Op::slt_int, {integer(t, -1), integer(t, 0)}).bits == 1);
    CHECK(run(Op::ult_int, {integer(t, -1), integer(t, 0)}).bits == 0);
    CHECK(run(Op::sadd_overflows, {integer(t, highest), integer(t, 1)}).bits == 1);
    CHECK(run(Op::sadd_overflows, {integer(t, highest), integer(t, 0)}).bits == 0);
    CHECK(run(Op::smul_overflows, {integer(t, lowest), integer(t, -1)}).bits == 1);
    CHECK(run(Op::ssub_overflows, {integer(t, 0), integer(t, lowest)}).bits == 1);
    CHECK(signed_of(run(Op::srem_int, {integer(t, lowest), integer(t, -1)})) == 0);
    CHECK(signed_of(run(Op::sdiv_int, {integer(t, -7), integer(t, 2)})) == -3);
    CHECK(signed_of(run(Op::srem_int, {integer(t, -7), integer(t, 2)})) == -1);
    CHECK(error(Op::sdiv_int, {integer(t, lowest), integer(t, -1)}) == b.divide_error);
    CHECK(error(Op::srem_int, {integer(t, 1), integer(t, 0)}) == b.divide_error);
    CHECK(run(Op::ctlz_int, {integer(t, 1)}).bits == 8 * t->size - 1);
    CHECK(run(Op::ctlz_int, {integer(t, 0)}).bits == 8 * t->size);
    CHECK(run(Op::cttz_int, {integer(t, 0)}).bits == 8 * t->size);
    CHECK(run(Op::ctpop_int, {integer(t, -1)}).bits == 8 * t->size);
    CHECK(signed_of(run(Op::ashr_int, {integer(t, -8), n(1)})) == -4);
    CHECK(signed_of(run(Op::ashr_int, {integer(t, -8), n(100)})) == -1);
    CHECK(run(Op::lshr_int, {integer(t, -1), n(8 * t->size)}).bits == 0);
    CHECK(run(Op::shl_int, {integer(t, 1), n(-1)}).bits == 0);
    CHECK(signed_of(run(Op::not_int, {integer(t, 0)})) == -1);
  }
  CHECK(run(Op::bswap_int, {integer(b.uint16, 0x1234)}).bits == 0x3412);
  CHECK(run(Op::umulhi_int, {integer(b.uint64, -1), integer(b.uint64, -1)}).bits == -2);
  CHECK(run(Op::umul_overflows, {integer(b.uint8, 16), integer(b.uint8, 16)}).bits == 1);
  CHECK(run(Op::udiv_int, {integer(b.uint8, -1), integer(b.uint8, 2)}).bits == 127);
  CHECK(run(Op::not_int, {runtime.from_bool(true)}).identical(runtime.from_bool(false)));
  CHECK(error(Op::add_int, {n(1), integer(b.int32, 1)}) == b.type_error);
  CHECK(error(Op::add_int, {n(1), f(1)}) == b.type_error);
  CHECK(error(Op::add_int, {n(1)}) == b.argument_error);
}

TEST_CASE_METHOD(Fixture, "conversions") {
  CHECK(signed_of(run(Op::sext_int, {type(b.int64), integer(b.int8, -5)})) == -5);
  CHECK(run(Op::zext_int, {type(b.int64), integer(b.int8, -5)}).bits == 251);
  CHECK(run(Op::trunc_int, {type(b.uint8), n(0x1ff)}).bits == 0xff);
  CHECK(run(Op::sitofp, {type(b.float64), integer(b.int32, -3)}).float64 == -3.0);
  CHECK(run(Op::uitofp, {type(b.float64), integer(b.uint64, -1)}).float64 == 18446744073709551616.0);
  CHECK(run(Op::sitofp, {type(b.float32), n(16777217)}).float32 == 16777216.0f);
  CHECK(run(Op::fptosi, {type(b.int64), f(-2.9)}).bits == -2);
  CHECK(run(Op::fptosi, {type(b.int64), f(1e300)}).bits == INT64_MAX);
  CHECK(run(Op::fptosi, {type(b.int64), f(-1e300)}).bits == INT64_MIN);
  CHECK(run(Op::fptosi, {type(b.int64), f(NAN)}).bits == 0);
  CHECK(run(Op::fptoui, {type(b.uint8), f(300)}).bits == 255);
  CHECK(run(Op::fptoui, {type(b.uint64), f(1.8e19)}).bits == static_cast<std::int64_t>(18000000000000000000ull));
  CHECK(run(Op::fptrunc, {type(b.float32), f(0.1)}).float32 == 0.1f);
  CHECK(run(Op::fpext, {type(b.float64), f32(0.5f)}).float64 == 0.5);
  CHECK(run(Op::bitcast, {type(b.uint64), f(1.0)}).bits == 0x3ff0000000000000);
  CHECK(run(Op::bitcast, {type(b.float32), integer(b.int32, 0x3f800000)}).identical(f32(1.0f)));
  CHECK(error(Op::bitcast, {type(b.float32), n(1)}) == b.error_exception);
  CHECK(error(Op::trunc_int, {type(b.int64), integer(b.int8, 1)}) == b.error_exception);
  CHECK(error(Op::sitofp, {n(1), n(1)}) == b.type_error);
}

TEST_CASE_METHOD(Fixture, "floating point, both widths") {
  CHECK(run(Op::div_float, {f(1), f(0)}).float64 == INFINITY);
  CHECK(std::isnan(run(Op::sqrt_float, {f(-1)}).float64));
  CHECK(run(Op::add_float, {f32(16777216.0f), f32(1.0f)}).identical(f32(16777216.0f)));
  CHECK(std::isnan(run(Op::min_float, {f(1), f(NAN)}).float64));
  CHECK(std::signbit(run(Op::min_float, {f(0.0), f(-0.0)}).float64));
  CHECK_FALSE(std::signbit(run(Op::max_float, {f(-0.0), f(0.0)}).float64));
  CHECK(run(Op::rint_float, {f(2.5)}).float64 == 2.0);
  CHECK(run(Op::rem_float, {f(-7), f(3)}).float64 == -1.0);
  CHECK(run(Op::fma_float, {f(1 + 0x1p-30), f(1 - 0x1p-30), f(-1)}).float64 == -0x1p-60);
  CHECK(run(Op::eq_float, {f(NAN), f(NAN)}).bits == 0);
  CHECK(run(Op::ne_float, {f(NAN), f(NAN)}).bits == 1);
  CHECK(run(Op::pow_float, {f(2), f(10)}).float64 == 1024.0);
  CHECK(run(Op::exp_float, {f32(1)}).identical(f32(std::exp(1.0f))));
  CHECK(error(Op::add_float, {f(1), f32(1)}) == b.type_error);
}

TEST_CASE_METHOD(Fixture, "types") {
  CHECK(run(Op::type_of, {n(1)}).as_type == b.int64);
  CHECK(run(Op::isa, {n(1), type(b.integer)}).bits == 1);
  CHECK(run(Op::isa, {type(b.int64), type(runtime.types.type_type(b.int64))}).bits == 1);
  CHECK(run(Op::subtype, {type(b.float64), type(b.integer)}).bits == 0);
  CHECK(error(Op::isa, {n(1), n(1)}) == b.type_error);
  CHECK(run(Op::type_assert, {n(1), type(b.integer)}).bits == 1);
  CHECK(error(Op::type_assert, {n(1), type(b.string)}) == b.type_error);
  CHECK(run(Op::apply_type, {type(b.array), type(b.float64), n(1)}).as_type == vector_of(b.float64));
  CHECK(error(Op::apply_type, {type(b.int64), n(1)}) == b.error_exception);
  CHECK(error(Op::apply_type, {type(b.array), runtime.from_string("x"), n(1)}) == b.type_error);
  Value either = run(Op::make_union, {type(b.int64), type(b.nothing)});
  CHECK(run(Op::isa, {runtime.nothing(), either}).bits == 1);
  Value var = run(Op::type_var, {runtime.from_symbol(runtime.symbol("T")), type(b.real)});
  Value any_real = run(Op::union_all, {var, run(Op::apply_type, {type(b.array), var, n(1)})});
  CHECK(run(Op::subtype, {type(vector_of(b.int64)), any_real}).bits == 1);
  CHECK(run(Op::subtype, {type(vector_of(b.string)), any_real}).bits == 0);
}

TEST_CASE_METHOD(Fixture, "structs, tuples and fields") {
  TypeName* name = runtime.types.new_name(runtime.symbol("Point"), runtime.main);
  const Symbol* names[] = {runtime.symbol("x"), runtime.symbol("tag")};
  const Type* types[] = {b.float64, b.any};
  runtime.types.define_struct(name, {}, b.any, names, types, true, 1);
  Value point = run(Op::make_struct, {type(name->primary), f(1.5)});
  CHECK(run(Op::get_field, {point, runtime.from_symbol(names[0])}).float64 == 1.5);
  CHECK(run(Op::field_at, {point}, 0).float64 == 1.5);
  CHECK(run(Op::field_defined, {point, runtime.from_symbol(names[1])}).bits == 0);
  CHECK(error(Op::get_field, {point, n(2)}) == b.undef_ref_error);
  run(Op::set_field, {point, n(2), n(7)});
  CHECK(run(Op::get_field, {point, n(2)}).bits == 7);
  run(Op::set_field_at, {point, f(2.5)}, 0);
  CHECK(run(Op::field_at, {point}, 0).float64 == 2.5);
  CHECK(error(Op::set_field, {point, n(1), n(1)}) == b.type_error);
  CHECK(error(Op::make_struct, {type(name->primary), n(1)}) == b.type_error);
  CHECK(run(Op::field_count, {point}).bits == 2);
  Value tuple = run(Op::tuple, {n(1), runtime.nothing(), f(2)});
  CHECK(run(Op::get_field, {tuple, n(3)}).float64 == 2.0);
  CHECK(run(Op::get_field, {tuple, n(2)}).identical(runtime.nothing()));
  CHECK(error(Op::get_field, {tuple, n(4)}) == b.bounds_error);
  CHECK(run(Op::egal, {tuple, run(Op::tuple, {n(1), runtime.nothing(), f(2)})}).bits == 1);
  CHECK(run(Op::field_at, {run(Op::tuple, {runtime.nothing()})}, 0).identical(runtime.nothing()));
  Value expr =
      run(Op::expr, {runtime.from_symbol(runtime.symbol("call")), runtime.from_symbol(runtime.symbol("f")), n(1)});
  CHECK(run(Op::array_length, {run(Op::get_field, {expr, n(2)})}).bits == 2);
}

TEST_CASE_METHOD(Fixture, "arrays and strings") {
  Value array = run(Op::array_new, {type(vector_of(b.float64)), n(3)});
  for (std::int64_t i = 1; i <= 3; ++i) run(Op::array_set, {array, f(static_cast<double>(i)), n(i)});
  CHECK(run(Op::array_get, {array, n(2)}).float64 == 2.0);
  CHECK(run(Op::array_length, {array}).bits == 3);
  CHECK(error(Op::array_get, {array, n(4)}) == b.bounds_error);
  CHECK(error(Op::array_get, {array, n(0)}) == b.bounds_error);
  CHECK(error(Op::array_set, {array, n(1), n(1)}) == b.type_error);
  CHECK(error(Op::array_new, {type(vector_of(b.float64)), n(-1)}) == b.argument_error);
  CHECK(error(Op::array_new, {type(vector_of(b.float64)), n(INT64_MAX)}) == b.out_of_memory_error);
  CHECK(error(Op::array_new, {type(b.vector), n(1)}) == b.error_exception);
  run(Op::array_resize, {array, n(6)});
  CHECK(run(Op::array_get, {array, n(6)}).float64 == 0.0);
  run(Op::array_resize_front, {array, n(8)});
  CHECK(run(Op::array_get, {array, n(1)}).float64 == 0.0);
  CHECK(run(Op::array_get, {array, n(4)}).float64 == 2.0);
  run(Op::array_resize_front, {array, n(6)});
  CHECK(run(Op::array_get, {array, n(2)}).float64 == 2.0);
  CHECK(error(Op::array_resize_front, {array, n(-1)}) == b.argument_error);
  Value matrix = run(Op::array_share, {array, n(2), n(3)});
  CHECK(run(Op::array_size, {matrix, n(2)}).bits == 3);
  CHECK(run(Op::array_size, {matrix, n(3)}).bits == 1);
  run(Op::array_set, {matrix, f(9), n(6)});
  CHECK(run(Op::array_get, {array, n(6)}).float64 == 9.0);
  CHECK(error(Op::array_resize, {array, n(7)}) == b.error_exception);
  CHECK(error(Op::array_resize_front, {array, n(7)}) == b.error_exception);
  CHECK(error(Op::array_resize_front, {matrix, n(7)}) == b.argument_error);
  CHECK(error(Op::array_share, {array, n(4), n(2)}) == b.dimension_mismatch);
  Value strings = run(Op::array_new, {type(vector_of(b.string)), n(2)});
  CHECK(error(Op::array_get, {strings, n(1)}) == b.undef_ref_error);
  const DataType* pair = as_data(run(Op::tuple, {n(1), f(2)}).type);
  Value pairs = run(Op::array_new, {type(vector_of(pair)), n(2)});
  run(Op::array_set, {pairs, run(Op::tuple, {n(5), f(6)}), n(2)});
  CHECK(run(Op::get_field, {run(Op::array_get, {pairs, n(2)}), n(1)}).bits == 5);
  CHECK(run(Op::string_length, {runtime.from_string("äb")}).bits == 3);
  CHECK(run(Op::string_byte, {runtime.from_string("ab"), n(2)}).identical(integer(b.uint8, 'b')));
  CHECK(error(Op::string_byte, {runtime.from_string("ab"), n(3)}) == b.bounds_error);
}

TEST_CASE_METHOD(Fixture, "globals, cells, tapes") {
  Binding* binding = runtime.binding(runtime.main, runtime.symbol("g"));
  auto aux = reinterpret_cast<std::uintptr_t>(binding);
  CHECK(run(Op::global_defined, {}, aux).bits == 0);
  run(Op::store_global, {n(5)}, aux);
  CHECK(run(Op::load_global, {}, aux).bits == 5);
  auto name = reinterpret_cast<std::uintptr_t>(runtime.symbol("c"));
  Value cell = run(Op::cell_new, {});
  CHECK(run(Op::cell_defined, {cell}).bits == 0);
  run(Op::cell_set, {cell, n(3)});
  CHECK(run(Op::cell_get, {cell}, name).bits == 3);
  CHECK(run(Op::check_defined, {runtime.from_bool(true)}, name).identical(runtime.nothing()));
  Value result;
  Value no = runtime.from_bool(false);
  CHECK_FALSE(execute(ctx, Op::check_defined, &no, 1, name, result));
  CHECK(ctx.take_error().type == b.undef_var_error);
  TapeLayout layout{{b.float64, b.any}};
  Value tape = run(Op::tape_open, {n(2)}, reinterpret_cast<std::uintptr_t>(&layout));
  run(Op::tape_reserve, {tape, n(50)});
  run(Op::tape_store, {tape, n(40), f(1.5)}, 0);
  run(Op::tape_store, {tape, n(40), tape}, 1);
  CHECK(run(Op::tape_load, {tape, n(40)}, 0).float64 == 1.5);
  CHECK(run(Op::tape_load, {tape, n(40)}, 1).identical(tape));
  run(Op::tape_close, {tape});
}

TEST_CASE_METHOD(Fixture, "ops are functions of Core") {
  Value add = runtime.resolve(runtime.core, runtime.symbol("add_int"))->value;
  CHECK(as_builtin_op(b, add) == Op::add_int);
  CHECK_FALSE(as_builtin_native(b, add));
  CHECK(as_builtin_op(b, runtime.resolve(runtime.core, runtime.symbol("==="))->value) == Op::egal);
  CHECK(as_builtin_op(b, runtime.resolve(runtime.core, runtime.symbol("throw"))->value) == Op::throw_);
  CHECK_FALSE(runtime.core->find(runtime.symbol("jump")));
  CHECK_FALSE(runtime.core->find(runtime.symbol("field_at")));
  Value args[] = {n(2), n(3)};
  Value result;
  REQUIRE(runtime.call(ctx, add, args, 2, result));
  CHECK(result.bits == 5);
}
