// Data of a script when its memory ends in the middle of an operation that changes them: no element is lost or made up.
//
// Each program fills a container until the heap limit stops it, with a limit that is a little larger each time, so that
// it stops at another place: in the growth of an array, in a rehash, in a copy. `n` counts what was surely done; what is
// found afterwards is that, or one step more.
#include <cstdio>
#include <regex>
#include <string>

#include "slope/engine.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace slope::test {

namespace {

struct Filled {
  const char* name;
  const char* begin;  // before the loop
  const char* step;   // of the loop, which counts `n` after it
  const char* check;  // true afterwards
};

const Filled programs[] = {
    {"push!", "v = Int[]", "push!(v, n + 1)", "length(v) in (n, n + 1) && v == 1:length(v)"},
    {"push! of strings", "v = String[]", "push!(v, string(n + 1))",
     "length(v) in (n, n + 1) && all(v[i] == string(i) for i in (1, n ÷ 2 + 1, length(v)))"},
    {"pushfirst!", "v = Int[]", "pushfirst!(v, n + 1)", "length(v) in (n, n + 1) && v == length(v):-1:1"},
    {"insert!", "v = [1, 3]", "insert!(v, 2, 2)",
     "length(v) in (n + 2, n + 3) && v[1] == 1 && v[end] == 3 && all(==(2), view(v, 2:length(v)-1))"},
    {"append!", "v = Int[]", "append!(v, n*8+1:n*8+8)", "length(v) in (8n, 8n + 8) && v == 1:length(v)"},
    {"append! of itself", "v = [1]", "append!(v, v)", "length(v) in (2^n, 2^(n + 1)) && all(==(1), v)"},
    {"resize!", "v = [7, 8]", "resize!(v, 2 * length(v))", "length(v) in (2^(n + 1), 2^(n + 2)) && v[1:2] == [7, 8]"},
    {"sizehint!", "v = [7, 8]", "sizehint!(v, 2^(n + 4))", "v == [7, 8]"},
    {"splice!", "v = [1, 2, 3]", "splice!(v, 2:1, [5, 5, 5])",
     "length(v) in (3n + 3, 3n + 6) && v[end] == 3 && sum(v) == 5 * (length(v) - 3) + 6"},
    {"a dictionary", "d = Dict{Int,Int}()", "d[n + 1] = -n - 1",
     "length(d) in (n, n + 1) && all(d[i] == -i for i in 1:n) && length(collect(d)) == length(d)"},
    {"a dictionary of strings", "d = Dict{String,Vector{Int}}()", "d[string(n + 1)] = [n + 1]",
     "length(d) in (n, n + 1) && all(d[string(i)] == [i] for i in 1:max(1, n ÷ 50):n)"},
    {"get!", "d = Dict{Int,Any}()", "get!(() -> [n], d, n + 1)",
     "length(d) in (n, n + 1) && all(haskey(d, i) for i in 1:n) && count(p -> true, d) == length(d)"},
    {"a set", "s = Set{Int}()", "push!(s, 3n)", "length(s) in (n, n + 1) && all(3i in s for i in 0:n-1)"},
    {"merge!", "d = Dict{Int,Int}()", "merge!(d, Dict(4n => 1, 4n + 1 => 1, 4n + 2 => 1, 4n + 3 => 1))",
     "4n <= length(d) <= 4n + 4 && all(haskey(d, i) for i in 0:4n-1)"},
    {"a dictionary by identity", "d = IdDict{Any,Int}(); k = Any[]", "push!(k, Ref(n)); d[k[end]] = n",
     "length(d) in (n, n + 1) && all(d[k[i]] == i - 1 for i in 1:n)"},
    {"delete! and insert", "d = Dict(i => i for i in 1:64); kept = Any[]",
     "push!(kept, zeros(16)); delete!(d, n + 1); d[n + 65] = n + 65",
     "length(d) in (63, 64) && all(p -> p[1] == p[2], d)"},
    {"a vector of vectors", "v = Vector{Vector{Int}}()", "push!(v, [n, n])",
     "length(v) in (n, n + 1) && all(v[i] == [i - 1, i - 1] for i in eachindex(v))"},
    {"a buffer", "io = IOBuffer()", "write(io, \"0123456789abcdef\")",
     "b = take!(io); 16n <= length(b) <= 16n + 16 && all(b[i] == UInt8(\"0123456789abcdef\"[(i-1)%16+1]) for i in "
     "1:16n)"},
    {"sort!", "v = [i * 7919 % 10007 for i in 1:3000]; kept = Any[]",
     "push!(kept, zeros(256)); sort!(v, by=x -> (x, n % 2))", "sort(v) == sort([i * 7919 % 10007 for i in 1:3000])"},
    {"a tree", "mutable struct T; l; r; n::Int; end; t = T(nothing, nothing, 0)", "global t = T(t, nothing, n + 1)",
     "t.n in (n, n + 1) && (function (x) k = 0; while x !== nothing; k += 1; x = x.l; end; k end)(t) == t.n + 1"},
};

// Empty: nothing was lost.
std::string fill(const Filled& program, Tier tier, std::size_t heap_limit) {
  Options options;
  options.tier = tier;
  options.heap_limit = heap_limit;
  options.time_limit = 60;
  options.output = options.error_output = [](std::string_view) {};
  Engine engine(options);
  if (const auto begun = engine.run(std::string(program.begin) + "; n = 0"); !begun.ok()) return begun.error().message;
  const std::string loop = "while true; " + std::string(program.step) + "; global n += 1; end";
  const auto filled = engine.run(loop);
  if (filled.ok()) return "it ended";
  if (filled.error().kind != ErrorKind::limit && filled.error().message.find("emory") == std::string::npos)
    return filled.error().message;
  const auto kept = engine.eval<bool>(program.check);
  if (!kept.ok()) return kept.error().kind == ErrorKind::limit ? "" : kept.error().message;  // no room to look
  return kept.value() ? "" : "something was lost";
}

// What a script does to its data when fuel ends, at every place where it can: afterwards no element is lost that the
// script does not remove itself. An element may be there twice, or a new place may hold nothing yet.
struct Stopped {
  const char* name;
  const char* begin;
  const char* work;
  const char* check;
};

const Stopped stopped_programs[] = {
    {"insert!", "v = collect(1:40)", "insert!(v, 30, 0)", "issubset(1:40, v)"},
    {"insert! near the front", "v = string.(1:40)", "insert!(v, 5, \"0\")",
     "issubset(string.(1:40), [v[i] for i in eachindex(v) if isassigned(v, i)])"},
    {"deleteat!", "v = collect(1:40)", "deleteat!(v, 25)", "issubset(setdiff(1:40, 25), v)"},
    {"deleteat! of a range", "v = Any[1:40...]", "deleteat!(v, 5:9)", "issubset(setdiff(1:40, 5:9), v)"},
    {"deleteat! of indices", "v = collect(1:40)", "deleteat!(v, [3, 5, 20])", "issubset(setdiff(1:40, [3, 5, 20]), v)"},
    {"keepat!", "v = collect(1:40)", "keepat!(v, 5:20)", "issubset(5:20, v)"},
    {"splice!", "v = collect(1:40)", "splice!(v, 3:4, [0, 0, 0, 0])", "issubset(setdiff(1:40, 3:4), v)"},
    {"append!", "v = collect(1:40)", "append!(v, 41:60)", "length(v) >= 40 && v[1:40] == 1:40"},
    {"prepend!", "v = collect(1:40)", "prepend!(v, 41:60)", "length(v) >= 40 && v[end-39:end] == 1:40"},
    {"filter!", "v = collect(1:40)", "filter!(isodd, v)", "issubset(1:2:40, v)"},
    {"unique!", "v = [1, 2, 2, 3, 1, 4, 5, 5]", "unique!(v)", "unique(v) == 1:5"},
    {"reverse!", "v = collect(1:40)", "reverse!(v)", "sort(v) == 1:40"},
    {"permute!", "v = collect(1:40)", "permute!(v, circshift(1:40, 3))", "sort(v) == 1:40"},
    {"shuffle!", "using Random; v = collect(1:40)", "shuffle!(v)", "sort(v) == 1:40"},
    {"sort!", "v = [i * 7919 % 10007 for i in 1:300]; w = sort(v)", "sort!(v)", "sort(v) == w"},
    {"sort! of few numbers", "v = [i * 79 % 107 for i in 1:100]; w = sort(v)", "sort!(v)", "sort(v) == w"},
    {"sort! of a small range", "v = [i * 79 % 107 for i in 1:500]; w = sort(v)", "sort!(v; rev=true)", "sort(v) == w"},
    {"sort! of floats", "v = [i * 7919 % 10007 / 3 for i in 1:300]; v[7] = NaN; w = sort(v)", "sort!(v)",
     "isequal(sort(v), w)"},
    {"sort! of strings", "v = [string(i * 7919 % 10007) for i in 1:250]; w = sort(v)", "sort!(v)", "sort(v) == w"},
    {"sort! of few strings", "v = [string(i * 7919 % 10007) for i in 1:60]; w = sort(v)", "sort!(v)", "sort(v) == w"},
    {"sort! of anything", "v = Any[i * 7919 % 10007 / 2 for i in 1:90]; w = sort(v)", "sort!(v)", "sort(v) == w"},
    {"sort! by", "v = [i * 79 % 107 for i in 1:90]; w = sort(v)", "sort!(v; by=x -> -x, alg=QuickSort)",
     "sort(v) == w"},
    {"sort! by a function of no type", "v = [(i * 79 % 107, i) for i in 1:60]; w = sort(v)",
     "sort!(v; by=x -> Any[x[1]][1], rev=true)", "sort(v) == w"},
    {"sort! by lt", "v = [i * 79 % 107 for i in 1:60]; w = sort(v)", "sort!(v; lt=(x, y) -> x > y)", "sort(v) == w"},
    {"sort! of a view", "a = [i * 79 % 107 for i in 1:90]; v = view(a, 2:2:80); w = sort(a)", "sort!(v)",
     "sort(a) == w"},
    {"sort! of a view by indices", "a = [i * 79 % 107 for i in 1:90]; v = view(a, [80:-1:31; 1:3]); w = sort(a)",
     "sort!(v)", "sort(a) == w"},
    {"sort! of a view's view", "a = [i * 79 % 107 for i in 1:9, k in 1:9]; v = view(view(a, [1, 5, 7], :), 2, :)",
     "sort!(v; rev=true)", "sort(vec(a)) == sort([i * 79 % 107 for i in 1:9 for k in 1:9])"},
    {"sort! along dims", "a = [string(i * k * 79 % 107) for i in 1:8, k in 1:30]; w = sort(vec(a))", "sort!(a; dims=2)",
     "sort(vec(a)) == w"},
    {"sort! of a reshaped view", "a = [i * 79 % 107 for i in 1:90]; w = sort(a)",
     "sort!(reshape(view(a, 1:2:60), 5, 6); dims=1)", "sort(a) == w"},
    {"sort! of a table", "using DataFrames; t = DataFrame(a=[3, 1, 2], b=[\"3\", \"1\", \"2\"])", "sort!(t, :a)",
     "ncol(t) == 2 && nrow(t) == 3 && all(string(t.a[i]) == t.b[i] for i in 1:3)"},
    {"rows of a table", "using DataFrames; t = DataFrame(a=[3, 1, 2], b=[\"3\", \"1\", \"2\"])",
     "append!(t, t); deleteat!(t, 2)",
     "ncol(t) == 2 && all(string(t.a[i]) == t.b[i] for i in 1:nrow(t)) && nrow(t) >= 3"},
    {"partialsort!", "v = [i * 79 % 107 for i in 1:90]; w = sort(v)", "partialsort!(v, 10:40)", "sort(v) == w"},
    {"partialsort! of a view", "a = [i * 79 % 107 for i in 1:90]; v = view(a, 90:-2:2); w = sort(a)",
     "partialsort!(v, 20; rev=true)", "sort(a) == w"},
    {"sortperm!", "v = [i * 79 % 107 for i in 1:60]; p = collect(60:-1:1)", "sortperm!(p, v)",
     "sort(p) == 1:60 && (p == 60:-1:1 || issorted(v[p]))"},
    {"sortperm! of indices that are there", "v = [i * 79 % 107 for i in 1:60]; p = collect(60:-1:1)",
     "sortperm!(p, v; initialized=true)", "sort(p) == 1:60"},
    {"partialsortperm!", "v = [i * 79 % 107 for i in 1:60]; p = collect(60:-1:1)", "partialsortperm!(p, v, 5:8)",
     "sort(p) == 1:60"},
    {"permute! of strings", "v = string.(1:40); p = circshift(1:40, 3)", "permute!(v, p)",
     "sort(v) == sort(string.(1:40))"},
    {"permute! of a view", "a = collect(1:80); v = view(a, 2:2:80)", "permute!(v, circshift(1:40, 3))",
     "sort(a) == 1:80"},
    {"invpermute!", "v = collect(1:40); p = circshift(1:40, 3)", "invpermute!(v, p)", "sort(v) == 1:40"},
    {"intersect!", "v = collect(1:40)", "intersect!(v, 20:60)", "issubset(20:40, v)"},
    {"setdiff!", "v = string.(1:40)", "setdiff!(v, string.(1:20))", "issubset(string.(21:40), v)"},
    {"symdiff!", "v = collect(1:40)", "symdiff!(v, [1:20; 41:70])", "issubset(21:40, v)"},
    {"union!", "v = collect(1:40)", "union!(v, 31:60)", "issubset(1:40, v)"},
    {"reverse! of a part", "v = string.(1:40)", "reverse!(v, 5, 37)", "sort(v) == sort(string.(1:40))"},
    {"reverse! of a view", "a = collect(1:80); v = view(a, 80:-2:2)", "reverse!(v)", "sort(a) == 1:80"},
    {"reverse! of a view by indices", "a = collect(1:80); v = view(a, [5:40; 2:3])", "reverse!(v)", "sort(a) == 1:80"},
    {"reverse! along dims", "a = reshape(collect(1:60), 3, 4, 5)", "reverse!(a; dims=2)", "sort(vec(a)) == 1:60"},
    {"reverse! of a matrix", "a = reshape(string.(1:60), 6, 10)", "reverse!(a)", "sort(vec(a)) == sort(string.(1:60))"},
    {"reverse! of a reshaped view", "a = collect(1:80); v = reshape(view(a, 2:2:80), 5, 8)", "reverse!(v; dims=1)",
     "sort(a) == 1:80"},
    {"shuffle! of a view", "using Random; a = collect(1:80); v = view(a, 2:2:80)", "shuffle!(v)", "sort(a) == 1:80"},
    {"shuffle! of a view by indices", "using Random; a = string.(1:80); v = view(a, [5:40; 2:3])", "shuffle!(v)",
     "sort(a) == sort(string.(1:80))"},
    {"shuffle! of bits", "using Random; b = BitVector(isodd.(1:90))", "shuffle!(b); reverse!(b)", "count(b) == 45"},
    {"map!", "v = collect(1:40)", "map!(x -> x + 100, v, v)",
     "k = count(>(100), v); v == [i <= k ? i + 100 : i for i in 1:40]"},
    {"replace!", "v = collect(1:40)", "replace!(x -> x + 100, v)",
     "k = count(>(100), v); v == [i <= k ? i + 100 : i for i in 1:40]"},
    {"accumulate!", "v = fill(1, 40)", "accumulate!(+, v, v)",
     "k = findlast(i -> v[i] == i, 1:40); v == [i <= k ? i : 1 for i in 1:40]"},
    {"circshift!", "a = collect(1:40); b = collect(41:80)", "circshift!(b, a, 3)", "a == 1:40 && issubset(b, 1:80)"},
    {"unique! by", "v = [1, 2, 2, 3, 1, 4, 5, 5]", "unique!(x -> x + 1, v)", "unique(v) == 1:5"},
    {"exchange", "v = collect(1:4)", "v[1], v[4] = v[4], v[1]", "true"},
    {"copyto! of itself", "v = collect(1:40)", "copyto!(v, 1, v, 5, 36)", "issubset(5:40, v)"},
    {"dict", "d = Dict(i => -i for i in 1:15)", "for i in 16:40; d[i] = -i; end",
     "all(d[i] == -i for i in 1:15) && length(collect(d)) == length(d)"},
    {"dict of strings", "d = Dict(string(i) => i for i in 1:15)", "for i in 16:40; d[string(i)] = i; end",
     "all(d[string(i)] == i for i in 1:15) && length(collect(d)) == length(d)"},
    {"dict delete!", "d = Dict(i => -i for i in 1:40)",
     "for i in 1:30; delete!(d, i); end; for i in 50:90; d[i] = -i; end",
     "all(d[i] == -i for i in 31:40) && length(collect(d)) == length(d)"},
    {"dict filter!", "d = Dict(i => -i for i in 1:40)", "filter!(p -> isodd(p[1]), d)",
     "all(d[i] == -i for i in 1:2:40) && length(collect(d)) == length(d)"},
    {"iddict", "k = [Ref(i) for i in 1:40]; d = IdDict{Any,Int}(k[i] => i for i in 1:10)",
     "for i in 11:40; d[k[i]] = i; end", "all(d[k[i]] == i for i in 1:10) && length(collect(d)) == length(d)"},
    {"set", "s = Set(1:15)", "union!(s, 16:60)", "issubset(1:15, s) && length(collect(s)) == length(s)"},
    {"set setdiff!", "s = Set(1:40)", "setdiff!(s, 1:20)", "issubset(21:40, s) && length(collect(s)) == length(s)"},
    {"bits", "b = BitVector(isodd.(1:100))", "insert!(b, 3, true); deleteat!(b, 3)", "count(b) in 50:51"},
    {"buffer", "io = IOBuffer(); print(io, \"abc\")", "print(io, \"d\"^50, 1.5)",
     "startswith(String(take!(io)), \"abc\")"},
    {"channel", "c = Channel{Int}(5); put!(c, 1); put!(c, 2)", "put!(c, 3)", "take!(c) == 1 && take!(c) == 2"},
    {"gradient", "v = [3.0, 1.0, 2.0]", "gradient(w -> (w[1] = 2w[2]; sort!(w); w[1] * w[3]), v)",
     "v == [3.0, 1.0, 2.0]"},
    {"gradient of a captured vector", "v = [3.0, 1.0, 2.0]",
     "gradient(x -> (w = copy(v); push!(w, x); w[1] = x^2; v[1] = 7; sum(w)), 2.0)", "v == [3.0, 1.0, 2.0]"},
    {"hvp", "v = [3.0, 1.0, 2.0]", "hvp(w -> (w[1] = w[2]^2; w[1] * w[3]), v, [1.0, 0.0, 0.0])",
     "v == [3.0, 1.0, 2.0]"},
    {"pullback", "v = [3.0, 1.0, 2.0]", "y, back = pullback(w -> (w[1] = w[2]^2; w[1] * w[3]), v); back(1.0)",
     "v[2:3] == [1.0, 2.0] && v[1] in (3.0, 1.0)"},
};

constexpr std::uint64_t most_fuel = 4000000;  // that a program takes
constexpr std::uint64_t last_places = 400;    // each of which is tried: there the operations store what they computed

// A program's stop by fuel, again and again in one engine.
class Stops {
 public:
  Stops(const Stopped& program, Tier tier) : program_(program), engine_(options(tier)) {}

  // With so much fuel. Empty: nothing was lost; `ended`: the fuel sufficed.
  std::string at(std::uint64_t fuel, bool& ended) {
    engine_.set_fuel(plenty);
    if (const auto begun = engine_.run(program_.begin); !begun.ok()) return begun.error().message;
    engine_.set_fuel(fuel);
    const auto done = engine_.run(program_.work);
    engine_.set_fuel(plenty);
    ended = done.ok();
    const auto kept = engine_.eval<bool>(program_.check);
    const std::string where = ", stopped by fuel " + std::to_string(fuel);
    if (!kept.ok()) return kept.error().message + where;
    if (!kept.value()) return "something was lost" + where;
    return !ended && done.error().kind != ErrorKind::limit ? done.error().message + where : "";
  }

 private:
  static constexpr std::uint64_t plenty = std::uint64_t{1} << 40;
  static Options options(Tier tier) {
    Options made;
    made.tier = tier;
    made.fuel = plenty;
    made.output = made.error_output = [](std::string_view) {};
    return made;
  }
  const Stopped& program_;
  Engine engine_;
};

// At places all over the program, then at each of the last ones, where what was computed is stored. Empty: nothing was
// lost.
std::string stop(const Stopped& program, Tier tier, std::uint64_t& attempts) {
  Stops stops(program, tier);
  std::uint64_t stopped = 0, sufficed = 0;
  const auto attempt = [&](std::uint64_t fuel) {
    bool ended = false;
    ++attempts;
    std::string why = stops.at(fuel, ended);
    (ended ? sufficed : stopped) = fuel;
    return why;
  };
  for (std::uint64_t fuel = 1; sufficed == 0; fuel += 1 + fuel / 40) {
    if (fuel > most_fuel) return "it takes more than " + std::to_string(most_fuel) + " of fuel";
    if (std::string why = attempt(fuel); !why.empty()) return why;
  }
  while (stopped + 1 < sufficed)
    if (std::string why = attempt(stopped + (sufficed - stopped) / 2); !why.empty()) return why;
  const std::uint64_t first = stopped > last_places ? stopped - last_places : 1;
  const std::uint64_t last = sufficed;
  for (std::uint64_t fuel = first; fuel < last; ++fuel)
    if (std::string why = attempt(fuel); !why.empty()) return why;
  return "";
}

const std::pair<const char*, Tier> tiers[] = {
    {"interpret", Tier::interpret}, {"auto", Tier::automatic}, {"compile", Tier::compile}};

}  // namespace

// --count: limits for each program.
FuzzReport fuzz_kept_data(const FuzzOptions& options) {
  FuzzReport found;
  const std::regex only(options.only.empty() ? "." : options.only);
  const std::uint64_t limits = options.count != 0 ? options.count : 8;
  for (const Filled& program : programs) {
    if (!std::regex_search(program.name, only)) continue;
    for (const auto& [title, tier] : tiers) {
      if (options.tier != "all" && options.tier != title) continue;
      for (std::uint64_t k = 0; k < limits; ++k) {
        const std::size_t limit = (std::size_t{1} << 19) + (k + options.seed) * 37496;
        ++found.attempts;
        const std::string why = fill(program, tier, limit);
        if (options.verbose) std::printf("%s %s %zu: %s\n", title, program.name, limit, why.c_str());
        if (why.empty()) continue;
        found.findings.push_back(program.name);
        std::printf("FOUND %s, tier %s, %zu bytes: %s\n", program.name, title, limit, why.c_str());
        std::fflush(stdout);
      }
    }
  }
  for (const Stopped& program : stopped_programs) {
    if (!std::regex_search(program.name, only)) continue;
    for (const auto& [title, tier] : tiers) {
      if (options.tier != "all" && options.tier != title) continue;
      const std::string why = stop(program, tier, found.attempts);
      if (options.verbose) std::printf("%s stopped %s: %s\n", title, program.name, why.c_str());
      if (why.empty()) continue;
      found.findings.push_back(program.name);
      std::printf("FOUND %s, tier %s: %s\n", program.name, title, why.c_str());
      std::fflush(stdout);
    }
  }
  return found;
}

}  // namespace slope::test
