// Limits: each ends in an error of the host, with a position, and no script can swallow it.
#include <catch2/catch.hpp>
#include <chrono>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "slope/engine.hpp"

using slope::Engine;
using slope::ErrorKind;
using slope::Options;
using slope::Tier;

namespace {

constexpr Tier tiers[] = {Tier::interpret, Tier::compile, Tier::automatic};

const char* const endless = R"(
function spin(n)
    k = 0
    while true
        k += n
    end
    k
end
function calls(n)
    calls_again(n + 1) + 1
end
@noinline calls_again(n) = n > 10^15 ? 0 : (calls_deep(n); calls_again(n + 1))
@noinline calls_deep(n) = n % 3
function swallow(f)
    done = 0
    while true
        try
            f(1)
        catch e
            done += 1
        finally
            done += 1
        end
    end
    done
end
)";

double seconds_of(const std::function<void()>& f) {
  auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("Fuel ends whatever runs, in every tier") {
  for (Tier tier : tiers) {
    CAPTURE(static_cast<int>(tier));
    Engine engine(Options{.tier = tier, .fuel = 5'000'000});
    engine.run(endless, "endless.slope").value();
    engine.run("fails(n) = error(\"no\")", "endless.slope").value();
    for (const char* text : {"spin(1)", "swallow(spin)", "swallow(fails)"}) {
      CAPTURE(text);
      auto result = engine.run(text);
      REQUIRE_FALSE(result.ok());
      CHECK(result.error().kind == ErrorKind::limit);
      CHECK(result.error().summary == "out of fuel: more than 5000000 calls and turns of loops");
      CHECK(result.error().position.file == "endless.slope");
      CHECK(result.error().position.line > 0);
      CHECK(engine.eval<int>("1 + 1").value() == 2);  // the next use starts anew
    }
  }
}

TEST_CASE("Fuel counts in machine code: counted loops, short loops, loops in loops, calls") {
  Engine engine(Options{.tier = Tier::compile, .fuel = 3'000'000});
  engine
      .run(R"(
function total(w, n)
    s = 0.0
    for i in 1:n
        s += w[i & 7 + 1]
    end
    s
end
function short(w, n)
    s = 0.0
    for i in 1:n
        for j in 1:8
            s += w[j] * i
        end
    end
    s
end
@noinline odd(n) = n == 0 ? 0 : even(n - 1)
@noinline even(n) = n == 0 ? 1 : odd(n - 1)
)",
           "loops.slope")
      .value();
  auto total = engine.function<double(std::span<const double>, std::int64_t)>("total").value();
  auto small = engine.function<double(std::span<const double>, std::int64_t)>("short").value();
  auto even = engine.function<std::int64_t(std::int64_t)>("even").value();
  const std::vector<double> w(8, 1.0);
  CHECK(total(w, 2'000'000).value() == 2e6);
  const std::uint64_t left = engine.fuel();
  CHECK(left < 1'100'000);
  CHECK(left > 900'000);
  auto refused = total(w, 4'000'000);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind == ErrorKind::limit);
  CHECK(refused.error().position.file == "loops.slope");
  CHECK(refused.error().position.line == 4);
  CHECK(small(w, 1000).value() == 8.0 * 500500);
  CHECK(engine.fuel() < 3'000'000 - 7000);
  CHECK(small(w, 1'000'000).error().kind == ErrorKind::limit);
  CHECK(even(10'000).value() == 1);
  CHECK(engine.fuel() <= 3'000'000 - 9'990);
  engine.set_fuel(10'000'000);
  CHECK(total(w, 4'000'000).value() == 4e6);
}

TEST_CASE("Fuel counts in gradients") {
  for (Tier tier : tiers) {
    CAPTURE(static_cast<int>(tier));
    Engine engine(Options{.tier = tier, .fuel = 200'000});
    engine
        .run(R"(
function power(x, n)
    y = 1.0
    k = 0
    while k < n
        y = y * x + sin(y)
        k += 1
    end
    y
end
)")
        .value();
    auto power = engine.function<double(double, std::int64_t)>("power").value();
    double dx = 0;
    CHECK(power.value_and_gradient(0.5, 1000, dx, nullptr).ok());
    // Twice the turns of the function alone: there and back.
    CHECK(engine.fuel() <= 200'000 - 2000);
    auto refused = power.value_and_gradient(0.5, 150'000, dx, nullptr);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().kind == ErrorKind::limit);
    CHECK(power(0.5, 150'000).ok());
    CHECK(power.value_and_gradient(0.5, 10, dx, nullptr).ok());
  }
}

TEST_CASE("Time is limited, for scripts that wait and that catch everything") {
  for (Tier tier : tiers) {
    CAPTURE(static_cast<int>(tier));
    Options options{.tier = tier, .time_limit = 0.3};
    options.capabilities.time = true;
    Engine engine(options);
    engine.run(endless).value();
    for (const char* text : {"spin(1)", "swallow(spin)", "sleep(100)", "swallow(n -> sleep(n))"}) {
      CAPTURE(text);
      slope::Error error;
      const double spent = seconds_of([&] { error = engine.run(text).error(); });
      CHECK(error.kind == ErrorKind::limit);
      CHECK(error.summary == "out of time: more than 0.3 seconds");
      CHECK(spent > 0.25);
      CHECK(spent < 10);
    }
    // Many uses, each within the limit.
    for (int i = 0; i < 20; ++i) {
      REQUIRE(engine.run("sleep(0.03)").ok());
    }
  }
}

TEST_CASE("Time limits recursion, compiled too, and generators of code") {
  for (Tier tier : tiers) {
    CAPTURE(static_cast<int>(tier));
    Engine engine(Options{.tier = tier, .time_limit = 0.3});
    engine
        .run(R"(
fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
again() = try again() catch; again() end
@generated slow(x) = (while true; end; :x)
)")
        .value();
    for (const char* text : {"fib(80)", "again()", "slow(1)"}) {
      CAPTURE(text);
      slope::Error error;
      const double spent = seconds_of([&] { error = engine.run(text).error(); });
      CHECK(error.kind == ErrorKind::limit);
      CHECK(spent < 10);
    }
  }
}

TEST_CASE("A limit that a macro meets is told as one") {
  Engine engine(Options{.tier = Tier::interpret, .fuel = 100'000});
  engine.run("macro endless() while true end end").value();
  CHECK(engine.run("@endless").error().kind == ErrorKind::limit);
}

TEST_CASE("The depth of recursion is limited") {
  for (Tier tier : tiers) {
    CAPTURE(static_cast<int>(tier));
    Engine engine(Options{.tier = tier, .stack_limit = 400'000});
    engine
        .run(
            "down(n) = n == 0 ? 0 : 1 + down(n - 1)\n"
            "guarded(n) = try down(n) catch e; -1 end",
            "down.slope")
        .value();
    // Few enough for an interpreter built with sanitizers, whose frames are several times as large.
    CHECK(engine.eval<int>("down(20)").value() == 20);
    auto result = engine.run("guarded(10_000_000)");
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().kind == ErrorKind::limit);
    CHECK(result.error().summary == "recursion is too deep: more than 400000 bytes of stack");
    CHECK(result.error().position.file == "down.slope");
    CHECK(result.error().position.line == 1);
    std::thread([&] { CHECK(engine.run("down(10_000_000)").error().kind == ErrorKind::limit); }).join();
    CHECK(engine.eval<int>("guarded(20)").value() == 20);
  }
  Engine unlimited;  // the thread's own stack: an exception like others
  CHECK(unlimited.eval<int>("deep(n) = 1 + deep(n + 1)\ntry deep(0) catch e; e isa StackOverflowError ? 7 : 8 end")
            .value() == 7);
}

TEST_CASE("Heap and tapes are limited") {
  for (Tier tier : tiers) {
    CAPTURE(static_cast<int>(tier));
    Engine engine(Options{.tier = tier, .heap_limit = std::size_t{64} << 20, .tape_limit = 1 << 20});
    engine
        .run(R"(
function hoard()
    kept = Any[]
    while true
        try
            push!(kept, zeros(1000))
        catch e
        end
    end
end
function steps(x, n)
    y = x
    for i in 1:n
        y = sin(y) * x
    end
    y
end
)",
             "hoard.slope")
        .value();
    auto result = engine.run("hoard()");
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().kind == ErrorKind::limit);
    CHECK(result.error().summary == "out of memory: more than 67108864 bytes of heap");
    CHECK(result.error().position.file == "hoard.slope");
    CHECK(engine.eval<int>("1 + 1").value() == 2);
    auto steps = engine.function<double(double, std::int64_t)>("steps").value();
    double dx = 0;
    CHECK(steps.value_and_gradient(0.5, 1000, dx, nullptr).ok());
    auto refused = steps.value_and_gradient(0.5, 10'000'000, dx, nullptr);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().kind == ErrorKind::limit);
    CHECK(refused.error().summary == "out of memory: more than 1048576 bytes of tape for a gradient");
    CHECK(steps.value_and_gradient(0.5, 1000, dx, nullptr).ok());
  }
}

TEST_CASE("A differentiated program that has no more memory gets an error") {
  for (Tier tier : tiers) {
    CAPTURE(static_cast<int>(tier));
    Engine engine(Options{.tier = tier, .heap_limit = std::size_t{48} << 20, .tape_limit = 8 << 20});
    engine
        .run(R"(
kept(x) = (all = Any[]; for i in 1:1_000_000; push!(all, fill(x, 1000)); end; sum(sum, all))
table(x) = (d = Dict{Any,Any}(); for i in 1:10_000_000; d[i] = fill(x, 100); end; d[1][1])
square(x) = x * x
)")
        .value();
    for (const char* text : {"gradient(kept, 1.0)", "derivative(kept, 1.0)", "gradient(table, 1.0)",
                             "derivative(table, 1.0)", "derivative(y -> gradient(kept, y)[1], 1.0)"}) {
      CAPTURE(text);
      const auto result = engine.run(text);
      REQUIRE_FALSE(result.ok());
      CHECK(result.error().kind == ErrorKind::limit);
      CHECK(engine.eval<double>("gradient(square, 3.0)[1]").value() == 6.0);
    }
  }
}

TEST_CASE("An interrupt is final, unless it is asked to be an exception") {
  for (Tier tier : tiers) {
    CAPTURE(static_cast<int>(tier));
    Engine engine(Options{.tier = tier});
    engine.run(endless).value();
    for (const char* text : {"spin(1)", "swallow(spin)"}) {
      std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        engine.interrupt();
      });
      auto result = engine.run(text);
      other.join();
      REQUIRE_FALSE(result.ok());
      CHECK(result.error().kind == ErrorKind::interrupted);
    }
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      engine.interrupt(slope::Interrupt::exception);
    });
    CHECK(engine.eval<int>("try spin(1) catch e; e isa InterruptException ? 3 : 4 end").value() == 3);
    other.join();
  }
}

TEST_CASE("exit is final") {
  Engine engine;
  auto result =
      engine.run("for i in 1:3\n    try\n        exit(i)\n    catch e\n    finally\n        i += 1\n    end\nend");
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().kind == ErrorKind::exit);
  CHECK(result.error().exit_code == 1);
}

TEST_CASE("Script and host cannot call each other without end") {
  Engine engine;
  engine.define("back", [&](double x) { return engine.call("forth", x + 1).value().to<double>().value(); }).value();
  engine.run("forth(x) = back(x) + 1").value();
  auto result = engine.run("forth(0)");
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().message.find("StackOverflowError") != std::string::npos);
  slope::Function<double(double)>* handle = nullptr;
  engine.define("again", [&](double x) { return (*handle)(x + 1).value(); }).value();
  engine.run("through(x) = again(x) + 1").value();
  auto through = engine.function<double(double)>("through").value();
  handle = &through;
  CHECK_FALSE(through(0.0).ok());
  CHECK(engine.eval<int>("1").value() == 1);
}

TEST_CASE("A use inside a use has no fuel of its own") {
  Engine engine(Options{.fuel = 100'000});
  engine.define("nested", [&](double n) { return engine.call("work", n).ok() ? 1.0 : 0.0; }).value();
  engine
      .run(
          "function work(n)\n    s = 0\n    for i in 1:n\n        s += i % 3\n    end\n    s\nend\n"
          "function outer(n)\n    k = 0.0\n    while true\n        k += nested(n)\n    end\n    k\nend")
      .value();
  auto result = engine.run("outer(1000)");
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().kind == ErrorKind::limit);
}

TEST_CASE("A heap that a script has filled does not stand in the way of the library") {
  const Tier tier = GENERATE(Tier::interpret, Tier::automatic);
  std::string told;
  Options options;
  options.tier = tier;
  options.heap_limit = 3 << 20;
  options.error_output = [&](std::string_view text) { told += text; };
  Engine engine(options);
  engine.run("kept = Any[]\nfill_up() = while true\n    push!(kept, zeros(16))\nend").value();
  const auto full = engine.run("fill_up()");
  REQUIRE_FALSE(full.ok());
  CHECK(full.error().kind == ErrorKind::limit);
  // What is used for the first time now is made now, and is there for good.
  for (const char* text : {"sort([3, 1, 2])", "string(1.5)", "Dict(1 => 2)", "split(\"a b\")"}) {
    const auto answer = engine.run(text);
    if (!answer.ok()) CHECK(answer.error().kind == ErrorKind::limit);
  }
  engine.run("empty!(kept); nothing").value();
  CHECK(engine.eval<std::string>("repr(sort([3, 1, 2]))").value() == "[1, 2, 3]");
  CHECK(engine.eval<std::string>("string(1.5, split(\"a b\")[2], Dict(1 => 2)[1])").value() == "1.5b2");
  CHECK(told.empty());
}

TEST_CASE("A heap limit may be as large as numbers are") {
  Engine engine(Options{.heap_limit = std::numeric_limits<std::size_t>::max()});
  CHECK(engine.eval<double>("sum(map(x -> x + 1.0, zeros(100)))").value() == 100.0);
}

TEST_CASE("Names, types, structs and modules count as heap, beyond what the library needs") {
  for (Tier tier : {Tier::interpret, Tier::automatic}) {
    for (const char* text :
         {"i = 0; while true; global i += 1; Symbol(\"name\", i); end", "i = 0; while true; global i += 1; Val{i}; end",
          "i = 0; while true; global i += 1; eval(:(struct $(Symbol(\"S\", i)); x::Int; end)); end",
          "i = 0; while true; global i += 1; eval(Expr(:module, true, Symbol(\"M\", i), Expr(:block))); end"}) {
      CAPTURE(static_cast<int>(tier), text);
      Engine engine(Options{.tier = tier, .heap_limit = std::size_t{1} << 20, .time_limit = 20});
      const auto result = engine.run(text);
      REQUIRE_FALSE(result.ok());
      CHECK(result.error().kind == ErrorKind::limit);
      CHECK(result.error().message.find("out of memory") != std::string::npos);
    }
  }
}

TEST_CASE("A limit in the middle of a change leaves tables and vectors whole") {
  struct Change {
    const char* begin;
    const char* work;
    const char* check;
  };
  for (const Change& change :
       {Change{"d = Dict(i => -i for i in 1:9)", "for i in 10:12; d[i] = -i; end; delete!(d, 12)",
               "all(d[i] == -i for i in 1:9) && length(collect(d)) == length(d)"},
        Change{"s = Set(1:10)", "push!(s, 11); delete!(s, 10)", "issubset(1:9, s) && length(collect(s)) == length(s)"},
        Change{"v = collect(1:6)", "reverse!(v)", "sort(v) == 1:6"},
        Change{"v = collect(1:6)", "keepat!(v, 3:6)", "issubset(3:6, v)"}}) {
    Options options;
    options.tier = Tier::interpret;
    options.fuel = 1 << 30;
    Engine engine(options);
    bool ended = false;
    for (std::uint64_t fuel = 1; !ended && fuel < 20000; fuel += 1 + fuel / 64) {
      engine.set_fuel(options.fuel);
      engine.run(change.begin).value();
      engine.set_fuel(fuel);
      ended = engine.run(change.work).ok();
      engine.set_fuel(options.fuel);
      CAPTURE(change.work, fuel);
      CHECK(engine.eval<bool>(change.check).value());
    }
    CHECK(ended);
  }
}
