// The subtype relation and what dispatch and inference need of it: variables, unions, tuples with Vararg, Type{T},
// invariant parameters, the diagonal rule. Static parameters are solved on the way (`match`).
#pragma once

#include <optional>
#include <vector>

#include "lang/types/type.hpp"

namespace slope {

bool is_subtype(TypeTable& types, const Type* a, const Type* b);
bool type_equal(TypeTable& types, const Type* a, const Type* b);
bool is_instance(TypeTable& types, Value v, const Type* t);  // v isa t, with Type{…} handled

// A type that contains every common instance of a and b; bottom only when they certainly have none.
const Type* intersect(TypeTable& types, const Type* a, const Type* b);
bool certainly_disjoint(TypeTable& types, const Type* a, const Type* b);

// Is the call with argument tuple type `arguments` covered by `signature`? Solves the signature's variables:
// result[i] is the binding of the i-th outermost `where` variable (the variable itself when unconstrained).
std::optional<std::vector<const Type*>> match(TypeTable& types, const Type* arguments, const Type* signature);

bool more_specific(TypeTable& types, const Type* a, const Type* b);  // of two signatures; not a total order

const Type* type_join(TypeTable& types, const Type* a, const Type* b);  // Julia's typejoin
// Union of a and b if it has at most `limit` concrete-ish members, otherwise widened by type_join: inference's merge.
const Type* type_merge(TypeTable& types, const Type* a, const Type* b, int limit = 4);

}  // namespace slope
