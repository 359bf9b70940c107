// Closures, and modules that were made again, are freed when nobody can reach them, and not before.
#include <catch2/catch.hpp>
#include <string>

#include "slope/engine.hpp"

using slope::Engine;
using slope::Options;
using slope::Tier;

namespace {

Options options_of(Tier tier) {
  Options options;
  options.tier = tier;
  return options;
}

// Far more closures and modules than wait for each other to be freed.
void leave_behind(Engine& engine) {
  for (int i = 1; i <= 150; ++i) {
    const std::string n = std::to_string(i);
    engine.run("map(x -> x + " + n + ", [1])\nmodule P; k = -1; f(x) = k; struct S; a; b; end; end; P.f(1)").value();
  }
  engine.run("gradient(x -> x^2, 1.0); GC.gc()").value();
}

struct Kept {
  const char* made;
  const char* check;
};

const Kept kept[] = {
    {"c = x -> x + 1; v = Any[x -> x - 1, y -> 2y]; d = Dict(:f => (x -> 3x))",
     "(c(1), v[2](3), d[:f](2)) == (2, 6, 6)"},
    {"struct H{F}; f::F; end; h = H(x -> x - 1); w = Val(x -> x^2); of(::Val{F}) where {F} = F",
     "h.f(3) == 2 && of(w)(3) == 9"},
    {"make(n) = x -> (y -> x + y + n); inner = make(1)(2); lazy() = map(x -> x + 7, [1])",
     "inner(3) == 6 && make(2)(3)(4) == 9 && lazy() == [8]"},
    {"eval(:(spliced(x) = $(z -> 3z)(x))); eval(:(const held = Ref{Any}($(z -> 4z))))",
     "spliced(2) == 6 && held[](2) == 8"},
    {"on(f) = 0; key = x -> 7x; on(::typeof(key)) = 1; T = typeof(y -> y); U = Vector{typeof(z -> 5z)}",
     "on(key) == 1 && on(c) == 0 && T <: Function && eltype(U) <: Function"},
    {"module P; k = 3; f(x) = x + k; struct S; a; end; g = x -> x * k; const h = x -> g(x) + 1; end\n"
     "old = P; old_f = P.f; s = P.S(4); many = [P.S(1), P.S(2)]; by_P() = old.h(5)",
     "old.f(1) == 4 && old_f(1) == 4 && s.a == 4 && old.S(5).a == 5 && old.h(2) == 7 && many[2].a == 2 && by_P() == "
     "16"},
    {"module Q; module R; f() = g(); g() = 8; end; import .R; h() = R.f(); end; import .Q.R; q = Q.h; module Q; end",
     "R.f() == 8 && q() == 8"},
    {"f() = 1; m = Module(:X)\n"
     "Core.eval(m, :(f = $f; own() = 8; (::typeof(f))(::Char) = own(); Base.length(::Symbol) = 17)); m = 0",
     "f('a') == 8 && length(:a) == 17"},
    {"t = Task(() -> (yield(); (x -> x + 1)(41))); schedule(t); yield()", "fetch(t) == 42"},
    {"ch = Channel(1); put!(ch, x -> 2x)", "take!(ch)(4) == 8"},
    {"(y, back) = pullback(x -> x^3, 2.0); g = x -> gradient(z -> z^2 * x, x)[1]; g(1.0)",
     "back(1.0)[1] == 12.0 && g(3.0) == 18.0"},
    {"k = (x; a=1, b...) -> x + a + length(b); k(1)", "k(1; a=5, z=1) == 7"},
    {"@generated gen(f, x) = :(f(x) + 1); gen(c, 1); by = x -> -x", "gen(c, 1) == 3 && sort([1, 2], by=by) == [2, 1]"},
    {"caught = try (x -> error(\"boom $x\"))(1) catch e; e end", "occursin(\"boom 1\", sprint(showerror, caught))"},
    {"redefined() = (x -> x + 1)(1); redefined(); redefined() = (x -> x + 2)(1)", "redefined() == 3"},
    {"rate(f, x) = f(x) + f(x); rate(sin, 1.0); rate(x -> x, 1.0)", "rate(x -> 2x, 2.0) == 8.0 && rate(c, 1) == 4"},
    {"counter() = (n = 0; () -> (n += 1)); tick = counter(); tick()", "tick() == 2"},
};

}  // namespace

TEST_CASE("What a program still has of closures and old modules works") {
  const Tier tier = GENERATE(Tier::interpret, Tier::automatic, Tier::compile);
  Engine engine(options_of(tier));
  for (const Kept& one : kept) engine.run(one.made).value();
  const auto closure = engine.run("x -> 9x").value();
  engine.run("cl = x -> 3.0 * x").value();
  auto handle = engine.function<double(double)>("cl").value();
  double gradient = 0;
  CHECK(handle.value_and_gradient(2.0, gradient).value() == 6);
  for (int again = 0; again < 2; ++again) {
    leave_behind(engine);
    for (const Kept& one : kept) {
      if (again != 0 && std::string(one.check).find("take!") != std::string::npos) continue;
      if (again != 0 && std::string(one.check).find("tick") != std::string::npos) continue;
      const auto result = engine.eval<bool>(one.check);
      INFO(one.made);
      if (!result.ok()) UNSCOPED_INFO(result.error().message);
      CHECK((result.ok() && result.value()));
    }
    CHECK(closure(2).value().repr() == "18");
    CHECK(handle.value_and_gradient(2.0, gradient).value() == 6);
    CHECK(gradient == 3);
  }
}

TEST_CASE("Closures and old modules count as memory only as long as somebody can reach them") {
  Options options;
  options.heap_limit = std::size_t{16} << 20;
  options.tier = GENERATE(Tier::interpret, Tier::automatic);
  Engine engine(options);
  for (int i = 0; i < 5000; ++i) {
    const auto result = engine.run("(x -> x + " + std::to_string(i) + ")(1)");
    REQUIRE(result.ok());
  }
}
