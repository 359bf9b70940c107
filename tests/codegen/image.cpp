// The machine code that Slope is installed with: found by its key, and not at all when the file is damaged.
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/BLAKE3.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "codegen/object_cache.hpp"

using namespace slope;
using namespace slope::codegen;

namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "slope-image-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()));
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
};

// An image with one object.
std::string image_of(const CodeKey& key, const std::string& object) {
  CodeImageHead head{};
  std::memcpy(head.magic, code_image_magic, sizeof head.magic);
  head.count = 1;
  head.bytes = sizeof head + sizeof(CodeImageEntry) + object.size();
  CodeImageEntry entry{};
  entry.key = key;
  entry.hash = llvm::BLAKE3::hash<32>({reinterpret_cast<const std::uint8_t*>(object.data()), object.size()});
  entry.offset = sizeof head + sizeof entry;
  entry.bytes = object.size();
  std::string bytes(head.bytes, '\0');
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, &entry, sizeof entry);
  std::memcpy(bytes.data() + entry.offset, object.data(), object.size());
  return bytes;
}

std::string write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path.string();
}

}  // namespace

TEST_CASE("The library's machine code is found by its key") {
  const Folder folder;
  llvm::LLVMContext context;
  const llvm::Module module("slope", context);
  const llvm::Module other("another", context);
  // Any cache makes the same keys.
  const auto keys = ObjectCache::open((folder.path / "cache").string(), "", "machine", 1 << 20);
  REQUIRE(keys);
  const CodeKey content = keys->content(module);
  const CodeKey key = ObjectCache::key(content, CodeEffort::full);
  const std::string object = "not quite an object";
  const std::string whole = image_of(key, object);

  const auto cache = ObjectCache::open("", write(folder.path / "whole", whole), "machine", 1 << 20);
  REQUIRE(cache);
  // What has had all passes serves where fewer are wanted, but not where none are.
  for (const CodeEffort level : {CodeEffort::full, CodeEffort::passes}) {
    const auto found = cache->find(content, level);
    REQUIRE(found);
    CHECK(found->getBuffer() == object);
  }
  CHECK(!cache->find(content, CodeEffort::none));
  CHECK(!cache->find(cache->content(other), CodeEffort::full));
  const auto elsewhere = ObjectCache::open("", write(folder.path / "whole", whole), "another machine", 1 << 20);
  REQUIRE(elsewhere);
  CHECK(!elsewhere->find(elsewhere->content(module), CodeEffort::full));
  cache->keep(key, "nowhere to write");
  CHECK(cache->find(content, CodeEffort::full)->getBuffer() == object);
}

TEST_CASE("A damaged image has no code") {
  const Folder folder;
  const CodeKey content{1, 2, 3};
  const CodeKey key = ObjectCache::key(content, CodeEffort::full);
  const std::string whole = image_of(key, "an object");
  const auto finds = [&](const std::string& bytes) {
    const auto cache = ObjectCache::open("", write(folder.path / "image", bytes), "machine", 1 << 20);
    return cache && cache->find(content, CodeEffort::full);
  };
  CHECK(finds(whole));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 0x10;
    CHECK(!finds(damaged));
    CHECK(!finds(whole.substr(0, i)));
  }
  CHECK(!finds(whole + "x"));
  CHECK(!ObjectCache::open("", (folder.path / "missing").string(), "machine", 1 << 20));
  CHECK(!ObjectCache::open("", "", "machine", 1 << 20));
}

TEST_CASE("A damaged file of the cache is a miss") {
  const Folder folder;
  const CodeKey content{4, 5, 6};
  const CodeKey key = ObjectCache::key(content, CodeEffort::full);
  const auto cache = ObjectCache::open((folder.path / "cache").string(), "", "machine", 1 << 20);
  REQUIRE(cache);
  const std::string object(1000, 'o');
  cache->keep(key, object);
  const auto found = cache->find(content, CodeEffort::full);
  REQUIRE(found);
  CHECK(found->getBuffer() == object);
  fs::path path;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path))
    if (entry.is_regular_file()) path = entry.path();
  std::ifstream file(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  REQUIRE(whole.size() > object.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= static_cast<char>(1 << i % 8);
    write(path, damaged);
    CHECK(!cache->find(content, CodeEffort::full));
    write(path, whole.substr(0, i));
    CHECK(!cache->find(content, CodeEffort::full));
  }
  write(path, whole + "x");
  CHECK(!cache->find(content, CodeEffort::full));
  cache->keep(key, object);
  CHECK(cache->find(content, CodeEffort::full));
}

TEST_CASE("A disk that takes no more leaves no part of a file") {
  const Folder folder;
  const auto cache = ObjectCache::open((folder.path / "cache").string(), "", "machine", 1 << 20);
  REQUIRE(cache);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
  rlimit few = old;
  few.rlim_cur = 100;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &few) == 0);
  const CodeKey content{7};
  cache->keep(ObjectCache::key(content, CodeEffort::full), std::string(1000, 'o'));
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  CHECK(!cache->find(content, CodeEffort::full));
  for (const auto& entry : fs::recursive_directory_iterator(folder.path)) CHECK(!entry.is_regular_file());
}
