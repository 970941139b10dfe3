#include "attention/engine/panel_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "attention/engine/weight_block.h"
#include "attention/keys/tensor_keys.h"
#include "heed/attention/reference.h"
#include "support/exact.h"
#include "support/statistics.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::exactly;
using testing_support::Inputs;
using testing_support::Judgement;
using testing_support::TargetTest;
using testing_support::WeightJob;

class PanelWeights : public TargetTest {};
HEED_RUN_ON_EVERY_TARGET(PanelWeights);

// Returns the weights [rows, kv_len] of the first panel of a key head for given denominators.
Tensor<float> weights_from(const Tensor<float>& lse, const WeightJob<float>& job) {
  const auto& schedule = job.pass.schedule();
  const std::int64_t group = job.request.heads_per_kv_head;
  engine::Layout layout;
  const engine::WeightBlockMemory<float> parts(schedule, layout);
  const engine::Arena arena(layout);
  engine::WeightPanel<float> panel(schedule, parts.panels.parts,
                                   parts.panels.at(arena.memory(), 0));
  engine::PanelRows<float>& rows = panel.panel_rows;
  engine::PanelWeights<float>& weights = panel.weights;
  const TensorKeys<float> keys(*schedule.table, job.request.shape, job.call.key, {});
  const auto scratch = parts.scratch.in(arena.memory());
  ForwardCall<float> of_rows;
  of_rows.request = &job.request;
  of_rows.query = job.call.query;
  const std::int64_t count = std::min<std::int64_t>(schedule.panel_rows, group * lse.extent(2));
  rows.place(of_rows, {0, 0, {0, count}});
  rows.pack(nullptr);
  std::vector<float> row_lse;
  row_lse.reserve(static_cast<std::size_t>(rows.num_rows()));
  for (std::int32_t r = 0; r < rows.num_rows(); ++r) {
    row_lse.push_back(lse(0, rows.head(r), rows.query(r)));
  }
  weights.start(rows, row_lse);
  Tensor<float> result({count, schedule.kv_len});
  for (std::int64_t key = 0; key < schedule.kv_len; key += 128) {
    const RowRange some{key, std::min<std::int64_t>(key + 128, schedule.kv_len)};
    const auto tile = keys.tile(0, 0, some, {});
    if (!rows.sees(tile)) continue;
    const kernels::WeightTile found = weights.weigh(tile, scratch);
    for (std::int32_t j = found.begin; j < found.end; ++j) {
      for (std::int32_t r = 0; r < rows.num_rows(); ++r) {
        result(r, key + j) = found.weights[j * rows.width() + r];
        const float log = found.log2_weights[j * rows.width() + r];
        EXPECT_NEAR(result(r, key + j), std::exp2(log), 1e-6) << r << " " << key + j;
      }
    }
  }
  return result;
}

// The denominators of the forward pass are rounded to float, and so are these weights.
TEST_P(PanelWeights, TakeTheDenominatorsOfAForwardPass) {
  const Inputs in({.num_heads = 2, .q_len = 70, .kv_len = 300, .head_dim = 12, .value_dim = 1}, 2);
  AttentionOptions capped{.mask = Mask::where([](int, int, int, int k) { return k % 3 != 0; })};
  capped.softcap = 3;
  const Tensor<double> exact_inputs[] = {exactly(in.query), exactly(in.key)};
  for (const AttentionOptions& options :
       {AttentionOptions{}, AttentionOptions{.mask = causal_bottom_right()}, capped}) {
    const WeightJob<float> job(table(), in.query, in.key, options);
    const Tensor<float> lse = testing_support::run(table(), in, options).lse;
    const Tensor<float> found = weights_from(lse, job);
    std::vector<AttentionRow> rows;
    for (std::int64_t r = 0; r < found.extent(0); ++r) rows.push_back({0, r % 2, r / 2});
    const testing_support::ExactOptions exact_options(options);
    const auto plain = reference::attention_weights(in.query, in.key, rows, options);
    const auto exact =
        reference::attention_weights(exact_inputs[0], exact_inputs[1], rows, *exact_options);
    const double roundings = 8 + testing_support::largest_magnitude(exactly(lse));
    const Judgement judge{.error = Judgement::Error::kRelative,
                          .always_allowed = 0x1p-24 * roundings};
    EXPECT_EQ(judge("weights", found, plain, exact), "") << options.mask.description();
  }
}

TEST_P(PanelWeights, OfARowThatSawNothingAreZero) {
  const Inputs in({.q_len = 5, .kv_len = 40, .head_dim = 3});
  const WeightJob<float> job(table(), in.query, in.key, {});
  Tensor<float> lse({1, 1, 5});
  for (float& element : lse.elements()) element = 20;
  lse(0, 0, 3) = -std::numeric_limits<float>::infinity();
  const Tensor<float> found = weights_from(lse, job);
  for (std::int64_t k = 0; k < 40; ++k) {
    EXPECT_EQ(found(3, k), 0);
    EXPECT_GT(found(2, k), 0);
  }
}

}  // namespace
}  // namespace heed
