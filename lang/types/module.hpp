// Modules and their bindings. A Binding is one global name of one module; IR refers to bindings by pointer. Name
// resolution happens once, when a name is first used: own binding, explicit imports, then exports of `using` modules.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lang/types/value.hpp"

namespace slope {

struct Binding {
  Module* module = nullptr;
  const Symbol* name = nullptr;
  Value value;                     // undefined until assigned
  bool is_constant = false;        // `const`, functions, types, modules
  const Type* declared = nullptr;  // of `global x::T`; null: Any
  bool exported = false;
  bool open_to_methods = false;  // definitions of this name elsewhere add methods, without an import: rrule, frule
  std::uint64_t version = 0;     // bumped when a constant is redefined (ends compiled code that used it)
  // The standard library's definition of this name is made when the name is first looked up (postponed.cpp).
  static constexpr std::uint32_t none_waiting = ~0u;
  std::uint32_t waiting = none_waiting;
};

// The names of the standard library, which are entered into Base and defined when they are first looked up. The
// Runtime's (lang/runtime/postponed.cpp).
class LibraryNames {
 public:
  virtual Binding* enter_library_name(const Symbol* name) = 0;  // null: no name of the library, or already there
  virtual void enter_all_library_names() = 0;
  virtual bool library_exports(std::string_view name) const = 0;
  virtual void make_postponed(Binding& binding) = 0;

 protected:
  ~LibraryNames() = default;
};

struct Module {
  const Symbol* name = nullptr;
  Module* parent = nullptr;
  std::unordered_map<const Symbol*, Binding*> bindings;  // own ones, and imported ones that belong to other modules
  std::vector<Module*> usings;                           // their exports are seen here
  Module* inherits = nullptr;                            // all names of this one are seen here (Core in Base)
  std::unordered_set<const Symbol*> exported_names;      // also of names that are not defined yet, or were imported
  bool exports(const Symbol* wanted) const;
  // Makes what bindings wait for. Only Base `has_library`: names that nobody has looked up yet.
  LibraryNames* library = nullptr;
  bool has_library = false;
  // Before all bindings are walked through, this enters the rest. They mean what they did; nothing is defined by it.
  void enter_all() const;

  // The binding that `name` means here, or null. Does not create.
  Binding* find(const Symbol* name) const { return find(name, 0); }
  // The binding in `bindings`, or null; what waits for it is made.
  Binding* own(const Symbol* name) const;
  Binding* entered(const Symbol* name) const;  // the same, but what waits for it still waits

 private:
  Binding* find(const Symbol* name, int depth) const;
};

}  // namespace slope
