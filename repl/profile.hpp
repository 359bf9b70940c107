// `slope profile FILE`: where a script spends its time.
#pragma once

#include <string>

#include "slope/profile.hpp"

namespace slope::repl {

// Runs the command with what follows `profile`. Returns the exit status.
int run_profile(int count, char** arguments);

// A table of the script's lines: what is spent in the library counts for the line that called it.
std::string profile_table(const Profile& profile);
// A line a stack, outermost function first, and its samples: what flame graph programs read. Machine code is marked
// `_[j]`, as they expect it.
std::string collapsed_stacks(const Profile& profile);
// One HTML page with a flame graph and the table.
std::string flame_html(const Profile& profile, const std::string& name);
std::string json_text(const std::string& text);  // quoted
// https://www.speedscope.app/file-format-schema.json, one sampled profile in order of time.
std::string speedscope_json(const Profile& profile, const std::string& name);

}  // namespace slope::repl
