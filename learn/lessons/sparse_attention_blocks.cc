// The lesson sparse-attention: blocks that queries select, and masked compared to dense attention.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "heed/attention.h"
#include "heed/attention/select_blocks.h"
#include "heed/core/random.h"
#include "lessons/numbers.h"
#include "lessons/sparse_attention.h"

namespace heed::learn::sparse_attention_lesson {

constexpr std::int64_t kTokens = 8;
constexpr std::int64_t kBlock = 2;
constexpr std::int64_t kBlocks = kTokens / kBlock;

const Tensor<float>& small_queries() {
  static const Tensor<float> queries({1, 1, kTokens, 2},
                                     {1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1});
  return queries;
}

// Blocks 0 and 2 have the mean (1, 0), block 1 has (0, 1) and block 3 has (9, 9).
Tensor<float> small_keys() {
  return {{1, 1, kTokens, 2}, {2, 0, 0, 0, 0, 1, 0, 1, 1, 1, 1, -1, 9, 9, 9, 9}};
}

// Computes q · mean(k of the block) in plain loops.
double affinity(const Tensor<float>& keys, std::int64_t q, std::int64_t block) {
  double sum = 0;
  for (std::int64_t k = block * kBlock; k < (block + 1) * kBlock; ++k) {
    for (std::int64_t d = 0; d < 2; ++d) {
      sum += double{small_queries()(0, 0, q, d)} * keys(0, 0, k, d) / kBlock;
    }
  }
  return sum;
}

std::vector<std::int32_t> chosen_by(const BlockLayout& layout, std::int64_t q) {
  const auto row = static_cast<std::size_t>(q);
  return {layout.columns.begin() + layout.row_begin[row],
          layout.columns.begin() + layout.row_begin[row + 1]};
}

void show_choices(Report& report, const Tensor<float>& keys, const BlockLayout& layout) {
  report.say("  {:>5}   {:<8} {:>8} {:>8} {:>8} {:>8}   {}", "query", "vector", "block 0",
             "block 1", "block 2", "block 3", "sees");
  auto rows = nlohmann::json::array();
  for (std::int64_t q = 0; q < kTokens; ++q) {
    const std::int64_t own = q / kBlock;
    std::string line = fmt::format(
        "  {:>5}   {:<8}", q,
        fmt::format("({}, {})", small_queries()(0, 0, q, 0), small_queries()(0, 0, q, 1)));
    std::vector<double> affinities;
    for (std::int64_t block = 0; block < kBlocks; ++block) {
      affinities.push_back(affinity(keys, q, block));
      line += block < own    ? fmt::format(" {:>8.1f}", affinities.back())
              : block == own ? fmt::format(" {:>8}", "own")
                             : fmt::format(" {:>8}", "–");
    }
    const auto chosen = chosen_by(layout, q);
    report.say("{}   {}", line, fmt::join(chosen, ", "));
    rows.push_back({{"query", q}, {"affinities", affinities}, {"chosen", chosen}});
  }
  report.record("choices", rows);
}

std::int64_t num_that_chose(const BlockLayout& layout, std::int32_t block) {
  return std::count(layout.columns.begin(), layout.columns.end(), block);
}

// Shows the selection when the last block, which is most similar to every query, changes, and when
// queries may look ahead.
void show_no_future(Report& report, const Tensor<float>& keys, const SelectBlocksOptions& options) {
  constexpr auto kLast = static_cast<std::int32_t>(kBlocks - 1);
  Tensor<float> others = keys;
  for_each_element(others.view().slice(2, kTokens - kBlock, kTokens),
                   [](float& number) { number = -number; });
  const BlockLayout layout = select_blocks(small_queries(), keys, options);
  const bool is_same = select_blocks(small_queries(), others, options) == layout;
  SelectBlocksOptions both_ways = options;
  both_ways.causal = false;
  const std::int64_t causal_count = num_that_chose(layout, kLast);
  const std::int64_t count = num_that_chose(select_blocks(small_queries(), keys, both_ways), kLast);
  report.record("last_block", {{"is_layout_the_same", is_same},
                               {"chosen_causal", causal_count},
                               {"chosen_both_ways", count}});
  report.paragraph(
      "What to notice: query 6 is as much like block 0 as like block 2, and of equals the first is "
      "chosen. Block {} has the largest products with all queries, but only its own {} see it; "
      "with "
      "the signs of its keys changed the layout is {}. Without causal {} of {} queries choose it. "
      "A query sees top_k · block keys at most, however long the text. The choice has no gradient, "
      "but the chosen keys have, and so it is learned with the projections.",
      kLast, causal_count, is_same ? "the same" : "another", count, kTokens);
}

void show_selection(Report& report) {
  constexpr SelectBlocksOptions kOptions{.block = kBlock, .top_k = 2, .causal = true};
  report.step("Blocks that queries choose");
  report.paragraph(
      "select_blocks() gives each query its top_k blocks of keys, by q · mean(k of the block). {} "
      "tokens, blocks of {}, top_k = {}, causal: a query's own block is always one of them, later "
      "ones never. The means are (1, 0), (0, 1), (1, 0) and (9, 9):",
      kTokens, kBlock, kOptions.top_k);
  report.say();
  const Tensor<float> keys = small_keys();
  const BlockLayout layout = select_blocks(small_queries(), keys, kOptions);
  show_choices(report, keys, layout);
  report.say();
  const auto lines =
      to_lines(Mask::blocks(layout, causal()), {.q_len = kTokens, .kv_len = kTokens});
  for (const std::string& line : lines) report.say("    {}", line);
  report.record("selected_lines", lines);

  report.say();
  show_no_future(report, keys, kOptions);
}

// Computes softmax(Q Kᵀ / √d + added) V of all pairs, in double and in plain loops.
Tensor<float> dense(const Tensor<float>& query, const Tensor<float>& key,
                    const Tensor<float>& value, const Tensor<float>& added) {
  const Shape& shape = query.shape();
  Tensor<float> out(shape);
  const double root = std::sqrt(static_cast<double>(shape[3]));
  std::vector<double> weights(static_cast<std::size_t>(shape[2]));
  for (std::int64_t h = 0; h < shape[1]; ++h) {
    for (std::int64_t q = 0; q < shape[2]; ++q) {
      double denominator = 0;
      for (std::int64_t k = 0; k < shape[2]; ++k) {
        double score = added(0, h, q, k);
        for (std::int64_t d = 0; d < shape[3]; ++d) {
          score += double{query(0, h, q, d)} * key(0, h, k, d) / root;
        }
        denominator += weights[static_cast<std::size_t>(k)] = std::exp(score);
      }
      for (std::int64_t d = 0; d < shape[3]; ++d) {
        double sum = 0;
        for (std::int64_t k = 0; k < shape[2]; ++k) {
          sum += weights[static_cast<std::size_t>(k)] * value(0, h, k, d);
        }
        out(0, h, q, d) = static_cast<float>(sum / denominator);
      }
    }
  }
  return out;
}

void show_equality(Report& report) {
  const ScoreShape shape{.num_heads = 2, .q_len = 70, .kv_len = 70};
  report.step("Masked attention is dense attention with −∞");
  report.paragraph(
      "{} drawn tokens, {} heads of 16 (seed 0): attention() under a mask against plain loops over "
      "all pairs, which add −∞ to the score of a hidden one. Pairs of both heads, and the largest "
      "difference:",
      shape.q_len, shape.num_heads);
  report.say();
  report.say("  {:<52} {:>9} {:>12}", "mask", "pairs", "difference");
  TorchGenerator generator(0);
  const Shape operand{1, shape.num_heads, shape.q_len, 16};
  const auto query = generator.randn(operand);
  const auto key = generator.randn(operand);
  const auto value = generator.randn(operand);
  std::vector<Pattern> patterns;
  for (const char* text :
       {"causal", "causal & (sliding_window(16, 0) | global_tokens(2))", "strided(8)", "columns(8)",
        "dilated(4, 6)", "random_blocks(2, 16, 0)", "longformer(16, 2)", "bigbird(16, 3, 1, 1, 0)",
        "sparse_transformer(16)", "streaming(2, 32)"}) {
    patterns.push_back(parsed(text));
  }
  const auto chosen =
      Mask::blocks(select_blocks(query, key, {.block = 16, .top_k = 3, .causal = true}), causal());
  patterns.push_back({"select_blocks(query, key, …)", chosen});
  auto rows = nlohmann::json::array();
  for (const Pattern& pattern : patterns) {
    const auto out = attention(query, key, value, {.mask = pattern.mask});
    const double difference =
        max_difference(out, dense(query, key, value, materialize_additive(pattern.mask, shape)));
    const std::int64_t pairs = count_visible(pattern.mask, shape);
    report.say("  {:<52} {:>9} {:>12.1e}", pattern.name, grouped(pairs), difference);
    rows.push_back({{"mask", pattern.name}, {"pairs", pairs}, {"difference", difference}});
  }
  report.record("equality", rows);
  report.say();
  report.paragraph(
      "That is the rounding of floats: what is left out would have had weight 0. Whether a model "
      "can do with the pairs that remain depends on its task and its training.");
}

}  // namespace heed::learn::sparse_attention_lesson
