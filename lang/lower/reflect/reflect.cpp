// Untyped IR → LoweredCode, and Core.lowered_code.
#include <algorithm>
#include <array>
#include <utility>

#include "lang/ir/execute/execute.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/lower/reflect/lowered_code.hpp"
#include "lang/runtime/library_names.hpp"
#include "lang/runtime/library_natives.hpp"
#include "lang/support/exception_safe.hpp"
#include "lang/types/object.hpp"

namespace slope::lower {

namespace {

// The code of a specialisation, with its static parameters as constants, as a fresh LoweredCode. Nothing may be
// collected meanwhile (CollectionPause).
class Reflection {
 public:
  Reflection(Runtime& runtime, Context& ctx, const Specialization& target, const ir::Function& code)
      : runtime_(runtime),
        builtin_(runtime.types.builtin()),
        ctx_(ctx),
        types_(runtime),
        target_(target),
        code_(code),
        objects_(code.insts.size()) {}

  // The constants whose values stand in the code.
  const std::vector<const Binding*>& globals() const { return globals_; }

  bool run(Value& result) {
    if (!types_.complete()) return ctx_.raise_error("the library's types of lowered code are missing");
    std::vector<Value> blocks;
    for (const ir::Block& block : code_.blocks) {
      const Value made = object(types_.block);
      if (!made.defined()) return false;
      blocks.push_back(made);
      for (const std::uint32_t id : block.parameters)
        if (!(objects_[id] = parameter(block, id)).defined()) return false;
      for (const std::uint32_t id : block.insts)
        if (code_.insts[id].op != ir::Op::static_param && !constant_global(code_.insts[id]) &&
            !(objects_[id] = object(types_.statement)).defined())
          return false;
      objects_[block.terminator] = object(types_.statement);
    }
    blocks_ = &blocks;
    for (std::size_t b = 0; b < blocks.size(); ++b)
      if (!fill(blocks[b], code_.blocks[b])) return false;
    result = object(types_.code);
    runtime_.kept_methods.keep(*target_.method);
    std::vector<Value> slots;
    for (const Symbol* slot : code_.slots) slots.push_back(runtime_.from_symbol(slot));
    return result.defined() && set(result, LoweredTypes::blocks, vector(blocks)) &&
           set(result, LoweredTypes::slots, vector(slots)) &&
           set(result, LoweredTypes::name, runtime_.from_symbol(runtime_.symbol(code_.name))) &&
           set(result, LoweredTypes::is_vararg, runtime_.from_bool(target_.method->is_vararg)) &&
           set(result, LoweredTypes::method, Value(builtin_.method, static_cast<const void*>(target_.method)));
  }

 private:
  Value object(const DataType* type) {
    Object* made = runtime_.heap.allocate(type, type->size);
    if (!made) ctx_.out_of_memory();
    return made ? Value(type, static_cast<const void*>(made)) : Value();
  }

  bool set(Value object, int field, Value v) {
    if (!v.defined()) return ctx_.failed() ? false : ctx_.out_of_memory();
    const Field& at = as_data(object.type)->fields[static_cast<std::size_t>(field)];
    store_value(runtime_.heap, object.object->payload() + at.offset, at.type, v);
    return true;
  }

  Value vector(const std::vector<Value>& elements) {
    const DataType* type = runtime_.types.array_of(builtin_.any, 1);
    const std::int64_t dims[] = {static_cast<std::int64_t>(elements.size())};
    ArrayObject* made = runtime_.heap.allocate_array(type, dims);
    if (!made) return Value();
    for (std::size_t i = 0; i < elements.size(); ++i)
      store_value(runtime_.heap, made->data + i * made->element_size, builtin_.any, elements[i]);
    return Value(type, static_cast<const void*>(made));
  }

  Value parameter(const ir::Block& block, std::uint32_t id) {
    const Value made = object(types_.parameter);
    if (!made.defined()) return made;
    const Symbol* name = nullptr;
    const auto& names = target_.method->arg_names;
    const auto place = static_cast<std::size_t>(std::find(block.parameters.begin(), block.parameters.end(), id) -
                                                block.parameters.begin());
    if (&block == code_.blocks.data() && place < names.size()) name = names[place];
    set(made, 0, runtime_.from_symbol(name ? name : runtime_.symbol("x")));
    return made;
  }

  // A constant as an argument. What would be taken for the use of a value is quoted.
  Value constant(Value v) {
    if (!v.defined()) return Value(types_.undefined, std::int64_t{0});
    if (v.type != types_.statement && v.type != types_.parameter && v.type != types_.splat &&
        v.type != types_.undefined && v.type != builtin_.quote_node)
      return v;
    Value quoted;
    return runtime_.new_object(ctx_, builtin_.quote_node, &v, 1, quoted) ? quoted : Value();
  }

  Value operand(ir::Operand o) {
    if (o.is_constant()) return constant(shown(code_.constant_value(o)));
    const ir::Inst& inst = code_.insts[o.index()];
    if (const Binding* binding = constant_global(inst)) return constant(binding->value);
    if (inst.op != ir::Op::static_param) return objects_[o.index()];
    const Type* known = static_parameter(inst);
    if (as_var(known)) return runtime_.nothing();  // its statement raises
    return constant(as_value(known) ? as_value(known)->value : runtime_.from_type(known));
  }

  // A name that stands for a function or a type: those it calls are seen in the code. Otherwise null.
  const Binding* constant_global(const ir::Inst& inst) const {
    if (inst.op != ir::Op::load_global) return nullptr;
    const auto* binding = inst.aux_as<const Binding>();
    const DataType* type = binding->is_constant && binding->value.defined() ? as_data(binding->value.type) : nullptr;
    return type && (type->is_kind || type->instance.defined()) ? binding : nullptr;
  }

  const Type* static_parameter(const ir::Inst& inst) const { return target_.static_params[inst.aux]; }

  bool fill(Value made, const ir::Block& block) {
    std::vector<Value> parameters, statements;
    for (const std::uint32_t id : block.parameters) parameters.push_back(objects_[id]);
    for (const std::uint32_t id : block.insts) {
      const ir::Inst& inst = code_.insts[id];
      if (const Binding* binding = constant_global(inst)) {
        globals_.push_back(binding);
        continue;
      }
      if (inst.op != ir::Op::static_param) {
        if (!fill(objects_[id], inst, nullptr)) return false;
      } else if (const TypeVar* open = as_var(static_parameter(inst))) {
        objects_[id] = undefined_variable(open->name, inst);
        if (!objects_[id].defined()) return false;
      } else {
        continue;
      }
      statements.push_back(objects_[id]);
    }
    if (!fill(objects_[block.terminator], code_.insts[block.terminator], &block)) return false;
    statements.push_back(objects_[block.terminator]);
    return set(made, LoweredTypes::parameters, vector(parameters)) &&
           set(made, LoweredTypes::statements, vector(statements)) &&
           set(made, LoweredTypes::handler,
               block.handler == ir::no_block ? runtime_.nothing() : (*blocks_)[block.handler]);
  }

  // A static parameter that the call does not determine: reading it raises.
  Value undefined_variable(const Symbol* name, const ir::Inst& inst) {
    const Value made = object(types_.statement);
    if (!made.defined()) return made;
    const bool ok = place(made, inst) && set(made, LoweredTypes::op, op_symbol(ir::Op::check_defined)) &&
                    set(made, LoweredTypes::args, vector({runtime_.from_bool(false)})) &&
                    set(made, LoweredTypes::data, runtime_.from_symbol(name));
    return ok ? made : Value();
  }

  Value op_symbol(ir::Op op) {
    const Symbol*& known = op_symbols_[static_cast<std::size_t>(op)];
    if (!known) known = runtime_.symbol(ir::op_name(op));
    return runtime_.from_symbol(known);
  }

  bool place(Value statement, const ir::Inst& inst) {
    const auto range = static_cast<std::int64_t>(std::uint64_t{inst.span.begin} << 32 | inst.span.end);
    return set(statement, LoweredTypes::file, runtime_.from_int(inst.span.file)) &&
           set(statement, LoweredTypes::range, runtime_.from_int(range)) &&
           set(statement, LoweredTypes::flags, runtime_.from_int(inst.flags));
  }

  bool fill(Value made, const ir::Inst& inst, const ir::Block* ends) {
    std::vector<Value> args;
    const bool splats = inst.op == ir::Op::call_splat;
    for (std::size_t i = 0; i < inst.operands.size(); ++i) {
      Value v = operand(inst.operands[i]);
      if (splats && i < 64 && (inst.aux >> i & 1) && !runtime_.new_object(ctx_, types_.splat, &v, 1, v)) return false;
      if (!v.defined()) return ctx_.failed() ? false : ctx_.out_of_memory();
      args.push_back(v);
    }
    return place(made, inst) && set(made, LoweredTypes::op, op_symbol(splats ? ir::Op::call : inst.op)) &&
           set(made, LoweredTypes::args, vector(args)) &&
           set(made, LoweredTypes::data, ends && !ends->edges.empty() ? edges(*ends) : data(inst));
  }

  Value edges(const ir::Block& block) {
    std::vector<Value> made;
    for (const ir::Edge& edge : block.edges) {
      std::vector<Value> args;
      for (const ir::Operand o : edge.arguments) args.push_back(operand(o));
      made.push_back(object(types_.edge));
      if (!made.back().defined() || !set(made.back(), LoweredTypes::target, (*blocks_)[edge.target]) ||
          !set(made.back(), LoweredTypes::edge_args, vector(args)))
        return Value();
    }
    return vector(made);
  }

  Value name_of(Module* module, const Symbol* name) {
    const Value fields[] = {Value(builtin_.module, static_cast<const void*>(module)), runtime_.from_symbol(name)};
    Value made;
    return runtime_.new_object(ctx_, builtin_.global_ref, fields, 2, made) ? made : Value();
  }
  // Of what only the library may use the name alone.
  Value shown(Value v) {
    if (!is_library_native(builtin_, v)) return v;
    return name_of(runtime_.core, runtime_.symbol(static_cast<const NativeInfo*>(v.pointer)->name));
  }

  // What the operation refers to beside its operands.
  Value data(const ir::Inst& inst) {
    switch (ir::aux_kind(inst.op)) {
      case ir::AuxKind::slot:
        return runtime_.from_int(static_cast<std::int64_t>(inst.aux) + 1);
      case ir::AuxKind::binding: {
        const auto* binding = inst.aux_as<const Binding>();
        return name_of(binding->module, binding->name);
      }
      case ir::AuxKind::symbol:
        return runtime_.from_symbol(inst.aux_as<const Symbol>());
      case ir::AuxKind::type_name:
        return runtime_.from_type(inst.aux_as<TypeName>()->wrapper);
      case ir::AuxKind::native:
        return shown(Value(builtin_.builtin_function, inst.aux_as<const void>()));
      default:
        return runtime_.nothing();
    }
  }

  Runtime& runtime_;
  const BuiltinTypes& builtin_;
  Context& ctx_;
  const LoweredTypes types_;
  const Specialization& target_;
  const ir::Function& code_;
  std::vector<Value> objects_;  // by instruction
  std::vector<const Binding*> globals_;
  std::array<const Symbol*, static_cast<std::size_t>(ir::Op::count_)> op_symbols_{};
  const std::vector<Value>* blocks_ = nullptr;
};

// A tuple type of a callee and definite argument types.
const DataType* call_types_of(Context& ctx, Value v) {
  Runtime& runtime = *ctx.runtime;
  const DataType* tuple = runtime.is_type_value(v) ? as_data(v.as_type) : nullptr;
  if (!tuple || !tuple->is_tuple || tuple->params.empty() || tuple->has_free_vars) {
    ctx.argument_error("lowered_code takes the types of a call, Tuple{typeof(f), types...}");
    return nullptr;
  }
  return tuple;
}

// lowered_code(types of the call, types that choose the method) → LoweredCode or nothing
bool lowered_code(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  const BuiltinTypes& builtin = runtime.types.builtin();
  if (count != 2) return ctx.argument_error("lowered_code takes two tuple types");
  const DataType* types = call_types_of(ctx, args[0]);
  const DataType* choice = types ? call_types_of(ctx, args[1]) : nullptr;
  if (!choice) return false;
  for (const Type* t : types->params) {
    const DataType* data = as_data(t);
    if ((is_concrete(t) && !t->is_kind) || (data && data->is_type_of_type && !t->has_free_vars)) continue;
    return ctx.argument_error("lowered_code needs concrete types; found " + to_string(t));
  }
  result = runtime.nothing();
  if (types->params[0] == builtin.builtin_function) return true;
  GeneratorRun* const run = ctx.generating;
  const World world = run ? run->world : ctx.world;
  Lookup found;
  if (types == choice) {
    found = runtime.lookup(types, world);
  } else {
    std::vector<Lookup> all = runtime.lookup_all(choice, world, 1000);
    for (const Lookup& one : all) {
      found.min_world = std::max(found.min_world, one.min_world);
      found.max_world = std::min(found.max_world, one.max_world);
      if (found.method || !one.method || !is_subtype(runtime.types, choice, one.method->signature)) continue;
      found.method = one.method;
    }
  }
  const auto note = [&](World min_world, World max_world) {
    if (!run) return;
    run->source->min_world = std::max(run->source->min_world, min_world);
    run->source->max_world = std::min(run->source->max_world, max_world);
  };
  if (run) {
    Edge edge;
    edge.signature = choice;
    run->source->edges.push_back(edge);
  }
  note(found.min_world, found.max_world);
  if (!found.method || found.method->native) return true;
  if (types != choice) {
    auto parameters =
        is_subtype(runtime.types, types, choice) ? match(runtime.types, types, found.method->signature) : std::nullopt;
    if (!parameters) return true;
    found.static_params = std::move(*parameters);
  }
  Specialization* target = runtime.specialize(found.method, types, found.static_params);
  const CollectionPause pause(runtime.heap);
  // A method is lowered as it is when it is called: macros in it may do what they like.
  const Source source = [&] {
    const Restored generating(ctx.generating, target->method->generator ? run : nullptr);
    const Restored in_world(ctx.world, world);
    return runtime.source(ctx, *target, SourceUse::reflection, world);
  }();
  if (!source.code) return false;
  note(source.min_world, source.max_world);
  if (run) run->source->edges.insert(run->source->edges.end(), source.edges.begin(), source.edges.end());
  Reflection reflection(runtime, ctx, *target, *source.code);
  if (!reflection.run(result)) return false;
  if (!run) return true;
  for (const Binding* binding : reflection.globals()) {
    Edge edge;
    edge.kind = Edge::Kind::binding;
    edge.binding = binding;
    run->source->edges.push_back(edge);
  }
  return true;
}

// lowered_text(code) → String
bool lowered_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  if (count != 1 || !is_lowered_code(runtime, args[0])) return ctx.argument_error("lowered_text takes a LoweredCode");
  std::string problem;
  const CollectionPause pause(runtime.heap);
  const auto code = from_lowered_code(runtime, args[0], nullptr, problem);
  result = runtime.from_string(code ? ir::print_compact(*code) : "malformed lowered code: " + problem);
  return result.defined() || ctx.out_of_memory();
}

const NativeInfo reflect_natives[] = {
    {"lowered_code", lowered_code, effect_all, nullptr, false, true},
    {"lowered_text", lowered_text, effect_allocates | effect_throws | effect_reads, nullptr, false, true},
};

}  // namespace

LoweredTypes::LoweredTypes(Runtime& runtime) {
  const std::pair<const char*, const DataType**> wanted[] = {{"LoweredParameter", &parameter},
                                                             {"LoweredStatement", &statement},
                                                             {"LoweredSplat", &splat},
                                                             {"LoweredUndefined", &undefined},
                                                             {"LoweredBlock", &block},
                                                             {"LoweredEdge", &edge},
                                                             {"LoweredCode", &code}};
  for (const auto& [name, type] : wanted) {
    const Binding* binding = runtime.base->find(runtime.symbol(name));
    if (binding && runtime.is_type_value(binding->value)) *type = as_data(binding->value.as_type);
  }
}

bool is_lowered_code(Runtime& runtime, Value v) {
  const Binding* binding = library_binding(runtime, KnownName::lowered_code_type);
  return v.defined() && binding && runtime.is_type_value(binding->value) && v.type == binding->value.as_type;
}

void define_lowered_code_natives(Runtime& runtime) {
  for (const NativeInfo& native : reflect_natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope::lower
