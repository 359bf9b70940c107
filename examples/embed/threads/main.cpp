// The gradient of a sum over data, in eight parts: by eight workspaces of one compiled function, then by eight engines.
#include <slope/engine.hpp>

#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

const char* const model = R"(
# Logistic loss of the points x with labels y.
function loss(w, x, y)
    s = 0.0
    for i in eachindex(y)
        z = w[1] + w[2] * x[i]
        s += log(1 + exp(-y[i] * z))
    end
    s
end
)";
using Numbers = std::span<const double>;
using Loss = double(Numbers, Numbers, Numbers);
constexpr int parts = 8;
constexpr std::size_t points = 80'000;

struct Sum {
  double value = 0;
  std::vector<double> gradient = {0, 0};
  void add(const Sum& other) {
    value += other.value;
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += other.gradient[i];
  }
};

// part(k, its points, its labels, where the sum goes), each on a thread.
template <class F>
Sum in_parts(const std::vector<double>& x, const std::vector<double>& y, const F& part) {
  std::vector<Sum> sums(parts);
  std::vector<std::thread> threads;
  for (int k = 0; k < parts; ++k) {
    threads.emplace_back([&, k] {
      const std::size_t size = points / parts, begin = static_cast<std::size_t>(k) * size;
      part(k, Numbers(x).subspan(begin, size), Numbers(y).subspan(begin, size), sums[static_cast<std::size_t>(k)]);
    });
  }
  Sum all;
  for (int k = 0; k < parts; ++k) {
    threads[static_cast<std::size_t>(k)].join();
    all.add(sums[static_cast<std::size_t>(k)]);
  }
  return all;
}

bool close(const Sum& a, const Sum& b) {
  return std::abs(a.value - b.value) < 1e-9 * a.value && std::abs(a.gradient[0] - b.gradient[0]) < 1e-6 &&
         std::abs(a.gradient[1] - b.gradient[1]) < 1e-6;
}

}  // namespace

int main() {
  std::vector<double> x(points), y(points);
  for (std::size_t i = 0; i < points; ++i) {
    x[i] = std::sin(static_cast<double>(i));
    y[i] = x[i] + 0.3 * std::cos(7.0 * static_cast<double>(i)) > 0 ? 1 : -1;
  }
  const std::vector<double> w{0.1, 0.5};

  slope::Engine engine;
  engine.run(model, "model.slope").value();
  auto loss = engine.function<Loss>("loss").value();
  Sum alone;
  alone.value = loss.value_and_gradient(w, x, y, alone.gradient, nullptr, nullptr).value();

  std::vector<slope::Workspace> workspaces;
  for (int k = 0; k < parts; ++k) workspaces.push_back(loss.workspace().value());
  const Sum shared = in_parts(x, y, [&](int k, Numbers some_x, Numbers some_y, Sum& sum) {
    auto& workspace = workspaces[static_cast<std::size_t>(k)];
    sum.value = loss.value_and_gradient(workspace, w, some_x, some_y, sum.gradient, nullptr, nullptr).value();
  });

  const Sum apart = in_parts(x, y, [&](int, Numbers some_x, Numbers some_y, Sum& sum) {
    slope::Engine own;
    own.run(model, "model.slope").value();
    auto own_loss = own.function<Loss>("loss").value();
    sum.value = own_loss.value_and_gradient(w, some_x, some_y, sum.gradient, nullptr, nullptr).value();
  });

  std::printf("one thread         loss %.6f, gradient (%.6f, %.6f)\n", alone.value, alone.gradient[0],
              alone.gradient[1]);
  std::printf("eight workspaces   loss %.6f, gradient (%.6f, %.6f)\n", shared.value, shared.gradient[0],
              shared.gradient[1]);
  std::printf("eight engines      loss %.6f, gradient (%.6f, %.6f)\n", apart.value, apart.gradient[0],
              apart.gradient[1]);
  return close(alone, shared) && close(alone, apart) ? 0 : 1;
}
