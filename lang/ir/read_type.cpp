// Reads types. `where` comes after the type that uses its variables, so the text is first read into a tree.
#include <charconv>
#include <memory>
#include <vector>

#include "lang/ir/text_cursor.hpp"

namespace slope::ir {

namespace {

struct Node {
  enum class Kind { name, apply, type_of, named_tuple, value, symbol, list, where, anonymous } kind = Kind::name;
  std::string text;  // of a name (with dots), a symbol, a named tuple's field names (separated by spaces)
  Value value;
  std::vector<std::unique_ptr<Node>> parts;  // of apply: the head first; of where: the body, then the variables
  std::unique_ptr<Node> lower, upper;        // bounds, of a variable
};
using NodePtr = std::unique_ptr<Node>;

class TypeReader {
 public:
  TypeReader(Runtime& runtime, TextCursor& cursor, std::string& error)
      : runtime_(runtime), cursor_(cursor), error_(error) {}

  const Type* run() {
    NodePtr node = type();
    return node ? evaluate(*node) : nullptr;
  }

 private:
  NodePtr fail(const std::string& what) {
    if (error_.empty()) error_ = what;
    return nullptr;
  }
  static NodePtr make(Node::Kind kind) {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    return node;
  }

  NodePtr type() {
    NodePtr node = primary();
    while (node && cursor_.take_word("where")) {
      NodePtr outer = make(Node::Kind::where);
      outer->parts.push_back(std::move(node));
      bool braces = cursor_.take("{");
      do {
        NodePtr var = variable();
        if (!var) return nullptr;
        outer->parts.push_back(std::move(var));
      } while (braces && cursor_.take(","));
      if (braces && !cursor_.take("}")) return fail("expected } after where");
      node = std::move(outer);
    }
    return node;
  }

  // T, T<:U, L<:T<:U, T>:L
  NodePtr variable() {
    NodePtr first = primary();
    if (!first) return nullptr;
    if (cursor_.take(">:")) {
      first->lower = primary();
      return first->lower ? std::move(first) : nullptr;
    }
    if (!cursor_.take("<:")) return first;
    NodePtr second = primary();
    if (!second) return nullptr;
    if (!cursor_.take("<:")) {
      first->upper = std::move(second);
      return first;
    }
    second->lower = std::move(first);
    second->upper = primary();
    return second->upper ? std::move(second) : nullptr;
  }

  bool plain_name(std::string& out) {
    cursor_.skip_spaces();
    if (cursor_.rest().starts_with("var\"")) cursor_.take("var");
    return cursor_.name(out);
  }

  NodePtr primary() {
    cursor_.skip_spaces();
    char c = cursor_.peek();
    if (cursor_.take("typeof(")) return function_type();
    if (cursor_.take("@NamedTuple{")) return named_tuple();
    if (c == ':') return symbol();
    if (cursor_.take("Symbol(")) {
      NodePtr node = make(Node::Kind::symbol);
      if (!cursor_.quoted(node->text) || !cursor_.take(")")) return fail("a symbol is not closed");
      return node;
    }
    if (c == '(') return value_tuple();
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '-') return number();
    std::string name;
    if (!plain_name(name)) return fail("expected a type at \"" + std::string(cursor_.rest().substr(0, 20)) + "\"");
    NodePtr node = make(Node::Kind::name);
    node->text = name;
    while (cursor_.peek() == '.') {
      cursor_.take(".");
      if (!plain_name(name)) return fail("expected a name after .");
      node->text += "." + name;
    }
    if (name == "true" || name == "false") {
      node->kind = Node::Kind::value;
      node->value = runtime_.from_bool(name == "true");
      return node;
    }
    return cursor_.peek() == '{' ? application(std::move(node)) : std::move(node);
  }

  NodePtr application(NodePtr head) {
    NodePtr node = make(Node::Kind::apply);
    node->parts.push_back(std::move(head));
    cursor_.take("{");
    if (cursor_.take("}")) return node;
    do {
      NodePtr part;
      if (cursor_.take("<:")) {
        part = make(Node::Kind::anonymous);
        part->upper = type();
        if (!part->upper) return nullptr;
      } else if (cursor_.take(">:")) {
        part = make(Node::Kind::anonymous);
        part->lower = type();
        if (!part->lower) return nullptr;
      } else {
        part = type();
      }
      if (!part) return nullptr;
      node->parts.push_back(std::move(part));
    } while (cursor_.take(","));
    return cursor_.take("}") ? std::move(node) : fail("expected } after type parameters");
  }

  NodePtr function_type() {
    NodePtr node = make(Node::Kind::type_of);
    std::string name;
    while (cursor_.peek() && cursor_.peek() != ')') {
      if (plain_name(name)) {
        node->text += name;
      } else {
        node->text += cursor_.peek();
        cursor_.set_position(cursor_.position() + 1);
      }
    }
    return cursor_.take(")") ? std::move(node) : fail("typeof( is not closed");
  }

  NodePtr named_tuple() {
    NodePtr node = make(Node::Kind::named_tuple);
    if (cursor_.take("}")) return node;
    do {
      std::string name;
      if (!plain_name(name)) return fail("expected a field name");
      node->text += name + " ";
      NodePtr part = make(Node::Kind::name);
      part->text = "Any";
      if (cursor_.take("::")) part = type();
      if (!part) return nullptr;
      node->parts.push_back(std::move(part));
    } while (cursor_.take(","));
    return cursor_.take("}") ? std::move(node) : fail("expected } after field names");
  }

  NodePtr symbol() {
    cursor_.take(":");
    NodePtr node = make(Node::Kind::symbol);
    if (plain_name(node->text)) return node;
    while (std::string_view("+-*/\\^<>=!~|&%:$").find(cursor_.peek()) != std::string_view::npos && cursor_.peek()) {
      node->text += cursor_.peek();
      cursor_.set_position(cursor_.position() + 1);
    }
    return node->text.empty() ? fail("expected a symbol") : std::move(node);
  }

  NodePtr value_tuple() {
    cursor_.take("(");
    NodePtr node = make(Node::Kind::list);
    while (!cursor_.take(")")) {
      NodePtr part = primary();
      if (!part) return nullptr;
      node->parts.push_back(std::move(part));
      if (!cursor_.take(",") && cursor_.peek() != ')') return fail("expected ) after a tuple of parameters");
    }
    return node;
  }

  NodePtr number() {
    NodePtr node = make(Node::Kind::value);
    std::string_view rest = cursor_.rest();
    std::size_t end = rest.find_first_not_of("-+0123456789.ex");
    std::string_view digits = rest.substr(0, end);
    std::int64_t whole = 0;
    auto [stop, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
    if (problem == std::errc() && stop == digits.data() + digits.size()) {
      node->value = runtime_.from_int(whole);
    } else if (double x = 0;
               std::from_chars(digits.data(), digits.data() + digits.size(), x).ptr == digits.data() + digits.size()) {
      node->value = runtime_.from_float(x);
    } else {
      return fail("can't read the number " + std::string(digits));
    }
    cursor_.set_position(cursor_.position() + digits.size());
    return node;
  }

  // --- evaluation ---

  const Type* fail_type(const std::string& what) {
    if (error_.empty()) error_ = what;
    return nullptr;
  }

  Value value_of(const Node& node) {
    if (node.kind == Node::Kind::symbol) return runtime_.from_symbol(runtime_.symbol(node.text));
    if (node.kind == Node::Kind::value) return node.value;
    std::vector<Value> elements;
    for (const NodePtr& part : node.parts) elements.push_back(value_of(*part));
    Value tuple;
    if (!runtime_.new_tuple(runtime_.context, elements.data(), elements.size(), tuple)) runtime_.context.take_error();
    return tuple;
  }

  const Type* evaluate(const Node& node) {
    switch (node.kind) {
      case Node::Kind::value:
      case Node::Kind::symbol:
      case Node::Kind::list:
        return runtime_.types.value(value_of(node));
      case Node::Kind::name:
        return named(node.text);
      case Node::Kind::type_of: {
        Value function = read_global(runtime_, node.text);
        return function.defined() ? function.type : fail_type("no function " + node.text);
      }
      case Node::Kind::named_tuple: {
        std::vector<const Symbol*> names;
        std::vector<const Type*> types;
        std::size_t begin = 0;
        for (const NodePtr& part : node.parts) {
          std::size_t end = node.text.find(' ', begin);
          names.push_back(runtime_.symbol(node.text.substr(begin, end - begin)));
          begin = end + 1;
          types.push_back(evaluate(*part));
          if (!types.back()) return nullptr;
        }
        return runtime_.types.named_tuple(names, runtime_.types.tuple(types));
      }
      case Node::Kind::where:
        return evaluate_where(node);
      case Node::Kind::apply:
        return evaluate_application(node);
      default:
        return fail_type("a bound may only stand among type parameters");
    }
  }

  const Type* named(const std::string& name) {
    for (std::size_t i = scope_.size(); i-- > 0;)
      if (scope_[i]->name->name == name) return scope_[i];
    Value v = read_global(runtime_, name);
    if (v.defined() && (v.type->is_kind || v.type == runtime_.types.builtin().type_of_vararg)) return v.as_type;
    return fail_type("no type " + name);
  }

  const TypeVar* make_variable(const std::string& name, const Node& bounds) {
    const Type* lower = bounds.lower ? evaluate(*bounds.lower) : runtime_.types.builtin().bottom;
    const Type* upper = bounds.upper ? evaluate(*bounds.upper) : runtime_.types.builtin().any;
    return lower && upper ? runtime_.types.var(runtime_.symbol(name), lower, upper) : nullptr;
  }

  const Type* evaluate_where(const Node& node) {
    std::size_t outer = scope_.size();
    for (std::size_t i = 1; i < node.parts.size(); ++i) {
      const TypeVar* var = make_variable(node.parts[i]->text, *node.parts[i]);
      if (!var) return nullptr;
      scope_.push_back(var);
    }
    const Type* body = evaluate(*node.parts[0]);
    while (body && scope_.size() > outer) {
      body = runtime_.types.union_all(scope_.back(), body);
      scope_.pop_back();
    }
    scope_.resize(outer);
    return body;
  }

  const Type* evaluate_application(const Node& node) {
    std::vector<const Type*> params;
    std::vector<const TypeVar*> anonymous;
    for (std::size_t i = 1; i < node.parts.size(); ++i) {
      if (node.parts[i]->kind == Node::Kind::anonymous) {
        anonymous.push_back(make_variable("#s" + std::to_string(i), *node.parts[i]));
        params.push_back(anonymous.back());
      } else {
        params.push_back(evaluate(*node.parts[i]));
      }
      if (!params.back()) return nullptr;
    }
    const Type* head = nullptr;
    if (node.parts[0]->text == "Union") {
      head = runtime_.types.builtin().union_;
      if (params.empty()) return runtime_.types.builtin().bottom;
    } else {
      head = evaluate(*node.parts[0]);
    }
    if (!head) return nullptr;
    std::string problem;
    if (params.empty() && head == runtime_.types.builtin().tuple_any) return runtime_.types.tuple({});
    const Type* result = runtime_.types.apply_wrapper(head, params, &problem);
    if (!result) return fail_type(problem);
    for (std::size_t i = anonymous.size(); i-- > 0;) result = runtime_.types.union_all(anonymous[i], result);
    return result;
  }

  Runtime& runtime_;
  TextCursor& cursor_;
  std::string& error_;
  std::vector<const TypeVar*> scope_;
};

}  // namespace

Value read_global(Runtime& runtime, const std::string& name) {
  Module* module = nullptr;
  std::string_view left = name;
  for (;;) {
    // An operator may itself hold dots.
    std::size_t dot = left.find('.');
    bool path = dot != std::string_view::npos && dot > 0 && dot + 1 < left.size();
    const Symbol* symbol = runtime.symbol(path ? left.substr(0, dot) : left);
    Binding* binding = nullptr;
    for (Module* from : {module, runtime.main, runtime.base, runtime.core}) {
      if (!from || (module && from != module)) continue;
      binding = runtime.resolve(from, symbol);
      if (binding && binding->value.defined()) break;
    }
    if (!binding || !binding->value.defined()) return Value();
    if (!path) return binding->value;
    if (binding->value.type != runtime.types.builtin().module) return Value();
    module = binding->value.module;
    left.remove_prefix(dot + 1);
  }
}

const Type* read_type(Runtime& runtime, TextCursor& cursor, std::string& error) {
  return TypeReader(runtime, cursor, error).run();
}

}  // namespace slope::ir
