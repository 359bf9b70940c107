// Definitions and their consequences: adding methods, specialisations, and ending what was derived from older answers.
//
// Worlds only grow. A definition made in world w is visible from w+1 on. Code that relied on the old state stays right
// for the worlds up to w: its max_world is truncated. What is destroyed when: lang/pipeline/release.cpp, retired.cpp.
#include <algorithm>

#include "lang/runtime/runtime_impl.hpp"
#include "lang/support/exception_safe.hpp"
#include "lang/support/tuning.hpp"
#include "lang/types/walk.hpp"

namespace slope {

namespace {

// Is a type equal to another only when they are the same pointer?
bool is_canonical(const Type* t) {
  if (t->is_plain) return true;
  auto* u = as_union(t);
  return u && std::all_of(u->members.begin(), u->members.end(), [](const Type* m) { return m->is_plain; });
}

// T of T where {A, B}.
const DataType* bare_data(const Type* t) {
  while (auto* u = as_union_all(t)) t = u->body;
  return as_data(t);
}

// Can types with these names be equal? Apart from its own applications, Type{T} can only be equal to a kind of types.
bool names_may_equal(const DataType* d, const DataType* e) {
  return d->name == e->name || (d->is_type_of_type && e->is_kind) || (e->is_type_of_type && d->is_kind);
}

// Can a union of definite types be equal to a type of this name? One of its members must have that name. Tuples may be
// unions in their parameters.
bool union_may_equal(const UnionType* u, const DataType* d) {
  if (d->is_tuple) return true;
  return std::any_of(u->members.begin(), u->members.end(), [&](const Type* m) {
    const DataType* member = bare_data(m);
    return !member || names_may_equal(member, d);
  });
}

// Can two parameters of equal signatures be these? Cheap; true when in doubt. The set of all T{A}s is compared by the
// rules for one with A unknown: types of different names are never equal, nor is an open parameter a definite one.
bool may_equal(const Type* p, const Type* q, bool invariant) {
  if (p == q) return true;
  if (invariant) {
    // A variable with an open lower bound is never equal to one definite type.
    auto *v = as_var(p), *w = as_var(q);
    if (v && w) return true;
    if (v || w) return (v ? v : w)->lower->kind != TypeKind::bottom || (v ? q : p)->has_free_vars;
  } else {
    // What an argument may be at most must agree.
    if (auto* v = as_var(p)) return may_equal(v->upper, q, false);
    if (auto* w = as_var(q)) return may_equal(p, w->upper, false);
  }
  if (is_canonical(p) && is_canonical(q)) return false;
  auto *d = bare_data(p), *e = bare_data(q);
  if (d && !e && as_union(q) && is_canonical(q)) return union_may_equal(as_union(q), d);
  if (e && !d && as_union(p) && is_canonical(p)) return union_may_equal(as_union(p), e);
  if (!d || !e) return true;
  if (!names_may_equal(d, e)) return false;
  if (d->name != e->name) return true;
  if (d->is_tuple || d->params.size() != e->params.size()) return true;
  for (std::size_t i = 0; i < d->params.size(); ++i)
    if (!may_equal(d->params[i], e->params[i], true)) return false;
  return true;
}

bool signatures_may_equal(const Type* a, const Type* b) {
  if (a == b) return true;
  const DataType *x = signature_tuple(a), *y = signature_tuple(b);
  if (!x || !y) return true;
  if (x->params.size() != y->params.size()) return false;
  for (std::size_t i = 0; i < x->params.size(); ++i) {
    const Type *p = x->params[i], *q = y->params[i];
    auto *rest_p = as_vararg(p), *rest_q = as_vararg(q);
    if (rest_p && rest_q) {
      p = rest_p->element;
      q = rest_q->element;
    } else if (rest_p || rest_q) {
      return true;  // a counted Vararg may be spelled out
    }
    if (!walk_types(p, q, [&] { return may_equal(p, q, false); })) return false;
  }
  return true;
}

// A byte for the number of parameters and one for each of the first after the callee; 0 where it could be equal to
// anything. Bytes that are not 0 and differ mean signatures that differ.
std::uint64_t shape_of(const Type* signature) {
  const DataType* tuple = signature_tuple(signature);
  if (!tuple) return 0;
  std::uint64_t shape = 1 + tuple->params.size() % 255;
  for (std::size_t i = 1; i < std::min<std::size_t>(tuple->params.size(), 8); ++i) {
    const Type* p = tuple->params[i];
    if (!as_vararg(p) && is_canonical(p)) shape |= (1 + std::uint64_t{p->id} % 255) << 8 * i;
  }
  return shape;
}

}  // namespace

Value Runtime::generic_function(Module* module, const Symbol* name) {
  Binding* own = binding(module, name);
  if (own->value.defined()) {
    auto* type = as_data(own->value.type);
    if (is_type_value(own->value) || (type && type->name->is_function)) return own->value;
    return Value();
  }
  if (Binding* shared = base && module != base ? base->find(name) : nullptr; shared && shared->open_to_methods)
    return shared->value;
  const DataType* type = types.function_type(name, module);
  own->value = type->instance;
  own->is_constant = true;
  return own->value;
}

// What a new method could change: cached answers and derived code whose call types it intersects.
void Runtime::Impl::end_answers(const Method& method, bool leaf) {
  TypeTable& types = runtime.types;
  const BuiltinTypes& b = types.builtin();
  World last = method.min_world - 1;
  const DataType* tuple = signature_tuple(method.signature);
  const std::uint64_t shape = tuple ? call_shape(tuple) : 0;
  auto end_in = [&](MethodTable& table) {
    if (!table.cache) return;
    for (auto& [call_types, answer] : table.cache->answers) {
      if (!answer.computed || answer.lookup.max_world < method.min_world) continue;
      if (!shapes_agree(shape, call_shape(call_types))) continue;
      if (may_apply(b, call_types, method.signature) && is_subtype(types, call_types, method.signature))
        answer.lookup.max_world = last;
    }
  };
  TypeName* name = callee_name(callee_of(method.signature));
  if (leaf) {
    if (name->methods) end_in(*name->methods);
  } else {
    for (MethodTable& table : tables) end_in(table);
  }
  if (lookup_dependents.empty()) return;
  auto end_dependents = [&](std::vector<Dependent>& list) {
    std::vector<CodeInstance*> ended;
    std::erase_if(list, [&](const Dependent& dependent) {
      if (dependent.code->max_world < method.min_world) return true;
      const DataType* called = signature_tuple(dependent.signature);
      if (called && (!shapes_agree(shape, call_shape(called)) || !may_apply(b, called, method.signature))) return false;
      if (certainly_disjoint(types, dependent.signature, method.signature)) return false;
      ended.push_back(dependent.code);
      return true;
    });
    for (CodeInstance* code : ended) runtime.end_code(code);
  };
  if (leaf) {
    // end_code only changes other maps' lists, and marks.
    if (auto it = lookup_dependents.find(name); it != lookup_dependents.end()) end_dependents(it->second);
    if (auto it = lookup_dependents.find(nullptr); it != lookup_dependents.end()) end_dependents(it->second);
  } else {
    for (auto& [key, list] : lookup_dependents) end_dependents(list);
  }
}

Method* Runtime::add_method(std::unique_ptr<Method> added) {
  Method* method = added.get();
  // With its place in tables, and its syntax.
  method->counted.add(outside_heap, sizeof(Method) + 512 + method->documentation.capacity());
  const Type* callee = impl_->callee_of(method->signature);
  MethodTable* table = impl_->table_of(impl_->callee_name(callee));
  const bool waited = impl_->next_postponed_world != 0;  // it begins where its definition was noted
  if (!waited) impl_->open_for_definition(*table, method->signature);
  if (method->static_params.empty())
    for (const Type* t = method->signature; as_union_all(t); t = as_union_all(t)->body)
      method->static_params.push_back(as_union_all(t)->var);
  // What made the method knows best: a counted Vararg{T,3} is spelled out in the signature, but arrives as a tuple.
  if (const DataType* tuple = signature_tuple(method->signature); tuple && method->arg_count == 0) {
    method->is_vararg = !tuple->params.empty() && as_vararg(tuple->params.back()) != nullptr;
    method->arg_count = static_cast<std::uint32_t>(tuple->params.size() - (method->is_vararg ? 1 : 0));
  }
  // The three lists agree at any time.
  std::vector<std::uint64_t>& shapes = table->cache->shapes;
  std::vector<std::uint64_t>& call_shapes = table->cache->call_shapes;
  make_room_for_one(shapes);
  make_room_for_one(call_shapes);
  make_room_for_one(table->methods);
  method->min_world = waited ? impl_->next_postponed_world++ : world_ + 1;
  method->max_world = newest_world;
  const std::uint64_t shape = shape_of(method->signature);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (!shapes_agree(shapes[i], shape)) continue;
    const auto& old = table->methods[i];
    if (old->max_world != newest_world || !signatures_may_equal(old->signature, method->signature)) continue;
    if (!type_equal(types, old->signature, method->signature)) continue;
    make_room_for_one(impl_->replaced);
    impl_->retired.reserve(impl_->retired.size() + impl_->replaced.size() + 1);
    old->max_world = method->min_world - 1;
    impl_->replaced.push_back(old.get());
    impl_->cause = {method, nullptr, nullptr, nullptr, true, false, nullptr};
    for (const auto& specialization : old->specializations) {
      for (const auto& code : specialization->code) end_code(code.get());
      for (const auto& source : specialization->sources) end_code(source.get());
    }
  }
  if (!waited) {  // else nobody has asked yet
    impl_->cause = {method, nullptr, nullptr, nullptr, false, false, nullptr};
    impl_->end_answers(*method, impl_->callee_is_leaf(callee));
    // A closure's type is as new as its method: nobody can have asked before.
    if (!impl_->callee_name(callee)->is_closure) ++world_;
  } else if (impl_->making_type) {
    impl_->end_answers(*method, impl_->callee_is_leaf(callee));
  }
  auto at = table->methods.end();
  while (at != table->methods.begin() && at[-1]->min_world > method->min_world) --at;
  const auto position = at - table->methods.begin();
  shapes.insert(shapes.begin() + position, shape);
  const DataType* tuple = signature_tuple(method->signature);
  call_shapes.insert(call_shapes.begin() + position, tuple ? call_shape(tuple) : 0);
  table->methods.insert(at, std::move(added));
  if (!waited) impl_->release_when_due();
  return method;
}

void Runtime::define_native(Module* module, const NativeInfo* info) {
  // The pointer is even (alignment), which tells it from an encoded op.
  set_constant(module, info->name, Value(types.builtin().builtin_function, static_cast<const void*>(info)));
}

const Type* declared_argument(const BuiltinTypes& builtin, const Method& method, std::size_t i) {
  const Type* t = method.signature;
  while (const UnionAllType* bound = as_union_all(t)) t = bound->body;
  const DataType* tuple = as_data(t);
  if (!tuple || tuple->params.empty()) return builtin.any;
  const Type* declared = tuple->params[std::min(i, tuple->params.size() - 1)];
  if (const VarargType* rest = as_vararg(declared)) declared = rest->element;
  return declared->has_free_vars ? builtin.any : declared;
}

namespace {

// The call's types, with those of arguments that are not specialised for as they are declared.
const DataType* with_declared(TypeTable& types, const Method& method, const DataType* call) {
  std::vector<const Type*> params(call->params.begin(), call->params.end());
  for (std::size_t i = 0; i < params.size(); ++i) {
    if ((method.as_declared >> std::min<std::size_t>(i, 63) & 1) == 0) continue;
    const VarargType* rest = as_vararg(params[i]);
    const Type* declared = declared_argument(types.builtin(), method, i);
    params[i] = rest ? types.vararg(declared, rest->count) : declared;
  }
  return types.tuple(params);
}

}  // namespace

Specialization* Runtime::specialize(Method* method, const DataType* call_types,
                                    std::span<const Type* const> static_params) {
  Specialization*& slot = impl_->specializations[{method, call_types}];
  if (slot) return slot;
  auto made = std::make_unique<Specialization>();
  made->counted.add(outside_heap, sizeof(Specialization) + 128);
  made->method = method;
  made->types = call_types;
  made->static_params.assign(static_params.begin(), static_params.end());
  method->specializations.push_back(std::move(made));
  slot = method->specializations.back().get();
  return slot;
}

Specialization* Runtime::specialize_as_declared(Method* method, const DataType* call_types,
                                                std::span<const Type* const> static_params) {
  if (method->as_declared != 0) call_types = with_declared(types, *method, call_types);
  return specialize(method, call_types, static_params);
}

const ir::Function* Runtime::method_ir(Context& ctx, Method& method) {
  if (method.ir) return method.ir.get();
  std::string name = method.name ? method.name->name : "anonymous function";
  if (method.native) {
    ctx.raise_error("the method " + name + " is written in C++ and has no IR");
    return nullptr;
  }
  if (!hooks_.lower_method) {
    ctx.raise_error("no lowering: the body of " + name + " can't be run");
    return nullptr;
  }
  if (!hooks_.lower_method(ctx, method)) return nullptr;
  return method.ir.get();
}

void Runtime::add_dependent(CodeInstance* code) {
  if (code->max_world < world_ && code->owner && !is_kept_source(*code))
    impl_->ended.push_back(code);  // for old frames
  for (const Edge& edge : code->edges) {
    switch (edge.kind) {
      case Edge::Kind::lookup: {
        const Type* callee = impl_->callee_of(edge.signature);
        const TypeName* key = impl_->callee_is_leaf(callee) ? impl_->callee_name(callee) : nullptr;
        impl_->lookup_dependents[key].push_back({edge.signature, code});
        break;
      }
      case Edge::Kind::binding:
        impl_->binding_dependents[edge.binding].push_back(code);
        break;
      case Edge::Kind::callee:
        impl_->callee_dependents[edge.callee].push_back(code);
        break;
    }
  }
}

void Runtime::Impl::forget_dependent(const CodeInstance& code) {
  for (const Edge& edge : code.edges) {
    switch (edge.kind) {
      case Edge::Kind::lookup: {
        const Type* callee = callee_of(edge.signature);
        const TypeName* key = callee_is_leaf(callee) ? callee_name(callee) : nullptr;
        std::erase_if(lookup_dependents[key], [&](const Dependent& d) { return d.code == &code; });
        break;
      }
      case Edge::Kind::binding:
        std::erase(binding_dependents[edge.binding], &code);
        break;
      case Edge::Kind::callee:
        std::erase(callee_dependents[edge.callee], &code);
        break;
    }
  }
}

void Runtime::Impl::note_end(const CodeInstance& code, const Specialization* through) {
  if (!code.owner) return;
  Ended entry = cause;
  entry.ended = code.owner;
  entry.through = through;
  entry.source = is_kept_source(code);
  ended_log.push_back(entry);
  if (ended_log.size() > ended_limit) ended_log.pop_front();
}

Runtime::Invalidation Runtime::Impl::told(const Ended& entry) const {
  if (entry.told) return *entry.told;
  Invalidation one;
  if (entry.method) {
    one.definition = (entry.method->name ? entry.method->name->name : "method") + " @ " +
                     runtime.sources.describe(entry.method->span);
  } else if (entry.binding) {
    one.definition = "const " + entry.binding->name->name;
  }
  one.ended = (entry.source ? "generated source of " : "") + call_text(*entry.ended);
  if (entry.through)
    one.reason = "it used " + call_text(*entry.through) + ", which ended";
  else if (entry.replaced)
    one.reason = "its method was replaced";
  else if (entry.binding)
    one.reason = "it used the constant's value";
  else
    one.reason = "a call in it can now reach the new method";
  return one;
}

std::vector<Runtime::Invalidation> Runtime::invalidations() const {
  std::vector<Invalidation> result;
  for (const Impl::Ended& entry : impl_->ended_log) result.push_back(impl_->told(entry));
  return result;
}

void Runtime::end_code(CodeInstance* code) {
  struct Waiting {
    CodeInstance* code;
    const Specialization* through;
  };
  std::vector<Waiting> waiting{{code, nullptr}};
  while (!waiting.empty()) {
    CodeInstance* ended = waiting.back().code;
    const Specialization* through = waiting.back().through;
    waiting.pop_back();
    if (ended->max_world != newest_world) continue;
    ended->max_world = world_;
    impl_->note_end(*ended, through);
    Specialization* owner = ended->owner;
    if (!owner) continue;
    // A kept source: what was inferred from it has the same edges.
    if (is_kept_source(*ended)) {
      ++owner->method->generator->invalidated;
      continue;
    }
    impl_->ended.push_back(ended);
    auto it = impl_->callee_dependents.find(owner);
    if (it == impl_->callee_dependents.end()) continue;
    for (CodeInstance* dependent : it->second) waiting.push_back({dependent, owner});
    impl_->callee_dependents.erase(it);
  }
}

void Runtime::binding_changed(Binding* binding) {
  ++binding->version;
  impl_->cause = {nullptr, binding, nullptr, nullptr, false, false, nullptr};
  auto it = impl_->binding_dependents.find(binding);
  if (it != impl_->binding_dependents.end()) {
    std::vector<CodeInstance*> dependents = std::move(it->second);
    impl_->binding_dependents.erase(it);
    for (CodeInstance* code : dependents) end_code(code);
  }
  ++world_;
  impl_->release_when_due();
}

// So seldom that looking at the stack costs next to nothing, so often that little waits. The compiler, which pauses the
// collector, holds code that nothing runs yet.
void Runtime::Impl::release_when_due() {
  if (ended.size() + replaced.size() + retired.size() < release_at || !runtime.tiers || runtime.heap.is_paused())
    return;
  runtime.tiers->release_ended(runtime.context);
  drop_replaced();
  free_retired();
  constexpr std::size_t few = tuning::replaced_before_release;
  release_at = runtime.heap.is_stressed() ? 1 : std::max(few, 2 * (ended.size() + replaced.size() + retired.size()));
}

// The methods stay as long as an older world may be asked (retired.cpp); their IR is lowered again then. Sources of
// generators, too, are made again.
void Runtime::Impl::drop_replaced() {
  std::vector<const ir::Function*> running;
  if (runtime.interpreter) running = runtime.interpreter->running();
  std::sort(running.begin(), running.end());
  std::erase_if(replaced, [&](Method* method) {
    if (std::binary_search(running.begin(), running.end(), method->ir.get())) return false;
    for (const auto& specialization : method->specializations) {
      for (const auto& source : specialization->sources) {
        method->generator->bytes -= source->bytes;
        runtime.outside_heap.remove(charged_for_source(source->bytes));
        forget_dependent(*source);
      }
      specialization->sources.clear();  // who runs one holds it
    }
    // What a closure's method was lowered from is the code that it stood in.
    if (method->body) method->ir = nullptr;
    if (!is_of_library(method->module)) retired.push_back(method);
    return true;
  });
}

std::vector<CodeInstance*>& Runtime::ended_code() { return impl_->ended; }

void Runtime::destroy_code(std::span<CodeInstance* const> codes) {
  const auto has_ended = [](const CodeInstance* code) { return code->max_world != newest_world; };
  for (auto& [name, list] : impl_->lookup_dependents)
    std::erase_if(list, [&](const Impl::Dependent& dependent) { return has_ended(dependent.code); });
  for (auto* lists : {&impl_->callee_dependents}) {
    for (auto& [key, list] : *lists) std::erase_if(list, has_ended);
    std::erase_if(*lists, [](const auto& entry) { return entry.second.empty(); });
  }
  for (auto& [key, list] : impl_->binding_dependents) std::erase_if(list, has_ended);
  for (CodeInstance* code : codes) {
    Specialization& owner = *code->owner;
    if (owner.current == code) owner.current = nullptr;
    std::erase_if(owner.code, [&](const auto& held) { return held.get() == code; });
  }
}

}  // namespace slope
