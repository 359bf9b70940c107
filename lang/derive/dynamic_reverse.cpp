// Core.dynamic_reverse: the reverse half of a call whose target was found when it ran (dynamic.cpp).
#include "lang/derive/compiler.hpp"
#include "lang/derive/dynamic.hpp"
#include "lang/diff/tangent.hpp"

namespace slope::derive {

namespace {

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
    if (!is_record()) return ctx_.argument_error("dynamic_reverse takes a record that dynamic_forward made");
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
  // Whether the parts fit together, so that a record that was made by hand can do nothing that a program cannot.
  bool is_record() {
    const BuiltinTypes& types = runtime_.types.builtin();
    const DataType* record = as_data(record_.type);
    if (!record->is_tuple || record->fields.size() < 2 || cotangent_.type != tangents_.dynamic()) return false;
    auto is_int = [&](std::size_t i) { return part(i).type == types.int64; };
    if (!is_int(0)) return false;
    switch (part(0).bits) {
      case kind_call:
        return record->fields.size() == 6 && is_int(2) && is_int(5) && runtime_.is_type_value(part(4)) && is_call();
      case kind_get_field:
        return record->fields.size() == 6 && is_int(1) && is_int(2) && part(3).type == types.boolean && is_read();
      case kind_set_field:
        return record->fields.size() == 7 && is_int(1) && part(5).type == types.boolean && is_store();
      default:
        return part(1).type == types.boolean;
    }
  }
  bool fits(Value v, const Type* type) { return v.defined() && is_instance(runtime_.types, v, type); }
  bool is_call() {
    auto* reverse = reinterpret_cast<Specialization*>(static_cast<std::intptr_t>(part(2).bits));
    if (!compiler_of(ctx_).is_pinned(reverse)) return false;
    const auto& parameters = as_data(reverse->types)->params;
    return parameters.size() == 3 && fits(part(3), parameters[0]) && fits(part(1), parameters[1]);
  }
  static bool has_field(Value object, std::int64_t index) {
    const DataType* type = as_data(object.type);
    return type->object_kind == DataType::ObjectKind::fields && index >= 0 &&
           static_cast<std::size_t>(index) < type->fields.size();
  }
  bool is_read() {
    const std::int64_t index = part(1).bits;
    if (!(part(3).bits & 1)) return index >= 0 && index < part(2).bits && part(2).bits < (std::int64_t{1} << 20);
    return part(4).type == runtime_.nothing().type || (has_field(part(4), index) && has_field(part(5), index));
  }
  bool is_store() {
    const std::int64_t index = part(1).bits;
    if (!has_field(part(2), index) || !has_field(part(3), index)) return false;
    const DataType* shadow = as_data(part(2).type);
    const DataType* object = as_data(part(3).type);
    if (!shadow->is_mutable || !object->is_mutable) return false;
    const auto at = static_cast<std::size_t>(index);
    return fits(part(6), shadow->fields[at].type) && (!(part(5).bits & 1) || fits(part(4), object->fields[at].type));
  }
  bool is_pair(Value v) { return v.defined() && as_data(v.type)->is_tuple && as_data(v.type)->fields.size() == 2; }
  bool wrong_shadow() { return ctx_.argument_error("dynamic_reverse: the shadow is not one of the object"); }

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
    if (!fits(given[1], as_data(reinterpret_cast<Specialization*>(part(2).bits)->types)->params[2]))
      return ctx_.argument_error("dynamic_reverse: the cotangent is not of the type of the result");
    auto* reverse = reinterpret_cast<Specialization*>(static_cast<std::intptr_t>(part(2).bits));
    Value cotangents;
    if (!runtime_.call_specialized(ctx_, *reverse, part(3), given, 2, cotangents)) return false;
    roots_.values.push_back(cotangents);
    if (part(5).bits == 0) {
      result = cotangents;
      return true;
    }
    if (!as_data(cotangents.type)->is_tuple || as_data(cotangents.type)->fields.empty() ||
        part(5).bits >= static_cast<std::int64_t>(as_data(cotangents.type)->fields.size()))
      return ctx_.argument_error("dynamic_reverse: the record is not of this derivative");
    if (part(5).bits < 0) {  // of call_derivative, of the function, of the tuple of arguments
      std::vector<Value> own;
      for (std::size_t i = 0; i < as_data(cotangents.type)->fields.size(); ++i) {
        own.push_back(field_of(runtime_, cotangents, i));
        roots_.values.push_back(own.back());
      }
      Value rest;
      if (!runtime_.new_tuple(ctx_, own.data() + 1, own.size() - 1, rest)) return false;
      return give({runtime_.nothing(), own[0], rest}, result);
    }
    std::size_t fixed = static_cast<std::size_t>(part(5).bits);
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
      if (both && !is_pair(stored)) return wrong_shadow();
      Value sum[2] = {both ? field_of(runtime_, stored, 0) : Value(), both ? field_of(runtime_, stored, 1) : stored};
      Value added;
      if (!call_base(ctx_, "as_cotangent", {runtime_.from_type(tangents_.cotangent(declared)), cotangent_}, added) ||
          !call_base(ctx_, "sum_tangents", {sum[1], added}, sum[1]))
        return false;
      roots_.values.push_back(sum[1]);
      if (both && !runtime_.new_tuple(ctx_, sum, 2, sum[1])) return false;
      if (!fits(sum[1], place.type)) return wrong_shadow();
      store_value(runtime_.heap, shadow.object->payload() + place.offset, place.type, sum[1]);
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
      if (tangents_.has_shadow(field.type) && !is_pair(stored)) return wrong_shadow();
      Value own = tangents_.has_shadow(field.type) ? field_of(runtime_, stored, 1) : stored;
      if (own.type == tangents_.dynamic()) own = field_of(runtime_, own, 0);
      if (!call_base(ctx_, "sum_tangents", {own, cotangent}, cotangent)) return false;
    }
    store_value(runtime_.heap, shadow.object->payload() + place.offset, place.type, part(6));
    if (part(5).bits & 1) store_value(runtime_.heap, object.object->payload() + field.offset, field.type, part(4));
    Value nothing = runtime_.nothing();
    return give({nothing, nothing, nothing, cotangent}, result);
  }

  bool tuple(Value& result) {
    Value nothing = runtime_.nothing();
    Value given = content();
    result = nothing;
    if (part(1).bits & 1) return give({nothing, given, nothing}, result);
    if (given.type == nothing.type) return true;
    if (!as_data(given.type)->is_tuple) return wrong_shadow();
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

}  // namespace

bool dynamic_reverse(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("dynamic_reverse takes a record and a cotangent");
  return DynamicReverse(ctx, args[0], args[1]).run(result);
}

}  // namespace slope::derive
