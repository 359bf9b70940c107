#include "codegen/object_cache.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/Support/BLAKE3.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>
#include <vector>

#include "codegen/code_source_hash.hpp"
#include "lang/support/tuning.hpp"

namespace slope::codegen {

namespace {

namespace fs = std::filesystem;

// Of every file: this, the hash of what follows, the object.
constexpr llvm::StringLiteral file_head = "slope object 1\n\0";
constexpr std::size_t hash_size = 32;

std::array<std::uint8_t, hash_size> hash_of(llvm::StringRef bytes) {
  return llvm::BLAKE3::hash<hash_size>({bytes.bytes_begin(), bytes.size()});
}

bool is_ours_alone(const std::string& folder) {
  struct stat info;
  return stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool write_all(int file, llvm::StringRef bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes = bytes.drop_front(static_cast<std::size_t>(n));
  }
  return true;
}

bool make_folder(const std::string& folder) {
  if (folder.empty()) return false;
  std::error_code ignored;
  fs::create_directories(fs::path(folder).parent_path(), ignored);
  mkdir(folder.c_str(), 0700);
  return is_ours_alone(folder);
}

// Null where it is not what it should be: cut short, of another version.
std::unique_ptr<llvm::MemoryBuffer> map_image(const std::string& path) {
  if (path.empty()) return nullptr;
  auto mapped = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!mapped) return nullptr;
  const std::uint64_t bytes = (*mapped)->getBufferSize();
  if (bytes < sizeof(CodeImageHead)) return nullptr;
  const auto* head = reinterpret_cast<const CodeImageHead*>((*mapped)->getBufferStart());
  if (std::memcmp(head->magic, code_image_magic, sizeof code_image_magic) != 0 || head->bytes != bytes ||
      head->count > (bytes - sizeof *head) / sizeof(CodeImageEntry))
    return nullptr;
  return std::move(*mapped);
}

}  // namespace

std::unique_ptr<ObjectCache> ObjectCache::open(const std::string& folder, const std::string& image,
                                               const std::string& identity, std::uint64_t most_bytes) {
  const bool has_folder = make_folder(folder);
  std::unique_ptr<llvm::MemoryBuffer> mapped = map_image(image);
  if (!has_folder && !mapped) return nullptr;
  return std::unique_ptr<ObjectCache>(new ObjectCache(has_folder ? folder : std::string(), std::move(mapped),
                                                      identity + '\n' + std::to_string(code_source_hash), most_bytes));
}

std::string ObjectCache::image_path() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&map_image), &info) || !info.dli_fname) return {};
  return (fs::path(info.dli_fname).parent_path() / code_image_name).string();
}

ObjectCache::Key ObjectCache::content(const llvm::Module& module) const {
  llvm::SmallVector<char, 0> text;
  write(module, text);
  return content(llvm::StringRef(text.data(), text.size()));
}

ObjectCache::Key ObjectCache::content(llvm::StringRef bitcode) const {
  llvm::BLAKE3 hash;
  hash.update(identity_);
  hash.update(bitcode);
  return hash.final<hash_size>();
}

void ObjectCache::write(const llvm::Module& module, llvm::SmallVectorImpl<char>& bitcode) {
  llvm::raw_svector_ostream stream(bitcode);
  llvm::WriteBitcodeToFile(module, stream);
}

ObjectCache::Key ObjectCache::key(const Key& content, CodeEffort level) {
  llvm::BLAKE3 hash;
  hash.update(content);
  hash.update(std::to_string(static_cast<int>(level)));
  return hash.final<hash_size>();
}

ObjectCache::Key ObjectCache::quick_key(const Key& content) {
  llvm::BLAKE3 hash;
  hash.update(content);
  hash.update("quick");
  return hash.final<hash_size>();
}

std::string ObjectCache::path(const Key& key) const {
  const std::string name = llvm::toHex(key, /*LowerCase=*/true);
  return folder_ + '/' + name.substr(0, 2) + '/' + name.substr(2);
}

std::unique_ptr<llvm::MemoryBuffer> ObjectCache::find(const Key& content, CodeEffort level) const {
  if (level != CodeEffort::none)
    if (auto found = find_in_image(key(content, CodeEffort::full))) return found;
  return find_in_folder(key(content, level));
}

std::unique_ptr<llvm::MemoryBuffer> ObjectCache::find_in_image(const Key& key) const {
  if (!image_) return nullptr;
  const char* begin = image_->getBufferStart();
  const auto* head = reinterpret_cast<const CodeImageHead*>(begin);
  const std::span entries(reinterpret_cast<const CodeImageEntry*>(head + 1), head->count);
  const auto found =
      std::lower_bound(entries.begin(), entries.end(), key,
                       [](const CodeImageEntry& entry, const Key& wanted) { return entry.key < wanted; });
  if (found == entries.end() || found->key != key) return nullptr;
  if (found->offset > head->bytes || found->bytes > head->bytes - found->offset) return nullptr;
  const llvm::StringRef object(begin + found->offset, found->bytes);
  if (hash_of(object) != found->hash) return nullptr;
  return llvm::MemoryBuffer::getMemBuffer(object, "slope", /*RequiresNullTerminator=*/false);
}

std::unique_ptr<llvm::MemoryBuffer> ObjectCache::find_in_folder(const Key& key) const {
  if (folder_.empty()) return nullptr;
  const std::string file = path(key);
  // Read, not mapped: the file may change after its hash was checked.
  auto read =
      llvm::MemoryBuffer::getFile(file, /*IsText=*/false, /*RequiresNullTerminator=*/false, /*IsVolatile=*/true);
  if (!read) return nullptr;
  llvm::StringRef bytes = (*read)->getBuffer();
  if (!bytes.consume_front(file_head) || bytes.size() < hash_size) return nullptr;
  const llvm::StringRef object = bytes.drop_front(hash_size);
  if (std::memcmp(hash_of(object).data(), bytes.data(), hash_size) != 0) return nullptr;
  utimes(file.c_str(), nullptr);  // drop_oldest goes by the time of the last use
  return llvm::MemoryBuffer::getMemBufferCopy(object, "slope");
}

void ObjectCache::keep(const Key& key, llvm::StringRef object) {
  if (folder_.empty()) return;
  const std::string file = path(key);
  mkdir(fs::path(file).parent_path().c_str(), 0700);
  // Whole or not at all: other processes see the file under its name when it is complete.
  std::string temporary = file + ".XXXXXX";
  const int out = mkostemp(temporary.data(), O_CLOEXEC);
  if (out < 0) return;
  const auto hash = hash_of(object);
  const bool whole = write_all(out, file_head) &&
                     write_all(out, {reinterpret_cast<const char*>(hash.data()), hash.size()}) &&
                     write_all(out, object);
  if (close(out) != 0 || !whole || std::rename(temporary.c_str(), file.c_str()) != 0) {
    unlink(temporary.c_str());
    return;
  }
  if ((written_ += object.size()) < most_bytes_ / tuning::cache_looks) return;
  written_ = 0;
  drop_oldest();
}

void ObjectCache::drop_oldest() const {
  struct File {
    fs::path path;
    fs::file_time_type used;
    std::uint64_t bytes;
  };
  std::vector<File> files;
  std::uint64_t all = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator i(folder_, error), end; !error && i != end; i.increment(error)) {
    std::error_code gone;
    if (!i->is_regular_file(gone) || gone) continue;
    File file{i->path(), i->last_write_time(gone), i->file_size(gone)};
    if (gone) continue;
    all += file.bytes;
    files.push_back(std::move(file));
  }
  if (all <= most_bytes_) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.used < b.used; });
  for (const File& file : files) {
    if (all <= most_bytes_ / 4 * 3) break;
    std::error_code ignored;
    if (fs::remove(file.path, ignored)) all -= file.bytes;
  }
}

}  // namespace slope::codegen
