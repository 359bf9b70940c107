// What the pipeline tells of who holds what (lang/runtime/unreachable.cpp).
#include "lang/ir/ir.hpp"
#include "lang/pipeline/impl.hpp"

namespace slope {

namespace {

template <class T>
void words_of(const std::vector<T>& list, Reached& reached) {
  reached.words(list.data(), list.data() + list.size());
}

}  // namespace

void Pipeline::reach_function(const ir::Function& function, Reached& reached) {
  reached.word(function.method);
  reached.word(function.return_type);
  reached.place(function.span);
  for (const ir::Inst& inst : function.insts) {
    reached.word(inst.type);
    reached.place(inst.span);
    if (inst.op == ir::Op::invoke)
      reached.specialization(*inst.aux_as<Specialization>());
    else
      reached.word(inst.aux_as<void>());
  }
  reached.words(function.constants.data(), function.constants.data() + function.constants.size());
  words_of(function.slot_types, reached);
  words_of(function.static_params, reached);
  words_of(function.scopes, reached);
  for (const ir::InlineScope& scope : function.scopes) reached.place(scope.call_site);
}

void Pipeline::reach_held(Reached& reached) {
  if (runtime_.interpreter)
    for (const ir::Function* function : runtime_.interpreter->running()) reach_function(*function, reached);
  for (const Specialization* pinned : impl_->pinned) reached.specialization(*pinned);
  impl_->derivatives.reach_refused(reached);
  if (impl_->code_generator) {
    std::vector<const CodeInstance*> in_use;
    impl_->code_generator->find_in_use(runtime_.context, in_use);
    for (const CodeInstance* code : in_use) reached.code(*code);
  }
}

void Pipeline::reach_derived(const Specialization& target, Reached& reached) {
  impl_->derivatives.reach(target, reached);
}

void Pipeline::end_derived(const Specialization& target) {
  impl_->derivatives.cache.each_part(target, [&](const derive::Synthetic& part) {
    for (const auto& code : part.target->code) runtime_.end_code(code.get());
  });
}

void Pipeline::each_loop(const std::function<void(const Method*, const CodeInstance&)>& look) {
  for (const auto& [key, code] : impl_->loops)
    if (code) look(key.first->method, *code);
}

void Pipeline::each_synthetic(const std::function<void(const Specialization&)>& look) { impl_->synthetics.each(look); }

}  // namespace slope
