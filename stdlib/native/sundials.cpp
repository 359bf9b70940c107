// CVODES and IDAS of SUNDIALS for stdlib/ode/sundials.slope, loaded with dlopen when a program first names one of them.
//
// One Slope function evaluates the right-hand side or the residual, makes and factors the matrix of Newton's method, and
// solves with it: SUNDIALS sees a matrix without elements and a linear solver that asks the Slope function. So
// Jacobians, dense or sparse, and their factors are those of the rest of the library, and within the engine's limits.
// The numbers go through vectors that the Slope code made, as in nlopt.cpp; a callback that fails ends the integration.
#include <cmath>
#include <vector>

#include "lang/support/loaded_library.hpp"
#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"
#include "stdlib/native/vectors.hpp"

namespace slope::stdlib::sundials {

namespace {

// As the headers of version 6 declare them; the files' names carry the versions of this layout.
using Handle = struct sundials_context_s*;
using NVector = struct sundials_vector_s*;
struct Matrix;
struct MatrixOps {
  int (*getid)(Matrix*);
  Matrix* (*clone)(Matrix*);
  void (*destroy)(Matrix*);
  int (*zero)(Matrix*);
  int (*copy)(Matrix*, Matrix*);
  int (*scaleadd)(double, Matrix*, Matrix*);
  int (*scaleaddi)(double, Matrix*);
  int (*matvecsetup)(Matrix*);
  int (*matvec)(Matrix*, NVector, NVector);
  int (*space)(Matrix*, long*, long*);
};
struct Matrix {
  void* content;
  MatrixOps* ops;
  Handle context;
};
struct Solver;
struct SolverOps {
  int (*gettype)(Solver*);
  int (*getid)(Solver*);
  int (*setatimes)(Solver*, void*, void*);
  int (*setpreconditioner)(Solver*, void*, void*, void*);
  int (*setscalingvectors)(Solver*, NVector, NVector);
  int (*setzeroguess)(Solver*, int);
  int (*initialize)(Solver*);
  int (*setup)(Solver*, Matrix*);
  int (*solve)(Solver*, Matrix*, NVector x, NVector b, double tolerance);
  int (*numiters)(Solver*);
  double (*resnorm)(Solver*);
  std::int64_t (*lastflag)(Solver*);
  int (*space)(Solver*, long*, long*);
  NVector (*resid)(Solver*);
  int (*free)(Solver*);
};
struct Solver {
  void* content;
  SolverOps* ops;
  Handle context;
};
using ErrorHandler = void (*)(int, const char*, const char*, char*, void*);
using Rhs = int (*)(double t, NVector y, NVector out, void* data);
using Residual = int (*)(double t, NVector y, NVector yp, NVector out, void* data);
using LinearSystem = int (*)(double t, NVector y, NVector fy, Matrix*, int jok, int* jcur, double gamma, void* data,
                             NVector, NVector, NVector);
using Jacobian = int (*)(double t, double cj, NVector y, NVector yp, NVector r, Matrix*, void* data, NVector, NVector,
                         NVector);
using Roots = int (*)(double t, NVector y, double* out, void* data);
using RootsOfResidual = int (*)(double t, NVector y, NVector yp, double* out, void* data);

// What both libraries have.
struct Common {
  int (*create_context)(void*, Handle*) = nullptr;
  int (*free_context)(Handle*) = nullptr;
  NVector (*new_vector)(std::int64_t, Handle) = nullptr;
  double* (*data_of)(NVector) = nullptr;
  void (*destroy_vector)(NVector) = nullptr;
  Matrix* (*new_matrix)(Handle) = nullptr;
  void (*free_matrix)(Matrix*) = nullptr;
  Solver* (*new_solver)(Handle) = nullptr;
  void (*free_solver)(Solver*) = nullptr;

  void find(LoadedLibrary& library) {
    library.find(create_context, "SUNContext_Create");
    library.find(free_context, "SUNContext_Free");
    library.find(new_vector, "N_VNew_Serial");
    library.find(data_of, "N_VGetArrayPointer");
    library.find(destroy_vector, "N_VDestroy");
    library.find(new_matrix, "SUNMatNewEmpty");
    library.find(free_matrix, "SUNMatFreeEmpty");
    library.find(new_solver, "SUNLinSolNewEmpty");
    library.find(free_solver, "SUNLinSolFreeEmpty");
  }
};
// What each has, under one name: `prefix` is CVode or IDA.
struct Integrator : Common {
  int (*init_error_handler)(void*, ErrorHandler, void*) = nullptr;
  int (*tolerances)(void*, double, double) = nullptr;
  int (*set_user_data)(void*, void*) = nullptr;
  int (*set_max_steps)(void*, long) = nullptr;
  int (*set_first_step)(void*, double) = nullptr;
  int (*set_longest_step)(void*, double) = nullptr;
  int (*set_stop_time)(void*, double) = nullptr;
  int (*set_linear_solver)(void*, Solver*, Matrix*) = nullptr;
  int (*get_dky)(void*, double, int, NVector) = nullptr;
  int (*get_root_info)(void*, int*) = nullptr;
  int (*no_root_warning)(void*) = nullptr;
  int (*get_steps)(void*, long*) = nullptr;
  int (*get_failed)(void*, long*) = nullptr;
  void (*free)(void**) = nullptr;

  void find(LoadedLibrary& library, const std::string& prefix) {
    Common::find(library);
    const auto take = [&](auto& function, const char* name) { library.find(function, (prefix + name).c_str()); };
    take(init_error_handler, "SetErrHandlerFn");
    take(tolerances, "SStolerances");
    take(set_user_data, "SetUserData");
    take(set_max_steps, "SetMaxNumSteps");
    take(set_first_step, "SetInitStep");
    take(set_longest_step, "SetMaxStep");
    take(set_stop_time, "SetStopTime");
    take(set_linear_solver, "SetLinearSolver");
    take(get_dky, "GetDky");
    take(get_root_info, "GetRootInfo");
    take(no_root_warning, "SetNoInactiveRootWarn");
    take(get_steps, "GetNumSteps");
    take(get_failed, "GetNumErrTestFails");
    take(free, "Free");
  }
};
struct Cvodes : Integrator {
  void* (*create)(int method, Handle) = nullptr;
  int (*init)(void*, Rhs, double, NVector) = nullptr;
  int (*set_linear_system)(void*, LinearSystem) = nullptr;
  int (*set_nonlinear_solver)(void*, void*) = nullptr;
  void* (*fixed_point)(NVector, int, Handle) = nullptr;
  int (*free_fixed_point)(void*) = nullptr;
  int (*set_roots)(void*, int, Roots) = nullptr;
  int (*step)(void*, double, NVector, double*, int) = nullptr;

  static constexpr const char* file = "libsundials_cvodes.so.6";
  void find(LoadedLibrary& library) {
    Integrator::find(library, "CVode");
    library.find(create, "CVodeCreate");
    library.find(init, "CVodeInit");
    library.find(set_linear_system, "CVodeSetLinSysFn");
    library.find(set_nonlinear_solver, "CVodeSetNonlinearSolver");
    library.find(fixed_point, "SUNNonlinSol_FixedPoint");
    library.find(free_fixed_point, "SUNNonlinSolFree");
    library.find(set_roots, "CVodeRootInit");
    library.find(step, "CVode");
  }
};
struct Idas : Integrator {
  void* (*create)(Handle) = nullptr;
  int (*init)(void*, Residual, double, NVector, NVector) = nullptr;
  int (*set_jacobian)(void*, Jacobian) = nullptr;
  int (*set_roots)(void*, int, RootsOfResidual) = nullptr;
  int (*set_id)(void*, NVector) = nullptr;
  int (*make_consistent)(void*, int, double) = nullptr;
  int (*get_consistent)(void*, NVector, NVector) = nullptr;
  int (*step)(void*, double, double*, NVector, NVector, int) = nullptr;

  static constexpr const char* file = "libsundials_idas.so.5";
  void find(LoadedLibrary& library) {
    Integrator::find(library, "IDA");
    library.find(create, "IDACreate");
    library.find(init, "IDAInit");
    library.find(set_jacobian, "IDASetJacFn");
    library.find(set_roots, "IDARootInit");
    library.find(set_id, "IDASetId");
    library.find(make_consistent, "IDACalcIC");
    library.find(get_consistent, "IDAGetConsistentIC");
    library.find(step, "IDASolve");
  }
};

// What the Slope function is asked for; sundials.slope has the same numbers.
enum Question : std::int64_t { ask_slope = 1, ask_system, ask_solution, ask_roots, ask_to_go_on };
// Its answers: done; not possible here, a shorter step may be; stop.
enum Answer : std::int64_t { done = 0, not_here = 1, stop = 2 };

// y, y′ and what is computed; t and the like; the conditions and how they changed; which variables have a derivative;
// times; what was done.
enum Vector : std::size_t { y_at, yp_at, out_at, scalars_at, roots_at, id_at, times_at, stats_at, vector_count };
enum Setting : std::size_t { t_start, t_end, relative, absolute, first_step, longest_step, most_steps, setting_count };

struct Run {
  Context& ctx;
  const Integrator& library;
  Value function;
  ArrayObject* vectors[vector_count];
  std::size_t lengths[vector_count];
  bool stopped = false;  // by the script or for it

  double* at(Vector v) const { return numbers(vectors[v]); }
  std::size_t size() const { return lengths[y_at]; }
};

bool keep_lengths(const Run& run) {
  for (std::size_t i = 0; i < vector_count; ++i)
    if (!holds(run.vectors[i], run.lengths[i])) return false;
  return true;
}
// SUNDIALS's answer: 0, 1 for a failure that a shorter step may mend, -1 for the end.
int ask(Run& run, Question question) {
  Context& ctx = run.ctx;
  const auto ends = [&] {
    run.stopped = true;
    return -1;
  };
  if (run.stopped) return -1;
  const Value arguments[] = {ctx.runtime->from_int(question)};
  Value result;
  if (!ctx.runtime->call(ctx, run.function, arguments, 1, result)) return ends();
  if (!keep_lengths(run)) {
    ctx.argument_error("the vectors of an integration by SUNDIALS have changed their lengths");
    return ends();
  }
  if (result.type != ctx.runtime->types.builtin().int64) {
    ctx.type_error("the problem of SUNDIALS", ctx.runtime->types.builtin().int64, result);
    return ends();
  }
  if (!ends_in_time(ctx, 0) || result.bits == stop) return ends();
  return result.bits == done ? 0 : 1;
}
void give(Run& run, Vector to, NVector from) {
  if (from) std::copy_n(run.library.data_of(from), run.size(), run.at(to));
}
void take(Run& run, NVector to) { std::copy_n(run.at(out_at), run.size(), run.library.data_of(to)); }
int ask_at(Run& run, Question question, double t, NVector y, NVector yp) {
  if (run.stopped) return -1;
  run.at(scalars_at)[0] = t;
  give(run, y_at, y);
  give(run, yp_at, yp);
  return ask(run, question);
}

int residual(double t, NVector y, NVector yp, NVector out, void* data) {
  Run& run = *static_cast<Run*>(data);
  const int answer = ask_at(run, ask_slope, t, y, yp);
  if (answer == 0) take(run, out);
  return answer;
}
int slope_of(double t, NVector y, NVector out, void* data) { return residual(t, y, nullptr, out, data); }
// `scale` is γ, of 1 - γ J, or c, of dF/dy + c dF/dy′.
int system_at(Run& run, double t, NVector y, NVector yp, double scale, bool old_jacobian) {
  if (run.stopped) return -1;
  run.at(scalars_at)[1] = scale;
  run.at(scalars_at)[2] = old_jacobian ? 1 : 0;
  return ask_at(run, ask_system, t, y, yp);
}
int linear_system(double t, NVector y, NVector, Matrix*, int jok, int* jcur, double gamma, void* data, NVector, NVector,
                  NVector) {
  *jcur = jok ? 0 : 1;
  return system_at(*static_cast<Run*>(data), t, y, nullptr, gamma, jok != 0);
}
int jacobian(double t, double cj, NVector y, NVector yp, NVector, Matrix*, void* data, NVector, NVector, NVector) {
  return system_at(*static_cast<Run*>(data), t, y, yp, cj, false);
}
int roots_of_residual(double t, NVector y, NVector yp, double* out, void* data) {
  Run& run = *static_cast<Run*>(data);
  const int answer = ask_at(run, ask_roots, t, y, yp);
  if (answer == 0) std::copy_n(run.at(roots_at), run.lengths[roots_at], out);
  return answer == 0 ? 0 : -1;
}
int roots(double t, NVector y, double* out, void* data) { return roots_of_residual(t, y, nullptr, out, data); }

// The linear solver, of type "direct", and its matrix, both "custom". The matrix was made and factored by `ask_system`.
int solver_type(Solver*) { return 0; }
int solver_id(Solver*) { return 17; }
int solver_setup(Solver*, Matrix*) { return 0; }
int solve(Solver* solver, Matrix*, NVector x, NVector b, double) {
  Run& run = *static_cast<Run*>(solver->content);
  if (run.stopped) return -1;
  give(run, out_at, b);
  const int answer = ask(run, ask_solution);
  if (answer == 0) take(run, x);
  return answer;
}
int matrix_id(Matrix*) { return 9; }
int matrix_zero(Matrix*) { return 0; }

// What the libraries made, freed in this order.
struct Owned {
  const Integrator& library;
  Handle context = nullptr;
  void* memory = nullptr;
  Matrix* matrix = nullptr;
  Solver* solver = nullptr;
  void* nonlinear = nullptr;
  int (*free_nonlinear)(void*) = nullptr;
  std::vector<NVector> vectors;

  explicit Owned(const Integrator& of) : library(of) { library.create_context(nullptr, &context); }
  Owned(const Owned&) = delete;
  ~Owned() {
    if (memory) library.free(&memory);
    if (nonlinear) free_nonlinear(nonlinear);
    for (NVector v : vectors) library.destroy_vector(v);
    if (matrix) library.free_matrix(matrix);
    if (solver) library.free_solver(solver);
    if (context) library.free_context(&context);
  }
  // A vector of numbers that `from` holds; zeros without.
  NVector vector(std::size_t n, const double* from) {
    const NVector made = library.new_vector(static_cast<std::int64_t>(n), context);
    if (!made) return nullptr;
    vectors.push_back(made);
    if (from)
      std::copy_n(from, n, library.data_of(made));
    else
      std::fill_n(library.data_of(made), n, 0.0);
    return made;
  }
  bool make_linear_solver(Run& run) {
    matrix = library.new_matrix(context);
    solver = library.new_solver(context);
    if (!matrix || !solver) return false;
    matrix->ops->getid = matrix_id;
    matrix->ops->zero = matrix_zero;
    solver->content = &run;
    solver->ops->gettype = solver_type;
    solver->ops->getid = solver_id;
    solver->ops->setup = solver_setup;
    solver->ops->solve = solve;
    return library.set_linear_solver(memory, solver, matrix) == 0;
  }
};
void say_nothing(int, const char*, const char*, char*, void*) {}

// The integration itself, a step at a time: saved times within each, then its end. `step` is CVode or IDASolve.
template <class Step>
int steps(Run& run, Owned& owned, double from, double to, NVector y, NVector yp, Step step) {
  constexpr int stop_time_reached = 1, root_found = 2;
  const double direction = to >= from ? 1 : -1;
  double t = from;
  std::size_t next = 0;
  NVector inside = owned.vector(run.size(), nullptr);
  const auto save = [&](double time, NVector state, NVector slope, double kind) {
    run.at(scalars_at)[1] = kind;
    return ask_at(run, ask_to_go_on, time, state, slope) == 0;
  };
  for (;;) {
    const int flag = step(&t);
    if (run.stopped || flag < 0) return flag;
    for (; next < run.lengths[times_at] && direction * (t - run.at(times_at)[next]) > 0; ++next) {
      const double time = run.at(times_at)[next];
      if (owned.library.get_dky(owned.memory, time, 0, inside) != 0) continue;
      if (!save(time, inside, nullptr, 0)) return 0;
    }
    if (!save(t, y, yp, flag == root_found ? 2 : 1)) return 0;
    if (flag == root_found) {
      std::vector<int> changes(run.lengths[roots_at]);
      owned.library.get_root_info(owned.memory, changes.data());
      std::copy(changes.begin(), changes.end(), run.at(roots_at));
      return flag;
    }
    if (flag == stop_time_reached || direction * (t - to) >= 0) return 0;
  }
}

// What both need before the first step. Not zero: the library does not take it.
int prepare(Run& run, Owned& owned, std::span<const double> settings) {
  const Integrator& library = owned.library;
  int flag = library.init_error_handler(owned.memory, say_nothing, nullptr);
  const auto go_on = [&](int answer) { flag = flag != 0 ? flag : answer; };
  go_on(library.tolerances(owned.memory, settings[relative], settings[absolute]));
  go_on(library.set_user_data(owned.memory, &run));
  go_on(library.set_max_steps(owned.memory, static_cast<long>(std::clamp(settings[most_steps], 1.0, 1e15))));
  if (settings[first_step] > 0)
    go_on(
        library.set_first_step(owned.memory, std::copysign(settings[first_step], settings[t_end] - settings[t_start])));
  if (settings[longest_step] > 0) go_on(library.set_longest_step(owned.memory, settings[longest_step]));
  go_on(library.set_stop_time(owned.memory, settings[t_end]));
  return flag;
}

int run_cvodes(const Cvodes& library, Run& run, bool stiff, std::span<const double> settings) {
  constexpr int adams = 1, bdf = 2, one_step = 2;
  constexpr int no_memory = -20;
  Owned owned(library);
  const NVector y = owned.context ? owned.vector(run.size(), run.at(y_at)) : nullptr;
  owned.memory = y ? library.create(stiff ? bdf : adams, owned.context) : nullptr;
  if (!owned.memory) return no_memory;
  int flag = library.init(owned.memory, slope_of, settings[t_start], y);
  if (flag == 0) flag = prepare(run, owned, settings);
  if (flag != 0) return flag;
  if (stiff) {
    if (!owned.make_linear_solver(run)) return no_memory;
    flag = library.set_linear_system(owned.memory, linear_system);
  } else {
    owned.nonlinear = library.fixed_point(y, 0, owned.context);
    owned.free_nonlinear = library.free_fixed_point;
    flag = library.set_nonlinear_solver(owned.memory, owned.nonlinear);
  }
  if (flag == 0 && run.lengths[roots_at] > 0)
    flag = library.set_roots(owned.memory, static_cast<int>(run.lengths[roots_at]), roots);
  if (flag != 0) return flag;
  library.no_root_warning(owned.memory);
  flag = steps(run, owned, settings[t_start], settings[t_end], y, nullptr,
               [&](double* t) { return library.step(owned.memory, settings[t_end], y, t, one_step); });
  long count[2] = {0, 0};
  library.get_steps(owned.memory, count);
  library.get_failed(owned.memory, count + 1);
  if (keep_lengths(run)) std::copy_n(count, 2, run.at(stats_at));
  return flag;
}

int run_idas(const Idas& library, Run& run, std::span<const double> settings) {
  constexpr int one_step = 2, algebraic_and_slopes = 1;
  constexpr int no_memory = -21;
  Owned owned(library);
  const NVector y = owned.context ? owned.vector(run.size(), run.at(y_at)) : nullptr;
  const NVector yp = y ? owned.vector(run.size(), run.at(yp_at)) : nullptr;
  owned.memory = yp ? library.create(owned.context) : nullptr;
  if (!owned.memory) return no_memory;
  int flag = library.init(owned.memory, residual, settings[t_start], y, yp);
  if (flag == 0) flag = prepare(run, owned, settings);
  if (flag != 0) return flag;
  if (!owned.make_linear_solver(run)) return no_memory;
  flag = library.set_jacobian(owned.memory, jacobian);
  if (flag == 0 && run.lengths[roots_at] > 0)
    flag = library.set_roots(owned.memory, static_cast<int>(run.lengths[roots_at]), roots_of_residual);
  if (flag == 0 && run.lengths[id_at] > 0) {
    const NVector id = owned.vector(run.size(), run.at(id_at));
    flag = id ? library.set_id(owned.memory, id) : no_memory;
    if (flag == 0) flag = library.make_consistent(owned.memory, algebraic_and_slopes, settings[t_end]);
    if (flag == 0) flag = library.get_consistent(owned.memory, y, yp);
  }
  if (flag != 0) return flag;
  library.no_root_warning(owned.memory);
  run.at(scalars_at)[1] = -1;  // the start, as it is now
  if (ask_at(run, ask_to_go_on, settings[t_start], y, yp) != 0) return 0;
  flag = steps(run, owned, settings[t_start], settings[t_end], y, yp,
               [&](double* t) { return library.step(owned.memory, settings[t_end], t, y, yp, one_step); });
  long count[2] = {0, 0};
  library.get_steps(owned.memory, count);
  library.get_failed(owned.memory, count + 1);
  if (keep_lengths(run)) std::copy_n(count, 2, run.at(stats_at));
  return flag;
}

// sundials_integrate(kind, settings, function, y, y′, out, scalars, roots, id, times, stats): CVODES's or IDAS's flag.
// `kind` is 0, Adams; 1, BDF; 2, IDA. `id` is empty where the start is consistent.
bool sundials_integrate(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "sundials_integrate", args, count, result);
  std::int64_t kind = 0;
  ArrayObject* given = nullptr;
  ArrayObject* vectors[vector_count];
  if (!call.arity(3 + vector_count) || !call.integer(0, kind) || !take_vectors(call, 1, {&given, 1}) ||
      !take_vectors(call, 3, vectors))
    return false;
  std::size_t lengths[vector_count];
  for (std::size_t i = 0; i < vector_count; ++i) lengths[i] = static_cast<std::size_t>(vectors[i]->length);
  const std::size_t n = lengths[y_at];
  if (n == 0 || n > 1'000'000'000 || lengths[yp_at] != n || lengths[out_at] != n || lengths[scalars_at] != 3 ||
      (lengths[id_at] != 0 && lengths[id_at] != n) || lengths[stats_at] != 2 || lengths[roots_at] > 1'000'000 ||
      !holds(given, setting_count))
    return ctx.argument_error("sundials_integrate: vectors of wrong lengths");
  const std::vector<double> settings(numbers(given), numbers(given) + setting_count);
  const Cvodes* cvodes = kind < 2 ? loaded<Cvodes>() : nullptr;
  const Idas* idas = kind < 2 ? nullptr : loaded<Idas>();
  if (kind < 2 && !cvodes)
    return ctx.raise_error(
        "CVODE_BDF and CVODE_Adams need the library libsundials_cvodes.so.6: install the package libsundials-cvodes6");
  if (kind >= 2 && !idas)
    return ctx.raise_error("IDA needs the library libsundials_idas.so.5: install the package libsundials-idas5");
  CountedBytes counted;
  constexpr std::size_t vectors_kept = 24;  // the history of order 12 and what is at work
  counted.add(call.runtime.outside_heap, 8 * vectors_kept * n);
  if (!ends_in_time(ctx, 0)) return false;
  Run run{ctx, cvodes ? static_cast<const Integrator&>(*cvodes) : *idas, args[2], {}, {}};
  std::copy_n(vectors, vector_count, run.vectors);
  std::copy_n(lengths, vector_count, run.lengths);
  const int flag = cvodes ? run_cvodes(*cvodes, run, kind == 1, settings) : run_idas(*idas, run, settings);
  if (ctx.failed()) return false;
  return call.give_int(flag);
}

const NativeInfo sundials_natives[] = {{"sundials_integrate", sundials_integrate, effect_all, returns_int}};

}  // namespace

}  // namespace slope::stdlib::sundials

namespace slope::stdlib {

void define_sundials_natives(Runtime& runtime) { define_all(runtime, sundials::sundials_natives); }

}  // namespace slope::stdlib
