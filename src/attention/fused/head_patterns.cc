#include "attention/fused/head_patterns.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>

#include "attention/fused/weight_block.h"
#include "heed/parallel.h"

namespace heed::inline v0::fused {

using kernels::kTileKeys;

HeadPatterns::Head::Head(const Schedule& schedule, Workspace& workspace)
    : rows(schedule, workspace),
      panel(schedule, workspace),
      weights(workspace.floats(std::min<std::int64_t>(kTileKeys, schedule.kv_len) *
                               schedule.panel_rows)),
      keys_seen(workspace.floats(schedule.panel_rows)),
      entropy_sums(workspace.floats(schedule.panel_rows)),
      squares(workspace.floats(schedule.panel_rows)) {}

HeadPatterns::HeadPatterns(const Schedule& schedule, std::int64_t num_heads, Workspace& workspace)
    : table_(*schedule.table), reader_(schedule, workspace) {
  const auto count = static_cast<std::size_t>(num_heads);
  heads_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) heads_.emplace_back(schedule, workspace);
  scratch_ = {{schedule, workspace}, nullptr};
  if (schedule.widens_query) {
    staged_query_ = workspace.floats(schedule.panel_rows * schedule.head_dim);
  }
  products_ = workspace.floats(num_heads * (num_heads - 1) / 2 * schedule.panel_rows);
}

void HeadPatterns::add(const Job& job, std::int64_t batch, RowRange queries, PatternSums& sums) {
  start(job, batch, queries);
  add_weights(sums);
  finish(sums);
}

// The first pass.
void HeadPatterns::start(const Job& job, std::int64_t batch, RowRange queries) {
  job_ = &job;
  batch_ = batch;
  std::vector<RowIndex> rows;
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    Head& head = heads_[i];
    rows.clear();
    for (std::int64_t q = queries.begin; q < queries.end; ++q) {
      rows.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(q)});
    }
    head.rows.start(job, batch, rows, staged_query_);
    head.panel.start(head.rows, *job.terms);
    width_ = head.rows.width();
    for (float* sum : {head.keys_seen, head.entropy_sums, head.squares}) {
      std::fill_n(sum, width_, 0.0F);
    }
    reader_.start(job, batch, job.terms->kv_head(static_cast<std::int64_t>(i)));
    for_each_tile([&](RowRange keys) {
      if (!sees(head, keys)) return;
      const kernels::Tile tile = reader_.read(keys);
      head.panel.add(tile, scratch_);
      table_.count_seen(head.rows.score_tile(tile, scratch_.scores), head.keys_seen);
    });
    head.panel.finish();
    head.kinds.clear();
    for (std::int32_t r = 0; r < head.rows.num_rows(); ++r) {
      const bool is_finite = head.panel.lse(r) < std::numeric_limits<float>::infinity();
      head.kinds.push_back(kind_of_row(is_finite, static_cast<std::int64_t>(head.keys_seen[r])));
    }
  }
  const std::size_t pairs = heads_.size() * (heads_.size() - 1) / 2;
  std::fill_n(products_, static_cast<std::int64_t>(pairs) * width_, 0.0F);
}

// The second pass.
void HeadPatterns::add_weights(PatternSums& sums) {
  for_each_tile([&](RowRange keys) {
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      reader_.start(*job_, batch_, job_->terms->kv_head(index));
      weigh(heads_[i], keys);
      add_masses(heads_[i], index, sums);
      add_offsets(heads_[i], index, sums);
    }
    add_products();
  });
}

void HeadPatterns::weigh(Head& head, RowRange keys) {
  head.tile = {};
  if (!sees(head, keys)) return;
  scratch_.weights = head.weights;
  head.tile = head.panel.weigh(reader_.read(keys), scratch_);
  table_.add_entropy(head.tile, head.entropy_sums);
  table_.add_products(head.tile, head.tile, head.squares);
}

// Neighbouring rows that count alike are added together.
void HeadPatterns::add_masses(const Head& head, std::int64_t index, PatternSums& sums) const {
  const auto num_rows = static_cast<std::int32_t>(head.kinds.size());
  std::int32_t last = 0;
  for (std::int32_t first = 0; first < num_rows && head.tile.vectors != 0; first = last) {
    const RowKind kind = head.kinds[static_cast<std::size_t>(first)];
    while (last < num_rows && head.kinds[static_cast<std::size_t>(last)] == kind) ++last;
    if (kind != RowKind::kChooses && kind != RowKind::kForced) continue;
    std::array<float, kTileKeys> mass{};
    table_.add_mass(head.tile, first, last, mass.data());
    Tensor<double>& target = kind == RowKind::kChooses ? sums.mass : sums.forced_mass;
    double* const out = target.view().select(0, index).data() + head.tile.first_key;
    for (std::int32_t key = head.tile.begin; key < head.tile.end; ++key) {
      out[key] += static_cast<double>(mass[static_cast<std::size_t>(key)]);
    }
  }
}

void HeadPatterns::add_offsets(const Head& head, std::int64_t index, PatternSums& sums) const {
  if (head.tile.vectors == 0) return;
  // The distances of a tile's keys from a panel's queries, counted from the least there may be.
  std::array<float, kTileKeys + kernels::kMaxPanelWidth> by_distance{};
  const auto num_rows = static_cast<std::int32_t>(head.kinds.size());
  for (std::int32_t r = 0; r < num_rows; ++r) {
    if (head.kinds[static_cast<std::size_t>(r)] != RowKind::kChooses) continue;
    float* const out = by_distance.data() + (num_rows - 1 - r);
    for (std::int32_t key = head.tile.begin; key < head.tile.end; ++key) {
      out[key] += head.tile.weights[std::int64_t{key} * width_ + r];
    }
  }
  const std::int64_t place = sums.offset_index(head.rows.query(num_rows - 1), head.tile.first_key);
  double* const out = sums.offset_mass.view().select(0, index).data() + place;
  for (std::int32_t i = head.tile.begin; i < head.tile.end + num_rows - 1; ++i) {
    out[i] += static_cast<double>(by_distance[static_cast<std::size_t>(i)]);
  }
}

void HeadPatterns::add_products() {
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    for (std::size_t j = i + 1; j < heads_.size(); ++j) {
      if (heads_[i].tile.vectors == 0 || heads_[j].tile.vectors == 0) continue;
      table_.add_products(heads_[i].tile, heads_[j].tile, products(i, j));
    }
  }
}

// Of heads i < j.
float* HeadPatterns::products(std::size_t i, std::size_t j) const {
  return products_ + static_cast<std::int64_t>(j * (j - 1) / 2 + i) * width_;
}

void HeadPatterns::finish(PatternSums& sums) const {
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    const Head& head = heads_[i];
    for (std::size_t r = 0; r < head.kinds.size(); ++r) {
      const double entropy = 0 - static_cast<double>(head.entropy_sums[r]) * std::numbers::ln2;
      sums.add_row(static_cast<std::int64_t>(i), head.rows.query(static_cast<std::int32_t>(r)),
                   head.kinds[r], static_cast<std::int64_t>(head.keys_seen[r]), entropy);
    }
    for (std::size_t j = i + 1; j < heads_.size(); ++j) {
      const Head& other = heads_[j];
      const float* const product = products(i, j);
      for (std::size_t r = 0; r < head.kinds.size(); ++r) {
        if (head.kinds[r] != RowKind::kChooses || other.kinds[r] != RowKind::kChooses) continue;
        const double squares =
            static_cast<double>(head.squares[r]) * static_cast<double>(other.squares[r]);
        if (squares == 0) continue;
        const auto first = static_cast<std::int64_t>(i);
        const auto second = static_cast<std::int64_t>(j);
        sums.cosines(first, second) += static_cast<double>(product[r]) / std::sqrt(squares);
        sums.cosine_rows(first, second) += 1;
      }
    }
  }
}

bool HeadPatterns::sees(const Head& head, RowRange keys) {
  return head.rows.sees({.first_key = static_cast<std::int32_t>(keys.begin),
                         .num_keys = static_cast<std::int32_t>(keys.end - keys.begin)});
}

template <class Use>
void HeadPatterns::for_each_tile(Use use) const {
  for (std::int64_t key = 0; key < job_->terms->shape.kv_len; key += kTileKeys) {
    use({key, std::min<std::int64_t>(key + kTileKeys, job_->terms->shape.kv_len)});
  }
}

namespace {

// Segments of queries of all sequences, which threads share.
class AllSequences {
 public:
  AllSequences(const Job& job, const Schedule& schedule, const DiagnosticsOptions& lengths)
      : job_(job),
        schedule_(schedule),
        lengths_(lengths),
        shape_(job.terms->shape),
        segment_queries_(queries_per_segment(shape_.q_len, schedule.panel_rows)),
        segments_(
            std::max<std::int64_t>((shape_.q_len + segment_queries_ - 1) / segment_queries_, 1)),
        sums_(static_cast<std::size_t>(shape_.batch * segments_), PatternSums(shape_)) {}

  AttentionDiagnostics compute() {
    parallel_for(0, shape_.batch * segments_, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        // The last queries of a causal mask see the most keys: they go first.
        compute_segment(i % shape_.batch, segments_ - 1 - i / shape_.batch);
      }
    });
    std::vector<PatternSums> sequences;
    for (std::int64_t batch = 0; batch < shape_.batch; ++batch) {
      PatternSums& total = sums_at(batch, 0);
      for (std::int64_t segment = 1; segment < segments_; ++segment) {
        total.add(sums_at(batch, segment));
      }
      sequences.push_back(std::move(total));
    }
    return diagnostics_of(sequences, shape_);
  }

 private:
  PatternSums& sums_at(std::int64_t batch, std::int64_t segment) {
    return sums_[static_cast<std::size_t>(batch * segments_ + segment)];
  }

  void compute_segment(std::int64_t batch, std::int64_t segment) {
    PatternSums& sums = sums_at(batch, segment);
    sums.kv_length = length_of(lengths_.kv_lengths, batch, shape_.kv_len);
    const std::int64_t first = segment * segment_queries_;
    const std::int64_t last =
        std::min(first + segment_queries_, length_of(lengths_.q_lengths, batch, shape_.q_len));
    if (first >= last || shape_.num_heads == 0) return;
    auto memory =
        memory_for([&](Workspace& all) { HeadPatterns(schedule_, shape_.num_heads, all); });
    Workspace workspace = workspace_in(memory);
    HeadPatterns patterns(schedule_, shape_.num_heads, workspace);
    for (std::int64_t q = first; q < last; q += schedule_.panel_rows) {
      patterns.add(job_, batch, {q, std::min<std::int64_t>(q + schedule_.panel_rows, last)}, sums);
    }
  }

  const Job& job_;
  const Schedule& schedule_;
  const DiagnosticsOptions& lengths_;
  ScoreShape shape_;
  std::int64_t segment_queries_;
  std::int64_t segments_;
  std::vector<PatternSums> sums_;  // [batch][segment]
};

}  // namespace

AttentionDiagnostics diagnose(const Job& job, const Schedule& schedule,
                              const DiagnosticsOptions& lengths) {
  return AllSequences(job, schedule, lengths).compute();
}

}  // namespace heed::inline v0::fused
