// Factorisations by LAPACK, in place, for Float64 and Float32 matrices. Each native gives LAPACK's info, or the rank.
//
// LAPACK cannot be interrupted. Under a time limit, one that would take longer than what is left ends the script before
// it begins (time_suffices).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
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

// A matrix argument with its dimensions as LAPACK wants them.
template <class T>
struct Matrix {
  T* data = nullptr;
  int rows = 0;
  int columns = 0;
  int leading = 1;
};

template <class T>
const Type* element(Call& call);
template <>
const Type* element<double>(Call& call) {
  return call.builtin.float64;
}
template <>
const Type* element<float>(Call& call) {
  return call.builtin.float32;
}
template <class T>
std::string routine(const char* name) {
  return (sizeof(T) == 8 ? "d" : "s") + std::string(name) + "_";
}

template <class T>
bool matrix(Call& call, std::size_t i, Matrix<T>& out) {
  ArrayObject* a = nullptr;
  if (!call.array(i, a)) return false;
  int dims = array_ndims(a);
  if (array_element_type(a) != element<T>(call) || dims < 1 || dims > 2)
    return call.ctx.type_error("lapack", call.runtime.types.array_of(element<T>(call), 2), call[i]);
  // An empty one may have any number of rows.
  constexpr std::int64_t most = 2147483647;
  if (a->length > most || dims_of(a)[0] > most || (dims == 2 && dims_of(a)[1] > most))
    return call.ctx.argument_error("the matrix is too large for LAPACK");
  out.data = reinterpret_cast<T*>(a->data);
  out.rows = static_cast<int>(dims_of(a)[0]);
  out.columns = dims == 2 ? static_cast<int>(dims_of(a)[1]) : 1;
  out.leading = std::max(1, out.rows);
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
  return array_element_type(a) == call.builtin.float32 ? Compute<float>::run(call) : Compute<double>::run(call);
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

template <class T>
double volume(const Matrix<T>& a) {
  return double(a.rows) * a.columns * std::min(a.rows, a.columns);
}

bool pivots(Call& call, std::size_t i, std::size_t n, ArrayObject*& out) {
  if (!call.array_of(i, call.builtin.int64, 1, out)) return false;
  return out->length >= static_cast<std::int64_t>(n) || call.ctx.argument_error("too few pivots");
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
  static bool run(Call& call) {
    Matrix<T> a, b;
    if (!matrix(call, 0, a) || !matrix(call, 1, b)) return false;
    if (b.rows < std::max(a.rows, a.columns)) return call.ctx.argument_error("dimensions do not fit");
    auto* gelsd = openblas<void(const int*, const int*, const int*, T*, const int*, T*, const int*, T*, const T*, int*,
                                T*, const int*, int*, int*)>(routine<T>("gelsd").c_str());
    if (!gelsd) return missing(call);
    if (!time_suffices<T>(call, 6 * volume(a) + 8.0 * a.rows * a.columns * b.columns)) return false;
    std::vector<T> singular(static_cast<std::size_t>(std::max(1, std::min(a.rows, a.columns)))), work(1);
    std::vector<int> integers(1);
    T tolerance = -1;
    int rank = 0, size = -1, info = 0;
    gelsd(&a.rows, &a.columns, &b.columns, a.data, &a.leading, b.data, &b.leading, singular.data(), &tolerance, &rank,
          work.data(), &size, integers.data(), &info);
    size = static_cast<int>(work[0]);
    work.resize(static_cast<std::size_t>(std::max(1, size)));
    integers.resize(static_cast<std::size_t>(std::max(1, integers[0])));
    gelsd(&a.rows, &a.columns, &b.columns, a.data, &a.leading, b.data, &b.leading, singular.data(), &tolerance, &rank,
          work.data(), &size, integers.data(), &info);
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
        routine<T>("orgqr").c_str());
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

// lapack_syevd(A, values): A becomes the eigenvectors
template <class T>
struct Syevd {
  static bool run(Call& call) {
    Matrix<T> a, values;
    if (!matrix(call, 0, a) || !matrix(call, 1, values)) return false;
    if (a.rows != a.columns || !has_length(values, a.rows)) return call.ctx.argument_error("dimensions do not fit");
    auto* syevd = openblas<void(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*,
                                const int*, int*)>(routine<T>("syevd").c_str());
    if (!syevd) return missing(call);
    if (!time_suffices<T>(call, 8 * volume(a))) return false;
    std::vector<T> work(1);
    std::vector<int> integers(1);
    int size = -1, integer_size = -1, info = 0;
    syevd("V", "U", &a.rows, a.data, &a.leading, values.data, work.data(), &size, integers.data(), &integer_size,
          &info);
    size = static_cast<int>(work[0]);
    integer_size = integers[0];
    work.resize(static_cast<std::size_t>(std::max(1, size)));
    integers.resize(static_cast<std::size_t>(std::max(1, integer_size)));
    syevd("V", "U", &a.rows, a.data, &a.leading, values.data, work.data(), &size, integers.data(), &integer_size,
          &info);
    if (info != 0) return call.ctx.raise_error("the eigenvalues did not converge");
    return call.give_int(0);
  }
};

// lapack_geev(A, re, im, V): A is overwritten; a conjugate pair's vectors are V[:, j] ± i V[:, j+1]
template <class T>
struct Geev {
  static bool run(Call& call) {
    Matrix<T> a, re, im, v;
    if (!matrix(call, 0, a) || !matrix(call, 1, re) || !matrix(call, 2, im) || !matrix(call, 3, v)) return false;
    if (a.rows != a.columns || !has_length(re, a.rows) || !has_length(im, a.rows) || v.rows != a.rows ||
        v.columns != a.rows)
      return call.ctx.argument_error("dimensions do not fit");
    auto* geev = openblas<void(const char*, const char*, const int*, T*, const int*, T*, T*, T*, const int*, T*,
                               const int*, T*, const int*, int*)>(routine<T>("geev").c_str());
    if (!geev) return missing(call);
    if (!time_suffices<T>(call, 26 * volume(a))) return false;
    std::vector<T> work(1);
    int size = -1, info = 0;
    geev("N", "V", &a.rows, a.data, &a.leading, re.data, im.data, nullptr, &a.leading, v.data, &v.leading, work.data(),
         &size, &info);
    size = static_cast<int>(work[0]);
    work.resize(static_cast<std::size_t>(std::max(1, size)));
    geev("N", "V", &a.rows, a.data, &a.leading, re.data, im.data, nullptr, &a.leading, v.data, &v.leading, work.data(),
         &size, &info);
    if (info != 0) return call.ctx.raise_error("the eigenvalues did not converge");
    return call.give_int(0);
  }
};

// lapack_gees(A, re, im, Z): the real Schur form; A becomes quasi-triangular, Z its vectors
template <class T>
struct Gees {
  static bool run(Call& call) {
    Matrix<T> a, re, im, z;
    if (!matrix(call, 0, a) || !matrix(call, 1, re) || !matrix(call, 2, im) || !matrix(call, 3, z)) return false;
    if (a.rows != a.columns || !has_length(re, a.rows) || !has_length(im, a.rows) || z.rows != a.rows ||
        z.columns != a.rows)
      return call.ctx.argument_error("dimensions do not fit");
    auto* gees = openblas<void(const char*, const char*, void*, const int*, T*, const int*, int*, T*, T*, T*,
                               const int*, T*, const int*, int*, int*)>(routine<T>("gees").c_str());
    if (!gees) return missing(call);
    if (!time_suffices<T>(call, 29 * volume(a))) return false;
    if (a.rows == 0) return call.give_int(0);
    std::vector<T> work(1);
    int size = -1, selected = 0, info = 0;
    gees("V", "N", nullptr, &a.rows, a.data, &a.leading, &selected, re.data, im.data, z.data, &z.leading, work.data(),
         &size, nullptr, &info);
    size = static_cast<int>(work[0]);
    work.resize(static_cast<std::size_t>(std::max(1, size)));
    gees("V", "N", nullptr, &a.rows, a.data, &a.leading, &selected, re.data, im.data, z.data, &z.leading, work.data(),
         &size, nullptr, &info);
    if (info != 0) return call.ctx.raise_error("the eigenvalues did not converge");
    return call.give_int(0);
  }
};

// lapack_gesdd(A, S, U, Vt)
template <class T>
struct Gesdd {
  static bool run(Call& call) {
    Matrix<T> a, s, u, vt;
    if (!matrix(call, 0, a) || !matrix(call, 1, s) || !matrix(call, 2, u) || !matrix(call, 3, vt)) return false;
    int k = std::min(a.rows, a.columns);
    if (!has_length(s, k) || u.rows != a.rows || u.columns != k || vt.rows != k || vt.columns != a.columns)
      return call.ctx.argument_error("dimensions do not fit");
    if (k == 0) return call.give_int(0);
    auto* gesdd = openblas<void(const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*, const int*,
                                T*, const int*, int*, int*)>(routine<T>("gesdd").c_str());
    if (!gesdd) return missing(call);
    if (!time_suffices<T>(call, 14 * volume(a))) return false;
    std::vector<T> work(1);
    std::vector<int> integers(static_cast<std::size_t>(8 * k));
    int size = -1, info = 0;
    gesdd("S", &a.rows, &a.columns, a.data, &a.leading, s.data, u.data, &u.leading, vt.data, &vt.leading, work.data(),
          &size, integers.data(), &info);
    size = static_cast<int>(work[0]);
    work.resize(static_cast<std::size_t>(std::max(1, size)));
    gesdd("S", &a.rows, &a.columns, a.data, &a.leading, s.data, u.data, &u.leading, vt.data, &vt.leading, work.data(),
          &size, integers.data(), &info);
    if (info != 0) return call.ctx.raise_error("the singular values did not converge");
    return call.give_int(0);
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
    {"lapack_syevd", native<Syevd, 2>, effect_factorises, returns_int, false, false, true},
    {"lapack_geev", native<Geev, 4>, effect_factorises, returns_int, false, false, true},
    {"lapack_gees", native<Gees, 4>, effect_factorises, returns_int, false, false, true},
    {"lapack_gesdd", native<Gesdd, 4>, effect_factorises, returns_int, false, false, true},
};

}  // namespace

void define_lapack_natives(Runtime& runtime) { define_all(runtime, lapack_natives); }

}  // namespace slope::stdlib
