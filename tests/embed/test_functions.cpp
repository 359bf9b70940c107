// Functions both ways: C++ in Slope, Slope in C++, gradients into the host's memory.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "slope/engine.hpp"

using slope::Engine;
using slope::Tier;

namespace {

double triple(double x) { return 3 * x; }

// Central differences.
template <class F>
std::vector<double> differences(const F& f, std::vector<double> x) {
  std::vector<double> g(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double kept = x[i], h = 1e-6 * std::max(1.0, std::abs(kept));
    x[i] = kept + h;
    const double above = f(x).value();
    x[i] = kept - h;
    g[i] = (above - f(x).value()) / (2 * h);
    x[i] = kept;
  }
  return g;
}

void check_close(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(tolerance).margin(tolerance));
}

}  // namespace

TEST_CASE("C++ functions are Slope functions") {
  Engine engine;
  engine.define("triple", triple).value();
  double factor = 2;
  engine.define("scaled", [&](double x) { return factor * x; }).value();
  engine.define("join", [](std::string_view a, std::int64_t n) { return std::string(a) + "/" + std::to_string(n); })
      .value();
  engine
      .define("total",
              [](std::span<const double> v) {
                double sum = 0;
                for (double x : v) sum += x;
                return sum;
              })
      .value();
  engine
      .define("ramp",
              [](int n) {
                std::vector<double> v;
                for (int i = 0; i < n; ++i) v.push_back(i);
                return v;
              })
      .value();
  engine.define("opposite", [](bool b) { return !b; }).value();
  int calls = 0;
  engine.define("count!", [&] { ++calls; }).value();
  engine.define("same", [](const slope::Value& v) { return v; }).value();

  CHECK(engine.eval<double>("triple(2) + triple(0.5)").value() == 7.5);
  CHECK(engine.eval<double>("scaled(3)").value() == 6.0);
  factor = 10;
  CHECK(engine.eval<double>("scaled(3)").value() == 30.0);
  CHECK(engine.eval<std::string>("join(\"a\", 7)").value() == "a/7");
  CHECK(engine.eval<double>("total([1.0, 2.0]) + total(1:3)").value() == 9.0);
  CHECK(engine.eval<double>("sum(ramp(5))").value() == 10.0);
  CHECK(engine.eval<bool>("opposite(false)").value());
  CHECK(engine.run("count!(); count!()").value().is_nothing());
  CHECK(calls == 2);
  CHECK(engine.run("same((1, \"x\"))").value().repr() == "(1, \"x\")");
  CHECK(engine.eval<double>("sum(map(triple, [1.0, 2.0]))").value() == 9.0);
}

TEST_CASE("A name may have several C++ methods, chosen by types") {
  Engine engine;
  engine.define("kind", [](double) { return std::string("number"); }).value();
  engine.define("kind", [](std::string_view) { return std::string("text"); }).value();
  CHECK(engine.eval<std::string>("kind(1) * kind(\"a\")").value() == "numbertext");
  auto none = engine.run("kind(:symbol)");
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().type == "MethodError");
  CHECK_FALSE(engine.define("not a name", [] {}).ok());
}

TEST_CASE("C++ exceptions become Slope errors and come back whole") {
  Engine engine;
  engine
      .define("fails",
              [](int n) -> int {
                if (n > 0) throw std::out_of_range("n is " + std::to_string(n));
                return n;
              })
      .value();
  engine
      .define("refuses",
              [](double x) -> slope::Result<double> {
                if (x < 0) return slope::Error{.message = "negative"};
                return x;
              })
      .value();
  CHECK(engine.eval<std::string>("try\n    fails(2)\n    \"\"\ncatch e\n    e.msg\nend").value() == "n is 2");
  CHECK(engine.eval<double>("refuses(4)").value() == 4.0);
  CHECK(engine.run("refuses(-1)").error().summary == "negative");

  auto result = engine.run("f() = fails(3)\nf()", "host.slope");
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().message.find("n is 3") != std::string::npos);
  CHECK(result.error().message.find("host.slope:1") != std::string::npos);
  REQUIRE(result.error().cause);
  CHECK_THROWS_AS(std::rethrow_exception(result.error().cause), std::out_of_range);
  CHECK(engine.run("fails(10_000_000_000)").error().message.find("range") != std::string::npos);
}

TEST_CASE("A host function may use the engine that called it") {
  Engine engine;
  engine.run("inner(x) = x + 1").value();
  engine.define("outer", [&](double x) { return engine.call("inner", x).value().to<double>().value() * 2; }).value();
  CHECK(engine.eval<double>("outer(3)").value() == 8.0);
}

TEST_CASE("Slope functions are C++ functions") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile, Tier::automatic);
  Engine engine(slope::Options{.tier = tier});
  engine
      .run(
          "f(x, n) = x * n\ng(v) = sum(v) / length(v)\ngreet(name) = \"hello \" * name\nnumbers(n) = [1.0 * i for i in "
          "1:n]")
      .value();
  auto f = engine.function<double(double, int)>("f").value();
  CHECK(f(1.5, 4).value() == 6.0);
  auto mean = engine.function<double(std::span<const double>)>("g").value();
  const std::vector<double> v = {1, 2, 6};
  CHECK(mean(v).value() == 3.0);
  CHECK(engine.function<std::string(std::string_view)>("greet").value()("you").value() == "hello you");
  CHECK(engine.function<std::vector<double>(int)>("numbers").value()(3).value() == std::vector<double>{1, 2, 3});

  CHECK(f.is_current());
  engine.run("f(x, n) = x + n").value();  // a handle stays what it was until it is refreshed
  CHECK_FALSE(f.is_current());
  CHECK(f(1.5, 4).value() == 6.0);
  f.refresh().value();
  CHECK(f.is_current());
  CHECK(f(1.5, 4).value() == 5.5);

  CHECK_FALSE(engine.function<double(double)>("missing_function").ok());
  auto no_method = engine.function<double(double)>("f");
  REQUIRE_FALSE(no_method.ok());
  CHECK(no_method.error().message == "no method of `f` takes (::Float64)");
  auto wrong_result = engine.function<double(std::string_view)>("greet").value()("you");
  CHECK(wrong_result.error().message == "the result of `greet`: expected a real number, found a String");
}

TEST_CASE("Errors inside a typed call are results") {
  Engine engine;
  engine.run("at(v, i) = v[i]", "at.slope").value();
  auto at = engine.function<double(std::span<const double>, int)>("at").value();
  const std::vector<double> v = {1, 2};
  CHECK(at(v, 2).value() == 2.0);
  auto outside = at(v, 3);
  REQUIRE_FALSE(outside.ok());
  CHECK(outside.error().type == "BoundsError");
  CHECK(outside.error().message.find("at.slope:1") != std::string::npos);
  CHECK(at(v, 1).value() == 1.0);
}

TEST_CASE("A function that keeps a lent array is refused at the line when its handle is made") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile, Tier::automatic);
  Engine engine(slope::Options{.tier = tier});
  engine
      .run(
          "kept = nothing\nfunction keep(v)\n    global kept = v\n    v[1]\nend\n"
          "const all = Vector{Float64}[]\nfunction collect_all(v)\n    push!(all, v)\n    v[1]\nend\n"
          "function copies(v)\n    push!(all, copy(v))\n    v[1]\nend\n"
          "local_use(v) = sum(map(sum, [v, v]))\n",
          "keep.slope")
      .value();
  using Signature = double(std::span<const double>);
  auto refused = engine.function<Signature>("keep");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().position.line == 3);
  CHECK(refused.error().message.find("`keep` keeps its argument 1, which is lent for the call alone") == 0);
  CHECK(refused.error().message.find("keep.slope:3") != std::string::npos);
  refused = engine.function<Signature>("collect_all");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().position.line == 8);
  const std::vector<double> two = {2, 3};
  CHECK(engine.function<Signature>("copies").value()(two).value() == 2.0);
  CHECK(engine.function<Signature>("local_use").value()(two).value() == 10.0);
}

TEST_CASE("Gradients go into the host's memory") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile, Tier::automatic);
  Engine engine(slope::Options{.tier = tier});
  engine
      .run(R"(
softplus(z) = max(z, 0.0) + log1p(exp(-abs(z)))
loss(w) = sum(softplus.(w)) + 0.5 * sum(w .^ 2)
function chain(w)
    total = 0.0
    for i in 2:length(w)
        total += (w[i] - w[i-1]^2)^2 + (1 - w[i-1])^2
    end
    total
end
mixed(a, w, n) = a^n * sum(w) + sin(a)
)")
      .value();
  const std::vector<double> x = {0.5, -1.25, 2.0, 0.75};
  for (const char* name : {"loss", "chain"}) {
    auto f = engine.function<double(std::span<const double>)>(name).value();
    std::vector<double> g(4, 99.0);
    CHECK(f.value_and_gradient(x, g).value() == Approx(f(x).value()).epsilon(1e-14));
    check_close(g, differences(f, x), 1e-6);
    std::vector<double> again(4, -7.0);  // overwritten, not added to
    f.value_and_gradient(x, again).value();
    CHECK(again == g);
  }

  auto mixed = engine.function<double(double, std::span<const double>, int)>("mixed").value();
  double da = 0;
  std::vector<double> dw(4);
  const double value = mixed.value_and_gradient(1.5, x, 2, da, dw, nullptr).value();
  const double sum = 0.5 - 1.25 + 2.0 + 0.75;
  CHECK(value == Approx(2.25 * sum + std::sin(1.5)));
  CHECK(da == Approx(3.0 * sum + std::cos(1.5)));
  check_close(dw, {2.25, 2.25, 2.25, 2.25}, 1e-12);
  double only = 0;
  mixed.value_and_gradient(1.5, x, 2, only, nullptr, nullptr).value();
  CHECK(only == da);
}

TEST_CASE("Gradients that cannot be are refused") {
  Engine engine;
  engine
      .run(
          "f(w) = sum(w)\nlog_of(w) = log(w[1])\nconst store = [0.0]\nfunction leak(w)\n    store[1] = w[1]\n    "
          "store[1]\nend",
          "g.slope")
      .value();
  auto f = engine.function<double(std::span<const double>)>("f").value();
  std::vector<double> x = {1, 2, 3}, g(2), empty;
  CHECK(f.value_and_gradient(x, g).error().message ==
        "gradient of `f`, argument 1: the argument has 3 elements, the memory for its gradient 2");
  CHECK_FALSE(f.value_and_gradient(x, empty).ok());
  CHECK_FALSE(f.value_and_gradient(x, x).ok());
  CHECK(f.value_and_gradient(empty, empty).ok());

  auto leak = engine.function<double(std::span<const double>)>("leak").value();
  g.resize(3);
  auto refused = leak.value_and_gradient(x, g);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().type == "DifferentiationError");
  CHECK(refused.error().message.find("g.slope:") != std::string::npos);

  auto log_of = engine.function<double(std::span<const double>)>("log_of").value();
  x = {-1.0};
  g.resize(1);
  CHECK(log_of.value_and_gradient(x, g).error().type == "DomainError");
  x = {std::numeric_limits<double>::infinity()};
  CHECK(log_of.value_and_gradient(x, g).value() == std::numeric_limits<double>::infinity());
}

TEST_CASE("A gradient follows the definitions it depends on, when it is refreshed") {
  Engine engine;
  engine.run("part(x) = x^2\nwhole(w) = part(w[1]) + w[2]").value();
  auto whole = engine.function<double(std::span<const double>)>("whole").value();
  const std::vector<double> w = {3, 1};
  std::vector<double> g(2);
  whole.value_and_gradient(w, g).value();
  CHECK(g == std::vector<double>{6, 1});
  engine.run("unrelated(x) = x").value();
  CHECK(whole.is_current());
  engine.run("part(x) = x^3").value();
  CHECK_FALSE(whole.is_current());
  whole.value_and_gradient(w, g).value();
  CHECK(g == std::vector<double>{6, 1});
  whole.refresh().value();
  whole.value_and_gradient(w, g).value();
  CHECK(g == std::vector<double>{27, 1});

  auto cold = engine.function<double(std::span<const double>)>("whole").value();
  engine.run("part(x) = 5x").value();
  cold.value_and_gradient(w, g).value();  // its derivative is made only now, of the definitions it was made with
  CHECK(g == std::vector<double>{27, 1});
}
