// The type of what users see of the derivative of a value, from the value's type alone.
#pragma once

#include "lang/diff/tangent.hpp"
#include "lang/types/type.hpp"

namespace slope::diff {

// Of a number, also a complex one, its own, of an array of numbers the array's, of a tuple one of the parts', of an immutable struct a named
// tuple of the fields', Nothing where there is no derivative. Any: the type does not tell (what may hold anything or
// itself, or may not be assigned; mutable objects, arrays of other things).
const Type* user_tangent_type(TypeTable& types, const Type* t);

// A field of this struct is a dictionary or may hold anything: users may see its derivative in another form.
bool may_hold_dictionary(const TypeTable& types, const DataType* d);

// Complex{Float64} or Complex{Float32}: its derivative is the complex number of those by its parts.
// Complex numbers, arrays and tuples of such.
bool holds_complex(const TypeTable& types, const Type* t);
bool is_complex_float(const TypeTable& types, const Type* t);

// Some constructor of this struct may leave a field without a value, which has no derivative then.
bool may_lack_fields(const DataType* d);

// An array of immutable structs of numbers; a mutable struct of numbers: their derivatives can be written out by parts.
bool has_struct_elements(TangentTypes& tangents, const DataType* d);
bool is_object_of_numbers(TangentTypes& tangents, const DataType* d);

}  // namespace slope::diff
