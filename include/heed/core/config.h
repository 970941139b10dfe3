/// Macros and version every public header stands on.
#pragma once

#include <version>

// What changes how the containers of the standard library lie in memory. It is part of the symbol
// of whatever the library exports, so that a program whose containers are others than the library's
// does not link, and the linker's message says why:
// `heed::v0::attention[abi:built_with_GLIBCXX_DEBUG]`.
#if defined(_LIBCPP_VERSION)
#define HEED_CONTAINERS abi_tag("built_with_libcxx")
#elif defined(_GLIBCXX_DEBUG)
#define HEED_CONTAINERS abi_tag("built_with_GLIBCXX_DEBUG")
#elif defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
#define HEED_CONTAINERS abi_tag("built_with_GLIBCXX_USE_CXX11_ABI_0")
#else
#define HEED_CONTAINERS
#endif

/// Marks what the library exports; everything else is hidden.
#define HEED_API __attribute__((visibility("default"), HEED_CONTAINERS))

/// Says that what a function returns refers to the object it was called on: Clang then warns where
/// that object ends before the result does (-Wdangling).
#if defined(__clang__)
#define HEED_LIFETIME_BOUND [[clang::lifetimebound]]
#else
#define HEED_LIFETIME_BOUND
#endif

/// Deletes a function and says why, and what to write instead. Compilers show the line where a
/// deleted function is declared; those that know reasons, as of C++26, say it themselves.
#if __cplusplus > 202302L && defined(__cpp_deleted_function)
#define HEED_DELETED(reason) = delete (reason)
#else
#define HEED_DELETED(reason) = delete
#endif

// The public names live in heed::v0, inline: the ABI version is part of every symbol and of no line
// of user code.
namespace heed { inline namespace v0 {

namespace detail {

// False, when a template is compiled for these types: what a function that must not be called says
// is `static_assert(kNever<T>, "what to write instead")`.
template <class...>
inline constexpr bool kNever = false;

}  // namespace detail

/// The library's version, e.g. "0.1.0".
HEED_API const char* version() noexcept;

}}  // namespace heed::v0
