// Run while building: parses the standard library and writes a tree image (lang/syntax/image.hpp) for every file, and
// `library.index`, the index of what they define (lang/runtime/library_index.hpp).
//
//   slope_stdlib_images <folder of the texts> <folder for the images> <text>...
//
// The files get the numbers that they will have in an engine, which loads them in the same order: then no image has to
// be changed when it is read. A text that does not parse has an empty image; loading it parses it again and reports,
// and makes the index then.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "lang/lower/library_index.hpp"
#include "lang/syntax/image.hpp"
#include "lang/syntax/parse.hpp"
#include "stdlib/load_order.hpp"

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

int main(int count, char** arguments) {
  using namespace slope;
  if (count < 3) return 2;
  const std::filesystem::path from = arguments[1];
  const std::filesystem::path to = arguments[2];
  const std::string base = read(from / "base.slope");
  std::vector<std::string> names;
  for (std::string_view name : stdlib::load_order(base)) names.emplace_back(name);
  const std::size_t loaded = names.size();
  for (int i = 3; i < count; ++i)
    if (std::find(names.begin(), names.end(), arguments[i]) == names.end()) names.emplace_back(arguments[i]);

  SourceMap sources;
  lower::LibraryIndexBuilder index;
  std::vector<syntax::Ast> trees;
  bool indexed = true;
  for (std::uint32_t number = 0; number < names.size(); ++number) {
    const std::string& name = names[number];
    const FileId file = sources.add(name, read(from / name));
    syntax::ParseResult parsed = syntax::parse(sources, file);
    const std::filesystem::path path = to / (name + ".tree");
    std::filesystem::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary);
    if (parsed.ok()) out << syntax::write_image(parsed.ast, file);
    if (!out.flush()) {
      std::cerr << "cannot write " << path.string() << '\n';
      return 1;
    }
    if (!parsed.ok()) indexed = false;
    if (indexed && number < loaded) index.add(parsed.ast, number, name);
    trees.push_back(std::move(parsed.ast));
  }
  const std::filesystem::path path = to / "library.index";
  std::ofstream out(path, std::ios::binary);
  if (indexed) {
    const std::string image = index.image();
    out << image;
    // Every engine would pay for it at its start.
    for (const LibraryItem& item : LibraryIndex::read(image)->eager()) {
      const syntax::Ast& ast = trees[item.source];
      if (ast.head(item.statement) == syntax::Head::call) continue;
      std::cerr << sources.describe(ast.node(item.statement).span)
                << ": the library's index (lang/lower/library_index.cpp) does not see what this statement defines\n";
      return 1;
    }
  }
  if (!out.flush()) {
    std::cerr << "cannot write " << path.string() << '\n';
    return 1;
  }
}
