// One walk through the optimised code of a function and of what it calls, each function once. A place is identified by
// the calls that lead to it, so that inlined calls and others look the same.
#include "lang/explain/why_costs.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "lang/explain/view_text.hpp"
#include "lang/infer/lattice.hpp"
#include "lang/ir/cfg.hpp"
#include "lang/ir/passes/escape.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/support/tuning.hpp"

namespace slope::infer {

namespace {

using ir::Op;
using ir::Operand;

struct Reason {
  std::string text;
  std::string advice;
  bool certain = true;  // false: only what it does when it runs decides
  bool found() const { return !text.empty(); }
};

class Walk {
 public:
  enum class Question { allocations, dynamic_calls };
  Walk(Runtime& runtime, Question question, const CostSource& source)
      : runtime_(runtime), builtin_(runtime.types.builtin()), question_(question), source_(source) {}

  std::vector<CostSite> run(Specialization& target) {
    visit(target, {}, {.in_loop = false, .always = true});
    return std::move(sites_);
  }

 private:
  struct Where {
    bool in_loop;
    bool always;
  };

  void visit(Specialization& target, const std::vector<Span>& way, Where outside) {
    // Once; again where every call comes here and only some did before.
    const auto [seen, fresh] = seen_.try_emplace(&target, outside.always);
    if (!fresh && (seen->second || !outside.always)) return;
    seen->second = outside.always;
    const ir::Function* fn = source_.optimised(target);
    if (!fn) return;
    const ir::Cfg cfg = ir::build_cfg(*fn);
    const ir::LoopForest loops = ir::find_loops(*fn, cfg);
    const std::vector<char> failing = failing_blocks(*fn, cfg);
    std::vector<ir::Place> places;
    if (question_ == Question::allocations) places = ir::places_of_objects(*fn, cfg, runtime_.types);
    for (const ir::BlockId b : cfg.order) {
      if (failing[b]) continue;
      const Where turns{.in_loop = outside.in_loop || loops.loop_of[b] != ~0u,
                        .always = outside.always && unavoidable(*fn, loops, failing, b)};
      const ir::Block& block = fn->blocks[b];
      for (const std::uint32_t id : block.insts)
        if (places.empty() || places[id] == ir::Place::heap)
          look_at(*fn, fn->insts[id], way, turns);
        else
          note(*fn, fn->insts[id], way, turns, outgrows(fn->insts[id]));
      if (block.terminator == ~0u) continue;
      const ir::Inst& last = fn->insts[block.terminator];
      if (question_ != Question::allocations) continue;
      if (last.op == Op::ret && !last.operands.empty())
        note(*fn, last, way, turns, boxes(*fn, last.operands[0], fn->return_type, "the result"));
      for (const ir::Edge& edge : block.edges)
        for (std::size_t i = 0; i < edge.arguments.size(); ++i) {
          const ir::Inst& parameter = fn->insts[fn->blocks[edge.target].parameters[i]];
          note(*fn, span_of(*fn, edge.arguments[i], last), way, turns,
               boxes(*fn, edge.arguments[i], parameter.type, "a variable"));
        }
    }
  }

  // Blocks from which control only gets to an error: what they cost is the error's.
  std::vector<char> failing_blocks(const ir::Function& fn, const ir::Cfg& cfg) const {
    std::vector<char> failing(fn.blocks.size(), 0);
    for (auto at = cfg.order.rbegin(); at != cfg.order.rend(); ++at) {
      const ir::Block& block = fn.blocks[*at];
      if (block.terminator == ~0u || block.handler != ir::no_block) continue;
      const Op op = fn.insts[block.terminator].op;
      failing[*at] = op == Op::throw_ || op == Op::unreachable;
      if (block.edges.empty()) continue;
      failing[*at] = std::all_of(block.edges.begin(), block.edges.end(),
                                 [&](const ir::Edge& edge) { return failing[edge.target] != 0; });
    }
    return failing;
  }

  // Whether each call that returns comes through the block; of a block in a loop, each turn of the loop.
  static bool unavoidable(const ir::Function& fn, const ir::LoopForest& loops, const std::vector<char>& failing,
                          ir::BlockId block) {
    for (std::uint32_t loop = loops.loop_of[block]; loop != ~0u; loop = loops.loops[loop].parent) {
      const ir::Loop& around = loops.loops[loop];
      if (block != around.header && reaches(fn, failing, around.header, block, [&](ir::BlockId b) {
            return b == around.header ? Reach::goal : is_in(around, b) ? Reach::way : Reach::wall;
          }))
        return false;
      block = around.header;
    }
    return block == 0 || !reaches(fn, failing, 0, block, [&](ir::BlockId b) {
             const std::uint32_t end = fn.blocks[b].terminator;
             return end != ~0u && fn.insts[end].op == Op::ret ? Reach::goal : Reach::way;
           });
  }
  static bool is_in(const ir::Loop& loop, ir::BlockId block) {
    return std::find(loop.blocks.begin(), loop.blocks.end(), block) != loop.blocks.end();
  }

  // Whether a goal follows `from` on a way without `avoided` and without failing blocks.
  enum class Reach { goal, way, wall };
  template <typename Kind>
  static bool reaches(const ir::Function& fn, const std::vector<char>& failing, ir::BlockId from, ir::BlockId avoided,
                      const Kind& kind) {
    std::vector<char> met(fn.blocks.size(), 0);
    std::vector<ir::BlockId> work{from};
    if (kind(from) == Reach::goal && fn.blocks[from].edges.empty()) return true;
    while (!work.empty()) {
      const ir::BlockId at = work.back();
      work.pop_back();
      for (const ir::Edge& edge : fn.blocks[at].edges) {
        const ir::BlockId next = edge.target;
        if (next == avoided || failing[next]) continue;
        const Reach found = kind(next);
        if (found == Reach::goal) return true;
        if (found == Reach::wall || met[next]) continue;
        met[next] = 1;
        work.push_back(next);
      }
    }
    return false;
  }

  static const ir::Inst& span_of(const ir::Function& fn, Operand value, const ir::Inst& otherwise) {
    return value.is_inst() && fn.insts[value.index()].span.file ? fn.insts[value.index()] : otherwise;
  }

  void look_at(const ir::Function& fn, const ir::Inst& inst, const std::vector<Span>& way, Where where) {
    if (inst.op == Op::invoke) {
      Specialization* callee = inst.aux_as<Specialization>();
      if (callee && inst.type && inst.type->kind != TypeKind::bottom) visit(*callee, way_to(fn, inst, way), where);
      if (question_ == Question::allocations && callee) {
        const auto& declared = callee->types->params;
        for (std::size_t i = 0; i < inst.operands.size() && i < declared.size(); ++i)
          note(fn, inst, way, where, boxes(fn, inst.operands[i], declared[i], "an argument"));
      }
      return;
    }
    note(fn, inst, way, where, question_ == Question::allocations ? allocates(fn, inst) : looks_up(fn, inst));
  }

  std::vector<Span> way_to(const ir::Function& fn, const ir::Inst& inst, const std::vector<Span>& way) const {
    std::vector<Span> inner{inst.span};
    for (std::uint32_t scope = inst.scope; scope != 0 && scope < fn.scopes.size(); scope = fn.scopes[scope].parent)
      inner.push_back(fn.scopes[scope].call_site);
    std::vector<Span> result = way;
    result.insert(result.end(), inner.rbegin(), inner.rend());
    return result;
  }

  void note(const ir::Function& fn, const ir::Inst& inst, const std::vector<Span>& way, Where where,
            const Reason& reason) {
    if (!reason.found()) return;
    CostSite site;
    site.way = way_to(fn, inst, way);
    std::erase_if(site.way, [](const Span& span) { return span.file == 0; });
    if (site.way.empty()) return;
    site.what = expression(site.way.front());
    site.reason = reason.text;
    site.advice = reason.advice;
    site.in_loop = where.in_loop;
    site.always = where.always && reason.certain;
    for (CostSite& other : sites_)
      if (other.reason == site.reason && place(other.way.front()) == place(site.way.front())) {
        other.in_loop = other.in_loop || site.in_loop;
        other.always = other.always || site.always;
        return;
      }
    sites_.push_back(std::move(site));
  }

  std::string place(Span span) const {
    return runtime_.sources.file(span.file).name() + ":" + std::to_string(runtime_.sources.line_of(span));
  }

  std::string expression(Span span) const { return source_text(runtime_.sources, span); }

  // --- memory ---

  // Fields of an immutable struct lie in registers and on the stack, unless they are too many or it holds itself.
  static constexpr std::size_t most_leaves = 32;
  std::size_t leaves(const DataType* type, int depth = 0) const {
    if (type->storage == Storage::singleton) return 0;
    if (type->is_mutable || type->object_kind != DataType::ObjectKind::fields || type->storage == Storage::bits)
      return 1;
    if (depth > 32) return most_leaves + 1;
    std::size_t sum = 0;
    for (const Field& field : type->fields) {
      const DataType* inner = as_data(field.type);
      sum += inner && inner->is_concrete ? leaves(inner, depth + 1) : 2;
      if (sum > most_leaves) break;
    }
    return sum;
  }
  bool is_plain_struct(const DataType* type) const {
    return type && type->is_concrete && !type->is_mutable && type->object_kind == DataType::ObjectKind::fields &&
           (type->storage == Storage::aggregate || type->storage == Storage::reference);
  }

  const Type* type_of(const ir::Function& fn, Operand o) const {
    if (o.is_constant() && !fn.constant_value(o).defined()) return builtin_.bottom;
    return fn.type_of(o, runtime_.types);
  }

  // A struct in a place that may hold values of several types is an object of its own.
  Reason boxes(const ir::Function& fn, Operand value, const Type* place, const char* whose) const {
    if (!value.is_inst() || !place) return {};  // constants are objects already
    const DataType* type = as_data(type_of(fn, value));
    const DataType* to = as_data(place);
    if (!is_plain_struct(type) || (to && to->is_concrete) || leaves(type) > most_leaves) return {};
    const Op op = fn.insts[value.index()].op;
    if (op == Op::refine || op == Op::type_assert) return {};  // it was an object before
    return {std::string(whose) + " of type " + to_string(place) + " holds a " + to_string(type) +
                ", which must be an object of its own there",
            "give it one exact type; `@why` says where that was lost"};
  }

  Reason object(const Type* made, const char* word) const {
    const DataType* type = as_data(made);
    if (!type || !type->is_concrete)
      return {std::string("a ") + word + " is made whose type is only known when it runs: " + to_string(made),
              "let the types of its fields be known; `@why` says where they were lost"};
    if (type->storage == Storage::singleton || type->storage == Storage::bits) return {};
    if (type->is_mutable)
      return {"a mutable struct is made: " + to_string(type),
              "make it once and change it, or let the struct be immutable"};
    if (leaves(type) > most_leaves)
      return {std::string("a ") + word + " of more than " + std::to_string(most_leaves) +
                  " numbers and references is made: " + to_string(type),
              "keep so many values in an array that is made once"};
    return {};
  }

  // Of what lies in scratch memory: arrays whose length is known only when they are made.
  Reason outgrows(const ir::Inst& inst) const {
    if (inst.op != Op::array_new) return {};
    const auto is_known = [](Operand o) { return o.is_constant(); };
    if (std::all_of(inst.operands.begin(), inst.operands.end(), is_known)) return {};
    return {"an array is made, in the heap if it takes more than " + std::to_string(ir::scratch_object_most >> 10) +
                " KiB: " + to_string(inst.type),
            "write into an array that was made before: `y .= …`, `mul!`, `map!`", false};
  }

  Reason allocates(const ir::Function& fn, const ir::Inst& inst) const {
    switch (inst.op) {
      case Op::cell_new: {
        return {"a variable that a closure captures is assigned after that, so it lives in an object",
                "give the closure a variable that is assigned once, or keep what changes in a `Ref{T}` made before"};
      }
      case Op::array_new:
        return {"an array is made: " + to_string(inst.type),
                "write into an array that was made before: `y .= …`, `mul!`, `map!`"};
      case Op::array_share:
        return {"an array of its own is made for another shape of the same memory: " + to_string(inst.type),
                "reshape once, before"};
      case Op::array_resize:
      case Op::array_resize_front:
        return {"an array grows, and may need more memory", "say how long it will get: `sizehint!(v, n)`", false};
      case Op::tuple:
        return object(inst.type, "tuple");
      case Op::make_struct:
        return object(inst.type, "struct");
      case Op::make_closure:
        return object(inst.type, "closure");
      case Op::apply_type:
      case Op::make_union:
      case Op::type_var:
      case Op::union_all:
        return {"a type is made when it runs", "write the type out, or give it as an argument `::Type{T}`"};
      case Op::expr:
        return {"an expression (`Expr`) is made", "quote it once, as a constant"};
      case Op::native: {
        if (!(ir::op_effects(inst) & effect_allocates)) return {};
        const std::string name = inst.aux_as<const NativeInfo>()->name;
        const DataType* type = as_data(inst.type);
        if (type == builtin_.string)
          return {"a string is made", "print the parts to an `IOBuffer` or to the stream itself"};
        if (type && type->is_concrete && (type->is_isbits || type->storage == Storage::singleton)) return {};
        return {"`" + name + "` of the library makes " +
                    (type && type->is_concrete ? "a " + to_string(type) : std::string("objects")),
                "keep what it gives, and use it again"};
      }
      case Op::call:
      case Op::call_splat:
        return {"what is called is found when it runs: its arguments and its result are objects, and it may make more",
                "see `@why_dynamic`", false};
      case Op::array_set:
      case Op::array_init: {
        const DataType* array = as_data(type_of(fn, inst.operands[0]));
        if (!array || array->params.empty()) return {};
        return boxes(fn, inst.operands[1], array->params[0], "an element");
      }
      case Op::set_field_at: {
        const DataType* owner = as_data(type_of(fn, inst.operands[0]));
        if (!owner || inst.aux >= owner->fields.size()) return {};
        return boxes(fn, inst.operands[1], owner->fields[inst.aux].type, "a field");
      }
      case Op::cell_set:
        return boxes(fn, inst.operands[1], builtin_.any, "a captured variable");
      default:
        return {};
    }
  }

  // --- calls ---

  Reason looks_up(const ir::Function& fn, const ir::Inst& inst) const {
    if (inst.op == Op::call_splat)
      return {"a collection of unknown length is splatted into the call",
              "call a function that takes the collection itself, or splat a tuple"};
    if (inst.op != Op::call || inst.operands.empty()) return {};
    const Operand callee = inst.operands[0];
    if (!callee.is_constant() && !is_dispatch_type(builtin_, type_of(fn, callee)))
      return {"the function that is called is only known when it runs: its type is " + to_string(type_of(fn, callee)),
              "let the function be an argument (each function has a type of its own), or a field of parametric type"};
    std::string open;
    std::vector<const Type*> types;
    for (std::size_t i = 0; i < inst.operands.size(); ++i) {
      const Operand o = inst.operands[i];
      const Type* type =
          o.is_constant() ? runtime_.types.dispatch_type(fn.constant_value(o)) : fn.type_of(o, runtime_.types);
      types.push_back(type);
      if (i > 0 && !o.is_constant() && !is_dispatch_type(builtin_, type))
        open += (open.empty() ? "" : " and ") + std::string("argument ") + std::to_string(i) + " may be any " +
                (type == builtin_.any ? std::string("value") : to_string(type));
    }
    std::size_t methods = 0;
    std::size_t limit = tuning::most_choices;
    constexpr int most = 1000;
    for (const Lookup& each : runtime_.lookup_all(runtime_.types.tuple(types), runtime_.world(), most))
      if (each.method) {
        ++methods;
        if (each.method->module == runtime_.base) limit = static_cast<std::size_t>(InferOptions().union_limit);
      }
    if (methods == 0 && open.empty())
      return {"no method fits the call: it raises a MethodError", "define a method for these types"};
    std::string text = open.empty() ? "which method it is was left open" : open;
    text += methods > limit ? "; " + std::to_string(methods) + " methods fit, and code is prepared for " +
                                  std::to_string(limit) + " at most"
                            : "; " + std::to_string(methods) + (methods == 1 ? " method fits" : " methods fit");
    return {text, "give the argument an exact type (`@why` says where it was lost), or assert it before: `x::T`"};
  }

  Runtime& runtime_;
  const BuiltinTypes& builtin_;
  Question question_;
  const CostSource& source_;
  std::map<const Specialization*, bool> seen_;  // with whether every call comes there
  std::vector<CostSite> sites_;
};

}  // namespace

std::vector<CostSite> allocations(Runtime& runtime, Specialization& target, const CostSource& source) {
  return Walk(runtime, Walk::Question::allocations, source).run(target);
}

std::vector<CostSite> dynamic_calls(Runtime& runtime, Specialization& target, const CostSource& source) {
  return Walk(runtime, Walk::Question::dynamic_calls, source).run(target);
}

}  // namespace slope::infer
