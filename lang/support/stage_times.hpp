// Where the processor time of compiling goes, by stage and by function: what the command prints at its end with
// SLOPE_TIMES=1. Stages nest, because inference infers and optimises callees on its way; each counts its own time only.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace slope {

class StageTimes {
 public:
  enum class Stage : std::uint8_t { inference, differentiation, optimisation, emission, llvm, cache, linking, count_ };

  void begin(Stage stage, std::string function);
  void end();
  // A table of the functions that took longest, and the sums.
  std::string report() const;

 private:
  static std::uint64_t now();  // of this thread's processor time, in nanoseconds
  void charge();               // the time since `since_` to the stage that runs

  struct Running {
    Stage stage;
    std::string function;
  };
  struct Times {
    std::array<std::uint64_t, static_cast<std::size_t>(Stage::count_)> of{};
    std::uint64_t compiled = 0;  // how often LLVM was called
  };
  std::vector<Running> running_;
  std::unordered_map<std::string, Times> by_function_;
  std::uint64_t since_ = 0;
};

// The time of its life counts for a stage, if anyone wants to know.
class StageTime {
 public:
  template <class Name>  // makes the function's name, where it is wanted
  StageTime(StageTimes* times, StageTimes::Stage stage, const Name& name) : times_(times) {
    if (times_) times_->begin(stage, name());
  }
  ~StageTime() {
    if (times_) times_->end();
  }
  StageTime(const StageTime&) = delete;

 private:
  StageTimes* times_;
};

}  // namespace slope
