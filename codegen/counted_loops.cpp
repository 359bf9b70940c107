#include "codegen/counted_loops.hpp"

#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/IR/ProfDataUtils.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include "codegen/helpers.hpp"
#include "codegen/layout.hpp"
#include "lang/support/tuning.hpp"

namespace slope::codegen {

namespace {

using llvm::BasicBlock;
using llvm::BranchInst;
using llvm::ICmpInst;
using llvm::SCEV;

constexpr std::uint64_t strip_turns = tuning::strip_turns;
constexpr std::uint64_t few_turns = tuning::few_turns;
constexpr std::uint64_t unasked_turns = tuning::unasked_turns;
constexpr std::uint64_t most_turns = std::uint64_t{1} << 61;  // more: the loop stays as it is
constexpr std::int64_t largest_step = 1 << 20;
constexpr unsigned largest_loop = tuning::counted_loop_size;
constexpr std::size_t most_conditions = tuning::counted_loop_conditions;
constexpr unsigned expansion_budget = tuning::counted_loop_expansion;
constexpr unsigned most_copies = tuning::counted_loop_copies;

bool is_poll(const llvm::Instruction& inst) {
  auto* call = llvm::dyn_cast<llvm::CallInst>(&inst);
  return call && call->getCalledFunction() && call->getCalledFunction()->getName() == poll_name;
}

constexpr unsigned poll_turns = 4;  // the argument
bool counts_fuel(const llvm::CallInst* poll) {
  auto* turns = llvm::dyn_cast<llvm::ConstantInt>(poll->getArgOperand(poll_turns));
  return !turns || !turns->isZero();
}

// Of a loop that need not ask: nothing, or one poll before it that counts its turns.
void drop_polls(llvm::ArrayRef<llvm::CallInst*> polls, llvm::Value* turns, llvm::Instruction* before) {
  if (counts_fuel(polls[0])) {
    polls[0]->setArgOperand(poll_turns, turns);
    polls[0]->moveBefore(before);
    polls = polls.drop_front();
  }
  for (llvm::CallInst* poll : polls) poll->eraseFromParent();
}

// The branch that stays in the loop becomes unconditional.
void always_stay(BranchInst* branch, const llvm::Loop& loop) {
  BasicBlock* block = branch->getParent();
  unsigned leaving = loop.contains(branch->getSuccessor(0)) ? 1 : 0;
  branch->getSuccessor(leaving)->removePredecessor(block, /*KeepOneInputPHIs=*/true);
  BranchInst* jump = BranchInst::Create(branch->getSuccessor(1 - leaving), branch->getIterator());
  jump->setDebugLoc(branch->getDebugLoc());
  if (auto* node = branch->getMetadata(llvm::LLVMContext::MD_loop)) jump->setMetadata(llvm::LLVMContext::MD_loop, node);
  branch->eraseFromParent();
}

// One comparison that must hold in all turns 0 … last: `index` at turn k is start + k * step. Or, when there is no
// start: the exit is not taken before turn `bound`.
struct Condition {
  ICmpInst::Predicate predicate = ICmpInst::ICMP_ULT;
  const SCEV* start = nullptr;
  const SCEV* step = nullptr;  // null: the same in every turn
  const SCEV* bound = nullptr;
  bool one_less = false;         // not evaluated in the turn in which the loop ends
  llvm::Value* index = nullptr;  // as it is computed in the loop; null: as `start` says

  friend bool operator==(const Condition& a, const Condition& b) {
    return a.predicate == b.predicate && a.start == b.start && a.step == b.step && a.bound == b.bound &&
           a.one_less == b.one_less;
  }
};

class CountedLoop {
 public:
  CountedLoop(llvm::Loop* loop, llvm::LoopInfo& loops, llvm::DominatorTree& dominators,
              llvm::ScalarEvolution& evolution, const llvm::TargetTransformInfo& target)
      : loop_(loop), loops_(loops), dominators_(dominators), evolution_(evolution), target_(target) {}

  bool run() {
    if (!suits()) return false;
    find_checks();
    bool changed = version();
    return strip() || changed;
  }

 private:
  bool suits() {
    preheader_ = loop_->getLoopPreheader();
    latch_ = loop_->getLoopLatch();
    if (!preheader_ || !latch_ || !loop_->hasDedicatedExits()) return false;
    unsigned size = 0;
    for (BasicBlock* block : loop_->blocks()) {
      if (!llvm::isa<BranchInst>(block->getTerminator()) && !llvm::isa<llvm::SwitchInst>(block->getTerminator()))
        return false;
      for (llvm::Instruction& inst : *block) {
        if (++size > largest_loop) return false;
        if (inst.getType()->isTokenTy()) return false;
        if (is_poll(inst)) {
          polls_.push_back(llvm::cast<llvm::CallInst>(&inst));
          continue;
        }
        // What takes long by itself needs neither.
        auto* call = llvm::dyn_cast<llvm::CallBase>(&inst);
        if (call && (!call->onlyReadsMemory() || call->isConvergent()) && !llvm::isa<llvm::IntrinsicInst>(call))
          return false;
      }
    }
    // The exit that counts, by preference the one at the end of the turn.
    llvm::SmallVector<BasicBlock*, 8> leaving;
    loop_->getExitingBlocks(leaving);
    auto countable = [&](BasicBlock* block) {
      if (!llvm::isa<BranchInst>(block->getTerminator())) return false;
      const SCEV* count = evolution_.getExitCount(loop_, block);
      return !llvm::isa<llvm::SCEVCouldNotCompute>(count) && count->getType()->isIntegerTy() &&
             count->getType()->getIntegerBitWidth() <= 64;
    };
    if (loop_->isLoopExiting(latch_) && countable(latch_)) {
      counter_ = latch_;
    } else {
      // A bounds check counts as well, so to speak: the usual exits only.
      for (BasicBlock* block : leaving)
        if (!counter_ && dominators_.dominates(block, latch_) && !is_rare_exit(block) && countable(block))
          counter_ = block;
    }
    i64_ = llvm::Type::getInt64Ty(latch_->getContext());
    if (counter_) {
      turns_ = evolution_.getNoopOrZeroExtend(evolution_.getExitCount(loop_, counter_), i64_);
      llvm::SCEVExpander expander(evolution_, latch_->getModule()->getDataLayout(), "turns");
      if (is_cheap(expander, turns_, preheader_->getTerminator())) return true;
      counter_ = nullptr;
    }
    return find_limit();
  }

  // `while i <= n`, i growing by what is not known now (or by more than one: no division before a loop): the number of
  // turns is not known, but how far i goes.
  bool find_limit() {
    auto* branch = llvm::cast<BranchInst>(latch_->getTerminator());
    auto* compare = branch->isConditional() ? llvm::dyn_cast<ICmpInst>(branch->getCondition()) : nullptr;
    if (!compare || !loop_->isLoopExiting(latch_) || compare->getOperand(0)->getType() != i64_) return false;
    ICmpInst::Predicate predicate = compare->getPredicate();
    if (!loop_->contains(branch->getSuccessor(0))) predicate = ICmpInst::getInversePredicate(predicate);
    const SCEV* left = evolution_.getSCEV(compare->getOperand(0));
    const SCEV* right = evolution_.getSCEV(compare->getOperand(1));
    if (evolution_.isLoopInvariant(left, loop_)) {
      std::swap(left, right);
      predicate = ICmpInst::getSwappedPredicate(predicate);
    }
    auto* next = llvm::dyn_cast<llvm::SCEVAddRecExpr>(left);
    if (!next || next->getLoop() != loop_ || !next->isAffine() || !evolution_.isLoopInvariant(right, loop_) ||
        (predicate != ICmpInst::ICMP_SLE && predicate != ICmpInst::ICMP_SLT))
      return false;
    limit_.step = next->getStepRecurrence(evolution_);
    limit_.start = evolution_.getMinusSCEV(next->getStart(), limit_.step);
    limit_.bound = predicate == ICmpInst::ICMP_SLE ? right : evolution_.getMinusSCEV(right, evolution_.getOne(i64_));
    counter_ = latch_;
    if (limit_.step->isOne() && predicate == ICmpInst::ICMP_SLE) count_ones(right);
    return true;
  }

  // Of `while i <= n`, i growing by one, the number of turns is known unless n is the largest number of all (then the
  // loop has no end). That is one condition more; where the loop is not copied it counts nothing.
  void count_ones(const SCEV* bound) {
    const SCEV* last = evolution_.getSMaxExpr(limit_.start, bound);
    const SCEV* turns = evolution_.getMinusSCEV(last, limit_.start);
    llvm::SCEVExpander expander(evolution_, latch_->getModule()->getDataLayout(), "turns");
    llvm::Instruction* end = preheader_->getTerminator();
    if (!is_cheap(expander, turns, end) || !is_cheap(expander, bound, end)) return;
    const SCEV* largest = evolution_.getConstant(llvm::APInt::getSignedMaxValue(64));
    conditions_.push_back(Condition{ICmpInst::ICMP_NE, bound, nullptr, largest, false, nullptr});
    turns_ = turns;
    last_ = last;
    limit_ = {};
  }

  // The loop that was counted so says when it ends: LLVM then finds the number as well.
  void end_at_last() {
    auto* branch = llvm::cast<BranchInst>(latch_->getTerminator());
    auto* compare = llvm::cast<ICmpInst>(branch->getCondition());
    const unsigned leaving = loop_->contains(branch->getSuccessor(0)) ? 1 : 0;
    llvm::Value* next = compare->getOperand(loop_->isLoopInvariant(compare->getOperand(0)) ? 1 : 0);
    llvm::SCEVExpander expander(evolution_, latch_->getModule()->getDataLayout(), "last");
    const SCEV* end = evolution_.getAddExpr(last_, evolution_.getOne(i64_));
    llvm::Value* stop = expander.expandCodeFor(end, i64_, preheader_->getTerminator());
    llvm::IRBuilder<> b(branch);
    branch->setCondition(b.CreateICmp(leaving == 0 ? ICmpInst::ICMP_EQ : ICmpInst::ICMP_NE, next, stop));
  }

  // Prefers what is there: the value that a variable of the loop starts with, give or take a constant. (Left alone, the
  // expander gives the surrounding loop a new induction variable for each expression.)
  llvm::Value* expand(llvm::IRBuilder<>& b, llvm::SCEVExpander& expander, const SCEV* s) {
    if (!llvm::isa<llvm::SCEVConstant>(s)) {
      for (llvm::PHINode& phi : loop_->getHeader()->phis()) {
        if (phi.getType() != s->getType()) continue;
        llvm::Value* start = phi.getIncomingValueForBlock(preheader_);
        if (llvm::isa<llvm::Constant>(start)) continue;
        const SCEV* difference = evolution_.getMinusSCEV(s, evolution_.getSCEV(start));
        if (auto* constant = llvm::dyn_cast<llvm::SCEVConstant>(difference))
          return constant->isZero() ? start : b.CreateAdd(start, constant->getValue());
      }
    }
    return expander.expandCodeFor(s, s->getType(), &*b.GetInsertPoint());
  }

  // How far `limit_` goes above its start, and in `sure` whether that is so: start and bound are not negative, the step
  // is positive, the last sum does not overflow.
  llvm::Value* distance(llvm::IRBuilder<>& b, llvm::SCEVExpander& expander, llvm::Value*& sure) {
    llvm::Value* zero = llvm::ConstantInt::get(i64_, 0);
    auto value = [&](const SCEV* s) { return expand(b, expander, s); };
    llvm::Value* start = b.CreateFreeze(value(limit_.start));
    llvm::Value* bound = b.CreateFreeze(value(limit_.bound));
    llvm::Value* step = b.CreateFreeze(value(limit_.step));
    sure = b.CreateICmpSGE(b.CreateOr(start, bound), zero);
    sure = b.CreateAnd(sure, b.CreateICmpSGT(step, zero));
    sure = b.CreateAnd(
        sure,
        b.CreateICmpSLE(step, b.CreateSub(llvm::ConstantInt::get(i64_, llvm::APInt::getSignedMaxValue(64)), bound)));
    llvm::Value* far = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b.CreateSub(bound, start), zero);
    sure = b.CreateAnd(sure, b.CreateICmpULT(far, llvm::ConstantInt::get(i64_, unasked_turns)));
    return far;
  }

  bool is_rare_exit(BasicBlock* block) const {
    auto* branch = llvm::dyn_cast<BranchInst>(block->getTerminator());
    std::uint64_t yes = 0, no = 0;
    if (!branch || !branch->isConditional() || !llvm::extractBranchWeights(*branch, yes, no)) return false;
    std::uint64_t leave = loop_->contains(branch->getSuccessor(0)) ? no : yes;
    return leave * 100 < yes + no;
  }

  void find_checks() {
    llvm::SCEVExpander expander(evolution_, counter_->getModule()->getDataLayout(), "check");
    llvm::SmallVector<BasicBlock*, 8> leaving;
    loop_->getExitingBlocks(leaving);
    for (BasicBlock* block : leaving) {
      auto* branch = llvm::dyn_cast<BranchInst>(block->getTerminator());
      if (block == counter_ || !branch || !is_rare_exit(block)) continue;
      if (llvm::isa<llvm::Constant>(branch->getCondition())) continue;
      bool one_less = counter_ != latch_ && dominators_.dominates(counter_, block);
      llvm::SmallVector<Condition, 4> found;
      if (!stays(branch->getCondition(), loop_->contains(branch->getSuccessor(0)), one_less, found, 0)) {
        if (limit_.step) continue;
        // Compared with != after LLVM worked on it.
        const SCEV* taken = evolution_.getExitCount(loop_, block);
        if (llvm::isa<llvm::SCEVCouldNotCompute>(taken) || taken->getType()->getIntegerBitWidth() > 64) continue;
        taken = evolution_.getNoopOrZeroExtend(taken, i64_);
        found.assign({Condition{ICmpInst::ICMP_ULT, nullptr, nullptr, taken, one_less}});
      }
      if (conditions_.size() + found.size() > most_conditions) continue;
      const bool cheap =
          std::all_of(found.begin(), found.end(), [&](const Condition& c) { return is_cheap(expander, c); });
      if (!cheap) continue;
      for (const Condition& condition : found)
        if (std::find(conditions_.begin(), conditions_.end(), condition) == conditions_.end())
          conditions_.push_back(condition);
      removed_.push_back(branch);
    }
  }

  // `value` is `wanted` in every turn when all conditions hold. False when that can't be said.
  bool stays(llvm::Value* value, bool wanted, bool one_less, llvm::SmallVectorImpl<Condition>& found, int depth) {
    using namespace llvm::PatternMatch;
    llvm::Value *a, *b;
    if (depth > 8) return false;
    if (match(value, m_Not(m_Value(a)))) return stays(a, !wanted, one_less, found, depth + 1);
    if (wanted ? match(value, m_LogicalAnd(m_Value(a), m_Value(b))) : match(value, m_LogicalOr(m_Value(a), m_Value(b))))
      return stays(a, wanted, one_less, found, depth + 1) && stays(b, wanted, one_less, found, depth + 1);
    auto* compare = llvm::dyn_cast<ICmpInst>(value);
    if (!compare || !compare->getOperand(0)->getType()->isIntegerTy(64)) return false;
    ICmpInst::Predicate predicate = wanted ? compare->getPredicate() : compare->getInversePredicate();
    const SCEV* left = evolution_.getSCEVAtScope(compare->getOperand(0), loop_);
    const SCEV* right = evolution_.getSCEVAtScope(compare->getOperand(1), loop_);
    llvm::Value* computed = compare->getOperand(0);
    if (!evolution_.isLoopInvariant(right, loop_)) {
      std::swap(left, right);
      computed = compare->getOperand(1);
      predicate = ICmpInst::getSwappedPredicate(predicate);
    }
    if (!evolution_.isLoopInvariant(right, loop_)) return false;
    if (evolution_.isLoopInvariant(left, loop_)) {
      found.push_back({predicate, left, nullptr, right, one_less});
      return true;
    }
    auto* index = llvm::dyn_cast<llvm::SCEVAddRecExpr>(left);
    if (!index || index->getLoop() != loop_ || !index->isAffine()) return false;
    // What holds at both ends holds between them: not so of `!=`, and of `>=` among unsigned numbers (whose bound may
    // be "negative") neither.
    if (predicate == ICmpInst::ICMP_NE || predicate == ICmpInst::ICMP_UGT || predicate == ICmpInst::ICMP_UGE)
      return false;
    found.push_back({predicate, index->getStart(), index->getStepRecurrence(evolution_), right, one_less, computed});
    return !limit_.step || (limit_.step == found.back().step && ICmpInst::isUnsigned(predicate));
  }

  llvm::Value* no_overflow(llvm::IRBuilder<>& b, llvm::Intrinsic::ID operation, llvm::Value*& x, llvm::Value* y) {
    llvm::Value* both = b.CreateBinaryIntrinsic(operation, x, y);
    x = b.CreateExtractValue(both, 0);
    return b.CreateNot(b.CreateExtractValue(both, 1));
  }

  // May stand before the loop, and costs little there: no division, for the loop may be entered often and be short.
  bool is_cheap(llvm::SCEVExpander& expander, const SCEV* expression, const llvm::Instruction* at) const {
    return expander.isSafeToExpandAt(expression, at) &&
           !expander.isHighCostExpansion({expression}, loop_, expansion_budget, &target_, at);
  }

  bool is_cheap(llvm::SCEVExpander& expander, const Condition& c) const {
    const llvm::Instruction* end = preheader_->getTerminator();
    unsigned copies = 0;
    return (!c.start || is_copied(c.index, copies) || is_cheap(expander, c.start, end)) &&
           is_cheap(expander, c.bound, end) && (!c.step || is_cheap(expander, c.step, end));
  }

  // Whether the value in the first turn is had by copies of a few sums and products of the loop. An expression over the
  // induction variables of the loops around would be made anew from the start of the outermost.
  bool is_copied(llvm::Value* v, unsigned& copies) const {
    if (!v || !v->getType()->isIntegerTy()) return false;
    if (loop_->isLoopInvariant(v)) return true;
    auto* inst = llvm::cast<llvm::Instruction>(v);
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(inst)) return phi->getParent() == loop_->getHeader();
    switch (inst->getOpcode()) {
      case llvm::Instruction::Add:
      case llvm::Instruction::Sub:
      case llvm::Instruction::Mul:
      case llvm::Instruction::Shl:
      case llvm::Instruction::Or:   // LLVM's forms of sums: `a + 1` of an even number,
      case llvm::Instruction::Xor:  // and `~b` for `-b - 1`
        return ++copies <= most_copies && is_copied(inst->getOperand(0), copies) &&
               is_copied(inst->getOperand(1), copies);
      default:
        return false;
    }
  }
  llvm::Value* copy(llvm::IRBuilder<>& b, llvm::Value* v) {
    if (loop_->isLoopInvariant(v)) return v;
    auto* inst = llvm::cast<llvm::Instruction>(v);
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(inst)) return phi->getIncomingValueForBlock(preheader_);
    llvm::Value* left = copy(b, inst->getOperand(0));
    llvm::Value* right = copy(b, inst->getOperand(1));
    return b.CreateBinOp(static_cast<llvm::Instruction::BinaryOps>(inst->getOpcode()), left, right);
  }

  // Asked before the loop. `turns`: how many, or of a loop with a limit how far its index goes.
  llvm::Value* holds(llvm::IRBuilder<>& b, llvm::SCEVExpander& expander, const Condition& condition,
                     llvm::Value* turns) {
    auto value = [&](const SCEV* s) { return expand(b, expander, s); };
    llvm::Value* bound = value(condition.bound);
    llvm::Value* last = condition.one_less ? b.CreateSub(turns, llvm::ConstantInt::get(i64_, 1)) : turns;
    if (!condition.start) return b.CreateFreeze(b.CreateICmpULT(last, bound));
    unsigned copies = 0;
    llvm::Value* start = is_copied(condition.index, copies) ? copy(b, condition.index) : value(condition.start);
    llvm::Value* result = b.CreateICmp(condition.predicate, start, bound);
    if (!condition.step) return b.CreateFreeze(result);
    bool is_unsigned = ICmpInst::isUnsigned(condition.predicate);
    auto* step = llvm::dyn_cast<llvm::SCEVConstant>(condition.step);
    llvm::Value* end = start;
    llvm::Value* fits = nullptr;
    if (is_unsigned) {
      // Then 0 <= start < 2^63, and
      result = b.CreateAnd(result, b.CreateICmpSGE(bound, llvm::ConstantInt::get(i64_, 0)));
    }
    if (limit_.step) {
      end = b.CreateAdd(start, turns);
    } else if (is_unsigned && step && step->getAPInt().abs().ule(largest_step)) {
      // |step| * last < 2^63 (see most_turns): the end is a number of 64 bits, negative when it is below 0.
      std::int64_t by = step->getAPInt().getSExtValue();
      most_ = std::min(most_, most_turns / static_cast<std::uint64_t>(by < 0 ? -by : by));
      end = b.CreateAdd(start, b.CreateMul(last, llvm::ConstantInt::getSigned(i64_, by)));
    } else {
      llvm::Value* way = value(condition.step);
      fits = no_overflow(b, llvm::Intrinsic::smul_with_overflow, way, last);
      fits = b.CreateAnd(fits, no_overflow(b, llvm::Intrinsic::sadd_with_overflow, end, way));
    }
    result = b.CreateAnd(result, b.CreateICmp(condition.predicate, end, bound));
    if (fits) result = b.CreateAnd(result, fits);
    return b.CreateFreeze(result);
  }

  bool version() {
    if (removed_.empty() && (!last_ || polls_.empty())) return false;
    const llvm::DataLayout& layout = counter_->getModule()->getDataLayout();
    llvm::SCEVExpander expander(evolution_, layout, "check");
    llvm::Instruction* end = preheader_->getTerminator();
    if (limit_.step && (!is_cheap(expander, limit_.start, end) || !is_cheap(expander, limit_.bound, end) ||
                        !is_cheap(expander, limit_.step, end)))
      return false;
    llvm::IRBuilder<> b(end);
    llvm::Value* safe = nullptr;
    llvm::Value* turns = limit_.step ? distance(b, expander, safe) : expander.expandCodeFor(turns_, i64_, end);
    for (const Condition& c : conditions_) {
      llvm::Value* one = holds(b, expander, c, turns);
      safe = safe ? b.CreateAnd(safe, one) : one;
    }
    if (!limit_.step) {
      // The count before the last turn of a loop that takes none is huge, and fails here.
      bool any_less =
          std::any_of(conditions_.begin(), conditions_.end(), [](const Condition& c) { return c.one_less; });
      llvm::Value* few = b.CreateICmpULT(any_less ? b.CreateSub(turns, llvm::ConstantInt::get(i64_, 1)) : turns,
                                         llvm::ConstantInt::get(i64_, most_));
      safe = b.CreateAnd(safe, b.CreateFreeze(few));
    }

    BasicBlock* decision = preheader_;
    preheader_ = llvm::SplitBlock(decision, end, &dominators_, &loops_, nullptr, "unchecked");
    llvm::ValueToValueMapTy copies;
    llvm::SmallVector<BasicBlock*, 16> blocks;
    llvm::Loop* checked =
        llvm::cloneLoopWithPreheader(preheader_, decision, loop_, copies, ".checked", &loops_, &dominators_, blocks);
    llvm::remapInstructionsInBlocks(blocks, copies);
    llvm::Instruction* jump = decision->getTerminator();
    llvm::IRBuilder<> at(jump);
    at.CreateCondBr(safe, preheader_, checked->getLoopPreheader(),
                    llvm::MDBuilder(i64_->getContext()).createBranchWeights(1000, 1));
    jump->eraseFromParent();

    // Who leaves the loop may come from the copy as well.
    llvm::SmallVector<BasicBlock*, 8> exits;
    loop_->getUniqueExitBlocks(exits);
    for (BasicBlock* exit : exits) {
      for (llvm::PHINode& phi : exit->phis()) {
        for (unsigned i = 0, n = phi.getNumIncomingValues(); i < n; ++i) {
          BasicBlock* from = phi.getIncomingBlock(i);
          if (!loop_->contains(from)) continue;
          llvm::Value* value = phi.getIncomingValue(i);
          auto copy = copies.find(value);
          phi.addIncoming(copy == copies.end() ? value : static_cast<llvm::Value*>(copy->second),
                          llvm::cast<BasicBlock>(copies[from]));
        }
      }
    }
    leave_alone(checked);
    for (BranchInst* branch : removed_) always_stay(branch, *loop_);
    if (last_) end_at_last();
    if (limit_.step) {  // few turns
      if (!polls_.empty() && !counts_fuel(polls_[0])) {
        for (llvm::CallInst* poll : polls_) poll->eraseFromParent();
        polls_.clear();
      }
      leave_alone(loop_);  // LLVM would find a way to vectorise it, with a division in front
    }
    dominators_.recalculate(*counter_->getParent());
    evolution_.forgetAllLoops();
    return true;
  }

  // Not worth vectorising or unrolling.
  static void leave_alone(llvm::Loop* loop) {
    llvm::LLVMContext& context = loop->getHeader()->getContext();
    auto flag = [&](const char* name, bool with_value) {
      llvm::SmallVector<llvm::Metadata*, 2> parts{llvm::MDString::get(context, name)};
      if (with_value)
        parts.push_back(llvm::ConstantAsMetadata::get(llvm::ConstantInt::getFalse(llvm::Type::getInt1Ty(context))));
      return llvm::MDNode::get(context, parts);
    };
    llvm::MDNode* id = llvm::MDNode::getDistinct(
        context, {nullptr, flag("llvm.loop.vectorize.enable", true), flag("llvm.loop.unroll.disable", false)});
    id->replaceOperandWith(0, id);
    loop->setLoopID(id);
  }

  bool strip() {
    if (polls_.empty() || counter_ != latch_ || limit_.step) return false;
    const SCEV* turns = evolution_.getExitCount(loop_, latch_);
    if (llvm::isa<llvm::SCEVCouldNotCompute>(turns)) return false;
    turns = evolution_.getNoopOrZeroExtend(turns, i64_);
    // What a turn costs: loops in it that were unrolled left their polls.
    std::uint64_t cost = 0;
    for (llvm::CallInst* poll : polls_) {
      auto* constant = llvm::dyn_cast<llvm::ConstantInt>(poll->getArgOperand(poll_turns));
      if (!constant || constant->uge(strip_turns)) return false;
      cost += constant->getZExtValue();
    }
    const bool few = evolution_.getUnsignedRangeMax(turns).ult(strip_turns);
    if (few && cost == 0) {
      for (llvm::CallInst* poll : polls_) poll->eraseFromParent();
      return true;
    }
    BasicBlock* exit = nullptr;
    auto* last = llvm::cast<BranchInst>(latch_->getTerminator());
    for (BasicBlock* successor : last->successors())
      if (!loop_->contains(successor)) exit = successor;
    if (!exit) return false;
    const llvm::DataLayout& layout = latch_->getModule()->getDataLayout();
    llvm::SCEVExpander expander(evolution_, layout, "turns");
    if (!is_cheap(expander, turns, preheader_->getTerminator())) return false;
    llvm::Value* all = expander.expandCodeFor(turns, i64_, preheader_->getTerminator());
    if (few) {
      llvm::IRBuilder<> before(preheader_->getTerminator());
      llvm::Value* all_turns = before.CreateAdd(all, llvm::ConstantInt::get(i64_, 1));
      drop_polls(polls_, before.CreateMul(all_turns, llvm::ConstantInt::get(i64_, cost)), preheader_->getTerminator());
      return true;
    }

    make_strip(all, cost, exit, last);
    return true;
  }

  // The loop becomes the inner one of two. `all`: the number of its turns but one.
  void make_strip(llvm::Value* all, std::uint64_t cost, BasicBlock* exit, BranchInst* last) {
    // What counts is computed from the number of turns: the strip itself may then be found to do nothing.
    llvm::SmallVector<const llvm::SCEVConstant*, 8> steps;
    for (llvm::PHINode& phi : loop_->getHeader()->phis()) {
      auto* counts = phi.getType() == i64_ ? llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(&phi)) : nullptr;
      bool steady = counts && counts->getLoop() == loop_ && counts->isAffine();
      steps.push_back(steady ? llvm::dyn_cast<llvm::SCEVConstant>(counts->getStepRecurrence(evolution_)) : nullptr);
    }
    llvm::LLVMContext& context = i64_->getContext();
    llvm::Function* function = latch_->getParent();
    BasicBlock* header = loop_->getHeader();
    BasicBlock* strip = BasicBlock::Create(context, "strip", function, header);
    BasicBlock* strip_end = BasicBlock::Create(context, "strip_end", function, exit);
    BasicBlock* between = BasicBlock::Create(context, "between_strips", function, exit);
    llvm::Type* i64 = i64_;
    auto number = [&](std::uint64_t n) { return llvm::ConstantInt::get(i64, n); };

    // Turns of the strip: done … limit, both included.
    llvm::IRBuilder<> b(strip);
    llvm::PHINode* done = b.CreatePHI(i64, 2, "done");
    llvm::SmallVector<std::pair<llvm::PHINode*, llvm::Value*>, 8> carried;
    for (llvm::PHINode& phi : header->phis()) {
      llvm::PHINode* outer = b.CreatePHI(phi.getType(), 2);
      outer->addIncoming(phi.getIncomingValueForBlock(preheader_), preheader_);
      carried.emplace_back(outer, phi.getIncomingValueForBlock(latch_));
      int index = phi.getBasicBlockIndex(preheader_);
      phi.setIncomingValue(static_cast<unsigned>(index), outer);
      phi.setIncomingBlock(static_cast<unsigned>(index), strip);
    }
    llvm::Value* left = b.CreateSub(all, done);
    llvm::Value* limit =
        b.CreateAdd(done, b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, left, number(strip_turns - 1)), "limit");
    llvm::Instruction* start = b.CreateBr(header);
    if (cost != 0) {
      b.SetInsertPoint(start);
      llvm::Value* strip_size = b.CreateAdd(b.CreateSub(limit, done), number(1));
      polls_[0]->setArgOperand(poll_turns, b.CreateMul(strip_size, number(cost)));
      polls_[0]->moveBefore(start);
    }
    preheader_->getTerminator()->replaceUsesOfWith(header, strip);
    done->addIncoming(number(0), preheader_);

    b.SetInsertPoint(header, header->begin());
    llvm::PHINode* turn = b.CreatePHI(i64, 2, "turn");
    turn->addIncoming(done, strip);
    b.SetInsertPoint(last);
    llvm::Value* next = b.CreateAdd(turn, number(1), "", /*HasNUW=*/true);
    turn->addIncoming(next, latch_);
    BranchInst* again = b.CreateCondBr(b.CreateICmpEQ(turn, limit), strip_end, header);
    again->copyMetadata(*last, {llvm::LLVMContext::MD_loop});
    last->eraseFromParent();
    exit->replacePhiUsesWith(latch_, strip_end);

    b.SetInsertPoint(strip_end);
    b.CreateCondBr(b.CreateICmpEQ(limit, all), exit, between, llvm::MDBuilder(context).createBranchWeights(1000, 1));
    b.SetInsertPoint(between);
    if (cost == 0) polls_[0]->moveBefore(*between, between->end());
    llvm::Value* go_on = b.CreateAdd(limit, number(1), "", /*HasNUW=*/true);
    for (std::size_t i = 0; i < carried.size(); ++i) {
      auto [outer, value] = carried[i];
      if (steps[i]) value = b.CreateAdd(outer, b.CreateMul(b.CreateSub(go_on, done), steps[i]->getValue()));
      outer->addIncoming(value, between);
    }
    b.CreateBr(strip);
    done->addIncoming(go_on, between);

    for (llvm::CallInst* poll : llvm::drop_begin(polls_)) poll->eraseFromParent();
    nest_loop(strip, strip_end, between);
    dominators_.recalculate(*function);
    evolution_.forgetAllLoops();
  }

  void nest_loop(BasicBlock* strip, BasicBlock* strip_end, BasicBlock* between) {
    llvm::Loop* outer = loops_.AllocateLoop();
    if (llvm::Loop* parent = loop_->getParentLoop()) {
      parent->replaceChildLoopWith(loop_, outer);
    } else {
      loops_.changeTopLevelLoop(loop_, outer);
    }
    outer->addChildLoop(loop_);
    outer->addBasicBlockToLoop(strip, loops_);
    for (BasicBlock* block : loop_->blocks()) outer->addBlockEntry(block);
    outer->addBasicBlockToLoop(strip_end, loops_);
    outer->addBasicBlockToLoop(between, loops_);
  }

  llvm::Loop* loop_;
  llvm::LoopInfo& loops_;
  llvm::DominatorTree& dominators_;
  llvm::ScalarEvolution& evolution_;
  const llvm::TargetTransformInfo& target_;
  BasicBlock* preheader_ = nullptr;
  BasicBlock* latch_ = nullptr;
  BasicBlock* counter_ = nullptr;  // ends in the exit whose turns are known
  const SCEV* turns_ = nullptr;    // how often that exit is not taken
  llvm::Type* i64_ = nullptr;
  Condition limit_;             // what is known instead; without step: nothing
  const SCEV* last_ = nullptr;  // of a loop that ends by `<=`: what its variable is in the last turn
  std::uint64_t most_ = most_turns;
  std::vector<llvm::CallInst*> polls_;
  std::vector<Condition> conditions_;
  std::vector<BranchInst*> removed_;
};

}  // namespace

llvm::PreservedAnalyses CountedLoopsPass::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  auto& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
  auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
  auto& assumptions = analyses.getResult<llvm::AssumptionAnalysis>(function);
  auto& target = analyses.getResult<llvm::TargetIRAnalysis>(function);
  llvm::SmallVector<llvm::Loop*, 8> innermost;
  for (llvm::Loop* loop : loops.getLoopsInPreorder())
    if (loop->isInnermost()) innermost.push_back(loop);
  bool changed = false;
  for (llvm::Loop* loop : innermost) {
    changed |= llvm::simplifyLoop(loop, &dominators, &loops, &evolution, &assumptions, nullptr, false);
    changed |= llvm::formLCSSA(*loop, dominators, &loops, &evolution);
    changed |= CountedLoop(loop, loops, dominators, evolution, target).run();
  }
  return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

llvm::PreservedAnalyses ShortLoopsPass::run(llvm::Loop& loop, llvm::LoopAnalysisManager&,
                                            llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater&) {
  unsigned turns = results.SE.getSmallConstantMaxTripCount(&loop);
  if (turns == 0 || turns > few_turns) return llvm::PreservedAnalyses::all();
  std::vector<llvm::CallInst*> polls;
  for (BasicBlock* block : loop.blocks()) {
    if (results.LI.getLoopFor(block) != &loop) continue;
    for (llvm::Instruction& inst : *block)
      if (is_poll(inst)) polls.push_back(llvm::cast<llvm::CallInst>(&inst));
  }
  if (polls.empty()) return llvm::PreservedAnalyses::all();
  BasicBlock* before = loop.getLoopPreheader();
  if (counts_fuel(polls[0]) && !before) return llvm::PreservedAnalyses::all();
  std::uint64_t cost = 0;
  for (llvm::CallInst* poll : polls) {
    auto* constant = llvm::dyn_cast<llvm::ConstantInt>(poll->getArgOperand(poll_turns));
    if (!constant) return llvm::PreservedAnalyses::all();
    cost += constant->getZExtValue();
  }
  drop_polls(polls, llvm::ConstantInt::get(polls[0]->getArgOperand(poll_turns)->getType(), turns * cost),
             before ? before->getTerminator() : nullptr);
  return llvm::getLoopPassPreservedAnalyses();
}

llvm::Value* burn_fuel(llvm::IRBuilderBase& b, llvm::Value* context, llvm::Value* amount) {
  llvm::Value* where = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), context, offset::context_fuel);
  llvm::Value* left = b.CreateSub(b.CreateAlignedLoad(b.getInt64Ty(), where, llvm::Align(8)), amount);
  b.CreateAlignedStore(left, where, llvm::Align(8));
  return b.CreateICmpSLT(left, b.getInt64(0));
}

llvm::Function* poll_function(llvm::Module& module) {
  if (llvm::Function* known = module.getFunction(poll_name)) return known;
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  llvm::FunctionType* type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer, i64, i64, i64}, false);
  llvm::Function* poll = llvm::Function::Create(type, llvm::Function::ExternalLinkage, poll_name, module);
  poll->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  for (llvm::Attribute::AttrKind kind : {llvm::Attribute::NoUnwind, llvm::Attribute::WillReturn,
                                         llvm::Attribute::NoSync, llvm::Attribute::NoFree, llvm::Attribute::NoCallback})
    poll->addFnAttr(kind);
  return poll;
}

void lower_polls(llvm::Module& module) {
  llvm::Function* poll = module.getFunction(poll_name);
  if (!poll) return;
  // The same arguments but for the turns; raises, notes where, and gives back what the activation holds.
  llvm::SmallVector<llvm::Type*, 4> parameters(poll->getFunctionType()->params().drop_back());
  llvm::FunctionCallee raise = module.getOrInsertFunction(
      helper_info(Helper::stop).name,
      llvm::FunctionType::get(llvm::Type::getVoidTy(module.getContext()), parameters, false));
  llvm::cast<llvm::Function>(raise.getCallee())->addFnAttr(llvm::Attribute::Cold);
  llvm::cast<llvm::Function>(raise.getCallee())->addFnAttr(llvm::Attribute::NoUnwind);
  while (!poll->use_empty()) {
    auto* call = llvm::cast<llvm::CallInst>(poll->user_back());
    llvm::IRBuilder<> b(call);
    llvm::Value* flag = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), call->getArgOperand(0), offset::context_interrupt);
    llvm::LoadInst* word = b.CreateAlignedLoad(b.getInt32Ty(), flag, llvm::Align(4));
    // Another thread or a signal handler writes it.
    word->setAtomic(llvm::AtomicOrdering::Monotonic);
    llvm::Value* wanted = b.CreateICmpNE(word, b.getInt32(0));
    if (counts_fuel(call))
      wanted = b.CreateOr(wanted, burn_fuel(b, call->getArgOperand(0), call->getArgOperand(poll_turns)));
    BasicBlock* here = call->getParent();
    BasicBlock* rest = here->splitBasicBlock(call, "go");
    BasicBlock* stop = BasicBlock::Create(module.getContext(), "stop", here->getParent());
    llvm::Instruction* jump = here->getTerminator();
    llvm::IRBuilder<> at(jump);
    at.CreateCondBr(wanted, stop, rest, llvm::MDBuilder(module.getContext()).createBranchWeights(1, 100000));
    jump->eraseFromParent();
    b.SetInsertPoint(stop);
    b.CreateCall(raise, llvm::SmallVector<llvm::Value*, 4>(llvm::drop_end(call->args())));
    llvm::Value* status = b.getInt8(1);
    llvm::Type* result = here->getParent()->getReturnType();
    if (auto* members = llvm::dyn_cast<llvm::StructType>(result))
      status = b.CreateInsertValue(llvm::Constant::getNullValue(result), status, members->getNumElements() - 1);
    b.CreateRet(status);
    call->eraseFromParent();
  }
  poll->eraseFromParent();
}

}  // namespace slope::codegen
