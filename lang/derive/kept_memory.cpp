#include "lang/derive/kept_memory.hpp"

#include <algorithm>
#include <cstring>

#include "lang/derive/derivatives.hpp"
#include "lang/diff/operations.hpp"
#include "lang/diff/tangent.hpp"
#include "lang/runtime/library_names.hpp"
#include "lang/support/exception_safe.hpp"

namespace slope::derive {

namespace {

constexpr std::size_t few = 8;  // entries that are looked through one by one

bool holds_references(const ArrayObject* a) {
  const DataType* element = as_data(array_element_type(a));
  return !element || !element->is_isbits;
}

}  // namespace

// --- what is kept ---

KeptMemory::KeptMemory(Context& ctx) : ctx_(ctx), runtime_(*ctx.runtime), array_copies_(runtime_) {
  root_key_ = ctx.heap->add_root_tracer([this](Tracer& tracer) {
    array_copies_.forget();
    for (const Entry& entry : entries_) {
      if (entry.kind != Entry::Kind::global) tracer.object(static_cast<Object*>(entry.what));
    }
    tracer.conservative(references_.data(), references_.data() + references_.size());
    for (std::size_t i = 0; i < depth_; ++i)
      for (Value v : levels_[i].put_back_by_call) tracer.value(v);
  });
}

KeptMemory::~KeptMemory() { ctx_.heap->remove_root_tracer(root_key_); }

std::int64_t KeptMemory::open(bool within) {
  if (depth_ == 0) leads_to_the_same_.clear();  // a type may be freed
  if (depth_ == levels_.size()) levels_.emplace_back();
  Level& level = levels_[depth_++];
  level.entries = entries_.size();
  level.bits = bits_.size();
  level.references = references_.size();
  level.outer_watch = ctx_.calls;
  level.within = within && depth_ > 1;
  level.keeps_tangents = false;
  level.begun = false;
  level.watches = level.looks = false;
  empty_set(seen_);  // of what an exception has ended
  level.put_back_by_call.clear();
  ctx_.calls = nullptr;
  return static_cast<std::int64_t>(depth_);
}

KeptMemory::Look::Look(KeptMemory& memory) : memory_(memory) {
  level = static_cast<std::size_t>(memory_.open(true));
  memory_.top().looks = true;
}

// The level around keeps what it has not kept itself.
void KeptMemory::leave_to_outer(const Level& level) {
  std::size_t bits = level.bits;
  std::size_t references = level.references;
  const std::vector<Entry> ended(entries_.begin() + static_cast<std::ptrdiff_t>(level.entries), entries_.end());
  entries_.resize(level.entries);
  for (Entry entry : ended) {
    if (!leaves(level, entry) || has(entry.what)) continue;
    std::vector<char>& content = entry.has_references ? references_ : bits_;
    std::size_t& to = entry.has_references ? references : bits;
    const std::size_t room = (entry.bytes + 7) / 8 * 8;
    if (to != entry.offset) std::memmove(content.data() + to, content.data() + entry.offset, room);
    entry.offset = to;
    to += room;
    add(entry);
  }
  bits_.resize(bits);
  references_.resize(references);
}

void KeptMemory::cut_to(std::size_t depth) {
  while (depth_ > depth) {
    Level& level = top();
    ctx_.calls = level.outer_watch;
    empty_set(level.kept);
    empty_set(level.done);
    level.put_back_by_call.clear();
    empty_set(level.numbers);
    --depth_;
    if (level.within) {
      leave_to_outer(level);
    } else {
      entries_.resize(level.entries);
      bits_.resize(level.bits);
      references_.resize(level.references);
    }
  }
}

std::int64_t KeptMemory::open_watch(const Value* arguments, std::size_t count, std::int64_t active) {
  const bool with_tangents = keeps_tangents();
  const std::int64_t opened = open(true);
  Level& level = top();
  level.watches = level.begun = true;
  level.keeps_tangents = with_tangents;  // for the level around it
  for (std::size_t i = 0; i < std::min<std::size_t>(count, 62); ++i)
    if (active >> i & 1) level.put_back_by_call.push_back(arguments[i]);
  level.knows_numbers = (active & numbers_from_before) != 0;
  if (!level.knows_numbers) return opened;
  for (std::size_t i = 0; i < count; ++i)
    reach(arguments[i], [&](Object* object, bool) { level.numbers.insert(object); });
  empty_set(seen_);
  return opened;
}

// What the call's own reverse step puts back is what carries a derivative and is reached from its active arguments. In
// derivatives of derivatives shadows are told as well, but what is accumulated there stays. So do tangents.
bool KeptMemory::close_watch(std::int64_t level, Value& copies) {
  copies = runtime_.nothing();
  const auto depth = static_cast<std::size_t>(level);
  if (level < 1 || depth > depth_) return true;
  const SharedAccess access(ctx_);
  cut_to(depth);  // what an exception that was caught has left open
  const Level& watch = top();
  diff::TangentTypes& tangents = diff::tangent_types(runtime_);
  const auto is_new = [&](const Entry& entry) {
    return watch.knows_numbers && !watch.numbers.contains(static_cast<const Object*>(entry.what));
  };
  const auto has_numbers = [&](const Entry& entry) {
    return entry.kind != Entry::Kind::global && tangents.differentiable(static_cast<const Object*>(entry.what)->type);
  };
  std::unordered_set<const Object*> put_back_by_call;
  for (std::size_t i = watch.entries; i < entries_.size(); ++i)
    if (entries_[i].of_tangent || (has_numbers(entries_[i]) && is_new(entries_[i])) ||
        (entries_[i].kind == Entry::Kind::fields && tangents.shadowed(static_cast<Object*>(entries_[i].what)->type)))
      put_back_by_call.insert(static_cast<Object*>(entries_[i].what));
  if (std::any_of(entries_.begin() + static_cast<std::ptrdiff_t>(watch.entries), entries_.end(), has_numbers))
    for (Value root : watch.put_back_by_call)
      reach(root, [&](Object* object, bool) {
        if (tangents.differentiable(object->type)) put_back_by_call.insert(object);
      });
  empty_set(seen_);
  const bool ok = copy_entries(depth, Copies::all, true, copies, &put_back_by_call);
  cut_to(depth - 1);
  return ok;
}

void KeptMemory::copy(Entry entry, const void* content) {
  if (top().looks) return add(entry);
  std::vector<char>& into = entry.has_references ? references_ : bits_;
  entry.offset = into.size();
  into.resize(into.size() + (entry.bytes + 7) / 8 * 8);
  if (entry.bytes) std::memcpy(into.data() + entry.offset, content, entry.bytes);
  entry.later = top().begun;
  entry.of_tangent = keeps_of_tangent_;
  add(entry);
}

void KeptMemory::add(const Entry& entry) {
  Level& level = top();
  entries_.push_back(entry);
  const std::size_t count = entries_.size() - level.entries;
  if (count == few + 1)
    for (std::size_t i = level.entries; i < entries_.size(); ++i) level.kept.insert(entries_[i].what);
  else if (count > few)
    level.kept.insert(entry.what);
}

bool KeptMemory::has(const void* what) const {
  const Level& level = levels_[depth_ - 1];
  if (entries_.size() - level.entries > few) return level.kept.contains(what);
  return std::any_of(entries_.begin() + static_cast<std::ptrdiff_t>(level.entries), entries_.end(),
                     [&](const Entry& entry) { return entry.what == what; });
}

void KeptMemory::keep_object(Object* object) {
  if (has(object)) return;
  Entry entry{Entry::Kind::fields, object, 0, object->type->size, 0, true};
  switch (object->type->object_kind) {
    case DataType::ObjectKind::fields: {
      const TraceMap& map = runtime_.types.trace_map(object->type);
      entry.has_references = !map.references.empty() || !map.values.empty();
      return copy(entry, object->payload());
    }
    case DataType::ObjectKind::array: {
      const auto* array = static_cast<const ArrayObject*>(object);
      entry.kind = Entry::Kind::array;
      entry.bytes = static_cast<std::size_t>(array->length) * array->element_size;
      entry.length = array->length;
      entry.has_references = holds_references(array);
      return copy(entry, array->data);
    }
    case DataType::ObjectKind::cell:
      entry.kind = Entry::Kind::cell;
      entry.bytes = sizeof(Value);
      return copy(entry, &static_cast<const CellObject*>(object)->value);
    default:
      break;
  }
}

void KeptMemory::keep_global(Binding* binding) {
  if (!has(binding)) copy({Entry::Kind::global, binding, 0, sizeof(Value), 0, true}, &binding->value);
}

void KeptMemory::reach(Value root, const Visit& visit) {
  if (!is_reference(root)) return;
  pending_.assign(1, root.object);
  bool first = true;
  // Numbers in boxes, texts and symbols lead nowhere, and nothing is stored into them.
  const auto is_plain = [](const DataType* type) {
    return type->object_kind == DataType::ObjectKind::string ||
           (type->object_kind == DataType::ObjectKind::fields && type->is_isbits && !type->is_mutable);
  };
  const auto reach_object = [&](Object* part) {
    if (part && !is_plain(part->type)) pending_.push_back(part);
  };
  const auto reach_value = [&](Value part) {
    if (is_reference(part) && !is_plain(part.object->type)) pending_.push_back(part.object);
  };
  while (!pending_.empty()) {
    Object* object = pending_.back();
    pending_.pop_back();
    const bool is_array = is_object(object, DataType::ObjectKind::array);
    const bool is_leaf = is_array && !holds_references(static_cast<ArrayObject*>(object));
    if (!(first && is_leaf) && !seen_.insert(object).second) continue;
    first = false;
    const DataType* type = object->type;
    visit(object, is_leaf);
    if (is_leaf) continue;
    if (is_array) {
      const auto* array = static_cast<const ArrayObject*>(object);
      if (storage_of(array_element_type(array)) == Storage::dynamic) {
        for (std::int64_t i = 0; i < array->length; ++i) reach_value(reinterpret_cast<const Value*>(array->data)[i]);
      } else if (as_data(array_element_type(array))->object_kind != DataType::ObjectKind::immortal) {
        for (std::int64_t i = 0; i < array->length; ++i) reach_object(reinterpret_cast<Object* const*>(array->data)[i]);
      }
    } else if (is_object(object, DataType::ObjectKind::cell)) {
      reach_value(static_cast<const CellObject*>(object)->value);
    } else if (is_object(object, DataType::ObjectKind::fields)) {
      const TraceMap& map = runtime_.types.trace_map(type);
      for (std::uint32_t offset : map.references) reach_object(*reinterpret_cast<Object**>(object->payload() + offset));
      for (std::uint32_t offset : map.values) reach_value(*reinterpret_cast<Value*>(object->payload() + offset));
    }
  }
}

// Of such an object: what it leads to is the same for ever.
bool KeptMemory::leads_to_the_same(const DataType* type) {
  const auto [known, fresh] = leads_to_the_same_.try_emplace(type, false);  // a type within itself is looked through
  if (!fresh) return known->second;
  const auto is_the_same = [&](const Type* part) {
    const DataType* data = as_data(part);
    return data && data->is_concrete && (data->is_isbits || leads_to_the_same(data));
  };
  bool same = true;
  if (type->object_kind == DataType::ObjectKind::array) {
    const DataType* element = as_data(type->params[0]);
    same = element && element->is_isbits;
  } else if (type->object_kind == DataType::ObjectKind::fields) {
    for (const Field& field : type->fields) {
      const DataType* data = as_data(field.type);
      same = same && (type->is_mutable ? data && data->is_isbits : is_the_same(field.type));
    }
  } else {
    same = type->object_kind == DataType::ObjectKind::string;
  }
  return leads_to_the_same_[type] = same;
}

// Everything that can be reached, and of it what may be stored into.
void KeptMemory::walk(const Stores& stores, Value root) {
  reach(root, [&](Object* object, bool) {
    const DataType* type = object->type;
    const bool is_mutable = type->is_mutable || type->object_kind != DataType::ObjectKind::fields;
    if (is_mutable && stores.may_hit(type) && !(stores.any_type && is_random_generator(runtime_, type)))
      keep_object(object);
  });
}

// A number that differs when the bytes do, in four lanes that do not wait for each other.
static std::uint64_t number_of(const char* data, std::size_t bytes, std::uint64_t before) {
  constexpr std::size_t lanes = 4;
  std::uint64_t sums[lanes] = {before, before + 1, before + 2, before + 3};
  const auto mix = [](std::uint64_t sum, std::uint64_t word) {
    return (sum ^ word) * 0x9e3779b97f4a7c15u + (sum >> 29);
  };
  std::size_t at = 0;
  for (; at + lanes * sizeof(std::uint64_t) <= bytes; at += lanes * sizeof(std::uint64_t)) {
    std::uint64_t words[lanes];
    std::memcpy(words, data + at, sizeof words);
    for (std::size_t i = 0; i < lanes; ++i) sums[i] = mix(sums[i], words[i]);
  }
  for (; at < bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + at, std::min(sizeof word, bytes - at));
    sums[0] = mix(sums[0], word);
  }
  return mix(mix(mix(sums[0], sums[1]), sums[2]), sums[3]);
}

bool KeptMemory::keep_seen(const std::vector<Value>& roots, Value& copies, std::uint64_t& others) {
  constexpr std::size_t most_bytes = 1024;  // of an array that is copied
  const SharedAccess access(ctx_);
  diff::TangentTypes& tangents = diff::tangent_types(runtime_);
  const Value streams = library_value(runtime_, KnownName::io_type);
  const auto is_stream = [&](const Type* type) {
    return streams.defined() && is_subtype(runtime_.types, type, streams.as_type);
  };
  const Look looked(*this);
  others = 0;
  for (Value root : roots)
    reach(root, [&](Object* object, bool is_leaf) {
      if (is_object(object, DataType::ObjectKind::array)) {
        const auto* array = static_cast<const ArrayObject*>(object);
        const std::size_t bytes = static_cast<std::size_t>(array->length) * array->element_size;
        if (!is_leaf || (bytes <= most_bytes && !tangents.differentiable(object->type))) return keep_object(object);
        others = number_of(array->data, bytes, others + static_cast<std::uint64_t>(array->length));
      } else if ((object->type->is_mutable && !is_stream(object->type)) ||
                 is_object(object, DataType::ObjectKind::cell)) {
        keep_object(object);
      }
    });
  empty_set(seen_);
  return copy_entries(looked.level, Copies::all, true, copies);
}

void KeptMemory::keep(const Stores& stores, const Value* arguments, std::size_t count, std::size_t fixed) {
  const SharedAccess access(ctx_);
  for (Binding* binding : stores.assigned) keep_global(binding);
  const auto look = [&](Value root) {
    if (!is_reference(root)) return;
    // Where other objects may have been attached meanwhile, they are looked for each time.
    if (!leads_to_the_same(root.object->type) || entries_.size() == top().entries ||
        top().done.insert({root.pointer, &stores}).second)
      walk(stores, root);
  };
  for (std::size_t i = 0; i < count; ++i)
    if (stores.arguments & diff::parameter_mask(std::min(i, fixed))) look(arguments[i]);
  if (stores.arguments & diff::global_memory) {
    for (Value v : stores.constants) look(v);
    for (const Binding* binding : stores.globals) look(binding->value);
  }
  empty_set(seen_);
  top().begun = true;
}

void KeptMemory::keep_of_tangent(const Stores& stores, const Value* arguments, std::size_t count, std::size_t fixed) {
  const Restored restored(keeps_of_tangent_, true);
  keep(stores, arguments, count, fixed);
}

bool KeptMemory::keep_before(const Stores& stores, const Value* arguments, std::size_t count, std::size_t fixed,
                             std::int64_t active, Value& copies) {
  const SharedAccess access(ctx_);
  diff::TangentTypes& tangents = diff::tangent_types(runtime_);
  const Value streams = library_value(runtime_, KnownName::io_type);
  const auto is_stream = [&](const Type* type) {
    return streams.defined() && is_subtype(runtime_.types, type, streams.as_type);
  };
  copies = runtime_.nothing();
  const Look looked(*this);
  for (Binding* binding : stores.assigned) keep_global(binding);
  const auto look = [&](Value root, bool is_active) {
    reach(root, [&](Object* object, bool) {
      const DataType* type = object->type;
      const bool is_mutable = type->is_mutable || type->object_kind != DataType::ObjectKind::fields;
      if (is_mutable && stores.may_hit(type) && !(is_active && tangents.differentiable(type)) && !is_stream(type) &&
          !is_random_generator(runtime_, type))
        keep_object(object);
    });
  };
  const auto is_active = [&](std::size_t i) { return i < 62 && (active >> i & 1) != 0; };
  // What both kinds of arguments lead to is kept, so those come first of which all is.
  for (const bool are_active : {false, true}) {
    for (std::size_t i = 0; i < count; ++i)
      if (is_active(i) == are_active && (stores.arguments & diff::parameter_mask(std::min(i, fixed))))
        look(arguments[i], are_active);
    if (are_active || !(stores.arguments & diff::global_memory)) continue;
    for (Value v : stores.constants) look(v, false);
    for (const Binding* binding : stores.globals) look(binding->value, false);
  }
  empty_set(seen_);
  return copy_entries(looked.level, Copies::all, true, copies);
}

bool KeptMemory::keep_tangents_before(const Value* tangents, std::size_t count, std::int64_t active, Value& copies) {
  const SharedAccess access(ctx_);
  copies = runtime_.nothing();
  const Look looked(*this);
  for (std::size_t i = 0; i < count; ++i) {
    if (i < 62 && (active >> i & 1)) continue;
    reach(tangents[i], [&](Object* object, bool) {
      if (object->type->is_mutable || object->type->object_kind != DataType::ObjectKind::fields) keep_object(object);
    });
  }
  empty_set(seen_);
  return copy_entries(looked.level, Copies::all, true, copies);
}

bool KeptMemory::restore(const Entry& entry, const char* content) {
  switch (entry.kind) {
    case Entry::Kind::fields:
      std::memcpy(static_cast<Object*>(entry.what)->payload(), content, entry.bytes);
      ctx_.heap->rewrote(static_cast<Object*>(entry.what));
      return true;
    case Entry::Kind::cell:
      std::memcpy(static_cast<void*>(&static_cast<CellObject*>(entry.what)->value), content, sizeof(Value));
      ctx_.heap->rewrote(static_cast<Object*>(entry.what));
      return true;
    case Entry::Kind::global: {
      auto* binding = static_cast<Binding*>(entry.what);
      const bool is_watched = binding->version != 0 && !is_unchanged(entry);
      std::memcpy(static_cast<void*>(&binding->value), content, sizeof(Value));
      if (is_watched) runtime_.binding_changed(binding);  // what was made of the value that it had meanwhile ends
      return true;
    }
    case Entry::Kind::array:
      break;
  }
  if (!make_room(entry)) return false;
  auto* array = static_cast<ArrayObject*>(entry.what);
  if (entry.bytes) std::memcpy(array->data, content, entry.bytes);
  ctx_.heap->rewrote(array);
  return true;
}

bool KeptMemory::put_back(std::int64_t level) { return put_back(level, false); }

// Watches that an exception has ended before anything within them was to be put back: they leave memory as it is.
std::size_t KeptMemory::first_not_watching(std::int64_t level) const {
  auto depth = static_cast<std::size_t>(level);
  while (depth <= depth_ && levels_[depth - 1].watches) ++depth;
  return depth;
}

bool KeptMemory::put_back(std::int64_t level, bool also_left) {
  if (level < 1 || static_cast<std::size_t>(level) > depth_) return true;  // ended before, with one around it
  const std::size_t depth = first_not_watching(level);
  bool ok = true;
  for (std::size_t i = entries_.size(); depth <= depth_ && i-- > levels_[depth - 1].entries;) {
    const Entry& entry = entries_[i];
    if (depth == depth_ && leaves(top(), entry) && !also_left) continue;
    ok &= restore(entry, (entry.has_references ? references_ : bits_).data() + entry.offset);
  }
  cut_to(static_cast<std::size_t>(level) - 1);
  return ok;
}

bool KeptMemory::changed_numbers(std::int64_t level) {
  if (level < 1) return false;
  const std::size_t depth = first_not_watching(level);
  if (depth > depth_) return false;
  diff::TangentTypes& tangents = diff::tangent_types(runtime_);
  return std::any_of(entries_.begin() + static_cast<std::ptrdiff_t>(levels_[depth - 1].entries), entries_.end(),
                     [&](const Entry& entry) {
                       if (entry.bytes == 0 && is_unchanged(entry)) return false;
                       return entry.kind == Entry::Kind::global ||
                              tangents.differentiable(static_cast<Object*>(entry.what)->type);
                     });
}

bool KeptMemory::put_back_on_exception(std::int64_t level) {
  if (changed_numbers(level)) lost_ = level;
  return put_back(level);
}

const char* KeptMemory::present_content(const Entry& entry) {
  switch (entry.kind) {
    case Entry::Kind::fields:
      return static_cast<Object*>(entry.what)->payload();
    case Entry::Kind::cell:
      return reinterpret_cast<const char*>(&static_cast<CellObject*>(entry.what)->value);
    case Entry::Kind::global:
      return reinterpret_cast<const char*>(&static_cast<Binding*>(entry.what)->value);
    case Entry::Kind::array:
      break;
  }
  return static_cast<const ArrayObject*>(entry.what)->data;
}

bool KeptMemory::is_unchanged(const Entry& entry) const {
  const char* content = (entry.has_references ? references_ : bits_).data() + entry.offset;
  if (entry.kind == Entry::Kind::array && static_cast<const ArrayObject*>(entry.what)->length != entry.length)
    return false;
  return !entry.bytes || std::memcmp(present_content(entry), content, entry.bytes) == 0;
}

std::unordered_set<const Object*> KeptMemory::reached_from(Value root) {
  walk(Stores{}, root);
  std::unordered_set<const Object*> reached = std::move(seen_);
  seen_.clear();
  if (is_reference(root)) reached.insert(root.object);
  return reached;
}

bool KeptMemory::take_away(std::int64_t level, Value value, Value arguments, bool also_left, Value& result) {
  result = runtime_.nothing();
  const auto depth = static_cast<std::size_t>(level);
  if (level < 1 || depth > depth_) return true;
  const std::size_t first = levels_[depth - 1].entries;
  const auto is_later = [](const Entry& entry) { return entry.later; };
  if (is_reference(value) &&
      std::any_of(entries_.begin() + static_cast<std::ptrdiff_t>(first), entries_.end(), is_later)) {
    const auto given = reached_from(value);
    const auto before = reached_from(arguments);
    const auto from = entries_.begin() + static_cast<std::ptrdiff_t>(first);
    entries_.erase(std::remove_if(from, entries_.end(),
                                  [&](const Entry& entry) {
                                    const auto* object = static_cast<const Object*>(entry.what);
                                    return entry.later && given.contains(object) && !before.contains(object);
                                  }),
                   entries_.end());
  }
  if (!copy_entries(depth, Copies::before, also_left, result)) return false;
  cut_to(depth - 1);
  return true;
}

bool KeptMemory::exchange(std::int64_t level, Value& result) {
  result = runtime_.nothing();
  const auto depth = static_cast<std::size_t>(level);
  if (level < 1 || depth > depth_) return true;
  // What the level around it gets is put back here too: the reverse sweep finds in `result` what was there.
  return copy_entries(depth, Copies::present, false, result) && put_back(level, true);
}

bool KeptMemory::before_call(Specialization& target, Value callee, const Value* args, std::size_t count) {
  if (!is_open()) return true;
  CodeInstance* current = target.current;
  if (current && current->valid_in(ctx_.world) && !(current->effects & effect_writes)) return true;
  // What reverse mode, or what stands for it, writes of what it is given are accumulators.
  if (diff::is_written_out(callee, runtime_)) return true;
  if (compiler_of(ctx_).synthetic_of(callee) &&
      !(keeps_tangents() && derivatives_of(ctx_).cache.is_forward_mode(target)))
    return true;
  const SharedAccess access(ctx_);
  CallWatch* watch = std::exchange(ctx_.calls, nullptr);
  const Stores& stores = derivatives_of(ctx_).stores.of(ctx_, target);
  ctx_.calls = watch;
  if (ctx_.failed()) return false;
  if (!stores.any()) return true;
  Rooted arguments(*ctx_.heap);
  arguments.values.push_back(callee);
  arguments.values.insert(arguments.values.end(), args, args + count);
  const Method& method = *target.method;
  const std::size_t fixed = method.is_vararg ? method.arg_count : count + 1;
  if (compiler_of(ctx_).synthetic_of(callee))
    keep_of_tangent(stores, arguments.values.data(), count + 1, fixed);
  else
    keep(stores, arguments.values.data(), count + 1, fixed);
  return true;
}

void KeptMemory::abandon() {
  if (depth_) put_back(1);
}

KeptMemory& kept_memory_of(Context& ctx) {
  if (!ctx.kept_memory) ctx.kept_memory = std::make_shared<KeptMemory>(ctx);
  return static_cast<KeptMemory&>(*ctx.kept_memory);
}

}  // namespace slope::derive
