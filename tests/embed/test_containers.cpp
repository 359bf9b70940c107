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
