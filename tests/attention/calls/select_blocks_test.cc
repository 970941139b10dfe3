// select_blocks(), compared with plain loops, and attention over the selected blocks.
#include "heed/attention/select_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "heed/attention.h"
#include "heed/attention/mask.h"
#include "heed/attention/reference.h"
#include "heed/core/data_type.h"
#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;
using testing_support::elements_of;
using testing_support::max_difference;
using testing_support::Message;
using testing_support::normal;
using testing_support::same_bits;

using testing_support::kNaN;

std::int64_t blocks_in(std::int64_t length, std::int64_t block) {
  return (length + block - 1) / block;
}

// Plain loops for one row of one head, or of heads that select together.
struct ReferenceRow {
  FloatView queries;  // [heads, q_len, head_dim]
  FloatView key;      // [kv_len, head_dim]
  SelectBlocksOptions options;

  static double mean(FloatView rows, std::int64_t begin, std::int64_t end, std::int64_t c) {
    double sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += rows(i, c);
    return sum / static_cast<double>(end - begin);
  }
  double affinity(std::int64_t row, std::int64_t block) const {
    double sum = 0;
    for (std::int64_t head = 0; head < queries.extent(0); ++head) {
      sum += affinity(queries.select(0, head), row, block);
    }
    return sum;
  }
  double affinity(FloatView query, std::int64_t row, std::int64_t block) const {
    const std::int64_t q = row * options.q_block;
    const std::int64_t k = block * options.block;
    double sum = 0;
    for (std::int64_t c = 0; c < key.extent(1); ++c) {
      sum += mean(query, q, std::min(q + options.q_block, query.extent(0)), c) *
             mean(key, k, std::min(k + options.block, key.extent(0)), c);
    }
    return sum;
  }
  // Returns the blocks that this row sees, found by searching for the best one top_k times.
  std::vector<std::int32_t> chosen(std::int64_t row) const {
    std::int64_t last = blocks_in(key.extent(0), options.block) - 1;
    if (options.causal) {
      const std::int64_t position = key.extent(0) - queries.extent(1) + row;
      last = position < 0 ? -1 : position / options.block;
    }
    std::vector<double> worth;
    for (std::int64_t j = 0; j <= last; ++j) worth.push_back(affinity(row, j));
    std::vector<bool> is_chosen(worth.size());
    if (options.causal && last >= 0) is_chosen.back() = true;
    while (std::count(is_chosen.begin(), is_chosen.end(), true) <
           std::min<std::int64_t>(options.top_k, last + 1)) {
      std::size_t best = worth.size();
      for (std::size_t j = 0; j < worth.size(); ++j) {
        if (!is_chosen[j] && (best == worth.size() || worth[j] > worth[best])) best = j;
      }
      is_chosen[best] = true;
    }
    std::vector<std::int32_t> columns;
    for (std::size_t j = 0; j < worth.size(); ++j) {
      if (is_chosen[j]) columns.push_back(static_cast<std::int32_t>(j));
    }
    return columns;
  }
};

// Returns the columns of a row of blocks of a layout.
std::vector<std::int32_t> columns_of(const BlockLayout& layout, std::int64_t batch,
                                     std::int64_t head, std::int64_t row) {
  const std::int64_t rows = blocks_in(layout.q_len, layout.q_block);
  const auto at = static_cast<std::size_t>((batch * layout.num_heads + head) * rows + row);
  return {layout.columns.begin() + layout.row_begin[at],
          layout.columns.begin() + layout.row_begin[at + 1]};
}

void expect_as_plain_loops(FloatView query, FloatView key, const SelectBlocksOptions& options) {
  const BlockLayout layout = select_blocks(query, key, options);
  layout.check("test");
  ASSERT_EQ(layout.batch, query.extent(0));
  ASSERT_EQ(layout.num_heads, query.extent(1));
  ASSERT_EQ(layout.q_len, query.extent(2));
  ASSERT_EQ(layout.kv_len, key.extent(2));
  const std::int64_t group = layout.num_heads / key.extent(1);
  for (std::int64_t b = 0; b < layout.batch; ++b) {
    for (std::int64_t h = 0; h < layout.num_heads; ++h) {
      const std::int64_t kv_head = h / group;
      const std::int64_t first = options.per_kv_head ? kv_head * group : h;
      const std::int64_t last = options.per_kv_head ? first + group : h + 1;
      const ReferenceRow reference{query.select(0, b).slice(0, first, last),
                                   key.select(0, b).select(0, kv_head), options};
      for (std::int64_t row = 0; row < blocks_in(layout.q_len, layout.q_block); ++row) {
        ASSERT_EQ(columns_of(layout, b, h, row), reference.chosen(row))
            << "batch " << b << ", head " << h << ", row " << row;
      }
    }
  }
}

constexpr std::int64_t kBlock = 8;

TEST(SelectBlocks, ChoosesWhatPlainLoopsChoose) {
  for (const std::int64_t q_len : {0, 1, 7, 8, 9, 31}) {
    for (const std::int64_t kv_len : {0, 1, 7, 8, 9, 37}) {
      const Tensor<float> query = normal<float>({2, 4, q_len, 5}, 1);
      const Tensor<float> key = normal<float>({2, 2, kv_len, 5}, 2);
      for (const std::int64_t top_k : {1, 2, 3, 9}) {
        SCOPED_TRACE("q_len " + std::to_string(q_len) + ", kv_len " + std::to_string(kv_len) +
                     ", top_k " + std::to_string(top_k));
        expect_as_plain_loops(query, key, {.block = kBlock, .top_k = top_k});
        expect_as_plain_loops(query, key, {.block = kBlock, .top_k = top_k, .q_block = 6});
        expect_as_plain_loops(query, key, {.block = kBlock, .top_k = top_k, .causal = true});
        expect_as_plain_loops(query, key,
                              {.block = kBlock, .top_k = top_k, .q_block = 6, .per_kv_head = true});
        expect_as_plain_loops(
            query, key, {.block = kBlock, .top_k = top_k, .causal = true, .per_kv_head = true});
      }
    }
  }
}

TEST(SelectBlocks, ReadsTensorsWhereTheyLie) {
  // Memory [batch, length, heads, dim], as projections produce it.
  const Tensor<float> query = normal<float>({2, 29, 4, 5}, 3);
  const Tensor<float> key = normal<float>({2, 29, 2, 5}, 4);
  const FloatView query_view = query.view().permute({0, 2, 1, 3});
  const FloatView key_view = key.view().permute({0, 2, 1, 3});
  const SelectBlocksOptions options{.block = kBlock, .top_k = 2, .causal = true};
  expect_as_plain_loops(query_view, key_view, options);
  EXPECT_EQ(select_blocks(query_view, key_view, options),
            select_blocks(to_tensor(query_view), to_tensor(key_view), options));
}

TEST(SelectBlocks, GivesTiesToTheLowerIndex) {
  const Tensor<float> query({1, 1, 1, 1}, {1});
  const Tensor<float> key({1, 1, 5, 1}, {2, 3, 2, 3, 3});
  const SelectBlocksOptions two{.block = 1, .top_k = 2};
  EXPECT_THAT(select_blocks(query, key, two).columns, ElementsAre(1, 3));
  EXPECT_THAT(select_blocks(query, key, {.block = 1, .top_k = 4}).columns, ElementsAre(0, 1, 3, 4));
  const Tensor<float> zero({1, 1, 1, 1});
  EXPECT_THAT(select_blocks(zero, key, two).columns, ElementsAre(0, 1));
}

TEST(SelectBlocks, CountsTheMeanOfAShorterBlock) {
  const Tensor<float> query({1, 1, 1, 1}, {1});
  const Tensor<float> key({1, 1, 3, 1}, {2, 2, 3});  // means 2 and 3; sums 4 and 3
  EXPECT_THAT(select_blocks(query, key, {.block = 2, .top_k = 1}).columns, ElementsAre(1));
}

TEST(SelectBlocks, AlwaysShowsTheOwnBlockWhereCausal) {
  const Tensor<float> query({1, 1, 4, 1}, {1, 1, 1, 1});
  const Tensor<float> key({1, 1, 4, 1}, {9, 8, -7, -6});
  const BlockLayout layout = select_blocks(query, key, {.block = 2, .top_k = 1, .causal = true});
  EXPECT_THAT(layout.columns, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(layout.partial, ElementsAre(1, 0, 1, 0));
}

TEST(SelectBlocks, LastQueryStandsAtTheLastKeyWhereCausal) {
  const Tensor<float> query({1, 1, 2, 1}, {1, 1});
  const Tensor<float> key({1, 1, 5, 1}, {9, 9, 1, 1, 1});
  const SelectBlocksOptions options{.block = 2, .top_k = 2, .causal = true};
  const BlockLayout layout = select_blocks(query, key, options);
  EXPECT_THAT(layout.row_begin, ElementsAre(0, 2, 4));
  EXPECT_THAT(layout.columns, ElementsAre(0, 1, 0, 2));
  EXPECT_THAT(layout.partial, ElementsAre(0, 0, 0, 0));          // the last block has one key
  const BlockLayout early = select_blocks(key, query, options);  // five queries, two keys
  EXPECT_THAT(early.row_begin, ElementsAre(0, 0, 0, 0, 1, 2));
}

TEST(SelectBlocks, NanIsWorthMoreThanAnyNumber) {
  const Tensor<float> query({1, 1, 1, 1}, {1});
  const Tensor<float> key({1, 1, 4, 1}, {5, kNaN, 6, kNaN});
  EXPECT_THAT(select_blocks(query, key, {.block = 1, .top_k = 1}).columns, ElementsAre(1));
  EXPECT_THAT(select_blocks(query, key, {.block = 1, .top_k = 3}).columns, ElementsAre(1, 2, 3));
  const Tensor<float> unknown({1, 1, 1, 1}, {kNaN});
  EXPECT_THAT(select_blocks(unknown, key, {.block = 1, .top_k = 2}).columns, ElementsAre(0, 1));
}

TEST(SelectBlocks, TheFutureChangesNothing) {
  constexpr std::int64_t kLength = 41;
  const Tensor<float> query = normal<float>({1, 2, kLength, 4}, 5);
  const Tensor<float> key = normal<float>({1, 1, kLength, 4}, 6);
  const SelectBlocksOptions options{.block = kBlock, .top_k = 3, .causal = true};
  const auto attend = [&](FloatView queries, FloatView keys) {
    const Mask mask = Mask::blocks(select_blocks(queries, keys, options), causal());
    return attention(queries, keys, keys, {.mask = mask});
  };
  const Tensor<float> before = attend(query, key);
  for (const std::int64_t from : {1, 7, 8, 9, 23, 40}) {
    for (const float future : {100.0F, kNaN}) {
      Tensor<float> changed_query = query;
      Tensor<float> changed_key = key;
      for (std::int64_t i = from; i < kLength; ++i) {
        for (std::int64_t c = 0; c < 4; ++c) {
          changed_key(0, 0, i, c) = future;
          changed_query(0, 0, i, c) = changed_query(0, 1, i, c) = future;
        }
      }
      const Tensor<float> after = attend(changed_query, changed_key);
      EXPECT_TRUE(same_bits(to_tensor(FloatView(before).slice(2, 0, from)),
                            to_tensor(FloatView(after).slice(2, 0, from))))
          << "from " << from;
      EXPECT_FALSE(same_bits(before, after));
    }
  }
}

TEST(SelectBlocks, AttentionSeesWhatWasChosenAndNothingElse) {
  const Tensor<float> query = normal<float>({2, 4, 37, 8}, 7);
  const Tensor<float> key = normal<float>({2, 2, 37, 8}, 8);
  const Tensor<float> value = normal<float>({2, 2, 37, 6}, 9);
  const BlockLayout layout =
      select_blocks(query, key, {.block = kBlock, .top_k = 2, .causal = true});
  const Mask mask = Mask::blocks(layout, causal());
  Tensor<bool> allowed({2, 4, 37, 37});
  for (std::int64_t row = 0; row < 2 * 4 * 37; ++row) {
    const std::int64_t q = row % 37;
    for (const std::int32_t block : columns_of(layout, row / 37 / 4, row / 37 % 4, q)) {
      for (std::int64_t k = block * kBlock; k < (block + 1) * kBlock && k <= q; ++k) {
        allowed(row / 37 / 4, row / 37 % 4, q, k) = true;
      }
    }
  }
  EXPECT_EQ(elements_of(materialize_allow(mask, {2, 4, 37, 37})), elements_of(allowed));
  const Mask dense = Mask::allow(allowed);
  EXPECT_LT(max_difference(attention(query, key, value, {.mask = mask}),
                           reference::attention(query, key, value, {.mask = dense}).out),
            1e-5);
}

// A head selects alone as it does among others.
TEST(SelectBlocks, HeadsThatShareNoKeysChooseForThemselves) {
  const Tensor<float> query = normal<float>({2, 3, 40, 4}, 13);
  const Tensor<float> key = normal<float>({2, 3, 40, 4}, 14);
  SelectBlocksOptions options{.block = kBlock, .top_k = 2};
  const BlockLayout each = select_blocks(query, key, options);
  options.per_kv_head = true;
  EXPECT_EQ(select_blocks(query, key, options), each);
}

// All heads of a key head see the jointly selected keys, which no head would select alone.
TEST(SelectBlocks, AGroupIsWorthTheSumOfItsHeads) {
  const Tensor<float> query({1, 2, 1, 2}, {3, 1, -1, 1});
  const Tensor<float> key({1, 1, 3, 2}, {1, 0, 0, 1.5F, -2, 0});
  SelectBlocksOptions options{.block = 1, .top_k = 1};
  EXPECT_THAT(select_blocks(query, key, options).columns, ElementsAre(0, 2));
  options.per_kv_head = true;
  EXPECT_THAT(select_blocks(query, key, options).columns, ElementsAre(1, 1));
}

TEST(SelectBlocks, WithAllBlocksIsFullAttention) {
  const Tensor<float> query = normal<float>({1, 2, 33, 8}, 10);
  const BlockLayout layout =
      select_blocks(query, query, {.block = kBlock, .top_k = 5, .causal = true});
  const ScoreShape shape{1, 2, 33, 33};
  EXPECT_EQ(count_visible(Mask::blocks(layout, causal()), shape), count_visible(causal(), shape));
}

TEST(SelectBlocks, IsTheSameWhateverTheThreads) {
  const Tensor<float> query = normal<float>({2, 2, 200, 8}, 11);
  const SelectBlocksOptions options{.block = kBlock, .top_k = 3, .causal = true};
  const BlockLayout many = select_blocks(query, query, options);
  const ThreadLimit one(1);
  EXPECT_EQ(select_blocks(query, query, options), many);
}

TEST(SelectBlocks, ReadsOtherTypesAsTheNumbersTheyStandFor) {
  const Tensor<float> drawn = normal<float>({1, 2, 40, 4}, 12);
  Tensor<Float16> halves(drawn.shape());
  Tensor<BFloat16> brains(drawn.shape());
  Tensor<float> of_halves(drawn.shape());
  Tensor<double> of_brains(drawn.shape());
  for (std::size_t i = 0; i < drawn.elements().size(); ++i) {
    halves.elements()[i] = Float16(drawn.elements()[i]);
    brains.elements()[i] = BFloat16(drawn.elements()[i]);
    of_halves.elements()[i] = halves.elements()[i];
    of_brains.elements()[i] = static_cast<float>(brains.elements()[i]);
  }
  const SelectBlocksOptions options{.block = kBlock, .top_k = 2};
  EXPECT_EQ(select_blocks(halves, halves, options), select_blocks(of_halves, of_halves, options));
  EXPECT_EQ(select_blocks(brains, brains, options), select_blocks(of_brains, of_brains, options));
}

TEST(SelectBlocks, TakesEmptyTensors) {
  const auto select = [](const Shape& query, const Shape& key) {
    return select_blocks(Tensor<float>(query), Tensor<float>(key), {.block = 2, .top_k = 1});
  };
  EXPECT_THAT(select({0, 2, 3, 4}, {0, 1, 3, 4}).columns, IsEmpty());
  EXPECT_THAT(select({1, 0, 3, 4}, {1, 0, 3, 4}).columns, IsEmpty());
  EXPECT_THAT(select({1, 1, 3, 4}, {1, 1, 0, 4}).row_begin, ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(select({1, 1, 3, 0}, {1, 1, 3, 0}).columns, ElementsAre(0, 0, 0));
}

TEST(SelectBlocks, ChecksItsArguments) {
  const auto refused = [](const Shape& query, const Shape& key, const SelectBlocksOptions& options,
                          const Message& problem) {
    EXPECT_THAT(([&] { select_blocks(Tensor<float>(query), Tensor<float>(key), options); }),
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("select_blocks: "), problem)));
  };
  const Shape shape{1, 2, 3, 4};
  refused(shape, shape, {.block = 0}, {"block", "0"});
  refused(shape, shape, {.block = 129}, {"block", "129"});
  refused(shape, shape, {.top_k = 0}, {"top_k", "0"});
  refused(shape, shape, {.q_block = 0}, {"q_block", "0"});
  refused(shape, shape, {.q_block = 2, .causal = true}, {"q_block", "2"});
  refused(shape, {1, 2, 3, 5}, {}, {"key head_dim", "5"});
  refused(shape, {2, 2, 3, 4}, {}, {"key batch", "2"});
  refused({1, 3, 3, 4}, shape, {}, {"num_heads", "3"});
  refused({3, 4}, shape, {}, {"query", "[3, 4]"});
}

}  // namespace
}  // namespace heed
