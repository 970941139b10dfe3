// A model that remembers what it has read writes what it writes when it reads all of it again.
#include "train/language_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/tensors.h"
#include "train/causal_model.h"

namespace heed::cli {
namespace {

using testing_support::max_difference;

constexpr std::int64_t kContext = 12;

ModelSettings sizes(const char* positions) {
  return {.vocab_size = 11,
          .context = kContext,
          .layers = 2,
          .d_model = 16,
          .heads = 2,
          .positions = positions};
}

TEST(CausalModel, ContinuesWhatItHasRead) {
  const nn::NoGrad no_grad;
  const std::vector<std::int64_t> ids{3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
  for (const char* positions : {"none", "sinusoidal", "learned"}) {
    CausalModel model(sizes(positions));
    model.eval();
    const nn::Variable<> all = model.forward({ids.data(), {1, 10}});
    Past past = model.make_past();
    std::int64_t first = 0;
    for (const std::int64_t last : {4, 5, 6, 10}) {
      const nn::Variable<> part = model.continued(past, {ids.data() + first, {1, last - first}});
      const auto expected = to_tensor(all.value().slice(1, first, last));
      EXPECT_LT(max_difference(to_tensor(part.value()), expected), 1e-5) << positions;
      first = last;
    }
  }
}

// The likeliest tokens, as a model finds them that reads the last `seen` again for each.
TEST(LanguageModel, WritesWhatItWouldWithoutMemory) {
  const nn::NoGrad no_grad;
  for (const char* positions : {"none", "sinusoidal", "learned"}) {
    CausalModel model(sizes(positions));
    const std::vector<std::int32_t> prompt{3, 1, 4};
    const auto found =
        continued(model, prompt, {.tokens = 30, .temperature = 0, .context = kContext});
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

}  // namespace
}  // namespace heed::cli
