// NLopt's minimisers for stdlib/optimization/nlopt.slope, loaded with dlopen when a program first names one.
//
// The library calls back for values and gradients; the callback copies between NLopt's memory and vectors that the
// Slope code made, so that the collector moves and frees nothing NLopt knows of. A callback that fails, and a script that
// has to end, stop the library at once. The traps: what the script's function does to the vectors (their lengths are
// looked at each time), and memory and time of the library itself, which are estimated before it runs.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "lang/support/loaded_library.hpp"
#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"
#include "stdlib/native/vectors.hpp"

namespace slope::stdlib::nlopt {

namespace {

// As nlopt.h of version 2.7 declares them.
using Optimizer = struct nlopt_opt_s*;
using Function = double (*)(unsigned n, const double* x, double* gradient, void* data);
using Functions = void (*)(unsigned m, double* result, unsigned n, const double* x, double* gradient, void* data);

struct Nlopt {
  int (*algorithm_from_string)(const char*) = nullptr;
  Optimizer (*create)(int, unsigned) = nullptr;
  void (*destroy)(Optimizer) = nullptr;
  int (*optimize)(Optimizer, double*, double*) = nullptr;
  int (*set_min_objective)(Optimizer, Function, void*) = nullptr;
  int (*set_lower_bounds)(Optimizer, const double*) = nullptr;
  int (*set_upper_bounds)(Optimizer, const double*) = nullptr;
  int (*add_inequality_mconstraint)(Optimizer, unsigned, Functions, void*, const double*) = nullptr;
  int (*add_equality_mconstraint)(Optimizer, unsigned, Functions, void*, const double*) = nullptr;
  int (*set_ftol_rel)(Optimizer, double) = nullptr;
  int (*set_ftol_abs)(Optimizer, double) = nullptr;
  int (*set_xtol_rel)(Optimizer, double) = nullptr;
  int (*set_stopval)(Optimizer, double) = nullptr;
  int (*set_maxeval)(Optimizer, int) = nullptr;
  int (*set_population)(Optimizer, unsigned) = nullptr;
  int (*set_initial_step1)(Optimizer, double) = nullptr;
  int (*set_local_optimizer)(Optimizer, Optimizer) = nullptr;
  int (*force_stop)(Optimizer) = nullptr;
  const char* (*get_errmsg)(Optimizer) = nullptr;
  void (*srand)(unsigned long) = nullptr;

  static constexpr const char* file = "libnlopt.so.0";
  void find(LoadedLibrary& library) {
    library.find(algorithm_from_string, "nlopt_algorithm_from_string");
    library.find(create, "nlopt_create");
    library.find(destroy, "nlopt_destroy");
    library.find(optimize, "nlopt_optimize");
    library.find(set_min_objective, "nlopt_set_min_objective");
    library.find(set_lower_bounds, "nlopt_set_lower_bounds");
    library.find(set_upper_bounds, "nlopt_set_upper_bounds");
    library.find(add_inequality_mconstraint, "nlopt_add_inequality_mconstraint");
    library.find(add_equality_mconstraint, "nlopt_add_equality_mconstraint");
    library.find(set_ftol_rel, "nlopt_set_ftol_rel");
    library.find(set_ftol_abs, "nlopt_set_ftol_abs");
    library.find(set_xtol_rel, "nlopt_set_xtol_rel");
    library.find(set_stopval, "nlopt_set_stopval");
    library.find(set_maxeval, "nlopt_set_maxeval");
    library.find(set_population, "nlopt_set_population");
    library.find(set_initial_step1, "nlopt_set_initial_step1");
    library.find(set_local_optimizer, "nlopt_set_local_optimizer");
    library.find(force_stop, "nlopt_force_stop");
    library.find(get_errmsg, "nlopt_get_errmsg");
    library.find(srand, "nlopt_srand");
  }
};

struct Run {
  Context& ctx;
  const Nlopt& library;
  Optimizer optimizer = nullptr;
  ArrayObject* u = nullptr;         // where the functions find the unknowns
  ArrayObject* settings = nullptr;  // the first is not zero where the script wants to stop
  double step_seconds = 0;          // of the library between two calls, about
  CountedBytes counted;             // memory of the library, about
  std::size_t call_bytes = 0;       // of it, with each call
  bool stopped = false;             // the library may call a few times more, for nothing

  Run(Context& ctx, const Nlopt& library) : ctx(ctx), library(library) {}
  bool stop() {
    stopped = true;
    library.force_stop(optimizer);
    return false;
  }
};

// An objective or a list of constraints: a Slope function of (u, gradient or nothing) that returns its value or, for
// constraints, fills `values`; and its memory.
struct Callback {
  Run* run = nullptr;
  Value function;
  ArrayObject* values = nullptr;    // null: an objective
  ArrayObject* gradient = nullptr;  // n, or n × m
};

// False: the run ends. What is wrong is the pending error, if anything is.
bool evaluate(const Callback& callback, std::size_t n, const double* x, std::size_t m, double* gradient, Value& value) {
  Run& run = *callback.run;
  Context& ctx = run.ctx;
  if (gradient) std::fill_n(gradient, n * m, 0.0);
  if (run.call_bytes) run.counted.add(ctx.runtime->outside_heap, run.call_bytes);
  if (run.stopped) return run.stop();
  if (!holds(run.u, n) || !holds(callback.gradient, n * m)) {
    ctx.argument_error("the vectors of a minimisation by NLopt have changed their lengths");
    return run.stop();
  }
  std::copy_n(x, n, numbers(run.u));
  const DataType* vector = ctx.runtime->types.array_of(ctx.runtime->types.builtin().float64, 1);
  const Value arguments[] = {
      Value(vector, static_cast<const void*>(run.u)),
      gradient ? Value(vector, static_cast<const void*>(callback.gradient)) : ctx.runtime->nothing(),
      callback.values ? Value(vector, static_cast<const void*>(callback.values)) : ctx.runtime->nothing()};
  if (!ctx.runtime->call(ctx, callback.function, arguments, 3, value)) return run.stop();
  if (!holds(callback.gradient, n * m) || (callback.values && !holds(callback.values, m)) || run.settings->length < 1) {
    ctx.argument_error("the vectors of a minimisation by NLopt have changed their lengths");
    return run.stop();
  }
  if (gradient) std::copy_n(numbers(callback.gradient), n * m, gradient);
  if (numbers(run.settings)[0] != 0) return run.stop();
  if (!ends_in_time(ctx, run.step_seconds)) return run.stop();
  return true;
}

double objective(unsigned n, const double* x, double* gradient, void* data) {
  const auto& callback = *static_cast<Callback*>(data);
  Value value;
  if (!evaluate(callback, n, x, 1, gradient, value)) return std::numeric_limits<double>::infinity();
  if (value.type == callback.run->ctx.runtime->types.builtin().float64) return value.float64;
  callback.run->ctx.type_error("the objective", callback.run->ctx.runtime->types.builtin().float64, value);
  callback.run->stop();
  return std::numeric_limits<double>::infinity();
}

void constraints(unsigned m, double* result, unsigned n, const double* x, double* gradient, void* data) {
  auto& callback = *static_cast<Callback*>(data);
  Value value;
  if (evaluate(callback, n, x, m, gradient, value))
    std::copy_n(numbers(callback.values), m, result);
  else
    std::fill_n(result, m, 0.0);
}

enum Setting : std::size_t {
  stop_wanted,
  relative_value,
  absolute_value,
  relative_step,
  stop_value,
  most_evaluations,
  population,
  first_step,
  constraint_tolerance,
  seed,
  setting_count
};

bool searches_locally(std::string_view name) {
  return name.find("MLSL") != std::string_view::npos || name.find("AUGLAG") != std::string_view::npos;
}

// What a method needs of memory and, between two calls, of time: all but the limited-memory ones keep matrices.
bool keeps_matrices(std::string_view name) {
  for (const char* other :
       {"LD_LBFGS", "LD_MMA", "LD_CCSAQ", "LD_VAR", "LD_TNEWTON", "LN_SBPLX", "GN_DIRECT", "GN_ORIG"})
    if (name.starts_with(other)) return false;
  return true;
}
double memory_of(std::string_view name, double n, double constraints) {
  return 8 * (100 * n + 4 * n * constraints + (keeps_matrices(name) ? 30 * n * n : 0));
}
// And with each call: rectangles and minima are kept.
std::size_t memory_of_call(std::string_view name, std::size_t n) {
  return name.find("DIRECT") != std::string_view::npos || name.find("MLSL") != std::string_view::npos ? 16 * n + 100
                                                                                                      : 0;
}

// nlopt_minimize(names, u, lower, upper, settings, x, objective, g, inequalities, ci, Ji, equalities, ce, Je): NLopt's
// result. `names` is the method and, after a blank, the one for local searches. The minimum goes into `u`.
bool nlopt_minimize(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "nlopt_minimize", args, count, result);
  std::string_view names;
  ArrayObject* v[5];
  ArrayObject* g = nullptr;
  ArrayObject* in[2];
  ArrayObject* equal[2];
  if (!call.arity(14) || !call.string(0, names) || !take_vectors(call, 1, v) || !take_vectors(call, 7, {&g, 1}) ||
      !take_vectors(call, 9, in) || !take_vectors(call, 12, equal))
    return false;
  auto [u, lower, upper, settings, x] = v;
  const auto n = static_cast<std::size_t>(u->length);
  const auto mi = static_cast<std::size_t>(in[0]->length), me = static_cast<std::size_t>(equal[0]->length);
  if (n == 0 || n > 100'000'000 || !holds(lower, n) || !holds(upper, n) || !holds(x, n) || !holds(g, n) ||
      !holds(in[1], n * mi) || !holds(equal[1], n * me) || !holds(settings, setting_count))
    return ctx.argument_error("nlopt_minimize: vectors of wrong lengths");
  const Nlopt* library = loaded<Nlopt>();
  if (!library) return ctx.raise_error("NLopt's methods need the library libnlopt.so.0: install the package libnlopt0");
  const std::string name(names.substr(0, names.find(' ')));
  const std::string local(names.size() > name.size() ? names.substr(name.size() + 1) : std::string_view());
  const int method = library->algorithm_from_string(name.c_str());
  const int local_method = local.empty() ? 0 : library->algorithm_from_string(local.c_str());
  if (method < 0 || local_method < 0) return ctx.argument_error("NLopt has no method " + (method < 0 ? name : local));
  // Without one NLopt 2.7 reads memory that is not there.
  if (searches_locally(name) != !local.empty() || searches_locally(local))
    return ctx.argument_error(
        "NLopt's methods MLSL and AUGLAG need another one for local searches; no other takes one");
  const std::vector<double> numbers_given(numbers(settings), numbers(settings) + setting_count);
  const auto setting = [&](Setting which) { return numbers_given[which]; };
  const double dn = static_cast<double>(n), most = std::clamp(setting(most_evaluations), 1.0, 2e9);

  const double bytes = memory_of(name, dn, static_cast<double>(mi + me));
  constexpr double most_bytes = 4e9;
  if (bytes > most_bytes) return ctx.out_of_memory();
  Run run(ctx, *library);
  run.counted.add(call.runtime.outside_heap, static_cast<std::size_t>(bytes));
  run.call_bytes = memory_of_call(name, n);
  if (ctx.interrupt.load(std::memory_order_relaxed) != no_interrupt) return ctx.stop();
  run.u = x;
  run.settings = settings;
  run.step_seconds = keeps_matrices(name) ? 1e-8 * dn * dn * dn : 0;
  if (!ends_in_time(ctx, run.step_seconds)) return false;
  Callback value{&run, args[6], nullptr, g};
  Callback below{&run, args[8], in[0], in[1]};
  Callback zero{&run, args[11], equal[0], equal[1]};
  std::vector<double> point(numbers(u), numbers(u) + n);
  const std::vector<double> tolerances(std::max(mi, me), setting(constraint_tolerance));
  struct Owned {
    const Nlopt& library;
    Optimizer optimizer;
    ~Owned() { library.destroy(optimizer); }
  };
  Owned main{*library, library->create(method, static_cast<unsigned>(n))};
  Owned inner{*library, local.empty() ? nullptr : library->create(local_method, static_cast<unsigned>(n))};
  Optimizer o = run.optimizer = main.optimizer;
  if (!o) return ctx.out_of_memory();
  int found = library->set_min_objective(o, objective, &value);
  const auto go_on = [&](int answer) { found = found < 0 ? found : answer; };
  go_on(library->set_lower_bounds(o, numbers(lower)));
  go_on(library->set_upper_bounds(o, numbers(upper)));
  if (mi)
    go_on(library->add_inequality_mconstraint(o, static_cast<unsigned>(mi), constraints, &below, tolerances.data()));
  if (me) go_on(library->add_equality_mconstraint(o, static_cast<unsigned>(me), constraints, &zero, tolerances.data()));
  for (Optimizer each : {o, inner.optimizer}) {
    if (!each) continue;
    go_on(library->set_ftol_rel(each, setting(relative_value)));
    go_on(library->set_ftol_abs(each, setting(absolute_value)));
    go_on(library->set_xtol_rel(each, setting(relative_step)));
  }
  if (inner.optimizer) go_on(library->set_local_optimizer(o, inner.optimizer));
  go_on(library->set_stopval(o, setting(stop_value)));
  go_on(library->set_maxeval(o, static_cast<int>(most)));
  if (setting(population) > 0) go_on(library->set_population(o, static_cast<unsigned>(setting(population))));
  if (setting(first_step) > 0) go_on(library->set_initial_step1(o, setting(first_step)));
  library->srand(static_cast<unsigned long>(std::clamp(setting(seed), 0.0, 1e15)));
  double least = 0;
  if (found >= 0) found = library->optimize(o, point.data(), &least);
  if (ctx.failed()) return false;
  constexpr int invalid_arguments = -2, no_memory = -3;
  if (found == no_memory) return ctx.out_of_memory();
  if (found == invalid_arguments) {
    const char* why = library->get_errmsg(o);
    return ctx.argument_error("NLopt's " + name + " does not take this problem" + (why ? ": " + std::string(why) : ""));
  }
  if (!holds(u, n)) return ctx.argument_error("nlopt_minimize: vectors of wrong lengths");
  std::copy(point.begin(), point.end(), numbers(u));
  return call.give_int(found);
}

const NativeInfo nlopt_natives[] = {{"nlopt_minimize", nlopt_minimize, effect_all, returns_int}};

}  // namespace

}  // namespace slope::stdlib::nlopt

namespace slope::stdlib {

void define_nlopt_natives(Runtime& runtime) { define_all(runtime, nlopt::nlopt_natives); }

}  // namespace slope::stdlib
