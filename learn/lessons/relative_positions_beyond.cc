// The lesson relative-positions: beyond the training length, and the learned parameters of each
// kind.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <numbers>
#include <span>
#include <string_view>

#include "heed/attention/position.h"
#include "heed/attention/relative_position.h"
#include "heed/attention/rotary_frequencies.h"
#include "heed/attention/statistics.h"
#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/models/causal_transformer.h"
#include "lessons/numbers.h"
#include "lessons/relative_positions.h"

namespace heed::learn::relative_positions_lesson {

void show_beyond_table(Report& report, const std::vector<Kind>& kinds) {
  constexpr std::array<std::size_t, 6> kShown{kTrained - 1, kTrained,     3 * kTrained / 2,
                                              2 * kTrained, 4 * kTrained, kLongest - 1};
  report.say("{}", head_of(kShown));
  auto rows = nlohmann::json::array();
  for (const Kind& kind : kinds) {
    const auto scores = kind.scores(kind.ends ? kTrained - 1 : kLongest - 1);
    report.say("{}", line_of(kind.name, scores, kShown));
    rows.push_back({{"positions", kind.name}, {"scores", scores}});
  }
  report.record("beyond", rows);
  report.say();
}

void show_end(Report& report) {
  TorchGenerator generator(0);
  const auto table = learned_encoding(generator, kTrained, kWidth);
  try {
    add_positions(Tensor<float>({kTrained + 1, kWidth}), table);
  } catch (const InvalidArgument& error) {
    report.record("refusal", error.what());
    report.item("learned: position {} has no vector. {}", kTrained, error.what());
  }
}

// Returns, for each bucket, the smallest distance to a key before the query that uses it.
std::vector<std::int64_t> beginnings(const RelativeBuckets& buckets) {
  std::vector<std::int64_t> first;
  std::int64_t previous = -1;
  for (std::int64_t distance = 0; distance <= buckets.reach(); ++distance) {
    if (buckets(-distance) == previous) continue;
    previous = buckets(-distance);
    first.push_back(distance);
  }
  return first;
}

void show_saturation(Report& report) {
  const auto t5 = beginnings(RelativeBuckets::t5(32, 128, false));
  const auto clip = beginnings(RelativeBuckets::clip(kClipped));
  report.record("t5_beginnings", t5);
  report.record("clip_beginnings", clip);
  report.item(
      "t5, clip, shaw: all far keys have one entry, from distance {} on with clip and shaw, and "
      "with t5 from {} on (its entries begin at {}). So every score is one that training has seen, "
      "and says the same of all far keys.",
      clip.back(), t5.back(), fmt::join(t5, ", "));
}

double turns(double frequency, std::int64_t distance) {
  return static_cast<double>(distance) * frequency / (2 * std::numbers::pi);
}

void show_angles(Report& report) {
  constexpr LinearScaling kScaling{static_cast<double>(kLongest) / kTrained};
  const auto frequencies = rotary_frequencies(kWidth).inv_freq;
  const auto scaled = rotary_frequencies(kWidth, 10000, kScaling).inv_freq;
  std::int64_t first_slow = 0;
  while (turns(frequencies(first_slow), kTrained - 1) >= 1) ++first_slow;
  const double trained = turns(frequencies(first_slow), kTrained - 1);
  const double longest = turns(frequencies(first_slow), kLongest - 1);
  const double interpolated = turns(scaled(first_slow), kLongest - 1);
  report.record("turns", {{"first_slow", first_slow},
                          {"trained", trained},
                          {"longest", longest},
                          {"interpolated", interpolated}});
  report.item(
      "sinusoidal, rotary: the equations go on, but {} of the {} pairs have not turned round once "
      "at distance {}. Pair {} has made {:.2f} turns there and makes {:.2f} up to distance {}, by "
      "angles that training never had. The scalings of rotary_frequencies() make them smaller "
      "again: "
      "with its frequency divided by {} (LinearScaling) it makes {:.2f} turns on the whole way.",
      frequencies.extent(0) - first_slow, frequencies.extent(0), kTrained - 1, first_slow, trained,
      longest, kLongest - 1, kScaling.factor, interpolated);
}

// Returns the part of the weights that the last of kLongest queries gives to the nearest kTrained
// keys, if all keys have the same content.
double share_of_near_keys(DoubleView slope) {
  const Tensor<double> nothing({1, 1, kLongest, 1});
  const AttentionRow last{0, 0, kLongest - 1};
  const auto weights = attention_weights(nothing, nothing, std::span(&last, 1),
                                         {.mask = causal(), .alibi_slopes = slope});
  double sum = 0;
  for_each_element(weights.view().slice(1, kLongest - kTrained, kLongest),
                   [&sum](double weight) { sum += weight; });
  return sum;
}

void show_decay(Report& report) {
  const auto slopes = alibi_slopes<double>(kHeads);
  std::vector<double> shares;
  std::vector<std::string> texts;
  for (std::int64_t head = 0; head < kHeads; ++head) {
    shares.push_back(share_of_near_keys(slopes.view().slice(0, head, head + 1)));
    texts.push_back(fmt::format("{:.1f} % (slope {})", 100 * shares.back(), slopes(head)));
  }
  report.record("alibi_slopes", slopes);
  report.record("alibi_near", shares);
  report.item(
      "alibi: goes on along the same line, to scores lower than any in training. Of {} keys alike "
      "in content, the nearest {} get {} of the weight: steep heads hardly notice that there are "
      "more.",
      kLongest, kTrained, fmt::join(texts, ", "));
}

void show_beyond(Report& report, const std::vector<Kind>& kinds) {
  report.step("Beyond the length of training");
  report.paragraph("A model trained on {} tokens has seen distances up to {}. Asked at {}:",
                   kTrained, kTrained - 1, kLongest);
  report.say();
  show_beyond_table(report, kinds);
  show_end(report);
  show_saturation(report);
  show_angles(report);
  show_decay(report);
}

std::int64_t num_parameters(const std::string& positions, std::int64_t context) {
  return models::CausalTransformer({.vocab_size = 64, .context = context, .positions = positions})
      .num_parameters();
}

void show_parameters(Report& report) {
  const models::CausalConfig settings;
  report.step("What is learned");
  report.paragraph(
      "Parameters that positions add to the model of `heed train lm`, with {} layers of {} heads "
      "and width {}, counted in its layers, for a context of {} and of {}:",
      settings.layers, settings.heads, settings.d_model, kTrained, kLongest);
  report.say();
  report.say("  {:<11} {:>8} {:>8}   {}", "positions", kTrained, kLongest, "learned");
  struct Learned {
    std::string positions;
    std::string_view what;
  };
  auto rows = nlohmann::json::array();
  for (const Learned& learned : {Learned{"none", "nothing"},
                                 {"sinusoidal", "nothing: a formula"},
                                 {"learned", "a vector per position: context · width"},
                                 {"rotary", "nothing: angles are given"},
                                 {"alibi", "nothing: slopes are given"},
                                 {"t5", "a number per head and bucket, in each layer"},
                                 {"shaw", "two vectors per bucket, in each layer"},
                                 {"clip", "a number per head and bucket, in each layer"}}) {
    const auto added = [&learned](std::int64_t context) {
      return num_parameters(learned.positions, context) - num_parameters("none", context);
    };
    const std::int64_t trained = added(kTrained);
    const std::int64_t longest = added(kLongest);
    report.say("  {:<11} {:>8} {:>8}   {}", learned.positions, grouped(trained), grouped(longest),
               learned.what);
    rows.push_back({{"positions", learned.positions}, {"trained", trained}, {"longest", longest}});
  }
  report.record("parameters", rows);
  report.say();
  report.paragraph("Only learned encodings grow with the length that is asked for.");
}

}  // namespace heed::learn::relative_positions_lesson
