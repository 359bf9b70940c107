// The tapes of a context: they raise its errors, and the collector finds the exceptions that it carries.
#pragma once

#include "lang/memory/tape.hpp"
#include "lang/runtime/context.hpp"

namespace slope {

class ContextTapes final : private TapePool::Owner {
 public:
  explicit ContextTapes(Context& context) : context_(context), pool_(*context.heap, *this) {
    root_key_ = context.heap->add_root_tracer([this](Tracer& tracer) {
      tracer.value(context_.error);
      for (Value v : context_.caught) tracer.value(v);
    });
  }
  ~ContextTapes() { context_.heap->remove_root_tracer(root_key_); }
  ContextTapes(const ContextTapes&) = delete;
  TapePool* pool() { return &pool_; }

 private:
  bool out_of_memory() override { return context_.out_of_memory(); }
  bool out_of_tape() override { return context_.out_of_tape(); }

  Context& context_;
  TapePool pool_;
  int root_key_ = 0;
};

// Tapes that an error left open are free again.
struct TapeGuard {
  explicit TapeGuard(Context& context) : ctx(context), mark(context.tapes ? context.tapes->mark() : 0) {}
  ~TapeGuard() {
    if (failed && ctx.tapes) ctx.tapes->release_since(mark);
  }
  Context& ctx;
  std::uint64_t mark;
  bool failed = false;
};

}  // namespace slope
