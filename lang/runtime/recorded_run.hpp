// A run whose look-ups are recorded, and that may do what any code may: that of a builder of rules. What it made holds as
// long as the look-ups do, like a generated source (generated.cpp).
//
// The calls of untyped code and the variables that it reads are noted when they happen. Typed code runs without a look at
// each step. So it is noted as a whole when it is first run: its edges are those of what it calls by name, and whoever
// asked for the run finds in it which variables it may read. A call whose target is found at run time is noted then.
#pragma once

#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "lang/runtime/context.hpp"
#include "lang/runtime/method.hpp"

namespace slope {

struct RecordedRun : GeneratorRun {
  explicit RecordedRun(const Context& ctx);

  Source looked_up;
  std::vector<std::shared_ptr<ir::Function>> typed;
  std::unordered_set<const Binding*> assigned;
  std::unordered_set<const void*> noted;  // specialisations and code
};

// Null: no such run, or one of its generators.
inline RecordedRun* recorded_run(const Context& ctx) {
  return ctx.generating && !ctx.generating->made ? static_cast<RecordedRun*>(ctx.generating) : nullptr;
}
inline bool runs_generator(const Context& ctx) { return ctx.generating && ctx.generating->made; }

void note_read(GeneratorRun& run, const Binding& binding);
void note_call(RecordedRun& run, const Specialization& target);
void note_code(RecordedRun& run, const CodeInstance& code);
// The next assignment of a variable among them ends what has these edges.
void watch_variables(std::span<const Edge> edges);

}  // namespace slope
