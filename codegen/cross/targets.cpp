// Machines other than this one, for `slope build --target`: only libslope_codegen_cross.so has their code generators,
// because each makes LLVM ten milliseconds slower to load.
#include <llvm/Support/TargetSelect.h>

#include "codegen/translator.hpp"

namespace slope::codegen {

void initialise_other_targets() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeAArch64TargetInfo();
  LLVMInitializeAArch64Target();
  LLVMInitializeAArch64TargetMC();
  LLVMInitializeAArch64AsmPrinter();
}

}  // namespace slope::codegen
