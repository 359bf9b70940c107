// What scripts may reach outside their engine: nothing unless the host grants it.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "slope/engine.hpp"

using slope::Capabilities;
using slope::Engine;
using slope::Options;

namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() : path_(fs::temp_directory_path() / ("slope-capabilities-" + std::to_string(getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_ / "open" / "inner");
    fs::create_directories(path_ / "closed");
    write("open/a.txt", "open text");
    write("open/inner/b.slope", "b = 20\n");
    write("closed/secret.txt", "secret");
    write("closed/secret.slope", "secret = 1\n");
    fs::create_symlink(path_ / "closed", path_ / "open" / "link");
  }
  ~TemporaryFolder() { fs::remove_all(path_); }
  std::string operator()(const std::string& name) const { return (path_ / name).string(); }
  void write(const std::string& name, const std::string& text) { std::ofstream(path_ / name) << text; }

 private:
  fs::path path_;
};

bool refused(Engine& engine, const std::string& text) {
  auto result = engine.run(text);
  return !result.ok() && result.error().summary.starts_with("not permitted: ");
}

}  // namespace

TEST_CASE("An engine grants nothing by itself") {
  TemporaryFolder folder;
  Engine engine;
  const std::string file = '"' + folder("open/a.txt") + '"', fresh = '"' + folder("open/new") + '"';
  for (const std::string& text : {"read(" + file + ", String)",
                                  "open(" + file + ")",
                                  "isfile(" + file + ")",
                                  "filesize(" + file + ")",
                                  "readlines(" + file + ")",
                                  "readdir(\"" + folder("open") + "\")",
                                  "write(" + fresh + ", \"x\")",
                                  "open(f -> print(f, 1), " + fresh + ", \"w\")",
                                  "mkdir(" + fresh + ")",
                                  "mkpath(" + fresh + ")",
                                  "rm(" + file + ")",
                                  "rm(\"" + folder("open") + "\"; recursive=true)",
                                  "mv(" + file + ", " + fresh + "; force=true)",
                                  "cp(" + file + ", " + fresh + "; force=true)",
                                  "touch(" + fresh + ")",
                                  std::string("pwd()"),
                                  "include(" + file + ")",
                                  std::string("time()"),
                                  std::string("time_ns()"),
                                  std::string("sleep(0.001)"),
                                  std::string("readline()"),
                                  std::string("@elapsed 1 + 1")}) {
    CAPTURE(text);
    CHECK(refused(engine, text));
  }
  CHECK_FALSE(fs::exists(folder("open/new")));
  setenv("SLOPE_TEST_VARIABLE", "seen", 1);
  CHECK(engine.eval<bool>("isempty(ENV) && !haskey(ENV, \"SLOPE_TEST_VARIABLE\")").value());
  // Random numbers, but the same everywhere.
  Engine other;
  CHECK(engine.eval<double>("rand()").value() == other.eval<double>("rand()").value());
  CHECK(engine.run("read(" + file + ", String)").error().summary.find("capability `read`") != std::string::npos);
  // The refusal does not say what was asked for.
  CHECK(engine.run("pwd()").error().message.find(fs::current_path().string()) == std::string::npos);
}

TEST_CASE("Files are granted by folder, links followed") {
  TemporaryFolder folder;
  Options options;
  options.capabilities.read = {folder("open")};
  options.capabilities.write = {folder("open/inner")};
  Engine engine(options);
  engine.set("folder", folder("")).value();
  CHECK(engine.eval<std::string>("read(folder * \"open/a.txt\", String)").value() == "open text");
  CHECK(engine.eval<int>("include(folder * \"open/inner/b.slope\"); b").value() == 20);
  CHECK(engine.eval<bool>("write(folder * \"open/inner/made\", \"x\"); isfile(folder * \"open/inner/made\")").value());
  for (const char* text :
       {"read(folder * \"closed/secret.txt\", String)", "read(folder * \"open/../closed/secret.txt\", String)",
        "read(folder * \"open/link/secret.txt\", String)", "readdir(folder)", "isfile(folder * \"closed/secret.txt\")",
        "include(folder * \"closed/secret.slope\")", "write(folder * \"open/made\", \"x\")",
        "mv(folder * \"open/inner/made\", folder * \"open/made\")", "cp(folder * \"open/a.txt\", folder * \"made\")",
        "write(folder * \"open/inner/../made\", \"x\")", "read(\"/etc/passwd\", String)"}) {
    CAPTURE(text);
    CHECK(refused(engine, text));
  }
  // A name that only begins like a granted one.
  fs::create_directories(folder("open2"));
  folder.write("open2/a.txt", "x");
  CHECK(refused(engine, "read(folder * \"open2/a.txt\", String)"));
}

TEST_CASE("What is granted works") {
  Options options;
  options.capabilities = Capabilities::all();
  Engine engine(options);
  setenv("SLOPE_TEST_VARIABLE", "seen", 1);
  CHECK(engine.eval<std::string>("ENV[\"SLOPE_TEST_VARIABLE\"]").value() == "seen");
  CHECK(engine.eval<bool>("time() > 1e9 && time_ns() > 0").value());
  CHECK(engine.eval<bool>("isdir(\"/\")").value());
  Engine other(options);
  CHECK(engine.eval<double>("rand()").value() != other.eval<double>("rand()").value());
}

TEST_CASE("Included files come from the host when it says so") {
  Options options;
  options.load_source = [](const std::string& path) -> slope::Result<std::string> {
    if (path.ends_with("numbers.slope")) return std::string("eleven = 11\n");
    slope::Error error;
    error.message = "there is no module of this name";
    return error;
  };
  Engine engine(options);
  CHECK(engine.eval<int>("include(\"numbers.slope\"); eleven").value() == 11);
  auto missing = engine.run("include(\"others.slope\")");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().summary.find("there is no module of this name") != std::string::npos);
}
