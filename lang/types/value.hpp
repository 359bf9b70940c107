// Dynamic values: a type and a 64-bit payload side by side, so that numbers are never boxed.
//
//   Value { type, payload }      16 bytes, passed in two registers
//
// The type's `storage` (type.hpp) says what the payload means:
//   singleton   nothing (payload 0): `nothing`, functions without captures, `Val{3}()`, empty immutable structs
//   bits        a primitive of at most 8 bytes, zero-extended: Int8…Int64, UInt8…UInt64, Float32, Float64, Bool, Char
//   aggregate   immutable struct or tuple of plain bits: pointer to a heap box (Object) that is never written again
//   reference   pointer to a heap Object (mutable struct, array, string, closure, immutable struct with references),
//               or to an immortal Symbol, Type or Module
//
// A Value whose type is null is "undefined": an unassigned variable, field or array element.
// Inferred code does not use Value: it keeps the unboxed native form (codegen/layout.hpp).
#pragma once

#include <bit>
#include <cstdint>

namespace slope {

struct Type;
struct DataType;
struct Object;
struct Symbol;
struct Module;

struct Value {
  const Type* type = nullptr;  // always a concrete DataType when not null
  union {
    std::int64_t bits;
    double float64;
    float float32;
    Object* object;
    const Type* as_type;
    const Symbol* symbol;
    Module* module;
    void* pointer;
  };

  Value() : bits(0) {}
  Value(const Type* t, std::int64_t payload) : type(t), bits(payload) {}
  Value(const Type* t, double payload) : type(t), float64(payload) {}
  Value(const Type* t, const void* payload) : type(t), pointer(const_cast<void*>(payload)) {}

  bool defined() const { return type != nullptr; }
  // Same type and same payload word. This is `===` for everything but boxed aggregates and immutable references.
  bool identical(const Value& other) const { return type == other.type && bits == other.bits; }
};
static_assert(sizeof(Value) == 16);

}  // namespace slope
