#include "tools/report.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "lang/derive/natives/call.hpp"
#include "lang/infer/infer.hpp"
#include "lang/infer/lattice.hpp"
#include "lang/runtime/call_text.hpp"
#include "lang/support/diagnostic.hpp"
#include "stdlib/native/native.hpp"
#include "tools/passed.hpp"
#include "tools/tools.hpp"

namespace slope::api::tools {

using detail::EngineState;
using detail::RawValue;
using ir::Op;

namespace {

// A walk ends after so many functions; what it found until then holds.
constexpr std::size_t most_functions = 4000;
// How far a failing call is followed into the library.
constexpr int most_library_calls = 12;

bool never_returns(const Type* type) { return type && type->kind == TypeKind::bottom; }

// Functions that never return on purpose.
bool raises_on_purpose(const Method& method) {
  static constexpr std::array names = {"error", "throw", "rethrow", "exit", "quit", "abort"};
  const std::string& name = method.name ? method.name->name : std::string();
  return name.starts_with("throw_") || std::find(names.begin(), names.end(), name) != names.end();
}

class Reporter {
 public:
  Reporter(EngineState& engine, const ReportOptions& options)
      : engine_(engine), runtime_(engine.runtime), checks_(engine), passed_(engine), options_(options) {}

  std::vector<Reported> run(Specialization& target) {
    visit(target, {});
    return std::move(found_);
  }

 private:
  std::unique_ptr<ir::Function> inferred(Specialization& target) {
    infer::Inference inference(runtime_, engine_.ctx, engine_.ctx.world);
    infer::InferResult result = inference.infer(target);
    if (engine_.ctx.failed()) engine_.ctx.take_error();
    return std::move(result.typed);
  }

  bool is_library(const Method& method) const {
    if (method.span.file != 0) return !detail::is_host_text(runtime_.sources, method.span);
    return method.module == runtime_.base || method.module == runtime_.core;
  }

  void visit(Specialization& target, const std::vector<Span>& way) {
    if (!seen_.insert(&target).second || seen_.size() > most_functions) return;
    const std::unique_ptr<ir::Function> code = inferred(target);
    if (!code) return;
    for (const ir::Block& block : code->blocks) {
      if (block.handler != ir::no_block) continue;  // what fails there is caught
      for (const std::uint32_t id : block.insts) look_at(*code, code->insts[id], way);
    }
  }

  void look_at(const ir::Function& fn, const ir::Inst& inst, const std::vector<Span>& way) {
    if (inst.scope != 0 || !detail::is_host_text(runtime_.sources, inst.span)) return;
    if (std::optional<Fault> fault = checks_.check(fn, inst)) {
      note(std::move(*fault), way);
      return;
    }
    if (inst.op == Op::load_global && options_.undefined_names) check_name(inst, way);
    if (inst.op == Op::call && options_.lookups && !never_returns(inst.type)) check_lookup(fn, inst, way);
    if (inst.op != Op::invoke) return;
    Specialization* callee = inst.aux_as<Specialization>();
    if (!callee || !callee->method) return;
    std::vector<Span> further = way;
    further.push_back(inst.span);
    if (!is_library(*callee->method)) return visit(*callee, further);
    for (Specialization* passed : passed_.reached_by(*callee)) visit(*passed, further);
    if (never_returns(inst.type) && !raises_on_purpose(*callee->method) && is_certain(fn, inst)) {
      std::set<const Specialization*> on_way;
      if (const std::string reason = why_it_fails(*callee, on_way, 0); !reason.empty())
        note({inst.span, "fails", "`" + call_text(*callee) + "` always fails: " + reason}, way);
    }
  }

  // Inference may have gone through the members of a union: then another call of the same place may return.
  static bool is_certain(const ir::Function& fn, const ir::Inst& inst) {
    return std::none_of(fn.insts.begin(), fn.insts.end(), [&](const ir::Inst& other) {
      return &other != &inst && (other.op == Op::call || other.op == Op::invoke) && other.type &&
             other.span.begin == inst.span.begin && other.span.end == inst.span.end && !never_returns(other.type);
    });
  }

  // The first call in the library's code that no method accepts.
  std::string why_it_fails(Specialization& target, std::set<const Specialization*>& on_way, int depth) {
    if (depth > most_library_calls || !on_way.insert(&target).second) return "";
    const std::unique_ptr<ir::Function> code = inferred(target);
    if (!code) return "";
    for (const ir::Block& block : code->blocks)
      for (const std::uint32_t id : block.insts) {
        const ir::Inst& inst = code->insts[id];
        if (const std::optional<Fault> fault = checks_.check(*code, inst)) return fault->message;
        Specialization* callee = inst.op == Op::invoke ? inst.aux_as<Specialization>() : nullptr;
        if (!callee || !never_returns(inst.type) || !callee->method || raises_on_purpose(*callee->method)) continue;
        if (!is_certain(*code, inst)) continue;
        if (const std::string reason = why_it_fails(*callee, on_way, depth + 1); !reason.empty()) return reason;
      }
    return "";
  }

  void check_name(const ir::Inst& inst, const std::vector<Span>& way) {
    const Binding* binding = inst.aux_as<Binding>();
    if (!binding || binding->value.defined() || binding->waiting != Binding::none_waiting) return;
    note({inst.span, "undefined", "`" + std::string(binding->name->name) + "` is not defined"}, way);
  }

  void check_lookup(const ir::Function& fn, const ir::Inst& inst, const std::vector<Span>& way) {
    if (inst.operands.empty()) return;
    std::string types;
    bool is_exact = true;
    for (std::size_t i = 0; i < inst.operands.size(); ++i) {
      const ir::Operand operand = inst.operands[i];
      if (operand.is_constant()) {
        if (i > 0)
          types += (i > 1 ? ", ::" : "::") + to_string(runtime_.types.dispatch_type(fn.constant_value(operand)));
        continue;
      }
      const Type* type = fn.type_of(operand, runtime_.types);
      if (!type || never_returns(type)) return;
      if (i > 0) types += (i > 1 ? ", ::" : "::") + to_string(type);
      const DataType* data = as_data(type);
      is_exact = is_exact && data && data->is_concrete;
    }
    if (is_exact) return;
    note({inst.span, "lookup", "the method is looked up when this runs: the types are not exact (" + types + ")"}, way);
  }

  void note(Fault fault, const std::vector<Span>& way) {
    for (const Reported& other : found_)
      if (other.fault.span.file == fault.span.file && other.fault.span.begin == fault.span.begin &&
          other.fault.span.end == fault.span.end && other.fault.code == fault.code)
        return;
    found_.push_back({std::move(fault), way});
  }

  EngineState& engine_;
  Runtime& runtime_;
  CallChecks checks_;
  PassedFunctions passed_;
  ReportOptions options_;
  std::set<const Specialization*> seen_;
  std::vector<Reported> found_;
};

}  // namespace

std::vector<Reported> report(EngineState& engine, Specialization& target, const ReportOptions& options) {
  const CollectionPause pause(engine.runtime.heap);
  return Reporter(engine, options).run(target);
}

}  // namespace slope::api::tools

namespace slope::api::detail {

namespace {

// report_text(f, types::Tuple, lookups::Bool) → (how many faults, the text)
bool report_text(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  if (count != 3) return ctx.argument_error("report_text takes a function, a tuple of types, and a Bool");
  Specialization* target = derive::inferred_call_of(ctx, args[0], args[1]);
  if (!target) return false;
  Runtime& runtime = *ctx.runtime;
  const std::vector<tools::Reported> found = tools::report(engine_of(ctx), *target, {args[2].bits != 0, true});
  std::string text;
  for (const tools::Reported& each : found) {
    text += (text.empty() ? "" : "\n") + each.fault.message + "\n" + render_place(each.fault.span, runtime.sources);
    for (auto at = each.way.rbegin(); at != each.way.rend(); ++at)
      text += "  called from " + runtime.sources.describe(*at) + "\n";
  }
  Rooted parts(runtime.heap);
  parts.values = {runtime.from_int(static_cast<std::int64_t>(found.size())), runtime.from_string(text)};
  return runtime.new_tuple(ctx, parts.values.data(), parts.values.size(), result);
}

const NativeInfo report_natives[] = {{"report_text", report_text, effect_all, nullptr}};

}  // namespace

void define_report_natives(EngineState& engine) { stdlib::define_all(engine.runtime, report_natives); }

}  // namespace slope::api::detail
