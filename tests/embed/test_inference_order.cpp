// What inference answers depends on the program alone: two engines are asked the same questions, one of them in the
// opposite order. Names of anonymous functions tell when they were made, and are left out.
#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>
#include <string>
#include <thread>

#include "slope/engine.hpp"

namespace {

std::string answers(const std::string& order) {
  std::string out;
  slope::Options options;
  options.tier = slope::Tier::interpret;
  options.output = [&](std::string_view text) { out += text; };
  options.error_output = options.output;
  slope::Engine engine(options);
  const auto ran = engine.run(R"(
c(x) = (x > 0 || error("neg"); false)
k(x) = c(x) ? 1 : "a"
h(x) = c(x) ? 1 : "a"
even(n) = n == 0 ? true : odd(n - 1)
odd(n) = n == 0 ? nothing : even(n - 1)
struct Level{T}
    inner::T
end
down(x::Level) = (down(x.inner), 1)
down(x) = x
deep(n) = n == 0 ? 1.0 : Level(deep(n - 1))
levels = [typeof(deep(n)) for n in (1, 40, 70, 100)]
asked = Any[(:k, k, (Int,)), (:h, h, (Int,)), (:even, even, (Int,)), (:odd, odd, (Int,))]
append!(asked, [(:down, down, (T,)) for T in levels])
append!(asked, [(:fmap, fmap, (typeof(sin), T)) for T in (levels[1], levels[2], typeof((Ref(1.0), (a=Ref([1.0]),))))])
types = Any[Int, Float64, String, Vector{Float64}, Vector{Any}, Dict{String,Float64}, Tuple{Int,Float64}, Any, Symbol,
    Matrix{Float64}, Char, Bool, Set{Int}, UnitRange{Int}, typeof(sin), Type{Int}, Union{Nothing,Int}, Complex{Float64}]
functions = [n for n in sort!(names(Base; all=true)) if isdefined(Base, n) && getfield(Base, n) isa Function]
for (i, name) in enumerate(functions)   # of all the library
    T = types[7i % length(types) + 1]
    S = types[(5i + div(i, 18)) % length(types) + 1]
    push!(asked, (name, getfield(Base, name), isodd(i) ? (T,) : (T, S)))
end
)" + std::string(order == "forwards" ? "" : "reverse!(asked)\n") +
                              R"(
answered = [string(q[1], " ", q[3], " ", return_type(q[2], q[3]), "\n") for q in asked]
)" + std::string(order == "forwards" ? "" : "reverse!(answered)\n") +
                              "foreach(print, answered)\n");
  if (!ran) return "not run: " + out;  // checked by who asks: on threads Catch2 must not be
  return std::regex_replace(out, std::regex("#[0-9]+"), "#");
}

}  // namespace

TEST_CASE("inference answers the same in whatever order it is asked") {
  std::string backwards;
  std::thread other([&] { backwards = answers("backwards"); });
  const std::string forwards = answers("forwards");
  other.join();
  CHECK(forwards.find("k (Int64,) String") != std::string::npos);
  CHECK(forwards.find("h (Int64,) String") != std::string::npos);
  CHECK(std::count(forwards.begin(), forwards.end(), '\n') > 3000);
  CHECK(forwards == backwards);
}
