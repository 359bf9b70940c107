// bench/programs/language.slope in C++, as one writes it with the standard library.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "bench/native/bench.h"
#include "bench/native/numbers.hpp"

namespace {

double real(std::int64_t n) { return static_cast<double>(n); }

struct Dog;
struct Cat;
struct Bird;
struct Animal {
  virtual ~Animal() = default;
  virtual double cost() const = 0;
  virtual double collide(const Animal&) const { return 0; }
  virtual double struck_by(const Dog&) const { return 0; }
  virtual double struck_by(const Cat&) const { return 0; }
  virtual double struck_by(const Bird&) const { return 0; }
};
struct Dog : Animal {
  explicit Dog(double weight) : w(weight) {}
  double cost() const override { return 2 * w + 1; }
  double collide(const Animal& b) const override { return b.struck_by(*this); }
  double struck_by(const Dog& a) const override;
  double struck_by(const Cat& a) const override;
  double struck_by(const Bird& a) const override;
  double w;
};
struct Cat : Animal {
  Cat(double weight, std::int64_t lives) : w(weight), k(lives) {}
  double cost() const override { return w * real(k); }
  double collide(const Animal& b) const override { return b.struck_by(*this); }
  double struck_by(const Dog& a) const override;
  double struck_by(const Cat& a) const override;
  double struck_by(const Bird& a) const override;
  double w;
  std::int64_t k;
};
struct Bird : Animal {
  Bird(double weight, double span) : w(weight), wing(span) {}
  double cost() const override { return w + wing * 0.5; }
  double collide(const Animal& b) const override { return b.struck_by(*this); }
  double struck_by(const Dog& a) const override;
  double struck_by(const Cat& a) const override;
  double struck_by(const Bird& a) const override;
  double w, wing;
};
double Dog::struck_by(const Dog&) const { return 1; }
double Dog::struck_by(const Cat& a) const { return a.w - w; }
double Dog::struck_by(const Bird& a) const { return a.w; }
double Cat::struck_by(const Dog& a) const { return a.w + w; }
double Cat::struck_by(const Cat& a) const { return a.w * real(k); }
double Cat::struck_by(const Bird& a) const { return a.w; }
double Bird::struck_by(const Dog&) const { return wing; }
double Bird::struck_by(const Cat&) const { return wing; }
double Bird::struck_by(const Bird& a) const { return a.w * w; }
struct Fish : Animal {
  explicit Fish(std::int64_t count) : n(count) {}
  double cost() const override { return real(n); }
  std::int64_t n;
};
struct Snake : Animal {
  Snake(double x, double y, double z) : a(x), b(y), c(z) {}
  double cost() const override { return a * b + c; }
  double a, b, c;
};
struct Ant : Animal {
  double cost() const override { return 0.001; }
};
std::unique_ptr<Animal> make(std::int64_t k, int kinds) {
  switch (k % kinds) {
    case 0:
      return std::make_unique<Dog>(real(k) * 0.01);
    case 1:
      return std::make_unique<Cat>(real(k) * 0.01, k % 7);
    case 2:
      return std::make_unique<Bird>(real(k) * 0.01, 1.0);
    case 3:
      return std::make_unique<Fish>(k % 11);
    case 4:
      return std::make_unique<Snake>(real(k) * 0.1, 1.5, 2.0);
    default:
      return std::make_unique<Ant>();
  }
}
using Animals = std::vector<std::unique_ptr<Animal>>;
double total_cost(const Animals& animals) {
  double total = 0;
  for (const auto& animal : animals) total += animal->cost();
  return total;
}
double mapped(const Animals& animals) {
  std::vector<double> costs;
  costs.reserve(animals.size());
  for (const auto& animal : animals) costs.push_back(animal->cost());
  asm volatile("" ::"g"(costs.data()) : "memory");
  return real(static_cast<std::int64_t>(costs.size()));
}

struct Body {
  explicit Body(double at) : x(at) {}
  virtual ~Body() = default;
  virtual void step(double dt) = 0;
  double x;
};
struct Ball : Body {
  Ball(double at, double speed) : Body(at), v(speed) {}
  void step(double dt) override { x += v * dt; }
  double v;
};
struct Box : Body {
  Box(double at, double speed, double slows) : Body(at), v(speed), drag(slows) {}
  void step(double dt) override {
    x += v * dt;
    v *= drag;
  }
  double v, drag;
};
struct Wall : Body {
  using Body::Body;
  void step(double) override {}
};

struct Expression {
  virtual ~Expression() = default;
  virtual double value(double x) const = 0;
};
using Tree = std::unique_ptr<Expression>;
struct Number : Expression {
  explicit Number(double number) : v(number) {}
  double value(double) const override { return v; }
  double v;
};
struct Variable : Expression {
  double value(double x) const override { return x; }
};
struct Sum : Expression {
  Sum(Tree a, Tree b) : l(std::move(a)), r(std::move(b)) {}
  double value(double x) const override { return l->value(x) + r->value(x); }
  Tree l, r;
};
struct Product : Expression {
  Product(Tree a, Tree b) : l(std::move(a)), r(std::move(b)) {}
  double value(double x) const override { return l->value(x) * r->value(x); }
  Tree l, r;
};
Tree build(int d) {
  if (d == 0) return std::make_unique<Variable>();
  if (d == 1) return std::make_unique<Number>(0.5);
  if (d % 2 == 0) return std::make_unique<Sum>(build(d - 1), build(d - 2));
  return std::make_unique<Product>(build(d - 1), build(d - 2));
}

struct Hand {
  virtual ~Hand() = default;
  virtual int play(const Hand& other) const = 0;
  virtual int against_rock() const = 0;
  virtual int against_paper() const = 0;
  virtual int against_scissors() const = 0;
};
struct Rock : Hand {
  int play(const Hand& other) const override { return other.against_rock(); }
  int against_rock() const override { return 0; }
  int against_paper() const override { return 1; }
  int against_scissors() const override { return 2; }
};
struct Paper : Hand {
  int play(const Hand& other) const override { return other.against_paper(); }
  int against_rock() const override { return 2; }
  int against_paper() const override { return 0; }
  int against_scissors() const override { return 1; }
};
struct Scissors : Hand {
  int play(const Hand& other) const override { return other.against_scissors(); }
  int against_rock() const override { return 1; }
  int against_paper() const override { return 2; }
  int against_scissors() const override { return 0; }
};

struct Node {
  Node *l, *r;
};
Node* tree(int d) { return d == 0 ? new Node{nullptr, nullptr} : new Node{tree(d - 1), tree(d - 1)}; }
std::int64_t check(const Node* t) { return t->l ? 1 + check(t->l) + check(t->r) : 1; }
void drop(Node* t) {
  if (t->l) {
    drop(t->l);
    drop(t->r);
  }
  delete t;
}
double trees(int depth) {
  Node* kept = tree(depth);
  std::int64_t n = 0;
  for (int k = 4; k <= depth; k += 4) {
    for (int i = 1; i <= 1 << (depth - k + 4); ++i) {
      Node* t = tree(k);
      n += check(t);
      drop(t);
    }
  }
  n += check(kept);
  drop(kept);
  return real(n);
}

struct SearchTree {
  std::int64_t key;
  SearchTree *left, *right;
};
SearchTree* insert(SearchTree* t, std::int64_t key) {
  if (!t) return new SearchTree{key, nullptr, nullptr};
  if (key < t->key) {
    t->left = insert(t->left, key);
  } else {
    t->right = insert(t->right, key);
  }
  return t;
}
int depth(const SearchTree* t) { return t ? 1 + std::max(depth(t->left), depth(t->right)) : 0; }
void drop(SearchTree* t) {
  if (!t) return;
  drop(t->left);
  drop(t->right);
  delete t;
}
double search_tree(int n) {
  Generator g{5};
  SearchTree* t = nullptr;
  for (int i = 0; i < n; ++i) t = insert(t, g.next() % 1000000);
  const int levels = depth(t);
  drop(t);
  return levels;
}

double size_of(const std::string& text) { return real(static_cast<std::int64_t>(text.size())); }
double string_of(int n) {
  std::size_t total = 0;
  for (int i = 1; i <= n; ++i) total += std::to_string(i).size();
  return real(static_cast<std::int64_t>(total));
}
std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += between;
    text += parts[i];
  }
  return text;
}
double string_parts(int n) {
  std::vector<std::string> parts;
  for (int i = 1; i <= n; ++i) parts.push_back("k" + std::to_string(i) + "=" + std::to_string(2 * i));
  return size_of(joined(parts, ";"));
}
double interpolated(int n) {
  std::size_t total = 0;
  for (int i = 1; i <= n; ++i) total += ("item " + std::to_string(i) + " of " + std::to_string(n)).size();
  return real(static_cast<std::int64_t>(total));
}
double buffer(int n) {
  std::string text;
  for (std::int64_t i = 1; i <= n; ++i) {
    text += "line ";
    text += std::to_string(i);
    text += ": ";
    text += std::to_string(i * i);
    text += "\n";
  }
  return size_of(text);
}
double join_texts(int n) {
  std::vector<std::string> parts;
  parts.reserve(static_cast<std::size_t>(n));
  for (int i = 1; i <= n; ++i) parts.push_back(std::to_string(i));
  return size_of(joined(parts, ", "));
}
double join_range(int n) {
  std::string text;
  for (int i = 1; i <= n; ++i) {
    if (i > 1) text += ' ';
    text += std::to_string(i);
  }
  return size_of(text);
}

double sieve(std::size_t n) {
  std::vector<char> prime(n + 1, 1);
  prime[0] = prime[1] = 0;
  for (std::size_t i = 2; i * i <= n; ++i)
    if (prime[i])
      for (std::size_t j = i * i; j <= n; j += i) prime[j] = 0;
  return real(std::count(prime.begin(), prime.end(), 1));
}
double sieve_while(std::size_t n) {
  std::vector<char> composite(n + 1, 0);
  std::int64_t count = 0;
  for (std::size_t i = 2; i <= n; ++i) {
    if (composite[i]) continue;
    ++count;
    for (std::size_t j = i * i; j <= n; j += i) composite[j] = 1;
  }
  return real(count);
}

Animals animals_3, animals_6, few_animals;
std::vector<std::unique_ptr<Body>> bodies;
Tree expression;
std::vector<std::function<double(double)>> functions;
std::vector<std::function<std::int64_t(std::int64_t, std::int64_t)>> operations;
std::vector<std::size_t> code;
std::vector<std::unique_ptr<Hand>> hands;

double simulate() {
  for (int s = 0; s < 20; ++s)
    for (const auto& body : bodies) body->step(0.01);
  double total = 0;
  for (const auto& body : bodies) total += body->x;
  return total > 0 ? 1 : 0;
}
double collisions() {
  double total = 0;
  for (std::size_t i = 0; i + 1 < few_animals.size(); ++i) total += few_animals[i]->collide(*few_animals[i + 1]);
  return total;
}
double tournament() {
  std::int64_t total = 0;
  for (std::size_t i = 1; i < hands.size(); ++i) {
    const int result = hands[i - 1]->play(*hands[i]);
    total += result == 1 ? 1 : result == 2 ? 3 : 0;
  }
  return real(total);
}
double chained() {
  double x = 1;
  for (const auto& f : functions) x = f(x);
  return x;
}
double summed() {
  double total = 0;
  for (const auto& f : functions) total += f(2.0);
  return total;
}
double machine() {
  std::int64_t accumulator = 1;
  for (std::size_t i = 0; i < code.size(); ++i)
    accumulator = operations[code[i]](accumulator, static_cast<std::int64_t>(i) + 1) & 0xffff;
  return real(accumulator);
}

void make_data() {
  Generator g{3};
  std::vector<std::int64_t> keys(100000);
  for (auto& k : keys) k = g.next() % 1000003;
  for (const auto k : keys) animals_3.push_back(make(k, 3));
  for (const auto k : keys) animals_6.push_back(make(k, 6));
  for (std::size_t i = 0; i < 1000; ++i) {
    const std::int64_t k = keys[i];
    if (k % 3 == 0) {
      bodies.push_back(std::make_unique<Ball>(real(k), 1.0));
    } else if (k % 3 == 1) {
      bodies.push_back(std::make_unique<Box>(real(k), 2.0, 0.999));
    } else {
      bodies.push_back(std::make_unique<Wall>(real(k)));
    }
  }
  expression = build(16);
  for (int k = 1; k <= 10000; ++k) {
    const double a = k * 0.001;
    switch (k % 4) {
      case 0:
        functions.emplace_back([=](double x) { return x + a; });
        break;
      case 1:
        functions.emplace_back([](double x) { return x * 0.999; });
        break;
      case 2:
        functions.emplace_back([=](double x) { return x - a * 0.5; });
        break;
      default:
        functions.emplace_back([=](double x) { return x > 3 ? x - k : x; });
    }
  }
  using Word = std::int64_t;
  operations = {[](Word a, Word b) { return a + b; }, [](Word a, Word b) { return a - b; },
                [](Word a, Word b) { return a * b; }, [](Word a, Word b) { return std::max(a, b); },
                [](Word a, Word b) { return a ^ b; }};
  for (int i = 0; i < 10000; ++i) code.push_back(static_cast<std::size_t>(g.next() % 5));
  for (std::size_t i = 0; i < 10000; ++i) few_animals.push_back(make(keys[i], 3));
  for (int i = 0; i < 10000; ++i) {
    const std::int64_t r = g.next() % 3;
    if (r == 0) {
      hands.push_back(std::make_unique<Rock>());
    } else if (r == 1) {
      hands.push_back(std::make_unique<Paper>());
    } else {
      hands.push_back(std::make_unique<Scissors>());
    }
  }
}

}  // namespace

int main() {
  make_data();
  bench_samples(
      "structs_3", [] { return total_cost(animals_3); }, 1, 10);
  bench_samples(
      "structs_mapped_3", [] { return mapped(animals_3); }, 1, 10);
  bench_samples(
      "structs_6", [] { return total_cost(animals_6); }, 1, 10);
  bench_samples(
      "structs_mapped_6", [] { return mapped(animals_6); }, 1, 10);
  bench_samples("bodies", simulate, 1, 10);
  bench_samples(
      "expression", [] { return expression->value(0.7); }, 50, 30);
  bench_samples("closures", chained, 1, 30);
  bench_samples("closures_sum", summed, 1, 30);
  bench_samples("machine", machine, 1, 30);
  bench_samples("collisions", collisions, 1, 30);
  bench_samples("hands", tournament, 10, 30);
  bench_samples(
      "string_of", [] { return string_of(10000); }, 1, 30);
  bench_samples(
      "string_parts", [] { return string_parts(10000); }, 1, 30);
  bench_samples(
      "interpolated", [] { return interpolated(10000); }, 1, 30);
  bench_samples(
      "buffer", [] { return buffer(10000); }, 1, 30);
  bench_samples(
      "join_texts", [] { return join_texts(10000); }, 1, 30);
  bench_samples(
      "join_range", [] { return join_range(10000); }, 1, 30);
  bench_samples(
      "sieve", [] { return sieve(5000000); }, 1, 5);
  bench_samples(
      "sieve_while", [] { return sieve_while(5000000); }, 1, 5);
  bench_samples(
      "trees", [] { return trees(14); }, 1, 5);
  bench_samples(
      "search_tree", [] { return search_tree(20000); }, 1, 10);
}
