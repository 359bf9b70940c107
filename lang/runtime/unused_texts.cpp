// Frees the texts that no position refers to: a host that runs texts for hours leaves none behind.
//
// A text belongs to whoever may still show a line of it: methods (syntax, forms, untyped and typed code, what was derived
// from them), code that runs, definitions that wait, traces of errors, refusals of derivatives. A walk over all of these
// marks the files that their positions are in. What none of them named is removed. A position that this walk forgot would
// show the empty file, or another text where the last ones were removed, never memory that was freed (SourceMap).
//
// When: between two uses of the engine by its host, and when there are twice as many texts as the last walk left. The
// library's texts stay, and all texts of an engine that somebody watches, or whose code the program can look at.
#include <new>
#include <unordered_set>

#include "lang/runtime/coroutines.hpp"
#include "lang/runtime/reached.hpp"
#include "lang/runtime/runtime_impl.hpp"

namespace slope {

namespace {

constexpr std::size_t least_new_texts = 512;

class UsedTexts final : public Reached {
 public:
  UsedTexts(Runtime& runtime, std::size_t of_library)
      : runtime_(runtime), used_(runtime.sources.size()), of_library_(of_library) {}

  bool is_used(FileId file) const { return file < of_library_ || used_[file]; }

  void method(const Method& method) {
    place(method.span);
    if (method.ir) function(*method.ir);
    if (method.span.file >= of_library_ && runtime_.hooks().reach_syntax) runtime_.hooks().reach_syntax(&method, *this);
    for (const auto& one : method.specializations) made_of(*one);
  }
  void made_of(const Specialization& target) {
    for (const auto& one : target.code) code(*one);
    for (const auto& source : target.sources) code(*source);
    runtime_.tiers->reach_derived(target, *this);
  }
  void trace(const std::vector<TraceEntry>& entries) {
    for (const TraceEntry& entry : entries) place(entry.span);
  }

  // --- Reached ---
  void words(const void*, const void*) override {}
  void word(const void*) override {}
  void function(const ir::Function& function) override { runtime_.tiers->reach_function(function, *this); }
  void code(const CodeInstance& code) override {
    if (code.typed) function(*code.typed);
  }
  void specialization(const Specialization&) override {}  // all are looked at
  void place(Span span) override {
    if (span.file < used_.size()) used_[span.file] = true;
  }
  bool wants_places(const void* of_tree) override { return trees_.insert(of_tree).second; }

 private:
  Runtime& runtime_;
  std::vector<bool> used_;
  std::size_t of_library_;
  std::unordered_set<const void*> trees_;
};

}  // namespace

void Runtime::Impl::free_unused_texts() {
  UsedTexts used(runtime, texts_of_library);
  for (const MethodTable& table : tables)
    for (const auto& method : table.methods) used.method(*method);
  runtime.tiers->each_synthetic([&](const Specialization& made) { used.made_of(made); });
  runtime.tiers->each_loop([&](const Method*, const CodeInstance& loop) { used.code(loop); });
  for (const CodeInstance* code : ended) used.code(*code);
  if (runtime.hooks().reach_syntax) runtime.hooks().reach_syntax(nullptr, used);
  runtime.tiers->reach_held(used);
  used.trace(runtime.context.trace);
  used.trace(runtime.context.last_trace);
  if (runtime.coroutines)
    runtime.coroutines->each_state([&](World, const std::vector<TraceEntry>& entries) { used.trace(entries); });
  for (FileId file = 1; file < runtime.sources.size(); ++file) {
    if (used.is_used(file) || !runtime.sources.has(file)) continue;
    runtime.outside_heap.remove(runtime.sources.file(file).bytes());
    runtime.sources.remove(file);
  }
}

void Runtime::free_unused_texts_when_due() {
  if (impl_->texts_of_library == 0) {
    impl_->texts_of_library = sources.size();
    impl_->next_look_at_texts = sources.count() + least_new_texts;
  }
  if (sources.count() < impl_->next_look_at_texts) return;
  try {
    if (!kept_methods.is_paused() && !records_frames && !observer && !describes_code && other_heaps == 0 && !compiles &&
        tiers)
      impl_->free_unused_texts();
  } catch (const std::bad_alloc&) {  // nothing was removed
  }
  const std::size_t left = sources.count();
  impl_->next_look_at_texts = left + std::max(least_new_texts, left - std::min(left, impl_->texts_of_library));
}

}  // namespace slope
