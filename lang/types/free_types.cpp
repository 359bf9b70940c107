// Frees types that nobody can reach any more. Whoever asks knows which nothing outside the table refers to; here those
// are kept that a type which stays refers to, with all that they refer to. What goes is taken out of the tables, its
// memory is given back, and its address is never used again (type_memory.hpp).
#include "lang/types/type_table_impl.hpp"

namespace slope {

namespace {

class Keeping {
 public:
  Keeping(const std::vector<Type*>& types, const std::vector<TypeName*>& names,
          const std::function<bool(const Type*)>& is_dead, const std::function<bool(const TypeName*)>& is_dead_name) {
    for (const Type* t : types)
      if (is_dead(t)) dead_.insert(t);
    for (const TypeName* name : names)
      if (is_dead_name(name)) dead_.insert(name);
    if (dead_.empty()) return;
    for (const Type* t : types)
      if (!dead_.contains(t)) look_at(*t);
    for (const TypeName* name : names)
      if (!dead_.contains(name)) look_at(*name);
    while (!work_.empty()) {
      const Work next = work_.back();
      work_.pop_back();
      if (next.type) look_at(*next.type);
      if (next.name) look_at(*next.name);
    }
  }
  bool goes(const void* type_or_name) const { return dead_.contains(type_or_name); }
  bool some_go() const { return !dead_.empty(); }

 private:
  struct Work {
    const Type* type;
    const TypeName* name;
  };

  void keep(const Type* t) {
    if (t && dead_.erase(t) != 0) work_.push_back({t, nullptr});
  }
  void keep(const TypeName* name) {
    if (name && dead_.erase(name) != 0) work_.push_back({nullptr, name});
  }
  void look_at(const Type& t) {
    switch (t.kind) {
      case TypeKind::data: {
        auto& d = static_cast<const DataType&>(t);
        keep(d.name);
        for (const Type* parameter : d.params) keep(parameter);
        keep(d.super);
        for (const Field& field : d.fields) keep(field.type);
        break;
      }
      case TypeKind::union_:
        for (const Type* member : static_cast<const UnionType&>(t).members) keep(member);
        break;
      case TypeKind::union_all:
        keep(static_cast<const UnionAllType&>(t).var);
        keep(static_cast<const UnionAllType&>(t).body);
        break;
      case TypeKind::var:
        keep(static_cast<const TypeVar&>(t).lower);
        keep(static_cast<const TypeVar&>(t).upper);
        break;
      case TypeKind::vararg:
        keep(static_cast<const VarargType&>(t).element);
        keep(static_cast<const VarargType&>(t).count);
        break;
      case TypeKind::value:
        look_at(static_cast<const ValueType&>(t).value);
        break;
      case TypeKind::bottom:
        break;
    }
  }
  void look_at(const TypeName& name) {
    keep(name.primary);
    keep(name.wrapper);
    for (const TypeVar* var : name.vars) keep(var);
    for (const Type* field : name.field_types) keep(field);
  }
  // Of a parameter: bits, a type, or a box of the table's with such.
  void look_at(const Value& v) {
    if (!v.defined()) return;
    keep(v.type);
    if (v.type->is_kind) return keep(v.as_type);
    const DataType* type = as_data(v.type);
    if (!type || type->object_kind != DataType::ObjectKind::fields || type->is_mutable || !v.object ||
        (type->storage != Storage::aggregate && type->storage != Storage::reference))
      return;
    for (const Field& field : type->fields) {
      const char* at = v.object->payload() + field.offset;
      if (field.storage == Storage::dynamic) look_at(*reinterpret_cast<const Value*>(at));
      if (field.storage == Storage::reference) look_at(Value(field.type, *reinterpret_cast<const std::int64_t*>(at)));
    }
  }

  std::unordered_set<const void*> dead_;
  std::vector<Work> work_;
};

}  // namespace

void TypeTable::free_types(const std::function<bool(const Type*)>& is_dead,
                           const std::function<bool(const TypeName*)>& is_dead_name) {
  impl_->free_types(is_dead, is_dead_name);
}

void TypeTable::Impl::free_types(const std::function<bool(const Type*)>& is_dead,
                                 const std::function<bool(const TypeName*)>& is_dead_name) {
  if (!unfinished.empty() || completing != 0) return;
  const Keeping kept(made, names, is_dead, is_dead_name);
  if (!kept.some_go()) return;
  const auto goes = [&](const auto* type_or_name) { return kept.goes(type_or_name); };
  data_set.erase_if(goes);
  union_set.erase_if(goes);
  union_all_set.erase_if(goes);
  vararg_set.erase_if(goes);
  value_set.erase_if(goes);
  std::erase_if(pending, goes);
  std::erase_if(inline_levels, [&](const auto& entry) { return goes(entry.first); });
  std::erase_if(put_off, [&](const DataType* type) { return goes(type); });
  for (Order& order : orders)
    if (goes(order.a) || goes(order.b)) order = Order();
  // Names last: a type is destroyed by its own parts alone.
  std::erase_if(made, [&](Type* t) {
    if (!goes(t)) return false;
    destroy(t);
    return true;
  });
  std::erase_if(names, [&](TypeName* name) {
    if (!goes(name)) return false;
    destroy(name);
    return true;
  });
}

void TypeTable::Impl::destroy(Type* t) {
  const auto release = [&](auto* type, std::span<const Type* const> list) {
    using Made = std::remove_pointer_t<decltype(type)>;
    if (memory) memory->remove(sizeof(Made) + table_entry + list.size_bytes());
    if (!list.empty()) types_memory.release(list.data(), list.size_bytes());
    type->~Made();
    types_memory.release(type, sizeof(Made));
  };
  switch (t->kind) {
    case TypeKind::data: {
      auto* d = static_cast<DataType*>(t);
      if (memory && !d->fields.empty()) memory->remove(d->fields.size() * sizeof(Field) + table_entry);
      if (memory && d->trace_map) memory->remove(sizeof(TraceMap) + table_entry);
      delete d->trace_map;
      release(d, d->params);
      break;
    }
    case TypeKind::union_:
      release(static_cast<UnionType*>(t), static_cast<UnionType*>(t)->members);
      break;
    case TypeKind::union_all:
      release(static_cast<UnionAllType*>(t), {});
      break;
    case TypeKind::var:
      release(static_cast<TypeVar*>(t), {});
      break;
    case TypeKind::vararg:
      release(static_cast<VarargType*>(t), {});
      break;
    case TypeKind::value:
      release(static_cast<ValueType*>(t), {});
      break;
    case TypeKind::bottom:
      break;
  }
}

void TypeTable::Impl::destroy(TypeName* name) {
  if (memory) memory->remove(sizeof(TypeName) + table_entry);
  if (name->is_closure) spare_closure_symbol(name->name);
  name->~TypeName();
  types_memory.release(name, sizeof(TypeName));
}

}  // namespace slope
