// A translator that is trained, saved in a folder and loaded again.
#include "heed/train/translator_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "heed/core/error.h"
#include "heed/train/translator_scores.h"
#include "support/command.h"
#include "support/refusal.h"

namespace heed::train { namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;
using testing_support::read_text;
using testing_support::Refuses;
using testing_support::TemporaryFolder;

TranslationSettings tiny_reversal() {
  TranslationSettings settings;
  settings.training.batch = 16;
  settings.epochs = {.epochs = 2, .patience = 0};
  settings.corpus = {.task = "reverse", .max_length = 3, .examples = 64, .held_out = 8};
  settings.model = {.attention = "dot", .d_model = 8, .dropout = 0};
  return settings;
}

class Lines final : public RunObserver {
 public:
  void say(const std::string& line) override { text += line + '\n'; }
  std::string text;
};

TEST(TrainTranslator, KeepsTheBestEpochInItsFolder) {
  const TemporaryFolder folder;
  const tasks::Corpus corpus = make_corpus(tiny_reversal().corpus);
  Translator translator = new_translator(tiny_reversal(), corpus);
  EXPECT_EQ(translator.settings.training.steps, 2 * 4);
  const RunFolder run_folder = new_run(folder / "run");
  write_description(run_folder.path, translator);
  Lines lines;
  const TranslationRun run =
      train_translator(translator, corpus, {run_folder, folder / "log", "tiny"}, lines);
  EXPECT_TRUE(run.outcome.is_finished);
  ASSERT_EQ(run.epochs.size(), 2U);
  EXPECT_EQ(run.times.size(), 2U);
  EXPECT_THAT(lines.text, StartsWith("tiny  epoch 1/2  loss "));
  EXPECT_THAT(read_text(folder / "log"), HasSubstr("\"is_best\":true"));
  Translator loaded = load_translator(run_folder.path);
  EXPECT_EQ(score(loaded, corpus.validation).bleu.score, run.epochs[run.best].bleu);
  write_description(run_folder.path, translator);  // the same description exists
  translator.settings.training.seed += 1;
  EXPECT_THAT([&] { write_description(run_folder.path, translator); },
              ThrowsMessage<IoError>(HasSubstr("holds 'settings.json' already")));
}

TEST(TranslationSettings, ErrorsNameMembersOrOptions) {
  TranslationSettings wrong = tiny_reversal();
  wrong.corpus.max_length = 0;
  EXPECT_THAT([&] { check_settings(wrong); }, Refuses("max_length", "0"));
  EXPECT_THAT([&] { check_settings(wrong, SettingNames::kOptions); },
              ThrowsMessage<InvalidArgument>("--max-length is 0, expected 1 to 1000"));
  wrong = tiny_reversal();
  wrong.model.d_model = 7;
  EXPECT_THAT([&] { check_settings(wrong); }, Refuses("d_model", "7"));
}

}  // namespace
}  // namespace heed::train
