#include "embed/engine_state.hpp"

#include <algorithm>
#include <cctype>

namespace slope::api::detail {

namespace {

void destroy(void* object, const HostType& type) {
  try {
    type.destroy(object);
  } catch (...) {  // a destructor that throws has nobody to tell
  }
}

}  // namespace

HostTypes::~HostTypes() { close(); }

void HostTypes::close() {
  if (tracer_ >= 0) engine_.runtime.heap.remove_weak_tracer(tracer_);
  tracer_ = -1;
  destroy_dead();
  std::vector<Place> places = std::move(places_);
  places_.clear();
  free_.clear();
  for (const Place& place : places)
    if (place.object) destroy(place.object, *place.type);
}

void HostTypes::destroy_dead() {
  while (!dead_.empty()) {  // a destructor may use the engine
    const Dead last = dead_.back();
    dead_.pop_back();
    destroy(last.object, *last.type);
  }
}

void HostTypes::forget_dead(const Survivors& survivors) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (!place.object || !(place.holder || place.is_let_go)) continue;
    if (place.holder && survivors.alive(place.holder)) continue;
    // A script may have taken a field's array out of its object: the memory is the object's.
    place.holder = nullptr;
    place.is_let_go = true;
    std::erase_if(place.arrays, [&](ArrayObject* array) { return !survivors.alive(array); });
    if (!place.arrays.empty()) continue;
    dead_.push_back({place.object, place.type});
    place = Place();
    free_.push_back(static_cast<std::int64_t>(i));
  }
}

void* HostTypes::find(std::int64_t place, const TypeKey* key) {
  if (place < 0 || static_cast<std::uint64_t>(place) >= places_.size()) return nullptr;
  const Place& found = places_[static_cast<std::size_t>(place)];
  return found.object && found.type->key == key ? found.object : nullptr;
}

std::int64_t HostTypes::add(void* object, const TypeKey* key) {
  destroy_dead();
  Place place;
  place.object = object;
  place.type = find(key);
  std::int64_t at = static_cast<std::int64_t>(places_.size());
  if (free_.empty()) {
    places_.push_back(std::move(place));
  } else {
    at = free_.back();
    free_.pop_back();
    places_[static_cast<std::size_t>(at)] = std::move(place);
  }
  return at;
}

bool HostTypes::wrap(std::int64_t place, const TypeKey* key, slope::Value& v) {
  Context& ctx = engine_.ctx;
  void* object = find(place, key);
  if (!object || places_[static_cast<std::size_t>(place)].holder || places_[static_cast<std::size_t>(place)].is_let_go)
    return ctx.argument_error("host_wrap takes the place of an object that the host has just made");
  const HostType& type = *places_[static_cast<std::size_t>(place)].type;
  Rooted fields(engine_.runtime.heap);
  fields.values.push_back(engine_.runtime.from_int(place));
  std::vector<ArrayObject*> arrays;
  for (const TypeDescription::NumberField& field : type.fields) {
    const std::int64_t dims[] = {static_cast<std::int64_t>(std::max<std::size_t>(field.count, 1))};
    ArrayObject* array = engine_.runtime.heap.borrow_array(engine_.float_vector, field.at(object), dims);
    if (!array) return ctx.out_of_memory();
    array->flags = array_shared;  // lent for longer than a call
    arrays.push_back(array);
    fields.values.emplace_back(engine_.float_vector, static_cast<const void*>(array));
  }
  if (!engine_.runtime.new_object(ctx, type.type, fields.values.data(), fields.values.size(), v)) return false;
  Place& held = places_[static_cast<std::size_t>(place)];
  held.holder = v.object;
  held.arrays = std::move(arrays);
  return true;
}

HostType* HostTypes::find(const TypeKey* key) const {
  for (const auto& type : types_)
    if (type->key == key) return type.get();
  return nullptr;
}

HostType* HostTypes::find(const Type* type) const {
  for (const auto& known : types_)
    if (known->type == type) return known.get();
  return nullptr;
}

HostType& HostTypes::add(TypeDescription description) {
  if (tracer_ < 0)
    tracer_ = engine_.runtime.heap.add_weak_tracer([this](const Survivors& survivors) { forget_dead(survivors); });
  types_.push_back(std::make_unique<HostType>());
  static_cast<TypeDescription&>(*types_.back()) = std::move(description);
  return *types_.back();
}

namespace {

// host_wrap(T, place): the object of the script's type T.
bool host_wrap(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  EngineState& engine = engine_of(ctx);
  const HostType* type = count == 2 && engine.runtime.is_type_value(args[0]) && args[1].type == engine.types.int64
                             ? engine.host_types.find(args[0].as_type)
                             : nullptr;
  if (!type) return ctx.argument_error("host_wrap takes a type of the host and a place");
  return engine.host_types.wrap(args[1].bits, type->key, result);
}

// Of Type{T}: T.
const Type* wrapped_type(TypeTable&, std::span<const Type* const> args) {
  const DataType* kind = args.empty() ? nullptr : as_data(args[0]);
  return kind && kind->params.size() == 1 ? kind->params[0] : nullptr;
}

const NativeInfo wrap_info{"host_wrap", host_wrap, effect_all, wrapped_type};

Error no_type(std::string message) { return engine_error("type: " + std::move(message)); }

bool is_letter(unsigned char c) { return std::isalnum(c) || c == '_' || c >= 0x80; }

bool is_name(const std::string& name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  const std::size_t end = name.size() > 1 && name.back() == '!' ? name.size() - 1 : name.size();
  return std::all_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(end),
                     [](char c) { return is_letter(static_cast<unsigned char>(c)); });
}

bool is_operator(const std::string& name) {
  constexpr std::string_view all[] = {"+", "-", "*", "/", "^", "%", "\\", "==", "<", "<=", "÷", "∘", "⋅", "×"};
  return std::ranges::find(all, name) != std::end(all);
}

Result<void> run_text(EngineState& engine, std::string text) {
  Result<api::Value> ran = engine.run("<host type>", std::move(text));
  if (ran.ok()) return {};
  return ran.error();
}

Definition refused(std::string message) {
  Definition made;
  Access::fail(made, no_type(std::move(message)));
  return made;
}

}  // namespace

void define_type_natives(EngineState& engine) { engine.runtime.define_native(engine.runtime.core, &wrap_info); }

Result<void> define_type(Engine& owner, TypeDescription description) {
  if (const Error* why = Access::unusable(owner)) return *why;
  EngineState& engine = Access::state(owner);
  const std::string name = description.name;
  if (!is_name(name)) return no_type("expected a name such as `Particle`; found `" + name + "`");
  if (const HostType* known = engine.host_types.find(description.key))
    return no_type("this C++ type is the type `" + known->name + "` of the engine already");
  if (engine.runtime.main->find(engine.runtime.symbol(name)))
    return no_type("`" + name + "` is defined in Main already");
  std::string text = "mutable struct " + name + "\n    __object::Core.Int64\n", shown;
  for (const auto& field : description.fields) {
    if (!is_name(field.name)) return no_type("expected a name for a field; found `" + field.name + "`");
    text += "    " + field.name + "::Core.Array{Core.Float64,1}\n";
  }
  // Nothing has the type that its constructor takes: objects come from the host.
  text += "    " + name + "(::Core.Union{}) = new()\nend\n";
  for (const auto& field : description.fields)
    shown += (shown.empty() ? "\"" : ", \", ") + field.name + " = \", o." + field.name;
  text += "Base.show(io::Base.IO, o::" + name + ") = Base.print(io, \"" + name + "(\", " + shown +
          (shown.empty() ? "" : ", ") + "\")\")\n";
  if (Result<void> ran = run_text(engine, std::move(text)); !ran.ok()) return ran;
  Entry entry(engine);
  HostType& type = engine.host_types.add(std::move(description));
  type.type = as_data(engine.global(name).as_type);
  return {};
}

// Chains of comparisons: with a name that is known, inference and optimisation leave the one that is meant.
Result<void> finish_type(Engine& owner, const TypeKey* key) {
  EngineState& engine = Access::state(owner);
  const HostType& type = *engine.host_types.find(key);
  const std::string o = "(o::" + type.name + ", s::Core.Symbol";
  std::string get = "Base.getproperty" + o + ") = ", set = "Base.setproperty!" + o + ", v) = ", names;
  for (const auto& field : type.fields) {
    const std::string memory = "Core.getfield(o, :" + field.name + ")", is = "s === :" + field.name + " ? ";
    get += is + memory + (field.count == 0 ? "[1] : " : " : ");
    set += is + (field.count == 0 ? "(" + memory + "[1] = v) : " : "Base.copyto!(" + memory + ", v) : ");
    names += ":" + field.name + ", ";
  }
  for (const HostType::Property& property : type.properties) {
    const std::string is = "s === :" + property.name + " ? ", name = "_" + type.name + "_" + property.name;
    get += is + "__get" + name + "(o) : ";
    if (property.can_be_set) set += is + "__set" + name + "!(o, v) : ";
    names += ":" + property.name + ", ";
  }
  const std::string none =
      "Base.throw(Base.ErrorException(Base.string(\"`" + type.name + "` has no property `\", s, \"`";
  return run_text(engine, get + none + "\")))\n" + set + none +
                              " that can be set\")))\nBase.propertynames(o::" + type.name + ") = (" + names + ")\n");
}

Definition define_method(Engine& owner, const TypeKey* key, std::string_view given,
                         std::unique_ptr<HostFunction> function) {
  EngineState& engine = Access::state(owner);
  const HostType& type = *engine.host_types.find(key);
  std::string name(given);
  const Symbol* symbol = engine.runtime.symbol(name);
  if (is_operator(name)) {
    name = "Base.:" + name;
  } else if (!is_name(name)) {
    return refused("a method of `" + type.name + "` needs a name or an operator; found `" + name + "`");
  } else if (name != type.name && !engine.runtime.main->find(symbol) && engine.runtime.base->exports(symbol)) {
    name = "Base." + name;
  }
  const bool constructs = name == type.name;
  if (!constructs && function->object_key(0) != key)
    return refused("a method of `" + type.name + "` takes its object as first argument; `" + name + "` does not");
  if (constructs && function->object_key(function->parameters().size()) != key)
    return refused("a constructor of `" + type.name + "` returns an object of it");
  Definition made;
  Access::define(made, engine, name, std::move(function));
  return made;
}

Definition define_property(Engine& owner, const TypeKey* key, std::string_view given,
                           std::unique_ptr<HostFunction> getter, std::unique_ptr<HostFunction> setter) {
  EngineState& engine = Access::state(owner);
  HostType& type = *engine.host_types.find(key);
  const std::string name(given);
  if (!is_name(name)) return refused("a property of `" + type.name + "` needs a name; found `" + name + "`");
  if (getter->object_key(0) != key || getter->parameters().size() != 1)
    return refused("the getter of the property `" + name + "` takes the object");
  if (setter && (setter->object_key(0) != key || setter->parameters().size() != 2))
    return refused("the setter of the property `" + name + "` takes the object and a value");
  Definition made;
  const bool can_be_set = setter != nullptr;
  const Kind kind = setter ? setter->parameters()[1] : Kind::any;
  const bool is_told = kind != Kind::any && kind != Kind::composite && !(setter && setter->object_key(1));
  Access::define(made, engine, "__get_" + type.name + "_" + name, std::move(getter));
  if (made.ok() && setter) {
    Definition set;
    Access::define(set, engine, "__set_" + type.name + "_" + name + "!", std::move(setter));
    if (!set.ok()) Access::fail(made, set.error());
    if (made.ok() && is_told) {  // what does not fit is told in the host's words, without the setter's own name
      const Result<void> other = run_text(engine, "__set_" + type.name + "_" + name + "!(o::" + type.name +
                                                      ", v) = Base.throw(Base.ArgumentError(Base.string(\"property `" +
                                                      name + "` of `" + type.name + "`: expected " + wanted(kind) +
                                                      ", found a value of type \", Core.typeof(v))))\n");
      if (!other.ok()) Access::fail(made, other.error());
    }
  }
  if (made.ok()) type.properties.push_back({name, can_be_set});
  return made;
}

void* object_of(const api::Value& value, const TypeKey* key, Error& error) {
  const HandleTable* table = Access::table(value);
  if (table && !table->engine()) {
    error = engine_error("a value whose engine is gone");
    return nullptr;
  }
  const RawValue v = Access::raw(value);
  const HostType* wanted = table ? table->engine()->host_types.find(key) : nullptr;
  if (wanted && v.type == wanted->type)
    if (void* object = table->engine()->host_types.find(
            load_field(table->engine()->runtime.heap, v.object, wanted->type->fields[0]).bits, key))
      return object;
  error = not_convertible(value, wanted ? "a `" + wanted->name + "`" : "an object of a type of the host");
  return nullptr;
}

}  // namespace slope::api::detail
