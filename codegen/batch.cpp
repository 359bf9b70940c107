#include "codegen/batch.hpp"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <cassert>
#include <optional>

#include "codegen/ahead_code.hpp"
#include "codegen/leaps.hpp"
#include "lang/ir/cfg.hpp"
#include "lang/ir/op_groups.hpp"
#include "lang/ir/passes/bounds.hpp"
#include "lang/support/tuning.hpp"

namespace slope::codegen {

using ir::Op;
using Kind = Representation::Kind;

Batch::Batch(Runtime& runtime, PublishedCode& published, const Translator& translator, std::uint64_t first_name,
             Options options)
    : runtime_(runtime),
      published_(published),
      translator_(translator),
      result_(std::make_shared<NativeBatch>()),
      next_name_(first_name) {
  context_.setDiscardValueNames(!options.keeps_names);
  layout_ = std::make_unique<Layout>(runtime, context_);
  layout_->tests_indices = options.tests_indices;
  layout_->ahead = options.ahead;
  is_one_unit_ = options.ahead || runtime.describes_code;
  if (!runtime.describes_code || options.ahead) return;
  debug_ = std::make_unique<DebugInfo>(runtime, unit_for_next().module());
  layout_->debug = debug_.get();
}

Unit& Batch::unit_for_next() {
  if (!is_one_unit_ || units_.empty()) {
    units_.push_back(std::make_unique<Unit>(context_, !runtime_.describes_code || layout_->ahead));
    translator_.prepare(units_.back()->module());
    if (layout_->ahead) Ahead::add_runtime(units_.back()->module());
  }
  return *units_.back();
}

CodeInstance* Batch::typed_code(const Specialization& target) const {
  for (std::size_t i = target.code.size(); i-- > 0;) {
    CodeInstance* code = target.code[i].get();
    if (code->typed && code->valid_in(policy_.world)) return code;
  }
  return nullptr;
}

const Published* Batch::published(const CodeInstance* code) const {
  auto found = published_.find(code);
  return found != published_.end() && !found->second.owner.expired() ? &found->second : nullptr;
}

void Batch::add(CodeInstance& code) {
  auto member = std::make_unique<Member>();
  member->code = &code;
  member->function = code.typed.get();
  by_code_[&code] = member.get();
  members_.push_back(std::move(member));
}

bool Batch::build(CodeInstance& root, const BatchPolicy& policy, std::string& why) {
  policy_ = policy;
  if (!root.typed || !root.typed->typed) {
    why = "there is no typed code";
    return false;
  }
  add(root);
  add_callees();
  for (auto& member : members_) find_signature(*member);
  return true;
}

void Batch::add_callees() {
  std::size_t insts = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const ir::Function& function = *members_[i]->function;
    insts += function.insts.size();
    if (insts > policy_.max_insts) continue;
    for (const ir::Block& block : function.blocks) {
      // What leads to an error only is not worth compiling.
      if (block.terminator == ~0u) continue;
      Op end = function.insts[block.terminator].op;
      if (end == Op::throw_ || end == Op::unreachable) continue;
      for (std::uint32_t id : block.insts) {
        const ir::Inst& inst = function.insts[id];
        if (inst.op != Op::invoke || members_.size() >= policy_.max_functions) continue;
        const Specialization& target = *inst.aux_as<Specialization>();
        CodeInstance* code = typed_code(target);
        // Nothing has run yet, so callees may not have been looked at.
        if (!code && layout_->ahead)
          code = runtime_.tiers->typed_code(layout_->ahead->context, const_cast<Specialization&>(target));
        if (!code || !code->typed || by_code_.count(code) || published(code)) continue;
        if (target.compile_failed || (policy_.only_executed && target.calls == 0)) continue;
        add(*code);
      }
    }
  }
}

bool Batch::build_ahead(std::span<CodeInstance* const> roots, const BatchPolicy& policy, std::string& why) {
  policy_ = policy;
  for (CodeInstance* root : roots) {
    if (!root->typed || !root->typed->typed) {
      why = "there is no typed code";
      return false;
    }
    add(*root);
  }
  add_callees();
  for (auto& member : members_) find_signature(*member);
  return true;
}

std::vector<llvm::Function*> Batch::emit_ahead(std::span<const std::string> symbols) {
  emit(false);
  std::vector<llvm::Function*> made;
  for (auto& member : members_) member->native->setLinkage(llvm::GlobalValue::InternalLinkage);
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    Member& member = *members_[i];
    llvm::Module& module = member.unit->module();
    llvm::FunctionType* type = Ahead::entry_type(*layout_, member.signature);
    made.push_back(llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbols[i], module));
    Emitter::emit_ahead(*layout_, *member.unit, result_->data, *this, *member.function, member.signature, member.native,
                        made.back());
  }
  return made;
}

void Batch::find_signature(Member& member) {
  if (!member.signature.parameters.empty() || member.signature.result) return;
  const ir::Function& function = *member.function;
  for (std::uint32_t id : function.blocks[0].parameters) member.signature.parameters.push_back(function.insts[id].type);
  member.signature.result = function.return_type ? function.return_type : member.code->return_type;
  if (!member.signature.result) member.signature.result = runtime_.types.builtin().any;
  member.signature.has_status = true;  // what a recursive call sees
  deciding_.push_back(&member);
  bool fails = deciding_.size() > 16 || may_fail(function);
  deciding_.pop_back();
  member.signature.has_status = fails;
}

const Signature* Batch::known_signature(Specialization& target) {
  CodeInstance* code = typed_code(target);
  if (!code) return nullptr;
  if (auto found = by_code_.find(code); found != by_code_.end()) {
    find_signature(*found->second);
    return &found->second->signature;
  }
  const Published* p = published(code);
  return p ? &p->signature : nullptr;
}

CallTarget Batch::resolve(Specialization& target, Unit& caller) {
  CallTarget result;
  CodeInstance* code = typed_code(target);
  if (!code) return result;
  if (auto found = by_code_.find(code); found != by_code_.end()) {
    Member& member = *found->second;
    result.signature = &member.signature;
    if (member.unit == &caller) {
      result.callee = member.native;
    } else {
      llvm::Function*& declared = declared_[&caller][code];
      if (!declared) declared = declare_native(caller, member.signature, caller.refer(member.name));
      result.callee = declared;
    }
    return result;
  }
  const Published* p = published(code);
  if (!p) return result;
  result.signature = &p->signature;
  if (!caller.by_symbols()) {
    result.callee = link_to(*p, caller);
    return result;
  }
  llvm::Function*& declared = declared_[&caller][code];
  if (!declared) {
    result_->data.linked.push_back(p->owner.lock());
    declared = declare_native(caller, p->signature, caller.refer(p->entry));
  }
  result.callee = declared;
  return result;
}

// A function has no status only when every instruction is one of those below, in the inline form that cannot fail, and
// no value changes its representation on the way (making a Value of a struct allocates).
bool Batch::may_fail(const ir::Function& function) {
  ir::Cfg cfg = ir::build_cfg(function);
  for (ir::BlockId id : cfg.order) {
    for (const ir::Edge& edge : function.blocks[id].edges)
      if (cfg.position[edge.target] <= cfg.position[id]) return true;  // the user may want to stop a loop
  }
  std::optional<ir::BoundsProofs> proofs;
  auto concrete = [&](const Type* type) { return type && layout_->of(type).kind != Kind::dynamic; };
  for (ir::BlockId id : cfg.order) {
    const ir::Block& block = function.blocks[id];
    if (block.handler != ir::no_block) return true;
    for (std::uint32_t p : block.parameters) {
      if (!concrete(function.insts[p].type)) return true;
    }
    for (std::uint32_t i : block.insts) {
      const ir::Inst& inst = function.insts[i];
      if (may_fail(function, inst)) return true;
      if (!layout_->tests_indices || !ir::is_element_access(inst.op)) continue;
      if (!proofs) proofs = ir::prove_bounds(runtime_, function, cfg);
      if (!proofs->is_inside(i)) return true;
    }
    const ir::Inst& end = function.insts[block.terminator];
    switch (ir::in_group<ir::TerminatorOp>(end.op)) {
      case ir::TerminatorOp::jump:
      case ir::TerminatorOp::unreachable:
      case ir::TerminatorOp::switch_int:
        break;
      case ir::TerminatorOp::branch:
        if (function.type_of(end.operands[0], runtime_.types) != runtime_.types.builtin().boolean) return true;
        break;
      case ir::TerminatorOp::ret: {
        const Type* type = function.type_of(end.operands[0], runtime_.types);
        if (type != function.return_type && layout_->of(function.return_type).kind != Kind::none) return true;
        break;
      }
      case ir::TerminatorOp::throw_:
        return true;
    }
    for (const ir::Edge& edge : block.edges) {
      for (std::size_t i = 0; i < edge.arguments.size(); ++i) {
        const Type* to = function.insts[function.blocks[edge.target].parameters[i]].type;
        if (function.type_of(edge.arguments[i], runtime_.types) != to && layout_->of(to).kind != Kind::none)
          return true;
      }
    }
  }
  return false;
}

bool Batch::may_fail(const ir::Function& function, const ir::Inst& inst) {
  TypeTable& types = runtime_.types;
  auto type_of = [&](std::size_t i) { return function.type_of(inst.operands[i], types); };
  auto kind = [&](const Type* type) { return layout_->of(type).kind; };
  auto plain = [&](const Type* type) {
    return type && (kind(type) == Kind::none || kind(type) == Kind::bits || kind(type) == Kind::reference ||
                    kind(type) == Kind::fields);
  };
  if (!plain(inst.type)) return true;
  for (std::size_t i = 0; i < inst.operands.size(); ++i) {
    if (!plain(type_of(i))) return true;
  }
  const bool raises = (ir::op_info(inst.op).effects & effect_throws) && !(inst.flags & ir::inst_nothrow);
  if (inst.op == Op::string_byte) return layout_->tests_indices;  // the index may be outside
  switch (ir::op_info(inst.op).fails) {
    case ir::Fails::never:
      return false;
    case ir::Fails::always:
      return true;
    case ir::Fails::by_types:
      break;
  }
  if (ir::is_arithmetic(inst.op)) {
    if (raises) return true;
    for (std::size_t i = 0; i < inst.operands.size(); ++i) {
      if (kind(type_of(i)) != Kind::bits) return true;
    }
    return false;
  }
  if (ir::group_of(inst.op) == ir::OpGroup::conversions) {
    return kind(inst.type) != Kind::bits || kind(type_of(1)) != Kind::bits;
  }
  switch (inst.op) {
    case Op::array_size:
      return !inst.operands[1].is_constant() || function.constant_value(inst.operands[1]).bits < 1;
    case Op::array_get: {
      const DataType* array = as_data(type_of(0));
      return array->params.empty() || kind(array->params[0]) != Kind::bits || kind(type_of(1)) != Kind::bits;
    }
    case Op::array_set:
    case Op::array_init: {
      const DataType* array = as_data(type_of(0));
      return array->params.empty() || kind(array->params[0]) != Kind::bits || type_of(1) != array->params[0] ||
             kind(type_of(2)) != Kind::bits || inst.type != type_of(0);
    }
    case Op::field_at:
    case Op::get_field: {
      if (inst.op == Op::get_field && (raises || !inst.operands[1].is_constant())) return true;
      return kind(type_of(0)) != Kind::fields;
    }
    case Op::tuple:
    case Op::make_closure: {
      const DataType* type = as_data(inst.type);
      if (kind(type) == Kind::none) return false;
      if (kind(type) != Kind::fields || type->fields.size() != inst.operands.size()) return true;
      for (std::size_t i = 0; i < inst.operands.size(); ++i) {
        if (type_of(i) != type->fields[i].type) return true;
      }
      return false;
    }
    case Op::make_struct: {
      const DataType* type = as_data(inst.type);
      if (kind(type) != Kind::fields || type->fields.size() + 1 != inst.operands.size()) return true;
      for (std::size_t i = 1; i < inst.operands.size(); ++i) {
        if (type_of(i) != type->fields[i - 1].type) return true;
      }
      return false;
    }
    case Op::select:
      return type_of(0) != types.builtin().boolean || type_of(1) != inst.type || type_of(2) != inst.type;
    case Op::egal:
      return kind(type_of(0)) != Kind::bits || type_of(0) != type_of(1);
    case Op::refine:
      return type_of(0) != inst.type && kind(inst.type) != Kind::none;
    case Op::invoke: {
      Specialization& target = *inst.aux_as<Specialization>();
      CodeInstance* code = typed_code(target);
      auto member = by_code_.find(code);
      if (member != by_code_.end() &&
          std::find(deciding_.begin(), deciding_.end(), member->second) != deciding_.end()) {
        return true;  // recursion wants the stack check
      }
      const Signature* signature = known_signature(target);
      if (!signature || signature->has_status || target.method->is_vararg) return true;
      if (signature->result != inst.type && kind(inst.type) != Kind::none) return true;
      for (std::size_t i = 0; i < inst.operands.size(); ++i) {
        const Type* to = signature->parameters[i];
        if (type_of(i) != to && kind(to) != Kind::none) return true;
      }
      return false;
    }
    default:
      assert(!"an operation that fails by its types, without a case here");
      return true;
  }
}

llvm::FunctionCallee Batch::link_to(const Published& p, Unit& caller) {
  result_->data.linked.push_back(p.owner.lock());  // by address: the older batch must live as long as this one
  return caller.code(p.entry, layout_->function_type(p.signature));
}

bool Batch::build_wrapper(CodeInstance& code) {
  const Published* p = published(&code);
  if (!p) return false;
  add(code);
  Member& member = *members_[0];
  member.signature = p->signature;
  member.unit = &unit_for_next();
  member.name = unique(member.function->name);
  declare_boxed(member);
  Emitter::emit_boxed(*layout_, *member.unit, result_->data, *this, *member.function, member.is_vararg(),
                      member.signature, link_to(*p, *member.unit), member.boxed);
  return true;
}

void Batch::want_quick_code(Replacer& replacer, bool spares_short_loops) {
  if (is_one_unit_) return;
  for (auto& member : members_) {
    if (!member->native || !member->unit) continue;
    QuickCode& quick = result_->data.quick.emplace_back();
    quick.replacer = &replacer;
    quick.has_wrapper = member->boxed != nullptr;
    member->unit->spares_short_loops = spares_short_loops;
    member->unit->quick = &quick;
  }
}

bool Batch::build_from_loop(const QuickCode& quick, unsigned loop, const std::string& name, std::string& why) {
  const llvm::MemoryBufferRef text(quick.text.bitcode, "slope");
  auto module = llvm::parseBitcodeFile(text, context_);
  if (!module) {
    why = llvm::toString(module.takeError());
    return false;
  }
  if (llvm::Function* function = (*module)->getFunction("f"); function && !function->isDeclaration())
    simplify_for_leaps(*function);
  if (!continue_at_loop(**module, loop)) {
    why = "the loop can't be entered";
    return false;
  }
  entries_.push_back(unique(name));
  units_.push_back(std::make_unique<Unit>(std::move(*module), quick.text, entries_.back()));
  return true;
}

bool Batch::build_direct(CodeInstance& code) {
  const Published* p = published(&code);
  if (!p) return false;
  add(code);
  Member& member = *members_[0];
  member.signature = p->signature;
  member.unit = &unit_for_next();
  llvm::Function* made = declare_entry("direct", layout_->i1, 3);
  Emitter::emit_direct(*layout_, *member.unit, result_->data, *this, *member.function, member.signature,
                       link_to(*p, *member.unit), made);
  return true;
}

void Batch::build_flat_gradient(const BatchPolicy& policy, llvm::ArrayRef<std::uint8_t> steps) {
  // What is longer gains nothing. Records of frames and debuggers want the derivative as a function of its own.
  constexpr std::size_t most_inlined = tuning::batch_inlined;
  const Member& member = *members_[0];
  policy_ = policy;
  by_code_.clear();  // what calls itself calls what has been published
  llvm::Function* body = nullptr;
  Unit& unit = *member.unit;
  llvm::FunctionCallee native = link_to(*published(member.code), unit);
  if (member.function->insts.size() <= most_inlined && !debug_ && !runtime_.records_frames) {
    body = declare_native(unit, member.signature, "inlined");
    Emitter(*layout_, unit, result_->data, *this, *member.function, member.signature, body).run();
    native = body;
  }
  llvm::Function* made = declare_entry("gradient", layout_->i8, 5);
  Emitter::emit_flat_gradient(*layout_, unit, result_->data, *this, *member.function, member.signature, native, steps,
                              made);
  if (!body) return;
  llvm::InlineFunctionInfo info;
  llvm::InlineFunction(*llvm::cast<llvm::CallBase>(*body->user_begin()), info);
  body->eraseFromParent();
}

// Of a context and other pointers.
llvm::Function* Batch::declare_entry(const std::string& kind, llvm::Type* result, unsigned parameters) {
  llvm::SmallVector<llvm::Type*, 5> pointers(parameters, layout_->ptr);
  Unit& unit = *members_[0]->unit;
  entries_.push_back(unique(members_[0]->function->name + "." + kind));
  llvm::Function* made =
      llvm::Function::Create(llvm::FunctionType::get(result, pointers, false), llvm::Function::ExternalLinkage,
                             unit.define(kind, entries_.back()), unit.module());
  made->addFnAttr(llvm::Attribute::NoUnwind);
  made->addRetAttr(llvm::Attribute::ZExt);
  return made;
}

llvm::Function* Batch::declare_native(Unit& unit, const Signature& signature, const std::string& symbol) {
  llvm::Function* made =
      llvm::Function::Create(layout_->function_type(signature), llvm::Function::ExternalLinkage, symbol, unit.module());
  made->addFnAttr(llvm::Attribute::NoUnwind);
  made->setDSOLocal(true);
  // Nothing else writes a context's leading fields but those who return through calls.
  made->getArg(0)->addAttr(llvm::Attribute::NonNull);
  made->getArg(0)->addAttr(llvm::Attribute::NoUndef);
  unsigned argument = 1;
  for (const Type* type : signature.parameters) {
    for (std::uint64_t bytes : layout_->known_bytes(type)) {
      if (bytes) {
        // Lets loads of array headers move out of loops that may run no time.
        made->addParamAttr(argument, llvm::Attribute::NonNull);
        made->addParamAttr(argument, llvm::Attribute::getWithAlignment(context_, llvm::Align(8)));
        made->addParamAttr(argument, llvm::Attribute::getWithDereferenceableBytes(context_, bytes));
      }
      ++argument;
    }
  }
  return made;
}

void Batch::declare_boxed(Member& member) {
  entries_.push_back(member.name + ".boxed");
  member.boxed = llvm::Function::Create(layout_->boxed_type(), llvm::Function::ExternalLinkage,
                                        member.unit->define("boxed", entries_.back()), member.unit->module());
  member.boxed->addFnAttr(llvm::Attribute::NoUnwind);
  member.boxed->addRetAttr(llvm::Attribute::ZExt);
}

void Batch::emit(bool boxed_root) {
  for (auto& member : members_) {
    bool with_boxed = boxed_root && member == members_[0];
    std::string name = member->function->name;
    if (name.empty() && member->code->owner) name = member->code->owner->method->name->name;
    member->name = unique(name);
    member->unit = &unit_for_next();
    entries_.push_back(member->name);
    member->native = declare_native(*member->unit, member->signature, member->unit->define("f", member->name));
    if (with_boxed) declare_boxed(*member);
  }
  for (auto& member : members_) {
    if (policy_.cancelled && policy_.cancelled->load(std::memory_order_relaxed)) return;
    Emitter(*layout_, *member->unit, result_->data, *this, *member->function, member->signature, member->native).run();
    if (member->boxed) {
      Emitter::emit_boxed(*layout_, *member->unit, result_->data, *this, *member->function, member->is_vararg(),
                          member->signature, member->native, member->boxed);
    }
  }
  if (debug_) debug_->finish();
}

}  // namespace slope::codegen
