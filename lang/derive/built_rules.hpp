// What builders of rules (build_rrule, build_frule) made, by the types of the call.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "lang/derive/compiler.hpp"
#include "lang/diff/rules.hpp"
#include "lang/runtime/recorded_run.hpp"

namespace slope::derive {

struct GoneCode;

class BuiltRules {
 public:
  BuiltRules(Compiler& compiler, Runtime& runtime) : compiler_(compiler), runtime_(runtime) {}
  // The builder runs once for each type of call, and again when something changed that it looked up when it ran: a
  // function, its own or one that it called, or a variable. What is made with the rule ends then too, by what is added
  // to `edges`. False: the builder raised.
  bool find(Context& ctx, const DataType* call_types, bool forward, diff::BuiltRule& rule, std::vector<Edge>& edges);
  void trace(Tracer& tracer) const;
  void forget(const GoneCode& gone);

 private:
  struct BuiltRule {
    Value rule;
    Synthetic* holds = nullptr;  // whose code ends with what the builder looked up
    // As the builder read them. A statement that runs on in its own world sees assignments too.
    std::vector<std::pair<const Binding*, std::uint64_t>> versions;
  };
  static bool is_current(Context& ctx, const BuiltRule& built);
  std::vector<Edge> looked_up(Context& ctx, const RecordedRun& run);
  Synthetic& holds_as_long_as(Context& ctx, const DataType* call_types, const std::vector<Edge>& edges);

  Compiler& compiler_;
  Runtime& runtime_;
  using Key = std::pair<const DataType*, bool>;  // types of the call; of forward mode
  std::map<Key, BuiltRule> built_;
  std::vector<Key> in_inference_;                // whose builders are inferred now
  std::unordered_set<const Binding*> assigned_;  // by builders
};

}  // namespace slope::derive
