#include "codegen/translator.hpp"

#include <dlfcn.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>

#include <cstdio>
#include <new>

#include "codegen/quick_code.hpp"
#include "lang/support/dump.hpp"
#include "lang/support/tuning.hpp"

namespace slope::codegen {

std::unique_ptr<Translator> Translator::create(std::string& why) {
  // Idempotent and guarded inside LLVM; nothing of it is visible outside this shared object.
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto failed = [&](llvm::Error error) {
    why = llvm::toString(std::move(error));
    return nullptr;
  };
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder) return failed(builder.takeError());
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  builder->setRelocationModel(llvm::Reloc::PIC_);
  builder->setCodeModel(llvm::CodeModel::Small);
  // Scattered stores cost more than the scalar ones that they replace; the cost model thinks otherwise.
  if (builder->getTargetTriple().isX86()) builder->addFeatures({"+prefer-no-scatter"});
  auto machine = builder->createTargetMachine();
  if (!machine) return failed(machine.takeError());

  std::unique_ptr<Translator> made(new Translator());
  made->machine_ = std::move(*machine);
  made->vector_library_ = dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL);
  made->passes_ = std::make_unique<Passes>(*made->machine_, made->vector_library_ != nullptr);
  return made;
}

std::unique_ptr<Translator> Translator::create_for(const std::string& triple, const std::string& cpu,
                                                   std::string& why) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  if (initialise_other_targets) initialise_other_targets();
  const llvm::Triple wanted(llvm::Triple::normalize(triple.empty() ? llvm::sys::getDefaultTargetTriple() : triple));
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(wanted.str(), why);
  if (!target) {
    why = "there is no code generator for `" + triple + "`; there are those for x86_64 and aarch64";
    return nullptr;
  }
  if (!wanted.isArch64Bit() || !wanted.isOSBinFormatELF()) {
    why = "objects are made for machines of 64 bits with ELF files; `" + triple + "` is another";
    return nullptr;
  }
  std::string features;
  std::string name = cpu;
  if (cpu == "native") {
    if (wanted.getArch() != llvm::Triple(llvm::sys::getProcessTriple()).getArch()) {
      why = "the processor of this machine is not one of " + wanted.str();
      return nullptr;
    }
    auto host = llvm::orc::JITTargetMachineBuilder::detectHost();
    if (!host) {
      why = llvm::toString(host.takeError());
      return nullptr;
    }
    name = host->getCPU();
    features = host->getFeatures().getString();
  }
  if (name.empty()) name = wanted.getArch() == llvm::Triple::x86_64 ? "x86-64" : "generic";
  if (wanted.isX86()) features += features.empty() ? "+prefer-no-scatter" : ",+prefer-no-scatter";
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(wanted.str(), name, features, llvm::TargetOptions(), llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (!machine || !machine->getMCSubtargetInfo()->isCPUStringValid(name)) {
    why = "there is no processor `" + name + "` of " + wanted.str();
    return nullptr;
  }
  std::unique_ptr<Translator> made(new Translator());
  made->machine_ = std::move(machine);
  made->passes_ = std::make_unique<Passes>(*made->machine_, false);
  return made;
}

void Translator::optimise_whole(llvm::Module& module) {
  constexpr unsigned most = tuning::ahead_inlined;
  for (llvm::Function& function : module)
    if (function.hasInternalLinkage() && !function.hasFnAttribute(llvm::Attribute::NoInline) &&
        (function.hasOneUse() || (!function.hasNUsesOrMore(5) && function.getInstructionCount() < most)))
      function.addFnAttr(llvm::Attribute::AlwaysInline);
  passes_->inline_marked(module);
  passes_->run(module, CodeEffort::full);
  passes_->drop_unused(module);
}

void Translator::prepare(llvm::Module& module) const {
  module.setTargetTriple(machine_->getTargetTriple().str());
  module.setDataLayout(machine_->createDataLayout());
}

std::string Translator::assembly(llvm::Module& module) {
  llvm::SmallString<4096> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine_->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile)) {
    return "no assembly printer for this machine\n";
  }
  passes.run(module);
  return std::string(text);
}

bool Translator::is_huge(llvm::ArrayRef<const llvm::Module*> modules) {
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

namespace {

// SLOPE_DUMP=cache. The training of the library's image reads these lines (codegen/image/pack.cpp).
void note(const char* what, const Unit& unit, const ObjectCache::Key& key) {
  static const bool wanted = dump_wants("cache");
  if (!wanted) return;
  const std::string hash = llvm::toHex(key, /*LowerCase=*/true);
  for (const Unit::Name& name : unit.defined())
    std::fprintf(stderr, "; cache %s %s %s\n", what, name.name.c_str(), hash.c_str());
}

// Of the first function, without the number that makes it unique.
std::string name_of(const Unit& unit) {
  if (unit.defined().empty()) return "?";
  const std::string& name = unit.defined()[0].name;
  return name.substr(0, name.rfind('#'));
}

void dump(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  std::fputs(stream.str().c_str(), stderr);
}

constexpr const char* out_of_memory = "there was not enough memory to compile";

bool verify(const llvm::Module& module, bool wanted, std::string& why) {
#ifdef NDEBUG
  if (!wanted) return true;
#else
  static_cast<void>(wanted);
#endif
  llvm::raw_string_ostream stream(why);
  if (!llvm::verifyModule(module, &stream)) return true;
  why = "internal error in code generation: " + stream.str();
  return false;
}

}  // namespace

std::unique_ptr<llvm::MemoryBuffer> Translator::translate(Unit& unit, const Effort& effort,
                                                          const std::atomic<std::uint32_t>* cancelled,
                                                          std::string& why) {
  ObjectCache::Key content{};
  if (auto found = find(unit, effort, content)) return found;
  return make(unit, effort, content, cancelled, why);
}

std::unique_ptr<llvm::MemoryBuffer> Translator::find(Unit& unit, const Effort& effort, ObjectCache::Key& content) {
  const StageTime time(effort.times, StageTimes::Stage::cache, [&] { return name_of(unit); });
  std::unique_ptr<llvm::MemoryBuffer> found;
  const bool wants_quick = effort.quick && unit.quick;
  llvm::SmallVector<char, 0> text;
  if (effort.cache || wants_quick) ObjectCache::write(unit.module(), text);
  if (effort.cache) {
    content = effort.cache->content(llvm::StringRef(text.data(), text.size()));
    found = effort.cache->find(content, effort.level);
    if (found) note("found", unit, ObjectCache::key(content, effort.level));
  }
  if (found || !wants_quick) return found;
  unit.text = {{text.data(), text.size()}, unit.addresses(), unit.referred()};
  if (effort.cache) found = effort.cache->find_quick(content);
  if (found) {
    unit.address(unit.quick);  // as add_switches names it
  } else if (begin_quick_code(unit)) {
    add_switches(unit);
  } else {
    unit.text = {};
    return nullptr;
  }
  unit.has_switches = true;
  return found;
}

std::unique_ptr<llvm::MemoryBuffer> Translator::make(Unit& unit, const Effort& effort, const ObjectCache::Key& content,
                                                     const std::atomic<std::uint32_t>* cancelled, std::string& why) {
  const StageTime time(effort.times, StageTimes::Stage::llvm, [&] { return name_of(unit); });
  if (is_broken_) {
    why = out_of_memory;
    return nullptr;
  }
  try {
    return make_object(unit, effort, content, cancelled, why);
  } catch (const std::bad_alloc&) {
    // LLVM is built without exceptions: nothing of it was unwound. What it holds is left alone from now on.
    is_broken_ = true;
    static_cast<void>(passes_.release());
    static_cast<void>(good_.release());
    static_cast<void>(quick_.release());
    why = out_of_memory;
    return nullptr;
  }
}

std::unique_ptr<llvm::MemoryBuffer> Translator::make_object(Unit& unit, const Effort& effort,
                                                            const ObjectCache::Key& content,
                                                            const std::atomic<std::uint32_t>* cancelled,
                                                            std::string& why) {
  if (!verify(unit.module(), effort.verifies, why)) return nullptr;
  const CodeEffort level = unit.has_switches ? CodeEffort::passes : effort.level;
  passes_->run(unit.module(), level, cancelled);
  if (cancelled && *cancelled) {
    why = "interrupted";
    return nullptr;
  }
  if (effort.dumps) dump(unit.module());
  std::unique_ptr<llvm::MemoryBuffer> object = compile(unit.module(), level == CodeEffort::full, why);
  if (object && effort.cache) {
    const ObjectCache::Key key = unit.has_switches ? ObjectCache::quick_key(content) : ObjectCache::key(content, level);
    effort.cache->keep(key, object->getBuffer());
    if (!unit.has_switches) note("made", unit, key);
  }
  return object;
}

// LLVM's passes from a module to an object. Making the hundred of them costs more than a short function does.
struct Translator::ObjectWriter {
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream{object};
  llvm::legacy::PassManager passes;
};

Translator::Translator() = default;
Translator::~Translator() = default;

std::unique_ptr<llvm::MemoryBuffer> Translator::compile(llvm::Module& module, bool full, std::string& why) {
  const bool quick = !full || is_huge({&module});
  machine_->setOptLevel(quick ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default);
  machine_->setFastISel(quick);
  std::unique_ptr<ObjectWriter>& writer = quick ? quick_ : good_;
  if (!writer) {
    auto made = std::make_unique<ObjectWriter>();
    llvm::MCContext* context = nullptr;
    if (machine_->addPassesToEmitMC(made->passes, context, made->stream)) {
      why = "no object writer for this machine";
      return nullptr;
    }
    writer = std::move(made);
  }
  writer->object.clear();
  writer->passes.run(module);
  return llvm::MemoryBuffer::getMemBufferCopy({writer->object.data(), writer->object.size()}, "slope");
}

std::string Translator::identity() const {
  return std::string(LLVM_VERSION_STRING) + '\n' + machine_->getTargetTriple().str() + '\n' +
         machine_->getTargetCPU().str() + '\n' + machine_->getTargetFeatureString().str() + '\n' +
         (vector_library_ ? "libmvec" : "");
}

}  // namespace slope::codegen
