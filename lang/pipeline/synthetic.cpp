#include "lang/pipeline/synthetic.hpp"

#include <algorithm>
#include <tuple>

#include "lang/ir/ir.hpp"
#include "lang/pipeline/impl.hpp"

namespace slope {

SyntheticFunctions::SyntheticFunctions(Runtime& runtime) : runtime_(runtime) {
  root_key_ = runtime.heap.add_root_tracer([this](Tracer& tracer) {
    if (!runtime_.hooks().trace_function) return;
    for (const auto& synthetic : all_)
      for (const auto& code : synthetic->target->code)
        if (code->typed) runtime_.hooks().trace_function(*code->typed, tracer);
  });
}

SyntheticFunctions::~SyntheticFunctions() { runtime_.heap.remove_root_tracer(root_key_); }

derive::Synthetic& SyntheticFunctions::make(const std::string& name, std::span<const Type* const> parameter_types,
                                            const ir::Function* like) {
  Module* module = like && like->method ? like->method->module : runtime_.main;
  const Span span = like ? like->span : Span{};
  if (auto known = spare_.find({name, {parameter_types.begin() + 1, parameter_types.end()}}); known != spare_.end()) {
    derive::Synthetic& again = *known->second.back();
    known->second.pop_back();
    if (known->second.empty()) spare_.erase(known);
    again.serial = next_serial_++;
    again.method->module = module;
    again.method->span = span;
    again.target->compile_failed = false;
    again.target->calls = 0;
    return again;
  }
  auto made = std::make_unique<derive::Synthetic>();
  made->serial = next_serial_++;
  const Symbol* symbol = runtime_.symbols.gensym(name);
  const DataType* callee_type = runtime_.types.function_type(symbol, runtime_.base);
  made->callee = callee_type->instance;
  std::vector<const Type*> types(parameter_types.begin(), parameter_types.end());
  types[0] = callee_type;
  made->method = std::make_unique<Method>();
  Method& method = *made->method;
  method.name = runtime_.symbol(name);
  method.module = module;
  method.span = span;
  method.signature = runtime_.types.tuple(types);
  method.arg_count = static_cast<std::uint32_t>(types.size());
  auto target = std::make_unique<Specialization>();
  target->method = &method;
  target->types = runtime_.types.tuple(types);
  made->target = target.get();
  by_callee_[callee_type] = target.get();
  method.specializations.push_back(std::move(target));
  all_.push_back(std::move(made));
  return *all_.back();
}

Specialization* SyntheticFunctions::of_callee(Value callee) const {
  const auto found = by_callee_.find(callee.type);
  return found == by_callee_.end() ? nullptr : found->second;
}

void SyntheticFunctions::forget(const std::unordered_set<const Specialization*>& emptied) {
  for (const auto& one : all_) {
    if (!emptied.contains(one->target)) continue;
    const auto& types = one->target->types->params;
    spare_[{one->method->name->name, {types.begin() + 1, types.end()}}].push_back(one.get());
    for (const auto& layout : one->layouts)
      if (runtime_.context.tapes) runtime_.context.tapes->forget(layout.get());
    old_layouts_.insert(old_layouts_.end(), one->layouts.begin(), one->layouts.end());
    one->layouts.clear();
  }
}

void SyntheticFunctions::destroy(const std::unordered_set<const Specialization*>& gone) {
  const auto is_gone = [&](const derive::Synthetic* one) { return gone.contains(one->target); };
  for (auto& [key, list] : spare_) std::erase_if(list, is_gone);
  std::erase_if(spare_, [](const auto& entry) { return entry.second.empty(); });
  std::erase_if(by_callee_, [&](const auto& entry) { return gone.contains(entry.second); });
  std::erase_if(all_, [&](const auto& one) { return is_gone(one.get()); });
}

derive::Synthetic& Pipeline::synthetic(const std::string& name, std::span<const Type* const> parameter_types,
                                       const ir::Function* like) {
  return impl_->synthetics.make(name, parameter_types, like);
}

Specialization* Pipeline::synthetic_of(Value callee) const { return impl_->synthetics.of_callee(callee); }

CodeInstance* Pipeline::publish(derive::Synthetic& synthetic, infer::InferResult&& result,
                                const std::vector<Edge>& more_edges) {
  result.edges.insert(result.edges.end(), more_edges.begin(), more_edges.end());
  // What a derivative and its primal rest on is mostly the same.
  const auto key = [](const Edge& e) { return std::tuple(e.kind, e.signature, e.binding, e.callee); };
  std::sort(result.edges.begin(), result.edges.end(), [&](const Edge& a, const Edge& b) { return key(a) < key(b); });
  const auto same = [&](const Edge& a, const Edge& b) { return key(a) == key(b); };
  result.edges.erase(std::unique(result.edges.begin(), result.edges.end(), same), result.edges.end());
  result.edges.shrink_to_fit();
  // Those of what it was made from: one that is a type with free variables stays a parameter in the code.
  if (result.typed) synthetic.target->static_params = result.typed->static_params;
  return infer::publish(runtime_, *synthetic.target, std::move(result));
}

}  // namespace slope
