// Rules for products of bfloat16 in pairs and in AMX tiles.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "attention/masks/sinks_and_window.h"
#include "heed/attention/position.h"
#include "heed/attention/reference.h"
#include "support/half_gradients.h"

namespace heed::testing_support {

// A row computed alone on the decode path has the bits that it has among many, also where keys are
// skipped, in steps or from an odd one on.
inline void expect_a_row_alone_has_the_same_bits(const kernels::KernelTable& table,
                                                 std::int64_t head_dim, std::int64_t value_dim) {
  const std::int64_t length = 1300;
  const HalfInputs in({.num_heads = 2,
                       .num_kv_heads = 1,
                       .q_len = length,
                       .kv_len = length,
                       .head_dim = head_dim,
                       .value_dim = value_dim});
  const Tensor<float> bias = normal<float>({2, 1, length}, 4);
  const Alignment from_first = Alignment::top_left();
  std::vector<AttentionOptions> all;
  for (const Mask& mask :
       {Mask(), causal_top_left(), sliding_window(77, 5, from_first), strided(31, from_first),
        strided(2, from_first), strided(12, from_first), dilated(5, 3, from_first),
        dilated(9, 10, from_first), sinks_and_window(3, 41),
        causal_top_left() &
            Mask::where([](auto, auto, auto, auto k) { return k % 128 > 32 && k % 3 == 1; })}) {
    all.push_back({.mask = mask});
  }
  all.push_back({.bias = bias, .softcap = 5});
  for (const AttentionOptions& options : all) {
    SCOPED_TRACE(options.mask.description());
    const auto whole = attend(table, in, options);
    for (const std::int64_t q : {0, 1, 640, 1151, 1299}) {
      const HalfViews row{HalfViews(in).query.slice(2, q, q + 1), in.key, in.value};
      AttentionOptions alone = options;
      alone.query_offset = q;
      for (const bool few_rows : {true, false}) {
        const auto found = attend(table, row, alone, {.few_rows = few_rows});
        for (std::int64_t h = 0; h < 2; ++h) {
          EXPECT_EQ(found.lse(0, h, 0), whole.lse(0, h, q)) << q;
          for (std::int64_t d = 0; d < value_dim; ++d) {
            ASSERT_EQ(found.out(0, h, 0, d), whole.out(0, h, q, d)) << q << " " << d;
          }
        }
      }
    }
  }
}

// Rows at odd addresses, with odd sizes and strides, interleaved or reversed.
inline void expect_layouts_change_no_bit(const kernels::KernelTable& table, std::int64_t dim) {
  const HalfInputs in({.num_heads = 2,
                       .num_kv_heads = 2,
                       .q_len = 60,
                       .kv_len = 150,
                       .head_dim = dim,
                       .value_dim = dim});
  const auto expected = attend(table, in, {});
  for (const std::int64_t padding : {1, 2, 3, 1200}) {
    const auto laid_out = [&](const Tensor<BFloat16>& x, Tensor<BFloat16>& memory) {
      memory = Tensor<BFloat16>({1, x.extent(2), 2, dim + padding});
      const auto view = memory.view().permute({0, 2, 1, 3}).slice(3, 1, 1 + dim);
      for (std::int64_t h = 0; h < 2; ++h)
        for (std::int64_t i = 0; i < x.extent(2); ++i)
          for (std::int64_t d = 0; d < dim; ++d) view(0, h, i, d) = x(0, h, i, d);
      return BFloat16View(view);
    };
    Tensor<BFloat16> query, key, value;
    const HalfViews views{laid_out(in.query, query), laid_out(in.key, key),
                          laid_out(in.value, value)};
    EXPECT_TRUE(same_result(attend(table, views, {}), expected)) << dim << " " << padding;
    const HalfViews row{views.query.slice(2, 5, 6), views.key, views.value};
    EXPECT_TRUE(same_result(attend(table, row, {}), attend(table, row, {}, {.few_rows = false})));
  }
}

// Hidden numbers do not matter, not even the other key of a visible key's pair.
inline void expect_hidden_numbers_touch_nothing(const kernels::KernelTable& table,
                                                std::int64_t head_dim, std::int64_t value_dim) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const bool few_rows : {true, false}) {
    for (const std::int64_t last : {40, 41, 128}) {
      HalfInputs in({.q_len = 3, .kv_len = 200, .head_dim = head_dim, .value_dim = value_dim});
      const AttentionOptions options{.mask = sliding_window(9, 0, Alignment::top_left()),
                                     .query_offset = last - 2};
      const auto expected = attend(table, in, options, {.few_rows = few_rows});
      for (std::int64_t k = 0; k < 200; ++k) {
        // Keys of the last query, which alone sees key `last`.
        if (k >= last - 11 && k < last) continue;
        for (std::int64_t d = 0; d < head_dim; ++d) in.key(0, 0, k, d) = BFloat16(infinity);
        for (std::int64_t d = 0; d < value_dim; ++d) in.value(0, 0, k, d) = BFloat16(nan);
      }
      const auto found = attend(table, in, options, {.few_rows = few_rows});
      for (std::int64_t d = 0; d < value_dim; ++d) {
        for (std::int64_t q = 0; q < 2; ++q) {
          EXPECT_EQ(found.out(0, 0, q, d), expected.out(0, 0, q, d)) << last << " " << q;
        }
        EXPECT_TRUE(std::isnan(found.out(0, 0, 2, d)));
      }
    }
  }
}

// Over many keys and rows luck averages out: at most twice the plain error.
inline void expect_accurate_gradients_of_long_sequences(const kernels::KernelTable& table) {
  const HalfInputs in(Sizes{.q_len = 400, .kv_len = 1100, .head_dim = 64, .value_dim = 64});
  const auto grad_out = grad_out_for(in);
  const AttentionOptions options{.scale = 0.11F};
  const auto found = differentiate(table, in, grad_out, options);
  const auto plain = reference::attention_backward(grad_out, in.query, in.key, in.value, options);
  const auto exact = exact_gradients_of(in, grad_out, options);
  EXPECT_EQ(Judgement{}("query", found.query, plain.query, exact.query), "");
  EXPECT_EQ(Judgement{}("key", found.key, plain.key, exact.key), "");
  EXPECT_EQ(Judgement{}("value", found.value, plain.value, exact.value), "");
}

inline void expect_gradients_have_the_same_bits_on_threads(const kernels::KernelTable& table,
                                                           std::int64_t dim) {
  const HalfInputs in({.num_heads = 2,
                       .num_kv_heads = 1,
                       .q_len = 500,
                       .kv_len = 300,
                       .head_dim = dim,
                       .value_dim = dim});
  const auto grad_out = grad_out_for(in);
  for (const Mask& mask : {Mask(), strided(16, Alignment::top_left())}) {
    const auto one = differentiate(table, in, grad_out, {.mask = mask});
    EXPECT_TRUE(same_bits(one, differentiate(table, in, grad_out, {.mask = mask}, {.threads = 4})));
  }
}

// A float out is read with 16 bits, as one that is stored in two parts.
inline void expect_gradients_of_an_out_of_floats_are_the_same(const kernels::KernelTable& table,
                                                              std::int64_t dim) {
  const HalfInputs in({.num_heads = 2,
                       .num_kv_heads = 1,
                       .q_len = 200,
                       .kv_len = 300,
                       .head_dim = dim,
                       .value_dim = dim});
  const auto grad_out = grad_out_for(in);
  const Tensor<float> sinks = normal<float>({2}, 5);
  const AttentionOptions options{.mask = causal_bottom_right(), .sinks = sinks};
  EXPECT_TRUE(same_bits(differentiate(table, in, grad_out, options),
                        differentiate(table, in, grad_out, options, {.reads_floats = true})));
}

// 0 times a non-finite number counts as 0 in the backward pass too.
inline void expect_gradients_of_hidden_numbers_are_nothing(const kernels::KernelTable& table,
                                                           std::int64_t dim) {
  HalfInputs in({.q_len = 60, .kv_len = 200, .head_dim = dim, .value_dim = dim});
  const AttentionOptions options{.mask = sliding_window(7, 0, Alignment::top_left())};
  const auto grad_out = grad_out_for(in);
  const auto expected = differentiate(table, in, grad_out, options);
  // The first hidden key shares a pair with a key that the last query sees.
  for (std::int64_t k = 60; k < 200; ++k) {
    for (std::int64_t d = 0; d < dim; ++d) {
      in.key(0, 0, k, d) = BFloat16(std::numeric_limits<float>::infinity());
      in.value(0, 0, k, d) = BFloat16(std::numeric_limits<float>::quiet_NaN());
    }
  }
  // Only queries 31 to 38 see it.
  in.key(0, 0, 31, 3) = BFloat16(std::numeric_limits<float>::quiet_NaN());
  const auto found = differentiate(table, in, grad_out, options);
  for (std::int64_t q = 0; q < 60; ++q) {
    const bool sees_nan = q >= 31 && q <= 38;
    for (std::int64_t d = 0; d < dim; ++d) {
      if (sees_nan) {
        EXPECT_TRUE(std::isnan(found.query(0, 0, q, d))) << q;
      } else {
        EXPECT_EQ(found.query(0, 0, q, d), expected.query(0, 0, q, d)) << q;
      }
    }
  }
  for (std::int64_t k = 0; k < 200; ++k) {
    const bool shares_query = k >= 24 && k <= 38;
    if (shares_query) continue;
    for (std::int64_t d = 0; d < dim; ++d) {
      EXPECT_EQ(found.key(0, 0, k, d), expected.key(0, 0, k, d)) << k;
      EXPECT_EQ(found.value(0, 0, k, d), expected.value(0, 0, k, d)) << k;
    }
  }
}

// Non-finite rows affect the gradients of the keys that they see, and no bit of others.
inline void expect_gradients_of_rows_that_are_not_finite(const kernels::KernelTable& table,
                                                         std::int64_t dim) {
  HalfInputs in({.q_len = 60, .kv_len = 200, .head_dim = dim, .value_dim = dim});
  const AttentionOptions options{.mask = sliding_window(7, 0, Alignment::top_left())};
  auto grad_out = grad_out_for(in);
  const auto expected = differentiate(table, in, grad_out, options);
  grad_out(0, 0, 20, 5) = BFloat16(std::numeric_limits<float>::infinity());
  in.query(0, 0, 40, 1) = BFloat16(std::numeric_limits<float>::quiet_NaN());
  const auto found = differentiate(table, in, grad_out, options);
  for (std::int64_t k = 0; k < 200; ++k) {
    const bool is_touched = (k >= 13 && k <= 20) || (k >= 33 && k <= 40);
    for (std::int64_t d = 0; d < dim; ++d) {
      if (is_touched) {
        EXPECT_FALSE(std::isfinite(found.value(0, 0, k, 5))) << k;
        EXPECT_FALSE(std::isfinite(found.key(0, 0, k, d))) << k;
      } else {
        EXPECT_EQ(found.key(0, 0, k, d), expected.key(0, 0, k, d)) << k;
        EXPECT_EQ(found.value(0, 0, k, d), expected.value(0, 0, k, d)) << k;
      }
    }
  }
}

}  // namespace heed::testing_support
