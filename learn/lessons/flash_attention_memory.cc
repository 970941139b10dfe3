// The lesson flash-attention: bytes, memory traffic, and the tiles of a causal matrix.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "heed/attention/mask.h"
#include "heed/attention/mask_text.h"
#include "heed/core/parallel.h"
#include "lessons/flash_attention.h"
#include "lessons/numbers.h"

namespace heed::learn::flash_attention_lesson {

constexpr std::int64_t kFloat = sizeof(float);
constexpr std::int64_t kHeadDim = 64;
constexpr std::array<std::int64_t, 5> kLengths{256, 1024, 4096, 16384, 65536};

double ratio(std::int64_t numerator, std::int64_t denominator) {
  return static_cast<double>(numerator) / static_cast<double>(denominator);
}

AttentionPlan plan_of(std::int64_t length, std::int64_t head_dim, const Mask& mask) {
  const ThreadLimit one_thread(1);
  return plan({.q_len = length, .kv_len = length, .head_dim = head_dim, .value_dim = head_dim},
              {.mask = mask});
}

std::vector<Bytes> bytes_of_lengths() {
  std::vector<Bytes> all;
  all.reserve(kLengths.size());
  for (const std::int64_t length : kLengths) {
    const AttentionPlan planned = plan_of(length, kHeadDim);
    all.push_back({.length = length,
                   .matrices = 2 * length * length * kFloat,
                   .arguments = 4 * length * kHeadDim * kFloat,
                   .forward = static_cast<std::int64_t>(planned.workspace_bytes()),
                   .backward = static_cast<std::int64_t>(planned.backward_workspace_bytes())});
  }
  return all;
}

void show_growth_of_bytes(Report& report, const std::vector<Bytes>& all) {
  const Bytes& before = all[all.size() - 2];
  const Bytes& last = all.back();
  const auto growth = [](std::int64_t from, std::int64_t to) {
    return from == 0 ? 1.0 : ratio(to, from);
  };
  const double of_matrices = growth(before.matrices, last.matrices);
  const double of_forward = growth(before.forward, last.forward);
  const double of_backward = growth(before.backward, last.backward);
  std::int64_t bytes_per_token = 0;
  for (const Bytes& bytes : all) {
    bytes_per_token = std::max(bytes_per_token, (bytes.backward + bytes.length - 1) / bytes.length);
  }
  const std::int64_t weights = last.matrices / 2;
  const std::int64_t lse = 2 * last.length * kFloat;
  report.record("memory_growth", {{"matrices", of_matrices},
                                  {"forward", of_forward},
                                  {"backward", of_backward},
                                  {"backward_per_token", bytes_per_token},
                                  {"kept_weights", weights},
                                  {"kept_lse", lse}});
  report.paragraph(
      "What to notice: from T = {} to {} the matrices grow {:.1f} times, the workspace of the "
      "forward pass {:.1f} times, that of the backward pass {:.1f} times ({} bytes for each token "
      "at most). In training the matrix of weights stays from the forward to the backward pass, {} "
      "bytes for each head at T = {}; attention_with_lse() leaves lse and its rounding error "
      "instead, {} bytes.",
      before.length, last.length, of_matrices, of_forward, of_backward, bytes_per_token,
      grouped(weights), last.length, grouped(lse));
}

void show_memory(Report& report) {
  report.step("Memory: what is stored, and what is not");
  report.paragraph(
      "One head of {} dimensions and T tokens in float32, in bytes: the matrices of scores and "
      "weights, 8 T²; query, key, value and output; and what heed takes beside those, the "
      "workspace_bytes() and backward_workspace_bytes() of plan() for one thread ({} here), which "
      "computes nothing yet.",
      kHeadDim, plan_of(kLengths[0], kHeadDim).target());
  report.say();
  report.say("  {:>6} {:>19} {:>13} {:>10} {:>13}", "T", "scores and weights", "q, k, v, out",
             "forward", "backward");
  auto rows = nlohmann::json::array();
  const std::vector<Bytes> all = bytes_of_lengths();
  for (const Bytes& bytes : all) {
    report.say("  {:>6} {:>19} {:>13} {:>10} {:>13}", bytes.length, grouped(bytes.matrices),
               grouped(bytes.arguments), grouped(bytes.forward), grouped(bytes.backward));
    rows.push_back({{"length", bytes.length},
                    {"matrices", bytes.matrices},
                    {"arguments", bytes.arguments},
                    {"forward", bytes.forward},
                    {"backward", bytes.backward}});
  }
  report.record("memory", rows);
  report.say();
  show_growth_of_bytes(report, all);
}

// Counts the numbers that attention with stored matrices reads from and writes to memory, for N
// rows of d dimensions: S = Q Kᵀ, then P = softmax(S), then O = P V.
std::int64_t traffic_of_matrices(std::int64_t length, std::int64_t dim) {
  const std::int64_t vectors = length * dim;
  const std::int64_t matrix = length * length;
  const std::int64_t scores = 2 * vectors + matrix;
  const std::int64_t weights = matrix + matrix;
  const std::int64_t out = matrix + vectors + vectors;
  return scores + weights + out;
}

// Counts the traffic of Algorithm 1 of the paper with a cache of `cache` numbers, loop by loop: ⌈M
// / 4d⌉ keys and their values are read at a time, and for each of these tiles all queries with
// their state.
std::int64_t traffic_of_tiles(std::int64_t length, std::int64_t dim, std::int64_t cache) {
  const std::int64_t state = dim + 2;  // o, l and m of one query
  const std::int64_t keys = (cache + 4 * dim - 1) / (4 * dim);
  std::int64_t numbers = length * state;  // the initial write
  for (std::int64_t first = 0; first < length; first += keys) {
    const std::int64_t in_tile = std::min(keys, length - first);
    numbers += 2 * in_tile * dim;               // keys and values
    numbers += length * (dim + state + state);  // queries; their state is read and written
  }
  return numbers;
}

// Prints a table and returns the largest relative difference between its last two ratios.
double show_traffic_of(Report& report, std::int64_t cache, std::span<const std::int64_t> dims) {
  constexpr std::int64_t kLong = 16384;
  report.paragraph("M = {} numbers ({} KiB of float32)", grouped(cache), cache * kFloat / 1024);
  report.say();
  report.say("  {:>5} {:>7} {:>15} {:>15} {:>9} {:>9} {:>9}", "d", "d² / M", "matrices", "tiles",
             "N = 1024", "4096", kLong);
  auto rows = nlohmann::json::array();
  double change = 0;
  for (const std::int64_t dim : dims) {
    std::array<double, 3> times{};
    std::transform(
        kLengths.begin() + 1, kLengths.begin() + 4, times.begin(), [&](std::int64_t length) {
          return ratio(traffic_of_matrices(length, dim), traffic_of_tiles(length, dim, cache));
        });
    change = std::max(change, std::abs(times[2] / times[1] - 1));
    const std::int64_t matrices = traffic_of_matrices(kLong, dim);
    const std::int64_t tiles = traffic_of_tiles(kLong, dim, cache);
    report.say("  {:>5} {:>7.3f} {:>15} {:>15} {:>9.2f} {:>9.2f} {:>9.2f}", dim,
               ratio(dim * dim, cache), grouped(matrices), grouped(tiles), times[0], times[1],
               times[2]);
    rows.push_back({{"dim", dim}, {"matrices", matrices}, {"tiles", tiles}, {"times", times}});
  }
  report.record(fmt::format("traffic_{}", cache), rows);
  report.say();
  return change;
}

// heed nests the loops the other way: for a group of queries it reads all keys.
void show_traffic_of_heed(Report& report) {
  constexpr std::int64_t kLength = 16384;
  const AttentionPlan planned = plan_of(kLength, kHeadDim);
  const std::int64_t rows = std::max<std::int64_t>(1, planned.tiles().rows_together);
  const std::int64_t passes = (kLength + rows - 1) / rows;
  const std::int64_t numbers = 2 * kLength * kHeadDim * (passes + 1);
  const std::int64_t matrices = traffic_of_matrices(kLength, kHeadDim);
  report.record("traffic_of_heed", {{"length", kLength},
                                    {"rows", rows},
                                    {"numbers", numbers},
                                    {"times", ratio(matrices, numbers)}});
  report.paragraph(
      "heed has the loops the other way round, as FlashAttention-2 has: {} queries at a time go "
      "through all keys ({} here), so that o, l and m are not read and written for every tile. At "
      "d = {}, N = {} that is {} numbers, {:.1f} times fewer than with matrices, if no key is "
      "still "
      "in the cache when the next queries need it.",
      rows, planned.target(), kHeadDim, kLength, grouped(numbers), ratio(matrices, numbers));
}

void show_traffic(Report& report) {
  report.step("Reads and writes, counted");
  report.paragraph(
      "Between a large memory and a cache that holds M numbers, with N tokens of d dimensions, the "
      "paper (Theorem 2) has Θ(N d + N²) reads and writes for attention with matrices and "
      "Θ(N² d² / M) for tiles: each of 4 d N / M tiles of keys has all queries read once. Counted "
      "below are the loops of its Algorithms 0 and 1, in numbers at N = 16384, and how many times "
      "fewer they are with tiles:");
  report.say();
  constexpr std::array<std::int64_t, 5> kDims{64, 128, 256, 512, 1024};
  constexpr std::array<std::int64_t, 4> kSmallDims{16, 32, 64, 128};
  const double change =
      std::max(show_traffic_of(report, 262144, kDims), show_traffic_of(report, 8192, kSmallDims));
  report.record("traffic_change", change);
  report.paragraph(
      "What to notice: the gain falls as d² / M rises; from N = 4096 to 16384 it changes by {:.0f} "
      "% at most. Where d² is beyond M / 3 (each tile reads and writes 3 d numbers of a query, a "
      "matrix has 4 of a pair) it is below 1: tiles take more than matrices do. The multiply-adds, "
      "2 N² d, are the same both ways.",
      100 * change);
  report.say();
  show_traffic_of_heed(report);
}

void show_causal_tiles(Report& report) {
  report.step("Causal: tiles that are not visited");
  const AttentionPlan first = plan_of(kLengths[0], kHeadDim, causal());
  if (first.target() == "reference") {
    report.paragraph("The reference, which computes here, goes through keys one by one.");
    return;
  }
  const TileCounts tile = first.tiles();
  report.paragraph(
      "A tile of which no query sees any key is neither read nor computed. heed's tiles are {} "
      "queries by {} keys here ({}), plan().tiles() counts them; mixed are those on the diagonal, "
      "where single pairs are hidden. Beside it the pairs that count_visible() counts, and the "
      "tiles visited under causal & sliding_window(255, 0):",
      tile.rows, tile.keys, first.target());
  report.say();
  report.say("  {:>6} {:>9} {:>9} {:>7} {:>9} {:>9} {:>9}", "T", "tiles", "visited", "mixed",
             "of tiles", "of pairs", "window");
  const Mask window = parse_mask("causal & sliding_window(255, 0)");
  auto rows = nlohmann::json::array();
  for (const std::int64_t length : kLengths) {
    const TileCounts tiles = plan_of(length, kHeadDim, causal()).tiles();
    const TileCounts of_window = plan_of(length, kHeadDim, window).tiles();
    const std::int64_t visited = tiles.total - tiles.skipped;
    const std::int64_t in_window = of_window.total - of_window.skipped;
    const std::int64_t pairs = count_visible(causal(), {.q_len = length, .kv_len = length});
    report.say("  {:>6} {:>9} {:>9} {:>7} {:>7.1f} % {:>7.1f} % {:>9}", length,
               grouped(tiles.total), grouped(visited), grouped(tiles.mixed),
               100 * ratio(visited, tiles.total), 100 * ratio(pairs, length * length),
               grouped(in_window));
    rows.push_back({{"length", length},
                    {"total", tiles.total},
                    {"visited", visited},
                    {"mixed", tiles.mixed},
                    {"pairs", pairs},
                    {"window", in_window}});
  }
  report.record("causal", {{"panel_rows", tile.rows}, {"tile_keys", tile.keys}, {"rows", rows}});
  report.say();
  report.paragraph(
      "What to notice: the visited tiles go down to half of all as T grows, as the pairs do; the "
      "mixed ones grow with T, not with T². Under the window all visited ones do.");
}

}  // namespace heed::learn::flash_attention_lesson
