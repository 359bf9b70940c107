// An image is a header and then, without gaps, the nodes, the children, the offsets of texts and of names, and the
// characters of both. Everything except the characters is addressed by number. So a reader needs to correct nothing,
// unless the file has another number than when the image was written: then the nodes are copied and changed.
#include "lang/syntax/image.hpp"

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <vector>

namespace slope::syntax {

namespace {

static_assert(std::is_trivially_copyable_v<Node> && sizeof(Node) % 8 == 0 && alignof(Node) <= 8);

struct Header {
  char magic[8] = {'s', 'l', 'o', 'p', 'e', 'a', 's', 't'};
  // What the bytes of nodes depend on.
  std::uint32_t format = 1;
  std::uint32_t heads = static_cast<std::uint32_t>(Head::error);
  std::uint32_t node_size = sizeof(Node);
  std::uint32_t span_offset = offsetof(Node, span);
  std::uint32_t payload_offset = offsetof(Node, integer);
  std::uint32_t byte_order = 0x01020304;

  FileId file = 0;
  NodeId root = no_node;
  std::uint32_t node_count = 0;
  std::uint32_t child_count = 0;
  std::uint32_t text_count = 0;
  std::uint32_t name_count = 0;
  std::uint32_t character_count = 0;
  std::uint32_t padding = 0;
};
static_assert(sizeof(Header) % 8 == 0);
constexpr std::size_t layout_size = offsetof(Header, file);

template <class T>
void append(std::string& out, const std::vector<T>& values) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace

std::string write_image(const Ast& ast, FileId file) {
  std::vector<Node> nodes;
  std::vector<NodeId> children;
  std::vector<std::uint32_t> texts{0}, names{0};
  std::string text_characters, name_characters;
  for (NodeId id = 0; id < ast.node_count(); ++id) {
    Node node = ast.node(id);
    node.span.file = file;
    if (!is_leaf(node.head)) {
      const std::span<const NodeId> own = ast.children(id);
      node.children.first = static_cast<std::uint32_t>(children.size());
      children.insert(children.end(), own.begin(), own.end());
    } else if (node.head == Head::string) {
      text_characters += ast.text_of(id);
      node.text = static_cast<std::uint32_t>(texts.size() - 1);
      texts.push_back(static_cast<std::uint32_t>(text_characters.size()));
    }
    nodes.push_back(node);
  }
  for (NameId id = 0; id < ast.name_count(); ++id) {
    name_characters += ast.name(id);
    names.push_back(static_cast<std::uint32_t>(name_characters.size()));
  }
  for (std::uint32_t& offset : names) offset += static_cast<std::uint32_t>(text_characters.size());

  Header header;
  header.file = file;
  header.root = ast.root;
  header.node_count = static_cast<std::uint32_t>(nodes.size());
  header.child_count = static_cast<std::uint32_t>(children.size());
  header.text_count = static_cast<std::uint32_t>(texts.size() - 1);
  header.name_count = static_cast<std::uint32_t>(names.size() - 1);
  header.character_count = static_cast<std::uint32_t>(text_characters.size() + name_characters.size());

  std::string image(reinterpret_cast<const char*>(&header), sizeof header);
  append(image, nodes);
  append(image, children);
  append(image, texts);
  append(image, names);
  return image + text_characters + name_characters;
}

namespace {

bool read_header(std::string_view image, Header& header) {
  const Header expected;
  if (image.size() < sizeof header || reinterpret_cast<std::uintptr_t>(image.data()) % 8 != 0) return false;
  std::memcpy(&header, image.data(), sizeof header);
  if (std::memcmp(&header, &expected, layout_size) != 0) return false;
  const std::size_t size = sizeof header + std::size_t{header.node_count} * sizeof(Node) +
                           (std::size_t{header.child_count} + header.text_count + header.name_count + 2) * 4 +
                           header.character_count;
  return image.size() == size && header.root < header.node_count;
}

}  // namespace

bool is_image(std::string_view image) {
  Header header;
  return read_header(image, header);
}

std::optional<Ast> read_image(std::string_view image, FileId file) {
  Header header;
  if (!read_header(image, header)) return std::nullopt;

  FixedTree tree;
  tree.node_count = header.node_count;
  tree.child_count = header.child_count;
  tree.text_count = header.text_count;
  tree.name_count = header.name_count;
  tree.root = header.root;
  tree.nodes = reinterpret_cast<const Node*>(image.data() + sizeof header);
  tree.children = reinterpret_cast<const NodeId*>(tree.nodes + tree.node_count);
  tree.text_offsets = tree.children + tree.child_count;
  tree.name_offsets = tree.text_offsets + tree.text_count + 1;
  tree.characters = reinterpret_cast<const char*>(tree.name_offsets + tree.name_count + 1);
  Ast ast(tree);
  if (header.file != file) ast.move_to(file);
  return ast;
}

}  // namespace slope::syntax
