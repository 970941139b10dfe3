// The lesson relative-positions: sinusoidal and rotary positions, worked out.
#include "lessons/relative_positions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "heed/attention/position.h"
#include "heed/attention/rotary.h"
#include "heed/core/random.h"
#include "heed/nn/functional.h"
#include "lessons/lesson.h"

namespace heed::learn {

namespace relative_positions_lesson {

double product(DoubleView a, DoubleView b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.extent(0); ++i) sum += a(i) * b(i);
  return sum;
}

// Returns Σ cos(distance · ωᵢ), which equals PE(m) · PE(m + distance).
double sum_of_cosines(DoubleView frequencies, std::int64_t distance) {
  double sum = 0;
  for (std::int64_t i = 0; i < frequencies.extent(0); ++i) {
    sum += std::cos(static_cast<double>(distance) * frequencies(i));
  }
  return sum;
}

void show_products(Report& report, DoubleView table, DoubleView frequencies) {
  constexpr std::array<std::int64_t, 4> kStarts{0, 10, 50, 200};
  report.say("  {:>8} {:>11} {:>11} {:>11} {:>11} {:>13}", "distance", "from 0", "from 10",
             "from 50", "from 200", "Σ cos(k ω_i)");
  auto rows = nlohmann::json::array();
  for (const std::int64_t k : {0, 1, 3, 10, 40}) {
    std::array<double, kStarts.size()> products{};
    std::transform(kStarts.begin(), kStarts.end(), products.begin(), [&](std::int64_t m) {
      return product(table.select(0, m), table.select(0, m + k));
    });
    const double formula = sum_of_cosines(frequencies, k);
    report.say("  {:>8} {:>11.6f} {:>11.6f} {:>11.6f} {:>11.6f} {:>13.6f}", k, products[0],
               products[1], products[2], products[3], formula);
    rows.push_back({{"distance", k}, {"products", products}, {"formula", formula}});
  }
  report.record("sinusoidal_products", rows);
}

double largest_error_of_products(DoubleView table, DoubleView frequencies) {
  double largest = 0;
  for (std::int64_t m = 0; m < table.extent(0); ++m) {
    for (std::int64_t n = m; n < table.extent(0); ++n) {
      const double found = product(table.select(0, m), table.select(0, n));
      largest = std::max(largest, std::abs(found - sum_of_cosines(frequencies, n - m)));
    }
  }
  return largest;
}

// A pair of dimensions as a point. Rotating it by `angle` advances the position.
struct Pair {
  double sine;
  double cosine;

  Pair turned(double angle) const {
    return {sine * std::cos(angle) + cosine * std::sin(angle),
            cosine * std::cos(angle) - sine * std::sin(angle)};
  }
};

Pair pair_of(DoubleView table, std::int64_t position, std::int64_t i) {
  return {table(position, 2 * i), table(position, 2 * i + 1)};
}

double largest_error_of_rotations(DoubleView table, DoubleView frequencies, std::int64_t shift) {
  double largest = 0;
  for (std::int64_t p = 0; p + shift < table.extent(0); ++p) {
    for (std::int64_t i = 0; i < frequencies.extent(0); ++i) {
      const Pair turned = pair_of(table, p, i).turned(static_cast<double>(shift) * frequencies(i));
      const Pair there = pair_of(table, p + shift, i);
      largest = std::max(
          {largest, std::abs(turned.sine - there.sine), std::abs(turned.cosine - there.cosine)});
    }
  }
  return largest;
}

void show_rotations(Report& report, DoubleView table, DoubleView frequencies) {
  constexpr std::int64_t kFrom = 5;
  constexpr std::int64_t kShift = 3;
  report.say("  {:>4} {:>7} {:>7} {:>18} {:>18} {:>18}", "pair", "ω_i", "angle",
             fmt::format("at {}", kFrom), "turned", fmt::format("at {}", kFrom + kShift));
  auto rows = nlohmann::json::array();
  for (const std::int64_t i : {0, 1, 4, 8}) {
    const double angle = kShift * frequencies(i);
    const Pair here = pair_of(table, kFrom, i);
    const Pair turned = here.turned(angle);
    const Pair there = pair_of(table, kFrom + kShift, i);
    const auto point = [](const Pair& pair) {
      return fmt::format("({:.4f}, {:.4f})", pair.sine, pair.cosine);
    };
    report.say("  {:>4} {:>7.4f} {:>7.4f} {:>18} {:>18} {:>18}", i, frequencies(i), angle,
               point(here), point(turned), point(there));
    rows.push_back({{"pair", i},
                    {"angle", angle},
                    {"turned", {turned.sine, turned.cosine}},
                    {"there", {there.sine, there.cosine}}});
  }
  const double error = largest_error_of_rotations(table, frequencies, kShift);
  report.record("rotations", rows);
  report.record("rotation_error", error);
  report.say();
  report.paragraph(
      "The angle depends on the shift alone. Over all {} positions and {} pairs the largest "
      "difference is {:.1e}.",
      table.extent(0), frequencies.extent(0), error);
}

// Shows the score in a layer, whose projections come between the two encodings.
void show_projected(Report& report) {
  constexpr std::int64_t kDistance = 3;
  TorchGenerator generator(0);
  const auto layer = attention_init(generator, kWidth, kWidth);
  const auto table = sinusoidal_encoding(kTrained, kWidth);
  const auto query = linear(table, layer.query);
  const auto key = linear(table, layer.key);
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (std::int64_t m = 0; m + kDistance < kTrained; ++m) {
    double sum = 0;
    for (std::int64_t i = 0; i < kWidth; ++i) sum += double{query(m, i)} * key(m + kDistance, i);
    low = std::min(low, sum);
    high = std::max(high, sum);
  }
  report.record("projected", nlohmann::json::array({low, high}));
  report.say();
  report.paragraph(
      "That is what the encodings offer, not yet what a layer does: it compares Wq PE(m) with "
      "Wk PE(n). With projections as they are drawn (seed 0) the products at distance {} go from "
      "{:.3f} to {:.3f} over the first {} positions. That only the distance counts has to be "
      "learned. Rotary positions, and biases by distance, have it built in.",
      kDistance, low, high, kTrained);
}

void show_sinusoidal(Report& report) {
  constexpr std::int64_t kPositions = 256;
  const auto table = sinusoidal_encoding<double>(kPositions, kWidth);
  const auto frequencies = rotary_frequencies(kWidth).inv_freq;
  report.step("Sinusoidal positions are relative ones in disguise");
  report.paragraph(
      "PE(m) holds sin(m ω_i) and cos(m ω_i) for {} frequencies ω_i = 10000^(-2i / d), d = {}. "
      "Since sin a sin b + cos a cos b = cos(a − b),",
      kWidth / 2, kWidth);
  report.say();
  report.say("    PE(m) · PE(m + k) = Σ cos(k ω_i)");
  report.say();
  report.paragraph("has no m in it. Products of two encodings, k apart:");
  report.say();
  show_products(report, table, frequencies);
  const double error = largest_error_of_products(table, frequencies);
  report.record("product_error", error);
  report.say();
  report.paragraph("Over all pairs of {} positions the largest difference is {:.1e}.", kPositions,
                   error);
  report.say();
  report.paragraph("And a step of k positions turns each pair (sine, cosine) by the angle k ω_i:");
  report.say();
  show_rotations(report, table, frequencies);
  show_projected(report);
}

using Point = std::array<double, 2>;

Point turned(const Point& point, double angle) {
  return {point[0] * std::cos(angle) - point[1] * std::sin(angle),
          point[0] * std::sin(angle) + point[1] * std::cos(angle)};
}

constexpr Point kQuery{1, 0.5};
constexpr Point kKey{0.3, 0.8};

// Returns `point` at the positions 0 … length − 1, rotated by heed: [1, 1, length, 2].
Tensor<double> turned_by_heed(const Point& point, std::int64_t length) {
  Tensor<double> points({1, 1, length, 2});
  for (std::int64_t p = 0; p < length; ++p) {
    points(0, 0, p, 0) = point[0];
    points(0, 0, p, 1) = point[1];
  }
  const auto caches = rotary_caches<double>(length, 2);
  return rotary_embedding(points, caches.cos, caches.sin, RotaryPairing::kHalves);
}

double distance_of(const Point& point, DoubleView other) {
  return std::max(std::abs(point[0] - other(0)), std::abs(point[1] - other(1)));
}

void show_by_hand(Report& report) {
  constexpr std::array<std::pair<std::int64_t, std::int64_t>, 8> kPlaces{
      {{0, 0}, {7, 7}, {3, 1}, {7, 5}, {102, 100}, {5, 1}, {104, 100}, {1, 3}}};
  constexpr std::int64_t kPositions = 128;
  const auto queries = turned_by_heed(kQuery, kPositions);
  const auto keys = turned_by_heed(kKey, kPositions);
  report.say("  {:>4} {:>4} {:>6}   {:>18} {:>18} {:>10} {:>10}", "m", "n", "m − n", "R(m) q",
             "R(n) k", "product", "heed's");
  auto rows = nlohmann::json::array();
  double error = 0;
  for (const auto& place : kPlaces) {
    const auto [m, n] = place;
    const Point query = turned(kQuery, static_cast<double>(m));
    const Point key = turned(kKey, static_cast<double>(n));
    const DoubleView query_row = queries.view().select(0, 0).select(0, 0).select(0, m);
    const DoubleView key_row = keys.view().select(0, 0).select(0, 0).select(0, n);
    const double by_hand = query[0] * key[0] + query[1] * key[1];
    const double by_heed = product(query_row, key_row);
    error = std::max({error, distance_of(query, query_row), distance_of(key, key_row)});
    report.say("  {:>4} {:>4} {:>6}   {:>18} {:>18} {:>10.6f} {:>10.6f}", m, n, m - n,
               fmt::format("({:.4f}, {:.4f})", query[0], query[1]),
               fmt::format("({:.4f}, {:.4f})", key[0], key[1]), by_hand, by_heed);
    rows.push_back({{"m", m}, {"n", n}, {"by_hand", by_hand}, {"by_heed", by_heed}});
  }
  report.record("rotary", rows);
  report.record("rotary_error", error);
  report.say();
  report.paragraph(
      "Equal distances, equal products; the sign of the distance counts too. The turned vectors "
      "differ from those of rotary_embedding() by {:.2g} at most.",
      error);
}

// The products of one query and one key, drawn with seed 0, at all positions.
struct TurnedProducts {
  static constexpr std::int64_t kDistance = 5;

  explicit TurnedProducts(RotaryPairing pairing) {
    TorchGenerator generator(0);
    const auto caches = rotary_caches<double>(kTrained, kWidth);
    const auto at_all_places = [&] {
      const auto one = generator.randn<double>({1, 1, 1, kWidth});
      const auto all = to_tensor(one.view().broadcast_to({1, 1, kTrained, kWidth}));
      return rotary_embedding(all, caches.cos, caches.sin, pairing).reshaped({kTrained, kWidth});
    };
    const auto query = at_all_places();
    const auto key = at_all_places();
    const auto score = [&](std::int64_t m, std::int64_t n) {
      return product(query.view().select(0, m), key.view().select(0, n));
    };
    at_distance = score(kDistance, 0);
    for (std::int64_t m = 1; m < kTrained; ++m) {
      for (std::int64_t n = 1; n < kTrained; ++n) {
        change = std::max(change, std::abs(score(m, n) - score(m - 1, n - 1)));
      }
    }
  }

  double at_distance = 0;  // of a query kDistance positions after the key
  double change = 0;       // the maximum change if both advance by one position
};

void show_rotary(Report& report) {
  report.step("Rotary positions, by hand on 2 dimensions");
  report.paragraph(
      "Nothing is added to the vectors: the query at m is turned by the angle m θ, the key at n "
      "by n θ. For q = ({}, {}), k = ({}, {}) and θ = 1, R(m) being the rotation by m:",
      kQuery[0], kQuery[1], kKey[0], kKey[1]);
  report.say();
  report.say("    R(m) q · R(n) k = cos(n − m) (q1 k1 + q2 k2) + sin(n − m) (q2 k1 − q1 k2)");
  report.say();
  show_by_hand(report);
  const TurnedProducts halves(RotaryPairing::kHalves);
  const TurnedProducts neighbours(RotaryPairing::kNeighbours);
  report.record("halves", {{"product", halves.at_distance}, {"change", halves.change}});
  report.record("neighbours", {{"product", neighbours.at_distance}, {"change", neighbours.change}});
  report.say();
  report.paragraph(
      "With d = {} each pair of dimensions turns by its own θ_i = 10000^(-2i / d), the "
      "frequencies of the sinusoidal table. Two drawn vectors (seed 0), {} places apart, have the "
      "product {:.4f} where dimension i is paired with i + d / 2, and {:.4f} where neighbours are "
      "paired. Both are relative: moving the two on together changes no product by more than "
      "{:.1e}. But they are different functions, so heed wants the pairing named.",
      kWidth, TurnedProducts::kDistance, halves.at_distance, neighbours.at_distance,
      std::max(halves.change, neighbours.change));
}

void teach(Report& report) {
  report.paragraph(
      "What a word means to another depends on how far apart they stand, hardly on where both are. "
      "A score that depends on the distance alone says the same everywhere in a text, and may go "
      "on where no text of training went:");
  report.say();
  report.say("    score(m, n) = f(query, key, n − m)");
  show_sinusoidal(report);
  show_rotary(report);
  const std::vector<Kind> kinds = all_kinds();
  show_distances(report, kinds);
  show_beyond(report, kinds);
  show_parameters(report);
  report.say();
  report.paragraph(
      "Numbers of drawn tables show what is possible, not what is good. `heed compare positions` "
      "trains a model with each kind, on a text and on copying, and measures all of them at the "
      "length of training and beyond it (`--quick` takes minutes).");
  report.draw(drawing_of_scores(kinds));
}

}  // namespace relative_positions_lesson

extern const Lesson kRelativePositionsLesson = {
    "relative-positions", "scores by distance: by hand, of each kind, beyond training",
    relative_positions_lesson::teach};

}  // namespace heed::learn
