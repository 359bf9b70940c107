// Typed function handles: the road from a C++ call to compiled code.
//
// A handle holds the specialisation for its argument types, found and compiled when the handle is made; as long as the
// world has not moved since, a call is: arguments to raw values, one call of native code, the result back. When
// something was defined meanwhile, the specialisation is looked up again.
//
// Gradients take the fast road when the method's parameters are the arguments one to one: the host's arrays are lent as
// arguments and, cleared, as their shadows, so the derivative accumulates in the host's own memory. The rest (varargs,
// callables that hold memory) goes the way of the language's own value_and_gradient, and the result is copied.
#include <algorithm>
#include <array>

#include "embed/engine_state.hpp"
#include "lang/diff/diff.hpp"

namespace slope::api::detail {

namespace {

constexpr std::size_t max_arguments = 16;

class SlopeFunction final : public FunctionState {
 public:
  SlopeFunction(EngineState& engine, std::string name, std::span<const Kind> parameters, Kind result)
      : engine_(engine),
        handles_(engine.handles),
        name_(std::move(name)),
        parameters_(parameters.begin(), parameters.end()),
        result_(result) {}

  bool find(Error& error);
  bool call(const Datum* arguments, Datum& result, api::Value& holder, Error& error) override;
  bool gradient(const Datum* arguments, const GradientTarget* targets, double& value, Error& error) override;

 private:
  using RawArguments = std::array<RawValue, max_arguments>;
  using Loans = std::array<std::optional<Loan>, max_arguments>;

  bool alive(Error& error) const {
    if (handles_->engine()) return true;
    error = engine_error("the engine of the function `" + name_ + "` is gone");
    return false;
  }
  bool current(Error& error) { return world_ == engine_.runtime.world() || find(error); }
  bool give(const Datum* arguments, RawArguments& raw, Loans& loans);
  bool check_targets(const Datum* arguments, const GradientTarget* targets, Error& error) const;
  bool find_gradient(const GradientTarget* targets, Error& error);
  bool gradient_by_value(const RawArguments& raw, const GradientTarget* targets, double& value, Error& error);
  bool copy_gradient(RawValue from, const GradientTarget& to, Error& error);
  bool fail(Error& error) {
    error = engine_.failure();
    return false;
  }
  RawValue callee() const { return handles_->at(slot_.slot); }

  // The callee, kept alive.
  struct Slot {
    std::shared_ptr<HandleTable> table;
    std::size_t slot = 0;
    ~Slot() {
      if (table) table->release(slot);
    }
  };

  EngineState& engine_;
  std::shared_ptr<HandleTable> handles_;
  std::string name_;
  std::vector<Kind> parameters_;
  Kind result_;
  Slot slot_;
  Specialization* target_ = nullptr;  // null: some argument is of any type, calls dispatch
  World world_ = 0;
  const Pipeline::GradientCode* gradient_ = nullptr;
  World gradient_world_ = 0;
  std::vector<char> active_;  // as asked for: callee first
};

bool SlopeFunction::find(Error& error) {
  Runtime& runtime = engine_.runtime;
  RawValue found = engine_.global(name_);
  if (!found.defined()) {
    error = engine_error("there is no function `" + name_ + "` in Main");
    return false;
  }
  if (!slot_.table) {
    slot_.table = handles_;
    slot_.slot = handles_->add(found);
  }
  handles_->set(slot_.slot, found);
  target_ = nullptr;
  world_ = runtime.world();
  bool known = true;
  std::vector<const Type*> types{runtime.types.dispatch_type(found)};
  for (Kind kind : parameters_) {
    const Type* type = engine_.type_for(kind);
    known = known && type;
    types.push_back(type);
  }
  if (!known) return true;
  const DataType* call_types = runtime.types.tuple(types);
  target_ = runtime.lookup_specialization(call_types, world_);
  if (!target_) {
    std::string arguments;
    for (std::size_t i = 1; i < types.size(); ++i) arguments += (i > 1 ? ", ::" : "::") + to_string(types[i]);
    error = engine_error("no method of `" + name_ + "` takes (" + arguments + ")");
    return false;
  }
  if (engine_.pipeline->mode != TierMode::interpret) engine_.pipeline->on_hot(engine_.ctx, *target_);
  return true;
}

bool SlopeFunction::give(const Datum* arguments, RawArguments& raw, Loans& loans) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (arguments[i].kind == Kind::numbers) {
      loans[i].emplace(engine_);
      if (!loans[i]->lend(static_cast<const double*>(arguments[i].data), arguments[i].size, raw[i])) return false;
    } else if (!engine_.to_raw(arguments[i], raw[i])) {
      return false;
    }
  }
  return true;
}

bool SlopeFunction::call(const Datum* arguments, Datum& result, api::Value& holder, Error& error) {
  if (!alive(error)) return false;
  Entry entry(engine_);
  if (!current(error)) return false;
  RawArguments raw;
  Loans loans;
  if (!give(arguments, raw, loans)) return fail(error);
  RawValue returned;
  Runtime& runtime = engine_.runtime;
  bool ok = target_
                ? runtime.call_specialized(engine_.ctx, *target_, callee(), raw.data(), parameters_.size(), returned)
                : runtime.call(engine_.ctx, callee(), raw.data(), parameters_.size(), returned);
  if (!ok) return fail(error);
  if (engine_.from_raw(returned, result_, result, holder, error)) return true;
  error.message = "the result of `" + name_ + "`: " + error.message;
  return false;
}

bool SlopeFunction::check_targets(const Datum* arguments, const GradientTarget* targets, Error& error) const {
  auto refuse = [&](std::size_t i, const std::string& why) {
    error = engine_error("gradient of `" + name_ + "`, argument " + std::to_string(i + 1) + ": " + why,
                         ErrorKind::conversion);
    return false;
  };
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const GradientTarget& target = targets[i];
    if (!target.wanted) continue;
    if (parameters_[i] == Kind::number) {
      if (target.size != 1) return refuse(i, "a number has a derivative of one number");
    } else if (parameters_[i] == Kind::numbers) {
      std::size_t size = arguments[i].size;
      if (target.size != size)
        return refuse(i, "the argument has " + std::to_string(size) + " elements, the memory for its gradient " +
                             std::to_string(target.size));
      for (std::size_t k = 0; k < parameters_.size(); ++k) {
        if (arguments[k].kind != Kind::numbers || size == 0) continue;
        auto* data = static_cast<const double*>(arguments[k].data);
        if (std::less<>()(data, target.data + size) && std::less<>()(target.data, data + arguments[k].size))
          return refuse(i, "the memory for the gradient overlaps an argument");
      }
      for (std::size_t k = 0; k < i; ++k) {
        if (!targets[k].wanted || size == 0) continue;
        if (std::less<>()(targets[k].data, target.data + size) &&
            std::less<>()(target.data, targets[k].data + targets[k].size))
          return refuse(i, "the memory for the gradient overlaps that of another");
      }
    } else {
      return refuse(i, "there is no derivative with respect to this type; pass nullptr");
    }
  }
  return true;
}

bool SlopeFunction::find_gradient(const GradientTarget* targets, Error& error) {
  bool same = gradient_ && gradient_world_ == world_;
  active_.resize(parameters_.size() + 1, 0);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    char wanted = targets[i].wanted;
    same = same && active_[i + 1] == wanted;
    active_[i + 1] = wanted;
  }
  if (same) return true;
  gradient_ = engine_.pipeline->gradient_code(engine_.ctx, *target_, active_);
  gradient_world_ = world_;
  return gradient_ || fail(error);
}

bool SlopeFunction::gradient(const Datum* arguments, const GradientTarget* targets, double& value, Error& error) {
  if (!alive(error)) return false;
  Entry entry(engine_);
  if (!current(error) || !check_targets(arguments, targets, error)) return false;
  RawArguments raw;
  Loans loans;
  if (!give(arguments, raw, loans)) return fail(error);
  const DataType* callee_type = as_data(callee().type);
  if (!target_ || target_->method->is_vararg || callee_type->storage != Storage::singleton)
    return gradient_by_value(raw, targets, value, error);
  if (!find_gradient(targets, error)) return false;

  // (callee, arguments…, a shadow for each active array, the seed)
  std::array<RawValue, 2 * max_arguments + 2> given;
  Loans shadows;
  std::size_t count = 0;
  given[count++] = callee();
  for (std::size_t i = 0; i < parameters_.size(); ++i) given[count++] = raw[i];
  std::vector<std::unique_ptr<double[]>> scratch;  // of arrays that the function writes, not asked for
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!gradient_->active[i + 1] || parameters_[i] != Kind::numbers) continue;
    double* memory = targets[i].data;
    if (!targets[i].wanted) {
      scratch.push_back(std::make_unique<double[]>(arguments[i].size));
      memory = scratch.back().get();
    }
    std::fill_n(memory, arguments[i].size, 0.0);
    shadows[i].emplace(engine_);
    if (!shadows[i]->lend(memory, arguments[i].size, given[count])) return fail(error);
    ++count;
  }
  given[count++] = engine_.runtime.from_float(1.0);

  Context& ctx = engine_.ctx;
  std::uint64_t mark = ctx.tapes ? ctx.tapes->mark() : 0;
  RawValue returned;
  if (!engine_.runtime.call_specialized(ctx, *gradient_->target, gradient_->callee, given.data(), count, returned)) {
    if (ctx.tapes) ctx.tapes->release_since(mark);
    return fail(error);
  }
  const DataType* pair = as_data(returned.type);
  Heap& heap = engine_.runtime.heap;
  RawValue primal = load_field(heap, returned.object, pair->fields[0]);
  if (primal.type != engine_.types.float64) {
    error = engine_error("the result of `" + name_ + "`: expected a Float64, found " + engine_.describe(primal),
                         ErrorKind::conversion);
    return false;
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

bool SlopeFunction::copy_gradient(RawValue from, const GradientTarget& to, Error& error) {
  if (from.type == engine_.types.nothing) {
    std::fill_n(to.data, to.size, 0.0);
    return true;
  }
  Datum datum;
  api::Value holder;
  if (!engine_.from_raw(from, to.size == 1 && from.type == engine_.types.float64 ? Kind::number : Kind::numbers, datum,
                        holder, error))
    return false;
  if (datum.kind == Kind::number) {
    *to.data = datum.number;
  } else {
    std::copy_n(datum.numbers().data(), std::min(to.size, datum.size), to.data);
  }
  return true;
}

bool SlopeFunction::gradient_by_value(const RawArguments& raw, const GradientTarget* targets, double& value,
                                      Error& error) {
  Runtime& runtime = engine_.runtime;
  Context& ctx = engine_.ctx;
  std::array<RawValue, max_arguments + 1> all;
  all[0] = callee();
  std::copy_n(raw.begin(), parameters_.size(), all.begin() + 1);
  RawValue pair;
  if (!engine_.call_library("value_and_gradient", all.data(), parameters_.size() + 1, pair)) return fail(error);
  RawValue primal, gradients;
  if (!runtime.get_field(ctx, pair, runtime.from_int(1), primal) ||
      !runtime.get_field(ctx, pair, runtime.from_int(2), gradients))
    return fail(error);
  Datum datum;
  api::Value holder;
  if (!engine_.from_raw(primal, Kind::number, datum, holder, error)) return false;
  value = datum.number;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!targets[i].wanted) continue;
    RawValue part;
    if (!runtime.get_field(ctx, gradients, runtime.from_int(static_cast<std::int64_t>(i) + 1), part))
      return fail(error);
    if (!copy_gradient(part, targets[i], error)) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<FunctionState> make_function(EngineState& engine, std::string name, std::span<const Kind> parameters,
                                             Kind result, Error& error) {
  if (parameters.size() > max_arguments) {
    error = engine_error("a function handle takes at most " + std::to_string(max_arguments) + " arguments");
    return nullptr;
  }
  auto made = std::make_shared<SlopeFunction>(engine, std::move(name), parameters, result);
  Entry entry(engine);
  if (!made->find(error)) return nullptr;
  return made;
}

}  // namespace slope::api::detail
