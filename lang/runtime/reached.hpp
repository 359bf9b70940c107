// What unreachable.cpp and unused_texts.cpp are told by those who hold something.
#pragma once

#include "lang/support/source.hpp"

namespace slope {

struct CodeInstance;
struct Specialization;
namespace ir {
struct Function;
}

class Reached {
 public:
  // Any word in here may be the address of a type, a module, a binding, a method, a specialisation or code.
  virtual void words(const void* from, const void* to) = 0;
  virtual void word(const void* address) = 0;
  virtual void function(const ir::Function& function) = 0;
  virtual void code(const CodeInstance& code) = 0;
  virtual void specialization(const Specialization& target) = 0;
  // A text that errors may show (lang/runtime/unused_texts.cpp); those of a tree when `wants_places` says so, once.
  virtual void place(Span) {}
  virtual bool wants_places(const void* /*of_tree*/) { return false; }

 protected:
  ~Reached() = default;
};

}  // namespace slope
