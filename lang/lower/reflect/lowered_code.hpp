// Lowered code as a value of the language. stdlib/tools/lowered.slope has the types that a program sees. These
// functions turn untyped IR into such objects (Core.lowered_code), and such objects into IR (what a generator
// returned).
//
// Objects are not trusted, because a program may have put anything anywhere. The new IR is checked as a whole before
// any tier sees it: shapes and counts here, dominance and edges by ir::verify, and then what ir::verify assumes of
// lowering's own code (check.cpp).
#pragma once

#include <memory>
#include <string>

#include "lang/ir/ir.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::lower {

// The types of stdlib/tools/lowered.slope, their fields in this order.
struct LoweredTypes {
  enum Statement { op, args, data, file, range, flags };
  enum BlockField { parameters, statements, handler };
  enum EdgeField { target, edge_args };
  enum CodeField { name, method, is_vararg, blocks, slots };

  explicit LoweredTypes(Runtime& runtime);
  bool complete() const { return code && block && statement && parameter && edge && splat && undefined; }

  const DataType* parameter = nullptr;
  const DataType* statement = nullptr;
  const DataType* splat = nullptr;
  const DataType* undefined = nullptr;
  const DataType* block = nullptr;
  const DataType* edge = nullptr;
  const DataType* code = nullptr;
};

bool is_lowered_code(Runtime& runtime, Value v);

// Of a LoweredCode, as the body of `method`; null: any number of arguments, to be printed. Null with `problem`: what is
// wrong with it and where.
std::shared_ptr<ir::Function> from_lowered_code(Runtime& runtime, Value code, const Method* method,
                                                std::string& problem);

// What only lowering's own code keeps to: catch blocks nest, loops have one entry, and nobody looks at the undefined
// value. Marks the headers of loops. Empty: all is well.
std::string check_lowered(Runtime& runtime, ir::Function& code);

void define_lowered_code_natives(Runtime& runtime);

}  // namespace slope::lower
