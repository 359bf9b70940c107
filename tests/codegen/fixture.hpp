// Typed functions made by hand, compiled and called through their boxed entries.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "codegen/loader.hpp"
#include "lang/ir/build.hpp"
#include "lang/ir/execute/execute.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/runtime/runtime.hpp"

extern "C" slope::CodeGenerator* slope_create_code_generator(slope::Runtime* runtime, const slope::CodegenHost* host);

namespace slope::codegen_test {

using ir::BlockId;
using ir::Builder;
using ir::Op;
using ir::Operand;

// A method with one specialisation that has typed code. Parameter 0 is the callee.
struct Compiled {
  std::unique_ptr<Method> method = std::make_unique<Method>();
  Specialization* specialization = nullptr;
  CodeInstance* code = nullptr;
  ir::Function* function = nullptr;
};

struct Machine {
  Runtime runtime;
  Context& ctx = runtime.context;
  const BuiltinTypes& t = runtime.types.builtin();
  std::unique_ptr<CodeGenerator> generator;
  std::vector<std::unique_ptr<Compiled>> functions;

  Machine() {
    RuntimeHooks hooks;
    ir::add_hooks(hooks);
    runtime.connect(std::move(hooks));
    CodegenHost host;
    host.fingerprint = codegen_fingerprint();
    host.verify = true;
    generator.reset(slope_create_code_generator(&runtime, &host));
    REQUIRE(generator);
    ctx.world = runtime.world();
  }

  // A function of these parameter types whose body is made by `body(builder, parameters)`; parameters[0] is the callee.
  template <class Body>
  Compiled& define(const char* name, std::vector<const Type*> parameters, const Type* result, Body body,
                   bool is_vararg = false) {
    auto compiled = std::make_unique<Compiled>();
    Compiled& c = *compiled;
    functions.push_back(std::move(compiled));
    c.method->name = runtime.symbol(name);
    c.method->arg_count = static_cast<std::uint32_t>(parameters.size() + 1);
    c.method->is_vararg = is_vararg;
    auto specialization = std::make_unique<Specialization>();
    c.specialization = specialization.get();
    specialization->method = c.method.get();
    const DataType* callee = runtime.types.function_type(c.method->name, runtime.main);
    auto code = std::make_unique<CodeInstance>();
    c.code = code.get();
    code->owner = c.specialization;
    code->min_world = 0;
    auto function = std::make_shared<ir::Function>();
    c.function = function.get();
    function->method = c.method.get();
    function->name = name;
    function->typed = true;
    function->return_type = result;
    function->scopes.push_back({c.method.get(), ~0u, {}});
    code->return_type = result;
    code->typed = function;
    specialization->code.push_back(std::move(code));
    specialization->current = c.code;
    c.method->specializations.push_back(std::move(specialization));

    Builder b(*function);
    BlockId entry = b.new_block();
    b.set_block(entry);
    std::vector<Operand> p{b.add_parameter(entry, callee)};
    for (const Type* type : parameters) p.push_back(b.add_parameter(entry, type));
    body(b, p, c);
    std::string wrong = ir::verify(*function);
    INFO(wrong);
    INFO(ir::print(*function));
    REQUIRE(wrong.empty());
    return c;
  }

  void compile(Compiled& c) {
    std::string why;
    bool ok = generator->compile(ctx, *c.code, why);
    INFO(why);
    REQUIRE(ok);
    REQUIRE(c.code->boxed.load());
  }

  // Undefined when it raised.
  Value call(Compiled& c, std::vector<Value> args) {
    if (!c.code->boxed.load()) compile(c);
    const Type* callee = c.function->insts[c.function->blocks[0].parameters[0]].type;
    Value result;
    bool ok = c.code->boxed.load()(&ctx, as_data(callee)->instance, args.data(), args.size(), &result);
    if (!ok) {
      REQUIRE(ctx.failed());
      return {};
    }
    REQUIRE(!ctx.failed());
    return result;
  }

  Value i(std::int64_t n) { return runtime.from_int(n); }
  Value f(double x) { return runtime.from_float(x); }
  Value nothing() { return runtime.nothing(); }
  Value type(const Type* x) { return runtime.from_type(x); }
  ArrayObject* vector(const Type* element, std::int64_t length) {
    std::int64_t dims[] = {length};
    return runtime.heap.allocate_array(runtime.types.array_of(element, 1), dims);
  }
};

}  // namespace slope::codegen_test
