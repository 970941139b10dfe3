/// Learned tables of relative positions: terms of scores and values that depend on the distance
/// from query to key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "heed/core/config.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// The map from a distance, kv_idx − q_idx in positions, to an entry of a learned table. A value.
class HEED_API RelativeBuckets {
 public:
  /// One entry for every distance from −max_distance to max_distance, 2 · max_distance + 1 in all;
  /// distances beyond are clipped. Source: Shaw et al., "Self-Attention with Relative Position
  /// Representations", 2018, section 3.2.
  /// @throws InvalidArgument when max_distance is negative or above 2²⁰.
  static RelativeBuckets clip(std::int64_t max_distance);

  /// The buckets of T5: one entry per distance for near keys, then ever wider buckets, whose width
  /// grows logarithmically, up to max_distance and beyond. If bidirectional, half of the entries
  /// are for keys at or before the query, the other half for keys after it; otherwise keys after
  /// the query count as distance 0. Computed in the precision of transformers' T5, so that weights
  /// trained there fit. Source: Raffel et al., "Exploring the Limits of Transfer Learning", 2020,
  /// section 2.1, and the authors' code.
  /// @throws InvalidArgument when num_buckets is below 2 (4 if bidirectional) or odd and
  /// bidirectional, or max_distance is not above the number of exact entries or above 2²⁰.
  static RelativeBuckets t5(std::int64_t num_buckets = 32, std::int64_t max_distance = 128,
                            bool bidirectional = true);

  /// The number of entries of a table.
  std::int64_t count() const noexcept { return count_; }
  /// The entry of a distance, from 0 to count() − 1.
  std::int64_t operator()(std::int64_t distance) const noexcept;
  /// Distances beyond ±reach() share the entries of ±reach().
  std::int64_t reach() const noexcept { return max_distance_; }
  /// The text that a plan prints: "clip(16)", "t5(32, 128)", "causal t5(32, 128)".
  std::string description() const;

 private:
  enum class Rule { kClip, kT5, kCausalT5 };
  RelativeBuckets(Rule rule, std::int64_t count, std::int64_t max_distance)
      : rule_(rule), count_(count), max_distance_(max_distance) {}

  Rule rule_;
  std::int64_t count_;
  std::int64_t max_distance_;
};

/// score += table[head, buckets(kv_idx − q_idx)], after ALiBi and bias. Source: Raffel et al.,
/// 2020, section 2.1.
template <class Real>
struct RelativeBias {
  TensorView<const Real> table;  ///< [num_heads, buckets.count()]
  RelativeBuckets buckets;
};

/// Learned vectors for distances (Shaw et al., 2018, equations 3 and 4), which are added to every
/// key and every value as the query sees them:
///
///     score += scale · query · key_table[…, buckets(kv_idx − q_idx), :]
///     out += Σ weight · value_table[…, buckets(kv_idx − q_idx), :]
template <class Real>
struct RelativeVectors {
  /// [num_heads, buckets.count(), head_dim], or [buckets.count(), head_dim] for all heads.
  std::optional<TensorView<const Real>> key = std::nullopt;
  /// [num_heads, buckets.count(), value_dim], or [buckets.count(), value_dim] for all heads.
  std::optional<TensorView<const Real>> value = std::nullopt;
  RelativeBuckets buckets;
};

}}  // namespace heed::v0
