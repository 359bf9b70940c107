/* Slope for every language: opaque handles, plain structs, no exceptions, no C++ types.
 *
 *   slope_engine *engine = slope_engine_new(NULL, NULL);
 *   slope_value_free(slope_run(engine, "loss(w) = sum(abs2, w)", "model.slope", NULL));
 *   slope_function *loss = slope_function_find(engine, "loss", "number(numbers)", NULL);
 *   double w[3] = {1, 2, 3}, g[3], value;
 *   slope_argument argument = slope_numbers(w, 3);
 *   slope_array gradient = {g, 3};
 *   slope_value_and_gradient(loss, &argument, 1, &value, &gradient, NULL);
 *
 * Errors: a function that can fail returns NULL or 0. When `error` is not NULL, it also stores an error object
 * there, which the caller frees. Otherwise it does not change `*error`. NULL where something is needed is such an
 * error, too. Texts are UTF-8. A text that a function returns as `const char *` lives as long as the object that it
 * belongs to.
 *
 * Threads: only one thread at a time may use an engine and everything that comes from it. slope_interrupt may be
 * called from any thread and from signal handlers. */
#ifndef SLOPE_SLOPE_H
#define SLOPE_SLOPE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SLOPE_API __attribute__((visibility("default")))
#else
#define SLOPE_API
#endif

typedef struct slope_engine slope_engine;
typedef struct slope_value slope_value;
typedef struct slope_function slope_function;
typedef struct slope_workspace slope_workspace;
typedef struct slope_pullback slope_pullback;
typedef struct slope_type slope_type; /* belongs to its engine and ends with it */
typedef struct slope_error slope_error;

/* All zero except `size` means the defaults. Fields that are added later come at the end. */
typedef struct slope_options {
  size_t size;       /* sizeof(slope_options) */
  int interpret;     /* not 0: never make machine code */
  size_t heap_limit; /* bytes; 0: none */
  void (*output)(void *data, const char *text, size_t length); /* what scripts print; NULL: standard output */
  void (*error_output)(void *data, const char *text, size_t length);
  void *output_data;
  /* Limits of one use of the engine, as in slope/options.hpp; 0: none. Errors are of kind SLOPE_ERROR_LIMIT. */
  uint64_t fuel;      /* calls and loop iterations */
  double time_limit;  /* seconds */
  size_t stack_limit; /* bytes */
  size_t tape_limit;  /* bytes */
  /* What scripts may do outside the engine; nothing unless granted. Folders: arrays of paths that end in NULL. */
  const char *const *read;
  const char *const *write;
  int environment, time, random, input;
} slope_options;

SLOPE_API const char *slope_version(void);

/* --- engines --- */
SLOPE_API slope_engine *slope_engine_new(const slope_options *options, slope_error **error); /* NULL options: defaults */
/* What came from the engine (values, functions) is dead then, but must still be freed. */
SLOPE_API void slope_engine_free(slope_engine *engine);
SLOPE_API void slope_interrupt(slope_engine *engine);
SLOPE_API slope_value *slope_run(slope_engine *engine, const char *text, const char *name, slope_error **error);
SLOPE_API slope_value *slope_run_file(slope_engine *engine, const char *path, slope_error **error);

/* --- what crosses --- */
typedef enum slope_kind {
  SLOPE_NOTHING,
  SLOPE_BOOLEAN, /* `integer`, 0 or 1 */
  SLOPE_INTEGER, /* Int64 */
  SLOPE_NUMBER,  /* Float64 */
  SLOPE_TEXT,    /* String */
  SLOPE_NUMBERS, /* Vector{Float64}; an argument is lent for the call, never copied */
  SLOPE_VALUE,   /* anything */
  SLOPE_ARRAY,   /* Array{Float64,N} over the memory that `view` describes; as SLOPE_NUMBERS */
  SLOPE_OBJECT   /* an object of a type of the host, in host functions */
} slope_kind;

/* An array of several dimensions. Strides are in elements; all 0: those of the layout that the signature names. */
#define SLOPE_MOST_DIMENSIONS 7
typedef struct slope_view {
  double *data;
  size_t dimensions;
  size_t shape[SLOPE_MOST_DIMENSIONS];
  size_t strides[SLOPE_MOST_DIMENSIONS];
} slope_view;

typedef struct slope_argument {
  slope_kind kind;
  union {
    int64_t integer;
    double number;
    const char *text;
    const double *numbers;
    slope_value *value; /* an argument is borrowed; a result belongs to the caller, who frees it */
    const slope_view *view;
    void *object; /* an argument belongs to the script; a result is transferred to it */
  } as;
  size_t size; /* bytes of the text, count of the numbers, dimensions of the array */
} slope_argument;

typedef struct slope_array {
  double *data; /* NULL: omit this derivative */
  size_t size;
} slope_array;

static inline slope_argument slope_number(double number) {
  slope_argument a;
  a.kind = SLOPE_NUMBER;
  a.as.number = number;
  a.size = 0;
  return a;
}
static inline slope_argument slope_integer(int64_t integer) {
  slope_argument a;
  a.kind = SLOPE_INTEGER;
  a.as.integer = integer;
  a.size = 0;
  return a;
}
static inline slope_argument slope_numbers(const double *numbers, size_t size) {
  slope_argument a;
  a.kind = SLOPE_NUMBERS;
  a.as.numbers = numbers;
  a.size = size;
  return a;
}
static inline slope_argument slope_array_of(const slope_view *view) {
  slope_argument a;
  a.kind = SLOPE_ARRAY;
  a.as.view = view;
  a.size = view ? view->dimensions : 0;
  return a;
}
static inline slope_argument slope_text(const char *text, size_t size) {
  slope_argument a;
  a.kind = SLOPE_TEXT;
  a.as.text = text;
  a.size = size;
  return a;
}

/* Assigns a global of Main. 0: failed. */
SLOPE_API int slope_set(slope_engine *engine, const char *name, const slope_argument *value, slope_error **error);
SLOPE_API slope_value *slope_get(slope_engine *engine, const char *name, slope_error **error);

/* --- values --- */
SLOPE_API void slope_value_free(slope_value *value);
SLOPE_API const char *slope_value_type(slope_value *value); /* "Vector{Float64}" */
SLOPE_API const char *slope_value_repr(slope_value *value); /* as Slope shows it */
/* Converts to the kind in `result->kind`; an array to `result->size` dimensions. Text, numbers and arrays live until
 * the value is freed or the engine is used again. */
SLOPE_API int slope_value_to(slope_value *value, slope_argument *result, slope_error **error);
SLOPE_API slope_value *slope_value_field(slope_value *value, const char *name, slope_error **error);
SLOPE_API int slope_value_size(slope_value *value, size_t *size, slope_error **error);
SLOPE_API slope_value *slope_value_at(slope_value *value, size_t index, slope_error **error); /* from 0 */
SLOPE_API slope_value *slope_value_call(slope_value *callee, const slope_argument *arguments, size_t count,
                                        slope_error **error);

/* --- typed functions ---
 * `signature` is RESULT(PARAMETER, …), of the words nothing, boolean, integer, number, text, numbers, value, and for
 * arrays of N = 1 … 7 dimensions
 *   arrayN    column-major, without gaps: Array{Float64,N}
 *   rowsN     row-major, without gaps: the order of C and NumPy, a lazy transpose (PermutedDimsArray) of the memory
 *   stridedN  a view of the enclosing array; the first stride is 1, each other a multiple of the one before
 * `mutable ` before `numbers` and arrays declares that the script may write to the memory. The function is looked
 * up, inferred and compiled once, and keeps its definitions until slope_function_refresh. Results are arrayN,
 * column-major. */
SLOPE_API slope_function *slope_function_find(slope_engine *engine, const char *name, const char *signature,
                                              slope_error **error);
SLOPE_API void slope_function_free(slope_function *function);
SLOPE_API int slope_function_is_current(slope_function *function);
SLOPE_API int slope_function_refresh(slope_function *function, slope_error **error);
/* `result->kind` becomes that of the signature. Text and numbers live until the function is called again or freed. */
SLOPE_API int slope_call(slope_function *function, const slope_argument *arguments, size_t count, slope_argument *result,
                         slope_error **error);
/* `gradients`: one for each argument, as long as the argument (1 for a number), overwritten. For an array it has the
 * argument's layout and strides, and `size` is the number of its elements; gaps are not touched. */
SLOPE_API int slope_value_and_gradient(slope_function *function, const slope_argument *arguments, size_t count,
                                       double *value, const slope_array *gradients, slope_error **error);

/* The value and its derivative in a direction, by forward mode. `tangents`: one for each argument: a number, numbers
 * of the argument's length, an array of its shape and strides, or kind SLOPE_NOTHING for zero. Numbers live until
 * the function is called again or freed. */
SLOPE_API int slope_jvp(slope_function *function, const slope_argument *arguments, const slope_argument *tangents,
                        size_t count, slope_argument *value, slope_argument *tangent, slope_error **error);
/* The Hessian times a direction: `products` as the gradients of slope_value_and_gradient. */
SLOPE_API int slope_hvp(slope_function *function, const slope_argument *arguments, const slope_argument *directions,
                        size_t count, const slope_array *products, slope_error **error);

/* The value, and the partial derivatives for each argument that is a number, numbers or an array: column-major, a
 * row for each number of the result and a column for each number of the argument, in the order of its memory. `size`
 * is rows times columns. */
SLOPE_API int slope_jacobian(slope_function *function, const slope_argument *arguments, size_t count, slope_argument *value,
                             const slope_array *matrices, slope_error **error);

/* The value, and a pullback from cotangents of the result to cotangents of the arguments, by reverse mode. It may
 * run any number of times. The arguments are copied. `value` lives as long as the pullback. */
SLOPE_API slope_pullback *slope_pullback_new(slope_function *function, const slope_argument *arguments, size_t count,
                                             slope_argument *value, slope_error **error);
SLOPE_API void slope_pullback_free(slope_pullback *pullback);
SLOPE_API int slope_pullback_run(slope_pullback *pullback, const slope_argument *cotangent, const slope_array *cotangents,
                                 slope_error **error);

/* What one more thread needs to call a native function of numbers and arrays whose result is a number. Make one for
 * each thread. An error when the function writes to globals or reaches outside the engine. */
SLOPE_API slope_workspace *slope_workspace_new(slope_function *function, slope_error **error);
SLOPE_API void slope_workspace_free(slope_workspace *workspace);
SLOPE_API int slope_workspace_call(slope_workspace *workspace, const slope_argument *arguments, size_t count,
                                   slope_argument *result, slope_error **error);
SLOPE_API int slope_workspace_value_and_gradient(slope_workspace *workspace, const slope_argument *arguments, size_t count,
                                                 double *value, const slope_array *gradients, slope_error **error);

/* --- functions of the host ---
 * A host function returns 0 for an error, and sets `*message` to its text, which is copied. The texts and numbers of
 * a result are copied. */
typedef int (*slope_host_function)(void *data, const slope_argument *arguments, size_t count, slope_argument *result,
                                   const char **message);
SLOPE_API int slope_define(slope_engine *engine, const char *name, const char *signature, slope_host_function function,
                           void *data, void (*free_data)(void *data), slope_error **error);

/* Derivatives of the function that slope_define defined last under this name. Without a rule, gradients through it
 * are refused. */
typedef enum slope_rule {
  SLOPE_RULE_JVP, /* (arguments, then a tangent for each that is a number or numbers) -> the tangent of the result */
  SLOPE_RULE_VJP, /* (arguments, then the cotangent of the result) -> result[0], result[1], … : a cotangent for each
                     argument that is a number or numbers, with its length */
  SLOPE_RULE_PURE,              /* the function only computes its result; `function` is NULL, as below */
  SLOPE_RULE_NON_DIFFERENTIABLE /* gradients treat its result as a constant */
} slope_rule;
SLOPE_API int slope_define_rule(slope_engine *engine, const char *name, slope_rule rule, slope_host_function function,
                                void *data, void (*free_data)(void *data), slope_error **error);

/* --- types of the host ---
 * Objects live in the host, and scripts hold them. In signatures of host functions the type's name means its objects
 * (`number(Particle, number)`): arguments of kind SLOPE_OBJECT, valid during the call. */
typedef struct slope_field {
  const char *name;
  size_t offset; /* of a double, or an array of doubles, in the object */
  size_t count;  /* 0: one number; otherwise the length of an array */
} slope_field;

/* `fields` are properties whose memory is the object's; derivatives flow through them. `destroy` ends an object some
 * time after the last script value that holds it is gone, at the latest when the engine ends. */
SLOPE_API slope_type *slope_type_new(slope_engine *engine, const char *name, const slope_field *fields, size_t count,
                                     void (*destroy)(void *object), slope_error **error);
/* A function whose first argument is an object of the type. Under the type's own name it is a constructor: a
 * function whose result is a new object. Where the library has a function of that name, or the name is an operator,
 * it becomes a method of that function. */
SLOPE_API int slope_type_method(slope_type *type, const char *name, const char *signature, slope_host_function function,
                                void *data, void (*free_data)(void *data), slope_error **error);
/* `kind`: a word of signatures. The getter takes the object, the setter the object and the value (NULL: no setter). */
SLOPE_API int slope_type_property(slope_type *type, const char *name, const char *kind, slope_host_function getter,
                                  slope_host_function setter, void *data, void (*free_data)(void *data),
                                  slope_error **error);
SLOPE_API slope_value *slope_object_new(slope_type *type, void *object, slope_error **error); /* the engine then owns
                                                                                               * the object */
/* NULL: the value holds no such object. Valid as long as a script or a slope_value holds it. */
SLOPE_API void *slope_value_object(slope_value *value, const slope_type *type, slope_error **error);

/* --- memory that the engine adopts ---
 * The script's array is the host's memory (column-major, without gaps), kept as long as a script or a slope_value
 * holds it. Then the engine calls `release` with it, on its own thread, outside of collections, at the latest when
 * the engine ends. */
SLOPE_API slope_value *slope_adopt(slope_engine *engine, const slope_view *array, void (*release)(void *data, double *memory),
                                   void *data, slope_error **error);

/* --- errors --- */
typedef enum slope_error_kind {
  SLOPE_ERROR_SYNTAX,
  SLOPE_ERROR_RUNTIME,
  SLOPE_ERROR_CONVERSION,
  SLOPE_ERROR_INTERRUPTED,
  SLOPE_ERROR_EXIT,
  SLOPE_ERROR_NOT_NATIVE,
  SLOPE_ERROR_NOT_DIFFERENTIABLE,
  SLOPE_ERROR_ENGINE,
  SLOPE_ERROR_LIMIT
} slope_error_kind;
SLOPE_API slope_error_kind slope_error_kind_of(const slope_error *error);
SLOPE_API const char *slope_error_message(const slope_error *error); /* all of it, with position or trace */
SLOPE_API const char *slope_error_summary(const slope_error *error); /* its first line */
SLOPE_API const char *slope_error_type(const slope_error *error);    /* "BoundsError"; "" for other kinds */
SLOPE_API const char *slope_error_file(const slope_error *error);    /* "" when unknown */
SLOPE_API unsigned slope_error_line(const slope_error *error);       /* from 1; 0: unknown */
SLOPE_API unsigned slope_error_column(const slope_error *error);
SLOPE_API int slope_error_exit_code(const slope_error *error); /* of kind SLOPE_ERROR_EXIT */
SLOPE_API void slope_error_free(slope_error *error);

#ifdef __cplusplus
}
#endif
#endif
