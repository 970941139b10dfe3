// The sequences that the tasks draw.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/nn/ops.h"
#include "heed/tasks/copy_task.h"
#include "heed/tasks/recall_task.h"

namespace heed::tasks { namespace {

std::vector<std::int64_t> tokens_of_row(const Tensor<std::int64_t>& tokens, std::int64_t row) {
  const auto elements = tokens.view().select(0, row).elements();
  return {elements.begin(), elements.end()};
}

TEST(RecallTask, AsksForTheValuesOfItsPairs) {
  const RecallTask task{.pairs = 5, .questions = 3, .keys = 7, .values = 4, .lead = 2};
  TorchGenerator random(1);
  const TokenBatch batch = draw_batch(task, 50, random);
  ASSERT_EQ(batch.inputs.shape(), (Shape{50, 2 + 5 + 3}));
  for (std::int64_t row = 0; row < 50; ++row) {
    const auto inputs = tokens_of_row(batch.inputs, row);
    const auto targets = tokens_of_row(batch.targets, row);
    std::map<std::int64_t, std::int64_t> value_of;
    for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(targets[i], nn::kIgnoreIndex);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(inputs[i], task.blank());
    for (std::size_t i = 2; i < 7; ++i) {
      ASSERT_LT(inputs[i], 7 * 4);
      EXPECT_TRUE(value_of.emplace(inputs[i] / 4, inputs[i] % 4).second) << "a key twice";
    }
    std::set<std::int64_t> asked;
    for (std::size_t i = 7; i < 10; ++i) {
      const std::int64_t key = inputs[i] - task.question(0);
      ASSERT_EQ(value_of.count(key), 1U);
      EXPECT_EQ(targets[i], task.answer(value_of.at(key)));
      EXPECT_TRUE(asked.insert(key).second) << "a question twice";
    }
  }
}

// Pairs, questions, answers and the blank are all different tokens.
TEST(RecallTask, TokensDiffer) {
  const RecallTask task{.pairs = 2, .questions = 1, .keys = 3, .values = 2};
  std::set<std::int64_t> tokens{task.blank()};
  for (std::int64_t key = 0; key < 3; ++key) {
    tokens.insert(task.question(key));
    for (std::int64_t value = 0; value < 2; ++value) tokens.insert(task.pair(key, value));
  }
  for (std::int64_t value = 0; value < 2; ++value) tokens.insert(task.answer(value));
  EXPECT_EQ(tokens.size(), 12U);
  EXPECT_EQ(task.vocab_size(), 12);
  EXPECT_EQ(*tokens.rbegin(), 11);
}

TEST(CopyTask, BlanksStandBeforeAndBehindTheSymbols) {
  const CopyTask task{.length = 3, .symbols = 4, .lead = 2, .gap = 1};
  TorchGenerator random(1);
  const TokenBatch batch = draw_batch(task, 20, random);
  ASSERT_EQ(batch.inputs.extent(1), task.sequence_length());
  for (std::int64_t row = 0; row < 20; ++row) {
    const auto in = tokens_of_row(batch.inputs, row);
    const std::vector<std::int64_t> expected{5, 5, in[2], in[3], in[4], 5, 4, in[2], in[3]};
    EXPECT_EQ(in, expected);
    const std::int64_t none = nn::kIgnoreIndex;
    const std::vector<std::int64_t> targets{none, none,  none,  none, none,
                                            none, in[2], in[3], in[4]};
    EXPECT_EQ(tokens_of_row(batch.targets, row), targets);
    for (std::int64_t i = 0; i < task.length; ++i) {
      const auto at = static_cast<std::size_t>(task.question() + i);
      EXPECT_EQ(targets[at], in[at - static_cast<std::size_t>(task.distance())]);
    }
  }
}

// A table of tasks that cannot be drawn, with what their error says.
TEST(TokenTasks, NameTheSettingThatIsOutOfRange) {
  TorchGenerator random(1);
  const std::vector<std::pair<CopyTask, std::string>> copies{
      {{.length = 0, .symbols = 4}, "task.length is 0, expected at least 1"},
      {{.length = 3, .symbols = 0}, "task.symbols is 0, expected at least 1"},
      {{.length = 5, .symbols = 4, .lead = -2}, "task.lead is -2, expected at least 0"},
      {{.length = 5, .symbols = 4, .gap = -1}, "task.gap is -1, expected at least 0"}};
  for (const auto& [task, text] : copies) {
    EXPECT_THAT(([&, &task = task] { draw_batch(task, 1, random); }),
                testing::ThrowsMessage<InvalidArgument>(testing::HasSubstr(text)));
  }
  const std::vector<std::pair<RecallTask, std::string>> recalls{
      {{.pairs = 5, .questions = 3, .keys = 4, .values = 4}, "task.pairs is 5, expected 1 to 4"},
      {{.pairs = 2, .questions = 3, .keys = 4, .values = 4},
       "task.questions is 3, expected 0 to 2"},
      {{.pairs = 1, .questions = 1, .keys = 0, .values = 4}, "task.keys is 0, expected at least 1"},
      {{.pairs = 1, .questions = 1, .keys = 1, .values = 0},
       "task.values is 0, expected at least 1"},
      {{.pairs = 1, .questions = 1, .keys = 1, .values = 1, .lead = -1},
       "task.lead is -1, expected at least 0"}};
  for (const auto& [task, text] : recalls) {
    EXPECT_THAT(([&, &task = task] { draw_batch(task, 1, random); }),
                testing::ThrowsMessage<InvalidArgument>(testing::HasSubstr(text)));
  }
}

}  // namespace
}  // namespace heed::tasks
