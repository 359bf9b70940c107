// Machine code on disk: found again, never believed when it is damaged, and no more than a matter of speed.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "slope/engine.hpp"

using slope::Engine;
using slope::Options;
using slope::Tier;

namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "slope-cache-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()));
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  std::string cache() const { return (path / "cache").string(); }

  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(cache())) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      found[entry.path().string()] = {std::istreambuf_iterator<char>(file), {}};
    }
    return found;
  }
};

// Calls between functions, errors with traces, tables of numbers, objects of the library, a gradient.
const char* const script = R"(
struct Body; m::Float64; at::Vector{Float64}; end
energy(bodies) = sum(0.5 * b.m * sum(abs2, b.at) for b in bodies)
@noinline check(x) = x < 0 ? error("negative: $x") : sqrt(x)
const weights = [0.5, 1.5, 2.5]
total(x) = check(energy([Body(w, [x, 2x]) for w in weights]))
kind(n) = n == 1 ? "one" : n == 2 ? "two" : n == 3 ? "three" : "many"
answer(x) = join([kind(2), string(total(x)), string(gradient(total, x)[1]), string(Dict(:a => x)[:a])], " ")
)";

std::string answer(const std::string& cache, double x = 2.0) {
  Engine engine(Options{.tier = Tier::compile, .cache = cache});
  engine.run(script, "cached.slope").value();
  const auto failed = engine.run("check(-1.0)");
  REQUIRE(!failed.ok());
  CHECK(failed.error().summary.find("negative: -1.0") != std::string::npos);
  CHECK(failed.error().message.find("cached.slope:4") != std::string::npos);
  return engine.run("answer(" + std::to_string(x) + ")").value().to<std::string>().value();
}

}  // namespace

TEST_CASE("Machine code is found again, and answers as it did") {
  Folder folder;
  const std::string expected = answer("");
  CHECK(answer(folder.cache()) == expected);
  const auto made = folder.files();
  if (made.empty()) return;  // no machine code in this build
  CHECK(answer(folder.cache()) == expected);
  CHECK(folder.files() == made);  // nothing was compiled
  CHECK(answer(folder.cache(), 3.0) == answer("", 3.0));
}

TEST_CASE("Damaged machine code is made again") {
  Folder folder;
  const std::string expected = answer(folder.cache());
  const auto whole = folder.files();
  std::size_t turn = 0;
  for (const auto& [path, bytes] : whole) {
    std::string damaged = bytes;
    switch (turn++ % 5) {
      case 0:
        damaged.back() ^= 1;
        break;
      case 1:
        damaged[damaged.size() / 2] ^= 0x40;
        break;
      case 2:
        damaged.resize(damaged.size() / 2);
        break;
      case 3:
        damaged.clear();
        break;
      case 4:
        damaged[20] ^= 8;  // in the hash
        break;
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
  }
  CHECK(answer(folder.cache()) == expected);
  CHECK(folder.files() == whole);
}

TEST_CASE("Two engines may fill one cache at once") {
  Folder folder;
  const std::string expected = answer("");
  std::vector<std::string> answers(2);
  std::vector<std::thread> threads;
  for (std::string& each : answers) threads.emplace_back([&] { each = answer(folder.cache()); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& each : answers) CHECK(each == expected);
  for (const auto& [path, bytes] : folder.files()) CHECK(path.find("XXXXXX") == std::string::npos);
}

TEST_CASE("A cache that cannot be used is none") {
  Folder folder;
  const std::string expected = answer("");
  fs::create_directory(folder.cache());
  REQUIRE(chmod(folder.cache().c_str(), 0777) == 0);  // others may have put code there
  CHECK(answer(folder.cache()) == expected);
  CHECK(folder.files().empty());
  const std::string file = (folder.path / "file").string();
  std::ofstream(file) << "no folder";
  CHECK(answer(file) == expected);
  CHECK(answer(file + "/below") == expected);
  CHECK(answer("/proc/slope-cache") == expected);
}

TEST_CASE("What is defined again is not taken from the cache") {
  Folder folder;
  for (int turn = 0; turn < 2; ++turn) {
    Engine engine(Options{.tier = Tier::compile, .cache = folder.cache()});
    engine.run("@noinline leaf(x) = x + 1\nouter(x) = leaf(x) * 2\nconst limit = 10\nover(x) = x > limit").value();
    CHECK(engine.run("outer(3)").value().to<int>().value() == 8);
    engine.run("leaf(x) = x + 2").value();
    CHECK(engine.run("outer(3)").value().to<int>().value() == 10);
    CHECK(!engine.run("over(7)").value().to<bool>().value());
  }
  // Another constant, the same text.
  Engine engine(Options{.tier = Tier::compile, .cache = folder.cache()});
  engine.run("const limit = 5\nover(x) = x > limit").value();
  CHECK(engine.run("over(7)").value().to<bool>().value());
}

TEST_CASE("Large code is made when the interpreter has spent some time on it") {
  Folder folder;
  std::string large = "large(x) = begin\n";
  for (int i = 0; i < 400; ++i) large += "x = 0.5 * x + sin(x + " + std::to_string(i) + ")\n";
  large += "x\nend";
  Engine interpreted(Options{.tier = Tier::interpret});
  interpreted.run(large).value();
  setenv("SLOPE_QUICK_CODE", "off", 1);  // which is made at once
  Engine engine(Options{.cache = folder.cache()});
  engine.run(large).value();
  const auto call = [&](const std::string& calls) {
    const double made = engine.run(calls).value().to<double>().value();
    CHECK(made == interpreted.run(calls).value().to<double>().value());
  };
  call("s = 0.0; for i in 1:100; global s += large(0.1 * i); end; s");
  unsetenv("SLOPE_QUICK_CODE");
  if (!fs::exists(folder.cache())) return;  // no machine code in this build
  const auto largest = [&] {
    std::size_t most = 0;
    for (const auto& [path, bytes] : folder.files()) most = std::max(most, bytes.size());
    return most;
  };
  CHECK(largest() < 10'000);
  call("s = 0.0; for i in 1:1500; global s += large(0.1 * i); end; s");
  CHECK(largest() > 10'000);
}
