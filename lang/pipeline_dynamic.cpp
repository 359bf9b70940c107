// Calls inside derivative code whose target is found when they run: Core.dynamic_forward and Core.dynamic_reverse
// (lang/diff/reverse_dynamic.cpp says where they come from).
//
//   dynamic_forward(callee, args::Tuple, shadows::Tuple, active::Int, where::String)
//     → Base.DynamicCall(value, shadow, record)
//   dynamic_reverse(record, cotangent::DynamicTangent) → a tuple, one cotangent an operand (callee first), or nothing
//
//   dynamic_tangent(callee, args, shadows, active, where, tangents::Tuple): forward mode; the record is the tangent
//
// `shadows` and the bits of `active` have the callee first. The record of a call is a tuple that begins with what kind
// of call it was.
#include "lang/diff/rules.hpp"
#include "lang/ir/execute.hpp"
#include "lang/pipeline_impl.hpp"

namespace slope {

namespace {

enum RecordKind : std::int64_t { kind_call, kind_get_field, kind_set_field, kind_tuple };

Value field_of(Runtime& runtime, Value object, std::size_t i) {
  return load_field(runtime.heap, object.object, as_data(object.type)->fields[i]);
}

class DynamicForward {
 public:
  DynamicForward(Context& ctx, const Value* args, const Value* tangents)
      : ctx_(ctx),
        runtime_(*ctx.runtime),
        tangents_(diff::tangent_types(runtime_)),
        pipeline_(*static_cast<Pipeline*>(runtime_.tiers)),
        roots_(runtime_.heap),
        asked_(static_cast<std::uint64_t>(args[3].bits)),
        where_(static_cast<const StringObject*>(args[4].object)->view()) {
    operands_.push_back(args[0]);
    take(args[1], operands_, false);
    take(args[2], shadows_, true);
    if (tangents) {
      forward_mode_ = true;
      take(*tangents, numbers_, true);
    }
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      active_.push_back((asked_ >> i & 1) && tangents_.differentiable(operands_[i].type));
      any_ |= active_.back();
    }
  }

  bool run(Value& result) {
    Value callee = operands_[0];
    const BuiltinTypes& builtin = runtime_.types.builtin();
    if (callee.type == builtin.builtin_function) {
      if (!any_) return plain(true, result);
      if (callee.bits & 1) {
        switch (static_cast<ir::Op>(callee.bits >> 1)) {
          case ir::Op::get_field:
            return get_field(result);
          case ir::Op::set_field:
            return set_field(result);
          case ir::Op::tuple:
            return tuple(result);
          case ir::Op::type_assert: {
            Value checked;
            if (!runtime_.execute_op(ctx_, static_cast<unsigned>(ir::Op::type_assert), operands_.data() + 1, 2, 0,
                                     checked))
              return false;
            return same(result);
          }
          default:
            if (ir::op_info(static_cast<ir::Op>(callee.bits >> 1)).derivative == ir::Derivative::none)
              return plain(true, result);
            break;
        }
      }
      return refuse(
          "a builtin function is called here on values that carry a derivative and whose types were not "
          "inferred",
          nullptr);
    }
    target_ = runtime_.dispatch(ctx_, callee, operands_.data() + 1, operands_.size() - 1);
    if (!target_) return false;
    if (!any_ || diff::find_rule(runtime_, target_->types, ctx_.world, nullptr) == diff::RuleKind::non_differentiable)
      return plain(may_return_old_memory(), result);
    return call(result);
  }

 private:
  // Elements of a tuple; taking one out may allocate, and so collect.
  void take(Value tuple, std::vector<Value>& to, bool boxed) {
    for (std::size_t i = 0; i < as_data(tuple.type)->fields.size(); ++i) {
      Value v = field_of(runtime_, tuple, i);
      roots_.values.push_back(v);
      to.push_back(boxed ? unboxed(v) : v);
      roots_.values.push_back(to.back());
    }
  }

  Value unboxed(Value tangent) {
    return tangent.type == tangents_.dynamic() ? field_of(runtime_, tangent, 0) : tangent;
  }

  bool refuse(const std::string& reason, const Method* method) {
    std::string name = method && method->name ? std::string(method->name->name) : std::string();
    return ctx_.raise_message(runtime_.types.builtin().differentiation_error,
                              "cannot differentiate" + (name.empty() ? "" : " the call of `" + name + "`") + ": " +
                                  reason + std::string(where_));
  }

  bool finish(Value value, Value shadow, Value record, Value& result) {
    if (forward_mode_) {
      if (record.type != tangents_.dynamic() && !runtime_.new_object(ctx_, tangents_.dynamic(), &record, 1, record))
        return false;
      roots_.values.push_back(record);
    }
    if (shadow.type != tangents_.dynamic() && !runtime_.new_object(ctx_, tangents_.dynamic(), &shadow, 1, shadow))
      return false;
    roots_.values.push_back(shadow);
    Value fields[3] = {value, shadow, record};
    const DataType* type = as_data(runtime_.base->find(runtime_.symbol("DynamicCall"))->value.as_type);
    return runtime_.new_object(ctx_, type, fields, 3, result);
  }

  bool record(std::initializer_list<Value> parts, Value& result) {
    if (!runtime_.new_tuple(ctx_, parts.begin(), parts.size(), result)) return false;
    roots_.values.push_back(result);
    return true;
  }

  // The result may share memory with what is constant here.
  bool may_return_old_memory() {
    diff::MemorySummary effects = pipeline_.memory(ctx_).of(*target_);
    if (effects.result & diff::global_memory) return true;
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if ((effects.result & diff::parameter_mask(i)) && tangents_.has_shadow(operands_[i].type)) return true;
    return false;
  }

  // Nothing that carries a derivative goes in, or it stops there.
  bool plain(bool constant, Value& result) {
    Value value;
    if (!runtime_.call(ctx_, operands_[0], operands_.data() + 1, operands_.size() - 1, value)) return false;
    roots_.values.push_back(value);
    diff::ShadowMaker maker(ctx_);
    Value shadow = runtime_.nothing();
    if (tangents_.has_shadow(value.type) && !maker.shadow(value, shadow)) return false;
    if (constant) maker.forbid_stores();
    return finish(value, shadow, runtime_.nothing(), result);
  }

  bool constant_shadow(Value v, Value& shadow) {
    diff::ShadowMaker maker(ctx_);
    if (!maker.shadow(v, shadow)) return false;
    maker.forbid_stores();
    roots_.values.push_back(shadow);
    return true;
  }

  // One shadow an argument of the method: a vararg is one tuple of them.
  bool shadow_of(std::size_t first, std::size_t count, bool is_rest, Value rest, Value& shadow) {
    if (!is_rest) {
      shadow = shadows_[first];
      return active_[first] || constant_shadow(operands_[first], shadow);
    }
    Rooted parts(runtime_.heap);
    const DataType* type = as_data(tangents_.shadow(rest.type));
    for (std::size_t i = first; i < first + count; ++i) {
      Value part = shadows_[i];
      if (!active_[i] && !constant_shadow(operands_[i], part)) return false;
      if (type->params[i - first] == tangents_.dynamic() && part.type != tangents_.dynamic() &&
          !runtime_.new_object(ctx_, tangents_.dynamic(), &part, 1, part))
        return false;
      parts.values.push_back(part);
    }
    if (!runtime_.new_tuple(ctx_, parts.values.data(), parts.values.size(), shadow)) return false;
    roots_.values.push_back(shadow);
    return true;
  }

  bool call(Value& result) {
    const Method& method = *target_->method;
    std::size_t fixed = method.is_vararg ? method.arg_count : operands_.size();
    std::vector<Value> arguments(operands_.begin(), operands_.begin() + static_cast<std::ptrdiff_t>(fixed));
    std::vector<char> active(active_.begin(), active_.begin() + static_cast<std::ptrdiff_t>(fixed));
    if (method.is_vararg) {
      Value rest;
      if (!runtime_.new_tuple(ctx_, operands_.data() + fixed, operands_.size() - fixed, rest)) return false;
      roots_.values.push_back(rest);
      arguments.push_back(rest);
      bool any = false;
      for (std::size_t i = fixed; i < operands_.size(); ++i) any |= active_[i] != 0;
      active.push_back(any);
    }
    if (forward_mode_) return tangent_call(arguments, active, fixed, result);
    const diff::Environment::Halves* found = pipeline_.halves(ctx_, *target_, active);
    if (!found) return false;
    diff::Environment::Halves halves = *found;
    pipeline_.pin(*halves.reverse);  // a record will hold it
    diff::MemorySummary effects = pipeline_.memory(ctx_).of(*target_);
    std::vector<Value> given = arguments;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!halves.active[i] || !tangents_.has_shadow(arguments[i].type)) continue;
      Value shadow;
      bool is_rest = method.is_vararg && i + 1 == arguments.size();
      if (!shadow_of(i, is_rest ? operands_.size() - fixed : 1, is_rest, arguments[i], shadow)) return false;
      if ((effects.writes & diff::parameter_mask(i)) && diff::has_forbidden_stores(runtime_, shadow))
        return refuse(
            "it may store a value that carries a derivative into memory that is a global's, or that two "
            "arguments share; pass it as an argument, or a copy of it",
            &method);
      given.push_back(shadow);
    }
    Value triple;
    if (!runtime_.call_specialized(ctx_, *halves.forward, halves.forward_callee, given.data(), given.size(), triple))
      return false;
    roots_.values.push_back(triple);
    const Type* seed = tangents_.cotangent(halves.result_type);
    Value kept;
    if (!record({runtime_.from_int(kind_call), field_of(runtime_, triple, 2),
                 runtime_.from_int(reinterpret_cast<std::intptr_t>(halves.reverse)), halves.reverse_callee,
                 runtime_.from_type(seed), runtime_.from_int(static_cast<std::int64_t>(method.is_vararg ? fixed : 0))},
                kept))
      return false;
    return finish(field_of(runtime_, triple, 0), field_of(runtime_, triple, 1), kept, result);
  }

  bool tangent_call(const std::vector<Value>& arguments, const std::vector<char>& active, std::size_t fixed,
                    Value& result) {
    const diff::Environment::Tangent* found = pipeline_.tangent(ctx_, *target_, active, 1);
    if (!found) return false;
    diff::Environment::Tangent code = *found;
    diff::MemorySummary effects = pipeline_.memory(ctx_).of(*target_);
    std::vector<Value> given = arguments;
    std::vector<Value> numbers;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!code.active[i]) continue;
      bool is_rest = target_->method->is_vararg && i + 1 == arguments.size();
      if (tangents_.has_shadow(arguments[i].type)) {
        Value shadow;
        if (!shadow_of(i, is_rest ? operands_.size() - fixed : 1, is_rest, arguments[i], shadow)) return false;
        if ((effects.writes & diff::parameter_mask(i)) && diff::has_forbidden_stores(runtime_, shadow))
          return refuse(
              "it may store a value that carries a derivative into memory that is a global's; pass it as an "
              "argument, or a copy of it",
              target_->method);
        given.push_back(shadow);
      }
      const Type* type = tangents_.cotangent(arguments[i].type);
      if (type == runtime_.nothing().type) continue;
      Value loose = runtime_.nothing();
      if (is_rest) {
        if (!runtime_.new_tuple(ctx_, numbers_.data() + fixed, numbers_.size() - fixed, loose)) return false;
        roots_.values.push_back(loose);
      } else if (active[i]) {
        loose = numbers_[i];
      }
      Value call[2] = {runtime_.from_type(type), loose};
      Value number;
      if (!runtime_.call(ctx_, runtime_.base->find(runtime_.symbol("as_cotangent"))->value, call, 2, number))
        return false;
      roots_.values.push_back(number);
      numbers.push_back(number);
    }
    given.insert(given.end(), numbers.begin(), numbers.end());
    Value triple;
    if (!runtime_.call_specialized(ctx_, *code.target, code.callee, given.data(), given.size(), triple)) return false;
    roots_.values.push_back(triple);
    return finish(field_of(runtime_, triple, 0), field_of(runtime_, triple, 1), field_of(runtime_, triple, 2), result);
  }

  bool same(Value& result) {  // the first argument, asserted to be of some type
    if (forward_mode_) return finish(operands_[1], shadows_[1], numbers_[1], result);
    Value kept;
    return record({runtime_.from_int(kind_tuple), runtime_.from_bool(true)}, kept) &&
           finish(operands_[1], shadows_[1], kept, result);
  }

  bool tuple(Value& result) {
    Value value;
    if (!runtime_.new_tuple(ctx_, operands_.data() + 1, operands_.size() - 1, value)) return false;
    roots_.values.push_back(value);
    Value shadow = runtime_.nothing();
    if (tangents_.has_shadow(value.type) && !shadow_of(1, operands_.size() - 1, true, value, shadow)) return false;
    Value kept;
    if (forward_mode_) {
      if (!runtime_.new_tuple(ctx_, numbers_.data() + 1, numbers_.size() - 1, kept)) return false;
      roots_.values.push_back(kept);
      return finish(value, shadow, kept, result);
    }
    return record({runtime_.from_int(kind_tuple), runtime_.from_bool(false)}, kept) &&
           finish(value, shadow, kept, result);
  }

  // The index of the field that a symbol or a number names; -1: there is none (an error is raised).
  std::int64_t field_index(Value object, Value name) {
    const DataType* d = as_data(object.type);
    std::int64_t index = name.type == runtime_.types.builtin().symbol ? d->field_index(name.symbol) : name.bits - 1;
    if (index >= 0 && index < static_cast<std::int64_t>(d->fields.size())) return index;
    Value ignored;
    if (runtime_.get_field(ctx_, object, name, ignored)) ctx_.argument_error("no such field");
    return -1;
  }

  // What the shadow of a mutable object holds for one field, in two parts.
  void parts_of(const Type* declared, Value stored, Value& shadow, Value& cotangent) {
    shadow = cotangent = runtime_.nothing();
    if (!tangents_.has_shadow(declared)) {
      cotangent = stored;
    } else if (!tangents_.has_cotangent(declared)) {
      shadow = unboxed(stored);
    } else {
      shadow = unboxed(field_of(runtime_, stored, 0));
      cotangent = field_of(runtime_, stored, 1);
    }
  }

  bool get_field(Value& result) {
    Value object = operands_[1];
    const DataType* d = as_data(object.type);
    std::int64_t index = field_index(object, operands_[2]);
    if (index < 0) return false;
    const Field& field = d->fields[static_cast<std::size_t>(index)];
    Value value;
    if (!runtime_.get_field(ctx_, object, runtime_.from_int(index + 1), value)) return false;
    roots_.values.push_back(value);
    Value shadow = runtime_.nothing();
    Value number = runtime_.nothing();
    if (forward_mode_ && active_[1] && numbers_[1].type != runtime_.nothing().type)
      number = unboxed(field_of(runtime_, numbers_[1], static_cast<std::size_t>(index)));
    if (active_[1] && as_data(shadows_[1].type)->fields.size() > static_cast<std::size_t>(index) &&
        shadows_[1].type != runtime_.nothing().type) {
      Value stored = field_of(runtime_, shadows_[1], static_cast<std::size_t>(index));
      Value cotangent;
      if (d->is_mutable)
        parts_of(field.type, stored, shadow, cotangent), number = unboxed(cotangent);
      else
        shadow = unboxed(stored);
    }
    if (forward_mode_) return finish(value, shadow, number, result);
    Value kept;
    return record({runtime_.from_int(kind_get_field), runtime_.from_int(index),
                   runtime_.from_int(static_cast<std::int64_t>(d->fields.size())), runtime_.from_bool(d->is_mutable),
                   shadows_[1], object},
                  kept) &&
           finish(value, shadow, kept, result);
  }

  bool set_field(Value& result) {
    Value object = operands_[1];
    const DataType* d = as_data(object.type);
    std::int64_t index = field_index(object, operands_[2]);
    if (index < 0) return false;
    std::size_t at = static_cast<std::size_t>(index);
    Value old = load_field(runtime_.heap, object.object, d->fields[at]);
    if (!runtime_.set_field(ctx_, object, operands_[2], operands_[3])) return false;
    if (!active_[3] && !active_[1]) return finish(operands_[3], runtime_.nothing(), runtime_.nothing(), result);
    const Type* declared = d->fields[at].type;
    Value shadow = shadows_[3];
    if (tangents_.has_shadow(operands_[3].type) && !active_[3] && !constant_shadow(operands_[3], shadow)) return false;
    if (!tangents_.has_shadow(object.type)) return finish(operands_[3], shadow, runtime_.nothing(), result);
    if (!active_[1] || diff::has_forbidden_stores(runtime_, shadows_[1]))
      return refuse(
          "a value that carries a derivative is stored into an object that is a global's, or that two "
          "arguments share; pass it as an argument, or a copy of it",
          nullptr);
    const DataType* shadow_type = as_data(shadows_[1].type);
    const Field& place = shadow_type->fields[at];
    Value old_tangent = load_field(runtime_.heap, shadows_[1].object, place);
    roots_.values.push_back(old_tangent);
    Value made;
    if (!stored_tangent(declared, place.type, shadow, made)) return false;
    store_value(shadows_[1].object->payload() + place.offset, place.type, made);
    if (forward_mode_) return finish(operands_[3], shadow, active_[3] ? numbers_[3] : runtime_.nothing(), result);
    Value kept;
    Value before = old.defined() ? old : runtime_.nothing();
    return record({runtime_.from_int(kind_set_field), runtime_.from_int(index), shadows_[1], object, before,
                   runtime_.from_bool(old.defined()), old_tangent},
                  kept) &&
           finish(operands_[3], shadow, kept, result);
  }

  bool stored_tangent(const Type* declared, const Type* stored, Value shadow, Value& made) {
    diff::ShadowMaker maker(ctx_);
    Rooted both(runtime_.heap);
    both.values = {shadow, Value()};
    if (tangents_.has_shadow(declared)) {
      const Type* held = tangents_.has_cotangent(declared) ? as_data(stored)->params[0] : stored;
      if (held == tangents_.dynamic() && !runtime_.new_object(ctx_, tangents_.dynamic(), &shadow, 1, both.values[0]))
        return false;
      made = both.values[0];
      if (!tangents_.has_cotangent(declared)) return true;
    }
    if (!maker.zero(tangents_.cotangent(declared), both.values[1])) return false;
    if (forward_mode_ && active_[3]) {
      Value call[2] = {runtime_.from_type(tangents_.cotangent(declared)), numbers_[3]};
      if (!runtime_.call(ctx_, runtime_.base->find(runtime_.symbol("as_cotangent"))->value, call, 2, both.values[1]))
        return false;
    }
    made = both.values[1];
    if (!tangents_.has_shadow(declared)) return true;
    return runtime_.new_tuple(ctx_, both.values.data(), 2, made);
  }

  Context& ctx_;
  Runtime& runtime_;
  diff::TangentTypes& tangents_;
  Pipeline& pipeline_;
  Rooted roots_;
  std::uint64_t asked_;
  std::string_view where_;       // the user's line, for refusals
  std::vector<Value> operands_;  // callee first
  std::vector<Value> shadows_;   // likewise, out of their boxes; nothing where there is none
  std::vector<Value> numbers_;   // forward mode: tangents of immutable values, out of their boxes
  std::vector<char> active_;
  bool forward_mode_ = false;
  bool any_ = false;
  Specialization* target_ = nullptr;
};

bool dynamic_forward(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 5) return ctx.argument_error("dynamic_forward takes a callee, arguments, shadows, a mask and a place");
  return DynamicForward(ctx, args, nullptr).run(result);
}

bool dynamic_tangent(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 6) return ctx.argument_error("dynamic_tangent takes six arguments");
  return DynamicForward(ctx, args, args + 5).run(result);
}

bool call_base(Context& ctx, const char* name, std::initializer_list<Value> args, Value& result) {
  Binding* binding = ctx.runtime->base->find(ctx.runtime->symbol(name));
  return ctx.runtime->call(ctx, binding->value, args.begin(), args.size(), result);
}

class DynamicReverse {
 public:
  DynamicReverse(Context& ctx, Value record, Value cotangent)
      : ctx_(ctx),
        runtime_(*ctx.runtime),
        tangents_(diff::tangent_types(runtime_)),
        record_(record),
        cotangent_(cotangent),
        roots_(runtime_.heap) {}

  bool run(Value& result) {
    result = runtime_.nothing();
    if (record_.type == runtime_.nothing().type) return true;
    switch (part(0).bits) {
      case kind_call:
        return call(result);
      case kind_get_field:
        return get_field(result);
      case kind_set_field:
        return set_field(result);
      default:
        return tuple(result);
    }
  }

 private:
  Value part(std::size_t i) { return field_of(runtime_, record_, i); }
  Value content() { return field_of(runtime_, cotangent_, 0); }
  bool give(std::vector<Value> parts, Value& result) {
    roots_.values.insert(roots_.values.end(), parts.begin(), parts.end());
    return runtime_.new_tuple(ctx_, parts.data(), parts.size(), result);
  }

  bool call(Value& result) {
    Value given[2] = {part(1), Value()};
    if (!call_base(ctx_, "as_cotangent", {part(4), cotangent_}, given[1])) return false;
    roots_.values.push_back(given[1]);
    auto* reverse = reinterpret_cast<Specialization*>(static_cast<std::intptr_t>(part(2).bits));
    Value cotangents;
    if (!runtime_.call_specialized(ctx_, *reverse, part(3), given, 2, cotangents)) return false;
    std::size_t fixed = static_cast<std::size_t>(part(5).bits);
    if (fixed == 0) {
      result = cotangents;
      return true;
    }
    roots_.values.push_back(cotangents);
    std::vector<Value> parts;
    auto take = [&](Value tuple, std::size_t i) {
      parts.push_back(field_of(runtime_, tuple, i));
      roots_.values.push_back(parts.back());
    };
    for (std::size_t i = 0; i < fixed; ++i) take(cotangents, i);
    Value rest = field_of(runtime_, cotangents, fixed);
    roots_.values.push_back(rest);
    if (as_data(rest.type)->is_tuple)
      for (std::size_t i = 0; i < as_data(rest.type)->fields.size(); ++i) take(rest, i);
    return give(std::move(parts), result);
  }

  bool get_field(Value& result) {
    std::size_t index = static_cast<std::size_t>(part(1).bits);
    Value nothing = runtime_.nothing();
    result = nothing;
    if (content().type == nothing.type) return true;
    if (part(3).bits & 1) {  // memory: into the shadow
      Value shadow = part(4);
      if (shadow.type == nothing.type) return true;
      const Field& place = as_data(shadow.type)->fields[index];
      const Type* declared = as_data(part(5).type)->fields[index].type;
      if (!tangents_.has_cotangent(declared)) return true;
      Value stored = load_field(runtime_.heap, shadow.object, place);
      roots_.values.push_back(stored);
      bool both = tangents_.has_shadow(declared);
      Value sum[2] = {both ? field_of(runtime_, stored, 0) : Value(), both ? field_of(runtime_, stored, 1) : stored};
      Value added;
      if (!call_base(ctx_, "as_cotangent", {runtime_.from_type(tangents_.cotangent(declared)), cotangent_}, added) ||
          !call_base(ctx_, "sum_tangents", {sum[1], added}, sum[1]))
        return false;
      roots_.values.push_back(sum[1]);
      if (both && !runtime_.new_tuple(ctx_, sum, 2, sum[1])) return false;
      store_value(shadow.object->payload() + place.offset, place.type, sum[1]);
      return true;
    }
    std::vector<Value> fields(static_cast<std::size_t>(part(2).bits), nothing);
    fields[index] = content();
    Value object;
    if (!give(fields, object)) return false;
    return give({nothing, object, nothing}, result);
  }

  bool set_field(Value& result) {
    std::size_t index = static_cast<std::size_t>(part(1).bits);
    Value shadow = part(2);
    Value object = part(3);
    const Field& place = as_data(shadow.type)->fields[index];
    const Field& field = as_data(object.type)->fields[index];
    Value stored = load_field(runtime_.heap, shadow.object, place);
    roots_.values.push_back(stored);
    Value cotangent = content();
    if (tangents_.has_cotangent(field.type)) {
      Value own = tangents_.has_shadow(field.type) ? field_of(runtime_, stored, 1) : stored;
      if (own.type == tangents_.dynamic()) own = field_of(runtime_, own, 0);
      if (!call_base(ctx_, "sum_tangents", {own, cotangent}, cotangent)) return false;
    }
    store_value(shadow.object->payload() + place.offset, place.type, part(6));
    if (part(5).bits & 1) store_value(object.object->payload() + field.offset, field.type, part(4));
    Value nothing = runtime_.nothing();
    return give({nothing, nothing, nothing, cotangent}, result);
  }

  bool tuple(Value& result) {
    Value nothing = runtime_.nothing();
    Value given = content();
    result = nothing;
    if (part(1).bits & 1) return give({nothing, given, nothing}, result);
    if (given.type == nothing.type) return true;
    std::vector<Value> parts{nothing};
    roots_.values.push_back(given);
    for (std::size_t i = 0; i < as_data(given.type)->fields.size(); ++i) {
      parts.push_back(field_of(runtime_, given, i));
      roots_.values.push_back(parts.back());
    }
    return give(std::move(parts), result);
  }

  Context& ctx_;
  Runtime& runtime_;
  diff::TangentTypes& tangents_;
  Value record_;
  Value cotangent_;
  Rooted roots_;
};

bool dynamic_reverse(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("dynamic_reverse takes a record and a cotangent");
  return DynamicReverse(ctx, args[0], args[1]).run(result);
}

const NativeInfo natives[] = {
    {"dynamic_forward", dynamic_forward, effect_all, nullptr},
    {"dynamic_tangent", dynamic_tangent, effect_all, nullptr},
    {"dynamic_reverse", dynamic_reverse, effect_all, nullptr},
};

}  // namespace

void define_dynamic_natives(Runtime& runtime) {
  for (const NativeInfo& native : natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope
