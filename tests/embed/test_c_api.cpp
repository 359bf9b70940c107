// The C interface, as another language would use it.
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <thread>

#include "tests/embed/c_fixture.hpp"

using Fixture = slope::test::CEngine;
using slope::test::taken;

namespace {

int hypotenuse(void* data, const slope_argument* arguments, std::size_t count, slope_argument* result,
               const char** message) {
  ++*static_cast<int*>(data);
  if (count != 2 || arguments[0].as.number < 0) {
    *message = "a side is negative";
    return 0;
  }
  result->as.number = arguments[0].as.number + arguments[1].as.number;
  return 1;
}

int joined(void*, const slope_argument* arguments, std::size_t, slope_argument* result, const char**) {
  static std::string text;
  text = std::string(arguments[0].as.text, arguments[0].size) + slope_value_repr(arguments[1].as.value);
  *result = slope_text(text.data(), text.size());
  return 1;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "C: values and gradients, without copies") {
  run("loss(w, s) = s * sum(x -> x^2, w)");
  slope_error* error = nullptr;
  slope_function* loss = slope_function_find(engine, "loss", "number(numbers, number)", &error);
  REQUIRE(loss);
  const double w[] = {1, 2, 3};
  double dw[3], ds = 0, value = 0;
  const slope_argument arguments[] = {slope_numbers(w, 3), slope_number(0.5)};
  slope_argument result;
  REQUIRE(slope_call(loss, arguments, 2, &result, &error));
  CHECK(result.kind == SLOPE_NUMBER);
  CHECK(result.as.number == 7.0);
  const slope_array gradients[] = {{dw, 3}, {&ds, 1}};
  REQUIRE(slope_value_and_gradient(loss, arguments, 2, &value, gradients, &error));
  CHECK(value == 7.0);
  CHECK(ds == 14.0);
  CHECK((dw[0] == 1.0 && dw[1] == 2.0 && dw[2] == 3.0));
  const slope_array only[] = {{nullptr, 0}, {&ds, 1}};
  CHECK(slope_value_and_gradient(loss, arguments, 2, nullptr, only, &error));
  const slope_array wrong[] = {{dw, 2}, {&ds, 1}};
  CHECK_FALSE(slope_value_and_gradient(loss, arguments, 2, &value, wrong, &error));
  CHECK(taken(error).find("the argument has 3 elements") != std::string::npos);
  error = nullptr;
  CHECK_FALSE(slope_call(loss, arguments, 1, &result, &error));
  CHECK(taken(error) == "expected 2 arguments, found 1");
  error = nullptr;
  const slope_argument swapped[] = {slope_number(0.5), slope_numbers(w, 3)};
  CHECK_FALSE(slope_call(loss, swapped, 2, &result, &error));
  CHECK(taken(error) == "argument 1: expected numbers, found number");

  CHECK(slope_function_is_current(loss));
  run("loss(w, s) = s");
  CHECK_FALSE(slope_function_is_current(loss));
  REQUIRE(slope_function_refresh(loss, nullptr));
  REQUIRE(slope_call(loss, arguments, 2, &result, nullptr));
  CHECK(result.as.number == 0.5);
  slope_function_free(loss);
}

TEST_CASE_METHOD(Fixture, "C: functions of the host") {
  int calls = 0;
  REQUIRE(slope_define(engine, "hypotenuse", "number(number, number)", hypotenuse, &calls, nullptr, nullptr));
  REQUIRE(slope_define(engine, "joined", "text(text, value)", joined, nullptr, nullptr, nullptr));
  CHECK(shown("hypotenuse(3, 4)") == "7.0");
  CHECK(calls == 1);
  CHECK(shown("joined(\"a\", [1, 2])") == "\"a[1, 2]\"");
  slope_error* error = nullptr;
  CHECK_FALSE(slope_run(engine, "hypotenuse(-1, 2)", "h.slope", &error));
  CHECK(std::string(slope_error_summary(error)) == "a side is negative");
  CHECK(std::string(slope_error_file(error)) == "h.slope");
  CHECK(slope_error_line(error) == 1);
  slope_error_free(error);
  error = nullptr;
  CHECK_FALSE(slope_define(engine, "f", "number(complex)", hypotenuse, &calls, nullptr, &error));
  CHECK(taken(error).find("found `complex`") != std::string::npos);
}

TEST_CASE_METHOD(Fixture, "C: values") {
  slope_value* value = slope_run(engine, "(name = \"n\", data = [1.5, 2.5], f = x -> 2x)", nullptr, nullptr);
  REQUIRE(value);
  CHECK(std::string(slope_value_type(value)).find("@NamedTuple{") == 0);
  slope_value* data = slope_value_field(value, "data", nullptr);
  slope_argument result;
  result.kind = SLOPE_NUMBERS;
  REQUIRE(slope_value_to(data, &result, nullptr));
  CHECK((result.size == 2 && result.as.numbers[1] == 2.5));
  std::size_t size = 0;
  CHECK((slope_value_size(data, &size, nullptr) && size == 2));
  slope_value* element = slope_value_at(data, 0, nullptr);
  CHECK(std::string(slope_value_repr(element)) == "1.5");
  slope_value* f = slope_value_field(value, "f", nullptr);
  slope_argument argument = slope_integer(21);
  slope_value* doubled = slope_value_call(f, &argument, 1, nullptr);
  CHECK(std::string(slope_value_repr(doubled)) == "42");
  slope_error* error = nullptr;
  result.kind = SLOPE_TEXT;
  CHECK_FALSE(slope_value_to(data, &result, &error));
  CHECK(taken(error) == "expected a String, found a Vector{Float64}");
  argument.kind = SLOPE_VALUE;
  argument.as.value = data;
  REQUIRE(slope_set(engine, "given", &argument, nullptr));
  CHECK(shown("sum(given)") == "4.0");
  for (slope_value* v : {value, data, element, f, doubled}) slope_value_free(v);
}

TEST_CASE("C: options, output, and what outlives its engine") {
  std::string printed;
  slope_options options{};
  options.size = sizeof options;
  options.output_data = &printed;
  options.output = [](void* data, const char* text, std::size_t length) {
    static_cast<std::string*>(data)->append(text, length);
  };
  slope_engine* engine = slope_engine_new(&options, nullptr);
  slope_value_free(slope_run(engine, "println(\"hello\")\nf(x) = 2x", nullptr, nullptr));
  CHECK(printed == "hello\n");
  slope_value* kept = slope_run(engine, "[1, 2]", nullptr, nullptr);
  slope_function* f = slope_function_find(engine, "f", "number(number)", nullptr);
  REQUIRE(f);
  slope_engine_free(engine);
  CHECK(std::string(slope_value_repr(kept)) == "#dead");
  slope_argument x = slope_number(1), y;
  slope_error* error = nullptr;
  CHECK_FALSE(slope_call(f, &x, 1, &y, &error));
  CHECK(taken(error) == "the engine of the function `f` is gone");
  CHECK_FALSE(slope_function_is_current(f));
  slope_function_free(f);
  slope_value_free(kept);

  slope_options broken{};
  error = nullptr;
  CHECK_FALSE(slope_engine_new(&broken, &error));
  slope_error_free(error);
}

TEST_CASE("C: workspaces run a function on several threads") {
  slope_engine* engine = slope_engine_new(nullptr, nullptr);
  slope_value_free(slope_run(
      engine, "loss(w, a) = a * sum(w .^ 2)\nconst store = [0.0]\ncounts(x) = (store[1] += x; x)", nullptr, nullptr));
  slope_function* loss = slope_function_find(engine, "loss", "number(numbers, number)", nullptr);
  REQUIRE(loss);
  std::vector<std::thread> threads;
  std::vector<int> right(4, 0);
  std::vector<slope_workspace*> workspaces;
  for (int i = 0; i < 4; ++i) workspaces.push_back(slope_workspace_new(loss, nullptr));
  for (std::size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      const double w[] = {1.0, static_cast<double>(i)};
      double g[2], value = 0;
      slope_argument arguments[] = {slope_numbers(w, 2), slope_number(3)}, result;
      const slope_array gradients[] = {{g, 2}, {nullptr, 0}};
      const double expected = 3.0 * (1.0 + w[1] * w[1]);
      for (int k = 0; k < 100; ++k)
        right[i] += slope_workspace_value_and_gradient(workspaces[i], arguments, 2, &value, gradients, nullptr) &&
                    value == expected && g[1] == 6.0 * w[1] &&
                    slope_workspace_call(workspaces[i], arguments, 2, &result, nullptr) && result.as.number == expected;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::vector<int>(4, 100));
  slope_error* error = nullptr;
  slope_argument few = slope_number(1);
  CHECK_FALSE(slope_workspace_call(workspaces[0], &few, 1, nullptr, &error));
  slope_error_free(error);
  for (slope_workspace* workspace : workspaces) slope_workspace_free(workspace);

  slope_function* counts = slope_function_find(engine, "counts", "number(number)", nullptr);
  REQUIRE(counts);
  error = nullptr;
  CHECK_FALSE(slope_workspace_new(counts, &error));
  CHECK(taken(error).find("cannot have workspaces") != std::string::npos);
  slope_function_free(counts);
  slope_function_free(loss);
  slope_engine_free(engine);
}

namespace {

int product(void*, const slope_argument* a, size_t, slope_argument* result, const char**) {
  result->as.number = a[0].as.number * a[1].as.number;
  return 1;
}
int product_jvp(void*, const slope_argument* a, size_t count, slope_argument* result, const char**) {
  if (count != 4) return 0;
  result->as.number = a[0].as.number * a[3].as.number + a[1].as.number * a[2].as.number;
  return 1;
}
int weighted(void*, const slope_argument* a, size_t, slope_argument* result, const char**) {
  result->as.number = 0;
  for (size_t i = 0; i < a[0].size; ++i) result->as.number += a[1].as.number * a[0].as.numbers[i] * a[0].as.numbers[i];
  return 1;
}
int weighted_vjp(void* memory, const slope_argument* a, size_t count, slope_argument* result, const char** message) {
  auto& kept = *static_cast<std::vector<double>*>(memory);
  if (count != 3) {
    *message = "three arguments";
    return 0;
  }
  kept.assign(a[0].as.numbers, a[0].as.numbers + a[0].size);
  double sum = 0;
  for (double& x : kept) {
    sum += x * x;
    x *= 2 * a[1].as.number * a[2].as.number;
  }
  result[0].as.numbers = kept.data();
  result[0].size = kept.size();
  result[1].as.number = sum * a[2].as.number;
  return 1;
}

}  // namespace

TEST_CASE("C: rules of host functions, and derivatives in a direction") {
  slope_engine* engine = slope_engine_new(nullptr, nullptr);
  slope_error* error = nullptr;
  std::vector<double> memory;
  REQUIRE(slope_define(engine, "product", "number(number, number)", product, nullptr, nullptr, nullptr));
  REQUIRE(slope_define(engine, "weighted", "number(numbers, number)", weighted, nullptr, nullptr, nullptr));
  slope_value_free(slope_run(engine, "f(x, y) = product(x, y)^2\ng(w, a) = 3 * weighted(w, a)", nullptr, nullptr));
  slope_function* f = slope_function_find(engine, "f", "number(number, number)", nullptr);
  REQUIRE(f);
  double value = 0, dx = 0, dy = 0;
  slope_argument arguments[] = {slope_number(2), slope_number(3)};
  const slope_array gradients[] = {{&dx, 1}, {&dy, 1}};
  CHECK_FALSE(slope_value_and_gradient(f, arguments, 2, &value, gradients, &error));
  CHECK(slope_error_kind_of(error) == SLOPE_ERROR_NOT_DIFFERENTIABLE);
  slope_error_free(error);
  error = nullptr;

  REQUIRE(slope_define_rule(engine, "product", SLOPE_RULE_JVP, product_jvp, nullptr, nullptr, &error));
  REQUIRE(slope_define_rule(engine, "weighted", SLOPE_RULE_VJP, weighted_vjp, &memory, nullptr, &error));
  REQUIRE(slope_function_refresh(f, nullptr));
  REQUIRE(slope_value_and_gradient(f, arguments, 2, &value, gradients, nullptr));
  CHECK(value == 36);
  CHECK(dx == 36);
  CHECK(dy == 24);
  const slope_argument tangents[] = {slope_number(1), slope_argument{}};
  slope_argument y, ty;
  REQUIRE(slope_jvp(f, arguments, tangents, 2, &y, &ty, nullptr));
  CHECK(y.as.number == 36);
  CHECK(ty.as.number == 36);

  slope_function* g = slope_function_find(engine, "g", "number(numbers, number)", nullptr);
  REQUIRE(g);
  const double w[] = {1, 2};
  double gw[2], ga = 0;
  slope_argument given[] = {slope_numbers(w, 2), slope_number(4)};
  const slope_array places[] = {{gw, 2}, {&ga, 1}};
  REQUIRE(slope_value_and_gradient(g, given, 2, &value, places, nullptr));
  CHECK(value == 60);
  CHECK(gw[0] == 24);
  CHECK(gw[1] == 48);
  CHECK(ga == 15);

  slope_value_free(slope_run(engine, "h(w) = w[1]^2 * w[2]", nullptr, nullptr));
  slope_function* h = slope_function_find(engine, "h", "number(numbers)", nullptr);
  REQUIRE(h);
  const double direction[] = {1, 0};
  const slope_argument directions[] = {slope_numbers(direction, 2)};
  REQUIRE(slope_hvp(h, given, directions, 1, places, nullptr));
  CHECK(gw[0] == 4);  // 2 w₂
  CHECK(gw[1] == 2);  // 2 w₁

  CHECK_FALSE(slope_define_rule(engine, "sin", SLOPE_RULE_PURE, nullptr, nullptr, nullptr, &error));
  CHECK(taken(error).find("there is no `sin` of them") != std::string::npos);
  error = nullptr;
  const slope_argument wrong[] = {slope_text("x", 1), slope_argument{}};
  CHECK_FALSE(slope_jvp(f, arguments, wrong, 2, &y, &ty, &error));
  CHECK(taken(error) == "tangent 1: expected number, numbers, an array or nothing, found text");
  for (slope_function* function : {f, g, h}) slope_function_free(function);
  slope_engine_free(engine);
}
