#include "heed/viz/attention_figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "support/refusal.h"
#include "viz/figure/matrix_panel.h"
#include "viz/figure/sample_figures.h"
#include "viz/figure/scales.h"

namespace heed { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::causal_square;
using testing_support::Message;

const float kNan = std::numeric_limits<float>::quiet_NaN();

Rgb end_of(ColorMap map) { return colormap(map, 1); }

TEST(AttentionFigure, MaskedIsHatchedAndZeroIsNot) {
  const Tensor<float> weights({2, 2}, {1, 0, 0, 1});
  const Tensor<bool> visible = causal_square(2);
  const Cells cells = attention_figure(weights, {.visible = visible}).panels[0].cells;
  EXPECT_EQ(cells.is_hatched, (std::vector<bool>{false, true, false, false}));
  EXPECT_THAT(cells.texts, ElementsAre("1.00", "", "0.00", "1.00"));
  EXPECT_TRUE(attention_figure(weights).panels[0].cells.is_hatched.empty());
}

TEST(AttentionFigure, RowsAreQueriesFromTheTop) {
  const std::vector<std::string> queries{"a", "b"};
  const std::vector<std::string> keys{"x", "y", "z"};
  const Panel panel = attention_figure(Tensor<float>({2, 3}, {0, 0, 0, 0, 0, 1}),
                                       {.queries = queries, .keys = keys})
                          .panels[0];
  EXPECT_EQ(panel.y.ticks[0].label, "a");
  EXPECT_GT(panel.y.low, panel.y.high);
  EXPECT_EQ(panel.x.ticks[2].label, "z");
  EXPECT_EQ(panel.cells.colors[5], end_of(ColorMap::kViridis));
}

TEST(AttentionFigure, HeadsShareOneScaleUnlessToldOtherwise) {
  const Tensor<float> weights({2, 1, 8}, {0.5F, 0.5F, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0});
  EXPECT_NE(attention_figure(weights).panels[0].cells.colors[0], end_of(ColorMap::kViridis));
  const Figure apart = attention_figure(weights, {.scales_panels_apart = true});
  EXPECT_EQ(apart.panels[0].cells.colors[0], end_of(ColorMap::kViridis));
  EXPECT_TRUE(apart.panels[0].color_bar && apart.panels[1].color_bar);
}

TEST(AttentionFigure, WeightsThatAreAllAlikeDoNotLookStrong) {
  for (const std::int64_t keys : {4, 10, 400}) {
    const auto share = 1 / static_cast<float>(keys);
    Tensor<float> weights({1, keys});
    std::fill(weights.elements().begin(), weights.elements().end(), share);
    const Panel panel = attention_figure(weights).panels[0];
    EXPECT_EQ(panel.cells.colors[0], colormap(ColorMap::kViridis, 0.25F)) << keys;
    EXPECT_FLOAT_EQ(static_cast<float>(panel.color_bar->axis.high), 4 * share);
    // A large weight determines the end of the scale.
    weights(0, 1) = 0.9F;
    if (keys == 4) continue;  // where the scale ends at 1
    EXPECT_EQ(attention_figure(weights).panels[0].cells.colors[1], end_of(ColorMap::kViridis));
  }
}

TEST(AttentionFigure, WeightsAreNeverOnAScaleWithNegatives) {
  const Tensor<float> weights({1, 2}, {0.5F, 1});
  const Panel panel = attention_figure(weights, {.color_map = ColorMap::kRdBu}).panels[0];
  EXPECT_EQ(panel.color_bar->axis.low, 0);
  EXPECT_EQ(panel.color_bar->colors.front(), colormap(ColorMap::kRdBu, 0.5F));
  EXPECT_EQ(panel.cells.colors[0], colormap(ColorMap::kRdBu, 0.75F));
  // A difference has both signs, even if all of its numbers have one.
  EXPECT_EQ(difference_figure(weights, weights).panels[0].color_bar->axis.low, -1);
}

// Compares the strongest and the weakest colour with the background of the figure.
TEST(AttentionFigure, OnADarkGroundWhatIsStrongIsBright) {
  const Tensor<float> weights({1, 3}, {0, 0.5F, 1});
  for (const ColorMap map :
       {ColorMap::kViridis, ColorMap::kBlues, ColorMap::kYlOrRd, ColorMap::kGreys}) {
    const auto dark =
        attention_figure(weights, {.color_map = map, .theme = Theme::kDark}).panels[0].cells.colors;
    EXPECT_LT(luminance(dark[0]), luminance(dark[1]));
    EXPECT_LT(luminance(dark[1]), luminance(dark[2]));
    EXPECT_GT(luminance(dark[2]), 0.6);
  }
  const auto both = difference_figure(Tensor<float>({1, 3}, {0, 1, 0.5F}),
                                      Tensor<float>({1, 3}, {1, 0, 0.5F}), {.theme = Theme::kDark})
                        .panels[0];
  EXPECT_LT(luminance(both.cells.colors[2]), 0.01);
  for (const std::size_t end : {0U, 1U}) EXPECT_GT(luminance(both.cells.colors[end]), 0.4);
  EXPECT_EQ(both.color_bar->colors.back(), both.cells.colors[1]);
  // On a light background the maps are unchanged.
  EXPECT_EQ(attention_figure(weights, {.color_map = ColorMap::kBlues}).panels[0].cells.colors[2],
            end_of(ColorMap::kBlues));
}

TEST(AttentionFigure, TheLogarithmOfSignedNumbersGoesToBothSides) {
  const Tensor<float> weights({1, 6}, {2, 0.02F, 1e-7F, 0, -0.02F, -2});
  const Panel panel =
      attention_figure(weights, {.color_map = ColorMap::kRdBu, .scale = ColorScale::kLog})
          .panels[0];
  const auto color = [](float place) { return colormap(ColorMap::kRdBu, place); };
  EXPECT_THAT(panel.cells.colors, ElementsAre(color(1), color(0.75F), color(0.5F), color(0.5F),
                                              color(0.25F), color(0)));
  std::map<std::string, double> places;
  for (const Tick& tick : panel.color_bar->axis.ticks) places[tick.label] = tick.at;
  EXPECT_EQ(places, (std::map<std::string, double>{
                        {"-2", -1}, {"-0.02", -0.5}, {"0", 0}, {"0.02", 0.5}, {"2", 1}}));
}

TEST(AttentionFigure, ScalesByRowOrByLogarithm) {
  const Tensor<float> weights({2, 2}, {0.01F, 0.005F, 1, 0});
  const auto color = [&](ColorScale scale, std::size_t cell) {
    return attention_figure(weights, {.scale = scale}).panels[0].cells.colors[cell];
  };
  EXPECT_EQ(color(ColorScale::kPerRow, 0), colormap(ColorMap::kViridis, 1));
  EXPECT_EQ(color(ColorScale::kPerRow, 1), colormap(ColorMap::kViridis, 0.5F));
  EXPECT_EQ(color(ColorScale::kLog, 0), colormap(ColorMap::kViridis, 0.5F));
  EXPECT_EQ(color(ColorScale::kLog, 3), colormap(ColorMap::kViridis, 0));
  EXPECT_EQ(color(ColorScale::kLinear, 2), colormap(ColorMap::kViridis, 1));
}

TEST(AttentionFigure, WithoutTheFirstKeyTheScaleIsThatOfTheRest) {
  const std::vector<std::string> keys{"sink", "a", "b"};
  const Figure figure = attention_figure(Tensor<float>({1, 3}, {0.9F, 0.08F, 0.02F}),
                                         {.keys = keys, .hides_first_key = true});
  EXPECT_EQ(figure.panels[0].cells.columns, 2);
  EXPECT_EQ(figure.panels[0].x.ticks[0].label, "a");
  EXPECT_EQ(figure.panels[0].cells.colors[0], end_of(ColorMap::kViridis));
  EXPECT_THAT(figure.note, HasSubstr("Key sink is left out."));
}

TEST(AttentionFigure, DifferencesAreCentredAtZero) {
  const Panel panel = difference_figure(Tensor<float>({1, 3}, {0.5F, 0, 0.25F}),
                                        Tensor<float>({1, 3}, {0, 0, 0.5F}))
                          .panels[0];
  EXPECT_EQ(panel.cells.colors[0], colormap(ColorMap::kRdBu, 1));
  EXPECT_EQ(panel.cells.colors[1], colormap(ColorMap::kRdBu, 0.5F));
  EXPECT_EQ(panel.cells.colors[2], colormap(ColorMap::kRdBu, 0.25F));
  EXPECT_EQ(panel.color_bar->axis.low, -0.5);
}

TEST(AttentionFigure, WhatRoundsToZeroHasNoSign) {
  const auto texts =
      difference_figure(Tensor<float>({1, 2}, {0, 1}), Tensor<float>({1, 2}, {0.001F, 2}))
          .panels[0]
          .cells.texts;
  EXPECT_THAT(texts, ElementsAre("0.00", "-1.00"));
}

TEST(AttentionFigure, NotANumberIsSeen) {
  const Cells cells = attention_figure(Tensor<float>({1, 2}, {kNan, 1})).panels[0].cells;
  EXPECT_EQ(cells.colors[0], (Rgb{0xff, 0x00, 0xff}));
  EXPECT_EQ(cells.texts[0], "nan");
}

TEST(AttentionFigure, OverviewHasALayerPerRow) {
  const Figure figure = overview_figure(Tensor<float>({2, 3, 4, 4}));
  EXPECT_EQ(figure.panels.size(), 6U);
  EXPECT_EQ(figure.columns, 3);
  EXPECT_EQ(figure.panels[3].y.label, "layer 1");
  EXPECT_EQ(figure.panels[2].title, "head 2");
}

TEST(AttentionFigure, AnOverviewByRowSaysSoOnItsBar) {
  const Tensor<float> weights({1, 2, 2, 2}, {0.75F, 0.25F, 0.5F, 0.5F, 1, 0, 0.1F, 0.9F});
  const Figure figure = overview_figure(weights, {.note = "Heads.", .scale = ColorScale::kPerRow});
  const std::vector<Tick>& ticks = figure.panels[1].color_bar->axis.ticks;
  ASSERT_EQ(ticks.size(), 2U);
  EXPECT_EQ(ticks[0].label, "0");
  EXPECT_EQ(ticks[1].label, "row max");
  EXPECT_EQ(figure.note, "Heads. Colours: a weight's share of the largest weight of its row.");
  const Figure shared = overview_figure(weights);
  EXPECT_EQ(shared.panels[1].color_bar->axis.ticks.back().label, "1.0");
  EXPECT_EQ(shared.note, "");
}

TEST(AttentionFigure, RefusesWhatDoesNotFit) {
  const Tensor<float> weights({2, 3});
  const std::vector<std::string> one{"only"};
  const Tensor<bool> visible({3, 2});
  const auto refuses = [](const auto& call, const Message& text) {
    EXPECT_THAT(call, ThrowsMessage<InvalidArgument>(text));
  };
  refuses([&] { attention_figure(weights, {.queries = one}); },
          "attention_figure: 1 query labels were given for 2");
  refuses([&] { attention_figure(weights, {.keys = one}); }, "1 key labels were given for 3");
  refuses([&] { attention_figure(weights, {.visible = visible}); }, {"visible", "[3, 2]"});
  refuses([&] { attention_figure(weights, {.scale_max = 0.0F}); }, {"scale_max", "0"});
  refuses([&] { attention_figure(Tensor<float>({3})); }, {"weights", "[3]"});
  refuses([&] { attention_figure(Tensor<float>({0, 3})); }, "no extent of 0");
  refuses(
      [&] {
        attention_figure(Tensor<float>({2, 1}), {.hides_first_key = true});
      },
      "leaves no key");
  refuses([&] { difference_figure(weights, Tensor<float>({3, 2})); }, {"b", "[3, 2]"});
  refuses([&] { overview_figure(weights); }, "[num_layers, num_heads, q_len, kv_len]");
  refuses([&] { mask_figure(Tensor<bool>({2})); }, {"masks", "[2]"});
  refuses([&] { position_figure(Tensor<float>({2})); }, {"encodings", "[2]"});
  refuses([&] { dimensions_figure(weights, std::vector<std::int64_t>{2}); }, "dimension 2");
}

TEST(MaskFigure, LegendNamesTheColoursDrawn) {
  const Panel panel = mask_figure(causal_square(2),
                                  {.visible_color = {255, 255, 255}, .masked_color = Rgb{0, 0, 0}})
                          .panels[0];
  EXPECT_EQ(panel.cells.colors[0], (Rgb{255, 255, 255}));
  EXPECT_EQ(panel.cells.colors[1], (Rgb{0, 0, 0}));
  EXPECT_EQ(panel.swatches[0].color, panel.cells.colors[0]);
  EXPECT_THAT(panel.swatches[0].name, HasSubstr("can attend"));
  EXPECT_EQ(panel.swatches[1].color, panel.cells.colors[1]);
  EXPECT_THAT(panel.cells.texts, ElementsAre("✓", "✗", "✓", "✓"));
}

TEST(Pool, NeverHidesASingleStrongCell) {
  rc::check([] {
    const auto rows = *rc::gen::inRange<std::int64_t>(1, 300);
    const auto columns = *rc::gen::inRange<std::int64_t>(1, 300);
    const auto limit = *rc::gen::inRange<std::int64_t>(1, 64);
    const auto row = *rc::gen::inRange<std::int64_t>(0, rows);
    const auto column = *rc::gen::inRange<std::int64_t>(0, columns);
    const bool is_signed = *rc::gen::arbitrary<bool>();
    Tensor<float> matrix({rows, columns});
    for (float& value : matrix.elements()) value = 0.25F;
    matrix(row, column) = is_signed ? -1.0F : 1.0F;
    const auto grid = figure::pool(matrix, {}, limit, is_signed);
    RC_ASSERT(grid.rows <= limit && grid.columns <= limit);
    const auto cell =
        static_cast<std::size_t>(row / grid.row_block * grid.columns + column / grid.column_block);
    RC_ASSERT(grid.values[cell] == matrix(row, column));
    RC_ASSERT(std::count(grid.values.begin(), grid.values.end(), matrix(row, column)) == 1);
  });
}

TEST(Pool, ABlockIsMaskedWhenAllOfItIs) {
  const Tensor<float> ones({4, 4}, std::vector<float>(16, 1.0F));
  const auto grid = figure::pool(ones, causal_square(4), 2, false);
  EXPECT_THAT(grid.values, ElementsAre(1, figure::kMasked, 1, 1));
}

TEST(Pool, NotANumberIsStrongest) {
  const auto grid = figure::pool(Tensor<float>({1, 3}, {5, kNan, 7}), {}, 1, false);
  EXPECT_TRUE(std::isnan(grid.values[0]));
}

}  // namespace
}  // namespace heed
