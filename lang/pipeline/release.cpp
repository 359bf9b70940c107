// Frees code that definitions ended: typed IR, bytecode, machine code, and what was kept to make them.
//
// What stays although it ended:
//   1. code that a frame is executing: the interpreter says which functions it runs, and the code generator into which
//      machine code a word of the native stack points
//   2. code that a host has a handle of
//   3. the reverse halves of derivatives that a record of a dynamic call holds
//   4. what these call directly (`invoke`), at any depth: such a call cannot request the code again, or is linked to it
// Everything else can be made again if a frame of an older world needs it: methods stay with their syntax as long as
// there may be such frames (lang/runtime/retired.cpp).
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "lang/ir/ir.hpp"
#include "lang/memory/tape.hpp"
#include "lang/pipeline/impl.hpp"

namespace slope {

namespace {

// Marks among the ended codes those that must stay.
class Marking {
 public:
  explicit Marking(const std::vector<CodeInstance*>& ended) {
    for (CodeInstance* code : ended) {
      if (code->typed) by_function_[code->typed.get()] = code;
      by_owner_[code->owner].push_back(code);
      known_.insert(code);
    }
  }
  void function(const ir::Function* running) {
    if (auto found = by_function_.find(running); found != by_function_.end()) mark(found->second);
  }
  void code(const CodeInstance* in_use) {
    if (known_.contains(in_use)) mark(const_cast<CodeInstance*>(in_use));
  }
  void drain() {
    while (!work_.empty()) {
      const CodeInstance* next = work_.back();
      work_.pop_back();
      if (!next->typed) continue;
      for (const ir::Inst& inst : next->typed->insts) {
        if (inst.op != ir::Op::invoke) continue;
        if (auto found = by_owner_.find(inst.aux_as<Specialization>()); found != by_owner_.end())
          for (CodeInstance* callee : found->second) mark(callee);
      }
    }
  }
  bool is_marked(CodeInstance* code) const { return marked_.contains(code); }

 private:
  void mark(CodeInstance* code) {
    if (marked_.insert(code).second) work_.push_back(code);
  }

  std::unordered_map<const ir::Function*, CodeInstance*> by_function_;
  std::unordered_map<const Specialization*, std::vector<CodeInstance*>> by_owner_;
  std::unordered_set<const CodeInstance*> known_;
  std::unordered_set<CodeInstance*> marked_;
  std::vector<const CodeInstance*> work_;
};

}  // namespace

void Pipeline::pin(const Specialization& target) { impl_->pinned.insert(&target); }
bool Pipeline::is_pinned(const Specialization* target) const { return impl_->pinned.count(target) != 0; }

void Pipeline::release_ended(Context& ctx) {
  // What goes on in the middle of methods that were replaced is asked for by nobody but their frames.
  std::erase_if(impl_->loops, [&](const auto& entry) {
    const Method* method = entry.first.first->method;
    if (!method || method->max_world == newest_world) return false;
    if (entry.second) runtime_.end_code(entry.second);
    return true;
  });
  std::vector<CodeInstance*>& ended = runtime_.ended_code();
  Marking marking(ended);
  if (runtime_.interpreter)
    for (const ir::Function* function : runtime_.interpreter->running()) marking.function(function);
  if (impl_->code_generator) {
    std::vector<const CodeInstance*> in_use;
    impl_->code_generator->find_in_use(ctx, in_use);
    for (const CodeInstance* code : in_use) marking.code(code);
  }
  for (const CodeInstance* code : ended)
    if (impl_->pinned.contains(code->owner)) marking.code(code);
  marking.drain();
  std::vector<CodeInstance*> gone;
  std::erase_if(ended, [&](CodeInstance* code) {
    if (marking.is_marked(code)) return false;
    gone.push_back(code);
    return true;
  });
  if (gone.empty()) return;
  impl_->forget(gone);
  runtime_.destroy_code(gone);
}

// Before they are destroyed: whatever refers to them or was kept to make them.
void Pipeline::Impl::forget(const std::vector<CodeInstance*>& codes) {
  freed += codes.size();
  derive::GoneCode gone;
  gone.codes.insert(codes.begin(), codes.end());
  std::unordered_set<const ir::Function*> functions;
  for (const CodeInstance* code : codes) {
    if (code->typed) functions.insert(code->typed.get());
    if (code_generator) code_generator->forget(*code);
    const auto& all = code->owner->code;
    if (std::all_of(all.begin(), all.end(), [&](const auto& one) { return gone.codes.contains(one.get()); }))
      gone.emptied.insert(code->owner);
  }
  std::erase_if(loops, [&](const auto& entry) {
    return gone.codes.contains(entry.second) || functions.contains(entry.first.first);
  });
  std::erase_if(interpreted, [&](const auto& entry) { return gone.emptied.contains(entry.first); });
  derivatives.forget(gone);
  synthetics.forget(gone.emptied);
}

void Pipeline::leave_used(std::unordered_set<const Method*>& methods) {
  const auto leave = [&](const ir::Function& function) {
    methods.erase(function.method);
    for (const ir::InlineScope& scope : function.scopes) methods.erase(scope.method);
    for (const ir::Inst& inst : function.insts)
      if (inst.op == ir::Op::invoke) methods.erase(inst.aux_as<Specialization>()->method);
  };
  if (runtime_.interpreter)
    for (const ir::Function* function : runtime_.interpreter->running()) leave(*function);
  for (const CodeInstance* code : runtime_.ended_code()) {
    if (code->typed) leave(*code->typed);
    for (const Edge& edge : code->edges)
      if (edge.callee) methods.erase(edge.callee->method);
  }
}

void Pipeline::forget(const std::unordered_set<const Method*>& methods,
                      const std::unordered_set<const Specialization*>& specializations) {
  const auto is_gone = [&](const auto& entry) { return specializations.contains(entry.first); };
  std::erase_if(impl_->limits, is_gone);
  std::erase_if(impl_->interpreted, is_gone);
  std::erase_if(impl_->pinned, [&](const Specialization* one) { return specializations.contains(one); });
  std::erase_if(impl_->loops, [&](const auto& entry) { return methods.contains(entry.first.first->method); });
  impl_->derivatives.forget({{}, specializations, methods, true});
  impl_->synthetics.destroy(specializations);
}

Pipeline::CodeCounts Pipeline::code_counts() const {
  return {runtime_.ended_code().size(), impl_->freed,
          impl_->code_generator ? impl_->code_generator->bytes() : std::size_t{0}};
}

}  // namespace slope
