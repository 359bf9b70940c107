// The C interface: signatures, and what crosses by them.
#include <array>

#include "embed/c/c_api.hpp"

namespace slope::api::c {

using detail::Datum;
using detail::Kind;

namespace {

constexpr const char* words[] = {"nothing", "boolean", "integer", "number", "text", "numbers", "value"};
constexpr const char* layouts[] = {"array", "rows", "strided"};  // in the order of api::Layout

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "numbers", "array2", "mutable strided3"
bool kind_named(std::string_view name, Kind& kind) {
  for (std::size_t i = 0; i < std::size(words); ++i) {
    kind = static_cast<Kind>(i);
    if (name == words[i]) return true;
  }
  constexpr std::string_view prefix = "mutable ";
  const bool writable = name.starts_with(prefix);
  if (writable) name = trimmed(name.substr(prefix.size()));
  if (writable && name == words[static_cast<int>(Kind::numbers)]) {
    kind = detail::array_kind(1, 0, true);
    return true;
  }
  if (name.empty() || name.back() < '1' || name.back() > '7') return false;
  const auto dimensions = static_cast<std::size_t>(name.back() - '0');
  name.remove_suffix(1);
  for (unsigned layout = 0; layout < std::size(layouts); ++layout) {
    if (name != layouts[layout]) continue;
    kind = detail::array_kind(dimensions, layout, writable);
    return true;
  }
  return false;
}

bool is_shaped(Kind kind) { return detail::is_array(kind) && kind != Kind::numbers; }

// The shape and strides of an array argument as the signature wants them.
bool to_extents(const slope_view& view, Kind wanted, std::size_t* extents, std::size_t& size, std::string& why) {
  const std::size_t n = detail::dimensions_of(wanted);
  if (view.dimensions != n) {
    why = "expected an array of " + std::to_string(n) + (n == 1 ? " dimension" : " dimensions") + ", found " +
          std::to_string(view.dimensions);
    return false;
  }
  bool given = false;
  for (std::size_t k = 0; k < n; ++k) given = given || view.strides[k] != 0;
  const unsigned layout = detail::layout_of(wanted);
  size = 1;
  bool empty = false, wraps = false;
  for (std::size_t k = 0; k < n; ++k) empty = empty || view.shape[k] == 0;
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t d = layout == 1 ? n - 1 - k : k;
    extents[d] = view.shape[d];
    extents[n + d] = layout == 2 && given ? view.strides[d] : size;
    if (given && layout != 2 && view.strides[d] != size && view.shape[d] > 1) {
      why = "stride " + std::to_string(d + 1) + " of `" + word(wanted) + "`: expected " + std::to_string(size) +
            ", found " + std::to_string(view.strides[d]);
      return false;
    }
    wraps = __builtin_mul_overflow(size, view.shape[d], &size) || size > detail::most_numbers || wraps;
  }
  if (empty || !wraps) return true;
  why = "the array has more elements than memory can hold";
  return false;
}

bool is_given(const void* memory, std::size_t size, std::string& why) {
  if (memory || size == 0) return true;
  why = "the memory is NULL, its size " + std::to_string(size);
  return false;
}

// `extents`: the memory for them.
bool to_array(const slope_view& view, Kind wanted, std::size_t* extents, Datum& datum, std::string& why) {
  datum = Datum();
  if (!to_extents(view, wanted, extents, datum.size, why) || !is_given(view.data, datum.size, why)) return false;
  datum.kind = wanted;
  datum.data = view.data;
  datum.extents = extents;
  return true;
}

}  // namespace

std::string word(Kind kind) {
  if (static_cast<std::size_t>(kind) < std::size(words)) return words[static_cast<std::size_t>(kind)];
  const std::string name = layouts[detail::layout_of(kind)] + std::to_string(detail::dimensions_of(kind));
  return (detail::is_writable(kind) ? "mutable " : "") + name;
}

bool parse_signature(std::string_view text, const slope_engine* types, Signature& made, std::string& why) {
  auto fail = [&](std::string_view found) {
    why =
        "expected a signature such as `number(numbers, integer)`, of the words nothing, boolean, integer, number, "
        "text, numbers, value, array2 and so on" +
        std::string(types ? ", and names of types of the host" : "") + "; found `" + std::string(found) + "`";
    return false;
  };
  auto named = [&](std::string_view name, Kind& kind, const slope_type*& object) {
    object = nullptr;
    if (kind_named(name, kind)) return true;
    if (!types) return false;
    const auto known = types->types->find(std::string(name));
    if (known == types->types->end()) return false;
    object = known->second.get();
    kind = Kind::integer;  // its place
    return true;
  };
  text = trimmed(text);
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos || text.back() != ')') return fail(text);
  const slope_type* result = nullptr;
  if (!named(trimmed(text.substr(0, open)), made.result, result)) return fail(trimmed(text.substr(0, open)));
  std::string_view rest = text.substr(open + 1);
  rest.remove_suffix(1);
  while (!trimmed(rest).empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view name = trimmed(rest.substr(0, comma));
    Kind kind;
    const slope_type* object = nullptr;
    if (!named(name, kind, object) || kind == Kind::nothing) return fail(name);
    made.parameters.push_back(kind);
    made.objects.push_back(object);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
    if (trimmed(rest).empty()) return fail("");
  }
  made.objects.push_back(result);
  return true;
}

bool to_datum(const slope_argument& argument, Datum& datum, std::string& why) {
  datum = Datum();
  switch (argument.kind) {
    case SLOPE_NOTHING:
      return true;
    case SLOPE_BOOLEAN:
      datum.integer = argument.as.integer != 0;
      break;
    case SLOPE_INTEGER:
      datum.integer = argument.as.integer;
      break;
    case SLOPE_NUMBER:
      datum.number = argument.as.number;
      break;
    case SLOPE_TEXT:
      datum.data = argument.as.text;
      datum.size = argument.size;
      if (!is_given(datum.data, datum.size, why)) return false;
      break;
    case SLOPE_NUMBERS:
      datum.data = argument.as.numbers;
      datum.size = argument.size;
      if (!is_given(datum.data, datum.size, why)) return false;
      break;
    case SLOPE_VALUE:
      if (!argument.as.value) {
        why = "a value argument is NULL";
        return false;
      }
      datum.data = &argument.as.value->value;
      break;
    case SLOPE_ARRAY: {
      const slope_view* view = argument.as.view;
      if (!view || view->dimensions < 1 || view->dimensions > SLOPE_MOST_DIMENSIONS) {
        why = "an array argument has from 1 to 7 dimensions";
        return false;
      }
      std::size_t extents[2 * SLOPE_MOST_DIMENSIONS];
      const Kind plain =
          view->dimensions == 1 ? detail::array_kind(1, 0, true) : detail::array_kind(view->dimensions, 0, false);
      if (!to_extents(*view, plain, extents, datum.size, why)) return false;
      if (!is_given(view->data, datum.size, why)) return false;
      datum.kind = view->dimensions == 1 ? Kind::numbers : plain;
      datum.data = view->data;
      if (view->dimensions > 1) datum.extents = view->shape;
      return true;
    }
    case SLOPE_OBJECT:
      why = "objects of the host come from its constructors, or slope_object_new";
      return false;
    default:
      why = "an argument of unknown kind " + std::to_string(static_cast<int>(argument.kind));
      return false;
  }
  datum.kind = static_cast<Kind>(argument.kind);
  return true;
}

bool check_arguments(const std::vector<Kind>& parameters, const slope_argument* arguments, std::size_t count,
                     Given& given, std::string& why) {
  if (count != parameters.size()) {
    why = "expected " + std::to_string(parameters.size()) + " arguments, found " + std::to_string(count);
    return false;
  }
  if (count != 0 && !arguments) {
    why = "the arguments are NULL";
    return false;
  }
  for (std::size_t i = 0; i < count; ++i) {
    Datum& datum = given.data[i];
    const Kind wanted = parameters[i];
    const std::string at = "argument " + std::to_string(i + 1) + ": ";
    if (is_shaped(wanted) && arguments[i].kind == SLOPE_ARRAY && arguments[i].as.view) {
      if (to_array(*arguments[i].as.view, wanted, given.extents[i].data(), datum, why)) continue;
      why = at + why;
      return false;
    }
    if (!to_datum(arguments[i], datum, why)) {
      why = at + why;
      return false;
    }
    if (datum.kind == Kind::integer && wanted == Kind::number) {
      const auto number = static_cast<double>(datum.integer);
      datum.kind = Kind::number;
      datum.number = number;
    }
    if (datum.kind == Kind::numbers && wanted == detail::array_kind(1, 0, true)) datum.kind = wanted;
    if (datum.kind != wanted) {
      why = at + "expected " + word(wanted) + ", found " + word(datum.kind);
      return false;
    }
  }
  return true;
}

bool to_tangents(const std::vector<Kind>& parameters, const slope_argument* tangents,
                 std::vector<detail::TangentGiven>& given, Given& memory, std::string& why) {
  given.resize(parameters.size() + 1);
  if (!parameters.empty() && !tangents) {
    why = "the tangents are NULL";
    return false;
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Datum& tangent = given[i].datum;
    const Kind wanted = parameters[i];
    const bool shaped = is_shaped(wanted) && tangents[i].kind == SLOPE_ARRAY && tangents[i].as.view;
    const Kind read =
        shaped ? detail::array_kind(detail::dimensions_of(wanted), detail::layout_of(wanted), false) : wanted;
    if (shaped ? !to_array(*tangents[i].as.view, read, memory.extents[i].data(), tangent, why)
               : !to_datum(tangents[i], tangent, why)) {
      why = "tangent " + std::to_string(i + 1) + ": " + why;
      return false;
    }
    if (tangent.kind == Kind::integer && wanted == Kind::number) {
      const auto number = static_cast<double>(tangent.integer);
      tangent.kind = Kind::number;
      tangent.number = number;
    }
    if (tangent.kind == Kind::nothing || tangent.kind == Kind::number || detail::is_array(tangent.kind)) continue;
    why = "tangent " + std::to_string(i + 1) + ": expected number, numbers, an array or nothing, found " +
          word(tangent.kind);
    return false;
  }
  return true;
}

void from_datum(const Datum& datum, slope_argument& result, slope_view& view) {
  result.kind = static_cast<slope_kind>(datum.kind);
  result.size = 0;
  switch (datum.kind) {
    case Kind::number:
      result.as.number = datum.number;
      return;
    case Kind::text:
      result.as.text = static_cast<const char*>(datum.data);
      result.size = datum.size;
      return;
    case Kind::numbers:
      result.as.numbers = static_cast<const double*>(datum.data);
      result.size = datum.size;
      return;
    case Kind::any:
    case Kind::composite:
      result.kind = SLOPE_VALUE;
      result.as.value = new slope_value{*static_cast<const Value*>(datum.data), {}, {}, {}, {}};
      return;
    default:
      break;
  }
  if (!detail::is_array(datum.kind)) {
    result.as.integer = datum.integer;
    return;
  }
  view = slope_view{};
  view.data = static_cast<double*>(const_cast<void*>(datum.data));
  view.dimensions = detail::dimensions_of(datum.kind);
  std::size_t step = 1;
  for (std::size_t k = 0; k < view.dimensions; ++k) {
    view.shape[k] = datum.extents ? datum.extents[k] : datum.size;
    view.strides[k] = step;
    step *= view.shape[k];
  }
  result.kind = SLOPE_ARRAY;
  result.as.view = &view;
  result.size = view.dimensions;
}

std::vector<detail::GradientTarget> gradient_targets(const std::vector<Kind>& parameters, const Given& given,
                                                     const slope_array* places) {
  std::vector<detail::GradientTarget> targets(parameters.size() + 1);
  for (std::size_t i = 0; places && i < parameters.size(); ++i) {
    if (!places[i].data) continue;
    targets[i] = detail::GradientTarget(std::span<double>(places[i].data, places[i].size));
    if (!is_shaped(parameters[i])) continue;
    targets[i].kind = parameters[i];
    targets[i].extents = given.data[i].extents;
  }
  return targets;
}

}  // namespace slope::api::c
