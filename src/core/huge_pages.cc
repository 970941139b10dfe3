#include "core/huge_pages.h"

#include <cstdint>

#include "core/platform.h"

namespace heed { inline namespace v0 {

namespace {

constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;
constexpr std::uintptr_t kCacheLine = 64;
// The least size of memory with any alignment for which the call saves more than it costs.
constexpr std::size_t kWorthwhile = std::size_t{2} * kHugePage;

void advise(void* data, std::size_t bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t last = (begin + bytes) / kHugePage * kHugePage;
  if (first >= last) return;
  platform::advise_huge_pages(static_cast<char*>(data) + (first - begin), last - first);
}

}  // namespace

void prefer_huge_pages(void* data, std::size_t bytes) noexcept {
  if (bytes >= kWorthwhile) advise(data, bytes);
}

AlignedBytes allocate_in_huge_pages(std::size_t bytes) {
  const std::align_val_t alignment{bytes < kHugePage ? kCacheLine : kHugePage};
  AlignedBytes memory(static_cast<std::byte*>(::operator new[](bytes, alignment)), {alignment});
  advise(memory.get(), bytes);
  return memory;
}

}}  // namespace heed::v0
