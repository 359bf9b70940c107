// Syntax trees from values: what macros return, what `eval` and printing are given; and the names that an expansion introduces.
#include <array>
#include <unordered_set>
#include <utility>

#include "lang/lower/definition.hpp"
#include "lang/lower/expr.hpp"
#include "lang/lower/signature.hpp"
#include "lang/lower/state.hpp"
#include "lang/support/exception_safe.hpp"
#include "lang/support/thread_stack.hpp"
#include "lang/support/tuning.hpp"
#include "lang/syntax/options.hpp"
#include "lang/syntax/shape.hpp"
#include "lang/syntax/syntactic_operators.hpp"

namespace slope::lower {

using syntax::Ast;
using syntax::Head;
using syntax::no_node;
using syntax::NodeId;

namespace {

struct Heads {
  std::unordered_map<std::string_view, Head> by_name;
  Heads() {
    for (int i = static_cast<int>(Head::call); i <= static_cast<int>(Head::error); ++i) {
      const auto head = static_cast<Head>(i);
      by_name.emplace(syntax::head_name(head), head);
    }
    by_name["string"] = Head::interpolated;
    by_name["quote"] = Head::quote;
    by_name["call"] = Head::call;
    by_name["ref"] = Head::ref;
    by_name["."] = Head::dot;
  }
};

constexpr std::size_t most_parts = std::size_t{1} << 21;

class Reader {
 public:
  Reader(Runtime& runtime, Context& ctx, Ast& ast, Span span, Hygiene* hygiene, std::string& error,
         bool shows_malformed = false)
      : runtime_(runtime),
        ctx_(ctx),
        ast_(ast),
        span_(span),
        hygiene_(hygiene),
        error_(error),
        shows_malformed_(shows_malformed) {}

  NodeId read(Value v) {
    const auto& builtin = runtime_.types.builtin();
    if (depth_ > tuning::quoted_depth || is_below(stack_limit_)) return fail("an expression is nested too deeply");
    if (!may_go_on()) return no_node;
    ++depth_;
    const NodeId made = v.type == builtin.expr ? checked(v, expr(v)) : leaf(v);
    --depth_;
    return made;
  }

  static bool parts_of(Runtime& runtime, Context& ctx, Value v, const Symbol*& head, std::vector<Value>& args) {
    Value part;
    if (!runtime.get_field(ctx, v, runtime.from_int(1), part) || part.type != runtime.types.builtin().symbol)
      return false;
    head = part.symbol;
    if (!runtime.get_field(ctx, v, runtime.from_int(2), part) ||
        as_data(part.type)->object_kind != DataType::ObjectKind::array || part.object == nullptr)
      return false;
    const auto* array = static_cast<const ArrayObject*>(part.object);
    const Type* element = array_element_type(array);
    for (std::int64_t i = 0; i < array->length; ++i)
      args.push_back(load_stored(runtime.heap, array->data + i * stored_size(element), element));
    return true;
  }

 private:
  // Expressions share their parts: one of 60 levels may be a tree of 2^60.
  bool may_go_on() {
    if (!error_.empty()) return false;
    if (++parts_ > most_parts) {
      fail("an expression has more than " + std::to_string(most_parts) + " parts");
      return false;
    }
    if ((parts_ & 1023) != 0) return true;
    growth_.to(ast_.bytes());
    if (ctx_.interrupt.load(std::memory_order_relaxed) == no_interrupt) return true;
    if (!ctx_.stop()) fail("interrupted");
    return error_.empty();
  }

  NodeId fail(std::string message) {
    if (error_.empty()) error_ = std::move(message);
    return no_node;
  }

  // Of an Expr: is its shape one of those that ast.hpp lists? Printing shows what is not as a value.
  NodeId checked(Value v, NodeId made) {
    if (made != no_node && error_.empty())
      if (std::string wrong = syntax::misshapen(ast_, made); !wrong.empty()) made = fail(std::move(wrong));
    if (!shows_malformed_ || !(error_.starts_with("malformed ") || error_.starts_with("Expr with head "))) return made;
    error_.clear();
    return spliced(v);
  }

  NodeId spliced(Value v) {
    auto& values = state_of(runtime_).spliced.values;
    values.push_back(v);
    runtime_.outside_heap.add(sizeof(Value));
    const NodeId made = ast_.leaf(Head::value, span_);
    ast_.made(made).value = static_cast<std::uint32_t>(values.size() - 1);
    return made;
  }

  // Marks the body whose generator is `generator`: lang/lower/generated.cpp adds the arguments.
  NodeId compilers_generator(Value generator) {
    const Binding* run = runtime_.resolve(runtime_.base, runtime_.symbol("run_compilers_generator"));
    if (run == nullptr || !run->value.defined()) return fail("generators of Expr(:meta, :generated, …) are missing");
    const NodeId function = spliced(run->value);
    const NodeId call[] = {function, read(generator)};
    const NodeId parts[] = {ast_.identifier("@generated", span_), ast_.make(Head::call, span_, call)};
    return ast_.make(Head::macrocall, span_, parts);
  }

  NodeId identifier(const Symbol* symbol, bool variable) {
    if (variable && (symbol->name == "true" || symbol->name == "false")) {  // Symbol("true") as a variable
      const NodeId made = ast_.leaf(Head::boolean, span_);
      ast_.made(made).integer = symbol->name == "true" ? 1 : 0;
      return made;
    }
    if (hygiene_ == nullptr && variable && of_macros_module(symbol)) return reference(maker_->module, symbol);
    if (hygiene_ == nullptr || !variable || symbol->name.empty()) return ast_.identifier(symbol->name, span_);
    const auto renamed = hygiene_->renamed.find(symbol);
    if (renamed != hygiene_->renamed.end()) return ast_.identifier(renamed->second, span_);
    if (symbol->name[0] == '@' || symbol->name[0] == '.' || symbol->name == "end" || symbol->name == "begin" ||
        symbol->name == "new" || symbol->name == "ccall" || symbol->name == "_" || symbol->name == ":")
      return ast_.identifier(symbol->name, span_);
    return reference(hygiene_->module, symbol);
  }

  NodeId reference(Module* module, const Symbol* symbol) {
    const Value fields[] = {Value(runtime_.types.builtin().module, static_cast<const void*>(module)),
                            runtime_.from_symbol(symbol)};
    Value made;
    if (!runtime_.new_object(ctx_, runtime_.types.builtin().global_ref, fields, 2, made)) {
      ctx_.take_error();
      return ast_.identifier(symbol->name, span_);
    }
    return spliced(made);
  }

  // In a module that a macro makes: a name that the module of the macro has and this one does not define.
  bool of_macros_module(const Symbol* symbol) const {
    if (maker_ == nullptr || maker_->module == nullptr || defined_here_.count(symbol) != 0) return false;
    if (symbol->name.empty() || symbol->name[0] == '@' || symbol->name[0] == '.') return false;
    const Binding* known = runtime_.resolve(maker_->module, symbol);
    return known != nullptr && known->value.defined();
  }

  // Every name at a place where a definition has its own: f(x) = …, x = …, struct S … end, const x.
  void collect_defined(Value v, bool at_name) {
    const auto& builtin = runtime_.types.builtin();
    if (v.defined() && v.type == builtin.symbol && at_name) defined_here_.insert(v.symbol);
    const Symbol* head = nullptr;
    std::vector<Value> args;
    if (!v.defined() || v.type != builtin.expr || !parts_of(runtime_, ctx_, v, head, args)) return;
    const std::string& name = head->name;
    const bool defines = name == "=" || name == "function" || name == "macro" || name == "const" || name == "global" ||
                         name == "abstract" || name == "primitive" || name == "module";
    const bool passes_on = at_name && (name == "call" || name == "where" || name == "curly" || name == "<:" ||
                                       name == "::" || name == "tuple" || name == "escape");
    for (std::size_t i = 0; i < args.size(); ++i) {
      const bool first = i == (name == "module" ? 1U : 0U);
      collect_defined(args[i], (defines && first) || (name == "struct" && i == 1) || (passes_on && i == 0) ||
                                   (at_name && name == "tuple"));
    }
  }

  NodeId leaf(Value v) {
    const auto& builtin = runtime_.types.builtin();
    if (!v.defined()) return fail("an expression has an undefined part");
    if (v.type == builtin.symbol) return identifier(v.symbol, true);
    if (v.type == builtin.int64) {
      const NodeId made = ast_.leaf(Head::integer, span_);
      ast_.made(made).integer = v.bits;
      return made;
    }
    if (v.type == builtin.float64) {
      const NodeId made = ast_.leaf(Head::floating, span_);
      ast_.made(made).floating = v.float64;
      return made;
    }
    if (v.type == builtin.boolean) {
      const NodeId made = ast_.leaf(Head::boolean, span_);
      ast_.made(made).integer = v.bits;
      return made;
    }
    if (v.type == builtin.string)
      return ast_.string_leaf(std::string(static_cast<StringObject*>(v.object)->view()), span_);
    if (v.type == builtin.nothing || v.type == builtin.line_number_node) return ast_.leaf(Head::nothing, span_);
    if (v.type == builtin.quote_node) {
      Value inner;
      if (!runtime_.get_field(ctx_, v, runtime_.from_int(1), inner)) return fail("malformed QuoteNode");
      if (inner.type != builtin.symbol) return spliced(inner);
      const NodeId made = ast_.leaf(Head::quote_symbol, span_);
      ast_.made(made).name = ast_.intern(inner.symbol->name);
      return made;
    }
    return spliced(v);
  }

  bool all(const std::vector<Value>& args, std::size_t from, std::vector<NodeId>& out) {
    for (std::size_t i = from; i < args.size(); ++i) {
      const NodeId made = read(args[i]);
      if (made == no_node && !error_.empty()) return false;
      out.push_back(made);
    }
    return true;
  }

  NodeId plain(Head head, const std::vector<Value>& args, std::size_t from, std::uint8_t flag = 0) {
    std::vector<NodeId> children;
    if (!all(args, from, children)) return no_node;
    return ast_.make(head, span_, children, flag);
  }

  // A name that is no variable reference: a keyword, a field, a macro.
  // GlobalRef(M, :@m) as a macro's name: M.@m, and without M what the language has.
  NodeId macro_of(Module* owner, const Symbol* name) {
    const NodeId plain = ast_.identifier(name->name, span_);
    if (owner == runtime_.core || owner == runtime_.base) return plain;
    const NodeId parts[] = {spliced(Value(runtime_.types.builtin().module, static_cast<const void*>(owner))),
                            quote(name)};
    return ast_.make(Head::dot, span_, parts);
  }

  // The beginning of the line of a LineNumberNode whose file was read; of nothing else.
  Span span_of(Value node) {
    Value line;
    Value file;
    if (!runtime_.get_field(ctx_, node, runtime_.from_int(1), line) ||
        !runtime_.get_field(ctx_, node, runtime_.from_int(2), file)) {
      ctx_.take_error();
      return span_;
    }
    if (file.type != runtime_.types.builtin().symbol || line.type != runtime_.types.builtin().int64) return span_;
    for (std::size_t i = runtime_.sources.size(); i-- > 1;) {
      const SourceFile& source = runtime_.sources.file(static_cast<FileId>(i));
      if (source.name() != file.symbol->name) continue;
      const std::string_view text = source.line(static_cast<std::uint32_t>(line.bits));
      if (text.data() == nullptr) return span_;
      const auto begin = static_cast<std::uint32_t>(text.data() - source.text().data());
      return {static_cast<FileId>(i), begin, begin + static_cast<std::uint32_t>(text.size())};
    }
    return span_;
  }

  // The module of the macro that made the code, when it knows a macro of this name: it is meant, not the caller's.
  const Module* definer_of_macro(Value name) {
    if (hygiene_ == nullptr || name.type != runtime_.types.builtin().symbol) return nullptr;
    const Binding* known = runtime_.resolve(hygiene_->module, name.symbol);
    return known != nullptr && known->value.defined() ? hygiene_->module : nullptr;
  }

  NodeId macro_call(const std::vector<Value>& args) {
    const auto& builtin = runtime_.types.builtin();
    Module* owner = nullptr;
    const Symbol* referred = nullptr;
    std::vector<NodeId> children;
    if (args[0].type == builtin.global_ref && reference_parts(runtime_, ctx_, args[0], owner, referred)) {
      children.push_back(macro_of(owner, referred));
    } else if (const Module* definer = definer_of_macro(args[0]); definer != nullptr) {
      children.push_back(macro_of(const_cast<Module*>(definer), args[0].symbol));
    } else {
      children.push_back(label(args[0]));
    }
    if (!all(args, 2, children)) return no_node;
    const bool is_doc = owner == runtime_.core && referred->name == "@doc" && children.size() == 3;
    return ast_.make(Head::macrocall, span_, children, is_doc ? 1 : 0);
  }

  // let x; … end in an expansion: a variable that nothing of the expansion assigns keeps its name, as in Julia.
  NodeId let(const std::vector<Value>& args) {
    const auto& builtin = runtime_.types.builtin();
    const auto bound = [&](Value v) {
      const bool kept = v.type == builtin.symbol && hygiene_ != nullptr && hygiene_->renamed.count(v.symbol) == 0;
      return kept ? label(v) : read(v);
    };
    const Symbol* head = nullptr;
    std::vector<Value> items;
    NodeId bindings = no_node;
    if (args[0].type == builtin.expr && parts_of(runtime_, ctx_, args[0], head, items) && head->name == "block") {
      std::vector<NodeId> children;
      for (const Value& item : items) {
        if (item.type == builtin.line_number_node) continue;
        children.push_back(bound(item));
        if (children.back() == no_node) return no_node;
      }
      bindings = ast_.make(Head::block, span_, children);
    } else {
      bindings = bound(args[0]);
    }
    if (bindings == no_node) return no_node;
    const NodeId body = read(args[1]);
    return body == no_node ? no_node : ast_.make(Head::let_, span_, std::vector{bindings, body});
  }

  NodeId label(Value v) {
    if (v.type == runtime_.types.builtin().symbol) return ast_.identifier(v.symbol->name, span_);
    return read(v);
  }

  NodeId statements(Head head, const std::vector<Value>& args) {
    std::vector<NodeId> children;
    for (const Value& arg : args) {
      const bool is_line = arg.defined() && arg.type == runtime_.types.builtin().line_number_node;
      if (is_line && in_quote_ == 0) continue;
      const NodeId made = is_line ? spliced(arg) : read(arg);
      if (made == no_node) return no_node;
      children.push_back(made);
    }
    // In a quote the lines are those that stand there, flag 2.
    return ast_.make(head, span_, children, in_quote_ > 0 ? 2 : 0);
  }

  NodeId keyword(Head head, const std::vector<Value>& args) {
    if (args.size() != 2) return fail("malformed keyword argument");
    // In a signature the name is a parameter, in a call a label.
    const bool variable = args[0].type == runtime_.types.builtin().expr || in_signature_ > 0;
    const int signature = std::exchange(in_signature_, 0);
    const NodeId children[] = {variable ? read(args[0]) : label(args[0]), read(args[1])};
    in_signature_ = signature;
    return ast_.make(head, span_, children);
  }

  // Long because it is a table: one case for each head that is more than its parts.
  NodeId expr(Value v) {
    const auto& builtin = runtime_.types.builtin();
    const Symbol* head = nullptr;
    std::vector<Value> args;
    if (!parts_of(runtime_, ctx_, v, head, args)) return fail("malformed Expr");
    const std::string& name = head->name;
    // Of a tuple's own parts alone: (a = 1, let x = 2; x end).
    const bool is_part = in_parameters_ > 0;
    const Restored parts(in_parameters_, name == "escape" ? in_parameters_ : 0);
    if (name == "escape") {
      if (args.size() != 1) return fail("malformed esc");
      Hygiene* outer = std::exchange(hygiene_, nullptr);
      const Restored maker(maker_, static_cast<Hygiene*>(nullptr));
      const NodeId made = read(args[0]);
      hygiene_ = outer;
      return made;
    }
    if (name == "block" || name == "toplevel") return statements(name == "block" ? Head::block : Head::toplevel, args);
    if (args.size() == 2 && syntax::is_syntactic_operator(name)) {
      const NodeId parts[] = {ast_.identifier(name, span_), read(args[0]), read(args[1])};
      return ast_.make(Head::call, span_, parts, 1);
    }
    if (name == "kw" || (name == "=" && is_part)) return keyword(name == "kw" ? Head::kw : Head::assign, args);
    if (name == ".") return dot(args);
    if (name == "call" && !args.empty() && args[0].type == builtin.symbol && args[0].symbol->name.size() > 1 &&
        args[0].symbol->name[0] == '.' && args[0].symbol->name[1] != '.') {
      std::vector<NodeId> children{identifier(runtime_.symbol(std::string_view(args[0].symbol->name).substr(1)), true)};
      if (!all(args, 1, children)) return no_node;
      return ast_.make(Head::dot_call, span_, children, 1);
    }
    if (name == "macrocall") {
      if (args.size() < 2) return fail("malformed macro call");
      // Where the call says that it is, when the code comes from nowhere else.
      const Span outer = span_;
      if (span_.file == 0 && args[1].type == builtin.line_number_node) span_ = span_of(args[1]);
      const NodeId made = macro_call(args);
      span_ = outer;
      return made;
    }
    if (name == "elseif") return plain(Head::if_, args, 0, 1);
    if (name == "struct" || name == "module") {
      if (args.size() != 3) return fail("malformed " + name);
      const bool flag = args[0].type == builtin.boolean && (args[0].bits != 0) == (name == "struct");
      // What a module of an expansion holds means what it says there.
      Hygiene* outer = name == "module" ? std::exchange(hygiene_, nullptr) : hygiene_;
      const Restored maker(maker_, name == "module" && outer != nullptr ? outer : maker_);
      if (name == "module" && outer != nullptr) collect_defined(args[2], false);
      const NodeId made = plain(name == "struct" ? Head::struct_ : Head::module_, args, 1, flag ? 1 : 0);
      hygiene_ = outer;
      return made;
    }
    if (name == "try") return try_(args);
    if (name == "tryfinally" && args.size() == 2) {
      const Value absent = runtime_.from_bool(false);
      return try_({args[0], absent, absent, args[1]});
    }
    if (name == "quote") {
      // Names inside a quote are data.
      Hygiene* outer = std::exchange(hygiene_, nullptr);
      ++in_quote_;
      const NodeId made = plain(Head::quote, args, 0);
      --in_quote_;
      hygiene_ = outer;
      return made;
    }
    if ((name == "&&" || name == "||") && args.size() != 2) return chain(name, args);
    if (name == "$") {
      const int outer = std::exchange(in_quote_, std::max(in_quote_ - 1, 0));
      const NodeId made = plain(Head::interpolate, args, 0);
      in_quote_ = outer;
      return made;
    }
    if (name == "return" && args.empty()) return plain(Head::return_, args, 0);
    if (name == "comparison") return plain(Head::comparison, args, 0);
    if (name == "using" || name == "import" || name == "export") {
      Hygiene* outer = std::exchange(hygiene_, nullptr);
      std::vector<NodeId> children;
      for (const Value& arg : args) children.push_back(name == "export" ? label(arg) : path(arg));
      hygiene_ = outer;
      return ast_.make(name == "using"    ? Head::using_
                       : name == "import" ? Head::import_
                                          : Head::export_,
                       span_, children);
    }
    if (name.size() > 1 && name.back() == '=' && name != "==" && name != "!=" && name != "<=" && name != ">=" &&
        name != "===" && name != "!==")
      return update(name, args);
    if (!shows_malformed_) {
      if ((name == "new" || name == "splatnew") && !args.empty()) return object(args, name == "splatnew");
      // A method that only a generator of Julia's compiler's own form has, and hints to that compiler.
      if (name == "meta" && args.size() == 2 && args[0].type == builtin.symbol && args[0].symbol->name == "generated")
        return compilers_generator(args[1]);
      if (name == "copyast" && args.size() == 1) return read(args[0]);
      if (name == "top" && args.size() == 1 && args[0].type == builtin.symbol)  // a name of Base, whatever is visible
        return reference(runtime_.base, args[0].symbol);
      if (name == "isdefined" && args.size() == 1) {
        const NodeId parts[] = {ast_.identifier("@isdefined", span_), read(args[0])};
        return ast_.make(Head::macrocall, span_, parts);
      }
      // What Julia's @goto and @label expand to.
      if ((name == "symbolicgoto" || name == "symboliclabel") && args.size() == 1) {
        const NodeId parts[] = {ast_.identifier(name == "symbolicgoto" ? "@goto" : "@label", span_), label(args[0])};
        return ast_.make(Head::macrocall, span_, parts);
      }
      if (name == "meta" || name == "inbounds" || name == "loopinfo") return ast_.leaf(Head::nothing, span_);
    }
    static const Heads heads;
    const auto found = heads.by_name.find(name);
    if (found == heads.by_name.end()) return fail("Expr with head :" + name + " is not part of Slope");
    const Head kind = found->second;
    if ((kind == Head::function || kind == Head::assign || kind == Head::arrow || kind == Head::macro_) &&
        !args.empty() && is_signature(args[0], kind)) {
      std::vector<NodeId> children;
      const int signature = std::exchange(in_signature_, 1);
      children.push_back(read(args[0]));
      in_signature_ = 0;
      const bool ok = all(args, 1, children);
      in_signature_ = signature;
      return ok && children[0] != no_node ? ast_.make(kind, span_, children) : no_node;
    }
    const bool parameters = kind == Head::parameters || kind == Head::tuple;
    in_parameters_ += parameters ? 1 : 0;
    const NodeId made = kind == Head::let_ && args.size() == 2 ? let(args) : plain(kind, args, 0);
    in_parameters_ -= parameters ? 1 : 0;
    if ((kind == Head::let_ || kind == Head::for_) && made != no_node && ast_.child_count(made) > 0)
      if (const NodeId items = ast_.child(made, 0); items != no_node && ast_.head(items) == Head::block)
        ast_.made(items).flag = 2;
    return made;
  }

  // Expr(:&&, a, b, c…) is a && (b && (c …)), one part itself.
  NodeId chain(const std::string& name, const std::vector<Value>& args) {
    if (args.empty()) {  // of nothing: all hold, none holds
      const NodeId made = ast_.leaf(Head::boolean, span_);
      ast_.made(made).integer = name == "&&" ? 1 : 0;
      return made;
    }
    NodeId made = read(args.back());
    for (std::size_t i = args.size() - 1; i-- > 0;) {
      const NodeId left = read(args[i]);
      if (left == no_node || made == no_node) return no_node;
      made = ast_.make(name == "&&" ? Head::and_and : Head::or_or, span_, std::vector<NodeId>{left, made});
    }
    return made;
  }

  // Expr(:new, T, fields…), Expr(:splatnew, T, fields): an object without its constructor. The library's object_of
  // makes it.
  NodeId object(const std::vector<Value>& args, bool in_tuple) {
    const Binding* make = runtime_.resolve(runtime_.base, runtime_.symbol("object_of"));
    if (make == nullptr || !make->value.defined() || (in_tuple && args.size() != 2)) return fail("malformed new");
    const NodeId children[] = {spliced(make->value), read(args[0]),
                               in_tuple ? read(args[1]) : plain(Head::tuple, args, 1)};
    return ast_.make(Head::call, span_, children);
  }

  // Expr(:., a, b): a field, or the arguments of a broadcast call.
  NodeId dot(const std::vector<Value>& args) {
    const auto& builtin = runtime_.types.builtin();
    if (args.size() == 1) return plain(Head::dot, args, 0);
    if (args.size() != 2) return fail("malformed Expr(:.)");
    if (args[1].type == builtin.expr) {
      const Symbol* inner = nullptr;
      std::vector<Value> arguments;
      if (!parts_of(runtime_, ctx_, args[1], inner, arguments)) return fail("malformed Expr(:.)");
      if (inner->name == "tuple") {
        std::vector<NodeId> children{read(args[0])};
        if (!all(arguments, 0, children)) return no_node;
        return ast_.make(Head::dot_call, span_, children);
      }
      if (inner->name == "quote" && arguments.size() == 1 && arguments[0].type == builtin.symbol) {
        const NodeId field[] = {read(args[0]), quote(arguments[0].symbol)};
        return ast_.make(Head::dot, span_, field);
      }
    }
    if (args[1].type == builtin.quote_node) {  // a.$x
      Value field;
      const Symbol* inner = nullptr;
      std::vector<Value> inserted;
      if (runtime_.get_field(ctx_, args[1], runtime_.from_int(1), field) && field.type == builtin.expr &&
          parts_of(runtime_, ctx_, field, inner, inserted) && inner->name == "$") {
        const NodeId name[] = {read(field)};
        const NodeId children[] = {read(args[0]), ast_.make(Head::quote, span_, name, 1)};
        return ast_.make(Head::dot, span_, children);
      }
    }
    const NodeId children[] = {read(args[0]), args[1].type == builtin.symbol ? quote(args[1].symbol) : read(args[1])};
    return ast_.make(Head::dot, span_, children);
  }

  // Parts that are absent are `false`.
  NodeId try_(const std::vector<Value>& args) {
    const auto& builtin = runtime_.types.builtin();
    if (args.size() < 3) return fail("malformed try");
    std::vector<NodeId> children;
    for (std::size_t i = 0; i < args.size(); ++i) {
      const bool absent = i > 0 && args[i].type == builtin.boolean && args[i].bits == 0;
      children.push_back(absent ? no_node : read(args[i]));
    }
    return ast_.make(Head::try_, span_, children);
  }

  // x += y and the like, and x .= y.
  NodeId update(const std::string& name, const std::vector<Value>& args) {
    const bool dotted = name[0] == '.';
    const std::string op = name.substr(dotted ? 1 : 0, name.size() - 1 - (dotted ? 1 : 0));
    if (args.size() != 2) return fail("malformed " + name);
    if (op.empty()) return plain(Head::dot_assign, args, 0);
    const NodeId children[] = {identifier(runtime_.symbol(op), true), read(args[0]), read(args[1])};
    return ast_.make(dotted ? Head::dot_op_assign : Head::op_assign, span_, children);
  }

  bool is_signature(Value v, Head definition) {
    if (is_below(stack_limit_)) return false;
    if (v.type != runtime_.types.builtin().expr) return definition == Head::arrow;
    const Symbol* head = nullptr;
    std::vector<Value> args;
    if (!parts_of(runtime_, ctx_, v, head, args)) return false;
    if (definition != Head::assign) return true;
    if (head->name == "call") return true;
    return (head->name == "where" || head->name == "::") && !args.empty() && is_signature(args[0], definition);
  }

  NodeId quote(const Symbol* symbol) {
    const NodeId made = ast_.leaf(Head::quote_symbol, span_);
    ast_.made(made).name = ast_.intern(symbol->name);
    return made;
  }

  NodeId path(Value v) {
    if (v.type != runtime_.types.builtin().expr) return label(v);
    const Symbol* head = nullptr;
    std::vector<Value> args;
    if (!parts_of(runtime_, ctx_, v, head, args)) return fail("malformed import");
    std::vector<NodeId> children;
    if (head->name == "as" && args.size() == 2) {
      // (as (. A B) C): a path whose last name is the new one.
      const NodeId named = path(args[0]);
      children.assign(ast_.children(named).begin(), ast_.children(named).end());
      children.push_back(label(args[1]));
      return ast_.make(Head::dot_path, span_, children, 1);
    }
    if (head->name != "." && head->name != ":") return fail("malformed import");
    if (++depth_ > tuning::quoted_depth) return fail("an expression is nested too deeply");
    for (const Value& arg : args) children.push_back(path(arg));
    --depth_;
    const NodeId made = ast_.make(head->name == "." ? Head::dot_path : Head::import_list, span_, children);
    if (std::string wrong = syntax::misshapen(ast_, made); !wrong.empty()) return fail(std::move(wrong));
    return made;
  }

  Runtime& runtime_;
  Context& ctx_;
  Ast& ast_;
  Span span_;
  Hygiene* hygiene_;
  Hygiene* maker_ = nullptr;  // of the expansion around the module that is read
  std::unordered_set<const Symbol*> defined_here_;
  std::string& error_;
  bool shows_malformed_;
  const char* stack_limit_ = recursion_limit(3);
  std::size_t parts_ = 0;
  syntax::Growth growth_{&runtime_.outside_heap};
  int depth_ = 0;
  int in_parameters_ = 0;
  int in_signature_ = 0;
  int in_quote_ = 0;
};

// Looks for the names that an expansion introduces. Parts that were looked at are not looked at again: an expression
// shares its parts.
class Collector {
 public:
  Collector(Runtime& runtime, Context& ctx, Hygiene& hygiene) : runtime_(runtime), ctx_(ctx), hygiene_(hygiene) {}

  void walk(Value v, int depth = 0) {
    if (!v.defined() || v.type != runtime_.types.builtin().expr || depth > 2000 || is_below(stack_limit_)) return;
    if (!walked_.insert(v.object).second) return;
    const Symbol* head = nullptr;
    std::vector<Value> args;
    if (!Reader::parts_of(runtime_, ctx_, v, head, args)) return;
    const std::string& name = head->name;
    if (name == "escape" || name == "quote" || name == "inert") return;
    if (name == "=" && args.size() == 2) {
      introduce(args[0]);
    } else if (name == "local") {
      for (const Value& arg : args) introduce(arg);
    } else if (name == "->" && args.size() == 2) {
      introduce(args[0]);
    } else if (name == "function" && !args.empty()) {
      introduce(args[0]);
    } else if (name == "macro" && !args.empty()) {
      introduce_parameters(args[0]);
    } else if (name == "try" && args.size() > 1) {
      introduce(args[1]);
    } else if (name == "struct" && args.size() == 3) {
      keep_type_names(args[1]);
      keep_fields(args[2]);
    } else if ((name == "abstract" || name == "primitive") && !args.empty()) {
      keep_type_names(args[0]);
    } else if (name == "global") {
      return;
    }
    for (const Value& arg : args) walk(arg, depth + 1);
  }

  // An expansion that is a definition of a function, or a macro's call with one, defines a global of its module.
  void keep_defined(Value v) {
    const Symbol* head = nullptr;
    std::vector<Value> args;
    if (!v.defined() || v.type != runtime_.types.builtin().expr || is_below(stack_limit_)) return;
    if (!Reader::parts_of(runtime_, ctx_, v, head, args) || args.empty()) return;
    if (head->name == "macrocall" && args.size() > 2) return keep_defined(args.back());
    if (head->name == "function" || head->name == "=") keep_callee(args[0]);
  }

 private:
  void keep_callee(Value signature) {
    const Symbol* head = nullptr;
    std::vector<Value> args;
    if (!signature.defined() || signature.type != runtime_.types.builtin().expr || is_below(stack_limit_)) return;
    if (!Reader::parts_of(runtime_, ctx_, signature, head, args) || args.empty()) return;
    if (head->name == "where" || head->name == "::") return keep_callee(args[0]);
    if (head->name == "call" && args[0].defined() && args[0].type == runtime_.types.builtin().symbol)
      keep_name(args[0]);
  }

  void add(const Symbol* symbol) {
    if (symbol->name.empty() || hygiene_.renamed.count(symbol) != 0) return;
    hygiene_.renamed[symbol] = symbol->name + "#" + std::to_string(++state_of(runtime_).hygienic);
  }

  // A target of assignment, a parameter list or a signature.
  void introduce(Value v) {
    const auto& builtin = runtime_.types.builtin();
    if (!v.defined() || is_below(stack_limit_)) return;
    if (v.type == builtin.symbol) return add(v.symbol);
    if (v.type != builtin.expr || !introduced_.insert(v.object).second) return;
    const Symbol* head = nullptr;
    std::vector<Value> args;
    if (!Reader::parts_of(runtime_, ctx_, v, head, args) || args.empty()) return;
    const std::string& name = head->name;
    if (name == "parameters") {
      // Keywords keep their names: callers write them.
      for (const Value& arg : args) keep_name(arg);
    } else if (name == "tuple" || name == "block" || name == "local") {
      for (const Value& arg : args) introduce(arg);
    } else if (name == "::" || name == "=" || name == "kw" || name == "..." || name == "where" || name == "<:") {
      if (name == "::" && args.size() == 1) return;
      introduce(args[0]);
      if (name == "where")
        for (std::size_t i = 1; i < args.size(); ++i) introduce(args[i]);
    } else if (name == "macrocall" && args.size() > 2) {  // f(@nospecialize(x)) = …
      introduce(args.back());
    } else if (name == "call") {
      introduce(args[0]);
      for (std::size_t i = 1; i < args.size(); ++i) introduce(args[i]);
    }
  }
  // Those of a macro, whose name stays.
  void introduce_parameters(Value signature) {
    const Symbol* head = nullptr;
    std::vector<Value> args;
    if (!signature.defined() || signature.type != runtime_.types.builtin().expr) return;
    if (!Reader::parts_of(runtime_, ctx_, signature, head, args)) return;
    if (head->name == "where" && !args.empty()) return introduce_parameters(args[0]);
    if (head->name != "call") return;
    for (std::size_t i = 1; i < args.size(); ++i) introduce(args[i]);
  }
  // So do types, and their parameters: Name, Name{A, B <: C} <: Super.
  void keep_type_names(Value v) {
    const Symbol* head = nullptr;
    std::vector<Value> args;
    const bool is_expr = v.defined() && v.type == runtime_.types.builtin().expr;
    if (!is_expr) return keep_name(v);
    if (!Reader::parts_of(runtime_, ctx_, v, head, args) || args.empty()) return;
    if (head->name == "<:") return keep_type_names(args[0]);
    if (head->name != "curly") return;
    for (const Value& arg : args) keep_name(arg);
  }
  // Fields keep their names too: whoever uses the type writes them.
  void keep_fields(Value body) {
    const Symbol* head = nullptr;
    std::vector<Value> lines;
    if (!body.defined() || body.type != runtime_.types.builtin().expr) return;
    if (!Reader::parts_of(runtime_, ctx_, body, head, lines) || head->name != "block") return;
    for (const Value& line : lines) {
      std::vector<Value> args;
      if (!line.defined()) continue;
      if (line.type == runtime_.types.builtin().symbol) keep_name(line);
      if (line.type != runtime_.types.builtin().expr || !Reader::parts_of(runtime_, ctx_, line, head, args)) continue;
      if (head->name == "::" || head->name == "const") keep_name(line);
    }
  }
  void keep_name(Value v) {
    const auto& builtin = runtime_.types.builtin();
    if (v.defined() && v.type == builtin.symbol) {
      hygiene_.renamed.emplace(v.symbol, v.symbol->name);
      return;
    }
    if (!v.defined() || v.type != builtin.expr || is_below(stack_limit_)) return;
    const Symbol* head = nullptr;
    std::vector<Value> args;
    if (Reader::parts_of(runtime_, ctx_, v, head, args) && !args.empty() && head->name != "escape") keep_name(args[0]);
  }

  Runtime& runtime_;
  Context& ctx_;
  Hygiene& hygiene_;
  std::unordered_set<const Object*> walked_, introduced_;  // nothing is allocated or moved meanwhile
  const char* stack_limit_ = recursion_limit(2);
};

}  // namespace

NodeId from_value(Runtime& runtime, Context& ctx, Ast& ast, Span span, Value v, Hygiene* hygiene, std::string& error) {
  const NodeId made = Reader(runtime, ctx, ast, span, hygiene, error).read(v);
  return error.empty() ? made : no_node;
}

NodeId from_printed(Runtime& runtime, Context& ctx, Ast& ast, Value v, std::string& error) {
  const NodeId made = Reader(runtime, ctx, ast, {}, nullptr, error, /*shows_malformed=*/true).read(v);
  return error.empty() ? made : no_node;
}

void collect_introduced(Runtime& runtime, Context& ctx, Value v, Hygiene& hygiene, bool at_home) {
  Collector collector(runtime, ctx, hygiene);
  if (at_home) collector.keep_defined(v);
  collector.walk(v);
}

}  // namespace slope::lower
