// KLU for stdlib/sparse_arrays/klu.slope, loaded with dlopen when a program first names it: LU factors of sparse matrices
// in C. The factors are copied into the program's vectors, so nothing of the library outlives the call.
#include <algorithm>
#include <cmath>
#include <vector>

#include "lang/support/loaded_library.hpp"
#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"
#include "stdlib/native/vectors.hpp"

namespace slope::stdlib::klu {

namespace {

// As klu.h of version 1.3 declares them, with integers of 64 bits; version 2 has the same layout.
struct Common {
  double tol, memgrow, initmem_amd, initmem, maxwork;
  std::int64_t btf, ordering, scale;
  std::int64_t (*user_order)(std::int64_t, std::int64_t*, std::int64_t*, std::int64_t*, Common*);
  void* user_data;
  std::int64_t halt_if_singular, status, nrealloc, structural_rank, numerical_rank, singular_col, noffdiag;
  double flops, rcond, condest, rgrowth, work;
  std::size_t memusage, mempeak;
  double reserved[16];  // room for what a later version adds
};
struct Symbolic {
  double symmetry, est_flops, lnz, unz;  // further members are not used
};
struct Numeric {
  std::int64_t n, nblocks, lnz, unz;
};
struct Klu {
  std::int64_t (*defaults)(Common*) = nullptr;
  Symbolic* (*analyze)(std::int64_t n, std::int64_t* ap, std::int64_t* ai, Common*) = nullptr;
  Numeric* (*factor)(std::int64_t* ap, std::int64_t* ai, double* ax, Symbolic*, Common*) = nullptr;
  std::int64_t (*extract)(Numeric*, Symbolic*, std::int64_t* lp, std::int64_t* li, double* lx, std::int64_t* up,
                          std::int64_t* ui, double* ux, std::int64_t* fp, std::int64_t* fi, double* fx, std::int64_t* p,
                          std::int64_t* q, double* rs, std::int64_t* r, Common*) = nullptr;
  std::int64_t (*free_symbolic)(Symbolic**, Common*) = nullptr;
  std::int64_t (*free_numeric)(Numeric**, Common*) = nullptr;

  static constexpr const char* file = "libklu.so.1";
  void find(LoadedLibrary& library) {
    library.find(defaults, "klu_l_defaults");
    library.find(analyze, "klu_l_analyze");
    library.find(factor, "klu_l_factor");
    library.find(extract, "klu_l_extract");
    library.find(free_symbolic, "klu_l_free_symbolic");
    library.find(free_numeric, "klu_l_free_numeric");
  }
};

struct Factors {
  const Klu& library;
  Common common{};
  Symbolic* symbolic = nullptr;
  Numeric* numeric = nullptr;

  explicit Factors(const Klu& klu) : library(klu) { library.defaults(&common); }
  Factors(const Factors&) = delete;
  ~Factors() {
    if (numeric) library.free_numeric(&numeric, &common);
    if (symbolic) library.free_symbolic(&symbolic, &common);
  }
};

// Columns in order, rows ascending, all within the matrix: what KLU believes without looking.
bool is_matrix(std::size_t n, ArrayObject* colptr, ArrayObject* rowval, ArrayObject* nzval) {
  if (static_cast<std::size_t>(colptr->length) != n + 1) return false;
  const std::int64_t *p = integers(colptr), *rows = integers(rowval);
  if (p[0] != 1 || p[n] - 1 > rowval->length || p[n] - 1 > nzval->length) return false;
  for (std::size_t j = 0; j < n; ++j) {
    if (p[j] > p[j + 1] || p[j + 1] > p[n]) return false;
    for (std::int64_t k = p[j]; k < p[j + 1]; ++k) {
      const std::int64_t i = rows[k - 1];
      if (i < 1 || static_cast<std::size_t>(i) > n || (k > p[j] && rows[k - 2] >= i)) return false;
    }
  }
  return true;
}
std::vector<std::int64_t> from_zero(const std::int64_t* from, std::size_t count) {
  std::vector<std::int64_t> result(from, from + count);
  for (std::int64_t& i : result) --i;
  return result;
}

// klu_factor(n, colptr, rowval, nzval, lp, li, lx, up, ui, ux, p, q): the factors of A[p, q] in the eight vectors, which
// are empty before; 0, or 1 for a singular matrix. L has its ones first, U its diagonal last in each column.
bool klu_factor(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "klu_factor", args, count, result);
  std::int64_t n = 0;
  ArrayObject* in[3];
  ArrayObject* out[8];
  const auto vector = [&](std::size_t i, bool floats, ArrayObject*& array) {
    return call.array_of(i, floats ? call.builtin.float64 : call.builtin.int64, 1, array);
  };
  if (!call.arity(12) || !call.integer(0, n)) return false;
  for (std::size_t i = 0; i < 3; ++i)
    if (!vector(1 + i, i == 2, in[i])) return false;
  for (std::size_t i = 0; i < 8; ++i)
    if (!vector(4 + i, i == 2 || i == 5, out[i])) return false;
  if (n < 1 || n > 1'000'000'000 || !is_matrix(static_cast<std::size_t>(n), in[0], in[1], in[2]))
    return ctx.argument_error("klu_factor: not a matrix in compressed columns");
  if (!may_do_everything(ctx))
    return ctx.raise_error(
        "klu runs only in an engine that is granted every capability, because nothing bounds its memory: use lu");
  const Klu* library = loaded<Klu>();
  if (!library) return ctx.raise_error("klu needs the library libklu.so.1: install the package libklu1");

  const auto size = static_cast<std::size_t>(n);
  const auto stored = static_cast<std::size_t>(integers(in[0])[n] - 1);
  auto ap = from_zero(integers(in[0]), size + 1), ai = from_zero(integers(in[1]), stored);
  std::vector<double> ax(numbers(in[2]), numbers(in[2]) + stored);
  Factors f(*library);
  f.common.scale = -1;
  f.common.btf = 0;
  f.common.halt_if_singular = 1;
  constexpr std::int64_t singular = 1, no_memory = -2;
  f.symbolic = library->analyze(n, ap.data(), ai.data(), &f.common);
  if (!f.symbolic) return f.common.status == no_memory ? ctx.out_of_memory() : call.give_int(1);
  CountedBytes counted;
  constexpr double bytes_each = 16, operations_a_second = 3e8;
  counted.add(call.runtime.outside_heap,
              static_cast<std::size_t>(bytes_each * std::clamp(f.symbolic->lnz + f.symbolic->unz, 0.0, 1e12)));
  if (!ends_in_time(ctx, std::max(f.symbolic->est_flops, 0.0) / operations_a_second)) return false;
  f.numeric = library->factor(ap.data(), ai.data(), ax.data(), f.symbolic, &f.common);
  if (f.common.status == no_memory) return ctx.out_of_memory();
  if (!f.numeric || f.common.status == singular) return call.give_int(1);

  const std::int64_t lengths[] = {n + 1, f.numeric->lnz, f.numeric->lnz, n + 1, f.numeric->unz, f.numeric->unz, n, n};
  for (std::size_t i = 0; i < 8; ++i)
    if (!ctx.heap->resize_vector(out[i], lengths[i])) return ctx.out_of_memory();
  for (std::size_t i = 0; i < 8; ++i)  // no vector is there twice
    if (out[i]->length != lengths[i]) return ctx.argument_error("klu_factor: one vector is given twice");
  std::vector<double> scales(size);
  std::vector<std::int64_t> fp(size + 1), fi(1), blocks(size + 1);
  std::vector<double> fx(1);
  if (!library->extract(f.numeric, f.symbolic, integers(out[0]), integers(out[1]), numbers(out[2]), integers(out[3]),
                        integers(out[4]), numbers(out[5]), fp.data(), fi.data(), fx.data(), integers(out[6]),
                        integers(out[7]), scales.data(), blocks.data(), &f.common))
    return call.give_int(1);
  return call.give_int(0);
}

const NativeInfo klu_natives[] = {{"klu_factor", klu_factor, effect_all, returns_int}};

}  // namespace

}  // namespace slope::stdlib::klu

namespace slope::stdlib {

void define_klu_natives(Runtime& runtime) { define_all(runtime, klu::klu_natives); }

}  // namespace slope::stdlib
