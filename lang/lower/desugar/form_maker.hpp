// Makes core forms, without looking at syntax. An error is reported, and `nothing` stands in its place.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lang/lower/form.hpp"
#include "lang/lower/state.hpp"
#include "lang/support/diagnostic.hpp"

namespace slope::lower {

class FormMaker {
 protected:
  FormMaker(Runtime& runtime, Context& ctx, FormArena& arena, std::vector<Diagnostic>& diagnostics)
      : runtime_(runtime), ctx_(ctx), arena_(arena), diagnostics_(diagnostics) {}
  ~FormMaker() = default;

  const Symbol* intern(std::string_view text) { return runtime_.symbol(text); }
  Form* form(FormKind kind, Span span, std::initializer_list<Form*> children = {});
  Form* form(FormKind kind, Span span, std::vector<Form*> children);
  Form* constant(Span span, Value v);
  Form* nothing(Span span);
  Form* integer(Span span, std::int64_t n);
  Form* symbol(Span span, std::string_view name);
  Form* string(Span span, std::string_view text);
  Form* name(Span span, const Symbol* name, Module* module = nullptr);
  Form* base(Span span, std::string_view name);
  Form* core(Span span, std::string_view name);
  Form* call(Span span, std::vector<Form*> children);
  Form* base_call(Span span, std::string_view function, std::vector<Form*> arguments);
  Form* operation(Span span, ir::Op op, std::vector<Form*> operands, std::uintptr_t aux = 0);
  Form* native(Span span, std::string_view name, std::vector<Form*> operands);
  Form* temporary(Form* value);
  Form* use(Form* temporary);
  Form* block(Span span, std::vector<Form*> forms);
  Form* scope(Span span, std::uint8_t flags, Form* body);
  Form* if_form(Span span, Form* condition, Form* then, Form* otherwise);
  Form* assign_name(Span span, const Symbol* name, Form* value);
  Form* local(Span span, const Symbol* name);
  const Symbol* hidden(std::string_view stem);  // a variable that no program can name
  Form* error(Span span, std::string message, std::string help = {});
  Form* named_tuple(Span span, std::span<const Symbol* const> names, std::vector<Form*> values);
  Form* tuple(Span span, std::vector<Form*> values) { return operation(span, ir::Op::tuple, std::move(values)); }

  Runtime& runtime_;
  Context& ctx_;
  FormArena& arena_;
  std::vector<Diagnostic>& diagnostics_;
};

}  // namespace slope::lower
