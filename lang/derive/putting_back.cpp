// Code around a gradient function that keeps memory before it and puts it back after it (kept_memory.hpp).
#include "lang/derive/cache.hpp"
#include "lang/derive/kept_memory.hpp"
#include "lang/ir/build.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::derive {

using ir::Op;
using ir::Operand;

std::unique_ptr<ir::Function> call_putting_back(Runtime& runtime, const Stores& stores, const GradientCode& gradient,
                                                bool catching) {
  const BuiltinTypes& builtin = runtime.types.builtin();
  const ir::Function& code = *gradient.target->current->typed;
  auto made = std::make_unique<ir::Function>();
  made->name = code.name;
  made->method = code.method;
  made->typed = true;
  made->span = code.span;
  made->static_params = code.static_params;
  made->scopes = {ir::InlineScope{code.method, ~0u, {}}};
  made->return_type = code.return_type;
  ir::Builder at(*made);
  at.set_span(code.span);
  at.set_block(at.new_block());
  // The library's functions of these names are declared to be constants.
  const auto library = [&](const char* name) {
    return at.constant((catching ? runtime.core : runtime.base)->find(runtime.symbol(name))->value);
  };
  std::vector<Operand> parameters;
  for (std::uint32_t id : code.blocks[0].parameters) parameters.push_back(at.add_parameter(0, code.insts[id].type));
  std::vector<Operand> kept{library("keep_memory"),
                            at.constant(runtime.from_int(reinterpret_cast<std::intptr_t>(&stores)))};
  for (std::size_t i = 0; i < gradient.active.size(); ++i)  // #self# is the derivative's own
    kept.push_back(stores.arguments & diff::parameter_mask(i) ? parameters[i + 1] : at.constant(runtime.nothing()));
  const Operand level =
      at.emit(Op::type_assert, {at.emit(Op::call, kept, nullptr), at.constant(runtime.from_type(builtin.int64))},
              builtin.int64);
  const auto put_back = [&] { at.emit(Op::call, {library("put_back_memory"), level}, nullptr); };
  std::vector<Operand> operands{at.constant(gradient.callee)};
  operands.insert(operands.end(), parameters.begin() + 1, parameters.end());
  ir::BlockId handler = ir::no_block;
  if (catching) {
    handler = at.new_block();
    at.set_handler(handler);
    const ir::BlockId guarded = at.new_block();
    at.set_handler(ir::no_block);
    at.jump(guarded);
    at.set_block(guarded);
  }
  const Operand result =
      at.emit(Op::invoke, operands, code.return_type, reinterpret_cast<std::uintptr_t>(gradient.target));
  if (code.return_type->kind == TypeKind::bottom) {
    at.unreachable();
  } else if (catching) {
    const ir::BlockId after = at.new_block();
    const Operand value = at.add_parameter(after, code.return_type);
    at.jump(after, {result});
    at.set_block(after);
    put_back();
    at.ret(value);
  } else {
    put_back();
    at.ret(result);
  }
  if (catching) {
    at.set_block(handler);
    at.emit(Op::caught, {}, builtin.any);
    put_back();
    at.emit(Op::call, {at.constant(library_value(runtime, KnownName::rethrow_caught))}, nullptr);
    at.unreachable();
  }
  return made;
}

}  // namespace slope::derive
