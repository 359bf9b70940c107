// Classes of the host as types of a script: the host has lenses and what glass does to light, the script the optics
// made of them, and its gradient moves the host's objects.
#include <slope/type.hpp>

#include <cmath>
#include <cstdio>

class Lens {
 public:
  Lens(std::string name, double place, double power) : place(place), power(power), name(std::move(name)) {}
  std::string title() const { return "lens " + name; }

  double place;
  double power;
  std::string name;
};
SLOPE_TYPE(Lens)

int main() {
  slope::Engine engine;
  engine.type<Lens>("Lens")
      .field("place", &Lens::place)  // what derivatives reach
      .field("power", &Lens::power)
      .constructor<std::string, double, double>()
      .property("name", &Lens::name)
      .method("title", &Lens::title)
      .value();
  engine.set("screen", 10.0).value();
  engine.run("refract(l::Lens, y) = -l.power * y").value();
  if (auto loaded = engine.run_file(SCRIPT); !loaded.ok()) {
    std::fprintf(stderr, "%s\n", loaded.error().message.c_str());
    return 1;
  }

  // The script's values hold the host's objects: what either changes, the other sees.
  slope::Value first = engine.run("Lens(\"front\", 0, 0.02)").value();
  slope::Value second = engine.run("Lens(\"back\", 4, 0.02)").value();
  auto* front = first.to<Lens*>().value();
  auto* back = second.to<Lens*>().value();

  auto blur = engine.function<double(const slope::Value&, const slope::Value&)>("blur").value();
  double value = 0;
  for (int step = 0; step < 200; ++step) {
    slope::Value by_first, by_second;
    value = blur.value_and_gradient(first, second, by_first, by_second).value();
    auto along = [](const slope::Value& g, const char* field) {
      return g.field(field).value().at(0).value().to<double>().value();
    };
    front->power -= 0.002 * along(by_first, "power");
    back->power -= 0.002 * along(by_second, "power");
  }
  std::printf("blur %.1e\n%s\n%s\n", value, engine.call("report", first).value().to<std::string>().value().c_str(),
              engine.call("report", second).value().to<std::string>().value().c_str());
  const bool prism = engine.eval<double>("refract(Prism(0.1), 1.0)").value() == -0.1;
  return value < 1e-6 && prism ? 0 : 1;
}
