// The inside of Runtime, shared by runtime*.cpp, dispatch.cpp and method*.cpp.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lang/runtime/call_cache.hpp"
#include "lang/runtime/call_text.hpp"
#include "lang/runtime/context_tapes.hpp"
#include "lang/runtime/library_index.hpp"
#include "lang/runtime/runtime.hpp"
#include "lang/support/tuning.hpp"

namespace slope {

// An answer of a method table, for exact call types.
struct CachedLookup {
  Lookup lookup;
  bool computed = false;
};

// All answers for call types that are not exact: those of the newest world are kept until there is a newer one.
// Inference lists the methods of a call once for each time that it looks at the call.
struct ListedMethods {
  World world = 0;
  int limit = 0;
  std::unordered_map<const Type*, std::vector<Lookup>> answers;
};

struct MethodTable::Cache {
  std::unordered_map<const DataType*, CachedLookup> answers;
  // By method of the table, in its order: what its signature looks like, so that most pairs that differ are told apart
  // without looking at the methods (method.cpp).
  std::vector<std::uint64_t> shapes;
  std::vector<std::uint64_t> call_shapes;  // the same for which calls reach them (call_shape)
  // Definitions that are made when the table is first asked (postponed.cpp): the first of a list, Impl::waiting.
  std::uint32_t first_waiting = ~0u;
  bool asked = false;
};

// What a kept source takes, with its bytecode, its edges and its places in tables.
inline std::size_t charged_for_source(std::size_t bytes) { return 2 * bytes + sizeof(KeptSource) + 512; }

struct Runtime::Impl {
  explicit Impl(Runtime& owner);
  ~Impl();

  Runtime& runtime;
  std::deque<Module> modules;
  std::deque<Binding> bindings;
  std::vector<Binding*> spare_bindings;  // of modules that nobody can reach
  Binding* new_binding(Module* module, const Symbol* name);
  void spare_binding(Binding* binding) noexcept;
  std::unordered_map<const Module*, std::unordered_map<const Symbol*, Binding*>> borrowed;  // borrowed.cpp
  std::deque<MethodTable> tables;
  std::unique_ptr<ContextTapes> tapes;
  int root_key = 0;

  // Direct-mapped, by the types of callee and arguments: what Runtime::call asks first.
  static constexpr std::size_t dispatch_ways = tuning::dispatch_ways;
  std::vector<CallCache::Entry> dispatch_cache;
  ListedMethods listed;

  struct SpecializationKey {
    const Method* method;
    const DataType* types;
    bool operator==(const SpecializationKey&) const = default;
  };
  struct SpecializationHash {
    std::size_t operator()(const SpecializationKey& key) const {
      return (reinterpret_cast<std::uintptr_t>(key.method) >> 4) * 0x9e3779b97f4a7c15ull ^ key.types->id;
    }
  };
  std::unordered_map<SpecializationKey, Specialization*, SpecializationHash> specializations;

  // Definitions that nobody has asked for: postponed.cpp.
  struct Waiting {
    Postponed what;
    World first_world;  // of its methods
    std::uint32_t methods;
    std::uint32_t next;  // of the same table or binding
    std::uint32_t module;
  };
  static constexpr std::uint32_t none_waiting = Binding::none_waiting;
  LibraryIndex library;
  World library_world = 0;         // the newest before the library's
  std::vector<bool> entered;       // names of the library that are in Base's table, or are a type's of Core
  std::vector<Waiting> regrouped;  // items of names that share a table, in one list; numbered after the library's
  Waiting waiting(std::uint32_t number) const;
  World next_postponed_world = 0;  // not 0: a postponed definition is being made
  bool making_type = false;        // the definition of a name's value: calls may have been answered without it
  std::vector<const Binding*> being_made;
  bool is_being_made(std::uint32_t name) const;
  bool make(const MethodTable* table, const Binding* binding, const Waiting& item);
  Binding* enter(std::uint32_t number, const Symbol* name);
  // The module defines a name that it borrowed: the alias, without a value. Null: not borrowed.
  Binding* take_back(const Module& module, const Symbol* name);
  std::vector<MethodTable*> keyword_owners;  // tables whose definitions have keyword methods, waiting or not
  MethodTable* keyword_call = nullptr;       // Base.kwcall's, once known
  void open(MethodTable& table);             // makes what waits in it
  void ask(MethodTable& table);              // opens it for good
  void ask_for_call(MethodTable& table, const DataType* call_types);  // and what a call of these types can reach
  void ask_for_all(MethodTable& table);                               // and whatever adds methods to it
  void ask_keyword_owners();
  void open_for_definition(MethodTable& table, const Type* signature);
  bool is_keyword_call(const MethodTable& table);

  // Who depends on what. Lookup edges are filed under the nominal type of the callee; null: callee unknown.
  struct Dependent {
    const Type* signature;
    CodeInstance* code;
  };
  std::unordered_map<const TypeName*, std::vector<Dependent>> lookup_dependents;
  std::unordered_map<const Binding*, std::vector<CodeInstance*>> binding_dependents;
  std::unordered_map<const Specialization*, std::vector<CodeInstance*>> callee_dependents;

  // Who ended what: see Runtime::invalidations.
  struct Ended {
    const Method* method = nullptr;    // the definition: a method,
    const Binding* binding = nullptr;  // or a constant
    const Specialization* ended = nullptr;
    const Specialization* through = nullptr;  // the callee by whose end it ended; null: by the definition itself
    bool replaced = false;                    // the definition replaced its method
    bool source = false;                      // a generator's source, not typed code
    std::shared_ptr<Invalidation> told;       // what they were, when some of them are gone
  };
  static constexpr std::size_t ended_limit = tuning::invalidations_kept;
  std::deque<Ended> ended_log;
  Ended cause;  // of what is being ended now

  std::vector<CodeInstance*> ended;  // typed code that no new frame calls, until it is destroyed
  std::vector<Method*> replaced;     // whose untyped IR is still there
  std::vector<Method*> retired;      // the others that were replaced: retired.cpp
  std::size_t release_at = 64;       // of all three
  void release_when_due();
  void drop_replaced();
  void free_retired();
  void free_unused_texts();
  void retire_generator(const Method& generated);
  void destroy(const std::unordered_set<const Method*>& methods);
  void erase_methods(MethodTable& table, const std::unordered_set<const Method*>& methods);
  bool is_of_library(const Module* module) const;
  std::vector<MethodTable*> spare_tables;          // of types that nobody can reach
  bool is_walked = false;                          // by it
  std::size_t texts_of_library = 0;                // files that were read before anything ran
  std::size_t next_look_at_texts = 0;              // when there are so many
  std::unique_ptr<class Unreachable> unreachable;  // what it knows from the last time; null: it never looked
  Invalidation told(const Ended& entry) const;
  void note_end(const CodeInstance& code, const Specialization* through);

  std::vector<const Specialization*> generators_running;  // innermost last: a generator may need another's source

  MethodTable* table_of(TypeName* name);
  // The nominal type under which calls on this callee type are filed; null when it may be anything.
  TypeName* callee_name(const Type* callee_type) const;
  // Is the callee type of a signature one nominal type's alone (typeof(f), Type{Foo{T}}, a concrete callable)?
  bool callee_is_leaf(const Type* callee_type) const;
  // The tables that a call may reach, opened; null call types: any call of the callee.
  void tables_for(const Type* callee_type, const DataType* call_types, std::vector<MethodTable*>& chain);
  void compute_lookup(const DataType* call_types, World world, Lookup& result);
  CachedLookup& cached_lookup(const DataType* call_types, World world);
  std::vector<Lookup> list_methods(const Type* call_types, const DataType* tuple, World world, int limit);
  const Type* callee_of(const Type* signature) const;  // first parameter under the union_alls
  void end_answers(const Method& method, bool leaf);
  void forget_dependent(const CodeInstance& code);  // before it is destroyed
  void trace(Tracer& tracer);
  bool call_builtin(Context& ctx, Value callee, const Value* args, std::size_t count, Value& result);
  std::string method_error_text(Context& ctx, Value function, Value args, World world);
};

// Can a call with these argument types reach the signature at all? Cheap: arity and nominal types only.
bool may_apply(const BuiltinTypes& builtin, const DataType* call_types, const Type* signature);

// A byte for the number of parameters and one for each of the first after the callee: 0 where a subtype may have
// another one. Calls and signatures with bytes that are not 0 and differ have nothing in common: most methods of a
// table of thousands are passed over without looking at them.
std::uint64_t call_shape(const DataType* tuple);
inline bool shapes_agree(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t high = 0x8080808080808080ull;
  auto used = [](std::uint64_t v) { return (((v & ~high) + ~high) | v) & high; };  // the high bits of bytes not 0
  return (used(a) & used(b) & used(a ^ b)) == 0;
}

// The tuple under a signature's union_alls; null when it is none.
inline const DataType* signature_tuple(const Type* signature) {
  while (auto* u = as_union_all(signature)) signature = u->body;
  auto* d = as_data(signature);
  return d && d->is_tuple ? d : nullptr;
}

}  // namespace slope
