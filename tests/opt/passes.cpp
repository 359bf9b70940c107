// Passes on files: one folder for each, tests/opt/<pass>/*.ir.
#include <algorithm>

#include "lang/ir/cfg.hpp"
#include "lang/ir/passes/cotangents.hpp"
#include "lang/ir/passes/escape.hpp"
#include "lang/opt/opt.hpp"
#include "tests/opt/filetest.hpp"

using namespace slope;
using slope::test::FileTest;

namespace {

// Which instructions make objects that stay, by the numbers that print_compact gives them.
std::string staying(FileTest& test, const ir::Function& function) {
  const std::vector<ir::Place> places = ir::places_of_objects(function, ir::build_cfg(function), test.runtime.types);
  std::string text;
  std::uint32_t number = 0;
  for (const ir::Block& block : function.blocks) {
    number += static_cast<std::uint32_t>(block.parameters.size());
    for (std::uint32_t id : block.insts) {
      if (places[id] != ir::Place::heap)
        text += (places[id] == ir::Place::frame ? "in the frame: %" : "stays: %") + std::to_string(number) + "\n";
      ++number;
    }
  }
  return text.empty() ? "nothing stays\n" : text;
}

void run_pass(FileTest& test, const std::string& pass, ir::Function& function) {
  opt::OptOptions options;
  options.self = test.specialization;
  options.callee = [&](Specialization& callee) { return test.code(callee); };
  if (pass == "inline") {
    opt::inline_calls(test.runtime, function, options);
  } else if (pass == "fold") {
    opt::fold(test.runtime, function);
  } else if (pass == "scalar") {
    opt::scalar_replace(test.runtime, function);
  } else if (pass == "cells") {
    opt::promote_cells(test.runtime, function);
  } else if (pass == "cse") {
    opt::common_subexpressions(test.runtime, function);
  } else if (pass == "zero-cotangents") {
    // The text of a select does not say that it chooses a cotangent: all do.
    for (ir::Inst& inst : function.insts)
      if (inst.op == ir::Op::select) inst.aux = ir::select_of_cotangent;
    opt::skip_zero_cotangents(function);
  } else if (pass == "hoist") {
    opt::hoist_invariants(test.runtime, function);
  } else if (pass == "simplify") {
    ir::simplify_cfg(function);
  } else if (pass == "dead") {
    ir::remove_dead_insts(function);
  } else if (pass == "unreachable") {
    ir::remove_unreachable_blocks(function);
  } else if (pass == "promote") {
    ir::promote_slots(function, &test.runtime.types.builtin());
  } else if (pass == "optimise") {
    opt::optimise(test.runtime, test.runtime.context, function, options);
  } else {
    FAIL("no pass `" << pass << "`");
  }
  INFO("after " << pass << "\n" << ir::print(function));
  REQUIRE(ir::verify(function) == "");
}

void check_folder(const std::string& folder) {
  for (const auto& path : test::files_of("tests/opt/" + folder)) {
    FileTest test(path);
    test.check([&](ir::Function& function) {
      std::string text;
      for (const std::string& pass : test.passes) {
        if (pass == "escape") {
          text += staying(test, function);
        } else {
          run_pass(test, pass, function);
        }
      }
      return text.empty() ? ir::print_compact(function) : text;
    });
  }
}

}  // namespace

TEST_CASE("Files: inlining") { check_folder("inline"); }
TEST_CASE("Files: folding") { check_folder("fold"); }
TEST_CASE("Files: scalar replacement") { check_folder("scalar"); }
TEST_CASE("Files: captured variables") { check_folder("cells"); }
TEST_CASE("Files: redundancy elimination") { check_folder("cse"); }
TEST_CASE("Files: hoisting") { check_folder("hoist"); }
TEST_CASE("Files: loops with zero cotangents") { check_folder("zero_cotangents"); }
TEST_CASE("Files: simplification and slots") { check_folder("simplify"); }
TEST_CASE("Files: what stays in an activation") { check_folder("escape"); }
