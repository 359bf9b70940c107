// Definitions that wait until somebody asks for their function.
//
// The standard library has thousands of methods, of which a program uses few. Making a method means evaluating the
// types of its signature, which is most of what loading costs; so a definition whose callee is known and whose table
// nobody has looked into yet is only noted in that table, with the worlds that its methods begin. The table is opened,
// and all its definitions are made in their order, when it is first asked: for a lookup, a list of its methods, or
// another definition.
//
// So it is with types and constants: the name is there, and what it means is made when somebody looks it up.
// Constructors that are defined for a type nobody has looked up wait with its name.
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
  impl_->note(cache.first_waiting, cache.last_waiting, what, methods);
  if (has_keywords && (impl_->keyword_owners.empty() || impl_->keyword_owners.back() != table))
    impl_->keyword_owners.push_back(table);
  return true;
}

void Runtime::postpone(Binding& binding, std::uint32_t methods, Postponed what) {
  std::uint32_t last = binding.waiting;
  if (last != Impl::none_waiting)
    while (impl_->waiting[last].next != Impl::none_waiting) last = impl_->waiting[last].next;
  impl_->note(binding.waiting, last, what, methods);
}

void Runtime::Impl::note(std::uint32_t& first, std::uint32_t& last, Postponed what, std::uint32_t methods) {
  const auto index = static_cast<std::uint32_t>(waiting.size());
  waiting.push_back({what, runtime.world_ + 1, methods, none_waiting});
  runtime.world_ += methods;
  (first == none_waiting ? first : waiting[last].next) = index;
  last = index;
}

bool Runtime::Impl::make(const MethodTable* table, const Binding* binding, const Waiting& item) {
  const CollectionPause pause(runtime.heap);
  // Whoever asks may have an error pending, or be in a generator.
  Context context;
  context.runtime = &runtime;
  context.heap = &runtime.heap;
  context.tapes = runtime.context.tapes;
  context.world = item.first_world - 1;
  const World outer = std::exchange(next_postponed_world, item.first_world);
  const bool outer_type = std::exchange(making_type, binding != nullptr);
  const bool made = runtime.define_postponed(context, item.what);
  making_type = outer_type;
  const World end = std::exchange(next_postponed_world, outer);
  const World expected = item.first_world + item.methods;
  if (made && (binding ? end <= expected : end == expected)) return true;
  std::string why = "internal error: a definition of " + (table ? table->name : binding->name)->name;
  why += " in the standard library ";
  why += made ? "gave another number of methods" : "failed: " + runtime.exception_text(context, context.take_error());
  if (runtime.sink.err) runtime.sink.err(why + "\n");
  return false;
}

void Runtime::Impl::open(MethodTable& table) {
  MethodTable::Cache& cache = *table.cache;
  for (std::uint32_t at = std::exchange(cache.first_waiting, none_waiting); at != none_waiting; at = waiting[at].next)
    make(&table, nullptr, Waiting(waiting[at]));
}

// The first item gives the name its value; the others, of a type, are constructors and wait on for its table to be
// asked.
void Runtime::make_postponed(Binding& binding) {
  const std::uint32_t first = std::exchange(binding.waiting, Impl::none_waiting);
  if (first == Impl::none_waiting) return;
  const Impl::Waiting item = impl_->waiting[first];
  if (!impl_->make(nullptr, &binding, item) || item.next == Impl::none_waiting) return;
  MethodTable& table = *method_table(types.type_type(binding.value.as_type));
  if (table.cache->asked) {
    for (std::uint32_t at = item.next; at != Impl::none_waiting; at = impl_->waiting[at].next)
      impl_->make(nullptr, &binding, Impl::Waiting(impl_->waiting[at]));
    return;
  }
  // Nothing else waits there: definitions for a type that nobody has looked up are noted with its name.
  MethodTable::Cache& cache = *table.cache;
  cache.first_waiting = item.next;
  cache.last_waiting = item.next;
  while (impl_->waiting[cache.last_waiting].next != Impl::none_waiting)
    cache.last_waiting = impl_->waiting[cache.last_waiting].next;
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
  for (std::size_t i = 0; i < impl_->bindings.size(); ++i) make_postponed(impl_->bindings[i]);
  for (MethodTable& table : impl_->tables) impl_->ask(table);
}

}  // namespace slope
