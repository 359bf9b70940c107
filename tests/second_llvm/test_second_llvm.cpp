// A host that carries another LLVM: both make machine code in one process, in turns, and each runs what it made.
#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/ExecutionEngine.h>
#include <llvm-c/Target.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <thread>

#include "slope/engine.hpp"

namespace {

// The host's own compiler: x ↦ x * factor + 1.
class HostCode {
 public:
  explicit HostCode(double factor) {
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("host", context);
    LLVMTypeRef real = LLVMDoubleTypeInContext(context);
    LLVMValueRef function = LLVMAddFunction(module, "affine", LLVMFunctionType(real, &real, 1, 0));
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, function, "entry"));
    LLVMValueRef product = LLVMBuildFMul(builder, LLVMGetParam(function, 0), LLVMConstReal(real, factor), "product");
    LLVMBuildRet(builder, LLVMBuildFAdd(builder, product, LLVMConstReal(real, 1.0), "sum"));
    LLVMDisposeBuilder(builder);
    char* message = nullptr;
    const bool broken = LLVMVerifyModule(module, LLVMReturnStatusAction, &message) != 0;
    LLVMDisposeMessage(message);
    REQUIRE_FALSE(broken);
    LLVMMCJITCompilerOptions options;
    LLVMInitializeMCJITCompilerOptions(&options, sizeof options);
    REQUIRE(LLVMCreateMCJITCompilerForModule(&engine_, module, &options, sizeof options, &message) == 0);
    context_ = context;
    address_ = LLVMGetFunctionAddress(engine_, "affine");
    REQUIRE(address_ != 0);
  }
  ~HostCode() {
    LLVMDisposeExecutionEngine(engine_);
    LLVMContextDispose(context_);
  }
  HostCode(const HostCode&) = delete;
  double operator()(double x) const { return reinterpret_cast<double (*)(double)>(address_)(x); }

 private:
  LLVMExecutionEngineRef engine_ = nullptr;
  LLVMContextRef context_ = nullptr;
  std::uint64_t address_ = 0;
};

void start_host_llvm() {
  LLVMLinkInMCJIT();
  LLVMInitializeNativeTarget();
  LLVMInitializeNativeAsmPrinter();
}

// Both compile, run and let go, in turns, each calling the other's code.
void take_turns(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const HostCode host(2.0 + round);
    slope::Engine engine({.tier = slope::Tier::compile});
    engine.define("affine", [&](double x) { return host(x); }).derivative([&](double) { return 2.0 + round; }).value();
    engine.run("f(x) = affine(x)^2\nloss(w) = sum(affine(x)^2 for x in w)").value();
    const double y = 3 * (2.0 + round) + 1;
    double d = 0;
    auto f = engine.function<double(double)>("f").value();
    CHECK(f(3).value() == y * y);
    CHECK(f.value_and_gradient(3.0, d).value() == y * y);
    CHECK(d == Approx(2 * y * (2.0 + round)));
    const HostCode later(7);
    CHECK(later(1) == 8);
    CHECK(engine.eval<double>("loss([1.0, 2.0])").value() == Approx(host(1) * host(1) + host(2) * host(2)));
    CHECK(engine.statistics().compiled_functions > 0);
  }
}

}  // namespace

TEST_CASE("A host with an LLVM of another version, used first") {
  start_host_llvm();
  const HostCode host(5);
  CHECK(host(2) == 11);
  take_turns(3);
  CHECK(host(3) == 16);
}

TEST_CASE("Both compile at the same time") {
  start_host_llvm();
  std::thread other([] {
    slope::Engine engine({.tier = slope::Tier::compile});
    for (int i = 0; i < 30; ++i) {
      const std::string name = "g" + std::to_string(i);
      engine.run(name + "(x) = sin(x) + " + std::to_string(i)).value();
      if (engine.function<double(double)>(name).value()(0.0).value() != i) std::abort();
    }
  });
  for (int i = 0; i < 30; ++i) {
    const HostCode host(i);
    CHECK(host(2) == 2 * i + 1);
  }
  other.join();
}
