// What a rule stores for its pullback into memory that calls share: a buffer that the rule has captured, or that a global
// or a callable object holds. A second call stores there before the pullback of the first one reads it. So derivative
// code keeps what each call left there, of what its pullback may read, and the pullback finds that:
//
//   keep_for_pullback(stores, pullback, rule, f, args…) → what the forward step left, or nothing
//   give_to_pullback(name, kept) → what was there until now, or nothing
//   take_from_pullback(name, kept, found): that is there again
//
// What is stored and read is found in the code of the two steps (MemoryEffects); rules that store into no such memory
// cost nothing. In code that is differentiated again the tangents of such memory are not kept: expect_as_kept raises.
#include <algorithm>
#include <cstring>

#include "lang/derive/derivatives.hpp"
#include "lang/derive/kept_memory.hpp"
#include "lang/derive/natives/call.hpp"
#include "lang/diff/tangent.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::derive {

// What the code of the pullback names.
void StoresOfFunctions::find_reads(Context& ctx, const DataType* pullback, RuleStores& rule) {
  Specialization* target = derivatives_.runtime.lookup_specialization(pullback, ctx.world);
  const ir::Function* code = target ? derivatives_.primals.primal_or_rule(ctx, *target) : nullptr;
  if (ctx.failed()) ctx.take_error();  // where it is called it comes again
  if (!code || effects(ctx)->of(*target).calls_unknown) {
    rule.reads_all = true;
    return;
  }
  diff::MemoryEffects::Globals names = effects(ctx)->globals(*code);
  std::erase_if(names.constants, [&](Value v) { return !is_reference(v) || of_library_.contains(v.pointer); });
  std::erase_if(names.bindings, [&](Binding* binding) { return is_of_library(binding->module); });
  rule.constants = std::move(names.constants);
  rule.globals = std::move(names.bindings);
}

const RuleStores* StoresOfFunctions::of_rule(Context& ctx, const DataType* forward_step, const DataType* pullback) {
  Runtime& runtime = derivatives_.runtime;
  Specialization* step = runtime.lookup_specialization(forward_step, ctx.world);
  if (!step || diff::is_of_library(runtime, step->method)) return nullptr;
  const CollectionPause pause(runtime.heap);
  RuleStores rule;
  rule.stores = of(ctx, *step);
  // What it calls is found when it runs: its own memory and that of globals may be stored into.
  if (rule.stores.calls_unknown) {
    rule.stores.any_type = true;
    rule.stores.arguments |= diff::parameter_mask(0) | diff::global_memory;
    rule.stores.constants.clear();
    rule.stores.globals.clear();
    find_roots(ctx, *step, rule.stores);
  }
  if (!rule.stores.any()) return nullptr;
  rule.fixed = step->method->is_vararg ? step->method->arg_count : ~std::size_t{0};
  find_library_objects();
  find_reads(ctx, pullback, rule);
  if (rule.stores.calls_unknown) {  // what the pullback names may be stored into there
    rule.stores.constants.insert(rule.stores.constants.end(), rule.constants.begin(), rule.constants.end());
    rule.stores.globals.insert(rule.stores.globals.end(), rule.globals.begin(), rule.globals.end());
  }
  const bool names = rule.reads_all || !rule.constants.empty() || !rule.globals.empty();
  if (!names && !(effects(ctx)->of(*step).result & rule.stores.arguments)) return nullptr;
  RuleStores& made = all_of_rules_.emplace_back(std::move(rule));
  rule_addresses_.insert(&made);
  return &made;
}

bool KeptMemory::keep_for_pullback(const RuleStores& rule, Value pullback, const Value* call, std::size_t count,
                                   Value& result) {
  const SharedAccess access(ctx_);
  std::unordered_set<const void*> read;  // arrays that share memory by that, too
  const auto read_from = [&](Value root) {
    reach(root, [&](Object* object, bool) {
      read.insert(object);
      if (is_object(object, DataType::ObjectKind::array)) read.insert(static_cast<const ArrayObject*>(object)->data);
    });
  };
  if (!rule.reads_all) {
    read_from(pullback);
    for (Value v : rule.constants) read_from(v);
    for (const Binding* binding : rule.globals) read_from(binding->value);
    empty_set(seen_);
  }
  const auto is_read = [&](const Object* object) {
    return rule.reads_all || read.contains(object) ||
           (is_object(object, DataType::ObjectKind::array) &&
            read.contains(static_cast<const ArrayObject*>(object)->data));
  };
  const Value streams = library_value(runtime_, KnownName::io_type);
  const Look looked(*this);
  const Stores& stores = rule.stores;
  for (Binding* binding : stores.assigned)
    if (rule.reads_all || std::find(rule.globals.begin(), rule.globals.end(), binding) != rule.globals.end())
      keep_global(binding);
  const auto look = [&](Value root) {
    reach(root, [&](Object* object, bool) {
      const DataType* type = object->type;
      const bool is_mutable = type->is_mutable || type->object_kind != DataType::ObjectKind::fields;
      if (!is_mutable || !stores.may_hit(type) || !is_read(object)) return;
      if (!is_random_generator(runtime_, type) &&
          !(streams.defined() && is_subtype(runtime_.types, type, streams.as_type)))
        keep_object(object);
    });
  };
  for (std::size_t i = 0; i < count; ++i)
    if (stores.arguments & diff::parameter_mask(std::min(i, rule.fixed))) look(call[i]);
  if (stores.arguments & diff::global_memory) {
    for (Value v : stores.constants) look(v);
    for (const Binding* binding : stores.globals) look(binding->value);
  }
  empty_set(seen_);
  return copy_entries(looked.level, Copies::all, true, result);
}

bool KeptMemory::give_to_pullback(Value kept, Value& found) {
  found = runtime_.nothing();
  return is_as_kept(kept) ? !ctx_.failed() : exchange_later(kept, found);
}

// Whole numbers that a pullback has counted up, and what it appended, belong to what was there (`done`). False: no memory.
bool KeptMemory::add_to_found(const Value* kept, Value* found, bool& done) {
  const BuiltinTypes& builtin = runtime_.types.builtin();
  const Entry entry = entry_of(kept, builtin);
  done = false;
  if (entry.kind == Entry::Kind::global || entry.kind == Entry::Kind::cell) return true;
  auto* object = static_cast<Object*>(entry.what);
  const DataType* type = object->type;
  const bool is_array = entry.kind == Entry::Kind::array;
  const Type* element = is_array ? array_element_type(static_cast<ArrayObject*>(object))
                                 : (type->fields.size() == 1 ? type->fields[0].type : nullptr);
  const Entry present = as_it_is(entry);
  const Entry before = entry_of(found, builtin);
  if (element == builtin.int64 && present.bytes == entry.bytes && before.bytes == entry.bytes) {
    auto* now = reinterpret_cast<std::uint64_t*>(const_cast<char*>(present_content(entry)));
    const std::vector<char> there = content_of(before, found[1].object);
    const std::vector<char> left = content_of(entry, kept[1].object);
    for (std::size_t i = 0; i < entry.bytes / sizeof(std::uint64_t); ++i)
      now[i] += reinterpret_cast<const std::uint64_t*>(there.data())[i] -
                reinterpret_cast<const std::uint64_t*>(left.data())[i];
    done = true;
  } else if (is_array && present.length > entry.length && before.length >= entry.length &&
             array_ndims(static_cast<ArrayObject*>(object)) == 1 &&
             each_part(entry, kept[1].object, [&](std::size_t offset, const char* part, std::size_t bytes) {
               return bytes == 0 || std::memcmp(present_content(entry) + offset, part, bytes) == 0;
             })) {
    auto* array = static_cast<ArrayObject*>(object);
    const std::vector<char> there = content_of(before, found[1].object);
    if (!ctx_.heap->resize_vector(array, present.length + before.length - entry.length)) return false;
    std::memmove(array->data + before.bytes, array->data + entry.bytes, present.bytes - entry.bytes);
    if (before.bytes) std::memcpy(array->data, there.data(), before.bytes);
    ctx_.heap->rewrote(array);
    done = true;
  }
  if (done) found[1] = found[0];
  return true;
}

bool KeptMemory::take_from_pullback(Value kept, Value found, const DataType*& shared) {
  shared = nullptr;
  if (as_data(found.type)->object_kind != DataType::ObjectKind::array) return true;
  if (!expect_taken(kept) || !expect_taken(found)) return false;
  diff::TangentTypes& tangents = diff::tangent_types(runtime_);
  const auto* left = static_cast<const ArrayObject*>(kept.object);
  const auto* there = static_cast<const ArrayObject*>(found.object);
  if (left->length != there->length) return ctx_.argument_error("take_from_pullback takes what give_to_pullback gave");
  for (std::int64_t i = 0; i < left->length; i += 2) {
    const auto* pair = reinterpret_cast<const Value*>(left->data) + i;
    if (holds_content_of(pair)) continue;
    // Numbers that the pullback works with are its own. What it notes otherwise would be lost.
    const DataType* type = pair[0].type == runtime_.types.builtin().int64 ? nullptr : pair[0].object->type;
    if (type && tangents.differentiable(type)) continue;
    bool done = false;
    if (!add_to_found(pair, reinterpret_cast<Value*>(there->data) + i, done)) return ctx_.out_of_memory();
    if (!done) shared = type ? type : runtime_.types.builtin().any;
  }
  return put_back_later(found) && !shared;
}

namespace {

constexpr std::uint32_t of_rule_memory = effect_throws | effect_reads | effect_writes;

bool keep_for_pullback(Context& ctx, const Value* args, std::size_t count, Value& result) {
  const auto* stores = count < 3 ? nullptr : reinterpret_cast<const RuleStores*>(args[0].bits);
  if (!stores || args[0].type != ctx.runtime->types.builtin().int64 || !derivatives_of(ctx).stores.knows(stores))
    return ctx.argument_error("keep_for_pullback takes an address, a pullback and a call");
  result = ctx.runtime->nothing();
  return kept_memory_of(ctx).keep_for_pullback(*stores, args[1], args + 2, count - 2, result) || ctx.out_of_memory();
}

bool refused(Context& ctx, Value rule, const std::string& why) {
  return ctx.raise_message(ctx.runtime->types.builtin().differentiation_error,
                           "cannot differentiate: " +
                               std::string(rule.type == ctx.runtime->types.builtin().string
                                               ? static_cast<const StringObject*>(rule.object)->view()
                                               : "a rule") +
                               why);
}

bool give_to_pullback(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("give_to_pullback takes a rule's name and what was kept");
  return kept_memory_of(ctx).give_to_pullback(args[1], result) || (!ctx.failed() && ctx.out_of_memory());
}

bool take_from_pullback(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 3) return ctx.argument_error("take_from_pullback takes a rule's name, what was kept and what was found");
  result = ctx.runtime->nothing();
  const DataType* shared = nullptr;
  if (kept_memory_of(ctx).take_from_pullback(args[1], args[2], shared)) return true;
  if (!shared || ctx.failed()) return false;
  return refused(ctx, args[0],
                 " was called again before its pullback, and both store into one " + to_string(shared) +
                     ": what the pullback stores into must be another object");
}

bool expect_as_kept(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("expect_as_kept takes a rule's name and what was kept");
  result = ctx.runtime->nothing();
  if (kept_memory_of(ctx).is_as_kept(args[1])) return !ctx.failed();
  return refused(ctx, args[0],
                 " stores for its pullback into memory that another call has overwritten, in a "
                 "derivative of a derivative: the pullback must capture what is new in each call");
}

const NativeInfo rule_memory_natives[] = {
    {"keep_for_pullback", keep_for_pullback, of_rule_memory | effect_allocates, nullptr},
    {"give_to_pullback", give_to_pullback, of_rule_memory | effect_allocates, nullptr},
    {"take_from_pullback", take_from_pullback, of_rule_memory, gives_nothing},
    {"expect_as_kept", expect_as_kept, of_rule_memory, gives_nothing},
};

}  // namespace

void define_rule_memory_natives(Runtime& runtime) {
  for (const NativeInfo& native : rule_memory_natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope::derive
