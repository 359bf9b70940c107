// What the sources of slope/tools.hpp share.
#pragma once

#include <set>

#include "embed/engine_state.hpp"
#include "slope/tools.hpp"

namespace slope::api::detail {

inline bool is_plain_name(const std::string& name) {
  return !name.empty() && name[0] != '#' && name.find("##") == std::string::npos;
}
// "f(x::Int64, y...)".
std::string method_signature(const Method& method);
std::vector<std::string> keywords_of(const Method& method);  // "name" each; of a rest "kw..."
// Those that a call of it may be given: of `f(x; kw...) = g(x; kw...)` those of g as well.
std::vector<std::string> accepted_keywords(EngineState& engine, RawValue callee);
// What `a.b.c` means in Main, without calling anything; undefined when nothing.
RawValue value_of_path(EngineState& engine, std::string_view path);
// The current documentation of a name, from its methods and from what was written before its definition.
std::string documentation_of(EngineState& engine, const Binding& binding);
std::string help_text(EngineState& engine, const std::string& name);  // empty: nothing is known
void define_front_end_natives(EngineState& engine);
void define_key_natives(EngineState& engine);
void define_picture_natives(EngineState& engine);
void define_report_natives(EngineState& engine);

}  // namespace slope::api::detail

namespace slope::api::tools {

// The text with blanks within its lines as `slope fmt` wants them; the same tree.
std::string spaced(std::string_view text);

}  // namespace slope::api::tools
