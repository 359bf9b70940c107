// How the standard library's own definitions are run. Each start would have thousands, of which a program uses few. So
// an index says which name each of them defines (library_index.cpp), and they wait until the name is looked up
// (lang/runtime/postponed.cpp). Most are then run without IR in between. A statement that defines nothing with a name
// runs when the library is opened.
#include <utility>

#include "lang/lower/definition.hpp"
#include "lang/lower/library_index.hpp"
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
  std::optional<LibraryIndex> index = LibraryIndex::read(image);
  if (!index) {
    LibraryIndexBuilder builder;
    for (std::uint32_t i = 0; i < state.library_parts.size(); ++i) builder.add(*library_tree(runtime, i), i);
    state.library_index = builder.image();
    index = LibraryIndex::read(state.library_index);
  }
  runtime.open_library(*index);
  for (const LibraryItem& item : index->eager()) {
    Value ignored;
    if (!run_statements(runtime, ctx, runtime.base, library_tree(runtime, item.source), {&item.statement, 1}, ignored))
      return false;
  }
  return true;
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

bool define_postponed(Runtime& runtime, Context& ctx, Postponed what) {
  Value ignored;
  return run_statements(runtime, ctx, runtime.base, library_tree(runtime, what.source), {&what.definition, 1}, ignored);
}

}  // namespace slope::lower
