/// Plans: how attention will compute given shapes and options.
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

/// The shapes, types and layout of query, key and value.
struct AttentionShapes {
  std::int64_t batch = 1;
  std::int64_t num_heads = 1;
  std::int64_t num_kv_heads = 1;
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  DataType dtype = DataType::kFloat32;  ///< of the query
  /// The distance, in elements, from one key to the next; 0: keys are contiguous.
  std::int64_t key_stride = 0;
  std::int64_t value_stride = 0;
  /// The types of keys and values if they are not the query's, which is then float32.
  std::optional<DataType> key_dtype = std::nullopt;
  std::optional<DataType> value_dtype = std::nullopt;

  DataType type_of_keys() const noexcept { return key_dtype.value_or(dtype); }
  DataType type_of_values() const noexcept { return value_dtype.value_or(dtype); }
};

/// The memory that a planned computation writes to.
template <class T>
struct AttentionBuffers {
  using Lse = std::conditional_t<std::is_same_v<T, double>, double, float>;

  TensorView<T> out;             ///< [batch, num_heads, q_len, value_dim]
  TensorView<Lse> lse = {};      ///< [batch, num_heads, q_len], or empty: not written
  TensorView<Lse> lse_low = {};  ///< [batch, num_heads, q_len], or empty: see AttentionOutput
  TensorView<T> out_low = {};    ///< in the shape of out, or empty: see AttentionOutput
  /// [kept_size()], contiguous and 64-byte aligned, or empty: see attention_for_backward().
  TensorView<Lse> kept = {};
  std::span<std::byte> workspace = {};  ///< at least workspace_bytes(), or empty: allocated
};

/// Tiles of the score matrix, and how many of them are computed.
struct TileCounts {
  std::int64_t rows = 0;  ///< rows of a tile: queries times the heads that share a key head
  std::int64_t keys = 0;  ///< keys of a tile
  std::int64_t rows_together = 0;  ///< rows that share one pass over the keys
  std::int64_t total = 0;          ///< tiles of the matrix, over every batch entry and head
  std::int64_t skipped = 0;        ///< tiles without a visible pair of query and key: not computed
  std::int64_t mixed = 0;          ///< tiles with visible and hidden pairs
};

/// The decision how to compute attention for given shapes and options, made once and run any number
/// of times. Plans are immutable values: copying one is cheap, and any number of threads may run
/// one at the same time.
///
///     const heed::AttentionShapes shapes{.num_heads = 8, .num_kv_heads = 8, .q_len = 512,
///                                        .kv_len = 512, .head_dim = 64, .value_dim = 64};
///     const heed::AttentionPlan plan = heed::plan(shapes, {.mask = heed::causal()});
///     std::cout << plan;
///     const heed::Tensor<float> out = plan.run(query, key, value);
///
/// The tensors that the options refer to (bias, sinks, views in masks) must outlive the plan.
class HEED_API AttentionPlan {
 public:
  const AttentionShapes& shapes() const noexcept;
  /// The instruction set of the kernels, e.g. "AVX512", or "reference" for plain loops.
  std::string target() const;
  /// Threads that take part; fewer if fewer are available at run time.
  int num_threads() const noexcept;
  /// True if threads share the keys of a row, because there are too few rows for the threads.
  bool splits_keys() const noexcept;
  /// Memory that run() needs beyond its arguments and its result, in bytes.
  std::size_t workspace_bytes() const;
  /// Memory that run_backward(), and attention_weights() for the same shapes and options, need
  /// beyond their arguments and results, in bytes.
  std::size_t backward_workspace_bytes() const;
  std::size_t weights_workspace_bytes() const;
  /// The number of weights that attention_for_backward() keeps for these shapes; 0: none.
  std::int64_t kept_size() const;
  /// The tiles, counted in time linear in the query's length or, where the mask is more than an
  /// interval of keys for each query, in the number of tiles. All members are 0 for "reference",
  /// which has no tiles.
  TileCounts tiles() const;
  /// All of the above with the reasons, in a few lines of text.
  std::string to_string() const;

  /// attention() of tensors with the planned shapes and types.
  /// @throws InvalidArgument when they have others, before anything is computed.
  Tensor<float> run(FloatView query, FloatView key, FloatView value) const;
  Tensor<Float16> run(Float16View query, Float16View key, Float16View value) const;
  Tensor<BFloat16> run(BFloat16View query, BFloat16View key, BFloat16View value) const;
  Tensor<double> run(DoubleView query, DoubleView key, DoubleView value) const;

  /// run() into the caller's memory. With a workspace it allocates nothing, unless every score of a
  /// row is beyond ±10⁵.
  /// @throws InvalidArgument as run() does, and when a buffer does not fit.
  void run_into(const AttentionBuffers<float>& buffers, FloatView query, FloatView key,
                FloatView value) const;
  void run_into(const AttentionBuffers<Float16>& buffers, Float16View query, Float16View key,
                Float16View value) const;
  void run_into(const AttentionBuffers<BFloat16>& buffers, BFloat16View query, BFloat16View key,
                BFloat16View value) const;
  void run_into(const AttentionBuffers<double>& buffers, DoubleView query, DoubleView key,
                DoubleView value) const;

  /// attention_backward() of tensors with the planned shapes and types.
  /// @param forward the result of attention with lse
  /// @param workspace at least backward_workspace_bytes(), or empty: allocated. In half precision
  /// without out_low the output is computed again, in float memory that is allocated.
  /// @throws InvalidArgument when the tensors do not have the planned shapes and types, before
  /// anything is computed.
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

/// Plans attention for these shapes; attention() calls it every time.
/// @throws InvalidArgument when shapes and options do not fit, or dtype is kFloat64: that takes
/// AttentionOptions64.
HEED_API AttentionPlan plan(const AttentionShapes& shapes, const AttentionOptions& options = {});

/// The implementation of plan(shapes, AttentionOptions64{…}).
/// @throws InvalidArgument when shapes and options do not fit, or dtype is not kFloat64.
HEED_API AttentionPlan plan_in_double(const AttentionShapes& shapes,
                                      const AttentionOptions64& options);

/// plan() in double, for shapes whose dtype is kFloat64: plan(shapes, AttentionOptions64{…}).
template <std::same_as<AttentionOptions64> Options>
AttentionPlan plan(const AttentionShapes& shapes, const Options& options) {
  return plan_in_double(shapes, options);
}

/// Prints to_string().
HEED_API std::ostream& operator<<(std::ostream& stream, const AttentionPlan& plan);

}}  // namespace heed::v0
