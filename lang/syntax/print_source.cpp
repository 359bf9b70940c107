// Trees as source text, laid out as Julia's `show` of an Expr does: operators with spaces, ranges without, an operand
// in parentheses when its operator binds no tighter than the one around it, blocks over several lines. What is printed
// parses back to a tree of the same meaning: conditionals come out as `if`, whose branches are blocks.
#include <algorithm>
#include <cmath>
#include <utility>

#include "lang/support/thread_stack.hpp"
#include "lang/syntax/operators.hpp"
#include "lang/syntax/print.hpp"
#include "lang/syntax/print_literals.hpp"

namespace slope::syntax {

namespace {

constexpr std::size_t indent_width = 4;

// How tightly what surrounds an expression binds: above every infix operator stand the unary ones, then postfix forms.
constexpr int loose = 0;
constexpr int tight = 1;         // not an assignment, and macro calls with parentheses
constexpr int unary_level = 14;  // below power, above the other infix operators
constexpr int postfix_level = 20;

int level(Precedence precedence) { return static_cast<int>(precedence); }

class SourcePrinter {
 public:
  SourcePrinter(const Ast& ast, const ValueText& value_text) : ast_(ast), value_text_(value_text) {}
  std::string take() { return std::move(out_); }

  // Long because it is a table: one case for each head; what takes more than a few lines has a function of its own.
  void write(NodeId id, std::size_t indent, int around = loose) {
    if (is_below(stack_limit_)) {
      out_ += "…";
      return;
    }
    const Node& node = ast_.node(id);
    switch (node.head) {
      case Head::none:
        return;
      case Head::identifier:
        return write_name(ast_.name_of(id));
      case Head::quote_symbol:
        return write_symbol(out_, ast_.name_of(id));
      case Head::call:
        return write_call(id, indent, around);
      case Head::dot_call:
        return node.flag == 1 ? write_call(id, indent, around) : write_application(id, indent, ".");
      case Head::comparison:
        return enclosed(level(Precedence::comparison) <= around,
                        [&] { list(children(id), " ", indent, level(Precedence::comparison)); });
      case Head::and_and:
        return infix(id, " && ", Precedence::lazy_and, indent, around);
      case Head::or_or:
        return infix(id, " || ", Precedence::lazy_or, indent, around);
      case Head::assign:
        if (head(child(id, 0)) == Head::where) {
          return enclosed(level(Precedence::assignment) <= around, [&] {
            write_signature(child(id, 0), indent);
            out_ += " = ";
            write(child(id, 1), indent + indent_width, level(Precedence::assignment));
          });
        }
        return infix(id, " = ", Precedence::assignment, indent, around);
      case Head::kw:
        return list(children(id), " = ", indent);
      case Head::dot_assign:
        return infix(id, " .= ", Precedence::assignment, indent, around);
      case Head::op_assign:
      case Head::dot_op_assign:
        return enclosed(level(Precedence::assignment) <= around, [&] {
          const std::string dot = node.head == Head::dot_op_assign ? "." : "";
          list(children(id).subspan(1), " " + dot + std::string(ast_.name_of(child(id, 0))) + "= ", indent,
               level(Precedence::assignment));
        });
      case Head::subtype:
      case Head::supertype: {
        const std::string sign(head_name(node.head));
        if (children(id).size() == 2) return infix(id, " " + sign + " ", Precedence::comparison, indent, around);
        out_ += sign;
        return write(child(id, 0), indent, postfix_level);
      }
      case Head::type_assert: {
        const bool named = children(id).size() == 2;
        if (named) write(child(id, 0), indent + indent_width, postfix_level - 1);
        out_ += "::";
        return write(child(id, named ? 1 : 0), indent + indent_width, postfix_level);
      }
      case Head::where:
        return write_where(id, indent, around);
      case Head::arrow:
        return enclosed(around > loose, [&] {
          enclosed(head(child(id, 0)) == Head::splat, [&] { write(child(id, 0), indent + indent_width, tight); });
          out_ += "->";
          write(child(id, 1), indent + indent_width);
        });
      case Head::dot:
        return write_dot(id, indent);
      case Head::adjoint:
        write(child(id, 0), indent, postfix_level);
        out_ += '\'';
        return;
      case Head::address:
        out_ += '&';
        write(child(id, 0), indent, tight);
        return;
      case Head::splat:
        write(child(id, 0), indent, level(Precedence::comparison));
        out_ += "...";
        return;
      case Head::ref:
      case Head::typed_vect_ref:
        return write_bracketed(id, indent, "[", "]");
      case Head::curly:
        return write_bracketed(id, indent, "{", "}");
      case Head::tuple:
        return write_tuple(id, indent);
      case Head::parameters:
        return list(children(id), ", ", indent);
      case Head::vect:
        return between("[", "]", [&] { list(children(id), ", ", indent); });
      case Head::hcat:
      case Head::row:
        return between(node.head == Head::row ? "" : "[", node.head == Head::row ? "" : "]",
                       [&] { list(children(id), " ", indent, level(Precedence::power)); });
      case Head::vcat:
        return between("[", children(id).size() == 1 ? ";]" : "]", [&] { list(children(id), "; ", indent); });
      case Head::typed_hcat:
      case Head::typed_vcat:
        write(child(id, 0), indent, postfix_level);
        return between("[", node.head == Head::typed_vcat && children(id).size() == 2 ? ";]" : "]",
                       [&] { list(children(id).subspan(1), node.head == Head::typed_vcat ? "; " : " ", indent); });
      case Head::ncat:
        return between("[", "]", [&] { write_dimension(children(id), indent); });
      case Head::nrow:
        return write_dimension(children(id), indent);
      case Head::typed_ncat:
        write(child(id, 0), indent, postfix_level);
        return between("[", "]", [&] { write_dimension(children(id).subspan(1), indent); });
      case Head::comprehension:
        return between("[", "]", [&] { write_generator(child(id, 0), indent); });
      case Head::typed_comprehension:
        write(child(id, 0), indent, postfix_level);
        return between("[", "]", [&] { write_generator(child(id, 1), indent); });
      case Head::generator:
      case Head::flatten:
        return between("(", ")", [&] { write_generator(id, indent); });
      case Head::braces:
        return between("{", "}", [&] { list(children(id), ", ", indent); });
      case Head::interpolated:
        return write_interpolated(id, indent);
      case Head::interpolate:
        out_ += '$';
        return enclosed(!is_leaf(head(child(id, 0))), [&] { write(child(id, 0), indent); });
      case Head::quote:
        return write_quote(id, indent);
      case Head::macrocall:
        return write_macrocall(id, indent, around);
      case Head::value:
        if (value_text_) {
          out_ += value_text_(id);
          return;
        }
        return write_literal(out_, ast_, id);
      default:
        if (is_leaf(node.head)) {
          return enclosed(around >= unary_level && is_number(id) && is_signed(id),
                          [&] { write_literal(out_, ast_, id); });
        }
        return enclosed(around >= postfix_level, [&] { write_form(id, indent); });
    }
  }

 private:
  std::span<const NodeId> children(NodeId id) const { return ast_.children(id); }
  NodeId child(NodeId id, std::size_t i) const { return ast_.child(id, i); }
  Head head(NodeId id) const { return ast_.head(id); }

  template <typename Write>
  void between(std::string_view open, std::string_view close, Write write) {
    out_ += open;
    write();
    out_ += close;
  }

  template <typename Write>
  void enclosed(bool parentheses, Write write) {
    between(parentheses ? "(" : "", parentheses ? ")" : "", write);
  }

  void list(std::span<const NodeId> items, std::string_view separator, std::size_t indent, int around = loose) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += separator;
      const bool macro = head(items[i]) == Head::macrocall;  // with parentheses, or it would take what follows
      enclosed(around == loose && head(items[i]) == Head::arrow,
               [&] { write(items[i], indent + indent_width, macro ? std::max(around, tight) : around); });
    }
  }

  void infix(NodeId id, std::string_view separator, Precedence precedence, std::size_t indent, int around) {
    enclosed(level(precedence) <= around, [&] { list(children(id), separator, indent, level(precedence)); });
  }

  // (dimension, parts…) of an array literal.
  void write_dimension(std::span<const NodeId> parts, std::size_t indent) {
    if (parts.empty() || head(parts[0]) != Head::integer) return list(parts, " ", indent);
    const std::string sign(static_cast<std::size_t>(std::clamp<std::int64_t>(ast_.node(parts[0]).integer, 1, 60)), ';');
    list(parts.subspan(1), sign + " ", indent);
    if (parts.size() <= 2) out_ += sign;
  }

  void newline(std::size_t indent) { out_ += "\n" + std::string(indent, ' '); }

  // A name that is neither word nor operator is written var"…".
  void write_name(std::string_view name) {
    std::string symbol;
    write_symbol(symbol, name);
    const bool odd = symbol.starts_with("Symbol(") && !name.starts_with('@');
    if (odd) out_ += "var";
    if (odd) return write_raw(name);
    out_ += name;
  }

  const OperatorInfo* operator_of(NodeId id) const {
    if (head(id) != Head::identifier) return nullptr;
    const auto found = find_operator(ast_.name_of(id));
    return found ? &operator_info(*found) : nullptr;
  }

  bool is_number(NodeId id) const {
    return head(id) == Head::integer || head(id) == Head::floating || head(id) == Head::float32;
  }

  // -1 and -x
  bool is_signed(NodeId id) const {
    const Node& node = ast_.node(id);
    if (node.head == Head::integer) return node.flag == 0 && node.integer < 0;
    if (node.head == Head::floating || node.head == Head::float32) return std::signbit(node.floating);
    const bool call = node.head == Head::call || (node.head == Head::dot_call && node.flag == 1);
    if (!call || children(id).size() != 2) return false;
    const OperatorInfo* op = operator_of(child(id, 0));
    return op != nullptr && op->unary;
  }

  // call and dotted operators: infix, prefix, or f(x)
  void write_call(NodeId id, std::size_t indent, int around) {
    const std::span<const NodeId> parts = children(id);
    const std::span<const NodeId> arguments = parts.subspan(1);
    const bool dotted = head(id) == Head::dot_call;
    const OperatorInfo* op = operator_of(parts[0]);
    const bool plain = std::none_of(arguments.begin(), arguments.end(), [&](NodeId argument) {
      return head(argument) == Head::splat || head(argument) == Head::parameters || head(argument) == Head::kw;
    });
    if (op == nullptr || !plain) {
      if (op != nullptr) return write_operator_function(id, indent, dotted);
      return write_application(id, indent, "");
    }
    const std::string sign = (dotted ? "." : "") + std::string(ast_.name_of(parts[0]));
    const bool juxtaposed = sign == "*" && arguments.size() == 2 && is_number(arguments[0]) &&
                            head(arguments[1]) == Head::identifier &&
                            !reads_as_number(arguments[0], ast_.name_of(arguments[1]));
    const bool many = arguments.size() > 2 && (sign == "+" || sign == "*" || (sign == ":" && arguments.size() == 3));
    if (op->binary && op->precedence != Precedence::none && (arguments.size() == 2 || many)) {
      const int own = level(op->precedence);
      const std::string separator = juxtaposed ? "" : sign == ":" ? ":" : " " + sign + " ";
      if (op->precedence == Precedence::power) {
        // the exponent may carry a sign without parentheses, the base not
        return enclosed(own <= around, [&] {
          write(arguments[0], indent + indent_width, own);
          out_ += separator;
          write(arguments[1], indent + indent_width, is_signed(arguments[1]) ? unary_level - 1 : own);
        });
      }
      return enclosed(own <= around, [&] { list(arguments, separator, indent, own); });
    }
    if (op->unary && arguments.size() == 1) {
      return enclosed(around >= unary_level, [&] {
        out_ += sign;
        const Head operand = head(arguments[0]);
        const bool bare = is_leaf(operand) && !(is_number(arguments[0]) && (sign == "-" || sign == "+"));
        enclosed(!bare, [&] { write(arguments[0], indent + indent_width); });
      });
    }
    write_operator_function(id, indent, dotted);
  }

  void write_operator_function(NodeId id, std::size_t indent, bool dotted) {
    const std::string sign = (dotted ? "." : "") + std::string(ast_.name_of(child(id, 0)));
    const OperatorInfo* op = operator_of(child(id, 0));
    const bool word = sign == "in" || sign == "isa";
    enclosed(!word && !(op->unary && children(id).size() > 2 && !dotted), [&] { out_ += sign; });
    write_arguments(children(id).subspan(1), indent);
  }

  // +(a, b)::T where T, never infix
  void write_signature(NodeId id, std::size_t indent) {
    if (head(id) == Head::type_assert && children(id).size() == 2) {
      write_signature(child(id, 0), indent);
      out_ += "::";
      return write(child(id, 1), indent + indent_width, postfix_level);
    }
    if (head(id) == Head::where) {
      write_signature(child(id, 0), indent);
      return write_where_variables(id, indent);
    }
    if (head(id) == Head::call && operator_of(child(id, 0)) != nullptr) {
      out_ += ast_.name_of(child(id, 0));
      return write_arguments(children(id).subspan(1), indent);
    }
    enclosed(head(id) == Head::splat, [&] { write(id, indent); });
  }

  void write_application(NodeId id, std::size_t indent, std::string_view dot) {
    write_callee(child(id, 0), indent);
    out_ += dot;
    write_arguments(children(id).subspan(1), indent);
  }

  void write_callee(NodeId callee, std::size_t indent) {
    const Head kind = head(callee);
    const bool bare = (is_leaf(kind) && operator_of(callee) == nullptr) || kind == Head::dot || kind == Head::curly ||
                      kind == Head::interpolate;
    enclosed(!bare, [&] { write(callee, indent); });
  }

  // Positional arguments, then after `;` the named ones, which the tree keeps in front.
  void write_arguments(std::span<const NodeId> arguments, std::size_t indent) {
    const bool named = !arguments.empty() && head(arguments[0]) == Head::parameters;
    out_ += '(';
    list(named ? arguments.subspan(1) : arguments, ", ", indent);
    if (named) {
      out_ += "; ";
      list(children(arguments[0]), ", ", indent);
    }
    out_ += ')';
  }

  void write_tuple(NodeId id, std::size_t indent) {
    const std::span<const NodeId> parts = children(id);
    if (!parts.empty() && head(parts[0]) == Head::parameters) return write_arguments(parts, indent);
    out_ += '(';
    list(parts, ", ", indent);
    out_ += parts.size() == 1 ? ",)" : ")";
  }

  void write_bracketed(NodeId id, std::size_t indent, std::string_view open, std::string_view close) {
    write_callee(child(id, 0), indent);
    const bool outer = std::exchange(in_index_, open == "[" || in_index_);
    between(open, close, [&] { write_rest(id, indent); });
    in_index_ = outer;
  }

  void write_rest(NodeId id, std::size_t indent) {
    const std::span<const NodeId> rest = children(id).subspan(1);
    if (!rest.empty() && head(rest[0]) == Head::parameters) {
      list(rest.subspan(1), ", ", indent);
      out_ += "; ";
      return list(children(rest[0]), ", ", indent);
    }
    list(rest, ", ", indent);
  }

  void write_where(NodeId id, std::size_t indent, int around) {
    enclosed(around >= unary_level, [&] {
      write(child(id, 0), indent, unary_level - 1);
      write_where_variables(id, indent);
    });
  }

  void write_where_variables(NodeId id, std::size_t indent) {
    out_ += " where ";
    const std::span<const NodeId> variables = children(id).subspan(1);
    const bool single = variables.size() == 1;
    between(single ? "" : "{", single ? "" : "}", [&] { list(variables, ", ", indent); });
  }

  void write_dot(NodeId id, std::size_t indent) {
    if (children(id).size() == 1) {
      out_ += "(." + std::string(ast_.name_of(child(id, 0))) + ")";
      return;
    }
    write_callee(child(id, 0), indent);
    out_ += '.';
    const NodeId field = child(id, 1);
    if (head(field) == Head::quote) return write(child(field, 0), indent, postfix_level);
    const std::string_view name = ast_.name_of(field);
    std::string symbol;
    write_symbol(symbol, name);
    const bool is_sign = find_operator(name).has_value() && name != "in" && name != "isa";
    if (is_sign || symbol.starts_with(":(")) {
      out_ += symbol;
    } else {
      out_ += name;
    }
  }

  // A generator without its parentheses: x for i = a, j = b if c for …
  void write_generator(NodeId id, std::size_t indent) {
    const NodeId generator = head(id) == Head::flatten ? child(id, 0) : id;
    const NodeId element = child(generator, 0);
    if (head(id) == Head::flatten && (head(element) == Head::generator || head(element) == Head::flatten)) {
      write_generator(element, indent);
      // the inner loops are written first in the tree, last in the text
      std::string inner_loops = std::exchange(pending_loops_, "");
      std::string text;
      std::swap(text, out_);
      write_loops(generator, indent);
      std::string loops = std::exchange(out_, text);
      out_.resize(out_.size() - inner_loops.size());
      pending_loops_ = loops + inner_loops;
      out_ += pending_loops_;
      return;
    }
    write(element, indent);
    const std::size_t mark = out_.size();
    write_loops(generator, indent);
    pending_loops_ = out_.substr(mark);
  }

  void write_loops(NodeId generator, std::size_t indent) {
    std::span<const NodeId> loops = children(generator).subspan(1);
    NodeId condition = no_node;
    if (loops.size() == 1 && head(loops[0]) == Head::filter) {
      condition = child(loops[0], 0);
      loops = children(loops[0]).subspan(1);
    }
    out_ += " for ";
    list(loops, ", ", indent);
    if (condition != no_node) {
      out_ += " if ";
      write(condition, indent);
    }
  }

  void write_interpolated(NodeId id, std::size_t indent) {
    out_ += '"';
    const std::span<const NodeId> parts = children(id);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const NodeId part = parts[i];
      // A string that was interpolated: written as text it would melt into what is around it.
      const bool inserted = parts.size() == 1 || (i > 0 && head(parts[i - 1]) == Head::string);
      if (head(part) == Head::string && !inserted) {
        write_escaped(out_, ast_.text_of(part), '"');
      } else {
        between("$(", ")", [&] { write(part, indent); });
      }
    }
    out_ += '"';
  }

  void write_quote(NodeId id, std::size_t indent) {
    const NodeId quoted = child(id, 0);
    if (head(quoted) == Head::block && ast_.node(id).flag == 0) {
      out_ += "quote";
      write_body(quoted, indent);
      return close(indent);
    }
    between(":(", ")", [&] { write(quoted, indent); });
  }

  void write_macrocall(NodeId id, std::size_t indent, int around) {
    const std::span<const NodeId> parts = children(id);
    if (head(parts[0]) == Head::identifier && parts.size() >= 2 && head(parts[1]) == Head::string) {
      std::string_view name = ast_.name_of(parts[0]);
      if (name.ends_with("_str")) {
        name.remove_prefix(1);
        name.remove_suffix(4);
        out_ += name;
        write_raw(ast_.text_of(parts[1]));
        if (parts.size() > 2 && head(parts[2]) == Head::string) out_ += ast_.text_of(parts[2]);
        return;
      }
    }
    if (head(parts[0]) == Head::dot) {
      write(child(parts[0], 0), indent, postfix_level);
      out_ += "." + std::string(ast_.name_of(child(parts[0], 1)));
    } else {
      write(parts[0], indent);
    }
    const bool named = parts.size() > 1 && head(parts[1]) == Head::parameters;
    if (around > loose || named) return write_arguments(parts.subspan(1), indent);
    for (const NodeId argument : parts.subspan(1)) {
      out_ += ' ';
      write(argument, indent);
    }
  }

  // In a raw string a backslash is doubled only before a quote.
  void write_raw(std::string_view text) {
    out_ += '"';
    std::size_t backslashes = 0;
    for (const char c : text) {
      if (c == '"') out_.append(backslashes + 1, '\\');
      backslashes = c == '\\' ? backslashes + 1 : 0;
      out_ += c;
    }
    out_.append(backslashes, '\\');
    out_ += '"';
  }

  // Statements of a block, each on its line, one step further in.
  void write_body(NodeId block, std::size_t indent) {
    if (block == no_node) return;
    if (head(block) != Head::block) {
      newline(indent + indent_width);
      return write(block, indent + indent_width);
    }
    for (const NodeId statement : children(block)) {
      newline(indent + indent_width);
      write(statement, indent + indent_width);
    }
  }

  void close(std::size_t indent) {
    newline(indent);
    out_ += "end";
  }

  // One item by itself, several in a block: the bindings of let, the loops of for.
  void write_items(NodeId items, std::size_t indent) {
    if (head(items) == Head::block) return list(children(items), ", ", indent);
    write(items, indent + indent_width);
  }

  void write_if(NodeId id, std::size_t indent) {
    NodeId condition = child(id, 0);
    const bool is_elseif = ast_.node(id).flag == 1;
    if (is_elseif && head(condition) == Head::block && children(condition).size() == 1) condition = child(condition, 0);
    out_ += is_elseif ? "elseif " : "if ";
    write(condition, indent);
    write_body(child(id, 1), indent);
    if (children(id).size() > 2) {
      const NodeId other = child(id, 2);
      newline(indent);
      if (head(other) == Head::if_ && ast_.node(other).flag == 1) return write_if(other, indent);
      out_ += "else";
      write_body(other, indent);
    }
    close(indent);
  }

  void write_try(NodeId id, std::size_t indent) {
    const std::span<const NodeId> parts = children(id);
    const auto part = [&](std::size_t i) { return i < parts.size() ? parts[i] : no_node; };
    out_ += "try";
    write_body(parts[0], indent);
    const auto clause = [&](std::string_view keyword, NodeId body) {
      if (body == no_node) return;
      newline(indent);
      out_ += keyword;
      write_body(body, indent);
    };
    if (part(2) != no_node) {
      newline(indent);
      out_ += "catch";
      if (part(1) != no_node) {
        out_ += ' ';
        write(part(1), indent);
      }
      write_body(part(2), indent);
    }
    clause("else", part(4));
    clause("finally", part(3));
    close(indent);
  }

  // Would `2` and `e1` side by side be one number?
  bool reads_as_number(NodeId number, std::string_view name) const {
    if (name.empty()) return false;
    const bool zero = head(number) == Head::integer && ast_.node(number).integer == 0;
    return name[0] == 'e' || name[0] == 'E' || name[0] == 'f' ||
           (zero && (name[0] == 'x' || name[0] == 'b' || name[0] == 'o'));
  }

  void write_path(NodeId path) {
    bool after_name = false;
    const bool renamed = ast_.node(path).flag == 1;
    for (const NodeId part : children(path)) {
      if (renamed && part == children(path).back()) out_ += " as ", after_name = false;
      const std::string_view name = ast_.name_of(part);
      if (name == "." && !after_name) {
        out_ += '.';
        continue;
      }
      if (after_name) out_ += '.';
      out_ += name;
      after_name = true;
    }
  }

  void write_paths(NodeId id) {
    out_ += head_name(head(id));
    const NodeId first = child(id, 0);
    const bool selects = head(first) == Head::import_list;
    const std::span<const NodeId> paths = selects ? children(first) : children(id);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      out_ += i == 0 ? " " : selects && i == 1 ? ": " : ", ";
      write_path(paths[i]);
    }
  }

  void write_form(NodeId id, std::size_t indent) {
    const Head kind = head(id);
    const std::uint8_t flag = ast_.node(id).flag;
    const auto words = [&](std::string_view keyword) {
      out_ += keyword;
      if (!children(id).empty()) out_ += ' ';
      list(children(id), ", ", indent);
    };
    switch (kind) {
      case Head::block:
        if (in_index_) {  // where `begin` and `end` are values
          return between("(", children(id).size() > 1 ? ")" : ";)", [&] { list(children(id), "; ", indent); });
        }
        out_ += "begin";
        write_body(id, indent);
        return close(indent);
      case Head::if_:
        return write_if(id, indent);
      case Head::while_:
      case Head::for_:
      case Head::let_:
        out_ += head_name(kind);
        if (kind != Head::let_ || head(child(id, 0)) != Head::block || !children(child(id, 0)).empty()) out_ += ' ';
        write_items(child(id, 0), indent);
        write_body(child(id, 1), indent);
        return close(indent);
      case Head::break_:
      case Head::continue_:
        out_ += head_name(kind);
        return;
      case Head::return_:
        out_ += "return";
        if (head(child(id, 0)) != Head::nothing) {
          out_ += ' ';
          write(child(id, 0), indent);
        }
        return;
      case Head::try_:
        return write_try(id, indent);
      case Head::function:
      case Head::macro_:
        out_ += head_name(kind);
        out_ += ' ';
        write_signature(child(id, 0), indent);
        if (children(id).size() == 1) {
          out_ += " end";
          return;
        }
        write_body(child(id, 1), indent);
        return close(indent);
      case Head::do_: {
        const NodeId function = child(id, 1);
        write(child(id, 0), indent, tight);
        out_ += " do";
        if (!children(child(function, 0)).empty()) out_ += ' ';
        list(children(child(function, 0)), ", ", indent);
        write_body(child(function, 1), indent);
        return close(indent);
      }
      case Head::struct_:
        out_ += flag == 1 ? "mutable struct " : "struct ";
        write(child(id, 0), indent);
        write_body(child(id, 1), indent);
        return close(indent);
      case Head::abstract_:
      case Head::primitive_:
        out_ += kind == Head::abstract_ ? "abstract type " : "primitive type ";
        list(children(id), " ", indent);
        out_ += " end";
        return;
      case Head::module_:
        out_ += flag == 1 ? "baremodule " : "module ";
        write(child(id, 0), indent);
        for (const NodeId statement : children(child(id, 1))) {
          newline(indent);
          write(statement, indent);
        }
        return close(indent);
      case Head::const_:
      case Head::global_:
      case Head::local_:
      case Head::export_:
        return words(head_name(kind));
      case Head::using_:
      case Head::import_:
        return write_paths(id);
      case Head::toplevel:
        for (std::size_t i = 0; i < children(id).size(); ++i) {
          if (i > 0) newline(indent);
          write(child(id, i), indent);
        }
        return;
      case Head::error:
        out_ += "#= error =#";
        return;
      default:
        out_ += head_name(kind);
        return write_arguments(children(id), indent);
    }
  }

  const Ast& ast_;
  const ValueText& value_text_;
  std::string out_;
  const char* stack_limit_ = recursion_limit(2);
  bool in_index_ = false;
  std::string pending_loops_;  // of the generator written last
};

}  // namespace

std::string to_source(const Ast& ast, NodeId node) { return to_source(ast, node, ValueText{}); }

std::string to_source(const Ast& ast, NodeId node, const ValueText& value_text) {
  SourcePrinter printer(ast, value_text);
  printer.write(node, 0);
  return printer.take();
}

}  // namespace slope::syntax
