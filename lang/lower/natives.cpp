// The state of lowering in a Runtime, and the natives that lowered code calls.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unordered_map>
#include <utility>

#include "lang/ir/execute/execute.hpp"
#include "lang/lower/definition.hpp"
#include "lang/lower/expr.hpp"
#include "lang/lower/generated.hpp"
#include "lang/lower/reflect/lowered_code.hpp"
#include "lang/lower/state.hpp"
#include "lang/runtime/granted_path.hpp"
#include "lang/support/exception_safe.hpp"
#include "lang/syntax/operators.hpp"
#include "lang/syntax/parse.hpp"
#include "lang/syntax/print.hpp"

namespace slope::lower {

LoweringState& state_of(Runtime& runtime) {
  if (runtime.lowering_state == nullptr) runtime.lowering_state = std::make_shared<LoweringState>(runtime.heap);
  return *static_cast<LoweringState*>(runtime.lowering_state.get());
}

const Symbol* symbol_of(Runtime& runtime, const syntax::Ast& ast, syntax::NodeId identifier) {
  const syntax::NameId id = ast.node(identifier).name;
  const std::string_view spelling = ast.name(id);
  auto& last = state_of(runtime).last_symbols;
  if (id >= last.size()) last.resize(ast.name_count(), nullptr);
  if (last[id] == nullptr || last[id]->name != spelling) last[id] = runtime.symbol(spelling);
  return last[id];
}

Value keep(Runtime& runtime, Value v) {
  LoweringState& state = state_of(runtime);
  if (state.of_source) return v;
  runtime.outside_heap.add(sizeof(Value));
  state.constants.values.push_back(v);
  return v;
}

std::shared_ptr<syntax::Ast> counted(Runtime& runtime, std::shared_ptr<syntax::Ast> tree) {
  struct CountedTree {
    std::shared_ptr<syntax::Ast> tree;
    CountedBytes bytes;
  };
  auto owner = std::make_shared<CountedTree>();
  owner->bytes.add(runtime.outside_heap, tree->bytes() + sizeof(CountedTree));
  owner->tree = std::move(tree);
  syntax::Ast* const counted_tree = owner->tree.get();
  return {std::move(owner), counted_tree};
}

std::size_t add_definition(Runtime& runtime, Definition definition) {
  LoweringState& state = state_of(runtime);
  if (state.made) make_room_for_one(*state.made);
  std::size_t number = state.definitions.size();
  definition.counted = sizeof(Definition) + definition.hints.documentation.size() + 64;
  runtime.outside_heap.add(definition.counted);
  if (state.spare_definitions.empty()) {
    state.definitions.push_back(std::move(definition));
  } else {
    number = state.spare_definitions.back();
    state.spare_definitions.pop_back();
    state.definitions[number] = std::move(definition);
  }
  if (state.made) state.made->push_back(number);
  return number;
}

void end_definitions(Runtime& runtime, const std::vector<std::size_t>& numbers) {
  LoweringState& state = state_of(runtime);
  for (const std::size_t number : numbers) {
    runtime.outside_heap.remove(state.definitions[number].counted);
    state.definitions[number] = Definition();
    state.spare_definitions.push_back(number);
  }
}

Value string_constant(Runtime& runtime, std::string_view text) {
  auto& strings = state_of(runtime).strings;
  const auto found = strings.find(std::string(text));
  if (found != strings.end()) return found->second;
  const Value made = runtime.from_string(text);
  if (!made.defined()) return runtime.nothing();
  keep(runtime, made);
  if (state_of(runtime).of_source || state_of(runtime).texts != nullptr) return made;
  constexpr std::size_t table_entry = 96;
  runtime.outside_heap.add(text.size() + table_entry);
  strings.emplace(std::string(text), made);
  return made;
}

Value symbol_tuple(Runtime& runtime, Context& ctx, std::span<const Symbol* const> names) {
  std::vector<Value> elements;
  for (const Symbol* name : names) elements.push_back(runtime.from_symbol(name));
  Value made;
  if (!runtime.new_tuple(ctx, elements.data(), elements.size(), made)) return runtime.nothing();
  // As a type parameter the tuple is immortal, and equal ones are one.
  const Type* immortal = runtime.types.value(made);
  const ValueType* value = as_value(immortal);
  return value == nullptr ? keep(runtime, made) : value->value;
}

namespace {

// define(number, name, value, …): runs the definition; the values of the variables around it that its signature names.
bool define(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  auto& definitions = state_of(runtime).definitions;
  if (count == 0 || args[0].type != runtime.types.builtin().int64 || args[0].bits < 0 ||
      static_cast<std::size_t>(args[0].bits) >= definitions.size())
    return ctx.argument_error("define: no such definition");
  for (std::size_t i = 1; i + 1 < count; i += 2)
    if (args[i].type != runtime.types.builtin().symbol) return ctx.argument_error("define: expected names and values");
  // `definitions` may grow meanwhile (a deque: the entry stays where it is).
  Definition& definition = definitions[static_cast<std::size_t>(args[0].bits)];
  for (std::size_t i = 1; i + 1 < count; i += 2) definition.hints.names.emplace_back(args[i].symbol, args[i + 1]);
  const bool defined = run_definition(runtime, ctx, definition, result);
  definition.hints.names.clear();
  if (!defined) return false;
  // Definitions stand at top level only, and the rest of their statement sees them.
  ctx.world = top_world(runtime);
  return true;
}

// Core.define_library(): makes every definition of the library that was postponed (library.cpp); an error tells of
// those that don't work. For tests.
bool define_library(Context& ctx, const Value*, std::size_t, Value& result) {
  Runtime& runtime = *ctx.runtime;
  std::string problems;
  auto err = std::exchange(runtime.sink.err, [&](std::string_view text) { problems += text; });
  runtime.define_all_postponed();
  runtime.sink.err = std::move(err);
  result = runtime.nothing();
  return problems.empty() || ctx.raise_error(problems);
}

// After `include` and `eval` at top level.
bool newest_world(Context& ctx, const Value*, std::size_t, Value& result) {
  ctx.world = top_world(*ctx.runtime);
  result = ctx.runtime->nothing();
  return true;
}

// f(args…) in the newest world, whatever world the caller runs in.
bool invoke_latest(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count == 0) return ctx.argument_error("invoke_latest takes a function");
  const Restored world(ctx.world, top_world(*ctx.runtime));
  return ctx.runtime->call(ctx, args[0], args + 1, count - 1, result);
}

bool world_age(Context& ctx, const Value*, std::size_t, Value& result) {
  ctx.runtime->kept_methods.keep(ctx.world);  // the script may ask for it later
  result = ctx.runtime->from_int(static_cast<std::int64_t>(ctx.world));
  return true;
}

// context_world() → Int: the world that the caller runs in, for who does not mean to keep it.
bool context_world(Context& ctx, const Value*, std::size_t, Value& result) {
  result = ctx.runtime->from_int(static_cast<std::int64_t>(ctx.world));
  return true;
}

// f(args…) as the program was in an earlier world.
bool invoke_in_world(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  if (count < 2) return ctx.argument_error("invoke_in_world takes a world, a function and its arguments");
  if (args[0].type != runtime.types.builtin().int64)
    return ctx.type_error("invoke_in_world", runtime.types.builtin().int64, args[0]);
  if (args[0].bits < 1 || static_cast<World>(args[0].bits) > runtime.world())
    return ctx.argument_error("there is no world " + std::to_string(args[0].bits) + ": they are 1 to " +
                              std::to_string(runtime.world()));
  const auto wanted = static_cast<World>(args[0].bits);
  if (wanted != ctx.world && !runtime.kept_methods.is_whole(wanted))
    return ctx.argument_error("methods of the world " + std::to_string(wanted) +
                              " are gone: only worlds that world_age() returned are kept");
  const Restored world(ctx.world, wanted);
  return runtime.call(ctx, args[1], args + 2, count - 2, result);
}

// What definitions ended, newest last: a vector of (world, what was defined, what ended, why).
bool invalidation_texts(Context& ctx, const Value*, std::size_t, Value& result) {
  Runtime& runtime = *ctx.runtime;
  const auto& builtin = runtime.types.builtin();
  const std::vector<Runtime::Invalidation> all = runtime.invalidations();
  const std::int64_t dims[] = {static_cast<std::int64_t>(all.size() * 3)};
  const DataType* type = runtime.types.array_of(builtin.string, 1);
  ArrayObject* made = runtime.heap.allocate_array(type, dims);
  if (!made) return ctx.out_of_memory();
  result = Value(type, static_cast<const void*>(made));
  std::size_t at = 0;
  for (const auto& one : all)
    for (const std::string* text : {&one.definition, &one.ended, &one.reason}) {
      const Value string = runtime.from_string(*text);
      if (!string.defined()) return ctx.out_of_memory();
      store_value(runtime.heap, made->data + at++ * made->element_size, builtin.string, string);
    }
  return true;
}

bool is_module_and_name(Context& ctx, const Value* args, std::size_t count, std::size_t wanted) {
  const auto& builtin = ctx.runtime->types.builtin();
  return count == wanted && args[0].type == builtin.module && args[1].type == builtin.symbol;
}

// share_with_core(names::Symbol...): these names of Base are names of Core too; what waits for them still waits.
bool share_with_core(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  for (std::size_t i = 0; i < count; ++i) {
    if (args[i].type != runtime.types.builtin().symbol) return ctx.argument_error("share_with_core takes symbols");
    Binding* binding = runtime.base->entered(args[i].symbol);
    if (binding == nullptr) return ctx.undef_var(args[i].symbol);
    runtime.core->bindings.try_emplace(args[i].symbol, binding);
  }
  result = runtime.nothing();
  return true;
}

bool define_constant_native(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (!is_module_and_name(ctx, args, count, 3)) return ctx.argument_error("define_constant(module, name, value)");
  result = args[2];
  return define_constant(*ctx.runtime, ctx, args[0].module, args[1].symbol, args[2]);
}

bool declare_global(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  if (!is_module_and_name(ctx, args, count, 3) || !runtime.is_type_value(args[2]))
    return ctx.argument_error("declare_global(module, name, type)");
  result = runtime.nothing();
  Binding* binding = runtime.binding(args[0].module, args[1].symbol);
  const Type* type = args[2].as_type;
  if (binding->is_constant) return ctx.raise_error("cannot set type for constant " + binding->name->name);
  if (binding->declared == type) return true;
  if (binding->value.defined() && !is_instance(runtime.types, binding->value, type))
    return ctx.raise_error("cannot set type for global " + binding->name->name +
                           ". It already has a value of another type");
  if (binding->declared != nullptr)
    return ctx.raise_error("cannot set type for global " + binding->name->name +
                           ". It already has a value or is already set to a different type");
  binding->declared = type;
  runtime.binding_changed(binding);
  return true;
}

// Source text by its path: from the host, or from the file system where that is granted. `why`: it cannot be read.
bool read_source(Context& ctx, const std::string& path, std::string& text, std::string& why) {
  Runtime& runtime = *ctx.runtime;
  if (runtime.hooks().read_source) {
    if (runtime.hooks().read_source(path, text)) return true;
    why = text;
    return true;
  }
  GrantedPath place;
  if (!place.find(ctx, Capabilities::Access::include, path)) return false;
  const FileDescriptor file = place.open(O_RDONLY);
  struct stat info;
  if (!file || fstat(file.get(), &info) != 0 || S_ISDIR(info.st_mode)) {
    why = "No such file or directory";
    return true;
  }
  CountedBytes counted;
  std::vector<char> piece(std::size_t{1} << 16);
  for (;;) {
    if (ctx.interrupt.load(std::memory_order_relaxed)) return ctx.stop();
    const ssize_t n = ::read(file.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) why = std::strerror(errno);
    if (n <= 0) return true;
    text.append(piece.data(), static_cast<std::size_t>(n));
    counted.add(runtime.outside_heap, static_cast<std::size_t>(n));
  }
}

bool include_file(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  const auto& builtin = runtime.types.builtin();
  if (count != 3 || args[0].type != builtin.module || args[1].type != builtin.string || args[2].type != builtin.string)
    return ctx.argument_error("include: expected the path of a file");
  const std::filesystem::path from(std::string(static_cast<StringObject*>(args[1].object)->view()));
  const std::filesystem::path wanted(std::string(static_cast<StringObject*>(args[2].object)->view()));
  const std::string path = (wanted.is_absolute() ? wanted : from.parent_path() / wanted).lexically_normal().string();
  std::string text;
  std::string why;
  if (!read_source(ctx, path, text, why)) return false;
  if (!why.empty()) return ctx.raise_message(builtin.system_error, "opening file \"" + path + "\": " + why);
  if (!runtime.hooks().run_file) return ctx.raise_error("include: nothing runs files here");
  runtime.outside_heap.add(SourceFile::bytes(path, text));
  return runtime.hooks().run_file(ctx, args[0].module, runtime.sources.add(path, std::move(text)), result);
}

// source_text(path): the text of a file of source that may be read; otherwise nothing.
bool source_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  if (count != 1 || args[0].type != runtime.types.builtin().string)
    return ctx.argument_error("source_text: expected the path of a file");
  const std::string path(static_cast<StringObject*>(args[0].object)->view());
  std::string text;
  std::string why;
  result = runtime.nothing();
  if (!read_source(ctx, path, text, why)) {
    ctx.take_error();
    return true;
  }
  if (why.empty()) result = runtime.from_string(text);
  return result.defined() || ctx.out_of_memory();
}

// package_module(name): a new module, in which a package's own module is to be defined, or of the given name.
bool package_module(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  const bool named = count == 1 && args[0].type == runtime.types.builtin().symbol;
  Module* root = runtime.new_module(named ? args[0].symbol : runtime.symbol(package_root), nullptr);
  root->usings = {runtime.base, runtime.core};
  for (Module* named : root->usings)
    runtime.set_constant(root, named->name->name,
                         Value(runtime.types.builtin().module, static_cast<const void*>(named)));
  result = Value(runtime.types.builtin().module, static_cast<const void*>(root));
  return true;
}

// package_complete(module): all definitions of the package are there.
bool package_complete(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  if (count != 1 || args[0].type != runtime.types.builtin().module)
    return ctx.argument_error("package_complete: expected a module");
  state_of(runtime).package_worlds[args[0].module] = runtime.world();
  result = runtime.nothing();
  return true;
}

bool eval_expression(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  if (count != 2 || args[0].type != runtime.types.builtin().module)
    return ctx.argument_error("eval: expected a module and an expression");
  return eval(runtime, ctx, args[0].module, args[1], result);
}

// The exception of the innermost catch block goes on, with the trace it had.
bool rethrow_caught(Context& ctx, const Value*, std::size_t, Value&) {
  if (ctx.caught.empty()) return ctx.raise_error("rethrow() not allowed outside a catch block");
  const Value exception = ctx.caught.back();
  std::vector<TraceEntry> trace = ctx.last_trace;
  ctx.raise(exception);
  ctx.trace = std::move(trace);
  return false;
}

bool rethrow(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count == 0) return rethrow_caught(ctx, args, count, result);
  if (ctx.caught.empty()) return ctx.raise_error("rethrow(exc) not allowed outside a catch block");
  std::vector<TraceEntry> trace = ctx.last_trace;
  ctx.raise(args[0]);
  ctx.trace = std::move(trace);
  return false;
}

// esc(e): what a macro says to take `e` out of hygiene.
// caught_exceptions(): what the catch blocks around hold, the innermost last.
bool caught_exceptions(Context& ctx, const Value*, std::size_t, Value& result) {
  return ctx.runtime->new_tuple(ctx, ctx.caught.data(), ctx.caught.size(), result);
}

bool esc(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1) return ctx.argument_error("esc takes one expression");
  Runtime& runtime = *ctx.runtime;
  const Value operands[] = {runtime.from_symbol(runtime.symbol("escape")), args[0]};
  return ir::execute(ctx, ir::Op::expr, operands, 2, 0, result);
}

bool gensym(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  const auto& builtin = runtime.types.builtin();
  std::string_view stem;
  if (count > 0 && args[0].type == builtin.symbol) stem = args[0].symbol->name;
  if (count > 0 && args[0].type == builtin.string) stem = static_cast<StringObject*>(args[0].object)->view();
  // Interned all the same: the name travels through syntax as text.
  const Symbol* unique = runtime.symbols.gensym(stem);
  result = runtime.from_symbol(runtime.symbol(unique->name));
  return true;
}

// An Expr whose shape no text has, as Julia shows it: $(Expr(:call, parts…)).
bool text_of_malformed(Runtime& runtime, Context& ctx, Value repr, Value expression, std::string& out) {
  const auto& builtin = runtime.types.builtin();
  const auto append = [&](Value v) {
    Value text;
    if (!v.defined()) {
      out += "#undef";
      return true;
    }
    if (!runtime.call(ctx, repr, &v, 1, text)) return false;
    if (text.type == builtin.string) out += static_cast<StringObject*>(text.object)->view();
    return true;
  };
  Value head, parts;
  if (!runtime.get_field(ctx, expression, runtime.from_int(1), head) ||
      !runtime.get_field(ctx, expression, runtime.from_int(2), parts))
    return false;
  out = "$(Expr(";
  if (!append(head)) return false;
  if (as_data(parts.type)->object_kind != DataType::ObjectKind::array) {
    out += ", ";
    if (!append(parts)) return false;
  } else {
    const auto* array = static_cast<const ArrayObject*>(parts.object);
    const Type* element = array_element_type(array);
    for (std::int64_t i = 0; i < array->length; ++i) {
      out += ", ";
      if (!append(load_stored(runtime.heap, array->data + i * stored_size(element), element))) return false;
    }
  }
  out += "))";
  return true;
}

// Values in an expression as `repr` shows them; operators of known modules are plain operators.
bool texts_of_values(Runtime& runtime, Context& ctx, syntax::Ast& ast,
                     std::unordered_map<syntax::NodeId, std::string>& texts) {
  const auto& builtin = runtime.types.builtin();
  const Binding* repr = runtime.resolve(runtime.base, runtime.symbol("repr"));
  for (syntax::NodeId id = 1; id < ast.node_count(); ++id) {
    if (ast.head(id) != syntax::Head::value) continue;
    const auto& values = state_of(runtime).spliced.values;
    const Value value = values[ast.node(id).value];
    Value part;
    if (value.type == builtin.global_ref) {
      if (!runtime.get_field(ctx, value, runtime.from_int(2), part)) return false;
      if (syntax::find_operator(part.symbol->name)) {
        ast.made(id).head = syntax::Head::identifier;
        ast.made(id).name = ast.intern(part.symbol->name);
        continue;
      }
    }
    if (repr == nullptr || !repr->value.defined()) continue;
    if (value.type == builtin.expr) {
      if (!text_of_malformed(runtime, ctx, repr->value, value, texts[id])) return false;
      continue;
    }
    if (!runtime.call(ctx, repr->value, &value, 1, part)) return false;
    if (part.type == builtin.string) texts[id] = static_cast<StringObject*>(part.object)->view();
  }
  return true;
}

// An expression as source text, for printing.
bool expression_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1) return ctx.argument_error("expression_text takes one expression");
  Runtime& runtime = *ctx.runtime;
  syntax::Ast ast;
  std::string error;
  auto& spliced = state_of(runtime).spliced.values;
  const std::size_t before = spliced.size();
  const syntax::NodeId node = from_printed(runtime, ctx, ast, args[0], error);
  if (ctx.failed()) return false;
  const std::size_t after = spliced.size();
  std::unordered_map<syntax::NodeId, std::string> texts;
  const bool shown = texts_of_values(runtime, ctx, ast, texts);
  // Unless a `show` of the program has defined something with values of its own.
  if (spliced.size() == after) {
    spliced.resize(before);
    runtime.outside_heap.remove((after - before) * sizeof(Value));
  }
  if (!shown) return false;
  const auto value_text = [&](syntax::NodeId id) { return texts[id]; };
  result = runtime.from_string(error.empty() ? syntax::to_source(ast, node, value_text) : "<" + error + ">");
  return result.defined() || ctx.out_of_memory();
}

// A text that is read only to make values of it: nothing of it stays.
class ReadText {
 public:
  ReadText(Runtime& runtime, const Context& ctx, std::string text)
      : state_(state_of(runtime)),
        runtime_(runtime),
        before_(state_.constants.values.size()),
        parsed_(syntax::parse(texts_, texts_.add("none", std::move(text)),
                              {.interrupt = &ctx.interrupt, .memory = &runtime.outside_heap})),
        outer_texts_(std::exchange(state_.texts, &texts_)),
        outer_of_source_(std::exchange(state_.of_source, false)) {
    counted_.add(runtime.outside_heap, parsed_.ast.bytes());
  }
  ~ReadText() {
    auto& constants = state_.constants.values;
    runtime_.outside_heap.remove((constants.size() - before_) * sizeof(Value));
    constants.resize(before_);
    state_.texts = outer_texts_;
    state_.of_source = outer_of_source_;
  }
  ReadText(const ReadText&) = delete;

  bool ok() const { return parsed_.ok(); }
  std::string problems() const { return render(parsed_.diagnostics, texts_); }
  const syntax::Ast& tree() const { return parsed_.ast; }
  std::int64_t line_of(Span span) const { return texts_.line_of(span); }

 private:
  LoweringState& state_;
  Runtime& runtime_;
  const std::size_t before_;  // constants: those of the tree are kept until they are in their Expr
  SourceMap texts_;
  const syntax::ParseResult parsed_;
  CountedBytes counted_;
  const SourceMap* const outer_texts_;
  const bool outer_of_source_;
};

// The expression that a text holds; several statements give a :toplevel.
bool parse_expression(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  if (count != 1 || args[0].type != runtime.types.builtin().string)
    return ctx.argument_error("parse_expression takes a string");
  const ReadText text(runtime, ctx, std::string(static_cast<StringObject*>(args[0].object)->view()));
  if (!text.ok() && ctx.interrupt.load(std::memory_order_relaxed)) return ctx.stop();
  if (!text.ok()) return ctx.raise_message(runtime.types.builtin().error_exception, text.problems());
  const syntax::Ast& tree = text.tree();
  syntax::NodeId node = tree.root;
  if (tree.child_count(node) == 0) {
    result = runtime.nothing();
    return true;
  }
  if (tree.child_count(node) == 1) node = tree.child(node, 0);
  return to_value(runtime, ctx, tree, node, result);
}

// parse_statements(text): of each statement the expression, the number of bytes before its end, and its line, in turn.
bool parse_statements(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  const auto& builtin = runtime.types.builtin();
  if (count != 1 || args[0].type != builtin.string) return ctx.argument_error("parse_statements takes a string");
  const ReadText text(runtime, ctx, std::string(static_cast<StringObject*>(args[0].object)->view()));
  if (!text.ok() && ctx.interrupt.load(std::memory_order_relaxed)) return ctx.stop();
  if (!text.ok()) return ctx.raise_message(builtin.error_exception, text.problems());
  const syntax::Ast& tree = text.tree();
  const std::vector<syntax::NodeId> statements(tree.children(tree.root).begin(), tree.children(tree.root).end());
  const std::int64_t dims[] = {static_cast<std::int64_t>(3 * statements.size())};
  const DataType* type = runtime.types.array_of(builtin.any, 1);
  ArrayObject* made = runtime.heap.allocate_array(type, dims);
  if (made == nullptr) return ctx.out_of_memory();
  result = Value(type, static_cast<const void*>(made));
  for (std::size_t i = 0; i < statements.size(); ++i) {
    Value expression;
    if (!to_value(runtime, ctx, tree, statements[i], expression)) return false;
    const Span span = tree.node(statements[i]).span;
    const Value parts[] = {expression, runtime.from_int(static_cast<std::int64_t>(span.end)),
                           runtime.from_int(text.line_of(span))};
    for (std::size_t k = 0; k < 3; ++k)
      store_value(runtime.heap, made->data + (3 * i + k) * made->element_size, builtin.any, parts[k]);
  }
  return true;
}

const Type* integer(TypeTable& types, std::span<const Type* const>) { return types.builtin().int64; }
const Type* never(TypeTable& types, std::span<const Type* const>) { return types.builtin().bottom; }

constexpr NativeInfo lower_natives[] = {
    {"define", define, effect_all, nullptr},
    {"invoke_latest", invoke_latest, effect_all, nullptr},
    {"world_age", world_age, effect_reads, nullptr},
    {"context_world", context_world, effect_reads, integer},
    {"invoke_in_world", invoke_in_world, effect_all, nullptr},
    {"invalidation_texts", invalidation_texts, effect_all, nullptr},
    {"newest_world", newest_world, effect_writes, nullptr},
    {"define_library", define_library, effect_all, nullptr},
    {"define_constant", define_constant_native, effect_all, nullptr},
    {"share_with_core", share_with_core, effect_all, nullptr},
    {"declare_global", declare_global, effect_all, nullptr},
    {"include_file", include_file, effect_all, nullptr},
    {"include_library", include_library, effect_all, nullptr},
    {"source_text", source_text, effect_all, nullptr},
    {"package_module", package_module, effect_all, nullptr},
    {"package_complete", package_complete, effect_all, nullptr},
    {"eval_expression", eval_expression, effect_all, nullptr},
    {"eval", eval_expression, effect_all, nullptr},
    {"caught_exceptions", caught_exceptions, effect_all, nullptr},
    {"rethrow_caught", rethrow_caught, effect_throws | effect_reads, never},
    {"esc", esc, effect_throws | effect_allocates, nullptr},
    {"gensym", gensym, effect_writes | effect_allocates, nullptr},
    {"expression_text", expression_text, effect_throws | effect_reads | effect_allocates, nullptr},
    {"parse_expression", parse_expression, effect_all, nullptr, false, true},
    {"parse_statements", parse_statements, effect_all, nullptr, false, true},
    {"rethrow", rethrow, effect_throws | effect_reads, never},
};

}  // namespace

void add_hooks(Runtime& runtime, RuntimeHooks& hooks) {
  hooks.reach_syntax = [&runtime](const Method* method, Reached& reached) { reach_syntax(runtime, method, reached); };
  hooks.lower_method = [&runtime](Context& ctx, Method& method) { return lower_method(runtime, ctx, method); };
  hooks.define_postponed = [&runtime](Context& ctx, Postponed what) { return define_postponed(runtime, ctx, what); };
  hooks.generate_source = [&runtime](Context& ctx, Specialization& target, Source& source) {
    return generate(runtime, ctx, target, source);
  };
}

void define_lowering_natives(Runtime& runtime) {
  state_of(runtime);
  for (const NativeInfo& native : lower_natives) runtime.define_native(runtime.core, &native);
  define_lowered_code_natives(runtime);
  for (const char* name : {"rethrow", "esc", "gensym"}) runtime.core->exported_names.insert(runtime.symbol(name));
}

}  // namespace slope::lower
