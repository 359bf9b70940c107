// Run while building: packs machine code that training scripts needed (tools/training) into the library's image
// (code_image.hpp).
//
//   slope_pack_code <folder of a cache> <image> <list>...
//
// A list is what a script wrote to standard error with SLOPE_DUMP=cache: which keys it asked for. The folder may have more,
// of earlier builds. A key whose file is not whole is left out; it is compiled when it is needed.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "codegen/code_image.hpp"

namespace {

using namespace slope::codegen;

constexpr std::size_t most_bytes = std::size_t{25} << 20;
constexpr char file_head[] = "slope object 1\n";  // with its zero byte; object_cache.cpp

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool to_key(const std::string& hex, CodeKey& key) {
  if (hex.size() != 2 * key.size()) return false;
  for (std::size_t i = 0; i < key.size(); ++i) {
    unsigned byte = 0;
    if (std::sscanf(hex.c_str() + 2 * i, "%2x", &byte) != 1) return false;
    key[i] = static_cast<std::uint8_t>(byte);
  }
  return true;
}

// "; cache made NAME KEY"; the name may have spaces.
void add_keys(const std::string& list, std::set<std::string>& keys) {
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("; cache ", 0) == 0) keys.insert(line.substr(line.rfind(' ') + 1));
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    std::cerr << "usage: slope_pack_code <folder of a cache> <image> <list>...\n";
    return 2;
  }
  const std::filesystem::path folder = arguments[1];
  std::set<std::string> keys;
  for (int i = 3; i < count; ++i) add_keys(read(arguments[i]), keys);

  std::vector<CodeImageEntry> entries;
  std::string objects;
  for (const std::string& hex : keys) {  // in ascending order, like the keys
    CodeImageEntry entry{};
    if (!to_key(hex, entry.key)) continue;
    const std::string file = read(folder / hex.substr(0, 2) / hex.substr(2));
    constexpr std::size_t head = sizeof file_head;
    if (file.size() <= head + entry.hash.size() || std::memcmp(file.data(), file_head, head) != 0) continue;
    std::memcpy(entry.hash.data(), file.data() + head, entry.hash.size());
    objects.resize((objects.size() + 15) & ~std::size_t{15});
    entry.offset = objects.size();
    entry.bytes = file.size() - head - entry.hash.size();
    objects.append(file, head + entry.hash.size());
    entries.push_back(entry);
  }

  CodeImageHead head{};
  std::memcpy(head.magic, code_image_magic, sizeof head.magic);
  head.count = entries.size();
  const std::size_t begin = (sizeof head + entries.size() * sizeof(CodeImageEntry) + 15) & ~std::size_t{15};
  for (CodeImageEntry& entry : entries) entry.offset += begin;
  head.bytes = begin + objects.size();
  if (head.bytes > most_bytes) {
    std::cerr << "slope_pack_code: the image has " << head.bytes << " bytes, more than " << most_bytes
              << ": train with less (tools/training)\n";
    return 1;
  }
  // Whole or not at all: engines may have the old one mapped.
  const std::string temporary = std::string(arguments[2]) + ".new";
  {
    std::ofstream out(temporary, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&head), sizeof head);
    out.write(reinterpret_cast<const char*>(entries.data()),
              static_cast<std::streamsize>(entries.size() * sizeof(CodeImageEntry)));
    out.write("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
              static_cast<std::streamsize>(begin - sizeof head - entries.size() * sizeof(CodeImageEntry)));
    out.write(objects.data(), static_cast<std::streamsize>(objects.size()));
    if (!out.flush()) {
      std::cerr << "slope_pack_code: cannot write " << temporary << '\n';
      return 1;
    }
  }
  std::filesystem::rename(temporary, arguments[2]);
  std::cout << head.count << " functions, " << head.bytes / 1024 << " KiB\n";
  return 0;
}
