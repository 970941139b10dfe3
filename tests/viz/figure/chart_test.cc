#include "heed/viz/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::DoubleNear;
using testing::ThrowsMessage;

using testing_support::kInfinity;
using testing_support::Message;

template <class Call>
void expect_refusal(const Call& call, const Message& text) {
  EXPECT_THAT(call, ThrowsMessage<InvalidArgument>(text));
}

TEST(CurvesFigure, AxesHoldEveryPoint) {
  const std::array curves{Curve{"a", {1, 2}, {3, 4}}, Curve{"b", {0.5, 8}, {-1, 2}}};
  const Panel panel = curves_figure(curves).panels[0];
  EXPECT_LT(panel.x.low, 0.5);
  EXPECT_GT(panel.x.high, 8);
  EXPECT_LT(panel.y.low, -1);
  EXPECT_GT(panel.y.high, 4);
}

TEST(CurvesFigure, LogarithmicAxesLeaveOutWhatIsNotPositive) {
  const std::array curves{Curve{"a", {0, 10, 100}, {1, 10, 100}}};
  const Panel panel = curves_figure(curves, {.has_log_x = true, .has_log_y = true}).panels[0];
  EXPECT_GT(panel.x.low, 5);
  EXPECT_NO_THROW(render_figure(curves_figure(curves, {.has_log_x = true}), FigureFormat::kSvg));
}

TEST(CurvesFigure, OnePointAndAConstantAreDrawn) {
  const std::array curves{Curve{"a", {3}, {0}}};
  EXPECT_NO_THROW(render_figure(curves_figure(curves), FigureFormat::kSvg));
  const std::array negative{Curve{"a", {1, 2}, {-4, -4}}};
  EXPECT_NO_THROW(render_figure(curves_figure(negative), FigureFormat::kSvg));
}

TEST(CurvesFigure, RefusesWhatCannotBeDrawn) {
  const std::array uneven{Curve{"loss", {1, 2}, {1}}};
  expect_refusal([&] { curves_figure(uneven); }, "curves_figure: curve 'loss' has 2 x and 1 y");
  const std::array nothing{Curve{"loss", {1}, {kInfinity}}};
  expect_refusal([&] { curves_figure(nothing); }, "no point of 1 curves");
  const std::array one{Curve{"loss", {1, 2}, {1, 2}}};
  expect_refusal([&] { curves_figure(one, {.has_log_y = true, .y_low = 0}); }, "is 0, expected");
  expect_refusal([&] { curves_figure(one, {.y_low = 3, .y_high = 2}); }, "expected to rise");
}

TEST(BarsFigure, TheAxisHoldsZeroAndEveryBar) {
  const std::vector<std::string> names{"a", "b"};
  const std::array bars{Bars{"x", {2, -1}}};
  const Panel panel = bars_figure(names, bars).panels[0];
  EXPECT_LT(panel.y.low, -1);
  EXPECT_GT(panel.y.high, 2);
  const std::array positive{Bars{"x", {2, 1}}};
  EXPECT_EQ(bars_figure(names, positive).panels[0].y.low, 0);
  expect_refusal(
      [&] {
        bars_figure(names, std::array{Bars{"x", {1}}});
      },
      "1 heights were given for 2 categories");
  expect_refusal([&] { bars_figure({}, positive); }, "0 categories");
  expect_refusal(
      [&] {
        bars_figure(names, std::array{Bars{"x", {1, kInfinity}}});
      },
      {"height", "inf"});
}

TEST(TemperatureFigure, GoesFromOneHotToEqual) {
  const Tensor<float> scores({4}, {1, 5, -kInfinity, 2});
  const Panel panel = temperature_figure(scores).panels[0];
  ASSERT_EQ(panel.curves.size(), 4U);
  EXPECT_THAT(panel.curves[1].y.front(), DoubleNear(1, 1e-9));
  EXPECT_THAT(panel.curves[2].y.back(), DoubleNear(0, 1e-12));
  for (std::size_t i = 0; i < panel.curves[0].x.size(); ++i) {
    double sum = 0;
    for (const Curve& curve : panel.curves) sum += curve.y[i];
    EXPECT_THAT(sum, DoubleNear(1, 1e-12));
  }
  expect_refusal([] { temperature_figure(Tensor<float>({2}, {kInfinity, 0})); }, {"score", "inf"});
  expect_refusal([] { temperature_figure(Tensor<float>({1}, {-kInfinity})); }, "finite element");
  expect_refusal([] { temperature_figure(Tensor<float>({2, 2})); }, "[2, 2]");
}

}  // namespace
}  // namespace heed
