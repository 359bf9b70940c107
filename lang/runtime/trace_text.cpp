// What is told of an exception that nobody caught: its message, the line of the program that it came from with a caret,
// and the calls that were running.
#include <algorithm>
#include <span>
#include <utility>

#include "lang/runtime/call_text.hpp"
#include "lang/runtime/runtime_impl.hpp"
#include "lang/support/diagnostic.hpp"
#include "lang/support/tuning.hpp"

namespace slope {

namespace {

// Frames of one call of a recursion, several where functions call each other in a ring.
constexpr std::size_t longest_ring = 12;
// A ring is folded when its frames stand there so many times.
constexpr std::size_t least_turns = 3;

class TraceText {
 public:
  TraceText(const Runtime& runtime, std::span<const TraceEntry> trace)
      : runtime_(runtime), trace_(trace), width_(std::to_string(trace.size()).size() + 3) {}

  std::string run() {
    struct Part {
      std::size_t begin, end;
      std::size_t ring, turns;  // what follows the part is the ring's frames so many more times
    };
    std::vector<Part> parts;
    std::size_t shown = 0;
    for (std::size_t at = 0; at < trace_.size();) {
      const auto [ring, turns] = ring_at(at);
      const std::size_t length = turns ? ring : 1;
      parts.push_back({at, at + length, ring, turns ? turns - 1 : 0});
      shown += length;
      at += turns ? ring * turns : 1;
    }
    // Still too many: the middle is left out.
    constexpr std::size_t head = tuning::trace_head, tail = tuning::trace_tail;
    const bool is_long = shown > head + tail + 1;
    std::size_t number = 0;
    std::size_t left_out = 0;
    for (const Part& part : parts) {
      const bool hidden = is_long && number >= head && number + tail < shown;
      number += part.end - part.begin;
      if (hidden) {
        left_out += (part.end - part.begin) + part.ring * part.turns;
        continue;
      }
      if (left_out > 0) text_ += "\n ... " + grouped(std::exchange(left_out, 0)) + " frames left out ...";
      for (std::size_t i = part.begin; i < part.end; ++i) frame(i);
      if (part.turns > 0) {
        const bool is_cut = trace_.size() >= tuning::trace_entries &&
                            part.begin + part.ring * (part.turns + 1) + longest_ring > trace_.size();
        text_ += "\n" + std::string(width_, ' ') + "… " +
                 (part.ring == 1 ? "this frame" : "these " + std::to_string(part.ring) + " frames") +
                 (is_cut ? " at least " : " ") + grouped(part.turns) + " more " + (part.turns == 1 ? "time" : "times");
      }
    }
    return text_;
  }

 private:
  bool same(const TraceEntry& a, const TraceEntry& b) const {  // as they are shown
    return a.method == b.method && (a.types == b.types || !a.types || !b.types) && a.span.file == b.span.file &&
           (a.span.begin == b.span.begin || runtime_.sources.line_of(a.span) == runtime_.sources.line_of(b.span));
  }

  // The shortest ring that begins here, and its turns; none: 0 turns.
  std::pair<std::size_t, std::size_t> ring_at(std::size_t begin) const {
    for (std::size_t ring = 1; ring <= longest_ring && begin + ring * least_turns <= trace_.size(); ++ring) {
      std::size_t end = begin + ring;
      while (end < trace_.size() && same(trace_[end], trace_[end - ring])) ++end;
      const std::size_t turns = (end - begin) / ring;
      if (turns >= least_turns) return {ring, turns};
    }
    return {0, 0};
  }

  // 4,094
  static std::string grouped(std::size_t count) {
    std::string digits = std::to_string(count);
    for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
    return digits;
  }

  void frame(std::size_t i) {
    const TraceEntry& entry = trace_[i];
    const std::string number = "[" + std::to_string(i + 1) + "]";
    text_ +=
        "\n " + std::string(width_ - 1 - std::min(width_ - 1, number.size()), ' ') + number + " " + frame_text(entry);
    if (entry.span.file == 0) return;
    const Module* module = entry.method ? entry.method->module : nullptr;
    text_ += "\n" + std::string(width_, ' ') + "@ " + (module && module->name ? module->name->name + " " : "") +
             runtime_.sources.file(entry.span.file).name() + ":" + std::to_string(runtime_.sources.line_of(entry.span));
  }

  const Runtime& runtime_;
  std::span<const TraceEntry> trace_;
  std::size_t width_;
  std::string text_;
};

}  // namespace

std::string error_place_text(const Runtime& runtime, std::span<const TraceEntry> trace) {
  for (const TraceEntry& entry : trace) {
    if (entry.span.file == 0) continue;
    const std::string& name = runtime.sources.file(entry.span.file).name();
    if (name.starts_with("Base/") || name == "<host function>") continue;
    const std::string text = render_place(entry.span, runtime.sources);
    return "\n" + text.substr(0, text.size() - 1);
  }
  return "";
}

std::string trace_text(const Runtime& runtime, std::span<const TraceEntry> trace) {
  return "\nStacktrace:" + TraceText(runtime, trace).run();
}

}  // namespace slope
