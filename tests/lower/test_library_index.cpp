// What the index of the standard library finds in the library's syntax.
#include <catch2/catch.hpp>

#include "lang/lower/library_index.hpp"
#include "lang/syntax/parse.hpp"

using slope::LibraryIndex;
using slope::LibraryItem;
using slope::LibraryName;
using slope::LibraryNameKind;

namespace {

class Indexed {
 public:
  explicit Indexed(std::string text) {
    slope::SourceMap sources;
    const slope::syntax::ParseResult parsed = slope::syntax::parse(sources, sources.add("library.slope", text));
    REQUIRE(parsed.ok());
    slope::lower::LibraryIndexBuilder builder;
    builder.add(parsed.ast, 0, "library.slope");
    bytes_ = builder.image();
    index = *LibraryIndex::read(bytes_);
  }

  const LibraryName& operator[](std::string_view name) const {
    const std::uint32_t number = index.find(name);
    INFO(name);
    REQUIRE(number != LibraryIndex::none);
    return index.names()[number];
  }
  std::size_t definitions(std::string_view name) const {
    std::size_t count = 0;
    for (std::uint32_t at = (*this)[name].first; at != LibraryIndex::none; at = index.items()[at].next) ++count;
    return count;
  }

  LibraryIndex index;

 private:
  std::string bytes_;
};

}  // namespace

TEST_CASE("library index: functions", "[lower]") {
  const Indexed library(
      "f(x) = 1\n@inline f(x::Int, y=2) = 3\n\"about g\"\nfunction g(x; k=1) end\nfunction h end\nexport f, "
      "nothing_here");
  CHECK(library["f"].kind == LibraryNameKind::function);
  CHECK(library.definitions("f") == 2);
  CHECK(library["f"].is_exported);
  CHECK_FALSE(library["f"].has_keywords);
  CHECK(library["g"].has_keywords);
  CHECK_FALSE(library["g"].is_exported);
  CHECK(library["h"].kind == LibraryNameKind::function);
  CHECK(library["nothing_here"].kind == LibraryNameKind::exported);
  CHECK(library.index.find("absent") == LibraryIndex::none);
  CHECK(library.index.eager().empty());
}

TEST_CASE("library index: worlds leave room for every method", "[lower]") {
  const Indexed library("f(x, y=1, z=2) = x\ng(x) = x");
  const LibraryItem& f = library.index.items()[library["f"].first];
  const LibraryItem& g = library.index.items()[library["g"].first];
  CHECK(f.methods >= 3);
  CHECK(g.world >= f.world + f.methods);
  CHECK(library.index.worlds() >= g.world + g.methods);
}

TEST_CASE("library index: a type waits with its constructors", "[lower]") {
  const Indexed library(
      "struct P{T} <: Q\n  x::T\nend\nP(x) = P{Int}(x)\nP{T}() where {T} = P{T}(0)\n(p::P)(y) = y\n"
      "abstract type Q end\nconst C = P{Int}\nmodule M\ninside(x) = x\nend\nimport .M: inside, @m");
  CHECK(library["P"].kind == LibraryNameKind::value);
  CHECK(library.definitions("P") == 4);
  CHECK(library["Q"].kind == LibraryNameKind::value);
  CHECK(library["C"].kind == LibraryNameKind::value);
  CHECK(library["M"].kind == LibraryNameKind::value);
  CHECK(library["inside"].kind == LibraryNameKind::value);
  CHECK(library["@m"].kind == LibraryNameKind::value);
}

TEST_CASE("library index: constructors of any type, and of the type of a function", "[lower]") {
  const Indexed library(
      "(::Type{T})(x) where {T<:Number} = x\n(::Type{A})(x) = x\n(::typeof(f))(x, y) = x\nmacro m(x) x end");
  CHECK(library["(::Type{T})"].kind == LibraryNameKind::any_type);
  CHECK(library.definitions("A") == 1);
  CHECK(library.definitions("f") == 1);
  CHECK(library.definitions("@m") == 1);
}

TEST_CASE("library index: what names nothing runs at the start", "[lower]") {
  const Indexed library("Core.g(:a)\nBase.f(x) = 1\nconst C = 1\nC(x) = 2\n(x::T)(y) where {T} = y");
  CHECK(library.index.eager().size() == 4);  // a constant may be any type: its constructors are not its own
  CHECK(library.definitions("C") == 1);
}

TEST_CASE("library index: bytes that are none", "[lower]") {
  CHECK_FALSE(LibraryIndex::read(""));
  CHECK_FALSE(LibraryIndex::read(std::string(64, 'x')));
  slope::lower::LibraryIndexBuilder builder;
  std::string bytes = builder.image();
  CHECK(LibraryIndex::read(bytes));
  bytes.pop_back();
  CHECK_FALSE(LibraryIndex::read(bytes));
}
