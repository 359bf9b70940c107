// Calls inside derivative code whose target is found when they run: Core.dynamic_forward and Core.dynamic_reverse
// (lang/diff/reverse/dynamic.cpp says which code contains them).
//
//   dynamic_forward(callee, args::Tuple, shadows::Tuple, active::Int, where::String)
//     → Base.DynamicCall(value, shadow, record)
//   dynamic_reverse(record, cotangent::DynamicTangent)
//     → a tuple with one cotangent for each operand (callee first), or nothing
//   dynamic_tangent(callee, args, shadows, active, where, tangents::Tuple)
//     → as dynamic_forward, in forward mode: the record is the tangent
//
// In `shadows` and in the bits of `active` the callee comes first. The record of a call is a tuple whose first element
// says what kind of call it was.
#include "lang/derive/dynamic.hpp"

#include "lang/derive/derivatives.hpp"
#include "lang/diff/normal_form.hpp"
#include "lang/diff/operations.hpp"
#include "lang/diff/tangent.hpp"
#include "lang/diff/texts.hpp"
#include "lang/ir/execute/execute.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::derive {

namespace {

class DynamicForward {
 public:
  // `args`: as are_arguments() wants them.
  DynamicForward(Context& ctx, const Value* args, const Value* tangents)
      : ctx_(ctx),
        runtime_(*ctx.runtime),
        tangents_(diff::tangent_types(runtime_)),
        compiler_(compiler_of(ctx)),
        derivatives_(compiler_.derivatives()),
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
      active_.push_back(asked(i) && tangents_.differentiable(operands_[i].type));
      any_ |= active_.back();
    }
  }

  // Tuples that belong together, a number and a text: what derivative code passes. Scripts may pass anything.
  static bool are_arguments(const BuiltinTypes& types, const Value* args, const Value* tangents) {
    const auto parts = [](Value v) {
      const DataType* d = as_data(v.type);
      return d && d->is_tuple ? d->fields.size() + 1 : 0;
    };
    const std::size_t count = parts(args[1]);
    return count != 0 && parts(args[2]) == count + 1 && args[3].type == types.int64 && args[4].type == types.string &&
           (!tangents || parts(*tangents) == count + 1);
  }

  bool run(Value& result) {
    const BuiltinTypes& builtin = runtime_.types.builtin();
    if (is_incomplete_) return ctx_.out_of_memory();
    if (calls_derivative()) unpack_call();
    Value callee = operands_[0];
    if (callee.type == builtin.builtin_function) {
      if (!any_) return plain(true, result);
      if (!fits_builtin(callee)) return ctx_.argument_error("dynamic_forward: the shadows are not of these arguments");
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
            if (!runtime_.hooks().execute_op(ctx_, static_cast<unsigned>(ir::Op::type_assert), operands_.data() + 1, 2,
                                             0, checked))
              return false;
            return same(result);
          }
          default:
            if (ir::op_info(static_cast<ir::Op>(callee.bits >> 1)).derivative == ir::Derivative::none)
              return plain(true, result);
            break;
        }
      }
      return refuse_builtin();
    }
    if (!find_target() || !text_is_not_read() || !keep_memory()) return false;
    if (is_plain()) return plain(may_return_old_memory(), result);
    return call(result);
  }

  // What the call's derivative is, for what differentiates it again (Base.dynamic_forward_again): a number for a call
  // that is made as it is (1: what it gives is constant), of a builtin a tuple that begins with a number; else
  //   (derivative, its reverse half, which that is, a Base.CallStep that says how its arguments are made of the
  //   operands)
  bool describe(Value& result) {
    const BuiltinTypes& builtin = runtime_.types.builtin();
    if (is_incomplete_) return ctx_.out_of_memory();
    if (calls_derivative()) unpack_call();
    Value callee = operands_[0];
    if (callee.type == builtin.builtin_function) {
      const bool is_op = (callee.bits & 1) != 0;
      if (!any_ || (is_op && ir::op_info(static_cast<ir::Op>(callee.bits >> 1)).derivative == ir::Derivative::none)) {
        result = runtime_.from_int(1);
        return true;
      }
      if (is_op && !fits_builtin(callee))
        return ctx_.argument_error("derivative_step: the shadows are not of these arguments");
      if (is_op) return describe_builtin(static_cast<ir::Op>(callee.bits >> 1), result);
      return refuse_builtin();
    }
    if (!find_target() || !text_is_not_read() || !keep_memory()) return false;
    if (is_plain()) {
      result = runtime_.from_int(may_return_old_memory() ? 1 : 0);
      return true;
    }
    Packed packed;
    if (!pack(packed)) return false;
    std::vector<Value> parts;
    std::vector<char> active;
    std::vector<const Type*> seeds;
    if (forward_mode_) {
      const Tangent* code = derivatives_.tangent(ctx_, *target_, packed.active, 1);
      if (!code) return false;
      active = code->active;
      for (std::size_t i = 0; i < packed.arguments.size(); ++i)
        seeds.push_back(active[i] ? tangents_.cotangent(type_of_argument(packed.arguments, i)) : builtin.nothing);
      parts = {code->callee, runtime_.nothing(), runtime_.from_int(0)};
    } else {
      const Halves* halves = derivatives_.halves(ctx_, *target_, packed.active);
      if (!halves) return false;
      active = halves->active;
      compiler_.pin(*halves->forward);
      compiler_.pin(*halves->reverse);  // a record will hold it
      seeds.push_back(tangents_.cotangent(halves->result_type));
      parts = {halves->forward_callee, halves->reverse_callee,
               runtime_.from_int(reinterpret_cast<std::intptr_t>(halves->reverse))};
    }
    diff::MemorySummary effects = derivatives_.memory(ctx_).of(*target_);
    std::vector<char> with_shadows(packed.arguments.size());
    std::vector<char> boxed(packed.arguments.size());
    for (std::size_t i = 0; i < packed.arguments.size(); ++i) {
      const Type* type = type_of_argument(packed.arguments, i);
      if (!active[i] || !tangents_.has_shadow(type)) continue;
      with_shadows[i] = 1;
      boxed[i] = tangents_.shadow(type) == tangents_.dynamic();
      for (std::size_t k = i; k < operands_.size() && (k == i || i + 1 == packed.arguments.size()); ++k)
        if (!only_accumulates() && (effects.writes & diff::parameter_mask(i)) && active_[k] &&
            stores_forbidden(shadows_[k]))
          return refuse_store(target_->method);
    }
    const std::int64_t rest_at = packed_call_ ? -1 : static_cast<std::int64_t>(packed.rest_at);
    std::vector<std::uintptr_t> key{static_cast<std::uintptr_t>(rest_at), active_.size(), with_shadows.size()};
    for (std::size_t i = 0; i < active_.size(); ++i) key.push_back(active_[i] != 0);
    for (std::size_t i = 0; i < with_shadows.size(); ++i)
      key.push_back(static_cast<std::uintptr_t>(with_shadows[i] | boxed[i] << 1));
    for (const Type* seed : seeds) key.push_back(reinterpret_cast<std::uintptr_t>(seed));
    const auto [known, fresh] = derivatives_.call_steps.try_emplace(std::move(key));
    if (!fresh && known->second.defined()) {
      parts.push_back(known->second);
      return record_of(parts, result);
    }
    const Type* masks[3];
    if (!words_of(active_, masks[0]) || !words_of(with_shadows, masks[1]) || !words_of(boxed, masks[2])) return false;
    const Type* const step[] = {runtime_.types.value_int(rest_at), masks[0], masks[1], masks[2],
                                runtime_.types.tuple(seeds)};
    const Type* wrapper = library_value(runtime_, KnownName::call_step_type).as_type;
    parts.push_back(as_data(runtime_.types.apply_wrapper(wrapper, step, nullptr))->instance);
    known->second = parts.back();
    return record_of(parts, result);
  }

 private:
  // Bits as a type: a tuple of integers with 62 each.
  bool words_of(const std::vector<char>& bits, const Type*& words) {
    constexpr std::size_t in_word = 62;
    std::vector<Value> made(bits.size() / in_word + 1, runtime_.from_int(0));
    for (std::size_t i = 0; i < bits.size(); ++i)
      if (bits[i]) made[i / in_word].bits |= std::int64_t{1} << (i % in_word);
    Value all;
    if (!record_of(made, all)) return false;
    words = runtime_.types.value(all);
    return true;
  }
  bool calls_derivative() const {
    return operands_[0].type == runtime_.types.builtin().builtin_function && !(operands_[0].bits & 1) &&
           operands_.size() == 3 && operands_[0].identical(tangents_.value_of(KnownName::call_derivative));
  }
  // call_derivative(f, arguments::Tuple) is the call f(arguments...).
  void unpack_call() {
    packed_call_ = true;
    const Value arguments = operands_[2];
    const Value shadow = shadows_[2];
    const Value number = numbers_.empty() ? runtime_.nothing() : numbers_[2];
    operands_ = {operands_[1]};
    shadows_ = {shadows_[1]};
    if (forward_mode_) numbers_ = {numbers_[1]};
    const bool tuple_active = asked(2);
    active_ = {active_[1]};
    any_ = active_[0];
    auto part = [&](Value whole, std::size_t i) {
      const DataType* d = as_data(whole.type);
      if (!d->is_tuple || i >= d->fields.size()) return runtime_.nothing();
      Value found = field_of(runtime_, whole, i);
      roots_.values.push_back(found);
      found = unboxed(found);
      roots_.values.push_back(found);
      return found;
    };
    for (std::size_t i = 0; i < as_data(arguments.type)->fields.size(); ++i) {
      operands_.push_back(part_of(arguments, i));
      shadows_.push_back(part(shadow, i));
      if (forward_mode_) numbers_.push_back(part(number, i));
      active_.push_back(tuple_active && tangents_.differentiable(operands_.back().type));
      any_ |= active_.back();
    }
  }
  Value part_of(Value tuple, std::size_t i) {
    Value found = field_of(runtime_, tuple, i);
    roots_.values.push_back(found);
    return found;
  }

  // Enough operands for the operation; of a field's object the shadow and the tangent are of its form.
  bool fits_builtin(Value callee) {
    if (!(callee.bits & 1)) return true;
    const auto op = static_cast<ir::Op>(callee.bits >> 1);
    const ir::OpInfo& info = ir::op_info(op);
    const auto count = static_cast<int>(operands_.size()) - 1;
    if (count < info.min_operands || (info.max_operands >= 0 && count > info.max_operands)) return false;
    if ((op != ir::Op::get_field && op != ir::Op::set_field) || !active_[1]) return true;
    const Type* shadow = tangents_.shadow(operands_[1].type);
    if (shadow != runtime_.nothing().type && shadows_[1].type != shadow) return false;
    if (!forward_mode_ || numbers_[1].type == runtime_.nothing().type || as_data(operands_[1].type)->is_mutable)
      return true;
    return as_data(numbers_[1].type)->object_kind == DataType::ObjectKind::fields &&
           as_data(numbers_[1].type)->fields.size() == as_data(operands_[1].type)->fields.size();
  }
  bool asked(std::size_t i) const { return (asked_ & diff::dynamic_call_bit(i)) != 0; }
  bool find_target() {
    target_ = compiler_.synthetic_of(operands_[0]);
    is_derivative_ = target_ != nullptr;
    if (!target_)
      target_ = runtime_.dispatch_specialized(ctx_, operands_[0], operands_.data() + 1, operands_.size() - 1);
    if (!is_derivative_) return target_ != nullptr;
    if (!takes(*target_, operands_)) return ctx_.argument_error("the derivative is called with other arguments");
    for (std::size_t i = 0; i < operands_.size(); ++i) {  // its parameters may know less than the values say
      active_[i] = asked(!packed_call_ ? i : i == 0 ? 1 : 2) && tangents_.differentiable(declared(i));
      any_ |= active_[i] != 0;
    }
    return true;
  }
  // A text that is made of a number that carries a derivative is no number for the function that is found.
  bool text_is_not_read() {
    if (is_derivative_ || asked_ < diff::dynamic_text_bit(0)) return true;
    const std::size_t called = place_of_called();
    for (std::size_t i = called + 1; i < operands_.size(); ++i) {
      if (!(asked_ & diff::dynamic_text_bit(i)) || !diff::holds_text(tangents_, operands_[i].type)) continue;
      const bool is_beside_numbers = tangents_.differentiable(operands_[i].type);
      // The library's code for derivatives hands on what it is given, in objects of any kind.
      if (is_beside_numbers && diff::is_of_library(runtime_, target_->method)) continue;
      const diff::TextSummary& summary = derivatives_.memory(ctx_).texts().of(*target_);
      diff::MemoryMask read = is_beside_numbers ? summary.read_of_text : summary.read;
      const CodeInstance* code = target_->current;  // whole numbers are not followed from there
      if (!is_beside_numbers && called == 0 && code && code->return_type == runtime_.types.builtin().int64)
        read |= summary.result;
      if ((read & diff::parameter_mask(diff::parameter_of_operand(*target_, i))) != 0 && !ctx_.failed())
        return refuse("a number is read from the text of a number that carries a derivative", target_->method);
    }
    return !ctx_.failed();
  }
  // Of memory that the call may store into.
  bool stores_forbidden(Value shadow) {
    const Stores& stores = derivatives_.stores.of(ctx_, *target_);
    return diff::has_forbidden_stores(runtime_, shadow, stores.any_type ? nullptr : &stores.types);
  }
  // What the call may overwrite, for when all is put back (kept_memory.hpp). What the reverse sweep of an inner
  // derivative restores was kept when it was overwritten, and accumulators are not put back.
  bool keep_memory() {
    if (!KeptMemory::is_open(ctx_) || diff::restores_memory(called(), runtime_)) return true;
    // Tangents are restored by the reverse half, too, but that does not always run (natives/segments.cpp).
    const bool of_tangent = only_accumulates();
    if (of_tangent &&
        !(kept_memory_of(ctx_).keeps_tangents() && is_derivative_ && derivatives_.cache.is_forward_mode(*target_)))
      return true;
    const Stores& stores = derivatives_.stores.of(ctx_, *target_);
    if (ctx_.failed()) return false;
    const Method& method = *target_->method;
    const std::size_t fixed = method.is_vararg ? method.arg_count : operands_.size();
    if (!stores.any()) return true;
    if (of_tangent)
      kept_memory_of(ctx_).keep_of_tangent(stores, operands_.data(), operands_.size(), fixed);
    else
      kept_memory_of(ctx_).keep(stores, operands_.data(), operands_.size(), fixed);
    return true;
  }
  // Its code expects as many as its types say, and does not ask.
  bool takes(const Specialization& target, const std::vector<Value>& operands) const {
    return as_data(target.types)->params.size() == operands.size();
  }
  // A derivative, or what stands for one: what it writes of what it is given are accumulators and what was overwritten
  // before; what user code stores is checked where that is called.
  bool only_accumulates() {
    return is_derivative_ || diff::is_written_out(called(), runtime_) || compiler_.synthetic_of(called()) != nullptr;
  }
  // Where the function that is called stands: in a `try` it is an argument of Base.caught_call.
  std::size_t place_of_called() const {
    return operands_.size() > 1 && diff::is_caught_call(runtime_, *target_) ? 1 : 0;
  }
  Value called() const { return operands_[place_of_called()]; }
  const Type* declared(std::size_t i) const { return as_data(target_->types)->params[i]; }
  // The type that argument `i` of the method has in its code.
  const Type* type_of_argument(const std::vector<Value>& arguments, std::size_t i) const {
    return is_derivative_ ? declared(i) : arguments[i].type;
  }
  // What memory that carries nothing gets back carries nothing.
  bool restores_constant_memory() {
    const std::size_t memory = place_of_called() + 1;
    return operands_.size() > memory && diff::restores_memory(called(), runtime_) &&
           diff::has_forbidden_stores(runtime_, unboxed(shadows_[memory]));
  }
  // A forward half that is differentiated makes a record of another form, without a seal (lang/diff/normal_form.cpp).
  // The reverse half reads it in that form only where it is differentiated as well.
  bool reads_unsealed_record() {
    if (is_derivative_) return derivatives_.cache.is_reverse_half(*target_) && has_no_seal(unboxed(operands_[1]));
    if (!diff::reads_record(called(), runtime_)) return false;
    return std::any_of(operands_.begin(), operands_.end(), [&](Value v) {
      if (has_no_seal(v)) return true;
      const DataType* type = as_data(v.type);  // the record of a dynamic call: (kind, record of the forward half…)
      return type && type->is_tuple && type->fields.size() > 1 && has_no_seal(field_of(runtime_, v, 1));
    });
  }
  bool has_no_seal(Value record) {
    const DataType* type = as_data(record.type);
    if (!type || !type->is_tuple || type->fields.empty()) return false;
    const Value last = field_of(runtime_, record, type->fields.size() - 1);
    return last.type == runtime_.types.builtin().int64 && last.bits == 0;
  }
  bool is_plain() {
    if (restores_constant_memory()) return true;
    if (tangents_.is_forward_half(target_) || reads_unsealed_record() || diff::makes_record(called(), runtime_))
      return false;
    return !any_ || derivatives_.is_declared_constant(ctx_, *target_);
  }
  bool refuse_builtin() {
    return refuse(
        "a builtin function is called here on values that carry a derivative and whose types were not "
        "inferred",
        nullptr);
  }
  bool refuse_store(const Method* method) {
    return refuse(
        "it may store a value that carries a derivative into memory that is a global's, or that two "
        "arguments share; pass it as an argument, or a copy of it",
        method);
  }
  bool record_of(const std::vector<Value>& parts, Value& result) {
    if (!runtime_.new_tuple(ctx_, parts.data(), parts.size(), result)) return false;
    roots_.values.push_back(result);
    return true;
  }
  // (kind, index of the field, fields there are, whether it is mutable, what the field is declared to hold)
  bool describe_builtin(ir::Op op, Value& result) {
    if (op == ir::Op::tuple || op == ir::Op::type_assert)
      return record({runtime_.from_int(kind_tuple), runtime_.from_bool(op == ir::Op::type_assert)}, result);
    if (op != ir::Op::get_field && op != ir::Op::set_field) return refuse_builtin();
    const DataType* d = as_data(operands_[1].type);
    std::int64_t index = field_index(operands_[1], operands_[2]);
    if (index < 0) return false;
    if (op == ir::Op::set_field && d->is_mutable && KeptMemory::is_open(ctx_))
      kept_memory_of(ctx_).keep_object(operands_[1].object);
    if (op == ir::Op::set_field && tangents_.has_shadow(operands_[1].type) && any_ &&
        (!active_[1] || diff::has_forbidden_stores(runtime_, shadows_[1])))
      return refuse_set_field();
    return record(
        {runtime_.from_int(op == ir::Op::get_field ? kind_get_field : kind_set_field), runtime_.from_int(index),
         runtime_.from_int(static_cast<std::int64_t>(d->fields.size())), runtime_.from_bool(d->is_mutable),
         runtime_.from_type(d->fields[static_cast<std::size_t>(index)].type)},
        result);
  }

  // Elements of a tuple; taking one out may allocate, and so collect.
  void take(Value tuple, std::vector<Value>& to, bool boxed) {
    const std::size_t count = as_data(tuple.type)->fields.size();
    to.reserve(count + 1);
    if (roots_.values.empty()) roots_.values.reserve(8 * (count + 1));
    for (std::size_t i = 0; i < count; ++i) {
      Value v = field_of(runtime_, tuple, i);
      if (!v.defined()) {  // no memory for its box
        v = runtime_.nothing();
        is_incomplete_ = true;
      }
      roots_.values.push_back(v);
      to.push_back(boxed ? unboxed(v) : v);
      roots_.values.push_back(to.back());
    }
  }

  Value unboxed(Value tangent) {
    return tangent.type == tangents_.dynamic() ? field_of(runtime_, tangent, 0) : tangent;
  }

  bool refuse(const std::string& reason, const Method* method) {
    if (method && operands_.size() > 1 && diff::is_caught_call(runtime_, *target_)) {  // the call in a `try`
      const Specialization* called =
          runtime_.dispatch_specialized(ctx_, operands_[1], operands_.data() + 2, operands_.size() - 2);
      if (!called) return false;
      method = called->method;
    }
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
    const DataType* type = as_data(tangents_.value_of(KnownName::dynamic_call_type).as_type);
    return runtime_.new_object(ctx_, type, fields, 3, result);
  }

  bool record(std::initializer_list<Value> parts, Value& result) {
    if (!runtime_.new_tuple(ctx_, parts.begin(), parts.size(), result)) return false;
    roots_.values.push_back(result);
    return true;
  }

  // The result may share memory with what is constant here.
  bool may_return_old_memory() {
    diff::MemorySummary effects = derivatives_.memory(ctx_).of(*target_);
    if (effects.result & diff::global_memory) return true;
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if ((effects.result & diff::parameter_mask(i)) && tangents_.has_shadow(operands_[i].type)) return true;
    return false;
  }

  // Nothing that carries a derivative goes in, or it stops there.
  bool plain(bool constant, Value& result) {
    Value value;
    const bool is_derivative = target_ && compiler_.synthetic_of(operands_[0]) == target_;
    CallWatch* const watch = ctx_.calls;
    if (!is_derivative && KeptMemory::is_open(ctx_)) ctx_.calls = ctx_.kept_memory.get();
    const bool ok =
        is_derivative
            ? runtime_.call_specialized(ctx_, *target_, operands_[0], operands_.data() + 1, operands_.size() - 1, value)
            : runtime_.call(ctx_, operands_[0], operands_.data() + 1, operands_.size() - 1, value);
    ctx_.calls = watch;
    if (!ok) return false;
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

  bool box_as(const Type* declared, Value& shadow) {
    if (tangents_.shadow(declared) != tangents_.dynamic() || shadow.type == tangents_.dynamic()) return true;
    if (!runtime_.new_object(ctx_, tangents_.dynamic(), &shadow, 1, shadow)) return false;
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

  // The operands as the method has its arguments: a vararg is one tuple.
  struct Packed {
    std::vector<Value> arguments;
    std::vector<char> active;
    std::size_t fixed = 0;
    std::size_t rest_at = 0;  // the vararg's place; 0: there is none
  };
  bool pack(Packed& packed) {
    const Method& method = *target_->method;
    packed.fixed = method.is_vararg ? method.arg_count : operands_.size();
    const auto fixed = static_cast<std::ptrdiff_t>(packed.fixed);
    packed.arguments.assign(operands_.begin(), operands_.begin() + fixed);
    packed.active.assign(active_.begin(), active_.begin() + fixed);
    if (!method.is_vararg) return true;
    packed.rest_at = packed.fixed;
    Value rest;
    if (!runtime_.new_tuple(ctx_, operands_.data() + fixed, operands_.size() - packed.fixed, rest)) return false;
    roots_.values.push_back(rest);
    packed.arguments.push_back(rest);
    bool any = false;
    for (std::size_t i = packed.fixed; i < operands_.size(); ++i) any |= active_[i] != 0;
    packed.active.push_back(any);
    return true;
  }

  bool call(Value& result) {
    const Method& method = *target_->method;
    Packed packed;
    if (!pack(packed)) return false;
    const std::size_t fixed = packed.fixed;
    const std::vector<Value>& arguments = packed.arguments;
    const std::vector<char>& active = packed.active;
    if (forward_mode_) return tangent_call(arguments, active, fixed, result);
    const Halves* found = derivatives_.halves(ctx_, *target_, active);
    if (!found) return false;
    Halves halves = *found;
    compiler_.pin(*halves.reverse);  // a record will hold it
    diff::MemorySummary effects = derivatives_.memory(ctx_).of(*target_);
    std::vector<Value> given = arguments;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!halves.active[i] || !tangents_.has_shadow(type_of_argument(arguments, i))) continue;
      Value shadow;
      bool is_rest = method.is_vararg && i + 1 == arguments.size();
      if (!shadow_of(i, is_rest ? operands_.size() - fixed : 1, is_rest, arguments[i], shadow)) return false;
      if (!box_as(type_of_argument(arguments, i), shadow)) return false;
      if (!only_accumulates() && (effects.writes & diff::parameter_mask(i)) && stores_forbidden(shadow))
        return refuse_store(&method);
      given.push_back(shadow);
    }
    Value triple;
    if (!call_derivative_code(ctx_, *halves.forward, halves.forward_callee, given, triple)) return false;
    roots_.values.push_back(triple);
    const Type* seed = tangents_.cotangent(halves.result_type);
    Value kept;
    if (!record({runtime_.from_int(kind_call), field_of(runtime_, triple, 2),
                 runtime_.from_int(reinterpret_cast<std::intptr_t>(halves.reverse)), halves.reverse_callee,
                 runtime_.from_type(seed),
                 runtime_.from_int(packed_call_ ? -1 : static_cast<std::int64_t>(packed.rest_at))},
                kept))
      return false;
    return finish(field_of(runtime_, triple, 0), field_of(runtime_, triple, 1), kept, result);
  }

  bool tangent_call(const std::vector<Value>& arguments, const std::vector<char>& active, std::size_t fixed,
                    Value& result) {
    const Tangent* found = derivatives_.tangent(ctx_, *target_, active, 1);
    if (!found) return false;
    Tangent code = *found;
    diff::MemorySummary effects = derivatives_.memory(ctx_).of(*target_);
    std::vector<Value> given = arguments;
    std::vector<Value> numbers;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!code.active[i]) continue;
      bool is_rest = target_->method->is_vararg && i + 1 == arguments.size();
      const Type* argument_type = type_of_argument(arguments, i);
      if (tangents_.has_shadow(argument_type)) {
        Value shadow;
        if (!shadow_of(i, is_rest ? operands_.size() - fixed : 1, is_rest, arguments[i], shadow)) return false;
        if (!box_as(argument_type, shadow)) return false;
        if (!only_accumulates() && (effects.writes & diff::parameter_mask(i)) && stores_forbidden(shadow))
          return refuse(
              "it may store a value that carries a derivative into memory that is a global's; pass it as an "
              "argument, or a copy of it",
              target_->method);
        given.push_back(shadow);
      }
      const Type* type = tangents_.cotangent(argument_type);
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
      if (!runtime_.call(ctx_, library_value(runtime_, KnownName::as_cotangent), call, 2, number)) return false;
      roots_.values.push_back(number);
      numbers.push_back(number);
    }
    given.insert(given.end(), numbers.begin(), numbers.end());
    Value triple;
    if (!call_derivative_code(ctx_, *code.target, code.callee, given, triple)) return false;
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
    if (d->is_mutable && !tangents_.shadowed(d) && KeptMemory::is_open(ctx_))
      kept_memory_of(ctx_).keep_object(object.object);
    if (!runtime_.set_field(ctx_, object, operands_[2], operands_[3])) return false;
    if (!active_[3] && !active_[1]) return finish(operands_[3], runtime_.nothing(), runtime_.nothing(), result);
    const Type* declared = d->fields[at].type;
    Value shadow = shadows_[3];
    if (tangents_.has_shadow(operands_[3].type) && !active_[3] && !constant_shadow(operands_[3], shadow)) return false;
    if (!tangents_.has_shadow(object.type)) return finish(operands_[3], shadow, runtime_.nothing(), result);
    if (!active_[1] || diff::has_forbidden_stores(runtime_, shadows_[1])) return refuse_set_field();
    const DataType* shadow_type = as_data(shadows_[1].type);
    const Field& place = shadow_type->fields[at];
    Value old_tangent = load_field(runtime_.heap, shadows_[1].object, place);
    roots_.values.push_back(old_tangent);
    Value made;
    if (!stored_tangent(declared, place.type, shadow, made)) return false;
    // A checkpoint comes here in the reverse sweep, where the cotangent of what is stored has been collected.
    const bool is_number = !forward_mode_ && !tangents_.has_shadow(declared);
    if (is_number)
      old_tangent = made;
    else
      store_value(runtime_.heap, shadows_[1].object->payload() + place.offset, place.type, made);
    roots_.values.push_back(made);
    if (forward_mode_) return finish(operands_[3], shadow, active_[3] ? numbers_[3] : runtime_.nothing(), result);
    Value kept;
    Value before = old.defined() ? old : runtime_.nothing();
    return record({runtime_.from_int(kind_set_field), runtime_.from_int(index), shadows_[1], object, before,
                   runtime_.from_bool(old.defined()), old_tangent},
                  kept) &&
           finish(operands_[3], shadow, kept, result);
  }

  bool refuse_set_field() {
    return refuse(
        "a value that carries a derivative is stored into an object that is a global's, or that two "
        "arguments share; pass it as an argument, or a copy of it",
        nullptr);
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
      if (!runtime_.call(ctx_, library_value(runtime_, KnownName::as_cotangent), call, 2, both.values[1])) return false;
    }
    made = both.values[1];
    if (!tangents_.has_shadow(declared)) return true;
    return runtime_.new_tuple(ctx_, both.values.data(), 2, made);
  }

  Context& ctx_;
  Runtime& runtime_;
  diff::TangentTypes& tangents_;
  Compiler& compiler_;
  Derivatives& derivatives_;
  Rooted roots_;
  std::uint64_t asked_;
  std::string_view where_;       // the user's line, for refusals
  std::vector<Value> operands_;  // callee first
  std::vector<Value> shadows_;   // likewise, out of their boxes; nothing where there is none
  std::vector<Value> numbers_;   // forward mode: tangents of immutable values, out of their boxes
  std::vector<char> active_;
  bool forward_mode_ = false;
  bool is_derivative_ = false;  // the target is a derivative
  bool packed_call_ = false;    // the operands came as call_derivative has them
  bool any_ = false;
  bool is_incomplete_ = false;
  Specialization* target_ = nullptr;
};

bool dynamic_forward(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 5) return ctx.argument_error("dynamic_forward takes a callee, arguments, shadows, a mask and a place");
  if (!DynamicForward::are_arguments(ctx.runtime->types.builtin(), args, nullptr))
    return ctx.argument_error("dynamic_forward takes a callee, arguments, shadows, a mask and a place");
  return DynamicForward(ctx, args, nullptr).run(result);
}

bool dynamic_tangent(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 6 || !DynamicForward::are_arguments(ctx.runtime->types.builtin(), args, args + 5))
    return ctx.argument_error("dynamic_tangent takes a callee, arguments, shadows, a mask, a place and tangents");
  return DynamicForward(ctx, args, args + 5).run(result);
}

// derivative_step(callee, args::Tuple, shadows::Tuple, active::Int, where::String, tangents::Tuple or nothing)
bool derivative_step(Context& ctx, const Value* args, std::size_t count, Value& result) {
  const bool forward = count == 6 && args[5].type != ctx.runtime->nothing().type;
  if (count != 6 || !DynamicForward::are_arguments(ctx.runtime->types.builtin(), args, forward ? args + 5 : nullptr))
    return ctx.argument_error("derivative_step takes a callee, arguments, shadows, a mask, a place and tangents");
  return DynamicForward(ctx, args, forward ? args + 5 : nullptr).describe(result);
}

// call_derivative(derivative, arguments::Tuple): the call of what derivative_step or pullback_step named.
bool call_derivative(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2 || !as_data(args[1].type) || !as_data(args[1].type)->is_tuple)
    return ctx.argument_error("call_derivative takes a derivative and a tuple of arguments");
  Specialization* target = compiler_of(ctx).synthetic_of(args[0]);
  if (!target) return ctx.argument_error("call_derivative takes a derivative that was made before");
  Rooted given(ctx.runtime->heap);
  for (std::size_t i = 0; i < as_data(args[1].type)->fields.size(); ++i)
    given.values.push_back(field_of(*ctx.runtime, args[1], i));
  const auto& parameters = as_data(target->types)->params;
  bool fits = parameters.size() == given.values.size() + 1;
  for (std::size_t i = 0; fits && i < given.values.size(); ++i)
    fits = is_instance(ctx.runtime->types, given.values[i], parameters[i + 1]);
  if (!fits) return ctx.argument_error("call_derivative: the derivative takes other arguments");
  return ctx.runtime->call_specialized(ctx, *target, args[0], given.values.data(), given.values.size(), result);
}

const NativeInfo dynamic_natives[] = {
    {"dynamic_forward", dynamic_forward, effect_all, nullptr},
    {"dynamic_tangent", dynamic_tangent, effect_all, nullptr},
    {"dynamic_reverse", dynamic_reverse, effect_all, nullptr},
    {"derivative_step", derivative_step, effect_throws | effect_reads | effect_allocates, nullptr},
    {"call_derivative", call_derivative, effect_all, nullptr},
};

}  // namespace

void define_dynamic_natives(Runtime& runtime) {
  for (const NativeInfo& native : dynamic_natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope::derive
