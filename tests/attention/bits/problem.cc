#include "attention/bits/problem.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

#include "heed/core/dual.h"
#include "support/tensors.h"

namespace heed::bits {

namespace {

using testing_support::kInfinity;
using testing_support::kNaN;
constexpr std::int64_t kMostProducts = 1'500'000;

using Names = std::array<const char*, kNumFeatures>;
constexpr Names kNames{"causal(top_left)",
                       "causal(bottom_right)",
                       "window",
                       "prefix",
                       "key_lengths",
                       "cache_lengths",
                       "documents",
                       "rows",
                       "allow",
                       "additive",
                       "key_padding",
                       "where",
                       "softcap",
                       "score_mod",
                       "alibi",
                       "bias",
                       "sinks",
                       "scale",
                       "dropout",
                       "query_offset",
                       "hidden NaN",
                       "large scores",
                       "low scores",
                       "steep scores"};

ScoreMod draw_score_mod(Draws& draws) {
  switch (draws.below(3)) {
    case 0:
      return [](auto score, int, int, int q, int k) {
        return score - 0.03125F * heed::abs(static_cast<float>(q - k));
      };
    case 1:
      return [](auto score, int b, int h, int q, int k) {
        return score * (1 + 0.5F * static_cast<float>(b)) + static_cast<float>((h + q + k) % 5);
      };
    default:
      return [](auto score, int, int, int, int k) {
        return k % 7 == 2 ? decltype(score)(-kInfinity) : heed::tanh(score);
      };
  }
}

}  // namespace

bool Setup::has(Feature feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

Setup draw_setup(std::vector<Feature> features, std::uint64_t seed) {
  Setup setup{.sizes = {}, .features = std::move(features), .seed = seed};
  Draws draws(seed);
  Sizes& s = setup.sizes;
  const auto length = [&draws] {
    return draws.one_of<std::int64_t>(
        {1, 2, 3, 11, 13, 31, 47, 64, 97, 127, 128, 129, 130, 193, 256, 257, 293, 385});
  };
  const auto dim = [&draws] {
    return draws.one_of<std::int64_t>({1,  2,  3,  5,  8,  9,   15,  16,  17,  31,  32,  33, 48,
                                       64, 64, 65, 80, 96, 100, 128, 128, 129, 192, 255, 256});
  };
  s.batch = draws.one_of<std::int64_t>({1, 1, 2, 3});
  s.num_kv_heads = draws.one_of<std::int64_t>({1, 2, 3});
  s.num_heads = s.num_kv_heads * draws.one_of<std::int64_t>({1, 1, 2, 3, 5});
  s.q_len = length();
  s.kv_len = length();
  s.head_dim = dim();
  s.value_dim = draws.below(2) == 0 ? s.head_dim : dim();
  const auto most = [&s] {
    return std::max<std::int64_t>(
        kMostProducts / (s.batch * s.num_heads * s.kv_len * (s.head_dim + s.value_dim)), 1);
  };
  if (most() < 5) s.batch = 1;
  if (most() < 5) s.num_heads = s.num_kv_heads;
  s.q_len = std::min(s.q_len, most());
  // Each query needs a key at its position.
  if (setup.has(Feature::kDocuments) || setup.has(Feature::kOffset)) {
    s.q_len = std::min(s.q_len, s.kv_len);
  }
  return setup;
}

std::string to_string(const Setup& setup) {
  const Sizes& s = setup.sizes;
  const auto text = [](std::int64_t number) { return std::to_string(number); };
  std::string result = text(s.batch) + 'x' + text(s.num_heads) + '/' + text(s.num_kv_heads) +
                       " q " + text(s.q_len) + " kv " + text(s.kv_len) + " d " + text(s.head_dim) +
                       '/' + text(s.value_dim);
  const char* joint = ", ";
  for (const Feature feature : setup.features) {
    result += joint + std::string(kNames[static_cast<std::size_t>(feature)]);
    joint = " + ";
  }
  return result;
}

std::int64_t hidden_keys(const Sizes& sizes) {
  return std::min<std::int64_t>(sizes.kv_len / 2, 37);
}

template <class Real>
DrawnOptions<Real>::DrawnOptions(const Setup& setup, bool any_length)
    : setup_(setup), any_length_(any_length), draws_(setup.seed + 1) {
  for (const Feature feature : setup_.features) add(feature);
}

template <class Real>
void DrawnOptions<Real>::add(Feature feature) {
  switch (feature) {
    case Feature::kTopLeft:
    case Feature::kBottomRight:
    case Feature::kWindow:
    case Feature::kPrefix:
    case Feature::kKeyLengths:
    case Feature::kCacheLengths:
    case Feature::kDocuments:
    case Feature::kRows:
    case Feature::kHiddenNaN:
      options_.mask = options_.mask & alignment_mask(feature);
      return;
    case Feature::kAllow:
    case Feature::kAdditive:
    case Feature::kPadding:
    case Feature::kWhere:
    case Feature::kLowScores:
      options_.mask = options_.mask & tensor_mask(feature);
      return;
    default:
      add_term(feature);
  }
}

template <class Real>
std::vector<std::int64_t> DrawnOptions<Real>::key_lengths_of_batch() {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(setup_.sizes.batch));
  for (std::int64_t& length : lengths) length = draws_.below(setup_.sizes.kv_len + 1);
  return lengths;
}

// Masks that are ranges of keys.
template <class Real>
Mask DrawnOptions<Real>::alignment_mask(Feature feature) {
  const Sizes& s = setup_.sizes;
  switch (feature) {
    case Feature::kTopLeft:
      return causal_top_left();
    case Feature::kBottomRight:
      return causal_bottom_right();
    case Feature::kWindow: {
      const std::int64_t left = draws_.one_of<std::int64_t>({0, 3, 40, 150, kUnbounded});
      const std::int64_t right = draws_.below(50);
      return sliding_window(left, right, Alignment::offset(draws_.below(60) - 10));
    }
    case Feature::kPrefix:
      return prefix(draws_.below(s.kv_len + 1), Alignment::top_left());
    case Feature::kKeyLengths:
      return key_lengths(key_lengths_of_batch());
    case Feature::kCacheLengths: {
      const std::vector<std::int64_t> lengths = key_lengths_of_batch();
      return causal(Alignment::bottom_right(lengths)) & key_lengths(lengths);
    }
    case Feature::kDocuments: {
      std::vector<std::int64_t> boundaries{0, s.kv_len};
      for (int i = 0; i < 4; ++i) boundaries.push_back(draws_.below(s.kv_len + 1));
      std::sort(boundaries.begin(), boundaries.end());
      return documents(boundaries);
    }
    case Feature::kRows: {
      std::vector<RowRange> ranges(static_cast<std::size_t>(s.q_len));
      for (RowRange& range : ranges) range.begin = draws_.below(s.kv_len);
      for (RowRange& range : ranges) range.end = range.begin + draws_.below(s.kv_len);
      return Mask::rows(ranges);
    }
    default:
      return key_lengths(
          std::vector<std::int64_t>(static_cast<std::size_t>(s.batch), s.kv_len - hidden_keys(s)));
  }
}

template <class Real>
Mask DrawnOptions<Real>::tensor_mask(Feature feature) {
  switch (feature) {
    case Feature::kAllow:
      return Mask::allow(
          broadcastable<bool>(flags_, [](Draws& draws) { return draws.below(4) != 0; }));
    case Feature::kAdditive:
      return Mask::additive(broadcastable<float>(floats_, [](Draws& draws) {
        return draws.below(5) == 0 ? -kInfinity : static_cast<float>(draws.below(1024)) * 0x1p-8F;
      }));
    case Feature::kPadding: {
      Tensor<std::int64_t> tokens({setup_.sizes.batch, setup_.sizes.kv_len});
      for (std::int64_t& token : tokens.elements()) token = draws_.below(4);
      return key_padding(tokens, 0);
    }
    case Feature::kLowScores:
      return Mask::additive(low_scores());
    default: {
      const auto step = static_cast<int>(2 + draws_.below(9));
      return Mask::where([step](int b, int h, int q, int k) {
        return ((b + 2 * h + 3 * q + 5 * k) % step + step) % step != 0;
      });
    }
  }
}

template <class Real>
Tensor<float> DrawnOptions<Real>::low_scores() const {
  Tensor<float> added({setup_.sizes.q_len, setup_.sizes.kv_len});
  for (std::int64_t q = 0; q < setup_.sizes.q_len; ++q) {
    for (std::int64_t k = 0; k < setup_.sizes.kv_len; ++k) {
      added(q, k) = q % 3 == 0 || k < 130 ? -1e9F : 0.0F;
    }
  }
  return added;
}

template <class Real>
void DrawnOptions<Real>::add_term(Feature feature) {
  const Sizes& s = setup_.sizes;
  const auto of_heads = [&] {
    draws_.fill(reals_.emplace_back(Shape{s.num_heads}));
    return reals_.back().view();
  };
  switch (feature) {
    case Feature::kSoftcap:
      options_.softcap = draws_.one_of<Real>({0.5, 20});
      return;
    case Feature::kScoreMod:
      options_.score_mod = draw_score_mod(draws_);
      return;
    case Feature::kAlibi:
      options_.alibi_slopes = of_heads();
      return;
    case Feature::kBias:
      options_.bias = broadcastable<Real>(reals_, [](Draws& draws) {
        return draws.below(9) == 0 ? static_cast<Real>(-kInfinity)
                                   : static_cast<Real>(draws.number());
      });
      return;
    case Feature::kSinks:
      options_.sinks = of_heads();
      return;
    case Feature::kScale:
      options_.scale = draws_.one_of<Real>({0.3125, -0.125, 0});
      return;
    case Feature::kDropout:
      options_.dropout = {.probability = 0.25F, .seed = setup_.seed};
      return;
    case Feature::kOffset:
      if (!setup_.has(Feature::kCacheLengths) && !any_length_) {
        options_.query_offset = s.kv_len - s.q_len;
      } else if (any_length_ && !setup_.has(Feature::kBottomRight)) {
        options_.query_offset = 3;
      }
      return;
    default:  // a property of the tensors
      return;
  }
}

// Draws a tensor of any rank that broadcasts to the scores, with gaps in memory or with its last
// two dimensions swapped.
template <class Real>
template <class T>
TensorView<const T> DrawnOptions<Real>::broadcastable(std::deque<Tensor<T>>& memory,
                                                      T (*draw)(Draws&)) {
  const Sizes& s = setup_.sizes;
  const std::array<std::int64_t, 4> full{any_length_ ? 1 : s.batch, s.num_heads,
                                         any_length_ ? 1 : s.q_len, any_length_ ? 1 : s.kv_len};
  const auto rank = static_cast<std::size_t>(1 + draws_.below(4));
  std::array<std::int64_t, 4> extents{};
  for (std::size_t i = 0; i < rank; ++i) {
    extents[i] = draws_.below(4) == 0 ? 1 : full[4 - rank + i];
  }
  const Shape shape(std::span<const std::int64_t>(extents.data(), rank));
  const std::int64_t gap = 1 + draws_.below(2);
  memory.emplace_back(Shape{shape.num_elements() * gap});
  for (T& element : memory.back().elements()) element = draw(draws_);
  Strides strides = contiguous_strides(shape);
  if (rank >= 2 && draws_.below(2) == 0) {
    strides[rank - 2] = 1;
    strides[rank - 1] = extents[rank - 2];
  }
  for (std::int64_t& stride : strides) stride *= gap;
  return {memory.back().data(), shape, strides};
}

template <class T>
Problem<T>::Problem(const Setup& setup) : draws_(setup.seed + 2), options_(setup, false) {
  const Sizes& s = setup.sizes;
  query_ = laid_out({s.batch, s.num_heads, s.q_len, s.head_dim});
  key_ = laid_out({s.batch, s.num_kv_heads, s.kv_len, s.head_dim});
  value_ = laid_out({s.batch, s.num_kv_heads, s.kv_len, s.value_dim});
  grad_out_ = laid_out({s.batch, s.num_heads, s.q_len, s.value_dim});
  // Multiplies the first batch entry only, because all entries may share memory.
  const auto multiply = [](TensorView<T> view, RealOf<T> factor) {
    for_each_element(view.slice(0, 0, std::min<std::int64_t>(view.extent(0), 1)),
                     [factor](T& element) {
                       element = static_cast<T>(static_cast<RealOf<T>>(element) * factor);
                     });
  };
  if (setup.has(Feature::kLargeScores)) {
    multiply(query_, 0x1p12F);
    multiply(key_, 0x1p6F);
  }
  if (setup.has(Feature::kSteepScores)) multiply(query_, 0x1p5F);
  if (setup.has(Feature::kHiddenNaN)) {
    for (TensorView<T> view : {key_, value_}) {
      for_each_element(view.slice(2, s.kv_len - hidden_keys(s), s.kv_len),
                       [](T& element) { element = static_cast<T>(kNaN); });
    }
  }
}

template <class T>
TensorView<T> Problem<T>::laid_out(const Shape& shape) {
  const std::int64_t batch = shape[0];
  const std::int64_t heads = shape[1];
  const std::int64_t length = shape[2];
  const std::int64_t dim = shape[3];
  const auto filled = [this](const Shape& of) {
    draws_.fill(memory_.emplace_back(of));
    return memory_.back().view();
  };
  switch (shape.num_elements() == 0 ? 0 : draws_.below(6)) {
    case 0:
      return filled({batch, length, heads, dim}).permute({0, 2, 1, 3});
    case 1: {  // surrounded by NaN
      const TensorView<T> numbers = filled(shape);
      const T* number = numbers.data();
      Tensor<T>& all = memory_.emplace_back(Shape{batch, heads, length + 3, dim + 5});
      for (T& element : all.elements()) element = static_cast<T>(kNaN);
      const TensorView<T> inside = all.view().slice(2, 1, 1 + length).slice(3, 2, 2 + dim);
      for_each_element(inside, [&number](T& element) { element = *number++; });
      return inside;
    }
    case 2: {  // all batch entries share memory
      return filled({1, heads, length, dim}).broadcast_to(shape);
    }
    case 3: {  // the last query or key comes first in memory
      const TensorView<T> view = filled(shape);
      Strides strides = view.strides();
      strides[2] = -dim;
      return {view.data() + (length - 1) * dim, shape, strides};
    }
    default:
      return filled(shape);
  }
}

template class DrawnOptions<float>;
template class DrawnOptions<double>;
template class Problem<float>;
template class Problem<double>;
template class Problem<Float16>;
template class Problem<BFloat16>;

}  // namespace heed::bits
