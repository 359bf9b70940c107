// Engines as a host sees them: running texts and files, values, errors, output, several at once.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "slope/engine.hpp"

using slope::Engine;
using slope::ErrorKind;

namespace {

// An engine that keeps what scripts print.
struct Captured {
  std::string out, err;
  Engine engine;
  explicit Captured(slope::Tier tier = slope::Tier::automatic) : engine(options(tier)) {}

 private:
  slope::Options options(slope::Tier tier) {
    slope::Options given;
    given.tier = tier;
    given.arguments = {"one", "two"};
    given.output = [this](std::string_view text) { out += text; };
    given.error_output = [this](std::string_view text) { err += text; };
    return given;
  }
};

class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& text)
      : path_(std::filesystem::temp_directory_path() / ("slope-test-" + std::to_string(getpid()) + "-" + name)) {
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("The value of a text is that of its last statement") {
  Engine engine;
  CHECK(engine.eval<int>("1 + 2").value() == 3);
  CHECK(engine.eval<double>("x = 3; x / 2").value() == 1.5);
  CHECK(engine.eval<double>("x").value() == 3.0);
  CHECK(engine.eval<bool>("x > 2").value());
  CHECK(engine.eval<std::string>("string(\"a\", 1)").value() == "a1");
  CHECK(engine.eval<std::vector<double>>("[1.0, 2.5]").value() == std::vector<double>{1.0, 2.5});
  CHECK(engine.eval<std::vector<double>>("1:3").value() == std::vector<double>{1.0, 2.0, 3.0});
  CHECK(engine.run("nothing").value().is_nothing());
  CHECK(engine.run("").value().is_nothing());
}

TEST_CASE("Values are handles that keep what they hold") {
  slope::Value outlives;
  CHECK(outlives.is_nothing());
  {
    Engine engine;
    slope::Value v = engine.run("v = [1.0, 2.0, 3.0]").value();
    engine.run("v = nothing").value();
    engine.collect_garbage();
    slope::Value copy = v;
    v = slope::Value();
    engine.collect_garbage();
    CHECK(copy.type_name() == "Vector{Float64}");
    CHECK(copy.repr() == "[1.0, 2.0, 3.0]");
    CHECK(copy.display() == "3-element Vector{Float64}:\n 1.0\n 2.0\n 3.0");
    CHECK(copy.to<std::vector<double>>().value() == std::vector<double>{1, 2, 3});
    slope::Value pair = engine.run("(a = 1, b = \"text\")").value();
    CHECK(pair.field("b").value().to<std::string>().value() == "text");
    CHECK_FALSE(pair.field("c").ok());
    CHECK(engine.call("sum", copy).value().to<double>().value() == 6.0);
    outlives = copy;
  }
  CHECK(outlives.type_name() == "#dead");
  CHECK_FALSE(outlives.to<double>().ok());
}

TEST_CASE("Globals can be set and read") {
  Engine engine;
  engine.set("n", 20).value();
  engine.set("xs", std::vector<double>{1, 2}).value();
  engine.set("name", "slope").value();
  engine.set("flag", true).value();
  CHECK(engine.eval<double>("flag ? n + sum(xs) + length(name) : 0").value() == 28.0);
  engine.run("n += 1").value();
  CHECK(engine.get<int>("n").value() == 21);
  CHECK_FALSE(engine.get<int>("missing_name").ok());
  engine.run("const fixed = 1").value();
  CHECK(engine.set("fixed", 2).error().message == "`fixed` is a constant and cannot be assigned");
}

TEST_CASE("Conversions that do not fit are errors that name both sides") {
  Engine engine;
  auto wrong = engine.eval<double>("\"text\"");
  REQUIRE_FALSE(wrong.ok());
  CHECK(wrong.error().kind == ErrorKind::conversion);
  CHECK(wrong.error().message == "expected a real number, found a String");
  CHECK(engine.eval<int>("2.5").error().kind == ErrorKind::conversion);
  CHECK(engine.eval<signed char>("300").error().kind == ErrorKind::conversion);
  CHECK(engine.eval<unsigned>("-1").error().kind == ErrorKind::conversion);
  CHECK(engine.eval<std::string>("nothing").error().message == "expected a String, found nothing");
  CHECK_THROWS_AS(engine.eval<double>("\"text\"").value(), slope::ScriptError);
}

TEST_CASE("Output goes to the host's sinks") {
  Captured captured;
  captured.engine.run("print(1, ' '); println(\"two\"); println(stderr, \"careful\")").value();
  CHECK(captured.out == "1 two\n");
  CHECK(captured.err == "careful\n");
  CHECK(captured.engine.eval<std::string>("ARGS[2]").value() == "two");
}

TEST_CASE("Syntax errors are all reported, with their places, and nothing runs") {
  Captured captured;
  auto result = captured.engine.run("println(1)\nx = (1 +\ny = )\n", "two.slope");
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().kind == ErrorKind::syntax);
  CHECK(result.error().message.find("two.slope:") != std::string::npos);
  CHECK(result.error().message.find('^') != std::string::npos);
  CHECK(captured.out.empty());
}

TEST_CASE("Errors of scripts carry type, message and trace") {
  Engine engine;
  auto result = engine.run("function f(v)\n    v[4]\nend\nf([1, 2, 3])", "f.slope");
  REQUIRE_FALSE(result.ok());
  const slope::Error& error = result.error();
  CHECK(error.kind == ErrorKind::runtime);
  CHECK(error.type == "BoundsError");
  CHECK(error.summary == "BoundsError: attempt to access 3-element Vector{Int64} at index [4]");
  CHECK(error.message.find("f.slope:2") != std::string::npos);
  CHECK(error.message.find("f.slope:4") != std::string::npos);
  CHECK(engine.eval<int>("1").value() == 1);  // the engine goes on
}

TEST_CASE("A file runs with what it includes beside it") {
  TemporaryFile other("other.slope", "square(x) = x^2\n");
  std::string name = std::filesystem::path(other.path()).filename().string();
  TemporaryFile file("main.slope", "include(\"" + name + "\")\nsquare(4)\n");
  Engine engine;
  CHECK(engine.run_file(file.path()).value().to<int>().value() == 16);
  auto missing = engine.run_file("/nowhere/missing.slope");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().kind == ErrorKind::engine);
  CHECK(missing.error().message.find("/nowhere/missing.slope") != std::string::npos);
}

TEST_CASE("exit ends the script and says how") {
  Captured captured;
  auto result = captured.engine.run("println(1)\nexit(3)\nprintln(2)");
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().kind == ErrorKind::exit);
  CHECK(result.error().exit_code == 3);
  CHECK(captured.out == "1\n");
  CHECK(captured.engine.eval<int>("2").value() == 2);
}

TEST_CASE("The heap limit is an error of the script") {
  slope::Options options;
  options.heap_limit = std::size_t{64} << 20;
  Engine engine(options);
  auto result = engine.run("zeros(100_000_000)");
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().type == "OutOfMemoryError");
  CHECK(engine.eval<int>("length(zeros(1000))").value() == 1000);
}

TEST_CASE("Unbounded recursion is an error, on threads with small stacks too") {
  auto overflow = [] {
    Engine engine;
    auto result = engine.run("down(n) = down(n + 1) + 1\ndown(0)");
    return !result.ok() && result.error().type == "StackOverflowError" && engine.eval<int>("1 + 1").value() == 2;
  };
  CHECK(overflow());
  std::atomic<bool> also = false;
  std::thread([&] { also = overflow(); }).join();
  CHECK(also);
}

TEST_CASE("Running code can be interrupted from another thread") {
  Engine engine(slope::Options{.tier = slope::Tier::interpret});
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    engine.interrupt();
  });
  auto result = engine.run("while true\nend");
  other.join();
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().kind == ErrorKind::interrupted);
  CHECK(engine.eval<int>("1").value() == 1);
}

TEST_CASE("A counted loop of machine code can be interrupted") {
  Engine engine(slope::Options{.tier = slope::Tier::compile});
  REQUIRE(
      engine
          .run("function long(a, n)\n    s = 0.0\n    for i in 1:n\n        s += a[i & 7 + 1]\n    end\n    s\nend\n"
               "long(ones(16), 100)")
          .ok());
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    engine.interrupt();
  });
  auto result = engine.run("long(ones(16), 10^14)");
  other.join();
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().kind == ErrorKind::interrupted);
}

TEST_CASE("Engines share nothing and run at the same time") {
  constexpr int count = 4;
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int k = 0; k < count; ++k) {
    threads.emplace_back([&, k] {
      std::string out;
      slope::Options options;
      options.output = [&](std::string_view text) { out += text; };
      Engine engine(options);
      engine.set("k", k).value();
      engine
          .run(
              "f(x, k) = x^2 + k\nfor i in 1:20_000\n    f(i, k)\nend\n"
              "println(f(3, k), \" \", gradient(f, 2.0, k)[1])")
          .value();
      if (out == std::to_string(9 + k) + " 4.0\n") ++right;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(right == count);
}

TEST_CASE("One engine may move from thread to thread") {
  Engine engine;
  engine.run("f(n) = n == 0 ? 0 : 1 + f(n - 1)\nkept = [string(i) for i in 1:1000]").value();
  for (int i = 0; i < 3; ++i) {
    std::thread([&] {
      engine.collect_garbage();
      CHECK(engine.eval<int>("f(500) + length(kept)").value() == 1500);
    }).join();
  }
}

TEST_CASE("What the prompt asks") {
  Engine engine;
  CHECK(engine.incomplete("function f(x)"));
  CHECK(engine.incomplete("(1 +"));
  CHECK_FALSE(engine.incomplete("1 + 2"));
  CHECK_FALSE(engine.incomplete("1 + )"));
  engine.run("model_of_things = 1; point = (first_field = 1, second = 2)").value();
  CHECK(engine.complete("model_of") == std::vector<std::string>{"model_of_things"});
  CHECK(engine.complete("point.f") == std::vector<std::string>{"point.first_field"});
  auto names = engine.complete("fun");
  CHECK(std::count(names.begin(), names.end(), "function") == 1);
  CHECK(engine.help("gradient").value().find("method") != std::string::npos);
  CHECK_FALSE(engine.help("no_such_name").ok());
}
