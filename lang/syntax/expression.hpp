// The hand-written parsers of the grammar: what a table or a running decision drives rather than a fixed sequence. Each
// returns the node it made, or no_node if it does not match at the first token. grammar.hpp makes them X3 parsers.
#pragma once

#include "lang/syntax/state.hpp"

namespace slope::syntax::grammar {

// expression.cpp: operators by precedence
NodeId parse_infix(State& state, Iterator& it, Precedence least);
NodeId parse_expression(State& state, Iterator& it);            // a = b and tighter, no commas
bool closes_body(Iterator it);                                  // `end`, `else`, … or the end of the text
bool is_text(const State& state, NodeId node);                  // a string, perhaps with interpolations
NodeId parse_statement_expression(State& state, Iterator& it);  // also a, b = c, d
NodeId parse_juxtaposed(State& state, Iterator& it);            // unary operators, powers, 2x
NodeId parse_where_chain(State& state, Iterator& it, Iterator from, NodeId body);
NodeId require(State& state, Iterator& it, NodeId found, const char* expected);

// postfix.cpp: a(b), a[b], a{b}, a.b, a.(b), a', f(x) do … end
NodeId parse_postfix(State& state, Iterator& it);  // a primary and what follows it
NodeId parse_postfix_chain(State& state, Iterator& it, Iterator from, NodeId base, bool is_number);
void parse_call_arguments(State& state, Iterator& it,
                          std::string_view what);    // from `(` to `)`; pushes parameters first
void parse_braced_list(State& state, Iterator& it);  // from `{` to `}`; pushes
NodeId to_keyword_argument(State& state, NodeId argument);

// brackets.cpp
NodeId parse_parenthesised(State& state, Iterator& it);
NodeId parse_braces(State& state, Iterator& it);     // {a, b}
NodeId parse_bracketed(State& state, Iterator& it);  // vector, matrix, comprehension
NodeId parse_indexed(State& state, Iterator& it, Iterator from, NodeId base);
NodeId parse_generator(State& state, Iterator& it, Iterator from, NodeId element);  // at `for`
NodeId parse_iteration(State& state, Iterator& it);                                 // i in r
bool at_generator(const State& state, Iterator it);

// names.cpp: names, quoting, interpolation, macro calls
NodeId parse_name(State& state, Iterator& it);
NodeId parse_colon(State& state, Iterator& it);  // :a, :(a), or the value `:`
NodeId parse_interpolated_string(State& state, Iterator& it);
NodeId parse_prefix(State& state, Iterator& it);  // $x, ::T
NodeId parse_macro_call(State& state, Iterator& it);
std::string macro_name(const State& state, Iterator it);  // what follows the `@`; empty: no name
NodeId parse_macro_arguments(State& state, Iterator& it, Iterator from, NodeId name);
bool at_parenthesised_operator(const State& state, Iterator it);  // (+), (=), (::)

// statement.cpp
void parse_statements(State& state, Iterator& it, bool whole_text, bool documented);  // pushes each

// grammar rules, called from the hand-written parsers
NodeId parse_primary(State& state, Iterator& it);   // primary.cpp
NodeId parse_do_block(State& state, Iterator& it);  // control.cpp: the arrow of `do x … end`

}  // namespace slope::syntax::grammar
