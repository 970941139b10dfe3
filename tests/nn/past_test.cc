// Texts that a decoder has read: shared where they are equal, and freed when they are dropped.
#include "heed/nn/past.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "support/refusal.h"
#include "support/tensors.h"

namespace heed::nn { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::normal;
using testing_support::Refuses;
using testing_support::same_bits;

constexpr std::int64_t kLayers = 2;
constexpr std::int64_t kPage = 16;

KvConfig config() {
  return {.num_kv_heads = 2, .head_dim = 4, .page_size = kPage, .max_pages = 40};
}

// Appends n positions to every text, different for each.
void append(Past& past, std::int64_t n, std::uint32_t seed) {
  for (std::int64_t layer = 0; layer < past.num_layers(); ++layer) {
    for (KvSequence& text : past.layer(layer)) {
      text.append(normal<float>({2, n, 4}, seed), normal<float>({2, n, 4}, seed + 1));
      seed += 2;
    }
  }
}

Tensor<float> keys(const Past& past, std::int64_t layer, std::size_t text) {
  return past.layer(layer)[text].dequantised().key;
}

TEST(Past, PickedTextsShareTheirPagesUntilTheyAreWrittenTo) {
  KvPool pool(config());
  Past past(pool, kLayers);
  EXPECT_EQ(past.num_layers(), kLayers);
  EXPECT_EQ(past.num_texts(), 1);
  EXPECT_EQ(past.length(), 0);
  append(past, kPage + 1, 1);
  EXPECT_EQ(pool.pages_in_use(), 2 * kLayers);

  past = past.picked(std::vector<std::int64_t>{0, 0, 0});
  EXPECT_EQ(past.num_texts(), 3);
  EXPECT_EQ(past.length(), kPage + 1);
  EXPECT_EQ(pool.pages_in_use(), 2 * kLayers);
  append(past, 1, 100);
  EXPECT_EQ(pool.pages_in_use(), (1 + 3) * kLayers);

  // Keeps the last text twice and the second not at all.
  const Tensor<float> first = keys(past, 1, 0);
  const Tensor<float> last = keys(past, 1, 2);
  past = past.picked(std::vector<std::int64_t>{2, 0, 2});
  EXPECT_EQ(pool.pages_in_use(), (1 + 2) * kLayers);
  EXPECT_TRUE(same_bits(keys(past, 1, 0), last));
  EXPECT_TRUE(same_bits(keys(past, 1, 1), first));
  EXPECT_TRUE(same_bits(keys(past, 1, 2), last));
  append(past, 1, 200);
  EXPECT_EQ(pool.pages_in_use(), (1 + 3) * kLayers);

  past = past.picked({});
  EXPECT_EQ(past.num_texts(), 0);
  EXPECT_EQ(pool.pages_in_use(), 0);
  EXPECT_THAT([&] { (void)past.length(); }, ThrowsMessage<InvalidArgument>(HasSubstr("no text")));
}

TEST(Past, ACopyGoesOnAlone) {
  KvPool pool(config());
  Past past(pool, kLayers);
  append(past, 5, 1);
  const Tensor<float> before = keys(past, 0, 0);
  {
    Past copy = past;
    append(copy, 3, 9);
    EXPECT_EQ(copy.length(), 8);
    copy = past;
    EXPECT_EQ(copy.length(), 5);
  }
  EXPECT_EQ(past.length(), 5);
  EXPECT_TRUE(same_bits(keys(past, 0, 0), before));
  EXPECT_EQ(pool.pages_in_use(), kLayers);
  past.truncate(2);
  EXPECT_EQ(past.length(), 2);
  const Past moved = std::move(past);
  EXPECT_EQ(moved.length(), 2);
}

TEST(Past, RefusesWhatDoesNotFit) {
  KvPool pool(config());
  EXPECT_THAT([&] { Past(pool, 0); }, ThrowsMessage<InvalidArgument>(HasSubstr("no layers")));
  EXPECT_THAT([&] { Past(std::vector<KvSequence>{}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("no layers")));
  std::vector<KvSequence> layers;
  layers.emplace_back(pool);
  layers.emplace_back(pool);
  layers.back().append(normal<float>({2, 3, 4}, 1), normal<float>({2, 3, 4}, 2));
  EXPECT_THAT([&] { Past{std::move(layers)}; },
              ThrowsMessage<InvalidArgument>(HasSubstr("layers have 0 and 3 positions")));
  Past past(pool, kLayers);
  for (const std::int64_t text : {-1, 1}) {
    EXPECT_THAT(
        [&] {
          (void)past.picked(std::vector<std::int64_t>{0, text});
        },
        ThrowsMessage<InvalidArgument>(HasSubstr("Past::picked: a text is")));
  }
  EXPECT_THAT([&] { (void)past.layer(kLayers); }, Refuses("index", "2"));
  EXPECT_EQ(past.length(), 0);
}

}  // namespace
}  // namespace heed::nn
