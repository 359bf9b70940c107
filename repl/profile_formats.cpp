#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "repl/profile.hpp"

namespace slope::repl {

namespace {

std::string percent(std::uint64_t part, std::uint64_t whole) {
  char text[16];
  std::snprintf(text, sizeof text, "%6.1f%%",
                whole ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0);
  return text;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string place_of(const ProfileFrame& frame) {
  return frame.file.empty() ? "" : frame.file + ":" + std::to_string(frame.line);
}

// Lines of the files that the table shows.
class Sources {
 public:
  std::string line(const std::string& file, std::uint32_t number) {
    auto [at, fresh] = files_.try_emplace(file);
    if (fresh) {
      std::ifstream in(file);
      for (std::string text; std::getline(in, text);) at->second.push_back(text);
    }
    if (number == 0 || number > at->second.size()) return "";
    const std::string& text = at->second[number - 1];
    const std::size_t begin = text.find_first_not_of(" \t");
    return begin == std::string::npos ? "" : text.substr(begin);
  }

 private:
  std::map<std::string, std::vector<std::string>> files_;
};

}  // namespace

std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", byte);
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string profile_table(const Profile& profile) {
  // By function and line; whichever tier ran it.
  using Key = std::tuple<std::string, std::string, std::uint32_t>;
  struct Row {
    std::uint64_t self = 0;
    std::uint64_t total = 0;
    std::uint64_t compiled = 0;  // of self
  };
  std::map<Key, Row> rows;
  std::uint64_t elsewhere = 0;
  for (const ProfileStack& stack : profile.stacks) {
    std::set<Key> seen;
    const ProfileFrame* innermost = nullptr;
    bool compiled = false;
    for (const std::uint32_t index : stack.frames) {
      const ProfileFrame& frame = profile.frames[index];
      compiled = frame.compiled;
      if (frame.library) continue;
      innermost = &frame;
      const Key key{frame.function, frame.file, frame.line};
      if (seen.insert(key).second) rows[key].total += stack.samples;
    }
    if (!innermost) {
      elsewhere += stack.samples;
      continue;
    }
    Row& row = rows[{innermost->function, innermost->file, innermost->line}];
    row.self += stack.samples;
    if (compiled) row.compiled += stack.samples;
  }
  std::vector<std::pair<Key, Row>> order(rows.begin(), rows.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second.self, a.second.total) > std::tie(b.second.self, b.second.total);
  });
  std::string text = std::to_string(profile.samples) + " samples, one every " + number(profile.interval * 1000) +
                     " ms of processor time";
  if (profile.lost) text += "; " + std::to_string(profile.lost) + " more were lost, there was no memory for them";
  text += "\n";
  if (profile.samples == 0) return text;
  text += "\n   self    total  machine code\n";
  Sources sources;
  constexpr std::size_t most_rows = 40;
  std::size_t shown = 0;
  for (const auto& [key, row] : order) {
    if (++shown > most_rows) {
      text += "  … " + std::to_string(order.size() - most_rows) + " more lines\n";
      break;
    }
    const auto& [function, file, line] = key;
    text += percent(row.self, profile.samples) + " " + percent(row.total, profile.samples) + "  " +
            (row.self ? percent(row.compiled, row.self) : std::string("       ")) + "  " + function;
    if (!file.empty()) text += "  " + file + ":" + std::to_string(line);
    if (const std::string source = sources.line(file, line); !source.empty()) text += "  " + source;
    text += "\n";
  }
  if (elsewhere)
    text += percent(elsewhere, profile.samples) + "  no line of the script was running: loading, parsing\n";
  return text;
}

std::string collapsed_stacks(const Profile& profile) {
  std::string text;
  for (const ProfileStack& stack : profile.stacks) {
    std::string line;
    for (const std::uint32_t index : stack.frames) {
      const ProfileFrame& frame = profile.frames[index];
      std::string name = frame.function;
      if (const std::string place = place_of(frame); !place.empty()) name += " (" + place + ")";
      std::replace(name.begin(), name.end(), ';', ',');  // it parts the frames
      std::replace(name.begin(), name.end(), '\n', ' ');
      line += (line.empty() ? "" : ";") + name + (frame.compiled ? "_[j]" : "");
    }
    text += (line.empty() ? "[no script]" : line) + " " + std::to_string(stack.samples) + "\n";
  }
  return text;
}

std::string speedscope_json(const Profile& profile, const std::string& name) {
  std::string frames, samples, weights;
  for (const ProfileFrame& frame : profile.frames) {
    frames += frames.empty() ? "\n" : ",\n";
    frames += "{\"name\":" + json_text(frame.function + (frame.compiled || frame.file.empty() ? "" : " (interpreted)"));
    if (!frame.file.empty()) frames += ",\"file\":" + json_text(frame.file) + ",\"line\":" + std::to_string(frame.line);
    frames += "}";
  }
  for (std::size_t i = 0; i < profile.sequence.size();) {
    std::size_t end = i;
    while (end < profile.sequence.size() && profile.sequence[end] == profile.sequence[i]) ++end;
    samples += samples.empty() ? "\n[" : ",\n[";
    const std::vector<std::uint32_t>& stack = profile.stacks[profile.sequence[i]].frames;
    for (std::size_t k = 0; k < stack.size(); ++k) samples += (k ? "," : "") + std::to_string(stack[k]);
    samples += "]";
    weights += (weights.empty() ? "" : ",") + number(static_cast<double>(end - i) * profile.interval);
    i = end;
  }
  const double whole = static_cast<double>(profile.sequence.size()) * profile.interval;
  return "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":" +
         json_text("slope " + std::string(version())) + ",\"name\":" + json_text(name) +
         ",\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[" + frames +
         "]},\n\"profiles\":[{\"type\":\"sampled\",\"name\":" + json_text(name) +
         ",\"unit\":\"seconds\",\"startValue\":0,\"endValue\":" + number(whole) + ",\n\"samples\":[" + samples +
         "],\n\"weights\":[" + weights + "]}]}\n";
}

}  // namespace slope::repl
