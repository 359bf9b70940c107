#include "codegen/rotating_sums.hpp"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/UnrollLoop.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "lang/support/tuning.hpp"

namespace slope::codegen {

namespace {

constexpr unsigned least_sums = 4, most_sums = 16;
constexpr unsigned largest_body = tuning::summing_loop_size;

using Sums = llvm::SmallVector<llvm::PHINode*, most_sums>;

// The sums that rotate through the loop's phis, the oldest first: each becomes the one before it.
Sums rotating(const llvm::Loop& loop) {
  llvm::BasicBlock* header = loop.getHeader();
  llvm::BasicBlock* latch = loop.getLoopLatch();
  if (!latch) return {};
  auto next_of = [&](llvm::PHINode& phi) -> llvm::PHINode* {
    auto* next = llvm::dyn_cast<llvm::PHINode>(phi.getIncomingValueForBlock(latch));
    return next && next != &phi && next->getParent() == header ? next : nullptr;
  };
  llvm::SmallPtrSet<llvm::PHINode*, 16> followed;
  for (llvm::PHINode& phi : header->phis())
    if (llvm::PHINode* next = next_of(phi)) followed.insert(next);
  for (llvm::PHINode& phi : header->phis()) {
    if (!phi.getType()->isFloatingPointTy() || followed.contains(&phi)) continue;
    Sums sums{&phi};
    for (llvm::PHINode* next = next_of(phi); next && sums.size() <= most_sums; next = next_of(*next))
      sums.push_back(next);
    if (sums.size() < least_sums || sums.size() > most_sums) continue;
    // The newest is made of the oldest.
    auto* made = llvm::dyn_cast<llvm::BinaryOperator>(sums.back()->getIncomingValueForBlock(latch));
    if (made && loop.contains(made) && llvm::is_contained(made->operands(), &phi)) return sums;
  }
  return {};
}

bool is_small(const llvm::Loop& loop) {
  unsigned size = 0;
  for (const llvm::BasicBlock* block : loop.blocks()) size += static_cast<unsigned>(block->size());
  return size <= largest_body;
}

// After unrolling: the sums as vectors of what the machine's registers hold. The vectors of what is added, gathered item
// by item, are where SLP starts. (Left to itself it starts from where the sums are added up after the loop.)
class SumsInVectors {
 public:
  SumsInVectors(llvm::Loop& loop, const Sums& sums) : loop_(loop), sums_(sums) {}

  void run(unsigned lanes, llvm::DominatorTree& dominators, llvm::LoopInfo& loops) {
    latch_ = loop_.getLoopLatch();
    before_ = loop_.getLoopPreheader();
    llvm::BasicBlock* exit = latch_ ? loop_.getExitBlock() : nullptr;
    if (!before_ || !exit || loop_.getExitingBlock() != latch_ || lanes < 2 || sums_.size() % lanes != 0) return;
    if (!find_steps()) return;
    llvm::BasicBlock* after = llvm::SplitEdge(latch_, exit, &dominators, &loops);
    for (unsigned first = 0; first < sums_.size(); first += lanes) join(first, lanes, after);
    for (llvm::PHINode* sum : sums_) {
      sum->replaceAllUsesWith(llvm::PoisonValue::get(sum->getType()));
      sum->eraseFromParent();
    }
    for (llvm::BinaryOperator* step : steps_) step->eraseFromParent();
  }

 private:
  // What each sum becomes, where the loop uses neither otherwise.
  bool find_steps() {
    for (llvm::PHINode* sum : sums_) {
      auto* step = llvm::dyn_cast<llvm::BinaryOperator>(sum->getIncomingValueForBlock(latch_));
      if (!step || step->getParent() == nullptr || !loop_.contains(step) || !sum->hasOneUse()) return false;
      if (step->getOperand(0) != sum && step->getOperand(1) != sum) return false;
      if (step->getOperand(0) == step->getOperand(1)) return false;
      if (!steps_.empty() && (step->getOpcode() != steps_[0]->getOpcode() ||
                              (step->getOperand(0) == sum) != (steps_[0]->getOperand(0) == sums_[0])))
        return false;
      for (llvm::User* user : step->users())
        if (user != sum && loop_.contains(llvm::cast<llvm::Instruction>(user))) return false;
      steps_.push_back(step);
    }
    return true;
  }

  llvm::Value* gather(llvm::IRBuilder<>& b, unsigned first, unsigned lanes, auto&& item) {
    auto* type = llvm::FixedVectorType::get(sums_[0]->getType(), lanes);
    llvm::Value* vector = llvm::PoisonValue::get(type);
    for (unsigned k = 0; k < lanes; ++k) vector = b.CreateInsertElement(vector, item(first + k), std::uint64_t{k});
    return vector;
  }

  void join(unsigned first, unsigned lanes, llvm::BasicBlock* after) {
    llvm::IRBuilder<> b(before_->getTerminator());
    llvm::Value* start =
        gather(b, first, lanes, [&](unsigned k) { return sums_[k]->getIncomingValueForBlock(before_); });
    b.SetInsertPoint(loop_.getHeader(), loop_.getHeader()->begin());
    llvm::PHINode* vector = b.CreatePHI(start->getType(), 2);
    b.SetInsertPoint(latch_->getTerminator());
    const bool left = steps_[0]->getOperand(0) == sums_[0];
    llvm::Value* items = gather(b, first, lanes, [&](unsigned k) { return steps_[k]->getOperand(left ? 1 : 0); });
    llvm::Value* next = left ? b.CreateBinOp(steps_[0]->getOpcode(), vector, items)
                             : b.CreateBinOp(steps_[0]->getOpcode(), items, vector);
    vector->addIncoming(start, before_);
    vector->addIncoming(next, latch_);
    b.SetInsertPoint(after, after->begin());
    llvm::PHINode* last = b.CreatePHI(next->getType(), 1);
    last->addIncoming(next, latch_);
    b.SetInsertPoint(after->getTerminator());
    for (unsigned k = 0; k < lanes; ++k) {
      llvm::Value* sum = b.CreateExtractElement(last, std::uint64_t{k});
      steps_[first + k]->replaceUsesWithIf(sum, [&](llvm::Use& use) {
        auto* user = llvm::cast<llvm::Instruction>(use.getUser());
        return !loop_.contains(user);
      });
    }
  }

  llvm::Loop& loop_;
  const Sums& sums_;
  llvm::SmallVector<llvm::BinaryOperator*, most_sums> steps_;
  llvm::BasicBlock* latch_ = nullptr;
  llvm::BasicBlock* before_ = nullptr;
};

}  // namespace

llvm::PreservedAnalyses RotatingSumsPass::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  llvm::SmallVector<std::pair<llvm::Loop*, Sums>, 4> found;
  for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
    if (!loop->isInnermost() || !is_small(*loop)) continue;
    if (Sums sums = rotating(*loop); !sums.empty()) found.emplace_back(loop, std::move(sums));
  }
  if (found.empty()) return llvm::PreservedAnalyses::all();
  auto& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
  auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
  auto& assumptions = analyses.getResult<llvm::AssumptionAnalysis>(function);
  auto& target = analyses.getResult<llvm::TargetIRAnalysis>(function);
  auto& remarks = analyses.getResult<llvm::OptimizationRemarkEmitterAnalysis>(function);
  for (llvm::Loop* loop : loops) {
    llvm::simplifyLoop(loop, &dominators, &loops, &evolution, &assumptions, nullptr, /*PreserveLCSSA=*/false);
    llvm::formLCSSARecursively(*loop, dominators, &loops, &evolution);
  }
  const std::uint64_t bits =
      target.getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector).getFixedValue();
  for (auto& [loop, sums] : found) {
    llvm::UnrollLoopOptions options{};
    options.Count = static_cast<unsigned>(sums.size());
    options.Force = true;
    options.Runtime = true;
    options.AllowExpensiveTripCount = true;
    const llvm::LoopUnrollResult result =
        llvm::UnrollLoop(loop, options, &loops, &evolution, &dominators, &assumptions, &target, &remarks,
                         /*PreserveLCSSA=*/true);
    if (result != llvm::LoopUnrollResult::PartiallyUnrolled) continue;
    const std::uint64_t lanes = bits / sums[0]->getType()->getPrimitiveSizeInBits().getFixedValue();
    SumsInVectors(*loop, sums)
        .run(static_cast<unsigned>(std::min<std::uint64_t>(lanes, sums.size())), dominators, loops);
  }
  return llvm::PreservedAnalyses::none();
}

}  // namespace slope::codegen
