#include "lang/derive/compiler.hpp"

#include <chrono>
#include <cstdio>

#include "lang/ir/passes/passes.hpp"
#include "lang/support/dump.hpp"

namespace slope::derive {

std::uint64_t clock_nanoseconds() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

CompileClock::CompileClock(Compiler& compiler) : time_(compiler.compile_time) {
  if (time_.depth++ == 0) start_ = clock_nanoseconds();
}

CompileClock::~CompileClock() {
  if (--time_.depth == 0) time_.nanoseconds += clock_nanoseconds() - start_;
}

CodeInstance* valid_code(Context& ctx, Specialization& target) {
  if (target.current && target.current->valid_in(ctx.world)) return target.current;
  for (auto at = target.code.rbegin(); at != target.code.rend(); ++at)
    if ((*at)->valid_in(ctx.world)) return target.current = at->get();
  return nullptr;
}

void limit_to_worlds_of(Context& ctx, std::span<const Edge> edges, infer::InferResult& result) {
  for (const Edge& edge : edges) {
    if (edge.kind != Edge::Kind::callee) continue;
    // The code of a method holds wherever that of its callees does; that calls mean this method, in its own worlds.
    const Method& method = *edge.callee->method;
    result.min_world = std::max(result.min_world, method.min_world);
    result.max_world = std::min(result.max_world, method.max_world);
    if (const CodeInstance* code = valid_code(ctx, *edge.callee)) {
      result.min_world = std::max(result.min_world, code->min_world);
      result.max_world = std::min(result.max_world, code->max_world);
    }
  }
}

void dump(const char* stage, const ir::Function& function) {
  if (dump_wants(stage))
    std::fprintf(stderr, "; %s %s\n%s\n", stage, function.name.c_str(), ir::print(function).c_str());
}

std::vector<const Type*> parameter_types(const ir::Function& function) {
  std::vector<const Type*> types;
  for (std::uint32_t id : function.blocks[0].parameters) types.push_back(function.insts[id].type);
  return types;
}

}  // namespace slope::derive
