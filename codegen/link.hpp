// The objects of a batch become one: a single piece of memory, in which the functions of different units call each other
// directly.
#pragma once

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/Support/MemoryBuffer.h>

#include <memory>
#include <vector>

#include "codegen/unit.hpp"

namespace slope::codegen {

// The machine code of a unit.
struct UnitObject {
  const Unit* unit = nullptr;
  std::unique_ptr<llvm::MemoryBuffer> object;
};

// The graph of all, for the linker, with the batch's names for the functions and with numbers for the addresses of the
// engine's data. It does not need the objects any longer. An error for an object that cannot be read.
llvm::Expected<std::unique_ptr<llvm::jitlink::LinkGraph>> join_objects(llvm::ArrayRef<UnitObject> objects);

}  // namespace slope::codegen
