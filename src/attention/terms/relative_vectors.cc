// Vectors added to keys and to values, from a table by the distance from the query's position to
// the key's. As a tile uses few entries of the table, products are computed for entries and not for
// each key.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "attention/terms/distance_entries.h"
#include "attention/terms/terms.h"
#include "core/check_tensor.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

// The table of vectors, and its products for a tile.
template <class Real>
class VectorTable {
 public:
  using Tile = kernels::BasicScoreTile<Real>;
  using Loops = kernels::BasicScoreLoops<Real>;

  VectorTable(TensorView<const Real> table, const RelativeBuckets& buckets,
              const ScoreShape& scores)
      : given_(table.shape()),
        table_(table.broadcast_to({scores.num_heads, buckets.count(), table.extent(-1)})),
        buckets_(buckets),
        query_offset_(scores.query_offset) {}

  const Shape& shape() const { return given_; }
  std::int64_t dim() const { return table_.extent(2); }
  std::int64_t size() const { return table_.extent(1) * dim(); }
  std::string description() const { return buckets_.description(); }

  const Real* vector(const detail::ScoreIndex& at) const {
    return vectors_of(at.head) + entry_of(at) * table_.stride(1);
  }
  // The place of that vector in the gradient of the table.
  Real* gradient_of(const detail::ScoreIndex& at, Real* gradient) const {
    return gradient + (given_.rank() == 2 ? 0 : at.head) * size() + entry_of(at) * dim();
  }

  // Rows of a tile that share vectors, and the entries that they use.
  struct Part {
    const Tile& tile;
    CloseRows close;
    DistanceEntries entries;
    const Real* vectors;  // of the head, [entries][entry_stride]
    std::int64_t entry_stride;

    // True if all scores of the tile use one entry.
    bool is_uniform() const { return close.are_all && entries.are_one(); }

    // Calls visit(index of the score, index of the score's entry and row in EntryRows).
    template <class Visit>
    void for_each_score(const Visit& visit) const {
      for (std::int32_t j = tile.begin; j < tile.end; ++j) {
        for (std::int32_t i = 0; i < close.count; ++i) {
          const std::int32_t r = close.rows[static_cast<std::size_t>(i)];
          const std::int64_t number = entries.number_of(tile.first_key + j - tile.q_idx[r]);
          visit(std::int64_t{j} * tile.width + r, number * tile.width + r);
        }
      }
    }

    // Calls use(number of the first entry, vectors) for runs of entries at equal distances in the
    // table.
    template <class Use>
    void for_each_run(std::int64_t dim, const Use& use) const {
      for (std::int64_t first = 0, last = 1; first < entries.count(); first = last++) {
        const std::int64_t step = last < entries.count() ? entries[last] - entries[first] : 0;
        while (last < entries.count() && entries[last] - entries[last - 1] == step) ++last;
        use(first, kernels::BasicMatrix<Real>{vectors + entries[first] * entry_stride, last - first,
                                              dim, step * entry_stride, 1});
      }
    }
  };

  template <class Visit>
  void for_each_part(const Tile& tile, const Visit& visit) const {
    const auto may_join = [&](std::int32_t r, std::int32_t s) {
      return table_.stride(0) == 0 || tile.heads[r] == tile.heads[s];
    };
    for_each_close_rows(tile, may_join, [&](const CloseRows& close) {
      visit(Part{tile, close, DistanceEntries(buckets_, close),
                 vectors_of(tile.heads[close.first()]), table_.stride(1)});
    });
  }

  // [entry of a part][width of the tile]
  using EntryRows = std::array<Real, CloseRows::kMostDistances * kernels::kMaxPanelWidth>;

  // products[n][r] = Σ_d vector of entry n · of[d][r]
  void multiply(const Part& part, const Real* of, const Loops& loops, EntryRows& products) const {
    const std::int32_t width = part.tile.width;
    std::fill_n(products.begin(), part.entries.count() * width, Real{0});
    part.for_each_run(dim(), [&](std::int64_t first, const kernels::BasicMatrix<Real>& vectors) {
      loops.multiply_rows(vectors, of, width, products.data() + first * width);
    });
  }

  // out[d][r] += Σ_j numbers[j][r] · (vector of score j, r)[d]
  void add_weighted(const Tile& tile, const Real* numbers, const Loops& loops, Real* out) const {
    alignas(64) EntryRows sums;
    for_each_part(tile, [&](const Part& part) {
      sum(part, numbers, loops, sums);
      part.for_each_run(dim(), [&](std::int64_t first, kernels::BasicMatrix<Real> vectors) {
        std::swap(vectors.rows, vectors.columns);
        std::swap(vectors.row_stride, vectors.column_stride);
        loops.multiply_rows(vectors, sums.data() + first * tile.width, tile.width, out);
      });
    });
  }

  // Adds Σ numbers[j][r] · of[d][r], over the scores (j, r) that use a vector, to the gradient of
  // its element d, for each vector; `of` is [dim][width].
  void add_gradients(const Tile& tile, const Real* numbers, const Real* of,
                     const TermSums<Real>& gradients, const Loops& loops) const {
    alignas(64) EntryRows sums;
    for_each_part(tile, [&](const Part& part) {
      sum(part, numbers, loops, sums);
      double* const head = gradients.of_head(tile.heads[part.close.first()], size());
      for (std::int64_t n = 0; n < part.entries.count(); ++n) {
        add_products(tile, sums.data() + n * tile.width, of, head + part.entries[n] * dim(), loops);
      }
    });
  }

 private:
  // sums[n][r] = Σ_j numbers[j][r] over the keys j that use entry n; 0 for rows of other parts.
  static void sum(const Part& part, const Real* numbers, const Loops& loops, EntryRows& sums) {
    std::fill_n(sums.begin(), part.entries.count() * part.tile.width, Real{0});
    if (part.is_uniform()) return loops.sum_keys(part.tile, numbers, sums.data());
    part.for_each_score([&](std::int64_t score, std::int64_t row) {
      sums[static_cast<std::size_t>(row)] += numbers[score];
    });
  }

  // gradient[d] += Σ_r numbers[r] · of[d][r]
  void add_products(const Tile& tile, const Real* numbers, const Real* of, double* gradient,
                    const Loops& loops) const {
    constexpr std::int64_t kPiece = 256;
    std::array<Real, kPiece> products;
    for (std::int64_t first = 0; first < dim(); first += kPiece) {
      const std::int64_t count = std::min(kPiece, dim() - first);
      const kernels::BasicMatrix<Real> some{of + first * tile.width, count, tile.width, tile.width};
      kernels::for_summed_rows<Real>({0, tile.num_rows}, [&](kernels::PanelPart part) {
        loops.gradients->dot_rows(some, part, numbers, products.data());
        for (std::int64_t d = 0; d < count; ++d) {
          gradient[first + d] += double{products[static_cast<std::size_t>(d)]};
        }
      });
    }
  }

  const Real* vectors_of(std::int64_t head) const {
    return table_.data() + head * table_.stride(0);
  }
  std::int64_t entry_of(const detail::ScoreIndex& at) const {
    return buckets_(at.k - at.q - query_offset_[at.batch]);
  }

  Shape given_;
  TensorView<const Real> table_;  // [num_heads, entries, dim]
  RelativeBuckets buckets_;
  QueryOffset query_offset_;
};

template <class Real>
class RelativeKeys final : public FormulaTerm<RelativeKeys<Real>, Real> {
 public:
  using Table = VectorTable<Real>;
  using Tile = typename Table::Tile;
  using Loops = typename Table::Loops;

  explicit RelativeKeys(Table table) : table_(std::move(table)) {}

  std::string description() const override {
    return fmt::format("relative_keys[{}]", table_.description());
  }

  template <class Score>
  Score of(Score score, const ScoreAt<Real>& at) const {
    const Real* vector = table_.vector(at);
    Real product = 0;
    for (std::int64_t d = 0; d < table_.dim(); ++d) product += at.query[d] * vector[d];
    return score + Score(product);
  }

  void apply_to(const Tile& tile, const Loops& loops) const override {
    alignas(64) typename Table::EntryRows products;
    table_.for_each_part(tile, [&](const typename Table::Part& part) {
      table_.multiply(part, tile.query, loops, products);
      if (part.is_uniform()) return loops.add_diagonals(tile, products.data(), 0);
      part.for_each_score([&](std::int64_t score, std::int64_t row) {
        tile.scores[score] += products[static_cast<std::size_t>(row)];
      });
    });
  }

  typename ScoreTerm<Real>::Gradient gradient() const override {
    return &OptionGradients<Real>::relative_key;
  }
  Shape gradient_shape() const override { return table_.shape(); }
  void add_gradient(Real grad_score, const ScoreAt<Real>& at, Real* gradient) const override {
    Real* sums = table_.gradient_of(at, gradient);
    for (std::int64_t d = 0; d < table_.dim(); ++d) sums[d] += grad_score * at.query[d];
  }
  std::int64_t sums_per_head() const override { return table_.size(); }
  void add_gradient(const Tile& tile, const Real* grad_scores, const TermSums<Real>& sums,
                    const Loops& loops) const override {
    table_.add_gradients(tile, grad_scores, tile.query, sums, loops);
  }

  bool reads_query() const override { return true; }
  void add_query_gradient(Real grad_score, const ScoreAt<Real>& at, Real* gradient) const override {
    const Real* vector = table_.vector(at);
    for (std::int64_t d = 0; d < table_.dim(); ++d) gradient[d] += grad_score * vector[d];
  }
  void add_query_gradient(const Tile& tile, const Real* grad_scores, Real* gradient,
                          const Loops& loops) const override {
    table_.add_weighted(tile, grad_scores, loops, gradient);
  }

 private:
  Table table_;
};

template <class Real>
class RelativeValues final : public FormulaTerm<RelativeValues<Real>, Real> {
 public:
  using Table = VectorTable<Real>;
  using Tile = typename Table::Tile;
  using Loops = typename Table::Loops;

  explicit RelativeValues(Table table) : table_(std::move(table)) {}

  std::string description() const override {
    return fmt::format("relative_values[{}]", table_.description());
  }

  // Does not change scores.
  template <class Score>
  Score of(Score score, const ScoreAt<Real>&) const {
    return score;
  }
  void apply_to(const Tile&, const Loops&) const override {}

  bool adds_to_values() const override { return true; }
  const Real* added_value(const detail::ScoreIndex& at) const override { return table_.vector(at); }
  void add_to_out(const Tile& weights, Real* out, const Loops& loops) const override {
    table_.add_weighted(weights, weights.scores, loops, out);
  }

  typename ScoreTerm<Real>::Gradient gradient() const override {
    return &OptionGradients<Real>::relative_value;
  }
  Shape gradient_shape() const override { return table_.shape(); }
  std::int64_t sums_per_head() const override { return table_.size(); }
  void add_value_gradient(Real weight, const detail::ScoreIndex& at, const Real* grad_out,
                          Real* gradient) const override {
    Real* sums = table_.gradient_of(at, gradient);
    for (std::int64_t d = 0; d < table_.dim(); ++d) sums[d] += weight * grad_out[d];
  }
  void add_value_gradients(const Tile& weights, const Real* grad_out, Real* grad_scores,
                           const TermSums<Real>& sums, const Loops& loops) const override {
    alignas(64) typename Table::EntryRows rows;
    table_.for_each_part(weights, [&](const typename Table::Part& part) {
      table_.multiply(part, grad_out, loops, rows);
      if (part.is_uniform()) {
        loops.gradients->add_scaled(weights, rows.data(), grad_scores);
      } else {
        part.for_each_score([&](std::int64_t score, std::int64_t row) {
          const Real weight = weights.scores[score];
          if (weight != 0) grad_scores[score] += weight * rows[static_cast<std::size_t>(row)];
        });
      }
    });
    table_.add_gradients(weights, weights.scores, grad_out, sums, loops);
  }

 private:
  Table table_;
};

// Throws InvalidArgument unless the table has one of the permitted shapes.
template <class Real>
VectorTable<Real> check_table(const TermInput<Real>& input, const char* name,
                              TensorView<const Real> table, std::int64_t dim) {
  const RelativeBuckets& buckets = input.options.relative_vectors->buckets;
  const Shape shared{buckets.count(), dim};
  const Shape per_head{input.scores.num_heads, buckets.count(), dim};
  if (table.shape() != shared && table.shape() != per_head) {
    throw InvalidArgument(fmt::format("{}: relative_vectors.{} has shape {}, expected {} or {}",
                                      input.function, name, to_string(table.shape()),
                                      to_string(shared), to_string(per_head)));
  }
  if (dim > 1 && table.stride(-1) != 1) {
    throw InvalidArgument(
        fmt::format("{}: relative_vectors.{} has stride {} in its innermost dimension, expected 1",
                    input.function, name, table.stride(-1)));
  }
  return {table, buckets, input.scores};
}

}  // namespace

template <class Real>
auto TermFactory<Real>::relative_keys(const Input& input) -> Pointer {
  const auto& vectors = input.options.relative_vectors;
  if (!vectors || !vectors->key) return nullptr;
  return std::make_shared<RelativeKeys<Real>>(
      check_table(input, "key", *vectors->key, input.shapes.head_dim));
}

template <class Real>
auto TermFactory<Real>::relative_values(const Input& input) -> Pointer {
  const auto& vectors = input.options.relative_vectors;
  if (!vectors || !vectors->value) return nullptr;
  return std::make_shared<RelativeValues<Real>>(
      check_table(input, "value", *vectors->value, input.shapes.value_dim));
}

template auto TermFactory<float>::relative_keys(const Input&) -> Pointer;
template auto TermFactory<double>::relative_keys(const Input&) -> Pointer;
template auto TermFactory<float>::relative_values(const Input&) -> Pointer;
template auto TermFactory<double>::relative_values(const Input&) -> Pointer;

}}  // namespace heed::v0
