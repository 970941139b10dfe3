// Attention from OpenBLAS's products and a vectorised softmax. Compiled for this processor, with
// -ffast-math: the compiler then calls the C library's vector exponential.
#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "blocked.h"

extern "C" void openblas_set_num_threads(int count);

namespace heed::peers { namespace {

// Writes exp(x − max x) for the keys that a row sees and 0 after them; returns the sum.
float exponentiate(float* scores, std::int64_t visible, std::int64_t keys) {
  float largest = scores[0];
  for (std::int64_t k = 1; k < visible; ++k) largest = std::max(largest, scores[k]);
  float sum = 0;
  for (std::int64_t k = 0; k < visible; ++k) {
    scores[k] = std::exp(scores[k] - largest);
    sum += scores[k];
  }
  std::fill(scores + visible, scores + keys, 0.0F);
  return sum;
}

void compute(const PeersProblem& problem, const Block& block, float* scores) {
  const auto rows = static_cast<int>(block.rows);
  const auto keys = static_cast<int>(block.keys);
  const auto dim = static_cast<int>(problem.dim);
  const float scale = 1 / std::sqrt(static_cast<float>(dim));
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, keys, dim, scale, block.query, dim,
              block.key, dim, 0, scores, keys);
  const bool hides_the_future = is_causal(problem);
  float factors[kBlockRows];
  for (int r = 0; r < rows; ++r) {
    const std::int64_t visible = hides_the_future ? block.first_row + r + 1 : keys;
    factors[r] = 1 / exponentiate(scores + std::int64_t{r} * keys, visible, keys);
  }
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, dim, keys, 1, scores, keys,
              block.value, dim, 0, block.out, dim);
  for (int r = 0; r < rows; ++r) {
    float* out = block.out + std::int64_t{r} * dim;
    for (int d = 0; d < dim; ++d) out[d] *= factors[r];
  }
}

// One query: scores, softmax and output; each product is a matrix times a vector.
void compute(const PeersDecode& problem, std::int64_t head, float* scores) {
  const auto keys = static_cast<int>(problem.kv_len);
  const auto dim = static_cast<int>(problem.dim);
  const std::int64_t kv_head = head / (problem.num_heads / problem.num_kv_heads);
  const std::int64_t start = kv_head * problem.kv_len * problem.dim;
  const float scale = 1 / std::sqrt(static_cast<float>(dim));
  cblas_sgemv(CblasRowMajor, CblasNoTrans, keys, dim, scale, problem.key + start, dim,
              problem.query + head * problem.dim, 1, 0, scores, 1);
  const float factor = 1 / exponentiate(scores, problem.kv_len, problem.kv_len);
  cblas_sgemv(CblasRowMajor, CblasTrans, keys, dim, factor, problem.value + start, dim, scores, 1,
              0, problem.out + head * problem.dim, 1);
}

}  // namespace

}  // namespace heed::peers

extern "C" void peers_openblas(const PeersProblem* problem) {
  // Each call runs on one thread: threads divide the blocks.
  openblas_set_num_threads(1);
  heed::peers::for_each_block(*problem, [&](const heed::peers::Block& block, float* scores) {
    heed::peers::compute(*problem, block, scores);
  });
}

extern "C" void peers_decode_openblas(const PeersDecode* problem) {
  openblas_set_num_threads(1);
  heed::parallel_for(0, problem->num_heads, 1, [&](std::int64_t first, std::int64_t last) {
    thread_local std::vector<float> scores;
    scores.resize(static_cast<std::size_t>(problem->kv_len));
    for (std::int64_t head = first; head < last; ++head) {
      heed::peers::compute(*problem, head, scores.data());
    }
  });
}
