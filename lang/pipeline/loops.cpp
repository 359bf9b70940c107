// Loops that are hot while they run (on-stack replacement): the function goes on in a function of its own, from the
// loop's header, with the live registers as arguments.
#include "lang/ir/continuation.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/pipeline/impl.hpp"

namespace slope {

CodeInstance* Pipeline::Impl::enter(Context& ctx, CodeInstance* code, bool& later) {
  using Compiled = CodeGenerator::Compiled;
  if (!code || !code->valid_in(ctx.world)) return nullptr;
  if (code->boxed.load(std::memory_order_acquire)) return code;
  std::string why;
  const Compiled made = compile_hot(ctx, *code, why);
  if (made == Compiled::done || made == Compiled::begun) ++pipeline.statistics_.compiled;
  later = made == Compiled::begun || made == Compiled::waits;
  return made == Compiled::done ? code : nullptr;
}

// The rest of a loop in typed code, whose types are known.
CodeInstance* Pipeline::Impl::typed_loop(Context& ctx, const ir::Function& running, Specialization* target,
                                         std::uint32_t header, bool& later) {
  CodeInstance* from = target ? derive::valid_code(ctx, *target) : nullptr;
  if (!from || from->typed.get() != &running) return nullptr;
  std::vector<const Type*> key{runtime.types.value_int(header)};
  auto known = loops.find({&running, key});
  if (known != loops.end()) return enter(ctx, known->second, later);
  loops[{&running, key}] = nullptr;
  std::shared_ptr<ir::Function> rest = ir::continuation_at_loop(running, header);
  if (!rest) return nullptr;
  rest->typed = true;
  rest->return_type = running.return_type;
  rest->static_params = running.static_params;
  rest->insts[rest->blocks[0].parameters[0]].type = runtime.types.builtin().nothing;
  std::vector<const Type*> types;
  for (std::uint32_t id : rest->blocks[0].parameters) types.push_back(rest->insts[id].type);
  if (!ir::verify(*rest).empty()) return nullptr;  // not every loop can be continued so: this one stays interpreted
  infer::InferResult result;
  result.typed = rest->clone();
  result.return_type = from->return_type;
  result.effects = from->effects;
  result.min_world = from->min_world;
  result.max_world = from->max_world;
  result.edges = from->edges;
  derive::Synthetic& made = pipeline.synthetic(rest->name, types, &running);
  CodeInstance* const published = pipeline.publish(made, std::move(result), {});
  CodeInstance* const entered = enter(ctx, published, later);
  loops[{&running, key}] = entered || later ? published : nullptr;
  return entered;
}

CodeInstance* Pipeline::on_hot_loop(Context& ctx, const ir::Function& running, Specialization* target,
                                    std::uint32_t header, const Value* live, std::size_t live_count, bool& later) {
  const CollectionPause pause(runtime_.heap);
  const derive::CompileClock clock(*this);
  later = impl_->makes_library;
  if (mode == TierMode::interpret || later || !impl_->generator()) return nullptr;
  const Compiling compiling(runtime_);
  if (running.typed) return impl_->typed_loop(ctx, running, target, header, later);
  std::vector<const Type*> types{runtime_.types.builtin().nothing};
  for (std::size_t i = 0; i < live_count; ++i) {
    if (!live[i].defined()) return nullptr;
    types.push_back(runtime_.types.type_of_constant(live[i]));
    if (!runtime_.is_type_value(live[i])) types.back() = live[i].type;
  }
  // Keyed without the method: the function is the method's own IR, its static parameters follow from the
  // specialisation.
  std::vector<const Type*> key = types;
  if (target) key.insert(key.end(), target->static_params.begin(), target->static_params.end());
  key.push_back(runtime_.types.value_int(header));
  // Of a top-level statement it is kept until the statement ends.
  const bool top_level = !running.method;
  auto known = impl_->loops.find({&running, key});
  if (known != impl_->loops.end() && (top_level || !known->second || known->second->valid_in(ctx.world)))
    return impl_->enter(ctx, known->second, later);
  std::unique_ptr<ir::Function> rest = ir::continuation_at_loop(running, header);
  if (!rest) return nullptr;
  if (target) rest->static_params = target->static_params;
  const StageTime time(times, StageTimes::Stage::inference, [&] { return rest->name; });
  infer::Inference inference(runtime_, ctx, ctx.world, infer_options(ctx));
  infer::InferResult result = inference.infer_function(*rest, types);
  CodeInstance* code = nullptr;
  CodeInstance* entered = nullptr;
  if (result.typed) {
    opt::OptOptions options = opt_options(ctx, nullptr);
    options.is_ordinary = true;
    impl_->optimise(ctx, result, options);
    derive::Synthetic& made = synthetic(rest->name, types, &running);
    code = publish(made, std::move(result), {});
    entered = impl_->enter(ctx, code, later);
    if (!entered && !later) code = nullptr;
  }
  if (ctx.failed()) ctx.take_error();
  impl_->loops[{&running, key}] = code;
  return entered;
}

void Pipeline::toplevel_ended(const ir::Function& body) {
  const auto from = impl_->loops.lower_bound({&body, {}});
  auto to = from;
  for (; to != impl_->loops.end() && to->first.first == &body; ++to)
    if (to->second) runtime_.end_code(to->second);  // nobody else asks for it
  impl_->loops.erase(from, to);
}

}  // namespace slope
