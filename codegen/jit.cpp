#include "codegen/jit.hpp"

#include <dlfcn.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <mutex>

#include "codegen/helpers.hpp"
#include "codegen/vector_math.hpp"
#include "lang/support/tuning.hpp"

namespace slope::codegen {

namespace orc = llvm::orc;

// Where the linker put the last module.
class Jit::Extents final : public orc::ObjectLinkingLayer::Plugin {
 public:
  void modifyPassConfig(orc::MaterializationResponsibility&, llvm::jitlink::LinkGraph&,
                        llvm::jitlink::PassConfiguration& passes) override {
    passes.PostFixupPasses.emplace_back([this](llvm::jitlink::LinkGraph& graph) {
      const std::lock_guard<std::mutex> lock(mutex_);
      last_ = {};
      for (llvm::jitlink::Section& section : graph.sections()) {
        const bool runs =
            (static_cast<unsigned>(section.getMemProt()) & static_cast<unsigned>(orc::MemProt::Exec)) != 0;
        for (const llvm::jitlink::Block* block : section.blocks()) {
          last_.bytes += block->getSize();
          if (!runs) continue;
          const std::uintptr_t from = block->getAddress().getValue();
          last_.begin = last_.end == 0 ? from : std::min(last_.begin, from);
          last_.end = std::max(last_.end, from + block->getSize());
        }
      }
      return llvm::Error::success();
    });
  }
  llvm::Error notifyFailed(orc::MaterializationResponsibility&) override { return llvm::Error::success(); }
  llvm::Error notifyRemovingResources(orc::JITDylib&, orc::ResourceKey) override { return llvm::Error::success(); }
  void notifyTransferringResources(orc::JITDylib&, orc::ResourceKey, orc::ResourceKey) override {}

  struct Extent {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::size_t bytes = 0;
  };
  Extent last() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return last_;
  }

 private:
  std::mutex mutex_;  // the linker may finish on a thread of its own
  Extent last_;
};

std::unique_ptr<Jit> Jit::create(const Listeners& listeners, std::string& why) {
  // Idempotent and guarded inside LLVM; nothing of it is visible outside this shared object.
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto failed = [&](llvm::Error error) {
    why = llvm::toString(std::move(error));
    return nullptr;
  };
  auto builder = orc::JITTargetMachineBuilder::detectHost();
  if (!builder) return failed(builder.takeError());
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  builder->setRelocationModel(llvm::Reloc::PIC_);
  builder->setCodeModel(llvm::CodeModel::Small);
  // Scattered stores cost more than the scalar ones that they replace; the cost model thinks otherwise.
  if (builder->getTargetTriple().isX86()) builder->addFeatures({"+prefer-no-scatter"});
  auto machine = builder->createTargetMachine();
  if (!machine) return failed(machine.takeError());

  std::unique_ptr<Jit> jit(new Jit());
  jit->self_ = std::make_shared<Jit*>(jit.get());
  jit->machine_ = std::move(*machine);
  jit->vector_library_ = dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL);
  jit->passes_ = std::make_unique<Passes>(*jit->machine_, jit->vector_library_ != nullptr);
  auto control = orc::SelfExecutorProcessControl::Create();
  if (!control) return failed(control.takeError());
  jit->session_ = std::make_unique<orc::ExecutionSession>(std::move(*control));
  jit->session_->setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });
  jit->linker_ = std::make_unique<orc::ObjectLinkingLayer>(*jit->session_);
  jit->extents_ = std::make_shared<Extents>();
  jit->linker_->addPlugin(jit->extents_);
  jit->library_ = &jit->session_->createBareJITDylib("slope");

  orc::SymbolMap symbols;
  auto define = [&](const char* name, void* address) {
    symbols[jit->session_->intern(name)] = {orc::ExecutorAddr::fromPtr(address), llvm::JITSymbolFlags::Exported};
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(Helper::count_); ++i) {
    const HelperInfo& info = helper_info(static_cast<Helper>(i));
    define(info.name, info.address);
  }
  for (const LibraryFunction& f : library_functions()) define(f.name, f.address);
  if (jit->vector_library_) {
    for (const VectorFunction& f : vector_functions(*jit->machine_)) {
      if (void* address = dlsym(jit->vector_library_, f.vector)) define(f.vector, address);
    }
  }
  if (llvm::Error error = jit->library_->define(orc::absoluteSymbols(std::move(symbols)))) {
    return failed(std::move(error));
  }
  jit->add_listeners(listeners);
  return jit;
}

Jit::~Jit() {
  if (self_) *self_ = nullptr;
  if (session_) llvm::consumeError(session_->endSession());
}

Jit::MachineCode::~MachineCode() {
  if (*jit_ == nullptr) return;
  Jit& jit = **jit_;
  jit.bytes_ -= bytes_;
  llvm::consumeError(tracker_->remove());
}

void Jit::prepare(llvm::Module& module) const {
  module.setTargetTriple(machine_->getTargetTriple().str());
  module.setDataLayout(machine_->createDataLayout());
}

std::string Jit::assembly(llvm::Module& module) {
  llvm::SmallString<4096> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine_->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile)) {
    return "no assembly printer for this machine\n";
  }
  passes.run(module);
  return std::string(text);
}

bool Jit::is_huge(llvm::ArrayRef<const llvm::Module*> modules) {
  constexpr std::size_t many = tuning::quick_code_size;
  constexpr std::size_t many_without_loops = tuning::quick_code_straight;
  constexpr std::size_t many_in_block = tuning::quick_code_block;
  std::size_t all = 0;
  bool loops = false;
  for (const llvm::Module* module : modules) {
    for (const llvm::Function& function : *module) {
      llvm::SmallPtrSet<const llvm::BasicBlock*, 32> before;
      for (const llvm::BasicBlock& block : function) {
        if (block.size() > many_in_block) return true;
        all += block.size();
        before.insert(&block);
        for (const llvm::BasicBlock* next : llvm::successors(&block)) loops = loops || before.contains(next);
      }
    }
  }
  return all > (loops ? many : many_without_loops);
}

std::unique_ptr<llvm::MemoryBuffer> Jit::compile(llvm::Module& module, bool quickly, std::string& why) {
  llvm::SmallVector<char, 0> object;
  const bool huge = quickly || is_huge({&module});
  machine_->setOptLevel(huge ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default);
  machine_->setFastISel(huge);
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  llvm::MCContext* context = nullptr;
  if (machine_->addPassesToEmitMC(passes, context, stream)) {
    why = "no object writer for this machine";
    return nullptr;
  }
  passes.run(module);
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(object), "slope", /*RequiresNullTerminator=*/false);
}

std::string Jit::identity() const {
  return std::string(LLVM_VERSION_STRING) + '\n' + machine_->getTargetTriple().str() + '\n' +
         machine_->getTargetCPU().str() + '\n' + machine_->getTargetFeatureString().str() + '\n' +
         (vector_library_ ? "libmvec" : "");
}

std::unique_ptr<Jit::MachineCode> Jit::link(std::vector<UnitObject> objects, const std::vector<std::string>& names,
                                            std::vector<void*>& addresses, std::string& why) {
  orc::ResourceTrackerSP tracker = library_->createResourceTracker();
  auto code = std::make_unique<MachineCode>(self_, tracker);
  auto failed = [&](llvm::Error error) {
    why = llvm::toString(std::move(error));
    return nullptr;
  };
  if (objects.front().unit->by_symbols()) {
    auto joined = join_objects(objects);
    if (!joined) return failed(joined.takeError());
    if (llvm::Error error = linker_->add(tracker, std::move(*joined))) return failed(std::move(error));
  } else {
    llvm::StringRef bytes = objects.front().object->getBuffer();
    if (keeps_lines_) code->lines_ = MachineCode::keep_lines({bytes.data(), bytes.size()});
    if (llvm::Error error = linker_->add(tracker, std::move(objects.front().object))) return failed(std::move(error));
  }
  orc::SymbolLookupSet wanted;
  for (const std::string& name : names) wanted.add(session_->intern(name));
  auto found = session_->lookup({{library_, orc::JITDylibLookupFlags::MatchAllSymbols}}, std::move(wanted));
  if (!found) return failed(found.takeError());
  const Extents::Extent extent = extents_->last();
  code->begin_ = extent.begin;
  code->end_ = extent.end;
  code->bytes_ = extent.bytes;
  bytes_ += extent.bytes;
  addresses.clear();
  for (const std::string& name : names) {
    addresses.push_back((*found)[session_->intern(name)].getAddress().toPtr<void*>());
  }
  return code;
}

}  // namespace slope::codegen
