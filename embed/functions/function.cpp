#include "embed/functions/slope_function.hpp"

#include "embed/host/native_check.hpp"
#include "lang/diff/memory.hpp"

namespace slope::api::detail {

LentArrays::LentArrays(EngineState& engine, std::span<const Kind> kinds, std::size_t times, Heap* workspace)
    : engine_(engine) {
  if (workspace) {
    roots_ = std::make_unique<Rooted>(*workspace);
  } else {
    handles_ = engine.handles;
  }
  constexpr std::array<std::int64_t, 7> dims{};
  for (std::size_t i = 0; i < times * kinds.size(); ++i) {
    const Kind kind = kinds[i % kinds.size()];
    arrays_.push_back(nullptr);
    if (!is_array(kind)) continue;
    const std::size_t n = dimensions_of(kind);
    Heap& heap = workspace ? *workspace : engine.runtime.heap;
    ArrayObject* array = heap.borrow_array(engine.float_arrays[n], nullptr, {dims.data(), n});
    if (!array) return;
    arrays_.back() = array;
    const RawValue v(engine.float_arrays[n], static_cast<const void*>(array));
    if (workspace) {
      roots_->values.push_back(v);
    } else {
      slots_.push_back(handles_->add(v));
    }
  }
  ready_ = true;
}

LentArrays::~LentArrays() {
  for (std::size_t slot : slots_) handles_->release(slot);
}

bool SlopeFunction::find() {
  Runtime& runtime = engine_.runtime;
  RawValue callee = engine_.global(name_);
  if (!callee.defined()) return refuse("there is no function `" + name_ + "` in Main");
  if (parameters_.size() > most_arguments)
    return refuse("a function handle takes at most " + std::to_string(most_arguments) +
                  " arguments; a strided array counts once for each of its dimensions");
  if (!lowering_.adapter.empty()) {
    Result<api::Value> adapter = engine_.run("<host function>", lowering_.adapter);
    if (!adapter.ok()) {
      error_ = adapter.error();
      return false;
    }
    callee = Access::raw(adapter.value());
    engine_.ctx.world = runtime.world();
  }
  found_ = Found();
  word_call = nullptr;
  machine_code = nullptr;
  found_.callee.table = handles_;
  found_.callee.slot = handles_->add(callee);
  found_.world = runtime.world();
  found_.held = runtime.kept_methods.hold(found_.world);
  bool known = true;
  std::vector<const Type*> types{runtime.types.dispatch_type(callee)};
  for (Kind kind : parameters_) {
    const Type* type = engine_.type_for(kind);
    known = known && type;
    types.push_back(type);
  }
  if (!known) return true;
  found_.target = runtime.lookup_specialization(runtime.types.tuple(types), found_.world);
  if (!found_.target) {
    std::string arguments;
    for (std::size_t i = 1; i < types.size(); ++i) arguments += (i > 1 ? ", ::" : "::") + to_string(types[i]);
    return refuse("no method of `" + name_ + "` takes (" + arguments + ")");
  }
  found_.one_to_one = !found_.target->method->is_vararg && as_data(callee.type)->storage == Storage::singleton;
  found_.lets_go = std::none_of(parameters_.begin(), parameters_.end(), is_array);
  if (!check_kept()) return false;
  if (engine_.pipeline->mode == TierMode::interpret) {
    if (!found_.lets_go && found_.one_to_one) {
      NativeCheck check(*engine_.pipeline, engine_.ctx);
      found_.lets_go = check.passes(*found_.target) && !check.catches && !check.gives_values && stores_nothing();
    }
    return true;
  }
  engine_.pipeline->on_hot(engine_.ctx, *found_.target);
  return find_direct();
}

bool SlopeFunction::is_current() const {
  if (!handles_->engine()) return false;
  Runtime& runtime = engine_.runtime;
  if (found_.world == runtime.world()) return true;
  if (!found_.target || (lowering_.adapter.empty() && !engine_.global(name_).identical(callee()))) return false;
  if (found_.target->method->max_world < runtime.world()) return false;
  Entry entry(engine_, found_.world);
  const CodeInstance* code = engine_.pipeline->typed_code(engine_.ctx, *found_.target);
  return code && code->valid_in(runtime.world());
}

bool SlopeFunction::refresh() {
  if (!alive()) return false;
  Entry entry(engine_);
  Found before = std::move(found_);
  const WordCall word_call_before = word_call;
  const auto machine_code_before = machine_code;
  found_ = Found();
  if (find()) return true;
  found_ = std::move(before);
  word_call = word_call_before;
  machine_code = machine_code_before;
  return false;
}

// `lets_go`: as far as the code of the function says. An exception that it catches may hold an
// array, and the host may keep values that it gets.
bool SlopeFunction::check_native(bool& lets_go) {
  NativeCheck check(*engine_.pipeline, engine_.ctx);
  bool native = check.passes(*found_.target);
  lets_go = native && !check.catches && !check.gives_values;
  if (native || dispatch_ == Dispatch::allowed) return true;
  refuse("`" + name_ + "` is not native: " + check.why, ErrorKind::not_native);
  error_.position = engine_.position_of(check.where);
  if (check.where.file != 0) {
    const SourceMap& sources = engine_.runtime.sources;
    error_.message += "\n  --> " + sources.describe(check.where) + "\n" + sources.excerpt(check.where);
    while (error_.message.back() == '\n') error_.message.pop_back();
  }
  error_.message +=
      "\n  = help: `@code_warntype " + name_ + "(…)` shows all types; slope::Dispatch::allowed gives a slower handle";
  return false;
}

// Lent memory is the host's again when the call ends: who keeps an array of it would find nothing there.
bool SlopeFunction::check_kept() {
  if (dispatch_ == Dispatch::allowed || !found_.one_to_one) return true;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!is_array(parameters_[i])) continue;
    const diff::MemorySummary memory = engine_.pipeline->memory(engine_.ctx).of(*found_.target);
    const CodeInstance* code = engine_.pipeline->typed_code(engine_.ctx, *found_.target);
    if (!code || !code->typed) continue;
    if ((memory.writes & diff::parameter_mask(i + 1)) != 0 && !is_writable(parameters_[i])) {
      refuse("`" + name_ + "` writes to its argument " + std::to_string(i + 1) +
                 ", which is lent to be read\n  = help: lend memory that may be written, `std::span<double>` or "
                 "`slope::ArrayView<double, N>`",
             ErrorKind::not_native);
      error_.position = engine_.position_of(found_.target->method->span);
      return false;
    }
    if ((memory.stored & diff::parameter_mask(i + 1)) == 0) continue;
    NativeCheck check(*engine_.pipeline, engine_.ctx);
    const Span where = check.find_store(*found_.target, engine_.type_for(parameters_[i]));
    const SourceMap& sources = engine_.runtime.sources;
    refuse("`" + name_ + "` keeps its argument " + std::to_string(i + 1) + ", which is lent for the call alone",
           ErrorKind::not_native);
    error_.position = engine_.position_of(where);
    if (where.file != 0) error_.message += "\n  --> " + sources.describe(where) + "\n" + sources.excerpt(where);
    while (error_.message.back() == '\n') error_.message.pop_back();
    error_.message += "\n  = help: store a copy, `copy(…)`";
    return false;
  }
  return true;
}

// What the function does to its arrays is known, and it neither keeps one nor returns it.
bool SlopeFunction::stores_nothing() {
  const CodeInstance* code = engine_.pipeline->typed_code(engine_.ctx, *found_.target);
  if (!code || !code->typed) return false;
  const diff::MemorySummary memory = engine_.pipeline->memory(engine_.ctx).of(*found_.target);
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (is_array(parameters_[i]) &&
        ((memory.stored | memory.unknown | memory.result) & diff::parameter_mask(i + 1)) != 0)
      return false;
  return true;
}

bool SlopeFunction::kept_nothing(const LoanWatch::Kept& kept) {
  if (!kept.array) return true;
  const SourceMap& sources = engine_.runtime.sources;
  Span where;
  for (const std::vector<TraceEntry>& store : kept.where)
    for (const TraceEntry& entry : store)
      if (where.file == 0 && is_host_text(sources, entry.span)) where = entry.span;
  if (where.file == 0 && found_.target) where = found_.target->method->span;
  refuse("`" + name_ + "` " + (kept.where.empty() ? "returns" : "keeps") + " an array that is lent for the call alone",
         ErrorKind::runtime);
  error_.type = "ArgumentError";
  error_.summary = error_.message;
  error_.position = engine_.position_of(where);
  if (where.file != 0) error_.message += "\n  --> " + sources.describe(where) + "\n" + sources.excerpt(where);
  while (error_.message.back() == '\n') error_.message.pop_back();
  error_.message += "\n  = help: " + std::string(kept.where.empty() ? "return" : "store") + " a copy, `copy(…)`";
  return false;
}

// Words go in and out when every parameter and the result are numbers or, going in, arrays of numbers that the function
// does not keep.
bool SlopeFunction::find_direct() {
  bool lets_go = false;
  if (!check_native(lets_go)) return false;
  if (!found_.one_to_one) return true;
  found_.lets_go = found_.lets_go || (lets_go && stores_nothing());
  bool arrays = false;
  for (Kind kind : parameters_) {
    if (views_memory(kind) && !is_array(kind)) return true;
    if (kind == Kind::nothing) return true;
    arrays = arrays || is_array(kind);
  }
  std::string why;
  CodeInstance* code = engine_.pipeline->compile(engine_.ctx, *found_.target, why);
  if (!code || !code->typed) return true;
  const std::vector<std::uint32_t>& given = code->typed->blocks[0].parameters;
  if (given.size() != parameters_.size() + 1) return true;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (code->typed->insts[given[i + 1]].type != engine_.type_for(parameters_[i])) return true;
  if (result_ == Kind::nothing) {
    // Whatever it returns is dropped.
    const DataType* type = as_data(code->typed->return_type);
    if (!type || (type->storage != Storage::singleton && type->storage != Storage::bits)) return true;
  } else if (views_memory(result_) || code->typed->return_type != engine_.type_for(result_)) {
    return true;
  }
  if (arrays) {
    if (!found_.lets_go) return true;
    if (!lent_) lent_ = std::make_unique<LentArrays>(engine_, parameters_, 2);
    if (!lent_->ready()) return true;
  }
  found_.direct = engine_.pipeline->direct(engine_.ctx, *code, why);
  if (!found_.direct.entry || arrays) return true;
  word_call = call_words;
  if (engine_.is_unlimited() && NativeCheck(*engine_.pipeline, engine_.ctx).only_computes(*code->typed)) {
    // It looks at nothing of the engine, which needs no preparation.
    context = &engine_.ctx;
    machine_code = reinterpret_cast<decltype(machine_code)>(found_.direct.entry);
    word_call = call_failed;
  }
  return true;
}

bool SlopeFunction::call_entered(const std::uint64_t* arguments, std::uint64_t* result) {
  Entry entry(engine_, found_.world);
  return found_.direct.entry(&engine_.ctx, arguments, result) || fail();
}

bool SlopeFunction::call_words(FunctionState& function, const std::uint64_t* arguments, std::uint64_t* result) {
  auto& self = static_cast<SlopeFunction&>(function);
  EngineState& engine = self.engine_;
  if (!engine.enter_at_once(__builtin_frame_address(0))) [[unlikely]]
    return self.call_entered(arguments, result);
  engine.ctx.world = self.found_.world;
  const bool ok = self.found_.direct.entry(&engine.ctx, arguments, result);
  if (!ok) [[unlikely]]
    self.fail();
  engine.leave_at_once();
  if (engine.ctx.stopped != Stop::none) [[unlikely]]
    engine.go_on();
  return ok;
}

// Machine code that was called without preparation did not come to its end: on another thread than the engine's last it
// may take the stack for full.
bool SlopeFunction::call_failed(FunctionState& function, const std::uint64_t* arguments, std::uint64_t* result) {
  auto& self = static_cast<SlopeFunction&>(function);
  Context& ctx = self.engine_.ctx;
  if (ctx.failed()) ctx.take_error();
  ctx.last_trace.clear();
  return self.call_entered(arguments, result);
}

inline bool SlopeFunction::call_direct(const Datum* arguments, Datum& result) {
  Words words;
  give_words(parameters_, arguments, lent_.get(), words);
  Lending lending(lent_.get());
  std::uint64_t returned[2];
  if (!lending.ends(found_.direct.entry(&engine_.ctx, words.data(), returned))) return fail();
  result.kind = result_;
  result.integer = static_cast<std::int64_t>(returned[0]);
  return true;
}

bool SlopeFunction::give(const Datum* arguments, RawArguments& raw, Loans& loans) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (is_array(arguments[i].kind)) {
      loans[i].emplace(engine_);
      if (!loans[i]->lend(arguments[i], raw[i])) return false;
    } else if (!engine_.to_raw(arguments[i], raw[i])) {
      return false;
    }
  }
  return true;
}

bool SlopeFunction::call_lowered(const Datum* arguments, Datum& result, api::Value* holder) {
  LoweredArguments lowered;
  std::string why = argument_misfit(given_, arguments);
  if (why.empty()) why = lowered.lower(given_, arguments, nullptr);
  if (!why.empty()) return refuse("call of `" + name_ + "`, " + why, ErrorKind::conversion);
  Entry entry(engine_, found_.world);
  if (found_.direct.entry && !arrays_are_out()) return call_direct(lowered.data.data(), result);
  return call_values(lowered.data.data(), result, holder);
}

bool SlopeFunction::call(const Datum* arguments, Datum& result, api::Value* holder) {
  if (!alive()) return false;
  if (has_shapes_) return call_lowered(arguments, result, holder);
  Entry entry(engine_, found_.world);
  if (found_.direct.entry && !arrays_are_out()) return call_direct(arguments, result);
  return call_values(arguments, result, holder);
}

bool SlopeFunction::call_values(const Datum* arguments, Datum& result, api::Value* holder) {
  LentCall lent(*this);
  RawArguments raw;
  Loans loans;
  if (!give(arguments, raw, loans)) return fail();
  RawValue returned;
  Runtime& runtime = engine_.runtime;
  bool ok = found_.target ? runtime.call_specialized(engine_.ctx, *found_.target, callee(), raw.data(),
                                                     parameters_.size(), returned)
                          : runtime.call(engine_.ctx, callee(), raw.data(), parameters_.size(), returned);
  if (!ok) return fail();
  // What becomes a C++ value is copied anyway: it may consist of arrays that are lent.
  if (result_ == Kind::composite && !found_.lets_go && !own_arrays(engine_, returned)) return fail();
  if (!lent.ends(result_ == Kind::any || result_ == Kind::composite ? returned : RawValue())) return false;
  api::Value unheld;
  if (engine_.from_raw(returned, result_, result, holder ? *holder : unheld, error_)) return true;
  error_.message = "the result of `" + name_ + "`: " + error_.message;
  return false;
}

std::shared_ptr<FunctionState> make_function(EngineState& engine, std::string name, std::span<const Kind> parameters,
                                             Kind result, Dispatch dispatch, Error& error) {
  if (parameters.size() > most_arguments) {
    error = engine_error("a function handle takes at most " + std::to_string(most_arguments) + " arguments");
    return nullptr;
  }
  auto made = std::make_shared<SlopeFunction>(engine, std::move(name), parameters, result, dispatch);
  Entry entry(engine);
  if (!made->find()) {
    error = made->take_error();
    return nullptr;
  }
  return made;
}

}  // namespace slope::api::detail
