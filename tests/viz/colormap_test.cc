#include "heed/viz/colormap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "viz/cells.h"
#include "viz/figure/palette.h"

namespace heed { namespace {

int largest_difference(Rgb a, Rgb b) {
  return std::max(
      {std::abs(a.red - b.red), std::abs(a.green - b.green), std::abs(a.blue - b.blue)});
}

// matplotlib's colours at positions i/255.
struct Published {
  ColorMap map;
  std::array<Rgb, 6> colors;
};
constexpr std::array<int, 6> kSamples{0, 51, 100, 128, 200, 255};
const std::array<Published, 5> kPublished{{
    {ColorMap::kViridis,
     {{{68, 1, 84},
       {65, 68, 135},
       {42, 118, 142},
       {33, 145, 140},
       {112, 207, 87},
       {253, 231, 37}}}},
    {ColorMap::kBlues,
     {{{247, 251, 255},
       {208, 225, 242},
       {151, 198, 223},
       {106, 174, 214},
       {26, 104, 174},
       {8, 48, 107}}}},
    {ColorMap::kYlOrRd,
     {{{255, 255, 204},
       {254, 225, 135},
       {254, 173, 74},
       {253, 140, 60},
       {217, 19, 31},
       {128, 0, 38}}}},
    {ColorMap::kRdBu,
     {{{103, 0, 31},
       {214, 96, 77},
       {252, 215, 194},
       {246, 247, 247},
       {79, 155, 199},
       {5, 48, 97}}}},
    {ColorMap::kGreys,
     {{{255, 255, 255},
       {226, 226, 226},
       {184, 184, 184},
       {149, 149, 149},
       {70, 70, 70},
       {0, 0, 0}}}},
}};

TEST(ColorMap, MatchesThePublishedColors) {
  for (const Published& published : kPublished) {
    for (std::size_t i = 0; i < kSamples.size(); ++i) {
      const Rgb color = colormap(published.map, static_cast<float>(kSamples[i]) / 255);
      EXPECT_LE(largest_difference(color, published.colors[i]), 2)
          << "map " << static_cast<int>(published.map) << " at " << kSamples[i];
    }
  }
}

TEST(ColorMap, ClampsThePosition) {
  const Rgb first = colormap(ColorMap::kBlues, 0);
  const Rgb last = colormap(ColorMap::kBlues, 1);
  EXPECT_EQ(colormap(ColorMap::kBlues, -3), first);
  EXPECT_EQ(colormap(ColorMap::kBlues, std::nanf("")), first);
  EXPECT_EQ(colormap(ColorMap::kBlues, 1.5F), last);
  EXPECT_EQ(colormap(ColorMap::kBlues, std::numeric_limits<float>::infinity()), last);
}

TEST(ColorMap, ViridisGetsBrighterAllTheWay) {
  double previous = -1;
  for (int i = 0; i < 256; ++i) {
    const double current = luminance(colormap(ColorMap::kViridis, static_cast<float>(i) / 255));
    EXPECT_GT(current, previous - 1e-3);
    previous = current;
  }
}

TEST(ColorMap, LuminanceIsWcag) {
  EXPECT_DOUBLE_EQ(luminance({0, 0, 0}), 0);
  EXPECT_NEAR(luminance({255, 255, 255}), 1, 1e-12);
  EXPECT_NEAR(luminance({255, 0, 0}), 0.2126, 1e-12);
  EXPECT_NEAR(luminance({188, 188, 188}), 0.5029, 1e-4);
}

// Returns WCAG 2's contrast ratio. WCAG requires at least 4.5 for text.
double contrast(Rgb a, Rgb b) {
  const double first = luminance(a) + 0.05;
  const double second = luminance(b) + 0.05;
  return std::max(first, second) / std::min(first, second);
}
constexpr double kReadable = 4.5;

// Returns every colour of cells in figures and terminals.
std::vector<Rgb> cell_colors() {
  std::vector<Rgb> colors;
  for (const Published& published : kPublished) {
    for (int i = 0; i < 1024; ++i) {
      colors.push_back(colormap(published.map, static_cast<float>(i) / 1023));
    }
  }
  return colors;
}

TEST(ColorMap, TextInFiguresCanBeReadOnEveryColor) {
  for (const figure::Palette& palette : {figure::kLightPalette, figure::kDarkPalette}) {
    for (const Rgb cell : cell_colors()) {
      EXPECT_GE(contrast(cell, figure::cell_text_color(cell, palette)), kReadable);
    }
    const Rgb on_hatching = figure::cell_text_color(std::nullopt, palette);
    EXPECT_GE(contrast(on_hatching, palette.hatched), kReadable);
    EXPECT_GE(contrast(on_hatching, palette.hatching), kReadable);
    EXPECT_GE(contrast(palette.muted, palette.background), kReadable);
    EXPECT_GE(contrast(palette.ink, palette.background), kReadable);
  }
}

// Returns xterm's colour `index`, from 16 on.
Rgb xterm(int index) {
  constexpr std::array<std::uint8_t, 6> kLevels{0, 95, 135, 175, 215, 255};
  if (index >= 232) {
    const auto level = static_cast<std::uint8_t>(8 + 10 * (index - 232));
    return {level, level, level};
  }
  const auto cube = static_cast<std::size_t>(index - 16);
  return {kLevels[cube / 36], kLevels[cube / 6 % 6], kLevels[cube % 6]};
}

TEST(ColorMap, TextInTerminalsCanBeReadOnEveryColor) {
  for (const Rgb cell : cell_colors()) {
    int background = 0;
    int text = 0;
    const std::string few = cells::painted("x", cell, ColorDepth::k256);
    ASSERT_EQ(std::sscanf(few.c_str(), "\x1b[48;5;%d;38;5;%dm", &background, &text), 2) << few;
    EXPECT_GE(contrast(xterm(background), xterm(text)), kReadable) << few;

    std::array<int, 6> rgb{};
    const std::string many = cells::painted("x", cell, ColorDepth::kTrueColor);
    ASSERT_EQ(std::sscanf(many.c_str(), "\x1b[48;2;%d;%d;%d;38;2;%d;%d;%dm", &rgb[0], &rgb[1],
                          &rgb[2], &rgb[3], &rgb[4], &rgb[5]),
              6)
        << many;
    const auto channel = [&rgb](std::size_t i) { return static_cast<std::uint8_t>(rgb[i]); };
    EXPECT_EQ(cell, (Rgb{channel(0), channel(1), channel(2)}));
    EXPECT_GE(contrast(cell, {channel(3), channel(4), channel(5)}), kReadable) << many;
  }
}

}  // namespace
}  // namespace heed
