// A game's update loop. The rules are a script, reloaded when its file changes: what the author breaks, with a syntax
// error or a loop without end, costs a message and a frame, and the old rules go on.
#include <slope/engine.hpp>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace fs = std::filesystem;
using Step = slope::Function<double(double, double, double)>;

namespace {

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The rules in use, and their file.
class Rules {
 public:
  explicit Rules(fs::path file) : file_(std::move(file)), engine_(options()) { load(); }

  // Looks at the file; takes what it says now. False: it says nothing usable.
  bool reload_if_changed() {
    if (fs::last_write_time(file_) == seen_) return true;
    return load();
  }
  bool update(double& y, double& v, double dt) {
    auto new_y = (*height_)(y, v, dt);
    auto new_v = (*speed_)(y, v, dt);
    if (!new_y.ok()) return complain(new_y.error());
    if (!new_v.ok()) return complain(new_v.error());
    y = new_y.value();
    v = new_v.value();
    return true;
  }

 private:
  static slope::Options options() {
    slope::Options options;
    options.fuel = 100'000;  // for each call; a frame has better things to do than to wait for a script
    options.heap_limit = std::size_t{64} << 20;
    return options;
  }
  bool load() {
    seen_ = fs::last_write_time(file_);
    auto loaded = engine_.run(text_of(file_), file_.filename().string());
    if (!loaded.ok()) return complain(loaded.error());
    auto height = engine_.function<double(double, double, double)>("height");
    auto speed = engine_.function<double(double, double, double)>("speed");
    if (!height.ok()) return complain(height.error());
    if (!speed.ok()) return complain(speed.error());
    height_ = height.value();
    speed_ = speed.value();
    return true;
  }
  static bool complain(const slope::Error& error) {
    std::printf("  rules: %s (line %u)\n", error.summary.c_str(), error.position.line);
    return false;
  }

  fs::path file_;
  fs::file_time_type seen_;
  slope::Engine engine_;
  std::optional<Step> height_, speed_;
};

}  // namespace

int main() {
  // A copy, which the "author" edits while the game runs.
  const fs::path file = fs::temp_directory_path() / "slope-game-rules.slope";
  fs::copy_file(RULES, file, fs::copy_options::overwrite_existing);
  const std::string original = text_of(file);
  Rules rules(file);

  double y = 10, v = 0;
  int edits = 0;
  auto edit = [&](const std::string& text) {
    std::ofstream(file) << text;
    fs::last_write_time(file, fs::file_time_type::clock::now() + std::chrono::seconds(++edits));
  };
  int failed_frames = 0;
  for (int frame = 0; frame < 240; ++frame) {
    if (frame == 60) edit("height(y, v, dt) = (y\n");                            // does not parse
    if (frame == 61) edit("speed(y, v, dt) = (while true; y += dt; end; y)\n");  // has no end
    if (frame == 62) edit(original + "speed(y, v, dt) = v - 1.62 * dt\n");       // the moon, without a floor
    if (!rules.reload_if_changed()) ++failed_frames;
    if (!rules.update(y, v, 1.0 / 60)) ++failed_frames;
    if (frame % 60 == 59) std::printf("frame %3d: height %.3f, speed %+.3f\n", frame + 1, y, v);
  }
  fs::remove(file);
  return failed_frames == 2 ? 0 : 1;
}
