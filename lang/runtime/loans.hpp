// Arrays that the host lent for one call (ArrayFlags::array_borrowed) may not outlive it. Calls of functions that are
// known to keep none of their arguments need no check. Other calls have a LoanWatch: while Context::loans points at
// one, every operation that stores a reference first passes it what it is about to store.
//
// A store into something that certainly outlives the call (a global, an object that globals or the host can reach) is
// refused where it happens. What a new object holds is checked when the call ends: whether something can then reach the
// object.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lang/runtime/frames.hpp"
#include "lang/types/object.hpp"

namespace slope {

struct Context;

class LoanWatch {
 public:
  explicit LoanWatch(Context& ctx);  // and Context::loans points at it until it dies
  ~LoanWatch();
  LoanWatch(const LoanWatch&) = delete;

  // `v` is about to be stored in the global, or in the object, which `where` does, innermost first. False: a lent array
  // would outlive the call; an ArgumentError is pending.
  bool may_store_in_global(Value v, const std::string& name);
  bool may_store(Value v, const Object* into, const std::vector<TraceEntry>& where);
  // The same for an object that is being made, or a value that the host is given.
  void note(Value v, const std::vector<TraceEntry>& where);

  // A lent array that somebody still reaches, now that the call is over, or that its result holds.
  struct Kept {
    const ArrayObject* array = nullptr;          // null: none
    std::vector<std::vector<TraceEntry>> where;  // the stores that were seen of it; empty: the result holds it
  };
  Kept kept(Value result) const;

 private:
  using Arrays = std::unordered_set<const Object*>;
  bool refuse(const std::string& place);
  const Object* reached(const Arrays& wanted) const;  // one of them that is reached but by what the call itself made

  Context& ctx_;
  LoanWatch* outer_;
  int first_root_;  // roots from this one on belong to activations inside the call
  std::unordered_map<const Object*, std::vector<std::vector<TraceEntry>>> stores_;  // by array
  Arrays made_inside_;  // objects found not to outlive the call, as things stood
  int looks_ = 0;
};

}  // namespace slope
