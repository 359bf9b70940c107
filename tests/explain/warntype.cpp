// Typed code as it is shown to people.
#include "lang/explain/warntype.hpp"

#include "tests/infer/fixture.hpp"

using namespace slope;
using namespace slope::test;

TEST_CASE("warntype shows what is not concrete") {
  Inferring i;
  i.method("plus", {i.t.float64, i.t.float64}, [&](ir::Builder& b, const auto& p) {
    b.ret(b.emit(Op::add_float, {p[1], p[2]}));
  });
  const TypeVar* T = i.types.var(i.runtime.symbol("T"), i.t.bottom, i.t.real);
  Method* f = i.method("f", {i.t.boolean, T, i.types.vararg(i.t.any, nullptr)},
                       [&](ir::Builder& b, const auto& p) {
                         ir::BlockId yes = b.new_block(), no = b.new_block(), join = b.new_block();
                         Operand x = b.add_parameter(join);
                         Operand y = i.call(b, "plus", {p[2], p[2]});
                         b.branch(p[1], yes, no);
                         b.set_block(yes);
                         b.jump(join, {y});
                         b.set_block(no);
                         b.jump(join, {b.emit(Op::get_field, {p[3], i.integer(b, 1)})});
                         b.set_block(join);
                         Operand made = b.emit(Op::call, {p[3], x});
                         b.ret(b.emit(Op::tuple, {x, made}));
                       },
                       {T});
  for (const char* name : {"#self#", "flag", "x", "rest"}) f->arg_names.push_back(i.runtime.symbol(name));
  Specialization* target = i.target("f", {i.t.boolean, i.t.float64, i.t.string});
  infer::Inference inference(i.runtime, i.runtime.context, i.runtime.world());
  infer::InferResult result = inference.infer(*target);
  CHECK_GOLDEN("typed", "warntype", infer::warntype(i.runtime, *target, result, {}));
  CHECK_GOLDEN("typed", "warntype_color", infer::warntype(i.runtime, *target, result, {.color = true}));
}
