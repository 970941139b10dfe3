#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernels/backward.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first: it includes this file once for each instruction set.
#include <algorithm>

#include "attention/kernels/backward.h"
#include "hwy/highway.h"

#undef HEED_HAS_VECTORS
#define HEED_HAS_VECTORS (HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128)

// As in kernels.cc.
#if HEED_HAS_VECTORS
#include "attention/kernels/backward-inl.h"
#include "attention/kernels/by_width-inl.h"
#include "attention/kernels/transpose-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::inline v0::kernels::HWY_NAMESPACE {

#if !HEED_HAS_VECTORS

const BackwardTable* backward_table() { return nullptr; }

#else

namespace {

void weigh(const Tile& tile, Panel& panel, const float* lse, float* weights) {
  by_width<Recompute>(panel.vectors, tile, panel, lse, weights);
}

void weigh_scores(const Tile& tile, Panel& panel, const float* lse, float* scores) {
  by_width<WeighScores>(panel.vectors, tile, panel, lse, scores);
}

void grad_scores(const Tile& tile, Panel& panel, const BackwardTable::GradScores& terms,
                 float* grads) {
  by_width<GradScores>(panel.vectors, tile, panel, terms, grads);
}

void fill_dropout(const Tile& tile, Panel& panel, float* factors) {
  by_width<FillDropout>(panel.vectors, tile, panel, factors);
}

void start_derivatives(const ScoreTile& tile, float softcap) {
  const Vec one = hn::Set(kFloats, 1.0F);
  const Vec inverse = hn::Set(kFloats, softcap == 0 ? 0.0F : 1 / softcap);
  for (std::int32_t i = tile.begin * tile.width; i < tile.end * tile.width; i += kLanes) {
    Vec derivative = one;
    if (softcap != 0) {
      const Vec tanh = hn::Mul(hn::Load(kFloats, tile.scores + i), inverse);
      derivative = hn::NegMulAdd(tanh, tanh, one);
    }
    hn::Store(derivative, kFloats, tile.derivatives + i);
  }
}

void sum_distances(const ScoreTile& tile, const float* grad_scores, float* sums) {
  const hn::RebindToSigned<Floats> integers;
  for (std::int32_t r = 0; r < tile.width; r += kLanes) {
    const auto q_idx = hn::LoadU(integers, tile.q_idx + r);
    Vec sum = hn::Zero(kFloats);
    for (std::int32_t j = tile.begin; j < tile.end; ++j) {
      const auto distance = hn::Abs(hn::Sub(q_idx, hn::Set(integers, tile.first_key + j)));
      const Vec grad = hn::Load(kFloats, grad_scores + j * tile.width + r);
      sum = hn::MulAdd(grad, hn::ConvertTo(kFloats, distance), sum);
    }
    hn::Store(sum, kFloats, sums + r);
  }
}

// A square of lanes is turned, so that neighbouring keys are added to at once.
void add_to_rows(const ScoreTile& tile, const float* numbers, const SumRows& rows) {
  const auto number_at = [&](std::int32_t j, std::int32_t r) {
    return numbers + j * tile.width + r;
  };
  for (std::int32_t r = 0; r < tile.num_rows; r += kLanes) {
    const std::int32_t count = std::min(tile.num_rows - r, kLanes);
    std::int32_t key = tile.begin;
    for (; rows.key_stride == 1 && key + kLanes <= tile.end; key += kLanes) {
      Vec square[kLanes];
      for (int i = 0; i < kLanes; ++i) square[i] = hn::Load(kFloats, number_at(key + i, r));
      transpose(square);
      for (int i = 0; i < count; ++i) {
        float* sums = rows.data[r + i] + key;
        hn::StoreU(hn::Add(hn::LoadU(kFloats, sums), square[i]), kFloats, sums);
      }
    }
    for (int i = 0; i < count; ++i) {
      for (std::int32_t j = key; j < tile.end; ++j) {
        rows.data[r + i][j * rows.key_stride] += *number_at(j, r + i);
      }
    }
  }
}

void multiply(const Tile& tile, Panel& panel, const float* factors, float* numbers) {
  by_width<Multiply>(panel.vectors, tile, panel, factors, numbers);
}

void add_to_query(const Tile& tile, Panel& panel, bool guarded, float* grads) {
  by_width<AddToQuery>(panel.vectors, tile, panel, guarded, grads);
}

void add_to_keys(const Tile& tile, Panel& panel, float* numbers, const RowBlocks& rows,
                 bool guarded, const KeySums& sums) {
  by_width<AddToKeys>(panel.vectors, tile, panel, numbers, rows, guarded, sums);
}

void find_delta(const float* grad_out, const float* out, std::int32_t width, std::int32_t value_dim,
                float* delta) {
  for (std::int32_t r = 0; r < width; r += kLanes) {
    Vec sum = hn::Zero(kFloats);
    for (std::int32_t d = 0; d < value_dim; ++d) {
      const Vec result = hn::Load(kFloats, out + d * width + r);
      const Vec added = hn::MulAdd(result, hn::Load(kFloats, grad_out + d * width + r), sum);
      sum = hn::IfThenElse(hn::Eq(result, hn::Zero(kFloats)), sum, added);
    }
    hn::Store(sum, kFloats, delta + r);
  }
}

// 0 · x is 0 unless x is infinite or NaN.
bool is_finite(const float* data, std::int64_t stride, std::int64_t rows, std::int64_t count) {
  Vec products = hn::Zero(kFloats);
  float rest = 0;
  for (std::int64_t row = 0; row < rows; ++row, data += stride) {
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      products = hn::MulAdd(hn::LoadU(kFloats, data + i), hn::Zero(kFloats), products);
    }
    for (; i < count; ++i) rest += data[i] * 0.0F;
  }
  return rest == 0 && hn::AllTrue(kFloats, hn::Eq(products, hn::Zero(kFloats)));
}

}  // namespace

const BackwardTable* backward_table() {
  static const BackwardTable table{.column_vectors = kColumnVectors,
                                   .weigh = weigh,
                                   .weigh_scores = weigh_scores,
                                   .grad_scores = grad_scores,
                                   .fill_dropout = fill_dropout,
                                   .start_derivatives = start_derivatives,
                                   .sum_distances = sum_distances,
                                   .add_to_rows = add_to_rows,
                                   .multiply = multiply,
                                   .add_to_query = add_to_query,
                                   .add_to_keys = add_to_keys,
                                   .find_delta = find_delta,
                                   .is_finite = is_finite};
  return &table;
}

#endif

}  // namespace heed::inline v0::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
