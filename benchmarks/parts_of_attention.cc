// Attention and its statistics, with all that changes scores.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heed/attention.h"
#include "heed/attention/position.h"
#include "heed/attention/statistics.h"
#include "heed/core/random.h"
#include "parts.h"

namespace heed::cli {

namespace {

constexpr std::int64_t kNumHeads = 8;
constexpr std::int64_t kLength = 2048;
constexpr std::int64_t kDim = 64;

struct Inputs {
  Tensor<float> query;
  Tensor<float> key;
  Tensor<float> value;
};

const Inputs& inputs() {
  static const Inputs made = [] {
    TorchGenerator random(0);
    const Shape shape{1, kNumHeads, kLength, kDim};
    return Inputs{random.randn(shape), random.randn(shape), random.randn(shape)};
  }();
  return made;
}

// A modification of scores between the two products.
struct Modification {
  const char* name;
  std::function<void(AttentionOptions&)> set;
  double visible_share = 1;
};

// The options are made by the first call.
Part attention_part(const Modification& modification) {
  const double operations = 4.0 * static_cast<double>(kNumHeads * kLength * kLength * kDim);
  return {.name = modification.name,
          .operations = operations * modification.visible_share,
          .call = [set = modification.set, options = std::optional<AttentionOptions>()]() mutable {
            if (!options) set(options.emplace());
            attention(inputs().query, inputs().key, inputs().value, *options);
          }};
}

Mask random_mask() {
  const Tensor<std::int64_t> bits = TorchGenerator(1).randint(0, 2, {kLength, kLength});
  Tensor<bool> allowed(bits.shape());
  std::transform(bits.elements().begin(), bits.elements().end(), allowed.elements().begin(),
                 [](std::int64_t bit) { return bit != 0; });
  return Mask::allow(std::move(allowed));
}

FloatView bias() {
  static const Tensor<float> made = TorchGenerator(2).randn({kNumHeads, kLength, kLength});
  return made;
}

const std::vector<Modification>& modifications() {
  constexpr auto kTokens = static_cast<double>(kLength);
  static const Tensor<float> slopes = alibi_slopes(kNumHeads);
  static const std::vector<Modification> all = {
      {"attention", [](auto& /*options*/) {}},
      {"causal", [](auto& options) { options.mask = causal(); }, (kTokens + 1) / (2 * kTokens)},
      {"softcap", [](auto& options) { options.softcap = 30; }},
      {"dropout", [](auto& options) { options.dropout = {.probability = 0.1F, .seed = 1}; }},
      {"alibi", [](auto& options) { options.alibi_slopes = slopes; }},
      {"bias per head", [](auto& options) { options.bias = bias(); }},
      {"bias", [](auto& options) { options.bias = bias().slice(0, 0, 1); }},
      {"bias per key", [](auto& options) { options.bias = bias().slice(1, 0, 1); }},
      {"mask allow half", [](auto& options) { options.mask = random_mask(); }},
      {"mask where half",
       [](auto& options) {
         options.mask = Mask::where([](int, int, int q, int k) { return ((q ^ k) & 1) == 0; });
       }},
      {"mask where causal",
       [](auto& options) {
         options.mask = Mask::where([](int, int, int q, int k) { return k <= q; });
       }},
      {"relative bias",
       [](auto& options) {
         options.score_mod = [](auto score, int, int, int q_idx, int kv_idx) {
           return score - 0.01F * static_cast<float>(q_idx - kv_idx);
         };
       }},
      {"branch",
       [](auto& options) {
         options.score_mod = [](auto score, int, int, int q_idx, int kv_idx) {
           return q_idx - kv_idx > 64 ? score * 0.5F : score;
         };
       }},
      {"tanh",
       [](auto& options) {
         options.score_mod = [](auto score, int, int, int, int) {
           return 30.0F * heed::tanh(score * (1 / 30.0F));
         };
       }},
  };
  return all;
}

AttentionOptions causal_or_not(bool is_causal) {
  AttentionOptions options;
  if (is_causal) options.mask = causal();
  return options;
}

Part statistics_part(const std::string& name, const AttentionOptions& options, std::int64_t top_k) {
  return {.name = fmt::format("statistics{}, top {}", name, top_k), .call = [options, top_k] {
            attention_statistics(inputs().query, inputs().key, options, {.top_k = top_k});
          }};
}

// Every key has a larger weight than the one before: the worst case for the largest weights.
AttentionOptions rising_weights() {
  AttentionOptions options;
  options.score_mod = [](auto score, int /*b*/, int /*h*/, int /*q_idx*/, int kv_idx) {
    return 0 * score + 0.01F * static_cast<float>(kv_idx);
  };
  return options;
}

// Every 64th query of every head.
Part weights_of_some_rows() {
  std::vector<AttentionRow> rows;
  for (std::int64_t h = 0; h < kNumHeads; ++h) {
    for (std::int64_t q = 0; q < kLength; q += 64) rows.push_back({0, h, q});
  }
  return {.name = "weights of some rows",
          .call = [rows] { attention_weights(inputs().query, inputs().key, rows); }};
}

}  // namespace

PartsInTurn parts_of_attention() {
  PartsInTurn parts;
  for (const Modification& modification : modifications()) {
    parts.push_back(attention_part(modification));
  }
  return parts;
}

PartsInTurn parts_of_statistics() {
  PartsInTurn parts{attention_part(modifications().front())};
  for (const bool is_causal : {false, true}) {
    for (const std::int64_t top_k : {0, 4, 16, 64}) {
      parts.push_back(
          statistics_part(is_causal ? ", causal" : "", causal_or_not(is_causal), top_k));
    }
  }
  for (const std::int64_t top_k : {0, 4, 64}) {
    parts.push_back(statistics_part(" of rising weights", rising_weights(), top_k));
  }
  parts.push_back(weights_of_some_rows());
  return parts;
}

}  // namespace heed::cli
