// Forward mode of typed function handles: derivatives in a direction (jvp), and Hessians times a direction (hvp), which
// are the forward derivative of the gradient's code. Jacobians are in jacobian.cpp.
//
// The forward derivative takes the arguments, then the tangents of arrays, then those of numbers
// (lang/diff/forward/forward.hpp). For a native function of numbers and arrays it is called with words and the host's
// memory, as calls are; otherwise with Values. Callables that hold memory, and arguments of any type, use the
// language's own `jvp` and `hvp`.
#include <algorithm>
#include <bit>
#include <cstring>

#include "embed/functions/slope_function.hpp"
#include "lang/diff/diff.hpp"
#include "lang/runtime/context_tapes.hpp"

namespace slope::api::detail {

namespace {

// How many numbers a value of this type is to machine code, when it is nothing else. False: it is.
bool count_numbers(const EngineState& engine, const Type* type, std::size_t& count) {
  const DataType* data = as_data(type);
  if (!data) return false;
  if (data == engine.types.float64) {
    ++count;
    return true;
  }
  if (data->storage == Storage::singleton) return true;
  if (!data->is_tuple) return false;
  for (const Field& field : data->fields)
    if (!count_numbers(engine, field.type, count)) return false;
  return true;
}

bool shares_memory(const Datum& a, const Datum& b) {
  return share_memory(static_cast<const double*>(a.data), memory_size(a.kind, a.extents, a.size),
                      static_cast<const double*>(b.data), memory_size(b.kind, b.extents, b.size));
}

// The dimensions of an Array{Float64,N}; 0: the type is another.
std::size_t float_dimensions(const EngineState& engine, const Type* type) {
  for (std::size_t n = 1; n < engine.float_arrays.size(); ++n)
    if (type == engine.float_arrays[n]) return n;
  return 0;
}

void append(Rooted& list, const RawValue* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) list.values.push_back(values[i]);
}

}  // namespace

std::string SlopeFunction::direction_misfit(const Datum* arguments, const TangentGiven* tangents) const {
  for (std::size_t i = 0; i < given_.size(); ++i) {
    const Datum& tangent = tangents[i].datum;
    auto misfit = [&](const std::string& why) { return "argument " + std::to_string(i + 1) + ": " + why; };
    if (tangent.kind == Kind::nothing) continue;
    if (given_[i] == Kind::number) {
      if (tangent.kind != Kind::number) return misfit("the tangent of a number is a number");
    } else if (is_array(given_[i])) {
      if (!is_array(tangent.kind)) return misfit("the tangent of an array is an array");
      if (std::string why = shape_misfit(arguments[i], tangent, "its tangent"); !why.empty()) return misfit(why);
      for (std::size_t k = 0; k < given_.size(); ++k)
        if (is_writable(given_[k]) && shares_memory(arguments[k], tangent))
          return misfit("the tangent overlaps argument " + std::to_string(k + 1) + ", which may be written");
    } else {
      return misfit("values of this type do not move; pass nullptr");
    }
  }
  return has_shapes_ ? argument_misfit(given_, arguments) : std::string();
}

const ForwardPlan* SlopeFunction::forward_plan(Specialization& primal, const std::vector<char>& moving,
                                               std::size_t width, std::size_t words) {
  const auto ended = [&](const auto& plan) { return !derive::valid_code(engine_.ctx, *plan->code.target); };
  ForwardPlan* plan = nullptr;
  for (const auto& known : found_.forwards)
    if (known->primal == &primal && known->width == width && known->moving == moving && !ended(known))
      plan = known.get();
  if (!plan) {
    std::erase_if(found_.forwards, ended);
    const derive::Tangent* made = engine_.pipeline->derivatives().tangent(engine_.ctx, primal, moving, width);
    if (!made) {
      fail();
      if (error_.position.line == 0) error_.position = engine_.position_of(found_.target->method->span);
      return nullptr;
    }
    plan = found_.forwards.emplace_back(std::make_unique<ForwardPlan>()).get();
    plan->road = Road::values;
    plan->primal = &primal;
    plan->moving = moving;
    plan->width = width;
    plan->code = *made;
  }
  if (words == 0 || plan->looked) return plan;
  plan->looked = true;
  if (plan->code.active != moving) return plan;
  std::string why;
  CodeInstance* code = engine_.pipeline->compile(engine_.ctx, *plan->code.target, why);
  std::size_t count = 0;
  if (!code || !code->typed || !count_numbers(engine_, code->typed->return_type, count) || count != words) return plan;
  plan->direct = engine_.pipeline->direct(engine_.ctx, *code, why);
  if (plan->direct.entry) plan->road = Road::words;
  return plan;
}

// --- with words -------------------------------------------------------------------------------------------------

bool SlopeFunction::run_words(const DirectCode& code, const Words& words, std::uint64_t* returned) {
  TapeGuard guard(engine_.ctx);
  guard.failed = !code.entry(&engine_.ctx, words.data(), returned);
  return !guard.failed || fail();
}

// --- with Values ------------------------------------------------------------------------------------------------

bool SlopeFunction::zeros(const Datum& like, RawValue& v) {
  const std::size_t n = dimensions_of(like.kind);
  std::array<std::int64_t, 7> dims;
  for (std::size_t k = 0; k < n; ++k) dims[k] = static_cast<std::int64_t>(like.extents ? like.extents[k] : like.size);
  return zeros(engine_.float_arrays[n], dims.data(), v);
}

bool SlopeFunction::zeros(const DataType* type, const std::int64_t* dims, RawValue& v) {
  const std::size_t n = float_dimensions(engine_, type);
  ArrayObject* array = engine_.runtime.heap.allocate_array(type, {dims, n});
  if (!array) return engine_.ctx.out_of_memory();
  std::fill_n(reinterpret_cast<double*>(array->data), array->length, 0.0);
  v = RawValue(type, static_cast<const void*>(array));
  return true;
}

// `given`: what the primal takes, without #self#. `moves`: the tangents, direction by direction, as many as there are
// parameters; undefined where none is given, which is zero where the code wants one.
bool SlopeFunction::run_forward(const ForwardPlan& plan, const Rooted& given, const Rooted& moves, RawValue& returned) {
  Rooted all(engine_.runtime.heap);
  all.values = given.values;
  const std::size_t count = given.values.size();
  for (const bool arrays : {true, false})
    for (std::size_t k = 0; k < plan.width; ++k)
      for (std::size_t i = 0; i < count; ++i) {
        const RawValue& argument = given.values[i];
        if (!plan.code.active[i] ||
            (arrays ? float_dimensions(engine_, argument.type) == 0 : argument.type != engine_.types.float64))
          continue;
        RawValue tangent = moves.values[k * count + i];
        if (!tangent.defined()) {
          if (!arrays) {
            tangent = engine_.runtime.from_float(0.0);
          } else if (!zeros(as_data(argument.type),
                            dims_of(static_cast<const ArrayObject*>(static_cast<const void*>(argument.object))),
                            tangent)) {
            return fail();
          }
        }
        all.values.push_back(tangent);
      }
  if (all.values.size() + 1 != plan.code.target->types->params.size())
    return refuse("internal error: the forward derivative of `" + name_ + "` takes other parameters");
  TapeGuard guard(engine_.ctx);
  guard.failed = !engine_.runtime.call_specialized(engine_.ctx, *plan.code.target, plan.code.callee, all.values.data(),
                                                   all.values.size(), returned);
  return !guard.failed || fail();
}

bool SlopeFunction::part(RawValue of, std::size_t index, RawValue& v) {
  return engine_.runtime.get_field(engine_.ctx, of, engine_.runtime.from_int(static_cast<std::int64_t>(index)), v) ||
         fail();
}

// A tangent of the result as the C++ side wants it: the shadow of an array, the cotangent of a number. `like`: the
// value; its tangent is zero when there is none.
bool SlopeFunction::result_tangent(RawValue shadow, RawValue tangent, RawValue like, RawValue& v) {
  if (result_ == Kind::number) {
    v = tangent.type == engine_.types.float64 ? tangent : engine_.runtime.from_float(0.0);
    return true;
  }
  v = shadow;
  if (shadow.type == engine_.float_vector) return true;
  const std::int64_t none[] = {0};
  const auto* array = static_cast<const ArrayObject*>(static_cast<const void*>(like.object));
  return zeros(engine_.float_vector, like.type == engine_.float_vector ? dims_of(array) : none, v) || fail();
}

bool SlopeFunction::take_result(RawValue v, Datum& datum, api::Value* holder) {
  api::Value unheld;
  if (engine_.from_raw(v, result_, datum, holder ? *holder : unheld, error_)) return true;
  error_.message = "the result of `" + name_ + "`: " + error_.message;
  return false;
}

// --- jvp --------------------------------------------------------------------------------------------------------

bool SlopeFunction::jvp(const Datum* arguments, const TangentGiven* tangents, Datum* results, api::Value* holders) {
  if (!alive()) return false;
  std::string why = direction_misfit(arguments, tangents);
  if (why.empty() && !has_shapes_) return jvp_lowered(arguments, tangents, results, holders);
  LoweredArguments lowered;
  if (why.empty()) why = lowered.lower(given_, arguments, nullptr);
  if (!why.empty()) return refuse("jvp of `" + name_ + "`, " + why, ErrorKind::conversion);
  LoweredTangents moved;
  moved.lower(given_, lowered, tangents);
  return jvp_lowered(lowered.data.data(), moved.data.data(), results, holders);
}

bool SlopeFunction::jvp_lowered(const Datum* arguments, const TangentGiven* tangents, Datum* results,
                                api::Value* holders) {
  Entry entry(engine_, found_.world);
  if (!is_one_to_one()) return jvp_by_value(arguments, tangents, results, holders);
  const std::size_t count = parameters_.size();
  std::vector<char> moving{0};
  for (std::size_t i = 0; i < count; ++i) moving.push_back(tangents[i].datum.kind != Kind::nothing);
  const bool takes_words = found_.direct.entry && result_ == Kind::number;
  const ForwardPlan* plan = forward_plan(*found_.target, moving, 1, takes_words ? 2 : 0);
  if (!plan) return false;
  if (plan->road == Road::words && !arrays_are_out()) {
    Words words;
    std::size_t next = give_words(parameters_, arguments, lent_.get(), words);
    for (std::size_t i = 0; i < count; ++i)
      if (const Datum& tangent = tangents[i].datum; is_array(tangent.kind))
        words[next++] = lent_->lend(count + i, static_cast<const double*>(tangent.data), tangent);
    for (std::size_t i = 0; i < count; ++i)
      if (const Datum& tangent = tangents[i].datum; tangent.kind == Kind::number)
        words[next++] = static_cast<std::uint64_t>(tangent.integer);
    const Lending lending(lent_.get());
    std::uint64_t returned[2];
    if (!run_words(plan->direct, words, returned)) return false;
    for (std::size_t i = 0; i < 2; ++i) {
      results[i].kind = Kind::number;
      results[i].number = std::bit_cast<double>(returned[i]);
    }
    return true;
  }

  LentCall lent(*this);
  RawArguments raw, moves;
  Loans loans, tangent_loans;
  if (!give(arguments, raw, loans) || !give_tangents(tangents, moves, tangent_loans)) return fail();
  Rooted given(engine_.runtime.heap), directions(engine_.runtime.heap);
  given.values.push_back(callee());
  directions.values.emplace_back();
  append(given, raw.data(), count);
  append(directions, moves.data(), count);
  RawValue returned, value, shadow, tangent;
  if (!run_forward(*plan, given, directions, returned) || !part(returned, 1, value) || !part(returned, 2, shadow) ||
      !part(returned, 3, tangent) || !result_tangent(shadow, tangent, value, tangent) || !lent.ends())
    return false;
  return take_result(value, results[0], holders) && take_result(tangent, results[1], holders + 1);
}

bool SlopeFunction::give_tangents(const TangentGiven* tangents, RawArguments& raw, Loans& loans) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Datum& tangent = tangents[i].datum;
    if (tangent.kind == Kind::number) raw[i] = engine_.runtime.from_float(tangent.number);
    if (!is_array(tangent.kind)) continue;
    loans[i].emplace(engine_);
    if (!loans[i]->lend(tangent, raw[i])) return false;
  }
  return true;
}

// (f, (arguments…), (tangents…)), as the library's operators want them.
bool SlopeFunction::operator_arguments(const Datum* arguments, const TangentGiven* tangents, Loans& loans,
                                       Loans& tangent_loans, RawValue* all) {
  RawArguments raw, moves;
  if (!give(arguments, raw, loans) || !give_tangents(tangents, moves, tangent_loans)) return fail();
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (!moves[i].defined()) moves[i] = engine_.runtime.nothing();
  all[0] = callee();
  return (engine_.runtime.new_tuple(engine_.ctx, raw.data(), parameters_.size(), all[1]) &&
          engine_.runtime.new_tuple(engine_.ctx, moves.data(), parameters_.size(), all[2])) ||
         fail();
}

bool SlopeFunction::jvp_by_value(const Datum* arguments, const TangentGiven* tangents, Datum* results,
                                 api::Value* holders) {
  LentCall lent(*this);
  Loans loans, tangent_loans;
  RawValue all[3], pair, value, tangent;
  if (!operator_arguments(arguments, tangents, loans, tangent_loans, all)) return false;
  if (!engine_.call_library("jvp", all, 3, pair)) return fail();
  if (!part(pair, 1, value) || !part(pair, 2, tangent)) return false;
  if (tangent.type == engine_.types.nothing && !result_tangent(tangent, tangent, value, tangent)) return false;
  if (!lent.ends()) return false;
  return take_result(value, results[0], holders) && take_result(tangent, results[1], holders + 1);
}

// --- hvp --------------------------------------------------------------------------------------------------------

bool SlopeFunction::hvp(const Datum* arguments, const TangentGiven* direction, const GradientTarget* targets) {
  if (!alive()) return false;
  std::string why = direction_misfit(arguments, direction);
  if (why.empty()) why = gradient_misfit(given_, arguments, targets);
  for (std::size_t i = 0; i < given_.size() && why.empty(); ++i)
    for (std::size_t k = 0; k < given_.size(); ++k) {
      const Datum& moves = direction[k].datum;
      if (targets[i].wanted && is_array(moves.kind) &&
          share_memory(static_cast<const double*>(moves.data), memory_size(moves.kind, moves.extents, moves.size),
                       targets[i].data, memory_size(targets[i].kind, targets[i].extents, targets[i].size)))
        why = "argument " + std::to_string(i + 1) + ": the memory for the result overlaps the direction";
    }
  if (why.empty() && !has_shapes_) return hvp_lowered(arguments, direction, targets);
  LoweredArguments lowered;
  if (why.empty()) why = lowered.lower(given_, arguments, targets);
  if (!why.empty()) return refuse("hvp of `" + name_ + "`, " + why, ErrorKind::conversion);
  LoweredTangents moved;
  moved.lower(given_, lowered, direction);
  return hvp_lowered(lowered.data.data(), moved.data.data(), lowered.targets.data());
}

bool SlopeFunction::hvp_lowered(const Datum* arguments, const TangentGiven* direction, const GradientTarget* targets) {
  Entry entry(engine_, found_.world);
  const std::size_t count = parameters_.size();
  const GradientPlan* of_gradient = gradient_plan(targets);
  if (!of_gradient) return false;
  if (of_gradient->road == Road::library) return hvp_by_value(arguments, direction, targets);
  const derive::GradientCode& gradient = of_gradient->code;
  const CodeInstance* first = engine_.pipeline->typed_code(engine_.ctx, *gradient.target);
  if (first && !as_data(first->return_type)) {  // it always throws: let it
    double value = 0;
    return gradient_lowered(arguments, targets, value);
  }

  // The gradient takes (#self#, callee, arguments…, a shadow for each active array, the seed).
  std::vector<char> moving{0, 0};
  for (std::size_t i = 0; i < count; ++i) moving.push_back(direction[i].datum.kind != Kind::nothing);
  std::vector<std::size_t> shadowed;
  for (std::size_t i = 0; i < count; ++i)
    if (is_array(parameters_[i]) && gradient.active[i + 1]) shadowed.push_back(i);
  moving.insert(moving.end(), shadowed.size(), 1);
  moving.push_back(0);
  const bool takes_words = of_gradient->road == Road::words;
  const ForwardPlan* plan =
      forward_plan(*gradient.target, moving, 1, takes_words ? 2 * (1 + of_gradient->numbers.size()) : 0);
  if (!plan) return false;
  for (std::size_t i = 0; i < count; ++i)
    if (targets[i].wanted) clear(targets[i]);
  if (plan->road == Road::words && !arrays_are_out())
    return hvp_words(*of_gradient, *plan, arguments, direction, targets);

  LentCall lent(*this);
  RawArguments raw, moves;
  Loans loans, tangent_loans, result_loans;
  if (!give(arguments, raw, loans) || !give_tangents(direction, moves, tangent_loans)) return fail();
  Rooted given(engine_.runtime.heap), directions(engine_.runtime.heap);
  given.values = {gradient.callee, callee()};
  directions.values.resize(2);
  append(given, raw.data(), count);
  append(directions, moves.data(), count);
  for (const std::size_t i : shadowed) {
    RawValue shadow, moved;
    if (!zeros(arguments[i], shadow)) return fail();
    given.values.push_back(shadow);
    if (targets[i].wanted) {
      Datum place = arguments[i];
      place.data = targets[i].data;
      result_loans[i].emplace(engine_);
      if (!result_loans[i]->lend(place, moved)) return fail();
    }
    directions.values.push_back(moved);
  }
  RawValue seed;
  if (!seed_of(*gradient.target, seed)) return fail();
  given.values.push_back(seed);
  directions.values.emplace_back();
  RawValue returned, tangent, cotangents;
  if (!run_forward(*plan, given, directions, returned) || !part(returned, 3, tangent)) return false;
  if (!lent.ends()) return false;
  if (as_data(tangent.type)->fields.size() < 2) return true;  // arrays alone
  if (!part(tangent, 2, cotangents)) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (parameters_[i] != Kind::number || !targets[i].wanted || cotangents.type == engine_.types.nothing) continue;
    RawValue derivative;
    if (!part(cotangents, i + 2, derivative)) return false;
    if (derivative.type == engine_.types.float64) *targets[i].data = derivative.float64;
  }
  return true;
}

bool SlopeFunction::hvp_words(const GradientPlan& gradient, const ForwardPlan& plan, const Datum* arguments,
                              const TangentGiven* direction, const GradientTarget* targets) {
  const std::size_t count = parameters_.size();
  if (lent_ && !lent_forward_) lent_forward_ = std::make_unique<LentArrays>(engine_, parameters_, 2);
  if (lent_forward_ && !lent_forward_->ready()) return engine_.ctx.out_of_memory() || fail();
  std::size_t scratch = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (is_array(parameters_[i])) scratch += arguments[i].size;
  scratch_.assign(scratch, 0.0);

  Words words;
  std::size_t next = give_words(parameters_, arguments, lent_.get(), words);
  double* first = scratch_.data();
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_array(parameters_[i]) || !targets[i].wanted || !gradient.code.active[i + 1]) continue;
    words[next++] = lent_->lend(count + i, first, arguments[i]);
    first += arguments[i].size;
  }
  words[next++] = std::bit_cast<std::uint64_t>(1.0);
  for (std::size_t i = 0; i < count; ++i)
    if (const Datum& tangent = direction[i].datum; is_array(tangent.kind))
      words[next++] = lent_forward_->lend(i, static_cast<const double*>(tangent.data), tangent);
  for (std::size_t i = 0; i < count; ++i)
    if (is_array(parameters_[i]) && targets[i].wanted && gradient.code.active[i + 1])
      words[next++] = lent_forward_->lend(count + i, targets[i].data, arguments[i]);
  for (std::size_t i = 0; i < count; ++i)
    if (const Datum& tangent = direction[i].datum; tangent.kind == Kind::number)
      words[next++] = static_cast<std::uint64_t>(tangent.integer);
  const Lending lending(lent_.get()), lending_forward(lent_forward_.get());
  std::array<std::uint64_t, 2 * (most_arguments + 1)> returned;
  if (!run_words(plan.direct, words, returned.data())) return false;
  const std::vector<std::size_t>& numbers = gradient.numbers;
  for (std::size_t k = 0; k < numbers.size(); ++k)
    if (targets[numbers[k]].wanted) *targets[numbers[k]].data = std::bit_cast<double>(returned[numbers.size() + 2 + k]);
  return true;
}

bool SlopeFunction::hvp_by_value(const Datum* arguments, const TangentGiven* direction, const GradientTarget* targets) {
  LentCall lent(*this);
  Loans loans, tangent_loans;
  RawValue all[3], products;
  if (!operator_arguments(arguments, direction, loans, tangent_loans, all)) return false;
  if (!engine_.call_library("hvp", all, 3, products)) return fail();
  return lent.ends() && copy_gradients(arguments, products, targets);
}

}  // namespace slope::api::detail
