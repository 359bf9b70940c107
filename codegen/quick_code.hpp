// Machine code that is ready soon, and how better code takes its place.
//
// In automatic mode a function first gets quick code: few passes and LLVM's fast instruction selection, a sixth of the
// time. Quick code counts what it executes. When that was about as long as making good code takes, the engine makes the
// good code, on another thread where it has one.
//
// Others are linked to the entry of quick code, so that entry stays, and goes on to the good code where there is some.
// What runs long is entered once, so quick code is left at the heads of its loops as well, for good code of that loop
// (leaps.hpp). A function that is called again and again gets good code of its entry first, one that turns and turns good
// code of its outermost loop, and then, where that one does not turn, of the loop that does.
//
// Both kinds are made from the same typed code, and no pass changes what floating-point operations return.
//
// The switches are added to a module after its text has served as a key of the cache (object_cache.hpp). So good code has
// one key, wherever it is made.
#pragma once

#include <llvm/IR/Module.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "codegen/unit.hpp"

namespace slope {
struct CodeInstance;
struct Context;
}  // namespace slope

namespace slope::codegen {

struct NativeBatch;
struct QuickCode;

// Where quick code asks: the index of the innermost loop and of the outermost around it (find_loop_heads), or its entry.
struct AskedAt {
  std::int64_t place = -1;
  bool is_entry() const { return place < 0; }
  unsigned loop() const { return static_cast<unsigned>(place & 0xffff); }
  unsigned outermost() const { return static_cast<unsigned>(place >> 16); }
  static AskedAt in(unsigned loop, unsigned outermost) { return {std::int64_t{outermost} << 16 | loop}; }
};

// Makes good code when quick code asks for it, or says that nobody shall ask again. It may also be too early. Returns
// the good code of the loop, if there is some.
class Replacer {
 public:
  virtual ~Replacer() = default;
  virtual void* replace(Context& ctx, QuickCode& quick, AskedAt where) = 0;
};

// Of one function, at an address that its quick code knows. Four words lead the structure, in this order.
struct QuickCode {
  std::atomic<std::int64_t> left{0};   // instructions of LLVM to execute before it asks for good code
  std::atomic<void*> good{nullptr};    // entry of the good code
  std::atomic<std::int64_t> calls{0};  // of its entry
  std::atomic<std::int64_t> has_good_loop{0};
  Replacer* replacer = nullptr;
  CodeInstance* code = nullptr;   // null: it will not be replaced any more
  std::int64_t worth = 0;         // what it shall execute before good code is made of it
  std::int64_t awaited = 0;       // what `left` was at last
  std::int64_t spent = 0;         // what it has executed since good code was made of it, about
  std::int64_t calls_before = 0;  // calls until then
  bool has_wrapper = false;
  UnitText text;                              // empty: it has no loops that can be left
  std::weak_ptr<NativeBatch> batch;           // that it is part of
  std::unordered_map<unsigned, void*> loops;  // good code by loop; null: there will be none, or it is being made
  void wait_for(std::int64_t amount) {
    awaited = amount > 0 ? amount : 1;
    left.store(awaited, std::memory_order_relaxed);
  }
  // It asks. Where there is good code of a loop it asks again soon.
  void spend() {
    spent += awaited - left.load(std::memory_order_relaxed);
    wait_for(loops.empty() ? worth / 4 : std::min<std::int64_t>(worth / 128, 100'000));
  }
  void never() {
    code = nullptr;
    text = {};
    left.store(INT64_MAX, std::memory_order_relaxed);
  }
  void* good_loop(AskedAt where) const {
    if (where.is_entry()) return nullptr;
    const auto found = loops.find(where.loop());
    return found == loops.end() ? nullptr : found->second;
  }
};

// Whether the function gets quick code. Of one with loops the module is read again from its text, and simplified, as
// for good code of a loop: both sides of a leap are the same to the last instruction.
bool begin_quick_code(Unit& unit);
// Before the passes.
void add_switches(Unit& unit);
// After them.
void lower_switches(llvm::Module& module);

}  // namespace slope::codegen
