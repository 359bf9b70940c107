// What lowering keeps for the life of a Runtime: definitions that lowered code refers to by number, constants that only
// instructions hold (they must stay visible to the collector), values spliced into syntax.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lang/lower/lower.hpp"
#include "lang/lower/signature.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::lower {

class FormArena;
struct Lambda;

// How a definition is to be made; what macros around it said.
struct DefinitionHints {
  int inline_hint = 0;
  bool infers_as_declared = false;  // `@nospecializeinfer`
  bool is_generated = false;
  bool is_cached = false;  // `@generated cached`
  std::string documentation;
  // Variables of the block around it that its signature names, and their values now.
  std::vector<std::pair<const Symbol*, Value>> names;
};

// A function definition that was desugared where it stands.
struct PreparedFunction {
  std::shared_ptr<const SignatureSyntax> signature;
  std::shared_ptr<FormArena> arena;
  std::vector<Lambda*> lambdas;  // by variant
};

// A definition (function, struct, module, import …) that runs when control reaches it: native `define` with its number.
struct Definition {
  std::shared_ptr<syntax::Ast> ast;
  syntax::NodeId node = syntax::no_node;
  Module* module = nullptr;
  DefinitionHints hints;
  std::shared_ptr<PreparedFunction> prepared;
  // A method that uses variables of the block it stands in: it calls the closure that this global holds.
  const Symbol* forward = nullptr;
  bool forwards_where = false;  // the closure takes the variables of `where`, too
  std::size_t counted = 0;      // bytes of outside_heap
};

// MethodBody::scope of methods that lowering made.
struct MethodSource {
  std::shared_ptr<const SignatureSyntax> signature;  // null: none, or read again from the definition when wanted
  Variant variant;
  const TypeName* constructed = nullptr;      // what `new` makes in an inner constructor
  std::vector<std::uint32_t> static_indices;  // by `where` variable: number of the static parameter, or ~0
  // Desugared when the method was defined (user code: macros see the world they were written in, errors come early).
  std::shared_ptr<FormArena> arena;
  Lambda* lambda = nullptr;
};

// Both parts in one allocation: the library has thousands of methods. `body.scope` points at `source`, owning nothing.
struct SourcedBody {
  MethodBody body;
  MethodSource source;
};

struct LoweringState {
  explicit LoweringState(Heap& heap) : constants(heap), spliced(heap), macro_errors(heap) {}
  Rooted constants;                                // literals that instructions hold
  std::unordered_map<std::string, Value> strings;  // interned string literals, in `constants`
  Rooted spliced;                                  // what Head::value nodes index
  Rooted macro_errors;                             // what macros of the statement that is being lowered raised
  // The source of a generator is being lowered: its constants live and die with its code, which the collector sees from
  // then on. Code that macros define meanwhile stays.
  bool of_source = false;
  bool macro_ran = false;            // since that was set
  const SourceMap* texts = nullptr;  // which the spans of trees on the way to values mean; null: the runtime's
  std::deque<Definition> definitions;
  // Those of a top-level statement end with its code, and their numbers are used again.
  std::vector<std::size_t> spare_definitions;
  std::unordered_map<const ir::Function*, std::vector<std::size_t>> definitions_of;
  std::vector<std::size_t>* made = nullptr;  // by the statement that is being lowered
  std::unordered_map<const Module*, World>
      package_worlds;                                // when packages were complete: by what `package_module` made
  std::vector<LibraryPart> library_parts;            // where postponed definitions stand: Postponed::source
  std::string library_index;                         // when it was made here
  FileId last_library_file = 0;                      // files 1 to this one are the library's
  World library_world = 0;                           // the newest when the library had been opened
  bool makes_library = false;                        // a postponed definition of it is being made
  bool trusts_inbounds = false;                      // @inbounds of scripts means something
  std::unordered_set<const Symbol*> foreign_uses;    // names that Main resolved to another module's binding
  std::shared_ptr<SignatureSyntax> spare_signature;  // nobody uses it: for the next definition
  // What the names of a tree meant the last time: by their numbers, to be checked against the spelling.
  std::vector<const Symbol*> last_symbols;
  std::vector<Module*> open_modules;  // whose bodies are running
  std::vector<Module*> to_start;      // ended since the outermost began: their `__init__` has not run
  const Symbol* self = nullptr;       // "#self#"
  std::size_t gensyms = 0;
  std::size_t closures = 0;
  std::size_t hygienic = 0;
};

// The name of the modules in which packages' own modules are defined; no program can write it.
constexpr std::string_view package_root = "#package";

LoweringState& state_of(Runtime& runtime);

// The world of statements at top level and of macros: the newest. What the library's own definitions do when they are
// made sees the library alone: else a program that redefined a function would run while a module of it loads, without
// limits.
World top_world(Runtime& runtime);

// The text there is the library's own. What scripts evaluate in Base is not.
bool is_library_text(Runtime& runtime, Span span);

// The tree of a file of the standard library, by its number in load order.
const std::shared_ptr<syntax::Ast>& library_tree(Runtime& runtime, std::uint32_t source);
bool is_library_file(const Runtime& runtime, FileId file);
bool include_library(Context& ctx, const Value* args, std::size_t count, Value& result);

// Adds a definition; returns its number.
std::size_t add_definition(Runtime& runtime, Definition definition);
void end_definitions(Runtime& runtime, const std::vector<std::size_t>& numbers);

// The symbol of an identifier or a quoted one.
const Symbol* symbol_of(Runtime& runtime, const syntax::Ast& ast, syntax::NodeId identifier);
Value string_constant(Runtime& runtime, std::string_view text);
Value keep(Runtime& runtime, Value v);  // keeps a constant alive; returns it
// A tuple of symbols, as the names of a NamedTuple.
Value symbol_tuple(Runtime& runtime, Context& ctx, std::span<const Symbol* const> names);

}  // namespace slope::lower
