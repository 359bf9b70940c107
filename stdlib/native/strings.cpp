// Strings: what needs their memory. Indices are bytes, from 1.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"
#include "stdlib/native/utf8.hpp"

namespace slope::stdlib {

namespace {

bool string_concat(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "string_concat", args, count, result);
  std::size_t bytes = 0;
  std::string_view part;
  for (std::size_t i = 0; i < count; ++i) {
    if (!call.string(i, part)) return false;
    bytes += part.size();
  }
  StringObject* made = ctx.heap->allocate_string_uninitialized(bytes);
  if (!made) return ctx.out_of_memory();
  char* to = made->bytes;
  for (std::size_t i = 0; i < count; ++i) {
    if (!call.string(i, part)) return false;
    to = std::copy(part.begin(), part.end(), to);
  }
  return call.give(Value(call.builtin.string, static_cast<const void*>(made)));
}

// plain_text(parts…): texts, symbols, characters, integers and booleans as `print` writes them, one after the other, in
// one piece of memory.
bool plain_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  constexpr std::size_t most = 16, most_digits = 20;
  Call call(ctx, "plain_text", args, count, result);
  if (count > most) return ctx.argument_error("plain_text takes 16 arguments at most");
  struct Part {  // without a value at first: it costs more than the rest
    const char* bytes;
    std::size_t size;
  };
  Part parts[most];
  char digits[most * most_digits];
  char* at = digits;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Type* type = args[i].type;
    if (type == call.builtin.int64) {
      char* const end = std::to_chars(at, at + most_digits, args[i].bits).ptr;
      parts[i] = {at, static_cast<std::size_t>(end - at)};
      at = end;
    } else if (type == call.builtin.character) {
      const std::size_t size = write_utf8(at, static_cast<std::uint32_t>(args[i].bits));
      parts[i] = {at, size};
      at += size;
    } else if (type == call.builtin.boolean) {
      parts[i] = args[i].bits & 1 ? Part{"true", 4} : Part{"false", 5};
    } else if (type == call.builtin.symbol) {
      parts[i] = {args[i].symbol->name.data(), args[i].symbol->name.size()};
    } else {
      std::string_view text;
      if (!call.string(i, text)) return false;
      parts[i] = {text.data(), text.size()};
    }
    bytes += parts[i].size;
  }
  StringObject* made = ctx.heap->allocate_string_uninitialized(bytes);
  if (!made) return ctx.out_of_memory();
  char* to = made->bytes;
  for (std::size_t i = 0; i < count; ++i) to = std::copy_n(parts[i].bytes, parts[i].size, to);
  return call.give(Value(call.builtin.string, static_cast<const void*>(made)));
}

bool string_sub(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "string_sub", args, count, result);
  std::string_view s;
  std::int64_t from = 0, to = 0;
  if (!call.string(0, s) || !call.integer(1, from) || !call.integer(2, to)) return false;
  if (to < from) return call.give("");
  if (from < 1 || to > static_cast<std::int64_t>(s.size())) return ctx.bounds_error(args[0], args[1]);
  // The argument stays where it is, but the view must not outlive a collection that frees it: `args` keeps it alive.
  return call.give(s.substr(static_cast<std::size_t>(from - 1), static_cast<std::size_t>(to - from + 1)));
}

// False when a limit is met before the end.
bool copy_bytes(Context& ctx, char* to, std::string_view from) {
  constexpr std::size_t most_at_once = std::size_t{4} << 20;
  for (; from.size() > most_at_once; from.remove_prefix(most_at_once), to += most_at_once) {
    std::memcpy(to, from.data(), most_at_once);
    if (ctx.interrupt.load(std::memory_order_relaxed) != no_interrupt && !ctx.stop()) return false;
  }
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
  return true;
}

bool string_from_bytes(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "string_from_bytes", args, count, result);
  ArrayObject* a = nullptr;
  if (!call.array_of(0, call.builtin.uint8, 1, a)) return false;
  StringObject* made = ctx.heap->allocate_string_uninitialized(static_cast<std::size_t>(a->length));
  if (!made) return ctx.out_of_memory();
  if (!copy_bytes(ctx, made->bytes, {a->data, static_cast<std::size_t>(a->length)})) return false;
  return call.give(Value(call.builtin.string, static_cast<const void*>(made)));
}

bool string_bytes(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "string_bytes", args, count, result);
  std::string_view s;
  if (!call.string(0, s)) return false;
  const std::int64_t dims[] = {static_cast<std::int64_t>(s.size())};
  const DataType* type = call.runtime.types.array_of(call.builtin.uint8, 1);
  ArrayObject* a = call.ctx.heap->allocate_array(type, dims);
  if (!a) return ctx.out_of_memory();
  if (!copy_bytes(ctx, a->data, s)) return false;
  return call.give(Value(type, static_cast<const void*>(a)));
}

// bytes_append(vector, s)
bool bytes_append(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "bytes_append", args, count, result);
  ArrayObject* a = nullptr;
  std::string_view s;
  if (!call.array_of(0, call.builtin.uint8, 1, a) || !call.string(1, s)) return false;
  std::int64_t before = a->length;
  if (!call.ctx.heap->resize_vector(a, before + static_cast<std::int64_t>(s.size()))) return ctx.out_of_memory();
  if (!copy_bytes(ctx, a->data + before, s)) return false;
  return call.give_nothing();
}

// In linear time, whatever the texts: the C library searches by the two-way algorithm.
std::size_t find_in(std::string_view text, std::string_view wanted) {
  if (wanted.empty()) return 0;
  const void* at = memmem(text.data(), text.size(), wanted.data(), wanted.size());
  return at ? static_cast<std::size_t>(static_cast<const char*>(at) - text.data()) : std::string_view::npos;
}

std::size_t find_last_in(std::string_view text, std::string_view wanted) {
  constexpr std::size_t few = 16;  // comparing so many bytes at each place costs less than a copy
  if (wanted.size() <= few) return text.rfind(wanted);
  const std::string backwards(text.rbegin(), text.rend()), wanted_backwards(wanted.rbegin(), wanted.rend());
  const std::size_t at = find_in(backwards, wanted_backwards);
  return at == std::string_view::npos ? at : text.size() - at - wanted.size();
}

bool string_find(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "string_find", args, count, result);
  std::string_view s, wanted;
  std::int64_t from = 0;
  if (!call.string(0, s) || !call.string(1, wanted) || !call.integer(2, from)) return false;
  if (from < 1 || from > static_cast<std::int64_t>(s.size()) + 1) return call.give_int(0);
  const std::string_view rest = s.substr(static_cast<std::size_t>(from - 1));
  const std::size_t at = find_in(rest, wanted);
  return call.give_int(at == std::string_view::npos ? 0 : static_cast<std::int64_t>(at) + from);
}

bool string_find_last(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "string_find_last", args, count, result);
  std::string_view s, wanted;
  if (!call.string(0, s) || !call.string(1, wanted)) return false;
  const std::size_t at = find_last_in(s, wanted);
  return call.give_int(at == std::string_view::npos ? 0 : static_cast<std::int64_t>(at) + 1);
}

bool string_repeat(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "string_repeat", args, count, result);
  std::string_view s;
  std::int64_t times = 0;
  if (!call.string(0, s) || !call.integer(1, times)) return false;
  if (times <= 0 || s.empty()) return call.give("");
  if (times > (std::int64_t{1} << 40) / static_cast<std::int64_t>(s.size())) return ctx.out_of_memory();
  StringObject* made = ctx.heap->allocate_string_uninitialized(s.size() * static_cast<std::size_t>(times));
  if (!made) return ctx.out_of_memory();
  // What is there already is copied behind it, in pieces after which the limits are looked at.
  constexpr std::size_t most_at_once = std::size_t{1} << 20;
  const std::size_t size = s.size() * static_cast<std::size_t>(times);
  const std::size_t most = std::max(most_at_once / s.size(), std::size_t{1}) * s.size();
  std::memcpy(made->bytes, s.data(), s.size());
  for (std::size_t done = s.size(); done < size;) {
    const std::size_t piece = std::min({done, most, size - done});
    std::memcpy(made->bytes + done, made->bytes, piece);
    done += piece;
    if (ctx.interrupt.load(std::memory_order_relaxed) != no_interrupt && !ctx.stop()) return false;
  }
  return call.give(Value(call.builtin.string, static_cast<const void*>(made)));
}

// string_replace_ranges(s, places, new): each range of bytes by the same text. `places` holds where each begins and the
// byte after it, in their order. An empty one where the last ended is none.
bool string_replace_ranges(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "string_replace_ranges", args, count, result);
  std::string_view s, wanted;
  ArrayObject* places = nullptr;
  if (!call.string(0, s) || !call.array_of(1, call.builtin.int64, 1, places) || !call.string(2, wanted)) return false;
  const auto* at = reinterpret_cast<const std::int64_t*>(places->data);
  const std::int64_t ranges = places->length / 2, end = static_cast<std::int64_t>(s.size()) + 1;
  std::size_t size = s.size();
  for (std::int64_t k = 0, last = 1; k < ranges; last = at[2 * k + 1], ++k) {
    if (at[2 * k] < last || at[2 * k + 1] < at[2 * k] || at[2 * k + 1] > end) return ctx.bounds_error(args[0], args[1]);
    size = size - static_cast<std::size_t>(at[2 * k + 1] - at[2 * k]) + wanted.size();
  }
  if (size > std::size_t{1} << 40) return ctx.out_of_memory();
  StringObject* made = ctx.heap->allocate_string_uninitialized(size);  // too long, where a range is none
  if (!made) return ctx.out_of_memory();
  char* to = made->bytes;
  std::int64_t from = 1, ended = 0;
  auto copy = [&](std::int64_t until) { to = std::copy(s.data() + from - 1, s.data() + until - 1, to); };
  for (std::int64_t k = 0; k < ranges; ++k) {
    const std::int64_t first = at[2 * k], after = at[2 * k + 1];
    if (first == after && first == ended) continue;
    copy(first);
    to = std::copy(wanted.begin(), wanted.end(), to);
    from = ended = after;
    if (ctx.interrupt.load(std::memory_order_relaxed) != no_interrupt && !ctx.stop()) return false;
  }
  copy(end);
  const auto used = static_cast<std::size_t>(to - made->bytes);
  if (used != size) return call.give(std::string_view(made->bytes, used));
  return call.give(Value(call.builtin.string, static_cast<const void*>(made)));
}

// The last byte first.
bool string_reverse_bytes(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "string_reverse_bytes", args, count, result);
  std::string_view s;
  if (!call.string(0, s)) return false;
  StringObject* made = ctx.heap->allocate_string_uninitialized(s.size());
  if (!made) return ctx.out_of_memory();
  std::reverse_copy(s.begin(), s.end(), made->bytes);
  return call.give(Value(call.builtin.string, static_cast<const void*>(made)));
}

bool string_compare(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "string_compare", args, count, result);
  std::string_view a, b;
  if (!call.string(0, a) || !call.string(1, b)) return false;
  return call.give_int(a.compare(b));
}

// MurmurHash3 (x64, 128 bits; Appleby), of which the second word is used.
std::uint64_t murmur(std::string_view text, std::uint32_t seed) {
  auto rotate = [](std::uint64_t x, int k) { return x << k | x >> (64 - k); };
  auto mix = [](std::uint64_t k) {
    k ^= k >> 33;
    k *= 0xff51afd7ed558ccdull;
    k ^= k >> 33;
    k *= 0xc4ceb9fe1a85ec53ull;
    return k ^ k >> 33;
  };
  constexpr std::uint64_t c1 = 0x87c37b91114253d5ull, c2 = 0x4cf5ad432745937full;
  std::uint64_t h1 = seed, h2 = seed;
  std::size_t blocks = text.size() / 16;
  for (std::size_t i = 0; i < blocks; ++i) {
    std::uint64_t k1 = 0, k2 = 0;
    std::memcpy(&k1, text.data() + 16 * i, 8);
    std::memcpy(&k2, text.data() + 16 * i + 8, 8);
    h1 ^= rotate(k1 * c1, 31) * c2;
    h1 = (rotate(h1, 27) + h2) * 5 + 0x52dce729;
    h2 ^= rotate(k2 * c2, 33) * c1;
    h2 = (rotate(h2, 31) + h1) * 5 + 0x38495ab5;
  }
  std::uint64_t k1 = 0, k2 = 0;
  std::string_view tail = text.substr(16 * blocks);
  for (std::size_t i = tail.size(); i-- > 8;) k2 |= std::uint64_t{static_cast<unsigned char>(tail[i])} << (8 * (i - 8));
  for (std::size_t i = std::min<std::size_t>(tail.size(), 8); i-- > 0;)
    k1 |= std::uint64_t{static_cast<unsigned char>(tail[i])} << (8 * i);
  if (tail.size() > 8) h2 ^= rotate(k2 * c2, 33) * c1;
  if (!tail.empty()) h1 ^= rotate(k1 * c1, 31) * c2;
  h1 ^= text.size();
  h2 ^= text.size();
  h1 += h2;
  h2 += h1;
  h1 = mix(h1);
  h2 = mix(h2);
  h1 += h2;
  return h2 + h1;
}

// string_hash(s, h), or of a part: string_hash(s, h, offset, bytes).
bool string_hash(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "string_hash", args, count, result);
  std::string_view s;
  std::int64_t offset = 0, bytes = 0;
  if (count < 2 ? !call.arity(2) : !call.string(0, s)) return false;
  if (count > 2) {
    if (!call.arity(4) || !call.integer(2, offset) || !call.integer(3, bytes)) return false;
    const auto size = static_cast<std::int64_t>(s.size());
    if (offset < 0 || bytes < 0 || offset > size || bytes > size - offset) return ctx.bounds_error(args[0], args[2]);
    s = s.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes));
  }
  if (args[1].type != call.builtin.uint64) return ctx.type_error("hash", call.builtin.uint64, args[1]);
  std::uint64_t h = static_cast<std::uint64_t>(args[1].bits) + 0x71e729fd56419c81ull;
  return call.give(Value(call.builtin.uint64, static_cast<std::int64_t>(murmur(s, static_cast<std::uint32_t>(h)) + h)));
}

bool string_char_count(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "string_char_count", args, count, result);
  std::string_view s;
  if (!call.string(0, s)) return false;
  return call.give_int(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

bool string_valid(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "string_valid", args, count, result);
  std::string_view s;
  return call.string(0, s) && call.give_bool(valid_utf8(s));
}

bool string_unescape(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "string_unescape", args, count, result);
  std::string_view s;
  if (!call.string(0, s)) return false;
  std::string out;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '\\' || i + 1 == s.size()) {
      out += s[i];
      continue;
    }
    char c = s[++i];
    static constexpr std::string_view names = "ntrabfve0\\\"'$", values("\n\t\r\a\b\f\v\x1b\0\\\"'$", 13);
    if (std::size_t known = names.find(c); known != std::string_view::npos) {
      out += values[known];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      std::size_t most = c == 'x' ? 2 : c == 'u' ? 4 : 8, used = 0;
      std::uint32_t code = 0;
      while (used < most && i + 1 < s.size() && std::isxdigit(static_cast<unsigned char>(s[i + 1]))) {
        char digit = s[++i];
        code = code * 16 + static_cast<std::uint32_t>(digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10);
        ++used;
      }
      if (used == 0) return ctx.argument_error("\\x used with no following hex digits");
      if (c == 'x') {
        out += static_cast<char>(code);
      } else {
        append_utf8(out, code);
      }
    } else {
      return ctx.argument_error(std::string("invalid escape sequence \\") + c);
    }
  }
  return call.give(out);
}

bool symbol_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "symbol_text", args, count, result);
  const Symbol* s = nullptr;
  return call.symbol(0, s) && call.give(s->name);
}

bool symbol_from_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "symbol_from_text", args, count, result);
  std::string_view s;
  if (!call.string(0, s)) return false;
  if (s.find('\0') != std::string_view::npos) return ctx.argument_error("a Symbol may not contain \\0");
  return call.give(call.runtime.from_symbol(call.runtime.symbol(std::string(s))));
}

// Those that are context-free must not throw: machine code calls them directly.
const NativeInfo strings_natives[] = {
    {"string_concat", string_concat, effect_makes, returns_string, false, false, true},
    {"plain_text", plain_text, effect_makes, returns_string, false, false, true},
    {"string_sub", string_sub, effect_makes, returns_string, false, false, true},
    {"string_from_bytes", string_from_bytes, effect_makes | effect_reads, returns_string, false, false, true},
    {"string_bytes", string_bytes, effect_makes, returns_bytes},
    {"bytes_append", bytes_append, effect_makes | effect_reads | effect_writes, returns_nothing, false, false, true},
    {"string_find", string_find, effect_throws, returns_int, false, false, true},
    {"string_find_last", string_find_last, effect_throws, returns_int},
    {"string_repeat", string_repeat, effect_makes, returns_string},
    {"string_replace_ranges", string_replace_ranges, effect_makes | effect_reads, returns_string, false, false, true},
    {"string_compare", string_compare, effect_throws, returns_int, false, false, true},
    {"string_hash", string_hash, effect_throws,
     [](TypeTable& t, ArgumentTypes) -> const Type* { return t.builtin().uint64; }, false, false, true},
    {"string_reverse_bytes", string_reverse_bytes, effect_makes, returns_string, false, false, true},
    {"string_char_count", string_char_count, effect_throws, returns_int, false, false, true},
    {"string_valid", string_valid, effect_throws, returns_bool, false, false, true},
    {"string_unescape", string_unescape, effect_makes, returns_string},
    {"symbol_text", symbol_text, effect_makes, returns_string},
    {"symbol_from_text", symbol_from_text, effect_makes, returns_symbol},
};

}  // namespace

void define_string_natives(Runtime& runtime) { define_all(runtime, strings_natives); }

}  // namespace slope::stdlib
