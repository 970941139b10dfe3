// Searches over a decoder that keeps keys and values find the results of searches that read every
// hypothesis again for each token, with less work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heed/attention/mask.h"
#include "heed/core/random.h"
#include "heed/nn/attention_layers.h"
#include "heed/nn/embedding_layers.h"
#include "heed/nn/past.h"
#include "heed/nn/search.h"
#include "support/refusal.h"

namespace heed::nn { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::Refuses;
using Ids = std::vector<std::int64_t>;

constexpr std::int64_t kVocabulary = 9;
constexpr std::int64_t kEmbedDim = 16;
constexpr std::int64_t kEnd = 4;
constexpr std::int64_t kNever = 0;
constexpr std::int64_t kLayers = 2;
constexpr std::int64_t kHeads = 2;

// Layers of causal attention that count the (query, key) pairs that they compute.
class Decoder : public Module<> {
 public:
  explicit Decoder(bool has_rotary) {
    AttentionConfig config{.embed_dim = kEmbedDim, .num_heads = kHeads};
    if (has_rotary) config.rotary = {.max_len = 200, .pairing = RotaryPairing::kHalves};
    config.mask = causal() & Mask::where([this](auto, auto, auto, auto) {
                    ++pairs_;
                    return true;
                  });
    for (std::int64_t i = 0; i < kLayers; ++i) {
      layers_.push_back(&make_module<MultiHeadAttention<>>("layer" + std::to_string(i), config));
    }
    eval();
  }

  // Maps ids [texts, length] to logits [texts, length, vocabulary].
  Variable<> forward(TensorView<const std::int64_t> ids) {
    Variable<> x = tokens_.forward(ids);
    for (auto* layer : layers_) x = x + layer->forward(x).out;
    return out_.forward(x);
  }
  Variable<> continued(Past& past, TensorView<const std::int64_t> ids) {
    Variable<> x = tokens_.forward(ids);
    for (std::int64_t i = 0; i < kLayers; ++i) {
      x = x + layers_[static_cast<std::size_t>(i)]->continued(past.layer(i), x);
    }
    return out_.forward(x);
  }

  KvConfig cache(std::int64_t page_size) const {
    return {.num_kv_heads = kHeads, .head_dim = kEmbedDim / kHeads, .page_size = page_size};
  }
  // Returns the pairs since the last call.
  std::int64_t pairs() { return pairs_.exchange(0); }
  std::string class_name() const override { return "Decoder"; }

 private:
  TokenEmbedding<>& tokens_ = make_module<TokenEmbedding<>>("tokens", kVocabulary, kEmbedDim);
  std::vector<MultiHeadAttention<>*> layers_;
  Linear<>& out_ = make_module<Linear<>>("out", kEmbedDim, kVocabulary);
  std::atomic<std::int64_t> pairs_{0};
};

Tensor<std::int64_t> side_by_side(const std::vector<Ids>& texts) {
  const auto count = static_cast<std::int64_t>(texts.size());
  Ids all;
  for (const Ids& text : texts) all.insert(all.end(), text.begin(), text.end());
  return {{count, static_cast<std::int64_t>(all.size()) / count}, all};
}

// Returns the scores of the token after the last; logits are [texts, length, vocabulary].
NextScores<float> last_of(const Variable<>& logits) {
  const std::int64_t length = logits.extent(1);
  return {reshape(slice(logits, 1, length - 1, length), {logits.extent(0), kVocabulary}), {}};
}

// The common part of both writers: the texts and the counts.
class CountingWriter : public Writer<float> {
 public:
  CountingWriter(Decoder& decoder, const Ids& prompt) : decoder_(decoder), texts_{prompt} {}

  ReservedTokens reserved() const override { return {kEnd, {kNever}}; }
  std::int64_t num_targets() const override { return static_cast<std::int64_t>(texts_.size()); }
  NextScores<float> begin() override { return counted(read_all(texts_)); }
  NextScores<float> go_on(std::span<const NextToken> next) override {
    std::vector<Ids> texts;
    Ids targets;
    for (const auto& [target, token] : next) {
      texts.push_back(texts_.at(static_cast<std::size_t>(target)));
      texts.back().push_back(token);
      targets.push_back(target);
    }
    texts_ = std::move(texts);
    return counted(read_last(targets, texts_));
  }

  // The work of one step: (query, key) pairs of all layers, and the length of each text.
  struct Work {
    std::int64_t pairs;
    std::int64_t length;
    std::int64_t texts;
  };
  const std::vector<Work>& work() const { return work_; }

 protected:
  Decoder& decoder() { return decoder_; }

 private:
  virtual Variable<> read_all(const std::vector<Ids>& texts) = 0;
  virtual Variable<> read_last(const Ids& targets, const std::vector<Ids>& texts) = 0;

  NextScores<float> counted(const Variable<>& logits) {
    work_.push_back(
        {decoder_.pairs(), static_cast<std::int64_t>(texts_.front().size()), num_targets()});
    return last_of(logits);
  }

  Decoder& decoder_;
  std::vector<Ids> texts_;
  std::vector<Work> work_;
};

class RereadingWriter : public CountingWriter {
 public:
  using CountingWriter::CountingWriter;

 private:
  Variable<> read_all(const std::vector<Ids>& texts) override {
    return decoder().forward(side_by_side(texts));
  }
  Variable<> read_last(const Ids&, const std::vector<Ids>& texts) override {
    return read_all(texts);
  }
};

class KeepingWriter : public CountingWriter {
 public:
  KeepingWriter(Decoder& decoder, const Ids& prompt, KvPool& pool)
      : CountingWriter(decoder, prompt), past_(pool, kLayers) {}

 private:
  Variable<> read_all(const std::vector<Ids>& texts) override {
    return decoder().continued(past_, side_by_side(texts));
  }
  Variable<> read_last(const Ids& targets, const std::vector<Ids>& texts) override {
    past_ = past_.picked(targets);
    Tensor<std::int64_t> last({num_targets(), 1});
    for (std::int64_t i = 0; i < num_targets(); ++i) {
      last(i, 0) = texts[static_cast<std::size_t>(i)].back();
    }
    return decoder().continued(past_, last);
  }

  Past past_;
};

void expect_same(const std::vector<Hypothesis<float>>& found,
                 const std::vector<Hypothesis<float>>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].tokens, expected[i].tokens);
    EXPECT_EQ(found[i].is_complete, expected[i].is_complete);
    // The projections' matrix products have other numbers of rows and may round differently.
    EXPECT_NEAR(found[i].log_probability, expected[i].log_probability, 1e-4);
    EXPECT_TRUE(found[i].alignment.empty());
  }
}

TEST(ForkedSearch, FindsWhatRereadingFinds) {
  bool has_ended = false;
  for (const bool has_rotary : {false, true}) {
    set_seed(has_rotary ? 7 : 8);
    Decoder decoder(has_rotary);
    KvPool pool(decoder.cache(16));
    for (const Ids& prompt : {Ids{3}, Ids{1, 5, 2, 8}, Ids(17, 6)}) {
      for (const std::int64_t max_len : {0, 1, 23}) {
        SCOPED_TRACE(testing::Message() << "prompt of " << prompt.size() << ", " << max_len);
        RereadingWriter rereading(decoder, prompt);
        KeepingWriter keeping(decoder, prompt, pool);
        const SearchOptions options{.max_len = max_len};
        expect_same(greedy_search(keeping, options), greedy_search(rereading, options));
        for (const std::int64_t beam : {1, 3, 12}) {
          SCOPED_TRACE(beam);
          RereadingWriter others(decoder, prompt);
          KeepingWriter forks(decoder, prompt, pool);
          const BeamOptions beams{.beam = beam, .max_len = max_len};
          const auto found = beam_search(forks, beams);
          expect_same(found, beam_search(others, beams));
          for (const auto& one : found) has_ended = has_ended || one.is_complete;
        }
      }
    }
    EXPECT_EQ(pool.pages_in_use(), 0);
  }
  EXPECT_TRUE(has_ended);
}

TEST(ForkedSearch, HasTheSameBitsOnPagesOfWhateverSize) {
  set_seed(1);
  Decoder decoder(true);
  const auto on_pages = [&](std::int64_t page_size) {
    KvPool pool(decoder.cache(page_size));
    KeepingWriter writer(decoder, {1, 5, 2}, pool);
    return beam_search(writer, {.beam = 5, .max_len = 40});
  };
  const auto found = on_pages(16);
  const auto expected = on_pages(128);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].tokens, expected[i].tokens);
    EXPECT_EQ(found[i].log_probability, expected[i].log_probability);
  }
}

// With a cache the cost of a token per text is a constant multiple of its length; without, it grows
// at least with half the square. Kernels evaluate the mask for whole vectors of queries, so the
// multiple is not exactly one per layer and head.
TEST(ForkedSearch, ATokenCostsTheLengthOfItsText) {
  set_seed(8);
  Decoder decoder(false);
  KvPool pool(decoder.cache(16));
  const Ids prompt{1, 5, 2};
  KeepingWriter keeping(decoder, prompt, pool);
  RereadingWriter rereading(decoder, prompt);
  const BeamOptions options{.beam = 3, .max_len = 60};
  ASSERT_EQ(beam_search(keeping, options).front().tokens,
            beam_search(rereading, options).front().tokens);
  ASSERT_EQ(keeping.work().size(), rereading.work().size());
  ASSERT_GT(keeping.work().size(), 20);
  const auto& first = keeping.work()[1];
  EXPECT_GE(first.pairs, kLayers * kHeads * first.texts * first.length);
  for (std::size_t i = 1; i < keeping.work().size(); ++i) {
    const auto& [pairs, length, texts] = keeping.work()[i];
    EXPECT_GT(pairs, 0);
    EXPECT_LE(pairs * first.texts * first.length, first.pairs * texts * length);
    EXPECT_GE(rereading.work()[i].pairs, kLayers * kHeads * texts * length * (length + 1) / 2);
  }
}

TEST(ForkedSearch, GivesPagesBackWhereTheyRunOut) {
  set_seed(8);
  Decoder decoder(false);
  KvConfig config = decoder.cache(16);
  config.max_pages = kLayers * 3;
  KvPool pool(config);
  KvSequence other(pool);
  const auto search = [&](std::int64_t max_len) {
    KeepingWriter writer(decoder, {1, 5, 2}, pool);
    return beam_search(writer, {.beam = 3, .max_len = max_len});
  };
  // Three texts that share nothing and need one page each.
  EXPECT_EQ(search(13).size(), 3);
  EXPECT_EQ(pool.free_pages(), config.max_pages);
  EXPECT_THROW(search(60), OutOfPages);
  EXPECT_EQ(pool.free_pages(), config.max_pages);
  EXPECT_EQ(other.length(), 0);
}

// Returns given scores one after the other: of the first token, the second, …
class ScriptedWriter : public Writer<double> {
 public:
  explicit ScriptedWriter(std::vector<Tensor<double>> script, std::int64_t num_targets = 1)
      : script_(std::move(script)), num_targets_(num_targets) {}

  ReservedTokens reserved() const override { return {kEnd, {kNever}}; }
  std::int64_t num_targets() const override { return num_targets_; }
  NextScores<double> begin() override { return {Variable<double>(script_.at(0)), {}}; }
  NextScores<double> go_on(std::span<const NextToken> next) override {
    asked_.emplace_back(next.begin(), next.end());
    return {Variable<double>(script_.at(asked_.size())), {}};
  }

  // Returns the requests of the search, step by step.
  const std::vector<std::vector<NextToken>>& asked() const { return asked_; }

 private:
  std::vector<std::vector<NextToken>> asked_;
  std::vector<Tensor<double>> script_;
  std::int64_t num_targets_;
};

TEST(Searches, EndAtOnceWhereTheEndIsLikeliest) {
  ScriptedWriter writer({Tensor<double>({1, 5}, {99, 1, 2, 3, 50})});
  const auto greedy = greedy_search(writer, {.max_len = 10});
  ASSERT_EQ(greedy.size(), 1);
  EXPECT_TRUE(greedy.front().tokens.empty());
  EXPECT_TRUE(greedy.front().is_complete);
  const auto beam = beam_search(writer, {.beam = 1, .max_len = 10});
  ASSERT_EQ(beam.size(), 1);
  EXPECT_TRUE(beam.front().tokens.empty());
  EXPECT_TRUE(beam.front().is_complete);
  EXPECT_TRUE(writer.asked().empty());
}

TEST(Searches, BeamSaysWhichHypothesesGoOn) {
  // The first token 3 is more likely than 2. After 3 all tokens are equally likely, so that 1 after
  // 2 overtakes them.
  ScriptedWriter writer({Tensor<double>({1, 4}, {0, 0, 4, 5}),
                         Tensor<double>({2, 4}, {0, 0, 0, 0, 0, 9, 0, 8}),
                         Tensor<double>({2, 4}, {0, 0, 0, 9, 0, 0, 0, 9})});
  const auto found = beam_search(writer, {.beam = 2, .max_len = 3});
  const auto told = [&](std::size_t step, std::size_t i) {
    return std::pair(writer.asked().at(step).at(i).target, writer.asked().at(step).at(i).token);
  };
  ASSERT_EQ(writer.asked().size(), 2);
  EXPECT_EQ(told(0, 0), std::pair(std::int64_t{0}, std::int64_t{3}));
  EXPECT_EQ(told(0, 1), std::pair(std::int64_t{0}, std::int64_t{2}));
  EXPECT_EQ(told(1, 0), std::pair(std::int64_t{1}, std::int64_t{1}));
  EXPECT_EQ(told(1, 1), std::pair(std::int64_t{0}, std::int64_t{1}));
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0].tokens, (Ids{2, 1, 3}));
  EXPECT_EQ(found[1].tokens, (Ids{3, 1, 3}));
}

TEST(Searches, RefuseWritersThatDoNotFit) {
  ScriptedWriter several({Tensor<double>({2, 5})}, 2);
  EXPECT_THAT([&] { beam_search(several); },
              ThrowsMessage<InvalidArgument>(HasSubstr("the writer begins 2 targets, expected 1")));
  EXPECT_EQ(greedy_search(several, {.max_len = 1}).size(), 2);
  ScriptedWriter wordless({Tensor<double>({1, 1})});
  EXPECT_THAT([&] { greedy_search(wordless); }, Refuses("vocabulary", "1"));
  EXPECT_THAT([&] { beam_search(wordless); }, Refuses("vocabulary", "1"));
}

}  // namespace
}  // namespace heed::nn
