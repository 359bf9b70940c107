// The vector mathematical functions of the C library (libmvec, up to 4 units in the last place): loops over @fastmath
// calls use them.
#pragma once

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Target/TargetMachine.h>

#include <vector>

namespace slope::codegen {

struct VectorFunction {
  const char* scalar;  // "exp", "llvm.exp.f64"
  const char* vector;  // "_ZGVdN4v_exp"
  unsigned lanes;
  bool binary;
};

// Those that the machine can run.
std::vector<VectorFunction> vector_functions(const llvm::TargetMachine& machine);
void add_vector_functions(llvm::TargetLibraryInfoImpl& library, const std::vector<VectorFunction>& functions);

}  // namespace slope::codegen
