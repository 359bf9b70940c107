// The standard library's containers and the host's own structures, both ways; handles of values.
#include <catch2/catch.hpp>

#include "slope/containers.hpp"
#include "slope/structure.hpp"

using slope::Engine;
using slope::Value;

namespace {

struct Point {
  double x = 0, y = 0;
  bool operator==(const Point&) const = default;
};

enum class Shade : std::uint8_t { light = 1, dark = 2 };

struct Particle {
  std::string name;
  Point at;
  std::vector<double> history;
  std::int32_t hits = 0;
  bool operator==(const Particle&) const = default;
};

// There and back, and what the script says it is.
template <class T>
void check_round_trip(Engine& engine, const T& value, const std::string& shown) {
  engine.set("it", value).value();
  CHECK(engine.get<Value>("it").value().repr() == shown);
  auto back = engine.get<T>("it");
  REQUIRE(back.ok());
  CHECK(back.value() == value);
}

}  // namespace

SLOPE_STRUCTURE(Point, x, y)
SLOPE_STRUCTURE(Particle, name, at, history, hits)

TEST_CASE("Containers cross in both directions") {
  Engine engine;
  check_round_trip(engine, std::vector<std::int64_t>{1, 2, 3}, "[1, 2, 3]");
  check_round_trip(engine, std::vector<std::string>{"a", "b"}, "[\"a\", \"b\"]");
  check_round_trip(engine, std::vector<bool>{true, false}, "Bool[1, 0]");
  check_round_trip(engine, std::vector<std::vector<double>>{{1, 2}, {}}, "[[1.0, 2.0], Float64[]]");
  check_round_trip(engine, std::vector<std::int64_t>{}, "Int64[]");
  check_round_trip(engine, std::array<double, 3>{1, 2, 3}, "[1.0, 2.0, 3.0]");
  check_round_trip(engine, std::tuple<std::int64_t, std::string, double>{1, "two", 3.5}, "(1, \"two\", 3.5)");
  check_round_trip(engine, std::pair<bool, double>{true, 0.5}, "(true, 0.5)");
  check_round_trip(engine, std::map<std::string, double>{{"a", 1.5}}, "Dict(\"a\" => 1.5)");
  check_round_trip(engine, std::unordered_map<std::int64_t, std::vector<double>>{{7, {1, 2}}}, "Dict(7 => [1.0, 2.0])");
  check_round_trip(engine, std::optional<double>(2.5), "2.5");
  check_round_trip(engine, std::optional<double>(), "nothing");
  check_round_trip(engine, std::vector<std::optional<double>>{1.0, std::nullopt},
                   "Union{Nothing, Float64}[1.0, nothing]");
  using Cell = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<double>>;
  check_round_trip(engine, Cell(true), "true");
  check_round_trip(engine, Cell(std::int64_t{3}), "3");
  check_round_trip(engine, Cell(3.0), "3.0");
  check_round_trip(engine, Cell(std::string("s")), "\"s\"");
  check_round_trip(engine, Cell(std::vector<double>{1}), "[1.0]");
  check_round_trip(engine, Cell(), "nothing");
  check_round_trip(engine, std::map<std::string, std::int64_t>(), "Dict{String, Int64}()");
  check_round_trip(engine, std::complex<double>(1, -2), "1.0 - 2.0im");
  check_round_trip(engine, std::vector<std::complex<double>>{{1, 2}}, "ComplexF64[1.0 + 2.0im]");
  check_round_trip(engine, std::set<std::int64_t>{7}, "Set([7])");
  check_round_trip(engine, std::unordered_set<std::string>{"a"}, "Set([\"a\"])");
  check_round_trip(engine, std::deque<double>{1, 2}, "[1.0, 2.0]");
  check_round_trip(engine, std::list<bool>{true}, "Bool[1]");
  check_round_trip(engine, 'z', "'z'");
  check_round_trip(engine, U'é', "'é'");
  check_round_trip(engine, std::string("a\0b\xff", 4), "\"a\\0b\\xff\"");
  check_round_trip(engine, Shade::dark, "2");
  check_round_trip(engine, std::vector<Shade>{Shade::light}, "[1]");
  check_round_trip(engine, std::uint64_t{7}, "7");
  check_round_trip(engine, ~std::uint64_t{0}, "0xffffffffffffffff");
  check_round_trip(engine, std::vector<std::int64_t>(100000, 7),
                   engine.eval<std::string>("repr(fill(7, 100000))").value());
}

TEST_CASE("From Slope, whatever has the parts will do") {
  Engine engine;
  CHECK(engine.eval<std::vector<std::int64_t>>("1:3").value() == std::vector<std::int64_t>{1, 2, 3});
  CHECK(engine.eval<std::vector<std::int64_t>>("(x^2 for x in 1:3)").value() == std::vector<std::int64_t>{1, 4, 9});
  CHECK(engine.eval<std::pair<double, double>>("(re=1, im=2)").value() == std::pair(1.0, 2.0));
  CHECK(engine.eval<std::pair<std::string, int>>("\"a\" => 3").value() == std::pair(std::string("a"), 3));
  CHECK(engine.eval<std::variant<double, std::string>>("7").value() == std::variant<double, std::string>(7.0));
  for (const char* text : {"(1, 4)", "(x^2 for x in 1:2)", "Any[1, 4]"})
    CHECK(engine.eval<std::vector<double>>(text).value() == std::vector<double>{1, 4});
  CHECK(engine.eval<std::complex<double>>("2").value() == std::complex<double>(2));
  CHECK(engine.eval<std::string>("'é'").value() == "é");
  CHECK(engine.eval<char>("'a'").value() == 'a');
  CHECK(engine.eval<std::uint64_t>("typemax(UInt64)").value() == ~std::uint64_t{0});
  const std::vector<std::int32_t> given = {1, 2};
  engine.set("given", std::span<const std::int32_t>(given)).value();
  CHECK(engine.eval<std::string>("repr(given)").value() == "[1, 2]");
  CHECK(engine.call("isnothing", nullptr).value().to<bool>().value());
}

TEST_CASE("Integers that Int64 does not hold are never others") {
  Engine engine(slope::Options{.tier = GENERATE(slope::Tier::interpret, slope::Tier::compile)});
  const std::uint64_t large = ~std::uint64_t{0};
  engine.run("same(x) = x").value();
  auto same = engine.function<double(std::uint64_t)>("same").value();
  CHECK(same(7).value() == 7);
  CHECK(same(large).error().message.starts_with("an argument is an integer that Int64 does not hold"));
  CHECK(same.jvp(large, nullptr).error().kind == slope::ErrorKind::conversion);
  engine.define("gives", [=] { return large; }).value();
  engine.define("gives_for", [=](const std::string&) { return large; }).value();
  for (const char* text : {"gives()", "gives_for(\"x\")"})
    CHECK(engine.run(text).error().summary == "the host's function gives an integer that Int64 does not hold");
  CHECK(engine.eval<std::int64_t>("typemax(UInt64)").error().message == "expected an integer, found a UInt64");
  CHECK(engine.eval<std::uint32_t>("2^40").error().kind == slope::ErrorKind::conversion);
  CHECK(engine.eval<Shade>("300").error().kind == slope::ErrorKind::conversion);
}

TEST_CASE("Calls take arguments by name, and names may be qualified") {
  Engine engine;
  engine.run("f(x; k=1, s=\"a\") = string(x, k, s)\nmodule M\n module N\n  g(x) = 3x\n end\n const c = 4\nend").value();
  CHECK(engine.call("f", 1, slope::keyword("k", 5), slope::keyword("s", "z")).value().repr() == "\"15z\"");
  CHECK(engine.run("f").value()(slope::keyword("k", std::vector<int>{2}), 1).value().repr() == "\"1[2]a\"");
  CHECK_FALSE(engine.call("f", 1, slope::keyword("unknown", 5)).ok());
  CHECK(engine.set("k", slope::keyword("a", 1)).error().message.find("among the arguments") != std::string::npos);
  CHECK(engine.call("M.N.g", 2).value().to<int>().value() == 6);
  CHECK(engine.get<int>("M.c").value() == 4);
  CHECK(engine.get<int>("M.none").error().message == "`M.none` is not defined in Main");
  auto g = engine.function<double(double)>("M.N.g").value();
  double d = 0;
  CHECK(g.value_and_gradient(2, d).value() == 6);
  CHECK(d == 3);
  engine.run("M.N.eval(:(g(x) = 4x))").value();
  CHECK_FALSE(g.is_current());
  g.refresh().value();
  CHECK(g(2).value() == 8);
}

TEST_CASE("What does not fit is told, with the place") {
  Engine engine;
  auto message = [](const auto& result) { return result.error().message; };
  CHECK(message(engine.eval<std::vector<std::int64_t>>("[1, 2, \"x\"]")) ==
        "element 3: expected an integer, found a String");
  CHECK(message(engine.eval<std::tuple<double, double>>("(1, 2, 3)")) ==
        "expected a tuple of 2 elements, found a Tuple{Int64, Int64, Int64}");
  CHECK(message(engine.eval<std::tuple<double, double>>("(1, \"b\")")) ==
        "element 2: expected a real number, found a String");
  CHECK(message(engine.eval<std::map<std::string, double>>("[1]")) == "expected a dictionary, found a Vector{Int64}");
  CHECK(message(engine.eval<std::optional<double>>("\"x\"")) == "expected a real number, found a String");
  CHECK(engine.eval<std::vector<std::int8_t>>("[1, 300]").error().kind == slope::ErrorKind::conversion);
  CHECK(message(engine.eval<std::variant<std::int64_t, bool>>("\"x\"")) ==
        "expected one of the alternatives of a std::variant, found a String");
  CHECK_FALSE(engine.eval<std::vector<std::int64_t>>("nothing").ok());
  CHECK(message(engine.eval<std::vector<double>>("\"12\"")) == "expected a vector of real numbers, found a String");
  CHECK(message(engine.eval<char>("'é'")) ==
        "the character 'é' is not one of ASCII, and no char: take a char32_t or a std::string");
  CHECK(message(engine.eval<Point>("(x=1,)")) == "as a `Point`: type NamedTuple has no field y");
}

TEST_CASE("Structures of the host are structures of the script") {
  Engine engine;
  engine.run(slope::definition<Point>()).value();
  engine.run("struct Particle\n    name::String\n    at::Point\n    history::Vector{Float64}\n    hits::Int64\nend")
      .value();
  CHECK(slope::definition<Point>() == "struct Point\n    x::Float64\n    y::Float64\nend\n");
  check_round_trip(engine, Point{1, 2}, "Point(1.0, 2.0)");
  check_round_trip(engine, Particle{"p", {3, 4}, {0.5}, 2}, "Particle(\"p\", Point(3.0, 4.0), [0.5], 2)");
  check_round_trip(engine, std::vector<Point>{{1, 2}, {3, 4}}, "Point[Point(1.0, 2.0), Point(3.0, 4.0)]");
  CHECK(engine.eval<Point>("(x = 5, y = 6)").value() == Point{5, 6});
  CHECK(engine.eval<Point>("(x = 5,)").error().message.find("has no field y") != std::string::npos);
  CHECK(engine.eval<Point>("(x = 5, y = \"6\")").error().message ==
        "field `y` of `Point`: expected a real number, found a String");

  engine.define("shifted", [](const Point& p, double by) { return Point{p.x + by, p.y + by}; }).value();
  engine.define("corners", [](double d) { return std::vector<Point>{{0, 0}, {d, d}}; }).value();
  CHECK(engine.eval<Point>("shifted(Point(1, 2), 10)").value() == Point{11, 12});
  CHECK(engine.eval<double>("sum(p.x for p in corners(2.5))").value() == 2.5);
  CHECK(engine.run("shifted(1, 2)").error().summary.find("argument 1: ") != std::string::npos);
  CHECK(engine.call("shifted", Point{1, 1}, 1.0).value().to<Point>().value() == Point{2, 2});
  Engine without;
  CHECK_FALSE(without.set("it", Point{1, 2}).ok());
}

TEST_CASE("Handles: fields, elements, calls") {
  Engine engine;
  engine
      .run("mutable struct Body\n    mass::Float64\n    tags\nend\nbody = Body(2.0, [\"a\", \"b\"])\nadd(a, b) = a + b")
      .value();
  Value body = engine.get<Value>("body").value();
  CHECK(body.is_a("Body"));
  CHECK_FALSE(body.is_a("Number"));
  CHECK(body.fields() == std::vector<std::string>{"mass", "tags"});
  CHECK(body.field("mass").value().to<double>().value() == 2.0);
  CHECK(body.field(0).value().to<double>().value() == 2.0);
  body.set_field("mass", 3.5).value();
  CHECK(engine.eval<double>("body.mass").value() == 3.5);
  CHECK(body.set_field("mass", "heavy").error().type == "MethodError");
  CHECK_FALSE(body.set_field("weight", 1.0).ok());
  Value tags = body.field("tags").value();
  CHECK(tags.size().value() == 2);
  CHECK(tags.at(1).value().to<std::string>().value() == "b");
  CHECK(tags.at(2).error().type == "BoundsError");
  CHECK(tags.elements().value().size() == 2);
  CHECK(engine.run("1:4").value().elements().value()[3].to<int>().value() == 4);
  CHECK_FALSE(Value().size().ok());
  CHECK_FALSE(Value().field("x").ok());
  Value add = engine.get<Value>("add").value();
  CHECK(add(2, 0.5).value().to<double>().value() == 2.5);
  CHECK(add(std::vector<std::int64_t>{1, 2}, std::vector<std::int64_t>{3, 4}).value().repr() == "[4, 6]");
  CHECK(add(1, "x").error().type == "MethodError");
}
