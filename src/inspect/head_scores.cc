// Scores of heads: computes weights block by block, and sums those on the keys of patterns.
#include "heed/inspect/head_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "heed/attention/statistics.h"
#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "inspect/visible_rows.h"

namespace heed { inline namespace v0 { namespace inspect {

namespace {

// Rows whose weights each thread keeps at a time: few, so that memory is linear in the length, but
// enough that the cost of a call is small.
constexpr std::int64_t kRowsOfBlock = 64;

struct PatternSum {
  double weight = 0;
  double uniform = 0;
  std::int64_t rows = 0;
  WeightExample strongest = {};

  PatternScore mean() const {
    if (rows == 0) return {};
    const auto count = static_cast<double>(rows);
    return {weight / count, uniform / count, rows, strongest};
  }

  void add(const WeightExample& example) {
    weight += example.weight;
    if (strongest.query < 0 || example.weight > strongest.weight) strongest = example;
  }
};

struct HeadSums {
  std::vector<PatternSum> patterns;
  std::vector<PatternSum> offsets;  // for offsets −max_offset … max_offset
  // for the same offsets: the number of rows with their largest weight there
  std::vector<std::int64_t> peaks;
  double largest = 0;
  std::int64_t rows = 0;
  std::int64_t broken_rows = 0;
};

// A row of weights of one text.
struct WeightRow {
  std::int64_t text;
  std::int64_t query;
  std::span<const float> weights;
  const VisibleRows* visible;
  std::int64_t row;  // its number in `visible`

  WeightExample example(std::int64_t key) const {
    return {text, query, key, static_cast<double>(weights[static_cast<std::size_t>(key)])};
  }
};

// The key of the largest weight, the first of equal ones; −1 if a weight is not finite.
std::int64_t peak_of(std::span<const float> weights) {
  std::size_t peak = 0;
  for (std::size_t key = 0; key < weights.size(); ++key) {
    if (!std::isfinite(weights[key])) return -1;
    if (weights[key] > weights[peak]) peak = key;
  }
  return static_cast<std::int64_t>(peak);
}

void add_pattern(const WeightRow& row, std::span<const std::int64_t> keys, PatternSum& sum) {
  const auto count = static_cast<std::int64_t>(keys.size());
  const std::int64_t seen = row.visible->count(row.row);
  if (count == 0 || count == seen) return;
  for (const std::int64_t key : keys) sum.add(row.example(key));
  sum.uniform += static_cast<double>(count) / static_cast<double>(seen);
  ++sum.rows;
}

void add_offsets(const WeightRow& row, std::int64_t max_offset, HeadSums& sums) {
  const auto length = static_cast<std::int64_t>(row.weights.size());
  const std::int64_t first = std::max<std::int64_t>(row.query - max_offset, 0);
  const std::int64_t last = std::min(row.query + max_offset, length - 1);
  for (std::int64_t key = first; key <= last; ++key) {
    if (!row.visible->sees(row.row, key)) continue;
    add_pattern(row, std::span(&key, 1),
                sums.offsets[static_cast<std::size_t>(key - row.query + max_offset)]);
  }
}

// The offset with the largest mean of `amount` over its rows, among offsets that at least half of
// all rows have.
template <class Amount>
std::int64_t best_offset(const HeadSums& sums, Amount amount) {
  std::int64_t best = -1;
  double largest = -1;
  for (std::size_t i = 0; i < sums.offsets.size(); ++i) {
    const std::int64_t rows = sums.offsets[i].rows;
    if (rows == 0 || 2 * rows < sums.rows) continue;
    const double mean = amount(i) / static_cast<double>(rows);
    if (mean <= largest) continue;
    largest = mean;
    best = static_cast<std::int64_t>(i);
  }
  return best;
}

HeadMeasures measures_of(const HeadSums& sums, std::int64_t max_offset) {
  HeadMeasures measures;
  for (const PatternSum& sum : sums.patterns) measures.patterns.push_back(sum.mean());
  measures.rows = sums.rows;
  measures.broken_rows = sums.broken_rows;
  if (sums.rows == 0) return measures;
  measures.confidence = sums.largest / static_cast<double>(sums.rows);
  const std::int64_t heaviest =
      best_offset(sums, [&](std::size_t i) { return sums.offsets[i].weight; });
  if (heaviest >= 0) {
    measures.offset = heaviest - max_offset;
    measures.at_offset = sums.offsets[static_cast<std::size_t>(heaviest)].mean();
  }
  const std::int64_t highest =
      best_offset(sums, [&](std::size_t i) { return static_cast<double>(sums.peaks[i]); });
  if (highest >= 0) {
    const auto i = static_cast<std::size_t>(highest);
    measures.peak_offset = highest - max_offset;
    measures.peak_share =
        static_cast<double>(sums.peaks[i]) / static_cast<double>(sums.offsets[i].rows);
  }
  return measures;
}

void check_not_negative(const char* name, std::int64_t value) {
  if (value >= 0) return;
  throw InvalidArgument(
      fmt::format("HeadScorer: {} is {}, expected a number that is not negative", name, value));
}

// Checks the operands of one text; attention_weights() has checked that they fit each other.
void check_text(FloatView query, FloatView key, std::int64_t num_heads,
                const TokenSequence& tokens) {
  const std::int64_t n = tokens.length();
  if (query.extent(0) != 1 || query.extent(1) != num_heads || query.extent(2) != n) {
    throw InvalidArgument(
        fmt::format("HeadScorer::add: query has shape {}, expected [1, {}, {}, "
                    "head_dim] for {} heads and {} tokens",
                    to_string(query.shape()), num_heads, n, num_heads, n));
  }
  if (key.extent(2) != n) {
    throw InvalidArgument(fmt::format(
        "HeadScorer::add: key has shape {}, expected [1, num_kv_heads, {}, head_dim] for {} tokens",
        to_string(key.shape()), n, n));
  }
  const auto count = static_cast<std::size_t>(n);
  if (tokens.is_special.size() == count && tokens.is_punctuation.size() == count &&
      tokens.words.size() == count) {
    return;
  }
  throw InvalidArgument(
      fmt::format("HeadScorer::add: {} tokens have {} marks of special ones, {} of punctuation and "
                  "{} words, expected as many of each",
                  n, tokens.is_special.size(), tokens.is_punctuation.size(), tokens.words.size()));
}

// The keys of each pattern for a block of a text's queries.
class BlockKeys {
 public:
  BlockKeys(const std::vector<TokenPattern>& patterns, const TokenSequence& tokens,
            RowRange queries)
      : num_patterns_(patterns.size()) {
    for (std::int64_t q = queries.begin; q < queries.end; ++q) {
      for (const TokenPattern& pattern : patterns) {
        pattern.keys(tokens, q, keys_.emplace_back());
        check(pattern, tokens, keys_.back());
      }
    }
  }

  // The keys of a pattern that the query sees.
  std::vector<std::int64_t> seen(const WeightRow& row, std::size_t pattern) const {
    std::vector<std::int64_t> result;
    for (const std::int64_t key :
         keys_[static_cast<std::size_t>(row.row) * num_patterns_ + pattern]) {
      if (row.visible->sees(row.row, key)) result.push_back(key);
    }
    return result;
  }

 private:
  static void check(const TokenPattern& pattern, const TokenSequence& tokens,
                    const std::vector<std::int64_t>& keys) {
    std::int64_t before = -1;
    for (const std::int64_t key : keys) {
      if (key <= before || key >= tokens.length()) {
        throw InvalidArgument(fmt::format(
            "HeadScorer::add: the pattern \"{}\" gives key {} after key {}, expected rising keys "
            "of {} tokens",
            pattern.name, key, before, tokens.length()));
      }
      before = key;
    }
  }

  std::size_t num_patterns_;
  std::vector<std::vector<std::int64_t>> keys_;  // [row][pattern]
};

void add_row(const WeightRow& row, const BlockKeys& keys, std::int64_t max_offset, HeadSums& sums) {
  if (row.visible->count(row.row) < 2) return;
  const std::int64_t peak = peak_of(row.weights);
  if (peak < 0) {
    ++sums.broken_rows;
    return;
  }
  ++sums.rows;
  sums.largest += static_cast<double>(row.weights[static_cast<std::size_t>(peak)]);
  if (std::abs(peak - row.query) <= max_offset) {
    ++sums.peaks[static_cast<std::size_t>(peak - row.query + max_offset)];
  }
  add_offsets(row, max_offset, sums);
  for (std::size_t i = 0; i < sums.patterns.size(); ++i) {
    add_pattern(row, keys.seen(row, i), sums.patterns[i]);
  }
}

}  // namespace

struct HeadScorer::State {
  std::vector<TokenPattern> patterns;
  std::int64_t max_offset = 0;
  std::vector<HeadSums> heads;

  std::vector<HeadSums> empty_sums(std::int64_t num_heads) const {
    const auto offsets = static_cast<std::size_t>(2 * max_offset + 1);
    const HeadSums sums{.patterns = std::vector<PatternSum>(patterns.size()),
                        .offsets = std::vector<PatternSum>(offsets),
                        .peaks = std::vector<std::int64_t>(offsets)};
    return std::vector<HeadSums>(static_cast<std::size_t>(num_heads), sums);
  }
};

HeadScorer::HeadScorer(std::vector<TokenPattern> patterns, std::int64_t num_heads,
                       std::int64_t max_offset)
    : state_(std::make_unique<State>()) {
  check_not_negative("num_heads", num_heads);
  check_not_negative("max_offset", max_offset);
  constexpr std::int64_t kLargestOffset = 4096;
  if (max_offset > kLargestOffset) {
    throw InvalidArgument(fmt::format("HeadScorer: max_offset is {}, expected at most {}",
                                      max_offset, kLargestOffset));
  }
  for (const TokenPattern& pattern : patterns) {
    if (pattern.keys) continue;
    throw InvalidArgument(
        fmt::format("HeadScorer: the pattern \"{}\" has no function of keys", pattern.name));
  }
  state_->patterns = std::move(patterns);
  state_->max_offset = max_offset;
  state_->heads = state_->empty_sums(num_heads);
}

HeadScorer::~HeadScorer() = default;
HeadScorer::HeadScorer(HeadScorer&&) noexcept = default;
HeadScorer& HeadScorer::operator=(HeadScorer&&) noexcept = default;

void HeadScorer::add(FloatView query, FloatView key, const AttentionOptions& options,
                     const TokenSequence& tokens, std::int64_t text) {
  // Without rows: only checks shapes and options.
  static_cast<void>(attention_weights(query, key, {}, options));
  const auto num_heads = static_cast<std::int64_t>(state_->heads.size());
  check_text(query, key, num_heads, tokens);
  const std::int64_t n = tokens.length();
  const MaskOfText mask(options, num_heads, n);
  std::vector<HeadSums> sums = state_->heads;  // a copy, so that a failure changes nothing
  for (std::int64_t begin = 0; begin < n; begin += kRowsOfBlock) {
    const RowRange queries{begin, std::min(begin + kRowsOfBlock, n)};
    const BlockKeys keys(state_->patterns, tokens, queries);
    const VisibleRows shared = mask.rows(0, queries);
    parallel_for(0, num_heads, 1, [&](std::int64_t head, std::int64_t /*last*/) {
      const VisibleRows own = mask.depends_on_head() ? mask.rows(head, queries) : VisibleRows();
      std::vector<AttentionRow> rows;
      for (std::int64_t q = queries.begin; q < queries.end; ++q) rows.push_back({0, head, q});
      const Tensor<float> weights = attention_weights(query, key, rows, options);
      for (std::int64_t i = 0; i < queries.end - queries.begin; ++i) {
        add_row({.text = text,
                 .query = queries.begin + i,
                 .weights = weights.view().select(0, i).elements(),
                 .visible = mask.depends_on_head() ? &own : &shared,
                 .row = i},
                keys, state_->max_offset, sums[static_cast<std::size_t>(head)]);
      }
    });
  }
  state_->heads = std::move(sums);
}

std::vector<HeadMeasures> HeadScorer::measures() const {
  std::vector<HeadMeasures> measures;
  for (const HeadSums& sums : state_->heads) {
    measures.push_back(measures_of(sums, state_->max_offset));
  }
  return measures;
}

const std::vector<TokenPattern>& HeadScorer::patterns() const noexcept { return state_->patterns; }

}}}  // namespace heed::v0::inspect
