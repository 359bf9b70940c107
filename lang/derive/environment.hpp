// What differentiation needs from the pipeline.
#pragma once

#include "lang/pipeline/impl.hpp"

namespace slope {

inline std::vector<const Type*> parameter_types(const ir::Function& function) {
  std::vector<const Type*> types;
  for (std::uint32_t id : function.blocks[0].parameters) types.push_back(function.insts[id].type);
  return types;
}

class PipelineEnvironment final : public diff::Environment {
 public:
  PipelineEnvironment(Pipeline::Impl& impl, Context& ctx) : impl_(impl), ctx_(ctx) {}
  const ir::Function* primal(Specialization& target) override { return impl_.primal(ctx_, target); }
  const Type* return_type(const DataType* call_types) override {
    return infer::return_type(impl_.runtime, ctx_, call_types, ctx_.world, impl_.infer_options());
  }
  Halves halves(Specialization& callee, const std::vector<char>& active, diff::Refusal& refusal) override {
    Pipeline::Impl::Halves* made = impl_.make_halves(ctx_, callee, active, refusal);
    return made ? made->answer : Halves{};
  }
  Tangent tangent(Specialization& callee, const std::vector<char>& active, std::size_t width,
                  diff::Refusal& refusal) override {
    Pipeline::Impl::TangentCode* made = impl_.make_tangent(ctx_, callee, active, width, refusal);
    return made ? made->answer : Tangent{};
  }
  bool built_rule(const DataType* call_types, Value& rule) override {
    return impl_.built_rule(ctx_, call_types, false, rule);
  }
  diff::MemoryEffects& memory() override { return impl_.memory(ctx_); }
  Runtime& runtime() override { return impl_.runtime; }
  World world() override { return ctx_.world; }
  bool check_rules() override { return impl_.pipeline.check_rules; }

 private:
  Pipeline::Impl& impl_;
  Context& ctx_;
};

}  // namespace slope
