// What a host can watch.
#include "slope/hooks.hpp"

#include <catch2/catch.hpp>
#include <map>

using slope::Engine;
using slope::Tier;

namespace {

constexpr const char* program = R"(function f(n)
    s = n - n
    for i in 1:n
        if i > 2
            s += i
        else
            s -= 1
        end
    end
    return s
end
function never(x)
    y = x + 1
    return y
end
Base.length(x::Symbol) =
    17
f(5)
f(1)
)";

}  // namespace

TEST_CASE("Coverage counts the lines of functions that ran, and knows those that did not") {
  slope::Options options;
  options.coverage = true;
  options.tier = GENERATE(Tier::interpret, Tier::compile);
  Engine engine(options);
  engine.run(program, "program.slope").value();
  const auto files = slope::coverage(engine).value();
  REQUIRE(files.size() == 1);
  CHECK(files[0].file == "program.slope");
  std::map<unsigned, std::uint64_t> lines;
  for (const auto& line : files[0].lines) lines[line.line] = line.count;
  CHECK(lines[2] == 2);   // of two activations
  CHECK(lines[5] == 3);   // s += i, for 3, 4, 5
  CHECK(lines[7] == 3);   // s -= 1, for 1, 2 and 1
  CHECK(lines[10] == 2);  // return
  CHECK((lines.contains(13) && lines[13] == 0));
  CHECK((lines.contains(14) && lines[14] == 0));
  CHECK((lines.contains(17) && lines[17] == 0));  // a method of the library's function
  CHECK(lines[18] == 1);
  CHECK_FALSE(lines.contains(6));
  CHECK_FALSE(lines.contains(11));
  Engine plain;
  CHECK(slope::coverage(plain).error().message.find("Options::coverage") != std::string::npos);
}

TEST_CASE("A host is told of lines, and may interrupt") {
  std::vector<std::string> steps;
  Engine* engine = nullptr;
  slope::Options options;
  options.on_line = [&](const slope::LineStep& step) {
    steps.push_back(std::string(step.function) + ":" + std::to_string(step.line));
    if (step.line == 7) engine->interrupt();
  };
  Engine made(options);
  engine = &made;
  engine
      ->run("function g(x)\n    y = 2x\n    return y\nend\nfunction h(x)\n    while true\n        x += 1\n    end\nend")
      .value();
  steps.clear();
  CHECK(engine->eval<int>("g(4)").value() == 8);
  CHECK(steps == std::vector<std::string>{"top-level scope:1", "g:2", "g:3"});
  CHECK(engine->run("h(1)").error().kind == slope::ErrorKind::interrupted);
}

TEST_CASE("A host is told of allocations, with type, bytes and line") {
  std::size_t bytes = 0, vectors = 0;
  std::map<unsigned, std::size_t> by_line;
  slope::Options options;
  options.tier = GENERATE(Tier::interpret, Tier::compile);
  options.profile = true;
  options.on_allocation = [&](const slope::Allocation& allocation) {
    bytes += allocation.bytes();
    if (allocation.type() == "Vector{Float64}") ++vectors;
    const slope::Position at = allocation.position();
    if (at.file == "program.slope") by_line[at.line] += allocation.bytes();
  };
  Engine engine(options);
  engine
      .run("function f(n)\n    a = zeros(n)\n    b = a .+ 1\n    global kept = b\n    return sum(b)\nend",
           "program.slope")
      .value();
  engine.run("f(10)").value();
  bytes = vectors = 0;
  by_line.clear();
  const auto before = engine.statistics().allocated_bytes;
  CHECK(engine.eval<double>("f(10000)").value() == 10000);
  CHECK(bytes == engine.statistics().allocated_bytes - before);
  CHECK(vectors >= 2);
  CHECK(by_line[3] >= 80000);
  CHECK(by_line[5] == 0);
}
