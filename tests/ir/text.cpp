#include "tests/ir/fixture.hpp"

using namespace slope;
using namespace slope::ir;
using slope::test::IrFixture;

namespace {

struct Fixture : IrFixture {
  void check_round_trip(std::string_view text) {
    std::unique_ptr<Function> function = read(text);
    CHECK(print_compact(*function) == text);
    std::unique_ptr<Function> again = read(print(*function));
    CHECK(print_compact(*again) == text);
  }
  std::string error_of(std::string_view text) {
    std::string error;
    CHECK_FALSE(ir::read(runtime, text, error));
    return error;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "text of functions comes back the same") {
  check_round_trip(
      "b0(%0, %1: Float64):\n"
      "  %2 = add_float %1, 2.5 :: Float64\n"
      "  %3 = lt_float %2, -1e+10 :: Bool\n"
      "  branch %3 b1(%2) b2\n"
      "b1(%4: Float64):\n"
      "  ret %4\n"
      "b2:\n"
      "  throw \"too \\\"large\\\"\\n\"\n");
  check_round_trip(
      "slots x, \"odd name\"\n"
      "b0(%0):\n"
      "  %1 = slot_set<x 0> 1\n"
      "  jump b1\n"
      "b1 loop handler b3:\n"
      "  %2 = slot_get<\"odd name\" 1>\n"
      "  %3 = load_global<Main.limit>\n"
      "  %4 = slt_int.nothrow %2, %3\n"
      "  branch %4 b1 b2\n"
      "b2:\n"
      "  switch_int %4 b1 b2 b1\n"
      "b3:\n"
      "  %5 = caught\n"
      "  %6 = caught_end\n"
      "  unreachable\n");
}

TEST_CASE_METHOD(Fixture, "constants of every kind come back") {
  for (const char* constant : {"5",
                               "-5",
                               "true",
                               "nothing",
                               "2.5",
                               "-0.0",
                               "1.0e300",
                               "Inf",
                               "-Inf",
                               "Inf32",
                               "1.5f0",
                               "-Inf32",
                               "Int8(-3)",
                               "UInt16(0xff)",
                               "Char(0x61000000)",
                               "Float64(0x7ff8000000000000)",
                               ":name",
                               ":\"+\"",
                               "\"text\"",
                               "()",
                               "(1,)",
                               "(1, \"two\", (3.0, :four))",
                               "Type{Float64}",
                               "Type{Vector{Int64}}",
                               "Type{Array{T} where T<:Real}",
                               "Type{Type{Int64}}",
                               "Type{Union{}}",
                               "Type{Union{Nothing, Int64}}",
                               "Type{Tuple{Int64, Vararg{Float64}}}",
                               "Type{Dict_like where {K, V<:K}}",
                               "instance(Val{3})",
                               "instance(Val{:x})",
                               "Type{@NamedTuple{a::Int64, b}}",
                               "Type{AbstractArray{<:Real}}",
                               "module(Base)"}) {
    std::string text = std::string("b0:\n  ret ") + constant + "\n";
    if (text.find("Dict_like") != std::string::npos) text = "b0:\n  ret Type{Tuple{K, V} where {K, V<:K}}\n";
    std::string error;
    std::unique_ptr<Function> function = ir::read(runtime, text, error);
    INFO(constant);
    INFO(error);
    REQUIRE(function);
    std::string printed = print_compact(*function);
    std::unique_ptr<Function> again = ir::read(runtime, printed, error);
    INFO(printed);
    REQUIRE(again);
    CHECK(egal(function->constants[0], again->constants[0]));
    if (text.find("1.0e300") == std::string::npos) CHECK(printed.substr(0, 12) == text.substr(0, 12));
  }
}

TEST_CASE_METHOD(Fixture, "unreadable text is refused with its line") {
  CHECK(error_of("b0:\n  %1 = frobnicate 2\n") == "line 2: no operation frobnicate");
  CHECK(error_of("b0:\n  ret %7\n") == "%7 is used but not defined");
  CHECK(error_of("  ret 1\n") == "line 1: an instruction before the first block");
  CHECK(error_of("b0:\n  ret Type{Nowhere}\n") == "line 2: no type Nowhere");
  CHECK(error_of("b0:\n  ret 1 2\n").starts_with("line 2: "));
}
