// Loads of array headers leave loops, also where the array comes from a merge.
//
// What a loop's checks compare with must be there before the loop (counted_loops.hpp). LLVM moves a load that not every
// run of the loop reaches only when it knows that the memory may be read. It knows that of arguments and of what calls
// return, but asks nothing of a phi: of one of two arrays, of work arrays that change places, of an array that the code
// takes from scratch memory. Here a phi may be read as far as all that comes into it.
#pragma once

#include <llvm/IR/Instruction.h>
#include <llvm/IR/PassManager.h>

#include <cstdint>

namespace slope::codegen {

// So many bytes may be read at the address that `instruction` computes, wherever it is computed.
void mark_known(llvm::Instruction& instruction, std::uint64_t bytes);

struct KnownMemoryPass : llvm::PassInfoMixin<KnownMemoryPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace slope::codegen
