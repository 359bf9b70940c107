// Parentheses (grouping, tuples, blocks), square brackets (vectors, matrices, comprehensions, indices) and generators.
//
// In square brackets white space separates the elements of a row and a line break or `;` the rows, until a comma shows
// that it is a plain list; from then on line breaks are space.
#include <algorithm>
#include <span>
#include <vector>

#include "lang/syntax/expression.hpp"

namespace slope::syntax::grammar {

namespace {

Mode paren_mode(const State& state) {
  Mode mode;
  mode.newline_is_space = true;
  mode.end_is_name = state.mode.end_is_name;
  return mode;
}

// After `(a;` where no comma came: (a; b) is a block, but (a; b, c) a tuple with named parts.
NodeId parse_after_semicolon(State& state, Iterator& it, Iterator paren, std::size_t mark, bool is_tuple) {
  const std::size_t named = state.operands.size();
  const Iterator semicolon = it;
  while (it->kind == TokenKind::semicolon) ++it;
  if (is_tuple && it - semicolon > 1) state.refuse(semicolon + 1, "a tuple has at most one `;`");
  bool is_block = !is_tuple;
  while (it->kind != TokenKind::right_paren) {
    state.push(require(state, it, parse_expression(state, it), "an expression or `)`"));
    if (it->kind == TokenKind::comma && (is_tuple || state.operands.size() == named + 1)) {
      is_tuple = true;
      is_block = false;
      ++it;
    } else if (it->kind == TokenKind::semicolon && is_block) {
      while (it->kind == TokenKind::semicolon) ++it;
    } else {
      break;
    }
  }
  if (it->kind != TokenKind::right_paren)
    state.fail_to_close(it, paren, is_block ? "`;` or `)`" : "`,` or `)`", "parenthesis");
  const Iterator close = it++;
  if (is_block) return state.reduce(Head::block, paren, it, mark);
  for (std::size_t i = named; i < state.operands.size(); ++i) {
    state.operands[i] = to_keyword_argument(state, state.operands[i]);
  }
  const NodeId parameters = state.reduce(Head::parameters, semicolon, close, named);
  state.operands.insert(state.operands.begin() + static_cast<std::ptrdiff_t>(mark), parameters);
  return state.reduce(Head::tuple, paren, it, mark);
}

// The elements in square brackets, as children on the operand stack from `mark`.
struct Bracketed {
  Head head = Head::vect;  // vect, hcat, vcat, ncat or comprehension
  std::size_t mark = 0;
};

void close_bracket(State& state, Iterator& it, Iterator open, const char* closers) {
  if (it->kind != TokenKind::right_bracket) state.fail_to_close(it, open, closers, "bracket");
  ++it;
}

// After the first element, at a comma.
void parse_list_rest(State& state, Iterator& it, Iterator open) {
  state.mode.newline_is_space = true;
  while (it->kind == TokenKind::comma) {
    ++it;
    if (it->kind == TokenKind::right_bracket) break;
    state.push(require(state, it, parse_expression(state, it), "an element or `]`"));
  }
  if (it->kind == TokenKind::semicolon) {
    state.refuse(it, "a list with commas has no rows", "separate the elements of a row with spaces: `[1 2; 3 4]`");
  }
  close_bracket(state, it, open, "`,` or `]`");
}

// What stands between two elements of a bracket: 0 a space, 1 a line break or `;`, n semicolons.
using Separator = std::uint8_t;

struct Element {
  NodeId node = no_node;
  Iterator begin;
  Separator after = 0;
};

// The elements as nested rows. Spaces join first, then `;`; `;;` joins columns and is not mixed with spaces; `;;;` and
// more join further dimensions.
class RowBuilder {
 public:
  RowBuilder(State& state, Iterator close, bool has_spaces) : state_(state), close_(close), has_spaces_(has_spaces) {}

  // Pushes the parts that separators of `rank` divide `elements` into.
  void push_parts(std::span<const Element> elements, int rank) {
    std::size_t begin = 0;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (i + 1 < elements.size() && rank_of(elements[i].after) != rank) continue;
      push_part(elements.subspan(begin, i + 1 - begin), rank - 1);
      begin = i + 1;
    }
  }

  // From loose to tight: … 4 `;;;;`, 3 `;;;`, then 2 `;` and 1 space, or 2 `;;` and 1 `;`.
  int rank_of(Separator separator) const {
    if (separator > 2) return separator;
    if (separator == 0) return 1;
    return has_spaces_ ? 2 : separator;
  }
  Separator dimension_of(int rank) const {
    if (rank > 2) return static_cast<Separator>(rank);
    return static_cast<Separator>(has_spaces_ ? 3 - rank : rank);
  }
  NodeId dimension_leaf(Separator dimension) {
    const NodeId leaf = state_.ast.leaf(Head::integer, state_.span(close_, close_ + 1));
    state_.ast.made(leaf).integer = dimension;
    return leaf;
  }

 private:
  void push_part(std::span<const Element> elements, int rank) {
    if (elements.size() == 1) return state_.push(elements[0].node);
    while (std::none_of(elements.begin(), elements.end() - 1,
                        [&](const Element& element) { return rank_of(element.after) == rank; })) {
      --rank;
    }
    const std::size_t mark = state_.operands.size();
    const bool is_row = has_spaces_ && rank == 1;
    if (!is_row) state_.push(dimension_leaf(dimension_of(rank)));
    push_parts(elements, rank);
    state_.push(state_.reduce(is_row ? Head::row : Head::nrow, elements.front().begin, close_, mark));
  }

  State& state_;
  Iterator close_;
  bool has_spaces_;
};

// The elements of [a;; b], which have their separators, onto the stack.
Head build_dimensions(State& state, std::span<const Element> elements, Iterator close) {
  bool has_spaces = false;
  for (const Element& element : elements.first(elements.size() - 1)) has_spaces |= element.after == 0;
  RowBuilder builder(state, close, has_spaces);
  Separator widest = 0;
  for (const Element& element : elements) widest = std::max(widest, element.after);
  const int rank = builder.rank_of(widest);
  state.push(builder.dimension_leaf(builder.dimension_of(rank)));
  // a separator behind the last element only says how many dimensions there are
  builder.push_parts(elements, rank);
  return Head::ncat;
}

// One to many semicolons, or a line break, after an element.
Separator parse_separator(State& state, Iterator& it) {
  std::size_t count = 0;
  const Iterator first = it;
  while (it->kind == TokenKind::semicolon && (count == 0 || state.adjacent(it))) {
    ++it;
    ++count;
  }
  if (count > 60) state.refuse(first, "an array literal has at most 60 dimensions");
  if (count > 0) return static_cast<Separator>(std::min<std::size_t>(count, 60));
  return it->newline_before() ? 1 : 0;
}

// After the first element, where neither comma, `for` nor `]` follows.
Head parse_rows(State& state, Iterator& it, Iterator open) {
  std::vector<Element> elements{{state.pop(), open + 1, 0}};
  bool several_rows = false;
  bool several_dimensions = false;
  bool has_spaces = false;
  bool has_double_semicolons = false;
  while (it->kind != TokenKind::right_bracket || it->newline_before()) {
    if (it->kind == TokenKind::comma) {
      state.refuse(it, "a comma may not stand in a matrix", "separate elements with spaces and rows with `;`");
    }
    const Iterator separator_begin = it;
    Separator separator = parse_separator(state, it);
    if (separator == 2 && has_spaces && it->newline_before() && it->kind != TokenKind::right_bracket) {
      separator = 0;  // a row that goes on in the next line
    } else if (separator == 2 && has_spaces) {
      state.refuse(separator_begin, "spaces and `;;` both separate columns",
                   "separate the columns of an array by one of them");
    }
    elements.back().after = separator;
    several_rows |= separator > 0;
    several_dimensions |= separator > 1;
    has_double_semicolons |= separator == 2;
    if (it->kind == TokenKind::right_bracket) break;
    if (separator == 0) {
      if (state.adjacent(it)) state.fail_to_close(it, open, "a space, `;` or `]`", "bracket");
      if (has_double_semicolons) {
        state.refuse(it, "spaces and `;;` both separate columns", "separate the columns of an array by one of them");
      }
      has_spaces = true;
    }
    const Iterator begin = it;
    const NodeId element = parse_expression(state, it);
    if (element == no_node) state.fail_to_close(it, open, "an element or `]`", "bracket");
    elements.push_back({element, begin, 0});
  }
  const Iterator close = it;
  close_bracket(state, it, open, "`]`");
  if (several_dimensions) return build_dimensions(state, elements, close);
  for (std::size_t i = 0; i < elements.size();) {
    const std::size_t row_mark = state.operands.size();
    const Iterator row_begin = elements[i].begin;
    do {
      state.push(elements[i].node);
    } while (elements[i++].after == 0 && i < elements.size());
    if (!several_rows || state.operands.size() - row_mark == 1) continue;
    const NodeId row =
        state.reduce(Head::row, row_begin, i < elements.size() ? elements[i].begin - 1 : close, row_mark);
    state.push(row);
  }
  return several_rows ? Head::vcat : Head::hcat;
}

// [;;] has no elements, but dimensions.
Head parse_empty_dimensions(State& state, Iterator& it, Iterator open) {
  const Iterator first = it;
  const Separator dimensions = parse_separator(state, it);
  close_bracket(state, it, open, "`]`");
  RowBuilder builder(state, first, false);
  state.push(builder.dimension_leaf(dimensions));
  return Head::ncat;
}

// From `[` to `]`.
Bracketed parse_brackets(State& state, Iterator& it, bool index) {
  const Iterator open = it++;
  const bool end_is_name = index || state.mode.end_is_name;
  ModeGuard guard(state, Mode{});
  state.mode.space_sensitive = true;
  state.mode.in_brackets = true;
  state.mode.end_is_name = end_is_name;
  const OpenerGuard opener(state, open);
  Bracketed result;
  result.mark = state.operands.size();
  if (it->kind == TokenKind::right_bracket) {
    ++it;
    return result;
  }
  if (it->kind == TokenKind::semicolon) {
    result.head = parse_empty_dimensions(state, it, open);
    return result;
  }
  const Iterator first = it;
  state.push(require(state, it, parse_expression(state, it), "an element or `]`"));
  if (it->kind == TokenKind::kw_for) {
    state.mode.newline_is_space = true;
    const NodeId generator = parse_generator(state, it, first, state.pop());
    state.push(generator);
    close_bracket(state, it, open, "`]`");
    result.head = Head::comprehension;
  } else if (it->kind == TokenKind::right_bracket) {
    ++it;
  } else if (it->kind == TokenKind::comma) {
    parse_list_rest(state, it, open);
  } else {
    result.head = parse_rows(state, it, open);
  }
  return result;
}

}  // namespace

NodeId parse_parenthesised(State& state, Iterator& it) {
  const Iterator paren = it++;
  ModeGuard guard(state, paren_mode(state));
  const OpenerGuard opener(state, paren);
  const std::size_t mark = state.operands.size();
  if (it->kind == TokenKind::right_paren) {
    ++it;
    return state.reduce(Head::tuple, paren, it, mark);
  }
  if (it->kind == TokenKind::semicolon) return parse_after_semicolon(state, it, paren, mark, true);
  if (at_parenthesised_operator(state, paren) && it->kind != TokenKind::arrow && it->kind != TokenKind::assign) {
    const Iterator op = it;
    it += 2;
    const NodeId name = state.operator_leaf(op);
    return op->dotted() ? state.make(Head::dot, op, op + 1, {name}) : name;
  }
  const Iterator first = it;
  const NodeId element = require(state, it, parse_expression(state, it), "an expression or `)`");
  if (it->kind == TokenKind::right_paren) {
    ++it;
    return element;
  }
  if (at_generator(state, it)) {
    const NodeId generator = parse_generator(state, it, first, element);
    if (it->kind != TokenKind::right_paren) state.fail_to_close(it, paren, "`)`", "parenthesis");
    ++it;
    return generator;
  }
  state.push(element);
  // (a...; b) is no block: nothing but arguments reads so
  if (it->kind == TokenKind::semicolon) {
    return parse_after_semicolon(state, it, paren, mark, state.ast.head(element) == Head::splat);
  }
  if (it->kind != TokenKind::comma) state.fail_to_close(it, paren, "`,` or `)`", "parenthesis");
  while (it->kind == TokenKind::comma) {
    ++it;
    if (it->kind == TokenKind::right_paren || it->kind == TokenKind::semicolon) break;
    state.push(require(state, it, parse_expression(state, it), "an expression or `)`"));
  }
  if (it->kind == TokenKind::semicolon) return parse_after_semicolon(state, it, paren, mark, true);
  if (it->kind != TokenKind::right_paren) state.fail_to_close(it, paren, "`,` or `)`", "tuple");
  ++it;
  return state.reduce(Head::tuple, paren, it, mark);
}

NodeId parse_bracketed(State& state, Iterator& it) {
  const Iterator from = it;
  const Bracketed found = parse_brackets(state, it, false);
  return state.reduce(found.head, from, it, found.mark);
}

NodeId parse_indexed(State& state, Iterator& it, Iterator from, NodeId base) {
  const std::size_t mark = state.operands.size();
  state.push(base);
  const Bracketed found = parse_brackets(state, it, true);
  Head head = Head::ref;
  if (found.head == Head::hcat) head = Head::typed_hcat;
  if (found.head == Head::vcat) head = Head::typed_vcat;
  if (found.head == Head::ncat) head = Head::typed_ncat;
  if (found.head == Head::comprehension) head = Head::typed_comprehension;
  if (head == Head::ref) {
    for (std::size_t i = mark + 1; i < state.operands.size(); ++i) {
      state.operands[i] = to_keyword_argument(state, state.operands[i]);
    }
  }
  return state.reduce(head, from, it, mark);
}

bool at_generator(const State& state, Iterator it) {
  return it->kind == TokenKind::kw_for && (state.continues(it) || state.mode.newline_is_space);
}

// i in r, i = r, i ∈ r, (i, j) in r
NodeId parse_iteration(State& state, Iterator& it) {
  const Iterator from = it;
  const bool is_outer = it->kind == TokenKind::identifier && it->payload == state.words.outer &&
                        ((it + 1)->kind == TokenKind::identifier ||
                         ((it + 1)->kind == TokenKind::left_paren && (it + 1)->space_before()));
  if (is_outer) ++it;
  const NodeId variable = require(state, it, parse_infix(state, it, Precedence::pipe_left), "a loop variable");
  const bool is_in = it->kind == TokenKind::assign ||
                     (it->kind == TokenKind::op && (it->payload == op_in || it->payload == op_element_of));
  if (!is_in || it->dotted()) state.fail(it, "`in` or `=` after the loop variable", "a loop is written `for i in 1:n`");
  ++it;
  const NodeId range = require(state, it, parse_infix(state, it, Precedence::pipe_left), "what to loop over");
  const NodeId made = state.make(Head::assign, from, it, {variable, range});
  if (is_outer) state.ast.made(made).flag = 1;
  return made;
}

// `element for i in r, j in s if c for …`; at the first `for`. A second `for` nests: its loops run inside the first's.
NodeId parse_generator(State& state, Iterator& it, Iterator from, NodeId element) {
  const NestingGuard nesting(state, it);
  ++it;
  const Iterator header = it;
  const std::size_t mark = state.operands.size();
  state.push(no_node);  // room for the element or the filter's condition
  state.push(parse_iteration(state, it));
  while (it->kind == TokenKind::comma) {
    ++it;
    state.push(parse_iteration(state, it));
  }
  if (it->kind == TokenKind::kw_if) {
    ++it;
    state.operands[mark] = require(state, it, parse_infix(state, it, Precedence::pair), "a condition after `if`");
    const NodeId filter = state.reduce(Head::filter, header, it, mark);
    state.push(no_node);
    state.push(filter);
  }
  if (it->kind == TokenKind::kw_for) {
    state.operands[mark] = parse_generator(state, it, from, element);
    const NodeId outer = state.reduce(Head::generator, from, it, mark);
    return state.make(Head::flatten, from, it, {outer});
  }
  state.operands[mark] = element;
  return state.reduce(Head::generator, from, it, mark);
}

}  // namespace slope::syntax::grammar
