// Gradient descent on data that is spread over the ranks of an MPI program. However many ranks there are, the answer is
// the same.
#include <mpi.h>

#include <slope/engine.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace {

const char* const model = R"(
# Squares of the residuals of y = w₁ + w₂ x + w₃ x².
function loss(w, x, y)
    s = 0.0
    for i in eachindex(x)
        s += (w[1] + x[i] * (w[2] + x[i] * w[3]) - y[i])^2
    end
    s
end
)";

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  constexpr int points = 1200;
  std::vector<double> x, y;  // this rank's share
  for (int i = rank; i < points; i += ranks) {
    x.push_back(std::cos(i));
    y.push_back(1.0 - 2.0 * x.back() + 0.5 * x.back() * x.back());
  }

  slope::Engine engine;
  engine.run(model, "model.slope").value();
  using Numbers = std::span<const double>;
  auto loss = engine.function<double(Numbers, Numbers, Numbers)>("loss").value();

  std::vector<double> w{0, 0, 0}, part(4), sum(4);
  for (int step = 0; step < 2000; ++step) {
    std::vector<double> g(3);
    part[0] = loss.value_and_gradient(w, x, y, g, nullptr, nullptr).value();
    for (std::size_t i = 0; i < 3; ++i) part[i + 1] = g[i];
    MPI_Allreduce(part.data(), sum.data(), 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (std::size_t i = 0; i < 3; ++i) w[i] -= 0.5 / points * sum[i + 1];
  }
  if (rank == 0) std::printf("%.6f %.6f %.6f\n", w[0], w[1], w[2]);
  const bool right = std::abs(w[0] - 1.0) < 1e-4 && std::abs(w[1] + 2.0) < 1e-4 && std::abs(w[2] - 0.5) < 1e-4;
  MPI_Finalize();
  return right ? 0 : 1;
}
