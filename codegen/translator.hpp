// From an LLVM module to an object: the target machine of this host and the passes for it. One for each thread that
// compiles; it knows nothing of the engine.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Target/TargetMachine.h>

#include <atomic>
#include <memory>
#include <string>

#include "codegen/object_cache.hpp"
#include "codegen/passes.hpp"
#include "codegen/unit.hpp"
#include "lang/support/stage_times.hpp"

namespace slope::codegen {

// How the units of a batch are translated.
struct Effort {
  CodeEffort level = CodeEffort::full;  // none where the batch is huge (Translator::is_huge)
  bool quick = false;                   // units that ask for it get quick code, where no good code is at hand
  bool verifies = false;
  bool dumps = false;  // the LLVM IR, to standard error
  ObjectCache* cache = nullptr;
  StageTimes* times = nullptr;
};

// Of libslope_codegen_cross.so alone (codegen/cross); elsewhere there is none.
[[gnu::weak]] void initialise_other_targets();

class Translator {
 public:
  ~Translator();
  // Null with `why` when this machine can't be compiled for.
  static std::unique_ptr<Translator> create(std::string& why);
  // For another machine. `cpu`: "native", or empty for what all processors of the architecture do.
  static std::unique_ptr<Translator> create_for(const std::string& triple, const std::string& cpu, std::string& why);

  const llvm::TargetMachine& machine() const { return *machine_; }
  void* vector_library() const { return vector_library_; }  // of dlopen; null: not there
  void prepare(llvm::Module& module) const;                 // triple and data layout
  // So long that LLVM's effort, which grows faster than the text, would not come back: such code is translated as it
  // stands.
  static bool is_huge(llvm::ArrayRef<const llvm::Module*> modules);
  void optimise(llvm::Module& module, CodeEffort level) { passes_->run(module, level); }
  // All of a program: functions that are called once, and short ones, become part of their callers first.
  void optimise_whole(llvm::Module& module);
  void drop_unused(llvm::Module& module) { passes_->drop_unused(module); }
  // `full`: with good instruction selection, scheduling and register allocation.
  std::unique_ptr<llvm::MemoryBuffer> compile(llvm::Module& module, bool full, std::string& why);
  std::string assembly(llvm::Module& module);
  // The object of a unit, from the cache if it is there; null with `why` on failure. `cancelled`, where there is one,
  // ends it early, with whatever result.
  std::unique_ptr<llvm::MemoryBuffer> translate(Unit& unit, const Effort& effort,
                                                const std::atomic<std::uint32_t>* cancelled, std::string& why);
  // From the cache, with what stands for the module there; null: it is to be made. Nothing can be in the cache of a unit
  // that is not valid. Switches are added to a module that becomes quick code.
  static std::unique_ptr<llvm::MemoryBuffer> find(Unit& unit, const Effort& effort, ObjectCache::Key& content);
  std::unique_ptr<llvm::MemoryBuffer> make(Unit& unit, const Effort& effort, const ObjectCache::Key& content,
                                           const std::atomic<std::uint32_t>* cancelled, std::string& why);
  // All that an object depends on besides the module: LLVM, the machine, the libraries at hand.
  std::string identity() const;

  // It ran out of memory once, and makes nothing any more.
  bool is_broken() const { return is_broken_; }

 private:
  struct ObjectWriter;
  Translator();
  std::unique_ptr<llvm::MemoryBuffer> make_object(Unit& unit, const Effort& effort, const ObjectCache::Key& content,
                                                  const std::atomic<std::uint32_t>* cancelled, std::string& why);

  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<ObjectWriter> good_, quick_;  // made when first used, gone before the machine
  std::unique_ptr<Passes> passes_;
  void* vector_library_ = nullptr;
  bool is_broken_ = false;
};

}  // namespace slope::codegen
