#include "lang/lower/intrinsics.hpp"

#include <string_view>

#include "lang/ir/execute/execute.hpp"
#include "lang/ir/ir.hpp"
#include "lang/lower/state.hpp"
#include "lang/runtime/library_natives.hpp"

namespace slope::lower {

namespace {

bool is_intrinsic(ir::Op op) {
  switch (op) {
    case ir::Op::array_length:
    case ir::Op::array_size:
    case ir::Op::string_length:
      return false;
    case ir::Op::make_struct:
    case ir::Op::make_closure:
    case ir::Op::field_at:
    case ir::Op::set_field_at:
      return true;
    default: {
      const ir::OpGroup group = ir::group_of(op);
      return group == ir::OpGroup::arrays || group == ir::OpGroup::strings || group == ir::OpGroup::tapes;
    }
  }
}

std::string_view instead_of(std::string_view name) {
  if (name == "array_get" || name == "array_set" || name == "array_init") return "write `a[i]`";
  if (name.starts_with("array_resize")) return "use `resize!`, `push!`, `pop!`";
  if (name == "array_new") return "use `Array{T}(undef, n)`, `zeros`, `fill`";
  if (name == "array_share") return "use `reshape`";
  if (name == "string_byte") return "use `codeunit`";
  if (name == "make_struct") return "call the type's constructor";
  return "";
}

}  // namespace

std::string refusal(Runtime& runtime, const Binding& binding) {
  if (binding.module != runtime.core || !binding.is_constant) return {};
  const BuiltinTypes& types = runtime.types.builtin();
  if (binding.value.type != types.builtin_function) return {};
  const auto op = ir::as_builtin_op(types, binding.value);
  const NativeInfo* native = ir::as_builtin_native(types, binding.value);
  if (op ? !is_intrinsic(*op) : !native || !is_library_native(native->name)) return {};
  const std::string_view instead = instead_of(binding.name->name);
  std::string text = "only the library may name Core." + binding.name->name;
  if (!instead.empty()) text += ": " + std::string(instead);
  return text;
}

bool is_library_text(Runtime& runtime, Span span) {
  return span.file != 0 && span.file <= state_of(runtime).last_library_file;
}

void trust_inbounds(Runtime& runtime) { state_of(runtime).trusts_inbounds = true; }

}  // namespace slope::lower
