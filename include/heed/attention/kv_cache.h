/// Keys and values of growing sequences, kept for the queries to come.
///
///     heed::KvSequence sequence({.num_kv_heads = 8, .head_dim = 64});
///     sequence.append(key, value);
///     const heed::Tensor<float> out = heed::attend(query, sequence, {.mask = heed::causal()});
///
/// What attend() returns has the bits that one attention() of all tokens gives these queries, with
/// float32 storage: however the tokens were appended, on pages of whatever size, by whatever number
/// of threads, alone or with other sequences, after whatever forks. docs/kv-cache.md shows it.
///
/// A pool and its sequences are used by one thread at a time, but for attend(), dequantised() and
/// what else is const: any number of threads may call these while no thread changes a sequence of
/// the pool.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "heed/attention.h"
#include "heed/attention/kv_storage.h"
#include "heed/attention/mask.h"
#include "heed/core/config.h"
#include "heed/core/data_type.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// What a pool stores, and where.
struct KvConfig {
  std::int64_t num_kv_heads = 1;
  std::int64_t head_dim = 0;
  std::optional<std::int64_t> value_dim = std::nullopt;  ///< head_dim when not given
  KvStorage key_storage = KvStorage::kFloat32;
  KvStorage value_storage = KvStorage::kFloat32;
  /// Positions of a page: 16, 32, 64 or 128. A page has these positions of every key head. Smaller
  /// ones are shared sooner by sequences that begin alike, and leave less unused at their ends.
  std::int64_t page_size = 128;
  /// A limit on memory: KvPool::page_bytes() each. Pages are allocated as they are needed.
  std::int64_t max_pages = kUnbounded;
};

/// What a sequence keeps. By default everything.
///
/// Of a bounded one a query at position p sees the first `sinks` positions and the positions from
/// p − window + 1 on, as far as the options' mask allows. Positions are absolute, whatever is gone:
/// a rotary embedding is applied to keys before they are appended, and ALiBi measures from there.
///
/// Kept are sinks + window + max_append − 1 + rewind positions, in whole pages:
/// ⌈sinks / page_size⌉ + ⌈(window + max_append + rewind − 2) / page_size⌉ + 1 pages at most.
/// Source: Xiao et al., "Efficient Streaming Language Models with Attention Sinks", 2024.
struct KvBounds {
  std::int64_t window = kUnbounded;  ///< at least 1
  std::int64_t sinks = 0;
  std::int64_t max_append = 1;  ///< the most positions of one append(), and queries of one attend()
  std::int64_t rewind = 0;      ///< how far truncate() and accept() may go back
};

/// There are fewer pages than a call needs. Nothing was changed.
class HEED_API OutOfPages : public std::runtime_error {
 public:
  OutOfPages(const char* function, std::int64_t wanted, std::int64_t free, std::int64_t total);
  ~OutOfPages() override;

  std::int64_t wanted() const noexcept { return wanted_; }
  std::int64_t free() const noexcept { return free_; }
  std::int64_t total() const noexcept { return total_; }

 private:
  std::int64_t wanted_;
  std::int64_t free_;
  std::int64_t total_;
};

/// Keys and values as tensors.
struct KvTensors {
  Tensor<float> key;    ///< [num_kv_heads, length, head_dim]
  Tensor<float> value;  ///< [num_kv_heads, length, value_dim]
};

class HEED_API KvSequence;

namespace detail {
class PagePool;
struct SequenceState;
}  // namespace detail

/// Pages that sequences share.
///
/// A pool may end before its sequences: each use of one is an error then.
class HEED_API KvPool {
 public:
  /// @throws InvalidArgument when a number of the configuration means nothing.
  explicit KvPool(const KvConfig& config);
  KvPool(KvPool&& other) noexcept;
  KvPool& operator=(KvPool&& other) noexcept;
  ~KvPool();

  /// As they were given, with value_dim.
  const KvConfig& config() const;
  /// Memory of a page, in bytes.
  std::int64_t page_bytes() const;
  /// Memory allocated for pages, in bytes: what was in use at most, and some more to come.
  std::int64_t allocated_bytes() const;
  std::int64_t pages_in_use() const;
  /// Pages that may still be taken, allocated or not.
  std::int64_t free_pages() const;

 private:
  friend class KvSequence;

  std::shared_ptr<detail::PagePool> pages_;
};

/// The keys and values of one sequence: a handle, which moves and is copied by fork().
///
/// A call that throws has changed nothing: not this sequence, not the pool. Each throws
/// InvalidArgument where the handle was moved from or its pool is gone.
class HEED_API KvSequence {
 public:
  /// An empty sequence with a pool of its own, which its forks share.
  explicit KvSequence(const KvConfig& config, const KvBounds& bounds = {});
  /// An empty sequence on the pages of a pool.
  explicit KvSequence(KvPool& pool, const KvBounds& bounds = {});
  KvSequence(KvSequence&& other) noexcept;
  KvSequence& operator=(KvSequence&& other) noexcept;
  ~KvSequence();

  /// Positions that were appended, those no longer kept included.
  std::int64_t length() const;
  const KvBounds& bounds() const;
  /// Of its pool.
  const KvConfig& config() const;
  /// Pages it holds, those shared with forks included.
  std::int64_t num_pages() const;

  /// Adds n positions at the end.
  ///
  /// @param key [num_kv_heads, n, head_dim] or [1, num_kv_heads, n, head_dim]; any strides but in
  /// the innermost dimension, which is contiguous: [n, num_kv_heads, head_dim] is `view.permute({1,
  /// 0, 2})`. A rotary embedding has been applied.
  /// @param value [num_kv_heads, n, value_dim], or with a 1 in front
  /// @throws InvalidArgument when shapes do not fit, n is above bounds().max_append, or a number
  /// that becomes int8 or int4 is not finite or, of int4, has a magnitude of 2¹¹² or more;
  /// OutOfPages.
  void append(FloatView key, FloatView value);
  void append(Float16View key, Float16View value);
  void append(BFloat16View key, BFloat16View value);

  /// Another sequence that begins with the first n positions of this one (with all), and shares
  /// their pages; whichever of the two writes to a shared page copies it before.
  /// @throws InvalidArgument where truncate(n) would.
  KvSequence fork() const;
  KvSequence fork(std::int64_t n) const;

  /// Keeps the first n positions; 0 keeps nothing.
  /// @throws InvalidArgument when n is beyond the length, or, in a bounded sequence, so far back
  /// that positions which a query at n sees are gone.
  void truncate(std::int64_t n);
  /// Forgets all positions.
  void reset();

  /// Of the last `num_nodes` positions, the nodes of a speculative tree, keeps those that were
  /// accepted: node path[i], counted from the first of these positions, becomes the i-th after what
  /// was there before. Their rotary embedding must be that of their depth in the tree, which is
  /// where they then stand.
  /// @param path rising; empty where no node was accepted
  /// @throws InvalidArgument when the path does not rise within the nodes, where truncate() to what
  /// remains would, or when, in a bounded sequence, a node that moves is gone, or its place;
  /// OutOfPages where pages to write to are shared.
  void accept(std::int64_t num_nodes, std::span<const std::int64_t> path);

  /// What is stored, as numbers: of int4, rotated back. Positions no longer kept are 0.
  KvTensors dequantised() const;

 private:
  friend struct detail::SequenceState;

  explicit KvSequence(std::unique_ptr<detail::SequenceState> state);

  std::unique_ptr<detail::SequenceState> state_;
};

/// Attention of the last n positions of a sequence, which were appended before: query i stands at
/// position length − n + i.
///
/// @param query [1, num_heads, n, head_dim]
/// @param options as of attention() of batch 1 over `length` keys with query_offset = length − n.
/// @return out [1, num_heads, n, value_dim]
/// @throws InvalidArgument when shapes or options do not fit; when options.query_offset is not 0;
/// and when a bounded sequence no longer keeps what the first query sees.
HEED_API Tensor<float> attend(FloatView query, const KvSequence& sequence,
                              const AttentionOptions& options = {});
HEED_API Tensor<Float16> attend(Float16View query, const KvSequence& sequence,
                                const AttentionOptions& options = {});
HEED_API Tensor<BFloat16> attend(BFloat16View query, const KvSequence& sequence,
                                 const AttentionOptions& options = {});

/// The same with lse and lse_low, [1, num_heads, n] each.
HEED_API AttentionOutput<float> attend_with_lse(FloatView query, const KvSequence& sequence,
                                                const AttentionOptions& options = {});
HEED_API AttentionOutput<Float16, float> attend_with_lse(Float16View query,
                                                         const KvSequence& sequence,
                                                         const AttentionOptions& options = {});
HEED_API AttentionOutput<BFloat16, float> attend_with_lse(BFloat16View query,
                                                          const KvSequence& sequence,
                                                          const AttentionOptions& options = {});

/// Sequences of one pool, and the queries of each: sequence i has the rows boundaries[i] ≤ t <
/// boundaries[i + 1] of a packed query.
struct KvBatch {
  std::span<const KvSequence* const> sequences;
  std::span<const std::int64_t> boundaries;  ///< one more than there are sequences
};

/// attend() of each sequence for itself, with the same bits. Options apply to each sequence as
/// entry 0 of a batch of its own: a bias or a mask given as a tensor must broadcast to every
/// sequence's [1, num_heads, n, length].
///
/// Pages that several of the sequences begin with are read once for all of them, as far as all
/// queries see them and nothing but the mask's interval of keys changes scores and weights.
///
/// @param query [total_q_len, num_heads, head_dim]
/// @return out [total_q_len, num_heads, value_dim]
/// @throws InvalidArgument when boundaries do not start at 0, fall or do not end at the length,
/// when the sequences are not of one pool, and where attend() would.
HEED_API Tensor<float> attend(FloatView query, const KvBatch& batch,
                              const AttentionOptions& options = {});
HEED_API Tensor<Float16> attend(Float16View query, const KvBatch& batch,
                                const AttentionOptions& options = {});
HEED_API Tensor<BFloat16> attend(BFloat16View query, const KvBatch& batch,
                                 const AttentionOptions& options = {});

/// The same with lse and lse_low, [num_heads, total_q_len] each.
HEED_API AttentionOutput<float> attend_with_lse(FloatView query, const KvBatch& batch,
                                                const AttentionOptions& options = {});
HEED_API AttentionOutput<Float16, float> attend_with_lse(Float16View query, const KvBatch& batch,
                                                         const AttentionOptions& options = {});
HEED_API AttentionOutput<BFloat16, float> attend_with_lse(BFloat16View query, const KvBatch& batch,
                                                          const AttentionOptions& options = {});

}}  // namespace heed::v0
