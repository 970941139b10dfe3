// The lesson flash-attention: the softmax of a row, computed tile by tile and by parts.
#include "lessons/flash_attention.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "heed/attention.h"
#include "heed/attention/merge.h"
#include "lessons/lesson.h"

namespace heed::learn {

namespace flash_attention_lesson {

constexpr std::size_t kKeys = 8;
constexpr std::size_t kTileKeys = 2;
constexpr std::array<double, kKeys> kScores{1, 3, 2, 0, 5, 4, -1, 2};
constexpr std::array<double, kKeys> kValues{1, 2, 3, 4, 5, 6, 7, 8};

RowState with_tile(const RowState& before, std::span<const double> scores,
                   std::span<const double> values) {
  RowState after;
  after.largest = std::max(before.largest, *std::max_element(scores.begin(), scores.end()));
  const double factor = std::exp(before.largest - after.largest);
  after.sum = factor * before.sum;
  after.out = factor * before.out;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    const double power = std::exp(scores[k] - after.largest);
    after.sum += power;
    after.out += power * values[k];
  }
  return after;
}

RowState with_tile_at(const RowState& before, std::size_t first) {
  return with_tile(before, std::span(kScores).subspan(first, kTileKeys),
                   std::span(kValues).subspan(first, kTileKeys));
}

// The result softmax(scores) · values, computed with the largest score known in advance, and lse.
struct WholeRow {
  double out = 0;
  double lse = 0;
};
WholeRow all_at_once() {
  const double largest = *std::max_element(kScores.begin(), kScores.end());
  double sum = 0;
  for (const double score : kScores) sum += std::exp(score - largest);
  WholeRow row{.lse = largest + std::log(sum)};
  for (std::size_t k = 0; k < kKeys; ++k) {
    row.out += std::exp(kScores[k] - largest) / sum * kValues[k];
  }
  return row;
}

// Returns heed's attention for the one-dimensional query 1, so that the scores are the keys.
AttentionOutput<double> of_keys(std::size_t begin, std::size_t end) {
  const auto count = static_cast<std::int64_t>(end - begin);
  const auto range = [&](const std::array<double, kKeys>& all) {
    return Tensor<double>({1, 1, count, 1}, {all.begin() + static_cast<std::ptrdiff_t>(begin),
                                             all.begin() + static_cast<std::ptrdiff_t>(end)});
  };
  const Tensor<double> query({1, 1, 1, 1}, {1});
  return attention_with_lse(query, range(kScores), range(kValues),
                            AttentionOptions64{.scale = 1.0});
}

// Prints a table of the states after each tile and returns the last one.
RowState show_states(Report& report) {
  report.say("  {:>4}  {:<6} {:>4} {:>8} {:>8} {:>8} {:>8}", "tile", "scores", "m", "factor", "l",
             "o", "o / l");
  auto rows = nlohmann::json::array();
  RowState state;
  for (std::size_t first = 0; first < kKeys; first += kTileKeys) {
    const RowState after = with_tile_at(state, first);
    const double factor = std::exp(state.largest - after.largest);
    const auto scores = std::span(kScores).subspan(first, kTileKeys);
    report.say("  {:>4}  {:<6} {:>4} {:>8.4f} {:>8.4f} {:>8.4f} {:>8.4f}", first / kTileKeys,
               fmt::format("{}", fmt::join(scores, ", ")), after.largest, factor, after.sum,
               after.out, after.out / after.sum);
    rows.push_back({{"scores", std::vector<double>(scores.begin(), scores.end())},
                    {"largest", after.largest},
                    {"factor", factor},
                    {"sum", after.sum},
                    {"out", after.out},
                    {"mean", after.out / after.sum}});
    state = after;
  }
  report.record("tiles", rows);
  return state;
}

void show_running_softmax(Report& report) {
  report.step("The running softmax: one row, tile by tile");
  report.paragraph(
      "{} scores s with a number v as the value of each, {}; {} keys are a tile. Of what was read, "
      "only three numbers are kept: the largest score m, the sum l of the powers, and the output o "
      "before it is divided by l. A tile changes them so:",
      kKeys, fmt::join(kValues, ", "), kTileKeys);
  report.say();
  report.say("    m' = max(m, largest s of the tile)      factor = exp(m − m')");
  report.say("    l' = factor l + Σ exp(s − m')      o' = factor o + Σ exp(s − m') v");
  report.say();
  const RowState state = show_states(report);
  const WholeRow whole = all_at_once();
  const AttentionOutput<double> heed = of_keys(0, kKeys);
  RowState reversed;
  for (std::size_t first = kKeys; first > 0; first -= kTileKeys) {
    reversed = with_tile_at(reversed, first - kTileKeys);
  }
  const double by_tiles = std::abs(state.out / state.sum - whole.out);
  const double in_reverse = std::abs(reversed.out / reversed.sum - whole.out);
  const double of_heed = std::abs(heed.out(0, 0, 0, 0) - whole.out);
  report.record("whole_out", whole.out);
  report.record("whole_lse", whole.lse);
  report.record("differences",
                {{"by_tiles", by_tiles}, {"in_reverse", in_reverse}, {"of_heed", of_heed}});
  report.say();
  report.say("    out = o / l = {:.4f}      lse = m + log l = {:.4f}", state.out / state.sum,
             state.largest + std::log(state.sum));
  report.say();
  report.paragraph(
      "softmax of all {} scores at once gives {:.4f}. The differences to it: tiles as above "
      "{:.1e}, "
      "from the last tile to the first {:.1e}, attention() {:.1e}, all in double.",
      kKeys, whole.out, by_tiles, in_reverse, of_heed);
  report.say();
  report.paragraph(
      "What to notice: where m stays, the factor is 1. Where a tile has a larger score, what was "
      "summed before is made smaller once, and no score is read again. o / l is at any time the "
      "attention over the keys seen so far. heed/attention/online_softmax.h has this for one row, "
      "OnlineSoftmax.");
}

void show_parts(Report& report) {
  constexpr std::size_t kCut = 5;
  report.step("Parts of the keys are joined by their lse");
  report.paragraph("out and lse say all that others must know of a part: lse = log Σ exp(s), and");
  report.say();
  report.say("    lse = log(exp(lse_a) + exp(lse_b))");
  report.say("    out = exp(lse_a − lse) out_a + exp(lse_b − lse) out_b");
  report.say();
  const auto a = of_keys(0, kCut);
  const auto b = of_keys(kCut, kKeys);
  const auto joined = merge_attention(a, b);
  const auto swapped = merge_attention(b, a);
  const double lse = std::log(std::exp(a.lse(0, 0, 0)) + std::exp(b.lse(0, 0, 0)));
  double by_hand = 0;
  auto rows = nlohmann::json::array();
  report.say("  {:<8} {:>8} {:>8} {:>16}", "keys", "out", "lse", "exp(lse_i − lse)");
  const auto show_part = [&](const std::string& keys, const AttentionOutput<double>& part) {
    const double out = part.out(0, 0, 0, 0);
    const double weight = std::exp(part.lse(0, 0, 0) - lse);
    by_hand += weight * out;
    report.say("  {:<8} {:>8.4f} {:>8.4f} {:>16.4f}", keys, out, part.lse(0, 0, 0), weight);
    rows.push_back({{"out", out}, {"lse", part.lse(0, 0, 0)}, {"weight", weight}});
  };
  show_part(fmt::format("0 to {}", kCut - 1), a);
  show_part(fmt::format("{} to {}", kCut, kKeys - 1), b);
  const WholeRow whole = all_at_once();
  const double of_merge = std::abs(joined.out(0, 0, 0, 0) - whole.out);
  const double of_swapped = std::abs(swapped.out(0, 0, 0, 0) - whole.out);
  report.say("  {:<8} {:>8.4f} {:>8.4f}", "joined", by_hand, lse);
  report.record("part_lse", nlohmann::json::array({a.lse(0, 0, 0), b.lse(0, 0, 0)}));
  report.record("parts", {{"rows", rows},
                          {"out", by_hand},
                          {"lse", lse},
                          {"by_hand", std::abs(by_hand - whole.out)},
                          {"merge", of_merge},
                          {"swapped", of_swapped}});
  report.say();
  report.paragraph(
      "Differences to all keys at once: by hand {:.1e}, merge_attention(a, b) {:.1e}, "
      "merge_attention(b, a) {:.1e}. So keys may be divided among threads, caches or machines: "
      "each "
      "computes its part with attention_with_lse(), and only out and lse are exchanged.",
      std::abs(by_hand - whole.out), of_merge, of_swapped);
}

std::string number_or_name(float number) {
  if (std::isnan(number)) return "NaN";
  return std::isinf(number) ? "∞" : fmt::format("{:.4g}", number);
}

// Computes softmax(scores + added) · values in float, from exponentials exp(score − subtracted).
struct FloatRow {
  float sum = 0;
  float out = 0;
};
FloatRow in_float(float added, float subtracted) {
  FloatRow row;
  for (std::size_t k = 0; k < kKeys; ++k) {
    const float power = std::exp(static_cast<float>(kScores[k]) + added - subtracted);
    row.sum += power;
    row.out += power * static_cast<float>(kValues[k]);
  }
  row.out /= row.sum;
  return row;
}

float heed_in_float(float added) {
  Tensor<float> key({1, 1, kKeys, 1});
  Tensor<float> value({1, 1, kKeys, 1});
  for (std::size_t k = 0; k < kKeys; ++k) {
    key.elements()[k] = static_cast<float>(kScores[k]) + added;
    value.elements()[k] = static_cast<float>(kValues[k]);
  }
  const Tensor<float> query({1, 1, 1, 1}, {1});
  return attention(query, key, value, {.scale = 1.0F})(0, 0, 0, 0);
}

void show_overflow(Report& report) {
  report.step("Why the largest score is subtracted");
  report.paragraph(
      "A number c added to every score changes no weight. In float32 it changes what becomes of "
      "Σ exp(s), if that is computed as it stands:");
  report.say();
  report.say("  {:>6} {:>15} {:>8} {:>15} {:>8} {:>12}", "c", "Σ exp(s)", "out", "l with m", "out",
             "attention()");
  auto rows = nlohmann::json::array();
  for (const float added : {0.0F, 80.0F, 1000.0F, -1000.0F}) {
    const float largest =
        static_cast<float>(*std::max_element(kScores.begin(), kScores.end())) + added;
    const FloatRow plain = in_float(added, 0);
    const FloatRow stable = in_float(added, largest);
    const float heed = heed_in_float(added);
    report.say("  {:>6} {:>15} {:>8} {:>15.4f} {:>8.4f} {:>12.4f}", added,
               number_or_name(plain.sum), number_or_name(plain.out), stable.sum, stable.out, heed);
    rows.push_back({{"added", added},
                    {"plain_sum", plain.sum},
                    {"plain_out", plain.out},
                    {"stable_sum", stable.sum},
                    {"stable_out", stable.out},
                    {"heed", heed}});
  }
  report.record("shifts", rows);
  report.say();
  report.paragraph(
      "What to notice: with m, every power is at most 1 and l at least 1, so that nothing "
      "overflows "
      "and nothing is divided by 0. Any number near the largest score would do; but it is known "
      "only when all scores were read. That is why m moves, and why the factor is needed.");
}

void teach(Report& report) {
  report.paragraph(
      "Attention as it is usually written computes a matrix of T × T scores, then one of weights, "
      "then the output. FlashAttention (Dao et al., 2022) computes the same output in tiles and "
      "stores neither matrix. heed computes attention so.");
  show_running_softmax(report);
  show_parts(report);
  show_overflow(report);
  show_memory(report);
  show_traffic(report);
  show_backward(report);
  show_causal_tiles(report);
  report.draw(draw_tiles);
}

}  // namespace flash_attention_lesson

extern const Lesson kFlashAttentionLesson = {
    "flash-attention", "tiles, the running softmax, memory, traffic, gradients",
    flash_attention_lesson::teach};

}  // namespace heed::learn
