// The bytes on the C++ heap of this program, which replaces operator new and delete to count them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heed/core/memory.h"

namespace heed::cli {

// What is allocated now, and the most that was since reset_heap_peak().
std::int64_t live_heap_bytes() noexcept;
std::int64_t peak_heap_bytes() noexcept;
void reset_heap_peak() noexcept;

// While it lives, the library keeps no memory that was given back: every allocation is seen.
class NothingKept {
 public:
  NothingKept() noexcept { set_max_kept_memory(0); }
  NothingKept(const NothingKept&) = delete;
  NothingKept& operator=(const NothingKept&) = delete;
  ~NothingKept() { set_max_kept_memory(limit_); }

 private:
  std::size_t limit_ = max_kept_memory();
};

// While it lives, an allocation of more than so many bytes fails.
class AllocationLimit {
 public:
  explicit AllocationLimit(std::int64_t bytes) noexcept;
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;
  ~AllocationLimit();

 private:
  NothingKept nothing_kept_;
};

// While it lives, the allocation that comes after `index` others fails, in whatever thread; those
// after it do not.
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

// How many bytes `call` had allocated at most beyond what it returns. Memory that does not come
// from operator new, such as that of BLAS, is not seen.
template <class Call>
std::int64_t measure_extra_bytes(const Call& call) {
  const NothingKept nothing_kept;
  reset_heap_peak();
  [[maybe_unused]] const auto result = call();
  return peak_heap_bytes() - live_heap_bytes();
}

}  // namespace heed::cli
