/// What attention will do for given shapes and options, before it does it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/core/config.h"
#include "heed/core/data_type.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// The shapes and layout of query, key and value: everything but the numbers.
struct AttentionShapes {
  std::int64_t batch = 1;
  std::int64_t num_heads = 1;
  std::int64_t num_kv_heads = 1;
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  DataType dtype = DataType::kFloat32;  ///< of the query
  /// The distance, in elements, from one key to the next; 0: they follow each other without gaps.
  std::int64_t key_stride = 0;
  std::int64_t value_stride = 0;
  /// The types of keys and values where they are not that of the query, which is then float32.
  std::optional<DataType> key_dtype = std::nullopt;
  std::optional<DataType> value_dtype = std::nullopt;

  DataType type_of_keys() const noexcept { return key_dtype.value_or(dtype); }
  DataType type_of_values() const noexcept { return value_dtype.value_or(dtype); }
};

/// Where a planned computation writes.
template <class T>
struct AttentionBuffers {
  using Lse = std::conditional_t<std::is_same_v<T, double>, double, float>;

  TensorView<T> out;             ///< [batch, num_heads, q_len, value_dim]
  TensorView<Lse> lse = {};      ///< [batch, num_heads, q_len], or empty: not wanted
  TensorView<Lse> lse_low = {};  ///< the same; what lse lacks: see AttentionOutput
  TensorView<T> out_low = {};    ///< in the shape of out, or empty; what out lacks
  /// [kept_size()] without gaps, 64-byte aligned, or empty: what attention_for_backward() keeps.
  TensorView<Lse> kept = {};
  std::span<std::byte> workspace = {};  ///< at least workspace_bytes(), or empty: allocated
};

/// How much of the score matrix is computed.
struct TileCounts {
  std::int64_t total = 0;    ///< tiles of the matrix, over every batch entry and head
  std::int64_t skipped = 0;  ///< tiles that no query sees any key of: never touched
  std::int64_t mixed = 0;    ///< tiles that some query does not see all keys of
};

/// A decision how to compute attention, made once and run as often as wanted. Plans are values that
/// never change: copying one is cheap, and any number of threads may run one at once.
///
///     const heed::AttentionPlan plan = heed::plan({.num_heads = 8, .num_kv_heads = 8, .q_len =
///     512,
///                                                  .kv_len = 512, .head_dim = 64,
///                                                  .value_dim = 64}, {.mask = heed::causal()});
///     std::cout << plan;
///     const heed::Tensor<float> out = plan.run(query, key, value);
///
/// What the options refer to (bias, sinks, tensors of a mask given as views) must outlive the plan.
class HEED_API AttentionPlan {
 public:
  const AttentionShapes& shapes() const noexcept;
  /// The instruction set of the kernels, e.g. "AVX512", or "reference" for plain loops.
  std::string target() const;
  /// Rows a register-blocked panel holds: queries times the heads that share a key head.
  std::int64_t panel_rows() const noexcept;
  /// Panels that share one pass over a tile of keys.
  std::int64_t panels_per_block() const noexcept;
  /// Keys of a tile.
  std::int64_t tile_keys() const noexcept;
  /// Whether keys (values) are first copied, a tile at a time, to contiguous rows of the numbers
  /// that are computed with.
  bool stages_keys() const noexcept;
  bool stages_values() const noexcept;
  /// Threads that take part, fewer when fewer are available as it runs.
  int num_threads() const noexcept;
  /// Whether threads share the keys of a row, because there are fewer panels of rows than threads.
  bool splits_keys() const noexcept;
  /// Memory a run needs beside its arguments and its result.
  std::size_t workspace_bytes() const;
  /// Memory that run_backward() needs beside its arguments and its result, and attention_weights()
  /// for the same shapes and options.
  std::size_t backward_workspace_bytes() const;
  std::size_t weights_workspace_bytes() const;
  /// How many numbers attention_for_backward() keeps of such tensors; 0: none.
  std::int64_t kept_size() const;
  /// Counted anew with each call, in time linear in the query's length; and in the number of tiles
  /// where the mask is more than an interval of keys for each query.
  TileCounts tiles() const;
  /// All of the above with its reasons, in a few lines.
  std::string to_string() const;

  /// Attention of tensors whose shapes and type are those planned for.
  /// @throws InvalidArgument when they are not, before anything is computed.
  Tensor<float> run(FloatView query, FloatView key, FloatView value) const;
  Tensor<Float16> run(Float16View query, Float16View key, Float16View value) const;
  Tensor<BFloat16> run(BFloat16View query, BFloat16View key, BFloat16View value) const;
  Tensor<double> run(DoubleView query, DoubleView key, DoubleView value) const;

  /// The same into the caller's memory: with a workspace, nothing is allocated unless every score
  /// of a row is beyond ±10⁵.
  void run_into(const AttentionBuffers<float>& buffers, FloatView query, FloatView key,
                FloatView value) const;
  void run_into(const AttentionBuffers<Float16>& buffers, Float16View query, Float16View key,
                Float16View value) const;
  void run_into(const AttentionBuffers<BFloat16>& buffers, BFloat16View query, BFloat16View key,
                BFloat16View value) const;
  void run_into(const AttentionBuffers<double>& buffers, DoubleView query, DoubleView key,
                DoubleView value) const;

  /// The gradients: attention_backward() of such tensors, of the result `forward` of attention with
  /// lse. `workspace` has at least backward_workspace_bytes(), or is empty: allocated. In half
  /// precision without out_low the output is computed again, in floats of its own.
  /// @throws InvalidArgument when the tensors are not those planned for, before anything is
  /// computed.
  AttentionGradients<float> run_backward(FloatView grad_out, FloatView query, FloatView key,
                                         FloatView value, const AttentionOutputView<float>& forward,
                                         std::span<std::byte> workspace = {}) const;
  AttentionGradients<Float16, float> run_backward(
      Float16View grad_out, Float16View query, Float16View key, Float16View value,
      const AttentionOutputView<Float16, float>& forward,
      std::span<std::byte> workspace = {}) const;
  AttentionGradients<BFloat16, float> run_backward(
      BFloat16View grad_out, BFloat16View query, BFloat16View key, BFloat16View value,
      const AttentionOutputView<BFloat16, float>& forward,
      std::span<std::byte> workspace = {}) const;
  AttentionGradients<double> run_backward(DoubleView grad_out, DoubleView query, DoubleView key,
                                          DoubleView value,
                                          const AttentionOutputView<double>& forward,
                                          std::span<std::byte> workspace = {}) const;

 private:
  struct Decision;
  explicit AttentionPlan(std::shared_ptr<const Decision> decision);
  friend HEED_API AttentionPlan plan(const AttentionShapes& shapes,
                                     const AttentionOptions& options);
  friend HEED_API AttentionPlan plan_in_double(const AttentionShapes& shapes,
                                               const AttentionOptions64& options);

  std::shared_ptr<const Decision> decision_;
};

/// Plans attention for these shapes; attention() does so for every call.
/// @throws InvalidArgument when shapes and options do not fit, or dtype is kFloat64: that takes
/// AttentionOptions64.
HEED_API AttentionPlan plan(const AttentionShapes& shapes, const AttentionOptions& options = {});

/// What plan(shapes, AttentionOptions64{…}) calls.
/// @throws InvalidArgument when shapes and options do not fit, or dtype is not kFloat64.
HEED_API AttentionPlan plan_in_double(const AttentionShapes& shapes,
                                      const AttentionOptions64& options);

/// plan() in double, for shapes whose dtype is kFloat64: plan(shapes, AttentionOptions64{…}).
template <std::same_as<AttentionOptions64> Options>
AttentionPlan plan(const AttentionShapes& shapes, const Options& options) {
  return plan_in_double(shapes, options);
}

HEED_API std::ostream& operator<<(std::ostream& stream, const AttentionPlan& plan);

}}  // namespace heed::v0
