#include "tools/build/exports.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include "lang/infer/infer.hpp"

namespace slope::api::tools::ahead {

using detail::EngineState;
using detail::RawValue;

const char* c_type(const Type* number, const BuiltinTypes& types) {
  if (number == types.float64) return "double";
  if (number == types.float32) return "float";
  if (number == types.int64) return "int64_t";
  if (number == types.int32) return "int32_t";
  if (number == types.int16) return "int16_t";
  if (number == types.int8) return "int8_t";
  if (number == types.uint64) return "uint64_t";
  if (number == types.uint32) return "uint32_t";
  if (number == types.uint16) return "uint16_t";
  if (number == types.uint8) return "uint8_t";
  if (number == types.boolean) return "bool";
  return nullptr;
}

bool is_float_array(const Type* type, const BuiltinTypes& types) {
  const DataType* data = as_data(type);
  return data && data->object_kind == DataType::ObjectKind::array &&
         (data->params[0] == types.float64 || data->params[0] == types.float32);
}

namespace {

std::string trimmed(std::string text) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), space));
  text.erase(std::find_if_not(text.rbegin(), text.rend(), space).base(), text.end());
  return text;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  int depth = 0;
  std::string part;
  for (char c : text) {
    if (c == '(' || c == '{' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == ']') --depth;
    if (c == ',' && depth == 0) {
      parts.push_back(trimmed(std::exchange(part, {})));
    } else {
      part += c;
    }
  }
  if (!trimmed(part).empty()) parts.push_back(trimmed(part));
  return parts;
}

// A C identifier like the name; others get letters for what C has not.
std::string c_name(const std::string& name) {
  static const std::set<std::string> taken{
      "auto",     "bool",  "break",    "case",    "char",   "const",    "continue", "default", "do",
      "double",   "else",  "enum",     "extern",  "float",  "for",      "goto",     "if",      "inline",
      "int",      "long",  "return",   "short",   "signed", "sizeof",   "static",   "struct",  "switch",
      "typedef",  "union", "unsigned", "void",    "while",  "register", "class",    "new",     "delete",
      "template", "this",  "public",   "private", "value",  "work",     "work_size"};
  std::string made;
  for (char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') made += c;
  if (made.empty() || std::isdigit(static_cast<unsigned char>(made[0]))) made.insert(0, "x");
  return taken.contains(made) ? made + "_" : made;
}

bool describe(const Type* type, const BuiltinTypes& types, Datum& datum) {
  datum.type = type;
  if (c_type(type, types)) return true;
  const DataType* array = as_data(type);
  if (!array || !array->is_concrete || array->object_kind != DataType::ObjectKind::array || array->params.size() != 2)
    return false;
  const ValueType* rank = as_value(array->params[1]);
  if (!rank || rank->value.bits < 1 || rank->value.bits > 8) return false;
  datum.element = array->params[0];
  datum.rank = static_cast<int>(rank->value.bits);
  return c_type(datum.element, types) != nullptr;
}

std::string listed(std::size_t count, const std::string& prefix) {
  std::string text;
  for (std::size_t i = 1; i <= count; ++i) text += (i > 1 ? ", " : "") + prefix + std::to_string(i);
  return text;
}

std::string tuple_of(std::size_t count, const std::string& prefix) {
  return "(" + listed(count, prefix) + (count == 1 ? ",)" : ")");
}

std::string parameters(const std::vector<Datum>& arguments, const std::string& prefix) {
  std::string text;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    text += (i > 0 ? ", " : "") + prefix + std::to_string(i + 1) + "::" + to_string(arguments[i].type);
  return text;
}

bool carries_derivative(const Datum& argument) {
  return to_string(argument.is_array() ? argument.element : argument.type).starts_with("Float");
}

constexpr const char* no_floats = "no argument is a floating-point number or an array of them";

// The function of its floating-point arguments alone, `y1` and so on, and these arguments and their directions as tuples.
// `as_arrays`: numbers become vectors of one element.
struct OfFloats {
  std::string function, point, direction;
  std::vector<std::size_t> which;  // of the arguments
};

// Adds an argument `v…` for each direction.
OfFloats of_floats(const Export& of, bool as_arrays, std::vector<Datum>& arguments, std::string& parameters) {
  OfFloats made;
  std::string inner, outer;
  for (std::size_t i = 0; i < of.arguments.size(); ++i) {
    const Datum& argument = of.arguments[i];
    const std::string which = std::to_string(i + 1);
    const std::string comma = i > 0 ? ", " : "";
    if (!carries_derivative(argument)) {
      inner += comma + "x" + which;
      continue;
    }
    const bool wraps = as_arrays && !argument.is_array();
    inner += comma + "y" + which + (wraps ? "[1]" : "");
    outer += (outer.empty() ? "y" : ", y") + which;
    made.point += wraps ? "[x" + which + "], " : "x" + which + ", ";
    made.direction += wraps ? "[v" + which + "], " : "v" + which + ", ";
    made.which.push_back(i);
    Datum direction = argument;
    direction.name = argument.name + "_direction";
    arguments.push_back(direction);
    parameters += ", v" + which + "::" + to_string(argument.type);
  }
  if (made.which.size() > 1) outer = "(" + outer + ")";
  made.function = outer + " -> " + of.callee + "(" + inner + ")";
  made.point = "(" + made.point + ")";
  made.direction = "(" + made.direction + ")";
  return made;
}

// Statements that copy an array into memory of the caller.
std::string copying(const std::string& from, const std::string& to) {
  return "  size(" + from + ") == size(" + to + ") || throw(DimensionMismatch(\"the result has another size\"))\n" +
         "  for i in 1:length(" + from + ")\n    " + to + "[i] = " + from + "[i]\n  end\n";
}

bool is_array_type(const Type* type) {
  const DataType* data = as_data(type);
  return data && data->object_kind == DataType::ObjectKind::array;
}

Datum result_datum(const Type* type, std::string name) {
  Datum made;
  made.type = type;
  if (is_array_type(type)) {
    made.element = as_data(type)->params[0];
    made.rank = static_cast<int>(as_value(as_data(type)->params[1])->value.bits);
  }
  made.name = std::move(name);
  made.is_result = true;
  return made;
}

std::string wrapper_name(const char* kind, std::size_t number) {
  return std::string("__slope_build_") + kind + "_" + std::to_string(number);
}

}  // namespace

std::string resolve(EngineState& engine, const std::string& text, Export& found) {
  found.text = text;
  const std::size_t open = text.find('(');
  if (open == std::string::npos || text.back() != ')')
    return "`" + text + "` is no function with types: write `f(::Vector{Float64}, n::Int64)`";
  found.callee = trimmed(text.substr(0, open));
  Result<api::Value> function = engine.run("<export>", found.callee);
  if (!function.ok()) return "`" + found.callee + "` is not defined by the script";
  const RawValue callee = detail::Access::raw(function.value());
  std::vector<const Type*> types{engine.runtime.is_type_value(callee) ? engine.runtime.types.type_of_constant(callee)
                                                                      : callee.type};
  std::vector<std::string> names;
  for (const std::string& part : split_at_commas(text.substr(open + 1, text.size() - open - 2))) {
    const std::size_t colons = part.find("::");
    if (colons == std::string::npos) return "`" + part + "` has no type: write `x::Float64` or `::Float64`";
    const std::string wanted = trimmed(part.substr(colons + 2));
    Result<api::Value> type = engine.run("<export>", wanted);
    if (!type.ok()) return "`" + wanted + "` is no type";
    const RawValue v = detail::Access::raw(type.value());
    if (!engine.runtime.is_type_value(v)) return "`" + wanted + "` is no type";
    Datum datum;
    if (!describe(v.as_type, engine.types, datum))
      return "an argument of type `" + wanted +
             "` has no form in C: take numbers, and arrays of numbers with their dimensions (`Matrix{Float64}`)";
    names.push_back(trimmed(part.substr(0, colons)));
    types.push_back(v.as_type);
    found.arguments.push_back(datum);
  }
  detail::Entry entry(engine);
  const CollectionPause pause(engine.runtime.heap);
  const DataType* call = engine.runtime.types.tuple(types);
  found.target = engine.runtime.lookup_specialization(call, engine.ctx.world);
  if (!found.target) return "no method of `" + found.callee + "` takes arguments of these types";
  std::set<std::string> used;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& declared = found.target->method->arg_names;
    std::string name = names[i];
    if (name.empty() && i + 1 < declared.size() && declared[i + 1]) name = declared[i + 1]->name;
    name = c_name(name);
    if (!used.insert(name).second) name += "_" + std::to_string(i + 1);
    used.insert(name);
    found.arguments[i].name = name;
  }
  found.symbol = c_name(found.callee.substr(found.callee.rfind('.') + 1));
  found.position = engine.position_of(found.target->method->span);
  found.result = engine.pipeline->return_type(engine.ctx, call);
  if (engine.ctx.failed()) engine.ctx.take_error();
  Datum result;
  if (found.result && found.result != engine.types.nothing && !describe(found.result, engine.types, result))
    return "`" + found.callee + "` returns a value of type `" + to_string(found.result) +
           "`, which has no form in C: return a number or an array of numbers";
  if (!found.result) return "the result's type of `" + found.callee + "` cannot be inferred";
  return {};
}

std::string value_function(const Export& of, std::size_t number, CFunction& made) {
  made.symbol = of.symbol;
  made.wrapper = wrapper_name("value", number);
  made.arguments = of.arguments;
  const std::size_t n = of.arguments.size();
  const std::string call = of.callee + "(" + listed(n, "x") + ")";
  made.text = "function " + made.wrapper + "(" + parameters(of.arguments, "x");
  if (is_array_type(of.result)) {
    made.arguments.push_back(result_datum(of.result, "value"));
    made.meaning = "The value, whose size must be that of the memory for it.";
    made.text += (n > 0 ? ", " : "") + std::string("value::") + to_string(of.result) + ")\n  y = " + call + "\n" +
                 copying("y", "value") + "  nothing\nend\n";
    return {};
  }
  made.text += ")\n  " + call + "\nend\n";
  if (to_string(of.result) == "Nothing") return {};
  made.results.push_back(result_datum(of.result, "value"));
  return {};
}

std::string gradient_function(const Export& of, std::size_t number, CFunction& made) {
  made.symbol = of.symbol + "_gradient";
  made.wrapper = wrapper_name("gradient", number);
  made.meaning = "The value and the derivatives with respect to all floating-point arguments.";
  made.arguments = of.arguments;
  made.results.push_back(result_datum(of.result, "value"));
  std::string targets, numbers, parameters_of_targets;
  const std::size_t n = of.arguments.size();
  for (std::size_t i = 0; i < n; ++i) {
    const Datum& argument = of.arguments[i];
    const std::string which = std::to_string(i + 1);
    const bool is_float = carries_derivative(argument);
    targets += (i > 0 ? ", " : "") + (is_float && argument.is_array() ? "g" + which : std::string("nothing"));
    if (!is_float) continue;
    Datum derivative = argument;
    derivative.name = argument.name + "_gradient";
    derivative.is_result = true;
    if (argument.is_array()) {
      parameters_of_targets += ", g" + which + "::" + to_string(argument.type);
      made.arguments.push_back(derivative);
    } else {
      numbers += ", gradients[" + which + "]";
      made.results.push_back(derivative);
    }
  }
  if (parameters_of_targets.empty() && numbers.empty())
    return "no argument is a floating-point number or an array of them";
  made.text = "function " + made.wrapper + "(" + parameters(of.arguments, "x") + parameters_of_targets +
              ")\n  value, gradients = Core.value_and_gradient_into_apart(" + of.callee + ", (" + targets +
              (n == 1 ? ",), " : "), ") + tuple_of(n, "x") + ")\n  (value" + (numbers.empty() ? "," : numbers) +
              ")\nend\n";
  return {};
}

std::string jvp_function(const Export& of, std::size_t number, CFunction& made) {
  made.symbol = of.symbol + "_jvp";
  made.wrapper = wrapper_name("jvp", number);
  made.meaning = "The value and its derivative in a direction.";
  made.arguments = of.arguments;
  std::string directions;
  const OfFloats floats = of_floats(of, false, made.arguments, directions);
  if (floats.which.empty()) return no_floats;
  made.text = "function " + made.wrapper + "(" + parameters(of.arguments, "x") + directions;
  const std::string call = "  y, t = jvp(" + floats.function + ", " + floats.point + ", " + floats.direction + ")\n";
  if (is_array_type(of.result)) {
    made.arguments.push_back(result_datum(of.result, "value"));
    made.arguments.push_back(result_datum(of.result, "derivative"));
    const std::string type = to_string(of.result);
    made.text += ", value::" + type + ", derivative::" + type + ")\n" + call + copying("y", "value") +
                 copying("t", "derivative") + "  nothing\nend\n";
  } else {
    made.results.push_back(result_datum(of.result, "value"));
    made.results.push_back(result_datum(of.result, "derivative"));
    made.text += ")\n" + call + "  (y, t)\nend\n";
  }
  return {};
}

std::string hvp_function(const Export& of, std::size_t number, CFunction& made) {
  made.symbol = of.symbol + "_hvp";
  made.wrapper = wrapper_name("hvp", number);
  made.meaning = "The Hessian times a direction.";
  made.arguments = of.arguments;
  std::string directions, targets, copies, numbers;
  const OfFloats floats = of_floats(of, true, made.arguments, directions);
  if (floats.which.empty()) return no_floats;
  for (std::size_t k = 0; k < floats.which.size(); ++k) {
    const Datum& argument = of.arguments[floats.which[k]];
    const std::string which = std::to_string(k + 1);
    Datum result = argument;
    result.name += "_hvp";
    result.is_result = true;
    if (argument.is_array()) {
      made.arguments.push_back(result);
      targets += ", r" + which + "::" + to_string(argument.type);
      copies += "  h" + which + " = products[" + which + "]\n" + copying("h" + which, "r" + which);
    } else {
      made.results.push_back(result);
      numbers += "products[" + which + "][1], ";
    }
  }
  made.text = "function " + made.wrapper + "(" + parameters(of.arguments, "x") + directions + targets +
              ")\n  products = hvp(" + floats.function + ", " + floats.point + ", " + floats.direction + ")\n" +
              copies + (numbers.empty() ? "  nothing" : "  (" + numbers + ")") + "\nend\n";
  return {};
}

}  // namespace slope::api::tools::ahead
