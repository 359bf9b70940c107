// Machine code that is ready soon, and how better code takes its place.
//
// In automatic mode a function first gets quick code: few passes and LLVM's fast instruction selection, a sixth of the
// time. Quick code counts what it executes. When that was about as long as making good code takes, the engine makes the
// good code, on another thread where it has one.
//
// Others are linked to the entry of quick code, so that entry stays, and goes on to the good code where there is some.
// Quick code looks for it in two places:
//   - at its entry;
//   - where it continues a loop that the interpreter has begun (lang/ir/continuation.hpp), at the head of that loop: it
//     may run long, and is entered once. What holds there are the values of the loop's variables and the arguments. Good
//     code that is entered with the variables for arguments goes on at the same place. `add_switches` refuses a function
//     in which the arguments alone do not say everything; good code is then made at once, as it is of short functions
//     with loops.
//
// Both kinds are made from the same typed code, and no pass changes what floating-point operations return.
//
// The switches are added to a module after its text has served as a key of the cache (object_cache.hpp). So good code has
// one key, wherever it is made.
#pragma once

#include <llvm/IR/Module.h>

#include <atomic>
#include <cstdint>

namespace slope {
struct CodeInstance;
struct Context;
}  // namespace slope

namespace slope::codegen {

struct QuickCode;
class Unit;

// Makes good code when quick code asks for it, or says that nobody shall ask again. It may also be too early.
class Replacer {
 public:
  virtual ~Replacer() = default;
  virtual void replace(Context& ctx, QuickCode& quick) = 0;
};

// Of one function, at an address that its quick code knows. Both words lead the structure, in this order.
struct QuickCode {
  std::atomic<std::int64_t> left{0};  // instructions of LLVM to execute before it asks for good code
  std::atomic<void*> good{nullptr};   // entry of the good code
  Replacer* replacer = nullptr;
  CodeInstance* code = nullptr;  // null: it will not be replaced any more
  std::int64_t worth = 0;        // what `left` was at first
  bool has_wrapper = false;
  void never() {
    code = nullptr;
    left.store(INT64_MAX, std::memory_order_relaxed);
  }
};

// Before the passes. False: this function can't be left where it has to be, and the module is as it was.
bool add_switches(Unit& unit);
// After them.
void lower_switches(llvm::Module& module);

}  // namespace slope::codegen
