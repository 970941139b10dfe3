// Sums over rows of attention from which heads are described, for any backend.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/attention/diagnostics.h"
#include "heed/attention/mask.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

// The kinds of rows.
enum class RowKind : std::uint8_t {
  kEmpty,    // sees no key
  kForced,   // sees one key
  kChooses,  // sees at least two keys
  kBroken,   // sees NaN or infinity
};

RowKind kind_of_row(bool is_finite, std::int64_t keys_seen);

// The sums over some rows of one sequence.
struct PatternSums {
  explicit PatternSums(const ScoreShape& shape);

  // Adds everything of a row but its weights; `entropy` is −Σ w ln w in nats.
  void add_row(std::int64_t head, std::int64_t q, RowKind kind, std::int64_t keys_seen,
               double entropy);

  // The index of key k in offset_mass, for query q.
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
  std::int64_t kv_length;  // the number of real keys, without padding
  std::vector<Head> heads;
  Tensor<double> mass;         // [num_heads, kv_len]: Σ w over rows of kind kChooses
  Tensor<double> forced_mass;  // [num_heads, kv_len], over rows of kind kForced
  Tensor<double> offset_mass;  // [num_heads, q_len + kv_len]: Σ w by the distance of the key
  // The numbers of rows with a key at that distance, as differences to be summed up.
  Tensor<double> offset_rows;
  Tensor<double> cosines;      // [num_heads, num_heads], for a first head below the second
  Tensor<double> cosine_rows;  // the numbers of summands
};

// Checks that each length fits the shape. Throws InvalidArgument.
void check_lengths(const char* function, const DiagnosticsOptions& lengths,
                   const ScoreShape& shape);

// The real length of a sequence, or `all` if no lengths are given.
inline std::int64_t length_of(const std::vector<std::int64_t>& lengths, std::int64_t batch,
                              std::int64_t all) {
  return lengths.empty() ? all : lengths[static_cast<std::size_t>(batch)];
}

// Computes the scores of heads from the sums of each sequence.
AttentionDiagnostics diagnostics_of(std::span<const PatternSums> sequences,
                                    const ScoreShape& shape);

}}  // namespace heed::v0
