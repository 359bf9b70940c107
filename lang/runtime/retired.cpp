// Frees methods that definitions replaced, with their syntax, specialisations and places in tables.
//
// A method is visible in the worlds from its definition to its replacement. Worlds only grow, so that one that nobody is
// in any more is never entered again. A replaced method is freed when
//   1. no world that is in use lies among its own: none of the context, of a suspended coroutine, of a holder
//      (kept_methods.hpp), of a generator (which runs in the world of its definition), and none that C++ frames on a
//      stack will restore. These are found conservatively: any word of a stack may be a world;
//   2. none of its specialisations has code: Tiers::release_ended left what frames, handles and records of derivatives
//      use, and what these call;
//   3. no such code, and no trace of an error, refers to it;
//   4. it is no method of the library: what waits to be defined is made in the library's own worlds.
//
// The traps: a freed address may be used again, so that tables that are keyed by methods or specialisations forget them
// here (Tiers::forget). Inline caches and the dispatch cache compare the world first; no world that held a freed method
// comes again. Engines with frame records (profiles) or an observer keep everything: these note methods anywhere.
#include <algorithm>
#include <unordered_set>

#include "lang/runtime/coroutines.hpp"
#include "lang/runtime/runtime_impl.hpp"
#include "lang/support/exception_safe.hpp"

namespace slope {

namespace {

// Words of a stack are read as they are, between variables too.
__attribute__((no_sanitize("address"), noinline)) void add_words(const void* from, const void* to, World lowest,
                                                                 World highest, std::vector<World>& worlds) {
  const auto begin = (reinterpret_cast<std::uintptr_t>(from) + 7) & ~std::uintptr_t{7};
  for (auto* at = reinterpret_cast<const World*>(begin); at + 1 <= to; ++at) {
    const World word = *at;  // what is called here is sanitized: it must not be the one that reads
    if (word >= lowest && word <= highest) worlds.push_back(word);
  }
}

__attribute__((noinline)) void add_stacks(Heap& heap, World lowest, World highest, std::vector<World>& worlds) {
  __builtin_unwind_init();  // registers that the callers expect to be kept go to this frame
  const Heap::StackExtent stack = heap.stack_extent();
  add_words(stack.from, stack.to, lowest, highest, worlds);
  if (const SuspendedStacks* suspended = heap.suspended())
    suspended->each([&](const void* from, const void* to) { add_words(from, to, lowest, highest, worlds); });
}

bool has_code(const Method& method) {
  return std::any_of(method.specializations.begin(), method.specializations.end(),
                     [](const auto& one) { return !one->code.empty() || !one->sources.empty(); });
}

class Retirement {
 public:
  Retirement(Runtime& runtime, std::vector<Method*> candidates) : runtime_(runtime) {
    methods.insert(candidates.begin(), candidates.end());
  }

  // Takes out of `methods` what must stay.
  void keep_reachable() {
    std::erase_if(methods,
                  [&](const Method* method) { return runtime_.kept_methods.is_kept(method) || has_code(*method); });
    if (methods.empty()) return;
    World lowest = newest_world, highest = 0;
    for (const Method* method : methods) {
      lowest = std::min(lowest, method->min_world);
      highest = std::max(highest, method->max_world);
    }
    worlds_.push_back(runtime_.context.world);
    runtime_.kept_methods.add_worlds(worlds_);
    add_stacks(runtime_.heap, lowest, highest, worlds_);
    if (runtime_.coroutines)
      runtime_.coroutines->each_state([&](World world, const std::vector<TraceEntry>& trace) {
        worlds_.push_back(world);
        keep(trace);
      });
    keep(runtime_.context.trace);
    keep(runtime_.context.last_trace);
    if (runtime_.tiers) runtime_.tiers->leave_used(methods);
  }
  // `worlds` of others, of generators, are in use as well. True: something more stays.
  bool keep_worlds(const std::vector<World>& others) {
    worlds_.insert(worlds_.end(), others.begin(), others.end());
    std::sort(worlds_.begin(), worlds_.end());
    return std::erase_if(methods, [&](const Method* method) {
             const auto at = std::lower_bound(worlds_.begin(), worlds_.end(), method->min_world);
             return at != worlds_.end() && *at <= method->max_world;
           }) != 0;
  }

  std::unordered_set<const Method*> methods;

 private:
  void keep(const std::vector<TraceEntry>& trace) {
    for (const TraceEntry& entry : trace) methods.erase(entry.method);
  }

  Runtime& runtime_;
  std::vector<World> worlds_;
};

}  // namespace

bool Runtime::Impl::is_of_library(const Module* module) const {
  for (; module; module = module->parent)
    if (module == runtime.base || module == runtime.core) return true;
  return false;
}

void Runtime::Impl::free_retired() {
  if (retired.empty() || runtime.kept_methods.is_paused() || runtime.records_frames || runtime.observer) return;
  Retirement retirement(runtime, retired);
  retirement.keep_reachable();
  // Generators of methods that stay.
  for (bool more = true; more && !retirement.methods.empty();) {
    std::vector<World> generators;
    for (const MethodTable& table : tables)
      for (const auto& method : table.methods)
        if (method->generator && !retirement.methods.contains(method.get())) generators.push_back(method->min_world);
    more = retirement.keep_worlds(generators);
  }
  if (retirement.methods.empty()) return;
  for (const Method* method : retirement.methods)
    if (method->generator) retire_generator(*method);
  std::erase_if(retired, [&](const Method* method) { return retirement.methods.contains(method); });
  destroy(retirement.methods);
}

// The hidden function that makes the body of one generated method goes with it.
void Runtime::Impl::retire_generator(const Method& generated) {
  const DataType* type = as_data(generated.generator->function.type);
  if (!type || !type->name->methods) return;
  for (const auto& method : type->name->methods->methods) {
    if (method->max_world != newest_world) continue;
    make_room_for_one(replaced);
    retired.reserve(retired.size() + replaced.size() + 1);
    method->max_world = generated.max_world;
    replaced.push_back(method.get());
    for (const auto& one : method->specializations)
      for (const auto& code : one->code) runtime.end_code(code.get());
  }
}

void Runtime::Impl::destroy(const std::unordered_set<const Method*>& methods) {
  std::unordered_set<const Specialization*> gone;
  std::unordered_set<MethodTable*> changed;
  for (const Method* method : methods) {
    for (const auto& one : method->specializations) gone.insert(one.get());
    changed.insert(table_of(callee_name(callee_of(method->signature))));
    runtime.kept_methods.freed_until = std::max(runtime.kept_methods.freed_until, method->max_world);
  }
  if (runtime.tiers) runtime.tiers->forget(methods, gone);
  for (Ended& entry : ended_log)
    if (!entry.told && (methods.contains(entry.method) || gone.contains(entry.ended) || gone.contains(entry.through)))
      entry.told = std::make_shared<Invalidation>(told(entry));
  cause = Ended();
  for (CallCache::Entry& entry : dispatch_cache)
    if (gone.contains(entry.target)) entry = CallCache::Entry();
  std::erase_if(specializations, [&](const auto& entry) { return methods.contains(entry.first.method); });
  std::erase_if(callee_dependents, [&](const auto& entry) { return gone.contains(entry.first); });
  const auto mentions = [&](const Lookup& lookup) {
    return methods.contains(lookup.method) || gone.contains(lookup.target) ||
           std::any_of(lookup.ambiguous.begin(), lookup.ambiguous.end(),
                       [&](const Method* method) { return methods.contains(method); });
  };
  for (MethodTable& table : tables) {
    if (!table.cache) continue;
    for (auto& [types, answer] : table.cache->answers) {  // somebody may be about to compute one: it stays where it is
      if (!mentions(answer.lookup)) continue;
      answer.lookup = Lookup();
      answer.computed = false;
    }
  }
  for (MethodTable* table : changed) erase_methods(*table, methods);
}

void Runtime::Impl::erase_methods(MethodTable& table, const std::unordered_set<const Method*>& methods) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < table.methods.size(); ++i) {
    if (methods.contains(table.methods[i].get())) continue;
    if (i != kept) {
      table.methods[kept] = std::move(table.methods[i]);
      table.cache->shapes[kept] = table.cache->shapes[i];
      table.cache->call_shapes[kept] = table.cache->call_shapes[i];
    }
    ++kept;
  }
  table.methods.resize(kept);
  table.cache->shapes.resize(kept);
  table.cache->call_shapes.resize(kept);
}

}  // namespace slope
