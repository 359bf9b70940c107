// Running text: parse, then lower and interpret one statement after the other, each in the newest world. The standard
// library is opened, not run: its definitions are lowered when they are first looked up.
#include "lang/ir/passes/passes.hpp"
#include "lang/lower/lower.hpp"
#include "lang/pipeline/pipeline.hpp"
#include "lang/runtime/call_native.hpp"
#include "lang/support/exception_safe.hpp"
#include "lang/syntax/image.hpp"
#include "lang/syntax/parse.hpp"

namespace slope {

bool Pipeline::run(Context& ctx, Module* module, FileId file, Value& result, std::vector<Diagnostic>& diagnostics) {
  const Restored world(ctx.world, ctx.world);
  return without_exceptions(ctx, "this text", [&] {
    syntax::ParseResult parsed =
        syntax::parse(runtime_.sources, file, {.interrupt = &ctx.interrupt, .memory = &runtime_.outside_heap});
    if (!parsed.ok()) {
      if (ctx.interrupt.load(std::memory_order_relaxed)) return ctx.stop();
      diagnostics = std::move(parsed.diagnostics);
      return false;
    }
    return run_parsed(ctx, module, lower::counted(runtime_, std::make_shared<syntax::Ast>(std::move(parsed.ast))),
                      result, diagnostics);
  });
}

bool Pipeline::run_parsed(Context& ctx, Module* module, std::shared_ptr<syntax::Ast> ast, Value& result,
                          std::vector<Diagnostic>& diagnostics) {
  result = runtime_.nothing();
  const Restored world(ctx.world, ctx.world);
  std::vector<syntax::NodeId> statements(ast->children(ast->root).begin(), ast->children(ast->root).end());
  bool ok = true;
  for (syntax::NodeId statement : statements) {
    // Between two uses is often enough but where everything is tried.
    if (runtime_.heap.is_stressed() && runtime_.interpreter->running().empty()) runtime_.free_unreachable_when_due();
    ctx.world = runtime_.world();
    std::unique_ptr<ir::Function> body = lower::lower_statement(runtime_, ctx, module, ast, statement, diagnostics);
    if (!body) {
      if (!ctx.failed() && ctx.interrupt.load(std::memory_order_relaxed)) ctx.stop();
      ok = !ctx.failed() && diagnostics.empty();
      if (ok) continue;
      break;
    }
    ctx.world = runtime_.world();
    ok = runtime_.interpreter->run_toplevel(ctx, *body, result);
    lower::statement_ended(runtime_, *body);
    if (!ok) break;
  }
  return ok;
}

bool Pipeline::incomplete(const SourceMap& sources, FileId file) { return syntax::parse(sources, file).incomplete; }

bool Pipeline::load_standard_library(Context& ctx, std::span<const LibraryFile> files, std::string_view index,
                                     std::vector<Diagnostic>& diagnostics) {
  std::vector<lower::LibraryPart> parts;
  for (const LibraryFile& library : files) {
    lower::LibraryPart part;
    part.image = library.image;
    part.is_loaded = library.is_loaded;
    std::string name(library.name);
    part.file = library.image.empty() ? runtime_.sources.add(std::move(name), std::string(library.text))
                                      : runtime_.sources.add_shared(std::move(name), library.text);
    if (!syntax::is_image(library.image)) {
      index = {};
      syntax::ParseResult parsed = syntax::parse(runtime_.sources, part.file);
      if (!parsed.ok()) {
        diagnostics = std::move(parsed.diagnostics);
        return false;
      }
      part.ast = std::make_shared<syntax::Ast>(std::move(parsed.ast));
    }
    parts.push_back(std::move(part));
  }
  return lower::open_library(runtime_, ctx, std::move(parts), index);
}

}  // namespace slope
