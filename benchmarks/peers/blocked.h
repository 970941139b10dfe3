// Attention from a library's matrix products: block by block of rows, scores, softmax and output
// while the scores are in the cache. Keys that a causal mask hides are skipped.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "heed/core/parallel.h"
#include "problem.h"

namespace heed::peers {

inline constexpr std::int64_t kBlockRows = 192;

// These loops support two masks, "causal" and "none".
inline bool is_causal(const PeersProblem& problem) {
  return std::strcmp(problem.mask, "causal") == 0;
}

// One block of rows of one head.
struct Block {
  std::int64_t first_row;
  std::int64_t rows;
  std::int64_t keys;  // the keys that some row of the block sees
  const float* query;
  const float* key;
  const float* value;
  float* out;

  Block(const PeersProblem& problem, std::int64_t head, std::int64_t row, float* all_out)
      : first_row(row),
        rows(std::min(kBlockRows, problem.length - row)),
        keys(is_causal(problem) ? row + rows : problem.length) {
    const std::int64_t start = head * problem.length * problem.dim;
    query = problem.query + start + row * problem.dim;
    key = problem.key + start;
    value = problem.value + start;
    out = all_out + start + row * problem.dim;
  }
};

// Calls compute(block, scores) for every block, on heed's num_threads() threads, the longest blocks
// first.
template <class Compute>
void for_each_block(const PeersProblem& problem, const Compute& compute) {
  const std::int64_t blocks = (problem.length + kBlockRows - 1) / kBlockRows;
  float* out = problem.out;
  static std::vector<float> unwanted;
  if (out == nullptr) {
    unwanted.resize(static_cast<std::size_t>(problem.num_heads * problem.length * problem.dim));
    out = unwanted.data();
  }
  parallel_for(0, problem.num_heads * blocks, 1, [&](std::int64_t first, std::int64_t last) {
    thread_local std::vector<float> scores;
    scores.resize(static_cast<std::size_t>(kBlockRows * problem.length));
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t row = (blocks - 1 - i % blocks) * kBlockRows;
      compute(Block(problem, i / blocks, row, out), scores.data());
    }
  });
}

}  // namespace heed::peers
