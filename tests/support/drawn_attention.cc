#include "support/drawn_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <utility>

#include "support/tensors.h"

namespace heed::testing_support {

namespace {

// The reference takes some ten milliseconds for this size, which keeps several threads busy.
constexpr std::int64_t kMostProducts = 8'000'000;
constexpr std::int64_t kMostScores = 80'000;

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

// Draws up to three masks and each other option with a probability of 1/3.
Options draw_options(bool modifies_scores) {
  const auto is_drawn = [modifies_scores](const Option& option) {
    return option.is_option() && (modifies_scores || !option.changes_scores());
  };
  const Options masks =
      options_where([&](const Option& option) { return is_drawn(option) && option.hides_keys(); });
  Options chosen;
  for (int parts = *rc::gen::inRange(0, 4); parts > 0; --parts) {
    chosen.push_back(masks[*rc::gen::inRange<std::size_t>(0, masks.size())]);
  }
  for (const Option& option : option_table()) {
    if (option.hides_keys() || !is_drawn(option)) continue;
    if (*rc::gen::inRange(0, 3) == 2) chosen.push_back(&option);
  }
  return chosen;
}

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
    drawn.options = draw_options(modifies_scores);
    drawn.options_seed = *rc::gen::inRange<std::uint64_t>(0, 100'000);
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

}  // namespace

DrawnAttention::DrawnAttention(const AttentionCase& drawn)
    : options_(drawn.sizes, offset_of(drawn)) {
  const Sizes& s = drawn.sizes;
  const std::uint32_t seed = 3 * drawn.contents_seed;
  views_.query =
      laid_out(drawn.query_layout, {s.batch, s.num_heads, s.q_len, s.head_dim}, seed + 1);
  // Multiplies the memory, because views may repeat an element.
  for (float& element : floats_.back().elements()) element *= drawn.magnitude;
  views_.key =
      laid_out(drawn.key_layout, {s.batch, s.num_kv_heads, s.kv_len, s.head_dim}, seed + 2);
  views_.value =
      laid_out(drawn.value_layout, {s.batch, s.num_kv_heads, s.kv_len, s.value_dim}, seed + 3);
  options_.add(drawn.options, drawn.options_seed);
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
      << drawn.offset_step << " more for each batch entry, " << to_string(drawn.options)
      << " of seed " << drawn.options_seed << ", mask " << built.options().mask.description();
  return out;
}

}  // namespace heed::testing_support
