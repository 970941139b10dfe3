// score += table[head][entry of the distance from the query's position to the key's].
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "attention/terms/terms.h"
#include "core/check_tensor.h"

namespace heed { inline namespace v0 {

namespace {

// For each key, tiles read consecutive numbers for the rows of a panel, which are the heads of one
// query that share a key head, then those of the next query. The table is therefore expanded to
// [key head][q_idx − kv_idx][heads that share it].
template <class Real>
class RelativeBiasTerm final : public FormulaTerm<RelativeBiasTerm<Real>, Real> {
 public:
  RelativeBiasTerm(const RelativeBias<Real>& bias, const TermInput<Real>& input)
      : bias_(bias),
        query_offset_(input.scores.query_offset),
        group_(input.shapes.num_heads == 0
                   ? 1
                   : static_cast<std::int32_t>(input.shapes.num_heads / input.shapes.num_kv_heads)),
        reach_(static_cast<std::int32_t>(std::min(bias.buckets.reach(), furthest(input.scores)))) {
    const std::int64_t heads = bias.table.extent(0);
    for (std::int64_t behind = -half_span(); behind <= half_span(); ++behind) {
      entries_.push_back(static_cast<std::int32_t>(bias.buckets(-behind)));
    }
    const auto size = static_cast<std::size_t>(checked_multiply(heads, span()));
    expanded_.resize(size + kernels::kMaxPanelWidth);
    auto next = expanded_.begin();
    for (std::int64_t first = 0; first < heads; first += group_) {
      for (const std::int32_t entry : entries_) {
        for (std::int64_t h = first; h < first + group_; ++h) *next++ = bias.table(h, entry);
      }
    }
  }

  std::string description() const override {
    return fmt::format("relative_bias[{}]", bias_.buckets.description());
  }

  template <class Score>
  Score of(Score score, const detail::ScoreIndex& at) const {
    return score + Score(bias_.table(at.head, entry_of(at)));
  }

  void apply_to(const kernels::BasicScoreTile<Real>& tile,
                const kernels::BasicScoreLoops<Real>& loops) const override {
    if (are_neighbours(tile, {0, tile.num_rows})) {
      loops.add_diagonals(tile, element(tile, 0, tile.num_rows - 1), group_);
      return;
    }
    std::array<const Real*, kernels::kMaxPanelWidth> rows;
    for (std::int32_t r = 0; r < tile.width; ++r) {
      rows[static_cast<std::size_t>(r)] = element(tile, r, r);
    }
    loops.add_rows(tile, {rows.data(), -group_});
  }

  // The gradient of an entry is the sum of the gradients of the scores that use it.
  typename ScoreTerm<Real>::Gradient gradient() const override {
    return &OptionGradients<Real>::relative_bias;
  }
  Shape gradient_shape() const override { return bias_.table.shape(); }
  void add_gradient(Real grad_score, const ScoreAt<Real>& at, Real* gradient) const override {
    gradient[at.head * bias_.table.extent(1) + entry_of(at)] += grad_score;
  }
  std::int64_t sums_per_head() const override { return bias_.table.extent(1); }
  void add_gradient(const kernels::BasicScoreTile<Real>& tile, const Real* grad_scores,
                    const TermSums<Real>& sums,
                    const kernels::BasicScoreLoops<Real>& loops) const override {
    kernels::for_summed_rows<Real>({0, tile.num_rows}, [&](kernels::PanelPart part) {
      if (group_ <= kMostSummed && are_neighbours(tile, part)) {
        return add_diagonal_sums(tile, part, grad_scores, sums, loops);
      }
      for (std::int32_t r = part.begin; r < part.end; ++r) {
        double* head = sums.of_head(tile.heads[r], sums_per_head());
        const std::int64_t first = index_of(tile, r, r);
        for (std::int32_t j = tile.begin; j < tile.end; ++j) {
          head[entry_at(first - j)] += double{grad_scores[std::int64_t{j} * tile.width + r]};
        }
      }
    });
  }

 private:
  // With more heads per key head than this, gradients are added to the table one by one.
  static constexpr std::int32_t kMostSummed = 16;

  // A bound on the distance between a query and a key.
  static std::int64_t furthest(const ScoreShape& scores) {
    std::int64_t found = 0;
    for (const std::int64_t offset : scores.query_offset.values()) {
      found = std::max({found, std::abs(offset - scores.kv_len), std::abs(offset + scores.q_len)});
    }
    return found;
  }

  // Distances beyond ±reach_ share an entry. The table has room for one more tile and panel there.
  std::int64_t half_span() const { return reach_ + kernels::kTileKeys + kernels::kMaxPanelWidth; }
  // The number of elements of a head.
  std::int64_t span() const { return 2 * half_span() + 1; }

  std::int64_t entry_of(const detail::ScoreIndex& at) const {
    return bias_.buckets(at.k - at.q - query_offset_[at.batch]);
  }
  std::size_t entry_at(std::int64_t index) const {
    return static_cast<std::size_t>(entries_[static_cast<std::size_t>(index)]);
  }

  // True if the rows of a part are consecutive in the order of a panel.
  bool are_neighbours(const kernels::BasicScoreTile<Real>& tile, kernels::PanelPart part) const {
    const auto place = [&](std::int32_t r) {
      return std::int64_t{tile.q_idx[r]} * group_ + tile.heads[r];
    };
    for (std::int32_t r = part.begin + 1; r < part.end; ++r) {
      if (place(r) != place(r - 1) + 1) return false;
    }
    return true;
  }

  // The index in the expanded table, within a head, of the distance of row r to key 0 of the tile.
  // If all distances of the rows r to last_r lie beyond reach_, the index is moved to distances
  // just beyond it, which have the same entry and for which the table has room.
  std::int64_t index_of(const kernels::BasicScoreTile<Real>& tile, std::int32_t r,
                        std::int32_t last_r) const {
    const std::int64_t behind = std::int64_t{tile.q_idx[r]} - tile.first_key;
    const std::int64_t nearest = behind - (tile.end - 1);
    const std::int64_t furthest = tile.q_idx[last_r] - tile.first_key - tile.begin;
    const std::int64_t limit = reach_ + 1;
    std::int64_t moved = 0;
    if (nearest > limit) moved = limit - nearest;
    if (furthest < -limit) moved = -limit - furthest;
    return behind + moved + half_span();
  }

  const Real* element(const kernels::BasicScoreTile<Real>& tile, std::int32_t r,
                      std::int32_t last_r) const {
    const std::int64_t head = tile.heads[r];
    return expanded_.data() + head / group_ * group_ * span() + index_of(tile, r, last_r) * group_ +
           head % group_;
  }

  void add_diagonal_sums(const kernels::BasicScoreTile<Real>& tile, kernels::PanelPart part,
                         const Real* grad_scores, const TermSums<Real>& sums,
                         const kernels::BasicScoreLoops<Real>& loops) const {
    alignas(64) std::array<Real, kernels::kTileKeys * kMostSummed + kernels::kMaxPanelWidth> found;
    const std::int32_t keys = tile.end - tile.begin;
    std::fill_n(found.begin(), keys * group_ + tile.width, Real{0});
    loops.gradients->sum_diagonals(tile, part, grad_scores, group_, found.data());
    const std::int64_t first = index_of(tile, part.begin, part.end - 1) - (tile.end - 1);
    const std::int64_t head = tile.heads[part.begin];
    double* const heads = sums.of_head(head / group_ * group_, sums_per_head());
    const std::int64_t count = (keys - 1) * group_ + part.end - part.begin;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = head % group_ + i;
      heads[at % group_ * sums_per_head() +
            static_cast<std::int64_t>(entry_at(first + at / group_))] +=
          double{found[static_cast<std::size_t>(part.begin + i)]};
    }
  }

  RelativeBias<Real> bias_;
  QueryOffset query_offset_;
  std::int32_t group_;  // the number of heads that share a key head
  std::int32_t reach_;  // the largest distance with an entry of its own
  std::vector<std::int32_t> entries_;
  std::vector<Real> expanded_;
};

}  // namespace

template <class Real>
auto TermFactory<Real>::relative_bias(const Input& input) -> Pointer {
  const auto& bias = input.options.relative_bias;
  if (!bias) return nullptr;
  check_tensor(input.function, "relative_bias.table", bias->table,
               Shape{input.scores.num_heads, bias->buckets.count()});
  return std::make_shared<RelativeBiasTerm<Real>>(*bias, input);
}

template auto TermFactory<float>::relative_bias(const Input&) -> Pointer;
template auto TermFactory<double>::relative_bias(const Input&) -> Pointer;

}}  // namespace heed::v0
