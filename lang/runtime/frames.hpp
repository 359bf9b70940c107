// Records of running functions, for a reader that interrupts the thread: the sampling profiler's signal handler.
//
// An engine that keeps records (Runtime::records_frames) has one for each activation, on the native stack, linked from
// Context::frames, the innermost first. The code that makes a record removes it on every way out. A signal handler on
// the same thread may read records at any instruction. So a record is complete before it is linked, and is unlinked
// before it dies. Compiled code writes records by the offsets below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lang/support/source.hpp"

namespace slope {

struct DataType;
struct Method;
namespace ir {
struct Function;
}

struct TraceEntry {
  const Method* method = nullptr;   // null: top level
  Span span;                        // of the call or failing operation
  const DataType* types = nullptr;  // Tuple{typeof(f), types of the arguments…}; null: not known
};

// The entries of the trace that an error passing one instruction leaves, innermost first: of compiled code.
struct TraceSite {
  std::vector<TraceEntry> entries;
};

struct FrameRecord {
  FrameRecord* caller = nullptr;
  std::uintptr_t function = 0;  // ir::Function*; bit 0 is set for machine code
  const void* site =
      nullptr;  // machine code: TraceSite* of the last call; else the interpreter's Instruction*; or null
  bool is_machine_code() const { return (function & 1) != 0; }
};
static_assert(offsetof(FrameRecord, caller) == 0 && offsetof(FrameRecord, function) == 8 &&
              offsetof(FrameRecord, site) == 16 && sizeof(FrameRecord) == 24);

}  // namespace slope
