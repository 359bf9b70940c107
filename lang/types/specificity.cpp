// Which of two signatures is more specific: what dispatch prefers.
//
// A strict subtype always is. Of signatures that merely overlap the rules are Julia's, argument by argument:
//   - none of a's arguments may be less specific than b's, each is below b's or more specific, and at least one must be
//     more specific; a signature some argument of which is a variable that occurs again ("diagonal") is more specific
//     than one without, when nothing else decides;
//   - a variable counts as its upper bound; but one that occurs again in the signature is more specific than `Any`;
//   - of a parametric type the one with more definite parameters is more specific;
//   - a fixed number of arguments is more specific than any number; a number that a variable ties to another argument
//     is first made the other's.
#include <algorithm>
#include <optional>

#include "lang/support/tuning.hpp"
#include "lang/types/subtype.hpp"
#include "lang/types/type_table_impl.hpp"
#include "lang/types/walk.hpp"

namespace slope {

namespace {

bool is_type_or_var(const Type* t) { return t->kind != TypeKind::value; }

// How often a variable occurs in t; of the members of a union the one with most counts.
int occurrences(const Type* t, const TypeVar* v) {
  if (t == v) return 1;
  if (t == nullptr || !t->has_free_vars) return 0;
  int count = 0;
  if (auto* u = as_union(t)) {
    for (const Type* m : u->members) count = std::max(count, occurrences(m, v));
  } else if (auto* all = as_union_all(t)) {
    count = all->var == v ? 0 : occurrences(all->body, v);
  } else if (auto* d = as_data(t)) {
    for (const Type* p : d->params) count += occurrences(p, v);
  } else if (auto* rest = as_vararg(t)) {
    count = occurrences(rest->element, v) + occurrences(rest->count, v);
  }
  return count;
}

class Specificity {
 public:
  explicit Specificity(TypeTable& types) : types_(types), b_(types.builtin()) {}

  bool more(const Type* a, const Type* b, bool invariant, int depth = 0) {
    if (a == b || depth > tuning::specificity_depth) return false;
    auto *x = as_data(a), *y = as_data(b);
    if (x && y && x->is_tuple && y->is_tuple) return tuple_more(x, y, invariant, depth + 1);
    if (!invariant && a == b_.any) return false;
    if (!invariant && b == b_.any && !as_var(a)) return true;
    if (as_union(a))
      return as_union_all(b) ? in_body_of_b(a, b, invariant, depth) : union_more(a, b, invariant, depth + 1);
    if (x && !invariant && x->name == b_.type_name)
      if (const std::optional<bool> known = type_of_type_more(x, b)) return *known;
    if (auto* u = as_union(b)) {
      if (as_union_all(a)) return in_body_of_a(a, b, invariant, depth);
      for (const Type* m : u->members)
        if (more(a, m, invariant, depth + 1)) return !more(b, a, invariant, depth + 1);
      return false;
    }
    if (x && y) return data_more(x, y, depth);
    if (auto* var = as_var(a)) return var_more(var, b, invariant, depth);
    if (auto* var = as_var(b)) return more_than_var(a, var, invariant, depth);
    if (as_union_all(a)) return in_body_of_a(a, b, invariant, depth);
    if (as_union_all(b)) return in_body_of_b(a, b, invariant, depth);
    return false;
  }

 private:
  bool in_body_of_a(const Type* a, const Type* b, bool invariant, int depth) {
    auto* all = as_union_all(a);
    scope_.push_back({all->var, occurrences(all->body, all->var)});
    const bool answer = more(all->body, b, invariant, depth + 1);
    scope_.pop_back();
    return answer;
  }

  bool in_body_of_b(const Type* a, const Type* b, bool invariant, int depth) {
    auto* all = as_union_all(b);
    scope_.push_back({all->var, occurrences(all->body, all->var)});
    const bool answer = more(a, all->body, invariant, depth + 1);
    scope_.pop_back();
    return answer;
  }

  bool is_repeated(const Type* t) const {
    for (auto at = scope_.rbegin(); at != scope_.rend(); ++at)
      if (at->var == t) return at->count > 1;
    return false;
  }

  // Some member of a is more specific than b, and no member of b than a.
  bool union_more(const Type* a, const Type* b, bool invariant, int depth) {
    if (below(b, a)) return false;
    const auto members = as_union(a)->members;
    if (std::none_of(members.begin(), members.end(), [&](const Type* m) { return more(m, b, invariant, depth); }))
      return false;
    if (auto* other = as_union(b))
      for (const Type* m : other->members)
        if (more(m, a, invariant, depth)) return false;
    return true;
  }

  // Type{…} against the types of types, and against what Type{Union{}} is below.
  std::optional<bool> type_of_type_more(const DataType* a, const Type* b) {
    auto* kind = as_data(b);
    const Type* of = a->params[0];
    if (auto* var = as_var(of)) {
      if (kind && kind->is_kind && !below(b_.any, var->upper)) return true;
    } else if (of->kind == TypeKind::bottom) {
      if (below(b, b_.type_name->wrapper)) return true;
    } else if (kind && kind->is_kind) {
      return true;
    }
    return std::nullopt;
  }

  bool data_more(const DataType* x, const DataType* y, int depth) {
    for (const DataType* t = x; t != b_.any; t = t->super) {
      if (t->name != y->name) continue;
      if (t != x) {
        if (t->name != b_.type_name) return true;
        auto* var = as_var(y->params[0]);
        if (var && below(b_.any, var->upper)) return true;
      }
      return params_more(t, y, depth + 1);
    }
    return false;
  }

  bool params_more(const DataType* x, const DataType* y, int depth) {
    if (x->params.size() != y->params.size()) return false;
    int score_x = 0, score_y = 0;
    bool value_x = false, value_y = false, ties_x = false, ties_y = false;
    for (std::size_t i = 0; i < x->params.size(); ++i) {
      const Type *p = x->params[i], *q = y->params[i];
      const bool free_p = p->has_free_vars, free_q = q->has_free_vars;
      if (!free_p && !free_q && !same(p, q)) return false;
      if (more(p, q, true, depth) && (as_var(p) || !free_p || free_q)) {
        ++score_x;
      } else if (more(q, p, true, depth) && (as_var(q) || !free_q || free_p)) {
        ++score_y;
      } else if (free_p != free_q && same(p, q)) {
        ++(free_q ? score_x : score_y);
      }
      value_x |= as_var(q) && !is_type_or_var(p);
      value_y |= as_var(p) && !is_type_or_var(q);
      ties_x |= as_var(p) && occurs_after(x, i, as_var(p));
      ties_y |= as_var(q) && occurs_after(y, i, as_var(q));
    }
    if (value_x != value_y) return value_x;
    if (score_y > score_x || (ties_y && !ties_x)) return false;
    return score_x > score_y || (ties_x && !ties_y);
  }

  static bool occurs_after(const DataType* t, std::size_t i, const TypeVar* var) {
    return std::any_of(t->params.begin() + static_cast<std::ptrdiff_t>(i) + 1, t->params.end(),
                       [&](const Type* p) { return occurs(var, p); });
  }

  bool var_more(const TypeVar* a, const Type* b, bool invariant, int depth) {
    if (auto* other = as_var(b))
      return (more(a->upper, other->upper, false, depth + 1) && !more(a->lower, other->lower, false, depth + 1)) ||
             (more(other->lower, a->lower, false, depth + 1) && !more(other->upper, a->upper, false, depth + 1));
    if (!is_type_or_var(b)) return false;
    if (invariant) {
      if (a->upper->kind == TypeKind::bottom) return true;
      if (!b->has_free_vars) return false;
      if (same(a->upper, b)) return is_repeated(a);
    } else if (b == b_.any && a->upper == b_.any && is_repeated(a)) {
      return true;
    }
    return more(a->upper, b, false, depth + 1);
  }

  bool more_than_var(const Type* a, const TypeVar* b, bool invariant, int depth) {
    if (!is_type_or_var(a)) return true;
    if (!invariant) return more(a, b->upper, false, depth + 1);
    if (b->upper->kind == TypeKind::bottom) return false;
    if (a->has_free_vars) return more(a, b->upper, false, depth + 1) || (same(a, b->upper) && !is_repeated(b));
    if (a->kind != TypeKind::bottom && certainly_disjoint(types_, a, erase(b->upper))) return false;
    return !more(b->upper, a, false, depth + 1);
  }

  // The rest of a tuple's arguments: `Vararg{T}` of any number.
  static const VarargType* rest_of(const DataType* t) {
    return t->params.empty() ? nullptr : as_vararg(t->params.back());
  }
  static bool is_tied(const VarargType* rest) { return rest && rest->count && as_var(rest->count); }

  // a's number of arguments is a variable's: made b's, when this says more about another argument of a.
  const DataType* with_number_of(const DataType* a, const DataType* b) {
    const std::size_t fixed = a->params.size() - 1;
    if (b->params.size() < fixed + 1) return nullptr;
    const TypeVar* number = as_var(rest_of(a)->count);
    const Type* count = types_.value_int(static_cast<std::int64_t>(b->params.size() - fixed));
    const DataType* made = as_data(types_.substitute(a, {&number, 1}, {&count, 1}));
    if (made == nullptr || made->params.size() < fixed) return nullptr;
    return std::equal(a->params.begin(), a->params.begin() + static_cast<std::ptrdiff_t>(fixed), made->params.begin())
               ? nullptr
               : made;
  }

  bool tuple_more(const DataType* x, const DataType* y, bool invariant, int depth) {
    const VarargType *rest_x = rest_of(x), *rest_y = rest_of(y);
    if (is_tied(rest_x) && !rest_y) {
      const DataType* made = with_number_of(x, y);
      if (made && !same(y, made) && more(made, y, false, depth)) return true;
      if (made && same(y, made)) return elements_more(x, y, invariant, depth);
    }
    if (is_tied(rest_y) && !rest_x) {
      const DataType* made = with_number_of(y, x);
      if (made && !same(x, made) && !more(x, made, false, depth)) return false;
    }
    return elements_more(x, y, invariant, depth);
  }

  static const Type* element(const DataType* t, const VarargType* rest, std::size_t i) {
    if (rest && i + 1 >= t->params.size()) return rest->element;
    return i < t->params.size() ? t->params[i] : nullptr;
  }

  bool elements_more(const DataType* x, const DataType* y, bool invariant, int depth) {
    const VarargType *rest_x = rest_of(x), *rest_y = rest_of(y);
    const std::size_t size_x = x->params.size(), size_y = y->params.size();
    if (size_y == 0) return false;
    if (size_x == 0) return true;
    bool some = false, diagonal_x = false, diagonal_y = false;
    for (std::size_t i = 0; !(rest_x && rest_y && i >= size_x && i >= size_y); ++i) {
      const Type *p = element(x, rest_x, i), *q = element(y, rest_y, i);
      if (!p && !q) break;
      if (!p) return true;
      if (!q) {
        if (!rest_x && !some) return false;
        break;
      }
      if (more(q, p, invariant, depth)) return false;
      diagonal_x |= as_var(p) && is_repeated(p);
      diagonal_y |= as_var(q) && is_repeated(q);
      // What any number of arguments follows may have nothing in common: no argument need be there.
      if (rest_x && rest_y && i + 1 >= size_x && i + 1 >= size_y && (some || (diagonal_x && !diagonal_y))) return true;
      const bool is_more = more(p, q, invariant, depth);
      // (Array{T,N}, Int...{N}) is before (Array, Int), which is before (AbstractArray, Int, Array): so is the first.
      if (!is_more && !below(p, q)) return some && is_tied(rest_x) && is_repeated(rest_x->count);
      // (…, T) is not before (…, S...) whose arguments are all of one type.
      if (!is_more && i + 1 == size_x && size_x == size_y && !rest_x && rest_y && same(p, q) && as_var(p) &&
          as_var(q) && !diagonal_x && diagonal_y)
        return false;
      some |= is_more;
    }
    if (rest_x && rest_y && size_x > size_y && (!diagonal_y || diagonal_x)) return true;
    if (rest_x && !rest_y && !some) return false;
    return some || (diagonal_x && !diagonal_y);
  }

  const Type* erase(const Type* t) {
    // Closes over the free variables.
    if (!t->has_free_vars) return t;
    std::vector<const TypeVar*> vars;
    collect(t, vars);
    // A variable that bounds of others mention is closed over after them.
    while (!vars.empty()) {
      const auto mentioned = [&](const TypeVar* v) {
        return std::any_of(vars.begin(), vars.end(), [&](const TypeVar* other) {
          return other != v && (occurs(v, other->upper) || occurs(v, other->lower));
        });
      };
      auto next = std::find_if_not(vars.begin(), vars.end(), mentioned);
      if (next == vars.end()) next = vars.begin();
      t = types_.union_all(*next, t);
      vars.erase(next);
    }
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
  bool same(const Type* a, const Type* b) {
    if (a == b) return true;
    return is_type_or_var(a) && is_type_or_var(b) && below(a, b) && below(b, a);
  }

  struct Occurring {
    const TypeVar* var;
    int count;
  };

  TypeTable& types_;
  const BuiltinTypes& b_;
  std::vector<Occurring> scope_;  // the variables of the unions that the walk is in
};

bool compare(TypeTable& types, const Type* a, const Type* b) {
  if (is_subtype(types, a, b)) return !is_subtype(types, b, a);
  if (is_subtype(types, b, a) || certainly_disjoint(types, a, b)) return false;
  return Specificity(types).more(a, b, false);
}

}  // namespace

bool more_specific(TypeTable& types, const Type* a, const Type* b) {
  if (a == b) return false;
  std::vector<TypeTable::Impl::Order>& orders = types.impl_->orders;
  if (orders.empty()) orders.resize(tuning::order_answers);
  if (types.impl_->orders_missed > 2 * orders.size() && orders.size() < tuning::order_answers_most) {
    orders = std::vector<TypeTable::Impl::Order>(4 * orders.size());
    types.impl_->orders_missed = 0;
  }
  const std::uint64_t hash = mix_hash(reinterpret_cast<std::uintptr_t>(a), reinterpret_cast<std::uintptr_t>(b));
  const std::size_t at = hash & (orders.size() - 1);
  if (orders[at].a == a && orders[at].b == b) return orders[at].more;
  ++types.impl_->orders_missed;
  const bool more = walk_types(a, b, [&] { return compare(types, a, b); });
  // What compares may have compared others, and the table may have grown meanwhile.
  orders[hash & (orders.size() - 1)] = {a, b, more};
  return more;
}

}  // namespace slope
