// The lesson linear-attention: the state that replaces the past, token by token, and its size.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "heed/attention/kv_cache.h"
#include "lessons/linear_attention.h"
#include "lessons/numbers.h"

namespace heed::learn::linear_attention_lesson {

namespace {

constexpr std::int64_t kSteps = 4;
constexpr std::int64_t kStepDim = 2;
constexpr std::array<float, kSteps * kStepDim> kQueries{1, 0, 0, 1, -1, 0.5F, 1, 1};
constexpr std::array<float, kSteps * kStepDim> kKeys{1, -1, 0, 1, 2, 0, -1, 1};
constexpr std::array<float, kSteps> kValues{1, 2, 3, 4};

Tensor<float> tensor_of(std::span<const float> numbers, std::int64_t dim) {
  return {{1, 1, kSteps, dim}, {numbers.begin(), numbers.end()}};
}

// Returns φ of every number, because linear_attention() applies no feature map.
Tensor<float> features_of(std::span<const float> numbers) {
  Tensor<float> features({1, 1, kSteps, kStepDim});
  std::transform(numbers.begin(), numbers.end(), features.elements().begin(),
                 [](float x) { return static_cast<float>(feature(FeatureMap::kEluPlusOne, x)); });
  return features;
}

// The state after some tokens, for scalar values.
struct State {
  std::array<double, kStepDim> sum{};   // S = Σ φ(k) v
  std::array<double, kStepDim> norm{};  // z = Σ φ(k)

  void add(std::int64_t t) {
    for (std::size_t i = 0; i < kStepDim; ++i) {
      const auto at = static_cast<std::size_t>(t * kStepDim) + i;
      const double of_key = feature(FeatureMap::kEluPlusOne, kKeys[at]);
      sum[i] += of_key * kValues[static_cast<std::size_t>(t)];
      norm[i] += of_key;
    }
  }
  double out(std::int64_t t) const {
    double above = 0;
    double below = 0;
    for (std::size_t i = 0; i < kStepDim; ++i) {
      const auto at = static_cast<std::size_t>(t * kStepDim) + i;
      const double of_query = feature(FeatureMap::kEluPlusOne, kQueries[at]);
      above += of_query * sum[i];
      below += of_query * norm[i];
    }
    return above / below;
  }
};

void show_states(Report& report) {
  const Tensor<float> heed =
      feature_map_attention(tensor_of(kQueries, kStepDim), tensor_of(kKeys, kStepDim),
                            tensor_of(kValues, 1), {.causal = true});
  report.say("  {:>2} {:>3}  {:<18} {:<16} {:>8} {:>8}", "t", "v", "S", "z", "out", "heed");
  auto rows = nlohmann::json::array();
  State state;
  double most = 0;
  for (std::int64_t t = 0; t < kSteps; ++t) {
    state.add(t);
    const double out = state.out(t);
    report.say(
        "  {:>2} {:>3}  {:<18} {:<16} {:>8.4f} {:>8.4f}", t, kValues[static_cast<std::size_t>(t)],
        fmt::format("({:.4f}, {:.4f})", state.sum[0], state.sum[1]),
        fmt::format("({:.4f}, {:.4f})", state.norm[0], state.norm[1]), out, heed(0, 0, t, 0));
    rows.push_back({{"sum", state.sum}, {"norm", state.norm}, {"out", out}});
    most = std::max(most, std::abs(out - heed(0, 0, t, 0)));
  }
  report.record("causal_out", heed.view());
  report.record("states", rows);
  report.record("states_difference", most);
}

// Returns true if a text cut in two, whose second half continues from the state of the first, gives
// the same bits as the whole text.
bool continues_to_the_same_bits() {
  const Tensor<float> query = features_of(kQueries);
  const Tensor<float> key = features_of(kKeys);
  const Tensor<float> value = tensor_of(kValues, 1);
  const auto part = [&](std::int64_t begin, std::int64_t end, LinearAttentionOptions options) {
    options.scale = 1.0F;
    return linear_attention(query.view().slice(2, begin, end), key.view().slice(2, begin, end),
                            value.view().slice(2, begin, end), options);
  };
  const auto whole = part(0, kSteps, {});
  const auto first = part(0, kSteps / 2, {});
  const auto second = part(kSteps / 2, kSteps, {.state = first.state.view()});
  return std::equal(second.state.elements().begin(), second.state.elements().end(),
                    whole.state.elements().begin()) &&
         std::equal(second.out.elements().begin(), second.out.elements().end(),
                    whole.out.elements().begin() + kSteps / 2);
}

// Returns the bytes of a head's state, which does not depend on the tokens. z has one number for
// each row of S.
std::int64_t bytes_of_state(std::int64_t head_dim) {
  const Tensor<float> none({1, 1, 0, head_dim});
  const Tensor<float> state = linear_attention(none, none, none).state;
  return static_cast<std::int64_t>(sizeof(float)) * (state.num_elements() + head_dim);
}

// Returns the bytes of a key and a value in a pool of one head.
std::int64_t bytes_of_token(std::int64_t head_dim) {
  const KvPool pool({.num_kv_heads = 1, .head_dim = head_dim});
  return pool.page_bytes() / pool.config().page_size;
}

}  // namespace

void show_recurrence(Report& report) {
  report.step("Causal attention is a recurrence");
  report.paragraph(
      "A query that sees no later key needs Σ φ(k) ⊗ v and Σ φ(k) up to its own token. Each token "
      "adds to what the one before left:");
  report.say();
  report.say("    S ← S + φ(k) ⊗ v      z ← z + φ(k)      out = Sᵀφ(q) / (z · φ(q))");
  report.say();
  report.paragraph(
      "Four tokens of two dimensions, values of one number, elu+1; heed is "
      "feature_map_attention():");
  report.say();
  show_states(report);
  const bool same = continues_to_the_same_bits();
  report.record("continues_to_the_same_bits", same);
  report.say();
  report.paragraph(
      "What to notice: the first out is the first value, for there is nothing else to see. A text "
      "may be cut anywhere: two tokens, and two more from the state that the first two left, have "
      "{} as all four at once in linear_attention(). This is a recurrent network with a matrix as "
      "its state. The weights φ(q) · φ(k) under a causal mask give the same outputs for all tokens "
      "at once.",
      same ? "the same bits" : "other bits");
}

void show_state_and_cache(Report& report) {
  constexpr std::int64_t kHeadDim = 64;
  const std::int64_t state_bytes = bytes_of_state(kHeadDim);
  const std::int64_t token_bytes = bytes_of_token(kHeadDim);
  report.step("The state beside a KV cache");
  report.paragraph(
      "To write the next token, softmax attention needs the keys and values of all before it; "
      "linear attention needs S and z. Bytes of a head with d = dᵥ = {}, float32: {} for S and z, "
      "{} for each token in a KvPool.",
      kHeadDim, grouped(state_bytes), token_bytes);
  report.say();
  report.say("  {:>6} {:>12} {:>8} {:>8}", "T", "cache", "state", "ratio");
  auto rows = nlohmann::json::array();
  for (const std::int64_t length : {16, 128, 1024, 8192, 65536}) {
    const std::int64_t cache = length * token_bytes;
    report.say("  {:>6} {:>12} {:>8} {:>8.4g}", length, grouped(cache), grouped(state_bytes),
               static_cast<double>(cache) / static_cast<double>(state_bytes));
    rows.push_back({{"length", length}, {"cache", cache}, {"state", state_bytes}});
  }
  const double equal = static_cast<double>(state_bytes) / static_cast<double>(token_bytes);
  report.record("bytes", rows);
  report.record("equal_length", equal);
  report.say();
  report.paragraph(
      "What to notice: from {} tokens on a cache is the larger. The whole state is read and "
      "written for every token, however short the text.",
      static_cast<std::int64_t>(std::floor(equal)) + 1);
}

}  // namespace heed::learn::linear_attention_lesson
