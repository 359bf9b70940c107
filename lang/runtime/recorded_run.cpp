#include "lang/runtime/recorded_run.hpp"

#include "lang/types/module.hpp"

namespace slope {

RecordedRun::RecordedRun(const Context& ctx) {
  world = ctx.world;
  source = &looked_up;
}

void note_read(GeneratorRun& run, const Binding& binding) {
  for (const Edge& edge : run.source->edges)
    if (edge.binding == &binding) return;
  run.source->edges.push_back({Edge::Kind::binding, nullptr, &binding, nullptr});
}

void note_call(RecordedRun& run, const Specialization& target) {
  if (run.noted.insert(&target).second)
    run.looked_up.edges.push_back({Edge::Kind::lookup, target.types, nullptr, nullptr});
}

void note_code(RecordedRun& run, const CodeInstance& code) {
  if (!run.noted.insert(&code).second) return;
  run.looked_up.edges.insert(run.looked_up.edges.end(), code.edges.begin(), code.edges.end());
  if (code.typed) run.typed.push_back(code.typed);
}

void watch_variables(std::span<const Edge> edges) {
  for (const Edge& edge : edges)
    if (edge.kind == Edge::Kind::binding && edge.binding && !edge.binding->is_constant && edge.binding->version == 0)
      const_cast<Binding*>(edge.binding)->version = 1;
}

}  // namespace slope
