// A tree read from an image is the tree that was parsed, and can be appended to like any other.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "lang/syntax/image.hpp"
#include "lang/syntax/parse.hpp"
#include "lang/syntax/print.hpp"
#include "tests/golden.hpp"

using namespace slope;
using namespace slope::syntax;

namespace {

struct Image {
  std::vector<std::uint64_t> memory;  // aligned
  std::size_t size;
  explicit Image(const std::string& bytes) : memory(bytes.size() / 8 + 1), size(bytes.size()) {
    std::memcpy(memory.data(), bytes.data(), size);
  }
  std::string_view view() const { return {reinterpret_cast<const char*>(memory.data()), size}; }
};

constexpr const char* example =
    "f(x; y=1) = \"a $x\" * :sym\nstruct P{T} <: Q\n  a::T\nend\nx -> 'c' + 1.5f0 - 0x1f\n@m a b\n[i^2 for i in 1:3]\n";

}  // namespace

TEST_CASE("an image gives back the tree") {
  SourceMap sources;
  std::vector<std::string> texts = {"", "1", example};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SLOPE_SOURCE_DIR "/stdlib"))
    if (entry.path().extension() == ".slope") texts.push_back(slope::test::read_file(entry.path()));
  REQUIRE(texts.size() > 10);
  for (const std::string& text : texts) {
    const FileId file = sources.add("text", text);
    const ParseResult parsed = parse(sources, file);
    REQUIRE(parsed.ok());
    const Image image(write_image(parsed.ast, file));
    for (const FileId in : {file, file + 7}) {
      const std::optional<Ast> read = read_image(image.view(), in);
      REQUIRE(read.has_value());
      CHECK(to_sexpr(*read, read->root) == to_sexpr(parsed.ast, parsed.ast.root));
      REQUIRE(read->node_count() == parsed.ast.node_count());
      bool same_spans = true;
      for (NodeId id = 1; id < read->node_count(); ++id) {
        const Span a = read->node(id).span, b = parsed.ast.node(id).span;
        same_spans = same_spans && a.file == in && a.begin == b.begin && a.end == b.end;
      }
      CHECK(same_spans);
    }
  }
}

TEST_CASE("a tree from an image grows") {
  SourceMap sources;
  const FileId file = sources.add("text", example);
  const Image image(write_image(parse(sources, file).ast, file));
  for (const FileId in : {file, file + 1}) {
    Ast ast = *read_image(image.view(), in);
    const std::string before = to_sexpr(ast, ast.root);
    const std::uint32_t names = ast.name_count();
    CHECK(ast.name(ast.intern("f")) == "f");
    CHECK(ast.name_count() == names);
    const std::vector<NodeId> parts = {ast.identifier("f", {}), ast.identifier("quite_new", {}),
                                       ast.string_leaf("text", {}), ast.child(ast.root, 0)};
    CHECK(ast.name_count() == names + 1);
    const NodeId call = ast.make(Head::call, {}, parts);
    const NodeId copy = ast.make(Head::block, {}, ast.children(call));
    REQUIRE(ast.child_count(copy) == 4);
    CHECK(ast.name_of(ast.child(copy, 0)) == "f");
    CHECK(ast.name_of(ast.child(copy, 1)) == "quite_new");
    CHECK(ast.text_of(ast.child(copy, 2)) == "text");
    CHECK(ast.child(copy, 3) == ast.child(ast.root, 0));
    CHECK(to_sexpr(ast, ast.root) == before);
  }
}

TEST_CASE("what is not an image of this layout is not read") {
  SourceMap sources;
  const FileId file = sources.add("text", example);
  const std::string good = write_image(parse(sources, file).ast, file);
  CHECK_FALSE(read_image({}, file));
  CHECK_FALSE(read_image(Image(good.substr(0, good.size() - 1)).view(), file));
  CHECK_FALSE(read_image(Image(good + "x").view(), file));
  for (std::size_t i = 0; i < 32; ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] + 1);
    CHECK_FALSE(read_image(Image(bad).view(), file));
  }
}
