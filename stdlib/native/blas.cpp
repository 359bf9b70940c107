// y = α op(A) x + β y and C = α op(A) op(B) + β C for floats. Small products run in the kernels here, large ones in
// BLAS.
//
// The kernels of matrices and vectors walk down columns (arrays are column-major) and add four columns at a time, so that
// each element of the result is loaded and stored once for four multiplications. They are compiled for several
// instruction sets; the loader picks. Products of two matrices keep a tile of the result in registers where the processor
// has wide ones; otherwise they go column by column.
#include <algorithm>
#include <cstring>

#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"
#include "stdlib/native/openblas.hpp"

// The loader asks before the sanitizers are ready.
#if defined(__x86_64__) && defined(__ELF__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SLOPE_KERNEL __attribute__((target_clones("arch=haswell", "default"), optimize("O3", "fast-math")))
#else
#define SLOPE_KERNEL
#endif

namespace slope::stdlib {

namespace {

using Index = std::int64_t;

// Above so many multiplications the call of BLAS, and loading it, is worth it.
constexpr Index blas_from = 64 * 64 * 64;
constexpr Index multiplications_at_once = 200'000'000;

// y += A x (m × n, column-major)
template <class T>
inline void add_columns(Index m, Index n, const T* __restrict a, const T* __restrict x, T* __restrict y) {
  Index j = 0;
  for (; j + 3 < n; j += 4) {
    const T *a0 = a + j * m, *a1 = a0 + m, *a2 = a1 + m, *a3 = a2 + m;
    T x0 = x[j], x1 = x[j + 1], x2 = x[j + 2], x3 = x[j + 3];
    for (Index i = 0; i < m; ++i) y[i] += a0[i] * x0 + a1[i] * x1 + a2[i] * x2 + a3[i] * x3;
  }
  for (; j < n; ++j)
    for (Index i = 0; i < m; ++i) y[i] += a[j * m + i] * x[j];
}

// y += Aᵀ x
template <class T>
inline void add_dots(Index m, Index n, const T* __restrict a, const T* __restrict x, T* __restrict y) {
  Index j = 0;
  for (; j + 3 < n; j += 4) {
    const T *a0 = a + j * m, *a1 = a0 + m, *a2 = a1 + m, *a3 = a2 + m;
    T s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (Index i = 0; i < m; ++i) {
      s0 += a0[i] * x[i];
      s1 += a1[i] * x[i];
      s2 += a2[i] * x[i];
      s3 += a3[i] * x[i];
    }
    y[j] += s0;
    y[j + 1] += s1;
    y[j + 2] += s2;
    y[j + 3] += s3;
  }
  for (; j < n; ++j) {
    T s = 0;
    for (Index i = 0; i < m; ++i) s += a[j * m + i] * x[i];
    y[j] += s;
  }
}

SLOPE_KERNEL void gemv_kernel(Index m, Index n, const double* a, const double* x, double* y) {
  add_columns(m, n, a, x, y);
}
SLOPE_KERNEL void gemv_kernel(Index m, Index n, const float* a, const float* x, float* y) {
  add_columns(m, n, a, x, y);
}
SLOPE_KERNEL void gemv_transposed_kernel(Index m, Index n, const double* a, const double* x, double* y) {
  add_dots(m, n, a, x, y);
}
SLOPE_KERNEL void gemv_transposed_kernel(Index m, Index n, const float* a, const float* x, float* y) {
  add_dots(m, n, a, x, y);
}

// A matrix whose element (i, j) is at data[i * down + j * across]; the transpose has the two exchanged.
template <class T>
struct Strided {
  const T* data;
  Index down, across;
  const T* at(Index i, Index j) const { return data + i * down + j * across; }
};
// One product: C = α A B, added to what is there or not; A is m × k, B is k × n.
template <class T>
struct Product {
  Index m, n, k;
  Strided<T> a, b;
  T alpha;
  T* c;
  bool adds;
};

#if defined(__x86_64__) && defined(__GNUC__)
// Vectors of this length are lowered to numbers where the target lacks them, so each of these functions names it.
#define SLOPE_TILE __attribute__((target("avx2,fma"), always_inline))
#define SLOPE_TILES __attribute__((target("avx2,fma")))
// Rows i… of C's columns j…: `vectors` registers of rows times `columns`. The rows of A are at `a`, contiguous, their
// columns `across` apart.
template <class T, int vectors, int columns>
SLOPE_TILE inline void multiply_tile(const Product<T>& p, const T* a, Index across, Index i, Index j) {
  typedef T Vector __attribute__((vector_size(32)));
  constexpr Index width = sizeof(Vector) / sizeof(T);
  Vector sums[vectors][columns] = {};
  T* const c = p.c + i + j * p.m;
  const bool from_there = p.adds && p.alpha == T(1);
  if (from_there)
#pragma GCC unroll 8
    for (int q = 0; q < columns; ++q)
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) std::memcpy(&sums[v][q], c + v * width + q * p.m, sizeof(Vector));
  const T* b = p.b.at(0, j);
  for (Index l = 0; l < p.k; ++l, a += across, b += p.b.down) {
    Vector x[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) std::memcpy(&x[v], a + v * width, sizeof(Vector));
#pragma GCC unroll 8
    for (int q = 0; q < columns; ++q)
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[v][q] += x[v] * b[q * p.b.across];
  }
#pragma GCC unroll 8
  for (int q = 0; q < columns; ++q)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      T* to = c + v * width + q * p.m;
      Vector result = sums[v][q], old;
      if (!from_there) {
        result *= p.alpha;
        if (p.adds) {
          std::memcpy(&old, to, sizeof(Vector));
          result += old;
        }
      }
      std::memcpy(to, &result, sizeof(Vector));
    }
}
// One row.
template <class T, int columns>
SLOPE_TILE inline void multiply_row(const Product<T>& p, Index i, Index j) {
  T sums[columns] = {};
  const T* a = p.a.at(i, 0);
  const T* b = p.b.at(0, j);
  for (Index l = 0; l < p.k; ++l, a += p.a.across, b += p.b.down)
#pragma GCC unroll 8
    for (int q = 0; q < columns; ++q) sums[q] += *a * b[q * p.b.across];
#pragma GCC unroll 8
  for (int q = 0; q < columns; ++q) {
    T& to = p.c[i + (j + q) * p.m];
    to = p.alpha * sums[q] + (p.adds ? to : T(0));
  }
}

// Some rows of A, as they stand or, when A is a transpose, copied so that they are contiguous.
template <class T>
class Rows {
 public:
  Rows(const Product<T>& p, Index most) : p_(p), is_straight_(p.a.down == 1) {
    if (!is_straight_ && most * p.k > few) many_.resize(static_cast<std::size_t>(most * p.k));
  }
  // `count`, a multiple of 4, from row i on; the columns are then `across` apart.
  SLOPE_TILE const T* at(Index i, Index count, Index& across) {
    across = is_straight_ ? p_.a.across : count;
    if (is_straight_) return p_.a.data + i;
    T* to = many_.empty() ? few_ : many_.data();
    for (Index r = 0; r < count; r += 4) copy_four(p_.a.at(i + r, 0), to + r, count);
    return to;
  }

 private:
  SLOPE_TILE void copy_four(const T* a, T* to, Index across) const {
    typedef T Four __attribute__((vector_size(4 * sizeof(T))));
    const Index down = p_.a.down;
    Index l = 0;
    for (; l + 4 <= p_.k; l += 4) {
      Four row[4], half[4], column[4];
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) std::memcpy(&row[r], a + l + r * down, sizeof(Four));
#pragma GCC unroll 2
      for (int r = 0; r < 4; r += 2) {
        half[r] = __builtin_shufflevector(row[r], row[r + 1], 0, 4, 2, 6);
        half[r + 1] = __builtin_shufflevector(row[r], row[r + 1], 1, 5, 3, 7);
      }
#pragma GCC unroll 2
      for (int r = 0; r < 2; ++r) {
        column[r] = __builtin_shufflevector(half[r], half[r + 2], 0, 1, 4, 5);
        column[r + 2] = __builtin_shufflevector(half[r], half[r + 2], 2, 3, 6, 7);
      }
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q) std::memcpy(to + (l + q) * across, &column[q], sizeof(Four));
    }
    for (; l < p_.k; ++l)
      for (Index r = 0; r < 4; ++r) to[l * across + r] = a[l + r * down];
  }

  const Product<T>& p_;
  bool is_straight_;
  static constexpr Index few = 1024;  // a small product needs no memory of the heap
  alignas(32) T few_[few];
  std::vector<T> many_;
};

template <class T, int vectors>
SLOPE_TILE inline void multiply_rows(const Product<T>& p, Rows<T>& rows, Index i) {
  Index across = 0, j = 0;
  const T* a = rows.at(i, vectors * static_cast<Index>(32 / sizeof(T)), across);
  for (; j + 4 <= p.n; j += 4) multiply_tile<T, vectors, 4>(p, a, across, i, j);
  if (j + 2 <= p.n) {
    multiply_tile<T, vectors, 2>(p, a, across, i, j);
    j += 2;
  }
  if (j < p.n) multiply_tile<T, vectors, 1>(p, a, across, i, j);
}
template <class T>
SLOPE_TILE inline void multiply(const Product<T>& p) {
  constexpr Index width = 32 / sizeof(T);
  Index i = 0;
  if (p.m >= width) {
    Rows<T> rows(p, 2 * width);
    for (; i + 2 * width <= p.m; i += 2 * width) multiply_rows<T, 2>(p, rows, i);
    for (; i + width <= p.m; i += width) multiply_rows<T, 1>(p, rows, i);
  }
  for (; i < p.m; ++i) {
    Index j = 0;
    for (; j + 4 <= p.n; j += 4) multiply_row<T, 4>(p, i, j);
    if (j + 2 <= p.n) {
      multiply_row<T, 2>(p, i, j);
      j += 2;
    }
    if (j < p.n) multiply_row<T, 1>(p, i, j);
  }
}
SLOPE_TILES void multiply_in_tiles(const Product<double>& p) { multiply(p); }
SLOPE_TILES void multiply_in_tiles(const Product<float>& p) { multiply(p); }
bool has_tiles() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
}
#else
template <class T>
void multiply_in_tiles(const Product<T>&) {}
constexpr bool has_tiles() { return false; }
#endif

template <class T>
struct Routines;
template <>
struct Routines<double> {
  static constexpr const char* gemm = "dgemm_";
};
template <>
struct Routines<float> {
  static constexpr const char* gemm = "sgemm_";
};
template <class T>
using GemmRoutine = void(const char*, const char*, const int*, const int*, const int*, const T*, const T*, const int*,
                         const T*, const int*, const T*, T*, const int*);

template <class T>
T number(Value v);
template <>
double number(Value v) {
  return v.float64;
}
template <>
float number(Value v) {
  return v.float32;
}

template <class T>
void scale(T* y, Index n, T beta) {
  if (beta == T(0)) {
    std::fill(y, y + n, T(0));
  } else if (beta != T(1)) {
    for (Index i = 0; i < n; ++i) y[i] *= beta;
  }
}

template <class T>
bool gemv(Call& call, const Type* element) {
  bool transposed = false;
  ArrayObject *a = nullptr, *x = nullptr, *y = nullptr;
  if (!call.boolean(0, transposed) || !call.array_of(2, element, 2, a) || !call.array_of(3, element, 1, x) ||
      !call.array_of(5, element, 1, y))
    return false;
  Index m = dims_of(a)[0], n = dims_of(a)[1];
  if (x->length != (transposed ? m : n) || y->length != (transposed ? n : m))
    return call.ctx.raise_message(call.builtin.dimension_mismatch, "matrix and vectors do not fit");
  T alpha = number<T>(call[1]), beta = number<T>(call[4]);
  T* to = reinterpret_cast<T*>(y->data);
  const T* from = reinterpret_cast<const T*>(x->data);
  std::vector<T> scaled;
  if (alpha != T(1) || from == to) {
    scaled.assign(from, from + x->length);
    for (T& v : scaled) v *= alpha;
    from = scaled.data();
  }
  scale(to, y->length, beta);
  const T* matrix = reinterpret_cast<const T*>(a->data);
  if (transposed) {
    gemv_transposed_kernel(m, n, matrix, from, to);
  } else {
    gemv_kernel(m, n, matrix, from, to);
  }
  return call.give_nothing();
}

// From so many rows and columns of the result on, the kernel of products is faster than dot products by more than what
// the copy of rows costs. So it is when the dot products would be of few numbers.
constexpr Index copied_from = 8;
constexpr Index dots_from = 16;

// The same column by column; A is k × m with contiguous columns when it is transposed.
template <class T>
void multiply_by_columns(const Product<T>& p, bool transposed) {
  std::vector<T> column(static_cast<std::size_t>(p.k));
  if (!p.adds) std::fill(p.c, p.c + p.m * p.n, T(0));
  for (Index j = 0; j < p.n; ++j) {
    for (Index l = 0; l < p.k; ++l) column[static_cast<std::size_t>(l)] = p.alpha * *p.b.at(l, j);
    if (transposed) {
      gemv_transposed_kernel(p.k, p.m, p.a.data, column.data(), p.c + j * p.m);
    } else {
      gemv_kernel(p.m, p.k, p.a.data, column.data(), p.c + j * p.m);
    }
  }
}

// Of a matrix, without asking for its number of dimensions: what dims_of gives.
const Index* shape_of(const ArrayObject* matrix) { return matrix->words + 1; }

// C = α op(A) op(B) + β C; op(A) is m × k.
template <class T>
struct Gemm {
  bool ta, tb;
  Index m, n, k;
  T alpha;
  const T* a;
  const T* b;
  T beta;
  T* c;
  Index rows_of_a() const { return ta ? k : m; }
  Index rows_of_b() const { return tb ? n : k; }
};

// So many columns at a time as take some hundredths of a second: the host may want to stop it.
template <class T>
__attribute__((noinline)) bool multiply_by(GemmRoutine<T>* blas, Call& call, const Gemm<T>& p) {
  const int m = static_cast<int>(p.m), k = static_cast<int>(p.k);
  const int lda = std::max(1, static_cast<int>(p.rows_of_a())), ldb = std::max(1, static_cast<int>(p.rows_of_b())),
            ldc = std::max(1, m);
  const Index at_once = std::max<Index>(8, multiplications_at_once / std::max<Index>(1, p.m * p.k));
  for (Index j = 0; j < p.n; j += at_once) {
    if (call.ctx.interrupt.load(std::memory_order_relaxed)) return call.ctx.stop();
    const int columns = static_cast<int>(std::min(at_once, p.n - j));
    blas(p.ta ? "T" : "N", p.tb ? "T" : "N", &m, &columns, &k, &p.alpha, p.a, &lda, p.tb ? p.b + j : p.b + j * ldb,
         &ldb, &p.beta, p.c + j * p.m, &ldc);
  }
  return call.give_nothing();
}

template <class T>
bool multiply(Call& call, const Gemm<T>& p) {
  constexpr Index largest = 2147483647;
  if (static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) >= blas_from && p.m <= largest &&
      p.n <= largest && p.k <= largest) {
    if (auto* blas = openblas<GemmRoutine<T>>(Routines<T>::gemm)) return multiply_by(blas, call, p);
  }
  const bool adds = p.beta != T(0);
  if (adds && p.beta != T(1)) scale(p.c, p.m * p.n, p.beta);
  const Index lda = p.rows_of_a(), ldb = p.rows_of_b();
  const Strided<T> a{p.a, p.ta ? lda : 1, p.ta ? 1 : lda}, b{p.b, p.tb ? ldb : 1, p.tb ? 1 : ldb};
  const Product<T> product{p.m, p.n, p.k, a, b, p.alpha, p.c, adds};
  const bool by_dots = p.ta && (p.n < copied_from || p.m < copied_from) && p.k >= dots_from;
  if (by_dots || !has_tiles()) {
    multiply_by_columns(product, p.ta);
  } else {
    multiply_in_tiles(product);
  }
  return call.give_nothing();
}

// C is a factor, too.
template <class T>
__attribute__((noinline)) bool multiply_copies(Call& call, Gemm<T> p) {
  std::vector<T> a, b;
  if (p.a == p.c) p.a = (a.assign(p.a, p.a + p.m * p.k), a.data());
  if (p.b == p.c) p.b = (b.assign(p.b, p.b + p.k * p.n), b.data());
  return multiply(call, p);
}

template <class T>
bool gemm(Call& call, const Type* element) {
  bool ta = false, tb = false;
  ArrayObject *a = nullptr, *b = nullptr, *c = nullptr;
  if (!call.boolean(0, ta) || !call.boolean(1, tb) || !call.array_of(3, element, 2, a)) return false;
  if (call[4].type == call[3].type && call[6].type == call[3].type) {
    b = static_cast<ArrayObject*>(call[4].object);
    c = static_cast<ArrayObject*>(call[6].object);
  } else if (!call.array_of(4, element, 2, b) || !call.array_of(6, element, 2, c)) {
    return false;
  }
  const Index m = shape_of(a)[ta ? 1 : 0], k = shape_of(a)[ta ? 0 : 1], n = shape_of(b)[tb ? 0 : 1];
  if (shape_of(b)[tb ? 1 : 0] != k || shape_of(c)[0] != m || shape_of(c)[1] != n)
    return call.ctx.raise_message(call.builtin.dimension_mismatch, "matrices do not fit");
  if (m == 0 || n == 0) return call.give_nothing();
  const Gemm<T> p{ta,
                  tb,
                  m,
                  n,
                  k,
                  number<T>(call[2]),
                  reinterpret_cast<const T*>(a->data),
                  reinterpret_cast<const T*>(b->data),
                  number<T>(call[5]),
                  reinterpret_cast<T*>(c->data)};
  return p.a == p.c || p.b == p.c ? multiply_copies(call, p) : multiply(call, p);
}

// blas_gemv(transposed, α, A, x, β, y)
bool blas_gemv(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "gemv", args, count, result);
  if (!call.arity(6)) return false;
  const BuiltinTypes& b = call.builtin;
  if (args[1].type != args[4].type) return ctx.type_error("gemv", args[1].type, args[4]);
  if (args[1].type == b.float64) return gemv<double>(call, b.float64);
  if (args[1].type == b.float32) return gemv<float>(call, b.float32);
  return ctx.type_error("gemv", b.float64, args[1]);
}

// blas_gemm(transpose A, transpose B, α, A, B, β, C)
bool blas_gemm(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "gemm", args, count, result);
  if (!call.arity(7)) return false;
  const BuiltinTypes& b = call.builtin;
  if (args[2].type != args[5].type) return ctx.type_error("gemm", args[2].type, args[5]);
  if (args[2].type == b.float64) return gemm<double>(call, b.float64);
  if (args[2].type == b.float32) return gemm<float>(call, b.float32);
  return ctx.type_error("gemm", b.float64, args[2]);
}

constexpr std::uint32_t effect_computes = effect_reads | effect_writes | effect_throws;

const NativeInfo blas_natives[] = {
    {"blas_gemv", blas_gemv, effect_computes, returns_nothing, false, false, true},
    {"blas_gemm", blas_gemm, effect_computes, returns_nothing, false, false, true},
};

}  // namespace

void define_blas_natives(Runtime& runtime) { define_all(runtime, blas_natives); }

}  // namespace slope::stdlib
