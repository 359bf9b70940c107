// One compilation: the requested function, and the functions it calls that have typed code but no machine code yet.
// They form one LLVM module (a module for each function would cost pages and mappings), linked to what was compiled
// before.
#pragma once

#include <llvm/IR/Module.h>

#include <unordered_map>

#include "codegen/debug_info.hpp"
#include "codegen/emit.hpp"
#include "codegen/jit.hpp"

namespace slope::codegen {

// A batch that has been linked. CodeInstance::native_owner of its members, and whoever is linked to it, hold it.
struct NativeBatch {
  BatchData data;
  std::unique_ptr<Jit::MachineCode> code;
};

// Machine code that hosts hold (DirectCode). Let go by its host while it runs, perhaps, it waits here for its end.
struct HostCode {
  std::vector<std::weak_ptr<NativeBatch>> held;
  std::vector<std::shared_ptr<NativeBatch>> dropped;
};

struct Published {
  Signature signature;
  void* entry = nullptr;
  std::weak_ptr<NativeBatch> owner;
};
// Machine code by what it was made from. An entry counts while its owner lives: addresses of CodeInstances are reused.
using PublishedCode = std::unordered_map<const CodeInstance*, Published>;

// Which callees come along.
struct BatchPolicy {
  World world = 0;
  bool only_executed = false;  // leave out callees that never ran: the caller got hot without them
  std::size_t max_functions = 200;
  std::size_t max_insts = 40000;
};

class Batch : public EmitHost {
 public:
  // `tests_indices`: Layout::tests_indices.
  Batch(Runtime& runtime, PublishedCode& published, std::uint64_t first_name, bool tests_indices);
  bool build(CodeInstance& root, const BatchPolicy& policy, std::string& why);
  // `boxed_root`: with the wrapper for dynamic callers of the function that was asked for; others get theirs when they
  // are asked for.
  void emit(bool boxed_root);
  // The wrapper alone, of a function that has been published.
  bool build_wrapper(CodeInstance& code);
  // The wrapper for hosts, of a function that has been published; null when it was not.
  llvm::Function* build_direct(CodeInstance& code);
  // After that, of a derivative: the gradient for hosts, with the derivative inlined where it is short.
  llvm::Function* build_flat_gradient(const BatchPolicy& policy, llvm::ArrayRef<std::uint8_t> steps);

  struct Member {
    CodeInstance* code = nullptr;
    const ir::Function* function = nullptr;
    Signature signature;
    llvm::Function* native = nullptr;
    llvm::Function* boxed = nullptr;
    // Of the method that callers see: a derivative's own, not that of the function which it is derived from.
    bool is_vararg() const { return code->owner && code->owner->method->is_vararg; }
  };
  std::vector<std::unique_ptr<Member>>& members() { return members_; }
  llvm::Module& module() { return *module_; }
  std::shared_ptr<NativeBatch> result() { return result_; }
  std::uint64_t next_name() const { return next_name_; }

  CallTarget resolve(Specialization& target) override;

 private:
  void add(CodeInstance& code);
  void declare_boxed(Member& member, const std::string& name);
  llvm::Function* declare_native(const Signature& signature, const std::string& name);
  llvm::Function* declare_entry(const std::string& kind, llvm::Type* result, unsigned parameters);
  llvm::FunctionCallee link_to(const Published& p);
  CodeInstance* typed_code(const Specialization& target) const;
  const Published* published(const CodeInstance* code) const;
  const Signature* known_signature(Specialization& target);
  bool may_fail(const ir::Function& function);
  bool may_fail(const ir::Function& function, const ir::Inst& inst);
  void find_signature(Member& member);

  Runtime& runtime_;
  PublishedCode& published_;
  BatchPolicy policy_;
  llvm::LLVMContext context_;
  std::unique_ptr<llvm::Module> module_;
  std::unique_ptr<Layout> layout_;
  std::unique_ptr<DebugInfo> debug_;  // where the engine wants its code described
  std::shared_ptr<NativeBatch> result_;
  std::vector<std::unique_ptr<Member>> members_;
  std::unordered_map<const CodeInstance*, Member*> by_code_;
  std::vector<const Member*> deciding_;  // functions whose may_fail is being found
  std::uint64_t next_name_;
};

}  // namespace slope::codegen
