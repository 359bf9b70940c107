// C++ classes as types of scripts (slope/type.hpp).
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>

#include "slope/structure.hpp"
#include "slope/type.hpp"

using slope::Engine;
using slope::Tier;

namespace embed_types {

class Body {
 public:
  Body(double mass, double speed) : mass(mass), speed(speed) { ++alive; }
  Body(const Body& other) : mass(other.mass), speed(other.speed), position(other.position), name(other.name) {
    ++alive;
  }
  ~Body() { --alive; }
  Body& operator=(const Body&) = default;
  double energy() const { return 0.5 * mass * speed * speed; }
  void push(double impulse) { speed += impulse / mass; }
  double distance(const Body& other) const { return std::abs(position[0] - other.position[0]); }
  std::string label(std::string_view prefix) const { return std::string(prefix) + name; }

  double mass;
  double speed;
  std::array<double, 2> position{};
  std::string name = "body";
  static inline int alive = 0;
};

struct Field {
  explicit Field(double k) : k(k) {}
  double potential(double x) const { return 0.5 * k * x * x; }
  double k;
};

struct Other {
  int n = 0;
};
struct Unknown {};
struct Watched {
  double power = 1;
  double twice() const { return 2 * power; }
  void grow() { power *= 2; }
  int sides() const { return 3; }
};

void add_body(Engine& engine) {
  engine.type<Body>("Body")
      .field("mass", &Body::mass)
      .field("speed", &Body::speed)
      .field("position", &Body::position)
      .constructor<double, double>()
      .constructor([](double mass) -> slope::Result<Body> {
        if (mass <= 0) return slope::Error{.message = "a mass is positive"};
        return Body(mass, 0);
      })
      .method("energy", &Body::energy)
      .method("push!", &Body::push)
      .method("distance", &Body::distance)
      .method("label", &Body::label)
      .method("length", [](const Body&) { return 2; })
      .method("+", [](const Body& a, const Body& b) { return Body(a.mass + b.mass, a.speed + b.speed); })
      .property("momentum", [](const Body& b) { return b.mass * b.speed; })
      .property("name", &Body::name)
      .property("kinetic", &Body::energy, [](Body& b, double e) { b.speed = std::sqrt(2 * e / b.mass); })
      .value();
}

}  // namespace embed_types

SLOPE_TYPE(embed_types::Body)
SLOPE_TYPE(embed_types::Field)
SLOPE_TYPE(embed_types::Other)
SLOPE_TYPE(embed_types::Unknown)
SLOPE_TYPE(embed_types::Watched)
using namespace embed_types;

TEST_CASE("Objects of the host have constructors, methods, properties and operators") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile, Tier::automatic);
  {
    Engine engine(slope::Options{.tier = tier});
    add_body(engine);
    CHECK(engine.eval<double>("b = Body(2, 3)\nenergy(b)").value() == 9.0);
    CHECK(engine.eval<double>("push!(b, 4)\nb.speed").value() == 5.0);
    CHECK(engine.eval<double>("b.speed = 1\nb.mass = 4\nenergy(b)").value() == 2.0);
    CHECK(engine.eval<double>("b.momentum + (b + Body(1, 2)).momentum").value() == 4.0 + 15.0);
    CHECK(engine.eval<std::int64_t>("length(b)").value() == 2);
    CHECK(engine.eval<std::string>("b.name = \"moon\"\nlabel(b, \"the \")").value() == "the moon");
    CHECK(engine.eval<double>("b.kinetic = 8\nb.speed").value() == 2.0);
    CHECK(engine.eval<double>("b.position = [1, 2]\nb.position[2] += 5\nc = Body(1.0)\ndistance(b, c) + b.position[2]")
              .value() == 8.0);
    CHECK(engine.run("b").value().repr() == "Body(mass = 4.0, speed = 2.0, position = [1.0, 7.0])");
    CHECK(engine.eval<std::string>("string(propertynames(b))").value() ==
          "(:mass, :speed, :position, :momentum, :name, :kinetic)");

    CHECK(engine.run("Body(-1.0)").error().summary == "a mass is positive");
    CHECK(engine.run("b.weight").error().summary == "`Body` has no property `weight`");
    CHECK(engine.run("b.momentum = 1").error().summary == "`Body` has no property `momentum` that can be set");
    CHECK(engine.run("b.name = 5").error().summary ==
          "ArgumentError: property `name` of `Body`: expected a String, found a value of type Int64");
    CHECK(engine.run("energy(1)").error().type == "MethodError");
    CHECK(engine.run("Body(\"a\")").error().type == "MethodError");
  }
  CHECK(Body::alive == 0);
}

TEST_CASE("Objects of the host take part in dispatch and inference") {
  Engine engine;
  add_body(engine);
  engine
      .run(
          "describe(b::Body) = \"a body\"\ndescribe(x) = \"a thing\"\nenergy(x::Float64) = -x\n"
          "function total(n)\n    s = 0.0\n    for i in 1:n\n        b = Body(2.0, i)\n        s += energy(b) + "
          "b.mass\n"
          "    end\n    s\nend")
      .value();
  CHECK(engine.eval<std::string>("describe(Body(1, 1)) * describe(1)").value() == "a bodya thing");
  CHECK(engine.eval<double>("energy(2.0)").value() == -2.0);
  CHECK(engine.eval<bool>("Core.return_type(energy, (Body,)) === Float64").value());
  CHECK(engine.eval<bool>("Core.return_type(() -> Body(1, 2) + Body(1, 2), ()) === Body").value());
  auto total = engine.function<double(int)>("total").value();  // native: else it would be refused
  CHECK(total(3).value() == 1 + 4 + 9 + 6.0);
}

TEST_CASE("Objects go to the host and come back") {
  Engine engine;
  add_body(engine);
  engine
      .define("heavier",
              [](const Body& b, double by) {
                Body c = b;
                c.mass += by;
                return c;
              })
      .value();
  engine.define("rename!", [](Body& b, std::string name) { b.name = std::move(name); }).value();
  CHECK(engine.eval<double>("heavier(Body(1, 2), 3).mass").value() == 4.0);
  CHECK(engine.eval<std::string>("b = Body(1, 2)\nrename!(b, \"sun\")\nb.name").value() == "sun");

  const Body copy = engine.eval<Body>("b").value();
  CHECK(copy.name == "sun");
  slope::Value held = engine.run("b").value();
  Body* same = held.to<Body*>().value();
  same->mass = 10;
  CHECK(engine.eval<double>("b.mass").value() == 10.0);
  engine.set("mine", Body(7, 1)).value();
  CHECK(engine.eval<double>("mine.mass").value() == 7.0);
  auto mass = engine.function<double(const Body&)>("energy").value();
  CHECK(mass(Body(2, 2)).value() == 4.0);
  CHECK(engine.eval<Body>("1").error().message == "expected a `Body`, found an Int64");

  CHECK(engine.define("strange", [](const Unknown&) { return 1.0; }).error().message.find("engine.type<T>") !=
        std::string::npos);
  Engine second;
  CHECK(second.eval<Body>("1").error().message == "expected an object of a type of the host, found an Int64");
  CHECK_FALSE(second.set("b", Body(1, 1)).ok());
}

TEST_CASE("Derivatives reach fields of objects, and methods with rules") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile, Tier::automatic);
  Engine engine(slope::Options{.tier = tier});
  add_body(engine);
  engine.type<Field>("Field")
      .constructor<double>()
      .method("potential", &Field::potential,
              [](slope::Definition& d) { d.derivative([](const Field& f, double x) { return f.k * x; }); })
      .property("k", &Field::k)
      .value();
  engine
      .run(
          "const b = Body(2, 3)\nb.position = [1, 2]\n"
          "loss(b, a) = a * b.mass * b.speed^2 + sum(b.position .^ 2)\n"
          "const field = Field(4)\nwork(x) = potential(field, 2x)\nopaque(x) = x * energy(b)\n"
          "foreign(x) = energy(Body(x, 1.0))",
          "types.slope")
      .value();
  auto loss = engine.function<double(const slope::Value&, double)>("loss").value();
  slope::Value g;
  double da = 0;
  CHECK(loss.value_and_gradient(engine.run("b").value(), 2.0, g, da).value() == 41.0);
  CHECK(da == 18.0);
  CHECK(g.field("mass").value().to<std::vector<double>>().value() == std::vector<double>{18});
  CHECK(g.field("speed").value().to<std::vector<double>>().value() == std::vector<double>{24});
  CHECK(g.field("position").value().to<std::vector<double>>().value() == std::vector<double>{2, 4});

  auto work = engine.function<double(double)>("work").value();
  double dx = 0;
  CHECK(work.value_and_gradient(3.0, dx).value() == 72.0);
  CHECK(dx == 48.0);
  engine.check_rule("work", 1.5).value();

  auto foreign = engine.function<double(double)>("foreign").value();
  CHECK(foreign.value_and_gradient(3.0, dx).error().kind == slope::ErrorKind::not_differentiable);
}

TEST_CASE("Objects end when nobody holds them, or with the engine") {
  Body::alive = 0;
  {
    Engine engine;
    add_body(engine);
    engine.run("for i in 1:1000\n    Body(i, 1)\nend\nkept = Body(1, 2)\narray = getfield(Body(5, 6), :mass)").value();
    engine.run("nothing").value();
    engine.collect_garbage();
    engine.run("kept2 = Body(1, 1)").value();  // the dead ones end at the next use
    CHECK(Body::alive < 100);
    CHECK(Body::alive >= 2);
    CHECK(engine.eval<double>("kept.speed").value() == 2.0);
    slope::Value held = engine.run("Body(3, 4)").value();
    engine.collect_garbage();
    CHECK(held.to<Body>().value().mass == 3);
    // The memory of a field is the object's, which lives as long as a script holds either.
    CHECK(engine.eval<double>("array[1]").value() == 5.0);
    engine.run("whole = vec(array)\narray = nothing").value();
    engine.collect_garbage();
    CHECK(engine.eval<double>("whole[1] = 8; whole[1]").value() == 8.0);
    const int alive = Body::alive;
    engine.run("whole = nothing").value();
    engine.collect_garbage();
    engine.run("Body(1, 1)").value();
    CHECK(Body::alive <= alive);
  }
  CHECK(Body::alive == 0);
}

TEST_CASE("Scripts cannot make objects up") {
  Engine engine;
  add_body(engine);
  engine.type<Other>("Other").constructor<>().property("n", &Other::n).value();
  CHECK_FALSE(engine.run("Body(1, 2, 3)").ok());
  CHECK(engine.run("b = Body(1, 2)\nsetfield!(b, :__object, 1_000_000)\nenergy(b)")
            .error()
            .summary.find("argument 1: the object is not one that the host made") != std::string::npos);
  CHECK_FALSE(engine.run("setfield!(b, :__object, -1)\nenergy(b)").ok());
  CHECK_FALSE(engine.run("o = Other()\nsetfield!(b, :__object, getfield(o, :__object))\nenergy(b)").ok());
  CHECK_FALSE(engine.run("Core.host_wrap(Body, 0)").ok());
  CHECK_FALSE(engine.run("Core.host_wrap(Int64, 0)").ok());
}

TEST_CASE("What C++ does with the fields of an object that carries derivatives is refused without a rule") {
  Engine engine;
  engine.type<Watched>("Watched")
      .field("power", &Watched::power)
      .constructor<>()
      .property("twice", &Watched::twice)
      .method("grow", &Watched::grow)
      .method("sides", &Watched::sides)
      .value();
  for (const char* text :
       {"gradient(w -> w.twice * 2, Watched())", "gradient(w -> (grow(w); w.power * 2), Watched())"}) {
    const auto refused = engine.run(text);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().kind == slope::ErrorKind::not_differentiable);
    CHECK(refused.error().message.find("looks at an object that carries derivatives") != std::string::npos);
  }
  CHECK(engine.eval<double>("gradient(w -> sides(w) * w.power, Watched())[1].power[1]").value() == 3.0);
  CHECK(engine.eval<double>("w = Watched(); grow(w); w.twice").value() == 4.0);
}

TEST_CASE("Types that cannot be are refused") {
  Engine engine;
  add_body(engine);
  CHECK(engine.type<Body>("Again").ok() == false);
  CHECK_FALSE(engine.type<Other>("Body").ok());
  CHECK_FALSE(engine.type<Other>("not a name").ok());
  auto late = engine.type<Field>("Field");
  late.constructor<double>().field("k", &Field::k);
  CHECK(late.error().message == "field `k` of `Field`: fields come before constructors, methods and properties");
  auto wrong = engine.type<Other>("Other");
  wrong.method("n", [](double x) { return x; });
  CHECK(wrong.error().message == "type: a method of `Other` takes its object as first argument; `n` does not");
}
