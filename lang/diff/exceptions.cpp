// Reverse mode through a `try`: where an instruction raises, control goes to the handler, so the reverse sweep must come
// back from there to the point before that instruction. Each instruction in a `try` that may raise gets a block of its
// own, with a branch before it that is never taken:
//
//   A: …                               D: e = cell_get box
//      cell_set box, nothing              jump handler
//      branch false, D, R (on raise)
//   R: the instruction                 handler: what was there, with e in place of what is caught
//      jump N
//   N: …
//
// All analyses and the reverse sweep see edges like any others. The forward sweep gives R a handler of its own, which
// puts the exception into the box and goes on at D, as the branch would (Reverse::forward_terminator).
//
// What an inner derivative keeps of memory (lang/derive/kept_memory.hpp) is put back where an exception leaves it: its
// own code catches nothing when it is differentiated. In both modes each handler ends the levels that were opened in its
// `try`. The tangents of what is put back there are not: numbers that had been overwritten are refused.
//
// A call that may store into memory before it raises cannot be undone to an unknown point. It becomes a call of
// Base.caught_call, a function like any other, which gives what was raised as its value; its code is that of the target
// in a `try` (PrimalCodes::inline_caught_call). Where this cannot be (the target has a rule, or is one whose code is not
// known), D raises. Of a call whose target is found when it runs D asks for the target first (check_stored_nothing).
// Functions of the library with rules either raise before they store anything, or are differentiated by their code in a
// `try`, as they are declared in stdlib/derivatives/rule_state.slope.
#include <algorithm>
#include <string>

#include "lang/diff/normal_form.hpp"
#include "lang/diff/operations.hpp"
#include "lang/diff/rules.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::diff {

using ir::BlockId;
using ir::Op;
using ir::Operand;

bool is_caught_call(Runtime& runtime, const Method& method);

namespace {

// Of the library's functions with rules (stdlib/derivatives/rule_state.slope).
bool is_declared(Runtime& runtime, const char* property, const Specialization& callee, World world) {
  const Binding* binding = runtime.base->find(runtime.symbol(property));
  if (!binding || !binding->value.defined()) return false;
  std::vector<const Type*> types{binding->value.type};
  types.insert(types.end(), callee.types->params.begin(), callee.types->params.end());
  return runtime.lookup(runtime.types.tuple(types), world).method != nullptr;
}

class Exceptions {
 public:
  Exceptions(ir::Function& function, Runtime& runtime, World world, MemoryEffects& memory)
      : function_(function), runtime_(runtime), world_(world), builtin_(runtime.types.builtin()), memory_(memory) {}

  void run() {
    std::vector<BlockId> handler_of;
    for (const ir::Block& block : function_.blocks) handler_of.push_back(block.handler);
    boxes_.resize(function_.blocks.size());
    for (BlockId handler : handler_of)
      if (handler != ir::no_block && !boxes_[handler].valid()) enter(handler);
    if (std::none_of(boxes_.begin(), boxes_.end(), [](Operand box) { return box.valid(); })) return;
    raise_again();
    for (BlockId b = 0; b < boxes_.size(); ++b)
      if (boxes_[b].valid()) open_handler(b);
    looked_into_.resize(boxes_.size());
    for (BlockId b = 0; b < boxes_.size(); ++b)
      if (boxes_[b].valid()) looked_into_[b] = is_looked_into(boxes_[b]);
    for (ir::Block& block : function_.blocks)
      std::erase_if(block.insts, [&](std::uint32_t id) { return function_.insts[id].op == Op::caught_end; });
    for (BlockId b = 0; b < handler_of.size(); ++b)
      if (handler_of[b] != ir::no_block) split(b, handler_of[b]);
    ir::remove_unreachable_blocks(function_);
  }

 private:
  std::uint32_t make(BlockId block, Op op, std::vector<Operand> operands, const Type* type, const ir::Inst& like,
                     std::uintptr_t aux = 0) {
    ir::Inst made;
    made.op = op;
    made.operands = std::move(operands);
    made.type = type;
    made.aux = aux;
    made.span = like.span;
    made.scope = like.scope;
    made.block = block;
    function_.insts.push_back(std::move(made));
    return static_cast<std::uint32_t>(function_.insts.size() - 1);
  }
  void add(BlockId block, std::uint32_t id) {
    function_.insts[id].block = block;
    function_.blocks[block].insts.push_back(id);
  }
  void end(BlockId block, std::uint32_t terminator, std::vector<ir::Edge> edges) {
    function_.insts[terminator].block = block;
    function_.blocks[block].terminator = terminator;
    function_.blocks[block].edges = std::move(edges);
  }
  BlockId new_block() {
    function_.blocks.emplace_back();
    function_.blocks.back().terminator = ~0u;
    return static_cast<BlockId>(function_.blocks.size() - 1);
  }
  Operand nothing() { return function_.constant(runtime_.nothing()); }

  // The box of a handler, made where the function begins.
  void enter(BlockId handler) {
    const ir::Inst like = function_.insts[function_.blocks[handler].insts[0]];
    const std::uint32_t box = make(0, Op::cell_new, {}, builtin_.cell, like);
    function_.blocks[0].insts.insert(function_.blocks[0].insts.begin(), box);
    boxes_[handler] = Operand::inst(box);
  }

  // `rethrow()` and the end of a `finally`: the exception of the innermost handler around it.
  void raise_again() {
    std::vector<std::vector<bool>> within(boxes_.size());
    for (BlockId b = 0; b < boxes_.size(); ++b)
      if (boxes_[b].valid()) within[b] = blocks_of(b);
    for (BlockId b = 0; b < boxes_.size(); ++b) {
      std::vector<std::uint32_t>& insts = function_.blocks[b].insts;
      const auto at = std::find_if(insts.begin(), insts.end(), [&](std::uint32_t id) {
        const ir::Inst& inst = function_.insts[id];
        return inst.op == Op::native && inst.operands.empty() &&
               (std::string_view(inst.aux_as<const NativeInfo>()->name) == "rethrow_caught" ||
                std::string_view(inst.aux_as<const NativeInfo>()->name) == "rethrow");
      });
      if (at == insts.end()) continue;
      BlockId innermost = ir::no_block;
      for (BlockId h = 0; h < boxes_.size(); ++h)
        if (boxes_[h].valid() && within[h][b] && (innermost == ir::no_block || within[innermost][h])) innermost = h;
      if (innermost == ir::no_block) continue;
      const ir::Inst like = function_.insts[*at];
      insts.erase(at, insts.end());
      const std::uint32_t again = make(b, Op::cell_get, {boxes_[innermost]}, builtin_.any, like);
      add(b, again);
      end(b, make(b, Op::throw_, {Operand::inst(again)}, builtin_.bottom, like), {});
    }
  }
  std::vector<bool> blocks_of(BlockId handler) const {
    std::vector<bool> inside(function_.blocks.size(), false);
    std::vector<BlockId> work{handler};
    while (!work.empty()) {
      const BlockId b = work.back();
      work.pop_back();
      if (inside[b]) continue;
      inside[b] = true;
      const ir::Block& block = function_.blocks[b];
      if (std::any_of(block.insts.begin(), block.insts.end(),
                      [&](std::uint32_t id) { return function_.insts[id].op == Op::caught_end; }))
        continue;
      for (const ir::Edge& edge : block.edges) work.push_back(edge.target);
      if (block.handler != ir::no_block) work.push_back(block.handler);
    }
    return inside;
  }

  // What is caught is what the box holds.
  void open_handler(BlockId b) {
    ir::Inst& caught = function_.insts[function_.blocks[b].insts[0]];
    caught.op = Op::cell_get;
    caught.operands = {boxes_[b]};
    caught.type = builtin_.any;
    caught.aux = 0;
  }

  bool is_looked_into(Operand box) const {
    std::vector<bool> caught(function_.insts.size(), false);
    for (const ir::Block& block : function_.blocks)
      for (std::uint32_t id : block.insts)
        caught[id] = function_.insts[id].op == Op::cell_get && function_.insts[id].operands[0] == box;
    return use_of_exception(function_, runtime_, std::move(caught)) == CaughtUse::content;
  }

  static bool is_variable(Op op) {  // they are none any more when this is done
    return op == Op::slot_get || op == Op::slot_set || op == Op::slot_defined || op == Op::slot_clear;
  }
  bool raises(const ir::Inst& inst) const { return !is_variable(inst.op) && ir::may_throw(inst); }

  // Whether it may have stored something before it raised.
  bool may_have_stored(const ir::Inst& inst) {
    switch (inst.op) {
      case Op::invoke: {
        const MemorySummary effects = memory_.of_call(inst);
        if ((effects.writes | effects.unknown) == 0) return false;
        return !is_declared(runtime_, "raises_before_storing", *inst.aux_as<Specialization>(), world_);
      }
      case Op::native:
        return (inst.aux_as<const NativeInfo>()->effects & effect_writes) != 0;
      case Op::call:
      case Op::call_splat:
        return true;
      default:
        return false;
    }
  }

  void split(BlockId b, BlockId handler) {
    const std::vector<std::uint32_t> insts = std::move(function_.blocks[b].insts);
    const std::uint32_t terminator = function_.blocks[b].terminator;
    const std::vector<ir::Edge> edges = std::move(function_.blocks[b].edges);
    function_.blocks[b].insts.clear();
    function_.blocks[b].edges.clear();
    function_.blocks[b].handler = ir::no_block;
    BlockId at = b;
    for (std::uint32_t id : insts) {
      const ir::Inst inst = function_.insts[id];
      if (!raises(inst)) {
        add(at, id);
        continue;
      }
      const BlockId alone = new_block();
      const BlockId raised = new_block();
      const BlockId after = new_block();
      if (may_have_stored(inst) && make_caught_call(id, at, looked_into_[handler])) {
        take_apart(id, at, {raised, after}, handler);
        at = after;
        continue;
      }
      add(at, make(at, Op::cell_set, {boxes_[handler], nothing()}, builtin_.nothing, inst));
      end(at,
          make(at, Op::branch, {function_.constant(runtime_.from_bool(false))}, builtin_.nothing, inst,
               branch_on_raise),
          {{raised, {}}, {alone, {}}});
      add(alone, id);
      end(alone, make(alone, Op::jump, {}, builtin_.nothing, inst), {{after, {}}});
      leave(raised, handler, inst);
      at = after;
    }
    const ir::Inst last = function_.insts[terminator];
    if (last.op == Op::throw_) {
      add(at, make(at, Op::cell_set, {boxes_[handler], last.operands[0]}, builtin_.nothing, last));
      end(at, make(at, Op::jump, {}, builtin_.nothing, last), {{handler, {}}});
    } else {
      end(at, terminator, edges);
    }
  }

  // The call of Base.caught_call with the operands of `id`, at the end of `at`; false: it stays what it is.
  bool make_caught_call(std::uint32_t id, BlockId at, bool looked_into) {
    const ir::Inst inst = function_.insts[id];
    const Value caught = library_value(runtime_, looked_into ? KnownName::caught_call : KnownName::caught_call_unseen);
    const bool within = function_.method && !function_.scopes.empty() && is_caught_call(runtime_, *function_.method) &&
                        (inst.scope >= function_.scopes.size() || function_.scopes[inst.scope].parent == ~0u);
    if (within || (inst.op != Op::call && inst.op != Op::invoke)) return false;
    std::vector<Operand> operands{function_.constant(caught)};
    operands.insert(operands.end(), inst.operands.begin(), inst.operands.end());
    std::uintptr_t target = 0;
    if (inst.op == Op::invoke) {
      const Specialization& callee = *inst.aux_as<Specialization>();
      if (runtime_.lookup_specialization(callee.types, world_) != &callee ||
          (find_rule(runtime_, callee.types, world_, nullptr) != RuleKind::none &&
           !goes_without_rule_in_try(runtime_, callee, world_)))
        return false;
      std::vector<const Type*> types{caught.type};
      types.insert(types.end(), callee.types->params.begin(), callee.types->params.end());
      Specialization* found = runtime_.lookup_specialization(runtime_.types.tuple(types), world_);
      if (!found) return false;
      target = reinterpret_cast<std::uintptr_t>(found);
    }
    caught_result_ = make(at, inst.op, std::move(operands), builtin_.any, inst, target);
    function_.insts[caught_result_].flags = inst.flags;
    add(at, caught_result_);
    return true;
  }

  // What the call of `id` gave (to.second), or what it raised (to.first, on to the handler).
  void take_apart(std::uint32_t id, BlockId at, std::pair<BlockId, BlockId> to, BlockId handler) {
    const ir::Inst inst = function_.insts[id];
    const Operand result = Operand::inst(caught_result_);
    const Value raised_type =
        library_value(runtime_, looked_into_[handler] ? KnownName::raised_type : KnownName::raised_unseen_type);
    const std::uint32_t is_raised =
        make(at, Op::isa, {result, function_.constant(raised_type)}, builtin_.boolean, inst);
    add(at, is_raised);
    end(at, make(at, Op::branch, {Operand::inst(is_raised)}, builtin_.nothing, inst),
        {{to.first, {}}, {to.second, {}}});
    const std::uint32_t raised = make(to.first, Op::refine, {result}, raised_type.as_type, inst);
    add(to.first, raised);
    std::uint32_t exception = make(to.first, Op::field_at, {Operand::inst(raised)},
                                   looked_into_[handler] ? builtin_.any : builtin_.exception, inst, 0);
    add(to.first, exception);
    if (!looked_into_[handler]) {
      const Value thrown = library_value(runtime_, KnownName::as_thrown);
      exception = make(to.first, Op::call, {function_.constant(thrown), Operand::inst(exception)}, builtin_.any, inst);
      add(to.first, exception);
    }
    add(to.first, make(to.first, Op::cell_set, {boxes_[handler], Operand::inst(exception)}, builtin_.nothing, inst));
    end(to.first, make(to.first, Op::jump, {}, builtin_.nothing, inst), {{handler, {}}});
    ir::Inst& value = function_.insts[id];
    value.op = Op::refine;
    value.operands = {result};
    value.aux = 0;
    value.flags = 0;
    if (value.type == builtin_.bottom) value.type = builtin_.any;  // it always raises
    add(to.second, id);
  }

  void leave(BlockId raised, BlockId handler, const ir::Inst& inst) {
    const std::uint32_t exception = make(raised, Op::cell_get, {boxes_[handler]}, builtin_.any, inst);
    add(raised, exception);
    if (!may_have_stored(inst)) {
      end(raised, make(raised, Op::jump, {}, builtin_.nothing, inst), {{handler, {}}});
      return;
    }
    const Refusal here = refusal_at(function_, inst, runtime_, "");
    std::string where = "\n  --> " + runtime_.sources.describe(here.span) + "\n" + runtime_.sources.excerpt(here.span);
    while (where.back() == '\n') where.pop_back();
    if (inst.op == Op::call) {  // whose target is known when it runs
      std::vector<Operand> call{Operand::inst(exception), function_.constant(runtime_.from_string(where))};
      call.insert(call.end(), inst.operands.begin(), inst.operands.end());
      const Value native = library_value(runtime_, KnownName::check_stored_nothing);
      add(raised, make(raised, Op::native, std::move(call), builtin_.nothing, inst,
                       reinterpret_cast<std::uintptr_t>(native.pointer)));
      end(raised, make(raised, Op::jump, {}, builtin_.nothing, inst), {{handler, {}}});
      return;
    }
    const Binding* raise = library_binding(runtime_, KnownName::throw_caught_in_reverse);
    add(raised, make(raised, Op::call,
                     {function_.constant(raise ? raise->value : runtime_.nothing()), Operand::inst(exception),
                      function_.constant(runtime_.from_string(where))},
                     builtin_.any, inst));
    end(raised, make(raised, Op::unreachable, {}, builtin_.bottom, inst), {});
  }

  ir::Function& function_;
  Runtime& runtime_;
  World world_;
  const BuiltinTypes& builtin_;
  MemoryEffects& memory_;
  std::vector<Operand> boxes_;     // by block, of handlers
  std::vector<bool> looked_into_;  // by block, of handlers: whether anything asks what an exception holds
  std::uint32_t caught_result_ = 0;
};

// Whether a level of kept memory may be open where it raises.
bool may_open_level(const ir::Inst& inst) {
  switch (inst.op) {
    case Op::invoke: {
      const CodeInstance* code = inst.aux_as<Specialization>()->current;
      return !code || (code->effects & effect_writes) != 0;
    }
    case Op::native:
      return (inst.aux_as<const NativeInfo>()->effects & effect_writes) != 0;
    default:
      return inst.op == Op::call || inst.op == Op::call_splat;
  }
}

// Before anything else in `at`, or where it ends.
std::uint32_t insert_native(ir::Function& function, Runtime& runtime, const char* name, BlockId at, std::size_t before,
                            std::vector<Operand> operands, const Type* type, const ir::Inst& like) {
  ir::Inst made;
  made.op = Op::native;
  made.operands = std::move(operands);
  made.type = type;
  const Value native = runtime.core->find(runtime.symbol(name))->value;
  made.aux = reinterpret_cast<std::uintptr_t>(native.pointer);
  made.span = like.span;
  made.scope = like.scope;
  made.block = at;
  const auto id = static_cast<std::uint32_t>(function.insts.size());
  std::vector<std::uint32_t>& insts = function.blocks[at].insts;
  insts.insert(insts.begin() + static_cast<std::ptrdiff_t>(before), id);
  function.insts.push_back(std::move(made));
  return id;
}

}  // namespace

void close_kept_levels(ir::Function& function, Runtime& runtime) {
  std::vector<BlockId> handlers;
  for (const ir::Block& block : function.blocks)
    if (block.handler != ir::no_block && std::find(handlers.begin(), handlers.end(), block.handler) == handlers.end() &&
        std::any_of(block.insts.begin(), block.insts.end(),
                    [&](std::uint32_t id) { return may_open_level(function.insts[id]); }))
      handlers.push_back(block.handler);
  if (handlers.empty()) return;
  const ir::Cfg cfg = ir::build_cfg(function);
  for (const BlockId handler : handlers) {
    if (!cfg.reachable(handler)) continue;
    BlockId before = cfg.idom[handler];
    while (before != ir::no_block && function.blocks[before].handler == handler) before = cfg.idom[before];
    if (before == ir::no_block) continue;  // the function begins with the `try`: no block is before it
    const ir::Inst like = function.insts[function.blocks[handler].insts[0]];
    const std::uint32_t level =
        insert_native(function, runtime, "next_kept_level", before, function.blocks[before].insts.size(), {},
                      runtime.types.builtin().int64, like);
    insert_native(function, runtime, "check_kept_numbers", handler, 1, {Operand::inst(level)},
                  runtime.types.builtin().nothing, like);
    insert_native(function, runtime, "put_back_memory", handler, 2, {Operand::inst(level)},
                  runtime.types.builtin().nothing, like);
  }
}

namespace {

// Its type, that it is raised again, or whether derivative code goes on with it.
bool asks_for_kind(const ir::Function& function, const ir::Inst& inst, Runtime& runtime) {
  if (inst.op == Op::isa || inst.op == Op::throw_) return true;
  if (inst.op == Op::native)
    return std::string_view(inst.aux_as<const NativeInfo>()->name) == "check_stored_nothing" &&
           std::count(inst.operands.begin(), inst.operands.end(), inst.operands[0]) == 1;
  if ((inst.op != Op::invoke && inst.op != Op::call) || !inst.operands[0].is_constant()) return false;
  const Value callee = function.constant_value(inst.operands[0]);
  return callee.identical(library_value(runtime, KnownName::as_exception)) ||
         callee.identical(library_value(runtime, KnownName::check_refused)) ||
         callee.identical(library_value(runtime, KnownName::throw_caught_in_reverse));
}

// Follows a value through variables: block parameters, and cells that nobody else has.
class ExceptionUses {
 public:
  ExceptionUses(const ir::Function& function, Runtime& runtime, std::vector<bool> values)
      : function_(function), runtime_(runtime), values_(std::move(values)) {}

  CaughtUse find() {
    do {
      changed_ = false;
      for (const ir::Block& block : function_.blocks) look(block);
    } while (changed_ && use_ != CaughtUse::content);
    return use_;
  }

 private:
  bool is_value(Operand o) const { return o.is_inst() && values_[o.index()]; }
  void follow(std::uint32_t id) {
    changed_ |= !values_[id];
    values_[id] = true;
  }
  void look(const ir::Block& block) {
    for (std::uint32_t id : block.insts) look(function_.insts[id]);
    if (block.terminator != ~0u) look(function_.insts[block.terminator]);
    for (const ir::Edge& edge : block.edges)
      for (std::size_t i = 0; i < edge.arguments.size(); ++i)
        if (is_value(edge.arguments[i])) follow(function_.blocks[edge.target].parameters[i]);
  }
  void look(const ir::Inst& inst) {
    if (std::none_of(inst.operands.begin(), inst.operands.end(), [&](Operand o) { return is_value(o); })) return;
    if (asks_for_kind(function_, inst, runtime_))
      use_ = std::max(use_, CaughtUse::kind);
    else if (inst.op != Op::cell_set || is_value(inst.operands[0]) || !follow_cell(inst.operands[0]))
      use_ = CaughtUse::content;
  }
  bool follow_cell(Operand cell) {
    if (!cell.is_inst() || function_.insts[cell.index()].op != Op::cell_new) return false;
    for (const ir::Block& block : function_.blocks) {
      for (const ir::Edge& edge : block.edges)
        if (std::count(edge.arguments.begin(), edge.arguments.end(), cell) != 0) return false;
      for (std::uint32_t id : block.insts) {
        const ir::Inst& inst = function_.insts[id];
        const auto uses = std::count(inst.operands.begin(), inst.operands.end(), cell);
        if (uses == 0) continue;
        const bool is_access = inst.op == Op::cell_get || inst.op == Op::cell_set || inst.op == Op::cell_defined;
        if (!is_access || uses != 1 || inst.operands[0] != cell) return false;
        if (inst.op == Op::cell_get) follow(id);
      }
    }
    return true;
  }

  const ir::Function& function_;
  Runtime& runtime_;
  std::vector<bool> values_;
  CaughtUse use_ = CaughtUse::none;
  bool changed_ = false;
};

}  // namespace

CaughtUse use_of_exception(const ir::Function& function, Runtime& runtime, std::vector<bool> values) {
  return ExceptionUses(function, runtime, std::move(values)).find();
}

bool goes_without_rule_in_try(Runtime& runtime, const Specialization& callee, World world) {
  return is_declared(runtime, "goes_without_rule_in_try", callee, world) &&
         !is_declared(runtime, "raises_before_storing", callee, world);
}

bool is_caught_call(Runtime& runtime, const Method& method) {
  const DataType* signature = as_data(method.signature);
  return signature && !signature->params.empty() &&
         (signature->params[0] == library_value(runtime, KnownName::caught_call).type ||
          signature->params[0] == library_value(runtime, KnownName::caught_call_unseen).type);
}
bool is_caught_call(Runtime& runtime, const Specialization& target) { return is_caught_call(runtime, *target.method); }

void follow_exceptions(ir::Function& function, Runtime& runtime, World world, MemoryEffects& memory) {
  Exceptions(function, runtime, world, memory).run();
}

}  // namespace slope::diff
