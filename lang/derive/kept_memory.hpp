// What a differentiated call stores into memory that was there before it, is put back when it ends, also by an
// exception (docs/derivatives.md). How:
//
//   Stores       what a function may store into, found in its code (MemoryEffects, MemoryScope::all): which arguments
//                lead there, the types of the objects, globals
//   KeptMemory   of one context: copies of the content of those objects, taken before the call. They lie in memory that
//                is kept for the next call. Levels nest, as calls do.
//
// A function that the code only finds when it runs is looked at then: derivative code tells of such calls
// (keep_for_call), and where the function itself runs, not its derivative, Runtime::call_specialized does (CallWatch).
// What derivatives accumulate into is never told.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lang/derive/array_copies.hpp"
#include "lang/diff/memory.hpp"
#include "lang/memory/heap.hpp"
#include "lang/runtime/call_watch.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::derive {

class Derivatives;

struct Stores {
  diff::MemoryMask arguments = 0;  // as MemorySummary::writes
  std::vector<const Type*> types;  // of the objects; sorted
  bool any_type = false;
  bool calls_unknown = false;
  bool resizes = false;  // arrays that carry a derivative
  std::vector<Binding*> assigned;
  std::vector<Value> constants;  // where to begin, besides the arguments
  std::vector<Binding*> globals;
  bool any() const { return arguments != 0 || !assigned.empty(); }
  bool may_hit(const DataType* type) const;
  // Shadows of what it stores into stay as they are: that has no other memory with derivatives in it.
  bool only_numbers(diff::TangentTypes& tangents) const;
};
// What the forward step of a rule may store into memory that was there before it, and what its pullback may read besides
// what itself leads to (rule_memory.cpp).
struct RuleStores {
  Stores stores;
  std::size_t fixed = 0;   // as KeptMemory::keep has it
  bool reads_all = false;  // not known
  std::vector<Value> constants;
  std::vector<Binding*> globals;
};
bool holds_only_numbers(diff::TangentTypes& tangents, const DataType* type);
bool is_reference(Value v);  // an object on the heap
// What generators of random numbers hold is no data: the next call gets other numbers, as without derivatives.
bool is_random_generator(Runtime& runtime, const Type* type);

// The answers for one world.
class StoresOfFunctions {
 public:
  explicit StoresOfFunctions(Derivatives& derivatives) : derivatives_(derivatives) {}
  // Lives as long as the engine: code has its address.
  const Stores& of(Context& ctx, Specialization& target);
  std::vector<Value> names_of(Context& ctx, Specialization& target);
  // Null: nothing. Types of calls: of the step, of the pullback that it gives.
  const RuleStores* of_rule(Context& ctx, const DataType* forward_step, const DataType* pullback);
  bool knows(const Stores* stores) const { return addresses_.contains(stores); }
  bool knows(const RuleStores* stores) const { return rule_addresses_.contains(stores); }
  bool assigns(const void* binding) const { return assigned_.contains(binding); }  // some function does
  void forget();                                                                   // functions may have been freed
  void trace(Tracer& tracer) const;

 private:
  bool is_of_library(const Module* module) const;
  void find_roots(Context& ctx, Specialization& target, Stores& stores);
  void find_reads(Context& ctx, const DataType* pullback, RuleStores& rule);
  void find_library_objects();

  Derivatives& derivatives_;
  // Shared with who asks it: to look at code may bring another world, which makes another one.
  std::shared_ptr<diff::MemoryEffects> effects(Context& ctx);
  std::shared_ptr<diff::MemoryEffects> effects_;
  World world_ = 0;
  std::unordered_map<const Specialization*, const Stores*> known_;
  std::deque<Stores> all_;
  std::unordered_set<const Stores*> addresses_;  // of all_
  std::unordered_set<const void*> assigned_;     // of all_
  std::deque<RuleStores> all_of_rules_;
  std::unordered_set<const RuleStores*> rule_addresses_;  // of all_of_rules_
  std::unordered_map<const Specialization*, diff::MemoryEffects::Globals> names_;
  std::unordered_set<const void*> of_library_;  // objects that the library's globals hold
};

inline bool is_object(const Object* o, DataType::ObjectKind kind) { return o->type->object_kind == kind; }

// Of a set that is kept for the next call, unless it has grown large.
template <class Set>
void empty_set(Set& set) {
  constexpr std::size_t many_buckets = 1 << 12;
  if (set.bucket_count() > many_buckets)
    Set().swap(set);
  else if (!set.empty())
    set.clear();
}

class KeptMemory final : public CallWatch {
 public:
  explicit KeptMemory(Context& ctx);
  ~KeptMemory() override;
  KeptMemory(const KeptMemory&) = delete;

  // A level; what to end it by. `within`: in a derivative that is differentiated again, whose reverse sweep may still
  // want what was made meanwhile. What is kept after the arguments is then left to the level around it.
  std::int64_t open(bool within);
  bool is_open() const { return depth_ != 0; }
  // The level is that of a part of a gradient (segments.hpp), which is run as it is and again: tangents that forward mode
  // stores into are of its state. A gradient's own level does not keep them, since their caller goes on with them.
  void keep_tangents(std::int64_t level) { levels_[static_cast<std::size_t>(level) - 1].keeps_tangents = true; }
  bool keeps_tangents() const { return is_open() && levels_[depth_ - 1].keeps_tangents; }
  static std::size_t depth(const Context& ctx) {
    return ctx.kept_memory ? static_cast<const KeptMemory&>(*ctx.kept_memory).depth_ : 0;
  }
  static bool is_open(const Context& ctx) {
    return ctx.kept_memory && static_cast<const KeptMemory&>(*ctx.kept_memory).is_open();
  }
  // Keeps what a call that stores so may change. `arguments`: callee first; a vararg's are spelled out, `fixed` come
  // before it.
  void keep(const Stores& stores, const Value* arguments, std::size_t count, std::size_t fixed);
  // The same, of a derivative in forward mode: tangents among it (keeps_tangents).
  void keep_of_tangent(const Stores& stores, const Value* arguments, std::size_t count, std::size_t fixed);
  void keep_object(Object* object);
  // Of the same: copies of what the call may change, for exchange_later; nothing when that is nothing. `active`: bits of
  // the arguments whose memory with derivatives in it the call's reverse step puts back.
  bool keep_before(const Stores& stores, const Value* arguments, std::size_t count, std::size_t fixed,
                   std::int64_t active, Value& copies);
  // A level that sees what a call may change, also by functions that are found meanwhile, and puts nothing back: when it
  // ends, also by an exception, what was kept goes to the level around it.
  // With numbers_from_before in `active`: of numbers, only what the arguments lead to before the call.
  std::int64_t open_watch(const Value* arguments, std::size_t count, std::int64_t active);
  static constexpr std::int64_t numbers_from_before = std::int64_t{1} << 62;
  // Ends it: copies as keep_before gives them.
  bool close_watch(std::int64_t level, Value& copies);
  // Of all that the others of such arguments lead to: of their tangents, when a derivative of derivative code runs.
  bool keep_tangents_before(const Value* tangents, std::size_t count, std::int64_t active, Value& copies);
  // Whether something that carries a derivative may have changed since. A store of an equal number changes the
  // derivative alone, so what was kept counts, whether its content differs or not.
  bool changed_numbers(std::int64_t level);
  // An exception leaves a derivative that is differentiated again: as put_back. Whether numbers had been changed is asked
  // where the exception is caught, if it is.
  bool put_back_on_exception(std::int64_t level);
  bool has_lost_numbers(std::int64_t level) const { return level >= 1 && lost_ >= level; }
  void forget_lost_numbers() { lost_ = 0; }  // no exception is under way
  // Ends the level, and all that were opened since. False: no memory for what has become shorter; OutOfMemoryError.
  bool put_back(std::int64_t level);
  // The same, but leaves memory as it is: what was kept of what has changed, as a value for put_back_later; nothing when
  // that is nothing. What the call made, gave back as `value` and is not of its arguments stays its caller's.
  // `also_left`: what is left to the level around it is in the result as well.
  bool take_away(std::int64_t level, Value value, Value arguments, bool also_left, Value& result);
  // Of what can be reached from the roots: copies of what the sweeps of a derivative do not put back in between (objects,
  // small arrays without derivatives), for exchange_later, and a number that differs when other memory does.
  bool keep_seen(const std::vector<Value>& roots, Value& copies, std::uint64_t& others);
  // After a rule's forward step, `call` as keep has it: copies of what it may have stored and its pullback may read, for
  // give_to_pullback. Nothing when there is nothing.
  bool keep_for_pullback(const RuleStores& rule, Value pullback, const Value* call, std::size_t count, Value& result);
  // Before the pullback: its memory is as its own call left it. What was there, for take_from_pullback.
  bool give_to_pullback(Value kept, Value& found);
  // After it. False, with an error, or without one: it has stored into what may not be its own (`shared`).
  bool take_from_pullback(Value kept, Value found, const DataType*& shared);
  // Whether that is what the call left: nothing was stored into it since.
  bool is_as_kept(Value kept);
  bool holds_numbers_of(Value kept);  // the same, of what carries a derivative
  // As put_back; what was there until then, as a value for put_back_later.
  bool exchange(std::int64_t level, Value& result);
  // False, with an error: it is no such value, which a program may have made by hand.
  bool put_back_later(Value taken);
  // Of what was taken: what the call left as it was, with what it holds now, as a value for put_back_later.
  bool keep_unchanged(Value taken, Value& result);
  // Whether what was taken is of objects that hold only numbers, whose length is the same now.
  bool took_only_numbers(Value taken);
  // A level that an exception puts `taken` back by. What is kept meanwhile goes to the level around it when it is closed.
  bool open_for(Value taken, std::int64_t& level);
  void close(std::int64_t level) { cut_to(static_cast<std::size_t>(std::max<std::int64_t>(level, 1)) - 1); }
  // The same; what was there until then, as a value for put_back_later.
  bool exchange_later(Value taken, Value& result);

  bool before_call(Specialization& target, Value callee, const Value* args, std::size_t count) override;
  void abandon() override;

 private:
  struct Entry {
    enum class Kind : std::uint8_t { array, fields, cell, global } kind;
    void* what;          // Object*, Binding*
    std::size_t offset;  // in bits_, or in references_
    std::size_t bytes;
    std::int64_t length;  // of arrays
    bool has_references;
    bool later = false;  // kept after the arguments
    bool of_tangent = false;
  };
  struct LookedThrough {  // what a call of a function that stores so is given
    const void* root;
    const Stores* stores;
    bool operator==(const LookedThrough&) const = default;
  };
  struct HashOfLookedThrough {
    std::size_t operator()(const LookedThrough& one) const {
      return (reinterpret_cast<std::uintptr_t>(one.root) * 0x9e3779b97f4a7c15u) ^
             reinterpret_cast<std::uintptr_t>(one.stores);
    }
  };
  struct Level {
    std::size_t entries = 0;  // where it begins
    std::size_t bits = 0;
    std::size_t references = 0;
    std::unordered_set<const void*> kept;
    std::unordered_set<LookedThrough, HashOfLookedThrough> done;
    CallWatch* outer_watch = nullptr;
    bool within = false;
    bool keeps_tangents = false;
    bool begun = false;  // the arguments are kept
    bool watches = false;
    bool looks = false;                   // notes what there is, without its content, which is copied in the end
    std::vector<Value> put_back_by_call;  // of a watch: whose memory the reverse step of the call puts back
    bool knows_numbers = false;
    std::unordered_set<const Object*> numbers;  // what its arguments led to before the call
  };
  bool put_back(std::int64_t level, bool also_left);
  std::size_t first_not_watching(std::int64_t level) const;
  void leave_to_outer(const Level& level);
  using Visit = std::function<void(Object*, bool)>;  // (object, whether it is an array that leads nowhere)
  void reach(Value root, const Visit& visit);
  void walk(const Stores& stores, Value root);
  bool leads_to_the_same(const DataType* type);
  bool has(const void* what) const;  // at this level
  void keep_global(Binding* binding);
  void copy(Entry entry, const void* content);
  void add(const Entry& entry);
  bool is_taken(Value what, Value copy) const;
  bool expect_taken(Value taken);
  static Entry entry_of(const Value* pair, const BuiltinTypes& builtin);
  static Entry as_it_is(Entry entry);  // an array's length is the present one
  Object* copy_of(const Entry& entry, const char* content);
  // visit(offset, content, bytes) over a copy's content, which may lie in parts.
  using VisitPart = std::function<bool(std::size_t, const char*, std::size_t)>;
  static bool each_part(const Entry& entry, const Object* copy, const VisitPart& visit);
  static std::vector<char> content_of(const Entry& entry, const Object* copy);
  bool restore(const Entry& entry, const Object* copy);
  bool make_room(const Entry& entry);
  // The level is closed whatever happens: what it notes has no content, and is never put back.
  class Look {
   public:
    explicit Look(KeptMemory& memory);
    ~Look() { memory_.cut_to(level - 1); }
    Look(const Look&) = delete;
    std::size_t level = 0;

   private:
    KeptMemory& memory_;
  };
  ArrayObject* make_pairs(std::size_t count, Rooted& roots);
  void set_itself(ArrayObject* pairs, std::size_t i, const Entry& entry);
  static bool is_itself(const Value* pair) {
    return pair[0].type == pair[1].type && pair[0].pointer == pair[1].pointer;
  }
  bool set_pair(ArrayObject* pairs, std::size_t i, const Entry& entry, const char* content);
  bool restore(const Entry& entry, const char* content);
  bool is_unchanged(const Entry& entry) const;
  static const char* present_content(const Entry& entry);
  // What was kept since the level was opened, or is there at `present`, in pairs; nothing is left as it is.
  enum class Copies : std::uint8_t { all, before, present };  // the last two: what is unchanged stands for itself
  bool copy_entries(std::size_t depth, Copies copies, bool also_left, Value& result,
                    const std::unordered_set<const Object*>* without = nullptr);
  Level& top() { return levels_[depth_ - 1]; }
  void cut_to(std::size_t depth);
  std::unordered_set<const Object*> reached_from(Value root);
  bool holds_content_of(const Value* pair) const;
  bool add_to_found(const Value* kept, Value* found, bool& done);
  bool leaves(const Level& level, const Entry& entry) const { return level.within && entry.later; }

  Context& ctx_;
  Runtime& runtime_;
  std::vector<Level> levels_;  // the first depth_ are open, the others wait
  std::size_t depth_ = 0;
  std::int64_t lost_ = 0;  // the level that put_back_on_exception ended last and where numbers had changed; 0: none
  std::vector<Entry> entries_;
  std::vector<char> bits_;
  std::vector<char> references_;  // content that the collector looks at
  std::vector<Object*> pending_;
  ArrayCopies array_copies_;
  std::unordered_set<const Object*> seen_;
  std::unordered_map<const DataType*, bool> leads_to_the_same_;
  bool keeps_of_tangent_ = false;
  int root_key_ = 0;
};

// The call of a gradient function between keeping and putting back: (parameters as its own) → what it gives.
// `catching`: also when an exception ends it. In a derivative that is differentiated again, what is around it does that.
std::unique_ptr<ir::Function> call_putting_back(Runtime& runtime, const Stores& stores,
                                                const struct GradientCode& gradient, bool catching);

// Whether the reverse sweep may run a checkpointed call again (natives/checkpoint.cpp).
bool may_recompute(Context& ctx, Specialization& target, bool again);

KeptMemory& kept_memory_of(Context& ctx);
void define_kept_memory_natives(Runtime& runtime);
void define_rule_memory_natives(Runtime& runtime);

}  // namespace slope::derive
