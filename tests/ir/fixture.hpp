// A runtime with the ops in Core, and IR from text.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "lang/ir/execute/execute.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::test {

struct IrFixture {
  IrFixture() {
    ir::define_op_builtins(runtime);
    RuntimeHooks hooks;
    ir::add_hooks(hooks);
    runtime.connect(hooks);
  }

  std::unique_ptr<ir::Function> read(std::string_view text) {
    std::string error;
    std::unique_ptr<ir::Function> function = ir::read(runtime, text, error);
    INFO(text);
    INFO(error);
    REQUIRE(function);
    roots.values.insert(roots.values.end(), function->constants.begin(), function->constants.end());
    return function;
  }
  void check_valid(const ir::Function& function) {
    INFO(ir::print(function));
    REQUIRE(ir::verify(function) == "");
  }

  Runtime runtime;
  Context& ctx = runtime.context;
  const BuiltinTypes& b = runtime.types.builtin();
  Rooted roots{runtime.heap};
};

}  // namespace slope::test
