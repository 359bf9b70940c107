#include "lang/lower/desugar/form_maker.hpp"

#include <utility>

#include "lang/lower/definition.hpp"

namespace slope::lower {

Form* FormMaker::form(FormKind kind, Span span, std::initializer_list<Form*> children) {
  Form* made = arena_.form(kind, span);
  made->children.assign(children.begin(), children.end());
  return made;
}

Form* FormMaker::form(FormKind kind, Span span, std::vector<Form*> children) {
  Form* made = arena_.form(kind, span);
  made->children = std::move(children);
  return made;
}

Form* FormMaker::constant(Span span, Value v) {
  Form* made = arena_.form(FormKind::constant, span);
  made->value = v;
  return made;
}

Form* FormMaker::nothing(Span span) { return constant(span, runtime_.nothing()); }
Form* FormMaker::integer(Span span, std::int64_t n) { return constant(span, runtime_.from_int(n)); }
Form* FormMaker::symbol(Span span, std::string_view name) { return constant(span, runtime_.from_symbol(intern(name))); }
Form* FormMaker::string(Span span, std::string_view text) { return constant(span, string_constant(runtime_, text)); }

Form* FormMaker::name(Span span, const Symbol* name, Module* module) {
  Form* made = arena_.form(FormKind::name, span);
  made->name = name;
  made->module = module;
  return made;
}

Form* FormMaker::base(Span span, std::string_view name) {
  Form* made = arena_.form(FormKind::global, span);
  const Symbol* sym = intern(name);
  made->name = sym;
  made->binding = runtime_.resolve(runtime_.base, sym);
  if (made->binding == nullptr) made->binding = runtime_.binding(runtime_.base, sym);
  return made;
}

Form* FormMaker::core(Span span, std::string_view name) {
  Form* made = arena_.form(FormKind::global, span);
  made->name = intern(name);
  made->binding = runtime_.binding(runtime_.core, made->name);
  return made;
}

Form* FormMaker::call(Span span, std::vector<Form*> children) {
  return form(FormKind::call, span, std::move(children));
}

Form* FormMaker::base_call(Span span, std::string_view function, std::vector<Form*> arguments) {
  arguments.insert(arguments.begin(), base(span, function));
  return call(span, std::move(arguments));
}

Form* FormMaker::operation(Span span, ir::Op op, std::vector<Form*> operands, std::uintptr_t aux) {
  Form* made = form(FormKind::operation, span, std::move(operands));
  made->op = op;
  made->aux = aux;
  return made;
}

Form* FormMaker::native(Span span, std::string_view name, std::vector<Form*> operands) {
  operands.insert(operands.begin(), core(span, name));
  return call(span, std::move(operands));
}

Form* FormMaker::temporary(Form* value) {
  if (value->kind == FormKind::temporary) return value;
  return form(FormKind::temporary, value->span, {value});
}

Form* FormMaker::use(Form* temporary) {
  Form* made = arena_.form(FormKind::use, temporary->span);
  made->target = temporary;
  return made;
}

Form* FormMaker::block(Span span, std::vector<Form*> forms) {
  if (forms.size() == 1) return forms[0];
  return form(FormKind::block, span, std::move(forms));
}

Form* FormMaker::scope(Span span, std::uint8_t flags, Form* body) {
  Form* made = form(FormKind::scope, span, {body});
  made->flag = flags;
  return made;
}

Form* FormMaker::if_form(Span span, Form* condition, Form* then, Form* otherwise) {
  if (otherwise == nullptr) return form(FormKind::if_, span, {condition, then});
  return form(FormKind::if_, span, {condition, then, otherwise});
}

Form* FormMaker::assign_name(Span span, const Symbol* target, Form* value) {
  return form(FormKind::assign, span, {name(span, target), value});
}

Form* FormMaker::local(Span span, const Symbol* target) {
  Form* made = arena_.form(FormKind::local, span);
  made->name = target;
  return made;
}

const Symbol* FormMaker::hidden(std::string_view stem) { return intern("#" + std::string(stem)); }

Form* FormMaker::error(Span at, std::string message, std::string help) {
  report(diagnostics_, at, std::move(message), std::move(help));
  return nothing(at);
}

// NamedTuple{names,Tuple{typeof.(values)…}} made field by field, so that inference sees every part.
Form* FormMaker::named_tuple(Span at, std::span<const Symbol* const> names, std::vector<Form*> values) {
  std::vector<Form*> setup;
  std::vector<Form*> types{core(at, "Tuple")};
  for (Form*& value : values) {
    setup.push_back(temporary(value));
    value = use(setup.back());
    types.push_back(operation(at, ir::Op::type_of, {use(setup.back())}));
  }
  Form* tuple_type = operation(at, ir::Op::apply_type, std::move(types));
  Form* type = operation(at, ir::Op::apply_type,
                         {core(at, "NamedTuple"), constant(at, symbol_tuple(runtime_, ctx_, names)), tuple_type});
  values.insert(values.begin(), type);
  setup.push_back(operation(at, ir::Op::make_struct, std::move(values)));
  return block(at, std::move(setup));
}

}  // namespace slope::lower
