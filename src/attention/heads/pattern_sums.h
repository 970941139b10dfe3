// What is added up over the rows of attention to say what its heads do, whichever backend computed
// the weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/attention/diagnostics.h"
#include "heed/attention/mask.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

// How a row counts.
enum class RowKind : std::uint8_t {
  kEmpty,    // it sees no key
  kForced,   // it sees one
  kChooses,  // it sees two at least
  kBroken,   // it sees NaN or infinity
};

RowKind kind_of_row(bool is_finite, std::int64_t keys_seen);

// Over some rows of one sequence.
struct PatternSums {
  explicit PatternSums(const ScoreShape& shape);

  // Everything about a row but its weights: `entropy` is −Σ w ln w in nats.
  void add_row(std::int64_t head, std::int64_t q, RowKind kind, std::int64_t keys_seen,
               double entropy);

  // The place of key k for query q in offset_mass.
  std::int64_t offset_index(std::int64_t q, std::int64_t k) const { return k - q + q_len - 1; }

  void add(const PatternSums& others);

  struct Head {
    std::int64_t rows = 0;
    std::int64_t forced_rows = 0;
    std::int64_t broken_rows = 0;
    double entropy = 0;  // normalised
  };

  std::int64_t q_len;
  std::int64_t kv_len;
  std::int64_t kv_length;  // of these so many keys are real
  std::vector<Head> heads;
  Tensor<double> mass;         // [num_heads, kv_len]: Σ w over the rows that choose
  Tensor<double> forced_mass;  // [num_heads, kv_len]: over those that are forced
  Tensor<double> offset_mass;  // [num_heads, q_len + kv_len]: Σ w by the distance of the key
  Tensor<double> offset_rows;  // the rows for which a key is there; running sums of it, until then
  Tensor<double> cosines;      // [num_heads, num_heads], for the first head below the second
  Tensor<double> cosine_rows;  // how many were added
};

// Every length is of its sequence and fits the shape. Throws InvalidArgument.
void check_lengths(const char* function, const DiagnosticsOptions& lengths,
                   const ScoreShape& shape);

// The real length of a sequence, `all` where none are given.
inline std::int64_t length_of(const std::vector<std::int64_t>& lengths, std::int64_t batch,
                              std::int64_t all) {
  return lengths.empty() ? all : lengths[static_cast<std::size_t>(batch)];
}

// The scores, from the sums over each sequence.
AttentionDiagnostics diagnostics_of(std::span<const PatternSums> sequences,
                                    const ScoreShape& shape);

}}  // namespace heed::v0
