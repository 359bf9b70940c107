// The C interface: types of the host, arrays of several dimensions, memory given away, Jacobians and pullbacks.
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "tests/embed/c_fixture.hpp"

using Fixture = slope::test::CEngine;
using slope::test::taken;

namespace {

struct Particle {
  double mass;
  double place[2];
  int64_t tag;
};
int particles = 0;  // that live

void end_particle(void* object) {
  --particles;
  delete static_cast<Particle*>(object);
}
int make_particle(void*, const slope_argument* a, std::size_t, slope_argument* result, const char** message) {
  if (!(a[0].as.number > 0)) {
    *message = "the mass is not positive";
    return 0;
  }
  ++particles;
  result->as.object = new Particle{a[0].as.number, {a[1].as.number, 0}, 0};
  return 1;
}
int distance(void*, const slope_argument* a, std::size_t, slope_argument* result, const char**) {
  const auto *p = static_cast<Particle*>(a[0].as.object), *q = static_cast<Particle*>(a[1].as.object);
  result->as.number = p->place[0] - q->place[0];
  return 1;
}
int joined(void*, const slope_argument* a, std::size_t, slope_argument* result, const char**) {
  const auto *p = static_cast<Particle*>(a[0].as.object), *q = static_cast<Particle*>(a[1].as.object);
  ++particles;
  result->as.object = new Particle{p->mass + q->mass, {p->place[0], q->place[0]}, p->tag + q->tag};
  return 1;
}
int get_tag(void*, const slope_argument* a, std::size_t, slope_argument* result, const char**) {
  result->as.integer = static_cast<Particle*>(a[0].as.object)->tag;
  return 1;
}
int set_tag(void*, const slope_argument* a, std::size_t, slope_argument*, const char**) {
  static_cast<Particle*>(a[0].as.object)->tag = a[1].as.integer;
  return 1;
}
int no_object(void*, const slope_argument*, std::size_t, slope_argument* result, const char**) {
  result->as.object = nullptr;
  return 1;
}

int trace_of(void*, const slope_argument* a, std::size_t, slope_argument* result, const char** message) {
  const slope_view* m = a[0].as.view;
  if (a[0].kind != SLOPE_ARRAY || m->dimensions != 2 || m->strides[0] != 1 || m->strides[1] != m->shape[0]) {
    *message = "no matrix";
    return 0;
  }
  result->as.number = 0;
  for (std::size_t i = 0; i < m->shape[0]; ++i) result->as.number += m->data[i * (m->strides[0] + m->strides[1])];
  return 1;
}
int ones(void* memory, const slope_argument* a, std::size_t, slope_argument* result, const char**) {
  auto& kept = *static_cast<std::pair<std::vector<double>, slope_view>*>(memory);
  const auto n = static_cast<std::size_t>(a[0].as.integer);
  kept.first.assign(n * n, 1.0);
  kept.second = slope_view{kept.first.data(), 2, {n, n}, {}};
  *result = slope_array_of(&kept.second);
  return 1;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "C: a type of the host") {
  const slope_field fields[] = {{"mass", offsetof(Particle, mass), 0}, {"place", offsetof(Particle, place), 2}};
  slope_error* error = nullptr;
  slope_type* type = slope_type_new(engine, "Particle", fields, 2, end_particle, &error);
  REQUIRE(type);
  int freed = 0;
  auto count = [](void* data) { ++*static_cast<int*>(data); };
  REQUIRE(slope_type_method(type, "Particle", "Particle(number, number)", make_particle, &freed, count, &error));
  REQUIRE(slope_type_method(type, "distance", "number(Particle, Particle)", distance, nullptr, nullptr, &error));
  REQUIRE(slope_type_method(type, "+", "Particle(Particle, Particle)", joined, nullptr, nullptr, &error));
  REQUIRE(slope_type_property(type, "tag", "integer", get_tag, set_tag, nullptr, nullptr, &error));
  REQUIRE(slope_type_property(type, "fixed", "integer", get_tag, nullptr, nullptr, nullptr, &error));

  run("p = Particle(2, 5)\nq = Particle(3, 1)\np.tag = 40\nq.tag = 2");
  CHECK(shown("distance(p, q)") == "4.0");
  CHECK(shown("(p + q).mass") == "5.0");
  CHECK(shown("(p + q).place") == "[5.0, 1.0]");
  CHECK(shown("(p + q).tag") == "42");
  CHECK(shown("propertynames(p)") == "(:mass, :place, :tag, :fixed)");
  CHECK(shown("p.fixed = 1") == "`Particle` has no property `fixed` that can be set");
  CHECK(shown("Particle(-1, 2)") == "the mass is not positive");
  CHECK(shown("distance(p, 1)").find("MethodError") == 0);
  // Derivatives go through fields, and not through methods without rules.
  CHECK(shown("gradient(o -> o.mass^2 * o.place[1], p)[1].mass") == "[20.0]");

  slope_value* value = slope_get(engine, "p", nullptr);
  auto* p = static_cast<Particle*>(slope_value_object(value, type, &error));
  REQUIRE(p);
  CHECK(p->tag == 40);
  p->mass = 7;
  CHECK(shown("p.mass") == "7.0");
  slope_value* number = slope_run(engine, "1", nullptr, nullptr);
  CHECK_FALSE(slope_value_object(number, type, &error));
  CHECK(taken(error).find("expected a `Particle`") == 0);
  slope_value_free(number);
  slope_value_free(value);

  ++particles;
  slope_value* made = slope_object_new(type, new Particle{1, {2, 3}, 4}, &error);
  REQUIRE(made);
  slope_argument given{};
  given.kind = SLOPE_VALUE;
  given.as.value = made;
  REQUIRE(slope_set(engine, "given", &given, nullptr));
  CHECK(shown("distance(given, q)") == "1.0");
  slope_value_free(made);

  // Functions of the host beside the type's may take its objects as well.
  REQUIRE(slope_define(engine, "apart", "number(Particle, Particle)", distance, nullptr, nullptr, nullptr));
  CHECK(shown("apart(p, q)") == "4.0");
  REQUIRE(slope_define(engine, "nobody", "Particle()", no_object, nullptr, nullptr, nullptr));
  CHECK(shown("nobody()") == "the result of a host function: expected an object of the type `Particle`");

  CHECK_FALSE(slope_type_new(engine, "Particle", nullptr, 0, end_particle, &error));
  CHECK(taken(error).find("`Particle` is defined in Main already") != std::string::npos);
  CHECK_FALSE(slope_type_new(engine, "Other", nullptr, 0, nullptr, &error));
  CHECK(taken(error).find("needs a function that ends its objects") != std::string::npos);
  CHECK_FALSE(slope_type_method(type, "far", "number(Planet)", distance, nullptr, nullptr, &error));
  CHECK(taken(error).find("found `Planet`") != std::string::npos);
  CHECK_FALSE(slope_type_method(type, "far", "number(number)", distance, nullptr, nullptr, &error));
  CHECK(taken(error).find("takes its object as first argument") != std::string::npos);

  slope_engine_free(engine);
  engine = nullptr;
  CHECK(particles == 0);
  CHECK(freed == 1);
}

TEST_CASE_METHOD(Fixture, "C: arrays of several dimensions, without copies") {
  run("f(m, w) = sum(m * w)\ng(t) = sum(t[i, j, k] * i * 10^(j - 1) for i in axes(t, 1), j in axes(t, 2), k in axes(t, "
      "3))"
      "\ndoubled!(m) = (m .*= 2; nothing)\nsquare(m) = m .* m");
  slope_error* error = nullptr;
  const double w[] = {1, 2};
  double data[] = {1, 2, 3, 4, 5, 6, 99};
  double g[6] = {}, gw[2] = {}, value = 0;
  const slope_array places[] = {{g, 6}, {gw, 2}};

  slope_view matrix{data, 2, {3, 2}, {}};
  slope_argument arguments[] = {slope_array_of(&matrix), slope_numbers(w, 2)};
  slope_function* columns = find("f", "number(array2, numbers)");
  REQUIRE(slope_value_and_gradient(columns, arguments, 2, &value, places, &error));
  CHECK(value == 36);  // 1+2+3 + 2·(4+5+6)
  CHECK(std::vector<double>(g, g + 6) == std::vector<double>{1, 1, 1, 2, 2, 2});
  CHECK(std::vector<double>(gw, gw + 2) == std::vector<double>{6, 15});

  slope_function* rows = find("f", "number(rows2, numbers)");
  REQUIRE(slope_value_and_gradient(rows, arguments, 2, &value, places, &error));
  CHECK(value == 1 + 3 + 5 + 2 * (2 + 4 + 6));
  CHECK(std::vector<double>(g, g + 6) == std::vector<double>{1, 2, 1, 2, 1, 2});

  // Two rows of a matrix with three, whose gradient leaves the third alone.
  slope_view part{data, 2, {2, 2}, {1, 3}};
  arguments[0] = slope_array_of(&part);
  std::fill(g, g + 6, -1.0);
  const slope_array parts[] = {{g, 4}, {nullptr, 0}};
  slope_function* strided = find("f", "number(strided2, numbers)");
  REQUIRE(slope_value_and_gradient(strided, arguments, 2, &value, parts, &error));
  CHECK(value == 1 + 2 + 2 * (4 + 5));
  CHECK(std::vector<double>(g, g + 6) == std::vector<double>{1, 1, -1, 2, 2, -1});

  slope_view cube{data, 3, {1, 3, 2}, {}};
  slope_argument one = slope_array_of(&cube), result;
  slope_function* third = find("g", "number(rows3)");
  REQUIRE(slope_call(third, &one, 1, &result, &error));
  CHECK(result.as.number == (1 + 2) + 10 * (3 + 4) + 100 * (5 + 6));

  slope_function* in_place = find("doubled!", "nothing(mutable array2)");
  slope_argument whole = slope_array_of(&matrix);
  REQUIRE(slope_call(in_place, &whole, 1, nullptr, &error));
  CHECK(std::vector<double>(data, data + 7) == std::vector<double>{2, 4, 6, 8, 10, 12, 99});

  slope_function* square = find("square", "array2(array2)");
  REQUIRE(slope_call(square, &whole, 1, &result, &error));
  REQUIRE(result.kind == SLOPE_ARRAY);
  CHECK((result.as.view->shape[0] == 3 && result.as.view->shape[1] == 2 && result.as.view->strides[1] == 3));
  CHECK(result.as.view->data[5] == 144);

  CHECK_FALSE(slope_call(third, &whole, 1, &result, &error));
  CHECK(taken(error) == "argument 1: expected an array of 3 dimensions, found 2");
  slope_view twisted{data, 2, {2, 2}, {1, 3}};
  arguments[0] = slope_array_of(&twisted);
  CHECK_FALSE(slope_call(columns, arguments, 2, &result, &error));
  CHECK(taken(error) == "argument 1: stride 2 of `array2`: expected 2, found 3");
  const slope_array wrong[] = {{g, 3}, {nullptr, 0}};
  arguments[0] = slope_array_of(&matrix);
  CHECK_FALSE(slope_value_and_gradient(columns, arguments, 2, &value, wrong, &error));
  CHECK(taken(error).find("argument 1") != std::string::npos);
  CHECK_FALSE(slope_function_find(engine, "f", "number(array8)", &error));
  CHECK(taken(error).find("found `array8`") != std::string::npos);

  REQUIRE(slope_define(engine, "trace_of", "number(array2)", trace_of, nullptr, nullptr, nullptr));
  CHECK(shown("trace_of([1 2; 3 4])") == "5.0");
  std::pair<std::vector<double>, slope_view> memory;
  REQUIRE(slope_define(engine, "all_ones", "array2(integer)", ones, &memory, nullptr, nullptr));
  CHECK(shown("all_ones(2)") == "[1.0 1.0; 1.0 1.0]");
  REQUIRE(slope_set(engine, "m", &whole, nullptr));
  CHECK(shown("m") == "[2.0 8.0; 4.0 10.0; 6.0 12.0]");
  slope_value* m = slope_get(engine, "m", nullptr);
  result.kind = SLOPE_ARRAY;
  result.size = 2;
  REQUIRE(slope_value_to(m, &result, &error));
  CHECK((result.as.view->shape[0] == 3 && result.as.view->data[3] == 8));
  result.size = 9;
  CHECK_FALSE(slope_value_to(m, &result, &error));
  taken(error);
  slope_value_free(m);
  for (slope_function* f : {columns, rows, strided, third, in_place, square}) slope_function_free(f);
}

TEST_CASE_METHOD(Fixture, "C: memory given away") {
  auto* memory = new double[4]{1, 2, 3, 4};
  int released = 0;
  slope_view matrix{memory, 2, {2, 2}, {}};
  auto release = [](void* data, double* given) {
    ++*static_cast<int*>(data);
    delete[] given;
  };
  slope_error* error = nullptr;
  slope_value* value = slope_adopt(engine, &matrix, release, &released, &error);
  REQUIRE(value);
  slope_argument argument{};
  argument.kind = SLOPE_VALUE;
  argument.as.value = value;
  REQUIRE(slope_set(engine, "m", &argument, nullptr));
  slope_value_free(value);
  CHECK(shown("m[2, 1]") == "2.0");
  memory[1] = 7;
  CHECK(shown("m[2, 1]") == "7.0");
  CHECK(released == 0);
  slope_view wrong{memory, 2, {2, 2}, {1, 5}};
  CHECK_FALSE(slope_adopt(engine, &wrong, release, &released, &error));
  taken(error);
  slope_engine_free(engine);
  engine = nullptr;
  CHECK(released == 1);
}

TEST_CASE_METHOD(Fixture, "C: Jacobians and pullbacks") {
  run("f(x, a) = [a * x[1]^2, x[1] * x[2], x[2]^3]\ns(x) = x[1] * x[2]");
  slope_error* error = nullptr;
  slope_function* f = find("f", "numbers(numbers, number)");
  const double x[] = {2, 3};
  const slope_argument arguments[] = {slope_numbers(x, 2), slope_number(5)};
  double jx[6], ja[3];
  slope_argument value;
  const slope_array matrices[] = {{jx, 6}, {ja, 3}};
  REQUIRE(slope_jacobian(f, arguments, 2, &value, matrices, &error));
  REQUIRE((value.kind == SLOPE_NUMBERS && value.size == 3));
  CHECK(std::vector<double>(value.as.numbers, value.as.numbers + 3) == std::vector<double>{20, 6, 27});
  CHECK(std::vector<double>(jx, jx + 6) == std::vector<double>{20, 3, 0, 0, 2, 27});
  CHECK(std::vector<double>(ja, ja + 3) == std::vector<double>{4, 0, 0});
  const slope_array small[] = {{jx, 4}, {nullptr, 0}};
  CHECK_FALSE(slope_jacobian(f, arguments, 2, &value, small, &error));
  CHECK(taken(error).find("the matrix has 3 rows and 2 columns, the memory 4 elements") != std::string::npos);

  slope_pullback* back = slope_pullback_new(f, arguments, 2, &value, &error);
  REQUIRE(back);
  CHECK(value.as.numbers[1] == 6);
  double gx[2], ga = 0;
  const slope_array places[] = {{gx, 2}, {&ga, 1}};
  for (int row = 0; row < 3; ++row) {
    double unit[3] = {};
    unit[row] = 1;
    const slope_argument seed = slope_numbers(unit, 3);
    REQUIRE(slope_pullback_run(back, &seed, places, &error));
    CHECK(gx[0] == jx[row]);
    CHECK(gx[1] == jx[3 + row]);
    CHECK(ga == ja[row]);
  }
  const slope_argument wrong = slope_numbers(x, 2), scalar = slope_number(1);
  CHECK_FALSE(slope_pullback_run(back, &wrong, places, &error));
  CHECK(taken(error).find("the result has 3 elements, its cotangent 2") != std::string::npos);
  CHECK_FALSE(slope_pullback_run(back, &scalar, places, &error));
  CHECK(taken(error) == "the cotangent of the result, argument 1: expected numbers, found number");
  slope_pullback_free(back);

  slope_function* s = find("s", "number(numbers)");
  back = slope_pullback_new(s, arguments, 1, nullptr, &error);
  REQUIRE(back);
  slope_function_free(s);
  const slope_argument seed = slope_number(2);
  REQUIRE(slope_pullback_run(back, &seed, places, &error));
  CHECK((gx[0] == 6 && gx[1] == 4));
  slope_engine_free(engine);
  engine = nullptr;
  CHECK_FALSE(slope_pullback_run(back, &seed, places, &error));
  CHECK(taken(error).find("is gone") != std::string::npos);
  slope_pullback_free(back);
  slope_function_free(f);
}

TEST_CASE("C: options of an older program are shorter") {
  slope_options options{};
  std::string printed;
  options.output = [](void* data, const char* text, std::size_t length) {
    static_cast<std::string*>(data)->append(text, length);
  };
  options.output_data = &printed;
  options.fuel = 1;                              // not there yet for a program that was compiled
  options.size = offsetof(slope_options, fuel);  // before limits came
  slope_engine* engine = slope_engine_new(&options, nullptr);
  REQUIRE(engine);
  slope_value_free(slope_run(engine, "println(sum(i for i in 1:10))", nullptr, nullptr));
  CHECK(printed == "55\n");
  slope_engine_free(engine);
  // And those of a newer one longer: what this library does not know is left alone.
  struct Newer {
    slope_options known;
    long more[4];
  } newer{};
  newer.known.size = sizeof newer;
  newer.known.interpret = 1;
  newer.more[0] = 7;
  engine = slope_engine_new(&newer.known, nullptr);
  REQUIRE(engine);
  slope_engine_free(engine);
}

TEST_CASE_METHOD(Fixture, "C: every derivative of arrays, in the layout of the signature") {
  run("f(a, t) = sum(a[i, j]^2 * (10i + t * j) for i in 1:size(a, 1), j in 1:size(a, 2))");
  slope_function* f = find("f", "number(strided2, number)");
  double memory[] = {1, 2, 0, 3, 4}, moves[] = {1, 0, 9, 0, -1};
  const slope_view a{memory, 2, {2, 2}, {1, 3}}, v{moves, 2, {2, 2}, {1, 3}};
  const slope_argument arguments[] = {slope_array_of(&a), slope_number(2)};
  slope_argument value, tangent, tangents[] = {slope_array_of(&v), slope_integer(1)};
  slope_error* error = nullptr;
  REQUIRE(slope_jvp(f, arguments, tangents, 2, &value, &tangent, &error));
  CHECK(value.as.number == 12 * 1 + 22 * 4 + 14 * 9 + 24 * 16);
  CHECK(tangent.as.number == 2 * 12 - 2 * 4 * 24 + (1 + 4 + 2 * 9 + 2 * 16));
  double h[] = {7, 7, 7, 7, 7}, ht = 7;
  const slope_array products[] = {{h, 4}, {&ht, 1}};
  REQUIRE(slope_hvp(f, arguments, tangents, 2, products, &error));
  CHECK(std::vector<double>(h, h + 5) == std::vector<double>{2 * 12 + 2 * 1, 2 * 2, 7, 4 * 3, -2 * 24 + 4 * 4});
  CHECK(ht == 2 * 1 - 2 * 2 * 4);
  double matrix[4];
  const slope_array matrices[] = {{matrix, 4}, {nullptr, 0}};
  REQUIRE(slope_jacobian(f, arguments, 2, &value, matrices, &error));
  CHECK(std::vector<double>(matrix, matrix + 4) == std::vector<double>{24, 88, 84, 192});
  slope_pullback* back = slope_pullback_new(f, arguments, 2, &value, &error);
  REQUIRE(back);
  memory[0] = 100;  // was copied
  double g[] = {7, 7, 7, 7, 7};
  const slope_array cotangents[] = {{g, 4}, {nullptr, 0}};
  const slope_argument seed = slope_number(0.5);
  REQUIRE(slope_pullback_run(back, &seed, cotangents, &error));
  CHECK(std::vector<double>(g, g + 5) == std::vector<double>{12, 44, 7, 42, 96});
  slope_pullback_free(back);

  const slope_view other{moves, 2, {4, 1}, {1, 4}};
  tangents[0] = slope_array_of(&other);
  CHECK_FALSE(slope_jvp(f, arguments, tangents, 2, &value, &tangent, &error));
  CHECK(taken(error) == "jvp of `f`, argument 1: the argument has 2×2 elements, its tangent 4×1");
  slope_function_free(f);
}

TEST_CASE_METHOD(Fixture, "C: NULL where something is needed is an error that names it") {
  run("f(x, v) = x * sum(v)");
  slope_error* error = nullptr;
  slope_function* f = find("f", "number(number, numbers)");
  slope_workspace* workspace = slope_workspace_new(f, &error);
  slope_value* value = slope_run(engine, "(a = 1,)", nullptr, &error);
  REQUIRE((workspace && value));
  const double numbers[] = {1, 2};
  const slope_argument arguments[] = {slope_number(1), slope_numbers(numbers, 2)};
  slope_argument result{};
  result.kind = SLOPE_NUMBER;
  std::size_t size = 0;
  auto says = [&](auto answer, const char* message) {
    INFO(message);
    CHECK_FALSE(answer);
    CHECK(taken(error) == message);
  };
  says(slope_run(nullptr, "1", nullptr, &error), "the engine is NULL");
  says(slope_run(engine, nullptr, nullptr, &error), "the text is NULL");
  says(slope_run_file(engine, nullptr, &error), "the path is NULL");
  says(slope_set(engine, nullptr, arguments, &error), "the name is NULL");
  says(slope_set(engine, "x", nullptr, &error), "the value is NULL");
  const slope_argument no_view = slope_array_of(nullptr);
  says(slope_set(engine, "x", &no_view, &error), "an array argument has from 1 to 7 dimensions");
  says(slope_get(engine, nullptr, &error), "the name is NULL");
  says(slope_value_to(nullptr, &result, &error), "the value is NULL");
  says(slope_value_to(value, nullptr, &error), "the result is NULL");
  says(slope_value_field(value, nullptr, &error), "the name is NULL");
  says(slope_value_size(value, nullptr, &error), "the size is NULL");
  says(slope_value_at(nullptr, 0, &error), "the value is NULL");
  says(slope_value_call(nullptr, arguments, 2, &error), "the callee is NULL");
  says(slope_value_call(value, nullptr, 2, &error), "the arguments are NULL");
  says(slope_function_find(engine, "f", nullptr, &error), "the signature is NULL");
  says(slope_function_find(engine, nullptr, "number()", &error), "the name is NULL");
  says(slope_function_refresh(nullptr, &error), "the function is NULL");
  says(slope_call(nullptr, arguments, 2, &result, &error), "the function is NULL");
  says(slope_call(f, nullptr, 2, &result, &error), "the arguments are NULL");
  says(slope_value_and_gradient(nullptr, arguments, 2, nullptr, nullptr, &error), "the function is NULL");
  says(slope_value_and_gradient(f, nullptr, 2, nullptr, nullptr, &error), "the arguments are NULL");
  says(slope_jvp(f, arguments, nullptr, 2, nullptr, nullptr, &error), "the tangents are NULL");
  says(slope_hvp(f, arguments, nullptr, 2, nullptr, &error), "the tangents are NULL");
  says(slope_jacobian(nullptr, arguments, 2, nullptr, nullptr, &error), "the function is NULL");
  says(slope_pullback_new(f, nullptr, 2, nullptr, &error), "the arguments are NULL");
  says(slope_pullback_run(nullptr, arguments, nullptr, &error), "the pullback is NULL");
  says(slope_workspace_new(nullptr, &error), "the function is NULL");
  says(slope_workspace_call(nullptr, arguments, 2, &result, &error), "the workspace is NULL");
  says(slope_workspace_value_and_gradient(workspace, nullptr, 2, nullptr, nullptr, &error), "the arguments are NULL");
  says(slope_define(engine, "g", "number()", nullptr, nullptr, nullptr, &error), "the function is NULL");
  says(slope_define_rule(engine, nullptr, SLOPE_RULE_PURE, nullptr, nullptr, nullptr, &error), "the name is NULL");
  says(slope_type_new(engine, nullptr, nullptr, 0, end_particle, &error), "the name is NULL");
  says(slope_type_new(engine, "P", nullptr, 1, end_particle, &error), "the list of fields is NULL");
  says(slope_type_method(nullptr, "m", "number()", distance, nullptr, nullptr, &error), "the type is NULL");
  says(slope_object_new(nullptr, &size, &error), "the type is NULL");
  says(slope_value_object(value, nullptr, &error), "the type is NULL");
  says(slope_adopt(engine, nullptr, nullptr, nullptr, &error), "the array is NULL");
  const slope_argument missing[] = {slope_number(1), slope_numbers(nullptr, 2)};
  says(slope_call(f, missing, 2, &result, &error), "argument 2: the memory is NULL, its size 2");
  const slope_argument empty[] = {slope_number(1), slope_numbers(nullptr, 0)};
  CHECK(slope_call(f, empty, 2, &result, nullptr));
  CHECK(result.as.number == 0);
  CHECK_FALSE(slope_run(engine, "error(1)", nullptr, nullptr));  // nobody asks
  CHECK(std::string(slope_error_message(nullptr)).empty());
  CHECK_FALSE(slope_function_is_current(nullptr));
  slope_interrupt(nullptr);
  slope_error_free(nullptr);
  slope_value_free(nullptr);
  slope_function_free(nullptr);
  slope_workspace_free(nullptr);
  slope_pullback_free(nullptr);
  slope_engine_free(nullptr);
  slope_workspace_free(workspace);
  slope_value_free(value);
  slope_function_free(f);
}
