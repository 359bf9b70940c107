// What scripts may reach outside their engine: nothing unless the host grants it.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

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

TEST_CASE("Links do not lead out of what is granted") {
  TemporaryFolder folder;
  fs::create_symlink(folder("closed/not_there"), folder("open/dangling"));
  fs::create_symlink(folder("closed/secret.txt"), folder("open/inner/out"));
  Options options;
  options.capabilities.read = {folder("open")};
  options.capabilities.write = {folder("open")};
  Engine engine(options);
  engine.set("folder", folder("")).value();
  // What does not exist yet is not made through a link.
  CHECK_FALSE(engine.run("write(folder * \"open/dangling\", \"x\")").ok());
  CHECK_FALSE(engine.run("touch(folder * \"open/dangling\")").ok());
  CHECK_FALSE(engine.run("mkpath(folder * \"open/dangling/a\")").ok());
  CHECK_FALSE(fs::exists(folder("closed/not_there")));
  // A tree is copied with its links, and not with what they lead to; removing it leaves that alone.
  CHECK(engine.run("cp(folder * \"open/inner\", folder * \"open/copy\")").ok());
  CHECK(fs::is_symlink(folder("open/copy/out")));
  CHECK(refused(engine, "read(folder * \"open/copy/out\", String)"));
  CHECK(engine.run("rm(folder * \"open/copy\"; recursive=true)").ok());
  CHECK(engine.run("rm(folder * \"open/inner/out\")").ok());
  CHECK_FALSE(fs::exists(folder("open/copy")));
  CHECK(fs::exists(folder("closed/secret.txt")));
  CHECK(engine.run("rm(folder * \"open/link\")").ok());
  CHECK(fs::exists(folder("closed/secret.txt")));
}

TEST_CASE("A folder that becomes a link between check and use does not lead out") {
  TemporaryFolder folder;
  fs::create_directories(folder("open/swapped"));
  fs::create_symlink(folder("closed"), folder("open/other"));
  folder.write("open/swapped/secret.txt", "mine");
  std::atomic<bool> done{false};
  // Exchanges the folder and the link as fast as it can.
  std::thread swapper([&] {
    while (!done)
      renameat2(AT_FDCWD, folder("open/swapped").c_str(), AT_FDCWD, folder("open/other").c_str(), RENAME_EXCHANGE);
  });
  Options options;
  options.capabilities.read = {folder("open")};
  options.capabilities.write = {folder("open")};
  Engine engine(options);
  engine.set("folder", folder("")).value();
  const auto text = engine.eval<std::string>(R"(
    seen = Set{String}()
    for i in 1:3000
      try
        push!(seen, read(folder * "open/swapped/secret.txt", String))
      catch
      end
      try
        write(folder * "open/swapped/made", "x")
      catch
      end
    end
    join(sort(collect(seen)), ",")
  )");
  done = true;
  swapper.join();
  REQUIRE(text.ok());
  CHECK((text.value() == "mine" || text.value().empty()));
  CHECK_FALSE(fs::exists(folder("closed/made")));
}

TEST_CASE("A file that cannot be written keeps what it had") {
  TemporaryFolder folder;
  Options options;
  options.capabilities.read = {folder("open")};
  options.capabilities.write = {folder("open")};
  Engine engine(options);
  engine.set("file", folder("open/a.txt")).value();
  engine.set("pipe", folder("open/pipe")).value();
  folder.write("open/long", std::string(10000, 'y'));
  options.capabilities.read = options.capabilities.write = {"/"};
  Engine everything(options);
  for (Engine* each : {&engine, &everything}) each->set("long", folder("open/long")).value();
  everything.set("file", folder("open/a.txt")).value();
  // As on a full disk: no file may be longer than so many bytes.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit short_files = before;
  short_files.rlim_cur = 4096;
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &short_files);
  CHECK_FALSE(engine.run("write(file, \"x\"^10000)").ok());
  CHECK_FALSE(engine.run("open(io -> print(io, \"x\"^10000), file, \"a\")").ok());
  CHECK_FALSE(engine.run("cp(long, file; force=true)").ok());
  CHECK_FALSE(everything.run("cp(long, file; force=true)").ok());
  CHECK_FALSE(everything.run("cp(long, file * \".new\")").ok());
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  CHECK(engine.eval<std::string>("read(file, String)").value() == "open text");
  CHECK(engine.eval<int>("length(readdir(dirname(file)))").value() == 4);
  CHECK(engine.eval<std::string>("write(file, \"new\"); read(file, String)").value() == "new");
  // A pipe that nobody reads or writes does not block.
  REQUIRE(mkfifo(folder("open/pipe").c_str(), 0600) == 0);
  CHECK(engine.eval<std::string>("read(pipe, String)").value().empty());
  CHECK_FALSE(engine.run("write(pipe, \"x\")").ok());
}

TEST_CASE("In a folder that is read-only, files are errors and stay") {
  TemporaryFolder folder;
  Options options;
  options.capabilities.read = options.capabilities.write = {"/"};
  Engine engine(options);
  engine.set("folder", folder("open")).value();
  REQUIRE(engine.run("read(folder * \"/a.txt\", String)").ok());
  fs::permissions(folder("open"), fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                                      fs::perms::others_exec | fs::perms::group_read | fs::perms::group_exec);
  const uid_t me = geteuid();
  if (me == 0) REQUIRE(seteuid(65534) == 0);  // nobody: to root nothing is read-only
  for (const char* text : {"write(folder * \"/new\", \"x\")", "mkdir(folder * \"/new\")", "rm(folder * \"/a.txt\")",
                           "mv(folder * \"/a.txt\", folder * \"/new\")", "cp(folder * \"/a.txt\", folder * \"/new\")",
                           "touch(folder * \"/new\")", "mkpath(folder * \"/new/a\")",
                           "open(io -> print(io, 1), folder * \"/new\", \"w\")"}) {
    CAPTURE(text);
    CHECK_FALSE(engine.run(text).ok());
  }
  if (me == 0) REQUIRE(seteuid(0) == 0);
  fs::permissions(folder("open"), fs::perms::owner_all);
  CHECK(engine.eval<std::string>("read(folder * \"/a.txt\", String)").value() == "open text");
  CHECK(engine.eval<bool>("!ispath(folder * \"/new\")").value());
}

TEST_CASE("No memory of the process may be written and run") {
  Options options;
  options.tier = slope::Tier::compile;
  Engine engine(options);
  REQUIRE(engine.run("f(x) = sin(x) + x; f(1.0); gradient(f, 1.0)").ok());
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    CAPTURE(line);
    const std::string rights = line.substr(line.find(' ') + 1, 4);
    CHECK_FALSE((rights[1] == 'w' && rights[2] == 'x'));
  }
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

TEST_CASE("Links are known as links, and a walk through folders does not follow them") {
  TemporaryFolder folder;
  fs::create_symlink("..", folder("open/inner/loop"));
  const std::string open = '"' + folder("open") + '"';
  for (const bool all : {true, false}) {
    Options options;
    if (all) options.capabilities = Capabilities::all();
    if (!all) options.capabilities.read = {folder("open")};
    Engine engine(options);
    CHECK(engine.eval<bool>("islink(" + open + " * \"/inner/loop\") && !islink(" + open + " * \"/a.txt\")").value());
    CHECK(engine.eval<bool>("isdir(stat(" + open + " * \"/inner/loop\"))").value());
    CHECK(refused(engine, "stat(" + open + " * \"/link\")") != all);
    fs::remove(folder("open/link"));
    CHECK(engine.eval<std::int64_t>("length(collect(walkdir(" + open + ")))").value() == 2);
    fs::create_symlink(folder("closed"), folder("open/link"));
  }
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
