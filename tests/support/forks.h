/// What forked processes need of the tests' own tools.
#pragma once

namespace heed::testing_support {

/// Why a process that was forked while threads computed may hang whatever heed does, or null.
constexpr const char* why_forks_hang() {
#if defined(__SANITIZE_THREAD__)
  return "ThreadSanitizer knows no threads that start in a forked process";
#elif defined(__SANITIZE_ADDRESS__)
  return "AddressSanitizer's allocator may leave a lock of another thread's to a forked process";
#else
  return nullptr;
#endif
}

}  // namespace heed::testing_support
