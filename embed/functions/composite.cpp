// C++ values with parts: containers, tuples, structures.
#include "embed/engine_state.hpp"
#include "slope/containers.hpp"
#include "slope/structure.hpp"

namespace slope::api::detail {

namespace {

// The parts lie on a stack that the collector sees.
class EngineBuilder final : public Builder {
 public:
  explicit EngineBuilder(EngineState& engine) : engine_(engine), parts_(engine.runtime.heap) {}

  bool push(const Datum& datum) override {
    if (datum.kind == Kind::composite) return datum.build(*this, datum.data);
    RawValue v;
    if (!engine_.to_raw(datum, v)) return false;
    parts_.values.push_back(v);
    return true;
  }
  bool tuple(std::size_t count) override { return combine(engine_.library("tuple"), count); }
  bool vector(std::size_t count, Kind kind) override;
  bool dictionary(std::size_t count, Kind key, Kind mapped) override;
  bool call(std::string_view name, std::size_t count) override {
    RawValue callee = engine_.global(name);
    if (!callee.defined())
      return engine_.ctx.raise_error("there is no `" + std::string(name) + "` in Main to make a value of");
    return combine(callee, count);
  }
  bool object(const void* object, const TypeKey* key, void* (*copy)(const void*)) override {
    if (!engine_.host_types.find(key))
      return engine_.ctx.raise_error(
          "an object of a C++ type that is no type of this engine: tell it with engine.type<T>(name) before");
    RawValue made;
    if (!engine_.host_types.wrap(engine_.host_types.add(copy(object), key), key, made)) return false;
    parts_.values.push_back(made);
    return true;
  }
  RawValue result() const { return parts_.values.back(); }

 private:
  RawValue* last(std::size_t count) { return parts_.values.data() + (parts_.values.size() - count); }
  bool combine(RawValue callee, std::size_t count) {
    RawValue made;
    return engine_.runtime.call(engine_.ctx, callee, last(count), count, made) && replace(count, made);
  }
  bool replace(std::size_t count, RawValue made) {
    parts_.values.resize(parts_.values.size() - count);
    parts_.values.push_back(made);
    return true;
  }
  RawValue type_value(Kind kind) {  // undefined where values of the kind have several types
    const Type* type = is_array(kind) || kind == Kind::nothing ? nullptr : engine_.type_for(kind);
    return type ? engine_.runtime.from_type(type) : RawValue();
  }
  ArrayObject* allocate(const Type* element, std::size_t count, RawValue& v) {
    const DataType* type = engine_.runtime.types.array_of(element, 1);
    const std::int64_t dims[] = {static_cast<std::int64_t>(count)};
    ArrayObject* array = engine_.runtime.heap.allocate_array(type, dims);
    if (array) {
      v = RawValue(type, static_cast<const void*>(array));
    } else {
      engine_.ctx.out_of_memory();
    }
    return array;
  }

  EngineState& engine_;
  Rooted parts_;
};

bool EngineBuilder::vector(std::size_t count, Kind kind) {
  const Type* known = is_array(kind) ? nullptr : engine_.type_for(kind);
  const Type* element = known && kind != Kind::nothing ? known : engine_.types.any;
  RawValue v;
  ArrayObject* array = allocate(element, count, v);
  if (!array) return false;
  const RawValue* parts = last(count);
  for (std::size_t i = 0; i < count; ++i)
    store_value(engine_.runtime.heap, array->data + i * array->element_size, element, parts[i]);
  replace(count, v);
  if (element != engine_.types.any || count == 0) return true;
  RawValue arguments[] = {engine_.library("identity"), v}, narrowed;
  return engine_.call_library("map", arguments, 2, narrowed) && replace(1, narrowed);
}

bool EngineBuilder::dictionary(std::size_t count, Kind key, Kind mapped) {
  RawValue pairs;
  ArrayObject* array = allocate(engine_.types.any, count, pairs);
  if (!array) return false;
  parts_.values.push_back(pairs);
  const RawValue pair = engine_.library("Pair");
  for (std::size_t i = 0; i < count; ++i) {
    RawValue arguments[] = {last(2 * count + 1)[2 * i], last(2 * count + 1)[2 * i + 1]}, made;
    if (!engine_.runtime.call(engine_.ctx, pair, arguments, 2, made)) return false;
    store_value(engine_.runtime.heap, array->data + i * array->element_size, engine_.types.any, made);
  }
  // Dict{K,V} where the C++ types say what that is.
  RawValue made, dictionary = engine_.library("Dict"), known[] = {type_value(key), type_value(mapped)};
  if (known[0].defined() && known[1].defined()) {
    RawValue arguments[] = {dictionary, known[0], known[1]};
    if (!engine_.call_library("apply_type", arguments, 3, dictionary)) return false;
  }
  return engine_.runtime.call(engine_.ctx, dictionary, &pairs, 1, made) && replace(2 * count + 1, made);
}

}  // namespace

bool build_composite(EngineState& engine, const Datum& datum, RawValue& v) {
  EngineBuilder builder(engine);
  if (!builder.push(datum)) return false;
  v = builder.result();
  return true;
}

bool own_arrays(EngineState& engine, RawValue& v, int depth) {
  constexpr int deepest = 32;
  const DataType* type = as_data(v.type);
  if (depth > deepest || !type || (type->storage != Storage::reference && type->storage != Storage::aggregate))
    return true;
  if (type->object_kind == DataType::ObjectKind::array) {
    const auto* array = static_cast<const ArrayObject*>(static_cast<const void*>(v.object));
    return !(array->flags & array_borrowed) || engine.call_library("copy", &v, 1, v);
  }
  if (type->is_mutable || type->object_kind != DataType::ObjectKind::fields) return true;
  const TraceMap& map = engine.runtime.types.trace_map(type);
  if (map.references.empty() && map.values.empty()) return true;
  Rooted parts(engine.runtime.heap);
  bool changed = false;
  for (const Field& field : type->fields) {
    RawValue part = load_field(engine.runtime.heap, v.object, field);
    const RawValue before = part;
    if (part.defined() && !own_arrays(engine, part, depth + 1)) return false;
    changed = changed || !part.identical(before);
    parts.values.push_back(part);
  }
  return !changed || engine.runtime.new_object(engine.ctx, type, parts.values.data(), parts.values.size(), v);
}

bool CharacterCrossing::build(Builder& builder, std::uint32_t code, bool is_ascii) {
  if (is_ascii && code > 127)
    return builder.push(Datum::of_text("a char above 127 is no character by itself: give a char32_t or a text")) &&
           builder.call("error", 1);
  return builder.push(Crossing<std::uint32_t>::give(code)) && builder.call("Char", 1);
}

bool CharacterCrossing::read(const api::Value& value, std::uint32_t& code, Error& error) {
  const HandleTable* table = Access::table(value);
  if (table && table->engine()) {
    EngineState& engine = *table->engine();
    Entry entry(engine);
    RawValue v = Access::raw(value), found = v;
    if (v.type == engine.types.character && !engine.call_library("codepoint", &v, 1, found)) {
      error = engine.failure();
      return false;
    }
    Datum datum;
    api::Value holder;
    if (engine.from_raw(found, Kind::integer, datum, holder, error) && Crossing<std::uint32_t>::take(datum, code))
      return true;
  }
  error = not_convertible(value, "a Char");
  return false;
}

Error CharacterCrossing::not_ascii(const api::Value& value) {
  return engine_error(
      "the character " + value.repr() + " is not one of ASCII, and no char: take a char32_t or a std::string",
      ErrorKind::conversion);
}

Kind kind_of(const api::Value& value) {
  const HandleTable* table = Access::table(value);
  if (!table) return Kind::composite;  // nothing: an optional, or std::monostate
  RawValue v = Access::raw(value);
  if (!v.defined()) return Kind::any;
  EngineState& engine = *table->engine();
  auto is = [&](const Type* type) {
    return is_subtype(engine.runtime.types, engine.runtime.types.dispatch_type(v), type);
  };
  if (v.type == engine.types.boolean) return Kind::boolean;
  if (is(engine.types.integer)) return Kind::integer;
  if (is(engine.types.real)) return Kind::number;
  if (v.type == engine.types.string || v.type == engine.types.symbol) return Kind::text;
  if (v.type == engine.float_vector) return Kind::numbers;
  return Kind::composite;
}

Error not_convertible(const api::Value& value, const std::string& wanted) {
  const HandleTable* table = Access::table(value);
  if (table && !table->engine()) return engine_error("a value whose engine is gone");
  const std::string found = table ? table->engine()->describe(Access::raw(value)) : "nothing";
  return engine_error("expected " + wanted + ", found " + found, ErrorKind::conversion);
}

// An error of a script in between is told without its trace, which is the library's.
Error inside(Error error, const std::string& where) {
  if (error.kind == ErrorKind::runtime) error.message = error.summary;
  error.message = where + ": " + error.message;
  error.summary = where + ": " + error.summary;
  return error;
}

const char* declared_type(Kind kind) {
  switch (kind) {
    case Kind::boolean:
      return "Bool";
    case Kind::integer:
    case Kind::large:
      return "Int64";
    case Kind::number:
      return "Float64";
    case Kind::text:
      return "String";
    case Kind::numbers:
      return "Vector{Float64}";
    case Kind::nothing:
    case Kind::any:
    case Kind::composite:
    case Kind::keyword:
      break;
  }
  return "Any";
}

std::string structure_text(const char* name, const std::pair<const char*, Kind>* fields, std::size_t count) {
  std::string text = std::string("struct ") + name + "\n";
  for (std::size_t i = 0; i < count; ++i)
    text += std::string("    ") + fields[i].first + "::" + declared_type(fields[i].second) + "\n";
  return text + "end\n";
}

}  // namespace slope::api::detail
