#include "codegen/passes.hpp"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/BasicAliasAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScopedNoAliasAA.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TypeBasedAliasAnalysis.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopDeletion.h>
#include <llvm/Transforms/Scalar/LoopIdiomRecognize.h>
#include <llvm/Transforms/Scalar/LoopLoadElimination.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimpleLoopUnswitch.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/InjectTLIMappings.h>
#include <llvm/Transforms/Vectorize/LoopVectorize.h>
#include <llvm/Transforms/Vectorize/SLPVectorizer.h>

#include "codegen/counted_loops.hpp"
#include "codegen/known_memory.hpp"
#include "codegen/neighbours.hpp"
#include "codegen/quick_code.hpp"
#include "codegen/rotating_sums.hpp"
#include "codegen/shifted_counters.hpp"
#include "codegen/sums_in_order.hpp"
#include "codegen/vector_math.hpp"

namespace slope::codegen {

struct Passes::Impl {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  const std::atomic<std::uint32_t>* cancelled = nullptr;
  llvm::PassInstrumentationCallbacks callbacks;
  llvm::PassBuilder builder;
  llvm::FunctionPassManager straight;  // for functions without loops
  llvm::FunctionPassManager with_loops;
  llvm::FunctionPassManager straight_once, with_loops_once;  // the same where compiling is to take little time

  Impl(llvm::TargetMachine& machine, bool vector_math)
      : builder(&machine, llvm::PipelineTuningOptions(), std::nullopt, &callbacks) {
    allow_sums_in_order();
    callbacks.registerShouldRunOptionalPassCallback(
        [this](llvm::StringRef, llvm::Any) { return !cancelled || !cancelled->load(std::memory_order_relaxed); });
    llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
    if (vector_math) add_vector_functions(library, vector_functions(machine));
    functions.registerPass([library] { return llvm::TargetLibraryAnalysis(library); });
    functions.registerPass([] {
      llvm::AAManager aliases;
      aliases.registerFunctionAnalysis<llvm::BasicAA>();
      aliases.registerFunctionAnalysis<llvm::ScopedNoAliasAA>();
      aliases.registerFunctionAnalysis<llvm::TypeBasedAA>();
      return aliases;
    });
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
    build();
    build_once();
  }

  void build() {
    llvm::SimplifyCFGOptions early, late;
    late.convertSwitchRangeToICmp(true).hoistCommonInsts(true).sinkCommonInsts(true);

    straight.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
    straight.addPass(llvm::EarlyCSEPass(false));
    straight.addPass(llvm::InstCombinePass());
    straight.addPass(llvm::SimplifyCFGPass(early));
    straight.addPass(llvm::EarlyCSEPass(true));
    straight.addPass(llvm::InstCombinePass());
    straight.addPass(llvm::SLPVectorizerPass());
    straight.addPass(llvm::SimplifyCFGPass(late));

    llvm::FunctionPassManager& f = with_loops;
    f.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
    f.addPass(llvm::EarlyCSEPass(true));
    f.addPass(llvm::InstCombinePass());
    f.addPass(llvm::SimplifyCFGPass(early));
    {
      llvm::LoopPassManager first;
      first.addPass(llvm::LoopRotatePass());
      first.addPass(llvm::LICMPass(llvm::LICMOptions()));
      first.addPass(llvm::SimpleLoopUnswitchPass());
      f.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(first), /*UseMemorySSA=*/true));
    }
    f.addPass(llvm::SimplifyCFGPass(early));
    f.addPass(llvm::InstCombinePass());
    f.addPass(KnownMemoryPass());
    {
      llvm::LoopPassManager second;
      second.addPass(llvm::IndVarSimplifyPass());
      second.addPass(ShiftedCountersPass());
      second.addPass(llvm::LoopDeletionPass());
      second.addPass(ShortLoopsPass());
      second.addPass(llvm::LoopFullUnrollPass(2));
      f.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(second), /*UseMemorySSA=*/false));
    }
    f.addPass(llvm::GVNPass());
    f.addPass(llvm::InstCombinePass());
    f.addPass(llvm::SimplifyCFGPass(early));
    f.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));  // vectors in the frame whose short loops are unrolled
    f.addPass(CountedLoopsPass());
    f.addPass(llvm::SimplifyCFGPass(early));
    {
      llvm::LoopPassManager third;
      third.addPass(llvm::LICMPass(llvm::LICMOptions()));
      third.addPass(llvm::LoopIdiomRecognizePass());  // of a strip: a whole loop in one call would be late
      third.addPass(llvm::LoopDeletionPass());
      f.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(third), /*UseMemorySSA=*/true));
    }
    f.addPass(llvm::DSEPass());
    f.addPass(RotatingSumsPass());
    f.addPass(NeighboursPass());
    f.addPass(llvm::InjectTLIMappings());
    f.addPass(SumsInOrderPass());
    f.addPass(llvm::LoopVectorizePass());
    f.addPass(llvm::LoopLoadEliminationPass());
    f.addPass(llvm::InstCombinePass());
    f.addPass(llvm::SimplifyCFGPass(late));
    f.addPass(llvm::SLPVectorizerPass());
    f.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(2).setPartial(false).setRuntime(false)));
    f.addPass(llvm::InstCombinePass());
    f.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
    f.addPass(llvm::SimplifyCFGPass(late));
  }

  // What takes most of the time away from selecting instructions, and what rests on what our code says of memory: each
  // kind of pass once, and none that makes several of one.
  void build_once() {
    llvm::SimplifyCFGOptions options;
    straight_once.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
    straight_once.addPass(llvm::EarlyCSEPass(true));
    straight_once.addPass(llvm::InstCombinePass());
    straight_once.addPass(llvm::SimplifyCFGPass(options));

    llvm::FunctionPassManager& f = with_loops_once;
    f.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
    f.addPass(llvm::EarlyCSEPass(true));
    f.addPass(llvm::InstCombinePass());
    f.addPass(llvm::SimplifyCFGPass(options));
    llvm::LoopPassManager loops_once;
    loops_once.addPass(llvm::LoopRotatePass());
    loops_once.addPass(llvm::LICMPass(llvm::LICMOptions()));
    f.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops_once), /*UseMemorySSA=*/true));
    f.addPass(llvm::EarlyCSEPass(true));
    f.addPass(llvm::SimplifyCFGPass(options));
  }

  static bool has_loop(llvm::Function& function) {
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo info(dominators);
    return !info.empty();
  }

  void run(llvm::Module& module, CodeEffort level, const std::atomic<std::uint32_t>* stop) {
    cancelled = stop;
    const bool once = level == CodeEffort::passes;
    for (llvm::Function& function : module) {
      if (function.isDeclaration() || level == CodeEffort::none) continue;
      llvm::FunctionPassManager& of_loops = once ? with_loops_once : with_loops;
      (has_loop(function) ? of_loops : once ? straight_once : straight).run(function, functions);
    }
    lower_switches(module);
    lower_polls(module);
    clear();
  }

  void clear() {
    loops.clear();
    functions.clear();
    components.clear();
    modules.clear();
  }
};

Passes::Passes(llvm::TargetMachine& machine, bool vector_math) : impl_(std::make_unique<Impl>(machine, vector_math)) {}
Passes::~Passes() = default;
void Passes::run(llvm::Module& module, CodeEffort level, const std::atomic<std::uint32_t>* cancelled) {
  impl_->run(module, level, cancelled);
}

void Passes::inline_marked(llvm::Module& module) {
  llvm::AlwaysInlinerPass(false).run(module, impl_->modules);
  impl_->clear();
}
void Passes::drop_unused(llvm::Module& module) {
  llvm::GlobalDCEPass().run(module, impl_->modules);
  impl_->clear();
}

}  // namespace slope::codegen
