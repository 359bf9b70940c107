// Random programs: what inference makes of them must do what they did, and every value must be of the type it was
// given.
#include <random>

#include "tests/infer/evaluator.hpp"

using namespace slope;
using namespace slope::test;

namespace {

class ProgramMaker {
 public:
  ProgramMaker(Inferring& inferring, unsigned seed) : i_(inferring), random_(seed) {}

  // Methods g0 … g2, each with two or three definitions, calling each other.
  void make() {
    const Type* declared[] = {i_.t.any, i_.t.int64, i_.t.float64, i_.t.nothing, i_.t.any, i_.t.real, i_.t.symbol};
    std::uint32_t count = 2 + pick(2);
    for (std::uint32_t f = 0; f < count; ++f) names_.push_back("g" + std::to_string(f));
    for (const std::string& name : names_) {
      for (std::uint32_t d = 1 + pick(3); d-- > 0;) {
        std::vector<const Type*> types{declared[d == 0 ? 0 : pick(7)], declared[d == 0 ? 0 : pick(7)]};
        if (pick(8) == 0) types.back() = i_.types.vararg(i_.t.any, nullptr);
        i_.method(name, types, [&](ir::Builder& b, const std::vector<Operand>& p) {
          if (pick(3) == 0) b.function().slots.push_back(i_.runtime.symbol("s"));
          std::vector<Operand> scope(p.begin() + 1, p.end());
          statements(b, scope, 3);
          b.ret(any(b, scope));
        });
      }
    }
  }

  std::vector<Value> arguments() {
    return {i_.function(names_[pick(static_cast<std::uint32_t>(names_.size()))]), value(), value()};
  }

 private:
  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  Value value() {
    switch (pick(6)) {
      case 0:
        return i_.runtime.from_float(1.5);
      case 1:
        return i_.runtime.nothing();
      case 2:
        return i_.runtime.from_bool(pick(2));
      case 3:
        return i_.runtime.from_symbol(i_.runtime.symbol("a"));
      default:
        return i_.runtime.from_int(pick(4));
    }
  }

  const Type* test_type() {
    const Type* all[] = {i_.t.int64, i_.t.float64, i_.t.nothing, i_.t.boolean, i_.t.real, i_.t.symbol, i_.t.tuple_any};
    return all[pick(7)];
  }

  Operand any(ir::Builder& b, const std::vector<Operand>& scope) {
    if (scope.empty() || pick(5) == 0) return b.constant(value());
    return scope[scope.size() - 1 - pick(static_cast<std::uint32_t>(std::min<std::size_t>(scope.size(), 6)))];
  }

  Operand condition(ir::Builder& b, const std::vector<Operand>& scope) {
    Operand x = any(b, scope);
    Operand c;
    switch (pick(5)) {
      case 0:
        c = b.emit(Op::isa, {x, i_.type(b, test_type())});
        break;
      case 1:
        c = b.emit(Op::egal, {x, b.constant(value())});
        break;
      case 2:
        c = b.emit(Op::egal, {b.emit(Op::type_of, {x}), i_.type(b, test_type())});
        break;
      case 3:
        c = b.emit(Op::egal, {x, any(b, scope)});
        break;
      default:
        c = i_.call(b, names_[pick(static_cast<std::uint32_t>(names_.size()))], {x, any(b, scope)});
    }
    return pick(3) == 0 ? b.emit(Op::not_int, {c}) : c;
  }

  void statement(ir::Builder& b, std::vector<Operand>& scope) {
    Operand x = any(b, scope), y = any(b, scope);
    switch (pick(13)) {
      case 0:
        scope.push_back(b.emit(Op::add_int, {x, y}));
        break;
      case 1:
        scope.push_back(b.emit(Op::add_float, {x, y}));
        break;
      case 2:
        scope.push_back(b.emit(Op::slt_int, {x, y}));
        break;
      case 3:
        scope.push_back(b.emit(Op::tuple, {x, y}));
        break;
      case 4:
        scope.push_back(b.emit(Op::get_field, {x, i_.integer(b, 1 + pick(3))}));
        break;
      case 5:
        scope.push_back(b.emit(Op::type_assert, {x, i_.type(b, test_type())}));
        break;
      case 6:
        scope.push_back(b.emit(Op::select, {condition(b, scope), x, y}));
        break;
      case 7:
        if (!b.function().slots.empty()) b.emit(Op::slot_set, {x}, nullptr, 0);
        break;
      case 8:
        if (!b.function().slots.empty()) scope.push_back(b.emit(Op::slot_get, {}, nullptr, 0));
        break;
      case 9:
        scope.push_back(b.emit(Op::sitofp, {i_.type(b, i_.t.float64), x}));
        break;
      default:
        scope.push_back(i_.call(b, names_[pick(static_cast<std::uint32_t>(names_.size()))], {x, y}));
    }
  }

  void statements(ir::Builder& b, std::vector<Operand>& scope, int depth) {
    for (std::uint32_t n = 1 + pick(4); n-- > 0;) {
      std::uint32_t kind = depth ? pick(7) : 6;
      if (kind == 0 || kind == 1)
        choice(b, scope, depth);
      else if (kind == 2)
        loop(b, scope, depth);
      else if (kind == 3)
        attempt(b, scope, depth);
      else
        statement(b, scope);
    }
  }

  void choice(ir::Builder& b, std::vector<Operand>& scope, int depth) {
    ir::BlockId yes = b.new_block(), no = b.new_block(), join = b.new_block();
    bool direct = pick(2);  // no else: the branch itself goes to the join
    Operand c = condition(b, scope);
    Operand joined = b.add_parameter(join);
    if (direct)
      b.branch(c, yes, join, {}, {any(b, scope)});
    else
      b.branch(c, yes, no);
    std::vector<Operand> inner = scope;
    b.set_block(yes);
    statements(b, inner, depth - 1);
    if (pick(6) == 0)
      b.raise(any(b, inner));
    else if (pick(6) == 0)
      b.ret(any(b, inner));
    else
      b.jump(join, {any(b, inner)});
    b.set_block(no);
    if (direct) {
      b.unreachable();
    } else {
      inner = scope;
      statements(b, inner, depth - 1);
      b.jump(join, {any(b, inner)});
    }
    b.set_block(join);
    scope.push_back(joined);
  }

  void loop(ir::Builder& b, std::vector<Operand>& scope, int depth) {
    ir::BlockId header = b.new_block(), body = b.new_block(), done = b.new_block();
    Operand k = b.add_parameter(header), x = b.add_parameter(header);
    b.jump(header, {i_.integer(b, 0), any(b, scope)});
    b.set_block(header);
    b.branch(b.emit(Op::slt_int, {k, i_.integer(b, 3)}), body, done);
    b.set_block(body);
    std::vector<Operand> inner = scope;
    inner.push_back(x);
    statements(b, inner, depth - 1);
    b.jump(header, {b.emit(Op::add_int, {k, i_.integer(b, 1)}), any(b, inner)});
    b.set_block(done);
    scope.push_back(x);
  }

  void attempt(ir::Builder& b, std::vector<Operand>& scope, int depth) {
    ir::BlockId outer = b.handler();
    ir::BlockId handler = b.new_block(), join = b.new_block();
    b.set_handler(handler);
    ir::BlockId body = b.new_block();
    Operand joined = b.add_parameter(join);
    b.jump(body);
    b.set_block(body);
    std::vector<Operand> inner = scope;
    statements(b, inner, depth - 1);
    Operand last = any(b, inner);
    b.set_handler(outer);
    b.jump(join, {last});
    b.set_block(handler);
    b.emit(Op::caught, {});
    b.emit(Op::caught_end, {});
    inner = scope;
    statements(b, inner, depth - 1);
    b.jump(join, {any(b, inner)});
    b.set_block(join);
    scope.push_back(joined);
  }

  Inferring& i_;
  std::mt19937 random_;
  std::vector<std::string> names_;
};

}  // namespace

TEST_CASE("inferred code does what the program did") {
  unsigned count = 300;
  if (const char* text = std::getenv("SLOPE_RANDOM_PROGRAMS")) count = static_cast<unsigned>(std::atoi(text));
  unsigned first = 1;
  if (const char* text = std::getenv("SLOPE_RANDOM_FIRST")) first = static_cast<unsigned>(std::atoi(text));
  for (unsigned seed = first; seed <= count; ++seed) {
    Inferring i;
    ProgramMaker generator(i, seed);
    generator.make();
    for (int call = 0; call < 6; ++call) {
      std::vector<Value> arguments = generator.arguments();
      Value expected, found;
      Evaluator plain(i, false), typed(i, true);
      typed.fuel = 60000;
      auto a = plain.call(arguments, expected);
      auto b = typed.call(arguments, found);
      INFO("seed " << seed << ", call " << call);
      CHECK(typed.wrong == "");
      if (a == Evaluator::Status::out_of_fuel || b == Evaluator::Status::out_of_fuel) continue;
      REQUIRE(a == b);
      if (a == Evaluator::Status::ok) REQUIRE(egal(expected, found));
    }
  }
}
