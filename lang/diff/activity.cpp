#include "lang/diff/activity.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "lang/diff/normal_form.hpp"
#include "lang/diff/operations.hpp"
#include "lang/diff/texts.hpp"

namespace slope::diff {

namespace {

using ir::Op;
using ir::Operand;

class Analysis {
 public:
  Analysis(const ir::Function& function, TangentTypes& tangents, MemoryEffects& memory, World world,
           std::vector<Edge>* edges, Activity& result, Refusal& refusal, bool forward_mode)
      : function_(function),
        tangents_(tangents),
        memory_(memory),
        world_(world),
        edges_(edges),
        result_(result),
        refusal_(refusal),
        forward_mode_(forward_mode) {}

  bool run(const std::vector<char>& active) {
    result_.varied.assign(function_.insts.size(), false);
    result_.written.assign(function_.insts.size(), false);
    result_.rules.assign(function_.insts.size(), RuleKind::none);
    result_.varied_slots.assign(function_.slots.size(), false);
    written_slots_.assign(function_.slots.size(), false);
    definitely_.assign(function_.insts.size(), false);
    result_.texts.assign(function_.insts.size(), 0);
    slot_texts_.assign(function_.slots.size(), 0);
    kept_through_.assign(function_.insts.size(), 0);
    find_global_memory();
    find_caught();
    find_undefined();
    const std::vector<std::uint32_t>& parameters = function_.blocks[0].parameters;
    result_.active_parameters.assign(active.begin(), active.end());
    result_.active_parameters.resize(parameters.size(), false);
    for (const ir::Block& block : function_.blocks)
      for (std::uint32_t id : block.insts)
        if (function_.insts[id].op == Op::invoke)
          result_.rules[id] =
              find_rule(tangents_.runtime(), function_.insts[id].aux_as<Specialization>()->types, world_, edges_);
    find_returning_blocks();
    do {
      changed_ = false;
      for (std::size_t i = 0; i < parameters.size(); ++i)
        if (result_.active_parameters[i]) vary(parameters[i]);
      for (ir::BlockId b = 0; b < function_.blocks.size(); ++b) {
        // What only leads to an error is never reversed: anything may stand there.
        if (!result_.returns[b]) continue;
        const ir::Block& block = function_.blocks[b];
        for (std::uint32_t id : block.insts)
          if (!visit(id)) return false;
        for (const ir::Edge& edge : block.edges)
          if (result_.returns[edge.target]) visit_edge(edge);
        if (!visit_return(block)) return false;
        if (!refusal_.reason.empty()) return false;
      }
      for (std::size_t i = 0; i < parameters.size(); ++i)
        if (result_.written[parameters[i]] && !result_.active_parameters[i]) {
          result_.active_parameters[i] = true;
          changed_ = true;
        }
    } while (changed_);
    return true;
  }

 private:
  void find_returning_blocks() {
    result_.returns.assign(function_.blocks.size(), false);
    for (ir::BlockId b = 0; b < function_.blocks.size(); ++b)
      if (function_.insts[function_.blocks[b].terminator].op == Op::ret) result_.returns[b] = true;
    spread_returning();
    if (!forward_mode_) return;  // in reverse mode what a call stored before it raised is refused (exceptions.cpp)
    // Whoever catches what is raised goes on with what was stored before.
    std::vector<ir::BlockId> storing;
    for (ir::BlockId b = 0; b < function_.blocks.size(); ++b) {
      const ir::Block& block = function_.blocks[b];
      if (!result_.returns[b] &&
          std::any_of(block.insts.begin(), block.insts.end(), [&](std::uint32_t id) { return stores_for_others(id); }))
        storing.push_back(b);
    }
    for (ir::BlockId b : storing) result_.returns[b] = true;
    if (!storing.empty()) spread_returning();
  }

  // Of code that only leads to an error. What makes its message is no store: the library's functions write texts.
  bool stores_for_others(std::uint32_t id) {
    const ir::Inst& inst = function_.insts[id];
    if (ir::is_resize(inst.op) || (ir::is_store(inst.op) && inst.op != Op::store_global))
      return may_carry(type_of(inst.operands[0])) && !is_made_in_vain(inst.operands[0]);
    if (inst.op == Op::invoke) {
      if (result_.rules[id] == RuleKind::non_differentiable) return false;
      const MemorySummary effects = memory_.of_call(inst);
      const Runtime& runtime = tangents_.runtime();
      const Module* module = inst.aux_as<Specialization>()->method->module;
      if (module == runtime.base || module == runtime.core) return (effects.writes & ~global_memory) != 0;
      return (effects.writes | effects.unknown) != 0;
    }
    return (inst.op == Op::call || inst.op == Op::call_splat) &&
           std::any_of(inst.operands.begin(), inst.operands.end(),
                       [&](Operand o) { return o.is_inst() && is_memory(type_of(o)) && !is_made_in_vain(o); });
  }
  bool is_made_in_vain(Operand o) const {
    if (!o.is_inst()) return false;
    const ir::Inst& made = function_.insts[o.index()];
    return (made.op == Op::array_new || made.op == Op::make_struct || made.op == Op::cell_new) &&
           made.block != ir::no_block && !result_.returns[made.block];
  }

  void spread_returning() {
    for (bool grew = true; grew;) {
      grew = false;
      for (ir::BlockId b = static_cast<ir::BlockId>(function_.blocks.size()); b-- > 0;) {  // as it spreads
        if (result_.returns[b]) continue;
        // What a `try` did before it raised stays done.
        ir::BlockId handler = function_.blocks[b].handler;
        if (handler != ir::no_block && result_.returns[handler]) result_.returns[b] = grew = true;
        for (const ir::Edge& edge : function_.blocks[b].edges)
          if (result_.returns[edge.target]) result_.returns[b] = grew = true;
      }
    }
  }

  // Parameters of blocks that may be undefined: nothing can be made for them where they only pass, so their shadow
  // comes along with them.
  void find_undefined() {
    undefined_.assign(function_.insts.size(), false);
    for (bool grew = true; grew;) {
      grew = false;
      for (const ir::Block& block : function_.blocks)
        for (const ir::Edge& edge : block.edges)
          for (std::size_t i = 0; i < edge.arguments.size(); ++i) {
            std::uint32_t parameter = function_.blocks[edge.target].parameters[i];
            Operand o = edge.arguments[i];
            bool undefined = is_undefined(function_, o, tangents_.runtime()) || (o.is_inst() && undefined_[o.index()]);
            if (undefined && !undefined_[parameter]) undefined_[parameter] = grew = true;
          }
    }
  }

  bool varied(Operand o) const { return o.is_inst() && result_.varied[o.index()]; }
  bool written(Operand o) const { return o.is_inst() && result_.written[o.index()]; }
  bool is_memory(const Type* t) { return !tangents_.known(t) || tangents_.has_shadow(t); }
  bool may_carry(const Type* t) { return !tangents_.known(t) || tangents_.differentiable(t); }
  const Type* type_of(Operand o) { return function_.type_of(o, tangents_.runtime().types); }

  void vary(std::uint32_t id) {
    if (result_.varied[id] || !may_carry(function_.insts[id].type)) return;
    result_.varied[id] = result_.any_varied = true;
    changed_ = true;
  }

  // What is read from globals, and nothing but that: constant while the function is differentiated. So is what builtins
  // make (types, texts, …).
  void find_global_memory() {
    global_.assign(function_.insts.size(), false);
    for (bool grew = true; grew;) {
      grew = false;
      for (const ir::Block& block : function_.blocks) {
        for (std::uint32_t id : block.insts) {
          const ir::Inst& inst = function_.insts[id];
          bool global = inst.op == Op::load_global ||
                        (inst.op == Op::native && !makes_shadows(inst) && !calls_what_it_is_given(inst));
          switch (inst.op) {
            case Op::field_at:
            case Op::array_get:
            case Op::array_share:
            case Op::get_field:
            case Op::refine:
            case Op::type_assert:
              global = from_global(inst.operands[0]);
              break;
            default:
              break;
          }
          if (global && !global_[id]) global_[id] = grew = true;
        }
      }
    }
  }
  bool from_global(Operand o) {
    return o.is_constant() ? tangents_.holds_memory(function_.constant_value(o)) : global_[o.index()];
  }

  // Memory that receives varied values (or, not `definite`, may): its definition chain must lead to real shadows.
  bool write(Operand o, const ir::Inst& at, bool definite) {
    if (!is_memory(type_of(o))) return true;
    if (from_global(o)) {
      if (!definite) return true;
      refusal_ =
          refusal_at(function_, at, tangents_.runtime(),
                     "a value that carries a derivative is stored into a global, or into an array or object that "
                     "a global holds; pass it as an argument");
      return false;
    }
    if (!o.is_inst()) return true;
    if (definite && !definitely_[o.index()]) definitely_[o.index()] = changed_ = true;
    if (!result_.written[o.index()]) result_.written[o.index()] = changed_ = true;
    return true;
  }

  bool any_varied(const ir::Inst& inst) const {
    for (Operand o : inst.operands)
      if (varied(o)) return true;
    return false;
  }

  bool visit(std::uint32_t id) {
    const ir::Inst& inst = function_.insts[id];
    bool flows = any_varied(inst);
    bool definite = definitely_[id];
    if (ir::group_of(inst.op) == ir::OpGroup::tapes) return visit_tape(id);
    if (inst.op == Op::slot_set || inst.op == Op::slot_get) return visit_slot(id);
    if (!visit_bits(id)) return false;
    switch (treatment_of(function_, inst, result_.rules[id], tangents_.runtime())) {
      case Treatment::inert:
        break;
      case Treatment::value:
        if (flows) vary(id);
        // A struct or alias that is written through must be made of real shadows.
        if (result_.written[id])
          for (Operand o : inst.operands)
            if (!write(o, inst, definite)) return false;
        break;
      case Treatment::store: {
        Operand object = inst.operands[0];
        Operand value = inst.operands[1];
        if (varied(value) && !write(object, inst, true)) return false;
        // What is kept in memory that carries derivatives may be read back, perhaps through what else leads there, and
        // written through.
        if (varied(object) && is_memory(type_of(value)) && (written(object) || tangents_.known(type_of(value))) &&
            !write(value, inst, definitely_[object.index()]))
          return false;
        break;
      }
      case Treatment::call:
        if (!visit_call(id, flows)) return false;
        break;
      case Treatment::refused:
        if (!flows) break;
        refusal_ = refusal_at(function_, inst, tangents_.runtime(), why_refused(inst, tangents_.runtime()));
        return false;
    }
    if (result_.written[id] && !global_[id]) vary(id);
    if (result_.varied[id] && !tangents_.known(inst.type)) {
      refusal_ = refusal_at(function_, inst, tangents_.runtime(),
                            "a value of type " + to_string(inst.type) + " cannot carry a derivative");
      return false;
    }
    return true;
  }

  // The bits of a number that carries a derivative may be looked at (signs, hashes, exponents); made into a number
  // again they would have lost it. So may its text, for messages and tables. What is made of either is followed through
  // variables, arithmetic of integers, what it is stored into, and calls (texts.hpp).
  bool visit_bits(std::uint32_t id) {
    const ir::Inst& inst = function_.insts[id];
    bool from_float = false;
    std::uint8_t bits = 0;
    for (Operand o : inst.operands) {
      from_float |= varied(o) && tangents_.is_float(type_of(o));
      bits |= made_of_bits(o);
    }
    if (inst.op == Op::load_global) bits |= kept_at(inst.aux_as<Binding>());
    if (is_caught_[id] && result_.any_varied) bits |= of_text;  // messages tell numbers
    if (result_.rules[id] == RuleKind::non_differentiable) return visit_text(id);
    if (bits && makes_float_of_bits(inst, tangents_)) {
      refusal_ = refusal_at(function_, inst, tangents_.runtime(),
                            "the bits of a number that carries a derivative are made into a number again");
      return false;
    }
    if (inst.op == Op::apply_type && (from_float || shows_in_type(inst))) {
      refusal_ = refusal_at(function_, inst, tangents_.runtime(),
                            "a number that carries a derivative is made a parameter of a type");
      return false;
    }
    if ((bits & of_text) && (hands_to_reader(inst) || makes_number_of_text(inst, tangents_))) return refuse_text(inst);
    if (inst.op == Op::invoke || inst.op == Op::call || inst.op == Op::call_splat) return visit_text_in_call(id);
    if (inst.op == Op::native) visit_text_in_native(id);
    if (inst.op == Op::store_global) {
      keep_at(inst.aux_as<Binding>(), bits);
      return true;
    }
    if (ir::is_store(inst.op)) {
      if (inst.operands.size() > 1) keep_in(inst.operands[0], made_of_bits(inst.operands[1]));
      return true;
    }
    const BuiltinTypes& builtin = tangents_.runtime().types.builtin();
    if (any_varied(inst) && looks_at_bits(inst, function_, tangents_))
      bits |= of_bits;
    else if (!bits || inst.type == builtin.boolean || !hands_on_bits(inst))
      bits = 0;
    make_of_bits(Operand::inst(id), bits);
    return true;
  }
  // A call whose result is declared to have no derivative.
  bool visit_text(std::uint32_t id) {
    const ir::Inst& inst = function_.insts[id];
    const bool is_reader = reads_texts(inst);
    bool from_varied = false;
    bool from_text = false;
    for (Operand o : inst.operands) {
      from_varied |= varied(o);
      from_text |= is_told(o) || (made_of_bits(o) && is_reader && may_be_text(tangents_, type_of(o)));
    }
    if (from_text && may_carry(inst.type)) return refuse_text(inst);
    if (from_text && is_reader && is_number_object(inst.type)) return refuse_text(inst);
    if (!from_varied && !from_text) return true;
    // Text, a hash; and the stream that it was printed into. The value of a text.
    if (holds_text(tangents_, inst.type)) make_of_bits(Operand::inst(id), of_text);
    if (inst.type == tangents_.runtime().types.builtin().uint64 || (from_text && is_reader))
      make_of_bits(Operand::inst(id), of_bits);
    keep_in_mutable(inst, of_text);
    return true;
  }
  // What the callee makes of texts and numbers, as its code says; of one that is not known, when it runs.
  bool visit_text_in_call(std::uint32_t id) {
    const ir::Inst& inst = function_.insts[id];
    bool told = false;
    bool may_tell = false;
    bool may_show = holds_text(tangents_, inst.type);
    for (Operand o : inst.operands) {
      told |= inst.op == Op::invoke ? is_told(o) : made_of_bits(o) != 0;
      may_tell |= varied(o);
      may_show |= is_mutable_text(tangents_, type_of(o));
    }
    if (keeps_for_reverse(function_, inst, tangents_.runtime())) return true;
    if (inst.op != Op::invoke) {
      may_show |= may_tell && memory_.texts().makes_text_of_number(function_, inst);
      if (!told && !(may_tell && may_show)) return true;
      if (may_be_text(tangents_, inst.type)) make_of_bits(Operand::inst(id), of_text);
      for (Operand o : inst.operands)  // of numbers: into streams and lists of texts
        if (is_mutable_text(tangents_, type_of(o)) ? told || !may_carry(type_of(o)) : told && is_of_any_type(o))
          keep_in(o, of_text);
      return true;
    }
    Specialization& target = *inst.aux_as<Specialization>();
    const bool writes = target.current && (target.current->effects & effect_writes);
    const bool beside =
        std::any_of(inst.operands.begin(), inst.operands.end(), [&](Operand o) { return is_beside_numbers(o); });
    const bool may_be_bits = result_.rules[id] == RuleKind::none && is_whole_number(inst.type);
    if (!told && !beside && !outside_ && !(may_tell && (may_show || writes || may_be_bits))) return true;
    const TextSummary callee = memory_.texts().of(target);
    MemoryMask texts = outside_ ? outside : 0;  // parameters of the callee
    MemoryMask holders = texts;
    MemoryMask numbers = 0;
    for (std::size_t i = 0; i < inst.operands.size(); ++i) {
      const MemoryMask bit = parameter_mask(parameter_of_operand(target, i));
      if (is_told(inst.operands[i])) texts |= bit;
      if (is_told(inst.operands[i]) || is_beside_numbers(inst.operands[i])) holders |= bit;
      if (varied(inst.operands[i])) numbers |= bit;
    }
    // The library's code for derivatives of derivatives hands on what it is given, in objects of any kind.
    const bool of_library = function_.method && is_of_library(tangents_.runtime(), function_.method) &&
                            is_of_library(tangents_.runtime(), target.method);
    if (!of_library && ((callee.read & texts) || (callee.read_of_text & holders))) return refuse_text(inst);
    const bool may_hold = may_be_text(tangents_, inst.type);
    if (callee.result & (may_hold ? texts | numbers | holders : texts | numbers)) {
      if (may_hold)
        make_of_bits(Operand::inst(id), of_text);
      else if ((callee.result & texts) && !may_carry(inst.type))
        make_of_bits(Operand::inst(id), of_bits);
    }
    if (may_be_bits && (callee.bits & numbers)) make_of_bits(Operand::inst(id), of_bits);
    if (!(callee.kept & (texts | numbers))) return true;
    if (callee.keepers & outside) keep_outside();
    for (std::size_t i = 0; i < inst.operands.size(); ++i)
      if ((callee.keepers & parameter_mask(parameter_of_operand(target, i))) &&
          is_mutable_text(tangents_, type_of(inst.operands[i])))
        keep_in(inst.operands[i], of_text);
    return true;
  }
  void visit_text_in_native(std::uint32_t id) {
    const ir::Inst& inst = function_.insts[id];
    const bool told = std::any_of(inst.operands.begin(), inst.operands.end(),
                                  [&](Operand o) { return varied(o) || made_of_bits(o); });
    const OutsideEffects effects = outside_effects(inst);
    if (effects.reads && outside_) make_of_bits(Operand::inst(id), of_text);
    if (!told) return;
    if (effects.writes) keep_outside();
    if (holds_text(tangents_, inst.type)) make_of_bits(Operand::inst(id), of_text);
    if (inst.aux_as<const NativeInfo>()->effects & effect_writes) keep_in_mutable(inst, of_text);
  }
  bool shows_in_type(const ir::Inst& inst) {
    return std::any_of(inst.operands.begin(), inst.operands.end(),
                       [&](Operand o) { return is_told(o) && holds_text(tangents_, type_of(o)); });
  }
  // Text or bits and nothing else: what may carry derivatives itself holds numbers that are not made of text.
  bool is_told(Operand o) { return made_of_bits(o) && !may_carry(type_of(o)); }
  // An object of a known type that holds such a text and numbers of its own.
  bool is_beside_numbers(Operand o) {
    const DataType* type = as_data(type_of(o));
    return (made_of_bits(o) & of_text) && type && type->is_concrete && may_carry(type) && tangents_.known(type);
  }
  void keep_outside() {
    if (!outside_) outside_ = changed_ = true;
  }
  void keep_in_mutable(const ir::Inst& inst, std::uint8_t what) {
    for (Operand o : inst.operands)
      if (is_mutable_text(tangents_, type_of(o))) keep_in(o, what);
  }
  bool refuse_text(const ir::Inst& inst) {
    refusal_ = refusal_at(function_, inst, tangents_.runtime(),
                          "a number is read from the text of a number that carries a derivative");
    return false;
  }
  // A call with text of unknown type.
  bool hands_to_reader(const ir::Inst& inst) {
    Specialization* target = nullptr;
    if (keeps_for_reverse(function_, inst, tangents_.runtime())) return false;
    // The library's own calls of what it is given are looked at when they run.
    if (function_.method && is_of_library(tangents_.runtime(), function_.method)) return false;
    if (inst.op == Op::call || (inst.op == Op::native && may_carry(inst.type)))
      target = memory_.texts().with_texts(function_, inst);
    return target && is_read(inst, *target, memory_.texts().of(*target).read, of_text);
  }
  // A function that is declared to be a constant, but makes numbers of texts.
  bool reads_texts(const ir::Inst& inst) {
    if (inst.op != Op::invoke || !may_be_read_number(tangents_, inst.type)) return false;
    if (keeps_for_reverse(function_, inst, tangents_.runtime())) return false;
    if (function_.method && is_of_library(tangents_.runtime(), function_.method)) return false;
    Specialization& target = *inst.aux_as<Specialization>();
    const auto is_text = [&](Operand o) { return made_of_bits(o) && may_be_text(tangents_, type_of(o)); };
    if (std::none_of(inst.operands.begin(), inst.operands.end(), is_text)) return false;
    Specialization* told = memory_.texts().with_texts(function_, inst);
    const TextSummary callee = memory_.texts().of(told ? *told : target);
    const MemoryMask made = may_carry(inst.type) ? 0 : callee.result;  // whole numbers
    if (may_carry(inst.type) || !positional_call(tangents_.runtime(), target.types))
      return is_read(inst, target, callee.read | made, of_bits | of_text);
    return true;  // keywords lead through code that is not followed for whole numbers
  }
  bool is_read(const ir::Inst& inst, const Specialization& target, MemoryMask read, std::uint8_t what) const {
    for (std::size_t i = 0; i < inst.operands.size(); ++i)
      if ((read & parameter_mask(parameter_of_operand(target, i))) && (made_of_bits(inst.operands[i]) & what))
        return true;
    return false;
  }
  bool is_whole_number(const Type* type) {
    const DataType* data = as_data(type);
    return data && data->is_isbits && data->size > 0 && !tangents_.differentiable(type) &&
           type != tangents_.runtime().types.builtin().boolean;
  }
  // A big number: what is made of it is not followed.
  bool is_number_object(const Type* type) {
    const DataType* data = as_data(type);
    return data && data->is_concrete && !data->is_isbits && !holds_text(tangents_, type);
  }
  static constexpr std::uint8_t of_bits = 1;
  static constexpr std::uint8_t of_text = 2;

  std::uint8_t made_of_bits(Operand o) const {
    if (o.is_inst()) return result_.texts[o.index()];
    const Value value = function_.constant_value(o);
    return is_memory_object(value) ? kept_at(value.object) : 0;
  }
  void make_of_bits(Operand o, std::uint8_t what) {
    if (!o.is_inst() || (result_.texts[o.index()] | what) == result_.texts[o.index()]) return;
    result_.texts[o.index()] |= what;
    changed_ = true;
  }
  std::uint8_t kept_at(const void* memory) const {
    const auto found = kept_.find(memory);
    return (found == kept_.end() ? 0 : found->second) | (outside_ ? of_text : 0);
  }
  void keep_at(const void* memory, std::uint8_t what) {
    if (!what || (kept_at(memory) | what) == kept_at(memory)) return;
    kept_[memory] |= what;
    changed_ = true;
  }
  // In memory, and in what leads there: it is read again from that.
  void keep_in(Operand memory, std::uint8_t what) {
    while (what && kept_through(memory, what)) {
      if (memory.is_constant()) {
        const Value value = function_.constant_value(memory);
        if (is_memory_object(value)) keep_at(value.object, what);
        return;
      }
      make_of_bits(memory, what);
      const ir::Inst& from = function_.insts[memory.index()];
      keep_in_stored(memory, what);
      // It may be seen in parts.
      if (from.op == Op::make_struct || from.op == Op::tuple)
        for (Operand part : from.operands)
          if (part.is_inst() && leads_to_mutable_text(type_of(part))) keep_in(part, what);
      if (from.op == Op::load_global) return keep_at(from.aux_as<Binding>(), what);
      if (from.op == Op::invoke) {  // what it gives may be part of these
        for (Operand o : from.operands)
          if (leads_to_mutable_text(type_of(o))) keep_in(o, what);
        return;
      }
      if (from.op == Op::native && outside_effects(from).reads) return keep_outside();
      if (from.op == Op::slot_get) return keep_in_slot(from, what);
      if (from.op == Op::parameter) return keep_in_passed(memory.index(), what);
      if (from.operands.empty() || !leads_to_memory(from.op)) return;
      memory = from.operands[0];
    }
  }
  bool is_of_any_type(Operand o) {
    const DataType* type = as_data(type_of(o));
    return o.is_inst() && (!type || !type->is_concrete);
  }
  // Also in a tuple, or another object that cannot change itself.
  bool leads_to_mutable_text(const Type* type, int depth = 0) {
    if (is_mutable_text(tangents_, type)) return true;
    const DataType* data = as_data(type);
    return data && data->is_concrete && !data->is_mutable && data->object_kind == DataType::ObjectKind::fields &&
           depth < 4 && std::any_of(data->fields.begin(), data->fields.end(), [&](const Field& field) {
             return leads_to_mutable_text(field.type, depth + 1);
           });
  }
  // Whether it was not yet kept there: variables of loops lead around.
  bool kept_through(Operand memory, std::uint8_t what) {
    if (!memory.is_inst()) return true;
    std::uint8_t& known = kept_through_[memory.index()];
    if ((known | what) == known) return false;
    known |= what;
    return true;
  }
  // A block's parameter: into what is passed for it.
  void keep_in_passed(std::uint32_t parameter, std::uint8_t what) {
    for (const ir::Block& block : function_.blocks)
      for (const ir::Edge& edge : block.edges) {
        const std::vector<std::uint32_t>& parameters = function_.blocks[edge.target].parameters;
        const auto at = std::find(parameters.begin(), parameters.end(), parameter);
        if (at != parameters.end()) keep_in(edge.arguments[static_cast<std::size_t>(at - parameters.begin())], what);
      }
  }
  // Into what lies in it: the text may have gone there.
  void keep_in_stored(Operand memory, std::uint8_t what) {
    for (const ir::Block& block : function_.blocks)
      for (std::uint32_t id : block.insts) {
        const ir::Inst& store = function_.insts[id];
        const bool may_store = ir::is_store(store.op) || (store.op == Op::invoke && may_write(store));
        if (!may_store || std::find(store.operands.begin(), store.operands.end(), memory) == store.operands.end())
          continue;
        for (Operand o : store.operands)
          if (o != memory && leads_to_mutable_text(type_of(o))) keep_in(o, what);
      }
  }
  static bool may_write(const ir::Inst& call) {
    const CodeInstance* code = call.aux_as<Specialization>()->current;
    return !code || (code->effects & effect_writes);
  }
  void keep_in_slot(const ir::Inst& access, std::uint8_t what) {
    if ((slot_texts_[access.aux] | what) == slot_texts_[access.aux]) return;
    slot_texts_[access.aux] |= what;
    changed_ = true;
    for (const ir::Block& block : function_.blocks)
      for (std::uint32_t id : block.insts) {
        const ir::Inst& set = function_.insts[id];
        if (set.op == Op::slot_set && set.aux == access.aux && is_mutable_text(tangents_, type_of(set.operands[0])))
          keep_in(set.operands[0], what);
      }
  }
  // Of an operand that is made of bits or text the result is, too.
  bool hands_on_bits(const ir::Inst& inst) {
    if (hands_on_integer(inst)) return true;
    switch (inst.op) {
      case Op::array_get:
      case Op::field_at:
      case Op::get_field:
        return (made_of_bits(inst.operands[0]) & of_bits) || inst.type == tangents_.runtime().types.builtin().uint8 ||
               may_be_text(tangents_, inst.type);
      case Op::load_global:
        return true;
      default:
        return may_be_text(tangents_, inst.type);  // pieces of text, text in tuples and objects
    }
  }
  // Where what was raised is looked at: in reverse mode it is in a box (normal_form.hpp).
  void find_caught() {
    is_caught_.assign(function_.insts.size(), false);
    const Method* method = function_.method;  // Base.caught_call hands on what was raised, and is differentiated again
    if (method && method->name && method->module == tangents_.runtime().base &&
        std::string(method->name->name).starts_with("caught_call"))
      return;
    std::vector<Operand> boxes;
    for (const ir::Block& block : function_.blocks) {
      if (block.terminator == ~0u || block.insts.empty()) continue;
      const ir::Inst& last = function_.insts[block.insts.back()];
      const ir::Inst& terminator = function_.insts[block.terminator];
      if (terminator.op == Op::branch && terminator.aux == branch_on_raise && last.op == Op::cell_set)
        boxes.push_back(last.operands[0]);
    }
    for (const ir::Block& block : function_.blocks)
      for (std::uint32_t id : block.insts) {
        const ir::Inst& inst = function_.insts[id];
        is_caught_[id] =
            inst.op == Op::caught ||
            (inst.op == Op::cell_get && std::find(boxes.begin(), boxes.end(), inst.operands[0]) != boxes.end());
      }
  }

  // What the forward half of a derivative gives back (the result's accumulators, the record) is written by its other
  // half and by whoever called it. Derivatives are functions of `nothing`.
  bool visit_return(const ir::Block& block) {
    const ir::Inst& terminator = function_.insts[block.terminator];
    if (terminator.op != Op::ret || function_.blocks[0].parameters.empty()) return true;
    const Type* self = function_.insts[function_.blocks[0].parameters[0]].type;
    if (self != tangents_.runtime().types.builtin().nothing) return true;
    return write(terminator.operands[0], terminator, false);
  }

  // The derivative of a derivative: what a tape gives back has the tangent that was put beside it. Memory that is kept
  // on a tape may be written through what is loaded, also in the other half of a derivative.
  bool visit_tape(std::uint32_t id) {
    const ir::Inst& inst = function_.insts[id];
    if (inst.op == Op::tape_store) return write(inst.operands[2], inst, false);
    if (inst.op == Op::tape_load) vary(id);
    return true;
  }

  // A variable that lives across a `try`.
  bool visit_slot(std::uint32_t id) {
    const ir::Inst& inst = function_.insts[id];
    auto grow = [&](std::vector<bool>& of_slots) {
      if (!of_slots[inst.aux]) of_slots[inst.aux] = changed_ = true;
    };
    if (inst.op == Op::slot_get) {
      make_of_bits(Operand::inst(id), slot_texts_[inst.aux]);
      if (result_.written[id]) grow(written_slots_), grow(result_.varied_slots);
      if (result_.varied_slots[inst.aux]) vary(id);
      return true;
    }
    keep_in_slot(inst, made_of_bits(inst.operands[0]));
    if (varied(inst.operands[0]) && may_carry(function_.slot_types[inst.aux])) grow(result_.varied_slots);
    return !written_slots_[inst.aux] || write(inst.operands[0], inst, false);
  }

  // A callee may write derivative-carrying values into the memory it is given, and give back some of that memory.
  bool visit_call(std::uint32_t id, bool flows) {
    const ir::Inst& inst = function_.insts[id];
    // What a forward half gives back is written by the other half, wherever that is.
    if (makes_record(function_, inst, tangents_.runtime())) {
      flows = true;
      if (!result_.written[id]) result_.written[id] = changed_ = true;
    }
    // What it reads on the tape may carry a derivative, whatever its other arguments do.
    if (takes_record(function_, inst, tangents_.runtime())) flows = true;
    if (flows) vary(id);
    bool known = inst.op == Op::invoke;
    if (known && result_.rules[id] != RuleKind::none && result_.rules[id] != RuleKind::stateful) return true;
    if (!flows && !result_.written[id]) return true;
    MemorySummary callee;
    callee.unknown = callee.result = ~MemoryMask{0};
    if (known) callee = memory_.of_call(inst);
    for (std::size_t i = 0; i < inst.operands.size(); ++i) {
      MemoryMask bit = parameter_mask(i);
      bool written = flows && (callee.carries & bit);
      bool may_be_written = flows && ((callee.unknown | callee.writes) & bit);
      bool aliased = result_.written[id] && (callee.result & bit);
      // What is kept in memory that is written may be read back and written through.
      if (callee.stored & bit && flows) may_be_written = true;
      if (written || may_be_written || aliased)
        if (!write(inst.operands[i], inst, written || (aliased && definitely_[id] && known))) return false;
    }
    return true;
  }

  void visit_edge(const ir::Edge& edge) {
    const ir::Block& target = function_.blocks[edge.target];
    for (std::size_t i = 0; i < edge.arguments.size(); ++i) {
      std::uint32_t parameter = target.parameters[i];
      if (varied(edge.arguments[i])) vary(parameter);
      make_of_bits(Operand::inst(parameter), made_of_bits(edge.arguments[i]));
      if (result_.varied[parameter] && edge.arguments[i].is_inst() && undefined_[edge.arguments[i].index()] &&
          is_memory(type_of(edge.arguments[i])))
        vary(edge.arguments[i].index());
      if (!result_.written[parameter]) continue;
      vary(parameter);
      if (function_.insts.empty() || !is_memory(type_of(edge.arguments[i]))) continue;
      if (edge.arguments[i].is_constant() && !from_global(edge.arguments[i])) continue;
      if (edge.arguments[i].is_constant() || global_[edge.arguments[i].index()]) {
        // Memory that is now a global's, now not, and written: only the second has a shadow that lasts.
        if (refusal_.reason.empty() && definitely_[parameter])
          refusal_ =
              refusal_at(function_, function_.insts[function_.blocks[edge.target].terminator], tangents_.runtime(),
                         "a value that carries a derivative is stored into a variable that may hold a global's "
                         "array or object; pass it as an argument, or copy it");
        continue;
      }
      std::uint32_t argument = edge.arguments[i].index();
      if (definitely_[parameter] && !definitely_[argument]) definitely_[argument] = changed_ = true;
      if (!result_.written[argument]) result_.written[argument] = changed_ = true;
    }
  }

  const ir::Function& function_;
  TangentTypes& tangents_;
  MemoryEffects& memory_;
  World world_;
  std::vector<Edge>* edges_;
  Activity& result_;
  Refusal& refusal_;
  std::vector<bool> definitely_;  // written for sure, by code that is known
  std::vector<bool> global_;      // read from globals
  std::vector<bool> written_slots_;
  std::vector<bool> undefined_;
  std::vector<bool> is_caught_;                         // what was raised, where it is caught
  std::unordered_map<const void*, std::uint8_t> kept_;  // the same of constants that are memory, and of globals
  std::vector<std::uint8_t> slot_texts_;
  std::vector<std::uint8_t> kept_through_;  // what was kept in it and in what it leads from
  bool outside_ = false;                    // text of what is varied is kept outside of the function
  bool forward_mode_;
  bool changed_ = false;
};

}  // namespace

bool analyse_activity(const ir::Function& function, TangentTypes& tangents, MemoryEffects& memory, World world,
                      const std::vector<char>& active, std::vector<Edge>* edges, Activity& result, Refusal& refusal,
                      bool forward_mode) {
  if (!Analysis(function, tangents, memory, world, edges, result, refusal, forward_mode).run(active)) return false;
  // Parameters of blocks that turned out varied with unknown types.
  for (const ir::Block& block : function.blocks) {
    for (std::uint32_t id : block.parameters) {
      if (!result.varied[id] || tangents.known(function.insts[id].type)) continue;
      Span span = block.insts.empty() ? function.span : function.insts[block.insts[0]].span;
      refusal = {span, function.method,
                 "a value of type " + to_string(function.insts[id].type) + " cannot carry a derivative"};
      return false;
    }
  }
  return true;
}

}  // namespace slope::diff
