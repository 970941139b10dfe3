#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "attention/engine/passes.h"
#include "attention/engine/weight_block.h"
#include "attention/engine/work_queue.h"

namespace heed { inline namespace v0 { namespace engine {

namespace {

using kernels::kTileKeys;

template <class Real>
struct HeadMemory {
  WeightPanelMemory<Real> panel;
  Piece<Real> weights;
  Piece<Real> keys_seen;
  Piece<Real> entropy_sums;
  Piece<Real> squares;

  HeadMemory() = default;
  HeadMemory(const Schedule<Real>& schedule, Layout& layout)
      : panel(schedule, layout),
        weights(layout.add<Real>(schedule.tile_keys() * schedule.panel_rows)),
        keys_seen(layout.add<Real>(schedule.panel_rows)),
        entropy_sums(layout.add<Real>(schedule.panel_rows)),
        squares(layout.add<Real>(schedule.panel_rows)) {}
};

// The weights and sums of the rows of one head.
template <class Real>
struct Head {
  Head(const Schedule<Real>& schedule, const HeadMemory<Real>& parts, std::byte* memory)
      : panel(schedule, parts.panel, memory),
        weights(parts.weights.in(memory)),
        keys_seen(parts.keys_seen.in(memory)),
        entropy_sums(parts.entropy_sums.in(memory)),
        squares(parts.squares.in(memory)) {}

  const PanelRows<Real>& rows() const { return panel.panel_rows; }

  WeightPanel<Real> panel;
  Real* weights;       // [kTileKeys][width], of the current tile
  Real* keys_seen;     // [width]
  Real* entropy_sums;  // [width]: Σ weight · log2 weight
  Real* squares;       // [width]
  kernels::BasicWeightTile<Real> tile;
  std::vector<RowKind> kinds;
};

template <class Real>
struct PatternsMemory {
  StagingMemory<Real> staging;
  ScoreMemory<Real> scores;
  Piece<Real> query;
  Piece<Real> products;
  Repeated<HeadMemory<Real>> heads;

  PatternsMemory(const Schedule<Real>& schedule, std::int64_t num_heads, Layout& layout)
      : staging(schedule, layout),
        scores(schedule, layout),
        query(layout.add<Real>(schedule.converts_query ? schedule.panel_rows * schedule.head_dim
                                                       : 0)),
        products(layout.add<Real>(checked_multiply(
            num_heads * std::max<std::int64_t>(num_heads - 1, 0) / 2, schedule.panel_rows))),
        heads(schedule, num_heads, layout) {}
};

// A panel of the same queries for each head, so that a lane is the same query in all of them. Goes
// over the keys twice: for the denominators, then for the weights.
template <class Real>
class HeadPatterns {
 public:
  HeadPatterns(const Schedule<Real>& schedule, std::int64_t num_heads,
               const PatternsMemory<Real>& parts, std::byte* memory)
      : table_(*schedule.table),
        staging_(parts.staging.in(memory)),
        staged_query_(parts.query.in(memory)),
        products_(parts.products.in(memory)),
        scratch_{parts.scores.in(memory), nullptr} {
    heads_.reserve(static_cast<std::size_t>(num_heads));
    for (std::int64_t i = 0; i < num_heads; ++i) {
      heads_.emplace_back(schedule, parts.heads.parts, parts.heads.at(memory, i));
    }
  }

  // Adds the queries begin ≤ q < end, at most schedule.panel_rows, of one sequence.
  void add(const Call<Real>& job, std::int64_t batch, RowRange queries, PatternSums& sums) {
    start(job, batch, queries);
    add_weights(sums);
    finish(sums);
  }

 private:
  void start(const Call<Real>& job, std::int64_t batch, RowRange queries);
  void find_denominators(Head<Real>& head, std::int64_t index);
  void add_weights(PatternSums& sums);
  void weigh(Head<Real>& head, std::int64_t index, RowRange keys);
  void add_masses(const Head<Real>& head, std::int64_t index, PatternSums& sums) const;
  void add_offsets(const Head<Real>& head, std::int64_t index, PatternSums& sums) const;
  void add_products();
  void finish(PatternSums& sums) const;
  void add_cosine(std::size_t i, std::size_t j, PatternSums& sums) const;

  // The products of heads i < j.
  Real* products(std::size_t i, std::size_t j) const {
    return products_ + static_cast<std::int64_t>(j * (j - 1) / 2 + i) * width_;
  }
  RowRange all_keys() const { return {0, job_->request->shape.kv_len}; }
  kernels::BasicTile<Real> read(std::int64_t head, RowRange keys) const {
    return job_->keys->tile(batch_, job_->request->kv_head(head), keys, staging_);
  }

  const kernels::BasicKernelTable<Real>& table_;
  const Call<Real>* job_ = nullptr;
  std::int64_t batch_ = 0;
  std::int32_t width_ = 0;
  Staging<Real> staging_;
  Real* staged_query_;  // [panel_rows][head_dim]
  Real* products_;      // [pairs of heads][panel_rows]: Σ a · b
  WeightScratch<Real> scratch_;
  std::vector<Head<Real>> heads_;
};

template <class Real>
void HeadPatterns<Real>::start(const Call<Real>& job, std::int64_t batch, RowRange queries) {
  job_ = &job;
  batch_ = batch;
  std::vector<RowIndex> rows;
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    Head<Real>& head = heads_[i];
    rows.clear();
    for (std::int64_t q = queries.begin; q < queries.end; ++q) {
      rows.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(q)});
    }
    head.panel.panel_rows.place(job, batch, rows);
    head.panel.panel_rows.pack(staged_query_);
    head.panel.weights.start(head.rows(), *job.request);
    width_ = head.rows().width();
    for (Real* sum : {head.keys_seen, head.entropy_sums, head.squares}) {
      std::fill_n(sum, width_, Real{0});
    }
    find_denominators(head, static_cast<std::int64_t>(i));
  }
  const std::size_t pairs = heads_.size() * (heads_.size() - 1) / 2;
  std::fill_n(products_, static_cast<std::int64_t>(pairs) * width_, Real{0});
}

// The first pass: the denominators.
template <class Real>
void HeadPatterns<Real>::find_denominators(Head<Real>& head, std::int64_t index) {
  walk_tiles(std::span(&head, 1), all_keys(), [&](RowRange keys) {
    const auto tile = read(index, keys);
    head.panel.weights.add(tile, scratch_);
    table_.count_seen(head.rows().score_tile(tile, scratch_.scores), head.keys_seen);
  });
  head.panel.weights.finish();
  head.kinds.clear();
  for (std::int32_t r = 0; r < head.rows().num_rows(); ++r) {
    const bool is_finite = head.panel.weights.lse(r) < kInfinity<Real>;
    head.kinds.push_back(kind_of_row(is_finite, static_cast<std::int64_t>(head.keys_seen[r])));
  }
}

// The second pass: the weights, over the tiles that any head visits.
template <class Real>
void HeadPatterns<Real>::add_weights(PatternSums& sums) {
  walk_tiles(std::span(heads_), all_keys(), [&](RowRange keys) {
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      weigh(heads_[i], index, keys);
      if (heads_[i].tile.vectors == 0) continue;
      add_masses(heads_[i], index, sums);
      add_offsets(heads_[i], index, sums);
    }
    add_products();
  });
}

template <class Real>
void HeadPatterns<Real>::weigh(Head<Real>& head, std::int64_t index, RowRange keys) {
  head.tile = {};
  if (!head.rows().tiles().visits(keys.begin)) return;
  scratch_.weights = head.weights;
  head.tile = head.panel.weights.weigh(read(index, keys), scratch_);
  table_.add_entropy(head.tile, head.entropy_sums);
  table_.add_products(head.tile, head.tile, head.squares);
}

// Adds consecutive rows of the same kind together.
template <class Real>
void HeadPatterns<Real>::add_masses(const Head<Real>& head, std::int64_t index,
                                    PatternSums& sums) const {
  const auto num_rows = static_cast<std::int32_t>(head.kinds.size());
  std::int32_t last = 0;
  for (std::int32_t first = 0; first < num_rows; first = last) {
    const RowKind kind = head.kinds[static_cast<std::size_t>(first)];
    while (last < num_rows && head.kinds[static_cast<std::size_t>(last)] == kind) ++last;
    if (kind != RowKind::kChooses && kind != RowKind::kForced) continue;
    Tensor<double>& target = kind == RowKind::kChooses ? sums.mass : sums.forced_mass;
    double* const out = target.view().select(0, index).data() + head.tile.first_key;
    kernels::for_summed_rows<Real>({first, last}, [&](kernels::PanelPart part) {
      std::array<Real, kTileKeys> mass{};
      table_.add_mass(head.tile, part, mass.data());
      for (std::int32_t key = head.tile.begin; key < head.tile.end; ++key) {
        out[key] += static_cast<double>(mass[static_cast<std::size_t>(key)]);
      }
    });
  }
}

template <class Real>
void HeadPatterns<Real>::add_offsets(const Head<Real>& head, std::int64_t index,
                                     PatternSums& sums) const {
  const auto num_rows = static_cast<std::int32_t>(head.kinds.size());
  kernels::for_summed_rows<Real>({0, num_rows}, [&](kernels::PanelPart part) {
    // The mass at each distance of a tile's keys from a part's queries, from the least distance on.
    std::array<Real, kTileKeys + kernels::kSummedRows<Real>> by_distance{};
    for (std::int32_t r = part.begin; r < part.end; ++r) {
      if (head.kinds[static_cast<std::size_t>(r)] != RowKind::kChooses) continue;
      Real* const out = by_distance.data() + (part.end - 1 - r);
      for (std::int32_t key = head.tile.begin; key < head.tile.end; ++key) {
        out[key] += head.tile.weights[std::int64_t{key} * width_ + r];
      }
    }
    const std::int64_t place =
        sums.offset_index(head.rows().query(part.end - 1), head.tile.first_key);
    double* const out = sums.offset_mass.view().select(0, index).data() + place;
    for (std::int32_t i = head.tile.begin; i < head.tile.end + part.end - part.begin - 1; ++i) {
      out[i] += static_cast<double>(by_distance[static_cast<std::size_t>(i)]);
    }
  });
}

template <class Real>
void HeadPatterns<Real>::add_products() {
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    for (std::size_t j = i + 1; j < heads_.size(); ++j) {
      if (heads_[i].tile.vectors == 0 || heads_[j].tile.vectors == 0) continue;
      table_.add_products(heads_[i].tile, heads_[j].tile, products(i, j));
    }
  }
}

template <class Real>
void HeadPatterns<Real>::finish(PatternSums& sums) const {
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    const Head<Real>& head = heads_[i];
    for (std::size_t r = 0; r < head.kinds.size(); ++r) {
      const double entropy = 0 - static_cast<double>(head.entropy_sums[r]) * std::numbers::ln2;
      sums.add_row(static_cast<std::int64_t>(i), head.rows().query(static_cast<std::int32_t>(r)),
                   head.kinds[r], static_cast<std::int64_t>(head.keys_seen[r]), entropy);
    }
    for (std::size_t j = i + 1; j < heads_.size(); ++j) add_cosine(i, j, sums);
  }
}

template <class Real>
void HeadPatterns<Real>::add_cosine(std::size_t i, std::size_t j, PatternSums& sums) const {
  const Head<Real>& head = heads_[i];
  const Head<Real>& other = heads_[j];
  const Real* const product = products(i, j);
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

template <class Real>
struct DiagnosticsMemory {
  Layout layout;
  Layout worker_layout;
  PatternsMemory<Real> worker;
  Piece<std::byte> workers;

  DiagnosticsMemory(const ScoreShape& shape, const Schedule<Real>& schedule)
      : worker(schedule, shape.num_heads, worker_layout),
        workers(layout.add<std::byte>(checked_multiply(
            schedule.workers, static_cast<std::int64_t>(worker_layout.bytes())))) {}
};

// Divides the queries of all sequences into parts, which threads share.
template <class Real>
class AllSequences {
 public:
  AllSequences(const Call<Real>& job, const Schedule<Real>& schedule,
               const DiagnosticsOptions& lengths)
      : job_(job),
        schedule_(schedule),
        lengths_(lengths),
        shape_(job.request->scores()),
        part_queries_(queries_per_part<Real>(shape_.q_len)),
        parts_(std::max<std::int64_t>((shape_.q_len + part_queries_ - 1) / part_queries_, 1)),
        sums_(static_cast<std::size_t>(shape_.batch * parts_), PatternSums(shape_)) {
    for (std::int64_t batch = 0; batch < shape_.batch; ++batch) {
      const std::int64_t length = length_of(lengths.kv_lengths, batch, shape_.kv_len);
      for (std::int64_t part = 0; part < parts_; ++part) sums_at(batch, part).kv_length = length;
    }
  }

  AttentionDiagnostics compute() {
    const DiagnosticsMemory<Real> memory(shape_, schedule_);
    const Arena arena(memory.layout);
    const auto start = [&](std::int64_t w) {
      return HeadPatterns<Real>(schedule_, shape_.num_heads, memory.worker,
                                memory.workers.in(arena.memory()) +
                                    static_cast<std::size_t>(w) * memory.worker_layout.bytes());
    };
    if (shape_.num_heads > 0) {
      deal_out(shape_.batch * parts_, schedule_.workers, start,
               [&](HeadPatterns<Real>& patterns, std::int64_t i) {
                 // The last queries come first: under a causal mask they see the most keys.
                 add_part(patterns, i % shape_.batch, parts_ - 1 - i / shape_.batch);
               });
    }
    std::vector<PatternSums> sequences;
    for (std::int64_t batch = 0; batch < shape_.batch; ++batch) {
      PatternSums& total = sums_at(batch, 0);
      for (std::int64_t part = 1; part < parts_; ++part) total.add(sums_at(batch, part));
      sequences.push_back(std::move(total));
    }
    return diagnostics_of(sequences, shape_);
  }

 private:
  PatternSums& sums_at(std::int64_t batch, std::int64_t part) {
    return sums_[static_cast<std::size_t>(batch * parts_ + part)];
  }

  void add_part(HeadPatterns<Real>& patterns, std::int64_t batch, std::int64_t part) {
    const std::int64_t first = part * part_queries_;
    const std::int64_t last =
        std::min(first + part_queries_, length_of(lengths_.q_lengths, batch, shape_.q_len));
    for (std::int64_t q = first; q < last; q += schedule_.panel_rows) {
      patterns.add(job_, batch, {q, std::min<std::int64_t>(q + schedule_.panel_rows, last)},
                   sums_at(batch, part));
    }
  }

  const Call<Real>& job_;
  const Schedule<Real>& schedule_;
  const DiagnosticsOptions& lengths_;
  ScoreShape shape_;
  std::int64_t part_queries_;
  std::int64_t parts_;
  std::vector<PatternSums> sums_;  // [batch][part]
};

}  // namespace

template <class Real>
std::size_t diagnostics_bytes(const Request<Real>& request, const Schedule<Real>& schedule) {
  return Arena::bytes_for(DiagnosticsMemory<Real>(request.scores(), schedule).layout);
}

template <class Real>
AttentionDiagnostics diagnose(const Call<Real>& job, const Schedule<Real>& schedule,
                              const DiagnosticsOptions& lengths) {
  return AllSequences<Real>(job, schedule, lengths).compute();
}

template std::size_t diagnostics_bytes(const Request<float>&, const Schedule<float>&);
template std::size_t diagnostics_bytes(const Request<double>&, const Schedule<double>&);
template AttentionDiagnostics diagnose(const Call<float>&, const Schedule<float>&,
                                       const DiagnosticsOptions&);
template AttentionDiagnostics diagnose(const Call<double>&, const Schedule<double>&,
                                       const DiagnosticsOptions&);

}}}  // namespace heed::v0::engine
