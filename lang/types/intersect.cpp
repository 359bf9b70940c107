// Intersection, join and merge of types.
//
// `intersect` never loses a common instance; it may keep more than the true intersection. One walk over both types
// collects what is learnt of the variables of either side (they are all existential here):
//   - in covariant position a variable's upper bound shrinks to its intersection with the other side;
//   - in invariant position a variable is bound to the other side.
// The result is the narrower of both shapes with the bindings put in, closed by union_alls again. Disjointness comes
// out of the same walk, so that it is exactly as precise.
#include <algorithm>

#include "lang/support/tuning.hpp"
#include "lang/types/subtype.hpp"
#include "lang/types/type_table_impl.hpp"
#include "lang/types/walk.hpp"

namespace slope {

namespace {

class Intersector {
 public:
  explicit Intersector(TypeTable& types, int nesting) : types_(types), b_(types.builtin()), nesting_(nesting) {}

  const Type* run(const Type* a, const Type* b) {
    const Type* result = covariant(a, b);
    return close(result);
  }

 private:
  struct Variable {
    const TypeVar* var;   // fresh, so that the two sides can't collide
    const Type* binding;  // null: free within its bound
    const Type* upper;
    const Type* lower;
    // In covariant position only: then it may be narrowed to what the other side allows there. A variable that is also
    // an invariant parameter may be wider than the values that stand for it: (1, Any[]) is a Tuple{T,Vector{T}}.
    bool narrowable;
  };

  const Type* bottom() const { return b_.bottom; }

  Variable* find(const Type* var) {
    for (Variable& v : variables_)
      if (v.var == var) return &v;
    return nullptr;
  }

  const Type* open(const UnionAllType* u) {
    const TypeVar* fresh = types_.var(u->var->name, u->var->lower, u->var->upper);
    variables_.push_back({fresh, nullptr, u->var->upper, u->var->lower, !occurs_invariantly(u->var, u->body)});
    const TypeVar* from[] = {u->var};
    const Type* to[] = {fresh};
    return types_.substitute(u->body, from, to);
  }

  const Type* resolve(const Type* t, int depth = 0) {
    if (!t->has_free_vars || depth > tuning::substitution_depth) return t;
    std::vector<const TypeVar*> from;
    std::vector<const Type*> to;
    for (const Variable& v : variables_) {
      if (!v.binding) continue;
      from.push_back(v.var);
      to.push_back(v.binding);
    }
    if (from.empty()) return t;
    const Type* once = types_.substitute(t, from, to);
    return once == t ? t : resolve(once, depth + 1);
  }

  // Puts the bindings in and binds the rest again, with their narrowed bounds. A variable that stands in the bound of
  // another must be bound outside of it.
  const Type* close(const Type* t) {
    if (t->kind == TypeKind::bottom) return t;
    t = resolve(t);
    for (std::size_t rounds = variables_.size() + 1; rounds > 0 && t->has_free_vars; --rounds) {
      Variable* inner = nullptr;
      Variable* any = nullptr;
      for (std::size_t i = variables_.size(); i-- > 0;) {
        Variable& v = variables_[i];
        if (v.binding || !occurs(v.var, t)) continue;
        if (!any) any = &v;
        bool in_bound = std::any_of(variables_.begin(), variables_.end(), [&](const Variable& other) {
          return &other != &v && !other.binding && occurs(other.var, t) &&
                 (occurs(v.var, resolve(other.upper)) || occurs(v.var, resolve(other.lower)));
        });
        if (in_bound) continue;
        inner = &v;
        break;
      }
      if (!any) break;
      if (!inner) {  // bounds in a circle: cut
        inner = any;
        inner->upper = b_.any;
        inner->lower = bottom();
      }
      const Type* upper = resolve(inner->upper);
      if (upper->kind == TypeKind::bottom) return bottom();
      const Type* lower = resolve(inner->lower);
      if (occurs(inner->var, upper)) upper = b_.any;
      if (occurs(inner->var, lower)) lower = bottom();
      const TypeVar* fresh = types_.var(inner->var->name, lower, upper);
      const TypeVar* from[] = {inner->var};
      const Type* to[] = {fresh};
      t = types_.union_all(fresh, types_.substitute(t, from, to));
    }
    return t;
  }

  const Type* covariant(const Type* a, const Type* b) {
    a = resolve(a);
    b = resolve(b);
    if (a == b) return a;
    if (a->kind == TypeKind::bottom || b->kind == TypeKind::bottom) return bottom();
    if (a == b_.any) return b;
    if (b == b_.any) return a;
    if (nesting_ > tuning::intersection_nesting || ++steps_ > tuning::intersection_steps) return a;
    if (!a->has_free_vars && !b->has_free_vars) {
      if (is_subtype(types_, a, b)) return a;
      if (is_subtype(types_, b, a)) return b;
    }
    if (as_union(a)) return over_members(as_union(a), b);
    if (as_union(b)) return over_members(as_union(b), a);
    if (auto* var = as_var(a)) return narrow(var, b);
    if (auto* var = as_var(b)) return narrow(var, a);
    if (auto* u = as_union_all(a)) return scoped(u, b);
    if (auto* u = as_union_all(b)) return scoped(u, a);
    auto *x = as_data(a), *y = as_data(b);
    if (!x || !y) return bottom();
    return data(x, y);
  }

  const Type* scoped(const UnionAllType* u, const Type* other) { return covariant(open(u), other); }

  const Type* over_members(const UnionType* u, const Type* other) {
    // What one member teaches about a variable does not hold for the others: with variables around, members are judged
    // alone and the union of what remains is kept.
    std::vector<const Type*> kept;
    for (const Type* m : u->members) {
      if (m->has_free_vars || other->has_free_vars) {
        Intersector probe(types_, nesting_ + 1);
        probe.variables_ = variables_;
        const Type* part = probe.covariant(m, other);
        if (part->kind != TypeKind::bottom) kept.push_back(m);
      } else {
        const Type* part = Intersector(types_, nesting_ + 1).run(m, other);
        if (part->kind != TypeKind::bottom) kept.push_back(part);
      }
    }
    return types_.union_of(kept);
  }

  // A variable in covariant position, against a type.
  const Type* narrow(const TypeVar* var, const Type* t) {
    Variable* v = find(var);
    if (!v) {
      const Type* met = Intersector(types_, nesting_ + 1).run(var->upper, t);
      return met->kind == TypeKind::bottom ? met : t->has_free_vars ? static_cast<const Type*>(var) : t;
    }
    const Type* upper = resolve(v->upper);
    if (auto* other = as_var(t)) {
      Variable* o = find(other);
      const Type* other_upper = o ? resolve(o->upper) : other->upper;
      const Type* met = upper->has_free_vars || other_upper->has_free_vars
                            ? upper
                            : Intersector(types_, nesting_ + 1).run(upper, other_upper);
      if (met->kind == TypeKind::bottom) return met;
      // The common instances belong to both variables; the result names one that can tell what is known.
      if (o && o->narrowable && !v->narrowable) std::swap(o, v);
      if (v->narrowable && v->lower->kind == TypeKind::bottom) v->upper = met;
      if (o && o->narrowable && v->narrowable && o->lower->kind == TypeKind::bottom) o->upper = met;
      return v->var;
    }
    const Type* met = covariant(upper, t);
    v = find(var);  // `variables_` may have grown
    if (met->kind == TypeKind::bottom || met == upper) return met == upper ? var : met;
    if (!v->narrowable || v->lower->kind != TypeKind::bottom || occurs(var, met)) return met;
    v->upper = met;
    return var;
  }

  // --- invariant position: false when the two can't be equal ---
  bool same(const Type* a, const Type* b, const Type*& result) {
    a = resolve(a);
    b = resolve(b);
    result = a;
    if (a == b) return true;
    if (nesting_ > tuning::intersection_nesting || ++steps_ > tuning::intersection_steps) return true;
    if (auto* var = as_var(a); var && find(var)) {
      result = b;
      return bind(var, b);
    }
    if (auto* var = as_var(b); var && find(var)) return bind(var, a);
    if (a->kind == TypeKind::value || b->kind == TypeKind::value) return as_var(a) || as_var(b);
    if (!a->has_free_vars && !b->has_free_vars) return type_equal(types_, a, b);
    auto *x = as_data(a), *y = as_data(b);
    if (x && y) {
      if (x->name != y->name) return false;
      if (x->is_tuple) return tuple_same(x, y, result);
      if (x->params.size() != y->params.size()) return false;
      std::vector<const Type*> params(x->params.size());
      for (std::size_t i = 0; i < params.size(); ++i)
        if (!same(x->params[i], y->params[i], params[i])) return false;
      result = types_.apply(x->name, params);
      return true;
    }
    if ((x && nominal_family(b) > 0) || (y && nominal_family(a) > 0)) return false;
    if (const int m = nominal_family(a), n = nominal_family(b); m > 0 && n > 0 && m != n) return false;
    // Unions and union_alls with variables: equal only if they overlap.
    if (!a->has_free_vars) result = a;
    if (!b->has_free_vars) result = b;
    if (as_var(a) || as_var(b)) return true;
    Intersector probe(types_, nesting_ + 1);
    probe.variables_ = variables_;
    return probe.covariant(a, b)->kind != TypeKind::bottom;
  }

  // A{T} where {T}, which no A{S} equals.
  static int nominal_family(const Type* t) {  // the number of its variables; 0: no family
    int variables = 0;
    for (; as_union_all(t); t = as_union_all(t)->body) ++variables;
    return as_data(t) && !as_data(t)->is_tuple ? variables : 0;
  }

  bool tuple_same(const DataType* x, const DataType* y, const Type*& result) {
    auto rest = [](const DataType* t) { return t->params.empty() ? nullptr : as_vararg(t->params.back()); };
    if (rest(x) || rest(y)) {
      const Type* met = tuple(x, y);
      result = x->has_free_vars ? static_cast<const Type*>(y) : x;
      return met->kind != TypeKind::bottom;
    }
    if (x->params.size() != y->params.size()) return false;
    std::vector<const Type*> params(x->params.size());
    for (std::size_t i = 0; i < params.size(); ++i)
      if (!same(x->params[i], y->params[i], params[i])) return false;
    result = types_.tuple(params);
    return true;
  }

  bool bind(const TypeVar* var, const Type* t) {
    Variable* v = find(var);
    if (auto* other = as_var(t)) {
      if (other == var) return true;
      if (Variable* o = find(other)) {
        // Both stand for the same type: keep the other, with both bounds.
        const Type *u = resolve(v->upper), *w = resolve(o->upper);
        if (!u->has_free_vars && !w->has_free_vars) {
          const Type* met = Intersector(types_, nesting_ + 1).run(u, w);
          if (met->kind == TypeKind::bottom && (u->kind != TypeKind::bottom || w->kind != TypeKind::bottom)) {
            // Union{} itself is a common instance, as a parameter.
            o->upper = met;
            v->binding = bottom();
            o->binding = bottom();
            return true;
          }
          o->upper = met;
        } else if (w->has_free_vars || w == b_.any) {
          o->upper = u;
        }
        if (o->lower->kind == TypeKind::bottom) o->lower = v->lower;
        v->binding = other;
        return true;
      }
    }
    if (occurs(var, t)) return false;  // T == Vector{T} has no solution
    const Type *upper = resolve(v->upper), *lower = resolve(v->lower);
    if (t->kind == TypeKind::value) {
      if (upper != b_.any) return false;
    } else if (!t->has_free_vars) {
      if (!upper->has_free_vars) {
        if (!is_subtype(types_, t, upper)) return false;
      } else {
        Intersector probe(types_, nesting_ + 1);
        probe.variables_ = variables_;
        // t must lie below a bound that mentions variables: it teaches what they are (where {T, S<:Vector{T}}).
        if (t->kind != TypeKind::bottom && covariant(t, upper)->kind == TypeKind::bottom) return false;
        v = find(var);
      }
      if (!lower->has_free_vars && !is_subtype(types_, lower, t)) return false;
    } else if (upper != b_.any) {
      Intersector probe(types_, nesting_ + 1);
      probe.variables_ = variables_;
      if (probe.covariant(t, upper)->kind == TypeKind::bottom) return false;
    }
    v->binding = t;
    return true;
  }

  const Type* data(const DataType* x, const DataType* y) {
    if (x == b_.type_of_bottom) x = types_.type_type(b_.bottom);
    if (y == b_.type_of_bottom) y = types_.type_type(b_.bottom);
    // Type{T} against the types of type values.
    if (x->is_kind && y->name == b_.type_name) std::swap(x, y);
    if (x->name == b_.type_name && y->is_kind) {
      const Type* t = resolve(x->params[0]);
      bool fits = as_var(t) || (y == b_.data_type && t->kind == TypeKind::data) ||
                  (y == b_.union_all && t->kind == TypeKind::union_all) ||
                  (y == b_.union_ && t->kind == TypeKind::union_);
      if (!fits) return bottom();
      auto* var = as_var(t);
      Variable* v = var ? find(var) : nullptr;
      if (v && v->upper == b_.any && v->lower->kind == TypeKind::bottom) return y;
      return x;
    }
    const DataType *low = x, *high = y;
    const DataType* at = climb(low, high->name);
    if (!at) {
      std::swap(low, high);
      at = climb(low, high->name);
    }
    if (!at) return bottom();
    if (at->is_tuple) return tuple(at, high);
    if (at->params.size() != high->params.size()) return bottom();
    for (std::size_t i = 0; i < at->params.size(); ++i) {
      const Type* unused;
      if (!same(at->params[i], high->params[i], unused)) return bottom();
    }
    const Type* result = resolve(low);
    if (!result->has_free_vars || low != at) return result;
    return result;
  }

  const DataType* climb(const DataType* t, const TypeName* to) const {
    for (;; t = t->super) {
      if (t->name == to) return t;
      if (t == b_.any || !t->super) return nullptr;
    }
  }

  const Type* tuple(const DataType* x, const DataType* y) {
    const VarargType* rest_x = x->params.empty() ? nullptr : as_vararg(x->params.back());
    const VarargType* rest_y = y->params.empty() ? nullptr : as_vararg(y->params.back());
    std::size_t fixed_x = x->params.size() - (rest_x ? 1 : 0), fixed_y = y->params.size() - (rest_y ? 1 : 0);
    if ((!rest_x && fixed_x < fixed_y) || (!rest_y && fixed_y < fixed_x)) return bottom();
    std::size_t fixed = std::max(fixed_x, fixed_y);
    std::vector<const Type*> elements;
    // Twice when variables are about: what later elements bind them to holds for the earlier ones too.
    for (int round = 0; round < 2; ++round) {
      elements.clear();
      std::size_t bound_before = bound_count();
      for (std::size_t i = 0; i < fixed; ++i) {
        const Type* a = i < fixed_x ? x->params[i] : rest_x->element;
        const Type* b = i < fixed_y ? y->params[i] : rest_y->element;
        elements.push_back(covariant(a, b));
        if (elements.back()->kind == TypeKind::bottom) return bottom();
      }
      if (bound_count() == bound_before) break;
    }
    if (!rest_x && rest_y && rest_y->count && !count_is(rest_y->count, fixed_x - fixed_y)) return bottom();
    if (!rest_y && rest_x && rest_x->count && !count_is(rest_x->count, fixed_y - fixed_x)) return bottom();
    if (rest_x && rest_y) {
      // There may be no such elements at all: nothing that they teach about variables is kept.
      std::vector<Variable> before = variables_;
      const Type* element = covariant(rest_x->element, rest_y->element);
      std::copy(before.begin(), before.end(), variables_.begin());
      if (element->kind != TypeKind::bottom) {
        const Type* count = nullptr;
        if (fixed_x == fixed_y) {
          if (rest_x->count && rest_y->count) {
            if (!same(rest_x->count, rest_y->count, count)) return bottom();
          } else {
            count = rest_x->count ? rest_x->count : rest_y->count;
          }
        } else if (fixed_x < fixed_y ? rest_y->count && !rest_x->count : rest_x->count && !rest_y->count) {
          count = fixed_x < fixed_y ? rest_y->count : rest_x->count;
        }
        elements.push_back(types_.vararg(element, count));
      }
    }
    for (const Type*& e : elements) e = resolve(e);
    return types_.tuple(elements);
  }

  std::size_t bound_count() const {
    return static_cast<std::size_t>(
        std::count_if(variables_.begin(), variables_.end(), [](const Variable& v) { return v.binding != nullptr; }));
  }

  bool count_is(const Type* count, std::size_t n) {
    const Type* unused;
    return same(count, types_.value_int(static_cast<std::int64_t>(n)), unused);
  }

  TypeTable& types_;
  const BuiltinTypes& b_;
  std::vector<Variable> variables_;
  int nesting_;
  int steps_ = 0;
};

int union_size(const Type* t) { return as_union(t) ? static_cast<int>(as_union(t)->members.size()) : 1; }

const DataType* nominal(const Type* t) {
  while (auto* u = as_union_all(t)) t = u->body;
  return as_data(t);
}

}  // namespace

const Type* intersect(TypeTable& types, const Type* a, const Type* b) {
  if (a == b) return a;
  if (!a->has_free_vars && !b->has_free_vars) {
    if (is_subtype(types, a, b)) return a;
    if (is_subtype(types, b, a)) return b;
  }
  const Type* result = walk_types(a, b, [&] { return Intersector(types, 0).run(a, b); });
  // Never wider than either side.
  if (result->kind != TypeKind::bottom && !result->has_free_vars && !a->has_free_vars && !b->has_free_vars) {
    if (is_subtype(types, a, result)) return a;
    if (is_subtype(types, b, result)) return b;
  }
  return result;
}

bool certainly_disjoint(TypeTable& types, const Type* a, const Type* b) {
  auto *x = as_data(a), *y = as_data(b);
  if (x && y && x->is_concrete && y->is_concrete && a->is_plain && b->is_plain) return a != b;
  return intersect(types, a, b)->kind == TypeKind::bottom;
}

namespace {

const Type* join(TypeTable& types, const Type* a, const Type* b) {
  const BuiltinTypes& builtin = types.builtin();
  if (a == b) return a;
  if (is_subtype(types, a, b)) return b;
  if (is_subtype(types, b, a)) return a;
  if (auto* u = as_union(a)) {
    const Type* joined = b;
    for (const Type* m : u->members) joined = join(types, joined, m);
    return joined;
  }
  if (as_union(b)) return join(types, b, a);
  auto *x = nominal(a), *y = nominal(b);
  if (!x || !y) return builtin.any;
  if (x->is_tuple && y->is_tuple && !a->has_free_vars && !b->has_free_vars && as_data(a) && as_data(b)) {
    auto rest = [](const DataType* t) { return t->params.empty() ? nullptr : as_vararg(t->params.back()); };
    const VarargType *rest_x = rest(x), *rest_y = rest(y);
    std::size_t fixed_x = x->params.size() - (rest_x ? 1 : 0), fixed_y = y->params.size() - (rest_y ? 1 : 0);
    std::size_t fixed = std::min(fixed_x, fixed_y);
    std::vector<const Type*> elements;
    for (std::size_t i = 0; i < fixed; ++i) elements.push_back(join(types, x->params[i], y->params[i]));
    if (fixed_x != fixed_y || rest_x || rest_y) {
      const Type* tail = builtin.bottom;
      for (const DataType* t : {x, y}) {
        for (std::size_t i = fixed; i < t->params.size(); ++i) {
          auto* more = as_vararg(t->params[i]);
          tail = join(types, tail, more ? more->element : t->params[i]);
        }
      }
      elements.push_back(types.vararg(tail, nullptr));
    }
    return types.tuple(elements);
  }
  // Up from a until b is below too: the application when the parameters agree, else the wrapper.
  for (const DataType* t = x; t != builtin.any; t = t->super) {
    const DataType* other = y;
    while (other != builtin.any && other->name != t->name) other = other->super;
    if (other->name != t->name) continue;
    if (t == other && !t->has_free_vars) return t;
    if (t->is_tuple) return builtin.tuple_any;
    // Parameters that differ are left open, as Julia does.
    std::vector<const Type*> params;
    std::vector<const TypeVar*> opened;
    for (std::size_t i = 0; i < t->params.size(); ++i) {
      if (t->params[i] == other->params[i] && !t->params[i]->has_free_vars) {
        params.push_back(t->params[i]);
      } else {
        const TypeVar* declared = t->name->vars[i];
        opened.push_back(types.var(declared->name, declared->lower->has_free_vars ? builtin.bottom : declared->lower,
                                   declared->upper->has_free_vars ? builtin.any : declared->upper));
        params.push_back(opened.back());
      }
    }
    const Type* joined = types.apply(t->name, params);
    for (std::size_t i = opened.size(); i-- > 0;) joined = types.union_all(opened[i], joined);
    return joined;
  }
  return builtin.any;
}

}  // namespace

const Type* type_join(TypeTable& types, const Type* a, const Type* b) {
  return walk_types(a, b, [&] { return join(types, a, b); });
}

const Type* type_merge(TypeTable& types, const Type* a, const Type* b, int limit) {
  if (a == b || b->kind == TypeKind::bottom) return a;
  if (a->kind == TypeKind::bottom) return b;
  if (is_subtype(types, a, b)) return b;
  if (is_subtype(types, b, a)) return a;
  const Type* both[] = {a, b};
  const Type* merged = types.union_of(both);
  if (union_size(merged) <= limit) return merged;
  // Too many: first join the members of one nominal type, then everything.
  std::vector<const Type*> members(as_union(merged)->members.begin(), as_union(merged)->members.end());
  std::vector<const Type*> joined;
  for (const Type* m : members) {
    bool taken = false;
    for (const Type*& j : joined) {
      auto *x = nominal(j), *y = nominal(m);
      if (x && y && x->name == y->name) {
        j = type_join(types, j, m);
        taken = true;
        break;
      }
    }
    if (!taken) joined.push_back(m);
  }
  if (static_cast<int>(joined.size()) <= limit) return types.union_of(joined);
  const Type* all = joined[0];
  for (const Type* j : joined) all = type_join(types, all, j);
  return all;
}

}  // namespace slope
