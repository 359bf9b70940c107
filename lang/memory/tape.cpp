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
  // While rows are copied there are the old ones and the new ones.
  if (!bytes_for(capacity, bytes) || !fits(bytes) || !shares(static_cast<std::uint64_t>(bytes))) capacity = rows;
  if (!bytes_for(capacity, bytes)) return owner_.out_of_memory();
  if (!fits(bytes)) return owner_.out_of_tape();
  if (!shares(static_cast<std::uint64_t>(bytes))) return owner_.out_of_memory();
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
  limit_heap();
  return true;
}

bool TapePool::shares(std::uint64_t more) {
  if (shared_limit_ == 0) return true;
  const auto has_room = [&] { return heap_.statistics().live_bytes + bytes_ + more <= shared_limit_; };
  if (has_room()) return true;
  free_waiting();
  if (has_room()) return true;
  heap_.collect();
  return has_room();
}

void TapePool::limit_heap() {
  if (shared_limit_ != 0) heap_.set_limit(std::min(heap_limit_, shared_limit_ - std::min(shared_limit_, bytes_)));
}

void TapePool::set_heap_limit(std::uint64_t bytes) {
  heap_limit_ = bytes;
  heap_.set_limit(bytes);
  limit_heap();
}

std::uint64_t TapePool::begin_shared_limit(std::uint64_t bytes) {
  free_waiting();
  heap_.collect();
  const std::uint64_t before = shared_limit_;
  const std::uint64_t present = heap_.statistics().live_bytes + bytes_;
  shared_limit_ = bytes > ~std::uint64_t{0} - present ? ~std::uint64_t{0} : present + bytes;
  if (before != 0) shared_limit_ = std::min(shared_limit_, before);
  limit_heap();
  return before;
}

void TapePool::end_shared_limit(std::uint64_t before) {
  shared_limit_ = before;
  heap_.set_limit(heap_limit_);
  limit_heap();
}

void TapePool::free_waiting() {
  std::erase_if(traced_, [](const Tape* tape) { return tape->serial == 0; });
  std::erase_if(tapes_, [&](const std::unique_ptr<Tape>& tape) {
    if (tape->serial != 0) return false;
    free_tape(*tape);
    return true;
  });
  for (const auto& [layout, free] : free_) free->waiting.clear();
  for (const auto& free : abandoned_) free->waiting.clear();
  limit_heap();
}

void TapePool::free_tape(const Tape& tape) {
  owned_.erase(&tape);
  for (char* column : tape.storage) std::free(column);
  bytes_ -= static_cast<std::uint64_t>(tape.bytes);
}

void TapePool::forget(const TapeLayout* layout) {
  const auto known = free_.find(layout);
  if (known == free_.end()) return;
  FreeTapes* home = known->second.get();
  const auto goes = [&](const Tape& tape) { return tape.home == home && tape.serial == 0; };
  std::erase_if(traced_, [&](const Tape* tape) { return goes(*tape); });
  std::erase_if(tapes_, [&](const std::unique_ptr<Tape>& tape) {
    if (!goes(*tape)) return false;
    free_tape(*tape);
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
