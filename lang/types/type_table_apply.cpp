// Application of types to parameters: substitution of variables, partial application, checks with Julia's messages.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "lang/types/subtype.hpp"
#include "lang/types/type_table_impl.hpp"
#include "lang/types/walk.hpp"

namespace slope {

namespace {

// One substitution. Types share their parts, so that one of 60 levels may be a tree of 2^60: after some steps it
// remembers what the parts became.
class Substitution {
 public:
  Substitution(TypeTable& types, std::span<const TypeVar* const> from, std::span<const Type* const> to)
      : types_(types), from_(from), to_(to) {}

  const Type* of(const Type* t) {
    if (!t || !t->has_free_vars) return t;
    if (++steps_ <= remembers_after) return replaced(t);
    if (const auto known = known_.find(t); known != known_.end()) return known->second;
    const Type* result = replaced(t);
    known_.emplace(t, result);
    return result;
  }

 private:
  const Type* replaced(const Type* t);

  static constexpr std::size_t remembers_after = 64;
  TypeTable& types_;
  std::span<const TypeVar* const> from_;
  std::span<const Type* const> to_;
  std::size_t steps_ = 0;
  std::unordered_map<const Type*, const Type*> known_;
};

const Type* Substitution::replaced(const Type* t) {
  switch (t->kind) {
    case TypeKind::var: {
      for (std::size_t i = 0; i < from_.size(); ++i)
        if (from_[i] == t) return to_[i];
      return t;
    }
    case TypeKind::data: {
      auto* d = as_data(t);
      std::vector<const Type*> params;
      params.reserve(d->params.size());
      bool changed = false;
      for (const Type* p : d->params) {
        params.push_back(of(p));
        changed |= params.back() != p;
      }
      if (!changed) return t;
      return types_.apply(d->name, params);
    }
    case TypeKind::union_: {
      std::vector<const Type*> members;
      for (const Type* m : as_union(t)->members) members.push_back(of(m));
      return types_.union_of(members);
    }
    case TypeKind::union_all: {
      auto* u = as_union_all(t);
      const Type* lower = of(u->var->lower);
      const Type* upper = of(u->var->upper);
      if (lower == u->var->lower && upper == u->var->upper) {
        const Type* body = of(u->body);
        return body == u->body ? t : types_.union_all(u->var, body);
      }
      const TypeVar* fresh = types_.var(u->var->name, lower, upper);
      const TypeVar* inner_from[] = {u->var};
      const Type* inner_to[] = {fresh};
      return types_.union_all(fresh, of(Substitution(types_, inner_from, inner_to).of(u->body)));
    }
    case TypeKind::vararg: {
      auto* v = as_vararg(t);
      return types_.vararg(of(v->element), of(v->count));
    }
    default:
      return t;
  }
}

}  // namespace

const Type* TypeTable::Impl::substitute(const Type* t, std::span<const TypeVar* const> from,
                                        std::span<const Type* const> to) {
  if (!t || !t->has_free_vars) return t;
  std::uint32_t levels = t->levels;
  for (const Type* part : to) levels = std::max(levels, part->levels);  // unions compare them
  return walk_types(levels, [&] { return Substitution(table, from, to).of(t); });
}

const Type* TypeTable::substitute(const Type* t, std::span<const TypeVar* const> vars,
                                  std::span<const Type* const> replacements) {
  return impl_->substitute(t, vars, replacements);
}

const Type* TypeTable::instantiate(const UnionAllType* t, const Type* argument) {
  const TypeVar* from[] = {t->var};
  return impl_->substitute(t->body, from, std::span<const Type* const>(&argument, 1));
}

namespace {

bool is_proper_type(const Type* t) { return t->kind != TypeKind::value && t->kind != TypeKind::vararg; }

// What may stand as a parameter beside types: plain bits, symbols, modules and tuples of these.
bool is_parameter_value(const BuiltinTypes& b, const Type* type) {
  auto* d = as_data(type);
  if (!d) return false;
  if (d->is_isbits || d == b.symbol || d == b.module) return true;
  if (!d->is_tuple && !d->is_named_tuple) return false;
  return std::all_of(d->fields.begin(), d->fields.end(),
                     [&](const Field& field) { return is_parameter_value(b, field.type); });
}

std::string in_type(const Type* wrapper) {
  const Type* body = wrapper;
  while (auto* u = as_union_all(body)) body = u->body;
  if (auto* d = as_data(body)) return d->name->name ? d->name->name->name : std::string("Type");
  return to_string(wrapper);
}

std::string got(const Type* t) {
  if (auto* v = as_value(t)) return "a value of type " + to_string(v->value.type);
  return "Type{" + to_string(t) + "}";
}

// Why a NamedTuple cannot have these names and field types, in Julia's words; empty when it can.
std::string wrong_named_tuple(const BuiltinTypes& b, const DataType* type) {
  if (type->params.size() != 2 || type->params[0]->has_free_vars || type->params[1]->has_free_vars) return {};
  const ValueType* names = as_value(type->params[0]);
  const DataType* tuple = names ? as_data(names->value.type) : as_data(type->params[0]);
  if (!names || !tuple->is_tuple) return "in NamedTuple, in names, expected Tuple, got " + got(type->params[0]);
  std::vector<const Symbol*> seen;
  for (const Field& field : tuple->fields) {
    if (field.type != b.symbol)
      return "in NamedTuple, in name, expected Symbol, got a value of type " + to_string(field.type);
    const Symbol* name = *reinterpret_cast<const Symbol* const*>(names->value.object->payload() + field.offset);
    if (std::find(seen.begin(), seen.end(), name) != seen.end())
      return "duplicate field name in NamedTuple: \"" + name->name + "\" is not unique";
    seen.push_back(name);
  }
  const DataType* types = as_data(type->params[1]);
  if (!types || !types->is_tuple) return {};
  const bool open = !types->params.empty() && as_vararg(types->params.back());
  if (open || types->params.size() != seen.size()) return "NamedTuple names and field types must have matching lengths";
  return {};
}

}  // namespace

bool TypeTable::nested_too_deep() { return std::exchange(impl_->too_deep, false); }

const Type* TypeTable::apply_wrapper(const Type* wrapper, std::span<const Type* const> params, std::string* error) {
  impl_->tuple_too_long = impl_->too_deep = false;
  const Type* made = impl_->apply_wrapper(wrapper, params, error);
  if (nested_too_deep()) {
    if (error && made) *error = "types are at most " + std::to_string(most_type_levels) + " levels deep";
    return nullptr;
  }
  if (!impl_->tuple_too_long) return made;
  if (error && made) *error = "a tuple type has at most " + std::to_string(most_tuple_elements) + " elements";
  return nullptr;
}

const Type* TypeTable::Impl::apply_wrapper(const Type* wrapper, std::span<const Type* const> params,
                                           std::string* error) {
  const BuiltinTypes& b = builtin;
  auto fail = [&](std::string message) -> const Type* {
    if (error) *error = std::move(message);
    return nullptr;
  };
  if (wrapper == b.tuple_any) {
    for (std::size_t i = 0; i < params.size(); ++i) {
      // Sizes, in the manner of StaticArrays: of such a tuple there is no value.
      if (auto* v = as_value(params[i]); v && !is_parameter_value(b, v->value.type))
        return fail("in Tuple, in parameter, expected Type, got " + got(params[i]));
      if (as_vararg(params[i]) && i + 1 != params.size()) return fail("Vararg must be the last parameter of Tuple");
    }
    // Vararg{<:T}: each element may be another subtype.
    if (auto* u = params.empty() ? nullptr : as_union_all(params.back()); u && as_vararg(u->body)) {
      auto* v = as_vararg(u->body);
      if (!v->count || !occurs(u->var, v->count)) {
        std::vector<const Type*> elements(params.begin(), params.end());
        elements.back() = table.vararg(table.union_all(u->var, v->element), v->count);
        return table.tuple(elements);
      }
    }
    return table.tuple(params);
  }
  if (wrapper == b.union_) {
    for (const Type* p : params)
      if (!is_proper_type(p)) return fail("in Union, expected Type, got " + got(p));
    return table.union_of(params);
  }
  if (auto* v = as_vararg(wrapper)) {
    if (params.size() > 2 || v->count) return fail("too many parameters for type Vararg");
    if (params.empty()) return wrapper;
    if (!is_proper_type(params[0])) return fail("in Vararg, expected Type, got " + got(params[0]));
    if (params.size() == 1) return table.vararg(params[0], nullptr);
    auto* count = as_value(params[1]);
    if (!as_var(params[1]) && !(count && count->value.type == b.int64))
      return fail("in Vararg, in count, expected Int64, got " + got(params[1]));
    if (count && count->value.bits < 0) return fail("Vararg length is negative: " + std::to_string(count->value.bits));
    return table.vararg(params[0], params[1]);
  }
  if (params.empty()) return wrapper;
  const Type* t = wrapper;
  std::size_t wanted = 0;
  for (auto* u = as_union_all(wrapper); u != nullptr; u = as_union_all(u->body)) ++wanted;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const Type* p = params[i];
    auto* u = as_union_all(t);
    if (!u && i < wanted) continue;  // an earlier parameter left no use for this one: NTuple{0, Int}
    if (!u) {
      if (as_data(wrapper) || as_union_all(wrapper)) return fail("too many parameters for type " + in_type(wrapper));
      return fail("Type{...} expression: expected UnionAll, got " + got(wrapper));
    }
    if (p->kind == TypeKind::vararg) return fail("Vararg is only allowed as the last parameter of Tuple");
    if (auto* v = as_value(p); v && !is_parameter_value(b, v->value.type))
      return fail("in " + in_type(wrapper) + ", in " + u->var->name->name + ", expected Type, got " + got(p));
    if (!p->has_free_vars && !u->var->upper->has_free_vars && !u->var->lower->has_free_vars) {
      bool fits = p->kind == TypeKind::value
                      ? u->var->upper == b.any && u->var->lower == b.bottom
                      : is_subtype(table, p, u->var->upper) && is_subtype(table, u->var->lower, p);
      if (!fits) {
        std::string bound = u->var->name->name;
        if (u->var->lower != b.bottom) bound = to_string(u->var->lower) + "<:" + bound;
        if (u->var->upper != b.any) bound += "<:" + to_string(u->var->upper);
        return fail("in " + in_type(wrapper) + ", in " + u->var->name->name + ", expected " + bound + ", got " +
                    got(p));
      }
    }
    t = table.instantiate(u, p);
  }
  if (auto* d = as_data(t); d && d->is_named_tuple)
    if (std::string wrong = wrong_named_tuple(b, d); !wrong.empty()) return fail(std::move(wrong));
  return t;
}

}  // namespace slope
