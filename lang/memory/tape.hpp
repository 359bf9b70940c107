// Tapes: the memory in which reverse mode keeps what loops save, with a column for each value and a row for each
// iteration.
//
// A Tape belongs to the pool of its Context. `open` takes one from the free list of its layout; `close` returns it with
// its memory. The pool does not return memory to the system between calls, because page faults would then take most of
// the time. After an error `release_since` closes what the abandoned activation left open. The collector scans rows in
// use conservatively. The pool also keeps the free states of derivative rules.
//
// Compiled code reads Tape::columns and Tape::capacity directly.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lang/memory/scratch.hpp"
#include "lang/support/tuning.hpp"
#include "lang/types/type.hpp"

namespace slope {

class Heap;
class Tracer;

struct TapeLayout {                  // immortal, owned by the derivative's code
  std::vector<const Type*> columns;  // stored as array elements of that type (stored_size)
};

// Inst::aux of tape_store and tape_load: the column, and the layout of the tape they work on in the upper bits (none
// when hand-written), so that a derivative of the derivative knows what lies there.
inline constexpr std::uintptr_t tape_column_limit = 1u << 16;
inline std::uintptr_t tape_aux(const TapeLayout* layout, std::uintptr_t column) {
  return reinterpret_cast<std::uintptr_t>(layout) << 16 | column;
}
inline std::uintptr_t tape_column_of(std::uintptr_t aux) { return aux & (tape_column_limit - 1); }
inline const TapeLayout* tape_layout_of(std::uintptr_t aux) { return reinterpret_cast<const TapeLayout*>(aux >> 16); }

struct FreeTapes;

struct Tape {
  std::int64_t capacity = 0;  // rows
  const TapeLayout* layout = nullptr;
  std::uint64_t serial = 0;  // open order; 0 when free
  std::int64_t bytes = 0;
  FreeTapes* home = nullptr;  // of its layout
  std::vector<char*> storage;
  char** columns = nullptr;  // storage.data()
};

struct FreeTapes {
  const TapeLayout* layout = nullptr;
  std::vector<Tape*> waiting;
};

struct TapePool {
  ScratchMemory scratch;  // first: machine code finds its front
  // Who raises the pool's errors, a Context (lang/runtime/context_tapes.hpp). Both return false.
  class Owner {
   public:
    virtual bool out_of_memory() = 0;
    virtual bool out_of_tape() = 0;

   protected:
    ~Owner() = default;
  };
  TapePool(Heap& heap, Owner& owner);
  ~TapePool();
  TapePool(const TapePool&) = delete;
  Tape* open(const TapeLayout* layout, std::int64_t rows);  // null: error raised (limit)
  bool reserve(Tape* tape, std::int64_t rows);              // grows to at least 2x; false: error raised
  void close(Tape* tape);
  bool owns(const Tape* tape) const { return owned_.contains(tape); }  // also of an address that is none
  std::uint64_t mark() const { return next_serial_; }
  // Scratch memory of an activation, until `scratch.leave(serial)` or `release_since(serial)`.
  std::uint64_t enter_scratch() {
    scratch.enter(next_serial_);
    return next_serial_++;
  }
  char* take_scratch(std::size_t bytes);  // null: take it from the heap
  void release_since(std::uint64_t mark);
  // The free states of the rule for calls of these types (lang/diff/reverse/rules.cpp). `rule` tells one definition of
  // the rule from the next: their states mean different things.
  std::vector<Value>& rule_states(const Type* call_types, std::int64_t rule);
  void forget(const TapeLayout* layout);  // frees the tapes that wait for its next use
  std::uint64_t bytes() const { return bytes_; }
  void set_limit(std::uint64_t bytes) { limit_ = bytes; }
  std::uint64_t limit() const { return limit_; }
  void free_waiting();  // the tapes that no activation has
  // The limit of the heap that the host sets.
  void set_heap_limit(std::uint64_t bytes);
  // From now on tapes and heap may take so many bytes together, beyond what they have; more is OutOfMemoryError. The
  // answer is for end_shared_limit; a limit around this one goes on to hold.
  std::uint64_t begin_shared_limit(std::uint64_t bytes);
  void end_shared_limit(std::uint64_t before);
  // Whether it is what the heap meets first.
  bool shared_limit_holds() const { return shared_limit_ != 0 && shared_limit_ < heap_limit_; }
  // The most bytes that tapes had which were open at the same time, since `set_peak` was given less than what is open.
  std::uint64_t peak() const { return peak_; }
  void set_peak(std::uint64_t bytes) { peak_ = bytes > open_bytes_ ? bytes : open_bytes_; }

 private:
  Heap& heap_;
  Owner& owner_;
  std::vector<std::unique_ptr<Tape>> tapes_;
  std::unordered_set<const Tape*> owned_;
  FreeTapes& free_of(const TapeLayout* layout);

  std::unordered_map<const TapeLayout*, std::unique_ptr<FreeTapes>> free_;
  // Where the last few layouts that were asked for have theirs, by a hash of the address.
  static constexpr std::size_t recent_count = tuning::tape_recent;
  FreeTapes* recent_[recent_count] = {};
  std::vector<std::unique_ptr<FreeTapes>> abandoned_;
  std::vector<Tape*> traced_;  // tapes with columns that may hold references
  struct RuleStates {
    std::int64_t rule = 0;
    std::vector<Value> free;
  };
  std::unordered_map<const Type*, RuleStates> rule_states_;
  std::uint64_t next_serial_ = 1;
  std::uint64_t bytes_ = 0;
  std::uint64_t open_bytes_ = 0;
  std::uint64_t peak_ = 0;
  std::uint64_t limit_ = ~std::uint64_t{0};
  bool shares(std::uint64_t more);  // whether there is room under the shared limit
  void limit_heap();
  void free_tape(const Tape& tape);
  std::uint64_t heap_limit_ = std::uint64_t{1} << 40;
  std::uint64_t shared_limit_ = 0;  // of all bytes of heap and tapes; 0: none
  int root_key_ = 0;
};

}  // namespace slope
