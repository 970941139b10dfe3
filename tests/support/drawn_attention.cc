#include "support/drawn_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <ostream>
#include <utility>

#include "heed/attention/block_layout.h"
#include "support/tensors.h"

namespace heed::testing_support {

namespace {

// The reference takes some ten milliseconds for this size, which keeps several threads busy.
constexpr std::int64_t kMostProducts = 8'000'000;
constexpr std::int64_t kMostScores = 80'000;

// Kinds of masks: seeds below kStructuralKinds modulo kKinds are structural.
constexpr std::uint32_t kStructuralKinds = 8;
constexpr std::uint32_t kKinds = 13;

std::int64_t below(std::mt19937& random, std::int64_t bound) {
  return bound <= 0 ? 0 : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
}

std::vector<ScoreMod> score_mods() {
  return {ScoreMod(),
          [](auto score, int, int, int q, int k) {
            return score - 0.02F * heed::abs(static_cast<float>(q - k));
          },
          [](auto score, int b, int h, int q, int k) {
            return score * (1 + 0.5F * static_cast<float>(b)) + static_cast<float>((h + q + k) % 5);
          },
          [](auto score, int, int, int, int k) {
            return k % 7 == 2 ? decltype(score)(-kInfinity) : heed::tanh(score);
          }};
}

// Returns lengths and dims that are awkward for tiles, panels and vectors, and any others below
// 300.
rc::Gen<std::int64_t> awkward(std::vector<std::int64_t> choices) {
  const auto count = choices.size();
  return rc::gen::map(rc::gen::inRange<std::size_t>(0, count),
                      [choices = std::move(choices)](std::size_t i) { return choices[i]; });
}
rc::Gen<std::int64_t> length() {
  return rc::gen::oneOf(
      awkward({0, 1, 2, 3, 11, 12, 13, 23, 24, 25, 47, 48, 49, 127, 128, 129, 193, 255, 256, 257}),
      rc::gen::inRange<std::int64_t>(1, 300));
}
rc::Gen<std::int64_t> dim() {
  return rc::gen::oneOf(awkward({0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 64, 80, 128, 255, 256}),
                        rc::gen::inRange<std::int64_t>(1, 40));
}

template <class T>
T one_of(std::initializer_list<T> choices) {
  return choices.begin()[*rc::gen::inRange<std::size_t>(0, choices.size())];
}

Sizes draw_sizes() {
  Sizes sizes;
  sizes.batch = one_of<std::int64_t>({1, 2, 3, 0});
  sizes.num_kv_heads = one_of<std::int64_t>({1, 2, 3});
  sizes.num_heads = sizes.num_kv_heads * one_of<std::int64_t>({1, 2, 3, 5, 16});
  sizes.q_len = *length();
  sizes.kv_len = *length();
  sizes.head_dim = *dim();
  sizes.value_dim = *dim();
  const std::int64_t scores_per_query =
      std::max<std::int64_t>(sizes.batch * sizes.num_heads * sizes.kv_len, 1);
  const std::int64_t dims = std::max<std::int64_t>(sizes.head_dim + sizes.value_dim, 1);
  const std::int64_t most = std::min(kMostScores, kMostProducts / dims) / scores_per_query;
  sizes.q_len = std::min(sizes.q_len, std::max<std::int64_t>(most, 1));
  return sizes;
}

constexpr int kLayouts = 6;

Layout draw_layout(int layouts) { return static_cast<Layout>(*rc::gen::inRange(0, layouts)); }

}  // namespace

rc::Gen<AttentionCase> attention_case(bool modifies_scores) {
  return rc::gen::exec([modifies_scores] {
    AttentionCase drawn;
    drawn.sizes = draw_sizes();
    drawn.query_layout = draw_layout(kLayouts);
    drawn.key_layout = draw_layout(kLayouts);
    // Excludes values that are all equal: the rounding errors of their sums all have one direction,
    // and it is luck in every row at once whose are larger.
    drawn.value_layout = draw_layout(kLayouts - 1);
    drawn.magnitude = one_of({1.0F, 0.0F, 5.0F, 30.0F});
    const std::int64_t last = drawn.sizes.kv_len - drawn.sizes.q_len;
    drawn.query_offset = one_of<std::int64_t>({0, last, *rc::gen::inRange<std::int64_t>(-20, 320)});
    drawn.offset_step = one_of<std::int64_t>({0, 0, *rc::gen::inRange<std::int64_t>(-40, 90)});
    for (int parts = *rc::gen::inRange(0, 4); parts > 0; --parts) {
      const auto seed = *rc::gen::inRange<std::uint32_t>(0, 1000);
      drawn.masks.push_back(
          modifies_scores ? seed : seed / kStructuralKinds * kKinds + seed % kStructuralKinds);
    }
    drawn.has_sinks = *rc::gen::arbitrary<bool>();
    drawn.scale = *rc::gen::inRange(0, 4);
    if (modifies_scores) {
      drawn.score_mod = *rc::gen::inRange(0, static_cast<int>(score_mods().size()));
      drawn.bias = one_of<std::uint32_t>({0, *rc::gen::inRange(1U, 1000U)});
      drawn.has_alibi = one_of({false, false, true});
      drawn.softcap = one_of({0.0F, 0.5F, 20.0F});
    }
    drawn.dropout = one_of({0.0F, 0.25F, 1.0F});
    return drawn;
  });
}

void expect_no_faults(const char* what, bool modifies_scores,
                      const std::function<std::string(const AttentionCase&)>& faults) {
  EXPECT_TRUE(rc::check(what, [&] {
    const AttentionCase drawn = *attention_case(modifies_scores);
    const std::string text = faults(drawn);
    if (!text.empty()) RC_FAIL(text);
  }));
}

double score_roundings_of(const AttentionCase& drawn) {
  return 1 + std::sqrt(static_cast<double>(drawn.sizes.head_dim)) / 2;
}

namespace {

QueryOffset offset_of(const AttentionCase& drawn) {
  if (drawn.offset_step == 0) return drawn.query_offset;
  std::vector<std::int64_t> offsets;
  for (std::int64_t b = 0; b < drawn.sizes.batch; ++b) {
    offsets.push_back(drawn.query_offset + b * drawn.offset_step);
  }
  return offsets;
}

// True if every query_offset is between these bounds, inclusive.
bool are_within(const QueryOffset& offset, std::int64_t least, std::int64_t most) {
  return std::ranges::all_of(offset.values(),
                             [=](std::int64_t one) { return one >= least && one <= most; });
}

}  // namespace

DrawnAttention::DrawnAttention(const AttentionCase& drawn)
    : shape_{drawn.sizes.batch, drawn.sizes.num_heads, drawn.sizes.q_len, drawn.sizes.kv_len,
             offset_of(drawn)} {
  const Sizes& s = drawn.sizes;
  views_.query = laid_out(drawn.query_layout, {s.batch, s.num_heads, s.q_len, s.head_dim}, 1);
  // Multiplies the memory, because views may repeat an element.
  for (float& element : floats_.back().elements()) element *= drawn.magnitude;
  views_.key = laid_out(drawn.key_layout, {s.batch, s.num_kv_heads, s.kv_len, s.head_dim}, 2);
  views_.value = laid_out(drawn.value_layout, {s.batch, s.num_kv_heads, s.kv_len, s.value_dim}, 3);
  set_options(drawn);
}

FloatView DrawnAttention::laid_out(Layout layout, const Shape& shape, std::uint32_t seed) {
  const std::int64_t batch = shape[0];
  const std::int64_t heads = shape[1];
  const std::int64_t length = shape[2];
  const std::int64_t dim = shape[3];
  const auto keep = [this](Tensor<float> tensor) {
    floats_.push_back(std::move(tensor));
    return floats_.back().view();
  };
  switch (layout) {
    case Layout::kLengthBeforeHeads:
      return keep(normal<float>({batch, length, heads, dim}, seed)).permute({0, 2, 1, 3});
    case Layout::kPadded: {
      const auto inside = [&](const TensorView<float>& view) {
        return view.slice(2, 1, 1 + length).slice(3, 2, 2 + dim);
      };
      const auto all = keep(Tensor<float>({batch, heads, length + 3, dim + 5}));
      for (float& element : floats_.back().elements()) element = kNaN;
      const auto numbers = normal<float>(shape, seed);
      const float* number = numbers.data();
      for_each_element(inside(all), [&number](float& element) { element = *number++; });
      return inside(all);
    }
    case Layout::kBroadcastOverBatch:
      if (batch == 0) break;
      return keep(normal<float>({1, heads, length, dim}, seed)).broadcast_to(shape);
    case Layout::kBroadcastOverLength:
      if (length == 0) break;
      return keep(normal<float>({batch, heads, 1, dim}, seed)).broadcast_to(shape);
    case Layout::kReversed: {
      if (shape.num_elements() == 0) break;
      const auto view = keep(normal<float>(shape, seed));
      Strides strides = view.strides();
      strides[2] = -dim;
      return {view.data() + (length - 1) * dim, shape, strides};
    }
    case Layout::kContiguous:
      break;
  }
  return keep(normal<float>(shape, seed));
}

// Returns a tensor of some rank that broadcasts to the scores, with gaps in memory or with its last
// two dimensions swapped.
template <class T, class Draw>
TensorView<const T> DrawnAttention::broadcastable(Random& random, std::vector<Tensor<T>>& memory,
                                                  Draw draw) {
  const std::array<std::int64_t, 4> full{shape_.batch, shape_.num_heads, shape_.q_len,
                                         shape_.kv_len};
  const auto rank = static_cast<std::size_t>(below(random, 5));
  std::array<std::int64_t, 4> extents{};
  for (std::size_t i = 0; i < rank; ++i) {
    extents[i] = below(random, 3) == 0 ? 1 : full[4 - rank + i];
  }
  const Shape shape(std::span<const std::int64_t>(extents.data(), rank));
  const std::int64_t gap = 1 + below(random, 2);
  memory.emplace_back(Shape{shape.num_elements() * gap});
  for (T& element : memory.back().elements()) element = draw(random);
  Strides strides = contiguous_strides(shape);
  if (rank >= 2 && below(random, 2) == 0) {
    strides[rank - 2] = 1;
    strides[rank - 1] = extents[rank - 2];
  }
  for (std::int64_t& stride : strides) stride *= gap;
  return {memory.back().data(), shape, strides};
}

Mask DrawnAttention::mask(std::uint32_t seed) {
  Random random(seed);
  return seed % kKinds < kStructuralKinds ? structural_mask(random) : irregular_mask(random);
}

Mask DrawnAttention::structural_mask(Random& random) const {
  const std::int64_t to_last_key = shape_.kv_len - shape_.q_len;
  switch (below(random, 8)) {
    case 0:
      return causal_top_left();
    case 1:
      return are_within(shape_.query_offset, to_last_key, to_last_key) ? causal()
                                                                       : causal(to_last_key);
    case 2:
      return causal(below(random, 400) - 100);
    case 3:
      return sliding_window(below(random, 200), below(random, 50),
                            Alignment::offset(below(random, 300) - 50));
    case 4:
      return sliding_window(below(random, 2) == 0 ? kUnbounded : below(random, 9), kUnbounded,
                            Alignment::top_left());
    case 5:
      return prefix(below(random, 300), Alignment::top_left());
    case 6: {
      std::vector<std::int64_t> lengths(static_cast<std::size_t>(shape_.batch));
      for (std::int64_t& length : lengths) length = below(random, shape_.kv_len + 1);
      return key_lengths(lengths);
    }
    default:
      break;
  }
  if (are_within(shape_.query_offset, 0, to_last_key)) {
    std::vector<std::int64_t> boundaries{0, shape_.kv_len};
    for (int i = 0; i < 4; ++i) boundaries.push_back(below(random, shape_.kv_len + 1));
    std::sort(boundaries.begin(), boundaries.end());
    return documents(boundaries);
  }
  std::vector<RowRange> ranges(static_cast<std::size_t>(shape_.q_len));
  for (RowRange& range : ranges) range = {below(random, 300) - 50, below(random, 400) - 50};
  return Mask::rows(ranges);
}

// Returns blocks of some size, a third of them partial.
Mask DrawnAttention::blocks_mask(Random& random) const {
  BlockLayout layout{.batch = below(random, 2) == 0 ? 1 : shape_.batch,
                     .num_heads = below(random, 2) == 0 ? 1 : shape_.num_heads,
                     .q_len = shape_.q_len,
                     .kv_len = shape_.kv_len,
                     .q_block = 1 + below(random, 128),
                     .kv_block = 1 + below(random, 128)};
  const std::int64_t rows =
      layout.batch * layout.num_heads * ((layout.q_len + layout.q_block - 1) / layout.q_block);
  const std::int64_t columns = (layout.kv_len + layout.kv_block - 1) / layout.kv_block;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      if (below(random, 2) == 0) continue;
      layout.columns.push_back(static_cast<std::int32_t>(column));
      layout.partial.push_back(below(random, 3) == 0 ? 1 : 0);
    }
    layout.row_begin.push_back(static_cast<std::int64_t>(layout.columns.size()));
  }
  return Mask::blocks(std::move(layout), strided(3, Alignment::top_left()) &
                                             causal(Alignment::offset(below(random, 200))));
}

Mask DrawnAttention::irregular_mask(Random& random) {
  const auto flag = [](Random& any) { return below(any, 4) != 0; };
  switch (below(random, 8)) {
    case 0:
      return Mask::allow(broadcastable(random, flags_, flag));
    case 1:
      return Mask::block(broadcastable(random, flags_, flag));
    case 2:
      return Mask::additive(broadcastable(random, floats_, [](Random& any) {
        return below(any, 5) == 0 ? -kInfinity : static_cast<float>(below(any, 1000)) / 300;
      }));
    case 3: {
      Tensor<std::int64_t> tokens({shape_.batch, shape_.kv_len});
      for (std::int64_t& token : tokens.elements()) token = below(random, 4);
      return key_padding(tokens, 0);
    }
    case 4:
      return random_blocks({.count = below(random, 4),
                            .block = 1 + below(random, 90),
                            .seed = random(),
                            .only_past = below(random, 2) == 0},
                           Alignment::offset(below(random, 100) - 50));
    case 5:
      return streaming(below(random, 40), 1 + below(random, 100),
                       Alignment::offset(below(random, 200) - 50));
    case 6:
      return blocks_mask(random);
    default: {
      const auto step = static_cast<int>(2 + below(random, 9));
      return Mask::where([step](int b, int h, int q, int k) {
        return ((b + 2 * h + 3 * q + 5 * k) % step + step) % step != 0;
      });
    }
  }
}

void DrawnAttention::set_options(const AttentionCase& drawn) {
  options_.query_offset = shape_.query_offset;
  for (const std::uint32_t seed : drawn.masks) options_.mask = options_.mask & mask(seed);
  options_.score_mod = score_mods()[static_cast<std::size_t>(drawn.score_mod)];
  if (drawn.bias != 0) {
    Random random(drawn.bias);
    options_.bias = broadcastable(random, floats_, [](Random& any) {
      return below(any, 9) == 0 ? -kInfinity : static_cast<float>(below(any, 1000)) / 300 - 1;
    });
  }
  if (drawn.has_sinks) {
    floats_.push_back(normal<float>({shape_.num_heads}, 4));
    options_.sinks = floats_.back().view();
  }
  if (drawn.has_alibi) {
    floats_.push_back(normal<float>({shape_.num_heads}, 5));
    options_.alibi_slopes = floats_.back().view();
  }
  if (drawn.relative != 0) set_relative(drawn);
  if (drawn.scale != 0) {
    options_.scale =
        std::array<float, 4>{0, 0.3F, -0.1F, 0.0F}[static_cast<std::size_t>(drawn.scale)];
  }
  options_.softcap = drawn.softcap;
  options_.dropout = {.probability = drawn.dropout, .seed = 7};
}

void DrawnAttention::set_relative(const AttentionCase& drawn) {
  Random random(drawn.relative);
  const auto draw_buckets = [&random] {
    switch (below(random, 3)) {
      case 0:
        return RelativeBuckets::clip(below(random, 200));
      case 1:
        return RelativeBuckets::t5(2 * (2 + below(random, 20)), 30 + below(random, 200));
      default:
        return RelativeBuckets::t5(2 + below(random, 30), 40 + below(random, 200), false);
    }
  };
  const auto table = [&](const Shape& shape) {
    floats_.push_back(normal<float>(shape, drawn.relative));
    return floats_.back().view();
  };
  const auto vectors = [&](const RelativeBuckets& buckets, std::int64_t dim) {
    return below(random, 2) == 0 ? table({buckets.count(), dim})
                                 : table({shape_.num_heads, buckets.count(), dim});
  };
  const std::int64_t which = 1 + below(random, 7);
  if (which % 2 == 1) {
    const RelativeBuckets buckets = draw_buckets();
    options_.relative_bias = {table({shape_.num_heads, buckets.count()}), buckets};
  }
  if (which == 1) return;
  options_.relative_vectors = {.buckets = draw_buckets()};
  RelativeVectors<float>& relative = *options_.relative_vectors;
  if (which / 2 % 2 == 1) relative.key = vectors(relative.buckets, drawn.sizes.head_dim);
  if (which / 4 == 1) relative.value = vectors(relative.buckets, drawn.sizes.value_dim);
}

std::ostream& operator<<(std::ostream& out, const AttentionCase& drawn) {
  const DrawnAttention built(drawn);
  const auto print = [&out](const char* name, FloatView view) {
    out << ' ' << name << ' ' << to_string(view.shape()) << " strides (";
    for (int dim = 0; dim < view.rank(); ++dim) out << (dim == 0 ? "" : ", ") << view.stride(dim);
    out << "),";
  };
  print("query", built.views().query);
  print("key", built.views().key);
  print("value", built.views().value);
  out << " query times " << drawn.magnitude << ", query_offset " << drawn.query_offset << " and "
      << drawn.offset_step << " more for each batch entry, mask "
      << built.options().mask.description() << " of seeds (";
  for (const std::uint32_t seed : drawn.masks) out << seed << ' ';
  out << "),";
  if (built.options().bias) print("bias", *built.options().bias);
  out << " bias of seed " << drawn.bias << ", score_mod " << drawn.score_mod << ", sinks "
      << drawn.has_sinks << ", ALiBi " << drawn.has_alibi << ", relative positions of seed "
      << drawn.relative << ", scale " << drawn.scale << ", softcap " << drawn.softcap
      << ", dropout " << drawn.dropout;
  return out;
}

}  // namespace heed::testing_support
