// The IR of the texts in tests/golden/ir.
#include "tests/golden.hpp"
#include "tests/lower/support.hpp"

using slope::test::Lowering;

namespace {

void check(const std::string& name) {
  Lowering lowering;
  CHECK_GOLDEN("ir", name, lowering.lower(name + ".slope", slope::test::golden_input("ir", name + ".slope")));
}

}  // namespace

TEST_CASE("lowering: control flow", "[lower]") { check("control"); }
TEST_CASE("lowering: functions and their variants", "[lower]") { check("functions"); }
TEST_CASE("lowering: closures and captures", "[lower]") { check("closures"); }
TEST_CASE("lowering: exceptions", "[lower]") { check("exceptions"); }
TEST_CASE("lowering: assignment and destructuring", "[lower]") { check("assignment"); }
TEST_CASE("lowering: arrays, broadcasting, comprehensions", "[lower]") { check("arrays"); }
TEST_CASE("lowering: structs and constructors", "[lower]") { check("structs"); }
TEST_CASE("lowering: quotes and macros", "[lower]") { check("macros"); }
