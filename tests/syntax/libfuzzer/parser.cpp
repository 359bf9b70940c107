// libFuzzer's way into the parser: any bytes as a text. Whatever they are, the parser ends, its diagnostics lie within
// the text, and what it made can be printed, as S-expressions and as source that is parsed again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "lang/syntax/parse.hpp"
#include "lang/syntax/print.hpp"

namespace {

using namespace slope;

bool parse(const std::string& text, std::string& printed) {
  SourceMap sources;
  const FileId file = sources.add("<fuzz>", text);
  const syntax::ParseResult parsed = syntax::parse(sources, file);
  for (const Diagnostic& diagnostic : parsed.diagnostics) {
    if (diagnostic.span.begin > text.size() || diagnostic.span.end > text.size()) std::abort();
    (void)sources.describe(diagnostic.span);
    (void)sources.excerpt(diagnostic.span);
  }
  if (!parsed.ok()) return false;
  (void)syntax::to_sexpr(parsed.ast, parsed.ast.root);
  for (const syntax::NodeId statement : parsed.ast.children(parsed.ast.root))
    printed += syntax::to_source(parsed.ast, statement) + "\n";
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string printed, again;
  if (parse(std::string(reinterpret_cast<const char*>(data), size), printed)) (void)parse(printed, again);
  return 0;
}
