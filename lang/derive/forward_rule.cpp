// A rule of forward mode, `frule(tangents, f, args...)` or what build_frule made, as a forward derivative
// (lang/diff/forward/forward.hpp has its parameters): one call of the rule a direction.
#include <algorithm>
#include <span>
#include <utility>

#include "lang/derive/derivatives.hpp"
#include "lang/diff/rules.hpp"
#include "lang/diff/tangent.hpp"
#include "lang/diff/user_types.hpp"
#include "lang/ir/build.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::derive {

namespace {

class ForwardRule {
 public:
  ForwardRule(Derivatives& derivatives, Context& ctx, Specialization& target, const std::vector<char>& active)
      : derivatives_(derivatives),
        ctx_(ctx),
        runtime_(derivatives.runtime),
        tangents_(diff::tangent_types(runtime_)),
        builtin_(runtime_.types.builtin()),
        target_(target),
        active_(active) {}

  // False: there is no rule, or an error is raised.
  bool find(std::vector<Edge>& edges) {
    const Binding* frule = library_binding(runtime_, KnownName::frule);
    if (!frule || !frule->value.defined() || target_.method->is_vararg) return false;
    basis_ = derivatives_.compiler.typed_code(ctx_, target_);
    if (!basis_ || !basis_->typed) return false;
    types_ = parameter_types(*basis_->typed);
    for (std::size_t i = 0; i < types_.size(); ++i) given_.push_back(given_type(i));
    std::vector<const Type*> call{frule->value.type, runtime_.types.tuple(given_)};
    for (const Type* t : target_.types->params) call.push_back(t);
    const Method* written = diff::written_rule(runtime_, runtime_.types.tuple(call), 2, ctx_.world);
    // `frule(tangents, f, args…; names…)`: it says nothing of the keywords, which must not carry a derivative.
    if (!written && types_.size() > 2 && !active_[1]) {
      const Type* positional = runtime_.types.tuple(std::span(given_).subspan(2));
      const DataType* named = diff::keyword_rule_call(runtime_, KnownName::frule, target_.types, positional);
      written = diff::keyword_rule(runtime_, named, ctx_.world);
      has_keywords_ = written != nullptr;
    }
    const DataType* builder_types = diff::builder_call(runtime_, KnownName::build_frule, target_.types);
    const Method* builder = builder_types ? runtime_.lookup(builder_types, ctx_.world).method : nullptr;
    if (!written && !builder) return false;
    rule_.rule = frule->value;
    const Method* chosen = builder && (!written || builder->min_world > written->min_world) ? builder : written;
    of_program_ = !diff::is_of_library(runtime_, chosen);
    const bool is_built = builder && (!written || builder->min_world > written->min_world);
    if (is_built) has_keywords_ = false;
    if (is_built && !derivatives_.rules.find(ctx_, target_.types, true, rule_, edges)) return false;
    return tangents_.known(basis_->return_type);
  }

  std::unique_ptr<ir::Function> emit(std::size_t width) {
    auto made = std::make_unique<ir::Function>();
    made->method = target_.method;
    made->name = "tangent of " + std::string(target_.method->name->name);
    made->typed = true;
    made->span = target_.method->span;
    made->scopes.push_back({target_.method, ~0u, Span{}});
    ir::Builder b(*made);
    b.set_block(b.new_block());
    b.set_span(target_.method->span);
    b.add_parameter(0, builtin_.nothing);
    const ir::Operand rule = diff::built_rule_operand(runtime_, b, rule_, target_.types, true);
    std::vector<ir::Operand> operands{rule, ir::Operand()};
    for (const Type* t : types_) operands.push_back(b.add_parameter(0, t));
    const Type* result = basis_->return_type;
    std::vector<const Type*> outcome{result};
    std::vector<ir::Operand> all{ir::Operand()};
    const std::vector<std::vector<ir::Operand>> given = directions(b, width);
    if (nothing_moves()) {
      // A dynamic call of constants: rules expect a tangent.
      all[0] = b.emit(ir::Op::call, std::vector<ir::Operand>(operands.begin() + 2, operands.end()), nullptr);
      all[0] = asserted(b, all[0], result);
      for (std::size_t k = 0; k < width; ++k) {
        outcome.insert(outcome.end(), {tangents_.shadow(result), tangents_.cotangent(result)});
        all.push_back(zero_part(b, all[0], tangents_.has_shadow(result), "zero_shadow", tangents_.shadow(result)));
        all.push_back(
            zero_part(b, all[0], tangents_.has_cotangent(result), "zero_cotangent", tangents_.cotangent(result)));
      }
      made->return_type = runtime_.types.tuple(outcome);
      b.ret(b.emit(ir::Op::tuple, all, made->return_type));
      return made;
    }
    for (const std::vector<ir::Operand>& direction : given) {
      std::vector<ir::Operand> parts = direction;
      if (has_keywords_) parts.erase(parts.begin(), parts.begin() + 2);
      operands[1] = b.emit(ir::Op::tuple, parts, nullptr);
      std::vector<ir::Operand> passed = operands;
      if (has_keywords_)
        std::rotate(passed.begin(), passed.begin() + 2, passed.begin() + 4);  // kwcall, names, frule, …
      ir::Operand pair = b.emit(ir::Op::call, passed, nullptr);
      if (std::size_t k = static_cast<std::size_t>(&direction - given.data()); of_program_) {
        ir::Operand tangent = raw_part(b, pair, 2);
        bool any = diff::holds_complex(runtime_.types, result);
        for (std::size_t i = 0; i < types_.size(); ++i) any |= is_converted(i);
        if (any) pair = b.emit(ir::Op::tuple, {raw_part(b, pair, 1), from_complex(b, tangent, direction, k)}, nullptr);
      }
      if (!all[0].valid()) all[0] = part_of(b, pair, 1, result);  // the value is the first call's
      outcome.insert(outcome.end(), {tangents_.shadow(result), tangents_.cotangent(result)});
      add_tangent(b, pair, all);
    }
    made->return_type = runtime_.types.tuple(outcome);
    b.ret(b.emit(ir::Op::tuple, all, made->return_type));
    return made;
  }

 private:
  bool nothing_moves() {
    for (std::size_t i = 0; i < types_.size(); ++i)
      if (active_[i] && tangents_.differentiable(types_[i])) return false;
    return true;
  }
  ir::Operand zero_part(ir::Builder& b, ir::Operand value, bool wanted, const char* made_by, const Type* type) {
    if (!wanted) return b.constant(runtime_.nothing());
    ir::Operand part = b.emit(ir::Op::call, {b.constant(in_base(made_by)), value}, nullptr);
    if (type == tangents_.dynamic()) part = b.emit(ir::Op::call, {b.constant(in_base("boxed_tangent")), part}, nullptr);
    return asserted(b, part, type);
  }

  Value in_base(const char* name) { return runtime_.base->find(runtime_.symbol(name))->value; }
  bool holds_both(const Type* t) { return tangents_.has_shadow(t) && tangents_.has_cotangent(t); }

  // Rules see tangents as users do: of what holds numbers and memory, the two merged.
  const Type* given_type(std::size_t i) {
    const Type* type = types_[i];
    if (!active_[i]) return builtin_.nothing;
    if (!tangents_.has_shadow(type)) return tangents_.cotangent(type);
    if (!holds_both(type)) return tangents_.shadow(type);
    const Type* call[] = {in_base("merged_tangent").type, tangents_.shadow(type), tangents_.cotangent(type)};
    return infer::return_type(runtime_, ctx_, runtime_.types.tuple(call), ctx_.world,
                              derivatives_.compiler.infer_options(ctx_));
  }

  // The tangents of the arguments, by direction, as the rule gets them.
  std::vector<std::vector<ir::Operand>> directions(ir::Builder& b, std::size_t width) {
    std::vector<std::vector<ir::Operand>> directions(width, std::vector<ir::Operand>(types_.size()));
    auto numbers = directions;
    for (std::vector<ir::Operand>& parts : directions)
      for (std::size_t i = 0; i < types_.size(); ++i)
        if (active_[i] && tangents_.has_shadow(types_[i])) parts[i] = b.add_parameter(0, tangents_.shadow(types_[i]));
    for (std::vector<ir::Operand>& parts : numbers)
      for (std::size_t i = 0; i < types_.size(); ++i)
        if (active_[i] && tangents_.has_cotangent(types_[i]))
          parts[i] = b.add_parameter(0, tangents_.cotangent(types_[i]));
    for (std::size_t k = 0; k < width; ++k)
      for (std::size_t i = 0; i < types_.size(); ++i) {
        ir::Operand& part = directions[k][i];
        if (!numbers[k][i].valid()) continue;
        part = !part.valid()
                   ? numbers[k][i]
                   : b.emit(ir::Op::call, {b.constant(in_base("merged_tangent")), part, numbers[k][i]}, given_[i]);
      }
    const ir::Operand nothing = b.constant(runtime_.nothing());
    for (std::vector<ir::Operand>& parts : directions)
      for (ir::Operand& part : parts)
        if (!part.valid()) part = nothing;
    pairs_ = directions;
    for (std::vector<ir::Operand>& parts : directions)
      for (std::size_t i = 0; i < types_.size(); ++i)
        if (is_converted(i))
          parts[i] = b.emit(
              ir::Op::call,
              {b.constant(in_base("complex_tangent")), b.constant(runtime_.from_type(types_[i])), parts[i]}, nullptr);
    return directions;
  }

  // Rules of programs get and give complex numbers.
  bool is_converted(std::size_t i) {
    return of_program_ && active_[i] && diff::holds_complex(runtime_.types, types_[i]);
  }
  // What the rule wrote into the arrays that it was given, and what it returned, as the transform has it.
  ir::Operand from_complex(ir::Builder& b, ir::Operand tangent, const std::vector<ir::Operand>& given, std::size_t k) {
    std::vector<ir::Operand> call{b.constant(in_base("pair_tangent")), tangent};
    for (std::size_t i = 0; i < types_.size(); ++i)
      if (is_converted(i)) call.insert(call.end(), {given[i], pairs_[k][i]});
    return b.emit(ir::Op::call, call, nullptr);
  }

  ir::Operand asserted(ir::Builder& b, ir::Operand value, const Type* type) {
    return b.emit(ir::Op::type_assert, {value, b.constant(runtime_.from_type(type))}, type);
  }
  ir::Operand raw_part(ir::Builder& b, ir::Operand pair, std::int64_t i) {
    return b.emit(ir::Op::get_field, {pair, b.constant(runtime_.from_int(i))}, nullptr);
  }
  ir::Operand part_of(ir::Builder& b, ir::Operand pair, std::int64_t i, const Type* type) {
    ir::Operand part = raw_part(b, pair, i);
    if (type == tangents_.dynamic()) part = b.emit(ir::Op::call, {b.constant(in_base("boxed_tangent")), part}, nullptr);
    return asserted(b, part, type);
  }

  // The tangent that the rule returned, in its two parts.
  void add_tangent(ir::Builder& b, ir::Operand pair, std::vector<ir::Operand>& all) {
    const Type* result = basis_->return_type;
    const ir::Operand nothing = b.constant(runtime_.nothing());
    if (!holds_both(result) || result == builtin_.any || tangents_.is_dynamic(result)) {
      all.push_back(tangents_.has_shadow(result) ? part_of(b, pair, 2, tangents_.shadow(result)) : nothing);
      all.push_back(tangents_.has_cotangent(result) ? part_of(b, pair, 2, tangents_.cotangent(result)) : nothing);
      return;
    }
    const ir::Operand tangent = raw_part(b, pair, 2);  // merged: taken apart again
    ir::Operand memory = b.emit(ir::Op::call, {b.constant(in_base("zero_shadow")), all[0]}, nullptr);
    memory = asserted(b, memory, tangents_.shadow(result));
    const ir::Operand type = b.constant(runtime_.from_type(tangents_.cotangent(result)));
    const ir::Operand number =
        b.emit(ir::Op::call, {b.constant(in_base("accumulate_mixed!")), memory, tangent, type}, nullptr);
    all.push_back(memory);
    all.push_back(b.emit(ir::Op::type_assert, {number, type}, tangents_.cotangent(result)));
  }

  Derivatives& derivatives_;
  Context& ctx_;
  Runtime& runtime_;
  diff::TangentTypes& tangents_;
  const BuiltinTypes& builtin_;
  Specialization& target_;
  const std::vector<char>& active_;
  CodeInstance* basis_ = nullptr;
  diff::BuiltRule rule_;
  bool of_program_ = false;                      // the rule is not the library's
  std::vector<std::vector<ir::Operand>> pairs_;  // by direction: tangents as the transform has them
  bool has_keywords_ = false;                    // the call is `kwcall(names, f, args…)`, and so is the rule's
  std::vector<const Type*> types_;               // of the arguments
  std::vector<const Type*> given_;               // of their tangents, as the rule gets them
};

}  // namespace

std::unique_ptr<ir::Function> forward_rule_call(Derivatives& derivatives, Context& ctx, Specialization& target,
                                                const std::vector<char>& active, std::size_t width,
                                                std::vector<Edge>& edges) {
  ForwardRule rule(derivatives, ctx, target, active);
  return rule.find(edges) ? rule.emit(width) : nullptr;
}

}  // namespace slope::derive
