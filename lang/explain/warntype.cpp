#include "lang/explain/warntype.hpp"

#include <algorithm>

#include "lang/infer/lattice.hpp"
#include "lang/ir/cfg.hpp"
#include "lang/ir/execute/execute.hpp"
#include "lang/ir/passes/passes.hpp"

namespace slope::infer {

namespace {

using ir::Op;
using ir::Operand;

// Letters of ASCII only: names in other scripts stay as they are.
std::string upper_case(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

bool is_operator_name(std::string_view name) {
  return !name.empty() && std::string_view("+-*/\\^%<>=!&|~:$").find(name[0]) != std::string_view::npos;
}

class WarnType {
 public:
  WarnType(Runtime& runtime, const Specialization& target, const InferResult& result, const ViewOptions& options)
      : runtime_(runtime),
        builtin_(runtime.types.builtin()),
        target_(target),
        method_(*target.method),
        result_(result),
        fn_(*result.typed),
        options_(options) {}

  std::string run() {
    head();
    arguments();
    static_parameters();
    locals();
    out_ += "Body" + typed(result_.return_type) + "\n";
    number();
    ir::Cfg cfg = ir::build_cfg(fn_);
    for (ir::BlockId b = 0; b < fn_.blocks.size(); ++b) block(b, cfg.predecessors[b].size() > 1);
    return std::move(out_);
  }

 private:
  // --- types ---

  std::string painted(const std::string& text, const char* code) const {
    return options_.color ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
  }

  bool is_small_union(const Type* type) const {
    const UnionType* all = as_union(type);
    return all && std::all_of(all->members.begin(), all->members.end(),
                              [&](const Type* m) { return is_dispatch_type(builtin_, m); });
  }

  std::string typed(const Type* type) const {
    std::string text = "::" + (options_.full ? to_string(type) : shortened_type(to_string(type)));
    if (type->kind == TypeKind::bottom || (is_dispatch_type(builtin_, type) && type != builtin_.cell))
      return painted(text, "36");
    if (!options_.color) return upper_case(text);
    return painted(text, is_small_union(type) ? "93;1" : "91;1");
  }

  // --- head ---

  std::string argument_name(std::size_t i) const {
    if (i == 0) return "#self#";
    if (i < method_.arg_names.size() && method_.arg_names[i]) return method_.arg_names[i]->name;
    return "_" + std::to_string(i + 1);
  }

  void head() {
    std::string name = method_.name ? method_.name->name : "anonymous";
    out_ += "MethodInstance for " + name + "(";
    std::span<const Type* const> types = target_.types->params;
    for (std::size_t i = 1; i < types.size(); ++i) out_ += (i > 1 ? ", ::" : "::") + to_string(types[i]);
    out_ += ")\n  from " + name + "(";
    const Type* signature = method_.signature;
    std::vector<const TypeVar*> variables;
    while (const UnionAllType* bound = as_union_all(signature)) {
      variables.push_back(bound->var);
      signature = bound->body;
    }
    const DataType* tuple = as_data(signature);
    for (std::size_t i = 1; tuple && i < tuple->params.size(); ++i) {
      const VarargType* rest = as_vararg(tuple->params[i]);
      const Type* declared = rest ? rest->element : tuple->params[i];
      if (i > 1) out_ += ", ";
      out_ += argument_name(i);
      if (declared != builtin_.any) out_ += "::" + to_string(declared);
      if (rest) out_ += "...";
    }
    out_ += ")";
    if (!variables.empty()) {
      out_ += variables.size() > 1 ? " where {" : " where ";
      for (std::size_t i = 0; i < variables.size(); ++i) {
        out_ += (i ? ", " : "") + variables[i]->name->name;
        if (variables[i]->upper && variables[i]->upper != builtin_.any) out_ += "<:" + to_string(variables[i]->upper);
      }
      if (variables.size() > 1) out_ += "}";
    }
    if (method_.module) out_ += " @ " + method_.module->name->name;
    if (method_.span.file)
      out_ += " " + runtime_.sources.file(method_.span.file).name() + ":" +
              std::to_string(runtime_.sources.line_of(method_.span));
    out_ += "\n";
  }

  void arguments() {
    out_ += "Arguments\n";
    const std::vector<std::uint32_t>& parameters = fn_.blocks[0].parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Type* type = fn_.insts[parameters[i]].type;
      const DataType* data = as_data(type);
      out_ += "  " + argument_name(i);
      if (data && data->is_concrete && data->instance.defined())
        out_ += "::Core.Const(" + (i == 0 && method_.name ? method_.name->name : value_text(data->instance)) + ")";
      else
        out_ += typed(type);
      out_ += "\n";
    }
  }

  void static_parameters() {
    if (target_.static_params.empty() || method_.static_params.empty()) return;
    out_ += "Static Parameters\n";
    for (std::size_t i = 0; i < target_.static_params.size() && i < method_.static_params.size(); ++i)
      out_ += "  " + method_.static_params[i]->name->name + " = " + to_string(target_.static_params[i]) + "\n";
  }

  void locals() {
    if (fn_.slots.empty()) return;
    out_ += "Locals\n";
    for (std::size_t i = 0; i < fn_.slots.size(); ++i)
      out_ += "  " + slot_name(i) + typed(i < fn_.slot_types.size() ? fn_.slot_types[i] : builtin_.any) + "\n";
  }

  std::string slot_name(std::size_t i) const {
    return fn_.slots[i] ? fn_.slots[i]->name : "@_" + std::to_string(i + 1);
  }

  // --- body ---

  // Values are numbered as statements, parameters of blocks and terminators included.
  void number() {
    number_.assign(fn_.insts.size(), 0);
    used_.assign(fn_.insts.size(), 0);
    std::uint32_t next = 0;
    auto use = [&](Operand o) {
      if (o.is_inst()) used_[o.index()] = 1;
    };
    for (ir::BlockId b = 0; b < fn_.blocks.size(); ++b) {
      const ir::Block& block = fn_.blocks[b];
      if (b)
        for (std::uint32_t id : block.parameters) number_[id] = ++next;
      for (std::uint32_t id : block.insts) {
        number_[id] = ++next;
        for (Operand o : fn_.insts[id].operands) use(o);
      }
      if (block.terminator != ~0u) {
        ++next;
        for (Operand o : fn_.insts[block.terminator].operands) use(o);
      }
      for (const ir::Edge& edge : block.edges)
        for (Operand o : edge.arguments) use(o);
    }
    width_ = std::to_string(next).size() + 1;
  }

  std::string value_text(Value v) const {
    if (!v.defined()) return "undef";
    if (v.type->is_kind) return to_string(v.as_type);
    const DataType* type = as_data(v.type);
    if (v.type == builtin_.builtin_function) {
      if (std::optional<Op> op = ir::as_builtin_op(builtin_, v)) return "Core." + std::string(ir::op_name(*op));
      return std::string("Core.") + ir::as_builtin_native(builtin_, v)->name;
    }
    if (type->instance.defined() && type->name->is_function && !type->name->is_closure)
      return (type->name->module ? type->name->module->name->name + "." : "") + type->name->name->name;
    return options_.full ? ir::constant_text(v) : shortened_text(ir::constant_text(v));
  }

  std::string text(Operand o) const {
    if (o.is_constant()) return value_text(fn_.constant_value(o));
    const std::vector<std::uint32_t>& parameters = fn_.blocks[0].parameters;
    auto at = std::find(parameters.begin(), parameters.end(), o.index());
    if (at != parameters.end()) return argument_name(static_cast<std::size_t>(at - parameters.begin()));
    return "%" + std::to_string(number_[o.index()]);
  }

  std::string list(std::span<const Operand> operands) const {
    std::string all;
    for (Operand o : operands) all += (all.empty() ? "" : ", ") + text(o);
    return all;
  }

  std::string call_text(const ir::Inst& inst, std::uintptr_t splatted) const {
    std::span<const Operand> operands = inst.operands;
    if (operands.size() == 3 && operands[0].is_constant() && !splatted) {
      const DataType* type = as_data(fn_.constant_value(operands[0]).type);
      if (type && type->name->is_function && is_operator_name(type->name->name->name))
        return "(" + text(operands[1]) + " " + type->name->name->name + " " + text(operands[2]) + ")";
    }
    std::string all;
    for (std::size_t i = 1; i < operands.size(); ++i) {
      all += (i > 1 ? ", " : "") + text(operands[i]);
      if (i < 64 && (splatted >> i & 1)) all += "...";
    }
    std::string callee = text(operands[0]);
    if (operands[0].is_inst()) callee = "(" + callee + ")";
    return callee + "(" + all + ")";
  }

  std::string field_text(const ir::Inst& inst) const {
    const DataType* type = as_data(fn_.type_of(inst.operands[0], runtime_.types));
    if (type && inst.aux < type->fields.size() && type->fields[inst.aux].name)
      return ":" + type->fields[inst.aux].name->name;
    return std::to_string(inst.aux + 1);
  }

  std::string statement(const ir::Inst& inst) const {
    switch (inst.op) {
      case Op::call:
      case Op::invoke:
        return call_text(inst, 0);
      case Op::call_splat:
        return call_text(inst, inst.aux);
      case Op::native:
        return std::string("Core.") + inst.aux_as<const NativeInfo>()->name + "(" + list(inst.operands) + ")";
      case Op::load_global:
        return global_text(inst);
      case Op::store_global:
        return "(" + global_text(inst) + " = " + text(inst.operands[0]) + ")";
      case Op::slot_get:
        return slot_name(inst.aux);
      case Op::slot_set:
        return "(" + slot_name(inst.aux) + " = " + text(inst.operands[0]) + ")";
      case Op::slot_defined:
        return "$(Expr(:isdefined, :" + slot_name(inst.aux) + "))";
      case Op::refine:
        return "π (" + text(inst.operands[0]) + ", " + to_string(inst.type) + ")";
      case Op::make_struct:
        return "%new(" + list(inst.operands) + ")";
      case Op::make_closure:
        return "%new(" + to_string(inst.type) + (inst.operands.empty() ? "" : ", ") + list(inst.operands) + ")";
      case Op::field_at:
        return "Core.getfield(" + text(inst.operands[0]) + ", " + field_text(inst) + ")";
      case Op::set_field_at:
        return "Core.setfield!(" + text(inst.operands[0]) + ", " + field_text(inst) + ", " + text(inst.operands[1]) +
               ")";
      case Op::type_of:
        return "Core.typeof(" + list(inst.operands) + ")";
      case Op::egal:
        return "(" + text(inst.operands[0]) + " === " + text(inst.operands[1]) + ")";
      case Op::isa:
        return "(" + text(inst.operands[0]) + " isa " + text(inst.operands[1]) + ")";
      case Op::get_field:
        return "Core.getfield(" + list(inst.operands) + ")";
      case Op::type_assert:
        return "Core.typeassert(" + list(inst.operands) + ")";
      default:
        return "Core." + std::string(ir::op_name(inst.op)) + "(" + list(inst.operands) + ")";
    }
  }

  std::string global_text(const ir::Inst& inst) const {
    const Binding* binding = inst.aux_as<const Binding>();
    return (binding->module ? binding->module->name->name + "." : "") + binding->name->name;
  }

  // What flows into parameter `index` of block b, by predecessor.
  std::string phi(ir::BlockId b, std::size_t index) const {
    std::string all;
    for (ir::BlockId from = 0; from < fn_.blocks.size(); ++from)
      for (const ir::Edge& edge : fn_.blocks[from].edges)
        if (edge.target == b && index < edge.arguments.size())
          all += (all.empty() ? "" : ", ") + std::string("#") + std::to_string(from + 1) + " => " +
                 text(edge.arguments[index]);
    return "φ (" + all + ")";
  }

  bool is_exact(const Type* type) const {
    return !type || type->kind == TypeKind::bottom || (is_dispatch_type(builtin_, type) && type != builtin_.cell);
  }

  // The line of the source, where it is another one than before.
  std::string source_beside(Span span, std::size_t columns) {
    if (!options_.source || span.file == 0) return "";
    const std::uint32_t number = runtime_.sources.line_of(span);
    if (span.file == shown_file_ && number == shown_line_) return "";
    shown_file_ = span.file;
    shown_line_ = number;
    std::string_view text = runtime_.sources.file(span.file).line(number);
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    constexpr std::size_t beside = 56;
    return std::string(columns < beside ? beside - columns : 2, ' ') +
           painted("# " + std::to_string(number) + ": " + std::string(text), "90");
  }

  static std::size_t columns_of(const std::string& text) {
    std::size_t columns = 0;
    bool escape = false;
    for (const char c : text) {
      if (c == '\033') escape = true;
      if (!escape && (static_cast<unsigned char>(c) & 0xc0) != 0x80) ++columns;
      if (c == 'm') escape = false;
    }
    return columns;
  }

  void line(ir::BlockId b, bool first, bool last, bool joined, std::uint32_t id, const std::string& body,
            const Type* type, Span span) {
    const std::size_t start = out_.size();
    std::string number = std::to_string(b + 1);
    std::string gutter = first ? number + (joined ? " ┄" : " ─") : last ? std::string("└") : std::string("│");
    std::size_t columns = first ? number.size() + 2 : 1;
    std::size_t full = std::to_string(fn_.blocks.size()).size() + 2;
    if (last && !first)
      while (columns < full) gutter += "─", ++columns;
    while (columns < full) gutter += " ", ++columns;
    std::string value;
    bool named = id != ~0u && used_[id];
    if (named) value = "%" + std::to_string(number_[id]);
    while (value.size() < width_) value += ' ';
    value += named ? " = " : "   ";
    out_ += painted(gutter, "90") + " " + value + body;
    if (type && named) out_ += typed(type);
    out_ += source_beside(span, columns_of(out_.substr(start)));
    out_ += "\n";
  }

  void block(ir::BlockId b, bool joined) {
    const ir::Block& block = fn_.blocks[b];
    struct Line {
      std::uint32_t id;
      std::string text;
      const Type* type;
      Span span = {};
    };
    std::vector<Line> lines;
    if (block.handler != ir::no_block)
      lines.push_back({~0u, "$(Expr(:enter, #" + std::to_string(block.handler + 1) + "))", nullptr});
    if (b)
      for (std::size_t i = 0; i < block.parameters.size(); ++i) {
        std::uint32_t id = block.parameters[i];
        lines.push_back({id, phi(b, i), fn_.insts[id].type});
      }
    for (std::uint32_t id : block.insts)
      lines.push_back({id, statement(fn_.insts[id]), fn_.insts[id].type, fn_.insts[id].span});
    if (block.terminator != ~0u) {
      const ir::Inst& inst = fn_.insts[block.terminator];
      const std::size_t before = lines.size();
      auto target = [&](std::size_t e) { return "#" + std::to_string(block.edges[e].target + 1); };
      switch (inst.op) {
        case Op::jump:
          lines.push_back({~0u, "goto " + target(0), nullptr});
          break;
        case Op::branch:
          lines.push_back({~0u, "goto " + target(1) + " if not " + text(inst.operands[0]), nullptr});
          if (block.edges[0].target != b + 1) lines.push_back({~0u, "goto " + target(0), nullptr});
          break;
        case Op::ret:
          lines.push_back({~0u, "return " + text(inst.operands[0]), nullptr});
          break;
        case Op::unreachable:
          lines.push_back({~0u, "unreachable", nullptr});
          break;
        case Op::switch_int: {
          std::string all;
          for (std::size_t e = 0; e < block.edges.size(); ++e) all += (e ? ", " : "") + target(e);
          lines.push_back({~0u, "goto (" + all + ")[" + text(inst.operands[0]) + "]", nullptr});
          break;
        }
        default:
          lines.push_back({~0u, statement(inst), nullptr});
      }
      for (std::size_t i = before; i < lines.size(); ++i) lines[i].span = inst.span;
    }
    const auto stable = [&](std::size_t i) {
      return options_.hide_stable && lines[i].id != ~0u && is_exact(lines[i].type);
    };
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::size_t end = i;
      while (end < lines.size() && stable(end)) ++end;
      if (end - i > 1) {
        line(b, i == 0, end == lines.size(), joined, ~0u, painted("⋮ " + std::to_string(end - i) + " stable", "90"),
             nullptr, {});
        i = end - 1;
        continue;
      }
      line(b, i == 0, i + 1 == lines.size(), joined, lines[i].id, lines[i].text, lines[i].type, lines[i].span);
    }
  }

  Runtime& runtime_;
  const BuiltinTypes& builtin_;
  const Specialization& target_;
  const Method& method_;
  const InferResult& result_;
  const ir::Function& fn_;
  ViewOptions options_;
  std::string out_;
  std::vector<std::uint32_t> number_;
  std::vector<std::uint8_t> used_;
  std::size_t width_ = 2;
  FileId shown_file_ = 0;
  std::uint32_t shown_line_ = 0;
};

}  // namespace

std::string warntype(Runtime& runtime, const Specialization& target, const InferResult& result,
                     const ViewOptions& options) {
  if (!result.typed) return "";
  return WarnType(runtime, target, result, options).run();
}

}  // namespace slope::infer
