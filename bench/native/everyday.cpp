// bench/programs/everyday.slope in C++, as one writes it with the standard library.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/native/bench.h"
#include "bench/native/numbers.hpp"

namespace {

double count_words(const std::vector<std::string>& words) {
  std::unordered_map<std::string, std::int64_t> counts;
  for (const std::string& w : words) ++counts[w];
  std::int64_t most = 0;
  for (const auto& [word, count] : counts) most = std::max(most, count);
  return static_cast<double>(most);
}

double joined(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(numbers[i]);
  }
  return static_cast<double>(text.size());
}

double lines_of(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t k : numbers) {
    text += std::to_string(k);
    text += ',';
    text += std::to_string(2 * k);
    text += '\n';
  }
  return static_cast<double>(text.size());
}

double formatted(int n) {
  std::size_t total = 0;
  for (int k = 1; k <= n; ++k) {
    char text[64];
    const int size = std::snprintf(text, sizeof text, "%5d %8.3f", k, k / 3.0);
    total += std::string(text, static_cast<std::size_t>(size)).size();
  }
  return static_cast<double>(total);
}

double fields_sum(const std::vector<std::string>& lines) {
  double total = 0;
  for (const std::string& line : lines) {
    std::vector<std::string> fields;
    std::size_t from = 0;
    for (std::size_t at; (at = line.find(',', from)) != std::string::npos; from = at + 1)
      fields.push_back(line.substr(from, at - from));
    fields.push_back(line.substr(from));
    for (const std::string& field : fields) total += std::strtod(field.c_str(), nullptr);
  }
  return total;
}

double pairs_of(std::int64_t n) {
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (std::int64_t j = 1; j <= n; ++j)
    for (std::int64_t i = 1; i <= n; ++i)
      if ((i + j) % 3 == 0) pairs.emplace_back(i, j);
  return static_cast<double>(pairs.size());
}

struct Shape {
  virtual ~Shape() = default;
  virtual double area() const = 0;
};
struct Circle : Shape {
  explicit Circle(double r) : radius(r) {}
  double area() const override { return 3.14 * radius * radius; }
  double radius;
};
struct Square : Shape {
  explicit Square(double s) : side(s) {}
  double area() const override { return side * side; }
  double side;
};
struct Rectangle : Shape {
  Rectangle(double w, double h) : width(w), height(h) {}
  double area() const override { return width * height; }
  double width, height;
};
std::unique_ptr<Shape> shape_of(std::int64_t k) {
  const double size = static_cast<double>(k) * 0.001;
  if (k % 3 == 0) return std::make_unique<Circle>(size);
  if (k % 3 == 1) return std::make_unique<Square>(size);
  return std::make_unique<Rectangle>(size, 2.0);
}
double areas(const std::vector<std::unique_ptr<Shape>>& shapes) {
  double total = 0;
  for (const auto& s : shapes) total += s->area();
  return total;
}

std::function<double(double)> closure_of(std::int64_t k) {
  if (k % 3 == 0) return [k](double x) { return x + static_cast<double>(k); };
  if (k % 3 == 1) return [](double x) { return x * 1.0001; };
  return [k](double x) { return x - static_cast<double>(k); };
}
double chained(const std::vector<std::function<double(double)>>& functions) {
  double x = 1;
  for (const auto& f : functions) x = f(x);
  return x;
}

double distance(const std::string& a, const std::string& b) {
  std::vector<std::int64_t> row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = static_cast<std::int64_t>(j);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::int64_t diagonal = row[0];
    row[0] = static_cast<std::int64_t>(i) + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::int64_t above = row[j + 1];
      row[j + 1] = a[i] == b[j] ? diagonal : 1 + std::min({diagonal, above, row[j]});
      diagonal = above;
    }
  }
  return static_cast<double>(row.back());
}

double reached(const std::vector<std::vector<std::int64_t>>& graph) {
  std::vector<std::int64_t> distance(graph.size(), -1);
  distance[0] = 0;
  std::deque<std::int64_t> queue{1};
  while (!queue.empty()) {
    const std::int64_t node = queue.front();
    queue.pop_front();
    for (const std::int64_t next : graph[static_cast<std::size_t>(node - 1)]) {
      std::int64_t& there = distance[static_cast<std::size_t>(next - 1)];
      if (there >= 0) continue;
      there = distance[static_cast<std::size_t>(node - 1)] + 1;
      queue.push_back(next);
    }
  }
  std::int64_t total = 0;
  for (const std::int64_t d : distance) total += d;
  return static_cast<double>(total);
}

std::int64_t paths(std::unordered_map<std::int64_t, std::int64_t>& known, std::int64_t i, std::int64_t j) {
  if (i == 0 || j == 0) return 1;
  if (const auto found = known.find(100 * i + j); found != known.end()) return found->second;
  const std::int64_t count = paths(known, i - 1, j) + paths(known, i, j - 1);
  known[100 * i + j] = count;
  return count;
}

double primes(std::int64_t n) {
  std::vector<char> prime(static_cast<std::size_t>(n + 1), 1);
  prime[1] = 0;
  for (std::int64_t i = 2; i * i <= n; ++i)
    if (prime[static_cast<std::size_t>(i)])
      for (std::int64_t j = i * i; j <= n; j += i) prime[static_cast<std::size_t>(j)] = 0;
  return static_cast<double>(std::count(prime.begin() + 1, prime.end(), 1));
}

double deviation(const std::vector<double>& v) {
  double total = 0, squares = 0;
  for (const double x : v) total += x;
  const double mean = total / static_cast<double>(v.size());
  for (const double x : v) squares += (x - mean) * (x - mean);
  return std::sqrt(squares / static_cast<double>(v.size() - 1));
}

double row_sums(const std::vector<double>& m) {
  double squares = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    double total = 0;
    for (std::size_t j = 0; j < 100; ++j) total += m[i + 100 * j];
    squares += total * total;
  }
  return squares;
}

std::vector<std::int64_t> integers;
std::vector<double> fractions;
std::vector<std::string> words, lines;
std::vector<std::unique_ptr<Shape>> shapes;
std::vector<std::function<double(double)>> functions;
std::vector<std::vector<std::int64_t>> graph;
std::string a, b;

}  // namespace

int main() {
  Generator g{42}, h{7};
  for (int i = 0; i < 10000; ++i) integers.push_back(g.next() % 1000);
  for (int i = 0; i < 10000; ++i) fractions.push_back(static_cast<double>(h.next()) / 2147483648.0);
  for (const std::int64_t k : integers) words.push_back("w" + std::to_string(k % 500) + "x");
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t k = integers[static_cast<std::size_t>(i)];
    char quarter[32];
    std::snprintf(quarter, sizeof quarter, "%g", static_cast<double>(k) / 4);
    lines.push_back(std::to_string(k) + "," + std::to_string(2 * k) + "," + quarter);
  }
  for (const std::int64_t k : integers) shapes.push_back(shape_of(k));
  for (const std::int64_t k : integers) functions.push_back(closure_of(k));
  for (std::int64_t i = 1; i <= 2000; ++i)
    graph.push_back({(7 * i + 1) % 2000 + 1, (13 * i + 5) % 2000 + 1, (31 * i + 2) % 2000 + 1});
  for (std::int64_t k = 1; k <= 200; ++k) {
    a += std::to_string(k * 7919 % 10);
    b += std::to_string(k * 104729 % 9);
  }
  bench_samples(
      "sort_numbers",
      [] {
        auto v = fractions;
        std::sort(v.begin(), v.end());
        return v[4];
      },
      5, 10);
  bench_samples(
      "sort_integers",
      [] {
        auto v = integers;
        std::sort(v.begin(), v.end());
        return static_cast<double>(v[499]);
      },
      20, 10);
  bench_samples(
      "sort_words",
      [] {
        auto v = words;
        std::sort(v.begin(), v.end());
        return static_cast<double>(v[4].size());
      },
      1, 10);
  bench_samples(
      "word_counts", [] { return count_words(words); }, 5, 10);
  bench_samples(
      "joined", [] { return joined(integers); }, 10, 10);
  bench_samples(
      "lines", [] { return lines_of(integers); }, 10, 10);
  bench_samples(
      "formatted", [] { return formatted(1000); }, 10, 10);
  bench_samples(
      "fields", [] { return fields_sum(lines); }, 10, 10);
  bench_samples(
      "pairs", [] { return pairs_of(100); }, 100, 10);
  bench_samples(
      "areas", [] { return areas(shapes); }, 20, 10);
  bench_samples(
      "closures", [] { return chained(functions); }, 20, 10);
  bench_samples(
      "distance", [] { return distance(a, b); }, 20, 10);
  bench_samples(
      "reached", [] { return reached(graph); }, 50, 10);
  bench_samples(
      "paths",
      [] {
        std::unordered_map<std::int64_t, std::int64_t> known;
        return static_cast<double>(paths(known, 14, 14));
      },
      100, 10);
  bench_samples(
      "primes", [] { return primes(100000); }, 5, 10);
  bench_samples(
      "deviation", [] { return deviation(fractions); }, 100, 10);
  bench_samples(
      "row_sums", [] { return row_sums(fractions); }, 100, 10);
  return 0;
}
