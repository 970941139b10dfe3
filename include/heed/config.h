/// Macros and version every public header stands on.
#pragma once

/// Marks what the library exports; everything else is hidden.
#define HEED_API __attribute__((visibility("default")))

/// Says that what a function returns refers to the object it was called on: Clang then warns where
/// that object ends before the result does (-Wdangling).
#if defined(__clang__)
#define HEED_LIFETIME_BOUND [[clang::lifetimebound]]
#else
#define HEED_LIFETIME_BOUND
#endif

// The public names live in heed::v0, inline: the ABI version is part of every symbol and of no line
// of user code.
namespace heed::inline v0 {

/// The library's version, e.g. "0.1.0".
HEED_API const char* version() noexcept;

}  // namespace heed::inline v0
