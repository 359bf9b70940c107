// Types as Julia 1.10 prints them.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "lang/types/module.hpp"
#include "lang/types/object.hpp"
#include "lang/types/symbol.hpp"
#include "lang/types/type.hpp"
#include "lang/types/type_text.hpp"
#include "lang/types/walk.hpp"

namespace slope {

namespace {

bool is_identifier(std::string_view text) {
  if (text.empty()) return false;
  auto start = [](unsigned char c) { return std::isalpha(c) || c == '_' || c >= 0x80; };
  if (!start(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](unsigned char c) { return start(c) || std::isdigit(c) || c == '!'; });
}

std::string name_text(const std::string& name) { return is_identifier(name) ? name : "var\"" + name + "\""; }

bool is_operator_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::string_view("+-*/\\^<>=!~|&%:$.").find(static_cast<char>(c)) != std::string_view::npos || c >= 0x80;
  });
}

std::string symbol_text(const std::string& name) {
  if (is_identifier(name) || is_operator_name(name)) return ":" + name;
  return "Symbol(\"" + name + "\")";
}

// Base.Meta.ParseError, but Dates.Day: in Julia the library's other modules are packages.
bool is_of_julias_base(std::string_view module) {
  constexpr std::string_view names[] = {"Broadcast", "Cartesian", "Checked",   "Docs", "Experimental",
                                        "FastMath",  "GC",        "Iterators", "Libc", "MathConstants",
                                        "Meta",      "Order",     "Sort",      "Sys",  "Threads"};
  return std::ranges::find(names, module) != std::end(names);
}

// The type is printed with its module when a user at the prompt would have to write it so.
std::string module_prefix(const TypeName* name) {
  const Module* module = name->module;
  if (!module || !module->name || module->name->name == "Core") return "";
  const Module* root = module;
  while (root->parent && root->parent != root) root = root->parent;
  if (module == root && root->name->name == "Main") return "";
  if (root->name->name == "Main") {
    Binding* visible = root->find(name->name);
    if (visible && visible->module == module) return "";
  } else if (root->exports(name->name)) {
    return "";
  }
  std::string path;
  for (const Module* m = module;; m = m->parent) {
    path = m->name->name + "." + path;
    if (!m->parent || m->parent == m) break;
    if (m->parent == root && root->name->name == "Base" && !is_of_julias_base(m->name->name)) break;
  }
  return path;
}

// Bytes of a text, after which parts are "…": types share their parts, so that one of 60 levels may have 2^60 of them.
constexpr std::size_t most_text = std::size_t{1} << 20;

class Printer {
 public:
  explicit Printer(std::size_t most = most_text) : most_(most) {}

  void type(const Type* t) {
    if (out.size() > most_) {
      if (!out.ends_with("…")) out += "…";
      return;
    }
    if (!t) {
      out += "#undef";
      return;
    }
    switch (t->kind) {
      case TypeKind::bottom:
        out += "Union{}";
        break;
      case TypeKind::var:
        out += name_text(as_var(t)->name->name);
        break;
      case TypeKind::vararg:
        vararg(as_vararg(t));
        break;
      case TypeKind::value:
        value(as_value(t)->value);
        break;
      case TypeKind::union_:
        union_members(as_union(t));
        break;
      case TypeKind::union_all:
        union_all(as_union_all(t));
        break;
      case TypeKind::data:
        data(as_data(t), 0);
        break;
    }
  }

  std::string out;

 private:
  const std::size_t most_;  // of bytes

  void list(std::span<const Type* const> items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i) out += ", ";
      parameter(items[i]);
    }
  }

  void parameter(const Type* t) { type(t); }

  void vararg(const VarargType* v) {
    auto* element = as_data(v->element);
    bool any = element && element->super == element;
    if (any && !v->count) {
      out += "Vararg{Any}";
      return;
    }
    out += "Vararg{";
    type(v->element);
    if (v->count) {
      out += ", ";
      type(v->count);
    }
    out += "}";
  }

  // Julia's order: singletons, then plain bits, then the rest; by name within each; variables and union_alls last.
  void union_members(const UnionType* u) {
    std::vector<const Type*> members(u->members.begin(), u->members.end());
    auto group = [](const Type* t) {
      auto* d = as_data(t);
      if (!d) return as_var(t) ? 4 : 3;
      if (d->instance.defined() && d->storage == Storage::singleton) return 0;
      return d->is_isbits ? 1 : 2;
    };
    auto key = [](const Type* t) -> std::string {
      while (auto* ua = as_union_all(t)) t = ua->body;
      if (auto* d = as_data(t)) return d->name->name->name;
      return to_string(t);
    };
    std::stable_sort(members.begin(), members.end(), [&](const Type* a, const Type* b) {
      int x = group(a), y = group(b);
      if (x != y) return x < y;
      return key(a) < key(b);
    });
    out += "Union{";
    list(members);
    out += "}";
  }

  void union_all(const UnionAllType* outer) {
    // The variables of the whole nest, and what they bind.
    std::vector<const TypeVar*> vars;
    const Type* body = outer;
    while (auto* u = as_union_all(body)) {
      vars.push_back(u->var);
      body = u->body;
    }
    auto* d = as_data(body);
    std::size_t hidden = 0;  // trailing variables that need not be written
    if (d && !d->is_tuple) {
      // Array{Float64,N} where N is written Array{Float64}; its declared bounds must be unchanged.
      const TypeName* n = d->name;
      if (n->vars.size() == d->params.size()) {
        while (hidden < vars.size()) {
          const TypeVar* v = vars[vars.size() - 1 - hidden];
          std::size_t at = d->params.size() - 1 - hidden;
          if (at >= d->params.size() || d->params[at] != v) break;
          const TypeVar* declared = n->vars[at];
          if (v->lower != declared->lower || (v->upper != declared->upper && !declared->upper->has_free_vars)) break;
          bool elsewhere = false;
          for (std::size_t i = 0; i < at; ++i) elsewhere |= mentions(d->params[i], v);
          if (elsewhere) break;
          ++hidden;
        }
      }
      // Vector{T} where T has an alias of its own.
      if (hidden == 0 && vars.size() == 1 && alias_of(d) && d->params[0] == vars[0] &&
          vars[0]->upper == static_cast<const Type*>(any_of(d)) && vars[0]->lower->kind == TypeKind::bottom) {
        out += alias_of(d);
        return;
      }
    }
    std::size_t shown = vars.size() - hidden;
    // Vector{<:Real}: a variable without a name of its own, used once as a direct parameter.
    std::vector<const TypeVar*> written;
    for (std::size_t i = 0; i < shown; ++i) {
      const std::string& name = vars[i]->name->name;
      if ((name == "_" || name.starts_with('#')) && d &&
          std::count(d->params.begin(), d->params.end(), static_cast<const Type*>(vars[i])) == 1 &&
          !mentioned_in_other_bounds(vars, vars[i])) {
        anonymous_.push_back(vars[i]);
      } else {
        written.push_back(vars[i]);
      }
    }
    if (d) {
      data(d, hidden);
    } else {
      type(body);
    }
    if (written.empty()) return;
    out += " where ";
    if (written.size() > 1) out += "{";
    for (std::size_t i = 0; i < written.size(); ++i) {
      if (i) out += ", ";
      bounds(written[i], true);
    }
    if (written.size() > 1) out += "}";
  }

  void bounds(const TypeVar* v, bool named) {
    auto* upper = as_data(v->upper);
    bool has_upper = !(upper && upper->super == upper), has_lower = v->lower->kind != TypeKind::bottom;
    std::string name = named ? name_text(v->name->name) : "";
    if (has_lower && !has_upper) {
      out += name + ">:";
      type(v->lower);
      return;
    }
    if (has_lower) {
      type(v->lower);
      out += "<:";
    }
    out += name;
    if (has_upper || !named) {
      out += "<:";
      type(v->upper);
    }
  }

  static bool mentions(const Type* t, const TypeVar* v) {
    if (!t || !t->has_free_vars) return false;
    switch (t->kind) {
      case TypeKind::var:
        return t == v;
      case TypeKind::data:
        return std::any_of(as_data(t)->params.begin(), as_data(t)->params.end(),
                           [&](const Type* p) { return mentions(p, v); });
      case TypeKind::union_:
        return std::any_of(as_union(t)->members.begin(), as_union(t)->members.end(),
                           [&](const Type* p) { return mentions(p, v); });
      case TypeKind::union_all: {
        auto* u = as_union_all(t);
        return mentions(u->body, v) || mentions(u->var->upper, v) || mentions(u->var->lower, v);
      }
      case TypeKind::vararg:
        return mentions(as_vararg(t)->element, v) || mentions(as_vararg(t)->count, v);
      default:
        return false;
    }
  }

  static bool mentioned_in_other_bounds(const std::vector<const TypeVar*>& vars, const TypeVar* v) {
    return std::any_of(vars.begin(), vars.end(), [&](const TypeVar* other) {
      return other != v && (mentions(other->upper, v) || mentions(other->lower, v));
    });
  }

  static const Type* any_of(const DataType* d) {
    while (d->super != d) d = d->super;
    return d;
  }

  static const char* alias_of(const DataType* d) {
    if (d->params.size() != 2) return nullptr;
    auto* dims = as_value(d->params[1]);
    if (!dims || (dims->value.bits != 1 && dims->value.bits != 2)) return nullptr;
    auto* module = d->name->module;
    if (module && module->name && module->name->name != "Core") return nullptr;
    auto* dims_type = as_data(dims->value.type);
    if (!dims_type || dims_type->name->name->name != "Int64") return nullptr;
    bool one = dims->value.bits == 1;
    const std::string& name = d->name->name->name;
    if (name == "Array") return one ? "Vector" : "Matrix";
    if (name == "AbstractArray") return one ? "AbstractVector" : "AbstractMatrix";
    if (name == "DenseArray") return one ? "DenseVector" : "DenseMatrix";
    return nullptr;
  }

  void data(const DataType* d, std::size_t hidden) {
    const TypeName* n = d->name;
    if (d->is_tuple) return tuple(d);
    if (d->is_named_tuple && hidden == 0 && named_tuple(d)) return;
    if (n->is_function && !n->is_closure) {
      out += "typeof(" + function_text(n) + ")";
      return;
    }
    if (const char* alias = hidden == 0 ? alias_of(d) : nullptr) {
      out += alias;
      auto* var = as_var(d->params[0]);
      out += "{";
      anonymous_or(var, d->params[0]);
      out += "}";
      return;
    }
    if (n->name->name == "Complex" && d->params.size() == 1 && hidden == 0) {
      auto* part = as_data(d->params[0]);
      const std::string_view of = part ? std::string_view(part->name->name->name) : std::string_view();
      if (of == "Float64" || of == "Float32") {
        out += of == "Float64" ? "ComplexF64" : "ComplexF32";
        return;
      }
    }
    out += module_prefix(n) + name_text(n->name->name);
    std::size_t count = d->params.size() - std::min(hidden, d->params.size());
    if (count == 0) return;
    out += "{";
    for (std::size_t i = 0; i < count; ++i) {
      if (i) out += ", ";
      anonymous_or(as_var(d->params[i]), d->params[i]);
    }
    out += "}";
  }

  void anonymous_or(const TypeVar* var, const Type* t) {
    if (var && std::find(anonymous_.begin(), anonymous_.end(), var) != anonymous_.end()) {
      bounds(var, false);
    } else {
      parameter(t);
    }
  }

  std::string function_text(const TypeName* n) const {
    const std::string& name = n->name->name;
    if (is_operator_name(name)) return name;
    return module_prefix(n) + name_text(name);
  }

  void tuple(const DataType* d) {
    std::size_t count = d->params.size(), tail = 0;
    if (count == 1) {
      auto* all = as_vararg(d->params[0]);
      auto* element = all ? as_data(all->element) : nullptr;
      if (element && element->super == element && !all->count) {
        out += "Tuple";
        return;
      }
    }
    while (tail < count && d->params[count - 1 - tail] == d->params[count - 1]) ++tail;
    if (tail > 3 && !as_vararg(d->params[count - 1])) {
      if (tail == count) {
        out += "NTuple{" + std::to_string(count) + ", ";
        parameter(d->params[0]);
        out += "}";
      } else {
        out += "Tuple{";
        list(d->params.subspan(0, count - tail));
        out += ", Vararg{";
        parameter(d->params[count - 1]);
        out += ", " + std::to_string(tail) + "}}";
      }
      return;
    }
    out += "Tuple{";
    list(d->params);
    out += "}";
  }

  bool named_tuple(const DataType* d) {
    auto* names = as_value(d->params[0]);
    auto* types = as_data(d->params[1]);
    if (!names || !types || !types->is_tuple) return false;
    if (!types->params.empty() && as_vararg(types->params.back())) return false;
    auto* names_type = as_data(names->value.type);
    if (names_type->fields.size() != types->params.size()) return false;
    out += "@NamedTuple{";
    for (std::size_t i = 0; i < types->params.size(); ++i) {
      if (i) out += ", ";
      const Symbol* symbol;
      std::memcpy(&symbol, names->value.object->payload() + names_type->fields[i].offset, sizeof symbol);
      out += name_text(symbol->name);
      auto* field = as_data(types->params[i]);
      if (field && field->super == field) continue;  // Any
      out += "::";
      type(types->params[i]);
    }
    out += "}";
    return true;
  }

  void value(Value v) {
    auto* d = as_data(v.type);
    const std::string& name = d->name->name->name;
    if (v.type->is_kind) {
      type(v.as_type);
    } else if (name == "Bool") {
      out += v.bits ? "true" : "false";
    } else if (name == "Symbol") {
      out += symbol_text(v.symbol->name);
    } else if (name == "Nothing") {
      out += "nothing";
    } else if (name == "Module") {
      out += v.module->name->name;
    } else if (name == "Float64" || name == "Float32") {
      floating(v, name == "Float32");
    } else if (name == "Char") {
      character(static_cast<std::uint32_t>(v.bits));
    } else if (name.starts_with("UInt")) {
      char digits[20];
      int width = static_cast<int>(d->size) * 2;
      std::snprintf(digits, sizeof digits, "0x%0*llx", width, static_cast<unsigned long long>(v.bits));
      out += digits;
    } else if (name.starts_with("Int")) {
      std::int64_t n = v.bits;
      if (d->size < 8)
        n = static_cast<std::int64_t>(static_cast<std::uint64_t>(n) << (64 - 8 * d->size)) >> (64 - 8 * d->size);
      if (d->size == 8) {
        out += std::to_string(n);
      } else {
        out += name + "(" + std::to_string(n) + ")";
      }
    } else if (d->name->is_function) {
      out += name;
    } else {
      compound(v);
    }
  }

  void compound(Value v) {
    auto* d = as_data(v.type);
    if (!d->is_tuple && !d->is_named_tuple) type(d);
    out += "(";
    for (std::size_t i = 0; i < d->fields.size(); ++i) {
      if (i) out += ", ";
      const Field& field = d->fields[i];
      if (d->is_named_tuple) out += field.name->name + " = ";
      const char* at = v.object->payload() + field.offset;
      Value item;
      if (field.storage == Storage::dynamic) {
        std::memcpy(static_cast<void*>(&item), at, sizeof item);
      } else if (field.storage == Storage::aggregate) {
        out += "…";
        continue;
      } else {
        item.type = field.type;
        std::memcpy(&item.bits, at, std::min<std::size_t>(field.size, 8));
      }
      value(item);
    }
    if (d->is_tuple && d->fields.size() == 1) out += ",";
    out += ")";
  }

  void floating(Value v, bool single) {
    char digits[40];
    double x = single ? v.float32 : v.float64;
    std::string text;
    if (std::isnan(x)) {
      text = "NaN";
    } else if (std::isinf(x)) {
      text = x < 0 ? "-Inf" : "Inf";
    } else {
      auto end = single ? std::to_chars(digits, digits + sizeof digits, v.float32).ptr
                        : std::to_chars(digits, digits + sizeof digits, x).ptr;
      text.assign(digits, end);
      if (text.find_first_of(".e") == std::string::npos) text += ".0";
    }
    out += text;
    if (single) out += "f0";
  }

  // Char holds its UTF-8 bytes left-aligned, as in Julia.
  void character(std::uint32_t bits) {
    out += "'";
    for (int shift = 24; shift >= 0; shift -= 8) {
      char c = static_cast<char>(bits >> shift);
      if (c || shift == 24) out += c;
    }
    out += "'";
  }

  std::vector<const TypeVar*> anonymous_;
};

}  // namespace

std::string to_string(const Type* t) {
  Printer printer;
  walk_types(t, [&] { printer.type(t); });
  return std::move(printer.out);
}

std::string beginning_of_text(const Type* t, std::size_t most) {
  Printer printer(most);
  walk_types(t, [&] { printer.type(t); });
  return std::move(printer.out);
}

}  // namespace slope
