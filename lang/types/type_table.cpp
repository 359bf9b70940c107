// Construction of types: hash-consing and normalisation. Layout of fields is in type_table_layout.cpp, substitution and
// application in type_table_apply.cpp.
#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "lang/types/subtype.hpp"
#include "lang/types/type_table_impl.hpp"
#include "lang/types/walk.hpp"

namespace slope {

namespace {

std::uint64_t hash_list(std::uint64_t seed, std::span<const Type* const> list) {
  for (const Type* t : list) seed = mix_hash(seed, t->id);
  return seed;
}

// The position of a bound variable counted from the innermost binder, or -1 when it is free.
int position(const std::vector<const TypeVar*>& bound, const TypeVar* var) {
  for (std::size_t i = bound.size(); i-- > 0;)
    if (bound[i] == var) return static_cast<int>(bound.size() - 1 - i);
  return -1;
}

// A hash that does not depend on which variables are bound, only on where they stand.
std::uint64_t alpha_hash(const Type* t, std::vector<const TypeVar*>& bound) {
  if (!t->has_free_vars) return t->id;
  std::uint64_t h = static_cast<std::uint64_t>(t->kind) + 77;
  switch (t->kind) {
    case TypeKind::var: {
      int at = position(bound, as_var(t));
      return at < 0 ? t->id : mix_hash(h, 1000003u + static_cast<unsigned>(at));
    }
    case TypeKind::data:
      h = mix_hash(h, as_data(t)->name->primary ? as_data(t)->name->primary->id : 0);
      for (const Type* p : as_data(t)->params) h = mix_hash(h, alpha_hash(p, bound));
      return h;
    case TypeKind::union_: {
      std::uint64_t sum = 0;  // members are sorted by id, which is not stable under renaming
      for (const Type* m : as_union(t)->members) sum += mix_hash(11, alpha_hash(m, bound));
      return mix_hash(h, sum);
    }
    case TypeKind::union_all: {
      auto* u = as_union_all(t);
      h = mix_hash(h, alpha_hash(u->var->lower, bound));
      h = mix_hash(h, alpha_hash(u->var->upper, bound));
      bound.push_back(u->var);
      h = mix_hash(h, alpha_hash(u->body, bound));
      bound.pop_back();
      return h;
    }
    case TypeKind::vararg:
      h = mix_hash(h, alpha_hash(as_vararg(t)->element, bound));
      return as_vararg(t)->count ? mix_hash(h, alpha_hash(as_vararg(t)->count, bound)) : h;
    default:
      return t->id;
  }
}

bool alpha_equal(const Type* a, const Type* b, std::vector<const TypeVar*>& in_a, std::vector<const TypeVar*>& in_b) {
  if (!a->has_free_vars || !b->has_free_vars) return a == b;
  if (a->kind != b->kind) return false;
  switch (a->kind) {
    case TypeKind::var: {
      int at = position(in_a, as_var(a));
      return at == position(in_b, as_var(b)) && (at >= 0 || a == b);
    }
    case TypeKind::data: {
      auto *x = as_data(a), *y = as_data(b);
      if (x->name != y->name || x->params.size() != y->params.size()) return false;
      for (std::size_t i = 0; i < x->params.size(); ++i)
        if (!alpha_equal(x->params[i], y->params[i], in_a, in_b)) return false;
      return true;
    }
    case TypeKind::union_: {
      auto *x = as_union(a), *y = as_union(b);
      if (x->members.size() != y->members.size()) return false;
      std::vector<bool> used(y->members.size());
      for (const Type* m : x->members) {
        bool found = false;
        for (std::size_t i = 0; i < used.size() && !found; ++i)
          if (!used[i] && alpha_equal(m, y->members[i], in_a, in_b)) used[i] = found = true;
        if (!found) return false;
      }
      return true;
    }
    case TypeKind::union_all: {
      auto *x = as_union_all(a), *y = as_union_all(b);
      if (!alpha_equal(x->var->lower, y->var->lower, in_a, in_b)) return false;
      if (!alpha_equal(x->var->upper, y->var->upper, in_a, in_b)) return false;
      in_a.push_back(x->var);
      in_b.push_back(y->var);
      bool same = alpha_equal(x->body, y->body, in_a, in_b);
      in_a.pop_back();
      in_b.pop_back();
      return same;
    }
    case TypeKind::vararg: {
      auto *x = as_vararg(a), *y = as_vararg(b);
      if (!x->count != !y->count || !alpha_equal(x->element, y->element, in_a, in_b)) return false;
      return !x->count || alpha_equal(x->count, y->count, in_a, in_b);
    }
    default:
      return a == b;
  }
}

// --- values as parameters: a word, or immutable bytes read by their type's layout ---

std::uint64_t hash_bytes_as(const DataType* type, const char* bytes);
bool equal_bytes_as(const DataType* type, const char* a, const char* b);

std::uint64_t hash_payload(const DataType* type, const Value& v) {
  if (type->object_kind == DataType::ObjectKind::fields && type->storage == Storage::aggregate)
    return hash_bytes_as(type, v.object->payload());
  if (type->object_kind == DataType::ObjectKind::fields && type->storage == Storage::reference && !type->is_mutable)
    return hash_bytes_as(type, v.object->payload());
  return static_cast<std::uint64_t>(v.bits);
}

bool is_box(const DataType* type) {
  return type->object_kind == DataType::ObjectKind::fields && !type->is_mutable &&
         (type->storage == Storage::aggregate || type->storage == Storage::reference);
}

std::uint64_t word_at(const char* where, std::size_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, where, std::min<std::size_t>(size, 8));
  return word;
}

std::uint64_t hash_bytes_as(const DataType* type, const char* bytes) {
  std::uint64_t h = type->id;
  for (const Field& field : type->fields) {
    const char* at = bytes + field.offset;
    auto* inner = as_data(field.type);
    if (field.storage == Storage::aggregate) {
      h = mix_hash(h, hash_bytes_as(inner, at));
    } else if (field.storage == Storage::reference && inner && is_box(inner)) {
      auto* object = reinterpret_cast<const Object*>(word_at(at, 8));
      h = mix_hash(h, object ? hash_bytes_as(inner, object->payload()) : 0);
    } else if (field.storage == Storage::dynamic) {
      Value v;
      std::memcpy(static_cast<void*>(&v), at, sizeof v);
      h = mix_hash(h, v.defined() ? hash_payload(as_data(v.type), v) : 0);
    } else {
      h = mix_hash(h, word_at(at, field.size));
    }
  }
  return h;
}

bool equal_payload(const Value& a, const Value& b) {
  if (a.type != b.type) return false;
  auto* type = as_data(a.type);
  if (a.bits == b.bits) return true;
  return type && is_box(type) && a.object && b.object && equal_bytes_as(type, a.object->payload(), b.object->payload());
}

bool equal_bytes_as(const DataType* type, const char* a, const char* b) {
  for (const Field& field : type->fields) {
    const char *x = a + field.offset, *y = b + field.offset;
    auto* inner = as_data(field.type);
    if (field.storage == Storage::aggregate) {
      if (!equal_bytes_as(inner, x, y)) return false;
    } else if (field.storage == Storage::dynamic) {
      Value v, w;
      std::memcpy(static_cast<void*>(&v), x, sizeof v);
      std::memcpy(static_cast<void*>(&w), y, sizeof w);
      if (v.defined() != w.defined() || (v.defined() && !equal_payload(v, w))) return false;
    } else if (field.storage == Storage::reference && inner && is_box(inner)) {
      if (!equal_payload(Value(inner, static_cast<std::int64_t>(word_at(x, 8))),
                         Value(inner, static_cast<std::int64_t>(word_at(y, 8)))))
        return false;
    } else if (std::memcmp(x, y, field.size) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

namespace {

bool occurs_in(const TypeVar* var, const Type* in, WalkedParts& walked) {
  if (!in || !in->has_free_vars) return false;
  if (in == var) return true;
  if (walked.again(in)) return false;
  const auto part = [&](const Type* t) { return occurs_in(var, t, walked); };
  switch (in->kind) {
    case TypeKind::data:
      return std::any_of(as_data(in)->params.begin(), as_data(in)->params.end(), part);
    case TypeKind::union_:
      return std::any_of(as_union(in)->members.begin(), as_union(in)->members.end(), part);
    case TypeKind::union_all: {
      auto* u = as_union_all(in);
      return part(u->var->lower) || part(u->var->upper) || (u->var != var && part(u->body));
    }
    case TypeKind::vararg:
      return part(as_vararg(in)->element) || part(as_vararg(in)->count);
    default:
      return false;
  }
}

// In invariant places any occurrence counts, so that the two walks remember apart.
struct InvariantWalk {
  const TypeVar* var;
  WalkedParts covariant, invariant;

  bool anywhere(const Type* t) { return occurs_in(var, t, invariant); }
  bool find(const Type* in) {
    if (!in || !in->has_free_vars || covariant.again(in)) return false;
    switch (in->kind) {
      case TypeKind::data: {
        auto* d = as_data(in);
        return std::any_of(d->params.begin(), d->params.end(),
                           [&](const Type* p) { return d->is_tuple ? find(p) : anywhere(p); });
      }
      case TypeKind::union_:
        return std::any_of(as_union(in)->members.begin(), as_union(in)->members.end(),
                           [&](const Type* m) { return find(m); });
      case TypeKind::union_all: {
        auto* u = as_union_all(in);
        return u->var != var && (find(u->body) || find(u->var->lower) || find(u->var->upper));
      }
      case TypeKind::vararg:
        return find(as_vararg(in)->element) || anywhere(as_vararg(in)->count);
      default:
        return false;
    }
  }
};

}  // namespace

bool occurs(const TypeVar* var, const Type* in) {
  WalkedParts walked;
  return walk_types(in, [&] { return occurs_in(var, in, walked); });
}

bool occurs_invariantly(const TypeVar* var, const Type* in) {
  InvariantWalk walk{var, {}, {}};
  return walk_types(in, [&] { return walk.find(in); });
}

namespace {

// Is there a free variable other than those in `bound`? What was walked with more of them bound is walked again.
bool has_free_besides(const Type* t, std::vector<const TypeVar*>& bound, WalkedParts& walked) {
  if (!t || !t->has_free_vars) return false;
  if (t->kind == TypeKind::var) return position(bound, as_var(t)) < 0;
  if (walked.again(t)) return false;
  const auto part = [&](const Type* p) { return has_free_besides(p, bound, walked); };
  switch (t->kind) {
    case TypeKind::data:
      return std::any_of(as_data(t)->params.begin(), as_data(t)->params.end(), part);
    case TypeKind::union_:
      return std::any_of(as_union(t)->members.begin(), as_union(t)->members.end(), part);
    case TypeKind::union_all: {
      auto* u = as_union_all(t);
      if (part(u->var->lower) || part(u->var->upper)) return true;
      WalkedParts inside;
      bound.push_back(u->var);
      bool found = has_free_besides(u->body, bound, inside);
      bound.pop_back();
      return found;
    }
    case TypeKind::vararg:
      return part(as_vararg(t)->element) || part(as_vararg(t)->count);
    default:
      return false;
  }
}

}  // namespace

TypeTable::TypeTable(SymbolTable& symbols, MemoryCount* memory)
    : impl_(std::make_unique<Impl>(*this, symbols, memory)) {
  impl_->fill_builtin();
}
TypeTable::~TypeTable() = default;
TypeTable::Impl::~Impl() {
  for (Type* t : made) destroy(t);
  for (TypeName* name : names) destroy(name);
  for (void* box : immortal_boxes) std::free(box);
}
const BuiltinTypes& TypeTable::builtin() const { return impl_->builtin; }

std::span<const Type* const> TypeTable::Impl::keep(std::span<const Type* const> list) {
  if (list.empty()) return {};
  if (memory) memory->add(list.size_bytes());
  auto** to = static_cast<const Type**>(types_memory.allocate(list.size_bytes()));
  std::copy(list.begin(), list.end(), to);
  return {to, list.size()};
}

DataType* TypeTable::Impl::find_or_make(TypeName* name, std::span<const Type* const> params) {
  if (!unfinished.empty() && completing == 0) complete_unfinished();
  std::uint64_t hash = hash_list(reinterpret_cast<std::uintptr_t>(name) >> 4, params);
  DataType* found = data_set.find(hash, [&](const DataType* d) {
    return d->name == name && std::equal(params.begin(), params.end(), d->params.begin(), d->params.end());
  });
  if (found) {
    // Without a supertype it is just being completed: its supertype's parameters mention it.
    if (found->super && !found->has_layout && layout_depth == 0 && name->defined && !found->has_free_vars &&
        !found->is_abstract)
      complete(found);
    return found;
  }
  auto* d = make_type<DataType>(TypeKind::data);
  d->name = name;
  d->params = keep(params);
  d->is_plain = true;
  for (const Type* p : params) {
    d->has_free_vars |= p->has_free_vars;
    d->is_plain &= p->is_plain;
    d->levels = std::max(d->levels, p->levels + 1);
  }
  too_deep |= d->levels > most_type_levels;
  if (unfinished.capacity() <= unfinished.size() + completing)
    unfinished.reserve(2 * (unfinished.size() + completing) + 16);
  data_set.insert(hash, d);
  complete_or_note(d);
  return d;
}

const DataType* TypeTable::apply(TypeName* name, std::span<const Type* const> params) {
  if (name == impl_->builtin.tuple_name) return tuple(params);
  return impl_->find_or_make(name, params);
}

const DataType* TypeTable::tuple(std::span<const Type* const> elements) {
  // Vararg{T,3} is spelled out.
  if (!elements.empty()) {
    if (auto* last = as_vararg(elements.back()); last && last->count) {
      if (auto* count = as_value(last->count)) {
        const bool is_count = count->value.type == impl_->builtin.int64;
        if (is_count && count->value.bits > static_cast<std::int64_t>(most_tuple_elements)) {
          impl_->tuple_too_long = true;  // who applies types tells it
          return impl_->find_or_make(impl_->builtin.tuple_name, elements);
        }
        std::vector<const Type*> spelled(elements.begin(), elements.end() - 1);
        if (is_count && count->value.bits > 0)
          spelled.insert(spelled.end(), static_cast<std::size_t>(count->value.bits), last->element);
        return impl_->find_or_make(impl_->builtin.tuple_name, spelled);
      }
    }
  }
  return impl_->find_or_make(impl_->builtin.tuple_name, elements);
}

const DataType* TypeTable::named_tuple(std::span<const Symbol* const> names, const Type* tuple_type) {
  std::vector<const Type*> types(names.size(), impl_->builtin.symbol);
  const DataType* names_type = tuple(types);
  const Type* names_value;
  if (names.empty()) {
    names_value = value(names_type->instance);
  } else {
    std::vector<char> box(sizeof(Object) + names_type->size);
    auto* object = reinterpret_cast<Object*>(box.data());
    object->type = names_type;
    for (std::size_t i = 0; i < names.size(); ++i)
      std::memcpy(object->payload() + names_type->fields[i].offset, &names[i], sizeof names[i]);
    names_value = value(Value(names_type, object));  // copied
  }
  const Type* params[] = {names_value, tuple_type};
  return apply(impl_->builtin.named_tuple_name, params);
}

const Type* TypeTable::union_of(std::span<const Type* const> members) {
  std::vector<const Type*> flat;
  for (const Type* m : members) {
    if (!m || m->kind == TypeKind::bottom) continue;
    if (auto* u = as_union(m)) {
      flat.insert(flat.end(), u->members.begin(), u->members.end());
    } else {
      flat.push_back(m);
    }
  }
  // Variables last: of Union{T,Vector{T}} the vector is tried first, and T is its element type.
  std::sort(flat.begin(), flat.end(), [](const Type* a, const Type* b) {
    const bool var_a = as_var(a) != nullptr, var_b = as_var(b) != nullptr;
    return var_a != var_b ? var_b : a->id < b->id;
  });
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  if (flat.size() > 1) {
    // Members that another member contains go. Those with free variables can't be judged yet.
    for (std::size_t i = 0; i < flat.size(); ++i) {
      if (flat[i] == impl_->builtin.any) return flat[i];
    }
    // A concrete type contains no other; unions of thousands are made of such.
    std::vector<std::size_t> wide;
    for (std::size_t k = 0; k < flat.size(); ++k) {
      const DataType* d = as_data(flat[k]);
      if (!flat[k]->has_free_vars && !(d && contains_only_itself(d))) wide.push_back(k);
    }
    for (std::size_t i = 0; i < flat.size() && !wide.empty(); ++i) {
      if (flat[i]->has_free_vars) continue;
      for (const std::size_t k : wide) {
        if (k == i || !flat[k] || !is_subtype(*this, flat[i], flat[k])) continue;
        flat[i] = nullptr;
        break;
      }
    }
    flat.erase(std::remove(flat.begin(), flat.end(), nullptr), flat.end());
  }
  if (flat.empty()) return impl_->builtin.bottom;
  if (flat.size() == 1) return flat[0];
  std::uint64_t hash = hash_list(3, flat);
  UnionType* found = impl_->union_set.find(hash, [&](const UnionType* u) {
    return std::equal(flat.begin(), flat.end(), u->members.begin(), u->members.end());
  });
  if (found) return found;
  auto* u = impl_->make_type<UnionType>(TypeKind::union_);
  u->members = impl_->keep(flat);
  for (const Type* m : flat) {
    u->has_free_vars |= m->has_free_vars;
    u->levels = std::max(u->levels, m->levels + 1);
  }
  impl_->union_set.insert(hash, u);
  return u;
}

const TypeVar* TypeTable::var(const Symbol* name, const Type* lower, const Type* upper) {
  auto* v = impl_->make_type<TypeVar>(TypeKind::var);
  v->has_free_vars = true;
  v->name = name;
  v->lower = lower ? lower : impl_->builtin.bottom;
  v->upper = upper ? upper : impl_->builtin.any;
  v->levels = std::max(v->lower->levels, v->upper->levels) + 1;
  return v;
}

const Type* TypeTable::union_all(const TypeVar* var, const Type* body) {
  return walk_types(var, body, [&] { return impl_->union_all(var, body); });
}

const Type* TypeTable::Impl::union_all(const TypeVar* var, const Type* body) {
  if (body == var) return var->upper;  // T where T<:S is S
  if (!occurs(var, body)) return body;
  std::vector<const TypeVar*> bound, bound_there;
  std::uint64_t hash = mix_hash(alpha_hash(var->lower, bound), alpha_hash(var->upper, bound));
  bound.push_back(var);
  hash = mix_hash(hash, alpha_hash(body, bound));
  UnionAllType* found = union_all_set.find(hash, [&](const UnionAllType* u) {
    bound.clear();
    bound_there.clear();
    if (!alpha_equal(var->lower, u->var->lower, bound, bound_there)) return false;
    if (!alpha_equal(var->upper, u->var->upper, bound, bound_there)) return false;
    bound.push_back(var);
    bound_there.push_back(u->var);
    return alpha_equal(body, u->body, bound, bound_there);
  });
  if (found) return found;
  auto* u = make_type<UnionAllType>(TypeKind::union_all);
  u->var = var;
  u->body = body;
  u->levels = std::max(body->levels, var->levels) + 1;
  bound.assign(1, var);
  WalkedParts walked;
  u->has_free_vars = var->lower->has_free_vars || var->upper->has_free_vars || has_free_besides(body, bound, walked);
  union_all_set.insert(hash, u);
  return u;
}

const Type* TypeTable::vararg(const Type* element, const Type* count) {
  // xs::Vararg{<:Integer}: the variable belongs to the element.
  if (const UnionAllType* all = as_union_all(element);
      all && !count && as_vararg(all->body) && !as_vararg(all->body)->count)
    return vararg(union_all(all->var, as_vararg(all->body)->element), nullptr);
  std::uint64_t hash = mix_hash(mix_hash(5, element->id), count ? count->id : 0);
  VarargType* found =
      impl_->vararg_set.find(hash, [&](const VarargType* v) { return v->element == element && v->count == count; });
  if (found) return found;
  auto* v = impl_->make_type<VarargType>(TypeKind::vararg);
  v->element = element;
  v->count = count;
  v->levels = element->levels + 1;
  v->has_free_vars = element->has_free_vars || (count && count->has_free_vars);
  v->is_plain = element->is_plain && (!count || count->is_plain);
  impl_->vararg_set.insert(hash, v);
  return v;
}

Value TypeTable::Impl::make_immortal(Value v) {
  auto* type = as_data(v.type);
  if (!type || !is_box(type) || !v.object) return v;
  std::size_t bytes = sizeof(Object) + type->size;
  auto* copy = static_cast<Object*>(std::calloc(1, bytes < 16 ? 16 : bytes));
  immortal_boxes.push_back(copy);
  copy->type = type;
  std::memcpy(copy->payload(), v.object->payload(), type->size);
  for (const Field& field : type->fields) {
    char* at = copy->payload() + field.offset;
    if (field.storage == Storage::reference) {
      Value inner = make_immortal(Value(field.type, static_cast<std::int64_t>(word_at(at, 8))));
      std::memcpy(at, &inner.bits, 8);
    } else if (field.storage == Storage::dynamic) {
      Value inner;
      std::memcpy(static_cast<void*>(&inner), at, sizeof inner);
      if (inner.defined()) inner = make_immortal(inner);
      std::memcpy(at, &inner, sizeof inner);
    }
  }
  return Value(v.type, copy);
}

const Type* TypeTable::value(Value v) {
  if (v.type->is_kind) return v.as_type;
  auto* type = as_data(v.type);
  return walk_types(type, [&] { return impl_->value(type, v); });
}

const Type* TypeTable::Impl::value(const DataType* type, Value v) {
  std::uint64_t hash = mix_hash(type->id, hash_payload(type, v));
  ValueType* found = value_set.find(hash, [&](const ValueType* t) { return equal_payload(t->value, v); });
  if (found) return found;
  auto* t = make_type<ValueType>(TypeKind::value);
  t->is_plain = true;
  t->levels = v.type->levels;
  t->value = make_immortal(v);
  value_set.insert(hash, t);
  return t;
}

const Type* TypeTable::value_int(std::int64_t n) { return value(Value(impl_->builtin.int64, n)); }

const DataType* TypeTable::type_type(const Type* t) {
  return impl_->find_or_make(impl_->builtin.type_name, std::span<const Type* const>(&t, 1));
}

const DataType* TypeTable::array_of(const Type* element, std::int64_t dims) {
  const Type* params[] = {element, value_int(dims)};
  return impl_->find_or_make(impl_->builtin.array_name, params);
}

const TraceMap& TypeTable::trace_map(const DataType* type) {
  std::atomic_ref<const TraceMap*> known(type->trace_map);
  if (const TraceMap* map = known.load(std::memory_order_acquire)) return *map;
  std::lock_guard<std::mutex> lock(impl_->trace_mutex);
  if (const TraceMap* map = known.load(std::memory_order_acquire)) return *map;
  impl_->count(sizeof(TraceMap));
  auto made = std::make_unique<TraceMap>();
  TraceMap& map = *made;
  for (const Field& field : type->fields) {
    if (field.storage == Storage::dynamic) map.values.push_back(field.offset);
    if (field.storage == Storage::reference && as_data(field.type)->object_kind != DataType::ObjectKind::immortal)
      map.references.push_back(field.offset);
  }
  known.store(made.release(), std::memory_order_release);  // the type's
  return map;
}

const Type* TypeTable::type_of_constant(Value v) { return dispatch_type(v); }

}  // namespace slope
