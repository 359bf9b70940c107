#include "tests/ir/fixture.hpp"

using namespace slope;
using namespace slope::ir;
using slope::test::IrFixture;

TEST_CASE_METHOD(IrFixture, "what lacks types is well-formed only while it is partial") {
  auto function = read("function f typed :: Int64\nb0(%0: Int64):\n  %1 = call %0\n  ret 1\n");
  CHECK(verify(*function, Typing::partial) == "");
  CHECK(verify(*function) == "b0, %1 (call): has no type");
}

TEST_CASE_METHOD(IrFixture, "malformed functions are printed all the same") {
  auto function = read("b0(%0):\n  %1 = tuple %0\n  ret %1\n");
  function->blocks[0].insts.push_back(1000);
  function->blocks[0].parameters.push_back(2000);
  function->blocks[0].terminator = 3000;
  function->slots.push_back(nullptr);
  function->insts[1].operands.push_back(Operand::constant(4000));
  CHECK(print(*function) == "function \"\"\nslots _\nb0(%0, %2000):\n  %1 = tuple %0, invalid\n  %1000 = ?\n");
  CHECK(print_compact(*function).size() > 0);
}

TEST_CASE_METHOD(IrFixture, "faults are found and named") {
  auto fault = [&](std::string_view text) { return verify(*read(text)); };
  CHECK(fault("b0(%0):\n  ret %0\n") == "");
  CHECK(fault("b0(%0):\n  %1 = tuple %0\n") == "b0: has no terminator");
  CHECK(fault("b0(%0):\n  %1 = add_int %0\n  ret %1\n") == "b0, %1 (add_int): has 1 operands");
  CHECK(fault("b0(%0):\n  jump b1\nb1(%1):\n  ret %1\n") == "b0, %1 (jump): 0 arguments for the 1 parameters of b1");
  CHECK(fault("b0(%0):\n  %1 = tuple %2\n  %2 = tuple %1\n  ret %2\n") ==
        "b0, %1 (tuple): uses %2, which is not defined on every way here");
  CHECK(fault("b0(%0):\n  branch %0 b1 b2\nb1:\n  %1 = tuple 1\n  jump b2\nb2:\n  ret %1\n").find("uses %2") !=
        std::string::npos);
  CHECK(fault("b0(%0):\n  jump b0(%0)\n") == "the entry block is the target of a jump");
  CHECK(fault("b0(%0):\n  jump b1(undef)\nb1(%1):\n  ret 1\n") == "");
  CHECK(fault("b0(%0: Int64):\n  jump b1(%0)\nb1(%1: Float64):\n  ret 1\n") ==
        "b0, %1 (jump): an argument of type Int64 for a parameter of type Float64 of b1");
  CHECK(fault("b0:\n  jump b1\nb1 handler b2:\n  ret 1\nb2:\n  ret 2\n") ==
        "b2: a handler that does not begin with caught");
  CHECK(fault("b0:\n  jump b1\nb1 handler b2:\n  jump b2\nb2:\n  %1 = caught\n  ret 2\n") ==
        "b1, %1 (jump): jumps to the handler b2");
  CHECK(fault("function f typed :: Int64\nb0(%0: Float64):\n  ret %0\n") ==
        "b0, %1 (ret): returns a Float64 from a function that returns a Int64");
  CHECK(fault("b0(%0: Float64, %1: Int64):\n  %2 = add_float %0, %1 :: Float64\n  ret %2\n") ==
        "b0, %2 (add_float): mixes a Float64 and a Int64");
  CHECK(fault("b0(%0: Float64):\n  %1 = neg_float %0 :: Int64\n  ret %1\n") ==
        "b0, %1 (neg_float): makes a Int64 of a Float64");
}
