/// Whether attention learned anything: what each head of a layer does, measured over some sequences
/// without building the matrix, and what such measurements usually mean.
///
/// A row counts where it has a choice: where it sees at least two keys and nothing that is not a
/// finite number. The others could not do anything else. Positions of queries include query_offset.
/// docs/diagnostics.md shows what this is good for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/attention.h"
#include "heed/attention/mask.h"
#include "heed/core/config.h"
#include "heed/core/data_type.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// What is padding. Nothing is hidden by it: that is the mask's business, and is checked.
struct DiagnosticsOptions {
  /// [batch]: how many queries of each sequence are real; none: all. Rows of others are ignored.
  std::vector<std::int64_t> q_lengths = {};
  /// [batch]: how many keys of each sequence are real; none: all.
  std::vector<std::int64_t> kv_lengths = {};
};

/// What one head does: means over the rows that count, 0 where there are none.
struct HeadDiagnostics {
  std::int64_t rows = 0;         ///< how many count
  std::int64_t broken_rows = 0;  ///< how many see NaN or infinity, which nothing else here includes
  /// Of −Σ w ln w / ln n over the n keys that a row sees: 0 where one key has everything, 1 where
  /// all have the same.
  double entropy = 0;
  double total = 0;  ///< of Σ w: 1 unless a sink takes a share
  /// Of the weight on keys that are padding, over all rows that see anything: 0, or the mask is
  /// wrong.
  double padding = 0;
  double first = 0;  ///< of the weight on key 0
  /// Of the weight on the key one before the query's position, at it and one behind it, over the
  /// rows for which such a key exists (hidden or not).
  double previous = 0;
  double same = 0;
  double next = 0;
  /// Of the weight on the key `offset` places behind the query's position (before it, if negative),
  /// for the offset that gets most of those which exist for half of the rows at least.
  double offset_weight = 0;
  std::int64_t offset = 0;
  /// The share of all weight of a sequence that one key receives, the one that receives most: its
  /// mean over the sequences, and the key which it is most often.
  double vertical = 0;
  std::int64_t vertical_key = -1;
};

/// What the heads of a layer do.
struct AttentionDiagnostics {
  std::vector<HeadDiagnostics> heads;
  /// [num_heads, num_heads]: the cosine of the angle between two heads' weights of a row,
  /// Σ a·b / √(Σ a² · Σ b²), its mean over the rows that count in both: 1 for the same pattern, 0
  /// for no key in common.
  Tensor<double> similarity;

  /// The mean similarity of two different heads; 0 of less than two.
  HEED_API double mean_similarity() const;
};

/// Measures the heads of attention(query, key, …) in memory linear in the lengths.
/// @param query [batch, num_heads, q_len, head_dim]
/// @param key [batch, num_kv_heads, kv_len, head_dim]; both in any layout that attention() takes
/// Weights are those of the softmax, before dropout. The same bits whatever the number of threads.
/// @throws InvalidArgument when shapes, options or lengths do not fit, before anything is computed.
HEED_API AttentionDiagnostics attention_diagnostics(FloatView query, FloatView key,
                                                    const AttentionOptions& options = {},
                                                    const DiagnosticsOptions& diagnostics = {});
HEED_API AttentionDiagnostics attention_diagnostics(Float16View query, Float16View key,
                                                    const AttentionOptions& options = {},
                                                    const DiagnosticsOptions& diagnostics = {});
HEED_API AttentionDiagnostics attention_diagnostics(BFloat16View query, BFloat16View key,
                                                    const AttentionOptions& options = {},
                                                    const DiagnosticsOptions& diagnostics = {});
HEED_API AttentionDiagnostics attention_diagnostics(DoubleView query, DoubleView key,
                                                    const AttentionOptions64& options = {},
                                                    const DiagnosticsOptions& diagnostics = {});

/// The same of weights that somebody else has computed, in any way.
/// @param weights [batch, num_heads, q_len, kv_len]
/// @param mask which keys each query could see, key lengths aside: what was hidden by it or is
/// padding counts as seen only where its weight is not 0.
/// @throws InvalidArgument when mask or lengths do not fit, a weight is negative, or a row sums to
/// more than 1.01.
HEED_API AttentionDiagnostics weight_diagnostics(FloatView weights, const Mask& mask = {},
                                                 const DiagnosticsOptions& diagnostics = {});
HEED_API AttentionDiagnostics weight_diagnostics(DoubleView weights, const Mask& mask = {},
                                                 const DiagnosticsOptions& diagnostics = {});

/// What can be found in measurements.
enum class FindingKind {
  kNotFinite,       ///< a problem: rows that see NaN or infinity
  kPadding,         ///< a problem: padding is looked at
  kUniform,         ///< a problem: entropy near ln n
  kCollapse,        ///< a problem: the heads of a layer are alike
  kDead,            ///< a problem: a head that looks at nothing in particular, ever, or at nothing
  kDuplicate,       ///< a problem: two heads that are alike
  kFirstTokenSink,  ///< a pattern: most weight on key 0
  kPreviousToken,   ///< a pattern: most weight one place before
  kNextToken,       ///< a pattern: one place behind
  kDiagonal,        ///< a pattern: at the same place
  kOffset,          ///< a pattern: some other number of places away
  kVertical,        ///< a pattern: one key, not the first, receives most
};

/// "first-token sink", for example.
HEED_API std::string_view name_of(FindingKind kind);

/// One thing found in the heads of a layer.
struct Finding {
  FindingKind kind = FindingKind::kUniform;
  std::vector<std::int64_t> heads;  ///< which
  double score = 0;                 ///< what was measured, the mean over them
  bool is_problem = false;          ///< or else a pattern, which is good to know
  std::string measured;             ///< what was measured, in words and numbers
  std::string meaning;              ///< what it usually means
  std::string advice;               ///< what to try
};

/// From where on something is found: what is measured must exceed it.
struct FindingThresholds {
  double uniform = 0.95;    ///< of a head's entropy
  double dead = 0.999;      ///< of a head's entropy
  double silent = 0.95;     ///< of what a head's sink takes
  double collapse = 0.9;    ///< of the mean similarity of two heads of a layer
  double duplicate = 0.95;  ///< of the similarity of two heads
  double pattern = 0.5;     ///< of the mean weight on a place
};

/// Everything that the measurements say, problems first. Among the patterns a head is named by the
/// one with the highest score.
HEED_API std::vector<Finding> attention_findings(const AttentionDiagnostics& diagnostics,
                                                 const FindingThresholds& thresholds = {});

}}  // namespace heed::v0
