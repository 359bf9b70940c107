// The subtype relation, after "Julia Subtyping: A Rational Reconstruction" (Zappa Nardelli et al., OOPSLA 2018) and the
// section on UnionAll types in Julia's manual.
//
// `a <: b` is decided by one walk over both types, with an environment of the variables found on the way:
//   - A variable bound on the left is universal: nothing is learnt about it, its bounds represent it.
//   - A variable bound on the right is existential: each comparison narrows its interval [lower, upper].
// Invariant parameters are compared in both directions.
//
// Unions make choices: on the left all members must fit ("for all"), on the right one must ("exists"). Choices are not
// kept as continuations. The whole walk is replayed with the recorded choices, with the last one advanced. The outer
// loop runs over the left choices, the inner one over the right choices. Inside invariant parameters the left choices
// have a loop of their own, which accumulates what was learnt of variables. A comparison of two types without free
// variables does not depend on the environment and is decided separately, which keeps the number of replays small.
//
// Diagonal rule: a variable that occurs more than once in covariant position and never in invariant position stands for
// concrete types only. So Tuple{Int,String} is not a Tuple{T,T} where T.
//
// Traps:
//  1. An existential variable must not be bound to a universal one of an inner scope when they are at different depths
//     of invariance (∃T ∀S. T == S is false).
//  2. A walk may meet the same variable object twice, because types are shared. The second binding is renamed.
//  3. `false` is always a safe answer, `true` never is. So limits answer false.
#include "lang/types/subtype.hpp"

#include <algorithm>

#include "lang/support/tuning.hpp"
#include "lang/types/type_table_impl.hpp"
#include "lang/types/walk.hpp"

namespace slope {

namespace {

enum class Position : std::uint8_t { outside, covariant, invariant };

struct VarBinding {
  const TypeVar* var;
  const Type* lower;
  const Type* upper;
  bool existential;
  bool concrete = false;       // another, diagonal variable was bound to this one
  std::uint8_t covariant = 0;  // occurrences, saturating at 2
  std::uint8_t invariant = 0;
  int depth;  // of invariance where it is bound
  VarBinding* outer;
};

// A replayable sequence of choices.
class Choices {
 public:
  void rewind() { at_ = 0; }
  bool none_made() const { return at_ == 0; }
  int choose(int count) {
    if (at_ == taken_.size()) taken_.push_back({0, count});
    return taken_[at_++].choice;
  }
  // Moves the last choice that was met in this replay on to its next alternative; false when all were tried.
  bool advance() {
    taken_.resize(at_);
    while (!taken_.empty()) {
      if (++taken_.back().choice < taken_.back().count) return true;
      taken_.pop_back();
    }
    return false;
  }

 private:
  struct Taken {
    int choice, count;
  };
  std::vector<Taken> taken_;
  std::size_t at_ = 0;
};

// Is there a union that a walk over t would have to take member by member?
bool splits(const Type* t) {
  switch (t->kind) {
    case TypeKind::union_:
      return true;
    case TypeKind::data: {
      auto* d = as_data(t);
      return d->is_tuple && !d->is_plain && std::any_of(d->params.begin(), d->params.end(), splits);
    }
    case TypeKind::union_all:
      return splits(as_union_all(t)->var->upper) || splits(as_union_all(t)->body);
    case TypeKind::vararg:
      return splits(as_vararg(t)->element);
    default:
      return false;
  }
}

constexpr int max_replays = tuning::subtype_replays;
constexpr int max_depth = tuning::subtype_depth;

}  // namespace

class Subtyper {
 public:
  explicit Subtyper(TypeTable& types, int depth = 0) : types_(types), b_(types.builtin()), nesting_(depth) {}

  bool run(const Type* x, const Type* y) {
    for (int replays = 0;;) {
      if (!exists(x, y, replays)) return false;
      if (!forall_.advance()) return true;
      if (replays > max_replays) return false;
    }
  }

  // x <: the body of y's union_alls; the solutions of their variables in `solved`.
  bool solve(const Type* x, const Type* y, std::vector<const Type*>& solved) {
    bool first = true;
    for (int replays = 0;;) {
      std::vector<const Type*> now;
      solved_ = &now;
      bool ok = exists(x, y, replays);
      solved_ = nullptr;
      if (!ok) return false;
      std::reverse(now.begin(), now.end());
      if (first) {
        solved = now;
      } else {
        // The members of a union on the left gave different answers: only what they agree on is known.
        const Type* t = y;
        for (std::size_t i = 0; i < solved.size() && i < now.size(); ++i) {
          auto* u = as_union_all(t);
          if (solved[i] != now[i]) solved[i] = u->var;
          t = u->body;
        }
      }
      first = false;
      if (!forall_.advance()) return true;
      if (replays > max_replays) return false;
    }
  }

 private:
  bool exists(const Type* x, const Type* y, int& replays) {
    exists_ = Choices();
    for (;;) {
      forall_.rewind();
      exists_.rewind();
      env_ = nullptr;
      invariant_depth_ = 0;
      bool ok;
      if (solved_) {
        solved_->clear();
        ok = solve_outer(x, y);
      } else {
        ok = sub(x, y, Position::outside);
      }
      if (ok) return true;
      if (++replays > max_replays || !exists_.advance()) return false;
    }
  }

  // Like `sub` for the outermost union_alls of y, recording what their variables became.
  bool solve_outer(const Type* x, const Type* y) {
    auto* u = as_union_all(y);
    if (!u) return sub(x, y, Position::outside);
    VarBinding binding{u->var, u->var->lower, u->var->upper, true, false, 0, 0, 0, env_};
    env_ = &binding;
    bool ok = solve_outer(x, u->body);
    env_ = binding.outer;
    ok = ok && leave(binding, u->body);
    if (ok) {
      const Type* found = u->var;
      if (binding.lower == binding.upper) {
        found = binding.lower;
      } else if (binding.lower->kind != TypeKind::bottom && !(binding.lower == b_.any && binding.upper == b_.any)) {
        found = binding.lower;
        // f(x::T) where T called with a type: T is DataType.
        if (const DataType* kind = binding.invariant ? nullptr : kind_of_type(found)) found = kind;
        // Covariant and only known to contain `lower`: exactly that for concrete arguments, otherwise a bounded
        // unknown.
        if (!binding.invariant && !is_leaf_bound(found) && !found->has_free_vars)
          found = types_.var(u->var->name, b_.bottom, found);
      } else if (binding.upper != u->var->upper && !binding.upper->has_free_vars) {
        found = types_.var(u->var->name, b_.bottom, binding.upper);
      }
      // What mentions a variable that the arguments leave open is no value: the parameter is not defined.
      if (!as_var(found) && found->has_free_vars) found = u->var;
      solved_->push_back(found);
    }
    return ok;
  }

  VarBinding* lookup(const Type* var) const {
    for (VarBinding* v = env_; v; v = v->outer)
      if (v->var == var) return v;
    return nullptr;
  }

  bool closed_subtype(const Type* x, const Type* y) {
    if (x == y) return true;
    if (nesting_ > max_depth) return false;
    Subtyper fresh(types_, nesting_ + 1);
    return fresh.run(x, y);
  }

  void occurrence(VarBinding* v, Position position) {
    if (!v || position == Position::outside) return;
    std::uint8_t& counter =
        position == Position::invariant && invariant_depth_ > v->depth ? v->invariant : v->covariant;
    if (counter < 2) ++counter;
  }

  // Is `a` bound inside the scope of `b`?
  bool outside(const VarBinding* b, const VarBinding* a) const {
    for (VarBinding* v = env_; v; v = v->outer) {
      if (v == a) return true;
      if (v == b) return false;
    }
    return false;
  }

  // A comparison that is a side condition: its left unions are decided here.
  bool check(const Type* x, const Type* y) {
    if (x == y || x->kind == TypeKind::bottom || y == b_.any) return true;
    if (!x->has_free_vars && !y->has_free_vars) return closed_subtype(x, y);
    return local_forall(x, y, Position::outside);
  }

  bool local_forall(const Type* x, const Type* y, Position position) {
    Choices saved = std::move(forall_);
    forall_ = Choices();
    bool ok;
    int rounds = 0;
    do {
      forall_.rewind();
      ok = sub(x, y, position);
    } while (ok && forall_.advance() && ++rounds < max_replays);
    forall_ = std::move(saved);
    return ok && rounds < max_replays;
  }

  const Type* join(const Type* a, const Type* b, Position position) {
    if (a == b || b->kind == TypeKind::bottom) return a;
    if (a->kind == TypeKind::bottom) return b;
    if (a == b_.any || b == b_.any) return b_.any;
    // Two types as arguments: what both are is a DataType (or UnionAll …).
    if (const DataType* kind = kind_of_type(a); kind && position != Position::invariant && kind == kind_of_type(b))
      return kind;
    if (!a->has_free_vars && !b->has_free_vars) {
      if (closed_subtype(a, b)) return b;
      if (closed_subtype(b, a)) return a;
    }
    const Type* both[] = {a, b};
    return types_.union_of(both);
  }

  // typeof(X) for Type{X}; null for anything else.
  const DataType* kind_of_type(const Type* t) const {
    auto* d = as_data(t);
    if (!d || !d->is_type_of_type) return nullptr;
    switch (d->params[0]->kind) {
      case TypeKind::data:
        return b_.data_type;
      case TypeKind::union_all:
        return b_.union_all;
      case TypeKind::union_:
        return b_.union_;
      case TypeKind::bottom:
        return b_.type_of_bottom;
      default:
        return nullptr;
    }
  }

  const Type* meet(const Type* a, const Type* b) {
    if (a == b || b == b_.any) return a;
    if (a == b_.any) return b;
    if (a->kind == TypeKind::bottom || b->kind == TypeKind::bottom) return b_.bottom;
    if (!a->has_free_vars && !b->has_free_vars) {
      if (a->kind == TypeKind::value || b->kind == TypeKind::value) return b_.bottom;
      return intersect(types_, a, b);
    }
    return b;
  }

  // var <: y
  bool var_below(const TypeVar* var, const Type* y, Position position) {
    VarBinding* v = lookup(var);
    if (!v) return sub(var->upper, y, position);
    occurrence(v, position);
    if (!v->existential) return sub(v->upper, y, position);
    if (v->upper == y) return true;
    if (!((v->lower->kind == TypeKind::bottom && !as_var(y)) || check(v->lower, y))) return false;
    if (!inner_universal_allowed(v, y)) return false;
    v->upper = meet(v->upper, y);
    return true;
  }

  // x <: var
  bool var_above(const TypeVar* var, const Type* x, Position position) {
    VarBinding* v = lookup(var);
    if (!v) return sub(x, var->lower, position);
    occurrence(v, position);
    if (!v->existential) return sub(x, v->lower, position);
    if (v->lower == x && !as_var(x)) return true;
    if (!((v->upper == b_.any && !as_var(x)) || check(x, v->upper))) return false;
    if (!inner_universal_allowed(v, x)) return false;
    v->lower = join(v->lower, x, position);
    return true;
  }

  bool inner_universal_allowed(const VarBinding* v, const Type* other) const {
    auto* var = as_var(other);
    if (!var) return true;
    const VarBinding* o = lookup(var);
    return !(o && !o->existential && o->depth != v->depth && outside(v, o));
  }

  bool enter_union_all(const Type* other, const UnionAllType* u, bool right, Position position) {
    if (lookup(u->var)) {  // met again on the same path
      const TypeVar* fresh = types_.var(u->var->name, u->var->lower, u->var->upper);
      const TypeVar* from[] = {u->var};
      const Type* to[] = {fresh};
      const Type* body = types_.substitute(u->body, from, to);
      return with_binding(other, fresh, body, right, position);
    }
    return with_binding(other, u->var, u->body, right, position);
  }

  bool with_binding(const Type* other, const TypeVar* var, const Type* body, bool right, Position position) {
    VarBinding binding{var, var->lower, var->upper, right, false, 0, 0, invariant_depth_, env_};
    env_ = &binding;
    bool ok = right ? sub(other, body, position) : sub(body, other, position);
    env_ = binding.outer;
    if (!ok || !leave(binding, body)) return false;
    if (!right) forget_universal(binding, body);
    return true;
  }

  // A universal variable goes out of scope. Bounds of outer variables that mention it now mean some unknown type, which
  // is not the one of the next time its union_all is entered (Tuple{Vector,Vector} is no Tuple{Vector{T},Vector{T}}).
  void forget_universal(const VarBinding& gone, const Type* body) {
    const TypeVar* var = gone.var;
    const Type* unknown = nullptr;
    bool concrete = (gone.covariant > 1 && !occurs_invariantly(var, body)) || is_leaf_bound(var->upper);
    const TypeVar* from[] = {var};
    for (VarBinding* v = env_; v; v = v->outer) {
      for (const Type** bound : {&v->lower, &v->upper}) {
        if (!occurs(var, *bound)) continue;
        if (!unknown) {
          const TypeVar* fresh = types_.var(var->name, var->lower, var->upper);
          if (!concrete) not_concrete_.push_back(fresh);
          unknown = fresh;
        }
        *bound = types_.substitute(*bound, from, std::span<const Type* const>(&unknown, 1));
      }
    }
  }

  // A concrete type, Type{…}, bottom or a value: what a diagonal variable may stand for.
  bool is_leaf_bound(const Type* t) const {
    if (t->kind == TypeKind::bottom || t->kind == TypeKind::value) return true;
    auto* d = as_data(t);
    if (!d) return false;
    if (d->is_concrete || d->is_type_of_type) return true;
    if (!d->is_tuple || d->has_free_vars) return false;
    for (const Type* p : d->params)  // Tuple{Type{Int}} and the like
      if (as_vararg(p) || !is_leaf_bound(p)) return false;
    return true;
  }

  // The conditions that can be judged only when everything about the variable is known.
  bool leave(VarBinding& v, const Type* body) {
    // Whether it occurs invariantly is a matter of the text: such a part may not have been compared with anything.
    bool diagonal = v.covariant > 1 && !v.invariant && !occurs_invariantly(v.var, body);
    if (v.concrete || (diagonal && v.var->lower->kind == TypeKind::bottom)) {
      if (v.concrete && !diagonal && !is_leaf_bound(v.upper)) return false;
      if (auto* other = as_var(v.lower)) {
        if (VarBinding* o = lookup(other)) {
          o->concrete = true;
        } else {
          return other->lower->kind == TypeKind::bottom &&
                 std::find(not_concrete_.begin(), not_concrete_.end(), other) == not_concrete_.end();
        }
      } else if (!is_leaf_bound(v.lower)) {
        return false;
      }
    }
    return true;
  }

  bool sub(const Type* x, const Type* y, Position position) {
    if (x == y && !x->has_free_vars) return true;
    if (x->kind == TypeKind::bottom) return y->kind != TypeKind::value;
    if (y == b_.any && x->kind != TypeKind::var) return x->kind != TypeKind::vararg;
    if (++steps_ > tuning::subtype_steps || nesting_ > max_depth) return false;
    bool closed = !x->has_free_vars && !y->has_free_vars;
    if (closed && x->is_plain && y->is_plain && x->kind == TypeKind::data && y->kind == TypeKind::data)
      return data_below(as_data(x), as_data(y), position);
    // On its own, unless a right-hand choice made before could hang on how the unions in x are split.
    if (closed && position != Position::outside && !(x->is_plain && y->is_plain) && (exists_.none_made() || !splits(x)))
      return closed_subtype(x, y);

    if (auto* union_x = as_union(x)) {
      if (auto* var = as_var(y)) {
        VarBinding* v = lookup(var);
        if (v && v->upper == x && !v->existential) return false;
        // In an invariant position the variable is the union as a whole: member by member, one of thousands would be
        // made again for each of them.
        if (v && v->existential && position == Position::invariant && !x->has_free_vars)
          return var_above(var, x, position);
      }
      int i = forall_.choose(static_cast<int>(union_x->members.size()));
      x = union_x->members[static_cast<std::size_t>(i)];
      return sub(x, y, position);
    }
    if (auto* union_y = as_union(y)) {
      for (const Type* m : union_y->members)
        if (m == x && !m->has_free_vars) return true;
      if (x->is_plain && x->kind == TypeKind::data) {  // nothing to choose: unions of thousands are made of such
        bool all_plain = true;
        for (const Type* m : union_y->members) {
          const DataType* d = m->is_plain ? as_data(m) : nullptr;
          if (!d)
            all_plain = false;
          else if (!contains_only_itself(d) && data_below(as_data(x), d, position))
            return true;
        }
        if (all_plain) return false;
      }
      if (auto* u = as_union_all(x)) return enter_union_all(y, u, false, position);
      int count = static_cast<int>(union_y->members.size());
      auto* var = as_var(x);
      VarBinding* v = var ? lookup(var) : nullptr;
      // A universal variable is inside a union when a member takes it, or when its whole upper bound is.
      bool by_bound = var && (!v || !v->existential);
      // An existential variable on the left may also take the union as a whole.
      bool whole = v && v->existential;
      int choice = exists_.choose(count + (by_bound || whole ? 1 : 0));
      if (whole) {
        if (choice == 0) return var_below(var, y, position);
        --choice;
      }
      if (choice == count) {
        occurrence(v, position);
        return sub(v ? v->upper : var->upper, y, position);
      }
      return sub(x, union_y->members[static_cast<std::size_t>(choice)], position);
    }
    if (auto* var_x = as_var(x)) {
      if (auto* var_y = as_var(y)) {
        if (var_x == var_y) return true;
        VarBinding *vx = lookup(var_x), *vy = lookup(var_y);
        bool exists_x = vx && vx->existential, exists_y = vy && vy->existential;
        if (exists_x) {
          occurrence(vy, position);
          if (exists_y) {
            // Two existential variables meet when one's type was narrowed to a type that mentions the other.
            occurrence(vx, position);
            return check(vx->lower, vy->upper);
          }
          return var_below(var_x, y, position);
        }
        if (exists_y) {
          occurrence(vx, position);
          return var_above(var_y, x, position);
        }
        occurrence(vx, position);
        occurrence(vy, position);
        const Type* upper_x = vx ? vx->upper : var_x->upper;
        const Type* lower_y = vy ? vy->lower : var_y->lower;
        return (upper_x != b_.any && sub(upper_x, y, position)) ||
               (lower_y->kind != TypeKind::bottom && sub(x, lower_y, position));
      }
      if (y == b_.any) {
        occurrence(lookup(var_x), position);
        return true;
      }
      return var_below(var_x, y, position);
    }
    if (auto* var_y = as_var(y)) return var_above(var_y, x, position);
    if (auto* u = as_union_all(y)) return enter_union_all(x, u, true, position);
    if (auto* u = as_union_all(x)) return enter_union_all(y, u, false, position);
    auto *dx = as_data(x), *dy = as_data(y);
    if (dx && dy) return data_below(dx, dy, position);
    return false;  // values are equal only when identical
  }

  bool data_below(const DataType* x, const DataType* y, Position position) {
    if (y == b_.any) return true;
    // Type{T} and the types of type values.
    if (x == b_.type_of_bottom) x = types_.type_type(b_.bottom);
    if (y == b_.type_of_bottom) y = types_.type_type(b_.bottom);
    if (x->is_kind && y->name == b_.type_name) {
      auto* var = as_var(y->params[0]);
      VarBinding* v = var ? lookup(var) : nullptr;
      if (!v || !v->existential) return false;
      return v->lower->kind == TypeKind::bottom && v->upper == b_.any;
    }
    if (x->name == b_.type_name && y->is_kind) {
      const Type* t = x->params[0];
      switch (t->kind) {
        case TypeKind::data:
          return y == b_.data_type;
        case TypeKind::union_all:
          return y == b_.union_all;
        case TypeKind::union_:
          return y == b_.union_;
        default:
          return false;  // of a variable anything may come
      }
    }
    while (x->name != y->name) {
      if (x == b_.any || !x->super) return false;
      x = x->super;
    }
    if (x == y && !x->has_free_vars) return true;
    if (x->is_tuple) return tuple_below(x, y, position);
    if (x->is_plain && y->is_plain && !x->has_free_vars && !y->has_free_vars) return x == y;
    if (x->params.size() != y->params.size()) return false;
    ++invariant_depth_;
    bool ok = true;
    for (std::size_t i = 0; ok && i < x->params.size(); ++i) ok = equal(x->params[i], y->params[i]);
    --invariant_depth_;
    return ok;
  }

  bool equal(const Type* x, const Type* y) {
    if (x == y) {
      if (auto* var = as_var(x)) occurrence(lookup(var), Position::invariant);
      return true;
    }
    if (!x->has_free_vars && !y->has_free_vars) {
      if (x->is_plain && y->is_plain) return false;
      if (x->kind == TypeKind::value || y->kind == TypeKind::value) return false;
      return closed_subtype(x, y) && closed_subtype(y, x);
    }
    return local_forall(x, y, Position::invariant) && local_forall(y, x, Position::invariant);
  }

  bool tuple_below(const DataType* x, const DataType* y, Position position) {
    if (position == Position::outside) position = Position::covariant;
    const VarargType* rest_x = x->params.empty() ? nullptr : as_vararg(x->params.back());
    const VarargType* rest_y = y->params.empty() ? nullptr : as_vararg(y->params.back());
    std::size_t fixed_x = x->params.size() - (rest_x ? 1 : 0);
    std::size_t fixed_y = y->params.size() - (rest_y ? 1 : 0);
    if (rest_x && rest_x->element->kind == TypeKind::bottom && !rest_x->count) rest_x = nullptr;  // nothing can follow
    // A count that is already known is written out.
    if (rest_x && rest_x->count) {
      if (std::int64_t n; known_count(rest_x->count, n)) return tuple_below(spell_out(x, rest_x, n), y, position);
    }
    if (rest_y && rest_y->count) {
      if (std::int64_t n; known_count(rest_y->count, n)) return tuple_below(x, spell_out(y, rest_y, n), position);
    }
    if (!rest_y && (rest_x || fixed_x != fixed_y)) return false;
    if (fixed_x < fixed_y) return false;
    if (rest_x && rest_y->count && fixed_x != fixed_y) {
      // As many more as fixed_x - fixed_y: lengths with an offset are not tracked unless the count is free.
      if (rest_x->count) return false;
    }
    for (std::size_t i = 0; i < fixed_x; ++i)
      if (!sub(x->params[i], i < fixed_y ? y->params[i] : rest_y->element, position)) return false;
    if (rest_y && rest_y->count) {
      ++invariant_depth_;
      bool ok;
      if (!rest_x) {
        ok = equal(types_.value_int(static_cast<std::int64_t>(fixed_x - fixed_y)), rest_y->count);
      } else if (rest_x->count) {
        ok = equal(rest_x->count, rest_y->count);
      } else {
        // Any number of elements against a count: the count must be entirely free.
        VarBinding* v = lookup(rest_y->count);
        ok = v && v->existential && v->lower->kind == TypeKind::bottom && v->upper == b_.any;
        if (ok) v->lower = b_.any;
      }
      --invariant_depth_;
      if (!ok) return false;
    }
    if (rest_x && rest_y) {
      // Twice, because one variable that stands for several elements is diagonal.
      if (!sub(rest_x->element, rest_y->element, position)) return false;
      if (rest_x->element->has_free_vars || rest_y->element->has_free_vars)
        return sub(rest_x->element, rest_y->element, position);
    }
    return true;
  }

  bool known_count(const Type* count, std::int64_t& n) const {
    const Type* t = count;
    if (VarBinding* v = as_var(count) ? lookup(count) : nullptr) {
      if (v->lower != v->upper && !(v->existential && as_value(v->lower))) return false;
      t = v->lower;
    }
    auto* value = as_value(t);
    if (!value || value->value.type != b_.int64) return false;
    n = std::max<std::int64_t>(value->value.bits, 0);
    return true;
  }

  const DataType* spell_out(const DataType* tuple, const VarargType* rest, std::int64_t n) {
    std::vector<const Type*> elements(tuple->params.begin(), tuple->params.end() - 1);
    elements.insert(elements.end(), static_cast<std::size_t>(n), rest->element);
    return types_.tuple(elements);
  }

  TypeTable& types_;
  const BuiltinTypes& b_;
  VarBinding* env_ = nullptr;
  Choices forall_, exists_;
  int invariant_depth_ = 0;
  int nesting_;
  int steps_ = 0;
  std::vector<const Type*>* solved_ = nullptr;
  std::vector<const TypeVar*> not_concrete_;  // what stands for forgotten variables that need not be concrete
};

bool is_subtype(TypeTable& types, const Type* a, const Type* b) {
  const BuiltinTypes& builtin = types.builtin();
  if (a == b || b == builtin.any || a->kind == TypeKind::bottom) return true;
  auto *x = as_data(a), *y = as_data(b);
  if (x && y && a->is_plain && b->is_plain && !x->is_tuple && !y->is_tuple && x->name != builtin.type_name &&
      y->name != builtin.type_name && !x->is_kind && !y->is_kind) {
    // Nominal types without variables: up the tree.
    for (; x->name != y->name; x = x->super)
      if (x == builtin.any || !x->super) return false;  // no supertype yet: being defined
    return x == y;
  }
  return walk_types(a, b, [&] { return Subtyper(types).run(a, b); });
}

bool type_equal(TypeTable& types, const Type* a, const Type* b) {
  if (a == b) return true;
  if (a->is_plain && b->is_plain) return false;
  return is_subtype(types, a, b) && is_subtype(types, b, a);
}

bool is_instance(TypeTable& types, Value v, const Type* t) {
  if (v.type == t || t == types.builtin().any) return true;
  if (!v.type->is_kind) return is_subtype(types, v.type, t);
  return is_subtype(types, types.type_type(v.as_type), t);
}

std::optional<std::vector<const Type*>> match(TypeTable& types, const Type* arguments, const Type* signature) {
  if (!as_union_all(signature)) {
    if (is_subtype(types, arguments, signature)) return std::vector<const Type*>();
    return std::nullopt;
  }
  std::vector<const Type*> solved;
  if (!walk_types(arguments, signature, [&] { return Subtyper(types).solve(arguments, signature, solved); }))
    return std::nullopt;
  return solved;
}

}  // namespace slope
