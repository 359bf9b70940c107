// Macros that print, measure and test. They keep the text of their argument.
#include <cctype>
#include <utility>

#include "lang/lower/desugar/desugar.hpp"
#include "lang/syntax/print.hpp"

namespace slope::lower {

Form* Desugar::macro_assert(NodeId node, std::span<const NodeId> arguments) {
  const Span at = span(node);
  Form* message = nullptr;
  if (arguments.size() == 2) {
    message = expression(arguments[1]);
    if (ast_->head(arguments[1]) != Head::string && ast_->head(arguments[1]) != Head::interpolated)
      message = base_call(at, "assertion_message", {message});
  } else {
    message = string(at, syntax::to_source(*ast_, arguments[0]));
  }
  Form* raise = call(at, {core(at, "throw"), call(at, {core(at, "AssertionError"), message})});
  return if_form(at, expression(arguments[0]), nothing(at), raise);
}

Form* Desugar::macro_show(NodeId node, std::span<const NodeId> arguments) {
  const Span at = span(node);
  std::vector<Form*> forms;
  for (const NodeId argument : arguments) {
    Form* value = temporary(expression(argument));
    forms.push_back(value);
    forms.push_back(base_call(at, "show_expression", {string(at, syntax::to_source(*ast_, argument)), use(value)}));
    forms.push_back(use(value));
  }
  if (forms.empty()) return nothing(at);
  return block(at, std::move(forms));
}

Form* Desugar::macro_time(NodeId node, std::span<const NodeId> arguments) {
  const Span at = span(node);
  std::vector<Form*> forms;
  std::vector<Form*> operands;
  if (arguments.size() == 2) {
    forms.push_back(temporary(expression(arguments[0])));
    operands.push_back(use(forms.back()));
  }
  Form* start = temporary(base_call(at, "time_start", {}));
  Form* value = temporary(expression(arguments.back()));
  operands.insert(operands.begin(), use(start));
  forms.insert(forms.end(), {start, value, base_call(at, "time_print", std::move(operands)), use(value)});
  return block(at, std::move(forms));
}

Form* Desugar::macro_timed(NodeId node, std::span<const NodeId> arguments) {
  const Span at = span(node);
  Form* start = temporary(base_call(at, "time_start", {}));
  Form* value = temporary(expression(arguments[0]));
  return block(at, {start, value, base_call(at, "time_report", {use(start), use(value)})});
}

Form* Desugar::macro_elapsed(NodeId node, std::span<const NodeId> arguments) {
  const Span at = span(node);
  Form* start = temporary(base_call(at, "time_start", {}));
  return block(at, {start, expression(arguments[0]), base_call(at, "time_elapsed", {use(start)})});
}

Form* Desugar::macro_allocated(NodeId node, std::span<const NodeId> arguments) {
  const Span at = span(node);
  Form* start = temporary(base_call(at, "allocated_bytes", {}));
  return block(at, {start, expression(arguments[0]), base_call(at, "allocated_since", {use(start)})});
}

// @btime f($x): the least time of several runs. What stands after `$` is computed once, before; f(x) is timed.
Form* Desugar::macro_btime(NodeId node, std::span<const NodeId> arguments) {
  const Span at = span(node);
  std::vector<NodeId> parameters;
  std::vector<Form*> values;
  const auto strip = [&](const auto& self, NodeId n) -> NodeId {
    const auto nodes = children(n);
    if (ast_->head(n) == Head::interpolate && nodes.size() == 1) {
      values.push_back(expression(nodes[0]));
      parameters.push_back(ast_->identifier("#value" + std::to_string(values.size()), span(n)));
      return parameters.back();
    }
    if (nodes.empty()) return n;
    std::vector<NodeId> made;
    for (const NodeId child : nodes) made.push_back(self(self, child));
    return ast_->make(ast_->head(n), span(n), made, ast_->node(n).flag);
  };
  const NodeId body = strip(strip, arguments[0]);
  const NodeId arrow = ast_->make(Head::arrow, at, std::vector<NodeId>{ast_->make(Head::tuple, at, parameters), body});
  return base_call(at, "benchmark_time", {anonymous(arrow), tuple(at, std::move(values))});
}

// --- printf ---

// The format is checked here and read again by each call, which is cheaper than handing its parts over.
Form* Desugar::format_call(NodeId node, std::span<const NodeId> arguments) {
  const Span at = span(node);
  if (ast_->head(arguments[0]) != Head::string)
    return error(arguments[0], "the format of `@printf` must be a string literal");
  const std::string text(ast_->text_of(arguments[0]));
  std::size_t wanted = 0;
  const auto skip = [&](std::size_t i, std::string_view set) {
    while (i < text.size() && set.find(text[i]) != std::string_view::npos) ++i;
    return i;
  };
  const auto skip_number = [&](std::size_t i) {
    if (i >= text.size() || text[i] != '*') return skip(i, "0123456789");
    ++wanted;
    return i + 1;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') continue;
    if (++i < text.size() && text[i] == '%') continue;
    i = skip_number(skip(i, "-+ 0#'"));
    if (i < text.size() && text[i] == '.') i = skip_number(i + 1);
    i = skip(i, "lhjzt");
    if (i >= text.size()) return error(arguments[0], "invalid printf format: `%` at the end needs a conversion");
    if (std::string_view("diouxXeEfFgGaAcsp").find(text[i]) == std::string_view::npos)
      return error(arguments[0], std::string("invalid printf format: `%") + text[i] + "` is no conversion");
    ++wanted;
  }
  const auto values = arguments.subspan(1);
  bool splat = false;
  for (const NodeId value : values) splat |= ast_->head(value) == Head::splat;
  if (!splat && values.size() != wanted)
    return error(node, "the format wants " + std::to_string(wanted) + " arguments, " + std::to_string(values.size()) +
                           " are given");
  return arguments_call(at, {base(at, "format_pieces"), string(at, text)}, values);
}

Form* Desugar::macro_printf(NodeId node, std::span<const NodeId> arguments) {
  const Span at = span(node);
  if (ast_->head(arguments[0]) == Head::string) return base_call(at, "print", {format_call(node, arguments)});
  if (arguments.size() < 2) return error(node, "the format of `@printf` must be a string literal");
  Form* stream = expression(arguments[0]);
  return base_call(at, "print", {stream, format_call(node, arguments.subspan(1))});
}

Form* Desugar::macro_sprintf(NodeId node, std::span<const NodeId> arguments) { return format_call(node, arguments); }

// --- tests ---

Form* Desugar::macro_testset(NodeId node, std::span<const NodeId> arguments) {
  const Span at = span(node);
  Form* title = string(at, "test set");
  Form* verbose = nullptr;
  Form* kind = nullptr;
  for (const NodeId argument : arguments.first(arguments.size() - 1)) {
    const Head head = ast_->head(argument);
    if (head == Head::string || head == Head::interpolated) title = expression(argument);
    if (head == Head::identifier || head == Head::dot) kind = expression(argument);
    if (head == Head::assign && identifier_text(*ast_, ast_->child(argument, 0)) == "verbose")
      verbose = expression(ast_->child(argument, 1));
  }
  const NodeId body = arguments.back();
  const Head head = ast_->head(body);
  if (head == Head::for_) {  // a test set for each turn: its title may name the variables
    std::vector<NodeId> call = children(node), loop = children(body);
    call.back() = loop.back();
    loop.back() = ast_->make(Head::block, at, std::vector<NodeId>{ast_->make(ast_->head(node), at, call)});
    return expression(ast_->make(Head::for_, at, loop));
  }
  if (head != Head::block && head != Head::let_ && head != Head::call)
    return error(body, "expected `begin … end`, a `for` loop or a call in `@testset`");
  std::vector<Form*> told{title};
  if (kind != nullptr && verbose == nullptr) verbose = constant(at, runtime_.from_bool(false));
  if (verbose != nullptr) told.push_back(verbose);
  if (kind != nullptr) told.push_back(kind);
  Form* start = temporary(base_call(at, "testset_start", told));
  ++scope_depth_;
  Form* inner = scope(at, scope_hard, expression(body));
  --scope_depth_;
  Form* guarded = arena_.form(FormKind::try_, at);
  const Symbol* caught = hidden("testset_error");
  Form* handler = scope(at, scope_hard,
                        block(at, {local(at, caught), assign_name(at, caught, form(FormKind::caught, at)),
                                   base_call(at, "testset_error", {use(start), name(at, caught)})}));
  guarded->children = {inner, handler, nullptr, nullptr};
  return block(at, {start, guarded, base_call(at, "testset_finish", {use(start)})});
}

}  // namespace slope::lower
