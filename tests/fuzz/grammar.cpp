// Random programs that are well-typed by construction, from a grammar: what they print interpreted they print compiled
// and in automatic mode. Errors of indices, divisions and conversions are part of them. A program is a function of the
// seed and its number; a find prints the program.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "slope/engine.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/isolated.hpp"

namespace slope::test {

namespace {

enum Kind { integer, floating, boolean, text, integers, floats, pair, point, kinds };
const char* const annotations[] = {
    "Int", "Float64", "Bool", "String", "Vector{Int}", "Vector{Float64}", "Tuple{Int,Float64}", "Point"};

struct Variable {
  std::string name;
  Kind kind;
  bool assignable;
};

struct Function {
  std::string name;
  std::vector<Kind> parameters;
  Kind result;
};

class Program {
 public:
  explicit Program(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 0x2545f4914f6cdd1d) {
    text_ = "mutable struct Point; x::Float64; n::Int; end\n";
    text_ += "Base.show(io::IO, p::Point) = print(io, \"<\", p.x, \" \", p.n, \">\")\n";
    const int count = 2 + below(4);
    for (int i = 0; i < count; ++i) function();
    // Often enough for the automatic mode to compile some of it.
    line("function run()");
    ++depth_;
    for (int k = 0; k < 12; ++k) print_call();
    --depth_;
    line("end");
    line("for _ in 1:3; run(); end");
  }

  const std::string& source() const { return text_; }

 private:
  int below(int n) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<int>((state_ >> 11) % static_cast<std::uint64_t>(n));
  }
  bool chance(int percent) { return below(100) < percent; }
  Kind any_kind() { return static_cast<Kind>(below(kinds)); }
  std::string pick(std::initializer_list<const char*> list) {
    return *(list.begin() + below(static_cast<int>(list.size())));
  }
  void line(const std::string& what) { text_ += std::string(static_cast<std::size_t>(2 * depth_), ' ') + what + "\n"; }
  std::string fresh() { return "v" + std::to_string(names_++); }

  void print_call() {
    const Function& f = functions_[static_cast<std::size_t>(below(static_cast<int>(functions_.size())))];
    line("println(try; " + call(f, 2) + "; catch e; typeof(e); end)");
  }

  std::string call(const Function& f, int size) {
    std::string arguments;
    for (const Kind kind : f.parameters) arguments += (arguments.empty() ? "" : ", ") + expression(kind, size - 1);
    return f.name + "(" + arguments + ")";
  }

  void function() {
    Function made{"f" + std::to_string(functions_.size()), {}, any_kind()};
    variables_.clear();
    std::string parameters;
    const int count = 1 + below(3);
    for (int i = 0; i < count; ++i) {
      const Kind kind = any_kind();
      const std::string name = fresh();
      made.parameters.push_back(kind);
      variables_.push_back({name, kind, true});
      parameters += (i == 0 ? "" : ", ") + name + (chance(60) ? std::string("::") + annotations[kind] : "");
    }
    line("function " + made.name + "(" + parameters + ")");
    ++depth_;
    statements(2 + below(4), 3);
    line("return " + expression(made.result, 3));
    --depth_;
    line("end");
    functions_.push_back(made);
  }

  void statements(int count, int size) {
    const std::size_t scope = variables_.size();
    for (int i = 0; i < count; ++i) statement(size);
    variables_.resize(scope);
  }

  std::string variable(Kind kind, bool assignable) {
    std::vector<const Variable*> found;
    for (const Variable& v : variables_)
      if (v.kind == kind && (v.assignable || !assignable)) found.push_back(&v);
    return found.empty() ? std::string() : found[static_cast<std::size_t>(below(static_cast<int>(found.size())))]->name;
  }

  void block(const std::string& head, int size) {
    line(head);
    ++depth_;
    statements(1 + below(3), size - 1);
    --depth_;
  }

  void statement(int size) {
    const Kind kind = any_kind();
    const std::string target = variable(kind, true);
    switch (size <= 0 ? below(3) : below(11)) {
      case 0:
      case 1: {
        const std::string value = expression(kind, size);
        const std::string name = fresh();
        line(name + " = " + value);
        variables_.push_back({name, kind, true});
        return;
      }
      case 2:
        if (!target.empty()) line(target + " = " + expression(kind, size));
        return;
      case 3:
        block("if " + expression(boolean, 2), size);
        if (chance(50)) block("else", size);
        return line("end");
      case 4: {
        const std::string name = fresh();
        const std::string range = pick({"1:4", "3:-1:1", "0:2:7", "2:2"});
        line("for " + name + " in " + range);
        ++depth_;
        const std::size_t scope = variables_.size();
        variables_.push_back({name, integer, false});
        statements(1 + below(3), size - 1);
        if (chance(20)) line(expression(boolean, 1) + " && " + pick({"break", "continue"}));
        variables_.resize(scope);
        --depth_;
        return line("end");
      }
      case 5: {
        const std::string counter = fresh();
        line(counter + " = 0");
        line("while " + counter + " < 5 && " + expression(boolean, 1));
        ++depth_;
        line(counter + " += 1");
        statements(1 + below(2), size - 1);
        --depth_;
        return line("end");
      }
      case 6: {
        const std::string v = variable(chance(50) ? integers : floats, false);
        if (v.empty()) return;
        return line(pick({"isempty(", "length("}) == "isempty(" ? "isempty(" + v + ") || pop!(" + v + ")"
                                                                : "length(" + v + ") < 9 && push!(" + v + ", 1)");
      }
      case 7: {
        const bool whole = chance(50);
        const std::string v = variable(whole ? integers : floats, false);
        if (v.empty()) return;
        const std::string value = expression(whole ? integer : floating, size - 1);
        return line(
            v + "[" +
            (chance(70) ? "mod1(" + expression(integer, 1) + ", max(1, length(" + v + ")))" : expression(integer, 1)) +
            "] = " + value);
      }
      case 8: {
        const std::string p = variable(point, false);
        if (!p.empty())
          line(chance(50) ? p + ".x = " + expression(floating, 2) : p + ".n += " + expression(integer, 1));
        return;
      }
      case 9:
        block("try", size);
        block("catch", size);
        if (chance(30)) block("finally", size);
        return line("end");
      default: {
        const std::string f = fresh(), x = fresh();
        const std::size_t scope = variables_.size();
        variables_.push_back({x, integer, false});
        const std::string body = expression(integer, 2);
        variables_.resize(scope);
        line(f + " = " + x + " -> " + body);
        const std::string sum = fresh();
        line(sum + " = sum(map(" + f + ", [1, 2, 3]))");
        variables_.push_back({sum, integer, true});
        return;
      }
    }
  }

  std::string expression(Kind kind, int size) {
    if (size > 0 && chance(12)) {
      for (int k = 0; k < 3 && !functions_.empty(); ++k) {
        const Function& f = functions_[static_cast<std::size_t>(below(static_cast<int>(functions_.size())))];
        if (f.result == kind) return call(f, size - 1);
      }
    }
    if (size > 0 && chance(10))
      return "(" + expression(boolean, size - 1) + " ? " + expression(kind, size - 1) + " : " +
             expression(kind, size - 1) + ")";
    if (const std::string name = variable(kind, false); !name.empty() && chance(size <= 0 ? 80 : 35)) return name;
    const auto e = [&](Kind of) { return expression(of, size - 1); };
    const bool leaf = size <= 0;
    switch (kind) {
      case integer:
        switch (leaf ? 0 : below(9)) {
          case 0:
            return pick({"0", "1", "2", "-3", "7", "100", "typemax(Int)", "typemin(Int)"});
          case 1:
          case 2:
            return "(" + e(integer) + pick({" + ", " - ", " * ", " & ", " | ", " ⊻ "}) + e(integer) + ")";
          case 3:
            return pick({"div", "rem", "mod", "min", "max", "fld", "cld"}) + "(" + e(integer) + ", " + e(integer) + ")";
          case 4:
            return "length(" + e(chance(50) ? integers : text) + ")";
          case 5:
            return "sum(" + e(integers) + ")";
          case 6:
            return e(pair) + "[1]";
          case 7:
            return e(point) + ".n";
          default:
            return "get(" + e(integers) + ", " + e(integer) + ", " + e(integer) + ")";
        }
      case floating:
        switch (leaf ? 0 : below(8)) {
          case 0:
            return pick({"0.0", "1.5", "-2.25", "1e10", "Inf", "NaN", "-0.0", "0.1"});
          case 1:
          case 2:
            return "(" + e(floating) + pick({" + ", " - ", " * ", " / "}) + e(floating) + ")";
          case 3:
            return pick({"abs", "floor", "float", "-", "sqrt ∘ abs"}) == "sqrt ∘ abs" ? "sqrt(abs(" + e(floating) + "))"
                                                                                      : "abs(" + e(floating) + ")";
          case 4:
            return pick({"min", "max", "hypot"}) + "(" + e(floating) + ", " + e(floating) + ")";
          case 5:
            return "Float64(" + e(integer) + ")";
          case 6:
            return e(pair) + "[2]";
          default:
            return e(point) + ".x";
        }
      case boolean:
        switch (leaf ? 0 : below(5)) {
          case 0:
            return pick({"true", "false"});
          case 1:
            return "(" + e(integer) + pick({" < ", " == ", " >= ", " != "}) + e(integer) + ")";
          case 2:
            return "(" + e(floating) + pick({" < ", " == ", " >= "}) + e(floating) + ")";
          case 3:
            return "(" + e(boolean) + pick({" && ", " || "}) + "!" + e(boolean) + ")";
          default:
            return pick({"isempty(", "isempty("}) + e(chance(50) ? integers : text) + ")";
        }
      case text:
        switch (leaf ? 0 : below(5)) {
          case 0:
            return pick({"\"\"", "\"a\"", "\"αβ\"", "\"x y\""});
          case 1:
            return "string(" + e(any_kind()) + ", " + e(any_kind()) + ")";
          case 2:
            return "(" + e(text) + " * " + e(text) + ")";
          case 3:
            return pick({"uppercase(", "reverse(", "strip("}) == "strip(" ? "String(strip(" + e(text) + "))"
                                                                          : "reverse(" + e(text) + ")";
          default:
            return "first(" + e(text) + ", mod(" + e(integer) + ", 4))";
        }
      case integers:
        switch (leaf ? 0 : below(6)) {
          case 0:
            return pick({"Int[]", "[1, 2, 3]", "[5]"});
          case 1:
            return "[" + e(integer) + ", " + e(integer) + "]";
          case 2:
            return "(" + e(integers) + " .+ " + e(integer) + ")";
          case 3:
            return "map(q -> q * 2 - 1, " + e(integers) + ")";
          case 4:
            return "sort(" + e(integers) + ")";
          default:
            return "[q for q in " + e(integers) + " if q > " + e(integer) + "]";
        }
      case floats:
        switch (leaf ? 0 : below(5)) {
          case 0:
            return pick({"Float64[]", "[1.0, -2.0]", "zeros(3)"});
          case 1:
            return "[" + e(floating) + ", " + e(floating) + "]";
          case 2:
            return "(" + e(floats) + " .* " + e(floating) + ")";
          case 3:
            return "cumsum(" + e(floats) + ")";
          default:
            return "Float64.(" + e(integers) + ")";
        }
      case pair:
        return "(" + e(integer) + ", " + e(floating) + ")";
      default:
        return "Point(" + e(floating) + ", " + e(integer) + ")";
    }
  }

  std::uint64_t state_;
  int names_ = 0;
  int depth_ = 0;
  std::string text_;
  std::vector<Variable> variables_;
  std::vector<Function> functions_;
};

// What it prints and how it ends, on the shared page.
void run_program(const std::string& text, Tier tier, Page& page) {
  std::string output;
  Options options;
  options.tier = tier;
  options.fuel = 20'000'000;
  options.heap_limit = std::size_t{256} << 20;
  options.output = [&](std::string_view piece) { output += piece; };
  options.error_output = [](std::string_view) {};
  Engine engine(options);
  const auto result = engine.run(text);
  const bool limited = !result.ok() && result.error().kind == ErrorKind::limit;
  if (!result.ok() && !limited) output += "ends: " + result.error().summary;
  if (limited) output = "limit";
  const std::size_t size = std::min(output.size(), sizeof(page.text) - 1);
  std::memcpy(page.text, output.data(), size);
  page.text[size] = 0;
}

}  // namespace

FuzzReport fuzz_grammar(const FuzzOptions& options) {
  FuzzReport found;
  const std::uint64_t count = options.count != 0 ? options.count : 200;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t k = 0; k < count; ++k) {
    if (options.seconds > 0 &&
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > options.seconds)
      break;
    const std::string text = Program(options.seed * 1'000'003 + k).source();
    if (options.verbose) std::printf("# %llu\n%s\n", static_cast<unsigned long long>(k), text.c_str());
    std::string first;
    for (const auto& [title, tier] : {std::pair{"interpret", Tier::interpret}, std::pair{"auto", Tier::automatic},
                                      std::pair{"compile", Tier::compile}}) {
      if (options.tier != "all" && options.tier != title && tier != Tier::interpret) continue;
      Page& page = shared_page();
      page.text[0] = 0;
      const Ending ending =
          isolated({.seconds = 120}, [&, tier = tier](Page& shared) { run_program(text, tier, shared); });
      ++found.attempts;
      const std::string output = ending.well() ? page.text : ending.text();
      if (tier == Tier::interpret) first = output;
      if (ending.well() && (output == first || output == "limit" || first == "limit")) continue;
      found.findings.push_back(std::to_string(k));
      std::printf("FOUND seed %llu, program %llu, tier %s\n%s-- interpret\n%.3000s\n-- %s\n%.3000s\n",
                  static_cast<unsigned long long>(options.seed), static_cast<unsigned long long>(k), title,
                  text.c_str(), first.c_str(), title, output.c_str());
      std::fflush(stdout);
    }
  }
  return found;
}

}  // namespace slope::test
