// From objects to memory that runs: ORC's execution session with JITLink, and the helpers as absolute symbols. One batch is one allocation with its own lifetime (MachineCode). No eh-frames are
// registered, because errors are return values and nothing unwinds through compiled code.
#pragma once

#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include <memory>
#include <string>
#include <vector>

#include "codegen/link.hpp"
#include "codegen/translator.hpp"
#include "lang/runtime/backend.hpp"

namespace slope::codegen {

class Jit {
 public:
  struct Listeners {
    bool debuggers = false;    // by GDB's interface for just-in-time compilers
    bool perf = false;         // by a jitdump file
    bool keeps_lines = false;  // for MachineCode::locate
  };
  // Null with `why` when this machine can't be compiled for.
  static std::unique_ptr<Jit> create(const Listeners& listeners, std::string& why);
  ~Jit();
  Jit(const Jit&) = delete;

  // The one of the engine's own thread.
  Translator& translator() { return *translator_; }
  const Translator& translator() const { return *translator_; }

  // Machine code of one batch; freed with its last owner.
  class MachineCode {
   public:
    MachineCode(std::shared_ptr<Jit*> jit, llvm::orc::ResourceTrackerSP tracker)
        : jit_(std::move(jit)), tracker_(std::move(tracker)) {}
    ~MachineCode();
    MachineCode(const MachineCode&) = delete;
    // What a call in it returns to lies here.
    std::uintptr_t begin() const { return begin_; }
    std::uintptr_t end() const { return end_; }
    std::size_t bytes() const { return bytes_; }
    // The lines of the instruction at an address in it, if the object was kept. False: not in it.
    bool locate(std::uintptr_t address, std::uintptr_t& function, std::vector<CodePlace>& places) const;
    // Which of the engine's functions begins where (FrameRecord::function; 0 for wrappers), in ascending order.
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> functions;

   private:
    friend class Jit;
    struct Lines;
    static std::shared_ptr<Lines> keep_lines(llvm::ArrayRef<char> object);
    std::shared_ptr<Lines> lines_;
    std::shared_ptr<Jit*> jit_;  // holds null once the Jit is gone
    llvm::orc::ResourceTrackerSP tracker_;
    std::uintptr_t begin_ = 0;
    std::uintptr_t end_ = 0;
    std::size_t bytes_ = 0;
  };
  // Addresses of `names` in their order. Null with `why` on failure.
  std::unique_ptr<MachineCode> link(std::vector<UnitObject> objects, const std::vector<std::string>& names,
                                    std::vector<void*>& addresses, std::string& why);
  std::size_t bytes() const { return bytes_; }  // of all code that is there

 private:
  class Extents;
  Jit() = default;
  void add_listeners(const Listeners& listeners);

  std::unique_ptr<Translator> translator_;
  std::unique_ptr<llvm::orc::ExecutionSession> session_;
  std::unique_ptr<llvm::orc::ObjectLinkingLayer> linker_;
  llvm::orc::JITDylib* library_ = nullptr;
  std::shared_ptr<Jit*> self_;
  std::shared_ptr<Extents> extents_;
  std::size_t bytes_ = 0;
  bool keeps_lines_ = false;
};

}  // namespace slope::codegen
