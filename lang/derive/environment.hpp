// Where the transform of one derivative gets what it does not own (diff.hpp).
#pragma once

#include <vector>

#include "lang/derive/derivatives.hpp"

namespace slope::derive {

class DerivationEnvironment final : public diff::Environment {
 public:
  DerivationEnvironment(Derivatives& derivatives, Context& ctx) : derivatives_(derivatives), ctx_(ctx) {}

  const ir::Function* primal(Specialization& target) override { return derivatives_.primals.primal(ctx_, target); }
  const Type* return_type(const DataType* call_types) override {
    return infer::return_type(derivatives_.runtime, ctx_, call_types, ctx_.world,
                              derivatives_.compiler.infer_options(ctx_));
  }
  Halves halves(Specialization& callee, const std::vector<char>& active, diff::Refusal& refusal) override {
    const auto found = derivatives_.cache.halves(ctx_, callee, active, refusal);
    return found.halves ? *found.halves : Halves{};
  }
  Halves stacked_halves(Specialization& callee, const std::vector<char>& active, diff::Refusal& refusal) override {
    if (!derivatives_.cache.calls_itself(ctx_, callee)) return {};
    const auto found = derivatives_.cache.stacked_halves(ctx_, callee, active, refusal);
    return found.halves ? *found.halves : Halves{};
  }
  Tangent tangent(Specialization& callee, const std::vector<char>& active, std::size_t width,
                  diff::Refusal& refusal) override {
    const Tangent* found = derivatives_.cache.tangent(ctx_, callee, active, width, refusal);
    return found ? *found : Tangent{};
  }
  bool built_rule(const DataType* call_types, diff::BuiltRule& rule) override {
    return derivatives_.rules.find(ctx_, call_types, false, rule, edges);
  }
  std::int64_t memory_of_rule(const DataType* forward_step, const DataType* pullback) override {
    return reinterpret_cast<std::intptr_t>(derivatives_.stores.of_rule(ctx_, forward_step, pullback));
  }
  bool stores_into_globals(Specialization& target) override {
    const Stores& stores = derivatives_.stores.of(ctx_, target);
    return !stores.assigned.empty() || (stores.arguments & diff::global_memory) != 0;
  }
  diff::MemoryEffects& memory() override { return derivatives_.memory(ctx_); }
  Runtime& runtime() override { return derivatives_.runtime; }
  World world() override { return ctx_.world; }
  bool check_rules() override { return derivatives_.compiler.check_rules; }

  std::vector<Edge> edges;  // what the derivative rests on besides what the transform notes

 private:
  Derivatives& derivatives_;
  Context& ctx_;
};

}  // namespace slope::derive
