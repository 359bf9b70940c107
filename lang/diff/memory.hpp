// What a function does to memory that its caller can see: through which parameters it may store, and what its result
// may share memory with. This decides which arguments of a call need their real shadows, whether two arguments may be
// the same array, and whether a global is written.
//
// Masks: bit i is parameter i of the function (the callee is parameter 0, a vararg one parameter; bit 62 represents all
// further ones). `global_memory` is what constants and globals can reach. The analysis runs on ordinary typed code,
// over calls, until nothing changes. An answer is valid for one world.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "lang/diff/diff.hpp"
#include "lang/diff/rules.hpp"
#include "lang/diff/tangent.hpp"

namespace slope::diff {

using MemoryMask = std::uint64_t;
inline constexpr MemoryMask global_memory = MemoryMask{1} << 63;
inline MemoryMask parameter_mask(std::size_t i) { return MemoryMask{1} << (i < 62 ? i : 62); }

// Which memory an analysis follows: what can carry a derivative, or all.
enum class MemoryScope : std::uint8_t { differentiable, all };

struct MemorySummary {
  MemoryMask writes = 0;   // stored into by code that is known
  MemoryMask unknown = 0;  // given to calls whose target is found at run time
  MemoryMask result = 0;   // what the result may alias
  MemoryMask stored = 0;   // what is kept in memory that outlives the call, or in the result's
  MemoryMask carries = 0;  // of `writes`: what is stored there may carry a derivative
  MemoryMask reads = 0;    // whose content is looked at; of an array its elements, not its length

  // In MemoryScope::all, what `writes` consists of: types of the objects that are stored into, globals that are assigned.
  std::vector<const Type*> written_types;  // sorted
  bool writes_any_type = false;
  std::vector<Binding*> assigned;  // sorted
  bool calls_unknown = false;      // functions that are found when it runs
  bool resizes = false;            // an array that carries a derivative and was there before changes its length
};

// What `overwritten` says of a function with a stateful rule that stores what its code stores (`overwrites` gives nothing).
inline constexpr MemoryMask as_its_code_says = ~MemoryMask{0};

class TextEffects;

class MemoryEffects {
 public:
  // `code`: typed code of a specialisation, null when there is none. `overwritten`: which operands a function with a
  // stateful rule overwrites, as the rule declares.
  using Code = std::shared_ptr<const ir::Function>;
  MemoryEffects(Runtime& runtime, World world, std::function<Code(Specialization&)> code,
                std::function<MemoryMask(const DataType* call_types)> overwritten,
                MemoryScope scope = MemoryScope::differentiable);
  MemorySummary of(Specialization& target);
  MemorySummary of_target(Specialization& target);  // the same, or what a rule for it says
  MemorySummary of(const ir::Function& function);
  MemorySummary of_call(const ir::Inst& invoke);  // in terms of its operands: a vararg's bits are all its operands'
  // Constants and non-constant globals with memory that the function, or what it calls, looks at.
  struct Globals {
    std::vector<Value> constants;
    std::vector<Binding*> bindings;
    bool empty() const { return constants.empty() && bindings.empty(); }
  };
  Globals globals(const ir::Function& function);
  TextEffects& texts();  // of the same code and world (texts.hpp)
  ~MemoryEffects();

 private:
  struct Known {
    MemorySummary summary;
    Code code;                                 // kept: the specialisation may get another
    bool fixed = false;                        // nothing to find: a rule says so, or there is no code
    const Specialization* asked_by = nullptr;  // whose call led here first
    std::vector<Specialization*> callers;      // whose summaries depend on this one
    bool is_waiting = false;                   // among those to analyse
  };
  bool is_growing(const Specialization& target) const;
  Known& known(Specialization& target);
  class Analysis;
  MemorySummary analyse(const ir::Function& function);
  MemorySummary read_call(const ir::Inst& invoke);
  MemorySummary of_rule(RuleKind rule, const DataType* call_types);
  void settle();
  void wait(Specialization& target, Known& entry);
  bool is_promised(RuleKind rule, const DataType* call_types) const;
  bool follows_all() const { return scope_ == MemoryScope::all; }
  bool holds_memory(const Type* t);
  bool holds_tape(const Type* t);
  bool holds_memory(Value v);
  void note_written(MemorySummary& summary, MemoryMask memory, const Type* type) const;
  void collect(const ir::Function& function, Globals& found, std::vector<const ir::Function*>& seen,
               std::vector<Code>& kept, std::vector<const Specialization*>& path);

  Runtime& runtime_;
  TangentTypes& tangents_;
  World world_;
  std::function<Code(Specialization&)> code_;
  std::function<MemoryMask(const DataType*)> overwritten_;
  MemoryScope scope_;
  std::unordered_map<const Type*, bool> holds_;  // in MemoryScope::all
  std::unordered_map<const Type*, bool> holds_tape_;
  std::unordered_map<Specialization*, Known> summaries_;
  std::vector<Specialization*> waiting_;  // to analyse: new, or a callee's summary grew
  Specialization* analysed_ = nullptr;
  std::unique_ptr<TextEffects> texts_;
};

}  // namespace slope::diff
