// The steps, in order:
//
//   text              parse → statements → lower → the interpreter runs them, one after the other
//   a method          lowered when it is first called
//   a specialisation  when it is hot: infer (callees first) → optimise → generate code
//   a gradient        when it is first needed (lang/derive/cache.cpp): infer → optimise, but keep calls of rules →
//                     differentiate → infer again → optimise → generate code
#include "lang/pipeline/pipeline.hpp"

#include <chrono>
#include <cstdio>
#include <optional>

#include "lang/ir/continuation.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/lower/generated.hpp"
#include "lang/lower/lower.hpp"
#include "lang/pipeline/impl.hpp"
#include "lang/support/dump.hpp"
#include "lang/support/tuning.hpp"
#include "lang/syntax/image.hpp"
#include "lang/syntax/parse.hpp"

namespace slope {

Pipeline::Impl::Impl(Pipeline& owner, std::function<CodeGenerator*()> generator)
    : pipeline(owner), runtime(owner.runtime_), load_generator(std::move(generator)) {
  root_key = runtime.heap.add_root_tracer([this](Tracer& tracer) {
    if (!runtime.hooks().trace_function) return;
    for (const auto& synthetic : synthetics)
      for (const auto& code : synthetic->target->code)
        if (code->typed) runtime.hooks().trace_function(*code->typed, tracer);
    for (const auto& [target, primal] : primals)
      if (primal.code) runtime.hooks().trace_function(*primal.code, tracer);
    for (const auto& [target, call] : rule_calls)
      if (call.code) runtime.hooks().trace_function(*call.code, tracer);
    for (const auto& [target, source] : sources) runtime.hooks().trace_function(*source, tracer);
    for (const auto& [types, built] : built_rules) tracer.value(built.rule);
  });
}

Pipeline::Impl::~Impl() { runtime.heap.remove_root_tracer(root_key); }

Pipeline::Pipeline(Runtime& runtime, std::function<CodeGenerator*()> code_generator) : runtime_(runtime) {
  impl_ = std::make_unique<Impl>(*this, std::move(code_generator));
  runtime.tiers = this;
  define_pipeline_natives(runtime);
}

void Pipeline::add_hooks(RuntimeHooks& hooks) {
  hooks.run_file = [this](Context& ctx, Module* module, FileId file, Value& result) {
    std::vector<Diagnostic> diagnostics;
    if (run(ctx, module, file, result, diagnostics)) return true;
    if (ctx.failed()) return false;
    return ctx.raise_error("syntax errors in the file\n" + render(diagnostics, runtime_.sources));
  };
}

Pipeline::~Pipeline() {
  if (runtime_.tiers == this) runtime_.tiers = nullptr;
}

bool Pipeline::run(Context& ctx, Module* module, FileId file, Value& result, std::vector<Diagnostic>& diagnostics) {
  syntax::ParseResult parsed = syntax::parse(runtime_.sources, file);
  if (!parsed.ok()) {
    diagnostics = std::move(parsed.diagnostics);
    return false;
  }
  return run_parsed(ctx, module, std::make_shared<syntax::Ast>(std::move(parsed.ast)), result, diagnostics);
}

bool Pipeline::run_parsed(Context& ctx, Module* module, std::shared_ptr<syntax::Ast> ast, Value& result,
                          std::vector<Diagnostic>& diagnostics) {
  result = runtime_.nothing();
  World outer = ctx.world;
  std::vector<syntax::NodeId> statements(ast->children(ast->root).begin(), ast->children(ast->root).end());
  bool ok = true;
  for (syntax::NodeId statement : statements) {
    ctx.world = runtime_.world();
    std::unique_ptr<ir::Function> body = lower::lower_statement(runtime_, ctx, module, ast, statement, diagnostics);
    if (!body) {
      ok = !ctx.failed() && diagnostics.empty();
      if (ok) continue;
      break;
    }
    ctx.world = runtime_.world();
    ok = runtime_.interpreter->run_toplevel(ctx, *body, result);
    if (!ok) break;
  }
  ctx.world = outer;
  return ok;
}

bool Pipeline::incomplete(const SourceMap& sources, FileId file) { return syntax::parse(sources, file).incomplete; }

bool Pipeline::load_standard_library(Context& ctx, std::span<const LibraryFile> files, std::string_view index,
                                     std::vector<Diagnostic>& diagnostics) {
  std::vector<lower::LibraryPart> parts;
  for (const LibraryFile& library : files) {
    lower::LibraryPart part;
    part.image = library.image;
    std::string name(library.name);
    part.file = library.image.empty() ? runtime_.sources.add(std::move(name), std::string(library.text))
                                      : runtime_.sources.add_shared(std::move(name), library.text);
    if (!syntax::is_image(library.image)) {
      index = {};
      syntax::ParseResult parsed = syntax::parse(runtime_.sources, part.file);
      if (!parsed.ok()) {
        diagnostics = std::move(parsed.diagnostics);
        return false;
      }
      part.ast = std::make_shared<syntax::Ast>(std::move(parsed.ast));
    }
    parts.push_back(std::move(part));
  }
  return lower::open_library(runtime_, ctx, std::move(parts), index);
}

// --- tiers ---------------------------------------------------------------------------------------------------------

void Pipeline::Impl::dump_stages(const Specialization& target, const CodeInstance& code) {
  if (target.method->ir) dump("ir", *target.method->ir);
  dump("typed", *code.typed);
}

void Pipeline::Impl::dump(const char* stage, const ir::Function& function) {
  if (dump_wants(stage))
    std::fprintf(stderr, "; %s %s\n%s\n", stage, function.name.c_str(), ir::print(function).c_str());
}

CodeGenerator* Pipeline::Impl::generator() {
  if (!asked_for_generator) {
    asked_for_generator = true;
    if (load_generator) code_generator = load_generator();
  }
  return code_generator;
}

CodeInstance* Pipeline::Impl::valid_code(Context& ctx, Specialization& target) const {
  if (target.current && target.current->valid_in(ctx.world)) return target.current;
  for (auto at = target.code.rbegin(); at != target.code.rend(); ++at)
    if ((*at)->valid_in(ctx.world)) return target.current = at->get();
  return nullptr;
}

opt::OptOptions Pipeline::Impl::opt_options(const Specialization* self) {
  opt::OptOptions options;
  options.self = self;
  options.callee = [this](Specialization& callee) -> const ir::Function* {
    CodeInstance* code = valid_code(runtime.context, callee);
    return code ? code->typed.get() : nullptr;
  };
  return options;
}

bool Pipeline::Impl::has_decidable_calls(const ir::Function& function) const {
  for (const ir::Block& block : function.blocks) {
    for (std::uint32_t id : block.insts) {
      const ir::Inst& inst = function.insts[id];
      if (inst.op != ir::Op::call || !inst.operands[0].is_constant()) continue;
      Value callee = function.constant_value(inst.operands[0]);
      if (!callee.defined() || callee.type == runtime.types.builtin().builtin_function) continue;
      bool known = true;
      for (ir::Operand o : inst.operands) {
        if (o.is_constant() && function.constant_value(o).defined()) continue;  // also a type
        const Type* t = function.type_of(o, runtime.types);
        known = known && t && is_concrete(t);
      }
      if (known) return true;
    }
  }
  return false;
}

void Pipeline::Impl::optimise(Context& ctx, infer::InferResult& result, const opt::OptOptions& options) {
  opt::optimise(runtime, *result.typed, options);
  bool expanded = calls_known_gradient(*result.typed) && expand_operators(ctx, *result.typed, result.edges, true);
  // What the second inference infers anew may want one, too; the bound is on the way down.
  if (!expanded && (refining >= 3 || !has_decidable_calls(*result.typed))) return;
  ++refining;
  infer::InferResult again = infer::Inference(runtime, ctx, ctx.world, infer_options()).reinfer(*result.typed);
  --refining;
  if (!again.typed) return;
  opt::optimise(runtime, *again.typed, options);
  result.typed = std::move(again.typed);
  if (again.return_type && is_subtype(runtime.types, again.return_type, result.return_type))
    result.return_type = again.return_type;
  result.effects &= again.effects;
  result.min_world = std::max(result.min_world, again.min_world);
  result.max_world = std::min(result.max_world, again.max_world);
  result.edges.insert(result.edges.end(), again.edges.begin(), again.edges.end());
}

infer::InferOptions Pipeline::Impl::infer_options() {
  infer::InferOptions options;
  options.on_finished = [this](Specialization& target, infer::InferResult&& result) {
    ++pipeline.statistics_.inferred;
    if (result.typed && infer::is_runnable(runtime, target)) optimise(runtime.context, result, opt_options(&target));
    infer::publish(runtime, target, std::move(result));
  };
  options.on_limit = [this](const Specialization& target, infer::LimitPassed passed) { note_limit(target, passed); };
  return options;
}

namespace {

// Tells whoever samples this thread that it compiles.
class Compiling {
 public:
  explicit Compiling(Runtime& runtime) : runtime_(runtime), before_(runtime.compiles) { runtime.compiles = true; }
  ~Compiling() { runtime_.compiles = before_; }
  Compiling(const Compiling&) = delete;

 private:
  Runtime& runtime_;
  bool before_;
};

}  // namespace

CodeInstance* Pipeline::typed_code(Context& ctx, Specialization& target) {
  const CollectionPause pause(runtime_.heap);
  if (CodeInstance* code = impl_->valid_code(ctx, target)) return code;
  if (target.method->native) return nullptr;
  const Compiling compiling(runtime_);
  const Impl::CompileClock clock(*this);
  infer::InferOptions options = impl_->infer_options();
  infer::Inference inference(runtime_, ctx, ctx.world, options);
  infer::InferResult result = inference.infer(target);
  if (!result.typed) return nullptr;
  options.on_finished(target, std::move(result));
  return impl_->valid_code(ctx, target);
}

CodeInstance* Pipeline::compile(Context& ctx, Specialization& target, std::string& why) {
  const CollectionPause pause(runtime_.heap);
  const Compiling compiling(runtime_);
  const Impl::CompileClock clock(*this);
  CodeInstance* code = typed_code(ctx, target);
  if (!code) {
    why = "its types could not be inferred";
  } else if (!code->boxed.load(std::memory_order_acquire)) {
    CodeGenerator* generator = impl_->generator();
    if (!generator) {
      why = "there is no code generator";
      code = nullptr;
    } else if (impl_->dump_stages(target, *code); generator->compile(ctx, *code, why)) {
      ++statistics_.compiled;
    } else {
      code = nullptr;
    }
  }
  return code;
}

std::uint64_t clock_nanoseconds() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

Pipeline::Impl::CompileClock::CompileClock(Pipeline& pipeline) : pipeline_(pipeline), start_(0) {
  if (pipeline.impl_->compiling++ == 0) start_ = clock_nanoseconds();
}

Pipeline::Impl::CompileClock::~CompileClock() {
  if (--pipeline_.impl_->compiling == 0) pipeline_.statistics_.compile_nanoseconds += clock_nanoseconds() - start_;
}

DirectCode Pipeline::direct(Context& ctx, CodeInstance& code, std::string& why, std::span<const std::uint8_t> steps) {
  const CollectionPause pause(runtime_.heap);
  if (CodeGenerator* generator = impl_->generator()) return generator->direct(ctx, code, steps, why);
  why = "there is no code generator";
  return {};
}

const Type* Pipeline::return_type(Context& ctx, const DataType* call_types) {
  const CollectionPause pause(runtime_.heap);
  if (!ctx.generating) return infer::return_type(runtime_, ctx, call_types, ctx.world, impl_->infer_options());
  // Of the program that wants the code; what the answer depends on, the code depends on.
  infer::InferResult found =
      infer::infer_call(runtime_, ctx, call_types, ctx.generating->world, impl_->infer_options());
  Source& source = *ctx.generating->source;
  source.min_world = std::max(source.min_world, found.min_world);
  source.max_world = std::min(source.max_world, found.max_world);
  source.edges.insert(source.edges.end(), found.edges.begin(), found.edges.end());
  return found.return_type;
}

void Pipeline::on_hot(Context& ctx, Specialization& target) {
  if (mode == TierMode::interpret || target.compile_failed || target.method->native) return;
  std::string why;
  if (mode == TierMode::automatic && !impl_->worth_compiling(ctx, target, call_threshold)) return;
  if (compile(ctx, target, why)) return;
  target.compile_failed = true;
  target.failure = why;
  if (ctx.failed()) ctx.take_error();  // inference of a method that does not lower: calling it reports that
}

// Machine code costs milliseconds. A small function without loops runs long enough as optimised typed code in the
// interpreter (a call of `+` is one instruction there); most of them never get hot once their callers are compiled.
bool Pipeline::Impl::worth_compiling(Context& ctx, Specialization& target, std::uint32_t calls) {
  constexpr std::uint64_t enough = tuning::compile_instructions;
  CodeInstance* code = pipeline.typed_code(ctx, target);
  if (!code || !code->typed) return true;
  for (const ir::Block& block : code->typed->blocks)
    if (block.is_loop_header) return true;
  std::uint64_t& spent = interpreted[&target];
  spent += std::uint64_t{calls} * code->typed->insts.size();
  return spent >= enough;
}

// The rest of a loop in typed code, whose types are known.
CodeInstance* Pipeline::Impl::typed_loop(Context& ctx, const ir::Function& running, Specialization* target,
                                         std::uint32_t header) {
  CodeInstance* from = target ? valid_code(ctx, *target) : nullptr;
  if (!from || from->typed.get() != &running) return nullptr;
  std::vector<const Type*> key{runtime.types.value_int(header)};
  auto known = loops.find({&running, key});
  if (known != loops.end()) return known->second && known->second->valid_in(ctx.world) ? known->second : nullptr;
  CodeInstance*& code = loops[{&running, key}];
  code = nullptr;
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
  Synthetic& made = synthetic(rest->name, types, &running);
  CodeInstance* published = publish(made, std::move(result), {});
  std::string why;
  if (generator()->compile(ctx, *published, why)) code = published;
  ++pipeline.statistics_.compiled;
  return code;
}

CodeInstance* Pipeline::on_hot_loop(Context& ctx, const ir::Function& running, Specialization* target,
                                    std::uint32_t header, const Value* live, std::size_t live_count) {
  const CollectionPause pause(runtime_.heap);
  const Impl::CompileClock clock(*this);
  if (mode == TierMode::interpret || !impl_->generator()) return nullptr;
  const Compiling compiling(runtime_);
  if (running.typed) return impl_->typed_loop(ctx, running, target, header);
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
  bool top_level = !running.method;
  if (!top_level) {
    auto known = impl_->loops.find({&running, key});
    if (known != impl_->loops.end() && (!known->second || known->second->valid_in(ctx.world))) return known->second;
  }
  std::unique_ptr<ir::Function> rest = ir::continuation_at_loop(running, header);
  if (!rest) return nullptr;
  if (target) rest->static_params = target->static_params;
  infer::Inference inference(runtime_, ctx, ctx.world, impl_->infer_options());
  infer::InferResult result = inference.infer_function(*rest, types);
  CodeInstance* code = nullptr;
  if (result.typed) {
    impl_->optimise(ctx, result, impl_->opt_options(nullptr));
    Impl::Synthetic& synthetic = impl_->synthetic(rest->name, types, &running);
    code = impl_->publish(synthetic, std::move(result), {});
    std::string why;
    if (!impl_->generator()->compile(ctx, *code, why)) code = nullptr;
    ++statistics_.compiled;
  }
  if (ctx.failed()) ctx.take_error();
  if (!top_level)
    impl_->loops[{&running, key}] = code;
  else if (code)
    runtime_.end_code(code);  // nobody else asks for it
  return code;
}

Pipeline::Impl::Synthetic& Pipeline::Impl::synthetic(const std::string& name,
                                                     std::span<const Type* const> parameter_types,
                                                     const ir::Function* like) {
  if (auto known = spare.find({name, {parameter_types.begin() + 1, parameter_types.end()}}); known != spare.end()) {
    Synthetic& again = *known->second.back();
    known->second.pop_back();
    if (known->second.empty()) spare.erase(known);
    again.serial = next_serial++;
    again.method->module = like && like->method ? like->method->module : runtime.main;
    again.method->span = like ? like->span : Span{};
    again.target->compile_failed = false;
    again.target->calls = 0;
    return again;
  }
  auto made = std::make_unique<Synthetic>();
  made->serial = next_serial++;
  const Symbol* symbol = runtime.symbols.gensym(name);
  const DataType* callee_type = runtime.types.function_type(symbol, runtime.base);
  made->callee = callee_type->instance;
  std::vector<const Type*> types(parameter_types.begin(), parameter_types.end());
  types[0] = callee_type;
  made->method = std::make_unique<Method>();
  Method& method = *made->method;
  method.name = runtime.symbol(name);
  method.module = like && like->method ? like->method->module : runtime.main;
  method.span = like ? like->span : Span{};
  method.signature = runtime.types.tuple(types);
  method.arg_count = static_cast<std::uint32_t>(types.size());
  auto target = std::make_unique<Specialization>();
  target->method = &method;
  target->types = runtime.types.tuple(types);
  made->target = target.get();
  by_callee[callee_type] = target.get();
  method.specializations.push_back(std::move(target));
  synthetics.push_back(std::move(made));
  return *synthetics.back();
}

Specialization* Pipeline::derivative_of(Value callee) const {
  const auto found = impl_->by_callee.find(callee.type);
  return found == impl_->by_callee.end() ? nullptr : found->second;
}

CodeInstance* Pipeline::Impl::publish(Synthetic& synthetic, infer::InferResult&& result,
                                      const std::vector<Edge>& more_edges) {
  result.edges.insert(result.edges.end(), more_edges.begin(), more_edges.end());
  return infer::publish(runtime, *synthetic.target, std::move(result));
}

}  // namespace slope
