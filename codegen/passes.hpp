// The optimisation pipeline for emitted functions. Slope's own optimiser has already done on the IR what only it can do
// (dispatch, inlining of methods, aggregates, unions). LLVM does scalar clean-up, loops and vectors.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

namespace slope::codegen {

class Passes {
 public:
  // `vector_math`: names of the vector mathematical functions (libmvec) may appear in the output.
  Passes(llvm::TargetMachine& machine, bool vector_math);
  ~Passes();
  Passes(const Passes&) = delete;
  void run(llvm::Module& module, bool only_needed);  // only_needed: what the code generator can't do without

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace slope::codegen
