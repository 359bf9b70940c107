// Scope resolution and capture analysis, one walk over the forms in evaluation order.
//
// Scopes follow Julia: a variable assigned in a scope belongs to the nearest enclosing function-level or block scope
// that has it, else it is new there; at top level, assignments in `for`, `while` and `try` (soft scopes) go to a global
// that exists already, as at Julia's prompt.
//
// A closure captures a variable by value when the variable cannot change after any closure that holds it is made: all
// assignments come before all such closures in evaluation order, no loop inside the variable's scope repeats both, no
// closure assigns it, and it is surely assigned when the closure is made. Otherwise the variable lives in a cell that
// all share. Closures that are consumed by the expression that makes them (comprehensions) only need the last two.
//
// `definite` is the set of surely assigned variables at the point of the walk. Branches are merged by intersection; a
// branch that leaves (return, break, continue) does not count.
#include "lang/lower/scope.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "lang/lower/state.hpp"
#include "lang/lower/type_expression.hpp"

namespace slope::lower {

Binding* global_binding(Runtime& runtime, Module* module, const Symbol* name) {
  Binding* binding = runtime.resolve(module, name);
  if (binding == nullptr) return runtime.binding(module, name);
  if (binding->module == module) return binding;
  if (Binding* alias = runtime.borrowed(*module, *binding)) return alias;
  if (module == runtime.main) state_of(runtime).foreign_uses.insert(name);
  return binding;
}

namespace {

// Names of one scope and what they stand for, the last of a name first; looked up by hashing once there are many.
template <class T>
class Names {
 public:
  void add(const Symbol* name, T value) {
    entries_.emplace_back(name, value);
    if (entries_.size() > few) {
      if (index_.empty())
        for (const auto& [known, its] : entries_) index_[known] = its;
      else
        index_[name] = value;
    }
  }
  T find(const Symbol* name) const {  // T{} when there is none
    if (!index_.empty()) {
      const auto found = index_.find(name);
      return found == index_.end() ? T{} : found->second;
    }
    for (std::size_t i = entries_.size(); i-- > 0;)
      if (entries_[i].first == name) return entries_[i].second;
    return T{};
  }

 private:
  static constexpr std::size_t few = 16;
  std::vector<std::pair<const Symbol*, T>> entries_;
  std::unordered_map<const Symbol*, T> index_;
};

struct Scope {
  Scope* parent = nullptr;
  Lambda* lambda = nullptr;
  bool hard = false;
  bool top = false;                // the root of a top-level statement: assigned names are globals
  const Symbol* unseen = nullptr;  // the default of an argument does not see the variable of this name
  Names<Variable*> variables;
  Names<bool> globals;
  std::vector<std::pair<const Symbol*, ClosureGroup*>> groups;
};

struct Declarations {
  std::vector<const Symbol*> locals;
  std::vector<const Symbol*> globals;
  std::vector<const Symbol*> assigned;
  std::vector<Form*> typed;
  std::vector<Form*> functions;
};

template <class T>
bool contains(const std::vector<T>& items, T item) {
  return std::find(items.begin(), items.end(), item) != items.end();
}

class Resolver {
 public:
  Resolver(Runtime& runtime, Context& ctx, FormArena& arena, std::vector<Diagnostic>& diagnostics)
      : runtime_(runtime), ctx_(ctx), arena_(arena), diagnostics_(diagnostics) {}

  void root(Lambda& lambda) {
    if (lambda.signature == nullptr && lambda.parameters.empty()) {
      Scope scope;
      scope.lambda = &lambda;
      scope.top = true;
      enter(lambda.body, scope, nullptr);
      walk(lambda.body, scope);
    } else {
      function(lambda, nullptr);
    }
    decide();
  }

 private:
  void report_at(Span at, std::string message, std::string help = {}) {
    report(diagnostics_, at, std::move(message), std::move(help));
  }

  // --- declarations of one scope ---

  void collect(Form* f, Declarations& out) {
    if (f == nullptr) return;
    switch (f->kind) {
      case FormKind::scope:
      case FormKind::closure:
        return;
      case FormKind::assign:
        if (f->children[0]->kind == FormKind::name) out.assigned.push_back(f->children[0]->name);
        collect(f->children[1], out);
        return;
      case FormKind::local:
        if (f->flag == 1) {
          out.typed.push_back(f);
          out.assigned.push_back(f->name);
        } else {
          out.locals.push_back(f->name);
        }
        return;
      case FormKind::global_name:
        out.globals.push_back(f->name);
        return;
      case FormKind::local_function:
        if (f->name != nullptr) {
          out.assigned.push_back(f->name);
          out.functions.push_back(f);
        }
        return;
      default:
        for (Form* child : f->children) collect(child, out);
    }
  }

  Variable* find_local(const Symbol* name, const Scope* scope, bool& is_global) {
    is_global = false;
    for (; scope != nullptr; scope = scope->parent) {
      if (Variable* variable = scope->variables.find(name)) return variable;
      if (scope->globals.find(name)) {
        is_global = true;
        return nullptr;
      }
      if (scope->unseen == name) {
        const Lambda* function = scope->lambda;
        while (scope->parent != nullptr && scope->parent->lambda == function) scope = scope->parent;
      }
    }
    return nullptr;
  }

  bool global_exists(Module* module, const Symbol* name) {
    const Binding* own = module->own(name);
    return own != nullptr && own->module == module && own->value.defined();
  }

  void enter(Form* body, Scope& scope, Form* scope_form) {
    Declarations found;
    collect(body, found);
    const Span at = body == nullptr ? Span{} : body->span;
    const auto declare = [&](const Symbol* name) {
      if (scope.variables.find(name) != nullptr) return;
      Variable* made = arena_.variable(name, scope.lambda, at);
      made->declared_in = loop_;
      scope.variables.add(name, made);
      scope.lambda->variables.push_back(made);
      made->in_block = scope_form != nullptr;
      if (scope_form != nullptr) scope_form->variables.push_back(made);
    };
    for (const Symbol* name : found.globals) {
      if (const Variable* variable = scope.variables.find(name); variable != nullptr && variable->is_argument)
        report_at(at, "variable \"" + name->name + "\" is both an argument and declared `global`");
      if (contains(found.locals, name))
        report_at(at, "variable \"" + name->name + "\" is declared both `local` and `global`");
      scope.globals.add(name, true);
    }
    for (const Symbol* name : found.locals) {
      const Variable* known = scope.variables.find(name);
      if (known != nullptr && known->is_argument && scope_form == nullptr && !scope.top)
        report_at(at, "local variable name \"" + name->name + "\" conflicts with an argument");
      declare(name);
    }
    for (const Symbol* name : found.assigned) {
      bool is_global = false;
      if (find_local(name, &scope, is_global) != nullptr || is_global || scope.top) continue;
      // A soft scope at top level assigns a global that exists.
      bool soft = true;
      const Scope* outer = &scope;
      for (; outer != nullptr && !outer->top; outer = outer->parent) soft &= !outer->hard;
      if (soft && outer != nullptr && (global_exists(scope.lambda->module, name) || contains(top_assigned_, name))) {
        scope.globals.add(name, true);
        continue;
      }
      declare(name);
    }
    if (scope.top) top_assigned_ = found.assigned;
    for (Form* typed : found.typed) {
      bool is_global = false;
      Variable* variable = find_local(typed->name, &scope, is_global);
      if (variable == nullptr) continue;
      if (variable->declared_type != nullptr)
        report_at(typed->span, "multiple type declarations for \"" + typed->name->name + "\"");
      variable->declared_type = typed->children[0];
    }
    for (Form* definition : found.functions) {
      bool is_global = false;
      Variable* variable = find_local(definition->name, &scope, is_global);
      if (variable == nullptr) continue;
      ClosureGroup* group = nullptr;
      for (auto& [name, known] : scope.groups)
        if (name == definition->name) group = known;
      if (group == nullptr) {
        group = arena_.group();
        group->name = definition->name;
        group->variable = variable;
        group->parent = scope.lambda;
        scope.groups.emplace_back(definition->name, group);
        if (variable->group != nullptr)
          report_at(definition->span,
                    "methods of the local function \"" + definition->name->name + "\" are defined in different scopes",
                    "define all its methods in one block");
        variable->group = group;
      }
      definition->group = group;
      group->methods.insert(group->methods.end(), definition->lambdas.begin(), definition->lambdas.end());
    }
  }

  // --- the walk ---

  void mark(Variable* variable) {
    if (variable->definite) return;
    variable->definite = true;
    log_.push_back(variable);
  }

  std::vector<Variable*> roll_back(std::size_t checkpoint) {
    checkpoint = std::min(checkpoint, log_.size());  // a label forgets more
    std::vector<Variable*> undone(log_.begin() + static_cast<std::ptrdiff_t>(checkpoint), log_.end());
    for (Variable* variable : undone) variable->definite = false;
    log_.resize(checkpoint);
    return undone;
  }

  void merge(bool first_live, const std::vector<Variable*>& first, bool second_live,
             const std::vector<Variable*>& second) {
    live_ = first_live || second_live;
    if (!second_live) {
      for (Variable* variable : first) mark(variable);
    } else if (!first_live) {
      for (Variable* variable : second) mark(variable);
    } else {
      for (Variable* variable : first)
        if (contains(second, variable)) mark(variable);
    }
  }

  void walk_all(Form* f, Scope& scope) {
    for (Form* child : f->children)
      if (child != nullptr) walk(child, scope);
  }

  // Long because it is a table: one case for each kind of form.
  void walk(Form* f, Scope& scope) {
    switch (f->kind) {
      case FormKind::constant:
      case FormKind::global:
      case FormKind::use:
      case FormKind::self:
      case FormKind::caught:
      case FormKind::global_name:
        return;
      case FormKind::break_:
      case FormKind::continue_:
        live_ = false;
        return;
      case FormKind::goto_:
        live_ = false;
        return;
      case FormKind::label:
        // Control comes from anywhere, also from below: nothing is surely assigned, and what follows may run again.
        roll_back(0);
        live_ = true;
        loop_ = arena_.loop(loop_);
        return;
      case FormKind::outer_local: {
        bool is_global = false;
        // Also of a function around this one: the closure shares it.
        if (find_local(f->name, &scope, is_global) == nullptr)
          report_at(f->span, "no outer local variable declaration exists for \"for outer\"");
        return;
      }
      case FormKind::name:
        reference(f, scope);
        return;
      case FormKind::defined:
        reference(f, scope);
        return;
      case FormKind::local:
        if (f->flag == 1) typed_global(f, scope);
        return;
      case FormKind::assign:
        assign(f, scope);
        return;
      case FormKind::define_constant:
        walk_all(f, scope);
        f->module = scope.lambda->module;
        return;
      case FormKind::return_:
        walk_all(f, scope);
        live_ = false;
        return;
      case FormKind::if_: {
        walk(f->children[0], scope);
        const std::size_t checkpoint = log_.size();
        const bool before = live_;
        walk(f->children[1], scope);
        const bool then_live = live_;
        const auto then = roll_back(checkpoint);
        live_ = before;
        if (f->children.size() > 2) walk(f->children[2], scope);
        const bool else_live = live_;
        const auto otherwise = roll_back(checkpoint);
        merge(then_live, then, else_live, otherwise);
        return;
      }
      case FormKind::loop: {
        const LoopNode* outer = loop_;
        loop_ = arena_.loop(outer);
        if (f->children[0] != nullptr) walk(f->children[0], scope);
        const std::size_t checkpoint = log_.size();
        const bool before = live_;
        for (std::size_t i = 1; i < f->children.size(); ++i) walk(f->children[i], scope);
        roll_back(checkpoint);
        live_ = before;
        loop_ = outer;
        return;
      }
      case FormKind::try_:
        try_form(f, scope);
        return;
      case FormKind::scope: {
        Scope inner;
        inner.parent = &scope;
        inner.lambda = scope.lambda;
        inner.hard = (f->flag & scope_hard) != 0;
        inner.unseen = f->name;
        enter(f->children[0], inner, f);
        walk(f->children[0], inner);
        return;
      }
      case FormKind::closure: {
        ClosureGroup* group = arena_.group();
        group->name = f->lambdas.empty() ? runtime_.symbol("#anonymous") : f->lambdas[0]->name;
        group->methods = f->lambdas;
        group->parent = scope.lambda;
        f->group = group;
        resolve_group(*group, scope);
        capture_event(*group, scope);
        return;
      }
      case FormKind::local_function:
        local_function(f, scope);
        return;
      default:
        walk_all(f, scope);
    }
  }

  void try_form(Form* f, Scope& scope) {
    const std::size_t checkpoint = log_.size();
    const bool before = live_;
    walk(f->children[0], scope);
    if (f->children[3] != nullptr) walk(f->children[3], scope);
    const bool body_live = live_;
    const auto body = roll_back(checkpoint);
    live_ = before;
    if (f->children[1] != nullptr) {
      walk(f->children[1], scope);
      const bool catch_live = live_;
      const auto handler = roll_back(checkpoint);
      if (f->children[2] != nullptr) {
        live_ = before;
        walk(f->children[2], scope);
      }
      merge(body_live, body, catch_live, handler);
    } else {
      live_ = before;
      if (f->children[2] != nullptr) walk(f->children[2], scope);
      live_ = body_live;
      for (Variable* variable : body) mark(variable);
    }
  }

  void resolve_global(Form* f, Scope& scope) {
    Module* module = f->module != nullptr ? f->module : scope.lambda->module;
    if (f->name->name == "include" && f->kind == FormKind::name && runtime_.resolve(module, f->name) == nullptr) {
      // Each module has one of its own.
      const Binding* type = runtime_.resolve(runtime_.base, runtime_.symbol("IncludeIn"));
      const Value parts[] = {Value(runtime_.types.builtin().module, static_cast<const void*>(module)),
                             string_constant(runtime_, runtime_.sources.file(f->span.file).name())};
      Value made;
      if (type != nullptr && type->value.defined() && type->value.type->is_kind &&
          as_data(type->value.as_type) != nullptr &&
          runtime_.new_object(ctx_, as_data(type->value.as_type), parts, 2, made)) {
        f->kind = FormKind::constant;
        f->value = keep(runtime_, made);
        return;
      }
    }
    f->binding = global_binding(runtime_, module, f->name);
  }

  void reference(Form* f, Scope& scope) {
    bool is_global = false;
    Variable* variable = f->module != nullptr ? nullptr : find_local(f->name, &scope, is_global);
    if (variable == nullptr) {
      resolve_global(f, scope);
      if (f->kind == FormKind::name && f->module == nullptr && f->binding->module != scope.lambda->module &&
          scope.lambda->parent == nullptr && contains(top_assigned_, f->name))
        look_up_when_reached(f, scope);
      return;
    }
    f->variable = variable;
    use_variable(variable, scope.lambda);
  }

  // A statement that assigns a global of the name of another module's: once it is there, the name means it.
  void look_up_when_reached(Form* f, Scope& scope) {
    Form* function = arena_.form(FormKind::global, f->span);
    function->binding = global_binding(runtime_, runtime_.base, runtime_.symbol("getglobal"));
    Form* module = arena_.form(FormKind::constant, f->span);
    module->value = Value(runtime_.types.builtin().module, scope.lambda->module);
    Form* name = arena_.form(FormKind::constant, f->span);
    name->value = runtime_.from_symbol(f->name);
    f->kind = FormKind::call;
    f->children = {function, module, name};
  }

  // Makes `variable` reachable from `user`: a capture in every function between them.
  void use_variable(Variable* variable, Lambda* user) {
    bool escapes = false;
    bool by_self = false;
    for (Lambda* inner = user; inner != nullptr && inner != variable->owner; inner = inner->parent)
      by_self |= variable->group != nullptr && inner->group == variable->group;
    for (Lambda* inner = user; inner != nullptr && inner != variable->owner; inner = inner->parent) {
      escapes |= !inner->transient;
      auto found = std::find_if(inner->captures.begin(), inner->captures.end(),
                                [&](const Capture& c) { return c.variable == variable; });
      if (found == inner->captures.end()) {
        inner->captures.push_back({});
        found = inner->captures.end() - 1;
        found->variable = variable;
      }
      found->escapes |= escapes;
      found->by_value = by_self;
      if (variable->group != nullptr && inner->group == variable->group) {
        found->self = true;
        variable->captures_itself = true;
        return;  // the callee is the variable's value: nothing further out is needed
      }
    }
  }

  void assigned(Variable* variable, Scope& scope, bool by_definition) {
    if (!by_definition) ++variable->plain_assignments;
    if (variable->owner != scope.lambda) {
      variable->assigned_by_closure = true;
      if (variable->group != nullptr && variable->captures_itself) variable->needs_cell = true;
      use_variable(variable, scope.lambda);
      return;
    }
    variable->assigned.push_back({++time_, loop_});
    mark(variable);
  }

  void assign(Form* f, Scope& scope) {
    Form* target = f->children[0];
    walk(f->children[1], scope);
    if (target->kind != FormKind::name) return;
    bool is_global = false;
    Variable* variable = target->module != nullptr ? nullptr : find_local(target->name, &scope, is_global);
    if (variable == nullptr) {
      Module* module = target->module != nullptr ? target->module : scope.lambda->module;
      // An assignment never goes to another module's binding that is merely visible here.
      target->binding = runtime_.binding(module, target->name);
      return;
    }
    if (variable->is_static_parameter) {
      report_at(target->span, "cannot assign a value to the type parameter \"" + variable->name->name + "\"");
      return;
    }
    target->variable = variable;
    if (variable->declared_type != nullptr) {
      // x = v for x::T is x = convert(T, v)::T
      Form* value = arena_.form(FormKind::temporary, f->span);
      value->children.push_back(f->children[1]);
      Form* type = arena_.form(FormKind::temporary, f->span);
      std::unordered_map<const Form*, Form*> copies;
      type->children.push_back(copy(variable->declared_type, copies));
      walk(type->children[0], scope);
      const auto use = [&](Form* temporary) {
        Form* made = arena_.form(FormKind::use, f->span);
        made->target = temporary;
        return made;
      };
      Form* function = arena_.form(FormKind::global, f->span);
      function->name = runtime_.symbol("convert");
      function->binding = global_binding(runtime_, runtime_.base, function->name);
      Form* converted = arena_.form(FormKind::call, f->span);
      converted->children = {function, use(type), use(value)};
      Form* checked = arena_.form(FormKind::operation, f->span);
      checked->op = ir::Op::type_assert;
      checked->children = {converted, use(type)};
      Form* assignment = arena_.form(FormKind::assign, f->span);
      assignment->children = {target, checked};
      f->kind = FormKind::block;
      f->children = {value, type, assignment, use(value)};
    }
    assigned(variable, scope, false);
  }

  Form* copy(const Form* f, std::unordered_map<const Form*, Form*>& copies) {
    Form* made = arena_.form(f->kind, f->span);
    *made = *f;
    copies[f] = made;
    for (Form*& child : made->children)
      if (child != nullptr) child = copy(child, copies);
    if (made->target != nullptr) {
      const auto found = copies.find(made->target);
      if (found != copies.end()) made->target = found->second;
    }
    if (!made->lambdas.empty()) report_at(f->span, "a function inside the type of a variable is not part of Slope");
    return made;
  }

  // `x::T = v` and `global x::T` at top level.
  void typed_global(Form* f, Scope& scope) {
    bool is_global = false;
    if (find_local(f->name, &scope, is_global) != nullptr) return;
    walk_all(f, scope);
    const auto& builtin = runtime_.types.builtin();
    Form* function = arena_.form(FormKind::global, f->span);
    function->binding = runtime_.binding(runtime_.core, runtime_.symbol("declare_global"));
    Form* module = arena_.form(FormKind::constant, f->span);
    module->value = Value(builtin.module, scope.lambda->module);
    Form* name = arena_.form(FormKind::constant, f->span);
    name->value = runtime_.from_symbol(f->name);
    f->kind = FormKind::call;
    f->children = {function, module, name, f->children[0]};
  }

  // --- closures ---

  void function(Lambda& lambda, Scope* outer) {
    Scope scope;
    scope.parent = outer;
    scope.lambda = &lambda;
    scope.hard = true;
    const auto saved_log = std::exchange(log_, {});
    const auto* saved_loop = std::exchange(loop_, nullptr);
    const bool saved_live = std::exchange(live_, true);
    for (Variable* variable : lambda.static_parameters) {
      variable->definite = true;
      scope.variables.add(variable->name, variable);
    }
    for (Variable* variable : lambda.parameters) {
      variable->definite = true;
      variable->assigned.push_back({++time_, nullptr});
      scope.variables.add(variable->name, variable);
      lambda.variables.push_back(variable);
    }
    if (outer != nullptr) parameter_types(lambda, scope);
    enter(lambda.body, scope, nullptr);
    if (lambda.return_type != nullptr) walk(lambda.return_type, scope);
    walk(lambda.body, scope);
    log_ = saved_log;
    loop_ = saved_loop;
    live_ = saved_live;
  }

  // Types in a closure's signature are evaluated now: they may name globals and static parameters, not variables.
  void parameter_types(Lambda& lambda, Scope& scope) {
    const SignatureSyntax& signature = *lambda.signature;
    if (lambda.types_name_variables) {
      const Type* any = runtime_.types.builtin().any;
      for (std::size_t i = lambda.self_index + 1; i < lambda.parameters.size(); ++i) {
        const bool rest = lambda.is_vararg && i + 1 == lambda.parameters.size();
        lambda.parameter_types.push_back(rest ? runtime_.types.vararg(any, nullptr) : any);
      }
      return;
    }
    TypeExpression types(runtime_, ctx_, lambda.module, signature.ast);
    types.outer = [&](const Symbol* name, Span at, Value& out, bool& found) {
      bool is_global = false;
      Variable* variable = find_local(name, &scope, is_global);
      found = variable != nullptr;
      if (!found) return true;
      if (!variable->is_static_parameter || variable->type_var == nullptr) {
        types.error_span = at;
        return ctx_.raise_error("local variable " + name->name + " cannot be used in a closure declaration");
      }
      use_variable(variable, &lambda);
      out = runtime_.from_type(variable->type_var);
      return true;
    };
    const auto failed = [&] {
      const Value error = ctx_.take_error();
      report_at(types.error_span.end != 0 ? types.error_span : signature.span, runtime_.show(ctx_, error));
    };
    for (std::size_t i = 0; i < lambda.static_parameters.size() && i < signature.where_variables.size(); ++i) {
      if (!types.declare(signature.where_variables[i], lambda.static_parameters[i]->type_var)) return failed();
    }
    const std::size_t positional = signature.positional_count();
    for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
      const auto& parameter = signature.parameters[i];
      if (i >= positional - std::min<std::size_t>(lambda.variant.omitted, positional) && i < positional) continue;
      if (parameter.is_vararg && lambda.variant.omitted > 0) continue;
      const Type* type = runtime_.types.builtin().any;
      if (parameter.type != syntax::no_node && !types.type(parameter.type, type)) return failed();
      if (parameter.is_vararg && as_vararg(type) == nullptr) type = runtime_.types.vararg(type, nullptr);
      lambda.parameter_types.push_back(type);
    }
  }

  void resolve_group(ClosureGroup& group, Scope& scope) {
    if (group.resolved) return;
    group.resolved = true;
    for (Lambda* lambda : group.methods) {
      lambda->parent = scope.lambda;
      lambda->group = &group;
    }
    for (Lambda* lambda : group.methods) function(*lambda, &scope);
    for (Lambda* lambda : group.methods) {
      for (const Capture& capture : lambda->captures) {
        auto found = std::find_if(group.captures.begin(), group.captures.end(),
                                  [&](const Capture& c) { return c.variable == capture.variable; });
        if (found == group.captures.end()) {
          group.captures.push_back(capture);
        } else {
          found->escapes |= capture.escapes;
        }
      }
    }
    groups_.push_back(&group);
  }

  // A closure value is made here.
  void capture_event(ClosureGroup& group, Scope& scope) {
    ++time_;
    for (const Capture& capture : group.captures) {
      Variable* variable = capture.variable;
      if (capture.self || variable->is_static_parameter || variable->owner != scope.lambda) continue;
      if (!variable->definite) variable->needs_cell = true;
      if (capture.escapes) variable->captured.push_back({time_, loop_});
    }
  }

  void variables_in(const syntax::Ast& ast, syntax::NodeId node, Scope& scope, std::vector<const Symbol*>& found) {
    if (node == syntax::no_node) return;
    if (ast.head(node) == syntax::Head::identifier) {
      const Symbol* name = symbol_of(runtime_, ast, node);
      bool is_global = false;
      const Variable* variable = find_local(name, &scope, is_global);
      if (variable != nullptr && !variable->is_static_parameter &&
          std::find(found.begin(), found.end(), name) == found.end())
        found.push_back(name);
      return;
    }
    for (const syntax::NodeId child : ast.children(node)) variables_in(ast, child, scope, found);
  }

  bool names_undefined(const syntax::Ast& ast, syntax::NodeId node, Scope& scope) {
    if (node == syntax::no_node) return false;
    if (ast.head(node) == syntax::Head::identifier) {
      const Symbol* name = symbol_of(runtime_, ast, node);
      bool is_global = false;
      if (find_local(name, &scope, is_global) != nullptr) return false;
      const Binding* binding = runtime_.resolve(scope.lambda->module, name);
      return binding == nullptr || !binding->value.defined();
    }
    const auto parts = ast.children(node);
    return std::any_of(parts.begin(), parts.end(),
                       [&](syntax::NodeId part) { return names_undefined(ast, part, scope); });
  }

  // for T in (A, B); Base.f(x::T) = 1; end: the definition gets the values of the variables that its signature names.
  void give_variables_of_types(Form* f, Scope& scope) {
    if (f->children.empty() || f->lambdas.empty() || scope.lambda->parent != nullptr) return;
    const SignatureSyntax& signature = *f->lambdas[0]->signature;
    std::vector<const Symbol*> found;
    for (const syntax::NodeId variable : signature.where_variables) {
      // Bounds alone: f(x::T) where {T<:local}.
      const auto parts = signature.ast->children(variable);
      for (std::size_t i = 1; i < parts.size(); ++i) variables_in(*signature.ast, parts[i], scope, found);
    }
    if (found.empty() && !signature.where_variables.empty()) return;
    for (const auto& parameter : signature.parameters) variables_in(*signature.ast, parameter.type, scope, found);
    variables_in(*signature.ast, signature.object_type, scope, found);
    // A type that an earlier statement of the block defines is not there yet: the definition evaluates the signature.
    bool is_waiting = false;
    for (const auto& parameter : signature.parameters)
      is_waiting |= names_undefined(*signature.ast, parameter.type, scope);
    if (found.empty() && !is_waiting) return;
    for (Lambda* lambda : f->lambdas) lambda->types_name_variables = true;
    for (std::size_t i = 0; i < f->children.size() && i < 2; ++i) {
      for (const Symbol* name : found) {
        Form* symbol = arena_.form(FormKind::constant, f->span);
        symbol->value = runtime_.from_symbol(name);
        Form* value = arena_.form(FormKind::name, f->span);
        value->name = name;
        f->children[i]->children.insert(f->children[i]->children.end(), {symbol, value});
      }
    }
  }

  // Does anything in there assign a variable that a block around it declares global?
  bool assigns_declared_global(const Form* f, const Scope& block) {
    if (f == nullptr) return false;
    if (f->kind == FormKind::assign && f->children[0]->kind == FormKind::name) {
      const Symbol* name = f->children[0]->name;
      const Scope* scope = &block;
      while (!scope->top && scope->parent != nullptr && !scope->variables.find(name) && !scope->globals.find(name))
        scope = scope->parent;
      if (!scope->top && scope->globals.find(name)) return true;
    }
    const auto inside = [&](const Form* part) { return assigns_declared_global(part, block); };
    return std::any_of(f->children.begin(), f->children.end(), inside) ||
           std::any_of(f->lambdas.begin(), f->lambdas.end(), [&](const Lambda* l) { return inside(l->body); });
  }

  void local_function(Form* f, Scope& scope) {
    bool is_global = false;
    Variable* variable = f->name == nullptr ? nullptr : find_local(f->name, &scope, is_global);
    if (variable == nullptr) {
      // A global definition inside a block. When it uses the block's variables, or assigns what the block declares
      // global, its body becomes a closure, which the method calls; each time the definition runs, in a loop, the method
      // gets the closure of that time.
      give_variables_of_types(f, scope);
      const bool assigns_global = assigns_declared_global(f, scope);
      ClosureGroup* group = arena_.group();
      group->name = f->name;
      group->methods = f->lambdas;
      group->parent = scope.lambda;
      const std::size_t errors = diagnostics_.size();
      resolve_group(*group, scope);
      const bool with_bounds =
          f->lambdas[0]->types_name_variables && !f->lambdas[0]->signature->where_variables.empty();
      const bool sees_block = !group->captures.empty() || assigns_global;
      if (diagnostics_.size() == errors && sees_block && f->children.size() == 3 && !with_bounds) {
        capture_event(*group, scope);
        Form* closure = arena_.form(FormKind::closure, f->span);
        closure->group = group;
        closure->lambdas = f->lambdas;
        Form* definition = f->children[1];
        walk(definition, scope);
        definition->children.insert(definition->children.end(), {f->children[2], closure});
        *f = *definition;
        return;
      }
      groups_.pop_back();
      if (diagnostics_.size() == errors && !group->captures.empty())
        report_at(f->span,
                  "a global method that uses the local variable \"" + group->captures[0].variable->name->name +
                      "\" is not part of Slope",
                  "make the variable global, or the function local");
      if (f->children.empty()) {
        report_at(f->span, "global method definition needs to be placed at the top level");
        f->kind = FormKind::constant;
        f->value = runtime_.nothing();
        return;
      }
      Form* definition = f->children[0];
      *f = *definition;
      walk(f, scope);
      return;
    }
    f->variable = variable;
    ClosureGroup* group = f->group;
    if (group == nullptr) return;
    resolve_group(*group, scope);
    capture_event(*group, scope);
    assigned(variable, scope, true);
  }

  // --- decisions ---

  static bool repeats(const LoopNode* a, const LoopNode* b, const LoopNode* declared) {
    // Is there a loop inside the variable's scope around both?
    while (a != b) {
      if (a == nullptr || b == nullptr) return false;
      if (a->depth >= b->depth) {
        a = a->parent;
      } else {
        b = b->parent;
      }
    }
    const std::uint32_t depth = a == nullptr ? 0 : a->depth;
    return depth > (declared == nullptr ? 0 : declared->depth);
  }

  void decide() {
    for (ClosureGroup* group : groups_) {
      for (Capture& capture : group->captures) {
        Variable* v = capture.variable;
        if (v->is_static_parameter) continue;
        if (v->assigned_by_closure) v->needs_cell = true;
        if (v->captures_itself && v->plain_assignments > 0) v->needs_cell = true;
        for (const auto& made : v->captured)
          for (const auto& set : v->assigned)
            if (set.time > made.time || repeats(set.loop, made.loop, v->declared_in)) v->needs_cell = true;
      }
    }
    for (ClosureGroup* group : groups_)
      for (Capture& capture : group->captures)
        if (capture.self && capture.variable->plain_assignments > 0) {
          report_at(
              capture.variable->span,
              "the local function \"" + capture.variable->name->name + "\" is also assigned and uses its own name",
              "give the function and the variable different names");
        }
  }

  Runtime& runtime_;
  Context& ctx_;
  FormArena& arena_;
  std::vector<Diagnostic>& diagnostics_;
  std::vector<Variable*> log_;
  std::vector<ClosureGroup*> groups_;
  std::vector<const Symbol*> top_assigned_;
  const LoopNode* loop_ = nullptr;
  std::uint32_t time_ = 0;
  bool live_ = true;
};

}  // namespace

void resolve(Runtime& runtime, Context& ctx, FormArena& arena, Lambda& root, std::vector<Diagnostic>& diagnostics) {
  Resolver(runtime, ctx, arena, diagnostics).root(root);
}

}  // namespace slope::lower
