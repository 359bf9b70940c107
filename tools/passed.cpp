#include "tools/passed.hpp"

#include <algorithm>

#include "lang/infer/infer.hpp"
#include "tools/tools.hpp"

namespace slope::api::tools {

namespace {

constexpr int most_calls = 6;               // of the library, one within the other
constexpr std::size_t most_functions = 16;  // of the library, for one call
constexpr int most_parameters = 4;          // of types within each other: Generator{…}

}  // namespace

bool PassedFunctions::is_passed_in(const Type* type, int depth) const {
  const DataType* data = as_data(type);
  if (!data || depth > most_parameters) return false;
  const Module* module = data->name->module;
  if (data->name->is_function && module != engine_.runtime.base && module != engine_.runtime.core) return true;
  return std::any_of(data->params.begin(), data->params.end(),
                     [&](const Type* parameter) { return is_passed_in(parameter, depth + 1); });
}

std::vector<Specialization*> PassedFunctions::reached_by(Specialization& callee) {
  std::vector<Specialization*> reached;
  seen_.clear();
  walk(callee, 0, reached);
  return reached;
}

void PassedFunctions::walk(Specialization& callee, int depth, std::vector<Specialization*>& reached) {
  const auto& types = callee.types->params;
  if (depth > most_calls || seen_.size() > most_functions || types.empty()) return;
  if (std::find(seen_.begin(), seen_.end(), &callee) != seen_.end()) return;
  // The callee itself is the library's.
  if (std::none_of(types.begin() + 1, types.end(), [&](const Type* type) { return is_passed_in(type, 0); })) return;
  seen_.push_back(&callee);
  infer::Inference inference(engine_.runtime, engine_.ctx, engine_.ctx.world);
  const infer::InferResult result = inference.infer(callee);
  if (engine_.ctx.failed()) engine_.ctx.take_error();
  if (!result.typed) return;
  for (const ir::Block& block : result.typed->blocks) {
    if (block.handler != ir::no_block) continue;  // what fails there is caught
    for (const std::uint32_t id : block.insts) {
      const ir::Inst& inst = result.typed->insts[id];
      Specialization* called = inst.op == ir::Op::invoke ? inst.aux_as<Specialization>() : nullptr;
      if (!called || !called->method || called->method->native) continue;
      if (!detail::is_host_text(engine_.runtime.sources, called->method->span)) {
        walk(*called, depth + 1, reached);
      } else if (std::find(reached.begin(), reached.end(), called) == reached.end()) {
        reached.push_back(called);
      }
    }
  }
}

}  // namespace slope::api::tools
