// Calls with keywords and splats, literal powers, comparison chains, strings, properties, type application, tuples,
// `new`.
#include "lang/lower/desugar/desugar.hpp"
#include "lang/support/tuning.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace slope::lower {

Form* Desugar::call_expression(NodeId node) {
  const auto nodes = children(node);
  if (nodes.empty()) return error(node, "malformed call");
  if (Form* special = special_call(node)) return special;
  Form* callee = expression(nodes[0]);
  return call_with(span(node), callee, std::span(nodes).subspan(1), nullptr);
}

// Callees that mean more than a call. Null: an ordinary call.
Form* Desugar::special_call(NodeId node) {
  const auto nodes = children(node);
  const NodeId callee = nodes[0];
  const std::span<const NodeId> arguments = std::span(nodes).subspan(1);
  if (ast_->head(callee) == Head::curly && new_.type != nullptr) {
    const auto parts = children(callee);
    if (!parts.empty() && is_identifier(parts[0], "new"))
      return new_object(node, std::span(parts).subspan(1), arguments);
  }
  if (ast_->head(callee) == Head::dot) {
    // M.eval(code)
    const auto path = children(callee);
    if (path.size() != 2 || ast_->head(path[1]) != Head::quote_symbol || ast_->name_of(path[1]) != "eval" ||
        arguments.size() != 1 || ast_->head(arguments[0]) == Head::splat || is_identifier(path[0], "Base"))
      return nullptr;
    Form* module = expression(path[0]);
    return then_newest_world(base_call(span(node), "property_eval", {module, expression(arguments[0])}));
  }
  if (ast_->head(callee) != Head::identifier) return nullptr;
  const auto text = ast_->name_of(callee);
  if (text == "new" && new_.type != nullptr) return new_object(node, new_.type_arguments, arguments);
  if (text == "^" && arguments.size() == 2 && ast_->head(arguments[1]) == Head::integer &&
      ast_->node(arguments[1]).flag == 0)
    return power_by_literal(node);
  // `eval` and `include` are functions of the module; a program's own of these names is called as any other.
  const auto is_own = [&] {
    const Binding* found = module_->own(intern(text));
    return found != nullptr && found->module == module_ && found->value.defined();
  };
  if (text == "include" && arguments.size() == 1 && !is_own()) {
    const auto& file = runtime_.sources.file(span(node).file).name();
    Form* path = expression(arguments[0]);
    if (is_library_file(runtime_, span(node).file))
      return then_newest_world(native(span(node), "include_library",
                                      {constant(span(node), Value(runtime_.types.builtin().module, module_)), path}));
    return then_newest_world(native(
        span(node), "include_file",
        {constant(span(node), Value(runtime_.types.builtin().module, module_)), string(span(node), file), path}));
  }
  if (text == "eval" && arguments.size() == 1 && ast_->head(arguments[0]) != Head::splat && !eval_is_parameter_ &&
      !is_own()) {
    Form* code = expression(arguments[0]);
    return then_newest_world(native(span(node), "eval_expression",
                                    {constant(span(node), Value(runtime_.types.builtin().module, module_)), code}));
  }
  // What packages ask Julia's runtime for while they load.
  if (text == "ccall" && arguments.size() >= 5 && ast_->head(arguments[0]) == Head::tuple &&
      ast_->child_count(arguments[0]) == 2 && ast_->head(ast_->child(arguments[0], 1)) == Head::quote_symbol &&
      ast_->name_of(ast_->child(arguments[0], 1)) == "libmpfr") {
    std::vector<Form*> given{expression(ast_->child(arguments[0], 0))};
    for (const NodeId argument : arguments.subspan(3)) given.push_back(expression(argument));
    return base_call(span(node), "mpfr_call", std::move(given));
  }
  if (text == "ccall" && !arguments.empty() && ast_->head(arguments[0]) == Head::quote_symbol) {
    const auto asked = ast_->name_of(arguments[0]);
    if (asked == "jl_getpagesize") return constant(span(node), runtime_.from_int(std::int64_t{4096}));
    if (asked == "jl_generating_output") return constant(span(node), runtime_.from_int(std::int64_t{0}));
  }
  if (text == "ccall")
    if (Form* made = library_c_call(node, arguments)) return made;
  // A pointer's function, which Slope code gave to `@cfunction`.
  if (text == "ccall" && arguments.size() >= 3 && ast_->head(arguments[2]) == Head::tuple) {
    const Head called = ast_->head(arguments[0]);
    if (called != Head::tuple && called != Head::quote_symbol && called != Head::string) {
      std::vector<Form*> parts;
      for (const NodeId argument : arguments) parts.push_back(expression(argument));
      return base_call(span(node), "call_pointer", std::move(parts));
    }
  }
  if (text == "cglobal") {  // a place in a library that is not there
    std::vector<Form*> parts;
    for (const NodeId argument : arguments) parts.push_back(expression(argument));
    return base_call(span(node), "cglobal", std::move(parts));
  }
  if (text == "ccall" || text == "llvmcall")
    return unsupported(node, "`" + std::string(text) + "` is not part of Slope",
                       "register a C++ function with the engine instead");
  return nullptr;
}

// ccall((:pow, libm), Float64, (Float64, Float64), x, y) of a C function that the library has in Slope, under the name
// `c_pow`; null for all others.
Form* Desugar::library_c_call(NodeId node, std::span<const NodeId> arguments) {
  if (arguments.size() < 3 || ast_->head(arguments[2]) != Head::tuple) return nullptr;
  const bool with_library = ast_->head(arguments[0]) == Head::tuple && ast_->child_count(arguments[0]) == 2;
  const NodeId called = with_library ? ast_->child(arguments[0], 0) : arguments[0];
  std::string function = "c_";
  if (ast_->head(called) == Head::quote_symbol)
    function += ast_->name_of(called);
  else if (ast_->head(called) == Head::string)
    function += ast_->text_of(called);
  else
    return nullptr;
  const Binding* known = runtime_.resolve(runtime_.base, intern(function));
  const auto types = children(arguments[2]);
  if (known == nullptr || types.size() != arguments.size() - 3) return nullptr;
  const Span at = span(node);
  std::vector<Form*> values;
  for (std::size_t i = 0; i < types.size(); ++i) {
    Form* type = expression(types[i]);
    values.push_back(base_call(span(arguments[i + 3]), "c_argument", {type, expression(arguments[i + 3])}));
  }
  Form* type = expression(arguments[1]);
  return base_call(at, "c_result", {type, base_call(at, function, std::move(values))});
}

// Val(n)
Form* Desugar::value_parameter(Span at, std::int64_t n) {
  const Type* parameter = runtime_.types.value_int(n);
  const DataType* val = runtime_.types.apply(runtime_.types.builtin().val_name, std::span(&parameter, 1));
  return val->instance.defined() ? constant(at, val->instance)
                                 : operation(at, ir::Op::make_struct, {constant(at, runtime_.from_type(val))});
}

// x^2 is Base.literal_pow(^, x, Val(2)), as in Julia: exact, and 2^-1 is 0.5.
Form* Desugar::power_by_literal(NodeId node) {
  const auto nodes = children(node);
  const Span at = span(node);
  Form* power = expression(nodes[0]);
  Form* exponent_form = value_parameter(at, ast_->node(nodes[2]).integer);
  Form* argument = expression(nodes[1]);
  return base_call(at, "literal_pow", {power, argument, exponent_form});
}

// A call of what `head` holds so far (callee and leading arguments) with further syntactic arguments, some splatted.
// The bits of a splat call cover 64 operands; more arguments are put into tuples that are splatted.
Form* Desugar::arguments_call(Span at, std::vector<Form*> head, std::span<const NodeId> arguments,
                              const Evaluate& value_of) {
  constexpr std::size_t most = tuning::call_operands;
  bool any_splat = false;
  for (const NodeId argument : arguments) any_splat |= ast_->head(argument) == Head::splat;
  const bool in_chunks = any_splat && head.size() + arguments.size() > most;
  std::uintptr_t splats = 0;
  std::vector<Form*> chunk;
  std::uintptr_t chunk_splats = 0;
  const auto close_chunk = [&] {
    Form* made = call(at, std::move(chunk));
    made->aux = chunk_splats;
    chunk.clear();
    chunk_splats = 0;
    splats |= std::uintptr_t{1} << head.size();
    head.push_back(made);
  };
  for (const NodeId argument : arguments) {
    NodeId operand = argument;
    bool splat = ast_->head(argument) == Head::splat;
    if (splat) {
      const auto inner = children(argument);
      if (inner.size() != 1) return error(argument, "malformed splat");
      operand = inner[0];
    }
    // (xs...)...: the elements of the elements.
    std::size_t within = 0;
    while (splat && ast_->head(operand) == Head::splat && ast_->child_count(operand) == 1) {
      operand = ast_->child(operand, 0);
      ++within;
    }
    if (!value_of && !splat && ast_->head(operand) == Head::macrocall) argument_macro_ = operand;
    Form* value = value_of ? value_of(operand) : expression(operand);
    argument_macro_ = syntax::no_node;
    const bool splat_of_macro = std::exchange(argument_is_splat_, false);
    if (splat_of_macro && (in_chunks || head.size() >= 64))
      return error(at, "a call with a splat that a macro made takes at most 63 arguments");
    splat |= splat_of_macro;
    for (; within > 0; --within) value = base_call(at, "flatten", {value});
    if (in_chunks) {
      if (chunk.empty()) chunk.push_back(core(at, "tuple"));
      if (splat) chunk_splats |= std::uintptr_t{1} << chunk.size();
      chunk.push_back(value);
      if (chunk.size() == most) close_chunk();
      if (head.size() == most) return error(at, "a call with a splat takes at most 3000 arguments");
    } else {
      if (splat) splats |= std::uintptr_t{1} << head.size();
      head.push_back(value);
    }
  }
  if (!chunk.empty()) close_chunk();
  Form* made = call(at, std::move(head));
  made->aux = splats;
  return made;
}

Form* Desugar::call_with(Span at, Form* callee, std::span<const NodeId> arguments, Form* leading) {
  std::vector<NodeId> positional;
  std::vector<NodeId> keywords;
  std::vector<NodeId> behind;  // a `;`: they come after those among the arguments
  for (const NodeId argument : arguments) {
    const Head head = ast_->head(argument);
    if (head == Head::parameters) {
      const auto entries = children(argument);
      behind.insert(behind.end(), entries.begin(), entries.end());
    } else if (head == Head::kw) {
      keywords.push_back(argument);
    } else {
      positional.push_back(argument);
    }
  }
  keywords.insert(keywords.end(), behind.begin(), behind.end());
  if (keywords.empty()) {
    std::vector<Form*> head{callee};
    if (leading != nullptr) head.push_back(leading);
    return arguments_call(at, std::move(head), positional);
  }
  // Everything is evaluated as it is written, what stands behind `;` last; the named tuple comes first in the call, so
  // the others are taken into temporaries.
  Form* function = temporary(callee);
  std::vector<Form*> setup{function};
  std::unordered_map<NodeId, Form*> evaluated;
  for (const NodeId argument : arguments) {
    const Head head = ast_->head(argument);
    const auto parts = children(argument);
    if (head == Head::parameters || (head == Head::kw && parts.size() != 2)) continue;
    const NodeId operand = head == Head::kw ? parts[1] : head == Head::splat && parts.size() == 1 ? parts[0] : argument;
    Form* value = expression(operand);
    if (value->kind != FormKind::constant) {
      setup.push_back(temporary(value));
      value = use(setup.back());
    }
    evaluated[operand] = value;
  }
  const auto value_of = [&](NodeId node) {
    const auto found = evaluated.find(node);
    if (found == evaluated.end()) return expression(node);
    return found->second->kind == FormKind::use ? use(found->second->target) : found->second;
  };
  Form* names = temporary(named_tuple_of(at, keywords, value_of));
  setup.push_back(names);
  std::vector<Form*> head{base(at, "kwcall"), use(names), use(function)};
  const auto is_splat = [&](NodeId keyword) { return ast_->head(keyword) == Head::splat; };
  if (leading == nullptr && std::all_of(keywords.begin(), keywords.end(), is_splat)) {
    // f(x; options...) of no options is f(x): another method may be for it.
    Form* without = arguments_call(at, {use(function)}, positional, value_of);
    Form* with = arguments_call(at, std::move(head), positional, value_of);
    setup.push_back(if_form(at, base_call(at, "isempty", {use(names)}), without, with));
    return block(at, std::move(setup));
  }
  if (leading != nullptr) head.push_back(leading);
  setup.push_back(arguments_call(at, std::move(head), positional, value_of));
  return block(at, std::move(setup));
}

// --- named tuples ---

// Entries k=v, k (short for k=k), a.k (k=a.k), key => v, splats.
Form* Desugar::named_tuple_of(Span at, std::span<const NodeId> entries, const Evaluate& value_of) {
  std::vector<Form*> setup;
  Form* result = nullptr;  // merged so far
  std::vector<const Symbol*> names;
  std::unordered_set<const Symbol*> seen;  // of `names`
  std::vector<Form*> values;
  const auto flush = [&] {
    if (names.empty() && result != nullptr) return;
    Form* part = named_tuple(at, names, std::move(values));
    names.clear();
    values.clear();
    if (result == nullptr) {
      result = part;
    } else {
      result = base_call(at, "merge", {result, part});
    }
  };
  for (NodeId entry : entries) {
    if (ast_->head(entry) == Head::macrocall)
      entry = expanded_target(entry);  // f(; @m), a macro that makes `name = value`
    const Head head = ast_->head(entry);
    const auto parts = children(entry);
    const Symbol* key = nullptr;
    Form* value = nullptr;
    if ((head == Head::kw || head == Head::assign) && parts.size() == 2) {
      key = identifier(parts[0]);
      if (key == nullptr) return error(parts[0], "expected a name before `=` in a keyword argument or named tuple");
      value = value_of ? value_of(parts[1]) : expression(parts[1]);
    } else if (head == Head::identifier) {
      key = identifier(entry);
      value = expression(entry);
    } else if (head == Head::dot && parts.size() == 2 && ast_->head(parts[1]) == Head::quote_symbol) {
      key = intern(ast_->name_of(parts[1]));
      value = expression(entry);
    } else if (head == Head::call && parts.size() == 3 && is_identifier(parts[0], "=>") &&
               ast_->head(parts[1]) == Head::quote_symbol) {
      key = intern(ast_->name_of(parts[1]));
      value = expression(parts[2]);
    } else if (head == Head::call && parts.size() == 3 && is_identifier(parts[0], "=>")) {
      flush();
      result = base_call(
          at, "merge", {result, base_call(span(entry), "keyword_pair", {expression(parts[1]), expression(parts[2])})});
      continue;
    } else if (head == Head::splat && parts.size() == 1) {
      flush();
      result = base_call(at, "merge", {result, expression(parts[0])});
      continue;
    } else {
      return error(entry, "expected a keyword argument: name = value");
    }
    if (names.empty()) seen.clear();
    if (!seen.insert(key).second) return error(entry, "keyword argument \"" + key->name + "\" repeated");
    names.push_back(key);
    values.push_back(value);
  }
  flush();
  setup.push_back(result);
  return block(at, std::move(setup));
}

Form* Desugar::named_or_plain_tuple(NodeId node) {
  const auto nodes = children(node);
  const Span at = span(node);
  bool named = false;
  for (const NodeId child : nodes) {
    const Head head = ast_->head(child);
    named |= head == Head::assign || head == Head::kw || head == Head::parameters;
  }
  if (named) {
    std::vector<NodeId> entries;
    for (const NodeId child : nodes) {
      if (ast_->head(child) == Head::parameters) {
        const auto inner = children(child);
        entries.insert(entries.end(), inner.begin(), inner.end());
      } else {
        entries.push_back(child);
      }
    }
    for (const NodeId child : nodes) {
      const Head head = ast_->head(child);
      const bool pair =
          head == Head::call && ast_->child_count(child) == 3 && is_identifier(ast_->child(child, 0), "=>");
      if (head != Head::assign && head != Head::kw && head != Head::parameters && head != Head::splat &&
          head != Head::identifier && head != Head::dot && !pair)
        return error(child, "a named tuple cannot hold an element without a name");
    }
    return named_tuple_of(at, entries);
  }
  bool splat = false;
  for (const NodeId child : nodes) splat |= ast_->head(child) == Head::splat;
  if (splat) return arguments_call(at, {core(at, "tuple")}, nodes);
  std::vector<Form*> values;
  for (const NodeId child : nodes) values.push_back(expression(child));
  return tuple(at, std::move(values));
}

// --- comparisons ---

// a < b <= c evaluates b once: (a < (t = b)) && (t <= c). Dotted links are joined with .&
Form* Desugar::comparison(NodeId node) {
  const auto nodes = children(node);
  if (nodes.size() < 3 || nodes.size() % 2 == 0) return error(node, "malformed comparison");
  bool dotted = false;
  for (std::size_t i = 1; i < nodes.size(); i += 2) {
    const auto op = identifier_text(*ast_, nodes[i]);
    dotted |= op.size() > 1 && op[0] == '.';
  }
  if (!dotted) return chain(span(node), nodes, expression(nodes[0]));
  // With a dotted link all links are evaluated and combined elementwise.
  const Span at = span(node);
  std::vector<Form*> setup;
  std::vector<Form*> terms;
  for (std::size_t i = 0; i < nodes.size(); i += 2) {
    Form* term = temporary(is_dotted(nodes[i]) ? broadcast(nodes[i]) : expression(nodes[i]));
    setup.push_back(term);
    terms.push_back(term);
  }
  Form* result = nullptr;
  for (std::size_t i = 1; i < nodes.size(); i += 2) {
    const auto op = identifier_text(*ast_, nodes[i]);
    const bool link_dotted = op.size() > 1 && op[0] == '.';
    Form* function = name(span(nodes[i]), intern(link_dotted ? op.substr(1) : op));
    Form* left = use(terms[i / 2]);
    Form* right = use(terms[i / 2 + 1]);
    Form* link =
        link_dotted ? base_call(at, "broadcasted", {function, left, right}) : call(at, {function, left, right});
    result = result == nullptr ? link : base_call(at, "broadcasted", {base(at, "&"), result, link});
  }
  setup.push_back(base_call(at, "materialize", {result}));
  return block(at, std::move(setup));
}

// The links of a chain, `left` being the value before the first: each is asked only when those before it hold.
Form* Desugar::chain(Span at, std::span<const NodeId> nodes, Form* left) {
  std::vector<Form*> links;
  for (std::size_t i = 1; i < nodes.size(); i += 2) {
    Form* right = expression(nodes[i + 1]);
    if (i + 2 < nodes.size()) right = temporary(right);
    const bool subtype = identifier_text(*ast_, nodes[i]) == "<:";
    links.push_back(subtype ? operation(at, ir::Op::subtype, {left, right})
                            : call(at, {expression(nodes[i]), left, right}));
    if (i + 2 < nodes.size()) left = use(right);
  }
  return all_hold(at, links);
}

// a && (b && c); many are grouped by halves, so that the form is not deep. The first half is a condition, which
// branches directly (Emitter::branch_on): what it evaluated is there in the second.
Form* Desugar::all_hold(Span at, std::span<Form* const> links) {
  if (links.size() == 1) return links[0];
  const std::size_t first = links.size() <= 64 ? 1 : links.size() / 2;
  return if_form(at, all_hold(at, links.first(first)), all_hold(at, links.subspan(first)),
                 constant(at, runtime_.from_bool(false)));
}

Form* Desugar::short_circuit(NodeId node, bool is_and) {
  const auto nodes = children(node);
  if (nodes.size() != 2) return error(node, "malformed `&&` or `||`");
  const Span at = span(node);
  Form* left = expression(nodes[0]);
  Form* right = expression(nodes[1]);
  Form* skipped = constant(at, runtime_.from_bool(!is_and));
  return is_and ? if_form(at, left, right, skipped) : if_form(at, left, skipped, right);
}

Form* Desugar::interpolated(NodeId node) {
  const auto nodes = children(node);
  std::vector<Form*> parts;
  for (const NodeId part : nodes) {
    if (ast_->head(part) == Head::splat) return arguments_call(span(node), {base(span(node), "string")}, nodes);
    parts.push_back(expression(part));
  }
  return base_call(span(node), "string", std::move(parts));
}

Form* Desugar::property(NodeId node) {
  const auto nodes = children(node);
  const Span at = span(node);
  if (nodes.size() == 1) {
    // `.+` as a value broadcasts when called; Julia's BroadcastFunction.
    return base_call(at, "BroadcastFunction", {expression(nodes[0])});
  }
  if (nodes.size() != 2) return error(node, "malformed `.`");
  Form* object = expression(nodes[0]);
  if (ast_->head(nodes[1]) == Head::quote_symbol || ast_->head(nodes[1]) == Head::identifier) {
    if (ast_->name_of(nodes[1]) == "eval" && !is_identifier(nodes[0], "Base") && !is_identifier(nodes[0], "Core"))
      return base_call(at, "eval_of", {object});
    Form* made = form(FormKind::property, at, {object});
    made->name = intern(ast_->name_of(nodes[1]));
    return made;
  }
  if (ast_->head(nodes[1]) == Head::string || ast_->head(nodes[1]) == Head::integer)
    return base_call(at, "getproperty", {object, literal(nodes[1])});
  if (ast_->head(nodes[1]) == Head::quote)  // a.:($name), the value of a variable
    return base_call(at, "getproperty", {object, expression(nodes[1])});
  return error(nodes[1], "expected a field name after `.`");
}

// --- types ---

Form* Desugar::type_variable(const BoundSyntax& bound, Span at) {
  std::vector<Form*> operands{symbol(at, bound.name == no_node ? "#s" : identifier_text(*ast_, bound.name))};
  if (bound.lower != no_node || bound.upper != no_node) {
    operands.push_back(bound.lower != no_node ? expression(bound.lower)
                                              : constant(at, runtime_.from_type(runtime_.types.builtin().bottom)));
    operands.push_back(bound.upper != no_node ? expression(bound.upper)
                                              : constant(at, runtime_.from_type(runtime_.types.builtin().any)));
  }
  return operation(at, ir::Op::type_var, std::move(operands));
}

// T{A, <:B} is (T{A, _} where _ <: B).
Form* Desugar::curly(NodeId node) {
  const auto nodes = children(node);
  const Span at = span(node);
  if (nodes.empty()) return error(node, "malformed type application");
  std::vector<Form*> setup;
  std::vector<Form*> vars;
  Form* made = form(FormKind::curly, at, {expression(nodes[0])});
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const Head head = ast_->head(nodes[i]);
    if ((head == Head::subtype || head == Head::supertype) && ast_->child_count(nodes[i]) == 1) {
      BoundSyntax bound;
      (head == Head::subtype ? bound.upper : bound.lower) = ast_->child(nodes[i], 0);
      Form* var = temporary(type_variable(bound, span(nodes[i])));
      setup.push_back(var);
      vars.push_back(var);
      made->children.push_back(use(var));
    } else if (head == Head::splat) {
      const auto inner = children(nodes[i]);
      if (inner.size() != 1 || made->children.size() >= 64) return error(nodes[i], "malformed splat");
      made->aux |= std::uintptr_t{1} << made->children.size();
      made->children.push_back(expression(inner[0]));
    } else {
      made->children.push_back(expression(nodes[i]));
    }
  }
  Form* result = made;
  for (std::size_t i = vars.size(); i-- > 0;) result = operation(at, ir::Op::union_all, {use(vars[i]), result});
  setup.push_back(result);
  return block(at, std::move(setup));
}

// T where {A, B<:C}: the variables are local names bound to type variables.
Form* Desugar::where(NodeId node) {
  auto nodes = children(node);
  const Span at = span(node);
  if (nodes.empty()) return error(node, "malformed `where`");
  const NodeId body = nodes[0];
  nodes.erase(nodes.begin());
  if (nodes.size() == 1 && ast_->head(nodes[0]) == Head::braces) nodes = children(nodes[0]);
  std::vector<Form*> forms;
  std::vector<Form*> vars;
  for (const NodeId entry : nodes) {
    BoundSyntax bound;
    if (!parse_bound(*ast_, entry, bound)) return error(entry, "expected a type variable with optional bounds");
    Form* var = temporary(type_variable(bound, span(entry)));
    const Symbol* sym = identifier(bound.name);
    forms.push_back(var);
    forms.push_back(local(span(entry), sym));
    forms.push_back(assign_name(span(entry), sym, use(var)));
    vars.push_back(var);
  }
  Form* result = expression(body);
  for (std::size_t i = vars.size(); i-- > 0;) result = operation(at, ir::Op::union_all, {use(vars[i]), result});
  forms.push_back(result);
  return scope(at, scope_hard, block(at, std::move(forms)));
}

// --- new ---

// The declared type of a field as a form, the struct's variables being what `forms` give. Null: too complicated.
Form* Desugar::field_type_form(Span at, const Type* type, std::span<const TypeVar* const> vars,
                               std::span<Form* const> forms) {
  if (const TypeVar* var = as_var(type)) {
    for (std::size_t i = 0; i < vars.size(); ++i)
      if (vars[i] == var) return use(forms[i]);
    return nullptr;
  }
  if (!type->has_free_vars) return constant(at, runtime_.from_type(type));
  if (const DataType* data = as_data(type)) {
    if (data->name->wrapper == nullptr) return nullptr;
    std::vector<Form*> operands{constant(at, runtime_.from_type(data->name->wrapper))};
    for (const Type* parameter : data->params) {
      if (as_vararg(parameter) != nullptr) return nullptr;
      if (const ValueType* value = as_value(parameter)) {
        operands.push_back(constant(at, value->value));
        continue;
      }
      Form* made = field_type_form(at, parameter, vars, forms);
      if (made == nullptr) return nullptr;
      operands.push_back(made);
    }
    return operation(at, ir::Op::apply_type, std::move(operands));
  }
  if (const UnionType* members = as_union(type)) {
    std::vector<Form*> operands;
    for (const Type* member : members->members) {
      Form* made = field_type_form(at, member, vars, forms);
      if (made == nullptr) return nullptr;
      operands.push_back(made);
    }
    return operation(at, ir::Op::make_union, std::move(operands));
  }
  return nullptr;
}

// new(a, b) and new{T}(a, b): each argument is converted to its field's type.
Form* Desugar::new_object(NodeId node, std::span<const NodeId> type_arguments, std::span<const NodeId> arguments) {
  const TypeName& type = *new_.type;
  const Span at = span(node);
  const auto is_splat = [&](NodeId argument) { return ast_->head(argument) == Head::splat; };
  if (std::any_of(type_arguments.begin(), type_arguments.end(), is_splat)) {
    // new{Ts...}(values...): how many there are is known at run time.
    Form* applied = form(FormKind::curly, at, {constant(at, runtime_.from_type(type.wrapper))});
    for (const NodeId argument : type_arguments) {
      if (applied->children.size() >= 64) return error(node, "malformed splat");
      if (is_splat(argument)) applied->aux |= std::uintptr_t{1} << applied->children.size();
      applied->children.push_back(expression(is_splat(argument) ? ast_->child(argument, 0) : argument));
    }
    return base_call(at, "new_from_tuple", {applied, arguments_call(at, {core(at, "tuple")}, arguments)});
  }
  if (type.vars.size() != type_arguments.size())
    return error(node, type_arguments.size() < type.vars.size() ? "too few type parameters specified in \"new{...}\""
                                                                : "too many type parameters specified in \"new{...}\"");
  std::vector<Form*> setup;
  std::vector<Form*> parameters;
  for (const NodeId argument : type_arguments) {
    setup.push_back(temporary(expression(argument)));
    parameters.push_back(setup.back());
  }
  Form* made_type = nullptr;
  if (type.vars.empty()) {
    made_type = constant(at, runtime_.from_type(type.wrapper));
  } else {
    std::vector<Form*> operands{constant(at, runtime_.from_type(type.wrapper))};
    for (Form* parameter : parameters) operands.push_back(use(parameter));
    setup.push_back(temporary(operation(at, ir::Op::apply_type, std::move(operands))));
    made_type = use(setup.back());
  }
  bool splat = false;
  for (const NodeId argument : arguments) {
    const Head head = ast_->head(argument);
    splat |= head == Head::splat;
    if (head == Head::kw || head == Head::parameters) return error(argument, "`new` does not accept keyword arguments");
  }
  if (splat) {
    // The number of fields given is known only at run time.
    Form* values = arguments_call(at, {core(at, "tuple")}, arguments);
    setup.push_back(base_call(at, "new_from_tuple", {made_type, values}));
    return block(at, std::move(setup));
  }
  if (arguments.size() > type.field_names.size()) return error(node, "too many arguments in call to \"new\"");
  if (arguments.size() < type.min_initialized) return error(node, "too few arguments in call to \"new\"");
  std::vector<Form*> operands{made_type};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    Form* value = expression(arguments[i]);
    const Type* declared = type.field_types[i];
    if (declared != runtime_.types.builtin().any) {
      Form* field = field_type_form(at, declared, type.vars, parameters);
      if (field == nullptr) {
        Form* of = type.vars.empty() ? constant(at, runtime_.from_type(type.wrapper)) : use(made_type->target);
        field = base_call(at, "fieldtype", {of, integer(at, static_cast<std::int64_t>(i) + 1)});
      }
      value = base_call(at, "convert", {field, value});
    }
    operands.push_back(value);
  }
  setup.push_back(operation(at, ir::Op::make_struct, std::move(operands)));
  return block(at, std::move(setup));
}

}  // namespace slope::lower
