#include "lang/syntax/ast.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace slope::syntax {

namespace {
constexpr std::string_view generated = "@generated";
}

bool is_leaf(Head head) { return head <= Head::value; }

// Long because it is the table of names: one case for each head, and the compiler reports a head that has none.
std::string_view head_name(Head head) {
  switch (head) {
    case Head::none:
      return "none";
    case Head::identifier:
      return "identifier";
    case Head::integer:
      return "integer";
    case Head::floating:
      return "floating";
    case Head::float32:
      return "float32";
    case Head::character:
      return "character";
    case Head::boolean:
      return "boolean";
    case Head::nothing:
      return "nothing";
    case Head::value:
      return "value";
    case Head::string:
    case Head::interpolated:
      return "string";
    case Head::quote_symbol:
    case Head::quote:
      return "quote";
    case Head::call:
    case Head::dot_call:
      return "call";
    case Head::macrocall:
      return "macrocall";
    case Head::parameters:
      return "parameters";
    case Head::kw:
      return "kw";
    case Head::splat:
      return "...";
    case Head::comparison:
      return "comparison";
    case Head::and_and:
      return "&&";
    case Head::or_or:
      return "||";
    case Head::ref:
    case Head::typed_vect_ref:
      return "ref";
    case Head::dot:
    case Head::dot_path:
      return ".";
    case Head::adjoint:
      return "'";
    case Head::address:
      return "&";
    case Head::type_assert:
      return "::";
    case Head::subtype:
      return "<:";
    case Head::supertype:
      return ">:";
    case Head::curly:
      return "curly";
    case Head::where:
      return "where";
    case Head::pair_colon:
    case Head::import_list:
      return ":";
    case Head::assign:
      return "=";
    case Head::dot_assign:
      return ".=";
    case Head::op_assign:
      return "op=";
    case Head::dot_op_assign:
      return ".op=";
    case Head::tuple:
      return "tuple";
    case Head::vect:
      return "vect";
    case Head::hcat:
      return "hcat";
    case Head::vcat:
      return "vcat";
    case Head::row:
      return "row";
    case Head::ncat:
      return "ncat";
    case Head::nrow:
      return "nrow";
    case Head::typed_ncat:
      return "typed_ncat";
    case Head::typed_hcat:
      return "typed_hcat";
    case Head::typed_vcat:
      return "typed_vcat";
    case Head::generator:
      return "generator";
    case Head::filter:
      return "filter";
    case Head::flatten:
      return "flatten";
    case Head::comprehension:
      return "comprehension";
    case Head::typed_comprehension:
      return "typed_comprehension";
    case Head::braces:
      return "braces";
    case Head::block:
      return "block";
    case Head::if_:
      return "if";
    case Head::while_:
      return "while";
    case Head::for_:
      return "for";
    case Head::break_:
      return "break";
    case Head::continue_:
      return "continue";
    case Head::return_:
      return "return";
    case Head::let_:
      return "let";
    case Head::try_:
      return "try";
    case Head::function:
      return "function";
    case Head::arrow:
      return "->";
    case Head::do_:
      return "do";
    case Head::struct_:
      return "struct";
    case Head::abstract_:
      return "abstract";
    case Head::primitive_:
      return "primitive";
    case Head::macro_:
      return "macro";
    case Head::module_:
      return "module";
    case Head::const_:
      return "const";
    case Head::global_:
      return "global";
    case Head::local_:
      return "local";
    case Head::using_:
      return "using";
    case Head::import_:
      return "import";
    case Head::export_:
      return "export";
    case Head::interpolate:
      return "$";
    case Head::toplevel:
      return "toplevel";
    case Head::error:
      return "error";
  }
  return "unknown";
}

Ast::Ast() { nodes_.emplace_back(); }

Ast::Ast(const FixedTree& fixed) : root(fixed.root), fixed_(fixed) {
  for (NameId id = 0; id < fixed_.name_count && !mentions_generated_; ++id) mentions_generated_ = name(id) == generated;
}

std::size_t Ast::bytes() const {
  constexpr std::size_t name_bytes = 96;  // the spelling, and its place in the table
  constexpr std::size_t empty_deque = 576;
  return sizeof(Ast) + empty_deque + nodes_.capacity() * sizeof(Node) + children_.capacity() * sizeof(NodeId) +
         names_.size() * name_bytes + texts_.capacity() * sizeof(std::string) + text_bytes_;
}

NodeId Ast::leaf(Head head, Span span) {
  const auto id = node_count();
  Node& made = nodes_.emplace_back();
  made.head = head;
  made.span = span;
  return id;
}

NodeId Ast::identifier(std::string_view spelling, Span span) {
  const NameId name = intern(spelling);
  const NodeId id = leaf(Head::identifier, span);
  made(id).name = name;
  return id;
}

NodeId Ast::make(Head head, Span span, std::span<const NodeId> children, std::uint8_t flag) {
  const std::size_t first = children_.size();
  std::uint32_t height = 0;
  // The children given may lie in children_ itself, so room is made before they are read.
  const bool inside =
      !children.empty() && children.data() >= children_.data() && children.data() < children_.data() + children_.size();
  const std::size_t offset = inside ? static_cast<std::size_t>(children.data() - children_.data()) : 0;
  children_.resize(first + children.size());
  const NodeId* from = inside ? children_.data() + offset : children.data();
  for (std::size_t i = 0; i < children.size(); ++i) {
    children_[first + i] = from[i];
    height = std::max<std::uint32_t>(height, node(from[i]).height);
  }
  const auto id = node_count();
  Node& made = nodes_.emplace_back();
  made.head = head;
  made.flag = flag;
  made.span = span;
  made.height =
      static_cast<std::uint16_t>(std::min<std::uint32_t>(height + 1, std::numeric_limits<std::uint16_t>::max()));
  made.children.first = fixed_.child_count + static_cast<std::uint32_t>(first);
  made.children.count = static_cast<std::uint32_t>(children.size());
  return id;
}

NodeId Ast::string_leaf(std::string text, Span span) {
  const auto index = fixed_.text_count + static_cast<std::uint32_t>(texts_.size());
  text_bytes_ += text.size();
  texts_.push_back(std::move(text));
  const NodeId id = leaf(Head::string, span);
  made(id).text = index;
  return id;
}

std::span<const NodeId> Ast::children(NodeId id) const {
  const Node& parent = node(id);
  if (is_leaf(parent.head)) return {};
  const std::uint32_t first = parent.children.first;
  const NodeId* from =
      first < fixed_.child_count ? fixed_.children + first : children_.data() + (first - fixed_.child_count);
  return {from, parent.children.count};
}

void Ast::give_back_room() {
  nodes_.shrink_to_fit();
  children_.shrink_to_fit();
  texts_.shrink_to_fit();
}

void Ast::move_to(FileId file) {
  nodes_.insert(nodes_.begin(), fixed_.nodes, fixed_.nodes + fixed_.node_count);
  fixed_.node_count = 0;
  for (Node& node : nodes_) node.span.file = file;
}

NameId Ast::intern(std::string_view spelling) {
  if (name_ids_.empty())
    for (NameId id = 0; id < fixed_.name_count; ++id) name_ids_.emplace(name(id), id);
  const auto found = name_ids_.find(spelling);
  if (found != name_ids_.end()) return found->second;
  const auto id = name_count();
  names_.emplace_back(spelling);
  if (spelling == generated) mentions_generated_ = true;
  name_ids_.emplace(names_.back(), id);
  return id;
}

}  // namespace slope::syntax
