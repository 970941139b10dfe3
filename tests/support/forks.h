/// Tools for tests that fork processes.
#pragma once

namespace heed::testing_support {

/// Returns why a process forked while threads compute may hang independently of heed, or null.
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
