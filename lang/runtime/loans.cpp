#include "lang/runtime/loans.hpp"

#include <algorithm>

#include "lang/runtime/runtime.hpp"
#include "lang/support/tuning.hpp"

namespace slope {

namespace {

// Looking at all that the engine reaches takes a millisecond or so: a call that stores lent arrays in ever new objects
// gets so many looks on the way, and one at its end.
constexpr int most_looks = tuning::loan_looks;
constexpr std::size_t most_sites = tuning::loan_sites;  // stores remembered of one array
constexpr std::size_t most_parts = tuning::loan_parts;  // of an immutable value, looked through for arrays

bool is_array(const Object* object) { return object->type->object_kind == DataType::ObjectKind::array; }

bool is_reference(Value v) {
  if (!v.type || !v.pointer) return false;
  const DataType* type = as_data(v.type);
  return (type->storage == Storage::reference || type->storage == Storage::aggregate) &&
         type->object_kind != DataType::ObjectKind::immortal;
}

template <class Visit>
void visit_fields(TypeTable& types, Object* object, Visit visit) {
  const TraceMap& map = types.trace_map(object->type);
  for (std::uint32_t offset : map.references)
    if (Object* part = *reinterpret_cast<Object**>(object->payload() + offset)) visit(part);
  for (std::uint32_t offset : map.values)
    if (Value part = *reinterpret_cast<Value*>(object->payload() + offset); is_reference(part)) visit(part.object);
}

// The lent arrays that a value is or, being immutable, consists of: a view of one, a tuple, a closure that captured it.
std::vector<const Object*> lent_in(TypeTable& types, Value v) {
  std::vector<const Object*> found;
  if (!is_reference(v)) return found;
  std::vector<Object*> pending{v.object};
  std::unordered_set<const Object*> seen;
  while (!pending.empty() && seen.size() < most_parts) {
    Object* object = pending.back();
    pending.pop_back();
    if (is_array(object)) {
      if (static_cast<ArrayObject*>(object)->flags & array_borrowed) found.push_back(object);
      continue;
    }
    if (object->type->is_mutable || object->type->object_kind != DataType::ObjectKind::fields) continue;
    if (!seen.insert(object).second) continue;
    visit_fields(types, object, [&](Object* part) { pending.push_back(part); });
  }
  return found;
}

// Walks over all that precise roots reach. The native stack, registers and tapes do not count: what only they reach
// ends with the call.
class Walk final : public Tracer {
 public:
  Walk(TypeTable& types, const std::unordered_set<const Object*>& wanted) : types_(types), wanted_(wanted) {}
  void value(Value v) override {
    if (is_reference(v)) object(v.object);
  }
  void object(Object* object) override {
    if (!object || found || !seen_.insert(object).second) return;
    if (wanted_.count(object)) found = object;
    pending_.push_back(object);
  }
  void conservative(const void*, const void*) override {}

  void go() {
    while (!pending_.empty() && !found) {
      Object* object = pending_.back();
      pending_.pop_back();
      switch (object->type->object_kind) {
        case DataType::ObjectKind::fields:
          visit_fields(types_, object, [this](Object* part) { this->object(part); });
          break;
        case DataType::ObjectKind::array:
          go_through(static_cast<ArrayObject*>(object));
          break;
        case DataType::ObjectKind::cell:
          value(static_cast<CellObject*>(object)->value);
          break;
        case DataType::ObjectKind::coroutine:
          value(static_cast<CoroutineObject*>(object)->task);
          value(static_cast<CoroutineObject*>(object)->entry);
          break;
        default:
          break;
      }
    }
  }

  const Object* found = nullptr;

 private:
  void go_through(const ArrayObject* array) {
    if (!(array->flags & array_borrowed)) object(owner_of(array));  // of those it is the next in their ring
    if (!(array->flags & array_owns_memory)) return;
    const Type* element = array_element_type(array);
    const Storage storage = storage_of(element);
    if (storage == Storage::dynamic) {
      const auto* values = reinterpret_cast<const Value*>(array->data);
      for (std::int64_t i = 0; i < array->length; ++i) value(values[i]);
    } else if (storage == Storage::reference && as_data(element)->object_kind != DataType::ObjectKind::immortal) {
      auto* objects = reinterpret_cast<Object* const*>(array->data);
      for (std::int64_t i = 0; i < array->length; ++i) object(objects[i]);
    }
  }

  TypeTable& types_;
  const std::unordered_set<const Object*>& wanted_;
  std::unordered_set<const Object*> seen_;
  std::vector<Object*> pending_;
};

}  // namespace

LoanWatch::LoanWatch(Context& ctx) : ctx_(ctx), outer_(ctx.loans), first_root_(ctx.heap->next_root()) {
  ctx.loans = this;
}

LoanWatch::~LoanWatch() { ctx_.loans = outer_; }

const Object* LoanWatch::reached(const Arrays& wanted) const {
  Walk walk(ctx_.runtime->types, wanted);
  ctx_.heap->trace_roots(walk, first_root_);
  walk.go();
  return walk.found;
}

bool LoanWatch::refuse(const std::string& place) {
  return ctx_.argument_error("an array that the host lent for this call cannot be kept: " + place +
                             " outlives the call; store a copy, `copy(…)`");
}

bool LoanWatch::may_store_in_global(Value v, const std::string& name) {
  return lent_in(ctx_.runtime->types, v).empty() || refuse("the global `" + name + "`");
}

bool LoanWatch::may_store(Value v, const Object* into, const std::vector<TraceEntry>& where) {
  if (lent_in(ctx_.runtime->types, v).empty()) return true;
  if (looks_ < most_looks && made_inside_.insert(into).second) {
    ++looks_;
    if (reached({into})) return refuse("this " + to_string(into->type));
  }
  note(v, where);
  return true;
}

void LoanWatch::note(Value v, const std::vector<TraceEntry>& where) {
  for (const Object* array : lent_in(ctx_.runtime->types, v)) {
    std::vector<std::vector<TraceEntry>>& sites = stores_[array];
    const bool known = std::any_of(sites.begin(), sites.end(), [&](const std::vector<TraceEntry>& site) {
      return site.empty() ? where.empty()
                          : !where.empty() && site.front().span.file == where.front().span.file &&
                                site.front().span.begin == where.front().span.begin;
    });
    if (!known && sites.size() < most_sites) sites.push_back(where);
  }
}

LoanWatch::Kept LoanWatch::kept(Value result) const {
  if (const std::vector<const Object*> given = lent_in(ctx_.runtime->types, result); !given.empty())
    return {static_cast<const ArrayObject*>(given.front()), {}};
  if (stores_.empty()) return {};
  Arrays stored;
  for (const auto& [array, sites] : stores_) stored.insert(array);
  // What the call gives back is reached by its caller.
  Walk walk(ctx_.runtime->types, stored);
  walk.value(result);
  walk.go();
  const Object* found = walk.found ? walk.found : reached(stored);
  if (!found) return {};
  return {static_cast<const ArrayObject*>(found), stores_.at(found)};
}

}  // namespace slope
