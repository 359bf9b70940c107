// Who else learns of machine code: debuggers through GDB's interface for just-in-time compilers, perf through a jitdump
// file (`perf inject --jit`), and the engine's profiler through the lines kept here.
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/ExecutionEngine/Orc/DebugObjectManagerPlugin.h>
#include <llvm/ExecutionEngine/Orc/Debugging/DebugInfoSupport.h>
#include <llvm/ExecutionEngine/Orc/Debugging/PerfSupportPlugin.h>
#include <llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderGDB.h>
#include <llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderPerf.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>
#include <tuple>

#include "codegen/jit.hpp"

namespace slope::codegen {

namespace orc = llvm::orc;

void Jit::add_listeners(const Listeners& listeners) {
  keeps_lines_ = listeners.keeps_lines;
  if (listeners.debuggers) {
    auto registrar = std::make_unique<orc::EPCDebugObjectRegistrar>(
        *session_, orc::ExecutorAddr::fromPtr(&llvm_orc_registerJITLoaderGDBWrapper));
    linker_->addPlugin(std::make_shared<orc::DebugObjectManagerPlugin>(*session_, std::move(registrar),
                                                                       /*RequireDebugSections=*/true,
                                                                       /*AutoRegisterCode=*/true));
  }
  if (listeners.perf) {
    linker_->addPlugin(std::make_shared<orc::DebugInfoPreservationPlugin>());  // the linker drops lines otherwise
    linker_->addPlugin(std::make_shared<orc::PerfSupportPlugin>(
        session_->getExecutorProcessControl(), orc::ExecutorAddr::fromPtr(&llvm_orc_registerJITLoaderPerfStart),
        orc::ExecutorAddr::fromPtr(&llvm_orc_registerJITLoaderPerfEnd),
        orc::ExecutorAddr::fromPtr(&llvm_orc_registerJITLoaderPerfImpl), /*EmitDebugInfo=*/true,
        /*EmitUnwindInfo=*/true));
  }
}

// The object as the compiler wrote it: its one code section begins at 0, where the linked code begins.
struct Jit::MachineCode::Lines {
  std::unique_ptr<llvm::MemoryBuffer> memory;
  std::unique_ptr<llvm::object::ObjectFile> object;
  std::unique_ptr<llvm::DWARFContext> dwarf;  // read when first asked
};

std::shared_ptr<Jit::MachineCode::Lines> Jit::MachineCode::keep_lines(llvm::ArrayRef<char> object) {
  auto lines = std::make_shared<Lines>();
  lines->memory = llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.data(), object.size()), "slope");
  auto read = llvm::object::ObjectFile::createObjectFile(lines->memory->getMemBufferRef());
  if (!read) {
    llvm::consumeError(read.takeError());
    return nullptr;
  }
  lines->object = std::move(*read);
  return lines;
}

bool Jit::MachineCode::locate(std::uintptr_t address, std::uintptr_t& function, std::vector<CodePlace>& places) const {
  if (address < begin_ || address >= end_) return false;
  auto after = std::upper_bound(functions.begin(), functions.end(), address,
                                [](std::uintptr_t a, const auto& f) { return a < f.first; });
  function = 0;
  std::uintptr_t start = begin_;
  if (after != functions.begin()) std::tie(start, function) = *--after;
  places.clear();
  if (!lines_) return true;
  if (!lines_->dwarf) lines_->dwarf = llvm::DWARFContext::create(*lines_->object);
  using Wanted = llvm::DILineInfoSpecifier;
  const Wanted wanted(Wanted::FileLineInfoKind::RelativeFilePath, Wanted::FunctionNameKind::ShortName);
  // What the optimiser merged has no line of its own: that of what stands before it is right or nearly so.
  constexpr std::uintptr_t furthest = 64;
  for (std::uintptr_t at = address; at >= start && address - at < furthest; --at) {
    const llvm::DIInliningInfo found = lines_->dwarf->getInliningInfoForAddress({at - begin_, 0}, wanted);
    bool known = found.getNumberOfFrames() != 0;
    for (std::uint32_t i = 0; i < found.getNumberOfFrames(); ++i) known = known && found.getFrame(i).Line != 0;
    if (!known) continue;
    for (std::uint32_t i = 0; i < found.getNumberOfFrames(); ++i) {
      const llvm::DILineInfo& frame = found.getFrame(i);
      places.push_back({frame.FunctionName, frame.FileName, frame.Line});
    }
    return true;
  }
  return true;
}

}  // namespace slope::codegen
