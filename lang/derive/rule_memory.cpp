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

#include "lang/derive/derivatives.hpp"
#include "lang/derive/kept_memory.hpp"
#include "lang/derive/natives/call.hpp"
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
