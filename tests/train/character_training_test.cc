// Training on a text: it learns, resumes to the same bits, and its folder is a model.
#include "heed/train/character_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "heed/core/error.h"
#include "heed/distributed/thread_ranks.h"
#include "heed/train/token_loss.h"
#include "support/command.h"
#include "support/refusal.h"

namespace heed::train { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::read_text;
using testing_support::Refuses;
using testing_support::TemporaryFolder;

// Records a run and ends it after a given step.
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
  EXPECT_THAT([&] { train_characters(wrong, text, {}, silent); }, Refuses("learning_rate", "-1"));
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

// Returns the losses of each step; `folder` keeps the run.
std::vector<double> losses_of_ranks(int size, const RunFolder& folder, std::int64_t last = 0) {
  const HeldOutText text = abc();
  std::vector<double> losses;
  run_thread_ranks(size, [&](Communicator& ranks) {
    Witness witness(last);
    CharacterTraining settings = tiny();
    settings.ranks = &ranks;
    train_characters(settings, text, folder, witness);
    EXPECT_EQ(witness.items_of_step, 4 * 8);
    if (ranks.rank() == 0) losses = witness.losses;
  });
  return losses;
}

TEST(TrainCharacters, RanksLearnWhatOneProcessLearns) {
  const TemporaryFolder folder;
  Witness alone(0);
  train_characters(tiny(), abc(), {}, alone);
  for (const int size : {2, 3, 5}) {  // the fifth rank has no sequence
    const std::string name = "ranks" + std::to_string(size);
    const std::vector<double> losses = losses_of_ranks(size, new_run(folder / name));
    ASSERT_EQ(losses.size(), alone.losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(losses[i], alone.losses[i], 1e-4) << size << ' ' << i;
    }
    losses_of_ranks(size, new_run(folder / (name + "again")));
    EXPECT_EQ(read_text(folder / (name + "/model.safetensors")),
              read_text(folder / (name + "again/model.safetensors")));
  }
}

TEST(TrainCharacters, RanksGoOnWithARunOfOtherRanks) {
  const TemporaryFolder folder;
  Witness alone(0);
  train_characters(tiny(), abc(), {}, alone);
  const RunFolder run = new_run(folder / "run");
  losses_of_ranks(3, run, 10);
  const std::vector<double> losses = losses_of_ranks(2, {run.path, true});
  ASSERT_EQ(losses.size(), 30U);
  EXPECT_NEAR(losses.back(), alone.losses.back(), 1e-4);
}

// Sequences of three segments of 1024, 1024 and 52 tokens.
CharacterTraining long_sequences(const std::string& positions = "rotary") {
  return {{.steps = 4, .batch = 2, .learning_rate = 0.01},
          {.context = 2100, .layers = 1, .d_model = 8, .heads = 2, .positions = positions}};
}

HeldOutText long_text() {
  std::string text;
  for (int i = 0; text.size() < 2700; i = (7 * i + 3) % 101) {
    text += i % 3 == 0 ? "abcabd" : "dca";
  }
  return HeldOutText(text);
}

// Returns the losses of steps in which ranks share the tokens of each sequence.
std::vector<double> losses_of_divided(int size, CharacterTraining settings,
                                      const RunFolder& folder = {}, std::int64_t last = 0) {
  const HeldOutText text = long_text();
  std::vector<double> losses;
  run_thread_ranks(size, [&](Communicator& ranks) {
    Witness witness(last);
    CharacterTraining own = settings;
    own.ranks = &ranks;
    own.is_context_parallel = true;
    train_characters(own, text, folder, witness);
    EXPECT_EQ(witness.items_of_step, own.training.batch * 2100);
    if (ranks.rank() == 0) losses = witness.losses;
  });
  return losses;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 2e-5) << i;
}

TEST(TrainCharacters, RanksShareTheTokensOfLongSequences) {
  const TemporaryFolder folder;
  Witness alone(0);
  train_characters(long_sequences(), long_text(), {}, alone);
  ASSERT_EQ(alone.losses.size(), 4U);
  for (const int size : {1, 2, 3, 4}) {  // the fourth rank has no token
    SCOPED_TRACE(size);
    const std::string name = "ranks" + std::to_string(size);
    expect_near(losses_of_divided(size, long_sequences(), new_run(folder / name)), alone.losses);
    losses_of_divided(size, long_sequences(), new_run(folder / (name + "again")));
    EXPECT_EQ(read_text(folder / (name + "/model.safetensors")),
              read_text(folder / (name + "again/model.safetensors")));
  }
}

TEST(TrainCharacters, RanksShareTheTokensOfWhatIsMeasured) {
  CharacterTraining settings = long_sequences();
  settings.training.steps = 1;
  const HeldOutText text = long_text();
  RunObserver silent;
  const CharacterRun run = train_characters(settings, text, {}, silent);
  const CharacterLosses alone = losses_on(run.model, text);
  run_thread_ranks(4, [&](Communicator& ranks) {
    CharacterTraining own = settings;
    own.ranks = &ranks;
    own.is_context_parallel = true;
    RunObserver silent_too;
    const CharacterLosses losses =
        losses_on(train_characters(own, text, {}, silent_too).model, text, ranks);
    EXPECT_NEAR(losses.learned.loss.value().mean, alone.learned.loss.value().mean, 1e-5);
    EXPECT_EQ(losses.learned.loss->sequences, 1);
    ASSERT_EQ(losses.held_out.size(), 3U);
    EXPECT_FALSE(losses.held_out[0].loss);  // 270 characters are held out
  });
}

TEST(TrainCharacters, TokensAreSharedWithAllKindsOfPositions) {
  for (const std::string& positions : models::position_names()) {
    SCOPED_TRACE(positions);
    CharacterTraining settings = long_sequences(positions);
    settings.training.steps = 2;
    settings.training.batch = 1;
    settings.model.mask = "sliding_window(1500, 0)";
    Witness alone(0);
    train_characters(settings, long_text(), {}, alone);
    expect_near(losses_of_divided(2, settings), alone.losses);
  }
}

TEST(TrainCharacters, ARunGoesOnHoweverTokensAreShared) {
  const TemporaryFolder folder;
  Witness alone(0);
  train_characters(long_sequences(), long_text(), {}, alone);
  const RunFolder run = new_run(folder / "run");
  std::vector<double> losses = losses_of_divided(3, long_sequences(), run, 1);
  const auto add = [&](const std::vector<double>& more) {
    losses.insert(losses.end(), more.begin(), more.end());
  };
  add(losses_of_divided(2, long_sequences(), {run.path, true}, 2));
  run_thread_ranks(2, [&](Communicator& ranks) {  // ranks share the batch instead
    Witness witness(3);
    CharacterTraining settings = long_sequences();
    settings.ranks = &ranks;
    train_characters(settings, long_text(), {run.path, true}, witness);
    if (ranks.rank() == 0) add(witness.losses);
  });
  Witness last(0);
  train_characters({}, long_text(), {run.path, true}, last);
  add(last.losses);
  expect_near(losses, alone.losses);
}

TEST(TrainCharacters, WhatOneRankThrowsWhileTokensAreSharedAllThrow) {
  run_thread_ranks(2, [](Communicator& ranks) {
    RunObserver silent;
    CharacterTraining settings = long_sequences();
    settings.ranks = &ranks;
    settings.is_context_parallel = ranks.rank() == 0;
    EXPECT_THAT([&] { train_characters(settings, long_text(), {}, silent); },
                ThrowsMessage<InvalidArgument>(HasSubstr("rank 1 has other settings")));
    // A token that occurs on rank 1 only and that the model does not know.
    models::CausalTransformer model({.vocab_size = 2, .context = 2100, .d_model = 8, .heads = 2});
    tasks::TokenBatch batch{Tensor<std::int64_t>({1, 2100}), Tensor<std::int64_t>({1, 2100})};
    batch.inputs(0, 1500) = 2;
    EXPECT_THAT([&] { run_on_all(ranks, [&] { token_loss(model, batch, ranks); }); },
                ThrowsMessage<InvalidArgument>(
                    HasSubstr("rank 1: embedding: token id 2 is not in the table of 2")));
  });
}

TEST(TrainCharacters, RanksThatDifferAreRefusedByAll) {
  run_thread_ranks(3, [](Communicator& ranks) {
    RunObserver silent;
    CharacterTraining settings = tiny();
    settings.ranks = &ranks;
    if (ranks.rank() == 2) settings.training.learning_rate = 0.02;
    EXPECT_THAT([&] { train_characters(settings, abc(), {}, silent); },
                ThrowsMessage<InvalidArgument>(
                    HasSubstr("rank 2 has other settings, or another text, than rank 0")));
    if (ranks.rank() == 1) settings.model.heads = 3;
    EXPECT_THAT([&] { train_characters(settings, abc(), {}, silent); },
                ThrowsMessage<InvalidArgument>(HasSubstr("rank 1: ")));
    EXPECT_THAT(
        [&] {
          train_characters(settings, abc(), {"/nowhere", true}, silent);
        },
        ThrowsMessage<std::runtime_error>(HasSubstr("rank 0: ")));
  });
}

TEST(ShareOfBatch, TheFirstRanksHaveOneMore) {
  EXPECT_EQ(share_of_batch(7, nullptr).count, 7);
  for (const int size : {1, 3, 9}) {
    std::vector<std::int64_t> first(static_cast<std::size_t>(size)), count(first);
    run_thread_ranks(size, [&](Communicator& ranks) {
      const BatchShare share = share_of_batch(7, &ranks);
      first[static_cast<std::size_t>(ranks.rank())] = share.first;
      count[static_cast<std::size_t>(ranks.rank())] = share.count;
    });
    std::int64_t next = 0;
    for (std::size_t rank = 0; rank < first.size(); ++rank) {
      EXPECT_EQ(first[rank], next);
      EXPECT_GE(count[rank], 7 / size);
      EXPECT_LE(count[rank], 7 / size + 1);
      next += count[rank];
    }
    EXPECT_EQ(next, 7);
    EXPECT_GE(count[0], 1);
  }
}

}  // namespace
}  // namespace heed::train
