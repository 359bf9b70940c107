// Where a script spends its time: samples of the stack of Slope functions, with lines, in both tiers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "slope/engine.hpp"

namespace slope::api {

struct ProfileOptions {
  double interval = 0.001;                     // seconds of the thread's processor time from sample to sample
  std::size_t memory = std::size_t{64} << 20;  // bytes for samples; when they are full, further samples are lost
};

// Where the time was spent: in a line of a function, or in a part of the engine that works for it ("[compiler]",
// "[garbage collector]": without file, line 0).
struct ProfileFrame {
  std::string function;
  std::string file;
  std::uint32_t line = 0;
  bool compiled = false;  // machine code; otherwise the interpreter
  bool library = false;   // of Slope's own library
};

struct ProfileStack {
  std::vector<std::uint32_t>
      frames;  // places in Profile::frames, outermost first; inlined calls are frames of their own
  std::uint64_t samples = 0;
};

struct Profile {
  std::vector<ProfileFrame> frames;  // each one once
  std::vector<ProfileStack> stacks;  // each one once, in the order first seen; without frames: no function was running
  std::vector<std::uint32_t> sequence;  // the stack of each sample, in the order of time
  std::uint64_t samples = 0;
  std::uint64_t lost = 0;  // because the memory was full
  double interval = 0;
};

// Profiles an engine made with Options::profile, on the thread that uses it, but not its workspaces on other threads.
// While a profile runs, the process's action for SIGPROF is the profiler's. Returns an error when another profile runs
// on this thread, when the engine keeps no records, or when this is not Linux.
Result<void> start_profile(Engine& engine, const ProfileOptions& options = {});
// On the same thread. Returns an error when none was started.
Result<Profile> stop_profile(Engine& engine);

}  // namespace slope::api
