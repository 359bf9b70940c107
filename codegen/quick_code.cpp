#include "codegen/quick_code.hpp"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "codegen/counted_loops.hpp"
#include "codegen/helpers.hpp"
#include "codegen/leaps.hpp"
#include "codegen/unit.hpp"
#include "lang/support/dump.hpp"
#include "lang/support/tuning.hpp"

namespace slope::codegen {

namespace {

using llvm::BasicBlock;

static_assert(offsetof(QuickCode, left) == 0 && offsetof(QuickCode, good) == 8);

// Calls that no pass may move: (QuickCode) -> its good code; (context, QuickCode, where) -> good code of the loop.
constexpr const char* look_name = "slope.look";
constexpr const char* leap_name = "slope.leap";

llvm::FunctionCallee helper(llvm::Module& module, Helper which, llvm::Type* result,
                            llvm::ArrayRef<llvm::Type*> parameters) {
  llvm::FunctionCallee callee =
      module.getOrInsertFunction(helper_info(which).name, llvm::FunctionType::get(result, parameters, false));
  llvm::cast<llvm::Function>(callee.getCallee())->addFnAttr(llvm::Attribute::NoUnwind);
  return callee;
}

llvm::FunctionCallee mark(llvm::Module& module, const char* name, llvm::ArrayRef<llvm::Type*> parameters) {
  if (llvm::Function* known = module.getFunction(name)) return known;
  llvm::Type* pointer = llvm::PointerType::get(module.getContext(), 0);
  llvm::Function* made = llvm::Function::Create(llvm::FunctionType::get(pointer, parameters, false),
                                                llvm::Function::ExternalLinkage, name, module);
  made->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  for (llvm::Attribute::AttrKind kind : {llvm::Attribute::NoUnwind, llvm::Attribute::WillReturn,
                                         llvm::Attribute::NoSync, llvm::Attribute::NoFree, llvm::Attribute::NoCallback})
    made->addFnAttr(kind);
  return made;
}

llvm::FunctionCallee look_function(llvm::Module& module) {
  return mark(module, look_name, {llvm::PointerType::get(module.getContext(), 0)});
}

llvm::FunctionCallee leap_function(llvm::Module& module) {
  llvm::Type* pointer = llvm::PointerType::get(module.getContext(), 0);
  return mark(module, leap_name, {pointer, pointer, llvm::Type::getInt64Ty(module.getContext())});
}

llvm::MDNode* rarely(llvm::LLVMContext& context) { return llvm::MDBuilder(context).createBranchWeights(1, 100000); }

// Takes `amount` off what is left, before `at`; asks for good code when nothing is. Returns what came of that.
// `looks`: also when there is good code of some loop. Loops around others turn too rarely to be the one that runs out.
llvm::PHINode* count(llvm::Instruction* at, llvm::Value* context, llvm::Value* quick, std::uint64_t amount,
                     AskedAt where, bool looks = false) {
  llvm::Module& module = *at->getModule();
  llvm::IRBuilder<> b(at);
  llvm::LoadInst* before = b.CreateAlignedLoad(b.getInt64Ty(), quick, llvm::Align(8));
  before->setAtomic(llvm::AtomicOrdering::Monotonic);  // threads that run it may lose a count, and nothing else
  llvm::Value* left = b.CreateSub(before, b.getInt64(amount));
  b.CreateAlignedStore(left, quick, llvm::Align(8))->setAtomic(llvm::AtomicOrdering::Monotonic);
  llvm::Value* asks = b.CreateICmpSLT(left, b.getInt64(0));
  if (looks) {
    llvm::Value* where_it_is = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), quick, offsetof(QuickCode, has_good_loop));
    llvm::LoadInst* found = b.CreateAlignedLoad(b.getInt64Ty(), where_it_is, llvm::Align(8));
    found->setAtomic(llvm::AtomicOrdering::Monotonic);
    asks = b.CreateOr(asks, b.CreateICmpNE(found, b.getInt64(0)));
  }
  llvm::Instruction* ask = llvm::SplitBlockAndInsertIfThen(asks, at, false, rarely(module.getContext()));
  llvm::FunctionCallee replace =
      helper(module, Helper::replace, b.getPtrTy(), {b.getPtrTy(), b.getPtrTy(), b.getInt64Ty()});
  llvm::cast<llvm::Function>(replace.getCallee())->addFnAttr(llvm::Attribute::Cold);
  llvm::Value* good = llvm::IRBuilder<>(ask).CreateCall(replace, {context, quick, b.getInt64(where.place)});
  b.SetInsertPoint(at->getParent(), at->getParent()->begin());
  llvm::PHINode* asked = b.CreatePHI(b.getPtrTy(), 2);
  asked->addIncoming(good, ask->getParent());
  asked->addIncoming(llvm::ConstantPointerNull::get(b.getPtrTy()), before->getParent());
  return asked;
}

// SLOPE_DUMP=quick: why good code is made at once, or a loop has none of its own.
void refused(const char* why) {
  if (dump_wants("quick")) llvm::errs() << "; no quick code, " << why << '\n';
}

// At the end of each turn: it goes on in good code of the loop, if there is some. What asks for that is no more than a
// mark before the passes; the block with the next look whether to stop stays the loop's last, which rotating it needs.
void add_leap(const LoopHead& head, BasicBlock* latch, llvm::Function& function, llvm::Value* quick, AskedAt where) {
  llvm::Module& module = *function.getParent();
  llvm::Instruction* at = latch->getTerminator();
  for (llvm::Instruction& inst : *latch)
    if (auto* call = llvm::dyn_cast<llvm::CallInst>(&inst))
      if (call->getCalledFunction() && call->getCalledFunction()->getName() == poll_name) at = call;
  llvm::SmallVector<llvm::Value*, 16> arguments;
  llvm::SmallVector<llvm::Type*, 16> types;
  for (llvm::Value* value : head.live) {
    auto* phi = llvm::dyn_cast<llvm::PHINode>(value);
    arguments.push_back(phi && phi->getParent() == head.header ? phi->getIncomingValueForBlock(latch) : value);
    types.push_back(value->getType());
  }
  llvm::IRBuilder<> b(at);
  llvm::Value* good = b.CreateCall(leap_function(module), {function.getArg(0), quick, b.getInt64(where.place)});
  llvm::Instruction* leave =
      llvm::SplitBlockAndInsertIfThen(b.CreateIsNotNull(good), at, true, rarely(module.getContext()));
  b.SetInsertPoint(leave);
  // No tail call: the frame, where its buffers lie, is in use.
  llvm::Value* result = b.CreateCall(llvm::FunctionType::get(function.getReturnType(), types, false), good, arguments);
  if (function.getReturnType()->isVoidTy())
    b.CreateRetVoid();
  else
    b.CreateRet(result);
  leave->eraseFromParent();
}

// A new first block, with the function's variables: it goes to the good code or on.
void add_switch_at_entry(llvm::Function& function, llvm::Value* quick, std::uint64_t weight) {
  llvm::LLVMContext& context = function.getContext();
  BasicBlock* body = &function.getEntryBlock();
  BasicBlock* entry = BasicBlock::Create(context, "quick", &function, body);
  BasicBlock* look = BasicBlock::Create(context, "look", &function, body);
  BasicBlock* leave = BasicBlock::Create(context, "leave", &function, body);
  for (llvm::Instruction& inst : llvm::make_early_inc_range(*body))
    if (auto* variable = llvm::dyn_cast<llvm::AllocaInst>(&inst);
        variable && llvm::isa<llvm::ConstantInt>(variable->getArraySize()))
      variable->moveBefore(*entry, entry->end());
  llvm::IRBuilder<> b(entry);
  llvm::Instruction* jump = b.CreateBr(look);
  b.SetInsertPoint(jump);
  llvm::Value* const calls = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), quick, offsetof(QuickCode, calls));
  llvm::LoadInst* before = b.CreateAlignedLoad(b.getInt64Ty(), calls, llvm::Align(8));
  before->setAtomic(llvm::AtomicOrdering::Monotonic);
  b.CreateAlignedStore(b.CreateAdd(before, b.getInt64(1)), calls, llvm::Align(8))
      ->setAtomic(llvm::AtomicOrdering::Monotonic);
  count(jump, function.getArg(0), quick, weight, {});
  b.SetInsertPoint(look);
  llvm::Value* good = b.CreateCall(look_function(*function.getParent()), {quick});
  b.CreateCondBr(b.CreateIsNotNull(good), leave, body);
  b.SetInsertPoint(leave);
  llvm::SmallVector<llvm::Value*, 16> arguments;
  for (llvm::Argument& argument : function.args()) arguments.push_back(&argument);
  llvm::CallInst* call = b.CreateCall(function.getFunctionType(), good, arguments);
  call->setTailCall();
  if (function.getReturnType()->isVoidTy())
    b.CreateRetVoid();
  else
    b.CreateRet(call);
}

constexpr std::uint64_t small_loop = tuning::quick_code_loop;
constexpr std::size_t most_handed = tuning::quick_code_handed;
constexpr std::size_t most_handed_of = tuning::quick_code_handed_of;

bool has_loop(llvm::Function& function) {
  llvm::DominatorTree dominators(function);
  return !llvm::LoopInfo(dominators).empty();
}

// The one-turn size of the loop that a block is in, without those within it.
std::uint64_t turn_size(const llvm::LoopInfo& loops, const BasicBlock* block) {
  std::uint64_t size = 1;
  const llvm::Loop* loop = loops.getLoopFor(block);
  if (!loop) return size;
  for (const BasicBlock* other : loop->blocks())
    if (loops.getLoopFor(other) == loop) size += other->size();
  return size;
}

void lower_looks(llvm::Function& look) {
  while (!look.use_empty()) {
    auto* call = llvm::cast<llvm::CallInst>(look.user_back());
    llvm::IRBuilder<> b(call);
    llvm::Value* where = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), call->getArgOperand(0), offsetof(QuickCode, good));
    llvm::LoadInst* good = b.CreateAlignedLoad(b.getPtrTy(), where, llvm::Align(8));
    good->setAtomic(llvm::AtomicOrdering::Acquire);
    call->replaceAllUsesWith(good);
    call->eraseFromParent();
  }
  look.eraseFromParent();
}

// Where nothing but a test and a branch follows, the usual turn does without the test.
void skip_test(llvm::PHINode* asked) {
  BasicBlock* block = asked->getParent();
  auto* branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
  if (!branch || branch->isUnconditional() || block->size() != 3) return;
  auto* test = llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition());
  if (!test || test->getParent() != block || !test->isEquality() || !test->hasOneUse() ||
      test->getOperand(0) != asked || !llvm::isa<llvm::ConstantPointerNull>(test->getOperand(1)))
    return;
  const bool equal = test->getPredicate() == llvm::CmpInst::ICMP_EQ;
  BasicBlock *usual = branch->getSuccessor(equal ? 0 : 1), *leave = branch->getSuccessor(equal ? 1 : 0);
  if (llvm::isa<llvm::PHINode>(usual->front()) || llvm::isa<llvm::PHINode>(leave->front())) return;
  for (const llvm::User* user : asked->users())
    if (user != test && llvm::cast<llvm::Instruction>(user)->getParent() != leave) return;
  if (!leave->getSinglePredecessor()) return;
  for (unsigned i = 0; i < 2; ++i)
    if (llvm::isa<llvm::ConstantPointerNull>(asked->getIncomingValue(i)))
      asked->getIncomingBlock(i)->getTerminator()->replaceSuccessorWith(block, usual);
  for (unsigned i = 2; i-- > 0;)
    if (llvm::isa<llvm::ConstantPointerNull>(asked->getIncomingValue(i)))
      asked->removeIncomingValue(i, /*DeletePHIIfEmpty=*/false);
}

// Handing values over is code as well. Where it would be too much, loops around others are left first, then those in
// which little lives.
std::vector<unsigned> loops_to_leave(const Unit& unit, const llvm::Function& function,
                                     const std::vector<LoopHead>& heads) {
  std::vector<unsigned> all(heads.size());
  std::iota(all.begin(), all.end(), 0u);
  if (!unit.spares_short_loops) return all;
  std::vector<char> has_inner(heads.size());
  for (unsigned i = 0; i < heads.size(); ++i)
    if (heads[i].outermost != i) has_inner[heads[i].outermost] = 1;
  std::stable_sort(all.begin(), all.end(), [&](unsigned a, unsigned b) {
    return has_inner[a] != has_inner[b] ? has_inner[a] : heads[a].live.size() < heads[b].live.size();
  });
  std::size_t left = most_handed + function.getInstructionCount() / most_handed_of;
  const auto end = std::find_if(all.begin(), all.end(), [&](unsigned i) {
    if (heads[i].live.size() > left) return true;
    left -= heads[i].live.size();
    return false;
  });
  all.erase(end, all.end());
  return all;
}

}  // namespace

bool begin_quick_code(Unit& unit) {
  llvm::Function* function = unit.module().getFunction("f");
  if (!unit.quick || !function || function->isDeclaration()) return false;
  if (!has_loop(*function)) return true;
  if (!unit.read_again()) return false;
  function = unit.module().getFunction("f");
  simplify_for_leaps(*function);
  if (unit.spares_short_loops && function->getInstructionCount() < small_loop) {
    const std::vector<LoopHead> heads = find_loop_heads(*function);
    if (loops_to_leave(unit, *function, heads).size() < heads.size()) {
      refused("it is short, and too much lives in its loops");
      return false;
    }
  }
  return true;
}

void add_switches(Unit& unit) {
  llvm::Function* function = unit.module().getFunction("f");
  llvm::Value* quick = unit.address(unit.quick);
  const std::uint64_t instructions = function->getInstructionCount();
  const std::vector<LoopHead> heads = find_loop_heads(*function);
  const std::vector<unsigned> left = loops_to_leave(unit, *function, heads);
  for (unsigned i : left) {
    const AskedAt where = AskedAt::in(i, llvm::is_contained(left, heads[i].outermost) ? heads[i].outermost : i);
    for (BasicBlock* latch : heads[i].latches)
      if (latch->getSingleSuccessor()) add_leap(heads[i], latch, *function, quick, where);
  }
  add_switch_at_entry(*function, quick, instructions / 2 + 10);
}

void lower_switches(llvm::Module& module) {
  llvm::Function* look = module.getFunction(look_name);
  if (!look) return;
  llvm::Value* quick = llvm::cast<llvm::CallInst>(look->user_back())->getArgOperand(0);
  lower_looks(*look);
  llvm::Function* leap = module.getFunction(leap_name);
  llvm::Function* poll = module.getFunction(poll_name);
  llvm::Function* function = module.getFunction("f");
  if (!function) return;
  struct Turn {
    llvm::CallInst* call;
    std::uint64_t size;
    bool is_around;  // has loops within it
  };
  llvm::SmallVector<Turn, 16> leaps, polls;
  {
    llvm::DominatorTree dominators(*function);
    llvm::LoopInfo loops(dominators);
    llvm::SmallPtrSet<const llvm::Loop*, 16> counted;
    for (BasicBlock& block : *function) {
      for (llvm::Instruction& inst : block) {
        auto* call = llvm::dyn_cast<llvm::CallInst>(&inst);
        if (!call || !call->getCalledFunction() || call->getCalledFunction() != leap) continue;
        const llvm::Loop* loop = loops.getLoopFor(&block);
        leaps.push_back({call, turn_size(loops, &block), loop && !loop->isInnermost()});
        counted.insert(loop);
      }
    }
    if (poll) {
      for (llvm::User* user : poll->users()) {
        auto* call = llvm::cast<llvm::CallInst>(user);
        if (call->getFunction() == function && !counted.contains(loops.getLoopFor(call->getParent())))
          polls.push_back({call, turn_size(loops, call->getParent()), false});
      }
    }
  }
  for (auto [call, size, is_around] : polls) count(call, call->getArgOperand(0), quick, size, {});
  for (auto [call, size, is_around] : leaps) {
    const AskedAt where{llvm::cast<llvm::ConstantInt>(call->getArgOperand(2))->getSExtValue()};
    llvm::PHINode* asked = count(call, call->getArgOperand(0), quick, size, where, is_around);
    call->replaceAllUsesWith(asked);
    call->eraseFromParent();
    skip_test(asked);
  }
  if (leap) leap->eraseFromParent();
}

}  // namespace slope::codegen
