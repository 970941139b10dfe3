#include "heed/core/memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>
#include <type_traits>

#include "core/platform.h"
#include "core/static_lock.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

namespace {

using detail::MemoryBlock;

constexpr std::align_val_t kAlignment{64};

// The size of the smallest blocks that are kept; smaller ones come from pages that the program has
// anyway.
constexpr std::size_t kLeastKept = std::size_t{16} << 10;
// The size of the largest blocks that are kept. For larger ones page faults matter less; and over
// 16,384 keys of int8, a cache that was made after tensors of 33 MB had been kept took two to three
// times as long to read.
constexpr std::size_t kMostKept = std::size_t{4} << 20;
constexpr std::size_t kMostBlocks = 64;

#if defined(__SANITIZE_ADDRESS__)
#define HEED_SEES_ADDRESSES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEED_SEES_ADDRESSES 1
#endif
#endif
#ifdef HEED_SEES_ADDRESSES
constexpr std::size_t kUsualLimit = 0;
#else
constexpr std::size_t kUsualLimit = std::size_t{64} << 20;
#endif

MemoryBlock allocate(std::size_t bytes) { return {::operator new(bytes, kAlignment), bytes}; }
void release(const MemoryBlock& block) noexcept { ::operator delete(block.data, kAlignment); }

// Freed blocks, the oldest first.
class KeptMemory {
 public:
  std::size_t limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
  std::size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

  void set_limit(std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
    shrink_to(bytes, kMostBlocks);
  }

  // Returns a block of about this size, or one without data.
  MemoryBlock take(std::size_t bytes) noexcept {
    if (this->bytes() < bytes) return {};
    const std::lock_guard lock(mutex_);
    // Takes the youngest of the smallest blocks, which may still be in a cache.
    std::size_t best = count_;
    for (std::size_t i = count_; i-- > 0;) {
      const std::size_t size = blocks_[i].bytes;
      if (size < bytes || size - bytes > bytes / 8) continue;
      if (best == count_ || size < blocks_[best].bytes) best = i;
    }
    if (best == count_) return {};
    const MemoryBlock found = blocks_[best];
    std::copy(blocks_.begin() + best + 1, blocks_.begin() + count_, blocks_.begin() + best);
    --count_;
    bytes_ -= found.bytes;
    return found;
  }

  // Returns true if the block is kept.
  bool keep(const MemoryBlock& block) noexcept {
    if (block.bytes > std::min(kMostKept, limit())) return false;
    const std::lock_guard lock(mutex_);
    if (block.bytes > limit_) return false;
    shrink_to(limit_ - block.bytes, kMostBlocks - 1);
    blocks_[count_++] = block;
    bytes_ += block.bytes;
    return true;
  }

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  // Releases the oldest blocks until those left have at most `bytes` bytes and are at most `count`.
  void shrink_to(std::size_t bytes, std::size_t count) noexcept {
    std::size_t released = 0;
    while (bytes_ > bytes || count_ - released > count) {
      bytes_ -= blocks_[released].bytes;
      release(blocks_[released++]);
    }
    std::copy(blocks_.begin() + released, blocks_.begin() + count_, blocks_.begin());
    count_ -= released;
  }

  StaticLock mutex_;
  std::atomic<std::size_t> limit_ = kUsualLimit;
  std::atomic<std::size_t> bytes_ = 0;
  std::array<MemoryBlock, kMostBlocks> blocks_;
  std::size_t count_ = 0;
};

// Constant-initialised and never destroyed, for tensors made before or destroyed after other
// globals.
constinit KeptMemory kept;
static_assert(std::is_trivially_destructible_v<KeptMemory>);

// In a child process the thread that held the lock would be missing.
[[maybe_unused]] const bool kForksWithoutLock =
    platform::at_fork([] { kept.lock(); }, [] { kept.unlock(); }, [] { kept.unlock(); });

}  // namespace

std::size_t max_kept_memory() noexcept { return kept.limit(); }
void set_max_kept_memory(std::size_t bytes) noexcept { kept.set_limit(bytes); }
std::size_t kept_memory() noexcept { return kept.bytes(); }

namespace detail {

MemoryBlock take_memory(std::size_t bytes) {
  if (bytes >= kLeastKept) {
    const MemoryBlock block = kept.take(bytes);
    if (block.data != nullptr) return block;
  }
  return allocate(bytes);
}

void give_back_memory(const MemoryBlock& block) noexcept {
  if (block.bytes < kLeastKept || !kept.keep(block)) release(block);
}

}  // namespace detail

}}  // namespace heed::v0
