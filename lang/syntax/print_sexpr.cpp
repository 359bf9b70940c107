// S-expressions in the form of Julia's `Meta.show_sexpr`, without LineNumberNodes.
#include "lang/syntax/print.hpp"
#include "lang/syntax/print_literals.hpp"

namespace slope::syntax {

namespace {

class SexprPrinter {
 public:
  explicit SexprPrinter(const Ast& ast) : ast_(ast) {}

  void write(NodeId id, std::size_t indent) {
    const Node& node = ast_.node(id);
    switch (node.head) {
      case Head::none:
        out_ += "false";  // only `try` has absent parts, and Julia writes them so
        return;
      case Head::identifier:
        write_symbol(out_, ast_.name_of(id));
        return;
      case Head::quote_symbol:
        open_quote_node(indent);
        write_symbol(out_, ast_.name_of(id));
        close_quote_node(indent);
        return;
      case Head::quote:
        if (node.flag == 1 || is_leaf(ast_.head(ast_.child(id, 0)))) {
          const NodeId quoted = ast_.child(id, 0);
          // `:true` quotes what is not syntax
          if (ast_.head(quoted) == Head::boolean || ast_.head(quoted) == Head::quote_symbol) break;
          open_quote_node(indent);
          write(quoted, indent + 2);
          close_quote_node(indent);
          return;
        }
        break;
      default:
        if (is_leaf(node.head)) {
          write_literal(out_, ast_, id);
          return;
        }
        break;
    }
    write_inner(id, indent);
  }

  std::string take() { return std::move(out_); }

 private:
  void open_quote_node(std::size_t indent) { out_ += "(:quote, #QuoteNode\n" + std::string(indent + 2, ' '); }
  void close_quote_node(std::size_t indent) { out_ += "\n" + std::string(indent, ' ') + ")"; }

  void separate(bool block, std::size_t indent) { out_ += block ? ",\n" + std::string(indent + 2, ' ') : ", "; }

  void open(std::string_view head) {
    out_ += '(';
    write_symbol(out_, head);
  }

  void write_inner(NodeId id, std::size_t indent) {
    const Node& node = ast_.node(id);
    const Head head = node.head;
    std::size_t first = 0;
    std::size_t written = 0;
    switch (head) {
      case Head::op_assign:
      case Head::dot_op_assign:
        open((head == Head::op_assign ? "" : ".") + std::string(ast_.name_of(ast_.child(id, 0))) + "=");
        first = 1;
        break;
      case Head::dot_call:
        return write_dot_call(id, indent);
      case Head::if_:
        open(node.flag == 1 ? "elseif" : "if");
        break;
      case Head::struct_:
        open("struct");
        out_ += node.flag == 1 ? ", true" : ", false";
        break;
      case Head::module_:
        open("module");
        out_ += node.flag == 1 ? ", false" : ", true";
        break;
      default:
        open(head_name(head));
        break;
    }
    const bool block = head == Head::block;
    for (std::size_t i = first; i < ast_.child_count(id); ++i, ++written) {
      separate(block, indent);
      write(ast_.child(id, i), indent + 2);
    }
    if (written == 0 && head != Head::struct_ && head != Head::module_) {
      out_ += ",)";
    } else {
      out_ += block ? "\n" + std::string(indent, ' ') + ")" : ")";
    }
  }

  // f.(x) is (., f, (tuple, x)); a .+ b is (call, .+, a, b)
  void write_dot_call(NodeId id, std::size_t indent) {
    const std::span<const NodeId> parts = ast_.children(id);
    if (ast_.node(id).flag == 1) {
      const std::string name = "." + std::string(ast_.name_of(parts[0]));
      const bool lazy = name == ".&&" || name == ".||";
      open(lazy ? name : "call");
      if (!lazy) {
        separate(false, indent);
        write_symbol(out_, name);
      }
      for (const NodeId argument : parts.subspan(1)) {
        separate(false, indent);
        write(argument, indent + 2);
      }
      out_ += ')';
      return;
    }
    open(".");
    separate(false, indent);
    write(parts[0], indent + 2);
    separate(false, indent);
    open("tuple");
    for (const NodeId argument : parts.subspan(1)) {
      separate(false, indent);
      write(argument, indent + 4);
    }
    out_ += parts.size() == 1 ? ",))" : "))";
  }

  const Ast& ast_;
  std::string out_;
};

}  // namespace

std::string to_sexpr(const Ast& ast, NodeId node) {
  SexprPrinter printer(ast);
  printer.write(node, 0);
  return printer.take();
}

}  // namespace slope::syntax
