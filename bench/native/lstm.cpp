// The recurrent network of examples/gradbench/lstm.slope and its gradient by hand in plain C++: the forward sweep keeps
// the gates and states of every step, the reverse sweep carries the adjoints of hidden values and memories backward in
// time. 2 layers of 14 cells, 1024 characters; the data are the fractional parts that bench/programs/lstm.slope makes.
#include <cmath>
#include <vector>

#include "bench/native/bench.h"
#include "bench/native/numbers.hpp"

namespace {

constexpr int layers = 2;
constexpr int bits = 14;
constexpr int characters = 1024;

using Numbers = std::vector<double>;

Numbers zeros_and_ones(int count, int seed) {
  Numbers made = numbers(count, seed);
  for (double& x : made) x = x > 0 ? 1 : 0;
  return made;
}

enum Gate { forget, in, out, change };
constexpr int gates = 4;

// Of a layer: weights, then biases, `bits` for each gate.
const Numbers main_parameters = numbers(layers * 2 * gates * bits, 1);
const Numbers extra = numbers(3 * bits, 2);
const Numbers start = numbers(layers * 2 * bits, 3);
const Numbers sequence = zeros_and_ones(characters * bits, 4);

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// What the reverse sweep needs of one layer at one step.
struct Step {
  double input[bits], hidden[bits], memory[bits];  // before the step
  double gate[gates][bits];
  double squashed[bits];  // tanh of the memory after it
};

struct Output {
  double hidden[bits];        // of the last layer
  double exponentials[bits];  // of the prediction
  double sum;                 // of them, and 2
};

template <bool keeps>
double forward(std::vector<Step>& steps, std::vector<Output>& outputs) {
  double hidden[layers][bits];
  double memory[layers][bits];
  for (int k = 0; k < layers; ++k) {
    for (int i = 0; i < bits; ++i) {
      hidden[k][i] = start[2 * k * bits + i];
      memory[k][i] = start[(2 * k + 1) * bits + i];
    }
  }
  double total = 0;
  Step scratch;
  Output scratch_output;
  for (int t = 0; t + 1 < characters; ++t) {
    double x[bits];
    for (int i = 0; i < bits; ++i) x[i] = sequence[t * bits + i] * extra[i];
    for (int k = 0; k < layers; ++k) {
      Step& s = keeps ? steps[t * layers + k] : scratch;
      const double* w = &main_parameters[k * 2 * gates * bits];
      const double* b = w + gates * bits;
      for (int i = 0; i < bits; ++i) {
        s.input[i] = x[i];
        s.hidden[i] = hidden[k][i];
        s.memory[i] = memory[k][i];
        s.gate[forget][i] = sigmoid(x[i] * w[forget * bits + i] + b[forget * bits + i]);
        s.gate[in][i] = sigmoid(hidden[k][i] * w[in * bits + i] + b[in * bits + i]);
        s.gate[out][i] = sigmoid(x[i] * w[out * bits + i] + b[out * bits + i]);
        s.gate[change][i] = std::tanh(hidden[k][i] * w[change * bits + i] + b[change * bits + i]);
        memory[k][i] = memory[k][i] * s.gate[forget][i] + s.gate[in][i] * s.gate[change][i];
        s.squashed[i] = std::tanh(memory[k][i]);
        hidden[k][i] = s.gate[out][i] * s.squashed[i];
        x[i] = hidden[k][i];
      }
    }
    Output& o = keeps ? outputs[t] : scratch_output;
    double prediction[bits];
    o.sum = 2;
    for (int i = 0; i < bits; ++i) {
      o.hidden[i] = x[i];
      prediction[i] = x[i] * extra[bits + i] + extra[2 * bits + i];
      o.exponentials[i] = std::exp(prediction[i]);
      o.sum += o.exponentials[i];
    }
    const double normaliser = std::log(o.sum);
    for (int i = 0; i < bits; ++i) total += sequence[(t + 1) * bits + i] * (prediction[i] - normaliser);
  }
  return -total / ((characters - 1) * bits);
}

void reverse(const std::vector<Step>& steps, const std::vector<Output>& outputs, Numbers& in_main, Numbers& in_extra) {
  in_main.assign(main_parameters.size(), 0);
  in_extra.assign(extra.size(), 0);
  double d_hidden[layers][bits] = {};
  double d_memory[layers][bits] = {};
  const double seed = -1.0 / ((characters - 1) * bits);
  for (int t = characters - 2; t >= 0; --t) {
    const Output& o = outputs[t];
    const double* wanted = &sequence[(t + 1) * bits];
    double wanted_sum = 0;
    for (int i = 0; i < bits; ++i) wanted_sum += wanted[i];
    double d_x[bits];
    for (int i = 0; i < bits; ++i) {
      const double d_prediction = seed * (wanted[i] - wanted_sum * o.exponentials[i] / o.sum);
      in_extra[bits + i] += d_prediction * o.hidden[i];
      in_extra[2 * bits + i] += d_prediction;
      d_x[i] = d_prediction * extra[bits + i];
    }
    for (int k = layers - 1; k >= 0; --k) {
      const Step& s = steps[t * layers + k];
      const double* w = &main_parameters[k * 2 * gates * bits];
      double* d_w = &in_main[k * 2 * gates * bits];
      double* d_b = d_w + gates * bits;
      for (int i = 0; i < bits; ++i) {
        const double dh = d_hidden[k][i] + d_x[i];
        const double dm = d_memory[k][i] + dh * s.gate[out][i] * (1 - s.squashed[i] * s.squashed[i]);
        const double d_out = dh * s.squashed[i] * s.gate[out][i] * (1 - s.gate[out][i]);
        const double d_forget = dm * s.memory[i] * s.gate[forget][i] * (1 - s.gate[forget][i]);
        const double d_in = dm * s.gate[change][i] * s.gate[in][i] * (1 - s.gate[in][i]);
        const double d_change = dm * s.gate[in][i] * (1 - s.gate[change][i] * s.gate[change][i]);
        d_w[forget * bits + i] += d_forget * s.input[i];
        d_w[in * bits + i] += d_in * s.hidden[i];
        d_w[out * bits + i] += d_out * s.input[i];
        d_w[change * bits + i] += d_change * s.hidden[i];
        d_b[forget * bits + i] += d_forget;
        d_b[in * bits + i] += d_in;
        d_b[out * bits + i] += d_out;
        d_b[change * bits + i] += d_change;
        d_memory[k][i] = dm * s.gate[forget][i];
        d_hidden[k][i] = d_in * w[in * bits + i] + d_change * w[change * bits + i];
        d_x[i] = d_forget * w[forget * bits + i] + d_out * w[out * bits + i];
      }
    }
    for (int i = 0; i < bits; ++i) in_extra[i] += d_x[i] * sequence[t * bits + i];
  }
}

std::vector<Step> steps((characters - 1) * layers);
std::vector<Output> outputs(characters - 1);
Numbers in_main;
Numbers in_extra;

double run_objective() { return forward<false>(steps, outputs); }

double run_gradient() {
  forward<true>(steps, outputs);
  reverse(steps, outputs, in_main, in_extra);
  double sum = 0;
  for (const Numbers* part : {&in_main, &in_extra}) {
    for (const double entry : *part) sum += std::abs(entry);
  }
  return sum;
}

}  // namespace

int main() {
  bench_samples("lstm", run_objective, 3, 20);
  bench_samples("lstm_gradient", run_gradient, 3, 20);
  return 0;
}
