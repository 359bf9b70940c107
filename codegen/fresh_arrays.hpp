// Arrays that a function makes lie apart from each other and from those that it was given. LLVM learns it through scoped
// alias metadata on the accesses to their elements.
#pragma once

#include <llvm/IR/Instruction.h>

#include <unordered_map>

#include "codegen/layout.hpp"
#include "lang/ir/cfg.hpp"

namespace slope::codegen {

class FreshArrays {
 public:
  FreshArrays(Layout& layout, const ir::Function& function) : layout_(layout), function_(function) {}
  void find(const ir::Cfg& cfg);

  // While it lives, the elements that are accessed are those of `array`.
  class Access {
   public:
    Access(FreshArrays& arrays, ir::Operand array) : arrays_(arrays) { arrays_.begin(array); }
    ~Access() { arrays_.scope_ = arrays_.apart_ = nullptr; }
    Access(const Access&) = delete;

   private:
    FreshArrays& arrays_;
  };
  // A load or store of an element.
  void mark(llvm::Instruction* access) const;

 private:
  void begin(ir::Operand array);

  Layout& layout_;
  const ir::Function& function_;
  std::unordered_map<std::uint32_t, llvm::MDNode*> scopes_;  // by inst that makes an array
  llvm::MDNode* scope_ = nullptr;                            // of the array whose elements are being accessed
  llvm::MDNode* apart_ = nullptr;                            // the scopes from which it lies apart
};

}  // namespace slope::codegen
