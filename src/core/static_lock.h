// A lock for objects that exist before all others are made and after they are destroyed.
#pragma once

#include <mutex>

namespace heed { inline namespace v0 {

// Initialised before the program starts and never destroyed, which std::mutex is not on Windows.
#if defined(_WIN32)
class StaticLock {
 public:
  void lock() noexcept;
  void unlock() noexcept;

 private:
  void* state_ = nullptr;  // an SRWLOCK; see platform_windows.cc
};
#else
using StaticLock = std::mutex;
#endif

}}  // namespace heed::v0
