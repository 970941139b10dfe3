#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "heed/error.h"
#include "heed/models/generate.h"

namespace heed::inline v0::models {

namespace {

struct Candidate {
  std::int64_t token;
  double probability;  // among the candidates
};

void check_sampling(const Sampling& sampling) {
  if (!(sampling.temperature >= 0 && std::isfinite(sampling.temperature))) {
    throw InvalidArgument(fmt::format(
        "choose_token: temperature is {}, expected a number of at least 0", sampling.temperature));
  }
  if (sampling.top_k < 0) {
    throw InvalidArgument(
        fmt::format("choose_token: top_k is {}, expected at least 0", sampling.top_k));
  }
  if (!(sampling.top_p > 0 && sampling.top_p <= 1)) {
    throw InvalidArgument(
        fmt::format("choose_token: top_p is {}, expected more than 0 to 1", sampling.top_p));
  }
}

std::int64_t likeliest(std::span<const float> logits) {
  std::int64_t best = -1;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) {
      throw InvalidArgument(fmt::format("choose_token: logits[{}] is NaN", i));
    }
    const float least =
        best < 0 ? -std::numeric_limits<float>::infinity() : logits[static_cast<std::size_t>(best)];
    if (logits[i] > least) best = static_cast<std::int64_t>(i);
  }
  if (best < 0) throw InvalidArgument("choose_token: no logit is above -infinity");
  return best;
}

// The top_k likeliest tokens, the likeliest first, of equal ones the first.
std::vector<Candidate> candidates_of(std::span<const float> logits, const Sampling& sampling,
                                     std::int64_t best) {
  const auto size = static_cast<std::int64_t>(logits.size());
  std::vector<Candidate> candidates;
  const double largest = static_cast<double>(logits[static_cast<std::size_t>(best)]);
  for (std::int64_t i = 0; i < size; ++i) {
    const double logit = static_cast<double>(logits[static_cast<std::size_t>(i)]);
    // The difference of two infinities has no meaning: the likeliest is at distance 0 from itself.
    const double below = logit == largest ? 0 : logit - largest;
    candidates.push_back({i, std::exp(below / sampling.temperature)});
  }
  const auto is_before = [](const Candidate& a, const Candidate& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
  };
  const auto kept = sampling.top_k == 0 ? size : std::min(sampling.top_k, size);
  if (kept < size) {
    std::nth_element(candidates.begin(), candidates.begin() + kept, candidates.end(), is_before);
    candidates.resize(static_cast<std::size_t>(kept));
  }
  std::sort(candidates.begin(), candidates.end(), is_before);
  return candidates;
}

// Keeps the likeliest candidates, as few as have the probability top_p together.
void keep_top_p(std::vector<Candidate>& candidates, double top_p) {
  double total = 0;
  for (const Candidate& candidate : candidates) total += candidate.probability;
  double sum = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    sum += candidates[i].probability;
    if (sum >= top_p * total) {
      candidates.resize(i + 1);
      return;
    }
  }
}

}  // namespace

std::int64_t choose_token(std::span<const float> logits, const Sampling& sampling,
                          TorchGenerator& random) {
  check_sampling(sampling);
  const std::int64_t best = likeliest(logits);
  if (sampling.temperature == 0) return best;
  std::vector<Candidate> candidates = candidates_of(logits, sampling, best);
  if (sampling.top_p < 1) keep_top_p(candidates, sampling.top_p);
  double total = 0;
  for (const Candidate& candidate : candidates) total += candidate.probability;
  Tensor<double> drawn(Shape{1});
  random.uniform(drawn.view());
  double left = drawn(0) * total;
  for (const Candidate& candidate : candidates) {
    left -= candidate.probability;
    if (left < 0) return candidate.token;
  }
  return candidates.back().token;
}

}  // namespace heed::inline v0::models
