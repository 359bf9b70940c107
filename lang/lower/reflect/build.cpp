// LoweredCode → untyped IR.
#include <unordered_map>
#include <utility>

#include "lang/ir/execute/execute.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/lower/reflect/lowered_code.hpp"
#include "lang/lower/scope.hpp"
#include "lang/types/object.hpp"

namespace slope::lower {

namespace {

constexpr std::size_t operand_limit = 65535;  // as many as the interpreter's instructions have room for

// Operations of typed code, of derivatives' tapes, and what has no name.
bool may_stand_in_lowered_code(ir::Op op) {
  switch (op) {
    case ir::Op::invoke:
    case ir::Op::call_splat:  // written as a call with splats
    case ir::Op::refine:
    case ir::Op::undef:
    case ir::Op::field_at:
    case ir::Op::set_field_at:
    case ir::Op::tape_open:
    case ir::Op::tape_reserve:
    case ir::Op::tape_store:
    case ir::Op::tape_load:
    case ir::Op::tape_close:
      return false;
    default:
      return true;
  }
}

class Construction {
 public:
  Construction(Runtime& runtime, const Method* method)
      : runtime_(runtime),
        builtin_(runtime.types.builtin()),
        types_(runtime),
        method_(method),
        code_(std::make_shared<ir::Function>()) {}

  std::shared_ptr<ir::Function> run(Value value, std::string& problem) {
    if (build(value)) {
      problem = ir::verify(*code_);
      if (problem.empty()) problem = check_lowered(runtime_, *code_);
      if (problem.empty()) ir::remove_unreachable_blocks(*code_);
    } else {
      problem = problem_;
    }
    return problem.empty() ? code_ : nullptr;
  }

 private:
  bool fail(std::string what) {
    if (problem_.empty()) problem_ = where_ + std::move(what);
    return false;
  }

  // --- reading objects ---

  Value field(Value object, int index) {
    return load_field(runtime_.heap, object.object, as_data(object.type)->fields[static_cast<std::size_t>(index)]);
  }

  // The elements of a field that holds a vector.
  bool elements(Value object, int index, const char* what, std::vector<Value>& out) {
    const Value v = field(object, index);
    const DataType* type = v.defined() ? as_data(v.type) : nullptr;
    if (!type || type->object_kind != DataType::ObjectKind::array || type->params[0] != builtin_.any)
      return fail(std::string("its ") + what + " are no Vector{Any}");
    const auto* array = static_cast<const ArrayObject*>(v.object);
    for (std::int64_t i = 0; i < array->length; ++i) {
      Value element;
      element =
          load_stored(runtime_.heap, array->data + static_cast<std::size_t>(i) * array->element_size, builtin_.any);
      if (!element.defined()) return fail(std::string("one of its ") + what + " is not assigned");
      out.push_back(element);
    }
    return true;
  }

  static std::string type_name(Value v) { return v.defined() ? to_string(v.type) : "nothing at all"; }

  // --- building ---

  bool build(Value value) {
    if (!types_.complete() || value.type != types_.code) return fail("it is no LoweredCode");
    const Value name = field(value, LoweredTypes::name);
    code_->name = name.defined() && name.type == builtin_.symbol ? name.symbol->name : "code";
    code_->method = method_;
    const Value origin = field(value, LoweredTypes::method);
    const bool taken = origin.defined() && origin.type == builtin_.method && origin.pointer;
    code_->scopes.push_back({taken ? static_cast<const Method*>(origin.pointer) : method_, ~0u, Span{}});
    if (code_->scopes[0].method) code_->span = code_->scopes[0].method->span;
    std::vector<Value> blocks, slots;
    if (!elements(value, LoweredTypes::blocks, "blocks", blocks) ||
        !elements(value, LoweredTypes::slots, "slots", slots))
      return false;
    for (const Value slot : slots) {
      if (slot.type != builtin_.symbol) return fail("a slot's name is a " + type_name(slot) + ", not a Symbol");
      code_->slots.push_back(slot.symbol);
    }
    if (blocks.empty()) return fail("it has no blocks");
    code_->blocks.resize(blocks.size());
    // First everything gets its number, since anything may be used before it stands.
    statements_.resize(blocks.size());
    for (ir::BlockId b = 0; b < blocks.size(); ++b)
      if (!number(b, blocks[b])) return false;
    for (ir::BlockId b = 0; b < blocks.size(); ++b)
      if (!fill(b, blocks[b])) return false;
    return count_arguments();
  }

  bool number(ir::BlockId b, Value block) {
    where_ = "block " + std::to_string(b + 1) + ": ";
    if (block.type != types_.block) return fail("a " + type_name(block) + " stands where a LoweredBlock is expected");
    if (!blocks_.emplace(block.object, b).second) return fail("it stands twice");
    std::vector<Value> parameters;
    if (!elements(block, LoweredTypes::parameters, "parameters", parameters) ||
        !elements(block, LoweredTypes::statements, "statements", statements_[b]))
      return false;
    for (const Value parameter : parameters) {
      if (parameter.type != types_.parameter)
        return fail("a " + type_name(parameter) + " stands where a LoweredParameter is expected");
      if (!add(b, parameter, code_->blocks[b].parameters)) return fail("a parameter stands twice");
      code_->insts.back().op = ir::Op::parameter;
    }
    if (statements_[b].empty()) return fail("it has no statements");
    for (const Value statement : statements_[b]) {
      if (statement.type != types_.statement)
        return fail("a " + type_name(statement) + " stands where a LoweredStatement is expected");
      if (!add(b, statement, code_->blocks[b].insts)) return fail("a statement stands twice");
    }
    code_->blocks[b].terminator = code_->blocks[b].insts.back();
    code_->blocks[b].insts.pop_back();
    return true;
  }

  bool add(ir::BlockId b, Value object, std::vector<std::uint32_t>& list) {
    const auto id = static_cast<std::uint32_t>(code_->insts.size());
    if (!numbers_.emplace(object.object, id).second) return false;
    code_->insts.emplace_back();
    code_->insts.back().block = b;
    list.push_back(id);
    return true;
  }

  bool fill(ir::BlockId b, Value block) {
    for (std::size_t i = 0; i < statements_[b].size(); ++i) {
      where_ = "block " + std::to_string(b + 1) + ", statement " + std::to_string(i + 1) + ": ";
      const std::uint32_t id = numbers_.at(statements_[b][i].object);
      if (!fill(b, statements_[b][i], code_->insts[id], i + 1 == statements_[b].size())) return false;
    }
    where_ = "block " + std::to_string(b + 1) + ": ";
    const Value handler = field(block, LoweredTypes::handler);
    if (!handler.defined() || handler.type == builtin_.nothing) return true;
    return block_number(handler, code_->blocks[b].handler);
  }

  bool block_number(Value v, ir::BlockId& out) {
    if (!v.defined() || v.type != types_.block) return fail("a " + type_name(v) + " is used as a block");
    const auto found = blocks_.find(v.object);
    if (found == blocks_.end()) return fail("it leads to a block that is not in the code");
    out = found->second;
    return true;
  }

  bool fill(ir::BlockId b, Value statement, ir::Inst& inst, bool is_last) {
    const Value op = field(statement, LoweredTypes::op);
    if (!op.defined() || op.type != builtin_.symbol || !operation(op.symbol, inst.op) ||
        !may_stand_in_lowered_code(inst.op))
      return fail((op.defined() && op.type == builtin_.symbol ? op.symbol->name : "a " + type_name(op)) +
                  " is no operation of lowered code");
    if (ir::is_terminator(inst.op) != is_last)
      return fail(is_last ? std::string(ir::op_name(inst.op)) + " is the last of the block, which must say where to go"
                          : std::string(ir::op_name(inst.op)) + " stands before the end of the block");
    place(statement, inst);
    std::vector<Value> args;
    if (!elements(statement, LoweredTypes::args, "arguments", args)) return false;
    if (args.size() > operand_limit) return fail("it has too many arguments");
    for (std::size_t i = 0; i < args.size(); ++i) {
      Value v = args[i];
      if (v.type == types_.splat) {
        if (inst.op != ir::Op::call && inst.op != ir::Op::call_splat) return fail("only calls take splats");
        if (i == 0 || i >= 64) return fail("argument " + std::to_string(i + 1) + " cannot be a splat");
        inst.op = ir::Op::call_splat;
        inst.aux |= std::uintptr_t{1} << i;
        v = field(v, 0);
      }
      ir::Operand operand;
      if (!value(v, operand)) return false;
      inst.operands.push_back(operand);
    }
    const Value data = field(statement, LoweredTypes::data);
    return is_last ? edges(data, code_->blocks[b]) : refer(data, inst);
  }

  bool operation(const Symbol* name, ir::Op& op) {
    const auto [known, fresh] = operations_.try_emplace(name, ir::Op::parameter);
    if (fresh) ir::op_from_name(name->name, known->second);
    op = known->second;
    return op != ir::Op::parameter;
  }

  void place(Value statement, ir::Inst& inst) {
    inst.span = code_->span;
    const auto file = static_cast<std::uint64_t>(field(statement, LoweredTypes::file).bits);
    const auto range = static_cast<std::uint64_t>(field(statement, LoweredTypes::range).bits);
    const Span span{static_cast<FileId>(file), static_cast<std::uint32_t>(range >> 32),
                    static_cast<std::uint32_t>(range)};
    if (file > 0 && file < runtime_.sources.size() && span.begin <= span.end &&
        span.end <= runtime_.sources.file(span.file).text().size())
      inst.span = span;
    constexpr std::uint16_t by_program =
        ir::inst_inbounds | ir::inst_fast | ir::inst_reassociate | ir::inst_boundscheck;
    inst.flags = static_cast<std::uint16_t>(field(statement, LoweredTypes::flags).bits) & by_program;
  }

  // A statement or parameter of the code, or a constant.
  bool value(Value v, ir::Operand& out, bool of_edge = false) {
    if (v.type == types_.statement || v.type == types_.parameter) {
      const auto found = numbers_.find(v.object);
      if (found == numbers_.end()) return fail("it uses a value that is not made in the code");
      out = ir::Operand::inst(found->second);
      return true;
    }
    if (v.type == types_.splat || (v.type == types_.undefined && !of_edge))
      return fail("a " + type_name(v) + " cannot stand here");
    if (v.type == types_.undefined) v = Value();
    if (v.defined() && v.type == builtin_.quote_node) v = field(v, 0);
    out = code_->constant(v);
    return true;
  }

  bool edges(Value data, ir::Block& block) {
    if (data.defined() && data.type == builtin_.nothing) return true;
    const DataType* type = data.defined() ? as_data(data.type) : nullptr;
    if (!type || type->object_kind != DataType::ObjectKind::array || type->params[0] != builtin_.any)
      return fail("its data is no Vector{Any} of edges");
    const auto* array = static_cast<const ArrayObject*>(data.object);
    for (std::int64_t i = 0; i < array->length; ++i) {
      const Value edge =
          load_stored(runtime_.heap, array->data + static_cast<std::size_t>(i) * array->element_size, builtin_.any);
      if (!edge.defined() || edge.type != types_.edge)
        return fail("a " + type_name(edge) + " stands where a LoweredEdge is expected");
      ir::Edge made;
      std::vector<Value> args;
      if (!block_number(field(edge, LoweredTypes::target), made.target) ||
          !elements(edge, LoweredTypes::edge_args, "edges' arguments", args))
        return false;
      for (const Value v : args) {
        ir::Operand operand;
        if (!value(v, operand, true)) return false;
        made.arguments.push_back(operand);
      }
      block.edges.push_back(std::move(made));
    }
    return true;
  }

  // What the operation refers to beside its operands.
  bool refer(Value data, ir::Inst& inst) {
    const auto wants = [&](const char* what) {
      return fail(std::string(ir::op_name(inst.op)) + " needs " + what + " as its data; found a " + type_name(data));
    };
    const auto set = [&](const void* pointer) {
      inst.aux = reinterpret_cast<std::uintptr_t>(pointer);
      return true;
    };
    if (!data.defined()) return wants("a value");
    switch (ir::aux_kind(inst.op)) {
      case ir::AuxKind::slot:
        if (data.type != builtin_.int64 || data.bits < 1 || static_cast<std::size_t>(data.bits) > code_->slots.size())
          return wants("the number of a slot");
        inst.aux = static_cast<std::uintptr_t>(data.bits - 1);
        return true;
      case ir::AuxKind::index: {  // of the generated method itself; a call's splats are among its arguments
        if (inst.op != ir::Op::static_param) return true;
        const std::size_t count = method_ ? method_->static_params.size() : 0;
        if (data.type != builtin_.int64 || data.bits < 1 || static_cast<std::size_t>(data.bits) > count)
          return wants("the number of a static parameter");
        inst.aux = static_cast<std::uintptr_t>(data.bits - 1);
        return true;
      }
      case ir::AuxKind::binding: {
        if (data.type != builtin_.global_ref) return wants("a GlobalRef");
        return set(global_binding(runtime_, field(data, 0).module, field(data, 1).symbol));
      }
      case ir::AuxKind::symbol:
        return data.type == builtin_.symbol ? set(data.symbol) : wants("a Symbol");
      case ir::AuxKind::type_name: {
        const Type* t = runtime_.is_type_value(data) ? data.as_type : nullptr;
        while (const UnionAllType* open = as_union_all(t)) t = open->body;
        const DataType* closure = as_data(t);
        if (!closure || !closure->name->is_closure) return wants("the type of a closure");
        if (closure->name->field_names.size() != inst.operands.size())
          return fail("the closure captures " + std::to_string(closure->name->field_names.size()) + " values, not " +
                      std::to_string(inst.operands.size()));
        return set(closure->name);
      }
      case ir::AuxKind::native: {
        const NativeInfo* native = ir::as_builtin_native(builtin_, data);
        return native ? set(native) : wants("a builtin function");
      }
      default:
        return true;
    }
  }

  bool count_arguments() {
    where_.clear();
    if (!method_) return true;
    const std::size_t wanted = method_->arg_count + (method_->is_vararg ? 1 : 0);
    const std::size_t found = code_->blocks[0].parameters.size();
    return wanted == found ||
           fail("its first block has " + std::to_string(found) +
                " parameters; the callee and the "
                "arguments" +
                (method_->is_vararg ? " (the last a tuple)" : "") + " are " + std::to_string(wanted));
  }

  Runtime& runtime_;
  const BuiltinTypes& builtin_;
  const LoweredTypes types_;
  const Method* method_;
  std::shared_ptr<ir::Function> code_;
  std::unordered_map<const Object*, ir::BlockId> blocks_;
  std::unordered_map<const Object*, std::uint32_t> numbers_;  // of instructions and parameters
  std::unordered_map<const Symbol*, ir::Op> operations_;
  std::vector<std::vector<Value>> statements_;
  std::string where_;
  std::string problem_;
};

}  // namespace

std::shared_ptr<ir::Function> from_lowered_code(Runtime& runtime, Value code, const Method* method,
                                                std::string& problem) {
  return Construction(runtime, method).run(code, problem);
}

}  // namespace slope::lower
