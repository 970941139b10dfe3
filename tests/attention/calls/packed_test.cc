#include "heed/attention/packed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::normal;
using testing_support::Refuses;
using testing_support::same_bits;

using Boundaries = std::vector<std::int64_t>;

// Returns rows of a packed tensor as a batch of one.
template <class T>
TensorView<const T> alone(const Tensor<T>& packed, std::int64_t begin, std::int64_t end) {
  return packed.view().slice(0, begin, end).permute({1, 0, 2}).to_rank(4);
}

struct PackedTest : testing::Test {
  const Boundaries q_at{0, 1, 1, 130, 260, 261};
  const Boundaries k_at{0, 3, 10, 139, 1400, 1400};
  const Tensor<float> query = normal<float>({261, 4, 12}, 1);
  const Tensor<float> key = normal<float>({1400, 2, 12}, 2);
  const Tensor<float> value = normal<float>({1400, 2, 7}, 3);
};

TEST_F(PackedTest, IsEverySequenceForItself) {
  const Tensor<float> sinks = normal<float>({4}, 4);
  for (const AttentionOptions& options :
       {AttentionOptions{}, AttentionOptions{.mask = causal_bottom_right()},
        AttentionOptions{.sinks = sinks.view(), .softcap = 2}}) {
    const auto found = attention_packed_with_lse(query, key, value, {q_at, k_at}, options);
    for (std::size_t i = 0; i + 1 < q_at.size(); ++i) {
      const auto one =
          attention_with_lse(alone(query, q_at[i], q_at[i + 1]), alone(key, k_at[i], k_at[i + 1]),
                             alone(value, k_at[i], k_at[i + 1]), options);
      EXPECT_TRUE(same_bits(to_tensor(alone(found.out, q_at[i], q_at[i + 1])), one.out)) << i;
      EXPECT_TRUE(
          same_bits(to_tensor(found.lse.view().slice(1, q_at[i], q_at[i + 1]).to_rank(3)), one.lse))
          << i;
    }
  }
}

TEST_F(PackedTest, SequencesAreEntriesOfABatchForMasksAndMods) {
  // Sequence i sees its first 1 + i keys, and scores depend on i.
  AttentionOptions options;
  options.mask = Mask::where([](int b, int, int, int k) { return k <= b; });
  options.score_mod = [](auto score, int b, int, int, int k) {
    return score * static_cast<float>(1 + b) + 0.1F * static_cast<float>(k);
  };
  options.dropout = {.probability = 0.25F, .seed = 3};
  const auto found = attention_packed(query, key, value, {q_at, k_at}, options);
  // Computes the same sequence within a batch of five copies.
  for (const std::size_t i : {std::size_t{2}, std::size_t{3}}) {
    const auto five = [](TensorView<const float> view) {
      return view.broadcast_to({5, view.extent(1), view.extent(2), view.extent(3)});
    };
    const auto batch =
        attention(five(alone(query, q_at[i], q_at[i + 1])), five(alone(key, k_at[i], k_at[i + 1])),
                  five(alone(value, k_at[i], k_at[i + 1])), options);
    const auto index = static_cast<std::int64_t>(i);
    EXPECT_TRUE(same_bits(to_tensor(alone(found, q_at[i], q_at[i + 1])),
                          to_tensor(batch.view().slice(0, index, index + 1))));
  }
}

TEST_F(PackedTest, HalfPrecision) {
  const auto narrow = [](const Tensor<float>& x) {
    auto result = Tensor<Float16>::uninitialized(x.shape());
    std::transform(x.elements().begin(), x.elements().end(), result.data(),
                   [](float element) { return Float16(element); });
    return result;
  };
  const auto q = narrow(query), k = narrow(key), v = narrow(value);
  const auto found = attention_packed(q, k, v, {q_at, k_at});
  const auto one = attention(alone(q, 130, 260), alone(k, 139, 1400), alone(v, 139, 1400));
  EXPECT_TRUE(same_bits(to_tensor(alone(found, 130, 260)), one));
}

TEST_F(PackedTest, NoSequences) {
  const Tensor<float> none({0, 4, 12});
  const Boundaries zero{0};
  EXPECT_TRUE(attention_packed(none, none, none, {zero, zero}).empty());
}

TEST_F(PackedTest, RefusesBoundariesThatDoNotFit) {
  const auto call = [&](const Boundaries& q, const Boundaries& k) {
    return [this, q, k] { attention_packed(query, key, value, {q, k}); };
  };
  EXPECT_THAT(call({}, k_at), ThrowsMessage<InvalidArgument>(HasSubstr("query must start with 0")));
  EXPECT_THAT(call({0, 5, 4, 261}, {0, 1, 2, 1400}),
              ThrowsMessage<InvalidArgument>(HasSubstr("query fall from 5 to 4")));
  EXPECT_THAT(call(q_at, {0, 1, 2, 3, 4, 5}),
              ThrowsMessage<InvalidArgument>(HasSubstr("key end at 5, but it has 1400 rows")));
  EXPECT_THAT(call({0, 261}, k_at), Refuses("query", "1"));
  EXPECT_THAT(
      [&] {
        attention_packed(query.view().to_rank(4), key, value, {q_at, k_at});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("expected 3 dimensions")));
}

}  // namespace
}  // namespace heed
