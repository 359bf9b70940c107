// Forward mode as the user calls it: Core.jvp_call, in one direction or in several at once.
#include "lang/derive/natives/call.hpp"

namespace slope::derive {

namespace {

// Tangents of values as a user writes them (numbers, arrays, tuples; `nothing` for none), in two parts each.
struct Directions {
  explicit Directions(Context& context) : ctx(context), values(context.runtime->heap) {}

  bool read(const std::vector<Value>& of, const std::vector<Value>& given, std::vector<char>& active) {
    diff::TangentTypes& tangents = diff::tangent_types(*ctx.runtime);
    for (std::size_t i = 0; i < of.size(); ++i) {
      Value shadow = ctx.runtime->nothing();
      Value tangent = ctx.runtime->nothing();
      if (active[i]) {
        // The same array given twice has a direction of its own in each place.
        diff::ShadowMaker maker(ctx);
        if (!maker.shadow(of[i], shadow)) return false;
        values.values.push_back(shadow);
        if (stores_forbidden) maker.forbid_stores();
        TangentSeeder seeder(ctx, TangentSeeder::Kind::direction);
        if (!seeder.seed(of[i].type, of[i], given[i], shadow, tangent)) return false;
        values.values.push_back(tangent);
        if (tangents.has_shadow(of[i].type)) shadows.push_back(shadow);
        if (tangents.has_cotangent(of[i].type)) numbers.push_back(tangent);
      }
    }
    return true;
  }

  Context& ctx;
  Rooted values;
  std::vector<Value> shadows;
  std::vector<Value> numbers;
  bool stores_forbidden = false;
};

// A method's arguments as given by the user → as its IR has them: a vararg is one tuple.
bool pack_rest(Context& ctx, const Method& method, std::vector<Value>& arguments, Rooted& roots) {
  if (!method.is_vararg) return true;
  std::size_t fixed = method.arg_count;
  Value rest;
  if (!ctx.runtime->new_tuple(ctx, arguments.data() + fixed, arguments.size() - fixed, rest)) return false;
  roots.values.push_back(rest);
  arguments.resize(fixed);
  arguments.push_back(rest);
  return true;
}

// The tangents of one direction as the method has its arguments, `nothing` first for the function itself.
bool direction(Context& ctx, const DerivedCall& primal, Value given, Rooted& roots, std::vector<Value>& dxs) {
  if (!expect_tuple(ctx, "jvp", given)) return false;
  std::size_t before = roots.values.size();
  append_elements(ctx, given, roots);
  dxs.assign(roots.values.begin() + static_cast<std::ptrdiff_t>(before), roots.values.end());
  if (dxs.size() != primal.xs.size())
    return ctx.argument_error("as many tangents as arguments are wanted: " + std::to_string(primal.xs.size()) +
                              "; found " + std::to_string(dxs.size()));
  dxs.insert(dxs.begin(), ctx.runtime->nothing());
  return pack_rest(ctx, *primal.target->method, dxs, roots);
}

bool jvp_call(Context& ctx, const Value* args, std::size_t count, Value& result);

// What cannot go in several directions at once (calls whose target is found when they run) goes in one after the other.
bool one_by_one(Context& ctx, const Value* args, std::size_t width, Value& result) {
  Runtime& runtime = *ctx.runtime;
  if (ctx.error.type != runtime.types.builtin().differentiation_error) return false;
  ctx.take_error();
  Rooted answer(runtime.heap);
  for (std::size_t k = 0; k < width; ++k) {
    Value call[3] = {args[0], args[1], args[2 + k]};
    Value pair;
    if (!jvp_call(ctx, call, 3, pair)) return false;
    Rooted parts(runtime.heap);
    append_elements(ctx, pair, parts);
    if (k == 0) answer.values.push_back(parts.values[0]);
    answer.values.push_back(parts.values[1]);
  }
  return runtime.new_tuple(ctx, answer.values.data(), answer.values.size(), result);
}

// jvp_call(f, xs::Tuple, tangents::Tuple...) → (value, its tangent in each direction...)
bool jvp_call(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count < 3) return ctx.argument_error("jvp_call takes a function, arguments and tangents");
  Runtime& runtime = *ctx.runtime;
  const Type* nothing = runtime.nothing().type;
  std::size_t width = count - 2;
  DerivedCall primal(ctx);
  if (!primal.resolve(args[0], args[1]) || !primal.find_shared_memory()) return false;
  if (primal.shared) return raise_written_twice(ctx, *primal.target);
  Directions directions(ctx);
  directions.stores_forbidden = primal.stores_forbidden;
  std::vector<std::vector<Value>> given_directions(width);
  std::fill(primal.asked.begin(), primal.asked.end(), 0);
  for (std::size_t k = 0; k < width; ++k) {
    if (!direction(ctx, primal, args[2 + k], directions.values, given_directions[k])) return false;
    for (std::size_t i = 0; i < primal.asked.size(); ++i)
      if (given_directions[k][i].type != nothing) primal.asked[i] = 1;
  }
  const Tangent* code = derivatives_of(ctx).tangent(ctx, *primal.target, primal.asked, width);
  if (!code) return width > 1 && one_by_one(ctx, args, width, result);
  primal.asked = code->active;  // what is stored into, too (the function's own captures): it stands still at first
  for (const std::vector<Value>& given : given_directions)
    if (!directions.read(primal.arguments, given, primal.asked)) return false;
  std::vector<Value> given = primal.arguments;
  given.insert(given.end(), directions.shadows.begin(), directions.shadows.end());
  given.insert(given.end(), directions.numbers.begin(), directions.numbers.end());
  TapeGuard guard(ctx);
  Value made;
  if (!call_derivative_code(ctx, *code->target, code->callee, given, made)) {
    guard.failed = true;
    return false;
  }
  Rooted rooted(runtime.heap);
  rooted.values.push_back(made);
  append_elements(ctx, made, rooted);
  std::vector<Value> parts(rooted.values.begin() + 1, rooted.values.end());
  Rooted answer(runtime.heap);
  answer.values.push_back(parts[0]);
  for (std::size_t k = 0; k < width; ++k) {
    Value tangent;
    if (!diff::finish_tangent(ctx, parts[0], parts[2 * k + 1], parts[2 * k + 2], tangent)) return false;
    answer.values.push_back(tangent);
  }
  return runtime.new_tuple(ctx, answer.values.data(), answer.values.size(), result);
}

const NativeInfo forward_mode_natives[] = {
    {"jvp_call", jvp_call, effect_all, nullptr},
};

}  // namespace

void define_forward_natives(Runtime& runtime) {
  for (const NativeInfo& native : forward_mode_natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope::derive
