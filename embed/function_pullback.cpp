// Pullbacks of typed function handles: the language's own `pullback`, kept by a handle.
#include "embed/slope_function.hpp"

namespace slope::api::detail {

namespace {

class SlopePullback final : public PullbackState {
 public:
  SlopePullback(std::shared_ptr<SlopeFunction> function, World world, api::Value back, std::vector<Datum> arguments,
                Kind result, std::size_t result_size)
      : function_(std::move(function)),
        world_(world),
        back_(std::move(back)),
        arguments_(std::move(arguments)),
        result_(result),
        result_size_(result_size) {}

  bool run(const Datum& cotangent, const GradientTarget* targets) override {
    const HandleTable* table = Access::table(back_);
    if (!table->engine()) return refuse("the engine of the pullback is gone");
    EngineState& engine = *table->engine();
    Entry entry(engine, world_);
    if (cotangent.kind == Kind::numbers && cotangent.size != result_size_)
      return refuse("the result has " + std::to_string(result_size_) + " elements, its cotangent " +
                        std::to_string(cotangent.size),
                    ErrorKind::conversion);
    if (!function_->check_targets(arguments_.data(), targets)) {
      error_ = function_->take_error();
      return false;
    }
    RawValue seed, cotangents;
    if (!engine.to_raw(cotangent, seed) || !engine.runtime.call(engine.ctx, Access::raw(back_), &seed, 1, cotangents)) {
      error_ = engine.failure();
      return false;
    }
    if (function_->copy_gradients(arguments_.data(), cotangents, targets)) return true;
    error_ = function_->take_error();
    return false;
  }
  Error take_error() override { return std::move(error_); }

 private:
  bool refuse(std::string message, ErrorKind kind = ErrorKind::engine) {
    error_ = engine_error("pullback of `" + function_->name() + "`: " + message, kind);
    return false;
  }

  std::shared_ptr<SlopeFunction> function_;
  World world_;
  api::Value back_;
  std::vector<Datum> arguments_;  // their kinds and lengths; the memory is the caller's no more
  Kind result_;
  std::size_t result_size_;
  Error error_;
};

}  // namespace

std::unique_ptr<PullbackState> SlopeFunction::pullback(const Datum* arguments, Datum& value, api::Value* holder) {
  if (!alive() || !vectors_alone("pullback")) return nullptr;
  Entry entry(engine_, found_.world);
  std::array<RawValue, most_arguments + 1> all;
  all[0] = callee();
  std::vector<Datum> shapes;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i] == Kind::composite) {
      refuse("pullback of `" + name_ + "`: structures and containers as arguments have value_and_gradient only",
             ErrorKind::conversion);
      return nullptr;
    }
    if (!engine_.to_raw(arguments[i], all[i + 1])) {
      fail();
      return nullptr;
    }
    shapes.push_back(arguments[i]);
    if (views_memory(parameters_[i])) shapes.back().data = nullptr;
  }
  RawValue pair, primal, back;
  if (!engine_.call_library("pullback", all.data(), parameters_.size() + 1, pair)) {
    fail();
    return nullptr;
  }
  if (!part(pair, 1, primal) || !part(pair, 2, back) || !take_result(primal, value, holder)) return nullptr;
  return std::make_unique<SlopePullback>(shared_from_this(), found_.world, Access::make(engine_, back),
                                         std::move(shapes), result_, value.size);
}

}  // namespace slope::api::detail
