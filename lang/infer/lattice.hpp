// What inference knows of a value. From less to more:
//
//   bottom        no value: not computed yet, or control never gets past the computation
//   constant      exactly this value (functions, types, symbols, numbers, tuples of such)
//   partial       an immutable aggregate whose fields are known better than its type says: (x::Int64, Const(:a))
//   conditional   a Bool that says what another SSA value is: `subject` is fields[0] when true, fields[1] when false
//   type          an instance of `type`, which may be a union of a few members
//
// Elements are interned in their LatticeTable: equal elements are the same pointer, so that "has it changed?" is one
// comparison and a join of equal elements costs nothing. The order is a ⊑ b when every value that a describes b
// describes too. Chains are finite because unions have a limit, partial elements a depth, and because the solver counts
// how often one value grows and then forgets what it knows (LatticeTable::widen).
//
// Rules: a singleton type and Type{T} are always the constant; a partial without better fields is its type; constants
// that lie on the heap are kept alive by the table.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "lang/runtime/runtime.hpp"

namespace slope::infer {

struct Lattice {
  enum class Kind : std::uint8_t { bottom, constant, partial, conditional, type };
  Kind kind = Kind::bottom;
  std::uint32_t subject = 0;   // conditional: an inst; in the result of a call: an argument (0 is the callee)
  const Type* type = nullptr;  // of every element: the plain type that contains it (Bool of a conditional)
  Value value;                 // constant
  std::vector<const Lattice*> fields;

  bool is_bottom() const { return kind == Kind::bottom; }
  bool is_constant() const { return kind == Kind::constant; }
  bool is_partial() const { return kind == Kind::partial; }
  bool is_conditional() const { return kind == Kind::conditional; }
};
using Known = const Lattice*;

class LatticeTable {
 public:
  LatticeTable(Runtime& runtime, Context& scratch, int union_limit);
  LatticeTable(const LatticeTable&) = delete;

  Known bottom() const { return bottom_; }
  Known any() const { return any_; }
  Known boolean() const { return boolean_; }
  Known of_type(const Type* type);
  Known constant(Value v);
  Known boolean_constant(bool b) { return b ? true_ : false_; }
  // `type`: a tuple type (covariant in what the fields are) or a concrete immutable type.
  Known partial(const DataType* type, std::span<const Known> fields);
  Known conditional(std::uint32_t subject, Known if_true, Known if_false);

  Known join(Known a, Known b);
  bool less_or_equal(Known a, Known b);
  Known without_condition(Known a) { return a->is_conditional() ? boolean_ : a; }
  // Forgets constants and fields (step 1), then unions (step 2), then everything (step 3).
  Known widen(Known a, int step);

  Known narrow(Known a, const Type* type);  // of those that are also instances of `type`
  Known remove(Known a, const Type* type);  // of those that are not, as far as unions show it

  // What is known of a field (0-based) of an aggregate; bottom when the type has no such field.
  Known field(Known object, std::size_t index);

  Runtime& runtime() { return runtime_; }
  TypeTable& types() { return runtime_.types; }
  const BuiltinTypes& builtin() const { return builtin_; }

 private:
  Known intern(Lattice&& element);
  Known join_fields(const DataType* type, Known a, Known b);
  bool is_member(Value v, const Type* type) { return is_instance(runtime_.types, v, type); }

  Runtime& runtime_;
  Context& scratch_;
  const BuiltinTypes& builtin_;
  int union_limit_;
  std::deque<Lattice> elements_;
  std::unordered_multimap<std::uint64_t, Known> by_hash_;
  std::unordered_map<const Type*, Known> by_type_;
  Rooted kept_;  // heap values in constants
  Known bottom_, any_, boolean_, true_, false_;
};

// Fields of a type as far as they are known: of a concrete type, or of a tuple type without vararg. -1: not known.
int known_field_count(const Type* type);
const Type* declared_field_type(const BuiltinTypes& builtin, const Type* type, std::size_t index);

// May a value of this type be the argument of a specialisation: concrete, or Type{T} of a known T. Type values of an
// unknown kind (DataType) dispatch on Type{T}, so DataType itself is not one.
bool is_dispatch_type(const BuiltinTypes& builtin, const Type* type);
// T of Type{T}, else null.
const Type* type_parameter(const BuiltinTypes& builtin, const Type* type);

}  // namespace slope::infer
