// Text of values and errors.
//
// Once the library is loaded, its own `repr` shows values and its `showerror` shows errors. The code here is for the
// time before that, for failures of those two, and for parts that need dispatch tables (the closest candidates of a
// MethodError).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "lang/runtime/call_text.hpp"
#include "lang/runtime/runtime_impl.hpp"
#include "lang/runtime/text_value.hpp"
#include "lang/support/tuning.hpp"
#include "lang/types/type_text.hpp"

namespace slope {

namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      case '$':
        out += "\\$";
        break;
      case '\0':
        out += "\\0";
        break;
      default:
        out += c;
    }
  }
  return out + "\"";
}

std::string float_text(double x, bool single) {
  if (std::isnan(x)) return single ? "NaN32" : "NaN";
  if (std::isinf(x)) return std::string(x < 0 ? "-" : "") + (single ? "Inf32" : "Inf");
  char digits[64];
  // Shortest digits; plain notation between 1e-4 and 1e5 or 1e6 as Julia chooses.
  double magnitude = std::fabs(x);
  bool plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e6);
  auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  auto end = single ? std::to_chars(digits, digits + sizeof digits, static_cast<float>(x), format).ptr
                    : std::to_chars(digits, digits + sizeof digits, x, format).ptr;
  std::string text(digits, end);
  if (plain) {
    if (text.find('.') == std::string::npos) text += ".0";
    return single ? text + "f0" : text;
  }
  // 1.5e+08 is written 1.5e8.
  std::size_t e = text.find('e');
  std::string mantissa = text.substr(0, e);
  int exponent = std::atoi(text.c_str() + e + 1);
  if (mantissa.find('.') == std::string::npos) mantissa += ".0";
  return mantissa + (single ? "f" : "e") + std::to_string(exponent);
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '!' || c >= 0x80; });
}

class Shower {
 public:
  Shower(Runtime& runtime) : runtime_(runtime), b_(runtime.types.builtin()) {}

  void show(Value v, int depth = 0) {
    if (!v.defined()) {
      out += "#undef";
      return;
    }
    auto* d = as_data(v.type);
    if (v.type->is_kind || d == b_.type_var || d == b_.type_of_vararg) {
      out += to_string(v.as_type);
    } else if (d == b_.nothing) {
      out += "nothing";
    } else if (d == b_.boolean) {
      out += v.bits ? "true" : "false";
    } else if (d == b_.float64) {
      out += float_text(v.float64, false);
    } else if (d == b_.float32) {
      out += float_text(v.float32, true);
    } else if (d == b_.string) {
      out += quoted(static_cast<const StringObject*>(v.object)->view());
    } else if (d == b_.symbol) {
      const std::string& name = v.symbol->name;
      out += is_plain_name(name) || !std::isalnum(static_cast<unsigned char>(name.empty() ? '0' : name[0]))
                 ? ":" + name
                 : "Symbol(" + quoted(name) + ")";
    } else if (d == b_.module) {
      out += v.module->name->name;
    } else if (d == b_.character) {
      std::uint32_t bits = static_cast<std::uint32_t>(v.bits);
      out += "'";
      for (int shift = 24; shift >= 0; shift -= 8)
        if (char c = static_cast<char>(bits >> shift); c || shift == 24) out += c;
      out += "'";
    } else if (d == b_.builtin_function) {
      out += "builtin function";
    } else if (d->name->is_primitive) {
      integer(v, d);
    } else if (d->name->is_function) {
      out += d->name->is_closure ? "#" + d->name->name->name + "#" : d->name->name->name;
    } else if (d->object_kind == DataType::ObjectKind::array) {
      array(v, depth);
    } else if (d->object_kind == DataType::ObjectKind::fields) {
      fields(v, d, depth);
    } else {
      out += to_string(d) + "(…)";
    }
  }

  std::string out;

 private:
  void integer(Value v, const DataType* d) {
    bool is_unsigned = is_subtype(runtime_.types, d, b_.unsigned_);
    if (is_unsigned) {
      char digits[24];
      std::snprintf(digits, sizeof digits, "0x%0*llx", static_cast<int>(d->size) * 2,
                    static_cast<unsigned long long>(v.bits));
      out += digits;
      return;
    }
    unsigned shift = 64 - 8 * std::min<std::uint32_t>(d->size, 8);
    out += std::to_string(static_cast<std::int64_t>(static_cast<std::uint64_t>(v.bits) << shift) >> shift);
  }

  void array(Value v, int depth) {
    auto* a = static_cast<ArrayObject*>(v.object);
    const Type* element = array_element_type(a);
    if (depth > 3) {
      out += "[…]";
      return;
    }
    bool shown_by_literal =
        element == b_.int64 || element == b_.float64 || element == b_.string || element == b_.boolean;
    if (!shown_by_literal || a->length == 0) out += to_string(element);
    out += "[";
    std::int64_t shown = std::min<std::int64_t>(a->length, 20);
    for (std::int64_t i = 0; i < shown; ++i) {
      if (i) out += ", ";
      if (a->element_size == 0) {
        show(as_data(element)->instance, depth + 1);
      } else {
        show(load_stored(runtime_.heap, a->data + static_cast<std::size_t>(i) * a->element_size, element), depth + 1);
      }
    }
    if (shown < a->length) out += ", …";
    out += "]";
  }

  void fields(Value v, const DataType* d, int depth) {
    if (depth > 6) {
      out += "…";
      return;
    }
    if (!d->is_tuple && !d->is_named_tuple) out += to_string(d);
    out += "(";
    for (std::size_t i = 0; i < d->fields.size(); ++i) {
      if (i) out += ", ";
      const Field& field = d->fields[i];
      if (d->is_named_tuple) out += field.name->name + " = ";
      if (field.storage == Storage::singleton) {
        show(as_data(field.type)->instance, depth + 1);
      } else {
        show(load_stored(runtime_.heap, v.object->payload() + field.offset, field.type), depth + 1);
      }
    }
    if ((d->is_tuple || d->is_named_tuple) && d->fields.size() == 1) out += ",";
    out += ")";
  }

  Runtime& runtime_;
  const BuiltinTypes& b_;
};

std::string plain_text(Runtime& runtime, Value v) {
  if (std::string_view text; bytes_of_text(runtime, v, text)) return std::string(text);
  Shower shower(runtime);
  shower.show(v);
  return shower.out;
}

// Runs Slope code while an error may be pending, and leaves everything as it was.
class Aside {
 public:
  explicit Aside(Context& ctx)
      : ctx_(ctx),
        kept_(*ctx.heap),
        pause_(ctx.runtime->kept_methods),
        trace_(std::move(ctx.trace)),
        world_(ctx.world) {
    kept_.values.push_back(ctx.error);
    ctx.error = Value();
    ctx.trace.clear();
    ctx.world = ctx.runtime->world();
  }
  ~Aside() {
    ctx_.error = kept_.values[0];
    ctx_.trace = std::move(trace_);
    ctx_.world = world_;
  }

 private:
  Context& ctx_;
  Rooted kept_;
  KeptMethods::Pause pause_;
  std::vector<TraceEntry> trace_;
  World world_;
};

Value global_value(Module* module, const Symbol* name) {
  Binding* found = module ? module->find(name) : nullptr;
  return found ? found->value : Value();
}

std::string ordinal_arguments(Runtime& runtime, const DataType* args) {
  std::string text = "(";
  for (std::size_t i = 0; i < args->params.size(); ++i) {
    if (i) text += ", ";
    text += "::" + to_string(args->params[i]);
  }
  (void)runtime;
  return text + ")";
}

// How a callee is written in a call.
std::string callee_text(Runtime& runtime, Value callee) {
  auto* d = as_data(callee.type);
  if (runtime.is_type_value(callee)) return to_string(callee.as_type);
  if (d->name->is_closure) return "(::" + to_string(d) + ")";
  if (d->name->is_function) {
    const std::string& name = d->name->name->name;
    return name;
  }
  if (d == runtime.types.builtin().builtin_function) return "builtin function";
  return "(::" + to_string(d) + ")";
}

// A method's parameter list with the names and declared types; `mismatched(i)` marks those that don't fit a call.
template <class Mismatched>
std::string parameters_text(const Method& method, const Mismatched& mismatched, bool with_names) {
  const DataType* tuple = signature_tuple(method.signature);
  std::string text = "(";
  if (!tuple) return "(…)";
  for (std::size_t i = 1; i < tuple->params.size(); ++i) {
    if (i > 1) text += ", ";
    const Type* param = tuple->params[i];
    auto* rest = as_vararg(param);
    const Type* shown = rest ? rest->element : param;
    bool unnamed = !with_names || i >= method.arg_names.size() || !method.arg_names[i] ||
                   method.arg_names[i]->name.starts_with("#");
    std::string name = unnamed ? "" : method.arg_names[i]->name;
    auto* data = as_data(shown);
    bool any = data && data->super == data;
    if (mismatched(i)) {
      text += "!Matched::" + to_string(shown);
    } else if (!unnamed && any) {
      text += name;
    } else {
      text += name + "::" + to_string(shown);
    }
    if (rest) text += "...";
  }
  text += ")";
  std::vector<const TypeVar*> vars;
  for (const Type* t = method.signature; as_union_all(t); t = as_union_all(t)->body)
    vars.push_back(as_union_all(t)->var);
  if (vars.empty()) return text;
  text += " where ";
  if (vars.size() > 1) text += "{";
  for (std::size_t i = 0; i < vars.size(); ++i) {
    if (i) text += ", ";
    if (vars[i]->lower->kind != TypeKind::bottom) text += to_string(vars[i]->lower) + "<:";
    text += vars[i]->name->name;
    auto* upper = as_data(vars[i]->upper);
    if (!(upper && upper->super == upper)) text += "<:" + to_string(vars[i]->upper);
  }
  return vars.size() > 1 ? text + "}" : text;
}

std::string method_name_text(const Method& method) {
  const DataType* tuple = signature_tuple(method.signature);
  const Type* callee = tuple && !tuple->params.empty() ? tuple->params[0] : nullptr;
  auto* d = as_data(callee);
  if (d && d->is_type_of_type) return to_string(d->params[0]);
  if (d && d->name->is_function && !d->name->is_closure) return d->name->name->name;
  if (d && d->name->is_closure) return method.name ? method.name->name : "(::" + to_string(d) + ")";
  return callee ? "(::" + to_string(callee) + ")" : "?";
}

std::string place_text(Runtime& runtime, const Method& method) {
  std::string module = method.module && method.module->name ? method.module->name->name + " " : "";
  if (method.native || method.span.file == 0) return module + "(builtin)";
  return module + runtime.sources.file(method.span.file).name() + ":" +
         std::to_string(runtime.sources.line_of(method.span));
}

}  // namespace

std::string Runtime::show(Context& ctx, Value v) {
  if (!v.defined()) return "#undef";
  Value repr = global_value(base, symbol("repr"));
  if (repr.defined() && interpreter) {
    Aside aside(ctx);
    Value text;
    if (call(ctx, repr, &v, 1, text) && text.type == types.builtin().string)
      return std::string(static_cast<const StringObject*>(text.object)->view());
    ctx.error = Value();
  }
  Shower shower(*this);
  shower.show(v);
  return shower.out;
}

namespace {

// A method of the function that was called, which does not apply: how near it comes.
struct NearMethod {
  const Method* method;
  int score;
  std::vector<bool> mismatched;  // by parameter, callee first
  bool takes_as_many;            // arguments as were given
};

bool is_of_library_alone(const Type* type) {
  while (const UnionAllType* open = as_union_all(type)) type = open->body;
  const DataType* data = as_data(type);
  return data && !data->is_tuple && to_string(data).starts_with("Base.");
}

// Nothing: a constructor of another type of the same name. `elements`: the types of the call, callee first; `others`:
// how many methods the table has.
std::optional<NearMethod> near_method(TypeTable& types, const Method& method, const std::vector<const Type*>& elements,
                                      std::size_t others) {
  const DataType* tuple = signature_tuple(method.signature);
  if (!tuple || tuple->params.empty()) return std::nullopt;
  const VarargType* rest = as_vararg(tuple->params.back());
  std::size_t fixed = tuple->params.size() - (rest ? 1 : 0);
  NearMethod near{&method, 0, std::vector<bool>(tuple->params.size() + elements.size(), false),
                  elements.size() == fixed || (rest && elements.size() >= fixed)};
  auto closed = [&](const Type* t) {
    std::vector<const Type*> one{t};
    const Type* whole = types.tuple(one);
    for (std::size_t i = method.static_params.size(); i-- > 0;) whole = types.union_all(method.static_params[i], whole);
    for (const Type* s = method.signature; as_union_all(s); s = as_union_all(s)->body)
      whole = types.union_all(as_union_all(s)->var, whole);
    return whole;
  };
  auto fits = [&](const Type* argument, const Type* parameter) {
    std::vector<const Type*> one{argument};
    return is_subtype(types, types.tuple(one), closed(parameter));
  };
  if (!fits(elements[0], tuple->params[0])) return std::nullopt;
  int matched = 0;
  for (std::size_t i = 1; i < std::max(elements.size(), fixed); ++i) {
    if (i >= elements.size()) {
      near.mismatched[i] = true;  // an argument that was not given
    } else if (i >= fixed && !rest) {
      break;  // arguments that are too many
    } else if (fits(elements[i], i < fixed ? tuple->params[i] : rest->element)) {
      ++matched;
    } else {
      near.mismatched[std::min(i, tuple->params.size() - 1)] = true;
    }
  }
  near.score = matched * 4 - std::abs(static_cast<int>(elements.size()) - static_cast<int>(fixed));
  if (elements.size() > 1 && matched == 0 && fixed > 1 && others > 3) near.score -= 4;
  // Nobody who calls the function has a value of a type that the library keeps to itself.
  for (std::size_t i = 1; i < tuple->params.size(); ++i)
    if (near.mismatched[i] && is_of_library_alone(tuple->params[i])) near.score -= 8;
  return near;
}

}  // namespace

std::string Runtime::Impl::method_error_text(Context& ctx, Value function, Value args, World world) {
  (void)ctx;
  TypeTable& types = runtime.types;
  auto* arg_types = as_data(args.type);
  if (!arg_types || !arg_types->is_tuple) return "MethodError";
  // The arguments' own types, with Type{T} for types, as dispatch saw them.
  std::vector<const Type*> elements{types.dispatch_type(function)};
  for (std::size_t i = 0; i < arg_types->fields.size(); ++i) {
    const Field& field = arg_types->fields[i];
    const Type* type = field.type;
    if (type->is_kind)
      type = types.type_type(load_stored(runtime.heap, args.object->payload() + field.offset, field.type).as_type);
    elements.push_back(type);
  }
  const DataType* call_types = types.tuple(elements);
  const DataType* seen = types.tuple(std::span(elements).subspan(1));
  std::vector<MethodTable*> chain;
  tables_for(elements[0], nullptr, chain);
  Lookup found;
  compute_lookup(call_types, runtime.world(), found);
  std::string call = callee_text(runtime, function) + ordinal_arguments(runtime, seen);
  if (!found.ambiguous.empty()) {
    std::string text = "MethodError: " + call + " is ambiguous.\n\nCandidates:";
    for (const Method* method : found.ambiguous) {
      text += "\n  " + method_name_text(*method) +
              parameters_text(
                  *method, [](std::size_t) { return false; }, true);
      text += "\n    @ " + place_text(runtime, *method);
    }
    text += "\n\nPossible fix, define\n  " + call;
    return text;
  }
  auto* callee_type = as_data(function.type);
  bool callable = !chain.empty() || (callee_type && callee_type->name->is_function) || function.type->is_kind;
  if (!callable) return "MethodError: objects of type " + to_string(function.type) + " are not callable";
  std::string text = "MethodError: no method matching " + call;
  // Whoever throws a MethodError of its own accord does not say in which world.
  if (found.method && world != newest_world && (world < found.method->min_world || world > found.method->max_world)) {
    const World last = found.method->max_world;
    text += "\nThe applicable method may be too new: running in an older world. It belongs to worlds " +
            std::to_string(found.method->min_world) + " to " + (last == newest_world ? "now" : std::to_string(last)) +
            ":\n  " + method_name_text(*found.method) +
            parameters_text(
                *found.method, [](std::size_t) { return false; }, true) +
            "\n    @ " + place_text(runtime, *found.method);
  }

  std::vector<NearMethod> candidates;
  for (MethodTable* table : chain) {
    for (const auto& method : table->methods) {
      if (method->max_world != newest_world) continue;
      if (std::optional<NearMethod> near = near_method(types, *method, elements, table->methods.size()))
        candidates.push_back(std::move(*near));
    }
  }
  if (candidates.empty()) {
    if (runtime.is_type_value(function) && as_data(function.as_type) && as_data(function.as_type)->name->is_abstract)
      return "MethodError: no constructors have been defined for " + to_string(function.as_type) +
             "\nit is an abstract type, which has no values of its own: make one of a subtype";
    if (!callee_type->name->is_function && !function.type->is_kind)
      return "MethodError: objects of type " + to_string(function.type) + " are not callable";
    return text;
  }
  // Methods for another number of arguments are near only when none takes as many as were given.
  const auto takes_as_many = [](const NearMethod& each) { return each.takes_as_many; };
  if (std::any_of(candidates.begin(), candidates.end(), takes_as_many))
    std::erase_if(candidates, [&](const NearMethod& each) { return !takes_as_many(each); });
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const NearMethod& a, const NearMethod& b) { return a.score > b.score; });
  text += "\n\nClosest candidates are:";
  std::size_t shown = std::min<std::size_t>(3, candidates.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const NearMethod& candidate = candidates[i];
    text += "\n  " + method_name_text(*candidate.method) +
            parameters_text(
                *candidate.method, [&](std::size_t k) { return candidate.mismatched[k]; }, false);
    text += "\n   @ " + place_text(runtime, *candidate.method);
  }
  if (candidates.size() > shown) text += "\n  ...";
  return text;
}

namespace {

Value field_of(Runtime& runtime, Value object, const char* name) {
  auto* type = as_data(object.type);
  int index = type->field_index(runtime.symbol(name));
  if (index < 0) return {};
  const Field& f = type->fields[static_cast<std::size_t>(index)];
  if (f.storage == Storage::singleton) return as_data(f.type)->instance;
  return load_stored(runtime.heap, object.object->payload() + f.offset, f.type);
}

std::string shown(Runtime& runtime, Context& ctx, Value v) {
  return v.defined() ? runtime.show(ctx, v) : std::string("#undef");
}

std::string type_error_text(Runtime& runtime, Context& ctx, Value exception) {
  Value func = field_of(runtime, exception, "func"), context_text = field_of(runtime, exception, "context"),
        expected = field_of(runtime, exception, "expected"), found = field_of(runtime, exception, "got");
  std::string text = "TypeError: ";
  std::string where = func.defined() ? func.symbol->name : "";
  std::string detail = context_text.defined() ? plain_text(runtime, context_text) : "";
  if (where == "if" || where == "non-boolean") {
    return "TypeError: non-boolean (" + to_string(found.type) + ") used in boolean context";
  }
  if (where == "keyword argument")
    text += "in " + where + " " + detail + ", ";
  else if (!where.empty())
    text += "in " + where + ", " + (detail.empty() ? "" : "in " + detail + ", ");
  text += "expected " +
          (runtime.is_type_value(expected) ? to_string(expected.as_type) : shown(runtime, ctx, expected)) + ", got ";
  if (runtime.is_type_value(found)) return text + "Type{" + to_string(found.as_type) + "}";
  return text + "a value of type " + to_string(found.type);
}

std::string bounds_error_text(Runtime& runtime, Context& ctx, Value exception) {
  Value a = field_of(runtime, exception, "a"), index = field_of(runtime, exception, "i");
  std::string text = "BoundsError";
  if (!a.defined() || a.type == runtime.types.builtin().nothing) return text;
  text += ": attempt to access ";
  auto* container = as_data(a.type);
  if (container->object_kind == DataType::ObjectKind::array) {
    auto* array = static_cast<ArrayObject*>(a.object);
    int dims = array_ndims(array);
    if (dims == 1) {
      text += std::to_string(array->length) + "-element ";
    } else {
      for (int i = 0; i < dims; ++i) text += (i ? "×" : "") + std::to_string(dims_of(array)[i]);
      text += dims ? " " : "0-dimensional ";
    }
    text += to_string(a.type);
  } else if (container == runtime.types.builtin().string) {
    text += std::to_string(static_cast<const StringObject*>(a.object)->length) + "-codeunit String";
  } else if (container->is_tuple) {
    text += to_string(a.type);
  } else {
    text += shown(runtime, ctx, a);
  }
  if (!index.defined()) return text;
  auto* index_type = as_data(index.type);
  text += " at index [";
  if (index_type->is_tuple) {
    for (std::size_t i = 0; i < index_type->fields.size(); ++i) {
      const Field& f = index_type->fields[i];
      if (i) text += ", ";
      text += f.storage == Storage::singleton
                  ? shown(runtime, ctx, as_data(f.type)->instance)
                  : shown(runtime, ctx, load_stored(runtime.heap, index.object->payload() + f.offset, f.type));
    }
  } else {
    text += shown(runtime, ctx, index);
  }
  return text + "]";
}

}  // namespace

std::string Runtime::exception_text(Context& ctx, Value exception) {
  if (!exception.defined()) return "unknown error";
  const BuiltinTypes& b = types.builtin();
  auto* type = as_data(exception.type);
  auto field = [&](const char* name) { return field_of(*this, exception, name); };
  auto message = [&] {
    Value msg = field("msg");
    return msg.defined() ? plain_text(*this, msg) : std::string();
  };
  if (type == b.error_exception) return message();
  if (type == b.argument_error || type == b.dimension_mismatch || type == b.overflow_error ||
      type == b.assertion_error || type == b.differentiation_error)
    return type->name->name->name + ": " + message();
  if (type == b.undef_var_error) {
    Value var = field("var");
    return "UndefVarError: `" + (var.defined() ? var.symbol->name : std::string("?")) + "` not defined";
  }
  if (type == b.undef_ref_error) return "UndefRefError: access to undefined reference";
  if (type == b.divide_error) return "DivideError: integer division error";
  if (type == b.stack_overflow_error) return "StackOverflowError:";
  if (type == b.out_of_memory_error) return "OutOfMemoryError()";
  if (type == b.interrupt_exception) return "InterruptException:";
  if (type == b.eof_error) return "EOFError: read end of file";
  if (type == b.key_error) return "KeyError: key " + shown(*this, ctx, field("key")) + " not found";
  if (type == b.domain_error) {
    Value msg = field("msg");
    std::string text = "DomainError with " + shown(*this, ctx, field("val"));
    if (msg.defined() && msg.type != b.nothing && !plain_text(*this, msg).empty())
      text += ":\n" + plain_text(*this, msg);
    return text;
  }
  if (type == b.inexact_error) {
    Value func = field("func"), target = field("T");
    return "InexactError: " + (func.defined() ? func.symbol->name : std::string("?")) + "(" +
           (is_type_value(target) ? to_string(target.as_type) : shown(*this, ctx, target)) + ", " +
           shown(*this, ctx, field("val")) + ")";
  }
  if (type == b.type_error) return type_error_text(*this, ctx, exception);
  if (type == b.bounds_error) return bounds_error_text(*this, ctx, exception);
  if (type == b.method_error)
    return impl_->method_error_text(ctx, field("f"), field("args"), static_cast<World>(field("world").bits));
  if (type == b.system_error) return "SystemError: " + plain_text(*this, field("prefix"));
  if (type == b.string_index_error)
    return "StringIndexError: invalid index [" + shown(*this, ctx, field("index")) + "] in string " +
           shown(*this, ctx, field("string"));
  if (type == b.load_error) {
    return "LoadError: " + exception_text(ctx, field("error")) + "\nin expression starting at " +
           plain_text(*this, field("file")) + ":" + shown(*this, ctx, field("line"));
  }
  if (is_subtype(types, type, b.exception)) {
    if (type->field_index(symbol("msg")) >= 0 && type->fields.size() == 1) return to_string(type) + ": " + message();
  }
  return shown(*this, ctx, exception);
}

namespace {

// The rest of the line on which the innermost place of a trace is.
std::string behind(const SourceMap& sources, const std::vector<TraceEntry>& trace) {
  if (trace.empty() || trace[0].span.file == 0) return "";
  std::string_view rest = sources.file(trace[0].span.file).text();
  rest.remove_prefix(std::min<std::size_t>(trace[0].span.end, rest.size()));
  constexpr std::size_t most = 200;
  std::size_t length = std::min({rest.find('\n'), rest.size(), most});
  while (length > 0 && length < rest.size() && (static_cast<unsigned char>(rest[length]) & 0xc0) == 0x80) --length;
  return std::string(rest.substr(0, length));
}

bool is_about_keywords(Value exception) {
  const DataType* type = as_data(exception.type);
  return type && type->name->name->name == "UndefKeywordError";
}

// The function of the innermost place of a trace, from its signature to the end of the line of the place.
std::string around(const SourceMap& sources, const std::vector<TraceEntry>& trace) {
  const Method* method = trace.empty() ? nullptr : trace[0].method;
  if (!method || method->span.file == 0 || method->span.file != trace[0].span.file) return "";
  const std::string_view text = sources.file(method->span.file).text();
  constexpr std::size_t most = 10000;
  const std::size_t begin = method->span.begin;
  const std::size_t end = std::min(text.size(), text.find('\n', std::min<std::size_t>(trace[0].span.end, text.size())));
  return begin < end && end - begin < most ? std::string(text.substr(begin, end - begin)) : "";
}

}  // namespace

std::string Runtime::describe_error(Context& ctx, Value exception, const std::vector<TraceEntry>& full_trace) {
  std::string text;
  Value describe = global_value(base, symbol("uncaught_text"));
  if (describe.defined() && interpreter) {
    Aside aside(ctx);
    // With what stands behind the name or call that failed, which says what was meant (`math.sin`, `x => x + 1`), and
    // the text of its function until there.
    Rooted args(heap);
    args.values = {exception, from_string(behind(sources, full_trace)), from_string(around(sources, full_trace))};
    Value shown;
    if (args.values[1].defined() && args.values[2].defined() && call(ctx, describe, args.values.data(), 3, shown) &&
        shown.type == types.builtin().string)
      text = std::string(static_cast<const StringObject*>(shown.object)->view());
    ctx.error = Value();
  }
  if (text.empty()) text = exception_text(ctx, exception);
  std::string out = "ERROR: " + text;
  // Where the library raises an error is told by its caller.
  std::size_t skipped = 0;
  while (skipped + 1 < full_trace.size() && full_trace[skipped].method && full_trace[skipped].method->module == base &&
         full_trace[skipped].method->name && full_trace[skipped].method->name->name.starts_with("throw_"))
    ++skipped;
  const std::span<const TraceEntry> trace(full_trace.begin() + static_cast<std::ptrdiff_t>(skipped), full_trace.end());
  if (trace.empty()) return out + "\n";
  // Where exactly the stack ended is chance; its caller is one of the calls that filled it. Wrong keywords are found by
  // the function that is called, and the call is what is wrong.
  const bool is_of_caller = exception.type == types.builtin().stack_overflow_error || is_about_keywords(exception) ||
                            (trace[0].method && frame_name(trace[0].method) == "kwcall");
  out += error_place_text(*this, trace.subspan(is_of_caller && trace.size() > 1 ? 1 : 0));
  return out + trace_text(*this, trace) + "\n";
}

std::string frame_name(const Method* method) { return method ? method_name_text(*method) : "top-level scope"; }

namespace {

// A type in a frame: what has long parameters shows that it has some.
std::string short_type(const Type* type) {
  constexpr std::size_t most = 60;
  const std::string text = beginning_of_text(type, most);
  const DataType* data = as_data(type);
  return text.size() <= most || !data || data->params.empty() ? text : text.substr(0, text.find('{')) + "{…}";
}

}  // namespace

std::string frame_text(const TraceEntry& entry) {
  if (!entry.method) return "top-level scope";
  const Method& method = *entry.method;
  const DataType* declared = signature_tuple(method.signature);
  const std::size_t count = declared ? declared->params.size() : 0;  // with the callee
  const std::size_t fixed = count && as_vararg(declared->params.back()) ? count - 1 : count;
  if (!entry.types || !count || entry.types->params.size() < fixed ||
      (fixed == count && entry.types->params.size() > count))
    return method_name_text(method) + parameters_text(
                                          method, [](std::size_t) { return false; }, true);
  std::string text = method_name_text(method) + "(";
  for (std::size_t i = 1; i < entry.types->params.size(); ++i) {
    if (i > 1) text += ", ";
    const Symbol* name = i < fixed && i < method.arg_names.size() ? method.arg_names[i] : nullptr;
    if (name && !name->name.starts_with("#")) text += name->name;
    text += "::" + short_type(entry.types->params[i]);
  }
  return text + ")";
}

}  // namespace slope
