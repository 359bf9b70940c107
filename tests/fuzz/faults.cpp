// Small programs while the n-th allocation of C++ code fails, for many n, in every tier: the process lives, the program
// ends with its value or with an error, and the engine runs another program afterwards.
//
// This executable's own operator new counts down. Memory of the heap's blocks, of stacks and of machine code comes from
// mmap; that these fail is tried by limiting the address space.
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

bool fails() {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (countdown.load(std::memory_order_relaxed) < 0) return false;
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

const char* const programs[] = {
    "x = [1.0, 2.0]; push!(x, 3.0); sum(x)",
    "f(a) = a < 2 ? a : f(a - 1) + f(a - 2); f(12)",
    "struct P; a::Int; b::Vector{Int}; end; P(1, [2]).b[1]",
    "d = Dict(\"a\" => 1); d[\"b\"] = 2; sort(collect(keys(d)))",
    "string([1, 2.5, \"x\", :y, (1, 2)])",
    "try; error(\"a\"); catch e; sprint(showerror, e); end",
    "gradient(x -> sum(sin.(x) .* x), [1.0, 2.0, 3.0])",
    "hvp(x -> sum(x .^ 3), [1.0, 2.0], [1.0, 0.0])",
    "macro m(x); :($x + 1); end; @m 3",
    "eval(Meta.parse(\"g(x) = x^2 + 1; g(4)\"))",
    "@generated h(x) = :(x * 2); h(3) + h(2.5)",
    "c = Channel{Int}(2); @async (put!(c, 1); put!(c, 2)); take!(c) + take!(c)",
    "t = [@async(i^2) for i in 1:20]; sum(fetch.(t))",
    "match(r\"(a|b)+c\", \"xxababc\").match",
    "replace(\"hello world\", \"o\" => \"0\"); split(\"a,b,c\", \",\")",
    "A = [1.0 2.0; 3.0 4.0]; A \\ [1.0, 2.0]",
    "big(2)^200 % 1000007",
    "map(x -> x + 1, filter(isodd, collect(1:100)))",
    "module M; export z; z = 5; end; using .M; z",
    "s = Set{Any}(); for i in 1:200; push!(s, (i, string(i))); end; length(s)",
    "w = Any[]; for i in 1:300; push!(w, [i]); end; GC.gc(); length(w)",
    "k(; a=1, b...) = a + length(b); k(a=2, c=3, d=4)",
    "foo(x...) = length(x); foo((1:50)...)",
    "q = x -> y -> x + y; q(1)(2)",
    "Val(3) isa Val{3} ? Tuple{Int,Vector{Float64}} : Union{Int,String}",
    "for i in 1:5; eval(:($(Symbol(:v, i))(x) = x + $i)); end; v3(1)",
    "sprint(io -> show(io, MIME(\"text/plain\"), rand(3, 3) .> 2))",
    "sum(x^2 for x in 1:1000 if iseven(x))",
    "using Printf; @sprintf(\"%5.2f|%d|%s\", 1.5, 3, \"a\")",
    "r = Ref(0); foreach(x -> r[] += x, 1:100); r[]",
    "include_string(Main, \"function long(x)\\n  y = x\\n  for i in 1:3\\n    y += i\\n  end\\n  y\\nend\\nlong(2)\")",
    "unknown_name + 1",
    "f(1",
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

// Exit status 0: it went well.
void run_one(const char* text, Tier tier, std::int64_t fails_at) {
  Engine engine(options_of(tier));
  (void)engine.run("1 + 1");
  countdown = fails_at;
  (void)run_program(engine, text);
  countdown = -1;
  const auto after = engine.eval<int>("sum([1, 2, 3])");
  if (!after.ok() || after.value() != 6) {
    std::fprintf(stderr, "%s\n", after.ok() ? "wrong value" : after.error().message.c_str());
    std::_Exit(3);
  }
}

std::uint64_t count_allocations(const char* text, Tier tier) {
  Engine engine(options_of(tier));
  (void)engine.run("1 + 1");
  const std::uint64_t before = allocations;
  (void)engine.run(text);
  return allocations - before;
}

}  // namespace

// --count: how many of the allocations of each program fail, one at a time. With --here: which one fails.
FuzzReport fuzz_faults(const FuzzOptions& options) {
  FuzzReport found;
  const std::uint64_t points = options.count != 0 ? options.count : 12;
  std::uint64_t number = 0;
  for (const char* text : programs) {
    ++number;
    if (!options.only.empty() && options.only != std::to_string(number)) continue;
    for (const auto& [title, tier] : tiers) {
      if (options.tier != "all" && options.tier != title) continue;
      if (options.here) {  // for a debugger
        run_one(text, tier, static_cast<std::int64_t>(options.count));
        continue;
      }
      Page& page = shared_page();
      const auto& [name, mode] = std::pair(title, tier);
      isolated({.seconds = 120}, [&, mode = mode](Page& shared) { shared.attempts = count_allocations(text, mode); });
      const std::uint64_t all = std::max<std::uint64_t>(page.attempts, 1);
      std::uint64_t state = options.seed * 0x9e3779b97f4a7c15 + number;
      for (std::uint64_t k = 0; k < points; ++k) {
        // Everywhere, and at other places with each seed.
        state = state * 6364136223846793005 + 1442695040888963407;
        const std::uint64_t at =
            std::min(all - 1, all * k / points + (state >> 33) % std::max<std::uint64_t>(all / points, 1));
        const Ending ending =
            isolated({.seconds = 60}, [&, mode = mode](Page&) { run_one(text, mode, static_cast<std::int64_t>(at)); });
        ++found.attempts;
        if (ending.well()) continue;
        found.findings.push_back(text);
        std::printf("FOUND program %llu, tier %s, allocation %llu of %llu: %s\n  %s\n",
                    static_cast<unsigned long long>(number), name, static_cast<unsigned long long>(at),
                    static_cast<unsigned long long>(all), ending.text().c_str(), text);
        std::fflush(stdout);
      }
    }
  }
  return found;
}

}  // namespace slope::test
