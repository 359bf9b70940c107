// Frees what nobody can reach any more of closures, and of modules that were made again: methods with their syntax,
// specialisations with their code, bindings. A host that evaluates a closure in each round leaves nothing of these.
//
// Goal. A closure's method is in a table that belongs to the closure's type, and functions that it was given to have
// specialisations for that type. Both are of no use when no value of the type can come again: no object or variable has
// it, and no code makes one. The same holds for the functions and types of a module that no name leads to.
//
// An entity is the name of such a type (TypeName), or such a module. The walk marks entities that are reached:
//   1. Roots: objects of the heap, stacks, what root tracers report, global variables of modules that are no entities,
//      running functions, what hosts have handles of, ended code that is still there, traces, definitions that wait.
//   2. A word that is the address of a type reaches all entities that the type mentions; a binding its module; a
//      method, specialisation or code what its types mention. Words are looked at conservatively, without knowing what
//      they are: code, syntax and objects name types in many forms.
//   3. What an entity reaches: a type's supertype, fields and module; a module's variables and the modules it uses.
//   4. A method whose signature mentions entities reaches anything only when all of these are reached; likewise a
//      specialisation, by its argument types, and what was derived from it. Methods without entities are roots, also
//      those that a module without a name gave to a function of others: they hold their module.
// What is not reached in the end is freed, the types as well (lang/types/free_types.cpp). Their addresses are keys of
// many tables, and one that is used again would be taken for the old type: so the addresses never are.
//
// When: between two uses of the engine by its host, so that no frame, no lowering and no inference is under way; after
// so many new names that the walk's time does not matter. The world advances, since inline caches compare it first.
//
// Left alone: engines with workspaces, whose heaps are not looked at, with an observer, or with records of frames.
#include "lang/runtime/unreachable.hpp"

#include <algorithm>
#include <new>

#include "lang/runtime/coroutines.hpp"

namespace slope {

namespace {

constexpr std::size_t least_new_names = 64;
// A walk over so many bytes of objects is worth one name.
constexpr std::size_t heap_bytes_for_name = std::size_t{1} << 14;

void add_once(Unreachable::Entities& to, Unreachable::Entity* entity) {
  if (std::find(to.begin(), to.end(), entity) == to.end()) to.push_back(entity);
}

bool all_reached(const Unreachable::Entities& entities) {
  return std::all_of(entities.begin(), entities.end(), [](const auto* entity) { return entity->reached; });
}

}  // namespace

Unreachable::Unreachable(Runtime::Impl& runtime)
    : impl_(runtime),
      runtime_(runtime.runtime),
      modules_known_(runtime.modules.size()),
      names_known_(runtime_.types.name_count()),
      newest_type_(runtime_.types.newest_id()),
      next_look_(names_known_ + least_new_names) {}

bool Unreachable::is_due() const {
  if (runtime_.heap.is_stressed()) return runtime_.types.name_count() > names_known_;
  return runtime_.types.name_count() >= next_look_ + runtime_.heap.statistics().live_bytes / heap_bytes_for_name;
}

Unreachable::Entity* Unreachable::of(const void* name_or_module) const {
  const auto found = entities_.find(name_or_module);
  return found == entities_.end() ? nullptr : found->second.get();
}

// Main, the library's modules and those in which packages are defined stay.
bool Unreachable::may_go(const Module* module) const {
  return module && module->parent && module != runtime_.main && !impl_.is_of_library(module);
}

void Unreachable::add_value(Entities& to, Value v) const {
  if (!v.defined()) return;
  add(to, v.type);
  const DataType* type = as_data(v.type);
  if (type == runtime_.types.builtin().module) {
    if (Entity* entity = of(v.module)) add_once(to, entity);
  } else if (v.type->is_kind) {
    add(to, v.as_type);
  } else if (type->is_tuple && type->storage != Storage::singleton && v.object) {
    for (const Field& field : type->fields) {  // a box of the type table: types, symbols and numbers
      const char* at = v.object->payload() + field.offset;
      if (field.storage == Storage::dynamic) add_value(to, *reinterpret_cast<const Value*>(at));
      if (field.storage == Storage::reference && field.type->is_kind) add(to, *reinterpret_cast<Type* const*>(at));
    }
  }
}

void Unreachable::add(Entities& to, const Type* type) const {
  if (!type) return;
  if (const Entities* known = mentioned_by(type))
    for (Entity* entity : *known) add_once(to, entity);
}

// Its parts were made before it, so that they are known.
Unreachable::Entities Unreachable::parts_of(const Type* type) const {
  Entities found;
  switch (type->kind) {
    case TypeKind::data:
      if (Entity* entity = of(as_data(type)->name)) add_once(found, entity);
      for (const Type* parameter : as_data(type)->params) add(found, parameter);
      break;
    case TypeKind::union_:
      for (const Type* member : as_union(type)->members) add(found, member);
      break;
    case TypeKind::union_all:
      add(found, as_union_all(type)->var);
      add(found, as_union_all(type)->body);
      break;
    case TypeKind::var:
      add(found, as_var(type)->lower);
      add(found, as_var(type)->upper);
      break;
    case TypeKind::vararg:
      add(found, as_vararg(type)->element);
      add(found, as_vararg(type)->count);
      break;
    case TypeKind::value:
      add_value(found, as_value(type)->value);
      break;
    case TypeKind::bottom:
      break;
  }
  return found;
}

const Unreachable::Entities* Unreachable::mentioned_by(const Type* type) const {
  const auto found = mentions_.find(type);
  return found == mentions_.end() ? nullptr : &found->second;
}

bool Unreachable::is_dead(const Type* type) const {
  const Entities* mentioned = mentioned_by(type);
  return mentioned && !all_reached(*mentioned);
}

void Unreachable::note_new() {
  for (; modules_known_ < impl_.modules.size(); ++modules_known_) {
    Module* module = &impl_.modules[modules_known_];
    if (may_go(module)) entities_.emplace(module, std::make_unique<Entity>(Entity{nullptr, module}));
  }
  for (TypeName* name : runtime_.types.names_after(names_known_)) {
    const bool goes = name->is_closure ? name->module && !impl_.is_of_library(name->module) : may_go(name->module);
    if (!goes || !(name->is_closure || of(name->module))) continue;
    Entity* const entity = entities_.emplace(name, std::make_unique<Entity>(Entity{name, nullptr})).first->second.get();
    for (const TypeVar* var : name->vars)
      if (var->id > newest_type_) mentions_[var] = {entity};
  }
  names_known_ = runtime_.types.name_count();
  for (const Type* type : runtime_.types.types_after(newest_type_)) {
    Entities parts = parts_of(type);
    if (parts.empty()) continue;
    // A variable goes with what binds it.
    if (const UnionAllType* bound = as_union_all(type); bound && bound->var->id > newest_type_)
      mentions_.emplace(bound->var, parts);
    mentions_.emplace(type, std::move(parts));
  }
  newest_type_ = runtime_.types.newest_id();
}

// --- the walk ---

class Unreachable::Walk final : public Tracer, public Reached {
 public:
  explicit Walk(const Unreachable& known) : known_(known), impl_(known.impl_), runtime_(known.runtime_) {
    for (const auto& [address, entity] : known_.entities_) {
      entity->reached = false;
      add_target(address, {entity.get()});
      if (entity->module)
        for (const auto& [name, binding] : entity->module->bindings)
          if (binding->module == entity->module) add_target(binding, {entity.get()});
    }
    for (const auto& [type, entities] : known_.mentions_) add_target(type, entities);
    runtime_.tiers->each_synthetic([&](const Specialization& made) { synthetic_.insert(&made); });
    runtime_.tiers->each_loop([&](const Method* method, const CodeInstance& loop) { loops_[method].push_back(&loop); });
    for (const MethodTable& table : impl_.tables)
      for (const auto& method : table.methods) add_method(*method);
  }

  void run() {
    roots();
    while (!work_.empty()) {
      const Work next = work_.back();
      work_.pop_back();
      if (next.entity) visit(*next.entity);
      if (next.method) visit(*next.method);
      if (next.target) visit(*next.target);
    }
  }

  // Those that need something that was not reached.
  bool is_dead(const void* method_or_specialization) const {
    const auto found = needs_.find(method_or_specialization);
    return found != needs_.end() && !all_reached(found->second);
  }

  // --- Reached ---
  __attribute__((no_sanitize("address"))) void words(const void* from, const void* to) override {
    auto at = (reinterpret_cast<std::uintptr_t>(from) + 7) & ~std::uintptr_t{7};
    const auto end = reinterpret_cast<std::uintptr_t>(to) & ~std::uintptr_t{7};
    for (; at < end; at += 8) word(*reinterpret_cast<void* const volatile*>(at));
  }
  void word(const void* address) override {
    if (!filter_[hash(address)]) return;
    if (const auto found = targets_.find(address); found != targets_.end())
      for (Entity* entity : found->second) reach(*entity);
    else if (synthetic_.contains(static_cast<const Specialization*>(address)))
      specialization(*static_cast<const Specialization*>(address));
  }
  void function(const ir::Function& function) override { runtime_.tiers->reach_function(function, *this); }
  void code(const CodeInstance& code) override {
    word(code.return_type);
    word(code.argument_if_true);
    word(code.argument_if_false);
    value(code.constant_result);
    if (code.typed) function(*code.typed);
    for (const Edge& edge : code.edges) {
      word(edge.signature);
      word(edge.binding);
      if (edge.callee) specialization(*edge.callee);
    }
  }
  void specialization(const Specialization& target) override {
    if (!synthetic_.contains(&target)) return word(&target);
    word(target.types);
    if (visited_.insert(&target).second) work_.push_back({nullptr, nullptr, &target});
  }

  // --- Tracer ---
  void value(Value v) override {
    word(v.type);
    word(v.pointer);
  }
  void object(Object*) override {}  // all objects are looked at
  void conservative(const void* begin, const void* end) override { words(begin, end); }

 private:
  struct Work {
    const Entity* entity;
    const Method* method;
    const Specialization* target;
  };
  struct Waiting {
    Work what;
    std::size_t left;  // entities that were not reached yet
  };

  static std::size_t hash(const void* address) {
    return static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(address) >> 3) * 0x9e3779b97f4a7c15ull >> 46);
  }
  void add_target(const void* address, const Entities& entities) {
    targets_[address] = entities;
    filter_[hash(address)] = true;
  }

  void add_method(const Method& method) {
    Entities of_method;
    known_.add(of_method, method.signature);
    wait(&method, of_method, {nullptr, &method, nullptr});
    for (const auto& one : method.specializations) {
      Entities of_one = of_method;
      known_.add(of_one, one->types);
      for (const Type* parameter : one->static_params) known_.add(of_one, parameter);
      wait(one.get(), of_one, {nullptr, nullptr, one.get()});
      if (!of_one.empty())
        for (const auto& code : one->code) add_target(code.get(), of_one);
    }
  }
  void wait(const void* address, const Entities& needed, const Work& what) {
    if (needed.empty()) return work_.push_back(what);
    add_target(address, needed);
    needs_.emplace(address, needed);
    waiting_.push_back({what, needed.size()});
    for (Entity* entity : needed) waiters_[entity].push_back(&waiting_.back());
  }

  void reach(Entity& entity) {
    if (entity.reached) return;
    entity.reached = true;
    work_.push_back({&entity, nullptr, nullptr});
  }

  void visit(const Entity& entity) {
    if (entity.module) visit(*entity.module);
    if (entity.name) {
      word(entity.name->module);
      for (const TypeVar* var : entity.name->vars) word(var);
      for (const Type* field : entity.name->field_types) word(field);
      if (entity.name->primary) word(entity.name->primary->super);
    }
    if (const auto found = waiters_.find(&entity); found != waiters_.end())
      for (Waiting* waiting : found->second)
        if (--waiting->left == 0) work_.push_back(waiting->what);
  }
  void visit(const Module& module) {
    for (const auto& [name, binding] : module.bindings) {
      word(binding->module);
      word(binding->declared);
      value(binding->value);
    }
    for (const Module* used : module.usings) word(used);
    word(module.inherits);
    word(module.parent);
  }
  void visit(const Method& method) {
    word(method.module);
    if (method.generator) {
      value(method.generator->function);
      value(method.generator->stands_for);
    }
    if (method.ir) function(*method.ir);
    if (runtime_.hooks().reach_syntax) runtime_.hooks().reach_syntax(&method, *this);
    if (const auto found = loops_.find(&method); found != loops_.end())
      for (const CodeInstance* loop : found->second) code(*loop);
  }
  void visit(const Specialization& target) {
    for (const auto& one : target.code) code(*one);
    for (const auto& source : target.sources) code(*source);
    for (const Type* parameter : target.static_params) word(parameter);
    runtime_.tiers->reach_derived(target, *this);
  }

  void roots() {
    for (const Module& module : impl_.modules)
      if (!known_.of(&module)) visit(module);
    runtime_.heap.each_part([&](const void* from, const void* to) { words(from, to); });
    impl_.is_walked = true;  // its own roots are what is asked about
    runtime_.heap.trace_roots(*this, runtime_.heap.next_root());
    impl_.is_walked = false;
    value(runtime_.context.error);
    for (const Value& caught : runtime_.context.caught) value(caught);
    const Heap::StackExtent stack = runtime_.heap.stack_extent();
    words(stack.from, stack.to);
    if (const SuspendedStacks* suspended = runtime_.heap.suspended())
      suspended->each([&](const void* from, const void* to) { words(from, to); });
    const auto trace = [&](const std::vector<TraceEntry>& entries) {
      for (const TraceEntry& entry : entries) {
        word(entry.method);
        word(entry.types);
      }
    };
    trace(runtime_.context.trace);
    trace(runtime_.context.last_trace);
    if (runtime_.coroutines)
      runtime_.coroutines->each_state([&](World, const std::vector<TraceEntry>& entries) { trace(entries); });
    for (const CodeInstance* ended : impl_.ended) code(*ended);
    for (const auto& [needed_by, needed] : needs_)
      if (runtime_.kept_methods.is_kept(static_cast<const Method*>(needed_by))) word(needed_by);
    if (const auto found = loops_.find(nullptr); found != loops_.end())
      for (const CodeInstance* loop : found->second) code(*loop);
    if (runtime_.hooks().reach_syntax) runtime_.hooks().reach_syntax(nullptr, *this);
    runtime_.tiers->reach_held(*this);
  }

  const Unreachable& known_;
  Runtime::Impl& impl_;
  Runtime& runtime_;
  std::vector<bool> filter_ = std::vector<bool>(std::size_t{1} << 18);
  std::unordered_map<const void*, Entities> targets_;  // what a word that is this address reaches
  std::unordered_map<const void*, Entities> needs_;    // of methods and specialisations
  std::deque<Waiting> waiting_;
  std::unordered_map<const Entity*, std::vector<Waiting*>> waiters_;
  std::unordered_set<const Specialization*> synthetic_, visited_;
  std::unordered_map<const Method*, std::vector<const CodeInstance*>> loops_;
  std::vector<Work> work_;
};

// --- freeing ---

void Unreachable::free() {
  note_new();
  next_look_ = names_known_ + std::max(least_new_names, entities_.size());
  if (entities_.empty() || runtime_.kept_methods.is_paused() || runtime_.records_frames || runtime_.observer ||
      runtime_.other_heaps != 0 || runtime_.heap.is_paused() || !runtime_.heap.collects() || runtime_.compiles ||
      !runtime_.tiers)
    return;
  runtime_.heap.collect();
  runtime_.tiers->release_ended(runtime_.context);
  impl_.drop_replaced();
  Walk walk(*this);
  walk.run();
  if (free_all(walk)) {
    forget_dead();
    next_look_ = names_known_ + std::max(least_new_names, entities_.size());
  }
}

// False: something still uses code that was ended; it goes the next time.
bool Unreachable::free_all(Walk& walk) {
  std::unordered_set<const Method*> methods;
  std::unordered_set<const Specialization*> specializations;
  impl_.cause = {};
  for (MethodTable& table : impl_.tables) {
    for (const auto& method : table.methods) {
      const bool is_dead = walk.is_dead(method.get());
      if (is_dead) {
        methods.insert(method.get());
        if (method->max_world == newest_world) method->max_world = runtime_.world();
      }
      for (const auto& one : method->specializations) {
        if (!is_dead && !walk.is_dead(one.get())) continue;
        specializations.insert(one.get());
        for (const auto& code : one->code) runtime_.end_code(code.get());
        for (const auto& source : one->sources) runtime_.end_code(source.get());
        runtime_.tiers->end_derived(*one);
      }
    }
  }
  runtime_.tiers->each_synthetic([&](const Specialization& made) {
    if (!is_dead(made.types)) return;
    specializations.insert(&made);
    for (const auto& code : made.code) runtime_.end_code(code.get());
  });
  if (std::all_of(entities_.begin(), entities_.end(), [](const auto& entry) { return entry.second->reached; }))
    return true;
  runtime_.tiers->release_ended(runtime_.context);
  const auto has_code = [](const Specialization* one) { return !one->code.empty(); };
  if (std::any_of(specializations.begin(), specializations.end(), has_code)) return false;
  std::unordered_set<const Method*> unused = methods;
  runtime_.tiers->leave_used(unused);
  if (unused.size() != methods.size()) return false;
  free_methods(methods, specializations);
  return true;
}

void Unreachable::free_methods(const std::unordered_set<const Method*>& methods,
                               const std::unordered_set<const Specialization*>& specializations) {
  const auto is_gone = [&](const Specialization* one) { return specializations.contains(one); };
  runtime_.tiers->forget(methods, specializations);
  std::erase_if(impl_.replaced, [&](const Method* method) { return methods.contains(method); });
  std::erase_if(impl_.retired, [&](const Method* method) { return methods.contains(method); });
  std::erase_if(impl_.ended_log, [&](const Runtime::Impl::Ended& entry) {
    return !entry.told && (methods.contains(entry.method) || is_gone(entry.ended) || is_gone(entry.through));
  });
  for (CallCache::Entry& entry : impl_.dispatch_cache)
    if (is_gone(entry.target)) entry = CallCache::Entry();
  impl_.listed.answers.clear();
  std::erase_if(impl_.specializations, [&](const auto& entry) { return is_gone(entry.second); });
  std::erase_if(impl_.callee_dependents, [&](const auto& entry) { return is_gone(entry.first); });
  for (MethodTable& table : impl_.tables) {
    if (table.cache)
      std::erase_if(table.cache->answers, [&](const auto& entry) {
        return is_dead(entry.first) || methods.contains(entry.second.lookup.method) ||
               is_gone(entry.second.lookup.target);
      });
    bool has_dead = false;
    for (const auto& method : table.methods) {
      if (methods.contains(method.get())) has_dead = true;
      for (const auto& one : method->specializations) {
        if (!is_gone(one.get())) continue;
        for (const auto& source : one->sources) {
          method->generator->bytes -= source->bytes;
          runtime_.outside_heap.remove(charged_for_source(source->bytes));
          impl_.forget_dependent(*source);
        }
      }
      std::erase_if(method->specializations, [&](const auto& one) { return is_gone(one.get()); });
    }
    if (has_dead) impl_.erase_methods(table, methods);
  }
  ++runtime_.world_;
}

void Unreachable::forget_name(TypeName* name) {
  impl_.lookup_dependents.erase(name);
  MethodTable* table = std::exchange(name->methods, nullptr);
  const auto& owners = impl_.keyword_owners;
  if (!table || !table->methods.empty() || std::find(owners.begin(), owners.end(), table) != owners.end()) return;
  *table->cache = {};
  impl_.spare_tables.push_back(table);
}

void Unreachable::forget_module(Module* module) {
  std::erase_if(impl_.ended_log, [&](const auto& entry) { return entry.binding && entry.binding->module == module; });
  for (const auto& [name, binding] : module->bindings) {
    if (binding->module != module) continue;
    impl_.binding_dependents.erase(binding);
    binding->value = Value();
    impl_.spare_binding(binding);
  }
  module->bindings = {};
  module->exported_names = {};
  module->usings = {};
  impl_.borrowed.erase(module);
}

// Dead types, and modules without names.
void Unreachable::forget_dead() {
  for (const auto& [address, entity] : entities_) {
    if (entity->reached) continue;
    if (entity->name) forget_name(entity->name);
    if (entity->module) forget_module(entity->module);
  }
  runtime_.types.free_types([&](const Type* type) { return is_dead(type); },
                            [&](const TypeName* name) {
                              const Entity* entity = of(name);
                              return entity && !entity->reached && !name->methods;
                            });
  std::erase_if(mentions_, [](const auto& entry) { return !all_reached(entry.second); });
  std::erase_if(entities_, [](const auto& entry) { return !entry.second->reached; });
}

void Runtime::free_unreachable_when_due() {
  try {
    if (!impl_->unreachable)
      impl_->unreachable = std::make_unique<Unreachable>(*impl_);
    else if (impl_->unreachable->is_due())
      impl_->unreachable->free();
  } catch (const std::bad_alloc&) {  // before anything is destroyed: the next time begins anew
    impl_->is_walked = false;
  }
}

Runtime::Impl::Impl(Runtime& owner) : runtime(owner) {}
Runtime::Impl::~Impl() = default;

}  // namespace slope
