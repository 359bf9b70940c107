#include "codegen/quick_code.hpp"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/ProfDataUtils.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <cstddef>
#include <optional>

#include "codegen/counted_loops.hpp"
#include "codegen/helpers.hpp"
#include "codegen/unit.hpp"
#include "lang/support/dump.hpp"
#include "lang/support/tuning.hpp"

namespace slope::codegen {

namespace {

using llvm::BasicBlock;

static_assert(offsetof(QuickCode, left) == 0 && offsetof(QuickCode, good) == 8);

constexpr const char* look_name = "slope.look";  // (QuickCode) -> its good code: a load that no pass may move

llvm::FunctionCallee helper(llvm::Module& module, Helper which, llvm::Type* result,
                            llvm::ArrayRef<llvm::Type*> parameters) {
  llvm::FunctionCallee callee =
      module.getOrInsertFunction(helper_info(which).name, llvm::FunctionType::get(result, parameters, false));
  llvm::cast<llvm::Function>(callee.getCallee())->addFnAttr(llvm::Attribute::NoUnwind);
  return callee;
}

llvm::FunctionCallee look_function(llvm::Module& module) {
  if (llvm::Function* known = module.getFunction(look_name)) return known;
  llvm::Type* pointer = llvm::PointerType::get(module.getContext(), 0);
  llvm::Function* made = llvm::Function::Create(llvm::FunctionType::get(pointer, {pointer}, false),
                                                llvm::Function::ExternalLinkage, look_name, module);
  made->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  for (llvm::Attribute::AttrKind kind : {llvm::Attribute::NoUnwind, llvm::Attribute::WillReturn,
                                         llvm::Attribute::NoSync, llvm::Attribute::NoFree, llvm::Attribute::NoCallback})
    made->addFnAttr(kind);
  return made;
}

llvm::MDNode* rarely(llvm::LLVMContext& context) { return llvm::MDBuilder(context).createBranchWeights(1, 100000); }

// Takes `amount` off what is left, before `at`; asks for good code when nothing is.
void count(llvm::Instruction* at, llvm::Value* context, llvm::Value* quick, std::uint64_t amount) {
  llvm::Module& module = *at->getModule();
  llvm::IRBuilder<> b(at);
  llvm::LoadInst* before = b.CreateAlignedLoad(b.getInt64Ty(), quick, llvm::Align(8));
  before->setAtomic(llvm::AtomicOrdering::Monotonic);  // threads that run it may lose a count, and nothing else
  llvm::Value* left = b.CreateSub(before, b.getInt64(amount));
  b.CreateAlignedStore(left, quick, llvm::Align(8))->setAtomic(llvm::AtomicOrdering::Monotonic);
  llvm::Instruction* ask =
      llvm::SplitBlockAndInsertIfThen(b.CreateICmpSLT(left, b.getInt64(0)), at, false, rarely(module.getContext()));
  llvm::FunctionCallee replace =
      helper(module, Helper::replace, llvm::Type::getVoidTy(module.getContext()), {b.getPtrTy(), b.getPtrTy()});
  llvm::cast<llvm::Function>(replace.getCallee())->addFnAttr(llvm::Attribute::Cold);
  llvm::IRBuilder<>(ask).CreateCall(replace, {context, quick});
}

// The head of the loop that a continuation begins with, and what its variables are among the arguments.
struct Loop {
  BasicBlock* header = nullptr;
  llvm::SmallVector<llvm::Value*, 16> arguments;
  llvm::CallInst *catch_depth = nullptr, *tape_mark = nullptr, *scratch = nullptr;
};

// What good code does again when it is entered, on the way to the loop, must not do anything.
bool may_run_twice(llvm::Instruction& inst, Loop& loop) {
  if (auto* call = llvm::dyn_cast<llvm::CallInst>(&inst)) {
    llvm::Function* callee = call->getCalledFunction();
    if (!callee) return false;
    if (callee->isIntrinsic())
      return !inst.mayWriteToMemory() || callee->getIntrinsicID() == llvm::Intrinsic::read_register;
    for (auto [which, found] :
         {std::pair{Helper::catch_depth, &loop.catch_depth}, std::pair{Helper::tape_mark, &loop.tape_mark},
          std::pair{Helper::scratch_enter, &loop.scratch}}) {
      if (callee->getName() != helper_info(which).name) continue;
      *found = call;
      return true;
    }
    return false;
  }
  if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&inst)) return !load->isVolatile();  // of whether to stop, too
  return !inst.mayWriteToMemory();
}

// The only way on, but for errors.
BasicBlock* usual_successor(BasicBlock* block) {
  auto* branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
  if (!branch) return nullptr;
  if (branch->isUnconditional()) return branch->getSuccessor(0);
  std::uint64_t first = 0, second = 0;
  if (!llvm::extractBranchWeights(*branch, first, second)) return nullptr;
  if (first == 1 && second > 1) return branch->getSuccessor(1);
  if (second == 1 && first > 1) return branch->getSuccessor(0);
  return nullptr;
}

// SLOPE_DUMP=quick: why a loop gets good code at once.
std::nullopt_t refused(const char* why, const llvm::Value* what = nullptr) {
  if (dump_wants("quick")) {
    llvm::errs() << "; no quick code, " << why << '\n';
    if (what) llvm::errs() << *what << '\n';
  }
  return std::nullopt;
}

std::optional<Loop> find_loop(llvm::Function& function) {
  Loop loop;
  llvm::DominatorTree dominators(function);
  BasicBlock* before = nullptr;
  BasicBlock* block = &function.getEntryBlock();
  for (std::size_t steps = 0;; ++steps) {
    if (steps > 64) return refused("the loop is far");
    if (block->hasNPredecessorsOrMore(2)) break;
    for (llvm::Instruction& inst : *block)
      if (!may_run_twice(inst, loop)) return refused("it does something before the loop", &inst);
    before = block;
    block = usual_successor(block);
    if (!block) return refused("there are two ways", before->getTerminator());
  }
  for (BasicBlock* other : llvm::predecessors(block))
    if (other != before && !dominators.dominates(block, other)) return refused("two ways meet first");
  if (llvm::count(llvm::predecessors(block), before) != 1) return refused("two ways lead to the loop");
  loop.header = block;
  for (llvm::Argument& argument : function.args()) loop.arguments.push_back(&argument);
  for (llvm::PHINode& phi : block->phis()) {
    auto* argument = llvm::dyn_cast<llvm::Argument>(phi.getIncomingValueForBlock(before));
    // Used elsewhere as well: there it is what it was at first.
    if (!argument) return refused("a variable starts with what is no argument", &phi);
    if (!argument->hasOneUse()) return refused("the first value of a variable is used as well", &phi);
    loop.arguments[argument->getArgNo()] = &phi;
  }
  return loop;
}

// Leaves for the good code, if there is some, with what the activation holds given back as Emitter::return_value does.
void add_leap(const Loop& loop, llvm::Function& function, llvm::Value* quick) {
  llvm::Module& module = *function.getParent();
  llvm::Instruction* at = &*loop.header->getFirstInsertionPt();
  llvm::IRBuilder<> b(at);
  llvm::Value* good = b.CreateCall(look_function(module), {quick});
  llvm::Instruction* leave =
      llvm::SplitBlockAndInsertIfThen(b.CreateIsNotNull(good), at, true, rarely(module.getContext()));
  b.SetInsertPoint(leave);
  llvm::Value* result = b.CreateCall(function.getFunctionType(), good, loop.arguments);
  llvm::Value* context = function.getArg(0);
  llvm::Type *none = b.getVoidTy(), *pointer = b.getPtrTy(), *word = b.getInt64Ty();
  if (loop.catch_depth)
    b.CreateCall(helper(module, Helper::leave_catch, none, {pointer, word}), {context, loop.catch_depth});
  if (loop.scratch || loop.tape_mark) {
    llvm::Value* status = result;
    if (auto* members = llvm::dyn_cast<llvm::StructType>(result->getType()))
      status = b.CreateExtractValue(result, members->getNumElements() - 1);
    llvm::Instruction *failed = nullptr, *succeeded = nullptr;
    llvm::SplitBlockAndInsertIfThenElse(b.CreateICmpNE(status, b.getInt8(0)), leave, &failed, &succeeded);
    llvm::Value* mark = loop.scratch ? loop.scratch : loop.tape_mark;
    llvm::IRBuilder<>(failed).CreateCall(helper(module, Helper::tape_release, none, {pointer, word}), {context, mark});
    if (loop.scratch)
      llvm::IRBuilder<>(succeeded).CreateCall(helper(module, Helper::scratch_leave, none, {pointer, word}),
                                              {context, mark});
    b.SetInsertPoint(leave);
  }
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
  count(jump, function.getArg(0), quick, weight);
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

bool has_loop(llvm::Function& function) {
  llvm::DominatorTree dominators(function);
  return !llvm::LoopInfo(dominators).empty();
}

}  // namespace

bool add_switches(Unit& unit) {
  llvm::Function* function = unit.module().getFunction("f");
  if (!unit.quick || !function || function->isDeclaration()) return false;
  const std::uint64_t instructions = function->getInstructionCount();
  std::optional<Loop> loop;
  if (unit.spares_short_loops && instructions < small_loop && has_loop(*function)) return false;
  if (unit.continues_loop) {
    // Without a status there is no loop that may take long.
    loop = find_loop(*function);
    if (!loop) return false;
  }
  llvm::Value* quick = unit.address(unit.quick);
  if (loop) add_leap(*loop, *function, quick);
  add_switch_at_entry(*function, quick, instructions / 2 + 10);
  return true;
}

void lower_switches(llvm::Module& module) {
  llvm::Function* look = module.getFunction(look_name);
  if (!look) return;
  llvm::Value* quick = nullptr;
  while (!look->use_empty()) {
    auto* call = llvm::cast<llvm::CallInst>(look->user_back());
    quick = call->getArgOperand(0);
    llvm::IRBuilder<> b(call);
    llvm::LoadInst* good = b.CreateAlignedLoad(
        b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), quick, offsetof(QuickCode, good)), llvm::Align(8));
    good->setAtomic(llvm::AtomicOrdering::Acquire);
    call->replaceAllUsesWith(good);
    call->eraseFromParent();
  }
  look->eraseFromParent();
  llvm::Function* poll = module.getFunction(poll_name);
  llvm::Function* function = module.getFunction("f");
  if (!poll || !quick || !function) return;
  llvm::DominatorTree dominators(*function);
  llvm::LoopInfo loops(dominators);
  llvm::SmallVector<std::pair<llvm::CallInst*, std::uint64_t>, 16> turns;
  for (llvm::User* user : poll->users()) {
    auto* call = llvm::cast<llvm::CallInst>(user);
    if (call->getFunction() != function) continue;
    std::uint64_t size = 1;
    if (const llvm::Loop* loop = loops.getLoopFor(call->getParent()))
      for (const BasicBlock* block : loop->blocks())
        if (loops.getLoopFor(block) == loop) size += block->size();
    turns.emplace_back(call, size);
  }
  for (auto [call, size] : turns) count(call, call->getArgOperand(0), quick, size);
}

}  // namespace slope::codegen
