// How the standard library's own definitions are run. Each start would have thousands, of which a program uses few. So
// an index says which name each of them defines (library_index.cpp), and they wait until the name is looked up
// (lang/runtime/postponed.cpp). Most are then run without IR in between. A statement that defines nothing with a name
// runs when the library is opened.
#include <algorithm>
#include <utility>

#include "lang/lower/definition.hpp"
#include "lang/lower/library_index.hpp"
#include "lang/support/exception_safe.hpp"
#include "lang/syntax/image.hpp"

namespace slope::lower {

using syntax::Ast;
using syntax::NodeId;

const std::shared_ptr<Ast>& library_tree(Runtime& runtime, std::uint32_t source) {
  LibraryPart& part = state_of(runtime).library_parts[source];
  if (part.ast == nullptr) part.ast = std::make_shared<Ast>(std::move(*syntax::read_image(part.image, part.file)));
  return part.ast;
}

bool open_library(Runtime& runtime, Context& ctx, std::vector<LibraryPart> parts, std::string_view image) {
  LoweringState& state = state_of(runtime);
  state.library_parts = std::move(parts);
  for (const LibraryPart& part : state.library_parts)
    state.last_library_file = std::max(state.last_library_file, part.file);
  std::optional<LibraryIndex> index = LibraryIndex::read(image);
  if (!index) {
    LibraryIndexBuilder builder;
    for (std::uint32_t i = 0; i < state.library_parts.size(); ++i)
      if (state.library_parts[i].is_loaded)
        builder.add(*library_tree(runtime, i), i, runtime.sources.file(state.library_parts[i].file).name());
    state.library_index = builder.image();
    index = LibraryIndex::read(state.library_index);
  }
  runtime.open_library(*index);
  for (const LibraryItem& item : index->eager()) {
    Value ignored;
    if (!run_statements(runtime, ctx, runtime.base, library_tree(runtime, item.source), {&item.statement, 1}, ignored))
      return false;
  }
  state.library_world = runtime.world();
  return true;
}

World top_world(Runtime& runtime) {
  const LoweringState& state = state_of(runtime);
  return state.makes_library ? state.library_world : runtime.world();
}

bool run_library_definition(Runtime& runtime, Context& ctx, Module* module, const std::shared_ptr<Ast>& ast,
                            NodeId statement) {
  DefinitionHints hints;
  NodeId definition = statement;
  if (!take_hints(*ast, definition, hints) || !is_plain_definition(*ast, definition)) return false;
  Definition made{ast, definition, module, std::move(hints), nullptr};
  Value ignored;
  run_definition(runtime, ctx, made, ignored);
  return true;
}

bool is_library_file(const Runtime& runtime, FileId file) {
  const std::vector<LibraryPart>& parts = state_of(const_cast<Runtime&>(runtime)).library_parts;
  return std::any_of(parts.begin(), parts.end(), [&](const LibraryPart& part) { return part.file == file; });
}

// include_library(module, path): runs the statements of another file of the library in one of its modules. `path` counts
// from stdlib/.
bool include_library(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  const auto& builtin = runtime.types.builtin();
  if (count != 2 || args[0].type != builtin.module || args[1].type != builtin.string)
    return ctx.argument_error("include_library(module, path)");
  const std::string name = "Base/" + std::string(static_cast<StringObject*>(args[1].object)->view());
  const std::vector<LibraryPart>& parts = state_of(runtime).library_parts;
  for (std::uint32_t source = 0; source < parts.size(); ++source) {
    if (runtime.sources.file(parts[source].file).name() != name) continue;
    const std::shared_ptr<Ast>& tree = library_tree(runtime, source);
    const auto children = tree->children(tree->root);  // expanding macros adds nodes, which moves the tree's own lists
    const std::vector<NodeId> statements(children.begin(), children.end());
    return run_statements(runtime, ctx, args[0].module, tree, statements, result);
  }
  return ctx.argument_error("the library has no file " + name);
}

bool define_postponed(Runtime& runtime, Context& ctx, Postponed what) {
  LoweringState& state = state_of(runtime);
  const Restored makes(state.makes_library, state.library_world != 0);
  Value ignored;
  return run_statements(runtime, ctx, runtime.base, library_tree(runtime, what.source), {&what.definition, 1}, ignored);
}

}  // namespace slope::lower
