// Nominal types: their definition, supertypes and the layout of fields.
//
// A DataType may be named before its TypeName is defined (a struct's own fields name it). Such types wait in `pending`
// and are completed when the definition comes. A field whose type is still being laid out (an immutable that contains
// itself) is stored as a reference, as it must be on the heap.
#include <algorithm>

#include "lang/support/exception_safe.hpp"
#include "lang/support/tuning.hpp"
#include "lang/types/type_table_impl.hpp"

namespace slope {

namespace {
constexpr int max_layout_depth = tuning::layout_depth;
constexpr std::size_t most_layouts_at_once = 4096;  // of types whose fields are of new types, and so on

std::uint64_t align_up(std::uint64_t n, std::uint32_t align) { return (n + align - 1) / align * align; }

bool fields_of_named_tuple(const DataType* type, std::vector<const Symbol*>& names, const DataType*& types) {
  if (type->params.size() != 2) return false;
  auto* value = as_value(type->params[0]);
  types = as_data(type->params[1]);
  if (!value || !types || !types->is_tuple) return false;
  auto* names_type = as_data(value->value.type);
  if (!names_type || names_type->fields.size() != types->params.size()) return false;
  if (!types->params.empty() && as_vararg(types->params.back())) return false;
  for (const Field& field : names_type->fields) {
    const Symbol* symbol;
    std::memcpy(&symbol, value->value.object->payload() + field.offset, sizeof symbol);
    names.push_back(symbol);
  }
  return true;
}
}  // namespace

std::uint32_t stored_size(const Type* t) {
  switch (storage_of(t)) {
    case Storage::singleton:
      return 0;
    case Storage::bits:
    case Storage::aggregate:
      return as_data(t)->size;
    case Storage::reference:
      return 8;
    case Storage::dynamic:
      return 16;
  }
  return 16;
}

std::uint32_t stored_align(const Type* t) {
  switch (storage_of(t)) {
    case Storage::singleton:
      return 1;
    case Storage::bits:
    case Storage::aggregate:
      return as_data(t)->align;
    default:
      return 8;
  }
}

int DataType::field_index(const Symbol* field_name) const {
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == field_name) return static_cast<int>(i);
  return -1;
}

void TypeTable::Impl::complete(DataType* d) {
  TypeName* n = d->name;
  d->is_abstract = n->is_abstract;
  d->is_mutable = n->is_mutable;
  d->is_tuple = n == builtin.tuple_name;
  d->is_named_tuple = n == builtin.named_tuple_name;
  d->is_type_of_type = n == builtin.type_name;
  if (!n->defined) {
    pending.push_back(d);
    return;
  }
  if (!d->super) {
    if (d->is_tuple || d == n->primary || n->vars.empty()) {
      d->super = n->primary && n->primary->super ? n->primary->super : builtin.any;
    } else {
      d->super = as_data(substitute(n->primary->super, n->vars, d->params));
    }
  }
  if (d->is_abstract || d->has_layout) return;
  if (puts_off_layouts()) return;  // `find_or_make` asks again
  if (!lay_out(d)) pending.push_back(d);
}

void TypeTable::Impl::complete_or_note(DataType* d) {
  ++completing;
  bool is_complete = false;
  const Finally leave([&] {
    --completing;
    if (!is_complete) unfinished.push_back(d);
  });
  complete(d);
  is_complete = true;
}

void TypeTable::Impl::complete_unfinished() {
  while (!unfinished.empty()) {
    DataType* const d = unfinished.back();
    unfinished.pop_back();
    complete_or_note(d);
  }
}

// The fields in order, not placed yet. `concrete` becomes false where their types leave something open.
bool TypeTable::Impl::list_fields(DataType* d, std::vector<Field>& fields, bool& concrete) {
  TypeName* n = d->name;
  fields.reserve(d->is_tuple ? d->params.size() : n->field_types.size());
  if (d->is_tuple) {
    for (const Type* element : d->params) {
      if (as_vararg(element) || as_value(element)) {
        concrete = false;
        break;
      }
      fields.push_back(Field{nullptr, element});
      if (auto* e = as_data(element); e && !e->is_concrete && !e->has_free_vars && !e->name->defined) return false;
      if (auto* e = as_data(element); e && !e->has_layout && !e->has_free_vars && !e->is_abstract) {
        if (!lay_out_part(e)) return false;
      }
      // An element that is just being laid out (its own field mentions this tuple) will be concrete.
      bool in_progress = std::find(laying_out.begin(), laying_out.end(), element) != laying_out.end() ||
                         put_off.contains(as_data(element));
      if (!slope::is_concrete(element) && !in_progress) concrete = false;
    }
  } else if (d->is_named_tuple) {
    std::vector<const Symbol*> names;
    const DataType* types = nullptr;
    if (!fields_of_named_tuple(d, names, types)) {
      concrete = false;
    } else {
      for (std::size_t i = 0; i < names.size(); ++i) fields.push_back(Field{names[i], types->params[i]});
    }
  } else {
    for (std::size_t i = 0; i < n->field_types.size(); ++i) {
      const Type* type =
          n->vars.empty() || d == n->primary ? n->field_types[i] : substitute(n->field_types[i], n->vars, d->params);
      fields.push_back(Field{n->field_names[i], type});
      fields.back().is_const = n->field_const.size() > i && n->field_const[i];
    }
  }
  return true;
}

// `struct B{T}; x::B{B{T}}; end` has fields of new types without end.
bool TypeTable::Impl::puts_off_layouts() const {
  return layout_depth > max_layout_depth || (layout_depth > 0 && layouts > most_layouts_at_once);
}

bool TypeTable::Impl::lay_out_part(const DataType* type) {
  if (!puts_off_layouts()) return lay_out(const_cast<DataType*>(type));
  if (std::find(laying_out.begin(), laying_out.end(), type) == laying_out.end() && type->name != builtin.type_name &&
      !type->name->is_primitive)
    put_off.insert(type);
  return true;
}

bool TypeTable::Impl::lay_out(DataType* d) {
  if (d->has_layout) return true;
  if (std::find(laying_out.begin(), laying_out.end(), d) != laying_out.end()) return true;
  TypeName* n = d->name;
  if (n == builtin.type_name) return true;  // Type{T}: abstract in effect

  // Primitive and opaque types have their storage from the definition.
  if (n->is_primitive) {
    d->storage = Storage::bits;
    d->size = d->align = n->primitive_bits / 8;
    d->is_isbits = d->is_concrete = d->has_layout = !d->has_free_vars;
    return true;
  }
  struct Scope {
    Impl& impl;
    Scope(Impl& i, const DataType* type) : impl(i) {
      impl.laying_out.push_back(type);
      impl.layouts = impl.layout_depth++ == 0 ? 0 : impl.layouts + 1;
    }
    ~Scope() {
      impl.laying_out.pop_back();
      --impl.layout_depth;
    }
  } scope(*this, d);

  std::vector<Field> fields;
  bool concrete = !d->has_free_vars;
  if (!list_fields(d, fields, concrete)) return false;

  bool all_bits = true;
  std::uint64_t offset = 0;
  std::uint32_t align = 1;
  std::uint32_t levels = 0;  // of aggregates inside
  for (Field& field : fields) {
    auto* type = as_data(field.type);
    if (concrete && type && !type->has_free_vars && !type->has_layout && !type->is_abstract &&
        type->name != builtin.type_name) {
      if (!type->name->defined && std::find(laying_out.begin(), laying_out.end(), type) == laying_out.end())
        return false;
      if (!lay_out_part(type)) return false;
    }
    bool in_progress =
        type && !type->has_layout && !type->is_abstract && !type->has_free_vars &&
        (std::find(laying_out.begin(), laying_out.end(), type) != laying_out.end() || put_off.contains(type));
    field.storage = in_progress ? Storage::reference : storage_of(field.type);
    field.size = in_progress ? 8 : stored_size(field.type);
    std::uint32_t field_align = in_progress ? 8 : stored_align(field.type);
    all_bits &= field.storage != Storage::reference && field.storage != Storage::dynamic;
    if (field.storage == Storage::aggregate) {
      const auto inner = inline_levels.find(type);
      levels = std::max(levels, inner == inline_levels.end() ? 1 : inner->second + 1);
    }
    offset = align_up(offset, field_align);
    field.offset = static_cast<std::uint32_t>(offset);  // many fields of at most inline_bytes: far from wrapping
    offset += field.size;
    align = std::max(align, field_align);
  }
  if (d->fields.empty() && !fields.empty()) count(fields.size() * sizeof(Field));
  d->fields = std::move(fields);
  d->initialized_fields =
      d->is_tuple || d->is_named_tuple ? static_cast<std::uint32_t>(d->fields.size()) : n->min_initialized;
  if (!concrete) {
    d->storage = Storage::dynamic;
    return true;
  }
  d->is_concrete = d->has_layout = true;
  d->size = static_cast<std::uint32_t>(align_up(offset, align));
  d->align = align;
  if (n == builtin.array_name) d->object_kind = DataType::ObjectKind::array;
  if (d->is_mutable) {
    d->storage = Storage::reference;
  } else if (all_bits && d->size == 0 && !put_off.contains(d)) {
    d->storage = Storage::singleton;
    d->instance = Value(d, std::int64_t{0});
  } else {
    // Also of immutables that `new` may leave incomplete: missing plain bits are arbitrary, missing references
    // undefined.
    // Large ones lie on the heap, and others hold them by reference: sizes stay small numbers, and nothing copies
    // megabytes word by word.
    const bool is_inline =
        all_bits && d->size <= most_inline_bytes && levels < most_inline_levels && !put_off.contains(d);
    d->storage = is_inline ? Storage::aggregate : Storage::reference;
    if (is_inline && levels != 0) inline_levels.emplace(d, levels);
  }
  d->is_isbits = d->storage == Storage::singleton || d->storage == Storage::aggregate;
  return true;
}

void TypeTable::Impl::retry_pending() {
  unfinished.reserve(unfinished.size() + completing + pending.size() + 1);
  std::vector<DataType*> waiting = std::move(pending);
  pending.clear();
  std::reverse(waiting.begin(), waiting.end());
  const Finally keep_rest([&] { unfinished.insert(unfinished.end(), waiting.begin(), waiting.end()); });
  for (; !waiting.empty(); waiting.pop_back()) complete(waiting.back());
}

void TypeTable::Impl::name_defined(TypeName* name) {
  name->defined = true;
  if (name->primary) complete(const_cast<DataType*>(name->primary));
  retry_pending();
}

std::vector<TypeName*> TypeTable::names() const { return impl_->names; }

std::size_t TypeTable::name_count() const { return impl_->names_made; }

std::vector<TypeName*> TypeTable::names_after(std::size_t count) const {
  const std::size_t newer = std::min(impl_->names_made - count, impl_->names.size());
  return {impl_->names.end() - static_cast<std::ptrdiff_t>(newer), impl_->names.end()};
}

std::uint32_t TypeTable::newest_id() const { return impl_->next_id - 1; }

std::vector<const Type*> TypeTable::types_after(std::uint32_t id) const {
  const auto first = std::upper_bound(impl_->made.begin(), impl_->made.end(), id,
                                      [](std::uint32_t known, const Type* t) { return known < t->id; });
  return {first, impl_->made.end()};
}

TypeName* TypeTable::new_name(const Symbol* name, Module* module) {
  std::vector<TypeName*>& names = impl_->names;
  if (names.size() == names.capacity()) names.reserve(2 * names.size() + 64);
  impl_->count(sizeof(TypeName));
  auto* n = new (impl_->types_memory.allocate(sizeof(TypeName))) TypeName;
  names.push_back(n);
  ++impl_->names_made;
  n->name = name;
  n->module = module;
  return n;
}

void TypeTable::declare(TypeName* name, std::span<const TypeVar* const> vars) {
  if (name->primary) return;
  name->vars.assign(vars.begin(), vars.end());
  std::vector<const Type*> params(vars.begin(), vars.end());
  name->primary = impl_->find_or_make(name, params);
  const Type* wrapper = name->primary;
  for (std::size_t i = vars.size(); i-- > 0;) wrapper = union_all(vars[i], wrapper);
  name->wrapper = wrapper;
}

void TypeTable::define_abstract(TypeName* name, std::span<const TypeVar* const> vars, const Type* super) {
  declare(name, vars);
  name->is_abstract = true;
  auto* primary = const_cast<DataType*>(name->primary);
  primary->super = as_data(super) ? as_data(super) : impl_->builtin.any;
  primary->is_abstract = true;
  impl_->name_defined(name);
}

void TypeTable::define_primitive(TypeName* name, const Type* super, std::uint32_t bits) {
  declare(name, {});
  name->is_primitive = true;
  name->primitive_bits = bits;
  auto* primary = const_cast<DataType*>(name->primary);
  primary->super = as_data(super) ? as_data(super) : impl_->builtin.any;
  impl_->name_defined(name);
}

void TypeTable::define_struct(TypeName* name, std::span<const TypeVar* const> vars, const Type* super,
                              std::span<const Symbol* const> field_names, std::span<const Type* const> field_types,
                              bool is_mutable, std::uint32_t min_initialized) {
  declare(name, vars);
  name->is_mutable = is_mutable;
  name->field_names.assign(field_names.begin(), field_names.end());
  name->field_types.assign(field_types.begin(), field_types.end());
  if (name->field_const.size() != field_names.size()) name->field_const.assign(field_names.size(), false);
  name->min_initialized = min_initialized;
  auto* primary = const_cast<DataType*>(name->primary);
  primary->super = as_data(super) ? as_data(super) : impl_->builtin.any;
  primary->is_mutable = is_mutable;
  impl_->name_defined(name);
}

const DataType* TypeTable::function_type(const Symbol* name, Module* module) {
  TypeName* n = new_name(name, module);
  n->is_function = true;
  define_struct(n, {}, impl_->builtin.function, {}, {}, false, 0);
  return n->primary;
}

const Symbol* TypeTable::Impl::closure_symbol(const Symbol* stem) {
  if (const auto spare = spare_closure_names.find(stem); spare != spare_closure_names.end() && !spare->second.empty()) {
    const Symbol* const name = spare->second.back();
    spare->second.pop_back();
    return name;
  }
  return symbols.intern(stem->name + std::to_string(++closures_named));
}

void TypeTable::Impl::spare_closure_symbol(const Symbol* name) noexcept {
  try {
    const std::string_view text = name->name;
    spare_closure_names[symbols.intern(text.substr(0, text.find_last_not_of("0123456789") + 1))].push_back(name);
  } catch (const std::bad_alloc&) {  // the next closure gets a new one
  }
}

TypeName* TypeTable::closure_name(const Symbol* name, Module* module, std::span<const Symbol* const> captures) {
  TypeName* n = new_name(impl_->closure_symbol(name), module);
  n->is_function = n->is_closure = true;
  std::vector<const TypeVar*> vars;
  std::vector<const Type*> types;
  for (std::size_t i = 0; i < captures.size(); ++i) {
    vars.push_back(var(impl_->symbols.intern("T" + std::to_string(i + 1)), nullptr, nullptr));
    types.push_back(vars.back());
  }
  define_struct(n, vars, impl_->builtin.function, captures, types, false, static_cast<std::uint32_t>(captures.size()));
  return n;
}

}  // namespace slope
