// Puts an engine together, in this order: the runtime; the operations and natives that Slope code calls by name; the
// interpreter; the pipeline, which loads the code generator when something is hot; the standard library.
//
// Debug switches (environment variables):
//   SLOPE_DUMP=ir,typed,grad,llvm   print these stages of what is compiled (lang/support/dump.hpp)
//   SLOPE_VERIFY=1                  check the IR after every pass, and LLVM's
//   SLOPE_CHECK_RULES=1             check what derivative rules return, as --check-rules does
//   SLOPE_GC_STRESS=1               collect at every allocation
//   SLOPE_SHOW_CODE=gdb,perf        show machine code to debuggers or perf, as Options::debuggers and Options::perf do
//   SLOPE_STDLIB_DIR=folder         load the standard library's text from there instead of from the binary
#include "embed/engine_state.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "embed/functions/slope_function.hpp"
#include "embed/watch/line_watch.hpp"
#include "embed/watch/profiler.hpp"
#include "lang/explain/natives.hpp"
#include "lang/ir/execute/execute.hpp"
#include "lang/ir/ir.hpp"
#include "lang/lower/lower.hpp"
#include "lang/runtime/coroutines.hpp"
#include "lang/support/diagnostic.hpp"
#include "lang/support/thread_stack.hpp"
#include "lang/support/tuning.hpp"
#include "stdlib/load_order.hpp"
#include "stdlib/native/natives.hpp"
#include "stdlib/text.hpp"

namespace slope::api::detail {

namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value && std::strcmp(value, "0") != 0;
}

std::string without_last_newlines(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

struct Library {
  std::vector<Pipeline::LibraryFile> files;
  std::deque<std::string> texts;  // of files that are not in the binary
  std::string_view index;         // of the files in the binary
};

Library all_texts() {
  Library library;
  const char* folder = std::getenv("SLOPE_STDLIB_DIR");
  if (!folder || !*folder) {
    for (const stdlib::TextFile& file : stdlib::texts())
      library.files.push_back({std::string(file.name()), file.text(), file.image()});
    library.index = stdlib::index();
    return library;
  }
  namespace fs = std::filesystem;
  std::error_code failed;
  for (auto at = fs::recursive_directory_iterator(folder, failed); !failed && at != fs::recursive_directory_iterator();
       at.increment(failed)) {
    if (at->path().extension() != ".slope") continue;
    std::ifstream in(at->path(), std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    library.texts.push_back(text.str());
    library.files.push_back({fs::relative(at->path(), folder).generic_string(), library.texts.back(), {}});
  }
  std::sort(library.files.begin(), library.files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return library;
}

void put_in_load_order(std::vector<Pipeline::LibraryFile>& files) {
  auto find = [&](std::string_view name) {
    return std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.name == name; });
  };
  auto base = find("base.slope");
  if (base == files.end()) return;
  std::vector<Pipeline::LibraryFile> ordered;
  for (std::string_view name : stdlib::load_order(base->text))
    if (auto file = find(name); file != files.end()) {
      ordered.push_back({"Base/" + file->name, file->text, file->image});
      file->is_loaded = false;  // taken
    }
  // The others are parts of modules, which include them.
  for (const Pipeline::LibraryFile& file : files)
    if (file.is_loaded && file.name != "base.slope")
      ordered.push_back({"Base/" + file.name, file.text, file.image, false});
  files = std::move(ordered);
}

}  // namespace

Error engine_error(std::string message, ErrorKind kind) {
  Error error;
  error.kind = kind;
  error.message = std::move(message);
  error.summary = error.message.substr(0, error.message.find('\n'));
  return error;
}

EngineState::EngineState(Options given)
    : ctx(runtime.context),
      types(runtime.types.builtin()),
      float_vector(runtime.types.array_of(types.float64, 1)),
      options(std::move(given)) {
  for (std::size_t n = 1; n < float_arrays.size(); ++n)
    float_arrays[n] = runtime.types.array_of(types.float64, static_cast<unsigned>(n));
  runtime.engine = this;
  handles = std::make_shared<HandleTable>(*this);
  handles->add(RawValue());  // slot 0: see host_exception
  set_up_output();
  set_up_hooks();
  ir::define_op_builtins(runtime);
  lower::define_lowering_natives(runtime);
  stdlib::define_natives(runtime);
  define_engine_natives(*this);
  define_tool_natives(*this);
  define_type_natives(*this);

  interpreter = interpreter::make_interpreter(runtime);
  runtime.interpreter = interpreter.get();
  pipeline = std::make_unique<Pipeline>(runtime, [this]() -> CodeGenerator* {
#if SLOPE_JIT
    CodegenHost wanted;
    wanted.trusts_inbounds = options.trusts_inbounds;
    wanted.cache = options.cache;
    wanted.times = times.get();
    wanted.compile_threads = options.compile_threads;
    generator = load_code_generator(runtime, SLOPE_CODEGEN_PATH, SLOPE_CODEGEN_INSTALL_PATH, wanted, no_generator);
#else
    no_generator = "this build has no code generator\n";
    if (options.tier != Tier::compile) return nullptr;  // as it was built
#endif
    if (!generator && !std::exchange(told_no_generator_, true))
      runtime.sink.err("warning: everything is interpreted, for there is no machine code:\n" + no_generator);
    return generator.get();
  });
  if (is_set("SLOPE_TIMES")) times = std::make_unique<StageTimes>();
  pipeline->times = times.get();
  explain::define_natives(runtime);

  connect_hooks();

  // The library's own top-level statements run once: nothing there is worth compiling.
  pipeline->mode = TierMode::interpret;
  const std::size_t before = enter();
  load_library();
  leave(before);
  pipeline->mode = static_cast<TierMode>(options.tier);
  runtime.check_generators = options.check_generators;
  if (options.trusts_inbounds) lower::trust_inbounds(runtime);
  pipeline->check_rules = options.check_rules || is_set("SLOPE_CHECK_RULES");
  set_limits();
  grant();
  runtime.observer = line_watch.get();  // the library's own loading is nobody's concern
  is_told_allocations_ = true;
  if (is_set("SLOPE_GC_STRESS")) runtime.heap.set_stress(true);
}

void EngineState::connect_hooks() {
  RuntimeHooks hooks;
  ir::add_hooks(hooks);
  lower::add_hooks(runtime, hooks);
  pipeline->add_hooks(hooks);
  if (options.load_source)
    hooks.read_source = [this](const std::string& path, std::string& text) {
      try {
        Result<std::string> loaded = options.load_source(path);
        text = loaded.ok() ? loaded.value() : loaded.error().message;
        return loaded.ok();
      } catch (const std::exception& e) {
        text = e.what();
      } catch (...) {
        text = "a C++ exception";
      }
      return false;
    };
  runtime.connect(std::move(hooks));
}

EngineState::~EngineState() {
  runtime.coroutines->close();
  profiler.reset();
  adopted.close();
  host_types.close();
  gate.let_go();
  for (SlopeFunction* function : functions) function->let_go();
  handles->close();
}

void EngineState::keep_if_used(std::unique_ptr<EngineState>& state) noexcept {
  if (!state || state->uses_ == 0) return;
  state->ends_after_use_ = true;
  state->ctx.interrupt.store(interrupt_final, std::memory_order_relaxed);
  state.release();
}

void EngineState::set_limits() {
  runtime.heap.set_pause_target(
      std::chrono::nanoseconds(static_cast<std::int64_t>(std::clamp(options.pause_target, 0.0, 1e6) * 1e9)));
  ctx.heap_is_limited = options.heap_limit != 0;
  if (ctx.heap_is_limited) {
    ctx.tapes->set_heap_limit(options.heap_limit);
    runtime.outside_heap.set_limit(options.heap_limit, tuning::library_reserve, ctx.interrupt, interrupt_memory);
  }
  if (tape_limit() != 0) ctx.tapes->set_limit(tape_limit());
  runtime.code_effort = static_cast<CodeEffort>(options.optimisation);
  runtime.counts_fuel = options.fuel != 0;
  if (runtime.counts_fuel) set_fuel(options.fuel);
  if (options.time_limit > 0) watchdog_ = std::make_unique<Watchdog>(ctx, options.time_limit);
  ctx.depth_is_limited = options.stack_limit != 0;
  runtime.coroutines->set_depth(options.stack_limit);
  runtime.coroutines->set_uses(&uses_);
  limits_each_use_ = watchdog_ || ctx.depth_is_limited;
  is_unlimited_ = !limits_each_use_ && !runtime.counts_fuel;
  find_at_once();
}

// Workspaces on other threads end that for good: what they read is not written again.
void EngineState::find_at_once() {
  if (!is_unlimited_ || limits_each_use_) {
    if (at_once_size_ != 0) at_once_size_ = 0;
    return;
  }
  at_once_from_ = reinterpret_cast<std::uintptr_t>(stack_low_);
  at_once_size_ = reinterpret_cast<std::uintptr_t>(stack_high_) - at_once_from_;
}

void EngineState::set_fuel(std::uint64_t fuel) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  fuel_ = fuel > static_cast<std::uint64_t>(most) ? most : static_cast<std::int64_t>(fuel);
  ctx.fuel = fuel_;
}

void EngineState::begin_use(const void* here) {
  if (workspaces_) idle_pause_.reset();
  if (ctx.depth_is_limited) {
    const std::size_t left = static_cast<std::size_t>(static_cast<const char*>(here) - thread_limit_);
    ctx.stack_limit = options.stack_limit < left ? static_cast<const char*>(here) - options.stack_limit : thread_limit_;
  }
  if (watchdog_) watchdog_->start();
}

void EngineState::end_use() {
  if (ctx.stopped != Stop::none) ctx.go_on();
  if (watchdog_) watchdog_->finish();
  if (workspaces_) {
    if (!gate.empty()) idle_pause_.emplace(runtime.heap);
    gate.end_use();
  }
}

void EngineState::grant() {
  const api::Capabilities& given = options.capabilities;
  slope::Capabilities& granted = runtime.capabilities;
  granted.read = granted.include = given.read;
  granted.write = given.write;
  granted.environment = given.environment;
  granted.time = given.time;
  granted.random = given.random;
  granted.input = given.input;
}

void EngineState::set_up_output() {
  auto to_stream = [](std::FILE* stream) {
    return [stream](std::string_view text) {
      if (text.empty()) std::fflush(stream);
      std::fwrite(text.data(), 1, text.size(), stream);
    };
  };
  runtime.sink.out = to_stream(stdout);
  runtime.sink.err = to_stream(stderr);
  if (options.output)
    runtime.sink.out = [this](std::string_view text) {
      try {
        options.output(text);
      } catch (const std::exception& e) {
        raise_host_exception(ctx, e.what(), std::current_exception());
      } catch (...) {
        raise_host_exception(ctx, "", std::current_exception());
      }
    };
  if (options.error_output)  // warnings go there too, where nothing can be raised
    runtime.sink.err = [this](std::string_view text) {
      try {
        options.error_output(text);
      } catch (...) {
      }
    };
}

// What others see of running and compiled functions. Before anything runs.
void EngineState::set_up_hooks() {
  const char* shown = std::getenv("SLOPE_SHOW_CODE");
  const std::string_view show = shown ? shown : "";
  const bool watches_lines = options.coverage || options.on_line;
  runtime.records_frames = options.profile || watches_lines;
  if (watches_lines) {
    line_watch = std::make_unique<LineWatch>(*this);
    options.tier = Tier::interpret;
  }
  if (options.on_allocation)
    runtime.heap.set_allocation_hook([this](const DataType* type, std::size_t bytes) {
      if (!is_told_allocations_) return;
      Allocation allocation;
      allocation.engine_ = this;
      allocation.type_ = type;
      allocation.bytes_ = bytes;
      options.on_allocation(allocation);
    });
  runtime.shows_code_to_debuggers = options.debuggers || show.find("gdb") != std::string_view::npos;
  runtime.shows_code_to_perf = options.perf || show.find("perf") != std::string_view::npos;
  runtime.describes_code = runtime.records_frames || runtime.shows_code_to_debuggers || runtime.shows_code_to_perf;
}

void EngineState::load_library() {
  std::vector<Diagnostic> diagnostics;
  Library library = all_texts();
  put_in_load_order(library.files);
  ctx.world = runtime.world();
  if (!pipeline->load_standard_library(ctx, library.files, library.index, diagnostics)) {
    Error why = ctx.failed() ? failure() : syntax_error(diagnostics);
    broken = std::make_unique<Error>(engine_error("the standard library does not load:\n" + why.message));
  }
  ctx.world = runtime.world();
  set_arguments();
}

// ARGS and the host's part of LOAD_PATH.
void EngineState::set_arguments() {
  set_texts("ARGS", options.arguments);
  runtime.base->exported_names.insert(runtime.symbol("ARGS"));
  set_texts("HOST_LOAD_PATH", options.load_path);
}

// A constant of Base: a Vector{String}.
void EngineState::set_texts(const char* name, const std::vector<std::string>& values) {
  const DataType* strings = runtime.types.array_of(types.string, 1);
  const std::int64_t dims[] = {static_cast<std::int64_t>(values.size())};
  ArrayObject* array = runtime.heap.allocate_array(strings, dims);
  if (!array) return;
  RawValue made(strings, static_cast<const void*>(array));
  runtime.set_constant(runtime.base, name, made);
  for (std::size_t i = 0; i < values.size(); ++i) {
    RawValue text = runtime.from_string(values[i]);
    if (text.defined()) store_value(runtime.heap, array->data + i * array->element_size, types.string, text);
  }
}

void EngineState::enter_stack() {
  if (!runtime.coroutines->on_root()) return;  // a task calls the host: the runtime knows its stack
  runtime.enter_thread(ctx);
  thread_limit_ = ctx.stack_limit;
  stack_low_ = thread_stack().low;
  stack_high_ = thread_stack().high;
  find_at_once();
}

double* EngineState::dead(std::size_t length) {
  if (length > dead_length) {
    dead_length = std::max<std::size_t>(2 * length, 64);
    dead_memory.push_back(std::make_unique<double[]>(dead_length));
    std::fill_n(dead_memory.back().get(), dead_length, std::numeric_limits<double>::quiet_NaN());
  }
  return dead_memory.empty() ? nullptr : dead_memory.back().get();
}

bool Loan::lend(const Datum& array, RawValue& v) {
  if (!is_memory(array.data, array.size))
    return engine_.ctx.argument_error("an array at no address, or of more elements than memory can hold");
  const std::size_t n = dimensions_of(array.kind);
  std::array<std::int64_t, 7> dims;
  for (std::size_t k = 0; k < n; ++k)
    dims[k] = static_cast<std::int64_t>(array.extents ? array.extents[k] : array.size);
  array_ = engine_.runtime.heap.borrow_array(engine_.float_arrays[n], const_cast<void*>(array.data), {dims.data(), n});
  if (!array_) return engine_.ctx.out_of_memory();
  v = RawValue(engine_.float_arrays[n], static_cast<const void*>(array_));
  return true;
}

bool is_host_text(const SourceMap& sources, Span span) {
  if (span.file == 0) return false;
  const std::string& name = sources.file(span.file).name();
  return !name.starts_with("Base/") && name != "<host function>";
}

Position EngineState::position_of(Span span) const {
  if (span.file == 0) return {};
  const SourceFile& file = runtime.sources.file(span.file);
  const LineColumn at = file.line_column(span.begin);
  return {file.name(), at.line, at.column};
}

Error EngineState::syntax_error(const std::vector<Diagnostic>& diagnostics) {
  Error error = engine_error(without_last_newlines(render(diagnostics, runtime.sources)), ErrorKind::syntax);
  if (!diagnostics.empty()) error.position = position_of(diagnostics[0].span);
  return error;
}

namespace {

std::string number_text(double x) {
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + sizeof digits, x).ptr);
}

}  // namespace

// Of kind `limit` with a summary when one was reached.
Error EngineState::limit_error(const Context& of) const {
  std::string text;
  switch (of.stopped) {
    case Stop::fuel:
      text = "out of fuel: more than " + std::to_string(fuel_) + " calls and turns of loops";
      break;
    case Stop::time:
      text = "out of time: more than " + number_text(options.time_limit) + " seconds";
      break;
    case Stop::depth:
      text = "recursion is too deep: more than " + std::to_string(options.stack_limit) + " bytes of stack";
      break;
    case Stop::heap:
      text = "out of memory: more than " + std::to_string(options.heap_limit) + " bytes of heap";
      break;
    case Stop::tape:
      text = "out of memory: more than " + std::to_string(tape_limit()) + " bytes of tape for a gradient";
      break;
    default:
      return {};
  }
  return engine_error(std::move(text), ErrorKind::limit);
}

// A host function without a rule is refused at its native, `Core.host_3`, in a text that no one has seen.
void EngineState::name_host_function(std::string& message) const {
  constexpr std::string_view builtin = "the builtin `host_", watched = "the rrule for seen_by_host",
                             call = "Core.host_";
  const bool sees_object = message.find(watched) != std::string::npos;  // Base.seen_by_host, in the call of one
  const std::size_t from = message.find(sees_object ? watched : builtin);
  if (from == std::string::npos) return;
  const std::size_t at = sees_object ? message.find(call, from) : from;
  if (at == std::string::npos) return;
  const char *digits = message.data() + at + (sees_object ? call : builtin).size(),
             *end = message.data() + message.size();
  std::size_t number = 0;
  if (std::from_chars(digits, end, number).ec != std::errc() || number >= host_functions.size()) return;
  const std::size_t trace = message.find("\nStacktrace:", at);
  const std::string rest = trace == std::string::npos ? std::string() : message.substr(trace);
  message.resize(from);
  const std::string& title = host_functions[number]->title;
  message += title;
  message += sees_object ? " looks at an object that carries derivatives, and has no derivative rule"
                         : " has no derivative rule";
  message +=
      title.starts_with(rule_of)
          ? "\n  = help: for second derivatives let the script tell the rule instead (`@scalar_rule f(x) df(x)`, or an "
            "`rrule`), with a `df` that is defined with a derivative of its own"
          : "\n  = help: tell it where the function is defined: `.derivative(…)`, `.jvp(…)`, "
            "`.vjp(…)` or `.non_differentiable()` after `define`";
  if (sees_object) message += "; or let the script read the object's fields";
  message += rest;
}

Error EngineState::ended() {
  return engine_error("the engine was destroyed by a function that it was calling", ErrorKind::interrupted);
}

Error EngineState::failure(Context& of) {
  RawValue exception = of.take_error();
  const KeptMethods::Pause pause(runtime.kept_methods);
  std::vector<TraceEntry> trace = std::move(of.last_trace);
  of.last_trace.clear();
  Rooted kept(*of.heap);
  kept.values.push_back(exception);
  if (of.stopped == Stop::exit) {  // of all uses that are inside one another
    Error error = engine_error("exit(" + std::to_string(exit_code) + ")", ErrorKind::exit);
    error.exit_code = exit_code;
    return error;
  }
  if (ends_after_use_ && of.stopped == Stop::interrupt) return ended();
  Error error = limit_error(of);
  if (error.kind != ErrorKind::limit)
    error.kind = exception.type == types.interrupt_exception     ? ErrorKind::interrupted
                 : exception.type == types.differentiation_error ? ErrorKind::not_differentiable
                                                                 : ErrorKind::runtime;
  if (error.kind == ErrorKind::not_differentiable) {
    const Span refused = pipeline->derivatives().take_refused();
    if (is_host_text(runtime.sources, refused)) error.position = position_of(refused);
  }
  try {
    for (const TraceEntry& entry : trace) {
      if (error.position.line != 0) break;
      if (is_host_text(runtime.sources, entry.span)) error.position = position_of(entry.span);
    }
    error.message = without_last_newlines(runtime.describe_error(of, exception, trace));
  } catch (const std::bad_alloc&) {  // the process has no memory left for lines and frames
    error.message = "ERROR: " + (exception.defined() ? to_string(exception.type) : std::string("OutOfMemoryError")) +
                    ": no memory is left to say more";
  }
  if (error.kind == ErrorKind::not_differentiable) name_host_function(error.message);
  constexpr std::string_view prefix = "ERROR: ";
  if (error.kind == ErrorKind::limit)
    error.message.replace(0, error.message.find('\n'), std::string(prefix) + error.summary);
  std::string_view text = error.message;
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  error.summary = text.substr(0, text.find('\n'));
  error.type = exception.defined() ? to_string(exception.type) : "";
  if (host_exception && handles->at(0).identical(exception)) error.cause = std::exchange(host_exception, nullptr);
  return error;
}

namespace {

// The text of one use. When it has defined nothing, made no closure and read no other text, no position in it is kept,
// and it goes with the use: a host may run texts for hours.
class PassingText {
 public:
  PassingText(Runtime& runtime, std::string name, std::string text)
      : bytes_(SourceFile::bytes(name, text)),
        file(runtime.sources.add(std::move(name), std::move(text))),
        runtime_(runtime),
        added_(runtime.sources.added()),
        world_(runtime.world()),
        names_(runtime.types.name_count()) {
    runtime.outside_heap.add(bytes_);
  }
  ~PassingText() {
    if (!ended_well || runtime_.world() != world_ || runtime_.types.name_count() != names_ ||
        runtime_.sources.added() != added_ || runtime_.observer || runtime_.records_frames || runtime_.describes_code ||
        is_in(runtime_.context.trace) || is_in(runtime_.context.last_trace))
      return;
    bool is_kept = false;
    runtime_.coroutines->each_state(
        [&](World, const std::vector<TraceEntry>& trace) { is_kept = is_kept || is_in(trace); });
    if (is_kept) return;
    runtime_.sources.remove(file);
    runtime_.outside_heap.remove(bytes_);
  }
  PassingText(const PassingText&) = delete;

 private:
  const std::size_t bytes_;

 public:
  const FileId file;
  bool ended_well = false;  // else somebody may show the line of the error

 private:
  bool is_in(const std::vector<TraceEntry>& trace) const {
    return std::any_of(trace.begin(), trace.end(), [&](const TraceEntry& entry) { return entry.span.file == file; });
  }

  Runtime& runtime_;
  std::size_t added_;  // texts, with this one
  World world_;
  std::size_t names_;
};

}  // namespace

Result<api::Value> EngineState::run(std::string name, std::string text) {
  if (broken) return *broken;
  Entry entry(*this);
  if (uses_ == 1) {
    runtime.free_unreachable_when_due();
    runtime.free_unused_texts_when_due();
  }
  PassingText passing(runtime, std::move(name), std::move(text));
  const FileId file = passing.file;
  RawValue result = runtime.nothing();
  std::vector<Diagnostic> diagnostics;
  if (!pipeline->run(ctx, runtime.main, file, result, diagnostics)) {
    // What stopped a macro, or a constant that is made while the text is lowered, was told as an error of the text.
    if (!ctx.failed() && ctx.stopped != Stop::none) ctx.stop();
    if (ctx.failed()) return failure();
    return syntax_error(diagnostics);
  }
  if (ends_after_use_) return ended();
  passing.ended_well = true;
  return Access::make(*this, result);
}

Result<api::Value> EngineState::call(RawValue callee, std::span<const Datum> arguments) {
  // kwcall(names, callee, arguments…), or without its first two
  Rooted raw(runtime.heap), pairs(runtime.heap);
  raw.values = {RawValue(), callee};
  for (const Datum& datum : arguments) {
    const auto* keyword = datum.kind == Kind::keyword ? static_cast<const Keyword*>(datum.data) : nullptr;
    RawValue v;
    if (!to_raw(keyword ? keyword->value : datum, v)) return failure();
    if (!keyword) {
      raw.values.push_back(v);
      continue;
    }
    RawValue parts[] = {runtime.from_symbol(runtime.symbol(keyword->name)), v};
    if (!call_library("Pair", parts, 2, v)) return failure();
    pairs.values.push_back(v);
  }
  RawValue result;
  if (pairs.values.empty()) {
    if (!runtime.call(ctx, callee, raw.values.data() + 2, raw.values.size() - 2, result)) return failure();
  } else {
    RawValue all;
    if (!call_library("tuple", pairs.values.data(), pairs.values.size(), all) ||
        !call_library("NamedTuple", &all, 1, raw.values[0]) ||
        !call_library("kwcall", raw.values.data(), raw.values.size(), result))
      return failure();
  }
  if (ends_after_use_) return ended();
  return Access::make(*this, result);
}

bool EngineState::call_library(const char* name, const RawValue* arguments, std::size_t count, RawValue& result) {
  RawValue found = library(name);
  return found.defined() && runtime.call(ctx, found, arguments, count, result);
}

RawValue EngineState::library(const char* name) {
  Binding* found = runtime.resolve(runtime.base, runtime.symbol(name));
  return found ? found->value : RawValue();
}

RawValue EngineState::global(std::string_view name) {
  Module* module = runtime.main;
  if (const Binding* whole = runtime.resolve(module, runtime.symbol(name))) return whole->value;
  for (std::size_t dot; (dot = name.find('.')) != std::string_view::npos; name.remove_prefix(dot + 1)) {
    const Binding* outer = runtime.resolve(module, runtime.symbol(name.substr(0, dot)));
    if (!outer || outer->value.type != types.module) return {};
    module = outer->value.module;
  }
  const Binding* found = runtime.resolve(module, runtime.symbol(name));
  return found ? found->value : RawValue();
}

}  // namespace slope::api::detail
