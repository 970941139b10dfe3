#include "models/experts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "heed/core/elementary.h"

namespace heed { inline namespace v0 { namespace models {

std::vector<ExpertTokens> choose_experts(FloatView scores, const Experts& experts) {
  std::vector<ExpertTokens> chosen(static_cast<std::size_t>(experts.count));
  std::vector<std::size_t> order(chosen.size());
  std::vector<double> weights(chosen.size());
  for (std::int64_t token = 0; token < scores.extent(0); ++token) {
    const float* const row = scores.data() + token * experts.count;
    // NaN is the least of all, so that the order is one; the result is NaN all the same.
    const auto rank = [&](std::size_t i) {
      return std::isnan(row[i]) ? -std::numeric_limits<float>::infinity() : row[i];
    };
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::partial_sort(order.begin(), order.begin() + experts.per_token, order.end(),
                      [&](std::size_t a, std::size_t b) {
                        return rank(a) > rank(b) || (rank(a) == rank(b) && a < b);
                      });
    const double largest = static_cast<double>(row[order.front()]);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] = elementary::exp(static_cast<double>(row[i]) - largest);
    }
    const auto last = order.begin() + experts.per_token;
    const double of_chosen = std::accumulate(
        order.begin(), last, 0.0, [&](double sum, std::size_t i) { return sum + weights[i]; });
    const double total = experts.has_weights_of_sum_1
                             ? of_chosen
                             : std::accumulate(weights.begin(), weights.end(), 0.0);
    for (auto i = order.begin(); i != last; ++i) {
      chosen[*i].tokens.push_back(token);
      chosen[*i].weights.push_back(static_cast<float>(weights[*i] / total));
    }
  }
  return chosen;
}

}}}  // namespace heed::v0::models
