#include "heed/attention/select_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "attention/masks/aligned.h"
#include "attention/request/request.h"
#include "core/float_environment.h"
#include "heed/core/cancellation.h"
#include "heed/core/error.h"
#include "heed/core/parallel.h"

namespace heed { inline namespace v0 {

namespace {

constexpr const char* kSelectBlocks = "select_blocks";

void check_selection(const SelectBlocksOptions& options, const AttentionShapes& shapes) {
  using detail::check_number;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  check_number(kSelectBlocks, "block", options.block, 1, kernels::kTileKeys);
  check_number(kSelectBlocks, "top_k", options.top_k, 1);
  check_number(kSelectBlocks, "q_block", options.q_block, 1, kernels::kTileKeys);
  check_number(kSelectBlocks, "q_len", shapes.q_len, 0, kMost);
  check_number(kSelectBlocks, "kv_len", shapes.kv_len, 0, kMost);
  if (options.causal && options.q_block != 1) {
    throw InvalidArgument(
        fmt::format("{}: q_block is {}, expected 1 where causal, for later queries would choose "
                    "for earlier ones",
                    kSelectBlocks, options.q_block));
  }
}

// True if block a comes before block b: NaN first, then the larger affinity, then the lower index.
bool comes_before(std::span<const double> affinities, std::int32_t a, std::int32_t b) {
  const double left = affinities[static_cast<std::size_t>(a)];
  const double right = affinities[static_cast<std::size_t>(b)];
  if (std::isnan(left) != std::isnan(right)) return std::isnan(left);
  if (left > right || left < right) return left > right;
  return a < b;
}

// The means of rows of tensors, and the blocks that they select.
template <class T>
class BlockSelector {
 public:
  // The arguments must have been checked.
  BlockSelector(TensorView<const T> query, TensorView<const T> key,
                const SelectBlocksOptions& options)
      : query_(query),
        key_(key),
        options_(options),
        sharing_(options.per_kv_head ? std::max<std::int64_t>(group_size(query, key), 1) : 1),
        choosers_(query.extent(1) / sharing_),
        dim_(key.extent(3)),
        blocks_((key.extent(2) + options.block - 1) / options.block),
        rows_((query.extent(2) + options.q_block - 1) / options.q_block) {}

  BlockLayout select() {
    find_key_means();
    BlockLayout layout = with_room();
    const std::int64_t count = query_.extent(0) * choosers_ * rows_;
    parallel_for(0, count, kRowsAtOnce, [&](std::int64_t first, std::int64_t last) {
      check_cancelled();
      std::vector<double> mean(static_cast<std::size_t>(dim_));
      std::vector<double> affinities;
      std::vector<std::int32_t> order;
      for (std::int64_t row = first; row < last; ++row) {
        find_affinities(row, mean, affinities);
        choose(affinities, order, layout, row);
      }
    });
    if (options_.causal) mark_partial(layout);
    return layout;
  }

 private:
  static constexpr std::int64_t kRowsAtOnce = 64;

  // With causal: the position of the last key that a row sees, negative if it sees none.
  std::int64_t position(std::int64_t row) const {
    return key_.extent(2) - query_.extent(2) + row % rows_;
  }
  // The number of blocks that a row selects from: all, or with causal those before its own.
  std::int64_t candidates(std::int64_t row) const {
    return options_.causal ? std::max<std::int64_t>(position(row), 0) / options_.block : blocks_;
  }
  bool has_own_block(std::int64_t row) const { return options_.causal && position(row) >= 0; }

  std::int64_t seen_blocks(std::int64_t row) const {
    return std::min(options_.top_k, candidates(row) + (has_own_block(row) ? 1 : 0));
  }

  // The number of query heads per key head; 0 key heads count as one.
  static std::int64_t group_size(TensorView<const T> query, TensorView<const T> key) {
    return query.extent(1) / std::max<std::int64_t>(key.extent(1), 1);
  }

  // Adds the rows begin ≤ i < end of a tensor [length, dim].
  static void add_rows(TensorView<const T> rows, std::int64_t begin, std::int64_t end,
                       std::span<double> sum) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* row = rows.data() + i * rows.stride(0);
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += static_cast<double>(row[c]);
    }
  }
  static void divide(std::span<double> sum, std::int64_t count) {
    for (double& element : sum) element /= static_cast<double>(count);
  }

  // Computes key_means_, [batch, num_kv_heads, dim, blocks].
  void find_key_means() {
    const std::int64_t heads = key_.extent(1);
    const std::int64_t size = dim_ * blocks_;
    const Shape shape{key_.extent(0), heads, dim_, blocks_};
    key_means_.resize(static_cast<std::size_t>(shape.num_elements()));
    parallel_for(0, key_.extent(0) * heads, 1, [&](std::int64_t first, std::int64_t last) {
      std::vector<double> mean(static_cast<std::size_t>(dim_));
      for (std::int64_t head = first; head < last; ++head) {
        const auto keys = key_.select(0, head / heads).select(0, head % heads);
        double* means = key_means_.data() + head * size;
        for (std::int64_t j = 0; j < blocks_; ++j) {
          check_cancelled();
          const std::int64_t begin = j * options_.block;
          const std::int64_t end = std::min(begin + options_.block, key_.extent(2));
          std::fill(mean.begin(), mean.end(), 0.0);
          add_rows(keys, begin, end, mean);
          divide(mean, end - begin);
          for (std::int64_t c = 0; c < dim_; ++c) {
            means[c * blocks_ + j] = mean[static_cast<std::size_t>(c)];
          }
        }
      }
    });
  }

  // A layout with the number of blocks of each row, and room for their columns.
  BlockLayout with_room() const {
    BlockLayout layout{.batch = query_.extent(0),
                       .num_heads = query_.extent(1),
                       .q_len = query_.extent(2),
                       .kv_len = key_.extent(2),
                       .q_block = options_.q_block,
                       .kv_block = options_.block};
    const std::int64_t rows = Shape{layout.batch, layout.num_heads, rows_}.num_elements();
    layout.row_begin.reserve(static_cast<std::size_t>(rows) + 1);
    for (std::int64_t row = 0; row < rows; ++row) {
      layout.row_begin.push_back(layout.row_begin.back() + seen_blocks(row));
    }
    layout.columns.resize(static_cast<std::size_t>(layout.row_begin.back()));
    layout.partial.resize(layout.columns.size());
    return layout;
  }

  void find_affinities(std::int64_t row, std::span<double> mean,
                       std::vector<double>& affinities) const {
    find_query_mean(row, mean);
    const std::int64_t group = group_size(query_, key_);
    const std::int64_t kv_head = row / rows_ % choosers_ * sharing_ / group;
    const std::int64_t batch = row / rows_ / choosers_;
    const double* means = key_means_.data() + (batch * key_.extent(1) + kv_head) * dim_ * blocks_;
    affinities.assign(static_cast<std::size_t>(candidates(row)), 0.0);
    for (const double element : mean) {
      for (std::size_t j = 0; j < affinities.size(); ++j) affinities[j] += element * means[j];
      means += blocks_;
    }
  }

  // The mean of a row's queries, over all heads that choose together.
  void find_query_mean(std::int64_t row, std::span<double> mean) const {
    const std::int64_t first_head = row / rows_ % choosers_ * sharing_;
    const std::int64_t batch = row / rows_ / choosers_;
    const std::int64_t begin = row % rows_ * options_.q_block;
    const std::int64_t end = std::min(begin + options_.q_block, query_.extent(2));
    std::fill(mean.begin(), mean.end(), 0.0);
    for (std::int64_t head = first_head; head < first_head + sharing_; ++head) {
      add_rows(query_.select(0, batch).select(0, head), begin, end, mean);
    }
    divide(mean, (end - begin) * sharing_);
  }

  // Writes the columns of a row, for each of the heads that choose together. `order` is scratch
  // memory.
  void choose(std::span<const double> affinities, std::vector<std::int32_t>& order,
              BlockLayout& layout, std::int64_t row) const {
    const std::int64_t own = has_own_block(row) ? 1 : 0;
    const std::int64_t count = seen_blocks(row) - own;
    order.resize(affinities.size());
    std::iota(order.begin(), order.end(), 0);
    std::nth_element(
        order.begin(), order.begin() + count, order.end(),
        [&](std::int32_t a, std::int32_t b) { return comes_before(affinities, a, b); });
    std::sort(order.begin(), order.begin() + count);
    for (std::int64_t head = 0; head < sharing_; ++head) {
      const std::int64_t of_head = (row / rows_ * sharing_ + head) * rows_ + row % rows_;
      const std::int64_t begin = layout.row_begin[static_cast<std::size_t>(of_head)];
      std::int32_t* columns = layout.columns.data() + begin;
      std::copy_n(order.begin(), count, columns);
      if (own == 1) columns[count] = static_cast<std::int32_t>(affinities.size());
    }
  }

  // Marks the own blocks that have keys after the query as partial.
  void mark_partial(BlockLayout& layout) const {
    for (std::size_t row = 0; row + 1 < layout.row_begin.size(); ++row) {
      const std::int64_t last = position(static_cast<std::int64_t>(row));
      if (last < 0) continue;
      const std::int64_t end =
          std::min((last / options_.block + 1) * options_.block, key_.extent(2));
      const auto own = static_cast<std::size_t>(layout.row_begin[row + 1] - 1);
      layout.partial[own] = last + 1 < end ? 1 : 0;
    }
  }

  TensorView<const T> query_;
  TensorView<const T> key_;
  SelectBlocksOptions options_;
  std::int64_t sharing_;   // the number of query heads that choose together
  std::int64_t choosers_;  // the number of groups of heads that choose
  std::int64_t dim_;
  std::int64_t blocks_;  // of keys
  std::int64_t rows_;    // of blocks of queries, in each head
  std::vector<double> key_means_;
};

template <class T>
BlockLayout select(TensorView<const T> query, TensorView<const T> key,
                   const SelectBlocksOptions& options) {
  const FloatEnvironment environment;
  const AttentionShapes shapes = check_shapes(kSelectBlocks, query, key);
  check_heads(kSelectBlocks, shapes);
  check_selection(options, shapes);
  return BlockSelector<T>(query, key, options).select();
}

}  // namespace

BlockLayout select_blocks(FloatView query, FloatView key, const SelectBlocksOptions& options) {
  return select(query, key, options);
}
BlockLayout select_blocks(DoubleView query, DoubleView key, const SelectBlocksOptions& options) {
  return select(query, key, options);
}
BlockLayout select_blocks(Float16View query, Float16View key, const SelectBlocksOptions& options) {
  return select(query, key, options);
}
BlockLayout select_blocks(BFloat16View query, BFloat16View key,
                          const SelectBlocksOptions& options) {
  return select(query, key, options);
}

}}  // namespace heed::v0
