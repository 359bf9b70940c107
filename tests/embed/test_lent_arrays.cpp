// Arrays that are lent for one call: who keeps one is told so, at the line, where inference cannot see it coming too.
#include <catch2/catch.hpp>

#include <cmath>

#include "slope/containers.hpp"
#include "slope/engine.hpp"

using slope::ArrayView;
using slope::Dispatch;
using slope::Engine;
using slope::Error;
using slope::Tier;
using Span = std::span<const double>;

namespace {

slope::Options in_tier(Tier tier) {
  slope::Options options;
  options.tier = tier;
  return options;
}

// Every call twice: what the first one left must not hide what the second one does.
template <class F>
void refused_at(F& f, const std::vector<double>& v, unsigned line, const char* what) {
  for (int i = 0; i < 2; ++i) {
    auto kept = f(v);
    REQUIRE_FALSE(kept.ok());
    INFO(kept.error().message);
    CHECK(kept.error().position.line == line);
    CHECK(kept.error().type == "ArgumentError");
    CHECK(kept.error().message.find(what) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("A store of a lent array in what outlives the call is an error at its line") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile, Tier::automatic);
  Engine engine(in_tier(tier));
  engine
      .run(R"(
kept = nothing
const all = Any[]
const typed = Vector{Float64}[]
const table = Dict{String,Any}()
mutable struct Holder
    it::Any
end
const holder = Holder(nothing)
hidden = identity
function in_global(v)
    global kept = hidden(v)
    1.0
end
function in_list(v)
    push!(all, hidden(v))
    1.0
end
function in_typed(v)
    push!(typed, hidden(v))
    1.0
end
function in_table(v)
    table["it"] = hidden(v)
    1.0
end
function in_field(v)
    holder.it = hidden(v)
    1.0
end
function view_of(v)
    holder.it = view(hidden(v), 1:1)
    1.0
end
function tuple_of(v)
    holder.it = (1, (2, hidden(v)))
    1.0
end
function closure_of(v)
    w = hidden(v)
    holder.it = () -> w
    1.0
end
function reshaped(v)
    holder.it = reshape(hidden(v), 1, :)
    1.0
end
function at_front(v)
    pushfirst!(all, hidden(v))
    1.0
end
function inside(v)
    insert!(typed, 1, hidden(v))
    1.0
end
function behind(v)
    append!(all, Any[1, hidden(v)])
    1.0
end
function before(v)
    prepend!(typed, [hidden(v)])
    1.0
end
function between(v)
    splice!(all, 1:0, (1, hidden(v)))
    1.0
end
)",
           "keep.slope")
      .value();
  const std::vector<double> v = {1, 2, 3};
  const std::pair<const char*, unsigned> cases[] = {{"in_global", 12}, {"in_field", 28},   {"view_of", 32},
                                                    {"tuple_of", 36},  {"closure_of", 41}, {"reshaped", 45}};
  for (const auto& [name, line] : cases) {
    INFO(name);
    auto f = engine.function<double(Span)>(name, Dispatch::allowed).value();
    refused_at(f, v, line, "cannot be kept");
  }
  // These store in the library's code: the host's line is the call's.
  const std::pair<const char*, unsigned> calls[] = {{"in_list", 16},  {"in_typed", 20}, {"in_table", 24},
                                                    {"at_front", 49}, {"inside", 53},   {"behind", 57},
                                                    {"before", 61},   {"between", 65}};
  for (const auto& [name, line] : calls) {
    INFO(name);
    auto f = engine.function<double(Span)>(name, Dispatch::allowed).value();
    refused_at(f, v, line, "cannot be kept");
  }
  CHECK(engine.eval<bool>("kept === nothing && holder.it === nothing && isempty(table)").value());
  CHECK(engine.eval<bool>("isempty(all) && isempty(typed)").value());
}

TEST_CASE("Scripts may catch that a lent array cannot be kept, and store a copy") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile);
  Engine engine(in_tier(tier));
  engine
      .run(R"(
kept = nothing
hidden = identity
function f(v)
    w = hidden(v)
    try
        global kept = w
    catch e
        e isa ArgumentError || rethrow()
        global kept = copy(w)
    end
    sum(w)
end
)")
      .value();
  auto f = engine.function<double(Span)>("f", Dispatch::allowed).value();
  {
    const std::vector<double> v = {1, 2, 3};
    CHECK(f(v).value() == 6.0);
  }
  CHECK(engine.eval<std::vector<double>>("kept").value() == std::vector<double>{1, 2, 3});
}

TEST_CASE("What a call makes may hold a lent array as long as it ends with the call") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile, Tier::automatic);
  Engine engine(in_tier(tier));
  engine
      .run(R"(
const all = Any[]
hidden = identity
mutable struct Holder
    it::Any
end
function temporary(v)
    w = hidden(v)
    list = Any[w, w]
    push!(list, w)
    held = Holder(w)
    table = Dict{String,Any}("v" => w)
    total = 0.0
    step = () -> (total += sum(held.it))
    step()
    total + sum(sum, list) + sum(table["v"])
end
function later(v)
    held = Holder(nothing)
    held.it = hidden(v)
    push!(all, held)
    1.0
end
function made(v)
    held = Holder(hidden(v))
    push!(all, held)
    1.0
end
result(v) = Holder(hidden(v))
itself(v) = hidden(v)
pair(v) = (1.0, hidden(v))
copied(v) = (1.0, copy(hidden(v)))
many(v) = (w = hidden(v); sum(length(Any[w]) for i in 1:1000))
)",
           "later.slope")
      .value();
  const std::vector<double> v = {1, 2, 3};
  auto temporary = engine.function<double(Span)>("temporary", Dispatch::allowed).value();
  for (int i = 0; i < 3; ++i) {
    CHECK(temporary(v).value() == 30.0);
    engine.collect_garbage();
  }
  std::vector<double> g(3);
  CHECK(temporary.value_and_gradient(v, g).value() == 30.0);
  CHECK(g == std::vector<double>{5, 5, 5});
  CHECK(engine.function<double(Span)>("many", Dispatch::allowed).value()(v).value() == 1000.0);

  // Machine code knows its own line where it stores, and not whose call it is in.
  const bool knows_line = tier == Tier::interpret;
  auto later = engine.function<double(Span)>("later", Dispatch::allowed).value();
  refused_at(later, v, knows_line ? 20 : 18, "`later` keeps an array that is lent for the call alone");
  auto made = engine.function<double(Span)>("made", Dispatch::allowed).value();
  refused_at(made, v, knows_line ? 25 : 24, "`made` keeps an array that is lent for the call alone");
  auto result = engine.function<slope::Value(Span)>("result", Dispatch::allowed).value();
  refused_at(result, v, 29, "`result` keeps an array");
  auto itself = engine.function<slope::Value(Span)>("itself", Dispatch::allowed).value();
  refused_at(itself, v, 30, "`itself` returns an array");
  using Pair = std::tuple<double, std::vector<double>>;
  auto pair = engine.function<Pair(Span)>("pair", Dispatch::allowed).value();
  CHECK(pair(v).value() == Pair(1.0, v));  // copied: a C++ value
  auto copied = engine.function<Pair(Span)>("copied", Dispatch::allowed).value();
  CHECK(copied(v).value() == Pair(1.0, v));
  auto vector = engine.function<std::vector<double>(Span)>("itself", Dispatch::allowed).value();
  CHECK(vector(v).value() == v);
}

TEST_CASE("Results that become C++ values may consist of lent arrays") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile);
  Engine engine(in_tier(tier));
  engine
      .run(
          "f(v) = (a = (v, 2v), b = (1.5, view(v, 2:3)), c = \"text\")\n"
          "g(v) = [v, v]\n"
          "h(v) = length(v) > 2 ? v : nothing")
      .value();
  const std::vector<double> v = {1, 2, 3};
  using Vector = std::vector<double>;
  using Parts = std::tuple<std::tuple<Vector, Vector>, std::tuple<double, Vector>, std::string>;
  auto f = engine.function<Parts(Span)>("f", Dispatch::allowed).value();
  for (int i = 0; i < 3; ++i) {
    CHECK(f(v).value() == Parts({v, {2, 4, 6}}, {1.5, {2, 3}}, "text"));
    engine.collect_garbage();
  }
  auto h = engine.function<std::optional<Vector>(Span)>("h", Dispatch::allowed).value();
  CHECK(h(v).value() == v);
  CHECK_FALSE(h(Vector{1}).value().has_value());
  // What can be changed is not copied behind the script's back.
  auto g = engine.function<std::vector<Vector>(Span)>("g", Dispatch::allowed).value();
  CHECK(g(v).error().message.find("= help: ") != std::string::npos);
}

TEST_CASE("Derivatives refuse to keep lent arrays too") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile);
  Engine engine(in_tier(tier));
  engine
      .run("kept = Any[nothing]\nhidden = identity\nfunction f(v)\n    kept[1] = hidden(v)\n    sum(v .^ 2)\nend",
           "g.slope")
      .value();
  auto f = engine.function<double(Span)>("f", Dispatch::allowed).value();
  const std::vector<double> v = {1, 2, 3}, direction = {1, 0, 0};
  std::vector<double> g(3);
  for (int i = 0; i < 2; ++i) {
    CHECK_FALSE(f.value_and_gradient(v, g).ok());
    CHECK_FALSE(f.jvp(v, direction).ok());
    CHECK_FALSE(f.hvp(v, direction, g).ok());
  }
  CHECK(engine.eval<bool>("kept[1] === nothing").value());
}

TEST_CASE("A host function that keeps a value over a lent array is found out") {
  Engine engine;
  slope::Value kept;
  bool keeps = false;
  engine
      .define("look",
              [&](slope::Value v) {
                if (keeps) kept = v;
                return 1.0;
              })
      .value();
  engine.run("f(v) = look(v) + sum(v)").value();
  auto f = engine.function<double(Span)>("f", Dispatch::allowed).value();
  const std::vector<double> v = {1, 2, 3};
  CHECK(f(v).value() == 7.0);
  keeps = true;
  auto refused = f(v);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("`f` keeps an array that is lent for the call alone") == 0);
}
