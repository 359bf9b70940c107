// Lines of the host's scripts as the interpreter reaches them: Options::on_line and Options::coverage.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "embed/engine_state.hpp"
#include "slope/hooks.hpp"

namespace slope::api::detail {

class LineWatch final : public LineObserver {
 public:
  explicit LineWatch(EngineState& engine) : engine_(engine) {}
  void at(Context& ctx, const ir::Function& function, std::uint32_t inst, std::uint64_t& last) override;
  std::vector<CoverageFile> coverage();

 private:
  std::uint32_t line_of(Span span);  // 0: not of the host
  void add_lines_of(const ir::Function& function, std::map<FileId, std::map<std::uint32_t, std::uint64_t>>& lines);
  void add_methods_of(Module& module, std::map<FileId, std::map<std::uint32_t, std::uint64_t>>& lines);

  EngineState& engine_;
  std::vector<signed char> is_host_;                         // by file; -1: not asked yet
  std::unordered_map<std::uint64_t, std::uint32_t> lines_;   // by file and byte
  std::unordered_map<std::uint64_t, std::uint64_t> counts_;  // by file and line
  std::vector<const Module*> seen_;
};

}  // namespace slope::api::detail
