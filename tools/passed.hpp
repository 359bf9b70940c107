// Functions of a program that it passes to the library, as in `map(x -> x.size, boxes)`: which of them the library
// calls, with which types. Found by inference of the library's code, some calls deep.
#pragma once

#include <functional>
#include <vector>

#include "embed/engine_state.hpp"
#include "lang/ir/ir.hpp"

namespace slope::api::tools {

class PassedFunctions {
 public:
  explicit PassedFunctions(detail::EngineState& engine) : engine_(engine) {}
  // What the call of the library reaches of the program's methods. Empty for calls without such an argument, and for
  // those that were asked about before.
  std::vector<Specialization*> reached_by(Specialization& callee);

 private:
  bool is_passed_in(const Type* type, int depth) const;
  void walk(Specialization& callee, int depth, std::vector<Specialization*>& reached);
  detail::EngineState& engine_;
  std::vector<const Specialization*> seen_;
};

}  // namespace slope::api::tools
