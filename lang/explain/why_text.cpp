// What the walks found, as the prompt prints it.
#include <algorithm>

#include "lang/explain/why.hpp"
#include "lang/explain/why_costs.hpp"
#include "lang/runtime/call_text.hpp"

namespace slope::infer {

std::string why_text(Runtime& runtime, const Specialization& target, const Why& found, bool color) {
  const auto painted = [&](const std::string& text, const char* code) {
    return color ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
  };
  std::string call = (target.method->name ? target.method->name->name : std::string("#anonymous")) + "(";
  for (std::size_t i = 1; i < target.types->params.size(); ++i)
    call += (i > 1 ? ", ::" : "::") + to_string(target.types->params[i]);
  call += ")";
  const std::string type = to_string(found.result);
  std::string text = call + " gives " + painted(type, found.exact ? "36" : "91;1");
  if (found.kind.empty()) return text + ": every type in it is exact.\n";
  text += found.exact ? ", which is exact; a value inside is not.\n" : ", which is not exact.\n";
  text += "\nBecause " + found.reason + ":\n";
  std::size_t shown = 0;
  constexpr std::size_t most = 12;
  std::string last_place;
  for (const WhyStep& step : found.steps) {
    const SourceFile& file = runtime.sources.file(step.span.file);
    const std::uint32_t line = runtime.sources.line_of(step.span);
    const std::string place = file.name() + ":" + std::to_string(line);
    const std::string typed =
        "      " + step.what + " :: " + (step.type ? painted(to_string(step.type), "93;1") : std::string("?")) + "\n";
    if (place == last_place) {
      text += typed;
      continue;
    }
    last_place = place;
    if (++shown > most) {
      text += "  …\n";
      break;
    }
    text += "  " + painted(place, "90") + "  ";
    std::string_view source = file.line(line);
    const std::size_t begin = source.find_first_not_of(" \t");
    source.remove_prefix(std::min(begin, source.size()));
    text += std::string(source) + "\n" + typed;
  }
  text += "\nTo change it: " + found.advice + ".\n";
  if (found.dynamic.empty()) return text;
  text += "\nCalls whose method is looked up when they run:\n";
  shown = 0;
  for (const WhyStep& step : found.dynamic) {
    if (++shown > most) {
      text += "  …\n";
      break;
    }
    text +=
        "  " +
        painted(runtime.sources.file(step.span.file).name() + ":" + std::to_string(runtime.sources.line_of(step.span)),
                "90") +
        "  " + step.what + "\n";
  }
  return text;
}

std::string costs_text(Runtime& runtime, const Specialization& target, const std::vector<CostSite>& sites, bool dynamic,
                       bool color) {
  const auto painted = [&](const std::string& text, const char* code) {
    return color ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
  };
  const auto place = [&](Span span) {
    return runtime.sources.file(span.file).name() + ":" + std::to_string(runtime.sources.line_of(span));
  };
  const auto often = [&](const CostSite& site) { return dynamic || site.always; };
  const std::string does = dynamic ? "looks up methods when it runs" : "allocates";
  if (sites.empty()) return call_text(target) + ": nothing in it " + does + ".\n";
  const bool always = std::any_of(sites.begin(), sites.end(), often);
  std::string text =
      call_text(target) + " " + (always ? does + ", " : "may allocate in some calls, not in each, ") +
      (sites.size() == 1 ? std::string("in one place") : "in " + std::to_string(sites.size()) + " places") + ":\n";
  std::string last;
  const CostSite* first = &sites[0];
  for (const CostSite& site : sites) {
    // What costs most is what is done often.
    if (std::pair(often(site), site.in_loop) > std::pair(often(*first), first->in_loop)) first = &site;
    const Span at = site.way.front();
    if (place(at) != last) {
      last = place(at);
      std::string_view line = runtime.sources.file(at.file).line(runtime.sources.line_of(at));
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
      text += "\n  " + painted(last, "90") + "  " + std::string(line) + "\n";
    }
    text += "      " + (site.what.empty() ? "" : painted(site.what, "93;1") + ": ") + site.reason +
            (site.in_loop ? " (in a loop)" : "") + (always && !often(site) ? " (not in each call)" : "") + "\n";
    if (site.way.size() > 1 && place(site.way.back()) != last)
      text += "        " + painted("at " + place(site.way.back()), "90") + "\n";
  }
  text += "\nTo change it";
  if (sites.size() > 1) text += ", first at " + place(first->way.front());
  return text + ": " + first->advice + ".\n";
}

}  // namespace slope::infer
