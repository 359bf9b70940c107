// Collections in slices: a random mutator against a model of what it did, and the pieces that must not be lost.
#include <chrono>
#include <random>
#include <string>

#include "lang/memory/heap.hpp"
#include "tests/memory/fixture.hpp"

using namespace slope;
using testing::apart;
using testing::wipe_stack;

namespace {

struct Fixture : testing::MemoryFixture {
  // mutable struct Node; left::Any; right::Any; number::Int64; end
  const DataType* node = [this] {
    TypeName* name = types.new_name(symbols.intern("Node"), nullptr);
    const Symbol* names[] = {symbols.intern("left"), symbols.intern("right"), symbols.intern("number")};
    const Type* field_types[] = {b.any, b.any, b.int64};
    types.define_struct(name, {}, b.any, names, field_types, true, 3);
    return name->primary;
  }();

  Object* make_node(std::int64_t number) {
    Object* made = heap.allocate(node, node->size);
    store_value(heap, made->payload() + node->fields[2].offset, b.int64, Value(b.int64, number));
    return made;
  }
  void set(Object* of, std::size_t field, Value v) {
    store_value(heap, of->payload() + node->fields[field].offset, b.any, v);
  }
  Value get(Object* of, std::size_t field) { return load_field(heap, of, node->fields[field]); }
  std::int64_t number(Object* of) { return get(of, 2).bits; }
  Object* copy_of(Object* of) {
    Object* made = make_node(number(of));
    set(made, 0, get(of, 0));
    set(made, 1, get(of, 1));
    return made;
  }

  // A chain at the head of `roots` that one slice cannot mark, and a collection that has begun and not come to its end.
  void begin_collection(Rooted& roots) {
    if (roots.values.empty()) roots.values.push_back(Value());
    for (std::int64_t i = 0; i < 400'000; ++i) {
      Object* made = make_node(i);
      set(made, 0, roots.values[0]);
      roots.values[0] = Value(node, made);
    }
    while (heap.collect_for(std::chrono::seconds(10))) continue;
    for (int i = 0; i < 100'000; ++i) heap.allocate(node, node->size);
    REQUIRE(heap.collect_for(std::chrono::nanoseconds(1)));
    REQUIRE(heap.front.marking == 1);
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "what is moved behind the marking's back is kept by the barrier") {
  Rooted roots(heap);
  roots.values.push_back(Value());
  roots.values.push_back(Value(node, make_node(-1)));
  roots.values.push_back(Value(node, make_node(-2)));
  begin_collection(roots);
  apart([&] {
    // The last node of the chain, which the marking has not reached, moves to a node that was marked with the roots.
    Object* before_last = roots.values[0].object;
    while (get(get(before_last, 0).object, 0).defined()) before_last = get(before_last, 0).object;
    set(roots.values[1].object, 1, get(before_last, 0));
    set(before_last, 0, Value());
    // Memory that is replaced as a whole.
    Object* second = roots.values[2].object;
    before_last = roots.values[0].object;
    while (get(get(before_last, 0).object, 0).defined()) before_last = get(before_last, 0).object;
    const Value moved = get(before_last, 0);
    std::memcpy(second->payload() + node->fields[1].offset, &moved, sizeof moved);
    heap.rewrote(second);
    set(before_last, 0, Value());
  });
  wipe_stack();
  while (heap.collect_for(std::chrono::milliseconds(1))) continue;
  for (int i = 0; i < 300'000; ++i) heap.allocate(node, node->size);
  CHECK(number(get(roots.values[1].object, 1).object) == 0);
  CHECK(number(get(roots.values[2].object, 1).object) == 1);
}

TEST_CASE_METHOD(Fixture, "a collection in slices counts what lives") {
  // The stack is looked at word by word: a cell or two may be held by what is left of an earlier call there. A vector
  // counted wrongly is more than that.
  const auto near = [&](std::uint64_t live) {
    const std::uint64_t now = heap.statistics().live_bytes;
    return std::max(now, live) - std::min(now, live) <= 10 * (node->size + 16);
  };
  Rooted roots(heap);
  begin_collection(roots);
  // Arrays that grow and shrink and are given up while it marks.
  apart([&] {
    for (int i = 0; i < 40; ++i) {
      ArrayObject* grown = vector(b.any, i % 4 ? 3000 : 10);
      roots.values.push_back(Value(grown->type, grown));
      heap.collect_for(std::chrono::nanoseconds(1));
      REQUIRE(heap.resize_vector(grown, 5000 + i));
      if (i % 3 == 0) roots.values.pop_back();
    }
  });
  wipe_stack();
  while (heap.collect_for(std::chrono::milliseconds(1))) continue;
  heap.collect();
  const std::uint64_t live = heap.statistics().live_bytes;
  heap.collect();
  CHECK(near(live));
  while (heap.statistics().collections < 8) heap.allocate(node, node->size);
  heap.collect();
  CHECK(near(live));
}

TEST_CASE_METHOD(Fixture, "collections in slices have short pauses") {
  Rooted roots(heap);
  begin_collection(roots);
  while (heap.collect_for(std::chrono::milliseconds(1))) continue;
  const std::uint64_t slices = heap.statistics().slices;
  const std::uint64_t collections = heap.statistics().collections;
  while (heap.statistics().collections == collections) heap.allocate(node, node->size);
  CHECK(heap.statistics().slices > slices + 10);
}

TEST_CASE_METHOD(Fixture, "elements that a vector moves while it is marked are kept") {
  Rooted roots(heap);
  ArrayObject* queue = vector(b.any, 0);
  roots.values.push_back(Value(queue->type, queue));
  std::int64_t first = 0, last = 0;
  std::mt19937 random(7);
  for (int round = 0; round < 600'000; ++round) {
    const bool grows = queue->length < 20'000 || random() % 2;
    if (grows && random() % 2) {
      Object* made = make_node(last);
      REQUIRE(heap.resize_vector(queue, queue->length + 1));
      store_value(heap, queue->data + 16 * (queue->length - 1), b.any, Value(node, made));
      ++last;
    } else if (grows) {
      Object* made = make_node(first - 1);
      REQUIRE(heap.resize_vector_front(queue, queue->length + 1));
      store_value(heap, queue->data, b.any, Value(node, made));
      --first;
    } else {
      REQUIRE(heap.resize_vector_front(queue, queue->length - 1));
      ++first;
    }
    if (round % 1000 == 0) heap.collect_for(std::chrono::microseconds(20));
    if (round % 100'000 == 99'999)  // on a slow machine these few would not come to an end
      while (heap.collect_for(std::chrono::milliseconds(1))) continue;
  }
  REQUIRE(queue->length == last - first);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < queue->length; ++i)
    wrong += number(reinterpret_cast<Value*>(queue->data)[i].object) != first + i;
  CHECK(wrong == 0);
  CHECK(heap.statistics().collections > 3);
}

// Nodes and strings that refer to each other, changed at random; the model says what each must hold.
TEST_CASE_METHOD(Fixture, "a random mutator finds what its model says") {
  std::mt19937 random(20);
  constexpr std::size_t count = 4000;
  struct Model {
    std::int64_t number = 0;
    std::size_t left = count, right = count;  // of the nodes; count: none
  };
  for (int seed = 0; seed < 3; ++seed) {
    random.seed(static_cast<unsigned>(seed));
    Rooted roots(heap);
    ArrayObject* all = vector(b.any, count);
    roots.values.push_back(Value(all->type, all));
    std::vector<Model> model(count);
    auto at = [&](std::size_t i) { return reinterpret_cast<Value*>(all->data)[i].object; };
    auto put = [&](std::size_t i, Object* o) {
      store_value(heap, all->data + 16 * static_cast<std::int64_t>(i), b.any, Value(node, o));
    };
    for (std::size_t i = 0; i < count; ++i) {
      model[i].number = static_cast<std::int64_t>(i);
      put(i, make_node(model[i].number));
    }
    for (std::int64_t step = 0; step < 300'000; ++step) {
      const std::size_t i = random() % count, j = random() % count;
      switch (random() % 5) {
        case 0:  // an edge
          set(at(i), 0, Value(node, at(j)));
          model[i].left = j;
          break;
        case 1:  // a node is replaced by a copy; who referred to the old one keeps it alive
          put(i, copy_of(at(i)));
          break;
        case 2: {  // a text that only its node refers to
          StringObject* text = heap.allocate_string("text " + std::to_string(step));
          set(at(i), 1, Value(b.string, text));
          model[i].right = static_cast<std::size_t>(step);
          break;
        }
        case 3:  // exchanged: both are for a moment only on the stack
          std::swap(reinterpret_cast<Value*>(all->data)[i], reinterpret_cast<Value*>(all->data)[j]);
          heap.rewrote(all);
          std::swap(model[i], model[j]);
          for (Model& m : model) {
            if (m.left == i) {
              m.left = j;
            } else if (m.left == j) {
              m.left = i;
            }
          }
          step += 200;
          break;
        default:
          vector(b.float64, static_cast<std::int64_t>(random() % 2000));
      }
      if (step % 64 == 0) heap.collect_for(std::chrono::microseconds(5));
    }
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      wrong += number(at(i)) != model[i].number;
      if (model[i].left != count) wrong += number(get(at(i), 0).object) != model[model[i].left].number;
      if (model[i].right == count) continue;
      wrong += static_cast<StringObject*>(get(at(i), 1).object)->view() != "text " + std::to_string(model[i].right);
    }
    CHECK(wrong == 0);
  }
}
