// A stand-in for a value on paths that do not make one. It passes through block arguments, tapes and records, and no
// code looks at it. But the interpreter moves it, and so needs a valid value there: records are unpacked before it is
// known which path was taken.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "lang/runtime/runtime.hpp"

namespace slope::diff {

// One of each type, made when first wanted: `nothing` where the type lets it be, an empty array, a struct of such.
class StandIns {
 public:
  explicit StandIns(Runtime& runtime) : runtime_(runtime), made_(runtime.heap) {}
  Value of(const Type* t);  // undefined where there is no such thing
  // That it was made here; `nothing` is not told from others.
  bool contains(Value v) const { return v.pointer && objects_.contains(v.object); }

 private:
  Value array(const DataType* d);
  Value structure(const DataType* d);
  Value keep(const DataType* d, Object* made);

  Runtime& runtime_;
  Rooted made_;
  std::unordered_map<const Type*, Value> known_;
  std::unordered_set<const Object*> objects_;
};

}  // namespace slope::diff
