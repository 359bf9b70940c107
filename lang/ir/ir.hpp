// The IR: SSA on a control-flow graph with block arguments. There is one Function for each method (untyped, from
// lowering) and one for each compiled specialisation (typed, optimised, differentiated). Interpreter and code
// generation run the same Function.
//
//   Function   insts (one pool), blocks, constants, slots
//   Operand    32 bits: an instruction's result, or (top bit) an index into `constants`
//   Block      parameters (insts of op-less kind `parameter`), a list of insts, one terminator with edges that carry
//              arguments, and optionally a handler: the block that gets control when anything in this block raises
//
// Entry. Block 0's parameters are the callee (#self#) and the arguments; a trailing vararg is one tuple parameter. The
// body of a top-level statement has no parameters.
//
// Types. In untyped IR every Inst::type is null. In typed IR it is the inferred type: at run time the value is an
// instance of it. Representation follows the type (concrete: unboxed; otherwise a 16-byte Value). Where a value of a
// narrower type is used in a wider place (edge argument, call argument, field of abstract type, return) the conversion
// is implicit. Narrowing is never implicit: `refine`, `type_assert`, or `isa` + `refine`.
//
// Handlers. A value used in a handler block must be defined in a block that dominates the whole region. Variables that
// are assigned inside a region and read outside it on the exceptional path are in slots (slot_get/slot_set).
//
// Undefined values. A constant may be the undefined Value (printed `undef`): the content of a variable on a path that
// did not assign it. Its type is Union{}. It occurs as an edge argument. A check_defined precedes every use of the
// parameter, so no running code looks at it.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lang/runtime/method.hpp"
#include "lang/support/source.hpp"
#include "lang/types/value.hpp"

namespace slope::ir {

enum class Op : std::uint16_t {
#define OP(name, ...) name,
#include "lang/ir/ops.def"
  parameter,  // of a block; not in ops.def because it is never executed
  count_
};

// --- the columns of ops.def ---

enum class OpGroup : std::uint8_t {
  calls,
  names,
  objects,
  integers,
  conversions,
  floats,
  arrays,
  strings,
  tapes,
  exceptions,
  terminators,
  parameters,
};

enum class Derivative : std::uint8_t { none, linear, operands, result, memory, special };

// What an operation asks of its operands. The conversions take the target type first.
enum class Shape : std::uint8_t {
  any,
  ints,    // integers of one type
  shift,   // an integer, and any integer
  floats,  // Float64 or Float32, all the same
  int_to_int,
  int_to_float,
  float_to_int,
  float_to_float,
  bits_to_bits,
  truth,         // a Bool first
  typed_second,  // a type in the second place
  types,         // nothing but types
  cell,          // a Box first; likewise the following, with what comes after it:
  tape,
  string,
  string_int,
  array,
  array_int,          // array, Int64
  array_ints,         // array, Int64s
  array_element,      // array, something that it may hold
  array_element_int,  // array, something that it may hold, Int64
  array_type_ints,    // Type{an array type}, Int64s
};

// The type of an operation's result.
enum class ResultKind : std::uint8_t {
  special,  // as lang/infer/op_types.cpp says
  given,    // what Inst::type says already
  first,    // that of operand 0
  third,    // that of operand 2
  target,   // the type that operand 0 is
  boolean,
  int64,
  uint8,
  data_type,
  type_var,
  cell,
  expr,
  tape,
  nothing,
  bottom,  // control does not come back
};

enum class AuxKind : std::uint8_t {
  none,
  index,           // a number
  slot,            // index into Function::slots
  binding,         // Binding*
  symbol,          // const Symbol*
  type_name,       // TypeName*
  specialization,  // Specialization*
  native,          // const NativeInfo*
  tape_layout,     // const TapeLayout*
};

enum class Access : std::uint8_t { none, loads, stores, checks, keeps, resizes };
// Whether machine code of the operation may leave the function with an exception.
enum class Fails : std::uint8_t { never, by_types, always };

struct OpInfo {
  std::string_view name;
  OpGroup group;
  int min_operands;
  int max_operands;
  std::uint32_t effects;
  Derivative derivative;
  Shape shape;
  ResultKind result;
  AuxKind aux;  // what Inst::aux is
  Access access;
  int stored;  // the operand that is stored, of Access::stores and Access::checks
  Fails fails;
};

inline constexpr OpInfo op_table[] = {
#define OP(name, min, max, effects, derivative, shape, result, aux, access, fails)              \
  {#name,        OpGroup::GROUP,     min,          max,    effects,     Derivative::derivative, \
   Shape::shape, ResultKind::result, AuxKind::aux, access, Fails::fails},
#include "lang/ir/ops.def"
    {"parameter", OpGroup::parameters, 0, 0, effect_none, Derivative::none, Shape::any, ResultKind::given,
     AuxKind::none, Access::none, -1, Fails::never},
};
constexpr const OpInfo& op_info(Op op) { return op_table[static_cast<std::size_t>(op)]; }
constexpr AuxKind aux_kind(Op op) { return op_info(op).aux; }
constexpr OpGroup group_of(Op op) { return op_info(op).group; }
constexpr bool is_store(Op op) { return op_info(op).access == Access::stores; }  // puts a value into memory
constexpr bool is_load(Op op) { return op_info(op).access == Access::loads; }    // reads a value from memory
constexpr bool is_arithmetic(Op op) { return group_of(op) == OpGroup::integers || group_of(op) == OpGroup::floats; }
bool op_from_name(std::string_view name, Op& op);
// The spelling in dumps and in Slope: the op's name without a trailing underscore.
std::string_view op_name(Op op);

constexpr bool is_terminator(Op op) { return group_of(op) == OpGroup::terminators; }

using BlockId = std::uint32_t;
inline constexpr BlockId no_block = ~BlockId{0};

struct Operand {
  std::uint32_t bits = ~0u;
  static Operand inst(std::uint32_t index) { return {index}; }
  static Operand constant(std::uint32_t index) { return {index | 0x80000000u}; }
  bool is_constant() const { return bits >> 31 && bits != ~0u; }
  bool is_inst() const { return !(bits >> 31); }
  bool valid() const { return bits != ~0u; }
  std::uint32_t index() const { return bits & 0x7fffffffu; }
  friend bool operator==(Operand, Operand) = default;
};

// What an instruction takes, in the instruction itself where it is not more than four: one allocation for each instruction
// was a quarter of the time of inference and of the passes.
class Operands : public boost::container::small_vector<Operand, 4> {
 public:
  using Base = boost::container::small_vector<Operand, 4>;
  using Base::Base;
  Operands() = default;
  Operands(const std::vector<Operand>& list) : Base(list.begin(), list.end()) {}
  operator std::vector<Operand>() const { return {begin(), end()}; }
};

// Where an inlined instruction came from: a chain, outermost frame last. Entry 0 of Function::scopes is the function
// itself.
struct InlineScope {
  const Method* method = nullptr;   // null: top level
  std::uint32_t parent = ~0u;       // scope of the call that was inlined
  Span call_site;                   // of that call, in the parent scope
  const DataType* types = nullptr;  // as Specialization::types; null: not known
};

struct Inst {
  Op op = Op::unreachable;
  std::uint16_t flags = 0;  // InstFlags
  std::uint32_t scope = 0;  // index into Function::scopes
  const Type* type = nullptr;
  Operands operands;
  std::uintptr_t aux = 0;  // see ops.def
  Span span;
  BlockId block = no_block;

  template <class T>
  T* aux_as() const {
    return reinterpret_cast<T*>(aux);
  }
};
// What array_resize and array_resize_front have as aux. An undone resize goes back to a length that the memory has had,
// and may therefore meet others that share it by now.
enum ResizeKind : std::uintptr_t { plain_resize, undo_resize };
constexpr bool is_resize(Op op) { return op_info(op).access == Access::resizes; }
// Op::type_assert's aux, where it stands for the test of a condition: the error says so.
inline constexpr std::uintptr_t assert_condition = 1;
enum InstFlags : std::uint16_t {
  inst_nothrow = 1,  // proved: cannot raise here
  inst_inbounds = 2,
  inst_fast = 4,          // @fastmath: reassociation and contraction allowed
  inst_reassociate = 8,   // @simd reductions
  inst_effect_free = 16,  // proved: returns, does not raise, writes nothing that anyone sees: may go when unused
  inst_boundscheck = 32,  // inside @boundscheck: not wanted when inlined into a call that is marked inbounds
};

// What executing the instruction may do: the op's effects (of the target, for a native) less what the flags rule out.
std::uint32_t op_effects(const Inst& inst);
inline bool may_throw(const Inst& inst) { return (op_effects(inst) & effect_throws) != 0; }
// No one misses it when its result is unused.
bool is_removable(const Inst& inst);
bool is_integer_arithmetic(Op op);  // integers from integers, without comparisons and division

struct Edge {
  BlockId target = no_block;
  std::vector<Operand> arguments;  // one a parameter of the target
};

struct Block {
  std::vector<std::uint32_t> parameters;  // inst indices with Op::parameter
  std::vector<std::uint32_t> insts;       // without the terminator
  std::uint32_t terminator = ~0u;         // inst index
  std::vector<Edge> edges;                // of the terminator
  BlockId handler = no_block;             // takes no arguments; starts with `caught`
  bool is_loop_header = false;  // set by lowering for `while` and `for`; the interpreter counts back edges to it
};

// What a tier made of a Function (the interpreter's bytecode). Belongs to this very Function: copies start without.
struct TierCode {
  std::shared_ptr<void> code;
  TierCode() = default;
  TierCode(const TierCode&) {}
  TierCode(TierCode&&) = default;
  TierCode& operator=(const TierCode&) {
    code.reset();
    return *this;
  }
  TierCode& operator=(TierCode&&) = default;
};

// The constants of a function. The collector traces those that may be objects of the heap: a few in a hundred, and it
// passes all functions in each collection.
class Constants {
 public:
  void add(Value v);
  void define(std::size_t i, Value v);  // it was undefined
  Value operator[](std::size_t i) const { return all_[i]; }
  std::size_t size() const { return all_.size(); }
  bool empty() const { return all_.empty(); }
  const Value* data() const { return all_.data(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  std::span<const Value> held() const { return held_; }

 private:
  std::vector<Value> all_;
  std::vector<Value> held_;
};

struct Function {
  const Method* method = nullptr;     // null: top level or made by the compiler
  std::string name;                   // for printing
  const Type* return_type = nullptr;  // typed IR
  std::vector<Inst> insts;
  std::vector<Block> blocks;  // 0 is the entry
  Constants constants;
  std::vector<const Symbol*> slots;     // names of the slots that remain
  std::vector<const Type*> slot_types;  // typed IR
  std::vector<InlineScope> scopes;
  bool typed = false;
  std::vector<const Type*> static_params;  // typed IR: values (aux of static_param is then unused)
  Span span;
  mutable TierCode interpreter_code;

  Operand constant(Value v);  // finds or adds (same type and payload)
  Value constant_value(Operand o) const { return constants[o.index()]; }
  const Type* type_of(Operand o,
                      TypeTable& types) const;  // of typed IR; constants: Type{T} for types, else their own type
  Inst& inst(Operand o) { return insts[o.index()]; }
  const Inst& inst(Operand o) const { return insts[o.index()]; }
  std::unique_ptr<Function> clone() const { return std::make_unique<Function>(*this); }
};

}  // namespace slope::ir
