/// FunctionRef: the type of a parameter that accepts any lambda, without a template or a copy.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

template <class Signature>
class FunctionRef;

/// A reference to a callable: two pointers, never an allocation. It does not own the callable and
/// must not outlive it, so use it for parameters only.
template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  /// From anything that can be called with `Args`.
  template <class Callable>
  requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef> &&
           std::is_invocable_r_v<Result, Callable&, Args...>)
      // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
      FunctionRef(Callable&& callable)
      : callable_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* target, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<Callable>*>(target))(
              std::forward<Args>(args)...);
        }) {}

  /// Calls the callable.
  Result operator()(Args... args) const { return call_(callable_, std::forward<Args>(args)...); }

 private:
  void* callable_;
  Result (*call_)(void*, Args...);
};

}}  // namespace heed::v0
