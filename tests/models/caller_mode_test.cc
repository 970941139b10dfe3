// What models compute does not depend on the floating-point mode of the caller.
#include "support/caller_mode.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "attention/bits/hash.h"
#include "heed/core/random.h"
#include "heed/models/causal_transformer.h"
#include "heed/models/generate.h"
#include "heed/models/model.h"
#include "heed/models/text_writer.h"
#include "support/tiny_model.h"

namespace heed::models::caller_mode { namespace {

using bits::Hash;

template <class Numbers>
std::uint64_t hash_of(const Numbers& numbers) {
  Hash hash;
  for (const auto number : numbers) hash.add_number(number);
  return hash.value();
}

TEST(CallerMode, ChangesNoTrainedModel) {
  const testing_support::TinyModel folder(Family::kLlama);
  const Model model = load(folder.folder());
  static const std::vector<std::int64_t> ids{1, 5, 3, 2, 7, 4, 6};
  expect_no_influence_of_the_caller({
      {"logits",
       [&] {
         const Tensor<float> logits = model.logits(model.forward(Inputs::of(ids)));
         return hash_of(logits.elements());
       }},
      {"generate",
       [&] {
         const Generated found = generate(
             model, ids,
             {.max_tokens = 12, .sampling = {.temperature = 0.7, .top_p = 0.9}, .seed = 3});
         return hash_of(found.ids);
       }},
      {"mean_loss",
       [&] {
         Hash hash;
         hash.add_number(mean_loss(model, ids));
         return hash.value();
       }},
  });
}

TEST(CallerMode, ChangesNoModelOfHeedsOwn) {
  set_seed(1);
  CausalTransformer model({.vocab_size = 11,
                           .context = 12,
                           .layers = 2,
                           .d_model = 16,
                           .heads = 2,
                           .positions = position_names().back()});
  static const std::vector<std::int32_t> prompt{3, 1, 4};
  expect_no_influence_of_the_caller({
      {"continue_text",
       [&] { return hash_of(continue_text(model, prompt, {.tokens = 30, .context = 12})); }},
      {"likeliest_text",
       [&] {
         return hash_of(likeliest_text(model, prompt, {.beam = 3, .tokens = 9, .context = 12}));
       }},
  });
}

}  // namespace
}  // namespace heed::models::caller_mode
