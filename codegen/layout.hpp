// How Slope values look in compiled code.
//
// A value is a list of leaves. A leaf is an LLVM scalar. The value's type decides which leaves there are:
//   none       no leaf: singletons, and types whose exact value is known (Type{Float64})
//   bits       iN, float or double; a Bool is i1 (a byte in memory)
//   reference  ptr: mutable structs, arrays, strings, symbols, modules, types; null means undefined
//   fields     immutable structs, tuples and closures: the leaves of all fields, one after the other.
//              As a field or an array element such a value is stored inline when it holds plain bits alone;
//              otherwise a pointer to a box is stored
//   boxed      immutable structs that have more than `max_leaves` leaves, that contain themselves, or that may be
//              partly undefined: a ptr to their box
//   dynamic    ptr type, i64 payload: abstract types and unions, as the runtime's Value
//
// Native entries have the form
//   {leaves of the result…, i8 status} entry(ptr context, leaves of the callee…, leaves of the arguments…)
//   - a result of a single member is returned plainly, a result without members as void;
//   - a trailing vararg is passed as its tuple;
//   - status 1 means that an error is pending in the context; the other members are then undefined;
//   - functions that cannot fail return no status (Signature::has_status).
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Metadata.h>
#include <llvm/IR/Value.h>

#include <unordered_map>

#include "lang/ir/ir.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::codegen {

class DebugInfo;
class Ahead;

inline constexpr unsigned max_leaves = 32;

struct Representation {
  enum class Kind : std::uint8_t { none, bits, reference, fields, boxed, dynamic };
  Kind kind = Kind::dynamic;
  llvm::SmallVector<llvm::Type*, 2> leaves;
  llvm::SmallVector<unsigned, 4> field_start;  // of `fields`: first leaf of each field, and the end
  Value constant;                              // of `none`: the value (undefined for a type without values)
};

// A value in emitted code. `type` says what the leaves mean.
struct Val {
  const Type* type = nullptr;
  llvm::SmallVector<llvm::Value*, 2> leaves;
  llvm::Value* box = nullptr;  // of `fields` with references: a box that already holds this value, if there is one
};

// Memory that can't overlap gets different alias classes (TBAA), so that array headers stay in registers while array
// elements are written.
enum class Memory : std::uint8_t {
  context,       // Context
  type_word,     // the type at the head of an object: written once
  array_header,  // data, length, dims
  elements,      // of arrays; one class a leaf type
  object,        // fields of mutable structs; one class a leaf type
  box,           // fields of boxed immutable values, string bytes: never written again; one class a leaf type
  cell,
  binding,
  tape_header,
  tape_rows,  // one class a leaf type
};

// What a caller of compiled code must know.
struct Signature {
  std::vector<const Type*> parameters;  // callee first
  const Type* result = nullptr;
  bool has_status = true;
};

class Layout {
 public:
  Layout(Runtime& runtime, llvm::LLVMContext& context);

  Runtime& runtime() { return runtime_; }
  TypeTable& types() { return runtime_.types; }
  const BuiltinTypes& builtin() { return runtime_.types.builtin(); }

  const Representation& of(const Type* type);
  // True when values of the type need a heap box to become a Value or to be stored behind a pointer.
  bool needs_box(const Type* type);
  // For each leaf how many bytes may be read through it whatever happens: array headers. 0 for all others.
  std::vector<std::uint64_t> known_bytes(const Type* type);
  bool is_bits(const Type* type) { return of(type).kind == Representation::Kind::bits; }

  llvm::FunctionType* function_type(const Signature& signature);
  llvm::Type* return_type(const Signature& signature);
  llvm::FunctionType* boxed_type() { return boxed_type_; }

  llvm::MDNode* alias_tag(Memory memory, llvm::Type* leaf);
  llvm::MDNode* alias_tag_of_all(Memory memory);  // whatever the leaf

  DebugInfo* debug = nullptr;  // of the module, when the code is described
  Ahead* ahead = nullptr;      // when the code is for programs without an engine (codegen/ahead.hpp)
  bool tests_indices = true;   // of every access to an element that is not known to be inside; off: the host trusts
  llvm::LLVMContext& context;
  llvm::PointerType* ptr;
  llvm::IntegerType *i1, *i8, *i32, *i64;
  llvm::StructType* value;  // {ptr, i64}, the runtime's Value

 private:
  Representation compute(const Type* type);

  Runtime& runtime_;
  std::unordered_map<const Type*, std::unique_ptr<Representation>> representations_;
  llvm::FunctionType* boxed_type_;
  llvm::MDNode* alias_root_;
  std::unordered_map<std::uint64_t, llvm::MDNode*> alias_tags_;
  std::unordered_map<std::uint32_t, llvm::MDNode*> alias_parents_;
};

// Offsets that compiled code uses; layout.cpp asserts them against the structures.
namespace offset {
inline constexpr unsigned context_stack_limit = 0;
inline constexpr unsigned context_heap = 16;
inline constexpr unsigned heap_room = 0;
inline constexpr unsigned heap_allocations = 8;
inline constexpr unsigned heap_marking = 16;
inline constexpr unsigned heap_free = 24;
inline constexpr unsigned heap_fresh = heap_free + 32 * 8;
inline constexpr unsigned fresh_cells_bytes = 16, fresh_cells_end = 8;
inline constexpr unsigned free_cell_next = 8;
inline constexpr unsigned context_interrupt = 24;
inline constexpr unsigned context_world = 32;
inline constexpr unsigned context_tapes = 40;
inline constexpr unsigned scratch_at = 0;  // in the tapes
inline constexpr unsigned scratch_end = 8;
inline constexpr unsigned context_fuel = 48;
inline constexpr unsigned context_frames = 56;
inline constexpr unsigned context_loans = 64;
inline constexpr unsigned object_payload = 8;
inline constexpr unsigned array_data = 8;
inline constexpr unsigned array_length = 16;
inline constexpr unsigned array_flags = 24;
inline constexpr unsigned array_element_size = 28;
inline constexpr unsigned array_words = 32;
inline constexpr unsigned array_capacity = array_words;  // of a vector with memory of its own that is not compact
inline constexpr unsigned array_front = array_words + 8;
inline constexpr unsigned array_owner = array_words;                       // of an array without memory of its own
constexpr unsigned array_dim(std::int64_t rank, std::int64_t dimension) {  // from 0
  return rank == 1 ? array_length : array_words + 8 + 8 * static_cast<unsigned>(dimension);
}
inline constexpr unsigned string_length = 8;
inline constexpr unsigned string_bytes = 16;
inline constexpr unsigned cell_type = 8;
inline constexpr unsigned cell_payload = 16;
inline constexpr unsigned binding_value = 16;
inline constexpr unsigned tape_capacity = 0;
unsigned tape_columns();
}  // namespace offset

}  // namespace slope::codegen
