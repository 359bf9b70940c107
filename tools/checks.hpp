// What must fail in typed code: calls that no method accepts, fields that a type does not have, stores into immutable
// values, conditions that are no Bool, unknown keywords. For the language server, `@report` and `slope check`.
#pragma once

#include <optional>
#include <string>

#include "embed/engine_state.hpp"
#include "lang/ir/ir.hpp"

namespace slope::api::tools {

struct Fault {
  Span span;
  std::string code;  // "no-method", "no-field", …: what kind of fault it is
  std::string message;
};

class CallChecks {
 public:
  explicit CallChecks(detail::EngineState& engine) : engine_(engine) {}
  // The instruction belongs to code that inference made, not optimised.
  std::optional<Fault> check(const ir::Function& fn, const ir::Inst& inst);

 private:
  detail::EngineState& engine_;
};

}  // namespace slope::api::tools
