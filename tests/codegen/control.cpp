// Branches, loops, calls, errors and handlers in compiled code.
#include "lang/memory/tape.hpp"
#include "tests/codegen/fixture.hpp"

using namespace slope;
using namespace slope::codegen_test;

namespace {

// fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
Compiled& define_fib(Machine& m) {
  return m.define("fib", {m.t.int64}, m.t.int64, [&](Builder& b, std::vector<Operand>& p, Compiled& self) {
    BlockId small = b.new_block(), large = b.new_block();
    Operand test = b.emit(Op::slt_int, {p[1], b.constant(m.i(2))}, m.t.boolean);
    b.branch(test, small, large);
    b.set_block(small);
    b.ret(p[1]);
    b.set_block(large);
    auto target = reinterpret_cast<std::uintptr_t>(self.specialization);
    Operand one = b.emit(Op::sub_int, {p[1], b.constant(m.i(1))}, m.t.int64);
    Operand x = b.emit(Op::invoke, {p[0], one}, m.t.int64, target);
    Operand two = b.emit(Op::sub_int, {p[1], b.constant(m.i(2))}, m.t.int64);
    Operand y = b.emit(Op::invoke, {p[0], two}, m.t.int64, target);
    b.ret(b.emit(Op::add_int, {x, y}, m.t.int64));
  });
}

}  // namespace

TEST_CASE("recursion", "[codegen]") {
  Machine m;
  Compiled& fib = define_fib(m);
  CHECK(m.call(fib, {m.i(20)}).bits == 6765);
}

TEST_CASE("deep recursion raises StackOverflowError", "[codegen]") {
  Machine m;
  Compiled& f = m.define("f", {m.t.int64}, m.t.int64, [&](Builder& b, std::vector<Operand>& p, Compiled& self) {
    Operand x = b.emit(Op::add_int, {p[1], b.constant(m.i(1))}, m.t.int64);
    Operand y = b.emit(Op::invoke, {p[0], x}, m.t.int64, reinterpret_cast<std::uintptr_t>(self.specialization));
    b.ret(b.emit(Op::add_int, {y, b.constant(m.i(1))}, m.t.int64));
  });
  CHECK(!m.call(f, {m.i(0)}).defined());
  CHECK(m.ctx.take_error().type == m.t.stack_overflow_error);
}

TEST_CASE("loops over arrays", "[codegen]") {
  Machine m;
  const DataType* vector = m.runtime.types.array_of(m.t.float64, 1);
  Compiled& sum = m.define("sum", {vector}, m.t.float64, [&](Builder& b, std::vector<Operand>& p, Compiled&) {
    BlockId header = b.new_block(), body = b.new_block(), exit = b.new_block();
    Operand n = b.emit(Op::array_length, {p[1]}, m.t.int64);
    b.jump(header, {b.constant(m.i(0)), b.constant(m.f(0))});
    Operand k = b.add_parameter(header, m.t.int64), s = b.add_parameter(header, m.t.float64);
    b.set_block(header);
    b.branch(b.emit(Op::slt_int, {k, n}, m.t.boolean), body, exit);
    b.set_block(body);
    Operand i = b.emit(Op::add_int, {k, b.constant(m.i(1))}, m.t.int64);
    Operand x = b.emit(Op::array_get, {p[1], i}, m.t.float64);
    b.jump(header, {i, b.emit(Op::add_float, {s, x}, m.t.float64)});
    b.set_block(exit);
    b.ret(s);
  });
  ArrayObject* a = m.vector(m.t.float64, 100);
  for (int i = 0; i < 100; ++i) reinterpret_cast<double*>(a->data)[i] = i;
  CHECK(m.call(sum, {Value(a->type, a)}).float64 == 4950);
}

TEST_CASE("an error leaves the trace of inlined scopes, innermost first", "[codegen]") {
  Machine m;
  Method inner;
  inner.name = m.runtime.symbol("inner");
  Compiled& divide =
      m.define("divide", {m.t.int64, m.t.int64}, m.t.int64, [&](Builder& b, std::vector<Operand>& p, Compiled& self) {
        self.function->scopes.push_back({&inner, 0, Span{1, 10, 20}});
        b.set_scope(1);
        b.set_span(Span{1, 2, 5});
        b.ret(b.emit(Op::sdiv_int, {p[1], p[2]}, m.t.int64));
      });
  Compiled& outer = m.define("outer", {m.t.int64}, m.t.int64, [&](Builder& b, std::vector<Operand>& p, Compiled&) {
    b.set_span(Span{1, 30, 40});
    Value callee = as_data(divide.function->insts[divide.function->blocks[0].parameters[0]].type)->instance;
    b.ret(b.emit(Op::invoke, {b.constant(callee), b.constant(m.i(7)), p[1]}, m.t.int64,
                 reinterpret_cast<std::uintptr_t>(divide.specialization)));
  });
  CHECK(m.call(outer, {m.i(2)}).bits == 3);
  CHECK(!m.call(outer, {m.i(0)}).defined());
  CHECK(m.ctx.error.type == m.t.divide_error);
  REQUIRE(m.ctx.trace.size() == 3);
  CHECK(m.ctx.trace[0].method == &inner);
  CHECK(m.ctx.trace[0].span.begin == 2);
  CHECK(m.ctx.trace[1].method == divide.method.get());
  CHECK(m.ctx.trace[1].span.begin == 10);
  CHECK(m.ctx.trace[2].method == outer.method.get());
  CHECK(m.ctx.trace[2].span.begin == 30);
  m.ctx.take_error();
}

TEST_CASE("handlers catch, slots keep what was assigned before the error", "[codegen]") {
  Machine m;
  Compiled& f = m.define("f", {m.t.int64}, m.t.any, [&](Builder& b, std::vector<Operand>& p, Compiled& self) {
    self.function->slots.push_back(m.runtime.symbol("x"));
    self.function->slot_types.push_back(m.t.any);
    BlockId handler = b.new_block();
    b.set_handler(handler);
    BlockId region = b.new_block();
    b.set_handler(ir::no_block);
    BlockId after = b.new_block();
    b.jump(region);
    b.set_block(region);
    b.emit(Op::slot_set, {b.constant(m.f(1.5))}, m.t.float64, 0);
    Operand q = b.emit(Op::sdiv_int, {b.constant(m.i(10)), p[1]}, m.t.int64);
    b.emit(Op::slot_set, {q}, m.t.int64, 0);
    b.jump(after);
    b.set_block(handler);
    b.emit(Op::caught, {}, m.t.any);
    b.emit(Op::caught_end, {}, m.t.nothing);
    b.jump(after);
    b.set_block(after);
    b.ret(b.emit(Op::slot_get, {}, m.t.any, 0));
  });
  Value good = m.call(f, {m.i(5)});
  CHECK(good.type == m.t.int64);
  CHECK(good.bits == 2);
  Value bad = m.call(f, {m.i(0)});
  CHECK(bad.type == m.t.float64);
  CHECK(bad.float64 == 1.5);
  CHECK(m.ctx.caught.empty());
}

TEST_CASE("varargs are packed for the callee", "[codegen]") {
  Machine m;
  std::vector<const Type*> pair{m.t.int64, m.t.float64};
  const DataType* tuple = m.runtime.types.tuple(pair);
  Compiled& f = m.define(
      "f", {m.t.int64, tuple}, m.t.float64,
      [&](Builder& b, std::vector<Operand>& p, Compiled&) { b.ret(b.emit(Op::field_at, {p[2]}, m.t.float64, 1)); },
      true);
  Compiled& g = m.define("g", {m.t.float64}, m.t.float64, [&](Builder& b, std::vector<Operand>& p, Compiled&) {
    Value callee = as_data(f.function->insts[f.function->blocks[0].parameters[0]].type)->instance;
    b.ret(b.emit(Op::invoke, {b.constant(callee), b.constant(m.i(1)), b.constant(m.i(2)), p[1]}, m.t.float64,
                 reinterpret_cast<std::uintptr_t>(f.specialization)));
  });
  CHECK(m.call(g, {m.f(2.5)}).float64 == 2.5);
  CHECK(m.call(f, {m.i(1), m.i(2), m.f(4.5)}).float64 == 4.5);
}

TEST_CASE("tapes", "[codegen]") {
  Machine m;
  TapeLayout layout;
  std::vector<const Type*> pair{m.t.int64, m.t.float64};
  const DataType* tuple = m.runtime.types.tuple(pair);
  layout.columns = {m.t.float64, tuple};
  Compiled& f =
      m.define("f", {m.t.int64, m.t.float64}, m.t.float64, [&](Builder& b, std::vector<Operand>& p, Compiled&) {
        Operand tape = b.emit(Op::tape_open, {b.constant(m.i(1))}, m.t.tape, reinterpret_cast<std::uintptr_t>(&layout));
        b.emit(Op::tape_reserve, {tape, b.constant(m.i(1000))}, m.t.nothing);
        b.emit(Op::tape_store, {tape, p[1], p[2]}, m.t.nothing, 0);
        Operand pair_value = b.emit(Op::tuple, {p[1], p[2]}, tuple);
        b.emit(Op::tape_store, {tape, p[1], pair_value}, m.t.nothing, 1);
        Operand x = b.emit(Op::tape_load, {tape, p[1]}, m.t.float64, 0);
        Operand y = b.emit(Op::tape_load, {tape, p[1]}, tuple, 1);
        Operand z = b.emit(Op::field_at, {y}, m.t.float64, 1);
        b.emit(Op::tape_close, {tape}, m.t.nothing);
        b.ret(b.emit(Op::add_float, {x, z}, m.t.float64));
      });
  CHECK(m.call(f, {m.i(999), m.f(1.25)}).float64 == 2.5);
}

TEST_CASE("a switch", "[codegen]") {
  Machine m;
  Compiled& f = m.define("f", {m.t.int64}, m.t.int64, [&](Builder& b, std::vector<Operand>& p, Compiled&) {
    BlockId done = b.new_block();
    Operand r = b.add_parameter(done, m.t.int64);
    std::vector<ir::Edge> edges;
    for (int k = 0; k < 4; ++k) edges.push_back({done, {b.constant(m.i(10 * k))}});
    b.switch_int(p[1], std::move(edges));
    b.set_block(done);
    b.ret(r);
  });
  CHECK(m.call(f, {m.i(0)}).bits == 0);
  CHECK(m.call(f, {m.i(2)}).bits == 20);
  CHECK(m.call(f, {m.i(7)}).bits == 30);
  CHECK(m.call(f, {m.i(-1)}).bits == 30);
}
