#include "lang/diff/record_seal.hpp"

#include "lang/diff/tangent.hpp"
#include "lang/memory/tape.hpp"

namespace slope::diff {

namespace {

std::uint64_t mixed(std::uint64_t state, std::uint64_t word) {
  const auto product = static_cast<unsigned __int128>(state ^ word) * 0x9e3779b97f4a7c15ull;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::int64_t seal_of(Context& ctx, const Value* parts, std::size_t count) {
  const BuiltinTypes& builtin = ctx.runtime->types.builtin();
  const std::uint64_t key = tangent_types(*ctx.runtime).seal_key();
  std::uint64_t state = key;
  for (std::size_t i = 0; i < count; ++i) {
    const Value part = parts[i];
    state = mixed(state, reinterpret_cast<std::uintptr_t>(part.type) + i);
    if (part.type == builtin.int64 || part.type == builtin.boolean)
      state = mixed(state + key, static_cast<std::uint64_t>(part.bits));
    if (part.type != builtin.tape) continue;
    const auto* tape = static_cast<const Tape*>(part.pointer);
    state = mixed(state + key, reinterpret_cast<std::uintptr_t>(tape));
    state = mixed(state + key, ctx.tapes && ctx.tapes->owns(tape) ? tape->serial : 0);
  }
  return static_cast<std::int64_t>(mixed(state, key));
}

bool record_seal(Context& ctx, const Value* args, std::size_t count, Value& result) {
  result = ctx.runtime->from_int(seal_of(ctx, args, count));
  return true;
}

bool record_check(Context& ctx, const Value* args, std::size_t count, Value& result) {
  result = args[0];
  if (args[0].type == ctx.runtime->types.builtin().int64 && args[0].bits == seal_of(ctx, args + 1, count - 1))
    return true;
  return ctx.argument_error(
      "what this pullback has kept for its reverse sweep is not what `pullback` made, or was used before: call "
      "`pullback` again");
}

const Type* gives_int(TypeTable& types, std::span<const Type* const>) { return types.builtin().int64; }

}  // namespace

const NativeInfo record_seal_native{"record_seal", record_seal, effect_reads, gives_int, false, false, true};
const NativeInfo record_check_native{"record_check", record_check, effect_throws | effect_reads, gives_int, false,
                                     false,          true};

}  // namespace slope::diff
