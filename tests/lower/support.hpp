// Lowering text without running it: what the tests of this folder share.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lang/ir/execute/execute.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/lower/definition.hpp"
#include "lang/lower/lower.hpp"
#include "lang/syntax/parse.hpp"

namespace slope::test {

class Lowering {
 public:
  Lowering() {
    ir::define_op_builtins(runtime);
    lower::define_lowering_natives(runtime);
    RuntimeHooks hooks;
    ir::add_hooks(hooks);
    lower::add_hooks(runtime, hooks);
    runtime.connect(std::move(hooks));
    runtime.enter_thread(runtime.context);
  }

  // The IR of all statements, the methods they define and the closures in them. Errors are part of the text.
  std::string lower(const std::string& name, const std::string& text) {
    out_.clear();
    const FileId file = runtime.sources.add(name, text);
    auto parsed = syntax::parse(runtime.sources, file);
    if (!parsed.ok()) return render(parsed.diagnostics, runtime.sources);
    auto ast = std::make_shared<syntax::Ast>(std::move(parsed.ast));
    const std::vector<syntax::NodeId> statements(ast->children(ast->root).begin(), ast->children(ast->root).end());
    for (const syntax::NodeId statement : statements) lower_one(ast, statement);
    return out_;
  }

  Runtime runtime;

 private:
  void lower_one(const std::shared_ptr<syntax::Ast>& ast, syntax::NodeId statement) {
    const auto& node = ast->node(statement);
    const std::string source(
        runtime.sources.file(node.span.file).text().substr(node.span.begin, node.span.end - node.span.begin));
    out_ += "# " + source.substr(0, source.find('\n')) + "\n";
    Context& ctx = runtime.context;
    std::vector<Diagnostic> diagnostics;
    ctx.world = runtime.world();
    const std::size_t known = lower::state_of(runtime).definitions.size();
    auto function = lower::lower_statement(runtime, ctx, runtime.main, ast, statement, diagnostics);
    if (function == nullptr) {
      out_ += render(diagnostics, runtime.sources) + "\n";
      return;
    }
    auto& definitions = lower::state_of(runtime).definitions;
    const bool defines = definitions.size() == known + 1 && definitions.back().node == statement;
    if (!defines) {
      print(*function);
      return;
    }
    Value result;
    if (!lower::run_definition(runtime, ctx, definitions.back(), result)) {
      out_ += "error: " + runtime.exception_text(ctx, ctx.take_error()) + "\n";
      return;
    }
    if (ast->head(statement) == syntax::Head::struct_) {
      syntax::NodeId name = ast->child(statement, 0);
      while (ast->child_count(name) > 0) name = ast->child(name, 0);
      const Binding* type = runtime.resolve(runtime.main, runtime.symbol(ast->name_of(name)));
      if (type != nullptr) print_methods(*runtime.method_table(runtime.types.type_type(type->value.as_type)));
      return;
    }
    if (result.type->is_kind || as_data(result.type)->name->is_function)
      print_methods(*runtime.method_table(result.type));
    if (const Binding* kwcall = runtime.resolve(runtime.base, runtime.symbol("kwcall"));
        kwcall && kwcall->value.defined())
      print_methods(*runtime.method_table(kwcall->value.type));
  }

  void print_methods(const MethodTable& table) {
    for (const auto& method : table.methods) {
      if (!printed_.insert(method.get()).second) continue;
      if (!lower::lower_method(runtime, runtime.context, *method)) {
        out_ += "error: " + runtime.exception_text(runtime.context, runtime.context.take_error()) + "\n";
        continue;
      }
      out_ += "# method " + to_string(method->signature) + "\n";
      print(*method->ir);
    }
  }

  void print(const ir::Function& function) {
    const std::string problem = ir::verify(function);
    if (!problem.empty()) out_ += "MALFORMED: " + problem + "\n";
    out_ += ir::print(function) + "\n";
    std::vector<const TypeName*> closures;
    for (const Value& v : function.constants)
      if (const DataType* type = as_data(v.type); type != nullptr && type->name->is_closure)
        closures.push_back(type->name);
    for (const ir::Inst& inst : function.insts)
      if (inst.op == ir::Op::make_closure) closures.push_back(inst.aux_as<TypeName>());
    for (const TypeName* closure : closures)
      if (closure->methods != nullptr) print_methods(*closure->methods);
  }

  std::string out_;
  std::set<const Method*> printed_;
};

}  // namespace slope::test
