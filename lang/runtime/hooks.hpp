// What the runtime has done by rooms that it cannot see. Each room adds its own (`add_hooks`), and the engine connects
// them once, before anything runs. Functions that return bool: false, an error is raised in ctx.
#pragma once

#include <functional>
#include <string>

#include "lang/runtime/method.hpp"
#include "lang/runtime/reached.hpp"

namespace slope {

struct Context;
class Tracer;

// A definition that is made when its name is first asked for; the numbers are those of who defines (lang/lower).
struct Postponed {
  std::uint32_t source = 0;
  std::uint32_t definition = 0;
};

struct RuntimeHooks {
  // lang/ir: runs one op on values; `op` is the ir::Op's number.
  bool (*execute_op)(Context&, unsigned op, const Value* operands, std::size_t count, std::uintptr_t aux,
                     Value& result) = nullptr;
  // lang/ir: reports the constants of a function to the collector.
  void (*trace_function)(const ir::Function&, Tracer&) = nullptr;
  // lang/lower: what is kept of the syntax of a method; null: of definitions that wait to be run.
  std::function<void(const Method*, Reached&)> reach_syntax;
  // lang/lower: lowers a method's body, on first use.
  std::function<bool(Context&, Method&)> lower_method;
  // lang/lower: defines a name of the library.
  std::function<bool(Context&, Postponed)> define_postponed;
  // lang/pipeline: runs the generator of a generated method for these argument types and lowers what it returns.
  std::function<bool(Context&, Specialization&, Source&)> generate_source;
  // lang/pipeline: parses, lowers and runs a text in a module, for `include` and `eval`.
  std::function<bool(Context&, Module*, FileId, Value&)> run_file;
  // The host: reads a source file for `include`; none: the file system. False: `text` says why not.
  std::function<bool(const std::string& path, std::string& text)> read_source;
};

}  // namespace slope
