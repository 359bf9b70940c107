// What a front end such as a notebook takes over (slope/tools.hpp): values in several forms, input, descriptions.
#include <catch2/catch.hpp>
#include <stdexcept>

#include "slope/tools.hpp"

namespace {

using slope::Engine;
using slope::tools::Forms;

slope::Options options() {
  slope::Options options;
  options.capabilities.input = true;
  return options;
}

constexpr const char* bold =
    "struct Bold; text::String; end\n"
    "Base.show(io::IO, ::MIME\"text/html\", b::Bold) = print(io, \"<b>\", b.text, \"</b>\")\n"
    "Base.show(io::IO, ::MIME\"image/png\", b::Bold) = write(io, UInt8[1, 2, 255])\n";

}  // namespace

TEST_CASE("A value has the forms for which its type has methods of `show`") {
  Engine engine(options());
  const slope::Value value = engine.run(std::string(bold) + "Bold(\"x\")").value();
  const Forms expected = {{"text/plain", "Bold(\"x\")"}, {"text/html", "<b>x</b>"}, {"image/png", "AQL/"}};
  CHECK(slope::tools::forms(engine, value, 24, 80).value() == expected);
  const Forms plain = {{"text/plain", "[1, 2]"}};
  CHECK(slope::tools::forms(engine, engine.run("Text(\"[1, 2]\")").value(), 24, 80).value() == plain);
}

TEST_CASE("`display` gives the forms to a front end, and prints without one") {
  std::string printed;
  slope::Options given = options();
  given.output = [&](std::string_view text) { printed += text; };
  Engine engine(given);
  engine.run(bold).value();
  engine.run("display(Bold(\"x\"))").value();
  CHECK(printed == "Bold(\"x\")\n");
  CHECK_FALSE(engine.run("display(\"text/html\", Bold(\"x\"))").ok());
  std::vector<Forms> shown;
  slope::tools::set_front_end(engine, {[&](const Forms& forms) { shown.push_back(forms); }, {}});
  engine.run("display(Bold(\"x\")); display(\"text/html\", Bold(\"y\"))").value();
  REQUIRE(shown.size() == 2);
  CHECK(shown[0].size() == 3);
  CHECK(shown[1] == Forms{{"text/html", "<b>y</b>"}});
  CHECK(printed == "Bold(\"x\")\n");
}

TEST_CASE("A front end answers `readline`, and its exceptions are errors of the script") {
  Engine engine(options());
  slope::tools::set_front_end(engine, {{}, [] { return std::string("line\n"); }});
  CHECK(engine.eval<std::string>("readline() * readline(keep=true)").value() == "lineline\n");
  slope::tools::set_front_end(engine, {{}, []() -> std::string { throw std::runtime_error("no input here"); }});
  CHECK(engine.eval<bool>("try readline(); false catch e; occursin(\"no input here\", sprint(showerror, e)) end")
            .value());
  slope::Options refused;
  Engine closed(refused);
  slope::tools::set_front_end(closed, {{}, [] { return std::string("line\n"); }});
  CHECK_FALSE(closed.run("readline()").ok());
}

TEST_CASE("What is at the cursor is described without running it") {
  Engine engine(options());
  engine.run("struct Point; up::Int; end\np = Point(1)\nhalf(x) = x / 2\nran = false\nloud() = (global ran = true; 1)")
      .value();
  const auto described = [&](std::string_view text, std::size_t cursor) {
    return slope::tools::describe(engine, text, cursor);
  };
  CHECK(described("y = half(3)", 6).starts_with("half(3) :: Float64\n"));
  CHECK(described("half(3, ", 8).find("half(x)") != std::string::npos);
  CHECK(described("p.up + 1", 3) == "p.up :: Int64\n");
  CHECK(described("loud()", 2).starts_with("loud() :: Int64\n"));
  CHECK_FALSE(engine.get<bool>("ran").value());
  CHECK(described("@time 1", 3).find("time") != std::string::npos);
  CHECK(described("\"half\"", 3).empty());
  CHECK(described("# half", 4).empty());
  CHECK(described("unknown_name", 3).empty());
  CHECK(described("", 0).empty());
  CHECK(described("half(((", 99).find("half(x)") != std::string::npos);
}
