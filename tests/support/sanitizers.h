// The sanitizers that the tests are compiled with, as GCC and Clang say.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define HEED_HAS_ADDRESS_SANITIZER
#endif
#if defined(__SANITIZE_THREAD__)
#define HEED_HAS_THREAD_SANITIZER
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEED_HAS_ADDRESS_SANITIZER
#endif
#if __has_feature(thread_sanitizer)
#define HEED_HAS_THREAD_SANITIZER
#endif
#endif
