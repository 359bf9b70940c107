// What compiled code calls out of line: allocation, dynamic calls, error paths, and every operation that has no inline
// form. Compiled code reaches these functions as absolute symbols named "slope.<name>". A value is passed as the two
// words of a Value. A helper that can fail returns false, with the error pending in the context.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lang/runtime/context.hpp"

namespace slope::codegen {

// Results and arguments: p pointer, l 64-bit integer, w 32-bit integer, b bool, d double, f float, v nothing.
// H(name, result, arguments)
#define SLOPE_CODEGEN_HELPERS(H)                                                                        \
  H(execute, b, "pwpllp")        /* ctx, op, operands, count, aux, result */                            \
  H(trace, v, "pp")              /* ctx, TraceSite */                                                   \
  H(throw_value, v, "ppl")       /* ctx, type, payload */                                               \
  H(stack_overflow, v, "p")      /* ctx */                                                              \
  H(interrupt, v, "p")           /* ctx: at a safe point, asked to stop or out of fuel */               \
  H(stop, v, "ppll")             /* ctx, TraceSite, tape serial, catch depth (-1: none): the same */    \
  H(branch_type_error, v, "ppl") /* ctx, type, payload of what is no Bool */                            \
  H(unreachable, v, "pp")        /* ctx, ir::Function */                                                \
  H(bounds_error, v, "pppl")     /* ctx, type, array or string, index */                                \
  H(call, b, "ppplp")            /* ctx, CallCache, callee and args, count, result */                   \
  H(call_1, b, "pppp")           /* ctx, CallCache, callee and argument, result */                      \
  H(call_2, b, "pppp")           /* the same, of two */                                                 \
  H(call_3, b, "pppp")           /* of three */                                                         \
  H(invoke, b, "ppplp")          /* ctx, Specialization, callee and args, count, result */              \
  H(native, b, "ppplp")          /* ctx, NativeInfo, args, count, result */                             \
  H(invoke_error, v, "pppl")     /* ctx, Specialization that never returns, callee and args, count */   \
  H(box, p, "pp")                /* ctx, type -> zeroed object, or null */                              \
  H(cell_new, p, "p")            /* ctx -> empty cell, or null */                                       \
  H(shade, v, "pp")              /* ctx, object that a reference was written to */                      \
  H(shade_value, v, "ppl")       /* ctx, type, payload of a value that was written */                   \
  H(array_new, p, "ppl")         /* ctx, vector type, length -> array, or null */                       \
  H(array_new_shaped, p, "pppl") /* ctx, array type, dims, how many -> array, or null */                \
  H(scratch_array, p, "pppll")   /* ctx, array type, dims, how many, most bytes -> array, or null */    \
  H(outliving_array, p, "pp")    /* ctx, array -> it, or a copy if it lies in scratch memory */         \
  H(scratch_object, p, "pp")     /* ctx, type -> zeroed object, or null */                              \
  H(scratch_enter, l, "p")       /* ctx -> serial */                                                    \
  H(scratch_turn, v, "pl")       /* ctx, serial: frees what was taken since; it goes on */              \
  H(scratch_leave, v, "pl")      /* ctx, serial */                                                      \
  H(array_resize, b, "ppll")     /* ctx, vector, length, ResizeKind */                                  \
  H(resize_front, b, "ppll")     /* the same, before the first element */                               \
  H(store_global, b, "pppl")     /* ctx, Binding, type, payload */                                      \
  H(undef_var, b, "pp")          /* ctx, Symbol: raises */                                              \
  H(may_store, b, "pwpllp")      /* ctx, op, operands, count, aux, TraceSite */                         \
  H(call_splat, b, "ppllp")      /* ctx, operands, count, mask, result */                               \
  H(catch_depth, l, "p")         /* ctx -> how many exceptions are being handled */                     \
  H(catch_error, b, "pl")        /* ctx, depth: the pending error becomes the one above so many;      \
                                    false: it is not to be caught */ \
  H(caught, v, "pp")             /* ctx, result */                                                      \
  H(caught_end, v, "pl")         /* ctx, depth of the function: what lies below stays */                \
  H(leave_catch, v, "pl")        /* ctx, depth */                                                       \
  H(egal, b, "plpl")             /* two values */                                                       \
  H(is_instance, b, "pplp")      /* ctx, value, type */                                                 \
  H(tape_open, p, "ppl")         /* ctx, TapeLayout, rows -> Tape, or null */                           \
  H(tape_reserve, b, "ppl")      /* ctx, Tape, rows */                                                  \
  H(tape_close, v, "pp")         /* ctx, Tape */                                                        \
  H(tape_mark, l, "p")           /* ctx -> serial */                                                    \
  H(tape_release, v, "pl")       /* ctx, serial */                                                      \
  H(replace, p, "ppl")           /* ctx, QuickCode that has run for long, where -> good code or null */

enum class Helper : std::uint8_t {
#define H(name, result, arguments) name,
  SLOPE_CODEGEN_HELPERS(H)
#undef H
      count_
};

struct HelperInfo {
  const char* name;  // "slope.box"
  char result;
  const char* arguments;
  void* address;
};
const HelperInfo& helper_info(Helper helper);

// Functions of the C library under the names that LLVM calls them by ("fmod", "memcpy", "exp"), and the elementary
// functions once more under names that LLVM knows nothing of ("slope.exp"): calls of those stay exact calls.
struct LibraryFunction {
  const char* name;
  void* address;
};
std::span<const LibraryFunction> library_functions();

}  // namespace slope::codegen
