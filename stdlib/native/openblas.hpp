// OpenBLAS, loaded when something large is first multiplied or factored: linking it would cost every start several
// milliseconds. One thread, so that results do not depend on the machine's load. The library's state belongs to the
// process; the handle is kept by the loader, found again by each Runtime through dlopen's own count.
#pragma once

#include <cstdint>

namespace slope::stdlib {

// The address of a Fortran BLAS or LAPACK routine ("dgemm_"); null when the library or the routine is not there.
void* openblas_symbol(const char* name);

template <class Function>
Function* openblas(const char* name) {
  return reinterpret_cast<Function*>(openblas_symbol(name));
}

}  // namespace slope::stdlib
