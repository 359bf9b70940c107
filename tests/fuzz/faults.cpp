// Small programs while the n-th allocation of C++ code fails, for many n, in every tier: the process lives, the program
// ends with its value or with an error, and the engine runs another program afterwards.
//
// What the program's data were before is still there: `check` says so, or finds all of what the program does to them.
//
// This executable's own operator new counts down, and its own malloc, which the C libraries and the heap's arrays call;
// malloc not where LLVM compiles, which ends the process when that fails. Memory of the heap's blocks, of stacks and of
// machine code comes from mmap; that these fail is tried by limiting the address space.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include "slope/engine.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/isolated.hpp"

namespace {

// Allocations until one fails; negative: none does.
std::atomic<std::int64_t> countdown{-1};
std::atomic<std::uint64_t> allocations{0};

bool malloc_fails = false;  // as well
bool all_fail = false;      // from then on: no memory is left, not for the text of an error either

bool fails() {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (countdown.load(std::memory_order_relaxed) < 0) return false;
  if (all_fail && countdown.load(std::memory_order_relaxed) == 0) return true;
  return countdown.fetch_sub(1, std::memory_order_relaxed) == 0;
}

void* allocate(std::size_t bytes, std::size_t alignment = 0) {
  if (fails()) throw std::bad_alloc();
  void* memory = alignment == 0 ? std::malloc(bytes ? bytes : 1)
                                : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) { return malloc_fails && fails() ? nullptr : __libc_malloc(bytes); }
void* calloc(std::size_t count, std::size_t bytes) {
  return malloc_fails && fails() ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  return malloc_fails && fails() ? nullptr : __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return malloc_fails && fails() ? nullptr : __libc_memalign(alignment, bytes);
}
}
#endif

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void* operator new(std::size_t bytes, std::align_val_t to) { return allocate(bytes, static_cast<std::size_t>(to)); }
void* operator new[](std::size_t bytes, std::align_val_t to) { return allocate(bytes, static_cast<std::size_t>(to)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return fails() ? nullptr : std::malloc(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return fails() ? nullptr : std::malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace slope::test {

namespace {

struct Program {
  const char* text;
  const char* begin = "";      // data of the user, made before
  const char* check = "true";  // afterwards: as before, or with all of what the text does
};

const Program programs[] = {
    {"x = [1.0, 2.0]; push!(x, 3.0); sum(x)"},
    {"f(a) = a < 2 ? a : f(a - 1) + f(a - 2); f(12)"},
    {"struct P; a::Int; b::Vector{Int}; end; P(1, [2]).b[1]"},
    {"d = Dict(\"a\" => 1); d[\"b\"] = 2; sort(collect(keys(d)))"},
    {"string([1, 2.5, \"x\", :y, (1, 2)])"},
    {"try; error(\"a\"); catch e; sprint(showerror, e); end"},
    {"gradient(x -> sum(sin.(x) .* x), [1.0, 2.0, 3.0])"},
    {"hvp(x -> sum(x .^ 3), [1.0, 2.0], [1.0, 0.0])"},
    {"macro m(x); :($x + 1); end; @m 3"},
    {"eval(Meta.parse(\"g(x) = x^2 + 1; g(4)\"))"},
    {"@generated h(x) = :(x * 2); h(3) + h(2.5)"},
    {"c = Channel{Int}(2); @async (put!(c, 1); put!(c, 2)); take!(c) + take!(c)"},
    {"t = [@async(i^2) for i in 1:20]; sum(fetch.(t))"},
    {"match(r\"(a|b)+c\", \"xxababc\").match"},
    {"replace(\"hello world\", \"o\" => \"0\"); split(\"a,b,c\", \",\")"},
    {"A = [1.0 2.0; 3.0 4.0]; A \\ [1.0, 2.0]"},
    {"big(2)^200 % 1000007"},
    {"map(x -> x + 1, filter(isodd, collect(1:100)))"},
    {"module M; export z; z = 5; end; using .M; z"},
    {"s = Set{Any}(); for i in 1:200; push!(s, (i, string(i))); end; length(s)"},
    {"w = Any[]; for i in 1:300; push!(w, [i]); end; GC.gc(); length(w)"},
    {"k(; a=1, b...) = a + length(b); k(a=2, c=3, d=4)"},
    {"foo(x...) = length(x); foo((1:50)...)"},
    {"q = x -> y -> x + y; q(1)(2)"},
    {"Val(3) isa Val{3} ? Tuple{Int,Vector{Float64}} : Union{Int,String}"},
    {"for i in 1:5; eval(:($(Symbol(:v, i))(x) = x + $i)); end; v3(1)"},
    {"sprint(io -> show(io, MIME(\"text/plain\"), rand(3, 3) .> 2))"},
    {"sum(x^2 for x in 1:1000 if iseven(x))"},
    {"using Printf; @sprintf(\"%5.2f|%d|%s\", 1.5, 3, \"a\")"},
    {"r = Ref(0); foreach(x -> r[] += x, 1:100); r[]"},
    {"include_string(Main, \"function long(x)\\n  y = x\\n  for i in 1:3\\n    y += i\\n  end\\n  "
     "y\\nend\\nlong(2)\")"},
    {"unknown_name + 1"},
    {"f(1"},
    {"push!(v, 1001)", "v = collect(1:1000)", "length(v) in (1000, 1001) && v == 1:length(v)"},
    {"append!(v, 1001:5000)", "v = collect(1:1000)", "length(v) in 1000:5000 && v[1:1000] == 1:1000"},
    {"pushfirst!(v, 0)", "v = collect(1:1000)", "v == 1:1000 || v == 0:1000"},
    {"try; error(\"a\" ^ 1000, sum(v)); catch e; println(e); rethrow(); end", "v = [1, 2]", "v == [1, 2]"},
    {"v[3]", "v = [1, 2]", "v == [1, 2]"},
    {"sqrt(-1.0)"},
    {"struct E <: Exception; s; end; Base.showerror(io::IO, e::E) = print(io, e.s, [e.s]); throw(E(\"x\"))"},
    {"f(x) = x == 0 ? error(string(x)) : f(x - 1) + 1; f(50)"},
    {"g(x::Int, y::String) = 1; g(\"a\", 2.5, [1, 2])"},
    {"insert!(v, 500, 0)", "v = collect(1:1000)", "issubset(1:1000, v)"},
    {"resize!(v, 40000); v[1001:end] .= 0", "v = collect(1:1000)", "v[1:1000] == 1:1000"},
    {"splice!(v, 2:3, 1:500)", "v = collect(1:4000)", "issubset([1; 4:4000], v)"},
    {"sort!(v)", "v = [i * 7919 % 10007 for i in 1:2000]", "sum(v) == sum(i * 7919 % 10007 for i in 1:2000)"},
    {"sort!(w, by=string)", "w = collect(300:-1:1)", "sum(w) == 45150 && allunique(w)"},
    {"d[\"new\"] = 0", "d = Dict(string(i) => i for i in 1:500)",
     "length(d) in (500, 501) && all(d[string(i)] == i for i in 1:500)"},
    {"for i in 501:3000; d[i] = i; end", "d = Dict(i => i for i in 1:500)",
     "length(d) == count(p -> p[1] == p[2], d) >= 500 && all(i -> d[i] == i, 1:length(d))"},
    {"merge!(d, Dict(i => -i for i in 1:900))", "d = Dict(i => i for i in 1:500)",
     "length(d) in 500:900 && all(abs(d[i]) == i for i in keys(d)) && issubset(1:500, keys(d))"},
    {"delete!(d, 3); d[1000] = 1000", "d = Dict(i => i for i in 1:500)",
     "length(d) in (499, 500) && all(p -> p[1] == p[2], d)"},
    {"union!(s, Set(1:2000))", "s = Set(1:300)",
     "issubset(1:300, s) && issubset(s, 1:2000) && length(collect(s)) == length(s)"},
    {"d[Ref(2)] = 2", "k = [Ref(i) for i in 1:200]; d = IdDict{Any,Int}(x => x[] for x in k)",
     "all(d[x] == x[] for x in k)"},
    {"write(io, \"b\"^5000); print(io, 1.5, [1, 2])", "io = IOBuffer(); write(io, \"a\"^1000)",
     "x = String(take!(io)); startswith(x, \"a\"^1000) && all(c -> c in \"ab1.5[2, ]\", x)"},
    {"gradient(w -> (w[1] = w[2] * 3; sum(abs2, w)), v)", "v = [1.0, 2.0, 3.0]", "v == [1.0, 2.0, 3.0]"},
    {"gradient(w -> (push!(w, w[1]); sort!(w); prod(w)), v)", "v = [3.0, 2.0, 1.0]", "v == [3.0, 2.0, 1.0]"},
    {"hvp((w -> (z = u[1]; u[1] = w[1]^2; r = u[1] * w[2] + z; u[1] = z; r)), v, v)", "u = [5.0]; v = [1.0, 2.0]",
     "v == [1.0, 2.0] && u == [5.0]"},
    {"y, back = pullback(w -> sum(w .^ 2 .* sin.(w)), v); back(1.0)", "v = collect(1.0:50.0)", "v == 1.0:50.0"},
    {"f(x) = x + 2; f(1)", "f(x) = x + 1; f(1)", "f(1) in (2, 3)"},
    {"f(x::Int) = string(x); f(1)", "f(x) = x + 1; f(1)", "f(1) in (2, \"1\") && f(1.0) == 2.0"},
    {"module M; a = 2; g() = a; end; M.g()", "module M; a = 1; g() = a; end", "M isa Module"},
    {"struct Q2; a::Int; b::Vector{Float64}; end; Q2(1, [2.0])", "struct Q; a::Int; end; q = Q(4)",
     "q.a == 4 && Q(5).a == 5"},
    {"x = x * big(3)^2000 + 1", "x = big(7)^100", "x == big(7)^100 || x == big(7)^100 * big(3)^2000 + 1"},
    {"mul!(C, A, A); A .= C", "A = ones(40, 40); C = zeros(40, 40)",
     "(all(==(1.0), A) || all(in((1.0, 40.0)), A)) && all(in((0.0, 40.0)), C)"},
    {"B = lu(A) \\ b; inv(A); svd(A)", "using LinearAlgebra; A = [4.0 1.0; 2.0 3.0]; b = [1.0, 2.0]",
     "A == [4.0 1.0; 2.0 3.0] && b == [1.0, 2.0]"},
    {"put!(c, 3); take!(c); @sync for i in 1:5; @async push!(done, i); end",
     "c = Channel{Int}(8); put!(c, 1); put!(c, 2); done = Int[]",
     "issubset(done, 1:5) && allunique(done) && take!(c) in (1, 2)"},
    {"t.l = Node(t.l, nothing, 3); t.n += 1", "mutable struct Node; l; r; n; end; t = Node(nothing, nothing, 1)",
     "t.n in (1, 2) && (t.l === nothing || t.l.n == 3)"},
    {"s = replace(s, r\"a+\" => x -> uppercase(x)); s = join(split(s, 'b'), '-')", "s = \"aab\"^200",
     "s in (\"aab\"^200, \"AAb\"^200, \"AA-\"^200)"},
    {"m[3, :] .= 7; m = vcat(m, m); m = permutedims(m)", "m = reshape(collect(1:400), 20, 20)",
     "m[1] == 1 && m[end] == 400 && length(m) in (400, 800)"},
    {"b = x.f(3); x = (f = y -> y + b, v = [x.v; 4])", "x = (f = y -> y + 1, v = [1, 2, 3])",
     "x.v in ([1, 2, 3], [1, 2, 3, 4]) && x.f(1) in (2, 5)"},
    {"e = deepcopy(e); push!(e.args, :(g(3))); eval(:(quote $e end))", "e = :(f(1) + 2)",
     "e.args[1] == :+ && length(e.args) in (3, 4)"},
    {"filter!(iseven, v); unique!(v); map!(x -> x + 1, v, v)", "v = collect(1:600)",
     "issubset(v, 1:601) && length(v) in 300:600"},
    {"A .= A .* 2.0 .+ sum(A, dims=1)", "A = ones(30, 30)", "all(in((1.0, 32.0)), A)"},
    {"global n = 0; for i in 1:50; push!(q, string(i)); global n += 1; end", "q = String[]; n = 0",
     "n in (length(q), length(q) - 1) && q == string.(1:length(q))"},
};

const std::pair<const char*, Tier> tiers[] = {
    {"interpret", Tier::interpret}, {"auto", Tier::automatic}, {"compile", Tier::compile}};

Options options_of(Tier tier) {
  Options options;
  options.tier = tier;
  options.compile_threads = 0;
  options.output = [](std::string_view) {};
  options.error_output = [](std::string_view) {};
  return options;
}

// The host's own part may throw: what counts is that the engine stays whole.
bool run_program(Engine& engine, const char* text) {
  try {
    return engine.run(text).ok();
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void begin(Engine& engine, const Program& program) {
  (void)engine.run("1 + 1");
  if (!*program.begin) return;
  if (const auto begun = engine.run(program.begin); !begun.ok()) {
    std::fprintf(stderr, "%s\n", begun.error().message.c_str());
    std::_Exit(5);
  }
}

// Exit status 0: it went well.
void run_one(const Program& program, Tier tier, std::int64_t fails_at, bool and_all_after) {
  Engine engine(options_of(tier));
  begin(engine, program);
  malloc_fails = tier == Tier::interpret;
  all_fail = and_all_after;
  countdown = fails_at;
  (void)run_program(engine, program.text);
  countdown = -1;
  malloc_fails = false;
  const auto after = engine.eval<int>("sum([1, 2, 3])");
  if (!after.ok() || after.value() != 6) {
    std::fprintf(stderr, "%s\n", after.ok() ? "wrong value" : after.error().message.c_str());
    std::_Exit(3);
  }
  const auto kept = engine.eval<bool>(program.check);
  if (!kept.ok() || !kept.value()) {
    std::fprintf(stderr, "data of %s: %s\n", program.begin, kept.ok() ? "changed" : kept.error().message.c_str());
    std::_Exit(4);
  }
}

std::uint64_t count_allocations(const Program& program, Tier tier) {
  Engine engine(options_of(tier));
  begin(engine, program);
  malloc_fails = tier == Tier::interpret;
  const std::uint64_t before = allocations;
  (void)engine.run(program.text);
  const std::uint64_t counted = allocations - before;
  malloc_fails = false;
  return counted;
}

}  // namespace

// --count: how many places in each program are tried: one allocation fails, or all do from there on. With --here: which
// one fails; --seconds 1 for all.
FuzzReport fuzz_faults(const FuzzOptions& options) {
  FuzzReport found;
  const std::uint64_t points = options.count != 0 ? options.count : 12;
  std::uint64_t number = 0;
  for (const Program& program : programs) {
    ++number;
    if (!options.only.empty() && options.only != std::to_string(number)) continue;
    for (const auto& [title, tier] : tiers) {
      if (options.tier != "all" && options.tier != title) continue;
      if (options.here) {  // for a debugger
        run_one(program, tier, static_cast<std::int64_t>(options.count), options.seconds > 0);
        continue;
      }
      Page& page = shared_page();
      const auto& [name, mode] = std::pair(title, tier);
      isolated({.seconds = 120},
               [&, mode = mode](Page& shared) { shared.attempts = count_allocations(program, mode); });
      const std::uint64_t made = std::max<std::uint64_t>(page.attempts, 1);
      std::uint64_t state = options.seed * 0x9e3779b97f4a7c15 + number;
      for (std::uint64_t k = 0; k < points; ++k) {
        // Everywhere, and at other places with each seed.
        state = state * 6364136223846793005 + 1442695040888963407;
        const std::uint64_t at =
            std::min(made - 1, made * k / points + (state >> 33) % std::max<std::uint64_t>(made / points, 1));
        const bool all = k % 2 == 1;
        const Ending ending = isolated(
            {.seconds = 60}, [&, mode = mode](Page&) { run_one(program, mode, static_cast<std::int64_t>(at), all); });
        ++found.attempts;
        if (ending.well()) continue;
        found.findings.push_back(program.text);
        std::printf("FOUND program %llu, tier %s, allocation %llu%s of %llu: %s\n  %s\n",
                    static_cast<unsigned long long>(number), name, static_cast<unsigned long long>(at),
                    all ? " and all after" : "", static_cast<unsigned long long>(made), ending.text().c_str(),
                    program.text);
        std::fflush(stdout);
      }
    }
  }
  return found;
}

}  // namespace slope::test
