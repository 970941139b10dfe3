// The weights of a tile from its scores and the rows' denominators, and statistics of these
// weights.
#if defined(HEED_WEIGHTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_WEIGHTS_INL_H_
#undef HEED_WEIGHTS_INL_H_
#else
#define HEED_WEIGHTS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "attention/kernels/kernels.h"
#include "attention/kernels/panel/panel-inl.h"
#include "hwy/highway.h"
#include "simd/exp2-inl.h"
#include "simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// The number of keys that are summed separately first: shorter chains have smaller rounding errors.
constexpr std::int32_t kSumKeys = 16;

// Calls sum(begin, end) for the keys begin ≤ key < end in parts that end at multiples of kSumKeys,
// so that the order of a row's sums does not depend on the keys that neighbouring rows see.
template <class Sum>
HWY_INLINE void for_each_part(std::int32_t begin, std::int32_t end, const Sum& sum) {
  while (begin < end) {
    const std::int32_t part_end = std::min((begin / kSumKeys + 1) * kSumKeys, end);
    sum(begin, part_end);
    begin = part_end;
  }
}

template <int kVectors>
struct AddToSums {
  static void run(const Tile& tile, const Panel& panel, Real* scores, const PanelSums& sums) {
    const PanelKernel<kVectors> kernel(tile, panel, scores);
    const Vec hidden = hn::Set(kReals, kMinusInfinity);
    Vec largest[kVectors];
    for (int v = 0; v < kVectors; ++v) largest[v] = kernel.load(sums.largest, v);
    for (std::int32_t key = kernel.begin; key < kernel.end; ++key) {
      Real* row = scores + key * kernel.kWidth;
      for (int v = 0; v < kVectors; ++v) {
        Vec score = kernel.load(row, v);
        if (kernel.is_mixed) {
          score = hn::IfThenElse(kernel.sees(v, key), score, hidden);
          kernel.store(score, row, v);
        }
        largest[v] = hn::Max(score, largest[v]);
      }
    }
    Vec sum[kVectors];
    Vec offset[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      // If the largest is −infinity, the row has seen no key yet.
      offset[v] = hn::IfThenZeroElse(hn::Eq(largest[v], hidden), largest[v]);
      const Vec moved = hn::Sub(kernel.load(sums.largest, v), offset[v]);
      sum[v] = hn::Mul(kernel.load(sums.sum, v),
                       exp2(hn::Mul(moved, hn::Set(kReals, Constants<Real>::kLog2E))));
      kernel.store(largest[v], sums.largest, v);
    }
    for_each_part(kernel.begin, kernel.end, [&](std::int32_t begin, std::int32_t end) HWY_ATTR {
      Vec part[kVectors];
      for (int v = 0; v < kVectors; ++v) part[v] = hn::Zero(kReals);
      for (std::int32_t key = begin; key < end; ++key) {
        for (int v = 0; v < kVectors; ++v) {
          const Vec score = hn::Sub(kernel.load(scores + key * kernel.kWidth, v), offset[v]);
          part[v] =
              hn::Add(part[v], exp2(hn::Mul(score, hn::Set(kReals, Constants<Real>::kLog2E))));
        }
      }
      for (int v = 0; v < kVectors; ++v) sum[v] = hn::Add(sum[v], part[v]);
    });
    for (int v = 0; v < kVectors; ++v) kernel.store(sum[v], sums.sum, v);
  }
};

template <int kVectors>
struct Weigh {
  static void run(const Tile& tile, const Panel& panel, const PanelLogSums& sums,
                  const WeightTile& out) {
    const PanelKernel<kVectors> kernel(tile, panel, out.weights);
    const Vec hidden = hn::Set(kReals, kMinusInfinity);
    for (std::int32_t key = kernel.begin; key < kernel.end; ++key) {
      Real* logs = out.log2_weights + key * kernel.kWidth;
      for (int v = 0; v < kVectors; ++v) {
        const Vec score = kernel.load(logs, v);
        Vec log =
            hn::MulAdd(hn::Sub(score, kernel.load(sums.high, v)),
                       hn::Set(kReals, Constants<Real>::kLog2E), kernel.load(sums.minus_low, v));
        // Rounding may make a weight slightly larger than 1.
        log = hn::IfThenZeroElse(hn::Gt(log, hn::Zero(kReals)), log);
        log = hn::IfThenElse(hn::Eq(score, hidden), hidden, log);
        if (kernel.is_mixed) log = hn::IfThenElse(kernel.sees(v, key), log, hidden);
        kernel.store(log, logs, v);
        kernel.store(exp2(log), out.weights + key * kernel.kWidth, v);
      }
    }
  }
};

template <int kVectors>
struct AddEntropy {
  static void run(const WeightTile& tile, Real* sums) {
    constexpr int kWidth = kVectors * kLanes;
    for_each_part(tile.begin, tile.end, [&](std::int32_t begin, std::int32_t end) HWY_ATTR {
      Vec part[kVectors];
      for (int v = 0; v < kVectors; ++v) part[v] = hn::Zero(kReals);
      for (std::int32_t key = begin; key < end; ++key) {
        for (int v = 0; v < kVectors; ++v) {
          const std::int32_t at = key * kWidth + v * kLanes;
          const Vec weight = hn::Load(kReals, tile.weights + at);
          const Vec log = hn::Load(kReals, tile.log2_weights + at);
          // 0 · log 0 is 0 here.
          const Vec term = hn::IfThenZeroElse(hn::Eq(weight, hn::Zero(kReals)), log);
          part[v] = hn::MulAdd(weight, term, part[v]);
        }
      }
      for (int v = 0; v < kVectors; ++v) {
        Real* sum = sums + v * kLanes;
        hn::Store(hn::Add(hn::Load(kReals, sum), part[v]), kReals, sum);
      }
    });
  }
};

// Keys in lanes of the size of weights, so that one mask selects both; doubles hold keys exactly.
#if HEED_REAL_BITS == 32
using KeyTag = Indices;
using KeyVec = IndexVec;
HWY_INLINE KeyVec load_keys(const std::int32_t* keys) { return hn::Load(Indices(), keys); }
HWY_INLINE void store_keys(KeyVec keys, std::int32_t* at) { hn::Store(keys, Indices(), at); }
#else
using KeyTag = Reals;
using KeyVec = Vec;
HWY_INLINE KeyVec load_keys(const std::int32_t* keys) {
  return to_reals(hn::Load(Indices(), keys));
}
HWY_INLINE void store_keys(KeyVec keys, std::int32_t* at) {
  hn::Store(hn::DemoteTo(Indices(), keys), Indices(), at);
}
#endif

template <int kVectors>
struct KeepLargest {
  static constexpr int kWidth = kVectors * kLanes;

  static void run(const WeightTile& tile, const PanelLargest& largest) {
    for (int v = 0; v < kVectors; ++v) {
      Real* last = largest.weights + (largest.count - 1) * kWidth + v * kLanes;
      Vec smallest = hn::Load(kReals, last);
      for (std::int32_t key = tile.begin; key < tile.end; ++key) {
        const Vec weight = hn::Load(kReals, tile.weights + key * kWidth + v * kLanes);
        if (hn::AllFalse(kReals, hn::Gt(weight, smallest))) continue;
        insert(weight, tile.first_key + key, v * kLanes, largest);
        smallest = hn::Load(kReals, last);
      }
    }
  }

  // The weight of each lane moves up from the end past smaller ones, which move down.
  static HWY_INLINE void insert(Vec weight, std::int32_t key, std::int32_t lane,
                                const PanelLargest& largest) {
    const KeyVec new_key = hn::Set(KeyTag(), key);
    for (std::int32_t i = largest.count - 1; i >= 0; --i) {
      Real* weights = largest.weights + i * kWidth + lane;
      std::int32_t* keys = largest.keys + i * kWidth + lane;
      const Vec here = hn::Load(kReals, weights);
      const KeyVec key_here = load_keys(keys);
      const auto moves = hn::Gt(weight, here);
      if (hn::AllFalse(kReals, moves)) return;
      const auto key_moves = hn::RebindMask(KeyTag(), moves);
      if (i + 1 < largest.count) {
        const Vec below = hn::Load(kReals, weights + kWidth);
        const KeyVec key_below = load_keys(keys + kWidth);
        hn::Store(hn::IfThenElse(moves, here, below), kReals, weights + kWidth);
        store_keys(hn::IfThenElse(key_moves, key_here, key_below), keys + kWidth);
      }
      hn::Store(hn::IfThenElse(moves, weight, here), kReals, weights);
      store_keys(hn::IfThenElse(key_moves, new_key, key_here), keys);
    }
  }
};

template <int kVectors>
struct CountSeen {
  static void run(const ScoreTile& tile, Real* counts) {
    constexpr int kWidth = kVectors * kLanes;
    const Vec hidden = hn::Set(kReals, kMinusInfinity);
    for (int v = 0; v < kVectors; ++v) {
      Vec count = hn::Load(kReals, counts + v * kLanes);
      for (std::int32_t key = tile.begin; key < tile.end; ++key) {
        const Vec score = hn::Load(kReals, tile.scores + key * kWidth + v * kLanes);
        const Vec one = hn::Set(kReals, 1);
        count = hn::Add(count, hn::IfThenZeroElse(hn::Eq(score, hidden), one));
      }
      hn::Store(count, kReals, counts + v * kLanes);
    }
  }
};

template <int kVectors>
struct AddProducts {
  static void run(const WeightTile& a, const WeightTile& b, Real* sums) {
    constexpr int kWidth = kVectors * kLanes;
    const std::int32_t first = std::max(a.begin, b.begin);
    const std::int32_t last = std::min(a.end, b.end);
    for_each_part(first, last, [&](std::int32_t begin, std::int32_t end) HWY_ATTR {
      Vec part[kVectors];
      for (int v = 0; v < kVectors; ++v) part[v] = hn::Zero(kReals);
      for (std::int32_t key = begin; key < end; ++key) {
        for (int v = 0; v < kVectors; ++v) {
          const std::int32_t at = key * kWidth + v * kLanes;
          part[v] = hn::MulAdd(hn::Load(kReals, a.weights + at), hn::Load(kReals, b.weights + at),
                               part[v]);
        }
      }
      for (int v = 0; v < kVectors; ++v) {
        Real* sum = sums + v * kLanes;
        hn::Store(hn::Add(hn::Load(kReals, sum), part[v]), kReals, sum);
      }
    });
  }
};

void add_mass(const WeightTile& tile, PanelPart part, Real* mass) {
  const std::int32_t width = tile.vectors * kLanes;
  HWY_ALIGN Real sums[kLanes];
  for (std::int32_t key = tile.begin; key < tile.end; key += kLanes) {
    Vec sum = hn::Zero(kReals);
    for (std::int32_t r = part.begin / kLanes * kLanes; r < part.end; r += kLanes) {
      Vec rows[kLanes];
      load_columns(tile.weights + r, width, key, tile.end, rows);
      const std::int32_t end = std::min(part.end - r, kLanes);
      for (std::int32_t i = std::max(part.begin - r, 0); i < end; ++i) sum = hn::Add(sum, rows[i]);
    }
    hn::Store(sum, kReals, sums);
    const std::int32_t count = std::min(tile.end - key, kLanes);
    for (std::int32_t i = 0; i < count; ++i) mass[key + i] += sums[i];
  }
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_WEIGHTS_INL_H_
