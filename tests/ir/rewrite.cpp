#include "tests/ir/fixture.hpp"

using namespace slope;
using namespace slope::ir;
using slope::test::IrFixture;

namespace {

struct Fixture : IrFixture {
  std::string promoted(std::string_view text) {
    auto function = read(text);
    check_valid(*function);
    promote_slots(*function, &b);
    check_valid(*function);
    return print_compact(*function);
  }
  std::string simplified(std::string_view text) {
    auto function = read(text);
    check_valid(*function);
    simplify_cfg(*function);
    remove_dead_insts(*function);
    compact(*function);
    check_valid(*function);
    return print_compact(*function);
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "slots become parameters where paths join") {
  CHECK(promoted("slots i, s\n"
                 "b0(%0, %1):\n"
                 "  %2 = slot_set<i 0> 1\n"
                 "  %3 = slot_set<s 1> 0\n"
                 "  jump b1\n"
                 "b1 loop:\n"
                 "  %4 = slot_get<i 0>\n"
                 "  %5 = sle_int %4, %1\n"
                 "  branch %5 b2 b3\n"
                 "b2:\n"
                 "  %6 = slot_get<s 1>\n"
                 "  %7 = slot_get<i 0>\n"
                 "  %8 = add_int %6, %7\n"
                 "  %9 = slot_set<s 1> %8\n"
                 "  %10 = add_int %7, 1\n"
                 "  %11 = slot_set<i 0> %10\n"
                 "  jump b1\n"
                 "b3:\n"
                 "  %12 = slot_get<s 1>\n"
                 "  ret %12\n") ==
        "b0(%0, %1):\n"
        "  jump b1(1, 0)\n"
        "b1(%2, %3) loop:\n"
        "  %4 = sle_int %2, %1\n"
        "  branch %4 b2 b3\n"
        "b2:\n"
        "  %5 = add_int %3, %2\n"
        "  %6 = add_int %2, 1\n"
        "  jump b1(%6, %5)\n"
        "b3:\n"
        "  ret %3\n");
}

TEST_CASE_METHOD(Fixture, "only reads that may see an unassigned variable are checked") {
  CHECK(promoted("slots x\n"
                 "b0(%0, %1):\n"
                 "  branch %1 b1 b2\n"
                 "b1:\n"
                 "  %2 = slot_set<x 0> 5\n"
                 "  jump b2\n"
                 "b2:\n"
                 "  %3 = slot_get<x 0>\n"
                 "  %4 = slot_get<x 0>\n"
                 "  %5 = tuple %3, %4\n"
                 "  ret %5\n") ==
        "b0(%0, %1):\n"
        "  branch %1 b1 b2(undef, false)\n"
        "b1:\n"
        "  jump b2(5, true)\n"
        "b2(%2, %3):\n"
        "  %4 = check_defined<:x> %3\n"
        "  %5 = tuple %2, %2\n"
        "  ret %5\n");
  CHECK(promoted("slots x\n"
                 "b0(%0):\n"
                 "  %1 = slot_set<x 0> 5\n"
                 "  %2 = slot_clear<x 0>\n"
                 "  %3 = slot_defined<x 0>\n"
                 "  ret %3\n") == "b0(%0):\n  ret false\n");
}

TEST_CASE_METHOD(Fixture, "what a handler reads stays a slot") {
  std::string text =
      "slots a, b\n"
      "b0(%0):\n"
      "  %1 = slot_set<a 0> 1\n"
      "  %2 = slot_set<b 1> 2\n"
      "  jump b1\n"
      "b1 handler b3:\n"
      "  %3 = slot_set<a 0> 3\n"
      "  %4 = slot_set<b 1> 4\n"
      "  %5 = slot_get<b 1>\n"
      "  %6 = call %0, %5\n"
      "  jump b2\n"
      "b2:\n"
      "  ret 0\n"
      "b3:\n"
      "  %7 = caught\n"
      "  %8 = slot_get<a 0>\n"
      "  ret %8\n";
  CHECK(promoted(text) ==
        "slots a\n"
        "b0(%0):\n"
        "  %1 = slot_set<a 0> 1\n"
        "  jump b1\n"
        "b1 handler b3:\n"
        "  %2 = slot_set<a 0> 3\n"
        "  %3 = call %0, 4\n"
        "  jump b2\n"
        "b2:\n"
        "  ret 0\n"
        "b3:\n"
        "  %4 = caught\n"
        "  %5 = slot_get<a 0>\n"
        "  ret %5\n");
}

TEST_CASE_METHOD(Fixture, "control flow is cleaned up") {
  CHECK(simplified("b0(%0, %1):\n"
                   "  branch true b1(5) b2\n"
                   "b1(%2):\n"
                   "  jump b3(%2)\n"
                   "b2:\n"
                   "  ret 1\n"
                   "b3(%3):\n"
                   "  %4 = tuple %1\n"
                   "  %5 = add_int %3, 1\n"
                   "  ret %5\n") ==
        "b0(%0, %1):\n"
        "  %2 = add_int 5, 1\n"
        "  ret %2\n");
  // A parameter that is the same around the loop goes; the loop's header stays.
  CHECK(simplified("b0(%0, %1):\n"
                   "  jump b1(%1, 0)\n"
                   "b1(%2, %3) loop:\n"
                   "  %4 = call %2, %3\n"
                   "  branch %4 b2 b3\n"
                   "b2:\n"
                   "  jump b4\n"
                   "b4:\n"
                   "  jump b1(%2, %4)\n"
                   "b3:\n"
                   "  ret %2\n") ==
        "b0(%0, %1):\n"
        "  jump b1(0)\n"
        "b1(%2) loop:\n"
        "  %3 = call %1, %2\n"
        "  branch %3 b1(%3) b2\n"
        "b2:\n"
        "  ret %1\n");
  // Blocks of different handlers are not merged.
  std::string handled =
      "b0(%0):\n"
      "  jump b1\n"
      "b1 handler b2:\n"
      "  %1 = call %0\n"
      "  ret %1\n"
      "b2:\n"
      "  %2 = caught\n"
      "  ret %2\n";
  CHECK(simplified(handled) == handled);
}

TEST_CASE_METHOD(Fixture, "dead code goes, effects stay") {
  CHECK(simplified("b0(%0, %1):\n"
                   "  %2 = tuple %1\n"
                   "  %3 = sdiv_int %1, 2\n"
                   "  %4 = sdiv_int.nothrow %1, 2\n"
                   "  %5 = add_int %4, 1\n"
                   "  %6 = load_global<Main.x>\n"
                   "  %7 = call.pure %1\n"
                   "  jump b1(%5, 1)\n"
                   "b1(%8, %9) loop:\n"
                   "  %10 = add_int %8, 1\n"
                   "  %11 = add_int %9, 1\n"
                   "  %12 = call %11\n"
                   "  branch %12 b1(%10, %11) b2\n"
                   "b2:\n"
                   "  ret 1\n") ==
        "b0(%0, %1):\n"
        "  %2 = sdiv_int %1, 2\n"
        "  %3 = load_global<Main.x>\n"
        "  jump b1(1)\n"
        "b1(%4) loop:\n"
        "  %5 = add_int %4, 1\n"
        "  %6 = call %5\n"
        "  branch %6 b1(%5) b2\n"
        "b2:\n"
        "  ret 1\n");
}
