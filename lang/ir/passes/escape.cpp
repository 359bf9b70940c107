#include "lang/ir/passes/escape.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string_view>

#include "lang/runtime/method.hpp"
#include "lang/support/tuning.hpp"
#include "lang/types/object.hpp"
#include "lang/types/type.hpp"

namespace slope::ir {

namespace {

constexpr int callee_depth = tuning::escape_depth;

using Way = std::uint64_t;
constexpr Way leaves = 1;    // something that outlives the activation may refer to it
constexpr Way returned = 2;  // it may be, or be in, the result
constexpr Way on_tape = 4;   // a tape of the activation may hold it
// A turn of the loop may hand it to the next. Loops with high numbers share a bit.
constexpr Way handed_on(std::size_t loop) { return Way{8} << std::min<std::size_t>(loop, 60); }

class Escape;
// What was found of functions; null while one is looked into: a call of it from what it calls keeps what it is given.
using Found = std::map<const Function*, std::unique_ptr<Escape>>;

class Escape {
 public:
  // With `loops`: also what their turns hand on.
  Escape(const Function& function, TypeTable& types, int depth, Found& found, const LoopForest* loops = nullptr)
      : function_(function), types_(types), depth_(depth), found_(found), way_(function.insts.size(), 0) {
    if (loops) note_turns(*loops);
    for (std::uint32_t id : function_.blocks[0].parameters)
      takes_tape_ |= function_.insts[id].type == types_.builtin().tape;
    do {
      changed_ = false;
      for (std::size_t b = function_.blocks.size(); b-- > 0;) visit(static_cast<BlockId>(b));
    } while (changed_);
  }

  Way of(std::uint32_t id) const { return way_[id]; }
  Way of_parameter(std::size_t i) const {
    const std::vector<std::uint32_t>& parameters = function_.blocks[0].parameters;
    return i < parameters.size() ? way_[parameters[i]] : leaves;
  }

 private:
  bool may_hold_memory(Operand o) const {
    const DataType* type = as_data(function_.type_of(o, types_));
    return !type || !(type->is_isbits || type->storage == Storage::singleton);
  }

  void pass(Operand o, Way way) {
    if (!way || !o.is_inst() || (way_[o.index()] | way) == way_[o.index()] || !may_hold_memory(o)) return;
    way_[o.index()] |= way;
    changed_ = true;
  }
  void pass_all(const Inst& inst, Way way, std::size_t first = 0) {
    for (std::size_t i = first; i < inst.operands.size(); ++i) pass(inst.operands[i], way);
  }

  void note_turns(const LoopForest& forest) {
    for (std::size_t loop = 0; loop < forest.loops.size(); ++loop)
      for (BlockId latch : forest.loops[loop].latches) turns_[{latch, forest.loops[loop].header}] = handed_on(loop);
  }

  void visit(BlockId id) {
    const Block& block = function_.blocks[id];
    for (const Edge& edge : block.edges) {
      const std::vector<std::uint32_t>& parameters = function_.blocks[edge.target].parameters;
      const auto turn = turns_.find({id, edge.target});
      const Way on = turn == turns_.end() ? 0 : turn->second;
      for (std::size_t i = 0; i < edge.arguments.size(); ++i) pass(edge.arguments[i], way_[parameters[i]] | on);
    }
    if (block.terminator != ~0u) {
      const Inst& last = function_.insts[block.terminator];
      if (last.op == Op::ret) pass_all(last, returned);
      if (last.op == Op::throw_) pass_all(last, leaves);
    }
    for (auto inst = block.insts.rbegin(); inst != block.insts.rend(); ++inst) look_at(*inst);
  }

  void look_at(std::uint32_t id) {
    const Inst& inst = function_.insts[id];
    switch (inst.op) {
      case Op::array_length:
      case Op::array_size:
      case Op::array_check:
      case Op::array_get:
      case Op::array_new:
      case Op::tape_open:
      case Op::tape_reserve:
      case Op::tape_close:
      case Op::isa:
      case Op::egal:
      case Op::field_count:
      case Op::check_defined:
        return;
      case Op::array_set:
      case Op::array_init:
      case Op::set_field_at:
        // Results of stores are the object itself.
        pass(inst.operands[0], way_[id]);
        pass(inst.operands[1], leaves);
        return;
      case Op::type_assert:
        // The exception has the value.
        if (function_.type_of(inst.operands[0], types_) != inst.type) return pass_all(inst, leaves);
        return pass_all(inst, way_[id]);
      case Op::refine:
      case Op::select:
      case Op::tuple:
      case Op::make_closure:
      case Op::field_at:
      case Op::get_field:
        pass_all(inst, way_[id]);
        return;
      case Op::make_struct: {
        const DataType* made = as_data(inst.type);
        pass_all(inst, made && !made->is_mutable ? way_[id] : leaves, 1);
        return;
      }
      case Op::tape_store:
        // A tape that the caller opened is read by others.
        if (takes_tape_) return pass(inst.operands[2], leaves);
        pass(inst.operands[2], on_tape | (inst.operands[0].is_inst() ? way_[inst.operands[0].index()] : leaves));
        if (leaving_columns_.count(inst.aux)) pass(inst.operands[2], leaves);
        return;
      case Op::tape_load:
        if (way_[id] && leaving_columns_.insert(inst.aux).second) changed_ = true;
        return;
      case Op::native:
        if (!only_looks(inst)) pass_all(inst, leaves);
        return;
      case Op::call:
        if (raises(inst)) return pass_unless_arrays(inst);
        pass_all(inst, leaves);
        return;
      case Op::invoke:
        if (raises(inst)) return pass_unless_arrays(inst);
        call(id, inst);
        return;
      default:
        if (!is_arithmetic(inst.op) && group_of(inst.op) != OpGroup::conversions) pass_all(inst, leaves);
        return;
    }
  }

  // A call that never returns is given copies of arrays that would not outlive the activation (codegen/calls.cpp). Not in
  // callees: the interpreter may run them, and what they stored before they raised is seen where somebody between them
  // and the activation catches the exception.
  static bool raises(const Inst& inst) { return inst.type && inst.type->kind == TypeKind::bottom; }
  void pass_unless_arrays(const Inst& inst) {
    if (depth_ < callee_depth) return pass_all(inst, leaves);
    for (Operand o : inst.operands) {
      const DataType* type = as_data(function_.type_of(o, types_));
      if (!type || !type->is_concrete || type->object_kind != DataType::ObjectKind::array) pass(o, leaves);
    }
  }

  // Computes with the elements, or gives back something that holds no memory.
  bool only_looks(const Inst& inst) const {
    const NativeInfo& native = *inst.aux_as<NativeInfo>();
    std::string_view name = native.name;
    if (name.starts_with("blas_") || name.starts_with("lapack_")) return true;
    const DataType* type = as_data(inst.type);
    return !(native.effects & effect_writes) && type && (type->is_isbits || type->storage == Storage::singleton);
  }

  void call(std::uint32_t id, const Inst& inst) {
    const Specialization& target = *inst.aux_as<Specialization>();
    const Function* code = target.current ? target.current->typed.get() : nullptr;
    if (!code || depth_ == 0) return pass_all(inst, leaves);
    auto [known, fresh] = found_.try_emplace(code);
    if (fresh) known->second = std::make_unique<Escape>(*code, types_, depth_ - 1, found_);
    // Its own calls: what was found so far, until nothing changes.
    const Escape* callee = code == &function_ ? this : known->second.get();
    if (!callee) return pass_all(inst, leaves);
    std::size_t fixed = target.method->is_vararg ? target.method->arg_count : inst.operands.size();
    for (std::size_t i = 0; i < inst.operands.size(); ++i) {
      Way inside = callee->of_parameter(i < fixed ? i : fixed);
      pass(inst.operands[i], inside & leaves);
      if (inside & returned) pass(inst.operands[i], way_[id]);
    }
  }

  const Function& function_;
  TypeTable& types_;
  int depth_;
  Found& found_;
  std::vector<Way> way_;
  std::map<std::pair<BlockId, BlockId>, Way> turns_;  // by back edge: from a latch to its header
  std::set<std::uintptr_t> leaving_columns_;          // aux of tape_loads whose values leave
  bool takes_tape_ = false;
  bool changed_ = false;
};

// Objects without references, whose bytes are known when they are made.
bool may_stay(const Inst& inst) {
  const DataType* type = as_data(inst.type);
  if (!type || !type->is_concrete) return false;
  if (inst.op == Op::array_new) {
    if (type->object_kind != DataType::ObjectKind::array || type->params.size() != 2) return false;
    Storage element = storage_of(type->params[0]);
    return element == Storage::bits || element == Storage::aggregate;
  }
  if (inst.op != Op::make_struct || !type->is_mutable || type->object_kind != DataType::ObjectKind::fields)
    return false;
  for (const Field& field : type->fields)
    if (field.storage == Storage::reference || field.storage == Storage::dynamic) return false;
  return true;
}

// What an object takes beside its fields or elements.
constexpr std::size_t header_bytes(const Inst& inst) {
  return inst.op == Op::array_new ? sizeof(ArrayObject) : sizeof(Object);
}

// The bytes of an object whose size is known now, or a number above all.
std::uint64_t known_bytes(const Function& function, const Inst& inst) {
  constexpr std::uint64_t unknown = ~std::uint64_t{0};
  const DataType* type = as_data(inst.type);
  if (inst.op != Op::array_new) return type->size;
  if (inst.operands.size() != 2 || !inst.operands[1].is_constant()) return unknown;
  const Value length = function.constant_value(inst.operands[1]);
  const std::uint32_t size = stored_size(type->params[0]);
  std::int64_t bytes = 0;
  if (length.bits < 0 || __builtin_mul_overflow(length.bits, std::int64_t{size}, &bytes)) return unknown;
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace

std::vector<Place> places_of_objects(const Function& function, const Cfg& cfg, TypeTable& types) {
  std::vector<Place> places(function.insts.size(), Place::heap);
  bool any = false;
  bool keeps_tapes = false;
  for (BlockId b : cfg.order) {
    if (function.blocks[b].handler != no_block) return places;  // a handler may see what is in the exception
    for (std::uint32_t id : function.blocks[b].insts) {
      any |= may_stay(function.insts[id]);
      keeps_tapes |= function.insts[id].op == Op::tape_open;
    }
  }
  if (!any) return places;
  LoopForest forest = find_loops(function, cfg);
  if (!forest.reducible) return places;
  Found found;
  found.try_emplace(&function);
  Escape escape(function, types, callee_depth, found, &forest);
  std::size_t in_frame = 0;
  for (BlockId b : cfg.order) {
    const bool in_loop = forest.loop_of[b] != ~0u;
    Way outlive_turn = leaves | returned | (in_loop ? on_tape : 0);
    for (std::uint32_t loop = forest.loop_of[b]; loop != ~0u; loop = forest.loops[loop].parent)
      outlive_turn |= handed_on(loop);
    for (std::uint32_t id : function.blocks[b].insts) {
      const Inst& inst = function.insts[id];
      if (!may_stay(inst)) continue;
      const Way ways = escape.of(id);
      const std::uint64_t bytes = known_bytes(function, inst);
      if ((ways & outlive_turn) == 0 && bytes <= frame_object_most) {
        const std::size_t taken = header_bytes(inst) + std::max<std::size_t>(bytes, sizeof(void*));
        if (in_frame + taken <= frame_most) {
          places[id] = Place::frame;
          in_frame += taken;
          continue;
        }
      }
      // A small object is made in the heap in less time than its turn's memory is freed.
      const bool in_turn = in_loop && !keeps_tapes;
      const bool is_small = inst.op != Op::array_new || bytes <= tuning::inline_allocation_bytes;
      const bool stays = (ways & (keeps_tapes ? leaves | returned : outlive_turn)) == 0;
      if (stays && !(in_turn && is_small)) places[id] = Place::scratch;
    }
  }
  return places;
}

}  // namespace slope::ir
