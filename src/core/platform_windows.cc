// What Windows has: threads and memory. Processes do not fork there, and signals interrupt nothing.
#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
// windows.h must come before other headers of Windows.
#include <io.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <thread>

#include "core/platform.h"
#include "core/static_lock.h"
#include "core/waiting.h"

namespace heed { inline namespace v0 {

static_assert(sizeof(StaticLock) == sizeof(SRWLOCK));

void StaticLock::lock() noexcept { ::AcquireSRWLockExclusive(reinterpret_cast<SRWLOCK*>(&state_)); }
void StaticLock::unlock() noexcept {
  ::ReleaseSRWLockExclusive(reinterpret_cast<SRWLOCK*>(&state_));
}

namespace platform {

namespace {

// Where threads wait for numbers. Several numbers may share one: threads that are woken for another
// wait again. Initialised before the program starts and never destroyed.
struct WaitingPlace {
  SRWLOCK lock = SRWLOCK_INIT;
  CONDITION_VARIABLE changed = CONDITION_VARIABLE_INIT;
};
constinit WaitingPlace waiting_places[16];

WaitingPlace& place_of(const void* number) {
  return waiting_places[reinterpret_cast<std::uintptr_t>(number) / 4 % std::size(waiting_places)];
}

}  // namespace

void wait_while(const std::atomic<std::uint32_t>& number, std::uint32_t value) noexcept {
  WaitingPlace& place = place_of(&number);
  ::AcquireSRWLockExclusive(&place.lock);
  while (number.load() == value) {
    ::SleepConditionVariableSRW(&place.changed, &place.lock, INFINITE, 0);
  }
  ::ReleaseSRWLockExclusive(&place.lock);
}

void wake_all(std::atomic<std::uint32_t>& number) noexcept {
  WaitingPlace& place = place_of(&number);
  // A thread that saw the old value under the lock waits by now.
  ::AcquireSRWLockExclusive(&place.lock);
  ::ReleaseSRWLockExclusive(&place.lock);
  ::WakeAllConditionVariable(&place.changed);
}

// Any thread that was woken may be one that waits for another number.
void wake_one(std::atomic<std::uint32_t>& number) noexcept { wake_all(number); }

int num_processors() {
  DWORD_PTR own = 0;
  DWORD_PTR all = 0;
  // A process with threads in several groups of 64 processors has no mask.
  if (::GetProcessAffinityMask(::GetCurrentProcess(), &own, &all) != 0 && own != 0) {
    return std::popcount(std::uint64_t{own});
  }
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

// The system wakes a thread on its ideal processor, not on that of the thread which wakes it.
int current_processor() { return -1; }
bool get_processors(ThreadHandle, ProcessorSet&) { return false; }
bool set_processors(ThreadHandle, const ProcessorSet&) { return false; }

void with_signals_blocked(FunctionRef<void()> act) { act(); }

bool at_fork(void (*)(), void (*)(), void (*)()) { return false; }

// Large pages need a privilege there and cannot be asked for later.
void advise_huge_pages(void*, std::size_t) noexcept {}

bool has_room(std::size_t bytes) {
  void* const room = ::VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  return room != nullptr && ::VirtualFree(room, 0, MEM_RELEASE) != 0;
}

bool request_amx_tiles() { return false; }
bool is_arm_with_bfloat16() { return false; }

bool is_terminal(int file) { return ::_isatty(file) != 0; }

int terminal_columns(int file) {
  CONSOLE_SCREEN_BUFFER_INFO info{};
  auto* const console = reinterpret_cast<HANDLE>(::_get_osfhandle(file));
  if (::GetConsoleScreenBufferInfo(console, &info) == 0) return 0;
  return info.srWindow.Right - info.srWindow.Left + 1;
}

}
}}  // namespace heed::v0::platform
