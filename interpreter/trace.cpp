#include "interpreter/trace.hpp"

namespace slope::interpreter {

namespace {
// Traces of runaway recursion keep their innermost and (by stopping here) not their outermost frames.
constexpr std::size_t max_trace_entries = 4096;
}  // namespace

void push_trace(Context& ctx, const ir::Function& function, std::uint32_t inst) {
  if (ctx.trace.size() >= max_trace_entries) return;
  Span span = function.insts[inst].span;
  std::uint32_t scope = function.insts[inst].scope;
  while (scope < function.scopes.size()) {
    ctx.trace.push_back({function.scopes[scope].method, span});
    span = function.scopes[scope].call_site;
    scope = function.scopes[scope].parent;
  }
  if (function.scopes.empty()) ctx.trace.push_back({function.method, span});
}

}  // namespace slope::interpreter
