// A query_offset per batch entry: each entry gets the bits that it gets with that offset for all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "heed/attention/diagnostics.h"
#include "heed/attention/packed.h"
#include "heed/attention/plan.h"
#include "heed/attention/position.h"
#include "heed/attention/reference.h"
#include "heed/attention/statistics.h"
#include "support/fused.h"
#include "support/gradients.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::expected_gradients;
using testing_support::grad_out_for;
using testing_support::gradients_of;
using testing_support::inaccuracy;
using testing_support::Inputs;
using testing_support::Message;
using testing_support::normal;
using testing_support::Refuses;
using testing_support::run;
using testing_support::same_bits;
using testing_support::TargetTest;

using Offsets = std::vector<std::int64_t>;

const Offsets kOffsets{200, 0, 71};

Inputs inputs() {
  return Inputs({.batch = 3,
                 .num_heads = 4,
                 .num_kv_heads = 2,
                 .q_len = 20,
                 .kv_len = 260,
                 .head_dim = 16,
                 .value_dim = 9});
}

// Every option that reads positions, and a bias and booleans, which must not.
struct Everything {
  Tensor<float> slopes = alibi_slopes<float>(4);
  Tensor<float> bias = normal<float>({3, 1, 20, 260}, 5);
  Tensor<bool> allowed{Shape{20, 260}};
  std::vector<std::pair<std::string, AttentionOptions>> cases;

  Everything() {
    for (std::int64_t i = 0; i < allowed.num_elements(); ++i) {
      allowed.data()[i] = i * 7919 % 5 != 1;
    }
    add("causal").mask = causal_top_left();
    add("window").mask = sliding_window(30, 2, Alignment::top_left());
    add("ALiBi").alibi_slopes = slopes;
    add("bias").bias = bias;
    add("dropout").dropout = {.probability = 0.3F, .seed = 4};
    add("allow").mask = Mask::allow(allowed.view());
    add("documents").mask = documents({0, 90, 150, 260});
    add("where").mask = Mask::where([](int, int, int q, int k) { return (q - k) % 3 == 0; });
    add("score_mod").score_mod = [](auto score, int, int, int q, int k) {
      return score * float(q % 7) - 0.01F * heed::abs(float(q - k));
    };
    AttentionOptions& all = add("all");
    all.mask = causal_top_left() & Mask::allow(allowed.view());
    all.alibi_slopes = slopes;
    all.bias = bias;
    all.dropout = {.probability = 0.3F, .seed = 4};
  }

 private:
  AttentionOptions& add(const char* name) {
    return cases.emplace_back(name, AttentionOptions{}).second;
  }
};

AttentionOptions with(AttentionOptions options, QueryOffset offset) {
  options.query_offset = std::move(offset);
  return options;
}

template <class T>
bool same_entry(const Tensor<T>& a, const Tensor<T>& b, std::int64_t batch) {
  const auto entry = [&](const Tensor<T>& all) {
    return to_tensor(all.view().slice(0, batch, batch + 1));
  };
  return same_bits(entry(a), entry(b));
}

class QueryOffsetOn : public TargetTest {};
HEED_RUN_ON_EVERY_TARGET(QueryOffsetOn);

TEST_P(QueryOffsetOn, EachEntryIsComputedWithItsOwn) {
  const Inputs in = inputs();
  const Tensor<float> grad_out = grad_out_for(in);
  const Everything everything;
  for (const auto& [name, options] : everything.cases) {
    const auto found = run(table(), in, with(options, kOffsets));
    const auto gradients = gradients_of(table(), grad_out, in, with(options, kOffsets));
    for (std::int64_t b = 0; b < 3; ++b) {
      const AttentionOptions one = with(options, kOffsets[static_cast<std::size_t>(b)]);
      const auto alone = run(table(), in, one);
      EXPECT_TRUE(same_entry(found.out, alone.out, b)) << name << ", entry " << b;
      EXPECT_TRUE(same_entry(found.lse, alone.lse, b)) << name << ", entry " << b;
      const auto alone_back = gradients_of(table(), grad_out, in, one);
      EXPECT_TRUE(same_entry(gradients.query, alone_back.query, b)) << name << ", entry " << b;
      EXPECT_TRUE(same_entry(gradients.key, alone_back.key, b)) << name << ", entry " << b;
      EXPECT_TRUE(same_entry(gradients.value, alone_back.value, b)) << name << ", entry " << b;
    }
    EXPECT_EQ(inaccuracy(gradients, expected_gradients(grad_out, in, with(options, kOffsets))), "")
        << name;
  }
}

// Checks the reference, with which the kernels are compared.
TEST(QueryOffset, EachEntryOfTheReferenceIsComputedWithItsOwn) {
  const Inputs in = inputs();
  const Tensor<float> grad_out = grad_out_for(in);
  const Everything everything;
  for (const auto& [name, options] : everything.cases) {
    const auto found =
        reference::attention(in.query.view(), in.key, in.value, with(options, kOffsets));
    const auto gradients = reference::attention_backward(grad_out, in.query, in.key, in.value,
                                                         with(options, kOffsets));
    for (std::int64_t b = 0; b < 3; ++b) {
      const AttentionOptions one = with(options, kOffsets[static_cast<std::size_t>(b)]);
      const auto alone = reference::attention(in.query.view(), in.key, in.value, one);
      EXPECT_TRUE(same_entry(found.out, alone.out, b)) << name << ", entry " << b;
      const auto alone_back =
          reference::attention_backward(grad_out, in.query, in.key, in.value, one);
      EXPECT_TRUE(same_entry(gradients.query, alone_back.query, b)) << name << ", entry " << b;
      EXPECT_TRUE(same_entry(gradients.key, alone_back.key, b)) << name << ", entry " << b;
    }
  }
}

TEST(QueryOffset, WeightsAndStatisticsReadIt) {
  const Inputs in = inputs();
  const Everything everything;
  const std::vector<AttentionRow> rows{{0, 1, 3}, {1, 0, 19}, {2, 3, 0}};
  for (const auto& [name, options] : everything.cases) {
    const auto weights = attention_weights(in.query, in.key, rows, with(options, kOffsets));
    const auto statistics =
        attention_statistics(in.query, in.key, with(options, kOffsets), {.top_k = 2});
    for (std::int64_t b = 0; b < 3; ++b) {
      const AttentionOptions one = with(options, kOffsets[static_cast<std::size_t>(b)]);
      EXPECT_TRUE(same_entry(weights, attention_weights(in.query, in.key, rows, one), b))
          << name << ", row " << b;
      const auto alone = attention_statistics(in.query, in.key, one, {.top_k = 2});
      EXPECT_TRUE(same_entry(statistics.entropy, alone.entropy, b)) << name << ", entry " << b;
      EXPECT_TRUE(same_entry(statistics.top_keys, alone.top_keys, b)) << name << ", entry " << b;
      EXPECT_TRUE(same_entry(statistics.key_mass, alone.key_mass, b)) << name << ", entry " << b;
    }
  }
}

// Every query puts its weight on the key before its own position, at any offset.
TEST(QueryOffset, DiagnosticsMeasureDistancesFromIt) {
  const std::vector<Offsets> several{{30, 30}, {30, 4}, {4, 30}};
  for (const Offsets& offsets : several) {
    const auto query = normal<float>({2, 1, 12, 8}, 1);
    const auto key = normal<float>({2, 1, 50, 8}, 2);
    Tensor<float> bias({2, 1, 12, 50});
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t q = 0; q < 12; ++q) {
        bias(b, 0, q, q + offsets[static_cast<std::size_t>(b)] - 1) = 60;
      }
    }
    AttentionOptions options;
    options.bias = bias;
    options.query_offset = offsets;
    const auto found = attention_diagnostics(query, key, options);
    EXPECT_NEAR(found.heads.at(0).previous, 1, 1e-6);
    EXPECT_NEAR(found.heads.at(0).same, 0, 1e-6);
    EXPECT_EQ(found.heads.at(0).offset, -1);
    EXPECT_NEAR(found.heads.at(0).offset_weight, 1, 1e-6);
  }
}

TEST(QueryOffset, PackedSequencesHaveOneEach) {
  const auto query = normal<float>({9, 4, 8}, 1);
  const auto key = normal<float>({50, 2, 8}, 2);
  const auto grad_out = normal<float>({9, 4, 8}, 3);
  const Offsets q_at{0, 4, 9};
  const Offsets k_at{0, 20, 50};
  const Offsets offsets{16, 25};
  const auto slopes = alibi_slopes<float>(4);
  AttentionOptions options{.mask = causal()};
  options.alibi_slopes = slopes;
  options.query_offset = offsets;
  const PackedSequences sequences{q_at, k_at};
  const auto out = attention_packed_with_lse(query, key, key, sequences, options);
  const auto back = attention_packed_backward(grad_out, query, key, key, sequences, out, options);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto of = [&](FloatView packed, const Offsets& at) {
      return packed.slice(0, at[i], at[i + 1]).permute({1, 0, 2}).to_rank(4);
    };
    const AttentionOptions one = with(options, offsets[i]);
    const auto alone = attention_with_lse(of(query, q_at), of(key, k_at), of(key, k_at), one);
    EXPECT_TRUE(same_bits(to_tensor(of(out.out, q_at)), alone.out)) << i;
    const auto alone_back = attention_backward(of(grad_out, q_at), of(query, q_at), of(key, k_at),
                                               of(key, k_at), alone, one);
    EXPECT_TRUE(same_bits(to_tensor(of(back.query, q_at)), alone_back.query)) << i;
    EXPECT_TRUE(same_bits(to_tensor(of(back.key, k_at)), alone_back.key)) << i;
  }
  EXPECT_THAT(([&] { attention_packed(query, key, key, sequences, with(options, Offsets{1})); }),
              Refuses("query_offset", "1"));
}

TEST(QueryOffset, IsChecked) {
  const Inputs in = inputs();
  const auto expect_refused = [&](const Mask& mask, const Offsets& offsets, const Message& text) {
    EXPECT_THAT(([&] { attention(in.query, in.key, in.value, with({.mask = mask}, offsets)); }),
                ThrowsMessage<InvalidArgument>(text));
  };
  expect_refused({}, {1, 2}, {"query_offset", "2"});
  expect_refused({}, {}, {"query_offset", "0"});
  expect_refused(causal(), {240, 240, 239}, {"query_offset[2]", "239"});
  expect_refused(causal_bottom_right(), {240, 240, 239}, {"query_offset", "239"});
  expect_refused(causal(Alignment::bottom_right({260, 30, 20})), {240, 10, 1},
                 {"query_offset", "1"});
  expect_refused({}, {0, std::int64_t{1} << 40, 0}, {"query_offset[1]", "1099511627776"});
  expect_refused(documents({0, 260}), {0, 250, 0}, "documents: queries at positions 250 to 270");
  // Equal offsets of mask and options are accepted.
  const auto mask = causal(Alignment::bottom_right({260, 30, 20}));
  EXPECT_TRUE(
      same_bits(attention(in.query, in.key, in.value, with({.mask = mask}, Offsets{240, 10, 0})),
                attention(in.query, in.key, in.value, {.mask = mask})));
}

TEST(QueryOffset, IsSaidByPlans) {
  const AttentionShapes shapes{
      .batch = 3, .q_len = 2, .kv_len = 260, .head_dim = 8, .value_dim = 8};
  EXPECT_THAT(plan(shapes, with({}, kOffsets)).to_string(),
              HasSubstr("positions   query 0 stands at 200, 0, 71\n"));
  EXPECT_THAT(plan(shapes, with({}, 5)).to_string(), HasSubstr("query 0 stands at 5\n"));
  EXPECT_THAT(plan(shapes).to_string(), Not(HasSubstr("positions")));
}

TEST(QueryOffset, MovesAsAWhole) {
  QueryOffset one(5);
  one += 2;
  one -= 3;
  EXPECT_EQ(one[7], 4);
  EXPECT_FALSE(one.is_per_entry());
  QueryOffset several(Offsets{5, 9});
  const QueryOffset before = several;
  several -= 4;
  EXPECT_EQ(several[0], 1);
  EXPECT_EQ(several[1], 5);
  EXPECT_EQ(before[1], 9);
}

}  // namespace
}  // namespace heed
