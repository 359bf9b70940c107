#include "tools/build/header.hpp"

#include <algorithm>
#include <cctype>

namespace slope::api::tools::ahead {

namespace {

std::string upper(std::string text) {
  for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::toupper(c)) : '_';
  return text;
}

std::string lower(std::string text) {
  for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return text;
}

std::string size_name(const Datum& array, int dimension) {
  if (array.rank == 1) return array.name + "_length";
  if (array.rank == 2) return array.name + (dimension == 0 ? "_rows" : "_columns");
  return array.name + "_size" + std::to_string(dimension + 1);
}

std::string declaration(const HeaderFunction& each, const BuiltinTypes& types) {
  const CFunction& function = *each.function;
  std::vector<std::string> parameters;
  std::size_t array = 0;
  for (const Datum& datum : function.arguments) {
    if (!datum.is_array()) {
      parameters.push_back(std::string(c_type(datum.type, types)) + " " + datum.name);
      continue;
    }
    const bool is_written = datum.is_result || each.written[array];
    ++array;
    parameters.push_back(std::string(is_written ? "" : "const ") + c_type(datum.element, types) + "* " + datum.name);
    for (int d = 0; d < datum.rank; ++d) parameters.push_back("int64_t " + size_name(datum, d));
  }
  for (const Datum& datum : function.results)
    parameters.push_back(std::string(c_type(datum.type, types)) + "* " + datum.name);
  parameters.push_back("void* work");
  parameters.push_back("int64_t work_size");
  std::string text = "int32_t " + function.symbol + "(";
  std::size_t column = text.size();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string piece = parameters[i] + (i + 1 < parameters.size() ? "," : ");");
    if (i > 0 && column + piece.size() + 1 > 110) {
      text += "\n    ";
      column = 4;
    } else if (i > 0) {
      text += " ";
      ++column;
    }
    text += piece;
    column += piece.size();
  }
  return text + "\n";
}

// Of all integers, in their order.
std::string work_size_declaration(const CFunction& function, const BuiltinTypes& types) {
  std::string parameters;
  auto add = [&](const std::string& type, const std::string& name) {
    parameters += (parameters.empty() ? "" : ", ") + type + " " + name;
  };
  for (const Datum& datum : function.arguments) {
    for (int d = 0; d < datum.rank; ++d) add("int64_t", size_name(datum, d));
    if (!datum.is_array() && datum.type != types.float64 && datum.type != types.float32)
      add(c_type(datum.type, types), datum.name);
  }
  return "int64_t " + function.symbol + "_work_size(" + (parameters.empty() ? "void" : parameters) + ");\n";
}

}  // namespace

std::string header_text(const std::string& name, const std::string& script, const std::string& triple,
                        const std::vector<HeaderFunction>& functions, const BuiltinTypes& types) {
  const std::string macro = upper(name), prefix = lower(name);
  std::string text =
      "/* Functions of " + script + " in machine code (" + triple +
      "), made by `slope build`.\n\n"
      "   A function returns 0, or what went wrong: " +
      macro + "_KIND(status) is one of the names below, " + macro +
      "_LINE(status) the\n   line of the script, 0 when it is not known. The contents of results"
      " are then undefined.\n"
      "   Arrays lie column by column, as in Fortran. Memory that a function writes may not overlap other"
      " memory that it\n   is given. `work` is memory that it uses while it runs; one that takes none"
      " may get NULL and 0. Functions keep\n   nothing between calls: they may run on several threads at"
      " once. */\n";
  text += "#ifndef " + macro + "_H\n#define " + macro + "_H\n\n#include <stdbool.h>\n#include <stdint.h>\n\n";
  text += "#define " + macro + "_KIND(status) ((status) >> 24)\n#define " + macro +
          "_LINE(status) ((status) & 0xffffff)\n\nenum {\n";
  static constexpr std::pair<const char*, const char*> kinds[] = {
      {"BOUNDS", "an index is outside of its array"},
      {"DOMAIN", "a function is not defined for a number"},
      {"DIMENSIONS", "sizes of arrays do not fit"},
      {"ARGUMENT", "an argument is not allowed"},
      {"DIVISION", "an integer was divided by zero"},
      {"CONVERSION", "a number does not fit into its type"},
      {"TYPE", "a value has another type than expected"},
      {"WORK", "work_size is too small"},
      {"OTHER", "another error was raised"},
  };
  int number = 1;
  for (const auto& [kind, meaning] : kinds)
    text += "  " + macro + "_" + kind + " = " + std::to_string(number++) + ", /* " + meaning + " */\n";
  text += "};\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
  for (const HeaderFunction& each : functions) {
    const Export& of = *each.of;
    text += "\n/* " + of.text + (of.position.line ? ", line " + std::to_string(of.position.line) : "") + ".";
    if (!each.function->meaning.empty()) text += " " + each.function->meaning;
    text += !each.takes_memory  ? " Takes no work memory."
            : each.tells_memory ? " Takes work memory."
                                : " Takes work memory; how much is found by trying.";
    text += " */\n" + declaration(each, types);
    if (each.tells_memory) text += work_size_declaration(*each.function, types);
  }
  text += "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  return text;
}

std::string cmake_text(const std::string& name, const std::string& object, const std::vector<std::string>& symbols) {
  const bool has_blas = std::any_of(symbols.begin(), symbols.end(), [](const std::string& s) {
    return s == "dgemm_" || s == "dgemv_" || s == "sgemm_" || s == "sgemv_";
  });
  std::string text = "# Made by `slope build`: the target " + name + "::" + name + ".\n";
  text += "if(NOT TARGET " + name + "::" + name + ")\n";
  if (has_blas) text += "  find_package(BLAS REQUIRED)\n";
  text += "  add_library(" + name + "::" + name + " INTERFACE IMPORTED)\n";
  text += "  set_target_properties(" + name + "::" + name +
          " PROPERTIES\n    INTERFACE_INCLUDE_DIRECTORIES \"${CMAKE_CURRENT_LIST_DIR}\"\n"
          "    INTERFACE_LINK_LIBRARIES \"${CMAKE_CURRENT_LIST_DIR}/" +
          object + ";" + (has_blas ? "${BLAS_LIBRARIES};" : "") + "m\")\nendif()\n";
  return text;
}

}  // namespace slope::api::tools::ahead
