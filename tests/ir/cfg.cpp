#include "lang/ir/cfg.hpp"

#include "tests/ir/fixture.hpp"

using namespace slope;
using namespace slope::ir;
using slope::test::IrFixture;

TEST_CASE_METHOD(IrFixture, "dominators of a diamond in a loop") {
  auto function = read(
      "b0(%0):\n  jump b1\n"
      "b1:\n  branch true b2 b6\n"
      "b2:\n  branch true b3 b4\n"
      "b3:\n  jump b5\n"
      "b4:\n  jump b5\n"
      "b5:\n  jump b1\n"
      "b6:\n  ret 1\n"
      "b7:\n  ret 2\n");
  Cfg cfg = build_cfg(*function);
  CHECK(cfg.idom == std::vector<BlockId>{no_block, 0, 1, 2, 2, 2, 1, no_block});
  CHECK(cfg.dominates(2, 5));
  CHECK_FALSE(cfg.dominates(3, 5));
  CHECK_FALSE(cfg.reachable(7));
  CHECK(cfg.order.front() == 0);
  LoopForest forest = find_loops(*function, cfg);
  REQUIRE(forest.loops.size() == 1);
  CHECK(forest.loops[0].header == 1);
  CHECK(forest.loops[0].latches == std::vector<BlockId>{5});
  CHECK(forest.loops[0].blocks.size() == 5);
  CHECK(forest.loop_of[6] == ~0u);
  CHECK(forest.reducible);
}

TEST_CASE_METHOD(IrFixture, "loops nest, outer first") {
  auto function = read(
      "b0:\n  jump b1\n"
      "b1 loop:\n  branch true b2 b5\n"
      "b2 loop:\n  branch true b3 b4\n"
      "b3:\n  jump b2\n"
      "b4:\n  jump b1\n"
      "b5:\n  ret 1\n");
  Cfg cfg = build_cfg(*function);
  LoopForest forest = find_loops(*function, cfg);
  REQUIRE(forest.loops.size() == 2);
  CHECK(forest.loops[0].header == 1);
  CHECK(forest.loops[1].header == 2);
  CHECK(forest.loops[1].parent == 0);
  CHECK(forest.loops[1].depth == 2);
  CHECK(forest.loop_of[3] == 1);
  CHECK(forest.loop_of[4] == 0);
}

TEST_CASE_METHOD(IrFixture, "a jump into the middle of a loop is irreducible") {
  auto function = read(
      "b0:\n  branch true b1 b2\n"
      "b1:\n  jump b2\n"
      "b2:\n  branch true b1 b3\n"
      "b3:\n  ret 1\n");
  CHECK_FALSE(find_loops(*function, build_cfg(*function)).reducible);
}

TEST_CASE_METHOD(IrFixture, "what a block computes is not there in its handler") {
  auto function = read(
      "b0:\n  %0 = tuple 1\n  jump b1\n"
      "b1 handler b3:\n  %1 = tuple 2\n  jump b2\n"
      "b2:\n  ret %1\n"
      "b3:\n  %2 = caught\n  jump b4\n"
      "b4:\n  ret %0\n");
  Cfg cfg = build_cfg(*function);
  CHECK(cfg.idom[3] == 0);
  CHECK_FALSE(cfg.dominates(1, 3));
  CHECK(cfg.dominates(1, 2));
  CHECK(verify(*function) == "");
  auto wrong = read(
      "b0:\n  jump b1\n"
      "b1 handler b2:\n  %1 = tuple 2\n  ret 1\n"
      "b2:\n  %2 = caught\n  ret %1\n");
  CHECK(verify(*wrong) == "b2, %4 (ret): uses %1, which is not defined on every way here");
}
