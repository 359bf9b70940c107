// `slope build`: runs the script, makes a Slope function for each C function that is wanted, has them compiled to an
// object, and writes it with its header and its file for CMake.
#include "slope/build.hpp"

#include <filesystem>
#include <iostream>

#include "codegen/ahead.hpp"
#include "lang/diff/memory.hpp"
#include "lang/support/diagnostic.hpp"
#include "tools/build/exports.hpp"
#include "tools/build/header.hpp"
#include "tools/replace_file.hpp"

namespace slope::api::tools {

using ahead::CFunction;
using ahead::Export;
using detail::Access;
using detail::EngineState;

namespace {

namespace fs = std::filesystem;

class Build {
 public:
  Build(Engine& engine, std::string script, const BuildOptions& options)
      : engine_(Access::state(engine)), script_(std::move(script)), options_(options) {}

  Result<BuildReport> run() {
    for (const std::string& text : options_.exports) {
      Export found;
      if (const std::string why = ahead::resolve(engine_, text, found); !why.empty()) {
        problem(why, found.position);
      } else {
        exports_.push_back(std::move(found));
      }
    }
    for (std::size_t i = 0; i < exports_.size(); ++i) {
      add(exports_[i], i + 1, ahead::value_function);
      // Of the others there is none.
      const bool is_number = exports_[i].result == engine_.types.float64;
      if (options_.gradient && is_number) add(exports_[i], i + 1, ahead::gradient_function);
      if (options_.jvp && (is_number || ahead::is_float_array(exports_[i].result, engine_.types)))
        add(exports_[i], i + 1, ahead::jvp_function);
      if (options_.hvp && is_number) add(exports_[i], i + 1, ahead::hvp_function);
    }
    if ((options_.gradient || options_.jvp || options_.hvp) && report_.problems.empty() &&
        functions_.size() == exports_.size())
      problem("no function that is exported returns a Float64: there is no derivative");
    if (!report_.problems.empty()) return std::move(report_);
    AheadObject object;
    if (std::optional<Error> error = compile(object)) return *error;
    if (!report_.problems.empty()) return std::move(report_);
    return write(object);
  }

 private:
  void problem(std::string message, Position position = {}, std::string excerpt = {}) {
    report_.problems.push_back({std::move(position), std::move(message), std::move(excerpt)});
  }

  using Make = std::string (*)(const Export& of, std::size_t number, CFunction& made);
  void add(const Export& of, std::size_t number, Make make) {
    CFunction made;
    if (const std::string why = make(of, number, made); !why.empty()) {
      problem(why, of.position);
      return;
    }
    functions_.push_back(std::move(made));
    of_.push_back(&of);
  }

  std::optional<Error> compile(AheadObject& object) {
    AheadRequest request;
    request.triple = options_.target;
    request.cpu = options_.cpu;
    for (CFunction& function : functions_) {
      // A name of the library's, so that no place in it is taken for one of the program.
      Result<api::Value> defined = engine_.run("Base/build.slope", function.text);
      if (!defined.ok()) return defined.error();
    }
    detail::Entry entry(engine_);
    const CollectionPause pause(engine_.runtime.heap);
    for (CFunction& function : functions_) {
      std::vector<const Type*> types{engine_.global(function.wrapper).type};
      for (const ahead::Datum& datum : function.arguments) types.push_back(datum.type);
      Specialization* target =
          engine_.runtime.lookup_specialization(engine_.runtime.types.tuple(types), engine_.ctx.world);
      CodeInstance* code = target ? engine_.pipeline->typed_code(engine_.ctx, *target) : nullptr;
      if (engine_.ctx.failed()) return engine_.failure();
      if (!code || !code->typed) {
        problem("the types in `" + function.symbol + "` cannot be inferred");
        return std::nullopt;
      }
      function.target = target;
      request.exports.push_back({code, function.symbol});
    }
    const BuildObject build = object_builder(engine_.pipeline->generator(), !options_.target.empty());
    if (!build)
      return detail::engine_error(options_.target.empty()
                                      ? "there is no code generator in this build of Slope"
                                      : "there is no code generator for other machines: libslope_codegen_cross.so");
    std::vector<AheadRefusal> refusals;
    std::string why;
    if (build(&engine_.runtime, &engine_.ctx, &request, &object, &refusals, &why)) {
      for (std::size_t i = 0; i < functions_.size(); ++i) narrow(i, object.written[i]);
      return std::nullopt;
    }
    if (engine_.ctx.failed()) engine_.ctx.take_error();
    if (refusals.empty()) return detail::engine_error(why);
    // One for each line, and those of no line where there is nothing else: what follows from the first says nothing new.
    bool any_placed = false;
    for (const AheadRefusal& refusal : refusals) any_placed = any_placed || refusal.span.file != 0;
    for (const AheadRefusal& refusal : refusals) {
      if (any_placed && refusal.span.file == 0) continue;
      const Position position = refusal.span.file ? engine_.position_of(refusal.span) : Position{};
      const std::string message = "cannot be built for a program without an engine: this " + refusal.what;
      bool known = false;
      for (const BuildProblem& other : report_.problems)
        known = known || (other.position.file == position.file && other.position.line == position.line);
      if (!known)
        problem(message, position, refusal.span.file ? render_place(refusal.span, engine_.runtime.sources) : "");
    }
    return std::nullopt;
  }

  // What machine code may write, as far as LLVM sees, is not written when the exported function does not store into it.
  void narrow(std::size_t number, std::vector<bool>& written) {
    const diff::MemorySummary memory = engine_.pipeline->memory(engine_.ctx).of(*of_[number]->target);
    std::size_t array = 0;
    for (std::size_t i = 0; i < functions_[number].arguments.size(); ++i) {
      const ahead::Datum& datum = functions_[number].arguments[i];
      if (!datum.is_array()) continue;
      const bool is_followed = datum.element == engine_.types.float64 || datum.element == engine_.types.float32;
      const bool is_direction = !datum.is_result && i >= of_[number]->arguments.size();
      const bool stores = ((memory.writes | memory.unknown) & diff::parameter_mask(i + 1)) != 0;
      if (!datum.is_result && is_followed && (is_direction || !stores)) written[array] = false;
      ++array;
    }
  }

  Result<BuildReport> write(const AheadObject& object) {
    fs::path base = options_.output.empty() ? fs::path(script_).replace_extension() : fs::path(options_.output);
    const std::string name = base.filename().string();
    std::vector<ahead::HeaderFunction> described;
    for (std::size_t i = 0; i < functions_.size(); ++i)
      described.push_back({&functions_[i], of_[i], object.written[i], object.takes_memory[i], object.tells_memory[i]});
    const auto beside = [&](const std::string& ending) { return base.parent_path() / (name + ending); };
    const std::pair<fs::path, std::string> files[] = {
        {beside(".o"), object.bytes},
        {beside(".h"),
         ahead::header_text(name, fs::path(script_).filename().string(), object.triple, described, engine_.types)},
        {beside("Config.cmake"), ahead::cmake_text(name, name + ".o", object.symbols)},
    };
    for (const auto& [path, text] : files) {
      if (std::string why = replace_file(path.string(), text); !why.empty())
        return detail::engine_error(std::move(why));
      report_.files.push_back(path.string());
    }
    return std::move(report_);
  }

  EngineState& engine_;
  std::string script_;
  const BuildOptions& options_;
  BuildReport report_;
  std::vector<Export> exports_;
  std::vector<CFunction> functions_;
  std::vector<const Export*> of_;  // by function
};

}  // namespace

Result<BuildReport> build(const std::string& script, const BuildOptions& options) {
  Options engine_options;
  engine_options.tier = Tier::interpret;
  engine_options.capabilities = Capabilities::all();
  engine_options.output = [](std::string_view text) { std::cout << text; };
  engine_options.error_output = [](std::string_view text) { std::cerr << text; };
  Engine engine(std::move(engine_options));
  Result<Value> ran = engine.run_file(script);
  if (!ran.ok()) return ran.error();
  return Build(engine, script, options).run();
}

}  // namespace slope::api::tools
