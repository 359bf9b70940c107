// Derivatives that were made, by kind, primal, active arguments and number of directions. A derivative is an ordinary
// CodeInstance with edges: it ends when something that it was made from does, and is made anew when it is asked for
// again. Kept code of an ended world may be freed (lang/pipeline/release.cpp).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lang/derive/compiler.hpp"
#include "lang/diff/diff.hpp"
#include "lang/ir/ir.hpp"

namespace slope::derive {

struct GoneCode;

// The gradient function of a specialisation (diff.hpp), as a specialisation of its own: (#self#, callee, args…,
// shadows…, seed) → Tuple{value, cotangents}.
struct GradientCode {
  Specialization* target = nullptr;
  Value callee;
  std::vector<char> active;  // by parameter of the primal
};
// The two halves of a pullback, and the forward derivative in several directions at once.
using Halves = diff::Environment::Halves;
using Tangent = diff::Environment::Tangent;

// `stacked`: halves on a stack. They are counted as pullbacks.
enum class DerivativeKind : std::uint8_t { gradient, pullback, forward, stacked };
inline constexpr std::size_t derivative_kinds = 3;
inline DerivativeKind counted_as(DerivativeKind kind) {
  return kind == DerivativeKind::stacked ? DerivativeKind::pullback : kind;
}

class DerivativeCache {
 public:
  explicit DerivativeCache(Derivatives& derivatives) : derivatives_(derivatives) {}

  // What was made, or is made now. Null: with `refusal`, or an error in ctx; of gradients also while it is being made.
  // Halves and forward derivatives that are being made are found, for recursion: only their types are promised then.
  const GradientCode* gradient(Context& ctx, Specialization& primal, const std::vector<char>& active,
                               diff::Refusal& refusal);
  struct FoundHalves {
    const Halves* halves = nullptr;
    bool ready = false;
  };
  FoundHalves halves(Context& ctx, Specialization& primal, const std::vector<char>& active, diff::Refusal& refusal);
  FoundHalves stacked_halves(Context& ctx, Specialization& primal, const std::vector<char>& active,
                             diff::Refusal& refusal);
  // Whether a function has halves on a stack: it calls itself, and catches nothing.
  bool calls_itself(Context& ctx, Specialization& primal);
  const Tangent* tangent(Context& ctx, Specialization& primal, const std::vector<char>& active, std::size_t width,
                         diff::Refusal& refusal);

  // Several directions at once that were refused in the world of ctx.
  bool is_refused(Context& ctx, const Specialization& primal, const std::vector<char>& active, std::size_t width,
                  diff::Refusal& refusal);
  void note_refused(Context& ctx, const Specialization& primal, const std::vector<char>& active, std::size_t width,
                    const diff::Refusal& refusal);

  // The code of a derivative before it was optimised, which derivatives may be taken of; null: `target` is none.
  const ir::Function* source_of(const Specialization& target) const;
  void keep_source(const Specialization& target, std::unique_ptr<ir::Function> source) {
    sources_[&target] = std::move(source);
  }
  // Whether it is a program in forward mode: its tangents are data as others are.
  bool is_forward_mode(const Specialization& target) const { return forward_mode_.contains(&target); }
  bool is_reverse_half(const Specialization& target) const;
  // What the reverse sweep of a gradient uses of the forward sweep; null: nothing.
  const std::vector<diff::SavedValue>* saved_of(const Specialization& gradient) const;
  // The same as text, a line each: where it is kept, what it is, why there.
  std::string saved_text(const Specialization& gradient) const;

  // Whether an exception may leave a level of kept memory open in the code of a derivative: then the native is to call it,
  // which ends what is left (natives/call.cpp).
  bool may_leave_level(const Specialization& target);

  std::uint64_t made() const;  // transforms that ran
  // Of gradients, pullbacks and forward derivatives in turn: how often the transform ran, kept code was used, there was
  // none, a definition had ended it; bytes of what is valid now, nanoseconds.
  void counts(Context& ctx, std::vector<std::int64_t>& numbers) const;
  void trace(Tracer& tracer) const;
  void forget(const GoneCode& gone);
  // Of all derivatives of `primal`.
  void each_part(const Specialization& primal, const std::function<void(const Synthetic& part)>& look) const;
  void reach(const Specialization& target, Reached& reached) const;
  void reach_refused(Reached& reached) const;

 private:
  struct Key {
    DerivativeKind kind;
    const Specialization* primal;
    std::vector<char> active;
    std::size_t width;  // 1 but of forward derivatives
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    std::vector<Synthetic*> parts;  // of a pullback its forward and its reverse half
    bool ready = false;
    GradientCode gradient;  // of these the one of its kind
    Halves halves;
    Tangent tangent;
  };
  // What is differentiated.
  struct Subject {
    Specialization& target;
    const ir::Function* code = nullptr;
    std::unique_ptr<ir::Function> changed;  // for one transform
    std::unique_ptr<ir::Function> by_rule;  // the forward derivative itself, which a rule says
    std::vector<Edge> edges;                // what the rule was built by
    std::vector<const Type*> types;         // of the parameters
    const Type* result_type = nullptr;
  };
  struct Counts {
    std::uint64_t calls = 0;        // of the transform
    std::uint64_t hits = 0;         // kept code was used
    std::uint64_t misses = 0;       // there was none for this world
    std::uint64_t invalidated = 0;  // of the misses: a definition had ended the code
    std::uint64_t nanoseconds = 0;  // making it, with what it needed of others
  };
  class Making;  // of one miss, while it lives

  Entry* find(Context& ctx, const Key& key, Specialization& target, diff::Refusal& refusal);
  Entry* build(Context& ctx, const Key& key, Specialization& target, diff::Refusal& refusal);
  bool find_subject(Context& ctx, const Key& key, Subject& subject, diff::Refusal& refusal);
  bool overwrites_arguments(Context& ctx, Specialization& target);
  Entry declare(const Key& key, const Subject& subject, const std::vector<char>& asked);
  void leave_growing_calls(Context& ctx, Subject& subject) const;
  const Specialization* called_within(Context& ctx, const Specialization* target) const;
  bool differentiate(Context& ctx, const Key& key, Subject& subject, const std::vector<char>& asked,
                     const std::shared_ptr<TapeLayout>& stack, diff::Derivative& derivative, diff::Refusal& refusal);
  bool complete(Context& ctx, const Key& key, const Subject& subject, diff::Derivative& derivative, Entry& entry,
                diff::Refusal& refusal);
  bool put_memory_back(Context& ctx, const Subject& subject, const std::vector<Edge>& edges, Entry& entry,
                       diff::Refusal& refusal);
  infer::InferResult infer_part(Context& ctx, ir::Function& function, const Specialization* self);
  bool holds(Context& ctx, const Entry& entry) const;
  std::size_t bytes(Context& ctx, DerivativeKind kind) const;

  Derivatives& derivatives_;
  std::map<Key, Entry> entries_;
  std::map<Key, std::pair<World, diff::Refusal>> refused_;
  std::vector<Key> gradients_in_work_;
  std::vector<const Specialization*> in_work_;  // primals whose derivatives are being made, outermost first
  std::map<const Specialization*, std::shared_ptr<ir::Function>> sources_;
  std::map<const Specialization*, std::vector<diff::SavedValue>> saved_;  // by gradient function
  std::unordered_set<const Specialization*> forward_mode_;
  std::unordered_set<const Specialization*> guarded_;  // gradients that put memory back, also after an exception
  std::unordered_map<const Specialization*, std::pair<const CodeInstance*, bool>> leave_level_;
  std::array<Counts, derivative_kinds> counts_;
  std::uint64_t made_ = 0;
};

// Whether it opens a level of kept memory, and gives its number.
bool opens_level(const ir::Inst& inst);

// `frule(tangents, f, args...)` as a forward derivative (forward_rule.cpp). Null: there is no such rule, or an error is
// raised in ctx. `edges`: what it rests on besides.
std::unique_ptr<ir::Function> forward_rule_call(Derivatives& derivatives, Context& ctx, Specialization& target,
                                                const std::vector<char>& active, std::size_t width,
                                                std::vector<Edge>& edges);

}  // namespace slope::derive
