// Types of the host as types of scripts: the objects are C++ objects, scripts hold them, and methods are C++ functions.
//
//   SLOPE_TYPE(Particle)                             // at global scope, before its first use
//
//   engine.type<Particle>("Particle")
//       .field("x", &Particle::x)                    // a double: p.x, p.x = 1; derivatives flow through it
//       .constructor<double, double>()               // Particle(1, 2)
//       .method("energy", &Particle::energy)         // energy(p): a method for dispatch and inference
//       .property("speed", &Particle::speed)         // p.speed
//       .method("+", [](const Particle& a, const Particle& b) { … })
//       .value();
//
// Any other host function may take such objects, by value or by reference, and return them. Assignment, return and
// evaluation copy the object. With `T*` instead of `T` the host gets the object itself; the pointer is valid as long as
// a script or a Value holds the object. The engine destroys an object some time after the last script value that holds
// it is gone, at the latest when the engine is destroyed.
#pragma once

#include <array>
#include <functional>

#include "slope/engine.hpp"

namespace slope::api {

namespace detail {

// What the engine must know of a type: how to destroy its objects, and where in them the numbers with derivatives are.
struct TypeDescription {
  std::string name;
  const TypeKey* key = nullptr;
  void (*destroy)(void* object) = nullptr;
  struct NumberField {
    std::string name;
    std::size_t count;  // 0: one number; otherwise the length of an array
    std::function<double*(void* object)> at;
  };
  std::vector<NumberField> fields;
};

Result<void> define_type(Engine& engine, TypeDescription description);
Result<void> finish_type(Engine& engine, const TypeKey* type);  // makes the properties known
Definition define_method(Engine& engine, const TypeKey* type, std::string_view name,
                         std::unique_ptr<HostFunction> function);
Definition define_property(Engine& engine, const TypeKey* type, std::string_view name,
                           std::unique_ptr<HostFunction> getter, std::unique_ptr<HostFunction> setter);
// The object that a value holds; null with the error.
void* object_of(const Value& value, const TypeKey* key, Error& error);

template <class T>
struct Crossing<T, std::enable_if_t<is_host_type<T>>> : Composite<T> {
  static bool build(Builder& builder, const T& value) {
    return builder.object(&value, &type_key<T>,
                          [](const void* object) -> void* { return new T(*static_cast<const T*>(object)); });
  }
  static Result<T> from(const Value& value) {
    Error error;
    if (const void* object = object_of(value, &type_key<T>, error)) return *static_cast<const T*>(object);
    return error;
  }
};
template <class T>
struct Crossing<T*, std::enable_if_t<is_host_type<T>>> {
  static constexpr Kind kind = Kind::composite;
  static Result<T*> from(const Value& value) {
    Error error;
    if (void* object = object_of(value, &type_key<T>, error)) return static_cast<T*>(object);
    return error;
  }
};

// A member function as one of the object and its arguments.
template <class T, class M>
struct MemberFunction;
#define SLOPE_MEMBER_FUNCTION(qualifiers, Self)                                                    \
  template <class T, class C, class R, class... A>                                                 \
  struct MemberFunction<T, R (C::*)(A...) qualifiers> {                                            \
    static auto make(R (C::*member)(A...) qualifiers) {                                            \
      return [member](Self self, A... arguments) -> std::remove_cv_t<std::remove_reference_t<R>> { \
        return (self.*member)(std::forward<A>(arguments)...);                                      \
      };                                                                                           \
    }                                                                                              \
  };
SLOPE_MEMBER_FUNCTION(, T&)
SLOPE_MEMBER_FUNCTION(const, const T&)
SLOPE_MEMBER_FUNCTION(noexcept, T&)
SLOPE_MEMBER_FUNCTION(const noexcept, const T&)
#undef SLOPE_MEMBER_FUNCTION

template <class T, class F>
auto as_function(F&& f) {
  if constexpr (std::is_member_function_pointer_v<std::decay_t<F>>) {
    return MemberFunction<T, std::decay_t<F>>::make(f);
  } else {
    return std::decay_t<F>(std::forward<F>(f));
  }
}

}  // namespace detail

// The result of Engine::type. Declare fields first: the first declaration of anything else makes the type. Properties
// are made at the end. Use it at once, and call value() or ok() last.
template <class T>
class TypeDefinition {
 public:
  TypeDefinition(Engine& engine, std::string_view name) : engine_(engine) {
    static_assert(detail::is_host_type<T>, "SLOPE_TYPE(T) at global scope says that T is a type of the host");
    description_.name = name;
    description_.key = &detail::type_key<T>;
    description_.destroy = [](void* object) { delete static_cast<T*>(object); };
  }

  // A member that is a double or a std::array<double, N>: a property whose memory is the object's. It has derivatives:
  // gradients with respect to the object have a part of that name.
  TypeDefinition& field(std::string_view name, double T::*member) {
    return add(name, 0, [member](void* object) { return &(static_cast<T*>(object)->*member); });
  }
  template <std::size_t N>
  TypeDefinition& field(std::string_view name, std::array<double, N> T::*member) {
    return add(name, N, [member](void* object) { return (static_cast<T*>(object)->*member).data(); });
  }

  template <class... A>
  TypeDefinition& constructor() {
    return constructor([](A... arguments) { return T(std::forward<A>(arguments)...); });
  }
  // A callable that returns a T or a Result<T>.
  template <class F>
  TypeDefinition& constructor(F&& make) {
    return method(description_.name, std::forward<F>(make));
  }
  // A member function, or a callable of T& or const T& and more. Where the library has a function of that name, or it
  // is an operator, it becomes a method of that.
  template <class F>
  TypeDefinition& method(std::string_view name, F&& function) {
    if (make())
      keep(detail::define_method(engine_, description_.key, name,
                                 detail::make_host_function(detail::as_function<T>(std::forward<F>(function)))));
    return *this;
  }
  // The same, for a method with derivatives: `rule` declares them, as after Engine::define.
  //   .method("potential", &Field::potential, [](slope::Definition& d) { d.derivative(force); })
  template <class F, class Rule>
  TypeDefinition& method(std::string_view name, F&& function, Rule&& rule) {
    if (!make()) return *this;
    Definition made = detail::define_method(
        engine_, description_.key, name, detail::make_host_function(detail::as_function<T>(std::forward<F>(function))));
    if (made.ok()) rule(made);
    keep(made);
    return *this;
  }
  // A member object, or a getter.
  template <class G>
  TypeDefinition& property(std::string_view name, G&& getter) {
    using Getter = std::decay_t<G>;
    if (!make()) return *this;
    if constexpr (std::is_member_object_pointer_v<Getter>) {
      using M = std::remove_reference_t<decltype(std::declval<T&>().*getter)>;
      keep(detail::define_property(
          engine_, description_.key, name,
          detail::make_host_function([getter](const T& self) -> M { return self.*getter; }),
          detail::make_host_function([getter](T& self, M value) { self.*getter = std::move(value); })));
    } else {
      keep(detail::define_property(engine_, description_.key, name,
                                   detail::make_host_function(detail::as_function<T>(getter)), nullptr));
    }
    return *this;
  }
  template <class G, class S>
  TypeDefinition& property(std::string_view name, G&& getter, S&& setter) {
    if (make())
      keep(detail::define_property(engine_, description_.key, name,
                                   detail::make_host_function(detail::as_function<T>(std::forward<G>(getter))),
                                   detail::make_host_function(detail::as_function<T>(std::forward<S>(setter)))));
    return *this;
  }

  TypeDefinition(const TypeDefinition&) = delete;
  ~TypeDefinition() { finish(); }

  bool ok() { return finish(); }
  void value() {
    finish();
    result_.value();
  }
  const Error& error() const { return result_.error(); }

 private:
  TypeDefinition& add(std::string_view name, std::size_t count, std::function<double*(void*)> at) {
    if (made_ && result_.ok()) {
      Error error;
      error.message = error.summary = "field `" + std::string(name) + "` of `" + description_.name +
                                      "`: fields come before constructors, methods and properties";
      result_ = std::move(error);
    }
    description_.fields.push_back({std::string(name), count, std::move(at)});
    return *this;
  }
  bool make() {
    if (!made_) {
      made_ = true;
      result_ = detail::define_type(engine_, description_);
    }
    return result_.ok();
  }
  bool finish() {
    if (make() && !finished_) result_ = detail::finish_type(engine_, description_.key);
    finished_ = true;
    return result_.ok();
  }
  void keep(const Definition& definition) {
    if (result_.ok() && !definition.ok()) result_ = definition.error();
  }

  Engine& engine_;
  detail::TypeDescription description_;
  bool made_ = false;
  bool finished_ = false;
  Result<void> result_;
};

template <class T>
TypeDefinition<T> Engine::type(std::string_view name) {
  return TypeDefinition<T>(*this, name);
}

}  // namespace slope::api

#define SLOPE_TYPE(T)                           \
  namespace slope::api::detail {                \
  template <>                                   \
  inline constexpr bool is_host_type<T> = true; \
  }
