// Representations: structs and tuples in registers and in memory, boxes, Values, arrays of every storage class, cells.
#include "tests/codegen/fixture.hpp"

using namespace slope;
using namespace slope::codegen_test;

namespace {

const DataType* define_struct(Machine& m, const char* name, std::vector<std::pair<const char*, const Type*>> fields,
                              bool is_mutable, std::uint32_t min_initialized) {
  TypeName* type = m.runtime.types.new_name(m.runtime.symbol(name), m.runtime.main);
  std::vector<const Symbol*> names;
  std::vector<const Type*> types;
  for (auto& [field, t] : fields) {
    names.push_back(m.runtime.symbol(field));
    types.push_back(t);
  }
  m.runtime.types.define_struct(type, {}, m.t.any, names, types, is_mutable, min_initialized);
  return as_data(type->wrapper);
}

Compiled& identity(Machine& m, const Type* from, const Type* to) {
  return m.define("identity", {from}, to, [&](Builder& b, std::vector<Operand>& p, Compiled&) {
    BlockId next = b.new_block();
    Operand x = b.add_parameter(next, to);
    b.jump(next, {p[1]});
    b.set_block(next);
    b.ret(x);
  });
}

}  // namespace

TEST_CASE("values pass through every representation", "[codegen]") {
  Machine m;
  std::vector<const Type*> mixed{m.t.int8, m.t.boolean, m.t.float64, m.t.nothing, m.t.string};
  std::vector<const Type*> bits{m.t.int8, m.t.boolean, m.t.float64};
  const DataType* with_string = m.runtime.types.tuple(mixed);
  std::vector<const Type*> nested_types{m.runtime.types.tuple(bits), with_string, m.t.float32};
  const DataType* nested = m.runtime.types.tuple(nested_types);
  std::vector<const Type*> many(40, m.t.int64);
  const DataType* large = m.runtime.types.tuple(many);

  Value text = m.runtime.from_string("text");
  Rooted keep(m.runtime.heap);
  keep.values.push_back(text);
  auto tuple = [&](std::vector<Value> elements) {
    Value v;
    REQUIRE(m.runtime.new_tuple(m.ctx, elements.data(), elements.size(), v));
    keep.values.push_back(v);
    return v;
  };
  Value small_bits = tuple({Value(m.t.int8, std::int64_t{0xfe}), m.runtime.from_bool(true), m.f(2.5)});
  Value small = tuple({Value(m.t.int8, std::int64_t{3}), m.runtime.from_bool(true), m.f(2.5), m.nothing(), text});
  std::vector<Value> numbers;
  for (int k = 0; k < 40; ++k) numbers.push_back(m.i(k));
  std::vector<Value> all{m.i(-5),
                         m.f(1.5),
                         m.runtime.from_bool(true),
                         m.nothing(),
                         text,
                         m.type(m.t.float64),
                         m.runtime.from_symbol(m.runtime.symbol("a")),
                         small_bits,
                         small,
                         tuple({small_bits, small, Value(m.t.float32, std::int64_t{0x3fc00000})}),
                         tuple(numbers)};
  for (Value v : all) {
    for (const Type* from : {static_cast<const Type*>(v.type), static_cast<const Type*>(m.t.any)}) {
      Value r = m.call(identity(m, from, m.t.any), {v});
      CHECK(egal(r, v));
      r = m.call(identity(m, from, v.type), {v});
      CHECK(egal(r, v));
    }
    // Through an array, declared exactly and as Any.
    for (const Type* element : {static_cast<const Type*>(v.type), static_cast<const Type*>(m.t.any)}) {
      const DataType* array = m.runtime.types.array_of(element, 1);
      Compiled& c = m.define("store", {v.type, array}, v.type, [&](Builder& b, std::vector<Operand>& p, Compiled&) {
        b.emit(Op::array_set, {p[2], p[1], b.constant(m.i(2))}, array);
        Operand x = b.emit(Op::array_get, {p[2], b.constant(m.i(2))}, element);
        b.ret(b.emit(Op::refine, {x}, v.type));
      });
      ArrayObject* a = m.vector(element, 3);
      CHECK(egal(m.call(c, {v, Value(a->type, a)}), v));
    }
    // As constants.
    Compiled& constant =
        m.define("constant", {}, m.t.any, [&](Builder& b, std::vector<Operand>&, Compiled&) { b.ret(b.constant(v)); });
    CHECK(egal(m.call(constant, {}), v));
  }
  (void)nested;
  (void)large;
}

TEST_CASE("fields of structs", "[codegen]") {
  Machine m;
  const DataType* point = define_struct(m, "Point", {{"x", m.t.float64}, {"y", m.t.int64}}, false, 2);
  const DataType* node = define_struct(m, "Node", {{"p", point}, {"any", m.t.any}, {"s", m.t.string}}, true, 1);
  Compiled& f = m.define("f", {m.t.float64, m.t.any}, m.t.float64, [&](Builder& b, std::vector<Operand>& p, Compiled&) {
    Operand x = b.emit(Op::make_struct, {b.constant(m.type(point)), p[1], b.constant(m.i(2))}, point);
    Operand n = b.emit(Op::make_struct, {b.constant(m.type(node)), x}, node);
    b.emit(Op::set_field_at, {n, p[2]}, m.t.any, 1);
    Operand v = b.emit(Op::field_at, {n}, m.t.any, 1);
    Operand number = b.emit(Op::type_assert, {v, b.constant(m.type(m.t.float64))}, m.t.float64);
    Operand q = b.emit(Op::field_at, {n}, point, 0);
    Operand y = b.emit(Op::field_at, {q}, m.t.float64, 0);
    b.ret(b.emit(Op::add_float, {y, number}, m.t.float64));
  });
  CHECK(m.call(f, {m.f(1), m.f(2)}).float64 == 3);
  CHECK(!m.call(f, {m.f(1), m.i(2)}).defined());
  CHECK(m.ctx.take_error().type == m.t.type_error);
  m.ctx.trace.clear();

  Compiled& unset = m.define("unset", {m.t.float64}, m.t.string, [&](Builder& b, std::vector<Operand>& p, Compiled&) {
    Operand x = b.emit(Op::make_struct, {b.constant(m.type(point)), p[1], b.constant(m.i(2))}, point);
    Operand n = b.emit(Op::make_struct, {b.constant(m.type(node)), x}, node);
    b.ret(b.emit(Op::field_at, {n}, m.t.string, 2));
  });
  CHECK(!m.call(unset, {m.f(1)}).defined());
  CHECK(m.ctx.take_error().type == m.t.undef_ref_error);
}

TEST_CASE("undefined elements raise", "[codegen]") {
  Machine m;
  for (const Type* element : {static_cast<const Type*>(m.t.string), static_cast<const Type*>(m.t.any)}) {
    const DataType* array = m.runtime.types.array_of(element, 1);
    Compiled& f = m.define("f", {array}, element, [&](Builder& b, std::vector<Operand>& p, Compiled&) {
      b.ret(b.emit(Op::array_get, {p[1], b.constant(m.i(1))}, element));
    });
    ArrayObject* a = m.vector(element, 1);
    CHECK(!m.call(f, {Value(a->type, a)}).defined());
    CHECK(m.ctx.take_error().type == m.t.undef_ref_error);
    m.ctx.trace.clear();
  }
}

TEST_CASE("tests of type and identity", "[codegen]") {
  Machine m;
  std::vector<const Type*> members{m.t.int64, m.t.nothing};
  const Type* maybe = m.runtime.types.union_of(members);
  Value text = m.runtime.from_string("abc"), same_text = m.runtime.from_string("abc");
  Rooted keep(m.runtime.heap);
  keep.values = {text, same_text};
  std::vector<Value> values{m.i(1), m.f(1), m.nothing(), text, same_text, m.type(m.t.int64), m.type(maybe)};
  std::vector<const Type*> types{
      m.t.int64, m.t.number, m.t.any, maybe, m.t.string, m.t.data_type, m.runtime.types.type_type(m.t.int64)};
  for (Value v : values) {
    for (const Type* declared : {static_cast<const Type*>(v.type), static_cast<const Type*>(m.t.any)}) {
      for (const Type* type : types) {
        Compiled& f = m.define("f", {declared}, m.t.boolean, [&](Builder& b, std::vector<Operand>& p, Compiled&) {
          b.ret(b.emit(Op::isa, {p[1], b.constant(m.type(type))}, m.t.boolean));
        });
        CHECK((m.call(f, {v}).bits != 0) == is_instance(m.runtime.types, v, type));
      }
      for (Value w : values) {
        Compiled& f = m.define("f", {declared}, m.t.boolean, [&](Builder& b, std::vector<Operand>& p, Compiled&) {
          b.ret(b.emit(Op::egal, {p[1], b.constant(w)}, m.t.boolean));
        });
        CHECK((m.call(f, {v}).bits != 0) == egal(v, w));
      }
    }
  }
}

TEST_CASE("captured variables and globals", "[codegen]") {
  Machine m;
  Binding* binding = m.runtime.binding(m.runtime.main, m.runtime.symbol("g"));
  Compiled& f = m.define("f", {m.t.int64}, m.t.any, [&](Builder& b, std::vector<Operand>& p, Compiled&) {
    auto address = reinterpret_cast<std::uintptr_t>(binding);
    Operand cell = b.emit(Op::cell_new, {p[1]}, m.t.cell);
    b.emit(Op::cell_set, {cell, b.constant(m.f(0.5))}, m.t.float64);
    Operand v = b.emit(Op::cell_get, {cell}, m.t.any, reinterpret_cast<std::uintptr_t>(m.runtime.symbol("x")));
    b.emit(Op::store_global, {v}, m.t.any, address);
    b.ret(b.emit(Op::load_global, {}, m.t.any, address));
  });
  CHECK(m.call(f, {m.i(1)}).float64 == 0.5);
  CHECK(binding->value.float64 == 0.5);
  Binding* other = m.runtime.binding(m.runtime.main, m.runtime.symbol("missing"));
  Compiled& g = m.define("g", {}, m.t.any, [&](Builder& b, std::vector<Operand>&, Compiled&) {
    b.ret(b.emit(Op::load_global, {}, m.t.any, reinterpret_cast<std::uintptr_t>(other)));
  });
  CHECK(!m.call(g, {}).defined());
  CHECK(m.ctx.take_error().type == m.t.undef_var_error);
}

TEST_CASE("strings", "[codegen]") {
  Machine m;
  Value text = m.runtime.from_string("hello");
  Rooted keep(m.runtime.heap);
  keep.values.push_back(text);
  Compiled& f = m.define("f", {m.t.string}, m.t.uint8, [&](Builder& b, std::vector<Operand>& p, Compiled&) {
    Operand n = b.emit(Op::string_length, {p[1]}, m.t.int64);
    b.ret(b.emit(Op::string_byte, {p[1], n}, m.t.uint8));
  });
  CHECK(m.call(f, {text}).bits == 'o');
}

TEST_CASE("arrays grow", "[codegen]") {
  Machine m;
  const DataType* array = m.runtime.types.array_of(m.t.int64, 1);
  Compiled& f = m.define("f", {m.t.int64}, m.t.int64, [&](Builder& b, std::vector<Operand>& p, Compiled&) {
    BlockId header = b.new_block(), body = b.new_block(), exit = b.new_block();
    Operand a = b.emit(Op::array_new, {b.constant(m.type(array)), b.constant(m.i(0))}, array);
    b.jump(header, {b.constant(m.i(0))});
    Operand k = b.add_parameter(header, m.t.int64);
    b.set_block(header);
    b.branch(b.emit(Op::slt_int, {k, p[1]}, m.t.boolean), body, exit);
    b.set_block(body);
    Operand i = b.emit(Op::add_int, {k, b.constant(m.i(1))}, m.t.int64);
    b.emit(Op::array_resize, {a, i}, array);
    b.emit(Op::array_set, {a, k, i}, array);
    b.jump(header, {i});
    b.set_block(exit);
    b.ret(b.emit(Op::array_get, {a, p[1]}, m.t.int64));
  });
  CHECK(m.call(f, {m.i(1000)}).bits == 999);
  m.runtime.heap.set_stress(true);
  CHECK(m.call(f, {m.i(50)}).bits == 49);
}

TEST_CASE("arrays grow at their front", "[codegen]") {
  Machine m;
  const DataType* array = m.runtime.types.array_of(m.t.int64, 1);
  // Two in at the front and one out for each k: what is behind counts down from the last two.
  Compiled& f = m.define("f", {m.t.int64}, m.t.int64, [&](Builder& b, std::vector<Operand>& p, Compiled&) {
    BlockId header = b.new_block(), body = b.new_block(), exit = b.new_block();
    Operand a = b.emit(Op::array_new, {b.constant(m.type(array)), b.constant(m.i(0))}, array);
    b.jump(header, {b.constant(m.i(0))});
    Operand k = b.add_parameter(header, m.t.int64);
    b.set_block(header);
    b.branch(b.emit(Op::slt_int, {k, p[1]}, m.t.boolean), body, exit);
    b.set_block(body);
    Operand one = b.constant(m.i(1));
    Operand i = b.emit(Op::add_int, {k, one}, m.t.int64);
    b.emit(Op::array_resize_front, {a, b.emit(Op::add_int, {i, one}, m.t.int64)}, array);
    b.emit(Op::array_set, {a, k, one}, array);
    b.emit(Op::array_set, {a, k, b.constant(m.i(2))}, array);
    b.emit(Op::array_resize_front, {a, i}, array);
    b.jump(header, {i});
    b.set_block(exit);
    b.ret(b.emit(Op::array_get, {a, b.constant(m.i(3))}, m.t.int64));
  });
  CHECK(m.call(f, {m.i(1000)}).bits == 997);
  m.runtime.heap.set_stress(true);
  CHECK(m.call(f, {m.i(50)}).bits == 47);
}

TEST_CASE("dumps", "[codegen]") {
  Machine m;
  Compiled& f = m.define("f", {m.t.int64}, m.t.int64, [&](Builder& b, std::vector<Operand>& p, Compiled&) {
    b.ret(b.emit(Op::add_int, {p[1], b.constant(m.i(41))}, m.t.int64));
  });
  CHECK(m.generator->dump(m.ctx, *f.code, CodeGenerator::Dump::llvm).find("add i64") != std::string::npos);
  CHECK(m.generator->dump(m.ctx, *f.code, CodeGenerator::Dump::native).find("41") != std::string::npos);
}
