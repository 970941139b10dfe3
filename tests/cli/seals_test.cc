// --seal, --seal-file and --verify of `heed generate` and `heed embed`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/models/model.h"
#include "heed/models/seal.h"
#include "support/command.h"
#include "support/tiny_model.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing_support::CommandResult;
using testing_support::read_text;
using testing_support::run_command;
using testing_support::TemporaryFolder;
using testing_support::TinyModel;

using Arguments = std::vector<std::string>;

// The last line of a text, without its line break.
std::string last_line(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

class SealedVerbs : public testing::Test {
 protected:
  CommandResult generate(const Arguments& more, const std::string& prompt = "w1 w2") const {
    Arguments arguments{"generate", "--model", llama_.folder(), "--tokens", "8"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.push_back(prompt);
    return run_command(arguments);
  }
  CommandResult embed(const Arguments& more) const {
    Arguments arguments{"embed", "--model", bert_.folder()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_command(arguments);
  }
  std::string seal() const { return last_line(generate({"--seal"}).out); }

  TinyModel llama_{models::Family::kLlama};
  TinyModel bert_{models::Family::kBert};
};

TEST_F(SealedVerbs, TheLastLineIsTheSealAndItIsReproduced) {
  const CommandResult plain = generate({});
  const CommandResult sealed = generate({"--seal"});
  ASSERT_EQ(sealed.exit_code, 0) << sealed.err;
  const std::string seal = last_line(sealed.out);
  EXPECT_EQ(sealed.out, plain.out + seal + '\n');
  EXPECT_EQ(models::parse_seal(seal).model, models::load(llama_.folder()).sha256().substr(0, 16));
  const CommandResult verified = generate({"--verify", seal});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out, StartsWith(plain.out + "reproduced: the logits of all "));
  EXPECT_THAT(verified.out, Not(HasSubstr("heed1:")));
}

TEST_F(SealedVerbs, ASealMayBeInAFile) {
  const TemporaryFolder folder;
  const std::string path = folder / "text.seal";
  const CommandResult sealed = generate({"--seal-file", path});
  ASSERT_EQ(sealed.exit_code, 0) << sealed.err;
  EXPECT_THAT(sealed.out, Not(HasSubstr("heed1:")));
  EXPECT_EQ(read_text(path), seal() + '\n');
  EXPECT_EQ(generate({"--verify", "@" + path}).exit_code, 0);
  const CommandResult both = generate({"--verify", "@" + path, "--seal-file", path});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("--verify and --seal-file name the same file"));
  EXPECT_EQ(generate({"--verify", "@" + (folder / "none")}).exit_code, 1);
}

TEST_F(SealedVerbs, WhatDiffersIsNamedBeforeAnythingIsComputed) {
  const std::string expected = seal();
  const auto refused = [&](const CommandResult& result, const std::string& problem) {
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err,
                AllOf(StartsWith("heed generate: not reproduced: "), HasSubstr(problem)));
  };
  refused(generate({"--verify", expected}, "w1 w3"), "another input: the tokens of the prompt");
  refused(generate({"--verify", expected, "--temperature", "0.7", "--seed", "4"}),
          "temperature is 0.7, in the seal 0.8; another option: seed is 4, in the seal 0");
  refused(generate({"--verify", expected, "--stop", "w9"}), "the hash of the stop texts");
  llama_.write("tokenizer_config.json", "{}");
  refused(generate({"--verify", expected}), "another model: the SHA-256 of its files begins with");
}

// A seal as of a machine that computes other logits for the token 2.
TEST_F(SealedVerbs, TheFirstTokenThatDiffersIsNamed) {
  models::Seal other = models::parse_seal(seal());
  ASSERT_GE(other.steps.size(), 8U);
  other.steps[4] = other.steps[4] == 'A' ? 'B' : 'A';
  const CommandResult result = generate({"--verify", to_string(other)});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, AllOf(StartsWith("w1 w2"), Not(HasSubstr("reproduced"))));
  EXPECT_THAT(result.err, HasSubstr("not reproduced: the logits differ from token 2 on, of "));
  const CommandResult as_json = generate({"--verify", to_string(other), "--json"});
  EXPECT_EQ(as_json.exit_code, 1);
  const nlohmann::json json = nlohmann::json::parse(as_json.out);
  EXPECT_EQ(json.at("seal"), seal());
  EXPECT_EQ(json.at("reproduced"), false);
  ASSERT_EQ(json.at("differences").size(), 1U);
  EXPECT_EQ(json.at("differences")[0].at("part"), "logits");
  EXPECT_EQ(json.at("differences")[0].at("index"), 2);
}

TEST_F(SealedVerbs, JsonHasTheSeal) {
  const CommandResult sealed = generate({"--seal", "--json"});
  const nlohmann::json json = nlohmann::json::parse(sealed.out);
  EXPECT_EQ(json.at("seal"), seal());
  EXPECT_FALSE(json.contains("reproduced"));
  const nlohmann::json verified =
      nlohmann::json::parse(generate({"--verify", seal(), "--json"}).out);
  EXPECT_EQ(verified.at("reproduced"), true);
  EXPECT_EQ(verified.at("differences"), nlohmann::json::array());
  EXPECT_FALSE(nlohmann::json::parse(generate({"--json"}).out).contains("seal"));
}

TEST_F(SealedVerbs, WhatIsNoSealIsAMisuse) {
  const std::string good = seal();
  const auto misused = [&](const CommandResult& result, const std::string& problem) {
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(problem));
  };
  misused(generate({"--verify", "x"}), "--verify: this is no seal: it begins with 'x'");
  misused(generate({"--verify", good.substr(0, good.size() - 3)}), "--verify: this is no seal: ");
  misused(generate({"--verify", good + "A"}), "characters were changed");
  misused(embed({"w1", "--verify", good}), "--verify: the seal is one of `heed generate`");
  const TemporaryFolder folder;
  std::ofstream(folder / "long") << std::string(30'000'000, 'A');
  misused(generate({"--verify", "@" + (folder / "long")}), "expected at most");
  const std::string run = folder / "run";
  ASSERT_EQ(run_command({"train", "copy", "--steps", "1", "--save", run}).exit_code, 0);
  misused(run_command({"generate", "--model", run, "--seal", "a"}),
          "--seal goes with folders of transformers and GGUF files");
}

TEST_F(SealedVerbs, VectorsAreSealedAndTextsThatDifferAreNamed) {
  const CommandResult sealed = embed({"--seal", "w1 w2", "w3", "w4"});
  ASSERT_EQ(sealed.exit_code, 0) << sealed.err;
  const std::string seal = last_line(sealed.out);
  EXPECT_THAT(seal, HasSubstr(":pool=mean:"));
  const CommandResult same = embed({"--verify", seal, "w1 w2", "w3", "w4"});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_EQ(last_line(same.out), "reproduced: all 3 vectors");
  const CommandResult other = embed({"--verify", seal, "w1 w2", "w3", "w5"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr("not reproduced: another input: the texts are not those"));
  models::Seal changed = models::parse_seal(seal);
  changed.steps = "AAAA" + changed.steps.substr(4);
  const CommandResult differing =
      embed({"--verify", to_string(changed), "--json", "w1 w2", "w3", "w4"});
  EXPECT_EQ(differing.exit_code, 1);
  EXPECT_THAT(differing.err, AllOf(HasSubstr("the vector of text 0 differs, of 3"),
                                   HasSubstr("the vector of text 1 differs, of 3")));
  EXPECT_EQ(nlohmann::json::parse(differing.out).at("differences").size(), 2U);
  const TemporaryFolder folder;
  const std::string path = folder / "v.npy";
  const CommandResult twice = embed({"--out", path, "--seal-file", path, "w1"});
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.err, HasSubstr("name the same file"));
}

}  // namespace
}  // namespace heed
