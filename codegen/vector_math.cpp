#include "codegen/vector_math.hpp"

#include <llvm/MC/MCSubtargetInfo.h>

namespace slope::codegen {

namespace {

// The names that libmvec 2.35 and later has, by vector width: b 128, d 256 (AVX2), e 512 bits (AVX-512).
#define UNARY(name)                                                                                                 \
  {#name, "_ZGVbN2v_" #name, 2, false}, {#name, "_ZGVdN4v_" #name, 4, false}, {#name, "_ZGVeN8v_" #name, 8, false}, \
      {#name "f", "_ZGVbN4v_" #name "f", 4, false}, {#name "f", "_ZGVdN8v_" #name "f", 8, false},                   \
      {#name "f", "_ZGVeN16v_" #name "f", 16, false},
#define INTRINSIC(name)                                                                                             \
  {"llvm." #name ".f64", "_ZGVbN2v_" #name, 2, false}, {"llvm." #name ".f64", "_ZGVdN4v_" #name, 4, false},         \
      {"llvm." #name ".f64", "_ZGVeN8v_" #name, 8, false}, {"llvm." #name ".f32", "_ZGVbN4v_" #name "f", 4, false}, \
      {"llvm." #name ".f32", "_ZGVdN8v_" #name "f", 8, false},                                                      \
      {"llvm." #name ".f32", "_ZGVeN16v_" #name "f", 16, false},
#define BINARY(scalar64, scalar32, name)                                                    \
  {scalar64, "_ZGVbN2vv_" #name, 2, true}, {scalar64, "_ZGVdN4vv_" #name, 4, true},         \
      {scalar64, "_ZGVeN8vv_" #name, 8, true}, {scalar32, "_ZGVbN4vv_" #name "f", 4, true}, \
      {scalar32, "_ZGVdN8vv_" #name "f", 8, true}, {scalar32, "_ZGVeN16vv_" #name "f", 16, true},
const VectorFunction all_functions[] = {
    INTRINSIC(exp) INTRINSIC(log) INTRINSIC(sin) INTRINSIC(cos) INTRINSIC(exp2) INTRINSIC(log2) INTRINSIC(log10)
        UNARY(exp) UNARY(log) UNARY(sin) UNARY(cos) UNARY(exp2) UNARY(log2) UNARY(log10) UNARY(expm1) UNARY(log1p)
            UNARY(tan) UNARY(asin) UNARY(acos) UNARY(atan) UNARY(sinh) UNARY(cosh) UNARY(tanh) UNARY(cbrt)
                BINARY("llvm.pow.f64", "llvm.pow.f32", pow) BINARY("pow", "powf", pow) BINARY("atan2", "atan2f", atan2)
                    BINARY("hypot", "hypotf", hypot)};
#undef UNARY
#undef INTRINSIC
#undef BINARY

}  // namespace

std::vector<VectorFunction> vector_functions(const llvm::TargetMachine& machine) {
  std::vector<VectorFunction> result;
  if (!machine.getTargetTriple().isX86()) return result;
  llvm::StringRef features = machine.getTargetFeatureString();
  bool avx2 = features.contains("+avx2"), avx512 = features.contains("+avx512f") && features.contains("+avx512dq");
  for (const VectorFunction& f : all_functions) {
    char width = f.vector[4];
    if (width == 'b' || (width == 'd' && avx2) || (width == 'e' && avx512)) result.push_back(f);
  }
  return result;
}

void add_vector_functions(llvm::TargetLibraryInfoImpl& library, const std::vector<VectorFunction>& functions) {
  std::vector<llvm::VecDesc> descriptions;
  for (const VectorFunction& f : functions) {
    static constexpr const char* unary[] = {"_ZGV_LLVM_N2v", "_ZGV_LLVM_N4v", "_ZGV_LLVM_N8v", "_ZGV_LLVM_N16v"};
    static constexpr const char* binary[] = {"_ZGV_LLVM_N2vv", "_ZGV_LLVM_N4vv", "_ZGV_LLVM_N8vv", "_ZGV_LLVM_N16vv"};
    unsigned size = f.lanes == 2 ? 0 : f.lanes == 4 ? 1 : f.lanes == 8 ? 2 : 3;
    descriptions.emplace_back(f.scalar, f.vector, llvm::ElementCount::getFixed(f.lanes), false,
                              f.binary ? binary[size] : unary[size]);
  }
  library.addVectorizableFunctions(descriptions);
}

}  // namespace slope::codegen
