// IR as text; the form is described in docs/ir.md and read back by read.cpp.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "lang/ir/passes/passes.hpp"
#include "lang/memory/tape.hpp"
#include "lang/types/module.hpp"
#include "lang/types/object.hpp"
#include "lang/types/symbol.hpp"

namespace slope::ir {

namespace {

std::string hexadecimal(std::uint64_t bits) {
  char buffer[20];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, bits, 16).ptr;
  return "0x" + std::string(buffer, end);
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 32 || c == 127) {
      constexpr char digits[] = "0123456789abcdef";
      out += "\\x";
      out += digits[static_cast<unsigned char>(c) >> 4];
      out += digits[c & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

bool is_plain_name(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '!' ||
           c >= 128;
  });
}

std::string name_text(const Symbol* symbol) {
  if (!symbol) return "_";  // a slot that a pass made
  return is_plain_name(symbol->name) ? symbol->name : quoted(symbol->name);
}

std::string qualified(const Module* module, const Symbol* name) {
  return module ? name_text(module->name) + "." + name_text(name) : name_text(name);
}

// Of a float whose bits are `bits`: shortest text that reads back, or empty when that would lose a NaN's payload.
template <class Float>
std::string float_text(Float x, std::string_view suffix) {
  if (std::isnan(x)) return "";
  if (std::isinf(x)) return (x < 0 ? "-Inf" : "Inf") + std::string(suffix.empty() ? "" : "32");
  char buffer[40];
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof buffer, x).ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + std::string(suffix);
}

std::string stored_text(const char* where, const Type* declared);

std::string fields_text(const DataType* type, const char* payload) {
  std::string out;
  for (const Field& field : type->fields) {
    if (!out.empty()) out += ", ";
    out += stored_text(payload + field.offset, field.type);
  }
  if (!type->is_tuple) return "new(" + to_string(type) + (out.empty() ? "" : ", ") + out + ")";
  return "(" + out + (type->fields.size() == 1 ? ",)" : ")");
}

std::string stored_text(const char* where, const Type* declared) {
  const DataType* type = as_data(declared);
  switch (storage_of(declared)) {
    case Storage::singleton:
      return constant_text(type->instance);
    case Storage::bits: {
      Value v(type, std::int64_t{0});
      std::memcpy(&v.bits, where, type->size);
      return constant_text(v);
    }
    case Storage::aggregate:
      return fields_text(type, where);
    case Storage::reference: {
      void* pointer;
      std::memcpy(&pointer, where, sizeof pointer);
      return pointer ? constant_text(Value(type, pointer)) : "undef";
    }
    case Storage::dynamic: {
      Value v;
      std::memcpy(static_cast<void*>(&v), where, sizeof v);
      return constant_text(v);
    }
  }
  return "";
}

std::string bits_text(const DataType* type, Value v) {
  const std::string& name = type->name->name->name;
  if (type->name->is_primitive && (!type->name->module || type->name->module->name->name == "Core")) {
    if (name == "Int64") return std::to_string(v.bits);
    if (name == "Bool") return v.bits ? "true" : "false";
    std::string text;
    if (name == "Float64") text = float_text(v.float64, "");
    if (name == "Float32") text = float_text(v.float32, "f0");
    if (!text.empty()) return text;
    if (name == "Int32" || name == "Int16" || name == "Int8") {
      int unused = 64 - 8 * static_cast<int>(type->size);
      return name + "(" +
             std::to_string(static_cast<std::int64_t>(static_cast<std::uint64_t>(v.bits) << unused) >> unused) + ")";
    }
  }
  return to_string(type) + "(" + hexadecimal(static_cast<std::uint64_t>(v.bits)) + ")";
}

// Malformed functions are printed too, with `?` for what is out of range: the verifier shows what it rejects.
class Printer {
 public:
  Printer(const Function& function, const SourceMap* sources, bool compact)
      : function_(function), sources_(sources), compact_(compact) {
    number_.resize(function.insts.size());
    std::uint32_t next = 0;
    for (std::uint32_t id = 0; id < function.insts.size(); ++id) number_[id] = id;
    if (!compact) return;
    for (const Block& block : function.blocks) {
      for (std::uint32_t id : block.parameters) number(id, next++);
      for (std::uint32_t id : block.insts) number(id, next++);
    }
  }

  std::string run() {
    if (!compact_) {
      out_ = "function " + (is_plain_name(function_.name) ? function_.name : quoted(function_.name));
      if (function_.typed) out_ += " typed";
      if (function_.return_type) out_ += " :: " + to_string(function_.return_type);
      out_ += '\n';
    }
    if (!function_.slots.empty()) {
      out_ += "slots";
      for (std::size_t i = 0; i < function_.slots.size(); ++i) {
        out_ += i ? ", " : " ";
        out_ += name_text(function_.slots[i]);
        if (i < function_.slot_types.size() && function_.slot_types[i])
          out_ += ": " + to_string(function_.slot_types[i]);
      }
      out_ += '\n';
    }
    for (BlockId b = 0; b < function_.blocks.size(); ++b) print_block(b);
    return std::move(out_);
  }

 private:
  void number(std::uint32_t id, std::uint32_t number) {
    if (id < number_.size()) number_[id] = number;
  }
  bool known(std::uint32_t id) const { return id < function_.insts.size(); }

  std::string text(Operand o) const {
    if (!o.valid()) return "invalid";
    if (!o.is_constant()) return "%" + std::to_string(o.index() < number_.size() ? number_[o.index()] : o.index());
    return o.index() < function_.constants.size() ? constant_text(function_.constants[o.index()]) : "invalid";
  }

  std::string list(std::span<const Operand> operands) const {
    std::string out;
    for (Operand o : operands) out += (out.empty() ? "" : ", ") + text(o);
    return out;
  }

  std::string edge_text(const Edge& edge) const {
    std::string out = " b" + std::to_string(edge.target);
    if (!edge.arguments.empty()) out += "(" + list(edge.arguments) + ")";
    return out;
  }

  std::string aux_text(const Inst& inst) const {
    switch (aux_kind(inst.op)) {
      case AuxKind::none:
        return "";
      case AuxKind::index:
        return std::to_string(inst.op == Op::tape_store || inst.op == Op::tape_load ? tape_column_of(inst.aux)
                                                                                    : inst.aux);
      case AuxKind::slot:
        return inst.aux < function_.slots.size() ? name_text(function_.slots[inst.aux]) + " " + std::to_string(inst.aux)
                                                 : "? " + std::to_string(inst.aux);
      default:
        return inst.aux ? reference_text(inst) : "null";
    }
  }

  std::string reference_text(const Inst& inst) const {
    switch (aux_kind(inst.op)) {
      case AuxKind::binding:
        return qualified(inst.aux_as<Binding>()->module, inst.aux_as<Binding>()->name);
      case AuxKind::symbol:
        return ":" + name_text(inst.aux_as<const Symbol>());
      case AuxKind::type_name:
        return qualified(inst.aux_as<TypeName>()->module, inst.aux_as<TypeName>()->name);
      case AuxKind::specialization:
        return to_string(inst.aux_as<Specialization>()->types);
      case AuxKind::native:
        return inst.aux_as<const NativeInfo>()->name;
      case AuxKind::tape_layout: {
        std::string out;
        for (const Type* column : inst.aux_as<const TapeLayout>()->columns)
          out += (out.empty() ? "" : ", ") + to_string(column);
        return out;
      }
      case AuxKind::none:
      case AuxKind::index:
      case AuxKind::slot:
        break;
    }
    return "";
  }

  std::string head(const Inst& inst) const {
    std::string out(op_name(inst.op));
    static constexpr std::pair<InstFlags, const char*> flags[] = {
        {inst_nothrow, ".nothrow"},         {inst_inbounds, ".inbounds"}, {inst_fast, ".fast"},
        {inst_reassociate, ".reassociate"}, {inst_effect_free, ".pure"},  {inst_boundscheck, ".boundscheck"}};
    for (auto [flag, name] : flags)
      if (inst.flags & flag) out += name;
    if (std::string aux = aux_text(inst); !aux.empty()) out += "<" + aux + ">";
    return out;
  }

  void print_parameters(const Block& block) {
    if (block.parameters.empty()) return;
    out_ += "(";
    for (std::size_t i = 0; i < block.parameters.size(); ++i) {
      std::uint32_t id = block.parameters[i];
      if (i) out_ += ", ";
      out_ += text(Operand::inst(id));
      if (known(id) && function_.insts[id].type) out_ += ": " + to_string(function_.insts[id].type);
    }
    out_ += ")";
  }

  void end_line(const Inst& inst) {
    if (sources_ && inst.span.file) {
      std::uint32_t line = sources_->line_of(inst.span);
      if (line != last_line_ || inst.span.file != last_file_)
        out_ += "  ; " + sources_->file(inst.span.file).name() + ":" + std::to_string(line);
      last_line_ = line;
      last_file_ = inst.span.file;
    }
    out_ += '\n';
  }

  void print_block(BlockId b) {
    const Block& block = function_.blocks[b];
    out_ += "b" + std::to_string(b);
    print_parameters(block);
    if (block.is_loop_header) out_ += " loop";
    if (block.handler != no_block) out_ += " handler b" + std::to_string(block.handler);
    out_ += ":\n";
    for (std::uint32_t id : block.insts) {
      if (!known(id)) {
        out_ += "  " + text(Operand::inst(id)) + " = ?\n";
        continue;
      }
      const Inst& inst = function_.insts[id];
      out_ += "  " + text(Operand::inst(id)) + " = " + head(inst);
      if (!inst.operands.empty()) out_ += " " + list(inst.operands);
      if (inst.type) out_ += " :: " + to_string(inst.type);
      end_line(inst);
    }
    if (!known(block.terminator)) return;
    const Inst& inst = function_.insts[block.terminator];
    out_ += "  " + head(inst);
    if (!inst.operands.empty()) out_ += " " + list(inst.operands);
    for (const Edge& edge : block.edges) out_ += edge_text(edge);
    end_line(inst);
  }

  const Function& function_;
  const SourceMap* sources_;
  bool compact_;
  std::vector<std::uint32_t> number_;
  std::uint32_t last_line_ = 0;
  FileId last_file_ = 0;
  std::string out_;
};

}  // namespace

std::string constant_text(Value v) {
  const DataType* type = as_data(v.type);
  if (!type) return "undef";
  const std::string& name = type->name->name->name;
  switch (type->storage) {
    case Storage::singleton:
      if (name == "Nothing") return "nothing";
      if (type->is_tuple) return "()";
      if (type->name->is_function) return "@" + qualified(type->name->module, type->name->name);
      return "instance(" + to_string(type) + ")";
    case Storage::bits:
      return bits_text(type, v);
    case Storage::aggregate:
      return fields_text(type, v.object->payload());
    default:
      break;
  }
  if (type->is_kind) return "Type{" + to_string(v.as_type) + "}";
  if (!v.pointer) return "undef";
  switch (type->object_kind) {
    case DataType::ObjectKind::string:
      return quoted(static_cast<const StringObject*>(v.object)->view());
    case DataType::ObjectKind::immortal:
      if (name == "Symbol") return ":" + name_text(v.symbol);
      if (name == "Module") return "module(" + name_text(v.module->name) + ")";
      break;
    case DataType::ObjectKind::fields:
      if (!type->is_mutable) return fields_text(type, v.object->payload());
      break;
    default:
      break;
  }
  return "object(" + to_string(type) + ")";  // has an identity that text can't give
}

std::string print(const Function& function, const SourceMap* sources) {
  return Printer(function, sources, false).run();
}

std::string print_compact(const Function& function) { return Printer(function, nullptr, true).run(); }

}  // namespace slope::ir
