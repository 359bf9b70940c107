// The code that is differentiated: typed, everything inlined but calls that have rules, at any depth.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lang/derive/compiler.hpp"
#include "lang/diff/diff.hpp"
#include "lang/diff/rules.hpp"
#include "lang/ir/ir.hpp"

namespace slope::derive {

struct GoneCode;

class PrimalCodes {
 public:
  explicit PrimalCodes(Derivatives& derivatives) : derivatives_(derivatives) {}

  // Null: its types cannot be inferred, or there is a refusal.
  const ir::Function* primal(Context& ctx, Specialization& target);
  // What is differentiated when the user asks for `target`: its code, or, when there is a rule for it, just the call of
  // it.
  const ir::Function* primal_or_rule(Context& ctx, Specialization& target);
  // The same as primal(), held by whoever asks.
  std::shared_ptr<const ir::Function> kept_primal(Context& ctx, Specialization& target);
  // Why there is none, where more than its types is known to be wrong.
  void take_refusal(const Specialization& target, diff::Refusal& refusal) const;
  // Adds what a derivative of this code rests on.
  void add_edges(const Specialization& target, std::vector<Edge>& edges) const;

  // Where no derivative is being made: code that was not asked for in a long time is let go, and made again when it is.
  void let_go_unused();
  void trace(Tracer& tracer) const;
  void forget(const GoneCode& gone);
  void reach(const Specialization& target, Reached& reached) const;
  void reach_refused(Reached& reached) const;

 private:
  // Calls of rules, and the methods that were found for them; sorted by the calls, without gaps: there are thousands of
  // functions with hundreds of these.
  struct NotedRules {
    using Rule = std::pair<const DataType*, const Method*>;
    std::vector<Rule> all;
    void add(const DataType* call, const Method* found);
    void add(const NotedRules& others);
  };
  struct PrimalCode {
    const CodeInstance* basis = nullptr;   // the ordinary code it stands beside: ends with it
    std::shared_ptr<ir::Function> code;    // null while being made
    std::vector<Edge> edges;               // derivatives that it calls
    NotedRules rules;                      // looked up for it and for what is inlined in it
    mutable World rules_hold_in = 0;       // the world in which they were compared last
    std::uint64_t asked_in = 0;            // as generation_
    std::optional<diff::Refusal> refusal;  // why there is none
  };
  using Codes = std::map<const Specialization*, PrimalCode>;

  const ir::Function* make_primal(Context& ctx, Specialization& target);
  bool usable(Context& ctx, const PrimalCode& primal, const CodeInstance* basis) const;
  opt::OptOptions inlining(Context& ctx, const Specialization& target, PrimalCode& noted);
  bool inline_caught_call(Context& ctx, const Specialization& target, ir::Function& code,
                          const opt::OptOptions& options, PrimalCode& noted);
  std::shared_ptr<ir::Function> rule_call(const CodeInstance& basis, Specialization& target, Specialization& called);
  // The rules that may apply to a call of these types: looked up, and noted.
  diff::RuleKind rule_of(Context& ctx, const DataType* call_types, PrimalCode& noting);
  bool has_forward_rule(Context& ctx, const DataType* call_types, PrimalCode& noting);
  void note(Context& ctx, const std::vector<Edge>& asked, PrimalCode& noting);
  // A pass runs functions that have rules (overlay.cpp).
  Specialization* under_pass(Context& ctx, Specialization& target, PrimalCode& noting, std::string& why);
  bool use_rules_under_pass(Context& ctx, ir::Function& function, PrimalCode& noting);

  Derivatives& derivatives_;
  Codes primals_;
  Codes rule_calls_;
  std::uint64_t generation_ = 1;                // they begin where code is let go
  std::size_t made_bytes_ = 0;                  // in this one
  std::vector<const Specialization*> in_work_;  // whose code is being made, outermost first
};

}  // namespace slope::derive
