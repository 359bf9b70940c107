#include "codegen/jit.hpp"

#include <dlfcn.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <mutex>

#include "codegen/helpers.hpp"
#include "codegen/vector_math.hpp"

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
  auto failed = [&](llvm::Error error) {
    why = llvm::toString(std::move(error));
    return nullptr;
  };
  std::unique_ptr<Translator> translator = Translator::create(why);
  if (!translator) return nullptr;
  std::unique_ptr<Jit> jit(new Jit());
  jit->self_ = std::make_shared<Jit*>(jit.get());
  jit->translator_ = std::move(translator);
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
  if (void* library = jit->translator_->vector_library()) {
    for (const VectorFunction& f : vector_functions(jit->translator_->machine())) {
      if (void* address = dlsym(library, f.vector)) define(f.vector, address);
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
