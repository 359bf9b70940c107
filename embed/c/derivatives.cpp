// The C interface: derivatives beside the gradient.
#include "embed/c/c_api.hpp"

using namespace slope::api::c;
namespace detail = slope::api::detail;
using detail::Datum;
using detail::Kind;

namespace {

// A point and a tangent for each of its arguments.
struct Direction {
  Given point;
  std::vector<detail::TangentGiven> tangents;

  bool read(const slope_function& function, const slope_argument* arguments, const slope_argument* directions,
            size_t count, std::string& why) {
    return check_arguments(function.parameters, arguments, count, point, why) &&
           to_tangents(function.parameters, directions, tangents, held_, why);
  }

 private:
  Given held_;  // what `tangents` refer to
};

}  // namespace

extern "C" {

int slope_jvp(slope_function* function, const slope_argument* arguments, const slope_argument* tangents, size_t count,
              slope_argument* value, slope_argument* tangent, slope_error** error) {
  return guarded(error, [&]() -> int {
    if (!all_given(error, {{"function", function}})) return 0;
    Direction along;
    std::string why;
    if (!along.read(*function, arguments, tangents, count, why)) return refuse(error, why);
    if (!is_differentiable(function->result))
      return refuse(error, "only a function whose result is a number or numbers has a tangent");
    Datum results[2];
    slope::api::Value holders[2];
    if (!function->state->jvp(along.point.data, along.tangents.data(), results, holders)) {
      give(error, function->state->take_error());
      return 0;
    }
    function->holder = holders[0];
    function->tangent_holder = holders[1];
    if (value) from_datum(results[0], *value, function->view);
    if (tangent) from_datum(results[1], *tangent, function->tangent_view);
    return 1;
  });
}

int slope_hvp(slope_function* function, const slope_argument* arguments, const slope_argument* directions, size_t count,
              const slope_array* products, slope_error** error) {
  return guarded(error, [&]() -> int {
    if (!all_given(error, {{"function", function}})) return 0;
    Direction along;
    std::string why;
    if (!along.read(*function, arguments, directions, count, why)) return refuse(error, why);
    if (function->result != Kind::number)
      return refuse(error, "only a function whose result is a number has a second derivative");
    const std::vector<detail::GradientTarget> targets = gradient_targets(function->parameters, along.point, products);
    if (function->state->hvp(along.point.data, along.tangents.data(), targets.data())) return 1;
    give(error, function->state->take_error());
    return 0;
  });
}

int slope_jacobian(slope_function* function, const slope_argument* arguments, size_t count, slope_argument* value,
                   const slope_array* matrices, slope_error** error) {
  return guarded(error, [&]() -> int {
    if (!all_given(error, {{"function", function}})) return 0;
    Given to;
    std::string why;
    if (!check_arguments(function->parameters, arguments, count, to, why)) return refuse(error, why);
    if (!is_differentiable(function->result))
      return refuse(error, "only a function whose result is a number or numbers has a Jacobian");
    std::vector<detail::JacobianTarget> targets(count + 1, detail::JacobianTarget(nullptr));
    for (std::size_t i = 0; matrices && i < count; ++i)
      if (matrices[i].data) targets[i] = detail::JacobianTarget(std::span<double>(matrices[i].data, matrices[i].size));
    Datum result;
    if (!function->state->jacobian(to.data, targets.data(), result, &function->holder)) {
      give(error, function->state->take_error());
      return 0;
    }
    if (value) from_datum(result, *value, function->view);
    return 1;
  });
}

slope_pullback* slope_pullback_new(slope_function* function, const slope_argument* arguments, size_t count,
                                   slope_argument* value, slope_error** error) {
  return guarded(error, [&]() -> slope_pullback* {
    if (!all_given(error, {{"function", function}})) return nullptr;
    auto made = std::make_unique<slope_pullback>();
    std::string why;
    if (!check_arguments(function->parameters, arguments, count, made->given, why)) {
      refuse(error, why);
      return nullptr;
    }
    if (!is_differentiable(function->result)) {
      refuse(error, "only a function whose result is a number or numbers has a pullback");
      return nullptr;
    }
    Datum result;
    made->state = function->state->pullback(made->given.data, result, &made->holder);
    if (!made->state) {
      give(error, function->state->take_error());
      return nullptr;
    }
    made->parameters = function->parameters;
    made->result = function->result;
    if (value) from_datum(result, *value, made->view);
    return made.release();
  });
}
void slope_pullback_free(slope_pullback* pullback) { delete pullback; }

int slope_pullback_run(slope_pullback* pullback, const slope_argument* cotangent, const slope_array* cotangents,
                       slope_error** error) {
  return guarded(error, [&]() -> int {
    if (!all_given(error, {{"pullback", pullback}, {"cotangent", cotangent}})) return 0;
    Given to;
    std::string why;
    if (!check_arguments({pullback->result}, cotangent, 1, to, why))
      return refuse(error, "the cotangent of the result, " + why);
    const std::vector<detail::GradientTarget> targets =
        gradient_targets(pullback->parameters, pullback->given, cotangents);
    if (pullback->state->run(to.data[0], targets.data())) return 1;
    give(error, pullback->state->take_error());
    return 0;
  });
}

}  // extern "C"
