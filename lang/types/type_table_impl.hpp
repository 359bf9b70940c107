// The inside of TypeTable, shared by type_table*.cpp and builtin_types.cpp.
//
// Every type stays where it is until nobody can reach it (free_types.cpp) and is found again through an
// open-addressing set keyed by its parts. Union_alls are keyed by their body with the variable replaced by its de Bruijn position, so that
// the names of variables do not matter.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lang/support/memory_count.hpp"
#include "lang/types/object.hpp"
#include "lang/types/symbol.hpp"
#include "lang/types/type.hpp"
#include "lang/types/type_memory.hpp"

namespace slope {

inline std::uint64_t mix_hash(std::uint64_t h, std::uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdull;
  return h ^ (h >> 32);
}

// Open addressing over pointers; the caller gives hash and equality.
template <class T>
class HashedSet {
 public:
  explicit HashedSet(std::size_t first_slots = 256) : first_slots_(first_slots) {}  // a power of two
  template <class Equal>
  T* find(std::uint64_t hash, const Equal& equal) const {
    if (slots_.empty()) return nullptr;
    for (std::size_t i = hash & mask_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (!slot.item) return nullptr;
      if (slot.hash == hash && equal(slot.item)) return slot.item;
    }
  }
  void insert(std::uint64_t hash, T* item) {
    if ((count_ + 1) * 4 > slots_.size() * 3) grow();
    place(hash, item);
    ++count_;
  }
  template <class Gone>
  void erase_if(const Gone& gone) {
    std::vector<Slot> kept;
    bool some = false;
    for (const Slot& slot : slots_) some |= slot.item && gone(slot.item);
    if (!some) return;
    for (const Slot& slot : slots_)
      if (slot.item && !gone(slot.item)) kept.push_back(slot);
    std::fill(slots_.begin(), slots_.end(), Slot{});
    for (const Slot& slot : kept) place(slot.hash, slot.item);
    count_ = kept.size();
  }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    T* item = nullptr;
  };
  void place(std::uint64_t hash, T* item) {
    std::size_t i = hash & mask_;
    while (slots_[i].item) i = (i + 1) & mask_;
    slots_[i] = {hash, item};
  }
  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? first_slots_ : old.size() * 2, Slot{});
    mask_ = slots_.size() - 1;
    for (const Slot& slot : old)
      if (slot.item) place(slot.hash, slot.item);
  }
  std::size_t first_slots_;
  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
  std::size_t count_ = 0;
};

// The parts of a type that a walk has been to. Types share their parts, so that one of 60 levels may be a tree of 2^60:
// a walk whose answer does not depend on the way leaves out where it was. Short walks remember nothing.
class WalkedParts {
 public:
  bool again(const Type* t) { return ++steps_ > remembers_after && !walked_.insert(t).second; }

 private:
  static constexpr std::size_t remembers_after = 64;
  std::size_t steps_ = 0;
  std::unordered_set<const Type*> walked_;
};

// No other type is a subtype of it, but Union{}.
inline bool contains_only_itself(const DataType* d) { return d->is_concrete && !d->is_type_of_type && !d->is_kind; }

bool occurs(const TypeVar* var, const Type* in);  // free in it
// Does it stand in a place where only its very value fits: a parameter of something else than a tuple, a bound?
bool occurs_invariantly(const TypeVar* var, const Type* in);

// Elements of a tuple type; more is an error, not gigabytes of parameters.
inline constexpr std::size_t most_tuple_elements = std::size_t{1} << 20;
// Types within each other. Walks over them recurse, on a larger stack where the thread's is short (walk.hpp).
inline constexpr std::size_t most_type_levels = 10000;
// Size of an immutable that lies in arrays and in other objects; larger ones are held by reference.
inline constexpr std::uint32_t most_inline_bytes = 1 << 16;
// Immutables within each other that lie in one piece of memory; the next one around them holds a reference. What copies,
// compares and compiles them recurses over their fields.
inline constexpr std::uint32_t most_inline_levels = 64;

struct TypeTable::Impl {
  Impl(TypeTable& owner, SymbolTable& symbol_table, MemoryCount* memory_count)
      : table(owner), symbols(symbol_table), memory(memory_count) {}
  ~Impl();

  TypeTable& table;
  SymbolTable& symbols;
  MemoryCount* memory;  // may be null
  static constexpr std::size_t table_entry = 32;
  void count(std::size_t bytes) {
    if (memory) memory->add(bytes + table_entry);
  }
  BuiltinTypes builtin{};

  TypeMemory types_memory;
  std::vector<Type*> made;  // in order of their ids
  std::vector<TypeName*> names;
  std::size_t names_made = 0;  // of which some are gone
  // Names of closures whose types are gone, by what stands before their number: a symbol is never freed.
  std::unordered_map<const Symbol*, std::vector<const Symbol*>> spare_closure_names;
  std::size_t closures_named = 0;
  const Symbol* closure_symbol(const Symbol* stem);
  void spare_closure_symbol(const Symbol* name) noexcept;
  Type bottom_type{TypeKind::bottom};
  template <class T>
  T* make_type(TypeKind kind) {
    made.reserve(made.size() == made.capacity() ? 2 * made.size() + 64 : 0);
    count(sizeof(T));
    T* const t = new (types_memory.allocate(sizeof(T))) T;
    t->kind = kind;
    t->id = next_id++;
    made.push_back(t);
    return t;
  }
  // Those for which `is_dead` holds and that no other refers to.
  void free_types(const std::function<bool(const Type*)>& is_dead,
                  const std::function<bool(const TypeName*)>& is_dead_name);
  void destroy(Type* t);
  void destroy(TypeName* name);
  std::uint32_t next_id = 1;

  HashedSet<DataType> data_set{8192};  // the standard library has some 4000
  HashedSet<UnionType> union_set;
  HashedSet<UnionAllType> union_all_set{2048};
  HashedSet<VarargType> vararg_set;
  HashedSet<ValueType> value_set;

  // Parameter lists; freed with their types.
  std::span<const Type* const> keep(std::span<const Type* const> list);

  // Data types whose supertype or fields wait for the definition of a TypeName, or were cut off by `layout_depth`.
  std::vector<DataType*> pending;
  // Whose completion an allocation that failed has ended: they are completed before any other type is asked for. Has
  // room for all that are being completed.
  std::vector<DataType*> unfinished;
  std::size_t completing = 0;
  std::vector<const DataType*> laying_out;
  std::unordered_map<const DataType*, std::uint32_t> inline_levels;  // of aggregates that have aggregates in them
  int layout_depth = 0;
  std::size_t layouts = 0;  // begun since the outermost
  // Whose own layout was put off while another's needed it, so that they are stored by reference everywhere.
  std::unordered_set<const DataType*> put_off;
  bool too_deep = false;        // a type of more than most_type_levels was made; whoever made it reports it
  bool tuple_too_long = false;  // a tuple of more elements than tuning::tuple_elements was to be made

  // Which of two signatures is more specific was asked before, mostly: inference compares the methods of a function
  // for each call whose types are not exact. The last answer for each hash.
  struct Order {
    const Type* a = nullptr;
    const Type* b = nullptr;
    bool more = false;
  };
  std::vector<Order> orders;
  std::size_t orders_missed = 0;  // since the table has its size

  std::mutex trace_mutex;

  // Values as type parameters that are more than a word live in malloc'ed boxes of this table.
  std::vector<void*> immortal_boxes;
  Value make_immortal(Value v);

  DataType* find_or_make(TypeName* name, std::span<const Type* const> params);
  void complete(DataType* type);          // supertype and layout, when its name is defined
  void complete_or_note(DataType* type);  // the same; `unfinished` has it when that throws
  void complete_unfinished();
  bool lay_out(DataType* type);  // false: something it needs is not defined yet
  bool lay_out_part(const DataType* type);
  bool puts_off_layouts() const;
  bool list_fields(DataType* type, std::vector<Field>& fields, bool& concrete);  // likewise
  void name_defined(TypeName* name);
  void retry_pending();
  const Type* substitute(const Type* t, std::span<const TypeVar* const> from, std::span<const Type* const> to);
  const Type* union_all(const TypeVar* var, const Type* body);
  const Type* value(const DataType* type, Value v);
  const Type* apply_wrapper(const Type* wrapper, std::span<const Type* const> params, std::string* error);
  void fill_builtin();  // builtin_types.cpp
  void fill_exceptions();
};

}  // namespace slope
