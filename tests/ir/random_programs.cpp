// Random functions with slots, run as they are and again after SSA construction and simplification: the same results.
#include <optional>
#include <random>

#include "lang/ir/build.hpp"
#include "tests/ir/fixture.hpp"

using namespace slope;
using namespace slope::ir;
using slope::test::IrFixture;

namespace {

// Runs a function on Int64 arguments with nothing but `execute`. Nothing when it takes too many steps.
class Evaluator {
 public:
  Evaluator(Context& ctx, const Function& function)
      : ctx_(ctx), function_(function), values_(function.insts.size()), slots_(function.slots.size()) {}

  std::optional<std::string> run(const std::vector<Value>& arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) values_[function_.blocks[0].parameters[i]] = arguments[i];
    BlockId b = 0;
    for (int steps = 0; steps < 300; ++steps) {
      const ir::Block& block = function_.blocks[b];
      bool failed = false;
      for (std::uint32_t id : block.insts) {
        failed = !execute_inst(id);
        if (failed) break;
      }
      const Inst& end = function_.insts[block.terminator];
      if (failed) {
        if (block.handler == no_block) return "error: " + to_string(ctx_.take_error().type);
        b = block.handler;
        continue;
      }
      if (end.op == Op::ret) return constant_text(value(end.operands[0]));
      std::size_t which = end.op == Op::branch && !value(end.operands[0]).bits ? 1 : 0;
      const ir::Edge& edge = block.edges[which];
      std::vector<Value> moved;
      for (Operand o : edge.arguments) moved.push_back(value(o));
      for (std::size_t i = 0; i < moved.size(); ++i) values_[function_.blocks[edge.target].parameters[i]] = moved[i];
      b = edge.target;
    }
    return std::nullopt;
  }

 private:
  Value value(Operand o) { return o.is_constant() ? function_.constants[o.index()] : values_[o.index()]; }

  bool execute_inst(std::uint32_t id) {
    const Inst& inst = function_.insts[id];
    switch (inst.op) {
      case Op::slot_get:
        if (!slots_[inst.aux].defined()) return ctx_.undef_var(function_.slots[inst.aux]);
        values_[id] = slots_[inst.aux];
        return true;
      case Op::slot_set:
        slots_[inst.aux] = values_[id] = value(inst.operands[0]);
        return true;
      case Op::slot_clear:
        slots_[inst.aux] = Value();
        return true;
      case Op::slot_defined:
        values_[id] = ctx_.runtime->from_bool(slots_[inst.aux].defined());
        return true;
      case Op::caught:
        values_[id] = ctx_.runtime->nothing();
        ctx_.take_error();
        return true;
      default:
        break;
    }
    std::vector<Value> operands;
    for (Operand o : inst.operands) operands.push_back(value(o));
    return execute(ctx_, inst.op, operands.data(), operands.size(), inst.aux, values_[id]);
  }

  Context& ctx_;
  const Function& function_;
  std::vector<Value> values_;
  std::vector<Value> slots_;
};

class Generator {
 public:
  Generator(Runtime& runtime, unsigned seed) : runtime_(runtime), random_(seed) {}

  std::unique_ptr<Function> run() {
    auto function = std::make_unique<Function>();
    function->name = "random";
    Builder builder(*function);
    std::uint32_t slot_count = 1 + pick(4);
    for (std::uint32_t i = 0; i < slot_count; ++i) function->slots.push_back(runtime_.symbol("v" + std::to_string(i)));
    std::uint32_t block_count = 3 + pick(8);
    builder.new_block();
    Operand argument = builder.add_parameter(0);
    for (std::uint32_t b = 1; b < block_count; ++b) builder.new_block();
    bool handled = pick(2);
    if (handled) {  // the last block is a handler of some others
      for (BlockId b = 1; b + 1 < block_count; ++b)
        if (pick(2)) function->blocks[b].handler = block_count - 1;
    }
    for (BlockId b = 0; b < block_count; ++b) {
      builder.set_block(b);
      if (handled && b == block_count - 1) builder.emit(Op::caught, {});
      std::vector<Operand> here{argument, builder.constant(runtime_.from_int(pick(5)))};
      for (std::uint32_t n = pick(6); n-- > 0;) {
        std::uint32_t slot = pick(slot_count);
        switch (pick(6)) {
          case 0:
          case 1:
            builder.emit(Op::slot_set, {here[pick(here.size())]}, nullptr, slot);
            break;
          case 2:
          case 3:
            here.push_back(builder.emit(Op::slot_get, {}, nullptr, slot));
            break;
          case 4:
            here.push_back(
                builder.emit(pick(2) ? Op::add_int : Op::sdiv_int, {here[pick(here.size())], here[pick(here.size())]}));
            break;
          default: {
            if (pick(3) == 0) {
              builder.emit(Op::slot_clear, {}, nullptr, slot);
            } else {
              Operand defined = builder.emit(Op::slot_defined, {}, nullptr, slot);
              here.push_back(builder.emit(
                  Op::zext_int, {builder.constant(runtime_.from_type(runtime_.types.builtin().int64)), defined}));
            }
          }
        }
      }
      auto target = [&] {
        BlockId t = 1 + pick(block_count - 1);
        return handled && t == block_count - 1 ? 1 : t;
      };
      switch (pick(4)) {
        case 0:
          builder.ret(here.back());
          break;
        case 1:
          builder.jump(target());
          break;
        default: {
          Operand condition =
              builder.emit(Op::slt_int, {here[pick(here.size())], builder.constant(runtime_.from_int(pick(4)))});
          if (pick(5) == 0) condition = builder.constant(runtime_.from_bool(pick(2)));
          builder.branch(condition, target(), target());
        }
      }
    }
    return function;
  }

 private:
  std::uint32_t pick(std::size_t below) { return static_cast<std::uint32_t>(random_() % below); }
  Runtime& runtime_;
  std::mt19937 random_;
};

}  // namespace

TEST_CASE_METHOD(IrFixture, "SSA construction and simplification keep what random programs do") {
  int compared = 0, slots_before = 0, slots_after = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::unique_ptr<Function> original = Generator(runtime, seed).run();
    check_valid(*original);
    std::unique_ptr<Function> changed = original->clone();
    promote_slots(*changed, &b);
    check_valid(*changed);
    std::unique_ptr<Function> cleaned = changed->clone();
    simplify_cfg(*cleaned);
    check_valid(*cleaned);
    remove_dead_insts(*cleaned);
    compact(*cleaned);
    check_valid(*cleaned);
    std::unique_ptr<Function> read_back = read(print_compact(*cleaned));
    CHECK(print_compact(*read_back) == print_compact(*cleaned));
    slots_before += static_cast<int>(original->slots.size());
    slots_after += static_cast<int>(changed->slots.size());
    for (std::int64_t n : {0, 1, 3}) {
      std::vector<Value> arguments{runtime.from_int(n)};
      std::optional<std::string> expected = Evaluator(ctx, *original).run(arguments);
      if (!expected) continue;
      INFO("seed " << seed << " argument " << n << "\n" << print(*original) << print(*changed) << print(*cleaned));
      REQUIRE(Evaluator(ctx, *changed).run(arguments) == expected);
      REQUIRE(Evaluator(ctx, *cleaned).run(arguments) == expected);
      ++compared;
    }
  }
  CHECK(compared > 5000);
  CHECK(slots_after * 3 < slots_before);
}
