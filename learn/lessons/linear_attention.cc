// The lesson linear-attention: products of features instead of the exponential, and their order.
#include "lessons/linear_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "heed/attention.h"
#include "heed/core/random.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"

namespace heed::learn {

namespace linear_attention_lesson {

double feature(FeatureMap map, double x) {
  if (map == FeatureMap::kRelu) return std::max(x, 0.0);
  return x > 0 ? x + 1 : std::exp(x);
}

// Returns the values [1, 1, n, n] with which the attention output equals the weights.
Tensor<float> identity(std::int64_t n) {
  Tensor<float> ones({1, 1, n, n});
  for (std::int64_t i = 0; i < n; ++i) ones(0, 0, i, i) = 1;
  return ones;
}

void show_features(Report& report) {
  constexpr std::int64_t kKeys = 5;
  report.step("Features in place of the exponential");
  report.paragraph(
      "softmax gives key k the weight exp(q · k), divided by the sum over all keys. Any similarity "
      "that is never negative could stand there. Linear attention takes a product of features, "
      "φ(q) · φ(k), where φ is a function of each number: x + 1 for x > 0 and exp(x) otherwise "
      "(elu+1), or max(x, 0) (relu).");
  const Tensor<float> query({1, 1, 1, 2}, {1, -0.5F});
  const Tensor<float> key({1, 1, kKeys, 2}, {2, 0, 1, 1, 0.5F, -1, -1, -1, -1, 1});
  const auto of_map = [&](FeatureMap map) {
    return feature_map_attention(query, key, identity(kKeys), {.feature_map = map});
  };
  const Tensor<float> softmax = attention(query, key, identity(kKeys), {.scale = 1.0F});
  const Tensor<float> elu = of_map(FeatureMap::kEluPlusOne);
  const Tensor<float> relu = of_map(FeatureMap::kRelu);
  report.say();
  report.paragraph("The weights of five keys for q = (1, -0.5), as heed computes them:");
  report.say();
  report.say("  {:>12} {:>6} {:>9} {:>9} {:>9}", "key", "q · k", "softmax", "elu+1", "relu");
  auto rows = nlohmann::json::array();
  for (std::int64_t k = 0; k < kKeys; ++k) {
    const float product = query(0, 0, 0, 0) * key(0, 0, k, 0) + query(0, 0, 0, 1) * key(0, 0, k, 1);
    report.say("  {:>12} {:>6} {:>9.4f} {:>9.4f} {:>9.4f}",
               fmt::format("({}, {})", key(0, 0, k, 0), key(0, 0, k, 1)), product,
               softmax(0, 0, 0, k), elu(0, 0, 0, k), relu(0, 0, 0, k));
    rows.push_back({{"key", {key(0, 0, k, 0), key(0, 0, k, 1)}},
                    {"product", product},
                    {"softmax", softmax(0, 0, 0, k)},
                    {"elu+1", elu(0, 0, 0, k)},
                    {"relu", relu(0, 0, 0, k)}});
  }
  report.record("weights", rows);
  report.say();
  report.paragraph(
      "What to notice: all are weights, not negative and with the sum 1. With relu a key that "
      "shares no positive dimension with the query weighs 0. The order of the keys is not that of "
      "q · k: elu+1 puts (1, 1) before (0.5, -1), softmax behind it. And these two products grow "
      "more slowly than the exponential: the key with the largest q · k gets less than softmax "
      "gives it.");
}

namespace {

constexpr std::int64_t kDrawnTokens = 6;
constexpr std::int64_t kDrawnDim = 3;
constexpr std::int64_t kDrawnValueDim = 2;

// The tensors of show_orders(), drawn with seed 0, and their features.
struct DrawnProduct {
  Tensor<double> query;
  Tensor<double> key;
  Tensor<double> value;

  double of_query(std::int64_t t, std::int64_t i) const {
    return feature(FeatureMap::kEluPlusOne, query(0, 0, t, i));
  }
  double of_key(std::int64_t t, std::int64_t i) const {
    return feature(FeatureMap::kEluPlusOne, key(0, 0, t, i));
  }

  // Computes (φ(Q) φ(K)ᵀ) V: a weight for each query and key.
  Tensor<double> weights_first() const {
    Tensor<double> out({1, 1, kDrawnTokens, kDrawnValueDim});
    for (std::int64_t q = 0; q < kDrawnTokens; ++q) {
      for (std::int64_t k = 0; k < kDrawnTokens; ++k) {
        double weight = 0;
        for (std::int64_t i = 0; i < kDrawnDim; ++i) weight += of_query(q, i) * of_key(k, i);
        for (std::int64_t j = 0; j < kDrawnValueDim; ++j) {
          out(0, 0, q, j) += weight * value(0, 0, k, j);
        }
      }
    }
    return out;
  }

  // Computes φ(Q) (φ(K)ᵀ V): one matrix of d × dᵥ numbers for all queries.
  Tensor<double> state_first() const {
    Tensor<double> state({kDrawnDim, kDrawnValueDim});
    Tensor<double> out({1, 1, kDrawnTokens, kDrawnValueDim});
    for (std::int64_t k = 0; k < kDrawnTokens; ++k)
      for (std::int64_t i = 0; i < kDrawnDim; ++i)
        for (std::int64_t j = 0; j < kDrawnValueDim; ++j)
          state(i, j) += of_key(k, i) * value(0, 0, k, j);
    for (std::int64_t q = 0; q < kDrawnTokens; ++q)
      for (std::int64_t i = 0; i < kDrawnDim; ++i)
        for (std::int64_t j = 0; j < kDrawnValueDim; ++j)
          out(0, 0, q, j) += of_query(q, i) * state(i, j);
    return out;
  }
};

double farthest(const Tensor<double>& a, const Tensor<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.elements().size(); ++i) {
    most = std::max(most, std::abs(a.elements()[i] - b.elements()[i]));
  }
  return most;
}

}  // namespace

std::vector<Products> products_of_lengths() {
  constexpr std::int64_t kHeadDim = 64;
  std::vector<Products> all;
  for (const std::int64_t length : {16, 64, 256, 1024, 4096, 16384, 65536}) {
    all.push_back({length, length * length * 2 * kHeadDim, length * 2 * kHeadDim * kHeadDim});
  }
  return all;
}

namespace {

// Shows the lengths at which T² (d + d_v) = 2 T d d_v.
void show_crossings(Report& report) {
  struct Dims {
    std::int64_t of_keys;
    std::int64_t of_values;
  };
  report.paragraph("Both take the same work at T = 2 d dᵥ / (d + dᵥ):");
  report.say();
  report.say("  {:>6} {:>6} {:>8}", "d", "dᵥ", "T");
  auto rows = nlohmann::json::array();
  for (const Dims& dims : {Dims{16, 16}, {64, 64}, {128, 128}, {16, 64}, {64, 128}}) {
    const double length = static_cast<double>(2 * dims.of_keys * dims.of_values) /
                          static_cast<double>(dims.of_keys + dims.of_values);
    report.say("  {:>6} {:>6} {:>8.4g}", dims.of_keys, dims.of_values, length);
    rows.push_back({{"d", dims.of_keys}, {"d_v", dims.of_values}, {"length", length}});
  }
  report.record("crossings", rows);
}

}  // namespace

void show_orders(Report& report) {
  report.step("Two orders of one product");
  report.paragraph(
      "Without a softmax in between, the two products of attention may be taken in either order: "
      "(φ(Q) φ(K)ᵀ) V = φ(Q) (φ(K)ᵀ V). The left side makes T × T weights; the right side first "
      "adds up one matrix of d × dᵥ numbers, Σ φ(k) ⊗ v, which serves every query.");
  TorchGenerator random(0);
  const DrawnProduct drawn{random.randn<double>({1, 1, kDrawnTokens, kDrawnDim}),
                           random.randn<double>({1, 1, kDrawnTokens, kDrawnDim}),
                           random.randn<double>({1, 1, kDrawnTokens, kDrawnValueDim})};
  const Tensor<double> left = drawn.weights_first();
  const Tensor<double> right = drawn.state_first();
  const Tensor<double> heed =
      feature_map_attention(drawn.query, drawn.key, drawn.value, {.normalized = false});
  const double of_orders = farthest(left, right);
  const double of_heed = farthest(left, heed);
  report.record("orders", {{"difference", of_orders}, {"of_heed", of_heed}});
  report.record("order_out", left.view());
  report.say();
  report.paragraph(
      "{} tokens of {} dimensions with values of {}, by hand: the two differ by {:.1e}, and "
      "feature_map_attention() from them by {:.1e}, all in double.",
      kDrawnTokens, kDrawnDim, kDrawnValueDim, of_orders, of_heed);
  report.say();
  report.paragraph("Multiply-adds of a head of 64 dimensions, T² (d + dᵥ) and 2 T d dᵥ:");
  report.say();
  report.say("  {:>6} {:>16} {:>14} {:>8}", "T", "weights first", "state first", "ratio");
  auto rows = nlohmann::json::array();
  for (const Products& products : products_of_lengths()) {
    const double ratio =
        static_cast<double>(products.weights_first) / static_cast<double>(products.state_first);
    report.say("  {:>6} {:>16} {:>14} {:>8.4g}", products.length, grouped(products.weights_first),
               grouped(products.state_first), ratio);
    rows.push_back({{"length", products.length},
                    {"weights_first", products.weights_first},
                    {"state_first", products.state_first}});
  }
  report.record("products", rows);
  report.say();
  show_crossings(report);
  report.say();
  report.paragraph(
      "What to notice: with d = dᵥ both take the same work at T = d. Beyond it the state wins by "
      "T / d; before it the weights are the cheaper way.");
}

namespace {

void teach_linear_attention(Report& report) {
  report.paragraph(
      "Softmax attention compares every query with every key, which takes T² steps, and keeps "
      "every key and value. Linear attention (Katharopoulos et al., 2020) chooses weights that can "
      "be taken apart, so that a text of any length is kept in a state of one size.");
  show_features(report);
  show_orders(report);
  show_recurrence(report);
  show_state_and_cache(report);
  show_recall(report);
  report.draw(draw_linear_attention);
}

}  // namespace

}  // namespace linear_attention_lesson

extern const Lesson kLinearAttentionLesson = {
    "linear-attention", "features in place of a softmax, and what a state holds",
    linear_attention_lesson::teach_linear_attention};

}  // namespace heed::learn
