#include "embed/watch/line_watch.hpp"

#include <algorithm>

#include "embed/functions/frame_entries.hpp"
#include "lang/runtime/call_text.hpp"

namespace slope::api::detail {

namespace {

std::uint64_t key_of(FileId file, std::uint32_t n) { return std::uint64_t{file} << 32 | n; }

}  // namespace

std::uint32_t LineWatch::line_of(Span span) {
  if (span.file == 0) return 0;
  if (is_host_.size() <= span.file) is_host_.resize(span.file + 1, -1);
  signed char& is_host = is_host_[span.file];
  if (is_host < 0) is_host = is_host_text(engine_.runtime.sources, span) ? 1 : 0;
  if (!is_host) return 0;
  auto [known, is_new] = lines_.try_emplace(key_of(span.file, span.begin), 0u);
  if (is_new) known->second = engine_.runtime.sources.line_of(span);
  return known->second;
}

void LineWatch::at(Context&, const ir::Function& function, std::uint32_t inst, std::uint64_t& last) {
  const ir::Inst& here = function.insts[inst];
  const std::uint32_t line = line_of(here.span);
  if (line == 0) return;
  const std::uint64_t key = key_of(here.span.file, line);
  if (key == last) return;
  last = key;
  if (engine_.options.coverage) ++counts_[key];
  if (!engine_.options.on_line) return;
  const Method* method = function.scopes.empty() || here.scope >= function.scopes.size()
                             ? function.method
                             : function.scopes[here.scope].method;
  const std::string name = frame_name(method);
  const LineStep step{name, engine_.runtime.sources.file(here.span.file).name(), line};
  engine_.options.on_line(step);
}

void LineWatch::add_lines_of(const ir::Function& function,
                             std::map<FileId, std::map<std::uint32_t, std::uint64_t>>& lines) {
  for (const ir::Block& block : function.blocks) {
    for (std::uint32_t i : block.insts)
      if (const std::uint32_t line = line_of(function.insts[i].span)) lines[function.insts[i].span.file][line];
    if (block.terminator == ~0u) continue;
    const Span span = function.insts[block.terminator].span;
    if (const std::uint32_t line = line_of(span)) lines[span.file][line];
  }
}

// Methods of the host's texts, of whatever function.
void LineWatch::add_methods_of(Module& module, std::map<FileId, std::map<std::uint32_t, std::uint64_t>>& lines) {
  if (std::ranges::find(seen_, &module) != seen_.end()) return;
  seen_.push_back(&module);
  std::vector<RawValue> values;
  for (const auto& [name, binding] : module.bindings)
    if (binding->value.defined()) values.push_back(binding->value);
  Context& ctx = engine_.ctx;
  for (RawValue v : values) {
    if (v.type == engine_.types.module) {
      add_methods_of(*v.module, lines);
      continue;
    }
    for (const Method* method : current_methods(engine_, v)) {
      if (method->native || method->generator || line_of(method->span) == 0) continue;
      const ir::Function* code = engine_.runtime.method_ir(ctx, const_cast<Method&>(*method));
      if (code) add_lines_of(*code, lines);
      if (ctx.failed()) ctx.take_error();  // a body with an error: calling it says so
    }
  }
}

std::vector<CoverageFile> LineWatch::coverage() {
  std::map<FileId, std::map<std::uint32_t, std::uint64_t>> lines;
  seen_.clear();
  add_methods_of(*engine_.runtime.main, lines);
  add_methods_of(*engine_.runtime.base, lines);
  for (const auto& [key, count] : counts_)
    lines[static_cast<FileId>(key >> 32)][static_cast<std::uint32_t>(key)] = count;
  std::vector<CoverageFile> files;
  for (const auto& [id, counted] : lines) {
    CoverageFile& file = files.emplace_back();
    file.file = engine_.runtime.sources.file(id).name();
    for (const auto& [line, count] : counted) file.lines.push_back({line, count});
  }
  return files;
}

}  // namespace slope::api::detail

namespace slope::api {

std::string Allocation::type() const { return to_string(static_cast<const DataType*>(type_)); }

Position Allocation::position() const {
  Span found;
  for (const FrameRecord* record = engine_->ctx.frames; record && found.file == 0; record = record->caller)
    detail::visit_entries(*record, [&](const Method*, Span span) {
      if (found.file == 0 && detail::is_host_text(engine_->runtime.sources, span)) found = span;
    });
  return found.file == 0 ? Position() : engine_->position_of(found);
}

Result<std::vector<CoverageFile>> coverage(Engine& engine) {
  if (const Error* why = detail::Access::unusable(engine)) return *why;
  detail::EngineState& state = detail::Access::state(engine);
  if (!state.options.coverage)
    return detail::engine_error("the engine does not count lines: make it with Options::coverage");
  detail::Entry entry(state);
  return state.line_watch->coverage();
}

}  // namespace slope::api
