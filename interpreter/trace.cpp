#include "interpreter/trace.hpp"

#include "lang/support/tuning.hpp"

namespace slope::interpreter {

namespace {
// Traces of runaway recursion keep their innermost and (by stopping here) not their outermost frames.
constexpr std::size_t max_trace_entries = tuning::trace_entries;
}  // namespace

std::vector<TraceEntry> trace_of(const ir::Function& function, std::uint32_t inst, const DataType* own) {
  std::vector<TraceEntry> entries;
  Span span = function.insts[inst].span;
  std::uint32_t scope = function.insts[inst].scope;
  while (scope < function.scopes.size()) {
    entries.push_back({function.scopes[scope].method, span, function.scopes[scope].types});
    span = function.scopes[scope].call_site;
    scope = function.scopes[scope].parent;
  }
  if (function.scopes.empty()) entries.push_back({function.method, span, own});
  if (!entries.empty() && !entries.back().types) entries.back().types = own;
  return entries;
}

void push_trace(Context& ctx, const ir::Function& function, std::uint32_t inst, const DataType* own) {
  if (ctx.trace.size() >= max_trace_entries) return;
  const std::vector<TraceEntry> entries = trace_of(function, inst, own);
  ctx.trace.insert(ctx.trace.end(), entries.begin(), entries.end());
}

}  // namespace slope::interpreter
