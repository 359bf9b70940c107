// Factorisations by LAPACK, in place, of matrices of Float64, Float32 and complex numbers of these. Each native gives
// LAPACK's info, or the rank.
//
// LAPACK cannot be interrupted. Under a time limit, one that would take longer than what is left ends the script before
// it begins (time_suffices). The slowest run on a thread of their own when they take long, with memory of their own: an
// interrupt ends the script, and nobody waits for what the thread still computes (run_apart).
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#include "lang/runtime/coroutines.hpp"
#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"
#include "stdlib/native/openblas.hpp"

namespace slope::stdlib {

namespace {

bool missing(Call& call) {
  return call.ctx.raise_error(
      "linear algebra of this kind needs OpenBLAS (libopenblas.so.0), which could not be loaded");
}

// A matrix argument with its dimensions as LAPACK wants them. Complex ones are copies with room behind them, which go
// back at the end: kernels of OpenBLAS 0.3.21 (zhemv_U and others) read up to a column beyond the end of a matrix,
// where there may be no memory. What they read there has no effect.
template <class T>
struct Matrix {
  Matrix() = default;
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  ~Matrix() { give_back(); }
  void give_back() {
    if (!roomy.empty() && origin) std::copy(roomy.begin(), roomy.begin() + length, origin);
    origin = nullptr;
  }
  void make_room() {
    if (!roomy.empty()) return;
    roomy.resize(static_cast<std::size_t>(length) + 2 * static_cast<std::size_t>(leading) + 64);
    std::copy(origin, origin + length, roomy.begin());
    data = roomy.data();
  }

  T* data = nullptr;
  int rows = 0;
  int columns = 0;
  int leading = 1;
  T* origin = nullptr;
  std::ptrdiff_t length = 0;
  std::vector<T> roomy;
};

template <class T>
struct Scalar {
  using Real = T;
  static constexpr bool is_complex = false;
};
template <class T>
struct Scalar<std::complex<T>> {
  using Real = T;
  static constexpr bool is_complex = true;
};
template <class T>
using Real = typename Scalar<T>::Real;
template <class T>
constexpr bool is_complex = Scalar<T>::is_complex;

template <class T>
const Type* real_type(Call& call) {
  return std::is_same_v<Real<T>, double> ? call.builtin.float64 : call.builtin.float32;
}
// A complex number is a struct of the library: two floats of one type, one after the other.
template <class T>
bool is_element(Call& call, const Type* type) {
  if constexpr (!is_complex<T>) return type == real_type<T>(call);
  const DataType* d = as_data(type);
  return d && d->is_concrete && !d->is_mutable && d->fields.size() == 2 && d->size == sizeof(T) &&
         d->fields[0].type == real_type<T>(call) && d->fields[1].type == real_type<T>(call);
}
// The routine's name, which may be another for complex numbers (orgqr: of an orthogonal Q, ungqr: of a unitary one).
template <class T>
std::string routine(const char* name, const char* complex_name) {
  constexpr bool wide = sizeof(Real<T>) == 8;
  return (is_complex<T> ? (wide ? "z" : "c") : (wide ? "d" : "s")) + std::string(is_complex<T> ? complex_name : name) +
         "_";
}
template <class T>
std::string routine(const char* name) {
  return routine<T>(name, name);
}
// What a routine says in the first element of its workspace about the size it wants.
template <class T>
int wanted_size(const T& first) {
  return std::max(1, static_cast<int>(std::real(first)));
}

template <class T>
bool matrix(Call& call, std::size_t i, Matrix<T>& out) {
  ArrayObject* a = nullptr;
  if (!call.array(i, a)) return false;
  int dims = array_ndims(a);
  if (!is_element<T>(call, array_element_type(a)) || dims < 1 || dims > 2)
    return call.ctx.type_error("lapack", call.runtime.types.array_of(real_type<T>(call), 2), call[i]);
  // An empty one may have any number of rows.
  constexpr std::int64_t most = 2147483647;
  if (a->length > most || dims_of(a)[0] > most || (dims == 2 && dims_of(a)[1] > most))
    return call.ctx.argument_error("the matrix is too large for LAPACK");
  out.data = reinterpret_cast<T*>(a->data);
  out.rows = static_cast<int>(dims_of(a)[0]);
  out.columns = dims == 2 ? static_cast<int>(dims_of(a)[1]) : 1;
  out.leading = std::max(1, out.rows);
  out.origin = out.data;
  out.length = a->length;
  if constexpr (Scalar<T>::is_complex) out.make_room();
  return true;
}

// A vector, or a matrix of one column: another may have the rows, and no elements.
template <class T>
bool has_length(const Matrix<T>& vector, int rows) {
  return vector.rows == rows && vector.columns == 1;
}

// Runs `compute<T>` for the element type of argument i.
template <template <class> class Compute>
bool by_element(Context& ctx, const Value* args, std::size_t count, Value& result, std::size_t arity, std::size_t i) {
  Call call(ctx, "lapack", args, count, result);
  ArrayObject* a = nullptr;
  if (!call.arity(arity) || !call.array(i, a)) return false;
  const Type* type = array_element_type(a);
  if (is_element<std::complex<double>>(call, type)) return Compute<std::complex<double>>::run(call);
  if (is_element<std::complex<float>>(call, type)) return Compute<std::complex<float>>::run(call);
  return type == call.builtin.float32 ? Compute<float>::run(call) : Compute<double>::run(call);
}

// Multiplications and additions a second of a product of small matrices: what this machine does at this moment.
template <class T>
double product_speed() {
  constexpr int n = 128;
  auto* gemm = openblas<void(const char*, const char*, const int*, const int*, const int*, const T*, const T*,
                             const int*, const T*, const int*, const T*, T*, const int*)>(routine<T>("gemm").c_str());
  if (!gemm) return 0;
  using Clock = std::chrono::steady_clock;
  const std::vector<T> factor(n * n, T(1));
  std::vector<T> product(n * n);
  const T one = 1, zero = 0;
  double best = 1;
  for (int run = 0; run < 3; ++run) {
    const Clock::time_point begin = Clock::now();
    gemm("N", "N", &n, &n, &n, &one, factor.data(), &n, factor.data(), &n, &zero, product.data(), &n);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return 2.0 * n * n * n / std::max(best, 1e-9);
}

// `work` counts multiplications and additions, as if all were done at the speed of a product of matrices. The factors
// of the callers were measured with OpenBLAS 0.3 and matrices of 800 rows. False: the script ends.
template <class T>
bool time_suffices(Call& call, double work) {
  constexpr double unnoticed = 5e7;  // some milliseconds
  constexpr double room = 1.25;
  Context& ctx = call.ctx;
  if (work < unnoticed) return true;
  if (std::isinf(call.runtime.coroutines->seconds_left(ctx))) return !ctx.interrupt || ctx.stop();
  const double speed = product_speed<T>();
  return ends_in_time(ctx, speed == 0 ? 0 : room * work / speed);
}

// Threads that go on with what was interrupted. The process waits for them before it unloads OpenBLAS.
class LeftBehind {
 public:
  static LeftBehind& all() {
    static LeftBehind* one = [] {
      std::atexit([] { all().wait(); });
      return new LeftBehind;
    }();
    return *one;
  }
  // False: there are so many already that the caller had better wait for its own.
  bool begin() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (count_ >= most_at_once) return false;
    ++count_;
    return true;
  }
  void end() {
    const std::lock_guard<std::mutex> lock(mutex_);
    --count_;
    changed_.notify_all();
  }

 private:
  static constexpr int most_at_once = 4;
  void wait() {
    if (getpid() != process_) return;  // a child has the count, but not the threads
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return count_ == 0; });
  }
  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

// Runs `step`, which uses nothing but `state` and what it holds by value; `matrices` are those of the state. When `work`
// (as for time_suffices) takes long enough to be noticed, on another thread, which keeps the state alive. False: the
// script ends.
template <class State, class Step, class... Matrices>
bool run_apart(Call& call, double work, const std::shared_ptr<State>& state, Step step, Matrices&... matrices) {
  constexpr double noticed = 5e8;  // some tens of milliseconds
  if (work < noticed) {
    step(*state);
    return true;
  }
  struct Progress {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
  };
  const auto progress = std::make_shared<Progress>();
  if (!LeftBehind::all().begin()) {
    step(*state);
    return true;
  }
  (matrices.make_room(), ...);
  const auto run = [state, step, progress] {
    step(*state);
    {
      const std::lock_guard<std::mutex> lock(progress->mutex);
      progress->done = true;
      progress->changed.notify_all();
    }
    LeftBehind::all().end();
  };
  try {
    std::thread(run).detach();
  } catch (const std::system_error&) {  // the system has no more threads
    run();
  }
  std::unique_lock<std::mutex> lock(progress->mutex);
  constexpr auto pause = std::chrono::milliseconds(10);
  while (!progress->changed.wait_for(lock, pause, [&] { return progress->done; })) {
    if (!call.ctx.interrupt.load(std::memory_order_relaxed)) continue;
    (void(matrices.origin = nullptr), ...);  // the arrays are no longer the thread's
    return call.ctx.stop();
  }
  (matrices.give_back(), ...);
  return true;
}

template <class T>
double volume(const Matrix<T>& a) {
  return double(a.rows) * a.columns * std::min(a.rows, a.columns);
}

bool pivots(Call& call, std::size_t i, std::size_t n, ArrayObject*& out) {
  if (!call.array_of(i, call.builtin.int64, 1, out)) return false;
  return out->length >= static_cast<std::int64_t>(n) || call.ctx.argument_error("too few pivots");
}

// Routines of eigenvalues have other arguments for real matrices than for complex ones.
template <class T>
bool not_real(Call& call) {
  return call.ctx.type_error("lapack", call.runtime.types.array_of(real_type<T>(call), 2), call[0]);
}
template <class T>
bool not_complex(Call& call) {
  return call.ctx.argument_error("the matrix is not complex");
}

// lapack_getrf(A, pivots): LU in place
template <class T>
struct Getrf {
  static bool run(Call& call) {
    Matrix<T> a;
    ArrayObject* order = nullptr;
    if (!matrix(call, 0, a) || !pivots(call, 1, static_cast<std::size_t>(std::min(a.rows, a.columns)), order))
      return false;
    auto* getrf = openblas<void(const int*, const int*, T*, const int*, int*, int*)>(routine<T>("getrf").c_str());
    if (!getrf) return missing(call);
    if (!time_suffices<T>(call, 0.9 * volume(a))) return false;
    std::vector<int> swaps(static_cast<std::size_t>(std::max(1, std::min(a.rows, a.columns))));
    int info = 0;
    getrf(&a.rows, &a.columns, a.data, &a.leading, swaps.data(), &info);
    for (int k = 0; k < std::min(a.rows, a.columns); ++k)
      reinterpret_cast<std::int64_t*>(order->data)[k] = swaps[static_cast<std::size_t>(k)];
    return call.give_int(info);
  }
};

// lapack_getrs(LU, pivots, B): B becomes the solution
template <class T>
struct Getrs {
  static bool run(Call& call) {
    Matrix<T> a, b;
    ArrayObject* order = nullptr;
    if (!matrix(call, 0, a) || !pivots(call, 1, static_cast<std::size_t>(a.rows), order) || !matrix(call, 2, b))
      return false;
    if (a.rows != a.columns || b.rows != a.rows) return call.ctx.argument_error("dimensions do not fit");
    auto* getrs =
        openblas<void(const char*, const int*, const int*, const T*, const int*, const int*, T*, const int*, int*)>(
            routine<T>("getrs").c_str());
    if (!getrs) return missing(call);
    if (!time_suffices<T>(call, 2.6 * a.rows * a.rows * b.columns)) return false;
    std::vector<int> swaps;
    for (int k = 0; k < a.rows; ++k) {
      std::int64_t swap = reinterpret_cast<const std::int64_t*>(order->data)[k];
      if (swap < 1 || swap > a.rows) return call.ctx.argument_error("invalid pivot");
      swaps.push_back(static_cast<int>(swap));
    }
    int info = 0;
    getrs("N", &a.rows, &b.columns, a.data, &a.leading, swaps.data(), b.data, &b.leading, &info);
    return call.give_int(info);
  }
};

// lapack_potrf(A): Cholesky, upper triangle
template <class T>
struct Potrf {
  static bool run(Call& call) {
    Matrix<T> a;
    if (!matrix(call, 0, a)) return false;
    if (a.rows != a.columns) return call.ctx.argument_error("the matrix is not square");
    auto* potrf = openblas<void(const char*, const int*, T*, const int*, int*)>(routine<T>("potrf").c_str());
    if (!potrf) return missing(call);
    if (!time_suffices<T>(call, 0.5 * volume(a))) return false;
    int info = 0;
    potrf("U", &a.rows, a.data, &a.leading, &info);
    return call.give_int(info);
  }
};

// lapack_trtrs(upper, A, B)
template <class T>
struct Trtrs {
  static bool run(Call& call) {
    bool upper = false;
    Matrix<T> a, b;
    if (!call.boolean(0, upper) || !matrix(call, 1, a) || !matrix(call, 2, b)) return false;
    if (a.rows != a.columns || b.rows != a.rows) return call.ctx.argument_error("dimensions do not fit");
    auto* trtrs = openblas<void(const char*, const char*, const char*, const int*, const int*, const T*, const int*, T*,
                                const int*, int*)>(routine<T>("trtrs").c_str());
    if (!trtrs) return missing(call);
    if (!time_suffices<T>(call, 1.3 * a.rows * a.rows * b.columns)) return false;
    int info = 0;
    trtrs(upper ? "U" : "L", "N", "N", &a.rows, &b.columns, a.data, &a.leading, b.data, &b.leading, &info);
    return call.give_int(info);
  }
};

// lapack_gelsd(A, B): least squares; the solution in the first rows of B, which has max(m, n) rows
template <class T>
struct Gelsd {
  struct State {
    Matrix<T> a, b;
    std::vector<Real<T>> singular, real_work = std::vector<Real<T>>(1);
    std::vector<T> work = std::vector<T>(1);
    std::vector<int> integers = std::vector<int>(1);
    int rank = 0, size = -1, info = 0;
  };
  static bool run(Call& call) {
    const auto state = std::make_shared<State>();
    auto& [a, b, singular, real_work, work, integers, rank, size, info] = *state;
    if (!matrix(call, 0, a) || !matrix(call, 1, b)) return false;
    if (b.rows < std::max(a.rows, a.columns)) return call.ctx.argument_error("dimensions do not fit");
    using R = Real<T>;
    const std::string name = routine<T>("gelsd");
    auto* of_reals = openblas<void(const int*, const int*, const int*, T*, const int*, T*, const int*, R*, const R*,
                                   int*, T*, const int*, int*, int*)>(name.c_str());
    auto* of_complex = openblas<void(const int*, const int*, const int*, T*, const int*, T*, const int*, R*, const R*,
                                     int*, T*, const int*, R*, int*, int*)>(name.c_str());
    if (!of_reals) return missing(call);
    if (!time_suffices<T>(call, 6 * volume(a) + 8.0 * a.rows * a.columns * b.columns)) return false;
    singular.resize(static_cast<std::size_t>(std::max(1, std::min(a.rows, a.columns))));
    const auto step = [of_reals, of_complex](State& state) {
      auto& [a, b, singular, real_work, work, integers, rank, size, info] = state;
      const R tolerance = -1;
      if constexpr (is_complex<T>) {
        of_complex(&a.rows, &a.columns, &b.columns, a.data, &a.leading, b.data, &b.leading, singular.data(), &tolerance,
                   &rank, work.data(), &size, real_work.data(), integers.data(), &info);
      } else {
        of_reals(&a.rows, &a.columns, &b.columns, a.data, &a.leading, b.data, &b.leading, singular.data(), &tolerance,
                 &rank, work.data(), &size, integers.data(), &info);
      }
    };
    step(*state);
    size = wanted_size(work[0]);
    work.resize(static_cast<std::size_t>(size));
    real_work.resize(static_cast<std::size_t>(wanted_size(real_work[0])));
    integers.resize(static_cast<std::size_t>(std::max(1, integers[0])));
    if (!run_apart(call, 6 * volume(a) + 8.0 * a.rows * a.columns * b.columns, state, step, a, b)) return false;
    if (info != 0) return call.ctx.raise_error("least squares did not converge");
    return call.give_int(rank);
  }
};

// lapack_qr(A, R): A becomes Q's columns
template <class T>
struct Qr {
  static bool run(Call& call) {
    Matrix<T> a, r;
    if (!matrix(call, 0, a) || !matrix(call, 1, r)) return false;
    int k = std::min(a.rows, a.columns);
    if (r.rows != k || r.columns != a.columns) return call.ctx.argument_error("dimensions do not fit");
    auto* geqrf =
        openblas<void(const int*, const int*, T*, const int*, T*, T*, const int*, int*)>(routine<T>("geqrf").c_str());
    auto* orgqr = openblas<void(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*, int*)>(
        routine<T>("orgqr", "ungqr").c_str());
    if (!geqrf || !orgqr) return missing(call);
    if (!time_suffices<T>(call, 3.5 * volume(a))) return false;
    if (k == 0) return call.give_int(0);
    std::vector<T> tau(static_cast<std::size_t>(k)), work(static_cast<std::size_t>(std::max(a.rows, a.columns)) * 64);
    int size = static_cast<int>(work.size()), info = 0;
    geqrf(&a.rows, &a.columns, a.data, &a.leading, tau.data(), work.data(), &size, &info);
    for (int j = 0; j < a.columns; ++j)
      for (int i = 0; i < k; ++i) r.data[i + j * k] = i <= j ? a.data[i + j * a.rows] : T(0);
    orgqr(&a.rows, &k, &k, a.data, &a.leading, tau.data(), work.data(), &size, &info);
    return call.give_int(info);
  }
};

// lapack_syevd(upper, A, values): A becomes the eigenvectors. Of a Hermitian matrix by heevr, whose vectors have the
// phases that Julia's have.
template <class T>
struct Syevd {
  struct State {
    Matrix<T> a;
    Matrix<Real<T>> values;
    std::vector<T> work = std::vector<T>(1), vectors;
    std::vector<Real<T>> real_work = std::vector<Real<T>>(1);
    std::vector<int> integers = std::vector<int>(1), support;
    int size = -1, real_size = -1, integer_size = -1, found = 0, info = 0;
  };
  using Shared = std::shared_ptr<State>;
  static bool run(Call& call) {
    bool upper = false;
    const Shared state = std::make_shared<State>();
    auto& a = state->a;
    auto& values = state->values;
    if (!call.boolean(0, upper) || !matrix(call, 1, a) || !matrix(call, 2, values)) return false;
    if (a.rows != a.columns || !has_length(values, a.rows)) return call.ctx.argument_error("dimensions do not fit");
    if (a.rows == 0) return call.give_int(0);
    bool ended = true;
    if constexpr (is_complex<T>) {
      ended = hermitian(call, upper ? "U" : "L", state);
    } else {
      ended = symmetric(call, upper ? "U" : "L", state);
    }
    if (!ended) return false;
    if (state->info != 0) return call.ctx.raise_error("the eigenvalues did not converge");
    return call.give_int(0);
  }

 private:
  static bool symmetric(Call& call, const char* triangle, const Shared& state) {
    auto* syevd = openblas<void(const char*, const char*, const int*, T*, const int*, Real<T>*, T*, const int*, int*,
                                const int*, int*)>(routine<T>("syevd").c_str());
    if (!syevd) return missing(call);
    if (!time_suffices<T>(call, 8 * volume(state->a))) return false;
    const auto step = [syevd, triangle](State& s) {
      syevd("V", triangle, &s.a.rows, s.a.data, &s.a.leading, s.values.data, s.work.data(), &s.size, s.integers.data(),
            &s.integer_size, &s.info);
    };
    step(*state);
    state->size = wanted_size(state->work[0]);
    state->integer_size = std::max(1, state->integers[0]);
    state->work.resize(static_cast<std::size_t>(state->size));
    state->integers.resize(static_cast<std::size_t>(state->integer_size));
    return run_apart(call, 8 * volume(state->a), state, step, state->a, state->values);
  }
  static bool hermitian(Call& call, const char* triangle, const Shared& state) {
    using R = Real<T>;
    auto* heevr = openblas<void(const char*, const char*, const char*, const int*, T*, const int*, const R*, const R*,
                                const int*, const int*, const R*, int*, R*, T*, const int*, int*, T*, const int*, R*,
                                const int*, int*, const int*, int*)>(routine<T>("heevr").c_str());
    if (!heevr) return missing(call);
    if (!time_suffices<T>(call, 8 * volume(state->a))) return false;
    state->vectors.resize(static_cast<std::size_t>(state->a.rows) * static_cast<std::size_t>(state->a.rows));
    state->support.resize(2 * static_cast<std::size_t>(state->a.rows));
    const auto compute = [heevr, triangle](State& s) {
      const R none = 0, least = -1;
      const int all = 0;
      heevr("V", "A", triangle, &s.a.rows, s.a.data, &s.a.leading, &none, &none, &all, &all, &least, &s.found,
            s.values.data, s.vectors.data(), &s.a.leading, s.support.data(), s.work.data(), &s.size, s.real_work.data(),
            &s.real_size, s.integers.data(), &s.integer_size, &s.info);
    };
    compute(*state);
    state->size = wanted_size(state->work[0]);
    state->real_size = wanted_size(state->real_work[0]);
    state->integer_size = std::max(1, state->integers[0]);
    state->work.resize(static_cast<std::size_t>(state->size));
    state->real_work.resize(static_cast<std::size_t>(state->real_size));
    state->integers.resize(static_cast<std::size_t>(state->integer_size));
    const auto step = [compute](State& s) {
      compute(s);
      if (s.info == 0 && s.found < s.a.rows) s.info = 1;
      std::copy(s.vectors.begin(), s.vectors.end(), s.a.data);
    };
    return run_apart(call, 8 * volume(state->a), state, step, state->a, state->values);
  }
};

// lapack_geev(A, re, im, V): A is overwritten; a conjugate pair's vectors are V[:, j] ± i V[:, j+1]. Where V has no
// columns, the eigenvalues alone are computed.
template <class T>
struct Geev {
  struct State {
    Matrix<T> a, re, im, v;
    std::vector<T> work = std::vector<T>(1);
    int size = -1, info = 0;
  };
  static bool run(Call& call) {
    if constexpr (is_complex<T>) return not_real<T>(call);
    const auto state = std::make_shared<State>();
    auto& [a, re, im, v, work, size, info] = *state;
    if (!matrix(call, 0, a) || !matrix(call, 1, re) || !matrix(call, 2, im) || !matrix(call, 3, v)) return false;
    if (a.rows != a.columns || !has_length(re, a.rows) || !has_length(im, a.rows) || v.rows != a.rows ||
        (v.columns != a.rows && v.columns != 0))
      return call.ctx.argument_error("dimensions do not fit");
    const char* job = v.columns == 0 ? "N" : "V";
    auto* geev = openblas<void(const char*, const char*, const int*, T*, const int*, T*, T*, T*, const int*, T*,
                               const int*, T*, const int*, int*)>(routine<T>("geev").c_str());
    if (!geev) return missing(call);
    if (!time_suffices<T>(call, 26 * volume(a))) return false;
    const auto step = [geev, job](State& state) {
      auto& [a, re, im, v, work, size, info] = state;
      geev("N", job, &a.rows, a.data, &a.leading, re.data, im.data, nullptr, &a.leading, v.data, &v.leading,
           work.data(), &size, &info);
    };
    step(*state);
    size = wanted_size(work[0]);
    work.resize(static_cast<std::size_t>(size));
    if (!run_apart(call, 26 * volume(a), state, step, a, re, im, v)) return false;
    if (info != 0) return call.ctx.raise_error("the eigenvalues did not converge");
    return call.give_int(0);
  }
};

// lapack_complex_geev(A, values, V): A is overwritten; V as above
template <class T>
struct ComplexGeev {
  struct State {
    Matrix<T> a, values, v;
    std::vector<T> work = std::vector<T>(1);
    std::vector<Real<T>> real_work;
    int size = -1, info = 0;
  };
  static bool run(Call& call) {
    if constexpr (!is_complex<T>) return not_complex<T>(call);
    using R = Real<T>;
    const auto state = std::make_shared<State>();
    auto& [a, values, v, work, real_work, size, info] = *state;
    if (!matrix(call, 0, a) || !matrix(call, 1, values) || !matrix(call, 2, v)) return false;
    if (a.rows != a.columns || !has_length(values, a.rows) || v.rows != a.rows ||
        (v.columns != a.rows && v.columns != 0))
      return call.ctx.argument_error("dimensions do not fit");
    const char* job = v.columns == 0 ? "N" : "V";
    auto* geev = openblas<void(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, T*, const int*,
                               T*, const int*, R*, int*)>(routine<T>("geev").c_str());
    if (!geev) return missing(call);
    if (!time_suffices<T>(call, 26 * volume(a))) return false;
    if (a.rows == 0) return call.give_int(0);
    real_work.resize(2 * static_cast<std::size_t>(a.rows));
    const auto step = [geev, job](State& state) {
      auto& [a, values, v, work, real_work, size, info] = state;
      geev("N", job, &a.rows, a.data, &a.leading, values.data, nullptr, &a.leading, v.data, &v.leading, work.data(),
           &size, real_work.data(), &info);
    };
    step(*state);
    size = wanted_size(work[0]);
    work.resize(static_cast<std::size_t>(size));
    if (!run_apart(call, 26 * volume(a), state, step, a, values, v)) return false;
    if (info != 0) return call.ctx.raise_error("the eigenvalues did not converge");
    return call.give_int(0);
  }
};

// lapack_gees(A, re, im, Z): the real Schur form; A becomes quasi-triangular, Z its vectors
template <class T>
struct Gees {
  struct State {
    Matrix<T> a, re, im, z;
    std::vector<T> work = std::vector<T>(1);
    int size = -1, selected = 0, info = 0;
  };
  static bool run(Call& call) {
    if constexpr (is_complex<T>) return not_real<T>(call);
    const auto state = std::make_shared<State>();
    auto& [a, re, im, z, work, size, selected, info] = *state;
    if (!matrix(call, 0, a) || !matrix(call, 1, re) || !matrix(call, 2, im) || !matrix(call, 3, z)) return false;
    if (a.rows != a.columns || !has_length(re, a.rows) || !has_length(im, a.rows) || z.rows != a.rows ||
        z.columns != a.rows)
      return call.ctx.argument_error("dimensions do not fit");
    auto* gees = openblas<void(const char*, const char*, void*, const int*, T*, const int*, int*, T*, T*, T*,
                               const int*, T*, const int*, int*, int*)>(routine<T>("gees").c_str());
    if (!gees) return missing(call);
    if (!time_suffices<T>(call, 29 * volume(a))) return false;
    if (a.rows == 0) return call.give_int(0);
    const auto step = [gees](State& state) {
      auto& [a, re, im, z, work, size, selected, info] = state;
      gees("V", "N", nullptr, &a.rows, a.data, &a.leading, &selected, re.data, im.data, z.data, &z.leading, work.data(),
           &size, nullptr, &info);
    };
    step(*state);
    size = wanted_size(work[0]);
    work.resize(static_cast<std::size_t>(size));
    if (!run_apart(call, 29 * volume(a), state, step, a, re, im, z)) return false;
    if (info != 0) return call.ctx.raise_error("the eigenvalues did not converge");
    return call.give_int(0);
  }
};

// lapack_complex_gees(A, values, Z): A becomes upper triangular, Z its vectors
template <class T>
struct ComplexGees {
  struct State {
    Matrix<T> a, values, z;
    std::vector<T> work = std::vector<T>(1);
    std::vector<Real<T>> real_work;
    int size = -1, selected = 0, info = 0;
  };
  static bool run(Call& call) {
    if constexpr (!is_complex<T>) return not_complex<T>(call);
    using R = Real<T>;
    const auto state = std::make_shared<State>();
    auto& [a, values, z, work, real_work, size, selected, info] = *state;
    if (!matrix(call, 0, a) || !matrix(call, 1, values) || !matrix(call, 2, z)) return false;
    if (a.rows != a.columns || !has_length(values, a.rows) || z.rows != a.rows || z.columns != a.rows)
      return call.ctx.argument_error("dimensions do not fit");
    auto* gees = openblas<void(const char*, const char*, void*, const int*, T*, const int*, int*, T*, T*, const int*,
                               T*, const int*, R*, int*, int*)>(routine<T>("gees").c_str());
    if (!gees) return missing(call);
    if (!time_suffices<T>(call, 29 * volume(a))) return false;
    if (a.rows == 0) return call.give_int(0);
    real_work.resize(static_cast<std::size_t>(a.rows));
    const auto step = [gees](State& state) {
      auto& [a, values, z, work, real_work, size, selected, info] = state;
      gees("V", "N", nullptr, &a.rows, a.data, &a.leading, &selected, values.data, z.data, &z.leading, work.data(),
           &size, real_work.data(), nullptr, &info);
    };
    step(*state);
    size = wanted_size(work[0]);
    work.resize(static_cast<std::size_t>(size));
    if (!run_apart(call, 29 * volume(a), state, step, a, values, z)) return false;
    if (info != 0) return call.ctx.raise_error("the eigenvalues did not converge");
    return call.give_int(0);
  }
};

// lapack_gehrd(A, Q): A becomes its Hessenberg form, Q is filled
template <class T>
struct Gehrd {
  static bool run(Call& call) {
    Matrix<T> a, q;
    if (!matrix(call, 0, a) || !matrix(call, 1, q)) return false;
    if (a.rows != a.columns || q.rows != a.rows || q.columns != a.rows)
      return call.ctx.argument_error("dimensions do not fit");
    using Routine = void(const int*, const int*, const int*, T*, const int*, T*, T*, const int*, int*);
    auto* gehrd = openblas<Routine>(routine<T>("gehrd").c_str());
    auto* orghr = openblas<Routine>(routine<T>("orghr", "unghr").c_str());
    if (!gehrd || !orghr) return missing(call);
    if (!time_suffices<T>(call, 8 * volume(a))) return false;
    const int n = a.rows, first = 1;
    if (n == 0) return call.give_int(0);
    std::vector<T> tau(static_cast<std::size_t>(n)), work(static_cast<std::size_t>(n) * 64);
    int size = static_cast<int>(work.size()), info = 0;
    gehrd(&n, &first, &n, a.data, &a.leading, tau.data(), work.data(), &size, &info);
    std::copy(a.data, a.data + std::size_t(n) * std::size_t(n), q.data);
    orghr(&n, &first, &n, q.data, &q.leading, tau.data(), work.data(), &size, &info);
    for (int j = 0; j < n; ++j)
      for (int i = j + 2; i < n; ++i) a.data[i + std::size_t(j) * std::size_t(n)] = T(0);
    return call.give_int(info);
  }
};

// lapack_hetrd(upper, A, d, e): the tridiagonal form of a symmetric or Hermitian matrix; A becomes Q
template <class T>
struct Hetrd {
  static bool run(Call& call) {
    using R = Real<T>;
    bool upper = false;
    Matrix<T> a;
    Matrix<R> d, e;
    if (!call.boolean(0, upper) || !matrix(call, 1, a) || !matrix(call, 2, d) || !matrix(call, 3, e)) return false;
    const int n = a.rows;
    if (n != a.columns || !has_length(d, n) || !has_length(e, std::max(0, n - 1)))
      return call.ctx.argument_error("dimensions do not fit");
    auto* hetrd = openblas<void(const char*, const int*, T*, const int*, R*, R*, T*, T*, const int*, int*)>(
        routine<T>("sytrd", "hetrd").c_str());
    auto* orgtr = openblas<void(const char*, const int*, T*, const int*, const T*, T*, const int*, int*)>(
        routine<T>("orgtr", "ungtr").c_str());
    if (!hetrd || !orgtr) return missing(call);
    if (!time_suffices<T>(call, 5 * volume(a))) return false;
    if (n == 0) return call.give_int(0);
    const char* triangle = upper ? "U" : "L";
    std::vector<T> tau(static_cast<std::size_t>(n)), work(static_cast<std::size_t>(n) * 64);
    int size = static_cast<int>(work.size()), info = 0;
    hetrd(triangle, &n, a.data, &a.leading, d.data, e.data, tau.data(), work.data(), &size, &info);
    orgtr(triangle, &n, a.data, &a.leading, tau.data(), work.data(), &size, &info);
    return call.give_int(info);
  }
};

// lapack_bunch_kaufman(upper, hermitian, A, e, pivots): A becomes the triangular factor with the diagonal of D on its
// diagonal, e the elements of D beside it (syconv); pivots are LAPACK's
template <class T>
struct BunchKaufman {
  static bool run(Call& call) {
    bool upper = false, hermitian = false;
    Matrix<T> a, e;
    ArrayObject* order = nullptr;
    if (!call.boolean(0, upper) || !call.boolean(1, hermitian) || !matrix(call, 2, a) || !matrix(call, 3, e) ||
        !pivots(call, 4, static_cast<std::size_t>(a.rows), order))
      return false;
    const int n = a.rows;
    if (n != a.columns || !has_length(e, n)) return call.ctx.argument_error("dimensions do not fit");
    auto* factor = openblas<void(const char*, const int*, T*, const int*, int*, T*, const int*, int*)>(
        routine<T>("sytrf", hermitian ? "hetrf" : "sytrf").c_str());
    auto* convert = openblas<void(const char*, const char*, const int*, T*, const int*, const int*, T*, int*)>(
        routine<T>("syconv").c_str());
    if (!factor || !convert) return missing(call);
    if (!time_suffices<T>(call, volume(a))) return false;
    if (n == 0) return call.give_int(0);
    const char* triangle = upper ? "U" : "L";
    std::vector<int> swaps(static_cast<std::size_t>(n));
    std::vector<T> work(static_cast<std::size_t>(n) * 64);
    int size = static_cast<int>(work.size()), info = 0, converted = 0;
    factor(triangle, &n, a.data, &a.leading, swaps.data(), work.data(), &size, &info);
    convert(triangle, "C", &n, a.data, &a.leading, swaps.data(), e.data, &converted);
    for (int k = 0; k < n; ++k) reinterpret_cast<std::int64_t*>(order->data)[k] = swaps[static_cast<std::size_t>(k)];
    return call.give_int(info);
  }
};

// lapack_gesdd(A, S, U, Vt) → 0; other numbers: it did not converge. Where U and Vt have no elements, the singular values alone are computed
template <class T>
struct Gesdd {
  struct State {
    Matrix<T> a, u, vt;
    Matrix<Real<T>> s;
    std::vector<T> work = std::vector<T>(1);
    std::vector<Real<T>> real_work;
    std::vector<int> integers;
    int size = -1, info = 0;
  };
  static bool run(Call& call) {
    using R = Real<T>;
    const auto state = std::make_shared<State>();
    auto& [a, u, vt, s, work, real_work, integers, size, info] = *state;
    if (!matrix(call, 0, a) || !matrix(call, 1, s) || !matrix(call, 2, u) || !matrix(call, 3, vt)) return false;
    int k = std::min(a.rows, a.columns);
    const bool alone = u.rows == 0 && u.columns == 0 && vt.rows == 0 && vt.columns == 0;
    if (!has_length(s, k) ||
        (!alone && (u.rows != a.rows || u.columns != k || vt.rows != k || vt.columns != a.columns)))
      return call.ctx.argument_error("dimensions do not fit");
    if (k == 0) return call.give_int(0);
    const std::string name = routine<T>("gesdd");
    auto* of_reals = openblas<void(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*,
                                   const int*, T*, const int*, int*, int*)>(name.c_str());
    auto* of_complex = openblas<void(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*,
                                     const int*, T*, const int*, R*, int*, int*)>(name.c_str());
    if (!of_reals) return missing(call);
    if (!time_suffices<T>(call, 14 * volume(a))) return false;
    const std::size_t less = static_cast<std::size_t>(k), more = static_cast<std::size_t>(std::max(a.rows, a.columns));
    real_work.resize(is_complex<T> ? std::max(5 * less * less + 5 * less, 2 * more * less + 2 * less * less + less)
                                   : 1);
    integers.resize(8 * less);
    const auto step = [of_reals, of_complex, alone](State& state) {
      auto& [a, u, vt, s, work, real_work, integers, size, info] = state;
      if constexpr (is_complex<T>) {
        of_complex(alone ? "N" : "S", &a.rows, &a.columns, a.data, &a.leading, s.data, u.data, &u.leading, vt.data,
                   &vt.leading, work.data(), &size, real_work.data(), integers.data(), &info);
      } else {
        of_reals(alone ? "N" : "S", &a.rows, &a.columns, a.data, &a.leading, s.data, u.data, &u.leading, vt.data,
                 &vt.leading, work.data(), &size, integers.data(), &info);
      }
    };
    step(*state);
    size = wanted_size(work[0]);
    work.resize(static_cast<std::size_t>(size));
    if (!run_apart(call, 14 * volume(a), state, step, a, u, vt, s)) return false;
    return call.give_int(info);
  }
};

template <template <class> class Compute, std::size_t arity, std::size_t which = 0>
bool native(Context& ctx, const Value* args, std::size_t count, Value& result) {
  return by_element<Compute>(ctx, args, count, result, arity, which);
}

constexpr std::uint32_t effect_factorises = effect_reads | effect_writes | effect_throws;

const NativeInfo lapack_natives[] = {
    {"lapack_getrf", native<Getrf, 2>, effect_factorises, returns_int, false, false, true},
    {"lapack_getrs", native<Getrs, 3>, effect_factorises, returns_int, false, false, true},
    {"lapack_potrf", native<Potrf, 1>, effect_factorises, returns_int, false, false, true},
    {"lapack_trtrs", native<Trtrs, 3, 1>, effect_factorises, returns_int, false, false, true},
    {"lapack_gelsd", native<Gelsd, 2>, effect_factorises, returns_int, false, false, true},
    {"lapack_qr", native<Qr, 2>, effect_factorises, returns_int, false, false, true},
    {"lapack_syevd", native<Syevd, 3, 1>, effect_factorises, returns_int, false, false, true},
    {"lapack_geev", native<Geev, 4>, effect_factorises, returns_int, false, false, true},
    {"lapack_gees", native<Gees, 4>, effect_factorises, returns_int, false, false, true},
    {"lapack_complex_geev", native<ComplexGeev, 3>, effect_factorises, returns_int, false, false, true},
    {"lapack_complex_gees", native<ComplexGees, 3>, effect_factorises, returns_int, false, false, true},
    {"lapack_gehrd", native<Gehrd, 2>, effect_factorises, returns_int, false, false, true},
    {"lapack_hetrd", native<Hetrd, 4, 1>, effect_factorises, returns_int, false, false, true},
    {"lapack_bunch_kaufman", native<BunchKaufman, 5, 2>, effect_factorises, returns_int, false, false, true},
    {"lapack_gesdd", native<Gesdd, 4>, effect_factorises, returns_int, false, false, true},
};

}  // namespace

void define_lapack_natives(Runtime& runtime) { define_all(runtime, lapack_natives); }

}  // namespace slope::stdlib
