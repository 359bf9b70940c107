#include "embed/values/adopted.hpp"

#include "embed/engine_state.hpp"
#include "slope/array.hpp"

namespace slope::api::detail {

void AdoptedArrays::release(Adopted& adopted) {
#if defined(__cpp_exceptions)
  try {
    if (adopted.release) adopted.release(adopted.memory);
  } catch (...) {  // it has nobody to tell
  }
#else
  if (adopted.release) adopted.release(adopted.memory);
#endif
}

void AdoptedArrays::add(ArrayObject* array, double* memory, std::function<void(double*)> release) {
  if (tracer_ < 0)
    tracer_ = engine_.runtime.heap.add_weak_tracer([this](const Survivors& survivors) {
      std::erase_if(arrays_, [&](Adopted& adopted) {
        if (survivors.alive(adopted.array)) return false;
        dead_.push_back(std::move(adopted));
        return true;
      });
    });
  arrays_.push_back({array, memory, std::move(release)});
}

void AdoptedArrays::release_dead() {
  while (!dead_.empty()) {  // a release may use the engine, and collect
    Adopted last = std::move(dead_.back());
    dead_.pop_back();
    release(last);
  }
}

void AdoptedArrays::close() {
  if (tracer_ >= 0) engine_.runtime.heap.remove_weak_tracer(tracer_);
  tracer_ = -1;
  release_dead();
  std::vector<Adopted> arrays = std::move(arrays_);
  arrays_.clear();
  for (Adopted& adopted : arrays) release(adopted);
}

}  // namespace slope::api::detail

namespace slope::api {

Result<Value> Engine::adopt_data(const detail::Datum& array, std::function<void(double*)> release) {
  if (const Error* why = unusable()) return *why;
  if (array.size != 0 && !array.data) return detail::engine_error("adopt: the memory is null", ErrorKind::conversion);
  detail::EngineState& engine = *state_;
  detail::Entry entry(engine);
  const std::size_t n = detail::dimensions_of(array.kind);
  std::array<std::int64_t, 7> dims;
  for (std::size_t k = 0; k < n; ++k)
    dims[k] = static_cast<std::int64_t>(array.extents ? array.extents[k] : array.size);
  auto* memory = static_cast<double*>(const_cast<void*>(array.data));
  ArrayObject* made = engine.runtime.heap.borrow_array(engine.float_arrays[n], memory, {dims.data(), n});
  if (!made) {
    engine.ctx.out_of_memory();
    return engine.failure();
  }
  made->flags = array_shared;  // it is not taken back at the end of a call; what shares it keeps it alive
  const detail::RawValue v(engine.float_arrays[n], static_cast<const void*>(made));
  engine.adopted.add(made, memory, std::move(release));
  return detail::Access::make(engine, v);
}

}  // namespace slope::api
