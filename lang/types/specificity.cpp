// Which of two signatures is more specific: what dispatch prefers.
//
// A strict subtype always is. Of signatures that merely overlap the rules are Julia's, argument by argument:
//   - none of a's arguments may be less specific than b's, at least one must be more specific, and pairs that are
//     neither equal nor ordered decide for nobody;
//   - a variable counts as its upper bound; but one that occurs again in the signature is more specific than `Any`;
//   - of a parametric type the one with more definite parameters is more specific;
//   - a fixed number of arguments is more specific than any number.
#include <algorithm>

#include "lang/support/tuning.hpp"
#include "lang/types/subtype.hpp"
#include "lang/types/type_table_impl.hpp"
#include "lang/types/walk.hpp"

namespace slope {

namespace {

class Specificity {
 public:
  explicit Specificity(TypeTable& types) : types_(types), b_(types.builtin()) {}

  // a and b may contain variables of union_alls that were stripped.
  bool more(const Type* a, const Type* b, bool invariant, int depth = 0) {
    if (a == b || depth > tuning::specificity_depth) return false;
    if (as_var(a) && as_var(b)) {
      if (invariant && strictly_below(erase(a), erase(b))) return true;
      // Type{<:Below{B}} is more specific than Type{<:Above{B}} where {B<:C}: the names decide.
      if (invariant && is_repeated(as_var(b)) && !is_repeated(as_var(a))) return false;
      return more(as_var(a)->upper, as_var(b)->upper, false, depth + 1);
    }
    if (auto* var = as_var(b)) {
      if (a->kind == TypeKind::value) return true;
      if (!invariant) return more(a, var->upper, false, depth + 1);
      // A definite parameter against a variable.
      return a->kind == TypeKind::bottom || var->upper == b_.any || is_subtype(types_, erase(a), erase(var->upper)) ||
             more(a, var->upper, false, depth + 1);
    }
    if (auto* var = as_var(a)) {
      if (b->kind == TypeKind::value) return false;
      if (!invariant && is_repeated(var) && b == b_.any) return true;
      if (!invariant) return more(var->upper, b, false, depth + 1);
      return var->upper != b_.any && !type_equal(types_, erase(var->upper), erase(b)) &&
             strictly_below(erase(var->upper), erase(b));
    }
    if (a->kind == TypeKind::bottom) return true;
    if (b->kind == TypeKind::bottom) return false;
    if (a->kind == TypeKind::value || b->kind == TypeKind::value) return false;
    if (!a->has_free_vars && !b->has_free_vars && (!invariant || as_union(a) || as_union(b))) {
      if (is_subtype(types_, a, b)) return !is_subtype(types_, b, a);
      if (is_subtype(types_, b, a)) return false;
    }
    if (auto* u = as_union_all(a)) return more(u->body, b, invariant, depth + 1);
    if (auto* u = as_union_all(b)) return more(a, u->body, invariant, depth + 1);
    if (auto* u = as_union(a)) {
      // Some member is more specific than b, and b than none of them.
      bool some = false;
      for (const Type* m : u->members) {
        if (more(b, m, invariant, depth + 1) || below(b, m)) return false;
        some |= more(m, b, invariant, depth + 1);
      }
      return some;
    }
    if (auto* u = as_union(b)) {
      bool some = false;
      for (const Type* m : u->members) {
        if (below(a, m)) return true;
        some |= more(a, m, invariant, depth + 1);
      }
      return some && !more_union(u, a, invariant, depth);
    }
    auto *x = as_data(a), *y = as_data(b);
    if (!x || !y) return false;
    if (x->is_tuple && y->is_tuple) return tuple_more(x, y, invariant, depth + 1);
    if (!invariant) {
      if (y == b_.any) return true;
      if (x == b_.any) return false;
    }
    if (x->name == b_.type_name && y->is_kind) return true;
    if (x->is_kind && y->name == b_.type_name) return false;
    for (const DataType* t = x;; t = t->super) {
      if (t->name == y->name) {
        if (t != x && t->name != x->name) return !t->has_free_vars || params_compatible(t, y);
        return params_more(t, y, depth);
      }
      if (invariant || t == b_.any) return false;
    }
  }

  // Notes the variables that occur more than once: they tie arguments together, so that (x::T, y::T) has more to say
  // than (x, y), argument by argument.
  void note_repeated(const Type* tuple) {
    std::vector<const TypeVar*> once;
    note_occurrences(tuple, once);
  }

 private:
  void note_occurrences(const Type* t, std::vector<const TypeVar*>& once) {
    if (!t->has_free_vars) return;
    if (auto* var = as_var(t)) {
      if (std::find(once.begin(), once.end(), var) == once.end()) {
        once.push_back(var);
      } else if (!is_repeated(var)) {
        repeated_.push_back(var);
      }
    } else if (auto* d = as_data(t)) {
      for (const Type* p : d->params) note_occurrences(p, once);
    } else if (auto* u = as_union(t)) {
      for (const Type* m : u->members) note_occurrences(m, once);
    } else if (auto* all = as_union_all(t)) {
      note_occurrences(all->body, once);
    } else if (auto* v = as_vararg(t)) {
      note_occurrences(v->element, once);
    }
  }

  bool is_repeated(const TypeVar* var) const {
    return std::find(repeated_.begin(), repeated_.end(), var) != repeated_.end();
  }

  const Type* erase(const Type* t) {
    // Closes over the free variables.
    if (!t->has_free_vars) return t;
    std::vector<const TypeVar*> vars;
    collect(t, vars);
    for (const TypeVar* v : vars) t = types_.union_all(v, t);
    return t->has_free_vars ? b_.any : t;
  }

  static void collect(const Type* t, std::vector<const TypeVar*>& vars) {
    if (!t || !t->has_free_vars) return;
    switch (t->kind) {
      case TypeKind::var:
        if (std::find(vars.begin(), vars.end(), t) == vars.end()) {
          vars.push_back(as_var(t));
          collect(as_var(t)->upper, vars);
          collect(as_var(t)->lower, vars);
        }
        break;
      case TypeKind::data:
        for (const Type* p : as_data(t)->params) collect(p, vars);
        break;
      case TypeKind::union_:
        for (const Type* m : as_union(t)->members) collect(m, vars);
        break;
      case TypeKind::union_all:
        collect(as_union_all(t)->body, vars);
        break;
      case TypeKind::vararg:
        collect(as_vararg(t)->element, vars);
        collect(as_vararg(t)->count, vars);
        break;
      default:
        break;
    }
  }

  bool below(const Type* a, const Type* b) { return is_subtype(types_, erase(a), erase(b)); }
  bool strictly_below(const Type* a, const Type* b) { return below(a, b) && !below(b, a); }
  bool equivalent(const Type* a, const Type* b) { return a == b || (below(a, b) && below(b, a)); }

  bool more_union(const UnionType* u, const Type* a, bool invariant, int depth) {
    for (const Type* m : u->members)
      if (more(m, a, invariant, depth + 1)) return true;
    return false;
  }

  // x was reached by climbing: is it about the same parameters at all?
  bool params_compatible(const DataType* x, const DataType* y) {
    return !certainly_disjoint(types_, erase(x), erase(y));
  }

  bool params_more(const DataType* x, const DataType* y, int depth) {
    if (x->params.size() != y->params.size()) return false;
    int score_x = 0, score_y = 0, definite_x = 0, definite_y = 0;
    for (std::size_t i = 0; i < x->params.size(); ++i) {
      const Type *p = x->params[i], *q = y->params[i];
      if (more(p, q, true, depth + 1)) {
        ++score_x;
      } else if (more(q, p, true, depth + 1)) {
        ++score_y;
      } else if (p != q && !as_var(p) && !as_var(q) && !p->has_free_vars && !q->has_free_vars && !equivalent(p, q)) {
        return false;  // disjoint
      }
      if (as_var(q) && !as_var(p)) ++definite_x;
      if (as_var(p) && !as_var(q)) ++definite_y;
    }
    if (score_x != score_y) return score_x > score_y && score_y == 0;
    return definite_x > definite_y;
  }

  bool tuple_more(const DataType* x, const DataType* y, bool invariant, int depth) {
    const VarargType* rest_x = x->params.empty() ? nullptr : as_vararg(x->params.back());
    const VarargType* rest_y = y->params.empty() ? nullptr : as_vararg(y->params.back());
    std::size_t fixed_x = x->params.size() - (rest_x ? 1 : 0), fixed_y = y->params.size() - (rest_y ? 1 : 0);
    if (!rest_x && !rest_y && fixed_x != fixed_y) return false;
    if (!rest_x && rest_y && fixed_x < fixed_y) return false;
    bool some = false;
    std::size_t count = std::max(fixed_x + (rest_x ? 1 : 0), fixed_y + (rest_y ? 1 : 0));
    for (std::size_t i = 0; i < count; ++i) {
      const Type* p = i < fixed_x ? x->params[i] : rest_x ? rest_x->element : nullptr;
      const Type* q = i < fixed_y ? y->params[i] : rest_y ? rest_y->element : nullptr;
      if (!p || !q) break;
      if (p == q) continue;
      if (more(p, q, invariant, depth)) {
        some = true;
      } else if (more(q, p, invariant, depth)) {
        return false;
      } else if (!equivalent(p, q)) {
        // Trailing arguments that have nothing in common are absent from every common call.
        bool optional = i >= fixed_x && i >= fixed_y;
        if (!(optional && certainly_disjoint(types_, erase(p), erase(q)))) return false;
      }
    }
    bool bounded_x = !rest_x || rest_x->count, bounded_y = !rest_y || rest_y->count;
    if (!rest_x && rest_y) return true;
    if (rest_x && !rest_y) return some;
    if (some) return true;
    // Equal as far as they go.
    if (bounded_x != bounded_y) return bounded_x;
    return rest_x && rest_y && fixed_x > fixed_y;
  }

  TypeTable& types_;
  const BuiltinTypes& b_;
  std::vector<const TypeVar*> repeated_;
};

// Uses of the variables of a signature in its arguments beyond the first of each: how much it ties arguments together.
int ties(const Type* signature) {
  int total = 0;
  std::vector<const TypeVar*> vars;
  const Type* t = signature;
  while (auto* u = as_union_all(t)) {
    vars.push_back(u->var);
    t = u->body;
  }
  auto* tuple = as_data(t);
  if (!tuple) return 0;
  for (const TypeVar* v : vars) {
    int uses = 0;
    for (const Type* p : tuple->params) uses += occurs(v, p) ? 1 : 0;
    total += std::max(0, uses - 1);
  }
  return total;
}

bool compare(TypeTable& types, const Type* a, const Type* b) {
  if (is_subtype(types, a, b)) return !is_subtype(types, b, a);
  if (is_subtype(types, b, a)) return false;
  const Type *x = a, *y = b;
  while (auto* u = as_union_all(x)) x = u->body;
  while (auto* u = as_union_all(y)) y = u->body;
  Specificity order(types);
  order.note_repeated(x);
  order.note_repeated(y);
  bool forwards = order.more(x, y, false), backwards = order.more(y, x, false);
  // A signature that ties its arguments together has something to say that its arguments one by one have not.
  int ties_a = ties(a), ties_b = ties(b);
  if (forwards != backwards) return forwards;
  if (forwards || ties_a <= ties_b) return false;
  auto *p = as_data(x), *q = as_data(y);
  if (!p || !q || p->params.size() != q->params.size()) return false;
  for (std::size_t i = 0; i < p->params.size(); ++i) {
    bool less = order.more(q->params[i], p->params[i], false);
    if (less) return false;
  }
  return !certainly_disjoint(types, a, b);
}

}  // namespace

bool more_specific(TypeTable& types, const Type* a, const Type* b) {
  if (a == b) return false;
  std::vector<TypeTable::Impl::Order>& orders = types.impl_->orders;
  if (orders.empty()) orders.resize(tuning::order_answers);
  const std::uint64_t hash = mix_hash(reinterpret_cast<std::uintptr_t>(a), reinterpret_cast<std::uintptr_t>(b));
  const std::size_t at = hash & (orders.size() - 1);
  if (orders[at].a == a && orders[at].b == b) return orders[at].more;
  const bool more = walk_types(a, b, [&] { return compare(types, a, b); });
  orders[at] = {a, b, more};
  return more;
}

}  // namespace slope
