// Names of the library that a program may take for itself after it has used them.
//
// Julia's own Base is small beside this library, whose standard packages and further functions are all seen without
// being named. A program that uses `norm` in a function and defines `norm` below it means its own. So code outside the
// library that names something beyond Julia's Base (LibraryName::gives_way) refers to an alias, a constant of its own
// module with the library's value. When the module defines or imports the name, the alias becomes or follows that, and
// what was derived from the old value ends.
#include "lang/runtime/library_index.hpp"
#include "lang/runtime/runtime_impl.hpp"

namespace slope {

namespace {

bool is_in_library(const Runtime& runtime, const Module* module) {
  for (; module; module = module->parent)
    if (module == runtime.base || module == runtime.core) return true;
  return false;
}

}  // namespace

Binding* Runtime::borrowed(Module& module, const Binding& source) {
  if (source.module != base || !source.is_constant || !source.value.defined() || source.open_to_methods) return nullptr;
  if (source.value.type == types.builtin().module || is_in_library(*this, &module)) return nullptr;
  const std::uint32_t number = impl_->library.find(source.name->name);
  if (number == LibraryIndex::none || !impl_->library.names()[number].gives_way) return nullptr;
  auto& aliases = impl_->borrowed[&module];
  if (const auto at = aliases.find(source.name); at != aliases.end()) return at->second;
  Binding* alias = nullptr;
  if (const auto at = module.bindings.find(source.name); at != module.bindings.end()) {
    if (at->second->module != &module || at->second->declared) return nullptr;
    alias = at->second;  // the trace of a definition that failed; code may refer to it
    module.bindings.erase(at);
  } else {
    alias = impl_->new_binding(&module, source.name);
  }
  alias->value = source.value;
  alias->is_constant = true;
  aliases.emplace(source.name, alias);
  if (alias->version != 0) binding_changed(alias);
  return alias;
}

void Runtime::renew_borrowed(Module& module) {
  const auto at = impl_->borrowed.find(&module);
  if (at == impl_->borrowed.end()) return;
  for (auto& [name, alias] : at->second) {
    const Binding* now = resolve(&module, name);
    const Value value = now && now->is_constant ? now->value : Value();
    if (value.defined() ? alias->value.defined() && alias->value.identical(value) : !alias->value.defined()) continue;
    alias->value = value;
    binding_changed(alias);
  }
}

Binding* Runtime::Impl::take_back(const Module& module, const Symbol* name) {
  const auto aliases = borrowed.find(&module);
  if (aliases == borrowed.end()) return nullptr;
  const auto at = aliases->second.find(name);
  if (at == aliases->second.end()) return nullptr;
  Binding* alias = at->second;
  aliases->second.erase(at);
  alias->value = Value();
  alias->is_constant = false;
  alias->exported = module.exports(name);
  runtime.binding_changed(alias);
  return alias;
}

}  // namespace slope
