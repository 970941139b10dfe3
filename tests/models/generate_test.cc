#include "heed/models/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/cancellation.h"
#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "support/refusal.h"
#include "support/tensors.h"
#include "support/tiny_model.h"

namespace heed { namespace {

using models::choose_token;
using models::EndReason;
using models::GenerateOptions;
using testing::HasSubstr;
using testing_support::Refuses;
using testing_support::TinyModel;

constexpr float kHidden = -std::numeric_limits<float>::infinity();

// Returns how often each token is chosen.
std::map<std::int64_t, int> counts(std::span<const float> logits,
                                   const models::Sampling& sampling) {
  TorchGenerator random(1);
  std::map<std::int64_t, int> counts;
  for (int i = 0; i < 4000; ++i) ++counts[choose_token(logits, sampling, random)];
  return counts;
}

TEST(ChooseToken, TakesTheLikeliestAtTemperatureZeroAndTheFirstOfEqualOnes) {
  TorchGenerator random(0);
  EXPECT_EQ(choose_token(std::vector<float>{1, 3, 2, 3}, {}, random), 1);
  EXPECT_EQ(choose_token(std::vector<float>{kHidden, -5}, {}, random), 1);
}

TEST(ChooseToken, DrawsByTheSoftmax) {
  const std::vector<float> logits{std::log(1.0F), std::log(3.0F), kHidden, std::log(4.0F)};
  const auto drawn = counts(logits, {.temperature = 1});
  EXPECT_EQ(drawn.count(2), 0U);
  EXPECT_NEAR(drawn.at(0), 500, 120);
  EXPECT_NEAR(drawn.at(1), 1500, 160);
  EXPECT_NEAR(drawn.at(3), 2000, 160);
}

TEST(ChooseToken, TemperatureDividesTheLogits) {
  const std::vector<float> logits{0, std::log(2.0F)};
  // The probabilities are 1/5 and 4/5, because the temperature doubles the logits.
  EXPECT_NEAR(counts(logits, {.temperature = 0.5}).at(0), 800, 130);
}

TEST(ChooseToken, TopKAndTopPKeepTheLikeliest) {
  const std::vector<float> logits{std::log(0.4F), std::log(0.1F), std::log(0.3F), std::log(0.2F)};
  EXPECT_EQ(counts(logits, {.temperature = 1, .top_k = 2}).size(), 2U);
  EXPECT_EQ(counts(logits, {.temperature = 1, .top_k = 1}).size(), 1U);
  EXPECT_EQ(counts(logits, {.temperature = 1, .top_k = 9}).size(), 4U);
  EXPECT_EQ(counts(logits, {.temperature = 1, .top_p = 0.39}).size(), 1U);
  EXPECT_EQ(counts(logits, {.temperature = 1, .top_p = 0.5}).size(), 2U);
  EXPECT_EQ(counts(logits, {.temperature = 1, .top_p = 0.95}).size(), 4U);
}

TEST(ChooseToken, MinPKeepsWhatIsLikelyBesideTheLikeliest) {
  const std::vector<float> logits{std::log(0.4F), std::log(0.1F), std::log(0.3F), std::log(0.2F)};
  EXPECT_EQ(counts(logits, {.temperature = 1, .min_p = 0.24}).size(), 4U);
  EXPECT_EQ(counts(logits, {.temperature = 1, .min_p = 0.26}).size(), 3U);
  EXPECT_EQ(counts(logits, {.temperature = 1, .min_p = 0.6}).size(), 2U);
  EXPECT_EQ(counts(logits, {.temperature = 1, .min_p = 1}).size(), 1U);
  // At the temperature 2 the ratios are square roots.
  EXPECT_EQ(counts(logits, {.temperature = 2, .min_p = 0.51}).size(), 3U);
  EXPECT_EQ(counts(logits, {.temperature = 1, .top_k = 3, .top_p = 0.99, .min_p = 0.6}).size(), 2U);
}

// Sorts all candidates, the most likely first, drops the excluded ones, and draws in one pass.
std::int64_t chosen_plainly(const std::vector<float>& logits, const models::Sampling& sampling,
                            double drawn) {
  std::vector<std::pair<double, std::int64_t>> candidates;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    candidates.emplace_back(-std::exp(static_cast<double>(logits[i]) / sampling.temperature), i);
  }
  std::sort(candidates.begin(), candidates.end());
  if (sampling.top_k > 0) candidates.resize(static_cast<std::size_t>(sampling.top_k));
  double total = 0;
  for (const auto& [negated, token] : candidates) total -= negated;
  std::size_t kept = 0;
  double sum = 0;
  while (sum < sampling.top_p * total) sum -= candidates[kept++].first;
  double left = drawn * sum;
  for (std::size_t i = 0; i < kept; ++i) {
    left += candidates[i].first;
    if (left < 0) return candidates[i].second;
  }
  return candidates[kept - 1].second;
}

TEST(ChooseToken, OfManyTokensIsAsIfAllWereSorted) {
  const Tensor<float> drawn_logits = testing_support::normal<float>({3000}, 1);
  const std::vector<float> logits(drawn_logits.data(), drawn_logits.data() + 3000);
  for (const models::Sampling& sampling :
       {models::Sampling{.temperature = 1}, models::Sampling{.temperature = 5},
        models::Sampling{.temperature = 1, .top_k = 700},
        models::Sampling{.temperature = 1, .top_p = 0.9},
        models::Sampling{.temperature = 0.1, .top_k = 2999, .top_p = 0.999}}) {
    TorchGenerator random(7);
    TorchGenerator same(7);
    for (int i = 0; i < 50; ++i) {
      Tensor<double> drawn(Shape{1});
      same.uniform(drawn.view());
      EXPECT_EQ(choose_token(logits, sampling, random), chosen_plainly(logits, sampling, drawn(0)));
    }
  }
}

TEST(ChooseToken, RefusesWhatMeansNothing) {
  TorchGenerator random(0);
  const auto choose = [&](const std::vector<float>& logits, const models::Sampling& sampling) {
    return [&random, logits, sampling] { choose_token(logits, sampling, random); };
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(choose({1, nan}, {}),
              testing::ThrowsMessage<InvalidArgument>(HasSubstr("logits[1] is NaN")));
  EXPECT_THAT(choose({kHidden}, {}),
              testing::ThrowsMessage<InvalidArgument>(HasSubstr("no logit is above -infinity")));
  EXPECT_THAT(choose({1}, {.temperature = -1}), Refuses("temperature", "-1"));
  EXPECT_THAT(choose({1}, {.top_k = -1}), Refuses("top_k", "-1"));
  EXPECT_THAT(choose({1}, {.top_p = 0}), Refuses("top_p", "0"));
  EXPECT_THAT(choose({1}, {.min_p = 1.5}), Refuses("min_p", "1.5"));
}

class Generation : public testing::Test {
 protected:
  TinyModel files_{models::Family::kLlama};
  models::Model model_ = models::load(files_.folder());
};

TEST_F(Generation, WritesTheLikeliestTokens) {
  const std::vector<std::int64_t> prompt{5, 9};
  const models::Generated text = generate(model_, prompt, {.max_tokens = 6});
  ASSERT_LE(text.ids.size(), 6U);
  std::vector<std::int64_t> ids = prompt;
  for (const std::int64_t id : text.ids) {
    const Tensor<float> logits = model_.logits(model_.forward(models::Inputs::of(ids)));
    const float* const last = logits.data() + logits.num_elements() - 40;
    EXPECT_EQ(std::max_element(last, last + 40) - last, id);
    ids.push_back(id);
  }
  EXPECT_EQ(model_.tokenizer().decode(prompt) + text.text, model_.tokenizer().decode(ids));
  EXPECT_EQ(text.prompt_tokens, 2);
}

TEST_F(Generation, ShowsTheTextAsItComesAndStopsWhereItIsTold) {
  const GenerateOptions options{.max_tokens = 12, .sampling = {.temperature = 1}, .seed = 3};
  const models::Generated whole = generate(model_, "w1 w2", options);
  ASSERT_GT(whole.text.size(), 8U);
  std::string shown;
  GenerateOptions watched = options;
  watched.on_text = [&](std::string_view piece) {
    shown += piece;
    return true;
  };
  EXPECT_EQ(generate(model_, "w1 w2", watched).text, whole.text);
  EXPECT_EQ(shown, whole.text);

  GenerateOptions stopped = options;
  stopped.stop = {whole.text.substr(5, 2)};
  const models::Generated first = generate(model_, "w1 w2", stopped);
  EXPECT_EQ(first.reason, EndReason::kStopText);
  EXPECT_EQ(first.text, whole.text.substr(0, whole.text.find(stopped.stop[0])));

  GenerateOptions ended = options;
  ended.on_text = [](std::string_view) { return false; };
  const models::Generated once = generate(model_, "w1 w2", ended);
  EXPECT_EQ(once.reason, EndReason::kCaller);
  EXPECT_EQ(once.ids.size(), 1U);
}

// Returns a tokenizer of 40 tokens, some of them bytes, like those of SentencePiece.
std::string fallback_tokenizer(std::size_t num_tokens = 40) {
  std::string json = R"({"added_tokens": [{"id": 0, "content": "<s>", "special": true}],
      "decoder": {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
        {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
      "model": {"type": "BPE", "byte_fallback": true, "merges": [], "vocab": {"<s>": 0)";
  const std::vector<std::string> first{"▁", "a", "▁b", "ab", "<0xE7>", "<0x8C>", "<0xAB>", "猫"};
  for (std::size_t i = 1; i < num_tokens; ++i) {
    const std::string token = i <= first.size() ? first[i - 1] : "▁t" + std::to_string(i);
    json += ", \"" + token + "\": " + std::to_string(i);
  }
  return json + "}}}";
}

std::string joined_pieces(const models::Model& model, const std::vector<std::int64_t>& prompt,
                          GenerateOptions options) {
  std::string shown;
  options.on_text = [&](std::string_view piece) {
    shown += piece;
    return true;
  };
  EXPECT_EQ(generate(model, prompt, options).text, shown);
  return shown;
}

TEST_F(Generation, TheTextIsThatOfAllTokensAfterThePrompts) {
  files_.write("tokenizer.json", fallback_tokenizer());
  const models::Model model = models::load(files_.folder());
  const std::vector<std::int64_t> prompt{0, 3};
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const GenerateOptions options{.max_tokens = 40, .sampling = {.temperature = 9}, .seed = seed};
    const models::Generated whole = generate(model, prompt, options);
    std::vector<std::int64_t> ids = prompt;
    ids.insert(ids.end(), whole.ids.begin(), whole.ids.end());
    EXPECT_EQ("b" + whole.text, model.tokenizer().decode(ids));
    EXPECT_EQ(joined_pieces(model, prompt, options), whole.text);
  }
}

// Independent of how tokens split the stop texts.
TEST_F(Generation, StopTextsAreFoundAcrossTokens) {
  files_.write("tokenizer.json", fallback_tokenizer());
  const models::Model model = models::load(files_.folder());
  const std::vector<std::int64_t> prompt{0, 3};
  GenerateOptions options{.max_tokens = 40, .sampling = {.temperature = 9}, .seed = 4};
  const std::string whole = generate(model, prompt, options).text;
  ASSERT_GT(whole.size(), 40U);
  for (std::size_t begin = 0; begin + 9 < whole.size(); ++begin) {
    for (const std::size_t size : {1, 4, 9}) {
      options.stop = {"no such text", whole.substr(begin, size)};
      EXPECT_EQ(joined_pieces(model, prompt, options),
                whole.substr(0, whole.find(options.stop[1])));
    }
  }
  // Of two stop texts that begin at different positions, the one that is complete first ends the
  // text.
  options.stop = {whole.substr(2, 9), whole.substr(4, 2)};
  EXPECT_EQ(joined_pieces(model, prompt, options), whole.substr(0, whole.find(options.stop[1])));
}

TEST_F(Generation, TokensThatTheTokenizerLacksStandForNoText) {
  files_.write("tokenizer.json", fallback_tokenizer(9));
  const models::Model model = models::load(files_.folder());
  const models::Generated text =
      generate(model, std::vector<std::int64_t>{20, 3}, {.max_tokens = 30, .sampling = {9}});
  EXPECT_GT(*std::max_element(text.ids.begin(), text.ids.end()), 8);
  std::vector<std::int64_t> known{3};
  std::copy_if(text.ids.begin(), text.ids.end(), std::back_inserter(known),
               [](std::int64_t id) { return id < 9; });
  EXPECT_EQ("b" + text.text, model.tokenizer().decode(known));
}

// Requests cancellation after a number of polls.
class StopAt final : public Cancellation {
 public:
  explicit StopAt(int poll) : left_(poll) {}
  void poll() noexcept override {
    if (--left_ == 0) request();
  }
  int left() const { return left_; }

 private:
  std::atomic<int> left_;
};

TEST_F(Generation, StopsWhileThePromptIsRead) {
  const ThreadLimit one(1);
  const std::vector<std::int64_t> prompt(60, 5);
  StopAt never(1'000'000);
  {
    const CancellationScope scope(&never);
    generate(model_, prompt, {.max_tokens = 0});
  }
  const int polls = 1'000'000 - never.left();
  EXPECT_GE(polls, 10) << "it hardly ever looks";
  StopAt halfway(polls / 2);
  const CancellationScope scope(&halfway);
  EXPECT_THROW(generate(model_, prompt, {.max_tokens = 0}), Cancelled);
}

TEST_F(Generation, EndsWhereTheModelsPositionsEnd) {
  const std::vector<std::int64_t> prompt(62, 5);
  GenerateOptions options{.sampling = {.temperature = 3}, .seed = 1};
  const models::Generated text = generate(model_, prompt, options);
  EXPECT_THAT(text.reason, testing::AnyOf(EndReason::kContextFull, EndReason::kEndToken));
  EXPECT_LE(text.ids.size(), 3U);
}

TEST_F(Generation, TheSameSeedWritesTheSameText) {
  GenerateOptions options{.max_tokens = 10, .sampling = {.temperature = 2}, .seed = 5};
  const auto a = generate(model_, "w7", options);
  EXPECT_EQ(generate(model_, "w7", options).ids, a.ids);
  options.seed = 6;
  EXPECT_NE(generate(model_, "w7", options).ids, a.ids);
}

TEST_F(Generation, BiasAndPenaltyChangeTheLogits) {
  const std::vector<std::int64_t> prompt{5, 9};
  const models::Generated plain = generate(model_, prompt, {.max_tokens = 1});
  ASSERT_EQ(plain.ids.size(), 1U);
  const std::int64_t other = plain.ids[0] == 20 ? 21 : 20;
  EXPECT_EQ(generate(model_, prompt, {.max_tokens = 1, .logit_bias = {{other, 1e6}}}).ids[0],
            other);
  EXPECT_NE(generate(model_, prompt, {.max_tokens = 1, .logit_bias = {{plain.ids[0], -1e6}}}).ids,
            plain.ids);
  // A penalty beyond all measure lets no token come twice, as long as the logits of others are
  // greater.
  const models::Generated varied =
      generate(model_, prompt, {.max_tokens = 12, .repetition_penalty = 1e6});
  std::vector<std::int64_t> ids = varied.ids;
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
}

TEST_F(Generation, FurtherTokensEndTheText) {
  const std::vector<std::int64_t> prompt{5, 9};
  const models::Generated whole = generate(model_, prompt, {.max_tokens = 6});
  ASSERT_GT(whole.ids.size(), 2U);
  const models::Generated ended =
      generate(model_, prompt, {.max_tokens = 6, .end_ids = {whole.ids[2]}});
  EXPECT_EQ(ended.reason, EndReason::kEndToken);
  EXPECT_LE(ended.ids.size(), 2U);
}

TEST_F(Generation, LogProbabilitiesAreThoseOfTheModel) {
  const std::vector<std::int64_t> prompt{5, 9};
  const models::Generated text =
      generate(model_, prompt,
               {.max_tokens = 5, .sampling = {.temperature = 3}, .seed = 2, .log_probs = true});
  ASSERT_EQ(text.log_probs.size(), text.ids.size());
  std::vector<std::int64_t> ids = prompt;
  for (std::size_t i = 0; i < text.ids.size(); ++i) {
    const Tensor<float> logits = model_.logits(model_.forward(models::Inputs::of(ids)));
    const float* const last = logits.data() + logits.num_elements() - 40;
    double sum = 0;
    for (int id = 0; id < 40; ++id) sum += std::exp(static_cast<double>(last[id]));
    EXPECT_NEAR(text.log_probs[i], static_cast<double>(last[text.ids[i]]) - std::log(sum), 1e-5);
    ids.push_back(text.ids[i]);
  }
  EXPECT_TRUE(generate(model_, prompt, {.max_tokens = 2}).log_probs.empty());
}

TEST_F(Generation, AKeptTextIsNotReadAgain) {
  std::vector<std::int64_t> prompt{5, 9, 7, 11};
  models::KeptText kept;
  const GenerateOptions options{.max_tokens = 6, .kept = &kept};
  const models::Generated first = generate(model_, prompt, options);
  EXPECT_EQ(first.kept_tokens, 0);
  EXPECT_EQ(first.ids, generate(model_, prompt, {.max_tokens = 6}).ids);
  EXPECT_EQ(kept.ids.size(), prompt.size() + first.ids.size());
  // A text from the same prompt: only its last token is read.
  EXPECT_EQ(generate(model_, prompt, options).ids, first.ids);
  EXPECT_EQ(generate(model_, prompt, options).kept_tokens, 3);
  // One that goes on, and one that begins otherwise.
  prompt.insert(prompt.end(), first.ids.begin(), first.ids.end());
  prompt.insert(prompt.end(), {13, 14});
  const models::Generated next = generate(model_, prompt, options);
  EXPECT_EQ(next.kept_tokens, static_cast<std::int64_t>(prompt.size()) - 2);
  EXPECT_EQ(next.ids, generate(model_, prompt, {.max_tokens = 6}).ids);
  prompt[2] = 8;
  const models::Generated changed = generate(model_, prompt, options);
  EXPECT_EQ(changed.kept_tokens, 2);
  EXPECT_EQ(changed.ids, generate(model_, prompt, {.max_tokens = 6}).ids);
  models::Seal seal;
  EXPECT_THAT([&] { generate(model_, prompt, {.seal = &seal, .kept = &kept}); },
              testing::ThrowsMessage<InvalidArgument>(HasSubstr("begins with no kept text")));
  kept.ids.pop_back();
  EXPECT_THAT([&] { generate(model_, prompt, {.kept = &kept}); },
              testing::ThrowsMessage<InvalidArgument>(HasSubstr("not of this model")));
}

TEST_F(Generation, IdsWithoutATokenAreDrawnAndStandForNoText) {
  auto tokenizer = nlohmann::json::parse(files_.read("tokenizer.json"));
  auto& vocabulary = tokenizer["model"]["vocab"];
  for (int id = 20; id < 40; ++id) vocabulary.erase("w" + std::to_string(id - 4));
  files_.write("tokenizer.json", tokenizer.dump());
  const models::Model model = models::load(files_.folder());
  std::size_t num_unknown = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const GenerateOptions options{.max_tokens = 9, .sampling = {.temperature = 50}, .seed = seed};
    const models::Generated text = generate(model, "w1 w2", options);
    std::vector<std::int64_t> known = model.tokenizer().ids("w1 w2");
    const auto prompt_size = known.size();
    std::copy_if(text.ids.begin(), text.ids.end(), std::back_inserter(known),
                 [](std::int64_t id) { return id < 20; });
    EXPECT_EQ("w1 w2" + text.text, model.tokenizer().decode(known));
    EXPECT_EQ(text.ids, generate(model_, "w1 w2", options).ids);
    num_unknown += text.ids.size() - (known.size() - prompt_size);
  }
  EXPECT_GT(num_unknown, 5U);
}

TEST_F(Generation, RefusesWhatMeansNothing) {
  const std::vector<std::int64_t> nothing;
  EXPECT_THAT([&] { generate(model_, nothing); },
              testing::ThrowsMessage<InvalidArgument>(HasSubstr("prompt has no tokens")));
  const std::vector<std::int64_t> longest(65, 5);
  EXPECT_THAT([&] { check_generate(model_, longest, {}); }, Refuses("prompt", "65"));
  EXPECT_THAT([&] { generate(model_, "w1", {.max_tokens = -1}); }, Refuses("max_tokens", "-1"));
  EXPECT_THAT([&] { generate(model_, "w1", {.stop = {""}}); },
              testing::ThrowsMessage<InvalidArgument>(HasSubstr("a stop text is empty")));
  EXPECT_THAT([&] { generate(model_, "w1", {.repetition_penalty = 0}); },
              Refuses("repetition_penalty", "0"));
  EXPECT_THAT(
      [&] {
        generate(model_, "w1", {.logit_bias = {{40, 1}}});
      },
      Refuses("logit_bias", "40"));
  const TinyModel encoder(models::Family::kBert);
  const models::Model bert = models::load(encoder.folder());
  EXPECT_THAT([&] { generate(bert, "w1"); },
              testing::ThrowsMessage<InvalidArgument>(HasSubstr("BertModel does not write")));
}

}  // namespace

}  // namespace heed
