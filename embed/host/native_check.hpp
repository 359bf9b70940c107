// Whether a function runs compiled code only. A call that is dispatched at run time costs a lookup and boxes, a hundred
// times as much as other calls. So a host that requests a typed handle gets an error instead of a slow handle.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "lang/ir/ir.hpp"
#include "lang/pipeline/pipeline.hpp"

namespace slope::api::detail {

// Looks at the typed code of a specialisation and of whatever it calls, without what only leads to an error.
class NativeCheck {
 public:
  NativeCheck(Pipeline& pipeline, Context& ctx) : pipeline_(pipeline), ctx_(ctx) {}
  bool passes(Specialization& target);  // false: `where` and `why` say what stands against it

  Span where;       // the host's text, not the library's
  std::string why;  // "the call of `g` is dispatched at run time: its arguments are (Any, Float64)"
  // To be set before: asked of a function that shall run on several threads, which may reach nothing but its arguments
  // and memory of its own.
  bool for_workspace = false;
  // Where the function, or what it calls, stores an array of this type; to be asked when it keeps one.
  Span find_store(Specialization& target, const Type* array);
  // Whether it, or what it calls, assigns a global: `where`.
  bool assigns_global(Specialization& target);
  // Is this code nothing but arithmetic, without a loop? Then it comes to its end whatever state the engine is in.
  bool only_computes(const ir::Function& function);
  // Valid after passes() said true: some function reached has a `catch`, or gives values to the host, which may keep
  // them.
  bool catches = false;
  bool gives_values = false;

 private:
  bool find_store(Specialization& target, const Type* array, Span caller, Span& found);
  bool check(Specialization& target, Span caller);
  bool check(const ir::Function& function, Span caller);
  bool refuse(const ir::Function& function, const ir::Inst& inst, Span caller, std::string reason);
  bool takes_values(const NativeInfo& native) const;
  bool reaches_outside(const ir::Inst& inst, std::string& what) const;
  std::string dispatched(const ir::Function& function, const ir::Inst& inst);
  Span of_the_host(const ir::Function& function, const ir::Inst& inst, Span caller) const;
  bool is_library(Span span) const;

  Pipeline& pipeline_;
  Context& ctx_;
  std::unordered_set<const Specialization*> seen_;
  std::unordered_set<const ir::Function*> computing_;
};

}  // namespace slope::api::detail
