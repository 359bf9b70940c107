// Methods that no source stands for (derive::Synthetic), all of an engine.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lang/derive/compiler.hpp"

namespace slope {

class SyntheticFunctions {
 public:
  explicit SyntheticFunctions(Runtime& runtime);
  ~SyntheticFunctions();
  SyntheticFunctions(const SyntheticFunctions&) = delete;

  // A fresh one, or one of the same name and parameters whose code was freed.
  derive::Synthetic& make(const std::string& name, std::span<const Type* const> parameter_types,
                          const ir::Function* like);
  Specialization* of_callee(Value callee) const;  // null: there is none
  // All code of these will be freed: they are used again.
  void forget(const std::unordered_set<const Specialization*>& emptied);
  void destroy(const std::unordered_set<const Specialization*>& gone);  // without code; of types that nobody can reach
  void each(const std::function<void(const Specialization& made)>& look) const {
    for (const auto& one : all_) look(*one->target);
  }

 private:
  using Key = std::pair<std::string, std::vector<const Type*>>;  // name and parameters but the first

  Runtime& runtime_;
  std::uint64_t next_serial_ = 1;
  std::vector<std::unique_ptr<derive::Synthetic>> all_;
  std::unordered_map<const Type*, Specialization*> by_callee_;
  std::map<Key, std::vector<derive::Synthetic*>> spare_;
  std::vector<std::shared_ptr<TapeLayout>> old_layouts_;  // of what was freed: open tapes may have them
  int root_key_ = 0;
};

}  // namespace slope
