// Identity: `===` and its hash.
#include "lang/types/object.hpp"

#include <sys/random.h>

#include <bit>
#include <random>
#include <vector>

#include "lang/types/module.hpp"
#include "lang/types/symbol.hpp"
#include "lang/types/symbol_hash.hpp"
#include "lang/types/walk.hpp"

namespace slope {

int array_ndims(const ArrayObject* a) {
  const ValueType* ndims = as_value(a->type->params[1]);
  return ndims ? static_cast<int>(ndims->value.bits) : 0;
}

namespace {

// Contents are compared field by field: padding between them is arbitrary.
bool has_identity_by_content(const DataType* type) {
  return type->object_kind == DataType::ObjectKind::fields && !type->is_mutable &&
         (type->storage == Storage::aggregate || type->storage == Storage::reference);
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9fb21c651e98df25ull;
  return hash ^ (hash >> 32);
}

struct Key {
  std::uint64_t low;
  std::uint64_t high;
};

Key make_key() {
  Key key{};
  if (getrandom(&key, sizeof key, 0) == static_cast<ssize_t>(sizeof key)) return key;
  std::random_device device;
  return {std::uint64_t{device()} << 32 | device(), std::uint64_t{device()} << 32 | device()};
}

// Of what is known by its address. Scripts see it (objectid, hash, how a Task is printed) and must not learn the address
// from it: SipHash-1-3 (Aumasson, Bernstein: SipHash, 2012) of one word with a secret of the process.
std::uint64_t mix_address(std::uint64_t hash, std::uint64_t address) {
  static const Key key = make_key();
  std::uint64_t a = key.low ^ 0x736f6d6570736575ull, b = key.high ^ 0x646f72616e646f6dull,
                c = key.low ^ 0x6c7967656e657261ull, d = key.high ^ 0x7465646279746573ull;
  const auto round = [&] {
    a += b, b = std::rotl(b, 13) ^ a, a = std::rotl(a, 32);
    c += d, d = std::rotl(d, 16) ^ c;
    a += d, d = std::rotl(d, 21) ^ a;
    c += b, b = std::rotl(b, 17) ^ c, c = std::rotl(c, 32);
  };
  for (const std::uint64_t word : {address, std::uint64_t{8} << 56}) {
    d ^= word;
    round();
    a ^= word;
  }
  c ^= 0xff;
  for (int i = 0; i < 3; ++i) round();
  return mix(hash, a ^ b ^ c ^ d);
}

std::uint64_t hash_bytes(std::uint64_t hash, const char* bytes, std::size_t count) {
  for (; count >= 8; count -= 8, bytes += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes, 8);
    hash = mix(hash, word);
  }
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, count);
  return mix(hash, word ^ (std::uint64_t{count} << 56));
}

// Two payloads of one type whose fields are still to be compared; linked lists may be long, so no recursion.
struct Pair {
  const DataType* type;
  const char* a;
  const char* b;
};

// True when surely equal or deferred to `work`, false when different.
bool compare_values(Value a, Value b, std::vector<Pair>& work) {
  if (a.type != b.type) return false;
  if (a.bits == b.bits) return true;
  const DataType* type = as_data(a.type);
  if (!type || !a.pointer || !b.pointer) return false;
  if (type->object_kind == DataType::ObjectKind::string && type->storage == Storage::reference)
    return static_cast<StringObject*>(a.object)->view() == static_cast<StringObject*>(b.object)->view();
  if (!has_identity_by_content(type)) return false;
  work.push_back({type, a.object->payload(), b.object->payload()});
  return true;
}

bool compare_fields(Pair pair, std::vector<Pair>& work) {
  for (const Field& field : pair.type->fields) {
    const char* a = pair.a + field.offset;
    const char* b = pair.b + field.offset;
    switch (field.storage) {
      case Storage::singleton:
        break;
      case Storage::bits:
        if (std::memcmp(a, b, field.size) != 0) return false;
        break;
      case Storage::aggregate:
        work.push_back({as_data(field.type), a, b});
        break;
      case Storage::reference: {
        void *x, *y;
        std::memcpy(&x, a, sizeof x);
        std::memcpy(&y, b, sizeof y);
        if (!compare_values(Value(field.type, x), Value(field.type, y), work)) return false;
        break;
      }
      case Storage::dynamic: {
        Value x, y;
        std::memcpy(static_cast<void*>(&x), a, sizeof x);
        std::memcpy(static_cast<void*>(&y), b, sizeof y);
        if (!compare_values(x, y, work)) return false;
        break;
      }
    }
  }
  return true;
}

}  // namespace

bool egal(Value a, Value b) {
  if (a.identical(b)) return true;
  if (a.type != b.type) return false;
  std::vector<Pair> work;
  if (!compare_values(a, b, work)) return false;
  while (!work.empty()) {
    Pair pair = work.back();
    work.pop_back();
    if (!compare_fields(pair, work)) return false;
  }
  return true;
}

namespace {

struct Content {
  const DataType* type;
  const char* payload;
};

constexpr std::uint64_t first_hash = 0x243f6a8885a308d3ull;

std::uint64_t mix_count(std::uint64_t hash, std::size_t parts, std::size_t most) {
  return parts != 0 && most == 0 ? mix(hash, parts) : hash;
}

// Parts of a type that its hash looks at. Types share their parts, so that one of 60 levels may be a tree of 2^60.
constexpr std::size_t hashed_parts = 1024;

// By names, not by addresses or the order in which types were made: the same in every run and tier, so that tables with
// symbols and types as keys are too. The parts of a type share what may still be looked at, so that the order of the
// members of a union does not matter.
std::uint64_t hash_type(std::uint64_t hash, const Type* t, std::size_t most = hashed_parts) {
  hash = mix(hash, static_cast<std::uint64_t>(t->kind));
  switch (t->kind) {
    case TypeKind::data: {
      hash = mix(hash, as_data(t)->name->name->hash);
      const auto parameters = as_data(t)->params;
      if (parameters.empty() || most == 0) return mix_count(hash, parameters.size(), most);
      for (const Type* parameter : parameters) hash = hash_type(hash, parameter, (most - 1) / parameters.size());
      return hash;
    }
    case TypeKind::union_: {
      const auto members = as_union(t)->members;
      if (most == 0) return mix_count(hash, members.size(), most);
      std::uint64_t sum = 0;  // in whatever order they stand
      for (const Type* member : members) sum += hash_type(0, member, (most - 1) / members.size());
      return mix(hash, sum);
    }
    case TypeKind::union_all:
      return most == 0 ? hash : hash_type(hash, as_union_all(t)->body, most - 1);
    case TypeKind::var:
      return mix(hash, as_var(t)->name->hash);
    case TypeKind::vararg:
      return as_vararg(t)->element && most != 0 ? hash_type(hash, as_vararg(t)->element, most - 1) : hash;
    case TypeKind::value:
      return mix(hash, egal_hash(as_value(t)->value));
    case TypeKind::bottom:
      return hash;
  }
  return hash;
}

std::uint64_t hash_of(std::uint64_t hash, const Type* t) {
  const std::uint32_t levels = std::min<std::uint32_t>(t->levels, hashed_parts);
  return walk_types(levels, [&] { return hash_type(hash, t); });
}

std::uint64_t hash_immortal(std::uint64_t hash, Value v) {
  const DataType* type = as_data(v.type);
  const std::string_view kind = type->name->name->name;
  if (kind == "Symbol") return mix(hash, static_cast<const Symbol*>(v.pointer)->hash);
  if (kind == "Module") return mix(hash, static_cast<const Module*>(v.pointer)->name->hash);
  if (kind == "DataType" || kind == "UnionAll" || kind == "Union" || kind == "TypeofBottom")
    return hash_of(hash, static_cast<const Type*>(v.pointer));
  return mix_address(hash, static_cast<std::uint64_t>(v.bits));
}

std::uint64_t hash_value(std::uint64_t hash, Value v, std::vector<Content>& work) {
  const DataType* type = as_data(v.type);
  if (type) hash = type->params.empty() ? hash_type(hash, type) : hash_of(hash, type);
  if (type && type->object_kind == DataType::ObjectKind::immortal && v.pointer) return hash_immortal(hash, v);
  if (type && type->storage == Storage::singleton) return hash;
  if (!type || (type->storage != Storage::aggregate && type->storage != Storage::reference) || !v.pointer)
    return mix(hash, static_cast<std::uint64_t>(v.bits));
  if (type->object_kind == DataType::ObjectKind::string) {
    std::string_view text = static_cast<StringObject*>(v.object)->view();
    return hash_bytes(hash, text.data(), text.size());
  }
  if (!has_identity_by_content(type)) return mix_address(hash, static_cast<std::uint64_t>(v.bits));
  work.push_back({type, v.object->payload()});
  return hash;
}

std::uint64_t hash_fields(std::uint64_t hash, Content content, std::vector<Content>& work) {
  for (const Field& field : content.type->fields) {
    const char* where = content.payload + field.offset;
    switch (field.storage) {
      case Storage::singleton:
        break;
      case Storage::bits:
        hash = hash_bytes(hash, where, field.size);
        break;
      case Storage::aggregate:
        work.push_back({as_data(field.type), where});
        break;
      case Storage::reference: {
        void* pointer;
        std::memcpy(&pointer, where, sizeof pointer);
        hash = hash_value(hash, Value(field.type, pointer), work);
        break;
      }
      case Storage::dynamic: {
        Value v;
        std::memcpy(static_cast<void*>(&v), where, sizeof v);
        hash = hash_value(hash, v, work);
        break;
      }
    }
  }
  return hash;
}

}  // namespace

std::uint64_t symbol_hash(const DataType* symbol_type, const Symbol* symbol) {
  return mix(hash_type(first_hash, symbol_type), symbol->hash);
}

std::uint64_t egal_hash(Value v) {
  std::vector<Content> work;
  std::uint64_t hash = hash_value(first_hash, v, work);
  while (!work.empty()) {
    Content content = work.back();
    work.pop_back();
    hash = hash_fields(hash, content, work);
  }
  return hash;
}

}  // namespace slope
