// Operators, by precedence climbing over the table in operators.cpp.
//
// parse_infix(least) reads an operand. Then, while the next operator binds at least as tightly as `least`, it reads
// that operator and its right operand. From loose to tight, with the function that reads each:
//
//   a, b = …        statements    parse_statement_expression
//   = … <<          the table     parse_infix
//   <:T  where                    parse_operand
//   2x                            parse_juxtaposed
//   -x  !x                        parse_unary
//   a^b                           parse_factor      (its right operand is parse_juxtaposed: 2^3x is 2^(3x))
//   a::T  x -> e                  parse_declared    (the arrow binds tightly on its left, loosely on its right)
//   f(x) a[i] a.b a'              parse_postfix
//
// White space decides where the context says so: `[a -b]` has two elements, `[a - b]` and `[a-b]` have one.
#include "lang/syntax/expression.hpp"
#include "lang/syntax/foreign.hpp"
#include "lang/syntax/syntactic_operators.hpp"

#include <limits>

#include "lang/support/tuning.hpp"

namespace slope::syntax::grammar {

namespace {

bool is_unary_and_binary(Iterator at) {
  if (at->kind == TokenKind::dollar) return true;
  if (at->kind != TokenKind::op) return false;
  const OperatorInfo& info = operator_info(static_cast<OperatorId>(at->payload));
  return (info.unary && info.binary) || at->payload == op_ampersand;
}

bool is_plain(Iterator at, OperatorId id) {
  return at->kind == TokenKind::op && !at->dotted() && !at->suffixed() && at->payload == id;
}

// In a space-sensitive place, `a -b` and `a :b`: the operator belongs to what follows.
bool begins_next_element(const State& state, Iterator at) {
  return state.mode.space_sensitive && at->space_before() && (at + 1)->kind != TokenKind::end_of_input &&
         state.adjacent(at + 1) && (at->kind == TokenKind::colon || is_unary_and_binary(at));
}

bool is_infix(const State& state, Iterator at, Precedence least) {
  return at->precedence != Precedence::none && at->precedence >= least && state.continues(at) &&
         !begins_next_element(state, at);
}

bool is_call(const State& state, NodeId node) {
  const Head head = state.ast.head(node);
  return head == Head::call || (head == Head::dot_call && state.ast.node(node).flag == 1);
}

// f(x), f(x)::T, f(x) where T: what makes `… = e` a function definition.
bool is_signature(const State& state, NodeId node) {
  while (state.ast.head(node) == Head::where || state.ast.head(node) == Head::type_assert)
    node = state.ast.child(node, 0);
  return is_call(state, node);
}

NodeId as_block(State& state, NodeId body, Iterator from, Iterator to) {
  if (state.ast.head(body) == Head::block) return body;
  return state.make(Head::block, from, to, {body});
}

NodeId make_assignment(State& state, Iterator from, Iterator op, Iterator to, NodeId left, NodeId right) {
  if (op->kind == TokenKind::op_assign) {
    const Head head = op->dotted() ? Head::dot_op_assign : Head::op_assign;
    return state.make(head, from, to, {state.operator_leaf(op), left, right});
  }
  if (op->dotted()) return state.make(Head::dot_assign, from, to, {left, right});
  if (is_signature(state, left)) right = as_block(state, right, op + 1, to);
  return state.make(Head::assign, from, to, {left, right});
}

bool is_assignment_operator(Iterator at) { return at->kind == TokenKind::assign || at->kind == TokenKind::op_assign; }

// `a --> b` and `a ≔ b` are no calls: the operator is the head of the expression, and macros say what it means.
bool is_syntactic(State& state, Iterator op) {
  if (op->precedence != Precedence::arrow && op->precedence != Precedence::assignment) return false;
  return is_syntactic_operator(state.operator_text(op));
}

NodeId operator_call(State& state, Iterator from, Iterator op, Iterator to, NodeId left, NodeId right) {
  if (op->dotted()) return state.make(Head::dot_call, from, to, {state.operator_leaf(op), left, right}, 1);
  switch (op->kind) {
    case TokenKind::and_and:
      return state.make(Head::and_and, from, to, {left, right});
    case TokenKind::or_or:
      return state.make(Head::or_or, from, to, {left, right});
    case TokenKind::subtype:
      return state.make(Head::subtype, from, to, {left, right});
    case TokenKind::supertype:
      return state.make(Head::supertype, from, to, {left, right});
    default:
      return state.make(Head::call, from, to, {state.operator_leaf(op), left, right}, is_syntactic(state, op) ? 1 : 0);
  }
}

NodeId right_operand(State& state, Iterator& it, Iterator op, Precedence least) {
  const NodeId right = parse_infix(state, it, least);
  if (right == no_node)
    state.fail(it, "an expression after `" + state.operator_text(op) + "`",
               foreign_operator_help(state.operator_text(op) +
                                     (it->kind == TokenKind::assign && state.adjacent(it) ? "=" : "")));
  return right;
}

constexpr Precedence above(Precedence level) { return static_cast<Precedence>(static_cast<std::uint8_t>(level) + 1); }

// a ? b : c, at the question mark
NodeId parse_conditional(State& state, Iterator& it, Iterator from, NodeId condition) {
  const Iterator question = it++;
  const char* spaced = "a conditional is written with spaces: `a ? b : c`";
  if (state.adjacent(question)) state.refuse(question, "a space must stand before `?`", spaced);
  if (state.adjacent(it)) state.refuse(question, "a space must stand after `?`", spaced);
  NodeId then = no_node;
  {
    ModeGuard guard(state);
    state.mode.colon_is_range = false;
    then = require(state, it, parse_expression(state, it), "an expression after `?`");
  }
  const Iterator colon = it;
  if (colon->kind != TokenKind::colon) {
    state.fail(it, "`:` and the other branch of the conditional",
               "a conditional is written `a ? b : c`; use `if` when there is nothing else");
  }
  if (state.adjacent(colon)) state.refuse(colon, "a space must stand before the `:` of a conditional", spaced);
  ++it;
  if (state.adjacent(it)) state.refuse(colon, "a space must stand after the `:` of a conditional", spaced);
  const NodeId other = require(state, it, parse_expression(state, it), "an expression after `:`");
  return state.make(Head::if_, from, it, {condition, then, other});
}

NodeId parse_comparison(State& state, Iterator& it, Iterator from, NodeId left) {
  const Iterator op = it++;
  const NodeId right = right_operand(state, it, op, above(Precedence::comparison));
  const auto goes_on = [&] {
    return it->precedence == Precedence::comparison && is_infix(state, it, Precedence::comparison);
  };
  if (!goes_on()) return operator_call(state, from, op, it, left, right);
  const std::size_t mark = state.operands.size();
  const auto push_operator = [&](Iterator at) {
    state.push(at->dotted() ? state.name_leaf(state.operator_text(at), at) : state.operator_leaf(at));
  };
  state.push(left);
  push_operator(op);
  state.push(right);
  while (goes_on()) {
    const Iterator next = it++;
    push_operator(next);
    state.push(right_operand(state, it, next, above(Precedence::comparison)));
  }
  return state.reduce(Head::comparison, from, it, mark);
}

// a && b && c is a && (b && c), as Julia reads it; but a chain of hundreds, which means the same however it is grouped,
// is grouped by halves: its tree is not deep.
class LogicalChain {
 public:
  LogicalChain(State& state, Iterator from, NodeId left) : state_(state), operands_{left}, begins_{from} {}

  NodeId parse(Iterator& it) {
    const Iterator op = it;
    head_ = op->kind == TokenKind::and_and ? Head::and_and : Head::or_or;
    while (it->kind == op->kind && !it->dotted() && is_infix(state_, it, op->precedence)) {
      const Iterator next = it++;
      ends_.push_back(next);
      begins_.push_back(it);
      operands_.push_back(right_operand(state_, it, next, above(op->precedence)));
    }
    ends_.push_back(it);
    return group(0, operands_.size());
  }

 private:
  static constexpr std::size_t long_chain = tuning::long_chain;

  NodeId group(std::size_t first, std::size_t last) {
    if (last - first <= long_chain) {
      NodeId made = operands_[last - 1];
      for (std::size_t i = last - 1; i-- > first;)
        made = state_.make(head_, begins_[i], ends_[last - 1], {operands_[i], made});
      return made;
    }
    const std::size_t middle = first + (last - first) / 2;
    const NodeId left = group(first, middle);
    const NodeId right = group(middle, last);
    return state_.make(head_, begins_[first], ends_[last - 1], {left, right});
  }

  State& state_;
  Head head_ = Head::and_and;
  std::vector<NodeId> operands_;
  std::vector<Iterator> begins_;
  std::vector<Iterator> ends_;
};

NodeId parse_range(State& state, Iterator& it, Iterator from, NodeId first) {
  const Iterator colon = it++;
  if (!state.continues(it))
    state.refuse(colon, "a line may not end inside a range",
                 "put the range on one line or in parentheses; no `:` follows a condition or a loop's header");
  const NodeId second = right_operand(state, it, colon, above(Precedence::colon));
  if (it->kind == TokenKind::colon && is_infix(state, it, Precedence::colon) && state.mode.colon_is_range) {
    const Iterator again = it++;
    const NodeId third = right_operand(state, it, again, above(Precedence::colon));
    return state.make(Head::call, from, it, {state.operator_leaf(colon), first, second, third});
  }
  return state.make(Head::call, from, it, {state.operator_leaf(colon), first, second});
}

// a + b + c and a * b * c are one call of all their operands.
NodeId parse_chain(State& state, Iterator& it, Iterator from, NodeId left) {
  const Iterator op = it;
  const std::size_t mark = state.operands.size();
  state.push(state.operator_leaf(op));
  state.push(left);
  while (is_plain(it, static_cast<OperatorId>(op->payload)) && is_infix(state, it, op->precedence)) {
    const Iterator next = it++;
    state.push(right_operand(state, it, next, above(op->precedence)));
  }
  return state.reduce(Head::call, from, it, mark);
}

NodeId parse_declared(State& state, Iterator& it, Iterator from, NodeId base) {
  while (state.continues(it)) {
    if (it->kind == TokenKind::double_colon) {
      ++it;
      const Iterator type_begin = it;
      NodeId type = require(state, it, parse_postfix(state, it), "a type after `::`");
      type = parse_where_chain(state, it, type_begin, type);
      base = state.make(Head::type_assert, from, it, {base, type});
    } else if (it->kind == TokenKind::arrow) {
      ++it;
      const Iterator body_begin = it;
      const NodeId body = require(state, it, parse_expression(state, it), "the function's body after `->`");
      return state.make(Head::arrow, from, it, {base, as_block(state, body, body_begin, it)});
    } else {
      break;
    }
  }
  return base;
}

NodeId parse_power(State& state, Iterator& it, Iterator from, NodeId base) {
  if (it->precedence != Precedence::power || !state.continues(it) || it->kind != TokenKind::op) return base;
  const Iterator op = it++;
  const NestingGuard nesting(state, op);
  const NodeId exponent = parse_juxtaposed(state, it);
  if (exponent == no_node) state.fail(it, "an exponent after `" + state.operator_text(op) + "`");
  return operator_call(state, from, op, it, base, exponent);
}

NodeId parse_factor(State& state, Iterator& it) {
  const Iterator from = it;
  const NodeId base = parse_postfix(state, it);
  if (base == no_node) return no_node;
  return parse_power(state, it, from, parse_declared(state, it, from, base));
}

// -2 and +2 are literals: `it` is at the sign, a number follows.
NodeId signed_literal(State& state, Iterator& it) {
  const bool negative = it->payload == op_minus;
  const Iterator sign = it++;
  const Node number = state.ast.node(it->payload);
  const NodeId made = state.ast.leaf(number.head, state.span(sign, it + 1));
  Node& leaf = state.ast.made(made);
  leaf.flag = number.flag;
  if (number.head == Head::integer) {
    leaf.integer =
        negative ? static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(number.integer)) : number.integer;
  } else {
    leaf.floating = negative ? -number.floating : number.floating;
  }
  ++it;
  return made;
}

bool is_signed_literal(const State& state, Iterator it) {
  if (!is_plain(it, op_minus) && !is_plain(it, op_plus)) return false;
  const Iterator number = it + 1;
  if (number->kind != TokenKind::literal || (number->flags & flag_number) == 0 || !state.adjacent(number)) return false;
  if (it->payload == op_plus) return (number->flags & flag_too_large) == 0;
  // -0x1f is the negation of an unsigned number
  if (state.ast.head(number->payload) == Head::integer && state.ast.node(number->payload).flag != 0) return false;
  // -2^x is -(2^x)
  const Iterator after = number + 1;
  return (number->flags & flag_too_large) != 0 ||
         !((after->precedence == Precedence::power && state.continues(after)) ||
           (state.adjacent(after) && (after->kind == TokenKind::left_bracket || after->kind == TokenKind::adjoint)));
}

// An operator that stands for itself: f(+, x), (+), op = +
NodeId operator_value(State& state, Iterator& it) {
  const Iterator op = it++;
  const NodeId name = state.operator_leaf(op);
  return op->dotted() ? state.make(Head::dot, op, it, {name}) : name;
}

NodeId parse_unary(State& state, Iterator& it);

// An operator with `(` right after it: +(a, b) is a call, -(a)^2 the negation of a parenthesised square.
NodeId parse_operator_call(State& state, Iterator& it, bool unary) {
  const Iterator op = it++;
  const Iterator paren = it;
  const std::size_t mark = state.operands.size();
  if (op->kind == TokenKind::subtype || op->kind == TokenKind::supertype) {
    parse_call_arguments(state, it, "operator call");
    const Head head = op->kind == TokenKind::subtype ? Head::subtype : Head::supertype;
    return parse_power(state, it, op, state.reduce(head, op, it, mark));
  }
  state.push(state.operator_leaf(op));
  parse_call_arguments(state, it, "operator call");
  const NodeId only = state.operands.size() == mark + 2 ? state.operands.back() : no_node;
  const Head head = only == no_node ? Head::none : state.ast.head(only);
  const bool single = unary && only != no_node && (it - 2)->kind != TokenKind::comma;
  if (single && head == Head::kw) {  // -(a = 1) assigns: the parentheses group
    state.operands.resize(mark);
    it = paren;
    const NodeId operand = parse_unary(state, it);
    if (op->dotted()) return state.make(Head::dot_call, op, it, {state.operator_leaf(op), operand}, 1);
    return state.make(Head::call, op, it, {state.operator_leaf(op), operand});
  }
  const bool grouping = single && head != Head::splat && head != Head::parameters;
  if (grouping) {
    state.operands.resize(mark);
    NodeId base = parse_postfix_chain(state, it, paren, only, false);
    base = parse_power(state, it, paren, parse_declared(state, it, paren, base));
    if (op->dotted()) return state.make(Head::dot_call, op, it, {state.operator_leaf(op), base}, 1);
    return state.make(Head::call, op, it, {state.operator_leaf(op), base});
  }
  const NodeId call =
      op->dotted() ? state.reduce(Head::dot_call, op, it, mark, 1) : state.reduce(Head::call, op, it, mark);
  const NodeId base = parse_postfix_chain(state, it, op, call, false);
  return parse_power(state, it, op, parse_declared(state, it, op, base));
}

NodeId parse_unary(State& state, Iterator& it) {
  const bool is_word = it->kind == TokenKind::op && (it->payload == op_in || it->payload == op_isa);
  if (!it->is_operator() || it->kind == TokenKind::colon || is_word) {
    if (it->kind == TokenKind::arrow || it->kind == TokenKind::ellipsis) return no_node;
    return parse_factor(state, it);
  }
  if (is_signed_literal(state, it)) {
    const Iterator from = it;
    const NodeId literal = signed_literal(state, it);
    return parse_declared(state, it, from, literal);
  }
  const Iterator op = it;
  const Iterator next = op + 1;
  if (is_assignment_operator(op) || op->kind == TokenKind::question) return no_node;
  const bool unary = operator_info(static_cast<OperatorId>(op->payload)).unary;
  if (next->kind == TokenKind::left_paren && state.adjacent(next)) return parse_operator_call(state, it, unary);
  const bool stands_alone =
      state.ends_here(next) || next->kind == TokenKind::assign || next->kind == TokenKind::invalid ||
      next->kind == TokenKind::where || (next->is_operator() && next->space_before() && !unary) ||
      (next->kind == TokenKind::dot && state.adjacent(next) && (next + 1)->kind == TokenKind::left_paren) ||
      (next->precedence == Precedence::pair && next->space_before());
  if (stands_alone) {
    const NodeId value = operator_value(state, it);
    const NodeId base = parse_postfix_chain(state, it, op, value, false);
    return parse_power(state, it, op, parse_declared(state, it, op, base));
  }
  if (state.operator_text(op) == "&" && !op->dotted() && !next->space_before()) {
    ++it;
    const NestingGuard nesting(state, op);
    const NodeId operand = parse_unary(state, it);
    if (operand == no_node) state.fail(it, "an operand after `&`");
    return state.make(Head::address, op, it, {operand});
  }
  if (!unary) {
    const bool doubled = state.operator_text(op) == ">" && op != state.first() && state.adjacent(op) &&
                         state.operator_text(op - 1) == "<";
    state.refuse(op, "`" + state.operator_text(op) + "` needs an operand on its left",
                 foreign_operator_help(doubled ? "<>" : state.operator_text(op)));
  }
  ++it;
  const NestingGuard nesting(state, op);
  if (op->kind == TokenKind::subtype || op->kind == TokenKind::supertype) {
    const Iterator from = it;
    NodeId bound = require(state, it, parse_juxtaposed(state, it), "a type after the bound");
    bound = parse_where_chain(state, it, from, bound);
    return state.make(op->kind == TokenKind::subtype ? Head::subtype : Head::supertype, op, it, {bound});
  }
  const NodeId operand = parse_unary(state, it);
  if (operand == no_node) state.fail(it, "an operand after `" + state.operator_text(op) + "`");
  if (op->dotted()) return state.make(Head::dot_call, op, it, {state.operator_leaf(op), operand}, 1);
  return state.make(Head::call, op, it, {state.operator_leaf(op), operand});
}

// 2x, 2(x + 1), (a)b, a'b: a product without an operator
bool juxtaposes(State& state, Iterator before, Iterator it) {
  if (it->space_before()) return false;
  const bool number = before->kind == TokenKind::literal && (before->flags & flag_number) != 0;
  const auto is_string = [&](Iterator at) {
    return at->kind == TokenKind::literal && state.ast.head(at->payload) == Head::string;
  };
  const bool after_string = before->kind == TokenKind::string_end || is_string(before);
  const bool at_string = it->kind == TokenKind::string_begin || is_string(it);
  if (at_string || (after_string && it->kind == TokenKind::identifier)) {
    // A string that ends on another line than it begins took the quote that should have begun the next one.
    Iterator begin = before;
    while (begin != state.first() && begin->kind != TokenKind::string_begin && begin->kind != TokenKind::literal)
      --begin;
    const std::uint32_t line = state.line_of(begin);
    const bool ran_on = after_string && state.text.substr(begin->begin, before->end - begin->begin).find('\n') !=
                                            std::string_view::npos;
    state.refuse(it, "a string may not be juxtaposed with what is beside it",
                 ran_on
                     ? "the string before it begins at line " + std::to_string(line) + ": is its closing quote missing?"
                     : "join strings with `*` or `string(a, b)`");
  }
  const bool factor = it->kind == TokenKind::identifier || (it->kind == TokenKind::left_paren && number);
  if (!factor || (before->kind == TokenKind::literal && !number) || before->kind == TokenKind::invalid) return false;
  if ((before->flags & flag_ends_in_dot) != 0) {
    state.refuse(before, "a number that ends in `.` may not be juxtaposed", "write `2.0x` or `2 * x`");
  }
  return true;
}

NodeId parse_operand(State& state, Iterator& it) {
  const Iterator from = it;
  const NodeId operand = parse_juxtaposed(state, it);
  if (operand == no_node) return no_node;
  return parse_where_chain(state, it, from, operand);
}

NodeId continue_infix(State& state, Iterator& it, Iterator from, NodeId left, Precedence least) {
  Precedence most = Precedence::power;
  while (is_infix(state, it, least) && it->precedence <= most) {
    const Iterator op = it;
    switch (op->kind) {
      case TokenKind::ellipsis:
        ++it;
        left = state.make(Head::splat, from, it, {left});
        most = Precedence::comparison;
        continue;
      case TokenKind::assign:
      case TokenKind::op_assign: {
        ++it;
        const NodeId right = right_operand(state, it, op, Precedence::assignment);
        left = make_assignment(state, from, op, it, left, right);
        continue;
      }
      case TokenKind::question:
        left = parse_conditional(state, it, from, left);
        continue;
      case TokenKind::colon:
        if (!state.mode.colon_is_range) return left;
        left = parse_range(state, it, from, left);
        continue;
      default:
        break;
    }
    const OperatorInfo& info = operator_info(static_cast<OperatorId>(op->payload));
    if (op->precedence == Precedence::comparison) {
      left = parse_comparison(state, it, from, left);
    } else if (is_plain(op, op_plus) || is_plain(op, op_times)) {
      left = parse_chain(state, it, from, left);
    } else if ((op->kind == TokenKind::and_and || op->kind == TokenKind::or_or) && !op->dotted()) {
      left = LogicalChain(state, from, left).parse(it);
    } else {
      ++it;
      const Precedence right_least = is_right_associative(info.precedence) ? info.precedence : above(info.precedence);
      const NodeId right = right_operand(state, it, op, right_least);
      left = operator_call(state, from, op, it, left, right);
    }
  }
  return left;
}

}  // namespace

NodeId require(State& state, Iterator& it, NodeId found, const char* expected) {
  if (found == no_node) state.fail(it, expected);
  return found;
}

NodeId parse_where_chain(State& state, Iterator& it, Iterator from, NodeId body) {
  while (it->kind == TokenKind::where && state.mode.where_allowed && state.continues(it)) {
    ++it;
    const std::size_t mark = state.operands.size();
    state.push(body);
    if (it->kind == TokenKind::left_brace) {
      parse_braced_list(state, it);
    } else {
      ModeGuard guard(state);
      state.mode.where_allowed = false;
      state.push(require(state, it, parse_infix(state, it, Precedence::comparison), "a type variable after `where`"));
    }
    body = state.reduce(Head::where, from, it, mark);
  }
  return body;
}

NodeId parse_juxtaposed(State& state, Iterator& it) {
  const Iterator from = it;
  const NodeId first = parse_unary(state, it);
  if (first == no_node || !juxtaposes(state, it - 1, it)) return first;
  const std::size_t mark = state.operands.size();
  state.push(state.name_leaf("*", from));
  state.push(first);
  while (juxtaposes(state, it - 1, it)) state.push(parse_unary(state, it));
  return state.reduce(Head::call, from, it, mark);
}

NodeId parse_infix(State& state, Iterator& it, Precedence least) {
  const NestingGuard nesting(state, it);
  const Iterator from = it;
  const NodeId left = parse_operand(state, it);
  if (left == no_node) return no_node;
  return continue_infix(state, it, from, left, least);
}

NodeId parse_expression(State& state, Iterator& it) { return parse_infix(state, it, Precedence::assignment); }

NodeId parse_statement_expression(State& state, Iterator& it) {
  const NestingGuard nesting(state, it);
  const Iterator from = it;
  NodeId left = parse_infix(state, it, Precedence::pair);
  if (left == no_node) return no_node;
  if (it->kind == TokenKind::comma && state.continues(it)) {
    const std::size_t mark = state.operands.size();
    state.push(left);
    while (it->kind == TokenKind::comma && state.continues(it)) {
      ++it;
      if (it->kind == TokenKind::assign ||
          (state.ends_here(it) && it->kind != TokenKind::end_of_input && !it->newline_before()))
        break;
      state.push(require(state, it, parse_infix(state, it, Precedence::pair), "an expression after `,`"));
    }
    left = state.reduce(Head::tuple, from, it, mark);
  }
  if (is_assignment_operator(it) && is_infix(state, it, Precedence::assignment)) {
    const Iterator op = it++;
    const NodeId right = parse_statement_expression(state, it);
    if (right == no_node)
      state.fail(it, "an expression after `" + state.operator_text(op) + "`",
                 foreign_operator_help(state.operator_text(op)));
    return make_assignment(state, from, op, it, left, right);
  }
  // what is left binds as loosely as assignment does: a ~ b
  return it->precedence == Precedence::assignment ? continue_infix(state, it, from, left, Precedence::assignment)
                                                  : left;
}

}  // namespace slope::syntax::grammar
