#include "lang/memory/tape.hpp"

#include "tests/memory/fixture.hpp"

using namespace slope;

namespace {

struct CountedErrors : TapePool::Owner {
  int memory = 0;
  int tape = 0;
  bool out_of_memory() override { return ++memory, false; }
  bool out_of_tape() override { return ++tape, false; }
};

struct Fixture : testing::MemoryFixture {
  CountedErrors errors;
  TapePool pool{heap, errors};
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a tape grows, keeps its rows and is used again") {
  TapeLayout layout{{b.float64, b.int32}};
  Tape* tape = pool.open(&layout, 4);
  REQUIRE(tape);
  REQUIRE(tape->capacity >= 4);
  for (std::int64_t row = 0; row < 1000; ++row) {
    REQUIRE(pool.reserve(tape, row + 1));
    reinterpret_cast<double*>(tape->columns[0])[row] = static_cast<double>(row);
    reinterpret_cast<std::int32_t*>(tape->columns[1])[row] = static_cast<std::int32_t>(-row);
  }
  for (std::int64_t row = 0; row < 1000; ++row) {
    REQUIRE(reinterpret_cast<double*>(tape->columns[0])[row] == static_cast<double>(row));
    REQUIRE(reinterpret_cast<std::int32_t*>(tape->columns[1])[row] == -row);
  }
  std::int64_t capacity = tape->capacity;
  std::uint64_t bytes = pool.bytes();
  pool.close(tape);
  Tape* again = pool.open(&layout, 10);
  CHECK(again == tape);
  CHECK(again->capacity == capacity);
  Tape* second = pool.open(&layout, 10);
  CHECK(second != again);
  CHECK(pool.bytes() > bytes);
}

TEST_CASE_METHOD(Fixture, "what an abandoned activation left open is closed") {
  TapeLayout layout{{b.float64}};
  Tape* outer = pool.open(&layout, 1);
  std::uint64_t mark = pool.mark();
  Tape* inner = pool.open(&layout, 1);
  pool.release_since(mark);
  CHECK(outer->serial != 0);
  CHECK(inner->serial == 0);
  CHECK(pool.open(&layout, 1) == inner);
}

TEST_CASE_METHOD(Fixture, "tapes have a limit of their own") {
  TapeLayout layout{{b.float64}};
  pool.set_limit(100'000);
  CHECK(pool.open(&layout, 20'000) == nullptr);
  CHECK(errors.tape == 1);
  CHECK(errors.memory == 0);
  CHECK(pool.open(&layout, 1'000) != nullptr);
}

TEST_CASE_METHOD(Fixture, "objects on a tape are kept") {
  TapeLayout layout{{b.any, b.string}};
  Tape* tape = pool.open(&layout, 1);
  store_value(heap, tape->columns[0], b.any, string("one"));
  store_value(heap, tape->columns[1], b.string, string("two"));
  heap.set_stress(true);
  for (int i = 0; i < 10; ++i) string("garbage");
  auto text = [&](int column, const Type* type) {
    return static_cast<StringObject*>(load_stored(heap, tape->columns[column], type).object)->view();
  };
  CHECK(text(0, b.any) == "one");
  CHECK(text(1, b.string) == "two");
}

TEST_CASE_METHOD(Fixture, "what is taken of scratch memory in place and by a call lies apart, and is freed together") {
  CHECK(pool.scratch.front.at == pool.scratch.front.end);  // none yet: everything is a call
  const std::uint64_t outer = pool.enter_scratch();
  char* first = pool.take_scratch(10);
  REQUIRE(first);
  char* in_place = pool.scratch.front.at;
  CHECK(in_place >= first + 10);
  REQUIRE(pool.scratch.front.end - in_place > 1000);
  pool.scratch.front.at += 48;  // as machine code does
  char* second = pool.take_scratch(100);
  CHECK(second >= in_place + 48);
  CHECK(reinterpret_cast<std::uintptr_t>(second) % 64 == 0);
  const std::uint64_t inner = pool.enter_scratch();
  char* const free_before = pool.scratch.front.at;
  char* const end_before = pool.scratch.front.end;
  pool.scratch.front.at = end_before - 16;
  char* beyond = pool.take_scratch(1000);  // of the next piece
  REQUIRE(beyond);
  CHECK((beyond < first || beyond >= end_before));
  CHECK(pool.scratch.front.end != end_before);
  pool.scratch.leave(inner);
  CHECK(pool.scratch.front.at == free_before);
  CHECK(pool.scratch.front.end == end_before);
  pool.scratch.leave(outer);
  CHECK(pool.scratch.front.at == first);
}
