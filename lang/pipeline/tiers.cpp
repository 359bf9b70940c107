// When code is compiled.
#include "lang/ir/ir.hpp"
#include "lang/pipeline/impl.hpp"
#include "lang/support/tuning.hpp"

namespace slope {

namespace {

constexpr std::size_t most_arguments = tuning::compiled_arguments;

}  // namespace

void Pipeline::on_hot(Context& ctx, Specialization& target) {
  if (mode == TierMode::interpret || target.compile_failed || target.method->native) return;
  if (ctx.interrupt.load(std::memory_order_relaxed)) return;  // it ends before it would run
  if (impl_->makes_library) return;
  if (target.types->params.size() > most_arguments) {
    target.compile_failed = true;
    target.failure = "a call of so many arguments stays interpreted";
    return;
  }
  std::string why;
  if (mode == TierMode::automatic && !impl_->worth_compiling(ctx, target, call_threshold)) return;
  switch (impl_->compile_hot(ctx, target, why)) {
    case CodeGenerator::Compiled::done:
      return;
    case CodeGenerator::Compiled::begun:
      target.calls = call_threshold - 1;  // the next call looks whether it is there
      return;
    case CodeGenerator::Compiled::waits:
      target.calls = call_threshold / 2;  // for others, or for being worth its time
      return;
    case CodeGenerator::Compiled::failed:
      break;
  }
  if (ctx.interrupt.load(std::memory_order_relaxed)) return;
  target.compile_failed = true;
  target.failure = why;
  if (ctx.failed()) ctx.take_error();  // inference of a method that does not lower: calling it reports that
}

CodeGenerator::Compiled Pipeline::Impl::compile_hot(Context& ctx, CodeInstance& code, std::string& why) {
  using Compiled = CodeGenerator::Compiled;
  CodeGenerator* const made_by = generator();
  if (!made_by) {
    why = "there is no code generator";
    return Compiled::failed;
  }
  // Who wants everything compiled waits for it.
  if (pipeline.mode != TierMode::automatic) return made_by->compile(ctx, code, why) ? Compiled::done : Compiled::failed;
  return made_by->compile_later(ctx, code, why);
}

CodeGenerator::Compiled Pipeline::Impl::compile_hot(Context& ctx, Specialization& target, std::string& why) {
  using Compiled = CodeGenerator::Compiled;
  if (pipeline.mode != TierMode::automatic)
    return pipeline.compile(ctx, target, why) ? Compiled::done : Compiled::failed;
  const CollectionPause pause(runtime.heap);
  const Compiling compiling(runtime);
  const derive::CompileClock clock(pipeline);
  CodeInstance* code = pipeline.typed_code_unless_stopped(ctx, target);
  if (!code) {
    why = "its types could not be inferred";
    return Compiled::failed;
  }
  if (code->boxed.load(std::memory_order_acquire)) return Compiled::done;
  const Compiled made = compile_hot(ctx, *code, why);
  if (made == Compiled::done || made == Compiled::begun) {
    pipeline.dump_stages(target, *code);
    ++pipeline.statistics_.compiled;
  }
  return made;
}

// Machine code costs milliseconds. A small function without loops runs long enough as optimised typed code in the
// interpreter (a call of `+` is one instruction there); most of them never get hot once their callers are compiled.
bool Pipeline::Impl::worth_compiling(Context& ctx, Specialization& target, std::uint32_t calls) {
  constexpr std::uint64_t enough = tuning::compile_instructions;
  CodeInstance* code = pipeline.typed_code_unless_stopped(ctx, target);
  if (!code || !code->typed) return true;
  for (const ir::Block& block : code->typed->blocks)
    if (block.is_loop_header) return true;
  std::uint64_t& spent = interpreted[&target];
  spent += std::uint64_t{calls} * code->typed->insts.size();
  return spent >= enough;
}

}  // namespace slope
