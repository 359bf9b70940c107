#include "codegen/loader.hpp"
#include "lang/ir/ir.hpp"
#include "lang/runtime/runtime.hpp"
#include "lang/runtime/tape.hpp"

namespace slope {

std::uint64_t codegen_fingerprint() {
  std::uint64_t hash = 14695981039346656037u;
  auto add = [&](std::uint64_t n) { hash = (hash ^ n) * 1099511628211u; };
  add(sizeof(Runtime));
  add(sizeof(Context));
  add(sizeof(Heap));
  add(sizeof(DataType));
  add(sizeof(TypeName));
  add(sizeof(BuiltinTypes));
  add(sizeof(Method));
  add(sizeof(Specialization));
  add(sizeof(CodeInstance));
  add(sizeof(Binding));
  add(sizeof(Tape));
  add(sizeof(ArrayObject));
  add(sizeof(ir::Function));
  add(sizeof(ir::Inst));
  add(sizeof(ir::Block));
  add(static_cast<std::uint64_t>(ir::Op::count_));
  return hash;
}

}  // namespace slope
