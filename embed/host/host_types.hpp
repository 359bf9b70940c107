// Types of the host in an engine: their objects, and which script values hold them (slope/type.hpp).
//
// A script's object is a mutable struct. It holds the index of the C++ object in the table, then for each field with
// derivatives an array over the object's own memory. The index is checked whenever C++ is called with it: a script that
// invents an index reaches another object of the type, or none. When the collector finds the struct and all arrays of
// its fields dead, the object is destroyed at the next use of the table, because destructors run outside of
// collections.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lang/memory/heap.hpp"
#include "slope/type.hpp"

namespace slope::api::detail {

class EngineState;

struct HostType : TypeDescription {
  const DataType* type = nullptr;
  struct Property {  // beside the fields
    std::string name;
    bool can_be_set;
  };
  std::vector<Property> properties;
};

class HostTypes final : public ObjectTable {
 public:
  explicit HostTypes(EngineState& engine) : engine_(engine) {}
  ~HostTypes();
  HostTypes(const HostTypes&) = delete;

  void* find(std::int64_t place, const TypeKey* key) override;
  std::int64_t add(void* object, const TypeKey* key) override;
  // The script's object for one that was added; false: an error is pending.
  bool wrap(std::int64_t place, const TypeKey* key, slope::Value& v);
  HostType* find(const TypeKey* key) const;
  HostType* find(const Type* type) const;
  HostType& add(TypeDescription description);
  void close();  // the engine ends: destroys everything
  void destroy_dead();

 private:
  struct Place {
    void* object = nullptr;
    const HostType* type = nullptr;
    Object* holder = nullptr;  // the script's; null while there is none yet
    bool is_let_go = false;    // there is no more, but perhaps arrays of its fields
    std::vector<ArrayObject*> arrays;
  };
  struct Dead {
    void* object;
    const HostType* type;
  };
  void forget_dead(const Survivors& survivors);

  EngineState& engine_;
  std::vector<std::unique_ptr<HostType>> types_;
  std::vector<Place> places_;
  std::vector<std::int64_t> free_;
  std::vector<Dead> dead_;
  int tracer_ = -1;
};

const char* wanted(Kind kind);  // "a real number", for messages

}  // namespace slope::api::detail
