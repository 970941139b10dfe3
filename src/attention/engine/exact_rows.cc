#include "attention/engine/exact_rows.h"

#include <algorithm>

#include "attention/engine/weight_block.h"

namespace heed { inline namespace v0 { namespace engine {

namespace {

// out[r] += Σ weight · dropout · (value + what terms add to it), over the keys of the tile that row
// r sees.
template <class Real>
void add_values(const Request<Real>& request, const PanelRows<Real>& rows,
                const kernels::BasicWeightTile<Real>& weights, const kernels::BasicTile<Real>& tile,
                Real* all_out) {
  const std::int64_t value_dim = request.value_dim();
  const std::int32_t width = rows.width();
  ScorePosition at{.batch = static_cast<std::int32_t>(rows.batch())};
  for (std::int32_t r = 0; r < rows.num_rows(); ++r) {
    Real* const out = all_out + r * value_dim;
    at.head = rows.head_place(r);
    at.q_idx = rows.position(r);
    const std::int64_t query = request.query(rows.query(r));
    for (std::int32_t j = weights.begin; j < weights.end; ++j) {
      if (weights.log2_weights[j * width + r] == -kInfinity<Real>) continue;
      at.kv_idx = tile.first_key + j;
      const Real weight =
          weights.weights[j * width + r] * static_cast<Real>(request.dropout.factor(at));
      const auto add = [&](const Real* value) {
        for (std::int64_t d = 0; d < value_dim; ++d) out[d] += weight * value[d];
      };
      add(tile.value + j * tile.value_stride);
      for (const auto& term : request.terms) {
        if (term->adds_to_values()) {
          add(term->added_value({rows.batch(), at.head, query, at.kv_idx}));
        }
      }
    }
  }
}

template <class Real>
struct ExactMemory {
  Layout layout;
  WeightBlockMemory<Real> block;
  Piece<Real> out;  // [panel_rows][value_dim]

  explicit ExactMemory(const Schedule<Real>& schedule)
      : block(schedule, layout), out(layout.add<Real>(schedule.panel_rows * schedule.value_dim)) {}
};

}  // namespace

template <class Real>
void compute_exactly(const ForwardCall<Real>& job, std::int64_t batch,
                     const Schedule<Real>& schedule, std::span<const RowIndex> rows) {
  const Schedule<Real> exact = exact_schedule(schedule);
  const ExactMemory<Real> parts(exact);
  const Arena arena(parts.layout);
  WeightBlock<Real> block(exact, parts.block, arena.memory());
  Real* const out = parts.out.in(arena.memory());
  const std::int64_t value_dim = job.request->value_dim();
  std::fill_n(out, static_cast<std::int64_t>(rows.size()) * value_dim, Real{0});
  block.start(job, batch, rows);
  block.visit([&](std::size_t, const kernels::BasicWeightTile<Real>& weights,
                  const kernels::BasicTile<Real>& tile) {
    add_values(*job.request, block.rows(0), weights, tile, out);
  });
  for (std::int32_t r = 0; r < block.rows(0).num_rows(); ++r) {
    const RowIndex row = block.rows(0).row(r);
    write_narrow_row(*schedule.table, job, batch, row, out + r * value_dim);
    if (!job.lse.empty()) job.lse(batch, row.head, row.query) = block.weights(0).lse(r);
    if (!job.lse_low.empty()) {
      job.lse_low(batch, row.head, row.query) = block.weights(0).lse_low(r);
    }
  }
}

template void compute_exactly(const ForwardCall<float>&, std::int64_t, const Schedule<float>&,
                              std::span<const RowIndex>);
template void compute_exactly(const ForwardCall<double>&, std::int64_t, const Schedule<double>&,
                              std::span<const RowIndex>);

}}}  // namespace heed::v0::engine
