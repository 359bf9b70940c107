// Runs IR, typed or not, one operation after the other on dynamic values: what inferred code is held against. In typed
// code every value is checked to be of the type that stands at its instruction.
#pragma once

#include <unordered_map>

#include "lang/types/object.hpp"
#include "tests/infer/fixture.hpp"

namespace slope::test {

class Evaluator {
 public:
  enum class Status { ok, raised, out_of_fuel };

  Evaluator(Inferring& inferring, bool typed) : i_(inferring), typed_(typed), kept_(inferring.runtime.heap) {}

  long fuel = 20000;
  std::string wrong;  // the first value that is not of its type

  // Calls f on values, callee first. `result` is the exception when it raised.
  Status call(const std::vector<Value>& values, Value& result) {
    if (--fuel < 0 || depth_ > 60) return Status::out_of_fuel;
    const BuiltinTypes& t = i_.t;
    if (std::optional<Op> op = ir::as_builtin_op(t, values[0])) {
      if (ir::execute(i_.runtime.context, *op, values.data() + 1, values.size() - 1, 0, result)) return keep(result);
      return raised(result);
    }
    const DataType* types = i_.runtime.call_types(values[0], values.data() + 1, values.size() - 1);
    Lookup found = i_.runtime.lookup(types, i_.runtime.world());
    if (!found.method) {
      result = i_.runtime.from_symbol(i_.runtime.symbol("MethodError"));
      return Status::raised;
    }
    return invoke(*i_.runtime.specialize(found.method, types, found.static_params), values, result);
  }

  Status invoke(Specialization& target, std::vector<Value> values, Value& result) {
    if (--fuel < 0 || depth_ > 60) return Status::out_of_fuel;
    const Method& method = *target.method;
    if (method.is_vararg) {
      std::vector<Value> rest(values.begin() + method.arg_count, values.end());
      values.resize(method.arg_count);
      Value packed;
      if (!i_.runtime.new_tuple(i_.runtime.context, rest.data(), rest.size(), packed)) return raised(result);
      keep(packed);
      values.push_back(packed);
    }
    const ir::Function* code = method.ir.get();
    const Type* returned = nullptr;
    if (typed_) {
      if (target.code.empty()) {
        infer::Inference inference(i_.runtime, i_.runtime.context, i_.runtime.world());
        infer::InferResult inferred = inference.infer(target);
        std::string problem = ir::verify(*inferred.typed);
        if (!problem.empty() && wrong.empty()) wrong = problem + "\n" + ir::print(*inferred.typed);
        if (target.code.empty()) infer::publish(i_.runtime, target, std::move(inferred));
      }
      const CodeInstance& instance = *target.code.back();
      code = instance.typed.get();
      returned = instance.return_type;
      if (instance.constant_result.defined()) expected_constant_ = instance.constant_result;
    }
    ++depth_;
    Value constant = expected_constant_;
    expected_constant_ = Value();
    Status status = run(*code, target, values, result);
    --depth_;
    if (status == Status::ok && returned) {
      check(result, returned, "result of " + code->name);
      if (constant.defined() && !egal(constant, result)) fail("constant result of " + code->name);
    }
    return status;
  }

 private:
  Status keep(Value v) {
    kept_.values.push_back(v);
    return Status::ok;
  }
  Status raised(Value& result) {
    result = i_.runtime.context.take_error();
    kept_.values.push_back(result);
    return Status::raised;
  }
  void fail(const std::string& what) {
    if (wrong.empty()) wrong = what;
  }
  void check(Value v, const Type* type, const std::string& where) {
    if (v.defined() && type && !is_instance(i_.types, v, type))
      fail(where + ": " + ir::constant_text(v) + " is no " + to_string(type));
  }

  int nesting(const Type* type) {
    const DataType* data = as_data(type);
    if (!data || !data->is_tuple) return 0;
    auto [at, fresh] = nesting_.try_emplace(type, 0);
    if (!fresh) return at->second;
    int deepest = 0;
    for (const Type* t : data->params) deepest = std::max(deepest, nesting(t) + 1);
    return nesting_[type] = deepest;
  }

  Status run(const ir::Function& fn, Specialization& self, const std::vector<Value>& arguments, Value& result) {
    std::vector<Value> values(fn.insts.size()), slots(fn.slots.size());
    auto get = [&](Operand o) { return o.is_constant() ? fn.constants[o.index()] : values[o.index()]; };
    auto define = [&](std::uint32_t id, Value v) {
      values[id] = v;
      if (!typed_ || !v.defined() || !fn.insts[id].type || is_instance(i_.types, v, fn.insts[id].type)) return;
      fail(fn.name + " %" + std::to_string(id) + ": " + ir::constant_text(v) + " is of another type in\n" +
           ir::print(fn));
    };
    const std::vector<std::uint32_t>& parameters = fn.blocks[0].parameters;
    for (std::size_t p = 0; p < parameters.size(); ++p) define(parameters[p], arguments[p]);
    Value exception;
    for (ir::BlockId b = 0;;) {
      if (--fuel < 0) return Status::out_of_fuel;
      const ir::Block& block = fn.blocks[b];
      Status status = Status::ok;
      for (std::uint32_t id : block.insts) {
        const ir::Inst& inst = fn.insts[id];
        std::vector<Value> operands;
        for (Operand o : inst.operands) operands.push_back(get(o));
        Value v;
        switch (inst.op) {
          case Op::call:
            status = call(operands, v);
            break;
          case Op::invoke:
            status = invoke(*inst.aux_as<Specialization>(), operands, v);
            break;
          case Op::refine:
            v = operands[0];
            break;
          case Op::caught:
            v = exception;
            break;
          case Op::caught_end:
            v = i_.runtime.nothing();
            break;
          case Op::slot_set:
            slots[inst.aux] = operands[0];
            v = i_.runtime.nothing();
            break;
          case Op::slot_get:
            v = slots[inst.aux];
            if (!v.defined()) {
              status = Status::raised;
              v = i_.runtime.from_symbol(i_.runtime.symbol("UndefVarError"));
            }
            break;
          case Op::static_param:
            v = i_.runtime.from_type(self.static_params[inst.aux]);
            break;
          default:
            if (!ir::execute(i_.runtime.context, inst.op, operands.data(), operands.size(), inst.aux, v))
              status = raised(v);
            else
              keep(v);
        }
        if (status == Status::out_of_fuel) return status;
        if (status == Status::raised) {
          if ((inst.flags & ir::inst_nothrow) && typed_)
            fail("raised although proved not to: " + fn.name + " %" + std::to_string(id) + "\n" + ir::print(fn));
          exception = v;
          break;
        }
        define(id, v);
        if (nesting(v.type) > 8) return Status::out_of_fuel;  // a tuple of itself twice, again and again
      }
      std::size_t taken = 0;
      if (status == Status::ok) {
        const ir::Inst& inst = fn.insts[block.terminator];
        if (inst.op == Op::ret) {
          result = get(inst.operands[0]);
          return Status::ok;
        }
        if (inst.op == Op::unreachable) {
          fail("reached unreachable in " + fn.name + "\n" + ir::print(fn));
          return Status::out_of_fuel;
        }
        if (inst.op == Op::throw_) {
          exception = get(inst.operands[0]);
          status = Status::raised;
        } else if (inst.op == Op::branch) {
          Value condition = get(inst.operands[0]);
          if (condition.type != i_.t.boolean) {
            exception = i_.runtime.from_symbol(i_.runtime.symbol("TypeError"));
            status = Status::raised;
          } else {
            taken = condition.bits & 1 ? 0 : 1;
          }
        }
      }
      if (status == Status::raised) {
        if (block.handler == ir::no_block) {
          result = exception;
          return Status::raised;
        }
        b = block.handler;
        continue;
      }
      const ir::Edge& edge = block.edges[taken];
      std::vector<Value> passed;
      for (Operand o : edge.arguments) passed.push_back(get(o));
      for (std::size_t p = 0; p < passed.size(); ++p) define(fn.blocks[edge.target].parameters[p], passed[p]);
      b = edge.target;
    }
  }

  Inferring& i_;
  bool typed_;
  Rooted kept_;
  int depth_ = 0;
  Value expected_constant_;
  std::unordered_map<const Type*, int> nesting_;
};

}  // namespace slope::test
