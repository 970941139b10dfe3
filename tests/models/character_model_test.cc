// Character models read from files, and the errors of invalid files.
#include "heed/models/character_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/nn/state_file.h"
#include "support/command.h"
#include "support/refusal.h"

namespace heed::models { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::Refuses;
using testing_support::TemporaryFolder;

constexpr const char* kSettings =
    R"({"task":"lm","characters":"abc","model":{"vocab_size":3,"context":8,"layers":1,)"
    R"("d_model":8,"heads":2,"positions":"learned"}})";

CausalConfig config() {
  return {
      .vocab_size = 3, .context = 8, .layers = 1, .d_model = 8, .heads = 2, .positions = "learned"};
}

// Returns a file of a model with these settings besides its parameters.
std::string saved(const TemporaryFolder& folder, const std::string& settings) {
  set_seed(1);
  CausalTransformer model(config());
  std::string path = folder / "model.safetensors";
  nn::save(path, model, {{"settings", settings}});
  return path;
}

TEST(CharacterModel, WritesWhatItsTransformerWrites) {
  const TemporaryFolder folder;
  saved(folder, kSettings);
  const CharacterModel loaded = load_character_model(folder / "");
  EXPECT_EQ(loaded.config.positions, "learned");
  EXPECT_EQ(loaded.characters.all(), "abc");
  set_seed(1);
  CausalTransformer same(config());
  const std::vector<std::int32_t> prompt{1, 0};
  std::string expected;
  for (const auto id : continue_text(same, prompt, {.tokens = 20, .context = 8, .seed = 7})) {
    expected += loaded.characters[id];
  }
  EXPECT_EQ(continue_text(loaded, "ba", {.tokens = 20, .seed = 7}), expected);
  EXPECT_EQ(likeliest_text(loaded, "ba", {.tokens = 20}),
            continue_text(loaded, "ba", {.tokens = 20, .temperature = 0}));
  EXPECT_THAT([&] { continue_text(loaded, "bad"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("the character 'd' did not occur")));
}

TEST(CharacterModel, FilesThatDoNotFitAreNamed) {
  const TemporaryFolder folder;
  const auto expect_refused = [&](const std::string& settings, const std::string& problem) {
    const std::string path = saved(folder, settings);
    EXPECT_THAT(
        [&] { load_character_model(path); },
        ThrowsMessage<std::runtime_error>(testing::AllOf(HasSubstr(path), HasSubstr(problem))));
  };
  std::string copy = kSettings;
  copy.replace(copy.find("\"lm\""), 4, "\"copy\"");
  expect_refused(copy, "is of `heed train copy`, expected `heed train lm`");
  std::string fewer = kSettings;
  fewer.replace(fewer.find("\"abc\""), 5, "\"ab\"");
  expect_refused(fewer, "has 2 characters for a vocabulary of 3");
  std::string odd = kSettings;
  odd.replace(odd.find("\"d_model\":8"), 11, "\"d_model\":9");
  expect_refused(odd, "d_model is 9, expected a multiple of heads, 2");
  expect_refused("[]", "does not hold the settings of a model of heed");
}

// A program uses member names, a user of the command option names.
TEST(CausalConfig, ErrorsNameMembersOrOptions) {
  CausalConfig wrong = config();
  wrong.d_model = 0;
  EXPECT_THAT([&] { check_config(wrong); }, Refuses("d_model", "0"));
  EXPECT_THAT([&] { check_config(wrong, SettingNames::kOptions); },
              ThrowsMessage<InvalidArgument>("--d-model is 0, expected 1 to 1024"));
  wrong = config();
  wrong.positions = "somewhere";
  EXPECT_THAT([&] { check_config(wrong); }, Refuses("positions", "'somewhere'"));
  wrong = config();
  wrong.mask = "causal &";
  EXPECT_THAT([&] { check_config(wrong); }, ThrowsMessage<InvalidArgument>(HasSubstr("mask: ")));
  EXPECT_NO_THROW(check_config(config()));
}

}  // namespace
}  // namespace heed::models
