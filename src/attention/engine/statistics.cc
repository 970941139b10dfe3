// Statistics of the weights of all rows, one number or a few for each row.
#include "heed/attention/statistics.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "attention/engine/passes.h"
#include "attention/engine/weight_block.h"
#include "attention/engine/work_queue.h"

namespace heed { inline namespace v0 { namespace engine {

namespace {

template <class Real>
struct StatisticsMemory {
  Piece<Real> entropy_sums;
  Piece<Real> largest_weights;
  Piece<std::int32_t> largest_keys;

  StatisticsMemory() = default;
  // `kept` is the number of largest weights to keep for each row.
  StatisticsMemory(const Schedule<Real>& schedule, std::int64_t kept, Layout& layout)
      : entropy_sums(layout.add<Real>(schedule.panel_rows)),
        largest_weights(layout.add<Real>(checked_multiply(kept, schedule.panel_rows))),
        largest_keys(layout.add<std::int32_t>(checked_multiply(kept, schedule.panel_rows))) {}
};

template <class Real>
class PanelStatistics {
 public:
  PanelStatistics(const Schedule<Real>& schedule, const StatisticsMemory<Real>& parts,
                  std::byte* memory);

  // Starts with a panel of this width and no keys.
  void start(std::int32_t width);

  // Adds a tile. Tiles must come in the order of their keys.
  void add(const kernels::BasicWeightTile<Real>& tile);

  // Writes the statistics of a panel of the block, except the key mass, after all weights were
  // added.
  void write(const WeightBlock<Real>& block, std::size_t panel,
             BasicAttentionStatistics<Real>& statistics) const;

 private:
  void write_row(std::int32_t r, Real lse, std::int64_t row,
                 BasicAttentionStatistics<Real>& statistics) const;

  const kernels::BasicKernelTable<Real>& table_;
  std::int32_t width_ = 0;
  Real* entropy_sums_;  // [width]: Σ weight · log2 weight
  kernels::BasicPanelLargest<Real> largest_;
};

template <class Real>
PanelStatistics<Real>::PanelStatistics(const Schedule<Real>& schedule,
                                       const StatisticsMemory<Real>& parts, std::byte* memory)
    : table_(*schedule.table),
      entropy_sums_(parts.entropy_sums.in(memory)),
      largest_{
          .count = static_cast<std::int32_t>(parts.largest_weights.count / schedule.panel_rows),
          .weights = parts.largest_weights.in(memory),
          .keys = parts.largest_keys.in(memory)} {}

template <class Real>
void PanelStatistics<Real>::start(std::int32_t width) {
  width_ = width;
  std::fill_n(entropy_sums_, width, Real{0});
  std::fill_n(largest_.weights, std::int64_t{largest_.count} * width, Real{0});
  std::fill_n(largest_.keys, std::int64_t{largest_.count} * width, -1);
}

template <class Real>
void PanelStatistics<Real>::add(const kernels::BasicWeightTile<Real>& tile) {
  table_.add_entropy(tile, entropy_sums_);
  table_.keep_largest(tile, largest_);
}

template <class Real>
void PanelStatistics<Real>::write(const WeightBlock<Real>& block, std::size_t panel,
                                  BasicAttentionStatistics<Real>& statistics) const {
  const PanelRows<Real>& rows = block.rows(panel);
  const Shape& shape = statistics.lse.shape();
  for (std::int32_t r = 0; r < rows.num_rows(); ++r) {
    const std::int64_t row = (rows.batch() * shape[1] + rows.head(r)) * shape[2] + rows.query(r);
    write_row(r, block.weights(panel).lse(r), row, statistics);
  }
}

template <class Real>
void PanelStatistics<Real>::write_row(std::int32_t r, Real lse, std::int64_t row,
                                      BasicAttentionStatistics<Real>& statistics) const {
  constexpr Real kNaN = std::numeric_limits<Real>::quiet_NaN();
  // True if all scores that the row sees are finite.
  const bool is_sound = lse < kInfinity<Real>;
  const auto weight_at = [&](std::int64_t i) {
    if (!is_sound) return kNaN;
    return i < largest_.count ? largest_.weights[i * width_ + r] : Real{0};
  };
  const auto key_at = [&](std::int64_t i) -> std::int64_t {
    return is_sound && i < largest_.count ? largest_.keys[i * width_ + r] : -1;
  };
  const auto entropy = static_cast<Real>(0 - entropy_sums_[r] * std::numbers::ln2);
  statistics.lse.data()[row] = lse;
  statistics.entropy.data()[row] = is_sound ? entropy : kNaN;
  statistics.max_weight.data()[row] = weight_at(0);
  statistics.max_key.data()[row] = key_at(0);
  const std::int64_t top_k = statistics.top_keys.extent(-1);
  for (std::int64_t i = 0; i < top_k; ++i) {
    statistics.top_weights.data()[row * top_k + i] = weight_at(i);
    statistics.top_keys.data()[row * top_k + i] = key_at(i);
  }
}

template <class Real>
struct StatisticsWorkerMemory {
  WeightBlockMemory<Real> block;
  // For each panel of a block.
  std::vector<StatisticsMemory<Real>> panels;

  StatisticsWorkerMemory(const Schedule<Real>& schedule, std::int64_t top_k, Layout& layout)
      : block(schedule, layout) {
    // At least one is kept: the largest weight of a row is the first of the largest.
    const std::int64_t kept = std::max<std::int64_t>(std::min(top_k, schedule.kv_len), 1);
    for (std::int32_t i = 0; i < schedule.panels_per_block; ++i) {
      panels.emplace_back(schedule, kept, layout);
    }
  }
};

// The memory and the computation of one thread.
template <class Real>
class StatisticsWorker {
 public:
  StatisticsWorker(const Schedule<Real>& schedule, const StatisticsWorkerMemory<Real>& parts,
                   std::byte* memory)
      : table_(*schedule.table), block_(schedule, parts.block, memory) {
    for (const auto& panel : parts.panels) panels_.emplace_back(schedule, panel, memory);
  }

  // Computes the statistics of these rows, which share a key head, and adds their weights to
  // masses[batch, head], [kv_len].
  void compute(const Call<Real>& job, std::int64_t batch, std::span<const RowIndex> rows,
               TensorView<Real> masses, BasicAttentionStatistics<Real>& statistics) {
    block_.start(job, batch, rows);
    for (std::size_t i = 0; i < block_.num_panels(); ++i) panels_[i].start(block_.rows(i).width());
    block_.visit([&](std::size_t i, const kernels::BasicWeightTile<Real>& weights, const auto&) {
      panels_[i].add(weights);
      add_mass(weights, block_.rows(i), masses);
    });
    for (std::size_t i = 0; i < block_.num_panels(); ++i) panels_[i].write(block_, i, statistics);
  }

 private:
  // Rows of one head are neighbours.
  void add_mass(const kernels::BasicWeightTile<Real>& tile, const PanelRows<Real>& rows,
                TensorView<Real> masses) const {
    std::int32_t last = 0;
    for (std::int32_t first = 0; first < rows.num_rows(); first = last) {
      while (last < rows.num_rows() && rows.head(last) == rows.head(first)) ++last;
      Real* mass = masses.select(0, rows.batch()).select(0, rows.head(first)).data();
      kernels::for_summed_rows<Real>({first, last}, [&](kernels::PanelPart part) {
        table_.add_mass(tile, part, mass + tile.first_key);
      });
    }
  }

  const kernels::BasicKernelTable<Real>& table_;
  WeightBlock<Real> block_;
  std::vector<PanelStatistics<Real>> panels_;
};

template <class Real>
struct AllStatisticsMemory {
  Layout layout;
  Layout worker_layout;
  StatisticsWorkerMemory<Real> worker;
  std::int64_t parts;
  Piece<std::byte> workers;
  Piece<Real> later_masses;  // [parts − 1, batch, num_heads, kv_len]

  AllStatisticsMemory(const ScoreShape& shape, const Schedule<Real>& schedule, std::int64_t top_k)
      : worker(schedule, top_k, worker_layout),
        parts(std::max<std::int64_t>((shape.q_len + part_queries(shape) - 1) / part_queries(shape),
                                     1)),
        workers(layout.add<std::byte>(
            checked_multiply(schedule.workers, static_cast<std::int64_t>(worker_layout.bytes())))),
        later_masses(layout.add<Real>(checked_multiply(parts - 1, masses(shape)))) {}

  static std::int64_t part_queries(const ScoreShape& shape) {
    return queries_per_part<Real>(shape.q_len);
  }
  static std::int64_t masses(const ScoreShape& shape) {
    return Shape{shape.batch, shape.num_heads, shape.kv_len}.num_elements();
  }
};

template <class Real>
class AllRows {
 public:
  AllRows(const Call<Real>& job, const Schedule<Real>& schedule,
          BasicAttentionStatistics<Real>& statistics)
      : job_(job),
        schedule_(schedule),
        shape_(job.request->scores()),
        statistics_(statistics),
        parts_(shape_, schedule, statistics.top_keys.extent(-1)),
        arena_(parts_.layout) {
    Real* later = parts_.later_masses.in(arena_.memory());
    std::fill_n(later, parts_.later_masses.count, Real{0});
  }

  void compute() {
    const std::int64_t kv_heads = job_.request->num_kv_heads();
    const std::int64_t heads = shape_.batch * kv_heads;
    std::byte* const memory = parts_.workers.in(arena_.memory());
    const auto start = [&](std::int64_t w) {
      return StatisticsWorker<Real>(
          schedule_, parts_.worker,
          memory + static_cast<std::size_t>(w) * parts_.worker_layout.bytes());
    };
    deal_out(heads * parts_.parts, schedule_.workers, start,
             [&](StatisticsWorker<Real>& worker, std::int64_t i) {
               // The last queries come first: under a causal mask they see the most keys.
               const std::int64_t part = parts_.parts - 1 - i / heads;
               compute_part(worker, part, i % heads / kv_heads, i % kv_heads);
             });
    const std::int64_t count = statistics_.key_mass.num_elements();
    for (std::int64_t part = 1; part < parts_.parts; ++part) {
      const Real* mass = masses_of(part).data();
      for (std::int64_t i = 0; i < count; ++i) statistics_.key_mass.data()[i] += mass[i];
    }
  }

 private:
  // [batch, num_heads, kv_len]
  TensorView<Real> masses_of(std::int64_t part) {
    const TensorView<Real> first = statistics_.key_mass.view();
    if (part == 0) return first;
    Real* later = parts_.later_masses.in(arena_.memory());
    return TensorView<Real>(later + (part - 1) * first.num_elements(), first.shape());
  }

  void compute_part(StatisticsWorker<Real>& worker, std::int64_t part, std::int64_t batch,
                    std::int64_t kv_head) {
    const std::int64_t group = job_.request->heads_per_kv_head;
    const TensorView<Real> masses = masses_of(part);
    const std::int64_t part_queries = parts_.part_queries(shape_);
    const std::int64_t first_query = part * part_queries;
    const std::int64_t queries = std::min(part_queries, shape_.q_len - first_query);
    std::vector<RowIndex> rows;
    for (std::int64_t i = 0; i < group * queries; ++i) {
      rows.push_back({static_cast<std::int32_t>(kv_head * group + i / queries),
                      static_cast<std::int32_t>(first_query + i % queries)});
      if (static_cast<std::int64_t>(rows.size()) < schedule_.block_rows()) continue;
      worker.compute(job_, batch, rows, masses, statistics_);
      rows.clear();
    }
    if (!rows.empty()) worker.compute(job_, batch, rows, masses, statistics_);
  }

  const Call<Real>& job_;
  const Schedule<Real>& schedule_;
  ScoreShape shape_;
  BasicAttentionStatistics<Real>& statistics_;
  AllStatisticsMemory<Real> parts_;
  Arena arena_;
};

}  // namespace

template <class Real>
std::size_t statistics_bytes(const Request<Real>& request, const Schedule<Real>& schedule,
                             std::int64_t top_k) {
  return Arena::bytes_for(AllStatisticsMemory<Real>(request.scores(), schedule, top_k).layout);
}

template <class Real>
void statistics_of(const Call<Real>& job, const Schedule<Real>& schedule,
                   BasicAttentionStatistics<Real>& statistics) {
  AllRows<Real>(job, schedule, statistics).compute();
}

template std::size_t statistics_bytes(const Request<float>&, const Schedule<float>&, std::int64_t);
template std::size_t statistics_bytes(const Request<double>&, const Schedule<double>&,
                                      std::int64_t);
template void statistics_of(const Call<float>&, const Schedule<float>&, AttentionStatistics&);
template void statistics_of(const Call<double>&, const Schedule<double>&,
                            BasicAttentionStatistics<double>&);

}}}  // namespace heed::v0::engine
