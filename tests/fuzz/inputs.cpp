// Data of strangers: JSON, CSV, regular expressions, numbers, serialized values, texts, messages to the language server.
// What is well formed is changed at random: bytes flipped, parts cut, doubled and exchanged, pieces of the format put in.
//
// A find is a process that a signal ends, an attempt that is late, an error that is no exception of a script, or an
// answer that says so itself ("bad …"): what was read and is written again must be read as the same.
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "slope/containers.hpp"
#include "slope/engine.hpp"
#include "slope/tools.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/isolated.hpp"

namespace slope::test {

namespace {

using Random = std::mt19937_64;

struct Format {
  const char* name;
  const char* program;  // defines `attempt(input)`, which gives "bad …" where something is wrong; null: tried in C++
  std::vector<std::string> seeds;
  std::vector<std::string> pieces;
};

const Format formats[] = {
    {"json",
     "attempt(s) = (x = JSON.parse(s); t = JSON.json(x); isequal(JSON.parse(t), x) || occursin(\"e\", s) || "
     "occursin(\".\", s) ? \"\" : \"bad: $t\")",
     {R"({"a": [1, -2.5e3, true, null], "b": {"c": "\u00e9\n\ud83d\ude00"}})", R"([[[[]]], {}, "x", 0, -0, 1e-7])",
      R"("only \\ \" \/ text")", "[1, 2, 3]"},
     {"\\u", "\\ud800", "1e999", "-", "\"", "[", "]", "{", "}", ":", ",", "null", "9223372036854775808", "\xff", "\\"}},
    {"csv",
     "using CSV, DataFrames; attempt(s) = (t = CSV.read(IOBuffer(s), DataFrame); size(t); io = IOBuffer(); "
     "CSV.write(io, t); seekstart(io); "
     "CSV.read(io, DataFrame); \"\")",
     {"a,b,c\n1,2.5,x\n3,,\"y, \"\"z\"\"\"\n", "x;y\r\n1;2\r\n\r\n3;4", "t\tu\n2020-01-01\ttrue\n",
      "\xef\xbb\xbf"
      "a\n1\n"},
     {"\"", "\"\"", ",", "\n", "\r", ";", "\t", "NA", "1e400", "\xff", "9999999999999999999", "#"}},
    {"regex",
     "attempt(s) = (r = Regex(s); for t in (\"\", \"aab\", \"foo123 bar\\n\", \"é😀x\"); m = match(r, t); m === nothing "
     "|| "
     "(m.match == SubString(t, m.offset, m.offset + ncodeunits(m.match) - (isempty(m.match) ? 0 : "
     "ncodeunits(m.match[end])))) || isempty(m.match) || return \"bad match\"; replace(t, r => \"y\"); split(t, r); "
     "collect(eachmatch(r, t)); end; \"\")",
     {"(a+)(b|c)*?$", "^\\d{2,3}[^a-f\\]\\n]\\b.", "(?<n>x)(?i:y)\\k<n>\\1", "(?=a)(?!b)(?<=c)\\p{L}\\x{1F600}\\Q.\\E",
      "[[:alpha:]_-]++a{0}|"},
     {"(",  ")",   "[",  "]", "{1,", "}",       "*",    "+", "?",   "|",
      "\\", "\\1", "(?", "^", "$",   "{65536}", "\xff", "é", "(?#", "-"}},
    {"numbers",
     "using Dates; attempt(s) = (for T in (Int, UInt8, Float64, Float32, BigInt, BigFloat, Bool, Rational{Int}, "
     "Complex{Float64}); "
     "try; x = parse(T, s); isequal(parse(T, string(x)), x) || T <: Complex || return \"bad $T $x\"; catch e; e isa "
     "Exception || rethrow(); end; end; for f in (Dates.Date, Dates.DateTime, Dates.Time); try; f(s); catch; end; end; "
     "\"\")",
     {"123", "-1.5e-300", "0x1fp-3", "0b1011", "1//3", "1.5 + 2im", "NaN", "2020-02-30T12:60:61.999", "+Inf", "1_000"},
     {"e", "E", ".", "-", "+", "0x", "//", "im", "_", " ", "inf", "9999999999999999999999", "\xff", ":", "T"}},
    {"serialized",
     "using Serialization; struct P; x::Float64; y::Vector{Int}; end; mutable struct N; v::Any; n::Any; end\n"
     "seeds = map((1, \"text\", [1.0 2.0], Any[1, \"b\", [2]], Dict(\"a\" => [1]), P(1.5, [1, 2]), Set([:x]), "
     "(a=1, b=(2, \"c\")), big(2)^70, 1:3, N(1, N(2, nothing)), ['a', 'é'], Vector{Union{Int,String}}([1, \"\"]))) do "
     "x\n"
     "io = IOBuffer(); serialize(io, x); String(take!(io)); end\n"
     "attempt(s) = (x = deserialize(IOBuffer(s)); string(x); hash(x); deepcopy(x); io = IOBuffer(); serialize(io, x); "
     "\"\")",
     {},
     {std::string(8, '\xff'), std::string(8, '\0'), "\x01", "\x7f", std::string("\0\0\0\0\1\0\0\0", 8)}},
    {"texts",
     "attempt(s) = (e = Meta.parse(s); t = string(e); Meta.parse(t); ex = Meta.parseall(s); dump(IOBuffer(), ex); "
     "\"\")",
     {"f(x; y=1, z...) = x > 0 ? [a for a in x if a] : let b = 2; b end", "@m a b; struct S{T} <: U; x::T; end",
      "for i = 1:3, j in x; try; a.b[i]'; catch e; finally; end; end", "\"a $(b + 1) \\n\" * r\"x\" * `c`",
      "macro m(a); quote; $a + :(b) end; end", "x -> (y = 2x; x .= y .+ 1; global z += 1)", "1:2:3 |> f ∘ g where {T}"},
     {"end", "begin", "(", ")",  "[",    "]", "\"", "$(",    "@",  ":", "...",   "->", "\n",
      "#=",  "=#",    "'", "\\", "\xff", ";", "do", "where", "::", ".", "quote", "if", "function"}},
    {"formatted",
     nullptr,
     {"f(x)=x+1 # c\nif a;b;else\nc end\n", "x=[1,2,\n3]\n\n\n\ny   =  2\n"},
     {"\n", " ", "#", "end", "("}},
    {"server",
     nullptr,
     {R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}})",
      R"({"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///a.slope","languageId":"slope","version":1,"text":"f(x) = x + 1\nf(2)\n"}}})",
      R"({"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///a.slope","version":2},"contentChanges":[{"range":{"start":{"line":0,"character":2},"end":{"line":1,"character":0}},"text":"yé"}]}})",
      R"({"jsonrpc":"2.0","id":2,"method":"textDocument/hover","params":{"textDocument":{"uri":"file:///a.slope"},"position":{"line":0,"character":1}}})",
      R"({"jsonrpc":"2.0","id":3,"method":"textDocument/completion","params":{"textDocument":{"uri":"file:///a.slope"},"position":{"line":1,"character":1}}})",
      R"({"jsonrpc":"2.0","id":4,"method":"textDocument/rename","params":{"textDocument":{"uri":"file:///a.slope"},"position":{"line":0,"character":0},"newName":"g"}})",
      R"({"jsonrpc":"2.0","id":5,"method":"textDocument/formatting","params":{"textDocument":{"uri":"file:///a.slope"},"options":{}}})",
      R"({"jsonrpc":"2.0","id":6,"method":"textDocument/documentSymbol","params":{"textDocument":{"uri":"file:///a.slope"}}})",
      R"({"jsonrpc":"2.0","id":7,"method":"textDocument/inlayHint","params":{"textDocument":{"uri":"file:///a.slope"},"range":{"start":{"line":0,"character":0},"end":{"line":9,"character":0}}}})",
      R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":3}})",
      R"({"jsonrpc":"2.0","id":8,"method":"textDocument/references","params":{"textDocument":{"uri":"file:///a.slope"},"position":{"line":0,"character":0},"context":{"includeDeclaration":true}}})"},
     {"-1", "4294967296", "1e300", "null", "{}", "[]", "\"\"", "\"line\"", "\"text\"", "\\ud800", "true", "99999",
      "\xff"}},
};

std::string changed(Random& random, const std::vector<std::string>& seeds, const std::vector<std::string>& pieces) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::string text = seeds[below(seeds.size())];
  for (std::size_t changes = 1 + below(6); changes-- > 0;) {
    const std::size_t at = below(text.size() + 1), length = std::min(below(9), text.size() - at);
    switch (below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        text.insert(at, pieces[below(pieces.size())]);
        break;
      case 2:
        text.replace(at, length, pieces[below(pieces.size())]);
        break;
      case 3:
        text.erase(at, length);
        break;
      case 4:
        text.insert(at, text.substr(at, length));
        break;
      case 5: {
        const std::string& other = seeds[below(seeds.size())];
        text = text.substr(0, at) + other.substr(below(other.size() + 1));
        break;
      }
      default:
        for (std::size_t times = below(40); times-- > 0;) text.insert(at, pieces[below(pieces.size())].substr(0, 4));
    }
    if (text.size() > 4096) text.resize(4096);
  }
  return text;
}

void note(Page& page, const std::string& input, const std::string& what) {
  ++page.findings;
  std::printf("FOUND %s\n  in %s\n", what.c_str(), input.c_str());
  std::fflush(stdout);
}

void try_program(Page& page, const Format& format, Tier tier, Random& random, std::size_t count) {
  Options options;
  options.tier = tier;
  options.heap_limit = std::size_t{64} << 20;
  options.time_limit = 1;
  options.output = options.error_output = [](std::string_view) {};
  Engine engine(options);
  if (const auto begun = engine.run(format.program); !begun.ok()) return note(page, "", begun.error().message);
  std::vector<std::string> seeds = format.seeds;
  if (seeds.empty())
    if (auto made = engine.eval<std::vector<std::string>>("collect(String, seeds)"); made.ok()) seeds = made.value();
  if (seeds.empty()) return note(page, "", "no seeds");
  const char* const answer_text = "try; attempt(input); catch e; string(\"E \", typeof(e)); end";
  for (const std::string& seed : seeds) {
    if (!engine.set("input", seed).ok()) continue;
    const auto answer = engine.eval<std::string>(answer_text);
    if (!answer.ok() || (answer.value() != "" && format.seeds.empty()) || answer.value().starts_with("E Undef"))
      note(page, seed, "the attempt itself: " + (answer.ok() ? answer.value() : answer.error().message));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::string input = changed(random, seeds, format.pieces);
    page.begin(page.step + 1, input);
    if (!engine.set("input", input).ok()) continue;
    const auto begin = std::chrono::steady_clock::now();
    const auto answer = engine.eval<std::string>(answer_text);
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (answer.ok() && answer.value().starts_with("bad")) note(page, input, answer.value());
    if (!answer.ok() && answer.error().kind != ErrorKind::limit) note(page, input, answer.error().message);
    if (spent > 3) note(page, input, "late");
  }
  const auto usable = engine.eval<std::int64_t>("1 + 1");
  if (!usable.ok() || usable.value() != 2) note(page, "", "the engine cannot be used");
}

void try_formatter(Page& page, const Format& format, Random& random, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::string input = changed(random, format.seeds, format.pieces);
    page.begin(page.step + 1, input);
    const auto once = tools::format(input);
    (void)tools::syntax_problems(input);
    (void)tools::classify(input);
    if (!once.ok()) continue;
    const auto twice = tools::format(once.value());
    if (!twice.ok() || twice.value() != once.value()) note(page, input, "formatting twice gives another text");
  }
}

void try_server(Page& page, const Format& format, Random& random, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 12) {
    tools::LanguageServer server;
    std::string all;
    for (std::size_t k = 0; k < 12 && !server.has_ended(); ++k) {
      const std::string message = k < 2 || random() % 2 ? format.seeds[k < 2 ? k : random() % format.seeds.size()]
                                                        : changed(random, format.seeds, format.pieces);
      all += message + "\n";
      page.begin(page.step + 1, all);
      server.receive(message);
      for (int steps = 0; steps < 20 && server.step(); ++steps) {
      }
      (void)server.take_output();
    }
  }
}

const std::pair<const char*, Tier> tiers[] = {
    {"interpret", Tier::interpret}, {"auto", Tier::automatic}, {"compile", Tier::compile}};

}  // namespace

// --count: attempts in each process, 400 by default; --seconds for each format and tier; --only chooses formats.
FuzzReport fuzz_inputs(const FuzzOptions& options) {
  FuzzReport found;
  const std::regex only(options.only.empty() ? "." : options.only);
  const double seconds = options.seconds != 0 ? options.seconds : 5;
  const std::size_t count = options.count != 0 ? options.count : 400;
  for (const Format& format : formats) {
    if (!std::regex_search(format.name, only)) continue;
    for (const auto& [title, tier] : tiers) {
      if (format.program ? options.tier != "all" && options.tier != title : tier != Tier::interpret) continue;
      const auto begin = std::chrono::steady_clock::now();
      std::uint64_t attempts = 0, findings = 0;
      for (std::uint64_t process = 0;
           std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds; ++process) {
        Page& page = shared_page();
        page = Page();
        const auto body = [&, tier = tier](Page& shared) {
          Random random(options.seed + process);
          if (format.program) return try_program(shared, format, tier, random, count);
          const std::string_view name = format.name;
          name == "server" ? try_server(shared, format, random, count) : try_formatter(shared, format, random, count);
        };
        ProcessLimits limits;
        limits.seconds = 120;
        Ending ending;
        if (options.here)
          body(page);
        else
          ending = isolated(limits, body);
        attempts += page.attempts;
        findings += page.findings;
        if (!ending.well()) {
          ++findings;
          std::printf("FOUND %s, tier %s, seed %llu: %s\n  in %s\n", format.name, title,
                      static_cast<unsigned long long>(options.seed + process), ending.text().c_str(), page.text);
        }
        if (options.here) break;
      }
      found.attempts += attempts;
      for (std::uint64_t i = 0; i < findings; ++i) found.findings.push_back(format.name);
      std::printf("%s %-10s %-10s %8llu attempts, %llu findings\n", findings ? "FOUND" : "     ", title, format.name,
                  static_cast<unsigned long long>(attempts), static_cast<unsigned long long>(findings));
      std::fflush(stdout);
    }
  }
  return found;
}

}  // namespace slope::test
