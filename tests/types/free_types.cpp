// Types that nobody can reach any more.
#include <catch2/catch.hpp>
#include <unordered_set>

#include "lang/types/type_memory.hpp"
#include "tests/types/type_reader.hpp"

using namespace slope;
using slope::testing::TypeFixture;

namespace {

void free_only(TypeTable& types, std::unordered_set<const void*> dead) {
  types.free_types([&](const Type* t) { return dead.contains(t); },
                   [&](const TypeName* name) { return dead.contains(name); });
}

}  // namespace

TEST_CASE_METHOD(TypeFixture, "what a type that stays refers to stays", "[type]") {
  const DataType* element = types.function_type(symbol("f"), nullptr);
  const DataType* vector = types.array_of(element, 1);
  const DataType* pair = types.tuple(std::vector<const Type*>{vector, b.int64});
  free_only(types, {element, element->name, vector});
  CHECK(pair->params[0] == vector);
  CHECK(types.array_of(element, 1) == vector);
  CHECK(element->name->primary == element);
  CHECK(to_string(pair) == "Tuple{Vector{typeof(f)}, Int64}");
}

TEST_CASE_METHOD(TypeFixture, "freed types are out of the tables, and others are found as before", "[type]") {
  std::unordered_set<const void*> dead, seen;
  const std::size_t names = types.names().size();
  const std::uint32_t newest = types.newest_id();
  const Type* kept = read("Vector{Union{Nothing, Array{K, V} where {K<:Real, V}}}");
  for (int round = 0; round < 300; ++round) {
    const DataType* f = types.function_type(symbol("f"), nullptr);
    const Type* pair = types.tuple(std::vector<const Type*>{f, b.int64, b.any});
    const Type* either = types.union_of(std::vector<const Type*>{f, b.nothing});
    const TypeVar* var = types.var(symbol("T"), nullptr, f);
    const Type* any_below = types.union_all(var, types.array_of(var, 1));
    const DataType* body = as_data(as_union_all(any_below)->body);
    std::unordered_set<const void*> made = {f, f->name, pair, either, var, any_below};
    for (const DataType* above = body; above->has_free_vars; above = above->super) made.insert(above);
    for (const void* one : made) CHECK(seen.insert(one).second);  // no address again
    free_only(types, made);
  }
  CHECK(types.names().size() == names);
  CHECK(types.types_after(newest).size() < 30);
  CHECK(read("Vector{Union{Nothing, Array{K, V} where {K<:Real, V}}}") == kept);
  CHECK(types.array_of(b.int64, 1) == read("Vector{Int64}"));
}

TEST_CASE("Memory of types is zero when it is given out, and no address is given out twice", "[type]") {
  TypeMemory memory;
  std::unordered_set<const void*> seen;
  for (int round = 0; round < 20000; ++round) {
    const std::size_t bytes = round % 1000 == 0 ? std::size_t{3} << 20 : 40 + static_cast<std::size_t>(round % 7) * 24;
    auto* at = static_cast<char*>(memory.allocate(bytes));
    REQUIRE(seen.insert(at).second);
    REQUIRE((at[0] == 0 && at[bytes - 1] == 0));
    at[0] = at[bytes - 1] = 1;
    if (round % 100 != 0) memory.release(at, bytes);
  }
}
