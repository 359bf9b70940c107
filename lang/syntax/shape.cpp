#include "lang/syntax/shape.hpp"

#include <limits>

namespace slope::syntax {

namespace {

constexpr std::uint32_t any = std::numeric_limits<std::uint32_t>::max();

struct Count {
  std::uint32_t least, most;
};

// How many children a head takes.
Count count_of(Head head) {
  switch (head) {
    case Head::splat:
    case Head::adjoint:
    case Head::address:
    case Head::comprehension:
    case Head::quote:
    case Head::interpolate:
    case Head::abstract_:
    case Head::const_:
    case Head::flatten:
      return {1, 1};
    case Head::dot:
    case Head::type_assert:
    case Head::subtype:
    case Head::supertype:
    case Head::function:
      return {1, 2};
    case Head::kw:
    case Head::assign:
    case Head::dot_assign:
    case Head::and_and:
    case Head::or_or:
    case Head::typed_comprehension:
    case Head::while_:
    case Head::for_:
    case Head::let_:
    case Head::arrow:
    case Head::do_:
    case Head::struct_:
    case Head::primitive_:
    case Head::macro_:
    case Head::module_:
      return {2, 2};
    case Head::if_:
      return {2, 3};
    case Head::op_assign:
    case Head::dot_op_assign:
      return {3, 3};
    case Head::comparison:
      return {3, any};
    case Head::try_:
      return {3, 5};
    case Head::break_:
    case Head::continue_:
    case Head::error:
      return {0, 0};
    case Head::return_:
      return {0, 1};
    case Head::generator:
    case Head::filter:
      return {2, any};
    case Head::call:
    case Head::dot_call:
    case Head::macrocall:
    case Head::ref:
    case Head::typed_vect_ref:
    case Head::curly:
    case Head::where:
    case Head::typed_hcat:
    case Head::typed_vcat:
    case Head::ncat:
    case Head::nrow:
    case Head::using_:
    case Head::import_:
    case Head::dot_path:
    case Head::import_list:
      return {1, any};
    case Head::typed_ncat:
      return {2, any};
    default:
      return {0, any};
  }
}

// Also one of another module, which macros put in as a value.
// `$x` stands for a name in the argument of a macro.
bool is_name(Head head) { return head == Head::identifier || head == Head::value || head == Head::interpolate; }

bool is_generator(Head head) { return head == Head::generator || head == Head::flatten; }

// What child `i` must be, in words; null: it is.
const char* wrong_child(const Ast& ast, NodeId node, std::size_t i) {
  const auto parts = ast.children(node);
  const Head head = ast.head(parts[i]);
  const auto must = [](bool fits, const char* what) { return fits ? nullptr : what; };
  switch (ast.head(node)) {
    case Head::try_:
      return must(i > 0 || head != Head::none, "an expression");
    case Head::macrocall:
      if (i == 0) return must(is_name(head) || head == Head::dot || head == Head::value, "the name of a macro");
      break;
    case Head::op_assign:
    case Head::dot_op_assign:
      if (i == 0) return must(is_name(head), "the name of an operator");
      break;
    case Head::dot:
      if (parts.size() == 1) return must(is_name(head), "the name of an operator");
      break;
    case Head::comprehension:
      return must(is_generator(head), "a generator");
    case Head::typed_comprehension:
      if (i == 1) return must(is_generator(head), "a generator");
      break;
    case Head::flatten:
      return must(head == Head::generator && is_generator(ast.head(ast.child(parts[i], 0))),
                  "a generator of generators");
    case Head::generator:
      if (i > 0) return must(head == Head::assign || (head == Head::filter && i == 1), "`name = values` or a filter");
      break;
    case Head::filter:
      if (i > 0) return must(head == Head::assign, "`name = values`");
      break;
    case Head::for_:
      if (i > 0) break;
      if (head == Head::block) {
        for (const NodeId loop : ast.children(parts[i]))
          if (ast.head(loop) != Head::assign) return "`name = values`";
        return must(ast.child_count(parts[i]) > 0, "`name = values`");
      }
      return must(head == Head::assign, "`name = values`");
    case Head::do_:
      if (i == 0) return must(head == Head::call || head == Head::macrocall || head == Head::dot_call, "a call");
      return must(head == Head::arrow && ast.head(ast.child(parts[i], 0)) == Head::tuple, "a function");
    case Head::struct_:
      if (i == 1) return must(head == Head::block, "a block");
      break;
    case Head::module_:
      return i == 0 ? must(is_name(head), "a name") : must(head == Head::block, "a block");
    case Head::dot_path:
      return must(is_name(head), "a name");
    case Head::import_list:
      return must(head == Head::dot_path, "a path of names");
    case Head::using_:
    case Head::import_:
      return must(head == Head::dot_path || (head == Head::import_list && parts.size() == 1), "a path of names");
    case Head::export_:
      return must(is_name(head), "a name");
    case Head::return_:
      return nullptr;
    default:
      break;
  }
  return must(head != Head::none, "an expression");
}

}  // namespace

std::string misshapen(const Ast& ast, NodeId node) {
  const Head head = ast.head(node);
  if (is_leaf(head)) return {};
  const std::string name(head_name(head));
  const auto [least, most] = count_of(head);
  const std::size_t found = ast.child_count(node);
  if (found < least || found > most || (head == Head::comparison && found % 2 == 0)) {
    const std::string wanted = head == Head::comparison ? "an odd number of"
                               : most == any            ? std::to_string(least) + " or more"
                               : most == least          ? std::to_string(least)
                                                        : std::to_string(least) + " to " + std::to_string(most);
    return "malformed Expr(:" + name + "): expected " + wanted + (most == 1 && least == 1 ? " part" : " parts") +
           ", found " + std::to_string(found);
  }
  for (std::size_t i = 0; i < found; ++i)
    if (const char* wanted = wrong_child(ast, node, i))
      return "malformed Expr(:" + name + "): expected " + wanted + " as part " + std::to_string(i + 1);
  return {};
}

}  // namespace slope::syntax
