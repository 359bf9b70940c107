#include "tools/checks.hpp"

#include <algorithm>
#include <set>

#include "lang/infer/lattice.hpp"
#include "lang/lower/lower.hpp"
#include "tools/tools.hpp"

namespace slope::api::tools {

using detail::EngineState;
using detail::RawValue;
using ir::Op;
using ir::Operand;

namespace {

bool is_impossible(const Type* type) { return type && type->kind == TypeKind::bottom; }

class Checker {
 public:
  explicit Checker(EngineState& engine)
      : engine_(engine), runtime_(engine.runtime), builtin_(engine.runtime.types.builtin()) {}

  std::optional<Fault> run(const ir::Function& fn, const ir::Inst& inst) {
    if (inst.op == Op::call || inst.op == Op::invoke) check_call(fn, inst);
    if (inst.op == Op::type_assert && is_impossible(inst.type)) check_condition(fn, inst);
    if (inst.op == Op::check_defined) check_assigned(fn, inst);
    return std::move(found_);
  }

 private:
  const Type* type_of(const ir::Function& fn, Operand o) const {
    if (o.is_constant() && !fn.constant_value(o).defined()) return nullptr;
    return o.is_constant() ? runtime_.types.dispatch_type(fn.constant_value(o)) : fn.type_of(o, runtime_.types);
  }

  void note(Span span, const char* code, std::string message) {
    if (!found_ && span.end > span.begin) found_ = Fault{span, code, std::move(message)};
  }

  void check_condition(const ir::Function& fn, const ir::Inst& inst) {
    if (inst.operands.size() != 2 || !inst.operands[1].is_constant()) return;
    const RawValue wanted = fn.constant_value(inst.operands[1]);
    const Type* found = type_of(fn, inst.operands[0]);
    if (!found || is_impossible(found) || !wanted.defined() || !runtime_.is_type_value(wanted)) return;
    if (wanted.as_type == builtin_.boolean)
      note(inst.span, "not-bool",
           "a condition must be `true` or `false`; this is of type " + described(found) +
               (found == builtin_.int64 ? ": compare it, as in `!= 0`" : ""));
    else
      note(inst.span, "type",
           "this must be of type `" + to_string(wanted.as_type) + "` and is of type " + described(found));
  }

  // A variable to which nothing was assigned on any way that leads here.
  void check_assigned(const ir::Function& fn, const ir::Inst& inst) {
    if (inst.operands.empty() || !inst.operands[0].is_constant() || !inst.aux_as<const Symbol>()) return;
    const RawValue defined = fn.constant_value(inst.operands[0]);
    if (!defined.defined() || defined.type != builtin_.boolean || defined.bits != 0) return;
    const std::string& name = inst.aux_as<const Symbol>()->name;
    if (name.starts_with("#")) return;
    note(inst.span, "unassigned",
         "`" + name + "` has no value here: it is a variable of this function, and nothing is assigned to it before");
  }

  static std::string described(const Type* type) { return "`" + to_string(type) + "`"; }

  // Other instructions of the same place: where inference went through the members of a union, one of them may fit.
  bool is_certain(const ir::Function& fn, const ir::Inst& inst) const {
    for (const ir::Inst& other : fn.insts)
      if (&other != &inst && (other.op == Op::call || other.op == Op::invoke) && other.span.begin == inst.span.begin &&
          other.span.end == inst.span.end && other.type && !is_impossible(other.type))
        return false;
    return true;
  }

  void check_call(const ir::Function& fn, const ir::Inst& inst) {
    // The function that is called: of an invoke the first operand as well.
    if (inst.operands.empty() || !inst.operands[0].is_constant()) return;
    const RawValue callee = fn.constant_value(inst.operands[0]);
    if (!callee.defined() || callee.type == builtin_.builtin_function) return;
    std::vector<const Type*> types;
    for (const Operand operand : inst.operands) {
      const Type* type = type_of(fn, operand);
      if (!type || is_impossible(type)) return;  // it is never reached
      types.push_back(type);
    }
    if (check_property(fn, inst, callee, types)) return;
    if (is_base(callee, "kwcall") && types.size() >= 3 && check_keywords(fn, inst, types)) return;
    // Inference knows that it never returns; whether that is for want of a method is asked of these alone.
    if (inst.op == Op::call && is_impossible(inst.type)) check_methods(fn, inst, callee, types);
  }

  std::string name_of(RawValue callee) const {
    if (runtime_.is_type_value(callee)) return to_string(callee.as_type);
    const DataType* type = as_data(callee.type);
    return type ? std::string(type->name->name->name) : "?";
  }

  // `a.b` and `a.b = v` where the type has no such field, or may not be changed.
  bool check_property(const ir::Function& fn, const ir::Inst& inst, RawValue callee,
                      const std::vector<const Type*>& types) {
    const bool reads = callee.defined() && is_base(callee, "getproperty");
    const bool writes = !reads && is_base(callee, "setproperty!");
    if ((!reads && !writes) || types.size() < 3 || !inst.operands[2].is_constant()) return false;
    const RawValue field = fn.constant_value(inst.operands[2]);
    const DataType* owner = as_data(types[1]);
    if (!owner || !field.defined() || field.type != builtin_.symbol || owner->name->is_abstract || owner->is_tuple ||
        owner == builtin_.module || owner->is_type_of_type || owner->is_kind || owner->name->is_function)
      return false;
    // Of what has no fields only numbers, texts and arrays are known well enough.
    if (owner->fields.empty() && owner->storage != Storage::bits && owner != builtin_.string &&
        owner->object_kind != DataType::ObjectKind::array)
      return false;
    if (!default_access(types[1], reads)) return false;
    const std::string& name = field.symbol->name;
    const auto at = std::find_if(owner->fields.begin(), owner->fields.end(),
                                 [&](const Field& each) { return each.name == field.symbol; });
    if (at == owner->fields.end()) {
      std::string has;
      for (const Field& each : owner->fields)
        if (each.name) has += (has.empty() ? "" : ", ") + each.name->name;
      note(inst.span, "no-field",
           "`" + to_string(owner) + "` has no field `" + name + "`" +
               (has.empty() ? ": it has none" : "; it has: " + has));
      return true;
    }
    if (writes && !owner->name->is_mutable) {
      note(inst.span, "immutable",
           "`" + to_string(owner) + "` is immutable: its field `" + name +
               "` cannot be changed; make a new one, or declare it `mutable struct`");
      return true;
    }
    return writes && is_impossible(inst.type) && check_field_type(inst, types, *at, *owner);
  }
  bool check_field_type(const ir::Inst& inst, const std::vector<const Type*>& types, const Field& field,
                        const DataType& owner) {
    if (types.size() < 4) return false;
    note(inst.span, "field-type",
         "the field `" + field.name->name + "` of `" + to_string(&owner) + "` has type `" + to_string(field.type) +
             "`; a value of type " + described(types[3]) + " does not convert to it");
    return true;
  }
  bool is_base(RawValue callee, const char* name) {
    const DataType* type = as_data(callee.type);
    return type && type->name->is_function && type->name->name->name == name;
  }
  // `getproperty(x, name)`, not that of a type.
  bool is_for_anything(const Method& method) const {
    const DataType* signature = as_data(method.signature);
    return signature && signature->params.size() > 1 && signature->params[1] == builtin_.any;
  }
  // The document, or the library, may have defined the properties of a type.
  bool default_access(const Type* owner, bool reads) {
    const RawValue access = engine_.library(reads ? "getproperty" : "setproperty!");
    if (!access.defined()) return false;
    std::vector<const Type*> types{access.type, owner, builtin_.symbol};
    if (!reads) types.push_back(builtin_.any);
    constexpr int most = 50;
    for (const Lookup& found : runtime_.lookup_all(runtime_.types.tuple(types), engine_.ctx.world, most))
      if (!found.method || !is_for_anything(*found.method)) return false;
    return true;
  }

  void check_methods(const ir::Function& fn, const ir::Inst& inst, RawValue callee,
                     const std::vector<const Type*>& types) {
    constexpr int most = 1000;
    for (const Lookup& found : runtime_.lookup_all(runtime_.types.tuple(types), engine_.ctx.world, most))
      if (found.method || !found.ambiguous.empty()) return;
    if (!is_certain(fn, inst)) return;
    std::string message = "no method of `" + name_of(callee) + "` fits (";
    for (std::size_t i = 1; i < types.size(); ++i) message += (i > 1 ? ", ::" : "::") + to_string(types[i]);
    note(inst.span, "no-method", message + "): it raises a MethodError when it gets here");
  }

  // A keyword that no method of the function knows.
  bool check_keywords(const ir::Function& fn, const ir::Inst& inst, const std::vector<const Type*>& types) {
    const DataType* given = as_data(types[1]);
    if (!given || !inst.operands[2].is_constant()) return false;
    const RawValue callee = fn.constant_value(inst.operands[2]);
    if (!callee.defined()) return false;
    std::string known;
    std::set<std::string> accepted;
    const std::vector<const Method*> methods = detail::current_methods(engine_, callee);
    for (const Method* method : methods) {
      if (!method->body || !method->body->ast) return false;
      for (const std::string& keyword : detail::keywords_of(*method)) {
        if (keyword.ends_with("...")) return false;  // it passes them on; to whom is for the one that gets them
        if (accepted.insert(keyword).second) known += (known.empty() ? "" : ", ") + keyword;
      }
    }
    if (methods.empty()) return false;
    for (const Field& field : given->fields) {
      if (!field.name || accepted.contains(field.name->name)) continue;
      note(inst.span, "keyword",
           "`" + name_of(callee) + "` has no keyword argument `" + field.name->name + "`" +
               (known.empty() ? ": it takes none" : "; it has: " + known));
      return true;
    }
    return false;
  }

  EngineState& engine_;
  Runtime& runtime_;
  const BuiltinTypes& builtin_;
  std::optional<Fault> found_;
};

}  // namespace

std::optional<Fault> CallChecks::check(const ir::Function& fn, const ir::Inst& inst) {
  return Checker(engine_).run(fn, inst);
}

}  // namespace slope::api::tools
