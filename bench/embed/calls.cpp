// What a call between host and script costs, beside other embeddable languages where Debian has them: host to script
// through what each offers for repeated calls, script to host in a loop of the script. Nanoseconds, the minimum of
// several rounds; loops without the call are subtracted from nobody.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include "slope/engine.hpp"

#ifdef BENCH_LUA
extern "C" {
#include <lauxlib.h>
#include <lualib.h>
}
#endif
#ifdef BENCH_DUKTAPE
#include <duktape.h>
#endif
#ifdef BENCH_PYTHON
#include <Python.h>
#endif

namespace {

constexpr int rounds = 15;

// Nanoseconds for each of `count` calls that one run makes.
double best(double count, const std::function<void()>& run) {
  run();
  double least = 1e300;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    least = std::min(least, spent.count() / count);
  }
  return least;
}

void row(const char* name, double to_script, double to_host) {
  std::printf("%-28s %14.1f %14.1f\n", name, to_script, to_host);
}

constexpr int calls = 200'000;
volatile double kept = 0;

void slope_row(const char* name, slope::Options options) {
  slope::Engine engine(std::move(options));
  engine.define("half", [](double x) { return 0.5 * x; }).value();
  engine
      .run(
          "f(x) = x * x + 1\n"
          "checked(x) = x < 0 ? throw(DomainError(x, \"negative\")) : x * x + 1\n"
          "function back(n)\n    s = 0.0\n    for i in 1:n\n        s += half(s)\n    end\n    s\nend")
      .value();
  auto f = engine.function<double(double)>("f").value();
  auto back = engine.function<double(std::int64_t)>("back").value();
  const double to_script = best(calls, [&] {
    double s = 0;
    for (int i = 0; i < calls; ++i) s += f(i).value();
    kept = s;
  });
  row(name, to_script, best(calls, [&] { kept = back(calls).value(); }));
  auto checked = engine.function<double(double)>("checked").value();
  std::printf("%-28s %14.1f\n", "  a function that may throw", best(calls, [&] {
                double s = 0;
                for (int i = 0; i < calls; ++i) s += checked(i).value();
                kept = s;
              }));
}

// The gradient of a function of ten numbers in an array, from outside and in a loop of the script.
void gradient_row() {
  slope::Engine engine({.tier = slope::Tier::compile});
  engine
      .run(R"(
function loss(w)
    total = 0.0
    for i in 2:length(w)
        total += (w[i] - w[i-1]^2)^2 + (1 - w[i-1])^2
    end
    total
end
function inside(n, w)
    plan = prepare_gradient(loss, w)
    g = zeros(length(w))
    total = 0.0
    for k in 1:n
        total += value_and_gradient!(plan, loss, g, w)[1]
    end
    total
end)")
      .value();
  using Numbers = std::span<const double>;
  auto loss = engine.function<double(Numbers)>("loss").value();
  auto inside = engine.function<double(int, Numbers)>("inside", slope::Dispatch::allowed).value();
  const std::vector<double> w(10, 0.5);
  std::vector<double> g(10);
  // What the loop needs are locals, as in a host's function: captured references would be read again for each call.
  const double outside = best(calls, [&] {
    const auto f = loss;
    const Numbers x = w;
    const std::span<double> into = g;
    double s = 0;
    for (int i = 0; i < calls; ++i) s += f.value_and_gradient(x, into).value();
    kept = s;
  });
  const double script = best(calls, [&] { kept = inside(calls, w).value(); });
  auto workspace = loss.workspace().value();
  const double with_workspace = best(calls, [&] {
    const auto f = loss;
    slope::Workspace own = std::move(workspace);
    const Numbers x = w;
    const std::span<double> into = g;
    double s = 0;
    for (int i = 0; i < calls; ++i) s += f.value_and_gradient(own, x, into).value();
    kept = s;
    workspace = std::move(own);
  });
  std::printf("\ngradient of ten numbers: %.1f ns from the host, %.1f ns with a workspace, %.1f ns in the script\n",
              outside, with_workspace, script);
}

double square(double x) { return x * x + 1; }

#ifdef BENCH_LUA
int half(lua_State* L) {
  lua_pushnumber(L, 0.5 * lua_tonumber(L, 1));
  return 1;
}
void lua_row() {
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  lua_pushcfunction(L, half);
  lua_setglobal(L, "half");
  if (luaL_dostring(L,
                    "function f(x) return x * x + 1 end\n"
                    "function back(n) local s = 0.0; for i = 1, n do s = s + half(s) end; return s end") != 0)
    return;
  const double to_script = best(calls, [&] {
    double s = 0;
    lua_getglobal(L, "f");
    for (int i = 0; i < calls; ++i) {
      lua_pushvalue(L, -1);
      lua_pushnumber(L, i);
      lua_call(L, 1, 1);
      s += lua_tonumber(L, -1);
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
    kept = s;
  });
  row(BENCH_LUA, to_script, best(calls, [&] {
        lua_getglobal(L, "back");
        lua_pushnumber(L, calls);
        lua_call(L, 1, 1);
        kept = lua_tonumber(L, -1);
        lua_pop(L, 1);
      }));
  lua_close(L);
}
#endif

#ifdef BENCH_DUKTAPE
duk_ret_t duk_half(duk_context* d) {
  duk_push_number(d, 0.5 * duk_to_number(d, 0));
  return 1;
}
void duktape_row() {
  duk_context* d = duk_create_heap_default();
  duk_push_c_function(d, duk_half, 1);
  duk_put_global_string(d, "half");
  duk_eval_string_noresult(d,
                           "function f(x) { return x * x + 1; }\n"
                           "function back(n) { var s = 0; for (var i = 0; i < n; i++) s += half(s); return s; }");
  const double to_script = best(calls, [&] {
    double s = 0;
    duk_get_global_string(d, "f");
    for (int i = 0; i < calls; ++i) {
      duk_dup(d, -1);
      duk_push_number(d, i);
      duk_call(d, 1);
      s += duk_get_number(d, -1);
      duk_pop(d);
    }
    duk_pop(d);
    kept = s;
  });
  row("Duktape", to_script, best(calls, [&] {
        duk_get_global_string(d, "back");
        duk_push_number(d, calls);
        duk_call(d, 1);
        kept = duk_get_number(d, -1);
        duk_pop(d);
      }));
  duk_destroy_heap(d);
}
#endif

#ifdef BENCH_PYTHON
PyObject* python_half(PyObject*, PyObject* x) { return PyFloat_FromDouble(0.5 * PyFloat_AsDouble(x)); }
void python_row() {
  Py_InitializeEx(0);
  static PyMethodDef method = {"half", python_half, METH_O, nullptr};
  PyObject* main = PyImport_AddModule("__main__");
  PyObject* names = PyModule_GetDict(main);
  PyObject* function = PyCFunction_New(&method, nullptr);
  PyDict_SetItemString(names, "half", function);
  PyObject* ran = PyRun_String(
      "def f(x): return x * x + 1\n"
      "def back(n):\n    s = 0.0\n    for i in range(n): s += half(s)\n    return s\n",
      Py_file_input, names, names);
  PyObject* f = PyDict_GetItemString(names, "f");
  PyObject* back = PyDict_GetItemString(names, "back");
  const double to_script = best(calls, [&] {
    double s = 0;
    for (int i = 0; i < calls; ++i) {
      PyObject* x = PyFloat_FromDouble(i);
      PyObject* y = PyObject_CallOneArg(f, x);
      s += PyFloat_AsDouble(y);
      Py_DECREF(x);
      Py_DECREF(y);
    }
    kept = s;
  });
  row("Python", to_script, best(calls, [&] {
        PyObject* n = PyLong_FromLong(calls);
        PyObject* y = PyObject_CallOneArg(back, n);
        kept = PyFloat_AsDouble(y);
        Py_DECREF(n);
        Py_DECREF(y);
      }));
  Py_XDECREF(ran);
  Py_DECREF(function);
  Py_FinalizeEx();
}
#endif

[[maybe_unused]] void missing(const char* peer, const char* package) {
  std::printf("%-28s left out: needs the package %s\n", peer, package);
}

}  // namespace

int main() {
  std::printf("%-28s %14s %14s\n", "ns a call", "host → script", "script → host");
  double (*volatile pointer)(double) = square;
  row("C++ function pointer",
      best(calls,
           [&] {
             double s = 0;
             for (int i = 0; i < calls; ++i) s += pointer(i);
             kept = s;
           }),
      0);
  slope::Options compile;
  compile.tier = slope::Tier::compile;
  slope_row("Slope", compile);
  slope::Options fuelled = compile;
  fuelled.fuel = 1'000'000'000;
  slope_row("Slope, with fuel", fuelled);
  slope::Options interpreted;
  interpreted.tier = slope::Tier::interpret;
  slope_row("Slope, interpreted", interpreted);
#ifdef BENCH_LUA
  lua_row();
#else
  missing("Lua", "liblua5.4-dev or libluajit-5.1-dev");
#endif
#if defined(BENCH_DUKTAPE)
  duktape_row();
#elif !defined(BENCH_LUAJIT)
  missing("Duktape", "duktape-dev");
#endif
#if defined(BENCH_PYTHON)
  python_row();
#elif !defined(BENCH_LUAJIT)
  missing("Python", "python3-dev");
#endif
  gradient_row();
}
