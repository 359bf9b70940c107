// Ipopt for stdlib/optimization/ipopt.slope, loaded with dlopen when a program first names it.
//
// Ipopt asks for the objective, the constraints and their derivatives; one Slope function computes all of these into
// vectors that the Slope code made, from which the callbacks copy. The derivatives' patterns are fixed for a run. As in
// nlopt.cpp a callback that fails, and a script that has to end, stop the library at once.
//
// The traps: the script's function may change the lengths of the vectors; Ipopt reads a file of options in the working
// directory and prints to standard output unless it is told not to; and its linear solver MUMPS takes memory and time
// that nobody knows before, and serves one thread at a time.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>
#include <vector>

#include "lang/support/loaded_library.hpp"
#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"
#include "stdlib/native/vectors.hpp"

namespace slope::stdlib::ipopt {

namespace {

// As IpStdCInterface.h of version 3.11 declares them. Version 3.14 has the same layout.
using Problem = struct IpoptProblemInfo*;
using EvalF = int (*)(int n, double* x, int new_x, double* value, void* data);
using EvalGradF = int (*)(int n, double* x, int new_x, double* gradient, void* data);
using EvalG = int (*)(int n, double* x, int new_x, int m, double* g, void* data);
using EvalJacG = int (*)(int n, double* x, int new_x, int m, int count, int* rows, int* columns, double* values,
                         void* data);
using EvalH = int (*)(int n, double* x, int new_x, double sigma, int m, double* lambda, int new_lambda, int count,
                      int* rows, int* columns, double* values, void* data);
using Intermediate = int (*)(int mode, int iteration, double value, double inf_pr, double inf_du, double mu,
                             double d_norm, double regularization, double alpha_du, double alpha_pr, int trials,
                             void* data);

struct IpoptLibrary {
  Problem (*create)(int n, double* lower, double* upper, int m, double* g_lower, double* g_upper, int jacobian_count,
                    int hessian_count, int index_style, EvalF, EvalG, EvalGradF, EvalJacG, EvalH) = nullptr;
  void (*destroy)(Problem) = nullptr;
  int (*add_string)(Problem, char*, char*) = nullptr;
  int (*add_number)(Problem, char*, double) = nullptr;
  int (*add_integer)(Problem, char*, int) = nullptr;
  int (*set_intermediate)(Problem, Intermediate) = nullptr;
  int (*solve)(Problem, double* x, double* g, double* value, double* mult_g, double* mult_lower, double* mult_upper,
               void* data) = nullptr;

  static constexpr const char* file = "libipopt.so.1";
  void find(LoadedLibrary& library) {
    library.find(create, "CreateIpoptProblem");
    library.find(destroy, "FreeIpoptProblem");
    library.find(add_string, "AddIpoptStrOption");
    library.find(add_number, "AddIpoptNumOption");
    library.find(add_integer, "AddIpoptIntOption");
    library.find(set_intermediate, "SetIntermediateCallback");
    library.find(solve, "IpoptSolve");
  }
};

// MUMPS may be used by one thread at a time. A context that holds the turn may take it again: a function that is
// minimised may minimise. False: the script has to end.
class Turn {
 public:
  explicit Turn(Context& ctx) : ctx_(ctx) {}
  Turn(const Turn&) = delete;
  bool take() {
    for (;;) {
      {
        const std::lock_guard lock(shared().mutex);
        if (!shared().owner || shared().owner == &ctx_) {
          shared().owner = &ctx_;
          ++shared().depth;
          return taken_ = true;
        }
      }
      if (!ends_in_time(ctx_, 0)) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  ~Turn() {
    if (!taken_) return;
    const std::lock_guard lock(shared().mutex);
    if (--shared().depth == 0) shared().owner = nullptr;
  }

 private:
  struct Shared {  // of the process, as MUMPS's state is
    std::mutex mutex;
    Context* owner = nullptr;
    int depth = 0;
  };
  static Shared& shared() {
    static Shared state;
    return state;
  }
  Context& ctx_;
  bool taken_ = false;
};

// What the Slope function is asked for; ipopt.slope has the same numbers.
enum Question : std::int64_t { ask_value = 1, ask_gradient, ask_constraints, ask_jacobian, ask_hessian, ask_to_go_on };

// The vectors by which the Slope function is asked, and their lengths, which must stay.
enum Vector : std::size_t { point, weights, value, gradient, constraints, jacobian, hessian, vector_count };

struct Run {
  Context& ctx;
  Value function;
  ArrayObject* vectors[vector_count];
  std::size_t lengths[vector_count];
  ArrayObject* places[4];  // rows and columns of the Jacobian and of the Hessian, from 1
  bool stopped = false;
};

bool keep_lengths(const Run& run) {
  for (std::size_t i = 0; i < vector_count; ++i)
    if (static_cast<std::size_t>(run.vectors[i]->length) != run.lengths[i]) return false;
  return true;
}

// The Slope function's answer, a Bool, into `answer`; what it computed is in the vectors. False: the run ends.
bool ask(Run& run, Question question, const double* x, bool& answer) {
  Context& ctx = run.ctx;
  if (run.stopped) return false;
  run.stopped = true;
  const auto changed = [&] {
    ctx.argument_error("the vectors of a minimisation by Ipopt have changed their lengths");
    return false;
  };
  if (!keep_lengths(run)) return changed();
  if (x) std::copy_n(x, run.lengths[point], numbers(run.vectors[point]));
  const Value arguments[] = {ctx.runtime->from_int(question)};
  Value result;
  if (!ctx.runtime->call(ctx, run.function, arguments, 1, result)) return false;
  if (!keep_lengths(run)) return changed();
  if (result.type != ctx.runtime->types.builtin().boolean) {
    ctx.type_error("the problem of Ipopt", ctx.runtime->types.builtin().boolean, result);
    return false;
  }
  answer = result.bits != 0;
  if (!ends_in_time(ctx, 0)) return false;
  run.stopped = false;
  return true;
}
int computed(void* data, Question question, const double* x, Vector vector, double* out) {
  Run& run = *static_cast<Run*>(data);
  bool is_defined = false;
  if (!ask(run, question, x, is_defined) || !is_defined) return 0;
  std::copy_n(numbers(run.vectors[vector]), run.lengths[vector], out);
  return 1;
}
int give_places(const Run& run, std::size_t from, int count, int* rows, int* columns) {
  for (int k = 0; k < count; ++k) {
    rows[k] = static_cast<int>(integers(run.places[from])[k]);
    columns[k] = static_cast<int>(integers(run.places[from + 1])[k]);
  }
  return 1;
}

int eval_f(int, double* x, int, double* out, void* data) { return computed(data, ask_value, x, value, out); }
int eval_grad_f(int, double* x, int, double* out, void* data) { return computed(data, ask_gradient, x, gradient, out); }
int eval_g(int, double* x, int, int, double* out, void* data) {
  return computed(data, ask_constraints, x, constraints, out);
}
int eval_jac_g(int, double* x, int, int, int count, int* rows, int* columns, double* values, void* data) {
  if (!values) return give_places(*static_cast<Run*>(data), 0, count, rows, columns);
  return computed(data, ask_jacobian, x, jacobian, values);
}
int eval_h(int, double* x, int, double sigma, int m, double* lambda, int, int count, int* rows, int* columns,
           double* values, void* data) {
  Run& run = *static_cast<Run*>(data);
  if (!values) return give_places(run, 2, count, rows, columns);
  if (!keep_lengths(run)) return 0;  // the next question says so
  numbers(run.vectors[weights])[0] = sigma;
  std::copy_n(lambda, m, numbers(run.vectors[weights]) + 1);
  return computed(data, ask_hessian, x, hessian, values);
}
int intermediate(int, int iteration, double objective, double inf_pr, double inf_du, double, double, double, double,
                 double, int, void* data) {
  Run& run = *static_cast<Run*>(data);
  if (!keep_lengths(run)) return 0;
  const double report[] = {static_cast<double>(iteration), objective, inf_pr, inf_du};
  std::copy_n(report, std::min<std::size_t>(4, run.lengths[weights]), numbers(run.vectors[weights]));
  bool goes_on = false;
  return ask(run, ask_to_go_on, nullptr, goes_on) && goes_on;
}

// Lines "i name value", "n name value" and "s name value". False: Ipopt has no such option, or not with such a value.
bool set_options(const IpoptLibrary& library, Problem problem, const std::string& text, std::string& wrong) {
  std::size_t from = 0;
  while (from < text.size()) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    const std::string line = text.substr(from, end - from);
    from = end + 1;
    const std::size_t blank = line.find(' ', 2);
    if (line.size() < 4 || blank == std::string::npos) return false;
    std::string name = line.substr(2, blank - 2), given = line.substr(blank + 1);
    wrong = name + " = " + given;
    const bool taken = line[0] == 'i'   ? library.add_integer(problem, name.data(), std::atoi(given.c_str()))
                       : line[0] == 'n' ? library.add_number(problem, name.data(), std::strtod(given.c_str(), nullptr))
                                        : library.add_string(problem, name.data(), given.data());
    if (!taken) return false;
  }
  return true;
}

// Numbers of rows and columns within the matrix.
bool within(ArrayObject* places, std::size_t count, std::size_t most) {
  return static_cast<std::size_t>(places->length) == count &&
         std::all_of(integers(places), integers(places) + count,
                     [&](std::int64_t i) { return i >= 1 && static_cast<std::size_t>(i) <= most; });
}

// ipopt_minimize(options, u, lower, upper, clower, cupper, jrows, jcolumns, hrows, hcolumns, function, point, weights,
// value, gradient, constraints, jacobian, hessian): Ipopt's return status. The minimum goes into `u`.
bool ipopt_minimize(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "ipopt_minimize", args, count, result);
  std::string_view options;
  ArrayObject* given[5];
  Run run{ctx, Value(), {}, {}, {}};
  if (!call.arity(18) || !call.string(0, options) || !take_vectors(call, 1, call.builtin.float64, given) ||
      !take_vectors(call, 6, call.builtin.int64, run.places) ||
      !take_vectors(call, 11, call.builtin.float64, run.vectors))
    return false;
  run.function = args[10];
  for (std::size_t i = 0; i < vector_count; ++i) run.lengths[i] = static_cast<std::size_t>(run.vectors[i]->length);
  const std::size_t n = run.lengths[point], m = run.lengths[constraints];
  constexpr std::size_t most = 1'000'000'000;
  if (n == 0 || n > most || m > most || run.lengths[jacobian] > most || run.lengths[hessian] > most ||
      !holds(given[0], n) || !holds(given[1], n) || !holds(given[2], n) || !holds(given[3], m) || !holds(given[4], m) ||
      run.lengths[gradient] != n || run.lengths[value] != 1 || run.lengths[weights] < m + 4 ||
      !within(run.places[0], run.lengths[jacobian], m) || !within(run.places[1], run.lengths[jacobian], n) ||
      !within(run.places[2], run.lengths[hessian], n) || !within(run.places[3], run.lengths[hessian], n))
    return ctx.argument_error("ipopt_minimize: vectors of wrong lengths");
  if (!may_do_everything(ctx))
    return ctx.raise_error(
        "Ipopt() runs only in an engine that is granted every capability, because nothing bounds the memory of its "
        "linear "
        "solver: use InteriorPoint()");
  const IpoptLibrary* library = loaded<IpoptLibrary>();
  if (!library)
    return ctx.raise_error("Ipopt() needs the library libipopt.so.1: install the package coinor-libipopt1v5");

  // Of Ipopt's vectors, and of a factor with some fill.
  CountedBytes counted;
  counted.add(call.runtime.outside_heap, 8 * (60 * (n + m) + 12 * (run.lengths[jacobian] + run.lengths[hessian])));
  if (!ends_in_time(ctx, 0)) return false;
  Turn turn(ctx);
  if (!turn.take()) return false;
  struct Owned {
    const IpoptLibrary& library;
    Problem problem;
    ~Owned() {
      if (problem) library.destroy(problem);
    }
  };
  const Owned owned{
      *library,
      library->create(static_cast<int>(n), numbers(given[1]), numbers(given[2]), static_cast<int>(m), numbers(given[3]),
                      numbers(given[4]), static_cast<int>(run.lengths[jacobian]),
                      static_cast<int>(run.lengths[hessian]), 1, eval_f, eval_g, eval_grad_f, eval_jac_g, eval_h)};
  if (!owned.problem) return ctx.argument_error("Ipopt does not take this problem");
  std::string wrong;
  if (!set_options(*library, owned.problem, "s option_file_name \ns sb yes\ni print_level 0\ns linear_solver mumps\n",
                   wrong) ||
      !set_options(*library, owned.problem, std::string(options), wrong))
    return ctx.argument_error("Ipopt does not take the option " + wrong);
  library->set_intermediate(owned.problem, intermediate);
  std::vector<double> x(numbers(given[0]), numbers(given[0]) + n);
  double least = 0;
  const int status = library->solve(owned.problem, x.data(), nullptr, &least, nullptr, nullptr, nullptr, &run);
  if (ctx.failed()) return false;
  constexpr int no_memory = -102;
  if (status == no_memory) return ctx.out_of_memory();
  if (!holds(given[0], n)) return ctx.argument_error("ipopt_minimize: vectors of wrong lengths");
  std::copy(x.begin(), x.end(), numbers(given[0]));
  return call.give_int(status);
}

const NativeInfo ipopt_natives[] = {{"ipopt_minimize", ipopt_minimize, effect_all, returns_int}};

}  // namespace

}  // namespace slope::stdlib::ipopt

namespace slope::stdlib {

void define_ipopt_natives(Runtime& runtime) { define_all(runtime, ipopt::ipopt_natives); }

}  // namespace slope::stdlib
