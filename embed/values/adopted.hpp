// Memory that the engine adopted from the host (Engine::adopt). When the collector finds the array dead, the engine
// releases the memory at the end of the current use. So a release runs outside of collections, and may use the engine.
#pragma once

#include <functional>
#include <vector>

#include "lang/memory/heap.hpp"

namespace slope::api::detail {

class EngineState;

class AdoptedArrays {
 public:
  explicit AdoptedArrays(EngineState& engine) : engine_(engine) {}
  ~AdoptedArrays() { close(); }
  AdoptedArrays(const AdoptedArrays&) = delete;
  void add(ArrayObject* array, double* memory, std::function<void(double*)> release);
  bool has_dead() const { return !dead_.empty(); }
  void release_dead();
  void close();  // the engine ends: releases all

 private:
  struct Adopted {
    ArrayObject* array;
    double* memory;
    std::function<void(double*)> release;
  };
  static void release(Adopted& adopted);

  EngineState& engine_;
  std::vector<Adopted> arrays_;
  std::vector<Adopted> dead_;
  int tracer_ = -1;
};

}  // namespace slope::api::detail
