// What builders of rules (build_rrule, build_frule) made, by the types of the call.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "lang/derive/compiler.hpp"

namespace slope::derive {

struct GoneCode;

class BuiltRules {
 public:
  BuiltRules(Compiler& compiler, Runtime& runtime) : compiler_(compiler), runtime_(runtime) {}
  // The builder runs once for each type of call, and again when a definition ended its code: its own, or that of
  // something it calls. What is made with the rule ends with that code too, by what is added to `edges`. False: the
  // builder raised.
  bool find(Context& ctx, const DataType* call_types, bool forward, Value& rule, std::vector<Edge>& edges);
  void trace(Tracer& tracer) const;
  void forget(const GoneCode& gone);

 private:
  struct BuiltRule {
    Value rule;
    const CodeInstance* code = nullptr;  // of the builder, as it ran
    World world = 0;                     // in which it ran; it holds there alone when the builder has no typed code
  };
  Compiler& compiler_;
  Runtime& runtime_;
  using Key = std::pair<const DataType*, bool>;  // types of the call; of forward mode
  std::map<Key, BuiltRule> built_;
  std::vector<Key> in_inference_;  // whose builders are inferred now
};

}  // namespace slope::derive
