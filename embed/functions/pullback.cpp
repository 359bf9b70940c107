// Pullbacks of typed function handles: a handle that keeps the result of the language's own `pullback`.
//
// It keeps copies of the arrays, without gaps. Gaps in the host's arrays are not touched.
#include "embed/functions/slope_function.hpp"

namespace slope::api::detail {

namespace {

class SlopePullback final : public PullbackState {
 public:
  SlopePullback(std::shared_ptr<SlopeFunction> function, World world, KeptMethods::Hold held, api::Value back,
                std::span<const Kind> given, const Datum* arguments, const LoweredArguments& lowered,
                std::size_t parameters, std::size_t result_size)
      : function_(std::move(function)),
        world_(world),
        held_(std::move(held)),
        back_(std::move(back)),
        given_(arguments, arguments + given.size()),
        extents_(given.size()),
        lowered_(lowered.data.begin(), lowered.data.begin() + static_cast<std::ptrdiff_t>(parameters)),
        places_(lowered.places.begin(), lowered.places.begin() + static_cast<std::ptrdiff_t>(given.size())),
        result_size_(result_size) {
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (!views_memory(given_[i].kind)) continue;
      given_[i].data = lowered_[places_[i]].data = nullptr;
      lowered_[places_[i]].extents = nullptr;
      if (!given_[i].extents) continue;
      std::copy_n(given_[i].extents, 2 * dimensions_of(given_[i].kind), extents_[i].begin());
      given_[i].extents = extents_[i].data();
    }
  }

  bool run(const Datum& cotangent, const GradientTarget* targets) override {
    const HandleTable* table = Access::table(back_);
    if (!table->engine()) return refuse("the engine of the pullback is gone");
    EngineState& engine = *table->engine();
    Entry entry(engine, world_);
    if (cotangent.kind == Kind::numbers && cotangent.size != result_size_)
      return refuse("the result has " + std::to_string(result_size_) + " elements, its cotangent " +
                        std::to_string(cotangent.size),
                    ErrorKind::conversion);
    if (!function_->check_targets(given_.data(), targets)) return fail();
    RawValue seed, cotangents;
    if (!engine.to_raw(cotangent, seed) || !engine.runtime.call(engine.ctx, Access::raw(back_), &seed, 1, cotangents)) {
      error_ = engine.failure();
      return false;
    }
    std::vector<GradientTarget> places(lowered_.size());
    std::vector<std::vector<double>> without_gaps(given_.size());
    for (std::size_t i = 0; i < given_.size(); ++i) {
      GradientTarget& place = places[places_[i]];
      place = targets[i];
      if (!place.wanted || !has_gaps(i)) continue;
      without_gaps[i].resize(given_[i].size);
      place = GradientTarget(without_gaps[i]);
    }
    if (!function_->copy_gradients(lowered_.data(), cotangents, places.data())) return fail();
    for (std::size_t i = 0; i < given_.size(); ++i)
      if (targets[i].wanted && has_gaps(i)) scatter(targets[i], without_gaps[i].data());
    return true;
  }
  Error take_error() override { return std::move(error_); }

 private:
  bool has_gaps(std::size_t i) const {
    return is_array(given_[i].kind) && layout_of(given_[i].kind) == static_cast<unsigned>(Layout::strided);
  }
  bool fail() {
    error_ = function_->take_error();
    return false;
  }
  bool refuse(std::string message, ErrorKind kind = ErrorKind::engine) {
    error_ = engine_error("pullback of `" + function_->name() + "`: " + message, kind);
    return false;
  }

  std::shared_ptr<SlopeFunction> function_;
  World world_;
  KeptMethods::Hold held_;  // of that world
  api::Value back_;
  std::vector<Datum> given_;  // the arguments' kinds, lengths and shapes; the memory is the caller's no more
  std::vector<std::array<std::size_t, 14>> extents_;
  std::vector<Datum> lowered_;
  std::vector<std::size_t> places_;  // of the arguments among the lowered
  std::size_t result_size_;
  Error error_;
};

}  // namespace

std::unique_ptr<PullbackState> SlopeFunction::pullback(const Datum* arguments, Datum& value, api::Value* holder) {
  if (!alive()) return nullptr;
  LoweredArguments lowered;
  std::string why = lowered.lower(given_, arguments, nullptr, true);
  if (std::find(given_.begin(), given_.end(), Kind::composite) != given_.end())
    why = "structures and containers as arguments have value_and_gradient only";
  if (!why.empty()) {
    refuse("pullback of `" + name_ + "`: " + why, ErrorKind::conversion);
    return nullptr;
  }
  Entry entry(engine_, found_.world);
  Rooted all(engine_.runtime.heap);
  all.values.resize(parameters_.size() + 1);
  all.values[0] = callee();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (engine_.to_raw(lowered.data[i], all.values[i + 1])) continue;
    fail();
    return nullptr;
  }
  RawValue pair, primal, back;
  if (!engine_.call_library("pullback", all.values.data(), all.values.size(), pair)) {
    fail();
    return nullptr;
  }
  if (!part(pair, 1, primal) || !part(pair, 2, back) || !take_result(primal, value, holder)) return nullptr;
  return std::make_unique<SlopePullback>(shared_from_this(), found_.world,
                                         engine_.runtime.kept_methods.hold(found_.world), Access::make(engine_, back),
                                         given_, arguments, lowered, parameters_.size(), value.size);
}

}  // namespace slope::api::detail
