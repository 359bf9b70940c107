// Setting up a runtime: modules, bindings, the names of Core, roots of the collector.
#include "lang/runtime/runtime.hpp"

#include <algorithm>
#include <cassert>

#include "lang/runtime/core_names.hpp"
#include "lang/runtime/coroutines.hpp"
#include "lang/runtime/runtime_impl.hpp"
#include "lang/support/thread_stack.hpp"
#include "lang/support/tuning.hpp"
#include "lang/types/type_table_impl.hpp"

namespace slope {

namespace {

// Core.describe_exception(e): what `showerror` prints for the exceptions that C++ raises.
bool describe_exception(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1) return ctx.argument_error("describe_exception takes one argument");
  result = ctx.new_string(ctx.runtime->exception_text(ctx, args[0]));
  return result.defined() || ctx.out_of_memory();
}

const Type* string_result(TypeTable& types, std::span<const Type* const>) { return types.builtin().string; }

constexpr NativeInfo describe_exception_info{"describe_exception", describe_exception, effect_all, string_result};

}  // namespace

Runtime::Runtime()
    : symbols(&outside_heap),
      types(symbols, &outside_heap),
      heap(types, &outside_heap),
      impl_(std::make_unique<Impl>(*this)) {
  impl_->dispatch_cache.resize(Impl::dispatch_ways);
  context.runtime = this;
  context.heap = &heap;
  context.world = world_;
  impl_->tapes = std::make_unique<ContextTapes>(context);
  context.tapes = impl_->tapes->pool();
  enter_thread(context);
  coroutines = std::make_unique<Coroutines>(*this);
  impl_->root_key = heap.add_root_tracer([this](Tracer& tracer) { impl_->trace(tracer); });

  core = new_module(symbol("Core"), nullptr);
  base = new_module(symbol("Base"), nullptr);
  main = new_module(symbol("Main"), nullptr);
  base->inherits = core;
  main->usings.push_back(base);
  main->usings.push_back(core);
  // Packages take return_type from it, and name types of which there are no values here.
  Module* compiler = new_module(symbol("Compiler"), core);
  compiler->inherits = base;
  for (const char* name : {"AbstractInterpreter", "InstructionStream"})
    set_constant(compiler, name, from_type(types.builtin().bottom));
  set_constant(core, "SimpleVector", from_type(types.builtin().tuple_any));

  const BuiltinTypes& b = types.builtin();
  // Every builtin type is a name of Core, seen everywhere.
  for (TypeName* name : types.names()) {
    name->module = core;
    set_constant(core, name->name->name, from_type(name->wrapper));
  }
  auto alias = [&](const char* name, const Type* t) { set_constant(core, name, from_type(t)); };
  auto of_dims = [&](TypeName* name, std::int64_t dims) {
    const TypeVar* element = types.var(symbol("T"), nullptr, nullptr);
    const Type* args[] = {element, types.value_int(dims)};
    return types.union_all(element, types.apply(name, args));
  };
  alias("Int", b.int64);
  alias("UInt", b.uint64);
  alias("Vector", b.vector);
  alias("Matrix", b.matrix);
  alias("AbstractVector", of_dims(b.abstract_array_name, 1));
  alias("AbstractMatrix", of_dims(b.abstract_array_name, 2));
  alias("Vararg", types.vararg(b.any, nullptr));
  const TypeVar* count = types.var(symbol("N"), nullptr, nullptr);
  const TypeVar* element = types.var(symbol("T"), nullptr, nullptr);
  const Type* elements[] = {types.vararg(element, count)};
  alias("NTuple", types.union_all(count, types.union_all(element, types.tuple(elements))));
  set_constant(core, "nothing", nothing());
  for (auto& [name, own] : core->bindings) {
    own->exported = true;
    core->exported_names.insert(name);
  }
  // Names of operations that users write as in Julia; the others need `Core.`.
  for (const char* name : {"typeof", "isa", "===", "<:", "throw", "getfield", "setfield!", "isdefined", "nfields",
                           "tuple", "ifelse", "typeassert"})
    core->exported_names.insert(symbol(name));
  for (Module* module : {core, base, main}) {
    for (Module* named : {core, base, main})
      set_constant(module, named->name->name, Value(b.module, static_cast<const void*>(named)));
  }
  define_native(core, &describe_exception_info);
}

Runtime::~Runtime() {
  coroutines.reset();
  heap.remove_root_tracer(impl_->root_key);
}

void Runtime::enter_thread(Context& ctx) {
  if (coroutines && coroutines->lend_stack(ctx)) return;
  auto [low, high] = thread_stack();
  if (!low) {
    // Unknown: a conservative megabyte below here.
    high = static_cast<const char*>(__builtin_frame_address(0));
    low = high - (1 << 20);
  }
  // What C++ itself needs below the deepest check: printing the error, a collection, a library call.
  constexpr std::size_t reserve = tuning::native_stack_reserve;
  ctx.stack_limit = low + std::min(reserve, static_cast<std::size_t>(high - low) / 4);
  ctx.heap->set_stack_base(high);
}

void Runtime::Impl::trace(Tracer& tracer) {
  if (is_walked) return;
  for (const Binding& binding : bindings) tracer.value(binding.value);
  tracer.value(runtime.context.error);
  for (const Value& caught : runtime.context.caught) tracer.value(caught);
  for (const MethodTable& table : tables) {
    for (const auto& method : table.methods) {
      if (method->ir && runtime.hooks().trace_function) runtime.hooks().trace_function(*method->ir, tracer);
      if (method->generator) tracer.value(method->generator->function);
      for (const auto& specialization : method->specializations) {
        for (const auto& source : specialization->sources)
          if (runtime.hooks().trace_function) runtime.hooks().trace_function(*source->typed, tracer);
        for (const auto& code : specialization->code) {
          tracer.value(code->constant_result);
          if (code->typed && runtime.hooks().trace_function) runtime.hooks().trace_function(*code->typed, tracer);
        }
      }
    }
  }
}

void Runtime::connect(RuntimeHooks hooks) {
  assert(!hooks_.execute_op && hooks.execute_op && hooks.trace_function);
  hooks_ = std::move(hooks);
}

Module* Runtime::new_module(const Symbol* name, Module* parent) {
  outside_heap.add(sizeof(Module) + 1024);  // with its tables of names
  impl_->modules.emplace_back();
  Module* module = &impl_->modules.back();
  module->library = this;
  module->name = name;
  module->parent = parent;
  if (parent) {
    if (base) module->usings.push_back(base);
    if (core) module->usings.push_back(core);
    auto module_value = [&](Module* m) { return Value(types.builtin().module, static_cast<const void*>(m)); };
    set_constant(parent, name->name, module_value(module));
    set_constant(module, name->name, module_value(module));
    for (Module* named : {core, base, main})
      if (named) set_constant(module, named->name->name, module_value(named));
  }
  return module;
}

Binding* Runtime::Impl::new_binding(Module* module, const Symbol* name) {
  Binding* made = nullptr;
  if (!spare_bindings.empty()) {
    made = spare_bindings.back();
    spare_bindings.pop_back();
    const std::uint64_t version = made->version + 1;  // who remembers the old one sees that it is another
    *made = Binding();
    made->version = version;
  } else {
    runtime.outside_heap.add(sizeof(Binding) + 64);
    made = &bindings.emplace_back();
  }
  made->module = module;
  made->name = name;
  return made;
}

void Runtime::Impl::spare_binding(Binding* binding) noexcept {
  try {
    spare_bindings.push_back(binding);
  } catch (const std::bad_alloc&) {  // it is not used again
  }
}

Binding* Runtime::binding(Module* module, const Symbol* name) {
  if (module->has_library) module->entered(name);
  Binding* taken_back = impl_->borrowed.empty() ? nullptr : impl_->take_back(*module, name);
  Binding*& slot = module->bindings[name];
  if (taken_back) slot = taken_back;
  if (!slot) {
    slot = impl_->new_binding(module, name);
    slot->exported = module->exports(name);
  }
  Binding* found = slot;  // making it may move the table
  if (found->waiting != Binding::none_waiting) make_postponed(*found);
  return found;
}

Binding* Runtime::resolve(Module* module, const Symbol* name) {
  Binding* found = module->find(name);
  return !found && module == core && base && is_library_name_of_core(name->name) ? base->own(name) : found;
}

void Runtime::set_constant(Module* module, std::string_view name, Value v) {
  Binding* own = binding(module, symbol(name));
  bool changed = own->value.defined() && !own->value.identical(v);
  own->value = v;
  own->is_constant = true;
  if (changed) binding_changed(own);
}

Value Runtime::from_string(std::string_view text) {
  StringObject* string = heap.allocate_string(text);
  return string ? Value(types.builtin().string, static_cast<const void*>(string)) : Value();
}

Value Runtime::from_type(const Type* t) {
  const BuiltinTypes& b = types.builtin();
  const DataType* kind = nullptr;
  switch (t->kind) {
    case TypeKind::data:
      kind = b.data_type;
      break;
    case TypeKind::union_all:
      kind = b.union_all;
      break;
    case TypeKind::union_:
      kind = b.union_;
      break;
    case TypeKind::bottom:
      kind = b.type_of_bottom;
      break;
    case TypeKind::var:
      kind = b.type_var;
      break;
    case TypeKind::vararg:
      kind = b.type_of_vararg;
      break;
    case TypeKind::value:
      return as_value(t)->value;
  }
  return Value(kind, static_cast<const void*>(t));
}

bool Runtime::is_type_value(Value v) const { return v.defined() && v.type->is_kind; }

}  // namespace slope
