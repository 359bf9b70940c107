// File tests of passes. A file has what the test shows, what is run, the input and the expected text:
//
//   ; The length of a fresh array is the number that it was made with.
//   ; run: fold, dead
//   function f typed :: Int64
//   b0(%0: typeof(f), %1: Int64):
//     …
//   ; expect:
//   b0(%0: typeof(f), %1: Int64):
//     …
//
// The last function is the one that the passes rewrite; those before it are methods that it may `invoke`. A line
// `; noinline` or `; inline` before a function is its hint. Types beside those of Core: `Couple` (left::Float64,
// right::Int64) and `mutable struct Counter` (count::Int64, total::Float64).
//
// SLOPE_UPDATE_GOLDEN=1 writes what is found into the files instead of comparing. Read it before you commit it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lang/infer/infer.hpp"
#include "lang/ir/execute/execute.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/runtime/runtime.hpp"
#include "tests/golden.hpp"

namespace slope::test {

class FileTest {
 public:
  explicit FileTest(const std::filesystem::path& path) : path_(path) {
    ir::define_op_builtins(runtime);
    const BuiltinTypes& b = runtime.types.builtin();
    define("Couple", {{"left", b.float64}, {"right", b.int64}}, false);
    define("Counter", {{"count", b.int64}, {"total", b.float64}}, true);
    runtime.context.world = runtime.world();
    parse();
  }

  // `run(passes, function)` gives the text that is compared.
  template <class Run>
  void check(Run run) {
    INFO(path_.string());
    REQUIRE(!comment_.empty());
    REQUIRE(!passes.empty());
    REQUIRE(!texts_.empty());
    for (const std::string& text : texts_) declare(text);
    for (std::size_t i = 0; i < texts_.size(); ++i) read(i);
    const std::string found = run(*function);
    if (updating_golden()) {
      std::ofstream(path_, std::ios::binary) << input_ << "; expect:\n" << found;
      return;
    }
    INFO(line_difference(expected_, found) << "\nif the new text is right: SLOPE_UPDATE_GOLDEN=1");
    CHECK(expected_ == found);
  }

  const ir::Function* code(const Specialization& target) const {
    auto found = code_.find(&target);
    return found == code_.end() ? nullptr : found->second.get();
  }

  Runtime runtime;
  std::vector<std::string> passes;           // with their arguments: "reverse 1 2"
  std::shared_ptr<ir::Function> function;    // the last one
  Specialization* specialization = nullptr;  // of the last one, when its entry names its callee

 private:
  void define(const char* name, std::vector<std::pair<const char*, const Type*>> fields, bool is_mutable) {
    TypeName* made = runtime.types.new_name(runtime.symbol(name), runtime.main);
    std::vector<const Symbol*> names;
    std::vector<const Type*> types;
    for (auto [field, type] : fields) {
      names.push_back(runtime.symbol(field));
      types.push_back(type);
    }
    runtime.types.define_struct(made, {}, runtime.types.builtin().any, names, types, is_mutable,
                                static_cast<std::uint32_t>(names.size()));
    runtime.set_constant(runtime.main, name, runtime.from_type(made->primary));
  }

  void parse() {
    const std::string text = read_file(path_);
    const std::size_t expectation = text.find("; expect:\n");
    input_ = text.substr(0, expectation);
    if (expectation != std::string::npos) expected_ = text.substr(expectation + std::string_view("; expect:\n").size());
    int hint = 0;
    for (const std::string& line : split_lines(input_)) {
      if (line.starts_with("; run: ")) {
        std::istringstream list(line.substr(7));
        for (std::string pass; std::getline(list, pass, ',');)
          passes.push_back(pass.substr(pass.find_first_not_of(' ')));
      } else if (line == "; noinline" || line == "; inline") {
        hint = line == "; inline" ? 1 : -1;
      } else if (line.starts_with("; ")) {
        comment_ += line;
      } else if (line.starts_with("function ")) {
        texts_.push_back(line + "\n");
        hints_.push_back(hint);
        hint = 0;
      } else if (!texts_.empty()) {
        texts_.back() += line + "\n";
      }
    }
  }

  std::unique_ptr<ir::Function> parsed(const std::string& text) {
    std::string error;
    std::unique_ptr<ir::Function> made = ir::read(runtime, text, error);
    INFO(text << error);
    REQUIRE(made);
    kept_.values.insert(kept_.values.end(), made->constants.begin(), made->constants.end());
    return made;
  }

  // The function and its one method, so that texts may name them before they are read.
  void declare(const std::string& text) {
    const std::string name = text.substr(9, text.find_first_of(" \n", 9) - 9);
    runtime.generic_function(runtime.main, runtime.symbol(name));
    const std::size_t entry = text.find("\nb0");
    REQUIRE(entry != std::string::npos);
    // The parameters alone say what the method takes.
    const std::string head = text.substr(entry + 1, text.find('\n', entry + 1) - entry - 1);
    std::unique_ptr<ir::Function> stub = parsed(head + "\n  unreachable\n");
    std::vector<const Type*> types;
    for (std::uint32_t id : stub->blocks[0].parameters) types.push_back(stub->insts[id].type);
    targets_.push_back(nullptr);
    if (types.empty() || !types[0] || to_string(types[0]) != "typeof(" + name + ")") return;
    auto method = std::make_unique<Method>();
    method->name = runtime.symbol(name);
    method->module = runtime.main;
    method->signature = runtime.types.tuple(types);
    method->arg_count = static_cast<std::uint32_t>(types.size());
    method->inline_hint = hints_[targets_.size() - 1];
    Method* added = runtime.add_method(std::move(method));
    runtime.context.world = runtime.world();
    targets_.back() = runtime.specialize(added, runtime.types.tuple(types), {});
  }

  void read(std::size_t i) {
    function = parsed(texts_[i]);
    specialization = targets_[i];
    INFO(ir::print(*function));
    REQUIRE(ir::verify(*function) == "");
    if (!specialization || !function->typed) return;
    function->method = specialization->method;
    function->scopes[0].method = specialization->method;
    code_[specialization] = function;
  }

  std::filesystem::path path_;
  std::string input_, expected_, comment_;
  std::vector<std::string> texts_;
  std::vector<int> hints_;
  std::vector<Specialization*> targets_;
  std::map<const Specialization*, std::shared_ptr<ir::Function>> code_;
  Rooted kept_{runtime.heap};
};

// The files of a folder below tests/, in order.
inline std::vector<std::filesystem::path> files_of(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(SLOPE_SOURCE_DIR) / folder))
    if (entry.path().extension() == ".ir") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace slope::test
