// Why inference terminates on every program.
//
//   values        The solver widens a value after it has grown a bounded number of times (solve.cpp), so that one body
//                 has a fixpoint.
//   recursion     The outcomes of a cycle are widened after they have grown a bounded number of times (infer.cpp).
//   new types     A function f(x) that calls f((x,)) would need ever new specialisations. So when a method is on the
//                 stack already, and is to be inferred for larger types than there, the arguments that grew are given
//                 the types that the method declares.
//   depth, width  A type that is nested too deeply, or that is needed after too many bodies, becomes Any.
//   constants     Inferring a callee again for the constants of a call branches at every level. It has a budget of its
//                 own, so that it takes nothing from the inference that is necessary.
#include <algorithm>

#include "lang/infer/engine.hpp"
#include "lang/infer/growth.hpp"
#include "lang/support/tuning.hpp"
#include "lang/types/walk.hpp"

namespace slope::infer {

namespace {

constexpr std::uint64_t frame_limit = tuning::inference_frames;
constexpr std::uint64_t constant_frame_limit = tuning::inference_constant_frames;
constexpr int same_method_limit = tuning::same_method_activations;
// A walk over a tree of types passes through several bodies at each level. One takes little stack; what is left of it is
// asked as well. What an answer is cut at depends on what was inferred before, so nothing that ends by itself may be.
constexpr std::size_t bodies_a_level = tuning::inference_bodies_a_level;
constexpr std::size_t argument_limit = tuning::inference_arguments;
constexpr int growing_recursion = tuning::inference_growing;
constexpr int changing_recursion = tuning::inference_changing;
constexpr std::size_t stack_reserve = tuning::inference_stack_reserve;

struct Complexity {
  int depth = 0;
  int size = 0;
  bool exceeds(const Complexity& other) const { return depth > other.depth || size > other.size; }
};

void measure(const Type* t, int depth, Complexity& found) {
  if (found.size > tuning::type_size) return;
  found.depth = std::max(found.depth, depth);
  ++found.size;
  switch (t->kind) {
    case TypeKind::data:
      for (const Type* p : as_data(t)->params) measure(p, depth + 1, found);
      break;
    case TypeKind::union_:
      for (const Type* m : as_union(t)->members) measure(m, depth, found);
      break;
    case TypeKind::union_all:
      measure(as_union_all(t)->body, depth, found);
      break;
    case TypeKind::vararg:
      measure(as_vararg(t)->element, depth, found);
      break;
    case TypeKind::value:
      // A number or a symbol: f(Val(n)) calling f(Val(n + 1)) grows too, and never shows it. Counted by the depth of
      // the stack.
    case TypeKind::var:
    case TypeKind::bottom:
      break;
  }
}

Complexity complexity(const Type* t) {
  return walk_types(t, [&] {
    Complexity found;
    measure(t, 0, found);
    return found;
  });
}

// The types that values of a type are made of: its parameters, and what its fields are declared to hold. Types of fields
// may be larger than the type itself: those of `struct M; w::Vector{Float64}; end`. Of a type whose fields are of ever
// larger types only the first are looked at.
bool is_part_of(const Type* part, const Type* whole) {
  constexpr std::size_t most_parts = tuning::inference_type_parts;
  std::vector<const Type*> parts{whole};
  const auto add = [&](const Type* t) {
    if (parts.size() < most_parts && std::find(parts.begin(), parts.end(), t) == parts.end()) parts.push_back(t);
  };
  for (std::size_t at = 0; at < parts.size(); ++at) {
    if (const UnionType* either = as_union(parts[at]))
      for (const Type* member : either->members) add(member);
    const DataType* data = as_data(parts[at]);
    if (!data || data->is_type_of_type) continue;
    for (const Type* p : data->params) add(p);
    if (data->is_concrete)
      for (const Field& field : data->fields) add(field.type);
  }
  return std::find(parts.begin() + 1, parts.end(), part) != parts.end();
}

// The nominal type of an argument; of Type{T} that of T.
const TypeName* nominal(const Type* t) {
  const DataType* data = as_data(t);
  while (data && data->is_type_of_type) {
    t = data->params[0];
    while (const UnionAllType* open = as_union_all(t)) t = open->body;
    data = as_data(t);
  }
  return data ? data->name : nullptr;
}

}  // namespace

bool is_too_large(const Type* type) {
  Complexity found = complexity(type);
  return found.depth > 6 && found.size > 400;
}

bool types_grow(std::span<const Specialization* const> stack, const Specialization& target) {
  const Specialization* last = nullptr;
  int grown = 0;
  int others = 0;  // growth that is not measured: numbers in types
  const auto follow = [&](const Specialization& next) {
    if (last && complexity(next.types).exceeds(complexity(last->types))) ++grown;
    if (last && last != &next) ++others;
    last = &next;
  };
  for (const Specialization* s : stack) {
    if (s == &target) return false;
    if (s->method == target.method) follow(*s);
  }
  follow(target);
  const int factor = target.method->generator ? 2 : 1;
  return grown >= factor * growing_recursion || others >= factor * changing_recursion;
}

bool repeats(const Frame& frame, const Specialization& target) {
  if (frame.method != target.method || !frame.target) return false;
  if (!target.method->generator) return true;
  std::span<const Type* const> before = frame.target->types->params;
  std::span<const Type* const> now = target.types->params;
  if (before.size() < 2 || now.size() < 2) return true;
  if (nominal(before[1]) != nominal(now[1])) return false;
  // Of keyword calls, too, each callee stands for itself. There are as many functions as the program has.
  for (std::size_t i = 2; i < std::min(before.size(), now.size()); ++i) {
    const TypeName *one = nominal(before[i]), *other = nominal(now[i]);
    if (one != other && one && other && one->is_function && other->is_function) return false;
  }
  return true;
}

bool Inference::Impl::limits_reached(const Specialization& target) const {
  const auto passed = [&](Limit limit, std::int64_t value) {
    tell_limit(&target, limit, value);
    return true;
  };
  const std::size_t nesting = bodies_a_level * static_cast<std::size_t>(options.recursion_limit);
  if (stack.size() >= nesting) return passed(Limit::nesting, static_cast<std::int64_t>(nesting));
  if (frames_made - constant_frames_made >= frame_limit) return passed(Limit::bodies, frame_limit);
  char here;
  return ctx.stack_limit && &here < ctx.stack_limit + stack_reserve && passed(Limit::stack, 0);
}

bool Inference::Impl::constant_limits_reached(const Specialization& target) const {
  if (constant_frames_made < constant_frame_limit) return limits_reached(target);
  tell_limit(&target, Limit::constant_bodies, constant_frame_limit);
  return true;
}

// An argument whose type is smaller than in every activation before (the tree that a walk goes down) ends the recursion,
// whatever else grows meanwhile (the path to where it is). So does one that is a part of the first activation's and was
// none of the others': there are finitely many.
bool Inference::Impl::descends(const Specialization& target) {
  const auto size_of = [&](const Type* t) {
    const auto [at, is_new] = type_sizes.try_emplace(t, 0);
    if (is_new) at->second = complexity(t).size;
    return at->second;
  };
  const std::span<const Type* const> now = target.types->params;
  for (std::size_t i = 1; i < now.size(); ++i) {
    const int size = size_of(now[i]);
    bool is_smallest = true, is_new = true;
    const Type* first = nullptr;
    for (const Frame* f : stack) {
      if (!repeats(*f, target)) continue;
      const std::span<const Type* const> before = f->target->types->params;
      is_smallest &= i < before.size() && size < size_of(before[i]);
      is_new &= i < before.size() && now[i] != before[i];
      if (!is_new) break;
      if (!first) first = before[i];
    }
    if (is_smallest || (is_new && first && is_part_of(now[i], first))) return true;
  }
  return false;
}

Specialization* Inference::Impl::limit_growth(Specialization& target) {
  const Frame* last = nullptr;
  int same = 0;
  for (const Frame* f : stack) {
    if (!repeats(*f, target)) continue;
    ++same;
    last = f;
  }
  if (same >= same_method_limit && descends(target)) return &target;
  if (target.types->params.size() > argument_limit) {
    tell_limit(&target, Limit::arguments, argument_limit);
    return nullptr;
  }
  if (same < same_method_limit || last->target == &target || outcomes.count(&target)) return &target;
  std::span<const Type* const> before = last->target->types->params;
  std::span<const Type* const> now = target.types->params;
  std::vector<const Type*> limited;
  bool changed = false;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (i >= before.size()) {
      // More arguments than in the activation before: their number is what grows.
      limited.push_back(as_vararg(now[i]) ? now[i] : runtime.types.vararg(builtin.any, nullptr));
      changed = true;
      break;
    }
    bool grew = now[i] != before[i] && complexity(now[i]).exceeds(complexity(before[i]));
    limited.push_back(grew ? declared_argument(builtin, *target.method, i) : now[i]);
    if (limited.back() != now[i]) changed = true;
  }
  if (!changed) return &target;
  tell_limit(&target, Limit::argument_growth, same_method_limit);
  const DataType* types = runtime.types.tuple(limited);
  std::optional<std::vector<const Type*>> solved = match(runtime.types, types, target.method->signature);
  if (!solved) return nullptr;
  return runtime.specialize(target.method, types, *solved);
}

}  // namespace slope::infer
