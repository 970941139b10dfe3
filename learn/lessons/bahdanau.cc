#include <algorithm>
#include <array>
#include <cmath>

#include "heed/core/random.h"
#include "heed/nn/alignment_layers.h"
#include "heed/nn/tape.h"
#include "heed/viz/chart.h"
#include "lessons/drawing.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"

namespace heed::learn {

namespace bahdanau_lesson {

void show_lookup(Report& report) {
  report.step("A look-up in the source");
  report.paragraph("A library, and what stands for it while a word X is translated:");
  report.say();
  report.say("  query    \"books about neural networks\"   the decoder's state s");
  report.say("  keys     the titles on the shelves       all encoder states h");
  report.say("  values   the books                       the same encoder states");
  report.say("  output   a mix of what fits              Σ weight · h: the context");
}

// Works out three encoder states and one decoder state that suit pencil and paper: W1 = W2 = 1, v =
// (1, 1). Returns the three weights.
Bars show_by_hand(Report& report) {
  report.step("By hand");
  const Tensor<float> identity({2, 2}, {1, 0, 0, 1});
  const Tensor<float> ones({1, 2}, {1, 1});
  nn::AdditiveAttention<> attention(2, 2, 2);
  attention.load_state_dict(
      {{"W1.weight", identity.view()}, {"W2.weight", identity.view()}, {"v.weight", ones.view()}});
  const Tensor<float> encoder({1, 3, 2}, {1, 0, 0, 1, -1, -1});
  const Tensor<float> decoder({1, 2}, {0.5, -0.5});
  const nn::NoGrad no_grad;
  const auto [context, weights] = attention.forward(encoder, decoder);
  report.paragraph("W1 = W2 = identity, v = (1, 1), s = (0.5, −0.5), three encoder states h:");
  report.say();
  report.say("  {:>8}   {:>12}   {:>18}   {:>7}", "h", "h + s", "tanh(h + s)", "score");
  std::vector<double> scores;
  for (std::int64_t i = 0; i < 3; ++i) {
    const double x = static_cast<double>(encoder(0, i, 0)) + 0.5;
    const double y = static_cast<double>(encoder(0, i, 1)) - 0.5;
    scores.push_back(std::tanh(x) + std::tanh(y));
    report.say("  ({:>2}, {:>2})   ({:>4.1f}, {:>4.1f})   ({:>7.4f}, {:>7.4f})   {:>7.4f}",
               encoder(0, i, 0), encoder(0, i, 1), x, y, std::tanh(x), std::tanh(y), scores.back());
  }
  report.record("by_hand_scores", scores);
  report.say();
  report.show("by_hand_weights", "softmax of the scores:", weights.value());
  report.show("by_hand_context", "context = Σ weight · h:", context.value());
  const Tensor<float> shares = to_tensor(weights.value());
  return {"", {shares.elements().begin(), shares.elements().end()}};
}

Tensor<float> sum_of(FloatView weights) {
  Tensor<float> sum({1});
  for_each_element(weights, [&](float weight) { sum(0) += weight; });
  return sum;
}

void show_layer(Report& report) {
  report.step("As a layer: AdditiveAttention(512, 512, 256)");
  set_seed(0);
  nn::AdditiveAttention<> attention(512, 512, 256);
  const auto encoder = default_generator().randn({8, 20, 512});
  const auto decoder = default_generator().randn({8, 512});
  const nn::NoGrad no_grad;
  const auto [context, weights] = attention.forward(encoder, decoder);
  report.say("  encoder outputs     {:<14}  8 sequences of 20 steps", to_string(encoder.shape()));
  report.say("  decoder hidden      {}", to_string(decoder.shape()));
  report.say("  context             {}", to_string(context.shape()));
  report.say("  attention weights   {}", to_string(weights.shape()));
  report.say("  parameters          {}: W1 and W2 of 512 · 256, v of 256",
             grouped(attention.num_parameters()));
  report.record("encoder_shape", encoder.shape());
  report.record("decoder_shape", decoder.shape());
  report.record("context_shape", context.shape());
  report.record("weights_shape", weights.shape());
  report.record("parameters", attention.num_parameters());
  report.record("weights", weights.value());
  report.record("context", context.value());
  report.say();
  const FloatView first = weights.value().select(0, 0);
  report.show("first_weights",
              "The first sequence's weights, of a layer that has learned nothing (seed 0):", first,
              3);
  report.show("first_sum", "Their sum:", sum_of(first));
}

// Returns the largest |score| of a random source for a random state, both scaled by `factor`.
double largest_score(double factor, bool is_additive) {
  set_seed(0);
  constexpr std::int64_t kWidth = 64;
  nn::Linear<> w1(kWidth, kWidth, false);
  nn::Linear<> w2(kWidth, kWidth, false);
  nn::Linear<> v(kWidth, 1, false);
  const nn::NoGrad no_grad;
  const nn::Variable<> h =
      nn::scale(nn::Variable<>(default_generator().randn({50, kWidth})), factor);
  const nn::Variable<> s =
      nn::scale(nn::Variable<>(default_generator().randn({1, kWidth})), factor);
  const nn::Variable<> scores =
      is_additive ? v.forward(nn::tanh(w1.forward(h) + w2.forward(nn::broadcast_to(s, h.shape()))))
                  : nn::matmul(h, nn::transpose(s));
  double most = 0;
  for (const float score : scores.value().elements()) {
    most = std::max(most, std::abs(static_cast<double>(score)));
  }
  return most;
}

// Returns the largest scores as states grow, a curve for each scoring function.
std::array<Curve, 2> show_bounds(Report& report) {
  report.step("Why tanh: scores that cannot explode");
  report.paragraph("The largest score among 50 states of width 64, as the states grow:");
  report.say();
  report.say("  {:>12} {:>12} {:>12}", "states times", "vᵀ tanh(…)", "h · s");
  auto rows = nlohmann::json::array();
  std::array curves{Curve{.name = "vᵀ tanh(W1 h + W2 s)", .has_markers = true},
                    Curve{.name = "h · s", .has_markers = true}};
  for (const double factor : {1.0, 10.0, 100.0}) {
    const double additive = largest_score(factor, true);
    const double dot = largest_score(factor, false);
    report.say("  {:>12} {:>12.3f} {:>12.1f}", factor, additive, dot);
    for (Curve& curve : curves) curve.x.push_back(factor);
    curves[0].y.push_back(additive);
    curves[1].y.push_back(dot);
    rows.push_back({{"factor", factor}, {"additive", additive}, {"dot", dot}});
  }
  report.record("growth", rows);
  report.say();
  report.paragraph(
      "What to notice: an additive score is at most Σ |v|, so no 1/√d is needed. A dot product "
      "grows with the square of the states, and saturates the softmax. The price is a tanh of "
      "every state and step: `heed lesson luong` measures it.");
  return curves;
}

Figure draw(const Bars& by_hand, const std::array<Curve, 2>& bounds, Theme theme) {
  const std::vector<std::string> states{"(1, 0)", "(0, 1)", "(−1, −1)"};
  return join({.title = "Additive attention"},
              {bars_figure(states, std::array{by_hand},
                           {.title = "by hand: weights for s = (0.5, −0.5)",
                            .x_title = "encoder state h",
                            .y_title = "weight",
                            .y_low = 0,
                            .y_high = 1,
                            .theme = theme}),
               curves_figure(bounds, {.title = "the largest score as the states grow",
                                      .x_title = "states multiplied by",
                                      .y_title = "largest score",
                                      .has_log_x = true,
                                      .has_log_y = true,
                                      .theme = theme})},
              theme);
}

void teach(Report& report) {
  report.paragraph("score(h, s) = vᵀ tanh(W1 h + W2 s)");
  report.say("weights = softmax(scores),  context = Σ weight · h");
  report.say();
  report.paragraph(
      "The first attention (Bahdanau, Cho and Bengio, 2014): a small network says how well encoder "
      "state h fits decoder state s.");
  show_lookup(report);
  const Bars by_hand = show_by_hand(report);
  show_layer(report);
  const auto bounds = show_bounds(report);
  report.draw([=](Theme theme) { return draw(by_hand, bounds, theme); });
}

}  // namespace bahdanau_lesson

extern const Lesson kBahdanauLesson = {"bahdanau", "additive attention, by hand and as a layer",
                                       bahdanau_lesson::teach};

}  // namespace heed::learn
