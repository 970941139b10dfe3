/// Scores: the share of a head's attention that follows a pattern.
///
/// With A the weights of a head after the softmax and P(q) the keys of a pattern for query q:
///
///     score(P) = 1/|R| · Σ_{q ∈ R} Σ_{k ∈ P(q)} A[q, k]
///
/// R are the rows in which the head has a choice: the query sees a key of the pattern and another
/// one. The score is the share of their attention, Σ (A ∘ P) / Σ A over the rows of R, which
/// TransformerLens calls the error measure "mul" and takes over all rows. Rows without a choice are
/// left out: the first row of a causal mask, for example, would count as attention to the first
/// token for every head. The share of a sink is missing from both sums.
///
/// Sources: Clark et al., "What Does BERT Look At? An Analysis of BERT's Attention", 2019; Voita et
/// al., "Analyzing Multi-Head Self-Attention: Specialized Heads Do the Heavy Lifting, the Rest Can
/// Be Pruned", 2019; Olsson et al., "In-context Learning and Induction Heads", 2022;
/// TransformerLens, head_detector.py.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "heed/attention.h"
#include "heed/core/config.h"
#include "heed/core/tensor.h"
#include "heed/inspect/patterns.h"

namespace heed { inline namespace v0 { namespace inspect {

/// The weight of one query on one key. Without one, query is −1.
struct WeightExample {
  std::int64_t text = -1;
  std::int64_t query = -1;
  std::int64_t key = -1;
  double weight = 0;
};

/// The score of a pattern in a head.
struct PatternScore {
  double score = 0;
  double uniform = 0;     ///< the score of a head with equal weights on all keys
  std::int64_t rows = 0;  ///< |R|; if it is 0 the score is 0
  WeightExample strongest =
      {};  ///< the largest weight that follows the pattern; of equals the first
};

/// Measurements of a head. Rows count if they see at least two keys, all of them finite.
struct HeadMeasures {
  std::vector<PatternScore> patterns = {};  ///< in the order of the scorer's
  /// The constant distance d = key − query with the most attention, of those within ±max_offset
  /// that exist in at least half of the rows; and its score.
  std::int64_t offset = 0;
  PatternScore at_offset = {};
  /// The distance of the row's largest weight that occurs most often, and its share of the rows
  /// that have this distance: a head is positional from 0.9 on. Source: Voita et al. 2019.
  std::int64_t peak_offset = 0;
  double peak_share = 0;
  double confidence = 0;  ///< the mean of the rows' largest weights. Source: Voita et al. 2019
  std::int64_t rows = 0;  ///< the number of rows that count
  std::int64_t broken_rows = 0;  ///< the number of rows that see NaN or infinity
};

/// Accumulates measurements of the heads of a layer over texts. Memory is linear in the length of a
/// text.
class HEED_API HeadScorer {
 public:
  /// @param max_offset 0 to 4096
  /// @throws InvalidArgument when a number is out of range or a pattern has no function.
  HeadScorer(std::vector<TokenPattern> patterns, std::int64_t num_heads,
             std::int64_t max_offset = 16);
  ~HeadScorer();
  HeadScorer(HeadScorer&&) noexcept;
  HeadScorer& operator=(HeadScorer&&) noexcept;

  /// Adds a text. The bits do not depend on the number of threads.
  /// @param query [1, num_heads, n, head_dim]
  /// @param key [1, num_kv_heads, n, head_dim]
  /// @param tokens the n tokens
  /// @param text its number, for examples
  /// @throws InvalidArgument when shapes or options do not fit, or a pattern returns a key that is
  /// not a token. Nothing is added then.
  void add(FloatView query, FloatView key, const AttentionOptions& options,
           const TokenSequence& tokens, std::int64_t text = 0);

  /// The measurements of each head.
  std::vector<HeadMeasures> measures() const;
  const std::vector<TokenPattern>& patterns() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}}}  // namespace heed::v0::inspect
