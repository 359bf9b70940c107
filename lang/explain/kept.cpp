#include "lang/explain/kept.hpp"

#include <algorithm>
#include <array>

#include "lang/explain/view_text.hpp"

namespace slope::explain {

namespace {

using Row = std::array<std::string, 6>;

// Bytes of a value of the named type; empty when that is not known. A tape holds others by reference.
std::string bytes_of(Runtime& runtime, const std::string& type) {
  if (type.starts_with("Tuple") || type.starts_with("NamedTuple") || type.starts_with("Union")) return "";
  if (type.find('{') != std::string::npos) return std::to_string(sizeof(void*));
  const Binding* binding = runtime.base->find(runtime.symbol(type));
  const Value value = binding ? binding->value : Value();
  const DataType* data = value.defined() && runtime.is_type_value(value) ? as_data(value.as_type) : nullptr;
  if (!data || !data->is_concrete) return "";
  return std::to_string(stored_size(data));
}

std::size_t columns_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  constexpr std::size_t most = 36;
  if (columns_of(text) <= most) return text;
  std::size_t end = most - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

Row row_of(Runtime& runtime, const diff::SavedValue& value) {
  const std::size_t colons = value.what.find(" :: ");
  const std::string type = colons == std::string::npos ? "" : value.what.substr(colons + 4);
  const bool has_place = value.span.file != 0 && value.span.end > value.span.begin;
  const std::string what = has_place ? one_line(infer::source_text(runtime.sources, value.span)) : "";
  const bool is_kept = value.where == diff::SavedValue::Where::tape || value.where == diff::SavedValue::Where::stack;
  return {has_place
              ? runtime.sources.file(value.span.file).name() + ":" + std::to_string(runtime.sources.line_of(value.span))
              : "",
          what.empty() ? value.what.starts_with("parameter") ? "(a variable)" : "(" + value.what.substr(0, colons) + ")"
                       : what,
          infer::shortened_type(type),
          diff::saved_where(value.where),
          is_kept ? bytes_of(runtime, type) : "",
          value.why};
}

}  // namespace

std::string kept_table(Runtime& runtime, const std::string& name, const std::vector<diff::SavedValue>* saved) {
  if (!saved || saved->empty()) return "The gradient of " + name + " keeps nothing for its reverse sweep.\n";
  std::vector<Row> rows{{"line", "value", "type", "how", "bytes a turn", "why"}};
  for (const diff::SavedValue& value : *saved) {
    Row row = row_of(runtime, value);
    if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(std::move(row));
  }
  // The reasons are few and long: numbers in the table, the texts below it.
  std::vector<std::string> reasons;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    std::string& why = rows[i].back();
    if (why.empty()) continue;
    auto at = std::find(reasons.begin(), reasons.end(), why);
    if (at == reasons.end()) at = reasons.insert(at, why);
    why = "[" + std::to_string(at - reasons.begin() + 1) + "]";
  }
  std::array<std::size_t, 6> widths{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  std::string text = "The gradient of " + name + " needs in its reverse sweep:\n\n";
  for (const Row& row : rows) {
    std::string line = " ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - columns_of(row[i]), ' ');
      constexpr std::size_t numbers = 4;  // this column has its numbers at the right
      line += " " + (i == numbers ? blanks + row[i] : row[i] + blanks) + " ";
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  if (!reasons.empty()) text += "\n";
  for (std::size_t i = 0; i < reasons.size(); ++i) text += "  [" + std::to_string(i + 1) + "] " + reasons[i] + "\n";
  return text;
}

}  // namespace slope::explain
