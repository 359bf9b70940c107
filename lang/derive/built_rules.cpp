#include "lang/derive/built_rules.hpp"

#include <algorithm>

#include "lang/derive/derivatives.hpp"
#include "lang/diff/rules.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::derive {

bool BuiltRules::find(Context& ctx, const DataType* call_types, bool forward, Value& rule, std::vector<Edge>& edges) {
  const KnownName name = forward ? KnownName::build_frule : KnownName::build_rrule;
  Specialization* builder = runtime_.lookup_specialization(diff::builder_call(runtime_, name, call_types), ctx.world);
  const Key key{call_types, forward};
  const CodeInstance* code = nullptr;
  // A builder that needs a derivative for which it is called itself has no end: calling it reports that, too.
  if (builder && std::find(in_inference_.begin(), in_inference_.end(), key) == in_inference_.end()) {
    in_inference_.push_back(key);
    code = compiler_.typed_code(ctx, *builder);
    in_inference_.pop_back();
    if (ctx.failed()) ctx.take_error();  // it does not lower: calling it reports that
  }
  const auto known = built_.find(key);
  const bool holds = known != built_.end() && known->second.code == code && (code || known->second.world == ctx.world);
  if (holds) {
    rule = known->second.rule;
  } else {
    Value types = runtime_.from_type(call_types);
    if (!runtime_.call(ctx, library_value(runtime_, name), &types, 1, rule)) return false;
    built_[key] = {rule, code, ctx.world};
  }
  if (code) edges.push_back({Edge::Kind::callee, nullptr, nullptr, builder});
  return true;
}

void BuiltRules::trace(Tracer& tracer) const {
  for (const auto& [types, built] : built_) tracer.value(built.rule);
}

void BuiltRules::forget(const GoneCode& gone) {
  std::erase_if(built_, [&](const auto& entry) { return gone.codes.contains(entry.second.code); });
}

}  // namespace slope::derive
