// The CodeGenerator that the engine loads: batches, publication of entries, dumps.
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "codegen/batch.hpp"
#include "codegen/leaps.hpp"
#include "codegen/loader.hpp"
#include "codegen/object_cache.hpp"
#include "codegen/workers.hpp"
#include "lang/support/address_space.hpp"
#include "lang/support/exception_safe.hpp"
#include "lang/support/tuning.hpp"

namespace slope::codegen {

namespace {

// Code that costs LLVM more than a moment waits until the interpreter has spent about a quarter of that time on it: many
// large functions, of derivatives above all, run only once or twice. (LLVM takes 0.1 ms for an instruction of its own, and
// what counts as 200 here takes the interpreter some 25 µs, with the calls in it.)
constexpr std::size_t soon_instructions = tuning::compiled_at_once;
constexpr std::uint64_t worth_of_instruction = tuning::worth_of_instruction;
constexpr std::uint64_t worth_of_quick = tuning::worth_of_quick;
constexpr std::int64_t worth_of_good = tuning::worth_of_good;
constexpr std::int64_t worth_of_good_elsewhere = tuning::worth_of_good_elsewhere;
constexpr std::int64_t often_called = tuning::quick_code_calls;
constexpr std::size_t stack_of_compiling = tuning::stack_of_compiling;

class Generator : public CodeGenerator, private Replacer {
 public:
  Generator(Runtime& runtime, const CodegenHost& host) : runtime_(runtime), host_(host) {}

  ~Generator() override;

  bool compile(Context& ctx, CodeInstance& code, std::string& why) override;
  Compiled compile_later(Context& ctx, CodeInstance& code, std::string& why) override;
  DirectCode direct(Context& ctx, CodeInstance& code, std::span<const std::uint8_t> steps, std::string& why) override;
  std::string dump(Context& ctx, CodeInstance& code, Dump what) override;
  void find_in_use(Context& ctx, std::vector<const CodeInstance*>& found) override;
  void forget(const CodeInstance& code) override;
  std::size_t bytes() const override { return jit_ ? jit_->bytes() : 0; }
  bool locate(const void* address, std::uintptr_t& function, std::vector<CodePlace>& places) override;

 private:
  bool start(std::string& why);
  bool emit(Context& ctx, CodeInstance& code, Batch& batch, std::string& why);
  Effort effort(Batch& batch) const;
  bool make_objects(Batch& batch, std::vector<UnitObject>& objects, const std::atomic<std::uint32_t>* cancelled,
                    std::string& why);
  bool publish(Batch& batch, std::vector<UnitObject> objects, std::string& why);
  void publish_finished();
  // Of quick code (quick_code.hpp): from now on it may be replaced; make and publish what replaces it.
  void note_quick(Batch& batch, const Batch::Member& member, const std::vector<void*>& addresses);
  void* replace(Context& ctx, QuickCode& quick, AskedAt where) override;
  bool place_to_replace(const QuickCode& quick, AskedAt where, AskedAt& place) const;
  static void will_not_be(QuickCode& quick, AskedAt where);
  void replace_later(Context& ctx, QuickCode& quick, AskedAt where);
  bool build_good(Context& ctx, QuickCode& quick, AskedAt where, Batch& batch, std::string& why);
  bool make_good(Context& ctx, QuickCode& quick, AskedAt where, std::string& why);
  void publish_good(QuickCode& quick, AskedAt where, Batch& batch, std::vector<UnitObject> objects);
  void publish_good_entry(QuickCode& quick, Batch& batch, std::vector<UnitObject> objects);
  void publish_good_loop(QuickCode& quick, unsigned loop, Batch& batch, std::vector<UnitObject> objects);
  Compiled compile_if_worth(Context& ctx, CodeInstance& code, std::string& why);
  BatchPolicy policy(Context& ctx, const CodeInstance& root) const;
  void keep(Batch& batch, const std::vector<void*>& addresses);

  Runtime& runtime_;
  CodegenHost host_;
  std::unique_ptr<Jit> jit_;
  std::shared_ptr<ObjectCache> cache_;  // jobs hold it as well; null: none, or nobody has asked yet
  bool looked_for_cache_ = false;
  std::string start_error_;
  PublishedCode published_;
  std::vector<std::weak_ptr<NativeBatch>> batches_;  // all
  std::vector<std::shared_ptr<NativeBatch>> kept_;   // all, when frames are recorded: records point into them
  std::shared_ptr<HostCode> host_code_ = std::make_shared<HostCode>();
  std::uint64_t names_ = 1;
  std::unordered_map<const CodeInstance*, std::shared_ptr<Job>> waiting_;  // by the root of the batch
  bool has_workers_ = false;
  // What quick code there is that may still be replaced, and what is being made for it.
  std::unordered_map<const CodeInstance*, QuickCode*> quick_;
  struct Replacement {
    AskedAt where;
    std::shared_ptr<Job> job;
  };
  std::unordered_map<const CodeInstance*, Replacement> replacing_;  // one at a time
  // What has been asked for and is not worth its time yet. It is kept as it was emitted, because what is compiled in the
  // meantime would change its text: the next start, which asks at the same point, shall find it in the cache.
  struct Postponed {
    std::uint64_t spent = 0;  // instructions that the interpreter ran, about
    std::uint64_t worth = 0;
    std::unique_ptr<Batch> batch;  // null: not asked for yet
    Effort effort;
    std::vector<UnitObject> objects;  // null: it is to be made
    std::vector<ObjectCache::Key> keys;
  };
  std::unordered_map<const CodeInstance*, Postponed> postponed_;
};

Generator::~Generator() {
  for (const auto& [root, job] : waiting_) job->cancel();
  for (const auto& [code, replacement] : replacing_) replacement.job->cancel();
}

bool Generator::start(std::string& why) {
  if (!jit_ && start_error_.empty())
    jit_ = Jit::create({runtime_.shows_code_to_debuggers, runtime_.shows_code_to_perf, runtime_.records_frames},
                       start_error_);
  if (!jit_ || jit_->translator().is_broken()) {
    why = jit_ ? "there was not enough memory to compile" : start_error_;
    return false;
  }
  // Who wants to see what LLVM does wants LLVM to do it.
  if (!looked_for_cache_ && !host_.dump_llvm && !runtime_.describes_code) {
    looked_for_cache_ = true;
    cache_ = ObjectCache::open(host_.cache, host_.uses_image ? ObjectCache::image_path() : std::string(),
                               jit_->translator().identity(), tuning::cache_bytes);
  }
  return true;
}

BatchPolicy Generator::policy(Context& ctx, const CodeInstance& root) const {
  BatchPolicy result;
  result.world = ctx.world;
  result.cancelled = &ctx.interrupt;
  // In automatic mode whatever the hot function uses has run already; the rest stays interpreted until it is hot too.
  if (runtime_.tiers && runtime_.tiers->mode == TierMode::automatic) {
    result.only_executed = root.owner && root.owner->calls >= runtime_.tiers->call_threshold / 2;
  }
  return result;
}

Effort Generator::effort(Batch& batch) const {
  std::vector<const llvm::Module*> modules;
  for (std::unique_ptr<Unit>& unit : batch.units()) modules.push_back(&unit->module());
  Effort result;
  result.level = Translator::is_huge(modules) ? CodeEffort::none : runtime_.code_effort;
  result.quick = host_.quick_code && result.level == CodeEffort::full && runtime_.tiers &&
                 runtime_.tiers->mode == TierMode::automatic;
  result.verifies = host_.verify;
  result.dumps = host_.dump_llvm;
  result.cache = cache_.get();
  result.times = host_.times;
  return result;
}

bool Generator::make_objects(Batch& batch, std::vector<UnitObject>& objects,
                             const std::atomic<std::uint32_t>* cancelled, std::string& why) {
  const Effort effort = this->effort(batch);
  for (std::unique_ptr<Unit>& unit : batch.units()) {
    std::unique_ptr<llvm::MemoryBuffer> object = jit_->translator().translate(*unit, effort, cancelled, why);
    if (!object) return false;
    objects.push_back({unit.get(), std::move(object)});
  }
  return true;
}

bool Generator::emit(Context& ctx, CodeInstance& code, Batch& batch, std::string& why) {
  // LLVM ends the process when it gets no memory.
  if (!has_address_space(compile_reserve)) {
    why = "there is not enough memory left to compile";
    return false;
  }
  const StageTime time(host_.times, StageTimes::Stage::emission, [&] { return code.typed->name; });
  if (!code.entry.load(std::memory_order_acquire) || !batch.build_wrapper(code)) {
    if (!batch.build(code, policy(ctx, code), why)) return false;
    batch.emit(true);
  }
  names_ = batch.next_name();
  if (ctx.interrupt.load(std::memory_order_relaxed)) {
    why = "interrupted";
    return false;
  }
  return true;
}

bool Generator::compile(Context& ctx, CodeInstance& code, std::string& why) {
  if (!start(why)) return false;
  publish_finished();
  if (code.boxed.load(std::memory_order_acquire)) return true;
  if (const auto begun = waiting_.find(&code); begun != waiting_.end()) {
    const std::shared_ptr<Job> job = begun->second;
    Workers::shared().finish(*job, jit_->translator());
    publish_finished();
    if (code.boxed.load(std::memory_order_acquire)) return true;
  }
  Batch batch(runtime_, published_, jit_->translator(), names_, {!host_.trusts_inbounds, host_.dump_llvm});
  std::vector<UnitObject> objects;
  return emit(ctx, code, batch, why) && make_objects(batch, objects, &ctx.interrupt, why) &&
         publish(batch, std::move(objects), why);
}

CodeGenerator::Compiled Generator::compile_later(Context& ctx, CodeInstance& code, std::string& why) {
  const auto now = [&] { return compile(ctx, code, why) ? Compiled::done : Compiled::failed; };
  // What people read or debug is compiled where they see it happen.
  if (!start(why) || host_.dump_llvm || runtime_.describes_code) return now();
  if (host_.compile_threads == 0) return compile_if_worth(ctx, code, why);
  publish_finished();
  if (code.boxed.load(std::memory_order_acquire)) return Compiled::done;
  if (waiting_.contains(&code)) return Compiled::waits;
  if (!has_workers_) {
    std::string none;
    has_workers_ = Workers::shared().want(host_.compile_threads, none);
    if (!has_workers_) host_.compile_threads = 0;
    if (!has_workers_) return now();
  }
  auto job = std::make_shared<Job>();
  job->batch = std::make_unique<Batch>(runtime_, published_, jit_->translator(), names_,
                                       Batch::Options{!host_.trusts_inbounds, host_.dump_llvm});
  if (!emit(ctx, code, *job->batch, why)) return Compiled::failed;
  job->effort = effort(*job->batch);
  job->effort.times = nullptr;
  if (job->effort.quick) job->batch->want_quick_code(*this, host_.quick_code == 1);
  job->cache = cache_;
  waiting_[&code] = job;
  Workers::shared().add(job);
  return Compiled::begun;
}

namespace {

// About how many instructions the interpreter has run of a function when it is asked for: it was called so many times,
// or its loops have turned sixteen times as often (Vm::count_back_edges).
std::uint64_t interpreted_work(const ir::Function& function, std::uint32_t calls) {
  std::size_t insts = 0, loops = 0;
  for (const ir::Block& block : function.blocks) {
    insts += block.insts.size() + 1;
    loops += block.is_loop_header;
  }
  return std::uint64_t{calls} * (loops && loops < 16 ? 16 * insts / loops : insts);
}

}  // namespace

CodeGenerator::Compiled Generator::compile_if_worth(Context& ctx, CodeInstance& code, std::string& why) {
  if (code.boxed.load(std::memory_order_acquire)) {
    postponed_.erase(&code);
    return Compiled::done;
  }
  Postponed& postponed = postponed_[&code];
  postponed.spent += interpreted_work(*code.typed, runtime_.tiers->call_threshold);
  if (postponed.spent < postponed.worth) return Compiled::waits;
  if (!postponed.batch) {
    postponed.batch = std::make_unique<Batch>(runtime_, published_, jit_->translator(), names_,
                                              Batch::Options{!host_.trusts_inbounds, host_.dump_llvm});
    if (!emit(ctx, code, *postponed.batch, why)) {
      postponed_.erase(&code);
      return Compiled::failed;
    }
    postponed.effort = effort(*postponed.batch);
    if (postponed.effort.quick) postponed.batch->want_quick_code(*this, host_.quick_code == 1);
    std::size_t missing = 0, missing_quick = 0;
    for (std::unique_ptr<Unit>& unit : postponed.batch->units()) {
      postponed.objects.push_back(
          {unit.get(), Translator::find(*unit, postponed.effort, postponed.keys.emplace_back())});
      if (!postponed.objects.back().object)
        (unit->has_switches ? missing_quick : missing) += unit->module().getInstructionCount();
    }
    if (postponed.effort.level == CodeEffort::full &&
        missing * worth_of_instruction + missing_quick * worth_of_quick > soon_instructions * worth_of_instruction)
      postponed.worth = missing * worth_of_instruction + missing_quick * worth_of_quick;
    if (postponed.spent < postponed.worth) return Compiled::waits;
  }
  Postponed ready = std::move(postponed);
  postponed_.erase(&code);
  std::vector<UnitObject> objects;
  for (std::size_t i = 0; i < ready.keys.size(); ++i) {
    Unit& unit = *ready.batch->units()[i];
    std::unique_ptr<llvm::MemoryBuffer> object = std::move(ready.objects[i].object);
    if (!object) object = jit_->translator().make(unit, ready.effort, ready.keys[i], &ctx.interrupt, why);
    if (!object) return Compiled::failed;
    objects.push_back({&unit, std::move(object)});
  }
  return publish(*ready.batch, std::move(objects), why) ? Compiled::done : Compiled::failed;
}

void Generator::publish_finished() {
  std::vector<std::shared_ptr<Job>> finished;
  std::erase_if(waiting_, [&](const auto& entry) {
    if (!entry.second->done.load(std::memory_order_acquire)) return false;
    finished.push_back(entry.second);
    return true;
  });
  std::vector<std::pair<QuickCode*, Replacement>> good;
  std::erase_if(replacing_, [&](const auto& entry) {
    if (!entry.second.job->done.load(std::memory_order_acquire)) return false;
    if (const auto quick = quick_.find(entry.first); quick != quick_.end())
      good.emplace_back(quick->second, entry.second);
    return true;
  });
  for (const auto& [quick, replacement] : good) {
    Job& job = *replacement.job;
    if (job.failed())
      will_not_be(*quick, replacement.where);
    else
      publish_good(*quick, replacement.where, *job.batch, std::move(job.objects));
    job.batch->drop_result();
  }
  // A failure is found again, and reported, when the function is asked for again.
  for (const std::shared_ptr<Job>& job : finished) {
    if (std::string why; !job->failed()) publish(*job->batch, std::move(job->objects), why);
    job->batch->drop_result();
  }
}

void Generator::note_quick(Batch& batch, const Batch::Member& member, const std::vector<void*>& addresses) {
  if (!member.unit->has_switches) return;
  QuickCode& quick = *member.unit->quick;
  quick.batch = batch.result();
  // Frames that are recorded belong to one piece of code.
  if (!runtime_.records_frames && !member.unit->text.bitcode.empty()) {
    quick.text = std::move(member.unit->text);
    const auto add = [&](const std::string& symbol, const std::string& name) {
      const auto& entries = batch.entries();
      const auto found = std::find(entries.begin(), entries.end(), name);
      quick.text.addresses.push_back({symbol, addresses[static_cast<std::size_t>(found - entries.begin())]});
    };
    add(self_name, member.name);
    for (const UnitText::Name& other : quick.text.referred) add(other.symbol, other.name);
  }
  quick.code = member.code;
  quick.worth = static_cast<std::int64_t>(member.unit->module().getInstructionCount()) *
                (host_.quick_code > 1    ? static_cast<std::int64_t>(host_.quick_code)
                 : host_.compile_threads ? worth_of_good_elsewhere
                                         : worth_of_good);
  quick.wait_for(quick.worth);
  quick_[member.code] = &quick;
}

// Good code of the one function; what it calls is linked to as it is now. Of a loop, as it was.
bool Generator::build_good(Context& ctx, QuickCode& quick, AskedAt where, Batch& batch, std::string& why) {
  if (!has_address_space(compile_reserve)) {
    why = "there is not enough memory left to compile";
    return false;
  }
  const StageTime time(host_.times, StageTimes::Stage::emission, [&] { return quick.code->typed->name; });
  BatchPolicy alone = policy(ctx, *quick.code);
  alone.max_functions = 1;
  if (!where.is_entry()) {
    if (!batch.build_from_loop(quick, where.loop(), quick.code->typed->name, why)) return false;
  } else {
    if (!batch.build(*quick.code, alone, why)) return false;
    batch.emit(quick.has_wrapper);
  }
  names_ = batch.next_name();
  return !ctx.interrupt.load(std::memory_order_relaxed);
}

bool Generator::make_good(Context& ctx, QuickCode& quick, AskedAt where, std::string& why) {
  Batch batch(runtime_, published_, jit_->translator(), names_, {!host_.trusts_inbounds, host_.dump_llvm});
  if (!build_good(ctx, quick, where, batch, why)) return false;
  std::vector<UnitObject> objects;
  const Effort effort = this->effort(batch);
  Unit& unit = *batch.units().front();
  std::unique_ptr<llvm::MemoryBuffer> object = jit_->translator().translate(unit, effort, &ctx.interrupt, why);
  if (!object) return false;
  objects.push_back({&unit, std::move(object)});
  publish_good(quick, where, batch, std::move(objects));
  return true;
}

// Called by quick code, which goes on whatever becomes of it.
void* Generator::replace(Context& ctx, QuickCode& quick, AskedAt where) {
  if (!quick.code || !quick.code->valid_in(ctx.world)) {
    quick.never();
    return quick.good_loop(where);
  }
  // It asks before it looks at the stack: LLVM needs some. What is too early is asked again.
  quick.spend();
  const char here = 0;
  if (ctx.interrupt.load(std::memory_order_relaxed) || &here < ctx.stack_limit + stack_of_compiling)
    return quick.good_loop(where);
  if (host_.compile_threads) publish_finished();
  AskedAt place;
  if (quick.code && place_to_replace(quick, where, place)) {
    const CollectionPause pause(runtime_.heap);
    const Finally compiled([&, before = std::exchange(runtime_.compiles, true)] { runtime_.compiles = before; });
    std::string why;
    if (host_.compile_threads)
      replace_later(ctx, quick, place);
    else if (!make_good(ctx, quick, place, why) && !ctx.interrupt.load(std::memory_order_relaxed))
      will_not_be(quick, place);
    quick.spent = 0;
    quick.calls_before = quick.calls.load(std::memory_order_relaxed);
  }
  return quick.good_loop(where);
}

void Generator::will_not_be(QuickCode& quick, AskedAt where) {
  if (where.is_entry())
    quick.never();
  else
    quick.loops[where.loop()] = nullptr;
}

// What good code shall be made of, seen from where it was asked for. False: of nothing now.
bool Generator::place_to_replace(const QuickCode& quick, AskedAt where, AskedAt& place) const {
  const bool has_good = quick.good.load(std::memory_order_relaxed) != nullptr;
  const bool follows_good = quick.good_loop(where) != nullptr;
  // What goes on in good code of a loop soon after each call gains less from good code of the whole.
  if (quick.spent < (follows_good ? quick.worth / 4 : quick.worth)) return false;
  place = {};
  if (where.is_entry() || quick.text.bitcode.empty() || follows_good) return !has_good;
  const bool every = host_.quick_code > 1;  // every loop is to be left
  const std::int64_t calls = quick.calls.load(std::memory_order_relaxed) - quick.calls_before;
  if (!every && calls >= often_called && !has_good) return true;
  place = every || quick.loops.contains(where.outermost()) ? where : AskedAt::in(where.outermost(), where.outermost());
  return !quick.loops.contains(place.loop());
}

void Generator::replace_later(Context& ctx, QuickCode& quick, AskedAt where) {
  if (!quick.code || replacing_.contains(quick.code)) return;
  std::string why;
  auto job = std::make_shared<Job>();
  job->batch = std::make_unique<Batch>(runtime_, published_, jit_->translator(), names_,
                                       Batch::Options{!host_.trusts_inbounds, host_.dump_llvm});
  if (!build_good(ctx, quick, where, *job->batch, why)) return will_not_be(quick, where);
  job->effort = effort(*job->batch);
  job->effort.times = nullptr;
  job->cache = cache_;
  replacing_[quick.code] = {where, job};
  Workers::shared().add(job);
}

void Generator::publish_good(QuickCode& quick, AskedAt where, Batch& batch, std::vector<UnitObject> objects) {
  const StageTime time(host_.times, StageTimes::Stage::linking, [&] { return quick.code->typed->name; });
  if (where.is_entry())
    publish_good_entry(quick, batch, std::move(objects));
  else
    publish_good_loop(quick, where.loop(), batch, std::move(objects));
}

// It belongs to the quick code, whose frame lies below each of its own.
void Generator::publish_good_loop(QuickCode& quick, unsigned loop, Batch& batch, std::vector<UnitObject> objects) {
  quick.loops[loop] = nullptr;
  const std::shared_ptr<NativeBatch> owner = quick.batch.lock(), result = batch.result();
  std::string why;
  std::vector<void*> addresses;
  if (!owner || !(result->code = jit_->link(std::move(objects), batch.entries(), addresses, why))) return;
  batches_.push_back(result);
  owner->loops.push_back(result);
  quick.loops[loop] = addresses[0];
  quick.has_good_loop.store(1, std::memory_order_relaxed);
}

void Generator::publish_good_entry(QuickCode& quick, Batch& batch, std::vector<UnitObject> objects) {
  CodeInstance& code = *quick.code;
  std::string why;
  std::vector<void*> addresses;
  const std::shared_ptr<NativeBatch> result = batch.result();
  const auto known = published_.find(&code);
  std::shared_ptr<NativeBatch> old = known == published_.end() ? nullptr : known->second.owner.lock();
  if (!old || !(result->code = jit_->link(std::move(objects), batch.entries(), addresses, why))) return quick.never();
  batches_.push_back(result);
  result->data.linked.push_back(code.native_owner);
  result->data.linked.push_back(old);
  result->replaced = &quick;
  result->quick_batch = old.get();
  known->second = {batch.members()[0]->signature, addresses[0], result};
  code.native_owner = result;
  code.entry.store(addresses[0], std::memory_order_release);
  if (quick.has_wrapper) code.boxed.store(reinterpret_cast<BoxedEntry>(addresses[1]), std::memory_order_release);
  quick.good.store(addresses[0], std::memory_order_release);
  if (quick.text.bitcode.empty()) quick.never();  // what runs ends as it is
}

// Links the objects. What another batch has published in the meantime stays as it is, as others may be linked to it.
bool Generator::publish(Batch& batch, std::vector<UnitObject> objects, std::string& why) {
  const StageTime time(host_.times, StageTimes::Stage::linking, [&] { return batch.members()[0]->function->name; });
  std::vector<void*> addresses;
  const std::shared_ptr<NativeBatch> result = batch.result();
  result->code = jit_->link(std::move(objects), batch.entries(), addresses, why);
  if (!result->code) return false;
  batches_.push_back(result);
  std::size_t next = 0;
  for (auto& member : batch.members()) {
    CodeInstance& made = *member->code;
    const auto known = published_.find(&made);
    const bool is_new = known == published_.end() || known->second.owner.expired();
    if (member->native) {
      void* entry = addresses[next++];
      if (is_new) {
        published_[&made] = {member->signature, entry, result};
        made.entry.store(entry, std::memory_order_release);
        note_quick(batch, *member, addresses);
      }
    }
    void* const boxed = member->boxed ? addresses[next++] : nullptr;
    if (!is_new && (!boxed || made.boxed.load(std::memory_order_acquire))) continue;
    // A wrapper made later holds the batch of the code that others call.
    if (!is_new && made.native_owner != result) result->data.linked.push_back(made.native_owner);
    made.native_owner = result;
    if (boxed) made.boxed.store(reinterpret_cast<BoxedEntry>(boxed), std::memory_order_release);
  }
  if (runtime_.records_frames) keep(batch, addresses);
  return true;
}

void Generator::forget(const CodeInstance& code) {
  published_.erase(&code);
  if (const auto quick = quick_.find(&code); quick != quick_.end()) {
    quick->second->never();
    quick_.erase(quick);
  }
  if (const auto job = replacing_.find(&code); job != replacing_.end()) {
    job->second.job->cancel();
    replacing_.erase(job);
  }
  std::erase_if(postponed_, [&](const auto& entry) {
    if (entry.first == &code) return true;
    if (!entry.second.batch) return false;
    const auto& members = entry.second.batch->members();
    return std::any_of(members.begin(), members.end(), [&](const auto& member) { return member->code == &code; });
  });
  std::erase_if(waiting_, [&](const auto& entry) {
    Job& job = *entry.second;
    const auto& members = job.batch->members();
    if (std::none_of(members.begin(), members.end(), [&](const auto& member) { return member->code == &code; }))
      return false;
    job.cancel();
    return true;
  });
}

void Generator::keep(Batch& batch, const std::vector<void*>& addresses) {
  auto& functions = batch.result()->code->functions;
  std::size_t next = 0;
  for (auto& member : batch.members()) {
    auto add = [&](std::uintptr_t function) {
      functions.emplace_back(reinterpret_cast<std::uintptr_t>(addresses[next++]), function);
    };
    if (member->native) add(reinterpret_cast<std::uintptr_t>(member->function) | 1);
    if (member->boxed) add(0);
  }
  std::sort(functions.begin(), functions.end());
  kept_.push_back(batch.result());
}

bool Generator::locate(const void* address, std::uintptr_t& function, std::vector<CodePlace>& places) {
  for (const auto& batch : kept_)
    if (batch->code->locate(reinterpret_cast<std::uintptr_t>(address), function, places)) return true;
  return false;
}

DirectCode Generator::direct(Context& ctx, CodeInstance& code, std::span<const std::uint8_t> steps, std::string& why) {
  DirectCode made;
  if (!compile(ctx, code, why)) return made;
  if (const auto quick = quick_.find(&code); quick != quick_.end() && !quick->second->good.load())
    if (!make_good(ctx, *quick->second, {}, why)) return made;
  Batch batch(runtime_, published_, jit_->translator(), names_, {!host_.trusts_inbounds, host_.dump_llvm});
  if (!batch.build_direct(code)) {
    why = "internal error: compiled code is not published";
    return made;
  }
  if (!steps.empty()) batch.build_flat_gradient(policy(ctx, code), {steps.data(), steps.size()});
  names_ = batch.next_name();
  std::vector<UnitObject> objects;
  std::vector<void*> addresses;
  std::shared_ptr<NativeBatch> result = batch.result();
  if (!make_objects(batch, objects, nullptr, why)) return made;
  result->code = jit_->link(std::move(objects), batch.entries(), addresses, why);
  if (!result->code) return made;
  made.entry = reinterpret_cast<DirectEntry>(addresses[0]);
  if (!steps.empty()) made.gradient = reinterpret_cast<flat::Gradient>(addresses[1]);
  batches_.push_back(result);
  host_code_->held.push_back(result);
  made.owner = std::shared_ptr<void>(
      result.get(), [result, kept = host_code_](void*) mutable { kept->dropped.push_back(std::move(result)); });
  return made;
}

namespace {

// Marks what the batches are linked to as well.
void close_over_links(std::unordered_set<const NativeBatch*>& batches) {
  std::vector<const NativeBatch*> work(batches.begin(), batches.end());
  while (!work.empty()) {
    const NativeBatch* batch = work.back();
    work.pop_back();
    for (const std::shared_ptr<void>& linked : batch->data.linked)
      if (const auto* next = static_cast<const NativeBatch*>(linked.get()); batches.insert(next).second)
        work.push_back(next);
  }
}

}  // namespace

namespace {

template <class Look>
__attribute__((no_sanitize("address"))) void for_each_word(const void* begin, const void* end, const Look& look) {
  auto from = (reinterpret_cast<std::uintptr_t>(begin) + 7) & ~std::uintptr_t{7};
  for (const auto to = reinterpret_cast<std::uintptr_t>(end); from + 8 <= to; from += 8)
    look(*reinterpret_cast<const volatile std::uintptr_t*>(from));
}

}  // namespace

// A call leaves the address after it on the stack, so a batch into which no word of the stack points is not running. A
// word that only looks like an address keeps a batch for a while.
void Generator::find_in_use(Context& ctx, std::vector<const CodeInstance*>& found) {
  std::vector<std::shared_ptr<NativeBatch>> all;
  std::erase_if(batches_, [&](const std::weak_ptr<NativeBatch>& batch) {
    if (auto held = batch.lock()) all.push_back(std::move(held));
    return batch.expired();
  });
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a->code->begin() < b->code->begin(); });
  std::unordered_set<const NativeBatch*> used;
  const auto look = [&](std::uintptr_t word) {
    if (all.empty() || word < all.front()->code->begin() || word > all.back()->code->end()) return;
    auto after = std::upper_bound(all.begin(), all.end(), word,
                                  [](std::uintptr_t w, const auto& batch) { return w < batch->code->begin(); });
    // A call that never returns may be the last instruction: then it is the end that lies on the stack.
    for (int k = 0; k < 2 && after != all.begin(); ++k)
      if (--after; word <= (*after)->code->end()) used.insert(after->get());
  };
  const Heap::StackExtent stack = ctx.heap->stack_extent();
  for_each_word(stack.from, stack.to, look);
  if (const SuspendedStacks* suspended = ctx.heap->suspended())
    suspended->each([&](const void* begin, const void* end) { for_each_word(begin, end, look); });
  std::erase_if(host_code_->dropped, [&](const auto& batch) { return !used.contains(batch.get()); });
  std::erase_if(host_code_->held, [&](const std::weak_ptr<NativeBatch>& batch) {
    if (auto held = batch.lock()) used.insert(held.get());
    return batch.expired();
  });
  // What quick code runs belongs to what has replaced it.
  for (const auto& batch : all)
    if (batch->quick_batch && used.contains(batch->quick_batch)) used.insert(batch.get());
  // `all` itself holds those that were dropped; they count as used now and go the next time.
  close_over_links(used);
  for (const auto& [code, published] : published_)
    if (auto owner = published.owner.lock(); owner && used.contains(owner.get())) found.push_back(code);
}

std::string Generator::dump(Context& ctx, CodeInstance& code, Dump what) {
  std::string why;
  if (!start(why)) return why + "\n";
  Batch batch(runtime_, published_, jit_->translator(), 1, {!host_.trusts_inbounds, true});
  BatchPolicy alone = policy(ctx, code);
  alone.max_functions = 1;
  alone.cancelled = nullptr;
  if (!batch.build(code, alone, why)) return why + "\n";
  batch.emit(false);
  llvm::Module& module = batch.units().front()->module();
  jit_->translator().optimise(module, Translator::is_huge({&module}) ? CodeEffort::none : runtime_.code_effort);
  if (what == Dump::native) return jit_->translator().assembly(module);
  std::string text;
  llvm::raw_string_ostream stream(text);
  batch.members()[0]->native->print(stream);
  return stream.str();
}

}  // namespace

}  // namespace slope::codegen

extern "C" __attribute__((visibility("default"))) slope::CodeGenerator* slope_create_code_generator(
    slope::Runtime* runtime, const slope::CodegenHost* host) {
  if (host->version != slope::codegen_version || host->fingerprint != slope::codegen_fingerprint()) return nullptr;
  return new slope::codegen::Generator(*runtime, *host);
}
