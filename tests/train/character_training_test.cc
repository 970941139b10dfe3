// A run on a text: it learns, it can be ended and resumed to the same bits, its folder is a model.
#include "heed/train/character_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "heed/error.h"
#include "support/command.h"

namespace heed::train {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::read_text;
using testing_support::TemporaryFolder;

// Is told of a run, and ends it after some step.
class Witness final : public RunObserver {
 public:
  explicit Witness(std::int64_t last) : last_(last) {}

  void on_begin(std::int64_t steps_done, std::int64_t, const std::string& unit) override {
    begun = steps_done;
    unit_name = unit;
  }
  void on_step(const nn::TrainingStep& done, std::int64_t items) override {
    losses.push_back(done.loss);
    step = done.step;
    items_of_step = items;
  }
  bool wants_end() const override { return step == last_; }

  std::vector<double> losses;
  std::int64_t begun = -1;
  std::int64_t step = 0;
  std::int64_t items_of_step = 0;
  std::string unit_name;

 private:
  std::int64_t last_;
};

CharacterTraining tiny() {
  return {{.steps = 40, .batch = 4, .learning_rate = 0.01},
          {.context = 8, .layers = 1, .d_model = 16, .heads = 2}};
}

HeldOutText abc() {
  std::string text;
  while (text.size() < 300) text += "abcabd";
  return HeldOutText(text);
}

TEST(TrainCharacters, Learns) {
  RunObserver silent;
  const HeldOutText text = abc();
  const CharacterRun run = train_characters(tiny(), text, {}, silent);
  EXPECT_TRUE(run.outcome.is_finished);
  EXPECT_EQ(run.outcome.steps_done, 40);
  EXPECT_EQ(run.model.config.vocab_size, 4);
  const CharacterLosses losses = losses_on(run.model, text);
  EXPECT_LT(losses.learned.loss.value().mean, 0.9);  // a guess among four has 1.39
  ASSERT_EQ(losses.held_out.size(), 3U);
  EXPECT_EQ(losses.held_out[0].length, 8);
  EXPECT_EQ(losses.held_out[0].loss->sequences, 3);
  EXPECT_EQ(losses.held_out[2].length, 32);
  EXPECT_FALSE(losses.held_out[2].loss);  // 30 characters are held out
}

TEST(TrainCharacters, AResumedRunEndsWithTheSameBits) {
  const TemporaryFolder folder;
  RunObserver silent;
  const HeldOutText text = abc();
  train_characters(tiny(), text, new_run(folder / "whole"), silent);
  Witness first(15);
  const RunFolder parts = new_run(folder / "parts");
  const CharacterRun ended = train_characters(tiny(), text, parts, first);
  EXPECT_FALSE(ended.outcome.is_finished);
  EXPECT_EQ(ended.outcome.steps_done, 15);
  EXPECT_EQ(first.begun, 0);
  EXPECT_EQ(first.unit_name, "characters");
  EXPECT_EQ(first.items_of_step, 4 * 8);
  Witness second(-1);
  const CharacterRun resumed = train_characters({}, text, {parts.path, true}, second);
  EXPECT_TRUE(resumed.outcome.is_finished);
  EXPECT_EQ(second.begun, 15);
  EXPECT_EQ(second.losses.size(), 25U);
  EXPECT_EQ(read_text(parts.model().string()),
            read_text(RunFolder{folder / "whole"}.model().string()));
  const models::CharacterModel saved = models::load_character_model(parts.path);
  EXPECT_EQ(models::continue_text(saved, "ab", {.tokens = 9}),
            models::continue_text(resumed.model, "ab", {.tokens = 9}));
}

TEST(TrainCharacters, NamesWhatIsWrong) {
  const TemporaryFolder folder;
  RunObserver silent;
  const HeldOutText text = abc();
  CharacterTraining wrong = tiny();
  wrong.training.learning_rate = -1;
  EXPECT_THAT([&] { train_characters(wrong, text, {}, silent); },
              ThrowsMessage<InvalidArgument>("learning_rate is -1, expected a positive number"));
  EXPECT_THAT([&] { train_characters(tiny(), HeldOutText("abcabcab"), {}, silent); },
              ThrowsMessage<std::runtime_error>(HasSubstr("expected more than context, 8")));
  const RunFolder run = new_run(folder / "run");
  train_characters(tiny(), text, run, silent);
  EXPECT_THAT(
      [&] {
        train_characters({}, HeldOutText("other text, as long"), {run.path, true}, silent);
      },
      ThrowsMessage<std::runtime_error>(HasSubstr("was trained on another text")));
  EXPECT_THAT([&] { new_run(run.path); }, ThrowsMessage<IoError>(HasSubstr("holds a run already")));
}

}  // namespace
}  // namespace heed::train
