// struct, abstract type and primitive type definitions.
//
// The name is bound before field types are evaluated, so that they may refer to it. Defining an identical type again
// keeps the old one (its constructors are defined anew); a different one is an error, as types in use cannot change.
#include <algorithm>
#include <utility>

#include "lang/lower/definition.hpp"
#include "lang/lower/emit.hpp"
#include "lang/lower/expr.hpp"
#include "lang/lower/type_expression.hpp"
#include "lang/support/exception_safe.hpp"
#include "lang/types/expanding.hpp"

namespace slope::lower {

using syntax::Ast;
using syntax::Head;
using syntax::no_node;
using syntax::NodeId;

namespace {

struct TypeHeader {
  NodeId name = no_node;
  std::vector<NodeId> parameters;
  NodeId super = no_node;
};

bool read_header(const Ast& ast, NodeId node, TypeHeader& out) {
  if (ast.head(node) == Head::subtype && ast.child_count(node) == 2) {
    out.super = ast.child(node, 1);
    node = ast.child(node, 0);
  }
  if (ast.head(node) == Head::curly && ast.child_count(node) > 0) {
    const auto parts = ast.children(node);
    out.parameters.assign(parts.begin() + 1, parts.end());
    node = parts[0];
  }
  out.name = node;
  return ast.head(node) == Head::identifier;
}

// The smallest number of arguments of a `new` call inside `node`.
std::size_t least_new_arguments(const Ast& ast, NodeId node, std::size_t least) {
  const Head head = ast.head(node);
  const auto children = ast.children(node);
  if (head == Head::call && !children.empty()) {
    NodeId callee = children[0];
    if (ast.head(callee) == Head::curly && ast.child_count(callee) > 0) callee = ast.child(callee, 0);
    if (identifier_text(ast, callee) == "new") {
      bool splat = false;
      for (const NodeId argument : children.subspan(1)) splat |= ast.head(argument) == Head::splat;
      if (!splat) least = std::min(least, children.size() - 1);
    }
  }
  for (const NodeId child : children) least = least_new_arguments(ast, child, least);
  return least;
}

class Types {
 public:
  Types(Runtime& runtime, Context& ctx, Definition& definition)
      : runtime_(runtime),
        ctx_(ctx),
        definition_(definition),
        module_(definition.module),
        ast_(*definition.ast),
        types_(runtime, ctx, definition.module, definition.ast) {}

  bool define_struct() {
    const auto children = copy(definition_.node);
    if (children.size() != 2 || !start(children[0])) return malformed("struct");
    const bool is_mutable = ast_.node(definition_.node).flag == 1;
    if (!read_fields(children[1])) return false;
    if (!evaluate_super()) return false;
    std::vector<const Symbol*> names;
    std::vector<const Type*> fields;
    std::vector<bool> constants;
    for (const Field& field : fields_) {
      const Type* type = runtime_.types.builtin().any;
      if (field.type != no_node && !types_.type(field.type, type)) return false;
      names.push_back(field.name);
      fields.push_back(type);
      constants.push_back(field.is_const);
    }
    std::size_t least = names.size();
    for (const NodeId constructor : constructors_) least = least_new_arguments(ast_, constructor, least);
    if (existing_) {
      std::vector<const TypeVar*> old(name_->vars.begin(), name_->vars.end());
      bool same = !name_->is_abstract && !name_->is_primitive && name_->is_mutable == is_mutable && same_variables() &&
                  name_->field_names == names && name_->field_const == constants &&
                  same_type(super_, name_->primary->super);
      for (std::size_t i = 0; same && i < fields.size(); ++i) same = same_type(fields[i], name_->field_types[i]);
      if (!same) return refuse();
    } else {
      name_->field_const = constants;
      runtime_.types.define_struct(name_, vars_, super_, names, fields, is_mutable, static_cast<std::uint32_t>(least));
      bind();
    }
    return constructors_.empty() ? default_constructors() : own_constructors();
  }

  bool define_abstract() {
    const auto children = copy(definition_.node);
    if (children.empty() || !start(children[0])) return malformed("abstract type");
    if (!evaluate_super()) return false;
    if (existing_) {
      if (!name_->is_abstract || !same_variables() || !same_type(super_, name_->primary->super)) return refuse();
      return true;
    }
    runtime_.types.define_abstract(name_, vars_, super_);
    bind();
    return true;
  }

  bool define_primitive() {
    const auto children = copy(definition_.node);
    if (children.size() != 2 || !start(children[0]) || !vars_.empty()) return malformed("primitive type");
    if (!evaluate_super()) return false;
    const auto& bits = ast_.node(children[1]);
    if (bits.head != Head::integer || bits.integer <= 0 || bits.integer % 8 != 0 || bits.integer >= 1 << 23)
      return raise_at(ctx_, bits.span, "invalid number of bits in primitive type " + symbol_->name);
    if (bits.integer != 8 && bits.integer != 16 && bits.integer != 32 && bits.integer != 64)
      return define_wide(bits.integer);
    if (existing_) {
      if (!name_->is_primitive || name_->primitive_bits != bits.integer || !same_type(super_, name_->primary->super))
        return refuse();
      return true;
    }
    runtime_.types.define_primitive(name_, super_, static_cast<std::uint32_t>(bits.integer));
    bind();
    return true;
  }

  // Bits that no register holds: a struct of words, or of bytes, whose values only `reinterpret` makes.
  bool define_wide(std::int64_t bits) {
    const auto& builtin = runtime_.types.builtin();
    const bool in_words = bits % 64 == 0;
    const auto count = static_cast<std::size_t>(bits / (in_words ? 64 : 8));
    std::vector<const Symbol*> names;
    for (std::size_t i = 0; i < count; ++i) names.push_back(runtime_.symbol("#bits" + std::to_string(i + 1)));
    const std::vector<const Type*> words(count, in_words ? builtin.uint64 : builtin.uint8);
    if (existing_) {
      if (name_->is_primitive || name_->is_abstract || name_->field_names != names ||
          !same_type(super_, name_->primary->super))
        return refuse();
      return true;
    }
    runtime_.types.define_struct(name_, vars_, super_, names, words, false, static_cast<std::uint32_t>(count));
    bind();
    return true;
  }

 private:
  struct Field {
    const Symbol* name = nullptr;
    NodeId type = no_node;
    bool is_const = false;
  };

  std::vector<NodeId> copy(NodeId node) const {
    const auto children = ast_.children(node);
    return {children.begin(), children.end()};
  }

  bool malformed(const char* what) {
    if (ctx_.failed()) return false;
    return raise_at(ctx_, ast_.node(definition_.node).span, std::string("malformed ") + what + " definition");
  }

  bool refuse() {
    return raise_at(ctx_, ast_.node(definition_.node).span, "invalid redefinition of constant " + symbol_->name);
  }

  bool start(NodeId signature) {
    if (!read_header(ast_, signature, header_)) return false;
    symbol_ = runtime_.symbol(ast_.name_of(header_.name));
    const Binding* own = module_->own(symbol_);
    if (own != nullptr && own->value.defined()) {
      const Value old = own->value;
      if (!old.type->is_kind) return refuse();
      const Type* body = old.as_type;
      while (as_union_all(body) != nullptr) body = as_union_all(body)->body;
      const DataType* data = as_data(body);
      // Base may give a builtin type of Core its own name again; a program may not redefine what it imported.
      if (data == nullptr || data->name->name != symbol_ || data->name->module != module_) return refuse();
      name_ = data->name;
      existing_ = true;
    } else {
      name_ = runtime_.types.new_name(symbol_, module_);
    }
    types_.incomplete = name_;
    for (const NodeId entry : header_.parameters) {
      vars_.push_back(nullptr);
      if (!types_.declare(entry, vars_.back())) return false;
    }
    if (existing_) {
      if (vars_.size() != name_->vars.size()) return refuse();
    } else {
      name_->vars = vars_;
    }
    // The bare name: the whole family.
    std::vector<const Type*> parameters(name_->vars.begin(), name_->vars.end());
    const Type* self = runtime_.types.apply(name_, parameters);
    for (std::size_t i = name_->vars.size(); i-- > 0;) self = runtime_.types.union_all(name_->vars[i], self);
    types_.names.insert(types_.names.begin(), {symbol_, runtime_.from_type(self)});
    return true;
  }

  bool evaluate_super() {
    super_ = runtime_.types.builtin().any;
    if (header_.super == no_node) return true;
    if (!types_.type(header_.super, super_)) return false;
    const DataType* data = as_data(super_);
    if (data == nullptr || !data->is_abstract || data->is_tuple || data->name == runtime_.types.builtin().type_name)
      return raise_at(ctx_, ast_.node(header_.super).span,
                      "invalid subtyping in definition of " + symbol_->name + ": can only subtype abstract types");
    const std::vector<const TypeVar*> own(name_->vars.begin(), name_->vars.end());
    if (supertypes_expand(name_, own, super_))
      return raise_at(
          ctx_, ast_.node(header_.super).span,
          "invalid subtyping in definition of " + symbol_->name + ": its supertypes would grow without end");
    if (!existing_) {
      // Field types may already ask what the type is below of.
      std::vector<const Type*> parameters(name_->vars.begin(), name_->vars.end());
      const_cast<DataType*>(runtime_.types.apply(name_, parameters))->super = data;
    }
    return true;
  }

  // `a` in terms of the new variables, `b` of the old ones.
  bool same_type(const Type* a, const Type* b) {
    std::vector<const Type*> old(name_->vars.begin(), name_->vars.end());
    return vars_.empty() ? a == b : runtime_.types.substitute(a, vars_, old) == b;
  }

  bool same_variables() {
    for (std::size_t i = 0; i < vars_.size(); ++i)
      if (vars_[i]->name != name_->vars[i]->name || !same_type(vars_[i]->upper, name_->vars[i]->upper) ||
          !same_type(vars_[i]->lower, name_->vars[i]->lower))
        return false;
    return true;
  }

  void bind() { runtime_.set_constant(module_, symbol_->name, runtime_.from_type(name_->wrapper)); }

  bool read_fields(NodeId body) {
    if (ast_.head(body) != Head::block) return malformed("struct");
    for (const NodeId statement : copy(body))
      if (!read_field(statement)) return false;
    return true;
  }

  // What a program's macro makes of a part of the struct: fields and constructors.
  bool read_expansion(NodeId call) {
    const Binding* expand = runtime_.resolve(runtime_.base, runtime_.symbol("macroexpand"));
    if (expand == nullptr || !expand->value.defined()) return malformed("struct");
    const Span at = ast_.node(call).span;
    Value code;
    if (!to_value(runtime_, ctx_, *definition_.ast, call, code)) return false;
    const Value arguments[] = {Value(runtime_.types.builtin().module, static_cast<const void*>(module_)), code};
    Value expansion;
    {
      const Restored world(ctx_.world, top_world(runtime_));
      if (!runtime_.call(ctx_, expand->value, arguments, 2, expansion)) return false;
    }
    std::string problem;
    const NodeId made = from_value(runtime_, ctx_, *definition_.ast, at, expansion, nullptr, problem);
    if (ctx_.failed()) return false;
    if (!problem.empty()) return raise_at(ctx_, at, "in macro expansion: " + problem);
    return read_field(made);
  }

  bool read_field(NodeId node) {
    if (ast_.head(node) == Head::macrocall && ast_.child_count(node) == 3 &&
        identifier_text(ast_, ast_.child(node, 0)) == "@doc")
      node = ast_.child(node, 2);
    Field field;
    if (ast_.head(node) == Head::const_ && ast_.child_count(node) == 1) {
      if (ast_.node(definition_.node).flag != 1)
        return raise_at(ctx_, ast_.node(node).span, "`const` fields need a mutable struct");
      field.is_const = true;
      node = ast_.child(node, 0);
    }
    switch (ast_.head(node)) {
      case Head::identifier:
        field.name = runtime_.symbol(ast_.name_of(node));
        break;
      case Head::type_assert:
        if (ast_.child_count(node) != 2 || ast_.head(ast_.child(node, 0)) != Head::identifier)
          return raise_at(ctx_, ast_.node(node).span, "expected a field: name or name::Type");
        field.name = runtime_.symbol(ast_.name_of(ast_.child(node, 0)));
        field.type = ast_.child(node, 1);
        break;
      case Head::global_:  // global function made(x) … new(x) … end: a function of the module that can call `new`
        if (is_names(node)) return true;  // of such functions that follow
        if (ast_.child_count(node) != 1 ||
            (ast_.head(ast_.child(node, 0)) != Head::function && ast_.head(ast_.child(node, 0)) != Head::macrocall &&
             !is_short_definition(ast_, ast_.child(node, 0))))
          return raise_at(ctx_, ast_.node(node).span, "expected a field or a constructor inside a struct");
        return read_field(ast_.child(node, 0));
      case Head::function:
        constructors_.push_back(node);
        return true;
      case Head::macrocall: {
        // @inline Foo(x) = …
        const auto parts = ast_.children(node);
        const Symbol* macro = runtime_.symbol(identifier_text(ast_, parts[0]));
        // Tasks of one engine run one at a time: each field is read and written whole.
        if (parts.size() == 2 && macro->name == "@atomic") return read_field(parts[1]);
        if (const Binding* known = runtime_.resolve(module_, macro);
            ast_.head(parts[0]) == Head::dot || (known != nullptr && known->value.defined()))
          return read_expansion(node);
        if (parts.size() == 2 && (ast_.head(parts[1]) == Head::function || is_short_definition(ast_, parts[1]))) {
          constructors_.push_back(parts[1]);
          return true;
        }
        return raise_at(ctx_, ast_.node(node).span, "a macro inside a struct is not part of Slope");
      }
      case Head::assign:
        if (is_short_definition(ast_, node)) {
          constructors_.push_back(node);
          return true;
        }
        return raise_at(ctx_, ast_.node(node).span, "a field has no default value",
                        "put `@kwdef` before the struct, or write a constructor");
      case Head::string:
      case Head::interpolated:  // a text that documents what follows
      case Head::nothing:
        return true;
      case Head::block:
        for (const NodeId part : copy(node))
          if (!read_field(part)) return false;
        return true;
      case Head::call: {  // it is evaluated, and its value is dropped
        Rooted values(runtime_.heap);
        values.values.resize(2);
        return to_value(runtime_, ctx_, ast_, node, values.values[0]) &&
               eval(runtime_, ctx_, module_, values.values[0], values.values[1]);
      }
      default:
        return raise_at(ctx_, ast_.node(node).span, "expected a field or a constructor inside a struct");
    }
    for (const Field& other : fields_)
      if (other.name == field.name)
        return raise_at(ctx_, ast_.node(node).span, "duplicate field name: \"" + field.name->name + "\" is not unique");
    fields_.push_back(field);
    return true;
  }
  bool is_names(NodeId node) const {
    const auto names = ast_.children(node);
    return std::all_of(names.begin(), names.end(), [&](NodeId n) { return ast_.head(n) == Head::identifier; });
  }
  bool raise_at(Context& ctx, Span span, std::string message, const std::string& help = {}) {
    return lower::raise_at(ctx, span, help.empty() ? std::move(message) : message + "; " + help);
  }

  bool own_constructors() {
    for (const NodeId node : constructors_) {
      std::vector<Diagnostic> diagnostics;
      auto signature = parse_signature(definition_.ast, node, diagnostics);
      if (signature == nullptr) return raise_diagnostics(runtime_, ctx_, diagnostics);
      Value ignored;
      if (!define_methods(runtime_, ctx_, module_, std::move(signature), {}, name_, nullptr, ignored)) return false;
    }
    return true;
  }

  bool default_constructors() {
    const auto& builtin = runtime_.types.builtin();
    const std::size_t count = name_->field_names.size();
    std::vector<const Type*> anything(count, builtin.any);
    if (name_->vars.empty()) {
      if (!constructor(Variant::Kind::constructor_exact, name_->wrapper, {}, name_->field_types)) return false;
      if (name_->field_types == anything) return true;
      return constructor(Variant::Kind::constructor_convert, name_->wrapper, {}, anything);
    }
    if (!constructor(Variant::Kind::constructor_convert, name_->primary, name_->vars, anything)) return false;
    // Foo(a, b) exists when the fields determine all parameters, or the bounds of parameters that they determine.
    std::vector<const Type*> determining = name_->field_types;
    for (std::size_t i = name_->vars.size(); i-- > 0;) {
      const TypeVar* var = name_->vars[i];
      const Type* all = runtime_.types.tuple(determining);
      if (runtime_.types.union_all(var, all) == all) return true;
      determining.push_back(var->upper);
    }
    return constructor(Variant::Kind::constructor_outer, name_->wrapper, name_->vars, name_->field_types);
  }

  bool constructor(Variant::Kind kind, const Type* constructed, std::span<const TypeVar* const> vars,
                   std::span<const Type* const> parameters) {
    std::vector<const Type*> elements{runtime_.types.type_type(constructed)};
    elements.insert(elements.end(), parameters.begin(), parameters.end());
    auto method = std::make_unique<Method>();
    std::vector<std::uint32_t> indices;
    method->signature = close_signature(runtime_, runtime_.types.tuple(elements), vars, indices);
    for (const Type* t = method->signature; as_union_all(t) != nullptr; t = as_union_all(t)->body)
      method->static_params.push_back(as_union_all(t)->var);
    method->name = symbol_;
    method->module = module_;
    method->span = ast_.node(definition_.node).span;
    method->arg_names.push_back(runtime_.symbol("#self#"));
    method->arg_names.insert(method->arg_names.end(), name_->field_names.begin(), name_->field_names.end());
    method->arg_count = static_cast<std::uint32_t>(elements.size());
    auto source = std::make_shared<MethodSource>();
    source->variant.kind = kind;
    source->constructed = name_;
    source->static_indices = std::move(indices);
    method->body = std::make_shared<MethodBody>();
    method->body->ast = definition_.ast;
    method->body->definition = definition_.node;
    method->body->scope = std::move(source);
    runtime_.add_method(std::move(method));
    return true;
  }

  Runtime& runtime_;
  Context& ctx_;
  Definition& definition_;
  Module* module_;
  const Ast& ast_;
  TypeExpression types_;
  TypeHeader header_;
  const Symbol* symbol_ = nullptr;
  TypeName* name_ = nullptr;
  bool existing_ = false;
  std::vector<const TypeVar*> vars_;
  const Type* super_ = nullptr;
  std::vector<Field> fields_;
  std::vector<NodeId> constructors_;
};

}  // namespace

bool define_struct(Runtime& runtime, Context& ctx, Definition& definition, Value&) {
  return Types(runtime, ctx, definition).define_struct();
}

bool define_abstract(Runtime& runtime, Context& ctx, Definition& definition, Value&) {
  return Types(runtime, ctx, definition).define_abstract();
}

bool define_primitive(Runtime& runtime, Context& ctx, Definition& definition, Value&) {
  return Types(runtime, ctx, definition).define_primitive();
}

}  // namespace slope::lower
