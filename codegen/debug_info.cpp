#include "codegen/debug_info.hpp"

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/DebugInfoMetadata.h>

#include "lang/runtime/call_text.hpp"

namespace slope::codegen {

DebugInfo::DebugInfo(Runtime& runtime, llvm::Module& module)
    : runtime_(runtime), context_(module.getContext()), builder_(module) {
  module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  module.addModuleFlag(llvm::Module::Warning, "Dwarf Version", 4);
  // DWARF has no number for Slope; what debuggers do for C is right for lines.
  unit_ = builder_.createCompileUnit(llvm::dwarf::DW_LANG_C, builder_.createFile("slope", ""), "Slope",
                                     /*isOptimized=*/true, "", 0);
  type_ = builder_.createSubroutineType(builder_.getOrCreateTypeArray({}));
}

llvm::DIFile* DebugInfo::file(FileId id) {
  llvm::DIFile*& made = files_[id];
  if (!made) made = builder_.createFile(runtime_.sources.file(id).name(), "");
  return made;
}

llvm::DISubprogram* DebugInfo::make(const std::string& name, Span span) {
  const std::uint32_t line = runtime_.sources.line_of(span);
  return builder_.createFunction(file(span.file), name, "", file(span.file), line, type_, line,
                                 llvm::DINode::FlagPrototyped,
                                 llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
}

llvm::DISubprogram* DebugInfo::subprogram(const Method* method, Span span) {
  llvm::DISubprogram*& made = inlined_[method];
  if (!made) made = make(frame_name(method), method ? method->span : span);
  return made;
}

llvm::DebugLoc DebugInfo::begin(const ir::Function& function, llvm::Function* output) {
  const Method* method = !function.scopes.empty() ? function.scopes[0].method : function.method;
  const Span span = method ? method->span : function.span;
  std::string name = frame_name(method);
  if (!method && !function.name.empty()) name = function.name;
  current_ = make(name, span);
  output->setSubprogram(current_);
  // Frame pointers let perf and debuggers walk the stack; the tables let debuggers do so at every instruction.
  output->addFnAttr("frame-pointer", "all");
  output->setUWTableKind(llvm::UWTableKind::Async);
  call_sites_.clear();
  return llvm::DILocation::get(context_, runtime_.sources.line_of(span), 0, current_);
}

// Of an inlined scope: the call, in the scope around it. Distinct for each inlined call.
llvm::DILocation* DebugInfo::call_site(const ir::Function& function, std::uint32_t scope) {
  if (scope == 0 || scope >= function.scopes.size()) return nullptr;
  if (auto known = call_sites_.find(scope); known != call_sites_.end()) return known->second;
  const ir::InlineScope& s = function.scopes[scope];
  const bool outermost = s.parent == 0 || s.parent >= function.scopes.size();
  llvm::DISubprogram* around =
      outermost ? current_ : subprogram(function.scopes[s.parent].method, function.scopes[s.parent].call_site);
  llvm::DILocation* made = llvm::DILocation::getDistinct(context_, runtime_.sources.line_of(s.call_site), 0, around,
                                                         outermost ? nullptr : call_site(function, s.parent));
  call_sites_[scope] = made;
  return made;
}

void DebugInfo::at(llvm::IRBuilderBase& b, const ir::Function& function, const ir::Inst& inst) {
  const bool own = inst.scope == 0 || inst.scope >= function.scopes.size();
  const std::uint32_t line = runtime_.sources.line_of(inst.span);
  llvm::DISubprogram* scope = own ? current_ : subprogram(function.scopes[inst.scope].method, inst.span);
  b.SetCurrentDebugLocation(
      llvm::DILocation::get(context_, line, 0, scope, own ? nullptr : call_site(function, inst.scope)));
}

}  // namespace slope::codegen
