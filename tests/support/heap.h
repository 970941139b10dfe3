// Counts the bytes on the C++ heap by replacing operator new and delete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "heed/core/memory.h"

namespace heed::testing_support {

// The bytes allocated now, and the maximum since reset_heap_peak().
std::int64_t live_heap_bytes() noexcept;
std::int64_t peak_heap_bytes() noexcept;
void reset_heap_peak() noexcept;

// While an object exists, the library caches no freed memory, so that every allocation is counted.
class NothingKept {
 public:
  NothingKept() noexcept { set_max_kept_memory(0); }
  NothingKept(const NothingKept&) = delete;
  NothingKept& operator=(const NothingKept&) = delete;
  ~NothingKept() { set_max_kept_memory(limit_); }

 private:
  std::size_t limit_ = max_kept_memory();
};

// While an object exists, an allocation of more than `bytes` fails.
class AllocationLimit {
 public:
  explicit AllocationLimit(std::int64_t bytes) noexcept;
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;
  ~AllocationLimit();

 private:
  NothingKept nothing_kept_;
};

// While an object exists, the allocation after `index` others fails, in any thread; later ones
// succeed.
class AllocationFault {
 public:
  explicit AllocationFault(std::int64_t index) noexcept;
  AllocationFault(const AllocationFault&) = delete;
  AllocationFault& operator=(const AllocationFault&) = delete;
  ~AllocationFault();
  bool has_happened() const noexcept;

 private:
  NothingKept nothing_kept_;
};

// Returns the peak of bytes that `call` allocated beyond its result, or beyond what it keeps.
// Memory that does not come from operator new, for example that of BLAS, is not counted.
template <class Call>
std::int64_t measure_extra_bytes(const Call& call) {
  const NothingKept nothing_kept;
  reset_heap_peak();
  if constexpr (std::is_void_v<std::invoke_result_t<const Call&>>) {
    call();
    return peak_heap_bytes() - live_heap_bytes();
  } else {
    [[maybe_unused]] const auto result = call();
    return peak_heap_bytes() - live_heap_bytes();
  }
}

}  // namespace heed::testing_support
