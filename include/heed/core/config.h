/// Macros and version for every public header.
#pragma once

#include <version>

// The settings that change the memory layout of the standard library's containers. They are part of
// every exported symbol, so that a program with other settings does not link, and the linker's
// message shows why:
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

/// Marks exported symbols; all others are hidden.
#define HEED_API __attribute__((visibility("default"), HEED_CONTAINERS))

/// Declares that the result of a member function refers to its object: Clang warns where the object
/// ends before the result does (-Wdangling).
#if defined(__clang__)
#define HEED_LIFETIME_BOUND [[clang::lifetimebound]]
#else
#define HEED_LIFETIME_BOUND
#endif

/// Deletes a function with a reason that names the replacement. Compilers show the line where a
/// deleted function is declared; from C++26 on they can print the reason.
#if __cplusplus > 202302L && defined(__cpp_deleted_function)
#define HEED_DELETED(reason) = delete (reason)
#else
#define HEED_DELETED(reason) = delete
#endif

// All public names are in the inline namespace heed::v0: the ABI version is part of every symbol,
// and users do not write it.
namespace heed { inline namespace v0 {

namespace detail {

// False, but only when a template is instantiated: a function that must not be called contains
// `static_assert(kNever<T>, "what to write instead")`.
template <class...>
inline constexpr bool kNever = false;

}  // namespace detail

/// The library's version, e.g. "0.1.0".
HEED_API const char* version() noexcept;

}}  // namespace heed::v0
