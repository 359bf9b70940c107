// The sources of generated methods: when a generator runs, and how long what it made is kept.
//
// A source belongs to argument types and to a range of worlds. Its generator runs in the world of its own definition (a
// package's when all of it is defined: lang/lower/generated.cpp), so methods defined later can not change what it
// computes; what it asks about the program (has_method, lowered code) is answered for the world of who wants the source,
// and each answer is an edge, "no method found" included. A kept source ends with its edges, like typed code; it is
// shared read-only: inference copies what it changes.
//
// A generator that needs its own source for the same types, directly or through others, would never end: `generators_
// running` tells, and the error names the chain. A chain of ever new types ends at a fixed depth.
#include <algorithm>
#include <chrono>
#include <utility>

#include "lang/memory/heap_impl.hpp"
#include "lang/runtime/recorded_run.hpp"
#include "lang/runtime/runtime_impl.hpp"
#include "lang/support/exception_safe.hpp"
#include "lang/support/tuning.hpp"

namespace slope {

namespace {

constexpr std::size_t nesting_limit = tuning::generator_nesting;

std::string chain_text(std::span<const Specialization* const> running, const Specialization& target) {
  std::string text;
  constexpr std::size_t shown = 6;
  for (std::size_t i = 0; i < running.size(); ++i) {
    if (i >= shown && i + 2 < running.size()) {
      if (i == shown) text += " → …";
      continue;
    }
    text += (i == 0 ? "" : " → ") + call_text(*running[i]);
  }
  return text + " → " + call_text(target);
}

}  // namespace

std::string call_text(const Specialization& target) {
  std::string text = target.method->name ? std::string(target.method->name->name) : "anonymous function";
  // Of a hidden function (`f#generated`) the name of whom it stands for.
  if (const std::size_t cut = text.find('#'); cut != std::string::npos && cut > 0) text.resize(cut);
  text += '(';
  for (std::size_t i = 1; i < target.types->params.size(); ++i) {
    if (i > 1) text += ", ";
    text += "::" + to_string(target.types->params[i]);
  }
  return text + ')';
}

bool Context::refuse_in_generator(std::string_view what) {
  const Specialization& target = *generating->target;
  return raise_error("the generator of " + call_text(target) + ", " + runtime->sources.describe(target.method->span) +
                     ", may not " + std::string(what) + ": generated code must depend on the argument types alone");
}

namespace {

// A generator may number what it makes code for: it runs once for each signature, and so does the count.
bool is_counter(const Type* type) {
  const DataType* data = as_data(type);
  return data && data->name->name->name == "Atomic" && data->name->module &&
         data->name->module->name->name == "Threads";
}

}  // namespace

bool may_change(Context& ctx, Value v) {
  if (!runs_generator(ctx)) return true;
  if (is_counter(v.type)) return true;
  const Object* object = v.object;
  if (as_data(v.type)->object_kind == DataType::ObjectKind::array)
    if (const Object* owner = owner_of(static_cast<const ArrayObject*>(object))) object = owner;
  if (ctx.generating->made->objects.count(object) != 0) return true;
  return ctx.refuse_in_generator("change a " + to_string(v.type) + " that was there before it ran");
}

Source Runtime::source(Context& ctx, Specialization& target, SourceUse use, World world) {
  Method& method = *target.method;
  Source made;
  if (!method.generator) {
    if (method_ir(ctx, method)) made.code = method.ir;
    return made;
  }
  if (world < method.min_world || world > method.max_world) {
    ctx.raise_error("no source of " + call_text(target) + " for world " + std::to_string(world) +
                    ": its method belongs to worlds " + std::to_string(method.min_world) + " to " +
                    (method.max_world == newest_world ? "now" : std::to_string(method.max_world)));
    return made;
  }
  Generator& generator = *method.generator;
  Generator::Counts& counts = generator.counts[static_cast<std::size_t>(use)];
  const bool keeps = generator.cached || use == SourceUse::interpreter;
  if (keeps) {
    for (auto it = target.sources.rbegin(); it != target.sources.rend(); ++it) {
      if (!(*it)->valid_in(world)) continue;
      ++counts.hits;
      return {(*it)->typed, (*it)->min_world, (*it)->max_world, (*it)->edges, (*it)->bytes};
    }
  }
  ++counts.misses;
  for (const Type* t : target.types->params) {
    const DataType* data = as_data(t);
    // Type{T} it is that dispatch knows of types, not their kind.
    if ((is_concrete(t) && !t->is_kind) || (data && data->is_type_of_type && !t->has_free_vars)) continue;
    ctx.raise_error("the generator of " + call_text(target) + " needs concrete argument types");
    return made;
  }
  auto& running = impl_->generators_running;
  if (std::find(running.begin(), running.end(), &target) != running.end()) {
    ctx.raise_error("the generator of " + call_text(target) + " needs its own result: " + chain_text(running, target));
    return made;
  }
  if (running.size() >= nesting_limit) {
    ctx.raise_error("generators are nested more than " + std::to_string(nesting_limit) +
                    " deep: " + chain_text(running, target));
    return made;
  }

  made.min_world = method.min_world;
  made.max_world = method.max_world;
  AllocationRecord record;
  GeneratorRun run{&target, world, &made, &record, ctx.generating};
  running.push_back(&target);
  const auto start = std::chrono::steady_clock::now();
  ++counts.calls;
  const bool ok = [&] {
    AllocationRecord* const outer_record = heap.record_allocations(&record);
    const Finally leave([&] {
      heap.record_allocations(outer_record);
      running.pop_back();
    });
    const Restored generating(ctx.generating, &run);
    const Restored in_world(ctx.world, method.min_world);
    return hooks_.generate_source && hooks_.generate_source(ctx, target, made);
  }();
  counts.nanoseconds += static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count());
  if (!ok) {
    made.code = nullptr;
    if (!ctx.failed()) ctx.raise_error("nothing runs generators here");
    return made;
  }
  watch_variables(made.edges);
  if (!keeps) return made;

  // Ended sources that nothing runs any more go first.
  std::erase_if(target.sources, [&](const std::unique_ptr<KeptSource>& old) {
    if (old->max_world >= this->world() || old->typed.use_count() > 1) return false;
    generator.bytes -= old->bytes;
    outside_heap.remove(charged_for_source(old->bytes));
    impl_->forget_dependent(*old);
    return true;
  });
  auto kept = std::make_unique<KeptSource>();
  kept->owner = &target;
  kept->min_world = made.min_world;
  kept->max_world = made.max_world;
  kept->typed = made.code;
  kept->edges = made.edges;
  kept->bytes = made.bytes;
  generator.bytes += made.bytes;
  outside_heap.add(charged_for_source(made.bytes));
  add_dependent(kept.get());
  target.sources.push_back(std::move(kept));
  return made;
}

}  // namespace slope
