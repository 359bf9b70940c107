// A runtime without tiers, and methods made of untyped IR by hand.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "lang/infer/infer.hpp"
#include "lang/ir/build.hpp"
#include "lang/ir/execute/execute.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/runtime/runtime.hpp"
#include "tests/golden.hpp"

namespace slope::test {

using ir::Op;
using ir::Operand;

struct Inferring {
  Runtime runtime;
  TypeTable& types = runtime.types;
  const BuiltinTypes& t = runtime.types.builtin();

  Inferring() {
    ir::define_op_builtins(runtime);
    RuntimeHooks hooks;
    ir::add_hooks(hooks);
    runtime.connect(hooks);
  }

  using Body = std::function<void(ir::Builder&, const std::vector<Operand>&)>;

  // A method f(args…) = body; the body's operands are the callee and the arguments. The signature's last type may be a
  // vararg.
  Method* method(const std::string& name, std::vector<const Type*> arguments, const Body& body,
                 std::vector<const TypeVar*> variables = {}) {
    Value f = function(name);
    arguments.insert(arguments.begin(), f.type);
    return method_of(name, std::move(arguments), body, std::move(variables));
  }

  // The same with the callee's type first.
  Method* method_of(const std::string& name, std::vector<const Type*> signature, const Body& body,
                    std::vector<const TypeVar*> variables = {}) {
    auto made = std::make_unique<Method>();
    made->name = runtime.symbol(name);
    made->module = runtime.main;
    const Type* type = types.tuple(signature);
    for (std::size_t i = variables.size(); i-- > 0;) type = types.union_all(variables[i], type);
    made->signature = type;
    made->ir = this->body(name, signature.size(), body);
    Method* result = runtime.add_method(std::move(made));
    result->ir->method = result;
    return result;
  }

  std::unique_ptr<ir::Function> body(const std::string& name, std::size_t parameters, const Body& body) {
    auto fn = std::make_unique<ir::Function>();
    fn->name = name;
    ir::Builder builder(*fn);
    builder.set_block(builder.new_block());
    std::vector<Operand> operands;
    for (std::size_t i = 0; i < parameters; ++i) operands.push_back(builder.add_parameter(0));
    body(builder, operands);
    INFO(ir::print(*fn));
    CHECK(ir::verify(*fn) == "");
    return fn;
  }

  Value function(const std::string& name) { return runtime.generic_function(runtime.main, runtime.symbol(name)); }
  Operand callee(ir::Builder& b, const std::string& name) { return b.constant(function(name)); }
  Operand integer(ir::Builder& b, std::int64_t n) { return b.constant(runtime.from_int(n)); }
  Operand symbol(ir::Builder& b, const char* name) { return b.constant(runtime.from_symbol(runtime.symbol(name))); }
  Operand type(ir::Builder& b, const Type* type) { return b.constant(runtime.from_type(type)); }
  Operand call(ir::Builder& b, const std::string& name, std::vector<Operand> arguments) {
    arguments.insert(arguments.begin(), callee(b, name));
    return b.emit(Op::call, arguments);
  }

  Specialization* target(const std::string& name, std::vector<const Type*> arguments) {
    arguments.insert(arguments.begin(), function(name).type);
    Lookup found = runtime.lookup(types.tuple(arguments), runtime.world());
    REQUIRE(found.method);
    return runtime.specialize(found.method, types.tuple(arguments), found.static_params);
  }

  infer::InferResult infer(const std::string& name, std::vector<const Type*> arguments) {
    infer::Inference inference(runtime, runtime.context, runtime.world());
    infer::InferResult result = inference.infer(*target(name, std::move(arguments)));
    REQUIRE(result.typed);
    INFO(ir::print(*result.typed));
    CHECK(ir::verify(*result.typed) == "");
    return result;
  }

  // The golden form: what was found of the result, then the typed IR.
  static std::string describe(const infer::InferResult& result) {
    static constexpr std::pair<std::uint32_t, const char*> names[] = {{effect_throws, "throws"},
                                                                      {effect_writes, "writes"},
                                                                      {effect_reads, "reads"},
                                                                      {effect_allocates, "allocates"},
                                                                      {effect_diverges, "diverges"}};
    std::string text = "result " + to_string(result.return_type);
    if (result.constant_result.defined()) text += " constant " + ir::constant_text(result.constant_result);
    if (result.tested_argument >= 0)
      text += " tests " + std::to_string(result.tested_argument) + " for " + to_string(result.argument_if_true) +
              " or " + to_string(result.argument_if_false);
    text += "\neffects";
    for (auto [effect, name] : names)
      if (result.effects & effect) text += std::string(" ") + name;
    return text + "\n" + ir::print_compact(*result.typed);
  }
  std::string typed(const std::string& name, std::vector<const Type*> arguments) {
    return describe(infer(name, std::move(arguments)));
  }
};

}  // namespace slope::test
