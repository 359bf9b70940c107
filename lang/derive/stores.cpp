// What functions store into, and which memory their code names (kept_memory.hpp).
#include <algorithm>

#include "lang/derive/derivatives.hpp"
#include "lang/derive/kept_memory.hpp"
#include "lang/diff/tangent.hpp"
#include "lang/memory/on_heap.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::derive {

bool is_reference(Value v) { return may_be_on_heap(v); }

// An array of another shape may have the same memory.
bool Stores::may_hit(const DataType* type) const {
  if (any_type || std::binary_search(types.begin(), types.end(), static_cast<const Type*>(type))) return true;
  if (type->object_kind != DataType::ObjectKind::array) return false;
  return std::any_of(types.begin(), types.end(), [&](const Type* written) {
    const DataType* other = as_data(written);
    return other->object_kind == DataType::ObjectKind::array && other->params[0] == type->params[0];
  });
}

// A captured variable that is assigned again may hold anything.
bool holds_only_numbers(diff::TangentTypes& tangents, const DataType* type) {
  if (!tangents.differentiable(type)) return true;
  if (type->object_kind == DataType::ObjectKind::array) return !tangents.has_shadow(type->params[0]);
  return type->object_kind == DataType::ObjectKind::fields &&
         std::none_of(type->fields.begin(), type->fields.end(),
                      [&](const Field& field) { return tangents.has_shadow(field.type); });
}

bool Stores::only_numbers(diff::TangentTypes& tangents) const {
  return !any_type && !resizes && std::all_of(types.begin(), types.end(), [&](const Type* type) {
    return holds_only_numbers(tangents, as_data(type));
  });
}

void StoresOfFunctions::forget() {
  effects_ = nullptr;
  known_.clear();
  names_.clear();
}

void StoresOfFunctions::trace(Tracer& tracer) const {
  for (const auto& [target, stores] : known_)
    for (Value v : stores->constants) tracer.value(v);
  for (const RuleStores& rule : all_of_rules_) {
    for (Value v : rule.stores.constants) tracer.value(v);
    for (Value v : rule.constants) tracer.value(v);
  }
  for (const auto& [target, names] : names_)
    for (Value v : names.constants) tracer.value(v);
}

bool StoresOfFunctions::is_of_library(const Module* module) const {
  for (; module; module = module->parent)
    if (module == derivatives_.runtime.base || module == derivatives_.runtime.core) return true;
  return false;
}

// What they hold is no data: the next call gets other numbers, as without derivatives.
bool is_random_generator(Runtime& runtime, const Type* type) {
  const Value generators = library_value(runtime, KnownName::random_generator_type);
  return generators.defined() && is_subtype(runtime.types, type, generators.as_type);
}

// Anew each time: a global may hold another object since, and another object may have the address of what it held.
void StoresOfFunctions::find_library_objects() {
  of_library_.clear();
  for (const Module* module : {derivatives_.runtime.base, derivatives_.runtime.core})
    for (const auto& [name, binding] : module->bindings)
      if (is_reference(binding->value)) of_library_.insert(binding->value.pointer);
}

// What the library keeps for itself (generators of random numbers, streams, caches) is none of the program's.
void StoresOfFunctions::find_roots(Context& ctx, Specialization& target, Stores& stores) {
  const ir::Function* code = derivatives_.primals.primal_or_rule(ctx, target);
  if (!code) return;
  find_library_objects();
  const diff::MemoryEffects::Globals found = effects(ctx)->globals(*code);
  for (Value v : found.constants)
    if (is_reference(v) && !of_library_.contains(v.pointer)) stores.constants.push_back(v);
  for (Binding* binding : found.bindings)
    if (!is_of_library(binding->module)) stores.globals.push_back(binding);
}

// Where a function that is run again begins to read, besides its arguments: what its code names, and of the library
// generators of random numbers.
std::vector<Value> StoresOfFunctions::names_of(Context& ctx, Specialization& target) {
  of(ctx, target);  // of this world
  std::vector<Value> roots;
  const auto [known, fresh] = names_.try_emplace(&target);
  if (fresh) {
    const CollectionPause pause(derivatives_.runtime.heap);
    if (const ir::Function* code = derivatives_.primals.primal_or_rule(ctx, target)) {
      diff::MemoryEffects::Globals found = effects(ctx)->globals(*code);
      find_library_objects();
      std::erase_if(found.constants, [&](Value v) {
        return !is_reference(v) ||
               (of_library_.contains(v.pointer) && !is_random_generator(derivatives_.runtime, v.type));
      });
      std::erase_if(found.bindings, [&](Binding* binding) { return is_of_library(binding->module); });
      names_[&target] = std::move(found);
    }
  }
  const diff::MemoryEffects::Globals& names = names_[&target];
  for (Value v : names.constants) roots.push_back(v);
  for (const Binding* binding : names.bindings)
    if (is_reference(binding->value)) roots.push_back(binding->value);
  return roots;
}

std::shared_ptr<diff::MemoryEffects> StoresOfFunctions::effects(Context& ctx) {
  if (!effects_) effects_ = derivatives_.memory_effects(ctx, diff::MemoryScope::all);
  return effects_;
}

const Stores& StoresOfFunctions::of(Context& ctx, Specialization& target) {
  if (world_ != ctx.world) forget();
  world_ = ctx.world;
  if (const auto known = known_.find(&target); known != known_.end()) return *known->second;
  const CollectionPause pause(derivatives_.runtime.heap);
  const std::shared_ptr<diff::MemoryEffects> asked = effects(ctx);
  const diff::MemorySummary summary = asked->of_target(target);
  Stores& made = all_.emplace_back();
  made.arguments = summary.writes;
  made.types = summary.written_types;
  std::erase_if(made.types, [&](const Type* t) { return is_random_generator(derivatives_.runtime, t); });
  if (made.types.empty() && !summary.writes_any_type) made.arguments = 0;
  made.any_type = summary.writes_any_type;
  made.calls_unknown = summary.calls_unknown;
  made.resizes = summary.resizes;
  for (Binding* binding : summary.assigned)
    if (!is_of_library(binding->module)) made.assigned.push_back(binding), assigned_.insert(binding);
  if (made.arguments & diff::global_memory) find_roots(ctx, target, made);
  if (made.constants.empty() && made.globals.empty()) made.arguments &= ~diff::global_memory;
  if (asked == effects_) known_[&target] = &made;
  addresses_.insert(&made);
  return made;
}

}  // namespace slope::derive
