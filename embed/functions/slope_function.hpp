// Typed function handles: the way from a C++ call to compiled code.
//
// A handle holds the specialisation for its argument types, which is found and compiled when the handle is made. As
// long as the world has not changed since, a call passes machine words to native code (DirectEntry) and gets words
// back: it makes no Value and allocates nothing. Calls without such an entry go through Values: interpreted functions,
// arguments that are not numbers or arrays of them, varargs, callables that hold memory. When something was defined
// meanwhile, the specialisation is looked up again.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include "embed/engine_state.hpp"
#include "embed/functions/lent_shape.hpp"
#include "embed/functions/plan.hpp"
#include "lang/diff/diff.hpp"
#include "lang/runtime/loans.hpp"

namespace slope::api::detail {

// Array headers over the host's memory, one for each array parameter, used again by every call: only for functions that
// keep none of their arguments.
class LentArrays {
 public:
  // For the arrays among `kinds`, so many times. `workspace`: its heap, or null for the engine's.
  LentArrays(EngineState& engine, std::span<const Kind> kinds, std::size_t times, Heap* workspace = nullptr);
  ~LentArrays();
  LentArrays(const LentArrays&) = delete;
  bool ready() const { return ready_; }
  std::uint64_t lend(std::size_t i, const double* data, std::size_t length) {
    ArrayObject* array = arrays_[i];
    if (array->data == reinterpret_cast<const char*>(data) && array->length == static_cast<std::int64_t>(length))
      return reinterpret_cast<std::uint64_t>(array);  // as the last time
    array->data = reinterpret_cast<char*>(const_cast<double*>(data));
    array->length = static_cast<std::int64_t>(length);
    return reinterpret_cast<std::uint64_t>(array);
  }
  // Memory in the shape of `like`.
  std::uint64_t lend(std::size_t i, const double* data, const Datum& like) {
    const std::uint64_t word = lend(i, data, like.size);
    if (like.extents)
      for (std::size_t k = 0, n = dimensions_of(like.kind); k < n; ++k)
        dims_of(arrays_[i])[k] = static_cast<std::int64_t>(like.extents[k]);
    return word;
  }
  ArrayObject* const* headers() const { return arrays_.data(); }
  // Has somebody made other arrays over the same memory?
  bool were_shared() const {
    for (const ArrayObject* array : arrays_)
      if (array && owner_of(array)) return true;
    return false;
  }
  // The call is over: nobody who kept a header after all (an exception may) sees the host's memory through it.
  void take_back() {
    for (ArrayObject* array : arrays_) {
      if (!array || !array->data) continue;
      detail::take_back(array, [this](std::size_t length) -> double* {
        if (!roots_) return engine_.dead(length);
        if (length > dead_length_) {  // what others show already stays
          dead_length_ = 2 * length;
          dead_.push_back(std::make_unique<double[]>(dead_length_));
          std::fill_n(dead_.back().get(), dead_length_, std::numeric_limits<double>::quiet_NaN());
        }
        return dead_.empty() ? nullptr : dead_.back().get();
      });
    }
  }
  // One call at a time; a call inside a call takes the other road.
  bool in_use = false;

 private:
  EngineState& engine_;
  std::shared_ptr<HandleTable> handles_;
  std::vector<std::size_t> slots_;
  std::unique_ptr<Rooted> roots_;                // of a workspace's
  std::vector<std::unique_ptr<double[]>> dead_;  // and what its arrays show between calls
  std::size_t dead_length_ = 0;
  std::vector<ArrayObject*> arrays_;
  bool ready_ = false;
};

// The arrays of a handle are out for one call. Only functions that keep none of them get them; but the exception of one
// that failed may hold some.
class Lending {
 public:
  explicit Lending(LentArrays* arrays) : arrays_(arrays) {
    if (arrays_) arrays_->in_use = true;
  }
  ~Lending() {
    if (!arrays_) return;
    arrays_->in_use = false;
    if (!ended_well_ || arrays_->were_shared()) arrays_->take_back();
  }
  Lending(const Lending&) = delete;
  bool ends(bool well) { return ended_well_ = well; }

 private:
  LentArrays* arrays_;
  bool ended_well_ = false;
};

using Words = std::array<std::uint64_t, 4 * most_arguments + 1>;  // the most that a second derivative takes

inline std::size_t give_words(std::span<const Kind> parameters, const Datum* arguments, LentArrays* lent,
                              Words& words) {
  std::size_t count = 0;
  for (Kind kind : parameters) {
    const Datum& datum = arguments[count];
    words[count] = is_array(kind) ? lent->lend(count, static_cast<const double*>(datum.data), datum)
                                  : static_cast<std::uint64_t>(datum.integer);
    ++count;
  }
  return count;
}

// DirectCode::gradient with all that a call of it needs in one place.
struct FlatGradient {
  flat::Gradient run = nullptr;  // null: there is none
  Context* ctx = nullptr;
  ArrayObject* const* headers = nullptr;

  FlatGradient() = default;
  FlatGradient(flat::Gradient code, Context& context, LentArrays* lent)
      : run(code), ctx(&context), headers(lent ? lent->headers() : nullptr) {}
  // What was shared or failed is to be taken back.
  flat::Outcome operator()(const FlatArgument* arguments, const FlatTarget* targets, double& value) const {
    static_assert(sizeof(FlatArgument) == sizeof(flat::Argument) && sizeof(FlatTarget) == sizeof(flat::Target));
    static_assert(FlatTarget::unwanted == flat::unwanted);
    return run(ctx, reinterpret_cast<const flat::Argument*>(arguments), reinterpret_cast<const flat::Target*>(targets),
               headers, &value);
  }
};
inline AtOnce at_once(flat::Outcome outcome) {
  return outcome == flat::Outcome::otherwise ? AtOnce::otherwise
         : outcome == flat::Outcome::failed  ? AtOnce::failed
                                             : AtOnce::done;
}

// A gradient that the C interface, or C++ in another form, asks for: the short road, when its function takes numbers
// and vectors alone.
template <class Owner>
AtOnce gradient_at_once(Owner& owner, AtOnce (*run)(Owner&, const FlatArgument*, const FlatTarget*, double&),
                        std::span<const Kind> parameters, const Datum* arguments, const GradientTarget* targets,
                        double& value) {
  std::array<FlatArgument, most_arguments> flat;
  std::array<FlatTarget, most_arguments> places;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    flat[i] = {static_cast<std::uint64_t>(arguments[i].integer),
               parameters[i] == Kind::numbers ? arguments[i].size : 1};
    if (targets[i].wanted) places[i] = FlatTarget(std::span<double>(targets[i].data, targets[i].size));
  }
  return run(owner, flat.data(), places.data(), value);
}

// Memory that may be written overlaps other memory of the call. Empty: all is well.
std::string argument_misfit(std::span<const Kind> parameters, const Datum* arguments);
// What a gradient may not be given: memory of another shape, memory that overlaps. Empty: all is well.
std::string gradient_misfit(std::span<const Kind> parameters, const Datum* arguments, const GradientTarget* targets);

class SlopeFunction final : public FunctionState, public std::enable_shared_from_this<SlopeFunction> {
 public:
  SlopeFunction(EngineState& engine, std::string name, std::span<const Kind> parameters, Kind result, Dispatch dispatch)
      : engine_(engine),
        handles_(engine.handles),
        name_(std::move(name)),
        given_(parameters.begin(), parameters.end()),
        lowering_(lower_parameters(name_, given_)),
        parameters_(lowering_.parameters),
        result_(result),
        dispatch_(dispatch) {
    engine_.functions.push_back(this);
    for (Kind kind : given_) has_shapes_ = has_shapes_ || (is_array(kind) && kind != Kind::numbers);
    if (!has_shapes_) gradient_at_once = flat_gradient;
  }
  ~SlopeFunction() override {
    if (handles_->engine()) std::erase(engine_.functions, this);
  }

  void let_go() {  // the engine ends: its machine code goes with it
    found_ = Found();
    word_call = nullptr;
    machine_code = nullptr;
  }
  bool find();  // in the newest world
  bool call(const Datum* arguments, Datum& result, api::Value* holder) override;
  bool gradient(const Datum* arguments, const GradientTarget* targets, double& value) override;
  bool jvp(const Datum* arguments, const TangentGiven* tangents, Datum* results, api::Value* holders) override;
  bool hvp(const Datum* arguments, const TangentGiven* direction, const GradientTarget* targets) override;
  bool jacobian(const Datum* arguments, const JacobianTarget* targets, Datum& value, api::Value* holder) override;
  std::unique_ptr<PullbackState> pullback(const Datum* arguments, Datum& value, api::Value* holder) override;
  Error take_error() override { return std::move(error_); }
  std::unique_ptr<WorkspaceState> make_workspace() override;
  bool is_current() const override;
  bool refresh() override;

  const std::string& name() const { return name_; }
  bool check_targets(const Datum* arguments, const GradientTarget* targets);
  // Into the targets, what the language's operators give: a tuple with an entry for each argument.
  bool copy_gradients(const Datum* arguments, RawValue gradients, const GradientTarget* targets);

 private:
  friend class SlopeWorkspace;
  using RawArguments = std::array<RawValue, most_arguments>;
  using Loans = std::array<std::optional<Loan>, most_arguments>;

  bool alive() { return handles_->engine() || refuse("the engine of the function `" + name_ + "` is gone"); }
  // All false.
  bool refuse(std::string message, ErrorKind kind = ErrorKind::engine) {
    error_ = engine_error(std::move(message), kind);
    return false;
  }
  [[gnu::noinline, gnu::cold]] bool fail() {
    error_ = engine_.failure();
    return false;
  }
  RawValue callee() const { return handles_->at(found_.callee.slot); }

  // --- calls ---
  bool check_native(bool& lets_go);
  bool check_kept();
  bool stores_nothing();
  // One call with lent arrays that the function may keep. What it stores is looked at; ends() says whether it kept
  // nothing, of which its result is part.
  class LentCall {
   public:
    explicit LentCall(SlopeFunction& function) : function_(function) {
      if (!function.found_.lets_go) watch_.emplace(function.engine_.ctx);
    }
    bool ends(RawValue result = {}) { return !watch_ || function_.kept_nothing(watch_->kept(result)); }

   private:
    SlopeFunction& function_;
    std::optional<LoanWatch> watch_;
  };
  bool kept_nothing(const LoanWatch::Kept& kept);
  bool find_direct();
  bool call_direct(const Datum* arguments, Datum& result);
  static bool call_words(FunctionState& function, const std::uint64_t* arguments, std::uint64_t* result);
  static bool call_failed(FunctionState& function, const std::uint64_t* arguments, std::uint64_t* result);
  [[gnu::noinline]] bool call_entered(const std::uint64_t* arguments, std::uint64_t* result);
  bool call_values(const Datum* arguments, Datum& result, api::Value* holder);
  bool call_lowered(const Datum* arguments, Datum& result, api::Value* holder);
  bool gradient_lowered(const Datum* arguments, const GradientTarget* targets, double& value);
  bool give(const Datum* arguments, RawArguments& raw, Loans& loans);

  // Are the method's parameters the arguments, one to one, and is there nothing else that derivatives reach?
  bool is_one_to_one() const { return found_.one_to_one; }

  // By a call of this function that the running one is inside of.
  bool arrays_are_out() const { return lent_ && (lent_->in_use || engine_.lends_at_once == this); }

  // --- gradients (gradient.cpp) ---
  static AtOnce flat_gradient(FunctionState& function, const FlatArgument* arguments, const FlatTarget* targets,
                              double& value);
  [[gnu::noinline, gnu::cold]] AtOnce flat_gradient_ended(flat::Outcome outcome);
  // Null with an error: there is no derivative.
  const GradientPlan* gradient_plan(const GradientTarget* targets);
  bool find_words(GradientPlan& plan);
  bool seed_of(const Specialization& gradient, RawValue& seed);  // false: raised
  bool gradient_compiled(const GradientPlan& plan, const Datum* arguments, const RawArguments& raw,
                         const GradientTarget* targets, double& value);
  bool gradient_by_value(const Datum* arguments, const RawArguments& raw, const GradientTarget* targets, double& value);
  bool copy_gradient(const Datum& argument, RawValue from, const GradientTarget& to);

  // --- forward mode (forward.cpp) ---
  std::string direction_misfit(const Datum* arguments, const TangentGiven* tangents) const;
  // Null with an error: there is no derivative. `words`: as many numbers machine code returns; 0 where it cannot be
  // called with words.
  const ForwardPlan* forward_plan(Specialization& primal, const std::vector<char>& moving, std::size_t width,
                                  std::size_t words);
  bool run_words(const DirectCode& code, const Words& words, std::uint64_t* returned);
  bool run_forward(const ForwardPlan& plan, const Rooted& given, const Rooted& moves, RawValue& returned);
  bool give_tangents(const TangentGiven* tangents, RawArguments& raw, Loans& loans);
  bool operator_arguments(const Datum* arguments, const TangentGiven* tangents, Loans& loans, Loans& tangent_loans,
                          RawValue* all);
  bool jvp_lowered(const Datum* arguments, const TangentGiven* tangents, Datum* results, api::Value* holders);
  bool hvp_lowered(const Datum* arguments, const TangentGiven* direction, const GradientTarget* targets);
  bool jvp_by_value(const Datum* arguments, const TangentGiven* tangents, Datum* results, api::Value* holders);
  bool hvp_words(const GradientPlan& gradient, const ForwardPlan& plan, const Datum* arguments,
                 const TangentGiven* direction, const GradientTarget* targets);
  bool hvp_by_value(const Datum* arguments, const TangentGiven* direction, const GradientTarget* targets);

  // --- Jacobians (jacobian.cpp) ---
  class Before;
  class Columns;
  struct Place {
    std::size_t argument;   // the host's
    std::size_t parameter;  // the code's
    const Datum& given;     // the argument
  };
  std::string matrices_misfit(const Datum* arguments, const JacobianTarget* targets) const;
  bool jacobian_columns(const Datum* arguments, const Place& of, const JacobianTarget& to, const Before& before,
                        Datum& value, api::Value* holder, bool& known);
  bool columns_at_once(const Datum* arguments, const Place& of, std::size_t first, std::size_t columns,
                       std::size_t& width, Columns& put, RawValue& value);
  bool column_by_value(const Datum* arguments, const Place& of, std::size_t j, Columns& put, RawValue& value);
  bool unit(const Datum& lowered, const Place& of, std::size_t j, RawValue& v);

  bool zeros(const Datum& like, RawValue& v);  // false: raised
  bool zeros(const DataType* type, const std::int64_t* dims, RawValue& v);
  bool part(RawValue of, std::size_t index, RawValue& v);
  bool result_tangent(RawValue shadow, RawValue tangent, RawValue like, RawValue& v);
  bool take_result(RawValue v, Datum& datum, api::Value* holder);

  // The callee, kept alive.
  struct Slot {
    std::shared_ptr<HandleTable> table;
    std::size_t slot = 0;
    Slot() = default;
    Slot(Slot&& other) noexcept : table(std::move(other.table)), slot(other.slot) {}
    Slot& operator=(Slot&& other) noexcept {
      std::swap(table, other.table);
      std::swap(slot, other.slot);
      return *this;
    }
    ~Slot() {
      if (table) table->release(slot);
    }
  };

  // What a lookup found, and all that was made for it.
  struct Found {
    Slot callee;
    World world = 0;
    KeptMethods::Hold held;            // of that world
    Specialization* target = nullptr;  // null: some argument is of any type, calls dispatch
    bool one_to_one = false;
    bool lets_go = false;  // no array that it is lent is kept, for certain
    DirectCode direct;
    std::vector<std::shared_ptr<const GradientPlan>> gradients;
    FlatGradient flat_gradient;                          // of the one that ran last
    std::vector<std::unique_ptr<ForwardPlan>> forwards;  // of the function and of its gradients
  };

  EngineState& engine_;
  std::shared_ptr<HandleTable> handles_;
  std::string name_;
  std::vector<Kind> given_;  // as the host gives them
  Lowering lowering_;
  const std::vector<Kind>& parameters_;  // as the code takes them
  bool has_shapes_ = false;              // arrays that are not vectors to be read: they are checked and lowered
  Kind result_;
  Dispatch dispatch_;
  Error error_;
  Found found_;
  std::unique_ptr<LentArrays> lent_;          // of the arguments, then of their shadows; made when first wanted
  std::unique_ptr<LentArrays> lent_forward_;  // of the tangents of both
  std::vector<double> scratch_;
};

}  // namespace slope::api::detail
