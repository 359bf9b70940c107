// Reads IR text (docs/ir.md), line by line. Instructions may have any numbers; the reader assigns new ones in the order
// of the text.
#include <charconv>
#include <deque>
#include <unordered_map>

#include "lang/ir/execute/execute.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/ir/text_cursor.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::ir {

namespace {

// A comment begins with " ;" outside of quotes.
std::string_view without_comment(std::string_view line) {
  bool in_quotes = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && in_quotes) {
      ++i;
    } else if (line[i] == '"') {
      in_quotes = !in_quotes;
    } else if (line[i] == ';' && !in_quotes && (i == 0 || line[i - 1] == ' ')) {
      return line.substr(0, i);
    }
  }
  return line;
}

class Reader {
 public:
  Reader(Runtime& runtime, std::string& error) : runtime_(runtime), error_(error), constants_(runtime.heap) {}

  std::unique_ptr<Function> run(std::string_view text) {
    function_ = std::make_unique<Function>();
    function_->scopes.push_back({nullptr, ~0u, {}});
    error_.clear();
    std::size_t number = 0;
    while (!text.empty()) {
      std::size_t end = text.find('\n');
      std::string_view line = without_comment(text.substr(0, end));
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
      ++number;
      TextCursor cursor(line);
      if (cursor.at_end()) continue;
      if (!read_line(cursor)) {
        if (error_.empty()) error_ = "can't read this";
        error_ = "line " + std::to_string(number) + ": " + error_;
        return nullptr;
      }
    }
    for (const auto& [label, id] : numbers_)
      if (function_->insts[id].block == no_block) {
        error_ = "%" + std::to_string(label) + " is used but not defined";
        return nullptr;
      }
    if (typed_by_types_) function_->typed = true;
    compact(*function_);
    return std::move(function_);
  }

 private:
  bool fail(const std::string& what) {
    if (error_.empty()) error_ = what;
    return false;
  }

  bool read_line(TextCursor& cursor) {
    if (cursor.take_word("function")) return read_head(cursor);
    if (cursor.take_word("slots")) return read_slots(cursor);
    if (cursor.peek() == 'b' && std::isdigit(static_cast<unsigned char>(cursor.peek(1)))) return read_block(cursor);
    if (block_ == no_block) return fail("an instruction before the first block");
    return read_inst(cursor) && (cursor.at_end() || fail("unexpected \"" + std::string(cursor.rest()) + "\""));
  }

  bool read_head(TextCursor& cursor) {
    if (!cursor.name(function_->name)) return fail("expected the function's name");
    if (cursor.take_word("typed")) typed_by_types_ = true;
    if (!cursor.take("::")) return true;
    function_->return_type = read_type(runtime_, cursor, error_);
    return function_->return_type;
  }

  bool read_slots(TextCursor& cursor) {
    do {
      std::string name;
      if (!cursor.name(name)) return fail("expected a slot's name");
      function_->slots.push_back(runtime_.symbol(name));
      if (!cursor.take(":")) continue;
      const Type* type = read_type(runtime_, cursor, error_);
      if (!type) return false;
      function_->slot_types.push_back(type);
    } while (cursor.take(","));
    return true;
  }

  bool block_id(TextCursor& cursor, BlockId& out) {
    std::uint64_t n = 0;
    if (!cursor.take("b") || !cursor.unsigned_number(n) || n > 1'000'000) return fail("expected a block");
    out = static_cast<BlockId>(n);
    if (function_->blocks.size() <= out) function_->blocks.resize(out + 1);
    return true;
  }

  bool inst_id(TextCursor& cursor, std::uint32_t& out) {
    std::uint64_t n = 0;
    if (!cursor.take("%") || !cursor.unsigned_number(n)) return fail("expected an instruction's number");
    auto [it, is_new] = numbers_.try_emplace(n, static_cast<std::uint32_t>(function_->insts.size()));
    if (is_new) function_->insts.emplace_back();
    out = it->second;
    return true;
  }

  bool define(TextCursor& cursor, std::uint32_t& id) {
    if (!inst_id(cursor, id)) return false;
    if (function_->insts[id].block != no_block) return fail("defined twice");
    function_->insts[id].block = block_;
    return true;
  }

  bool read_block(TextCursor& cursor) {
    if (!block_id(cursor, block_)) return false;
    if (cursor.take("(")) {
      do {
        std::uint32_t id = 0;
        if (!define(cursor, id)) return false;
        function_->insts[id].op = Op::parameter;
        function_->blocks[block_].parameters.push_back(id);
        if (cursor.take(":")) {
          const Type* type = read_type(runtime_, cursor, error_);
          if (!type) return false;
          function_->insts[id].type = type;
          typed_by_types_ = true;
        }
      } while (cursor.take(","));
      if (!cursor.take(")")) return fail("expected ) after the parameters");
    }
    if (cursor.take_word("loop")) function_->blocks[block_].is_loop_header = true;
    if (cursor.take_word("handler")) {
      BlockId handler = no_block;
      if (!block_id(cursor, handler)) return false;
      function_->blocks[block_].handler = handler;
    }
    return cursor.take(":") || fail("expected : after the block's head");
  }

  bool read_inst(TextCursor& cursor) {
    std::uint32_t id = 0;
    bool has_result = cursor.peek() == '%';
    if (has_result) {
      if (!define(cursor, id)) return false;
      if (!cursor.take("=")) return fail("expected =");
    } else {
      id = static_cast<std::uint32_t>(function_->insts.size());
      function_->insts.emplace_back();
      function_->insts[id].block = block_;
    }
    std::string name;
    Op op = Op::unreachable;
    if (!cursor.name(name) || !op_from_name(name, op)) return fail("no operation " + name);
    if (has_result == is_terminator(op)) return fail(name + (has_result ? " has no result" : " needs a result"));
    function_->insts[id].op = op;
    if (!read_flags(cursor, function_->insts[id].flags)) return false;
    std::uintptr_t aux = 0;
    if (aux_kind(op) != AuxKind::none && !read_aux(cursor, op, aux)) return false;
    function_->insts[id].aux = aux;
    std::vector<Operand> operands;
    if (!at_tail(cursor) && !read_operands(cursor, operands)) return false;
    function_->insts[id].operands = std::move(operands);
    if (is_terminator(op)) {
      function_->blocks[block_].terminator = id;
      return read_edges(cursor);
    }
    function_->blocks[block_].insts.push_back(id);
    if (!cursor.take("::")) return true;
    const Type* type = read_type(runtime_, cursor, error_);
    function_->insts[id].type = type;
    typed_by_types_ = true;
    return type;
  }

  bool at_tail(TextCursor& cursor) {
    if (cursor.at_end() || cursor.rest().starts_with("::")) return true;
    return cursor.peek() == 'b' && std::isdigit(static_cast<unsigned char>(cursor.peek(1)));
  }

  bool read_flags(TextCursor& cursor, std::uint16_t& flags) {
    static constexpr std::pair<std::string_view, InstFlags> names[] = {
        {"nothrow", inst_nothrow},         {"inbounds", inst_inbounds}, {"fast", inst_fast},
        {"reassociate", inst_reassociate}, {"pure", inst_effect_free},  {"boundscheck", inst_boundscheck}};
    while (cursor.peek() == '.') {
      cursor.take(".");
      std::string name;
      cursor.name(name);
      bool known = false;
      for (auto [text, flag] : names) {
        if (text != name) continue;
        flags |= flag;
        known = true;
      }
      if (!known) return fail("no flag " + name);
    }
    return true;
  }

  bool read_operands(TextCursor& cursor, std::vector<Operand>& operands) {
    do {
      Operand o;
      if (!read_operand(cursor, o)) return false;
      operands.push_back(o);
    } while (cursor.take(","));
    return true;
  }

  bool read_operand(TextCursor& cursor, Operand& o) {
    cursor.skip_spaces();
    if (cursor.peek() == '%') {
      std::uint32_t id = 0;
      if (!inst_id(cursor, id)) return false;
      o = Operand::inst(id);
      return true;
    }
    Value v;
    if (!read_constant(cursor, v)) return false;
    constants_.values.push_back(v);  // until the function is rooted by its owner
    o = function_->constant(v);
    return true;
  }

  bool read_edges(TextCursor& cursor) {
    while (!cursor.at_end()) {
      Edge edge;
      if (!block_id(cursor, edge.target)) return false;
      if (cursor.take("(")) {
        if (!read_operands(cursor, edge.arguments)) return false;
        if (!cursor.take(")")) return fail("expected ) after the arguments");
      }
      function_->blocks[block_].edges.push_back(std::move(edge));
    }
    return true;
  }

  // --- aux ---

  bool qualified(TextCursor& cursor, Module*& module, const Symbol*& symbol) {
    std::string first, second;
    if (!cursor.name(first)) return fail("expected a name");
    if (!cursor.take(".")) {
      module = runtime_.main;
      symbol = runtime_.symbol(first);
      return true;
    }
    if (!cursor.name(second)) return fail("expected a name after .");
    Value v = read_global(runtime_, first);
    if (v.type != runtime_.types.builtin().module) return fail("no module " + first);
    module = v.module;
    symbol = runtime_.symbol(second);
    return true;
  }

  bool read_aux(TextCursor& cursor, Op op, std::uintptr_t& aux) {
    if (!cursor.take("<")) return fail("expected <…>");
    if (!read_aux_content(cursor, op, aux)) return false;
    return cursor.take(">") || fail("expected >");
  }

  bool read_aux_content(TextCursor& cursor, Op op, std::uintptr_t& aux) {
    std::string name;
    Module* module = nullptr;
    const Symbol* symbol = nullptr;
    std::uint64_t number = 0;
    switch (aux_kind(op)) {
      case AuxKind::slot:
        if (!cursor.name(name)) return fail("expected the slot's name");
        [[fallthrough]];
      case AuxKind::index:
        if (!cursor.unsigned_number(number)) return fail("expected a number");
        aux = number;
        return true;
      case AuxKind::binding:
        if (!qualified(cursor, module, symbol)) return false;
        aux = reinterpret_cast<std::uintptr_t>(runtime_.binding(module, symbol));
        return true;
      case AuxKind::symbol:
        if (!cursor.take(":") || !cursor.name(name)) return fail("expected a symbol");
        aux = reinterpret_cast<std::uintptr_t>(runtime_.symbol(name));
        return true;
      case AuxKind::type_name: {
        if (!qualified(cursor, module, symbol)) return false;
        for (TypeName* candidate : runtime_.types.names())
          if (candidate->module == module && candidate->name == symbol)
            aux = reinterpret_cast<std::uintptr_t>(candidate);
        return aux || fail("no type " + symbol->name);
      }
      case AuxKind::native: {
        if (!cursor.name(name)) return fail("expected a native's name");
        const NativeInfo* info = as_builtin_native(runtime_.types.builtin(), read_global(runtime_, name));
        aux = reinterpret_cast<std::uintptr_t>(info);
        return info || fail("no native " + name);
      }
      case AuxKind::specialization: {
        const DataType* types = as_data(read_type(runtime_, cursor, error_));
        if (!types || !types->is_tuple) return fail("expected a tuple of argument types");
        Lookup found = runtime_.lookup(types, runtime_.world());
        if (!found.method) return fail("no method for " + to_string(types));
        aux = reinterpret_cast<std::uintptr_t>(runtime_.specialize(found.method, types, found.static_params));
        return true;
      }
      case AuxKind::none:
      case AuxKind::tape_layout:
        break;
    }
    return fail("this operation can't be read from text");
  }

  // --- constants ---

  bool read_constant(TextCursor& cursor, Value& v) {
    cursor.skip_spaces();
    char c = cursor.peek();
    if (c == '"') {
      std::string text;
      if (!cursor.quoted(text)) return fail("a string is not closed");
      v = runtime_.from_string(text);
      return true;
    }
    if (c == ':') {
      cursor.take(":");
      std::string name;
      if (!cursor.name(name)) return fail("expected a symbol");
      v = runtime_.from_symbol(runtime_.symbol(name));
      return true;
    }
    if (c == '@') return read_function(cursor, v);
    if (c == '(') return read_tuple(cursor, v);
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '-') return read_number(cursor, v);
    return read_word(cursor, v);
  }

  bool read_function(TextCursor& cursor, Value& v) {
    cursor.take("@");
    std::string path, name;
    if (!cursor.name(path)) return fail("expected a function's name");
    while (cursor.peek() == '.') {
      cursor.take(".");
      if (!cursor.name(name)) return fail("expected a name after .");
      path += "." + name;
    }
    v = read_global(runtime_, path);
    return v.defined() || fail("no function " + path);
  }

  bool read_elements(TextCursor& cursor, std::vector<Value>& elements) {
    while (!cursor.take(")")) {
      Value v;
      if (!read_constant(cursor, v)) return false;
      constants_.values.push_back(v);
      elements.push_back(v);
      if (!cursor.take(",") && cursor.peek() != ')') return fail("expected ) or ,");
    }
    return true;
  }

  bool read_tuple(TextCursor& cursor, Value& v) {
    cursor.take("(");
    std::vector<Value> elements;
    if (!read_elements(cursor, elements)) return false;
    return runtime_.new_tuple(runtime_.context, elements.data(), elements.size(), v) || out_of_memory();
  }

  bool out_of_memory() {
    Value error = runtime_.context.take_error();
    return fail("can't make this constant: " + to_string(error.type));
  }

  bool read_number(TextCursor& cursor, Value& v) {
    bool negative_infinity = cursor.rest().starts_with("-Inf");
    if (negative_infinity) {
      cursor.take("-Inf");
      bool single = cursor.take("32");
      return float_value(-__builtin_inf(), single, v);
    }
    std::string_view rest = cursor.rest();
    const char* begin = rest.data();
    const char* end = begin + rest.size();
    double x = 0;
    const char* stop = std::from_chars(begin, end, x).ptr;
    std::string_view digits(begin, static_cast<std::size_t>(stop - begin));
    if (digits.empty()) return fail("can't read a number");
    cursor.set_position(cursor.position() + digits.size());
    if (digits.find_first_of(".e") == std::string_view::npos && !cursor.rest().starts_with("f0")) {
      std::int64_t n = 0;
      if (std::from_chars(begin, stop, n).ec != std::errc()) return fail("the number is too large");
      v = runtime_.from_int(n);
      return true;
    }
    bool single = cursor.take("f0");
    if (single) {
      float y = 0;
      std::from_chars(begin, stop, y);
      return float_value(y, true, v);
    }
    return float_value(x, false, v);
  }

  bool float_value(double x, bool single, Value& v) {
    if (single) {
      v = Value(runtime_.types.builtin().float32, std::int64_t{std::bit_cast<std::uint32_t>(static_cast<float>(x))});
    } else {
      v = runtime_.from_float(x);
    }
    return true;
  }

  bool read_word(TextCursor& cursor, Value& v) {
    if (cursor.take_word("undef")) return true;
    if (cursor.take_word("nothing")) return give(v, runtime_.nothing());
    if (cursor.take_word("true")) return give(v, runtime_.from_bool(true));
    if (cursor.take_word("false")) return give(v, runtime_.from_bool(false));
    if (cursor.take_word("Inf32")) return float_value(__builtin_inf(), true, v);
    if (cursor.take_word("Inf")) return float_value(__builtin_inf(), false, v);
    if (cursor.take("object(")) return fail("an object with an identity can't be read from text");
    if (cursor.take("module(")) {
      std::string name;
      if (!cursor.name(name) || !cursor.take(")")) return fail("expected a module's name");
      return give(v, read_global(runtime_, name)) && (v.defined() || fail("no module " + name));
    }
    if (cursor.take("instance(")) {
      const DataType* type = as_data(read_type(runtime_, cursor, error_));
      if (!type || type->storage != Storage::singleton || !cursor.take(")")) return fail("expected a singleton type");
      return give(v, type->instance);
    }
    if (cursor.take("new(")) return read_struct(cursor, v);
    if (cursor.take("Type{")) {
      const Type* type = read_type(runtime_, cursor, error_);
      if (!type || !cursor.take("}")) return fail("expected a type and }");
      return give(v, runtime_.from_type(type));
    }
    return read_bits(cursor, v);
  }

  static bool give(Value& v, Value from) {
    v = from;
    return true;
  }

  bool read_struct(TextCursor& cursor, Value& v) {
    const DataType* type = as_data(read_type(runtime_, cursor, error_));
    if (!type || !type->is_concrete) return fail("expected a concrete type");
    std::vector<Value> fields;
    cursor.take(",");
    if (!read_elements(cursor, fields)) return false;
    return runtime_.new_object(runtime_.context, type, fields.data(), fields.size(), v) || out_of_memory();
  }

  // Int32(-5), Char(0x61000000): any primitive type around its number or bits.
  bool read_bits(TextCursor& cursor, Value& v) {
    const DataType* type = as_data(read_type(runtime_, cursor, error_));
    if (!type || type->storage != Storage::bits) return fail("expected a constant");
    if (!cursor.take("(")) return fail("expected (");
    bool hexadecimal = cursor.take("0x");
    std::string_view rest = cursor.rest();
    std::uint64_t bits = 0;
    std::int64_t n = 0;
    const char* end = rest.data() + rest.size();
    auto result = hexadecimal ? std::from_chars(rest.data(), end, bits, 16) : std::from_chars(rest.data(), end, n);
    if (result.ec != std::errc()) return fail("expected a number");
    if (!hexadecimal) bits = static_cast<std::uint64_t>(n);
    if (type->size < 8) bits &= (std::uint64_t{1} << (8 * type->size)) - 1;
    cursor.set_position(cursor.position() + static_cast<std::size_t>(result.ptr - rest.data()));
    v = Value(type, static_cast<std::int64_t>(bits));
    return cursor.take(")") || fail("expected )");
  }

  Runtime& runtime_;
  std::string& error_;
  std::unique_ptr<Function> function_;
  Rooted constants_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
  BlockId block_ = no_block;
  bool typed_by_types_ = false;
};

}  // namespace

std::unique_ptr<Function> read(Runtime& runtime, std::string_view text, std::string& error) {
  return Reader(runtime, error).run(text);
}

}  // namespace slope::ir
