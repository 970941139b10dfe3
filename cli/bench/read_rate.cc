#include "bench/read_rate.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "heed/core/parallel.h"

namespace heed::cli {

namespace {

// Receives the sum, so that the compiler keeps the loop.
std::atomic<std::uint64_t> sink;

// Returns the sum of the words of a block of memory, in several independent chains of additions.
std::uint64_t sum_of(std::span<const std::byte> memory) {
  constexpr std::size_t kWords = 8;
  std::uint64_t sums[kWords] = {};
  std::size_t i = 0;
  for (; i + sizeof sums <= memory.size(); i += sizeof sums) {
    for (std::size_t w = 0; w < kWords; ++w) {
      std::uint64_t word;
      std::memcpy(&word, memory.data() + i + w * sizeof word, sizeof word);
      sums[w] += word;
    }
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t one : sums) sum += one;
  for (; i < memory.size(); ++i) sum += static_cast<std::uint64_t>(memory[i]);
  return sum;
}

}  // namespace

void read_all(const std::vector<std::span<const std::byte>>& parts) {
  constexpr std::int64_t kPiece = 4096;
  for (const std::span<const std::byte> part : parts) {
    const auto size = static_cast<std::int64_t>(part.size());
    parallel_for(0, (size + kPiece - 1) / kPiece, 256, [&](std::int64_t first, std::int64_t last) {
      const auto begin = static_cast<std::size_t>(first * kPiece);
      const auto end = static_cast<std::size_t>(std::min(last * kPiece, size));
      sink += sum_of(part.subspan(begin, end - begin));
    });
  }
}

}  // namespace heed::cli
