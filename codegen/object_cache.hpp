// Machine code on disk, by what it was made from: the text of a unit (unit.hpp), LLVM and the machine, and the sources of
// the code generator. A key is a hash of all of that, so nothing in the cache is ever out of date; what is no longer asked
// for goes when the folder grows above its limit.
//
// A file is not trusted to be whole: it carries a hash of its contents, and one that does not fit is a miss. It is trusted
// to be honest, because it is code that will run: a folder that somebody else may write to is not used.
//
// What was compiled when Slope was built (code_image.hpp) is looked up first. It is part of the installation and needs
// no permission, so an engine without a folder has it too.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Support/MemoryBuffer.h>

#include <atomic>
#include <memory>
#include <string>

#include "codegen/code_image.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::codegen {

class ObjectCache {
 public:
  using Key = CodeKey;

  // Makes the folder where it is missing. One that cannot be used is left alone: not made, another user's, or writable
  // by others. An empty name: no folder, no image. Null when there is neither.
  static std::unique_ptr<ObjectCache> open(const std::string& folder, const std::string& image,
                                           const std::string& identity, std::uint64_t most_bytes);
  // Beside the shared object that has this code in it; empty: there is none.
  static std::string image_path();
  // Of a module that has not been optimised yet.
  Key content(const llvm::Module& module) const;
  Key content(llvm::StringRef bitcode) const;
  static void write(const llvm::Module& module, llvm::SmallVectorImpl<char>& bitcode);
  // Of it, and of what will be done to it.
  static Key key(const Key& content, CodeEffort level);
  static Key quick_key(const Key& content);  // of quick code (quick_code.hpp)
  // Null: not there, or damaged. What Slope was built with has had all passes; it serves where fewer are wanted.
  std::unique_ptr<llvm::MemoryBuffer> find(const Key& content, CodeEffort level) const;
  std::unique_ptr<llvm::MemoryBuffer> find_quick(const Key& content) const {
    return find_in_folder(quick_key(content));
  }
  // Does nothing where the file cannot be written. Several processes and threads may keep the same key at once.
  void keep(const Key& key, llvm::StringRef object);

 private:
  ObjectCache(std::string folder, std::unique_ptr<llvm::MemoryBuffer> image, std::string identity,
              std::uint64_t most_bytes)
      : folder_(std::move(folder)), image_(std::move(image)), identity_(std::move(identity)), most_bytes_(most_bytes) {}
  std::string path(const Key& key) const;
  std::unique_ptr<llvm::MemoryBuffer> find_in_image(const Key& key) const;
  std::unique_ptr<llvm::MemoryBuffer> find_in_folder(const Key& key) const;
  void drop_oldest() const;

  std::string folder_;                         // empty: none
  std::unique_ptr<llvm::MemoryBuffer> image_;  // mapped; null: none
  std::string identity_;
  std::uint64_t most_bytes_;
  std::atomic<std::uint64_t> written_{0};  // since the folder was last looked through
};

}  // namespace slope::codegen
