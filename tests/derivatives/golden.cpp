// What reverse mode makes of small functions, as `@code_grad` prints it.
#include <catch2/catch.hpp>
#include <regex>

#include "slope/engine.hpp"
#include "tests/golden.hpp"

namespace {

std::string gradient_ir(const std::string& program, const std::string& call) {
  std::string out;
  slope::Options options;
  options.tier = slope::Tier::interpret;
  options.output = [&](std::string_view text) { out += text; };
  options.error_output = options.output;
  slope::Engine engine(options);
  CHECK(engine.run(program + "\n@code_grad full=true " + call));
  // Without the lines of the standard library that the comments name: they move with every edit; and without addresses.
  static const std::regex address("(native<keep_memory[a-z_]*> )[0-9]+");
  std::string text;
  for (std::string line : slope::test::split_lines(out))
    text += std::regex_replace(line.substr(0, line.rfind("  ; ")), address, "$1(address)") + "\n";
  return program + "\n\n" + text;
}

}  // namespace

#define CHECK_GRADIENT(name, program, call) CHECK_GOLDEN("gradient_ir", name, gradient_ir(program, call))

TEST_CASE("Gradient IR: outside loops what is saved are plain values") {
  CHECK_GRADIENT("straight_line", "f(x, y) = sin(x * y) + x / y", "f(2.0, 3.0)");
  CHECK_GRADIENT("branch", "f(x) = x > 0 ? x * exp(x) : x * x", "f(2.0)");
  CHECK_GRADIENT("nested_branches", "qux(a, b, x) = (aa = a ? sin(x) : cos(x); b ? tanh(aa) : aa * aa)",
                 "qux(true, false, 2.0)");
}

TEST_CASE("Gradient IR: loops") {
  CHECK_GRADIENT("counted_loop",
                 "function f(x, n)\n    t = 1.0\n    for i in 1:n\n        t *= sin(x * t)\n    end\n    t\nend",
                 "f(2.0, 3)");
  CHECK_GRADIENT("irregular_loop", "function f(x)\n    while x < 10.0\n        x = x * x\n    end\n    x\nend",
                 "f(2.0)");
}

TEST_CASE("Gradient IR: a loop from which nothing is kept has no tape") {
  CHECK_GRADIENT(
      "loop_without_tape",
      "function f(v)\n    t = 0.0\n    for i in 1:length(v)\n        @inbounds t += v[i] * v[i]\n    end\n    "
      "t\nend",
      "f([1.0, 2.0])");
}

TEST_CASE("Gradient IR: memory and calls") {
  CHECK_GRADIENT("array_store", "function f(v)\n    @inbounds v[1] = v[2] * v[3]\n    @inbounds v[1] * v[2]\nend",
                 "f([1.0, 2.0, 3.0])");
  CHECK_GRADIENT("recursion", "@noinline power(x, n) = n == 0 ? 1.0 : x * power(x, n - 1)", "power(2.0, 3)");
  CHECK_GRADIENT("global_of_unknown_type", "scale = 2.0\nf(x) = x * scale", "f(3.0)");
}
