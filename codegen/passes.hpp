// The optimisation pipeline for emitted functions. Slope's own optimiser has already done on the IR what only it can do
// (dispatch, inlining of methods, aggregates, unions). LLVM does scalar clean-up, loops and vectors.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/Target/TargetMachine.h>

#include <atomic>
#include <memory>

#include "lang/runtime/runtime.hpp"

namespace slope::codegen {

class Passes {
 public:
  // `vector_math`: names of the vector mathematical functions (libmvec) may appear in the output.
  Passes(llvm::TargetMachine& machine, bool vector_math);
  ~Passes();
  Passes(const Passes&) = delete;
  // `none`: what the code generator can't do without; `passes`: each kind of pass once. `cancelled`, where there is one:
  // nobody wants the result any more; what can be left out is.
  void run(llvm::Module& module, CodeEffort level, const std::atomic<std::uint32_t>* cancelled = nullptr);

  // Functions that are marked for it become part of their callers.
  void inline_marked(llvm::Module& module);
  void drop_unused(llvm::Module& module);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace slope::codegen
