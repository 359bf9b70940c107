// The grammar's rules and the X3 parsers they are made of.
//
// The rules run over tokens with one fixed context (the State), so each can be defined and instantiated in a source
// file of its own: BOOST_SPIRIT_DECLARE here, SLOPE_DEFINE_RULE there. They have no attributes: what matches leaves its
// node on the state's operand stack (see state.hpp), which keeps both compile time and run time low.
//
//   token(kind)           one token
//   native<&f>("a name")  a hand-written parser of expression.hpp; the name is what an error says was expected
//   node<Head>[p]         makes a node of what p leaves on the stack
//   form<Head>[p]         likewise for `keyword … end`: p stands between, the node's span covers all
//   nested[p]             p, counted as one more level of nesting
//   absent                leaves no_node, where an optional part is missing
#pragma once

#include <boost/spirit/home/x3.hpp>

#include "lang/syntax/expression.hpp"

namespace slope::syntax::grammar {

namespace x3 = boost::spirit::x3;

struct StateTag;
using Context = x3::context<StateTag, State>;

template <typename ContextType>
State& state_of(const ContextType& context) {
  return x3::get<StateTag>(context);
}

// Runs a rule from hand-written code.
template <typename Rule>
bool run_rule(const Rule& rule, State& state, Iterator& it) {
  const Context context(state);
  const Iterator last = state.last();
  return rule.parse(it, last, context, x3::unused, x3::unused);
}

template <typename Rule>
NodeId run_for_node(const Rule& rule, State& state, Iterator& it) {
  return run_rule(rule, state, it) ? state.pop() : no_node;
}

template <typename Derived>
struct Quiet : x3::parser<Derived> {
  using attribute_type = x3::unused_type;
  static constexpr bool has_attribute = false;
};

struct TokenParser : Quiet<TokenParser> {
  constexpr explicit TokenParser(TokenKind kind) : kind(kind) {}
  TokenKind kind;

  template <typename ContextType, typename Attribute>
  bool parse(Iterator& it, const Iterator&, const ContextType&, x3::unused_type, Attribute&) const {
    if (it->kind != kind) return false;
    ++it;
    return true;
  }
};

constexpr TokenParser token(TokenKind kind) { return TokenParser(kind); }

// A token that leaves a leaf or an empty node: its place is needed, not only its presence.
template <auto Function>
struct Native : Quiet<Native<Function>> {
  constexpr explicit Native(const char* name) : name(name) {}
  const char* name;

  template <typename ContextType, typename Attribute>
  bool parse(Iterator& it, const Iterator&, const ContextType& context, x3::unused_type, Attribute&) const {
    State& state = state_of(context);
    const NodeId made = Function(state, it);
    if (made == no_node) return false;
    state.push(made);
    return true;
  }
};

template <auto Function>
constexpr Native<Function> native(const char* name) {
  return Native<Function>(name);
}

// A hand-written parser that pushes what it likes and always matches or throws.
template <auto Function>
struct Pushing : Quiet<Pushing<Function>> {
  template <typename ContextType, typename Attribute>
  bool parse(Iterator& it, const Iterator&, const ContextType& context, x3::unused_type, Attribute&) const {
    Function(state_of(context), it);
    return true;
  }
};

template <auto Function>
inline constexpr Pushing<Function> pushing{};

// A test of the next token that reads nothing.
template <auto Predicate>
struct Ahead : Quiet<Ahead<Predicate>> {
  template <typename ContextType, typename Attribute>
  bool parse(Iterator& it, const Iterator&, const ContextType& context, x3::unused_type, Attribute&) const {
    return Predicate(static_cast<const State&>(state_of(context)), it);
  }
};

template <auto Predicate>
inline constexpr Ahead<Predicate> ahead{};

struct Absent : Quiet<Absent> {
  template <typename ContextType, typename Attribute>
  bool parse(Iterator&, const Iterator&, const ContextType& context, x3::unused_type, Attribute&) const {
    state_of(context).push(no_node);
    return true;
  }
};

inline constexpr Absent absent{};

template <Head head, std::uint8_t flag, typename Subject>
struct NodeDirective : x3::unary_parser<Subject, NodeDirective<head, flag, Subject>> {
  using Base = x3::unary_parser<Subject, NodeDirective<head, flag, Subject>>;
  using attribute_type = x3::unused_type;
  static constexpr bool has_attribute = false;
  constexpr explicit NodeDirective(const Subject& subject) : Base(subject) {}

  template <typename ContextType, typename Attribute>
  bool parse(Iterator& it, const Iterator& last, const ContextType& context, x3::unused_type, Attribute&) const {
    State& state = state_of(context);
    const std::size_t mark = state.operands.size();
    const Iterator from = it;
    if (!this->subject.parse(it, last, context, x3::unused, x3::unused)) return false;
    state.push(state.reduce(head, from, it, mark, flag));
    return true;
  }
};

// `keyword … end`. Inside, line breaks end statements and white space is free again, whatever is around the form.
template <Head head, std::uint8_t flag, typename Subject>
struct FormDirective : x3::unary_parser<Subject, FormDirective<head, flag, Subject>> {
  using Base = x3::unary_parser<Subject, FormDirective<head, flag, Subject>>;
  using attribute_type = x3::unused_type;
  static constexpr bool has_attribute = false;
  constexpr explicit FormDirective(const Subject& subject) : Base(subject) {}

  template <typename ContextType, typename Attribute>
  bool parse(Iterator& it, const Iterator& last, const ContextType& context, x3::unused_type, Attribute&) const {
    State& state = state_of(context);
    const std::size_t mark = state.operands.size();
    const Iterator from = it;
    const ModeGuard guard(state, Mode{});
    const OpenerGuard opener(state, from);
    if (!this->subject.parse(it, last, context, x3::unused, x3::unused)) return false;
    if (it->kind != TokenKind::kw_end) state.fail_without_end(it, from);
    state.note_closed(from, it);
    ++it;
    state.push(state.reduce(head, from, it, mark, flag));
    return true;
  }
};

// p, counted as one more level of nesting: for rules that call themselves.
template <typename Subject>
struct NestedDirective : x3::unary_parser<Subject, NestedDirective<Subject>> {
  using Base = x3::unary_parser<Subject, NestedDirective<Subject>>;
  using attribute_type = x3::unused_type;
  static constexpr bool has_attribute = false;
  constexpr explicit NestedDirective(const Subject& subject) : Base(subject) {}

  template <typename ContextType, typename Attribute>
  bool parse(Iterator& it, const Iterator& last, const ContextType& context, x3::unused_type, Attribute&) const {
    const NestingGuard nesting(state_of(context), it);
    return this->subject.parse(it, last, context, x3::unused, x3::unused);
  }
};

struct NestedMaker {
  template <typename Subject>
  constexpr auto operator[](const Subject& subject) const {
    return NestedDirective<Subject>(subject);
  }
};

inline constexpr NestedMaker nested{};

template <template <Head, std::uint8_t, typename> class Directive, Head head, std::uint8_t flag>
struct DirectiveMaker {
  template <typename Subject>
  constexpr auto operator[](const Subject& subject) const {
    using Parser = typename x3::extension::as_parser<Subject>::value_type;
    return Directive<head, flag, Parser>(x3::as_parser(subject));
  }
};

template <Head head, std::uint8_t flag = 0>
inline constexpr DirectiveMaker<NodeDirective, head, flag> node{};
template <Head head, std::uint8_t flag = 0>
inline constexpr DirectiveMaker<FormDirective, head, flag> form{};

// What errors call the parsers.
inline constexpr auto expression = native<&parse_expression>("an expression");
inline constexpr auto statement_expression = native<&parse_statement_expression>("an expression");

// Rules. A rule's name is what an error says was expected.
#define SLOPE_DECLARE_RULE(rule_name, description)             \
  using rule_name##_rule = x3::rule<struct rule_name##_class>; \
  inline const rule_name##_rule rule_name = description;       \
  BOOST_SPIRIT_DECLARE(rule_name##_rule)

#define SLOPE_DEFINE_RULE(rule_name) \
  BOOST_SPIRIT_DEFINE(rule_name)     \
  BOOST_SPIRIT_INSTANTIATE(rule_name##_rule, Iterator, Context)

SLOPE_DECLARE_RULE(primary, "an expression")        // primary.cpp
SLOPE_DECLARE_RULE(control_form, "a control form")  // control.cpp
SLOPE_DECLARE_RULE(do_block, "a `do` block")        // control.cpp
SLOPE_DECLARE_RULE(definition, "a definition")      // definitions.cpp
SLOPE_DECLARE_RULE(declaration, "a declaration")    // declarations.cpp
void parse_exports(State& state, Iterator& it);     // names after `export`
SLOPE_DECLARE_RULE(body, "statements")              // statement.cpp: up to the keyword that closes them; a block
SLOPE_DECLARE_RULE(documented_body, "statements")   // likewise, with docstrings
SLOPE_DECLARE_RULE(whole_text, "statements")        // statement.cpp: a file

}  // namespace slope::syntax::grammar

namespace boost::spirit::x3 {

template <>
struct get_info<slope::syntax::grammar::TokenParser> {
  using result_type = std::string;
  std::string operator()(const slope::syntax::grammar::TokenParser& parser) const {
    return std::string(slope::syntax::token_kind_name(parser.kind));
  }
};

template <auto Function>
struct get_info<slope::syntax::grammar::Native<Function>> {
  using result_type = std::string;
  std::string operator()(const slope::syntax::grammar::Native<Function>& parser) const { return parser.name; }
};

}  // namespace boost::spirit::x3
