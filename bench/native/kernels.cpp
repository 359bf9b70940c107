// The loops of bench/programs/kernels.slope.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "bench/native/bench.h"

#define KERNEL __attribute__((noinline)) static

namespace {

using Vector = std::vector<double>;

KERNEL double dot_product(const Vector& x, const Vector& y) {
  double s = 0;
  for (std::size_t i = 0; i < x.size(); ++i) s += x[i] * y[i];
  return s;
}

KERNEL void axpy(Vector& y, double a, const Vector& x) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += a * x[i];
}

KERNEL void stencil(Vector& y, const Vector& x) {
  for (std::size_t i = 1; i + 1 < x.size(); ++i) y[i] = 0.25 * x[i - 1] + 0.5 * x[i] + 0.25 * x[i + 1];
}

KERNEL void prefix(Vector& y, const Vector& x) {
  double s = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    s += x[i];
    y[i] = s;
  }
}

struct Body {
  double x, y, z, vx, vy, vz, mass;
};

KERNEL void advance(std::vector<Body*>& bodies, double dt) {
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    Body& a = *bodies[i];
    for (std::size_t j = i + 1; j < bodies.size(); ++j) {
      Body& b = *bodies[j];
      const double dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
      const double d2 = dx * dx + dy * dy + dz * dz;
      const double mag = dt / (d2 * std::sqrt(d2));
      a.vx -= dx * b.mass * mag;
      a.vy -= dy * b.mass * mag;
      a.vz -= dz * b.mass * mag;
      b.vx += dx * a.mass * mag;
      b.vy += dy * a.mass * mag;
      b.vz += dz * a.mass * mag;
    }
  }
  for (Body* b : bodies) {
    b->x += dt * b->vx;
    b->y += dt * b->vy;
    b->z += dt * b->vz;
  }
}

KERNEL double nbody(std::vector<Body*>& bodies) {
  for (int k = 0; k < 100; ++k) advance(bodies, 0.0001);
  return bodies[0]->x;
}

KERNEL double histogram(std::vector<std::int64_t>& counts, const std::vector<std::int64_t>& bins) {
  std::fill(counts.begin(), counts.end(), 0);
  for (std::int64_t b : bins) counts[static_cast<std::size_t>(b - 1)] += 1;
  return static_cast<double>(counts[2] + 2 * counts[6]);
}

struct Matrix {
  std::size_t rows, columns;
  Vector data;
  double& at(std::size_t i, std::size_t j) { return data[i + j * rows]; }
  double at(std::size_t i, std::size_t j) const { return data[i + j * rows]; }
};

KERNEL void matvec(Vector& y, const Matrix& a, const Vector& x) {
  for (std::size_t i = 0; i < a.rows; ++i) y[i] = 0;
  for (std::size_t j = 0; j < a.columns; ++j)
    for (std::size_t i = 0; i < a.rows; ++i) y[i] += a.at(i, j) * x[j];
}

KERNEL void row_sums(Vector& y, const Matrix& a) {
  for (std::size_t i = 0; i < a.rows; ++i) {
    double s = 0;
    for (std::size_t j = 0; j < a.columns; ++j) s += a.at(i, j);
    y[i] = s;
  }
}

KERNEL std::int64_t count_words(const std::string& text) {
  std::int64_t words = 0;
  bool inside = false;
  for (char c : text) {
    const bool letter = c != ' ';
    if (letter && !inside) ++words;
    inside = letter;
  }
  return words;
}

struct Particle {
  double position, velocity, charge;
};

KERNEL double push_particles(std::vector<Particle>& ps, double dt) {
  for (Particle& p : ps) {
    const double v = p.velocity - p.charge * p.position * dt;
    p = {p.position + v * dt, v, p.charge};
  }
  return ps[9].position;
}

KERNEL std::int64_t collatz(std::int64_t limit) {
  std::int64_t longest = 0;
  for (std::int64_t n = 1; n <= limit; ++n) {
    std::int64_t steps = 0;
    for (std::int64_t k = n; k != 1; ++steps) k = k % 2 == 0 ? k / 2 : 3 * k + 1;
    longest = std::max(longest, steps);
  }
  return longest;
}

KERNEL void horner(std::vector<float>& y, const std::vector<float>& x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float t = x[i];
    y[i] = ((0.25f * t + 0.5f) * t - 1.5f) * t + 2.0f;
  }
}

struct Quaternion {
  double w, x, y, z;
};

Quaternion operator*(const Quaternion& a, const Quaternion& b) {
  return {a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
          a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}

Quaternion normalised(const Quaternion& q) {
  const double n = std::sqrt(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z);
  return {q.w / n, q.x / n, q.y / n, q.z / n};
}

KERNEL double rotate_many(const Quaternion& q, int count) {
  Quaternion total = {1, 0, 0, 0};
  for (int k = 0; k < count; ++k) total = normalised(total * q);
  return total.w + total.x;
}

KERNEL std::tuple<double, double> polar(double x, double y) { return {std::sqrt(x * x + y * y), y / x}; }

KERNEL double tuples(double x, int count) {
  double s = 0, y = 1;
  for (int k = 0; k < count; ++k) {
    const auto [r, t] = polar(x, y);
    s += r + t;
    y += 0.125;
  }
  return s;
}

KERNEL std::int64_t sieve(std::vector<std::uint8_t>& flags, std::size_t n) {
  std::fill(flags.begin(), flags.end(), 1);
  std::int64_t count = 0;
  for (std::size_t i = 2; i <= n; ++i) {
    if (!flags[i - 1]) continue;
    ++count;
    for (std::size_t k = i * i; k <= n; k += i) flags[k - 1] = 0;
  }
  return count;
}

KERNEL double smooth(Matrix& from, Matrix& to, int steps) {
  Matrix *u = &from, *v = &to;
  for (int s = 0; s < steps; ++s) {
    for (std::size_t j = 1; j + 1 < u->columns; ++j)
      for (std::size_t i = 1; i + 1 < u->rows; ++i)
        v->at(i, j) = 0.25 * (u->at(i - 1, j) + u->at(i + 1, j) + u->at(i, j - 1) + u->at(i, j + 1));
    std::swap(u, v);
  }
  return u->at(u->rows / 2 - 1, u->columns / 2 - 1);
}

constexpr int n = 1000;
Vector x(n), y(n), z(n), w(60);
std::vector<Body*> bodies;
std::vector<std::int64_t> counts(16), bins(n);
Matrix a{60, 40, Vector(2400)}, u{50, 50, Vector(2500)}, v;
std::string text;
std::vector<Particle> particles(n);
std::vector<float> x32(n), y32(n);
std::vector<std::uint8_t> flags(5000);
Quaternion q = {0.9, 0.1, -0.2, 0.3};

}  // namespace

int main() {
  for (int i = 1; i <= n; ++i) {
    x[i - 1] = i % 17 / 17.0;
    y[i - 1] = i % 13 / 13.0;
    x32[i - 1] = static_cast<float>(x[i - 1]);
    bins[i - 1] = i * i % 16 + 1;
    particles[i - 1] = {static_cast<double>(i) / n, 0.0, 1.0 + i % 3};
  }
  for (int i = 1; i <= 5; ++i) {
    bodies.push_back(new Body{double(i), 2 * i % 3 + 0.0, 3 * i % 5 + 0.0, 0.01 * i, -0.02 * i, 0.03, 1.0 / i});
  }
  for (int j = 1; j <= 40; ++j)
    for (int i = 1; i <= 60; ++i) a.at(i - 1, j - 1) = (i + j) % 7 / 7.0;
  for (int j = 1; j <= 50; ++j)
    for (int i = 1; i <= 50; ++i) u.at(i - 1, j - 1) = (i * j) % 5;
  v = u;
  for (int i = 0; i < 60; ++i) text += "some words  of a text ";
  bench_samples(
      "dot", [] { return dot_product(x, y); }, 1000, 10);
  bench_samples(
      "axpy", [] { return axpy(z, 1e-6, x), z[4]; }, 1000, 10);
  bench_samples(
      "stencil", [] { return stencil(z, x), z[6]; }, 1000, 10);
  bench_samples(
      "prefix", [] { return prefix(z, x), z[n - 1]; }, 1000, 10);
  bench_samples(
      "nbody", [] { return nbody(bodies); }, 20, 10);
  bench_samples(
      "histogram", [] { return histogram(counts, bins); }, 1000, 10);
  bench_samples(
      "matvec", [] { return matvec(w, a, x), w[5]; }, 500, 10);
  bench_samples(
      "rows", [] { return row_sums(w, a), w[5]; }, 500, 10);
  bench_samples(
      "words", [] { return static_cast<double>(count_words(text)); }, 500, 10);
  bench_samples(
      "particles", [] { return push_particles(particles, 1e-4); }, 500, 10);
  bench_samples(
      "collatz", [] { return static_cast<double>(collatz(300)); }, 50, 10);
  bench_samples(
      "horner32", [] { return horner(y32, x32), static_cast<double>(y32[8]); }, 1000, 10);
  bench_samples(
      "quaternion", [] { return rotate_many(q, 500); }, 200, 10);
  bench_samples(
      "tuples", [] { return tuples(2.0, 1000); }, 200, 10);
  bench_samples(
      "sieve", [] { return static_cast<double>(sieve(flags, 5000)); }, 50, 10);
  bench_samples(
      "smooth", [] { return smooth(u, v, 10); }, 50, 10);
  return 0;
}
