// Derivatives of functions from files, as the transforms make them: tests/derivatives/ir/{forward,reverse}/*.ir.
//
//   ; run: gradient 1 2    value and gradient in one function, active in parameters 1 and 2 (0 is the callee)
//   ; run: halves 1        the forward and the reverse half
//   ; run: forward 1       forward mode, in one direction
//   ; run: forward2 1      in two
#include <algorithm>
#include <sstream>

#include "lang/diff/diff.hpp"
#include "lang/diff/memory.hpp"
#include "tests/opt/filetest.hpp"

using namespace slope;
using slope::test::FileTest;

namespace {

// Of a program without rules, whose calls have specialisations as derivatives that have types and no code.
class Alone final : public diff::Environment {
 public:
  explicit Alone(FileTest& test)
      : test_(test),
        memory_(
            test.runtime, test.runtime.world(),
            [&test](Specialization& target) {
              const ir::Function* code = test.code(target);
              return code ? std::make_shared<ir::Function>(*code) : nullptr;
            },
            [](const DataType*) { return diff::MemoryMask{0}; }) {}

  const ir::Function* primal(Specialization& target) override { return test_.code(target); }
  const Type* return_type(const DataType*) override { return test_.runtime.types.builtin().any; }
  Halves halves(Specialization& callee, const std::vector<char>& active, diff::Refusal&) override {
    Halves made;
    const Type* any = test_.runtime.types.builtin().any;
    const Type* result = test_.code(callee)->return_type;
    std::vector<const Type*> forward(callee.types->params.begin(), callee.types->params.end());
    made.forward = derived(callee, "forward_half", forward, made.forward_callee);
    made.reverse = derived(callee, "reverse_half", {any, result}, made.reverse_callee);
    made.active = active;
    made.result_type = result;
    return made;
  }
  Halves stacked_halves(Specialization&, const std::vector<char>&, diff::Refusal&) override { return {}; }
  Tangent tangent(Specialization& callee, const std::vector<char>& active, std::size_t, diff::Refusal&) override {
    Tangent made;
    std::vector<const Type*> types(callee.types->params.begin(), callee.types->params.end());
    for (std::size_t i = 0; i < active.size(); ++i)
      if (active[i]) types.push_back(callee.types->params[i]);
    made.target = derived(callee, "tangent", types, made.callee);
    made.active = active;
    made.result_type = test_.code(callee)->return_type;
    return made;
  }
  bool built_rule(const DataType*, diff::BuiltRule&) override { return false; }
  std::int64_t memory_of_rule(const DataType*, const DataType*) override { return 0; }
  diff::MemoryEffects& memory() override { return memory_; }
  Runtime& runtime() override { return test_.runtime; }
  World world() override { return test_.runtime.world(); }

 private:
  Specialization* derived(const Specialization& of, const std::string& kind, std::vector<const Type*> types,
                          Value& callee) {
    Runtime& runtime = test_.runtime;
    const Symbol* name = runtime.symbol(kind + "_of_" + std::string(of.method->name->name));
    callee = runtime.generic_function(runtime.main, name);
    types.insert(types.begin(), callee.type);
    auto method = std::make_unique<Method>();
    method->name = name;
    method->module = runtime.main;
    method->signature = runtime.types.tuple(types);
    method->arg_count = static_cast<std::uint32_t>(types.size());
    return runtime.specialize(runtime.add_method(std::move(method)), runtime.types.tuple(types), {});
  }

  FileTest& test_;
  diff::MemoryEffects memory_;
};

std::string shown(const ir::Function& function) {
  INFO(ir::print(function));
  REQUIRE(ir::verify(function, ir::Typing::partial) == "");
  return ir::print_compact(function);
}

std::string differentiated(FileTest& test, const ir::Function& function) {
  std::istringstream words(test.passes.at(0));
  std::string mode;
  words >> mode;
  std::vector<char> active(function.blocks[0].parameters.size());
  for (std::size_t i = 0; words >> i;) active.at(i) = 1;
  Alone environment(test);
  diff::Derivative made;
  diff::Refusal refusal;
  bool done = false;
  if (mode == "gradient") done = diff::gradient_function(environment, function, active, made, refusal);
  if (mode == "halves") done = diff::split_derivative(environment, function, active, nullptr, made, refusal);
  if (mode == "forward") done = diff::forward_derivative(environment, function, active, 1, made, refusal);
  if (mode == "forward2") done = diff::forward_derivative(environment, function, active, 2, made, refusal);
  if (!done) return "refused: " + refusal.reason + "\n";
  std::string text;
  if (made.combined) text += shown(*made.combined);
  if (made.forward) text += (made.reverse ? "; forward half\n" : "") + shown(*made.forward);
  if (made.reverse) text += "; reverse half\n" + shown(*made.reverse);
  return text;
}

void check_folder(const std::string& folder) {
  for (const auto& path : test::files_of("tests/derivatives/ir/" + folder)) {
    FileTest test(path);
    test.check([&](ir::Function& function) { return differentiated(test, function); });
  }
}

}  // namespace

TEST_CASE("Files: forward mode") { check_folder("forward"); }
TEST_CASE("Files: reverse mode") { check_folder("reverse"); }
