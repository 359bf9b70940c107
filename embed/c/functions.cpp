// The C interface: functions of the host, and their derivatives.
#include "embed/c/c_api.hpp"

namespace slope::api::c {

using detail::Datum;
using detail::HostResult;
using detail::Kind;

namespace {

// A host function that is a C function pointer.
class CFunction : public detail::HostFunction {
 public:
  CFunction(slope_host_function function, void* data, void (*free_data)(void*), Signature signature)
      : function_(function), data_(data), free_data_(free_data), signature_(std::move(signature)) {}
  ~CFunction() override {
    if (free_data_) free_data_(data_);
  }
  CFunction(const CFunction&) = delete;
  std::span<const Kind> parameters() const override { return signature_.parameters; }
  Kind result() const override { return signature_.result; }
  const detail::TypeKey* object_key(std::size_t i) const override {
    const slope_type* object = i < signature_.objects.size() ? signature_.objects[i] : nullptr;
    return object ? &object->key : nullptr;
  }

  void call(const Datum* arguments, HostResult& result) override {
    slope_argument answer{};
    const slope_type* object = signature_.objects.empty() ? nullptr : signature_.objects.back();
    answer.kind = object                                ? SLOPE_OBJECT
                  : detail::is_array(signature_.result) ? SLOPE_ARRAY
                                                        : static_cast<slope_kind>(signature_.result);
    if (signature_.result == Kind::numbers) answer.kind = SLOPE_NUMBERS;
    if (!ask(arguments, &answer, result)) return;
    if (object) return give_object(answer, *object, result);
    Datum datum;
    if (!check(answer, signature_.result, datum, result)) return;
    if (datum.kind == Kind::text) {
      keep_result(result, datum.text());
    } else if (datum.kind == Kind::numbers) {
      keep_result(result, datum.numbers());
    } else if (datum.kind == Kind::any) {
      keep_result(result, answer.as.value->value);
      delete answer.as.value;
    } else {
      result.datum = datum;  // arrays are copied before the host goes on
    }
  }

 protected:
  bool ask(const Datum* arguments, slope_argument* answers, HostResult& result) {
    const std::size_t count = signature_.parameters.size();
    std::vector<slope_argument> given(count + 1);
    std::vector<slope_value> values(count);
    std::vector<slope_view> views(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (const detail::TypeKey* key = object_key(i)) {
        given[i].kind = SLOPE_OBJECT;
        given[i].as.object = objects->find(arguments[i].integer, key);
        if (given[i].as.object) continue;
        result.error = "argument " + std::to_string(i + 1) + ": the object is not one that the host made, or is gone";
        return false;
      }
      if (signature_.parameters[i] == Kind::any) {
        values[i].value = *static_cast<const Value*>(arguments[i].data);
        given[i].kind = SLOPE_VALUE;
        given[i].as.value = &values[i];
      } else {
        from_datum(arguments[i], given[i], views[i]);
      }
    }
    const char* message = nullptr;
    if (function_(data_, given.data(), count, answers, &message)) return true;
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
  void give_object(const slope_argument& answer, const slope_type& type, HostResult& result) {
    if (answer.kind == SLOPE_OBJECT && answer.as.object) {
      result.datum.kind = Kind::integer;
      result.datum.integer = objects->add(answer.as.object, &type.key);
    } else {
      result.error = "the result of a host function: expected an object of the type `" + type.name + "`";
    }
  }

  slope_host_function function_;
  void* data_;
  void (*free_data_)(void*);
  Signature signature_;
};

class CCotangents final : public CFunction {
 public:
  CCotangents(slope_host_function function, void* data, void (*free_data)(void*), std::vector<Kind> results,
              std::vector<Kind> parameters)
      : CFunction(function, data, free_data, {Kind::composite, std::move(parameters), {}}),
        results_(std::move(results)) {}

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

}  // namespace

int answer(const Definition& made, slope_error** error) {
  if (made.ok()) return 1;
  give(error, made.error());
  return 0;
}

bool is_differentiable(Kind kind) { return kind == Kind::number || kind == Kind::numbers; }

std::unique_ptr<detail::HostFunction> host_function(slope_host_function function, void* data, void (*free_data)(void*),
                                                    Signature signature) {
  return std::make_unique<CFunction>(function, data, free_data, std::move(signature));
}

}  // namespace slope::api::c

using namespace slope::api::c;
namespace detail = slope::api::detail;
using detail::Datum;
using detail::Kind;

extern "C" {

int slope_define(slope_engine* engine, const char* name, const char* signature, slope_host_function function,
                 void* data, void (*free_data)(void*), slope_error** error) {
  return guarded(error, [&]() -> int {
    if (!all_given(error, {{"engine", engine},
                           {"name", name},
                           {"signature", signature},
                           {"function", reinterpret_cast<const void*>(function)}}))
      return 0;
    Signature wanted;
    std::string why;
    if (!parse_signature(signature, engine, wanted, why)) return refuse(error, why);
    slope::api::Definition made =
        detail::Access::definition(engine->engine, name, host_function(function, data, free_data, std::move(wanted)));
    if (made.ok()) engine->defined.insert_or_assign(name, made);
    return answer(made, error);
  });
}

int slope_define_rule(slope_engine* engine, const char* name, slope_rule rule, slope_host_function function, void* data,
                      void (*free_data)(void*), slope_error** error) {
  return guarded(error, [&]() -> int {
    if (!all_given(error, {{"engine", engine}, {"name", name}})) return 0;
    auto known = engine->defined.find(name);
    if (known == engine->defined.end())
      return refuse(error, "a rule belongs to a function that slope_define defined; there is no `" + std::string(name) +
                               "` of them");
    slope::api::Definition made = known->second;
    const detail::HostFunction& of = detail::Access::function(made);
    std::vector<Kind> parameters(of.parameters().begin(), of.parameters().end()), moving;
    for (Kind kind : of.parameters())
      if (is_differentiable(kind)) moving.push_back(kind);
    if ((rule == SLOPE_RULE_JVP || rule == SLOPE_RULE_VJP) && !function)
      return refuse(error, "the function of the rule is NULL");
    switch (rule) {
      case SLOPE_RULE_JVP:
        parameters.insert(parameters.end(), moving.begin(), moving.end());
        detail::Access::add_jvp(made, host_function(function, data, free_data, {of.result(), parameters, {}}));
        break;
      case SLOPE_RULE_VJP:
        parameters.push_back(of.result());
        if (moving.size() == 1) {
          detail::Access::add_vjp(made, host_function(function, data, free_data, {moving[0], parameters, {}}));
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

}  // extern "C"
