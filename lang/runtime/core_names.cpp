#include "lang/runtime/core_names.hpp"

#include <algorithm>

namespace slope {

bool is_library_name_of_core(std::string_view name) {
  // In the order of their bytes.
  static constexpr std::string_view names[] = {
      "@__doc__",
      "@_inline_meta",
      "@_noinline_meta",
      "@big_str",
      "@int128_str",
      "@uint128_str",
      "ARGS",
      "Argument",
      "CodeInfo",
      "CodeInstance",
      "Cvoid",
      "Float16",
      "GeneratedFunctionStub",
      "GotoIfNot",
      "GotoNode",
      "IO",
      "Int128",
      "Intrinsics",
      "LLVMPtr",
      "LineInfoNode",
      "MethodInstance",
      "MethodTable",
      "NewvarNode",
      "OpaqueClosure",
      "Pair",
      "PhiNode",
      "PiNode",
      "Ptr",
      "ReturnNode",
      "SSAValue",
      "SlotNumber",
      "Task",
      "TypeName",
      "Typeof",
      "UInt128",
      "UndefInitializer",
      "UndefKeywordError",
      "VecElement",
      "WeakRef",
      "applicable",
      "cconvert",
      "compilerbarrier",
      "convert",
      "donotdelete",
      "finalizer",
      "getglobal",
      "getproperty",
      "invoke",
      "invokelatest",
      "iterate",
      "kwcall",
      "print",
      "println",
      "setproperty!",
      "show",
      "sizeof",
      "stderr",
      "stdin",
      "stdout",
      "throw_inexacterror",
      "undef",
      "unsafe_convert",
      "unsafe_write",
      "write",
  };
  static_assert(std::is_sorted(std::begin(names), std::end(names)));
  return std::binary_search(std::begin(names), std::end(names), name);
}

}  // namespace slope
