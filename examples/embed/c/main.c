/* The resting shape of a hanging chain: the script has the energy, C walks down its gradient. */
#include <math.h>
#include <slope/slope.h>
#include <stdio.h>

enum { joints = 9 };

static const char *const model =
    "function energy(y, weight)\n"
    "    e = 0.0\n"
    "    above = 0.0\n"
    "    for i in eachindex(y)\n"
    "        e += 50 * (y[i] - above)^2 + weight * y[i]\n"
    "        above = y[i]\n"
    "    end\n"
    "    e + 50 * above^2\n"
    "end\n";

static int fail(slope_error *error) {
  fprintf(stderr, "%s\n", slope_error_message(error));
  slope_error_free(error);
  return 1;
}

int main(void) {
  slope_error *error = NULL;
  slope_engine *engine = slope_engine_new(NULL, &error);
  if (!engine) return fail(error);
  slope_value *loaded = slope_run(engine, model, "chain.slope", &error);
  if (!loaded) return fail(error);
  slope_value_free(loaded);
  slope_function *energy = slope_function_find(engine, "energy", "number(numbers, number)", &error);
  if (!energy) return fail(error);

  double y[joints] = {0}, gradient[joints], value = 0;
  const slope_argument arguments[] = {slope_numbers(y, joints), slope_number(1.0)};
  const slope_array gradients[] = {{gradient, joints}, {NULL, 0}};
  for (int step = 0; step < 2000; ++step) {
    if (!slope_value_and_gradient(energy, arguments, 2, &value, gradients, &error)) return fail(error);
    for (int i = 0; i < joints; ++i) y[i] -= 0.004 * gradient[i];
  }
  printf("energy %.6f, the middle hangs at %.6f\n", value, y[joints / 2]);
  slope_function_free(energy);
  slope_engine_free(engine);
  /* Between two fixed ends the exact answer is y_i = -i (n + 1 - i) / 200. */
  return fabs(y[joints / 2] + 5.0 * 5.0 / 200) < 1e-9 ? 0 : 1;
}
