// Free tapes wait by layout with their memory; an opened one keeps at least the rows that it once had.
#include "lang/memory/tape.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "lang/memory/heap.hpp"
#include "lang/support/tuning.hpp"

namespace slope {

namespace {

constexpr std::int64_t least_rows = tuning::tape_rows;

bool may_hold_references(const Type* type) {
  Storage storage = storage_of(type);
  if (storage == Storage::dynamic) return true;
  return storage == Storage::reference && as_data(type)->object_kind != DataType::ObjectKind::immortal;
}

}  // namespace

TapePool::TapePool(Heap& heap, Owner& owner) : heap_(heap), owner_(owner) {
  root_key_ = heap.add_root_tracer([this](Tracer& tracer) {
    for (const auto& [types, states] : rule_states_)
      for (Value v : states.free) tracer.value(v);
    for (Tape* tape : traced_) {
      if (tape->serial == 0) continue;
      for (std::size_t i = 0; i < tape->storage.size(); ++i) {
        const Type* type = tape->layout->columns[i];
        if (may_hold_references(type))
          tracer.conservative(tape->storage[i], tape->storage[i] + tape->capacity * stored_size(type));
      }
    }
  });
}

TapePool::~TapePool() {
  heap_.remove_root_tracer(root_key_);
  for (const std::unique_ptr<Tape>& tape : tapes_)
    for (char* column : tape->storage) std::free(column);
}

FreeTapes& TapePool::free_of(const TapeLayout* layout) {
  FreeTapes*& recent = recent_[(reinterpret_cast<std::uintptr_t>(layout) >> 4) % recent_count];
  if (recent && recent->layout == layout) return *recent;
  std::unique_ptr<FreeTapes>& known = free_[layout];
  if (!known) {
    known = std::make_unique<FreeTapes>();
    known->layout = layout;
  }
  recent = known.get();
  return *recent;
}

Tape* TapePool::open(const TapeLayout* layout, std::int64_t rows) {
  Tape* tape = nullptr;
  FreeTapes& free = free_of(layout);
  if (!free.waiting.empty()) {
    tape = free.waiting.back();
    free.waiting.pop_back();
  } else {
    tapes_.push_back(std::make_unique<Tape>());
    tape = tapes_.back().get();
    owned_.insert(tape);
    tape->layout = layout;
    tape->home = &free;
    tape->storage.assign(layout->columns.size(), nullptr);
    tape->columns = tape->storage.data();
    if (std::any_of(layout->columns.begin(), layout->columns.end(), may_hold_references)) traced_.push_back(tape);
  }
  tape->serial = next_serial_++;
  open_bytes_ += static_cast<std::uint64_t>(tape->bytes);
  set_peak(peak_);
  if (!reserve(tape, rows)) {
    close(tape);
    return nullptr;
  }
  return tape;
}

bool TapePool::reserve(Tape* tape, std::int64_t rows) {
  if (rows <= tape->capacity) return true;
  std::int64_t row_bytes = 0;
  for (const Type* type : tape->layout->columns) row_bytes += stored_size(type);
  // Near the limit the tape gets just the rows that are asked for.
  std::int64_t capacity = std::max({rows, 2 * tape->capacity, least_rows});
  auto bytes_for = [&](std::int64_t n, std::int64_t& bytes) { return !__builtin_mul_overflow(n, row_bytes, &bytes); };
  auto fits = [&](std::int64_t bytes) {
    return static_cast<std::uint64_t>(bytes - tape->bytes) <= limit_ - std::min(limit_, bytes_);
  };
  std::int64_t bytes = 0;
  if (!bytes_for(capacity, bytes) || !fits(bytes)) capacity = rows;
  if (!bytes_for(capacity, bytes)) return owner_.out_of_memory();
  if (!fits(bytes)) return owner_.out_of_tape();
  std::vector<char*> grown(tape->storage.size());
  for (std::size_t i = 0; i < grown.size(); ++i) {
    std::size_t size = stored_size(tape->layout->columns[i]);
    std::size_t column_bytes = (static_cast<std::size_t>(capacity) * size + 63) / 64 * 64;
    grown[i] = static_cast<char*>(std::aligned_alloc(64, std::max<std::size_t>(column_bytes, 64)));
    if (!grown[i]) {
      for (char* column : grown) std::free(column);
      return owner_.out_of_memory();
    }
    std::size_t kept = static_cast<std::size_t>(tape->capacity) * size;
    if (kept) std::memcpy(grown[i], tape->storage[i], kept);
    // The collector reads all rows of these.
    if (may_hold_references(tape->layout->columns[i])) std::memset(grown[i] + kept, 0, column_bytes - kept);
  }
  for (std::size_t i = 0; i < grown.size(); ++i) {
    std::free(tape->storage[i]);
    tape->storage[i] = grown[i];
  }
  const auto added = static_cast<std::uint64_t>(bytes - tape->bytes);
  bytes_ += added;
  open_bytes_ += added;
  set_peak(peak_);
  tape->bytes = bytes;
  tape->capacity = capacity;
  return true;
}

void TapePool::forget(const TapeLayout* layout) {
  const auto known = free_.find(layout);
  if (known == free_.end()) return;
  FreeTapes* home = known->second.get();
  const auto goes = [&](const Tape& tape) { return tape.home == home && tape.serial == 0; };
  std::erase_if(traced_, [&](const Tape* tape) { return goes(*tape); });
  std::erase_if(tapes_, [&](const std::unique_ptr<Tape>& tape) {
    if (!goes(*tape)) return false;
    owned_.erase(tape.get());
    for (char* column : tape->storage) std::free(column);
    bytes_ -= static_cast<std::uint64_t>(tape->bytes);
    return true;
  });
  std::replace(std::begin(recent_), std::end(recent_), home, static_cast<FreeTapes*>(nullptr));
  // Those that an abandoned activation still has open come back to it; another layout may get the address.
  home->waiting.clear();
  home->layout = nullptr;
  abandoned_.push_back(std::move(known->second));
  free_.erase(known);
}

void TapePool::close(Tape* tape) {
  if (tape->serial == 0) return;
  tape->serial = 0;
  open_bytes_ -= static_cast<std::uint64_t>(tape->bytes);
  tape->home->waiting.push_back(tape);
}

std::vector<Value>& TapePool::rule_states(const Type* call_types, std::int64_t rule) {
  RuleStates& states = rule_states_[call_types];
  if (states.rule != rule) states = {rule, {}};
  return states.free;
}

char* TapePool::take_scratch(std::size_t bytes) {
  std::size_t taken = 0;
  char* memory = scratch.take(bytes, limit_ - std::min(limit_, bytes_), taken);
  bytes_ += taken;
  return memory;
}

void TapePool::release_since(std::uint64_t mark) {
  scratch.leave(mark);
  for (const std::unique_ptr<Tape>& tape : tapes_)
    if (tape->serial >= mark) close(tape.get());
}

}  // namespace slope
