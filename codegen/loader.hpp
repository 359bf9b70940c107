// How an engine gets its code generator. It loads libslope_codegen.so when the first function becomes hot, so that a
// program without hot functions never pays for loading LLVM. This file and what it includes know nothing of LLVM.
//
// The shared object exports one C symbol, `slope_create_code_generator`. It contains its own copies of the layers below
// it, which work on the engine's data. So both sides must come from one build; `CodegenHost::version` checks this.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lang/runtime/backend.hpp"
#include "lang/support/stage_times.hpp"

namespace slope {

class Runtime;

// Of CodegenHost itself, which must be read before the fingerprint in it.
inline constexpr std::uint64_t codegen_version = 1;

// What the engine tells its code generator.
struct CodegenHost {
  std::uint64_t version = codegen_version;
  std::uint64_t fingerprint = 0;  // codegen_fingerprint()
  bool dump_llvm = false;  // SLOPE_DUMP=llvm: print the optimised LLVM IR of whatever is compiled to standard error
  bool verify = false;     // SLOPE_VERIFY=1: check the LLVM IR that is made
  bool trusts_inbounds = false;  // indices are tested only where the code says so
  unsigned compile_threads = 0;  // of the process, that compile for the engine while it goes on; 0: its own does
  StageTimes* times = nullptr;   // where somebody wants to know; of the engine's own thread
  std::string cache;             // folder of machine code that is kept on disk; empty: none
  // Instructions that quick code executes for each of its own before it is replaced (codegen/quick_code.hpp); 1: as it
  // seems best; 0: there is no quick code.
  std::uint64_t quick_code = 1;
  bool uses_image = true;  // SLOPE_LIBRARY_CODE=off: not the machine code that Slope was built with
};
// A hash of the sources of which engine and shared object each hold a copy; two that differ do not work together.
std::uint64_t codegen_fingerprint();

using CreateCodeGenerator = CodeGenerator* (*)(Runtime*, const CodegenHost*);

// Looks for libslope_codegen.so beside the executable and in ../lib from there, beside the shared object that has this
// code in it and in ../lib from there, where the dynamic linker looks, at `build_path` and at `install_path` (both may
// be empty). `wanted`: what the engine's owner decides. Null: not found or from another build, and `why` says which places were tried.
std::unique_ptr<CodeGenerator> load_code_generator(Runtime& runtime, const std::string& build_path,
                                                   const std::string& install_path, const CodegenHost& wanted,
                                                   std::string& why);

}  // namespace slope
