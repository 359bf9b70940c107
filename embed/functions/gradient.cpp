// Gradients of typed function handles.
//
// When the method's parameters are the arguments one to one, the host's arrays are lent twice: as arguments and,
// cleared, as their shadows. So the derivative accumulates in the host's own memory, and derivatives of numbers are
// returned as words. All other signatures (varargs, callables that hold memory) use the language's own
// value_and_gradient, and the result is copied.
#include <algorithm>
#include <bit>

#include "embed/functions/slope_function.hpp"
#include "lang/diff/diff.hpp"
#include "lang/diff/tangent.hpp"
#include "lang/runtime/context_tapes.hpp"

namespace slope::api::detail {

namespace {

std::size_t memory_size(const Datum& array) { return memory_size(array.kind, array.extents, array.size); }

// Empty, or why the derivative with respect to the array cannot go there.
std::string target_misfit(const Datum& argument, const GradientTarget& target) {
  Datum place;
  place.kind = target.kind;
  place.data = target.data;
  place.size = target.size;
  place.extents = target.extents;
  return shape_misfit(argument, place, "the memory for its gradient");
}

}  // namespace

std::string argument_misfit(std::span<const Kind> parameters, const Datum* arguments) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!is_writable(parameters[i])) continue;
    const auto* data = static_cast<const double*>(arguments[i].data);
    for (std::size_t k = 0; k < parameters.size(); ++k)
      if (k != i && is_array(parameters[k]) &&
          share_memory(static_cast<const double*>(arguments[k].data), memory_size(arguments[k]), data,
                       memory_size(arguments[i])))
        return "argument " + std::to_string(i + 1) + " may be written and overlaps argument " + std::to_string(k + 1);
  }
  return {};
}

std::string gradient_misfit(std::span<const Kind> parameters, const Datum* arguments, const GradientTarget* targets) {
  bool arrays = false;
  for (Kind kind : parameters) arrays = arrays || is_array(kind);
  // What the targets so far span together: one outside overlaps none of them.
  const double *low = nullptr, *high = nullptr;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const GradientTarget& target = targets[i];
    if (!target.wanted) continue;
    auto misfit = [&](const std::string& why) { return "argument " + std::to_string(i + 1) + ": " + why; };
    if ((parameters[i] == Kind::composite || parameters[i] == Kind::any) && target.take) {
      if (arguments[i].data == target.object) return misfit("the gradient cannot be written into the argument itself");
      continue;
    }
    if (!target.take && !is_memory(target.data, target.size))
      return misfit("the memory for its gradient is null, or larger than memory can be");
    if (target.take) return misfit("the gradient of a number or an array goes into one");
    if (parameters[i] == Kind::number) {
      if (target.size != 1) return misfit("a number has a derivative of one number");
    } else if (is_array(parameters[i])) {
      if (target.size != arguments[i].size || target.extents || arguments[i].extents)
        if (std::string why = target_misfit(arguments[i], target); !why.empty()) return misfit(why);
    } else {
      return misfit("there is no derivative with respect to this type; pass nullptr");
    }
    if (target.size == 0) continue;
    const std::size_t target_size = memory_size(target.kind, target.extents, target.size);
    for (std::size_t k = 0; arrays && k < parameters.size(); ++k)
      if (is_array(arguments[k].kind) && share_memory(static_cast<const double*>(arguments[k].data),
                                                      memory_size(arguments[k]), target.data, target_size))
        return misfit("the memory for the gradient overlaps an argument");
    const double* end = target.data + target_size;
    const bool inside = low && std::less<>()(target.data, high) && std::less<>()(low, end);
    for (std::size_t k = 0; inside && k < i; ++k)
      if (targets[k].wanted &&
          share_memory(targets[k].data, memory_size(targets[k].kind, targets[k].extents, targets[k].size), target.data,
                       target_size))
        return misfit("the memory for the gradient overlaps that of another");
    if (!low || std::less<>()(target.data, low)) low = target.data;
    if (!high || std::less<>()(high, end)) high = end;
  }
  return {};
}

bool SlopeFunction::check_targets(const Datum* arguments, const GradientTarget* targets) {
  const std::string why = gradient_misfit(given_, arguments, targets);
  return why.empty() || refuse("gradient of `" + name_ + "`, " + why, ErrorKind::conversion);
}

const GradientPlan* SlopeFunction::gradient_plan(const GradientTarget* targets) {
  // What an older world's derivative was made of may have been freed; what has an entry for words is held by it.
  const auto ended = [&](const GradientPlan& plan) {
    return plan.road == Road::values && !derive::valid_code(engine_.ctx, *plan.code.target);
  };
  for (const auto& known : found_.gradients)
    if (known->is_for(parameters_.size(), targets) && !ended(*known)) return known.get();
  std::erase_if(found_.gradients, [&](const auto& known) { return ended(*known); });
  auto made = std::make_shared<GradientPlan>();
  made->wanted.assign(parameters_.size() + 1, 0);
  for (std::size_t i = 0; i < parameters_.size(); ++i) made->wanted[i + 1] = targets[i].wanted;
  if (is_one_to_one()) {
    const derive::GradientCode* code =
        engine_.pipeline->derivatives().gradient(engine_.ctx, *found_.target, made->wanted);
    if (!code) {
      fail();
      if (error_.position.line == 0) error_.position = engine_.position_of(found_.target->method->span);
      return nullptr;
    }
    made->code = *code;
    made->road = find_words(*made) ? Road::words : Road::values;
  }
  found_.gradients.push_back(std::move(made));
  return found_.gradients.back().get();
}

// The road of all calls but the first, of functions of numbers and vectors.
AtOnce SlopeFunction::flat_gradient(FunctionState& function, const FlatArgument* arguments, const FlatTarget* targets,
                                    double& value) {
  auto& self = static_cast<SlopeFunction&>(function);
  const FlatGradient& at_once = self.found_.flat_gradient;  // nothing when the engine is gone
  EngineState& engine = self.engine_;
  // The arguments are on the caller's stack (FlatArgument).
  if (!at_once.run || !engine.enter_at_once(arguments)) [[unlikely]]
    return AtOnce::otherwise;  // also where a call inside a call finds the arrays lent
  engine.ctx.world = self.found_.world;
  engine.lends_at_once = &self;
  const flat::Outcome outcome = at_once(arguments, targets, value);
  engine.lends_at_once = nullptr;
  if (outcome != flat::Outcome::done || engine.ctx.stopped != Stop::none) [[unlikely]]
    return self.flat_gradient_ended(outcome);
  engine.leave_at_once();
  return AtOnce::done;
}

AtOnce SlopeFunction::flat_gradient_ended(flat::Outcome outcome) {
  if (outcome == flat::Outcome::failed) fail();
  if (lent_ && (outcome == flat::Outcome::failed || outcome == flat::Outcome::shared)) lent_->take_back();
  engine_.leave_at_once();
  if (engine_.ctx.stopped != Stop::none) engine_.go_on();
  return detail::at_once(outcome);
}

// The C interface comes here at once, C++ with what flat_gradient did not take.
bool SlopeFunction::gradient(const Datum* arguments, const GradientTarget* targets, double& value) {
  if (found_.flat_gradient.run) {
    const AtOnce went =
        detail::gradient_at_once<FunctionState>(*this, flat_gradient, parameters_, arguments, targets, value);
    if (went != AtOnce::otherwise) return went == AtOnce::done;
  }
  if (!alive()) return false;
  if (!check_targets(arguments, targets)) return false;
  if (!has_shapes_) return gradient_lowered(arguments, targets, value);
  LoweredArguments lowered;
  std::string why = argument_misfit(given_, arguments);
  if (why.empty()) why = lowered.lower(given_, arguments, targets);
  if (!why.empty()) return refuse("gradient of `" + name_ + "`, " + why, ErrorKind::conversion);
  return gradient_lowered(lowered.data.data(), lowered.targets.data(), value);
}

bool SlopeFunction::gradient_lowered(const Datum* arguments, const GradientTarget* targets, double& value) {
  Entry entry(engine_, found_.world);
  const GradientPlan* plan = gradient_plan(targets);
  if (!plan) return false;
  if (plan->road == Road::words && !arrays_are_out()) {
    found_.flat_gradient = FlatGradient(plan->direct.gradient, engine_.ctx, lent_.get());
    Lending lending(lent_.get());
    return lending.ends(plan->run(engine_.ctx, parameters_, lent_.get(), arguments, targets, value)) || fail();
  }
  LentCall lent(*this);
  RawArguments raw;
  Loans loans;
  if (!give(arguments, raw, loans)) return fail();
  return (plan->road == Road::library ? gradient_by_value(arguments, raw, targets, value)
                                      : gradient_compiled(*plan, arguments, raw, targets, value)) &&
         lent.ends();
}

// An entry for words, when the function itself has one and each array that carries a derivative is asked for.
bool SlopeFunction::find_words(GradientPlan& plan) {
  if (!found_.direct.entry) return false;
  const std::vector<char>& active = plan.code.active;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (is_array(parameters_[i]) && active[i + 1] && !plan.wanted[i + 1]) return false;
  std::string why;
  CodeInstance* code = engine_.pipeline->compile(engine_.ctx, *plan.code.target, why);
  if (!code || !code->typed) return false;
  const DataType* pair = as_data(code->typed->return_type);
  if (!pair || pair->fields.size() != 2 || pair->fields[0].type != engine_.types.float64) return false;
  const DataType* cotangents = as_data(pair->fields[1].type);
  if (!cotangents || cotangents->fields.size() != parameters_.size() + 1) return false;
  for (std::size_t i = 0; i <= parameters_.size(); ++i) {
    const DataType* type = as_data(cotangents->fields[i].type);
    if (type == engine_.types.float64 && i > 0) {
      plan.numbers.push_back(i - 1);
    } else if (!type || type->storage != Storage::singleton) {
      return false;
    }
  }
  std::vector<std::uint8_t> steps;
  for (std::size_t i = 0; i < parameters_.size() && !has_shapes_; ++i) {
    const bool number = std::find(plan.numbers.begin(), plan.numbers.end(), i) != plan.numbers.end();
    steps.push_back(static_cast<std::uint8_t>((plan.wanted[i + 1] ? flat::is_wanted : 0) |
                                              (parameters_[i] == Kind::numbers ? flat::is_vector : 0) |
                                              (active[i + 1] ? flat::is_active : 0) | (number ? flat::is_number : 0)));
  }
  plan.direct = engine_.pipeline->direct(engine_.ctx, *code, why, steps);
  return plan.direct.entry != nullptr;
}

bool GradientPlan::run(Context& ctx, std::span<const Kind> parameters, LentArrays* lent, const Datum* arguments,
                       const GradientTarget* targets, double& value) const {
  Words words;
  std::size_t count = give_words(parameters, arguments, lent, words);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i] == Kind::number) {
      if (targets[i].wanted) *targets[i].data = 0.0;  // stays when nothing depends on it
      continue;
    }
    if (!targets[i].wanted || !is_array(parameters[i])) continue;
    clear(targets[i]);
    if (code.active[i + 1]) words[count++] = lent->lend(parameters.size() + i, targets[i].data, arguments[i]);
  }
  words[count++] = std::bit_cast<std::uint64_t>(1.0);
  std::array<std::uint64_t, most_arguments + 1> returned;
  TapeGuard guard(ctx);
  guard.failed = !direct.entry(&ctx, words.data(), returned.data());
  if (guard.failed) return false;
  value = std::bit_cast<double>(returned[0]);
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    const GradientTarget& target = targets[numbers[k]];
    if (target.wanted) *target.data = std::bit_cast<double>(returned[k + 1]);
  }
  return true;
}

// 1.0 as the gradient takes it: boxed where the type of the function's result is not known.
bool SlopeFunction::seed_of(const Specialization& gradient, RawValue& seed) {
  const Type* wanted = gradient.types->params.back();
  const RawValue one = engine_.runtime.from_float(1.0);
  diff::TangentTypes& tangents = diff::tangent_types(engine_.runtime);
  if (wanted == tangents.dynamic()) return engine_.runtime.new_object(engine_.ctx, tangents.dynamic(), &one, 1, seed);
  seed = one;
  return true;
}

bool SlopeFunction::gradient_compiled(const GradientPlan& plan, const Datum* arguments, const RawArguments& raw,
                                      const GradientTarget* targets, double& value) {
  const derive::GradientCode& gradient = plan.code;
  // (callee, arguments…, a shadow for each active array, the seed)
  std::array<RawValue, 2 * most_arguments + 2> given;
  Loans shadows;
  std::size_t count = 0;
  given[count++] = callee();
  for (std::size_t i = 0; i < parameters_.size(); ++i) given[count++] = raw[i];
  std::vector<std::unique_ptr<double[]>> scratch;  // of arrays that the function writes, not asked for
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!gradient.active[i + 1] || !is_array(parameters_[i])) continue;
    Datum shadow = arguments[i];
    if (targets[i].wanted) {
      clear(targets[i]);
      shadow.data = targets[i].data;
    } else {
      scratch.push_back(std::make_unique<double[]>(arguments[i].size));
      shadow.data = scratch.back().get();
    }
    shadows[i].emplace(engine_);
    if (!shadows[i]->lend(shadow, given[count])) return fail();
    ++count;
  }
  if (!seed_of(*gradient.target, given[count++])) return fail();

  TapeGuard guard(engine_.ctx);
  RawValue returned;
  guard.failed =
      !engine_.runtime.call_specialized(engine_.ctx, *gradient.target, gradient.callee, given.data(), count, returned);
  if (guard.failed) return fail();
  const DataType* pair = as_data(returned.type);
  Heap& heap = engine_.runtime.heap;
  RawValue primal = load_field(heap, returned.object, pair->fields[0]);
  if (primal.type != engine_.types.float64) {
    return refuse("the result of `" + name_ + "`: expected a Float64, found " + engine_.describe(primal),
                  ErrorKind::conversion);
  }
  value = primal.float64;
  const Field& cotangents = pair->fields[1];
  const DataType* cotangent_types = as_data(cotangents.type);
  const char* at = returned.object->payload() + cotangents.offset;
  Object* boxed = nullptr;
  if (cotangents.storage == Storage::reference) {
    boxed = load_field(heap, returned.object, cotangents).object;
    at = boxed->payload();
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i] != Kind::number || !targets[i].wanted) continue;
    const Field& field = cotangent_types->fields[i + 1];
    RawValue cotangent = load_stored(heap, at + field.offset, field.type);
    *targets[i].data = cotangent.type == engine_.types.float64 ? cotangent.float64 : 0.0;
  }
  return true;
}

bool SlopeFunction::copy_gradient(const Datum& argument, RawValue from, const GradientTarget& to) {
  if (to.take) return to.take(to.object, argument.data, Access::make(engine_, from), error_);
  if (from.type == engine_.types.nothing) {
    clear(to);
    return true;
  }
  const bool is_number = argument.kind == Kind::number;
  Datum datum;
  api::Value holder;
  const Kind kind = is_number ? Kind::number : array_kind(dimensions_of(argument.kind), 0, false);
  if (!engine_.from_raw(from, kind, datum, holder, error_)) return false;
  if (is_number) {
    *to.data = datum.number;
  } else {
    copy_into(to, static_cast<const double*>(datum.data), datum.size);
  }
  return true;
}

bool SlopeFunction::copy_gradients(const Datum* arguments, RawValue gradients, const GradientTarget* targets) {
  Rooted kept(engine_.runtime.heap);
  kept.values.push_back(gradients);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!targets[i].wanted) continue;
    RawValue of_argument;
    if (!part(gradients, i + 1, of_argument) || !copy_gradient(arguments[i], of_argument, targets[i])) return false;
  }
  return true;
}

bool SlopeFunction::gradient_by_value(const Datum* arguments, const RawArguments& raw, const GradientTarget* targets,
                                      double& value) {
  std::array<RawValue, most_arguments + 1> all;
  all[0] = callee();
  std::copy_n(raw.begin(), parameters_.size(), all.begin() + 1);
  RawValue pair, primal, gradients;
  if (!engine_.call_library("value_and_gradient", all.data(), parameters_.size() + 1, pair)) return fail();
  if (!part(pair, 1, primal) || !part(pair, 2, gradients)) return false;
  Datum datum;
  if (!take_result(primal, datum, nullptr)) return false;
  value = datum.number;
  return copy_gradients(arguments, gradients, targets);
}

}  // namespace slope::api::detail
