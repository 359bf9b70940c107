// Tangent types of the language's types (see diff.hpp for the split into shadow and cotangent), and the flattening of a
// value's cotangent into its floating-point leaves.
#pragma once

#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lang/diff/diff.hpp"
#include "lang/diff/object_numbers.hpp"
#include "lang/diff/stand_in.hpp"
#include "lang/runtime/context.hpp"
#include "lang/runtime/library_names.hpp"
#include "lang/support/tuning.hpp"

namespace slope::diff {

// Answers are cached by type for one derivative; types are immortal, so the cache may outlive it.
class TangentTypes {
 public:
  explicit TangentTypes(Runtime& runtime);
  StandIns stand_ins;

  // `nothing`'s type when there is none; DynamicTangent when the type does not tell (Any, unions). Null when nothing is
  // known of tangents at all (opaque objects; everything abstract while the standard library is not loaded).
  const Type* shadow(const Type* t);
  const Type* cotangent(const Type* t);
  // What an array of `t` holds in its shadow: a float, a cotangent tuple, a shadow, or Tuple{shadow, cotangent}.
  const Type* element(const Type* t);

  // Base.DynamicTangent: a box for the shadow or the cotangent of a value whose type is known only at run time. In it
  // stands exactly the shadow of the value; or a cotangent in the shape of the value's, in which `nothing` may stand
  // for any zero part. A struct with one field of type Any, so that tuples that hold it are still concrete.
  const DataType* dynamic();
  bool is_dynamic(const Type* t) { return t && dynamic() && cotangent(t) == dynamic(); }

  bool known(const Type* t) { return shadow(t) != nullptr; }
  bool has_shadow(const Type* t) {
    const Type* s = shadow(t);
    return s && s != builtin_.nothing;
  }
  bool has_cotangent(const Type* t) {
    const Type* c = cotangent(t);
    return c && c != builtin_.nothing;
  }
  // Whether there is memory in this value, whatever its type may hold: in a box of nothing there is none.
  bool holds_memory(Value v);
  bool differentiable(const Type* t) { return has_shadow(t) || has_cotangent(t); }
  bool is_float(const Type* t) const { return t == builtin_.float64 || t == builtin_.float32; }

  // The float leaves of cotangent(t), depth first; empty when it has none. Each with the path of field indices of `t`.
  struct Leaf {
    const Type* type;
    std::vector<std::uint32_t> path;
  };
  const std::vector<Leaf>& leaves(const Type* t);
  // The type as which a derivative sees the numbers of a field of an immutable struct: that of the field, or Any where
  // the struct may hold itself there.
  const Type* numbers_of_field(const DataType* owner, std::size_t field);
  // A struct that may hold a value of its own type, at any depth.
  bool contains_itself(const DataType* t);

  // The mutable type that has this shadow; null: it is no shadow of such.
  const DataType* shadowed(const Type* shadow) const {
    auto found = shadowed_.find(shadow);
    return found == shadowed_.end() ? nullptr : found->second;
  }

  Runtime& runtime() { return runtime_; }
  // For what is asked at each call whose target is found when it runs: names and values of the library, looked up once.
  const Symbol* symbol_of(KnownName name) const { return known_symbols_[static_cast<std::size_t>(name)]; }
  Value value_of(KnownName name);
  // Of records (record_seal.hpp).
  std::uint64_t seal_key() const { return seal_key_; }
  std::int64_t new_record_code() { return ++record_codes_; }

  // Forward halves of derivatives, and derivatives of such: what they give back may hold tapes. Where they are
  // differentiated again they always are, whatever goes in: the other half looks for the tangents on the tapes.
  void note_forward_half(const Specialization* target) { forward_halves_.insert(target); }
  bool is_forward_half(const Specialization* target) const { return forward_halves_.count(target) != 0; }
  // The other halves, and forward derivatives of such.
  void note_reverse_half(const Specialization* target) { reverse_halves_.insert(target); }
  bool is_reverse_half(const Specialization* target) const { return reverse_halves_.count(target) != 0; }
  template <class IsGone>
  void forget_halves(IsGone is_gone) {
    std::erase_if(forward_halves_, is_gone);
    std::erase_if(reverse_halves_, is_gone);
  }

  // A tape's layout with columns for tangents: after its own, for each direction, for each of them the leaves, then the
  // shadow.
  const TapeLayout* with_tangents(const TapeLayout* layout, std::size_t width);

 private:
  const Type* compute_shadow(const Type* t);
  const Type* compute_cotangent(const Type* t);
  bool never_carries(const Type* t);
  // Of a type on the way through what a value may be made of: found; nothing in it; look at its parts.
  enum class Answer : std::uint8_t { yes, no, inside };
  template <class Wanted>
  bool finds(const Type* t, Wanted&& wanted);
  Answer carries_by_itself(const Type* t);
  bool carries(const Type* t);
  bool may_hold_memory(const Type* t);
  bool may_hold_numbers(const Type* t);
  bool reaches(const Type* from, const Type* t);
  bool embeds(const Type* from, const DataType* t);
  const Type* field_shadow(const DataType* owner, const Type* declared);
  const Type* both_parts(const Type* shadow, const Type* cotangent);
  const DataType* mutable_shadow(const DataType* t);
  const std::uint64_t seal_key_;
  std::int64_t record_codes_ = 0;
  Runtime& runtime_;
  const BuiltinTypes& builtin_;
  const DataType* dynamic_ = nullptr;
  std::vector<const Symbol*> known_symbols_;    // by KnownName
  std::vector<const Binding*> known_bindings_;  // likewise; null: not looked up yet
  std::map<std::pair<const TapeLayout*, std::size_t>, std::shared_ptr<TapeLayout>> layouts_;
  std::unordered_map<const Type*, const Type*> shadows_;
  std::unordered_map<const Type*, const Type*> cotangents_;
  std::unordered_map<const Type*, const DataType*> shadowed_;
  std::unordered_map<const Type*, std::vector<Leaf>> leaves_;
  std::unordered_set<const Specialization*> forward_halves_;
  std::unordered_set<const Specialization*> reverse_halves_;
};

// What goes down a value as deep as it is (a list of a million nodes) asks before each step.
inline bool stack_is_low(const Context& ctx) {
  constexpr std::size_t frames = tuning::tangent_stack;
  return static_cast<const char*>(__builtin_frame_address(0)) - frames < ctx.stack_limit;
}

// One table a runtime (tangent types of mutable structs are nominal and must be made once).
TangentTypes& tangent_types(Runtime& runtime);

// Makes zero shadows, one an object: what is shared among the values given to one maker is shared among their shadows.
// Arrays that share memory are one object here.
class ShadowMaker {
 public:
  explicit ShadowMaker(Context& ctx);
  bool shadow(Value v, Value& result);  // `nothing` for what has none; false: error raised
  bool zero(const Type* cotangent, Value& result);
  bool overlaps(const ShadowMaker& other) const;  // the values of both reach some object
  // Derivatives of what is stored into this memory would be lost: a store refuses (has_forbidden_stores).
  void forbid_stores();

 private:
  bool element(Value v, const Type* declared, const Type* stored, Value& result);
  bool array(Value v, Value& result);
  bool arrays_of_numbers(const ArrayObject* source, ArrayObject* made);
  bool fields(Value v, const DataType* type, Value& result);
  bool of_undefined(const Type* shadow, Value& result);
  void keep(const Object* object, Value shadow);

  Context& ctx_;
  Runtime& runtime_;
  TangentTypes& tangents_;
  Rooted made_;
  ObjectNumbers index_;
};
// Of a shadow: `forbid_stores` was called for some of the memory that it lets write.
// `written`: the types of objects that are stored into, sorted, where these are known: arrays of numbers of other types do
// not count.
bool has_forbidden_stores(Runtime& runtime, Value shadow, const std::vector<const Type*>* written = nullptr);

// Zero accumulators for the memory in `v` (identity kept within it); `nothing` when there is none.
bool make_zero_shadow(Context& ctx, Value v, Value& result);
// (shadow, cotangent) of `v` → what the user sees: the number, the array, a tuple, a named tuple of the fields,
// nothing.
bool finish_tangent(Context& ctx, Value v, Value shadow, Value cotangent, Value& result);

// Natives over values: Core.zero_shadows(values::Tuple) keeps identity between the values given at once,
// Core.finish_tangents(values, shadows, cotangents) makes what the user sees.
void define_tangent_natives(Runtime& runtime);

}  // namespace slope::diff
