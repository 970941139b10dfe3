#include "lessons/kv_cache.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

#include "heed/attention.h"
#include "heed/core/random.h"
#include "heed/nn/functional.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"

namespace heed::learn {

namespace kv_cache_lesson {

Tokens::Tokens(std::int64_t num_heads, std::int64_t num_kv_heads, std::int64_t length,
               std::int64_t head_dim) {
  TorchGenerator generator(0);
  query = generator.randn({1, num_heads, length, head_dim});
  key = generator.randn({1, num_kv_heads, length, head_dim});
  value = generator.randn({1, num_kv_heads, length, head_dim});
}

void put_rows(FloatView rows, std::int64_t begin, Tensor<float>& into) {
  const Tensor<float> numbers = to_tensor(rows);
  const float* from = numbers.data();
  for_each_element(into.view().slice(2, begin, begin + rows.extent(2)),
                   [&from](float& number) { number = *from++; });
}

std::int64_t count_differing(const Tensor<float>& a, const Tensor<float>& b) {
  return std::inner_product(a.elements().begin(), a.elements().end(), b.elements().begin(),
                            std::int64_t{0}, std::plus<>(), [](float x, float y) {
                              return std::bit_cast<std::uint32_t>(x) !=
                                     std::bit_cast<std::uint32_t>(y);
                            });
}

struct Model {
  std::string_view name;
  std::int64_t num_layers;
  std::int64_t num_kv_heads;
  std::int64_t head_dim;
  std::int64_t context;
};

void show_models(Report& report) {
  report.step("What is kept: keys and values, of every head and layer");
  report.say("    bytes per token = 2 · layers · key heads · head_dim · bytes per number");
  report.say();
  report.say("  {:<11} {:>6} {:>9} {:>8} {:>15} {:>8} {:>12}", "in float16", "layers", "key heads",
             "head_dim", "bytes per token", "tokens", "the cache");
  auto rows = nlohmann::json::array();
  for (const Model& m : {Model{"GPT-2", 12, 12, 64, 1024},
                         {"GPT-3 175B", 96, 96, 128, 2048},
                         {"Llama 2 7B", 32, 32, 128, 4096},
                         {"Llama 3 8B", 32, 8, 128, 8192}}) {
    const KvPool pool({.num_kv_heads = m.num_kv_heads,
                       .head_dim = m.head_dim,
                       .key_storage = KvStorage::kFloat16,
                       .value_storage = KvStorage::kFloat16});
    const std::int64_t per_token = m.num_layers * (pool.page_bytes() / pool.config().page_size);
    const std::int64_t whole = checked_multiply(per_token, m.context);
    report.say("  {:<11} {:>6} {:>9} {:>8} {:>15} {:>8} {:>8} MiB", m.name, m.num_layers,
               m.num_kv_heads, m.head_dim, grouped(per_token), grouped(m.context),
               grouped(whole >> 20));
    rows.push_back({{"model", m.name},
                    {"num_layers", m.num_layers},
                    {"num_kv_heads", m.num_kv_heads},
                    {"head_dim", m.head_dim},
                    {"bytes_per_token", per_token},
                    {"context", m.context},
                    {"bytes", whole}});
  }
  report.record("models", rows);
  report.say();
  report.paragraph(
      "The bytes are those of a KvPool of that shape. What to notice: Llama 3 has 32 query heads, "
      "but 8 key heads, which four query heads share each: a quarter of the bytes. A query is not "
      "kept, for only its own token asks it.");
}

// A layer without its output projection, and the input words.
class SmallLayer {
 public:
  static constexpr std::int64_t kWidth = 16;
  static constexpr std::int64_t kHeads = 2;
  static constexpr std::array<std::string_view, 6> kWords{"The", "cat", "sat", "on", "the", "mat"};
  static constexpr auto kLength = static_cast<std::int64_t>(kWords.size());

  SmallLayer() {
    TorchGenerator generator(0);
    x_ = generator.randn({1, kLength, kWidth});
    parameters_ = attention_init(generator, kWidth, kWidth);
  }

  // Returns the queries of words begin ≤ t < end: [1, kHeads, end − begin, kWidth / kHeads].
  Tensor<float> query(std::int64_t begin, std::int64_t end) const {
    return heads(begin, end, parameters_.query);
  }
  Tensor<float> key(std::int64_t begin, std::int64_t end) const {
    return heads(begin, end, parameters_.key);
  }
  Tensor<float> value(std::int64_t begin, std::int64_t end) const {
    return heads(begin, end, parameters_.value);
  }

 private:
  Tensor<float> heads(std::int64_t begin, std::int64_t end,
                      const LinearParameters<float>& projection) const {
    return split_heads(linear(x_.view().slice(1, begin, end), projection), kHeads);
  }

  Tensor<float> x_;  // [1, kLength, kWidth]
  AttentionParameters<float> parameters_;
};

// The queries and outputs of decoding token by token, including the projections.
struct Steps {
  explicit Steps(const Shape& shape) : queries(shape), out(shape) {}

  Tensor<float> queries;
  Tensor<float> out;
};

Steps take_steps(Report& report, const SmallLayer& layer, KvSequence& sequence) {
  report.say("  {:>4} {:<5} {:>14} {:>10} {:>14}", "step", "word", "keys computed", "keys read",
             "numbers kept");
  Steps steps({1, SmallLayer::kHeads, SmallLayer::kLength, sequence.config().head_dim});
  auto rows = nlohmann::json::array();
  for (std::int64_t t = 0; t < SmallLayer::kLength; ++t) {
    const auto query = layer.query(t, t + 1);
    const auto key = layer.key(t, t + 1);
    sequence.append(key, layer.value(t, t + 1));
    put_rows(query, t, steps.queries);
    put_rows(attend(query, sequence, {.mask = causal()}), t, steps.out);
    const std::int64_t kept = 2 * sequence.length() * SmallLayer::kWidth;
    report.say("  {:>4} {:<5} {:>14} {:>10} {:>14}", t + 1,
               SmallLayer::kWords[static_cast<std::size_t>(t)], key.extent(2), sequence.length(),
               kept);
    rows.push_back({{"step", t + 1}, {"keys_read", sequence.length()}, {"numbers_kept", kept}});
  }
  report.record("steps", rows);
  return steps;
}

// Projects, appends and attends to each token.
void show_steps(Report& report) {
  report.step("One token at a time");
  report.paragraph(
      "At step t: project the new token alone; append its key and value; ask its query. Six words "
      "as random vectors of width {}, {} heads (seed 0):",
      SmallLayer::kWidth, SmallLayer::kHeads);
  report.say();
  const SmallLayer layer;
  KvSequence sequence(
      {.num_kv_heads = SmallLayer::kHeads, .head_dim = SmallLayer::kWidth / SmallLayer::kHeads});
  const Steps steps = take_steps(report, layer, sequence);

  KvTensors kept = sequence.dequantised();
  const auto keys = std::move(kept.key).reshaped(steps.out.shape());
  const auto values = std::move(kept.value).reshaped(steps.out.shape());
  const auto whole = attention(steps.queries, keys, values, {.mask = causal()});
  const std::int64_t differing = count_differing(steps.out, whole);
  const double rounding = max_difference(keys, layer.key(0, SmallLayer::kLength));
  report.record("out", steps.out);
  report.record("steps_differing", differing);
  report.record("projection_difference", rounding);
  report.say();
  report.paragraph(
      "One attention() of all six over the keys and values kept: {} of {} numbers differ in any "
      "bit. Keys that are projected together differ from those projected one by one by {:.2g} at "
      "most. (A product of matrices may add in another order when it has more rows.)",
      differing, whole.num_elements(), rounding);
}

void show_concatenation(Report& report) {
  constexpr std::int64_t kLength = 1000;
  const std::int64_t copied = kLength * (kLength - 1) / 2;
  report.record("rows_copied_by_concatenation", copied);
  report.say();
  report.paragraph(
      "One may concatenate the new key with the old ones. That copies every old one at every "
      "step: {} rows for {} tokens. A KvSequence writes the new row to a page; the old ones stay "
      "where they are.",
      grouped(copied), grouped(kLength));
}

// Appends tokens in parts of the given sizes (the last size repeats) and attends with the queries
// of each part.
Tensor<float> in_parts(const Tokens& tokens, KvSequence& sequence,
                       const std::vector<std::int64_t>& sizes) {
  Tensor<float> out(tokens.query.shape());
  const std::int64_t length = out.extent(2);
  std::size_t part = 0;
  for (std::int64_t begin = 0; begin < length;) {
    const std::int64_t end = std::min(length, begin + sizes[part]);
    tokens.append_to(sequence, begin, end);
    put_rows(attend(tokens.queries(begin, end), sequence, {.mask = causal()}), begin, out);
    part = std::min(part + 1, sizes.size() - 1);
    begin = end;
  }
  return out;
}

void show_bits(Report& report) {
  constexpr std::int64_t kLength = 100;
  const Tokens tokens(4, 2, kLength, 32);
  const auto whole = attention(tokens.query, tokens.key, tokens.value, {.mask = causal()});
  report.step("The same result, to the bit");
  report.paragraph(
      "{} tokens, 4 query heads, 2 key heads of 32. attend() over a growing KvSequence, compared "
      "with one attention() of all tokens under causal():",
      kLength);
  report.say();
  report.say("  {:<34} {:>9} {:>17} {:>10}", "appended", "page size", "numbers compared",
             "differing");
  struct Division {
    std::string_view name;
    std::vector<std::int64_t> sizes;
    std::int64_t page_size;
  };
  auto rows = nlohmann::json::array();
  std::int64_t total = 0;
  for (const Division& d : {Division{"token by token", {1}, 128},
                            {"token by token", {1}, 16},
                            {"a prompt of 60, then token by token", {60, 1}, 32},
                            {"in parts of 7", {7}, 16},
                            {"all at once", {kLength}, 128}}) {
    KvSequence sequence({.num_kv_heads = 2, .head_dim = 32, .page_size = d.page_size});
    const std::int64_t differing = count_differing(in_parts(tokens, sequence, d.sizes), whole);
    report.say("  {:<35} {:>8} {:>17} {:>10}", d.name, d.page_size, grouped(whole.num_elements()),
               differing);
    rows.push_back({{"appended", d.name},
                    {"page_size", d.page_size},
                    {"compared", whole.num_elements()},
                    {"differing", differing}});
    total += differing;
  }
  report.record("divisions", rows);
  report.record("differing", total);
  report.say();
  report.paragraph(
      "Why: under a causal mask nothing in row t depends on a token after t, so a key that was "
      "computed once stays right. And heed adds the terms of a row in one order, whatever else is "
      "computed with it.");
}

void teach(Report& report) {
  report.paragraph(
      "A model writes one token after another. Without a cache it computes the keys and values of "
      "all tokens before again for each new one. A KV cache keeps them:");
  report.say();
  report.say("    outₜ = softmax(qₜ [k₁ … kₜ]ᵀ / √d) [v₁ … vₜ]");
  show_models(report);
  show_steps(report);
  show_concatenation(report);
  show_bits(report);
  const Costs operations = show_operations(report);
  const Costs times = show_times(report);
  show_storages(report);
  show_forks(report);
  show_bounds(report);
  report.draw(drawing_of_costs(operations, times));
}

}  // namespace kv_cache_lesson

extern const Lesson kKvCacheLesson = {"kv-cache",
                                      "keys and values kept: the same bits, costs, storages, forks",
                                      kv_cache_lesson::teach};

}  // namespace heed::learn
