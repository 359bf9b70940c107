// What the engine knows of the types and modules that may become unreachable: see unreachable.cpp.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "lang/runtime/runtime_impl.hpp"

namespace slope {

class Unreachable {
 public:
  // From now on: what is there already stays.
  explicit Unreachable(Runtime::Impl& runtime);
  bool is_due() const;
  void free();

  // The name of a type, or a module.
  struct Entity {
    TypeName* name = nullptr;
    Module* module = nullptr;
    bool reached = false;
  };
  using Entities = std::vector<Entity*>;
  class Walk;

 private:
  void note_new();
  Entity* of(const void* name_or_module) const;
  bool may_go(const Module* module) const;
  Entities parts_of(const Type* type) const;
  void add(Entities& to, const Type* type) const;
  void add_value(Entities& to, Value v) const;
  bool is_dead(const Type* type) const;
  const Entities* mentioned_by(const Type* type) const;
  bool free_all(Walk& walk);
  void free_methods(const std::unordered_set<const Method*>& methods,
                    const std::unordered_set<const Specialization*>& specializations);
  void forget_dead();
  void forget_name(TypeName* name);
  void forget_module(Module* module);

  Runtime::Impl& impl_;
  Runtime& runtime_;
  std::unordered_map<const void*, std::unique_ptr<Entity>> entities_;  // by their names and modules
  std::unordered_map<const Type*, Entities> mentions_;                 // of types that mention some
  std::size_t modules_known_;
  std::size_t names_known_;
  std::uint32_t newest_type_;
  std::size_t next_look_;  // when there are so many names
};

}  // namespace slope
