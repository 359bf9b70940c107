#include "codegen/link.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/StringMap.h>

namespace slope::codegen {

namespace jitlink = llvm::jitlink;

namespace {

class Join {
 public:
  explicit Join(jitlink::LinkGraph& into) : into_(into) {}

  // The blocks of one object and the symbols that it defines.
  void add(const Unit& unit, jitlink::LinkGraph& graph);
  // After all have been added: what refers to what.
  llvm::Error connect(const Unit& unit, jitlink::LinkGraph& graph);

 private:
  llvm::StringRef text(llvm::StringRef name) {
    llvm::MutableArrayRef<char> kept = into_.allocateContent(llvm::ArrayRef<char>(name.data(), name.size()));
    return {kept.data(), kept.size()};
  }
  jitlink::Block& copy(jitlink::Section& to, jitlink::Block& block);
  jitlink::Symbol& copy(jitlink::Block& block, const jitlink::Symbol& symbol, llvm::StringRef name);
  jitlink::Symbol& external(llvm::StringRef name);
  jitlink::Symbol& data(const void* address);

  jitlink::LinkGraph& into_;
  llvm::DenseMap<const jitlink::Block*, jitlink::Block*> blocks_;
  llvm::DenseMap<const jitlink::Symbol*, jitlink::Symbol*> symbols_;
  llvm::StringMap<jitlink::Symbol*> functions_;  // by the batch's names
  llvm::StringMap<jitlink::Symbol*> externals_;
  llvm::DenseMap<const void*, jitlink::Symbol*> data_;
};

jitlink::Block& Join::copy(jitlink::Section& to, jitlink::Block& block) {
  if (block.isZeroFill())
    return into_.createZeroFillBlock(to, block.getSize(), block.getAddress(), block.getAlignment(),
                                     block.getAlignmentOffset());
  return into_.createMutableContentBlock(to, into_.allocateContent(block.getContent()), block.getAddress(),
                                         block.getAlignment(), block.getAlignmentOffset());
}

jitlink::Symbol& Join::copy(jitlink::Block& block, const jitlink::Symbol& symbol, llvm::StringRef name) {
  if (name.empty())
    return into_.addAnonymousSymbol(block, symbol.getOffset(), symbol.getSize(), symbol.isCallable(), symbol.isLive());
  return into_.addDefinedSymbol(block, symbol.getOffset(), text(name), symbol.getSize(), symbol.getLinkage(),
                                symbol.getScope(), symbol.isCallable(), symbol.isLive());
}

void Join::add(const Unit& unit, jitlink::LinkGraph& graph) {
  for (jitlink::Section& section : graph.sections()) {
    jitlink::Section* to = into_.findSectionByName(section.getName());
    if (!to) {
      to = &into_.createSection(text(section.getName()), section.getMemProt());
      to->setMemLifetime(section.getMemLifetime());
    }
    for (jitlink::Block* block : section.blocks()) blocks_[block] = &copy(*to, *block);
    for (const jitlink::Symbol* symbol : section.symbols()) {
      jitlink::Block& block = *blocks_[&symbol->getBlock()];
      const bool is_local = symbol->getScope() == jitlink::Scope::Local;
      llvm::StringRef name;
      if (!is_local && symbol->hasName()) {
        name = symbol->getName();
        for (const Unit::Name& defined : unit.defined())
          if (name == defined.symbol) name = defined.name;
      }
      jitlink::Symbol& made = copy(block, *symbol, name);
      symbols_[symbol] = &made;
      if (!name.empty()) functions_[name] = &made;
    }
  }
}

jitlink::Symbol& Join::external(llvm::StringRef name) {
  jitlink::Symbol*& known = externals_[name];
  if (!known) known = &into_.addExternalSymbol(text(name), 0, false);
  return *known;
}

// The linker's table of addresses has one entry for each name.
jitlink::Symbol& Join::data(const void* address) {
  jitlink::Symbol*& known = data_[address];
  if (!known)
    known =
        &into_.addAbsoluteSymbol(text("a" + std::to_string(data_.size())), llvm::orc::ExecutorAddr::fromPtr(address), 0,
                                 jitlink::Linkage::Strong, jitlink::Scope::Local, true);
  return *known;
}

llvm::Error Join::connect(const Unit& unit, jitlink::LinkGraph& graph) {
  llvm::StringMap<const void*> addresses;
  for (const Unit::Address& address : unit.addresses()) addresses[address.symbol] = address.data;
  llvm::StringMap<llvm::StringRef> referred;
  for (const Unit::Name& name : unit.referred()) referred[name.symbol] = name.name;
  for (const jitlink::Symbol* symbol : graph.external_symbols()) {
    const llvm::StringRef name = symbol->getName();
    if (auto known = addresses.find(name); known != addresses.end()) {
      symbols_[symbol] = &data(known->second);
    } else if (auto other = referred.find(name); other != referred.end()) {
      auto function = functions_.find(other->second);
      if (function == functions_.end())
        return llvm::createStringError(llvm::inconvertibleErrorCode(), "no unit defines %s", other->second.data());
      symbols_[symbol] = function->second;
    } else {
      symbols_[symbol] = &external(name);
    }
  }
  for (const auto& section : graph.sections()) {
    for (const jitlink::Block* block : section.blocks()) {
      jitlink::Block& made = *blocks_[block];
      for (const jitlink::Edge& edge : block->edges()) {
        auto target = symbols_.find(&edge.getTarget());
        if (target == symbols_.end())
          return llvm::createStringError(llvm::inconvertibleErrorCode(), "an object refers to what it does not name");
        made.addEdge(edge.getKind(), edge.getOffset(), *target->second, edge.getAddend());
      }
    }
  }
  return llvm::Error::success();
}

}  // namespace

llvm::Expected<std::unique_ptr<jitlink::LinkGraph>> join_objects(llvm::ArrayRef<UnitObject> objects) {
  std::vector<std::unique_ptr<jitlink::LinkGraph>> graphs;
  for (const UnitObject& each : objects) {
    auto graph = jitlink::createLinkGraphFromObject(each.object->getMemBufferRef());
    if (!graph) return graph.takeError();
    graphs.push_back(std::move(*graph));
  }
  const jitlink::LinkGraph& first = *graphs.front();
  auto joined = std::make_unique<jitlink::LinkGraph>("slope", first.getTargetTriple(), first.getFeatures(),
                                                     first.getPointerSize(), first.getEndianness(),
                                                     &jitlink::getGenericEdgeKindName);
  Join join(*joined);
  for (std::size_t i = 0; i < graphs.size(); ++i) join.add(*objects[i].unit, *graphs[i]);
  for (std::size_t i = 0; i < graphs.size(); ++i)
    if (llvm::Error error = join.connect(*objects[i].unit, *graphs[i])) return error;
  return joined;
}

}  // namespace slope::codegen
