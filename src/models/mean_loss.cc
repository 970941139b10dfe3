#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "heed/error.h"
#include "heed/models/model.h"
#include "nn/ops/vector_loops.h"

namespace heed::inline v0::models {

namespace {

// Rows of logits at once: each has as many numbers as the vocabulary has tokens.
constexpr std::int64_t kRowsAtOnce = 64;

// −ln p of a token of one row of logits, which is used up.
double loss_of(float* logits, std::int64_t size, std::int64_t token) {
  const nn::VectorLoops<float>& loops = nn::vector_loops<float>();
  const float largest = loops.largest(logits, size);
  const float chosen = logits[token];
  const double sum = loops.exp_and_sum(logits, largest, size, logits);
  return std::log(sum) + static_cast<double>(largest) - static_cast<double>(chosen);
}

}  // namespace

double mean_loss(const Model& model, std::span<const std::int64_t> ids,
                 const ForwardOptions& options) {
  if (ids.size() < 2) {
    throw InvalidArgument(
        fmt::format("mean_loss: ids has {} tokens, expected at least 2", ids.size()));
  }
  const Tensor<float> hidden = model.forward(Inputs::of({ids.begin(), ids.end()}), options);
  const std::int64_t predicted = static_cast<std::int64_t>(ids.size()) - 1;
  double total = 0;
  for (std::int64_t first = 0; first < predicted; first += kRowsAtOnce) {
    const std::int64_t last = std::min(first + kRowsAtOnce, predicted);
    Tensor<float> logits = model.logits(hidden.view().slice(0, first, last));
    const std::int64_t size = logits.extent(1);
    for (std::int64_t row = first; row < last; ++row) {
      total += loss_of(logits.data() + (row - first) * size, size,
                       ids[static_cast<std::size_t>(row) + 1]);
    }
  }
  return total / static_cast<double>(predicted);
}

}  // namespace heed::inline v0::models
