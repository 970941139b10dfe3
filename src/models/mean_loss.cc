#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "heed/core/cancellation.h"
#include "heed/core/error.h"
#include "heed/models/model.h"
#include "models/losses.h"
#include "nn/ops/vector_loops.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

// Rows of logits computed at once; each has one number per token of the vocabulary.
constexpr std::int64_t kRowsAtOnce = 64;

// −ln p of a token, from one row of logits, which is overwritten.
double loss_of(float* logits, std::int64_t size, std::int64_t token) {
  const nn::VectorLoops<float>& loops = nn::vector_loops<float>();
  const float largest = loops.largest(logits, size);
  const float chosen = logits[token];
  const double sum = loops.exp_and_sum(logits, largest, size, logits);
  return std::log(sum) + static_cast<double>(largest) - static_cast<double>(chosen);
}

}  // namespace

double sum_of_losses(const Model& model, FloatView hidden, std::span<const std::int64_t> ids,
                     std::int64_t first) {
  const auto size = static_cast<std::int64_t>(ids.size());
  double total = 0;
  for (std::int64_t begin = first; begin < size; begin += kRowsAtOnce) {
    check_cancelled();
    const std::int64_t end = std::min(begin + kRowsAtOnce, size);
    Tensor<float> logits = model.logits(hidden.slice(0, begin - 1, end - 1));
    const std::int64_t vocabulary = logits.extent(1);
    for (std::int64_t t = begin; t < end; ++t) {
      total += loss_of(logits.data() + (t - begin) * vocabulary, vocabulary,
                       ids[static_cast<std::size_t>(t)]);
    }
  }
  return total;
}

double mean_loss(const Model& model, std::span<const std::int64_t> ids,
                 const ForwardOptions& options) {
  if (ids.size() < 2) {
    throw InvalidArgument(
        fmt::format("mean_loss: ids has {} tokens, expected at least 2", ids.size()));
  }
  const Tensor<float> hidden = model.forward(Inputs::of({ids.begin(), ids.end()}), options);
  return sum_of_losses(model, hidden, ids, 1) / static_cast<double>(ids.size() - 1);
}

}}}  // namespace heed::v0::models
