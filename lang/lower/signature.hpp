// The signature of a function definition, parsed once: the variables of `where`, parameters with types and defaults,
// keywords.
//
// One definition makes several methods ("variants"), as in Julia:
//   - one that takes everything;
//   - one for each number of omitted optional arguments, which calls the function again with the defaults;
//   - when there are keywords, for each of these another one of `Base.kwcall(names::NamedTuple, f, args…)`, which takes
//     the keywords out of the named tuple.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lang/support/diagnostic.hpp"
#include "lang/syntax/ast.hpp"

namespace slope {
class Reached;
}

namespace slope::lower {

struct ParameterSyntax {
  syntax::NodeId pattern = syntax::no_node;  // identifier or destructuring tuple; none for `::T`
  syntax::NodeId type = syntax::no_node;
  syntax::NodeId default_value = syntax::no_node;
  bool is_vararg = false;
  bool is_unspecialized = false;  // `@nospecialize x`
  Span span;
};

struct KeywordSyntax {
  std::string name;
  syntax::NodeId type = syntax::no_node;
  syntax::NodeId default_value = syntax::no_node;  // none: required
  bool is_rest = false;                            // kw...
  Span span;
};

struct SignatureSyntax {
  std::shared_ptr<syntax::Ast> ast;
  Span span;  // of the signature
  syntax::NodeId definition = syntax::no_node;
  syntax::NodeId callee = syntax::no_node;  // identifier, dot or curly; none: anonymous, or a callable object
  bool is_object = false;                   // (self::T)(…)
  syntax::NodeId object_name = syntax::no_node;
  syntax::NodeId object_type = syntax::no_node;
  std::vector<syntax::NodeId> where_variables;  // outermost first
  std::vector<ParameterSyntax> parameters;
  std::vector<KeywordSyntax> keywords;
  syntax::NodeId return_type = syntax::no_node;
  syntax::NodeId body = syntax::no_node;  // none: `function f end`
  bool has_vararg_default = false;        // which the body begins with

  std::size_t optional_count() const;
  std::size_t positional_count() const;  // without a vararg
  bool is_vararg() const { return !parameters.empty() && parameters.back().is_vararg; }
};

void reach_signature(const SignatureSyntax& signature, Reached& reached);
void reach_tree(const syntax::Ast& tree, Reached& reached);

struct Variant {
  enum class Kind : std::uint8_t {
    syntax,
    constructor_exact,
    constructor_convert,
    constructor_outer
  } kind = Kind::syntax;
  std::uint32_t omitted = 0;    // optional arguments that the caller left out
  bool keyword_method = false;  // a method of kwcall
};
std::vector<Variant> variants_of(const SignatureSyntax& signature);

// Understands `function`, short form `assign`, `arrow` and `macro_` nodes. Null with diagnostics when malformed.
std::shared_ptr<SignatureSyntax> parse_signature(std::shared_ptr<syntax::Ast> ast, syntax::NodeId definition,
                                                 std::vector<Diagnostic>& diagnostics);

// The same into `out`, whatever it held; its memory is used again.
bool read_signature(SignatureSyntax& out, std::shared_ptr<syntax::Ast> ast, syntax::NodeId definition,
                    std::vector<Diagnostic>& diagnostics);

// Is this `assign` a function definition, f(x) = …?
bool is_short_definition(const syntax::Ast& ast, syntax::NodeId assign);

// The variable of a `where` entry or struct parameter with its bounds: T, T<:U, T>:L, L<:T<:U.
struct BoundSyntax {
  syntax::NodeId name = syntax::no_node;
  syntax::NodeId lower = syntax::no_node;
  syntax::NodeId upper = syntax::no_node;
};
bool parse_bound(const syntax::Ast& ast, syntax::NodeId node, BoundSyntax& out);

// The text of an identifier-like node ("" when it is none).
std::string_view identifier_text(const syntax::Ast& ast, syntax::NodeId node);

void report(std::vector<Diagnostic>& diagnostics, Span span, std::string message, std::string help = {});

}  // namespace slope::lower
