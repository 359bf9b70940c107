// Texts with delimiters: where their fields are, and columns of numbers and strings read from them (stdlib/tables/csv.slope).
//
// In C++ because a table of a gigabyte is read byte by byte. Each call does a bounded piece of the work, so that limits
// hold; the Slope code around it calls again.
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <functional>
#include <string_view>

#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"
#include "stdlib/native/vectors.hpp"

namespace slope::stdlib {

namespace {

constexpr std::int64_t bytes_per_call = 1 << 20;

// The positions of either of two bytes in a text, in order. 64 bytes are compared at once.
class Marks {
 public:
  Marks(std::string_view text, char a, char b) : text_(text), a_(a), b_(b) {}

  // The first at or after i; the length of the text: there is none. i never goes back.
  std::size_t next(std::size_t i) {
    while (i < text_.size()) {
      const std::size_t block = i / 64;
      if (block != block_) load(block);
      if (const std::uint64_t rest = mask_ >> (i % 64)) return i + static_cast<std::size_t>(std::countr_zero(rest));
      i = (block + 1) * 64;
    }
    return text_.size();
  }

 private:
  void load(std::size_t block) {
    block_ = block;
    const std::size_t count = std::min<std::size_t>(64, text_.size() - block * 64);
    const char* bytes = text_.data() + block * 64;
    if (count == 64) {
      mask_ = mask_of(bytes);
    } else {
      char padded[64] = {};
      std::memcpy(padded, bytes, count);
      mask_ = mask_of(padded) & ((std::uint64_t{1} << count) - 1);
    }
  }
  // One bit for each of 64 bytes.
  std::uint64_t mask_of(const char* bytes) const {
    std::uint64_t mask = 0;
    for (std::size_t at = 0; at < 64; at += group) mask |= group_mask(bytes + at) << at;
    return mask;
  }
#if defined(__SSE2__)
  static constexpr std::size_t group = 16;
  std::uint64_t group_mask(const char* bytes) const {
    const __m128i group = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
    const __m128i found =
        _mm_or_si128(_mm_cmpeq_epi8(group, _mm_set1_epi8(a_)), _mm_cmpeq_epi8(group, _mm_set1_epi8(b_)));
    return static_cast<std::uint64_t>(_mm_movemask_epi8(found));
  }
#else
  static constexpr std::size_t group = 8;
  std::uint64_t group_mask(const char* bytes) const {
    std::uint64_t group;
    std::memcpy(&group, bytes, sizeof group);
    const std::uint64_t found = equal_bytes(group, a_) | equal_bytes(group, b_);
    return (found >> 7) * 0x0102040810204080 >> 56;  // the high bits come together in the highest byte
  }
  // 0x80 in the bytes that are c, 0 in the others.
  static std::uint64_t equal_bytes(std::uint64_t group, char c) {
    constexpr std::uint64_t low = 0x7f7f7f7f7f7f7f7f;
    const std::uint64_t differs = group ^ (0x0101010101010101 * static_cast<unsigned char>(c));
    return ~(((differs & low) + low) | differs | low);
  }
#endif

  std::string_view text_;
  char a_;
  char b_;
  std::size_t block_ = ~std::size_t{0};
  std::uint64_t mask_ = 0;
};

// What a scan keeps from call to call, in a Vector{Int}: 1-based, as Slope counts. Slope sets fields and rows to 0 when it
// is through with those that there are.
struct Progress {
  std::int64_t next;  // the byte at which the next row begins
  std::int64_t line;  // and its line
  std::int64_t fields;
  std::int64_t rows;
  std::int64_t place;  // of what is wrong: a byte
};

enum class ScanEnd : std::int64_t { through, piece, no_room, open_quote, text_after_quote };

class Scan {
 public:
  struct Syntax {
    char delimiter;
    char quote;
    std::string_view comment;
    bool skips_empty;
    bool empty_is_missing;
  };
  Scan(std::string_view text, const Syntax& syntax, std::span<std::int64_t> first, std::span<std::int64_t> last,
       std::span<std::int64_t> row_ends, std::span<std::int64_t> lines, Progress& progress)
      : text_(text),
        syntax_(syntax),
        marks_(text, syntax.delimiter, '\n'),
        first_(first),
        last_(last),
        row_ends_(row_ends),
        lines_(lines),
        progress_(progress) {}

  // Rows until the text, the room, or this call's share of the work are at an end.
  ScanEnd run() {
    at_ = static_cast<std::size_t>(progress_.next - 1);
    line_ = progress_.line;
    const std::size_t stop = at_ + bytes_per_call;
    while (at_ < text_.size()) {
      if (at_ >= stop) return ScanEnd::piece;
      if (static_cast<std::size_t>(progress_.rows) == row_ends_.size()) return ScanEnd::no_room;
      if (!is_skipped()) {
        fields_ = static_cast<std::size_t>(progress_.fields);
        const std::int64_t begin = line_;
        const ScanEnd end = row();
        if (end != ScanEnd::through) return end;
        lines_[static_cast<std::size_t>(progress_.rows)] = begin;
        row_ends_[static_cast<std::size_t>(progress_.rows++)] = static_cast<std::int64_t>(fields_);
        progress_.fields = static_cast<std::int64_t>(fields_);
      }
      progress_.next = static_cast<std::int64_t>(at_) + 1;
      progress_.line = line_;
    }
    return ScanEnd::through;
  }

 private:
  char byte(std::size_t i) const { return i < text_.size() ? text_[i] : '\n'; }

  // A comment or an empty line; then it is behind us.
  bool is_skipped() {
    const bool is_empty = byte(at_) == '\n' || (byte(at_) == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n');
    const bool is_comment = !syntax_.comment.empty() && text_.substr(at_).starts_with(syntax_.comment);
    if (!is_comment && !(syntax_.skips_empty && is_empty)) return false;
    const std::size_t end = text_.find('\n', at_);
    at_ = end == std::string_view::npos ? text_.size() : end + 1;
    ++line_;
    return true;
  }
  ScanEnd row() {
    while (true) {
      if (fields_ == first_.size()) return ScanEnd::no_room;
      if (byte(at_) == syntax_.quote && at_ < text_.size()) {
        const ScanEnd end = quoted();
        if (end != ScanEnd::through) return end;
      } else {
        bare();
      }
      if (byte(at_) == '\r' && at_ < text_.size()) ++at_;
      const bool is_last = byte(at_) == '\n';
      at_ = std::min(at_ + 1, text_.size());
      if (is_last) {
        ++line_;
        return ScanEnd::through;
      }
    }
  }
  void bare() {
    const std::size_t begin = at_;
    at_ = marks_.next(at_);
    std::size_t end = at_;
    if (byte(at_) == '\n' && end > begin && text_[end - 1] == '\r') --end;
    add(begin, end, false);
  }
  // A quoted field keeps its doubled quotes; its first place is stored with a minus.
  ScanEnd quoted() {
    const std::size_t begin = at_ + 1;
    const auto opened = static_cast<std::int64_t>(at_) + 1;
    std::size_t end = begin;
    while (true) {
      end = text_.find(syntax_.quote, end);
      if (end == std::string_view::npos) return fault(ScanEnd::open_quote, opened);
      if (end + 1 >= text_.size() || text_[end + 1] != syntax_.quote) break;
      end += 2;
    }
    line_ += std::count(text_.begin() + static_cast<std::ptrdiff_t>(begin),
                        text_.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    add(begin, end, true);
    at_ = end + 1;
    if (at_ < text_.size() && text_[at_] != syntax_.delimiter && text_[at_] != '\n' && text_[at_] != '\r')
      return fault(ScanEnd::text_after_quote, static_cast<std::int64_t>(at_) + 1);
    return ScanEnd::through;
  }
  ScanEnd fault(ScanEnd end, std::int64_t place) {
    progress_.place = place;
    progress_.line = line_;
    return end;
  }
  void add(std::size_t begin, std::size_t end, bool is_quoted) {
    const auto first = static_cast<std::int64_t>(begin) + 1;
    first_[fields_] = is_quoted ? -first : first;
    last_[fields_++] = !is_quoted && begin == end && syntax_.empty_is_missing ? -1 : static_cast<std::int64_t>(end);
  }

  std::string_view text_;
  Syntax syntax_;
  Marks marks_;
  std::span<std::int64_t> first_;
  std::span<std::int64_t> last_;
  std::span<std::int64_t> row_ends_;
  std::span<std::int64_t> lines_;
  Progress& progress_;
  std::size_t at_ = 0;
  std::size_t fields_ = 0;
  std::int64_t line_ = 1;
};

std::string_view bytes_in(const ArrayObject* a) { return {a->data, static_cast<std::size_t>(a->length)}; }
std::span<std::int64_t> places_in(ArrayObject* a) { return {integers(a), static_cast<std::size_t>(a->length)}; }

// csv_scan(bytes, progress, delimiter, quote, comment, skips_empty, empty_is_missing, first, last, row_ends, lines)
// The answer is a ScanEnd.
bool csv_scan(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "csv_scan", args, count, result);
  ArrayObject *bytes = nullptr, *progress = nullptr, *comment = nullptr;
  std::array<ArrayObject*, 4> places{};
  std::int64_t delimiter = 0, quote = 0;
  bool skips_empty = false, empty_is_missing = false;
  if (!call.arity(11) || !call.array_of(0, call.builtin.uint8, 1, bytes) ||
      !call.array_of(1, call.builtin.int64, 1, progress) || !call.integer(2, delimiter) || !call.integer(3, quote) ||
      !call.array_of(4, call.builtin.uint8, 1, comment) || !call.boolean(5, skips_empty) ||
      !call.boolean(6, empty_is_missing) || !take_vectors(call, 7, call.builtin.int64, places))
    return false;
  if (places[0]->length != places[1]->length || places[2]->length != places[3]->length || progress->length != 5)
    return ctx.argument_error("csv_scan: vectors of other lengths");
  Progress state;
  std::memcpy(&state, progress->data, sizeof state);
  if (state.next < 1 || state.fields < 0 || state.rows < 0 || state.fields > places[0]->length ||
      state.rows > places[2]->length)
    return ctx.argument_error("csv_scan: there is no such place");
  if (!takes_turns(ctx, bytes_per_call / 64)) return false;
  const Scan::Syntax syntax{static_cast<char>(delimiter), static_cast<char>(quote), bytes_in(comment), skips_empty,
                            empty_is_missing};
  const ScanEnd end = Scan(bytes_in(bytes), syntax, places_in(places[0]), places_in(places[1]), places_in(places[2]),
                           places_in(places[3]), state)
                          .run();
  std::memcpy(progress->data, &state, sizeof state);
  return call.give_int(static_cast<std::int64_t>(end));
}

// A piece of a column: where its values go, and its fields. A field's number is 0 where the row has none.
class Column {
 public:
  // (values, offset, at, bytes, first, last): the values go to offset + 1, …
  bool take(Call& call, const DataType* element) {
    if (!call.array_of(0, element, 1, values_) || !call.integer(1, offset_) ||
        !call.array_of(2, call.builtin.int64, 1, at_) || !call.array_of(3, call.builtin.uint8, 1, bytes_) ||
        !call.array_of(4, call.builtin.int64, 1, first_) || !call.array_of(5, call.builtin.int64, 1, last_))
      return false;
    if (offset_ < 0 || offset_ > values_->length - at_->length || first_->length != last_->length)
      return call.ctx.argument_error("csv: vectors of other lengths");
    return takes_turns(call.ctx, at_->length);
  }
  ArrayObject* values() const { return values_; }
  // read(text, place, is_quoted) for the fields that are there, skip(place) for missing ones; false from read ends it.
  // The answer is the row of this piece where it ended, or 0.
  template <class Read, class Skip>
  std::int64_t each(Read read, Skip skip) const {
    for (std::int64_t row = 0; row < at_->length; ++row) {
      const std::int64_t k = integers(at_)[row];
      std::string_view text;
      if (k < 1 || k > first_->length || !text_of(k, text))
        skip(offset_ + row);
      else if (!read(text, offset_ + row, integers(first_)[k - 1] < 0))
        return row + 1;
    }
    return 0;
  }

 private:
  bool text_of(std::int64_t k, std::string_view& text) const {
    const std::int64_t last = integers(last_)[k - 1];
    const std::int64_t first = std::abs(integers(first_)[k - 1]);
    if (first < 1 || last < first - 1 || last > bytes_->length) return false;
    text = {bytes_->data + first - 1, static_cast<std::size_t>(last - first + 1)};
    return true;
  }
  ArrayObject* values_ = nullptr;
  ArrayObject* at_ = nullptr;
  ArrayObject* bytes_ = nullptr;
  ArrayObject* first_ = nullptr;
  ArrayObject* last_ = nullptr;
  std::int64_t offset_ = 0;
};

// Without spaces around it and without a plus before it.
std::string_view bare_number(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  if (s.size() > 1 && s[0] == '+' && s[1] != '-') s.remove_prefix(1);
  return s;
}
template <class Number>
bool read_number(std::string_view s, Number& x) {
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), x);
  return error == std::errc{} && end == s.data() + s.size();
}
bool read_float(std::string_view s, char decimal, double& x) {
  s = bare_number(s);
  if (decimal == '.') return read_number(s, x);
  char copy[400];
  if (s.size() > sizeof copy || s.find('.') != std::string_view::npos) return false;
  std::replace_copy(s.begin(), s.end(), copy, decimal, '.');
  return read_number(std::string_view(copy, s.size()), x);
}

// csv_ints(values, offset, at, bytes, first, last), csv_floats(…, decimal). The answer is the row of the first field that is
// no such number, or 0. Missing ones are 0.
bool csv_ints(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "csv_ints", args, count, result);
  Column column;
  if (!call.arity(6) || !column.take(call, call.builtin.int64)) return false;
  std::int64_t* values = integers(column.values());
  return call.give_int(
      column.each([&](std::string_view s, std::int64_t j, bool) { return read_number(bare_number(s), values[j]); },
                  [&](std::int64_t j) { values[j] = 0; }));
}
bool csv_floats(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "csv_floats", args, count, result);
  Column column;
  std::int64_t decimal = 0;
  if (!call.arity(7) || !column.take(call, call.builtin.float64) || !call.integer(6, decimal)) return false;
  double* values = numbers(column.values());
  return call.give_int(column.each(
      [&](std::string_view s, std::int64_t j, bool) { return read_float(s, static_cast<char>(decimal), values[j]); },
      [&](std::int64_t j) { values[j] = 0; }));
}

// Strings made a moment ago: columns of names repeat themselves, and equal strings may be one.
class RecentStrings {
 public:
  explicit RecentStrings(Context& ctx) : ctx_(ctx) {}
  // Undefined: memory is at an end.
  Value get(std::string_view s) {
    if (s.size() > 64) return ctx_.new_string(s);
    Value& known = known_[std::hash<std::string_view>{}(s) % known_.size()];
    if (!known.defined() || static_cast<StringObject*>(known.object)->view() != s) known = ctx_.new_string(s);
    return known;
  }

 private:
  Context& ctx_;
  std::array<Value, 256> known_{};  // all of them are in the column as well, where the collector finds them
};

std::string without_doubled(std::string_view s, char quote) {
  std::string text;
  for (std::size_t i = 0; i < s.size(); i += s[i] == quote ? 2 : 1) text += s[i];
  return text;
}

// csv_strings(values, offset, at, bytes, first, last, quote). Missing ones are "".
bool csv_strings(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "csv_strings", args, count, result);
  Column column;
  std::int64_t quote = 0;
  if (!call.arity(7) || !column.take(call, call.builtin.string) || !call.integer(6, quote)) return false;
  RecentStrings recent(ctx);
  const auto put = [&](std::string_view s, std::int64_t j) {
    const Value text = recent.get(s);
    if (!text.defined()) return false;
    std::memcpy(column.values()->data + j * std::int64_t{sizeof(void*)}, &text.object, sizeof(void*));
    ctx.heap->wrote(text);
    return true;
  };
  bool has_room = true;
  const auto wrong = column.each(
      [&](std::string_view s, std::int64_t j, bool is_quoted) {
        const bool has_quotes = is_quoted && s.find(static_cast<char>(quote)) != std::string_view::npos;
        return has_room = has_room && (has_quotes ? put(without_doubled(s, static_cast<char>(quote)), j) : put(s, j));
      },
      [&](std::int64_t j) { has_room = has_room && put("", j); });
  return has_room ? call.give_int(wrong) : ctx.out_of_memory();
}

constexpr std::uint32_t effect_fills = effect_throws | effect_reads | effect_writes;

const NativeInfo csv_natives[] = {
    {"csv_scan", csv_scan, effect_fills, returns_int, false, false, true},
    {"csv_ints", csv_ints, effect_fills, returns_int, false, false, true},
    {"csv_floats", csv_floats, effect_fills, returns_int, false, false, true},
    {"csv_strings", csv_strings, effect_fills | effect_allocates, returns_int},
};

}  // namespace

void define_csv_natives(Runtime& runtime) { define_all(runtime, csv_natives); }

}  // namespace slope::stdlib
