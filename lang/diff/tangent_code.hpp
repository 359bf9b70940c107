// Emits code on tangents in their two parts (shadows, and leaves of cotangents): sums, zeros, conversions between what
// two types know of one value, places in memory, the columns of tapes. All of it depends on types alone, so that both
// modes and their parts share it.
#pragma once

#include <vector>

#include "lang/diff/tangent.hpp"
#include "lang/ir/build.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::diff {

class TangentCode {
 public:
  explicit TangentCode(Runtime& runtime);
  Runtime& runtime() const { return runtime_; }
  TangentTypes& types() const { return tangents_; }

  ir::Operand int_constant(ir::Builder& at, std::int64_t n) { return at.constant(runtime_.from_int(n)); }
  ir::Operand type_constant(ir::Builder& at, const Type* t) { return at.constant(runtime_.from_type(t)); }
  ir::Operand nothing(ir::Builder& at) { return at.constant(runtime_.nothing()); }
  ir::Operand library_function(KnownName name, ir::Builder& at);
  // `type`: what the result is asserted to be; null: not used, or any.
  ir::Operand call_library(ir::Builder& at, KnownName name, std::vector<ir::Operand> args, const Type* type);

  // The tuple of the partial derivatives of a function at `arguments`, by its @scalar_rule; `result` is its value there.
  ir::Operand scalar_partials(ir::Builder& at, ir::Operand function, ir::Operand result,
                              const std::vector<ir::Operand>& arguments);
  // The partial derivative for argument `i` out of that tuple, as a number of type `t`.
  ir::Operand scalar_partial(ir::Builder& at, ir::Operand partials, std::size_t i, const Type* t);
  // A tangent or cotangent of `inst` times such a partial. Where the partial may be infinite an exact zero stays zero
  // (Base.times_partial).
  ir::Operand times_partial(ir::Builder& at, const ir::Inst& inst, ir::Operand tangent, ir::Operand partial);

  // Between the shadows of a value as two types see it, one of which may know only at run time what it is. `from` and
  // `to` are types of shadows.
  ir::Operand boxed(ir::Builder& at, ir::Operand tangent);
  ir::Operand as_shadow(ir::Builder& at, ir::Operand shadow, const Type* from, const Type* to);

  // Cotangents, leaf by leaf. An invalid operand is zero.
  std::size_t leaf_count(const Type* t) { return tangents_.leaves(t).size(); }
  Value zero_leaf(const Type* leaf_type);
  ir::Operand zero(ir::Builder& at, const Type* leaf_type) { return at.constant(zero_leaf(leaf_type)); }
  ir::Operand or_zero(ir::Builder& at, ir::Operand leaf, const Type* leaf_type) {
    return leaf.valid() ? leaf : zero(at, leaf_type);
  }
  ir::Operand add_leaves(ir::Builder& at, ir::Operand a, ir::Operand b, const Type* leaf_type);
  static bool none(const std::vector<ir::Operand>& leaves);
  ir::Operand pack(ir::Builder& at, const Type* t, const std::vector<ir::Operand>& leaves);  // → cotangent(t)
  void unpack(ir::Builder& at, const Type* t, ir::Operand cotangent, std::vector<ir::Operand>& leaves);
  // Leaves of a value seen as `from` → as `to`.
  std::vector<ir::Operand> convert_leaves(ir::Builder& at, const Type* from, const std::vector<ir::Operand>& leaves,
                                          const Type* to);
  ir::Operand zero_cotangent(ir::Builder& at, const Type* cotangent);

  // What passes where no value was made; `undef` when nothing can stand for it.
  ir::Operand undefined(ir::Builder& at, const Type* t);
  // Beside the shadows of the fields that `new` was given: those of the fields that it leaves without a value.
  void add_unassigned(ir::Builder& at, const DataType* made, std::vector<ir::Operand>& shadows);

  // A place in memory: an array's element, a field, the content of a Box.
  struct Place {
    ir::Operand memory;  // primal operand
    ir::Operand index;   // of an array: primal operand
    std::uintptr_t field = 0;
    bool is_cell = false;
    const Type* declared = nullptr;  // what it may hold
    const Type* tangent = nullptr;   // what its shadow holds; null or Nothing: nothing
  };
  bool holds_tangent(const Place& place) const { return place.tangent && place.tangent != builtin_.nothing; }
  ir::Operand load_tangent(ir::Builder& at, const Place& place, ir::Operand shadow, ir::Operand index);
  void store_tangent(ir::Builder& at, const Place& place, ir::Operand shadow, ir::Operand index, ir::Operand tangent);
  ir::Operand shadow_part(ir::Builder& at, const Place& place, ir::Operand tangent);     // as shadow(declared)
  ir::Operand cotangent_part(ir::Builder& at, const Place& place, ir::Operand tangent);  // as cotangent(declared)
  // Of both parts; `cotangent` invalid: zero.
  ir::Operand whole_tangent(ir::Builder& at, const Place& place, ir::Operand shadow, ir::Operand cotangent);

  // The shadow of a new mutable struct, of what its first fields' places hold. The other fields, and those of the
  // shadow, are not assigned yet; the mark that ends a complete one is then false as all memory begins.
  ir::Operand mutable_shadow(ir::Builder& at, const DataType* made, std::vector<ir::Operand> tangents);

  // The columns of a tape that hold tangents of column `column`: where they begin in TangentTypes::with_tangents.
  std::uintptr_t tangent_columns(const TapeLayout& layout, std::uintptr_t column, std::size_t direction = 0);

 protected:
  ~TangentCode() = default;

  Runtime& runtime_;
  TangentTypes& tangents_;
  const BuiltinTypes& builtin_;
};

}  // namespace slope::diff
