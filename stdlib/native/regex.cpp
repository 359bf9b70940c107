// Regular expressions: PCRE2 behind the Regex of stdlib/text/regex.slope.
//
// A Regex is its text and its options. What PCRE2 compiled of them is kept here and found again by them, so that nothing
// a script holds is a pointer. Each thread keeps its own: compiled patterns depend on their text alone, and the
// workspaces of an engine match without a lock.
//
// A match ends when the script's fuel, time or memory does, or when the host interrupts it:
//  1. The machine code of PCRE2 cannot be interrupted, but counts. It gets a small count, and so few places to begin at
//     that all of them end in some milliseconds. Between such windows the flag is looked at.
//  2. Where the count did not suffice, PCRE2's interpreter tries that window again, and calls `watch` at each item of
//     the pattern, which counts fuel and looks at the flag.
// Windows depend on lengths alone, not on a clock: programs use the same fuel each time.
//
// The traps: `\G` and verbs such as `(*COMMIT)` mean something else in a second window; a match that needs much memory
// must not keep it (`clear_data`).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"
#include "stdlib/native/pcre2.hpp"

namespace slope::stdlib {

namespace {

// Of every pattern. `\C`, a single byte, could end a match within a character.
constexpr std::uint32_t always_options =
    PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_USE_OFFSET_LIMIT | PCRE2_NEVER_BACKSLASH_C;
constexpr std::uint32_t known_options =
    always_options | PCRE2_UCP | PCRE2_ALT_BSUX | PCRE2_CASELESS | PCRE2_MULTILINE | PCRE2_DOTALL | PCRE2_EXTENDED |
    PCRE2_EXTENDED_MORE | PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOLLAR_ENDONLY | PCRE2_DUPNAMES | PCRE2_UNGREEDY |
    PCRE2_NO_AUTO_CAPTURE | PCRE2_FIRSTLINE | PCRE2_LITERAL | PCRE2_NO_AUTO_POSSESS | PCRE2_NO_START_OPTIMIZE |
    PCRE2_NO_DOTSTAR_ANCHOR | PCRE2_ALLOW_EMPTY_CLASS | PCRE2_ALT_CIRCUMFLEX | PCRE2_ALT_VERBNAMES |
    PCRE2_MATCH_UNSET_BACKREF | PCRE2_NEVER_UCP | PCRE2_NEVER_UTF;
constexpr std::uint32_t known_match_options = PCRE2_NOTBOL | PCRE2_NOTEOL | PCRE2_NOTEMPTY | PCRE2_NOTEMPTY_ATSTART;

constexpr std::size_t longest_pattern = std::size_t{1} << 20;
constexpr std::size_t most_patterns = 256, most_pattern_bytes = std::size_t{4} << 20;  // kept by a thread
constexpr std::uint32_t heap_limit_kib = 256 * 1024;
constexpr std::size_t kept_data = std::size_t{64} << 10;  // memory of a match that is kept for the next
constexpr std::uint32_t free_count = 10'000'000;          // PCRE2's own limit, and Julia's
constexpr std::size_t free_steps = 1'000'000'000, most_steps = 50'000'000;  // of a window, if each place reads all
constexpr std::uint32_t most_count = 100'000;        // of machine code under a limit, from each place
constexpr std::uint32_t watched_count = 50'000'000;  // of the interpreter, from each place
constexpr std::size_t jit_stack_first = std::size_t{32} << 10, jit_stack_most = std::size_t{1} << 20;

// Memory of large matches counts as the engine's while the match runs: see `allocate`.
thread_local MemoryCount* counted_match = nullptr;
struct alignas(std::max_align_t) Head {
  std::size_t bytes;
  MemoryCount* count;
};

void* allocate(std::size_t bytes, void*) {
  void* memory = bytes < SIZE_MAX - sizeof(Head) ? std::malloc(bytes + sizeof(Head)) : nullptr;
  if (!memory) return nullptr;
  Head* head = new (memory) Head{bytes, bytes > kept_data ? counted_match : nullptr};
  if (head->count) head->count->add(bytes);
  return head + 1;
}
void release(void* memory, void*) {
  if (!memory) return;
  Head* head = static_cast<Head*>(memory) - 1;
  if (head->count) head->count->remove(head->bytes);
  std::free(head);
}

struct Pattern {
  std::string text;
  std::uint32_t options = 0;
  const Pcre2* library = nullptr;
  pcre2_code_8* code = nullptr;
  pcre2_code_8* watched = nullptr;  // the same with callouts, once it was needed
  bool wants_machine_code = true;   // not tried yet
  bool has_machine_code = false;
  bool is_anchored = false;  // begins at the first place only
  bool has_windows = true;   // may be looked for in parts of the text one after another
  std::uint32_t groups = 0;
  std::uint32_t uses = 0;

  Pattern() = default;
  Pattern(const Pattern&) = delete;
  ~Pattern() {
    if (code) library->code_free(code);
    if (watched) library->code_free(watched);
  }
};

struct Key {
  std::string_view text;
  std::uint32_t options;
  bool operator==(const Key& other) const { return options == other.options && text == other.text; }
};
struct KeyHash {
  std::size_t operator()(const Key& key) const { return std::hash<std::string_view>()(key.text) * 31 + key.options; }
};

// What a thread keeps. Ends with the thread.
class Patterns {
 public:
  Patterns() = default;
  Patterns(const Patterns&) = delete;
  ~Patterns() {
    if (!library_) return;
    patterns_.clear();
    clear_data();
    if (stack_) library_->jit_stack_free(stack_);
    if (match_context_) library_->match_context_free(match_context_);
    if (compile_context_) library_->compile_context_free(compile_context_);
    if (general_context_) library_->general_context_free(general_context_);
  }

  // Null, with the error raised.
  const Pcre2* open(Context& ctx);
  Pattern* find(Context& ctx, std::string_view text, std::uint32_t options);
  pcre2_code_8* compile(Context& ctx, std::string_view text, std::uint32_t options);
  pcre2_code_8* watched(Context& ctx, Pattern& pattern);
  void make_machine_code(Pattern& pattern);
  pcre2_match_data_8* data(std::uint32_t pairs);
  void clear_data() {
    if (data_) library_->match_data_free(data_);
    data_ = nullptr;
    pairs_ = 0;
  }
  pcre2_match_context_8* match_context() { return match_context_; }

 private:
  const Pcre2* library_ = nullptr;
  pcre2_general_context_8* general_context_ = nullptr;
  pcre2_compile_context_8* compile_context_ = nullptr;
  pcre2_match_context_8* match_context_ = nullptr;
  pcre2_match_data_8* data_ = nullptr;
  pcre2_jit_stack_8* stack_ = nullptr;
  std::uint32_t pairs_ = 0;
  std::unordered_map<Key, std::unique_ptr<Pattern>, KeyHash> patterns_;
  std::size_t bytes_ = 0;
  std::array<Pattern*, 64> recent_{};  // by where the text of the pattern is, which may have another text by now
};
thread_local Patterns thread_patterns;

// Parentheses within parentheses need stack.
int guard_stack(std::uint32_t, void* context) {
  return static_cast<const char*>(__builtin_frame_address(0)) < static_cast<Context*>(context)->stack_limit;
}

const Pcre2* Patterns::open(Context& ctx) {
  if (library_) return library_;
  const Pcre2* found = pcre2();
  if (!found) {
    ctx.raise_error("regular expressions need PCRE2 (libpcre2-8.so.0): install the package libpcre2-8-0");
    return nullptr;
  }
  if (!general_context_) general_context_ = found->general_context_create(allocate, release, nullptr);
  if (general_context_ && !compile_context_) compile_context_ = found->compile_context_create(general_context_);
  if (general_context_ && !match_context_) match_context_ = found->match_context_create(general_context_);
  if (!compile_context_ || !match_context_) {
    ctx.out_of_memory();
    return nullptr;
  }
  found->set_max_pattern_length(compile_context_, longest_pattern);
  found->set_heap_limit(match_context_, heap_limit_kib);
  return library_ = found;
}

bool raise_compile_error(Context& ctx, const Pcre2& library, int error, std::size_t offset) {
  if (error == PCRE2_ERROR_NOMEMORY || error == 121) return ctx.out_of_memory();  // 121: no memory for the code
  std::array<unsigned char, 256> text{};
  library.get_error_message(error, text.data(), text.size());
  return ctx.raise_error("PCRE compilation error: " + std::string(reinterpret_cast<const char*>(text.data())) +
                         " at offset " + std::to_string(offset));
}

pcre2_code_8* Patterns::compile(Context& ctx, std::string_view text, std::uint32_t options) {
  library_->set_compile_recursion_guard(compile_context_, guard_stack, &ctx);
  int error = 0;
  std::size_t offset = 0;
  pcre2_code_8* code = library_->compile(reinterpret_cast<const unsigned char*>(text.data()), text.size(), options,
                                         &error, &offset, compile_context_);
  if (!code) raise_compile_error(ctx, *library_, error, offset);
  return code;
}

pcre2_code_8* Patterns::watched(Context& ctx, Pattern& pattern) {
  if (!pattern.watched) pattern.watched = compile(ctx, pattern.text, pattern.options | PCRE2_AUTO_CALLOUT);
  return pattern.watched;
}

Pattern* Patterns::find(Context& ctx, std::string_view text, std::uint32_t options) {
  options |= always_options;
  Pattern*& recent = recent_[(reinterpret_cast<std::uintptr_t>(text.data()) >> 4) % recent_.size()];
  if (recent && recent->options == options && recent->text == text) return recent;
  if (!open(ctx)) return nullptr;
  if (auto known = patterns_.find(Key{text, options}); known != patterns_.end()) return recent = known->second.get();
  auto pattern = std::make_unique<Pattern>();
  pattern->text = text;
  pattern->options = options;
  pattern->library = library_;
  pattern->code = compile(ctx, text, options);
  if (!pattern->code) return nullptr;
  std::uint32_t all = 0;
  std::size_t bytes = 0;
  library_->pattern_info(pattern->code, PCRE2_INFO_CAPTURECOUNT, &pattern->groups);
  library_->pattern_info(pattern->code, PCRE2_INFO_ALLOPTIONS, &all);
  library_->pattern_info(pattern->code, PCRE2_INFO_SIZE, &bytes);
  pattern->is_anchored = (all & PCRE2_ANCHORED) != 0;
  pattern->has_windows = (all & PCRE2_FIRSTLINE) == 0 && text.find("(*") == std::string_view::npos &&
                         text.find("\\G") == std::string_view::npos;
  bytes += text.size();
  if (patterns_.size() >= most_patterns || bytes_ + bytes > most_pattern_bytes) {
    patterns_.clear();
    recent_.fill(nullptr);
    bytes_ = 0;
  }
  bytes_ += bytes;
  Pattern* kept = pattern.get();
  patterns_.emplace(Key{kept->text, options}, std::move(pattern));
  return recent = kept;
}

void Patterns::make_machine_code(Pattern& pattern) {
  pattern.wants_machine_code = false;
  if (library_->jit_compile(pattern.code, PCRE2_JIT_COMPLETE) != 0) return;
  if (!stack_) {
    stack_ = library_->jit_stack_create(jit_stack_first, jit_stack_most, general_context_);
    if (stack_) library_->jit_stack_assign(match_context_, nullptr, stack_);
  }
  pattern.has_machine_code = true;
}

pcre2_match_data_8* Patterns::data(std::uint32_t pairs) {
  if (data_ && pairs_ >= pairs) return data_;
  clear_data();
  pairs_ = std::max<std::uint32_t>(pairs, 16);
  return data_ = library_->match_data_create(pairs_, general_context_);
}

// Called at each item of a pattern: the script ends in the midst of a match.
int watch(pcre2_callout_block_8*, void* context) {
  Context& ctx = *static_cast<Context*>(context);
  const bool ends = --ctx.fuel < 0 || ctx.interrupt.load(std::memory_order_relaxed) != no_interrupt;
  return ends ? PCRE2_ERROR_CALLOUT : 0;
}

struct Search {
  Context& ctx;
  Patterns& patterns;
  const Pcre2& library;
  Pattern& pattern;
  std::string_view text;
  std::uint32_t options;
  pcre2_match_data_8* data = patterns.data(pattern.groups + 1);
  bool is_interpreted = false;  // some of it: memory was needed

  // PCRE2's answer for matches that begin at the bytes from `first` to `last`.
  int run(const pcre2_code_8* code, std::size_t first, std::size_t last, std::uint32_t count) {
    pcre2_match_context_8* context = patterns.match_context();
    library.set_match_limit(context, count);
    library.set_offset_limit(context, last);
    library.set_callout(context, watch, &ctx);
    counted_match = &ctx.runtime->outside_heap;
    const bool by_machine_code = code == pattern.code && pattern.has_machine_code;
    is_interpreted = is_interpreted || !by_machine_code;
    const int found = (by_machine_code ? library.jit_match : library.match)(
        code, reinterpret_cast<const unsigned char*>(text.data()), text.size(), first, options, data, context);
    counted_match = nullptr;
    return found;
  }
  // With fuel counted and the flag looked at inside.
  int run_watched(std::size_t first, std::size_t last) {
    const pcre2_code_8* code = patterns.watched(ctx, pattern);
    return code ? run(code, first, last, watched_count) : PCRE2_ERROR_CALLOUT;
  }
  // Nothing ends the script but an interrupt, which may come a tenth of a second late.
  bool is_free() const {
    return &ctx == &ctx.runtime->context && !ctx.runtime->counts_fuel &&
           std::isinf(ctx.runtime->coroutines->seconds_left(ctx));
  }
  int find(std::size_t from, std::size_t to);
  bool next(std::size_t from, std::size_t to, std::int64_t* out, std::size_t room);
};

// PCRE2 keeps its machine code in memory that may be written and run at once. Who attacks a process through a script
// looks for such memory, so it is there only for the scripts of an engine that may do everything anyway.
bool may_make_machine_code(const Context& ctx) { return may_do_everything(ctx); }

int Search::find(std::size_t from, std::size_t to) {
  constexpr std::size_t short_text = 500;
  if (pattern.wants_machine_code && (++pattern.uses > 1 || text.size() > short_text) && may_make_machine_code(ctx))
    patterns.make_machine_code(pattern);
  const bool free = is_free();
  if (free ? !pattern.has_machine_code && text.size() > short_text
           : !pattern.has_windows || (!pattern.has_machine_code && text.size() > short_text))
    return run_watched(from, to);
  const std::size_t steps = text.size() - from + 1;
  std::size_t count = free ? free_count : most_count, window = text.size() + 1;
  if (steps > short_text) {
    if (!free) count = std::clamp<std::size_t>(most_steps / steps, 50, most_count);
    window = std::max<std::size_t>((free ? free_steps : most_steps) / steps, 16);
  }
  for (std::size_t first = from;;) {
    const bool is_last = pattern.is_anchored || !pattern.has_windows || to - first <= window;
    const std::size_t last = is_last ? to : first + window;
    int found = run(pattern.code, first, last, static_cast<std::uint32_t>(count));
    if (found == PCRE2_ERROR_JIT_STACKLIMIT || (found == PCRE2_ERROR_MATCHLIMIT && !free))
      found = run_watched(first, last);
    if (found != PCRE2_ERROR_NOMATCH || is_last) return found;
    for (first = last + 1; first < text.size() && (static_cast<unsigned char>(text[first]) & 0xc0) == 0x80;) ++first;
    if (first > to) return found;
    if (ctx.interrupt.load(std::memory_order_relaxed) != no_interrupt) return PCRE2_ERROR_CALLOUT;
  }
}

// False, with the error.
bool raise_match_error(Context& ctx, const Pcre2& library, int error) {
  if (ctx.failed()) return false;
  if (error == PCRE2_ERROR_CALLOUT) return ctx.stop();
  if (error == PCRE2_ERROR_NOMEMORY) return ctx.out_of_memory();
  std::array<unsigned char, 256> text{};
  library.get_error_message(error, text.data(), text.size());
  return ctx.raise_error("PCRE.exec error: " + std::string(reinterpret_cast<const char*>(text.data())));
}

// The places of the next match as Slope counts them, in `room` pairs. False: none, or an error.
bool Search::next(std::size_t from, std::size_t to, std::int64_t* out, std::size_t room) {
  const int found = find(from, to);
  const std::size_t* places = library.get_ovector_pointer(data);
  const std::size_t known = found > 0 ? static_cast<std::size_t>(found) : 0;
  for (std::size_t i = 0; known && i < 2 * room; ++i)
    out[i] = i < 2 * known && places[i] != PCRE2_UNSET ? static_cast<std::int64_t>(places[i]) + 1 : 0;
  // 64 bytes of text cost as much fuel as a call, whichever way they were searched.
  const std::size_t reached = known ? std::max(places[1], from) : found == PCRE2_ERROR_NOMATCH ? to : from;
  ctx.fuel -= static_cast<std::int64_t>((reached - from) / 64);
  if (is_interpreted) {
    patterns.clear_data();
    data = nullptr;
    is_interpreted = false;
  }
  if (found < 0 && found != PCRE2_ERROR_NOMATCH) return raise_match_error(ctx, library, found);
  return ctx.fuel < 0 ? ctx.stop() : known > 0;
}

bool take_pattern(Call& call, Pattern*& pattern) {
  std::string_view text;
  std::int64_t options = 0;
  if (!call.string(0, text) || !call.integer(1, options)) return false;
  if (options < 0 || (options & ~std::int64_t{known_options}) != 0)
    return call.ctx.argument_error("unknown options of a regular expression: " + std::to_string(options));
  return (pattern = thread_patterns.find(call.ctx, text, static_cast<std::uint32_t>(options))) != nullptr;
}

// regex_compile(pattern, options): the number of groups
bool regex_compile(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "regex_compile", args, count, result);
  Pattern* pattern = nullptr;
  return call.arity(2) && take_pattern(call, pattern) && call.give_int(pattern->groups);
}

// regex_group(pattern, options, name): the number of the first group of that name, 0 for none
bool regex_group(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "regex_group", args, count, result);
  Pattern* pattern = nullptr;
  std::string_view name;
  if (!call.arity(3) || !take_pattern(call, pattern) || !call.string(2, name)) return false;
  const std::string terminated(name);
  const int number = thread_patterns.open(ctx)->substring_number_from_name(
      pattern->code, reinterpret_cast<const unsigned char*>(terminated.c_str()));
  return call.give_int(number > 0 && terminated.find('\0') == std::string::npos ? number : 0);
}

// regex_names(pattern, options): "1 year\n2 month\n"
bool regex_names(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "regex_names", args, count, result);
  Pattern* pattern = nullptr;
  if (!call.arity(2) || !take_pattern(call, pattern)) return false;
  const Pcre2& library = *thread_patterns.open(ctx);
  std::uint32_t names = 0, entry = 0;
  const unsigned char* table = nullptr;
  library.pattern_info(pattern->code, PCRE2_INFO_NAMECOUNT, &names);
  library.pattern_info(pattern->code, PCRE2_INFO_NAMEENTRYSIZE, &entry);
  library.pattern_info(pattern->code, PCRE2_INFO_NAMETABLE, &table);
  std::string text;
  for (std::uint32_t i = 0; i < names; ++i, table += entry)
    text += std::to_string(table[0] << 8 | table[1]) + " " + reinterpret_cast<const char*>(table + 2) + "\n";
  return call.give(text);
}

// regex_find(pattern, options, text, from, to, match_options, slots): whether there is a match that begins at the bytes
// from `from` to `to`. Then `slots`, a Vector{Int}, holds where it begins and the byte after it, and the same of each
// group as far as there is room; 0 for a group that took no part.
bool regex_find(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "regex_find", args, count, result);
  Pattern* pattern = nullptr;
  std::string_view text;
  std::int64_t from = 0, to = 0, options = 0;
  ArrayObject* slots = nullptr;
  if (!call.arity(7) || !take_pattern(call, pattern) || !call.string(2, text) || !call.integer(3, from) ||
      !call.integer(4, to) || !call.integer(5, options) || !call.array_of(6, call.builtin.int64, 1, slots))
    return false;
  if ((options & ~std::int64_t{known_match_options}) != 0)
    return ctx.argument_error("unknown options of a match: " + std::to_string(options));
  const auto size = static_cast<std::int64_t>(text.size());
  if (from < 1 || to > size + 1) return ctx.bounds_error(args[2], args[from < 1 ? 3 : 4]);
  if (from > to) return call.give_bool(false);
  Patterns& patterns = thread_patterns;
  Search search{ctx, patterns, *patterns.open(ctx), *pattern, text, static_cast<std::uint32_t>(options)};
  if (!search.data) return ctx.out_of_memory();
  const std::size_t room = std::min<std::size_t>(static_cast<std::size_t>(slots->length) / 2, pattern->groups + 1);
  const bool found = search.next(static_cast<std::size_t>(from - 1), static_cast<std::size_t>(to - 1),
                                 reinterpret_cast<std::int64_t*>(slots->data), room);
  return !ctx.failed() && call.give_bool(found);
}

// regex_find_all(pattern, options, text, match_options, overlap, groups): a Vector{Int} of what regex_find says of one
// match after another, with so many groups. After an empty match the search goes on one character further.
bool regex_find_all(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "regex_find_all", args, count, result);
  Pattern* pattern = nullptr;
  std::string_view text;
  std::int64_t options = 0, groups = 0;
  bool overlap = false;
  if (!call.arity(6) || !take_pattern(call, pattern) || !call.string(2, text) || !call.integer(3, options) ||
      !call.boolean(4, overlap) || !call.integer(5, groups))
    return false;
  if ((options & ~std::int64_t{known_match_options}) != 0)
    return ctx.argument_error("unknown options of a match: " + std::to_string(options));
  Patterns& patterns = thread_patterns;
  Search search{ctx, patterns, *patterns.open(ctx), *pattern, text, static_cast<std::uint32_t>(options)};
  const auto room = static_cast<std::size_t>(std::clamp<std::int64_t>(groups, 0, pattern->groups)) + 1;
  const DataType* type = call.runtime.types.array_of(call.builtin.int64, 1);
  const std::int64_t none[] = {0};
  ArrayObject* all = ctx.heap->allocate_array(type, none);
  if (!all) return ctx.out_of_memory();
  for (std::size_t from = 0; from <= text.size();) {
    if (!search.data) search.data = patterns.data(pattern->groups + 1);
    const std::int64_t before = all->length;
    if (!search.data || !ctx.heap->resize_vector(all, before + 2 * static_cast<std::int64_t>(room)))
      return ctx.out_of_memory();
    std::int64_t* places = reinterpret_cast<std::int64_t*>(all->data) + before;
    if (!search.next(from, text.size(), places, room)) {
      if (ctx.failed()) return false;
      ctx.heap->resize_vector(all, before);
      break;
    }
    const auto first = static_cast<std::size_t>(places[0] - 1), last = static_cast<std::size_t>(places[1] - 1);
    from = last;
    if (overlap || last <= first) {
      from = first + 1;
      while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xc0) == 0x80) ++from;
    }
    if (--ctx.fuel < 0 || ctx.interrupt.load(std::memory_order_relaxed) != no_interrupt)
      if (!ctx.stop()) return false;
  }
  return call.give(Value(type, static_cast<const void*>(all)));
}

const NativeInfo regex_natives[] = {
    {"regex_compile", regex_compile, effect_makes, returns_int, false, false, true},
    {"regex_group", regex_group, effect_makes, returns_int, false, false, true},
    {"regex_names", regex_names, effect_makes, returns_string, false, false, true},
    {"regex_find", regex_find, effect_makes | effect_reads | effect_writes, returns_bool, false, false, true},
    {"regex_find_all", regex_find_all, effect_makes,
     [](TypeTable& t, ArgumentTypes) -> const Type* { return t.array_of(t.builtin().int64, 1); }, false, false, true},
};

}  // namespace

void define_regex_natives(Runtime& runtime) { define_all(runtime, regex_natives); }

}  // namespace slope::stdlib
