// The lesson linear-attention: the number of (key, value) pairs that a state holds.
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "heed/attention.h"
#include "heed/core/random.h"
#include "lessons/linear_attention.h"

namespace heed::learn::linear_attention_lesson {

namespace {

constexpr std::int64_t kTexts = 25;
constexpr std::int64_t kPairDim = 16;  // of keys and of values
constexpr float kSharpness = 32;       // the scale of softmax
constexpr float kStretch = 4;          // of keys before φ: their numbers then have variance 1

// Returns random directions of length 1, [kTexts, 1, pairs, kPairDim].
Tensor<float> drawn_directions(std::int64_t pairs, TorchGenerator& random) {
  Tensor<float> rows = random.randn<float>({kTexts, 1, pairs, kPairDim});
  for (std::int64_t row = 0; row < kTexts * pairs; ++row) {
    const auto numbers =
        rows.elements().subspan(static_cast<std::size_t>(row * kPairDim), kPairDim);
    double square = 0;
    for (const float x : numbers) square += static_cast<double>(x) * x;
    for (float& x : numbers) x /= static_cast<float>(std::sqrt(square));
  }
  return rows;
}

std::span<const float> row_of(const Tensor<float>& rows, std::int64_t text, std::int64_t row) {
  return rows.elements().subspan(static_cast<std::size_t>((text * rows.extent(2) + row) * kPairDim),
                                 kPairDim);
}

// Works on rows instead of tensors, whose indices are checked where assertions are on: this
// function takes most of the lesson's time.
double product_of(std::span<const float> a, std::span<const float> b) {
  const float* left = a.data();
  const float* right = b.data();
  double product = 0;
  for (std::int64_t i = 0; i < kPairDim; ++i) product += static_cast<double>(left[i]) * right[i];
  return product;
}

// Returns the part of answers whose nearest value is the last one stored with the key. There are as
// many answers as keys, and the last values belong to them.
double share_right(const Tensor<float>& answers, const Tensor<float>& values) {
  const std::int64_t pairs = values.extent(2);
  const std::int64_t keys = answers.extent(2);
  std::int64_t right = 0;
  for (std::int64_t text = 0; text < kTexts; ++text) {
    for (std::int64_t asked = 0; asked < keys; ++asked) {
      std::int64_t best = 0;
      double nearest = -2;
      for (std::int64_t j = 0; j < pairs; ++j) {
        const double product = product_of(row_of(answers, text, asked), row_of(values, text, j));
        if (product > nearest) best = j;
        nearest = std::max(nearest, product);
      }
      right += best == pairs - keys + asked ? 1 : 0;
    }
  }
  return static_cast<double>(right) / static_cast<double>(kTexts * keys);
}

// Returns the values that feature products of the keys with the stored keys recall.
Tensor<float> of_features(const Tensor<float>& keys, const Tensor<float>& values, FeatureMap map) {
  Tensor<float> stretched = keys;
  for (float& x : stretched.elements()) x *= kStretch;
  return feature_map_attention(stretched, stretched, values, {.feature_map = map});
}

// Pairs in the order in which they are read, each tensor [kTexts, 1, pairs, kPairDim].
struct Pairs {
  Tensor<float> keys;
  Tensor<float> values;
};

// Returns the values that the state after all pairs gives for `asked`. `beta` is the rate of the
// delta rule; without it, the linear rule is used.
Tensor<float> of_state(const Pairs& pairs, const Tensor<float>& asked, std::optional<float> beta) {
  Tensor<float> betas(Shape{kTexts, 1, pairs.keys.extent(2)});
  std::fill(betas.elements().begin(), betas.elements().end(), beta.value_or(0));
  LinearAttentionOptions options{.scale = 1.0F};
  if (beta) options.beta = betas.view();
  const auto stored = linear_attention(pairs.keys, pairs.keys, pairs.values, options);
  // Values of 0 leave the state unchanged under the linear rule.
  const Tensor<float> nothing(asked.shape());
  return linear_attention(asked, asked, nothing, {.state = stored.state.view(), .scale = 1.0F}).out;
}

}  // namespace

std::vector<Recall> recall_of_pairs() {
  TorchGenerator random(0);
  std::vector<Recall> all;
  for (const std::int64_t pairs : {2, 4, 8, 16, 32, 64, 128}) {
    const Pairs drawn{drawn_directions(pairs, random), drawn_directions(pairs, random)};
    const auto& [keys, values] = drawn;
    const std::array answers{attention(keys, keys, values, {.scale = kSharpness}),
                             of_features(keys, values, FeatureMap::kEluPlusOne),
                             of_features(keys, values, FeatureMap::kRelu),
                             of_state(drawn, keys, std::nullopt), of_state(drawn, keys, 1.0F)};
    Recall recall{.pairs = pairs};
    for (std::size_t i = 0; i < answers.size(); ++i) {
      recall.share[i] = share_right(answers[i], values);
    }
    all.push_back(recall);
  }
  return all;
}

namespace {

// Returns pairs in which every key occurs twice; the second value is the correct one.
Pairs stored_twice(const Tensor<float>& keys, TorchGenerator& random) {
  const std::int64_t count = keys.extent(2);
  Pairs twice{Tensor<float>({kTexts, 1, 2 * count, kPairDim}), drawn_directions(2 * count, random)};
  for (std::int64_t text = 0; text < kTexts; ++text) {
    for (std::int64_t pair = 0; pair < 2 * count; ++pair) {
      for (std::int64_t i = 0; i < kPairDim; ++i) {
        twice.keys(text, 0, pair, i) = keys(text, 0, pair % count, i);
      }
    }
  }
  return twice;
}

void show_replacement(Report& report) {
  report.say();
  report.paragraph(
      "The delta rule holds fewer pairs than the sum, since each new pair takes out some of the "
      "older ones. What it is for are keys that come again: every key is now read twice, with "
      "another value the second time, which is the one asked for:");
  report.say();
  report.say("  {:>6} {:>8} {:>8} {:>8}", "keys", "softmax", "linear", "delta");
  TorchGenerator random(1);
  auto rows = nlohmann::json::array();
  for (const std::int64_t count : {1, 2, 4, 8, 16}) {
    const Tensor<float> keys = drawn_directions(count, random);
    const Pairs twice = stored_twice(keys, random);
    const auto right = [&](const Tensor<float>& answers) {
      return share_right(answers, twice.values);
    };
    const double softmax = right(attention(keys, twice.keys, twice.values, {.scale = kSharpness}));
    const double linear = right(of_state(twice, keys, std::nullopt));
    const double delta = right(of_state(twice, keys, 1.0F));
    report.say("  {:>6} {:>8.1f} {:>8.1f} {:>8.1f}", count, 100 * softmax, 100 * linear,
               100 * delta);
    rows.push_back({{"keys", count}, {"softmax", softmax}, {"linear", linear}, {"delta", delta}});
  }
  report.record("replaced", rows);
  report.say();
  report.paragraph(
      "What to notice: softmax and the sum give both values of a key the same weight and tell "
      "them apart by chance. The delta rule has replaced the first, and fails only as it did "
      "above, "
      "where there are many keys.");
}

}  // namespace

void show_recall(Report& report) {
  report.step("What a state holds");
  report.paragraph(
      "Pairs of a key and a value are read, random directions of {} dimensions; then every key is "
      "asked for its value, and the nearest of all stored values counts as the answer. softmax "
      "scales by {}; keys are multiplied by {} before φ. linear has no φ and no division; delta "
      "is the rule S ← S + k ⊗ (v − Sᵀk), which first takes out what the state has for the key. "
      "Right answers in percent, of {} texts each:",
      kPairDim, kSharpness, kStretch, kTexts);
  report.say();
  report.say("  {:>6} {:>8} {:>8} {:>8} {:>8} {:>8}", "pairs", kStores[0], kStores[1], kStores[2],
             kStores[3], kStores[4]);
  auto rows = nlohmann::json::array();
  for (const Recall& recall : recall_of_pairs()) {
    const auto& share = recall.share;
    report.say("  {:>6} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f}", recall.pairs, 100 * share[0],
               100 * share[1], 100 * share[2], 100 * share[3], 100 * share[4]);
    nlohmann::json row{{"pairs", recall.pairs}};
    for (std::size_t i = 0; i < kStores.size(); ++i) row[std::string(kStores[i])] = share[i];
    rows.push_back(row);
  }
  report.record("recall", rows);
  report.say();
  report.paragraph(
      "What to notice: softmax keeps every pair and finds each. A state has {} × {} numbers "
      "whatever was read: what is stored for one key also answers, in part, for every key that is "
      "not at right angles to it. Features are never negative, so that most of them, or with elu+1 "
      "all, are at less than a right angle: these states hold least.",
      kPairDim, kPairDim);
  show_replacement(report);
  report.say();
  report.paragraph(
      "Some models that keep such states therefore have a few layers of softmax attention as well, "
      "or attention to a window of the last tokens.");
}

}  // namespace heed::learn::linear_attention_lesson
