// One LLVM module of a batch, and what it names outside itself.
//
// Addresses of the engine's data and of code that was linked before differ in every process, so the module names them by
// symbols ("a0", "a1", …) and not by numbers; likewise it names the functions that it defines and those of other units
// of its batch ("f", "c0", …). The text of a unit is then the same wherever it is made from the same typed code, which
// is what a cache of machine code needs (object_cache.hpp). The linker puts in what the symbols stand for (link.hpp).
//
// A unit that debuggers or the profiler read is linked as it stands: addresses are numbers in it, and its functions have
// their names.
#pragma once

#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace slope::codegen {

struct QuickCode;

// A unit to be made again later: its module as bitcode, and what its symbols stand for.
struct UnitText {
  struct Address {
    std::string symbol;
    const void* data;
  };
  struct Name {
    std::string symbol;
    std::string name;
  };
  std::string bitcode;
  std::vector<Address> addresses;
  std::vector<Name> referred;  // of other units of its batch
};

class Unit {
 public:
  Unit(llvm::LLVMContext& context, bool by_symbols)
      : module_(std::make_unique<llvm::Module>("slope", context)), by_symbols_(by_symbols) {}
  // What was written once. Its functions are known by `name`, and followed by what the symbol says of them.
  Unit(std::unique_ptr<llvm::Module> module, const UnitText& text, const std::string& name);

  llvm::Module& module() { return *module_; }
  const llvm::Module& module() const { return *module_; }
  bool by_symbols() const { return by_symbols_; }
  // Its text takes the place of its module; false where that can't be read. Functions of before are gone.
  bool read_again();
  // A pointer constant; of null the null pointer.
  llvm::Constant* address(const void* data);
  // Code at an address, of this type.
  llvm::FunctionCallee code(const void* entry, llvm::FunctionType* type) { return {type, address(entry)}; }

  // The symbol for a function that the unit defines ("f", say) and that its batch knows by `name`.
  std::string define(const std::string& symbol, const std::string& name);
  // The symbol for one that another unit of the batch defines under that name.
  std::string refer(const std::string& name);
  // The symbol for one that was linked before: of the same kind, so that the text does not say which callees are new.
  std::string refer(const void* entry);

  using Address = UnitText::Address;
  using Name = UnitText::Name;
  // Null: no quick code is wanted. Not used up: the object is good code (quick_code.hpp).
  QuickCode* quick = nullptr;
  bool spares_short_loops = true;  // a short function with loops gets good code at once
  bool has_switches = false;       // the module, or the object that was found
  UnitText text;                   // of quick code with loops: what good code of them is made from
  const std::vector<Address>& addresses() const { return addresses_; }
  const std::vector<Name>& defined() const { return defined_; }
  const std::vector<Name>& referred() const { return referred_; }

 private:
  std::unique_ptr<llvm::Module> module_;
  bool by_symbols_;
  std::unordered_map<const void*, llvm::Constant*> by_address_;
  std::vector<Address> addresses_;
  std::vector<Name> defined_, referred_;
  std::size_t callees_ = 0;
};

}  // namespace slope::codegen
