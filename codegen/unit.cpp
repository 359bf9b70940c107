#include "codegen/unit.hpp"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/GlobalVariable.h>

namespace slope::codegen {

Unit::Unit(std::unique_ptr<llvm::Module> module, const UnitText& text, const std::string& name)
    : module_(std::move(module)), by_symbols_(true), addresses_(text.addresses), defined_{{"f", name}} {}

bool Unit::read_again() {
  auto read = llvm::parseBitcodeFile(llvm::MemoryBufferRef(text.bitcode, "slope"), module_->getContext());
  if (!read) {
    llvm::consumeError(read.takeError());
    return false;
  }
  module_ = std::move(*read);
  for (auto& [data, constant] : by_address_) constant = nullptr;
  for (const Address& address : addresses_)
    if (const auto known = by_address_.find(address.data); known != by_address_.end())
      if (auto* variable = module_->getNamedGlobal(address.symbol)) known->second = variable;
  return true;
}

llvm::Constant* Unit::address(const void* data) {
  llvm::LLVMContext& context = module_->getContext();
  llvm::PointerType* pointer = llvm::PointerType::getUnqual(context);
  if (!data) return llvm::ConstantPointerNull::get(pointer);
  if (!by_symbols_) {
    llvm::Type* word = llvm::Type::getInt64Ty(context);
    return llvm::ConstantExpr::getIntToPtr(llvm::ConstantInt::get(word, reinterpret_cast<std::uint64_t>(data)),
                                           pointer);
  }
  llvm::Constant*& known = by_address_[data];
  if (known) return known;
  std::string symbol = "a" + std::to_string(by_address_.size() - 1);
  // Of no size that LLVM knows, so that it concludes nothing about what lies there. Not local to the code: it may be
  // anywhere in memory, so the linker makes a table of addresses.
  llvm::Type* unknown = llvm::ArrayType::get(llvm::Type::getInt8Ty(context), 0);
  known = new llvm::GlobalVariable(*module_, unknown, false, llvm::GlobalValue::ExternalLinkage, nullptr, symbol);
  addresses_.push_back({std::move(symbol), data});
  return known;
}

std::string Unit::define(const std::string& symbol, const std::string& name) {
  if (!by_symbols_) return name;
  defined_.push_back({symbol, name});
  return symbol;
}

std::string Unit::refer(const std::string& name) {
  if (!by_symbols_) return name;
  referred_.push_back({"c" + std::to_string(callees_++), name});
  return referred_.back().symbol;
}

std::string Unit::refer(const void* entry) {
  addresses_.push_back({"c" + std::to_string(callees_++), entry});
  return addresses_.back().symbol;
}

}  // namespace slope::codegen
