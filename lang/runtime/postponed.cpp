// Definitions that wait until something looks up their name.
//
// The standard library has thousands of definitions, of which a program uses few. An index (library_index.hpp) says
// what each defines. So an engine starts with none of them made, and with none of their names in Base's table.
//   - A name is entered when it is first looked up: a function with a table whose definitions wait, a type or a
//     constant as a binding whose value waits.
//   - A table is opened, and all its definitions are made in their order, when it is first needed: for a lookup, a list
//     of its methods, or another definition.
//   - Constructors of a type wait with its name until that has been looked up, and then in the type's table.
//
// Why no program can see the difference:
//  1. Methods get the worlds that they would have had. So they are visible to, and too new for, the same callers.
//  2. Signatures are evaluated in the world and the module of the definition.
//  3. A table that is not open has answered no lookup. So nothing has to be ended when it is opened.
//  4. What is defined after the library is made at once, and ends what it changes.
//
// Keyword methods are methods of one function, Base.kwcall, with the called function as their second argument. They are
// made together with the others of their definition. So a lookup in kwcall has two steps: first the table of the second
// argument is opened, or those of all owners of keyword methods when that argument is not a single function.
#include <algorithm>
#include <new>
#include <utility>

#include "lang/runtime/library_names.hpp"
#include "lang/runtime/runtime_impl.hpp"
#include "lang/support/exception_safe.hpp"

namespace slope {

Runtime::Impl::Waiting Runtime::Impl::waiting(std::uint32_t number) const {
  const std::span<const LibraryItem> items = library.items();
  if (number >= items.size()) return regrouped[number - items.size()];
  const LibraryItem& item = items[number];
  return {{item.source, item.statement}, library_world + item.world + 1, item.methods, item.next, item.module};
}

void Runtime::open_library(const LibraryIndex& index) {
  impl_->library = index;
  impl_->library_world = world_;
  impl_->entered.assign(index.names().size(), false);
  world_ += index.worlds();
  base->has_library = true;
  // Constructors of types whose names are Core's. Several names may stand for one type: their items become one list.
  struct Constructors {
    std::uint32_t item;
    MethodTable* table;
  };
  std::vector<Constructors> found;
  const auto take = [&](std::uint32_t number, MethodTable* table) {
    impl_->entered[number] = true;
    for (std::uint32_t at = index.names()[number].first; at != Impl::none_waiting; at = index.items()[at].next)
      found.push_back({at, table});
    if (index.names()[number].has_keywords) impl_->keyword_owners.push_back(table);
  };
  for (const auto& [name, binding] : core->bindings) {
    if (!is_type_value(binding->value)) continue;
    const std::uint32_t number = index.find(name->name);
    if (number == LibraryIndex::none || index.names()[number].kind != LibraryNameKind::function) continue;
    take(number, impl_->table_of(impl_->callee_name(types.type_type(binding->value.as_type))));
  }
  for (std::uint32_t number = 0; number < index.names().size(); ++number)
    if (index.names()[number].kind == LibraryNameKind::any_type)
      take(number, impl_->table_of(types.builtin().type_name));
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.item > b.item; });
  for (const Constructors& one : found) {  // last first
    Impl::Waiting item = impl_->waiting(one.item);
    std::uint32_t& first = one.table->cache->first_waiting;
    item.next = std::exchange(first, static_cast<std::uint32_t>(index.items().size() + impl_->regrouped.size()));
    impl_->regrouped.push_back(item);
  }
}

Binding* Runtime::Impl::enter(std::uint32_t number, const Symbol* name) {
  const LibraryName& what = library.names()[number];
  const bool is_function = what.kind == LibraryNameKind::function;
  auto& names = runtime.base->bindings;
  const auto known = names.find(name);
  if ((!is_function && what.kind != LibraryNameKind::value) || (known != names.end() && known->second)) {
    entered[number] = true;
    return known == names.end() ? nullptr : known->second;  // a statement that ran at the start was first
  }
  // What needs memory comes first: a name is entered whole or not at all.
  const DataType* type = is_function ? runtime.types.function_type(name, runtime.base) : nullptr;
  MethodTable* table = is_function ? table_of(type->name) : nullptr;
  make_room_for_one(keyword_owners);
  Binding& made = bindings.emplace_back();
  names[name] = &made;
  entered[number] = true;
  made.module = runtime.base;
  made.name = name;
  made.exported = what.is_exported != 0;
  if (!is_function) {
    made.waiting = what.first;
    return &made;
  }
  made.value = type->instance;
  made.is_constant = true;
  table->cache->first_waiting = what.first;
  if (what.has_keywords) keyword_owners.push_back(table);
  return &made;
}

Binding* Runtime::enter_library_name(const Symbol* name) {
  const std::uint32_t number = impl_->library.find(name->name);
  return number == LibraryIndex::none || impl_->entered[number] ? nullptr : impl_->enter(number, name);
}

void Runtime::enter_all_library_names() {
  for (std::uint32_t number = 0; number < impl_->entered.size(); ++number) {
    const LibraryName& what = impl_->library.names()[number];
    if (!impl_->entered[number]) impl_->enter(number, symbol(impl_->library.text(what)));
    // Of types of Core too, whose constructors were taken when the library was opened.
    if (what.is_exported) base->exported_names.insert(symbol(impl_->library.text(what)));
  }
}

bool Runtime::library_exports(std::string_view name) const {
  const std::uint32_t number = impl_->library.find(name);
  return number != LibraryIndex::none && impl_->library.names()[number].is_exported != 0;
}

bool Runtime::is_library_module(std::string_view name) const {
  const std::uint32_t number = impl_->library.find(name);
  return number != LibraryIndex::none && impl_->library.names()[number].is_module != 0;
}

bool Runtime::Impl::make(const MethodTable* table, const Binding* binding, const Waiting& item) {
  const CollectionPause pause(runtime.heap);
  // Whoever asks may have an error pending, or be in a generator.
  Context context;
  context.runtime = &runtime;
  context.heap = &runtime.heap;
  context.tapes = runtime.context.tapes;
  context.world = item.first_world - 1;
  bool made = false;
  World end = 0;
  {
    const Restored postponed_world(next_postponed_world, item.first_world);
    const Restored type(making_type, binding != nullptr);
    const std::size_t outer = being_made.size();
    if (binding) being_made.push_back(binding);
    const Finally leave([&] { being_made.resize(outer); });
    made = runtime.hooks().define_postponed(context, item.what);
    end = next_postponed_world;
  }
  const World expected = item.first_world + item.methods;
  if (made && end <= expected) return true;
  if (!made && context.error.type == runtime.types.builtin().out_of_memory_error)
    throw std::bad_alloc();  // again later
  std::string why = "internal error: a definition of " + (table ? table->name : binding->name)->name;
  why += " in the standard library ";
  why += made ? "gave more methods than its index says"
              : "failed: " + runtime.exception_text(context, context.take_error());
  if (runtime.sink.err) runtime.sink.err(why + "\n");
  return false;
}

bool Runtime::Impl::is_being_made(std::uint32_t number) const {
  const std::string_view name = library.text(library.names()[number]);
  return std::any_of(being_made.begin(), being_made.end(), [&](const Binding* one) { return one->name->name == name; });
}

void Runtime::Impl::open(MethodTable& table) {
  MethodTable::Cache& cache = *table.cache;
  std::uint32_t at = std::exchange(cache.first_waiting, none_waiting);
  const Finally wait_again([&] {  // when an allocation has thrown
    if (at != none_waiting) cache.first_waiting = at;
  });
  while (at != none_waiting) {
    const Waiting item = waiting(at);
    make(&table, nullptr, item);
    at = item.next;
  }
}

// The first item gives the name its value; the others, of a type, are constructors and wait on for its table to be
// asked.
void Runtime::make_postponed(Binding& binding) {
  if (binding.waiting == Impl::none_waiting) return;
  const Impl::Waiting item = impl_->waiting(binding.waiting);
  // A module that is being made asks for names that Base imports from it: they mean nothing there yet.
  if (item.module != LibraryIndex::none && impl_->is_being_made(item.module)) return;
  std::uint32_t again = std::exchange(binding.waiting, Impl::none_waiting);
  const Finally wait_again([&] {  // when an allocation has thrown
    if (again != Impl::none_waiting) binding.waiting = again;
  });
  const bool made = impl_->make(nullptr, &binding, item);
  again = Impl::none_waiting;
  if (!made || !is_type_value(binding.value)) return;
  MethodTable& table = *impl_->table_of(impl_->callee_name(types.type_type(binding.value.as_type)));
  const std::uint32_t number = impl_->library.find(binding.name->name);
  if (number != LibraryIndex::none && impl_->library.names()[number].has_keywords)
    impl_->keyword_owners.push_back(&table);
  if (item.next == Impl::none_waiting) return;
  if (!table.cache->asked) {
    table.cache->first_waiting = item.next;  // nothing else waits there
    return;
  }
  for (std::uint32_t at = item.next; at != Impl::none_waiting;) {
    const Impl::Waiting constructor = impl_->waiting(at);
    impl_->make(nullptr, &binding, constructor);
    at = constructor.next;
  }
}

void Runtime::Impl::ask(MethodTable& table) {
  table.cache->asked = true;
  if (table.cache->first_waiting != none_waiting) open(table);
}

void Runtime::Impl::ask_for_call(MethodTable& table, const DataType* call_types) {
  ask(table);
  if (!is_keyword_call(table)) return;
  const Type* called = call_types->params.size() > 2 ? call_types->params[2] : nullptr;
  if (!called || !callee_is_leaf(called)) return ask_keyword_owners();
  if (const TypeName* name = callee_name(called); name->methods) ask(*name->methods);
}

void Runtime::Impl::ask_for_all(MethodTable& table) {
  ask(table);
  if (is_keyword_call(table)) ask_keyword_owners();
}

void Runtime::Impl::open_for_definition(MethodTable& table, const Type* signature) {
  open(table);
  if (!is_keyword_call(table)) return;
  const DataType* tuple = signature_tuple(signature);
  const Type* called = tuple && tuple->params.size() > 2 ? tuple->params[2] : nullptr;
  if (!called || !callee_is_leaf(called)) return;  // no postponed definition has such a method
  if (const TypeName* name = callee_name(called); name->methods) open(*name->methods);
}

bool Runtime::Impl::is_keyword_call(const MethodTable& table) {
  if (!keyword_call) {
    const Binding* binding = library_binding(runtime, KnownName::kwcall);
    auto* type = binding && binding->value.defined() ? as_data(binding->value.type) : nullptr;
    if (!type) return false;
    keyword_call = table_of(type->name);
  }
  return &table == keyword_call;
}

void Runtime::Impl::ask_keyword_owners() {
  for (std::uint32_t number = 0; number < entered.size(); ++number) {
    const LibraryName& name = library.names()[number];
    if (!name.has_keywords || entered[number]) continue;
    if (Binding* binding = enter(number, runtime.symbol(library.text(name)))) runtime.make_postponed(*binding);
  }
  for (MethodTable* owner : std::exchange(keyword_owners, {})) ask(*owner);
}

void Runtime::define_all_postponed() {
  enter_all_library_names();
  for (std::size_t i = 0; i < impl_->bindings.size(); ++i) make_postponed(impl_->bindings[i]);
  for (std::size_t i = 0; i < impl_->tables.size(); ++i) impl_->ask(impl_->tables[i]);  // more come meanwhile
}

}  // namespace slope
