// Dispatch: from call types Tuple{typeof(f), args…} and a world to the method.
//
// Where methods are. Methods of typeof(f), of calls on instances of a type, and of its constructors are in the table of
// the callee's own nominal type. Methods with an abstract callee ((::Type{T})(x) where T<:Number, (f::Function)(…)) are
// in the table of that abstract type. So a lookup walks a short chain of tables, the callee's own first.
//
// Answers for concrete call types are cached in the callee's own table, with the world range in which they are valid.
// Adding a method truncates the answers that it could change. A candidate is first tested by arity and nominal types
// (`may_apply`), which decides nearly all, and only then by subtyping.
#include <algorithm>

#include "lang/runtime/runtime_impl.hpp"
#include "lang/support/tuning.hpp"
#include "lang/types/type_table_impl.hpp"

namespace slope {

namespace {

const DataType* nominal_of(const Type* t) {
  while (auto* u = as_union_all(t)) t = u->body;
  return as_data(t);
}

// Can an instance of concrete `argument` be an instance of `parameter`? True when in doubt.
bool may_fit(const BuiltinTypes& b, const Type* argument, const Type* parameter) {
  for (;;) {
    if (auto* u = as_union_all(parameter)) {
      parameter = u->body;
    } else if (auto* v = as_var(parameter)) {
      parameter = v->upper;
    } else {
      break;
    }
  }
  auto *x = as_data(argument), *y = as_data(parameter);
  if (auto* u = as_union(parameter)) {
    return std::any_of(u->members.begin(), u->members.end(), [&](const Type* m) { return may_fit(b, argument, m); });
  }
  if (!y || y == b.any) return true;
  if (!x) return true;
  if (x->is_type_of_type || y->is_type_of_type || x->is_kind) {
    if (x->is_type_of_type && y->is_type_of_type) {
      auto *s = as_data(x->params[0]), *t = as_data(y->params[0]);
      // Type{Int64} against Type{Float64}: distinct nominal types are never equal.
      return !s || !t || s->name == t->name || !t->is_plain;
    }
    if (x->is_type_of_type) return y->is_kind || y == b.any;
    return x->name == y->name || y->is_type_of_type;
  }
  if (x == y) return true;
  if (x == b.any) return true;
  bool abstract_argument = x->is_abstract;
  for (const DataType* t = x;; t = t->super) {
    if (t->name == y->name) return t->is_tuple || !(t != y && t->is_plain && y->is_plain);  // tuples are covariant
    if (t == b.any) break;
  }
  if (!abstract_argument) return false;
  for (const DataType* t = y; t != b.any; t = t->super)
    if (t->name == x->name) return true;
  return false;
}

}  // namespace

std::uint64_t call_shape(const DataType* tuple) {
  std::size_t count = tuple->params.size();
  std::uint64_t shape = count && as_vararg(tuple->params[count - 1]) ? 0 : 1 + count % 255;
  for (std::size_t i = 1; i < std::min<std::size_t>(count, 8); ++i) {
    // Only types that have no other below them. Of tuples, Tuple{Type{Int64}} is below Tuple{DataType}.
    auto* d = as_data(tuple->params[i]);
    if (d && d->is_concrete && !d->is_kind && !d->is_type_of_type && !d->is_tuple && !d->is_named_tuple)
      shape |= (1 + std::uint64_t{d->id} % 255) << 8 * i;
  }
  return shape;
}

bool may_apply(const BuiltinTypes& b, const DataType* call_types, const Type* signature) {
  const DataType* tuple = signature_tuple(signature);
  if (!tuple) return true;
  std::size_t count = call_types->params.size(), fixed = tuple->params.size();
  const VarargType* rest = fixed ? as_vararg(tuple->params[fixed - 1]) : nullptr;
  bool call_rest = count && as_vararg(call_types->params[count - 1]);
  if (rest) --fixed;
  if (call_rest) --count;
  if (count < fixed && !call_rest) return false;
  if (count > fixed && !rest) return false;
  for (std::size_t i = 0; i < count; ++i)
    if (!may_fit(b, call_types->params[i], i < fixed ? tuple->params[i] : rest->element)) return false;
  return true;
}

const Type* Runtime::Impl::callee_of(const Type* signature) const {
  const DataType* tuple = signature_tuple(signature);
  return tuple && !tuple->params.empty() ? tuple->params[0] : runtime.types.builtin().any;
}

MethodTable* Runtime::Impl::table_of(TypeName* name) {
  if (!name->methods && !spare_tables.empty()) {
    name->methods = spare_tables.back();
    name->methods->name = name->name;
    spare_tables.pop_back();
  }
  if (!name->methods) {
    auto cache = std::make_shared<MethodTable::Cache>();
    MethodTable& made = tables.emplace_back();
    made.name = name->name;
    made.cache = std::move(cache);
    name->methods = &made;
  }
  return name->methods;
}

TypeName* Runtime::Impl::callee_name(const Type* callee_type) const {
  const BuiltinTypes& b = runtime.types.builtin();
  const Type* t = callee_type;
  while (as_var(t) || as_union_all(t)) t = as_var(t) ? as_var(t)->upper : as_union_all(t)->body;
  auto* d = as_data(t);
  if (!d) return b.any->name;
  if (!d->is_type_of_type) return d->name;
  // Constructors: under the type made, when that is one nominal type.
  const Type* made = d->params[0];
  if (as_var(made)) return b.type_name;
  const DataType* n = nominal_of(made);
  return n ? n->name : b.type_name;
}

bool Runtime::Impl::callee_is_leaf(const Type* callee_type) const {
  const Type* t = callee_type;
  while (as_var(t) || as_union_all(t)) t = as_var(t) ? as_var(t)->upper : as_union_all(t)->body;
  auto* d = as_data(t);
  if (!d) return false;
  if (d->is_type_of_type) return callee_name(callee_type) != runtime.types.builtin().type_name;
  return !d->name->is_abstract;
}

MethodTable* Runtime::method_table(const Type* callee_type) {
  MethodTable* table = impl_->table_of(impl_->callee_name(callee_type));
  impl_->ask_for_all(*table);
  return table;
}

void Runtime::Impl::tables_for(const Type* callee_type, const DataType* call_types, std::vector<MethodTable*>& chain) {
  const BuiltinTypes& b = runtime.types.builtin();
  auto add = [&](const TypeName* name) {
    if (!name->methods) return;
    if (call_types)
      ask_for_call(*name->methods, call_types);
    else
      ask_for_all(*name->methods);
    if (!name->methods->methods.empty() && std::find(chain.begin(), chain.end(), name->methods) == chain.end())
      chain.push_back(name->methods);
  };
  const Type* t = callee_type;
  while (as_var(t) || as_union_all(t)) t = as_var(t) ? as_var(t)->upper : as_union_all(t)->body;
  auto* d = as_data(t);
  if (!d) d = b.any;
  if (d->is_type_of_type) {
    add(callee_name(d));
    add(b.type_name);
    const Type* made = d->params[0];
    add(made->kind == TypeKind::union_all ? b.union_all->name
        : made->kind == TypeKind::union_  ? b.union_->name
                                          : b.data_type->name);
    add(b.any->name);
    return;
  }
  for (;; d = d->super) {
    add(d->name);
    if (d == b.any || !d->super) break;
  }
}

void Runtime::Impl::compute_lookup(const DataType* call_types, World world, Lookup& result) {
  const BuiltinTypes& b = runtime.types.builtin();
  TypeTable& types = runtime.types;
  std::vector<MethodTable*> chain;
  tables_for(call_types->params[0], call_types, chain);
  struct Candidate {
    Method* method;
    std::vector<const Type*> static_params;
  };
  std::vector<Candidate> candidates;
  result = Lookup();
  const std::uint64_t shape = call_shape(call_types);
  for (MethodTable* table : chain) {
    for (std::size_t i = 0; i < table->methods.size(); ++i) {
      if (!shapes_agree(shape, table->cache->call_shapes[i])) continue;
      const std::unique_ptr<Method>& method = table->methods[i];
      if (!may_apply(b, call_types, method->signature)) continue;
      auto solved = match(types, call_types, method->signature);
      if (!solved) continue;
      if (method->min_world > world) {
        result.max_world = std::min(result.max_world, method->min_world - 1);
      } else if (method->max_world < world) {
        result.min_world = std::max(result.min_world, method->max_world + 1);
      } else {
        result.min_world = std::max(result.min_world, method->min_world);
        result.max_world = std::min(result.max_world, method->max_world);
        candidates.push_back({method.get(), std::move(*solved)});
      }
    }
  }
  if (candidates.empty()) return;
  std::size_t best = 0;
  for (std::size_t i = 1; i < candidates.size(); ++i)
    if (more_specific(types, candidates[i].method->signature, candidates[best].method->signature)) best = i;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i == best || more_specific(types, candidates[best].method->signature, candidates[i].method->signature))
      continue;
    if (result.ambiguous.empty()) result.ambiguous.push_back(candidates[best].method);
    result.ambiguous.push_back(candidates[i].method);
  }
  if (!result.ambiguous.empty()) return;
  result.method = candidates[best].method;
  result.static_params = std::move(candidates[best].static_params);
}

CachedLookup& Runtime::Impl::cached_lookup(const DataType* call_types, World world) {
  MethodTable* table = table_of(callee_name(call_types->params[0]));
  CachedLookup& entry = table->cache->answers[call_types];
  if (!entry.computed || world < entry.lookup.min_world || world > entry.lookup.max_world) {
    entry.computed = false;  // half an answer is none: an allocation may throw
    compute_lookup(call_types, world, entry.lookup);
    entry.computed = true;
  }
  return entry;
}

Lookup Runtime::lookup(const DataType* call_types, World world) {
  return impl_->cached_lookup(call_types, world).lookup;
}

Specialization* Runtime::lookup_specialization(const DataType* call_types, World world) {
  Lookup& found = impl_->cached_lookup(call_types, world).lookup;
  if (!found.method) return nullptr;
  if (!found.target) found.target = specialize(found.method, call_types, found.static_params);
  return found.target;
}

const DataType* Runtime::call_types(Value callee, const Value* args, std::size_t count) {
  constexpr std::size_t inline_count = 16;
  const Type* few[inline_count];
  std::vector<const Type*> many;
  const Type** list = few;
  if (count + 1 > inline_count) {
    many.resize(count + 1);
    list = many.data();
  }
  list[0] = types.dispatch_type(callee);
  for (std::size_t i = 0; i < count; ++i) list[i + 1] = types.dispatch_type(args[i]);
  return types.tuple(std::span<const Type* const>(list, count + 1));
}

Specialization* Runtime::dispatch(Context& ctx, Value callee, const Value* args, std::size_t count) {
  std::uint64_t hash = callee.type->is_kind ? callee.as_type->id * 7ull + 3 : callee.type->id;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t id = args[i].type->is_kind ? args[i].as_type->id * 7ull + 3 : args[i].type->id;
    hash = (hash ^ id) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  }
  CallCache::Entry& entry = impl_->dispatch_cache[hash & (Impl::dispatch_ways - 1)];
  if (entry.world == ctx.world && entry.types && call_types_match(entry.types, callee, args, count))
    return entry.target;
  const DataType* key = call_types(callee, args, count);
  const Lookup& found = impl_->cached_lookup(key, ctx.world).lookup;
  if (!found.method) {
    ctx.method_error(callee, args, count);
    return nullptr;
  }
  Specialization* target = found.method->as_declared == 0
                               ? lookup_specialization(key, ctx.world)
                               : specialize_as_declared(found.method, key, found.static_params);
  entry = {key, target, ctx.world};
  return target;
}

Specialization* Runtime::dispatch_specialized(Context& ctx, Value callee, const Value* args, std::size_t count) {
  Specialization* target = dispatch(ctx, callee, args, count);
  if (!target || target->method->as_declared == 0) return target;
  return lookup_specialization(call_types(callee, args, count), ctx.world);
}

namespace {

// All ways to choose one member of each union among the elements; empty when they are too many.
void split_unions(TypeTable& types, const DataType* tuple, std::vector<const DataType*>& parts) {
  std::size_t total = 1;
  for (const Type* p : tuple->params) {
    if (auto* u = as_union(p)) total *= u->members.size();
    if (total > tuning::split_combinations) return;
  }
  std::vector<const Type*> elements(tuple->params.begin(), tuple->params.end());
  for (std::size_t n = 0; n < total; ++n) {
    std::size_t rest = n;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (auto* u = as_union(tuple->params[i])) {
        elements[i] = u->members[rest % u->members.size()];
        rest /= u->members.size();
      }
    }
    parts.push_back(types.tuple(elements));
  }
}

struct Candidate {
  Lookup lookup;
  const Type* part;  // of the call types
};

Candidate candidate_for(TypeTable& types, const Type* call_types, Method& method, const Type* part) {
  Candidate candidate;
  candidate.part = part;
  candidate.lookup.method = &method;
  if (auto solved = match(types, call_types, method.signature)) {
    candidate.lookup.exact = true;
    candidate.lookup.static_params = std::move(*solved);
    return candidate;
  }
  candidate.lookup.exact = false;
  if (auto partial = match(types, part, method.signature)) {
    candidate.lookup.static_params = std::move(*partial);
  } else {
    for (const Type* t = method.signature; as_union_all(t); t = as_union_all(t)->body)
      candidate.lookup.static_params.push_back(as_union_all(t)->var);
  }
  return candidate;
}

// Most specific first, without those that are hidden: a method that applies to everything hides all that it is more
// specific than.
std::vector<Candidate> visible_in_order(TypeTable& types, std::vector<Candidate> found) {
  std::vector<Candidate> ordered;
  for (Candidate& candidate : found) {  // insertion that never moves a method before one that is more specific
    std::size_t at = ordered.size();
    for (std::size_t i = 0; i < ordered.size(); ++i) {
      if (more_specific(types, candidate.lookup.method->signature, ordered[i].lookup.method->signature)) {
        at = i;
        break;
      }
    }
    ordered.insert(ordered.begin() + static_cast<std::ptrdiff_t>(at), std::move(candidate));
  }
  std::vector<Candidate> kept;
  for (Candidate& candidate : ordered) {
    bool hidden = std::any_of(kept.begin(), kept.end(), [&](const Candidate& before) {
      return (before.lookup.exact || is_subtype(types, candidate.part, before.lookup.method->signature)) &&
             more_specific(types, before.lookup.method->signature, candidate.lookup.method->signature);
    });
    if (!hidden) kept.push_back(std::move(candidate));
  }
  return kept;
}

// Pairs that overlap without being ordered may be ambiguous calls, unless a third one settles the overlap.
void find_ambiguous(TypeTable& types, std::vector<Candidate>& kept) {
  for (std::size_t i = 0; i < kept.size(); ++i) {
    for (std::size_t k = i + 1; k < kept.size(); ++k) {
      const Type *a = kept[i].lookup.method->signature, *b = kept[k].lookup.method->signature;
      if (more_specific(types, a, b) || more_specific(types, b, a)) continue;
      const Type* overlap = intersect(types, kept[i].part, kept[k].part);
      if (overlap->kind == TypeKind::bottom) continue;
      bool settled = std::any_of(kept.begin(), kept.end(), [&](const Candidate& c) {
        const Type* s = c.lookup.method->signature;
        return s != a && s != b && is_subtype(types, overlap, s) && more_specific(types, s, a) &&
               more_specific(types, s, b);
      });
      if (settled) continue;
      kept[i].lookup.ambiguous.push_back(kept[k].lookup.method);
      kept[k].lookup.ambiguous.push_back(kept[i].lookup.method);
    }
  }
}

// Some candidate applies whatever the arguments turn out to be.
bool is_covered(TypeTable& types, const Type* call_types, const DataType* tuple, const std::vector<Candidate>& kept) {
  if (std::any_of(kept.begin(), kept.end(), [](const Candidate& c) { return c.lookup.exact; })) return true;
  if (!as_data(call_types)) return false;
  std::vector<const DataType*> parts;
  split_unions(types, tuple, parts);
  return !parts.empty() && std::all_of(parts.begin(), parts.end(), [&](const DataType* part) {
    return std::any_of(kept.begin(), kept.end(),
                       [&](const Candidate& c) { return is_subtype(types, part, c.lookup.method->signature); });
  });
}

// More than `limit` of these methods are surely among the visible ones. Of a call on arguments of wide types this is
// found from a few of the methods that it may reach; to bring them all into order takes as many comparisons as there are
// pairs.
bool surely_more_than(TypeTable& types, const Type* call_types, std::span<Method* const> methods, int limit) {
  int visible = 0;
  for (const Method* method : methods) {
    const Type* part = intersect(types, call_types, method->signature);
    if (part->kind == TypeKind::bottom) continue;
    const DataType* tuple = as_data(part);
    if (!tuple) tuple = signature_tuple(part);
    const bool hidden = std::any_of(methods.begin(), methods.end(), [&](const Method* other) {
      return other != method && (!tuple || may_apply(types.builtin(), tuple, other->signature)) &&
             (is_subtype(types, part, other->signature) || is_subtype(types, call_types, other->signature)) &&
             more_specific(types, other->signature, method->signature);
    });
    if (!hidden && ++visible > limit) return true;
  }
  return false;
}

std::vector<Lookup> unknown_methods() {
  Lookup nothing_known;
  nothing_known.exact = nothing_known.covered = false;
  return {nothing_known};
}

}  // namespace

std::vector<Lookup> Runtime::lookup_all(const Type* call_types, World world, int limit) {
  const DataType* tuple = as_data(call_types);
  if (!tuple) tuple = signature_tuple(call_types);
  if (!tuple || !tuple->is_tuple || tuple->params.empty()) return unknown_methods();
  bool concrete = true;
  for (const Type* p : tuple->params) {
    auto* d = as_data(p);
    concrete &= d && !d->has_free_vars && (d->is_concrete || d->is_type_of_type) && !d->is_kind;
    if (p->kind == TypeKind::bottom) return {};
  }
  if (concrete) {
    Lookup found = lookup(tuple, world);
    if (!found.method && found.ambiguous.empty()) {
      // Nothing applies; the range in which that holds is in the empty answer's place: callers keep an edge.
      return {};
    }
    if (!found.method) {  // ambiguous: the call raises
      found.exact = found.covered = false;
      return {found};
    }
    found.exact = found.covered = true;
    return {found};
  }
  const Type* callee = tuple->params[0];
  // Only callees whose tables can be listed: an abstract callee may have methods anywhere below it.
  if (!impl_->callee_is_leaf(callee)) return unknown_methods();
  ListedMethods& listed = impl_->listed;
  if (world != this->world()) return impl_->list_methods(call_types, tuple, world, limit);
  if (listed.world != world || listed.limit != limit) {
    listed.answers.clear();
    listed.world = world;
    listed.limit = limit;
  }
  if (auto it = listed.answers.find(call_types); it != listed.answers.end()) return it->second;
  std::vector<Lookup> found = impl_->list_methods(call_types, tuple, world, limit);
  if (listed.world == world && listed.answers.size() < tuning::listed_calls) listed.answers.emplace(call_types, found);
  return found;
}

std::vector<Lookup> Runtime::Impl::list_methods(const Type* call_types, const DataType* tuple, World world, int limit) {
  TypeTable& types = runtime.types;
  const Type* callee = tuple->params[0];
  std::vector<MethodTable*> chain;
  table_of(callee_name(callee));  // from now on it was asked, though it may have no methods yet
  tables_for(callee, tuple, chain);

  std::vector<Method*> possible, others;  // in this world, in others
  const std::uint64_t shape = call_shape(tuple);
  for (MethodTable* table : chain) {
    for (std::size_t i = 0; i < table->methods.size(); ++i) {
      if (!shapes_agree(shape, table->cache->call_shapes[i])) continue;
      Method* method = table->methods[i].get();
      if (!may_apply(types.builtin(), tuple, method->signature)) continue;
      (method->min_world <= world && world <= method->max_world ? possible : others).push_back(method);
    }
  }
  if (possible.size() > static_cast<std::size_t>(limit) && surely_more_than(types, call_types, possible, limit))
    return unknown_methods();

  std::vector<Candidate> found;
  World min_world = 1, max_world = newest_world;
  for (Method* method : possible) {
    const Type* part = intersect(types, call_types, method->signature);
    if (part->kind == TypeKind::bottom) continue;
    min_world = std::max(min_world, method->min_world);
    max_world = std::min(max_world, method->max_world);
    found.push_back(candidate_for(types, call_types, *method, part));
    if (found.size() > tuning::methods_considered) return unknown_methods();
  }
  for (const Method* method : others) {
    if (intersect(types, call_types, method->signature)->kind == TypeKind::bottom) continue;
    if (method->min_world > world)
      max_world = std::min(max_world, method->min_world - 1);
    else
      min_world = std::max(min_world, method->max_world + 1);
  }
  std::vector<Candidate> kept = visible_in_order(types, std::move(found));
  if (static_cast<int>(kept.size()) > limit) return unknown_methods();
  find_ambiguous(types, kept);
  const bool covered = is_covered(types, call_types, tuple, kept);
  std::vector<Lookup> results;
  for (Candidate& candidate : kept) {
    candidate.lookup.min_world = min_world;
    candidate.lookup.max_world = max_world;
    candidate.lookup.covered = covered;
    results.push_back(std::move(candidate.lookup));
  }
  return results;
}

}  // namespace slope
