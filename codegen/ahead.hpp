// Objects for programs without an engine (docs/ahead_of_time.md): what the engine's side asks of libslope_codegen.so,
// which exports `slope_build_object`. This file knows nothing of LLVM.
//
// A function that is exported takes numbers and arrays of numbers and returns numbers. Its C form is
//   int32 symbol(arguments…, results…, void* work, int64 work_size)
//   - a number by value; an array as a pointer to its first element and one int64 for each dimension;
//   - a pointer for each number of the result;
//   - 0, or what error was raised: its kind (AheadError) in the bits from 24, the line of the program in those below.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lang/runtime/context.hpp"

namespace slope {

struct CodeInstance;

enum class AheadError : std::uint32_t {
  none,
  bounds,
  domain,
  dimensions,
  argument,
  division,
  conversion,  // inexact, or an overflow
  type,
  work,  // too little memory was lent
  other,
};

struct AheadExport {
  CodeInstance* code = nullptr;  // typed; its callee is a function without captures
  std::string symbol;
};

struct AheadRequest {
  std::vector<AheadExport> exports;
  std::string triple;  // empty: this machine's
  std::string cpu;     // "native": this machine's; empty: any of the architecture
};

// What cannot be done without an engine, and where the program asks for it.
struct AheadRefusal {
  std::string what;
  Span span;
};

struct AheadObject {
  std::string bytes;  // an object file
  // By export: whether the memory of each array, in the order of the arguments, may be written.
  std::vector<std::vector<bool>> written;
  std::vector<bool> takes_memory;  // by export: whether it uses the memory that is lent
  // By export: whether there is a function `symbol`_work_size that returns how much is enough, of all integers that the
  // export takes (sizes of arrays, numbers) but `work_size`.
  std::vector<bool> tells_memory;
  std::vector<std::string> symbols;  // of libraries that the object needs
  std::string triple;
};

// False: `refusals` say why, or `why` does.
using BuildObject = bool (*)(Runtime* runtime, Context* ctx, const AheadRequest* request, AheadObject* made,
                             std::vector<AheadRefusal>* refusals, std::string* why);

// Of the shared object that the engine's code generator comes from, or, for other machines, of libslope_codegen_cross.so
// beside it; null when there is none.
BuildObject object_builder(const class CodeGenerator* generator, bool for_other_machines);

}  // namespace slope
