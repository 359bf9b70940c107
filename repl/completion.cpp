#include "repl/completion.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "repl/latex.hpp"
#include "repl/line_screen.hpp"

namespace slope::repl {

namespace {

std::string common_prefix(const std::vector<std::string>& texts) {
  std::string prefix = texts.empty() ? "" : texts[0];
  for (const std::string& text : texts) {
    std::size_t same = 0;
    while (same < prefix.size() && same < text.size() && prefix[same] == text[same]) ++same;
    prefix.resize(same);
  }
  // Not half of a character.
  while (!prefix.empty() && prefix.size() < texts[0].size() &&
         (static_cast<unsigned char>(texts[0][prefix.size()]) & 0xc0) == 0x80)
    prefix.pop_back();
  return prefix;
}

// `\name` that ends at the cursor; npos when none does.
std::size_t latex_begin(std::string_view code, std::size_t cursor) {
  std::size_t at = cursor;
  while (at > 0) {
    const unsigned char c = static_cast<unsigned char>(code[at - 1]);
    if (c == '\\') return at - 1;
    const bool is_part = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
                         std::string_view("^_+-=()/!").find(static_cast<char>(c)) != std::string_view::npos;
    if (!is_part) return std::string_view::npos;
    --at;
  }
  return std::string_view::npos;
}

TabResult of_texts(std::size_t begin, std::string_view typed, const std::vector<std::string>& texts) {
  TabResult result;
  result.begin = begin;
  result.text = texts.empty() ? std::string(typed) : common_prefix(texts);
  if (result.text.size() < typed.size()) result.text = std::string(typed);
  if (texts.size() > 1 && result.text == typed) result.choices = texts;
  return result;
}

}  // namespace

Candidates candidates_at(Engine& engine, std::string_view code, std::size_t cursor) {
  cursor = std::min(cursor, code.size());
  Candidates found;
  if (const std::size_t begin = latex_begin(code, cursor); begin != std::string_view::npos) {
    const std::string_view typed = code.substr(begin, cursor - begin);
    found.begin = begin;
    found.is_latex = true;
    std::vector<std::string> names = latex_names(typed);
    if (!latex_character(typed).empty()) names = {std::string(typed)};
    for (std::string& name : names) found.all.push_back({std::move(name), tools::CompletionKind::name});
    if (!names.empty()) return found;
  }
  tools::Completions completions = tools::complete(engine, code, cursor);
  return {completions.begin, false, std::move(completions.candidates)};
}

TabResult complete_at(Engine& engine, std::string_view code, std::size_t cursor) {
  cursor = std::min(cursor, code.size());
  const Candidates found = candidates_at(engine, code, cursor);
  const std::string_view typed = code.substr(found.begin, cursor - found.begin);
  if (found.is_latex && found.all.size() == 1) return {found.begin, latex_character(found.all[0].text), {}};
  std::vector<std::string> texts, methods;
  for (const tools::Completion& candidate : found.all)
    (candidate.kind == tools::CompletionKind::method ? methods : texts).push_back(candidate.text);
  TabResult result = of_texts(found.begin, typed, texts);
  if (found.is_latex)
    for (std::string& name : result.choices) name += " " + latex_character(name);
  if (texts.empty()) result.choices = std::move(methods);
  return result;
}

TabResult complete_path_at(std::string_view line, std::size_t cursor) {
  namespace fs = std::filesystem;
  const std::string_view before = line.substr(0, cursor);
  const std::size_t space = before.find_last_of(" \t'\"=");
  const std::size_t word = space == std::string_view::npos ? 0 : space + 1;
  const std::size_t slash = before.rfind('/');
  const std::size_t begin = slash == std::string_view::npos || slash < word ? word : slash + 1;
  const std::string_view typed = before.substr(begin);
  std::string folder(before.substr(word, begin - word));
  if (folder.starts_with("~/"))
    if (const char* home = std::getenv("HOME")) folder = home + folder.substr(1);
  std::vector<std::string> names;
  std::error_code failed;
  for (auto at = fs::directory_iterator(folder.empty() ? "." : folder, failed);
       !failed && at != fs::directory_iterator(); at.increment(failed)) {
    std::string name = at->path().filename().string();
    if (!name.starts_with(typed) || (typed.empty() && name[0] == '.')) continue;
    std::error_code unknown;
    if (at->is_directory(unknown)) name += '/';
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return of_texts(begin, typed, names);
}

std::string choices_text(const std::vector<std::string>& choices, std::size_t columns, std::size_t rows) {
  std::size_t widest = 1;
  for (const std::string& choice : choices) widest = std::max(widest, text_columns(choice));
  const std::size_t across = std::max<std::size_t>(1, (columns + 1) / (widest + 2));
  const std::size_t down = (choices.size() + across - 1) / across;
  const std::size_t shown = std::min(down, std::max<std::size_t>(rows, 1));
  std::string text;
  for (std::size_t row = 0; row < shown; ++row) {
    std::string line;
    for (std::size_t column = 0; column < across; ++column) {
      const std::size_t index = column * down + row;
      if (index >= choices.size()) break;
      if (column) line.append(column * (widest + 2) - text_columns(line), ' ');
      line += choices[index];
    }
    text += line + "\n";
  }
  if (shown < down) text += "… " + std::to_string(choices.size()) + " in all\n";
  return text;
}

}  // namespace slope::repl
