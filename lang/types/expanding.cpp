// The test of .NET for generic classes: an edge for each variable of the definition that stands in an argument which the
// supertype gives to the defined name, from the variable to the parameter it comes to; it expands when the argument is
// more than the variable. Types grow without end where an edge that expands lies on a cycle. Nothing that was defined
// before can mention the name, so that one definition is all there is to look at.
#include "lang/types/expanding.hpp"

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "lang/types/walk.hpp"

namespace slope {

namespace {

class Expansion {
 public:
  Expansion(const TypeName* name, std::span<const TypeVar* const> vars)
      : name_(name), vars_(vars), leads_(vars.size() * vars.size()), expands_(vars.size() * vars.size()) {}

  void look_at(const Type* t) {
    if (!t || !t->has_free_vars || !seen_.insert(t).second) return;
    if (const DataType* d = as_data(t); d && d->name == name_)
      for (std::size_t to = 0; to < d->params.size() && to < vars_.size(); ++to) add_edges(d->params[to], to);
    each_part(t, [&](const Type* part) { look_at(part); });
  }

  bool is_endless() const {
    std::vector<bool> reach = leads_;
    const std::size_t n = vars_.size();
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n && reach[i * n + k]; ++j)
          if (reach[k * n + j]) reach[i * n + j] = true;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        if (expands_[i * n + j] && (i == j || reach[j * n + i])) return true;
    return false;
  }

 private:
  template <class F>
  static void each_part(const Type* t, F&& f) {
    switch (t->kind) {
      case TypeKind::data:
        for (const Type* parameter : as_data(t)->params) f(parameter);
        break;
      case TypeKind::union_:
        for (const Type* member : as_union(t)->members) f(member);
        break;
      case TypeKind::union_all:
        f(as_union_all(t)->var);
        f(as_union_all(t)->body);
        break;
      case TypeKind::var:
        f(as_var(t)->lower);
        f(as_var(t)->upper);
        break;
      case TypeKind::vararg:
        f(as_vararg(t)->element);
        f(as_vararg(t)->count);
        break;
      default:
        break;
    }
  }

  void add_edges(const Type* argument, std::size_t to) {
    std::unordered_set<const Type*> inside;
    collect(argument, inside);
    for (std::size_t from = 0; from < vars_.size(); ++from) {
      if (!inside.contains(vars_[from])) continue;
      leads_[from * vars_.size() + to] = true;
      if (argument != vars_[from]) expands_[from * vars_.size() + to] = true;
    }
  }

  static void collect(const Type* t, std::unordered_set<const Type*>& inside) {
    if (!t || !(t->has_free_vars || t->kind == TypeKind::var) || !inside.insert(t).second) return;
    each_part(t, [&](const Type* part) { collect(part, inside); });
  }

  const TypeName* name_;
  std::span<const TypeVar* const> vars_;
  std::vector<bool> leads_, expands_;  // by [from * n + to]
  std::unordered_set<const Type*> seen_;
};

}  // namespace

bool supertypes_expand(const TypeName* name, std::span<const TypeVar* const> vars, const Type* super) {
  if (vars.empty() || !super) return false;
  Expansion expansion(name, vars);
  walk_types(super, [&] { expansion.look_at(super); });
  return expansion.is_endless();
}

}  // namespace slope
