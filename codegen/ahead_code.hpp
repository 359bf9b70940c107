// What emission ahead of time notes about its module.
//
// There is no engine where the code will run. So code for it
//   - takes all memory from what the caller lends, which is free again when the call ends (slope.take);
//   - keeps what it knows of the call in a small record, where other code has its Context: the next free byte, how many
//     are left, the status (codegen/ahead_runtime.cpp);
//   - does not ask whether it shall stop, and does not look at the depth of the stack;
//   - goes from a block that is sure to raise straight out of the function: what the block would have put into the
//     exception is not made.
// Where an operation needs more, a call of a function "slope.need.N" stands for it. One that is still there after LLVM's
// passes is refused, with the place of needs[N]. Addresses of the engine's objects may only be compared and stored: they
// stand for the identities of types.
#pragma once

#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Module.h>

#include <map>
#include <string>
#include <vector>

#include "codegen/ahead.hpp"
#include "codegen/layout.hpp"
#include "lang/runtime/frames.hpp"

namespace slope::codegen {

inline constexpr const char* need_prefix = "slope.need.";
// The bits of a status that hold the line.
inline constexpr unsigned ahead_line_bits = 24;

class Ahead {
 public:
  Ahead(Runtime& runtime, Context& ctx) : context(ctx), runtime_(runtime) {}

  Context& context;  // the engine's, for inference
  std::vector<AheadRefusal> needs;
  std::map<const void*, AheadRefusal> addresses;
  std::map<const void*, llvm::Constant*> copies;  // of constant objects
  std::map<const llvm::Value*, Span> places;      // of these and of their memory: where the program uses them

  void note_address(const void* address, const ir::Function& function, const ir::Inst& inst);
  // The innermost place that is not in the library.
  Span place(const ir::Function& function, const ir::Inst& inst) const;
  std::uint32_t line(const TraceSite* site) const;

  static std::string reason_of(const ir::Function& function, const ir::Inst& inst);
  static std::string reason_of_call(const ir::Function& function, const ir::Inst& inst, TypeTable& types);
  static std::uint32_t kind_of(ir::Op op);  // of the error that it raises, as a status
  static std::uint32_t kind_of_exception(const Type* type);
  static std::uint32_t status(AheadError error) { return static_cast<std::uint32_t>(error) << ahead_line_bits; }
  static void add_runtime(llvm::Module& module);
  static llvm::FunctionType* entry_type(Layout& layout, const Signature& signature);

 private:
  bool is_library(Span span) const;
  Runtime& runtime_;
};

}  // namespace slope::codegen
