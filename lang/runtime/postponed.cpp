// Definitions that wait until somebody asks for their function.
//
// The standard library has thousands of methods, of which a program uses few. Making a method means evaluating the
// types of its signature, which is most of what loading costs; so a definition whose callee is known and whose table
// nobody has looked into yet is only noted in that table, with the worlds that its methods begin. The table is opened,
// and all its definitions are made in their order, when it is first asked: for a lookup, a list of its methods, or
// another definition.
//
// Why nobody can tell the difference:
//  1. Methods get the worlds that they would have had, so they are visible to, and too new for, the same callers.
//  2. Signatures are evaluated in the world in which the definition stood, in its module.
//  3. No answer was given from a table that is not open, so nothing has to be ended when it is opened.
//  4. A table that was asked takes no more notes: definitions after that are made at once, and end what they change.
//
// Keyword methods are methods of one function, Base.kwcall, with the called function as their second argument. They are
// made together with the others of their definition, so kwcall is asked in two steps: first the table of the second
// argument is opened, or those of all owners of keyword methods when that argument is not a single function.
#include <utility>

#include "lang/runtime/runtime_impl.hpp"

namespace slope {

bool Runtime::postpone(const Type* callee, std::uint32_t methods, bool has_keywords, Postponed what) {
  const BuiltinTypes& b = types.builtin();
  auto* data = as_data(callee);
  if (!data || !impl_->callee_is_leaf(callee) || !define_postponed) return false;
  TypeName* name = impl_->callee_name(callee);
  // Calls look into the tables of types of types without the callee being of that name.
  if (!name->is_function && (!data->is_type_of_type || name == b.data_type->name || name == b.union_all->name ||
                             name == b.union_->name || name == b.any->name))
    return false;
  MethodTable* table = impl_->table_of(name);
  MethodTable::Cache& cache = *table->cache;
  if (cache.asked) return false;
  auto& waiting = impl_->waiting;
  const auto index = static_cast<std::uint32_t>(waiting.size());
  waiting.push_back({what, world_ + 1, methods, Impl::none_waiting});
  world_ += methods;
  (cache.first_waiting == Impl::none_waiting ? cache.first_waiting : waiting[cache.last_waiting].next) = index;
  cache.last_waiting = index;
  if (has_keywords && (impl_->keyword_owners.empty() || impl_->keyword_owners.back() != table))
    impl_->keyword_owners.push_back(table);
  return true;
}

void Runtime::Impl::open(MethodTable& table) {
  MethodTable::Cache& cache = *table.cache;
  std::uint32_t at = std::exchange(cache.first_waiting, none_waiting);
  if (at == none_waiting) return;
  const CollectionPause pause(runtime.heap);
  // Whoever asks may have an error pending, or be in a generator.
  Context context;
  context.runtime = &runtime;
  context.heap = &runtime.heap;
  context.tapes = runtime.context.tapes;
  for (; at != none_waiting; at = waiting[at].next) {
    const Waiting item = waiting[at];
    context.world = item.first_world - 1;
    const World outer = std::exchange(next_postponed_world, item.first_world);
    const bool made = runtime.define_postponed(context, item.what);
    const World end = std::exchange(next_postponed_world, outer);
    if (made && end == item.first_world + item.methods) continue;
    std::string why = "internal error: a definition of " + table.name->name + " in the standard library ";
    why += made ? "gave another number of methods" : "failed: " + runtime.exception_text(context, context.take_error());
    if (runtime.sink.err) runtime.sink.err(why + "\n");
  }
}

void Runtime::Impl::ask(MethodTable& table) {
  table.cache->asked = true;
  if (table.cache->first_waiting != none_waiting) open(table);
}

void Runtime::Impl::ask_for_call(MethodTable& table, const DataType* call_types) {
  ask(table);
  if (keyword_owners.empty() || !is_keyword_call(table)) return;
  const Type* called = call_types->params.size() > 2 ? call_types->params[2] : nullptr;
  if (!called || !callee_is_leaf(called)) return ask_keyword_owners();
  if (const TypeName* name = callee_name(called); name->methods) ask(*name->methods);
}

void Runtime::Impl::ask_for_all(MethodTable& table) {
  ask(table);
  if (!keyword_owners.empty() && is_keyword_call(table)) ask_keyword_owners();
}

void Runtime::Impl::open_for_definition(MethodTable& table, const Type* signature) {
  open(table);
  if (keyword_owners.empty() || !is_keyword_call(table)) return;
  const DataType* tuple = signature_tuple(signature);
  const Type* called = tuple && tuple->params.size() > 2 ? tuple->params[2] : nullptr;
  if (!called || !callee_is_leaf(called)) return;  // no postponed definition has such a method
  if (const TypeName* name = callee_name(called); name->methods) open(*name->methods);
}

bool Runtime::Impl::is_keyword_call(const MethodTable& table) {
  if (!keyword_call) {
    const Binding* binding = runtime.base->find(runtime.symbol("kwcall"));
    auto* type = binding && binding->value.defined() ? as_data(binding->value.type) : nullptr;
    if (!type) return false;
    keyword_call = table_of(type->name);
  }
  return &table == keyword_call;
}

void Runtime::Impl::ask_keyword_owners() {
  for (MethodTable* owner : std::exchange(keyword_owners, {})) ask(*owner);
}

void Runtime::define_all_postponed() {
  for (MethodTable& table : impl_->tables) impl_->ask(table);
}

}  // namespace slope
