// Threads that wait until a number changes.
#pragma once

#include <atomic>
#include <cstdint>

namespace heed { inline namespace v0 { namespace platform {

// wait_while() returns when `number` has another value. A thread that changes it calls wake_one()
// or wake_all().
#if defined(_WIN32)
// In libstdc++ 12 a thread that is about to wait may miss a change there, and the program's end
// destroys what threads wait for.
void wait_while(const std::atomic<std::uint32_t>& number, std::uint32_t value) noexcept;
void wake_one(std::atomic<std::uint32_t>& number) noexcept;
void wake_all(std::atomic<std::uint32_t>& number) noexcept;
#else
inline void wait_while(const std::atomic<std::uint32_t>& number, std::uint32_t value) noexcept {
  number.wait(value);
}
inline void wake_one(std::atomic<std::uint32_t>& number) noexcept { number.notify_one(); }
inline void wake_all(std::atomic<std::uint32_t>& number) noexcept { number.notify_all(); }
#endif

}}}  // namespace heed::v0::platform
