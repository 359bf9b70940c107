#include "codegen/neighbours.hpp"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopAccessAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/MemoryLocation.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/LoopVersioning.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "lang/support/tuning.hpp"

namespace slope::codegen {

namespace {

constexpr std::int64_t oldest_age = tuning::neighbour_age;
constexpr unsigned most_accesses = tuning::neighbour_accesses;
constexpr unsigned most_tests = tuning::neighbour_tests;

struct Access {
  llvm::Instruction* instruction;
  const llvm::SCEVAddRecExpr* address;
  std::int64_t age = 0;
  bool is_store() const { return llvm::isa<llvm::StoreInst>(instruction); }
  llvm::Type* type() const { return llvm::getLoadStoreType(instruction); }
  llvm::Value* pointer() const { return const_cast<llvm::Value*>(llvm::getLoadStorePointerOperand(instruction)); }
};

enum class Separation { proved, unknown, shared };

struct Window {
  llvm::SmallVector<Access, 8> accesses;  // in the order of the code
  std::int64_t step = 0;                  // bytes a turn
  std::int64_t oldest = 0;
  std::int64_t newest_store = oldest_age + 1, oldest_store = -1;
  const llvm::SCEVAddRecExpr* newest = nullptr;  // the address of age 0

  Separation separation = Separation::unknown;

  // A turn waits for the one before it, or the one before that. (Those further apart leave room for vectors.)
  bool is_worth_it() const {
    for (const Access& store : accesses)
      for (const Access& later : accesses)
        if (store.is_store() && later.age > store.age && later.age - store.age <= 2) return true;
    return false;
  }
};

class Neighbours {
 public:
  Neighbours(llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
      : layout_(function.getParent()->getDataLayout()),
        loops_(analyses.getResult<llvm::LoopAnalysis>(function)),
        dominators_(analyses.getResult<llvm::DominatorTreeAnalysis>(function)),
        evolution_(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)),
        aliases_(analyses.getResult<llvm::AAManager>(function)),
        assumptions_(analyses.getResult<llvm::AssumptionAnalysis>(function)),
        accesses_of_(analyses.getResult<llvm::LoopAccessAnalysis>(function)) {}

  bool run() {
    llvm::SmallVector<llvm::Loop*, 8> innermost;
    for (llvm::Loop* loop : loops_.getLoopsInPreorder())
      if (loop->isInnermost() && loop->getNumBlocks() == 1) innermost.push_back(loop);
    bool changed = false;
    for (llvm::Loop* loop : innermost) changed |= run(*loop);
    return changed;
  }

 private:
  bool run(llvm::Loop& loop) {
    body_ = loop.getHeader();
    llvm::SmallVector<Window, 4> windows = windows_of(loop);
    if (windows.empty()) return false;
    llvm::simplifyLoop(&loop, &dominators_, &loops_, &evolution_, &assumptions_, nullptr, false);
    if (!loop.isLoopSimplifyForm() || loop.getExitingBlock() != body_ || !loop.getExitBlock()) return true;
    if (keep_separate(windows) && copy_behind_test(loop)) {
      windows = windows_of(loop);
      keep_separate(windows);
    }
    llvm::erase_if(windows, [](const Window& window) { return window.separation != Separation::proved; });
    const llvm::SCEV* turns = evolution_.getBackedgeTakenCount(&loop);
    if (llvm::isa<llvm::SCEVCouldNotCompute>(turns)) return true;
    for (Window& window : windows) rewrite(loop, window, turns);
    evolution_.forgetLoop(&loop);
    accesses_of_.clear();
    return true;
  }

  llvm::SmallVector<Window, 4> windows_of(llvm::Loop& loop) {
    if (!collect(loop)) return {};
    llvm::SmallVector<Window, 4> windows = find_windows();
    llvm::erase_if(windows, [](const Window& window) { return !window.is_worth_it(); });
    return windows;
  }

  // Drops those whose elements the loop touches in other ways; true if one is worth a test of where arrays lie.
  bool keep_separate(llvm::SmallVectorImpl<Window>& windows) {
    bool worth_test = false;
    for (Window& window : windows) {
      window.separation = separation(window);
      worth_test |= window.separation == Separation::unknown && window.newest_store < window.oldest_store;
    }
    return worth_test;
  }

  // Every access of memory in the loop, or false where one is no simple one of a place that moves on.
  bool collect(llvm::Loop& loop) {
    accesses_.clear();
    others_.clear();
    bool stores = false;
    for (llvm::Instruction& instruction : *body_) {
      if (!instruction.mayReadOrWriteMemory()) continue;
      const bool is_load = llvm::isa<llvm::LoadInst>(instruction);
      if (!is_load && !llvm::isa<llvm::StoreInst>(instruction)) return false;
      if (instruction.isAtomic() || instruction.isVolatile()) return false;
      Access access{&instruction, nullptr};
      const llvm::SCEV* address = evolution_.getSCEV(access.pointer());
      access.address = llvm::dyn_cast<llvm::SCEVAddRecExpr>(address);
      const bool moves = access.address && access.address->getLoop() == &loop && step_of(access);
      stores |= !is_load && moves;
      (moves ? accesses_ : others_).push_back(access);
    }
    return stores && accesses_.size() + others_.size() <= most_accesses;
  }

  std::optional<std::int64_t> step_of(const Access& access) {
    const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(access.address->getStepRecurrence(evolution_));
    if (!step || !access.address->isAffine() || step->getAPInt().getSignificantBits() > 32) return std::nullopt;
    const std::int64_t value = step->getAPInt().getSExtValue();
    const auto size = static_cast<std::int64_t>(layout_.getTypeStoreSize(access.type()).getFixedValue());
    if (std::abs(value) < size) return std::nullopt;
    return value;
  }

  // Bytes from the one address to the other in the same turn.
  std::optional<std::int64_t> distance(const Access& from, const Access& to) {
    const auto* difference = llvm::dyn_cast<llvm::SCEVConstant>(evolution_.getMinusSCEV(to.address, from.address));
    if (!difference || difference->getAPInt().getSignificantBits() > 32) return std::nullopt;
    return difference->getAPInt().getSExtValue();
  }

  llvm::SmallVector<Window, 4> find_windows() {
    llvm::SmallVector<Window, 4> windows;
    for (const Access& access : accesses_) {
      llvm::Type* type = access.type();
      if (!type->isFloatingPointTy() && !type->isIntegerTy(64) && !type->isIntegerTy(32)) continue;
      const std::int64_t step = *step_of(access);
      Window* found = nullptr;
      for (Window& window : windows) {
        const Access& first = window.accesses.front();
        if (window.step != step || first.type() != type) continue;
        const std::optional<std::int64_t> bytes = distance(first, access);
        if (!bytes || *bytes % step != 0) continue;
        found = &window;
        break;
      }
      if (!found) found = &windows.emplace_back();
      found->step = step;
      found->accesses.push_back(access);
    }
    for (Window& window : windows) number_ages(window);
    llvm::erase_if(windows, [](const Window& window) { return window.oldest > oldest_age; });
    return windows;
  }

  void number_ages(Window& window) {
    const Access& first = window.accesses.front();
    const Access* newest = nullptr;
    std::int64_t least = 0;
    for (Access& access : window.accesses) {
      // What lies ahead in the direction of the loop is newer.
      access.age = -(*distance(first, access) / window.step);
      if (newest && access.age >= least) continue;
      newest = &access;
      least = access.age;
    }
    window.newest = newest->address;
    for (Access& access : window.accesses) {
      access.age -= least;
      window.oldest = std::max(window.oldest, access.age);
      if (!access.is_store()) continue;
      window.newest_store = std::min(window.newest_store, access.age);
      window.oldest_store = std::max(window.oldest_store, access.age);
    }
  }

  // Whether anything else in the loop touches the window's elements.
  Separation separation(const Window& window) {
    Separation result = Separation::proved;
    auto compare = [&](const Access& other) {
      for (const Access& own : window.accesses)
        if (own.instruction == other.instruction) return;
      for (const Access& own : window.accesses) result = std::max(result, separation(window.step, own, other));
    };
    for (const Access& other : accesses_) compare(other);
    for (const Access& other : others_) compare(other);
    return result;
  }

  Separation separation(std::int64_t window_step, const Access& own, const Access& other) {
    const llvm::SCEV* other_address = evolution_.getSCEV(other.pointer());
    if (evolution_.getPointerBase(own.address) == evolution_.getPointerBase(other_address)) {
      const bool moves = other.address && other.address->getLoop() == own.address->getLoop();
      if (!moves || step_of(other) != window_step) return Separation::shared;
      const std::optional<std::int64_t> bytes = distance(own, other);
      if (!bytes) return proved_apart(own, other) ? Separation::proved : Separation::unknown;
      // Fields beside one another: apart in every turn.
      const std::int64_t step = std::abs(window_step), apart = ((*bytes % step) + step) % step;
      const auto own_size = static_cast<std::int64_t>(layout_.getTypeStoreSize(own.type()).getFixedValue());
      const auto size = static_cast<std::int64_t>(layout_.getTypeStoreSize(other.type()).getFixedValue());
      return apart >= own_size && apart + size <= step ? Separation::proved : Separation::shared;
    }
    return proved_apart(own, other) ? Separation::proved : Separation::unknown;
  }

  // Accesses with constant distances from one another, and the bytes that they touch from the first turn to the last.
  struct Family {
    llvm::SmallVector<Access, 4> accesses;
    bool stores = false;
    const llvm::SCEV* begin = nullptr;
    const llvm::SCEV* end = nullptr;
    llvm::SmallVector<llvm::Metadata*, 4> apart;  // scopes of those that it is tested against
    llvm::MDNode* scope = nullptr;
  };

  llvm::SmallVector<Family, 8> families() {
    llvm::SmallVector<Family, 8> result;
    for (const Access& access : accesses_) {
      Family* own = nullptr;
      for (Family& family : result)
        if (distance(family.accesses.front(), access)) own = &family;
      if (!own) own = &result.emplace_back();
      own->accesses.push_back(access);
      own->stores |= access.is_store();
    }
    return result;
  }

  bool find_range(Family& family, const llvm::SCEV* turns) {
    const Access& first = family.accesses.front();
    const std::int64_t step = *step_of(first);
    std::int64_t least = 0, most = 0;
    for (const Access& access : family.accesses) {
      if (step_of(access) != step) return false;
      const std::int64_t from = *distance(first, access);
      const auto size = static_cast<std::int64_t>(layout_.getTypeStoreSize(access.type()).getFixedValue());
      least = std::min(least, from);
      most = std::max(most, from + size);
    }
    const llvm::SCEV* start = first.address->getStart();
    const llvm::SCEV* last = first.address->evaluateAtIteration(turns, evolution_);
    auto moved = [&](const llvm::SCEV* address, std::int64_t bytes) {
      llvm::Type* type = evolution_.getEffectiveSCEVType(address->getType());
      return evolution_.getAddExpr(address, evolution_.getConstant(type, static_cast<std::uint64_t>(bytes), true));
    };
    family.begin = moved(step > 0 ? start : last, least);
    family.end = moved(step > 0 ? last : start, most);
    return true;
  }

  bool proved_apart(const Access& a, const Access& b) {
    auto everywhere = [](const Access& access) {
      return llvm::MemoryLocation::getBeforeOrAfter(access.pointer(), access.instruction->getAAMetadata());
    };
    return aliases_.isNoAlias(everywhere(a), everywhere(b));
  }
  bool proved_apart(const Family& a, const Family& b) {
    return llvm::all_of(a.accesses, [&](const Access& x) {
      return llvm::all_of(b.accesses, [&](const Access& y) { return proved_apart(x, y); });
    });
  }

  // Where the ranges of any two overlap, one of which is stored to, the loop is kept as it is.
  bool copy_behind_test(llvm::Loop& loop) {
    const llvm::SCEV* turns = evolution_.getBackedgeTakenCount(&loop);
    if (llvm::isa<llvm::SCEVCouldNotCompute>(turns)) return false;
    llvm::SmallVector<Family, 8> all = families();
    for (const Access& other : others_) {
      if (other.is_store()) return false;
      for (const Access& access : accesses_)
        if (access.is_store() && !proved_apart(access, other)) return false;
    }
    llvm::SmallVector<std::pair<unsigned, unsigned>, 8> pairs;
    for (unsigned i = 0; i < all.size(); ++i)
      for (unsigned j = i + 1; j < all.size(); ++j)
        if ((all[i].stores || all[j].stores) && !proved_apart(all[i], all[j])) pairs.emplace_back(i, j);
    if (pairs.empty() || pairs.size() > most_tests) return false;

    const llvm::LoopAccessInfo& info = accesses_of_.getInfo(loop);
    if (!info.getPSE().getPredicate().isAlwaysTrue() || info.hasConvergentOp()) return false;
    llvm::RuntimePointerChecking ranges(const_cast<llvm::MemoryDepChecker&>(info.getDepChecker()), &evolution_);
    llvm::SCEVExpander expander(evolution_, layout_, "range");
    llvm::Instruction* before = loop.getLoopPreheader()->getTerminator();
    for (Family& family : all) {
      if (!find_range(family, turns) || !expander.isSafeToExpandAt(family.begin, before) ||
          !expander.isSafeToExpandAt(family.end, before))
        return false;
      ranges.Pointers.emplace_back(family.accesses.front().pointer(), family.begin, family.end, family.stores, 0, 0,
                                   family.accesses.front().address, true);
    }
    llvm::SmallVector<llvm::RuntimeCheckingPtrGroup, 8> groups;
    for (unsigned i = 0; i < all.size(); ++i) groups.emplace_back(i, ranges);
    llvm::SmallVector<llvm::RuntimePointerCheck, 8> tests;
    for (auto [i, j] : pairs) tests.emplace_back(&groups[i], &groups[j]);
    llvm::LoopVersioning copies(info, tests, &loop, &loops_, &dominators_, &evolution_);
    copies.versionLoop();
    mark_apart(loop, all, pairs);
    accesses_of_.clear();
    return true;
  }

  // What the test has shown, for what asks whether two accesses of the loop may meet.
  // It holds for one run of the loop, not for those in other turns of a loop around it: hence the declarations.
  void mark_apart(llvm::Loop& loop, llvm::MutableArrayRef<Family> all,
                  llvm::ArrayRef<std::pair<unsigned, unsigned>> pairs) {
    llvm::LLVMContext& context = body_->getContext();
    llvm::MDBuilder builder(context);
    llvm::MDNode* domain = builder.createAnonymousAliasScopeDomain("neighbours");
    llvm::IRBuilder<> entry(loop.getLoopPreheader()->getTerminator());
    for (Family& family : all) {
      family.scope = builder.createAnonymousAliasScope(domain, "family");
      entry.CreateNoAliasScopeDeclaration(llvm::MDNode::get(context, {family.scope}));
    }
    for (auto [i, j] : pairs) {
      all[i].apart.push_back(all[j].scope);
      all[j].apart.push_back(all[i].scope);
    }
    auto add = [&](llvm::Instruction* access, unsigned kind, llvm::ArrayRef<llvm::Metadata*> scopes) {
      if (scopes.empty()) return;
      llvm::MDNode* more = llvm::MDNode::get(context, scopes);
      access->setMetadata(kind, llvm::MDNode::concatenate(access->getMetadata(kind), more));
    };
    for (const Family& family : all) {
      for (const Access& access : family.accesses) {
        add(access.instruction, llvm::LLVMContext::MD_alias_scope, {family.scope});
        add(access.instruction, llvm::LLVMContext::MD_noalias, family.apart);
      }
    }
  }

  void rewrite(llvm::Loop& loop, Window& window, const llvm::SCEV* turns) {
    llvm::Type* type = window.accesses.front().type();
    llvm::BasicBlock* before = loop.getLoopPreheader();
    llvm::BasicBlock* exit = loop.getExitBlock();
    llvm::SCEVExpander expander(evolution_, layout_, "window");
    llvm::Type* pointer_type = window.accesses.front().pointer()->getType();
    const llvm::SCEV* start = window.newest->getStart();
    const llvm::SCEV* last = window.newest->evaluateAtIteration(turns, evolution_);
    if (!expander.isSafeToExpandAt(start, before->getTerminator()) ||
        !expander.isSafeToExpandAt(last, &*exit->getFirstInsertionPt()))
      return;
    const llvm::Align align = least_align(window);
    const llvm::AAMDNodes metadata = common_metadata(window);

    llvm::IRBuilder<> entry(before->getTerminator());
    llvm::Value* first_pointer = expander.expandCodeFor(start, pointer_type, before->getTerminator());
    llvm::SmallVector<llvm::PHINode*, 8> kept(static_cast<std::size_t>(window.oldest) + 1);
    for (std::int64_t age = 1; age <= window.oldest; ++age) {
      llvm::Value* place =
          entry.CreatePtrAdd(first_pointer, entry.getInt64(static_cast<std::uint64_t>(-window.step * age)));
      llvm::LoadInst* load = entry.CreateAlignedLoad(type, place, align, "kept");
      load->setAAMetadata(metadata);
      kept[static_cast<std::size_t>(age)] = llvm::PHINode::Create(type, 2, "kept", body_->begin());
      kept[static_cast<std::size_t>(age)]->addIncoming(load, before);
    }

    llvm::SmallVector<llvm::Value*, 8> now(kept.begin(), kept.end());
    for (Access& access : window.accesses) {
      llvm::Value*& value = now[static_cast<std::size_t>(access.age)];
      if (auto* store = llvm::dyn_cast<llvm::StoreInst>(access.instruction)) {
        value = store->getValueOperand();
      } else if (value) {
        access.instruction->replaceAllUsesWith(value);
        for (llvm::Value*& other : now)
          if (other == access.instruction) other = value;
      } else {
        value = access.instruction;
      }
    }
    finish(window, kept, now, align, metadata);
    store_rest(window, now, expander, last, exit, align, metadata);
  }

  void finish(Window& window, llvm::ArrayRef<llvm::PHINode*> kept, llvm::ArrayRef<llvm::Value*> now, llvm::Align align,
              const llvm::AAMDNodes& metadata) {
    llvm::IRBuilder<> builder(body_->getTerminator());
    for (const Access& access : window.accesses) {
      if (!access.is_store() || access.age != window.oldest_store) continue;
      llvm::StoreInst* store =
          builder.CreateAlignedStore(now[static_cast<std::size_t>(access.age)], access.pointer(), align);
      store->setAAMetadata(metadata);
      break;
    }
    for (std::size_t age = 1; age < kept.size(); ++age) kept[age]->addIncoming(now[age - 1], body_);
    for (const Access& access : window.accesses) {
      if (access.is_store() || access.instruction->use_empty()) access.instruction->eraseFromParent();
    }
  }

  void store_rest(const Window& window, llvm::ArrayRef<llvm::Value*> now, llvm::SCEVExpander& expander,
                  const llvm::SCEV* last, llvm::BasicBlock* exit, llvm::Align align, const llvm::AAMDNodes& metadata) {
    if (window.newest_store >= window.oldest_store) return;
    llvm::Instruction* place = &*exit->getFirstInsertionPt();
    llvm::Value* pointer = expander.expandCodeFor(last, nullptr, place);
    llvm::IRBuilder<> builder(place);
    for (std::int64_t age = window.newest_store; age < window.oldest_store; ++age) {
      llvm::PHINode* value =
          llvm::PHINode::Create(now[static_cast<std::size_t>(age)]->getType(), 1, "last", exit->begin());
      value->addIncoming(now[static_cast<std::size_t>(age)], body_);
      llvm::Value* at = builder.CreatePtrAdd(pointer, builder.getInt64(static_cast<std::uint64_t>(-window.step * age)));
      builder.CreateAlignedStore(value, at, align)->setAAMetadata(metadata);
    }
  }

  static llvm::Align least_align(const Window& window) {
    llvm::Align least = llvm::getLoadStoreAlignment(window.accesses.front().instruction);
    for (const Access& access : window.accesses)
      least = std::min(least, llvm::getLoadStoreAlignment(access.instruction));
    return least;
  }

  static llvm::AAMDNodes common_metadata(const Window& window) {
    llvm::AAMDNodes common = window.accesses.front().instruction->getAAMetadata();
    for (const Access& access : window.accesses) common = common.concat(access.instruction->getAAMetadata());
    return common;
  }

  const llvm::DataLayout& layout_;
  llvm::LoopInfo& loops_;
  llvm::DominatorTree& dominators_;
  llvm::ScalarEvolution& evolution_;
  llvm::AAResults& aliases_;
  llvm::AssumptionCache& assumptions_;
  llvm::LoopAccessInfoManager& accesses_of_;
  llvm::BasicBlock* body_ = nullptr;
  llvm::SmallVector<Access, 16> accesses_, others_;
};

}  // namespace

llvm::PreservedAnalyses NeighboursPass::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  if (!Neighbours(function, analyses).run()) return llvm::PreservedAnalyses::all();
  llvm::PreservedAnalyses kept;
  kept.preserve<llvm::LoopAnalysis>();
  kept.preserve<llvm::DominatorTreeAnalysis>();
  return kept;
}

}  // namespace slope::codegen
