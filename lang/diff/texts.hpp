// Where the texts, characters, bytes and bits of values go: what a function makes numbers of, what its result is made
// of, what it keeps of them in memory. A number that carries a derivative has lost it in its text; activity.cpp refuses
// to make a number of that again, and asks here about calls that are not inlined.
//
// Masks are those of MemoryEffects. `outside` is what all functions share beside their arguments: files, the environment,
// globals and what these hold. The standard output is not read again.
#pragma once

#include <unordered_map>
#include <vector>

#include "lang/diff/memory.hpp"

namespace slope::diff {

inline constexpr MemoryMask outside = global_memory;

struct TextSummary {
  MemoryMask read = 0;          // a number is made of what is text of them
  MemoryMask result = 0;        // the result is made of them
  MemoryMask kept = 0;          // made into text or bytes that are stored…
  MemoryMask keepers = 0;       // …into memory that these lead to
  MemoryMask read_of_text = 0;  // as `read`, without what comes from numbers that stand beside texts in them
  MemoryMask bits = 0;          // the result is a whole number that is made of the bits of their floats
};

// Texts, symbols, characters, bytes, and what holds such.
bool holds_text(TangentTypes& tangents, const Type* type);
// The same, or its type is not known.
bool may_be_text(TangentTypes& tangents, const Type* type);
bool is_mutable_text(TangentTypes& tangents, const Type* type);
bool is_memory_object(Value value);
// Neither text nor truth: what a reader of texts may give.
bool may_be_read_number(TangentTypes& tangents, const Type* type);
// An operation that makes a number of text or bits, or a text's number: what it is given comes back.
bool makes_float_of_bits(const ir::Inst& inst, TangentTypes& tangents);
bool makes_number_of_text(const ir::Inst& inst, TangentTypes& tangents);
// Integers that are made of integers: what they are made of shows in them. (Lengths, comparisons, counts are not such.)
bool hands_on_integer(const ir::Inst& inst);
// Looks at the bits of a number: the number's own, a hash of it. (That of an object that can change is its identity.)
bool looks_at_bits(const ir::Inst& inst, const ir::Function& function, TangentTypes& tangents);
// `o[…]`, `o.f`: what is stored into it is in `o`.
bool leads_to_memory(ir::Op op);
// What a builtin does outside of the memory that it is given.
struct OutsideEffects {
  bool reads = false;
  bool writes = false;
};
OutsideEffects outside_effects(const ir::Inst& native);

class TextEffects {
 public:
  TextEffects(Runtime& runtime, World world, std::function<MemoryEffects::Code(Specialization&)> code);
  const TextSummary& of(Specialization& target);
  // The callee if what is not known of the operands' types is a text, a number. Null: nothing is known.
  Specialization* with_texts(const ir::Function& function, const ir::Inst& call);
  bool makes_text_of_number(const ir::Function& function, const ir::Inst& call);

 private:
  class Analysis;
  struct Known {
    TextSummary summary;
    MemoryEffects::Code code;  // null: there is none
    std::vector<Specialization*> callers;
    bool is_waiting = false;
  };
  Specialization* with(const Type* unknown, const ir::Function& function, const ir::Inst& call);
  Known& known(Specialization& target, Specialization& caller);
  void wait(Specialization& target, Known& entry);

  Runtime& runtime_;
  TangentTypes& tangents_;
  World world_;
  std::function<MemoryEffects::Code(Specialization&)> code_;
  std::unordered_map<Specialization*, Known> summaries_;
  std::vector<Specialization*> waiting_;  // to analyse: new, or a callee's summary grew
  std::size_t met_ = 0;                   // for the function that is asked of
};

// The parameter of the callee that gets the operand of a call.
std::size_t parameter_of_operand(const Specialization& callee, std::size_t operand);

}  // namespace slope::diff
