// Type definitions whose instances would have supertypes without end.
#pragma once

#include <span>

#include "lang/types/type.hpp"

namespace slope {

// `struct E{T} <: AbstractVector{E{E{T}}}`: the supertype of E{Int} mentions E{E{Int}}, whose supertype mentions
// E{E{E{Int}}}, and so on. E{T} <: AbstractVector{E{T}} mentions no other type than itself.
bool supertypes_expand(const TypeName* name, std::span<const TypeVar* const> vars, const Type* super);

}  // namespace slope
