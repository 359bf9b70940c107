// C++ values to Slope values and back.
#include <cstring>

#include "embed/engine_state.hpp"
#include "lang/runtime/text_value.hpp"
#include "slope/array.hpp"

namespace slope::api::detail {

namespace {

bool is_a(EngineState& engine, RawValue v, const Type* type) {
  return is_subtype(engine.runtime.types, engine.runtime.types.dispatch_type(v), type);
}

// A primitive integer as 64 bits; the payload is zero-extended. False: it does not fit.
bool integer_of(EngineState& engine, RawValue v, std::int64_t& n) {
  const BuiltinTypes& types = engine.types;
  const DataType* t = as_data(v.type);
  if (t == types.boolean || is_a(engine, v, types.unsigned_)) {
    n = v.bits;
    return t->size < 8 || n >= 0;
  }
  unsigned shift = 64 - 8 * t->size;
  n = static_cast<std::int64_t>(static_cast<std::uint64_t>(v.bits) << shift) >> shift;
  return true;
}

bool is_primitive_integer(EngineState& engine, RawValue v) {
  const DataType* t = as_data(v.type);
  return t && t->name->is_primitive && is_a(engine, v, engine.types.integer);
}

void view_numbers(RawValue v, Kind kind, Datum& datum) {
  static_assert(sizeof(std::size_t) == sizeof(std::int64_t));
  auto* array = static_cast<const ArrayObject*>(static_cast<const void*>(v.object));
  datum = Datum::of_numbers(reinterpret_cast<const double*>(array->data), static_cast<std::size_t>(array->length));
  datum.kind = kind;
  if (kind != Kind::numbers) datum.extents = reinterpret_cast<const std::size_t*>(dims_of(array));
}

// The elements in Slope's order.
void copy_elements(const Datum& from, double* to) {
  const std::size_t n = dimensions_of(from.kind);
  const auto* data = static_cast<const double*>(from.data);
  if (from.size == 0) return;
  if (layout_of(from.kind) == static_cast<unsigned>(Layout::column_major) || !from.extents) {
    std::memcpy(to, data, from.size * sizeof(double));
    return;
  }
  std::size_t index[7] = {};
  for (std::size_t i = 0; i < from.size; ++i) {
    std::size_t at = 0;
    for (std::size_t k = 0; k < n; ++k) at += index[k] * from.extents[n + k];
    to[i] = data[at];
    for (std::size_t k = 0; k < n && ++index[k] == from.extents[k]; ++k) index[k] = 0;
  }
}

}  // namespace

const char* wanted(Kind kind) {
  switch (kind) {
    case Kind::boolean:
      return "a Bool";
    case Kind::integer:
    case Kind::large:
      return "an integer";
    case Kind::number:
      return "a real number";
    case Kind::text:
      return "a String";
    case Kind::numbers:
      return "a vector of real numbers";
    case Kind::nothing:
    case Kind::any:
    case Kind::composite:
    case Kind::keyword:
      break;
  }
  static constexpr const char* arrays[] = {
      "a value",
      "a vector of real numbers",
      "a matrix of real numbers",
      "an array of real numbers with 3 dimensions",
      "an array of real numbers with 4 dimensions",
      "an array of real numbers with 5 dimensions",
      "an array of real numbers with 6 dimensions",
      "an array of real numbers with 7 dimensions",
  };
  return arrays[is_array(kind) ? dimensions_of(kind) : 0];
}

const Type* EngineState::type_for(Kind kind) const {
  switch (kind) {
    case Kind::nothing:
      return types.nothing;
    case Kind::boolean:
      return types.boolean;
    case Kind::integer:
    case Kind::large:
      return types.int64;
    case Kind::number:
      return types.float64;
    case Kind::text:
      return types.string;
    case Kind::numbers:
      return float_vector;
    case Kind::any:
    case Kind::composite:
    case Kind::keyword:
      break;
  }
  return is_array(kind) ? float_arrays[dimensions_of(kind)] : nullptr;
}

std::string EngineState::describe(RawValue v) {
  if (!v.defined() || v.type == types.nothing) return "nothing";
  std::string name = to_string(v.type);
  bool vowel = std::strchr("AEIOaeio", name[0]) != nullptr;
  return (vowel ? "an " : "a ") + name;
}

bool EngineState::to_raw(const Datum& datum, RawValue& v) {
  if (is_array(datum.kind)) {
    if (!is_memory(datum.data, datum.size))
      return ctx.argument_error("an array at no address, or of more elements than memory can hold");
    const std::size_t n = dimensions_of(datum.kind);
    std::array<std::int64_t, 7> dims;
    for (std::size_t k = 0; k < n; ++k)
      dims[k] = static_cast<std::int64_t>(datum.extents ? datum.extents[k] : datum.size);
    ArrayObject* array = runtime.heap.allocate_array(float_arrays[n], {dims.data(), n});
    if (!array) return ctx.out_of_memory();
    copy_elements(datum, reinterpret_cast<double*>(array->data));
    v = RawValue(float_arrays[n], static_cast<const void*>(array));
    return true;
  }
  switch (datum.kind) {
    case Kind::nothing:
      v = runtime.nothing();
      return true;
    case Kind::boolean:
      v = runtime.from_bool(datum.integer != 0);
      return true;
    case Kind::integer:
      v = runtime.from_int(datum.integer);
      return true;
    case Kind::large:
      v = RawValue(types.uint64, datum.integer);
      return true;
    case Kind::number:
      v = runtime.from_float(datum.number);
      return true;
    case Kind::text: {
      v = runtime.from_string(datum.text());
      return v.defined() || ctx.out_of_memory();
    }
    case Kind::any: {
      const auto& handle = *static_cast<const api::Value*>(datum.data);
      const HandleTable* table = Access::table(handle);
      if (table && table != handles.get())
        return ctx.argument_error(table->engine() ? "a value of another engine" : "a value whose engine is gone");
      v = table ? Access::raw(handle) : runtime.nothing();
      return true;
    }
    case Kind::composite:
      return build_composite(*this, datum, v);
    case Kind::keyword:
      return ctx.argument_error("slope::keyword stands among the arguments of Engine::call and of calls of a Value");
    case Kind::numbers:
      break;
  }
  return false;
}

bool EngineState::from_raw(RawValue v, Kind kind, Datum& datum, api::Value& holder, Error& error) {
  datum = Datum();
  datum.kind = kind;
  if (!v.defined()) v = runtime.nothing();
  auto mismatch = [&] {
    error = engine_error(std::string("expected ") + wanted(kind) + ", found " + describe(v), ErrorKind::conversion);
    return false;
  };
  switch (kind) {
    case Kind::nothing:
      return true;
    case Kind::any:
    case Kind::composite:
      holder = Access::make(*this, v);
      datum.data = &holder;
      return true;
    case Kind::boolean:
      datum.integer = v.bits;
      return v.type == types.boolean || mismatch();
    case Kind::integer:
    case Kind::large: {
      if (!is_primitive_integer(*this, v)) return mismatch();
      const bool is_word = integer_of(*this, v, datum.integer);
      datum.kind = is_word ? Kind::integer : Kind::large;
      return is_word || kind == Kind::large || mismatch();
    }
    case Kind::number:
      if (v.type == types.float64) {
        datum.number = v.float64;
        return true;
      }
      if (v.type == types.float32) {
        datum.number = static_cast<double>(v.float32);
        return true;
      }
      if (is_primitive_integer(*this, v)) {
        std::int64_t n = 0;
        bool fits = integer_of(*this, v, n);
        datum.number = fits ? static_cast<double>(n) : static_cast<double>(static_cast<std::uint64_t>(v.bits));
        return true;
      }
      if (is_a(*this, v, types.real)) {
        RawValue arguments[] = {runtime.from_type(types.float64), v};
        RawValue converted;
        if (call_library("convert", arguments, 2, converted) && converted.type == types.float64) {
          datum.number = converted.float64;
          return true;
        }
        if (ctx.failed()) ctx.take_error();
      }
      return mismatch();
    case Kind::text:
      if (std::string_view text; bytes_of_text(runtime, v, text)) {
        datum = Datum::of_text(text);
      } else if (v.type == types.symbol) {
        datum = Datum::of_text(v.symbol->name);
      } else if (RawValue text; v.type == types.character && call_library("string", &v, 1, text)) {
        v = text;
        datum = Datum::of_text(static_cast<const StringObject*>(v.object)->view());
      } else {
        return mismatch();
      }
      holder = Access::make(*this, v);
      return true;
    case Kind::numbers:
    case Kind::keyword:
      break;
  }
  if (!is_array(kind)) return mismatch();
  const Type* wanted_type = type_for(kind);
  if (v.type != wanted_type) {
    RawValue elements = v;  // of what is no array, but can be iterated: a tuple, a generator, a set
    Rooted keep(runtime.heap);
    const bool can_be =
        is_a(*this, v, types.abstract_array) || (kind == Kind::numbers && !is_a(*this, v, types.number) &&
                                                 v.type != types.string && call_library("collect", &v, 1, elements));
    keep.values.push_back(elements);
    RawValue arguments[] = {runtime.from_type(wanted_type), elements};
    RawValue converted;
    if (can_be && call_library("convert", arguments, 2, converted)) v = converted;
    if (ctx.failed()) ctx.take_error();
  }
  if (v.type != wanted_type) return mismatch();
  view_numbers(v, kind, datum);
  holder = Access::make(*this, v);
  return true;
}

bool convert_value(const api::Value& value, Kind kind, Datum& datum, api::Value& holder, Error& error) {
  const HandleTable* table = Access::table(value);
  if (!table) {
    datum = Datum();
    datum.kind = kind;
    if (kind == Kind::any || kind == Kind::composite) {
      holder = value;
      datum.data = &holder;
    } else if (kind != Kind::nothing) {
      error = engine_error(std::string("expected ") + wanted(kind) + ", found nothing", ErrorKind::conversion);
      return false;
    }
    return true;
  }
  if (!table->engine()) {
    error = engine_error("a value whose engine is gone");
    return false;
  }
  EngineState& engine = *table->engine();
  Entry entry(engine);
  return engine.from_raw(Access::raw(value), kind, datum, holder, error);
}

Error does_not_fit(const Datum& d, std::size_t bytes, bool is_signed) {
  return engine_error(
      "the integer " +
          (d.kind == Kind::large ? std::to_string(static_cast<std::uint64_t>(d.integer)) : std::to_string(d.integer)) +
          " is outside the range of the C++ type of " + std::to_string(8 * bytes) +
          (is_signed ? " bits" : " bits without sign"),
      ErrorKind::conversion);
}

}  // namespace slope::api::detail
