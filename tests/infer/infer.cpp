#include "tests/infer/fixture.hpp"

using namespace slope;
using namespace slope::test;

TEST_CASE("arithmetic on known types") {
  Inferring i;
  i.method("f", {i.t.any, i.t.any}, [&](ir::Builder& b, const std::vector<Operand>& p) {
    b.ret(b.emit(Op::mul_float, {b.emit(Op::add_float, {p[1], p[2]}), p[2]}));
  });
  CHECK(i.infer("f", {i.t.float64, i.t.float64}).return_type == i.t.float64);
  CHECK(i.infer("f", {i.t.float64, i.t.float64}).effects == effect_none);
  CHECK(i.infer("f", {i.t.float64, i.t.int64}).return_type == i.t.bottom);
  CHECK_GOLDEN("typed", "arithmetic", i.typed("f", {i.t.float64, i.t.float64}));
  CHECK_GOLDEN("typed", "arithmetic_wrong", i.typed("f", {i.t.float64, i.t.int64}));
}

TEST_CASE("constants are folded and branches on them taken") {
  Inferring i;
  i.method("f", {i.t.any}, [&](ir::Builder& b, const std::vector<Operand>& p) {
    ir::BlockId yes = b.new_block(), no = b.new_block();
    Operand six = b.emit(Op::mul_int, {i.integer(b, 2), i.integer(b, 3)});
    b.branch(b.emit(Op::eq_int, {six, i.integer(b, 6)}), yes, no);
    b.set_block(yes);
    b.ret(b.emit(Op::add_int, {six, i.integer(b, 1)}));
    b.set_block(no);
    b.ret(p[1]);
  });
  auto found = i.infer("f", {i.t.string});
  CHECK(found.return_type == i.t.int64);
  REQUIRE(found.constant_result.defined());
  CHECK(found.constant_result.bits == 7);
  CHECK_GOLDEN("typed", "fold", i.typed("f", {i.t.string}));
}

TEST_CASE("calls are linked to specialisations") {
  Inferring i;
  i.method("g", {i.t.int64}, [&](ir::Builder& b, const auto& p) { b.ret(b.emit(Op::add_int, {p[1], p[1]})); });
  i.method("g", {i.t.float64}, [&](ir::Builder& b, const auto& p) { b.ret(b.emit(Op::add_float, {p[1], p[1]})); });
  i.method("f", {i.t.any}, [&](ir::Builder& b, const auto& p) { b.ret(i.call(b, "g", {i.call(b, "g", {p[1]})})); });
  CHECK(i.infer("f", {i.t.int64}).return_type == i.t.int64);
  CHECK(i.infer("f", {i.t.float64}).return_type == i.t.float64);
  CHECK(i.infer("f", {i.t.string}).return_type == i.t.bottom);
  CHECK_GOLDEN("typed", "invoke", i.typed("f", {i.t.float64}));
  CHECK_GOLDEN("typed", "method_error", i.typed("f", {i.t.string}));
  SECTION("the callee has code now, and a new method ends what used the old answer") {
    Specialization* g = i.target("g", {i.t.int64});
    REQUIRE(g->code.size() == 1);
    CHECK(g->code[0]->return_type == i.t.int64);
    Specialization* f = i.target("f", {i.t.int64});
    auto found = i.infer("f", {i.t.int64});
    CodeInstance* code = infer::publish(i.runtime, *f, std::move(found));
    CHECK(code->valid_in(i.runtime.world()));
    i.method("g", {i.t.int64}, [&](ir::Builder& b, const auto& p) {
      b.ret(b.emit(Op::sitofp, {i.type(b, i.t.float64), p[1]}));
    });
    CHECK(!code->valid_in(i.runtime.world()));
    CHECK(i.infer("f", {i.t.int64}).return_type == i.t.float64);
  }
}

TEST_CASE("branches say what a value is") {
  Inferring i;
  const Type* maybe = i.types.union_of(std::vector<const Type*>{i.t.nothing, i.t.float64});
  i.method("source", {i.t.boolean}, [&](ir::Builder& b, const auto& p) {
    ir::BlockId yes = b.new_block(), no = b.new_block();
    b.branch(p[1], yes, no);
    b.set_block(yes);
    b.ret(b.constant(i.runtime.nothing()));
    b.set_block(no);
    b.ret(b.constant(i.runtime.from_float(1.5)));
  });
  CHECK(i.infer("source", {i.t.boolean}).return_type == maybe);

  SECTION("=== nothing, and what follows a branch that raises") {
    i.method("f", {i.t.boolean}, [&](ir::Builder& b, const auto& p) {
      ir::BlockId yes = b.new_block(), after = b.new_block();
      Operand x = i.call(b, "source", {p[1]});
      b.branch(b.emit(Op::egal, {x, b.constant(i.runtime.nothing())}), yes, after);
      b.set_block(yes);
      b.emit(Op::call, {b.constant(ir::builtin_op(i.t, Op::throw_)), x});
      b.jump(after);
      b.set_block(after);
      b.ret(b.emit(Op::add_float, {x, x}));
    });
    CHECK(i.infer("f", {i.t.boolean}).return_type == i.t.float64);
    CHECK_GOLDEN("typed", "refine_after_raise", i.typed("f", {i.t.boolean}));
  }
  SECTION("isa with both sides joined") {
    i.method("f", {i.t.boolean}, [&](ir::Builder& b, const auto& p) {
      ir::BlockId yes = b.new_block(), join = b.new_block();
      Operand joined = b.add_parameter(join);
      Operand x = i.call(b, "source", {p[1]});
      Operand test = b.emit(Op::not_int, {b.emit(Op::isa, {x, i.type(b, i.t.float64)})});
      b.branch(test, yes, join, {}, {x});
      b.set_block(yes);
      b.jump(join, {b.constant(i.runtime.from_float(0.0))});
      b.set_block(join);
      b.ret(b.emit(Op::neg_float, {joined}));
    });
    CHECK(i.infer("f", {i.t.boolean}).return_type == i.t.float64);
    CHECK_GOLDEN("typed", "refine_edge", i.typed("f", {i.t.boolean}));
  }
  SECTION("a test in a callee") {
    i.method("isnothing", {i.t.any}, [&](ir::Builder& b, const auto& p) {
      b.ret(b.emit(Op::egal, {p[1], b.constant(i.runtime.nothing())}));
    });
    i.method("f", {i.t.boolean}, [&](ir::Builder& b, const auto& p) {
      ir::BlockId yes = b.new_block(), no = b.new_block();
      Operand x = i.call(b, "source", {p[1]});
      b.branch(i.call(b, "isnothing", {x}), yes, no);
      b.set_block(yes);
      b.ret(b.constant(i.runtime.from_float(0.0)));
      b.set_block(no);
      b.ret(b.emit(Op::neg_float, {x}));
    });
    CHECK(i.infer("f", {i.t.boolean}).return_type == i.t.float64);
    CHECK_GOLDEN("typed", "refine_by_callee", i.typed("f", {i.t.boolean}));
    CHECK_GOLDEN(
        "typed", "isnothing",
        Inferring::describe(infer::Inference(i.runtime, i.runtime.context, i.runtime.world())
                                .infer_function(*i.target("isnothing", {i.t.float64})->method->ir,
                                                std::vector<const Type*>{i.function("isnothing").type, i.t.any})));
  }
}

TEST_CASE("loops reach a fixpoint") {
  Inferring i;
  // s = 0; k = 0; while k < n: s = s + 1.5 (the sum changes type); k = k + 1
  i.method("plus", {i.t.float64, i.t.float64}, [&](ir::Builder& b, const auto& p) {
    b.ret(b.emit(Op::add_float, {p[1], p[2]}));
  });
  i.method("plus", {i.t.int64, i.t.float64}, [&](ir::Builder& b, const auto& p) {
    b.ret(b.emit(Op::add_float, {b.emit(Op::sitofp, {i.type(b, i.t.float64), p[1]}), p[2]}));
  });
  i.method("f", {i.t.int64}, [&](ir::Builder& b, const auto& p) {
    ir::BlockId header = b.new_block(), body = b.new_block(), done = b.new_block();
    b.jump(header, {i.integer(b, 0), i.integer(b, 0)});
    Operand s = b.add_parameter(header), k = b.add_parameter(header);
    b.function().blocks[header].is_loop_header = true;
    b.set_block(header);
    b.branch(b.emit(Op::slt_int, {k, p[1]}), body, done);
    b.set_block(body);
    Operand s2 = i.call(b, "plus", {s, b.constant(i.runtime.from_float(1.5))});
    b.jump(header, {s2, b.emit(Op::add_int, {k, i.integer(b, 1)})});
    b.set_block(done);
    b.ret(s);
  });
  auto found = i.infer("f", {i.t.int64});
  CHECK(found.return_type == i.types.union_of(std::vector<const Type*>{i.t.int64, i.t.float64}));
  CHECK((found.effects & effect_diverges) != 0);
  CHECK_GOLDEN("typed", "loop_union_split", i.typed("f", {i.t.int64}));
}

TEST_CASE("a test that is sure at first narrows later") {
  Inferring i;
  // while n !== nothing; n = next(n); end, with next(::Int64)::Union{Nothing,Int64}
  i.method("next", {i.t.int64}, [&](ir::Builder& b, const auto& p) {
    ir::BlockId yes = b.new_block(), no = b.new_block();
    b.branch(b.emit(Op::slt_int, {p[1], i.integer(b, 9)}), yes, no);
    b.set_block(yes);
    b.ret(b.emit(Op::add_int, {p[1], i.integer(b, 1)}));
    b.set_block(no);
    b.ret(b.constant(i.runtime.nothing()));
  });
  i.method("differ", {i.t.any, i.t.any}, [&](ir::Builder& b, const auto& p) {
    b.ret(b.emit(Op::not_int, {b.emit(Op::egal, {p[1], p[2]})}));
  });
  i.method("f", {i.t.int64}, [&](ir::Builder& b, const auto& p) {
    ir::BlockId header = b.new_block(), body = b.new_block(), done = b.new_block();
    Operand n = b.add_parameter(header);
    b.jump(header, {p[1]});
    b.set_block(header);
    b.branch(i.call(b, "differ", {n, b.constant(i.runtime.nothing())}), body, done);
    b.set_block(body);
    b.jump(header, {i.call(b, "next", {n})});
    b.set_block(done);
    b.ret(n);
  });
  CHECK(i.infer("f", {i.t.int64}).return_type == i.t.nothing);
  CHECK_GOLDEN("typed", "loop_narrowing", i.typed("f", {i.t.int64}));
}

TEST_CASE("return_type is answered while inferring, builtins in variables are unknown") {
  Inferring i;
  static const NativeInfo asks{"return_type", [](Context&, const Value*, std::size_t, Value&) { return false; },
                               effect_throws | effect_allocates, nullptr, true};
  i.runtime.define_native(i.runtime.core, &asks);
  i.method("g", {i.t.int64}, [&](ir::Builder& b, const auto& p) {
    b.ret(b.emit(Op::sitofp, {i.type(b, i.t.float64), p[1]}));
  });
  i.method("f", {i.t.any}, [&](ir::Builder& b, const auto& p) {
    Operand types = b.emit(Op::tuple, {b.emit(Op::type_of, {p[1]})});
    std::vector<Operand> operands{i.callee(b, "g"), types};
    b.ret(b.emit(Op::native, operands, nullptr, reinterpret_cast<std::uintptr_t>(&asks)));
  });
  CHECK(i.infer("f", {i.t.int64}).return_type == i.types.type_type(i.t.float64));
  CHECK(i.infer("f", {i.t.string}).return_type == i.types.type_type(i.t.bottom));
  i.method("h", {i.t.any, i.t.any}, [&](ir::Builder& b, const auto& p) { b.ret(b.emit(Op::call, {p[1], p[2]})); });
  CHECK(i.infer("h", {i.t.builtin_function, i.t.float64}).return_type == i.t.any);
}

TEST_CASE("memory that a function makes and writes is its own") {
  Inferring i;
  const DataType* vector = i.types.array_of(i.t.float64, 1);
  i.method("f", {i.t.float64}, [&](ir::Builder& b, const auto& p) {
    Operand a = b.emit(Op::array_new, {i.type(b, vector), i.integer(b, 1)});
    b.emit(Op::array_set, {a, p[1], i.integer(b, 1)});
    b.ret(b.emit(Op::array_get, {a, i.integer(b, 1)}));
  });
  auto found = i.infer("f", {i.t.float64});
  CHECK((found.effects & (effect_writes | effect_reads)) == 0);
  CHECK_GOLDEN("typed", "own_memory", i.typed("f", {i.t.float64}));
}

TEST_CASE("recursion") {
  Inferring i;
  auto smaller = [&](ir::Builder& b, Operand n) { return b.emit(Op::sub_int, {n, i.integer(b, 1)}); };
  SECTION("fib") {
    i.method("fib", {i.t.int64}, [&](ir::Builder& b, const auto& p) {
      ir::BlockId yes = b.new_block(), no = b.new_block();
      b.branch(b.emit(Op::slt_int, {p[1], i.integer(b, 2)}), yes, no);
      b.set_block(yes);
      b.ret(p[1]);
      b.set_block(no);
      Operand a = i.call(b, "fib", {smaller(b, p[1])});
      Operand c = i.call(b, "fib", {smaller(b, smaller(b, p[1]))});
      b.ret(b.emit(Op::add_int, {a, c}));
    });
    auto found = i.infer("fib", {i.t.int64});
    CHECK(found.return_type == i.t.int64);
    CHECK(found.effects == (effect_diverges | effect_throws));
    CHECK_GOLDEN("typed", "fib", i.typed("fib", {i.t.int64}));
  }
  SECTION("mutual, entered from outside") {
    auto half = [&](const std::string& name, const std::string& other, Value last) {
      i.method(name, {i.t.int64}, [&](ir::Builder& b, const auto& p) {
        ir::BlockId yes = b.new_block(), no = b.new_block();
        b.branch(b.emit(Op::slt_int, {p[1], i.integer(b, 2)}), yes, no);
        b.set_block(yes);
        b.ret(b.constant(last));
        b.set_block(no);
        b.ret(i.call(b, other, {smaller(b, p[1])}));
      });
    };
    half("odd", "even", i.runtime.from_float(1.0));
    half("even", "odd", i.runtime.from_int(1));
    i.method("f", {i.t.int64}, [&](ir::Builder& b, const auto& p) { b.ret(i.call(b, "odd", {p[1]})); });
    const Type* both = i.types.union_of(std::vector<const Type*>{i.t.int64, i.t.float64});
    CHECK(i.infer("f", {i.t.int64}).return_type == both);
    REQUIRE(i.target("even", {i.t.int64})->code.size() == 1);
    CHECK(i.target("even", {i.t.int64})->code[0]->return_type == both);
    CHECK(i.target("odd", {i.t.int64})->code[0]->return_type == both);
  }
  SECTION("without end") {
    i.method("f", {i.t.any}, [&](ir::Builder& b, const auto& p) { b.ret(i.call(b, "f", {p[1]})); });
    CHECK(i.infer("f", {i.t.int64}).return_type == i.t.bottom);
  }
  SECTION("with ever larger types") {
    i.method("grow", {i.t.any},
             [&](ir::Builder& b, const auto& p) { b.ret(i.call(b, "grow", {b.emit(Op::tuple, {p[1]})})); });
    i.infer("grow", {i.t.int64});
    i.method("fork", {i.t.any}, [&](ir::Builder& b, const auto& p) {
      i.call(b, "fork", {b.emit(Op::tuple, {p[1], p[1]})});
      b.ret(i.call(b, "fork", {b.emit(Op::tuple, {p[1]})}));
    });
    i.infer("fork", {i.t.int64});
    i.method("more", {i.t.any, i.types.vararg(i.t.any, nullptr)}, [&](ir::Builder& b, const auto& p) {
      std::vector<Operand> operands{i.callee(b, "more"), p[1], p[1], p[2]};
      b.ret(b.emit(Op::call_splat, operands, nullptr, 8));
    });
    i.infer("more", {i.t.int64});
  }
}

TEST_CASE("constants are passed into callees where that tells more") {
  Inferring i;
  const Type* pair = i.types.tuple(std::vector<const Type*>{i.t.int64, i.t.float64});
  i.method("getindex", {i.t.tuple_any, i.t.int64}, [&](ir::Builder& b, const auto& p) {
    b.ret(b.emit(Op::get_field, {p[1], p[2]}));
  });
  i.method("f", {pair}, [&](ir::Builder& b, const auto& p) { b.ret(i.call(b, "getindex", {p[1], i.integer(b, 2)})); });
  CHECK(i.infer("f", {pair}).return_type == i.t.float64);
  CHECK_GOLDEN("typed", "constant_index", i.typed("f", {pair}));
  i.method("g", {pair}, [&](ir::Builder& b, const auto& p) { b.ret(i.call(b, "getindex", {p[1], i.integer(b, 3)})); });
  CHECK(i.infer("g", {pair}).return_type == i.t.bottom);
}

TEST_CASE("static parameters, types as arguments") {
  Inferring i;
  const TypeVar* T = i.types.var(i.runtime.symbol("T"), i.t.bottom, i.t.any);
  const Type* vector_of_T = i.types.apply(i.t.array_name, std::vector<const Type*>{T, i.types.value_int(1)});
  i.method("eltype", {vector_of_T},
           [&](ir::Builder& b, const auto&) { b.ret(b.emit(Op::static_param, {}, nullptr, 0)); }, {T});
  i.method("convert", {i.types.type_type(i.t.float64), i.t.int64}, [&](ir::Builder& b, const auto& p) {
    b.ret(b.emit(Op::sitofp, {p[1], p[2]}));
  });
  i.method("f", {i.t.any, i.t.any}, [&](ir::Builder& b, const auto& p) {
    b.ret(i.call(b, "convert", {i.call(b, "eltype", {p[1]}), p[2]}));
  });
  auto vector = i.types.array_of(i.t.float64, 1);
  CHECK(i.infer("f", {vector, i.t.int64}).return_type == i.t.float64);
  CHECK_GOLDEN("typed", "static_parameter", i.typed("f", {vector, i.t.int64}));
}

TEST_CASE("varargs and splats") {
  Inferring i;
  i.method("second", {i.types.vararg(i.t.any, nullptr)}, [&](ir::Builder& b, const auto& p) {
    b.ret(b.emit(Op::get_field, {p[1], i.integer(b, 2)}));
  });
  i.method("f", {i.types.vararg(i.t.any, nullptr)}, [&](ir::Builder& b, const auto& p) {
    std::vector<Operand> operands{i.callee(b, "second"), i.integer(b, 1), p[1]};
    b.ret(b.emit(Op::call_splat, operands, nullptr, 4));
  });
  CHECK(i.infer("f", {i.t.float64, i.t.string}).return_type == i.t.float64);
  CHECK(i.infer("f", {}).return_type == i.t.bottom);
  CHECK_GOLDEN("typed", "splat", i.typed("f", {i.t.float64, i.t.string}));
  SECTION("types among them stay known") {
    i.method("g", {}, [&](ir::Builder& b, const auto&) {
      b.ret(i.call(b, "second", {i.integer(b, 1), i.type(b, i.t.string)}));
    });
    auto found = i.infer("g", {});
    CHECK(found.return_type == i.types.type_type(i.t.string));
  }
  SECTION("of unknown length") {
    i.method("count", {i.types.vararg(i.t.any, nullptr)}, [&](ir::Builder& b, const auto&) { b.ret(i.integer(b, 3)); });
    i.method("g", {i.t.any}, [&](ir::Builder& b, const auto& p) {
      std::vector<Operand> operands{i.callee(b, "count"), p[1]};
      b.ret(b.emit(Op::call_splat, operands, nullptr, 2));
    });
    CHECK(i.infer("g", {i.types.array_of(i.t.float64, 1)}).return_type == i.t.int64);
  }
}

TEST_CASE("structs, closures, fields") {
  Inferring i;
  TypeName* point = i.types.new_name(i.runtime.symbol("Point"), i.runtime.main);
  std::vector<const Symbol*> names{i.runtime.symbol("x"), i.runtime.symbol("label")};
  std::vector<const Type*> field_types{i.t.float64, i.t.any};
  i.types.define_struct(point, {}, i.t.any, names, field_types, false, 2);
  SECTION("fields of what was just made are known better than declared") {
    i.method("f", {i.t.float64, i.t.int64}, [&](ir::Builder& b, const auto& p) {
      Operand made = b.emit(Op::make_struct, {i.type(b, point->primary), p[1], p[2]});
      b.ret(b.emit(Op::get_field, {made, i.symbol(b, "label")}));
    });
    CHECK(i.infer("f", {i.t.float64, i.t.int64}).return_type == i.t.int64);
    CHECK_GOLDEN("typed", "struct", i.typed("f", {i.t.float64, i.t.int64}));
  }
  SECTION("no such field, wrong field type") {
    i.method("f", {point->primary}, [&](ir::Builder& b, const auto& p) {
      b.ret(b.emit(Op::get_field, {p[1], i.symbol(b, "y")}));
    });
    CHECK(i.infer("f", {point->primary}).return_type == i.t.bottom);
    i.method("g", {i.t.string}, [&](ir::Builder& b, const auto& p) {
      b.ret(b.emit(Op::make_struct, {i.type(b, point->primary), p[1], p[1]}));
    });
    CHECK(i.infer("g", {i.t.string}).return_type == i.t.bottom);
  }
  SECTION("closures carry what they capture in their type") {
    std::vector<const Symbol*> captures{i.runtime.symbol("k"), i.runtime.symbol("T")};
    TypeName* closure = i.types.closure_name(i.runtime.symbol("#"), i.runtime.main, captures);
    i.method_of("#1", {closure->wrapper, i.t.any}, [&](ir::Builder& b, const auto& p) {
      Operand k = b.emit(Op::get_field, {p[0], i.symbol(b, "k")});
      Operand T = b.emit(Op::get_field, {p[0], i.symbol(b, "T")});
      b.ret(b.emit(Op::mul_float, {b.emit(Op::sitofp, {T, k}), p[1]}));
    });
    i.method("apply", {i.t.any, i.t.any}, [&](ir::Builder& b, const auto& p) {
      b.ret(b.emit(Op::call, {p[1], p[2]}));
    });
    i.method("f", {i.t.int64, i.t.float64}, [&](ir::Builder& b, const auto& p) {
      std::vector<Operand> captured{p[1], i.type(b, i.t.float64)};
      Operand made = b.emit(Op::make_closure, captured, nullptr, reinterpret_cast<std::uintptr_t>(closure));
      b.ret(i.call(b, "apply", {made, p[2]}));
    });
    CHECK(i.infer("f", {i.t.int64, i.t.float64}).return_type == i.t.float64);
    CHECK_GOLDEN("typed", "closure", i.typed("f", {i.t.int64, i.t.float64}));
  }
}

TEST_CASE("exceptions") {
  Inferring i;
  i.method("f", {i.t.int64, i.t.int64}, [&](ir::Builder& b, const auto& p) {
    ir::BlockId handler = b.new_block();
    b.set_handler(handler);
    ir::BlockId body = b.new_block();
    b.set_handler(ir::no_block);
    ir::BlockId after = b.new_block();
    b.jump(body);
    b.set_block(body);
    Operand q = b.emit(Op::sdiv_int, {p[1], p[2]});
    Operand r = b.add_parameter(after);
    b.jump(after, {q});
    b.set_block(handler);
    b.emit(Op::caught, {});
    b.emit(Op::caught_end, {});
    b.jump(after, {b.constant(i.runtime.from_float(0.5))});
    b.set_block(after);
    b.ret(r);
  });
  auto found = i.infer("f", {i.t.int64, i.t.int64});
  CHECK(found.return_type == i.types.union_of(std::vector<const Type*>{i.t.int64, i.t.float64}));
  CHECK((found.effects & effect_throws) == 0);
  CHECK_GOLDEN("typed", "handler", i.typed("f", {i.t.int64, i.t.int64}));
}

TEST_CASE("globals") {
  Inferring i;
  Binding* constant = i.runtime.binding(i.runtime.main, i.runtime.symbol("c"));
  i.runtime.set_constant(i.runtime.main, "c", i.runtime.from_int(42));
  Binding* variable = i.runtime.binding(i.runtime.main, i.runtime.symbol("v"));
  variable->value = i.runtime.from_int(1);
  i.method("f", {}, [&](ir::Builder& b, const auto&) {
    b.ret(b.emit(Op::load_global, {}, nullptr, reinterpret_cast<std::uintptr_t>(constant)));
  });
  i.method("g", {}, [&](ir::Builder& b, const auto&) {
    b.ret(b.emit(Op::load_global, {}, nullptr, reinterpret_cast<std::uintptr_t>(variable)));
  });
  auto found = i.infer("f", {});
  CHECK(found.constant_result.bits == 42);
  REQUIRE(found.edges.size() == 1);
  CHECK(found.edges[0].binding == constant);
  CHECK(i.infer("g", {}).return_type == i.t.any);
  variable->declared = i.t.int64;
  CHECK(i.infer("g", {}).return_type == i.t.int64);
}

TEST_CASE("what is not known stays a call, and what is wrong is checked") {
  Inferring i;
  i.method("f", {i.t.any, i.t.any}, [&](ir::Builder& b, const auto& p) {
    Operand x = b.emit(Op::call, {p[1], p[2]});
    b.ret(b.emit(Op::add_int, {x, i.integer(b, 1)}));
  });
  auto found = infer::Inference(i.runtime, i.runtime.context, i.runtime.world())
                   .infer_function(*i.target("f", {i.t.int64, i.t.int64})->method->ir,
                                   std::vector<const Type*>{i.t.any, i.t.any, i.t.any});
  CHECK(ir::verify(*found.typed) == "");
  CHECK_GOLDEN("typed", "unknown", Inferring::describe(found));
}
