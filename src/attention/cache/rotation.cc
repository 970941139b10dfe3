#include "attention/cache/rotation.h"

#include <cmath>

namespace heed { inline namespace v0 { namespace detail {

namespace {

void rotate_block(float* block, std::int64_t size) {
  for (std::int64_t half = 1; half < size; half *= 2) {
    for (std::int64_t first = 0; first < size; first += 2 * half) {
      for (std::int64_t i = first; i < first + half; ++i) {
        const float sum = block[i] + block[i + half];
        block[i + half] = block[i] - block[i + half];
        block[i] = sum;
      }
    }
  }
  const float factor = 1 / std::sqrt(static_cast<float>(size));
  for (std::int64_t i = 0; i < size; ++i) block[i] *= factor;
}

}  // namespace

void rotate(float* row, std::int64_t dim) {
  const std::int64_t size = dim & -dim;  // the lowest bit that is set
  for (std::int64_t first = 0; first < dim; first += size) rotate_block(row + first, size);
}

}}}  // namespace heed::v0::detail
