#include "embed/host/native_check.hpp"

#include <algorithm>

#include "embed/engine_state.hpp"

#include "lang/diff/memory.hpp"
#include "lang/ir/cfg.hpp"

namespace slope::api::detail {

using ir::Op;

namespace {

// Blocks from which the function can return.
std::vector<char> returning_blocks(const ir::Function& function) {
  std::vector<std::vector<ir::BlockId>> predecessors(function.blocks.size());
  std::vector<ir::BlockId> work;
  for (ir::BlockId id = 0; id < function.blocks.size(); ++id) {
    const ir::Block& block = function.blocks[id];
    for (const ir::Edge& edge : block.edges) predecessors[edge.target].push_back(id);
    if (block.handler != ir::no_block) predecessors[block.handler].push_back(id);
    if (block.terminator != ~0u && function.insts[block.terminator].op == Op::ret) work.push_back(id);
  }
  std::vector<char> returning(function.blocks.size(), 0);
  while (!work.empty()) {
    ir::BlockId id = work.back();
    work.pop_back();
    if (returning[id]) continue;
    returning[id] = 1;
    for (ir::BlockId before : predecessors[id]) work.push_back(before);
  }
  return returning;
}

bool never_returns(const ir::Inst& inst) { return inst.type && inst.type->kind == TypeKind::bottom; }

}  // namespace

bool NativeCheck::passes(Specialization& target) { return check(target, Span{}); }

bool NativeCheck::check(Specialization& target, Span caller) {
  if (target.method->native || !seen_.insert(&target).second) return true;
  CodeInstance* code = pipeline_.typed_code(ctx_, target);
  if (!code || !code->typed) {
    where = is_library(target.method->span) && caller.file != 0 ? caller : target.method->span;
    why = "the types of `" + std::string(target.method->name ? target.method->name->name : "a function") +
          "` could not be inferred";
    return false;
  }
  constexpr std::uint32_t seen = effect_throws | effect_writes | effect_diverges;
  if (code->constant_result.defined() && !(code->effects & seen)) return true;
  return check(*code->typed, caller);
}

bool NativeCheck::check(const ir::Function& function, Span caller) {
  const std::vector<char> returning = returning_blocks(function);
  const ir::Cfg cfg = ir::build_cfg(function);
  for (ir::BlockId id : cfg.order) {
    if (!returning[id]) continue;
    const ir::Block& block = function.blocks[id];
    if (block.handler != ir::no_block) catches = true;
    for (std::uint32_t i : block.insts) {
      const ir::Inst& inst = function.insts[i];
      if (never_returns(inst)) break;
      if (inst.op == Op::native && takes_values(*inst.aux_as<NativeInfo>())) gives_values = true;
      if (inst.op == Op::call || inst.op == Op::call_splat)
        return refuse(function, inst, caller, dispatched(function, inst));
      if (std::string what; for_workspace && reaches_outside(inst, what)) return refuse(function, inst, caller, what);
      if (inst.op == Op::invoke && !check(*inst.aux_as<Specialization>(), of_the_host(function, inst, caller)))
        return false;
    }
  }
  return true;
}

bool NativeCheck::assigns_global(Specialization& target) {
  if (target.method->native || !seen_.insert(&target).second) return false;
  const CodeInstance* code = pipeline_.typed_code(ctx_, target);
  if (!code || !code->typed) return false;
  for (const ir::Block& block : code->typed->blocks)
    for (std::uint32_t i : block.insts) {
      const ir::Inst& inst = code->typed->insts[i];
      if (inst.op == Op::store_global) where = of_the_host(*code->typed, inst, Span{});
      if (inst.op == Op::store_global || (inst.op == Op::invoke && assigns_global(*inst.aux_as<Specialization>())))
        return true;
    }
  return false;
}

Span NativeCheck::find_store(Specialization& target, const Type* array) {
  Span found = target.method->span;
  seen_.clear();
  find_store(target, array, Span{}, found);
  return found;
}

bool NativeCheck::find_store(Specialization& target, const Type* array, Span caller, Span& found) {
  if (target.method->native || !seen_.insert(&target).second) return false;
  const CodeInstance* code = pipeline_.typed_code(ctx_, target);
  if (!code || !code->typed) return false;
  const ir::Function& function = *code->typed;
  TypeTable& types = ctx_.runtime->types;
  for (const ir::Block& block : function.blocks)
    for (std::uint32_t i : block.insts) {
      const ir::Inst& inst = function.insts[i];
      const Span here = of_the_host(function, inst, caller);
      if (inst.op == Op::invoke) {
        Specialization& callee = *inst.aux_as<Specialization>();
        const diff::MemorySummary kept = pipeline_.memory(ctx_).of(callee);
        for (std::size_t k = 0; k < inst.operands.size(); ++k) {
          if ((kept.stored & diff::parameter_mask(k)) == 0 || function.type_of(inst.operands[k], types) != array)
            continue;
          found = here;
          find_store(callee, array, here, found);
          return true;
        }
        continue;
      }
      const bool stores = inst.op == Op::store_global || inst.op == Op::set_field || inst.op == Op::set_field_at ||
                          inst.op == Op::array_set || inst.op == Op::array_init || inst.op == Op::cell_set;
      if (!stores) continue;
      for (std::size_t k = inst.op == Op::store_global ? 0 : 1; k < inst.operands.size(); ++k) {
        if (function.type_of(inst.operands[k], types) != array) continue;
        found = here;
        return true;
      }
    }
  return false;
}

bool NativeCheck::only_computes(const ir::Function& function) {
  if (!computing_.insert(&function).second) return false;  // it calls itself; or it is known, and simpler is enough
  const ir::Cfg cfg = ir::build_cfg(function);
  for (ir::BlockId id : cfg.order) {
    for (ir::BlockId next : cfg.successors[id])
      if (cfg.position[next] <= cfg.position[id]) return false;
    for (std::uint32_t i : function.blocks[id].insts) {
      const ir::Inst& inst = function.insts[i];
      if (inst.op != Op::invoke) {
        if (ir::op_effects(inst) != effect_none) return false;
        continue;
      }
      const CodeInstance* code = pipeline_.typed_code(ctx_, *inst.aux_as<Specialization>());
      if (!code || !code->typed || !only_computes(*code->typed)) return false;
    }
  }
  return true;
}

bool NativeCheck::takes_values(const NativeInfo& native) const {
  for (const auto& host : engine_of(ctx_).host_functions) {
    if (&host->info != &native) continue;
    const std::span<const Kind> kinds = host->function->parameters();
    return std::find(kinds.begin(), kinds.end(), Kind::any) != kinds.end();
  }
  return false;
}

bool NativeCheck::reaches_outside(const ir::Inst& inst, std::string& what) const {
  if (inst.op == Op::store_global) {
    what = "a global is assigned here";
    return true;
  }
  if (inst.op != Op::native) return false;
  const NativeInfo& native = *inst.aux_as<NativeInfo>();
  if (native.is_context_free || !(native.effects & (effect_writes | effect_reads))) return false;
  what = native.host ? "this function of the host is not declared pure()"
                     : "`" + std::string(native.name) + "` reaches outside the function";
  return true;
}

std::string NativeCheck::dispatched(const ir::Function& function, const ir::Inst& inst) {
  TypeTable& types = ctx_.runtime->types;
  const auto* callee = as_data(function.type_of(inst.operands[0], types));
  if (!callee || !callee->is_concrete || !callee->instance.defined())
    return "the function called here is known only when it runs: its type is " +
           to_string(function.type_of(inst.operands[0], types));
  std::string given;
  for (std::size_t i = 1; i < inst.operands.size(); ++i)
    given += (i > 1 ? ", " : "") + to_string(function.type_of(inst.operands[i], types));
  return "the call of `" + ctx_.runtime->show(ctx_, callee->instance) +
         "` is dispatched when it runs: the types of its arguments are (" + given + ")";
}

bool NativeCheck::refuse(const ir::Function& function, const ir::Inst& inst, Span caller, std::string reason) {
  where = of_the_host(function, inst, caller);
  why = std::move(reason);
  if (is_library(inst.span) && inst.span.file != where.file)
    why += " (in the library, " + ctx_.runtime->sources.describe(inst.span) + ")";
  return false;
}

bool NativeCheck::is_library(Span span) const { return !is_host_text(ctx_.runtime->sources, span); }

Span NativeCheck::of_the_host(const ir::Function& function, const ir::Inst& inst, Span caller) const {
  Span span = inst.span;
  std::uint32_t scope = inst.scope;
  while (is_library(span)) {
    if (scope >= function.scopes.size() || function.scopes[scope].parent == ~0u)
      return caller.file != 0 ? caller : span;
    span = function.scopes[scope].call_site;
    scope = function.scopes[scope].parent;
  }
  return span;
}

}  // namespace slope::api::detail
