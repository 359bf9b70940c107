// What unreachable.cpp is told by those who hold something.
#pragma once

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

 protected:
  ~Reached() = default;
};

}  // namespace slope
