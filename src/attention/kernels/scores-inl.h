// What happens to a tile of scores between the two products, apart from a user's functions.
#if defined(HEED_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_SCORES_INL_H_
#undef HEED_SCORES_INL_H_
#else
#define HEED_SCORES_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "attention/kernels/exp2-inl.h"
#include "attention/kernels/kernels.h"
#include "attention/kernels/panel-inl.h"
#include "attention/kernels/tanh-inl.h"
#include "attention/kernels/transpose-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed::inline v0::kernels::HWY_NAMESPACE {

// The vector of scores of key j and the rows from r on.
HWY_INLINE float* scores_at(const ScoreTile& tile, std::int32_t j, std::int32_t r) {
  return tile.scores + static_cast<std::int64_t>(j) * tile.width + r;
}

// score = update(score) for every score of the keys that are asked about, a vector at a time.
template <class Update>
HWY_INLINE void update_scores(const ScoreTile& tile, const Update& update) {
  float* const end = scores_at(tile, tile.end, 0);
  for (float* at = scores_at(tile, tile.begin, 0); at != end; at += kLanes) {
    hn::Store(update(hn::Load(kFloats, at)), kFloats, at);
  }
}

void cap(const ScoreTile& tile, float softcap) {
  const Vec factor = hn::Set(kFloats, softcap);
  const Vec inverse = hn::Set(kFloats, 1 / softcap);
  update_scores(tile,
                [&](Vec score) HWY_ATTR { return hn::Mul(factor, tanh(hn::Mul(score, inverse))); });
}

void add_alibi(const ScoreTile& tile, const float* slopes) {
  const hn::RebindToSigned<Floats> integers;
  for (std::int32_t r = 0; r < tile.width; r += kLanes) {
    const Vec minus_slope = hn::Neg(hn::Load(kFloats, slopes + r));
    const auto q_idx = hn::LoadU(integers, tile.q_idx + r);
    for (std::int32_t j = tile.begin; j < tile.end; ++j) {
      const auto distance = hn::Abs(hn::Sub(q_idx, hn::Set(integers, tile.first_key + j)));
      float* at = scores_at(tile, j, r);
      const Vec score = hn::Load(kFloats, at);
      hn::Store(hn::MulAdd(minus_slope, hn::ConvertTo(kFloats, distance), score), kFloats, at);
    }
  }
}

HWY_INLINE Vec load_row(const float* row) { return hn::LoadU(kFloats, row); }
HWY_INLINE Vec load_row(const bool* row) {
  const hn::Rebind<std::uint8_t, Floats> bytes;
  const hn::RebindToSigned<Floats> integers;
  const auto loaded = hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(row));
  const auto one = hn::Set(bytes, std::uint8_t{1});
  return hn::ConvertTo(kFloats, hn::PromoteTo(integers, hn::Min(loaded, one)));
}

HWY_INLINE float number(const float& element) { return element; }
HWY_INLINE float number(const bool& element) { return is_set(element) ? 1.0F : 0.0F; }

// score = combine(score, element) for every score and the element of `rows` that belongs to it.
template <class T, class Combine>
HWY_INLINE void combine_rows(const ScoreTile& tile, const ScoreRows<T>& rows,
                             const Combine& combine) {
  const auto update = [&](float* at, Vec elements) HWY_ATTR {
    hn::Store(combine(hn::Load(kFloats, at), elements), kFloats, at);
  };
  const auto update_from = [&](std::int32_t first, std::int32_t r) HWY_ATTR {
    for (std::int32_t j = first; j < tile.end; ++j) {
      HWY_ALIGN float elements[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        elements[i] = number(rows.data[r + i][j * rows.key_stride]);
      }
      update(scores_at(tile, j, r), hn::Load(kFloats, elements));
    }
  };
  const auto is_first = [&](const T* row) { return row == rows.data[0]; };
  if (std::all_of(rows.data, rows.data + tile.width, is_first)) {
    for (std::int32_t j = tile.begin; j < tile.end; ++j) {
      const float element = number(rows.data[0][j * rows.key_stride]);
      for (std::int32_t r = 0; r < tile.width; r += kLanes) {
        update(scores_at(tile, j, r), hn::Set(kFloats, element));
      }
    }
    return;
  }
  for (std::int32_t r = 0; r < tile.width; r += kLanes) {
    std::int32_t first = tile.begin;
    if (rows.key_stride == 1) {
      for (; first + kLanes <= tile.end; first += kLanes) {
        Vec square[kLanes];
        for (int i = 0; i < kLanes; ++i) square[i] = load_row(rows.data[r + i] + first);
        transpose(square);
        for (int i = 0; i < kLanes; ++i) update(scores_at(tile, first + i, r), square[i]);
      }
    }
    update_from(first, r);
  }
}

void add_rows(const ScoreTile& tile, const ScoreRows<float>& rows) {
  combine_rows(tile, rows, [](Vec score, Vec added) HWY_ATTR { return hn::Add(score, added); });
}

void add_mask_rows(const ScoreTile& mask, const ScoreRows<float>& rows) {
  const Vec hidden = hn::Set(kFloats, kMinusInfinity);
  combine_rows(mask, rows, [&](Vec sum, Vec added) HWY_ATTR {
    const auto hides = hn::Or(hn::Eq(sum, hidden), hn::Eq(added, hidden));
    return hn::IfThenElse(hides, hidden, hn::Add(sum, added));
  });
}

void hide_rows(const ScoreTile& mask, const ScoreRows<bool>& rows, bool hidden_value) {
  const Vec hidden = hn::Set(kFloats, kMinusInfinity);
  const Vec hides = hn::Set(kFloats, hidden_value ? 1.0F : 0.0F);
  combine_rows(mask, rows, [&](Vec sum, Vec element) HWY_ATTR {
    return hn::IfThenElse(hn::Eq(element, hides), hidden, sum);
  });
}

Visibility visibility(const ScoreTile& mask) {
  const Vec hidden = hn::Set(kFloats, kMinusInfinity);
  // Bits that are not 0 for a key that is hidden or added to, or for one that is not hidden.
  WordVec changed = hn::Zero(kWords);
  WordVec seen = hn::Zero(kWords);
  const float* const end = scores_at(mask, mask.end, 0);
  for (const float* at = scores_at(mask, mask.begin, 0); at != end; at += kLanes) {
    const WordVec added = hn::BitCast(kWords, hn::Load(kFloats, at));
    changed = hn::Or(changed, added);
    seen = hn::Or(seen, hn::Xor(added, hn::BitCast(kWords, hidden)));
  }
  if (hn::AllTrue(kWords, hn::Eq(seen, hn::Zero(kWords)))) return Visibility::kNone;
  return hn::AllTrue(kWords, hn::Eq(changed, hn::Zero(kWords))) ? Visibility::kAll
                                                                : Visibility::kMixed;
}

void add_mask(const ScoreTile& tile, const float* mask) {
  const Vec hidden = hn::Set(kFloats, kMinusInfinity);
  for (std::int32_t i = tile.begin * tile.width; i < tile.end * tile.width; i += kLanes) {
    const Vec added = hn::Load(kFloats, mask + i);
    const Vec sum = hn::Add(hn::Load(kFloats, tile.scores + i), added);
    hn::Store(hn::IfThenElse(hn::Eq(added, hidden), hidden, sum), kFloats, tile.scores + i);
  }
}

}  // namespace heed::inline v0::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_SCORES_INL_H_
