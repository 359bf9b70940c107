#include "tests/derivatives/program.hpp"

#include <vector>

namespace slope::test {

std::string program_prelude() {
  return R"(struct Couple
    left::Float64
    right::Float64
end
struct Holder
    number::Float64
    items::Vector{Float64}
end
mutable struct State
    number::Float64
    items::Vector{Float64}
    anything::Any
end
factor = 0.75
weights = [0.5, -0.25, 1.5]
const sure_factor = 0.75
const sure_weights = [0.5, -0.25, 1.5]
refused_forward = 0
@noinline scaled(x, s) = x * s + 0.1 * s
@noinline function add_into!(w, x, i)
    w[i] = w[i] * 0.5 + x
    w[i] * 0.25
end
@noinline choose(w, u, c) = c > 0 ? w : u
@noinline both(x, w) = (x * 0.5, w)
@noinline function down(n, x, w)
    n == 0 && return x * w[1]
    w[1] = w[1] * 0.9
    sin(x) + 0.3 * down(n - 1, x * 0.8, w)
end
even(n, x) = n == 0 ? x : odd(n - 1, x * 0.7)
odd(n, x) = n == 0 ? x * x : even(n - 1, x + 0.2)
@noinline any_of(x, w) = Any[x, w, 2]
@noinline collected(x, n) = (r = Float64[]; for i in 1:n; push!(r, x * i * 0.2); end; r)
@noinline step!(s::State, x) = (s.number = s.number * 0.5 + x; s.items[2] = s.items[2] * x; s.number)

function difference(f, a, b, v, k, h)
    at(d) = k == 1 ? f(a + d, b, copy(v)) : k == 2 ? f(a, b + d, copy(v)) : (u = copy(v); u[k - 2] += d; f(a, b, u))
    (at(h) - at(-h)) / (2h)
end
near(x, y, tolerance) = abs(x - y) <= tolerance * (1 + abs(x) + abs(y))
function check_forward(f, name, a, b, v, gradients, twice)
    directions = (0.7, -0.4, [0.3, 0.9, -0.5])
    wanted = gradients[1] * directions[1] + gradients[2] * directions[2] + sum(gradients[3] .* directions[3])
    try
        value, tangent = jvp(f, (a, b, copy(v)), directions)
        near(tangent, wanted, 1e-9) || println(name, ": forward mode gives ", tangent, ", reverse mode ", wanted)
        twice || return nothing
        moved(h) = gradient(f, a + h * 0.7, b - h * 0.4, v .+ h .* directions[3])
        flat(g) = vcat(g[1], g[2], g[3])
        change(h) = (flat(moved(h)) .- flat(moved(-h))) ./ 2h
        second = flat(hvp(f, (a, b, copy(v)), directions))
        expected = change(1e-5)
        for k in 1:5
            near(second[k], expected[k], 1e-5) && continue
            near(expected[k], change(1e-7)[k], 1e-4) || continue   # a kink
            println(name, ": second derivative ", k, " is ", second[k], " instead of ", expected[k])
        end
    catch e
        e isa DifferentiationError || rethrow()
        global refused_forward += 1
    end
end
function check(f, name, twice)
    for (a, b, v) in ((0.3, -0.7, [0.9, -0.4, 0.6]), (-1.1, 0.45, [-0.2, 1.3, 0.8]))
        u = copy(v)
        value, gradients = value_and_gradient(f, a, b, u)
        u == v || println(name, ": the argument was not restored: ", u)
        near(value, f(a, b, copy(v)), 1e-12) || println(name, ": value ", value, " instead of ", f(a, b, copy(v)))
        _, back = pullback(f, a, b, u)
        stored = !isequal(u, v)   # then a second call is refused
        once = back(1.0)
        again = (once, stored ? once : back(1.0))
        check_forward(f, name, a, b, v, gradients, twice)
        all_of(g) = vcat(g[1], g[2], g[3])
        for (way, found) in (("gradient", all_of(gradients)), ("pullback", all_of(again[1])), ("second pullback", all_of(again[2])))
            for k in 1:5
                wanted = difference(f, a, b, v, k, 1e-5)
                near(found[k], wanted, 1e-5) && continue
                near(wanted, difference(f, a, b, v, k, 1e-7), 1e-4) || continue   # a kink
                println(name, ": ", way, " of input ", k, " is ", found[k], " instead of ", wanted)
            end
        end
    end
end
)";
}

namespace {

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : seed_(seed), state_(seed * 0x9e3779b97f4a7c15u + 12345) {
    numbers_ = {"a", "b"};
    vectors_ = {"v"};
  }

  std::string run() {
    text_ = "function model_" + std::to_string(seed_) + "(a, b, v)\n";
    for (int i = pick(3, 7); i > 0; --i) statement(1, 3);
    line(1, "result = " + expression(1));
    for (const std::string& n : numbers_) line(1, "result += 0.3 * " + n);
    for (const std::string& w : vectors_) line(1, "result += 0.2 * sum(" + w + ") + " + w + "[2]");
    for (const std::string& s : states_) line(1, "result += " + s + ".number + sum(" + s + ".items)");
    line(1, "result");
    return text_ + "end\n";
  }

 private:
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  int pick(int low, int high) { return low + static_cast<int>(next() % static_cast<std::uint64_t>(high - low + 1)); }
  const std::string& any(const std::vector<std::string>& of) {
    return of[static_cast<std::size_t>(pick(0, static_cast<int>(of.size()) - 1))];
  }
  std::string fresh(const char* prefix) { return prefix + std::to_string(count_++); }
  void line(int depth, const std::string& what) {
    text_ += std::string(static_cast<std::size_t>(depth) * 4, ' ') + what + "\n";
  }

  std::string index() { return loop_.empty() || pick(0, 2) == 0 ? std::to_string(pick(1, 3)) : loop_.back(); }
  std::string element() { return any(vectors_) + "[" + index() + "]"; }

  // Every second program knows its types (but for what it captures and assigns again): those can be differentiated
  // twice.
  bool typed() const { return seed_ % 2 == 1; }

  std::string leaf() {
    switch (pick(0, 7)) {
      case 0:
        return std::to_string(pick(1, 9)) + ".0 / 8";
      case 1:
      case 2:
        return element();
      case 3:
        if (!states_.empty()) return any(states_) + (pick(0, 1) ? ".number" : ".items[" + index() + "]");
        return any(numbers_);
      case 4:
        if (!holders_.empty()) return any(holders_) + (pick(0, 1) ? ".number" : ".items[" + index() + "]");
        return any(numbers_);
      case 5:
        if (!closures_.empty()) return any(closures_) + "(" + any(numbers_) + ")";
        return any(numbers_);
      default:
        return any(numbers_);
    }
  }

  std::string expression(int depth) {
    if (depth == 0) return leaf();
    auto e = [&] { return expression(depth - 1); };
    switch (pick(0, 17)) {
      case 0:
        return "(" + e() + " + " + e() + ")";
      case 1:
        return "(" + e() + " - 0.5 * " + e() + ")";
      case 2:
        return "sin(" + e() + " * " + e() + ")";
      case 3:
        return "tanh(" + e() + " + " + e() + ")";
      case 4:
        return "cos(" + e() + ")";
      case 5: {
        std::string x = e();
        return "(" + x + " / (1 + " + e() + "^2))";
      }
      case 6:
        return "max(" + e() + ", " + e() + " - 0.3171)";
      case 7:
        return "scaled(" + e() + ", 0.5)";
      case 8:
        return "(0.3 * sum(" + any(vectors_) + ") + " + e() + ")";
      case 9:
        return "even(" + std::to_string(pick(1, 4)) + ", tanh(" + e() + "))";
      case 10:
        return (typed() ? "(sure_factor * " : "(factor * ") + e() + ")";
      case 11:
        return (typed() ? "(sure_weights[" : "(weights[") + index() + "] * " + e() + ")";
      case 12:
        return "(" + e() + " > 0.1 ? " + e() + " : " + e() + ")";
      case 13:
        return "Couple(" + e() + ", " + e() + ").left";
      case 14:
        if (typed()) return leaf();
        return "any_of(" + e() + ", " + any(vectors_) + ")[" + (pick(0, 1) ? "1]" : "2][2]");
      case 15:
        return "sum(tanh.(" + any(vectors_) + " .* " + e() + "))";
      case 16:
        return "tanh(sum(x -> x * " + e() + ", " + any(vectors_) + "))";
      default:
        return leaf();
    }
  }
  std::string small() { return "tanh(" + expression(2) + ")"; }

  void block(int depth, int budget, int statements) {
    std::size_t n = numbers_.size(), w = vectors_.size(), s = states_.size(), h = holders_.size(), c = closures_.size();
    for (int i = 0; i < statements; ++i) statement(depth, budget);
    numbers_.resize(n);  // what was made inside is not seen outside
    vectors_.resize(w);
    states_.resize(s);
    holders_.resize(h);
    closures_.resize(c);
  }

  void statement(int depth, int budget) {
    switch (pick(0, budget > 0 ? 26 : 17)) {
      case 0:
      case 1: {
        std::string e = small();
        numbers_.push_back(fresh("t"));
        line(depth, numbers_.back() + " = " + e);
        return;
      }
      case 2:
      case 3: {
        const std::string target = any(numbers_);
        line(depth, target + " = " + small());
        return;
      }
      case 4:
      case 5:
      case 6:
        line(depth, element() + " = " + small());
        return;
      case 7: {
        static const char* const made[] = {"copy(@)",    "@ .* 0.5",     "[@[1], @[3], @[2]]",    "@",
                                           "@",          "view(@, 1:3)", "vec(reshape(@, 1, :))", "tanh.(@ .+ @)",
                                           "reverse(@)", "map(sin, @)"};
        std::string how = made[pick(0, 9)];
        const std::string from = any(vectors_);
        for (std::size_t at; (at = how.find('@')) != std::string::npos;) how.replace(at, 1, from);
        vectors_.push_back(fresh("w"));
        line(depth, vectors_.back() + " = " + how);
        return;
      }
      case 8:
        line(depth, any(numbers_) + " = add_into!(" + any(vectors_) + ", " + small() + ", " + index() + ")");
        return;
      case 9: {
        std::string from = "choose(" + any(vectors_) + ", " + any(vectors_) + ", " + leaf() + ")";
        vectors_.push_back(fresh("w"));
        line(depth, vectors_.back() + " = " + from);
        return;
      }
      case 10: {
        std::string from = "both(" + small() + ", " + any(vectors_) + ")";
        numbers_.push_back(fresh("t"));
        vectors_.push_back(fresh("w"));
        line(depth, numbers_.back() + ", " + vectors_.back() + " = " + from);
        return;
      }
      case 11: {
        std::string made = "Holder(" + small() + ", " + any(vectors_) + ")";
        holders_.push_back(fresh("h"));
        line(depth, holders_.back() + " = " + made);
        return;
      }
      case 12: {
        std::string made = "State(" + small() + ", copy(" + any(vectors_) + "), " + leaf() + ")";
        states_.push_back(fresh("s"));
        line(depth, states_.back() + " = " + made);
        return;
      }
      case 13:
        if (states_.empty()) return statement(depth, budget);
        switch (pick(0, 5)) {
          case 0:
            line(depth, any(states_) + ".number = " + small());
            return;
          case 1:
            line(depth, any(states_) + ".items[" + index() + "] = " + small());
            return;
          case 2:
            line(depth, any(states_) + ".items = " + any(vectors_) + " .* 0.5");
            return;
          case 3:
            line(depth, any(numbers_) + " = step!(" + any(states_) + ", " + small() + ")");
            return;
          case 4: {
            if (typed()) return statement(depth, budget);
            const std::string& s = any(states_);
            line(depth, s + ".anything = " + (pick(0, 1) ? small() : "[" + small() + ", " + small() + "]"));
            return;
          }
          default: {
            if (typed()) return statement(depth, budget);
            std::string s = any(states_);
            line(depth, any(numbers_) + " = tanh(sum(" + s + ".anything))");
            return;
          }
        }
      case 14: {
        std::string body = "z -> z * " + expression(1) + " + " + any(vectors_) + "[1]";
        closures_.push_back(fresh("g"));
        line(depth, closures_.back() + " = " + body);
        return;
      }
      case 15:
        line(depth, any(vectors_) + " .= tanh.(" + any(vectors_) + " .+ " + leaf() + ")");
        return;
      case 16: {
        std::string e = "down(" + std::to_string(pick(1, 3)) + ", " + small() + ", " + any(vectors_) + ")";
        line(depth, any(numbers_) + " = tanh(" + e + ")");
        return;
      }
      case 17: {
        std::string r = fresh("r");
        line(depth, r + " = collected(" + small() + ", " + std::to_string(pick(2, 4)) + ")");
        line(depth, "push!(" + r + ", " + leaf() + ")");
        if (pick(0, 1)) line(depth, any(numbers_) + " = tanh(pop!(" + r + ") * " + r + "[1])");
        line(depth, "append!(" + r + ", " + any(vectors_) + ")");
        switch (pick(0, 3)) {
          case 0:
            line(depth, "pushfirst!(" + r + ", " + leaf() + " * " + r + "[2])");
            break;
          case 1:
            line(depth, any(numbers_) + " = tanh(popfirst!(" + r + ") * " + r + "[1])");
            line(depth, "prepend!(" + r + ", " + any(vectors_) + ")");
            break;
          case 2:
            line(depth, "insert!(" + r + ", 2, " + leaf() + " * popfirst!(" + r + "))");
            break;
          default:
            break;
        }
        line(depth, "resize!(" + r + ", 3)");
        vectors_.push_back(r);
        return;
      }
      case 18:
      case 19:
      case 20:
        line(depth, "if " + leaf() + " > " + leaf());
        block(depth + 1, budget - 1, pick(1, 3));
        if (pick(0, 2)) {
          line(depth, "else");
          block(depth + 1, budget - 1, pick(1, 2));
        }
        line(depth, "end");
        return;
      case 21:
      case 22:
      case 23: {
        std::string i = fresh("i");
        line(depth, "for " + i + " in 1:" + std::to_string(pick(2, 3)));
        loop_.push_back(i);
        block(depth + 1, budget - 1, pick(1, 3));
        if (pick(0, 3) == 0) line(depth + 1, leaf() + " > 0.8 && " + (pick(0, 1) ? "break" : "continue"));
        block(depth + 1, budget - 1, pick(0, 1));
        loop_.pop_back();
        line(depth, "end");
        return;
      }
      case 24: {
        std::string k = fresh("k");
        line(depth, k + " = 0");
        line(depth, "while " + k + " < 3 && " + leaf() + " < 0.9");
        line(depth + 1, k + " += 1");
        loop_.push_back(k);
        block(depth + 1, budget - 1, pick(1, 2));
        loop_.pop_back();
        line(depth, "end");
        return;
      }
      case 25: {
        if (typed() && pick(0, 2)) return statement(depth, budget);
        // a captured variable that is assigned again
        std::string m = fresh("m"), change = fresh("change");
        line(depth, m + " = " + small());
        line(depth, change + " = d -> (" + m + " = 0.5 * " + m + " + d; nothing)");
        line(depth, change + "(" + leaf() + ")");
        line(depth, "foreach(" + change + ", " + any(vectors_) + ")");
        line(depth, any(numbers_) + " = tanh(" + m + ")");
        return;
      }
      default: {
        std::string d = fresh("d");
        line(depth, d + " = Dict(\"x\" => " + small() + ", \"y\" => " + leaf() + ")");
        line(depth, d + "[\"x\"] = " + d + "[\"x\"] * " + d + "[\"y\"]");
        line(depth, any(numbers_) + " = tanh(sum(values(" + d + ")))");
        return;
      }
    }
  }

  std::uint64_t seed_;
  std::uint64_t state_;
  std::string text_;
  int count_ = 1;
  std::vector<std::string> numbers_, vectors_, holders_, states_, closures_, loop_;
};

}  // namespace

std::string random_program(std::uint64_t seed) { return Generator(seed).run(); }

std::string program_check(std::uint64_t seed) {
  std::string name = "model_" + std::to_string(seed);
  // Second derivatives take long, above all those through values of unknown type (even seeds): in some programs only.
  const bool twice = seed % 4 == 1 || seed % 32 == 0;
  return "check(" + name + ", \"" + name + "\", " + (twice ? "true" : "false") + ")\n";
}

}  // namespace slope::test
