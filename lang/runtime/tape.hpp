// Tapes: the memory in which reverse mode keeps what loops save, a column a value and a row an iteration.
//
// A Tape belongs to the pool of its Context. `open` takes one from the free list of its layout, `close` gives it back
// with its memory; memory is never returned to the system between calls (page faults dominate otherwise). After an
// error `release_since` closes what the abandoned activation left open. The collector scans rows in use conservatively.
// The pool also traces its context's pending and caught exceptions.
// Compiled code reads Tape::columns and Tape::capacity directly.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "lang/runtime/type.hpp"

namespace slope {

struct Context;

struct TapeLayout {                  // immortal, owned by the derivative's code
  std::vector<const Type*> columns;  // stored as array elements of that type (stored_size)
};

struct Tape {
  std::int64_t capacity = 0;  // rows
  const TapeLayout* layout = nullptr;
  std::uint64_t serial = 0;  // open order; 0 when free
  std::int64_t bytes = 0;
  std::vector<char*> storage;
  char** columns = nullptr;  // storage.data()
};

struct TapePool {
  explicit TapePool(Context& context);
  ~TapePool();
  TapePool(const TapePool&) = delete;
  Tape* open(const TapeLayout* layout, std::int64_t rows);  // null: error raised (limit)
  bool reserve(Tape* tape, std::int64_t rows);              // grows to at least 2x; false: error raised
  void close(Tape* tape);
  std::uint64_t mark() const { return next_serial_; }
  void release_since(std::uint64_t mark);
  std::uint64_t bytes() const { return bytes_; }
  void set_limit(std::uint64_t bytes) { limit_ = bytes; }

 private:
  Context& context_;
  std::vector<std::unique_ptr<Tape>> tapes_;
  std::unordered_map<const TapeLayout*, std::vector<Tape*>> free_;
  std::uint64_t next_serial_ = 1;
  std::uint64_t bytes_ = 0;
  std::uint64_t limit_ = ~std::uint64_t{0};
  int root_key_ = 0;
};

}  // namespace slope
