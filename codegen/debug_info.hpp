// Lines of the script for machine code, as DWARF: for debuggers, perf, and the engine's own profiler. Calls that Slope
// inlined stay visible: an instruction's location is its own line, inlined at the line of the call, and so on outwards.
// Variables and types are not described.
#pragma once

#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <unordered_map>

#include "lang/ir/ir.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::codegen {

class DebugInfo {
 public:
  DebugInfo(Runtime& runtime, llvm::Module& module);
  // To be called before the instructions of `function` are emitted into `output`; the location of its prologue.
  llvm::DebugLoc begin(const ir::Function& function, llvm::Function* output);
  // What is emitted next belongs to this instruction of the function that was begun.
  void at(llvm::IRBuilderBase& b, const ir::Function& function, const ir::Inst& inst);
  void finish() { builder_.finalize(); }

 private:
  llvm::DIFile* file(FileId id);
  llvm::DISubprogram* subprogram(const Method* method, Span span);  // of an inlined function
  llvm::DILocation* call_site(const ir::Function& function, std::uint32_t scope);
  llvm::DISubprogram* make(const std::string& name, Span span);  // debuggers show the name alone, not the symbol

  Runtime& runtime_;
  llvm::LLVMContext& context_;
  llvm::DIBuilder builder_;
  llvm::DICompileUnit* unit_ = nullptr;
  llvm::DISubroutineType* type_ = nullptr;
  std::unordered_map<FileId, llvm::DIFile*> files_;
  std::unordered_map<const Method*, llvm::DISubprogram*> inlined_;
  llvm::DISubprogram* current_ = nullptr;                            // of the function that was begun
  std::unordered_map<std::uint32_t, llvm::DILocation*> call_sites_;  // its scopes, each one inlined call
};

}  // namespace slope::codegen
