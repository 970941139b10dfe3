#include "models/experts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "heed/core/elementary.h"
#include "models/for_rows.h"
#include "models/kernels/row_functions.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

void activate(Activation activation, float* row, std::int64_t width) {
  const RowFunctions& functions = row_functions();
  switch (activation) {
    case Activation::kGelu:
      return functions.gelu(row, width);
    case Activation::kGeluTanh:
      return functions.gelu_tanh(row, width);
    case Activation::kSilu:
      return functions.silu(row, width);
    case Activation::kRelu:
      return functions.relu(row, width);
  }
}

// An expert's result for some rows of the input.
Tensor<float> of_expert(const FeedForward& expert, const ModelConfig& config, FloatView input,
                        std::span<const std::int64_t> tokens) {
  const auto count = std::ssize(tokens);
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t width = config.experts->intermediate_size;
  auto rows = Tensor<float>::uninitialized({count, hidden});
  for (std::int64_t row = 0; row < count; ++row) {
    std::copy_n(input.data() + tokens[static_cast<std::size_t>(row)] * hidden, hidden,
                rows.data() + row * hidden);
  }
  auto gate = Tensor<float>::uninitialized({count, width});
  auto up = Tensor<float>::uninitialized({count, expert.is_gated() ? width : 0});
  widen(expert, config.activation, rows, gate, up);
  expert.down.apply(gate, rows);
  return rows;
}

}  // namespace

void widen(const FeedForward& mlp, Activation activation, FloatView input, Tensor<float>& gate,
           Tensor<float>& up) {
  const std::int64_t width = gate.extent(1);
  if (mlp.is_gated()) {
    mlp.gate.apply(input, gate);
    mlp.up.apply(input, up);
  } else {
    mlp.up.apply(input, gate);
  }
  for_rows(input.extent(0), width, [&](std::int64_t token) {
    float* const row = gate.data() + token * width;
    activate(activation, row, width);
    if (mlp.is_gated()) row_functions().multiply(up.data() + token * width, width, row);
  });
}

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

Tensor<float> mix_experts(const TransformerLayer& layer, const ModelConfig& config,
                          FloatView input) {
  const std::int64_t hidden = config.hidden_size;
  auto scores = Tensor<float>::uninitialized({input.extent(0), config.experts->count});
  layer.router.apply(input, scores);
  const std::vector<ExpertTokens> chosen = choose_experts(scores, *config.experts);
  Tensor<float> sum({input.extent(0), hidden});
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::vector<std::int64_t>& tokens = chosen[i].tokens;
    if (tokens.empty()) continue;
    const Tensor<float> out = of_expert(layer.experts[i], config, input, tokens);
    for (std::size_t row = 0; row < tokens.size(); ++row) {
      const float* const from = out.data() + static_cast<std::int64_t>(row) * hidden;
      float* const to = sum.data() + tokens[row] * hidden;
      for (std::int64_t c = 0; c < hidden; ++c) to[c] += from[c] * chosen[i].weights[row];
    }
  }
  return sum;
}

}}}  // namespace heed::v0::models
