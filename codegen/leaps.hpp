// Leaps: an activation of quick code goes on in good code at the head of any of its loops (quick_code.hpp).
//
// Both sides are made from one text, the module as it was emitted. In it the state of an activation at the head of a loop
// is the values of LLVM that are live there: variables, the addresses of buffers on the stack, serials of tapes and of
// exceptions that are being handled. Quick code calls good code with them and returns what that returns; so its frame,
// where buffers lie, stays. Good code of a loop is the same function, entered at the loop's head with these values for
// arguments. What is computed from integers and addresses is computed again there: passes see how a bound came about.
//
// Of a loop within others the rest of the turn of the outer one is a copy, and what follows begins the inner loop from its
// start: passes find loops as they were written.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

#include <vector>

namespace slope::codegen {

struct LoopHead {
  llvm::BasicBlock* header = nullptr;
  llvm::SmallVector<llvm::BasicBlock*, 2> latches;
  // What is handed over: the context, the header's phis, and what is defined before it and used from it on.
  llvm::SmallVector<llvm::Value*, 16> live;
  // What is used from it on and computed again from what is handed over, in this order.
  llvm::SmallVector<llvm::Instruction*, 16> computed;
  unsigned outermost = 0;  // index of the loop around all that are around it; its own where there is none
};

// Of a valid function: every loop, in the order of its blocks. The order of all that is in it follows from the text.
std::vector<LoopHead> find_loop_heads(llvm::Function& function);

// Variables on the stack whose address nobody takes become values, and equal values one: less is live.
void simplify_for_leaps(llvm::Function& function);

// The function itself, in code of a loop.
inline constexpr const char* self_name = "self";

// Makes "f", the only function that stays, go on at the head of a loop of that index. False: it can't.
bool continue_at_loop(llvm::Module& module, unsigned index);

}  // namespace slope::codegen
