/// Diagnostics of trained heads: measurements of each head of a layer over some sequences, in
/// memory linear in the lengths, and what they usually mean.
///
/// A row counts if it has a choice: if it sees at least two keys, all of them finite. Positions of
/// queries include query_offset. docs/diagnostics.md shows examples.
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

/// The lengths without padding. They hide nothing, which the mask must do; the diagnostics check
/// it.
struct DiagnosticsOptions {
  /// [batch]: the number of real queries of each sequence; empty: all. Rows of padding are ignored.
  std::vector<std::int64_t> q_lengths = {};
  /// [batch]: the number of real keys of each sequence; empty: all.
  std::vector<std::int64_t> kv_lengths = {};
};

/// Measurements of one head: means over the rows that count, 0 where there are none.
struct HeadDiagnostics {
  std::int64_t rows = 0;         ///< the number of rows that count
  std::int64_t broken_rows = 0;  ///< rows that see NaN or infinity; no other number includes them
  /// The mean of −Σ w ln w / ln n over the n keys that a row sees: 0 where one key has all the
  /// weight, 1 where all keys have the same.
  double entropy = 0;
  double total = 0;  ///< the mean of Σ w: 1 unless a sink takes a share
  /// The mean weight on keys that are padding, over all rows that see a key. If it is not 0, the
  /// mask is wrong.
  double padding = 0;
  double first = 0;  ///< the mean weight on key 0
  /// The mean weight on the key one before the query's position, at it and one after it, over the
  /// rows for which this key exists (hidden or not).
  double previous = 0;
  double same = 0;
  double next = 0;
  /// The mean weight on the key `offset` places after the query's position (before it, if
  /// negative). The offset is the one with the most weight of those that exist for at least half of
  /// the rows.
  double offset_weight = 0;
  std::int64_t offset = 0;
  /// The share of a sequence's weight that goes to the key with the largest share, as a mean over
  /// the sequences, and the key that most often has the largest share.
  double vertical = 0;
  std::int64_t vertical_key = -1;
};

/// Measurements of the heads of a layer.
struct AttentionDiagnostics {
  std::vector<HeadDiagnostics> heads;
  /// [num_heads, num_heads]: the cosine of the angle between two heads' weights of a row, Σ a·b /
  /// √(Σ a² · Σ b²), as a mean over the rows that count in both: 1 for the same weights, 0 for no
  /// key in common.
  Tensor<double> similarity;

  /// The mean similarity of two different heads; 0 for fewer than two heads.
  HEED_API double mean_similarity() const;
};

/// Measures the heads of attention(query, key, …) in memory linear in the lengths. Weights are
/// those of the softmax, before dropout.
/// @param query [batch, num_heads, q_len, head_dim]
/// @param key [batch, num_kv_heads, kv_len, head_dim]; both in any layout that attention() takes
/// @return one entry per head; the bits do not depend on the number of threads
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

/// attention_diagnostics() of weights that are given.
/// @param weights [batch, num_heads, q_len, kv_len]
/// @param mask the keys that each query could see, apart from key lengths. A key that is hidden or
/// is padding counts as seen only where its weight is not 0.
/// @throws InvalidArgument when mask or lengths do not fit, a weight is negative, or a row sums to
/// more than 1.01.
HEED_API AttentionDiagnostics weight_diagnostics(FloatView weights, const Mask& mask = {},
                                                 const DiagnosticsOptions& diagnostics = {});
HEED_API AttentionDiagnostics weight_diagnostics(DoubleView weights, const Mask& mask = {},
                                                 const DiagnosticsOptions& diagnostics = {});

/// The kinds of findings.
enum class FindingKind {
  kNotFinite,       ///< a problem: rows that see NaN or infinity
  kPadding,         ///< a problem: weight on padding
  kUniform,         ///< a problem: entropy near ln n
  kCollapse,        ///< a problem: the heads of a layer are alike
  kDead,            ///< a problem: a head with constantly uniform weights, or with all on its sink
  kDuplicate,       ///< a problem: two heads that are alike
  kFirstTokenSink,  ///< a pattern: most weight on key 0
  kPreviousToken,   ///< a pattern: most weight one place before the query
  kNextToken,       ///< a pattern: most weight one place after the query
  kDiagonal,        ///< a pattern: most weight at the query's place
  kOffset,          ///< a pattern: most weight some other number of places away
  kVertical,        ///< a pattern: one key other than the first receives most weight
};

/// The name of a kind, for example "first-token sink".
HEED_API std::string_view name_of(FindingKind kind);

/// One thing found in the heads of a layer.
struct Finding {
  FindingKind kind = FindingKind::kUniform;
  std::vector<std::int64_t> heads;  ///< the heads it was found in
  double score = 0;                 ///< the measurement, as a mean over these heads
  bool is_problem = false;          ///< false: a pattern, which is no problem
  std::string measured;             ///< the measurement, in words and numbers
  std::string meaning;              ///< what it usually means
  std::string advice;               ///< what to try
};

/// Thresholds of findings: a measurement is reported when it exceeds its threshold.
struct FindingThresholds {
  double uniform = 0.95;    ///< of a head's entropy
  double dead = 0.999;      ///< of a head's entropy
  double silent = 0.95;     ///< of the share that a head's sink takes
  double collapse = 0.9;    ///< of the mean similarity of two heads of a layer
  double duplicate = 0.95;  ///< of the similarity of two heads
  double pattern = 0.5;     ///< of the mean weight on a place
};

/// All findings in the measurements, problems first. Of several patterns of one head, only the one
/// with the highest score is reported.
HEED_API std::vector<Finding> attention_findings(const AttentionDiagnostics& diagnostics,
                                                 const FindingThresholds& thresholds = {});

}}  // namespace heed::v0
