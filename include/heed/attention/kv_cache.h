/// Caches of the keys and values of growing sequences.
///
///     heed::KvSequence sequence({.num_kv_heads = 8, .head_dim = 64});
///     sequence.append(key, value);
///     const heed::Tensor<float> out = heed::attend(query, sequence, {.mask = heed::causal()});
///
/// With float32 storage attend() returns the same bits as one attention() call over all tokens
/// gives these queries, whatever the appends, the page size, the number of threads, the other
/// sequences of the call and the forks. docs/kv-cache.md shows examples.
///
/// A pool and its sequences are used by one thread at a time. Only attend(), dequantised() and
/// other const functions may be called by any number of threads, while no thread changes a sequence
/// of the pool.
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

/// The shape, storage and page size of a pool.
struct KvConfig {
  std::int64_t num_kv_heads = 1;
  std::int64_t head_dim = 0;
  std::optional<std::int64_t> value_dim = std::nullopt;  ///< head_dim when not given
  KvStorage key_storage = KvStorage::kFloat32;
  KvStorage value_storage = KvStorage::kFloat32;
  /// Positions in a page: 16, 32, 64 or 128. A page holds these positions of every key head.
  /// Sequences with a common beginning share smaller pages sooner, and leave less of the last page
  /// unused.
  std::int64_t page_size = 128;
  /// The most pages, of KvPool::page_bytes() each. Pages are allocated as they are needed.
  std::int64_t max_pages = kUnbounded;
};

/// The positions that a sequence keeps. By default all.
///
/// In a bounded sequence a query at position p sees the first `sinks` positions and the positions
/// from p − window + 1 on, as far as the options' mask allows. Positions are absolute, even after
/// earlier ones were dropped: a rotary embedding is applied to keys before they are appended, and
/// ALiBi uses these positions.
///
/// A sequence keeps sinks + window + max_append − 1 + rewind positions, in whole pages: at most
/// ⌈sinks / page_size⌉ + ⌈(window + max_append + rewind − 2) / page_size⌉ + 1 pages.
/// Source: Xiao et al., "Efficient Streaming Language Models with Attention Sinks", 2024.
struct KvBounds {
  std::int64_t window = kUnbounded;  ///< at least 1
  std::int64_t sinks = 0;
  std::int64_t max_append = 1;  ///< the most positions of one append(), and queries of one attend()
  std::int64_t rewind = 0;      ///< the most positions that truncate() and accept() may go back
};

/// Thrown when fewer pages are free than a call needs. The call has changed nothing.
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
/// A pool may be destroyed before its sequences; every later use of a sequence throws.
class HEED_API KvPool {
 public:
  /// @throws InvalidArgument when a number of the configuration is out of range.
  explicit KvPool(const KvConfig& config);
  KvPool(KvPool&& other) noexcept;
  KvPool& operator=(KvPool&& other) noexcept;
  ~KvPool();

  /// The configuration that was given, with value_dim filled in.
  const KvConfig& config() const;
  /// Memory of one page, in bytes.
  std::int64_t page_bytes() const;
  /// Memory allocated for pages, in bytes. It does not shrink, and includes pages allocated ahead.
  std::int64_t allocated_bytes() const;
  std::int64_t pages_in_use() const;
  /// Pages that are not in use, allocated or not.
  std::int64_t free_pages() const;

 private:
  friend class KvSequence;

  std::shared_ptr<detail::PagePool> pages_;
};

/// The keys and values of one sequence: a handle, which can be moved, and copied by fork().
///
/// A call that throws has changed neither this sequence nor the pool. Every function throws
/// InvalidArgument when the handle was moved from or its pool is gone.
class HEED_API KvSequence {
 public:
  /// An empty sequence with a pool of its own, which its forks share.
  explicit KvSequence(const KvConfig& config, const KvBounds& bounds = {});
  /// An empty sequence on the pages of a pool.
  explicit KvSequence(KvPool& pool, const KvBounds& bounds = {});
  KvSequence(KvSequence&& other) noexcept;
  KvSequence& operator=(KvSequence&& other) noexcept;
  ~KvSequence();

  /// Positions that were appended, including those that are no longer kept.
  std::int64_t length() const;
  const KvBounds& bounds() const;
  /// The configuration of its pool.
  const KvConfig& config() const;
  /// Pages that it holds, including those shared with forks.
  std::int64_t num_pages() const;

  /// Adds n positions at the end.
  ///
  /// @param key [num_kv_heads, n, head_dim] or [1, num_kv_heads, n, head_dim], after any rotary
  /// embedding. The innermost dimension is contiguous, the others have any strides: a tensor [n,
  /// num_kv_heads, head_dim] is passed as `view.permute({1, 0, 2})`.
  /// @param value [num_kv_heads, n, value_dim] or [1, num_kv_heads, n, value_dim]
  /// @throws InvalidArgument when shapes do not fit, n is above bounds().max_append, or a number
  /// that becomes int8 or int4 is not finite or, for int4, has a magnitude of 2¹¹² or more;
  /// OutOfPages.
  void append(FloatView key, FloatView value);
  void append(Float16View key, Float16View value);
  void append(BFloat16View key, BFloat16View value);

  /// A new sequence that begins with the first n positions of this one (default: all) and shares
  /// their pages; a page is copied before either of the two writes to it.
  /// @throws InvalidArgument where truncate(n) would.
  KvSequence fork() const;
  KvSequence fork(std::int64_t n) const;

  /// Keeps the first n positions; 0 keeps nothing.
  /// @throws InvalidArgument when n is beyond the length or, in a bounded sequence, so far back
  /// that positions which a query at n sees are no longer kept.
  void truncate(std::int64_t n);
  /// Removes all positions.
  void reset();

  /// Keeps the accepted ones of the last `num_nodes` positions, which are the nodes of a
  /// speculative tree. Node path[i], counted from the first of these positions, moves to the i-th
  /// position after the text before the tree. Keys must have the rotary embedding of their node's
  /// depth in the tree, which is the position that they move to.
  /// @param path rising; empty where no node was accepted
  /// @throws InvalidArgument when the path does not rise within the nodes, where truncate() to the
  /// new length would, or when, in a bounded sequence, a node that moves or its new position is no
  /// longer kept; OutOfPages where shared pages must be copied and none is free.
  void accept(std::int64_t num_nodes, std::span<const std::int64_t> path);

  /// The stored keys and values as floats; int4 is rotated back. Positions no longer kept are 0.
  KvTensors dequantised() const;

 private:
  friend struct detail::SequenceState;

  explicit KvSequence(std::unique_ptr<detail::SequenceState> state);

  std::unique_ptr<detail::SequenceState> state_;
};

/// Attention of the last n positions of a sequence, which were appended before: query i has
/// position length − n + i.
///
/// @param query [1, num_heads, n, head_dim]
/// @param options those of attention() with batch 1, `length` keys and query_offset = length − n.
/// @return out [1, num_heads, n, value_dim]
/// @throws InvalidArgument when shapes or options do not fit, when options.query_offset is not 0,
/// and when a bounded sequence no longer keeps keys that the first query sees.
HEED_API Tensor<float> attend(FloatView query, const KvSequence& sequence,
                              const AttentionOptions& options = {});
HEED_API Tensor<Float16> attend(Float16View query, const KvSequence& sequence,
                                const AttentionOptions& options = {});
HEED_API Tensor<BFloat16> attend(BFloat16View query, const KvSequence& sequence,
                                 const AttentionOptions& options = {});

/// attend() with lse and lse_low, [1, num_heads, n] each.
/// @throws InvalidArgument as attend() does.
HEED_API AttentionOutput<float> attend_with_lse(FloatView query, const KvSequence& sequence,
                                                const AttentionOptions& options = {});
HEED_API AttentionOutput<Float16, float> attend_with_lse(Float16View query,
                                                         const KvSequence& sequence,
                                                         const AttentionOptions& options = {});
HEED_API AttentionOutput<BFloat16, float> attend_with_lse(BFloat16View query,
                                                          const KvSequence& sequence,
                                                          const AttentionOptions& options = {});

/// Sequences of one pool and the boundaries of their queries: sequence i has the rows boundaries[i]
/// ≤ t < boundaries[i + 1] of a packed query.
struct KvBatch {
  std::span<const KvSequence* const> sequences;
  std::span<const std::int64_t> boundaries;  ///< one more than there are sequences
};

/// attend() of each sequence, with the same bits as for the sequence alone. Options apply to each
/// sequence as to a batch of one: a bias or a mask given as a tensor must broadcast to every
/// sequence's [1, num_heads, n, length].
///
/// Pages at the beginning that several sequences share are read once for all of them, as far as all
/// queries see them, if nothing but a mask of key intervals changes scores and weights.
///
/// @param query [total_q_len, num_heads, head_dim]
/// @return out [total_q_len, num_heads, value_dim]
/// @throws InvalidArgument when boundaries do not start at 0, fall or do not end at total_q_len,
/// when the sequences are not of one pool, and where attend() would.
HEED_API Tensor<float> attend(FloatView query, const KvBatch& batch,
                              const AttentionOptions& options = {});
HEED_API Tensor<Float16> attend(Float16View query, const KvBatch& batch,
                                const AttentionOptions& options = {});
HEED_API Tensor<BFloat16> attend(BFloat16View query, const KvBatch& batch,
                                 const AttentionOptions& options = {});

/// attend() with lse and lse_low, [num_heads, total_q_len] each.
/// @throws InvalidArgument as attend() does.
HEED_API AttentionOutput<float> attend_with_lse(FloatView query, const KvBatch& batch,
                                                const AttentionOptions& options = {});
HEED_API AttentionOutput<Float16, float> attend_with_lse(Float16View query, const KvBatch& batch,
                                                         const AttentionOptions& options = {});
HEED_API AttentionOutput<BFloat16, float> attend_with_lse(BFloat16View query, const KvBatch& batch,
                                                          const AttentionOptions& options = {});

}}  // namespace heed::v0
