// The steps, in order:
//
//   text → parse → statements → lower → the interpreter runs them one after the other        run.cpp
//   a method when it is first called: lower                                                  RuntimeHooks::lower_method
//   a specialisation when its types are needed:                                              typed_code
//     infer (callees first) → optimise → what became decidable: infer and optimise again → publish
//   a specialisation when it is hot: typed code → machine code                               tiers.cpp, compile
//   a loop that is hot while it runs: the rest of it as a function, and then the same        loops.cpp
//   a derivative when it is first needed: the typed code of the primal, calls of rules kept →
//     differentiate → infer again → optimise → publish → machine code when it is hot         lang/derive/cache.cpp
//   code that a definition ended: freed                                                      release.cpp
//
// Derivatives and the rest of a loop are methods without a source: synthetic.cpp.
#include "lang/pipeline/pipeline.hpp"

#include "lang/pipeline/impl.hpp"
#include "lang/support/exception_safe.hpp"

namespace slope {

Pipeline::Impl::Impl(Pipeline& owner, std::function<CodeGenerator*()> generator)
    : pipeline(owner),
      runtime(owner.runtime_),
      load_generator(std::move(generator)),
      synthetics(runtime),
      derivatives(owner, runtime) {}

Pipeline::Pipeline(Runtime& runtime, std::function<CodeGenerator*()> code_generator) : runtime_(runtime) {
  impl_ = std::make_unique<Impl>(*this, std::move(code_generator));
  runtime.tiers = this;
  define_pipeline_natives(runtime);
  derive::define_natives(runtime);
}

void Pipeline::add_hooks(RuntimeHooks& hooks) {
  hooks.run_file = [this](Context& ctx, Module* module, FileId file, Value& result) {
    std::vector<Diagnostic> diagnostics;
    if (run(ctx, module, file, result, diagnostics)) return true;
    if (ctx.failed()) return false;
    return ctx.raise_error("syntax errors in the file\n" + render(diagnostics, runtime_.sources));
  };
  hooks.define_postponed = [this, define = std::move(hooks.define_postponed)](Context& ctx, Postponed what) {
    const bool before = impl_->makes_library.exchange(true);
    const Finally made([&] { impl_->makes_library = before; });
    return define(ctx, what);
  };
}

Pipeline::~Pipeline() {
  if (runtime_.tiers == this) runtime_.tiers = nullptr;
}

derive::Derivatives& Pipeline::derivatives() { return impl_->derivatives; }

Pipeline::Statistics Pipeline::statistics() const {
  return {statistics_.inferred, statistics_.compiled, impl_->derivatives.cache.made(), compile_time.nanoseconds};
}

void Pipeline::note_limit(const Specialization& target, infer::LimitPassed passed) {
  std::vector<infer::LimitPassed>& noted = impl_->limits[&target];
  for (const infer::LimitPassed& one : noted)
    if (one.limit == passed.limit) return;
  noted.push_back(passed);
}

std::vector<infer::LimitPassed> Pipeline::limits_of(const Specialization& target) const {
  const auto found = impl_->limits.find(&target);
  return found == impl_->limits.end() ? std::vector<infer::LimitPassed>() : found->second;
}

// --- infer ---

infer::InferOptions Pipeline::infer_options(Context& ctx) {
  infer::InferOptions options;
  options.on_finished = [this, &ctx](Specialization& target, infer::InferResult&& result) {
    ++statistics_.inferred;
    // Optimising one of the functions that call each other may infer them all again, this one too: then it is left as it
    // is, or that would never end.
    if (result.typed && infer::is_runnable(runtime_, target) && impl_->optimising.insert(&target).second) {
      const Finally ended([&] { impl_->optimising.erase(&target); });
      impl_->optimise(ctx, result, opt_options(ctx, &target));
    }
    infer::publish(runtime_, target, std::move(result));
  };
  options.on_limit = [this](const Specialization& target, infer::LimitPassed passed) { note_limit(target, passed); };
  return options;
}

CodeInstance* Pipeline::typed_code(Context& ctx, Specialization& target) {
  return without_stops([&] { return infer_code(ctx, target); });
}

CodeInstance* Pipeline::typed_code_unless_stopped(Context& ctx, Specialization& target) {
  return unless_stopped([&] { return infer_code(ctx, target); });
}

CodeInstance* Pipeline::infer_code(Context& ctx, Specialization& target) {
  const CollectionPause pause(runtime_.heap);
  if (CodeInstance* code = derive::valid_code(ctx, target)) return code;
  if (target.method->native) return nullptr;
  const Compiling compiling(runtime_);
  const derive::CompileClock clock(*this);
  const StageTime time(times, StageTimes::Stage::inference, [&] { return std::string(target.method->name->name); });
  infer::InferOptions options = infer_options(ctx);
  infer::Inference inference(runtime_, ctx, ctx.world, options);
  infer::InferResult result = inference.infer(target);
  if (!result.typed) return nullptr;
  options.on_finished(target, std::move(result));
  return derive::valid_code(ctx, target);
}

// --- optimise ---

opt::OptOptions Pipeline::opt_options(Context& ctx, const Specialization* self) {
  opt::OptOptions options;
  options.self = self;
  options.is_ordinary = self != nullptr;
  options.callee = [&ctx](Specialization& callee) -> const ir::Function* {
    CodeInstance* code = derive::valid_code(ctx, callee);
    return code ? code->typed.get() : nullptr;
  };
  return options;
}

void Pipeline::Impl::optimise(Context& ctx, infer::InferResult& result, const opt::OptOptions& options) {
  const StageTime time(pipeline.times, StageTimes::Stage::optimisation, [&] { return result.typed->name; });
  const bool promoted = opt::optimise(runtime, ctx, *result.typed, options);
  if (promoted && !refine(ctx, result, options)) return;
  // An operator that is expanded may become calls of others.
  for (int round = 0; round < 3; ++round) {
    const std::size_t known_edges = result.edges.size();
    const bool expanded = without_stops([&] {
      return pipeline.derivatives().calls_known_gradient(*result.typed) &&
             pipeline.derivatives().expand_operators(ctx, *result.typed, result.edges, true);
    });
    derive::limit_to_worlds_of(ctx, std::span(result.edges).subspan(known_edges), result);
    if (!expanded && (round > 0 || refining >= 3 || !pipeline.has_decidable_calls(*result.typed))) return;
    if (!refine(ctx, result, options)) return;
  }
}

bool Pipeline::Impl::refine(Context& ctx, infer::InferResult& result, const opt::OptOptions& options) {
  const StageTime time(pipeline.times, StageTimes::Stage::inference, [&] { return result.typed->name; });
  const auto infer = [&] {
    const Restored deeper(refining, refining + 1);
    return infer::Inference(runtime, ctx, ctx.world, pipeline.infer_options(ctx)).reinfer(*result.typed);
  };
  infer::InferResult again = infer();
  if (!again.typed) return false;
  const StageTime second(pipeline.times, StageTimes::Stage::optimisation, [&] { return again.typed->name; });
  opt::optimise(runtime, ctx, *again.typed, options);
  result.typed = std::move(again.typed);
  if (again.return_type && is_subtype(runtime.types, again.return_type, result.return_type))
    result.return_type = again.return_type;
  result.effects &= again.effects;
  result.min_world = std::max(result.min_world, again.min_world);
  result.max_world = std::min(result.max_world, again.max_world);
  result.edges.insert(result.edges.end(), again.edges.begin(), again.edges.end());
  return true;
}

bool Pipeline::has_decidable_calls(const ir::Function& function) const {
  for (const ir::Block& block : function.blocks) {
    for (std::uint32_t id : block.insts) {
      const ir::Inst& inst = function.insts[id];
      if (inst.op != ir::Op::call || !inst.operands[0].is_constant()) continue;
      Value callee = function.constant_value(inst.operands[0]);
      if (!callee.defined() || callee.type == runtime_.types.builtin().builtin_function) continue;
      bool known = true;
      for (ir::Operand o : inst.operands) {
        if (o.is_constant() && function.constant_value(o).defined()) continue;  // also a type
        const Type* t = function.type_of(o, runtime_.types);
        known = known && t && is_concrete(t);
      }
      if (known) return true;
    }
  }
  return false;
}

// --- machine code ---

CodeGenerator* Pipeline::Impl::generator() {
  if (!asked_for_generator) {
    asked_for_generator = true;
    if (load_generator) code_generator = load_generator();
  }
  return code_generator;
}

CodeGenerator* Pipeline::generator() { return impl_->generator(); }

void Pipeline::dump_stages(const Specialization& target, const CodeInstance& code) {
  if (target.method->ir) derive::dump("ir", *target.method->ir);
  derive::dump("typed", *code.typed);
}

CodeInstance* Pipeline::compile(Context& ctx, Specialization& target, std::string& why) {
  const CollectionPause pause(runtime_.heap);
  const Compiling compiling(runtime_);
  const derive::CompileClock clock(*this);
  CodeInstance* code = typed_code_unless_stopped(ctx, target);
  if (!code) {
    why = "its types could not be inferred";
  } else if (!code->boxed.load(std::memory_order_acquire)) {
    CodeGenerator* generator = impl_->generator();
    if (!generator) {
      why = "there is no code generator";
      code = nullptr;
    } else if (dump_stages(target, *code); generator->compile(ctx, *code, why)) {
      ++statistics_.compiled;
    } else {
      code = nullptr;
    }
  }
  return code;
}

DirectCode Pipeline::direct(Context& ctx, CodeInstance& code, std::string& why, std::span<const std::uint8_t> steps) {
  const CollectionPause pause(runtime_.heap);
  if (CodeGenerator* generator = impl_->generator()) return generator->direct(ctx, code, steps, why);
  why = "there is no code generator";
  return {};
}

}  // namespace slope
