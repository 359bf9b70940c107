// What the natives of `gradient`, `pullback` and `jvp` share: a call that is differentiated at run time.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "lang/derive/derivatives.hpp"
#include "lang/diff/tangent.hpp"
#include "lang/runtime/context_tapes.hpp"

namespace slope::derive {

// The elements of a tuple, appended to what the collector sees: taking one out may allocate, and so collect.
void append_elements(Context& ctx, Value tuple, Rooted& to);
bool expect_tuple(Context& ctx, const char* where, Value v);
// The types in a tuple of types, appended. False: error raised.
bool append_argument_types(Context& ctx, Value tuple, std::vector<const Type*>& types);
// The method that a call of `f` with arguments of these types (a tuple of types) reaches, inferred with all its
// callees; null: error raised.
Specialization* inferred_call_of(Context& ctx, Value f, Value given_types);

// The error of forward mode, whose directions are told for each argument. Returns false.
bool raise_written_twice(Context& ctx, const Specialization& target);

void define_gradient_natives(Runtime& runtime);
void define_forward_natives(Runtime& runtime);
void define_checkpoint_natives(Runtime& runtime);
void define_segment_natives(Runtime& runtime);
void define_caught_call_natives(Runtime& runtime);
void define_built_rule_natives(Runtime& runtime);
void define_place_natives(Runtime& runtime);

// The method it goes to, its arguments as the method's IR has them, their shadows.
struct DerivedCall {
  explicit DerivedCall(Context& context) : ctx(context), values(context.runtime->heap) {}

  bool resolve(Value f, Value xs_tuple);  // `f` may be a segment (segments.hpp)
  // Memory that can be reached in more than one way. The same array given as two arguments is two arguments, each with
  // a shadow of its own, as long as the function stores nothing into it. When it does, what is written through one is
  // read through the other: then all that reach it are active and share one shadow, which is what each is told.
  bool find_shared_memory();
  // When the target is the gradient of a function (Gradients): what that function is for these arguments. The gradient
  // stores into none of its arguments for good that the function does not, although its code does not show that. Null:
  // another function, or an error.
  Specialization* within_gradient();
  // One shadow an argument, nothing for those without.
  bool make_shadows(const std::vector<char>& active);
  // Cotangents (one an argument) → what the user sees, as a tuple.
  bool finish(Value cotangents, Value& result);
  std::vector<Value> shadow_arguments(const std::vector<char>& active) const;

  Context& ctx;
  Rooted values;  // keeps everything below alive
  std::vector<Value> xs;
  Specialization* target = nullptr;
  std::vector<Value> arguments;
  std::vector<Value> shadows;
  std::vector<char> asked;
  bool fits(const Specialization& synthetic) const;
  bool shared = false;            // one shadow for what several arguments reach
  bool stores_forbidden = false;  // would be shared, if it is found to be written
};

// A cotangent or a tangent as a user writes it, split: numbers into the seed, what belongs to memory into the value's
// shadow. The value itself tells what lies where only its type does not (a field without a type, a union); one that is
// not there any more (a pullback's) is undefined, then the shadow alone does.
class TangentSeeder {
 public:
  // Cotangents of one memory that is held twice add up. Of a direction it is the memory's, however often it is told.
  enum class Kind : std::uint8_t { cotangent, direction };
  TangentSeeder(Context& ctx, Kind kind);
  bool seed(const Type* t, Value v, Value given, Value shadow, Value& seed);

 private:
  bool dynamic(const Type* t, Value v, Value given, Value shadow, Value& seed);
  bool array(const DataType* t, Value v, Value given, Value shadow);
  bool elements(const DataType* t, Value v, Value given, Value shadow);
  bool cell(Value v, Value given, Value shadow);
  bool fields(const DataType* t, Value v, Value given, Value shadow, Value& seed);
  bool place(const Type* declared, Value v, Value given, Value held, const Type* stored, Value& made);
  bool is_told(const void* memory, Value given, bool& known);
  bool call_base(const char* name, std::initializer_list<Value> arguments, Value& result);
  std::string what() const { return kind_ == Kind::direction ? "direction" : "cotangent"; }

  Context& ctx_;
  Runtime& runtime_;
  diff::TangentTypes& tangents_;
  Kind kind_;
  Rooted roots_;
  std::unordered_map<const void*, Value> told_;  // by memory of shadows
  Rooted told_roots_;
};

// What a native gives, whatever it is given.
inline const Type* gives_nothing(TypeTable& types, std::span<const Type* const>) { return types.builtin().nothing; }
inline const Type* gives_bool(TypeTable& types, std::span<const Type* const>) { return types.builtin().boolean; }
inline const Type* gives_int(TypeTable& types, std::span<const Type* const>) { return types.builtin().int64; }
inline const Type* gives_any(TypeTable& types, std::span<const Type* const>) { return types.builtin().any; }

}  // namespace slope::derive
