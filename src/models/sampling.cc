#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/float_environment.h"
#include "heed/core/elementary.h"
#include "heed/core/error.h"
#include "heed/models/generate.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

struct Candidate {
  std::int64_t token;
  double probability;  // relative to the likeliest token
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
  if (!(sampling.min_p >= 0 && sampling.min_p <= 1)) {
    throw InvalidArgument(
        fmt::format("choose_token: min_p is {}, expected 0 to 1", sampling.min_p));
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

// The tokens in order of decreasing probability, at equal probability in the order of ids. They are
// sorted only as far as needed, because a choice is seldom far from the likeliest.
class Ranking {
 public:
  // @param best the likeliest token
  Ranking(std::span<const float> logits, double temperature, std::int64_t best) {
    candidates_.reserve(logits.size());
    const double largest = static_cast<double>(logits[static_cast<std::size_t>(best)]);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double logit = static_cast<double>(logits[i]);
      // Avoids the difference of two infinities: the likeliest token has distance 0.
      const double below = logit == largest ? 0 : logit - largest;
      candidates_.push_back({static_cast<std::int64_t>(i), elementary::exp(below / temperature)});
    }
  }

  std::size_t size() const noexcept { return candidates_.size(); }

  const Candidate& operator[](std::size_t rank) {
    while (sorted_ <= rank) sort_up_to(std::max(kSortedFirst, 4 * sorted_));
    return candidates_[rank];
  }

  // Keeps the `count` likeliest tokens.
  void keep(std::size_t count) {
    if (count >= size()) return;
    sort_up_to(count);
    candidates_.resize(count);
  }

  // Keeps the smallest number of likeliest tokens that together have this share of the probability.
  void keep_share(double share) {
    const double wanted = share * total();
    double sum = 0;
    for (std::size_t rank = 0; rank < size(); ++rank) {
      sum += (*this)[rank].probability;
      if (sum >= wanted) return keep(rank + 1);
    }
  }

  // Keeps the tokens that have this share of the probability of the likeliest.
  void keep_from(double share) {
    const auto is_less = [&](const Candidate& candidate) { return candidate.probability < share; };
    const auto end = std::remove_if(candidates_.begin(), candidates_.end(), is_less);
    candidates_.erase(end, candidates_.end());  // those that are sorted stay so
    sorted_ = std::min(sorted_, size());
  }

  double total() const {
    double sum = 0;
    for (const Candidate& candidate : candidates_) sum += candidate.probability;
    return sum;
  }

 private:
  static constexpr std::size_t kSortedFirst = 64;

  static bool is_before(const Candidate& a, const Candidate& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
  }

  void sort_up_to(std::size_t count) {
    count = std::min(count, size());
    if (count <= sorted_) return;
    const auto begin = candidates_.begin();
    std::partial_sort(begin + static_cast<std::ptrdiff_t>(sorted_),
                      begin + static_cast<std::ptrdiff_t>(count), candidates_.end(), is_before);
    sorted_ = count;
  }

  std::vector<Candidate> candidates_;
  std::size_t sorted_ = 0;
};

}  // namespace

std::int64_t choose_token(std::span<const float> logits, const Sampling& sampling,
                          TorchGenerator& random) {
  const FloatEnvironment environment;
  check_sampling(sampling);
  const std::int64_t best = likeliest(logits);
  if (sampling.temperature == 0) return best;
  Ranking ranking(logits, sampling.temperature, best);
  if (sampling.top_k > 0) ranking.keep(static_cast<std::size_t>(sampling.top_k));
  if (sampling.top_p < 1) ranking.keep_share(sampling.top_p);
  if (sampling.min_p > 0) ranking.keep_from(sampling.min_p);
  Tensor<double> drawn(Shape{1});
  random.uniform(drawn.view());
  double left = drawn(0) * ranking.total();
  for (std::size_t rank = 0; rank < ranking.size(); ++rank) {
    left -= ranking[rank].probability;
    if (left < 0) return ranking[rank].token;
  }
  return ranking[ranking.size() - 1].token;
}

}}}  // namespace heed::v0::models
