// What a record of lang/runtime/frames.hpp represents: the function of one activation, and those inlined at its
// position.
#pragma once

#include "interpreter/bytecode.hpp"
#include "lang/ir/ir.hpp"
#include "lang/runtime/frames.hpp"

namespace slope::api::detail {

// Calls visit(method, span) for each, innermost first. Takes neither memory nor locks: a signal handler uses it.
template <class Visit>
void visit_entries(const FrameRecord& record, Visit visit) {
  const auto* function = reinterpret_cast<const ir::Function*>(record.function & ~std::uintptr_t{1});
  if (!record.site) {  // it has only begun
    visit(function->method, function->method ? function->method->span : function->span);
    return;
  }
  if (record.is_machine_code()) {
    for (const TraceEntry& entry : static_cast<const TraceSite*>(record.site)->entries) visit(entry.method, entry.span);
    return;
  }
  const ir::Inst& inst = function->insts[static_cast<const interpreter::Instruction*>(record.site)->inst];
  Span span = inst.span;
  if (function->scopes.empty()) visit(function->method, span);
  for (std::uint32_t scope = inst.scope; scope < function->scopes.size(); scope = function->scopes[scope].parent) {
    visit(function->scopes[scope].method, span);
    span = function->scopes[scope].call_site;
  }
}

}  // namespace slope::api::detail
