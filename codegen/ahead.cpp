// From functions to an object file for programs without an engine. All is one module: the functions, what they call, the
// entries. LLVM's passes run over it; then nothing may be left that only an engine has.
#include "codegen/ahead.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <set>

#include "codegen/ahead_code.hpp"
#include "codegen/ahead_work.hpp"
#include "codegen/batch.hpp"
#include "codegen/helpers.hpp"
#include "lang/runtime/runtime.hpp"
#include "lang/support/dump.hpp"

namespace slope::codegen {

namespace {

using Values = std::set<const llvm::Value*>;

// What may be done with an address, or with one that is made from it.
struct Uses {
  bool reads = false;   // memory there
  bool writes = false;  // memory there
  bool keeps = false;   // it is put into memory, or goes where it is not followed
};

void follow(const llvm::Value& address, Uses& found, Values& seen);

void follow_call(const llvm::CallBase& call, const llvm::Use& use, Uses& found, Values& seen) {
  if (llvm::isa<llvm::MemIntrinsic>(call)) {
    (use.getOperandNo() == 0 ? found.writes : found.reads) = true;
    return;
  }
  const llvm::Function* callee = call.getCalledFunction();
  if (!call.isArgOperand(&use) || !callee) {
    found.keeps = true;
    return;
  }
  const unsigned position = call.getArgOperandNo(&use);
  if (!callee->isDeclaration()) {
    follow(*callee->getArg(position), found, seen);
  } else if (callee->hasParamAttribute(position, llvm::Attribute::NoCapture)) {
    found.reads = true;
    if (!callee->hasParamAttribute(position, llvm::Attribute::ReadOnly)) found.writes = true;
  } else if (!callee->isIntrinsic()) {
    found.keeps = true;
  }
}

void follow(const llvm::Value& address, Uses& found, Values& seen) {
  if (!seen.insert(&address).second) return;
  for (const llvm::Use& use : address.uses()) {
    const llvm::User* user = use.getUser();
    if (llvm::isa<llvm::LoadInst>(user)) {
      found.reads = true;
    } else if (llvm::isa<llvm::StoreInst>(user)) {
      (use.getOperandNo() == 1 ? found.writes : found.keeps) = true;
    } else if (const auto* call = llvm::dyn_cast<llvm::CallBase>(user)) {
      follow_call(*call, use, found, seen);
    } else if (llvm::isa<llvm::CmpInst>(user)) {
      continue;
    } else if (llvm::isa<llvm::GEPOperator>(user) || llvm::isa<llvm::PHINode>(user) ||
               llvm::isa<llvm::SelectInst>(user) || llvm::isa<llvm::CastInst>(user) ||
               llvm::isa<llvm::ConstantExpr>(user) || llvm::isa<llvm::FreezeInst>(user) ||
               llvm::isa<llvm::BinaryOperator>(user)) {
      follow(*user, found, seen);
    } else {
      found.keeps = true;
    }
  }
}

Uses uses_of(const llvm::Value& address) {
  Uses found;
  Values seen;
  follow(address, found, seen);
  return found;
}

bool calls(const llvm::Function& function, const llvm::Function* target, std::set<const llvm::Function*>& seen) {
  if (!target || !seen.insert(&function).second) return false;
  for (const llvm::Instruction& inst : llvm::instructions(function)) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&inst);
    const llvm::Function* callee = call ? call->getCalledFunction() : nullptr;
    if (callee && (callee == target || calls(*callee, target, seen))) return true;
  }
  return false;
}

class Builder {
 public:
  Builder(Runtime& runtime, Context& ctx, const AheadRequest& request, AheadObject& made,
          std::vector<AheadRefusal>& refusals)
      : runtime_(runtime), ctx_(ctx), request_(request), made_(made), refusals_(refusals), ahead_(runtime, ctx) {}

  bool run(std::string& why) {
    std::unique_ptr<Translator> translator = Translator::create_for(request_.triple, request_.cpu, why);
    if (!translator) return false;
    made_.triple = translator->machine().getTargetTriple().str();
    PublishedCode published;
    Batch batch(runtime_, published, *translator, 1, {true, true, &ahead_});
    std::vector<CodeInstance*> roots;
    std::vector<std::string> symbols;
    for (const AheadExport& each : request_.exports) {
      roots.push_back(each.code);
      symbols.push_back(each.symbol);
    }
    BatchPolicy policy;
    policy.world = ctx_.world;
    if (!batch.build_ahead(roots, policy, why)) return false;
    const std::vector<llvm::Function*> entries = batch.emit_ahead(symbols);
    Unit& unit = *batch.units().front();
    module_ = &unit.module();
    if (!verified(why)) return false;
    translator->optimise_whole(*module_);
    if (!verified(why)) return false;
    if (dump_wants("llvm")) module_->print(llvm::errs(), nullptr);
    check_needs();
    check_addresses(unit);
    check_constants();
    if (!refusals_.empty()) return false;
    describe(entries);
    name_library_functions();
    if (!verified(why)) return false;
    translator->drop_unused(*module_);
    for (const llvm::Function& function : *module_)
      if (function.isDeclaration() && !function.isIntrinsic()) made_.symbols.push_back(function.getName().str());
    std::unique_ptr<llvm::MemoryBuffer> object = translator->compile(*module_, true, why);
    if (!object) return false;
    made_.bytes = object->getBuffer().str();
    return true;
  }

 private:
  bool verified(std::string& why) const {
    std::string text;
    llvm::raw_string_ostream stream(text);
    if (!llvm::verifyModule(*module_, &stream)) return true;
    why = "internal error in code generation: " + stream.str();
    return false;
  }

  void check_needs() {
    for (const llvm::Function& function : *module_) {
      llvm::StringRef name = function.getName();
      if (!name.consume_front(need_prefix) || function.use_empty()) continue;
      std::size_t which = 0;
      if (!name.getAsInteger(10, which)) refusals_.push_back(ahead_.needs[which]);
    }
  }

  // Those that are only compared become objects of the module.
  void check_addresses(Unit& unit) {
    for (const Unit::Address& address : unit.addresses()) {
      llvm::GlobalVariable* global = module_->getNamedGlobal(address.symbol);
      if (!global) continue;
      global->removeDeadConstantUsers();
      if (global->use_empty()) {
        global->eraseFromParent();
        continue;
      }
      const Uses uses = uses_of(*global);
      if (uses.reads || uses.writes) {
        const auto known = ahead_.addresses.find(address.data);
        refusals_.push_back(known == ahead_.addresses.end()
                                ? AheadRefusal{"uses an object that only the engine has", {}}
                                : known->second);
        continue;
      }
      llvm::Type* byte = llvm::Type::getInt8Ty(module_->getContext());
      auto* identity = new llvm::GlobalVariable(*module_, byte, true, llvm::GlobalValue::InternalLinkage,
                                                llvm::ConstantInt::get(byte, 0), "slope.identity");
      identity->setAlignment(llvm::Align(16));
      global->replaceAllUsesWith(identity);
      global->eraseFromParent();
    }
  }

  // What the program holds as a constant, and its functions only read, is constant in the object.
  void check_constants() {
    for (llvm::GlobalVariable& global : module_->globals()) {
      const bool is_header = global.getName().starts_with("slope.constant");
      if (!is_header && !global.getName().starts_with("slope.data")) continue;
      global.removeDeadConstantUsers();
      Uses uses;
      Values seen;
      if (is_header) {
        follow(global, uses, seen);
      } else {
        for (const llvm::Use& use : global.uses())  // its header is one
          if (!llvm::isa<llvm::ConstantAggregate>(use.getUser())) {
            Values some;
            follow_use(use, uses, some);
          }
      }
      if (uses.writes || uses.keeps)
        refusals_.push_back({uses.writes ? "changes an array that is a constant of the program"
                                         : "puts an array that is a constant of the program into another object",
                             ahead_.places[&global]});
      global.setConstant(true);
    }
  }

  static void follow_use(const llvm::Use& use, Uses& found, Values& seen) {
    const llvm::User* user = use.getUser();
    if (llvm::isa<llvm::LoadInst>(user) || llvm::isa<llvm::CmpInst>(user)) return;
    if (llvm::isa<llvm::StoreInst>(user)) {
      (use.getOperandNo() == 1 ? found.writes : found.keeps) = true;
    } else if (const auto* call = llvm::dyn_cast<llvm::CallBase>(user)) {
      follow_call(*call, use, found, seen);
    } else {
      follow(*user, found, seen);
    }
  }

  void describe(const std::vector<llvm::Function*>& entries) {
    const llvm::Function* take = module_->getFunction("slope.take");
    for (std::size_t i = 0; i < entries.size(); ++i) {
      std::vector<bool> written;
      const llvm::Function& entry = *entries[i];
      const std::size_t results = entry.arg_size() - 2;  // work memory comes last
      for (std::size_t k = 0; k < results; ++k)
        if (entry.getArg(k)->getType()->isPointerTy()) {
          const Uses uses = uses_of(*entry.getArg(k));
          written.push_back(uses.writes || uses.keeps);
        }
      made_.written.push_back(std::move(written));
      std::set<const llvm::Function*> seen;
      const bool takes = calls(entry, take, seen);
      made_.takes_memory.push_back(takes);
      made_.tells_memory.push_back(takes && make_work_size(*entries[i], *take, entry.getName().str() + "_work_size"));
    }
  }

  // Those that LLVM was to know nothing of have their names again.
  void name_library_functions() {
    for (llvm::Function& function : llvm::make_early_inc_range(*module_)) {
      llvm::StringRef name = function.getName();
      if (!function.isDeclaration() || !name.consume_front("slope.") || name.starts_with("need.")) continue;
      if (llvm::Function* known = module_->getFunction(name)) {
        function.replaceAllUsesWith(known);
        function.eraseFromParent();
      } else {
        function.setName(name.str());  // the old name, of which this is a part, goes first
      }
    }
  }

  Runtime& runtime_;
  Context& ctx_;
  const AheadRequest& request_;
  AheadObject& made_;
  std::vector<AheadRefusal>& refusals_;
  Ahead ahead_;
  llvm::Module* module_ = nullptr;
};

}  // namespace

}  // namespace slope::codegen

extern "C" __attribute__((visibility("default"))) bool slope_build_object(slope::Runtime* runtime, slope::Context* ctx,
                                                                          const slope::AheadRequest* request,
                                                                          slope::AheadObject* made,
                                                                          std::vector<slope::AheadRefusal>* refusals,
                                                                          std::string* why) {
  return slope::codegen::Builder(*runtime, *ctx, *request, *made, *refusals).run(*why);
}
