// A model that keeps its past writes the tokens that it writes when it reads all of the text again.
#include "heed/models/causal_transformer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heed/attention/mask_text.h"
#include "heed/core/random.h"
#include "heed/models/text_writer.h"
#include "heed/nn/search.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed::models { namespace {

using testing_support::max_difference;
using testing_support::Refuses;

constexpr std::int64_t kContext = 12;

CausalConfig sizes(const std::string& positions) {
  return {.vocab_size = 11,
          .context = kContext,
          .layers = 2,
          .d_model = 16,
          .heads = 2,
          .positions = positions};
}

TEST(CausalTransformer, ContinuesWhatItHasRead) {
  const nn::NoGrad no_grad;
  const std::vector<std::int64_t> ids{3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
  for (const std::string& positions : position_names()) {
    CausalTransformer model(sizes(positions));
    model.eval();
    const nn::Variable<> all = model.forward({ids.data(), {1, 10}});
    nn::Past past = model.make_past();
    std::int64_t first = 0;
    for (const std::int64_t last : {4, 5, 6, 10}) {
      const nn::Variable<> part = model.continued(past, {ids.data() + first, {1, last - first}});
      const auto expected = to_tensor(all.value().slice(1, first, last));
      EXPECT_LT(max_difference(to_tensor(part.value()), expected), 1e-5) << positions;
      first = last;
    }
  }
}

// A model of two layers and two heads of eight dimensions.
TEST(CausalTransformer, TablesOfPositionsAreParameters) {
  const std::int64_t without = CausalTransformer(sizes("none")).num_parameters();
  const std::map<std::string, std::int64_t> more{
      {"none", 0},  {"sinusoidal", 0},  {"learned", kContext * 16}, {"rotary", 0},
      {"alibi", 0}, {"t5", 2 * 2 * 32}, {"shaw", 2 * 2 * 65 * 8},   {"clip", 2 * 2 * 65}};
  for (const std::string& positions : position_names()) {
    EXPECT_EQ(CausalTransformer(sizes(positions)).num_parameters() - without, more.at(positions))
        << positions;
  }
}

TEST(CausalTransformer, SeesWhatItsMaskShows) {
  const nn::NoGrad no_grad;
  const std::vector<std::int64_t> ids{3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
  const std::vector<std::int64_t> other{7, 1, 4, 1, 5, 9, 2, 6, 5, 3};
  for (const char* mask : {"sliding_window(2, 5)", "random_blocks(1, 3, 1, past)",
                           "streaming(1, 2, bottom_right) | columns(5)"}) {
    CausalConfig settings = sizes("sinusoidal");
    settings.layers = 1;
    settings.mask = mask;
    CausalTransformer model(settings);
    model.eval();
    const nn::Variable<> all = model.forward({ids.data(), {1, 10}});
    nn::Past past = model.make_past();
    for (std::int64_t i = 0; i < 10; ++i) {
      const nn::Variable<> part = model.continued(past, {ids.data() + i, {1, 1}});
      EXPECT_LT(max_difference(to_tensor(part.value()), to_tensor(all.value().slice(1, i, i + 1))),
                1e-5)
          << mask << ' ' << i;
    }
    // The mask determines which later tokens see the first one.
    const nn::Variable<> changed = model.forward({other.data(), {1, 10}});
    const Mask shown = causal() & parse_mask(settings.mask);
    const auto allowed = materialize_allow(shown, {1, 2, 10, 10});
    for (std::int64_t q = 1; q < 10; ++q) {
      const bool is_seen = allowed(0, 0, q, 0) || allowed(0, 1, q, 0);
      EXPECT_EQ(max_difference(to_tensor(changed.value().slice(1, q, q + 1)),
                               to_tensor(all.value().slice(1, q, q + 1))) > 0,
                is_seen)
          << mask << ' ' << q;
    }
  }
}

// Returns the most likely tokens of a model that reads the last `seen` tokens again for each token.
TEST(LanguageModel, WritesWhatItWouldWithoutMemory) {
  const nn::NoGrad no_grad;
  for (const std::string& positions : position_names()) {
    CausalTransformer model(sizes(positions));
    const std::vector<std::int32_t> prompt{3, 1, 4};
    const auto found =
        continue_text(model, prompt, {.tokens = 30, .temperature = 0, .context = kContext});
    std::vector<std::int64_t> expected(prompt.begin(), prompt.end());
    std::int64_t seen = 3;
    for (int i = 0; i < 30; ++i, ++seen) {
      if (seen > kContext) seen = kContext / 2;
      const std::int64_t* first = expected.data() + expected.size() - seen;
      const nn::Variable<> logits = model.forward({first, {1, seen}});
      const FloatView last = logits.value().select(0, 0).select(0, seen - 1);
      const auto best = std::max_element(last.elements().begin(), last.elements().end());
      expected.push_back(best - last.elements().begin());
    }
    expected.erase(expected.begin(), expected.begin() + 3);
    EXPECT_EQ(found, expected) << positions;
  }
}

// Reads the last `seen` tokens of each text again for each token.
class RereadingWriter : public nn::Writer<float> {
 public:
  RereadingWriter(CausalTransformer& model, const std::vector<std::int32_t>& prompt)
      : model_(model), texts_{{prompt.begin(), prompt.end()}} {
    seen_ = std::min<std::int64_t>(static_cast<std::int64_t>(prompt.size()), kContext);
    model.eval();
  }

  nn::ReservedTokens reserved() const override { return {}; }
  std::int64_t num_targets() const override { return static_cast<std::int64_t>(texts_.size()); }
  nn::NextScores<float> begin() override { return read(); }
  nn::NextScores<float> go_on(std::span<const nn::NextToken> next) override {
    std::vector<std::vector<std::int64_t>> texts;
    for (const auto& [target, token] : next) {
      texts.push_back(texts_.at(static_cast<std::size_t>(target)));
      texts.back().push_back(token);
    }
    texts_ = std::move(texts);
    if (++seen_ > kContext) seen_ = kContext / 2;
    return read();
  }

 private:
  nn::NextScores<float> read() {
    Tensor<float> logits({num_targets(), 11});
    for (std::int64_t i = 0; i < num_targets(); ++i) {
      const auto& text = texts_[static_cast<std::size_t>(i)];
      const nn::Variable<> all = model_.forward({text.data() + text.size() - seen_, {1, seen_}});
      const auto last = all.value().select(0, 0).select(0, seen_ - 1).elements();
      std::copy(last.begin(), last.end(), &logits(i, 0));
    }
    return {nn::Variable<>(std::move(logits)), {}};
  }

  CausalTransformer& model_;
  std::vector<std::vector<std::int64_t>> texts_;
  std::int64_t seen_ = 0;
};

TEST(TextWriter, SearchesWhatItWouldWithoutMemory) {
  set_seed(3);
  for (const std::string& positions : position_names()) {
    CausalTransformer model(sizes(positions));
    for (const auto& prompt : {std::vector<std::int32_t>{3}, std::vector<std::int32_t>{3, 1, 4},
                               std::vector<std::int32_t>(15, 7)}) {
      RereadingWriter greedy(model, prompt);
      const auto likeliest = nn::greedy_search(greedy, {.max_len = 20}).front().tokens;
      EXPECT_EQ(likeliest_text(model, prompt, {.beam = 1, .tokens = 20, .context = kContext}),
                likeliest);
      EXPECT_EQ(continue_text(model, prompt, {.tokens = 20, .temperature = 0, .context = kContext}),
                likeliest);
      for (const std::int64_t beam : {2, 5, 15}) {
        RereadingWriter rereading(model, prompt);
        const auto expected = nn::beam_search(rereading, {.beam = beam, .max_len = 20});
        TextWriter writer(model, prompt, kContext);
        const auto found = nn::beam_search(writer, {.beam = beam, .max_len = 20});
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
          EXPECT_EQ(found[i].tokens, expected[i].tokens) << positions << ", beam " << beam;
          EXPECT_NEAR(found[i].log_probability, expected[i].log_probability, 1e-4);
        }
      }
    }
  }
}

TEST(TextWriter, GivesItsPagesBack) {
  CausalTransformer model(sizes("learned"));
  KvConfig cache = model.cache_config();
  cache.page_size = 16;
  cache.max_pages = 6;
  KvPool pool(cache);
  const std::vector<std::int32_t> prompt{3, 1, 4};
  const auto write = [&](std::int64_t beam) {
    TextWriter writer(model, prompt, kContext, model.make_past(pool));
    return nn::beam_search(writer, {.beam = beam, .max_len = 30}).size();
  };
  EXPECT_EQ(write(3), 3);  // one page per layer and text
  EXPECT_EQ(pool.free_pages(), 6);
  EXPECT_THROW(write(4), OutOfPages);
  EXPECT_EQ(pool.free_pages(), 6);
}

TEST(CausalTransformer, ReadsInAllLayersOrInNone) {
  CausalTransformer model(sizes("learned"));
  KvConfig cache = model.cache_config();
  cache.max_pages = 1;
  KvPool pool(cache);
  nn::Past past = model.make_past(pool);
  const std::vector<std::int64_t> ids(kContext + 1, 2);
  EXPECT_THROW(model.continued(past, {ids.data(), {1, 3}}), OutOfPages);
  EXPECT_EQ(pool.pages_in_use(), 0);
  nn::Past other = model.make_past();
  EXPECT_THAT(
      [&] {
        model.continued(other, {ids.data(), {1, kContext + 1}});
      },
      Refuses("max_len", "12"));
  EXPECT_EQ(other.length(), 0);
}

TEST(TextWriter, RefusesWhatItCannotRead) {
  CausalTransformer model(sizes("learned"));
  EXPECT_THAT([&] { likeliest_text(model, {}, {.context = kContext}); },
              testing::ThrowsMessage<InvalidArgument>(testing::HasSubstr("the prompt is empty")));
  const std::vector<std::int32_t> prompt{1};
  for (const std::int64_t context : {std::int64_t{0}, kContext + 1}) {
    EXPECT_THAT([&] { likeliest_text(model, prompt, {.context = context}); },
                testing::ThrowsMessage<InvalidArgument>(testing::HasSubstr("expected 1 to 12")));
  }
  EXPECT_TRUE(likeliest_text(model, prompt, {.tokens = 0, .context = 1}).empty());
  EXPECT_EQ(likeliest_text(model, prompt, {.beam = 2, .tokens = 5, .context = 1}).size(), 5);
}

}  // namespace
}  // namespace heed::models
