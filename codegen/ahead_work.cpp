#include "codegen/ahead_work.hpp"

#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace slope::codegen {

namespace {

using llvm::SCEV;
using llvm::Value;

bool reaches(const llvm::Function& function, const llvm::Function& target, std::set<const llvm::Function*>& seen) {
  if (&function == &target) return true;
  if (!seen.insert(&function).second) return false;
  for (const llvm::Instruction& inst : llvm::instructions(function))
    if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&inst))
      if (const llvm::Function* callee = call->getCalledFunction(); callee && reaches(*callee, target, seen))
        return true;
  return false;
}

// Writes an expression over the arguments of one function as one over those of another. Null: it is none.
class Writer {
 public:
  Writer(llvm::IRBuilder<>& b, llvm::ScalarEvolution& se, const llvm::DominatorTree& dominators,
         const llvm::LoopInfo& loops, std::map<const Value*, Value*> arguments)
      : b_(b), se_(se), dominators_(dominators), loops_(loops), known_(std::move(arguments)) {}

  Value* write(const SCEV* s) {
    if (++steps_ > 5000) return nullptr;
    switch (s->getSCEVType()) {
      case llvm::scConstant:
        return llvm::cast<llvm::SCEVConstant>(s)->getValue();
      case llvm::scTruncate:
      case llvm::scZeroExtend:
      case llvm::scSignExtend: {
        Value* inner = write(llvm::cast<llvm::SCEVCastExpr>(s)->getOperand());
        if (!inner) return nullptr;
        return s->getSCEVType() == llvm::scSignExtend ? b_.CreateSExt(inner, s->getType())
                                                      : b_.CreateZExtOrTrunc(inner, s->getType());
      }
      case llvm::scAddExpr:
      case llvm::scMulExpr:
      case llvm::scSMaxExpr:
      case llvm::scUMaxExpr:
      case llvm::scSMinExpr:
      case llvm::scUMinExpr:
      case llvm::scSequentialUMinExpr:
        return fold(*llvm::cast<llvm::SCEVNAryExpr>(s));
      case llvm::scUDivExpr: {
        const auto* division = llvm::cast<llvm::SCEVUDivExpr>(s);
        const auto* by = llvm::dyn_cast<llvm::SCEVConstant>(division->getRHS());
        Value* what = by && !by->isZero() ? write(division->getLHS()) : nullptr;
        return what ? b_.CreateUDiv(what, by->getValue()) : nullptr;
      }
      case llvm::scUnknown:
        return write(llvm::cast<llvm::SCEVUnknown>(s)->getValue());
      default:
        return nullptr;
    }
  }

 private:
  Value* fold(const llvm::SCEVNAryExpr& s) {
    Value* made = nullptr;
    for (const SCEV* operand : s.operands()) {
      Value* next = write(operand);
      if (!next) return nullptr;
      made = made ? combine(s.getSCEVType(), made, next) : next;
    }
    return made;
  }

  Value* combine(llvm::SCEVTypes kind, Value* a, Value* b) {
    switch (kind) {
      case llvm::scAddExpr:
        return b_.CreateAdd(a, b);
      case llvm::scMulExpr:
        return b_.CreateMul(a, b);
      case llvm::scSMaxExpr:
        return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
      case llvm::scUMaxExpr:
        return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, a, b);
      case llvm::scSMinExpr:
        return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
      default:
        return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, a, b);
    }
  }

  Value* write_operand(Value* operand) {
    return se_.isSCEVable(operand->getType()) && !llvm::isa<llvm::Constant>(operand)
               ? write(se_.getSCEVAtScope(operand, nullptr))
               : write(operand);
  }

  // Where two ways from a branch meet: the choice by its condition.
  Value* write_choice(llvm::PHINode& phi) {
    const auto* from = dominators_.getNode(phi.getParent())->getIDom();
    auto* branch = from ? llvm::dyn_cast<llvm::BranchInst>(from->getBlock()->getTerminator()) : nullptr;
    if (phi.getNumIncomingValues() != 2 || !branch || !branch->isConditional() ||
        loops_.isLoopHeader(phi.getParent()) ||
        loops_.getLoopFor(phi.getParent()) != loops_.getLoopFor(from->getBlock()))
      return nullptr;
    const auto comes = [&](unsigned way, unsigned incoming) {
      const llvm::BasicBlockEdge edge(branch->getParent(), branch->getSuccessor(way));
      const llvm::BasicBlock* block = phi.getIncomingBlock(incoming);
      return block == branch->getParent() ? branch->getSuccessor(way) == phi.getParent()
                                          : dominators_.dominates(edge, block);
    };
    if (branch->getSuccessor(0) == branch->getSuccessor(1)) return nullptr;
    const bool straight = comes(0, 0) && comes(1, 1), crossed = comes(0, 1) && comes(1, 0);
    if (straight == crossed) return nullptr;
    Value* condition = write_operand(branch->getCondition());
    Value* then = condition ? write_operand(phi.getIncomingValue(straight ? 0 : 1)) : nullptr;
    Value* otherwise = then ? write_operand(phi.getIncomingValue(straight ? 1 : 0)) : nullptr;
    return otherwise ? known_[&phi] = b_.CreateSelect(condition, then, otherwise) : nullptr;
  }

  // Integer arithmetic without memory, division or anything that depends on the way.
  Value* write(Value* value) {
    if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value)) return constant;
    if (const auto found = known_.find(value); found != known_.end()) return found->second;
    auto* inst = llvm::dyn_cast<llvm::Instruction>(value);
    if (!inst || ++steps_ > 5000) return nullptr;
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(inst)) return write_choice(*phi);
    const bool is_plain = (llvm::isa<llvm::BinaryOperator>(inst) && !inst->isIntDivRem()) ||
                          llvm::isa<llvm::ICmpInst>(inst) || llvm::isa<llvm::SelectInst>(inst) ||
                          llvm::isa<llvm::ZExtInst>(inst) || llvm::isa<llvm::SExtInst>(inst) ||
                          llvm::isa<llvm::TruncInst>(inst) || llvm::isa<llvm::FreezeInst>(inst) ||
                          llvm::isa<llvm::ExtractValueInst>(inst);
    const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(inst);
    const bool is_known =
        intrinsic && !inst->mayReadOrWriteMemory() && !inst->mayHaveSideEffects() &&
        llvm::all_of(intrinsic->args(), [](const llvm::Use& u) { return u->getType()->isIntegerTy(); });
    if (!is_plain && !is_known) return nullptr;
    std::vector<Value*> operands;
    const unsigned count = intrinsic ? intrinsic->arg_size() : inst->getNumOperands();
    for (unsigned i = 0; i < count; ++i) {
      Value* made = write_operand(inst->getOperand(i));
      if (!made) return nullptr;
      operands.push_back(made);
    }
    llvm::Instruction* copy = inst->clone();
    copy->dropPoisonGeneratingFlags();
    copy->dropUnknownNonDebugMetadata();
    for (unsigned i = 0; i < count; ++i) copy->setOperand(i, operands[i]);
    b_.Insert(copy);
    return known_[value] = copy;
  }

  llvm::IRBuilder<>& b_;
  llvm::ScalarEvolution& se_;
  const llvm::DominatorTree& dominators_;
  const llvm::LoopInfo& loops_;
  std::map<const Value*, Value*> known_;
  int steps_ = 0;
};

}  // namespace

llvm::Function* make_work_size(llvm::Function& entry, const llvm::Function& take, llvm::StringRef symbol) {
  llvm::DominatorTree dominators(entry);
  llvm::LoopInfo loops(dominators);
  llvm::AssumptionCache assumptions(entry);
  llvm::TargetLibraryInfoImpl library(llvm::Triple(entry.getParent()->getTargetTriple()));
  llvm::TargetLibraryInfo functions(library);
  llvm::ScalarEvolution se(entry, functions, assumptions, dominators, loops);

  llvm::IntegerType* i64 = llvm::Type::getInt64Ty(entry.getContext());
  llvm::SmallVector<llvm::Type*, 8> types;
  for (unsigned i = 0; i + 1 < entry.arg_size(); ++i)
    if (entry.getArg(i)->getType()->isIntegerTy()) types.push_back(entry.getArg(i)->getType());
  llvm::Function* made = llvm::Function::Create(llvm::FunctionType::get(i64, types, false),
                                                llvm::GlobalValue::ExternalLinkage, symbol, entry.getParent());
  made->addFnAttr(llvm::Attribute::NoUnwind);
  std::map<const Value*, Value*> arguments;
  unsigned next = 0;
  for (unsigned i = 0; i + 1 < entry.arg_size(); ++i)
    if (entry.getArg(i)->getType()->isIntegerTy()) arguments[entry.getArg(i)] = made->getArg(next++);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(entry.getContext(), "entry", made));
  Writer writer(b, se, dominators, loops, std::move(arguments));

  // What is out of these limits belongs to a way that is not taken, or would fail.
  constexpr std::uint64_t most = std::uint64_t{1} << 50;
  auto limited = [&](Value* v) {
    return b.CreateSelect(b.CreateICmpUGT(v, b.getInt64(most)), b.getInt64(0), b.CreateZExtOrTrunc(v, i64));
  };
  const auto size_of = [&](llvm::CallBase& call) -> Value* {
    const SCEV* size = se.getSCEV(call.getArgOperand(1));
    std::vector<Value*> turns;
    for (const llvm::Loop* loop = loops.getLoopFor(call.getParent()); loop; loop = loop->getParentLoop()) {
      const SCEV* count = se.getSymbolicMaxBackedgeTakenCount(loop);
      if (llvm::isa<llvm::SCEVCouldNotCompute>(count)) return nullptr;
      count = se.getNoopOrZeroExtend(count, i64);
      if (!se.isLoopInvariant(size, loop)) {
        const auto* step = llvm::dyn_cast<llvm::SCEVAddRecExpr>(size);
        if (!step || step->getLoop() != loop || !step->isAffine()) return nullptr;
        size = se.getUMaxExpr(step->getStart(), step->evaluateAtIteration(count, se));
      }
      Value* often = writer.write(se.getSCEVAtScope(se.getAddExpr(count, se.getOne(i64)), nullptr));
      if (!often) return nullptr;
      turns.push_back(often);
    }
    Value* bytes = writer.write(se.getSCEVAtScope(size, nullptr));
    if (!bytes) return nullptr;
    bytes = limited(bytes);
    for (Value* often : turns) {
      Value* product = b.CreateBinaryIntrinsic(llvm::Intrinsic::umul_with_overflow, bytes, limited(often));
      bytes =
          limited(b.CreateSelect(b.CreateExtractValue(product, 1), b.getInt64(0), b.CreateExtractValue(product, 0)));
    }
    return bytes;
  };

  Value* sum = b.getInt64(15);  // up to the first multiple of 16
  bool is_known = true;
  for (llvm::Instruction& inst : llvm::instructions(entry)) {
    auto* call = llvm::dyn_cast<llvm::CallBase>(&inst);
    const llvm::Function* callee = call ? call->getCalledFunction() : nullptr;
    if (!callee || !is_known) continue;
    std::set<const llvm::Function*> seen;
    Value* size = callee == &take ? size_of(*call) : reaches(*callee, take, seen) ? nullptr : b.getInt64(0);
    is_known = size != nullptr;
    if (size) sum = b.CreateAdd(sum, size);
  }
  b.CreateRet(sum);
  if (is_known) return made;
  made->eraseFromParent();
  return nullptr;
}

}  // namespace slope::codegen
