// The syntax tree: what the parser makes and what macros, quoting and lowering read.
//
// A node is 32 bytes in an arena (`Ast`), named by a 32-bit NodeId. Inner nodes have a Head and a run of children;
// leaves have a literal payload. The shapes are exactly those of Julia's `Expr` (what `Meta.parse` of Julia 1.5-1.10
// returns, `dump(:(…))` shows them), so that quoting, macros and the manual agree. The heads below list every shape.
// LineNumberNodes are not stored: each node has its span instead (`quote` makes them up when an Expr value is asked
// for).
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lang/support/source.hpp"

namespace slope::syntax {

using NodeId = std::uint32_t;
using NameId = std::uint32_t;  // an interned spelling in Ast::names
inline constexpr NodeId no_node = 0;

enum class Head : std::uint8_t {
  // leaves
  none,          // node 0, "absent"
  identifier,    // name
  integer,       // as Int64; wider or hex literals keep their bit width in `flag` (8,16,32,64 unsigned; 0 = Int64)
  floating,      // Float64
  float32,       // 1f0 (payload is a double holding the float's value)
  character,     // code point
  string,        // text (in Ast::texts)
  boolean,       // true / false
  nothing,       // value `nothing` (bare `return`, absent else value)
  quote_symbol,  // :name  -> QuoteNode(Symbol)   name
  value,         // a runtime value spliced into syntax by `$` or a macro; payload indexes a side table of the lowering
  // calls and operators
  call,        // (f, args…) ; also infix: a+b is call(+, a, b); (f, parameters(…), args…) with `;`
  dot_call,    // f.(args…) and a .+ b, with f (or the operator without its dot) first; fusion is lowering's.
               // flag 1: written as a dotted operator (infix, prefix, or `.+(a, b)`), Julia's (call :.+ a b).
               // .&& and .|| are dot_call with identifiers "&&", "||"
  macrocall,   // (identifier "@name", args…)
  parameters,  // what stands after `;` in a call or parameter list
  kw,          // name = value inside a call or a parameter list (name, value)
  splat,       // a...
  comparison,  // a < b <= c: (a, <, b, <=, c); a dotted chain has identifiers ".<"
  and_and,     // &&
  or_or,       // ||
  ref,         // a[i, j]: (a, i, j)
  dot,      // a.b: (a, quote_symbol b); a.$x: (a, quote flag 1 of interpolate x); the value .+ alone: (identifier "+")
  adjoint,  // a'
  address,  // &x: for macros alone
  type_assert,  // a::T (a, T) or ::T (T)
  subtype,      // unary <:T (T) and binary a <: b (a, b), everywhere as in Julia (value level, type parameters, struct
                // signatures); a chain a <: b <: c is comparison, `<:` as a value is identifier "<:"
  supertype,    // >: likewise
  curly,        // T{A,B}: (T, A, B)
  where,        // (body, var…)
  pair_colon,   // reserved; ranges are call(:, a, b) and call(:, a, s, b)
  // assignment
  assign,         // (lhs, rhs); flag 1, in a loop's header: `outer` stands before the variable
  dot_assign,     // a .= b
  op_assign,      // a += b: (identifier "+", lhs, rhs)
  dot_op_assign,  // a .+= b: (identifier "+", lhs, rhs)
  // containers
  tuple,  // (a, b), also named: children assign/kw, or parameters for (; a, b)
  vect,   // [a, b]
  hcat,   // [a b]
  vcat,   // [a; b], rows are `row` or single elements
  row,
  ncat,            // [a;; b]: (dimension, parts…), parts are `nrow`, `row` or elements
  nrow,            // inside ncat: (dimension, parts…)
  typed_ncat,      // T[a;; b]: (T, dimension, parts…)
  typed_vect_ref,  // reserved: T[a, b] parses as ref
  typed_hcat,      // T[a b]
  typed_vcat,      // T[a; b]
  generator,  // (expr, assign(i, r)… or filter(cond, assign…))  for nested loops flatten(generator(generator…))
  filter,
  flatten,
  comprehension,        // (generator)
  typed_comprehension,  // (T, generator)
  braces,               // {…}: refused by lowering
  interpolated,         // "a $x": children are `string` leaves and expressions  (Julia: Expr(:string, …))
  // control
  block,
  if_,  // (cond, then, [else])   elseif is a nested `if_` in else position with flag 1, its cond in a block; ternary:
        // flag 0
  while_,  // (cond, body)
  for_,    // (assign or block(assign…), body)
  break_,
  continue_,
  return_,  // (value or `nothing`)
  let_,     // (assign/identifier or block of them, body)
  try_,     // (body, catch variable or none, catch body or none, [finally body or none, [else body]])
  // definitions
  function,  // (signature, body) long form, (signature) alone declares; signature: call, where, type_assert around;
             // `tuple` for anonymous
  arrow,     // x -> e: (args as tuple or single identifier/type_assert/splat, body block); (x; y=1) -> e has a block as
             // args
  do_,       // (call, arrow)
  struct_,   // flag 1 = mutable: (signature: identifier, curly or subtype(either, super), body block)
  abstract_,   // abstract type A <: B end: (signature)
  primitive_,  // primitive type A <: B n end: (signature, bits)
  macro_,      // (signature call, body)
  module_,     // flag 1 = baremodule: (name, body)
  const_,      // (assign or global)
  global_,
  local_,
  using_,  // children: `dot_path`s, or one `import_list`
  import_,
  export_,   // identifiers
  dot_path,  // A.B.c: identifiers (leading "." ones for relative paths; a macro is "@m"); flag 1: the last is the name
             // after `as`
  import_list,  // M: a, b  -> (dot_path M, dot_path a, dot_path b …)
  // meta
  quote,        // quote … end and :( … ); flag 1 = a QuoteNode that still holds `$` (only in a.$x)
  interpolate,  // $x inside a quote
  toplevel,     // a file: statements
  error,        // a statement that did not parse; a diagnostic tells why
};

std::string_view head_name(Head head);  // Julia's spelling: "call", "macrocall", "=", "&&", "if", …

struct Node {
  Head head = Head::none;
  std::uint8_t flag = 0;
  std::uint16_t height =
      0;  // longest way down to a leaf, saturating; the parser bounds it, so recursive readers are safe
  Span span;
  union {
    struct {
      std::uint32_t first;  // index into Ast::children
      std::uint32_t count;
    } children;
    std::int64_t integer;
    double floating;
    NameId name;
    std::uint32_t text;  // index into Ast::texts
    std::uint32_t code_point;
    std::uint32_t value;  // index into the lowering's table of spliced values
  };
  Node() : integer(0) {}
};

// A tree that lies in memory owned by someone else, ready to be read: what an image holds (image.hpp). Text and name i
// are the characters from offset i to offset i + 1.
struct FixedTree {
  const Node* nodes = nullptr;
  const NodeId* children = nullptr;
  const std::uint32_t* text_offsets = nullptr;
  const std::uint32_t* name_offsets = nullptr;
  const char* characters = nullptr;
  std::uint32_t node_count = 0;
  std::uint32_t child_count = 0;
  std::uint32_t text_count = 0;
  std::uint32_t name_count = 0;
  NodeId root = no_node;
};

// Owns the nodes of one parsed text. Immutable once parsed, except that macro expansion appends. The first nodes,
// children, texts and names may be those of a FixedTree, which is never written; what is appended is owned.
class Ast {
 public:
  Ast();
  explicit Ast(const FixedTree& fixed);  // `fixed` outlives this
  Ast(Ast&&) = default;                  // not copied: the table of names views the spellings
  Ast& operator=(Ast&&) = default;
  NodeId leaf(Head head, Span span);  // then set the payload through `made(id)`
  NodeId identifier(std::string_view spelling, Span span);
  NodeId make(Head head, Span span, std::span<const NodeId> children, std::uint8_t flag = 0);
  NodeId string_leaf(std::string text, Span span);

  Node& made(NodeId id) { return nodes_[id - fixed_.node_count]; }  // a node made here, never one of a FixedTree
  const Node& node(NodeId id) const {
    return id < fixed_.node_count ? fixed_.nodes[id] : nodes_[id - fixed_.node_count];
  }
  std::uint32_t node_count() const { return fixed_.node_count + static_cast<std::uint32_t>(nodes_.size()); }
  Head head(NodeId id) const { return node(id).head; }
  std::span<const NodeId> children(NodeId id) const;  // empty for leaves; stays valid until the next `make`
  NodeId child(NodeId id, std::size_t index) const {  // no_node where there is none
    const auto all = children(id);
    return index < all.size() ? all[index] : no_node;
  }
  std::size_t child_count(NodeId id) const { return children(id).size(); }

  NameId intern(std::string_view spelling);
  std::uint32_t name_count() const { return fixed_.name_count + static_cast<std::uint32_t>(names_.size()); }
  std::string_view name(NameId id) const {
    return id < fixed_.name_count ? fixed_characters(fixed_.name_offsets + id) : names_[id - fixed_.name_count];
  }
  // Is "@generated" among the names? Most texts have none: then nobody has to look for it in the trees.
  bool mentions_generated() const { return mentions_generated_; }
  std::string_view name_of(NodeId identifier_or_quote_symbol) const {  // empty for what has none
    const Node& n = node(identifier_or_quote_symbol);
    return n.head == Head::identifier || n.head == Head::quote_symbol ? name(n.name) : std::string_view();
  }
  std::string_view text_of(NodeId string_leaf) const {
    if (head(string_leaf) != Head::string) return {};
    const std::uint32_t id = node(string_leaf).text;
    return id < fixed_.text_count ? fixed_characters(fixed_.text_offsets + id) : texts_[id - fixed_.text_count];
  }

  std::size_t bytes() const;  // of memory that it takes, about

  void move_to(FileId file);  // every span; a fixed tree's nodes become owned ones
  void give_back_room();      // that was taken for more

  NodeId root = no_node;

 private:
  std::string_view fixed_characters(const std::uint32_t* offset) const {
    return {fixed_.characters + offset[0], offset[1] - offset[0]};
  }

  FixedTree fixed_;  // its counts are 0 where there is none
  bool mentions_generated_ = false;
  std::vector<Node> nodes_;
  std::vector<NodeId> children_;
  std::vector<std::string> texts_;
  std::size_t text_bytes_ = 0;
  std::deque<std::string> names_;
  std::unordered_map<std::string_view, NameId> name_ids_;  // has the fixed names from the first intern on
};

bool is_leaf(Head head);

}  // namespace slope::syntax
