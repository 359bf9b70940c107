// Handles of Slope values, and what a host does with them.
#include <cstring>

#include "embed/engine_state.hpp"

namespace slope::api::detail {

HandleTable::HandleTable(EngineState& engine)
    : engine_(&engine), roots_(std::make_unique<Rooted>(engine.runtime.heap)) {}

std::size_t HandleTable::add(RawValue v) {
  if (free_.empty()) {
    roots_->values.push_back(v);
    counts_.push_back(1);
    return counts_.size() - 1;
  }
  std::size_t slot = free_.back();
  free_.pop_back();
  roots_->values[slot] = v;
  counts_[slot] = 1;
  return slot;
}

void HandleTable::release(std::size_t slot) {
  if (!engine_ || --counts_[slot] != 0) return;
  roots_->values[slot] = RawValue();
  free_.push_back(slot);
}

void HandleTable::close() {
  engine_ = nullptr;
  roots_.reset();
}

api::Value Access::make(EngineState& engine, RawValue v) {
  api::Value handle;
  if (!v.defined() || v.type == engine.types.nothing) return handle;
  handle.table_ = engine.handles;
  handle.slot_ = engine.handles->add(v);
  return handle;
}

RawValue Access::raw(const api::Value& handle) {
  return handle.table_ && handle.table_->engine() ? handle.table_->at(handle.slot_) : RawValue();
}

}  // namespace slope::api::detail

namespace slope::api {

using detail::Access;
using detail::Datum;
using detail::EngineState;
using detail::RawValue;

Value::Value(const Value& other) : table_(other.table_), slot_(other.slot_) {
  if (table_) table_->retain(slot_);
}
Value::Value(Value&& other) noexcept : table_(std::move(other.table_)), slot_(other.slot_) { other.table_.reset(); }
Value& Value::operator=(Value other) noexcept {
  std::swap(table_, other.table_);
  std::swap(slot_, other.slot_);
  return *this;
}
Value::~Value() {
  if (table_) table_->release(slot_);
}

bool Value::is_nothing() const { return !table_; }

std::string Value::type_name() const {
  if (!table_) return "Nothing";
  RawValue v = Access::raw(*this);
  return v.defined() ? to_string(v.type) : "#dead";
}

std::string Value::repr() const {
  if (!table_) return "nothing";
  if (!table_->engine()) return "#dead";
  detail::Entry entry(*table_->engine());
  return table_->engine()->runtime.show(table_->engine()->ctx, Access::raw(*this));
}

std::string Value::display() const {
  if (!table_) return "nothing";
  if (!table_->engine()) return "#dead";
  EngineState& engine = *table_->engine();
  detail::Entry entry(engine);
  RawValue v = Access::raw(*this);
  // sprint(show, PlainText(), v)
  RawValue sprint = engine.library("sprint"), plain = engine.library("PlainText");
  RawValue arguments[] = {engine.library("show"), RawValue(), v};
  RawValue text;
  if (sprint.defined() && plain.defined() && arguments[0].defined() &&
      engine.runtime.call(engine.ctx, plain, nullptr, 0, arguments[1]) &&
      engine.runtime.call(engine.ctx, sprint, arguments, 3, text) && text.type == engine.types.string)
    return std::string(static_cast<const StringObject*>(text.object)->view());
  if (engine.ctx.failed()) engine.ctx.take_error();
  return engine.runtime.show(engine.ctx, v);
}

namespace {

Error no_parts(const Value& value, const char* parts) {
  return detail::not_convertible(value, std::string("a value with ") + parts);
}

}  // namespace

bool Value::is_a(std::string_view type) const {
  if (!table_) return type == "Nothing" || type == "Any";
  RawValue v = Access::raw(*this);
  if (!v.defined()) return false;
  EngineState& engine = *table_->engine();
  detail::Entry entry(engine);
  RawValue wanted = engine.global(type);
  Value named;
  if (!wanted.defined()) {  // `Vector{Float64}`: the text of a type is a Slope expression
    Result<Value> evaluated = engine.run("<type>", std::string(type));
    if (!evaluated.ok()) return false;
    named = std::move(evaluated).value();
    wanted = Access::raw(named);
  }
  return wanted.defined() && wanted.type->is_kind &&
         is_subtype(engine.runtime.types, engine.runtime.types.dispatch_type(v), wanted.as_type);
}

Result<Value> Value::field(std::string_view name) const {
  RawValue v = Access::raw(*this);
  if (!v.defined()) return no_parts(*this, "fields");
  EngineState& engine = *table_->engine();
  detail::Entry entry(engine);
  // As the script's `v.name`, properties included.
  RawValue arguments[] = {v, engine.runtime.from_symbol(engine.runtime.symbol(name))};
  RawValue result;
  if (!engine.call_library("getproperty", arguments, 2, result)) return engine.failure();
  return Access::make(engine, result);
}

Result<Value> Value::field(std::size_t index) const {
  RawValue v = Access::raw(*this);
  if (!v.defined()) return no_parts(*this, "fields");
  EngineState& engine = *table_->engine();
  detail::Entry entry(engine);
  RawValue result;
  if (!engine.runtime.get_field(engine.ctx, v, engine.runtime.from_int(static_cast<std::int64_t>(index) + 1), result))
    return engine.failure();
  return Access::make(engine, result);
}

Result<void> Value::assign(std::string_view name, const Datum& value) const {
  RawValue v = Access::raw(*this);
  if (!v.defined()) return no_parts(*this, "fields");
  EngineState& engine = *table_->engine();
  detail::Entry entry(engine);
  RawValue arguments[] = {v, engine.runtime.from_symbol(engine.runtime.symbol(name)), RawValue()};
  RawValue ignored;
  if (!engine.to_raw(value, arguments[2]) || !engine.call_library("setproperty!", arguments, 3, ignored))
    return engine.failure();
  return {};
}

std::vector<std::string> Value::fields() const {
  std::vector<std::string> names;
  RawValue v = Access::raw(*this);
  const DataType* type = v.defined() ? as_data(v.type) : nullptr;
  if (!type) return names;
  for (const Symbol* name : type->name->field_names) names.emplace_back(name->name);
  return names;
}

Result<std::size_t> Value::size() const {
  RawValue v = Access::raw(*this);
  if (!v.defined()) return no_parts(*this, "a length");
  EngineState& engine = *table_->engine();
  detail::Entry entry(engine);
  RawValue result;
  if (!engine.call_library("length", &v, 1, result)) return engine.failure();
  if (result.type != engine.types.int64 || result.bits < 0) return no_parts(*this, "a length that is an integer");
  return static_cast<std::size_t>(result.bits);
}

Result<Value> Value::at(std::size_t index) const {
  RawValue v = Access::raw(*this);
  if (!v.defined()) return no_parts(*this, "elements");
  EngineState& engine = *table_->engine();
  detail::Entry entry(engine);
  RawValue arguments[] = {v, engine.runtime.from_int(static_cast<std::int64_t>(index) + 1)};
  RawValue result;
  if (!engine.call_library("getindex", arguments, 2, result)) return engine.failure();
  return Access::make(engine, result);
}

Result<std::vector<Value>> Value::elements() const {
  RawValue v = Access::raw(*this);
  if (!v.defined()) return no_parts(*this, "elements");
  EngineState& engine = *table_->engine();
  detail::Entry entry(engine);
  RawValue all;
  if (!engine.call_library("collect", &v, 1, all)) return engine.failure();
  if (all.type->kind != TypeKind::data || as_data(all.type)->object_kind != DataType::ObjectKind::array)
    return no_parts(*this, "elements");
  Rooted keep(engine.runtime.heap);
  keep.values.push_back(all);
  const auto* array = static_cast<const ArrayObject*>(static_cast<const void*>(all.object));
  const Type* element = array_element_type(array);
  std::vector<Value> result;
  for (std::int64_t i = 0; i < array->length; ++i)
    result.push_back(
        Access::make(engine, load_stored(engine.runtime.heap, array->data + i * array->element_size, element)));
  return result;
}

Result<Value> Value::call(const Datum* arguments, std::size_t count) const {
  RawValue callee = Access::raw(*this);
  if (!callee.defined()) return no_parts(*this, "methods");
  EngineState& engine = *table_->engine();
  detail::Entry entry(engine);
  return engine.call(callee, {arguments, count});
}

}  // namespace slope::api
