// What inference finds in the methods of one definition: the types of its expressions, and what must fail.
#pragma once

#include "embed/engine_state.hpp"
#include "tools/lsp/definitions.hpp"

namespace slope::api::tools::lsp {

// Fills `findings` and `types`. The definition has run in the engine, as its file; `ast` holds it, at `definition.node`.
void infer_definition(detail::EngineState& engine, const syntax::Ast& ast, Definition& definition);

}  // namespace slope::api::tools::lsp
