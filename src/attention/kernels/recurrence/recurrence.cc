#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernels/recurrence/recurrence.cc"
#include "simd/targets.h"
// simd/targets.h must come first: it sets the targets of foreach_target.h.
#include "hwy/foreach_target.h"
// foreach_target.h must come before other headers: it includes this file once for each target.
#include <cstring>

#include "attention/kernels/recurrence/recurrence.h"
#include "hwy/highway.h"

#if HEED_HAS_VECTORS

#include "simd/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::f32 {

namespace {

template <int kVectors>
class State {
 public:
  static constexpr int kWidth = kVectors * kLanes;

  explicit HWY_INLINE State(const Recurrence& recurrence) : in_(recurrence) {}

  HWY_INLINE void run() const {
    for (std::int64_t t = 0; t < in_.length; ++t) {
      if (in_.key != nullptr) {
        if (in_.decay != nullptr) open_gates(t);
        if (in_.beta != nullptr) {
          write_difference(t);
        } else {
          write(t);
        }
      }
      for (std::int32_t head = 0; head < in_.num_heads; ++head) read(t, head);
    }
  }

 private:
  struct Row {
    Vec part[kVectors];
    // An implicit constructor would be compiled for the baseline, while the constructor of NEON's
    // vectors must be inlined.
    HWY_INLINE Row() {}  // NOLINT(modernize-use-equals-default)
  };

  HWY_INLINE Row load(const float* at) const {
    Row row;
    for (int v = 0; v < kVectors; ++v) row.part[v] = hn::LoadU(kReals, at + v * kLanes);
    return row;
  }

  HWY_INLINE void store(const Row& row, float* at) const {
    for (int v = 0; v < kVectors; ++v) hn::StoreU(row.part[v], kReals, at + v * kLanes);
  }

  // Loads the columns of a row that exist, and 0 for the others.
  HWY_INLINE Row load_columns(const float* at) const {
    if (in_.columns == kWidth) return load(at);
    HWY_ALIGN float padded[kWidth] = {};
    std::memcpy(padded, at, static_cast<std::size_t>(in_.columns) * sizeof(float));
    return load(padded);
  }

  HWY_INLINE void store_columns(const Row& row, float* at) const {
    if (in_.columns == kWidth) return store(row, at);
    HWY_ALIGN float padded[kWidth];
    store(row, padded);
    std::memcpy(at, padded, static_cast<std::size_t>(in_.columns) * sizeof(float));
  }

  // row += factor · other
  static HWY_INLINE void add(Row& row, float factor, const Row& other) {
    const Vec factors = hn::Set(kReals, factor);
    for (int v = 0; v < kVectors; ++v) {
      row.part[v] = hn::MulAdd(factors, other.part[v], row.part[v]);
    }
  }

  HWY_INLINE void open_gates(std::int64_t t) const {
    const float* decay = in_.decay + t * in_.decay_stride;
    const Vec log2_e = hn::Set(kReals, detail::kLog2E);
    if (in_.decay_is_scalar) {
      const Vec kept = bounded_exp2(hn::Mul(hn::Set(kReals, *decay), log2_e));
      for (std::int32_t i = 0; i < in_.head_dim; i += kLanes) {
        hn::StoreU(kept, kReals, in_.gates + i);
      }
      return;
    }
    std::memcpy(in_.gates, decay, static_cast<std::size_t>(in_.head_dim) * sizeof(float));
    for (std::int32_t i = 0; i < in_.head_dim; i += kLanes) {
      const Vec logs = hn::LoadU(kReals, in_.gates + i);
      hn::StoreU(bounded_exp2(hn::Mul(logs, log2_e)), kReals, in_.gates + i);
    }
  }

  // Row i of the state after forgetting, for the next token.
  template <bool kForgets>
  HWY_INLINE Row kept(std::int32_t i) const {
    Row row = load(in_.state + i * kWidth);
    if constexpr (kForgets) {
      const Vec gate = hn::Set(kReals, in_.gates[i]);
      for (int v = 0; v < kVectors; ++v) row.part[v] = hn::Mul(row.part[v], gate);
    }
    return row;
  }

  template <bool kForgets>
  HWY_INLINE void write_row(const float* key, const Row& written) const {
    for (std::int32_t i = 0; i < in_.head_dim; ++i) {
      Row row = kept<kForgets>(i);
      add(row, key[i], written);
      store(row, in_.state + i * kWidth);
    }
  }

  // S ← exp(g) ∘ S + k ⊗ v
  HWY_INLINE void write(std::int64_t t) const {
    const float* key = in_.key + t * in_.key_stride;
    const Row value = load_columns(in_.value + t * in_.value_stride);
    if (in_.decay != nullptr) return write_row<true>(key, value);
    write_row<false>(key, value);
  }

  // Sᵀk of the state after forgetting, which is stored as well.
  template <bool kForgets>
  HWY_INLINE Row stored_for(const float* key) const {
    Row sum;
    for (int v = 0; v < kVectors; ++v) sum.part[v] = hn::Zero(kReals);
    for (std::int32_t i = 0; i < in_.head_dim; ++i) {
      const Row row = kept<kForgets>(i);
      if constexpr (kForgets) store(row, in_.state + i * kWidth);
      add(sum, key[i], row);
    }
    return sum;
  }

  // S ← exp(g) ∘ S, S ← S + β k ⊗ (v − Sᵀk)
  HWY_INLINE void write_difference(std::int64_t t) const {
    const float* key = in_.key + t * in_.key_stride;
    const Row stored = in_.decay != nullptr ? stored_for<true>(key) : stored_for<false>(key);
    Row written = load_columns(in_.value + t * in_.value_stride);
    const Vec beta = hn::Set(kReals, in_.beta[t * in_.beta_stride]);
    for (int v = 0; v < kVectors; ++v) {
      written.part[v] = hn::Mul(beta, hn::Sub(written.part[v], stored.part[v]));
    }
    write_row<false>(key, written);
  }

  // out = scale · Sᵀq. Even and odd rows have sums of their own, so that additions need not wait.
  HWY_INLINE void read(std::int64_t t, std::int32_t head) const {
    const float* query = in_.query + t * in_.query_stride + head * in_.query_head_stride;
    Row even, odd;
    for (int v = 0; v < kVectors; ++v) even.part[v] = odd.part[v] = hn::Zero(kReals);
    std::int32_t i = 0;
    for (; i + 2 <= in_.head_dim; i += 2) {
      add(even, query[i], load(in_.state + i * kWidth));
      add(odd, query[i + 1], load(in_.state + (i + 1) * kWidth));
    }
    if (i < in_.head_dim) add(even, query[i], load(in_.state + i * kWidth));
    const Vec scale = hn::Set(kReals, in_.scale);
    for (int v = 0; v < kVectors; ++v) {
      even.part[v] = hn::Mul(scale, hn::Add(even.part[v], odd.part[v]));
    }
    store_columns(even, in_.out + t * in_.out_stride + head * in_.out_head_stride);
  }

  const Recurrence& in_;
};

void run(std::int32_t vectors, const Recurrence& recurrence) {
  if (vectors == 1) return State<1>(recurrence).run();
  if (vectors == 2) return State<2>(recurrence).run();
  State<kStateVectors>(recurrence).run();
}

HWY_INLINE Vec feature(FeatureMap map, Vec x) {
  const auto is_negative = hn::Lt(x, hn::Zero(kReals));
  if (map == FeatureMap::kRelu) return hn::IfThenZeroElse(is_negative, x);
  const Vec power = exp2(hn::Mul(x, hn::Set(kReals, detail::kLog2E)));
  return hn::IfThenElse(is_negative, power, hn::Add(x, hn::Set(kReals, 1.0F)));
}

void features(FeatureMap map, const float* numbers, std::int64_t count, float* features) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(feature(map, hn::LoadU(kReals, numbers + i)), kReals, features + i);
  }
  if (i == count) return;
  HWY_ALIGN float rest[kLanes] = {};
  const auto bytes = static_cast<std::size_t>(count - i) * sizeof(float);
  std::memcpy(rest, numbers + i, bytes);
  hn::Store(feature(map, hn::Load(kReals, rest)), kReals, rest);
  std::memcpy(features + i, rest, bytes);
}

}  // namespace

const RecurrenceTable* recurrence_table() {
  static const RecurrenceTable table{.run = run, .features = features};
  return &table;
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::f32
HWY_AFTER_NAMESPACE();

#endif  // HEED_HAS_VECTORS
