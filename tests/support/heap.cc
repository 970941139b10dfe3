#include "support/heap.h"

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace heed::testing_support {

namespace {

// Constant-initialised, so that allocations are counted before any constructor runs.
std::atomic<std::int64_t> live_bytes = 0;
std::atomic<std::int64_t> peak_bytes = 0;
constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();
std::atomic<std::size_t> largest_allocation = kUnlimited;
// The number of allocations before the one that fails; negative: none fails.
constexpr std::int64_t kNone = -1;
std::atomic<std::int64_t> until_fault = kNone;

bool is_faulty() noexcept {
  return until_fault.load(std::memory_order_relaxed) > kNone &&
         until_fault.fetch_sub(1, std::memory_order_relaxed) == 0;
}

void count_allocated(void* memory) noexcept {
  const auto bytes = static_cast<std::int64_t>(::malloc_usable_size(memory));
  const std::int64_t live = live_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::int64_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (live > peak && !peak_bytes.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (bytes > largest_allocation.load(std::memory_order_relaxed) || is_faulty()) return nullptr;
  void* memory = nullptr;
  if (alignment <= alignof(std::max_align_t)) {
    memory = std::malloc(bytes == 0 ? 1 : bytes);
  } else if (::posix_memalign(&memory, alignment, bytes) != 0) {
    memory = nullptr;
  }
  if (memory != nullptr) count_allocated(memory);
  return memory;
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  while (true) {
    if (void* memory = allocate(bytes, alignment)) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void release(void* memory) noexcept {
  if (memory == nullptr) return;
  live_bytes.fetch_sub(static_cast<std::int64_t>(::malloc_usable_size(memory)),
                       std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

std::int64_t live_heap_bytes() noexcept { return live_bytes.load(std::memory_order_relaxed); }
std::int64_t peak_heap_bytes() noexcept { return peak_bytes.load(std::memory_order_relaxed); }
void reset_heap_peak() noexcept { peak_bytes.store(live_heap_bytes(), std::memory_order_relaxed); }

AllocationLimit::AllocationLimit(std::int64_t bytes) noexcept {
  largest_allocation = static_cast<std::size_t>(bytes);
}
AllocationLimit::~AllocationLimit() { largest_allocation = kUnlimited; }

AllocationFault::AllocationFault(std::int64_t index) noexcept { until_fault = index; }
AllocationFault::~AllocationFault() { until_fault = kNone; }
bool AllocationFault::has_happened() const noexcept { return until_fault <= kNone; }

}  // namespace heed::testing_support

// All forms are replaced, so that a sanitizer's form is never paired with one of these.
using heed::testing_support::allocate;
using heed::testing_support::allocate_or_throw;
using heed::testing_support::release;
constexpr std::size_t kPlain = 1;
constexpr std::size_t to_bytes(std::align_val_t alignment) {
  return static_cast<std::size_t>(alignment);
}

void* operator new(std::size_t n) { return allocate_or_throw(n, kPlain); }
void* operator new[](std::size_t n) { return allocate_or_throw(n, kPlain); }
void* operator new(std::size_t n, std::align_val_t a) { return allocate_or_throw(n, to_bytes(a)); }
void* operator new[](std::size_t n, std::align_val_t a) {
  return allocate_or_throw(n, to_bytes(a));
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, kPlain); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, kPlain); }
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, to_bytes(a));
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, to_bytes(a));
}

void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { release(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { release(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { release(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { release(p); }
