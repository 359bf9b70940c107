// Indexing (with `begin` and `end` inside), vector and matrix literals.
#include "lang/lower/desugar/desugar.hpp"

#include <utility>

namespace slope::lower {

namespace {

bool mentions_end(const Ast& ast, NodeId node) {
  const Head head = ast.head(node);
  if (head == Head::identifier) {
    const auto text = ast.name_of(node);
    return text == "end" || text == "begin";
  }
  if (head == Head::quote) return false;
  const auto nodes = ast.children(node);
  // Inside a[…] only the array expression still belongs to us.
  if (head == Head::ref) return !nodes.empty() && mentions_end(ast, nodes[0]);
  for (const NodeId child : nodes)
    if (mentions_end(ast, child)) return true;
  return false;
}

}  // namespace

// a[i, j…]: the array and, when `reusable`, the indices are evaluated into temporaries, in order. Keywords (`a[i, k=v]`)
// come last, as a named tuple.
Desugar::Indexed Desugar::indexed(std::span<const NodeId> written, bool reusable) {
  Indexed place;
  std::vector<NodeId> nodes;
  std::vector<NodeId> keywords;
  for (const NodeId node : written) {
    const Head head = ast_->head(node);
    const bool is_keyword = !nodes.empty() && (head == Head::kw || head == Head::assign || head == Head::parameters);
    if (is_keyword && head == Head::parameters) {
      for (const NodeId keyword : children(node)) keywords.push_back(keyword);
    } else {
      (is_keyword ? keywords : nodes).push_back(node);
    }
  }
  reusable |= !keywords.empty();
  bool needs_array = reusable;
  bool splat_before = false;
  for (const NodeId index : std::span(nodes).subspan(1)) {
    const bool end = mentions_end(*ast_, index);
    needs_array |= end;
    // `end` behind a splat depends on how many indices that gives: it is evaluated before.
    reusable |= end && splat_before;
    splat_before |= ast_->head(index) == Head::splat;
  }
  Form* array = expression(nodes[0]);
  if (needs_array) {
    array = temporary(array);
    place.setup.push_back(array);
    place.array = use(array);
  } else {
    place.array = array;
  }
  std::vector<Form*> splatted;
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    ends_.push_back({array, i - 1, nodes.size() - 1, splatted});
    NodeId index = nodes[i];
    Form* value = nullptr;
    const Head head = ast_->head(index);
    if (head == Head::splat && ast_->child_count(index) == 1) {
      place.splats |= std::uintptr_t{1} << (i - 1);
      value = expression(ast_->child(index, 0));
    } else {
      value = expression(index);
    }
    ends_.pop_back();
    if (reusable) {
      Form* kept = temporary(value);
      place.setup.push_back(kept);
      value = use(kept);
      if (head == Head::splat) splatted.push_back(kept);
    }
    place.indices.push_back(value);
  }
  if (!keywords.empty()) {
    place.setup.push_back(temporary(named_tuple_of(span(keywords[0]), keywords, {})));
    place.keywords = use(place.setup.back());
  }
  return place;
}

Form* Desugar::indexed_call(Span at, std::string_view function, const Indexed& place, std::vector<Form*> before) {
  const auto again = [&](Form* f) { return f->kind == FormKind::use ? use(f->target) : f; };
  std::vector<Form*> operands;
  if (place.keywords != nullptr) operands = {base(at, "kwcall"), again(place.keywords)};
  operands.push_back(base(at, function));
  operands.push_back(again(place.array));
  for (Form* extra : before) operands.push_back(extra);
  const std::size_t first = operands.size();
  for (Form* index : place.indices) operands.push_back(again(index));
  if (place.splats != 0 && operands.size() > 64) return error(at, "a call with a splat takes at most 63 arguments");
  Form* made = call(at, std::move(operands));
  made->aux = place.splats << first;
  return made;
}

Form* Desugar::index_expression(NodeId node, std::string_view function) {
  const auto nodes = children(node);
  if (nodes.empty()) return error(node, "malformed indexing");
  if (nodes.size() > 48) {
    for (const NodeId index : nodes)
      if (ast_->head(index) == Head::splat) return error(index, "a call with a splat takes at most 63 arguments");
  }
  const Indexed place = indexed(nodes, false);
  std::vector<Form*> forms = place.setup;
  forms.push_back(indexed_call(span(node), function, place));
  return block(span(node), std::move(forms));
}

Form* Desugar::end_in_index(NodeId node, std::string_view function) {
  const EndContext context = ends_.back();
  const Span at = span(node);
  if (!context.splats.empty()) {
    const auto plain = static_cast<std::int64_t>(context.position + 1 - context.splats.size());
    Form* dimension = integer(at, plain);
    for (Form* splat : context.splats)
      dimension = operation(at, ir::Op::add_int, {dimension, base_call(at, "length", {use(splat)})});
    return base_call(at, function, {use(context.array), dimension});
  }
  if (context.count == 1) return base_call(at, function, {use(context.array)});
  return base_call(at, function, {use(context.array), integer(at, static_cast<std::int64_t>(context.position) + 1)});
}

Form* Desugar::vector_literal(NodeId node) {
  const auto nodes = children(node);
  for (const NodeId child : nodes) {
    const Head head = ast_->head(child);
    if (head == Head::parameters || head == Head::kw)
      return error(child, "unexpected `;` or keyword in an array literal");
    if (head == Head::assign) return error(child, "misplaced assignment in an array literal");
  }
  return arguments_call(span(node), {base(span(node), "vect")}, nodes);
}

// [a b; c d] and T[a b; c d].
Form* Desugar::concatenation(NodeId node) {
  auto nodes = children(node);
  const Span at = span(node);
  const Head head = ast_->head(node);
  const bool typed = head == Head::typed_hcat || head == Head::typed_vcat;
  Form* type = nullptr;
  if (typed) {
    if (nodes.empty()) return error(node, "malformed array literal");
    type = expression(nodes[0]);
    nodes.erase(nodes.begin());
  }
  std::vector<Form*> callee;
  const auto start = [&](std::string_view function) {
    callee.push_back(base(at, typed ? "typed_" + std::string(function) : std::string(function)));
    if (typed) callee.push_back(type);
  };
  if (head == Head::hcat || head == Head::typed_hcat) {
    start("hcat");
    return arguments_call(at, std::move(callee), nodes);
  }
  bool rows = false;
  for (const NodeId row : nodes) rows |= ast_->head(row) == Head::row;
  if (!rows) {
    start("vcat");
    return arguments_call(at, std::move(callee), nodes);
  }
  bool splat = false;
  for (const NodeId row : nodes) {
    splat |= ast_->head(row) == Head::splat;
    if (ast_->head(row) != Head::row) continue;
    for (const NodeId cell : children(row)) splat |= ast_->head(cell) == Head::splat;
  }
  if (splat) {
    // How long a row is shows when it is evaluated.
    start("hvcat_rows");
    for (const NodeId row : nodes) {
      const auto cells = ast_->head(row) == Head::row ? children(row) : std::vector<NodeId>{row};
      callee.push_back(arguments_call(span(row), {core(at, "tuple")}, cells));
    }
    return call(at, std::move(callee));
  }
  std::vector<Form*> lengths;
  std::vector<NodeId> elements;
  for (const NodeId row : nodes) {
    if (ast_->head(row) == Head::row) {
      const auto cells = children(row);
      lengths.push_back(integer(span(row), static_cast<std::int64_t>(cells.size())));
      elements.insert(elements.end(), cells.begin(), cells.end());
    } else {
      lengths.push_back(integer(span(row), 1));
      elements.push_back(row);
    }
  }
  start("hvcat");
  callee.push_back(tuple(at, std::move(lengths)));
  return arguments_call(at, std::move(callee), elements);
}

// [a; b;; c; d] and T[…]: what `;` and spaces join are vcat and hcat, which further dimensions then join.
Form* Desugar::dimensions_literal(NodeId node) {
  const bool typed = ast_->head(node) == Head::typed_ncat;
  auto parts = children(node);
  if (parts.size() < (typed ? 2u : 1u)) return error(node, "malformed array literal");
  const Span at = span(node);
  std::vector<Form*> setup;
  Form* type = nullptr;
  if (typed) {
    type = temporary(expression(parts[0]));
    setup.push_back(type);
    parts.erase(parts.begin());
  }
  const auto join = [&](const auto& self, std::span<const NodeId> entries, std::int64_t dimension) -> Form* {
    std::vector<Form*> callee{base(at, typed ? "typed_join_dimension" : "join_dimension")};
    if (typed) callee.push_back(use(type));
    callee.push_back(value_parameter(at, dimension));
    return arguments_call(at, std::move(callee), entries, [&](NodeId entry) -> Form* {
      const auto inner = children(entry);
      if (ast_->head(entry) == Head::row) return self(self, inner, 2);
      if (ast_->head(entry) != Head::nrow || inner.empty() || ast_->head(inner[0]) != Head::integer)
        return expression(entry);
      return self(self, std::span(inner).subspan(1), ast_->node(inner[0]).integer);
    });
  };
  if (ast_->head(parts[0]) != Head::integer) return error(node, "malformed array literal");
  setup.push_back(join(join, std::span(parts).subspan(1), ast_->node(parts[0]).integer));
  return block(at, std::move(setup));
}

}  // namespace slope::lower
