// Reads types written as in Slope, so that tests of the type system can say what they mean.
#pragma once

#include <cctype>
#include <map>
#include <stdexcept>
#include <string>

#include "lang/types/subtype.hpp"
#include "lang/types/symbol.hpp"
#include "lang/types/type.hpp"

namespace slope::testing {

class TypeReader {
 public:
  TypeReader(SymbolTable& symbols, TypeTable& types) : symbols_(symbols), types_(types) {
    for (TypeName* name : types.names())
      if (!name->is_function) names_[name->name->name] = name->wrapper;
    const BuiltinTypes& b = types.builtin();
    names_["Int"] = b.int64;
    names_["Vector"] = b.vector;
    names_["Matrix"] = b.matrix;
    names_["Vararg"] = types.vararg(b.any, nullptr);
    for (int dims = 1; dims <= 2; ++dims) {
      const TypeVar* element = types.var(symbols.intern("T"), nullptr, nullptr);
      const Type* params[] = {element, types.value_int(dims)};
      names_[dims == 1 ? "AbstractVector" : "AbstractMatrix"] =
          types.union_all(element, types.apply(b.abstract_array_name, params));
    }
  }

  void define(const std::string& name, const Type* type) { names_[name] = type; }

  const Type* operator()(const std::string& text) {
    text_ = text;
    at_ = 0;
    const Type* type = expression();
    skip();
    if (at_ != text_.size()) fail("rest of text");
    return type;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + " at " + std::to_string(at_) + " of " + text_);
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool eat(const std::string& token) {
    skip();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  std::string word() {
    skip();
    std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // The variables stand behind the body that uses them: find ` where ` first.
  const Type* expression() {
    skip();
    std::size_t begin = at_, where = std::string::npos;
    int depth = 0;
    for (std::size_t i = at_; i < text_.size(); ++i) {
      char c = text_[i];
      if (c == '{' || c == '(') ++depth;
      if ((c == '}' || c == ')') && depth-- == 0) break;
      if (c == ',' && depth == 0) break;
      if (depth == 0 && text_.compare(i, 7, " where ") == 0) {
        where = i;
        break;
      }
    }
    if (where == std::string::npos) return atom();
    auto saved = names_;
    std::vector<const TypeVar*> vars;
    at_ = where + 7;
    auto bound = [&] {
      std::string name = word();
      const Type *lower = nullptr, *upper = nullptr;
      if (eat("<:")) {
        upper = atom();
      } else if (eat(">:")) {
        lower = atom();
      }
      vars.push_back(types_.var(symbols_.intern(name), lower, upper));
      names_[name] = vars.back();
    };
    if (eat("{")) {
      do bound();
      while (eat(","));
      if (!eat("}")) fail("} expected");
    } else {
      bound();
    }
    std::size_t end = at_;
    at_ = begin;
    const Type* body = atom();
    at_ = end;
    names_ = saved;
    for (std::size_t i = vars.size(); i-- > 0;) body = types_.union_all(vars[i], body);
    return body;
  }

  const Type* atom() {
    skip();
    if (eat("(")) {
      const Type* inner = expression();
      if (!eat(")")) fail(") expected");
      return inner;
    }
    if (eat(":")) {
      const Symbol* symbol = symbols_.intern(word());
      return types_.value(Value(types_.builtin().symbol, static_cast<const void*>(symbol)));
    }
    std::string name = word();
    if (name.empty()) fail("type expected");
    if (std::isdigit(static_cast<unsigned char>(name[0]))) return types_.value_int(std::stoll(name));
    std::vector<const Type*> params;
    bool braces = eat("{");
    if (braces && !eat("}")) {
      do params.push_back(expression());
      while (eat(","));
      if (!eat("}")) fail("} expected");
    }
    if (name == "Union") return types_.union_of(params);
    auto found = names_.find(name);
    if (found == names_.end()) fail("unknown name " + name);
    if (!braces) return found->second;
    std::string error;
    const Type* applied = types_.apply_wrapper(found->second, params, &error);
    if (!applied) fail(error);
    return applied;
  }

  SymbolTable& symbols_;
  TypeTable& types_;
  std::map<std::string, const Type*> names_;
  std::string text_;
  std::size_t at_ = 0;
};

struct TypeFixture {
  SymbolTable symbols;
  TypeTable types{symbols};
  const BuiltinTypes& b = types.builtin();
  TypeReader read{symbols, types};

  const Symbol* symbol(const char* name) { return symbols.intern(name); }
};

}  // namespace slope::testing
