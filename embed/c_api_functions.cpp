// The C interface: functions of the host, and their derivatives.
#include "embed/c_api.hpp"

namespace slope::api::c {

using detail::Datum;
using detail::HostResult;
using detail::Kind;

namespace {

// A host function that is a C function pointer.
class CFunction : public detail::HostFunction {
 public:
  CFunction(slope_host_function function, void* data, void (*free_data)(void*), Kind result,
            std::vector<Kind> parameters)
      : function_(function), data_(data), free_data_(free_data), result_(result), parameters_(std::move(parameters)) {}
  ~CFunction() override {
    if (free_data_) free_data_(data_);
  }
  CFunction(const CFunction&) = delete;
  std::span<const Kind> parameters() const override { return parameters_; }
  Kind result() const override { return result_; }

  void call(const Datum* arguments, HostResult& result) override {
    slope_argument answer{};
    answer.kind = static_cast<slope_kind>(result_);
    Datum datum;
    if (!ask(arguments, &answer, result) || !check(answer, result_, datum, result)) return;
    if (datum.kind == Kind::text) {
      keep_result(result, datum.text());
    } else if (datum.kind == Kind::numbers) {
      keep_result(result, datum.numbers());
    } else if (datum.kind == Kind::any) {
      keep_result(result, answer.as.value->value);
      delete answer.as.value;
    } else {
      result.datum = datum;
    }
  }

 protected:
  bool ask(const Datum* arguments, slope_argument* answers, HostResult& result) {
    std::vector<slope_argument> given(parameters_.size() + 1);
    std::vector<slope_value> values(parameters_.size());
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i] == Kind::any) {
        values[i].value = *static_cast<const Value*>(arguments[i].data);
        given[i].kind = SLOPE_VALUE;
        given[i].as.value = &values[i];
      } else {
        from_datum(arguments[i], given[i]);
      }
    }
    const char* message = nullptr;
    if (function_(data_, given.data(), parameters_.size(), answers, &message)) return true;
    result.error = message && *message ? message : "a host function failed";
    return false;
  }
  static bool check(const slope_argument& answer, Kind wanted, Datum& datum, HostResult& result) {
    std::string why;
    if (!to_datum(answer, datum, why)) {
      result.error = "the result of a host function: " + why;
    } else if (datum.kind != wanted && wanted != Kind::nothing) {
      result.error =
          std::string("the result of a host function: expected ") + word(wanted) + ", found " + word(datum.kind);
    }
    return result.error.empty();
  }

 private:
  slope_host_function function_;
  void* data_;
  void (*free_data_)(void*);
  Kind result_;
  std::vector<Kind> parameters_;
};

class CCotangents final : public CFunction {
 public:
  CCotangents(slope_host_function function, void* data, void (*free_data)(void*), std::vector<Kind> results,
              std::vector<Kind> parameters)
      : CFunction(function, data, free_data, Kind::composite, std::move(parameters)), results_(std::move(results)) {}

  void call(const Datum* arguments, HostResult& result) override {
    std::vector<slope_argument> answers(results_.size());
    for (std::size_t i = 0; i < results_.size(); ++i) answers[i].kind = static_cast<slope_kind>(results_[i]);
    if (!ask(arguments, answers.data(), result)) return;
    auto parts = std::make_shared<Parts>();
    parts->numbers.resize(results_.size());
    for (std::size_t i = 0; i < results_.size(); ++i) {
      Datum datum;
      if (!check(answers[i], results_[i], datum, result)) return;
      if (datum.kind == Kind::numbers) {
        parts->numbers[i].assign(datum.numbers().begin(), datum.numbers().end());
        datum.data = parts->numbers[i].data();
      }
      parts->data.push_back(datum);
    }
    result.datum.kind = Kind::composite;
    result.datum.data = parts.get();
    result.datum.build = [](detail::Builder& builder, const void* object) {
      const auto& all = *static_cast<const Parts*>(object);
      for (const Datum& datum : all.data)
        if (!builder.push(datum)) return false;
      return builder.tuple(all.data.size());
    };
    result.object = std::move(parts);
  }

 private:
  struct Parts {
    std::vector<Datum> data;
    std::vector<std::vector<double>> numbers;
  };
  std::vector<Kind> results_;
};

int answer(const Definition& made, slope_error** error) {
  if (made.ok()) return 1;
  give(error, made.error());
  return 0;
}

bool is_differentiable(Kind kind) { return kind == Kind::number || kind == Kind::numbers; }

// Which values move, of what the caller gave. Without `tangents`: nothing.
bool to_tangents(const slope_argument* tangents, std::size_t count, std::vector<detail::TangentGiven>& given,
                 std::string& why) {
  for (std::size_t i = 0; i < count; ++i) {
    detail::TangentGiven& tangent = given.emplace_back(nullptr);
    if (!to_datum(tangents[i], tangent.datum, why)) return false;
    if (tangent.datum.kind == Kind::nothing || is_differentiable(tangent.datum.kind)) continue;
    why =
        "tangent " + std::to_string(i + 1) + ": expected number, numbers or nothing, found " + word(tangent.datum.kind);
    return false;
  }
  given.emplace_back(nullptr);
  return true;
}

}  // namespace

}  // namespace slope::api::c

using namespace slope::api::c;
namespace detail = slope::api::detail;
using detail::Datum;
using detail::Kind;

extern "C" {

int slope_define(slope_engine* engine, const char* name, const char* signature, slope_host_function function,
                 void* data, void (*free_data)(void*), slope_error** error) {
  return guarded(error, [&]() -> int {
    Kind result = Kind::nothing;
    std::vector<Kind> parameters;
    std::string why;
    if (!parse_signature(signature, result, parameters, why)) return refuse(error, why);
    slope::api::Definition made = detail::Access::definition(
        engine->engine, name, std::make_unique<CFunction>(function, data, free_data, result, std::move(parameters)));
    if (made.ok()) engine->defined.insert_or_assign(name, made);
    return answer(made, error);
  });
}

int slope_define_rule(slope_engine* engine, const char* name, slope_rule rule, slope_host_function function, void* data,
                      void (*free_data)(void*), slope_error** error) {
  return guarded(error, [&]() -> int {
    auto known = engine->defined.find(name);
    if (known == engine->defined.end())
      return refuse(error, "a rule belongs to a function that slope_define defined; there is no `" + std::string(name) +
                               "` of them");
    slope::api::Definition made = known->second;
    const detail::HostFunction& of = detail::Access::function(made);
    std::vector<Kind> parameters(of.parameters().begin(), of.parameters().end()), moving;
    for (Kind kind : of.parameters())
      if (is_differentiable(kind)) moving.push_back(kind);
    switch (rule) {
      case SLOPE_RULE_JVP:
        parameters.insert(parameters.end(), moving.begin(), moving.end());
        detail::Access::add_jvp(made, std::make_unique<CFunction>(function, data, free_data, of.result(), parameters));
        break;
      case SLOPE_RULE_VJP:
        parameters.push_back(of.result());
        if (moving.size() == 1) {
          detail::Access::add_vjp(made, std::make_unique<CFunction>(function, data, free_data, moving[0], parameters));
        } else {
          detail::Access::add_vjp(made, std::make_unique<CCotangents>(function, data, free_data, moving, parameters));
        }
        break;
      case SLOPE_RULE_PURE:
        made.pure();
        break;
      case SLOPE_RULE_NON_DIFFERENTIABLE:
        made.non_differentiable();
        break;
      default:
        return refuse(error, "a rule of unknown kind " + std::to_string(static_cast<int>(rule)));
    }
    return answer(made, error);
  });
}

int slope_jvp(slope_function* function, const slope_argument* arguments, const slope_argument* tangents, size_t count,
              slope_argument* value, slope_argument* tangent, slope_error** error) {
  return guarded(error, [&]() -> int {
    Datum data[detail::most_arguments + 1];
    std::vector<detail::TangentGiven> given;
    std::string why;
    if (!check_arguments(function->parameters, arguments, count, data, why) ||
        !to_tangents(tangents, count, given, why))
      return refuse(error, why);
    if (!is_differentiable(function->result))
      return refuse(error, "only a function whose result is a number or numbers has a tangent");
    Datum results[2];
    slope::api::Value holders[2];
    if (!function->state->jvp(data, given.data(), results, holders)) {
      give(error, function->state->take_error());
      return 0;
    }
    function->holder = holders[0];
    function->tangent_holder = holders[1];
    if (value) from_datum(results[0], *value);
    if (tangent) from_datum(results[1], *tangent);
    return 1;
  });
}

int slope_hvp(slope_function* function, const slope_argument* arguments, const slope_argument* directions, size_t count,
              const slope_array* products, slope_error** error) {
  return guarded(error, [&]() -> int {
    Datum data[detail::most_arguments + 1];
    std::vector<detail::TangentGiven> given;
    std::string why;
    if (!check_arguments(function->parameters, arguments, count, data, why) ||
        !to_tangents(directions, count, given, why))
      return refuse(error, why);
    if (function->result != Kind::number)
      return refuse(error, "only a function whose result is a number has a second derivative");
    std::vector<detail::GradientTarget> targets(count + 1);
    for (std::size_t i = 0; i < count; ++i)
      if (products[i].data) targets[i] = detail::GradientTarget(std::span<double>(products[i].data, products[i].size));
    if (function->state->hvp(data, given.data(), targets.data())) return 1;
    give(error, function->state->take_error());
    return 0;
  });
}

}  // extern "C"
