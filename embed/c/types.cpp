// The C interface: types of the host, and memory given away.
#include "embed/c/c_api.hpp"
#include "slope/type.hpp"

namespace slope::api::c {

namespace {

using detail::Kind;

// A signature of a method, property or constructor.
bool parse(slope_type* type, const char* text, Signature& made, slope_error** error) {
  std::string why;
  return parse_signature(text, type->engine, made, why) || refuse(error, why);
}

// The type's properties are known again after each definition.
int settle(slope_type* type, const Definition& made, slope_error** error) {
  if (!made.ok()) return answer(made, error);
  return answer(detail::finish_type(type->engine->engine, &type->key), error);
}

}  // namespace

}  // namespace slope::api::c

using namespace slope::api::c;
namespace detail = slope::api::detail;
using detail::Kind;
using slope::api::Result;

extern "C" {

slope_type* slope_type_new(slope_engine* engine, const char* name, const slope_field* fields, size_t count,
                           void (*destroy)(void* object), slope_error** error) {
  return guarded(error, [&]() -> slope_type* {
    if (!all_given(error, {{"engine", engine}, {"name", name}})) return nullptr;
    if (!destroy) {
      refuse(error, "a type of the host needs a function that ends its objects");
      return nullptr;
    }
    auto made = std::make_unique<slope_type>();
    made->engine = engine;
    made->name = name;
    detail::TypeDescription description;
    description.name = name;
    description.key = &made->key;
    description.destroy = destroy;
    if (count != 0 && !all_given(error, {{"list of fields", fields}})) return nullptr;
    for (std::size_t i = 0; i < count; ++i) {
      if (!all_given(error, {{"name of a field", fields[i].name}})) return nullptr;
      description.fields.push_back({fields[i].name, fields[i].count, [offset = fields[i].offset](void* object) {
                                      return reinterpret_cast<double*>(static_cast<char*>(object) + offset);
                                    }});
    }
    if (!answer(detail::define_type(engine->engine, std::move(description)), error)) return nullptr;
    // From here on the engine knows its key.
    slope_type* type = ((*engine->types)[name] = std::move(made)).get();
    return answer(detail::finish_type(engine->engine, &type->key), error) ? type : nullptr;
  });
}

int slope_type_method(slope_type* type, const char* name, const char* signature, slope_host_function function,
                      void* data, void (*free_data)(void*), slope_error** error) {
  return guarded(error, [&]() -> int {
    if (!all_given(error, {{"type", type},
                           {"name", name},
                           {"signature", signature},
                           {"function", reinterpret_cast<const void*>(function)}}))
      return 0;
    Signature wanted;
    if (!parse(type, signature, wanted, error)) return 0;
    return settle(type,
                  detail::define_method(type->engine->engine, &type->key, name,
                                        host_function(function, data, free_data, std::move(wanted))),
                  error);
  });
}

int slope_type_property(slope_type* type, const char* name, const char* kind, slope_host_function getter,
                        slope_host_function setter, void* data, void (*free_data)(void*), slope_error** error) {
  return guarded(error, [&]() -> int {
    if (!all_given(error,
                   {{"type", type}, {"name", name}, {"kind", kind}, {"getter", reinterpret_cast<const void*>(getter)}}))
      return 0;
    Signature get, set;
    if (!parse(type, (kind + ("(" + type->name + ")")).c_str(), get, error) ||
        (setter && !parse(type, ("nothing(" + type->name + ", " + kind + ")").c_str(), set, error)))
      return 0;
    std::unique_ptr<detail::HostFunction> setting;
    if (setter) setting = host_function(setter, data, nullptr, std::move(set));
    return settle(type,
                  detail::define_property(type->engine->engine, &type->key, name,
                                          host_function(getter, data, free_data, std::move(get)), std::move(setting)),
                  error);
  });
}

slope_value* slope_object_new(slope_type* type, void* object, slope_error** error) {
  return guarded(error, [&]() -> slope_value* {
    if (!all_given(error, {{"type", type}})) return nullptr;
    if (!object) {
      refuse(error, "an object of the type `" + type->name + "` is NULL");
      return nullptr;
    }
    struct Wrapped {
      void* object;
      const detail::TypeKey* key;
    } wrapped{object, &type->key};
    detail::Datum datum;
    datum.kind = Kind::composite;
    datum.data = &wrapped;
    datum.build = [](detail::Builder& builder, const void* given) {
      const auto& it = *static_cast<const Wrapped*>(given);
      return builder.object(it.object, it.key, [](const void* same) { return const_cast<void*>(same); });
    };
    return handle(detail::Access::value(type->engine->engine, datum), error);
  });
}

void* slope_value_object(slope_value* value, const slope_type* type, slope_error** error) {
  return guarded(error, [&]() -> void* {
    if (!all_given(error, {{"value", value}, {"type", type}})) return nullptr;
    slope::api::Error why;
    void* object = detail::object_of(value->value, &type->key, why);
    if (!object) give(error, std::move(why));
    return object;
  });
}

slope_value* slope_adopt(slope_engine* engine, const slope_view* array, void (*release)(void* data, double* memory),
                         void* data, slope_error** error) {
  return guarded(error, [&]() -> slope_value* {
    if (!all_given(error, {{"engine", engine}, {"array", array}})) return nullptr;
    slope_argument argument{};
    argument.kind = SLOPE_ARRAY;
    argument.as.view = array;
    detail::Datum datum;
    std::string why;
    if (!to_datum(argument, datum, why)) {
      refuse(error, why);
      return nullptr;
    }
    return handle(detail::Access::adopt(engine->engine, datum,
                                        [release, data](double* memory) {
                                          if (release) release(data, memory);
                                        }),
                  error);
  });
}

}  // extern "C"
